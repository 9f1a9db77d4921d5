from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Pure
from pdprivacy.accounting import Spent, compose, shares, times
from pdprivacy.errors import ParameterError, PrivacyError

numbers = st.fractions(min_value=Fraction(1, 10**6), max_value=100, max_denominator=10**9)
slacks = st.fractions(min_value=0, max_value=Fraction(1, 100), max_denominator=10**9)
losses = st.lists(
    st.one_of(st.builds(Pure, numbers), st.builds(Approx, numbers, slacks)), min_size=1, max_size=20
)


@pytest.mark.full
@given(losses)
def test_epsilons_and_deltas_add_up_one_by_one(items):
    epsilon, delta = Fraction(0), Fraction(0)
    for item in items:
        epsilon, delta = epsilon + item.epsilon, delta + item.delta
    whole = compose(items)
    assert (whole.epsilon, whole.delta) == (epsilon, delta)
    assert type(whole) is (Approx if delta else Pure)


@pytest.mark.full
@given(losses, st.randoms(use_true_random=False), st.integers(min_value=0, max_value=20))
def test_neither_order_nor_grouping_matters(items, random, cut):
    shuffled = random.sample(items, len(items))
    assert compose(shuffled) == compose(items)
    groups = [compose(items[:cut]), compose(items[cut:])]
    assert compose(group for group in groups if group is not None) == compose(items)


def test_nothing_costs_nothing():
    assert compose([]) is None
    assert compose(iter(())) is None


def test_one_loss_is_itself():
    assert compose([Pure(0.1)]) == Pure(0.1)
    assert compose(iter([Approx(0.1, 1e-9)])) == Approx(0.1, 1e-9)


def test_sums_of_decimals_do_not_drift():
    assert compose([Pure(0.1)] * 3) == Pure(0.3)
    assert compose([Approx(0.01, 1e-8)] * 10_000) == Approx(100, 1e-4)


def test_slack_that_adds_up_to_one_is_refused():
    with pytest.raises(ParameterError, match=r"^'delta' must be in \[0, 1\)"):
        compose([Approx(1, 0.5), Approx(1, 0.5)])


@pytest.mark.parametrize("items", [[ZCDP(0.1), Pure(0.1)], [Approx(1, 1e-6), ZCDP(0.1)]], ids=repr)
def test_losses_of_different_currencies_do_not_add_up(items):
    with pytest.raises(PrivacyError):
        compose(items)


@pytest.mark.full
@given(st.lists(numbers, min_size=1, max_size=12), numbers)
def test_shares_are_proportional_and_use_the_whole(weights, factor):
    parts = shares(weights)
    assert sum(parts) == 1
    assert all(part > 0 for part in parts)
    assert all(part * weights[0] == parts[0] * weight for part, weight in zip(parts, weights, strict=True))
    assert shares([factor * weight for weight in weights]) == parts
    # so that a loss that is shared out composes to itself
    assert compose(Pure(part) for part in parts) == Pure(1)


def test_shares_are_exact():
    assert shares([2, 1]) == (Fraction(2, 3), Fraction(1, 3))
    assert shares([0.1, 0.2, 0.3]) == (Fraction(1, 6), Fraction(1, 3), Fraction(1, 2))
    assert shares(["1/3", 1]) == (Fraction(1, 4), Fraction(3, 4))
    assert shares([5]) == (1,)


@pytest.mark.parametrize("weights", [[], [0], [1, 0], [1, -1], [2, "-1/3"]], ids=repr)
def test_weights_that_are_not_positive_are_refused(weights):
    with pytest.raises(ParameterError, match=r"^'split' must hold positive weights\.$"):
        shares(weights)


@pytest.mark.parametrize("weight", [math.nan, math.inf, "half", None, True], ids=repr)
def test_weights_that_are_no_numbers_are_refused(weight):
    with pytest.raises(ParameterError, match=r"^'split' must be a finite number"):
        shares([1, weight])


every_loss = st.one_of(st.builds(Pure, numbers), st.builds(Approx, numbers, slacks), st.builds(ZCDP, numbers))


@given(every_loss, st.integers(min_value=1, max_value=60))
def test_many_charges_are_one_charge_of_that_count(item, count):
    assume(getattr(item, "delta", 0) * count < 1)
    assert times(item, count) == item.times(count)
    one_by_one = Spent()
    for _ in range(count):
        one_by_one = one_by_one.add(item)
    assert Spent().add(item, count) == one_by_one == Spent.of([item] * count) == Spent.of({item: count})
    assert compose([item] * count) == compose({item: count}) == compose([times(item, count)])


@pytest.mark.full
@given(st.lists(every_loss, max_size=12), st.randoms(use_true_random=False))
def test_what_was_spent_knows_no_order(items, random):
    assert Spent.of(items) == Spent.of(random.sample(items, len(items)))


def test_one_large_loss_has_larger_squares_than_the_small_ones_it_is_of():
    assert Spent().add(Pure(0.1), 10).concentrated == Fraction(1, 20)
    assert Spent().add(times(Pure(0.1), 10)).concentrated == Fraction(1, 2)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None], ids=repr)
def test_counts_that_are_none_are_refused(count):
    for call in (
        lambda: times(Pure(1), count),
        lambda: Spent().add(Pure(1), count),
        lambda: compose({Pure(1): count}),
    ):
        with pytest.raises(ParameterError, match=r"^'count' must be a positive whole number"):
            call()


@pytest.mark.parametrize("items", [None, 1, "Pure", [1], [Pure], ["0.1"], {0.1: 2}], ids=repr)
def test_what_is_no_loss_is_refused(items):
    with pytest.raises(ParameterError, match=r"^'losses' must"):
        compose(items)


@pytest.mark.parametrize("losses", [[[1]], [{}], "x", None, ["x"], {1: 2}])
def test_what_is_no_loss_is_refused_by_name(losses):
    for call in (compose, Spent.of):
        with pytest.raises(ParameterError, match="'losses' must"):
            call(losses)
    with pytest.raises(ParameterError, match="'losses' must"):
        Spent().add(losses)
    with pytest.raises(ParameterError, match="'losses' must"):
        times(losses, 2)


@pytest.mark.parametrize("weights", ["12", {1: 2}, None, 3])
def test_what_is_no_list_of_weights_is_refused(weights):
    with pytest.raises(ParameterError, match="'split' must hold positive weights"):
        shares(weights)
