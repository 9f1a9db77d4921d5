"""Mechanisms (`additive`) against their definitions: references are derived apart from the package.

Distributions are summed or integrated here from the exponential alone, privacy losses are worked
out from the integer law that is drawn, and deltas are integrals that the package does not use.
Every statistical test has a fixed seed.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from pdprivacy import mechanism as mechanisms
from pdprivacy.core import noise
from pdprivacy.core.accounting import zcdp_rho
from pdprivacy.core.accounting.rules import largest_rho
from pdprivacy.core.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    GeneralizedGaussian,
    Geometric,
    Laplace,
    Mechanism,
    Staircase,
    generalized_gaussian_scale,
    noise_multiplier,
    truncated_geometric_scale,
    truncated_laplace_loss,
    truncated_laplace_scale,
)
from pdprivacy.core.mechanisms.gaussian import exact_multiplier
from pdprivacy.core.mechanisms.generalized_gaussian import exact_generalized_scale
from pdprivacy.core.mechanisms.geometric import exact_geometric_scale
from pdprivacy.core.mechanisms.laplace import exact_laplace_loss, exact_laplace_scale
from pdprivacy.core.mechanisms.support import GRID_BITS, release_grid
from pdprivacy.errors import ParameterError
from pdprivacy.exact import power_below
from tests.support.cases import each
from tests.support.statistics import Distribution, accepts_only, discrete

MANY = 200_000
CALIBRATIONS = ("analytic", "classic", "pdp")
GRID = Fraction(1, 2**20)

FOUR = [Laplace(1, 2), Geometric(1, 2), Gaussian(1, 1e-5, 2), DiscreteGaussian(1, 1e-5, 2, l0_sensitivity=1)]
FLOATS = [Laplace(1, 1), *(Gaussian(0.5, 1e-5, 1, calibration) for calibration in CALIBRATIONS)]
CONTINUOUS = [
    Laplace(1, 2),
    Laplace(1e-5, 3),
    Laplace(1e5, 0.3),
    *(Gaussian(0.5, 1e-3, 2, calibration) for calibration in CALIBRATIONS),
    Gaussian(1e5, 1e-3, 1),
    Gaussian(1e-5, 1e-3, 1),
]
INTEGER = [
    Geometric(1),
    Geometric(0.05, 3),
    Geometric(7, 2),
    Geometric(2000),
    DiscreteGaussian(1, 1e-5, l0_sensitivity=1),
    DiscreteGaussian(0.2, 1e-3, 3, l0_sensitivity=1),
    DiscreteGaussian(30, 1e-3, l0_sensitivity=1),
]


def named(mechanism: object) -> str:
    words = [mechanism.name, getattr(mechanism, "calibration", ""), f"{float(mechanism.epsilon):g}"]
    return "-".join(word for word in words if word)


# References.


def integer_law(mechanism: Geometric | DiscreteGaussian, factor: float = 1.0) -> Distribution:
    """The distribution on the integers at ``factor`` times the claimed scale, from the definition."""
    z, weights = masses(mechanism, factor)
    return discrete(z, weights)


def masses(mechanism: Geometric | DiscreteGaussian, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Integers and their probabilities at ``factor`` times the claimed scale, from the definition."""
    scale = mechanism.scale * factor
    if mechanism.name == "geometric":
        z = np.arange(-math.ceil(45 * scale) - 2, math.ceil(45 * scale) + 3)
        weights = np.exp(-np.abs(z) / scale)
    else:
        z = np.arange(-math.ceil(10 * scale) - 2, math.ceil(10 * scale) + 3)
        weights = np.exp(-((z / scale) ** 2) / 2)
    return z, weights / math.fsum(weights)


# 1. The claimed scale is accepted, 0.9 and 1.1 times of it are rejected, by the same test.


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(0.7, 2, grid=GRID),
        Laplace(50, 1, grid=Fraction(1, 2**28)),
        *(Gaussian(0.5, 1e-3, 3, calibration, grid=GRID) for calibration in CALIBRATIONS),
    ],
    ids=named,
)
def test_draws_have_the_claimed_scale_and_no_other(mechanism):
    drawn = mechanism.sample(np.full(MANY, 5.0), rng=101) - 5.0
    law = stats.laplace if mechanism.name == "laplace" else stats.norm
    accepts_only(drawn, lambda factor: law(scale=factor * mechanism.scale).cdf)


@pytest.mark.full
@pytest.mark.parametrize("mechanism", [Laplace(0.3, 1), Gaussian(2, 1e-6, 0.5)], ids=named)
def test_draws_on_the_default_grid_have_the_claimed_scale_and_no_other(mechanism):
    generator = np.random.default_rng(102)
    drawn = np.concatenate([mechanism.sample(np.full(1024, 0.1), rng=generator) for _ in range(45)]) - 0.1
    law = stats.laplace if mechanism.name == "laplace" else stats.norm
    accepts_only(drawn, lambda factor: law(scale=factor * mechanism.scale).cdf)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(
    "mechanism",
    [
        Geometric(1),
        Geometric(0.1, 3),
        Geometric(4, 3),
        DiscreteGaussian(1, 1e-5, l0_sensitivity=1),
        DiscreteGaussian(3, 1e-2, l0_sensitivity=1),
        DiscreteGaussian(0.5, 1e-6, 4, l0_sensitivity=1),
    ],
    ids=named,
)
def test_integer_draws_have_the_claimed_scale_and_no_other(mechanism):
    drawn = mechanism.sample(np.full(MANY, 1000), rng=103) - 1000
    accepts_only(drawn, lambda factor: integer_law(mechanism, factor))


