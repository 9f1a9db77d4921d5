"""The same whole numbers on every engine: what pandas frames give, Polars, DuckDB, Dask and PyArrow give."""

from __future__ import annotations

import datetime
import functools
import math
import subprocess
import sys
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pdprivacy import errors
from pdprivacy.domain import Column
from pdprivacy.engine import PandasEngine
from pdprivacy.engine_narwhals import NarwhalsEngine
from pdprivacy.engine_narwhals import frame as frame_module
from pdprivacy.statistic import Quantity, indicator, quantity

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")
pytest.importorskip("narwhals", reason="narwhals is not installed")

pytestmark = pytest.mark.skipif(
    pd.__version__.startswith("2."), reason="the engines are checked against the newest pandas and Arrow"
)

NAN, INF = float("nan"), float("inf")
JANUARY, MAY = datetime.date(2024, 1, 1), datetime.date(2024, 5, 1)
BERLIN = datetime.datetime(2024, 1, 1, 13, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
NOON, NIGHT = datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 1, 0, 0, 0, 1)


# ---------------------------------------------------------------- engines


def of_polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars", reason="Polars is not installed").from_arrow(table)


def of_polars_lazily(table: pa.Table) -> Any:
    return of_polars(table).lazy()


def of_duckdb(table: pa.Table) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    return duckdb.connect().from_arrow(table)


def of_dask(partitions: int) -> Callable[[pa.Table], Any]:
    def frame(table: pa.Table) -> Any:
        dask = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
        return dask.from_pandas(of_arrow_pandas(table), npartitions=partitions, sort=False)

    return frame


def of_dask_numpy(table: pa.Table) -> Any:
    dask = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    return dask.from_pandas(of_pandas(table), npartitions=2, sort=False)


def of_spark(table: pa.Table) -> Any:
    """What Spark holds of a table (it has no naturals, and reads a table up to its first empty chunk)."""
    session = pytest.importorskip("pyspark.sql", reason="Spark is not installed").SparkSession
    if any(str(kind).startswith("uint") for kind in table.schema.types):
        pytest.skip("Spark has no naturals")
    return session.getActiveSession().createDataFrame(table.combine_chunks())


def of_arrow_pandas(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def of_pandas(table: pa.Table) -> pd.DataFrame:
    """Columns of NumPy, and of pandas where NumPy has no nulls; dates stay those of Arrow."""
    integers = {
        pa.int8(): pd.Int8Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    arrow = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal)
    frame = table.to_pandas(
        types_mapper=lambda kind: (
            pd.ArrowDtype(kind) if any(one(kind) for one in arrow) else integers.get(kind)
        )
    )
    plain = [name for name in frame if frame[name].dtype.kind in "iub" and not frame[name].isna().any()]
    return frame.assign(**{name: frame[name].to_numpy() for name in plain})


ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "Polars": of_polars,
    "lazy Polars": of_polars_lazily,
    "DuckDB": of_duckdb,
    "Dask in partitions": of_dask(3),
    "Dask of NumPy": of_dask_numpy,
    "Spark": of_spark,
    "PyArrow": lambda table: table,
    "pandas": of_pandas,
    "pandas of Arrow": of_arrow_pandas,
}
ORDERED = {"Polars", "PyArrow", "pandas", "pandas of Arrow"}
SPARK = pytest.param("Spark", marks=pytest.mark.xdist_group("spark"))
EACH = [SPARK if engine == "Spark" else engine for engine in ENGINES]


@pytest.fixture(autouse=True)
def session(request: pytest.FixtureRequest) -> None:
    """A session for those tests that read frames of Spark."""
    if getattr(getattr(request.node, "callspec", None), "params", {}).get("engine") == "Spark":
        request.getfixturevalue("spark")


def reference(table: pa.Table) -> PandasEngine:
    """Pandas frames of what Python holds: days are dates there, decimals decimals."""
    frame = of_pandas(table)
    for field in table.schema:
        if pa.types.is_date(field.type) or pa.types.is_decimal(field.type):
            frame[field.name] = pd.Series(table[field.name].to_pylist(), dtype=object)
    return PandasEngine(frame)


