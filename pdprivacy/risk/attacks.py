"""Attribute disclosure beyond homogeneity: guesses from all the counts of a cell.

An adversary reads every released count as the nearest whole number, and negative counts as 0, and
concludes a label for a record of the cell. The risk of a cell is the probability that this label is
right for one of its records, chosen at random. If all counts read as empty, the adversary concludes
nothing, which counts as wrong. For counts n_1, ..., n_K with sum n, let x_k be the reading of n_k:

- plurality (hard threshold): the adversary concludes the label with the largest x_k, one at random
  when several tie. The risk is the sum over k of (n_k/n) Pr(k is chosen).
- probabilistic (soft threshold): the adversary concludes label k with probability
  x_k / (x_1 + ... + x_K). The risk is the sum over k of (n_k/n) E[x_k / (x_1 + ... + x_K)].

Both contain the homogeneity attack: when only one label is left, both conclude this label. So neither
risk is below the local risk with the weights n_k/n (``partial=True``), which counts only these events;
for a homogeneous cell this is the local risk itself. As epsilon goes to 0, both risks approach
(1 - 2**-K) / K for every cell, by symmetry; without noise they are max(n_k)/n and sum (n_k/n)**2.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution", sections 6 and S5, which estimates them empirically.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre

from pdprivacy.risk.compositions import NEGLIGIBLE, Cells, Reading
from pdprivacy.types import Floats, Integers, Mask

DEGREE = 16
SHORTEST = 128  # shorter panels are not interpolated
BEGINNING = 256  # nor are the first counts
CLOSE = 1e-14  # the largest error of an interpolated distribution function
FARTHEST = 2**51  # reads beyond it tie with each other; doubles still hold its halves
FLOATS = 1 << 20  # the number of floats that a table holds at a time
TOGETHER = 512  # the number of reads whose sums are added up at once
TINY = 1e-300
LAST_RATE = 64.0  # exp(-64) is below 1e-27


class _Panel(NamedTuple):
    """A sum over consecutive reads x: sum of g(x) over the panel = sum of weights * g(reads).

    reads, weights : (n,).
    active : (D,), which of D counts may have a read in the panel; A of them are True.
    mass, below : (A, n), Pr(read = x) and Pr(read < x) of the active counts.
    first, last : (D,), Pr(read < x) at the start and after the end of the panel.
    """

    reads: Floats
    weights: Floats
    active: Mask
    mass: Floats
    below: Floats
    first: Floats
    last: Floats

    def tables(self, used: Integers) -> tuple[Floats, Floats]:
        """Return mass and below, (len(used), n) each, of these counts, active or not."""
        mass = np.zeros((len(used), len(self.reads)))
        below = np.repeat(self.first[used, np.newaxis], len(self.reads), axis=1)
        active = self.active[used]
        index = np.cumsum(self.active)[used[active]] - 1
        mass[active], below[active] = self.mass[index], self.below[index]
        return mass, below


class _Rule(NamedTuple):
    """A quadrature rule: a sum over a panel from a few values of the distribution functions.

    ends : (17,), the interpolation points of the panel; tested : (16,), points between them.
    fit : (16, 17), the map from values at ``ends`` to interpolated values at ``tested``.
    mass, below : (n, 17), the maps from values at ``ends`` to those of `_Panel` at ``reads``.
    weights : (n,), the weights of ``reads``.
    """

    ends: Floats
    tested: Floats
    fit: Floats
    reads: Floats
    mass: Floats
    below: Floats
    weights: Floats


@lru_cache(maxsize=64)
def _moments(length: int) -> Floats:
    """Return the means (16,) of the Legendre polynomials over ``length`` even points in [-1, 1].

    ``length`` is a power of two. Half of the points are the points of half the length, on [-1, 0]: the
    Legendre polynomials there, and on [0, 1], are combinations of those on [-1, 1].
    """
    if length == 1:
        return np.asarray(legendre.legvander(np.zeros(1), DEGREE - 1)[0])
    nodes, weights = legendre.leggauss(DEGREE)
    order = np.arange(DEGREE)
    wide, right = (legendre.legvander(x, DEGREE - 1) for x in (nodes, (nodes + 1) / 2))
    halved = (right * weights[:, np.newaxis]).T @ wide * (order + 0.5)
    odd = (order[:, np.newaxis] + order) % 2 == 1  # cancels between left and right
    return np.asarray(np.where(odd, 0.0, halved) @ _moments(length // 2))


@lru_cache(maxsize=64)
def _rule(length: int) -> _Rule:
    """Return the rule for ``length`` consecutive reads, a power of two; reads are counted from the first."""
    between = np.arange(2 * DEGREE + 1) * (math.pi / (2 * DEGREE))
    points = np.rint(length * (1 - np.cos(between)) / 2)  # near the Chebyshev points
    ends, tested = points[::2], points[1::2]
    coefficients = np.linalg.inv(legendre.legvander(2 * ends / length - 1, DEGREE))
    nodes, plain = legendre.leggauss(DEGREE)
    step = 1 / length
    derivatives = legendre.legder(np.eye(DEGREE + 1))
    # a difference over one read is the mean of the derivative, which does not cancel
    slopes = sum(
        weight * step * legendre.legval(nodes + step * node, derivatives).T
        for node, weight in zip(nodes, plain, strict=True)
    )
    weights = np.linalg.solve(legendre.legvander(nodes, DEGREE - 1).T, length * _moments(length))
    return _Rule(
        ends,
        tested,
        legendre.legvander(2 * tested / length - 1, DEGREE) @ coefficients,
        length * (nodes + 1) / 2 + 0.5,
        slopes @ coefficients,
        legendre.legvander(nodes - step, DEGREE) @ coefficients,
        np.asarray(weights, dtype=np.float64),
    )


def _top(reading: Reading, counts: Integers) -> int:
    """Return a power of two that no read exceeds with probability above 1e-16; at most 2**51."""
    top = BEGINNING
    while top < FARTHEST and (1 - reading.not_above(np.array([top + 0.5]), counts) > 1e-16).any():
        top *= 2
    return top


def _panels(reading: Reading, counts: Integers, top: int) -> Iterator[_Panel]:
    """Yield panels of all reads from 1 on; ``top`` also stands for all reads above it.

    A panel of 128 or more reads is summed at 16 points if a polynomial of degree 16 fits all
    distribution functions to 1e-14 at 33 points. Otherwise it is halved, and finally summed read by
    read. The polynomial is exact at both ends of the panel. So, by summation by parts, the error of a
    sum of products of K distribution functions is of the order of K * 1e-14, however wide the noise.
    A panel is at most half as long as the reads before it, so that it also resolves exp(-rate * x).
    """
    column = counts[:, np.newaxis]

    def not_above(reads: Floats, rows: Mask) -> Floats:
        return reading.not_above(reads[np.newaxis, :] + 0.5, column[rows])

    every = np.ones(len(counts), dtype=bool)
    waiting, start = [(0, BEGINNING)], BEGINNING
    while start < top:
        waiting += [(start, start // 2), (start + start // 2, start // 2)]
        start *= 2
    waiting.reverse()
    while waiting:
        start, length = waiting.pop()
        first, last = not_above(np.array([start, start + length], dtype=np.float64), every).T
        active = last - first > NEGLIGIBLE
        if not active.any():
            continue
        rule = _rule(length)
        if start:
            known = not_above(start + rule.ends, active)
            fits = np.abs(known @ rule.fit.T - not_above(start + rule.tested, active)) <= CLOSE
            if fits.all():
                mass, below = np.maximum(known @ rule.mass.T, 0), np.maximum(known @ rule.below.T, 0)
                yield _Panel(start + rule.reads, rule.weights, active, mass, below, first, last)
                continue
            if length > SHORTEST:
                waiting += [(start + length // 2, length // 2), (start, length // 2)]
                continue
        step = max(FLOATS // len(counts), DEGREE)
        for low in range(start, start + length, step):
            reads = np.arange(low, min(low + step, start + length) + 1, dtype=np.float64)
            below = not_above(reads, active)
            mass, plain = np.maximum(np.diff(below, axis=1), 0), np.ones(len(reads) - 1)
            yield _Panel(reads[1:], plain, active, mass, below[:, :-1], first, last)
    above = not_above(np.array([top], dtype=np.float64), every)
    yield _Panel(
        np.array([float(top)]), np.ones(1), every, 1 - above, above, above[:, 0], np.ones(len(counts))
    )


def _merged_panels(panels: Iterator[_Panel]) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Yield the active counts, the reads, and mass times weights of these counts, for several panels at once.

    A few large products of matrices take much less time than many small ones.
    """
    pending: list[_Panel] = []
    for panel in itertools.chain(panels, [None]):
        if panel is not None:
            pending.append(panel)
        if pending and (panel is None or sum(len(part.reads) for part in pending) >= TOGETHER):
            active = np.flatnonzero(np.any([part.active for part in pending], axis=0))
            mass = np.hstack([part.tables(active)[0] * part.weights for part in pending])
            yield active, np.concatenate([part.reads for part in pending]), mass
            pending = []


