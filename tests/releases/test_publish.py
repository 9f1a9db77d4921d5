"""Releases of dates: those of whole numbers, published as dates; exact losses; the same on every engine."""

from __future__ import annotations

import datetime
import itertools
import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import (
    DeclarationError,
    DeclarationWarning,
    InvalidDataError,
    MetadataError,
    ParameterError,
)
from pdprivacy.pipeline.release_schema import violations
from pdprivacy.pipeline.storage import from_bytes, to_bytes
from tests.support import engine_frames
from tests.support.neighbours import loss_of, losses_of
from tests.support.oracle_frames import available
from tests.support.snapshots import records_of

ZONE = "Europe/Paris"
START = pd.Timestamp("2020-01-01")
DAYS = 730


def dates(name: str, unit: Any = "s", zone: str | None = None, nullable: bool = True) -> Column:
    first = START.tz_localize(zone or "UTC").timestamp()
    size = pd.Timedelta(1, unit).total_seconds()
    upper = int(DAYS * 86_400 / size)
    return Column(
        name, "integer", nullable, lower=0, upper=upper, timeline=Timeline(int(first / size), unit, zone)
    )


DOMAIN = Domain(
    (
        dates("when"),
        dates("zoned", zone=ZONE),
        dates("day", "D", nullable=False),
        Column("g", "category", categories=("a", "b", "c")),
    )
)


