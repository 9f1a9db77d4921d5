"""Likelihoods that are sums of log(a + j) over j below each count, and their maxima.

They depend on the data only through how many cells have each count. Written with phi = 1/a they are
smooth at phi = 0, the law without overdispersion (multinomial, Poisson). The other parameters have one
best value for each phi; what is left is a function of phi alone, whose every maximum is looked for and
compared with the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Steps", "Tally", "log_grid", "moments_of", "peaks_of", "tally_of"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Tally: TypeAlias = tuple[Integers, Integers]

NODES = 8  # nodes for a run of equal terms; their error is below 1e-15, see _run
SINGLE = 64  # up to here every term of a sum stands for itself


def tally_of(counts: Integers) -> Tally:
    """The distinct positive counts, ascending, and how many cells have each."""
    if counts.max() < 4 * len(counts) + 1024:
        cells = np.bincount(counts)
        cells[0] = 0
        values = np.flatnonzero(cells)
        return values.astype(np.int64), cells[values].astype(np.int64)
    values, cells = np.unique(counts[counts > 0], return_counts=True)
    return values, cells.astype(np.int64)


def moments_of(tally: Tally) -> tuple[int, int]:
    """The sums of n and of n (n - 1) over the cells, exactly."""
    pairs = list(zip(tally[0].tolist(), tally[1].tolist(), strict=True))
    return sum(cells * n for n, cells in pairs), sum(cells * n * (n - 1) for n, cells in pairs)


def _run(first: Integers, lengths: Integers) -> tuple[Floats, Floats]:
    """Gauss nodes and weights (R, NODES) for the sum of f(j) over each run of whole numbers j.

    Exact for polynomials of degree 15 (orthogonal on equidistant points: the discrete
    Chebyshev polynomials). Runs are at most half as long as their first number, so log(a + j)
    and its like converge by a factor of 98 with each node.
    """
    k = np.arange(1, NODES)
    beside = np.sqrt(k**2 * (lengths[:, np.newaxis].astype(float) ** 2 - k**2) / (4 * (4 * k**2 - 1)))
    jacobi = np.zeros((len(lengths), NODES, NODES))
    jacobi[:, k - 1, k] = jacobi[:, k, k - 1] = beside
    nodes, vectors = np.linalg.eigh(jacobi)
    middle = first + (lengths - 1) / 2
    return middle[:, np.newaxis] + nodes, lengths[:, np.newaxis] * vectors[:, 0, :] ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Points x and weights w: the sum of w f(x) is the sum over cells of f(0) + ... + f(n - 1).

    ``of`` (P,) is the column of the table that a point belongs to.
    """

    points: Floats
    weights: Floats
    of: Integers
    columns: int

    @classmethod
    def over(cls, tallies: Sequence[Tally]) -> Steps:
        """Of columns with at least one record each."""
        points, weights, of = [], [], []
        for column, (values, cells) in enumerate(tallies):
            top = int(values[-1])
            cuts = [*range(min(SINGLE, top))]
            while cuts[-1] < top:
                cuts.append(cuts[-1] + max(1, cuts[-1] // 2))
            edges = np.unique(np.minimum(np.concatenate([values, np.array(cuts)]), top))
            first, lengths = edges[:-1], np.diff(edges)
            below = np.concatenate([[0], np.cumsum(cells)])
            above = below[-1] - below[np.searchsorted(values, first, side="right")]
            short = lengths <= NODES
            number = lengths[short]
            start = np.repeat(first[short], number)
            since = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
            nodes, shares = _run(first[~short], lengths[~short])
            points += [start + since.astype(np.float64), nodes.ravel()]
            weights += [
                np.repeat(above[short], number).astype(np.float64),
                (shares * above[~short, np.newaxis]).ravel(),
            ]
            of.append(np.full(len(start) + nodes.size, column))
        return cls(np.concatenate(points), np.concatenate(weights), np.concatenate(of), len(tallies))

    def sums(self, terms: Floats) -> Floats:
        """(columns,) sums of the weighted terms, one for each point."""
        totals = np.bincount(self.of, weights=self.weights * terms, minlength=self.columns)
        return np.asarray(totals, dtype=np.float64)


def peaks_of(slope: Callable[[float], float], grid: Sequence[float], slopes: Sequence[float]) -> list[float]:
    """Where the slope changes from positive to not positive, between the points of the grid."""
    from scipy.optimize import brentq

    found = []
    for place in range(len(grid) - 1):
        if slopes[place] > 0 >= slopes[place + 1]:
            root = brentq(slope, grid[place], grid[place + 1], xtol=1e-300, rtol=1e-15, maxiter=500)
            found.append(float(root))
    return found


def log_grid(low: float, high: float, per_decade: int) -> list[float]:
    """From ``low`` to ``high``, evenly on a logarithmic scale."""
    steps = math.ceil(per_decade * math.log10(high / low)) + 1
    return [float(value) for value in np.geomspace(low, high, steps)]
