"""Intervals of quantiles (`interval_frames`): on either side of the quantile, and the loss of their parts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy import frames as protection
from pdprivacy.core.statistics import Quantile, RankGrid, Scope
from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.releases import grouped as by_group
from pdprivacy.releases import median, quantile
from pdprivacy.releases.grouped import DeclaredGroups
from tests.support.statistics import accepts_share

DOMAIN = Domain(
    (
        Column("whole", "integer", lower=0, upper=120),
        Column("skewed", "float", lower=0, upper=10**6),
        Column("few", "integer", lower=0, upper=10),
        Column("ends", "float", lower=-1, upper=1),
    )
)
NAMES = [column.name for column in DOMAIN.columns]


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    return pd.DataFrame(
        {
            "whole": rng.integers(1, 100, rows),
            "skewed": np.minimum(np.exp(rng.normal(9, 2, rows)), 9e5),
            "few": rng.choice([2, 3, 9], rows),
            "ends": rng.choice([-0.99, 0.99], rows),
        }
    )


def protected(rows: int, **scope: Any) -> Any:
    return pdprivacy.protect(table(rows), DOMAIN, epsilon=10**9, **scope)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("scope", [{}, {"neighbors": "replace_one"}], ids=["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("rows", [200, 2000, 20_000])
def test_intervals_hold_the_quantile_of_the_data(rows, epsilon, scope):
    """At least 95 % of 200 releases, for every way to interpolate; false alarms as in `accepts_share`."""
    private, shares, releases = protected(rows, **scope), [0.05, 0.5, 0.9], 200
    for name in NAMES:
        released = private.dp.quantile(
            name, shares, epsilon=releases * epsilon * len(shares), releases=releases, interval=True, rng=4
        )
        ends = released.dp.interval()
        lower, upper = ends["lower"].to_numpy(), ends["upper"].to_numpy()
        for way in ("linear", "lower", "higher"):
            exact = table(rows)[name].quantile(shares, interpolation=way).to_numpy()[:, np.newaxis]
            for hits in ((lower <= exact) & (exact <= upper)).sum(axis=1):
                assert accepts_share(hits, releases, 0.95, "less")
        assert (lower <= released.to_numpy()).all()
        assert (released.to_numpy() <= upper).all()


GROUPS = Domain((*DOMAIN.columns, Column("g", "category", categories=("most", "some", "two", "none"))))


def grouped(rows: int, **scope: Any) -> Any:
    """A table with a large group, one of a tenth of the records, one of two records and one of none."""
    sizes = [rows - rows // 10 - 2, rows // 10, 2]
    frame = table(rows).assign(g=np.repeat(["most", "some", "two"], sizes))
    return frame, pdprivacy.protect(frame, GROUPS, epsilon=10**9, **scope)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("scope", [{}, {"neighbors": "replace_one"}], ids=["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("rows", [200, 2000, 20_000])
def test_intervals_by_group_hold_the_quantile_of_each_group(rows, epsilon, scope):
    """Of every group with a record, also of two; 200 releases, as above."""
    frame, private = grouped(rows, **scope)
    releases, groups = 200, private.dp.groupby("g")
    options = {"releases": releases, "interval": True, "rng": 6}
    exact = frame.groupby("g")[NAMES]
    for released, truth in (
        (groups.median(NAMES, epsilon=4 * releases * epsilon, **options), exact.median()),
        (groups.quantile(NAMES, 0.9, epsilon=4 * releases * epsilon, **options), exact.quantile(0.9)),
        (groups.min(NAMES, epsilon=4 * releases * epsilon, **options), exact.min()),
        (groups.max(NAMES, epsilon=4 * releases * epsilon, **options), exact.max()),
    ):
        ends = released.dp.interval()
        lower, upper = (ends[side].to_numpy().reshape(4, releases, len(NAMES)) for side in ("lower", "upper"))
        assert (lower <= upper).all()
        for number, group in enumerate(["most", "some", "two"]):
            inside = (lower[number] <= truth.loc[group].to_numpy()) & (
                truth.loc[group].to_numpy() <= upper[number]
            )
            for hits in inside.sum(axis=0):
                assert accepts_share(hits, releases, 0.95, "less")


@pytest.mark.parametrize("rows", [1, 2, 15, 3000])
def test_an_extreme_has_one_selected_end_and_one_bound(rows):
    """Also where there are fewer records than the rank at which the number is sought."""
    private, releases = protected(rows), 60
    for verb, truth in (("min", table(rows).min()), ("max", table(rows).max())):
        released = getattr(private.dp, verb)(epsilon=4 * releases, releases=releases, interval=True, rng=5)
        ends = released.dp.interval()
        for name in NAMES:
            lower, upper = (ends[side].loc[name].to_numpy() for side in ("lower", "upper"))
            bound = DOMAIN[name].lower if verb == "min" else DOMAIN[name].upper
            assert ((lower if verb == "min" else upper) == bound).all()
            assert accepts_share(
                ((lower <= truth[name]) & (truth[name] <= upper)).sum(), releases, 0.95, "less"
            )
            assert ((lower <= released.loc[name]) & (released.loc[name] <= upper)).all()
    if rows == 3000:  # ln(10**9 / 0.05) < 24 ranks beyond, at scale 2 / 0.5, and as many farther at most
        upper = private.dp.min("whole", epsilon=1, interval=True, rng=1).dp.interval()["upper"].item()
        assert (table(rows)["whole"] < upper).sum() <= 2 * 4 * 24


def test_extremes_among_quantiles_have_intervals_too():
    released = protected(400).dp.quantile("whole", [0, 0.5, 1], epsilon=9, interval=True, rng=2)
    ends = released.dp.interval()
    assert ends["lower"].loc[0].item() == 0
    assert ends["upper"].loc[1].item() == 120
    assert (ends["lower"].to_numpy() <= released.to_numpy()).all()
    assert (released.to_numpy() <= ends["upper"].to_numpy()).all()
    split = released.dp.metadata.split
    assert sum(split.values()) == pytest.approx(1)
    assert split["whole, q=0.0"] == split["whole, q=0.0, upper end"] == pytest.approx(1 / 6)
    assert split["whole, q=0.5, lower end"] == pytest.approx(1 / 9)
    extreme = protected(400).dp.min("whole", epsilon=1, interval=True)
    assert "returns an interval for the minimum of these data" in repr(extreme.dp)


def test_intervals_shrink_with_more_records_and_are_the_whole_range_of_few():
    private = protected(20_000)
    ends = private.dp.median(["whole", "skewed"], epsilon=6, interval=True, rng=1).dp.interval()
    sorted_values = np.sort(table(20_000)["skewed"].to_numpy())
    ranks = np.searchsorted(sorted_values, ends.loc["skewed", ["lower", "upper"]].astype(float))
    # scale 1 and 2**37 candidates at most: ln(2**37 / 0.025) ranks beyond, and as many farther at most
    assert (abs(ranks - 10_000) <= 2 * 30 + 2).all()
    assert ends.loc["whole", "upper"] - ends.loc["whole", "lower"] <= 2
    few = protected(20).dp.median("skewed", epsilon=0.1, interval=True, rng=1).dp.interval()
    assert few[["lower", "upper"]].iloc[0].tolist() == [0, 10**6]
    none = protected(20).query("whole > 100").dp.median("whole", epsilon=0.1, interval=True, rng=1)
    assert none.dp.interval()[["lower", "upper"]].iloc[0].tolist() == [101, 120]


@pytest.mark.parametrize("scope", [{}, {"neighbors": "replace_one"}])
@pytest.mark.parametrize("releases", [1, 3])
def test_the_loss_is_that_of_the_parts(scope, releases):
    """Three selections per quantile, of a third of its loss each; together, exactly what was asked for."""
    facts = protection.find(protected(50, **scope))
    release = quantile(
        facts, ["whole", "few"], [0.25, 0.5], epsilon=Fraction(6, 5), releases=releases, interval=True
    )
    price = release.task.price(release.task.cost)
    losses = [mechanism.loss.epsilon for mechanism in price.mechanisms]
    assert losses == [Fraction(6, 5) / 12 / releases] * 12
    assert sum(event.loss.epsilon * count for event, count in price.events) == Fraction(6, 5)
    for choice, mechanism in zip(release.task.choices, price.mechanisms, strict=True):
        # the scale of the exponential mechanism for scores that move either way
        assert mechanism.scale == pytest.approx(2 * float(choice.sensitivity / mechanism.epsilon))
    private = protected(50, **scope)
    private.dp.median("whole", epsilon=0.5, interval=True)
    assert private.dp.budget.spent == (0.5, 0)
    assert len(private.dp.budget.entries) == 1
    split = private.dp.median("whole", epsilon=0.5, interval=True).dp.metadata.split
    assert [*split] == ["whole, q=0.5", "whole, q=0.5, lower end", "whole, q=0.5, upper end"]
    assert [*split.values()] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("scope", [{}, {"neighbors": "replace_one"}])
@pytest.mark.parametrize("verb", ["quantile", "min", "max"])
def test_the_loss_by_group_is_that_of_the_parts(verb, scope):
    """The score of each part moves in one group, or in two where a replaced record changes its group."""
    facts = protection.find(grouped(50, **scope)[1])
    groups = DeclaredGroups(facts, (facts.domain["g"],))
    release = getattr(by_group, verb)(groups, ["whole", "few"], epsilon=Fraction(6, 5), interval=True)
    ends = 3 if verb == "quantile" else 2
    price = release.task.price(release.task.cost)
    assert [mechanism.loss.epsilon for mechanism in price.mechanisms] == [
        Fraction(6, 5) / 2 / ends
    ] * 2 * ends
    assert sum(event.loss.epsilon * count for event, count in price.events) == Fraction(6, 5)
    for choice, mechanism in zip(release.task.choices, price.mechanisms, strict=True):
        moved = (Fraction(1, 2) if verb == "quantile" else 1) * (2 if scope else 1)
        assert choice.sensitivity == moved
        assert mechanism.scale == pytest.approx(2 * float(moved / mechanism.epsilon))


@pytest.mark.parametrize("rows", [0, 1, 7, 400])
def test_other_engines_select_the_same_ends(rows):
    polars = pytest.importorskip("polars")
    frame = table(max(rows, 1)).head(rows)
    lazy = polars.DataFrame({name: frame[name].to_numpy() for name in frame}).lazy()
    ends = [
        pdprivacy.protect(data, DOMAIN, epsilon=9)
        .dp.quantile(NAMES, [0, 0.1, 0.5], epsilon=8, interval=True, rng=3)
        .dp.interval()
        for data in (frame, lazy)
    ]
    pd.testing.assert_frame_equal(*ends)


def test_shapes_dates_and_files(tmp_path):
    days = pd.DataFrame({"day": pd.date_range("2020-02-01", periods=3000, freq="h", unit="ns")})
    within = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    schema = pa.DataFrameSchema({"day": pa.Column("datetime64[ns]", within, metadata={"dp": {}})})
    dates = days.dp.protect(schema, epsilon=10).dp.median("day", epsilon=3, interval=True)
    dates.dp.save(tmp_path / "dates.json")
    again = pdprivacy.read_release(tmp_path / "dates.json").dp.interval()
    pd.testing.assert_frame_equal(again, dates.dp.interval())
    lower, upper = dates.dp.interval()[["lower", "upper"]].iloc[0]
    assert lower <= days["day"].median() <= upper
    assert upper - lower < pd.Timedelta(days=20)
    released = protected(400).dp.quantile(["whole", "few"], [0.1, 0.5], epsilon=9, interval=True, releases=2)
    assert released.shape == (2, 4)
    assert released.dp.interval().shape == (2, 16)
    assert "returns an interval for the quantile" in repr(released.dp)
    plain = protected(400).dp.quantile("whole", 0.5, epsilon=9, interval=False)
    with pytest.raises(MetadataError, match="no interval around its value"):
        plain.dp.interval()
    with pytest.raises(MetadataError, match=r"interval=0\.9\)"):
        released.dp.interval(level=0.9)
    plan = protected(400).dp.plan
    at_third = plan.median("whole", epsilon=1, interval=True)["ranks"].item()
    assert at_third == pytest.approx(3 * plan.median("whole", epsilon=1)["ranks"].item())


@pytest.mark.parametrize(
    "call",
    [
        lambda dp: dp.quantile("whole", 0.5, epsilon=1, weights="few", interval=True),
        lambda dp: dp.median("whole", epsilon=1, interval="yes"),
    ],
)
def test_intervals_that_are_not_offered_are_refused(call):
    private = protected(50)
    with pytest.raises(ParameterError, match="'interval'"):
        call(private.dp)
    assert private.dp.budget.spent == (0, 0)
    assert median(protection.find(private), "whole", epsilon=1) == median(
        protection.find(private), "whole", epsilon=1, interval=None
    )


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_where_noise_hides_every_rank_the_interval_is_the_whole_range(neighbors):
    frame = pd.DataFrame({"age": 10 + np.arange(400) % 80})
    domain = Domain((Column("age", "integer", lower=0, upper=100),))
    private = pdprivacy.protect(frame, domain, epsilon=1, neighbors=neighbors)
    for seed in range(20):
        ends = private.dp.median("age", epsilon=1e-12, interval=True, rng=seed).dp.interval()
        assert ends[["lower", "upper"]].to_numpy().tolist() == [[0, 100]]


def test_intervals_of_another_level_are_wider_or_narrower_and_the_hint_of_a_refusal_runs():
    private, scope = (
        pdprivacy.protect(table(2000).assign(g="most"), GROUPS, epsilon=10**9),
        Scope("add_remove", None),
    )
    widths = []
    for level in (0.5, 0.95, 0.999):
        released = private.dp.median("whole", epsilon=3, interval=level)
        assert released.dp.metadata.error["level"] == level
        end = Quantile(
            RankGrid(DOMAIN["whole"], "median"), Fraction(1, 2), scope, Fraction(1), side="above", level=level
        )
        candidates, margin = end.grid.candidates, end.margin(2.0)
        # all wrong steps together weigh at most half of the misses of one right step
        assert candidates * math.exp(-(margin - 1) / 2.0) <= (1 - level) / 2 * (1 + 1e-9)
        assert candidates * math.exp(-(margin - 2) / 2.0) > (1 - level) / 2
        ends = released.dp.interval().iloc[0]
        widths.append(ends["upper"] - ends["lower"])
    assert widths[0] < widths[2]
    for released in (
        private.dp.quantile(["whole", "skewed"], [0.25, 0.5], epsilon=3, interval=True),
        private.dp.groupby("g").median("whole", epsilon=3, interval=0.9),
    ):
        with pytest.raises(MetadataError) as refused:
            released.dp.interval(level=0.99)
        again = eval(refused.value.hint.partition("another: ")[2].rstrip("."), {"private": private})
        assert again.dp.metadata.error["level"] == 0.99
        again.dp.interval(level=0.99)
    for wrong in (0, 1.5, -0.1, "yes", float("nan")):
        with pytest.raises(ParameterError, match="interval"):
            private.dp.median("whole", epsilon=3, interval=wrong)
