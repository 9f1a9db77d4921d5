"""Code that makes a frame of an object that is not a frame, for hints."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

import numpy as np

_READERS = {
    ".parquet": "pd.read_parquet",
    ".feather": "pd.read_feather",
    ".json": "pd.read_json",
    ".xlsx": "pd.read_excel",
    ".dta": "pd.read_stata",
    ".sav": "pd.read_spss",
}
"""Functions that read a file, by the end of its name."""

_GROUPED = 'protect the frame before it is grouped: private.dp.groupby("region").mean("age", epsilon=0.1).'
_PROTECTED = "pdprivacy.protect(frame, schema, epsilon=1.0)."

_METHODS = {
    "ibis": "frame = frame.to_pyarrow()",
    "modin": "frame = frame.modin.to_pandas()",
    "cudf": "frame = frame.to_pandas()",
    "Dataset": "frame = dataset.to_table()",
    "Scanner": "frame = scanner.to_table()",
    "RecordBatchReader": "frame = reader.read_all()",
    "RecordBatch": "frame = pa.Table.from_batches([batch])",
    "Array": 'frame = pa.table({"age": array})',
    "ChunkedArray": 'frame = pa.table({"age": array})',
    "Series": "frame = series.to_frame()",
    "DuckDBPyConnection": 'frame = con.sql("SELECT * FROM visits")',
    "Connection": 'frame = pd.read_sql("SELECT * FROM visits", con)',
    "Engine": 'frame = pd.read_sql("SELECT * FROM visits", engine)',
}
"""Code for objects, by the name of their library or of their class or one that it inherits from."""

_LIBRARIES = {
    "ibis", "modin", "cudf", "pyarrow", "polars", "pandas", "dask", "duckdb", "_duckdb", "pyspark",
    "sqlite3", "sqlalchemy", "psycopg", "psycopg2",
}  # fmt: skip
"""Libraries whose classes are told by name."""

_VALUES = (bytes, dict, list, tuple, set, int, float, type(None), np.ndarray)


def conversion(source: Any) -> str | None:
    """Return code that makes a frame of an object, and protects it; None where it may be a frame.

    >>> conversion("visits/*.parquet")
    'frame = pl.scan_parquet("data/*.parquet"); pdprivacy.protect(frame, schema, epsilon=1.0).'
    >>> import pandas as pd
    >>> conversion(pd.Series([31, 54]))
    'frame = series.to_frame(); pdprivacy.protect(frame, schema, epsilon=1.0).'
    >>> conversion(pd.DataFrame({"age": [31, 54]})) is None
    True
    """
    if isinstance(source, str | os.PathLike):
        return f"{_reader(os.fspath(source))}; {_PROTECTED}"
    if isinstance(source, _VALUES):
        return f"frame = pd.DataFrame(...); {_PROTECTED}"
    library, *modules = type(source).__module__.split(".")
    if library not in _LIBRARIES:
        return None
    classes = [parent.__name__ for parent in type(source).__mro__]
    if any("group" in word.lower() for word in (*modules, classes[0])):
        return _GROUPED
    code = next((_METHODS[name] for name in (library, *classes) if name in _METHODS), None)
    if library == "modin" and "Series" in classes:
        code = "frame = series.to_frame().modin.to_pandas()"
    return None if code is None else f"{code}; {_PROTECTED}"


def _reader(path: str | bytes) -> str:
    """Code that reads a path of this kind: many files by Polars, one by pandas. The path is not shown."""
    name = os.fsdecode(path)
    if "*" in name or os.path.isdir(name):
        return 'frame = pl.scan_parquet("data/*.parquet")'
    ending = PurePath(name).suffix.lower()
    ending = ending if ending in _READERS else ".csv"
    return f'frame = {_READERS.get(ending, "pd.read_csv")}("data{ending}")'
