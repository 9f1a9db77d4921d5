"""The statistical harness of the tests: it accepts the right distribution and no other scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.support.statistics import (
    FALSE_ALARM,
    SUITE_FALSE_ALARM,
    VERDICTS,
    accepts,
    accepts_counts,
    accepts_only,
    accepts_same,
    accepts_share,
    discrete,
    p_value,
)

CONTINUOUS = {
    "Laplace": lambda scale: stats.laplace(scale=scale),
    "normal": lambda scale: stats.norm(scale=scale),
    "exponential": lambda scale: stats.expon(scale=scale),
    "far from zero": lambda scale: stats.norm(loc=1e6, scale=scale),
}
INTEGER = {
    "few values": lambda scale: stats.dlaplace(2 / scale),
    "many values": lambda scale: stats.dlaplace(1 / (50 * scale)),
    "huge values": lambda scale: stats.dlaplace(2.0**-50 / scale),
    "counts": lambda scale: stats.poisson(20 * scale),
}


def clamped(scale: float) -> object:
    """Normal noise clamped to [-1, 1.5]: atoms at both ends, a density between them."""
    law = stats.norm(scale=scale)
    return lambda x: np.where(x < -1, 0.0, np.where(x >= 1.5, 1.0, law.cdf(x)))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_continuous_scale_is_told_from_one_tenth_more_or_less(name):
    law = CONTINUOUS[name]
    draws = law(1).rvs(30_000, random_state=1)
    accepts_only(draws, lambda factor: law(factor).cdf)


@pytest.mark.parametrize("name", INTEGER)
def test_an_integer_scale_is_told_from_one_tenth_more_or_less(name):
    law = INTEGER[name]
    draws = law(1).rvs(30_000, random_state=2)
    accepts_only(draws, lambda factor: law(factor).cdf)


def test_atoms_at_both_ends_are_cells_of_their_own():
    draws = np.clip(stats.norm.rvs(size=30_000, random_state=3), -1, 1.5)
    accepts_only(draws, clamped)
    # what lies at the ends is told from what lies next to them
    assert not accepts(np.where(draws == 1.5, 1.499, draws), clamped(1.0))


def test_a_wrong_scale_passes_no_harness():
    draws = stats.norm.rvs(size=30_000, random_state=4)
    with pytest.raises(AssertionError, match="at 1 times the claimed scale"):
        accepts_only(draws, lambda factor: stats.norm(scale=1.1 * factor).cdf)
    with pytest.raises(AssertionError, match=r"at 1\.001 times the claimed scale"):
        accepts_only(draws, lambda factor: stats.norm(scale=factor).cdf, factors=(1, 1.001))


def test_draws_where_none_can_fall_are_rejected():
    assert not accepts(np.array([0, 1] * 100 + [2]), discrete([0, 1], [1, 1]))
    assert not accepts_counts([100, 100, 1], [0.5, 0.5, 0.0])


def test_a_sample_too_small_to_compare_is_an_error():
    with pytest.raises(ValueError, match="nothing to compare"):
        p_value(np.arange(10), stats.norm(scale=5).cdf)


def test_shares_and_pairs_of_samples_are_told_apart():
    assert accepts_share(5_100, 10_000, 0.5)
    assert not accepts_share(5_300, 10_000, 0.5)
    first, second, third = (
        stats.norm.rvs(size=5_000, scale=s, random_state=k) for k, s in enumerate((1, 1, 1.3))
    )
    assert accepts_same(first, second)
    assert not accepts_same(first, third)


def test_the_rates_of_all_verdicts_add_up():
    assert VERDICTS * FALSE_ALARM <= SUITE_FALSE_ALARM * (1 + 1e-12)


@pytest.mark.full
@pytest.mark.parametrize(
    "law", [stats.norm(), stats.dlaplace(0.7), stats.poisson(3)], ids=lambda law: law.dist.name
)
def test_p_values_below_a_level_are_as_rare_as_the_level(law):
    """1,000 samples; five binomial standard errors about the level, false alarm below 1e-6 each."""
    rng = np.random.default_rng(5)
    p_values = np.array([p_value(law.rvs(2_000, random_state=rng), law.cdf) for _ in range(1_000)])
    for level in (0.5, 0.1, 0.01):
        spread = 5 * np.sqrt(level * (1 - level) / p_values.size)
        assert abs(np.mean(p_values < level) - level) < max(spread, 5 / p_values.size)
