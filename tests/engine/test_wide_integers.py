"""Integers near the ends of 64 bits are the same numbers on every engine, or refused before any is read."""

from __future__ import annotations

import warnings
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
