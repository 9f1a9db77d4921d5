"""The same whole numbers of every engine (`queries`, `column_expressions`) as of pandas frames."""

from __future__ import annotations

import datetime
import functools
import math
import subprocess
import sys
import zoneinfo
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain, errors
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.engines.other import NarwhalsEngine, narwhals_engine, queries
from pdprivacy.core.statistics import Quantity, Read, indicator, quantity
from pdprivacy.declaration.timeline import Timeline
from tests.support.engine_frames import (
    ENGINES,
    LAZY,
    ON_NEWEST_PANDAS,
    ORDERED,
    each_engine,
    frame_of,
    numpy_pandas,
    sum_of,
)
from tests.support.hard_frames import BASICS, INF, LETTER, NAN, NUMBER, RANGE, READ, TRUTH, everyday

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")
pytest.importorskip("narwhals", reason="narwhals is not installed")

pytestmark = ON_NEWEST_PANDAS

JANUARY, MAY = datetime.date(2024, 1, 1), datetime.date(2024, 5, 1)
BERLIN = datetime.datetime(2024, 1, 1, 13, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
NOON, NIGHT = datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 1, 0, 0, 0, 1)


# ---------------------------------------------------------------- engines


@pytest.fixture(autouse=True)
def session(request: pytest.FixtureRequest) -> None:
    """A session for those tests that read frames of Spark."""
    if getattr(getattr(request.node, "callspec", None), "params", {}).get("engine") == "Spark":
        request.getfixturevalue("spark")


def reference(table: pa.Table) -> PandasEngine:
    """Pandas frames of what Python holds: days are dates there, decimals decimals."""
    return PandasEngine(numpy_pandas(table, objects=True))


def questions(columns: list[Column]) -> dict[str, Callable[[Any], Any]]:
    """All that an engine tells about these columns, each number once; what reads most of them first."""
    numbers = [column for column in columns if column.lower is not None]
    labelled = [column for column in columns if column.bins or column.categories]
    for column in columns:
        if column.kind == "integer" and not column.bins and not column.categories:
            labelled += [column] if column.upper - column.lower < 1000 else []
    products = [quantity(column, "t", products=True) for column in numbers]
    lower, upper = numbers[-1].bounds("t")
    reads: dict[str, Callable[[Any], Any]] = {
        "grouped": lambda engine: engine.grouped(products[:2], labelled[:2], "t", products=True),
        "bins": lambda engine: engine.bins(
            numbers[-1], np.linspace(lower - 0.5, upper + 0.5, 20).tolist()
        ).tolist(),
        "tables": lambda engine: engine.table(labelled[:3], "t").tolist(),
        "moments": lambda engine: engine.grouped(products, (), "t", products=True),
        "sums of all": lambda engine: engine.grouped(products, (), "t", products=False),
        "rows": lambda engine: engine.rows,
        "sums": lambda engine: engine.grouped([quantity(numbers[0], "t")], labelled[:2], "t", products=False),
    }
    for column in columns:
        reads[f"present {column.name}"] = lambda engine, column=column: engine.present(column)
    for column in numbers:
        number = quantity(column, "t", centered=column is numbers[0])
        reads[f"sum {column.name}"] = lambda engine, number=number: sum_of(engine, number)
        lower, upper = column.bounds("t")
        width = max(upper - lower, 1.0, abs(lower) * 2.0**-40)
        few = np.unique([lower - width, lower, lower + width / 3, upper, upper + width])
        for name, edges in {
            "one": (lower, lower + width),
            "few": tuple(few.tolist()),
            "even": tuple(np.unique(np.linspace(lower + width / 8, lower + width, 31)).tolist()),
        }.items():
            reads[f"bins {column.name} {name}"] = lambda engine, column=column, edges=edges: engine.bins(
                column, edges
            ).tolist()
    for column in labelled:
        first = indicator(column, "t", column.labels("t")[0])
        reads[f"table {column.name}"] = lambda engine, column=column: engine.table([column], "t").tolist()
        reads[f"share {column.name}"] = lambda engine, first=first: sum_of(engine, first)
        reads[f"grouped {column.name}"] = lambda engine, column=column: engine.grouped(
            products, [column], "t", products=True
        )
    return reads


