"""Records by rank in the engine that holds them: counted in bins by queries, and read near a rank alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.core.engines.other.column_expressions import BoundedNumber, ClampedNumber
from pdprivacy.core.engines.other.engines import narwhals
from pdprivacy.core.engines.other.queries import Queries, steps_of
from pdprivacy.core.engines.pandas_engine import bins_around
from pdprivacy.core.statistics import Quantity, RankGrid, Window
from pdprivacy.errors import EngineError
from pdprivacy.types import Floats, Integers

Plan: TypeAlias = Callable[[Any], Any]

BINS = 1 << 12
"""The number of bins of equal width in which one query counts records."""

FEW = 1 << 16
"""The number of records up to which all are read at once, in one query."""

MANY = 1 << 20
"""A bin at the end of a window that may give more numbers is counted in smaller bins."""

AT_ONCE = 1 << 24
"""The largest number of numbers in the result of a query, per part of a frame."""


@dataclass(frozen=True, slots=True)
class _Bins:
    """Bins that hold records, in order: the least and the largest number of each, and how many records.

    ``first``, ``last``: the steps of these numbers. Two neighbouring bins may share one step.
    """

    least: Floats
    most: Floats
    counts: Integers
    first: Integers
    last: Integers

    def with_split(self, number: int, bins: _Bins) -> _Bins:
        """Return the bins with ``bins`` instead of bin ``number``."""
        pairs = ((getattr(self, name), getattr(bins, name)) for name in self.__slots__)
        return _Bins(*(np.concatenate([own[:number], new, own[number + 1 :]]) for own, new in pairs))


@dataclass(frozen=True, slots=True)
class _FetchedSteps:
    """The different steps of all records with numbers from ``least`` to ``most``, and how many have each.

    ``below``: the number of records with smaller numbers.
    """

    least: float
    most: float
    below: int
    steps: Integers
    counts: Integers


class HistogramRanks:
    """The records by their steps, in the engine that holds them.

    One query counts the records in bins of equal width, and returns the least and the largest number of each
    bin; a bin with too many records is counted in smaller bins between these. A window is the bins around its
    ranks, whose numbers are read by one more query. There is no such query where each bin has one step only,
    nor for a window within one that was read. All numbers are read at once if there are few records, and if
    there are more (up to `AT_ONCE` numbers) once the windows together would read as many records.

    A window holds each step that has a record, 16 bytes each: at most as many as there are records between
    its ranks, and in the two bins at its ends. Nothing else is in memory: the memory of a quantile depends on
    its epsilon, not on the number of rows. Wider windows are read in parts of `AT_ONCE` numbers.

    Engines clamp and compare numbers; steps are computed here, by the code of pandas frames.

    Parameters
    ----------
    query : the results of a plan on the frame, one per part of the frame.
    number, grid : how the records are read, and on which grid.
    queries : the queries of the engine.
    weight : how their weights are read, and on which grid: numbers of records are then sums of weights. A
        record of no weight has no rank, so that each counts for one step at least.

    Raises
    ------
    EngineError : by a frame that differs from one query to the next, or an engine whose doubles are others.
    """

    def __init__(
        self,
        query: Callable[[Plan], list[Any]],
        number: ClampedNumber,
        grid: RankGrid,
        queries: Queries,
        weight: tuple[BoundedNumber, Quantity] | None = None,
    ) -> None:
        self._query, self._number, self._grid, self._queries = query, number, grid, queries
        self._weight = weight
        self._parts = 1
        self._set(self._count_bins(grid.lower, grid.upper))
        self._read = 0  # records of all windows so far
        self._fetched: list[_FetchedSteps] = []

    @property
    def rows(self) -> int:
        """Records without null."""
        return int(self._reached[-1])

    def between(self, first: int, last: int) -> Window:
        """Implement `Ranks.between` by the bins around the ranks.

        A step that the window shares with a bin beyond its end is left out, and so are its records. If the
        window is then too small, it takes that bin as well.
        """
        if not self.rows:
            nothing = np.zeros(0, np.int64)
            return Window(self._grid.low, self._grid.high, 0, nothing, nothing)
        left, right = self._refined_around(first, last)
        while True:
            bins, fetched = self._bins, self._steps_of_bins(left, right)
            low = int(bins.last[left - 1]) + 1 if left else self._grid.low
            high = int(bins.first[right]) - 1 if right < len(bins.counts) else self._grid.high
            start, stop = np.searchsorted(fetched.steps, [low, high + 1])
            below = fetched.below + int(fetched.counts[:start].sum())
            upto = fetched.below + int(fetched.counts[:stop].sum())
            if left and (below > first or low > high):
                more = self._refine(left - 1, MANY)
                left, right = left + more - 1, right + more
            elif right < len(bins.counts) and (upto < last or low > high):
                self._refine(right, MANY)
                right += 1
            else:
                return Window(low, high, below, fetched.steps[start:stop], fetched.counts[start:stop])

    # ------------------------------------------------------------ bins

    def _set(self, bins: _Bins) -> None:
        self._bins = bins
        most = bins.counts
        if self._number.whole:
            most = np.minimum(most, (bins.last - bins.first + 1) * self._parts)
        # records up to each bin, and how many numbers a query of them may give
        self._reached, self._given = (np.append(0, np.cumsum(each)) for each in (bins.counts, most))

    def _count_bins(self, least: float, most: float) -> _Bins:
        """Return the bins of equal width from ``least`` to ``most`` that have records."""
        library, at = narwhals(), narwhals().col("at")
        scale = BINS / (most - least) if most > least else 0.0

        def plan(frame: Any) -> Any:
            keyed = frame.with_columns(key=((at - least) * scale).floor().cast(library.Int64))
            return keyed.group_by("key").agg(n=self._records, least=at.min(), most=at.max())

        keys, counts, lows, highs = self._computed(plan, least, most, ("key", "n", "least", "most"))
        order = np.argsort(keys.astype(np.int64), kind="stable")
        starts = _changes(keys[order])
        if not len(starts):
            return _Bins(lows, highs, counts, counts, counts)
        counts = np.add.reduceat(counts[order], starts)
        lows, highs = np.minimum.reduceat(lows[order], starts), np.maximum.reduceat(highs[order], starts)
        first, last = (steps_of(ends, self._grid, self._queries.name) for ends in (lows, highs))
        return _Bins(lows, highs, counts, first, last)

    def _refined_around(self, first: int, last: int) -> tuple[int, int]:
        """Return the bins around two ranks, the outer ones with at most `MANY` numbers."""
        while True:
            left, right = bins_around(self._reached, first, last)
            ends = any(self._refine(end, MANY) for end in (left, right - 1))
            if not ends and not any(self._refine(number, AT_ONCE) for number in range(left, right)):
                return left, right

    def _refine(self, number: int, most: int) -> int:
        """Count a bin in smaller ones if a query of it may give more than ``most`` numbers.

        Returns how many bins there are more.
        """
        bins = self._bins
        if self._given[number + 1] - self._given[number] <= most or bins.first[number] == bins.last[number]:
            return 0
        smaller = self._count_bins(float(bins.least[number]), float(bins.most[number]))
        self._compare(smaller.counts, number, number + 1)
        self._set(bins.with_split(number, smaller))
        return len(smaller.counts) - 1

    def _compare(self, counts: Integers, left: int, right: int) -> None:
        if int(counts.sum()) != int(self._reached[right] - self._reached[left]):
            raise EngineError(
                f"{self._queries.name} gave other records when the frame was read again.",
                "compute the frame first, and protect what that gives",
            )

    # ------------------------------------------------------------ steps

    def _steps_of_bins(self, left: int, right: int) -> _FetchedSteps:
        """The steps of these bins, and perhaps of others."""
        bins = self._bins
        least, most = float(bins.least[left]), float(bins.most[right - 1])
        below = int(self._reached[left])
        if (bins.first[left:right] == bins.last[left:right]).all():
            return _FetchedSteps(
                least, most, below, *_merged(bins.first[left:right], bins.counts[left:right])
            )
        for span in self._fetched:
            if span.least <= least and most <= span.most:
                return span
        self._read += int(self._reached[right]) - below
        whole = self.rows <= FEW or (self._read >= self.rows and self._given[-1] <= AT_ONCE)
        if whole:
            left, right, below = 0, len(bins.counts), 0
        ends = float(bins.least[left]), float(bins.most[right - 1])
        fetched = _FetchedSteps(*ends, below, *self._fetch(left, right))
        others = [] if whole else self._fetched
        size = sum(len(part.steps) for part in (*others, fetched))
        self._fetched = [*others, fetched] if size <= AT_ONCE else [fetched]
        return fetched

    def _fetch(self, left: int, right: int) -> tuple[Integers, Integers]:
        """The steps of these bins, and how many records have each; by few queries."""
        library, answers = narwhals(), []

        def plan(frame: Any) -> Any:
            keyed, keys = self._queries.keyed_by_value(frame, self._grid)
            return keyed.group_by(*keys).agg(n=self._records).select(library.col("at"), library.col("n"))

        while left < right:
            # as many bins as keep the result below the limit, but at least one
            upto = int(np.searchsorted(self._given, self._given[left] + AT_ONCE, side="right")) - 1
            upto = min(max(upto, left + 1), right)
            ends = float(self._bins.least[left]), float(self._bins.most[upto - 1])
            values, counts = self._computed(plan, *ends, ("at", "n"))
            self._compare(counts, left, upto)
            answers.append(_merged(steps_of(values, self._grid, self._queries.name), counts))
            left = upto
        return _merged(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))

    # ------------------------------------------------------------ queries

    @property
    def _records(self) -> Any:
        """How many records there are, or the sum of their weights in steps."""
        library = narwhals()
        return library.len() if self._weight is None else library.col("w").sum()

    def _computed(self, plan: Plan, least: float, most: float, names: tuple[str, ...]) -> list[Any]:
        """Columns of the result of a plan on the records from ``least`` to ``most``, all parts in a row."""
        library, at = narwhals(), narwhals().col("at")
        numbers: list[Any] = [self._number]
        weights = {}
        if self._weight is not None:
            weight, grid = self._weight[0], self._weight[1].grid
            numbers.append(weight)
            weights["w"] = (weight.steps * (1 / grid)).cast(library.Int64)

        def read(frame: Any) -> Any:
            frame = frame.select(**{f"q{index}": number.source for index, number in enumerate(numbers)})
            for condition in (condition for number in numbers for condition in number.conditions):
                frame = frame.filter(condition)
            frame = frame.select(at=self._number.value, **weights)
            if weights:
                frame = frame.filter(library.col("w") > 0)
            if least > self._grid.lower or most < self._grid.upper:
                frame = frame.filter((at >= least) & (at <= most))
            return plan(frame)

        results = self._query(read)
        self._parts = max(len(results), 1)
        kinds = {"key": np.int64, "n": np.int64}
        return [
            np.concatenate(
                [np.zeros(0, kinds.get(name, np.float64))]
                + [part[name].to_numpy().astype(kinds.get(name, np.float64)) for part in results]
            )
            for name in names
        ]


def _changes(ordered: Integers) -> Integers:
    """Return where each run of equal numbers starts."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])


def _merged(steps: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Return each step once, in order, with all its counts."""
    order = np.argsort(steps, kind="stable")
    steps, counts = steps[order], counts[order]
    starts = _changes(steps)
    return steps[starts], np.add.reduceat(counts, starts) if len(starts) else counts
