"""Row steps, which treat each record by itself: the declaration of the result, and its values.

A step is made from the declaration and its arguments alone, before a cell is read: whatever cannot be
decided from these is refused. Whether a record stays, and what its new cells are, depends on this record
alone, so neighbours stay neighbours: a step costs nothing, and no sensitivity grows by it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import has_hash, one_of, plain
from pdprivacy.core.rows.cells import frame_of, nulls
from pdprivacy.core.rows.conditions import narrowed_domain, truths_of
from pdprivacy.core.rows.nodes import NUMERIC, Node, clipped, filled
from pdprivacy.core.rows.reader import SHAPE, ExpressionReader, Syntax, read_syntax
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.timeline import timestamp
from pdprivacy.errors import DeclarationError, ParameterError, QueryError, got, kind
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.types import Mask


@dataclass(frozen=True, slots=True)
class Transform:
    """A step that treats each record by itself.

    Attributes
    ----------
    text : the step as a user writes it, such as ``"clip(upper={'age': 60})"``.
    domain : what is declared of the result.
    reads : the columns that it looks at.
    columns : the node of each column that is new or replaced, in order; it may read those made before it.
    keep : from a frame of the columns read to which records stay, shape ``(len(frame),)``; None where all do.
    sources : the columns that a new one is computed from; all that the step looks at, where it is not listed.
    """

    text: str
    domain: Domain
    reads: tuple[Hashable, ...] = ()
    columns: Mapping[Hashable, Node] = field(default_factory=dict)
    keep: Callable[[pd.DataFrame], Mask] | None = None
    sources: Mapping[Hashable, tuple[Hashable, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, domain: Domain, *nodes: Node) -> Transform:
        """Return the step that puts each node in place of the declared column of its name."""
        columns = {node.column.name: node for node in nodes}
        renewed = domain.replace(*(node.column for node in nodes))
        return cls(text, renewed, tuple(columns), columns, sources={name: (name,) for name in columns})

    def made(
        self, frame: pd.DataFrame, names: Iterable[Hashable] | None = None
    ) -> dict[Hashable, pd.Series[Any]]:
        """The columns that are new or replaced, with the index of the frame.

        ``names``: some of them, with those that they are computed from; the frame has what these read.
        """
        read: dict[Hashable, pd.Series[Any]] = {name: frame[name] for name in self.reads if name in frame}
        columns: dict[Hashable, pd.Series[Any]] = {}
        for name in self.columns if names is None else names:
            read[name] = columns[name] = self.columns[name].cells(read, frame.index)
        return columns

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the declared columns of the result, from a frame with the columns that the step reads.

        >>> domain = Domain((Column("age", "integer", lower=0, upper=99),))
        >>> query(domain, "age < 30").apply(pd.DataFrame({"age": [20, 40]}))["age"].tolist()
        [20]
        """
        result = self.assigned(frame)
        return result if self.keep is None else result.take(np.flatnonzero(self.keep(frame)))

    def assigned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The declared columns of the result, of all records."""
        new_columns = {name: values.set_axis(frame.index) for name, values in self.made(frame).items()}
        columns = {name: new_columns[name] if name in new_columns else frame[name] for name in self.domain}
        # without copies: snapshots may share memory, which nobody can reach
        return frame_of(columns, frame.index)


def call(method: str, *arguments: object, **options: object) -> str:
    """Return a call as source code; options that are None are left out.

    >>> call("cut", "age", [18, 65], right=False, labels=None)
    "cut('age', [18, 65], right=False)"
    """
    try:
        keywords = [f"{name}={value!r}" for name, value in options.items() if value is not None]
        return f"{method}({', '.join([*map(repr, arguments), *keywords])})"
    except ValueError:  # Python writes no number of more digits
        raise ParameterError(f"{method!r} takes no number of more than 4300 digits.") from None


def example(method: str, domain: Domain) -> str | None:
    """Return a valid call of a step with declared columns; None where none fits."""
    return EXAMPLES[method].of(domain.columns)


def names(domain: Domain, columns: object, method: str) -> list[Hashable]:
    """Return declared names as a list; a single name counts as a list of one.

    Raises
    ------
    ParameterError : no list of names, none, or one twice.
    DeclarationError : a name that is not declared.
    """
    listed: list[Any]
    if isinstance(columns, str) or (isinstance(columns, tuple) and columns in domain):
        listed = [columns]
    elif isinstance(columns, list | tuple | pd.Index):
        listed = list(columns)
    elif isinstance(columns, Hashable) and not isinstance(columns, Iterable):
        listed = [columns]
    else:
        raise ParameterError(f"'columns' of {method!r} must be a list of columns (got {got(columns)}).")
    if not listed:
        raise ParameterError(f"{method!r} needs at least one column.")
    if isinstance(columns, pd.Index) and not all(name in domain for name in listed):
        raise DeclarationError(f"{method!r} got an Index that holds what is not declared for release.")
    seen: set[Hashable] = set()
    for name in listed:
        if not has_hash(name):
            raise ParameterError(f"'columns' of {method!r} must be a list of columns (got {kind(name)}).")
        domain[name]
        if name in seen:
            raise ParameterError(f"{method!r} names column {name!r} twice.")
        seen.add(name)
    return listed


def own(column: Column, method: str) -> Column:
    """Return the column; refuse an identifier, which no step may use.

    Raises
    ------
    DeclarationError : its role is 'identifier'.
    """
    if column.role == "identifier":
        raise DeclarationError(
            f"{method!r} cannot use column {column.name!r}: its role is 'identifier'.",
            "leave the column out of the call, or declare another role",
        )
    return column


def query(domain: Domain, expression: str | Syntax) -> Transform:
    """Select the records that meet a condition, such as ``"age >= 30"``, as `DataFrame.query`.

    Allowed are comparisons of a declared column, or of arithmetic as in `assign`, with a constant
    (``== != < <= > >=``, chained too), ``in`` and ``not in`` with a list of constants, ``column.isna()`` and
    ``column.notna()``, a boolean column alone, and ``and``, ``or``, ``not`` (or ``&``, ``|``, ``~`` with
    parentheses). Two columns of numbers are compared by their difference with 0. Names that are not Python
    names stand in backticks.

    Nulls of every dtype (NaN, None, NA, NaT) have one fate, that of nullable dtypes of pandas: a comparison
    with a null is unknown, and so is its negation; ``or`` with a true condition is true, and ``and`` with a
    false one is false. Records of which the condition is unknown are left out. A null is not ``in`` a list.

    Columns of integers are compared exactly, all other numbers as the doubles that releases read.

    The new domain covers every record that can pass. Conditions on columns themselves narrow bounds and
    categories, conditions on arithmetic narrow nothing; ``or`` takes
    the hull of bounds and the union of categories; bins are cropped to the new bounds. A strict comparison
    moves an integer bound by one and keeps a float bound closed. A column where no null can pass is no longer
    nullable.

    Raises
    ------
    ParameterError : the expression is not a string.
    QueryError : anything else in the expression, a constant that the column cannot hold, or a filter
        that no declared record can meet.

    >>> age = Column("age", "integer", lower=18, upper=65, bins=(18, 30, 45, 65))
    >>> step = query(Domain((age,)), "35 <= age < 50")
    >>> step.text, step.domain["age"].bounds("mean"), step.domain["age"].bins
    ("query('35 <= age < 50')", (35.0, 49.0), (35.0, 45.0, 49.0))
    """
    if type(expression) is not str and not isinstance(expression, Syntax):  # a text of NumPy may be a cell
        raise ParameterError(
            f"'expression' must be a string (got {kind(expression)}).",
            example("query", domain),
        )
    try:
        syntax = expression if isinstance(expression, Syntax) else read_syntax(expression, "filter", SHAPE)
        reader = ExpressionReader(syntax, domain)
        condition = reader.condition(syntax.node)
        renewed = narrowed_domain(condition, domain)
    except RecursionError:
        raise QueryError("the filter is nested too deeply.") from None
    if renewed is None:
        raise QueryError(f"no declared record can meet the filter {syntax.text!r}.")

    def keep(frame: pd.DataFrame) -> Mask:
        return truths_of(condition, {name: frame[name] for name in reader.columns}, frame.index).met

    return Transform(call("query", syntax.text), renewed, tuple(reader.columns), keep=keep)


def select(domain: Domain, columns: object) -> Transform:
    """Keep these declared columns only, in this order.

    Raises
    ------
    ParameterError : not a list of columns, an empty one, or a column twice.
    DeclarationError : a column that is not declared.

    >>> domain = Domain((Column("age", "integer"), Column("region", "category")))
    >>> select(domain, ["region"]).domain.names
    ('region',)
    """
    chosen = names(domain, columns, "select")
    return Transform(call("select", chosen), Domain(tuple(domain[name] for name in chosen)))


def dropna(domain: Domain, subset: object = None, how: str = "any") -> Transform:
    """Drop the records with nulls in declared columns, as `DataFrame.dropna`.

    Parameters
    ----------
    subset : the columns to look at; by default all declared ones but identifiers.
    how : ``"any"`` drops a record with a null in any of these columns, ``"all"`` one with nulls in all of
        them.

    Raises
    ------
    ParameterError : another ``how``, or something else than a list of columns.
    DeclarationError : a column that is not declared, or an identifier.

    >>> domain = Domain((Column("age", "float", nullable=True), Column("rent", "float", nullable=True)))
    >>> dropna(domain, subset=["age"]).domain["age"].nullable
    False
    """
    one_of(how, "how", ("any", "all"))
    if subset is None:
        looked_at = [column for column in domain.columns if column.role != "identifier"]
    else:
        looked_at = [own(domain[name], "dropna") for name in names(domain, subset, "dropna")]
    text = call("dropna", subset=plain_list(subset), how=None if how == "any" else how)
    possible = [column for column in looked_at if column.nullable]
    if not possible or (how == "all" and len(possible) < len(looked_at)):
        return Transform(text, domain)
    renewed = domain
    if how == "any" or len(possible) == 1:
        renewed = domain.replace(*(replace(column, nullable=False) for column in possible))
    join = np.logical_or if how == "any" else np.logical_and
    read = tuple(column.name for column in possible)

    def keep(frame: pd.DataFrame) -> Mask:
        return ~functools.reduce(join, (nulls(frame[name]) for name in read))

    return Transform(text, renewed, read, keep=keep)


# ---------------------------------------------------------------- clip


def clip(domain: Domain, lower: Any = None, upper: Any = None, *, columns: Any = None) -> Transform:
    """Clip numbers to public bounds, as `DataFrame.clip`; nulls stay.

    The declared bounds move in the same way, categories too, and bins are cropped to them. Bounds of
    integer columns must be whole numbers, because values are moved to the bounds.

    Parameters
    ----------
    lower, upper : a number for all columns, or a mapping from column to number; dates for columns of dates.
    columns : the columns that a single number or date applies to; by default all numeric columns, or all
        columns of dates, but identifiers.

    Raises
    ------
    ParameterError : no bound at all, no finite numbers, a fraction for integers, or ``lower`` above
        ``upper``.
    DeclarationError : a column that is not declared, not numeric, or an identifier.

    >>> domain = Domain((Column("age", "integer", lower=0, upper=99, bins=(0, 18, 65, 99)),))
    >>> clip(domain, upper={"age": 60}).domain["age"].bins
    (0.0, 18.0, 60.0)
    """
    if lower is None and upper is None:
        raise ParameterError("'clip' needs 'lower' or 'upper'.", example("clip", domain))
    if columns is not None and all(isinstance(bound, Mapping | None) for bound in (lower, upper)):
        raise ParameterError("'columns' is for one number as a bound; a mapping names its columns itself.")
    lows = _of_columns(domain, lower, columns, "lower")
    highs = _of_columns(domain, upper, columns, "upper")
    nodes = [
        clipped(Node.of(domain[name]), lows.get(name), highs.get(name))
        for name in domain
        if name in lows or name in highs
    ]
    text = call("clip", lower=shown(lower), upper=shown(upper), columns=plain_list(columns))
    return Transform.of(text, domain, *nodes)


def _of_columns(domain: Domain, bound: Any, columns: Any, option: str) -> dict[Hashable, Any]:
    """The bound of each column that has one."""
    if bound is None:
        return {}
    if isinstance(bound, Mapping):
        bounds = {own(domain[name], "clip").name: value for name, value in bound.items()}
        if not bounds:
            raise ParameterError(f"{option!r} names no column.", example("clip", domain))
    else:
        if columns is None:
            dates = timestamp(bound) is not None
            chosen = [
                candidate
                for candidate in domain.columns
                if candidate.kind in NUMERIC
                and candidate.role != "identifier"
                and (candidate.timeline is not None) == dates
            ]
            if not chosen:
                raise DeclarationError(
                    "'clip' needs a numeric column, and none is declared.",
                )
        else:
            chosen = [own(domain[name], "clip") for name in names(domain, columns, "clip")]
        if not isinstance(plain(bound), int | float) and timestamp(bound) is None:
            raise ParameterError(
                f"{option!r} must be a number or a mapping from column to number (got {kind(bound)}).",
                example("clip", domain),
            )
        bounds = {column.name: bound for column in chosen}
    return bounds


# ---------------------------------------------------------------- fillna


def fillna(domain: Domain, value: Any) -> Transform:
    """Replace nulls of declared columns by a public constant, as `DataFrame.fillna`.

    The result is not nullable. A number beyond the declared bounds widens them (and adds a bin), a label that
    is not declared becomes the last category. A mean or median of the data is not public: release it first,
    and fill with the released number.

    Parameters
    ----------
    value : a constant for all nullable columns but identifiers, or a mapping from column to constant;
        columns without declared nulls stay as they are.

    Raises
    ------
    ParameterError : a constant that the column cannot hold, or none.
    DeclarationError : a column that is not declared, or an identifier.

    >>> domain = Domain((Column("age", "integer", nullable=True, lower=18, upper=65),))
    >>> fillna(domain, 0).domain["age"].bounds("mean")
    (0.0, 65.0)
    """
    if isinstance(value, Mapping):
        requested = {own(domain[name], "fillna").name: constant for name, constant in value.items()}
    elif isinstance(value, pd.Series | pd.DataFrame | np.ndarray | list):
        raise ParameterError(
            f"'value' must be a constant or a mapping from column to constant (got {kind(value)}).",
            example("fillna", domain),
        )
    else:
        requested = {
            column.name: value for column in domain.columns if column.nullable and column.role != "identifier"
        }
    nodes = [filled(Node.of(domain[name]), constant) for name, constant in requested.items()]
    return Transform.of(call("fillna", shown(value)), domain, *(node for node in nodes if not node.declared))


# ---------------------------------------------------------------- constants


def plain_list(columns: Any) -> Any:
    """Columns as a person writes them: pandas prints a long Index in part."""
    return list(columns) if isinstance(columns, pd.Index) else columns


def shown(value: Any) -> Any:
    """A constant, or a mapping to constants, as a person writes it."""
    if isinstance(value, Mapping):
        return {plain(name): plain(constant) for name, constant in value.items()}
    return plain(value)
