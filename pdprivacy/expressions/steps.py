"""Row steps, which treat each record by itself: the declaration of the result, and its values.

A step is made from the declaration and its arguments alone, before a cell is read: whatever cannot be
decided from these is refused. Whether a record stays, and what its new cells are, depends on this record
alone, so neighbours stay neighbours: a step costs nothing, and no sensitivity grows by it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import finite, has_hash, is_null, is_number, plain
from pdprivacy.domain import Column, Domain, declaration_hint
from pdprivacy.errors import DeclarationError, ParameterError, QueryError, check_one_of, got, kind
from pdprivacy.expressions.cells import BLOCK, INTEGERS, Read, column_of, dense, floats, nulls, whole
from pdprivacy.expressions.conditions import narrowed_domain, truths
from pdprivacy.expressions.intervals import Region, declared_in
from pdprivacy.expressions.reader import SHAPE, ExpressionReader, Syntax, read_syntax
from pdprivacy.timeline import timestamp
from pdprivacy.types import Mask

Cells: TypeAlias = Callable[[Read, "pd.Index[Any]"], "pd.Series[Any]"]


NUMERIC = ("float", "integer")
"""The kinds of column that are moved by a bound."""


@dataclass(frozen=True, slots=True)
class Transform:
    """A step that treats each record by itself.

    Attributes
    ----------
    text : the step as a user writes it, such as ``"clip(upper={'age': 60})"``.
    domain : what is declared of the result.
    reads : the columns that it looks at.
    columns : of each column that is new or replaced, in order: from the columns read, those made before it,
        and the index of the frame to its cells.
    keep : from a frame of the columns read to which records stay, shape ``(len(frame),)``; None where all do.
    """

    text: str
    domain: Domain
    reads: tuple[Hashable, ...] = ()
    columns: Mapping[Hashable, Cells] = field(default_factory=dict)
    keep: Callable[[pd.DataFrame], Mask] | None = None

    def made(self, frame: pd.DataFrame) -> dict[Hashable, pd.Series[Any]]:
        """The columns that are new or replaced, with the index of the frame."""
        read: dict[Hashable, pd.Series[Any]] = {name: frame[name] for name in self.reads}
        found: dict[Hashable, pd.Series[Any]] = {}
        for name, cells in self.columns.items():
            read[name] = found[name] = cells(read, frame.index)
        return found

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the declared columns of the result, from a frame with the columns that the step reads.

        >>> domain = Domain((Column("age", "integer", lower=0, upper=99),))
        >>> query(domain, "age < 30").apply(pd.DataFrame({"age": [20, 40]}))["age"].tolist()
        [20]
        """
        made = self.assigned(frame)
        return made if self.keep is None else made.take(np.flatnonzero(self.keep(frame)))

    def assigned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The declared columns of the result, of all records."""
        made = {name: values.set_axis(frame.index) for name, values in self.made(frame).items()}
        columns = (made[name] if name in made else frame[name] for name in self.domain)
        # without copies: snapshots may share memory, which nobody can reach
        found = pd.DataFrame(dict(enumerate(columns)), index=frame.index, copy=False)
        found.columns = pd.Index(list(self.domain), tupleize_cols=False)
        return found


def mapped(column: Column, renewed: Column, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Cells:
    """Return the results of a function of each number of a column; nulls stay."""

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        if column.kind == "float":
            return column_of(function(floats(read[column.name], column)), None, renewed, index)
        numbers, null = whole(read[column.name], column)
        return column_of(function(numbers), null, renewed, index)

    return cells


def call(method: str, *given: object, **options: object) -> str:
    """Return a call as source code; options that are None are left out.

    >>> call("cut", "age", [18, 65], right=False, labels=None)
    "cut('age', [18, 65], right=False)"
    """
    try:
        keywords = [f"{name}={value!r}" for name, value in options.items() if value is not None]
        return f"{method}({', '.join([*map(repr, given), *keywords])})"
    except ValueError:  # Python writes no number of more digits
        raise ParameterError(f"{method!r} takes no number of more than 4300 digits.") from None


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

    Allowed are comparisons of a declared column with a constant (``== != < <= > >=``, chained too),
    ``in`` and ``not in`` with a list of constants, ``column.isna()`` and ``column.notna()``, a boolean
    column alone, and ``and``, ``or``, ``not`` (or ``&``, ``|``, ``~`` with parentheses). Names that are
    not Python names stand in backticks.

    Nulls of every dtype (NaN, None, NA, NaT) have one fate: a comparison with a null is False, except
    ``!=`` and ``not in``, which are True; ``not`` is plain negation.

    The new domain covers every record that can pass. Conditions narrow bounds and categories; ``or`` takes
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
            'private.dp.query("age >= 30")',
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
        return truths(condition, {name: frame[name] for name in reader.columns})

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
    check_one_of("how", how, ("any", "all"))
    if subset is None:
        looked_at = [column for column in domain.columns if column.role != "identifier"]
    else:
        looked_at = [own(domain[name], "dropna") for name in names(domain, subset, "dropna")]
    text = call("dropna", subset=subset, how=None if how == "any" else how)
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
        raise ParameterError("'clip' needs 'lower' or 'upper'.", "private.dp.clip(upper={'age': 60})")
    if columns is not None and all(isinstance(bound, Mapping | None) for bound in (lower, upper)):
        raise ParameterError("'columns' is for one number as a bound; a mapping names its columns itself.")
    lows = _of_columns(domain, lower, columns, "lower")
    highs = _of_columns(domain, upper, columns, "upper")
    bounds: dict[Hashable, tuple[Any, Any]] = {}
    for name in domain:
        if name in lows or name in highs:
            low, high = lows.get(name), highs.get(name)
            if low is not None and high is not None and low > high:
                raise ParameterError(f"'lower' of column {name!r} must not be above 'upper'.")
            bounds[name] = (low, high)
    renewed = {name: clipped_column(domain[name], *ends) for name, ends in bounds.items()}
    text = call("clip", lower=shown(lower), upper=shown(upper), columns=columns)
    cells = {name: _clipping(domain[name], renewed[name], *ends) for name, ends in bounds.items()}
    return Transform(text, domain.replace(*renewed.values()), tuple(cells), cells)


def _of_columns(domain: Domain, bound: Any, columns: Any, what: str) -> dict[Hashable, int | float]:
    """The bound of each column that has one."""
    if bound is None:
        return {}
    if isinstance(bound, Mapping):
        given = {_numeric(domain[name]).name: value for name, value in bound.items()}
        if not given:
            raise ParameterError(f"{what!r} names no column.", "private.dp.clip(upper={'age': 60})")
    else:
        if columns is None:
            dates = timestamp(bound) is not None
            chosen = [
                declared
                for declared in domain.columns
                if declared.kind in NUMERIC
                and declared.role != "identifier"
                and (declared.timeline is not None) == dates
            ]
            if not chosen:
                raise DeclarationError(
                    "'clip' needs a numeric column, and none is declared.",
                    declaration_hint("age", "integer", "bounds"),
                )
        else:
            chosen = [_numeric(domain[name]) for name in names(domain, columns, "clip")]
        if not isinstance(plain(bound), int | float) and timestamp(bound) is None:
            raise ParameterError(
                f"{what!r} must be a number or a mapping from column to number (got {kind(bound)}).",
                "private.dp.clip(upper={'age': 60}); bounds that differ from row to row may hold cells.",
            )
        given = {column.name: bound for column in chosen}
    return {name: number(value, domain[name], repr(what)) for name, value in given.items()}


def _numeric(column: Column) -> Column:
    if column.kind not in NUMERIC:
        raise DeclarationError(
            f"'clip' needs numeric columns, and column {column.name!r} is of kind {column.kind!r}.",
            "leave the column out, or recode its labels: private.dp.recode(column, {...})",
        )
    return own(column, "clip")


def clipped_column(column: Column, low: int | float | None, high: int | float | None) -> Column:
    """Return the declaration of a column after its numbers are clipped to the bounds.

    >>> clipped_column(Column("rooms", "integer", categories=(1, 2, 3, 4, 5)), None, 3).categories
    (1, 2, 3)
    """
    return declared_in(column, Region.of(column).clipped(low, high))


def _clipping(column: Column, renewed: Column, low: Any, high: Any) -> Cells:
    if column.timeline is not None:  # of dates, either may be beyond 64 bits
        low, high = int(renewed.lower or 0), int(renewed.upper or 0)
    return mapped(column, renewed, lambda numbers: np.clip(numbers, low, high))


# ---------------------------------------------------------------- fillna


_ARROW_TEXTS = ("string[pyarrow]", "large_string[pyarrow]")


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
        given = {own(domain[name], "fillna").name: constant for name, constant in value.items()}
    elif isinstance(value, pd.Series | pd.DataFrame | np.ndarray | list):
        raise ParameterError(
            f"'value' must be a constant or a mapping from column to constant (got {kind(value)}).",
            "private.dp.fillna({'age': 0})",
        )
    else:
        given = {one.name: value for one in domain.columns if one.nullable and one.role != "identifier"}
    constants = {name: _constant(domain[name], constant) for name, constant in given.items()}
    constants = {name: constant for name, constant in constants.items() if domain[name].nullable}
    renewed = {name: _filled_column(domain[name], constant) for name, constant in constants.items()}
    cells = {name: _filling(domain[name], renewed[name], constant) for name, constant in constants.items()}
    return Transform(call("fillna", shown(value)), domain.replace(*renewed.values()), tuple(cells), cells)


def _constant(column: Column, value: Any) -> Any:
    what = "the constant of 'fillna'"
    if is_null(value):
        raise ParameterError(f"{what} for column {column.name!r} must not be null.")
    if column.kind in NUMERIC:
        return number(value, column, what)
    constant = label(value, what)
    if column.kind == "boolean":
        if not isinstance(constant, bool):
            raise ParameterError(
                f"{what} for the boolean column {column.name!r} must be True or False (got {kind(value)})."
            )
        return constant
    known = {type(one) for one in column.categories} if column.categories is not None else {str}
    if type(constant) not in known:
        allowed = ", ".join(sorted(one.__name__ for one in known))
        raise ParameterError(
            f"{what} for column {column.name!r} must be a label like the declared ones, "
            f"of type {allowed} (got {kind(value)})."
        )
    return constant


def _filled_column(column: Column, value: Any) -> Column:
    region = Region.of(column).filled(value)
    if column.kind == "boolean":
        region = replace(region, labels=dict.fromkeys(sorted(region.labels or ())))
    return declared_in(column, region)


def _filling(column: Column, renewed: Column, constant: Any) -> Cells:
    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        values = read[column.name]
        if column.kind == "category":
            return _filled_labels(values, constant)
        if column.kind == "float":
            made = np.empty(len(values))
            for start in range(0, len(values), BLOCK):
                rows = slice(start, start + BLOCK)
                made[rows] = floats(values.iloc[rows], column)
                np.copyto(made[rows], constant, where=np.isnan(made[rows]))
            return column_of(made, None, renewed, index)
        found, null = whole(values, column)
        filled = found.copy()
        if null is not None:
            filled[null] = constant
        return column_of(filled.astype(bool) if column.kind == "boolean" else filled, None, renewed, index)

    return cells


def _filled_labels(values: pd.Series[Any], constant: Any) -> pd.Series[Any]:
    values = dense(values)
    null = nulls(values)
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = list(dtype.categories)
        place = known.index(constant) if constant in known else len(known)
        labels = known if place < len(known) else [*known, constant]
        places = np.where(null, place, values.cat.codes.to_numpy().astype(np.int64))
        categories: pd.Index[Any] = pd.Index(labels, tupleize_cols=False)
        return pd.Series(pd.Categorical.from_codes(places, categories), index=values.index)
    cells = values.to_numpy(dtype=object, copy=True)
    one = np.empty(1, dtype=object)
    one[0] = constant  # by place: numpy would spread a tuple over the nulls
    cells[null] = one
    texts = type(constant) is str and (isinstance(dtype, pd.StringDtype) or str(dtype) in _ARROW_TEXTS)
    return pd.Series(cells, index=values.index, dtype=dtype if texts else object)


# ---------------------------------------------------------------- constants


def shown(value: Any) -> Any:
    """A constant, or a mapping to constants, as a person writes it."""
    if isinstance(value, Mapping):
        return {plain(name): plain(one) for name, one in value.items()}
    return plain(value)


def number(value: Any, column: Column, what: str) -> int | float:
    """Return a finite constant that cells of the column can equal.

    Raises
    ------
    ParameterError : no finite number, one made of confidential counts, or for a column of integers no
        whole number, or one beyond 64 bits; for a column of dates no date.
    """
    if getattr(value, "confidential", False) is True:
        raise ParameterError(f"{what} is public, and this number was made of confidential counts.")
    if column.timeline is not None:
        return math.floor(column.timeline.position(value, f"{what} of column {column.name!r}"))
    cell: Any = plain(value)
    if not is_number(cell) or not finite(cell):
        raise ParameterError(f"{what} of column {column.name!r} must be a finite number (got {kind(value)}).")
    if column.kind != "integer":
        return float(cell)
    if cell != math.floor(cell):
        raise ParameterError(
            f"{what} of the integer column {column.name!r} must be a whole number (got {kind(value)})."
        )
    whole = int(cell)
    if not INTEGERS[0] <= whole <= INTEGERS[1]:
        raise ParameterError(
            f"{what} of the integer column {column.name!r} must be a number of 64 bits (got {kind(value)})."
        )
    return whole


def label(value: Any, what: str) -> Any:
    """Return a constant that can be a label: hashable, not a container or null, and encodable if it is text.

    Raises
    ------
    ParameterError : anything else.
    """
    constant = plain(value)
    container = hasattr(constant, "__iter__") and not isinstance(constant, str | bytes | tuple)
    try:
        hash(constant)
    except TypeError:
        container = True
    if container or is_null(constant) or getattr(constant, "confidential", False) is True:
        raise ParameterError(f"{what} must be a label (got {kind(value)}).")
    if isinstance(constant, str) and any("\ud800" <= sign <= "\udfff" for sign in constant):
        raise ParameterError(f"{what} must be encodable text (got {kind(value)}).")
    return constant
