"""Selection: the stated distributions are drawn, exactly, and lose no more privacy than is charged."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pdprivacy import Column
from pdprivacy.core.mechanisms import ExponentialMechanism, NoisyMax, PermuteAndFlip
from pdprivacy.core.mechanisms.exponential import Choosing
from pdprivacy.core.noise import source
from pdprivacy.core.noise.choice import Rest, Weights, pick
from pdprivacy.core.statistics import LabelScores, Scope
from pdprivacy.errors import ParameterError
from tests.support.statistics import accepts_counts, accepts_only, discrete

MECHANISMS = (ExponentialMechanism, PermuteAndFlip, NoisyMax)
TABLES = ([0, 1, 5], [3, 3, 3], [0, -10, 2, 2, 1], [7], [0, 0, 0, 0, 1, 1])
DRAWS = 20_000
# As many as tell an epsilon of 0.8 from one of 1, the more, the less it moves.
TELLING = dict(zip(map(tuple, TABLES), (4000, 4000, 10_000, 100, DRAWS), strict=True))


# ---------------------------------------------------------------- distributions


@pytest.mark.parametrize("scores", TABLES)
def test_the_exponential_mechanism_has_its_weights(scores):
    with localcontext() as context:
        context.prec = 40
        weights = [(Decimal(u) * Decimal("0.35")).exp() for u in scores]
        expected = [float(weight / sum(weights)) for weight in weights]
    actual = ExponentialMechanism("0.7", 1).probabilities(scores)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


@pytest.mark.parametrize("scores", TABLES)
def test_permute_and_flip_has_the_probabilities_of_its_algorithm(scores):
    """The first coin that shows in a random order, over all orders; as report noisy max, by simulation."""
    coins = [math.exp(0.35 * (u - max(scores))) for u in scores]
    expected = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        still = 1.0
        for candidate in order:
            expected[candidate] += still * coins[candidate] / len(orders)
            still *= 1 - coins[candidate]
    actual = PermuteAndFlip("0.7", 1).probabilities(scores)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    rng = np.random.default_rng(3)
    noisy = np.asarray(scores) + rng.exponential(1 / 0.35, (DRAWS, len(scores)))
    if len(scores) > 1:
        assert accepts_counts(np.bincount(noisy.argmax(axis=1), minlength=len(scores)), actual)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("scores", [table for table in TABLES if len(table) <= 3])
def test_noisy_max_takes_the_first_of_the_largest(scores):
    mechanism = NoisyMax(2, 1, monotone=True)  # of scale 1/2: beyond 20 there is nothing
    z = np.arange(-20, 21)
    mass = np.exp(-np.abs(z) * 2.0) * np.tanh(1.0)
    expected = np.zeros(len(scores))
    for noises in itertools.product(range(len(z)), repeat=len(scores)):
        noisy = [u + z[index] for u, index in zip(scores, noises, strict=True)]
        expected[noisy.index(max(noisy))] += math.prod(mass[index] for index in noises)
    np.testing.assert_allclose(mechanism.probabilities(scores), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 40, 3000])
def test_probabilities_of_many_candidates_sum_to_one(size):
    scores = np.random.default_rng(size).integers(0, 30, size)
    for mechanism in (ExponentialMechanism, PermuteAndFlip):
        assert mechanism(1, 1).probabilities(scores).sum() == pytest.approx(1, abs=1e-12)
    if size < 100:
        assert NoisyMax(1, 1).probabilities(scores).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("scores", TABLES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_draws_have_the_stated_distribution_and_no_other(mechanism, scores):
    bits = source(17)
    drawn = np.array([mechanism("0.8", 1).select(scores, bits) for _ in range(TELLING[tuple(scores)])])
    if len(scores) == 1:
        assert not drawn.any()
        return
    accepts_only(
        drawn,
        lambda factor: discrete(
            range(len(scores)), mechanism(f"{0.8 * factor:.1f}", 1).probabilities(scores)
        ),
        factors=(1, 1.25) if len(set(scores)) > 1 else (1,),
    )


def test_large_tables_are_quick_and_right():
    scores = np.zeros(100_000, np.int64)
    scores[777] = 60
    for mechanism in MECHANISMS:
        assert mechanism(2, 1, monotone=True).select(scores, source(0)) == 777


# ---------------------------------------------------------------- privacy


def moved(table: tuple[int, ...], neighbors: str) -> list[tuple[int, ...]]:
    """All tables with one record more, or with another one in place of one."""
    tables = []
    for index in range(len(table)):
        more = [*table]
        more[index] += 1
        if neighbors == "add_remove":
            tables.append(tuple(more))
            continue
        for other in range(len(table)):
            if other != index and table[other] > 0:
                tables.append(tuple(n - (at == other) for at, n in enumerate(more)))
    return tables


def worst_loss(mechanism: Any, neighbors: str, most: int = 12) -> float:
    """The largest loss, both ways, over all neighbours of all tables of three labels with these counts."""
    counts = (0, 1, 2, most - 1, most)
    cache = {}

    def logs(table: tuple[int, ...]) -> Any:
        if table not in cache:
            cache[table] = np.log(mechanism.probabilities(table))
        return cache[table]

    worst = 0.0
    for table in itertools.product(counts, repeat=3):
        for neighbor in moved(table, neighbors):
            worst = max(worst, float(np.abs(logs(table) - logs(neighbor)).max()))
    return worst


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("neighbors", "monotone"), [("add_remove", True), ("replace_one", False)])
def test_counts_lose_what_is_stated_and_nearly_all_of_it(mechanism, neighbors, monotone):
    worst = worst_loss(mechanism(1, 1, monotone=monotone), neighbors)
    assert 0.85 < worst <= 1 + 1e-9


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_factor_of_monotone_scores_is_for_them_alone(mechanism):
    assert worst_loss(mechanism(1, 1, monotone=True), "replace_one") > 1.6
    assert worst_loss(mechanism(1, 1), "add_remove") < 0.6  # twice the noise that is needed


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_unit_of_two_records_loses_what_is_stated(mechanism, neighbors):
    """Both records anywhere; the sensitivity is that of the declared contribution."""
    column = Column("x", "integer", False, 0, 2)
    choice = LabelScores(column, Scope(neighbors, None, contribution=2), "mode", Fraction(1))
    stated = mechanism(1, choice.sensitivity, choice.monotone)
    known: dict[Any, Any] = {}

    def logs(table: tuple[int, ...]) -> Any:
        if table not in known:
            known[table] = np.log(stated.probabilities(table))
        return known[table]

    worst = 0.0
    for table in itertools.product((0, 2, 15), repeat=3):
        for once in moved(table, neighbors):
            for twice in moved(once, neighbors):
                worst = max(worst, float(np.abs(logs(table) - logs(twice)).max()))
    assert 0.85 < worst <= 1 + 1e-9


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scores_that_move_either_way_lose_what_is_stated(mechanism):
    """Every move of three scores by at most two, up and down."""
    stated = mechanism(1, 2)
    worst = 0.0
    for scores in itertools.product((0, 3, 9), repeat=2):
        before = np.log(stated.probabilities([0, *scores]))
        for step in itertools.product((-2, 0, 2), repeat=3):
            after = np.log(stated.probabilities(np.array([0, *scores]) + step))
            worst = max(worst, float(np.abs(before - after).max()))
    assert 0.85 < worst <= 1 + 1e-9


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("scores", TABLES)
def test_the_score_is_seldom_further_below_the_best_than_stated(mechanism, scores):
    stated = mechanism("0.5", 1)
    below = max(scores) - np.asarray(scores)
    for level in (0.5, 0.95, 0.999):
        beyond = below > stated.shortfall(len(scores), level)
        assert stated.probabilities(scores)[beyond].sum() <= 1 - level


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
def test_selections_in_a_row_share_the_loss_of_one(kind):
    whole = kind("0.9", 2, monotone=True)
    each = whole.times(3)
    assert each == kind("0.3", 2, monotone=True)
    assert each.scale == pytest.approx(3 * whole.scale, rel=1e-12)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "make",
    [
        lambda: ExponentialMechanism(0, 1),
        lambda: PermuteAndFlip(1, -1),
        lambda: ExponentialMechanism(1, 1, monotone="yes"),
        lambda: NoisyMax(1, "1/2"),
        lambda: NoisyMax(1, 1, monotone=1),
        lambda: Weights(np.array([1]), np.array([5]), Fraction(1), Rest(1, 4, list)),
        lambda: ExponentialMechanism(Fraction(1, 10**200), 1),
        lambda: PermuteAndFlip(1, 1).select([], source(0)),
        lambda: PermuteAndFlip(1, 1).select([0.5], source(0)),
        lambda: NoisyMax(1, 1).select([2**62], source(0)),
        lambda: pick(np.array([0, 0]), np.array([0, 0]), Fraction(1), source(0)),
        lambda: pick(np.array([-1, 2]), np.array([0, 0]), Fraction(1), source(0)),
        lambda: pick(np.array([1.0]), np.array([0.0]), Fraction(1), source(0)),
        lambda: pick(np.array([1]), np.array([0]), Fraction(0), source(0)),
        lambda: Choosing(1, mechanism="best"),
        lambda: Choosing(1, mechanism="exponential", noise="laplace"),
        lambda: Choosing(1, mechanism="noisy_max", noise="gumbel"),
        lambda: Choosing(1, mechanism="noisy_max", noise="gaussian"),
        lambda: Choosing(1, "1e-6", mechanism="exponential"),
        lambda: Choosing(1, releases=0),
        lambda: Choosing(1, releases=True),
        lambda: Choosing(1, calibration="analytic"),
        lambda: Choosing(1, mechanism="noisy_max", calibration="published"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make):
    with pytest.raises(ParameterError):
        make()
