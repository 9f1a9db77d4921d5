"""The numpy path: exact sufficient statistics of declared columns, read block by block.

Nothing here is private or public by itself: `pdprivacy.measure` adds the noise.
What this module promises is what the sensitivities rest on:

- every number is clamped to its declared bounds and put on a grid at every read,
  whatever was validated before; a null is left out, never imputed;
- sums are sums of integers (grid units) below 2**53 per block, then Python
  integers: neither rounding nor the order of the rows can show;
- a table has one cell for every declared combination, a null cell where nulls
  are declared, and no cell for anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.statistic import GroupedSums, Moments, Quantity

__all__ = ["BLOCK", "PandasEngine"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


BLOCK = 1 << 17
"""Rows read at a time: a few arrays of it fit the processor's cache."""


@dataclass(frozen=True, slots=True)
class Coder:
    """How a column is read as small integers: cheap per row, settled per cell.

    ``codes(start, stop)`` gives integers in [-offset, radix - offset); ``cells`` maps each of the
    ``radix`` stored codes to its declared cell, or to -1 where the declaration has none.
    """

    codes: Callable[[int, int], NDArray[Any]]
    offset: int
    radix: int
    cells: Integers

    def settled(self) -> Coder:
        """The same with declared cells as codes (-1 for none), where the radix is to be small."""
        lookup = self.cells.astype(np.int32)
        read, offset = self.codes, self.offset

        def codes(start: int, stop: int) -> NDArray[Any]:
            return lookup[read(start, stop).astype(np.intp) + offset]

        size = int(self.cells.max(initial=-1)) + 1
        return Coder(codes, 1, size + 1, np.arange(-1, size, dtype=np.int64))