def questions(columns: list[Column]) -> dict[str, Callable[[Any], Any]]:
    """All that an engine tells about these columns, each number once; what reads most of them first."""
    numbers = [column for column in columns if column.lower is not None]
    labelled = [column for column in columns if column.bins or column.categories]
    for column in columns:
        if column.kind == "integer" and not column.bins and not column.categories:
            labelled += [column] if column.upper - column.lower < 1000 else []
    products = [quantity(column, "t", products=True) for column in numbers]
    lower, upper = numbers[-1].bounds("t")
    found: dict[str, Callable[[Any], Any]] = {
        "grouped": lambda one: one.grouped(products[:2], labelled[:2], "t", products=True),
        "bins": lambda one: one.bins(
            numbers[-1], np.linspace(lower - 0.5, upper + 0.5, 20).tolist()
        ).tolist(),
        "tables": lambda one: one.table(labelled[:3], "t").tolist(),
        "moments": lambda one: one.moments(products),
        "rows": lambda one: one.rows,
        "sums": lambda one: one.grouped([quantity(numbers[0], "t")], labelled[:2], "t", products=False),
    }
    for column in columns:
        found[f"present {column.name}"] = lambda one, column=column: one.present(column)
    for column in numbers:
        number = quantity(column, "t", centered=column is numbers[0])
        found[f"sum {column.name}"] = lambda one, number=number: one.sum(number)
        lower, upper = column.bounds("t")
        width = max(upper - lower, 1.0, abs(lower) * 2.0**-40)
        few = np.unique([lower - width, lower, lower + width / 3, upper, upper + width])
        for name, edges in {
            "one": (lower, lower + width),
            "few": tuple(few.tolist()),
            "even": tuple(np.unique(np.linspace(lower + width / 8, lower + width, 31)).tolist()),
        }.items():
            found[f"bins {column.name} {name}"] = lambda one, column=column, edges=edges: one.bins(
                column, edges
            ).tolist()
    for column in labelled:
        first = indicator(column, "t", column.labels("t")[0])
        found[f"table {column.name}"] = lambda one, column=column: one.table([column], "t").tolist()
        found[f"share {column.name}"] = lambda one, first=first: one.sum(first)
        found[f"grouped {column.name}"] = lambda one, column=column: one.grouped(
            products, [column], "t", products=True
        )
    return found


def everything(engine: Any, columns: list[Column]) -> dict[str, Any]:
    return {name: ask(engine) for name, ask in questions(columns).items()}


# ---------------------------------------------------------------- hard frames

NUMBER = Column("x", "float", True, lower=-3.0, upper=10.0)
PLACED = Column("x", "float", True, lower=-3.0, upper=10.0, bins=(-50.0, 0.0, 2.5, 1000.0))
TENTHS = Column("x", "float", lower=-1.0, upper=1.5, bins=tuple(place / 10 for place in range(-10, 16)))
LETTER = Column("g", "category", True, categories=("b", "a"))
LETTERS = Column("g", "category", categories=("b", "a"))
RANGE = Column("n", "integer", True, lower=1, upper=9)
SOME = Column("n", "integer", categories=(8, 5, 3))
TRUTH = Column("h", "boolean", True)

FLOATS = pa.array([1.0, 3.5, None, NAN, INF, -INF, 0.3, 0.1 + 0.2, -0.0, 9.999999999, 1e300, 5e-324])
TEXTS = pa.array(["a", "b", None, "a", "B", "unseen", "", "b", "a\0", "a", "b", "ab"])
TRUTHS = pa.array([True, None, False] * 4)
WHOLES = [3, 0, 9, None, 5, -128, 127, 8, 5, 1, None, 2]


def frame_of(**columns: Any) -> pa.Table:
    return pa.table(columns)


def everyday(rows: int) -> pa.Table:
    return frame_of(x=FLOATS, g=TEXTS, n=pa.array(WHOLES, pa.int64()), h=TRUTHS).slice(0, rows)


def wholes(kind: Any) -> pa.Table:
    low = 0 if str(kind).startswith("u") else -128
    cells = [cell if cell is None else max(cell, low) for cell in WHOLES]
    return frame_of(n=pa.array(cells, kind), g=TEXTS)


