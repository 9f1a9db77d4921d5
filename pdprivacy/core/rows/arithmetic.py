"""Arithmetic once it is read: trees of terms, where their results lie, and the values of all rows.

Whole numbers stay whole as long as every operand and result fits 64 bits, which the declared bounds tell;
all else is computed in doubles. Numbers are moved into the declared bounds before they are used.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import finite
from pdprivacy.core.rows.cells import BLOCK, Read, column_of, floats, whole
from pdprivacy.core.rows.nodes import Node
from pdprivacy.declaration import intervals
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import QueryError
from pdprivacy.types import Mask


@dataclass(frozen=True, slots=True)
class Term:
    """A node of numbers, a constant, or an operation on other terms.

    ``within``: where its values lie. ``whole``: int64, else doubles. ``finite``: none of them is infinite,
    even if an end of ``within`` is. ``nullable``: whether some may be null. ``leaf``: the node or the
    constant; of an operation None, and then ``run`` is computed from the values of ``parts``.
    """

    within: Interval
    whole: bool
    finite: bool
    nullable: bool
    leaf: Node | int | float | None = None
    run: Callable[..., Any] | None = None
    parts: tuple[Term, ...] = ()


def _is_finite(within: Interval) -> bool:
    return all(map(math.isfinite, within))


def _double_range(term: Term) -> Interval:
    return term.within.map(float)


def constant(value: int | float) -> Term | None:
    """The term of a number; None for one that is not finite.

    >>> constant(3).whole, constant(2**64).whole
    (True, False)
    """
    if not finite(value):
        return None
    if isinstance(value, int) and value in INT64:
        return Term(Interval(value, value), True, True, False, value)
    return Term(Interval(float(value), float(value)), False, True, False, float(value))


def term_of(node: Node) -> Term:
    """The term of a node; truth values are 0 and 1.

    Raises
    ------
    QueryError : a node of labels or dates.
    """
    column = node.column
    if column.kind == "category":
        raise QueryError(
            f"column {column.name!r} of kind 'category' is not numeric.",
            f"private.assign(new=private[{column.name!r}] == {column.categories[0]!r})"
            if node.declared and column.categories
            else None,
        )
    if column.timeline is not None:
        raise QueryError(
            f"column {column.name!r} holds dates, of which only differences are numbers.",
            f"private.assign(month=private[{column.name!r}].dt.month)" if node.declared else None,
        )
    if column.kind != "float" and column.interval.within(INT64):
        return Term(column.interval, True, True, column.nullable, node)
    return Term(column.interval.map(float), False, node.finite, column.nullable, node)


def result(term: Term, name: str, reads: tuple[Hashable, ...]) -> Node:
    """Return the values of a term as a node; ``reads``: the columns that they are computed from."""
    column = Column(name, "integer" if term.whole else "float", term.nullable, *term.within.bounds)

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        made = np.empty(len(index), dtype=np.int64 if term.whole else np.float64)
        null = np.zeros(len(index), dtype=bool) if term.whole and term.nullable else None
        for start in range(0, len(index), BLOCK):
            rows = slice(start, start + BLOCK)
            block = numbers(term, {name: read[name].iloc[rows] for name in reads}, index[rows])
            made[rows] = block.array
            if null is not None and block.null is not None:
                null[rows] = block.null
        return column_of(made, null, column, index)

    return Node(column, cells, term.finite)


def days_between(first: Node | float, second: Node | float) -> Term:
    """The difference of two dates in days; whole where the dates of both columns are whole days.

    For a column of dates and a constant, this is the number of the constant on the timeline of the column.
    """
    sides = (first, second)
    timelines = [node.column.timeline for node in sides if isinstance(node, Node) and node.column.timeline]
    finest = min(timelines, key=lambda timeline: timeline.seconds)
    parts: list[Term] = []
    shift: list[Fraction] = []
    for side in sides:
        timeline = (side.column.timeline if isinstance(side, Node) else None) or timelines[0]
        factor = timeline.units(finest.unit)
        origin = timeline.origin * factor
        if isinstance(side, Node):
            numbers = term_of(replace(side, column=replace(side.column, timeline=None)))
            parts.append(operation_term(OPERATIONS[ast.Mult], numbers, _constant_term(int(factor))))
            shift.append(origin)
        else:
            parts.append(_constant_term(0))
            shift.append(origin + Fraction(side) * factor)
    apart = shift[0] - shift[1]
    whole = operation_term(OPERATIONS[ast.Sub], parts[0], parts[1])
    units = operation_term(
        OPERATIONS[ast.Add], whole, _constant_term(int(apart) if apart.denominator == 1 else float(apart))
    )
    if finest.unit == "D":
        return units
    return operation_term(OPERATIONS[ast.Div], units, _constant_term(int(1 / finest.units("D"))))


def _constant_term(value: int | float) -> Term:
    term = constant(value)
    assert term is not None
    return term


def negated(term: Term) -> Term:
    """``-x``, which rounds nothing."""
    return _exact_term(term, intervals.negate, np.negative)


def absolute(term: Term) -> Term:
    """``|x|``, which rounds nothing."""
    return _exact_term(term, intervals.absolute, np.absolute)


def _exact_term(term: Term, ends: Callable[[Interval], Interval], run: Callable[..., Any]) -> Term:
    within = ends(term.within)
    whole = term.whole and within.within(INT64)
    if not whole:
        within = ends(_double_range(term))
    return Term(within, whole, term.finite, term.nullable, run=run, parts=(term,))


# ---------------------------------------------------------------- powers


def whole_power(base: Any, exponent: int) -> Any:
    """``base`` to a whole power by multiplication: in doubles, in the same order for every number.

    >>> whole_power(1.5, 3)
    3.375
    """
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result


def raised(base: Term, exponent: int) -> Term:
    """``base ** exponent`` for a whole exponent that is not negative."""
    if base.whole:
        within = intervals.power(base.within, exponent, pow)
        if within.within(INT64):
            return replace(
                base, within=within, leaf=None, run=lambda array: np.power(array, exponent), parts=(base,)
            )
    within = intervals.power(_double_range(base), exponent, lambda x, n: whole_power(x, n) if n else 1.0)

    def run(array: Any, dtype: Any) -> Any:
        doubles = np.asarray(array, dtype=dtype)
        return whole_power(doubles, exponent) if exponent else np.where(np.isnan(doubles), np.nan, 1.0)

    return Term(within, False, _is_finite(within), base.nullable, run=run, parts=(base,))


# ---------------------------------------------------------------- operations on two terms


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation on two terms.

    ``ends``: of the results in doubles; ``whole_ends``: of whole numbers, None where these are always made
    doubles. ``undefined``: whether numbers may have no result, such as 0 / 0.
    """

    run: np.ufunc
    ends: Callable[[Interval, Interval], Interval]
    whole_ends: Callable[[Interval, Interval], Interval] | None
    undefined: Callable[[Term, Term], bool]


