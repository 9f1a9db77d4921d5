"""Elements of statistics: bounded numbers per record, public facts of rows, noisy parts, and engines."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from pdprivacy.core import sensitivities as sensitivity
from pdprivacy.core.privacy import Neighbors
from pdprivacy.core.statistics.confidence import Ends, Noisy
from pdprivacy.core.statistics.rank_grid import RankGrid, checked_size
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError, got, kind
from pdprivacy.types import Floats, Integers, Whole, settle

Terms: TypeAlias = tuple[int, int, Fraction]  # the least and the most that a record adds, and their unit
Bounds: TypeAlias = tuple[Fraction | None, Fraction | None]
Limits: TypeAlias = "Callable[[Sequence[Noisy]], tuple[Any, Any]]"

SUM_BITS = 30
"""The bits of sums: at most 2**30 grid steps from the centre to a bound, and 2**47 in a block's sum."""


PRODUCT_BITS = 17
"""The bits of products: 2**17 steps to a bound, 2**34 in a product, 2**51 in a block, exact in a double."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A bounded number per record, in whole grid steps from a centre.

    The same bounds clamp the values and calibrate the noise: ``low`` and ``high`` are computed from them by
    the same arithmetic as the values of records.

    Parameters
    ----------
    column : the declared column that is read.
    lower, upper : its finite bounds.
    center : the number subtracted from each value.
    bits : the grid is the smallest power of two with at most 2**bits steps to a bound.
    unit : one grid step, in the unit of the column.
    anchor : the bits of ``zero``, the double that represents 0 steps.
    label : None, or a tuple of one declared label: the quantity is then 1 in records that hold the label, 0
        in others, and null for null.
    """

    column: Column
    lower: float
    upper: float
    center: float
    grid: float
    zero: float
    before: float
    shift: float
    anchor: int
    low: int
    high: int
    unit: Fraction
    label: tuple[Any] | None

    def __init__(
        self,
        column: Column,
        lower: float,
        upper: float,
        *,
        centered: bool,
        bits: int = SUM_BITS,
        label: tuple[Any] | None = None,
    ) -> None:
        size = checked_size(column, lower, upper)
        reach = (upper - lower) / 2 if centered else size
        reach = max(reach, size * 2.0**-40)
        grid = 2.0 ** (math.frexp(reach)[1] - bits)
        center = round((lower + upper) / 2 / grid) * grid if centered else 0.0
        # Adding 1.5 * 2**52 grid steps makes the floating-point unit round to the grid and leaves
        # the whole number of steps in the low bits. The same addition subtracts the centre if that
        # is exact; otherwise the centre is subtracted before.
        zero = 1.5 * 2.0**52 * grid
        rides = abs(center) < 2.0**50 * grid
        before, shift = (0.0, zero - center) if rides else (center, zero)
        shifted = zero, (lower - before) + shift, (upper - before) + shift
        anchor, low, high = struct.unpack("3q", struct.pack("3d", *shifted))
        settle(
            self,
            column=column,
            lower=float(lower),
            upper=float(upper),
            center=center,
            grid=grid,
            zero=zero,
            before=before,
            shift=shift,
            anchor=anchor,
            low=low - anchor,
            high=high - anchor,
            unit=Fraction(grid),
            label=label,
        )

    @property
    def weighs(self) -> bool:
        """Whether the quantity can be a weight: not centred, and never negative."""
        return self.center == 0 and self.low >= 0 and self.high > 0

    @property
    def reach(self) -> int:
        """Grid steps from the centre to the farther bound."""
        return max(abs(self.low), abs(self.high))

    @property
    def rounding(self) -> float:
        """The largest rounding error of a value."""
        return 0.0 if self.column.kind != "float" and self.grid <= 0.5 else self.grid / 2

    def product_rounding(self, other: Quantity) -> float:
        """Return the largest rounding error of the covariance with ``other``, or of the variance.

        For each of the two quantities, the covariance moves by at most the standard deviation of its rounding
        errors (half a grid step at most) times the standard deviation of the other values (half their range
        at most) times n / (n - 1), which is at most 2.
        """
        return self.rounding * (other.upper - other.lower) + other.rounding * (self.upper - self.lower)

    def anchored(self, block: Any, out: Floats) -> None:
        """Write the block into ``out``: clamped, centred, on the grid, anchored at ``zero``; NaN for null."""
        if block.dtype != np.float64:
            # clamped as doubles: narrower types would round the bounds
            np.copyto(out, block, casting="unsafe")
            block = out
        np.clip(block, self.lower, self.upper, out=out)
        if self.before:
            out -= self.before
        out += self.shift

    def centered(self, block: Any, out: Floats) -> None:
        """Write the block clamped, centred and on the grid into ``out``; NaN for null."""
        self.anchored(block, out)
        out -= self.zero


