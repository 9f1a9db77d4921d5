"""Columns under other names, and of other types."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from pdprivacy.domain import Column, Domain, has_hash, plain
from pdprivacy.errors import DeclarationError, ParameterError, got, kind
from pdprivacy.expressions.arrays import column_of, whole
from pdprivacy.expressions.constants import shown
from pdprivacy.expressions.steps import Cells, Transform, call, own
from pdprivacy.expressions.values import Read

__all__ = ["astype", "rename"]


# ---------------------------------------------------------------- rename


def rename(domain: Domain, columns: Mapping[Hashable, Hashable]) -> Transform:
    """Declared columns under other names, as `DataFrame.rename`; all else that is declared stays.

    Raises
    ------
    ParameterError : no mapping, a name that another column has or gets, or no name.
    DeclarationError : a column that is not declared, or an identifier.

    >>> domain = Domain((Column("age", "integer", lower=18, upper=65),))
    >>> rename(domain, {"age": "years"}).domain["years"].bounds("mean")
    (18.0, 65.0)
    """
    if not isinstance(columns, Mapping):
        raise ParameterError(
            f"'columns' of 'rename' must be a mapping from name to name (got {kind(columns)}).",
            'private.rename(columns={"age": "years"})',
        )
    renewed: dict[Hashable, Column] = {}
    for name, new in columns.items():
        column = own(domain[name], "rename")
        if new is None or not has_hash(new):
            raise ParameterError(f"'rename' got no name for column {name!r} (got {kind(new)}).")
        if new == name:
            continue
        if new in domain or new in (other.name for other in renewed.values()):
            raise ParameterError(
                f"'rename' cannot call column {name!r} {new!r}: another column has that name.",
                "rename that column first, in a step of its own",
            )
        renewed[name] = replace(column, name=new)
    made = {column.name: _same(name) for name, column in renewed.items()}
    kept = Domain(tuple(renewed.get(column.name, column) for column in domain.columns))
    return Transform(call("rename", columns=shown(columns)), kept, tuple(renewed), made)


def _same(name: Hashable) -> Cells:
    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:  # noqa: ARG001
        return read[name]

    return cells


# ---------------------------------------------------------------- astype

KINDS = {
    **dict.fromkeys(("float", "float64", "Float64"), "float"),
    **dict.fromkeys(("int", "int64", "Int64"), "integer"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("str", "string", "category", "object"), "category"),
}
"""What a column of each dtype is declared as."""

WIDER = {("boolean", "integer"), ("boolean", "float"), ("integer", "float")}
"""Kinds of columns whose every cell is one of another kind, too."""

EXACT = 2**53
"""Whole numbers up to it are floats, too."""


def astype(domain: Domain, dtype: Any) -> Transform:
    """Columns of another type where no cell changes, as `DataFrame.astype`.

    Truth values become integers or floats, and integers floats. Bounds and bins stay, labels become numbers.

    Parameters
    ----------
    dtype : a type for all columns, or a mapping from column to type: "float64", "int64", "bool", "str",
        "category" and their like.

    Raises
    ------
    ParameterError : an unknown type, or one that does not hold what is declared, such as integers for floats.
    DeclarationError : a column that is not declared, or an identifier; integers without bounds within 2**53.

    >>> domain = Domain((Column("age", "integer", lower=18, upper=65),))
    >>> astype(domain, {"age": "float64"}).domain["age"].kind
    'float'
    """
    single = None if isinstance(dtype, Mapping) else _name(dtype)
    if single is None:
        given = {name: _name(one) for name, one in dtype.items()}
    else:
        given = {column.name: single for column in domain.columns}
    renewed = {}
    for name, wanted in given.items():
        column, target = own(domain[name], "astype"), KINDS[wanted]
        if column.timeline is not None:
            raise ParameterError(
                f"'astype' is for numbers, labels and truth values, and column {name!r} holds dates.",
                f"days since a date are numbers: private.assign(days=private[{name!r}] - "
                f'"{column.end_text(column.lower or 0)}")',
            )
        if target == column.kind:
            continue
        if (column.kind, target) not in WIDER:
            raise ParameterError(
                f"'astype' cannot make column {name!r}, of kind {column.kind!r}, one of kind {target!r}.",
                _instead(column, target),
            )
        renewed[name] = _converted(column, target)
    made = {name: _conversion(domain[name], column) for name, column in renewed.items()}
    text = call("astype", {plain(name): one for name, one in given.items()} if single is None else single)
    return Transform(text, domain.replace(*renewed.values()), tuple(renewed), made)


def _name(dtype: Any) -> str:
    """The name of a dtype, one of `KINDS`; ParameterError for any other."""
    name = dtype
    if isinstance(dtype, type):
        name = dtype.__name__
    elif isinstance(dtype, np.dtype | ExtensionDtype):
        named = isinstance(dtype, pd.CategoricalDtype) and (dtype.categories is not None or dtype.ordered)
        name = None if named else str(dtype)  # categories and their order are those of the declaration
    if not isinstance(name, str) or name not in KINDS:
        raise ParameterError(
            f"'astype' does not know this type (got {got(dtype)}).", 'private.astype({"age": "float64"})'
        )
    return name


def _instead(column: Column, target: str) -> str:
    """What to write in place of a type that does not hold the cells."""
    if column.kind == "category":
        return f"private.recode({column.name!r}, ...) puts numbers in place of labels"
    if target == "boolean":
        return f'private.assign(new="{column.name} > 0") makes truth values'
    return f"private.cut({column.name!r}, [...]) makes labels of ranges"


def _converted(column: Column, target: Any) -> Column:
    """What is declared of a column of whole numbers or truth values as one of numbers."""
    lower, upper = column.lower, column.upper
    if column.kind == "integer" and target == "float":
        ends = (
            (lower, upper) if column.categories is None else (min(column.categories), max(column.categories))
        )
        if any(end is None or abs(end) > EXACT for end in ends):
            raise DeclarationError(
                f"'astype' needs bounds of column {column.name!r} that floats hold.",
                "declare bounds within 2**53",
            )
    number = float if target == "float" else int
    labels = None if column.categories is None else tuple(number(label) for label in column.categories)
    return replace(column, kind=target, categories=labels)


def _conversion(column: Column, renewed: Column) -> Cells:
    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        numbers, null = whole(read[column.name], column)
        return column_of(
            numbers.astype(np.float64 if renewed.kind == "float" else np.int64), null, renewed, index
        )

    return cells