def everything(engine: Any, columns: list[Column]) -> dict[str, Any]:
    return {name: ask(engine) for name, ask in questions(columns).items()}


TYPELESS = {"Dask of NumPy", "pandas"}  # NumPy has no type for nothing but nulls: objects
FAST = {"Polars", "lazy Polars", "PyArrow"}
WHOLE = (
    "nulls, NaN, infinities, -0.0, subnormals",
    ("DuckDB", "bins and labels without nulls"),
    ("Dask", "bins and labels without nulls"),
)


@functools.cache
def expected_of(name: str) -> dict[str, Any]:
    """Results of a pandas frame for a hard frame."""
    table, columns = READ[name]
    return everything(reference(table), columns)


def selected(engine: str, name: str, reads: list[str]) -> list[str]:
    """Reads of an engine on a hard frame: all of them, if its queries are fast.

    Of the others all is asked about one or two frames. About each they are asked what reads its columns as
    numbers, in bins and by label (there is no other way of reading them), and in turn some of the rest.
    """
    index = list(READ).index(name)
    if engine in FAST or name == WHOLE[0] or (engine, name) in WHOLE[1:]:
        return reads
    turn = reads[2 + index % (len(reads) - 2)]
    if engine in ("Spark", "Dask of NumPy"):
        return [*reads[:2], turn]
    if engine == "Dask":  # which adds up numbers of no group in a way of its own
        return list(dict.fromkeys([*reads[:2], "moments", turn]))
    return [*reads[:4], *reads[4 + index % 9 :: 9]]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("engine", each_engine(ENGINES))
@pytest.mark.parametrize("name", READ)
def test_every_engine_gives_the_numbers_of_pandas(name, engine):
    table, columns = READ[name]
    if name == "nulls without a type" and engine in TYPELESS:
        pytest.skip("a column of objects is refused")
    expected, frame, reads = expected_of(name), NarwhalsEngine(frame_of(engine, table)), questions(columns)
    actual = {key: reads[key](frame) for key in selected(engine, name, list(reads))}
    assert actual == {key: expected[key] for key in actual}


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("engine", ORDERED)
def test_the_cell_of_each_record_is_that_of_pandas(name, engine):
    table, columns = READ[name]
    if name == "nulls without a type" and engine in TYPELESS:
        pytest.skip("a column of objects is refused")
    for column in columns:
        if column.bins or column.categories:
            actual = NarwhalsEngine(frame_of(engine, table)).codes(column, "t")
            assert actual.tolist() == reference(table).codes(column, "t").tolist()
            assert actual.dtype == np.int64


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


@pytest.mark.full
@pytest.mark.parametrize("engine", ["Polars", "DuckDB", "Dask", "PyArrow"])
@settings(max_examples=4)
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
    actual, expected = NarwhalsEngine(frame_of(engine, table)), reference(table)
    reads = questions(BASICS)
    chosen = [*list(reads)[:4], *list(reads)[4 + len(records) % 5 :: 5]]
    assert {key: reads[key](actual) for key in chosen} == {key: reads[key](expected) for key in chosen}


EDGE = st.floats(-100, 100).map(lambda edge: edge if abs(edge) > 1e-300 else 0.0)
EVEN = st.tuples(st.integers(-50, 50), st.integers(9, 60), st.sampled_from([1.0, 2.0, 3.0, 7.0, 10.0, 100.0]))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("engine", ["Polars", "DuckDB", "PyArrow"])
@settings(max_examples=40)
@given(
    edges=st.lists(EDGE, min_size=2, max_size=20, unique=True).map(sorted)
    | EVEN.map(lambda even: [(even[0] + index) / even[2] for index in range(even[1])]),
    ends=st.tuples(st.floats(-100, 100), st.floats(-100, 100)).map(sorted),
)
def test_bins_are_told_apart_to_the_last_bit(engine, edges, ends):
    values = np.array(edges)
    values = np.concatenate([values, np.nextafter(values, -INF), np.nextafter(values, INF)])
    column = Column("x", "float", lower=ends[0], upper=ends[1])
    expected = np.histogram(np.clip(values, *ends), np.array(edges))[0].tolist()
    assert NarwhalsEngine(frame_of(engine, pa.table({"x": values}))).bins(column, edges).tolist() == expected