def product_roundings(quantities: Sequence[Quantity]) -> Floats:
    """Return `Quantity.product_rounding` of each pair, as a matrix."""
    return np.array([[first.product_rounding(second) for second in quantities] for first in quantities])


def quantity(column: Column, method: str, *, centered: bool = True, products: bool = False) -> Quantity:
    """Return the bounded number that ``method`` reads from ``column``."""
    lower, upper = column.bounds(method)
    return Quantity(column, lower, upper, centered=centered, bits=PRODUCT_BITS if products else SUM_BITS)


def indicator(
    column: Column, method: str, value: Any, *, centered: bool = True, products: bool = False
) -> Quantity:
    """Return the quantity that is 1 in records with the declared label ``value`` and 0 in others."""
    labels = column.labels(method)
    try:
        known = value in set(labels)
    except TypeError:  # no hash
        known = False
    if not known:
        declared = ", ".join(got(label) for label in labels[:20]) + (", ..." if len(labels) > 20 else "")
        raise ParameterError(
            f"'value' is not a declared label of column {column.name!r} (got {kind(value)}).",
            f"private.dp.{method}({column.name!r}, {got(labels[0])}, epsilon=0.1), of the labels {declared}.",
        )
    bits = PRODUCT_BITS if products else SUM_BITS
    return Quantity(column, 0.0, 1.0, centered=centered, bits=bits, label=(value,))


