"""Laplace noise: its exact loss on a grid, and scales that are never too small."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from pdprivacy import Pure
from pdprivacy.core.mechanisms import Geometric, Laplace

EPSILONS = [Fraction(10) ** k for k in range(-5, 6)]


def fine(scale: Fraction) -> Fraction:
    """A grid for noise of this scale, of which quarters are multiples."""
    return Fraction(1, 2 ** max(2, 21 - math.floor(math.log2(scale))))


@pytest.mark.full(keep=40)
@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(1, 3), 0.1, "0.7"])
@pytest.mark.parametrize("sensitivity", [1, 3, Fraction(5, 4), 2048])
def test_laplace_on_a_given_grid_loses_epsilon_exactly(epsilon, sensitivity):
    # The ratio of P(z) = c exp(-|z|/steps) at z and z + d is at most exp(d/steps), reached at z >= 0.
    grid = fine(Fraction(sensitivity) / Fraction(str(epsilon)))
    mechanism = Laplace(epsilon, sensitivity, grid=grid)
    moved = Fraction(sensitivity) / grid
    assert moved / mechanism.steps == mechanism.epsilon == mechanism.loss.epsilon
    assert mechanism.loss == Pure(epsilon)


@pytest.mark.full(keep=40)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [0.1, 1, "1/3", 1e-9, 12345.678])
def test_laplace_on_the_default_grid_covers_the_rounding_of_1024_values(epsilon, sensitivity):
    mechanism = Laplace(epsilon, sensitivity)
    moved = mechanism.sensitivity / mechanism.grid + 1024
    assert moved / mechanism.steps == epsilon
    # and costs next to nothing
    plain = mechanism.sensitivity / epsilon
    assert plain < mechanism.steps * mechanism.grid <= plain * (1 + Fraction(1, 2**20))
    assert mechanism.scale == pytest.approx(float(plain), rel=2.0**-19)


@pytest.mark.parametrize("kind", [Laplace, Geometric])
@pytest.mark.parametrize("epsilon", [*EPSILONS, 0.1, "1/3", Fraction(22, 7)])
def test_laplace_scales_are_safe(kind, epsilon):
    mechanism = kind(epsilon, 3)
    assert 3 / Fraction(mechanism.scale) <= mechanism.epsilon * (1 + Fraction(1, 2**52))