BASICS = [NUMBER, LETTER, RANGE, TRUTH]
LARGE = Column("n", "integer", True, lower=2**60, upper=2**60 + 9)
HARD: dict[str, tuple[pa.Table, list[Column]]] = {
    "empty": (everyday(0), BASICS),
    "one row": (everyday(1), BASICS),
    "nulls, NaN, infinities, -0.0, subnormals": (everyday(12), BASICS),
    "bins and labels without nulls": (everyday(12), [PLACED, LETTERS, SOME, TRUTH]),
    "even bins that are no whole numbers": (
        frame_of(x=pa.array([place / 10 for place in range(-20, 20)]), g=pa.array(["a", "c"] * 20)),
        [TENTHS, LETTER],
    ),
    "one value": (everyday(12), [Column("x", "float", True, lower=5.0, upper=5.0), LETTER]),
    "a centre that is subtracted before": (
        frame_of(x=pa.array([1e9, 1e9 + 1e-3, 1e9 + 5e-4, 0.0]), g=pa.array(list("abab"))),
        [Column("x", "float", lower=1e9, upper=1e9 + 1e-3), LETTER],
    ),
    "all null": (
        frame_of(x=pa.nulls(3, pa.float64()), g=pa.nulls(3, pa.string()), n=pa.nulls(3, pa.int64())),
        [NUMBER, LETTER, RANGE],
    ),
    "nulls without a type": (frame_of(x=pa.nulls(3), g=pa.nulls(3)), [NUMBER, LETTER]),
    "integers of 8 bits": (wholes(pa.int8()), [RANGE, LETTER]),
    "naturals of 8 bits": (wholes(pa.uint8()), [RANGE, LETTER]),
    "integers of 8 bits, bounds beyond them": (
        wholes(pa.int8()),
        [Column("n", "integer", True, lower=-1000, upper=900, bins=(-1000, 0, 3, 900)), LETTER],
    ),
    "integers in a float column": (
        wholes(pa.int32()),
        [Column("n", "float", True, lower=0.5, upper=4.5), LETTER],
    ),
    "floats in an integer column": (
        frame_of(n=pa.array([0.5, 1.999, 8.0, NAN, None, 1e300, -INF, 9.5]), g=pa.array(list("abcdabcd"))),
        [RANGE, LETTER],
    ),
    "floats in an integer column, by label": (
        frame_of(n=pa.array([5.0, 5.5, 8.0, NAN, None, 3.0]), x=pa.array([1.0] * 6)),
        [NUMBER, SOME],
    ),
    "floats of 32 bits": (
        frame_of(x=pa.array([0.1, 10.1, None, 9.9999, -3.1], pa.float32()), g=pa.array(list("abaab"))),
        [NUMBER, LETTER, Column("x", "float", lower=-0.1, upper=0.1)],
    ),
    "integers of 2**53": (
        frame_of(
            n=pa.array([2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, -(2**63), None, 4], pa.int64()),
            g=pa.array(["a", "b"] * 4),
        ),
        [Column("n", "integer", True, lower=-(2**53), upper=2**53, categories=(2**53, 4, -(2**53))), LETTER],
    ),
    "integers of 2**60": (
        frame_of(
            n=pa.array([2**60, 2**60 + 1, 2**60 + 9, 2**60 + 12, 5], pa.int64()),
            g=pa.array(list("ababa")),
        ),
        [LARGE, LETTER],
    ),
    "naturals of 2**64": (
        frame_of(n=pa.array([0, 2**64 - 1, 2**63, None, 7], pa.uint64()), g=pa.array(list("ababa"))),
        [RANGE, LETTER],
    ),
    "decimals": (
        frame_of(
            x=pa.array(
                [Decimal("0.1"), Decimal("9.99"), None, Decimal("-70.5"), Decimal(2)], pa.decimal128(9, 2)
            ),
            g=pa.array(list("ababa")),
        ),
        [PLACED, LETTER],
    ),
    "dates": (
        frame_of(d=pa.array([JANUARY, MAY, None, datetime.date(2023, 1, 1), MAY]), x=pa.array([1.0] * 5)),
        [NUMBER, Column("d", "category", True, categories=(MAY, JANUARY))],
    ),
    "times": (
        frame_of(t=pa.array([NOON, NIGHT, None, NOON, datetime.datetime(2024, 1, 1)]), x=pa.array([1.0] * 5)),
        [NUMBER, Column("t", "category", True, categories=(pd.Timestamp(NIGHT), NOON))],
    ),
    "labels of another type": (
        everyday(12),
        [
            NUMBER,
            Column("g", "category", True, categories=(1, 2)),
            Column("n", "category", True, categories=("3",)),
        ],
    ),
    "numbers as labels": (
        everyday(12),
        [
            NUMBER,
            Column("n", "category", True, categories=(9, 5.0, 0.5)),
            Column("h", "category", categories=(1, 0)),
        ],
    ),
    "booleans as numbers": (everyday(12), [NUMBER, TRUTH, Column("h", "integer", True, lower=0, upper=1)]),
    "dictionaries": (
        frame_of(g=TEXTS.dictionary_encode(), x=FLOATS, h=TRUTHS),
        [NUMBER, LETTER, TRUTH],
    ),
    "dictionaries without nulls": (frame_of(g=TEXTS.dictionary_encode(), x=FLOATS), [PLACED, LETTERS]),
    "zeros of both signs among many labels": (
        frame_of(x=pa.array([0.0, -0.0, 1.0, 30.0, None, NAN, -1.0]), g=pa.array(list("abababa"))),
        [Column("x", "float", True, lower=-1, upper=30, categories=tuple(map(float, range(25)))), LETTER],
    ),
    "instants": (
        frame_of(
            t=pa.array([NOON, NIGHT, None, NOON, datetime.datetime(2024, 1, 1)], pa.timestamp("us", "UTC")),
            x=pa.array([1.0] * 5),
        ),
        [NUMBER, Column("t", "category", True, categories=(pd.Timestamp(NIGHT, tz="UTC"), BERLIN, NOON))],
    ),
    "chunks": (pa.concat_tables([everyday(5), everyday(0), everyday(12)]), BASICS),
}
TYPELESS = {"Dask of NumPy", "pandas"}  # NumPy has no type for nothing but nulls: objects
FAST = {"Polars", "lazy Polars", "PyArrow"}
WHOLE = (
    "nulls, NaN, infinities, -0.0, subnormals",
    ("DuckDB", "bins and labels without nulls"),
    ("Dask in partitions", "bins and labels without nulls"),
)


