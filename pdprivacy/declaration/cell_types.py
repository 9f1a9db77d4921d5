"""Types of cells, as the type of a column gives them, and the types that suit a declaration.

A reader of files gives a column one type in the light of all of its cells: one word makes a column of
numbers text, one complex number makes it complex. What a single record did there to all others is no fault
of each of them, so a column of another type than declared is refused as a whole, whatever ``on_invalid``
says. Nothing here looks at a cell of a column that has a type.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Collection, Hashable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import is_encodable
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import INT64
from pdprivacy.errors import DeclarationError, InvalidDataError
from pdprivacy.exact import EXACT

NUMBERS, TRUTH, TEXT = "numbers", "truth values", "text"
DAYS, TIMES, ZONED, DURATIONS = "days", "times", "times with a time zone", "durations"
COMPLEX = "complex numbers"
CATEGORIES = "categories of "


def cell_type_name(cell: object) -> str:
    """Return the name of the type of a label or cell.

    >>> cell_type_name(3), cell_type_name("a"), cell_type_name(True)
    ('numbers', 'text', 'truth values')
    """
    if isinstance(cell, bool | np.bool_):
        return TRUTH
    if isinstance(cell, np.timedelta64 | datetime.timedelta):  # numpy's is an integer, too
        return DURATIONS
    if isinstance(cell, numbers.Real | Decimal):
        return NUMBERS
    if isinstance(cell, numbers.Complex):
        return COMPLEX
    if isinstance(cell, str):
        return TEXT
    if isinstance(cell, np.datetime64):
        return TIMES
    if isinstance(cell, datetime.datetime):
        return TIMES if cell.tzinfo is None else ZONED
    return DAYS if isinstance(cell, datetime.date) else type(cell).__name__


def pandas_type_name(dtype: Any) -> str | None:
    """Return the name of the type of cells in a pandas column; None for objects, which may be anything."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories_of(pandas_type_name(dtype.categories.dtype))
    if isinstance(dtype, pd.SparseDtype):
        return pandas_type_name(dtype.subtype)
    if isinstance(dtype, pd.ArrowDtype):
        return arrow_type_name(dtype.pyarrow_dtype)
    if isinstance(dtype, pd.StringDtype):
        return TEXT
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ZONED
    kinds = {"b": TRUTH, "c": COMPLEX, "M": TIMES, "m": DURATIONS, **dict.fromkeys("iuf", NUMBERS)}
    if dtype.kind in kinds:
        return kinds[dtype.kind]
    return None if isinstance(dtype, np.dtype) else str(dtype.type.__name__)


