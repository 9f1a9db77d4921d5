"""Discrete Gaussian noise: its exact delta, for one number and for several, and its calibrations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from pdprivacy import Approx
from pdprivacy.core.accounting import zcdp_epsilon
from pdprivacy.core.mechanisms import DiscreteGaussian
from pdprivacy.errors import ParameterError
from tests.support.gaussian_deltas import discrete_delta, lattice_delta
from tests.support.neighbours import discrete_delta as vector_delta

# Each epsilon with each delta and with each sensitivity, and each delta with each sensitivity.
EXACT = [
    (epsilon, delta, sensitivity)
    for row, (epsilon, sensitivities) in enumerate(
        [
            ("0.1", [1, 2]),
            ("0.5", [1, 3]),
            ("1", [1, 2, 5, 20]),
            ("3", [1, 2, 20]),
            ("10", [1, 2, 7, 20]),
            ("30", [1, 2, 20]),
            ("100", [1, 7, 20]),
            ("690", [1, 3, 20]),
            ("1000", [1, 7, 20]),
        ]
    )
    for turn, delta in enumerate(("1e-12", "1e-6", "1e-3", "0.1", "0.9"))
    for index, sensitivity in enumerate(sensitivities)
    if (row + turn + index) % 2 == 0
]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("epsilon", "delta", "sensitivity"), EXACT)
def test_discrete_gaussian_noise_has_at_most_its_delta(epsilon, delta, sensitivity):
    mechanism = DiscreteGaussian(epsilon, delta, sensitivity)
    assert discrete_delta(Fraction(epsilon), mechanism.sigma, sensitivity) <= Decimal(delta)
    assert mechanism.loss == Approx(epsilon, delta)


@pytest.mark.full
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-5"), ("30", "1e-3"), ("300", "0.1")])
def test_a_smaller_change_than_the_sensitivity_loses_less(epsilon, delta):
    mechanism = DiscreteGaussian(epsilon, delta, 12)
    losses = [discrete_delta(Fraction(epsilon), mechanism.sigma, shift) for shift in range(1, 13)]
    assert losses == sorted(losses)
    assert losses[-1] <= Decimal(delta)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [
        ("0.1", "1e-3", 1),
        ("0.5", "1e-6", 2),
        ("1", "1e-9", 1),
        ("1", "0.1", 7),
        ("3", "1e-5", 1),
        ("10", "1e-9", 7),
        ("10", "1e-5", 20),
        ("30", "1e-5", 1),
        ("100", "1e-5", 2),
        ("1000", "1e-5", 20),
    ],
)
def test_discrete_gaussian_noise_is_not_two_percent_too_large(epsilon, delta, sensitivity):
    sigma = DiscreteGaussian(epsilon, delta, sensitivity).sigma
    assert discrete_delta(Fraction(epsilon), sigma * Fraction(98, 100), sensitivity) > Decimal(delta)


def directions(squared: int, numbers: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Whole shifts of a squared l2 norm of at most ``squared`` in at most so many numbers, up to signs."""
    yield ()
    for first in range(min(most or squared, math.isqrt(squared)), 0, -1) if numbers else ():
        for others in directions(squared - first**2, numbers - 1, first):
            yield (first, *others)


@pytest.mark.parametrize(("squared", "numbers"), [(2, 2), (4, 4), (5, 2), (9, 3), (10, 6)])
@pytest.mark.parametrize("epsilon", [0.3, 1, 4, 20])
@pytest.mark.parametrize("calibration", ["exact", "zcdp"])
def test_discrete_gaussian_noise_for_several_numbers_has_at_most_its_delta(
    squared, numbers, epsilon, calibration
):
    """By the exact distribution of the loss, in every direction; also where a root is rounded down."""
    for delta in (1e-8, 1e-3):
        sensitivity = math.sqrt(squared)
        mechanism = DiscreteGaussian(epsilon, delta, sensitivity, calibration, l0_sensitivity=numbers)
        assert mechanism.loss == Approx(epsilon, delta)
        variance = float(mechanism.sigma) ** 2
        shifts = {tuple(shift) for shift in directions(squared, numbers)} - {()}
        worst = max(vector_delta(epsilon, [(distance, variance) for distance in shift]) for shift in shifts)
        assert worst <= delta
        if calibration == "exact" and epsilon <= 4:  # the lattice is fine enough for the bound to be close
            lower = [
                max(vector_delta(epsilon, [(distance, 0.81 * variance) for distance in s]) for s in shifts)
            ]
            assert lower[0] > delta
            assert worst > 0.5 * delta


def test_discrete_gaussian_noise_at_extreme_epsilons():
    for numbers in (1, 2):
        for epsilon in ("1e-5", "1e5", "1e9", "1e100"):
            mechanism = DiscreteGaussian(epsilon, 1e-6, 2, l0_sensitivity=numbers)
            assert math.isfinite(mechanism.scale)
            assert mechanism.sample(np.zeros(3, np.int64), rng=1).dtype == np.int64
            assert mechanism.scale > 1000 if epsilon == "1e-5" else mechanism.interval(0.95) == (0, 0)


def test_zcdp_noise_has_the_largest_rho_that_converts_to_its_loss():
    for epsilon, delta in ((0.1, 1e-9), (1, 1e-6), (10, 1e-3)):
        mechanism = DiscreteGaussian(epsilon, delta, 3, "zcdp")
        rho = Fraction(9) / (2 * mechanism.sigma**2)
        assert zcdp_epsilon(rho, delta) <= epsilon
        assert zcdp_epsilon(rho * Fraction(100, 81), delta) > epsilon  # 0.9 of the scale
        assert zcdp_epsilon(rho * Fraction(100, 121), delta) < 0.95 * epsilon  # 1.1 of it
        assert mechanism.multiplier == mechanism.sigma / 3


def test_discrete_gaussian_noise_by_an_exact_calibration_is_for_few_numbers():
    for sensitivity, numbers in ((4.2, 18), (0.5, 2)):
        with pytest.raises(ParameterError, match="l2 sensitivity from 1 to 4") as caught:
            DiscreteGaussian(1, 1e-5, sensitivity, l0_sensitivity=numbers)
        assert "zcdp" in caught.value.hint
        assert DiscreteGaussian(1, 1e-5, sensitivity, "zcdp", l0_sensitivity=numbers).scale > 0
    with pytest.raises(ParameterError, match="takes one number"):
        DiscreteGaussian(1, 1e-5).sample([1, 2])
    assert DiscreteGaussian(1, 1e-5, calibration="zcdp").sample([1, 2], rng=1).shape == (2,)
    with pytest.raises(ParameterError, match="'calibration'"):
        DiscreteGaussian(1, 1e-5, calibration="analytic")


@pytest.mark.full
def test_wide_discrete_gaussian_noise_has_at_most_its_delta():
    epsilon, delta = Fraction(1, 10**4), Fraction(1, 10**3)
    for sensitivity in (40, 2000):  # sigma below and above 2^16
        sigma = DiscreteGaussian(epsilon, delta, sensitivity).sigma
        assert 0.98 * delta < lattice_delta(epsilon, sigma, sensitivity) <= delta
        assert lattice_delta(epsilon, sigma * Fraction(9, 10), sensitivity) > delta
