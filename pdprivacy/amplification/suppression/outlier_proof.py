"""Numerical check of the two theorems on which the bound of outlier-score suppression rests.

The proof of Theorem 5.4 bounds two ratios of probabilities. They depend on the number N of other records, on
the set J of those that are suppressed, on their transformed distances a to the added record, and on their
probabilities z of suppression:

    f = (e^epsilon - (e^epsilon - 1) A) prod_J (N + a/z)/(N + 1) prod_rest (N + (1 - a)/(1 - z))/(N + 1)
    1/g = (e^-epsilon + (1 - e^-epsilon) A) times the same products;  A = (m + sum a)/(N + 1)

Theorem B.21 bounds f by the largest value of l1 and l2, and Theorem B.23 finds the supremum of g. Both end
with a computation (Remarks B.22 and B.24). It is repeated here by a search of another kind, for any m, M and
epsilon: grids that zoom in on their best point. A search can refute a bound, not prove it. (Theorem B.21
prints the first product of f without the division by z, which its proof has.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from pdprivacy.amplification.suppression.amplification import check_level, check_spread, maxima
from pdprivacy.core.privacy import Rational
from pdprivacy.errors import ParameterError
from pdprivacy.types import Floats

Ratio: TypeAlias = Callable[..., Floats]
"""The logarithm of a ratio at arrays of arguments."""

SIZES = (1, 2, 3, 5, 20, 1000, 10**6, 10**12)
"""Numbers of records. The source goes up to 10**9, where the largest bounds are missed by some 1e-6."""

POINTS = {1: 65, 3: 17, 4: 9, 5: 5}
"""Points per argument of a grid, by the number of arguments."""

ROUNDS, ZOOM = 40, 0.65
"""Grids of a search, and the width of each over that of the one before."""


class OutlierSearch(NamedTuple):
    """The largest ratios that a search found, as logarithms, and what the theorems allow.

    ``added``, ``added_bound``: of f in Theorem B.21, the larger database against the smaller one.
    ``removed``, ``removed_bound``: of g in Theorem B.23, the smaller one against the larger one.
    """

    added: float
    added_bound: float
    removed: float
    removed_bound: float


def outlier_search(epsilon: Rational, m: Rational, M: Rational) -> OutlierSearch:
    """Search for a ratio above the bounds of Theorems B.21 and B.23, with up to 10**12 records.

    f is searched in the forms to which the proof reduces it, as the source does: the suppressed records are
    at one distance, and the others at one distance, or at m but for one of them and some that are suppressed
    as likely as can be. g itself is searched, with one distance and one probability for all records of J, and
    one for the rest. The source finds nothing above the bounds, and at most 2e-7 below.

    Source: "The adverse effects of omitting records in differential privacy", Theorems B.21 and B.23, and
    Remarks B.22 and B.24.

    Raises
    ------
    ParameterError : as `outlier_epsilon`; m and M that are equal, so that there is nothing to search.

    >>> search = outlier_search(1, 0.3, 0.4)
    >>> search.added <= search.added_bound < search.added + 2e-7
    True
    >>> search.removed <= search.removed_bound < search.removed + 2e-7
    True
    """
    level, (low, high) = check_level(epsilon), check_spread(m, M)
    if low == high:
        raise ParameterError(
            "'m' must be below 'M': with m = M nothing depends on the records.", "m=0.1, M=0.2."
        )
    bounds = {curve: float(value) for value, curve, _ in maxima(level, low, high)}
    share, chance = (0.0, 1.0), (float(low), float(high))
    added, removed = -math.inf, -math.inf
    for size in SIZES:
        ratios = _Ratios(float(level), *chance, float(size))
        added = max(added, _largest(ratios.all_suppressed, chance))
        if size > 2:
            added = max(added, _largest(ratios.one_distance, share, chance, share))
            added = max(added, _largest(ratios.three_distances, share, share, chance, share))
        removed = max(removed, _largest(ratios.removed, share, chance, chance, chance, chance))
    other = 1 - ratios.m / ratios.M - float(ratios.shrunk(ratios.m))
    return OutlierSearch(added, max(bounds["l1"], bounds["l2"]), removed, max(bounds["l3"], other))


class _Ratios:
    """Logarithms of f and g for n records; ``share``, ``part`` and ``position`` are shares of ranges."""

    def __init__(self, epsilon: float, m: float, M: float, n: float) -> None:
        self.epsilon, self.m, self.M, self.n = epsilon, m, M, n

    def grown(self, mean: Floats) -> Floats:
        """Return ln(e^epsilon - (e^epsilon - 1) mean)."""
        return np.asarray(self.epsilon + np.log1p(mean * math.expm1(-self.epsilon)))

    def shrunk(self, mean: Floats | float) -> Floats:
        """Return ln(e^-epsilon + (1 - e^-epsilon) mean)."""
        return np.asarray(np.log(math.exp(-self.epsilon) - math.expm1(-self.epsilon) * mean))

    def all_suppressed(self, c: Floats) -> Floats:
        """Return f of J = all records, at distance c and with probability m."""
        n = self.n
        return self.grown((self.m + n * c) / (n + 1)) + _product(n, n, c / self.m)

    def one_distance(self, share: Floats, c: Floats, position: Floats) -> Floats:
        """Return g(t) of the proof: the records beside J at one distance t, where it bounds their z."""
        n = self.n
        inside = share * (n - 1)
        rest = n - inside
        top = ((n - 1) * (self.M + self.m) - inside * c) / (2 * n - inside - 2)
        t = self.m + position * (np.minimum(top, self.M) - self.m)
        z = ((2 * n - inside - 2) * t - (n - 2) * self.m + inside * c) / n
        mean = (self.m + inside * c + rest * t) / (n + 1)
        return self.grown(mean) + _product(n, inside, c / self.m) + _product(n, rest, (1 - t) / (1 - z))

    def three_distances(self, share: Floats, part: Floats, c: Floats, position: Floats) -> Floats:
        """Return g_k(t) of the proof: beside J, k records at B, one at t, and the others at m."""
        n, m, M = self.n, self.m, self.M
        inside = share * (n - 1)
        k = part * (n - 1 - inside)
        near = n - inside - k - 1
        most = (n - 1) * (M + m) - inside * c - near * m
        t = m + position * (np.minimum(most / (n + k - 1), M) - m)
        far = (most - t) / (n + k - 2)
        total = inside * c + t + near * m + k * far
        value = self.grown((m + total) / (n + 1)) + _product(n, inside, c / m)
        value += _product(n, 1.0, (1 - t) / (1 - ((n - 2) * (t - m) + total) / n))
        value += _product(n, near, (1 - m) / (1 - total / n))
        value += _product(n, k, (1 - far) / (1 - (m + (n - 1) * M) / n))
        return np.where((k == 0) | (far <= M), value, -np.inf)

    def removed(self, share: Floats, a: Floats, z: Floats, other: Floats, other_z: Floats) -> Floats:
        """Return g, with one distance and one probability of J, and one of the rest."""
        n = self.n
        inside = share * n
        mean = (self.m + inside * a + (n - inside) * other) / (n + 1)
        rest = _product(n, n - inside, (1 - other) / (1 - other_z))
        return -self.shrunk(mean) - _product(n, inside, a / z) - rest


def _product(n: float, count: Floats | float, ratio: Floats) -> Floats:
    """Return the logarithm of ((n + ratio)/(n + 1))^count."""
    return np.asarray(count * np.log1p((ratio - 1) / (n + 1)))


def _largest(ratio: Ratio, *ranges: tuple[float, float]) -> float:
    """Return the largest value that is found in these ranges."""
    lower, upper = np.array(ranges).T
    low, high, best = lower, upper, -math.inf
    for _ in range(ROUNDS):
        axes = [np.linspace(*ends, POINTS[len(ranges)]) for ends in zip(low, high, strict=True)]
        points = np.meshgrid(*axes, indexing="ij")
        values = ratio(*points)
        at = int(values.argmax())
        best = max(best, float(values.flat[at]))
        half = ZOOM * (high - low) / 2
        center = np.array([axis.flat[at] for axis in points])
        low, high = np.maximum(lower, center - half), np.minimum(upper, center + half)
    return best