@dataclass(frozen=True, slots=True)
class Scope:
    """Public facts of the rows that a statistic reads.

    ``rows``: the number of rows under "replace_one", a public lower bound of it under "add_remove", None
    where it is private. ``filtered``: whether a record may leave the rows by changing its values.
    ``contribution``: the number of records that one unit may have; above 1, the number of rows is private.

    Every l0, l1 and l2 sensitivity is ``contribution`` times that of one record (`pdprivacy.sensitivity`).
    """

    neighbors: Neighbors
    rows: int | None
    filtered: bool = False
    contribution: int = 1

    def of_subset(self) -> Scope:
        """Return the scope of a subset of the rows, chosen by their values."""
        return replace(self, rows=None, filtered=True)

    def direct_rows(self, columns: Sequence[Column], method: str, least: int) -> int | None:
        """Return the public number of records complete in ``columns``, or None where it is private.

        ``least``: the number of rows that the statistic needs under "replace_one". Under "add_remove" it
        needs one more, and a smaller public lower bound counts as private.

        Raises ParameterError if a public number of rows is too small.
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
    def l0(self) -> int:
        """The l0 sensitivity of numbers per disjoint group: how many groups one unit can change."""
        return sensitivity.disjoint_groups(neighbors=self.neighbors) * self.contribution

    def row_bounds(self, *, nullable: bool = False) -> tuple[int, int | None]:
        """Return public bounds of the number of records: 0 and None where the number is private."""
        if self.filtered or self.rows is None:
            return 0, None
        most = self.rows if self.neighbors == "replace_one" else None
        return (0 if nullable else self.rows), most

    def complete_rows(self, *columns: Column) -> int | None:
        """Return the number of records complete in these columns, or None where it is private."""
        least, most = self.row_bounds(nullable=any(column.nullable for column in columns))
        return most if least == most else None

    @lru_cache(maxsize=1024)  # noqa: B019  (a scope is a value, and the same for all releases of a frame)
    def sum_sensitivity(self, low: int, high: int, *, nullable: bool) -> int:
        """Return the sensitivity of a sum of terms in [low, high], at least one step."""
        if low == high:
            return max(abs(low), 1) * self.contribution
        change = sensitivity.sum(
            Fraction(low), Fraction(high), neighbors=self.neighbors, may_vanish=self.filtered or nullable
        )
        return int(change) * self.contribution

    @lru_cache(maxsize=1024)  # noqa: B019
    def count_sensitivity(self) -> int:
        """Return the sensitivity of a number of records."""
        return sensitivity.count(neighbors=self.neighbors) * self.contribution

    def disjoint_sum_sensitivities(self, low: int, high: int) -> tuple[int, int]:
        """Return the l1 and the squared l2 sensitivity of sums of terms in [low, high] per disjoint group."""
        l1, l2_squared = sensitivity.disjoint_sums(low, high, neighbors=self.neighbors)
        return l1 * self.contribution, l2_squared * self.contribution**2

    @lru_cache(maxsize=1024)  # noqa: B019
    def table_sensitivities(self, levels: int = 1) -> tuple[int, int]:
        """Return the l1 and the squared l2 sensitivity of a table of counts, or of a tree of counts."""
        l1 = sensitivity.histogram(neighbors=self.neighbors, levels=levels)
        l2_squared = sensitivity.histogram(neighbors=self.neighbors, norm="l2", squared=True, levels=levels)
        return int(l1) * self.contribution, int(l2_squared) * self.contribution**2


@dataclass(frozen=True, slots=True)
class Part:
    """A vector of whole numbers to which noise of one scale is added.

    Parameters
    ----------
    name : the name of the part in the metadata.
    weight : the share of the loss; the weights of all parts sum to 1.
    l1, l2_squared : sensitivities of the vector, in ``unit`` and its square.
    l0 : the l0 sensitivity: how many of the numbers one unit can change.
    unit : the size of one whole step, a power of two.
    size : length of the vector.
    counts : whether the numbers count records.
    lower, upper : public bounds of the numbers, in the unit of the statistic; None without a bound.
    limits : instead of ``lower`` and ``upper``, bounds that follow from the noisy parts before this part.
    """

    name: str
    weight: Fraction
    l1: int
    l2_squared: int
    unit: Fraction
    size: int = 1
    counts: bool = False
    l0: int = 1
    lower: Fraction | None = None
    upper: Fraction | None = None
    limits: Limits | None = None

    @property
    def linf(self) -> int:
        """The linf sensitivity: one whole number moves by at most the root of the sum of all squares."""
        return max(math.isqrt(self.l2_squared), -(-self.l1 // self.l0))

    @property
    def bounds(self) -> tuple[Fraction | float, Fraction | float]:
        """The lower and the upper bound, infinite for None."""
        return (
            -math.inf if self.lower is None else self.lower,
            math.inf if self.upper is None else self.upper,
        )

    def bounds_given(self, noisy: Sequence[Noisy]) -> tuple[Any, Any]:
        """Return the bounds of the numbers, given the noisy parts before this part."""
        return self.bounds if self.limits is None else self.limits(noisy)


@dataclass(frozen=True, slots=True)
class Answer:
    """Released values and their errors (against the statistic of the data, not of a population).

    ``standard_error``: the standard error of the noise.
    ``rounding``: the largest error from rounding values to their grid; zero for whole numbers on a grid that
    holds them, and where it is below 2**-29 of the bounds (sums and means).
    ``lower``, ``upper``: bounds of the statistic that are public or follow from the noisy parts.
    ``interval``: a function that returns, for a level, the ends of the intervals of numbers that are computed
    from several noisy numbers, before rounding; None where each number is one noisy number.
    ``rounding_per_record``: the largest rounding error of a record, where ``rounding`` leaves it out because
    the number of records is private (for a weighted mean, to be divided by the sum of the weights).
    ``effective_rows``: the least effective sample size of weighted records, from the noisy parts.
    ``effective_rows_of_sums``: a function that returns it for sums of several cells.
    ``largest_term``: the most that one record adds to a cell.
    ``regression``: further results of a regression from the same noisy numbers; the errors of coefficients
    include the sampling error.
    """

    values: Any
    standard_error: Any
    rounding: Any = 0.0
    lower: Any = -math.inf
    upper: Any = math.inf
    interval: Callable[[float], Ends] | None = None
    rounding_per_record: Any = None
    effective_rows: Any = None
    effective_rows_of_sums: Callable[[Any, Any], Any] | None = None
    largest_term: float = 1.0
    regression: dict[str, Any] | None = None

    def arranged(self, arrange: Callable[[Floats], Floats]) -> Answer:
        """Return the answer with ``arrange`` applied to each array of its numbers."""
        shape = np.shape(self.values)

        def moved(numbers: Any) -> Floats:
            return arrange(np.broadcast_to(np.asarray(numbers, np.float64), shape))

        def interval(level: float) -> Ends:
            assert self.interval is not None
            lower, upper = map(moved, self.interval(level))
            return lower, upper

        fields: dict[str, Any] = {name: moved(getattr(self, name)) for name in NUMBERS}
        fields["interval"] = None if self.interval is None else interval
        for name in ("rounding_per_record", "effective_rows"):
            numbers_of_field = getattr(self, name)
            fields[name] = None if numbers_of_field is None else moved(numbers_of_field)
        return replace(self, **fields)


NUMBERS = ("values", "standard_error", "rounding", "lower", "upper")
"""The numbers of an `Answer`: arrays of the same shape, or scalars for all values."""


@dataclass(frozen=True, slots=True)
class GroupedSums:
    """Exact numbers per group: complete records, sums per quantity, and sums of products per pair of them.

    Sums are in grid steps. Without keys, all records are one group.
    """

    rows: list[int]
    sums: list[list[int]]
    products: dict[tuple[int, int], list[int]]


@dataclass(frozen=True, slots=True)
class Window:
    """All records with grid steps from ``low`` to ``high``.

    ``below``: the number of records with lower steps. ``values``: the steps that occur, in order. ``counts``:
    the number of records of each.
    """

    low: int
    high: int
    below: int
    values: Integers
    counts: Integers


class Ranks(Protocol):
    """The records of a column in the order of their steps on a grid of candidates, nulls left out.

    ``between``: return a window with at most ``first`` records below it (0 if ``first`` is negative) and with
    at least ``last`` records, or all, up to its end. It reaches the bound of the grid on a side without
    records outside. With weights, sums of weights in grid steps replace numbers of records.
    """

    @property
    def rows(self) -> int: ...
    def between(self, first: int, last: int) -> Window: ...


class Engine(Protocol):
    """The interface of a table to releases."""

    @property
    def rows(self) -> int: ...
    def present(self, column: Column) -> int: ...
    def table(self, columns: Sequence[Column], method: str) -> Integers: ...
    def labels(self, columns: Sequence[Column]) -> dict[tuple[Any, ...], int]: ...
    def bins(self, column: Column, edges: Sequence[float]) -> Integers: ...
    def ranks(self, grid: RankGrid, weight: Quantity | None = None) -> Ranks: ...
    def grouped_ranks(self, grid: RankGrid, keys: Sequence[Column], method: str) -> Sequence[Ranks]: ...
    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums: ...
    def clusters(self, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums: ...


@dataclass(frozen=True, slots=True)
class Read:
    """A call of an `Engine` as a value: the ``name`` of the method and its arguments, or "rows"."""

    name: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def on(self, engine: Engine) -> Any:
        """Return the exact answer of the engine."""
        answer = getattr(engine, self.name)
        return answer if self.name == "rows" else answer(*self.args, **dict(self.options))


ROWS = Read("rows")
"""The read of the number of records."""


def grouped(
    quantities: tuple[Quantity, ...],
    keys: tuple[Column, ...] = (),
    method: str = "groupby",
    *,
    products: bool = True,
) -> Read:
    """Return the read of the counts, sums and products of records complete in ``quantities``, per group."""
    return Read("grouped", (quantities, keys, method), (("products", products),))


def groups_of(keys: Sequence[Column], method: str = "groupby") -> int:
    """Return the number of declared groups of ``keys``, 1 without keys."""
    return math.prod([key.cells(method) for key in keys])


class Statistic(Protocol):
    """The interface of a statistic to releases; by default, each released number is one noisy number.

    ``offsets``: the number per part that is added to its noisy numbers, where each released number is one
    noisy number (of the only part, or of the part at its place on the last axis); None where released numbers
    are computed from several parts.
    ``ends``: public bounds of the released numbers, for all or per column, infinite without a bound.
    ``limits``: the bounds that released numbers are projected onto, infinite for counts and sums, because
    biases would add up in their totals; None where no number has any. They are certain, so they do not follow
    from noisy parts.
    ``reads``: the reads of the table. ``exact`` returns the whole numbers of the parts from their answers,
    and ``finish`` returns the answer from the noisy parts.
    """

    __slots__ = ()

    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def offsets(self) -> tuple[float, ...] | None:
        return (0.0,) * len(self.parts)

    @property
    def ends(self) -> tuple[Any, Any]:
        offsets = self.offsets
        return (-math.inf, math.inf) if offsets is None else ends_of_parts(self.parts, offsets)

    @property
    def limits(self) -> tuple[Any, Any] | None:
        return None

    @property
    def reads(self) -> tuple[Read, ...]: ...
    def exact(self, answers: Sequence[Any]) -> list[Whole]: ...
    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return answer_of_parts(self, noisy)


def part_of_counts(scope: Scope, groups: int | None, name: str, weight: Fraction) -> Part:
    """Return the part that counts records per declared group, or all records if ``groups`` is None."""
    count, size, l0 = scope.count_sensitivity(), groups or 1, scope.l0 if groups else 1
    sensitivities = scope.table_sensitivities() if groups else (count, count**2)
    return Part(name, weight, *sensitivities, Fraction(1), size, counts=True, l0=l0, lower=Fraction(0))


def part_of_sums(
    scope: Scope,
    groups: int | None,
    name: str,
    weight: Fraction,
    terms: Terms,
    bounds: Bounds | Limits,
    *,
    nullable: bool,
) -> Part:
    """Return the part of sums of bounded terms per declared group, or of all records if ``groups`` is None.

    ``nullable``: whether a record may have no term.
    """
    low, high, unit = terms
    if groups is None:
        l1, size, l0 = scope.sum_sensitivity(low, high, nullable=nullable), 1, 1
        l2_squared = l1**2
    else:
        (l1, l2_squared), size, l0 = scope.disjoint_sum_sensitivities(low, high), groups, scope.l0
    if callable(bounds):
        return Part(name, weight, l1, l2_squared, unit, size, l0=l0, limits=bounds)
    return Part(name, weight, l1, l2_squared, unit, size, False, l0, *bounds)


def bounds_of_sums(low: int, high: int, unit: Fraction, least: int = 0, most: int | None = None) -> Bounds:
    """Return the public bounds of sums of at least ``least`` terms, and at most ``most`` if it is given."""
    sums = [None if rows is None else (rows * low * unit, rows * high * unit) for rows in (least, most)]
    lower, upper = sums[low < 0], sums[high > 0]
    return None if lower is None else lower[0], None if upper is None else upper[1]


def ends_of_parts(parts: Sequence[Part], offsets: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return the bounds of released numbers that are one noisy number each."""
    lower, upper = (np.array([float(part.bounds[side]) for part in parts]) for side in (0, 1))
    return lower + np.array(offsets), upper + np.array(offsets)


