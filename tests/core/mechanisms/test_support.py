"""Bounds, and `generalized_gaussian` noise: distributions, errors, intervals and samples.

References are quadratures and scipy.stats laws, the closed forms of Liu (2019) for Laplace noise,
brute-force searches and exact draws. Every statistical test has a fixed seed and a false-alarm rate
of 1e-6 per test made.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import pdprivacy
from pdprivacy import Approx, Pure
from pdprivacy.core import noise
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    Mechanism,
    Staircase,
    generalized_gaussian_scale,
    noise_multiplier,
    truncated_laplace_scale,
)
from pdprivacy.core.mechanisms.support import Bounds, grid_units
from pdprivacy.errors import ParameterError
from pdprivacy.exact import power_up
from tests.support.quadratures import integral
from tests.support.statistics import Distribution, accepts, accepts_only

INF = math.inf
BOUNDINGS = ("truncated", "clamp")
ORDERS = (1.0, 1.5, 2.0, 3.0, 10.0, 100.0)
RANGES = [(0.0, 1.0), (-3.0, 5.0), (2.0, INF), (-INF, -1.0)]
SCALES = [1e-3, 0.05, 0.5, 2.0, 30.0, 1e4]


def bounded(lo: float, hi: float, bounding: str) -> Bounds:
    return Bounds.of((lo, hi), bounding)


def places(lo: float, hi: float, b: float) -> np.ndarray:
    """Statistics at, near and away from the bounds, and outside of them."""
    if math.isinf(lo):
        return -places(-hi, INF, b)
    top = hi if math.isfinite(hi) else lo + 5 * b
    return np.array([lo - 1.0, *np.linspace(lo, top, 7), lo + 1e-9 * (top - lo), top - 0.01 * (top - lo)])


def by_quadrature(p: float, b: float, lo: float, hi: float, bounding: str, s: float, power: int) -> float:
    """The mean of (released - s)^power for a statistic within the bounds."""
    inside = integral(lambda e: e**power, (p, b), lo - s, hi - s)
    if bounding == "truncated":
        return inside / integral(lambda e: 1.0, (p, b), lo - s, hi - s)
    beyond_lower = integral(lambda e: 1.0, (p, b), -INF, lo - s)
    beyond_upper = integral(lambda e: 1.0, (p, b), hi - s, INF)
    for end, beyond in ((lo - s, beyond_lower), (hi - s, beyond_upper)):
        if math.isfinite(end):
            inside += end**power * beyond
    return float(inside)


# 1. Bias and mean squared error.


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("b", SCALES)
def test_bias_and_error_are_their_integrals(bounding, p, b):
    law = GeneralizedNormal.of(p, b)
    for lo, hi in RANGES:
        limits = bounded(lo, hi, bounding)
        for s in places(lo, hi, b):
            inside = min(max(s, lo), hi)
            small = min(b, hi - lo)  # digits also of what is small against the scale
            bias = by_quadrature(p, b, lo, hi, bounding, inside, 1)
            assert float(limits.bias(law, s)) == pytest.approx(bias, abs=1e-9 * small)
            mse = by_quadrature(p, b, lo, hi, bounding, inside, 2)
            assert float(limits.mse(law, s)) == pytest.approx(mse, rel=1e-9, abs=1e-12 * small**2)


LAPLACE = [
    Laplace(epsilon, 1, bounds=bounds, bounding=bounding)
    for epsilon in ("1e-4", "0.1", 1, 20)
    for bounds in ((0, 1), (-3, 5), (2, INF), (None, -1))
    for bounding in BOUNDINGS
]


@pytest.mark.parametrize("mechanism", LAPLACE, ids=lambda m: f"{float(m.epsilon)}-{m.bounds}-{m.bounding}")
def test_laplace_bias_and_error_are_the_closed_forms(mechanism):
    (lo, hi), b = mechanism.bounds, mechanism.scale
    s = np.clip(places(lo, hi, b), lo, hi)
    u, v = s - lo, hi - s

    def decayed(t: np.ndarray, power: int) -> np.ndarray:
        finite = np.where(np.isfinite(t), t, 0.0)
        return finite**power * np.where(np.isfinite(t), np.exp(-finite / b), 0.0)

    if mechanism.bounding == "truncated":
        whole = 1 - decayed(u, 0) / 2 - decayed(v, 0) / 2
        with np.errstate(invalid="ignore"):
            # equations (6), (9) and (10), and Appendix B put right
            bias = (b * decayed(u, 0) + decayed(u, 1) - b * decayed(v, 0) - decayed(v, 1)) / 2 / whole
            first, second = (decayed(u, k) + decayed(v, k) for k in (1, 2))
            mse = 2 * b * b - (b * first + second / 2) / whole
    else:
        bias = b / 2 * (decayed(u, 0) - decayed(v, 0))  # equation (7)
        first = decayed(u, 1) + decayed(v, 1)
        mse = 2 * b * b - b * b * (decayed(u, 0) + decayed(v, 0)) - b * first
    # the closed forms cancel where the scale is far above the range
    lost = 1e-9 * max(1.0, b / (hi - lo)) if math.isfinite(hi - lo) else 1e-9
    np.testing.assert_allclose(mechanism.bias(s), bias, rtol=0, atol=lost * b)
    np.testing.assert_allclose(mechanism.mse(s), mse, rtol=0, atol=lost * b * b)


def test_the_printed_error_of_the_truncated_law_is_another_number():
    mechanism = Laplace(1, 1, bounds=(0, 10), bounding="truncated")
    b, s = mechanism.scale, 3.0
    u, v = s, 10 - s
    p1, p2 = math.exp(-u / b) / 2, math.exp(-v / b) / 2
    printed = 2 * b * b - (b * (u * p1 + v * p2) + (s * s) * p1 + (50 - 10 * s + s * s) * p2) / (1 - p1 - p2)
    truth = by_quadrature(1.0, b, 0.0, 10.0, "truncated", s, 2)
    assert float(mechanism.mse(s)) == pytest.approx(truth, rel=1e-9)
    assert abs(printed - truth) > 0.1 * truth


@pytest.mark.full
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "generalized"])
def test_bias_and_error_are_those_of_exact_draws(kind, bounding):
    many = 40_000
    for bounds in ((0, 3), (0, INF)):
        mechanism = FAMILIES[kind](bounds=bounds, bounding=bounding, l0_sensitivity=1, grid=2.0**-24)
        for s in (0.0, 0.5, 2.5):
            error = mechanism.sample(np.full(many, s), rng=201) - s
            sigma = float(np.sqrt(mechanism.mse(s) - mechanism.bias(s) ** 2))
            assert abs(error.mean() - mechanism.bias(s)) < 5 * sigma / math.sqrt(many)
            spread = float(np.std(error**2))
            assert abs(np.mean(error**2) - mechanism.mse(s)) < 5 * spread / math.sqrt(many)


# Worst cases.


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("ratio", [1e-4, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 10.0, 1e3])
def test_worst_cases_are_those_of_a_dense_search(bounding, p, ratio):
    law, limits = GeneralizedNormal.of(p, 1.0), bounded(-1.0, -1.0 + ratio, bounding)
    s = np.linspace(-1.0, -1.0 + ratio, 20_001)
    bias, mse = np.abs(limits.bias(law, s)), limits.mse(law, s)
    assert limits.worst_bias(law) == pytest.approx(bias.max(), rel=1e-7)
    assert limits.worst_mse(law) == pytest.approx(mse.max(), rel=1e-7)
    assert limits.worst_bias(law) >= bias.max() * (1 - 1e-12)
    assert limits.worst_mse(law) >= mse.max() * (1 - 1e-12)
    assert limits.worst_mse(law) <= law.std**2 * (1 + 1e-12)
    if bounding == "truncated":  # both at an end
        assert mse.argmax() in (0, 20_000) or mse.max() == pytest.approx(mse[0], rel=1e-9)


@pytest.mark.parametrize("p", ORDERS)
def test_the_second_moment_ratio_of_the_mediant_argument_increases(p):
    law = GeneralizedNormal.of(p, 1.0)
    t = np.geomspace(1e-6, 50, 2000)
    for k in (1, 2):
        ratio = law.moment(k, t) / law.half(t)
        assert (np.diff(ratio) >= -1e-13 * ratio[1:]).all()
        assert (ratio <= law.moment(k, INF) * 2 * (1 + 1e-13)).all()


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("p", ORDERS)
def test_open_sided_errors_approach_the_variance_and_never_exceed_it(bounding, p):
    law, limits = GeneralizedNormal.of(p, 2.0), bounded(1.0, INF, bounding)
    s = np.concatenate([np.linspace(1.0, 30.0, 5000), [1e3, 1e6]])
    mse, bias = limits.mse(law, s), limits.bias(law, s)
    assert limits.worst_mse(law) == law.std**2
    assert (mse <= law.std**2 * (1 + 1e-12)).all()
    assert mse.max() == pytest.approx(law.std**2, rel=1e-12)
    assert bias.max() == pytest.approx(limits.worst_bias(law), rel=1e-12)
    assert bias.argmax() == 0
    mirrored = bounded(-INF, -1.0, bounding)
    np.testing.assert_allclose(mirrored.bias(law, -s), -bias, rtol=1e-12)
    np.testing.assert_allclose(mirrored.mse(law, -s), mse, rtol=1e-12)


@given(
    st.sampled_from(ORDERS),
    st.floats(-4, 4),
    st.floats(0, 1),
    st.floats(0.01, 100),
)
def test_the_error_of_clamping_is_below_that_of_truncation_at_one_scale(p, log_b, part, width):
    """Liu (2019), Proposition 1: both biases have one direction, and clamping is less biased."""
    law = GeneralizedNormal.of(p, 10.0**log_b)
    clamped, truncated = bounded(0, width, "clamp"), bounded(0, width, "truncated")
    s = part * width
    clamped_bias, truncated_bias = float(clamped.bias(law, s)), float(truncated.bias(law, s))
    tiny = 1e-13 * min(law.b, width)
    assert abs(clamped_bias) <= abs(truncated_bias) + tiny
    assert clamped_bias * truncated_bias >= -(tiny**2)
    assert (
        abs(float(clamped.bias(law, width - s)) + clamped_bias) <= 1e-12 * min(law.b, width) + 1e-15 * width
    )


# 2. Distribution functions.


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("b", SCALES)
def test_truncated_distributions_are_cut_off_and_renormalised(p, b):
    law, reference = GeneralizedNormal.of(p, b), stats.gennorm(p, scale=b)
    for lo, hi in RANGES:
        limits = bounded(lo, hi, "truncated")
        for s in places(lo, hi, b):
            inside = min(max(s, lo), hi)
            whole = integral(lambda e: 1.0, (p, b), lo - inside, hi - inside)
            x = np.concatenate([places(lo, hi, b), [inside, inside + b / 3, inside - b / 3]])
            within = (x >= lo) & (x <= hi)
            with np.errstate(over="ignore"):
                density = np.where(within, reference.pdf(x - inside) / whole, 0.0)
            np.testing.assert_allclose(limits.pdf(law, x, s), density, rtol=1e-9)
            below = [
                integral(lambda e: 1.0, (p, b), lo - inside, min(max(a, lo), hi) - inside) / whole for a in x
            ]
            np.testing.assert_allclose(limits.cdf(law, x, s), below, rtol=0, atol=1e-11)
            if math.isfinite(lo):
                assert float(limits.cdf(law, lo, s)) == 0
            if math.isfinite(hi):
                assert float(limits.cdf(law, hi, s)) == 1
                assert float(limits.cdf(law, np.nextafter(hi, INF), s)) == 1


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("p", ORDERS)
def test_clamped_distributions_pile_up_at_the_bounds(p):
    b, (lo, hi) = 0.7, (-1.0, 2.0)
    law, reference = GeneralizedNormal.of(p, b), stats.gennorm(p, scale=b)
    limits = bounded(lo, hi, "clamp")
    for s in (-1.0, -0.2, 1.9, 2.0):
        cdf = limits.cdf(law, [np.nextafter(lo, -INF), lo, 0.3, np.nextafter(hi, -INF), hi, 5.0], s)
        inner = reference.cdf(np.array([lo, 0.3, hi]) - s)
        np.testing.assert_allclose(cdf, [0, *inner, 1, 1], atol=1e-14)
        # the atoms: exp(-(hi - s)/b)/2 at the upper bound for Laplace noise
        if p == 1:
            assert 1 - cdf[3] == pytest.approx(math.exp(-(hi - s) / b) / 2, abs=1e-14)
            assert cdf[1] == pytest.approx(math.exp(-(s - lo) / b) / 2, abs=1e-14)
        # the density is that of the rest
        rest, _ = integrate.quad(lambda x, s=s: float(limits.pdf(law, x, s)), lo, hi, points=[s])
        assert rest + cdf[1] + 1 - cdf[3] == pytest.approx(1, abs=1e-10)
        np.testing.assert_array_equal(limits.pdf(law, [lo - 0.1, hi + 0.1], s), [0, 0])
        # quantiles within an atom are its place
        assert float(limits.ppf(law, np.array(cdf[1] / 2), s)) == lo
        assert float(limits.ppf(law, np.array(1 - (1 - cdf[3]) / 2), s)) == hi


@given(
    st.sampled_from(ORDERS),
    st.floats(-4, 4),
    st.sampled_from(RANGES),
    st.floats(0, 1),
    st.one_of(st.floats(1e-9, 1), st.floats(1e-18, 1e-9), st.just(0.0)),
    st.sampled_from(BOUNDINGS),
)
def test_quantiles_invert_the_distribution_function(p, log_b, ends, part, q, bounding):
    lo, hi = ends
    law, limits = GeneralizedNormal.of(p, 10.0**log_b), bounded(lo, hi, bounding)
    s = part * 3 + (lo if math.isfinite(lo) else hi - 3)
    x = float(limits.ppf(law, np.array(q), s))
    assert lo <= x <= hi
    near = 1e-9 * max(min(law.b, hi - lo), abs(x) * 1e-6)
    if math.isfinite(x):
        assert float(limits.cdf(law, x + near, s)) >= q * (1 - 1e-12)
        assert float(limits.cdf(law, x - near, s)) <= q * (1 + 1e-12) + 1e-15
    else:
        assert q in (0.0, 1.0)


@given(
    st.sampled_from(ORDERS),
    st.floats(-2, 2),
    st.sampled_from([(0.0, 1.0), (0.0, 6.0), (0.0, INF), (-INF, 0.5)]),
    st.floats(0, 1),
    st.floats(0.01, 0.999),
    st.sampled_from(BOUNDINGS),
)
def test_an_interval_without_statistic_covers_every_statistic(p, log_b, ends, part, level, bounding):
    lo, hi = ends
    law, limits = GeneralizedNormal.of(p, 10.0**log_b), bounded(lo, hi, bounding)
    half = law.central(level)
    assert 2 * float(law.half(half)) == pytest.approx(level, rel=1e-9)
    s = lo + part * min(hi - lo, 5 * law.b) if math.isfinite(lo) else hi - part * 5 * law.b
    below = float(limits.cdf(law, np.nextafter(s - half, -INF), s))
    assert float(limits.cdf(law, s + half, s)) - below >= level * (1 - 1e-9)


@pytest.mark.parametrize("bounding", BOUNDINGS)
def test_an_interval_with_a_statistic_leaves_equal_tails(bounding):
    mechanism = Gaussian(1, "1e-5", 1, bounds=(0, 4), bounding=bounding)
    for s in (0.0, 1.0, 3.9):
        low, high = mechanism.interval(0.9, s)
        np.testing.assert_allclose([low, high], mechanism.ppf([0.05, 0.95], s), rtol=1e-12)
        assert 0 <= low < high <= 4
        assert float(mechanism.cdf(high, s)) >= 0.95 - 1e-12
    assert mechanism.interval(0.9) == (-mechanism.interval(0.9)[1], mechanism.interval(0.9)[1])
    plain = Laplace(1, 1)
    low, high = plain.interval(0.9)
    assert plain.interval(0.9, 7.0) == (7 + low, 7 + high)


def test_without_bounds_a_statistic_shifts_the_distribution():
    x = np.linspace(-4, 4, 17)
    for mechanism in (Laplace(1, 1), Gaussian(1, "1e-5", 1), GeneralizedGaussian(1, "1e-5", 1, 3)):
        np.testing.assert_array_equal(mechanism.pdf(x + 2, s=2), mechanism.pdf(x))
        np.testing.assert_array_equal(mechanism.cdf(x + 2, 2), mechanism.cdf(x))
        np.testing.assert_allclose(mechanism.ppf([0.1, 0.7], 2), 2 + mechanism.ppf([0.1, 0.7]))
        np.testing.assert_array_equal(mechanism.bias([1, 2]), [0, 0])
        np.testing.assert_array_equal(mechanism.mse([1, 2]), [mechanism.std**2] * 2)
        assert (mechanism.worst_case_bias(), mechanism.worst_case_mse()) == (0, mechanism.std**2)
        assert (mechanism.bounds, mechanism.bounding) == (None, None)


def test_arrays_of_outputs_and_statistics_broadcast():
    mechanism = Laplace(1, 1, bounds=(0, 2), bounding="truncated")
    x, s = np.linspace(0, 2, 5)[:, None], np.array([-1.0, 0.0, 1.5])
    for function in (mechanism.pdf, mechanism.cdf):
        table = function(x, s)
        assert table.shape == (5, 3)
        for i, j in np.ndindex(5, 3):
            assert table[i, j] == float(function(x[i, 0], s[j]))
        np.testing.assert_array_equal(table[:, 0], table[:, 1])  # clamped first
    assert mechanism.ppf([[0.1], [0.5]], s).shape == (2, 3)
    assert mechanism.bias(s).shape == mechanism.mse(s).shape == (3,)
    assert mechanism.bias(1.0).shape == ()


# 3. Draws have the claimed scale and no other.

FAMILIES = {
    "laplace": lambda **k: Laplace("0.8", 1, **k),
    "gaussian": lambda **k: Gaussian(2, "1e-3", 1, **k),
    "generalized": lambda **k: GeneralizedGaussian(2, "1e-2", 1, "5/2", **k),
}


def law_of(mechanism) -> tuple[float, float]:
    """Order and scale, from the claimed attributes alone."""
    order = {"laplace": 1.0, "gaussian": 2.0}.get(mechanism.name) or float(mechanism.p)
    return order, mechanism.scale * (math.sqrt(2) if mechanism.name == "gaussian" else 1)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize(("bounds", "s"), [((0, 20), 0.0), ((0, 20), 6.0), ((0, INF), 1.0), ((None, 9), 4.0)])
def test_truncated_draws_have_the_claimed_scale_and_no_other(kind, bounds, s):
    mechanism = FAMILIES[kind](bounds=bounds, bounding="truncated", l0_sensitivity=1, grid=2.0**-24)
    lo, hi = mechanism.bounds
    drawn = mechanism.sample(np.full(20_000, s), rng=202)
    assert ((drawn >= lo) & (drawn <= hi)).all()
    order, b = law_of(mechanism)

    def truncated(factor: float) -> Distribution:
        law = stats.gennorm(order, loc=s, scale=b * factor)
        start, whole = law.cdf(lo), law.cdf(hi) - law.cdf(lo)
        return lambda x: (law.cdf(np.clip(x, lo, hi)) - start) / whole

    accepts_only(drawn, truncated)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize(("bounds", "s"), [((-4, 5), 1.0), ((0, INF), 3.0)])
def test_clamped_draws_have_the_claimed_scale_and_no_other(kind, bounds, s):
    mechanism = FAMILIES[kind](bounds=bounds, bounding="clamp", l0_sensitivity=1, grid=2.0**-24)
    drawn = mechanism.sample(np.full(20_000, s), rng=203)
    (lo, hi), (order, b) = mechanism.bounds, law_of(mechanism)

    def clamped(factor: float) -> Distribution:
        law = stats.gennorm(order, loc=s, scale=b * factor)
        return lambda x: np.where(x < lo, 0.0, np.where(x >= hi, 1.0, law.cdf(x)))

    accepts_only(drawn, clamped)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("p", [1, "3/2", 2, 4])
def test_generalized_gaussian_draws_have_the_claimed_scale_and_no_other(p):
    mechanism = GeneralizedGaussian(1, "1e-3", 1, p, l0_sensitivity=1, grid=2.0**-24)
    drawn = mechanism.sample(np.full(40_000, 5.0), rng=204) - 5
    order = float(Fraction(p))
    accepts_only(drawn, lambda factor: stats.gennorm(order, scale=mechanism.scale * factor).cdf)


# 5. Samples.


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("bounds", [(0.1, 0.7), ("1/3", 2), (-INF, 0.3), (1e-9, None)])
def test_released_numbers_are_within_the_bounds_and_on_the_grid(kind, bounding, bounds):
    mechanism = (
        FAMILIES[kind](bounds=bounds, bounding=bounding, l0_sensitivity=2) if 0.1 not in bounds else None
    )
    if mechanism is None:
        mechanism = type(FAMILIES[kind]())(
            *(("1", "0.5") if kind == "laplace" else ("1", "1e-3", "0.5")),
            *((3,) if kind == "generalized" else ()),
            bounds=bounds,
            bounding=bounding,
            l0_sensitivity=1,
        )
    lo, hi = mechanism.bounds
    values = np.concatenate([np.linspace(-5, 5, 200), [lo if lo > -INF else 0, hi if hi < INF else 0, 1e5]])
    if math.isinf(hi):
        values = np.minimum(values, 50)
    drawn = mechanism.sample(values, rng=206)
    assert ((drawn >= lo) & (drawn <= hi)).all()
    for value in drawn.tolist():
        exact = Fraction(value)
        assert (exact / mechanism.grid).denominator == 1
        assert mechanism.limits.lower is None or exact >= mechanism.limits.lower
        assert mechanism.limits.upper is None or exact <= mechanism.limits.upper
    if bounding == "truncated":
        assert len(set(drawn.tolist())) == drawn.size  # no atoms
    np.testing.assert_array_equal(mechanism.sample(values, rng=206), drawn)
    assert mechanism.sample(values.reshape(7, 29), rng=206).shape == (7, 29)


@pytest.mark.parametrize("kind", FAMILIES)
def test_clamped_samples_are_clamped_plain_samples(kind):
    plain = FAMILIES[kind](grid=2.0**-24, l0_sensitivity=1)
    clamped = FAMILIES[kind](grid=2.0**-24, l0_sensitivity=1, bounds=(-1, 2), bounding="clamp")
    values = np.linspace(-1, 2, 49)
    np.testing.assert_array_equal(
        clamped.sample(values, rng=207), np.clip(plain.sample(values, rng=207), -1, 2)
    )
    # values beyond the bounds are clamped first: the noise is added at the bound
    far = clamped.sample(np.full(200, 50.0), rng=208)
    np.testing.assert_array_equal(far, clamped.sample(np.full(200, 2.0), rng=208))
    assert 0.3 < np.mean(far == 2) < 0.7
    np.testing.assert_array_equal(clamped.draw(20, noise.source(1)), plain.draw(20, noise.source(1)))


def test_ends_that_no_double_holds_are_kept():
    last = 2**53 + 3  # as a double 2**53 + 4
    units = grid_units([1e300, -1e300, 5.0], Fraction(1), False, -last, last)
    assert units.tolist() == [last, -last, 5]


@pytest.mark.parametrize("kind", FAMILIES)
def test_truncated_noise_is_drawn_within_any_distances(kind):
    mechanism = FAMILIES[kind](bounds=(0, INF), bounding="truncated", l0_sensitivity=1)
    below = np.array([[0, 3, 10**12], [noise.UNBOUNDED, 2**62, 0]])
    above = np.array([[5, 0, 10**12], [0, noise.UNBOUNDED, noise.UNBOUNDED]])
    drawn = mechanism.draw_within(below, above, noise.source(3))
    assert drawn.shape == (2, 3)
    assert drawn.dtype == np.int64
    assert (drawn >= -below.astype(float)).all()
    assert (drawn <= above).all()
    assert mechanism.draw_within([], [], noise.source(1)).shape == (0,)


def test_draws_that_do_not_fit_the_mechanism_are_refused():
    truncated = Laplace(1, 1, bounds=(0, 2), bounding="truncated")
    with pytest.raises(ParameterError, match="depends on the distances") as caught:
        truncated.draw(3, noise.source(1))
    assert "draw_within" in caught.value.hint
    for other in (Laplace(1, 1), Laplace(1, 1, bounds=(0, 2), bounding="clamp"), Staircase(1, 1)):
        with pytest.raises(ParameterError, match=r"^Only a truncated mechanism"):
            other.draw_within([1], [1], noise.source(1))
    with pytest.raises(ParameterError, match="one shape"):
        truncated.draw_within([1, 2], [1], noise.source(1))


ONE_NUMBER = {
    "laplace": lambda **k: Laplace(1, 1, bounds=(0, 2), bounding="truncated", **k),
    "published": lambda **k: Laplace(1, 1, bounds=(0, 2), bounding="truncated", calibration="published", **k),
    "generalized": lambda **k: GeneralizedGaussian(1, "1e-5", 1, 3, **k),
    "generalized truncated": lambda **k: GeneralizedGaussian(
        1, 0, 1, 1, bounds=(0, 2), bounding="truncated", **k
    ),
    "generalized bit": lambda **k: GeneralizedGaussian(1, "1e-5", 1, 3, bounds=(0, 2), bounding="clamp", **k),
    "staircase": lambda **k: Staircase(1, 1, **k),
}


@pytest.mark.parametrize("kind", ONE_NUMBER)
def test_one_number_only_unless_it_is_stated_how_many_move(kind):
    mechanism = ONE_NUMBER[kind]()
    for values in (0.5, [0.5], [[0.5]], []):
        assert mechanism.sample(values, rng=1).shape == np.shape(values)
    with pytest.raises(ParameterError, match=r"takes one number: .* \(got 2 values\)") as caught:
        mechanism.sample([271828.0, 0.5], rng=1)
    assert "l0_sensitivity=1" in caught.value.hint
    assert "2718" not in str(caught.value)
    assert ONE_NUMBER[kind](l0_sensitivity=1).sample(np.full(2000, 0.5), rng=1).shape == (2000,)


def test_mechanisms_that_add_up_take_several_numbers():
    for mechanism in (
        Laplace(1, 1, bounds=(0, 2), bounding="clamp"),
        Gaussian(1, "1e-5", 1, bounds=(0, 2), bounding="clamp"),
        Gaussian(1, "1e-5", 1, bounds=(0, 2), bounding="truncated"),
        GeneralizedGaussian(1, 0, 1, 1),
    ):
        assert mechanism.sample(np.zeros(1000), rng=1).shape == (1000,)
    for laplace in (Laplace(1, 1, bounds=(0, 2), bounding="clamp"), GeneralizedGaussian(1, 0, 1, 1)):
        with pytest.raises(ParameterError, match=r"up to 1024 values"):
            laplace.sample(np.zeros(1025), rng=1)
    # rounding moves as many numbers as a record does
    several = Laplace(1, 1, bounds=(0, 2), bounding="clamp", l0_sensitivity=3)
    assert several.sample(np.zeros(5000), rng=1).shape == (5000,)
    with pytest.raises(ParameterError, match=r"up to 1024 values"):
        Laplace(1, 1, l0_sensitivity=1025).sample(np.zeros(1025), rng=1)


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "generalized"])
def test_more_moved_numbers_never_need_less_noise(kind):
    scales = [
        FAMILIES[kind](bounds=(0, 2), bounding="truncated", l0_sensitivity=moves, grid=2.0**-24).scale
        for moves in (1, 2, 3, 10)
    ]
    assert scales == sorted(scales)
    narrow = FAMILIES[kind](bounds=(0, 1), bounding="truncated", l0_sensitivity=1, grid=2.0**-24).scale
    wide = FAMILIES[kind](bounds=(0, 1000), bounding="truncated", l0_sensitivity=1, grid=2.0**-24).scale
    open_sided = FAMILIES[kind](bounds=(0, INF), bounding="truncated", l0_sensitivity=1, grid=2.0**-24).scale
    assert narrow <= wide * (1 + 1e-9) <= open_sided * (1 + 1e-8)


def test_the_divisor_of_generalized_noise_is_a_power_rounded_up():
    for base, exponent in itertools.product(
        (Fraction(3), Fraction(10**7, 3), Fraction(2) ** 51 + Fraction(1, 7)),
        (Fraction(2), Fraction(3), Fraction(3, 2), Fraction(17, 10), Fraction(100)),
    ):
        power = power_up(base, exponent)
        # base^(n/d) compared by whole powers: power^d against base^n
        n, d = exponent.numerator, exponent.denominator
        assert base**n < power**d or power**d == base**n
        assert power**d <= base**n * (1 + Fraction(1, 2**59)) ** d


# 6. Values of the argument.


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("bounding", BOUNDINGS)
def test_bounds_that_are_none_are_refused(kind, bounding):
    make = FAMILIES[kind]
    for bounds in ((1, 0), (2, 2), ("0.5", 0.25)):
        with pytest.raises(ParameterError, match="lower bound must be below the upper") as caught:
            make(bounds=bounds, bounding=bounding)
        assert "bounds=(0, 1)" in caught.value.hint
    for bounds in ((math.nan, 1), (0, math.nan), (True, 2), ("a", 2), ([0], 1), (1j, 2)):
        with pytest.raises(ParameterError, match=r"'(lower|upper)' must be a finite number"):
            make(bounds=bounds, bounding=bounding)
    for bounds in ((INF, 1), (0, -INF)):
        with pytest.raises(ParameterError, match=r"'(lower|upper)' must not be"):
            make(bounds=bounds, bounding=bounding)
    for bounds in (1, (1,), (0, 1, 2), "01", np.zeros(3), {0: 1}, object()):
        with pytest.raises(ParameterError, match="'bounds' must be a pair"):
            make(bounds=bounds, bounding=bounding)
    with pytest.raises(ParameterError, match="needs 'bounds'"):
        make(bounding=bounding)
    with pytest.raises(ParameterError, match="'bounds' need a 'bounding'") as caught:
        make(bounds=(0, 2))
    assert "truncated" in caught.value.hint
    assert "clamp" in caught.value.hint
    for wrong in ("clip", 1, True, ["clamp"]):
        with pytest.raises(ParameterError, match="'bounding' must be one of 'truncated', 'clamp'"):
            make(bounds=(0, 2), bounding=wrong)
    with pytest.raises(ParameterError, match="needs a finite bound"):
        make(bounds=(None, INF), bounding="truncated")
    assert make(bounds=(-INF, INF), bounding="clamp").bounds == (-INF, INF)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("bounding", BOUNDINGS)
def test_a_sensitivity_above_the_range_is_refused(kind, bounding):
    with pytest.raises(ParameterError, match=r"'sensitivity' must be at most the range .*got 1") as caught:
        FAMILIES[kind](bounds=(0, "0.99"), bounding=bounding)
    assert "upper - lower" in caught.value.hint
    FAMILIES[kind](bounds=(0, 1), bounding=bounding)
    # two numbers may move by half of it each
    FAMILIES[kind](bounds=(0, "0.5"), bounding=bounding, l0_sensitivity=2)
    with pytest.raises(ParameterError, match=r"'sensitivity' must be at most the range"):
        FAMILIES[kind](bounds=(0, "0.49"), bounding=bounding, l0_sensitivity=2)


@pytest.mark.parametrize("make", [*FAMILIES.values(), lambda **k: Staircase(1, 1, **k)])
def test_an_invalid_l0_sensitivity_is_refused(make):
    for l0 in (0, -1, 1.0, "1", True, [1], INF):
        with pytest.raises(ParameterError, match="'l0_sensitivity' must be a positive whole number"):
            make(l0_sensitivity=l0)
    assert make(l0_sensitivity=np.int64(1)).l0_sensitivity == 1


@pytest.mark.parametrize("make", [Staircase, lambda e, s, **k: DiscreteGaussian(e, "1e-5", s, **k)])
def test_noise_whose_truncation_is_unknown_is_clamped_only(make):
    with pytest.raises(
        ParameterError, match=r"'truncated' is not offered for (staircase|discrete Gauss)"
    ) as caught:
        make(1, 1, bounds=(0, 9), bounding="truncated", l0_sensitivity=1)
    assert "clamp" in caught.value.hint
    mechanism = make(1, 1, bounds=(0, 9), bounding="clamp", l0_sensitivity=1)
    assert mechanism.scale == make(1, 1).scale
    assert mechanism.bounds == (0, 9)
    drawn = mechanism.sample(np.full(4000, 1), rng=3)
    assert drawn.min() == 0
    assert drawn.max() <= 9
    assert accepts(drawn, lambda x: mechanism.cdf(x, s=1))
    assert drawn.mean() - 1 == pytest.approx(float(mechanism.bias(1)), abs=5 * mechanism.std / 63)
    assert np.square(drawn - 1.0).mean() == pytest.approx(float(mechanism.mse(1)), rel=0.2)
    assert abs(float(mechanism.bias(0))) == pytest.approx(mechanism.worst_case_bias())
    points = np.linspace(0, 9, 91) if make is Staircase else np.arange(10)
    assert float(mechanism.mse(points).max()) == pytest.approx(mechanism.worst_case_mse(), rel=1e-3)


def test_bit_is_another_name_of_clamp():
    clamped, alias = (Laplace(1, 1, bounds=(0, 2), bounding=name) for name in ("clamp", "bit"))
    assert alias == clamped
    assert (
        alias.bounding == Bounds.of((0, 2), "bit").bounding == Bounds(None, None, "bit").bounding == "clamp"
    )


def test_an_order_that_is_none_is_refused():
    for p in (0.99, 0, -2, 101):
        with pytest.raises(ParameterError, match="'p' must be between 1 and 100"):
            GeneralizedGaussian(1, "1e-5", 1, p)
    for p in (math.nan, INF, None, "two", [2]):
        with pytest.raises(ParameterError, match="'p' must be a finite number"):
            GeneralizedGaussian(1, "1e-5", 1, p)
    for p in (100, "1.000001"):
        mechanism = GeneralizedGaussian(1, "1e-5", 1, p)
        assert math.isfinite(float(mechanism.sample(0.0, rng=1)))
    with pytest.raises(ParameterError, match="'delta' must be positive for generalized") as caught:
        GeneralizedGaussian(1, 0, 1, 2)
    assert "p=1" in caught.value.hint
    for epsilon, delta in (("1e-6", "1e-5"), ("1e300", "1e-5"), (1, "1e-300")):
        with pytest.raises(ParameterError, match="Generalized Gaussian noise is calibrated"):
            GeneralizedGaussian(epsilon, delta, 1, 2)
    for name in ("epsilon", "sensitivity"):
        with pytest.raises(ParameterError, match=f"'{name}' must be positive"):
            GeneralizedGaussian(**{"epsilon": 1, "delta": "1e-5", "sensitivity": 1, "p": 2, name: 0})


def test_a_calibration_that_does_not_fit_is_refused():
    for wrong in ("exact", 1, ["published"]):
        with pytest.raises(ParameterError, match="'calibration' must be one of 'published', None"):
            Laplace(1, 1, bounds=(0, 1), bounding="truncated", calibration=wrong)
    for extra in ({}, {"bounds": (0, 1), "bounding": "clamp"}):
        with pytest.raises(ParameterError, match="is for bounding='truncated'") as caught:
            Laplace(1, 1, calibration="published", **extra)
        assert "plain scale is right" in caught.value.hint
    with pytest.raises(ParameterError, match="calibrated for 'epsilon' from 2e-05"):
        GeneralizedGaussian("1.5e-5", "1e-5", 1, 3, bounds=(0, 1), bounding="truncated")
    with pytest.raises(ParameterError, match="'epsilon' below 1 only"):
        Gaussian(1, "1e-5", 1, "classic", bounds=(0, 1), bounding="truncated")
    assert GeneralizedGaussian("2e-5", "1e-5", 1, 3, bounds=(0, 1), bounding="truncated").scale > 0


@pytest.mark.parametrize("bounding", BOUNDINGS)
def test_bounds_that_the_grid_does_not_hold_are_refused(bounding):
    with pytest.raises(ParameterError, match="at least 8 grid steps of 1 apart") as caught:
        Laplace(Fraction(1, 2**22), 1, grid=1, bounds=(0, 7), bounding=bounding)
    assert "finer grid" in caught.value.hint
    with pytest.raises(ParameterError, match="at least 8 grid steps"):
        Laplace(Fraction(1, 2**22), 1, grid=1, bounds=("0.5", "8.4"), bounding=bounding)
    assert Laplace(Fraction(1, 2**22), 1, grid=1, bounds=(0, 8), bounding=bounding).grid == 1
    with pytest.raises(ParameterError, match=r"below 2\*\*61 grid steps") as caught:
        Laplace(1, 1, bounds=(0, 1e12), bounding=bounding)
    assert "math.inf" in caught.value.hint
    assert Laplace(1, 1, grid=2.0**-20, bounds=(0, 1e12), bounding=bounding).bounds == (0, 1e12)


@pytest.mark.parametrize("bounding", BOUNDINGS)
def test_the_distribution_of_a_bounded_release_needs_its_statistic(bounding):
    mechanism = Laplace(1, 1, bounds=(0, 2), bounding=bounding)
    for function in (mechanism.pdf, mechanism.cdf, mechanism.ppf):
        with pytest.raises(ParameterError, match="'s' is needed") as caught:
            function(0.5)
        assert "s=" in caught.value.hint
        for s in (math.nan, INF, [0.0, -INF]):
            with pytest.raises(ParameterError, match="'s' must be finite"):
                function(0.5, s)
    for function in (mechanism.bias, mechanism.mse):
        with pytest.raises(ParameterError, match="'s' must be finite"):
            function(math.nan)
    for q in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="Probabilities"):
            mechanism.ppf(q, 1.0)
    for level in (0, 1, math.nan):
        with pytest.raises(ParameterError, match="'level'"):
            mechanism.interval(level, 1.0)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("bad", [math.nan, INF, -INF, None, "secret-cell"], ids=str)
def test_values_that_are_no_numbers_are_refused_without_a_value(kind, bounding, bad):
    mechanism = FAMILIES[kind](bounds=(0, 2), bounding=bounding, l0_sensitivity=1)
    with pytest.raises(ParameterError, match=r"^Values must be") as caught:
        mechanism.sample([271828.1828, bad], rng=1)
    assert "2718" not in str(caught.value)
    assert "secret" not in str(caught.value)
    # large values are inside once clamped; beyond an open side they cannot be held
    assert 0 <= mechanism.sample([1e300], rng=1)[0] <= 2
    open_sided = FAMILIES[kind](bounds=(0, INF), bounding=bounding, l0_sensitivity=1)
    assert open_sided.sample([-1e300], rng=1)[0] >= 0
    with pytest.raises(ParameterError, match=r"^Values must be below 2\*\*62 grid steps"):
        open_sided.sample([1e300], rng=1)


# 7. Frozen values with the interface of every mechanism.


def test_mechanisms_are_frozen_values():
    makers = [*ONE_NUMBER.values(), *(lambda make=make, **k: make(**k) for make in FAMILIES.values())]
    for make in makers:
        mechanism, other = make(), make()
        assert isinstance(mechanism, Mechanism)
        assert mechanism == other
        assert hash(mechanism) == hash(other)
        assert mechanism != make(l0_sensitivity=1)
        named = {**vars(pdprivacy.mechanism), "Fraction": Fraction, "inf": INF}
        copies = (
            pickle.loads(pickle.dumps(mechanism)),
            copy.deepcopy(mechanism),
            replace(mechanism),
            eval(repr(mechanism), named),
        )
        for again in copies:
            assert (again, again.steps, again.limits) == (mechanism, mechanism.steps, mechanism.limits)
        with pytest.raises(AttributeError):
            mechanism.epsilon = Fraction(2)
        assert mechanism.std > 0
        assert mechanism.scale == pytest.approx(float(mechanism.steps * mechanism.grid))
    truncated, clamped = (Laplace(1, 1, bounds=(0, 2), bounding=bounding) for bounding in BOUNDINGS)
    assert len({truncated, clamped, Laplace(1, 1), Laplace(1, 1, bounds=(0, 3), bounding="clamp")}) == 4
    assert (truncated.bounds, truncated.bounding) == ((0, 2), "truncated")
    assert Laplace(1, 1, bounds=(None, 2), bounding="clamp").bounds == (-INF, 2)


def test_losses_are_those_stated():
    bounds = {"bounds": (0, 2), "bounding": "truncated"}
    assert Laplace("0.3", 1, **bounds).loss == Pure("0.3")
    assert Gaussian("0.3", "1e-6", 1, **bounds).loss == Approx("0.3", "1e-6")
    assert GeneralizedGaussian("0.3", "1e-6", 1, "3/2", **bounds).loss == Approx("0.3", "1e-6")
    assert Staircase("0.3", 1).loss == Pure("0.3")


@pytest.mark.parametrize("sensitivity", [1, "0.1", 1e-9, 12345.678])
def test_default_grids_are_far_below_scale_and_sensitivity(sensitivity):
    sens = Fraction(str(sensitivity))
    bounds = {"bounds": (0, 3 * sens), "bounding": "truncated"}
    for mechanism, bits in (
        (Laplace(1, sens, **bounds), 30),
        (Gaussian(1, "1e-5", sens, **bounds), 30),
        (GeneralizedGaussian(1, "1e-5", sens, "5/2", **bounds), 20),
        (GeneralizedGaussian(1, "1e-5", sens, "5/2"), 20),
    ):
        smaller = min(Fraction(mechanism.scale), sens)
        assert smaller / 2 ** (bits + 2) < mechanism.grid <= smaller / 2**bits
        # scales are proportional but for the rounding to the grid
        reference = {
            "laplace": lambda: truncated_laplace_scale(Fraction(1), Fraction(1), Fraction(3)),
            "gaussian": lambda: noise_multiplier(Fraction(1), Fraction(1, 10**5)),
            "generalized_gaussian": lambda mechanism=mechanism: generalized_gaussian_scale(
                Fraction(1),
                Fraction(1, 10**5),
                Fraction(1),
                Fraction(5, 2),
                Fraction(3) if mechanism.bounding else None,
                1,
                mechanism.bounding is not None,
            ),
        }[mechanism.name]()
        assert mechanism.scale == pytest.approx(float(reference * sens), rel=4e-6)


# 9. Consistency: what becomes of the error as the number of rows grows.


@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "generalized"])
def test_errors_fall_as_one_over_the_number_of_rows(kind, bounding):
    """Liu (2019), Proposition 2: sensitivity R/n makes the mean squared error O(n^-2)."""
    makers = {
        "laplace": lambda n: Laplace(1, Fraction(1, n), bounds=(0, 1), bounding=bounding),
        "gaussian": lambda n: Gaussian(1, "1e-5", Fraction(1, n), bounds=(0, 1), bounding=bounding),
        "generalized": lambda n: GeneralizedGaussian(
            1, "1e-5", Fraction(1, n), 3, bounds=(0, 1), bounding=bounding, l0_sensitivity=1
        ),
    }
    rows = (10**3, 10**4, 10**5)
    worst = [makers[kind](n).worst_case_mse() * n**2 for n in rows]
    # in the limit the noise of n numbers of sensitivity 1 within bounds that are far away
    limit = makers[kind](10**6).std ** 2 * 10**12
    assert worst[1:] == pytest.approx([limit, limit], rel=1e-3)
    middle = [float(makers[kind](n).bias(0.3)) for n in rows]
    assert abs(middle[2]) < 1e-12
    assert worst[0] <= limit * (1 + 1e-3)
