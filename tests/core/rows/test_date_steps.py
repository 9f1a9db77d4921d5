"""Row steps of dates against pandas: conditions, periods, fields and differences."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.errors import DeclarationError, DeclarationWarning, ParameterError, QueryError
from tests.support.snapshots import records_of

LOW, HIGH = pd.Timestamp("2018-12-30"), pd.Timestamp("2020-03-02")
ZONE = "Europe/Paris"
DP: dict[str, Any] = {"dp": {}}


def cells(rows: int = 600) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    seconds = draw.integers(0, int((HIGH - LOW).total_seconds()), rows)
    when = pd.Series((LOW + pd.to_timedelta(seconds, unit="s")).astype("datetime64[ns]"))
    zoned = pd.Series(when.dt.tz_localize("UTC").dt.tz_convert(ZONE).array)
    return pd.DataFrame(
        {
            "when": when.mask(np.arange(rows) % 9 == 4),
            "zoned": zoned,
            "day": when.dt.floor("D").sample(frac=1, random_state=1).to_numpy(),
        }
    )


def schema() -> pa.DataFrameSchema:
    ends = (LOW.tz_localize("UTC"), HIGH.tz_localize("UTC"))
    return pa.DataFrameSchema(
        {
            "when": pa.Column("datetime64[ns]", pa.Check.in_range(LOW, HIGH), nullable=True, metadata=DP),
            "zoned": pa.Column(pd.DatetimeTZDtype(tz=ZONE), pa.Check.in_range(*ends), metadata=DP),
            "day": pa.Column(
                "datetime64[ns]",
                pa.Check.in_range(LOW, HIGH),
                metadata={"dp": {"resolution": "D"}},
            ),
        }
    )


FRAME = cells()


@pytest.fixture(scope="module")
def private() -> pdprivacy.ProtectedFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # some dates are the bounds
        return FRAME.dp.protect(schema(), epsilon=10**6)


def records(frame: pdprivacy.ProtectedFrame) -> pd.DataFrame:
    return records_of(frame)


# ------------------------------------------------------------------ conditions


def at(text: str, zone: str | None = None) -> pd.Timestamp:
    return pd.Timestamp(text, tz=zone)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("when >= '2019-06-01'", lambda df: df["when"] >= at("2019-06-01")),
        ("when > '2019-06-01 12:00:00.5'", lambda df: df["when"] > at("2019-06-01 12:00:00.5")),
        ("when < '2019-06-01' or day == '2019-07-01'",
         lambda df: (df["when"] < at("2019-06-01")) | (df["day"] == at("2019-07-01"))),
        ("zoned <= '2019-10-27 04:00'", lambda df: df["zoned"] <= at("2019-10-27 04:00", ZONE)),
        ("'2019-02-01' <= when < '2019-03-01' and not zoned > '2019-02-20'",
         lambda df: df["when"].between(at("2019-02-01"), at("2019-02-28 23:59:59"))
         & ~(df["zoned"] > at("2019-02-20", ZONE))),
        ("day in ['2019-02-28', '2020-02-29']",
         lambda df: df["day"].isin([at("2019-02-28"), at("2020-02-29")])),
        ("day != '2020-02-29'", lambda df: df["day"] != at("2020-02-29")),
        ("when.isna() or day < '2019-01-02'", lambda df: df["when"].isna() | (df["day"] < at("2019-01-02"))),
    ],
)  # fmt: skip
def test_conditions_keep_the_records_that_pandas_keeps(private, text, kept):
    expected = FRAME.index[kept(FRAME)]
    assert records(private.query(text)).index.equals(expected)
    assert len(expected) > 0


def test_conditions_of_symbolic_columns_take_dates_of_python(private):
    kept = records(private[(private["when"] >= datetime.datetime(2019, 6, 1)) & private["day"].notna()])
    assert kept.index.equals(FRAME.index[FRAME["when"] >= "2019-06-01"])
    between = private[private["day"].between(pd.Timestamp("2019-02-01").date(), HIGH.to_pydatetime())]
    assert records(between).index.equals(FRAME.index[FRAME["day"] >= "2019-02-01"])
    narrowed = private[private["zoned"] < "2019-06-01"].dp.domain["zoned"]
    assert narrowed.end_text(narrowed.upper) == "2019-05-31 23:59:59+02:00"


@pytest.mark.parametrize(
    "text",
    ["when > 5", "when == 'now'", "when > True", "when >= '2019-06-01+02:00'", "zoned > '2019-03-31 02:30'"],
)
def test_conditions_with_what_is_no_date_are_refused(private, text):
    with pytest.raises(
        QueryError, match=r"compared with (must be a date|has a time zone|is not one instant)"
    ):
        private.query(text)


def test_dates_compare_with_no_cell(private):
    with pytest.raises(ParameterError, match="plain Python values"):
        private["when"] > np.datetime64("2019-01-01")  # noqa: B015
    with pytest.raises(ParameterError, match="plain Python values"):
        private["when"] - FRAME["when"].max()
    with pytest.raises(QueryError, match="no declared record"):
        private.query("when > '2030-01-01'")


# ------------------------------------------------------------------ periods


@pytest.mark.parametrize("freq", ["D", "W", "M", "Q", "Y"])
@pytest.mark.parametrize("name", ["when", "zoned", "day"])
def test_cut_gives_the_periods_of_pandas_in_order_and_the_empty_ones_too(private, name, freq):
    cut = private.cut(name, freq=freq)
    naive = FRAME[name].dt.tz_localize(None).dt.to_period(freq)
    periods = records(cut)[name]
    assert [None if pd.isna(period) else period for period in periods] == [
        None if period is pd.NaT else str(period) for period in naive
    ]
    ends = [LOW, HIGH]
    if name == "zoned":
        ends = [end.tz_localize("UTC").tz_convert(ZONE).tz_localize(None) for end in ends]
    declared = tuple(map(str, pd.period_range(*ends, freq=freq)))
    assert cut.dp.domain[name].categories == tuple(periods.cat.categories) == declared
    assert periods.cat.ordered
    assert cut.dp.domain[name].nullable == (name == "when")


def test_cut_of_dates_is_by_frequency_alone(private):
    for words in ({"bins": [1, 2]}, {"freq": "M", "labels": ["a"]}, {}):
        with pytest.raises(ParameterError, match="which 'cut' takes by 'freq' alone"):
            private.cut("when", **words)
    flag = pa.DataFrameSchema({"n": pa.Column(int, pa.Check.in_range(0, 9), metadata=DP)})
    numbers = pd.DataFrame({"n": [1, 5]}).dp.protect(flag, epsilon=1)
    with pytest.raises(DeclarationError, match="'freq' is for dates"):
        numbers.cut("n", freq="M")
    with pytest.raises(ParameterError, match="'cut' needs 'bins'"):
        numbers.cut("n")


# ------------------------------------------------------------------ fields and differences


@pytest.mark.parametrize("field", ["year", "quarter", "month", "day", "dayofyear", "dayofweek", "hour"])
@pytest.mark.parametrize("name", ["when", "zoned"])
def test_fields_are_those_of_pandas_with_public_labels(private, name, field):
    by_column = private.assign(made=getattr(private[name].dt, field))
    by_text = private.assign(made=f"{name}.dt.{field}")
    expected = getattr(FRAME[name].dt, field.replace("dayof", "day_of_"))
    for changed in (by_column, by_text):
        fields = records(changed)["made"]
        assert fields.isna().equals(expected.isna())
        assert fields.dropna().tolist() == expected.dropna().tolist()
        labels = changed.dp.domain["made"].labels("crosstab")
        assert set(expected.dropna()) <= set(labels)
        assert list(labels) == list(range(labels[0], labels[-1] + 1))
    assert by_column.dp.lineage["step"].tolist() == by_text.dp.lineage["step"].tolist()


def test_fields_that_dates_do_not_have_are_refused(private):
    for text, message in (
        ("day.dt.hour", "no field '.dt.hour'"),
        ("when.dt.week", "no field '.dt.week'"),
        ("(when - day).dt.year", "'.dt' is for a column of dates"),
    ):
        with pytest.raises(QueryError, match=message):
            private.assign(x=text)
    with pytest.raises(QueryError, match="no field"):
        private["day"].dt.hour  # noqa: B018
    months = private.assign(month=private["when"].dt.month)
    march = records(months[months["month"] == 3])
    assert set(march["month"]) == {3}
    assert records(private[private["when"].dt.month == 3]).index.equals(march.index)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("when - day", lambda df: df["when"] - df["day"]),
        ("when - '2019-06-01 06:00:00.5'", lambda df: df["when"] - pd.Timestamp("2019-06-01 06:00:00.5")),
        ("'2019-06-01' - when", lambda df: pd.Timestamp("2019-06-01") - df["when"]),
        ("abs(zoned - '2019-06-01')", lambda df: (df["zoned"] - pd.Timestamp("2019-06-01", tz=ZONE)).abs()),
        ("day - '2019-06-01'", lambda df: df["day"] - pd.Timestamp("2019-06-01")),
    ],
)
def test_differences_are_days_within_their_bounds(private, text, expected):
    """Differences of whole days are whole numbers; others are as exact as a double."""
    changed = private.assign(days=text)
    column, differences = changed.dp.domain["days"], records(changed)["days"]
    days = expected(FRAME) / pd.Timedelta(days=1)
    known = days.notna()
    assert differences.isna().equals(~known)
    assert np.abs(differences[known].astype(float) - days[known]).max() < 1e-9
    assert (differences.dropna() >= column.lower).all()
    assert (differences.dropna() <= column.upper).all()
    assert column.kind == ("integer" if text.startswith("day -") else "float")


def test_bounds_of_differences_are_reached_by_the_extremes(private):
    ends = private.assign(a="when - day", b="when - '2019-01-01'", c="'2019-01-01' - when").dp.domain
    width = (HIGH - LOW).days
    assert ends["a"].bounds("mean") == (-width, width)
    assert ends["b"].bounds("mean") == (-2, 426)
    assert ends["c"].bounds("mean") == (-426, 2)


@pytest.mark.parametrize(
    "text", ["when + 1", "when * 2", "when - 1", "when - zoned", "-when", "when - day - when", "abs(when)"]
)
def test_other_arithmetic_of_dates_is_refused(private, text):
    with pytest.raises(QueryError, match=r"holds dates|a date with a time zone"):
        private.assign(x=text)


# ------------------------------------------------------------------ clip and fillna


def test_clip_moves_dates_and_their_bounds(private):
    start = pd.Timestamp("2019-06-01")
    clipped = private.clip(lower=start.to_pydatetime(), columns=["when", "day"]).clip(
        upper={"day": "2019-12-31"}
    )
    moved = records(clipped)
    timeline = clipped.dp.domain["day"].timeline
    expected = FRAME["day"].clip(start, pd.Timestamp("2019-12-31"))
    assert timeline.instants(moved["day"].to_numpy(np.int64)).tolist() == expected.tolist()
    assert [clipped.dp.domain["day"].end_text(end) for end in (152 + 1, 367)] == ["2019-06-01", "2020-01-01"]
    assert clipped.dp.domain["zoned"] == private.dp.domain["zoned"]
    assigned = private.assign(later=private["when"].clip(lower="2019-06-01")).dp.domain["later"]
    assert assigned.end_text(assigned.lower) == "2019-06-01"


def test_numbers_and_dates_are_clipped_each_by_its_own(private):
    with_days = private.assign(days="when - '2019-01-01'")
    assert with_days.clip(upper=10).dp.domain["when"] == private.dp.domain["when"]
    assert (
        with_days.clip(upper=str(HIGH - pd.Timedelta(days=9)), columns="when").dp.domain["days"].upper == 426
    )
    with pytest.raises(ParameterError, match="must be a date"):
        private.clip(upper={"when": 10})
    with pytest.raises(ParameterError, match="must be a finite number"):
        with_days.clip(upper={"days": HIGH})


def test_nulls_are_filled_with_a_date_that_may_widen_the_bounds(private):
    filled = private.fillna({"when": "2019-06-01"})
    assert not filled.dp.domain["when"].nullable
    dates = filled.dp.domain["when"].timeline.instants(records(filled)["when"].to_numpy(np.int64))
    assert dates.tolist() == FRAME["when"].fillna(pd.Timestamp("2019-06-01")).dt.floor("s").tolist()
    later = private.fillna({"when": "2021-01-01"}).dp.domain["when"]
    assert later.end_text(later.upper) == "2021-01-01"
    earlier = private.fillna({"when": "2017-01-01"})
    assert earlier.dp.domain["when"].end_text(earlier.dp.domain["when"].lower) == "2017-01-01"
    assert int((records(earlier)["when"] < 0).sum()) == FRAME["when"].isna().sum()
    with pytest.raises(ParameterError, match="must be a date"):
        private.fillna({"when": 5})


@pytest.mark.parametrize("cells", [[], ["2020-01-05"] * 3, ["2020-01-05", None]])
@pytest.mark.parametrize("far", ["9999-12-31", "0001-01-01", "2262-04-12", "2290-01-01"])
def test_constants_that_the_resolution_cannot_hold_are_refused_whatever_the_cells_are(cells, far):
    schema = pa.DataFrameSchema(
        {
            "a": pa.Column(
                None,
                pa.Check.in_range("2020-01-01", "2020-02-01"),
                nullable=True,
                metadata={"dp": {"resolution": "ns"}},
            )
        }
    )
    private = pdprivacy.protect(
        pd.DataFrame({"a": pd.Series(cells, dtype="datetime64[ns]")}), schema, epsilon=10
    )
    beyond = {"lower": {"a": far}} if far > "2020" else {"upper": {"a": far}}
    steps = [
        lambda: private.fillna({"a": far}),
        lambda: private.clip(**beyond),
        lambda: private.assign(a=private["a"].fillna(far)),
    ]
    for step in steps:
        with pytest.raises(DeclarationError, match="must be within 1677-09-21"):
            step()
    # on the other side, a bound moves nothing
    beside = {"upper": {"a": far}} if far > "2020" else {"lower": {"a": far}}
    assert private.clip(**beside).dp.mean("a", epsilon=1, rng=1).notna().all()
    assert private.dp.budget.left[0] == 9


def test_constants_that_leave_too_many_units_are_refused():
    schema = pa.DataFrameSchema(
        {
            "a": pa.Column(
                None,
                pa.Check.in_range("2020-01-01", "2020-02-01"),
                nullable=True,
                metadata={"dp": {"resolution": "us"}},
            )
        }
    )
    frame = pd.DataFrame({"a": pd.Series(["2020-01-05", None], dtype="datetime64[us]")})
    private = pdprivacy.protect(frame, schema, epsilon=10)
    with pytest.raises(DeclarationError, match=r"more than 2\*\*52 units"):
        private.fillna({"a": "9999-12-31"})


@pytest.mark.parametrize("text", ["2020-10-25 02:30", "2020-03-29 02:30"])
def test_the_hint_at_a_date_that_is_no_single_instant_runs(text):
    ends = [pd.Timestamp(day, tz=ZONE) for day in ("2020-01-01", "2021-01-01")]
    zoned = pa.Column(pd.DatetimeTZDtype(tz=ZONE), pa.Check.in_range(*ends), metadata=DP)
    cells = pd.Series(pd.date_range(*ends, freq="D", inclusive="neither", unit="ns"))
    private = pdprivacy.protect(
        pd.DataFrame({"the day": cells}), pa.DataFrameSchema({"the day": zoned}), epsilon=10
    )
    with pytest.raises(QueryError) as refused:
        private[private["the day"] >= text]
    assert refused.value.hint is not None
    kept = eval(refused.value.hint, {"private": private})
    lower = kept.dp.domain["the day"]
    start = pd.Timestamp(lower.end_text(lower.lower))
    assert abs(start.tz_localize(None) - pd.Timestamp(text)) <= pd.Timedelta(hours=1)