# ---------------------------------------------------------------- sizes


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    "engine", each_engine(["Polars", "lazy Polars", "DuckDB", "Dask", "Spark", "PyArrow"])
)
def test_sums_beyond_the_precision_of_a_double_are_exact(engine):
    rows = 1_500_001
    values = np.full(rows, 255.0)
    values[1] = 254.5
    column = Column("x", "float", lower=0.0, upper=255.0)
    key = Column("g", "boolean")
    number, squared = quantity(column, "t", centered=False), quantity(column, "t", products=True)
    frame = NarwhalsEngine(frame_of(engine, pa.table({"x": values, "g": np.arange(rows) % 2 == 1})))
    # with the least step on top, which a double of that size cannot hold
    least, half = int(values[0] / number.grid), int(0.5 / number.grid)
    assert sum_of(frame, number) == (rows, rows * least - half)
    assert rows * least > 2**49
    high, step = squared.high, int(0.5 / squared.grid)
    moments = frame.grouped([squared], (), "t", products=True)
    assert moments.products == {(0, 0): [(rows - 1) * high**2 + (high - step) ** 2]}
    grouped = frame.grouped([number], [key], "t", products=False)
    assert grouped.sums == [[(rows + 1) // 2 * least, rows // 2 * least - half]]


@pytest.mark.parametrize("rows", [10**9, 2**32])
def test_no_part_of_a_sum_can_leave_what_a_double_holds(rows):
    """The parts that an engine adds, at the largest steps there are and at the most rows."""
    widest = [Column("x", "float", lower=-1.0, upper=1.0), Column("x", "float", lower=2.0**-20, upper=1.0)]
    for column in widest:
        single = quantity(column, "t", centered=False)
        product = quantity(column, "t", centered=False, products=True)
        for reach in (single.reach, product.reach, product.reach**2, 2**36):
            for known in (rows, None):
                cut = queries._cut(reach, known)
                coarse, fine = (reach // cut + 1, cut // 2) if cut else (0, reach)
                assert max(coarse, fine) * rows < 2**53
                assert cut == 0 or math.log2(cut).is_integer()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("engine", ["PyArrow", "pandas"])
def test_frames_in_slices_give_the_same(engine, monkeypatch):
    table, columns = READ["bins and labels without nulls"]
    expected = expected_of("bins and labels without nulls")
    monkeypatch.setattr(narwhals_engine, "SLICE", 5)
    assert everything(NarwhalsEngine(frame_of(engine, table)), columns) == expected


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_one_call_is_one_query(engine, monkeypatch):
    """A lazy frame may be expensive to read, and may differ from one reading to the next."""
    calls: list[str] = []
    true = narwhals_engine.run_guarded
    monkeypatch.setattr(
        narwhals_engine, "run_guarded", lambda task, name, run: (calls.append(task), true(task, name, run))[1]
    )
    reader = NarwhalsEngine(frame_of(engine, everyday(12)))
    numbers = [quantity(NUMBER, "t", products=True), quantity(RANGE, "t", products=True)]
    for call in (
        lambda: sum_of(reader, numbers[0]),
        lambda: reader.grouped(numbers, (), "t", products=True),
        lambda: reader.table([LETTER, TRUTH, RANGE], "t"),
        lambda: reader.grouped(numbers, [LETTER, TRUTH], "t", products=True),
        lambda: reader.bins(NUMBER, (0.0, 1.0)),
        lambda: reader.present(NUMBER),
    ):
        calls.clear()
        call()
        assert len(calls) == 1


# ---------------------------------------------------------------- several reads at once

PRODUCTS = (quantity(NUMBER, "t", products=True), quantity(RANGE, "t", products=True))
READS = [
    Read("rows"),
    Read("present", (NUMBER,)),
    Read("grouped", ((quantity(NUMBER, "t"),), (), "t"), (("products", False),)),
    Read("grouped", ((quantity(RANGE, "t"),), (), "t"), (("products", False),)),
    Read("grouped", ((indicator(LETTER, "t", "b"),), (), "t"), (("products", False),)),
    Read("grouped", (PRODUCTS, (), "t"), (("products", True),)),
    Read("grouped", (PRODUCTS[:1], (LETTER, TRUTH), "t"), (("products", True),)),
    Read("table", ((LETTER, RANGE), "t")),
    Read("bins", (NUMBER, (0.0, 1.0, 5.0))),
]


def plain(answer: Any) -> Any:
    return answer.tolist() if isinstance(answer, np.ndarray) else answer


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("rows", [12, 0])
@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_reads_that_are_collected_together_are_one_query_with_the_same_answers(engine, rows, monkeypatch):
    table = everyday(12).slice(0, rows)
    if rows == 0 and engine in ("Spark", *TYPELESS):
        pytest.skip("a frame without records may have lost its types")
    calls: list[str] = []
    true = narwhals_engine.run_guarded
    reader = NarwhalsEngine(frame_of(engine, table))
    monkeypatch.setattr(
        narwhals_engine, "run_guarded", lambda task, name, run: (calls.append(task), true(task, name, run))[1]
    )
    by_itself = Read("ranks", (quantity(NUMBER, "t"),))
    answers = reader.collect([READS[0], by_itself, *READS])
    assert [task for task in calls if task != "the types of its columns"] == ["several statistics"]
    assert list(answers) == READS
    expected = reference(table)
    for read, answer in answers.items():
        assert plain(answer) == plain(read.on(expected))


def test_no_reads_are_no_query(monkeypatch):
    reader = NarwhalsEngine(everyday(12))
    monkeypatch.setattr(narwhals_engine, "run_guarded", lambda *_: pytest.fail("something is read"))
    assert reader.collect([]) == {}
    assert reader.collect([Read("ranks", (quantity(NUMBER, "t"),))]) == {}


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_unsupported_methods_are_refused_by_name_before_any_read(engine, monkeypatch):
    reader = NarwhalsEngine(frame_of(engine, everyday(12)))
    monkeypatch.setattr(narwhals_engine, "run_guarded", lambda *_: pytest.fail("something is read"))
    name = {"Dask": "Dask", "DuckDB": "DuckDB", "Polars": "Polars"}.get(engine.split()[-1], engine.split()[0])
    number = quantity(NUMBER, "t")
    with pytest.raises(
        errors.ParameterError, match=rf"^{name} frames do not give the records around centres"
    ):
        reader.clusters([number], np.zeros((1, 1)))
    if engine in LAZY:
        with pytest.raises(
            errors.ParameterError, match=rf"{name} frames do not give the cell of each record"
        ):
            reader.codes(LETTER, "t")
    with pytest.raises(errors.InvalidDataError, match=r"column 'y' is declared and not in the frame"):
        reader.present(Column("y", "boolean"))
    with pytest.raises(errors.InvalidDataError, match=r"column 'g' is declared as float and holds \w+"):
        sum_of(reader, quantity(Column("g", "float", lower=0, upper=1), "t"))
    with pytest.raises(errors.DeclarationError, match="bounds"):
        reader.bins(LETTER, (0.0, 1.0))


def test_labels_that_only_pandas_tells_apart_are_refused():
    fine = Column("t", "category", categories=(pd.Timestamp("2024-01-01") + pd.Timedelta(1, "ns"),))
    reader = NarwhalsEngine(READ["times"][0])
    with pytest.raises(errors.ParameterError, match="finer than a microsecond"):
        reader.table([fine], "t")
    spans = NarwhalsEngine(pa.table({"t": pa.array([datetime.timedelta(1)])}))
    with pytest.raises(errors.ParameterError, match="column 't' holds Duration"):
        spans.table([Column("t", "category", categories=(pd.Timedelta(days=1),))], "t")


@pytest.mark.parametrize("frame", [None, 3, "secret", [1, 2], {"x": [1]}, pd.Series([1]), np.zeros(3)])
def test_an_invalid_frame_is_refused_by_its_type(frame):
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
    frame = frame_of(engine, table)
    if engine == "DuckDB":
        return frame.project("cast(g as integer) as n, x")
    if engine == "lazy Polars":
        import polars as pl

        return frame.select(pl.col("g").cast(pl.Int64).alias("n"), "x")
    assert engine == "Dask of NumPy"
    return frame.assign(n=frame["g"].astype("int64"))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("engine", ["DuckDB", "lazy Polars", "Dask of NumPy"])
def test_a_plan_that_fails_halfway_tells_no_cell(engine, texts_of):
    reader = NarwhalsEngine(failing(engine))
    count = Column("n", "integer", lower=0, upper=9)
    for call in (
        lambda: sum_of(reader, quantity(count, "t")),
        lambda: reader.table([count], "t"),
        lambda: reader.present(count),
        lambda: reader.grouped([quantity(NUMBER, "t")], [count], "t", products=True),
    ):
        with pytest.raises(errors.EngineError, match=r"failed to compute .* \(\w+\)\.") as failure:
            call()
        assert not [text for text in texts_of(failure.value) if "secret" in text]


def test_a_function_that_an_engine_misses_is_one_clear_error(monkeypatch, texts_of):
    import narwhals.stable.v2 as library

    reader = NarwhalsEngine(everyday(12))

    def missing(*_: Any, **__: Any) -> None:
        raise NotImplementedError("no group_by, and here is a cell: secret")

    monkeypatch.setattr(library.DataFrame, "group_by", missing)
    with pytest.raises(
        errors.EngineError, match=r"^PyArrow failed to compute a table \(NotImplementedError\)"
    ) as failure:
        reader.table([LETTER], "t")
    assert not [text for text in texts_of(failure.value) if "secret" in text]


def test_an_engine_that_rounds_in_another_way_is_found_out(monkeypatch):
    """Were (x + shift) - zero simplified, numbers would be off their grid, and no sum of whole steps."""
    number = quantity(NUMBER, "t")
    object.__setattr__(number, "shift", 0.3)
    monkeypatch.setattr(Quantity, "zero", property(lambda self: 0.0))
    with pytest.raises(errors.EngineError, match="does not add doubles as the processor does"):
        NarwhalsEngine(everyday(12)).collect([Read("grouped", ((number,), (), "t"), (("products", False),))])


@pytest.mark.full
def test_without_narwhals_the_extra_of_the_engine_is_named():
    code = (
        "import sys; sys.modules['narwhals'] = None\n"
        "from pdprivacy.core.engines.other import NarwhalsEngine\n"
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
    process = subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, text=True, check=True
    )
    assert process.stdout.split("\n")[:-1] == [
        f'pip install "pdprivacy[{extra}]"' for extra in modules.values()
    ]


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.InvalidDataWarning")
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.DeclarationWarning")
@pytest.mark.parametrize("engine", ["PyArrow", "Polars", "DuckDB", "pandas"])
@pytest.mark.parametrize("upper", ["2020-01-31", "9999-12-31"])
def test_days_that_python_does_not_know_are_out_of_bounds(engine, upper):
    """Days after the year 9999, and the infinity of DuckDB, have the fate that is declared, and no error."""
    days = pa.array([18262, 18270, 3_000_000, 2**31 - 1, -3_000_000, None], type=pa.int32())
    table = pa.table({"a": days.cast(pa.date32())})
    if engine == "Polars":
        frame = pytest.importorskip("polars", reason="Polars is not installed").from_arrow(table)
    elif engine == "DuckDB":
        frame = pytest.importorskip("duckdb", reason="DuckDB is not installed").from_arrow(table)
    else:
        column = pd.Series(pd.arrays.ArrowExtensionArray(table["a"]))
        frame = table if engine == "PyArrow" else pd.DataFrame({"a": column})
    start, last = datetime.date(1, 1, 1), datetime.date.fromisoformat(upper)
    size = (last - start).days
    origin = (start - datetime.date(1970, 1, 1)).days
    column = Column("a", "integer", True, lower=0, upper=size, timeline=Timeline(origin, "D"))
    for fate, rows in (("drop", 3), ("clip", 6)):
        private = pdprivacy.protect(frame, Domain((column,)), epsilon=10**9, on_invalid=fate)
        assert private.dp.count(epsilon=10**6, rng=1).iloc[0] == rows
    assert private.dp.quality()["clipped"].tolist() == [3]
    latest = private.dp.quantile("a", 0.999, epsilon=10**8, rng=1)
    assert str(latest.iloc[0].date()) == upper
    with pytest.raises(pdprivacy.errors.InvalidDataError, match="has values outside"):
        pdprivacy.protect(frame, Domain((column,)), epsilon=1)
