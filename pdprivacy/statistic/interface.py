"""What every statistic is made of: the public scope of its rows, its parts, and the engine it reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy import sensitivity
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.privacy import Neighbors
from pdprivacy.statistic.confidence import LAPLACE, Ends, Tail
from pdprivacy.statistic.quantity import Quantity

__all__ = [
    "NUMBERS",
    "ROWS",
    "Answer",
    "Engine",
    "GroupedSums",
    "Moments",
    "Noisy",
    "Part",
    "Ranks",
    "Read",
    "Scope",
    "Statistic",
    "Window",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Whole: TypeAlias = "Sequence[int] | NDArray[np.int64]"
Limits: TypeAlias = "Callable[[Sequence[Noisy]], tuple[Any, Any]]"


@dataclass(frozen=True, slots=True)
class Scope:
    """What is public about the rows that a statistic sees.

    ``rows``: under "replace_one" their number; under "add_remove" a public lower bound of it;
    None where it is private. ``filtered``: a record may leave the rows by changing its values.
    ``contribution``: how many records one unit may have; above one, their number is private.

    Every l1 and l2 sensitivity is ``contribution`` times the one of a record (`pdprivacy.sensitivity`).
    """

    neighbors: Neighbors
    rows: int | None
    filtered: bool = False
    contribution: int = 1

    def narrowed(self) -> Scope:
        """The scope of some of the rows, chosen by their values."""
        return replace(self, rows=None, filtered=True)

    def direct(self, columns: Sequence[Column], method: str, least: int) -> int | None:
        """The public number of records complete in ``columns``, or None where it is private.

        ``least``: how many rows the statistic needs under "replace_one"; one more under
        "add_remove", where a public lower bound below that is of no use.

        Raises ParameterError where the rows are publicly too few.
        """
        if self.filtered or self.rows is None or any(column.nullable for column in columns):
            return None
        if self.neighbors == "add_remove":
            return self.rows if self.rows > least else None
        if self.rows < least:
            raise ParameterError(
                f"{method!r} needs at least {least} rows under neighbors='replace_one'; the frame has fewer."
            )
        return self.rows

    @property
    def moves(self) -> int:
        """How many disjoint groups one unit can move."""
        return self.contribution * (1 if self.neighbors == "add_remove" else 2)

    def held(self, *, nullable: bool = False) -> tuple[int, int | None]:
        """How many records there are at least and at most, as far as that is public."""
        if self.filtered or self.rows is None:
            return 0, None
        most = self.rows if self.neighbors == "replace_one" else None
        return (0 if nullable else self.rows), most

    def public(self, *columns: Column) -> int | None:
        """The number of records complete in these columns, where that is public."""
        least, most = self.held(nullable=any(column.nullable for column in columns))
        return most if least == most else None

    def term(self, low: int, high: int, *, nullable: bool) -> int:
        """How far a sum moves whose terms lie in [low, high]; at least one step."""
        if low == high:
            return max(abs(low), 1) * self.contribution
        moved = sensitivity.sum(
            Fraction(low), Fraction(high), neighbors=self.neighbors, may_vanish=self.filtered or nullable
        )
        return int(moved) * self.contribution

    def count(self) -> int:
        """How far a number of records moves."""
        return sensitivity.count(neighbors=self.neighbors) * self.contribution

    def disjoint(self, low: int, high: int) -> tuple[int, int]:
        """The same for one such sum per group: l1, and squared l2."""
        l1, l2_squared = sensitivity.disjoint_sums(low, high, neighbors=self.neighbors)
        return l1 * self.contribution, l2_squared * self.contribution**2

    def cells(self) -> tuple[int, int]:
        """How far a table of counts moves: l1, and squared l2."""
        l1 = sensitivity.histogram(neighbors=self.neighbors)
        l2_squared = sensitivity.histogram(neighbors=self.neighbors, norm="l2", squared=True)
        return int(l1) * self.contribution, int(l2_squared) * self.contribution**2


@dataclass(frozen=True, slots=True)
class Part:
    """A vector of whole numbers that gets noise of one scale.

    Parameters
    ----------
    name : what it is, for the metadata.
    weight : its share of the loss (of all parts together: one).
    l1, l2_squared : sensitivities of the vector, in ``unit`` and its square.
    unit : what one whole number stands for, a power of two.
    size : length of the vector.
    counts : whether the numbers count records.
    moves : how many of the numbers one unit can move.
    lower, upper : public bounds of the numbers, in the unit of the statistic; None where there is none.
    limits : in their place, bounds that the noisy parts before this one imply.
    """

    name: str
    weight: Fraction
    l1: int
    l2_squared: int
    unit: Fraction
    size: int = 1
    counts: bool = False
    moves: int = 1
    lower: Fraction | None = None
    upper: Fraction | None = None
    limits: Limits | None = None

    @property
    def bounds(self) -> tuple[Fraction | float, Fraction | float]:
        """Lower and upper, infinite where there is none."""
        return (
            -math.inf if self.lower is None else self.lower,
            math.inf if self.upper is None else self.upper,
        )

    def within(self, noisy: Sequence[Noisy]) -> tuple[Any, Any]:
        """The bounds of the numbers, after the noisy parts before this one."""
        return self.bounds if self.limits is None else self.limits(noisy)


@dataclass(frozen=True, slots=True)
class Noisy:
    """A part with its noise: values in the unit of the statistic, and the noise's deviation and law."""

    values: Floats
    std: float
    tail: Tail = LAPLACE


