"""Clusterings: the rounds of k-means by noisy sums and counts, and the swaps of k-medians by their costs.

k-means starts without any data. k-medians walks over sets of a few points of a finite universe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.core.noise import Source
from pdprivacy.core.statistics.confidence import Ends, Noisy
from pdprivacy.core.statistics.interface import (
    Answer,
    Part,
    Quantity,
    Read,
    Scope,
    Statistic,
    bounds_of,
    part_name,
)
from pdprivacy.core.statistics.sums import mean_interval
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import DeclarationError
from pdprivacy.types import Floats, Integers, Whole

Steps: TypeAlias = NDArray[np.uint16]

RHO = 0.225
"""The distance of a centre from the middle of the domain on each axis, in parts of the range (Su et al.)."""

TRIES = 100
"""The number of failed draws of one starting centre after which a distance counts as too large."""

TOGETHER = 10
"""The number of draws that are made at a time."""

DIAMETER = 2**15
"""The largest distance in the universe, in the whole steps to which distances are rounded."""

ROWS, COLUMNS = 64, 512
"""The shape of a block of distances, which fits the cache."""

FEW = 8
"""The largest number of runs of records with the same nearest point for which a product is quicker."""


def count_share(dimensions: int, *, gaussian: bool) -> Fraction:
    """Return the counts' share of a round's loss; the sums of each coordinate share the rest equally.

    This share minimises the mean squared error of a centre at 2 rho from the middle on each axis. The counts
    and the sum of one coordinate have shares of cbrt(4 d rho^2) : 1 where deviations are proportional to
    1 / share (Laplace), and of sqrt(4 d rho^2) : 1 where they are proportional to 1 / sqrt(share) (Gaussian).

    Source: Su, Cao, Li, Bertino, Jin (2016), "Differentially private k-means clustering".

    >>> count_share(2, gaussian=False)
    Fraction(37, 137)
    """
    ratio = (4 * dimensions * RHO**2) ** (1 / 2 if gaussian else 1 / 3)
    part = Fraction(max(round(100 * ratio), 1), 100)
    return part / (part + dimensions)


def packed(count: int, dimensions: int, source: Source) -> tuple[Floats, float]:
    """Return random points in [-1, 1]^dimensions that are far from each other, and their distance.

    All points are at least this distance from the boundary and twice this distance from each other. A
    bisection finds the largest distance; it counts a distance as too large when `TRIES` draws of one point
    fail in a row.

    Source: the sphere packing of Su et al. (2016).

    >>> from pdprivacy.core.noise import source
    >>> points, distance = packed(1, 2, source(1))
    >>> distance, points.shape
    (1.0, (1, 2))
    """
    low, high = 0.0, 1.0
    centres, tried = None, high
    while centres is None or high - low > high / 64:
        points = _packed(count, dimensions, tried, source)
        if points is None:
            high = tried
        else:
            centres, low = points, tried
        tried = (low + high) / 2
    return centres, low


def _packed(count: int, dimensions: int, distance: float, source: Source) -> Floats | None:
    points = np.empty((count, dimensions))
    for position in range(count):
        for _ in range(TRIES // TOGETHER):
            words = source.words(TOGETHER * dimensions, np.uint32).reshape(TOGETHER, dimensions)
            drawn = (words.astype(np.float64) / 2**31 - 1) * (1 - distance)
            squares = np.zeros((TOGETHER, position))
            for axis in range(dimensions):
                squares += (drawn[:, axis, np.newaxis] - points[:position, axis]) ** 2
            fitting = np.flatnonzero(squares.min(axis=1, initial=np.inf) >= (2 * distance) ** 2)
            if len(fitting):
                points[position] = drawn[fitting[0]]
                break
        else:
            return None
    return points


@dataclass(frozen=True, slots=True)
class Clusters(Statistic):
    """One round of k-means: the counts and sums of the records nearest to each public centre.

    A record is in one cluster, so counts and sums are those of disjoint groups. Each coordinate has its own
    sums, because a record moves all of them. ``centers``: one row per cluster, in the units of the columns.
    ``share``: the share of the loss for the counts.

    Source: Blum, Dwork, McSherry, Nissim (2005), "Practical privacy: the SuLQ framework".
    """

    quantities: tuple[Quantity, ...]
    centers: Floats
    share: Fraction
    scope: Scope
    offsets = None

    def __eq__(self, other: object) -> bool:
        """Compare all fields; an array compares number by number."""
        if not isinstance(other, Clusters) or not np.array_equal(self.centers, other.centers):
            return False
        return (self.quantities, self.share, self.scope) == (other.quantities, other.share, other.scope)

    @property
    def parts(self) -> tuple[Part, ...]:
        size = len(self.centers)
        l0 = min(self.scope.l0, size)
        counts = Part(
            "counts", self.share, *self.scope.table_sensitivities(), Fraction(1), size, counts=True, l0=l0
        )
        each = (1 - self.share) / len(self.quantities)
        sums = [
            Part(
                part_name("sums", q.column),
                each,
                *self.scope.disjoint_sum_sensitivities(q.low, q.high),
                q.unit,
                size,
                l0=l0,
            )
            for q in self.quantities
        ]
        return (counts, *sums)

    @property
    def ends(self) -> tuple[Any, Any]:
        return bounds_of(self.quantities)

    @property
    def reads(self) -> tuple[Read, ...]:
        return (Read("clusters", (self.quantities, self.centers)),)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        (groups,) = answers
        return [groups.rows, *groups.sums]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        """Return noisy sums over noisy counts; a cluster with a noisy count below 1 keeps its centre."""
        counts = noisy[0]
        rows, empty = np.maximum(counts.values, 1.0), counts.values < 1
        values, errors = np.empty(self.centers.shape), np.empty(self.centers.shape)
        for column, (q, total) in enumerate(zip(self.quantities, noisy[1:], strict=True)):
            offset = np.clip(total.values / rows, q.lower - q.center, q.upper - q.center)
            moved = np.clip(q.center + offset, q.lower, q.upper)
            values[:, column] = np.where(empty, self.centers[:, column], moved)
            error = np.hypot(total.std, offset * counts.std) / rows
            errors[:, column] = np.where(empty, math.nan, error)

        def interval(level: float) -> Ends:
            ends = [
                mean_interval(q, counts, total, level)
                for q, total in zip(self.quantities, noisy[1:], strict=True)
            ]
            lower, upper = (np.stack(side, axis=-1) for side in zip(*ends, strict=True))
            return np.where(np.isnan(errors), np.nan, lower), np.where(np.isnan(errors), np.nan, upper)

        return Answer(values, errors, 0.0, *self.ends, interval)

    def after(self, noisy: Sequence[Noisy]) -> Clusters:
        """Return the next round, around the centres that follow from the noisy numbers of this round."""
        return replace(self, centers=self.finish(noisy).values)


# ---------------------------------------------------------------- k-medians


def numbers_of(column: Column) -> tuple[float, ...]:
    """Return the number of each declared cell of a column: its label, or the middle of its bin.

    Raises
    ------
    DeclarationError : the column declares no cells, or its labels are not numbers.

    >>> numbers_of(Column("age", "integer", lower=18, upper=65, bins=(18, 30, 65)))
    (24.0, 47.5)
    """
    if column.kind == "category":
        raise DeclarationError(f"'kmedian' needs numbers, and column {column.name!r} holds labels.")
    labels = column.labels("kmedian")
    if column.bins is not None:
        return tuple(left + (right - left) / 2 for left, right in pairwise(column.bins))
    return tuple(float(label) for label in labels)


@dataclass(frozen=True)
class Medians:
    """A walk over sets of points, one swap at a time, which ends with the choice of one of the sets.

    The universe holds every combination of declared cells. The cost of a set is the sum of the distances of
    all records to its nearest point. Ranges are scaled to length one, and distances are rounded to whole
    steps, the largest to `DIAMETER`.

    Source: Gupta, Ligett, McSherry, Roth, Talwar (2010), "Differentially private combinatorial
    optimization", Algorithm 2 (k-median).
    """

    columns: tuple[Column, ...]
    start: tuple[int, ...]
    steps: int
    scope: Scope

    @property
    def selections(self) -> int:
        """Number of selections of a candidate by its cost."""
        return self.steps + 1

    @property
    def sensitivity(self) -> int:
        """The sensitivity of a cost, a sum of distances between 0 and the diameter."""
        return self.scope.sum_sensitivity(0, DIAMETER, nullable=False)

    @property
    def monotone(self) -> bool:
        """Whether all costs move the same way: an added record lowers no cost."""
        return self.scope.neighbors == "add_remove"

    @cached_property
    def points(self) -> Floats:
        """The universe, one row per point, in the units of the columns."""
        return np.array(list(product(*map(numbers_of, self.columns))))

    @cached_property
    def _scaled(self) -> tuple[Floats, float]:
        """The universe with ranges of length one, and the distance of its farthest points."""
        widths = np.ptp(self.points, axis=0)
        scaled = np.divide(self.points, widths, out=np.zeros_like(self.points), where=widths > 0)
        return scaled, math.sqrt(np.count_nonzero(widths))

    @property
    def step(self) -> float:
        """One whole step of a distance, in lengths of a range."""
        return (self._scaled[1] or 1.0) / DIAMETER

    def distances(self, first: Integers) -> Steps:
        """Return the distances from these points of the universe to all its points, in whole steps."""
        scaled, widest = self._scaled
        distances = np.zeros((len(first), len(scaled)), dtype=np.uint16)
        rows = max((1 << 18) // len(scaled), 1)
        for start in range(0, len(first), rows):
            some = first[start : start + rows]
            squares = np.zeros((len(some), len(scaled)))
            for axis in scaled.T:
                squares += (axis[some, np.newaxis] - axis) ** 2
            whole = np.rint(np.sqrt(squares) * (DIAMETER / (widest or 1.0)))
            distances[start : start + rows] = np.minimum(whole, DIAMETER)
        return distances

    @property
    def read(self) -> Read:
        """The read of the records per declared cell of the columns, cells of nulls included."""
        return Read("table", (self.columns, "kmedian"))

    def point_counts(self, table: Integers) -> Integers:
        """Return the number of records at each point of the universe; records with a null are left out."""
        cells = table.reshape([c.cells("kmedian") for c in self.columns])
        return cells[tuple(slice(len(c.labels("kmedian"))) for c in self.columns)].ravel()

    def exact(self, table: Integers) -> tuple[Steps, Floats]:
        """Return the distances from the points that hold records to all points, and the records at each."""
        counts = self.point_counts(table)
        records = np.flatnonzero(counts)
        return self.distances(records), counts[records].astype(np.float64)

    def costs(self, exact: tuple[Steps, Floats], sets: Sequence[tuple[int, ...]]) -> Integers:
        """Return the exact costs of the next candidates, given the ``sets`` so far.

        The candidates are the swaps of the last set; after the last swap they are all sets.
        """
        distances, weights = exact
        if len(sets) <= self.steps:
            return _swaps(distances, weights, sets[-1]).ravel()
        # whole numbers below 2**53, as long as there are fewer than 2**38 records
        each = [int(weights @ distances[:, chosen].min(axis=1).astype(np.float64)) for chosen in sets]
        return np.array(each)

    def set_after_swap(self, chosen: Sequence[int], swap: int) -> tuple[int, ...]:
        """Return the set after swap ``swap``; swaps are ordered by leaving point, then by entering point."""
        out, into = divmod(swap, len(self.points) - len(chosen))
        free = np.delete(np.arange(len(self.points)), chosen)
        return (*chosen[:out], int(free[into]), *chosen[out + 1 :])

    def points_of_set(self, chosen: Sequence[int]) -> Floats:
        """Return the points of a set, in the order of the universe."""
        return self.points[sorted(chosen)]


def _swaps(distances: Steps, counts: Floats, chosen: Sequence[int]) -> Integers:
    """Return the cost after each swap: one row per leaving point, one column per entering point."""
    size, universe = len(chosen), distances.shape[1]
    near = distances[:, list(chosen)]
    of = near.argmin(axis=1)
    # a record only moves when its nearest point leaves: sort the records by that point
    order = np.argsort(of, kind="stable")
    of, counts = of[order], counts[order]
    # the distance to the nearest point, and to the next point, which counts where the nearest has left
    near = np.partition(near, 1, axis=1)[order] if size > 1 else near[order]
    first = near[:, 0].astype(np.float64)
    second = near[:, 1].astype(np.float64) if size > 1 else np.full(len(near), float(DIAMETER))
    stayed, costs = np.zeros(universe), np.zeros((size, universe))
    scratch, with_first = np.empty((2, ROWS, COLUMNS))
    for start in range(0, len(counts), ROWS):
        block = slice(start, start + ROWS)
        some = len(counts[block])
        runs = np.flatnonzero(np.diff(of[block], prepend=-1))
        leaving = of[block][runs]
        if len(runs) <= FEW:
            moved = np.where(of[block] == leaving[:, np.newaxis], counts[block], 0.0)
        for left in range(0, universe, COLUMNS):
            columns = slice(left, left + COLUMNS)
            some_of = distances[order[block], columns]
            near_by, kept = scratch[:some, : some_of.shape[1]], with_first[:some, : some_of.shape[1]]
            np.copyto(near_by, some_of)
            np.minimum(near_by, first[block, np.newaxis], out=kept)
            np.minimum(near_by, second[block, np.newaxis], out=near_by)
            near_by -= kept
            stayed[columns] += counts[block] @ kept
            if len(runs) <= FEW:  # a product is quicker, but does all of its work for each run
                costs[leaving, columns] += moved @ near_by
            else:
                near_by *= counts[block, np.newaxis]
                costs[leaving, columns] += np.add.reduceat(near_by, runs, axis=0)
    costs += stayed
    return np.delete(costs, chosen, axis=1).astype(np.int64)
