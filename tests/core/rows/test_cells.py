"""Cells of dates as numbers: the same for every dtype that holds them."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from pdprivacy.core.rows.cells import clipped_dates, codes, counted
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.timeline import Timeline

FIRST = pd.Timestamp("2020-01-01")
TEXTS = ["2020-01-01", "2020-02-29 12:00:01.9", "1999-12-31 23:59:59.9", "2020-12-31", "2021-01-01", None]
LAST = 365 * 86_400
SECONDS = [0, 59 * 86_400 + 43_201, -1, LAST, LAST + 1, None]


def column(zone: str | None = None, unit: str = "s") -> Column:
    start = int(FIRST.tz_localize(zone or "UTC").timestamp()) // (86_400 if unit == "D" else 1)
    upper = 365 if unit == "D" else LAST
    return Column("t", "integer", True, lower=0, upper=upper, timeline=Timeline(start, unit, zone))


def stamps(dtype: str) -> pd.Series:
    return pd.Series(pd.to_datetime(pd.Series(TEXTS), format="ISO8601").astype(dtype))


NAIVE = {
    **{unit: stamps(f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")},
    "objects": pd.Series(
        [None if t is None else pd.Timestamp(t).to_pydatetime() for t in TEXTS], dtype=object
    ),
    "NumPy": pd.Series(
        [np.datetime64("NaT", "s") if t is None else np.datetime64(t) for t in TEXTS], dtype=object
    ),
    "categories": stamps("datetime64[ns]").astype("category"),
    "sparse": stamps("datetime64[ns]").astype(pd.SparseDtype("datetime64[ns]")),
}


def listed(numbers: pd.Series) -> list[int | None]:
    return [None if pd.isna(number) else int(number) for number in numbers.tolist()]


@pytest.mark.parametrize("name", NAIVE)
def test_dates_of_every_dtype_are_the_same_numbers(name):
    numbers = counted(NAIVE[name], column())
    # seconds hold no tenths: the date before the first declared one is 1999 all the same
    assert (listed(numbers), str(numbers.dtype)) == (SECONDS, "Int64")


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("stored", ["UTC", "Europe/Paris"])
def test_dates_with_a_time_zone_are_counted_as_instants(unit, stored):
    local = pd.to_datetime(pd.Series(TEXTS), format="ISO8601").dt.tz_localize("Europe/Paris")
    cells = local.astype(f"datetime64[{unit}, Europe/Paris]").dt.tz_convert(stored)
    assert listed(counted(cells, column("Europe/Paris"))) == SECONDS
    assert listed(counted(cells.astype(object), column("Europe/Paris"))) == SECONDS


def test_dates_of_arrow_are_the_same_numbers():
    pa = pytest.importorskip("pyarrow")
    for unit in ("s", "ms", "us", "ns"):
        cells = stamps(f"datetime64[{unit}]").astype(pd.ArrowDtype(pa.timestamp(unit)))
        assert listed(counted(cells, column())) == SECONDS
    days = pd.Series([None if t is None else pd.Timestamp(t).date() for t in TEXTS])
    expected = [0, 59, -1, 365, 366, None]
    assert listed(counted(days.astype(pd.ArrowDtype(pa.date32())), column(unit="D"))) == expected
    assert listed(counted(days, column(unit="D"))) == expected


def test_cells_of_objects_that_are_no_dates_stay_findable():
    """A number would count as one of seconds; a time zone where none is declared would be another instant."""
    cells = [FIRST, 5, "2020-01-05", FIRST.tz_localize("UTC"), datetime.timedelta(1), None]
    numbers = counted(pd.Series(cells, dtype=object), column())
    assert numbers.tolist() == [0, "", "", "", "", None]
    aware = counted(pd.Series([FIRST, FIRST.tz_localize("UTC")], dtype=object), column("UTC"))
    assert aware.tolist() == ["", 0]


def test_dates_far_away_are_outside_and_no_error():
    far = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31), datetime.date(9999, 12, 31)]
    assert listed(counted(pd.Series(far, dtype=object), column())) == [-1, LAST + 1, LAST + 1]
    seconds = pd.Series(np.array([-(2**62), 2**62], dtype="datetime64[s]"))
    assert listed(counted(seconds, column())) == [-1, LAST + 1]


@pytest.mark.parametrize("name", [name for name in NAIVE if name not in ("categories", "sparse")])
def test_dates_outside_are_moved_to_the_nearest_bound_and_all_others_stay(name):
    cells = NAIVE[name]
    moved = clipped_dates(cells, column())
    assert moved.dtype == cells.dtype
    inside = [0, 1, 3, 5]
    assert moved.iloc[inside].equals(cells.iloc[inside])
    assert [pd.Timestamp(moved.iloc[index]) for index in (2, 4)] == [FIRST, pd.Timestamp("2020-12-31")]
    assert listed(counted(moved, column())) == [0, SECONDS[1], 0, LAST, LAST, None]


def test_days_of_python_stay_days_when_they_are_moved():
    days = pd.Series([datetime.date(1999, 1, 1), datetime.date(2020, 5, 5), None], dtype=object)
    moved = clipped_dates(days, column(unit="D"))
    assert moved.tolist() == [datetime.date(2020, 1, 1), datetime.date(2020, 5, 5), None]


def test_a_cell_with_an_equality_of_its_own_moves_no_other_cell():
    for own_hash in range(64):  # some of them are near that of "red" in the table of pandas

        class Equal(str):
            __slots__ = ()

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self, own_hash: int = own_hash) -> int:
                return own_hash

        cells = pd.Series([Equal("blue"), "red", None, "red"], dtype=object)
        assert codes(cells, ["red"]).tolist() == [-1, 0, -1, 0]