def test_noise_is_independent_of_the_value_and_between_coordinates():
    # Correlations of MANY pairs have standard error MANY**-0.5; five of them: false alarm below 1e-6.
    values = np.repeat([0.0, 1.0], MANY // 2)
    for mechanism in (Laplace(1, 1, grid=GRID), Gaussian(1, 1e-5, 1, grid=GRID)):
        drawn = mechanism.sample(values, rng=104) - values
        assert abs(np.corrcoef(drawn, values)[0, 1]) < 5 / math.sqrt(MANY)
        assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 5 / math.sqrt(MANY)


# 2. The privacy loss of the integer law that is drawn.


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Laplace(0.3, 1, grid=GRID), lambda m: noise.discrete_laplace(m.steps, 50, noise.source(9))),
        (Laplace("1/3", 0.1), lambda m: noise.discrete_laplace(m.steps, 50, noise.source(9))),
        (Geometric(0.3, 2), lambda m: noise.discrete_laplace(Fraction(20, 3), 50, noise.source(9))),
        (Gaussian(1, 1e-5, 1), lambda m: noise.discrete_gaussian(m.steps**2, 50, noise.source(9))),
        (
            DiscreteGaussian(1, 1e-5, l0_sensitivity=1),
            lambda m: noise.discrete_gaussian(m.sigma**2, 50, noise.source(9)),
        ),
    ],
    ids=lambda part: named(part) if hasattr(part, "name") else "",
)
def test_draws_follow_the_integer_law_of_the_stated_parameter(mechanism, law):
    steps = mechanism.draw(50, noise.source(9))
    np.testing.assert_array_equal(steps, law(mechanism))
    zeros = np.zeros(50, np.int64 if mechanism.grid == 1 else np.float64)
    sampled = [Fraction(x) for x in mechanism.sample(zeros, rng=9).tolist()]
    assert sampled == [mechanism.grid * step for step in steps.tolist()]


@given(
    st.fractions(min_value=Fraction(1, 10**30), max_value=10**30), st.integers(-80, 80), st.integers(21, 60)
)
def test_the_grid_of_a_release_is_a_power_of_two_between_the_coarsest_and_the_finest(scale, unit, bits):
    power, step = power_below(scale), Fraction(2) ** unit
    assert power <= scale < 2 * power
    assert power_below(power) == power
    assert power_below(scale + power) == 2 * power
    assert release_grid(step, scale, bits) == max(min(step, power / 2**GRID_BITS), power / 2**bits)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 1, 30, 1e5])
def test_rounding_moves_neighbours_a_step_per_coordinate_and_no_further(epsilon):
    mechanism = Laplace(epsilon, 1)
    step = float(mechanism.grid)
    # All but one coordinate move by an eighth of a step across the point where rounding changes.
    first = np.full(1024, 7.4375 * step)
    second = np.full(1024, 7.5625 * step)
    first[0], second[0] = 0.0, 1 - 128 * step
    exact = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(first.tolist(), second.tolist(), strict=True))
    assert exact <= mechanism.sensitivity
    # The same noise, so the outputs differ by what the rounded values differ.
    pairs = zip(
        mechanism.sample(first, rng=5).tolist(), mechanism.sample(second, rng=5).tolist(), strict=True
    )
    moved = sum(abs(Fraction(a) - Fraction(b)) for a, b in pairs) / mechanism.grid
    assert moved > mechanism.sensitivity / mechanism.grid  # a scale without the margin would not do
    assert moved / mechanism.steps <= mechanism.epsilon


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_scales_are_proportional_to_the_sensitivity(kind):
    def make(sensitivity: object) -> float:
        return kind(0.5, sensitivity).scale if kind is Laplace else kind(0.5, 1e-5, sensitivity).scale

    # a power of two moves the grid along and changes nothing else
    assert make(1024) == 1024 * make(1)
    assert make(Fraction(1, 8)) == make(1) / 8
    assert make("0.3") == pytest.approx(0.3 * make(1), rel=2.0**-19)


# 5. Distribution functions.


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=named)
def test_density_integrates_to_the_distribution_function_and_the_deviation(mechanism):
    b = mechanism.scale
    for low, high in itertools.pairwise([-40.0, -6.0, -2.0, -0.5, 0.0, 0.3, 1.0, 4.0, 40.0]):
        mass, _ = integrate.quad(lambda u: float(mechanism.pdf(u * b)) * b, low, high, epsabs=1e-14)
        assert mass == pytest.approx(float(mechanism.cdf(high * b) - mechanism.cdf(low * b)), abs=1e-12)
    half, _ = integrate.quad(
        lambda u: u * u * float(mechanism.pdf(u * b)) * b, 0, 60, limit=200, points=[1, 5]
    )
    assert mechanism.std == pytest.approx(math.sqrt(2 * half) * b, rel=1e-9)


@given(st.sampled_from(CONTINUOUS), st.floats(min_value=-30, max_value=5))
def test_quantiles_invert_the_distribution_function(mechanism, quantile):
    x = quantile * mechanism.scale
    assert float(mechanism.ppf(mechanism.cdf(x))) == pytest.approx(x, rel=1e-8, abs=1e-8 * mechanism.scale)
    assert float(mechanism.cdf(-x)) == pytest.approx(1 - float(mechanism.cdf(x)), abs=1e-15)