def table(rows: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    seconds = draw.integers(0, DAYS * 86_400, rows)
    when = pd.Series((START + pd.to_timedelta(seconds, unit="s")).astype("datetime64[us]"))
    return pd.DataFrame(
        {
            "when": when.mask(np.arange(rows) % 11 == 0),
            "zoned": when.dt.tz_localize("UTC").dt.tz_convert(ZONE).mask(np.arange(rows) % 7 == 0),
            "day": when.dt.floor("D"),
            "g": draw.choice(["a", "b"], rows),
        }
    )


def protect(frame: Any, domain: Domain = DOMAIN, **options: Any) -> pdprivacy.ProtectedFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # some dates are the bounds
        return pdprivacy.protect(frame, domain, **{"epsilon": 10**9, "delta": 0.5, **options})


TABLE = table()


@pytest.fixture(scope="module")
def private() -> pdprivacy.ProtectedFrame:
    return protect(TABLE)


# ------------------------------------------------------------------ numbers as dates

RELEASES: dict[str, Callable[[Any], Any]] = {
    "mean": lambda dp: dp.mean("when", epsilon=1, rng=1),
    "mean of several": lambda dp: dp.mean(["when", "day"], epsilon=1, rng=1),
    "mean, bounding": lambda dp: dp.mean("when", epsilon=1, rng=1, bounding="truncated"),
    "mean, releases": lambda dp: dp.mean(["when", "day"], epsilon=1, rng=1, releases=3),
    "mean, Gaussian": lambda dp: dp.mean("when", epsilon=1, delta=1e-6, mechanism="gaussian", rng=1),
    "groupby mean": lambda dp: dp.groupby("g").mean(["when", "day"], epsilon=1, rng=1),
    "median": lambda dp: dp.median("zoned", epsilon=1, rng=1),
    "quantile": lambda dp: dp.quantile(["when", "day"], [0.1, 0.9], epsilon=1, rng=1),
    "min": lambda dp: dp.min("day", epsilon=1, rng=1),
    "max, releases": lambda dp: dp.max("zoned", epsilon=1, rng=1, releases=2),
}
NUMBERS = Domain(
    tuple(Column(c.name, c.kind, c.nullable, c.lower, c.upper, c.categories) for c in DOMAIN.columns)
)


def numbers_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table with numbers in the place of dates, counted by pandas."""
    counted = frame.copy()
    for name in ("when", "zoned", "day"):
        timeline = DOMAIN[name].timeline
        size = pd.Timedelta(1, timeline.unit)
        counted[name] = ((frame[name] - START.tz_localize(timeline.zone)) // size).astype("Int64")
    return counted


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_of_dates_is_that_of_their_numbers(private, name):
    """With the same noise, and the same charge, scale and sensitivity."""
    released, plain = (
        RELEASES[name](private.dp),
        RELEASES[name](protect(numbers_of(TABLE)[list(TABLE)], NUMBERS).dp),
    )
    facts, other = released.dp.metadata, plain.dp.metadata
    assert (facts.sensitivity, facts.scale, facts.split) == (other.sensitivity, other.scale, other.split)
    assert (facts.epsilon, facts.delta, facts.mechanism) == (other.epsilon, other.delta, other.mechanism)
    as_frame, numbers = pd.DataFrame(released), pd.DataFrame(plain)
    by_row = isinstance(released, pd.Series) or ("groupby" not in name and name != "quantile")
    for row, column in itertools.product(range(len(as_frame)), range(as_frame.shape[1])):
        label = as_frame.index[row] if by_row else as_frame.columns[column]
        timeline = DOMAIN[label[-1] if isinstance(label, tuple) else label].timeline
        size, start = pd.Timedelta(1, timeline.unit), START.tz_localize(timeline.zone)
        off = (as_frame.iloc[row, column] - start) / size - numbers.iloc[row, column]
        assert abs(off) <= 0.5 * pd.Timedelta("1s") / size + 1e-6


def test_errors_are_times_and_intervals_are_dates(private):
    released = private.dp.mean(["when", "day"], epsilon=1, rng=1)
    plain = protect(numbers_of(TABLE), NUMBERS).dp.mean(["when", "day"], epsilon=1, rng=1)
    error, other = released.attrs["dp"]["error"], plain.attrs["dp"]["error"]
    sizes = [1, 86_400]
    assert error["unit"] == "s"
    assert error["standard_error"] == pytest.approx(np.multiply(other["standard_error"], sizes).tolist())
    assert error["plus_minus"] == pytest.approx((np.multiply(other["plus_minus"], sizes) + 0.5).tolist())
    interval = released.dp.interval()
    half = pd.to_timedelta(error["plus_minus"], unit="s")
    for end, sign in (("lower", -1), ("upper", 1)):
        off = interval[end] - (released + sign * half)
        assert (off.abs() < pd.Timedelta("2us")).all()
    assert (interval["standard_error"] / pd.Timedelta("1s")).tolist() == pytest.approx(
        error["standard_error"]
    )
    grouped = private.dp.groupby("g").mean("zoned", epsilon=1, rng=1).dp.interval()
    assert grouped["lower"].dtypes.iloc[0].tz is not None
    assert (grouped["lower"] < grouped["upper"]).all(axis=None)


@pytest.mark.full
def test_intervals_hold_the_true_mean():
    """95 of 100, of means of a known frame; 400 draws."""
    numbers = numbers_of(TABLE)
    truth = START + pd.Timedelta(seconds=float(numbers["when"].mean()))
    private, hits = protect(TABLE), 0
    for seed in range(400):
        ends = private.dp.mean("when", epsilon=0.3, rng=seed).dp.interval().loc["when"]
        hits += bool(ends["lower"] <= truth <= ends["upper"])
    assert 0.92 * 400 <= hits <= 0.985 * 400


def test_metadata_is_plain_json_and_the_fingerprint_tells_changes(private):
    for name, release in RELEASES.items():
        released = release(private.dp)
        assert json.loads(json.dumps(released.attrs["dp"])) == released.attrs["dp"], name
        assert released.dp.verify()
        changed = released + pd.Timedelta("1s")
        changed.attrs = released.attrs
        assert not changed.dp.verify()
        stored = from_bytes(to_bytes(released)[0])
        assert stored.equals(released)
        assert stored.dp.verify()
        assert violations(released, released.dp.schema()) == ()
        assert violations(changed.astype(str), released.dp.schema()) != ()


def test_bounds_in_the_metadata_are_texts_of_dates(private):
    released = private.dp.mean("zoned", epsilon=1, bounding="clamp")
    assert released.attrs["dp"]["bounds"] == ["2020-01-01 00:00:00+01:00", "2021-12-31 00:00:00+01:00"]
    assert released.attrs["dp"]["value_bounds"] is None
    assert released.between(START.tz_localize(ZONE), START.tz_localize(ZONE) + pd.Timedelta(days=DAYS)).all()


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (lambda dp: dp.sum("when", epsilon=1), "'sum' is for numbers"),
        (lambda dp: dp.std("when", epsilon=1), "'std' is for numbers"),
        (lambda dp: dp.describe("when", epsilon=1), "'describe' is for numbers"),
        (lambda dp: dp.cov(["when", "day"], epsilon=1), "'cov' is for numbers"),
        (lambda dp: dp.histogram("when", epsilon=1), "'histogram' is for numbers"),
        (lambda dp: dp.kmeans("day", 2, epsilon=1, progress=False), "'kmeans' is for numbers"),
        (lambda dp: dp.value_counts("when", epsilon=1), "needs the cells of column 'when'"),
        (lambda dp: dp.crosstab("g", "when", epsilon=1), "needs the cells of column 'when'"),
        (lambda dp: dp.mode("when", epsilon=1), "needs the cells of column 'when'"),
        (lambda dp: dp.groupby("when"), "needs the cells of column 'when'"),
        (lambda dp: dp.groupby("g", freq="M"), "one column of dates"),
        (lambda dp: dp.groupby(pd.Grouper(freq="D")), "needs 'key' and 'freq'"),
        (lambda dp: dp.mean(["when", "zoned"], epsilon=1), "one time zone"),
        (lambda dp: dp.median(["when", "zoned"], epsilon=1), "one time zone"),
        (lambda dp: dp.mean("when", epsilon=1, bounding="clamp", bounds=(0, 1)), "'bounds' are for numbers"),
        (lambda dp: dp.mean(epsilon=1), "found no declared column with bounds"),
        (lambda dp: dp.compare_sampling("mean", "day", epsilon=1), "of dates is not compared"),
        (lambda dp: dp.plan.mean("when", epsilon=1, rows=9, at=3), "'at' is for numbers"),
    ],
)
def test_statistics_of_numbers_or_labels_are_refused_and_cost_nothing(private, release, message):
    spent = private.dp.budget.spent
    with pytest.raises((DeclarationError, ParameterError), match=message):
        release(private.dp)
    assert private.dp.budget.spent == spent


def test_dates_are_taken_by_themselves():
    domain = Domain((*DOMAIN.columns, Column("n", "integer", lower=0, upper=9)))
    private = protect(TABLE.assign(n=3), domain)
    with pytest.raises(ParameterError, match="takes dates by themselves"):
        private.dp.mean(["n", "when"], epsilon=1)
    assert list(private.dp.mean(epsilon=1).index) == ["n"]
    assert list(private.dp.groupby("g").mean(epsilon=1).columns) == ["n"]


def test_means_of_dates_are_not_combined(private):
    with pytest.raises(MetadataError, match="holds dates"):
        pdprivacy.combine(private.dp.mean("when", epsilon=1, releases=2), variance=1.0)


# ------------------------------------------------------------------ the declaration and the data


def test_other_types_than_declared_are_refused_before_a_cell_is_read():
    naive, aware = Domain((DOMAIN["when"],)), Domain((DOMAIN["zoned"],))
    stamps = pd.to_datetime(["2020-01-05", "2020-01-06"])
    for domain, name, cells in (
        (naive, "when", stamps.tz_localize("UTC")),
        (naive, "when", [5, 6]),
        (naive, "when", ["2020-01-05", "2020-01-06"]),
        (naive, "when", [pd.Timestamp("2020-01-05"), "2020-01-06"]),
        (naive, "when", pd.to_timedelta([5, 6], unit="D")),
        (aware, "zoned", stamps),
        (aware, "zoned", [datetime.date(2020, 1, 5), datetime.date(2020, 1, 6)]),
    ):
        for fate in ("raise", "clip", "drop"):
            with pytest.raises(InvalidDataError, match="date") as caught:
                protect(pd.DataFrame({name: cells}), domain, on_invalid=fate)
            assert "2020-01" not in str(caught.value)


def test_dates_out_of_bounds_have_their_declared_fate():
    frame = pd.DataFrame(
        {"day": [START, START - pd.Timedelta("1D"), START + pd.Timedelta(days=DAYS + 3), pd.NaT]}
    )
    domain = Domain((dates("day", "D"),))
    with pytest.raises(InvalidDataError, match=r"values outside \[2020-01-01, 2021-12-31\]"):
        protect(frame, domain)
    clipped = protect(frame, domain, on_invalid="clip")
    assert records_of(clipped)["day"].tolist() == [0, 0, DAYS, pd.NA]
    assert clipped.dp.quality().loc["day"].tolist() == [2, 1, 0, 0]
    dropped = protect(frame, domain, on_invalid="drop")
    assert records_of(dropped)["day"].tolist() == [0, pd.NA]


def test_records_of_a_unit_and_equal_labels_of_an_index():
    frame = TABLE.set_axis([0] * len(TABLE), axis=0).assign(who=np.arange(len(TABLE)) // 2)
    private = protect(frame, unit="who", max_rows=2)
    assert private.dp.mean("when", epsilon=1).dp.metadata.sensitivity["count of when"] == 2


# ------------------------------------------------------------------ privacy

FEW = Domain((dates("day", "D"), Column("g", "category", categories=("a", "b"))))
LAST = START + pd.Timedelta(days=DAYS)
RECORDS = [(START, "a"), (LAST, "a"), (START + pd.Timedelta(days=365), "b"), (pd.NaT, "a"), (LAST, "b")]


def few(records: list[tuple[Any, str]], **options: Any) -> pdprivacy.ProtectedFrame:
    frame = pd.DataFrame(
        {
            "day": pd.Series([day for day, _ in records], dtype="datetime64[s]"),
            "g": pd.Series([g for _, g in records], dtype=object),
        }
    )
    return protect(frame, FEW, **options)


def pairs(neighbors: str) -> list[tuple[list[Any], list[Any]]]:
    """All neighbouring tables of at most two records, of the extreme records and some others."""
    tables = [list(rows) for size in (0, 1) for rows in itertools.product(RECORDS, repeat=size)]
    if neighbors == "add_remove":
        return [(rows, [*rows, record]) for rows in tables for record in RECORDS]
    replacements = itertools.product(tables, RECORDS, RECORDS)
    return [([*rows, first], [*rows, second]) for rows, first, second in replacements if first is not second]


@cache
def protected_pairs(neighbors: str) -> list[tuple[pdprivacy.ProtectedFrame, pdprivacy.ProtectedFrame]]:
    """The same, each table protected once for all releases."""

    @cache
    def protected(*records: Any) -> pdprivacy.ProtectedFrame:
        return few(list(records), neighbors=neighbors)

    return [(protected(*first), protected(*second)) for first, second in pairs(neighbors)]


def total(records: list[Any]) -> tuple[int, float]:
    """The number of dates, and the sum of their days from the middle of the bounds."""
    known = [(day - START).days - DAYS / 2 for day, _ in records if day is not pd.NaT]
    return len(known), sum(known)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_sensitivity_of_a_mean_of_dates_is_the_largest_change_over_all_neighbours(neighbors):
    stated = few(RECORDS, neighbors=neighbors).dp.mean("day", epsilon=1).dp.metadata.sensitivity
    moves = [(abs(a[0] - b[0]), abs(a[1] - b[1])) for a, b in (map(total, pair) for pair in pairs(neighbors))]
    assert stated == {
        "count of day": max(count for count, _ in moves),
        "sum of day": max(days for _, days in moves),
    }


LOSSES: dict[str, Callable[[Any], Any]] = {
    "mean": lambda dp: dp.mean("day", epsilon=1, rng=1),
    "groupby mean": lambda dp: dp.groupby("g").mean("day", epsilon=1, rng=1),
    "median": lambda dp: dp.median("day", epsilon=1, rng=1),
    "max": lambda dp: dp.max("day", epsilon=1, rng=1),
    "periods": lambda dp: dp.groupby("day", freq="Q").count(epsilon=1, rng=1),
    "fields": lambda dp: dp.assign(m="day.dt.month").dp.crosstab("m", "g", epsilon=1, rng=1),
    "differences": lambda dp: dp.assign(d="day - '2020-06-01'").dp.sum("d", epsilon=1, rng=1),
}


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", LOSSES)
def test_neighbouring_tables_of_dates_lose_the_charge_and_no_more(name, neighbors):
    """The exact loss of every pair is within the charge, and that of the worst one near it.

    A record that is replaced moves the count of dates, or the sum by the whole range, but not both.
    """
    losses = losses_of(protected_pairs(neighbors)[:: 1 if name == "mean" else 3], LOSSES[name])
    assert all(loss.kept for loss in losses)
    least = {"add_remove": 0.99, "replace_one": 0.74}[neighbors] if name == "mean" else 0.3
    assert max(loss.epsilon for loss in losses) > least


def test_a_date_out_of_bounds_loses_no_more_than_one_within():
    far = pd.Timedelta(days=10**5).as_unit("s")
    outside = [(START.as_unit("s") - far, "a"), (LAST.as_unit("s") + far, "b")]
    for fate in ("clip", "drop"):
        for record in outside:
            pair = (few([], on_invalid=fate), few([record], on_invalid=fate))
            for release in LOSSES.values():
                assert loss_of(*pair, release).kept


# ------------------------------------------------------------------ engines


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("engine", ["Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow"])
def test_every_engine_gives_the_same_dates(private, engine):
    pa = pytest.importorskip("pyarrow")
    if not available(engine):
        pytest.skip(f"{engine} is not installed")
    frame = engine_frames.ENGINES[engine](pa.Table.from_pandas(TABLE, preserve_index=False))
    other = protect(frame)
    releases = {
        **RELEASES,
        **{name: LOSSES[name] for name in ("periods", "fields", "differences")},
        "condition": lambda dp: dp.query("when >= '2020-06-01'").dp.mean("zoned", epsilon=1, rng=1),
        "hours": lambda dp: dp.assign(h="zoned.dt.hour").dp.value_counts("h", epsilon=1, rng=1, sort=False),
    }
    for name, release in releases.items():
        expected, actual = release(private.dp), release(other.dp)
        assert actual.equals(expected), name
        assert actual.dp.metadata.fingerprint == expected.dp.metadata.fingerprint


def protected_dates(
    ends: dict[str, tuple[str, str]], units: dict[str, str], days: dict[str, list[str]]
) -> Any:
    schema = pa.DataFrameSchema(
        {
            name: pa.Column(
                None,
                pa.Check.in_range(*pair),
                metadata={"dp": {"resolution": units[name], "bounds": "public"}},
            )
            for name, pair in ends.items()
        }
    )
    cells = {name: pd.Series(day, dtype="datetime64[us]") for name, day in days.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        return pdprivacy.protect(pd.DataFrame(cells), schema, epsilon=10**9)


def test_means_of_nanoseconds_and_of_seconds_are_published_together():
    """Much noise moves the mean of seconds to years that no 64 bits of nanoseconds hold."""
    private = protected_dates(
        {"a": ("2000-01-01", "2021-01-01"), "b": ("2020-01-01", "2020-02-01")},
        {"a": "s", "b": "ns"},
        {"a": ["2020-03-01"] * 50, "b": ["2020-01-03"] * 50},
    )
    years = set()
    for seed in range(40):
        mean = private.dp.mean(["a", "b"], epsilon="0.005", rng=seed)
        assert mean.dtype == "datetime64[us]"
        interval = mean.dp.interval()
        assert ((interval["lower"] <= mean) & (mean <= interval["upper"])).all()
        years.add(mean.dp.unprojected()["a"].year)
    assert max(years) > 2262
    exact = private.dp.mean(["a", "b"], epsilon=10**7, rng=1)
    assert abs(exact["b"] - pd.Timestamp("2020-01-03")) < pd.Timedelta(seconds=10)


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_intervals_hold_the_first_and_the_last_day_of_the_calendar(day):
    private = protected_dates({"a": ("0001-01-01", "9999-12-31")}, {"a": "D"}, {"a": [day] * 500})
    truth = pd.Timestamp(day).as_unit("us")
    assert private.dp.domain["a"].end_text(private.dp.domain["a"].upper) == "9999-12-31"
    intervals = [private.dp.mean("a", epsilon=10**7, rng=seed).dp.interval().iloc[0] for seed in range(20)]
    assert sum(interval["lower"] <= truth <= interval["upper"] for interval in intervals) >= 17