@dataclass(frozen=True, slots=True)
class Answer:
    """Released values and how far off they may be (from the statistic of the data, not of a population).

    ``standard_error``: of the noise. ``rounding``: the most that rounding values to their grid moved
    the statistic; zero for whole numbers on a grid that holds them, and where it is below 2**-29 of
    the bounds (sums and means). ``lower``, ``upper``: what the statistic cannot leave, as far as that
    is public or follows from the noisy parts. ``interval``: the ends of the interval of a level around each
    number that is made of several noisy ones, before rounding; None for a noisy number of its own.
    ``uncounted``: the most that rounding moved the statistic for each record, where ``rounding`` leaves that
    out because the number of records is private (of a weighted mean, over the sum of the weights).
    ``effective_rows``: of weighted records, the least effective number of them, by noisy parts.
    ``effective``: the same of sums of so many cells.
    ``largest_term``: the most that one record adds to a cell.
    ``regression``: of coefficients, what else is published of the same noisy numbers; their errors count the
    sample, too.
    """

    values: Any
    standard_error: Any
    rounding: Any = 0.0
    lower: Any = -math.inf
    upper: Any = math.inf
    interval: Callable[[float], Ends] | None = None
    uncounted: Any = None
    effective_rows: Any = None
    effective: Callable[[Any, Any], Any] | None = None
    largest_term: float = 1.0
    regression: dict[str, Any] | None = None

    def arranged(self, arrange: Callable[[Floats], Floats]) -> Answer:
        """The same numbers in other places: ``arrange`` moves those of an array of their shape."""
        shape = np.shape(self.values)

        def moved(numbers: Any) -> Floats:
            return arrange(np.broadcast_to(np.asarray(numbers, np.float64), shape))

        def interval(level: float) -> Ends:
            assert self.interval is not None
            lower, upper = map(moved, self.interval(level))
            return lower, upper

        fields: dict[str, Any] = {name: moved(getattr(self, name)) for name in NUMBERS}
        fields["interval"] = None if self.interval is None else interval
        for name in ("uncounted", "effective_rows"):
            found = getattr(self, name)
            fields[name] = None if found is None else moved(found)
        return replace(self, **fields)


NUMBERS = ("values", "standard_error", "rounding", "lower", "upper")
"""The numbers of an `Answer`, all of one shape or the same for all."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sums and products over the complete records, in grid steps, exact."""

    rows: int
    sums: list[int]
    products: list[list[int]]


@dataclass(frozen=True, slots=True)
class GroupedSums:
    """Per group: complete records, sums and products per quantity and pair in grid steps, exact."""

    rows: list[int]
    sums: list[list[int]]
    products: dict[tuple[int, int], list[int]]


@dataclass(frozen=True, slots=True)
class Window:
    """All records with grid steps from ``low`` to ``high``: each step that has one, in order, and how many.

    ``below``: records with lower steps.
    """

    low: int
    high: int
    below: int
    values: Integers
    counts: Integers


class Ranks(Protocol):
    """The records of a column in the order of their grid steps, nulls left out.

    ``between``: a window that leaves at most ``first`` records (none, if that is not positive) below it and
    all but ``last`` above, and reaches the bound where it leaves none. With weights, every number of records
    is the sum of their weights in grid steps.
    """

    @property
    def rows(self) -> int: ...
    def between(self, first: int, last: int) -> Window: ...