def operation_term(operation: _Operation, first: Term, second: Term) -> Term:
    """The term of an operation on two terms."""
    nullable = first.nullable or second.nullable
    divides = operation.run in (np.floor_divide, np.mod)
    if operation.whole_ends and first.whole and second.whole and not (divides and 0 in second.within):
        within = operation.whole_ends(first.within, second.within)
        if within.within(INT64):
            return Term(within, True, True, nullable, run=operation.run, parts=(first, second))
    within = operation.ends(_double_range(first), _double_range(second))
    nullable = nullable or operation.undefined(first, second)
    return Term(within, False, _is_finite(within), nullable, run=operation.run, parts=(first, second))


def _may_be_infinite(term: Term, sign: int) -> bool:
    """Return whether values of the term may be infinite with this sign."""
    return not term.finite and sign * math.inf in term.within


def _may_cancel(first: Term, second: Term, relative_sign: int) -> bool:
    """Return whether both may be infinite, with the same sign (1) or with opposite signs (-1)."""
    return any(
        _may_be_infinite(first, sign) and _may_be_infinite(second, relative_sign * sign) for sign in (1, -1)
    )


def _may_be_zeros(first: Term, second: Term) -> bool:
    return 0 in first.within and 0 in second.within


OPERATIONS: dict[type[ast.operator], _Operation] = {
    ast.Add: _Operation(np.add, intervals.add, intervals.add, lambda x, y: _may_cancel(x, y, -1)),
    ast.Sub: _Operation(
        np.subtract, intervals.subtract, intervals.subtract, lambda x, y: _may_cancel(x, y, 1)
    ),
    ast.Mult: _Operation(
        np.multiply,
        intervals.multiply,
        intervals.multiply,
        lambda x, y: (not x.finite and 0 in y.within) or (not y.finite and 0 in x.within),
    ),
    ast.Div: _Operation(
        np.divide, intervals.divide, None, lambda x, y: _may_be_zeros(x, y) or not (x.finite or y.finite)
    ),
    ast.FloorDiv: _Operation(
        np.floor_divide,
        intervals.floor_divide,
        intervals.floor_divide_whole,
        lambda x, y: _may_be_zeros(x, y) or not x.finite,
    ),
    ast.Mod: _Operation(
        np.mod, intervals.modulo, intervals.modulo_whole, lambda x, y: 0 in y.within or not x.finite
    ),
}
"""The binary operators of the grammar, except powers."""


# ---------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of all rows: int64 with a mask of nulls, or float64 with NaN.

    A constant is an array without dimensions.
    """

    array: NDArray[Any]
    null: Mask | None = None

    def doubles(self) -> NDArray[Any]:
        """The values with NaN for nulls; whole numbers without nulls keep their dtype."""
        if self.null is None:
            return self.array
        return np.where(self.null, np.nan, np.asarray(self.array, dtype=np.float64))


def numbers(term: Term, read: Read, index: pd.Index[Any]) -> Numbers:
    """The values of a term; ``read`` has every column that it names."""
    if isinstance(term.leaf, Node):
        values, column = term.leaf.cells(read, index), term.leaf.column
        return Numbers(*whole(values, column)) if term.whole else Numbers(floats(values, column))
    if term.run is None:
        return Numbers(np.array(term.leaf, dtype=np.int64 if term.whole else np.float64))
    operands = [numbers(part, read, index) for part in term.parts]
    if not term.whole:
        with np.errstate(all="ignore"):
            return Numbers(
                np.asarray(term.run(*(operand.doubles() for operand in operands), dtype=np.float64))
            )
    if not all(part.whole for part in term.parts):  # whole results of doubles
        doubles = [operand.doubles() for operand in operands]
        null: Any = functools.reduce(np.logical_or, map(np.isnan, doubles))
        with np.errstate(all="ignore"):
            made = np.asarray(term.run(*(np.where(null, 0.0, array) for array in doubles)))
            # a null holds a number within the bounds, or a division by it would warn, and so tell of the null
            filled = np.where(null, int(term.within.whole().clip(0)), made).astype(np.int64)
        return Numbers(filled, null if np.any(null) else None)
    masks = [operand.null for operand in operands if operand.null is not None]
    null = functools.reduce(np.logical_or, masks) if masks else None
    with np.errstate(all="ignore"):
        return Numbers(term.run(*(operand.array for operand in operands)), null)
