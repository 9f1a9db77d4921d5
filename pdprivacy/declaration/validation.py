"""A pandera schema run on a pandas frame, without showing a cell."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.declaration.cell_types import conversion_hint, pandas_type_name, refuse_other_types
from pdprivacy.declaration.declarations import (
    Schema,
    allowed,
    check_text,
    excluded,
    implied_by_dates,
    opened,
    refuse_other_engines,
    stated,
)
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import LINE
from pdprivacy.declaration.pandera_reader import domain_of
from pdprivacy.errors import InvalidDataError, ParameterError


def validate(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame as pandera validated (and, where declared, coerced) it; ``frame`` itself is not changed.

    The schema is run whole, whatever pandera's global configuration says, and its warnings are kept
    back, as they may hold cells. The bounds of columns of dates alone are left to `pdprivacy.core.conform`,
    which compares dates rounded to the declared resolution. A `Domain` checks nothing: its frame is returned
    as it is.

    Raises
    ------
    ParameterError : not a pandas frame, not a schema, or one of Polars or PySpark.
    DeclarationError : as `read_schema`.
    InvalidDataError : the frame does not meet the schema. The message names columns and checks; neither
        it nor its cause and context hold a cell, an index label or a count of rows.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, coerce=True, metadata={"dp": {}})})
    >>> validate(pd.DataFrame({"age": [18.0, 65.0]}), schema)["age"].tolist()
    [18, 65]
    """
    declared = _opened(frame, schema)
    if declared is None:
        return frame
    domain = domain_of(declared)
    _refuse_changed_numbers(frame, declared)
    failed = _numbers_as_objects(frame, declared)
    reduced = _without_columns(_without_bounds_of_dates(declared, domain), failed.keys())
    validated, failures = _run(frame, reduced, domain)
    failures |= failed
    if validated is not None and not failures:
        failures = {
            name: {"column_in_dataframe": _NO_FATE}
            for name in domain
            if name not in validated.columns and declared.columns[name].required
        }
        if not failures:
            return validated
    # Raised here, outside every except block, so that no pandera error is its context.
    names = {name: f"column {name!r}" for name in failures} | {_WHOLE: "schema", _INDEX: "index"}
    named = "; ".join(f"{names[where]}: {', '.join(checks)}" for where, checks in failures.items())
    count = len(failures)
    raise InvalidDataError(
        f"the data does not meet its schema in {count} {'place' if count == 1 else 'places'} ({named}).",
        _hint(failures, domain),
    )


def _opened(frame: pd.DataFrame, schema: Schema) -> Any:
    """The schema of pandera, to be run on this frame; None for a `Domain`."""
    _refuse_engines(frame, schema)
    if isinstance(schema, Domain):
        return None
    declared = opened(schema)
    _refuse_duplicates(frame, declared)
    _refuse_guesses(frame, declared)
    dtypes = _coerced_dtypes(frame, declared)
    _refuse_uncoerced([name for name, dtype in dtypes.items() if _huge(frame[name], dtype)], declared)
    return declared


def _refuse_engines(frame: Any, schema: Any) -> None:
    if not isinstance(schema, Domain):
        refuse_other_engines(schema)
    if not isinstance(frame, pd.DataFrame):
        raise ParameterError(f"'frame' must be a pandas DataFrame (got {type(frame).__name__}).")


_MENDED = {
    "column_in_dataframe": "write the label of a column as df.columns has it",
    "not_nullable": "nullable=True says that cells may be blank",
    "dtype": 'coerce=True converts to the declared dtype, pd.to_numeric(df[column], errors="coerce") text',
    "coerce_dtype": 'a number that may be blank is a float or "Int64"',
    "isin": "isin lists every label that may occur, and so do the categories of a dtype",
}


