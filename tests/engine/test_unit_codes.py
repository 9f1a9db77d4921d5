"""Units of records: equal names are one unit, whatever type stores them and whichever engine holds them.

Each column names one person five times and another one once. With ``max_rows=1`` two records are left, so the
count before noise is 2: any other number says that one person was several, or two persons were one.
"""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, errors
from tests.support.engine_frames import frame_of

pa = pytest.importorskip("pyarrow", reason="the columns of these tests are Arrow's, too")


FLAG = Domain((Column("flag", "boolean"),))
EXACT = 10.0**6
"""An epsilon at which noise is 0, but for a chance far below 1e-100."""

TEMPERATURES = [0.0, -0.0, 0.0, -0.0, 0.0, 1.5]
NIGHT = dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC)
LATER = NIGHT + dt.timedelta(hours=1)  # the same time on the clocks of New York
YORK = ZoneInfo("America/New_York")


def count(frame: Any, **words: Any) -> int:
    """The exact number of records that are kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        private = pdprivacy.protect(frame, FLAG, epsilon=1e9, unit="who", max_rows=1, **words)
    return int(private.dp.count(epsilon=EXACT).iloc[0])


def objects(*cells: Any) -> pd.Series:
    return pd.Series(np.fromiter(cells, dtype=object, count=len(cells)), dtype=object)


def arrow(values: list[Any], kind: Any = None) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, kind)))


def dictionary(values: list[Any], kind: Any = None) -> Any:
    """An entry for each record, so that names are repeated."""
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values))), pa.array(values, kind))


def twice(first: Any, second: Any) -> list[Any]:
    return [first] * 5 + [second]


PANDAS: dict[str, pd.Series] = {
    "int64": pd.Series(twice(2**53, 2**53 + 1)),
    "uint64": pd.Series(twice(2**64 - 1, 2**64 - 2), dtype="uint64"),
    "float64": pd.Series(TEMPERATURES),
    "float32": pd.Series(TEMPERATURES, dtype="float32"),
    "long double": pd.Series(np.array(twice(1, np.longdouble(1) + np.longdouble(2) ** -60), np.longdouble)),
    "bool": pd.Series(twice(True, False)),
    "object of texts": objects(*twice("ann", "bob")),
    "object of texts that end alike in C": objects(*twice("ann", "ann\0")),
    "object of a lone surrogate": objects(*twice("\ud800", repr("\ud800"))),
    "object of equal numbers": objects(1, 1.0, True, np.float32(1), Decimal("1.00"), 2),
    "object of zeros": objects(0.0, -0.0, 0, False, Decimal("-0"), "0"),
    "object of days": objects(*twice(NIGHT.date(), NIGHT.replace(tzinfo=None))),
    "object of instants": objects(
        NIGHT, NIGHT.astimezone(YORK), pd.Timestamp(NIGHT), NIGHT, pd.Timestamp(NIGHT).tz_convert(YORK), LATER
    ),
    "object of times": objects(
        np.datetime64("2024-11-03"),
        np.datetime64("2024-11-03T00:00:00"),
        pd.Timestamp("2024-11-03"),
        dt.datetime(2024, 11, 3),
        np.datetime64("2024-11-03", "ns"),
        np.datetime64("2024-11-04"),
    ),
    "Int64": pd.Series(pd.array(twice(2**53, 2**53 + 1), dtype="Int64")),
    "Float64": pd.Series(pd.array(TEMPERATURES, dtype="Float64")),
    "boolean": pd.Series(pd.array(twice(True, False), dtype="boolean")),
    "string in Python": pd.Series(twice("ann", "bob"), dtype=pd.StringDtype("python")),
    "string in Arrow": pd.Series(twice("ann", "bob"), dtype=pd.StringDtype("pyarrow")),
    "categorical of texts": pd.Series(pd.Categorical(twice("ann", "bob"))),
    "categorical of doubles": pd.Series(pd.Categorical(twice(-0.0, 1.5))),
    "categorical of Arrow texts": arrow(twice("ann", "bob"), pa.string()).astype("category"),
    "datetime": pd.Series(pd.to_datetime(twice("2024-01-01", "2024-01-02"))),
    "datetime with a zone": pd.Series(pd.DatetimeIndex(twice(NIGHT, LATER)).tz_convert(YORK)),
    "timedelta": pd.Series(pd.to_timedelta(twice(1, 2), unit="s")),
    "period": pd.Series(pd.PeriodIndex(twice("2024-01", "2024-02"), freq="M")),
    "sparse": pd.Series(pd.arrays.SparseArray(twice(0, 1))),
}

ARROW: dict[str, Any] = {
    "int64": pa.array(twice(2**53, 2**53 + 1)),
    "uint64": pa.array(twice(2**64 - 1, 2**64 - 2), pa.uint64()),
    "double": pa.array(TEMPERATURES),
    "float": pa.array(TEMPERATURES, pa.float32()),
    "bool": pa.array(twice(True, False)),
    "string": pa.array(twice("ann", "bob")),
    "large string": pa.array(twice("ann", "ann\0"), pa.large_string()),
    "decimal": pa.array(twice(Decimal("1.00"), Decimal("1.01")), pa.decimal128(9, 2)),
    "day": pa.array(twice(NIGHT.date(), LATER.date() + dt.timedelta(days=1))),
    "timestamp": pa.array(twice(NIGHT.replace(tzinfo=None), LATER.replace(tzinfo=None)), pa.timestamp("us")),
    "timestamp with a zone": pa.array(twice(NIGHT, LATER), pa.timestamp("us", "America/New_York")),
    "duration": pa.array(twice(dt.timedelta(1), dt.timedelta(2))),
    "dictionary": dictionary(twice("ann", "bob")),
    "dictionary of zeros": dictionary(TEMPERATURES),
    "dictionary of numbers": dictionary(twice(1, 2), pa.int32()),
}


ENGINES = ("pandas of Arrow", "Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow")


@pytest.mark.parametrize("name", PANDAS)
def test_equal_names_are_one_unit_in_every_column_of_pandas(name):
    for order in (range(6), [5, 3, 1, 0, 2, 4]):
        names = PANDAS[name].iloc[list(order)].reset_index(drop=True)
        assert count(pd.DataFrame({"who": names, "flag": True})) == 2


def pairs(names: dict[str, Any], of_dask: set[str]) -> list[tuple[str, str]]:
    """Each column on each engine; Dask, which is slow, reads partitions by the functions of pandas frames."""
    return [(name, engine) for name in names for engine in ENGINES if engine != "Dask" or name in of_dask]


@pytest.mark.full(keep=26)
@pytest.mark.parametrize(("name", "engine"), pairs(ARROW, {"double", "bool", "dictionary", "decimal"}))
def test_equal_names_are_one_unit_in_every_column_of_every_engine(name, engine):
    table = pa.table({"who": ARROW[name], "flag": pa.array([True] * 6)})
    assert count(frame_of(engine, table)) == 2


NULLS: dict[str, Any] = {
    "int64": pa.array([1, None, 1]),
    "double": pa.array([1.0, None, 1.0]),
    "NaN": pa.array([1.0, float("nan"), 1.0]),
    "bool": pa.array([True, None, True]),
    "string": pa.array(["ann", None, "ann"]),
    "dictionary, null as an index": pa.DictionaryArray.from_arrays(pa.array([0, None, 0]), pa.array(["ann"])),
    "dictionary, null as an entry": dictionary(["ann", None, "ann"]),
    "dictionary of NaN": dictionary([1.0, float("nan"), 1.0]),
    "timestamp": pa.array([NIGHT, None, NIGHT], pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal(1), None, Decimal(1)]),
}
BLANKS: dict[str, pd.Series] = {
    "float64": pd.Series([1.0, np.nan, 1.0]),
    "object of None": objects("ann", None, "ann"),
    "object of NaN": objects("ann", float("nan"), "ann"),
    "object of NA": objects("ann", pd.NA, "ann"),
    "object of NaT": objects(NIGHT, pd.NaT, NIGHT),
    "object of a decimal NaN": objects(Decimal(1), Decimal("NaN"), Decimal(1)),
    "Int64": pd.Series(pd.array([1, None, 1], dtype="Int64")),
    "Float64 of NA": pd.Series(pd.array([1.0, None, 1.0], dtype="Float64")),
    "Float64 of NaN": pd.Series(pd.arrays.FloatingArray(np.array([1.0, np.nan]), np.zeros(2, bool))),
    "boolean": pd.Series(pd.array([True, None, True], dtype="boolean")),
    "categorical": pd.Series(pd.Categorical(["ann", None, "ann"])),
    "datetime": pd.Series(pd.DatetimeIndex([NIGHT, pd.NaT, NIGHT])),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, np.nan, 1.0])),
}


@pytest.mark.full(keep=17)
@pytest.mark.parametrize(("name", "engine"), pairs(NULLS, {"bool", "dictionary, null as an entry"}))
def test_a_record_of_nobody_is_refused_on_every_engine(name, engine):
    table = pa.table({"who": NULLS[name], "flag": pa.array([True] * 3)})
    with pytest.raises(errors.InvalidDataError, match="nulls"):
        count(frame_of(engine, table))


@pytest.mark.parametrize("name", BLANKS)
def test_a_record_of_nobody_is_refused_in_every_column_of_pandas(name):
    with pytest.raises(errors.InvalidDataError, match="nulls"):
        count(pd.DataFrame({"who": BLANKS[name], "flag": True}))


@pytest.mark.parametrize(
    "cells",
    [
        objects(Decimal("sNaN"), "CANARY"),
        objects((1, float("nan")), (1, float("nan"))),
        objects(1j, 1j),
        objects(object(), "CANARY"),
        objects(dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))), "CANARY"),
        pd.Series([1j, 1j]),
        pd.Series(pd.IntervalIndex.from_tuples([(0, 1), (0, 1)])),
        arrow([[1], [1]]),
        arrow([{"a": 1}, {"a": 1}]),
    ],
)
def test_cells_without_a_dependable_equality_are_no_names(cells):
    with pytest.raises(errors.InvalidDataError, match="must hold names") as refusal:
        count(pd.DataFrame({"who": cells, "flag": True}))
    assert "CANARY" not in str(refusal.value)


def test_names_that_are_clipped_to_one_bound_are_two_units():
    """Merged, the record of one would take the place of the other's and move a sum by their distance."""
    domain = Domain((Column("who", "integer", lower=0, upper=10),))
    frame = pd.DataFrame({"who": [20, 20, 30]})
    private = pdprivacy.protect(frame, domain, epsilon=1e9, unit="who", max_rows=1, on_invalid="clip")
    assert int(private.dp.count(epsilon=EXACT).iloc[0]) == 2


