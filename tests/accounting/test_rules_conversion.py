from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from pdprivacy import ZCDP, Approx, Pure
from pdprivacy.accounting import zcdp_delta, zcdp_epsilon, zcdp_of, zcdp_rho
from pdprivacy.errors import ParameterError
from pdprivacy.exact import exp_up, float_down, float_up, log_up, root_down, root_up
from pdprivacy.mechanism.gaussian import gaussian_delta

RHOS = [1e-8, 1e-4, 0.01, 0.1, 1.0, 10.0, 1000.0, 1e7]
DELTAS = [1e-200, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.99]
CONVERSIONS = ["tight", "bun_steinke"]


def searched(rho, delta):
    """Corollary 13 of Canonne, Kamath, Steinke, by another search, over ln(alpha - 1)."""

    def epsilon(u):
        t = math.exp(u)
        return (1 + t) * rho - (math.log(delta) + math.log1p(t)) / t - math.log1p(1 / t)

    best = min(
        (minimize_scalar(epsilon, bounds=(low, low + 8), method="bounded", options={"xatol": 1e-13}).fun)
        for low in range(-32, 40, 4)
    )
    return max(0.0, best)


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_epsilons_are_those_of_another_search(rho, delta):
    assert zcdp_epsilon(rho, delta) == pytest.approx(searched(rho, delta), rel=1e-9, abs=1e-12)


@pytest.mark.full(keep=38)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_plain_conversion_is_the_formula_and_never_below_the_tight_one(rho, delta):
    epsilon = zcdp_epsilon(rho, delta, "bun_steinke")
    assert epsilon == pytest.approx(rho + 2 * math.sqrt(rho * -math.log(delta)), rel=1e-13)
    assert zcdp_epsilon(rho, delta) <= epsilon


@pytest.mark.full(keep=40)
@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("multiplier", [0.1, 0.5, 1.0, 3.0, 20.0, 1000.0])
@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 5.0])
def test_no_delta_is_below_that_of_gaussian_noise(multiplier, epsilon, conversion):
    exact = gaussian_delta(epsilon, multiplier)
    assert zcdp_delta(1 / (2 * multiplier**2), epsilon, conversion) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.5, 5.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6])
def test_tight_epsilon_of_gaussian_noise_is_within_a_tenth_of_the_exact_one(rho, delta):
    multiplier = math.sqrt(1 / (2 * rho))
    epsilon = zcdp_epsilon(rho, delta)
    assert gaussian_delta(epsilon, multiplier) <= delta
    assert gaussian_delta(0.9 * epsilon, multiplier) > delta


@given(
    st.floats(min_value=-5, max_value=5),
    st.floats(min_value=-30, max_value=-0.001),
    st.sampled_from(CONVERSIONS),
)
@example(-5.0, -0.001, "tight")
def test_largest_rho_is_below_what_was_asked_when_accounted_anew(power, log, conversion):
    epsilon, delta = 10**power, 10**log
    rho = zcdp_rho(epsilon, delta, conversion)
    assert zcdp_epsilon(rho, delta, conversion) <= epsilon
    assert zcdp_epsilon(rho * (1 + Fraction(1, 10**6)), delta, conversion) > epsilon
    # and a conversion back to delta does not lose it either
    assert zcdp_delta(rho, zcdp_epsilon(rho, delta, conversion), conversion) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_conversions_are_monotone(conversion):
    epsilons = [[zcdp_epsilon(rho, delta, conversion) for rho in RHOS] for delta in DELTAS]
    assert all(row == sorted(row) for row in epsilons)
    assert all(list(column) == sorted(column, reverse=True) for column in zip(*epsilons, strict=True))
    deltas = [zcdp_delta(0.1, epsilon / 7, conversion) for epsilon in range(60)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] <= 1


def test_extremes():
    assert zcdp_delta(1e6, 1) == zcdp_delta(1e6, 1, "bun_steinke") == 1.0
    assert 0 < zcdp_delta(1e-6, 1e5) <= 5e-324
    assert 0 < zcdp_delta("1e-400", 0.1) <= 5e-324
    assert zcdp_epsilon("1e-400", 0.1) == 0.0
    assert zcdp_epsilon(1e280, 1e-280) == pytest.approx(1e280)
    assert zcdp_epsilon(1e-280, 1e-280) > 0
    assert zcdp_rho(1e-100, 1e-100) > 0
    assert zcdp_rho(1e100, 0.5) > 1e99


def test_losses_that_are_concentrated():
    assert zcdp_of(Pure("1/3")) == ZCDP("1/18")
    assert zcdp_of(Approx(1, 0)) == ZCDP(0.5)
    assert zcdp_of(ZCDP(2)) == ZCDP(2)
    with pytest.raises(ParameterError, match="positive delta is not zero-concentrated"):
        zcdp_of(Approx(1, 1e-6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zcdp_epsilon(0, 0.1), "'rho' must be positive"),
        (lambda: zcdp_epsilon(math.nan, 0.1), "'rho' must be a finite number"),
        (lambda: zcdp_epsilon(10**291, 0.1), "'rho' must be at most 1e290"),
        (lambda: zcdp_epsilon(1, 0), r"'delta' must be in \(0, 1\)"),
        (lambda: zcdp_epsilon(1, 1), r"'delta' must be in \(0, 1\)"),
        (lambda: zcdp_epsilon(1, "1e-291"), "'delta' must be at least 1e-290"),
        (lambda: zcdp_epsilon(1, 0.1, "loose"), "'conversion' must be one of"),
        (lambda: zcdp_delta(1, -1), "'epsilon' must be in"),
        (lambda: zcdp_rho(0, 0.1), "'epsilon' must be positive"),
        (lambda: zcdp_rho(10**291, 0.1), "'epsilon' must be at most 1e290"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


positives = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


@given(positives)
def test_roundings_are_on_their_side(number):
    assert root_down(number) ** 2 <= number <= root_up(number) ** 2
    assert root_up(number) - root_down(number) <= root_up(number) * Fraction(1, 10**48)
    low, high = float_down(number), float_up(number)
    assert Fraction(repr(low)) <= number <= Fraction(repr(high))
    assert Fraction(repr(low)) == number or Fraction(low) < number
    assert Fraction(repr(high)) == number or Fraction(high) > number
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)
    assert log_up(number) == pytest.approx(math.log(number), rel=1e-12, abs=1e-12)
    assert exp_up(log_up(number)) >= number
    assert exp_up(log_up(number)) <= number * (1 + Fraction(1, 10**45))
    assert (float_down(-number), float_up(-number)) == (-high, -low)


def test_roundings_past_all_floats():
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_up(-(Fraction(10) ** 400)) == -1.7976931348623157e308
    assert float_up(Fraction(1, 10**400)) == 5e-324
    assert exp_up(Fraction(-(10**9))) == Fraction(1, 10**400)
    assert root_down(Fraction(0)) == 0


@pytest.mark.parametrize("epsilon", ["1e-280", "1e-200", "1e-20", "1e-12", "1e-7", "1e-6", "1e-5"])
@pytest.mark.parametrize("delta", ["1e-200", "1e-6", "0.5"])
def test_rho_of_a_tiny_epsilon_is_never_too_large(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert rho > 0
    assert zcdp_epsilon(rho, delta) <= float(Fraction(epsilon)) * (1 + 1e-15)
    assert zcdp_rho(epsilon, delta, "bun_steinke") <= rho
