"""Quantiles: the score moves as little as is stated, and what is drawn is the exponential mechanism of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pdprivacy import Column
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.gate import tasks
from pdprivacy.core.mechanisms import ExponentialMechanism
from pdprivacy.core.noise import source
from pdprivacy.core.statistics import Quantile, RankGrid, Scope, share
from pdprivacy.errors import ParameterError
from tests.support.statistics import accepts, accepts_counts, accepts_share

ONE = Fraction(1)
POINTS = range(4)
SHARES = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)]
DIGITS = Column("x", "integer", True, 0, 3)


def scope(neighbors: str, rows: int | None = None, contribution: int = 1) -> Scope:
    return Scope(neighbors, rows, contribution=contribution)  # type: ignore[arg-type]


def asked(q: Fraction, end: Any, of: Scope, column: Column = DIGITS) -> Quantile:
    if end in ("below", "above"):
        return Quantile(RankGrid(column, "quantile"), q, of, ONE, side=end)
    return Quantile(RankGrid(column, "quantile"), q, of, ONE, end)


def scores(
    data: tuple[Any, ...], choice: Quantile, points: Any = POINTS, scale: float = 4.0
) -> list[Fraction]:
    """By the definition: minus the distance of the target to the ranks of each point."""
    records = [x for x in data if x is not None]
    if choice.end is None:
        sign = {"below": -1, "above": 1, None: 0}[choice.side]
        target = choice.q * len(records) + sign * choice.margin(scale)
    else:
        rank = choice.rank(scale)
        target = Fraction(rank if choice.end == "lower" else len(records) - rank)
    values = []
    for point in points:
        below, upto = sum(x < point for x in records), sum(x <= point for x in records)
        # as if any number of records lay below the lowest candidate, or above the highest
        below -= FARTHEST * (choice.side == "below" and point == choice.grid.lower)
        upto += FARTHEST * (choice.side == "above" and point == choice.grid.upper)
        values.append(-max(below - target, target - upto, Fraction(0)))
    return values


FARTHEST = 10**6

PARTS = 20
"""All scores are whole multiples of a twentieth."""


def score_table(choice: Quantile) -> Callable[[tuple[Any, ...]], Any]:
    """The scores of a table in twentieths, of each table once, in whatever order its records come."""

    @cache
    def of(data: tuple[Any, ...]) -> Any:
        exact = [score * PARTS for score in scores(data, choice)]
        assert all(score.denominator == 1 for score in exact)
        return np.array([int(score) for score in exact])

    return lambda data: of(tuple(sorted(data, key=str)))


QUANTILES = [(q, None) for q in SHARES] + [(Fraction(0), "lower"), (ONE, "upper")]
ENDS = [(SHARES[0], "below"), (SHARES[0], "above"), (SHARES[1], "below"), (SHARES[2], "above")]
ENDS += [(Fraction(0), "above"), (ONE, "below")]  # of a minimum and a maximum
CHOICES = [*QUANTILES, *ENDS]


def tables(most: int) -> list[tuple[Any, ...]]:
    """All tables of up to so many records, in any order one; None is null."""
    values = (*POINTS, None)
    combinations: list[tuple[Any, ...]] = []
    for size in range(most + 1):
        combinations += itertools.combinations_with_replacement(values, size)
    return combinations


def pairs(most: int, neighbors: str) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """All neighbours."""
    values = (*POINTS, None)
    if neighbors == "add_remove":
        return [(table, (*table, x)) for table in tables(most - 1) for x in values]
    return [((*table, x), (*table, y)) for table in tables(most - 1) for x in values for y in values]


# ---------------------------------------------------------------- sensitivity


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("q", "end"), CHOICES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_record_moves_no_score_further_than_is_stated(q, end, neighbors):
    choice = asked(q, end, scope(neighbors))
    score_of = score_table(choice)
    worst = max(
        int(np.abs(score_of(before) - score_of(after)).max()) for before, after in pairs(5, neighbors)
    )
    assert Fraction(worst, PARTS) == choice.sensitivity


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("q", "end"), CHOICES)
def test_a_unit_of_two_records_moves_no_score_further_than_is_stated(q, end):
    for neighbors in ("add_remove", "replace_one"):
        choice = asked(q, end, scope(neighbors, contribution=2))
        assert choice.sensitivity == 2 * asked(q, end, scope(neighbors)).sensitivity
        score_of, most = score_table(choice), 0
        for table in tables(3):
            for gone in tables(2) if neighbors == "replace_one" else [()]:
                before = score_of((*table, *gone))
                for come in tables(2):
                    most = max(most, int(np.abs(before - score_of((*table, *come))).max()))
        worst = Fraction(most, PARTS)
        assert worst <= choice.sensitivity
        assert worst > choice.sensitivity / 2


def distribution(data: tuple[Any, ...], choice: Quantile, mechanism: ExponentialMechanism) -> Any:
    """The probability of each point, as the library reads, groups and weighs them."""
    engine = PandasEngine(pd.DataFrame({"x": pd.array(list(data), dtype="Int64")}))
    runs, others, _, _ = choice.runs_near_target(choice.read.on(engine), mechanism.scale, 10**6)
    assert others == 0
    weights = mechanism._weights(runs.lengths, runs.deficits, choice.parts).estimates()
    probabilities = np.zeros(choice.candidates)
    for start, length, weight in zip(runs.starts, runs.lengths, weights, strict=True):
        at = int(start) - choice.grid.low
        probabilities[at : at + int(length)] = weight / max(int(length), 1)
    return probabilities / probabilities.sum()


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("q", "end"), CHOICES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_quantile_loses_no_more_than_is_stated(q, end, neighbors):
    choice = asked(q, end, scope(neighbors))
    mechanism = ExponentialMechanism(3, choice.sensitivity)  # so that the rank of an end is within the table
    known: dict[Any, Any] = {}

    def logs(data: tuple[Any, ...]) -> Any:
        key = tuple(sorted(data, key=str))
        if key not in known:
            known[key] = np.log(distribution(data, choice, mechanism))
        return known[key]

    worst = max(np.abs(logs(before) - logs(after)).max() for before, after in pairs(5, neighbors))
    assert 0.3 < worst <= 3 * (1 + 1e-9)


WIDE = Column("x", "integer", False, 0, 10**9)
PLACES = (0, 1, 2, 3, 4, 10**9 - 3, 10**9 - 2, 10**9 - 1, 10**9)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("q", "end"), CHOICES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_long_stretches_make_a_quantile_lose_nearly_all_that_is_stated(q, end, neighbors):
    """A long run far from the target outweighs it, on either side of the record."""
    choice = asked(q, end, scope(neighbors), WIDE)
    mechanism = ExponentialMechanism(2, choice.sensitivity)
    known: dict[Any, Any] = {}

    def logs(data: tuple[int, ...]) -> Any:
        """Return the log probabilities of one number of each stretch between places."""
        key = tuple(sorted(data))
        if key not in known:
            engine = PandasEngine(pd.DataFrame({"x": np.array(key, np.int64)}))
            runs, _, _, _ = choice.runs_near_target(choice.read.on(engine), mechanism.scale, 10**6)
            weights = mechanism._weights(runs.lengths, runs.deficits, choice.parts).estimates()
            best = runs.deficits[runs.lengths > 0].min()
            points = np.array([*PLACES, 10**6]) + choice.grid.low
            at = np.searchsorted(runs.starts, points, side="right") - 1
            at = np.array([index - (runs.lengths[index] == 0) for index in at])
            scaled = (runs.deficits[at] - best) / choice.parts / mechanism.scale
            known[key] = -scaled - np.log(weights.sum())
        return known[key]

    worst = 0.0
    for first, last in itertools.product((0, 1, 10, 20, 40, 80), repeat=2):
        base = (2,) * first + (10**9 - 2,) * last
        for x in PLACES:
            others = [()] if neighbors == "add_remove" else [(y,) for y in PLACES]
            for other in others:
                worst = max(worst, float(np.abs(logs((*base, x)) - logs((*base, *other))).max()))
    # the margin of an end is more than many of these tables hold
    assert (0.4 if choice.side else 0.9) * 2 < worst <= 2 * (1 + 1e-9)


# ---------------------------------------------------------------- what is drawn


@given(
    st.lists(st.integers(0, 12) | st.none(), max_size=40),
    st.sampled_from(CHOICES),
    st.integers(0, 12),
    st.integers(0, 3),
)
def test_runs_have_the_scores_of_their_points(data, choice, reach, low):
    """Whatever was looked at first: each point once, with its score, and the others beyond."""
    column = Column("x", "integer", True, -low, 14)
    quantile = asked(*choice, scope("add_remove"), column)
    engine = PandasEngine(pd.DataFrame({"x": pd.array(data, dtype="Int64")}))
    near, others, least, rest = quantile.runs_near_target(quantile.read.on(engine), 0.5, reach)
    together = near.followed_by(rest()) if others else near
    points = range(-low, 15)
    expected = np.array([float(score) for score in scores(tuple(data), quantile, points, 0.5)])
    actual = np.full(len(points), np.nan)
    for start, length, deficit in zip(together.starts, together.lengths, together.deficits, strict=True):
        at = int(start) - quantile.grid.low
        assert np.isnan(actual[at : at + int(length)]).all()
        actual[at : at + int(length)] = -deficit / quantile.parts
    # a rank beyond all records is the same for all points but for a number
    np.testing.assert_allclose(actual - actual.max(), expected - expected.max(), atol=1e-12)
    assert int(near.lengths.sum()) + others == quantile.candidates
    if others:
        assert rest().deficits[rest().lengths > 0].min() >= least
        assert least >= near.deficits[near.lengths > 0].min()


@given(
    st.lists(st.floats(-5, 20) | st.just(float("nan")), max_size=60), st.integers(-5, 70), st.integers(0, 30)
)
def test_windows_hold_their_records(data, first, width):
    column = Column("x", "float", True, 0, 10.0)
    grid = RankGrid(column, "quantile")
    ranks = PandasEngine(pd.DataFrame({"x": np.array(data, dtype=float)})).ranks(grid)
    records = np.clip(np.array([x for x in data if x == x]), 0, 10)
    steps = np.sort(grid.steps(records))
    assert ranks.rows == len(steps)
    window = ranks.between(first, first + width)
    inside = steps[(steps >= window.low) & (steps <= window.high)]
    assert np.repeat(window.values, window.counts).tolist() == inside.tolist()
    assert window.below == (steps < window.low).sum() <= max(first, 0)
    assert window.low == grid.low or window.below > 0 or first > 0
    assert window.high == grid.high or (steps <= window.high).sum() >= min(first + width, len(steps))


@pytest.mark.full
@pytest.mark.parametrize("hardly", [100 * math.log(2), -math.log(10)])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_draws_have_the_distribution_of_the_definition(hardly, neighbors, monkeypatch):
    """Ties, nulls, and with a reach of nothing the points left out, which are drawn all the same."""
    monkeypatch.setattr(tasks, "HARDLY", hardly)
    data = [2] * 3 + [3] * 2 + [5] * 4 + [9] * 2 + [None] * 4
    column = Column("x", "integer", True, 0, 9)
    engine = PandasEngine(pd.DataFrame({"x": pd.array(data, dtype="Int64")}))
    for q, end in CHOICES:
        choice = asked(q, end, scope(neighbors), column)
        mechanism = ExponentialMechanism(1, choice.sensitivity)
        exponents = [
            float(score) / mechanism.scale
            for score in scores(tuple(data), choice, range(10), mechanism.scale)
        ]
        expected = np.exp(np.array(exponents) - max(exponents))
        bits = source(8)
        drawn = [
            step
            for _ in range(100)
            for step in tasks._ranked(choice, mechanism, choice.read.on(engine), 30, bits)
        ]
        counts = np.bincount([int(choice.value(step)) for step in drawn], minlength=10)
        if expected.max() > 0.99 * expected.sum():  # nearly always an end of the range
            assert accepts_share(int(counts[expected.argmax()]), len(drawn), expected.max() / expected.sum())
        else:
            assert accepts_counts(counts, expected)


def test_only_what_is_near_is_sorted():
    data = np.random.default_rng(1).uniform(0, 100, 200_000)
    choice = asked(Fraction(1, 2), None, scope("add_remove"), Column("x", "float", False, 0, 100.0))
    ranks = choice.read.on(PandasEngine(pd.DataFrame({"x": data})))
    mechanism = ExponentialMechanism(1, choice.sensitivity)
    near, others, least, _ = choice.runs_near_target(ranks, mechanism.scale, 200)
    assert len(near.starts) < 3000
    assert others > 0.9 * choice.candidates
    assert least >= 200 * choice.parts


def test_a_column_is_sorted_once_for_all_of_its_quantiles(monkeypatch):
    data = np.random.default_rng(1).uniform(0, 100, 20_000)
    grid = RankGrid(Column("x", "float", False, 0, 100.0), "quantile")
    engine = PandasEngine(pd.DataFrame({"x": data}))
    windows = [(0, 20_000), (100, 19_000), (5_000, 5_100), (-5, 3), (19_990, 20_003)] * 4
    alone = [engine.ranks(grid).between(*window) for window in windows]
    sizes = []
    plain = np.sort

    def sort(array: Any, *args: Any, **options: Any) -> Any:
        sizes.append(len(array))
        return plain(array, *args, **options)

    monkeypatch.setattr(np, "sort", sort)
    for order in (1, -1):
        ranks, sizes[:] = engine.ranks(grid), []
        for window, single in list(zip(windows, alone, strict=True))[::order]:
            other = ranks.between(*window)
            assert (other.low, other.high, other.below) == (single.low, single.high, single.below)
            assert np.array_equal(other.values, single.values)
            assert np.array_equal(other.counts, single.counts)
        assert sum(sizes) <= 2 * len(data)


@pytest.mark.parametrize("data", [[], [np.nan], [4.0], [np.nan, 4.0, np.nan]])
def test_hardly_any_records_are_enough(data):
    column = Column("x", "float", True, 0, 10.0)
    engine = PandasEngine(pd.DataFrame({"x": np.array(data, dtype=float)}))
    for q, end in CHOICES:
        choice = asked(q, end, scope("add_remove"), column)
        mechanism = ExponentialMechanism(1, choice.sensitivity)
        drawn = [
            choice.value(step)
            for step in tasks._ranked(choice, mechanism, choice.read.on(engine), 400, source(2))
        ]
        assert min(drawn) >= 0
        assert max(drawn) <= 10
        if 4.0 not in data and choice.side is not None:  # the whole range
            end = choice.grid.lower if choice.side == "below" else choice.grid.upper
            assert np.mean(np.array(drawn) == end) > 0.9
        elif 4.0 not in data:  # nothing is known, so that any candidate is as good
            steps = choice.grid.steps(np.array(drawn))
            assert accepts((steps - choice.grid.low) / choice.candidates, stats.uniform.cdf)


# ---------------------------------------------------------------- shares and ranks


def test_a_share_is_the_nearest_simple_fraction():
    assert share(0.1) == Fraction(1, 10)
    assert share(1 / 3) == Fraction(1, 3)
    assert share("5/7") == Fraction(5, 7)
    assert share(0) == 0
    for q in (-0.1, 1.5, float("nan"), "half", None, True):
        with pytest.raises(ParameterError):
            share(q)  # type: ignore[arg-type]


def test_an_end_is_looked_for_where_the_empty_stretch_no_longer_counts():
    column = Column("x", "float", False, 0, 1.0)
    for epsilon in (0.01, 1, 50):
        choice = asked(Fraction(0), "lower", scope("add_remove"), column)
        mechanism = ExponentialMechanism(epsilon, 1)
        rank = choice.rank(mechanism.scale)
        assert choice.candidates * math.exp(-rank / mechanism.scale) < 0.05
        assert choice.candidates * math.exp(-(rank - 1) / mechanism.scale) >= 0.05 * (1 - 1e-9)
        assert mechanism.shortfall(choice.candidates) < rank
        assert not choice.rank_is_limited(mechanism.scale)
    public = asked(Fraction(0), "lower", scope("replace_one", 30), column)
    assert public.rank(10.0) == 15
    assert public.rank_is_limited(10.0)
    assert not public.rank_is_limited(0.1)
