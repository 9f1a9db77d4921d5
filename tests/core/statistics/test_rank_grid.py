"""Candidates of quantiles: whole numbers, or floats of so many digits, in order and near enough."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.mechanisms import ExponentialMechanism
from pdprivacy.core.statistics import Quantile, RankGrid, Scope
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import DeclarationError
from tests.support.engine_frames import ENGINES, frame_of

MOST = 2**63 - 1


def of_float(lower: float, upper: float) -> RankGrid:
    return RankGrid(Column("x", "float", True, lower, upper), "quantile")


def of_integer(lower: int, upper: int) -> RankGrid:
    return RankGrid(Column("x", "integer", True, lower, upper), "quantile")


# ---------------------------------------------------------------- whole numbers


@pytest.mark.parametrize(
    ("lower", "upper"), [(-3, 17), (5, 5), (0, 1), (0, 2**33), (-(10**12), 10**12), (2**52 - 5, 2**53)]
)
def test_every_whole_number_is_a_candidate(lower, upper):
    grid = of_integer(lower, upper)
    assert grid.candidates == upper - lower + 1
    some = np.unique(np.linspace(lower, upper, 999).astype(np.int64))
    steps = grid.steps(some.astype(np.float64))
    assert (steps - grid.low).tolist() == (some - lower).tolist()
    assert [grid.value(step) for step in steps.tolist()] == some.tolist()
    assert grid.relative_step == 0 or upper == 2**53
    assert grid.step == 1


def test_truth_values_are_two_candidates():
    grid = RankGrid(Column("x", "boolean"), "quantile")
    assert (grid.low, grid.high, grid.value(0), grid.value(1)) == (0, 1, 0.0, 1.0)


def test_beyond_two_to_the_53_every_double_is_a_candidate():
    grid = of_integer(-MOST - 1, MOST)
    values = [2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**53 + 4, 2.0**60, math.nextafter(2.0**60, 2.0**61)]
    steps = grid.steps(np.array(values)).tolist()
    assert steps == [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 7 * 2**52, 2**53 + 7 * 2**52 + 1]
    assert [grid.value(step) for step in steps] == values
    assert grid.steps(-np.array(values)).tolist() == [-step for step in steps]
    # 10 octaves of 2**52 doubles on both sides
    assert grid.candidates == 2 * (2**53 + 10 * 2**52) + 1
    assert grid.step == 2**10


# ---------------------------------------------------------------- floats


def exact_step(value: float, grid: RankGrid) -> Fraction:
    """The place of a number on the grid by the definition: where the steps below it end, in exact numbers."""
    size, smallest, steps = Fraction(abs(value)), Fraction(grid.smallest), 2**grid.digits
    octave = 0
    while size >= smallest * 2 ** (octave + 1):
        octave += 1
    if size < smallest:
        position = size / smallest * steps
    else:
        position = steps * (1 + octave) + (size / (smallest * 2**octave) - 1) * steps
    return position if value >= 0 else -position


BOUNDS = [
    (0.0, 1.0), (0.0, 1000.0), (-1e9, 1e-3), (7.0, 7.0), (0.1, 0.7), (16.0, 65.0), (-3e80, 3e80),
    (0.0, 3e-80), (1e9, 1e9 + 1e-3), (-0.1, 9.99), (-50.0, -2.0), (0.0, 1e12), (1.6e9, 1.7e9), (-1e-12, 1e12),
]  # fmt: skip


@pytest.mark.parametrize("bounds", BOUNDS)
@given(data=st.data())
def test_numbers_go_to_the_nearest_candidate(bounds, data):
    grid = of_float(*bounds)
    numbers = st.floats(*bounds) | st.floats(0, 30).map(
        lambda octave: min(max(bounds[1] * 2.0**-octave, bounds[0]), bounds[1])
    )
    value = data.draw(numbers)
    (step,) = grid.steps(np.array([value])).tolist()
    # half a step, and what doubles of 53 digits add
    assert abs(step - exact_step(value, grid)) <= Fraction(1, 2) + Fraction(2**grid.digits, 2**50)
    near = grid.value(step)
    assert abs(near - value) <= max(abs(value), grid.smallest) * 2.0**-grid.digits
    assert abs(near - value) <= grid.step
    other = data.draw(numbers)
    assert (grid.steps(np.array([other]))[0] >= step) == (other >= value) or near == grid.value(
        grid.steps(np.array([other]))[0]
    )


@pytest.mark.parametrize("bounds", BOUNDS)
def test_candidates_are_numbered_in_order_without_a_gap(bounds):
    grid = of_float(*bounds)
    rng = np.random.default_rng(1)
    for start in [grid.low, grid.high - 20, *rng.integers(grid.low, max(grid.high - 20, grid.low + 1), 30)]:
        steps = np.arange(max(int(start), grid.low), min(int(start) + 20, grid.high) + 1)
        values = [grid.value(int(step)) for step in steps]
        assert grid.steps(np.array(values)).tolist() == steps.tolist()
        inner = np.diff(values)
        assert (inner > 0).all()
        sizes = np.maximum(np.abs(values[1:]), grid.smallest)
        assert (inner <= sizes * 2.0**-grid.digits * (1 + 2**-20)).all()


@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_grid_is_as_fine_as_is_stated(bounds):
    """At most 2**-30 of the range between the bounds if doubles can, and at most 2**36 candidates."""
    grid = of_float(*bounds)
    width = bounds[1] - bounds[0]
    assert grid.step <= width * 2.0**-29 or grid.digits == 52
    assert grid.digits >= 29
    assert grid.candidates <= 2**36
    assert grid.smallest <= max(map(abs, bounds)) * 2.0**-30
    assert grid.relative_step == 2.0**-grid.digits
    top = grid.high if bounds[1] >= -bounds[0] else -grid.low
    sign = 1 if bounds[1] >= -bounds[0] else -1
    if grid.candidates > 1:
        # the next candidate to the larger bound is nearer than the stated step
        assert abs(grid.value(sign * top) - grid.value(sign * (top - 1))) <= grid.step


def test_numbers_of_few_digits_are_their_own_candidates():
    grid = of_float(0.0, 1e12)
    for value in (0.0, 0.25, 5.0, 100.0, 300.0, 2.0**33, 123456789.0, 10.0**9):
        assert grid.value(int(grid.steps(np.array([value]))[0])) == value


def test_bounds_beyond_doubles_are_refused():
    with pytest.raises(DeclarationError, match="must span between 1e-90 and 1e90"):
        of_float(0.0, 1e95)


# ---------------------------------------------------------------- the stated error in rank

HALF = Fraction(1, 2)
TWO = [100] * 500 + [300] * 500
FIVES = [5] * 999
LARGE = [2**62 + 2**10 * k for k in range(999)]
TIMES = Column("x", "integer", lower=0, upper=2**52, timeline=Timeline(0, "us"))
WIDE: dict[str, tuple[Column, list[Any]]] = {
    "two values below 10**12": (Column("x", "integer", lower=0, upper=10**12), TWO),
    "fives below 2**33": (Column("x", "integer", lower=0, upper=2**33), FIVES),
    "between the ends of 64 bits": (Column("x", "integer", lower=-MOST - 1, upper=MOST), TWO),
    "near the end of 64 bits": (Column("x", "integer", lower=0, upper=MOST), LARGE),
    "negative": (Column("x", "integer", lower=-(10**15), upper=10), [-x for x in TWO]),
    "dates": (TIMES, [1_000_000 * k for k in range(999)]),
    "floats below 10**12": (Column("x", "float", lower=0, upper=1e12), [0.01 * k for k in range(999)]),
    "one float below 10**12": (Column("x", "float", lower=0, upper=1e12), [0.1] * 999),
    "floats of any sign": (Column("x", "float", lower=-1e9, upper=1e9), [k / 1000 - 0.3 for k in range(999)]),
}
CHOICES = [(HALF, None), (Fraction(9, 10), None), (Fraction(0), "lower"), (Fraction(1), "upper")]


def distance(data: Any, value: float, near: float, target: Fraction) -> Fraction:
    """How many ranks a number is off, where records within ``near`` of it are equal to it."""
    below, upto = int((data < value - near).sum()), int((data <= value + near).sum())
    return max(below - target, target - upto, Fraction(0))


@pytest.mark.full(keep=18)
@pytest.mark.parametrize("case", WIDE)
@pytest.mark.parametrize(("q", "end"), CHOICES)
@pytest.mark.parametrize("epsilon", [0.3, 5])
def test_the_rank_is_off_by_no_more_than_stated_under_wide_bounds(case, q, end, epsilon):
    """By the exact law of the selection: with at most 5 % probability it is off by more."""
    column, values = WIDE[case]
    data = np.array(values, np.int64 if column.kind == "integer" else np.float64)
    choice = Quantile(RankGrid(column, "quantile"), q, Scope("add_remove", None), Fraction(1), end)
    mechanism = ExponentialMechanism(epsilon, choice.sensitivity)
    ranks = choice.read.on(PandasEngine(pd.DataFrame({"x": data})))
    runs, others, _, _ = choice.runs_near_target(ranks, mechanism.scale, 10**6)
    assert others == 0
    weights = mechanism._weights(runs.lengths, runs.deficits, choice.parts).estimates()
    target = q * len(data)
    if end is not None:
        rank = choice.rank(mechanism.scale)
        target = Fraction(rank if end == "lower" else len(data) - rank)
        target = min(max(target, Fraction(0)), Fraction(len(data)))
    stated = mechanism._below_best(choice.candidates, 1, 0.95)
    wrong = 0.0
    for start, length, weight in zip(runs.starts.tolist(), runs.lengths.tolist(), weights, strict=True):
        if not length:
            continue
        off = Fraction(0)
        for number in {start, start + length - 1}:
            value = choice.value(number)
            step = max(abs(value), choice.grid.smallest) * choice.grid.relative_step
            off = max(off, distance(data, value, step / 2, target))
        wrong += weight if off > stated else 0.0
    assert wrong / weights.sum() <= 0.05


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("engine", ["pandas", *(engine for engine in ENGINES if engine != "Spark")])
def test_a_median_under_wide_bounds_is_one_of_the_records(engine):
    """Of 500 times 100 and 500 times 300, every number between the two is a median; of fives only five."""
    pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")
    table = pa.table(
        {"x": TWO, "five": [5] * 1000, "f": [0.05] * 1000, "w": [1] * 1000, "g": ["a", "b"] * 500}
    )
    domain = Domain(
        (
            Column("x", "integer", lower=0, upper=10**12),
            Column("five", "integer", lower=-(2**53), upper=2**53),
            Column("f", "float", lower=0, upper=1e15),
            Column("w", "integer", lower=0, upper=2),
            Column("g", "category", categories=("a", "b")),
        )
    )
    private = pdprivacy.protect(frame_of(engine, table), domain, epsilon=10**3)
    medians = private.dp.median(["x", "five", "f"], epsilon=3)
    by_group = private.dp.groupby("g").median(["x", "five", "f"], epsilon=6)
    weighted = private.dp.quantile(["x", "five", "f"], 0.5, weights="w", epsilon=6)
    low, high = (getattr(private.dp, name)(["x", "five", "f"], epsilon=30) for name in ("min", "max"))
    assert (low["x"], high["x"]) == (100, 300)
    for released in (medians, weighted, low, high, *(row for _, row in by_group.iterrows())):
        assert 100 <= released["x"] <= 300
        assert released["five"] == 5
        assert abs(released["f"] - 0.05) <= 1e15 * 2.0**-58
    error = medians.attrs["dp"]["error"]
    assert error["step"]["x"] == error["step"]["five"] == 1
    assert error["relative_step"] == {"x": 0.0, "five": 0.0, "f": 2.0**-30}