@functools.cache
def expected_of(name: str) -> dict[str, Any]:
    """What a pandas frame tells of a hard frame."""
    table, columns = HARD[name]
    return everything(reference(table), columns)


def selected(engine: str, name: str, asked: list[str]) -> list[str]:
    """What an engine is asked about a hard frame: all of it, if its queries are fast.

    Of the others all is asked about one or two frames. About each they are asked what reads its columns as
    numbers, in bins and by label (there is no other way of reading them), and in turn some of the rest.
    """
    place = list(HARD).index(name)
    if engine in FAST or name == WHOLE[0] or (engine, name) in WHOLE[1:]:
        return asked
    turn = asked[2 + place % (len(asked) - 2)]
    if engine in ("Spark", "Dask of NumPy"):
        return [*asked[:2], turn]
    if engine == "Dask in partitions":  # which adds up numbers of no group in a way of its own
        return list(dict.fromkeys([*asked[:2], "moments", turn]))
    return [*asked[:4], *asked[4 + place % 9 :: 9]]


@pytest.mark.parametrize("engine", EACH)
@pytest.mark.parametrize("name", HARD)
def test_every_engine_gives_the_numbers_of_pandas(name, engine):
    table, columns = HARD[name]
    if name == "nulls without a type" and engine in TYPELESS:
        pytest.skip("a column of objects is refused")
    expected, frame, asked = expected_of(name), NarwhalsEngine(ENGINES[engine](table)), questions(columns)
    found = {key: asked[key](frame) for key in selected(engine, name, list(asked))}
    assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("engine", sorted(ORDERED))
def test_the_cell_of_each_record_is_that_of_pandas(name, engine):
    table, columns = HARD[name]
    if name == "nulls without a type" and engine in TYPELESS:
        pytest.skip("a column of objects is refused")
    for column in columns:
        if column.bins or column.categories:
            found = NarwhalsEngine(ENGINES[engine](table)).codes(column, "t")
            assert found.tolist() == reference(table).codes(column, "t").tolist()
            assert found.dtype == np.int64


