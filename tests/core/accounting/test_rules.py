"""Sums of losses, and rules that enforce a cap by them, against every adaptive adversary of a small menu."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from pdprivacy import ZCDP, Approx, Pure
from pdprivacy.core.accounting import (
    Amount,
    Basic,
    Concentrated,
    Filter,
    Spent,
    compose,
    optimal_delta,
    rule,
    shares,
    times,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_of,
    zcdp_rho,
)
from pdprivacy.core.accounting.rules import largest_rho
from pdprivacy.core.mechanisms.gaussian import gaussian_delta
from pdprivacy.errors import BudgetError, BudgetExceeded, ParameterError, PrivacyError


def worst_delta(enforced, menu, level):
    """The largest delta at ``level`` that any adversary reaches who may choose the next loss by the past.

    Each loss is randomized response that reveals with probability delta. What can matter of the past is
    the privacy loss so far and what the rule has seen, so the best choice is found backwards over these.
    """

    @cache
    def gain(so_far, spent):
        best = max(0.0, -math.expm1(float(level - so_far)))
        for item in menu:
            if enforced.fits(spent, item):
                after, chance = spent.add(item), 1 / (1 + math.exp(-item.epsilon))
                plain = chance * gain(so_far + item.epsilon, after)
                plain += (1 - chance) * gain(so_far - item.epsilon, after)
                best = max(best, float(item.delta) + float(1 - item.delta) * plain)
        return best

    return gain(Fraction(0), Spent())


def wider(enforced, factor):
    """The same filter with a larger room: an unsafe one."""
    copy = Filter(enforced.total, enforced.slack, enforced.conversion)
    object.__setattr__(copy, "largest", enforced.largest * factor)
    return copy


ADAPTIVE = [
    (Approx(1, 0.3), 0.3, [Pure(0.25), Pure(0.5)]),
    (Approx(0.5, 0.3), 0.2, [Pure(0.125), Approx(0.25, 0.05)]),
    (Approx(1, 0.2), 0.2, [Pure(0.2)]),
    (Approx(1, 0.3), 0.2, [Pure(0.25), Approx(0.25, 0.02)]),
]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("conversion", ["bun_steinke", "tight"])
@pytest.mark.parametrize(("total", "slack", "menu"), ADAPTIVE)
def test_no_adaptive_adversary_gets_past_a_filter(total, slack, menu, conversion):
    enforced = Filter(total, slack, conversion)
    assert worst_delta(enforced, menu, total.epsilon) <= total.delta


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("total", "slack", "menu"), ADAPTIVE)
def test_the_adversary_gets_past_filters_of_twice_the_room(total, slack, menu):
    if total != Approx(0.5, 0.3):
        assert worst_delta(wider(Filter(total, slack, "tight"), 2), menu, total.epsilon) > total.delta


@pytest.mark.parametrize(
    "menu", [[Pure(0.25), Approx(0.5, 0.125)], [Approx(0.25, 0.0625)], [Pure(1), Approx(0.5, 0.25)]]
)
def test_no_adaptive_adversary_gets_past_sums(menu):
    total = Approx(1, 0.25)
    assert worst_delta(Basic(total), menu, total.epsilon) <= total.delta + Fraction(1, 10**12)


@pytest.mark.parametrize("conversion", ["bun_steinke", "tight"])
def test_outcomes_of_whole_trees_of_choices_stay_below_delta(conversion):
    """By enumeration: what is asked next depends on every earlier outcome."""
    total, level = Approx("0.5", "0.2"), 0.5
    enforced = Filter(total, "0.15", conversion)
    menu = [Pure("0.1"), Approx("0.05", "0.02"), Pure("0.15"), Pure("0.05")]

    def leaves(p, q, spent, history, depth):
        request = menu[(sum((3 * i + 1) * (o + 1) for i, o in enumerate(history)) + len(history)) % 4]
        if depth == 0 or not enforced.fits(spent, request):
            yield p, q
            return
        delta, odds = float(request.delta), math.exp(request.epsilon)
        right, wrong = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
        for outcome, (r, s) in enumerate([(right, wrong), (wrong, right), (delta, 0.0), (0.0, delta)]):
            if r or s:
                yield from leaves(p * r, q * s, spent.add(request), (*history, outcome), depth - 1)

    outcomes = list(leaves(1.0, 1.0, Spent(), (), 6))
    assert len(outcomes) > 20
    assert sum(p for p, _ in outcomes) == pytest.approx(1)
    assert 0 < math.fsum(max(0.0, p - math.exp(level) * q) for p, q in outcomes) <= 0.2
    assert 0 < math.fsum(max(0.0, q - math.exp(level) * p) for p, q in outcomes) <= 0.2


@pytest.mark.parametrize("slack", [None, "1e-7", 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1, 10])
def test_the_filter_is_the_inequality(epsilon, slack):
    enforced = Filter(Approx(epsilon, 1e-6), slack)
    log = -math.log(5e-7 if slack is None else float(slack))

    def meets(squares):
        return math.sqrt(2 * log * squares) + squares / 2 <= epsilon

    edge = 2 * float(enforced.largest)
    assert meets(edge * (1 - 1e-10))
    assert not meets(edge * (1 + 1e-10))
    small = Fraction(epsilon) / 1000
    # so many small losses that their sum is far past the cap
    number = math.floor(2 * enforced.largest / small**2)
    assert number * small > enforced.total.epsilon
    assert enforced.fits(Spent(), Pure(small), number)
    assert not enforced.fits(Spent(), Pure(small), number + 1)


def test_deltas_of_losses_fit_into_what_the_slack_leaves():
    enforced = Filter(Approx(1, 1e-6), slack="4e-7")
    assert enforced.fits(Spent(), Approx("0.01", "6e-7"))
    assert enforced.fits(Spent(), Approx("0.01", "3e-7"), 2)
    assert not enforced.fits(Spent(), Approx("0.01", "6.1e-7"))
    assert not enforced.fits(Spent(), Approx("0.01", "3e-7"), 3)


def test_few_large_losses_fit_as_under_sums():
    enforced = Filter(Approx(1, 1e-6))
    assert enforced.fits(Spent(), Pure(1))
    assert not enforced.fits(Spent(), Pure("1.0001"))
    assert enforced.fits(Spent(), Pure(0.25), 4)
    assert not enforced.fits(Spent(), ZCDP(0.25))
    assert enforced.fits(Spent(), ZCDP(0.01))
    # a sum says nothing of losses in rho
    assert not enforced.fits(Spent().add(ZCDP("1e-9")), Pure(1))


epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)
items = st.one_of(
    st.builds(Pure, epsilons),
    st.builds(Approx, epsilons, st.fractions(min_value=0, max_value=Fraction(1, 20), max_denominator=10**4)),
    st.builds(ZCDP, epsilons),
)
RULES = {
    "basic": (Approx(3, 0.1), (Pure, Approx)),
    "pure": (Pure(3), (Pure,)),
    "filter": (Approx(3, 0.1), (Pure, Approx, ZCDP)),
    "zcdp": (Approx(3, 0.1), (Pure, ZCDP)),
    "rho": (ZCDP(0.5), (Pure, ZCDP)),
}


def made(name):
    total, takes = RULES[name]
    return rule({"pure": "basic", "rho": "zcdp"}.get(name, name), total), takes


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", RULES)
@given(st.lists(items, max_size=15), st.randoms(use_true_random=False))
def test_accepted_charges_are_within_the_cap_in_every_order(name, requested, random):
    enforced, takes = made(name)
    spent, accepted = Spent(), []
    for item in requested:
        if not isinstance(item, takes):
            continue
        if enforced.fits(spent, item):
            spent = enforced.add(spent, item)
            accepted.append(item)
        else:
            with pytest.raises(BudgetExceeded, match="The release asks for"):
                enforced.add(spent, item)
    assert spent == Spent.of(accepted)
    amount, delta = enforced.spent(spent)
    assert 0 <= amount <= (enforced.total.rho if name == "rho" else enforced.total.epsilon)
    assert 0 <= delta <= (0 if name == "rho" else enforced.total.delta)
    # what fits in one order fits in each: at every step, less has been spent
    again = Spent()
    for item in random.sample(accepted, len(accepted)):
        before = enforced.spent(again)
        again = enforced.add(again, item)
        after = enforced.spent(again)
        assert after.amount >= before.amount
        assert after.delta >= before.delta
    assert again == spent


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", RULES)
@given(st.lists(items, max_size=15))
def test_the_remaining_budget_fits_and_no_more(name, requested):
    enforced, takes = made(name)
    spent = Spent()
    for item in requested:
        if isinstance(item, takes) and enforced.fits(spent, item):
            spent = enforced.add(spent, item)
    amount, delta = enforced.left(spent)
    kind = ZCDP if name == "rho" else Pure
    if amount:
        assert enforced.fits(spent, kind(amount))
    assert not enforced.fits(spent, kind(amount + Fraction(1, 10**9)))
    if delta and amount > Fraction(1, 100) and Approx in takes:
        assert enforced.fits(spent, Approx("0.001", delta))
        assert not enforced.fits(spent, Approx("0.001", delta + Fraction(1, 10**12)))


@pytest.mark.full(keep=17)
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_many_charges_are_one_charge_of_that_count(name, count):
    enforced, _ = made(name)
    item, one_by_one, fits = Pure("0.17"), Spent(), True
    for _ in range(count):
        fits = fits and enforced.fits(one_by_one, item)
        one_by_one = one_by_one.add(item)
    assert enforced.fits(Spent(), item, count) == fits
    if fits:
        assert enforced.add(Spent(), item, count) == one_by_one


def test_decimals_and_thirds_fill_a_cap_exactly():
    for total, item in ((0.3, 0.1), (1, "1/3")):
        enforced, spent = Basic(Pure(total)), Spent()
        for _ in range(3):
            spent = enforced.add(spent, Pure(item))
        assert enforced.left(spent) == Amount(Fraction(0), Fraction(0))
        with pytest.raises(BudgetExceeded, match="but 0 of"):
            enforced.add(spent, Pure("1e-300"))
    enforced = Concentrated(ZCDP("1/6"))
    assert enforced.left(enforced.add(Spent(), Pure("1/3"), 3)) == Amount(Fraction(0))


def test_a_refusal_leaves_room_for_less():
    enforced = Basic(Approx(1, 1e-6))
    spent = enforced.add(Spent(), Pure(0.5))
    with pytest.raises(BudgetExceeded, match=r"asks for epsilon 0.7, but 0.5 of 1 is left.\nHint: ask for e"):
        enforced.add(spent, Pure(0.7))
    assert enforced.fits(spent, Pure(0.2))
    with pytest.raises(BudgetExceeded, match=r"asks for delta 0.1, but 1e-06 of 1e-06 is left"):
        enforced.add(spent, Approx(0.2, 0.1))


def test_a_cap_in_epsilon_converts_to_the_largest_rho():
    enforced = rule("zcdp", Approx(1, 1e-6))
    rho = largest_rho(1, 1e-6)
    assert enforced.fits(Spent(), ZCDP(rho))
    assert not enforced.fits(Spent(), ZCDP(rho * (1 + Fraction(1, 10**20))))
    assert zcdp_epsilon(rho, 1e-6) <= 1
    assert enforced.spent(Spent().add(ZCDP(rho))).amount <= 1
    assert enforced.spent(Spent().add(ZCDP(rho))).delta == Fraction(1, 10**6)
    assert enforced.spent(Spent()) == Amount(Fraction(0), Fraction(0))
    spent = enforced.add(Spent(), ZCDP(rho / 2))
    with pytest.raises(BudgetExceeded, match=r"asks for rho 1, but 0.012.* is left"):
        enforced.add(spent, ZCDP(1))
    room = enforced.left(spent).amount ** 2 / 2
    assert room == pytest.approx(float(rho / 2), rel=1e-14)
    assert enforced.fits(spent, ZCDP(room))


def test_rules_by_name():
    assert rule("basic", Pure(1)) == Basic(Pure(1))
    assert rule("basic", ZCDP(1)) == rule("zcdp", ZCDP(1)) == Concentrated(ZCDP(1))
    assert rule("filter", Approx(1, 1e-6)) == Filter(Approx(1, 1e-6), "5e-7", "bun_steinke")
    assert rule("zcdp", Approx(1, 1e-6)) == Filter(Approx(1, 1e-6), 1e-6, "tight")
    for name, total in RULES.values():
        assert total  # each cap is named once above
        assert made(next(key for key, value in RULES.items() if value[0] == name))[0].total == name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rule("best", Pure(1)), "'accounting' must be one of 'basic', 'filter', 'zcdp'"),
        (lambda: rule("basic", 1), "A cap must be Pure, Approx or ZCDP"),
        (lambda: rule("filter", ZCDP(1)), "needs a cap in epsilon and delta"),
        (lambda: rule("filter", Pure(1)), "needs a cap with a positive delta"),
        (lambda: rule("zcdp", Approx(1, 0)), "needs a cap with a positive delta"),
        (lambda: Basic(ZCDP(1)), "must be Pure or Approx"),
        (lambda: Concentrated(Pure(1)), "must be ZCDP"),
        (lambda: Filter(Pure(1)), "a cap with a positive delta"),
        (lambda: Filter(Approx(1, 1e-6), 2e-6), r"'slack' must be in \(0, 1e-06\]"),
        (lambda: Filter(Approx(1, 1e-6), 0), "'slack' must be in"),
        (lambda: Filter(Approx(1, 1e-6), conversion="loose"), "'conversion' must be one of"),
        (lambda: Basic(Pure(1)).fits(Spent(), Pure(1), 0), "'count' must be"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize(
    ("enforced", "item", "message"),
    [
        (Basic(Pure(1)), ZCDP(1), "a loss in rho has no epsilon.\nHint"),
        (Basic(Approx(1, 1e-6)), ZCDP(1), "a loss in rho has no epsilon.\nHint"),
        (Concentrated(ZCDP(1)), Approx(1, 1e-6), "a loss with a positive delta has no rho.\nHint"),
        (rule("zcdp", Approx(1, 1e-6)), Approx(0.1, 1e-9), "leaves no delta to losses.*\nHint"),
        (Basic(Pure(1)), 0.5, "A budget counts losses"),
        (Concentrated(ZCDP(1)), None, "A budget counts losses"),
        (Filter(Approx(1, 1e-6)), "0.5", "A budget counts losses"),
    ],
)
def test_losses_that_a_cap_cannot_count_are_refused_with_a_hint(enforced, item, message):
    for call in (enforced.fits, enforced.add):
        with pytest.raises(BudgetError, match=message) as caught:
            call(Spent(), item)
        assert not isinstance(caught.value, BudgetExceeded)


def test_a_total_judged_anew_by_another_rule():
    spent = Spent().add(Pure(0.1), 100)
    assert Basic(Approx(20, 1e-6)).spent(spent).amount == 10
    assert Filter(Approx(20, 1e-6)).spent(spent).amount < Fraction(64, 10)
    assert Filter(Approx(20, 1e-6), conversion="tight").spent(spent).amount < Fraction(56, 10)
    assert Basic(Pure(5)).left(spent) == Amount(Fraction(0), Fraction(0))
    assert Concentrated(ZCDP(0.1)).left(spent) == Amount(Fraction(0))
    assert Filter(Approx(1, 1e-6)).left(spent).amount == 0
    with pytest.raises(BudgetError, match="in rho has no epsilon"):
        Basic(Pure(5)).left(spent.add(ZCDP(1)))
    with pytest.raises(BudgetError, match="positive delta has no rho"):
        Concentrated(ZCDP(5)).spent(spent.add(Approx(1, 0.1)))


def test_optimal_composition_enforces_nothing():
    """It holds for losses fixed beforehand: as a rule, it is got past by choices that look back."""

    class Optimal:
        def fits(self, spent, item, count=1):
            return optimal_delta(chosen[spent.add(item, count)], 1) <= 0.1

    menu = [Pure(0.25), Pure(0.5), Pure(1)]
    chosen = {}
    for counts in itertools.product(range(7), range(4), range(3)):
        losses = {item: count for item, count in zip(menu, counts, strict=True) if count}
        chosen[Spent.of(losses)] = losses if sum(counts) <= 6 else {Pure(9): 1}
    chosen = defaultdict(lambda: {Pure(9): 1}, chosen)
    assert worst_delta(Optimal(), menu, Fraction(1)) > 0.13
    assert worst_delta(Filter(Approx(1, 0.1), 0.1, "tight"), menu, Fraction(1)) <= 0.1


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
def test_a_sum_of_many_losses_is_one_loss_of_that_count(item, count):
    assume(getattr(item, "delta", 0) * count < 1)
    assert times(item, count) == item.times(count)
    one_by_one = Spent()
    for _ in range(count):
        one_by_one = one_by_one.add(item)
    assert Spent().add(item, count) == one_by_one == Spent.of([item] * count) == Spent.of({item: count})
    assert compose([item] * count) == compose({item: count}) == compose([times(item, count)])


@pytest.mark.full
@given(st.lists(every_loss, max_size=12), st.randoms(use_true_random=False))
def test_the_spent_loss_does_not_depend_on_the_order(items, random):
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
def test_an_invalid_loss_is_refused(items):
    with pytest.raises(ParameterError, match=r"^'losses' must"):
        compose(items)


@pytest.mark.parametrize("losses", [[[1]], [{}], "x", None, ["x"], {1: 2}])
def test_an_invalid_loss_is_refused_by_name(losses):
    for call in (compose, Spent.of):
        with pytest.raises(ParameterError, match="'losses' must"):
            call(losses)
    with pytest.raises(ParameterError, match="'losses' must"):
        Spent().add(losses)
    with pytest.raises(ParameterError, match="'losses' must"):
        times(losses, 2)


@pytest.mark.parametrize("weights", ["12", {1: 2}, None, 3])
def test_an_invalid_list_of_weights_is_refused(weights):
    with pytest.raises(ParameterError, match="'split' must hold positive weights"):
        shares(weights)


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
def test_bad_arguments_of_conversions_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize("epsilon", ["1e-280", "1e-200", "1e-20", "1e-12", "1e-7", "1e-6", "1e-5"])
@pytest.mark.parametrize("delta", ["1e-200", "1e-6", "0.5"])
def test_rho_of_a_tiny_epsilon_is_never_too_large(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert rho > 0
    assert 0 <= zcdp_rho(epsilon, delta) <= rho
    assert zcdp_epsilon(rho, delta) <= float(Fraction(epsilon)) * (1 + 1e-15)
    assert largest_rho(epsilon, delta, "bun_steinke") <= rho
