"""New columns from arithmetic and conditions of declared ones."""

from __future__ import annotations

import keyword
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pdprivacy.checks import pair, plain
from pdprivacy.core.rows.nodes import NUMERIC, Node, clipped
from pdprivacy.core.rows.reader import ARITHMETIC_SHAPE, ExpressionReader, Syntax, read_syntax
from pdprivacy.core.rows.steps import Transform, own
from pdprivacy.declaration.domain import Column, Domain, Role
from pdprivacy.errors import ParameterError, QueryError, got, kind
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.types import settle


class _ReadableColumns(Domain):
    """The declared columns and, by name only, those that earlier expressions made."""

    def __post_init__(self) -> None:
        settle(self, _by_name={column.name: column for column in self.columns})

    def add(self, column: Column) -> None:
        """Add a column, or replace the column of its name."""
        self._by_name[column.name] = column

    def whole(self) -> Domain:
        """Return the domain of all these columns."""
        return Domain(tuple(self._by_name.values()))


def assign(
    domain: Domain,
    expressions: Mapping[str, str | Syntax],
    bounds: Mapping[str, Sequence[float | None]] | None = None,
) -> Transform:
    """Add columns computed from declared columns and constants, as `DataFrame.assign`.

    An expression is arithmetic (``+ - * / // % **`` with a whole constant exponent, parentheses), a function
    of numbers (``log(pay)``; abs, ceil, exp, expm1, floor, log10, log1p, log2, maximum, minimum, round, sign,
    sqrt), a condition as in `query`, a column, a number of days between two dates (``left - joined``,
    ``joined - '2020-01-31'``), or a field of dates (``joined.dt.month``; year, quarter, month, day,
    dayofyear, dayofweek, hour). It may use the columns before it in the same call. A new column replaces a
    declared one of its name. Nulls stay null; so do conditions that are unknown, as in `query`.

    Logarithms and exponentials are correctly rounded: the double nearest to the exact result, on every
    engine. A logarithm or square root is refused where the bounds hold numbers of which it is not defined; a
    public floor, as in ``log(pay.clip(lower=1))``, avoids this. `floor`, `ceil`, `sign`, and `round` without
    digits give whole numbers where these are below 2**53.

    The bounds of a new column are those that its results can have for cells within the declared bounds.
    Results of whole numbers are whole, except by ``/``, if the bounds show that all of them fit 64 bits; else
    the column is one of floats. An undefined result (0 / 0) is null.

    A column that is computed from a sensitive one is sensitive, because it tells something of it. One that
    takes the place of a quasi-identifier, and is computed from quasi-identifiers, is a quasi-identifier. Any
    other new column has no role.

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

    >>> import pandas as pd
    >>> domain = Domain(tuple(Column(name, "integer", lower=0, upper=9) for name in ("gain", "loss")))
    >>> step = assign(domain, {"net": "gain - loss"})
    >>> step.domain["net"].bounds("mean")
    (-9.0, 9.0)
    >>> step.apply(pd.DataFrame({"gain": [3, 0], "loss": [0, 2]}))["net"].tolist()
    [3, -2]
    """
    _check_expressions(expressions)
    limits = _checked_bounds(expressions, bounds)
    _check_levels(domain, expressions)
    new_columns: dict[Hashable, Node] = {}
    reads: dict[Hashable, None] = {}
    sources: dict[Hashable, tuple[Hashable, ...]] = {}
    known = _ReadableColumns(domain.columns)
    for name, expression in expressions.items():
        if name in known:
            own(known[name], "assign")
        subject = f"expression of {name!r}"
        try:
            syntax = expression
            if not isinstance(syntax, Syntax):
                syntax = read_syntax(syntax, subject, ARITHMETIC_SHAPE)
            reader = ExpressionReader(syntax, known, subject)
            result = reader.node(syntax.node)
            node = _new_column(result, name, limits.get(name), _role_of(known, name, reader.columns))
        except RecursionError:
            raise QueryError(f"the {subject} is nested too deeply.") from None
        if isinstance(expression, Syntax) and (
            replaced := [read for read in reader.columns if read in new_columns]
        ):
            raise QueryError(
                f"the {subject} reads column {replaced[0]!r}, which the same call replaces before.",
                "two calls, one after the other: private.assign(...).assign(...)",
            )
        reads.update(dict.fromkeys(read for read in reader.columns if read not in new_columns))
        sources[name] = tuple(reader.columns)
        new_columns[name] = node
        known.add(node.column)
    text = _text(expressions, bounds)
    return Transform(text, known.whole(), tuple(reads), new_columns, sources=sources)


def _text(
    expressions: Mapping[str, str | Syntax], bounds: Mapping[str, Sequence[float | None]] | None
) -> str:
    texts = {name: getattr(expression, "text", expression) for name, expression in expressions.items()}
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in expressions):
        parts = [f"{name}={text!r}" for name, text in texts.items()]
    else:
        parts = [f"**{texts!r}"]
    if bounds:
        limits = {name: tuple(map(plain, ends)) for name, ends in bounds.items()}
        parts.append(f"bounds={limits!r}")
    return f"assign({', '.join(parts)})"


def _check_expressions(expressions: Any) -> None:
    example = EXAMPLES["assign"]
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
                f"the new column {name!r} must be an expression of columns (got {kind(expression)}): a "
                "function or a column of cells may have looked at other rows.",
                example,
            )
        raise ParameterError(
            f"the new column {name!r} must be an expression of columns (got {kind(expression)}).",
            f'a constant is an expression, too: private.assign({name}="1")',
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
    example = f"private.{_text(expressions, dict.fromkeys(expressions, (0, 100)))}"
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise ParameterError(f"'bounds' must map new columns to (lower, upper) (got {got(bounds)}).", example)
    for name in bounds:
        if name not in expressions:
            raise ParameterError(f"'bounds' names {got(name)}, which is not a new column.", example)
    return {name: pair(ends, f"bounds[{name!r}]", example) for name, ends in bounds.items()}


def _role_of(known: _ReadableColumns, name: str, sources: Iterable[Hashable]) -> Role | None:
    """Return the role of a new column: "sensitive" if a column that it is computed from is.

    A quasi-identifier that takes the place of another one stays one. Any other new column has no role, and
    divides the cells of a table like a quasi-identifier.
    """
    roles = {known[source].role for source in sources}
    if "sensitive" in roles:
        return "sensitive"
    replaces = name in known and known[name].role == "quasi_identifier"
    return "quasi_identifier" if replaces and "quasi_identifier" in roles else None


def _new_column(node: Node, name: str, ends: tuple[Any, Any] | None, role: Role | None) -> Node:
    """The node as a new column with this role, within public bounds."""
    column = node.column
    node = replace(node, column=replace(column, name=name, role=role), declared=False)
    if ends is not None:
        if column.kind not in NUMERIC:
            raise ParameterError(f"'bounds' of {name!r} are for numbers (it is of kind {column.kind!r}).")
        node = clipped(node, *ends, where=" in 'bounds'")
    if not node.finite:
        raise QueryError(
            f"the expression of {name!r} has results without bounds: a column of it has none, a denominator "
            "may be zero, or a number is too large.",
            f"state public bounds, into which the results are moved: bounds={{{name!r}: (LOWER, UPPER)}}",
        )
    return node
