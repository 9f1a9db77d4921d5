"""Searches for bounds: their grid, their scores by brute force, and the exact loss of every stage."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Column
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.gate.tasks import BoundSearches
from pdprivacy.core.mechanisms.exponential import Choosing
from pdprivacy.core.noise import source
from pdprivacy.core.noise.choice import pick
from pdprivacy.core.statistics import Scope
from pdprivacy.core.statistics.private_bounds import (
    MOST_PENALTY,
    STAGES,
    BoundSearch,
    Counted,
    WideGrid,
    octaves_of,
    penalty,
)
from pdprivacy.errors import DeclarationError
from tests.support.cases import each

FLOATS, WHOLE = Column("x", "float"), Column("x", "integer")
HARD = [0.0, -0.0, 5e-324, -1e-310, 0.5, 1.0, -4.0, 1e300, -1e300, math.inf, -math.inf]
"""Numbers that a grid, a distance or an octave could get wrong."""
HARD_WHOLE = [0, 1, -1, 2**16, 2**53 + 1, -(2**63), 2**63 - 1]


def search(column: Column = FLOATS, neighbors: Any = "add_remove", contribution: int = 1) -> BoundSearch:
    return BoundSearch(WideGrid(column), Scope(neighbors, None, contribution=contribution), Fraction(1))


def counted(values: Any, column: Column = FLOATS) -> Counted:
    """The records as the engine of pandas frames counts them."""
    dtype = "Int64" if column.kind == "integer" else np.float64
    own = search(column)
    return own.exact(own.read.on(PandasEngine(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))))


# ---------------------------------------------------------------- the grid


def test_candidates_are_as_near_as_their_digits_and_keep_the_order():
    grid, g = WideGrid(FLOATS), np.random.default_rng(0)
    numbers = np.sort(g.choice([-1, 1], 5000) * 2.0 ** g.uniform(-270, 297, 5000))
    steps = grid.steps(numbers)
    assert (np.abs(grid.values(steps) - numbers) <= np.abs(numbers) * 2.0**-17).all()
    assert (np.diff(steps) >= 0).all()
    assert [grid.value(step) for step in steps.tolist()] == grid.values(steps).tolist()
    assert (grid.steps(grid.values(steps)) == steps).all()


def test_hard_numbers_are_zero_themselves_or_the_largest():
    records = counted([*HARD, math.nan])
    assert WideGrid(FLOATS).values(records.steps).tolist() == [-(2.0**298), -4.0, 0.0, 0.5, 1.0, 2.0**298]
    assert records.counts.tolist() == [2, 1, 4, 1, 1, 2]


def test_whole_candidates_are_whole_and_all_of_them_up_to_two_bytes():
    grid = WideGrid(WHOLE)
    small = np.arange(-(2**16), 2**16 + 1)
    assert grid.values(grid.steps(small.astype(np.float64))).tolist() == small.tolist()
    g = np.random.default_rng(0)
    assert all(number.is_integer() for number in grid.values(g.integers(grid.low, grid.high, 5000)).tolist())
    assert grid.values(counted([*HARD_WHOLE, None], WHOLE).steps).tolist() == [
        -(2.0**62), -1, 0, 1, 2**16, 2**53, 2.0**62
    ]  # fmt: skip


def test_declared_bounds_limit_the_grid():
    grid = WideGrid(Column("x", "float", lower=-3, upper=1e200))
    assert (grid.lower, grid.upper) == (-3, 2.0**298)
    assert grid.values(np.array([grid.low, grid.high])).tolist() == [-3, 2.0**298]
    with pytest.raises(DeclarationError, match="must span"):
        WideGrid(Column("x", "float", lower=1e200))


def test_octaves_of_powers_of_two_and_their_neighbours():
    for power in (-280, -1, 0, 1, 52, 298):
        edge = 2.0**power
        around = np.array([np.nextafter(edge, 0), edge, np.nextafter(edge, math.inf)])
        assert octaves_of(around).tolist() == [power, power, power + 1]


def test_a_penalty_has_the_odds_it_stands_for_and_stays_in_range():
    assert math.exp(-penalty(math.log(8), 12.5) / 12.5) <= 1 / 8
    assert penalty(7.0, 1e90) == MOST_PENALTY


# ---------------------------------------------------------------- scores by brute force

TABLES = [
    [], [0.0], [5.0, 5.0, 5.0], [0.0] * 5 + [1.0, 2.0, 4.0], HARD, [-7.0, -3.0, 2.0, 1000.0],
    [1970.0, 1971.0, 1990.0, 2001.0] * 3,
]  # fmt: skip
"""Few records, equal ones, zeros, edges on powers of two, and all hard numbers."""


@each("values", TABLES)
def test_centers_are_scored_by_their_depth(values):
    own, records = search(), counted(values)
    options = own.options(records, 10.0)
    grid = own.grid
    cells = grid.steps(np.clip(np.array(values, np.float64), grid.lower, grid.upper))
    assert options.sizes[:-1].sum() == options.weights[:-1].sum() == grid.candidates
    assert (options.starts[-1], options.sizes[-1], options.weights[-1]) == (0, 1, grid.candidates)
    for start, size, score in zip(options.starts, options.sizes, options.scores, strict=True):
        for step in {start, start + size - 1} if size else ():
            assert score == min((cells <= step).sum(), (cells >= step).sum())


@each(("values", "center"), list(itertools.product(TABLES, [0.0, 5.0, -4.0, 1970.0, 2.0**-40])))
def test_spreads_and_reaches_are_scored_by_their_records(values, center):
    own, scale = search().after(int(WideGrid(FLOATS).steps(np.array([center]))[0])), 10.0
    assert own.center == center
    distances = np.abs(np.clip(np.array(values, np.float64), own.grid.lower, own.grid.upper) - center)
    distances[np.abs(values) < 2.0**-290] = abs(center)  # which the grid takes as 0
    below = 2.0 ** (math.frexp(center)[1] - 15) if center else 0.0
    apart = distances[distances > below]
    expected = math.frexp(center)[1] - 1 if abs(center) >= 2.0**-20 else 0
    options = own.options(counted(values), scale)
    assert 2.0 ** options.starts[0] >= below
    for power, score in zip(options.starts.tolist(), options.scores.tolist(), strict=True):
        depth = min((apart <= 2.0**power).sum(), (apart > 2.0 ** (power - 1)).sum())
        prior = math.ceil(math.log(2) * scale) * abs(power - expected) + 70 * (power != expected)
        assert score == depth - prior
    last = own.after(3)
    reaches = last.options(counted(values), scale)
    for power, score in zip(reaches.starts.tolist(), reaches.scores.tolist(), strict=True):
        assert score == -(apart > 2.0**power).sum() - math.ceil(math.log(8) * scale) * (power - 3)


# ---------------------------------------------------------------- the exact loss

UNIVERSE = [0.0, 1.0, -4.0, 1e300]
CENTERS, SPREADS = [0.0, 1.0, -4.0], [0, 2, 40]
LARGE = 400
"""An epsilon at which the likeliest candidates outweigh all others, however many these are."""


def states(neighbors: Any, contribution: int = 1) -> list[BoundSearch]:
    """A search before each stage, for several released centres and spreads."""
    first = search(FLOATS, neighbors, contribution)
    second = [first.after(int(first.grid.steps(np.array([center]))[0])) for center in CENTERS]
    return [first, *second, *(own.after(spread) for own in second for spread in SPREADS)]


def mechanism_of(own: BoundSearch) -> Any:
    """The mechanism of the stage that is next, where all stages together cost `LARGE`."""
    first = search(FLOATS, own.scope.neighbors, own.scope.contribution)
    task = BoundSearches((first,), Choosing(LARGE, mechanism="exponential"))
    return task.price(task.cost).mechanisms[list(STAGES).index(own.stage)]


def law(own: BoundSearch, values: Any, mechanism: Any) -> dict[int, float]:
    """The logarithm of the probability of each candidate; of a centre, of those at the ends of all runs."""
    grid = own.grid
    steps, counts = np.unique(
        grid.steps(np.clip(np.array(values, np.float64), grid.lower, grid.upper)), return_counts=True
    )
    options = own.options(Counted(steps, counts), mechanism.scale)
    weights = options.scores / mechanism.scale
    with np.errstate(divide="ignore"):
        total = np.logaddexp.reduce(weights + np.log(options.weights))
    if own.center is not None:
        return dict(zip(options.starts.tolist(), (weights - total).tolist(), strict=True))
    ends = grid.steps(np.clip(np.array(UNIVERSE), grid.lower, grid.upper))
    looked_at = sorted({grid.low, *ends.tolist(), *(ends[ends < grid.high] + 1).tolist()})
    runs = np.searchsorted(options.starts[:-1], looked_at, side="right") - 1
    logs = dict(zip(looked_at, (weights[runs] - total).tolist(), strict=True))
    logs[0] += math.log1p(grid.candidates)
    return logs


def neighbours(table: tuple[float, ...], neighbors: str, contribution: int) -> set[tuple[float, ...]]:
    """The tables with a unit more, all of whose records are equal, or with another record for one of them."""
    tables = [[*table, *[value] * contribution] for value in UNIVERSE]
    if neighbors == "replace_one":
        places = range(len(table))
        tables = [[*table[:at], *table[at + 1 :], value] for value in UNIVERSE for at in places]
    return {tuple(sorted(other, key=UNIVERSE.index)) for other in tables}


def worst_loss(own: BoundSearch, contribution: int = 1) -> float:
    """The largest loss of a stage between neighbours of up to four records, both ways."""
    mechanism = mechanism_of(own)
    laws = {
        table: law(own, table, mechanism)
        for size in range(5)
        for table in itertools.combinations_with_replacement(UNIVERSE, size)
    }
    return max(
        abs(laws[other][step] - log)
        for table, logs in laws.items()
        for other in neighbours(table, own.scope.neighbors, contribution) & laws.keys()
        for step, log in logs.items()
    )


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_no_stage_loses_more_than_its_share(neighbors):
    """The shares sum to 1, and the worst case of each stage comes near its own."""
    assert sum(STAGES.values()) == 1
    worst: dict[str, float] = dict.fromkeys(STAGES, 0.0)
    for own in states(neighbors):
        worst[own.stage] = max(worst[own.stage], worst_loss(own))
    for stage, share in STAGES.items():
        assert 0.8 * share * LARGE < worst[stage] <= share * LARGE * (1 + 1e-9), stage


def test_a_unit_of_three_equal_records_loses_no_more():
    for own in states("add_remove", contribution=3):
        assert 0 < worst_loss(own, contribution=3) <= STAGES[own.stage] * LARGE * (1 + 1e-9)


def test_the_noise_of_added_records_is_too_little_for_replaced_ones():
    own = search(FLOATS, "replace_one")
    mechanism = mechanism_of(search(FLOATS, "add_remove"))
    before, after = (
        law(own, table, mechanism) for table in ([-4.0, -4.0, 1.0, 1.0], [-4.0, 1.0, 1.0, 1e300])
    )
    assert max(abs(after[step] - log) for step, log in before.items()) > 1.5 * STAGES["center"] * LARGE


# ---------------------------------------------------------------- draws


@each("values", [[], [3.0], [0.0] * 400, [5.0] * 400, HARD, [1e300] * 300, [5e-324] * 300])
def test_any_records_get_bounds_that_are_no_point(values):
    first = BoundSearches((search(),), Choosing(1, mechanism="exponential"))
    price, noise, records = first.price(first.cost), source(1), counted(values)
    task: BoundSearches | None = first
    outcomes: list[int] = []
    while task is not None:
        outcomes.append(task.draw(records, price, noise))
        task = task.after(outcomes[-1])
    ((lower, upper),) = first.bounds(outcomes)
    assert len(outcomes) == 3
    assert -(2.0**298) <= lower < upper <= 2.0**298


def test_a_draw_is_one_of_the_weights_of_the_scores():
    """`Weights` draws exactly (tested there); a stage passes it weights and scores."""
    own, records = search().after(0), counted([1.0] * 30 + [4.0] * 9)
    task = BoundSearches((own,), Choosing(1, mechanism="exponential"))
    price = task.price(task.cost)
    mechanism = price.mechanisms[1]
    assert mechanism.epsilon == Fraction(1, 5)
    options = own.options(records, mechanism.scale)
    rate = 1 / mechanism.steps
    for seed in range(20):
        noise = source(seed)
        expected = options.starts[pick(options.weights, -options.scores, rate, noise)]
        assert task.draw(records, price, source(seed)) == expected


def test_zero_is_drawn_by_its_prior_and_the_other_centers_uniformly():
    """Without records half of the centres are 0, and the others lie anywhere on the grid."""
    task = BoundSearches((search(),), Choosing(1, mechanism="exponential"))
    price, noise, records = task.price(task.cost), source(5), counted([])
    draws = np.array([task.draw(records, price, noise) for _ in range(2000)])
    assert abs((draws == 0).mean() - 0.5) < 0.05
    quarters = np.quantile(draws[draws != 0] / task.searches[0].grid.high, [0.25, 0.5, 0.75])
    assert np.abs(quarters - [-0.5, 0, 0.5]).max() < 0.1