@given(st.sampled_from(CONTINUOUS), st.floats(min_value=1e-6, max_value=1 - 1e-9))
def test_central_intervals_hold_their_level(mechanism, level):
    lower, upper = mechanism.interval(level)
    assert lower == -upper
    mass = float(mechanism.cdf(upper) - mechanism.cdf(lower))
    assert mass == pytest.approx(level, abs=1e-14)


@pytest.mark.parametrize("mechanism", [Laplace(1, 1), Gaussian(1, 1e-5, 1)], ids=named)
def test_an_interval_of_nearly_all_is_finite(mechanism):
    law = stats.laplace if mechanism.name == "laplace" else stats.norm
    upper = mechanism.interval(1 - 2.0**-53)[1]
    assert upper == pytest.approx(mechanism.scale * law.isf(2.0**-54), rel=1e-9)


def test_quantiles_of_zero_and_one_are_infinite():
    for mechanism in CONTINUOUS:
        np.testing.assert_array_equal(mechanism.ppf([0, 1]), [-np.inf, np.inf])
        assert mechanism.ppf(0.5) == 0


@pytest.mark.parametrize("mechanism", INTEGER, ids=named)
def test_integer_probabilities_are_those_of_the_definition(mechanism):
    z, p = masses(mechanism)
    np.testing.assert_allclose(mechanism.pmf(z), p, rtol=1e-9, atol=1e-300)
    assert math.fsum(mechanism.pmf(z)) == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(mechanism.pmf([0.5, -1.25]), [0, 0])
    np.testing.assert_allclose(mechanism.cdf(z), np.cumsum(p), atol=1e-12)
    np.testing.assert_allclose(mechanism.cdf(z + 0.75), np.cumsum(p), atol=1e-12)
    assert mechanism.std == pytest.approx(math.sqrt(math.fsum(z * z * p)), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("mechanism", INTEGER, ids=named)
def test_distribution_functions_are_silent_and_right_far_out(mechanism):
    for far in (1_000, 10**6, 10**300, math.inf):
        far = far * mechanism.scale if math.isfinite(far) and far < 10**300 else float(far)
        np.testing.assert_allclose(mechanism.cdf([-far - 1000, far + 1000]), [0, 1], rtol=0, atol=1e-14)
        assert mechanism.pmf(far + 1000) == 0


@given(st.sampled_from(INTEGER), st.floats(min_value=1e-12, max_value=1 - 1e-9))
def test_integer_quantiles_are_the_smallest_integers_that_reach(mechanism, q):
    k = float(mechanism.ppf(q))
    assert k == math.floor(k)
    z, p = masses(mechanism)
    below = np.cumsum(p)
    index = int(k) - int(z[0])
    assert below[index] >= q - 1e-13
    assert below[index - 1] < q + 1e-13


@given(st.sampled_from(INTEGER), st.integers(min_value=-50, max_value=30))
def test_integer_quantiles_invert_the_distribution_function(mechanism, k):
    at = float(mechanism.cdf(k))
    if at < 1 and at - float(mechanism.cdf(k - 1)) > 1e-12:
        assert float(mechanism.ppf(at)) == k


@given(st.sampled_from(INTEGER), st.floats(min_value=1e-6, max_value=1 - 1e-9))
def test_integer_intervals_are_the_smallest_that_hold_their_level(mechanism, level):
    lower, upper = mechanism.interval(level)
    assert lower == -upper
    assert upper == math.floor(upper) >= 0
    z, p = masses(mechanism)
    assert p[np.abs(z) <= upper].sum() >= level - 1e-13
    assert p[np.abs(z) < upper].sum() < level + 1e-13


def test_bounds_of_intervals_are_not_negative_zero():
    lower, upper = Geometric(1e4).interval(0.95)
    assert (lower, upper) == (0, 0)
    assert math.copysign(1, upper) == 1


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_a_laplace_interval_holds_its_level_on_every_grid_that_is_accepted(epsilon):
    try:
        mechanism = Laplace(epsilon, 1, grid=1)
    except ParameterError:
        return
    for level in (0.5, 0.9, 0.95, 0.99):
        z, p = masses(Geometric(epsilon))
        assert p[np.abs(z) <= mechanism.interval(level)[1]].sum() >= level - 2.0**-20


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_functions_keep_shapes(mechanism):
    density = mechanism.pmf if mechanism.grid == 1 else mechanism.pdf
    for shape in ((), (3,), (2, 3), (0,)):
        x = np.full(shape, 0.25)
        for function in (density, mechanism.cdf, mechanism.ppf):
            assert function(x).shape == shape
            assert function(x).dtype == np.float64


# 6. Outputs lie on the grid, whatever the value.


def on_grid(values: np.ndarray, grid: Fraction) -> bool:
    return all((Fraction(value) / grid).denominator == 1 for value in np.ravel(values).tolist())


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("mechanism", FLOATS, ids=named)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3, -1e-9, math.pi * 1000])
def test_every_output_is_a_multiple_of_the_grid(mechanism, value):
    assert mechanism.grid.numerator == 1
    assert mechanism.grid.denominator.bit_count() == 1
    drawn = np.concatenate([mechanism.sample(np.full(1000, value), rng=seed) for seed in range(3)])
    assert on_grid(drawn, mechanism.grid)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("epsilon", [1e-5, 1, 1e5])
