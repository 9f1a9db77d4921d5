"""Staircase noise: its distribution, errors, draws and loss."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from pdprivacy import Pure
from pdprivacy.core.mechanisms import Staircase
from pdprivacy.errors import ParameterError
from tests.support.statistics import Distribution, accepts, accepts_only

INF = math.inf


@pytest.mark.parametrize(("epsilon", "gamma"), [(1, None), (4, None), ("0.3", "0.8")])
def test_staircase_draws_have_the_claimed_law_and_no_other(epsilon, gamma):
    mechanism = Staircase(epsilon, 3, gamma=gamma, l0_sensitivity=1)
    drawn = mechanism.sample(np.zeros(20_000), rng=205)
    ratio, share, width = math.exp(-float(Fraction(epsilon))), mechanism.gamma, mechanism.scale

    def staircase(factor: float) -> Distribution:
        """Each stair has its geometric share, broken at gamma into two blocks of even density."""
        first = share / (share + ratio * (1 - share))

        def cdf(x: np.ndarray) -> np.ndarray:
            stair, part = np.divmod(np.abs(x) / (width * factor), 1)
            block = np.where(
                part < share, part / share * first, first + (part - share) / (1 - share) * (1 - first)
            )
            return (1 + np.sign(x) * (1 - ratio**stair * (1 - (1 - ratio) * block))) / 2

        return cdf

    accepts_only(drawn, staircase)
    assert accepts(drawn, mechanism.cdf)
    assert abs(np.mean(drawn > 0) - 0.5) < 5 * 0.5 / math.sqrt(drawn.size)


# 4. The staircase law.

STAIRS = [Staircase(1, 1), Staircase("0.01", 2), Staircase(5, "0.3"), Staircase(2, 1, gamma="0.9")]


@pytest.mark.parametrize("mechanism", STAIRS, ids=lambda m: f"{float(m.epsilon)}-{m.gamma:.2f}")
def test_staircase_functions_belong_together(mechanism):
    width, gamma, epsilon = mechanism.scale, mechanism.gamma, float(mechanism.epsilon)
    stairs = math.ceil(45 / epsilon)
    ends = np.concatenate([[k, k + gamma] for k in range(stairs)]) * width
    middle = (ends[:-1] + ends[1:]) / 2
    height, masses = mechanism.pdf(middle), np.diff(ends) * mechanism.pdf(middle)
    assert 2 * math.fsum(masses) == pytest.approx(1, abs=1e-10)
    # the definition: constant on blocks, lower by exp(-epsilon) a stair further out
    np.testing.assert_allclose(height[2:] / height[:-2], math.exp(-epsilon), rtol=1e-9)
    assert height[1] / height[0] == pytest.approx(math.exp(-epsilon), rel=1e-9)
    np.testing.assert_allclose(mechanism.pdf(-middle), height, rtol=1e-12)
    np.testing.assert_allclose(mechanism.cdf(ends), 0.5 + np.concatenate([[0], np.cumsum(masses)]), atol=1e-9)
    second = math.fsum(height * (ends[1:] ** 3 - ends[:-1] ** 3) / 3)
    assert mechanism.std == pytest.approx(math.sqrt(2 * second), rel=1e-8)
    x = np.concatenate([-middle, [0.0], middle[: stairs // 5]])
    np.testing.assert_allclose(mechanism.ppf(mechanism.cdf(x)), x, rtol=1e-9, atol=1e-9 * width)
    np.testing.assert_allclose(mechanism.cdf(-x), 1 - mechanism.cdf(x), atol=1e-15)
    np.testing.assert_array_equal(mechanism.ppf([0, 0.5, 1]), [-INF, 0, INF])
    for level in (0.1, 0.5, 0.95, 0.999):
        low, high = mechanism.interval(level)
        assert low == -high
        assert float(mechanism.cdf(high) - mechanism.cdf(low)) == pytest.approx(level, abs=1e-12)
    assert mechanism.mse(3.0) == pytest.approx(mechanism.std**2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_the_default_break_has_the_least_absolute_error(epsilon):
    def absolute(gamma: float) -> float:
        ratio = math.exp(-epsilon)
        stair = np.arange(math.ceil(45 / epsilon))
        near = ((stair + gamma) ** 2 - stair**2) + ratio * ((stair + 1) ** 2 - (stair + gamma) ** 2)
        weight = (1 - ratio) / (gamma + ratio * (1 - gamma)) * ratio**stair
        return float((weight * near).sum() / 2)

    best = optimize.minimize_scalar(absolute, bounds=(1e-6, 1 - 1e-6), method="bounded")
    mechanism = Staircase(epsilon, 1)
    assert absolute(mechanism.gamma) <= best.fun * (1 + 1e-9)
    assert absolute(mechanism.gamma) < 1 / epsilon  # of Laplace noise
    # Theorem 5 of the source: exp(epsilon/2) / (exp(epsilon) - 1)
    assert absolute(mechanism.gamma) == pytest.approx(math.exp(epsilon / 2) / math.expm1(epsilon), rel=1e-9)


@pytest.mark.parametrize("mechanism", STAIRS, ids=lambda m: f"{float(m.epsilon)}-{m.gamma:.2f}")
def test_partial_moments_of_the_staircase_are_sums_over_its_blocks(mechanism):
    law, width, gamma = mechanism.distribution, mechanism.scale, mechanism.gamma
    ends = np.concatenate([[k, k + gamma] for k in range(math.ceil(60 / float(mechanism.epsilon)))]) * width
    far = float(ends[-1])
    for t in (0.0, gamma * width / 3, width / 2, width, 7.3 * width, far / 3, far, INF):
        cut = np.minimum(ends, t)
        height = law.pdf((ends[:-1] + ends[1:]) / 2)
        for k in (1, 2, 3, 4):
            whole = math.fsum(height * (cut[1:] ** (k + 1) - cut[:-1] ** (k + 1)) / (k + 1))
            assert float(law.moment(k, t)) == pytest.approx(whole, rel=1e-9, abs=0)
    np.testing.assert_array_equal(law.moment(1, np.array([[0.0, width]])).shape, (1, 2))
    law, scale = law.standard
    assert (law.std * scale, law.coarseness * scale) == (pytest.approx(mechanism.std), pytest.approx(width))


def test_staircase_noise_of_several_moved_numbers_is_refused():
    with pytest.raises(ParameterError, match="differ in one number") as caught:
        Staircase(1, 1, l0_sensitivity=2)
    assert "Laplace" in caught.value.hint


def test_a_break_outside_the_stair_is_refused():
    for gamma in (0, 1, -0.1, 1.5):
        with pytest.raises(ParameterError, match="'gamma' must be strictly between 0 and 1"):
            Staircase(1, 1, gamma=gamma)
    with pytest.raises(ParameterError, match="'gamma' must be a finite number"):
        Staircase(1, 1, gamma=math.nan)
    with pytest.raises(ParameterError, match="cannot be drawn"):
        Staircase(1, 1, gamma="1e-12")
    with pytest.raises(ParameterError, match="cannot be drawn"):
        Staircase("1e-12", 1)


def test_staircase_noise_is_drawn_at_every_epsilon():
    for epsilon in ("1e-5", 40, 1000, "1e5", "1e400"):
        mechanism = Staircase(epsilon, 1)
        assert math.isfinite(float(mechanism.sample(0.0, rng=1)))
        assert mechanism.loss == Pure(epsilon)
        assert math.isfinite(mechanism.std)
        assert mechanism.interval(0.95)[1] < 1 or epsilon == "1e-5"


# 6. Staircase noise on the integers.


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(2), Fraction(7)], ids=float)
def test_staircase_noise_loses_epsilon_at_a_stair_and_more_beyond(epsilon):
    for width, step in ((1, 1), (2, 1), (7, 3), (7, 1), (7, 7), (20, 6)):
        z = np.abs(np.arange(-6 * width, 6 * width + 1))
        level = z // width + (z % width >= step)
        losses = [np.abs(level[d:] - level[: len(level) - d]).max() for d in range(1, width + 2)]
        assert max(losses[:width]) == 1
        assert losses[width] == 2 or step == width  # a broken stair is no wider than the sensitivity
        mechanism = Staircase(epsilon, width, gamma=Fraction(step, width) if step < width else None)
        assert mechanism.loss == Pure(epsilon)
        # a step of rounding on the default grid is covered
        assert mechanism.stair >= Fraction(width) / mechanism.grid + 1


def test_a_shift_over_two_numbers_can_cost_staircase_noise_epsilon_in_each():
    width, step = 6, 2
    z = np.abs(np.arange(-30, 31))
    level = z // width + (z % width >= step)
    assert np.abs(level[3:] - level[:-3]).max() == 1  # half of the width, and a whole epsilon