class Engine(Protocol):
    """What a release needs of a table."""

    @property
    def rows(self) -> int: ...
    def present(self, column: Column) -> int: ...
    def table(self, columns: Sequence[Column], method: str) -> Integers: ...
    def bins(self, column: Column, edges: Sequence[float]) -> Integers: ...
    def sum(self, quantity: Quantity) -> tuple[int, int]: ...
    def ranks(self, quantity: Quantity, weight: Quantity | None = None) -> Ranks: ...
    def grouped_ranks(self, quantity: Quantity, keys: Sequence[Column], method: str) -> Sequence[Ranks]: ...
    def moments(self, quantities: Sequence[Quantity]) -> Moments: ...
    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums: ...
    def clusters(self, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums: ...


@dataclass(frozen=True, slots=True)
class Read:
    """One call of an `Engine` as a value: the ``name`` of the method and its arguments, or "rows"."""

    name: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def on(self, engine: Engine) -> Any:
        """Return the exact answer of the engine."""
        found = getattr(engine, self.name)
        return found if self.name == "rows" else found(*self.args, **dict(self.options))


ROWS = Read("rows")
"""The number of records."""


class Statistic(Protocol):
    """What a release needs of a statistic.

    ``offsets``: where each released number is a noisy number of one part (of the only one, or of
    the part at its place on the last axis), what is added to it, per part; None where numbers are
    made of several parts. ``ends``: public bounds of the released numbers, of all or per column,
    infinite where there is none. ``reads``: what is read of the table, from whose answers ``exact`` makes
    the whole numbers of the parts.
    """

    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def offsets(self) -> tuple[float, ...] | None: ...
    @property
    def ends(self) -> tuple[Any, Any]: ...
    @property
    def reads(self) -> tuple[Read, ...]: ...
    def exact(self, found: Sequence[Any]) -> list[Whole]: ...
    def finish(self, noisy: Sequence[Noisy]) -> Answer: ...


def scalar(
    name: str,
    weight: Fraction,
    moved: int,
    unit: Fraction,
    *,
    counts: bool = False,
    lower: Fraction | None = None,
    upper: Fraction | None = None,
    limits: Limits | None = None,
) -> Part:
    return Part(
        name,
        weight,
        moved,
        moved**2,
        unit,
        counts=counts,
        lower=lower,
        upper=upper,
        limits=limits,
    )


def ends_of_parts(parts: Sequence[Part], offsets: tuple[float, ...]) -> tuple[Floats, Floats]:
    """The bounds of released numbers that are a noisy number each."""
    lower, upper = (np.array([float(part.bounds[side]) for part in parts]) for side in (0, 1))
    return lower + np.array(offsets), upper + np.array(offsets)


def one_each(statistic: Statistic, noisy: Sequence[Noisy], rounding: Any = 0.0) -> Answer:
    """The answer that is one noisy number per part, with its offset."""
    values = np.array([part.values[0] for part in noisy]) + np.array(statistic.offsets)
    return Answer(values, np.array([part.std for part in noisy]), rounding, *statistic.ends)


def named(what: str, *columns: Column) -> str:
    return f"{what} of {', '.join(str(column.name) for column in columns)}"


def per_record(place: int, low: int, high: int, unit: Fraction, *, pooled: bool = False) -> Limits:
    """The limits of sums of terms in [low, high] units, over the records that the part at ``place`` counts.

    ``pooled``: one sum over all groups that the part counts.
    """
    least, most = float(low * unit), float(high * unit)

    def limits(noisy: Sequence[Noisy]) -> tuple[Any, Any]:
        rows = np.maximum(noisy[place].values, 0.0)
        held = float(rows.sum()) if pooled or rows.size == 1 else rows
        return held * least, held * most

    return limits


def pairs(size: int) -> list[tuple[int, int]]:
    """The entries of a symmetric matrix, the diagonal first: it bounds the others."""
    return [(i, i) for i in range(size)] + [(i, j) for i in range(size) for j in range(i + 1, size)]


def bounds_of(quantities: Sequence[Quantity]) -> tuple[Floats, Floats]:
    """The bounds of means of these quantities."""
    return np.array([q.lower for q in quantities]), np.array([q.upper for q in quantities])


def variance_bounds(quantities: Sequence[Quantity]) -> tuple[Floats, Floats]:
    """The bounds of their sample variances, of any number of records: at most that of two."""
    largest = [largest_variance(q.upper - q.lower, 2.0) for q in quantities]
    return np.zeros(len(quantities)), np.array(largest)


def largest_variance(width: float, rows: Any) -> Any:
    """The largest sample variance of ``rows`` values in a range of this width: n R^2 / (4 (n - 1)).

    Source: Shiffler, Harsha (1980).
    """
    rows = np.maximum(rows, 2.0)
    return width**2 / 4 * (rows / (rows - 1))


def matrix_bounds(values: Floats, largest: Floats) -> tuple[Floats, Floats]:
    """Lower and upper bounds of a covariance matrix: its variances, and what they allow the others."""
    deviations = np.sqrt(np.clip(np.diagonal(values), 0.0, largest))
    upper = np.outer(deviations, deviations)
    lower = -upper
    np.fill_diagonal(lower, 0.0)
    np.fill_diagonal(upper, largest)
    return lower, upper