@pytest.mark.parametrize("sensitivity", [0.1, 1, 1e6])
def test_grids_are_far_below_scale_and_sensitivity(epsilon, sensitivity):
    for mechanism in (Laplace(epsilon, sensitivity), Gaussian(epsilon, 1e-6, sensitivity)):
        smaller = min(Fraction(mechanism.scale), mechanism.sensitivity)
        assert smaller / 2**31 < mechanism.grid <= smaller / 2**30
        assert on_grid(mechanism.sample(np.full(200, sensitivity / 3), rng=1), mechanism.grid)


@pytest.mark.full
def test_low_bits_do_not_tell_the_value():
    # Mironov's attack: which doubles occur at all depends on the value under naive noise.
    def share(outputs: np.ndarray, bits: int) -> float:
        scaled = np.ldexp(outputs, bits)
        return float(np.mean(scaled == np.rint(scaled)))

    generator = np.random.default_rng(105)
    naive = {value: share(value + generator.laplace(size=20_000), 53) for value in (0.0, 1.0)}
    assert naive[1.0] - naive[0.0] > 0.1

    mechanism = Laplace(1, 1)
    bits = -math.frexp(float(mechanism.grid))[1] + 1
    odd = {}
    for value in (0.0, 1.0, 0.1, 1 / 3):
        outputs = np.concatenate([mechanism.sample(np.full(1000, value), rng=generator) for _ in range(20)])
        assert share(outputs, 53) == 1
        assert share(outputs, bits) == 1
        odd[value] = 1 - share(outputs, bits - 1)
    # Half are odd multiples of the grid: 20,000 coins, five standard errors, false alarm below 1e-6.
    for value, part in odd.items():
        assert abs(part - 0.5) < 5 * 0.5 / math.sqrt(20_000), value


@pytest.mark.parametrize("mechanism", [Laplace(1, 1), Gaussian(1, 1e-5, 1)], ids=named)
def test_the_sign_of_zero_does_not_pass_through(monkeypatch, mechanism):
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(noise, name, lambda parameter, size, source: np.zeros(size, np.int64))
    drawn = mechanism.sample(np.array([-0.0, 0.0, -1e-300, 1e-300]), rng=1)
    assert (drawn == 0).all()
    assert not np.signbit(drawn).any()


def test_rounding_of_outputs_beyond_doubles_keeps_to_the_grid():
    mechanism = Laplace(1e-5, 1)
    value = 2.0**31 / 3
    drawn = mechanism.sample(np.full(500, value), rng=3)
    assert on_grid(drawn, mechanism.grid)
    assert len(set(drawn.tolist())) == 500


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_whole_numbers_that_doubles_do_not_hold_are_refused_or_summed_exactly(dtype):
    # Rounding to a double before the noise would move neighbours further apart than declared.
    mechanism = Laplace(Fraction(1, 2**20), 1, grid=1)
    for value in (2**53 + 1, 2**60 + 1):
        values = np.array([value] * 40, dtype=dtype)
        try:
            drawn = mechanism.sample(values, rng=5)
        except ParameterError:
            continue
        steps = mechanism.draw(40, noise.source(5)).tolist()
        assert drawn.tolist() == [float(value + step) for step in steps]


# 7. Inputs.

MAKERS = {
    "laplace": lambda epsilon=1, sensitivity=1: Laplace(epsilon, sensitivity),
    "geometric": lambda epsilon=1, sensitivity=1: Geometric(epsilon, sensitivity),
    "gaussian": lambda epsilon=1, delta=1e-5, sensitivity=1: Gaussian(epsilon, delta, sensitivity),
    "classic": lambda epsilon=0.5, delta=1e-5, sensitivity=1: Gaussian(
        epsilon, delta, sensitivity, "classic"
    ),
    "pdp": lambda epsilon=1, delta=1e-5, sensitivity=1: Gaussian(epsilon, delta, sensitivity, "pdp"),
    "discrete": lambda epsilon=1, delta=1e-5, sensitivity=1: DiscreteGaussian(epsilon, delta, sensitivity),
}
NO_NUMBERS = [math.inf, -math.inf, math.nan, True, None, "one", "1/0", "nan", [1], 1j, np.bool_(True)]


@each(
    ("kind", "name"),
    [(kind, name) for kind, make in MAKERS.items() for name in inspect.signature(make).parameters],
)
@each("value", NO_NUMBERS)
def test_an_invalid_number_is_refused(kind, name, value):
    with pytest.raises(ParameterError, match=f"^'{name}' must be a finite number"):
        MAKERS[kind](**{name: value})


@each("kind", MAKERS)
@each("name", ["epsilon", "sensitivity"])
@each("value", [0, -1, -0.0, "-1/3", Fraction(-1, 10**9)])
def test_a_number_that_is_not_positive_is_refused(kind, name, value):
    shown = "Fraction" if isinstance(value, Fraction) else repr(value)
    with pytest.raises(ParameterError, match=rf"^'{name}' must be positive \(got {shown}\)\.$"):
        MAKERS[kind](**{name: value})


@pytest.mark.parametrize("kind", ["gaussian", "classic", "pdp", "discrete"])
@pytest.mark.parametrize("value", [1, 1.5, -1e-9, "-1/3", 2])
def test_a_delta_out_of_range_is_refused(kind, value):
    with pytest.raises(ParameterError, match=r"^'delta' must be in \[0, 1\)"):
        MAKERS[kind](delta=value)


