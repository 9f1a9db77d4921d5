"""Records as points: kept as grid steps, and summed up around their nearest centres."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.engine.blocks import BLOCK, blocks
from pdprivacy.statistic import GroupedSums, Quantity

__all__ = ["points", "sums_around"]

Floats: TypeAlias = NDArray[np.float64]
Steps: TypeAlias = NDArray[np.int32]

PRODUCT = 1 << 18
"""Multiplications in a product of matrices: libraries start no threads for so few, to wait for each other."""


def points(reads: Sequence[Callable[[int, int], Any]], quantities: Sequence[Quantity], rows: int) -> Steps:
    """The grid steps of all records, one row per quantity; the last row counts each record.

    A record with a null is all zero, and so adds nothing to any sum.
    """
    found = np.empty((len(quantities) + 1, rows), dtype=np.int32)
    found[-1] = 1
    buffer = np.empty((len(quantities), min(BLOCK, max(rows, 1))))
    for start, stop in blocks(rows, BLOCK):
        values = buffer[:, : stop - start]
        for row, quantity in enumerate(quantities):
            quantity.centered(reads[row](start, stop), values[row])
            values[row] /= quantity.grid
        incomplete = np.isnan(values).any(axis=0)
        if incomplete.any():
            values[:, incomplete] = 0.0
            found[-1, start:stop][incomplete] = 0
        found[:-1, start:stop] = values
    return found


def sums_around(steps: Steps, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums:
    """The records nearest to each centre, counted, and their steps summed up; the first of equally near ones.

    Distances are Euclidean where each range is brought to [-1, 1]. The nearest centre is the one of the
    largest x c - |c|^2 / 2, by products and sums of whole arrays in a fixed order. Each of them rounds number
    by number, so that the cluster of a record depends on nothing but the record and the centres. A product
    of matrices would not do: its rounding may depend on where in a block a record is. It does for the sums,
    which are of whole numbers below 2**53, and exact in any order.
    """
    weights, shifts = _weights(quantities, centers)
    size, rows = len(centers), steps.shape[1]
    width = max(PRODUCT // (size * len(steps)), 512)
    totals = np.zeros((size, len(steps)), dtype=np.int64)
    values = np.empty((len(steps), width))
    near, more = np.empty((2, size, width))
    for start, stop in blocks(rows, width):
        block, scores, terms = (array[:, : stop - start] for array in (values, near, more))
        np.copyto(block, steps[:, start:stop])
        scores[:] = shifts
        for row in range(len(quantities)):
            np.multiply(weights[:, row, np.newaxis], block[row], out=terms)
            scores += terms
        np.equal(scores, scores.max(axis=0), out=scores)
        held = np.dot(scores, block.T)
        if held[:, -1].sum() > block[-1].sum():  # some are equally near to two
            np.logical_and(scores, np.cumsum(scores, axis=0) == 1, out=scores)
            held = np.dot(scores, block.T)
        totals += held.astype(np.int64)
    columns = totals.T.tolist()
    return GroupedSums(columns[-1], columns[:-1], {})


def _weights(quantities: Sequence[Quantity], centers: Floats) -> tuple[Floats, Floats]:
    """What the steps of each quantity are multiplied by for each centre, and what is added."""
    halves = np.array([(q.upper - q.lower) / 2 for q in quantities])
    scales = np.divide(1.0, halves, out=np.zeros(len(halves)), where=halves > 0)
    places = (centers - np.array([q.center for q in quantities])) * scales
    weights = places * (scales * np.array([q.grid for q in quantities]))
    return weights, -(places**2).sum(axis=1, keepdims=True) / 2
