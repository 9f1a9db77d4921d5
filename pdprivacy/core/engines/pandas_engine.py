"""Exact sufficient statistics of declared columns of a pandas frame, read by NumPy block by block.

This module returns exact numbers; `pdprivacy.core.gate` adds the noise. The
sensitivities rest on these promises of this module:

- every read clamps every number to its declared bounds and puts it on a grid,
  whatever was validated before; nulls are left out, never imputed;
- sums are sums of integers (grid steps) below 2**53 per block, then Python
  integers: they depend neither on rounding nor on the order of the rows;
- a table has one cell for every declared combination, a null cell where nulls
  are declared, and no other cells.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.core.engines.blocks import (
    BLOCK,
    FEW_EDGES,
    CellTable,
    Coder,
    blocks,
    coder,
    count_cells,
    count_few_bins,
    edge_coder,
    numbers,
)
from pdprivacy.core.engines.distinct_labels import LabelCounts, LabelsOfUnits, count_labels
from pdprivacy.core.rows.cells import nulls
from pdprivacy.core.statistics import GroupedSums, Quantity, RankGrid, Ranks, Read, Window
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Floats, Integers

Steps: TypeAlias = NDArray[np.int32]


SUM_BLOCK = 2 * BLOCK
"""The number of rows read at a time to sum one column."""

GROUPED = BLOCK // 2
"""The number of rows read at a time to sum columns per group."""

FEW_BITS = 17
RECORD = 35
"""The bits of a record in sums that also count records: each record adds 2**35 steps. In a block of `GROUPED`
records of at most 2**17 steps, the steps sum to less than half of that, and everything to below 2**53."""

HALF = 26
"""The bits of the lower halves of the sums of groups; two halves hold the sums of any number of rows."""


_memory = threading.local()


def _scratch(rows: int, columns: int = 1) -> Floats:
    """Return memory for blocks of columns, reused per thread because new memory costs more than a pass."""
    size = rows * columns
    array: Floats | None = getattr(_memory, "array", None)
    if size > 4 * SUM_BLOCK:
        return np.empty((columns, rows))
    if array is None or len(array) < size:
        array = _memory.array = np.empty(max(size, SUM_BLOCK))
    return array[:size].reshape(columns, rows)


class Columns(Protocol):
    """The columns of a frame, by name, and its number of rows."""

    def __getitem__(self, name: Any, /) -> Any: ...
    def __len__(self) -> int: ...


class PandasEngine:
    """Sufficient statistics of a pandas frame with unique column labels."""

    def __init__(self, frame: Columns, units: Integers | None = None) -> None:
        self._frame, self._units = frame, units
        self._points: tuple[tuple[Quantity, ...], Steps] | None = None

    @property
    def rows(self) -> int:
        """The exact number of rows, which is private under "add_remove"."""
        return len(self._frame)

    def present(self, column: Column) -> int:
        """Return the number of records without null in ``column``."""
        return self.rows - int(nulls(self._frame[column.name]).sum())

    def collect(self, reads: Iterable[Read]) -> dict[Read, Any]:  # noqa: ARG002
        """Return no answers, because a frame in memory is read statistic by statistic."""
        return {}

    def _quantity(self, quantity: Quantity) -> Callable[[int, int], Any]:
        """Return a reader of blocks of the numbers of a column, or of 1 for the label and 0 for others."""
        values = self._frame[quantity.column.name].array
        if quantity.label is None:
            return numbers(values)
        labels = quantity.column.labels("proportion")
        to_declared_cells = coder(values, quantity.column, "proportion").to_declared_cells()
        scores = np.zeros(len(labels) + 2)
        scores[1 + labels.index(quantity.label[0])] = 1.0
        scores[[0, -1]] = np.nan  # no declared cell, and the null cell
        return lambda start, stop: scores[to_declared_cells.codes(start, stop) + 1]

    def codes(self, column: Column, method: str) -> Integers:
        """Return the declared cell of each record, the last cell for nulls; -1 for undeclared values."""
        to_declared_cells = coder(self._frame[column.name].array, column, method).to_declared_cells()
        return np.asarray(to_declared_cells.codes(0, self.rows), dtype=np.int64)

    def _coders(self, columns: Sequence[Column], method: str) -> list[Coder]:
        return [coder(self._frame[column.name].array, column, method) for column in columns]

    def _sum(self, quantity: Quantity) -> tuple[int, int]:
        """Return the number of records without null, and the sum of their grid steps."""
        read, rows = self._quantity(quantity), len(self._frame)
        buffer = _scratch(min(SUM_BLOCK, max(rows, 1)))[0]
        anchor = quantity.anchor
        total = count = 0
        for start in range(0, rows, SUM_BLOCK):
            stop = min(start + SUM_BLOCK, rows)
            out = buffer[: stop - start]
            quantity.anchored(read(start, stop), out)
            count += stop - start
            if np.isnan(out.min()):  # a minimum is NaN where any value is
                nulls = np.isnan(out)
                count -= int(np.count_nonzero(nulls))
                out[nulls] = quantity.zero
            # The bits of anchored values add up modulo 2**64; a block's sum of steps is below
            # 2**62 in size, so the residue determines it.
            residue = (int(out.view(np.int64).sum()) - anchor * (stop - start)) & (2**64 - 1)
            total += residue - 2**64 if residue >= 2**63 else residue
        return count, total

    def ranks(self, grid: RankGrid, weight: Quantity | None = None) -> Ranks:
        """Return the records without null in the order of their steps, counted or weighted."""
        read = numbers(self._frame[grid.column.name].array)
        if weight is None:
            return ranked(read, grid, self.rows)
        return weighed(read, grid, self._quantity(weight), weight, self.rows)

    def grouped_ranks(self, grid: RankGrid, keys: Sequence[Column], method: str) -> list[SortedRanks]:
        """Return the records without null per declared group of ``keys``, ordered by their steps."""
        table = CellTable(self._coders(keys, method))
        declared_cells = table.declared_cells()
        read, count = numbers(self._frame[grid.column.name].array), 0
        steps, groups = np.empty(self.rows, step_type(grid)), np.empty(self.rows, np.int32)
        width = min(BLOCK, max(self.rows, 1))
        (buffer,), codes = _scratch(width), np.empty(width, np.intp)
        for start, stop in blocks(self.rows, BLOCK):
            cells = codes[: stop - start]
            out = grid.clamped(read(start, stop), buffer[: stop - start])
            table.read(start, stop, cells)
            group = declared_cells[cells]
            kept = ~np.isnan(out) & (group >= 0)
            target = slice(count, count + int(np.count_nonzero(kept)))
            steps[target], groups[target] = grid.steps(out[kept]) - grid.low, group[kept]
            count = target.stop
        return sorted_by_group(steps[:count], groups[:count], table.declared, grid)

    def clusters(self, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums:
        """Return counts and sums of complete records per nearest centre, read once for all rounds."""
        key = tuple(quantities)
        if self._points is None or self._points[0] != key:
            reads = [self._quantity(quantity) for quantity in key]
            self._points = key, points(reads, key, self.rows)
        return sums_around(self._points[1], key, centers)

    def _ungrouped(self, quantities: Sequence[Quantity], *, products: bool) -> GroupedSums:
        """Return counts, sums and products of records complete in ``quantities``, as one group."""
        reads = [self._quantity(quantity) for quantity in quantities]
        size = len(quantities)
        width = min(BLOCK, max(self.rows, 1))
        buffer = _scratch(width, size)
        sums = [0] * size
        totals = {(i, j): 0 for i in range(size) for j in range(i, size)} if products else {}
        count = 0
        for start, stop in blocks(self.rows, BLOCK):
            values = buffer[:, : stop - start]
            for row, quantity in enumerate(quantities):
                quantity.centered(reads[row](start, stop), values[row])
            count += stop - start
            # every partial sum is less than 2**53 grid steps, so sums are exact in any order
            block_sums = values.sum(axis=1)
            if np.isnan(block_sums).any():
                incomplete = np.isnan(values).any(axis=0)
                count -= int(np.count_nonzero(incomplete))
                values[:, incomplete] = 0.0
                block_sums = values.sum(axis=1)
            for i, quantity in enumerate(quantities):
                sums[i] += int(block_sums[i] / quantity.grid)
            block_products = np.einsum("ik,jk->ij", values, values) if size == 1 else np.dot(values, values.T)
            for i, j in totals:
                totals[i, j] += int(block_products[i, j] / quantities[i].grid / quantities[j].grid)
        return GroupedSums([count], [[total] for total in sums], {pair: [totals[pair]] for pair in totals})

    def labels(self, columns: Sequence[Column]) -> LabelCounts:
        """Return the records per combination of private labels, without records that have none."""
        return count_labels(self._frame, columns)

    def labels_of_units(self, columns: Sequence[Column]) -> LabelsOfUnits:
        """Return the labels of the records of each unit, without records that have none."""
        assert self._units is not None
        return LabelsOfUnits.of(self._frame, columns, self._units)

    def table(self, columns: Sequence[Column], method: str) -> Integers:
        """Return counts per declared cell of ``columns``, null cells last on each axis, flat in C order."""
        return count_cells(self._coders(columns, method), len(self._frame))

    def bins(self, column: Column, edges: Sequence[float]) -> Integers:
        """Return counts per bin of ``edges``, then of the null cell where nulls are declared."""
        values = self._frame[column.name].array
        if column.kind == "integer" or len(edges) > FEW_EDGES:
            return count_cells([edge_coder(values, column, edges)], self.rows)
        counts, nulls = count_few_bins(numbers(values), self.rows, edges, *column.bounds("bins"))
        return np.append(counts, nulls) if column.nullable else counts

    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        """Return counts, sums and products of complete records per declared group; one without ``keys``."""
        if not keys and len(quantities) == 1 and not products:
            count, total = self._sum(quantities[0])
            return GroupedSums([count], [[total]], {})
        if not keys:
            return self._ungrouped(quantities, products=products)
        table = CellTable(self._coders(keys, method))
        reads = [self._quantity(quantity) for quantity in quantities]
        pairs = list(combinations_with_replacement(range(len(reads)), 2)) if products else []
        grids = [quantity.grid for quantity in quantities]
        grids += [grids[i] * grids[j] for i, j in pairs]
        # sums of few steps have room to count the records as well
        counted = quantities[0].reach <= 1 << FEW_BITS
        totals_by_cell = np.zeros((1 + 2 * len(grids), table.size), dtype=np.int64)
        counts, high, low = totals_by_cell[0], totals_by_cell[1::2], totals_by_cell[2::2]
        width = min(GROUPED, max(self.rows, 1))
        buffer, codes = _scratch(width, len(grids)), np.empty(width, dtype=np.intp)
        for start, stop in blocks(self.rows, GROUPED):
            values, cells = buffer[:, : stop - start], codes[: stop - start]
            table.read(start, stop, cells)
            for row, quantity in enumerate(quantities):
                quantity.centered(reads[row](start, stop), values[row])
            if np.isnan(values[: len(reads)].min()):  # a minimum is NaN where any value is
                incomplete = np.isnan(values[: len(reads)]).any(axis=0)
                values[:, incomplete] = 0.0
                cells[incomplete] = table.size
            for row, (i, j) in enumerate(pairs, len(reads)):
                np.multiply(values[i], values[j], out=values[row])
            if counted:
                values[0] += grids[0] * 2.0**RECORD
            else:
                counts += np.bincount(cells, minlength=table.size + 1)[:-1]
            for row, grid in enumerate(grids):
                sums = np.bincount(cells, weights=values[row], minlength=table.size + 1)[:-1] / grid
                steps = sums.astype(np.int64)  # exact: below 2**53 in a block
                if counted and row == 0:
                    records = (steps + (1 << RECORD - 1)) >> RECORD
                    counts += records
                    steps -= records << RECORD
                high[row] += steps >> HALF
                low[row] += steps & (1 << HALF) - 1
        rows, *halves = table.declared_counts(totals_by_cell).tolist()
        totals = list(map(_whole, halves[::2], halves[1::2]))
        products_of = dict(zip(pairs, totals[len(reads) :], strict=True))
        return GroupedSums(rows, totals[: len(reads)], products_of)


def _whole(high: Sequence[int], low: Sequence[int]) -> list[int]:
    """Return whole numbers of their two halves."""
    return [(above << HALF) + below for above, below in zip(high, low, strict=True)]


# ---------------------------------------------------------------- ranks

BIN_BITS = 12
"""Steps are counted in 2**12 bins: a table of this size stays in the innermost cache."""


GROUP_BITS, MOST_GROUPS = 12, 1 << 10
"""Steps are counted one by one in groups of 2**12, if records are in at most so many of them."""


class StepRanks:
    """The records by their steps, counted in bins.

    Parameters
    ----------
    steps : (n,) of `step_type`, distances from the lowest step, in any order.
    counts : the number of records in each bin of 2**shift steps.
    low, high : the lowest and the highest step.
    """

    def __init__(self, steps: NDArray[Any], counts: Integers, low: int, high: int) -> None:
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
            unsigned = self._steps.dtype.type
            inside = self._steps - unsigned(start) <= unsigned(stop - start - 1)
            values, counts = self._distinct(self._steps[inside])
        return Window(self._low + start, self._low + stop - 1, int(reached[left]), values, counts)

    @cached_property
    def _whole(self) -> tuple[Integers, Integers]:
        groups = (self._high - self._low >> GROUP_BITS) + 1
        many = len(self._steps) > groups << 4  # enough records for a table of the groups
        counted = count_in_groups(self._steps, groups) if many else None
        return self._distinct(self._steps) if counted is None else (counted[0] + self._low, counted[1])

    def _distinct(self, steps: NDArray[Any]) -> tuple[Integers, Integers]:
        """Return the distinct steps in order, and the number of records of each."""
        values, counts = np.unique(steps, return_counts=True)
        return values.astype(np.int64) + self._low, counts.astype(np.int64)


def count_in_groups(steps: NDArray[Any], groups: int) -> tuple[Integers, Integers] | None:
    """Return the distinct steps in order and the number of records of each; None where they are far apart.

    ``groups``: the number of groups of 2**GROUP_BITS steps. Where all records are in few of them, each step
    of these groups has an entry in a table, and counting takes a fraction of the time of sorting.
    """
    occupied = np.zeros(groups, bool)
    for start, stop in blocks(len(steps), BLOCK):
        occupied[steps[start:stop] >> GROUP_BITS] = True
    (numbers_of_groups,) = np.nonzero(occupied)
    if len(numbers_of_groups) > MOST_GROUPS:
        return None
    shifts = np.zeros(groups, np.int64)
    shifts[numbers_of_groups] = (np.arange(len(numbers_of_groups)) - numbers_of_groups) << GROUP_BITS
    counts = np.zeros(len(numbers_of_groups) << GROUP_BITS, np.int64)
    width = max(BLOCK, 3 * len(counts))  # so that adding the counts of a block stays cheap in comparison
    for start, stop in blocks(len(steps), width):
        block = steps[start:stop].astype(np.int64)
        counts += np.bincount(block + shifts[block >> GROUP_BITS], minlength=len(counts))
    (places,) = np.nonzero(counts)
    first = numbers_of_groups.astype(np.int64)[places >> GROUP_BITS] << GROUP_BITS
    return first + (places & (1 << GROUP_BITS) - 1), counts[places]


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
    steps: NDArray[Any], groups: NDArray[np.int32], size: int, grid: RankGrid
) -> list[SortedRanks]:
    """Return the records of each group by their ``steps``, distances from the lowest step in any order."""
    from scipy.sparse import csc_array  # here, as scipy.sparse takes long to import

    # a matrix of one record per column; one pass to its rows puts the records by group
    by_group = csc_array((steps, groups, np.arange(len(steps) + 1)), shape=(size, len(steps))).tocsr()
    steps, starts = by_group.data, by_group.indptr
    for start, stop in pairwise(starts.tolist()):
        steps[start:stop].sort()
    return sorted_ranks(steps, None, starts, grid)


def sorted_ranks(
    steps: NDArray[Any], counts: Integers | None, starts: NDArray[Any], grid: RankGrid
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
    values, reached = steps[last].astype(np.int64) + grid.low, last + 1
    if counts is not None:
        reached = np.cumsum(counts)[last]
    edges = np.searchsorted(last, starts)
    before = np.append(0, reached)[edges]
    return [
        SortedRanks(values[start:stop], reached[start:stop] - below, grid.low, grid.high)
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


def step_type(grid: RankGrid) -> type[np.uint32 | np.uint64]:
    """Return the narrowest type of distances from the lowest step."""
    return np.uint32 if grid.candidates <= 1 << 32 else np.uint64


def ranked(read: Callable[[int, int], Any], grid: RankGrid, rows: int) -> StepRanks:
    """Return the records of a column, clamped, put on the grid and counted in bins in one pass."""
    steps = np.empty(rows, step_type(grid))
    memory = np.empty((3, min(BLOCK, max(rows, 1))))
    buffer, memory = memory[0], memory[1:]
    shift = bin_shift(grid.candidates)
    counts = np.zeros(((grid.candidates - 1) >> shift) + 1, np.int64)
    count = 0
    for start, stop in blocks(rows, BLOCK):
        out = grid.clamped(read(start, stop), buffer[: stop - start])
        if np.isnan(out.min()):  # a minimum is NaN where any value is
            out = out[~np.isnan(out)]
        distances = grid.steps(out, memory)
        distances -= grid.low
        steps[count : count + len(distances)] = distances
        count += len(distances)
        distances >>= shift
        counts += np.bincount(distances, minlength=len(counts))
    return StepRanks(steps[:count], counts, grid.low, grid.high)


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
    grid: RankGrid,
    weigh: Callable[[int, int], Any],
    weight: Quantity,
    rows: int,
) -> WeighedRanks:
    """Return the records of a column with a weight other than zero, sorted by their steps."""
    values, weights = np.empty((2, rows), np.int64)
    count = 0
    for start, stop in blocks(rows, BLOCK):
        block = np.empty((2, stop - start))
        grid.clamped(read(start, stop), block[0])
        weight.anchored(weigh(start, stop), block[1])
        block = block[:, ~np.isnan(block).any(axis=0) & (block[1] != weight.zero)]
        target = slice(count, count + block.shape[1])
        values[target] = grid.steps(block[0])
        weights[target] = block[1].view(np.int64) - weight.anchor
        count = target.stop
    order = np.argsort(values[:count], kind="stable")
    values, weights = values[order], weights[order]
    firsts = np.flatnonzero(np.diff(values, prepend=grid.low - 1))
    sums = np.add.reduceat(weights, firsts) if count else weights
    return WeighedRanks(Window(grid.low, grid.high, 0, values[firsts], sums))


# ---------------------------------------------------------------- points around centres

PRODUCT = 1 << 18
"""The number of multiplications in a product of matrices, too few for libraries to start threads."""


def points(reads: Sequence[Callable[[int, int], Any]], quantities: Sequence[Quantity], rows: int) -> Steps:
    """Return the grid steps of all records, one row per quantity, and a last row of ones.

    The column of a record with a null is zero, so this record adds nothing to any sum.
    """
    steps = np.empty((len(quantities) + 1, rows), dtype=np.int32)
    steps[-1] = 1
    buffer = np.empty((len(quantities), min(BLOCK, max(rows, 1))))
    for start, stop in blocks(rows, BLOCK):
        values = buffer[:, : stop - start]
        for row, quantity in enumerate(quantities):
            quantity.centered(reads[row](start, stop), values[row])
            values[row] /= quantity.grid
        incomplete = np.isnan(values).any(axis=0)
        if incomplete.any():
            values[:, incomplete] = 0.0
            steps[-1, start:stop][incomplete] = 0
        steps[:-1, start:stop] = values
    return steps


def sums_around(steps: Steps, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums:
    """Return the counts and the sums of steps of the records nearest to each centre; the first on a tie.

    Distances are Euclidean with each range scaled to [-1, 1]. The nearest centre has the largest
    x c - |c|^2 / 2, computed by products and sums of whole arrays in a fixed order. These operations round
    each number by itself, so the cluster of a record depends only on the record and the centres. A product of
    matrices is unsuitable for it, because its rounding may depend on the position of a record in a block. It
    is suitable for the sums, which are of whole numbers below 2**53 and so exact in any order.
    """
    weights, shifts = _weights(quantities, centers)
    size, rows = len(centers), steps.shape[1]
    width = max(PRODUCT // (size * len(steps)), 512)
    totals = np.zeros((size, len(steps)), dtype=np.int64)
    values = np.empty((len(steps), width))
    score_buffer, term_buffer = np.empty((2, size, width))
    for start, stop in blocks(rows, width):
        block, scores, terms = (array[:, : stop - start] for array in (values, score_buffer, term_buffer))
        np.copyto(block, steps[:, start:stop])
        scores[:] = shifts
        for row in range(len(quantities)):
            np.multiply(weights[:, row, np.newaxis], block[row], out=terms)
            scores += terms
        np.equal(scores, scores.max(axis=0), out=scores)
        sums = np.dot(scores, block.T)
        if sums[:, -1].sum() > block[-1].sum():  # some records are equally near to several centres
            np.logical_and(scores, np.cumsum(scores, axis=0) == 1, out=scores)
            sums = np.dot(scores, block.T)
        totals += sums.astype(np.int64)
    columns = totals.T.tolist()
    return GroupedSums(columns[-1], columns[:-1], {})


def _weights(quantities: Sequence[Quantity], centers: Floats) -> tuple[Floats, Floats]:
    """Return the factor of the steps of each quantity, and the constant to add, for each centre."""
    halves = np.array([(q.upper - q.lower) / 2 for q in quantities])
    scales = np.divide(1.0, halves, out=np.zeros(len(halves)), where=halves > 0)
    scaled_centers = (centers - np.array([q.center for q in quantities])) * scales
    weights = scaled_centers * (scales * np.array([q.grid for q in quantities]))
    return weights, -(scaled_centers**2).sum(axis=1, keepdims=True) / 2
