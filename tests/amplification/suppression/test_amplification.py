"""Amplified losses of sampling, fixed rules and outlier suppression, against exact laws of mechanisms."""

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
from pdprivacy.amplification.suppression import (
    exact_delta,
    exact_epsilon,
    hockey_stick,
    independent,
    keep_probabilities,
    least_epsilon,
    neighbor_pairs,
    outlier_delta,
    outlier_epsilon,
    outlier_floor,
    outlier_peak,
    outlier_scores,
    outlier_search,
    outlier_target,
    output_law,
    sampling_epsilon,
    sampling_target,
    stability_factor,
    stable_epsilon,
    suppression_bound,
    without_replacement,
)
from pdprivacy.amplification.suppression.amplification import suppressed, unsuppressed
from pdprivacy.errors import ParameterError
from pdprivacy.exact import float_down, float_up

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
    target = Fraction(epsilon)
    inner = sampling_target(epsilon, rate)
    back = sampling_epsilon(inner.epsilon, rate).epsilon
    assert back <= target
    assert decimal_epsilon(inner.epsilon * (1 + Fraction(1, 10**19)), Fraction(rate)) >= target
    assert inner.epsilon >= target


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
def test_more_epsilon_or_a_higher_rate_costs_more(first, other, low, high):
    first, other = sorted([first, other])
    low, high = sorted([low, high])
    slack = 1 + Fraction(1, 10**28)
    least = sampling_epsilon(first, low).epsilon
    assert least <= sampling_epsilon(other, low).epsilon * slack
    assert least <= sampling_epsilon(first, high).epsilon * slack
    assert least <= first
    assert sampling_target(first, high).epsilon <= sampling_target(first, low).epsilon * (
        1 + Fraction(1, 10**19)
    )


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
    actual = exact_delta("ab", 1, poisson(rate), mechanism, float(whole.epsilon))
    assert actual == pytest.approx(float(whole.delta), abs=1e-13)
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
    telling_b = telling("b", epsilon)
    keep, met = without_replacement(sampled), 0.0
    for left, right in neighbor_pairs("ab", records, "replace_one"):
        if len(left) < records:
            continue
        for mechanism in (count, telling_b):
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
        return {(first, second): law[first] * law[second] for first in law for second in law}

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
    for fewer, more in pairwise(laws):
        assert max(hockey_stick(more, fewer, epsilon), hockey_stick(fewer, more, epsilon)) <= delta + 1e-15
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
    return [sum(record != other for other in database) / len(database) for record in database]


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


PROOF_ERROR = 2e-7
GRID = [0.01, 0.05, 0.1, 0.3, 0.5, 0.51, 0.7, 0.9, 0.99]
PAIRS = [(m, M) for m in GRID for M in GRID if m < M]
OUTLIER_EPSILONS = [1e-6, 0.01, 0.25, 1.0, 2.0, 10.0, 100.0]
CHANCES = st.integers(10, 990).map(lambda number: Fraction(number, 1000))
LEVELS = st.fractions(min_value=Fraction(1, 10**6), max_value=100)


def curves(p, epsilon, m, M):
    """The functions l1 and l2 that Proposition B.10 maximises over p, and l3, as Theorem 5.4 prints them."""

    def logarithm(q):  # ln(e^epsilon - (e^epsilon - 1) q), which overflows for no epsilon
        return epsilon + np.log1p(q * np.expm1(-epsilon))

    mean = p * M + (1 - p) * m
    other = (M + m - p * M) / (2 - p)
    l1 = logarithm(mean) + p * M / m + (1 - p) * (1 - m) / (1 - mean) - 1
    l2 = logarithm(p * M + (1 - p) * other) + p * M / m + (1 - p) * (1 - other) / (1 - M) - 1
    l3 = -np.log(np.exp(-epsilon) - np.expm1(-epsilon) * M) + 1 - (1 - M) / (1 - m)
    return l1, l2, l3


