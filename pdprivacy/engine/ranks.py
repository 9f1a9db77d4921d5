"""Records in the order of their grid steps, sorted only near the requested ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.engine.blocks import BLOCK, blocks
from pdprivacy.statistic import Quantity, Window

Integers: TypeAlias = NDArray[np.int64]

BIN_BITS = 12
"""Steps are counted in 2**12 bins: a table of this size stays in the innermost cache."""


class StepRanks:
    """The records by their steps, counted in bins.

    Parameters
    ----------
    steps : (n,) uint32, distances from the lowest step, in any order.
    counts : the number of records in each bin of 2**shift steps.
    low, high : the lowest and the highest step.
    """

    def __init__(self, steps: NDArray[np.uint32], counts: Integers, low: int, high: int) -> None:
        self._steps, self._counts = steps, counts
        self._low, self._high = low, high
        self._sorted = 0  # records of all windows so far

    @property
    def rows(self) -> int:
        """Records without null."""
        return len(self._steps)

    def between(self, first: int, last: int) -> Window:
        """Implement `Ranks.between`: sort the bins around the ranks, or all bins when that costs no more."""
        width = self._high - self._low + 1
        shift, rows = bin_shift(width), len(self._steps)
        reached = np.concatenate([[0], np.cumsum(self._counts)])
        left, right = bins_around(reached, first, last)
        start, stop = left << shift, min(right << shift, width)
        self._sorted += int(reached[right] - reached[left])
        if self._sorted >= rows:
            values, counts = self._whole
            first_of, after = np.searchsorted(values, [self._low + start, self._low + stop])
            values, counts = values[first_of:after], counts[first_of:after]
        else:
            # one comparison for both ends: a step below ``start`` wraps around to a large number
            inside = self._steps - np.uint32(start) < np.uint32(stop - start)
            values, counts = self._distinct(self._steps[inside])
        return Window(self._low + start, self._low + stop - 1, int(reached[left]), values, counts)

    @cached_property
    def _whole(self) -> tuple[Integers, Integers]:
        return self._distinct(self._steps)

    def _distinct(self, steps: NDArray[np.uint32]) -> tuple[Integers, Integers]:
        """Return the distinct steps in order, and the number of records of each."""
        values, counts = np.unique(steps, return_counts=True)
        return values.astype(np.int64) + self._low, counts.astype(np.int64)


@dataclass(frozen=True, slots=True)
class SortedRanks:
    """The records by their steps, all sorted.

    ``values``: the distinct steps in order. ``reached``: the number of records up to each of them, shape
    ``(len(values),)``. ``low``, ``high``: the lowest and the highest step.
    """

    values: Integers
    reached: Integers
    low: int
    high: int

    @property
    def rows(self) -> int:
        """Records without null."""
        return int(self.reached[-1]) if len(self.reached) else 0

    def between(self, first: int, last: int) -> Window:
        """Implement `Ranks.between`: a window reaches from step to step with records, or to a bound."""
        left, right = 0, len(self.values)
        if first > 0 and right:
            # the last step with at most `first` records below it
            left = min(int(np.searchsorted(self.reached, first, side="right")), right - 1)
        if last < self.rows:
            right = max(int(np.searchsorted(self.reached, last, side="left")), left) + 1
        below = int(self.reached[left - 1]) if left else 0
        low = int(self.values[left]) if left else self.low
        high = int(self.values[right - 1]) if right < len(self.values) else self.high
        counts = np.diff(self.reached[left:right], prepend=below)
        return Window(low, high, below, self.values[left:right], counts)


def sorted_by_group(
    steps: NDArray[np.uint32], groups: NDArray[np.int32], size: int, quantity: Quantity
) -> list[SortedRanks]:
    """Return the records of each group by their ``steps``, distances from the lowest step in any order."""
    from scipy.sparse import csc_array  # here, as scipy.sparse takes long to import

    # a matrix of one record per column; one pass to its rows puts the records by group
    by_group = csc_array((steps, groups, np.arange(len(steps) + 1)), shape=(size, len(steps))).tocsr()
    steps, starts = by_group.data, by_group.indptr
    for start, stop in pairwise(starts.tolist()):
        steps[start:stop].sort()
    return sorted_ranks(steps, None, starts, quantity)


def sorted_ranks(
    steps: NDArray[Any], counts: Integers | None, starts: NDArray[Any], quantity: Quantity
) -> list[SortedRanks]:
    """Return the records of each group by their steps.

    Parameters
    ----------
    steps : (n,) distances from the lowest step, sorted within each group.
    counts : (n,) the number of records of each step; None for one record each.
    starts : (groups + 1,) the start of each group in ``steps``, and the end of the last group.
    """
    changes = np.append(steps[1:] != steps[:-1], True)[: len(steps)]
    changes[starts[1:][starts[1:] > 0] - 1] = True
    last = np.flatnonzero(changes)
    values, reached = steps[last].astype(np.int64) + quantity.low, last + 1
    if counts is not None:
        reached = np.cumsum(counts)[last]
    edges = np.searchsorted(last, starts)
    before = np.append(0, reached)[edges]
    return [
        SortedRanks(values[start:stop], reached[start:stop] - below, quantity.low, quantity.high)
        for start, stop, below in zip(edges[:-1], edges[1:], before[:-1], strict=True)
    ]


def bin_shift(width: int) -> int:
    """Return how many low bits of a distance below ``width`` to drop to get its bin."""
    return max((width - 1).bit_length() - BIN_BITS, 0)


def bins_around(reached: Integers, first: int, last: int) -> tuple[int, int]:
    """Return the last bin with at most ``first`` records below it, and the next bin with ``last`` below.

    ``reached``: the number of records below each bin, and in all bins.
    """
    left, right = 0, len(reached) - 1
    if first > 0:
        left = min(int(np.searchsorted(reached, first, side="right")) - 1, right - 1)
    if last < reached[-1]:
        right = max(int(np.searchsorted(reached, last, side="left")), left + 1)
    return left, right


def ranked(read: Callable[[int, int], Any], quantity: Quantity, rows: int) -> StepRanks:
    """Return the records of a quantity, clamped, put on the grid and counted in bins in one pass."""
    steps = np.empty(rows, np.uint32)
    buffer = np.empty(min(BLOCK, max(rows, 1)))
    width = quantity.high - quantity.low + 1
    shift = bin_shift(width)
    counts = np.zeros(((width - 1) >> shift) + 1, np.int64)
    lowest = quantity.anchor + quantity.low
    count = 0
    for start, stop in blocks(rows, BLOCK):
        out = buffer[: stop - start]
        quantity.anchored(read(start, stop), out)
        if np.isnan(out.min()):  # a minimum is NaN where any value is
            out = out[~np.isnan(out)]
        found = out.view(np.int64)
        found -= lowest
        steps[count : count + len(found)] = found
        count += len(found)
        found >>= shift
        counts += np.bincount(found, minlength=len(counts))
    return StepRanks(steps[:count], counts, quantity.low, quantity.high)


@dataclass(frozen=True, slots=True)
class WeighedRanks:
    """All records by their steps, with the weights of each step; every window holds all records."""

    whole: Window

    @property
    def rows(self) -> int:
        """The sum of all weights, in steps."""
        return int(self.whole.counts.sum())

    def between(self, first: int, last: int) -> Window:  # noqa: ARG002
        """Return the window of all records."""
        return self.whole


def weighed(
    read: Callable[[int, int], Any],
    quantity: Quantity,
    weigh: Callable[[int, int], Any],
    weight: Quantity,
    rows: int,
) -> WeighedRanks:
    """Return the records of a quantity with a weight other than zero, sorted by their steps."""
    values, weights = np.empty((2, rows), np.int64)
    count = 0
    for start, stop in blocks(rows, BLOCK):
        steps = np.empty((2, stop - start))
        quantity.anchored(read(start, stop), steps[0])
        weight.anchored(weigh(start, stop), steps[1])
        steps = steps[:, ~np.isnan(steps).any(axis=0) & (steps[1] != weight.zero)]
        found = slice(count, count + steps.shape[1])
        values[found] = steps[0].view(np.int64) - quantity.anchor
        weights[found] = steps[1].view(np.int64) - weight.anchor
        count = found.stop
    order = np.argsort(values[:count], kind="stable")
    values, weights = values[order], weights[order]
    firsts = np.flatnonzero(np.diff(values, prepend=quantity.low - 1))
    sums = np.add.reduceat(weights, firsts) if count else weights
    return WeighedRanks(Window(quantity.low, quantity.high, 0, values[firsts], sums))