def _hint(failures: _Failures, domain: Domain) -> str:
    """Return a hint for all failures: fates of faulty records, then a remedy for each check."""
    blank = next((column for column in domain.columns if _may_be_blank(failures, column)), None)
    if blank is not None:
        dtype = "boolean" if blank.kind == "boolean" else "Int64"
        return (
            f"NumPy's {'truth values' if blank.kind == 'boolean' else 'integers'} hold no nulls; "
            f'{blank.name!r}: pa.Column("{dtype}", ..., nullable=True, coerce=True)'
        )
    checks = {re.sub(r"\(.*", "", text, flags=re.DOTALL) for texts in failures.values() for text in texts}
    if any("coerce_dtype('category')" in texts for texts in failures.values()):
        checks = checks - {"coerce_dtype"} | {"isin"}
    if {"not_nullable", "dtype"} <= checks:  # nulls make a column of integers one of doubles
        checks.add("coerce_dtype")
    return "; ".join([_fates(failures), *(remedy for check, remedy in _MENDED.items() if check in checks)])


def _may_be_blank(failures: _Failures, column: Column) -> bool:
    """Return whether a nullable column of integers or truth values has another dtype, as with nulls."""
    failed = failures.get(column.name, {})
    return (
        column.nullable
        and column.kind in ("integer", "boolean")
        and column.timeline is None
        and any(re.fullmatch(r"(?:coerce_)?dtype\('(?:u?int\d+|bool)'\)", text) for text in failed)
    )


def _fates(failures: _Failures) -> str:
    """A fate of faulty records where it mends every failure, else what to correct."""
    hint = "declare what the data may hold"
    mended = frozenset.intersection(*(fates for by_check in failures.values() for fates in by_check.values()))
    if mended:
        passed = " or ".join(f'on_invalid="{fate}"' for fate in ("clip", "drop") if fate in mended)
        return f"{hint}, or pass {passed}"
    if "column_in_schema" in failures.get(_WHOLE, ()):
        return f"{hint}, or leave other columns out before df.dp.protect(...)"
    return f"{hint}, or correct the data before df.dp.protect(...)"


