"""New columns from arithmetic and conditions of declared ones."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.domain import Column, Domain
from pdprivacy.errors import ParameterError, QueryError, got, kind
from pdprivacy.query import Columns, Reader, evaluate, possible
from pdprivacy.transform.arithmetic import SHAPE, Read, read_term
from pdprivacy.transform.cells import BLOCK, column_of
from pdprivacy.transform.clipping import clipped_column
from pdprivacy.transform.constants import number, plain
from pdprivacy.transform.core import Transform, own

__all__ = ["assign"]

_NULL_TESTS = ("isna", "isnull", "notna", "notnull")


@dataclass(frozen=True, slots=True)
class _New:
    """A new column: what is declared of it, and its cells of all rows."""

    column: Column
    cells: Callable[[Read, pd.Index[Any]], pd.Series[Any]]


class _Known:
    """The declared columns and those that were made of them so far."""

    def __init__(self, domain: Domain) -> None:
        self.columns: dict[Hashable, Column] = {column.name: column for column in domain.columns}

    @property
    def names(self) -> tuple[Hashable, ...]:
        return tuple(self.columns)

    def __getitem__(self, name: Hashable, /) -> Column:
        found = self.columns.get(name)
        return self.domain()[name] if found is None else found

    def domain(self) -> Domain:
        return Domain(tuple(self.columns.values()))


def assign(
    domain: Domain,
    expressions: Mapping[str, str],
    bounds: Mapping[str, Sequence[float | None]] | None = None,
) -> Transform:
    """New columns, each of one expression of declared columns and constants; like `DataFrame.assign`.

    An expression is arithmetic (``+ - * / // % **`` with a whole constant exponent, ``abs``, parentheses), a
    condition as in `query`, or a column. It may use the columns before it in the same call; a name that is
    declared is replaced. Nulls stay null; a condition is False of a null, as in `query`.

    The bounds are those that the results have for cells within the declared bounds. Whole numbers stay whole
    where the bounds say that all of them fit 64 bits, save by ``/``; else the column is one of floats. A
    result that is no number (0 / 0) is null.

    Parameters
    ----------
    expressions : new column name to expression.
    bounds : new column name to ``(lower, upper)``: narrower public bounds, into which the results are
        moved; needed where the results have none, as with a denominator that may be zero. None leaves an end
        as it is.

    Raises
    ------
    ParameterError : an expression that is no text (a function or a Series may look at other rows), bounds
        that are none, or declared columns all of which have a tuple as their label.
    QueryError : anything else in an expression, or a result without bounds.
    DeclarationError : a name whose role is 'identifier'.

    Source: R. E. Moore, Interval Analysis (1966).

    >>> domain = Domain(tuple(Column(name, "integer", lower=0, upper=9) for name in ("gain", "loss")))
    >>> step = assign(domain, {"net": "gain - loss"})
    >>> step.domain["net"].bounds("mean")
    (-9.0, 9.0)
    >>> step.apply(pd.DataFrame({"gain": [3, 0], "loss": [0, 2]}))["net"].tolist()
    [3, -2]
    """
    _check_expressions(expressions)
    asked = _checked_bounds(expressions, bounds)
    _check_levels(domain, expressions)
    made: dict[str, _New] = {}
    known = _Known(domain)
    for name, expression in expressions.items():
        if name in known.columns:
            own(known.columns[name], "assign")
        try:
            new = _new(known, name, expression, asked.get(name))
        except RecursionError:
            raise QueryError(f"the expression of {name!r} is nested too deeply.") from None
        made[name] = new
        known.columns[name] = new.column
    renewed = known.domain()

    def columns_of(frame: pd.DataFrame) -> dict[Hashable, pd.Series[Any]]:
        read: dict[Hashable, pd.Series[Any]] = {name: frame[name] for name in domain}
        found: dict[Hashable, pd.Series[Any]] = {}
        for name, new in made.items():
            read[name] = found[name] = new.cells(read, frame.index)
        return found

    return Transform(_text(expressions, bounds), renewed, columns_of, None)


def _text(expressions: Mapping[str, str], bounds: Mapping[str, Sequence[float | None]] | None) -> str:
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in expressions):
        parts = [f"{name}={text!r}" for name, text in expressions.items()]
    else:
        parts = [f"**{dict(expressions)!r}"]
    if bounds:
        shown = {name: tuple(map(plain, ends)) for name, ends in bounds.items()}
        parts.append(f"bounds={shown!r}")
    return f"assign({', '.join(parts)})"


def _check_expressions(expressions: Any) -> None:
    example = 'private.dp.assign(net="gain - loss")'
    if not isinstance(expressions, Mapping) or not expressions:
        raise ParameterError(
            f"'expressions' must map new columns to expressions (got {got(expressions)}).", example
        )
    for name, expression in expressions.items():
        if not isinstance(name, str) or not name:
            raise ParameterError(f"the name of a new column must be a string (got {kind(name)}).", example)
        if type(expression) is str:  # a text of NumPy may be a cell
            continue
        if callable(expression) or hasattr(expression, "__iter__"):
            raise ParameterError(
                f"the new column {name!r} must be an expression as text (got {kind(expression)}): a "
                "function or a column of cells may have looked at other rows.",
                example,
            )
        raise ParameterError(
            f"the new column {name!r} must be an expression as text (got {kind(expression)}).",
            f'a constant is one too: private.dp.assign({name}="1")',
        )


def _check_levels(domain: Domain, expressions: Mapping[str, str]) -> None:
    """Refuse new columns beside columns of several levels, among which pandas finds no name of one."""
    if len(domain) and all(isinstance(name, tuple) for name in domain):
        raise ParameterError(
            f"the label of the new column {next(iter(expressions))!r} is a string, and those of all declared "
            "columns are tuples.",
            'join them before df.dp.protect(...): df.columns = ["_".join(name) for name in df.columns]',
        )


def _checked_bounds(expressions: Mapping[str, str], bounds: Any) -> dict[str, tuple[Any, Any]]:
    example = 'private.dp.assign(rate="gain / hours", bounds={"rate": (0, 100)})'
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise ParameterError(f"'bounds' must map new columns to (lower, upper) (got {got(bounds)}).", example)
    for name, ends in bounds.items():
        if name not in expressions:
            raise ParameterError(f"'bounds' names {got(name)}, which is no new column.", example)
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise ParameterError(f"'bounds' of {name!r} must be (lower, upper) (got {got(ends)}).", example)
    return {name: (ends[0], ends[1]) for name, ends in bounds.items()}


def _new(domain: Columns, name: str, expression: str, ends: tuple[Any, Any] | None) -> _New:
    reader = Reader(expression, domain, f"expression of {name!r}", SHAPE)
    node = reader.syntax()
    new: _New | None = None
    if isinstance(node, ast.Name):
        new = _copy(name, reader.column(node))
    elif _is_condition(node):
        new = _condition(domain, name, reader, node)
    if new is None:
        return _computed(name, reader, node, ends)
    if ends is None:
        return new
    if new.column.kind not in ("float", "integer"):
        raise ParameterError(f"'bounds' of {name!r} are for numbers (it is of kind {new.column.kind!r}).")
    return _computed(name, reader, node, ends)


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.Invert()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attribute)):
            return attribute in _NULL_TESTS
    return False


def _copy(name: str, column: Column) -> _New:
    def cells(read: Read, _: pd.Index[Any]) -> pd.Series[Any]:
        return read[column.name]

    return _New(replace(column, name=name, role=None), cells)


def _condition(domain: Columns, name: str, reader: Reader, node: ast.expr) -> _New:
    tree = reader.condition(node)
    column = Column(name, "boolean", categories=possible(tree, domain))

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        known = {one: read[one] for one in reader.columns}
        return column_of(evaluate(tree, known), None, column, index)

    return _New(column, cells)


def _computed(name: str, reader: Reader, node: ast.expr, ends: tuple[Any, Any] | None) -> _New:
    term = read_term(reader, node)
    low, high = (end if math.isfinite(end) else None for end in term.within)
    column = Column(name, "integer" if term.whole else "float", term.nullable, lower=low, upper=high)
    lower, upper = None, None
    if ends is not None:
        lower, upper = (
            None if end is None else number(end, column, f"{what!r} in 'bounds'")
            for end, what in zip(ends, ("lower", "upper"), strict=True)
        )
        if lower is not None and upper is not None and lower > upper:
            raise ParameterError(f"'lower' in 'bounds' of {name!r} must not be above 'upper'.")
        column = clipped_column(column, lower, upper)
    if column.lower is None or column.upper is None:
        raise QueryError(
            f"the expression of {name!r} has results without bounds: a column of it has none, a denominator "
            "may be zero, or a number is too large.",
            f"state public bounds, into which the results are moved: bounds={{{name!r}: (LOWER, UPPER)}}",
        )

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        made = np.empty(len(index), dtype=np.int64 if term.whole else np.float64)
        null = np.zeros(len(index), dtype=bool) if term.whole and term.nullable else None
        for start in range(0, len(index), BLOCK):
            rows = slice(start, start + BLOCK)
            found = term.values({one: read[one].iloc[rows] for one in reader.columns})
            made[rows] = found.array
            if null is not None and found.null is not None:
                null[rows] = found.null
            if lower is not None or upper is not None:
                np.clip(made[rows], lower, upper, out=made[rows])
        return column_of(made, null, column, index)

    return _New(column, cells)
