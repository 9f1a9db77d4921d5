"""One fixed table in the frames of every engine, and what is declared of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import pdprivacy
from pdprivacy import Column, Domain, errors
from pdprivacy.declaration.timeline import Timeline
from tests.support import engine_frames

__all__ = [
    "DATED",
    "DATED_SETTINGS",
    "DOMAIN",
    "ENGINES",
    "FAULTY",
    "KINDS",
    "RECORDS",
    "SETTINGS",
    "available",
    "frame_of",
    "protected",
]

NAN, INF = float("nan"), float("inf")

DOMAIN = Domain(
    (
        Column("x", "float", True, lower=-3.0, upper=10.0),
        Column("y", "float", lower=-1.0, upper=1.5, bins=(-1.0, 0.0, 0.3, 1.5)),
        Column("n", "integer", True, lower=1, upper=9),
        Column("m", "integer", lower=0, upper=5),
        Column("g", "category", True, categories=("b", "a"), role="quasi_identifier"),
        Column("k", "category", categories=("u", "v", "w"), role="quasi_identifier"),
        Column("h", "boolean", True),
        Column("e", "boolean"),
        Column("s", "category", categories=("no", "yes"), role="sensitive"),
    )
)
FIRST = int(pd.Timestamp("2021-11-20").timestamp())
SPAN = 400 * 86_400
ZONE = "Europe/Paris"
DATED = Domain(
    (
        Column("when", "integer", True, lower=0, upper=SPAN, timeline=Timeline(FIRST, "s", None)),
        Column("day", "integer", lower=0, upper=400, timeline=Timeline(FIRST // 86_400, "D", None)),
        Column(
            "zoned", "integer", True, lower=0, upper=SPAN // 3600, timeline=Timeline(FIRST // 3600, "h", ZONE)
        ),
        Column("m", "integer", lower=0, upper=5),
        Column("k", "category", categories=("u", "v", "w")),
        Column("e", "boolean"),
    )
)
"""A table of dates: seconds, days, and hours in a time zone that changes its clocks."""
KINDS = {"x": "float", "y": "float", "n": "integer", "m": "integer", "h": "boolean", "e": "boolean"}
KINDS |= {"when": "timestamp", "day": "date", "zoned": "zoned"}
"""Columns that are not texts; "p", whose records these are, is no declared column."""

ROWS = range(24)
RECORDS: dict[str, list[Any]] = {
    "x": [None if i % 7 == 3 else (i * 37 % 130) / 10 - 3.1 + 0.1 for i in ROWS],
    "y": [(i * 11 % 25) / 10 - 1 for i in ROWS],
    "n": [None if i % 5 == 4 else 1 + i * 7 % 9 for i in ROWS],
    "m": [i * i % 6 for i in ROWS],
    "g": [None if i % 6 == 5 else "ab"[i * i % 5 < 2] for i in ROWS],
    "k": ["uvw"[(i * i + i) % 7 % 3] for i in ROWS],
    "h": [None if i % 8 == 6 else i % 3 == 0 for i in ROWS],
    "e": [i * 5 % 7 > 2 for i in ROWS],
    "s": ["yes" if i % 4 == 1 else "no" for i in ROWS],
    "p": [f"p{i // 2}" for i in ROWS],
}


def _moment(seconds: int) -> pd.Timestamp:
    return pd.Timestamp(FIRST + seconds, unit="s").as_unit("us")


DATES: dict[str, list[Any]] = {
    "when": [None if i % 7 == 3 else _moment(i * 1_432_117 % SPAN) for i in ROWS],
    "day": [_moment(i * 53 % 400 * 86_400) for i in ROWS],
    "zoned": [
        None if i % 9 == 4 else _moment(i * 2_654_321 % SPAN).tz_localize("UTC").tz_convert(ZONE)
        for i in ROWS
    ],
    **{name: RECORDS[name] for name in "mkep"},
}
FAULTY: dict[str, list[Any]] = {
    **RECORDS,
    "x": [[1.0, None, NAN, -0.0, 5e-324, 99.5, -7.25, 9.75][i % 8] for i in ROWS],
    "y": [[0.0, 1.5, 2.25, -1.0, 0.3, -4.0][i % 6] for i in ROWS],
    "n": [[1, None, 12, 4, -6, 9, 7][i % 7] for i in ROWS],
}
"""Numbers out of their bounds, also those that no bound is near."""


def _columns(records: dict[str, list[Any]]) -> dict[str, Any]:
    import pyarrow as pa

    kinds = {"float": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}
    kinds |= {"timestamp": pa.timestamp("us"), "date": pa.date32(), "zoned": pa.timestamp("us", ZONE)}
    arrays = {}
    for name, values in records.items():
        kind = kinds.get(KINDS.get(name, ""), pa.string())
        if KINDS.get(name) == "zoned":  # PySpark tells Arrow to ignore the zones of objects of Python
            values = [None if value is None else value.value // 1000 for value in values]
        arrays[name] = pa.array(values, kind)
    return arrays


DATE_DTYPES = {"timestamp": "datetime64[us]", "date": "datetime64[us]", "zoned": f"datetime64[us, {ZONE}]"}


def of_arrow(records: dict[str, list[Any]]) -> Any:
    import pyarrow as pa

    return pa.table(_columns(records))


def of_numpy(records: dict[str, list[Any]]) -> pd.DataFrame:
    """Columns of NumPy; of integers with nulls floats, of truth values with nulls objects."""
    kinds = {"float": np.float64, "integer": np.int64, "boolean": np.bool_}
    arrays = _dates(records)
    for name, values in records.items():
        if name in arrays:
            continue
        kind = kinds.get(KINDS.get(name, ""), object)
        if kind in (np.int64, np.float64) and None in values:
            kind, values = np.float64, [NAN if value is None else value for value in values]
        arrays[name] = np.array(values, object if None in values else kind)
    return pd.DataFrame({name: pd.Series(values, dtype=values.dtype) for name, values in arrays.items()})


def _dates(records: dict[str, list[Any]]) -> dict[str, Any]:
    """The columns of dates as NumPy and pandas hold them."""
    kinds = {name: DATE_DTYPES[KINDS[name]] for name in records if KINDS.get(name) in DATE_DTYPES}
    return {name: pd.Series(records[name], dtype=dtype) for name, dtype in kinds.items()}


def of_nullable(records: dict[str, list[Any]]) -> pd.DataFrame:
    kinds = {"float": "Float64", "integer": "Int64", "boolean": "boolean"}
    return pd.DataFrame(
        {
            name: pd.array(
                [None if value is None or value != value else value for value in values],
                dtype=kinds.get(KINDS.get(name, ""), "string[python]"),
            )
            for name, values in records.items()
            if KINDS.get(name) not in DATE_DTYPES
        }
        | _dates(records)
    )


def of_arrow_backed(records: dict[str, list[Any]]) -> pd.DataFrame:
    columns = _columns(records).items()
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(values) for name, values in columns})


def _beside(engine: str) -> Callable[[dict[str, list[Any]]], Any]:
    return lambda records: engine_frames.ENGINES[engine](of_arrow(records))


ENGINES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": of_numpy,
    "nullable": of_nullable,
    "Arrow-backed": of_arrow_backed,
    **{name: _beside(name) for name in ("Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow", "Spark")},
}
"""Three kinds of pandas frames first."""

LIBRARIES = {
    "Arrow-backed": "pyarrow",
    "PyArrow": "pyarrow",
    "Polars": "polars",
    "lazy Polars": "polars",
    "DuckDB": "duckdb",
    "Dask": "dask",
    "Spark": "pyspark",
}


def available(engine: str) -> bool:
    """Whether frames of the engine can be made here; of Spark, whether a session is there."""
    from importlib.util import find_spec

    if engine == "Spark":
        import sys

        sql = sys.modules.get("pyspark.sql")
        return sql is not None and sql.SparkSession.getActiveSession() is not None
    return engine not in LIBRARIES or find_spec(LIBRARIES[engine]) is not None


SETTINGS: dict[str, dict[str, Any]] = {
    "add_remove": {},
    "replace_one": {"neighbors": "replace_one"},
    "public_rows": {"public_rows": 20},
    "unit": {"unit": "p", "max_rows": 2},
    "unit, replace_one": {"unit": "p", "max_rows": 3, "neighbors": "replace_one"},
    "unit, crowded": {"unit": "p", "max_rows": 1},
    "clip": {"on_invalid": "clip"},
    "drop": {"on_invalid": "drop"},
    "empty": {},
    "empty, replace_one": {"neighbors": "replace_one"},
    "one record": {},
}
"""Keywords of `protect`. The frame is faulty where it is to be clipped or dropped."""


DATED_SETTINGS: dict[str, dict[str, Any]] = {
    "dates": {},
    "dates, replace_one": {"neighbors": "replace_one"},
    "dates, unit": {"unit": "p", "max_rows": 2},
}
"""Keywords of `protect` for the table of dates."""


def frame_of(engine: str, setting: str = "add_remove") -> Any:
    """The frame of a setting."""
    if setting in DATED_SETTINGS:
        return ENGINES[engine](DATES)
    records = FAULTY if setting in ("clip", "drop") else RECORDS
    if setting.startswith("empty"):
        records = {name: [] for name in records}
    if setting == "one record":
        records = {name: values[:1] for name, values in records.items()}
    return ENGINES[engine](records)


def protected(engine: str, setting: str = "add_remove", **budget: Any) -> Any:
    """The frame of a setting, protected with a budget that nothing here exhausts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        return pdprivacy.protect(
            frame_of(engine, setting),
            DATED if setting in DATED_SETTINGS else DOMAIN,
            **(SETTINGS | DATED_SETTINGS)[setting],
            **(budget or {"epsilon": 10**12, "delta": 0.9}),
        )
