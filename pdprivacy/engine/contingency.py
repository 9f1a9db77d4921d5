"""Contingency tables: records counted by the codes of their columns, block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.engine.blocks import BLOCK, Coder, blocks

__all__ = ["count_cells"]

Integers: TypeAlias = NDArray[np.int64]


def count_cells(coders: Sequence[Coder], shape: Sequence[int], rows: int) -> Integers:
    """Return the records per declared cell, flat in C order of ``shape``."""
    stored = _stored(coders, shape)
    radices = [column.radix for column in stored]
    size = math.prod(radices)
    counts = np.zeros(size, dtype=np.int64)
    # One bincount per block; blocks grow with the table so that its zeroing stays a small part.
    width = min(max(BLOCK, 3 * size), max(rows, 1))
    buffer = np.empty(width, dtype=np.intp)
    # codes are put together in the narrowest type that holds them: several times as fast
    narrow = np.int16 if size < 2**15 else np.int32 if size < 2**31 else np.int64
    scratch = np.empty(min(BLOCK, width), dtype=narrow)
    for start, stop in blocks(rows, width):
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            codes = scratch[: last - first]
            _mixed_radix(stored, first, last, codes)
            np.copyto(buffer[first - start : last - start], codes)
        counts += np.bincount(buffer[: stop - start], minlength=size)
    return _settle(counts.reshape(radices), [column.cells for column in stored], shape).reshape(-1)


def _stored(coders: Sequence[Coder], shape: Sequence[int]) -> list[Coder]:
    """The columns by stored codes, which are free per row, where their table stays near the declared one."""
    limit = max(2 * math.prod(shape), 1 << 12)
    stored = list(coders)
    for place in sorted(range(len(stored)), key=lambda i: -stored[i].radix / shape[i]):
        if math.prod(column.radix for column in stored) > limit:
            stored[place] = stored[place].settled()
    return stored


def _mixed_radix(columns: Sequence[Coder], start: int, stop: int, out: NDArray[Any]) -> None:
    """Write the place of each row in the table of stored codes, of which -1 is the first."""
    offset = 0
    for place, column in enumerate(columns):
        codes = column.codes(start, stop)
        offset = offset * column.radix + 1
        if place == 0:
            np.copyto(out, codes, casting="unsafe")
        else:
            out *= column.radix
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
