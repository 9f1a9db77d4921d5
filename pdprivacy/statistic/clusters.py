"""Clusters: the rounds of k-means by noisy sums and counts, and where they start without any data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.noise import Source
from pdprivacy.statistic.confidence import Ends
from pdprivacy.statistic.interface import Answer, Noisy, Part, Read, Scope, Whole, bounds_of, named
from pdprivacy.statistic.quantity import Quantity
from pdprivacy.statistic.sums import mean_interval

__all__ = ["Clusters", "count_share", "packed"]

Floats: TypeAlias = NDArray[np.float64]

RHO = 0.225
"""How far a centre is from the middle of the domain on each axis, as a share of the range (Su et al.)."""

TRIES = 100
"""Draws of one starting centre that all have to fail before a distance counts as too large."""

TOGETHER = 10
"""Of them are made at a time."""


def count_share(dimensions: int, *, gaussian: bool) -> Fraction:
    """The counts' share of a round's loss; the sums of each coordinate share the rest equally.

    Least mean squared error of a centre at 2 rho from the middle on each axis: counts and the sum of one
    coordinate have shares of cbrt(4 d rho^2) : 1 where deviations are proportional to 1 / share (Laplace),
    of sqrt(4 d rho^2) : 1 where they are to 1 / sqrt(share) (Gaussian).

    Source: Su, Cao, Li, Bertino, Jin (2016), "Differentially private k-means clustering".

    >>> count_share(2, gaussian=False)
    Fraction(37, 137)
    """
    ratio = (4 * dimensions * RHO**2) ** (1 / 2 if gaussian else 1 / 3)
    part = Fraction(max(round(100 * ratio), 1), 100)
    return part / (part + dimensions)


def packed(count: int, dimensions: int, source: Source) -> tuple[Floats, float]:
    """Random points in [-1, 1]^dimensions, far from each other and from the boundary, and how far.

    All are at least that distance from the boundary, and twice as much from each other. The distance is the
    largest that a bisection finds, where a point that fails so often in a row makes it too large.

    Source: the sphere packing of Su et al. (2016).

    >>> from pdprivacy.noise import source
    >>> points, distance = packed(1, 2, source(1))
    >>> distance, points.shape
    (1.0, (1, 2))
    """
    low, high = 0.0, 1.0
    found, tried = None, high
    while found is None or high - low > high / 64:
        points = _packed(count, dimensions, tried, source)
        if points is None:
            high = tried
        else:
            found, low = points, tried
        tried = (low + high) / 2
    return found, low


def _packed(count: int, dimensions: int, distance: float, source: Source) -> Floats | None:
    points = np.empty((count, dimensions))
    for place in range(count):
        for _ in range(TRIES // TOGETHER):
            words = source.words(TOGETHER * dimensions, np.uint32).reshape(TOGETHER, dimensions)
            drawn = (words.astype(np.float64) / 2**31 - 1) * (1 - distance)
            squares = np.zeros((TOGETHER, place))
            for axis in range(dimensions):
                squares += (drawn[:, axis, np.newaxis] - points[:place, axis]) ** 2
            fitting = np.flatnonzero(squares.min(axis=1, initial=np.inf) >= (2 * distance) ** 2)
            if len(fitting):
                points[place] = drawn[fitting[0]]
                break
        else:
            return None
    return points


@dataclass(frozen=True, slots=True)
class Clusters:
    """One round of k-means: the records nearest to each public centre, counted and summed up.

    A record is in one cluster, so that counts and sums are those of disjoint groups; each coordinate has
    its own sums, because a record moves all of them. ``centers``: one row per cluster, in the units of the
    columns. ``share``: of the loss for the counts.

    Source: Blum, Dwork, McSherry, Nissim (2005), "Practical privacy: the SuLQ framework".
    """

    quantities: tuple[Quantity, ...]
    centers: Floats
    share: Fraction
    scope: Scope

    @property
    def parts(self) -> tuple[Part, ...]:
        size = len(self.centers)
        moves = min(self.scope.moves, size)
        counts = Part("counts", self.share, *self.scope.cells(), Fraction(1), size, counts=True, moves=moves)
        each = (1 - self.share) / len(self.quantities)
        sums = [
            Part(
                named("sums", q.column), each, *self.scope.disjoint(q.low, q.high), q.unit, size, moves=moves
            )
            for q in self.quantities
        ]
        return (counts, *sums)

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return None

    @property
    def ends(self) -> tuple[Any, Any]:
        return bounds_of(self.quantities)

    @property
    def reads(self) -> tuple[Read, ...]:
        return (Read("clusters", (self.quantities, self.centers)),)

    def exact(self, found: Sequence[Any]) -> list[Whole]:
        (groups,) = found
        return [groups.rows, *groups.sums]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        """Noisy sums over noisy counts; a cluster whose count is below 1 keeps its centre."""
        counts = noisy[0]
        rows, empty = np.maximum(counts.values, 1.0), counts.values < 1
        values, errors = np.empty(self.centers.shape), np.empty(self.centers.shape)
        for place, (q, total) in enumerate(zip(self.quantities, noisy[1:], strict=True)):
            offset = np.clip(total.values / rows, q.lower - q.center, q.upper - q.center)
            moved = np.clip(q.center + offset, q.lower, q.upper)
            values[:, place] = np.where(empty, self.centers[:, place], moved)
            error = np.hypot(total.std, offset * counts.std) / rows
            errors[:, place] = np.where(empty, math.nan, error)

        def interval(level: float) -> Ends:
            ends = [
                mean_interval(level, q, counts, total)
                for q, total in zip(self.quantities, noisy[1:], strict=True)
            ]
            lower, upper = (np.stack(side, axis=-1) for side in zip(*ends, strict=True))
            return np.where(np.isnan(errors), np.nan, lower), np.where(np.isnan(errors), np.nan, upper)

        return Answer(values, errors, 0.0, *self.ends, interval)

    def after(self, noisy: Sequence[Noisy]) -> Clusters:
        """The next round, around the centres that the noisy numbers of this one make."""
        return replace(self, centers=self.finish(noisy).values)