def arrow_type_name(kind: Any) -> str | None:
    """Return the name of the type of cells in an Arrow column; None where it holds nulls alone."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _categories_of(arrow_type_name(kind.value_type))
    if types.is_null(kind):
        return None
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBERS
    if types.is_boolean(kind):
        return TRUTH
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return TEXT
    if types.is_date(kind):
        return DAYS
    if types.is_timestamp(kind):
        return TIMES if kind.tz is None else ZONED
    if types.is_duration(kind):
        return DURATIONS
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "bytes"
    return "time" if types.is_time(kind) else f"{str(kind).partition('<')[0]} values"


def _categories_of(dtype: str | None) -> str | None:
    """Numbers that are labels already: nothing adds them up."""
    return f"{CATEGORIES}{dtype}" if dtype in (NUMBERS, TRUTH) else dtype


def label_types(column: Column) -> frozenset[str] | None:
    """Return the types of cells that suit a column of labels; None, any type, without declared labels.

    True equals 1: each is a label of columns of the other. Private labels are texts.
    """
    if column.categories is None:
        return frozenset({TEXT}) if column.private_labels else None
    types = {cell_type_name(label) for label in column.categories}
    return frozenset(types | {NUMBERS, TRUTH} if types & {NUMBERS, TRUTH} else types)


def refuse_other_types(
    types: Mapping[Hashable, str | None],
    domain: Domain,
    hint: Callable[[Column, str], str] | None = None,
) -> None:
    """Refuse columns whose type is not the declared one; looks at no cell.

    Parameters
    ----------
    types : what each declared column holds; None suits every declaration.
    hint : the function from a column and what it holds to code that converts it; by default that of pandas.

    Raises
    ------
    InvalidDataError : names the columns and their types; its hint converts the first of them.
    """
    refused = [
        (column, cell_type)
        for column in domain.columns
        if (cell_type := types.get(column.name)) is not None and not _suits(column, cell_type)
    ]
    if refused:
        named = "; ".join(
            f"column {column.name!r} is declared as {declared_as(column)} and holds {cell_type}"
            for column, cell_type in refused
        )
        raise InvalidDataError(f"{named}.", (hint or conversion_hint)(*refused[0]))


def refuse_rounded(floats: Collection[Hashable], domain: Domain, engine: str = "pandas") -> None:
    """Refuse columns of floats that are declared with integers which doubles do not tell apart.

    One null makes floats of a whole column of integers in pandas: a single record would round all others.
    """
    for column in domain.columns:
        if column.name in floats and any(abs(number) > EXACT for number in declared_integers(column)):
            raise InvalidDataError(
                f"column {column.name!r} is declared with integers beyond 2**53, and holds floats, which "
                "cannot represent them exactly.",
                f'read it as integers: pd.read_csv(PATH, dtype={{{column.name!r}: "Int64"}}).'
                if engine == "pandas"
                else f"read column {column.name!r} as integers of 64 bits in {engine}.",
            )


def declared_integers(column: Column) -> list[int]:
    """Return the bounds of an integer column and the labels of any column that are integers.

    >>> declared_integers(Column("age", "integer", lower=0, upper=120))
    [0, 120]
    """
    ends = (column.lower, column.upper) if column.kind == "integer" else ()
    return [number for number in (*ends, *(column.categories or ())) if isinstance(number, int)]


def is_float(dtype: Any) -> bool:
    """Return whether a pandas column of this dtype holds floats, as they are or as categories."""
    if isinstance(dtype, pd.CategoricalDtype):
        return is_float(dtype.categories.dtype)
    return is_float(dtype.subtype) if isinstance(dtype, pd.SparseDtype) else dtype.kind == "f"


def _suits(column: Column, cell_type: str) -> bool:
    if column.timeline is not None:
        return cell_type in ((DAYS, TIMES) if column.timeline.zone is None else (ZONED,))
    if column.kind == "category":
        labels = label_types(column)
        return labels is None or cell_type.removeprefix(CATEGORIES) in labels
    return cell_type == (TRUTH if column.kind == "boolean" else NUMBERS)


def declared_as(column: Column) -> str:
    """Return the declared type of the cells: the kind of the column, or the types of its labels."""
    if column.kind == "category" and column.private_labels:
        return TEXT
    if column.kind != "category" or column.categories is None:
        return column.noun
    return " or ".join(dict.fromkeys(map(cell_type_name, column.categories)))


def _date_hint(at: str, zone: str | None, cell_type: str | None) -> str:
    """Return code that converts a column to dates with the declared time zone."""
    if zone is not None and cell_type in (TIMES, DAYS):
        return f"{at} = pd.to_datetime({at}).dt.tz_localize({zone!r}), the time zone of its clock."
    if zone is None and cell_type == ZONED:
        return f"{at} = {at}.dt.tz_localize(None), or declare bounds with a time zone."
    utc = "" if zone is None else ", utc=True"
    return f'{at} = pd.to_datetime({at}, errors="coerce"{utc}), declared with nullable=True.'


def conversion_hint(column: Column, cell_type: str | None) -> str:
    """Return code that converts a pandas column to its declared type; ``cell_type`` is None for objects."""
    at = f"df[{column.name!r}]"
    if column.timeline is not None:
        return _date_hint(at, column.timeline.zone, cell_type)
    if column.kind == "boolean":
        texts = '"False": False, "True": True'
        values = {NUMBERS: "0: False, 1: True", TEXT: texts}.get(
            cell_type or "", f"False: False, True: True, {texts}"
        )
        declared = 'declared as pa.Column("boolean", nullable=True)'
        return f'{at} = {at}.map({{{values}}}).astype("boolean"), {declared}.'
    if column.kind == "category":
        if cell_type in (NUMBERS, TRUTH, None) and declared_as(column) == TEXT:
            return f"read text: pd.read_csv(PATH, dtype={{{column.name!r}: str}}), or declare other labels."
        return f"convert the column to {declared_as(column)} before it is protected, or declare other labels."
    dtype = '"Int64"' if column.kind == "integer" else "float"
    nullable = f"declared as pa.Column({dtype}, ..., nullable=True, coerce=True)"
    zone = ', tz="UTC"' if cell_type == ZONED else ""
    coerced = f'{at} = pd.to_numeric({at}, errors="coerce"), {nullable}.'
    day = f'pd.Timestamp("2000-01-01"{zone})'
    days = f"{at} = ({at} - {day}).dt.days, {nullable}: days since a public day."
    conversions = {
        None: coerced,
        TEXT: coerced,
        TIMES: days,
        ZONED: days,
        DURATIONS: f"{at} = {at} / pd.Timedelta(days=1), {nullable}.",
        COMPLEX: f"{at} = np.where(np.imag({at}) == 0, np.real({at}), np.nan), {nullable}.",
        CATEGORIES + NUMBERS: f"{at} = {at}.astype({dtype}), {nullable}.",
        TRUTH: f"{at} = {at}.astype({'int' if column.kind == 'integer' else 'float'}).",
    }
    return conversions.get(cell_type, "convert the column to numbers before it is protected.")


def refuse_unstorable(domain: Domain) -> None:
    """Refuse integers that a column of 64 bits does not hold, and texts that pandas cannot put on an axis.

    Before anything is charged for a table of them. Raises DeclarationError.

    >>> refuse_unstorable(Domain((Column("age", "integer", lower=0, upper=120),)))
    """
    for column in domain.columns:
        for label in column.categories or ():
            if isinstance(label, str) and not is_encodable(label):
                raise DeclarationError(
                    f"'categories' of column {column.name!r} must be encodable text (got {label!r})."
                )
    for column in domain.columns:
        if not all(number in INT64 for number in declared_integers(column)):
            raise DeclarationError(
                f"Declared integers of column {column.name!r} must lie between -2**63 and 2**63 - 1.",
                "narrower bounds; a column of floats for larger numbers, of text for larger labels",
            )
