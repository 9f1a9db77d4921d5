"""The privacy loss of generalized Gaussian noise of which several numbers move, bounded from above.

Let the noise of each of k numbers have a density proportional to exp(-|t|^p), in units of its scale b, and
let number j move by at most d b. Its loss is ``L_j = |t_j + d_j|^p - |t_j|^p`` with ``|d_j| <= d``, and the
noise is (epsilon, delta)-differentially private where ``Pr(L_1 + ... + L_k > epsilon) <= delta``.

The worst moves. For p >= 2, all numbers move by d. The probability grows with each d_j >= 0: let F(l) be the
derivative of Pr(L_j > l) by d_j, let R be the loss of the other numbers, and r its density.

1. F(l) >= 0 for l >= 0, because L_j grows with t_j, and with d_j wherever it is positive.
2. The noise is symmetric, so L_j has a density with ``f(-l) = exp(-l) f(l)``. Integration by parts gives
   ``F(-l) = -exp(-l) F(l) + (the integral of exp(-u) F(u) from l on) >= -exp(-l) F(l)`` for l >= 0.
3. ``q(l) = f(l) exp(-l / 2)`` is symmetric, and falls with |l|: at l = L_j(t) and u = t + d_j / 2 it is
   proportional to ``exp(-(|u + d_j / 2|^p + |u - d_j / 2|^p) / 2) / L_j'``. The numerator falls with |u|, and
   for p >= 2 the derivative ``L_j'`` grows with it. Sums of independent losses convolve such q, which keeps
   them symmetric and unimodal (Wintner 1938).
4. The derivative of the probability is the integral of r(epsilon - l) F(l) over all l, by 2 at least that of
   ``F(l) (r(epsilon - l) - exp(-l) r(epsilon + l))`` over l >= 0. By 3 the bracket has the sign of
   ``q(|epsilon - l|) - q(epsilon + l) >= 0``.

For p < 2, the losses are replaced by max(0, L_j), which grow with d_j at each t_j >= 0 and are convex in it.
For noise that is cut off at bounds, t_j is replaced by |t_j|, which is stochastically larger than noise
cut off anywhere; the loss then grows with d_j as it stands.

Arithmetic. The law of one loss is a list of cells of t, each with the largest loss within it. Laws of at most
`MOST_CONVOLVED` losses are convolved on a grid to which losses are rounded up; sums of more losses are
bounded by their moment generating function (Chernoff). All terms are positive, so that nothing cancels.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from pdprivacy.core.distributions import QUARTER, GeneralizedNormal
from pdprivacy.types import Floats

MOST_CONVOLVED = 8
"""Sums of so many losses are convolved."""

CELLS = 2**15
"""Cells of the noise."""

STEPS = 2**9
"""Steps of the grid of losses within epsilon."""

BELOW, ABOVE = 3, 4
"""The grid goes from -3 to 4 epsilon: smaller sums are raised to it, larger ones exceed epsilon for good."""

TAIL = 2.0**-10
"""The share of delta that noise beyond the cells may take."""

POWERS = 48
"""Exponents that the bound by the moment generating function tries."""

ROUNDING = 2.0**-50
"""The rounding error of a loss is at most this share of the power that it is a difference of."""


@dataclass(frozen=True)
class JointLoss:
    """The loss of ``count`` numbers with generalized Gaussian noise of order ``p``, each moved equally far.

    delta : the probability that matters; noise that is much rarer is taken to exceed every loss.
    cut : whether the noise is cut off at bounds. What the bounds add to the loss is not part of it.

    >>> JointLoss(2.0, 1, 1e-5, cut=False).probability(0.1, 0.5) < 1e-3  # of a loss above 0.5
    True
    """

    p: float
    count: int
    delta: float
    cut: bool

    @functools.cached_property
    def _cells(self) -> tuple[Floats, Floats, float]:
        """The upper ends of the cells of the noise, their masses, and the mass beyond the last one."""
        law = GeneralizedNormal.of(self.p, 1.0)
        reach = float(law.outside_inverse(np.asarray(self.delta * TAIL / self.count)))
        ends = np.linspace(0.0, reach, CELLS + 1)
        inside, outside = law.inside(ends), law.outside(ends)
        masses = np.where(outside[:-1] > QUARTER, np.diff(inside), -np.diff(outside))
        beyond = float(outside[-1])
        if self.cut:
            return ends[1:], masses, beyond
        # half of each mass on either side; noise below the first cell is counted in that cell
        below = masses[::-1] / 2
        below[0] += beyond / 2
        return np.append(-ends[-2::-1], ends[1:]), np.append(below, masses / 2), beyond / 2

    @functools.cached_property
    def _powers(self) -> Floats:
        """The power of the upper end of each cell."""
        return np.asarray(np.abs(self._cells[0]) ** self.p)

    def _losses(self, shift: float) -> Floats:
        """The largest loss within each cell, for a move by ``shift`` scales."""
        noise, _, _ = self._cells
        moved = np.abs(noise + shift) ** self.p
        losses = moved - self._powers
        if self.p < 2 and not self.cut:
            losses = np.maximum(losses, 0.0)
        return np.asarray(losses + ROUNDING * np.maximum(moved, self._powers))

    def probability(self, shift: float, epsilon: float) -> float:
        """Return an upper bound of the probability that the loss exceeds ``epsilon``."""
        if self.count > MOST_CONVOLVED:
            return self._by_moments(shift, epsilon)
        return self._by_convolution(shift, epsilon)

    def _by_convolution(self, shift: float, epsilon: float) -> float:
        _, masses, beyond = self._cells
        zero, last = BELOW * STEPS, (BELOW + ABOVE) * STEPS
        places = np.clip(np.ceil(self._losses(shift) / epsilon * STEPS) + zero, 0, last + 1)
        binned = np.bincount(places.astype(np.int64), masses, last + 2)
        law, exceeds = binned[:-1], beyond + float(binned[-1])
        total, chance = law, exceeds
        for _ in range(self.count - 1):
            sums = np.convolve(total, law)
            total = sums[zero : zero + last + 1]
            total[0] += sums[:zero].sum()
            chance += exceeds + float(sums[zero + last + 1 :].sum())
        return chance + float(total[zero + STEPS + 1 :].sum())

    def _by_moments(self, shift: float, epsilon: float) -> float:
        _, masses, beyond = self._cells
        losses = self._losses(shift) / epsilon
        most = 4 * math.log(1 / self.delta) + 4
        powers = np.geomspace(most / 1000, most, POWERS)
        least = math.inf
        for power in powers:
            exponents = power * losses
            largest = float(exponents.max())
            mean = math.log(float((masses * np.exp(exponents - largest)).sum())) + largest
            least = min(least, self.count * mean - power)
        return self.count * beyond + math.exp(min(least, 0.0))
