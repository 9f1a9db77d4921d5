"""Quantiles in the order of their shares, and what `selection_answers` state of them."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy import frames as protection
from pdprivacy.errors import ParameterError
from pdprivacy.releases import quantile
from pdprivacy.releases.quantile_order import in_order
from tests.support.statistics import accepts_share

ROWS = 60
RNG = np.random.default_rng(3)
DOMAIN = Domain(
    (
        Column("x", "integer", lower=0, upper=99),
        Column("y", "float", lower=-5, upper=5),
        Column("w", "float", lower=0, upper=4),
        Column("g", "category", categories=("a", "b", "c")),
    )
)
FRAME = pd.DataFrame(
    {
        "x": RNG.integers(20, 80, ROWS),
        "y": RNG.uniform(-4, 4, ROWS),
        "w": RNG.uniform(0.1, 3.9, ROWS),
        "g": RNG.choice(["a", "b"], ROWS),  # and no record is in the last group
    }
)
QUARTILES = [0.25, 0.5, 0.75]


def protected(frame: Any = FRAME, **scope: Any) -> Any:
    return pdprivacy.protect(frame, DOMAIN, epsilon=10**9, **scope)


def rank_distance(values: Any, number: float, target: float) -> float:
    """Return the distance of a number to a rank: its own ranks are those of the records equal to it."""
    below, upto = sum(value < number for value in values), sum(value <= number for value in values)
    return max(below - target, target - upto, 0)


@cache
def choices_of(q: tuple[float, ...]) -> Any:
    """Return what a release of these quantiles selects."""
    return quantile(protection.find(protected()), "x", list(q), epsilon=1).task.choices


def arranged(q: Sequence[float], drawn: Sequence[int]) -> list[int]:
    """Return the numbers of a column in the order of ``q``."""
    return in_order(choices_of(tuple(q)), np.array(q), np.array([[step] for step in drawn])).ravel().tolist()


@pytest.mark.parametrize("values", [[1, 3, 5], [2, 2, 2, 4], [5, 5], [3]])
def test_no_order_is_farther_from_the_ranks_than_the_numbers_drawn(values):
    """All draws of three quantiles of small tables, by the definition of the distance."""
    targets = [q * len(values) for q in QUARTILES]
    for drawn in product(range(7), repeat=3):
        ordered = arranged(QUARTILES, drawn)
        assert sorted(drawn) == ordered
        before, after = (
            max(rank_distance(values, number, rank) for number, rank in zip(numbers, targets, strict=True))
            for numbers in (drawn, ordered)
        )
        assert after <= before


@given(
    values=st.lists(st.integers(0, 20), min_size=1, max_size=30),
    pairs=st.lists(st.tuples(st.floats(0.01, 0.99), st.integers(0, 20)), min_size=2, max_size=6),
)
@settings(deadline=None)
def test_the_farthest_rank_of_any_quantiles_does_not_grow(values, pairs):
    q, drawn = zip(*dict(pairs).items(), strict=True)
    ordered = arranged(q, drawn)
    by_share = [number for _, number in sorted(zip(q, ordered, strict=True))]
    assert by_share == sorted(drawn)
    before, after = (
        max(
            rank_distance(values, number, share * len(values))
            for share, number in zip(q, numbers, strict=True)
        )
        for numbers in (drawn, ordered)
    )
    assert after <= before + 1e-9


@pytest.mark.parametrize(
    ("q", "drawn", "ordered"),
    [
        ([0.5, 0.25, 0.75], [9, 8, 7], [8, 7, 9]),
        ([0, 0.25, 0.5, 1], [6, 7, 4, 5], [4, 4, 7, 7]),
        ([0, 1], [9, 3], [3, 9]),
        ([1, 0], [3, 9], [9, 3]),
        ([0, 0.5], [2, 4], [2, 4]),
    ],
)
def test_a_minimum_and_a_maximum_are_the_ends_and_move_no_quantile(q, drawn, ordered):
    assert arranged(q, drawn) == ordered


# ---------------------------------------------------------------- releases

DATES = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=50, tz="Europe/Berlin", unit="us")})
DAYS = pa.DataFrameSchema(
    {
        "day": pa.Column(
            DATES["day"].dtype,
            pa.Check.in_range(*pd.to_datetime(["2023-06-01", "2024-12-01"]).tz_localize("Europe/Berlin")),
            metadata={"dp": {}},
        )
    }
)
CALLS: dict[str, Any] = {
    "one column": lambda dp, **o: dp.quantile("x", QUARTILES, **o),
    "in another order": lambda dp, **o: dp.quantile(["x", "y"], [0.75, 0.25, 0.5], **o),
    "with the ends": lambda dp, **o: dp.quantile(["y", "x"], [0, 0.25, 0.5, 1], **o),
    "weighted": lambda dp, **o: dp.quantile("x", QUARTILES, weights="w", **o),
    "by group": lambda dp, **o: dp.groupby("g").quantile(["x", "y"], QUARTILES, **o),
    "with intervals": lambda dp, **o: dp.quantile(["x", "y"], QUARTILES, interval=True, **o),
    "dates": lambda _, **o: pdprivacy.protect(DATES, DAYS, epsilon=10**9).dp.quantile("day", QUARTILES, **o),
    "dates with intervals": lambda _, **o: pdprivacy.protect(DATES, DAYS, epsilon=10**9).dp.quantile(
        "day", QUARTILES, interval=True, **o
    ),
}


def without_charge(released: Any) -> dict[str, Any]:
    return {name: fact for name, fact in released.dp.metadata.to_dict().items() if name != "budget"}


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("releases", [1, 3])
def test_numbers_are_in_order_and_those_drawn_are_those_of_no_bounding(name, releases):
    call, moved = CALLS[name], 0
    for seed in range(3):
        options = {"epsilon": 0.2 * releases, "rng": seed, "releases": releases}
        ordered, plain = (call(protected().dp, **options, **more) for more in ({}, {"bounding": None}))
        levels = ["g"] if "g" in ordered.index.names else []
        groups = ordered.groupby(level="g") if levels else [("", ordered)]
        for _, group in groups:
            by_share = group.sort_index()
            assert all(by_share[column].is_monotonic_increasing for column in by_share)
        before = ordered.dp.unprojected()
        assert before.dp.verify()
        pd.testing.assert_frame_equal(before, plain)
        assert without_charge(before) == without_charge(plain)
        json.dumps(ordered.attrs["dp"], allow_nan=False)
        facts, drawn = ordered.dp.metadata, plain.dp.metadata
        for field in ("scale", "sensitivity", "epsilon", "split"):
            assert getattr(facts, field) == getattr(drawn, field)
        assert (facts.bounding, drawn.bounding) == ("project", None)
        assert facts.error["below_best_before"] == drawn.error["below_best"]
        assert "below_best_before" not in drawn.error
        differ = (ordered != plain).to_numpy()
        assert (facts.projection or {"at": []})["at"] == np.flatnonzero(differ).tolist()
        moved += differ.sum()
        if "interval" in name:
            ends = ordered.dp.interval()
            assert (ends["lower"].to_numpy() <= ordered.to_numpy()).all()
            assert (ordered.to_numpy() <= ends["upper"].to_numpy()).all()
            pd.testing.assert_frame_equal(before.dp.interval(), plain.dp.interval())
            wider = plain.dp.interval()
            assert (ends["lower"].to_numpy() <= np.maximum(wider["lower"].to_numpy(), ordered)).all(axis=None)
    assert moved > 0


def test_one_quantile_and_numbers_in_order_are_left_as_they_are():
    dp = protected().dp
    for released in (
        dp.quantile("x", epsilon=1),
        dp.quantile("x", [0.5], epsilon=1),
        dp.median("x", epsilon=1),
    ):
        assert released.dp.metadata.bounding is None
        assert "below_best_before" not in released.dp.metadata.error
    sharp = dp.quantile("x", QUARTILES, epsilon=10**6)
    assert (sharp.dp.metadata.bounding, sharp.dp.metadata.projection) == ("project", None)
    assert sharp.equals(sharp.dp.unprojected())
    assert "moved" not in repr(sharp.dp)


def test_a_release_in_order_says_so_and_comes_back_from_a_file(tmp_path):
    released = next(
        numbers
        for seed in range(99)
        if (numbers := protected().dp.quantile("x", QUARTILES, epsilon=0.1, rng=seed)).dp.metadata.projection
    )
    moved = len(released.dp.metadata.projection["at"])
    assert f"{moved} of 3 moved into the order of q; released.dp.unprojected()" in repr(released.dp)
    for ending in ("json", "parquet", "csv"):
        released.dp.save(tmp_path / f"q.{ending}")
        again = pdprivacy.read_release(tmp_path / f"q.{ending}")
        assert again.equals(released)
        assert again.dp.unprojected().equals(released.dp.unprojected())
    with pytest.raises(pdprivacy.errors.MetadataError, match="not those that were released"):
        (released + 1).dp.unprojected()


@pytest.mark.parametrize("options", [{}, {"interval": True}])
def test_an_excerpt_keeps_the_numbers_as_they_were_drawn(tmp_path, options):
    released = protected().dp.quantile(["x", "y"], QUARTILES, epsilon=0.2, rng=4, **options)
    assert released.dp.metadata.projection is not None
    for part in (released.loc[[0.5, 0.25]], released[["x"]], released.iloc[::-1]):
        assert "moved" in repr(part.dp)
        part.dp.save(tmp_path / "part.json")
        before = pdprivacy.read_release(tmp_path / "part.json").dp.unprojected()
        drawn = released.dp.unprojected().loc[part.index, part.columns]
        assert before.equals(drawn)
        if options:
            ends, whole = before.dp.interval(), released.dp.unprojected().dp.interval()
            assert ends.equals(whole.loc[ends.index, ends.columns])


def test_combine_takes_the_numbers_as_they_were_drawn():
    for call in (CALLS["one column"], CALLS["by group"]):
        options = {"epsilon": 0.4, "rng": 5, "releases": 4}
        estimates = [
            pdprivacy.combine(call(protected().dp, **options, **bounding), within=0)
            for bounding in ({}, {"bounding": None})
        ]
        assert estimates[0].equals(estimates[1])


def test_batches_release_numbers_in_order():
    with protected().dp.batch() as batch:
        pending = [batch.quantile("x", QUARTILES, epsilon=0.05, rng=seed) for seed in range(5)]
    for each in pending:
        assert each.result["x"].is_monotonic_increasing
        assert each.result.dp.metadata.bounding == "project"


@pytest.mark.parametrize("rows", [1, 40])
def test_other_engines_release_the_same_order(rows):
    polars = pytest.importorskip("polars")
    frame = FRAME.head(rows)
    lazy = polars.DataFrame({name: frame[name].to_numpy() for name in frame}).lazy()
    for call in (CALLS["with the ends"], CALLS["by group"]):
        first, second = (call(protected(data).dp, epsilon=0.5, rng=3) for data in (frame, lazy))
        assert first.equals(second)
        assert without_charge(first) == without_charge(second)


# ---------------------------------------------------------------- ranks


def test_the_ranks_are_those_of_a_union_bound():
    """The scale is 2 max(q, 1 - q) / epsilon each: N candidates weigh N exp(-ranks / scale) at most."""
    epsilon, k = 0.6, len(QUARTILES)
    dp = protected().dp
    facts = dp.quantile("x", QUARTILES, epsilon=epsilon).dp.metadata
    scales = [2 * max(q, 1 - q) / (epsilon / k) for q in QUARTILES]
    largest = max(scales) * math.log(100 * k / 0.05)
    assert [*facts.error["below_best"].values()] == pytest.approx([largest] * k)
    drawn = [scale * math.log(100 / 0.05) for scale in scales]
    assert [*facts.error["below_best_before"].values()] == pytest.approx(drawn)
    plan = dp.plan.quantile("x", QUARTILES, epsilon=epsilon, level=0.8)["ranks"]
    assert plan.tolist() == pytest.approx([max(scales) * math.log(100 * k / 0.2)] * k)
    plan = dp.plan.quantile("x", QUARTILES, epsilon=epsilon, bounding=None)["ranks"]
    assert plan.tolist() == pytest.approx(drawn)
    # a minimum counts for itself
    facts = dp.quantile("x", [0, 0.5], epsilon=1).dp.metadata
    ranks, before = ([*facts.error[name].values()] for name in ("below_best", "below_best_before"))
    assert ranks == [max(before[0], facts.error["rank"]["x, q=0.0"]), before[1]]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("scope", [{}, {"neighbors": "replace_one"}], ids=["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 5])
def test_all_quantiles_of_a_column_are_within_the_stated_ranks_together(epsilon, scope):
    """In at least 95 % of 1,000 releases; false alarms as in `accepts_share`. Many are sorted."""
    rows, q, releases = 400, [0.4, 0.45, 0.5, 0.55], 1000
    values = np.sort(np.random.default_rng(1).integers(10, 90, rows))
    frame = pd.DataFrame({"x": values, "y": 0.5, "w": 1.0, "g": "a"})
    dp = protected(frame, **scope).dp
    released = dp.quantile("x", q, epsilon=epsilon * releases, releases=releases, rng=7)
    numbers, ranks = released.to_numpy(), [*released.dp.metadata.error["below_best"].values()]
    below, upto = (np.searchsorted(values, numbers, side) for side in ("left", "right"))
    targets = np.array(q)[:, np.newaxis] * rows
    distances = np.maximum(np.maximum(below - targets, targets - upto), 0)
    hits = (distances <= np.array(ranks)[:, np.newaxis]).all(axis=0).sum()
    assert accepts_share(hits, releases, 0.95, "less")
    moved = (released.to_numpy() != released.dp.unprojected().to_numpy()).any(axis=0).mean()
    assert moved > 0.1 or epsilon > 1


@pytest.mark.parametrize("rows", [3, 20, 400])
def test_the_ends_are_within_their_ranks_of_any_number_of_records(rows):
    """In at least 95 % of 400 releases."""
    values = np.sort(np.random.default_rng(2).integers(10, 90, rows))
    frame = pd.DataFrame({"x": values, "y": 0.5, "w": 1.0, "g": "a"})
    released = protected(frame).dp.quantile("x", [0, 0.1, 1], epsilon=1200, releases=400, rng=1)
    error = released.dp.metadata.error
    for at, sign in ((0, 1), (2, -1)):
        numbers, rank = sign * released.iloc[at].to_numpy(), [*error["rank"].values()][at]
        signed = np.sort(sign * values)
        below, upto = (np.searchsorted(signed, numbers, side) for side in ("left", "right"))
        off = np.maximum(below - rank, rank - upto)
        hits = (off <= [*error["below_best"].values()][at]).sum()
        assert accepts_share(hits, 400, 0.95, "less")


# ---------------------------------------------------------------- calls


def test_other_boundings_are_refused_before_the_charge():
    private = protected()
    for bounding in ("clamp", "truncated", True, 1, ["project"]):
        for dp in (private.dp, private.dp.groupby("g")):
            with pytest.raises(ParameterError, match="'bounding' must be"):
                dp.quantile("x", QUARTILES, epsilon=1, bounding=bounding)
    assert private.dp.budget.spent == (0, 0)
    assert "bounding" not in inspect.signature(private.dp.median).parameters


def test_releases_in_order_and_as_drawn_are_not_equal():
    facts = protection.find(protected())
    ordered, again, drawn = (
        quantile(facts, "x", QUARTILES, epsilon=1, **options)
        for options in ({}, {"bounding": "project"}, {"bounding": None})
    )
    assert ordered == again
    assert ordered != drawn
    assert ordered.task == drawn.task