def _arrow(values: Any) -> Any:
    """The Arrow chunks behind an Arrow-backed extension array, or None."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "storage", None) == "pyarrow" or isinstance(dtype, pd.ArrowDtype):
        return values.__arrow_array__()
    return None


class PandasEngine:
    """Sufficient statistics of a pandas frame (unique column labels)."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @property
    def rows(self) -> int:
        """The number of rows, exact: private under add/remove."""
        return len(self._frame)

    def present(self, column: Column) -> int:
        """Records without null in ``column``."""
        return int(self._frame[column.name].notna().sum())

    # ---------------------------------------------------------------- numbers

    def _numbers(self, name: Hashable) -> Callable[[int, int], Any]:
        """Blocks of a column as numbers, NaN for null."""
        values: Any = self._frame[name].array
        if isinstance(values, pd.arrays.NumpyExtensionArray):
            array = values.to_numpy()
            if array.dtype.kind == "b":
                return lambda start, stop: array[start:stop].view(np.int8)
            if array.dtype.kind in "iuf":
                return lambda start, stop: array[start:stop]
        elif values.dtype.kind in "biuf":
            return lambda start, stop: values[start:stop].to_numpy(dtype=np.float64, na_value=np.nan)

        def mixed(start: int, stop: int) -> Any:
            block = pd.Series(values[start:stop]).astype(object)
            return pd.to_numeric(block, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)

        return mixed

    def _quantity(self, quantity: Quantity) -> Callable[[int, int], Any]:
        if quantity.value is None:
            return self._numbers(quantity.column.name)
        coder = self._coder(quantity.column, "proportion").settled()
        labels = quantity.column.labels("proportion")
        one = labels.index(quantity.value)
        scores = np.zeros(len(labels) + 2)
        scores[1 + one] = 1.0
        scores[0] = np.nan  # no declared cell
        scores[1 + len(labels)] = np.nan  # null
        return lambda start, stop: scores[coder.codes(start, stop) + 1]

    def sum(self, quantity: Quantity) -> tuple[int, int]:
        """Records without null, and the sum of their grid steps."""
        read = self._quantity(quantity)
        buffer = np.empty(min(BLOCK, max(self.rows, 1)))
        anchor = quantity.anchor
        total = count = 0
        for start in range(0, self.rows, BLOCK):
            stop = min(start + BLOCK, self.rows)
            out = buffer[: stop - start]
            nulls = quantity.anchored(read(start, stop), out)
            # The bits of anchored values add up modulo 2**64; a block's sum of steps is below
            # 2**62 in size, so the residue tells it.
            residue = (int(out.view(np.int64).sum()) - anchor * (stop - start)) & (2**64 - 1)
            total += residue - 2**64 if residue >= 2**63 else residue
            count += stop - start - (0 if nulls is None else int(np.count_nonzero(nulls)))
        return count, total

    def moments(self, quantities: Sequence[Quantity]) -> Moments:
        """Count, sums and products over records complete in all ``quantities``."""
        reads = [self._quantity(quantity) for quantity in quantities]
        size = len(quantities)
        width = min(BLOCK, max(self.rows, 1))
        buffer = np.empty((size, width))
        sums = [0] * size
        products = [[0] * size for _ in range(size)]
        count = 0
        for start in range(0, self.rows, BLOCK):
            stop = min(start + BLOCK, self.rows)
            values = buffer[:, : stop - start]
            incomplete: NDArray[np.bool_] | None = None
            for row, quantity in enumerate(quantities):
                nulls = quantity.anchored(reads[row](start, stop), values[row])
                values[row] -= 1.5 * 2.0**52 * quantity.grid
                if nulls is not None:
                    incomplete = nulls if incomplete is None else incomplete | nulls
            count += stop - start
            if incomplete is not None:
                values[:, incomplete] = 0.0
                count -= int(np.count_nonzero(incomplete))
            # multiples of a power of two, below 2**53 of them in every partial sum: exact in any order
            block_sums = values.sum(axis=1)
            block_products = np.dot(values, values.T)
            for i, first in enumerate(quantities):
                sums[i] += int(block_sums[i] / first.grid)
                for j, second in enumerate(quantities):
                    products[i][j] += int(block_products[i, j] / first.grid / second.grid)
        return Moments(count, sums, products)

    # ---------------------------------------------------------------- labels

    def _coder(self, column: Column, method: str) -> Coder:
        if column.bins is not None:
            return self._bin_coder(column, column.bins)
        labels = column.labels(method)
        if column.kind == "integer" and column.categories is None:
            return self._range_coder(column, int(labels[0]), int(labels[-1]), np.arange(len(labels)))
        return self._label_coder(column, labels)

    def _cell_map(self, column: Column, stored: Sequence[int], labels: int) -> Integers:
        """``stored`` cells with the null cell in front."""
        null = labels if column.nullable else -1
        return np.concatenate([[null], np.asarray(stored, dtype=np.int64)]).astype(np.int64)

    def _range_coder(self, column: Column, lower: int, upper: int, cells: Integers) -> Coder:
        """Integers from ``lower`` to ``upper``; ``cells`` is the cell of each."""
        read = self._numbers(column.name)
        size = upper - lower + 1
        small = np.int16 if size < 2**15 else np.int64

        def codes(start: int, stop: int) -> NDArray[Any]:
            block = read(start, stop)
            clipped = np.clip(block, lower, upper)
            if clipped.dtype.kind == "f":
                nulls = np.isnan(clipped)
                if nulls.any():
                    clipped = np.where(nulls, lower - 1, clipped)
                return (np.floor(clipped) - lower).astype(small)
            return np.subtract(clipped, lower, dtype=np.int64).astype(small)

        return Coder(codes, 1, size + 1, self._cell_map(column, list(cells), int(cells.max()) + 1))

    def _bin_coder(self, column: Column, bins: Sequence[float], outside: bool = False) -> Coder:
        """Half-open bins, the last one closed. ``outside``: values beyond the edges have no cell."""
        edges = np.asarray(bins, dtype=np.float64)
        count = len(edges) - 1
        lower, upper = column.bounds("bins")
        if column.kind == "integer" and upper - lower < 4096:
            values = np.arange(int(lower), int(upper) + 1)
            cells = np.searchsorted(edges, values, side="right") - 1
            cells[values == edges[-1]] = count - 1
            cells[(values < edges[0]) | (values > edges[-1])] = -1
            coder = self._range_coder(column, int(lower), int(upper), cells)
            return Coder(coder.codes, 1, coder.radix, self._cell_map(column, list(cells), count))
        read = self._numbers(column.name)
        small = np.int16 if count < 2**14 else np.int32
        inner = edges[1:-1]
        steps = np.diff(edges)
        even = count > 16 and bool(np.all(np.abs(steps - steps[0]) < 1e-6 * steps[0]))
        inverse = 1 / steps[0]

        def codes(start: int, stop: int) -> NDArray[Any]:
            block = np.clip(np.asarray(read(start, stop), dtype=np.float64), lower, upper)
            nulls = np.isnan(block)
            if nulls.any():
                block[nulls] = lower
            if count <= 16:
                place = np.zeros(len(block), dtype=small)
                for edge in inner:
                    place += block >= edge
            elif even:
                # a guess by arithmetic, then settled by the edges themselves
                place = np.clip((block - edges[0]) * inverse, 0, count - 1).astype(small)
                place -= block < edges[place]
                place += (block >= edges[place + 1]) & (place < count - 1)
            else:
                place = np.searchsorted(inner, block, side="right").astype(small)
            place[nulls] = -1
            if outside:
                place[((block < edges[0]) | (block > edges[-1])) & ~nulls] = count
            return place

        return Coder(codes, 1, count + 2, self._cell_map(column, [*range(count), -1], count))

    def _label_coder(self, column: Column, labels: Sequence[Any]) -> Coder:
        values: Any = self._frame[column.name].array
        count = len(labels)
        place = {label: cell for cell, label in enumerate(labels)}
        if isinstance(values, pd.Categorical):
            stored = [place.get(label, -1) for label in values.categories.tolist()]
            array = np.asarray(values.codes)
            coder = Coder(
                lambda start, stop: array[start:stop],
                1,
                len(stored) + 1,
                self._cell_map(column, stored, count),
            )
            return coder if coder.radix <= 2 * count + 16 else coder.settled()
        cells = self._cell_map(column, [*range(count), -1], count)
        if column.kind == "boolean" and isinstance(values, pd.arrays.NumpyExtensionArray):
            truth = values.to_numpy()
            if truth.dtype.kind == "b":
                stored = [place.get(False, -1), place.get(True, -1)]
                return Coder(
                    lambda start, stop: truth[start:stop].view(np.int8),
                    1,
                    3,
                    self._cell_map(column, stored, count),
                )
        chunks = _arrow(values)
        if chunks is not None and all(isinstance(label, str) for label in labels):
            return Coder(_arrow_codes(chunks, labels), 1, count + 2, cells)
        index = pd.Index(list(labels), dtype=object if column.kind != "float" else None)

        def codes(start: int, stop: int) -> NDArray[Any]:
            block = pd.Series(values[start:stop])
            nulls = block.isna().to_numpy(dtype=bool)
            try:
                found = index.get_indexer(pd.Index(block.astype(object) if index.dtype == object else block))
            except TypeError:  # a cell without a hash is no declared label
                hashable = block.map(lambda cell: cell if isinstance(cell, Hashable) else None)
                found = index.get_indexer(pd.Index(hashable.astype(object), dtype=object))
            found = np.asarray(found, dtype=np.int64)
            found[found < 0] = count
            found[nulls] = -1
            return found

        return Coder(codes, 1, count + 2, cells)

    def _count(self, coders: Sequence[Coder], shape: Sequence[int]) -> Integers:
        """Records per declared cell, in C order of ``shape``."""
        cells = math.prod(shape)
        # Stored codes are free per row; keep them where the stored table stays near the declared one.
        limit = max(2 * cells, 1 << 12)
        chosen = list(coders)
        for place in sorted(range(len(chosen)), key=lambda i: -chosen[i].radix / shape[i]):
            if math.prod(coder.radix for coder in chosen) > limit:
                chosen[place] = chosen[place].settled()
        radices = [coder.radix for coder in chosen]
        stored = math.prod(radices)
        counts = np.zeros(stored, dtype=np.int64)
        # One bincount per block; blocks grow with the table so that its zeroing stays a small part.
        width = min(max(BLOCK, 4 * stored), max(self.rows, 1))
        buffer = np.empty(width, dtype=np.intp)
        offset = 0
        for coder in chosen:
            offset = offset * coder.radix + coder.offset
        for start in range(0, self.rows, width):
            stop = min(start + width, self.rows)
            for first in range(start, stop, BLOCK):
                last = min(first + BLOCK, stop)
                out = buffer[first - start : last - start]
                _mixed_radix(chosen, first, last, offset, out)
            counts += np.bincount(buffer[: stop - start], minlength=stored)
        return _settle(counts.reshape(radices), [coder.cells for coder in chosen], shape).reshape(-1)

    def table(self, columns: Sequence[Column], method: str) -> Integers:
        """Records per declared cell of ``columns`` (null cells last on each axis), flat in C order."""
        coders = [self._coder(column, method) for column in columns]
        return self._count(coders, [column.cells(method) for column in columns])

    def bins(self, column: Column, edges: Sequence[float]) -> Integers:
        """Records per bin of ``edges``, then the null cell where nulls are declared."""
        coder = self._bin_coder(column, edges, outside=True)
        return self._count([coder], [len(edges) - 1 + int(column.nullable)])

    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        """Records complete in all ``quantities``, per declared group of ``keys``."""
        shape = [key.cells(method) for key in keys]
        groups = math.prod(shape)
        coders = [self._coder(key, method).settled() for key in keys]
        reads = [self._quantity(quantity) for quantity in quantities]
        size = len(quantities)
        pairs = [(i, j) for i in range(size) for j in range(i, size)] if products else []
        rows = np.zeros(groups, dtype=np.int64)
        sums = [np.zeros(groups, dtype=object) for _ in range(size)]
        totals = {pair: np.zeros(groups, dtype=object) for pair in pairs}
        buffer = np.empty((size, min(BLOCK, max(self.rows, 1))))
        for start in range(0, self.rows, BLOCK):
            stop = min(start + BLOCK, self.rows)
            codes = np.zeros(stop - start, dtype=np.int64)
            left_out = np.zeros(stop - start, dtype=bool)
            for coder, radix in zip(coders, shape, strict=True):
                part = coder.codes(start, stop)
                left_out |= part < 0
                codes = codes * radix + part
            values = buffer[:, : stop - start]
            for row, quantity in enumerate(quantities):
                nulls = quantity.anchored(reads[row](start, stop), values[row])
                values[row] -= 1.5 * 2.0**52 * quantity.grid
                if nulls is not None:
                    left_out |= nulls
            codes[left_out] = groups
            rows += np.bincount(codes, minlength=groups + 1)[:groups]
            for i, quantity in enumerate(quantities):
                sums[i] += _whole(codes, values[i], groups, quantity.grid)
            for i, j in pairs:
                grid = quantities[i].grid * quantities[j].grid
                totals[i, j] += _whole(codes, values[i] * values[j], groups, grid)
        return GroupedSums(
            rows.tolist(),
            [column.tolist() for column in sums],
            {pair: column.tolist() for pair, column in totals.items()},
        )


