"""The divergences that tests measure privacy by, against known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from tests.support.divergences import hockey_stick, truncated_hockey_stick


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_randomized_response_has_its_delta(epsilon):
    """Told truly with probability 3/4, the loss is log 3: delta = max(0, 3/4 - e^epsilon / 4)."""
    expected = max(0.0, 0.75 - math.exp(epsilon) * 0.25)
    assert hockey_stick([0.75, 0.25], [0.25, 0.75], epsilon) == pytest.approx(expected, abs=1e-15)
    laws = {"yes": 0.75, "no": 0.25}, {"no": 0.75, "yes": 0.25}
    assert hockey_stick(*laws, epsilon) == pytest.approx(expected, abs=1e-15)


def test_outcomes_of_one_side_count_in_full():
    assert hockey_stick({"x": 0.1, "y": 0.9}, {"y": 1.0}, 3) == pytest.approx(0.1)
    assert hockey_stick({"y": 1.0}, {"x": 0.1, "y": 0.9}, 3) == 0


def test_of_several_pairs_the_worst_counts_and_joint_outcomes_are_summed():
    p, q = np.array([[0.5, 0.5], [0.9, 0.1]]), np.full((2, 2), 0.5)
    assert hockey_stick(p, q, 0.0) == pytest.approx(0.4)
    joint = np.einsum("ab,ac->abc", p, p)
    expected = max(np.maximum(row - 0.25, 0).sum() for row in joint)
    assert hockey_stick(joint, np.full((2, 2, 2), 0.25), 0.0, axes=2) == pytest.approx(expected)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("noise", [stats.laplace(scale=2), stats.norm(scale=1.5), stats.gennorm(4, scale=3)])
@pytest.mark.parametrize(("here", "there"), [(1.0, 2.5), (2.5, 1.0), (0.0, 4.0)])
def test_truncated_noise_has_the_divergence_of_its_densities(noise, here, there):
    low, high = 0.0, 4.0
    whole = [noise.cdf(high - center) - noise.cdf(low - center) for center in (here, there)]

    def gain(x: float) -> float:
        p, q = (noise.pdf(x - center) / mass for center, mass in zip((here, there), whole, strict=True))
        return max(0.0, p - math.exp(0.3) * q)

    expected = integrate.quad(gain, low, high, points=[here, there], limit=400, epsabs=1e-8)[0]
    assert truncated_hockey_stick(noise, low, high, here, there, 0.3) == pytest.approx(expected, abs=1e-6)
