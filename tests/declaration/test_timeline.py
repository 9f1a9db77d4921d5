"""Dates as whole numbers and back: against exact integers of Python, and against the calendar of pandas."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pdprivacy.declaration.timeline import DATE_UNITS, FIELDS, Timeline, nanoseconds, times, timestamp
from pdprivacy.errors import ParameterError

ZONES = [None, "UTC", "Europe/Paris", "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe"]
UNITS = list(DATE_UNITS)


def between(low: str, high: str, unit: str = "s", zone: str | None = None) -> tuple[Timeline, int]:
    """The dates from one to another, and the number of the last."""
    first, last = (nanoseconds(pd.Timestamp(end, tz=zone)) // DATE_UNITS[unit] for end in (low, high))
    return Timeline(first, unit, zone), last - first


# ------------------------------------------------------------------ dates as numbers


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("stored", ["s", "ms", "us", "ns"])
def test_stored_dates_are_counted_as_by_exact_integers(unit, stored):
    """Rounded down, one before and one after the bounds, also where 64 bits would not hold a product."""
    draw = random.Random(f"{unit} {stored}")
    for origin_day, days in ((18_262, 10), (-170_000, 400_000), (-719_000, 3_600_000)):
        origin = origin_day * DATE_UNITS["D"] // DATE_UNITS[unit]
        most = days * DATE_UNITS["D"] // DATE_UNITS[unit]
        if abs(origin) + most > 2**62:
            continue  # no such declaration: nanoseconds since the year 1
        timeline = Timeline(origin, unit)
        ends = [
            end * DATE_UNITS[unit] // DATE_UNITS[stored] for end in (origin, origin + most, origin + most + 1)
        ]
        cells = [end + step for end in ends for step in (-2, -1, 0, 1, 2)] + [-(2**63) + 1, 2**63 - 1, 0]
        cells += [draw.randrange(-(2**63) + 1, 2**63) for _ in range(50)]
        cells = [cell for cell in cells if -(2**63) < cell < 2**63]
        exact = [cell * DATE_UNITS[stored] // DATE_UNITS[unit] - origin for cell in cells]
        for lower in (0, most // 2, -1):
            counted = timeline.counted(np.array(cells, dtype=np.int64), stored, lower, most)
            assert counted.tolist() == [min(max(number, lower - 1), most + 1) for number in exact]


@pytest.mark.parametrize("unit", UNITS)
def test_whole_numbers_come_back_from_dates(unit):
    timeline, last = between("1970-01-01", "1970-03-01", unit)
    numbers = np.array(sorted({0, 1, last // 3, last - 1, last}), dtype=np.int64)
    index = timeline.instants(numbers)
    assert [timeline.position(instant) for instant in index] == numbers.tolist()
    assert timeline.counted(index.asi8, index.unit, 0, last).tolist() == numbers.tolist()
    assert timeline.dates(numbers.astype(float)).equals(index)


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_between_two_dates_are_rounded_to_the_nearest_that_is_published(unit):
    timeline, _ = between("2020-01-01", "2020-03-01", unit)
    step = timeline.units(timeline.stored_unit)
    for number in (0.25, 0.5, 1.75, 1234.56789):
        (date,) = timeline.dates(number)
        off = Fraction(nanoseconds(date), DATE_UNITS[timeline.stored_unit]) - timeline.origin * step
        assert abs(off - Fraction(number) * step) <= Fraction(1, 2)


def test_no_number_is_beyond_the_years_that_python_knows():
    for zone in ZONES:
        timeline = Timeline(0, "s", zone)
        dates = timeline.dates([-1e300, 1e300, np.nan])
        first, last, none = dates[0], dates[1], dates[2]  # pandas 2.2.0 cannot go through such dates
        assert first.year == 1
        assert last.year == 9999
        assert none is pd.NaT
        assert str(first)
        assert str(last)
    first, last = Timeline(0, "ns").dates([-1e300, 1e300])
    assert (first.year, last.year) == (1677, 2262)


@pytest.mark.parametrize("zone", ZONES)
def test_constants_have_the_number_of_their_instant(zone):
    timeline, _ = between("2020-01-01", "2021-01-01", "s", zone)
    for text in ("2020-01-01", "2020-02-29 12:00:00", "2020-12-31T23:59:59"):
        moment = pd.Timestamp(text, tz=zone)
        exact = (moment - pd.Timestamp("2020-01-01", tz=zone)) / pd.Timedelta("1s")
        assert timeline.position(text) == timeline.position(moment) == exact
        if zone is not None:
            assert timeline.position(moment.tz_convert("Asia/Tokyo")) == exact
    assert timeline.position(datetime.date(2020, 1, 2)) == timeline.position("2020-01-02")
    assert timeline.position("2020-01-01 00:00:00.2") == timeline.position("2020-01-01 00:00:00.9") == 0.5
    assert timeline.position("2019-12-31 23:59:59.9") == -0.5


@pytest.mark.parametrize(
    "value", ["now", "today", "", "31.12.2020", "2020-02-30", 5, None, 2.5, True, pd.NaT, [1]]
)
def test_invalid_dates_are_refused_and_not_shown(value):
    assert timestamp(value) is None
    with pytest.raises(ParameterError, match="must be a date") as caught:
        Timeline(0, "s").position(value)
    assert "31.12" not in str(caught.value)


def test_clocks_that_skip_or_repeat_an_hour_need_an_offset():
    timeline, _ = between("2020-01-01", "2021-01-01", "s", "Europe/Paris")
    for text in ("2020-03-29 02:30", "2020-10-25 02:30"):
        with pytest.raises(ParameterError, match="not one instant"):
            timeline.position(text)
    assert timeline.position("2020-10-25 02:30+01:00") - timeline.position("2020-10-25 02:30+02:00") == 3600
    with pytest.raises(ParameterError, match="has a time zone"):
        Timeline(0, "s").position("2020-10-25 02:30+01:00")


# ------------------------------------------------------------------ the calendar


@pytest.mark.parametrize("freq", ["D", "W", "M", "Q", "Y"])
@pytest.mark.parametrize("zone", ZONES)
def test_periods_are_those_of_pandas_and_each_date_is_in_its_own(freq, zone):
    """Over leap years, the ends of years within a week, and changes of clocks."""
    timeline, last = between("2015-12-29 05:00", "2020-03-02 07:00", "min", zone)
    names, first = timeline.periods(freq, 0, last)
    wall = timeline.instants(np.array([0, last])).tz_localize(None)
    assert list(names) == [str(period) for period in pd.period_range(*wall, freq=freq)]
    assert (np.diff(first) > 0).all()
    edges = first[1:]
    draw = np.random.default_rng(1)
    numbers = np.unique(np.concatenate([draw.integers(0, last + 1, 3000), edges, edges - 1, [0, last]]))
    periods = timeline.instants(numbers).tz_localize(None).to_period(freq)
    positions = np.searchsorted(edges, numbers, side="right")
    np.testing.assert_array_equal(np.array(names)[positions], periods.astype(str))


def test_a_midnight_that_clocks_skip_or_show_twice_begins_one_day():
    """In Havana they go from 0:00 to 1:00 in March, and from 1:00 to 0:00 in November."""
    timeline, last = between("2016-03-12", "2016-11-08", "s", "America/Havana")
    names, first = timeline.periods("D", 0, last)
    begin = dict(zip(names, timeline.instants(first), strict=True))
    assert str(begin["2016-03-13"]) == "2016-03-13 01:00:00-04:00"
    assert str(begin["2016-11-06"]) == "2016-11-06 00:00:00-04:00"
    lengths = dict(zip(names, np.diff(first) / 3600, strict=False))
    assert (lengths["2016-03-13"], lengths["2016-11-06"], lengths["2016-07-01"]) == (23, 25, 24)


def test_periods_are_known_beyond_the_years_of_nanoseconds():
    timeline, last = between("1500-02-27", "2500-03-02", "D")
    names, first = timeline.periods("Y", 0, last)
    assert (names[0], names[-1], len(names)) == ("1500", "2500", 1001)
    assert timeline.text(int(first[1])) == "1501-01-01"
    month = between("2020-02-29", "2020-02-29")[0].periods("M", 0, 0)
    assert (month[0], month[1].tolist()) == (("2020-02",), [0])


@pytest.mark.parametrize("freq", ["ME", "MS", "QE-DEC", "QS", "YE-DEC", "YS", "W-SUN"])
def test_frequencies_by_other_names_of_pandas(freq):
    timeline, last = between("2019-01-01", "2021-01-01", "D")
    assert timeline.periods(freq, 0, last)[0] == timeline.periods(freq[0], 0, last)[0]


@pytest.mark.parametrize("freq", ["X", "2M", "W-MON", "Q-JAN", "h", 5, None])
def test_other_frequencies_are_refused(freq):
    with pytest.raises(ParameterError, match="'freq' must be one of"):
        Timeline(0, "D").periods(freq, 0, 10)


def test_too_many_periods_are_refused():
    with pytest.raises(ParameterError, match="hold 200001 periods"):
        Timeline(-100_000, "D").periods("D", 0, 200_000)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", ["year", *FIELDS])
def test_fields_are_those_of_pandas_and_within_their_limits(name, zone):
    timeline, last = between("2016-01-01", "2020-12-31 23:00", "h", zone)
    numbers = np.arange(last + 1)
    index = pd.date_range(timeline.instants(numbers[:1])[0], periods=last + 1, freq="h")
    values = timeline.field(name)(numbers)
    assert values.tolist() == getattr(index, name.replace("dayof", "day_of_")).tolist()
    if name != "year":
        assert (values.min(), values.max()) == FIELDS[name]


def test_times_are_rounded_up():
    durations = times([0.0, 1e-9, 1.5, np.inf, np.nan])
    assert durations[:3].tolist() == [pd.Timedelta(0), pd.Timedelta("1us"), pd.Timedelta("1.5s")]
    assert durations[3].to_numpy() > np.timedelta64(10**6, "D")
    assert durations[4] is pd.NaT