def searched(epsilon, m, M):
    """The maximum over p on a grid, and on finer ones around its best point."""
    best = -math.inf
    for which in (0, 1):
        low, high = 0.0, 1.0
        for _ in range(5):
            p = np.linspace(low, high, 2001)
            values = curves(p, epsilon, m, M)[which]
            at, step = p[values.argmax()], (high - low) / 2000
            low, high = max(0.0, at - step), min(1.0, at + step)
            best = max(best, values.max())
    return max(best, curves(0.0, epsilon, m, M)[2])


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("epsilon", OUTLIER_EPSILONS)
def test_epsilons_are_the_maximum_over_p(epsilon):
    for m, M in PAIRS:
        actual = float(outlier_epsilon(epsilon, m, M))
        assert actual - PROOF_ERROR == pytest.approx(searched(epsilon, m, M), rel=1e-13, abs=1e-13), (m, M)


def test_floors_are_the_maximum_over_p_at_epsilon_zero():
    for m, M in PAIRS:
        assert float(outlier_floor(m, M)) - PROOF_ERROR == pytest.approx(searched(0.0, m, M), abs=1e-12)
    assert outlier_floor(0.3, 0.3) == 0


@given(LEVELS, CHANCES, CHANCES)
def test_epsilons_are_never_below_a_dense_search(epsilon, first, other):
    m, M = sorted([first, other])
    actual = outlier_epsilon(epsilon, m, M)
    best = searched(float(epsilon), float(m), float(M))
    if m < M:
        assert float(actual) > best
    assert float(actual) == pytest.approx(best + (PROOF_ERROR if m < M else 0), rel=1e-12, abs=1e-12)
    assert actual <= outlier_epsilon(100, m, M)
    assert m == M or actual > outlier_floor(m, M)


