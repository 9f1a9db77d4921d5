"""The frames of every engine, made of one Arrow table or one pandas frame.

A test takes the engines that concern it::

    @pytest.mark.parametrize("engine", each_engine(BESIDE_PANDAS))
    def test_something(engine):
        private = pdprivacy.protect(frame_of(engine, table), domain, epsilon=1)

An engine that is not installed skips the test that asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pandas as pd
import pytest

ON_NEWEST_PANDAS = pytest.mark.skipif(
    pd.__version__.startswith("2."), reason="the newest pandas and Arrow suffice"
)


def sum_of(engine: Any, number: Any) -> tuple[int, int]:
    """Return the records without null in an engine, and the sum of their grid steps."""
    sums = engine.grouped((number,), (), "t", products=False)
    return sums.rows[0], sums.sums[0][0]


def installed(module: str, name: str) -> Any:
    """Return a module, or skip the test and say which one it needs."""
    return pytest.importorskip(module, reason=f"{name} is not installed")


def arrow_table(data: Any) -> Any:
    """Return an Arrow table of a pandas frame; a table as it is."""
    pa = installed("pyarrow", "PyArrow")
    return pa.Table.from_pandas(data, preserve_index=False) if isinstance(data, pd.DataFrame) else data


def arrow_pandas(table: Any) -> pd.DataFrame:
    """Return a pandas frame of Arrow-backed columns."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def numpy_pandas(table: Any, *, objects: bool = False) -> pd.DataFrame:
    """Return a pandas frame of NumPy columns, and of nullable ones where NumPy has no nulls.

    Dates and decimals stay those of Arrow, or become Python objects.
    """
    pa = installed("pyarrow", "PyArrow")
    nullable = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }

    def dtype(kind: Any) -> Any:
        predicates = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal)
        return (
            pd.ArrowDtype(kind) if not objects and any(of(kind) for of in predicates) else nullable.get(kind)
        )

    frame = table.to_pandas(types_mapper=dtype)
    plain = [name for name in frame if frame[name].dtype.kind in "iub" and not frame[name].isna().any()]
    return frame.assign(**{name: frame[name].to_numpy() for name in plain})


def _polars(table: Any) -> Any:
    return installed("polars", "Polars").from_arrow(table)


@cache
def _database() -> Any:
    """A database in memory for all frames of this process: to make one takes longer than most tests."""
    return installed("duckdb", "DuckDB").connect()


def _duckdb(table: Any) -> Any:
    """A frame of DuckDB with a connection of its own."""
    return _database().cursor().from_arrow(table)


def _dask(frame: pd.DataFrame) -> Any:
    return installed("dask.dataframe", "Dask").from_pandas(frame, npartitions=3, sort=False)


def _spark(table: Any) -> Any:
    """A frame of the running session (the fixture ``spark`` starts it).

    Spark has no unsigned integers, and reads a table up to its first empty chunk.
    """
    session = installed("pyspark.sql", "Spark").SparkSession
    if any(str(kind).startswith("uint") for kind in table.schema.types):
        pytest.skip("Spark has no unsigned integers")
    return session.getActiveSession().createDataFrame(table.combine_chunks())


ENGINES: dict[str, Callable[[Any], Any]] = {
    "pandas": numpy_pandas,
    "pandas of Arrow": arrow_pandas,
    "Polars": _polars,
    "lazy Polars": lambda table: _polars(table).lazy(),
    "DuckDB": _duckdb,
    "Dask": lambda table: _dask(arrow_pandas(table)),
    "Dask of NumPy": lambda table: _dask(numpy_pandas(table)),
    "PyArrow": lambda table: table,
    "Spark": _spark,
}
BESIDE_PANDAS = [name for name in ENGINES if "pandas" not in name]
ORDERED = ["pandas", "pandas of Arrow", "Polars", "PyArrow"]  # keep the order of rows
LAZY = [name for name in ENGINES if name not in ORDERED]


def frame_of(engine: str, data: Any) -> Any:
    """Return the frame of an engine that holds an Arrow table or a pandas frame."""
    if engine != "pandas" and engine != "Spark":
        installed("narwhals", "narwhals")
    return ENGINES[engine](arrow_table(data))


def each_engine(engines: Iterable[str]) -> list[Any]:
    """Return parameters of a test; that of Spark is marked, and its test needs the fixture ``spark``."""
    spark = [pytest.mark.full, pytest.mark.xdist_group("spark")]
    return [pytest.param(name, marks=spark) if name == "Spark" else name for name in engines]
