"""Nodes: declared columns, and what is computed of them record by record, each with its declaration.

Every expression and every row step that makes cells holds nodes. Clipping, filling and converting are the
same, and checked alike, for a column, for arithmetic and in a step of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import finite, is_null, is_number, label, plain
from pdprivacy.core.rows.cells import BLOCK, Read, column_of, dense, floats, nulls, whole
from pdprivacy.core.rows.regions import Region, declared_in
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.declaration.timeline import FIELDS
from pdprivacy.errors import DeclarationError, ParameterError, QueryError, kind

Cells: TypeAlias = Callable[[Read, "pd.Index[Any]"], "pd.Series[Any]"]

NUMERIC = ("float", "integer")
"""The kinds of column that are moved by a bound."""

_ARROW_TEXTS = ("string[pyarrow]", "large_string[pyarrow]")


@dataclass(frozen=True, slots=True)
class Node:
    """Cells of each record, and what is declared of them.

    Attributes
    ----------
    column : the declaration of the cells.
    cells : from the columns that are read, and the index of the frame, to the cells.
    finite : whether no number is infinite; without bounds, a result of arithmetic may be.
    declared : whether this is a declared column as it stands, which a condition narrows.
    """

    column: Column
    cells: Cells
    finite: bool = True
    declared: bool = False

    @classmethod
    def of(cls, column: Column) -> Node:
        """Return the node of a declared column."""
        return cls(column, lambda read, _: read[column.name], declared=True)


def mapped(node: Node, renewed: Column, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Node:
    """Return the results of a function of each number, with their declaration; nulls stay."""

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        values = node.cells(read, index)
        if node.column.kind == "float":
            return column_of(function(floats(values, node.column)), None, renewed, index)
        array, null = whole(values, node.column)
        return column_of(function(array), null, renewed, index)

    return Node(renewed, cells, node.finite)


def cast(node: Node, target: Literal["integer", "float"]) -> Node:
    """Return truth values as numbers, or whole numbers as floats; bounds and bins stay if floats hold them.

    >>> cast(Node.of(Column("id", "integer", lower=0, upper=2**53 + 1)), "float").column.bounds("mean")
    (0.0, 9007199254740992.0)
    """
    convert, dtype = (float, np.float64) if target == "float" else (int, np.int64)
    column = node.column
    labels = None if column.categories is None else tuple(dict.fromkeys(map(convert, column.categories)))

    def kept(end: Any) -> Any:
        return end if end is None or end == convert(end) else convert(end)

    bins = None if column.bins is None else tuple(dict.fromkeys(map(kept, column.bins)))
    ends = {"lower": kept(column.lower), "upper": kept(column.upper)}
    renewed = replace(column, kind=target, categories=labels, bins=bins, **ends)
    return mapped(node, renewed, lambda array: array.astype(dtype))


def holding(node: Node, value: Any) -> Node:
    """Return the node as one of numbers of a kind that has the value, too: floats, where it is a fraction."""
    if isinstance(value, bool | str) or node.column.timeline is not None:
        return node
    if node.column.kind == "boolean":
        node = cast(node, "integer")
    fits = finite(value) and value == math.floor(value) and value in INT64
    return node if node.column.kind != "integer" or fits else cast(node, "float")


def date_field(node: Node, field: str) -> Node:
    """Return a field of dates, such as the month, in the declared time zone.

    Raises
    ------
    QueryError : the node holds no dates, or its dates have no such field.
    """
    column, known = node.column, ["year", *FIELDS]
    timeline = column.timeline
    if timeline is None:
        raise QueryError(f"'.dt' is for a column of dates, and {column.name!r} is of kind {column.kind!r}.")
    if timeline.unit == "D":
        known.remove("hour")
    if field not in known:
        raise QueryError(
            f"column {column.name!r} has no field '.dt.{field}' (it has {', '.join(known)}).",
            f"private.assign(month=private[{column.name!r}].dt.month)" if node.declared else None,
        )
    take = timeline.field(field)
    ends = np.array([column.lower, column.upper], dtype=np.int64)
    lower, upper = take(ends).tolist() if field == "year" else FIELDS[field]
    return mapped(node, replace(column, lower=lower, upper=upper, timeline=None), take)


# ---------------------------------------------------------------- clip


def clipped(node: Node, lower: Any = None, upper: Any = None, where: str = "") -> Node:
    """Return numbers or dates moved between two public bounds; nulls stay.

    ``where``: in errors, after the name of a bound.

    Raises
    ------
    ParameterError : bounds that `number` refuses, or ``lower`` above ``upper``.
    DeclarationError : the node is not numeric.

    >>> rooms = Node.of(Column("rooms", "integer", categories=(1, 2, 3, 4, 5)))
    >>> clipped(rooms, upper=3).column.categories
    (1, 2, 3)
    """
    column = node.column
    if column.kind not in NUMERIC:
        raise DeclarationError(
            f"'clip' needs numeric columns, and column {column.name!r} is of kind {column.kind!r}.",
            "leave the column out",
        )
    low, high = (
        None if end is None else number(end, column, f"{name!r}{where}")
        for name, end in (("lower", lower), ("upper", upper))
    )
    limits = Interval.between(low, high)
    if limits.empty:
        raise ParameterError(f"'lower'{where} of column {column.name!r} must not be above 'upper'.")
    if low is None and high is None:
        return node
    renewed = declared_in(column, Region.of(column).clipped(limits))
    if column.timeline is not None:  # of dates, either may be beyond 64 bits
        low, high = int(renewed.lower or 0), int(renewed.upper or 0)
    made = mapped(node, renewed, lambda array: np.clip(array, low, high))
    return replace(made, finite=node.finite or None not in limits.bounds)


# ---------------------------------------------------------------- fillna


def filled(node: Node, value: Any) -> Node:
    """Return the cells with a public constant in place of nulls; the node itself where none is declared.

    Raises
    ------
    ParameterError : a constant that the column cannot hold.
    """
    column = node.column
    constant = _constant(column, value)
    if not column.nullable:
        return node
    region = Region.of(column).filled(constant)
    if column.kind == "boolean":
        region = replace(region, labels=dict.fromkeys(sorted(region.labels or ())))
    known = column.kind != "category" or constant in (column.categories or ())
    renewed = replace(declared_in(column, region), ordered=column.ordered and known)

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        values = node.cells(read, index)
        if column.kind == "category":
            return _filled_labels(values, constant)
        if column.kind == "float":
            made = np.empty(len(values))
            for start in range(0, len(values), BLOCK):
                rows = slice(start, start + BLOCK)
                made[rows] = floats(values.iloc[rows], column)
                np.copyto(made[rows], constant, where=np.isnan(made[rows]))
            return column_of(made, None, renewed, index)
        array, null = whole(values, column)
        if null is not None:
            array = np.where(null, constant, array)
        return column_of(array.astype(bool) if column.kind == "boolean" else array, None, renewed, index)

    return Node(renewed, cells, node.finite)


def _constant(column: Column, value: Any) -> Any:
    subject = "the constant of 'fillna'"
    if is_null(value):
        raise ParameterError(f"{subject} for column {column.name!r} must not be null.")
    if column.kind in NUMERIC:
        return number(value, column, subject)
    constant = label(value, subject)
    if column.kind == "boolean":
        if not isinstance(constant, bool):
            raise ParameterError(
                f"{subject} for the boolean column {column.name!r} must be True or False (got {kind(value)})."
            )
        return constant
    known = {type(category) for category in column.categories} if column.categories is not None else {str}
    if type(constant) not in known:
        allowed = ", ".join(sorted(category.__name__ for category in known))
        raise ParameterError(
            f"{subject} for column {column.name!r} must be a label like the declared ones, "
            f"of type {allowed} (got {kind(value)}).",
            f"private.fillna({{{column.name!r}: {column.categories[0]!r}}})" if column.categories else None,
        )
    return constant


def _filled_labels(values: pd.Series[Any], constant: Any) -> pd.Series[Any]:
    values = dense(values)
    null = nulls(values)
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = list(dtype.categories)
        code = known.index(constant) if constant in known else len(known)
        labels = known if code < len(known) else [*known, constant]
        codes = np.where(null, code, values.cat.codes.to_numpy().astype(np.int64))
        categories: pd.Index[Any] = pd.Index(labels, tupleize_cols=False)
        return pd.Series(pd.Categorical.from_codes(codes, categories), index=values.index)
    cells = values.to_numpy(dtype=object, copy=True)
    single = np.empty(1, dtype=object)
    single[0] = constant  # by place: numpy would spread a tuple over the nulls
    cells[null] = single
    texts = type(constant) is str and (isinstance(dtype, pd.StringDtype) or str(dtype) in _ARROW_TEXTS)
    return pd.Series(cells, index=values.index, dtype=dtype if texts else object)


# ---------------------------------------------------------------- constants


def number(value: Any, column: Column, option: str) -> int | float:
    """Return a finite constant that cells of the column can equal.

    Raises
    ------
    ParameterError : no finite number, one made of confidential counts, or for a column of integers no
        whole number, or one beyond 64 bits; for a column of dates no date.
    """
    if getattr(value, "confidential", False) is True:
        raise ParameterError(f"{option} is public, and this number was made of confidential counts.")
    if column.timeline is not None:
        return math.floor(column.timeline.position(value, f"{option} of column {column.name!r}"))
    constant: Any = plain(value)
    if not is_number(constant) or not finite(constant):
        raise ParameterError(
            f"{option} of column {column.name!r} must be a finite number (got {kind(value)})."
        )
    if column.kind != "integer":
        return float(constant)
    if constant != math.floor(constant):
        raise ParameterError(
            f"{option} of the integer column {column.name!r} must be a whole number (got {kind(value)})."
        )
    whole = int(constant)
    if whole not in INT64:
        raise ParameterError(
            f"{option} of the integer column {column.name!r} must be a number of 64 bits (got {kind(value)})."
        )
    return whole
