"""Integers near the ends of 64 bits are the same numbers on every engine, or refused before any is read."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, errors
from tests.support.engine_frames import ENGINES, frame_of
from tests.support.recorder import recording

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")

LEAST, MOST = -(2**63), 2**63 - 1
FAST = [engine for engine in ENGINES if engine not in ("Dask", "Dask of NumPy", "Spark")]


def protected(engine: str, cells: Any, column: Column, **words: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        return pdprivacy.protect(
            frame_of(engine, pa.table({"x": cells})), Domain((column,)), epsilon=1e9, **words
        )


SIGNED = [LEAST, LEAST + 1, -(2**62) - 5, -3, 2**53 + 1, 2**62 + 2**61, 2**62 + 2**61, MOST - 1, MOST]
UNSIGNED = [0, 3, 2**53 + 1, 2**62 + 2**61, 2**62 + 2**61, 2**63 + 5, 2**64 - 2, 2**64 - 1, 2**64 - 1]


@pytest.mark.full(keep=6)
@pytest.mark.parametrize("engine", [*FAST, pytest.param("Dask", marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["integer", "float"])
@pytest.mark.parametrize("signed", [True, False])
def test_medians_beyond_two_to_the_62_are_those_of_the_cells(engine, kind, signed):
    """Five of the nine cells are 2**62 + 2**61 at most, and five at least."""
    cells = pa.array(SIGNED if signed else UNSIGNED, pa.int64() if signed else pa.uint64())
    lower, upper = (LEAST, MOST) if kind == "integer" else (-1e19, 1e20)
    private = protected(engine, cells, Column("x", kind, lower=lower, upper=upper), on_invalid="clip")
    with recording(noise="none"):
        middle, total = (getattr(private.dp, name)("x", epsilon=1).iloc[0] for name in ("median", "sum"))
    expected = 2**62 + 2**61 if not signed else 2**53 + 1
    grid = 2**64 / 2**30 if kind == "integer" else 1e20 / 2**28
    assert abs(middle - expected) <= 2 * grid
    within = [min(cell, MOST) if kind == "integer" else cell for cell in (SIGNED if signed else UNSIGNED)]
    assert abs(total - sum(within)) <= 9 * grid


@pytest.mark.parametrize("engine", FAST)
def test_labels_beyond_two_to_the_62_are_told_apart(engine):
    labels = (MOST, MOST - 1, 2**62, 2**62 + 1)
    cells = pa.array([MOST, MOST, MOST - 1, 2**62, 2**62 + 1, 2**64 - 1, 2**63], pa.uint64())
    for column in (
        Column("x", "integer", categories=labels),
        Column("x", "category", categories=labels),
    ):
        private = protected(engine, cells, column, on_invalid="drop")
        with recording(noise="none"):
            table = private.dp.value_counts("x", epsilon=1)
        assert [table[label] for label in labels] == [2, 1, 1, 1]


@pytest.mark.parametrize("engine", FAST)
def test_integers_at_the_ends_of_64_bits_are_counted(engine):
    cells = pa.array([LEAST, LEAST + 1, LEAST + 1, 0, MOST])
    private = protected(
        engine, cells, Column("x", "integer", lower=LEAST, upper=LEAST + 2), on_invalid="clip"
    )
    with recording(noise="none"):
        table = private.dp.value_counts("x", epsilon=1)
    assert table.to_dict() == {LEAST: 1, LEAST + 1: 2, LEAST + 2: 2}


@pytest.mark.parametrize("engine", ["pandas", "PyArrow"])
@pytest.mark.parametrize(
    "column",
    [
        Column("x", "integer", lower=0, upper=2**63),
        Column("x", "integer", lower=-(2**63) - 1, upper=0),
        Column("x", "integer", categories=(1, 2**64)),
        Column("x", "category", categories=("a", 2**64)),
    ],
)
def test_declared_integers_of_more_than_64_bits_are_refused(engine, column):
    with pytest.raises(errors.DeclarationError, match=r"between -2\*\*63 and 2\*\*63 - 1"):
        protected(engine, pa.array([1, 2]), column)


def test_integers_of_128_bits_are_refused_where_their_bounds_are_wider_than_64():
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    frame = pl.DataFrame({"x": pl.Series([1, 2**100], dtype=pl.Int128)})
    with pytest.raises(errors.ParameterError, match="128 bits"):
        pdprivacy.protect(frame, Domain((Column("x", "float", lower=0, upper=1e40),)), epsilon=1)


@pytest.mark.parametrize("engine", ["pandas", "pandas of Arrow", "Polars", "PyArrow"])
@pytest.mark.parametrize(
    "column",
    [
        Column("x", "integer", True, categories=(2**60 + 1, 2**60 + 3)),
        Column("x", "category", True, categories=(2**60 + 1, 2**60 + 3)),
        Column("x", "integer", True, lower=0, upper=2**60),
    ],
)
def test_floats_are_not_taken_for_integers_that_they_merge(engine, column):
    """One null makes floats of a whole column of integers that `read_csv` reads."""
    with pytest.raises(errors.InvalidDataError, match="and holds floats"):
        protected(engine, pa.array([2.0**60, None], pa.float64()), column, on_invalid="drop")
    whole = protected(
        engine, pa.array([2**60 + 1] * 2), column, on_invalid="clip" if column.upper else "raise"
    )
    assert whole.dp.count(epsilon=1e6).iloc[0] == 2


def test_floats_that_a_schema_makes_integers_of_are_refused_too():
    import pandera.pandas as pandera

    labels = pandera.Check.isin([2**60 + 1, 2**60 + 3])
    schema = pandera.DataFrameSchema(
        {"x": pandera.Column("Int64", labels, nullable=True, coerce=True, metadata={"dp": {}})}
    )
    with pytest.raises(errors.InvalidDataError, match="and holds floats"):
        pd.DataFrame({"x": [2.0**60, None]}).dp.protect(schema, epsilon=1, on_invalid="drop")


EDGE = 2**53
BOUNDED = {
    "a lower bound that doubles round": (
        EDGE + 1,
        EDGE + 4,
        [EDGE - 1, EDGE, EDGE, EDGE + 1, EDGE + 4, EDGE + 5],
    ),
    "an upper bound to which doubles round": (EDGE - 3, EDGE, [EDGE - 4, EDGE - 3, EDGE, EDGE, EDGE + 1]),
    "the same below zero": (-EDGE, 3 - EDGE, [-EDGE - 1, -EDGE, -EDGE, 3 - EDGE, 4 - EDGE]),
    "the last integers": (MOST - 4, MOST, [0, MOST - 5, MOST - 5, MOST - 4, MOST - 1, MOST]),
    "the first integers": (LEAST, LEAST + 2, [LEAST, LEAST, LEAST + 1, LEAST + 3]),
    "beyond 64 bits": (MOST - 1, MOST, [MOST - 2, MOST, MOST + 1, 2**64 - 1]),
}
LABELLED = {
    "labels that doubles merge": ((EDGE + 1, EDGE + 2), [EDGE, EDGE, EDGE + 1, EDGE + 2, EDGE + 3]),
    "the last label that doubles tell apart": ((EDGE - 1, EDGE), [EDGE - 1, EDGE, EDGE, EDGE + 1, EDGE + 1]),
    "the same below zero": ((1 - EDGE, -EDGE), [1 - EDGE, -EDGE, -EDGE - 1, -EDGE - 1]),
}
STORES = ("int64", "Int64", "uint64", "UInt64", "object", "decimals of Python")
COLUMNS = ("integers", "decimals", "integers of 128 bits")


def stored(cells: list[int], store: str) -> Any:
    """A pandas frame with these integers in a column of this kind."""
    if store in ("object", "decimals of Python"):
        return pd.DataFrame(
            {"x": pd.Series([(int if store == "object" else Decimal)(n) for n in cells], dtype=object)}
        )
    return pd.DataFrame({"x": pd.Series(cells, dtype=store)})


def held_by(engine: str, cells: list[int], kind: str) -> Any:
    """A frame of an engine with these integers in a column of this kind."""
    if kind == "integers":
        signed = min(cells) < 0 or max(cells) <= MOST
        return frame_of(engine, pa.table({"x": pa.array(cells, pa.int64() if signed else pa.uint64())}))
    if kind == "decimals":
        return frame_of(engine, pa.table({"x": pa.array(list(map(Decimal, cells)), pa.decimal128(20, 0))}))
    if engine == "DuckDB":
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        return duckdb.sql(f"select unnest({list(map(str, cells))})::hugeint as x")
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    frame = pl.DataFrame({"x": pl.Series(cells, dtype=pl.Int128)})
    return frame.lazy() if "lazy" in engine else frame


def frames_of(cells: list[int], engines: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The integers in every column of pandas and of other engines that holds them."""
    for store in STORES:
        limits = {"int": (LEAST, MOST), "uin": (0, 2**64 - 1)}.get(store[:3].lower(), (-(2**70), 2**70))
        if limits[0] <= min(cells) and max(cells) <= limits[1]:
            yield store, stored(cells, store)
    for engine in engines:
        for kind in COLUMNS if engine in ("Polars", "lazy Polars", "DuckDB") else COLUMNS[:2]:
            yield f"{kind} in {engine}", held_by(engine, cells, kind)