@pytest.mark.parametrize(
    ("most", "engine"), [(1, engine) for engine in ENGINES] + [(3, "pandas of Arrow"), (3, "DuckDB")]
)
def test_one_person_moves_the_exact_count_by_no_more_than_their_rows(engine, most):
    """A person has 50 records under 50 entries of one dictionary; at most so many are kept."""
    names = ["ann"] * 50 + ["bob"] * 2
    table = pa.table({"who": dictionary(names), "flag": pa.array([True] * 52)})
    without = table.slice(50)
    counts = []
    for rows in (table, without):
        private = pdprivacy.protect(frame_of(engine, rows), FLAG, epsilon=1e9, unit="who", max_rows=most)
        counts.append(int(private.dp.count(epsilon=EXACT).iloc[0]))
    assert counts == [most + min(most, 2), min(most, 2)]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="an Arrow without views")
def test_a_column_of_views_is_refused_before_the_budget_is_opened(tmp_path):
    """pandas chooses no records of such a frame."""
    views = pd.array(pa.array(["ann", "ann", "bob"], pa.string_view()), pd.ArrowDtype(pa.string_view()))
    frame = pd.DataFrame({"flag": [True, False, True], "person": views})
    ledger = pdprivacy.Ledger(tmp_path / "budgets.ledger")
    with pytest.raises(errors.InvalidDataError, match="an Arrow type of which pandas cannot select records"):
        frame.dp.protect(FLAG, epsilon=1, unit="person", max_rows=1, budget=ledger, name="survey")
    with pytest.raises(errors.LedgerError):
        ledger.budget("survey")


@pytest.mark.parametrize("kind", ["float64", "Float64", "double[pyarrow]", "float32"])
def test_floats_that_stand_for_several_integers_are_no_names(kind):
    """One null makes floats of a column of integers: one record would merge the persons of others."""
    names = [2**60, 2**60 + 1, 3] if kind != "float32" else [2**24, 2**24 + 1, 3]
    frame = pd.DataFrame({"flag": True, "person": pd.Series(names, dtype=float).astype(kind)})
    with pytest.raises(errors.InvalidDataError, match="floats that may stand for several integers"):
        frame.dp.protect(FLAG, epsilon=1, unit="person", max_rows=1)
    frame["person"] = pd.Series([0.5, np.inf, 2**24 - 1]).astype(kind)
    assert (
        frame.dp.protect(FLAG, epsilon=EXACT, unit="person", max_rows=1).dp.count(epsilon=EXACT).iloc[0] == 3
    )
