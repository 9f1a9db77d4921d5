"""Released numbers that are all noise: their field in the metadata, and how displays show them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.releases.metadata import all_noise

GROUPS = ("none", "some", "many")
ROWS = (0, 12, 3000)
DOMAIN = Domain(
    (
        Column("income", "float", lower=0, upper=200_000),
        Column("g", "category", categories=GROUPS),
        Column("b", "boolean"),
    )
)


@pytest.fixture(scope="module")
def private():
    rng = np.random.default_rng(4)
    labels = np.repeat(GROUPS, ROWS)
    frame = pd.DataFrame({"g": labels, "income": rng.uniform(20_000, 90_000, len(labels))})
    return pdprivacy.protect(frame.assign(b=np.arange(len(labels)) % 3 == 0), DOMAIN, epsilon=10**9)


def test_the_mean_of_a_group_that_the_noise_hides_is_all_noise_and_that_of_a_large_one_is_not(private):
    flagged = dict.fromkeys(GROUPS, 0)
    for seed in range(200):
        mean = private.dp.groupby("g").mean("income", epsilon=0.5, rng=seed)
        mask = pd.Series(all_noise(mean, mean.dp.metadata).ravel(), index=mean.index)
        assert mean.dp.metadata.error["all_noise"] == mask.sum()
        ends = mean.dp.interval().xs("income", axis=1, level=1)
        assert (mask == (ends["lower"] <= 0.001) & (ends["upper"] >= 199_999.999)).all()
        for name in GROUPS:
            flagged[name] += mask[name]
    # the noisy count of no record is within its 95 % margin of error, or below, in 97.5 % of draws
    assert flagged["none"] >= 187
    assert flagged["many"] == 0


def test_a_count_is_all_noise_where_it_is_at_most_its_margin_of_error(private):
    for released, values in (
        (private.dp.value_counts("g", epsilon=0.2, rng=3), None),
        (private.dp.crosstab("g", "b", epsilon=0.1, rng=3, margins=True), None),
        (private.dp.groupby("g").agg({"income": ["count", "sum"]}, epsilon=0.4, rng=3), "count"),
        (private.dp.groupby("g").count(epsilon=0.2, rng=3), None),
    ):
        facts = released.dp.metadata
        half = np.broadcast_to(np.array(facts.error["plus_minus"], float), released.shape)
        counts = released.to_numpy() <= half
        if values:
            counts = counts & (released.columns.get_level_values(-1) == values)
        assert (all_noise(released, facts) == counts).all()
        assert 0 < facts.error["all_noise"] == counts.sum() < released.size
    totals = private.dp.describe("income", epsilon=0.001, rng=1)
    mask = pd.Series(all_noise(totals, totals.dp.metadata).ravel(), index=totals.index)
    half = totals.dp.metadata.error["plus_minus"]
    assert mask["count"] == (totals.loc["count", "income"] <= half[0][0])
    assert mask["mean"] == mask["count"]  # of the same noisy count


def test_displays_show_what_is_not_known_in_place_of_a_margin_of_error(private, tmp_path):
    mean = private.dp.groupby("g").mean("income", epsilon=0.5, rng=1)
    before = mean.dp.unprojected()
    assert before.loc["none", "income"] != mean.loc["none", "income"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for released in (mean, before):
            line = next(text for text in repr(released.dp).splitlines() if text.startswith("none"))
            assert "unknown (0 to 200,000)" in line
            assert "±" not in line
            assert line.count("unknown") == 1
            shown = released.dp
            for text in (repr(shown), shown.to_markdown(), shown.to_latex(), shown._repr_html_()):
                assert text.count("unknown (0 to 200,000)") == shown.metadata.error["all_noise"]
            assert "of them all noise" in repr(shown)
        released.dp.to_excel(tmp_path / "table.xlsx")
        series = private.dp.mean("income", epsilon=1e-5, rng=3)
        assert "unknown (0 to 200,000)" in repr(series.dp)
        series.dp.to_excel(tmp_path / "series.xlsx")
        page = pdprivacy.report([mean, series], pictures=False).html
    assert page.count("unknown (0 to 200,000)") == mean.dp.metadata.error["all_noise"] + 1
    assert "± unknown" not in page
    many = private.dp.mean("income", epsilon=1, rng=3)
    assert many.dp.metadata.error["all_noise"] == 0
    assert "unknown" not in repr(many.dp)
    assert "all noise" not in repr(many.dp)


def test_a_quantile_is_all_noise_where_its_selected_interval_is_the_whole_range(private):
    for released in (
        private.dp.groupby("g").quantile("income", q=[0.25, 0.5], epsilon=3, interval=True),
        private.dp.groupby("g")["income"].median(epsilon=1, interval=True),
        private.dp.max("income", epsilon=0.001, interval=True),
        private.dp.quantile("income", [0.5, 0.9], epsilon=0.001, interval=True, releases=2),
        private.dp.median("income", epsilon=5, interval=True),
    ):
        ends = released.dp.interval()
        low, high = (np.ravel(ends[name]) for name in ("lower", "upper"))
        expected = int(((low == 0) & (high == 200_000)).sum())
        assert released.dp.metadata.error["all_noise"] == expected
        texts = (
            repr(released.dp),
            released.dp.to_markdown(),
            released.dp.to_latex(),
            released.dp._repr_html_(),
        )
        for text in (*texts, pdprivacy.report(released, pictures=False).html):
            assert text.count("unknown (0 to 200,000)") == expected
    assert expected == 0
    few = private.dp.groupby("g").median("income", epsilon=3, interval=True)
    assert few.dp.metadata.error["all_noise"] >= 1  # of the group without records, whose ranks exceed them
    assert repr(few.loc[["none"]].dp).count("unknown") == 1
    assert "unknown" not in repr(few.loc[["many"]].dp)


def test_dates_whose_selected_interval_is_the_whole_range_are_all_noise():
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-02"] * 40)})
    import pandera.pandas as pa

    within = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    schema = pa.DataFrameSchema({"when": pa.Column("datetime64[ns]", within, metadata={"dp": {}})})
    private = pdprivacy.protect(frame, schema, epsilon=10**9)
    hidden, precise = (private.dp.median("when", epsilon=epsilon, interval=True) for epsilon in (0.001, 1000))
    assert (hidden.dp.metadata.error["all_noise"], precise.dp.metadata.error["all_noise"]) == (1, 0)
    assert "unknown (2020-01-01 to 2020-12-31)" in repr(hidden.dp)
    json.dumps(hidden.attrs["dp"], allow_nan=False)


def test_counts_show_what_they_may_be_in_place_of_their_margin(private, tmp_path):
    for released in (
        private.dp.value_counts("g", epsilon=0.2, rng=3),
        private.dp.crosstab("g", "b", epsilon=0.1, rng=3, margins=True),
        private.dp.groupby("g").count(epsilon=0.2, rng=3),
        private.dp.groupby("g").nunique("b", epsilon=0.2, rng=3),
    ):
        half = np.broadcast_to(np.array(released.dp.metadata.error["plus_minus"]), released.shape).ravel()
        values = released.to_numpy().ravel()
        texts = [
            f"unknown (0 to {max(value, 0) + margin:,.0f})"
            for value, margin in zip(values, half, strict=True)
            if value <= margin
        ]
        assert texts
        shown = (
            repr(released.dp),
            released.dp.to_markdown(),
            released.dp.to_latex(),
            released.dp._repr_html_(),
        )
        for text in shown:
            assert text.count("unknown") == len(texts) == released.dp.metadata.error["all_noise"]
            assert all(each in text for each in texts)
        released.dp.to_excel(tmp_path / "counts.xlsx")


@pytest.mark.full
def test_plots_draw_intervals_of_quantiles(private):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    released = private.dp.groupby("g").median("income", epsilon=1, interval=True)
    ends = released.dp.interval()[["lower", "upper"]].to_numpy().tolist()
    ax = released.dp.plot()
    drawn = [np.asarray(line)[:, 0].tolist() for lines in ax.collections for line in lines.get_segments()]
    assert all(any(np.allclose(pair, line) for line in drawn if len(line) == 2) for pair in ends)
    assert sum("unknown" in text.get_text() for text in ax.texts) == released.dp.metadata.error["all_noise"]
    plt.close("all")


@pytest.mark.full
def test_plots_draw_the_whole_range(private):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mean = private.dp.groupby("g").mean("income", epsilon=0.5, rng=1)
    ax = mean.dp.plot()
    segments = [segment for lines in ax.collections for segment in lines.get_segments()]
    ends = {tuple(np.asarray(segment)[:, 0].tolist()) for segment in segments if len(segment) == 2}
    assert (0.0, 200_000.0) in {(round(low, 3), round(high, 3)) for low, high in ends}
    assert sum("unknown" in text.get_text() for text in ax.texts) == mean.dp.metadata.error["all_noise"]
    plt.close("all")


def test_files_keep_the_field_and_frames_of_earlier_versions_have_none(private, tmp_path):
    mean = private.dp.groupby("g").mean("income", epsilon=0.5, rng=1)
    mean.dp.save(tmp_path / "mean.json")
    again = pdprivacy.read_release(tmp_path / "mean.json")
    assert again.dp.metadata.error["all_noise"] == mean.dp.metadata.error["all_noise"] > 0
    json.dumps(mean.attrs["dp"], allow_nan=False)
    del again.attrs["dp"]["error"]["all_noise"]
    assert "unknown (0 to 200,000)" in repr(again.dp)
    assert "of them all noise" not in repr(again.dp)


def test_a_mean_of_dates_can_be_all_noise():
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-02"] * 40)})
    import pandera.pandas as pa

    within = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    schema = pa.DataFrameSchema({"when": pa.Column("datetime64[ns]", within, metadata={"dp": {}})})
    private = pdprivacy.protect(frame, schema, epsilon=10**9)
    hidden, precise = (private.dp.mean("when", epsilon=epsilon, rng=2) for epsilon in (0.001, 1000))
    assert (hidden.dp.metadata.error["all_noise"], precise.dp.metadata.error["all_noise"]) == (1, 0)
    assert "unknown (2020-01-01 to 2020-12-31)" in repr(hidden.dp)


def test_shares_are_all_noise_where_the_whole_is(private):
    shares = private.dp.value_counts("g", normalize=True, epsilon=0.0001, rng=2)
    assert shares.dp.metadata.error["all_noise"] == 3
    assert private.dp.value_counts("g", normalize=True, epsilon=1, rng=2).dp.metadata.error["all_noise"] == 0
