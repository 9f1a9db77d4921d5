"""Sampling and fixed rules: amplified losses against the exact laws of small mechanisms."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, Inexact, Rounded, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pdprivacy import Approx, Pure
from pdprivacy.errors import ParameterError
from pdprivacy.suppression import (
    exact_delta,
    exact_epsilon,
    hockey_stick,
    independent,
    least_epsilon,
    neighbor_pairs,
    outlier_epsilon,
    outlier_target,
    output_law,
    sampling_epsilon,
    sampling_target,
    stability_factor,
    stable_epsilon,
    without_replacement,
)

EPSILONS = ["1e-12", "1e-6", "0.01", "0.3", "1", "5", "50", "700", "1e5"]
RATES = ["1e-9", "1e-3", "0.1", "1/3", "0.5", "0.99", "1"]
RATIONALS = st.fractions(min_value=Fraction(1, 10**12), max_value=10**5)
SHARES = st.fractions(min_value=Fraction(1, 10**9), max_value=1)


def poisson(rate):
    return independent(lambda database: [rate] * len(database))


def telling(record, epsilon, delta=0.0):
    """Tells whether a record is there, as loudly as (epsilon, delta) allows: met in both directions."""
    loud, quiet = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return lambda database: {0: loud, 1: quiet} if record in database else {0: quiet, 1: loud}


def first_response(epsilon):
    """Randomized response to the first record; for neighbours replace_one, and of samples of one size."""
    lie = 1 / (1 + math.exp(epsilon))
    return lambda database: {database[0]: 1 - lie, "ab".replace(str(database[0]), ""): lie}


def geometric(query, epsilon, reach=60):
    """The geometric mechanism on a small count; all that is further out is in the outputs at the ends."""
    a = math.exp(-epsilon)

    def law(database):
        true, outputs = query(database), range(-reach, reach + 1)
        masses = {k: (1 - a) / (1 + a) * a ** abs(k - true) for k in outputs}
        masses[-reach] = a ** (true + reach) / (1 + a)
        masses[reach] = a ** (reach - true) / (1 + a)
        return masses

    return law


def decimal_epsilon(epsilon, rate, digits=400):
    """The formula of the amplified loss as it stands, to many digits."""
    with localcontext(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN):
        size = Decimal(epsilon.numerator) / epsilon.denominator
        share = Decimal(rate.numerator) / rate.denominator
        return Fraction((1 + share * (size.exp() - 1)).ln())


@pytest.mark.full(keep=26)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_amplified_epsilons_are_the_formula_rounded_up(epsilon, rate):
    whole = sampling_epsilon(epsilon, rate)
    assert isinstance(whole, Pure)
    true = decimal_epsilon(Fraction(epsilon), Fraction(rate))
    if rate == "1":
        assert whole.epsilon == Fraction(epsilon)
    else:
        assert true < whole.epsilon < true * (1 + Fraction(1, 10**28))


@pytest.mark.full(keep=26)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_targets_come_back_to_at_most_what_was_asked_and_near_it(epsilon, rate):
    asked = Fraction(epsilon)
    inner = sampling_target(epsilon, rate)
    back = sampling_epsilon(inner.epsilon, rate).epsilon
    assert back <= asked
    assert decimal_epsilon(inner.epsilon * (1 + Fraction(1, 10**19)), Fraction(rate)) >= asked
    assert inner.epsilon >= asked


@given(RATIONALS, SHARES, st.fractions(min_value=0, max_value=1))
@example(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
@example(Fraction(10**5), Fraction(1, 10**9), Fraction(0))
def test_target_and_epsilon_are_inverses(epsilon, rate, part):
    delta = rate * part * Fraction(999, 1000)
    inner = sampling_target(epsilon, rate, delta)
    back = sampling_epsilon(inner.epsilon, rate, inner.delta)
    assert back.epsilon <= epsilon
    assert back.epsilon >= epsilon * (1 - Fraction(1, 10**8))
    assert back.delta == delta


@given(RATIONALS, RATIONALS, SHARES, SHARES)
def test_more_epsilon_or_a_higher_rate_costs_more(one, other, low, high):
    one, other = sorted([one, other])
    low, high = sorted([low, high])
    slack = 1 + Fraction(1, 10**28)
    least = sampling_epsilon(one, low).epsilon
    assert least <= sampling_epsilon(other, low).epsilon * slack
    assert least <= sampling_epsilon(one, high).epsilon * slack
    assert least <= one
    assert sampling_target(one, high).epsilon <= sampling_target(one, low).epsilon * (1 + Fraction(1, 10**19))


def test_tiny_epsilons_are_the_rate_times_epsilon():
    # ln(1 + p (e^x - 1)) = p x + p (1 - p) x^2 / 2 + ...
    whole = sampling_epsilon("1e-250", "1e-250").epsilon
    assert Fraction(1) < whole / Fraction(1, 10**500) < 1 + Fraction(1, 10**28)


def test_the_decimal_context_of_the_caller_changes_nothing():
    def losses():
        return (
            sampling_epsilon("1e-6", "1/3"),
            sampling_target("1e-6", "1/3"),
            stable_epsilon("1e-6", 3, "1e-6"),
            outlier_epsilon(1, "0.2", "0.3"),
            outlier_target(2, "0.2", "0.3"),
        )

    usual = losses()
    with localcontext(prec=3, Emax=5, Emin=-5, traps=[Inexact, Rounded]):
        assert losses() == usual


def test_deltas_are_exact_and_kinds_are_told_by_them():
    assert sampling_epsilon(1, "1/3", "1e-6") == Approx(sampling_epsilon(1, "1/3").epsilon, "1/3000000")
    assert sampling_target(1, "1/3", "1e-6").delta == Fraction(3, 10**6)
    assert isinstance(sampling_target(1, 0.5), Pure)
    assert sampling_epsilon("1/3", 1, "1/7") == Approx("1/3", "1/7")
    assert sampling_target("1/3", 1, "1/7") == Approx("1/3", "1/7")


@pytest.mark.full(keep=23)
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_poisson_sampling_is_met_exactly_by_the_loudest_mechanism(epsilon, delta, rate):
    whole = sampling_epsilon(epsilon, rate, delta)
    mechanism = telling("b", epsilon, delta)
    bare = independent(lambda database: [1.0] * len(database))
    assert exact_epsilon("ab", 3, bare, mechanism, delta) == pytest.approx(epsilon, rel=1e-12)
    largest = exact_epsilon("ab", 3, poisson(rate), mechanism, float(whole.delta))
    assert largest <= float(whole.epsilon) * (1 + 1e-9)
    # with one record the pair ((), ("b",)) alone decides, and there the formula is an equality
    found = exact_delta("ab", 1, poisson(rate), mechanism, float(whole.epsilon))
    assert found == pytest.approx(float(whole.delta), abs=1e-13)
    tight = exact_epsilon("ab", 1, poisson(rate), mechanism, float(whole.delta))
    assert tight == pytest.approx(float(whole.epsilon), rel=1e-9)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("epsilon", [0.2, 1.5])
@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_poisson_sampling_of_counts_with_geometric_noise_stays_within_the_bound(epsilon, rate):
    mechanism = geometric(lambda database: database.count("a"), epsilon)
    bound = float(sampling_epsilon(epsilon, rate).epsilon)
    exact = exact_epsilon("ab", 4, poisson(rate), mechanism)
    assert exact <= bound + 1e-9
    assert exact == pytest.approx(bound, rel=1e-6)  # at the ends of the output, whatever else is there


@pytest.mark.full(keep=13)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("sampled", "records"), [(1, 2), (1, 4), (2, 4), (3, 5), (4, 4)])
def test_sampling_without_replacement_stays_within_the_bound_under_replace_one(epsilon, sampled, records):
    rate = Fraction(sampled, records)
    bound = float(sampling_epsilon(epsilon, rate).epsilon)
    count = geometric(lambda database: database.count("a"), epsilon)
    told = telling("b", epsilon)
    keep, met = without_replacement(sampled), 0.0
    for left, right in neighbor_pairs("ab", records, "replace_one"):
        if len(left) < records:
            continue
        for mechanism in (count, told):
            laws = [output_law(database, keep, mechanism) for database in (left, right)]
            exact = max(least_epsilon(*laws), least_epsilon(*reversed(laws)))
            assert exact <= bound + 1e-9
            met = max(met, exact)
    assert met == pytest.approx(bound, rel=1e-6)


def test_poisson_sampling_does_not_amplify_what_is_private_for_replaced_records_alone():
    def mechanism(database):  # tells that the sample is empty, and else lies about its first record
        return {"none": 1.0} if not database else first_response(1.0)(database)

    # for certain, with one record: private for replace_one
    everything = poisson(1.0)
    assert exact_epsilon("ab", 1, everything, mechanism, neighbors="replace_one") == pytest.approx(1.0)
    sampled = exact_epsilon("ab", 1, poisson(0.1), mechanism, neighbors="replace_one")
    assert sampled == pytest.approx(1.0)
    assert sampled > 5 * float(sampling_epsilon(1, 0.1).epsilon)


def test_sampling_without_replacement_does_not_amplify_by_its_rate_when_records_are_added():
    left, right = ("a",), ("a", "b")  # one record is sampled of one, or of two

    def count(database):
        return database.count("b") - database.count("a")

    mechanism = geometric(count, 1.0)
    laws = [output_law(database, without_replacement(1), mechanism) for database in (left, right)]
    exact = max(least_epsilon(*laws), least_epsilon(*reversed(laws)))
    assert exact == pytest.approx(math.log(0.5 + 0.5 * math.exp(2)), rel=1e-6)
    assert exact > float(sampling_epsilon(1, 0.5).epsilon)


def test_releases_from_one_sample_are_composed_before_they_are_amplified():
    once = telling("b", 1.0)

    def twice(database):
        law = once(database)
        return {(one, other): law[one] * law[other] for one in law for other in law}

    exact = exact_epsilon("b", 1, poisson(0.1), twice)
    assert exact == pytest.approx(float(sampling_epsilon(2, 0.1).epsilon), rel=1e-12)
    assert exact > 2 * float(sampling_epsilon(1, 0.1).epsilon)


def test_a_sample_that_is_told_amplifies_nothing():
    laws = [telling("b", 1.0)(database) for database in ((), ("b",))]
    assert least_epsilon(*laws) == pytest.approx(1.0)


BAD_EPSILONS = [0, -1, math.nan, math.inf, -math.inf, "many", True, None, [1], "1e-301", "1e301"]
BAD_RATES = [0, -0.1, 1.0000001, 2, math.nan, math.inf, "half", False, True, None, "1e-301", np.array([0.5])]
BAD_DELTAS = [-1e-9, 1, 2, math.nan, math.inf, "small", True, None]


@pytest.mark.parametrize("call", [sampling_epsilon, sampling_target])
def test_bad_losses_and_rates_are_refused(call):
    for epsilon in BAD_EPSILONS:
        with pytest.raises(ParameterError, match="epsilon"):
            call(epsilon, 0.5)
    for rate in BAD_RATES:
        with pytest.raises(ParameterError, match="rate"):
            call(1, rate)
    for delta in BAD_DELTAS:
        with pytest.raises(ParameterError, match="delta"):
            call(1, 0.5, delta)


@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_a_delta_that_no_mechanism_has_is_refused(delta):
    with pytest.raises(ParameterError, match="below 'rate'"):
        sampling_target(1, 0.1, delta)
    assert sampling_epsilon(1, 0.1, delta).delta == Fraction(str(delta)) / 10


# Fixed rules.


@pytest.mark.parametrize("delta", [0, 1e-6, 0.001])
@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [1e-9, 0.4, 1.0])
def test_steps_multiply_epsilon_and_add_up_deltas(epsilon, steps, delta):
    whole = stable_epsilon(epsilon, steps, delta)
    assert whole.epsilon == Fraction(str(epsilon)) * steps
    expected = delta * math.fsum(math.exp(epsilon * k) for k in range(steps))
    assert float(whole.delta) == pytest.approx(expected, rel=1e-13)
    assert whole.delta >= Fraction(str(delta)) * steps  # for every k above 0 the summand is above 1
    assert isinstance(whole, Approx if delta else Pure)


def test_group_privacy_is_met():
    """Steps of a mechanism whose hockey-stick is met at every step at once."""
    epsilon, delta, steps = 0.5, 0.01, 3

    def chance(level):  # Pr(1) grows by e^epsilon and delta with every record
        return 0.1 * math.exp(epsilon * level) + delta * math.fsum(
            math.exp(epsilon * k) for k in range(level)
        )

    laws = [{1: chance(level), 0: 1 - chance(level)} for level in range(steps + 1)]
    for one, more in pairwise(laws):
        assert max(hockey_stick(more, one, epsilon), hockey_stick(one, more, epsilon)) <= delta + 1e-15
    whole = stable_epsilon(epsilon, steps, delta)
    met = hockey_stick(laws[-1], laws[0], float(whole.epsilon))
    assert met == pytest.approx(float(whole.delta), rel=1e-12)


def test_rules_that_look_at_one_record_have_the_factor_one():
    assert stability_factor(lambda database: [record < 3 for record in database], range(4), 3) == 1
    assert stability_factor(lambda database: [True] * len(database), "ab", 3) == 1
    assert stability_factor(lambda database: [False] * len(database), "ab", 3) == 0
    # keeps a single record and nothing else: looks at the whole, and has the factor 1
    assert stability_factor(lambda database: [len(database) == 1] * len(database), "ab", 4) == 1


def mean_distances(database):
    return [sum(one != other for other in database) / len(database) for one in database]


def test_leaving_out_what_is_far_from_the_rest_has_a_factor_that_grows_without_end():
    def near(database):  # Proposition B.2 at 1/2
        return [far <= 0.5 for far in mean_distances(database)]

    def all_but_the_furthest_half(database):  # Proposition B.3: ties are left out together
        far = mean_distances(database)
        cut = sorted(far, reverse=True)[: len(far) // 2]
        return [distance not in cut for distance in far]

    for rule in (near, all_but_the_furthest_half):
        factors = [stability_factor(rule, "ab", size) for size in (2, 4, 6, 8)]
        assert factors == sorted(set(factors)), rule
        assert factors[-1] >= 4


def test_a_rule_costs_no_more_than_its_factor_says():
    def rule(database):  # leaves out everything from three records on
        return [len(database) < 3] * len(database)

    factor = stability_factor(rule, "ab", 4)
    assert factor == 2
    epsilon = 0.7
    mechanism = geometric(len, epsilon)
    exact = exact_epsilon("ab", 4, independent(lambda d: [float(k) for k in rule(d)]), mechanism)
    assert exact == pytest.approx(float(stable_epsilon(epsilon, factor).epsilon), rel=1e-6)


def test_bad_rules_are_refused():
    for epsilon in BAD_EPSILONS:
        with pytest.raises(ParameterError, match="epsilon"):
            stable_epsilon(epsilon, 2)
    for delta in BAD_DELTAS:
        with pytest.raises(ParameterError, match="delta"):
            stable_epsilon(1, 2, delta)
    for steps in [0, -1, 1.5, True, "2", math.inf, math.nan, None]:
        with pytest.raises(ParameterError, match="stability"):
            stable_epsilon(1, steps)
    with pytest.raises(ParameterError, match="must be below 1"):
        stable_epsilon(1, 3, 0.2)
    with pytest.raises(ParameterError, match="must be below 1"):
        stable_epsilon(1000, 10**9, "1e-300")
    with pytest.raises(ParameterError, match="one answer per record"):
        stability_factor(lambda database: [], "ab", 2)
    with pytest.raises(ParameterError, match="universe"):
        stability_factor(lambda database: [], "", 2)
    with pytest.raises(ParameterError, match="size"):
        stability_factor(lambda database: [], "ab", 0)
