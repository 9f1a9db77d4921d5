"""Records in the order of their grid steps: one query counts them in bins, one more reads a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.engine.ranks import bin_shift, bins_around
from pdprivacy.engine_narwhals.column_expressions import BoundedNumber
from pdprivacy.engine_narwhals.engines import narwhals
from pdprivacy.errors import EngineError
from pdprivacy.statistic import Quantity, Window

__all__ = ["HistogramRanks"]

Integers: TypeAlias = NDArray[np.int64]
Query: TypeAlias = Callable[[Callable[[Any], Any]], list[Any]]

FEW = 1 << 16
"""So many records are read all at once: no other window takes a query then."""

MANY = 1 << 20
"""A bin at the end of a window that may give more steps is counted in smaller ones."""

AT_ONCE = 1 << 24
"""So many steps may be the result of one query, those of each part of a frame counted on their own."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The different steps from ``start`` up to ``stop``, all as distances from the lowest one."""

    start: int
    stop: int
    distances: Integers
    counts: Integers


class HistogramRanks:
    """The records by their steps, in the engine that holds them.

    How many there are per bin is asked for once, in the bins of `pdprivacy.engine.ranks`; a window is those
    around its ranks, whose steps are asked for by one query more. Where bins are one step wide there is no
    such query, nor for a window within one that is held: all is held at once of few records, and of more (up
    to `AT_ONCE` steps) when the windows together would read as many records.

    A window holds each step that has a record, 16 bytes each: at most as many as there are records between
    its ranks, and in the two bins at its ends. Nothing else is in memory: what a quantile takes depends on
    its epsilon, not on the number of rows. Wider windows are read in parts of `AT_ONCE` steps, a query each.

    Bins have at most 2**20 steps. Of a frame that is computed in parts, each part gives its own: a bin
    that may give more than `MANY` is counted in 2**12 smaller ones first, by another query.

    Parameters
    ----------
    query : what a plan gives of the frame, computed once, of the frame or of its parts.
    number, quantity : how the records are read, and on which grid.
    engine : its name, for errors.
    weight : how their weights are read, and on which grid: numbers of records are then sums of weights. A
        record of no weight has no rank, so that each counts for one step at least.

    Raises
    ------
    EngineError : by a frame that differs from one query to the next, or an engine whose doubles are others.
    """

    def __init__(
        self,
        query: Query,
        number: BoundedNumber,
        quantity: Quantity,
        engine: str,
        weight: tuple[BoundedNumber, Quantity] | None = None,
    ) -> None:
        self._query, self._number, self._quantity, self._engine = query, number, quantity, engine
        self._weight = weight
        self._parts = 1
        self._width = quantity.high - quantity.low + 1
        self._set(*self._counted(0, self._width))
        self._read = 0  # records of all windows so far
        self._held: list[_Held] = []

    @property
    def rows(self) -> int:
        """Records without null."""
        return int(self._reached[-1])

    def between(self, first: int, last: int) -> Window:
        """As `Ranks` says: the bins around the ranks."""
        left, right = bins_around(self._reached, first, last)
        while any(self._refined(end, MANY) for end in (left, right - 1)):
            left, right = bins_around(self._reached, first, last)
        start, stop = int(self._edges[left]), int(self._edges[right])
        below = int(self._reached[left])
        held = self._holding(left, right)
        first_of, after = np.searchsorted(held.distances, [start, stop])
        low = self._quantity.low
        distances, counts = held.distances[first_of:after], held.counts[first_of:after]
        return Window(low + start, low + stop - 1, below, distances + low, counts)

    # ------------------------------------------------------------ bins

    def _set(self, edges: Integers, counts: Integers) -> None:
        self._edges, self._counts = edges, counts
        # records up to each bin, and how many steps a query of them may give
        most = np.minimum(counts, np.diff(edges) * self._parts)
        self._reached, self._given = (np.append(0, np.cumsum(each)) for each in (counts, most))

    def _counted(self, start: int, stop: int) -> tuple[Integers, Integers]:
        """The edges of about 2**12 bins from ``start`` up to ``stop``, and how many records are in each."""
        shift = bin_shift(stop - start)
        first, after = start >> shift, ((stop - 1) >> shift) + 1
        places, found = self._ask(shift, first, after)
        counts = np.zeros(after - first, np.int64)
        counts[places - first] = found
        return np.minimum(np.arange(first, after + 1, dtype=np.int64) << shift, stop), counts

    def _refined(self, place: int, most: int) -> bool:
        """Count a bin in smaller ones if a query of it may give more than ``most`` steps; whether it was."""
        start, stop = self._edges[place : place + 2].tolist()
        if self._given[place + 1] - self._given[place] <= most or stop - start == 1:
            return False
        edges, counts = self._counted(start, stop)
        self._compare(int(counts.sum()), place, place + 1)
        self._set(
            np.concatenate([self._edges[:place], edges, self._edges[place + 2 :]]),
            np.concatenate([self._counts[:place], counts, self._counts[place + 1 :]]),
        )
        return True

    def _compare(self, records: int, left: int, right: int) -> None:
        if records != int(self._reached[right] - self._reached[left]):
            raise EngineError(
                f"{self._engine} gave other records when the frame was read again.",
                "compute the frame first, and protect what that gives",
            )

    # ------------------------------------------------------------ steps

    def _holding(self, left: int, right: int) -> _Held:
        """The steps of these bins, and perhaps of others."""
        for held in self._held:
            if held.start <= self._edges[left] and self._edges[right] <= held.stop:
                return held
        self._read += int(self._reached[right] - self._reached[left])
        whole = self.rows <= FEW or (self._read >= self.rows and self._given[-1] <= AT_ONCE)
        if whole:
            left, right = 0, len(self._counts)
        found = self._fetched(left, right)
        others = [] if whole else self._held
        size = sum(len(one.distances) for one in (*others, found))
        self._held = [*others, found] if size <= AT_ONCE else [found]
        return found

    def _fetched(self, left: int, right: int) -> _Held:
        """The steps of these bins, by as few queries as their number allows."""
        start, stop = int(self._edges[left]), int(self._edges[right])
        if stop - start == right - left:
            places = np.flatnonzero(self._counts[left:right])
            return _Held(start, stop, start + places, self._counts[left + places])
        found, at = [], left
        while self._edges[at] < stop:
            if self._refined(at, AT_ONCE):
                continue
            # as many bins as surely give no more steps, but one at least
            upto = int(np.searchsorted(self._given, self._given[at] + AT_ONCE, side="right")) - 1
            upto = min(max(upto, at + 1), int(np.searchsorted(self._edges, stop)))
            if self._reached[upto] > self._reached[at]:
                found.append(self._ask(0, int(self._edges[at]), int(self._edges[upto])))
                self._compare(int(found[-1][1].sum()), at, upto)
            at = upto
        distances, counts = (_joined([part[place] for part in found]) for place in (0, 1))
        return _Held(start, stop, distances, counts)

    def _ask(self, shift: int, start: int, stop: int) -> tuple[Integers, Integers]:
        """The distances that records have, in 2**shift, from ``start`` up to ``stop``, and how many."""
        library = narwhals()
        # whole numbers below 2**33 times powers of two: all of this is exact
        scale = 2.0**-shift / self._quantity.grid
        lowest = self._quantity.low * 2.0**-shift
        at = library.col("at")
        numbers, weights, asked = [self._number], {}, {"n": library.len()}
        if self._weight is not None:
            weight, grid = self._weight[0], self._weight[1].grid
            numbers.append(weight)
            weights["w"] = (weight.steps * (1 / grid)).cast(library.Int64)
            asked["n"] = library.col("w").sum()
        if not shift:
            asked["most"] = at.max()

        def plan(frame: Any) -> Any:
            read = frame.select(**{f"q{place}": number.source for place, number in enumerate(numbers)})
            for condition in (condition for number in numbers for condition in number.conditions):
                read = read.filter(condition)
            read = read.select(at=self._number.steps * scale - lowest, **weights)
            if weights:
                read = read.filter(library.col("w") > 0)
            if (stop - start) << shift < self._width:
                read = read.filter((at >= float(start)) & (at < float(stop)))
            # by integers: Arrow takes a hundred times as long for such doubles
            grouped = read.with_columns(key=at.floor().cast(library.Int64)).group_by("key").agg(**asked)
            return grouped.with_columns(n=library.col("n").cast(library.Int64)) if weights else grouped

        found = self._query(plan)
        self._parts = max(len(found), 1)
        keys, counts = (_joined([part[name].to_numpy() for part in found]) for name in ("key", "n"))
        whole = shift or all(
            np.array_equal(part["most"].to_numpy(), part["key"].to_numpy()) for part in found
        )
        if not (whole and ((keys >= start) & (keys < stop)).all()):
            raise EngineError(f"{self._engine} does not add doubles as the processor does.")
        return _merged(keys, counts)


def _joined(arrays: list[Any]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *(array.astype(np.int64) for array in arrays)])


def _merged(keys: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Each key once, in order, with all its counts: parts of a frame have theirs."""
    order = np.argsort(keys)
    keys, counts = keys[order], counts[order]
    places = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[places], np.add.reduceat(counts, places) if len(places) else counts
