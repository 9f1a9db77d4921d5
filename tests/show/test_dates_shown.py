"""Dates as people read them: texts that contain the exact interval, and plots with time on an axis."""

from __future__ import annotations

import math
import random

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.text.numbers import dated, duration

SIZES = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
START = pd.Timestamp("2020-01-01")
DOMAIN = Domain(
    (
        Column("when", "integer", True, lower=0, upper=730, timeline=Timeline(18_262, "D")),
        Column("pay", "float", lower=0.0, upper=100.0),
    )
)


def seconds_of(text: str) -> float:
    number, unit = text.split()
    return float(number.replace(",", "")) * SIZES[unit]


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_the_interval_shown_contains_the_exact_one(zone):
    draw = random.Random(1)
    for _ in range(3000):
        half = math.exp(draw.uniform(math.log(1e-3), math.log(1e10)))
        value = (START + pd.Timedelta(seconds=draw.randrange(10**9))).as_unit("s").tz_localize("UTC")
        value = value.tz_localize(None) if zone is None else value.tz_convert(zone)
        date, error = dated(value, half)
        stamp = pd.Timestamp(date)
        stamp = stamp.tz_localize(zone) if stamp.tzinfo is None and zone is not None else stamp
        moved = abs((stamp - value).total_seconds())
        assert moved + half <= seconds_of(error) * (1 + 1e-12), (value, half)
        assert seconds_of(error) <= 1.26 * half + 43_200 * (half > 864_000) + 3600 * (zone is not None) * (
            half > 864_000
        ), (value, half)


def test_equal_errors_look_equal_and_no_error_leaves_the_date():
    assert duration(2 * 86_400.0) == "2.1 days"  # rounded up, with the rounding of what is shown
    assert dated(START, math.nan) == ("2020-01-01 00:00:00", "")
    assert dated(pd.NaT, 5.0) == ("NaN", "")


@pytest.fixture(scope="module")
def private() -> pdprivacy.ProtectedFrame:
    draw = np.random.default_rng(2)
    when = pd.Series(START + pd.to_timedelta(draw.integers(1, 729, 900), unit="D"))
    frame = pd.DataFrame({"when": when.mask(np.arange(900) % 50 == 7), "pay": draw.uniform(1, 99, 900)})
    return pdprivacy.protect(frame, DOMAIN, epsilon=10**6)


def test_a_spreadsheet_holds_dates_with_their_margins_of_error(private, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    for index, released in enumerate(
        (
            private.dp.mean("when", epsilon=1, rng=1),
            private.dp.groupby("when", freq="Y").mean("pay", epsilon=1, rng=1),
        )
    ):
        path = tmp_path / f"{index}.xlsx"
        released.dp.to_excel(path)
        _, *rows = openpyxl.load_workbook(path)["release"].iter_rows(values_only=True)
        assert len(rows) == len(released)
        for row in rows:
            *_, number, error = row
            if index == 0:  # as at the prompt
                assert f"± {error}" in repr(released.dp)
                assert str(number).startswith(str(released["when"])[:10])
            else:
                assert isinstance(error, int | float)


def test_a_release_of_dates_is_shown_with_its_time(private):
    text = repr(private.dp.mean("when", epsilon=1).dp)
    assert "± 11 days" in text or "± 10 days" in text or "days: 95 %" in text
    assert "days: 95 % margin of error of each number" in text


def drawn(release):
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(7, 4))
    release.dp.plot(ax=ax)
    figure.canvas.draw()
    parts = [ax, *ax.child_axes]
    pyplot.close(figure)
    return [part for part in parts if part.lines or part.collections]


@pytest.mark.parametrize("freq", ["W", "M", "Q", "Y"])
def test_counts_by_period_are_drawn_at_the_middle_of_each_period_in_order(private, freq):
    counts = private.cut("when", freq=freq).dp.value_counts("when", epsilon=1, rng=1)  # sorted by count
    (ax,) = drawn(counts)
    line = ax.lines[0]
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    known = counts[counts.index.notna()]
    periods = pd.period_range(START, START + pd.Timedelta(days=730), freq=freq)
    assert y.tolist() == known.loc[periods.astype(str)].tolist()
    assert ((x > periods.start_time.as_unit("s").asi8) & (x < periods.end_time.as_unit("s").asi8)).all()
    assert any("no date: " in text.get_text() for text in ax.texts)
    texts = [label.get_text() for label in ax.get_xticklabels()]
    assert texts
    assert all(
        abs(tick - pd.Timestamp(text).timestamp()) < 1
        for tick, text in zip(ax.get_xticks(), texts, strict=True)
    )


def test_periods_beyond_the_years_of_nanoseconds_are_drawn():
    ages = Domain((Column("when", "integer", lower=0, upper=365_000, timeline=Timeline(-200_000, "D")),))
    days = pd.Series(np.array([-150_000, 0, 100_000], dtype="datetime64[D]").astype("datetime64[s]"))
    private = pdprivacy.protect(pd.DataFrame({"when": days}), ages, epsilon=10)
    (ax,) = drawn(private.dp.groupby("when", freq="Y").count(epsilon=1))
    years = np.asarray(ax.lines[0].get_xdata(), dtype="datetime64[s]").astype("datetime64[Y]").astype(str)
    assert (years[0], years[-1], len(years)) == ("1422", "2421", 1000)


def test_groups_by_period_have_their_margins_of_error_and_columns_axes_of_their_own(private):
    means = private.assign(twice="2 * pay").dp.groupby("when", freq="Q").mean(epsilon=10, rng=1)
    parts = drawn(means)
    assert len(parts) == 2
    half = np.array(means.attrs["dp"]["error"]["plus_minus"])
    for column, (part, name) in enumerate(zip(parts, means, strict=True)):
        y = np.asarray(part.lines[0].get_ydata())
        assert y.tolist() == means[name].iloc[:-1].tolist()
        ends = np.array([path.vertices[:, 1] for path in part.collections[0].get_paths()])
        assert np.allclose(ends[:, 1] - ends[:, 0], 2 * half[:-1, column])
        assert part.get_title(loc="left") == name


def test_means_of_dates_are_drawn_on_an_axis_of_dates(private):
    mean = private.dp.mean("when", epsilon=1, rng=1)
    (ax,) = drawn(mean)
    (point,) = ax.lines[0].get_xdata()
    assert point == mean["when"].timestamp()
    low, high = (pd.Timestamp(end, unit="s") for end in ax.get_xlim())
    ends = mean.dp.interval().loc["when"]
    assert low < ends["lower"] < ends["upper"] < high
    for tick, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True):
        assert pd.Timestamp(label.get_text()).timestamp() == tick


def test_labels_that_are_no_periods_are_drawn_as_before(private):
    pytest.importorskip("matplotlib")
    from pdprivacy.show.plots.charts import are_periods

    steps = ["cut('t', freq='Y')"]
    assert are_periods(pd.Index(["2020", "2021", None], name="t"), steps)
    assert are_periods(pd.Index(["2019-12-30/2020-01-05", "2020-01-06/2020-01-12"], name="t"), steps)
    for labels in (["2020"], ["2020", "2020-01"], ["north", "2020"], [2020, 2021], ["12345", "2020x"]):
        assert not are_periods(pd.Index(labels, name="t"), steps)
    assert not are_periods(pd.Index(["1010", "1020"], name="code"), steps)  # postal codes
