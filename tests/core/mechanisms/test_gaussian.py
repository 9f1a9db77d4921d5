"""Gaussian noise: the delta of each calibration, also on a grid, against integrals and sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pdprivacy import Approx
from pdprivacy.core.mechanisms import Gaussian
from pdprivacy.errors import ParameterError
from tests.support.gaussian_deltas import discrete_delta, lattice_delta

CALIBRATIONS = ("analytic", "classic", "pdp")
EPSILONS = [Fraction(10) ** k for k in range(-5, 6)]
DELTAS = [Fraction(1, 10**k) for k in range(1, 13)]


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
EDGES = np.concatenate([[0.0], np.geomspace(1e-8, 15.0, 300)])


def gaussian_delta(epsilon: Fraction, multiplier: Fraction) -> float:
    """delta of Gaussian noise as an integral over the privacy loss, all of whose terms are positive.

    The loss is normal with mean m^2/2 and standard deviation m, m = 1/multiplier, and
    delta = E max(0, 1 - exp(epsilon - loss)): the integral over t > 0 of
    phi(x + t) (1 - exp(-m t)), where x = epsilon/m - m/2.
    """
    x = float(epsilon * multiplier - 1 / (2 * multiplier))
    half = np.diff(EDGES) / 2
    t = (EDGES[:-1] + half)[:, None] + half[:, None] * NODES
    inside = np.exp(-x * t - t * t / 2) * -np.expm1(-float(1 / multiplier) * t)
    return (
        math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * math.fsum((half[:, None] * WEIGHTS * inside).ravel())
    )


@pytest.mark.full
def test_the_references_agree_with_the_textbook_formula_and_with_each_other():
    for epsilon, multiplier in [(1, Fraction(37, 10)), (Fraction(1, 2), Fraction(7, 10)), (3, Fraction(2))]:
        m = float(multiplier)
        plain = stats.norm.cdf(1 / (2 * m) - epsilon * m) - math.exp(epsilon) * stats.norm.cdf(
            -1 / (2 * m) - epsilon * m
        )
        assert gaussian_delta(epsilon, multiplier) == pytest.approx(float(plain), rel=1e-9)
    for epsilon, sigma, shift in [(1, Fraction(30), 9), (Fraction(1, 10), Fraction(6), 5)]:
        exact = float(discrete_delta(Fraction(epsilon), sigma, shift))
        assert lattice_delta(Fraction(epsilon), sigma, shift) == pytest.approx(exact, rel=1e-11)


LATTICE = [
    (Fraction(1, 100), Fraction(1, 10**6)),
    (Fraction(1, 2), Fraction(1, 10**3)),
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(1), Fraction(1, 10)),
    (Fraction(8), Fraction(1, 10**9)),
    (Fraction(40), Fraction(1, 10**5)),
]


def coarsest(epsilon: Fraction, delta: Fraction, calibration: str) -> Gaussian:
    """Gaussian noise on the coarsest grid that is allowed, sigma between 2^20 and 2^21 steps."""
    multiplier = Gaussian(epsilon, delta, 1, calibration).multiplier
    bits = 20 - math.floor(math.log2(multiplier))
    mechanism = Gaussian(epsilon, delta, 1, calibration, grid=Fraction(1, 2**bits))
    assert 2**20 <= mechanism.steps < 2**21
    return mechanism


@pytest.mark.full
@pytest.mark.parametrize(("epsilon", "delta"), LATTICE)
def test_analytic_gaussian_noise_has_its_delta_on_the_grid(epsilon, delta):
    mechanism = coarsest(epsilon, delta, "analytic")
    moved = int(1 / mechanism.grid)
    assert 0.99 * delta < lattice_delta(epsilon, mechanism.steps, moved) <= delta
    assert lattice_delta(epsilon, mechanism.steps * Fraction(9, 10), moved) > delta


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("calibration", ["classic", "pdp"])
@pytest.mark.parametrize(("epsilon", "delta"), LATTICE[:2])
def test_other_gaussian_noise_has_at_most_its_delta_on_the_grid(epsilon, delta, calibration):
    mechanism = coarsest(epsilon, delta, calibration)
    assert lattice_delta(epsilon, mechanism.steps, int(1 / mechanism.grid)) <= delta


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_gaussian_on_the_default_grid_covers_the_rounding_of_a_million_values(calibration):
    # A step per coordinate is 2^10 steps in the l2 norm of 2^20 coordinates.
    for epsilon, sensitivity in ((Fraction(1, 10**5), 3), (Fraction(1, 2), 0.1), (Fraction(99, 100), "1/3")):
        mechanism = Gaussian(epsilon, 1e-6, sensitivity, calibration)
        moved = mechanism.sensitivity / mechanism.grid + 2**10
        assert mechanism.steps / moved >= mechanism.multiplier
        assert mechanism.steps * mechanism.grid <= (
            mechanism.multiplier * mechanism.sensitivity * (1 + Fraction(1, 2**19))
        )


# 3. Scales are safe and tight over the whole range.


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_analytic_scales_are_safe_and_tight(epsilon):
    for delta in DELTAS:
        mechanism = Gaussian(epsilon, delta, 1)
        assert mechanism.loss == Approx(epsilon, delta)
        assert gaussian_delta(epsilon, mechanism.multiplier) <= delta
        assert gaussian_delta(epsilon, mechanism.multiplier * (1 - Fraction(1, 10**6))) > delta


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilistic_scales_are_safe(epsilon):
    # The tail of the privacy loss on both sides, N(m^2/2, m^2), holds at most delta; hence so does
    # the smaller delta of the approximate definition.
    for delta in [*DELTAS, Fraction(1, 2), Fraction(9, 10)]:
        s = Gaussian(epsilon, delta, 1, "pdp").multiplier
        upper, lower = epsilon * s - 1 / (2 * s), epsilon * s + 1 / (2 * s)
        assert float(stats.norm.sf(float(upper)) + stats.norm.sf(float(lower))) <= delta
        # the formula takes both tails to be as large as the larger one, and is tight for that
        assert 2 * float(stats.norm.sf(float(upper))) <= delta
        less = s * (1 - Fraction(1, 10**6))
        assert 2 * float(stats.norm.sf(float(epsilon * less - 1 / (2 * less)))) > delta
        assert gaussian_delta(epsilon, s) <= delta


@pytest.mark.parametrize("epsilon", [*EPSILONS[:5], Fraction(1, 2), Fraction(999, 1000)])
def test_classic_scales_are_safe_below_one(epsilon):
    for delta in [*DELTAS, Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)]:
        mechanism = Gaussian(epsilon, delta, 1, "classic")
        assert gaussian_delta(epsilon, mechanism.multiplier) <= delta


# 4. Known values.


def test_probabilistic_scales_of_the_literature():
    # the default grid adds a millionth of the scale, hence a finer one
    assert round(Gaussian(0.5, 1e-3, 1, "pdp", grid=Fraction(1, 2**40)).scale, 4) == 6.7296
    assert round(Gaussian(1, 1e-5, 1, "pdp", grid=Fraction(1, 2**40)).scale, 4) == 4.5276


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1, 1e-5), (3, 1e-2)])
def test_probabilistic_scale_is_the_generalized_gaussian_one_of_order_two(epsilon, delta):
    # Pr((|e| + 1)^2 - |e|^2 > b^2 epsilon) <= delta for e generalized normal of order 2, scale b;
    # b^2 is twice the variance, and the event is |e| > (b^2 epsilon - 1)/2.
    b = Gaussian(epsilon, delta, 1, "pdp", grid=Fraction(1, 2**30)).scale * math.sqrt(2)
    assert 2 * stats.gennorm.sf((b * b * epsilon - 1) / 2, 2, scale=b) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (0.9, 1e-9), (0.5, 1e-2)])
def test_classic_scale_is_the_formula_and_more_than_the_analytic_one(epsilon, delta):
    classic = Gaussian(epsilon, delta, 2, "classic").scale
    assert classic == pytest.approx(2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon, rel=2.0**-19)
    assert Gaussian(epsilon, delta, 2, "analytic").scale < classic
    assert Gaussian(epsilon, delta, 2, "analytic").scale < Gaussian(epsilon, delta, 2, "pdp").scale


@pytest.mark.parametrize("epsilon", [1, 1.5, "1.0", 1e5])
def test_classic_is_refused_from_one_on(epsilon):
    with pytest.raises(ParameterError, match=r"'epsilon' below 1 only") as caught:
        Gaussian(epsilon, 1e-5, 1, "classic")
    assert "analytic" in str(caught.value)
    # the formula is indeed not private there
    far = Fraction(math.sqrt(2 * math.log(1.25e5))) / 30
    assert gaussian_delta(Fraction(30), far) > 1e-5


def test_an_unknown_calibration_is_refused():
    with pytest.raises(ParameterError, match=r"^'calibration' must be one of .*\(got 'exact'\)"):
        Gaussian(1, 1e-5, 1, "exact")


@pytest.mark.parametrize("calibration", ["analytic", "classic", "pdp"])
def test_gaussian_noise_below_the_epsilon_of_its_calibration_is_refused(calibration):
    with pytest.raises(ParameterError, match=r"^Gaussian noise is calibrated for 'epsilon' from 1e-5"):
        Gaussian("9e-6", 1e-12, 1, calibration)
    assert Gaussian("1e-5", 1e-12, 1, calibration).scale > 0


def lattice_divergence(sigma: float, shift: tuple[int, ...], epsilon: float) -> float:
    """The divergence of discrete Gaussian vectors around 0 and around a shift, summed over the lattice."""
    reach = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    log_law = losses = np.zeros(())
    for moved in shift:
        weights = -(reach**2) / (2 * sigma**2)
        log_law = np.add.outer(log_law, weights - math.log(np.exp(weights).sum()))
        losses = np.add.outer(losses, (moved**2 - 2 * moved * reach) / (2 * sigma**2))
    gains = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    return float((np.exp(log_law) * gains).sum())


@pytest.mark.parametrize("shift", [(1,), (3,), (1, 1), (2, -1)])
@pytest.mark.parametrize(("sigma", "tau"), [(2.0, 1.0), (3.0, 1.2), (6.0, 1.5)])
def test_discrete_noise_is_no_worse_than_slightly_smaller_continuous_noise(sigma, tau, shift):
    """The lemma by which the calibration of continuous noise holds on a grid, also for several numbers."""
    ripple = 3 * math.exp(-2 * math.pi**2 * tau**2)
    factor = (1 + ripple) / (1 - ripple)
    narrower = Fraction(math.sqrt(sigma**2 - tau**2) / math.hypot(*shift))
    for epsilon in (0.1, 0.5, 1.5):
        level = Fraction(epsilon - 2 * len(shift) * math.log(factor))
        bound = factor ** len(shift) * gaussian_delta(level, narrower)
        exact = lattice_divergence(sigma, shift, epsilon)
        assert exact <= bound
        # the bound is near: continuous noise that is 5 % wider has a smaller delta than the discrete noise
        assert exact > gaussian_delta(Fraction(epsilon), Fraction(1.05 * sigma / math.hypot(*shift)))
