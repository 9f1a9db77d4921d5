from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Pure
from pdprivacy.core.accounting import compose, optimal, optimal_delta, optimal_epsilon, optimal_error
from pdprivacy.errors import ParameterError

HOMOGENEOUS = [[Approx("0.3", 0.01)] * n for n in (1, 2, 5, 8)] + [[Pure(2)] * 4, [Pure("1/3")] * 8]
HETEROGENEOUS = [
    [Pure(0.1), Pure(0.2), Pure(0.7)],
    [Approx(0.1, 0.01), Approx(1, 0.001), Pure(0.35), Pure("1/3"), Approx("1/7", 0.05)],
    [Approx(f"1/{n}", f"1/{100 + n}") for n in range(2, 10)],
    [Pure(5), Pure(0.001), Pure(0.001)],
    [Approx(0.1, 0.2), Approx(0.3, 0.2), Approx(0.3, 0)],
]
EVERY = HOMOGENEOUS + HETEROGENEOUS


def divergence(losses, epsilon):
    """sum over all outcomes of max(0, P - exp(epsilon) Q): P, Q the laws of randomized responses.

    Each response reveals with probability delta, and else is right with odds exp(epsilon).
    """
    with localcontext(prec=40):
        laws = []
        for item in losses:
            delta = Decimal(item.delta.numerator) / item.delta.denominator
            odds = (Decimal(item.epsilon.numerator) / item.epsilon.denominator).exp()
            right, wrong = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
            outcomes = [(right, wrong), (wrong, right)]
            laws.append([*outcomes, (delta, Decimal(0)), (Decimal(0), delta)] if delta else outcomes)
        pairs = {(Decimal(1), Decimal(1)): 1}
        for law in laws:
            merged: dict[tuple[Decimal, Decimal], int] = {}
            for ((p, q), number), (r, s) in itertools.product(pairs.items(), law):
                key = (p * r, q * s)
                merged[key] = merged.get(key, 0) + number
            pairs = merged
        factor = Decimal(epsilon).exp()
        return sum((number * max(Decimal(0), p - factor * q) for (p, q), number in pairs.items()), Decimal(0))


@pytest.mark.full(keep=7)
@pytest.mark.parametrize("losses", EVERY, ids=range(len(EVERY)))
@pytest.mark.parametrize("share", ["0", "0.01", "0.3", "0.77", "0.999", "1", "1.5"])
def test_deltas_are_those_of_all_outcomes_and_not_below(losses, share):
    epsilon = Decimal(share) * Decimal(float(compose(losses).epsilon))
    exact, delta = divergence(losses, epsilon), optimal_delta(losses, epsilon)
    assert Fraction(repr(delta)) >= Fraction(exact) - Fraction(1, 10**30)
    assert delta == pytest.approx(float(exact), rel=1e-10, abs=1e-14 * float(compose(losses).epsilon))
    assert optimal_error(losses) == 0


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("losses", EVERY, ids=range(len(EVERY)))
@pytest.mark.parametrize("extra", [1e-9, 1e-4, 0.01, 0.2])
def test_epsilons_meet_delta_and_a_smaller_one_does_not(losses, extra):
    kept = math.prod(float(1 - item.delta) for item in losses)
    delta = 1 - kept * (1 - extra)
    epsilon = optimal_epsilon(losses, delta)
    assert epsilon <= compose(losses).epsilon * (1 + Fraction(1, 10**15))
    assert divergence(losses, Decimal(repr(epsilon))) <= Decimal(repr(delta))
    if epsilon:
        assert divergence(losses, Decimal(epsilon) * Decimal("0.999999")) > Decimal(delta)


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("losses", EVERY, ids=range(len(EVERY)))
@pytest.mark.parametrize("cells", [64, 1024])
def test_rounded_sums_are_above_and_within_the_stated_error(losses, cells, monkeypatch):
    levels = [share * float(compose(losses).epsilon) for share in (0, 0.3, 0.8)]
    exact = [optimal_delta(losses, level) for level in levels]
    for name, value in (("CELLS", cells), ("SUBSETS", 1)):
        monkeypatch.setattr(optimal, name, value)
    # an awkward loss more, next to none, leaves no common unit
    losses = [*losses, Pure("1/1000003")]
    eta = optimal_error(losses)
    assert 0 < eta <= (len(losses) + 1) * float(compose(losses).epsilon) / cells
    kept = math.prod(float(1 - item.delta) for item in losses)
    for level, true in zip(levels, exact, strict=True):
        assert optimal_delta(losses, level) >= true
        most = 1 - kept * (1 - math.exp(eta / 2) * (1 - (1 - true) / kept))
        assert optimal_delta(losses, level + eta) <= most + 2e-6