def answer_of_parts(statistic: Statistic, noisy: Sequence[Noisy], rounding: Any = 0.0) -> Answer:
    """Return the answer of one noisy number per part, with the offset of the part."""
    values = np.array([part.values[0] for part in noisy]) + np.array(statistic.offsets)
    return Answer(values, np.array([part.std for part in noisy]), rounding, *statistic.ends)


def part_name(statistic: str, *columns: Column) -> str:
    """Return the name of a part, such as "sum of age"."""
    return f"{statistic} of {', '.join([str(column.name) for column in columns])}"


def limits_per_record(position: int, low: int, high: int, unit: Fraction, *, pooled: bool = False) -> Limits:
    """Return the limits of sums of terms in [low, high] units over records that an earlier part counts.

    ``position``: that of the counting part. ``pooled``: whether there is one sum over all groups.
    """
    least, most = low * float(unit), high * float(unit)

    def limits(noisy: Sequence[Noisy]) -> tuple[Any, Any]:
        rows = np.maximum(noisy[position].values, 0.0)
        counted = float(rows.sum()) if pooled or rows.size == 1 else rows
        return counted * least, counted * most

    return limits


def pairs(size: int) -> list[tuple[int, int]]:
    """Return the entries of a symmetric matrix, the diagonal first because it bounds the others."""
    return [(i, i) for i in range(size)] + [(i, j) for i in range(size) for j in range(i + 1, size)]


def bounds_of(quantities: Sequence[Quantity]) -> tuple[Floats, Floats]:
    """Return the bounds of means of these quantities."""
    return np.array([q.lower for q in quantities]), np.array([q.upper for q in quantities])


def largest_variance(width: Any, rows: Any) -> Any:
    """Return the largest sample variance of ``rows`` values in a range of this width: n R^2 / (4 (n - 1)).

    Source: Shiffler, Harsha (1980).
    """
    rows = np.maximum(rows, 2.0)
    return width**2 / 4 * (rows / (rows - 1))


def matrix_bounds(values: Floats, largest: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of a covariance matrix: of its variances, and of its covariances by the variances."""
    deviations = np.sqrt(np.clip(np.diagonal(values), 0.0, largest))
    upper = np.outer(deviations, deviations)
    lower = -upper
    np.fill_diagonal(lower, 0.0)
    np.fill_diagonal(upper, largest)
    return lower, upper


def matrix_limits(largest: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of the entries of any covariance matrix with variances of at most ``largest``."""
    return matrix_bounds(np.diag(largest), largest)
