"""Columns of numbers of frames in memory and of partitions, read where they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pdprivacy.engine import Columns
from pdprivacy.engine_narwhals.engines import in_partitions
from pdprivacy.engine_narwhals.pieces import ArrowPieces, pandas_of

__all__ = ["each_of_numbers"]

Found = TypeVar("Found")

AT_ONCE = 1 << 22
"""Rows at a time of frames in memory; where they have nulls, they are copied."""


@dataclass(frozen=True, slots=True)
class _Column:
    array: Any


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Columns as `pdprivacy.engine.PandasEngine` reads them, without a pandas frame around them."""

    rows: int
    columns: dict[Any, _Column]

    def __getitem__(self, name: Any) -> _Column:
        return self.columns[name]

    def __len__(self) -> int:
        return self.rows


def each_of_numbers(
    frame: Any, engine: str, names: Sequence[Hashable], function: Callable[[Columns], Found]
) -> list[Found]:
    """What a function gives of columns of numbers of a frame in pieces."""
    if isinstance(frame, ArrowPieces):
        return [function(pandas_of(table)) for table in frame.select(*names).open()]
    if engine == "Dask":
        return in_partitions(frame[list(names)], lambda part: [function(part.to_native())])
    if engine == "PyArrow":
        table = frame.select(list(names))
        return [function(pandas_of(table.slice(start, AT_ONCE))) for start in _starts(len(table))]
    return [function(_numbers(frame.select(names)[start : start + AT_ONCE])) for start in _starts(len(frame))]


def _starts(rows: int) -> range:
    return range(0, max(rows, 1), AT_ONCE)


def _numbers(part: Any) -> Columns:
    """A frame of Polars; as a pandas frame where nulls would make doubles of integers."""
    for series in part:
        if series.dtype.is_integer() and series.null_count():
            return pandas_of(part.to_arrow())
    arrays = {series.name: np.asarray(series.to_numpy()) for series in part}
    return _Numbers(
        len(part),
        {name: _Column(pd.arrays.NumpyExtensionArray(array)) for name, array in arrays.items()},
    )
