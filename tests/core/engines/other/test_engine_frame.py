"""Steps of lazy frames are computed where a read needs them; frames of DuckDB: threads, memory, settings."""

from __future__ import annotations

import datetime
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Budget, Column, Domain, errors
from pdprivacy.core.engines.other import Piecewise
from pdprivacy.core.engines.other.engines import run_guarded
from pdprivacy.core.engines.other.native_frames import streamed
from tests.support.engine_frames import each_engine, frame_of

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")
pl = pytest.importorskip("polars", reason="Polars is not installed")
duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
pytest.importorskip("narwhals", reason="narwhals is not installed")

LAZY = ["lazy Polars", "DuckDB", "Dask", "Spark"]
ROWS = 60
TABLE = pa.table(
    {
        "unasked": pa.array(["secret"] * ROWS),
        "x": pa.array(np.arange(ROWS) * 0.5),
        "k": pa.array([0, 1, 2] * 20),
        "born": pa.array([datetime.date(2020, 1, 1 + day % 28) for day in range(ROWS)]),
        "left": pa.array([datetime.date(2021, 2, 1 + day % 28) for day in range(ROWS)]),
    }
)


@pytest.fixture
def domain() -> Domain:
    import pandera.pandas as pandera

    released = {"dp": {"bounds": "public"}}
    days = pandera.Check.in_range(datetime.date(2019, 1, 1), datetime.date(2022, 1, 1))
    return pdprivacy.read_schema(
        pandera.DataFrameSchema(
            {
                "x": pandera.Column(float, pandera.Check.in_range(0, 50), metadata=released),
                "k": pandera.Column(int, pandera.Check.in_range(0, 9), metadata=released),
                "born": pandera.Column(pandera.Date, days, metadata=released),
                "left": pandera.Column(pandera.Date, days, metadata=released),
            }
        )
    )


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The columns that steps have looked at since it was cleared."""
    seen: set[str] = set()
    true = Piecewise._compute

    def computed(self: Piecewise, frame: pd.DataFrame) -> Any:
        if len(frame):  # not the frame without records that tells the types
            seen.update(frame.columns)
        return true(self, frame)

    monkeypatch.setattr(Piecewise, "_compute", computed)
    return seen


READS: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "count": (lambda p: p.dp.count(epsilon=1), set()),
    "mean of a number": (lambda p: p.dp.mean("x", epsilon=1), set()),
    "table": (lambda p: p.dp.value_counts("k", epsilon=1), set()),
    "median": (lambda p: p.dp.median("x", epsilon=1), set()),
    "a date": (lambda p: p.dp.max("born", epsilon=1), {"born"}),
    "both dates": (lambda p: p.dp.min(["born", "left"], epsilon=1), {"born", "left"}),
    "filter": (lambda p: p.query("k > 0").dp.mean("x", epsilon=1), {"k"}),
    "filter by a date": (lambda p: p.query("born > '2020-01-09'").dp.mean("x", epsilon=1), {"born"}),
    "unread": (lambda p: p.assign(y="x * 2", z="k + 1").dp.count(epsilon=1), set()),
    "one of two": (lambda p: p.assign(y="x * 2", z="k + 1").dp.mean("z", epsilon=1), {"k"}),
    "one of the other": (lambda p: p.assign(y="x * 2", z="y + 1").dp.mean("z", epsilon=1), {"x"}),
    "replaced": (lambda p: p.assign(x="k * 2").clip(upper={"x": 3}).dp.mean("x", epsilon=1), {"k", "x"}),
    "of others": (lambda p: p.fillna(0).recode("k", {1: 2}).dp.mean("x", epsilon=1), set()),
    "renamed": (lambda p: p.rename({"x": "y", "k": "n"}).dp.mean("y", epsilon=1), {"x"}),
    "part": (lambda p: next(iter(p.dp.partition("k", epsilon=1).values())).dp.count(epsilon=1), {"k"}),
}


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("engine", each_engine(name for name in LAZY if name != "Spark"))
@pytest.mark.parametrize("name", READS)
def test_steps_look_at_the_columns_that_a_read_needs(engine, name, domain, converted):
    release, expected = READS[name]
    table = TABLE.append_column("h", pa.array([True] * ROWS))
    private = pdprivacy.protect(frame_of(engine, table), domain, epsilon=100)
    converted.clear()
    release(private)
    assert converted == expected


def test_a_lazy_frame_computes_no_column_that_nobody_asked_for(domain):
    """The plan of Polars names each column that is computed."""
    computed = set()

    def noted(name: str) -> Any:
        def function(values: Any) -> Any:
            computed.add(name)
            return values

        return pl.col(name).map_batches(function, whole.schema[name], is_elementwise=True)

    whole = pl.from_arrow(TABLE)
    frame = whole.lazy().with_columns(noted(name) for name in TABLE.column_names)
    private = pdprivacy.protect(frame, domain, epsilon=100)
    assert computed == set(domain.names)
    for release, expected in (
        (lambda: private.dp.mean("x", epsilon=1), {"x"}),
        (lambda: private.query("k > 0").dp.mean("x", epsilon=1), {"k", "x"}),
        (lambda: private.assign(y="x + k").dp.mean("k", epsilon=1), {"k"}),
    ):
        computed.clear()
        release()
        assert computed == expected
    with private.dp.batch() as batch:
        batch.mean("x", epsilon=1)
        batch.value_counts("k", epsilon=1)
        computed.clear()
    assert computed == {"x", "k"}


def test_a_batch_of_duckdb_reads_the_columns_that_are_asked_for(monkeypatch):
    read = set()
    monkeypatch.setattr(
        "pdprivacy.core.engines.other.narwhals_engine.streamed",
        lambda relation: read.update(relation.columns) or streamed(relation),
    )
    columns = (Column("x", "float", lower=0, upper=50), Column("k", "integer", lower=0, upper=9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        private = pdprivacy.protect(
            frame_of("DuckDB", TABLE),
            Domain((*columns, Column("unasked", "category", categories=("secret",)))),
            epsilon=9,
        )
    with private.dp.batch() as batch:
        batch.mean("x", epsilon=1)
        batch.value_counts("k", epsilon=1)
    assert read == {"x", "k"}


# ---------------------------------------------------------------- threads


def many_numbers(connection: Any) -> Any:
    return connection.sql("select (i % 90)::double as x, i // 2 as u from range(300000) t(i)")


NUMBER = Domain((Column("x", "float", lower=-1, upper=100),))


@pytest.mark.parametrize("connections", ["one", "default"])
def test_threads_release_from_one_connection_of_duckdb(connections):
    """Two frames on one connection, or two on the default one: no release fails, and none is lost."""
    connection = duckdb.connect() if connections == "one" else duckdb
    frames = [pdprivacy.protect(many_numbers(connection), NUMBER, epsilon=100) for _ in range(2)]
    failures = []

    def release(private: Any) -> None:
        try:
            for _ in range(4):
                private.dp.mean("x", epsilon=1)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=release, args=(private,)) for private in frames * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for private in frames:
        assert private.dp.budget.spent == (8.0, 0.0)
        assert len(private.dp.budget.entries) == 8


def test_a_wait_for_the_connection_charges_nothing():
    """The turn is taken before the charge, so that whoever is interrupted while waiting lost nothing."""
    private = pdprivacy.protect(many_numbers(duckdb.connect()), NUMBER, epsilon=100)
    release = threading.Thread(target=lambda: private.dp.mean("x", epsilon=1))
    from pdprivacy.core.engines.other.engines import in_turn

    with in_turn("DuckDB"):
        release.start()
        release.join(0.2)
        assert release.is_alive()
        assert private.dp.budget.spent == (0.0, 0.0)
    release.join()
    assert private.dp.budget.spent == (1.0, 0.0)


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        (type("OutOfMemoryException", (Exception,), {}), "SET memory_limit"),
        (type("ResourceInUseException", (Exception,), {}), "con.cursor()"),
        (MemoryError, "in pieces"),
        (ValueError, "compute the frame by itself"),
    ],
)
def test_a_failure_has_the_hint_of_its_kind_and_no_word_of_the_engine(failure, hint):
    def failing() -> None:
        raise failure("secret")

    with pytest.raises(errors.EngineError, match=failure.__name__) as caught:
        run_guarded("a table", "DuckDB", failing)
    assert hint in caught.value.hint
    assert "secret" not in str(caught.value)


# ---------------------------------------------------------------- memory


def units_of_duckdb(rows: int, limit: str, folder: Any) -> Any:
    connection = duckdb.connect()
    connection.execute("set threads=1")
    connection.execute(f"set temp_directory='{folder / 'spilled'}'")
    numbers = ", ".join(f"(i * {j + 3} % 97)::double as x{j}" for j in range(8))
    connection.execute(
        f"create table t as select {numbers}, (hash(i) % {rows // 3})::bigint as u, "
        f"date '2020-01-01' + (i % 300)::integer as d from range({rows}) t(i)"
    )
    connection.execute(f"set memory_limit='{limit}'")
    return connection.table("t")


WIDE = Domain(tuple(Column(f"x{j}", "float", lower=-1, upper=100) for j in range(8)))


def test_memory_that_does_not_suffice_for_units_fails_before_a_charge(tmp_path):
    budget = Budget(epsilon=1)
    frame = units_of_duckdb(100_000, "6MB", tmp_path)
    with pytest.raises(errors.EngineError, match="OutOfMemoryException") as caught:
        pdprivacy.protect(frame, WIDE, budget=budget, unit="u", max_rows=1)
    assert "SET temp_directory" in caught.value.hint
    assert budget.spent == (0.0, 0.0)
    assert len(budget.entries) == 0


@pytest.mark.full
@pytest.mark.parametrize("fate", ["raise", "drop"])
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.InvalidDataWarning")
def test_records_of_units_are_spilled_within_the_memory_limit(tmp_path, fate):
    """Six times the limit: 10^6 records of ten columns."""
    frame = units_of_duckdb(1_000_000, "64MB" if fate == "drop" else "40MB", tmp_path)
    private = pdprivacy.protect(frame, WIDE, epsilon=10**6, unit="u", max_rows=2, on_invalid=fate)
    kept = frame.aggregate("least(count(*), 2) as n, u").aggregate("sum(n)").fetchall()[0][0]
    assert private.dp.count(epsilon=10**5)["rows"] == pytest.approx(kept, abs=1)
    assert 40 < private.dp.mean("x0", epsilon=10**5)["x0"] < 56


def test_pieces_are_put_together_under_the_settings_of_the_relation(tmp_path):
    relation = units_of_duckdb(100, "40MB", tmp_path)
    inner = streamed(relation).relation()
    names = ("threads", "preserve_insertion_order", "memory_limit", "temp_directory")
    settings = ", ".join(f"current_setting('{name}')" for name in names)
    outer, inner_settings = (
        read.limit(0).aggregate(f"count(*), {settings}").fetchall()[0] for read in (relation, inner)
    )
    assert inner_settings[:3] == outer[:3]
    # DuckDB tells three digits of it
    assert float(inner_settings[3].removesuffix(" MiB")) == pytest.approx(40e6 / 2**20, rel=0.01)
    assert inner_settings[4].startswith(f"{outer[4]}-")


@pytest.mark.parametrize("engine", ["lazy Polars", "DuckDB", "Dask", "PyArrow", "Polars"])
def test_dates_of_a_frame_with_units_are_read_as_without(engine, domain):
    """Each unit has one record, so that all are kept."""
    table = TABLE.append_column("u", pa.array(range(ROWS)))
    private = pdprivacy.protect(frame_of(engine, table), domain, epsilon=10**9, unit="u", max_rows=1)
    exact = {"epsilon": 10**8, "rng": 1}
    assert private.dp.count(**exact).round().tolist() == [ROWS]
    latest = private.query("born > '2020-01-20'").dp.count(**exact).round()
    assert latest.tolist() == [sum(day > datetime.date(2020, 1, 20) for day in table["born"].to_pylist())]


def test_hints_at_columns_of_another_type_are_no_code_of_pandas_for_other_engines():
    dask, frames_of_dask = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    mixed = pd.DataFrame({"x": pd.Series([1, "one"], dtype=object)})
    number, wide = Column("x", "float"), Column("x", "integer", lower=0, upper=2**60)
    with dask.config.set({"dataframe.convert-string": False}):
        frames = {
            "convert column 'x' to": (frames_of_dask.from_pandas(mixed, npartitions=1), number),
            "read column 'x' as integers of 64 bits": (pl.DataFrame({"x": [1.0, 2.0]}), wide),
        }
        for words, (frame, column) in frames.items():
            with pytest.raises(errors.InvalidDataError) as caught:
                pdprivacy.protect(frame, Domain((column,)), epsilon=1)
            assert words in str(caught.value)
            assert "pd." not in str(caught.value)
            assert "df[" not in str(caught.value)