class _SparseCompositions(NamedTuple):
    """Compositions as sparse tables (U, D) over the distinct counts.

    many : the number of labels with a count. share : the share of the records whose label has that count.
    """

    counts: Integers
    many: Any
    share: Any

    @classmethod
    def of(cls, cells: Cells) -> _SparseCompositions:
        from scipy.sparse import csr_array

        compositions = cells.compositions
        counts, index = np.unique(compositions, return_inverse=True)
        rows = np.repeat(np.arange(len(compositions)), compositions.shape[1])
        at, shape = (rows, index.reshape(-1)), (len(compositions), len(counts))
        share = compositions / cells.sizes[:, np.newaxis]
        return cls(
            counts, csr_array((np.ones(rows.size), at), shape), csr_array((share.reshape(-1), at), shape)
        )

    def of_rows(self, rows: Integers) -> tuple[Integers, _SparseCompositions]:
        """Return the places of the counts in these compositions, and the tables of these compositions."""
        many, share = self.many[rows], self.share[rows]
        used = np.unique(many.indices)
        return used, _SparseCompositions(self.counts[used], many[:, used], share[:, used])

    def mixed(self, mass: Floats, whole: Floats) -> Floats:
        """Return (U, n), the sum over labels k of (n_k/n) mass_k times the product of the others' ``whole``.

        It is computed as the product of all times the sum of quotients: ``whole`` is 0 only if ``mass`` is.
        """
        whole = np.maximum(whole, TINY)
        return np.asarray(np.exp(self.many @ np.log(whole)) * (self.share @ (mass / whole)))


