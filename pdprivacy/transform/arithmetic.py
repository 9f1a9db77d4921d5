"""Arithmetic of columns and constants: read from text, bounded by intervals, computed row by row.

Whole numbers stay whole as long as every operand and result fits 64 bits, which the declared bounds tell;
all else is computed in doubles. Numbers are moved into the declared bounds before they are used.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.errors import QueryError
from pdprivacy.query import Reader
from pdprivacy.transform import intervals
from pdprivacy.transform.cells import INTEGERS, Mask, floats, whole
from pdprivacy.transform.intervals import Range, holds_zero

__all__ = ["MOST_EXPONENT", "SHAPE", "Numbers", "Term", "read_term", "times"]

Read: TypeAlias = Mapping[Any, "pd.Series[Any]"]

SHAPE = (
    "an expression is arithmetic of declared columns and constants (+ - * / // % **, abs(x)), such as "
    "capital_gain - capital_loss, or a condition such as age >= 30"
)

MOST_EXPONENT = 1000


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of all rows: int64 with the nulls beside, or doubles with NaN for them.

    Of no dimension where all rows have one number.
    """

    array: NDArray[Any]
    null: Mask | None = None

    def floating(self) -> Numbers:
        """With NaN for nulls; whole numbers without any stay, to be read as doubles."""
        if self.null is None:
            return self
        return Numbers(np.where(self.null, np.nan, np.asarray(self.array, dtype=np.float64)))


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression.

    ``within``: where its values lie. ``whole``: int64. ``finite``: none of them is infinite, even if an
    end of ``within`` is. ``nullable``: whether some may be null.
    """

    within: Range
    whole: bool
    finite: bool
    nullable: bool
    values: Callable[[Read], Numbers]

    def floating(self) -> Term:
        """The same in doubles."""
        if not self.whole:
            return self
        within = (float(self.within[0]), float(self.within[1]))
        return replace(self, within=within, whole=False, values=lambda read: self.values(read).floating())


def _fits(within: Range) -> bool:
    return INTEGERS[0] <= within[0] and within[1] <= INTEGERS[1]


def times(base: Any, exponent: int) -> Any:
    """``base`` to a whole power by multiplication: in doubles, in the same order for every number.

    >>> times(1.5, 3)
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


