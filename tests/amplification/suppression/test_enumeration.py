"""Suppression on small universes: exact losses, and the theorems that bound them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pdprivacy.amplification.suppression import (
    databases,
    exact_delta,
    exact_epsilon,
    hockey_stick,
    independent,
    keep_probabilities,
    least_epsilon,
    neighbor_pairs,
    outlier_scores,
    output_law,
    sampling_epsilon,
    stable_epsilon,
    suppression_bound,
    suppression_floor,
    without_replacement,
)
from pdprivacy.errors import ParameterError


def poisson(rate):
    return independent(lambda database: [rate] * len(database))


def random_law(seed, low=0.05, high=0.95):
    """Keeps each record with a probability that is another one in every database."""

    def keep(database):
        names = sorted(map(str, database))
        rng = np.random.default_rng([seed, len(names), *map(ord, names)])
        chances = dict(zip(sorted(set(names)), rng.uniform(low, high, len(set(names))), strict=True))
        return [chances[str(record)] for record in database]

    return independent(keep)


def random_mechanism(universe, size, ratio, delta, seed):
    """A random mechanism on three outputs; as private as it is, found by trying all neighbours."""
    rng = np.random.default_rng(seed)
    laws = {}
    for database in databases(universe, size):
        masses = np.exp(rng.uniform(0, math.log(ratio), 3))
        laws[database] = dict(enumerate(masses / masses.sum()))

    def mechanism(database):
        return laws[tuple(sorted(database))]

    bare = independent(lambda database: [1.0] * len(database))
    return mechanism, exact_epsilon(universe, size, bare, mechanism, delta)


def test_all_small_databases_and_neighbours_are_there_once():
    all_small = list(databases(range(3), 4))
    assert len(set(all_small)) == len(all_small) == sum(math.comb(n + 2, 2) for n in range(5))
    pairs = list(neighbor_pairs(range(3), 4))
    assert len(pairs) == 3 * sum(math.comb(n + 2, 2) for n in range(4))
    assert all(right[:-1] == left for left, right in pairs)
    replaced = list(neighbor_pairs(range(3), 4, "replace_one"))
    assert len(replaced) == len(pairs)  # three records, three pairs of records
    assert all(left[:-1] == right[:-1] and left != right for left, right in replaced)
    assert list(neighbor_pairs("a", 0)) == []
    assert exact_epsilon("a", 0, poisson(0.5), lambda database: {0: 1}) == 0
    assert exact_delta("a", 0, poisson(0.5), lambda database: {0: 1}, 1) == 0


def test_laws_of_kept_sets_are_those_of_independent_coins_and_of_samples():
    law = independent(lambda database: [0.2, 0.5, 1.0])("abc")
    assert math.fsum(law.values()) == pytest.approx(1)
    assert law[frozenset({0, 2})] == pytest.approx(0.2 * 0.5)
    assert all(2 in kept for kept in law)
    sample = without_replacement(2)("abcd")
    assert set(sample.values()) == {1 / 6}
    assert all(len(kept) == 2 for kept in sample)
    assert without_replacement(5)("ab") == {frozenset({0, 1}): 1.0}


def test_hockey_sticks_are_the_worst_set_of_outputs():
    rng = np.random.default_rng(5)
    for _ in range(50):
        left, right = (dict(enumerate(rng.dirichlet([0.5] * 5))) for _ in range(2))
        for epsilon in (0, 0.3, 2):
            sets = product([0, 1], repeat=5)
            worst = max(
                sum(inside * (left[k] - math.exp(epsilon) * right[k]) for k, inside in enumerate(chosen))
                for chosen in sets
            )
            assert hockey_stick(left, right, epsilon) == pytest.approx(worst, abs=1e-14)
        for delta in (0, 0.01, 0.3):
            least = least_epsilon(left, right, delta)
            if least < 700:
                assert hockey_stick(left, right, least) <= delta + 1e-12
            if 1e-6 < least < 700:
                assert hockey_stick(left, right, least * (1 - 1e-6)) > delta


def test_outputs_that_one_side_never_has_cost_an_infinite_epsilon_or_a_delta():
    left, right = {0: 0.9, 1: 0.1}, {0: 1.0}
    assert least_epsilon(left, right) == math.inf
    assert least_epsilon(left, right, 0.1) == 0
    assert least_epsilon(right, left) == pytest.approx(math.log(1 / 0.9))
    assert hockey_stick(left, right, 5) == pytest.approx(0.1)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0), (1.0, 0.01), (4.0, 0.3)])
def test_the_theorem_gives_poisson_sampling_back(rate, epsilon, delta):
    bound = suppression_bound("abc", 3, poisson(rate), epsilon, delta)
    whole = sampling_epsilon(epsilon, rate, delta)
    assert bound.epsilon == pytest.approx(float(whole.epsilon), rel=1e-12)
    assert bound.delta == pytest.approx(float(whole.delta), abs=1e-15)


def test_one_side_as_printed_without_its_logarithm_is_not_the_loss_of_poisson_sampling():
    """Section 5.2 prints a ratio of probabilities where the epsilon is its logarithm."""
    epsilon, rate = 0.5, 0.25
    coin_law = poisson(rate)(("a",))
    without, kept = coin_law[frozenset()], coin_law[frozenset({0})]
    printed = 1 / (without + math.exp(-epsilon) * kept)  # D is empty, D' is ("a",)
    true = math.log(printed)
    law = {name: output_law(name, poisson(rate), telling_a(epsilon)) for name in ((), ("a",))}
    assert least_epsilon(law[()], law[("a",)]) <= true + 1e-12 < printed
    assert printed > epsilon > suppression_bound("a", 1, poisson(rate), epsilon).epsilon


def telling_a(epsilon):
    loud = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda database: {0: loud, 1: 1 - loud} if "a" in database else {0: 1 - loud, 1: loud}


@pytest.mark.parametrize("delta", [0, 0.05])
@pytest.mark.parametrize("seed", range(12))
def test_the_theorem_is_never_exceeded_by_any_suppression_and_mechanism(seed, delta):
    universe, size = "ab", 3
    mechanism, epsilon = random_mechanism(universe, size, 4.0, delta, seed)
    law = random_law(seed)
    bound = suppression_bound(universe, size, law, epsilon, delta)
    assert exact_delta(universe, size, law, mechanism, bound.epsilon) <= bound.delta + 1e-13
    assert exact_epsilon(universe, size, law, mechanism, bound.delta) <= bound.epsilon + 1e-12
    assert bound.delta <= delta


@pytest.mark.parametrize("delta", [0, 0.02])
@pytest.mark.parametrize("seed", range(8))
def test_the_general_theorem_holds_where_kept_sets_have_no_counterpart(seed, delta):
    universe, size = "ab", 3
    mechanism, epsilon = random_mechanism(universe, size, 1.5, delta, seed)
    rules = [
        without_replacement(1),
        without_replacement(2),
        independent(lambda database: [float(len(database) < 3)] * len(database)),
        independent(lambda database: [float(len(database) % 2)] * len(database)),
    ]
    for law in rules:
        bound = suppression_bound(universe, size, law, epsilon, delta)
        slack = 1e-12
        assert exact_delta(universe, size, law, mechanism, bound.epsilon) <= bound.delta + slack
        if bound.delta < 1:
            assert exact_epsilon(universe, size, law, mechanism, bound.delta) <= bound.epsilon + slack


@pytest.mark.parametrize("delta", [0, 0.01])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_general_theorem_gives_fixed_rules_back(epsilon, delta):
    """Databases of three records lose all, those of two nothing: what is kept is two steps apart."""
    law = independent(lambda database: [float(len(database) < 3)] * len(database))
    bound = suppression_bound("ab", 3, law, epsilon, delta)
    whole = stable_epsilon(epsilon, 2, delta)
    assert bound.epsilon == pytest.approx(float(whole.epsilon), rel=1e-12)
    assert bound.delta == pytest.approx(float(whole.delta), abs=1e-15)


def test_the_theorem_is_its_formula_where_the_removed_record_decides():
    """By hand, with e^epsilon = 3: what y adds to delta is 1/4 of the empty set, and all of the other one."""
    none, first, second, both = frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})
    laws = [{none: 1.0}, {none: 0.2, first: 0.8}, {none: 0.45, second: 0.45, both: 0.1}]
    bound = suppression_bound("a", 2, lambda database: laws[len(database)], math.log(3), 0.01)
    assert math.exp(bound.epsilon) == pytest.approx(0.8 / (0.1 / 3))
    assert bound.delta == pytest.approx(0.01 * (0.2 * (1 / 3) / (1 + 1 / 3) + 0.8))


def test_the_general_theorem_is_its_formula_where_the_added_record_decides():
    """By hand, with e^epsilon = 3: both records are kept, and the nearest set of the smaller one is empty."""
    none, both = frozenset(), frozenset({0, 1})
    laws = [{none: 1.0}, {none: 1.0}, {none: 0.5, both: 0.5}]
    bound = suppression_bound("a", 2, lambda database: laws[len(database)], math.log(3), 0.01)
    assert math.exp(bound.epsilon) == pytest.approx(0.5 + 0.5 * 3**2)
    assert bound.delta == pytest.approx(0.01 * 0.5 * (1 + 3))


def test_the_general_theorem_is_its_formula_where_records_that_stay_are_lost():
    """By hand, with e^epsilon = 3: of two records both or none are kept, and of three none."""
    none, first, both = frozenset(), frozenset({0}), frozenset({0, 1})
    laws = [{none: 1.0}, {none: 0.5, first: 0.5}, {none: 0.5, both: 0.5}, {none: 1.0}]
    bound = suppression_bound("a", 3, lambda database: laws[len(database)], math.log(3), 0.01)
    assert math.exp(bound.epsilon) == pytest.approx(0.5 + 0.5 * 3**2)
    assert bound.delta == pytest.approx(0.01 * 0.5 * (1 + 3))


def test_suppressing_what_is_told_apart_costs_more_than_the_mechanism():
    """A suppression that keeps all or nothing, by whether a record is there: privacy is lost, not gained."""
    law = independent(lambda database: [0.99 if "b" in database else 0.01] * len(database))
    assert suppression_bound("ab", 3, law, 0.1).epsilon > 1


def test_bad_universes_laws_and_losses_are_refused():
    def one_output(database):
        return {0: 1.0}

    for universe in ("", "aa"):
        with pytest.raises(ParameterError, match="universe"):
            list(databases(universe, 2))
    for size in (-1, 1.5, True, "2", None):
        with pytest.raises(ParameterError, match="size"):
            list(databases("ab", size))
        with pytest.raises(ParameterError, match="size"):
            suppression_bound("ab", size, poisson(0.5), 1)
    with pytest.raises(ParameterError, match="neighbors"):
        list(neighbor_pairs("ab", 2, "replace_two"))
    with pytest.raises(ParameterError, match="count"):
        without_replacement(-1)
    for chances in ([0.5], [0.5, 1.5], [0.5, math.nan]):
        with pytest.raises(ParameterError, match="keep"):
            independent(lambda database, chances=chances: chances)(("a", "b"))
    for law in ({frozenset(): 0.9}, {frozenset(): 1.5, frozenset({0}): -0.5}, {frozenset(): math.nan}):
        with pytest.raises(ParameterError, match="suppression"):
            output_law(("a",), lambda database, law=law: law, one_output)
        with pytest.raises(ParameterError, match="suppression"):
            suppression_bound("a", 1, lambda database, law=law: law, 1)
    with pytest.raises(ParameterError, match="mechanism"):
        output_law(("a",), poisson(0.5), lambda database: {0: 0.9})
    for epsilon in (-1, 701, math.nan, math.inf, "much", True):
        with pytest.raises(ParameterError, match="epsilon"):
            hockey_stick({0: 1.0}, {0: 1.0}, epsilon)
    for epsilon in (0, -1, 300, math.nan, math.inf, "much", True):
        with pytest.raises(ParameterError, match="epsilon"):
            suppression_bound("ab", 3, poisson(0.5), epsilon)
    for delta in (-0.1, 1, math.nan, "small", False):
        with pytest.raises(ParameterError, match="delta"):
            suppression_bound("ab", 3, poisson(0.5), 1, delta)
        with pytest.raises(ParameterError, match="delta"):
            least_epsilon({0: 1.0}, {0: 1.0}, delta)


@pytest.mark.parametrize("enumerated", [databases, neighbor_pairs])
def test_arguments_are_checked_when_databases_are_asked_for(enumerated):
    """And not when the first one is taken, from inside of the package."""
    for universe, size in (("", 1), ("aa", 1), ("ab", -1), ("ab", "1"), (3, 1)):
        with pytest.raises(ParameterError):
            enumerated(universe, size)


@pytest.mark.parametrize(
    "law",
    [
        independent(lambda database: [0.3] * len(database)),
        independent(lambda database: [1 / (1 + len(set(database)))] * len(database)),
        independent(lambda database: [0.2 + 0.1 * ord(record) % 0.7 for record in database]),
        without_replacement(2),
    ],
)
def test_the_floor_is_the_loss_of_a_mechanism_that_tells_one_record(law):
    """By enumeration, with the mechanism of the proof of Proposition B.8 for each record."""
    epsilon, delta = 0.8, 0.02
    loud, quiet = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    floor = suppression_floor("abc", 3, law, epsilon, delta)
    losses = []
    for record in "abc":

        def tells(database, record=record):
            return {0: loud, 1: quiet} if record in database else {0: quiet, 1: loud}

        pairs = [pair for pair in neighbor_pairs("abc", 3) if pair[1][-1] == record and record not in pair[0]]
        for pair in pairs:
            first, second = (output_law(database, law, tells) for database in pair)
            losses += [least_epsilon(first, second, floor.delta), least_epsilon(second, first, floor.delta)]
    assert max(losses) == pytest.approx(floor.epsilon, rel=1e-12)
    bound = suppression_bound("abc", 3, law, epsilon, delta)
    assert floor.epsilon <= bound.epsilon + 1e-12
    assert floor.delta <= bound.delta + 1e-12


def test_a_record_that_is_there_twice_does_not_raise_the_floor():
    """One of two copies is kept with probability 3/4, which would put the floor above the bound."""
    half = independent(lambda database: [0.5] * len(database))
    floor = suppression_floor("a", 2, half, epsilon=1)
    assert floor.epsilon == pytest.approx(suppression_bound("a", 2, half, epsilon=1).epsilon, rel=1e-12)
    assert floor.epsilon == pytest.approx(math.log(1 + (math.e - 1) / 2), rel=1e-12)


@pytest.mark.parametrize(("m", "M"), [(0.1, 0.4), (0.5, 0.9)])
def test_outlier_suppression_amplifies_no_more_than_sampling_at_one_minus_m(m, M):
    """Corollary B.13: a record alone, or among copies, is suppressed with probability m."""
    universe = [0, 4, 10]
    law = independent(
        lambda database: (
            keep_probabilities(outlier_scores(list(database), bounds=(0, 10)), m, M) if database else []
        )
    )
    floor = suppression_floor(universe, 3, law, epsilon=0.7)
    assert floor.epsilon == pytest.approx(math.log(1 + (1 - m) * math.expm1(0.7)), rel=1e-12)
    assert floor.epsilon < suppression_bound(universe, 3, law, epsilon=0.7).epsilon


def test_floors_refuse_what_cannot_be_computed():
    keeps = independent(lambda database: [0.5] * len(database))
    with pytest.raises(ParameterError, match="too large for floats"):
        suppression_floor("a", 1, keeps, epsilon=701)
    with pytest.raises(ParameterError, match="epsilon"):
        suppression_floor("a", 1, keeps, epsilon=0)
    assert suppression_floor("a", 1, independent(lambda database: [0.0] * len(database)), 1) == (0, 0)