CELLS = st.sampled_from([-3.0, 10.0, 3.5, 0.1, 1e-9, -INF, INF, 1e300, NAN, None, 9.999999999])
RECORDS = st.lists(
    st.tuples(
        CELLS | st.floats(-4, 11),
        st.sampled_from([1, 9, 3, -5, 10**6, None]),
        st.sampled_from(["a", "b", "z", None]),
        st.sampled_from([True, False, None]),
    ),
    max_size=12,
)
KINDS = {"x": pa.float64(), "n": pa.int64(), "g": pa.string(), "h": pa.bool_()}


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", "Dask in partitions", "PyArrow"])
@settings(deadline=None, max_examples=4)
@given(records=RECORDS)
@example(records=[(1e300, 9, "a", True), (NAN, 9, None, None)])
def test_every_frame_gives_the_numbers_of_pandas(engine, records):
    columns = zip(*records, strict=True) if records else [[]] * 4
    table = pa.table(
        {
            name: pa.array(list(cells), kind)
            for (name, kind), cells in zip(KINDS.items(), columns, strict=True)
        }
    )
    found, expected = NarwhalsEngine(ENGINES[engine](table)), reference(table)
    asked = questions(BASICS)
    kept = [*list(asked)[:4], *list(asked)[4 + len(records) % 5 :: 5]]
    assert {key: asked[key](found) for key in kept} == {key: asked[key](expected) for key in kept}