@pytest.mark.parametrize("kind", ["gaussian", "classic", "pdp", "discrete"])
def test_gaussian_noise_without_delta_is_refused_with_a_way_out(kind):
    with pytest.raises(ParameterError, match=r"^'delta' must be positive for Gaussian noise") as caught:
        MAKERS[kind](delta=0)
    assert "Laplace noise" in caught.value.hint


@pytest.mark.parametrize("kind", ["geometric", "discrete"])
@pytest.mark.parametrize("value", [0.5, 1.5, "1/3", Fraction(7, 2)])
def test_integer_mechanisms_refuse_a_fractional_sensitivity(kind, value):
    with pytest.raises(ParameterError, match=r"^'sensitivity' must be a whole number \(got "):
        MAKERS[kind](sensitivity=value)


@pytest.mark.parametrize("grid", [3, 0.3, "1/3", Fraction(3, 4), 6])
def test_a_grid_that_is_no_power_of_two_is_refused(grid):
    with pytest.raises(ParameterError, match=r"^'grid' must be a power of two"):
        Laplace(1, 12, grid=grid)
    with pytest.raises(ParameterError, match=r"^'grid' must be a power of two"):
        Gaussian(1, 1e-5, 1, grid=grid)


@pytest.mark.parametrize("make", [lambda g: Laplace(1, 1, grid=g), lambda g: Gaussian(1, 1e-5, 1, grid=g)])
def test_a_grid_that_is_no_positive_number_is_refused(make):
    for grid in (0, -1, "-1/2"):
        with pytest.raises(ParameterError, match=r"^'grid' must be positive"):
            make(grid)
    for grid in (math.inf, math.nan, "fine", True):
        with pytest.raises(ParameterError, match=r"^'grid' must be a finite number"):
            make(grid)


REPLACED = {
    "Laplace": lambda **k: Laplace(1, **k),
    "truncated": lambda **k: Laplace(1, bounds=(0, 9), bounding="truncated", l0_sensitivity=1, **k),
    "Gaussian": lambda **k: Gaussian(1, 1e-5, **k),
    "generalized": lambda **k: GeneralizedGaussian(1, 1e-5, p=3, **k),
    "staircase": lambda **k: Staircase(1, **k),
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("exact", [None, False, True])
@pytest.mark.parametrize("grid", [None, Fraction(1, 2**24)])
@pytest.mark.parametrize("sensitivity", [1, 0.3])
def test_replace_keeps_a_mechanism(name, exact, grid, sensitivity):
    if (grid, exact, sensitivity) == (Fraction(1, 2**24), None, 0.3) and name != "Gaussian":
        return  # a grid that does not fit is refused
    mechanism = REPLACED[name](sensitivity=sensitivity, grid=grid, exact=exact)
    same = replace(mechanism)
    assert (same, same.steps, same.exact) == (mechanism, mechanism.steps, mechanism.exact)
    # multiples of the grid that differ by the sensitivity at most, and by the steps that rounding adds
    rounding = 0 if mechanism.exact else 1
    assert mechanism.sensitivity_in_steps >= mechanism.sensitivity // mechanism.grid + rounding


def test_a_grid_that_does_not_fit_is_refused():
    for sensitivity, grid in ((1, 2), (0.3, 0.5), (Fraction(1, 3), Fraction(1, 1024))):
        with pytest.raises(ParameterError, match=r"^'sensitivity' must be a whole number of grid steps\.$"):
            Laplace(1, sensitivity, grid=grid)
    with pytest.raises(ParameterError, match=r"^'grid' must be at most 2\*\*-20 of the scale\.$"):
        Gaussian(1, 1e-5, 1, grid=1)
    # just above and just below the limit
    sigma = Gaussian(1, 1e-5, 1).multiplier
    assert 2 < sigma < 4
    assert Gaussian(1, 1e-5, 1, grid=Fraction(1, 2**19)).steps >= 2**20
    with pytest.raises(ParameterError, match=r"^'grid' must be at most"):
        Gaussian(1, 1e-5, 1, grid=Fraction(1, 2**18))


@pytest.mark.parametrize("power", [-20, -26, -30, -40, -45])
def test_a_power_of_two_given_as_a_float_is_one(power):
    assert Laplace(1, 1, grid=2.0**power).grid == Fraction(1, 2**-power)
    assert Gaussian(1, 1e-5, 1, grid=2.0**power).grid == Fraction(1, 2**-power)


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_a_level_outside_the_open_unit_interval_is_refused(mechanism):
    for level in (0, 1, -0.1, 1.5, math.nan, math.inf, True, False):
        with pytest.raises(ParameterError, match=r"^'level' must be strictly between 0 and 1"):
            mechanism.interval(level)


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_an_invalid_probability_has_no_quantile(mechanism):
    for q in (-0.1, 1.1, math.nan, [0.5, 2]):
        with pytest.raises(ParameterError, match=r"^Probabilities must be in \[0, 1\]\.$"):
            mechanism.ppf(q)


CANARY = 271828.1828


@pytest.mark.parametrize("mechanism", FLOATS, ids=named)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None], ids=str)
def test_values_that_are_not_finite_are_refused_without_a_value(mechanism, bad):
    with pytest.raises(ParameterError, match=r"^Values must be finite\.$"):
        mechanism.sample([CANARY, bad], rng=1)