def _whole(codes: Integers, weights: Floats, groups: int, grid: float) -> Any:
    """Sums of grid multiples per group as Python integers (exact: below 2**53 in a block)."""
    sums = np.bincount(codes, weights=weights, minlength=groups + 1)[:groups] / grid
    return sums.astype(np.int64).astype(object)


def _mixed_radix(coders: Sequence[Coder], start: int, stop: int, offset: int, out: NDArray[Any]) -> None:
    for place, coder in enumerate(coders):
        codes = coder.codes(start, stop)
        if place == 0:
            np.copyto(out, codes, casting="unsafe")
        else:
            out *= coder.radix
            np.add(out, codes, out=out, casting="unsafe")
    out += offset


def _settle(counts: Integers, maps: Sequence[Integers], shape: Sequence[int]) -> Integers:
    """Stored cells added into declared cells, axis by axis; those without one are dropped."""
    for axis, cells in enumerate(maps):
        kept = np.flatnonzero(cells >= 0)
        target = cells[kept]
        if len(kept) == shape[axis] and bool(np.all(np.diff(target) > 0)):
            counts = np.take(counts, kept, axis=axis)
            continue
        moved = np.moveaxis(counts, axis, 0)
        settled = np.zeros((shape[axis], *moved.shape[1:]), dtype=np.int64)
        np.add.at(settled, target, moved[kept])
        counts = np.moveaxis(settled, 0, axis)
    return np.ascontiguousarray(counts)


def _arrow_codes(chunks: Any, labels: Sequence[str]) -> Callable[[int, int], NDArray[Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array([*labels, None], type=chunks.type)
    null = len(labels)

    def codes(start: int, stop: int) -> NDArray[Any]:
        found = pc.index_in(chunks.slice(start, stop - start), value_set=known).fill_null(null + 1)
        array = np.asarray(found.to_numpy()).astype(np.int32, copy=True)
        # stored order: null (-1), labels, no cell
        array[array == null] = -1
        array[array == null + 1] = null
        return array

    return codes