EDGE = st.floats(-100, 100).map(lambda edge: edge if abs(edge) > 1e-300 else 0.0)
EVEN = st.tuples(st.integers(-50, 50), st.integers(9, 60), st.sampled_from([1.0, 2.0, 3.0, 7.0, 10.0, 100.0]))


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", "PyArrow"])
@settings(deadline=None, max_examples=40)
@given(
    edges=st.lists(EDGE, min_size=2, max_size=20, unique=True).map(sorted)
    | EVEN.map(lambda even: [(even[0] + place) / even[2] for place in range(even[1])]),
    ends=st.tuples(st.floats(-100, 100), st.floats(-100, 100)).map(sorted),
)
def test_bins_are_told_apart_to_the_last_bit(engine, edges, ends):
    values = np.array(edges)
    values = np.concatenate([values, np.nextafter(values, -INF), np.nextafter(values, INF)])
    column = Column("x", "float", lower=ends[0], upper=ends[1])
    expected = np.histogram(np.clip(values, *ends), np.array(edges))[0].tolist()
    assert NarwhalsEngine(ENGINES[engine](pa.table({"x": values}))).bins(column, edges).tolist() == expected


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    "engine", ["Polars", "lazy Polars", "DuckDB", "Dask in partitions", SPARK, "PyArrow"]
)
def test_sums_beyond_the_precision_of_a_double_are_exact(engine):
    rows = 1_500_001
    values = np.full(rows, 255.0)
    values[1] = 254.5
    column = Column("x", "float", lower=0.0, upper=255.0)
    key = Column("g", "boolean")
    number, squared = quantity(column, "t", centered=False), quantity(column, "t", products=True)
    frame = NarwhalsEngine(ENGINES[engine](pa.table({"x": values, "g": np.arange(rows) % 2 == 1})))
    # with the least step on top, which a double of that size cannot hold
    least, one = int(values[0] / number.grid), int(0.5 / number.grid)
    assert frame.sum(number) == (rows, rows * least - one)
    assert rows * least > 2**49
    high, step = squared.high, int(0.5 / squared.grid)
    assert frame.moments([squared]).products == [[(rows - 1) * high**2 + (high - step) ** 2]]
    grouped = frame.grouped([number], [key], "t", products=False)
    assert grouped.sums == [[(rows + 1) // 2 * least, rows // 2 * least - one]]


@pytest.mark.parametrize("rows", [10**9, 2**32])
def test_no_part_of_a_sum_can_leave_what_a_double_holds(rows):
    """The parts that an engine adds, at the largest steps there are and at the most rows."""
    widest = [Column("x", "float", lower=-1.0, upper=1.0), Column("x", "float", lower=2.0**-20, upper=1.0)]
    for column in widest:
        one = quantity(column, "t", centered=False)
        product = quantity(column, "t", centered=False, products=True)
        for reach in (one.reach, product.reach, product.reach**2, 2**36):
            for known in (rows, None):
                cut = frame_module._coarse(reach, known)
                coarse, fine = (reach // cut + 1, cut // 2) if cut else (0, reach)
                assert max(coarse, fine) * rows < 2**53
                assert cut == 0 or math.log2(cut).is_integer()


@pytest.mark.parametrize("engine", ["PyArrow", "pandas"])
def test_frames_in_slices_give_the_same(engine, monkeypatch):
    table, columns = HARD["bins and labels without nulls"]
    expected = expected_of("bins and labels without nulls")
    monkeypatch.setattr(frame_module, "SLICE", 5)
    assert everything(NarwhalsEngine(ENGINES[engine](table)), columns) == expected


@pytest.mark.parametrize("engine", EACH)
def test_one_call_is_one_query(engine, monkeypatch):
    """A lazy frame may be expensive to read, and may differ from one reading to the next."""
    queries: list[str] = []
    true = frame_module.guarded
    monkeypatch.setattr(
        frame_module, "guarded", lambda what, name, run: (queries.append(what), true(what, name, run))[1]
    )
    found = NarwhalsEngine(ENGINES[engine](everyday(12)))
    numbers = [quantity(NUMBER, "t", products=True), quantity(RANGE, "t", products=True)]
    for call in (
        lambda: found.sum(numbers[0]),
        lambda: found.moments(numbers),
        lambda: found.table([LETTER, TRUTH, RANGE], "t"),
        lambda: found.grouped(numbers, [LETTER, TRUTH], "t", products=True),
        lambda: found.bins(NUMBER, (0.0, 1.0)),
        lambda: found.present(NUMBER),
    ):
        queries.clear()
        call()
        assert len([what for what in queries if what != "the cells of its groups"]) == 1


# ---------------------------------------------------------------- refusals

LAZY = [name for name in ENGINES if name not in ORDERED]


@pytest.mark.parametrize("engine", EACH)
def test_what_an_engine_cannot_do_is_refused_by_name_before_it_reads(engine, monkeypatch):
    found = NarwhalsEngine(ENGINES[engine](everyday(12)))
    monkeypatch.setattr(frame_module, "guarded", lambda *_: pytest.fail("something is read"))
    name = {"Dask": "Dask", "DuckDB": "DuckDB", "Polars": "Polars"}.get(engine.split()[-1], engine.split()[0])
    number = quantity(NUMBER, "t")
    with pytest.raises(
        errors.ParameterError, match=rf"^{name} frames do not give the records around centres"
    ):
        found.clusters([number], np.zeros((1, 1)))
    if engine in LAZY:
        with pytest.raises(
            errors.ParameterError, match=rf"{name} frames do not give the cell of each record"
        ):
            found.codes(LETTER, "t")
    with pytest.raises(errors.InvalidDataError, match=r"column 'y' is declared and not in the frame"):
        found.present(Column("y", "boolean"))
    with pytest.raises(errors.InvalidDataError, match=r"column 'g' is declared as float and holds \w+"):
        found.sum(quantity(Column("g", "float", lower=0, upper=1), "t"))
    with pytest.raises(errors.DeclarationError, match="bounds"):
        found.bins(LETTER, (0.0, 1.0))


def test_labels_that_only_pandas_tells_apart_are_refused():
    fine = Column("t", "category", categories=(pd.Timestamp("2024-01-01") + pd.Timedelta(1, "ns"),))
    found = NarwhalsEngine(HARD["times"][0])
    with pytest.raises(errors.ParameterError, match="finer than a microsecond"):
        found.table([fine], "t")
    spans = NarwhalsEngine(pa.table({"t": pa.array([datetime.timedelta(1)])}))
    with pytest.raises(errors.ParameterError, match="column 't' holds Duration"):
        spans.table([Column("t", "category", categories=(pd.Timedelta(days=1),))], "t")


@pytest.mark.parametrize("frame", [None, 3, "secret", [1, 2], {"x": [1]}, pd.Series([1]), np.zeros(3)])
def test_what_is_no_frame_is_refused_by_its_type(frame):
    with pytest.raises(errors.ParameterError, match="'frame' must be a frame of Polars") as refusal:
        NarwhalsEngine(frame)
    assert "secret" not in str(refusal.value)


def test_two_columns_of_one_name_are_refused():
    frames = [pd.DataFrame([[1, 2]], columns=["x", "x"]), pa.table([[1], [2]], names=["x", "x"])]
    for frame in frames:
        with pytest.raises(errors.ParameterError, match="one column of each name"):
            NarwhalsEngine(frame)


def failing(engine: str) -> Any:
    """A frame whose plan fails halfway, with a message that holds a cell."""
    table = pa.table({"g": ["1", "2", "secret"], "x": [1.0, 2.0, 3.0]})
    frame = ENGINES[engine](table)
    if engine == "DuckDB":
        return frame.project("cast(g as integer) as n, x")
    if engine == "lazy Polars":
        import polars as pl

        return frame.select(pl.col("g").cast(pl.Int64).alias("n"), "x")
    assert engine == "Dask of NumPy"
    return frame.assign(n=frame["g"].astype("int64"))


@pytest.mark.parametrize("engine", ["DuckDB", "lazy Polars", "Dask of NumPy"])
def test_a_plan_that_fails_halfway_tells_no_cell(engine, texts_of):
    found = NarwhalsEngine(failing(engine))
    count = Column("n", "integer", lower=0, upper=9)
    for call in (
        lambda: found.sum(quantity(count, "t")),
        lambda: found.table([count], "t"),
        lambda: found.present(count),
        lambda: found.grouped([quantity(NUMBER, "t")], [count], "t", products=True),
    ):
        with pytest.raises(errors.EngineError, match=r"failed to compute .* \(\w+\)\.") as failure:
            call()
        assert not [text for text in texts_of(failure.value) if "secret" in text]


def test_a_function_that_an_engine_misses_is_one_clear_error(monkeypatch, texts_of):
    import narwhals.stable.v2 as library

    found = NarwhalsEngine(everyday(12))

    def missing(*_: Any, **__: Any) -> None:
        raise NotImplementedError("no group_by, and here is a cell: secret")

    monkeypatch.setattr(library.DataFrame, "group_by", missing)
    with pytest.raises(
        errors.EngineError, match=r"^PyArrow failed to compute a table \(NotImplementedError\)"
    ) as failure:
        found.table([LETTER], "t")
    assert not [text for text in texts_of(failure.value) if "secret" in text]


def test_an_engine_that_rounds_in_another_way_is_found_out(monkeypatch):
    """Were (x + shift) - zero simplified, numbers would be off their grid, and no sum of whole steps."""
    number = quantity(NUMBER, "t")
    object.__setattr__(number, "shift", 0.3)
    monkeypatch.setattr(Quantity, "zero", property(lambda self: 0.0))
    monkeypatch.setattr(NarwhalsEngine, "by_query", True)
    with pytest.raises(errors.EngineError, match="does not add doubles as the processor does"):
        NarwhalsEngine(everyday(12)).sum(number)


def test_without_narwhals_the_extra_of_the_engine_is_named():
    code = (
        "import sys; sys.modules['narwhals'] = None\n"
        "from pdprivacy.engine_narwhals import NarwhalsEngine\n"
        "import pdprivacy.errors\n"
        "for name in sys.argv[1:]:\n"
        "    frame = type('DataFrame', (), {'__module__': name})()\n"
        "    try: NarwhalsEngine(frame)\n"
        "    except pdprivacy.errors.MissingExtraError as error: print(error.hint)"
    )
    modules = {
        "pandas.core.frame": "polars",
        "polars.lazyframe.frame": "polars",
        "pyarrow.lib": "polars",
        "duckdb": "duckdb",
        "_duckdb": "duckdb",
        "dask.dataframe.dask_expr._collection": "dask",
        "pyspark.sql.dataframe": "spark",
        "pyspark.pandas.frame": "spark",
    }
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == [f'pip install "pdprivacy[{extra}]"' for extra in modules.values()]