@pytest.mark.parametrize("mechanism", FLOATS, ids=named)
@pytest.mark.parametrize(
    "bad",
    [1e19, 27182818284590.4e30, 1e300, -1.7e308, 10**400],
    ids=lambda bad: f"{bad:.3}" if bad < 1e308 else "int",
)
def test_values_too_large_for_the_grid_are_refused_without_a_value(mechanism, bad):
    with pytest.raises(ParameterError, match=r"^Values must be") as caught:
        mechanism.sample([CANARY, bad], rng=1)
    for text in ("2718", "e+300", "e+308", "1e19", "1e+19", "0" * 30):
        assert text not in str(caught.value)


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
@pytest.mark.parametrize("bad", ["secret-cell", ["1.5", "secret-cell"], [b"secret-cell"], [pd.NA]], ids=str)
def test_values_that_are_no_numbers_are_refused_without_a_value(mechanism, bad):
    with pytest.raises(ParameterError, match=r"^Values must be") as caught:
        mechanism.sample(bad, rng=1)
    assert "secret" not in str(caught.value)
    # nor in what a traceback prints above it
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    "mechanism", [Laplace(Fraction(1, 2**22), 0.5, grid=0.5), Gaussian(1e-5, 1e-5, 100, grid=0.5)], ids=named
)
def test_values_off_a_given_grid_are_refused_without_a_value(mechanism):
    with pytest.raises(ParameterError, match=r"^Values must be multiples of the grid 0\.5\.$"):
        mechanism.sample([1.5, CANARY], rng=1)
    assert on_grid(mechanism.sample([1.5, -7.0], rng=1), Fraction(1, 2))


@pytest.mark.parametrize("kind", [Geometric(1), DiscreteGaussian(1, 1e-5, l0_sensitivity=1)], ids=named)
@pytest.mark.parametrize("bad", [[CANARY], 1.0, [True], True, [2**70], "7", [None], np.float32(3)], ids=str)
def test_integer_mechanisms_refuse_what_is_no_integer_without_a_value(kind, bad):
    with pytest.raises(ParameterError, match=r"^Values must be integers") as caught:
        kind.sample(bad, rng=1)
    assert "2718" not in str(caught.value)
    assert str(2**70) not in str(caught.value)


@pytest.mark.parametrize("mechanism", [Geometric(1), DiscreteGaussian(1, 1e-5, l0_sensitivity=1)], ids=named)
@pytest.mark.parametrize(
    "bad", [np.uint64(2**63 + 5), np.uint64(2**64 - 1), np.int64(2**63 - 1), np.int64(-(2**63))], ids=str
)
def test_integers_that_would_wrap_around_are_refused_without_a_value(mechanism, bad):
    with pytest.raises(ParameterError, match=r"^Values must be") as caught:
        mechanism.sample(np.full(20, bad), rng=1)
    assert str(abs(int(bad))) not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_narrow_integers_do_not_wrap_around(dtype):
    drawn = Geometric(0.001).sample(np.full(500, 100, dtype), rng=2)
    assert drawn.dtype == np.int64
    np.testing.assert_array_equal(drawn, Geometric(0.001).sample(np.full(500, 100), rng=2))
    assert drawn.min() < 0
    assert drawn.max() > 255


def test_more_values_than_the_rounding_is_accounted_for_are_refused_on_the_default_grid():
    laplace, gaussian = Laplace(1, 1), Gaussian(1, 1e-5, 1)
    assert laplace.sample(np.zeros((2, 512)), rng=1).shape == (2, 512)
    with pytest.raises(ParameterError, match=r"up to 1024 values \(got 1025\)") as caught:
        laplace.sample(np.full(1025, CANARY), rng=1)
    assert "grid=" in caught.value.hint
    with pytest.raises(ParameterError, match=r"up to 1048576 values \(got 1048577\)"):
        gaussian.sample(np.zeros(2**20 + 1), rng=1)
    # no more of them move than is stated
    stated = {"l0_sensitivity": 1024}
    assert Laplace(1, 1, **stated).sample(np.zeros(1025), rng=1).shape == (1025,)
    assert Gaussian(1, 1e-5, 1, **stated).sample(np.zeros(2**20 + 1), rng=1).shape == (2**20 + 1,)
    # a grid of which the values are multiples needs no rounding
    assert Laplace(1, 1, grid=GRID).sample(np.zeros(1025), rng=1).shape == (1025,)


@pytest.mark.parametrize("third", ["1/3", Fraction(1, 3), " 1/3 "])
def test_fractions_are_taken_exactly(third):
    assert Laplace(third, third).epsilon == Laplace(third, third).sensitivity == Fraction(1, 3)
    assert Geometric(third).epsilon == Fraction(1, 3)
    assert Gaussian(third, third, third).delta == Fraction(1, 3)


def test_numbers_of_other_libraries_are_taken_by_their_value():
    assert Laplace(np.int32(3), np.int8(2)) == Laplace(3, 2)
    assert Laplace(np.float64(0.1), Decimal("0.1")) == Laplace("0.1", "1/10")
    assert Gaussian(np.float32(0.5), np.float64(1e-5), np.uint8(3)) == Gaussian(0.5, 1e-5, 3)
    assert Geometric(1, 2.0) == Geometric(1, 2)


