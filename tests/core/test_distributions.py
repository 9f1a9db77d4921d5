"""Distributions of noise before any bounding, against scipy.stats laws, integrals and sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pdprivacy.core import distributions
from pdprivacy.core.distributions import DiscreteLaplace, DiscreteNormal, GeneralizedNormal
from pdprivacy.core.mechanisms.generalized_gaussian import log_gain
from tests.support.quadratures import integral

INF = math.inf
ORDERS = (1.0, 1.5, 2.0, 3.0, 10.0, 100.0)


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 3.0, 7.0, 100.0])
def test_laws_are_generalized_normal_ones(p):
    law, reference = GeneralizedNormal.of(p, 3.0), stats.gennorm(p, scale=3.0)
    x = np.linspace(-40, 40, 4001)
    np.testing.assert_allclose(law.pdf(x), reference.pdf(x), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(law.cdf(x), reference.cdf(x), rtol=1e-10, atol=1e-300)
    assert law.std == pytest.approx(float(reference.std()), rel=1e-12)
    q = np.array([1e-12, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-9])
    np.testing.assert_allclose(law.ppf(q), reference.ppf(q), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(law.ppf([0, 1]), [-INF, INF])
    for t in (1e-9, 0.01, 1.0, 4.0):
        assert float(law.half(t)) == pytest.approx(integral(lambda e: 1.0, (p, 3.0), 0, t), rel=1e-11)
        if float(law.tail(t)) > 1e-6:  # beyond, a half is all that doubles tell
            assert float(law.distance(law.half(t))) == pytest.approx(t, rel=1e-9)
            assert float(law.reach(law.tail(t))) == pytest.approx(t, rel=1e-9, abs=1e-15)
        for k in (1, 2):
            moment = integral(lambda e, k=k: e**k, (p, 3.0), 0, t)
            assert float(law.moment(k, t)) == pytest.approx(moment, rel=1e-11)


@given(st.sampled_from(ORDERS[:-1]), st.floats(0.01, 5), st.floats(0.01, 20), st.floats(1.01, 50))
def test_the_normalising_mass_changes_by_at_most_the_stated_gain(p, distance, width, wider):
    law, reference = GeneralizedNormal.of(p, 1.0), stats.gennorm(p)
    gain = log_gain(law, distance, width)
    s = np.linspace(0, width, 201)
    whole = np.log(reference.cdf(width - s) - reference.cdf(-s))
    other = np.clip(s[:, None] + np.array([-1, -0.5, 0.5, 1]) * distance, 0, width)
    changed = np.log(reference.cdf(width - other) - reference.cdf(-other))
    assert np.abs(changed - whole[:, None]).max() <= gain + 1e-12
    # it grows with the range, up to that of an open side
    assert gain <= log_gain(law, distance, width * wider) + 1e-14
    assert gain <= log_gain(law, distance) + 1e-14


@pytest.mark.parametrize("sigma", [0.4, 3.7, 900.0])
def test_partial_moments_of_discrete_normal_noise_are_sums(sigma):
    law, z = DiscreteNormal(sigma), np.arange(1.0, math.ceil(12 * sigma) + 2)
    for t in (0.0, 1.0, float(round(2 * sigma)), INF):
        for k in (1, 2, 3, 4):
            whole = math.fsum((z**k * law.pdf(z))[z <= t])
            assert float(law.moment(k, t)) == pytest.approx(whole, rel=1e-9, abs=1e-15)
    assert 2 * law.half_moment(2) == pytest.approx(law.std**2)


def test_wide_discrete_normal_noise_is_that_of_the_sums(monkeypatch):
    sums = DiscreteNormal(2.0**14)
    z = np.array([0, 1, 9000, 40_000, 100_000])
    q = np.array([1e-9, 0.01, 0.3, 0.5, 0.9])
    summed = [sums.pdf(z), sums.tail(z), sums.cdf(-z), sums.moment(1, z), sums.moment(2, z)]
    quantiles = sums.ppf(q)
    monkeypatch.setattr(distributions, "SMOOTH", 2.0**13)
    smooth = [sums.pdf(z), sums.tail(z), sums.cdf(-z), sums.moment(1, z), sums.moment(2, z)]
    for power, (by_sum, by_integral) in enumerate(zip(summed, smooth, strict=True)):
        # of a few integers the square over a cell is not that in its middle, but next to nothing of all
        least = 1e-9 * sums.sigma**2 if power == 4 else 0
        np.testing.assert_allclose(by_sum, by_integral, rtol=1e-7, atol=least)
    np.testing.assert_array_equal(quantiles, sums.ppf(q))
    assert DiscreteNormal(2.0**40).central(0.95) == pytest.approx(1.96 * 2.0**40, rel=1e-4)


def test_partial_moments_of_the_discrete_laplace_law_at_infinity():
    for b in (0.05, 1.0, 30.0):
        law, z = DiscreteLaplace(b), np.arange(1.0, 60 * b + 5)
        for k in (1, 2, 3, 4):
            assert law.half_moment(k) == pytest.approx(math.fsum(z**k * law.pdf(z)), rel=1e-9)


@pytest.mark.parametrize("reach", [0.0, 1e3])
@pytest.mark.parametrize("law", [DiscreteLaplace(5.0), DiscreteNormal(5.0)])
def test_the_central_interval_does_not_depend_on_where_its_search_starts(law, reach, monkeypatch):
    """The inverse of the tail is rounded, so that the search may start on either side of the answer."""
    z = np.arange(-400, 401)
    masses = np.exp(-np.abs(z) / 5) if isinstance(law, DiscreteLaplace) else np.exp(-(z**2) / 50)
    masses /= masses.sum()
    smallest = next(half for half in range(401) if masses[np.abs(z) <= half].sum() >= 0.9)
    monkeypatch.setattr(type(law), "reach", lambda self, tail: reach)
    assert law.central(0.9) == smallest
