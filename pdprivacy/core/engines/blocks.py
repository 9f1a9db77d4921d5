"""Columns of a pandas frame read block by block: as numbers, small integers per label, bins, and tables.

Bins are half-open, and the last bin is closed, exactly at their edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.core.rows.cells import double, label_position, label_positions
from pdprivacy.declaration.domain import Column
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats, Integers, Mask

Reader: TypeAlias = Callable[[int, int], Any]


PIECE = 1 << 15
"""The number of rows of one step, whose arrays stay in the cache until the next step."""

LARGEST = 2**63 - 1
"""The largest integer of 64 bits; no declared bound exceeds it."""

BLOCK = 1 << 17
"""The number of rows read at a time; a few arrays of this size fit the processor's cache."""


def blocks(rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the start and the stop of each block of at most ``size`` rows."""
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def numbers(values: Any) -> Reader:
    """Return a reader of blocks of a pandas array as numbers, NaN for null."""
    if isinstance(values, pd.arrays.NumpyExtensionArray):
        array = values.to_numpy()
        if array.dtype.kind == "b":
            return lambda start, stop: array[start:stop].view(np.int8)
        if array.dtype.kind in "iuf":
            return lambda start, stop: array[start:stop]
    elif values.dtype.kind in "biuf":
        return lambda start, stop: values[start:stop].to_numpy(dtype=np.float64, na_value=np.nan)

    def mixed(start: int, stop: int) -> Any:
        return _doubles(np.asarray(values[start:stop], dtype=object))

    return mixed


def _doubles(cells: NDArray[np.object_]) -> Floats:
    """Return cells of any type as doubles, converted by `float`; NaN for nulls and invalid numbers."""
    try:
        doubles = np.array(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError):  # pandas cannot convert a cell
        doubles = np.full(len(cells), np.nan)
    left = np.flatnonzero(np.isnan(doubles))
    if len(left):  # nulls, and numbers that pandas cannot convert, such as fractions
        doubles[left] = [double(cell) for cell in cells[left]]
    return doubles


@dataclass(frozen=True, slots=True)
class Coder:
    """A reader of a column as small integers, which are cheap per row and map to declared cells.

    ``codes(start, stop)`` returns the stored codes of these rows, integers from -1. ``cells`` maps each code,
    -1 first, to its declared cell, or to -1 if the declaration has no cell for it. ``size``: the number of
    declared cells, including the null cell.
    """

    codes: Reader
    cells: Integers
    size: int

    def to_declared_cells(self) -> Coder:
        """Return a coder whose codes are the declared cells, and -1 for undeclared values."""
        lookup, read = self.cells.astype(np.int32), self.codes
        return Coder(
            lambda start, stop: lookup[read(start, stop).astype(np.intp) + 1],
            np.arange(-1, self.size, dtype=np.int64),
            self.size,
        )


def _coder_of_codes(codes: Reader, column: Column, stored: Sequence[int] | Integers, labels: int) -> Coder:
    """Return a coder that maps code -1 to the null cell (or none) and the others to ``stored`` cells."""
    null = labels if column.nullable else -1
    cells = np.concatenate([[null], np.asarray(stored, dtype=np.int64)]).astype(np.int64)
    return Coder(codes, cells, labels + int(column.nullable))


def coder(values: Any, column: Column, method: str) -> Coder:
    """Return the coder that reads ``values`` as the declared cells of ``column``."""
    if column.bins is not None:
        return edge_coder(values, column, column.bins)
    labels = column.labels(method)
    if column.kind == "integer" and column.categories is None:
        return _integer_coder(
            values, column, (int(labels[0]), int(labels[-1])), np.arange(len(labels)), len(labels)
        )
    if isinstance(values, pd.Categorical):
        return _category_coder(values, column, labels)
    if column.kind == "boolean" and isinstance(values, pd.arrays.NumpyExtensionArray):
        truth = values.to_numpy()
        if truth.dtype.kind == "b":
            cell_of_truth = {label: cell for cell, label in enumerate(labels)}
            stored = [cell_of_truth.get(False, -1), cell_of_truth.get(True, -1)]
            return _coder_of_codes(
                lambda start, stop: truth[start:stop].view(np.int8), column, stored, len(labels)
            )
    if column.kind in ("float", "integer") and all(abs(label) < EXACT for label in labels):
        read = _number_codes(values, labels)
    else:
        read = _arrow_codes(values, labels) or _hashed_codes(values, labels)
    return _coder_of_codes(read, column, [*range(len(labels)), -1], len(labels))


def _integer_coder(
    values: Any, column: Column, bounds: tuple[int, int], cells: Integers, labels: int
) -> Coder:
    """Return a coder of integers by their distance from the lower bound; ``cells``: the cell of each."""
    lower, upper = bounds
    small = np.int16 if upper - lower < 2**15 else np.int64
    if max(abs(lower), abs(upper)) > EXACT:
        return _coder_of_codes(_exact_distances(values, lower, upper, small), column, cells, labels)
    read = numbers(values)

    def codes(start: int, stop: int) -> NDArray[Any]:
        block = read(start, stop)
        if block.dtype.kind == "u" and block.itemsize == 8:
            block = np.minimum(block, np.uint64(2 * EXACT))
        if block.dtype.kind != "f":
            whole = block
            if len(block) and not (lower <= block.min() and block.max() <= upper):
                whole = np.clip(block.astype(np.int64, copy=False), lower, upper)
            # the low bits of numbers within the bounds hold the distance, even if they wrap around
            distances: NDArray[Any] = np.empty(len(whole), dtype=small)
            np.copyto(distances, whole, casting="unsafe")
            distances -= np.array(lower).astype(small)
            return distances
        clipped = np.clip(block.astype(np.float64, copy=False), lower, upper)
        nulls = np.isnan(clipped)
        if not nulls.any():
            return np.asarray((np.floor(clipped) - lower).astype(small))
        placed = (np.floor(np.where(nulls, lower, clipped)) - lower).astype(small)
        placed[nulls] = -1
        return np.asarray(placed)

    return _coder_of_codes(codes, column, cells, labels)


def _exact_distances(values: Any, lower: int, upper: int, small: Any) -> Reader:
    """Return a reader of distances of integers from bounds beyond 2**53, cell by cell in whole numbers."""

    def codes(start: int, stop: int) -> NDArray[Any]:
        cells = np.asarray(values[start:stop], dtype=object)
        return np.fromiter((_distance(cell, lower, upper) for cell in cells), dtype=small, count=len(cells))

    return codes


def _distance(cell: Any, lower: int, upper: int) -> int:
    """Return the distance of a cell, clamped and rounded down, from ``lower``; -1 for null."""
    try:
        if cell != cell:
            return -1
        whole = math.floor(cell)
    except OverflowError:  # infinite
        return upper - lower if cell > 0 else 0
    except (TypeError, ValueError, ArithmeticError):
        return -1
    return int(min(max(whole, lower), upper)) - lower


def _category_coder(values: pd.Categorical, column: Column, labels: Sequence[Any]) -> Coder:
    cell_of = {label: cell for cell, label in enumerate(labels)}
    stored = [cell_of.get(label, -1) for label in values.categories.tolist()]
    array = np.asarray(values.codes)
    column_coder = _coder_of_codes(lambda start, stop: array[start:stop], column, stored, len(labels))
    return (
        column_coder if len(column_coder.cells) <= 2 * len(labels) + 16 else column_coder.to_declared_cells()
    )


def _number_codes(values: Any, labels: Sequence[float]) -> Reader:
    """Return a reader of numeric labels, compared as doubles, which hold each label below 2**53 exactly."""
    read = numbers(values)
    order = np.argsort(np.asarray(labels, dtype=np.float64))
    ordered = np.asarray(labels, dtype=np.float64)[order]

    def codes(start: int, stop: int) -> NDArray[Any]:
        block = np.asarray(read(start, stop), dtype=np.float64)
        near = np.minimum(np.searchsorted(ordered, block), len(ordered) - 1)
        positions = np.where(ordered[near] == block, order[near], len(ordered))
        positions[np.isnan(block)] = -1
        return positions

    return codes


def _hashed_codes(values: Any, labels: Sequence[Any]) -> Reader:
    """Return a reader of labels of any type, compared by hash and equality."""
    places = label_positions(labels)
    nowhere = len(labels)
    # pandas looks up texts only: for other labels it would infer one type for all labels or all cells
    texts = all(type(label) is str for label in labels)
    index = pd.Index(list(labels), dtype=object, tupleize_cols=False)

    def codes(start: int, stop: int) -> NDArray[Any]:
        cells = np.asarray(values[start:stop], dtype=object)
        positions = None
        if texts:
            try:
                target = pd.Index(cells, dtype=object, tupleize_cols=False)
                positions = np.array(index.get_indexer(target), dtype=np.int64)
            except Exception:  # cells without a hash, and all others that pandas cannot look up
                positions = None
        if positions is None:
            positions = np.array([label_position(cell, places) for cell in cells], dtype=np.int64)
        positions[positions < 0] = nowhere
        positions[pd.isna(cells)] = -1
        return positions

    return codes


_TEXT = ("string", "large_string")


def _arrow_codes(values: Any, labels: Sequence[Any]) -> Reader | None:
    """Return a reader of text labels in Arrow memory, looked up by Arrow; None for other values or labels."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "storage", None) != "pyarrow" and not isinstance(dtype, pd.ArrowDtype):
        return None
    if set(map(type, labels)) != {str}:  # bytes would become texts
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = values.__arrow_array__()
    value_type = chunks.type.value_type if pa.types.is_dictionary(chunks.type) else chunks.type
    if str(value_type) not in (*_TEXT, "string_view"):
        return None
    plain = str(chunks.type) in _TEXT
    text = chunks.type if plain else pa.large_string()
    try:
        known = pa.array([*labels, None], type=text)
        pa.nulls(1, chunks.type).cast(text)
    except (UnicodeEncodeError, pa.ArrowException):  # a label that is not valid text, or an old Arrow
        return None
    null = len(labels)

    def codes(start: int, stop: int) -> NDArray[Any]:
        block = chunks.slice(start, stop - start)
        indices = pc.index_in(block if plain else block.cast(text), value_set=known).fill_null(null + 1)
        array = np.array(indices.to_numpy(), dtype=np.int32)
        array[array == null] = -1
        array[array == null + 1] = null
        return array

    return codes


# ---------------------------------------------------------------- bins


def rounds_down(column: Column) -> bool:
    """Return whether numbers are rounded down before they are put into bins, as for few integers."""
    lower, upper = column.bounds("bins")
    return column.kind == "integer" and upper - lower < 4096


def edge_coder(values: Any, column: Column, bins: Sequence[float]) -> Coder:
    """Return a coder of half-open bins, the last closed; clamped values beyond the edges are in no bin."""
    edges = np.asarray(bins, dtype=np.float64)
    count = len(edges) - 1
    lower, upper = column.bounds("bins")
    if rounds_down(column):
        whole = np.arange(int(lower), int(upper) + 1)
        cells = np.searchsorted(edges, whole, side="right") - 1
        cells[whole == edges[-1]] = count - 1
        cells[(whole < edges[0]) | (whole > edges[-1])] = -1
        return _integer_coder(values, column, (int(lower), int(upper)), cells, count)
    read = numbers(values)
    bins_of = _bin_finder(edges)
    with np.errstate(over="ignore"):
        first, last = bins_of(np.array([lower, upper])).tolist()
    # bins are in the order of values, so the bin of a clamped value is the clamped bin
    clamp = first > 0 or last < count - 1
    below, above = lower < edges[0], upper > edges[-1]
    apart = upper < edges[0] or lower > edges[-1]

    def codes(start: int, stop: int) -> NDArray[Any]:
        block = np.asarray(read(start, stop), dtype=np.float64)
        nulls: Mask = np.isnan(block)
        some = bool(nulls.any())
        if some:
            block = np.where(nulls, edges[0], block)
        with np.errstate(over="ignore"):
            codes_of_block = bins_of(block)
        if clamp:
            np.clip(codes_of_block, first, last, out=codes_of_block)
        if below:
            codes_of_block[block < edges[0]] = count
        if above:
            codes_of_block[block > edges[-1]] = count
        if apart:
            codes_of_block[:] = count
        if some:
            codes_of_block[nulls] = -1
        return codes_of_block

    return _coder_of_codes(codes, column, [*range(count), -1], count)


FEW_EDGES = 16
"""The number of edges up to which a comparison with each is the quickest way to count."""


def count_few_bins(
    read: Callable[[int, int], Any], rows: int, edges: Sequence[float], lower: float, upper: float
) -> tuple[Integers, int]:
    """Return the counts per bin of numbers clamped to the bounds, and the number of nulls.

    Clamped numbers beyond the edges are in no bin. ``read(start, stop)`` returns rows as doubles, NaN for
    null.
    """
    *starts, end = edges
    within = [position for position, edge in enumerate(starts) if lower < edge <= upper]
    at_least, nulls = np.zeros(len(edges), dtype=np.int64), 0
    for start, stop in blocks(rows, PIECE):
        piece = np.asarray(read(start, stop), dtype=np.float64)
        nulls += int(np.count_nonzero(np.isnan(piece)))
        for position in within:
            at_least[position] += np.count_nonzero(piece >= starts[position])
        if lower <= end < upper:
            at_least[-1] += np.count_nonzero(piece > end)
    at_least[[position for position, edge in enumerate(starts) if edge <= lower]] = rows - nulls
    if end < lower:
        at_least[-1] = rows - nulls
    return -np.diff(at_least), nulls


FRACTION_BITS = 30
NEAR = 8
"""A position within this many units of 2**-30 of an edge is compared with the edge itself."""


def _bin_finder(edges: Floats) -> Callable[[Floats], NDArray[Any]]:
    """Return a function from numbers (no null) to bins as small integers; numbers beyond go to outer bins.

    Bins of equal width are computed by fixed-point arithmetic, which is monotone, with an error below `NEAR`
    units of 2**-30 of a bin. Numbers close to an edge, and all numbers in bins of unequal width, are compared
    with the edges.
    """
    count, inner = len(edges) - 1, edges[1:-1]
    small = np.int16 if count < 2**15 else np.int32
    with np.errstate(all="ignore"):
        width = (edges[-1] - edges[0]) / count
        scale = np.float64(1.0) / width
        offset = edges[0] * scale
        drift = np.abs((edges - edges[0]) * scale - np.arange(count + 1)).max()
    even = bool(np.isfinite(scale) and drift < 2.0**-FRACTION_BITS and abs(offset) + count < 2.0**18)
    if not even:
        return lambda block: np.searchsorted(inner, block, side="right").astype(small)
    # adding 1.5 * 2**52 units leaves the position in whole units in the low bits
    unit = 2.0**-FRACTION_BITS
    anchor = np.float64(1.5 * 2.0**52 * unit)
    shift = anchor - offset + NEAR * unit  # a number near an edge has few units in its low bits
    zero = int(anchor.view(np.int64))
    low, high = edges[0] + width / 4, edges[-1] - width / 4
    floats, wholes = np.empty(PIECE), np.empty(PIECE, dtype=np.int64)

    def place(block: Floats) -> NDArray[Any]:
        bins_found = np.empty(len(block), dtype=small)
        for start, stop in blocks(len(block), PIECE):
            piece, position, beside = block[start:stop], floats[: stop - start], wholes[: stop - start]
            np.clip(piece, low, high, out=position)  # within the outer bins, but off their edges
            position *= scale
            position += shift
            bins = position.view(np.int64)
            bins -= zero
            np.bitwise_and(bins, (1 << FRACTION_BITS) - 1, out=beside)
            bins >>= FRACTION_BITS
            if beside.min() < 2 * NEAR:
                near = np.flatnonzero(beside < 2 * NEAR)
                bins[near] = np.searchsorted(inner, piece[near], side="right")
            bins_found[start:stop] = bins
        return bins_found

    return place


# ---------------------------------------------------------------- contingency tables


def count_cells(coders: Sequence[Coder], rows: int) -> Integers:
    """Return the counts per declared cell, flat in C order."""
    table = CellTable(coders)
    size = table.size
    counts = np.zeros(size, dtype=np.int64)
    # One bincount per block; blocks grow with the table, so that zeroing it stays cheap in comparison.
    width = min(max(BLOCK, 3 * size), max(rows, 1))
    buffer = np.empty(width, dtype=np.intp)
    # codes are combined in the narrowest type that holds them, which is several times as fast
    narrow = np.int16 if size < 2**15 else np.int32 if size < 2**31 else np.int64
    scratch = np.empty(min(BLOCK, width), dtype=narrow)
    for start in range(0, rows, width):
        stop = min(start + width, rows)
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            codes = scratch[: last - first]
            table.read(first, last, codes)
            np.copyto(buffer[first - start : last - start], codes)
        counts += np.bincount(buffer[: stop - start], minlength=size)
    return table.declared_counts(counts).reshape(-1)


class CellTable:
    """The declared cells of columns, read as positions in a table of their stored codes.

    Stored codes are cheaper per row than declared cells; a column keeps them if the table is not much larger.
    """

    def __init__(self, coders: Sequence[Coder]) -> None:
        limit = max(2 * math.prod([column.size for column in coders]), 1 << 12)
        stored = list(coders)
        for axis in sorted(range(len(stored)), key=lambda i: -len(stored[i].cells) / stored[i].size):
            if math.prod([len(column.cells) for column in stored]) > limit:
                stored[axis] = stored[axis].to_declared_cells()
        self._columns = stored
        self._radices = [len(column.cells) for column in stored]
        self.size, self.declared = math.prod(self._radices), math.prod(column.size for column in stored)

    def read(self, start: int, stop: int, out: NDArray[Any]) -> None:
        """Write the position of each row in the table of stored codes into ``out``; code -1 comes first."""
        offset = 0
        for axis, column in enumerate(self._columns):
            codes = column.codes(start, stop)
            radix = len(column.cells)
            offset = offset * radix + 1
            if axis == 0:
                np.copyto(out, codes, casting="unsafe")
            else:
                out *= radix
                np.add(out, codes, out=out, casting="unsafe")
        out += offset

    def declared_cells(self) -> Integers:
        """Return the declared cell of each position, and -1 for positions without a cell."""
        places = np.zeros(1, dtype=np.int64)
        for column in self._columns:
            cells = places[:, np.newaxis] * column.size + column.cells
            cells[(places[:, np.newaxis] < 0) | (column.cells < 0)] = -1
            places = cells.reshape(-1)
        return places

    def declared_counts(self, counts: Integers) -> Integers:
        """Return rows of numbers of declared cells from those of positions; drop positions without a cell."""
        counts = counts.reshape(-1, *self._radices)
        for axis, column in enumerate(self._columns, 1):
            kept = np.flatnonzero(column.cells >= 0)
            target = column.cells[kept]
            if len(kept) == column.size and bool(np.all(np.diff(target) > 0)):
                counts = np.take(counts, kept, axis=axis)
                continue
            moved = np.moveaxis(counts, axis, 0)
            to_declared_cells = np.zeros((column.size, *moved.shape[1:]), dtype=np.int64)
            np.add.at(to_declared_cells, target, moved[kept])
            counts = np.moveaxis(to_declared_cells, 0, axis)
        return np.ascontiguousarray(counts).reshape(len(counts), -1)