def cardano(epsilon, m, M):
    """The peaks of Proposition B.10 by the roots that it prints, in floating point."""
    g, x = math.expm1(epsilon), math.exp(epsilon)
    first = (
        g * M / m * (M - m) ** 2,
        -(M - m) / m * ((m * m - 4 * M * m + 2 * M) * g + x * M),
        (1 - m) / m * (g * (2 * m * m - 4 * M * m - m) + (3 * x - 1) * M),
        -(1 - m) * (g * (m - 2) + x / m),
    )
    second = (
        (x - g * m) / m,
        -(6 * x - g * (M + 5 * m)) / m,
        (m * (g * (m + 9 * M - 9) - x) + 4 * M * (g * M - 4 * x + 1) + 12 * x) / ((1 - M) * m),
        -(2 * x - g * (M + m)) * (4 - 4 * M - m) / ((1 - M) * m) + 2 * g,
    )
    for a, b, c, d in (first, second):
        D0, D1 = b * b - 3 * a * c, 2 * b**3 - 9 * a * b * c + 27 * a * a * d
        square = D1 * D1 - 4 * D0**3
        if square > 0:
            roots = np.cbrt((D1 + math.sqrt(square)) / 2) + np.cbrt((D1 - math.sqrt(square)) / 2)
        else:
            roots = 2 * math.sqrt(D0) * math.cos(math.acos(D1 / (2 * math.sqrt(D0**3))) / 3)
        yield min(1.0, max(0.0, -(b + roots) / (3 * a)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("m", "M"), [(0.1, 0.5), (0.3, 0.9), (0.5, 0.7), (0.6, 0.95), (0.05, 0.9)])
def test_the_printed_roots_are_the_peaks_where_floats_can_tell(epsilon, m, M):
    first, second = cardano(epsilon, m, M)
    values = [
        curves(first, epsilon, m, M)[0],
        curves(second, epsilon, m, M)[1],
        curves(0.0, epsilon, m, M)[2],
    ]
    assert float(outlier_epsilon(epsilon, m, M)) - PROOF_ERROR == pytest.approx(max(values), rel=1e-12)


def test_some_peaks_lie_inside_and_some_at_the_ends():
    """So that the closed form is tested where it is at work."""
    p = np.linspace(0, 1, 1001)
    inside = {
        which
        for epsilon in (0.25, 1.0, 10.0)
        for m, M in PAIRS
        for which in (0, 1)
        if 0 < curves(p, epsilon, m, M)[which].argmax() < 1000
    }
    ends = {int(curves(p, 1.0, m, M)[1].argmax()) for m, M in PAIRS}
    assert inside == {0, 1}
    assert {0, 1000} <= ends


@pytest.mark.parametrize("m", ["0.01", "1/3", "0.99"])
@pytest.mark.parametrize("epsilon", ["1e-12", "0.5", "100"])
def test_equal_chances_are_poisson_sampling(epsilon, m):
    rate = 1 - Fraction(m)
    assert outlier_epsilon(epsilon, m, m) == float_up(sampling_epsilon(epsilon, rate).epsilon)
    assert outlier_target(epsilon, m, m) == min(100, float_down(sampling_target(epsilon, rate).epsilon))


@given(LEVELS, LEVELS, CHANCES, CHANCES)
def test_more_epsilon_costs_more_and_poisson_sampling_is_the_least(first, other, low, high):
    low, high = sorted([low, high])
    first, other = sorted([first, other])
    cost = outlier_epsilon(first, low, high)
    assert cost <= outlier_epsilon(other, low, high)
    assert cost >= sampling_epsilon(first, 1 - low).epsilon


@given(LEVELS, CHANCES, CHANCES)
def test_outlier_targets_come_back_to_at_most_what_was_asked_and_near_it(epsilon, low, high):
    low, high = sorted([low, high])
    if epsilon <= Fraction(str(outlier_floor(low, high))):
        with pytest.raises(ParameterError, match="cannot be met"):
            outlier_target(epsilon, low, high)
        return
    inner, stated = unsuppressed(epsilon, low, high), outlier_target(epsilon, low, high)
    assert 0 < Fraction(str(stated)) <= inner <= 100
    assert stated == pytest.approx(float(inner), rel=1e-15)
    assert suppressed(Fraction(str(stated)), low, high) <= suppressed(inner, low, high) <= epsilon
    if inner < 99:
        assert suppressed(inner * (1 + Fraction(1, 10**15)), low, high) > epsilon


@given(LEVELS, CHANCES, CHANCES)
def test_the_target_of_the_whole_epsilon_is_the_epsilon_of_the_mechanism(epsilon, low, high):
    low, high = sorted([low, high])
    whole = outlier_epsilon(epsilon, low, high)
    if whole <= 100:
        assert float(outlier_target(whole, low, high)) == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize("above", ["1e-29", "1e-15", "1e-6"])
def test_targets_just_above_the_floor_are_small_and_safe(above):
    low, high = Fraction("0.2"), Fraction("0.3")
    target = suppressed(Fraction(0), low, high) + Fraction(above)
    inner = unsuppressed(target, low, high)
    assert 0 < inner < 10 * Fraction(above)
    assert suppressed(inner, low, high) <= target


def test_targets_are_not_above_what_the_theorem_covers():
    assert outlier_epsilon(100, 0.97, 0.99) < 100
    assert outlier_target(100, 0.97, 0.99) == 100


def test_deltas_are_exact():
    assert outlier_delta("1e-6", "0.3") == 7e-7
    assert outlier_delta(0, 0.5) == 0


# The theorem, on databases.

UNIVERSES = {
    "absolute": [0, 1, 4, 10],
    "discrete": ["a", "b", "c", "d"],
    "euclidean": [(0, 0), (1, 0), (0, 1), (1, 1)],
}
BOUNDS = {"absolute": (0, 10), "discrete": None, "euclidean": [(0, 1), (0, 1)]}


def scores(records, distance):
    if not len(records):
        return np.empty(0)
    return outlier_scores(records, distance, BOUNDS[distance])


def suppression(distance, m, M):
    return independent(lambda database: keep_probabilities(scores(list(database), distance), m, M))


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(("m", "M"), [(0.05, 0.2), (0.3, 0.6), (0.5, 0.51), (0.2, 0.9), (0.8, 0.95)])
@pytest.mark.parametrize("distance", UNIVERSES)
def test_the_bound_holds_for_every_small_database(distance, m, M):
    delta = 0.01
    law = suppression(distance, m, M)
    for epsilon in (0.1, 1.0, 4.0):
        bound = suppression_bound(UNIVERSES[distance], 3, law, epsilon, delta)
        assert bound.epsilon <= float(outlier_epsilon(epsilon, m, M))
        assert bound.delta <= float(outlier_delta(delta, m)) + 1e-15


@pytest.mark.parametrize("distance", UNIVERSES)
def test_mechanisms_on_kept_records_stay_within_the_bound(distance):
    universe, m, M, epsilon, delta = UNIVERSES[distance][:3], 0.2, 0.5, 0.8, 0.02
    loud, quiet = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    law = suppression(distance, m, M)
    for record in universe:

        def mechanism(database, record=record):
            return {0: loud, 1: quiet} if record in database else {0: quiet, 1: loud}

        whole, slack = float(outlier_epsilon(epsilon, m, M)), float(outlier_delta(delta, m))
        assert exact_epsilon(universe, 3, law, mechanism, slack) <= whole
        assert exact_delta(universe, 3, law, mechanism, whole) <= slack + 1e-15
        # the delta is met by a record that is added to none: it is kept with probability 1 - m
        alone = float(sampling_epsilon(epsilon, 1 - Fraction("0.2")).epsilon)
        assert exact_delta([record], 1, law, mechanism, alone) == pytest.approx(slack, rel=1e-9)


def exact_pair(left, right, epsilon):
    """The bounds of Theorem 5.3 for D and D + y: the worst kept set takes the worse factor of each record.

    ``left``: probabilities of suppression in D; ``right``: those of the same records and of y in D + y.
    """
    common, last = right[:-1], right[-1]
    kept, left_out = np.log((1 - common) / (1 - left)), np.log(common / left)
    added = math.log(last + math.exp(epsilon) * (1 - last)) + np.maximum(kept, left_out).sum()
    removed = -math.log(last + math.exp(-epsilon) * (1 - last)) + np.maximum(-kept, -left_out).sum()
    return max(added, removed)


def test_factors_of_single_records_are_the_theorem_by_enumeration():
    m, M, epsilon = 0.2, 0.6, 0.7
    universe = UNIVERSES["absolute"]
    law = suppression("absolute", m, M)
    worst = max(
        exact_pair(*(1 - keep_probabilities(scores(list(d), "absolute"), m, M) for d in pair), epsilon)
        for pair in neighbor_pairs(universe, 3)
    )
    assert suppression_bound(universe, 3, law, epsilon).epsilon == pytest.approx(worst, rel=1e-12)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("distance", UNIVERSES)
def test_the_bound_holds_for_random_databases_of_all_sizes(distance):
    rng = np.random.default_rng(len(distance))
    for _ in range(250):
        n = int(rng.choice([1, 2, 3, 5, 20, 300]))
        m, M = np.sort(rng.integers(1, 100, 2)) / 100
        epsilon = round(float(10 ** rng.uniform(-2, 2)), 6)
        if distance == "discrete":
            records = rng.integers(0, rng.integers(1, 2 * n + 2), n + 1)
        elif distance == "absolute":
            records = 10 * rng.beta(*rng.choice([0.05, 1.0, 20.0], 2), n + 1)
        else:
            records = np.clip(rng.normal(rng.integers(0, 2, (n + 1, 1)), 0.1, (n + 1, 2)), 0, 1)
        chances = [1 - keep_probabilities(scores(part, distance), m, M) for part in (records[:-1], records)]
        assert exact_pair(*chances, epsilon) <= float(outlier_epsilon(epsilon, m, M)) + 1e-12


def test_the_bound_is_met_by_copies_and_one_record_far_away():
    """Proposition B.12, at p = 1: many records at one place, and one at the other end is added."""
    m, M, epsilon, n = 0.3, 0.4, 1.0, 10**6
    chances = [np.full(n, m), np.append(np.full(n, (n * m + M) / (n + 1)), (m + n * M) / (n + 1))]
    met = exact_pair(*chances, epsilon)
    assert met == pytest.approx(math.log(math.e - (math.e - 1) * M) + M / m - 1, abs=1e-5)
    p = np.linspace(0, 1, 1001)
    assert curves(p, epsilon, m, M)[0].argmax() == 1000  # so l1 is largest at p = 1
    assert met <= float(outlier_epsilon(epsilon, m, M))


def test_the_bound_is_met_by_records_far_apart_and_one_between():
    """Proposition B.12, at p = 0: all records at distance 1 from each other and 1/2 from the added one."""
    m, M, epsilon, n = 0.8, 0.95, 1.0, 10**6
    far, half = (m + (n - 1) * M) / n, (m + M) / 2
    chances = [np.full(n, far), np.append(np.full(n, (n * far + half) / (n + 1)), (m + n * half) / (n + 1))]
    met = exact_pair(*chances, epsilon)
    assert met == pytest.approx(curves(0.0, epsilon, m, M)[1], abs=1e-4)
    p = np.linspace(0, 1, 1001)
    assert curves(p, epsilon, m, M)[1].argmax() == 0
    assert curves(0.0, epsilon, m, M)[1] == pytest.approx(searched(epsilon, m, M), rel=1e-12)
    assert met <= float(outlier_epsilon(epsilon, m, M))


def slopes(p, epsilon, m, M):
    """The derivatives of l1 and l2, from their printed forms and not from the cubics of Proposition B.10."""
    top, gain = math.exp(epsilon), math.expm1(epsilon)
    mean = p * M + (1 - p) * m
    first = -gain * (M - m) / (top - gain * mean) + M / m - (1 - m) / (1 - mean)
    first += (1 - p) * (1 - m) * (M - m) / (1 - mean) ** 2
    t = (M + m - p * M) / (2 - p)
    falls = (m - M) / (2 - p) ** 2
    second = -gain * (M - t + (1 - p) * falls) / (top - gain * (p * M + (1 - p) * t))
    second += M / m - (1 - t) / (1 - M) - (1 - p) * falls / (1 - M)
    return first, second


def is_tight(epsilon, m, M):
    """Whether the largest of l1, l2 and l3 is reached at an end of [0, 1], by the slopes there."""
    p = np.linspace(0, 1, 4001)
    values = curves(p, epsilon, m, M)
    known = [(float(values[2]), True)]
    for curve, start, end in zip(
        values, slopes(0.0, epsilon, m, M), slopes(1.0, epsilon, m, M), strict=False
    ):
        known.append((float(curve.max()), start <= 0 or end >= 0))
    return max(known)[1]


@pytest.mark.full
@pytest.mark.parametrize(("epsilon", "expected"), [(0.5, 3371), (1.0, 3201), (2.0, 3088)])
def test_the_bound_is_tight_at_so_many_pairs_of_hundredths(epsilon, expected):
    """Figure 75; the 99 pairs m = M, which are Poisson sampling, are among them."""
    pairs = [(i / 100, j / 100) for i in range(1, 100) for j in range(i, 100)]
    assert len(pairs) == 4950
    tight = [outlier_peak(epsilon, m, M).tight for m, M in pairs]
    assert tight == [m == M or is_tight(epsilon, m, M) for m, M in pairs]
    assert sum(tight) == expected


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_peaks_are_those_of_a_search_and_lie_where_slopes_say(epsilon):
    for m, M in PAIRS:
        peak = outlier_peak(epsilon, m, M)
        assert peak.epsilon == pytest.approx(searched(epsilon, m, M), rel=1e-12)
        assert peak.epsilon < outlier_epsilon(epsilon, m, M) < peak.epsilon + 3e-7
        assert peak.tight == is_tight(epsilon, m, M)
    assert outlier_peak(epsilon, 0.3, 0.3).tight


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_tight_bounds_are_met_by_neighbours_of_theorem_5_3(epsilon):
    """All records at one place and one far from it, or far apart and one between, for ten million records."""
    n, kinds = 10**7, set()
    for m, M in [(0.1, 0.12), (0.2, 0.9), (0.6, 0.7), (0.8, 0.95), (0.01, 0.04), (0.02, 0.04), (0.1, 0.92)]:
        peak = outlier_peak(epsilon, m, M)
        far, half = (m + (n - 1) * M) / n, (m + M) / 2
        copies = np.array([m]), np.array([(n * m + M) / (n + 1), (m + n * M) / (n + 1)])
        apart = np.array([far]), np.array([(n * far + half) / (n + 1), (m + n * half) / (n + 1)])
        met = max(exact_copies(*pair, epsilon, n) for pair in (copies, apart))
        assert met <= peak.epsilon + 1e-9
        assert peak.tight == (met == pytest.approx(peak.epsilon, rel=1e-5)), (m, M, peak, met)
        kinds.add((peak.curve, peak.tight, peak.p))
    assert len(kinds) > 2


def exact_copies(left, right, epsilon, n):
    """As `exact_pair`, of n common records that have the same probabilities."""
    common, last = right
    kept, left_out = math.log1p((left[0] - common) / (1 - left[0])), math.log1p((common - left[0]) / left[0])
    added = math.log(last + math.exp(epsilon) * (1 - last)) + n * max(kept, left_out)
    removed = -math.log(last + math.exp(-epsilon) * (1 - last)) + n * max(-kept, -left_out)
    return max(added, removed)


BAD_OUTLIER_EPSILONS = [0, -1, 100.5, math.nan, math.inf, "many", True, None, "1e-301"]
BAD_CHANCES = [0, 1, 0.0099, 0.991, -0.5, math.nan, math.inf, "half", True, False, None]


def test_bad_chances_and_losses_are_refused():
    for call in (outlier_epsilon, outlier_target, outlier_peak, outlier_search):
        for epsilon in BAD_OUTLIER_EPSILONS:
            with pytest.raises(ParameterError, match="epsilon"):
                call(epsilon, 0.1, 0.2)
        for chance in BAD_CHANCES:
            with pytest.raises(ParameterError, match="'m'"):
                call(1, chance, 0.99)
            with pytest.raises(ParameterError, match="'M'"):
                call(1, 0.01, chance)
        with pytest.raises(ParameterError, match="must not be above 'M'"):
            call(1, 0.3, 0.2)
    for chance in BAD_CHANCES:
        with pytest.raises(ParameterError, match="'m'"):
            outlier_floor(chance, 0.99)
        with pytest.raises(ParameterError, match="'m'"):
            outlier_delta(1e-6, chance)
    with pytest.raises(ParameterError, match="must not be above 'M'"):
        outlier_floor(0.3, 0.2)
    for delta in [-1e-9, 1, math.nan, math.inf, "small", True, None]:
        with pytest.raises(ParameterError, match="delta"):
            outlier_delta(delta, 0.5)


def test_targets_at_the_floor_are_refused_with_the_way_out():
    floor = outlier_floor(0.1, 0.2)
    with pytest.raises(ParameterError, match="cannot be met") as error:
        outlier_target(floor, 0.1, 0.2)
    assert "outlier_floor" in str(error.value)
    with pytest.raises(ParameterError, match=r"m=0\.1 and M=0\.2"):
        outlier_target(0.5, 0.1, 0.2)
    assert outlier_target(floor + 1e-6, 0.1, 0.2) > 0