UNDRAWABLE = {
    "laplace of a tiny epsilon": lambda: Laplace(1e-7, 1),
    "laplace of a tinier epsilon": lambda: Laplace(1e-12, 1),
    "geometric of a huge sensitivity": lambda: Geometric(1e-5, 10**12),
    "gaussian on a fine grid": lambda: Gaussian(1, 1e-5, 1, grid=Fraction(1, 2**60)),
    "gaussian of a tiny epsilon": lambda: Gaussian(1e-9, 1e-9, 1),
    "sensitivity below doubles": lambda: Laplace(1, "1e-320"),
    "scale above doubles": lambda: Laplace("1e-200", "1e200"),
    "epsilon below doubles": lambda: Laplace("1e-400", 1),
    "epsilon above doubles": lambda: Gaussian("1e400", 1e-5, 1),
    "delta below doubles": lambda: Gaussian(1, "1e-400", 1),
    "delta below doubles, classic": lambda: Gaussian(0.5, "1e-400", 1, "classic"),
    "delta below doubles, pdp": lambda: Gaussian(0.5, "1e-400", 1, "pdp"),
}


@pytest.mark.parametrize("make", UNDRAWABLE.values(), ids=UNDRAWABLE)
def test_noise_that_cannot_be_drawn_is_refused_when_it_is_declared(make):
    # A release charges between the two: what is accepted here must not fail there.
    try:
        mechanism = make()
    except ParameterError:
        return
    assert math.isfinite(mechanism.scale)
    assert mechanism.sample(0, rng=1).shape == ()


def test_a_delta_below_the_smallest_double_is_met_or_refused():
    try:
        multiplier = Gaussian(1, "1e-400", 1).multiplier
    except ParameterError:
        return
    # The upper tail alone: ln sf(x) < -x^2/2, and -ln delta is about 921.
    x = float(multiplier - 1 / (2 * multiplier))
    assert x * x / 2 + math.log(x) + 1 > 921


# 8. Reproducibility and shapes.


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_the_same_seed_gives_the_same_sample(mechanism):
    values = np.arange(60).reshape(3, 20)
    first = mechanism.sample(values, rng=7)
    np.testing.assert_array_equal(mechanism.sample(values, rng=7), first)
    np.testing.assert_array_equal(mechanism.sample(values, rng=np.random.default_rng(7)), first)
    assert (mechanism.sample(values, rng=8) != first).any()
    generator = np.random.default_rng(7)
    assert (mechanism.sample(values, rng=generator) == first).all()
    assert (mechanism.sample(values, rng=generator) != first).any()
    # Equal draws of the operating system have probability below 2^-60.
    assert (mechanism.sample(values) != mechanism.sample(values)).any()


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_shapes_and_types_are_kept_and_inputs_untouched(mechanism):
    kind = np.int64 if mechanism.grid == 1 else np.float64
    whole = [
        5,
        np.int64(5),
        np.array(5),
        [1, 2, 3],
        [[1, 2], [3, 4]],
        np.zeros((2, 0), np.int64),
        pd.Series([1, 2]),
    ]
    for values in whole:
        before = np.array(values, copy=True)
        drawn = mechanism.sample(values, rng=1)
        assert drawn.shape == np.shape(values)
        assert drawn.dtype == kind
        np.testing.assert_array_equal(np.asarray(values), before)


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_nothing_is_sampled_from_nothing(mechanism):
    assert mechanism.sample(np.array([], np.int64), rng=1).shape == (0,)
    assert mechanism.sample([], rng=1).shape == (0,)


def test_single_precision_is_taken_by_its_value():
    mechanism = Laplace(1, 1)
    single = np.array([0.1, 2.5, -3.7], np.float32)
    drawn = mechanism.sample(single, rng=4)
    assert drawn.dtype == np.float64
    np.testing.assert_array_equal(drawn, mechanism.sample(single.astype(np.float64), rng=4))


@pytest.mark.parametrize("mechanism", FOUR, ids=named)
def test_mechanisms_are_frozen_values(mechanism):
    assert isinstance(mechanism, Mechanism)
    again = type(mechanism)(*arguments(mechanism), **stated_l0(mechanism))
    assert hash(mechanism) == hash(again)
    assert mechanism == again
    with pytest.raises(AttributeError):
        mechanism.epsilon = Fraction(2)


def arguments(mechanism: object) -> list[Fraction]:
    names = ("epsilon", "delta", "sensitivity")
    return [getattr(mechanism, name) for name in names if hasattr(mechanism, name)]


def stated_l0(mechanism: object) -> dict[str, int]:
    return {} if mechanism.l0_sensitivity is None else {"l0_sensitivity": mechanism.l0_sensitivity}


