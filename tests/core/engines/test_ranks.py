"""Records by rank on every engine (`histogram_ranks`): whole windows, and the draws of pandas frames."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pdprivacy import Budget, Column, errors
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.engines.other import NarwhalsEngine
from pdprivacy.core.engines.other import histogram_ranks as ranks_module
from pdprivacy.core.engines.other.column_expressions import StoredColumn
from pdprivacy.core.mechanisms.exponential import Choosing
from pdprivacy.core.statistics import Quantile, RankGrid, Scope, Window
from tests.support.engine_frames import frame_of
from tests.support.gate import selected
from tests.support.hard_frames import INF, NAN, RANKED, numbers, of_float, of_integer

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")
pytest.importorskip("narwhals", reason="narwhals is not installed")


# ---------------------------------------------------------------- engines


ENGINES = ["Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow", "pandas of Arrow"]


def reference(table: pa.Table) -> PandasEngine:
    """A pandas frame of doubles, or of integers with nulls where doubles would not hold them."""
    (field,) = table.schema
    if pa.types.is_integer(field.type):
        kind = "UInt64" if pa.types.is_unsigned_integer(field.type) else "Int64"
        return PandasEngine(pd.DataFrame({"x": pd.array(table["x"].to_pylist(), dtype=kind)}))
    cells = [NAN if cell is None else float(cell) for cell in table["x"].to_pylist()]
    return PandasEngine(pd.DataFrame({"x": np.array(cells, dtype=np.float64)}))


@pytest.fixture
def queries(monkeypatch) -> list[int]:
    """The number of groups in the result of each query of an engine."""
    sizes: list[int] = []
    true = NarwhalsEngine._compute

    def computed(self: Any, *arguments: Any, **options: Any) -> Any:
        parts = true(self, *arguments, **options)
        sizes.append(sum(len(result) for part in parts for result in part))
        return parts

    monkeypatch.setattr(NarwhalsEngine, "_compute", computed)
    return sizes


def check_window(window: Window, whole: Window, first: int, last: int) -> None:
    """All records of its steps are in a window, and as many below and up to its end as was asked.

    Bins of engines differ from those of pandas frames, so that a window may be wider or narrower.
    """
    inside = (whole.values >= window.low) & (whole.values <= window.high)
    below = int(whole.counts[whole.values < window.low].sum())
    assert window.below == below <= max(first, 0)
    for actual, expected in ((window.values, whole.values[inside]), (window.counts, whole.counts[inside])):
        assert actual.dtype == np.int64
        assert actual.tolist() == expected.tolist()
    assert below + int(window.counts.sum()) >= min(last, int(whole.counts.sum()))
    assert whole.low <= window.low <= window.high <= whole.high


SIZES = {"ordinary": {}, "step by step": {"FEW": 0}, "in parts": {"FEW": 0, "AT_ONCE": 1000}}
CHOICES = [
    (Fraction(1, 2), None),
    (Fraction(1, 10), None),
    (Fraction(999, 1000), None),
    (Fraction(0), "lower"),
    (Fraction(1), "upper"),
]


SLOW = ("Dask", "DuckDB")
"""Engines whose queries take long: of three ways each hard frame is read in one by them, by others in all."""


def in_turn(engine: str, name: str, turn: int) -> bool:
    return engine not in SLOW or list(RANKED).index(name) % 3 == turn


def drawn(engine: Any, column: Column, epsilon: Any) -> list[Any]:
    """The grid steps of all choices."""
    scope = Scope("add_remove", None)
    grid = RankGrid(column, "quantile")
    choices = [Quantile(grid, q, scope, Fraction(1, len(CHOICES)), end) for q, end in CHOICES]  # type: ignore[arg-type]
    request = Choosing(epsilon, mechanism="exponential", releases=2)
    return selected(choices, engine, Budget(10**9), request, 7)


@functools.cache
def drawn_by_pandas(name: str, epsilon: Any) -> list[Any]:
    table, column = RANKED[name]
    return drawn(reference(table), column, epsilon)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RANKED)
def test_selected_values_are_those_of_pandas(name, engine):
    table, column = RANKED[name]
    for turn, epsilon in enumerate(("0.001", 1, 200)):
        if in_turn(engine, name, turn):
            actual = drawn(NarwhalsEngine(frame_of(engine, table)), column, epsilon)
            assert actual == drawn_by_pandas(name, epsilon)


@functools.cache
def ranks_of_pandas(name: str) -> Any:
    """The ranks of a hard frame, and its windows by their ends."""
    table, column = RANKED[name]
    ranks = reference(table).ranks(RankGrid(column, "quantile"))
    return ranks.rows, functools.cache(ranks.between)


@pytest.mark.full
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("engine", ENGINES)
def test_windows_are_those_of_pandas(engine, sizes, monkeypatch):
    for size, value in SIZES[sizes].items():
        monkeypatch.setattr(ranks_module, size, value)
    for name, (table, column) in RANKED.items():
        if not in_turn(engine, name, list(SIZES).index(sizes)):
            continue
        frame = NarwhalsEngine(frame_of(engine, table)).ranks(RankGrid(column, "quantile"))
        rows, expected = ranks_of_pandas(name)
        assert frame.rows == rows
        assert type(frame.rows) is int
        for first, last in ((0, rows), (rows // 2, rows // 2), (-5, 3), (rows - 1, rows + 9), (1, rows - 1)):
            check_window(frame.between(first, last), expected(0, rows), first, last)


# ---------------------------------------------------------------- by definition

ANY = st.sampled_from([0.0, 10.0, 3.25, -0.0, 1e-9, -INF, INF, 1e300, NAN, None, 9.999999999])
SPAN = st.tuples(st.integers(-3, 45), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(
    ("engine", "upper"), [("PyArrow", 10.0), ("PyArrow", 10), ("lazy Polars", 10.0), ("DuckDB", 10.0)]
)
@settings(max_examples=15)
@given(
    cells=st.lists(ANY | st.floats(-1, 12) | st.floats(3.0, 3.0001), max_size=40),
    spans=st.lists(SPAN, min_size=1, max_size=4),
)
@example(cells=[], spans=[(0, 0), (5, 5), (-2, -1)])
@example(cells=[10.0, 0.0], spans=[(0, 2), (1, 1), (2, 2), (0, 0)])
def test_windows_hold_their_records(engine, upper, sizes, cells, spans):
    """Each as the protocol defines it, whatever was read before, and by brute force what is in it."""
    column = of_integer(0, upper) if isinstance(upper, int) else of_float(0.0, upper)
    grid = RankGrid(column, "quantile")
    clipped = np.clip(np.array([cell for cell in cells if cell is not None and cell == cell]), 0, 10)
    steps = np.sort(grid.steps(clipped.astype(np.float64)))
    with pytest.MonkeyPatch.context() as patched:
        for name, value in SIZES[sizes].items():
            patched.setattr(ranks_module, name, value)
        ranks = NarwhalsEngine(frame_of(engine, numbers(cells, pa.float64()))).ranks(grid)
        assert ranks.rows == len(steps)
        for first, last in spans:
            window = ranks.between(first, last)
            inside = steps[(steps >= window.low) & (steps <= window.high)]
            assert np.repeat(window.values, window.counts).tolist() == inside.tolist()
            assert len(set(window.values.tolist())) == len(window.values)
            assert window.below == (steps < window.low).sum() <= max(first, 0)
            assert window.low == grid.low or first > 0
            assert grid.low <= window.low <= window.high <= grid.high
            assert window.high == grid.high or (steps <= window.high).sum() >= last
            assert window.high == grid.high or last < len(steps)


# ---------------------------------------------------------------- what is read

MANY = 150_000
SPREAD = np.random.default_rng(4).uniform(0, 100, MANY)


def quantiles(engine: Any, column: Column, shares: list[Fraction], epsilon: Any) -> Any:
    scope = Scope("add_remove", None)
    grid = RankGrid(column, "quantile")
    choices = [Quantile(grid, q, scope, Fraction(1, len(shares))) for q in shares]
    request = Choosing(epsilon, mechanism="exponential")
    return selected(choices, engine, Budget(10**9), request, 5)[0]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("engine", ["Polars", "lazy Polars", "DuckDB", "Dask"])
def test_a_median_is_two_queries_and_one_of_few_steps(engine, queries):
    half = [Fraction(1, 2)]
    table, column = numbers(SPREAD), of_float(0.0, 100.0)
    expected = quantiles(reference(table), column, half, 1)
    frame = NarwhalsEngine(frame_of(engine, table))
    queries.clear()
    assert quantiles(frame, column, half, 1) == expected
    assert len(queries) == 2
    table, column = numbers(SPREAD.astype(np.int64)), of_integer(0, 120)
    frame = NarwhalsEngine(frame_of(engine, table))
    queries.clear()
    quantiles(frame, column, half, "0.0001")
    assert len(queries) == 1


def test_several_quantiles_of_few_records_are_two_queries(queries):
    table, column = numbers(SPREAD[:5000]), of_float(0.0, 100.0)
    frame = NarwhalsEngine(frame_of("lazy Polars", table))
    shares = [Fraction(twentieth, 20) for twentieth in range(1, 20)]
    expected = quantiles(reference(table), column, shares, 10)
    queries.clear()
    assert quantiles(frame, column, shares, 10) == expected
    assert len(queries) == 2


def test_only_steps_near_the_rank_leave_the_engine(queries):
    """Those between the ranks, and in the two bins at the ends, whatever the number of rows."""
    grid = RankGrid(of_float(0.0, 100.0), "quantile")
    ranks = NarwhalsEngine(frame_of("lazy Polars", numbers(SPREAD))).ranks(grid)
    window = ranks.between(MANY // 2 - 500, MANY // 2 + 500)
    largest = np.bincount(((SPREAD / 100) * 4096 * 0.9).astype(int)).max()
    assert queries[1] == len(window.values) <= 1000 + 4 * largest
    assert queries[0] <= 4096


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("most", [40_000, 10**6])
def test_many_windows_read_no_more_than_the_frame_twice(most, queries, monkeypatch):
    """Where all steps may be held at once, they are; else each window is read alone, in parts."""
    monkeypatch.setattr(ranks_module, "AT_ONCE", most)
    grid = RankGrid(of_float(0.0, 100.0), "quantile")
    table = numbers(SPREAD)
    ranks = NarwhalsEngine(frame_of("lazy Polars", table)).ranks(grid)
    whole = reference(table).ranks(grid).between(0, MANY)
    spans = [(start * 1000, start * 1000 + 30_000) for start in range(0, 120, 7)]
    for span in itertools.chain(spans, spans):
        check_window(ranks.between(*span), whole, *span)
    assert max(queries) <= most
    if most > MANY:
        assert sum(queries[1:]) <= 2 * MANY
        assert queries[-1] == len(np.unique(SPREAD))


@pytest.mark.full
@pytest.mark.parametrize("at_once", [2000, 10**6])
def test_a_bin_with_too_many_steps_is_counted_in_smaller_ones(at_once, queries, monkeypatch):
    """Where nearly all records are in one bin, of which each part of the frame gives its own steps."""
    monkeypatch.setattr(ranks_module, "FEW", 0)
    monkeypatch.setattr(ranks_module, "MANY", 1000)
    monkeypatch.setattr(ranks_module, "AT_ONCE", at_once)
    column = of_float(-1e6, 1e6)
    grid = RankGrid(column, "quantile")
    values = np.concatenate([SPREAD[:30_000], [-2e5, 4e5, 4e5]])
    frame = NarwhalsEngine(frame_of("Dask", numbers(values)))
    steps = np.sort(grid.steps(values))
    ranks = frame.ranks(grid)
    for first, last in (
        (15_000, 15_100),
        (500, 500),
        (29_999, 30_002),
        (2, 9),
        (100, 20_000),
        (0, len(steps)),
    ):
        window = ranks.between(first, last)
        inside = steps[(steps >= window.low) & (steps <= window.high)]
        assert np.repeat(window.values, window.counts).tolist() == inside.tolist()
        assert window.below == (steps < window.low).sum() <= first
        assert (steps <= window.high).sum() >= last
        if last - first < 1000:
            assert len(inside) < 3000
    assert max(queries) <= max(at_once, 3 * 4097)
    half = [Fraction(1, 2), Fraction(9, 10)]
    queries.clear()
    assert quantiles(frame, column, half, 1) == quantiles(reference(numbers(values)), column, half, 1)
    assert len(queries) <= 1 + 2 * 3


def test_no_more_is_remembered_than_one_query_gives(monkeypatch):
    monkeypatch.setattr(ranks_module, "AT_ONCE", 30_000)
    grid = RankGrid(of_float(0.0, 100.0), "quantile")
    ranks = NarwhalsEngine(numbers(SPREAD)).ranks(grid)
    for start in range(0, 140_000, 9000):
        window = ranks.between(start, start + 9000)
        assert sum(len(span.steps) for span in ranks._fetched) <= max(30_000, len(window.values))


# ---------------------------------------------------------------- faults


def test_a_frame_that_changes_between_its_readings_is_found_out(texts_of):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    connection = duckdb.connect()
    connection.register("given", numbers(SPREAD))
    connection.execute("create table held as select * from given")
    ranks = NarwhalsEngine(connection.table("held")).ranks(RankGrid(of_float(0.0, 100.0), "quantile"))
    ranks.between(100, 200)
    connection.execute("insert into held values (50.123456)")
    ranks.between(100, 200)  # is held
    with pytest.raises(errors.EngineError, match=r"^DuckDB gave other records when .* read again") as failure:
        ranks.between(0, MANY)
    assert not [text for text in texts_of(failure.value) if "50.12" in text]


def test_a_plan_that_fails_halfway_tells_no_cell(texts_of):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    table = pa.table({"g": ["1", "2", "secret"]})
    frame = duckdb.connect().from_arrow(table).project("cast(g as integer) as x")
    with pytest.raises(errors.EngineError, match=r"^DuckDB failed to compute the ranks") as failure:
        NarwhalsEngine(frame).ranks(RankGrid(of_float(0.0, 9.0), "quantile"))
    assert not [text for text in texts_of(failure.value) if "secret" in text]


def test_an_engine_that_clamps_in_another_way_is_found_out(monkeypatch):
    """Numbers beyond the bounds have no step."""
    monkeypatch.setattr(StoredColumn, "_within", lambda self, lower, upper, read=None: self._selected)
    grid = RankGrid(of_float(0.0, 9.0), "quantile")
    assert NarwhalsEngine(numbers([1.0, 0.7, None])).ranks(grid).rows == 2
    for cell in (9.5, -0.5):
        with pytest.raises(errors.EngineError, match="does not compare doubles as the processor does"):
            NarwhalsEngine(numbers([1.0, cell, None])).ranks(grid)


def test_an_invalid_number_is_refused_before_any_read(queries):
    frame = NarwhalsEngine(pa.table({"x": ["a"]}))
    with pytest.raises(errors.InvalidDataError, match=r"column 'x' is declared as float"):
        frame.ranks(RankGrid(of_float(0.0, 9.0), "quantile"))
    with pytest.raises(errors.InvalidDataError, match=r"column 'y' is declared and not in the frame"):
        frame.ranks(RankGrid(Column("y", "float", True, lower=0.0, upper=9.0), "quantile"))
    assert queries == []
