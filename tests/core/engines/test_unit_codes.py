"""Units of records: equal names are one unit, whatever type stores them and whichever engine holds them.

Each column names one person five times and another one once. With ``max_rows=1`` two records are left, so the
count before noise is 2: any other number says that one person was several, or two persons were one.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
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
    "object of equal integers": objects(1, np.int64(1), np.uint8(1), 1, np.uint64(1), 2),
    "object of large integers": objects(*twice(10**30, 10**30 + 1)),
    "object of zeros": objects(0.0, -0.0, np.float64(0), np.float64(-0.0), 0.0, 0.5),
    "object of equal decimals": objects(
        Decimal(1), Decimal("1.00"), Decimal("1.0"), *[Decimal(1)] * 2, Decimal(2)
    ),
    "object of days": objects(*twice(NIGHT.date(), LATER.date() + dt.timedelta(days=1))),
    "object of durations": objects(
        dt.timedelta(1),
        pd.Timedelta(1, "D"),
        np.timedelta64(1, "D"),
        np.timedelta64(24, "h"),
        dt.timedelta(1),
        dt.timedelta(2),
    ),
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
        objects(*[dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))] * 2),
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


MIXED: dict[str, list[Any]] = {
    "integers and text": [7, "7"],
    "integers and floats": [7, 7.0],
    "integers of NumPy and floats": [np.int64(7), np.float64(7)],
    "integers and truth values": [1, True],
    "floats and truth values": [1.0, np.True_],
    "text and truth values": ["True", True],
    "bytes and text": [b"7", "7"],
    "decimals and integers": [Decimal(7), 7],
    "floats and decimals": [0.5, Decimal("0.5")],
    "floats of two widths": [0.1, np.float32(0.1)],
    "days and times": [NIGHT.date(), NIGHT.replace(hour=0, minute=0, tzinfo=None)],
    "times and instants": [NIGHT.replace(tzinfo=None), NIGHT],
    "days and text": [NIGHT.date(), "2024-11-03"],
    "identifiers and text": [uuid.UUID(int=7), str(uuid.UUID(int=7))],
    "months and days": [pd.Period("2024-11", "M"), pd.Period("2024-11-01", "D")],
}


@pytest.mark.parametrize(
    ("name", "categories"),
    [(name, False) for name in MIXED] + [(name, True) for name in MIXED if "text" in name],
)
def test_names_of_several_types_are_refused_because_they_may_be_one_unit(name, categories):
    """A reader that works in pieces leaves 7 in one piece and "7" in the next."""
    for cells in (MIXED[name], [None, *reversed(MIXED[name])]):
        names = pd.Series(pd.Categorical(objects(*cells))) if categories else objects(*cells)
        budget = pdprivacy.Budget(epsilon=1)
        with pytest.raises(errors.InvalidDataError, match="several types") as refusal:
            pd.DataFrame({"who": names, "flag": True}).dp.protect(FLAG, budget=budget, unit="who", max_rows=1)
        assert budget.unit is None
        assert "dtype={'who': str}" in str(refusal.value)
        assert "2024" not in str(refusal.value)


@pytest.mark.full
def test_a_large_file_that_is_read_in_pieces_is_refused_until_its_names_are_read_as_text(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,flag\n" + "".join(f"{row % 150_000},True\n" for row in range(400_000)) + "A7,True\n")
    with pytest.warns(pd.errors.DtypeWarning):
        frame = pd.read_csv(path)
    with pytest.raises(errors.InvalidDataError, match="several types"):
        count(frame)
    assert count(pd.read_csv(path, dtype={"who": str})) == 150_001


DUCKDB_MIXED = ["'7'::json|'\"7\"'::json", "7::union(n int, s varchar)|'7'::union(n int, s varchar)"]


@pytest.mark.parametrize("cells", [*DUCKDB_MIXED, "7::variant|'7'::variant"])
def test_a_column_of_duckdb_whose_cells_have_a_type_each_is_refused_with_a_conversion(cells):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    if "variant" in cells and duckdb.__version__.startswith("1."):
        pytest.skip("this DuckDB has no variants")
    first, second = cells.split("|")
    relation = duckdb.sql(f"select true as flag, {first} as who union all select true, {second}")
    with pytest.raises(errors.InvalidDataError, match="whose cells have a type each") as refusal:
        count(relation)
    hint = str(refusal.value).partition("make it text: relation.")[2].removesuffix(".")
    assert count(eval(f"relation.{hint}", {"relation": relation})) == 1


def test_columns_of_arrow_and_polars_whose_cells_have_a_type_each_are_refused():
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([7, 7]), pa.array(["7", "7"])])
    with pytest.raises(errors.InvalidDataError, match="whose cells have a type each"):
        count(pa.table({"who": union, "flag": [True, True]}))
    with pytest.raises(errors.InvalidDataError, match="must hold names"):
        count(pl.DataFrame({"who": pl.Series([7, "7"], dtype=pl.Object), "flag": [True, True]}))


@pytest.mark.parametrize("known", [True, False])
def test_partitions_of_dask_with_categories_of_several_types_are_refused(known):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    from dask import delayed

    parts = [pd.DataFrame({"flag": [True], "who": pd.Categorical([name])}) for name in (7, "7")]
    meta = parts[0].iloc[:0]
    meta = meta if known else dd.utils.clear_known_categories(meta, ["who"])
    frame = dd.from_delayed(list(map(delayed, parts)), meta=meta, verify_meta=False)
    with pytest.raises(errors.EngineError, match="in another type"):
        count(frame)


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


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("engine", [*ENGINES, "objects", "categories"])
@pytest.mark.parametrize("kind", ["double", "float", "dictionary"])
def test_floats_that_stand_for_several_integers_are_no_names_on_any_engine(engine, kind):
    first = 2.0**24 if kind == "float" else 2.0**53
    for names, kept in (([first, first, 3], None), ([first - 1, math.inf, 0.5], 3)):
        stored = dictionary(names) if kind == "dictionary" else pa.array(names, kind)
        frame = pa.table({"flag": [True] * 3, "who": stored})
        if engine in ("objects", "categories"):
            floats = np.array(names, np.float32 if kind == "float" else np.float64)
            who = objects(*floats) if engine == "objects" else pd.Categorical(floats)
            frame = pd.DataFrame({"flag": True, "who": who})
        else:
            frame = frame_of(engine, frame)
        if kept is None:
            with pytest.raises(errors.InvalidDataError, match="floats that may stand for several integers"):
                count(frame)
        else:
            assert count(frame) == kept