def plurality_risk(cells: Cells, reading: Reading) -> Floats:
    """Return (U,), the probability that a random record has the label with the largest count as read.

    Pr(k is chosen) is the sum over x >= 1 of p_k(x) E[1/(1 + T)], where T other labels read as x and none
    reads as more. E[1/(1 + T)] is the integral over u in [0, 1] of the product over k' != k of
    F_k'(x - 1) + u p_k'(x), a polynomial in u, computed by Gauss-Legendre quadrature of its degree.
    Errors are of the order of K * 1e-14, for noise of any width.

    >>> from pdprivacy.mechanism import Laplace
    >>> reading = Reading(Laplace(epsilon=1, sensitivity=1))
    >>> plurality_risk(Cells.of([[0, 3], [1, 2]]), reading).round(3)
    array([0.916, 0.553])
    """
    labels = _SparseCompositions.of(cells)
    nodes, node_weights = legendre.leggauss((cells.compositions.shape[1] + 1) // 2)
    largest = np.searchsorted(labels.counts, cells.compositions[:, -1])
    risks = np.zeros(len(cells.compositions))
    for panel in _panels(reading, labels.counts, _top(reading, labels.counts)):
        # in other rows no label has a read in the panel, or a label certainly reads as more
        concerned = np.flatnonzero((labels.many @ panel.active > 0) & (panel.last[largest] > NEGLIGIBLE))
        step = max(FLOATS // len(panel.reads), 1)
        for low in range(0, len(concerned), step):
            rows = concerned[low : low + step]
            used, some = labels.of_rows(rows)
            mass, below = panel.tables(used)
            for node, weight in zip((nodes + 1) / 2, node_weights / 2, strict=True):
                risks[rows] += weight * (some.mixed(mass, below + node * mass) @ panel.weights)
    return np.minimum(risks, 1.0)


def probabilistic_risk(cells: Cells, reading: Reading) -> Floats:
    """Return (U,), the probability that a random record has a label drawn by the shares of counts as read.

    E[x_k / (x_1 + ... + x_K)] is the integral over r > 0 of E[x_k exp(-r x_k)] times the product over
    k' != k of E[exp(-r x_k')], where exp(-r) is the argument of the generating functions. The integrand
    has layers at the rates 1/x of all reads x, which Gauss-Legendre panels of doubling length resolve.
    Errors are of the order of K * 1e-14, for noise of any width.

    >>> from pdprivacy.mechanism import Laplace
    >>> reading = Reading(Laplace(epsilon=1, sensitivity=1))
    >>> probabilistic_risk(Cells.of([[0, 3], [1, 2]]), reading).round(3)
    array([0.861, 0.531])
    """
    labels = _SparseCompositions.of(cells)
    counts, top = labels.counts, _top(reading, labels.counts)
    empty = reading.empty(counts)
    first = math.ceil(math.log2(cells.compositions.shape[1] * top))
    ends = np.concatenate([[0.0], np.exp2(np.arange(-first, math.log2(LAST_RATE) + 1))])
    nodes, node_weights = legendre.leggauss(DEGREE)
    half = np.diff(ends)[:, np.newaxis] / 2
    rates = (ends[:-1, np.newaxis] + half * (nodes + 1)).reshape(-1)
    weights = (half * node_weights).reshape(-1)
    risks = np.zeros(len(cells.compositions))
    for low in range(0, len(rates), width := max(2 * FLOATS // len(counts), DEGREE)):
        rate = rates[low : low + width]
        whole = np.repeat(empty[:, np.newaxis], len(rate), axis=1)
        mass = np.zeros(whole.shape)
        for active, reads, present in _merged_panels(_panels(reading, counts, top)):
            decay = np.exp(-reads[:, np.newaxis] * rate)
            whole[active] += present @ decay
            mass[active] += (present * reads) @ decay
        step = max(FLOATS // len(rate), 1)
        for begin in range(0, len(risks), step):
            rows = np.arange(begin, min(begin + step, len(risks)))
            used, some = labels.of_rows(rows)
            risks[rows] += some.mixed(mass[used], whole[used]) @ weights[low : low + width]
    return np.minimum(risks, 1.0)