CLAMPED = GeneralizedGaussian(1, 1e-5, 1, 3, bounds=(0, None), bounding="clamp")
TRUNCATED = Laplace(1, 1, bounds=(0, 100), bounding="truncated")
HINTED = {
    "many values": (Laplace(1, 1).sample, np.zeros(1025)),
    "many values, no grid": (Laplace(1, 0.3).sample, np.zeros(1025)),
    "many values of Gaussian noise": (Gaussian(1, 1e-5, 0.3).sample, np.zeros(2**20 + 1)),
    "several values, truncated": (TRUNCATED.sample, np.zeros(2)),
    "several values, clamped": (CLAMPED.sample, np.zeros(2)),
    "several values of staircases": (Staircase(2, 1).sample, np.zeros(2)),
    "several integers": (DiscreteGaussian(1, 1e-5).sample, [1, 2]),
    "draws of truncated noise": (TRUNCATED.draw, 2, noise.source(1)),
    "draws within nothing": (Laplace(1, 1).draw_within, [1], [1], noise.source(1)),
    "no delta": (Gaussian, 1, 0, 1),
    "no delta of integers": (DiscreteGaussian, 1, 0),
    "no delta of a multiplier": (noise_multiplier, 1, 0),
    "no delta of order 3": (GeneralizedGaussian, 1, 0, 1, 3),
    "no delta of a scale": (generalized_gaussian_scale, 1, 0, 1, 3),
    "classic beyond 1": (Gaussian, 1, 1e-5, 1, "classic"),
    "classic multiplier beyond 1": (noise_multiplier, 1, Fraction(1, 10**5), "classic"),
    "a wide shift": (
        lambda calibration: DiscreteGaussian(1, 1e-5, 9, calibration, l0_sensitivity=3),
        "exact",
    ),
    "truncated staircases": (lambda bounding: Staircase(1, 1, bounds=(0, 9), bounding=bounding), "truncated"),
    "truncated integers": (
        lambda bounding: DiscreteGaussian(1, 1e-5, bounds=(0, 9), bounding=bounding),
        "truncated",
    ),
    "bounds alone": (lambda bounds, bounding=None: Laplace(1, 1, bounds=bounds, bounding=bounding), (0, 9)),
    "bounding alone": (
        lambda bounding, bounds=None: Laplace(1, 1, bounds=bounds, bounding=bounding),
        "clamp",
    ),
}
"""A call that is refused, and its arguments; a lambda shows the keywords that its constructor has, too."""


@pytest.mark.parametrize("case", HINTED)
def test_hints_name_arguments_of_what_was_called(case: str):
    called, *arguments = HINTED[case]
    with pytest.raises(ParameterError) as caught:
        called(*arguments)
    assert caught.value.hint
    hint = caught.value.hint
    calls = re.findall(r"[A-Z]\w+\(.*\)", hint)
    for call in calls:
        hint = hint.replace(call, "")
        made = eval(call, vars(mechanisms).copy())
        assert made.sample(arguments[0], rng=1).shape == np.shape(arguments[0])
    methods = re.findall(r"(draw\w*)\(([\w, ]+)\)", hint)
    for name, parameters in methods:
        assert parameters.split(", ") == list(inspect.signature(getattr(Laplace, name)).parameters)[1:]
    keywords = set(re.findall(r"(\w+)=", hint))
    assert keywords <= set(inspect.signature(called).parameters)
    assert calls or methods or keywords


SCALES = {
    "multiplier": (
        noise_multiplier,
        exact_multiplier,
        {"epsilon": "0.3", "delta": "1e-5"},
    ),
    "generalized": (
        generalized_gaussian_scale,
        exact_generalized_scale,
        {
            "epsilon": "0.3",
            "delta": "1e-5",
            "sensitivity": "0.7",
            "p": "2.5",
            "width": 3,
            "linf_sensitivity": "0.5",
        },
        {"l0_sensitivity": 2, "truncated": True},
    ),
    "geometric": (
        truncated_geometric_scale,
        exact_geometric_scale,
        {"epsilon": "0.3", "sensitivity": 2, "width": 9},
        {"l0_sensitivity": 2},
    ),
    "Laplace": (
        truncated_laplace_scale,
        exact_laplace_scale,
        {"epsilon": "0.3", "sensitivity": "0.7", "width": "1.1"},
        {"l0_sensitivity": 2},
    ),
    "loss of Laplace": (
        truncated_laplace_loss,
        exact_laplace_loss,
        {"scale": "0.3", "sensitivity": "0.7", "width": "1.1"},
        {"l0_sensitivity": 2},
    ),
    "rho": (zcdp_rho, largest_rho, {"epsilon": "0.3", "delta": "1e-5"}),
}
"""A function for users, the exact one, numbers in decimals, and other arguments."""


@pytest.mark.parametrize("name", SCALES)
def test_functions_for_users_take_and_return_floats_rounded_to_the_safe_side(name):
    called, exact_of, numbers, *others = SCALES[name]
    options = others[0] if others else {}
    exact = {key: Fraction(value) for key, value in numbers.items()} | options
    known = exact_of(*(exact[key] for key in inspect.signature(exact_of).parameters if key in exact))
    given = ({key: cast(value) for key, value in numbers.items()} for cast in (float, str, Decimal, Fraction))
    (value,) = {called(**kwargs, **options) for kwargs in given}
    assert type(value) is float
    read = Fraction(repr(value))  # a float stands for the decimal that it prints
    assert read <= known if name == "rho" else read >= known
    assert value == pytest.approx(float(known), rel=1e-15)


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, True, {}, "many", np.array([1, 2])], ids=str)
def test_functions_for_users_name_the_argument_that_they_refuse(name, wrong):
    called, _, numbers, *others = SCALES[name]
    options = others[0] if others else {}
    for key in numbers:
        with pytest.raises(ParameterError, match=rf"^'{key}' must be"):
            called(**{**numbers, **options, key: wrong})
    for key in options:
        if not (key == "truncated" and wrong is True):
            with pytest.raises(ParameterError, match=rf"^'{key}' must be"):
                called(**{**numbers, **options, key: wrong})