def engines_of(full: bool) -> list[str]:
    """The engines that a test asks: of all readers of pieces one by default."""
    return [*FAST, "Dask"] if full else ["Polars"]


def assert_counted(
    cells: list[int], column: Column, kept: Callable[[int], int | None], engines: Sequence[str], **words: Any
) -> None:
    """Every frame gives the table of the cells that stay, by the arithmetic of Python."""
    left = [number for cell in cells if (number := kept(cell)) is not None]
    for name, frame in frames_of(cells, engines):
        private = pdprivacy.protect(frame, Domain((column,)), epsilon=1e9, **words)
        with recording(noise="none"):
            table = private.dp.value_counts("x", epsilon=1)
        assert {label: count for label, count in table.items() if count} == Counter(left), name
        quality = private.dp.quality().loc["x"]
        moved = sum(kept(cell) != cell for cell in cells)
        assert quality["dropped" if words["on_invalid"] == "drop" else "clipped"] == moved, name


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_beyond_doubles_are_compared_with_the_cells_exactly(name, full):
    lower, upper, cells = BOUNDED[name]
    column = Column("x", "integer", lower=lower, upper=upper, public_bounds=True)
    engines = engines_of(full)
    inside = [cell if lower <= cell <= upper else None for cell in cells]
    assert_counted(cells, column, dict(zip(cells, inside, strict=True)).get, engines, on_invalid="drop")
    assert_counted(cells, column, lambda cell: min(max(cell, lower), upper), engines, on_invalid="clip")
    for outside in {cell for cell in cells if not lower <= cell <= upper}:
        for _, frame in frames_of([lower, outside], engines if full else []):
            with pytest.raises(errors.InvalidDataError, match="has values outside"):
                pdprivacy.protect(frame, Domain((column,)), epsilon=1)


@pytest.mark.parametrize("kind", ["integer", "category"])
@pytest.mark.parametrize("name", LABELLED)
def test_labels_beyond_doubles_are_compared_with_the_cells_exactly(name, kind, full):
    labels, cells = LABELLED[name]
    column = Column("x", kind, categories=labels)
    assert_counted(
        cells, column, lambda cell: cell if cell in labels else None, engines_of(full), on_invalid="drop"
    )


def test_decimals_with_a_fraction_are_compared_with_wide_bounds_as_doubles():
    column = Column("x", "integer", lower=EDGE + 1, upper=EDGE + 4, public_bounds=True)
    cells = [Decimal(EDGE + 2), Decimal(f"{EDGE}.5"), Decimal(f"{EDGE + 4}.25")]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    private = pdprivacy.protect(frame, Domain((column,)), epsilon=1e9, on_invalid="drop")
    with recording(noise="none"):
        assert private.dp.count(epsilon=1).iloc[0] == 2