def coerce(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with the columns that the schema coerces in their declared dtypes; the rest as it is.

    A column whose cells cannot all be coerced is refused: leaving it as it is would let one record
    decide what becomes of the others. A declared column stays as it is where its dtype cannot hold one of
    its numbers, such as a fraction, or states categories and a cell holds another label:
    `pdprivacy.core.conform` decides about each of these cells.

    Raises
    ------
    ParameterError : not a pandas frame, not a schema, or one of Polars or PySpark.
    InvalidDataError : names the columns and their dtypes, never a cell.

    >>> import pandas as pd, pandera.pandas as pa
    >>> schema = pa.DataFrameSchema({"age": pa.Column(int, coerce=True, metadata={"dp": {}})})
    >>> coerce(pd.DataFrame({"age": ["18", "65"]}), schema)["age"].tolist()
    [18, 65]
    """
    declared = _opened(frame, schema)
    if declared is None:
        return frame
    coerced = frame.copy(deep=False)
    refused = []
    for name, dtype in _coerced_dtypes(frame, declared).items():
        cells, released = _coerced(frame[name], dtype), "dp" in (declared.columns[name].metadata or {})
        if cells is None and released and getattr(dtype, "categories", None) is not None:
            continue  # an undeclared label is a fault of its record
        if cells is None:
            refused.append(name)
        elif not released or not _changes(frame[name], cells):
            coerced[name] = cells
    _refuse_uncoerced(refused, declared)
    return coerced


def _refuse_uncoerced(names: list[Hashable], schema: Any) -> None:
    """Refuse columns with cells that cannot be coerced; no error that holds cells is the context."""
    if names:
        named = "; ".join(
            f"column {name!r} to {schema.dtype or schema.columns[name].dtype}" for name in names
        )
        raise InvalidDataError(
            f"the data cannot be coerced ({named}).", _uncoerced(names[0], domain_of(schema))
        )


def _huge(values: pd.Series[Any], dtype: Any) -> bool:
    """Whether a column of integers is made of a decimal of so many digits that writing them takes seconds."""
    from pandera import dtypes

    return (
        dtypes.is_int(dtype)
        and values.dtype == object
        and any(isinstance(cell, Decimal) and cell.is_finite() and cell.adjusted() > 99 for cell in values)
    )


def _coerced_dtypes(frame: pd.DataFrame, schema: Any) -> dict[Hashable, Any]:
    """The dtypes to which the schema coerces columns of the frame."""
    dtypes = {
        name: schema.dtype or column.dtype
        for name, column in schema.columns.items()
        if (schema.coerce or column.coerce) and name in frame.columns
    }
    return {name: dtype for name, dtype in dtypes.items() if dtype is not None}


def _coerced(values: pd.Series[Any], dtype: Any) -> pd.Series[Any] | None:
    """The column in a dtype of pandera; None where a cell cannot be coerced."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells: pd.Series[Any] = dtype.coerce(values)
    except Exception:
        return None
    return cells


def _changes(before: pd.Series[Any], after: pd.Series[Any]) -> bool:
    """Return whether the integers or truth values of ``after`` differ from the numbers they were made of.

    pandas truncates 20.9 to 20, makes 44 of 300 in int8, and True of 2.
    """
    if after.dtype.kind not in "iub" or before.dtype == after.dtype:
        return False
    if before.dtype.kind in "iuf":
        old, new = (values.to_numpy(dtype=np.float64, na_value=np.nan) for values in (before, after))
        return bool((old != new)[~np.isnan(old)].any())
    if pandas_type_name(before.dtype) == "text":
        return False
    pairs = zip(before.tolist(), after.tolist(), after.isna().tolist(), strict=True)
    return any(isinstance(old, Number) and not null and bool(old != new) for old, new, null in pairs)


def _refuse_changed_numbers(frame: pd.DataFrame, schema: Any) -> None:
    """Refuse a declared column of which pandera would change a number when it coerces."""
    changed = []
    for name, dtype in _coerced_dtypes(frame, schema).items():
        if "dp" in (schema.columns[name].metadata or {}):
            cells = _coerced(frame[name], dtype)
            if cells is not None and _changes(frame[name], cells):
                changed.append(f"column {name!r} to {dtype}")
    if changed:
        raise InvalidDataError(
            f"coercing {'; '.join(changed)} would change numbers, such as fractions.",
            'declare a dtype that holds them, or pass on_invalid="drop", which leaves fractions out',
        )


def _uncoerced(name: Hashable, domain: Domain) -> str:
    """Return a hint for a column with cells that cannot be coerced."""
    if name not in domain or domain[name].kind not in ("float", "integer"):
        return "correct the cells, or convert the column before it is protected."
    blank = 'a number that may be blank is a float or "Int64"; ' if domain[name].kind == "integer" else ""
    return blank + conversion_hint(domain[name], None)


# Failures by column name, and the fates of faulty records that repair them; the schema as a whole and the
# index have keys of their own.
_WHOLE, _INDEX = object(), object()
_Fates: TypeAlias = frozenset[str]
_Failures: TypeAlias = dict[Any, dict[str, _Fates]]
_NO_FATE: _Fates = frozenset()


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check of a schema that a frame does not meet, for the curator.

    ``column``: where it is declared, None for the schema or the index as a whole. ``mended``: whether a fate
    of faulty records mends it. ``cells``: those of the column that fail it, None where pandera names none.
    """

    column: Hashable | None
    check: str
    mended: bool
    cells: pd.Series[Any] | None


def failed_checks(frame: pd.DataFrame, schema: Schema, unread: Set[Hashable]) -> list[FailedCheck]:
    """The checks of a schema that a frame does not meet, whose labels are unique; none of a `Domain`.

    ``unread``: columns whose cells are of another type than declared. pandera would convert each of them, and
    makes an array of 48 million numbers of the cell ``range(48_000_000)``.

    Raises as `validate` for what is no schema of pandas frames; holds cells, which no error may.
    """
    _refuse_engines(frame, schema)
    if isinstance(schema, Domain):
        return []
    declared = opened(schema)
    domain = domain_of(declared)
    failed = []
    _, errors, stopped = _errors(frame, _without_columns(_without_bounds_of_dates(declared, domain), unread))
    for error in errors:
        failures: _Failures = {}
        _record(failures, error, frame, declared, domain)
        cases = error.failure_cases
        listed = isinstance(cases, pd.DataFrame) and {"index", "failure_case"} <= set(cases.columns)
        cells = cases["failure_case"] if listed and cases["index"].notna().all() else None
        for where, by_check in failures.items():
            column, listed_cells = (None, None) if where in (_WHOLE, _INDEX) else (where, cells)
            failed += [
                FailedCheck(column, text, bool(fates), listed_cells) for text, fates in by_check.items()
            ]
    return failed if stopped is None else [*failed, FailedCheck(None, stopped, False, None)]


def _run(frame: pd.DataFrame, schema: Any, domain: Domain) -> tuple[pd.DataFrame | None, _Failures]:
    """The validated frame, or what failed."""
    validated, errors, stopped = _errors(frame, schema)
    failures: _Failures = {}
    for error in errors:
        _record(failures, error, frame, schema, domain)
    if stopped is not None:
        failures[_WHOLE] = {stopped: _NO_FATE}
    if validated is not None:
        return validated, failures
    return None, failures or {_WHOLE: {"pandera refused it": _NO_FATE}}


def _numbers_as_objects(frame: pd.DataFrame, schema: Any) -> _Failures:
    """The failures of columns of objects that are declared as numbers or truth values and not coerced.

    pandera would convert each of their cells, and makes an array of 48 million numbers of the cell
    ``range(48_000_000)``.
    """
    from pandera import dtypes

    failures: _Failures = {}
    for name, column in schema.columns.items():
        kept = column.dtype is not None and not (schema.coerce or column.coerce or schema.dtype)
        if not kept or name not in frame.columns or frame[name].dtype != object:
            continue
        if dtypes.is_numeric(column.dtype) and getattr(column.dtype, "type", None) != np.dtype(object):
            failures[name] = {f"dtype('{column.dtype}')": _NO_FATE}
    return failures


def _without_bounds_of_dates(schema: Any, domain: Domain) -> Any:
    """The schema without the bounds of its columns of dates.

    pandera compares cells as they are, and stops at days and times of Python beside bounds that are texts;
    the domain has the same bounds, and dates of any dtype are held to it.
    """
    changed = {}
    for column in domain.columns:
        checks = schema.columns[column.name].checks if column.timeline is not None else []
        left = [check for check in checks if not (check.raise_warning or implied_by_dates(check, column))]
        if len(left) < len(checks):
            changed[column.name] = copy.copy(schema.columns[column.name])
            changed[column.name].checks = left
    if not changed:
        return schema
    reduced = copy.copy(schema)
    reduced.columns = {**schema.columns, **changed}
    return reduced


def _without_columns(schema: Any, names: Set[Hashable]) -> Any:
    """The schema with nothing declared of these columns but that they may be there."""
    reduced = copy.copy(schema)
    reduced.columns = dict(schema.columns)
    for name in names & set(schema.columns):
        column = reduced.columns[name] = copy.copy(schema.columns[name])
        column.checks, column.parsers, column.dtype = [], [], None
        column.coerce, column.nullable, column.unique, column.required = False, True, False, False
    return reduced


def _errors(frame: pd.DataFrame, schema: Any) -> tuple[pd.DataFrame | None, list[Any], str | None]:
    """The validated frame, or the errors of pandera, or why it stopped; its exceptions end here."""
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaError, SchemaErrors

    try:
        with (
            warnings.catch_warnings(),
            config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA),
        ):
            warnings.simplefilter("ignore")
            return schema.validate(frame, lazy=True, inplace=False), [], None
    except SchemaErrors as errors:
        return None, _once(errors.schema_errors), None
    except SchemaError as error:
        return None, [error], None
    except Exception as error:
        return None, [], f"pandera stopped with {type(error).__name__}"


def _once(errors: Iterable[Any]) -> list[Any]:
    """The errors of pandera without those of dtypes of columns whose coercion failed."""
    listed = list(errors)
    coerced = {_column_of(error) for error in listed if str(error.check).startswith("coerce_dtype(")}
    return [
        error
        for error in listed
        if not str(error.check).startswith("dtype(") or _column_of(error) not in coerced - {None}
    ]


def _column_of(error: Any) -> Hashable:
    return getattr(error.schema, "name", None)


def _record(failures: _Failures, error: Any, frame: pd.DataFrame, schema: Any, domain: Domain) -> None:
    check = error.check
    if check == "column_in_dataframe":
        for name, column in schema.columns.items():
            if column.required and not column.regex and name not in frame.columns:
                failures.setdefault(name, {})[check] = _NO_FATE
        return
    where: Any = _WHOLE
    part = type(error.schema).__name__
    if part in ("Index", "MultiIndex"):
        where = _INDEX
    elif part != "DataFrameSchema" and error.schema is not None:
        # A column found by a regex has a name that is not declared.
        where = error.schema.name if error.schema.name in schema.columns else _WHOLE
    fates = _mending(error, frame[where], domain[where]) if where in domain else _NO_FATE
    fates_of, text = failures.setdefault(where, {}), check_text(check, values=where in domain)
    fates_of[text] = fates_of.get(text, fates) & fates


def _mending(error: Any, values: pd.Series[Any], column: Column) -> _Fates:
    """Return the fates of faulty records that repair a failure in a declared column; see `conform`."""
    check = error.check
    drops: _Fates = frozenset(["drop"])
    if isinstance(check, str):
        # nulls and fractions turn a column of integers into doubles; without them it is one of integers again
        floats = column.kind == "integer" and not column.nullable and str(values.dtype) == "float64"
        floating = floats and check == "dtype('int64')"
        unseen = check == "coerce_dtype('category')" and column.kind == "category"
        stated_labels = unseen and column.categories is not None
        return drops if floating or stated_labels or check == "not_nullable" else _NO_FATE
    if (interval := stated(check)) != LINE:
        if not column.interval.within(interval):
            return _NO_FATE
        clips = column.categories is None and values.dtype.kind in "iuf"
        return drops | {"clip"} if clips else drops
    if column.categories is None:
        return _NO_FATE
    labels = set(column.categories)
    if barred := excluded(check):
        return drops if labels.isdisjoint(barred) else _NO_FATE
    return drops if labels <= set(allowed(check) or ()) else _NO_FATE


def _refuse_duplicates(frame: pd.DataFrame, schema: Any) -> None:
    if frame.columns.is_unique:
        return
    twice = set(frame.columns[frame.columns.duplicated()])
    declared = [repr(name) for name in schema.columns if name in twice]
    which = f" ({', '.join(declared)})" if declared else ""
    raise InvalidDataError(
        f"a column label appears more than once{which}.", "rename the columns before they are protected"
    )


def _refuse_guesses(frame: pd.DataFrame, schema: Any) -> None:
    """Refuse coercions in which one record decides how others are converted.

    pandas guesses the format of dates from the first of them. It writes whole numbers as text with a decimal
    point where one null made floats of all of them; the text of an integer, and the stated category that a
    number equals, depend on one cell. Numbers made of times count in the unit of the column, which one cell
    can change; those made of complex numbers lose a part. Truth values made of text are all True, and so is
    one made of a NaN.
    """
    from pandera import dtypes

    guesses, unsuited = [], {}
    for name, column in schema.columns.items():
        dtype = schema.dtype or column.dtype
        wanted = dtype is not None and (schema.coerce or column.coerce) and "dp" in (column.metadata or {})
        if not wanted or name not in frame.columns:
            continue
        kind = frame[name].dtype.kind
        timed = dtypes.is_datetime(dtype) or dtypes.is_timedelta(dtype) or str(dtype).startswith("date")
        texts = not (timed or dtypes.is_numeric(dtype) or dtypes.is_bool(dtype))
        guessed = "cmM" if getattr(dtype, "categories", None) is not None else "fcmM"
        if isinstance(frame[name].dtype, pd.ArrowDtype):  # pandas 2 makes floats of them where one is null
            guessed = "iufcmM"
        if (timed and kind not in "mM") or (texts and kind in guessed):
            guesses.append(f"column {name!r} to {dtype}")
        elif not (timed or texts) and (kind in "cmM" or (str(dtype) == "bool" and kind not in "biu")):
            unsuited[name] = pandas_type_name(frame[name].dtype) or "objects"
    if unsuited:
        refuse_other_types(unsuited, domain_of(schema))
    if guesses:
        raise InvalidDataError(
            f"coercing {'; '.join(guesses)} would look at other records to decide how.",
            "convert before protecting: pd.to_datetime(df[column], format=...), "
            "df[column].map(str) and the like",
        )
