"""New columns from arithmetic and conditions of declared ones."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import plain
from pdprivacy.domain import Column, Domain
from pdprivacy.errors import ParameterError, QueryError, got, kind
from pdprivacy.expressions.arithmetic import numbers
from pdprivacy.expressions.cells import BLOCK, Read, column_of
from pdprivacy.expressions.conditions import Condition, possible, truths
from pdprivacy.expressions.reader import (
    ARITHMETIC_SHAPE,
    METHODS,
    NULL_TESTS,
    ExpressionReader,
    Syntax,
    read_syntax,
)
from pdprivacy.expressions.steps import (
    NUMERIC,
    Cells,
    Transform,
    clip,
    clipped_column,
    fillna,
    mapped,
    number,
    own,
)
from pdprivacy.timeline import FIELDS


class _ReadableColumns(Domain):
    """The declared columns and, by name only, those that earlier expressions made."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {column.name: column for column in self.columns})

    def add(self, column: Column) -> None:
        """Add a column, or replace the column of its name."""
        self._by_name[column.name] = column

    def to_domain(self) -> Domain:
        """Return the domain of all these columns."""
        return Domain(tuple(self._by_name.values()))


def assign(
    domain: Domain,
    expressions: Mapping[str, str | Syntax],
    bounds: Mapping[str, Sequence[float | None]] | None = None,
) -> Transform:
    """Add columns computed from declared columns and constants, as `DataFrame.assign`.

    An expression is arithmetic (``+ - * / // % **`` with a whole constant exponent, ``abs``, parentheses), a
    condition as in `query`, a column, a number of days between two dates (``left - joined``,
    ``joined - '2020-01-31'``), or a field of dates (``joined.dt.month``; year, quarter, month, day,
    dayofyear, dayofweek, hour). It may use the columns before it in the same call. A new column replaces a
    declared one of its name. Nulls stay null; a condition is False for a null, as in `query`.

    The bounds of a new column are those that its results can have for cells within the declared bounds.
    Results of whole numbers are whole, except by ``/``, if the bounds show that all of them fit 64 bits; else
    the column is one of floats. An undefined result (0 / 0) is null.

    Parameters
    ----------
    expressions : new column name to expression.
    bounds : new column name to ``(lower, upper)``: narrower public bounds, to which the results are clipped;
        needed where the results have none, as with a denominator that may be zero. None leaves an end as it
        is.

    Raises
    ------
    ParameterError : an expression that is not text (a function or a Series may look at other rows), invalid
        bounds, or declared columns whose labels are all tuples.
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
    checked_bounds = _checked_bounds(expressions, bounds)
    _check_levels(domain, expressions)
    cells_by_name: dict[Hashable, Cells] = {}
    reads: dict[Hashable, None] = {}
    readable = _ReadableColumns(domain.columns)
    for name, expression in expressions.items():
        if name in readable:
            own(readable[name], "assign")
        what = f"expression of {name!r}"
        try:
            syntax = expression
            if not isinstance(syntax, Syntax):
                syntax = read_syntax(syntax, what, ARITHMETIC_SHAPE)
            reader = ExpressionReader(syntax, readable, what)
            column, cells = _new_column(reader, syntax.node, name, checked_bounds.get(name))
        except RecursionError:
            raise QueryError(f"the {what} is nested too deeply.") from None
        reads.update(dict.fromkeys(read for read in reader.columns if read not in cells_by_name))
        cells_by_name[name] = cells
        readable.add(column)
    return Transform(_text(expressions, bounds), readable.to_domain(), tuple(reads), cells_by_name)


def _text(
    expressions: Mapping[str, str | Syntax], bounds: Mapping[str, Sequence[float | None]] | None
) -> str:
    texts = {name: getattr(given, "text", given) for name, given in expressions.items()}
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in expressions):
        parts = [f"{name}={text!r}" for name, text in texts.items()]
    else:
        parts = [f"**{texts!r}"]
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
        if type(expression) is str or isinstance(expression, Syntax):  # a text of NumPy may be a cell
            continue
        if callable(expression) or hasattr(expression, "__iter__"):
            raise ParameterError(
                f"the new column {name!r} must be an expression as text (got {kind(expression)}): a "
                "function or a column of cells may have looked at other rows.",
                example,
            )
        raise ParameterError(
            f"the new column {name!r} must be an expression as text (got {kind(expression)}).",
            f'a constant is an expression, too: private.dp.assign({name}="1")',
        )


def _check_levels(domain: Domain, expressions: Mapping[str, str | Syntax]) -> None:
    """Refuse new columns beside columns of several levels, among which pandas finds no name of one."""
    if len(domain) and all(isinstance(name, tuple) for name in domain):
        raise ParameterError(
            f"the label of the new column {next(iter(expressions))!r} is a string, and those of all declared "
            "columns are tuples.",
            'join them before df.dp.protect(...): df.columns = ["_".join(name) for name in df.columns]',
        )


def _checked_bounds(expressions: Mapping[str, str | Syntax], bounds: Any) -> dict[str, tuple[Any, Any]]:
    example = 'private.dp.assign(rate="gain / hours", bounds={"rate": (0, 100)})'
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise ParameterError(f"'bounds' must map new columns to (lower, upper) (got {got(bounds)}).", example)
    for name, ends in bounds.items():
        if name not in expressions:
            raise ParameterError(f"'bounds' names {got(name)}, which is not a new column.", example)
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise ParameterError(f"'bounds' of {name!r} must be (lower, upper) (got {got(ends)}).", example)
    return {name: (ends[0], ends[1]) for name, ends in bounds.items()}


def _new_column(
    reader: ExpressionReader, node: ast.expr, name: str, ends: tuple[Any, Any] | None
) -> tuple[Column, Cells]:
    """A new column: what is declared of it, and its cells."""
    if (copied := _copied_column(reader, node)) is not None:
        column, cells = replace(copied[0], name=name, role=None), copied[1]
    elif _is_condition(node):
        condition = reader.condition(node)
        column = Column(name, "boolean", categories=possible(condition, reader.domain))
        cells = _truth_cells(condition, column)
    else:
        return _computed_column(reader, node, name, ends)
    if ends is None:
        return column, cells
    if column.kind not in NUMERIC:
        raise ParameterError(f"'bounds' of {name!r} are for numbers (it is of kind {column.kind!r}).")
    return _computed_column(reader, node, name, ends)


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.Invert()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attribute)):
            return attribute in NULL_TESTS
    return False


def _copied_column(reader: ExpressionReader, node: ast.expr) -> tuple[Column, Cells] | None:
    """A declared column, perhaps clipped or filled; None for any other expression."""
    match node:
        case ast.Name():
            column = reader.column(node)
            return column, lambda read, _: read[column.name]
        case ast.Attribute(value=ast.Attribute(attr="dt")):
            return date_field(reader, node)
        case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in METHODS:
            if (before := _copied_column(reader, base)) is not None:
                return _changed_column(*before, method, reader.arguments(node))
    return None


def date_field(reader: ExpressionReader, node: ast.Attribute) -> tuple[Column, Cells]:
    """A field of a column of dates, such as the month, in the declared time zone.

    Raises QueryError for a column of no dates, or a field that its dates do not have.
    """
    owner, field = getattr(node.value, "value", None), node.attr
    if not isinstance(owner, ast.Name):
        raise QueryError(f"'.dt' is for a column of dates, and {reader.show(node.value)!r} is none.")
    column = reader.column(owner)
    timeline, known = column.timeline, ["year", *FIELDS]
    if timeline is None:
        raise QueryError(f"'.dt' is for dates, and column {column.name!r} is of kind {column.kind!r}.")
    if timeline.unit == "D":
        known.remove("hour")
    if field not in known:
        raise QueryError(
            f"column {column.name!r} has no field '.dt.{field}' (it has {', '.join(known)}).",
            f'private.assign(month="{column.name}.dt.month")',
        )
    take = timeline.field(field)
    ends = np.array([column.lower, column.upper], dtype=np.int64)
    lower, upper = take(ends).tolist() if field == "year" else FIELDS[field]
    made = replace(column, lower=lower, upper=upper, timeline=None)
    return made, mapped(column, made, take)


def _changed_column(
    column: Column, cells: Cells, method: str, constants: dict[str, Any]
) -> tuple[Column, Cells]:
    """A column after ``clip`` or ``fillna``."""
    domain = Domain((column,))
    if method == "clip":
        step = clip(domain, **{end: {column.name: bound} for end, bound in constants.items()})
    else:
        step = fillna(domain, {column.name: constants["value"]})
    if column.name not in step.columns:  # no nulls to fill
        return column, cells
    then = step.columns[column.name]
    return step.domain[column.name], lambda read, index: then({column.name: cells(read, index)}, index)


def _truth_cells(condition: Condition, column: Column) -> Cells:
    return lambda read, index: column_of(truths(condition, read), None, column, index)


def _computed_column(
    reader: ExpressionReader, node: ast.expr, name: str, ends: tuple[Any, Any] | None
) -> tuple[Column, Cells]:
    term = reader.term(node)
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
        computed = np.empty(len(index), dtype=np.int64 if term.whole else np.float64)
        null = np.zeros(len(index), dtype=bool) if term.whole and term.nullable else None
        for start in range(0, len(index), BLOCK):
            rows = slice(start, start + BLOCK)
            found = numbers(term, {one: read[one].iloc[rows] for one in reader.columns})
            computed[rows] = found.array
            if null is not None and found.null is not None:
                null[rows] = found.null
            if lower is not None or upper is not None:
                np.clip(computed[rows], lower, upper, out=computed[rows])
        return column_of(computed, null, column, index)

    return column, cells