class _Arithmetic:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def term(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=value):
                return self._constant(value, node)
            case ast.Name():
                return _column_term(self.reader.column(node))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.term(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _simple(self.term(operand), intervals.negate, np.negative)
            case ast.Call(func=ast.Name(id="abs"), args=[operand], keywords=[]):
                return _simple(self.term(operand), intervals.absolute, np.absolute)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(self.term(left), right)
            case ast.BinOp(left=left, op=operation, right=right):
                made = _OPERATIONS.get(type(operation))
                if made is not None:
                    return made(self.term(left), self.term(right))
        raise self._refusal(node)

    def _constant(self, value: Any, node: ast.expr) -> Term:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refusal(node)
        try:
            double = float(value)
        except OverflowError:
            double = math.inf
        if math.isinf(double):
            raise QueryError(f"a constant of the {self.reader.what} is not a finite number.")
        if isinstance(value, int) and _fits((value, value)):
            one: NDArray[Any] = np.array(value, dtype=np.int64)
            return Term((value, value), True, True, False, lambda _: Numbers(one))
        other = np.array(double)
        return Term((double, double), False, True, False, lambda _: Numbers(other))

    def _power(self, base: Term, node: ast.expr) -> Term:
        exponent = node.value if isinstance(node, ast.Constant) else None
        fits = isinstance(exponent, int) and not isinstance(exponent, bool) and exponent <= MOST_EXPONENT
        if not isinstance(exponent, int) or not fits:
            raise QueryError(
                f"the exponent {self.reader.show(node)!r} is not a whole constant from 0 to {MOST_EXPONENT}.",
                "a negative power is 1 / x ** n",
            )
        if base.whole:
            within = intervals.power(base.within, exponent, pow)
            if _fits(within):
                return replace(base, within=within, values=_power_of_whole(base, exponent))
        base = base.floating()
        within = intervals.power(base.within, exponent, lambda x, n: times(x, n) if n else 1.0)

        def raised(read: Read) -> Numbers:
            array = np.asarray(base.values(read).array, dtype=np.float64)
            with np.errstate(all="ignore"):
                made = times(array, exponent) if exponent else np.where(np.isnan(array), np.nan, 1.0)
            return Numbers(np.asarray(made))

        return replace(base, within=within, finite=_bounded(within), values=raised)

    def _refusal(self, node: ast.expr) -> QueryError:
        shown = self.reader.show(node)
        if self.reader.aggregate(node) is not None:
            return QueryError(
                f"{self.reader.aggregate(node)!r} calls a method, which may look at other rows: one record "
                "may change the new cells of all others.",
                'put a constant in its place, such as a number that was released before, f"age - {mean}"',
            )
        match node:
            case ast.Call(func=ast.Attribute()):
                return QueryError(f"{shown!r} calls a method, which may look at other rows.", SHAPE)
            case ast.Call():
                return QueryError(f"{shown!r} calls a function, of which only abs(x) is known.", SHAPE)
            case ast.Attribute():
                return QueryError(f"{shown!r} reads an attribute, and arithmetic reads columns only.", SHAPE)
            case ast.Subscript():
                return QueryError(f"{shown!r} reads by position or label, which may be another row.", SHAPE)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp():
                return QueryError(
                    f"{shown!r} is a condition inside arithmetic.",
                    'make it a column first: assign(old="age >= 65", share="old * income")',
                )
        return QueryError(f"{shown!r} is not arithmetic of declared columns and constants.", SHAPE)


def read_term(reader: Reader, node: ast.expr) -> Term:
    """The arithmetic of a syntax tree.

    Raises
    ------
    QueryError : anything but arithmetic of declared numeric columns and constants.
    """
    return _Arithmetic(reader).term(node)


def _bounded(within: Range) -> bool:
    return all(map(math.isfinite, within))


# ---------------------------------------------------------------- columns


def _column_term(column: Column) -> Term:
    name = column.name
    if column.kind == "category":
        raise QueryError(
            f"column {name!r} of kind 'category' is no number.",
            "a condition on it is one: assign(south=\"region == 'south'\")",
        )
    if column.kind != "float" and column.lower is not None and column.upper is not None:
        within: Range = (int(column.lower), int(column.upper))
        if _fits(within):
            return Term(within, True, True, column.nullable, lambda read: Numbers(*whole(read[name], column)))
    low = -math.inf if column.lower is None else float(column.lower)
    high = math.inf if column.upper is None else float(column.upper)
    # cells without a bound are finite all the same
    return Term((low, high), False, True, column.nullable, lambda read: Numbers(floats(read[name], column)))


# ---------------------------------------------------------------- operations


def _simple(one: Term, ends: Callable[[Range], Range], run: Callable[..., Any]) -> Term:
    """An operation that rounds nothing."""
    if one.whole and not _fits(ends(one.within)):
        one = one.floating()

    def values(read: Read) -> Numbers:
        found = one.values(read)
        made = run(found.array) if one.whole else run(found.array, dtype=np.float64)
        return Numbers(made, found.null)

    return replace(one, within=ends(one.within), values=values)


def _power_of_whole(base: Term, exponent: int) -> Callable[[Read], Numbers]:
    def values(read: Read) -> Numbers:
        found = base.values(read)
        return Numbers(np.power(found.array, exponent), found.null)

    return values


def _joined(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _of_whole(one: Term, other: Term, within: Range, run: Callable[[Any, Any], Any]) -> Term:
    def values(read: Read) -> Numbers:
        left, right = one.values(read), other.values(read)
        return Numbers(run(left.array, right.array), _joined(left.null, right.null))

    return Term(within, True, True, one.nullable or other.nullable, values)


def _of_doubles(one: Term, other: Term, within: Range, undefined: bool, run: Callable[..., Any]) -> Term:
    """``undefined``: whether numbers may give none, such as 0 / 0."""

    def values(read: Read) -> Numbers:
        with np.errstate(all="ignore"):
            made = run(one.values(read).array, other.values(read).array, dtype=np.float64)
        return Numbers(np.asarray(made))

    nullable = one.nullable or other.nullable or undefined
    return Term(within, False, _bounded(within), nullable, values)


def _infinite(one: Term, sign: int) -> bool:
    """Whether values of the term may be infinite of this sign."""
    return not one.finite and one.within[sign > 0] == sign * math.inf


def _add(one: Term, other: Term) -> Term:
    if one.whole and other.whole and _fits(within := intervals.add(one.within, other.within)):
        return _of_whole(one, other, within, np.add)
    one, other = one.floating(), other.floating()
    undefined = any(_infinite(one, sign) and _infinite(other, -sign) for sign in (1, -1))
    return _of_doubles(one, other, intervals.add(one.within, other.within), undefined, np.add)


def _subtract(one: Term, other: Term) -> Term:
    if one.whole and other.whole and _fits(within := intervals.subtract(one.within, other.within)):
        return _of_whole(one, other, within, np.subtract)
    one, other = one.floating(), other.floating()
    undefined = any(_infinite(one, sign) and _infinite(other, sign) for sign in (1, -1))
    return _of_doubles(one, other, intervals.subtract(one.within, other.within), undefined, np.subtract)


def _multiply(one: Term, other: Term) -> Term:
    if one.whole and other.whole and _fits(within := intervals.multiply(one.within, other.within)):
        return _of_whole(one, other, within, np.multiply)
    one, other = one.floating(), other.floating()
    undefined = (not one.finite and holds_zero(other.within)) or (not other.finite and holds_zero(one.within))
    return _of_doubles(one, other, intervals.multiply(one.within, other.within), undefined, np.multiply)


def _divide(one: Term, other: Term) -> Term:
    one, other = one.floating(), other.floating()
    undefined = (holds_zero(one.within) and holds_zero(other.within)) or not (one.finite or other.finite)
    return _of_doubles(one, other, intervals.divide(one.within, other.within), undefined, np.divide)


def _floor_divide(one: Term, other: Term) -> Term:
    if one.whole and other.whole and not holds_zero(other.within):
        within = intervals.floor_divide_whole(one.within, other.within)
        if _fits(within):
            return _of_whole(one, other, within, np.floor_divide)
    one, other = one.floating(), other.floating()
    undefined = (holds_zero(one.within) and holds_zero(other.within)) or not one.finite
    within = intervals.floor_divide(one.within, other.within)
    return _of_doubles(one, other, within, undefined, np.floor_divide)


def _modulo(one: Term, other: Term) -> Term:
    if one.whole and other.whole and not holds_zero(other.within):
        return _of_whole(one, other, intervals.modulo_whole(one.within, other.within), np.mod)
    one, other = one.floating(), other.floating()
    undefined = holds_zero(other.within) or not one.finite
    return _of_doubles(one, other, intervals.modulo(one.within, other.within), undefined, np.mod)


_OPERATIONS: dict[type[ast.operator], Callable[[Term, Term], Term]] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _modulo,
}
