"""Hockey-stick divergences, by which (epsilon, delta) is measured: how much P exceeds e^epsilon Q in all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize


def hockey_stick(p: Any, q: Any, epsilon: float, axes: int = 1) -> float:
    """Return the largest sum of max(0, p - e^epsilon q) over pairs of distributions.

    Two arrays: the last ``axes`` are outcomes, those before are pairs. Or two dicts from outcome to mass.
    """
    if isinstance(p, dict):
        p, q = ([masses.get(outcome, 0.0) for outcome in p] for masses in (p, q))
    gain = np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0.0)
    return float(gain.sum(axis=tuple(range(-axes, 0))).max(initial=0.0))


def truncated_hockey_stick(
    noise: Any, low: float, high: float, here: float, there: float, epsilon: float
) -> float:
    """Return the divergence of the same noise around two places, truncated to [low, high].

    It is the largest sum of p - e^epsilon q over a set of outcomes. The noise has ``cdf`` and ``logpdf``;
    -logpdf is convex, so that the ratio of the densities is monotone and the best set a half line.
    """
    masses = [noise.cdf(high - center) - noise.cdf(low - center) for center in (here, there)]
    if min(masses) <= 0:
        return 0.0

    def above(x: float) -> float:
        ratio = float(noise.logpdf(x - here) - noise.logpdf(x - there))
        return ratio - math.log(masses[0] / masses[1]) - epsilon

    # the density around `here` is the larger one on its own side
    ends = (low, high) if here > there else (high, low)
    if above(ends[1]) <= 0:
        return 0.0
    start = ends[0] if above(ends[0]) >= 0 else optimize.brentq(above, *ends, xtol=1e-13 * (high - low))
    p, q = (
        abs(noise.cdf(ends[1] - center) - noise.cdf(start - center)) / whole
        for center, whole in zip((here, there), masses, strict=True)
    )
    return float(p - math.exp(epsilon) * q)
