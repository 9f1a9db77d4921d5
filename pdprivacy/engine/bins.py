"""Numbers put into bins: half-open, the last one closed, exactly as their edges say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_bins", "placer"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Placer: TypeAlias = Callable[[Floats], Integers]

PIECE = 1 << 15
"""Rows at a time: the few arrays that a step needs stay in the cache until the next."""

FRACTION_BITS = 30
NEAR = 8
"""A position within so many units of 2**-30 of an edge is settled by the edge itself."""

FEW_EDGES = 16


def placer(edges: Floats) -> Placer:
    """A function from at most `PIECE` numbers (no null) to their bins; beyond the edges, the outer bins.

    Even bins are found by arithmetic, except for numbers close to an edge; those, and all numbers
    where bins are uneven, are compared with the edges.
    """
    inner = edges[1:-1]
    estimate = _estimator(edges)
    if estimate is None:
        return lambda piece: np.searchsorted(inner, piece, side="right")

    def place(piece: Floats) -> Integers:
        found, near = estimate(piece)
        if near is not None:
            found[near] = np.searchsorted(inner, piece[near], side="right")
        return found

    return place


def _estimator(edges: Floats) -> Callable[[Floats], tuple[Integers, NDArray[np.bool_] | None]] | None:
    """Bins by fixed-point arithmetic, and which numbers lie too near an edge for it; None if uneven.

    The arithmetic is monotone and off by less than `NEAR` units of 2**-30 of a bin.
    """
    count = len(edges) - 1
    with np.errstate(all="ignore"):
        width = (edges[-1] - edges[0]) / count
        scale = np.float64(1.0) / width
        offset = edges[0] * scale
        drift = np.abs((edges - edges[0]) * scale - np.arange(count + 1)).max()
    even = bool(np.isfinite(scale) and drift < 2.0**-FRACTION_BITS and abs(offset) + count < 2.0**18)
    if not even:
        return None
    # adding 1.5 * 2**52 units leaves the position in whole units in the low bits
    unit = 2.0**-FRACTION_BITS
    anchor = np.float64(1.5 * 2.0**52 * unit)
    shift = anchor - offset + NEAR * unit  # so that what lies near an edge has few units in its low bits
    zero = int(anchor.view(np.int64))
    low, high = edges[0] + width / 4, edges[-1] - width / 4
    floats = np.empty(PIECE)
    wholes = np.empty(PIECE, dtype=np.int64)

    def estimate(piece: Floats) -> tuple[Integers, NDArray[np.bool_] | None]:
        position = floats[: len(piece)]
        np.clip(piece, low, high, out=position)  # within the outer bins, but off their edges
        position *= scale
        position += shift
        found = position.view(np.int64)
        found -= zero
        beside = wholes[: len(piece)]
        np.bitwise_and(found, (1 << FRACTION_BITS) - 1, out=beside)
        near = beside < 2 * NEAR if beside.min(initial=2 * NEAR) < 2 * NEAR else None
        found >>= FRACTION_BITS
        return found, near

    return estimate


def _sorted_counts(piece: Floats, inner: Floats) -> Integers:
    """Numbers per bin by sorting, which is quick where many are equal."""
    reached = np.searchsorted(np.sort(piece), inner, side="left")
    return np.diff(np.concatenate([[0], reached, [len(piece)]]))


def count_bins(
    read: Callable[[int, int], Any], rows: int, edges: Floats, lower: float, upper: float
) -> tuple[Integers, int]:
    """Numbers per bin after clamping to the bounds, those beyond the edges in none; and nulls.

    ``read(start, stop)`` gives rows as doubles, NaN for null.
    """
    count = len(edges) - 1
    counts = np.zeros(count, dtype=np.int64)
    nulls = 0
    clamped = lower == edges[0] and upper == edges[-1]  # the outer bins take what lies beyond
    beyond = lower < edges[0] or upper > edges[-1]
    few = count <= FEW_EDGES
    estimate = None if few else _estimator(edges)
    buffer = np.empty(PIECE)
    flags = np.empty(PIECE, dtype=bool)
    for start in range(0, rows, PIECE):
        piece = read(start, min(start + PIECE, rows))
        if piece.dtype != np.float64 or not clamped:
            out = buffer[: len(piece)]
            np.copyto(out, piece, casting="unsafe")
            piece = np.clip(out, lower, upper, out=out)
        if np.isnan(piece.min(initial=np.inf)):
            gone = np.isnan(piece)
            nulls += int(np.count_nonzero(gone))
            piece = piece[~gone]
        flag = flags[: len(piece)]
        if beyond:
            below = np.count_nonzero(np.less(piece, edges[0], out=flag))
            above = np.count_nonzero(np.greater(piece, edges[-1], out=flag))
            counts[0] -= below
            counts[-1] -= above
        if not few:
            found, near = (None, None) if estimate is None else estimate(piece)
            if found is None or near is not None:
                counts += _sorted_counts(piece, edges[1:-1])
            else:
                counts += np.bincount(found, minlength=count)
            continue
        reached = len(piece)
        for cell, edge in enumerate(edges[1:-1]):
            further = int(np.count_nonzero(np.greater_equal(piece, edge, out=flag)))
            counts[cell] += reached - further
            reached = further
        counts[-1] += reached
    return counts, nulls
