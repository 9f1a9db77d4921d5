"""The declaration of each column: bounds, categories, bins, nulls and role; plain frozen values.

A domain holds declared facts only, so everything in it may be printed. It knows
nothing of pandera (`pdprivacy.declaration.schema` reads one) and nothing of the data.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pdprivacy.checks import (
    MOST_ITEMS,
    finite,
    flag,
    has_hash,
    instance,
    is_list,
    is_null,
    is_number,
    items,
    one_of,
    plain,
    real,
)
from pdprivacy.declaration.intervals import Interval
from pdprivacy.declaration.timeline import MOST_UNITS, Timeline, first_and_last
from pdprivacy.errors import DeclarationError, ParameterError, got, kind, short_tracebacks
from pdprivacy.hints.examples import quoted
from pdprivacy.hints.suggestions import nearest
from pdprivacy.text.markup import aligned, table
from pdprivacy.text.numbers import number_text, printable
from pdprivacy.types import settle

Kind: TypeAlias = Literal["float", "integer", "boolean", "category"]
Role: TypeAlias = Literal["quasi_identifier", "sensitive", "identifier"]

MAX_INTEGER_CELLS = 1000
"""A bounded integer column with at most so many values has one cell per value."""

DATE_METHODS = frozenset(["mean", "median", "quantile", "min", "max", "bins"])
"""Methods that accept columns of dates; "bins" is the name under which engines read them."""

_DTYPES: dict[str, str] = {"float": "float", "integer": "int", "boolean": "bool", "category": "str"}


def declaration_hint(
    name: Hashable, kind: Kind | None, what: Literal["bounds", "labels", "declared"] = "declared"
) -> str:
    """Return the line of a pandera schema that declares what is missing.

    ``what`` is ``"bounds"``, ``"labels"`` (cells of a table) or ``"declared"`` (just the opt-in).

    >>> print(declaration_hint("age", "integer", "bounds"))
    "age": pa.Column(int, pa.Check.in_range(LOWER, UPPER), metadata={"dp": {}})
    """
    label = quoted(name)
    if what == "declared":
        dtype = _DTYPES[kind] if kind else "..."
        return f'{label}: pa.Column({dtype}, metadata={{"dp": {{}}}})'
    if what == "bounds" or kind in ("float", "integer"):
        dtype = "int" if kind == "integer" else "float"
        options = "{}" if what == "bounds" else '{"bins": [LOWER, ..., UPPER]}'
        check = "pa.Check.in_range(LOWER, UPPER)"
        return f'{label}: pa.Column({dtype}, {check}, metadata={{"dp": {options}}})'
    return f'{label}: pa.Column(str, pa.Check.isin([LABEL, ...]), metadata={{"dp": {{}}}})'


def find_labels_hint(name: Hashable) -> str:
    """Return the calls that find private labels and declare them.

    >>> find_labels_hint("city")
    'private.use(private.dp.find_labels("city", epsilon=1, delta=1e-6))'
    """
    return f"private.use(private.dp.find_labels({quoted(name)}, epsilon=1, delta=1e-6))"


def _number(value: Any, column: Hashable, attribute: str) -> int | float:
    if is_number(value) and finite(value):
        scalar = plain(value)
        return int(scalar) if isinstance(scalar, numbers.Integral) else float(scalar)
    raise DeclarationError(f"{attribute} of column {column!r} must be finite numbers (got {kind(value)}).")


class _Kept:
    """Cached values of a column, which are no fields of it."""

    __slots__ = ("_ends", "_labels", "_meanings")
    _ends: tuple[float, float]
    _labels: tuple[Any, ...]
    _meanings: Any


@short_tracebacks
@dataclass(frozen=True, slots=True)
class Column(_Kept):
    """One declared column.

    Parameters
    ----------
    name : the column label.
    kind : what its cells are: ``"float"``, ``"integer"``, ``"boolean"`` or ``"category"``
        (labels only: strings, timestamps, anything that is not added up).
    nullable : whether a cell may be null.
    lower, upper : numeric bounds; both ends belong to the domain. A boolean has 0 and 1.
    categories : the declared labels in declared order. A boolean has ``(False, True)``.
    bins : strictly increasing edges that cover the bounds; where these are missing, the outer edges
        are the bounds.
    role : what the column is in a disclosure; ``"identifier"`` columns are never released.
    public_bounds : confirms that the bounds are known without the data, also where they equal its minimum or
        maximum. It changes no release, and takes no part in comparisons.
    timeline : of an integer column whose numbers stand for dates, which dates these are.
    missing : numbers and texts in the raw data that stand for a null, such as -99 and "n/a"; the column is
        nullable then. A protected frame holds nulls in their place, and declares none.
    ordered : whether the categories are declared in a meaningful order, by which labels may be compared. It
        changes no release, and takes no part in comparisons.
    private_labels : whether nobody knows the labels of a column of texts or whole numbers without the data.
        ``private.dp.find_labels`` finds them, and ``private.use`` declares them.

    Raises
    ------
    DeclarationError : the parts contradict each other; the message names the column.

    >>> Column("age", "integer", lower=18, upper=65, bins=(18, 30, 45, 65)).labels("crosstab")
    ('[18, 30)', '[30, 45)', '[45, 65]')
    """

    name: Hashable
    kind: Kind
    nullable: bool = False
    lower: float | int | None = None
    upper: float | int | None = None
    categories: tuple[Any, ...] | None = None
    bins: tuple[float, ...] | None = None
    role: Role | None = None
    public_bounds: bool = field(default=False, repr=False, compare=False)
    timeline: Timeline | None = None
    missing: tuple[int | float | str, ...] = field(default=(), repr=False)
    ordered: bool = field(default=False, repr=False, compare=False)
    private_labels: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not has_hash(self.name) or (isinstance(self.name, int) and self.name.bit_length() > 64):
            raise DeclarationError(
                f"the name of a column must be hashable, and a number one of 64 bits (got {kind(self.name)})."
            )
        self._check_choice("kind", get_args(Kind))
        if self.role is not None:
            self._check_choice("role", get_args(Role), 'metadata={"dp": {"role": "sensitive"}}, or no role')
        ends = got(self.lower), got(self.upper)  # as they were given
        public = flag(self.public_bounds, "public_bounds")
        ordered = flag(self.ordered, "ordered") and self.kind == "category" and self.categories is not None
        missing = self._checked_missing(self.missing)
        nullable = flag(self.nullable, "nullable") or bool(missing)
        settle(self, nullable=nullable, public_bounds=public, missing=missing, ordered=ordered)
        if self.categories is not None:
            settle(self, categories=self._checked_categories(self.categories))
        for end in ("lower", "upper"):
            if (bound := getattr(self, end)) is not None:
                settle(self, **{end: self._checked_bound(bound, end)})
        if self.kind == "boolean":
            self._complete_boolean()
        if self.bins is not None:
            edges = self._checked_bins(self.bins, ends)
            whole = self.kind == "integer"
            settle(self, bins=edges)
            for end, edge, inwards in (("lower", edges[0], math.ceil), ("upper", edges[-1], math.floor)):
                if getattr(self, end) is None:
                    settle(self, **{end: inwards(edge) if whole else edge})
        if self.interval.empty:
            raise DeclarationError(f"'lower' of column {self.name!r} must be below 'upper'.")
        if self.timeline is not None:
            self._check_timeline()
        if self.categories is not None and not self.hull.within(self.interval):
            raise DeclarationError(f"'categories' of column {self.name!r} must lie within its bounds.")
        if flag(self.private_labels, "private_labels"):
            self._check_private_labels()
        if any(code in (self.categories or ()) for code in self.missing):
            raise DeclarationError(
                f"'missing' and 'categories' of column {self.name!r} must have no value in common.",
                "leave the code out of the labels: it becomes a null",
            )

    def _check_private_labels(self) -> None:
        if self.kind not in ("category", "integer") or self.timeline is not None:
            raise DeclarationError(
                f"'private_labels' of column {self.name!r} is for texts and whole numbers (it is of kind "
                f"{self.noun!r})."
            )
        if self.categories is not None or self.bins is not None or self.role == "identifier":
            what = "'categories'" if self.categories else "'bins'" if self.bins else "the role 'identifier'"
            raise DeclarationError(
                f"'private_labels' of column {self.name!r} contradicts {what}.",
                'metadata={"dp": {"labels": "private"}} alone, or the labels that everybody knows',
            )

    def _check_choice(self, field: str, allowed: tuple[str, ...], hint: str | None = None) -> None:
        value = getattr(self, field)
        if not (isinstance(value, str) and value in allowed):
            raise DeclarationError(
                f"{field!r} of column {self.name!r} must be one of {', '.join(map(repr, allowed))} "
                f"(got {got(value)}).",
                hint,
            )

    def _checked_missing(self, missing: Any) -> tuple[Any, ...]:
        if not is_list(missing) or isinstance(missing, Mapping):
            raise DeclarationError(
                f"'missing' of column {self.name!r} must be a list of codes (got {got(missing)}).",
                'metadata={"dp": {"missing": [-99, "n/a"]}}',
            )
        codes = tuple(map(plain, self._items(missing, "missing")))
        for code in codes:
            if not isinstance(code, str) and not (is_number(code) and finite(code)):
                raise DeclarationError(
                    f"'missing' of column {self.name!r} must hold numbers and texts (got {kind(code)}).",
                    "nulls are declared by nullable=True",
                )
        return tuple(dict.fromkeys(codes))

    def _check_timeline(self) -> None:
        if not isinstance(self.timeline, Timeline):
            raise DeclarationError(f"'timeline' of column {self.name!r} must be a Timeline.")
        if self.missing:
            raise DeclarationError(
                f"'missing' of column {self.name!r} is for numbers and labels, and the column holds dates.",
                f"make them null first: df[{self.name!r}].mask(df[{self.name!r}] == DATE), and nullable=True",
            )
        numbers = self.kind == "integer" and self.categories is None and self.bins is None
        if not numbers or self.lower is None or self.upper is None:
            raise DeclarationError(
                f"'timeline' of column {self.name!r} needs an integer column with bounds, and no bins."
            )
        timeline, origin = self.timeline, self.timeline.origin
        known = first_and_last(timeline.unit, timeline.zone)
        if not self.interval.map(lambda end: origin + end).within(known):
            ends = " to ".join(timeline.text(end - origin) for end in known)
            raise DeclarationError(
                f"the dates of column {self.name!r} must be within {ends}, as their resolution is "
                f"{timeline.unit!r}.",
                'metadata={"dp": {"resolution": "us"}}' if timeline.unit == "ns" else "declare nearer dates",
            )
        if self.upper - self.lower > MOST_UNITS:
            raise DeclarationError(
                f"the bounds of column {self.name!r} hold more than 2**52 units of resolution "
                f"{timeline.unit!r}.",
                'metadata={"dp": {"resolution": "s"}}, or narrower bounds',
            )

    @property
    def interval(self) -> Interval:
        """The declared bounds, infinite where there are none."""
        return Interval.between(self.lower, self.upper)

    @property
    def hull(self) -> Interval:
        """The least interval that holds all labels of a numeric column; without labels its bounds."""
        if self.categories is None or self.kind == "category":
            return self.interval
        return Interval.around(self.categories)

    @property
    def noun(self) -> str:
        """The kind of the column, or "date"."""
        return self.kind if self.timeline is None else "date"

    def end_text(self, end: float | int) -> str:
        """Return a bound as a person writes it."""
        checked = real(end, "end")
        bound = end if is_number(end) else checked
        return number_text(bound) if self.timeline is None else self.timeline.text(bound)

    def _items(self, values: Any, field: str) -> list[Any]:
        try:
            return items(values, field)
        except ParameterError:
            reason = f"{field!r} of column {self.name!r} must hold at most {MOST_ITEMS:,} items."
        raise DeclarationError(reason)

    def _checked_categories(self, categories: Any) -> tuple[Any, ...]:
        if not is_list(categories):
            raise DeclarationError(
                f"'categories' of column {self.name!r} must be a sequence of labels (got {got(categories)})."
            )
        labels = tuple(map(plain, self._items(categories, "categories")))
        if not labels:
            raise DeclarationError(f"'categories' of column {self.name!r} must hold at least one label.")
        if any(is_null(label) for label in labels):
            raise DeclarationError(
                f"'categories' of column {self.name!r} must not hold a null.",
                "declare nulls by nullable=True",
            )
        if self.kind in ("float", "integer"):
            labels = tuple(_number(label, self.name, "'categories'") for label in labels)
            if self.kind == "integer":
                labels = tuple(self._whole(label, "categories") for label in labels)
        if self.kind == "boolean" and not all(isinstance(label, bool) for label in labels):
            raise DeclarationError(
                f"'categories' of the boolean column {self.name!r} must be truth values (got {got(labels)})."
            )
        if not all(map(has_hash, labels)):
            raise DeclarationError(f"'categories' of column {self.name!r} must be hashable labels.")
        if len(set(labels)) < len(labels):
            raise DeclarationError(
                f"'categories' of column {self.name!r} must be unique (got {got(labels)})."
            )
        return labels

    def _complete_boolean(self) -> None:
        if self.categories is None:
            labels = tuple(label for label in (False, True) if label in self.interval)
            if not labels:
                raise DeclarationError(f"the bounds of the boolean column {self.name!r} must hold 0 or 1.")
            settle(self, categories=labels)
        assert self.categories is not None
        lower, upper = self.hull
        settle(self, lower=int(lower), upper=int(upper))

    def _whole(self, number: int | float, field: str) -> int:
        if number != int(number):
            raise DeclarationError(f"{field!r} of the integer column {self.name!r} must be whole numbers.")
        return int(number)

    def _checked_bound(self, bound: Any, field: str) -> int | float:
        if self.kind == "category":
            raise DeclarationError(
                f"{field!r} of column {self.name!r} needs a numeric column (it is of kind 'category')."
            )
        number = _number(bound, self.name, repr(field))
        return self._whole(number, field) if self.kind == "integer" else number

    def _checked_bins(self, bins: Any, ends: tuple[str, str]) -> tuple[float, ...]:
        if self.kind not in ("float", "integer"):
            raise DeclarationError(
                f"'bins' of column {self.name!r} needs a numeric column (it is of kind {self.kind!r})."
            )
        if not is_list(bins):
            raise DeclarationError(
                f"'bins' of column {self.name!r} must be a sequence of edges (got {got(bins)}).",
                'metadata={"dp": {"bins": [0, 18, 65, 120]}}, from bound to bound',
            )
        edges = tuple(float(_number(edge, self.name, "'bins'")) for edge in self._items(bins, "bins"))
        if len(edges) < 2 or any(right <= left for left, right in pairwise(edges)):
            raise DeclarationError(
                f"'bins' of column {self.name!r} must be at least two strictly increasing edges "
                f"(got {got(bins)}).",
                'metadata={"dp": {"bins": [0, 18, 65, 120]}}',
            )
        if (self.lower is not None and edges[0] > self.lower) or (
            self.upper is not None and edges[-1] < self.upper
        ):
            raise DeclarationError(
                f"'bins' of column {self.name!r} must cover its bounds.",
                f'metadata={{"dp": {{"bins": [{ends[0]}, ..., {ends[1]}]}}}}',
            )
        return edges

    def _refuse_identifier(self, method: str) -> None:
        if self.role == "identifier":
            raise DeclarationError(
                f"{method!r} cannot release column {self.name!r}: its role is 'identifier'.",
                "leave the column out of the call, or declare another role",
            )

    def bounds(self, method: str) -> tuple[float, float]:
        """Return the declared lower and upper bound, for ``method``.

        Raises
        ------
        DeclarationError : a bound is missing, the column is not numeric, or it is an identifier.

        >>> Column("age", "integer", lower=18, upper=65).bounds("mean")
        (18.0, 65.0)
        """
        if getattr(self, "_ends", None) is None:
            settle(self, _ends=self._declared_ends(method))
        if self.timeline is not None and method not in DATE_METHODS:
            raise DeclarationError(
                f"{method!r} is for numbers, and column {self.name!r} holds dates.",
                f"days since a date are numbers: private.assign(days=private[{self.name!r}] - "
                f'"{self.end_text(self.lower or 0)}")',
            )
        return self._ends

    def _declared_ends(self, method: str) -> tuple[float, float]:
        self._refuse_identifier(method)
        if self.lower is not None and self.upper is not None:
            return float(self.lower), float(self.upper)
        reason = "is not numeric and has no bounds"
        hint = declaration_hint(self.name, self.kind, "bounds")
        if self.private_labels and self.kind == "category":
            hint = f"{find_labels_hint(self.name)}.dp.value_counts({quoted(self.name)}, epsilon=1)"
        elif self.kind == "category":
            hint = f"private.dp.value_counts({self.name!r}, epsilon=0.1) for labels; for a number, {hint}"
        else:
            search = f"private.use(private.dp.find_bounds({quoted(self.name)}, epsilon=0.1))"
            hint += f"; or, where nobody knows them, {search}"
            missing = [field for field in ("lower", "upper") if getattr(self, field) is None]
            reason = f"has no declared {' or '.join(missing)} bound"
        raise DeclarationError(f"{method!r} needs the bounds of column {self.name!r}, which {reason}.", hint)

    def labels(self, method: str) -> tuple[Any, ...]:
        """Return the declared cells in order, without the null cell, for ``method``.

        Bins give half-open intervals, the last one closed, as `numpy.histogram` has them; else the
        categories; else every integer between the bounds, if there are at most 1000.

        Raises
        ------
        DeclarationError : no cells are declared, or the column is an identifier.

        >>> Column("rooms", "integer", lower=1, upper=3).labels("value_counts")
        (1, 2, 3)
        """
        if getattr(self, "_labels", None) is None:
            settle(self, _labels=self._declared_labels(method))
        return self._labels

    def _declared_labels(self, method: str) -> tuple[Any, ...]:
        self._refuse_identifier(method)
        if self.timeline is not None:
            raise DeclarationError(
                f"{method!r} needs the cells of column {self.name!r}, which holds dates.",
                f'make periods of it first: private.cut({self.name!r}, freq="M")',
            )
        if self.bins is not None:
            edges = [number_text(edge) for edge in self.bins]
            last = len(edges) - 2
            return tuple(
                f"[{left}, {right}{']' if index == last else ')'}"
                for index, (left, right) in enumerate(pairwise(edges))
            )
        labels = self.enumerated()
        if not isinstance(labels, str):
            return labels
        if self.private_labels:
            raise DeclarationError(
                f"{method!r} needs the labels of column {self.name!r}, which are private.",
                find_labels_hint(self.name),
            )
        raise DeclarationError(
            f"{method!r} needs the cells of column {self.name!r}, which {labels} and no bins.",
            declaration_hint(self.name, self.kind, "labels"),
        )

    def enumerated(self) -> tuple[Any, ...] | str:
        """The categories, or the integers between the bounds; where there are too many or none, the reason.

        >>> Column("rooms", "integer", lower=1, upper=3).enumerated()
        (1, 2, 3)
        """
        if self.categories is not None:
            return self.categories
        if self.timeline is not None:
            return "holds dates"
        if self.private_labels:
            return "has private labels"
        if self.kind != "integer" or self.lower is None or self.upper is None:
            return "has no categories"
        count = int(self.upper) - int(self.lower) + 1
        if count <= MAX_INTEGER_CELLS:
            return tuple(range(int(self.lower), int(self.upper) + 1))
        return f"has {count} integers between its bounds (at most {MAX_INTEGER_CELLS})"

    def cells(self, method: str) -> int:
        """Return the number of declared cells, with the null cell where nulls are declared.

        Raises
        ------
        DeclarationError : as `labels`.

        >>> Column("smokes", "boolean", nullable=True).cells("value_counts")
        3
        """
        if getattr(self, "_labels", None) is None:
            self.labels(method)
        return len(self._labels) + int(self.nullable)

    def _canonical(self) -> str:
        """The declaration as text: equal declarations give equal text, in every process."""

        def bound(value: float | int | None) -> str:
            return "" if value is None else repr(float(value) if self.kind == "float" else int(value))

        def label(value: Any) -> str:
            return f"{type(value).__qualname__}:{value!r}"

        parts: list[Any] = [label(self.name), self.kind, self.nullable, bound(self.lower), bound(self.upper)]
        parts.append(None if self.categories is None else [label(value) for value in self.categories])
        parts.append(None if self.bins is None else [repr(edge) for edge in self.bins])
        parts.append(self.role)
        if self.timeline is not None:
            parts.append(repr(self.timeline))
        if self.missing:
            parts.append(["missing", *map(label, self.missing)])
        if self.private_labels:
            parts.append("private labels")
        return repr(parts)


def values_text(column: Column) -> str:
    """Return the declared labels, or else the declared bounds, as text; empty without either.

    >>> values_text(Column("age", "integer", lower=0, upper=120)), values_text(Column("sick", "boolean"))
    ('0 to 120', 'False, True')
    """
    if column.private_labels:
        return "private labels"
    if column.categories is not None:
        labels = [repr(label) for label in column.categories[:6]]
        more = len(column.categories) - len(labels)
        return ", ".join(labels) + (f", ... ({more} more)" if more else "")
    low, high = ("" if end is None else column.end_text(end) for end in (column.lower, column.upper))
    if not low:
        return f"up to {high}" if high else ""
    return f"{low} to {high}" if high else f"{low} and up"


def undeclared(domain: Domain, name: Hashable) -> DeclarationError:
    """Return the error for a name that no declared column has."""
    declared = ", ".join(repr(column) for column in domain.names) or "none"
    suggestion: object = nearest(name, domain.names)
    if isinstance(name, tuple) and name and all(label in domain for label in name):
        suggestion = list(name)  # a tuple is one label, as in pandas
    text = got(name)
    literal = text != kind(name)  # a tuple may be a row
    return DeclarationError(
        f"column {text} is not declared for release (declared: {declared})."
        f"{f' Did you mean {suggestion!r}?' if suggestion else ''}",
        declaration_hint(name if literal else "NAME", None),
    )


@short_tracebacks
@dataclass(frozen=True)
class Domain:
    """The declared columns, in declared order.

    Raises
    ------
    DeclarationError : two columns of one name, or a name by which pandas selects no column: a truth value,
        or one without a hash.

    >>> domain = Domain((Column("age", "integer", lower=18, upper=65), Column("member", "boolean")))
    >>> list(domain), domain["age"].upper
    (['age', 'member'], 65)
    """

    columns: tuple[Column, ...]
    # by hash: a label such as pandas.NA has no truth value when compared
    _by_name: dict[Hashable, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        settle(self, columns=tuple(items(self.columns, "columns")))
        by_name: dict[Hashable, Column] = {}
        for column in self.columns:
            if not isinstance(column, Column):
                raise DeclarationError(f"'columns' must hold Columns (got {kind(column)}).")
            if isinstance(column.name, bool | np.bool_):
                raise DeclarationError(
                    f"a column cannot have the truth value {bool(column.name)} as its name: pandas takes a "
                    "list of truth values for a choice of rows.",
                    f'rename it before it is protected: df.rename(columns={{{bool(column.name)}: "NAME"}})',
                )
            if column.name in by_name:
                raise DeclarationError(f"column {column.name!r} is declared twice.")
            by_name[column.name] = column
        settle(self, _by_name=by_name)

    def __getitem__(self, name: Hashable) -> Column:
        """The column of this name.

        Raises
        ------
        ParameterError : a list, a Series or another value that is no name.
        DeclarationError : no such column is declared; the message lists the declared names.
        """
        try:
            column = self._by_name.get(name)
        except TypeError:  # its error is raised after the handler, which is no context of it then
            column = None
        if column is not None:
            return column
        if not has_hash(name):
            raise ParameterError(f"a column is named by its label (got {got(name)}).", "one column at a time")
        raise undeclared(self, name)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return has_hash(name) and name in self._by_name

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The declared names, in order."""
        return tuple(self._by_name)

    def with_role(self, role: Role) -> tuple[Hashable, ...]:
        """Return the names of the columns declared with ``role``, in order.

        Raises
        ------
        ParameterError : not a role.

        >>> Domain((Column("age", "integer", role="quasi_identifier"),)).with_role("quasi_identifier")
        ('age',)
        """
        one_of(role, "role", get_args(Role))
        return tuple(column.name for column in self.columns if column.role == role)

    def replace(self, *columns: Column) -> Domain:
        """Return the domain with the columns of these names replaced; the order stays.

        Raises
        ------
        DeclarationError : a column of that name is not declared.

        >>> Domain((Column("age", "integer"),)).replace(Column("age", "integer", lower=0))["age"].lower
        0
        """
        for column in columns:
            self[instance(column, Column, "column").name]
        new = {column.name: column for column in columns}
        return Domain(tuple(new.get(column.name, column) for column in self.columns))

    @property
    def without_codes(self) -> Domain:
        """The domain of a protected frame: without missing-value codes, which are null there."""
        return Domain(tuple(replace(column, missing=()) for column in self.columns))

    @property
    def counted(self) -> Domain:
        """The domain with columns as engines hold them: numbers where dates are declared."""
        return Domain(tuple(replace(column, timeline=None) for column in self.columns))

    def fingerprint(self) -> str:
        """Return a hash of the declaration: 32 hexadecimal digits, the same in every process.

        >>> Domain((Column("age", "integer", lower=0),)).fingerprint()
        'cba7874ff50fcdf0a08a1a2d10b397c0'
        """
        digest = blake2b(digest_size=16)
        for column in self.columns:
            digest.update(column._canonical().encode() + b"\n")
        return digest.hexdigest()

    def _table(self) -> list[tuple[str, ...]]:
        head = ("name", "kind", "bounds or categories", "bins", "nullable", "role")
        coded = any(column.missing for column in self.columns)
        rows: list[tuple[str, ...]] = [(*head, "missing") if coded else head]
        for column in self.columns:
            values = values_text(column)
            bins = "" if column.bins is None else ", ".join(number_text(edge) for edge in column.bins)
            nullable = "yes" if column.nullable else "no"
            row = (printable(str(column.name)), column.noun, values, bins, nullable, column.role or "")
            rows.append((*row, ", ".join(map(repr, column.missing))) if coded else row)
        return rows

    def __repr__(self) -> str:
        rows = self._table()
        return aligned(rows, range(len(rows[0])))

    def _repr_html_(self) -> str:
        head, *body = self._table()
        return table(head, body, caption="Declared columns", text=range(1, len(head)))