def test_epsilons_of_rounded_sums_are_above_and_near(monkeypatch):
    losses = [Pure(Fraction(1, 10) + Fraction(n, 1000003)) for n in range(10)]
    exact = optimal_epsilon(losses, 1e-3)
    assert optimal_error(losses) == 0
    monkeypatch.setattr(optimal, "SUBSETS", 2)
    monkeypatch.setattr(optimal, "CELLS", 2**12)
    eta = optimal_error(losses)
    assert exact <= optimal_epsilon(losses, 1e-3) <= optimal_epsilon(losses, 1e-3 * math.exp(-eta / 2)) + eta
    assert optimal_epsilon(losses, 1e-3) <= exact + 2 * eta
    monkeypatch.setattr(optimal, "WORK", 0)  # the coarsest grid is taken at last
    assert exact <= optimal_epsilon(losses, 1e-3) <= compose(losses).epsilon


some = st.lists(
    st.builds(
        Approx,
        st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=1000),
        st.fractions(min_value=0, max_value=Fraction(1, 20), max_denominator=1000),
    ),
    min_size=1,
    max_size=5,
)


@given(some, st.randoms(use_true_random=False), st.floats(min_value=0, max_value=4))
def test_neither_order_nor_grouping_matters_and_more_costs_more(losses, random, epsilon):
    delta = optimal_delta(losses, epsilon)
    assert optimal_delta(random.sample(losses, len(losses)), epsilon) == pytest.approx(delta, rel=1e-10)
    assert optimal_delta([*losses, Pure(0.1)], epsilon) >= delta * (1 - 1e-10)
    assert optimal_delta(losses, epsilon + 0.1) <= delta
    assert optimal_delta(losses, 0) <= 1
    mapping = {item: losses.count(item) for item in losses}
    assert optimal_delta(mapping, epsilon) == optimal_delta(losses, epsilon)


@pytest.mark.parametrize("count", [1, 7, 100, 3000])
def test_many_charges_are_one_charge_of_that_count(count):
    item = Approx(0.05, 1e-9)
    assert optimal_epsilon({item: count}, 1e-4) == optimal_epsilon([item] * count, 1e-4)


def test_many_losses_agree_with_the_binomial():
    from scipy.stats import binom

    count, epsilon = 20_000, 0.01
    wins = np.arange(count + 1)
    chances = binom.pmf(wins, count, 1 / (1 + math.exp(-epsilon)))
    gains = 1 - np.exp(np.minimum(0, 4 - (2 * wins - count) * epsilon))
    assert optimal_delta({Pure(epsilon): count}, 4) == pytest.approx((chances * gains).sum(), rel=1e-8)


def test_small_deltas_are_exact_too():
    losses = {Pure(1): 3000}
    epsilon = optimal_epsilon(losses, 1e-100)
    assert optimal_delta(losses, epsilon) == pytest.approx(1e-100, rel=1e-6)
    assert epsilon < 2999


def test_deltas_of_very_many_losses_are_not_below():
    losses = {Approx("0.001", "1/3000000"): 30_000, Pure("0.001"): 1}
    revealed = -math.expm1(30_000 * math.log1p(-1 / 3_000_000))
    assert optimal_delta(losses, 31) == pytest.approx(revealed, rel=1e-12)
    assert optimal_delta(losses, 31) >= Fraction(revealed) * (1 - Fraction(1, 10**13))
    assert optimal_epsilon(losses, 0.02) < 1
    assert optimal_delta({Approx(1, 0.9): 100_000}, 1) == 1.0
    with pytest.raises(ParameterError, match="what the deltas"):
        optimal_epsilon({Approx(1, 0.9): 100_000}, 0.999)
    assert optimal_epsilon([Approx(1, "1/3")], Fraction(1, 3)) == 1


def test_edges():
    assert optimal_epsilon([Pure(0.1)] * 3, 0) == 0.3
    assert optimal_epsilon([Pure(0.1)], 0.99) == 0
    assert optimal_epsilon([Approx(0.1, 0.01)], 0.01) == 0.1
    assert optimal_delta([Pure(0.1)] * 3, 0.3) == 0
    assert optimal_delta([Approx(0.1, 0.01), Approx(0.2, 0.01)], 0.3) == 0.0199
    assert optimal_epsilon([Pure(1e5), Pure(1e-5)], 1e-9) == pytest.approx(1e5)
    assert optimal_epsilon([Pure(1e9)], 1e-9) == pytest.approx(1e9)
    assert optimal_delta([Pure(1e-9)], 0) == pytest.approx(0.5e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimal_delta([ZCDP(1)], 1), "needs losses in epsilon"),
        (lambda: optimal_delta({Pure(1): 10**6 + 1}, 1), "at most 1e6"),
        (lambda: optimal_delta([], 1), "at least one loss"),
        (lambda: optimal_delta([Pure(1)], -1), "'epsilon' must be at least 0"),
        (lambda: optimal_delta([Pure(1e16)], 1), "at most 1e15"),
        (lambda: optimal_epsilon([Pure(1)], 1), r"'delta' must be in \[0, 1\)"),
        (lambda: optimal_epsilon([Approx(1, 0.1)] * 2, 0.1), "'delta' must be at least 0.19"),
        (lambda: optimal_epsilon(Pure(1), 0.1), "'losses' must be a list"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
