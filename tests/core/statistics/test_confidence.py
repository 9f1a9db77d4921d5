"""Intervals hold the exact statistic as often as they state, also near the ends of its range.

The grid of `tests/support/coverage.py`, thinned out: a few points by default, all of its lines in the
full suite. Seeds are fixed, and the false-alarm rate is that of `tests.support.statistics`.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdprivacy
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.statistics.confidence import Noisy, Tail, of_ratio
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import BoundingWarning
from tests.support.coverage import CASES, coverage, grid
from tests.support.engine_frames import BESIDE_PANDAS, ON_NEWEST_PANDAS, each_engine, frame_of
from tests.support.statistics import accepts_share

CASE = {case.name: case for case in CASES}


def covers(share: float, draws: int) -> bool:
    """Whether intervals that hold 95 % hold that share of so many draws, or more."""
    return accepts_share(round(share * draws), draws, 0.95, "less")


@pytest.mark.parametrize(
    ("name", "rows", "neighbors", "bounding", "mechanism"),
    [
        pytest.param("std", 20, "add_remove", None, "gaussian", marks=pytest.mark.full),
        ("std", 1000, "replace_one", "truncated", "gaussian"),
        pytest.param("std", 20, "replace_one", None, "laplace", marks=pytest.mark.full),
        pytest.param("std", 20, "add_remove", "clamp", "gaussian", marks=pytest.mark.full),
        pytest.param("mean", 20, "add_remove", "truncated", "laplace", marks=pytest.mark.full),
        ("shares", 20, "add_remove", "truncated", "geometric"),
        ("crosstab, margins", 20, "add_remove", "truncated", "geometric"),
    ],
)
def test_intervals_cover_values_that_are_all_the_same(name, rows, neighbors, bounding, mechanism):
    draws = 60
    share, _ = coverage(CASE[name], (rows, "constant"), neighbors, bounding, mechanism, 1.0, draws)
    assert covers(share, draws)


@pytest.mark.full
@ON_NEWEST_PANDAS
@pytest.mark.parametrize("name", CASE)
def test_intervals_cover_over_the_grid(name):
    lines = grid(list(CASE).index(name), draws=100, seed=11)
    known = [line for line in lines if not math.isnan(line["coverage"])]
    assert len(known) == len(lines) or name == "corr"  # there is none with a column that is constant
    assert len(known) > len(lines) / 2
    assert not [line for line in known if not covers(line["coverage"], 100)]


TABLE = Domain((Column("i", "integer", lower=0, upper=9), Column("j", "integer", lower=0, upper=9)))


@pytest.fixture(scope="module")
def sparse() -> pd.DataFrame:
    """Fifty records in a hundred cells."""
    rng = np.random.default_rng(5)
    cells = pd.DataFrame({"i": rng.integers(1, 9, 50), "j": rng.integers(1, 9, 50)})
    return cells.dp.protect(TABLE, epsilon=10**6, delta=0.01)


@pytest.mark.parametrize("bounding", ["clamp", pytest.param("truncated", marks=pytest.mark.full)])
def test_totals_of_bounded_cells_hold_the_total(sparse, bounding):
    """The bias of a total is the sum of a hundred biases: of 60 totals at most a few may be off."""
    options = {"epsilon": 60, "margins": True, "bounding": bounding, "releases": 60, "rng": 3}
    ends = sparse.dp.crosstab("i", "j", **options).dp.interval().loc["All"]
    lower, upper = (ends[side].xs("All", level=-1).to_numpy() for side in ("lower", "upper"))
    assert covers(((lower <= 50) & (upper >= 50)).mean(), 60)


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
def test_sums_and_shares_of_bounded_cells_state_no_bias_and_say_why(sparse, bounding):
    with_sums = sparse.dp.crosstab("i", "j", epsilon=1, margins=True, bounding=bounding, rng=1)
    shares = sparse.dp.value_counts("i", epsilon=1, normalize=True, bounding=bounding, rng=1)
    for released, unknown in ((with_sums, np.s_[-1]), (shares, np.s_[:])):
        error = released.attrs["dp"]["error"]
        for field in ("bias", "rmse"):
            stated = np.broadcast_to(np.array(error[field], dtype=float), released.shape)
            assert np.isnan(stated[unknown]).all()
        assert "add up" in error["note"]
    cells, total = (np.array(with_sums.attrs["dp"]["error"]["worst_case"]["bias"])[at, at] for at in (0, -1))
    assert total == pytest.approx(100 * cells)


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
def test_a_bounded_table_warns_of_sums_before_it_is_charged(sparse, bounding):
    spent = sparse.dp.budget.spent
    with pytest.warns(BoundingWarning, match="biases add up") as caught:
        sparse.dp.plan.crosstab("i", "j", epsilon=1, bounding=bounding, rows=50)
    assert sparse.dp.budget.spent == spent
    assert caught
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse.dp.crosstab("i", "j", epsilon=1)
        sparse.dp.count(epsilon=1, bounding=bounding)


def test_a_deviation_is_as_far_off_as_the_root_of_its_variance(sparse):
    """Whatever the interval of the variance holds, that of the deviation holds the root of."""
    dp = sparse.dp
    variance = dp.var("i", epsilon=0.02, rng=8).dp.interval().iloc[0]
    deviation = dp.std("i", epsilon=0.02, rng=8).dp.interval().iloc[0]
    low, high = np.sqrt(np.maximum(variance[["lower", "upper"]].to_numpy(), 0))
    assert deviation["lower"] <= low + 1e-9
    assert deviation["upper"] >= min(high, deviation["released"] + 9 * np.sqrt(6)) - 1e-9


def test_an_interval_for_one_release_is_no_narrower_than_its_own(sparse):
    for mechanism, delta in (("laplace", 0), ("gaussian", "1e-6")):
        released = sparse.dp.mean(["i", "j"], epsilon=0.5, delta=delta, mechanism=mechanism, rng=4)
        combined, own = pdprivacy.combine(released, within=0), released.dp.interval()
        assert (combined["upper"] - combined["lower"] >= (own["upper"] - own["lower"]) * (1 - 1e-9)).all()


def test_the_interval_of_a_ratio_ends_where_noise_alone_explains_the_numbers_no_more():
    rng = np.random.default_rng(11)
    for _ in range(300):
        size = 10 ** rng.uniform(-1, 4)
        counts, width = rng.normal(size, 10 ** rng.uniform(-1, 3), 20), 10 ** rng.uniform(-2, 3)
        low, high = -width * rng.random(), width * rng.random()
        of_sum, of_count = 10 ** rng.uniform(-2, 4), 10 ** rng.uniform(-2, 3)
        sums = rng.uniform(1.3 * low, 1.3 * high, 20) * np.maximum(counts, 0) + rng.normal(0, of_sum, 20)
        tail, level = Tail(GeneralizedNormal.of(rng.choice([1.0, 2.0]), 1.0)), rng.choice([0.5, 0.95])
        ends = np.stack(of_ratio(level, Noisy(sums, of_sum, tail), Noisy(counts, of_count, tail), low, high))
        noise = tail.half(level, np.stack([np.full(ends.shape, of_sum), ends * of_count], axis=-1))
        excess = np.abs(sums - ends * counts) - noise
        inside = (ends > low) & (ends < high)
        assert (np.abs(excess) <= 1e-9 * (np.abs(sums) + noise))[inside & (counts > 0)].all()
        centre = np.clip(sums / np.where(counts > 0, counts, 1), low, high)
        assert (ends[0] <= centre).all()
        assert (centre <= ends[1]).all()
        known = np.array([[low], [high]]) == ends
        beyond = (centre == low) | (centre == high)
        assert ((excess <= 0) | ~known | beyond)[:, counts > 0].all()
        assert (ends[:, counts <= 0] == [[low], [high]]).all()


# ---------------------------------------------------------------- ends at what is possible

LIMITED = Domain(
    (
        Column("x", "float", lower=0, upper=5),
        Column("y", "float", lower=0, upper=5),
        Column("g", "category", categories=("a", "b")),
    )
)
AT_LIMITS = {
    "mean": (lambda dp, **noise: dp.mean("x", **noise), (0, 5)),
    "proportion": (lambda dp, **noise: dp.proportion("g", "a", **noise), (0, 1)),
    "corr": (lambda dp, **noise: dp.corr(["x", "y"], **noise), (-1, 1)),
}


def near_limits() -> pd.DataFrame:
    """A mean next to the upper bound, a proportion of 1 and a correlation of 1."""
    x = [4.99] * 250 + [0.01] * 10
    return pd.DataFrame({"x": x, "y": x, "g": "a"})


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("statistic", AT_LIMITS)
def test_intervals_end_at_public_limits_and_hold_as_often(statistic):
    frame = near_limits()
    release, (low, high) = AT_LIMITS[statistic]
    exact = {"mean": frame["x"].mean(), "proportion": 1.0, "corr": 1.0}[statistic]
    private = pdprivacy.protect(frame, LIMITED, epsilon=10**4)
    index = 1 if statistic == "corr" else 0
    cut = hits = known = 0
    for seed in range(100):
        released = release(private.dp, epsilon=2 if statistic == "corr" else 0.2, rng=seed)
        intervals, stored = released.dp.interval(), released.attrs["dp"]["error"]["plus_minus"]
        value, lower, upper = (
            intervals[name].to_numpy().flat[index] for name in ("released", "lower", "upper")
        )
        if np.isnan(value):  # a correlation of variances that are not positive
            assert np.isnan([lower, upper]).all()
            continue
        half = np.broadcast_to(stored, released.shape).flat[index]
        assert low <= lower <= upper <= high
        # no end is cut that held the statistic
        assert (lower <= exact <= upper) == (value - half <= exact <= value + half)
        known, hits = known + 1, hits + (lower <= exact <= upper)
        cut += value + half > high
    assert cut > 10
    assert known > 50
    assert covers(hits / known, known)


@pytest.mark.parametrize("engine", each_engine(BESIDE_PANDAS))
@pytest.mark.parametrize("statistic", AT_LIMITS)
def test_intervals_end_at_public_limits_on_every_engine(engine, statistic, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    release, (low, high) = AT_LIMITS[statistic]
    actual, expected = (
        release(pdprivacy.protect(frame, LIMITED, epsilon=1).dp, epsilon=0.05, rng=1).dp.interval()
        for frame in (frame_of(engine, near_limits()), near_limits())
    )
    pd.testing.assert_frame_equal(actual, expected)
    assert low <= actual["lower"].to_numpy().min() <= actual["upper"].to_numpy().max() <= high


@pytest.mark.full(keep=14)
@pytest.mark.parametrize("level", [0.83, 0.865, 0.88, 0.9, 0.907, 0.9075, 0.912, 0.94])
@pytest.mark.parametrize("order", [1, 1.05, 1.5, 2, 2.5, 4, 20])
def test_sums_of_two_noises_miss_at_most_as_often_as_stated(order, level):
    """By the integral of the density times the tail of the other term, with equal and other weights."""
    law = stats.gennorm(order)
    points = np.linspace(-1, 1, 40_001) * law.ppf(1 - 1e-9)
    density = law.pdf(points) * (points[1] - points[0])
    for weight in (1.0, 0.97, 0.7):
        half = float(Tail(GeneralizedNormal.of(order, 1.0)).half(level, law.std() * np.array([1.0, weight])))

        def missed(size, weight=weight):
            return float((density * (2 * law.sf((size - points) / weight))).sum())

        assert missed(half) <= 1 - level + 2e-7
        assert missed(0.9 * half) > 1 - level


def test_a_sum_of_two_laplace_noises_misses_by_its_closed_form():
    """The sum of two exceeds s with probability (1 + s / 2) exp(-s)."""
    for level in np.linspace(0.905, 0.91, 11).tolist():
        size = float(Tail(GeneralizedNormal.of(1, 1.0)).half(level, np.full(2, math.sqrt(2))))
        assert (1 + size / 2) * math.exp(-size) <= 1 - level
