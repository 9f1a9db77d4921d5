"""Cells of a column of dates as the whole numbers that they are read as, whatever dtype holds them."""

from __future__ import annotations

import datetime
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.domain import Column, Domain
from pdprivacy.expressions.arrays import column_of, dense
from pdprivacy.timeline import DATE_UNITS, Timeline, nanoseconds

__all__ = ["counted", "counted_columns", "moved_within"]

Integers: TypeAlias = NDArray[np.int64]

NO_DATE = ""
"""What stands for a cell that is no date, so that the check of a column of numbers finds it."""


def counted(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """The numbers of a column of dates, rounded down to its unit; numbers stay as they are.

    A date before the lower bound has the number before it, one after the upper bound the number after it. A
    cell of objects that is no date becomes a text, which no number is.

    >>> days = Column("day", "integer", lower=0, upper=9, timeline=Timeline(18262, "D"))
    >>> counted(pd.Series(pd.to_datetime(["2020-01-03", "1999-01-01"])), days).tolist()
    [2, -1]
    """
    timeline, dtype = column.timeline, values.dtype
    if timeline is None or dtype.kind in "iu":
        return values
    values = dense(values)
    if isinstance(dtype, pd.CategoricalDtype):
        values = values.astype(dtype.categories.dtype)
    if values.dtype == object or values.dtype.kind == "O":
        return _of_objects(values.astype(object), column, timeline)
    return _of_index(_index(values), column, timeline, values.index)


def _index(values: pd.Series[Any]) -> pd.DatetimeIndex:
    """A column of times, or of days of Arrow, as an index."""
    if isinstance(values.dtype, pd.ArrowDtype) and str(values.dtype).startswith("date"):
        values = values.astype("timestamp[ms][pyarrow]")  # which also holds days of no year of Python
    return pd.DatetimeIndex(values.array)


def _of_index(
    dates: pd.DatetimeIndex, column: Column, timeline: Timeline, index: pd.Index[Any]
) -> pd.Series[Any]:
    null = np.asarray(dates.isna())
    stored = np.where(null, 0, dates.asi8)
    numbers = timeline.counted(stored, dates.unit, *_ends(column))
    return column_of(np.where(null, 0, numbers), null, column, index)


def _ends(column: Column) -> tuple[int, int]:
    return int(column.lower or 0), int(column.upper or 0)


def _of_objects(values: pd.Series[Any], column: Column, timeline: Timeline) -> pd.Series[Any]:
    """The numbers of cells that are dates or times of Python or pandas."""
    null = values.isna().to_numpy(dtype=bool)
    if timeline.zone is None and pd.api.types.infer_dtype(values, skipna=True) == "date":
        days = np.array(values.where(~null, None).tolist(), dtype="datetime64[D]").astype("datetime64[s]")
        return _of_index(pd.DatetimeIndex(days), column, timeline, values.index)
    found = [
        None if missing else _number(cell, timeline, *_ends(column))
        for cell, missing in zip(values.tolist(), null.tolist(), strict=True)
    ]
    if NO_DATE in found:
        return pd.Series(found, index=values.index, dtype=object)
    numbers = np.array([0 if number is None else number for number in found], dtype=np.int64)
    return column_of(numbers, null, column, values.index)


def _number(cell: Any, timeline: Timeline, lower: int, upper: int) -> int | str:
    if not isinstance(cell, datetime.date | np.datetime64):
        return NO_DATE
    try:
        instant: Any = pd.Timestamp(cell)
        if (instant.tzinfo is None) != (timeline.zone is None):
            return NO_DATE
        number = nanoseconds(instant) // DATE_UNITS[timeline.unit] - timeline.origin
    except Exception:  # a date in name only
        return NO_DATE
    return min(max(number, lower - 1), upper + 1)


def counted_columns(frame: pd.DataFrame, domain: Domain) -> dict[Any, pd.Series[Any]]:
    """The columns of dates of a frame, or of a piece of one, as the numbers that they are read as."""
    return {
        column.name: counted(frame[column.name], column)
        for column in domain.columns
        if column.timeline is not None
    }


def moved_within(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """A column of dates, those outside its bounds moved to the nearest bound."""
    timeline = column.timeline
    assert timeline is not None
    numbers, (lower, upper) = counted(values, column), _ends(column)
    outside = np.asarray(((numbers < lower) | (numbers > upper)).fillna(False), dtype=bool)
    if not outside.any():
        return values
    known = numbers.fillna(0).to_numpy(dtype=np.int64).clip(lower, upper)
    dates = timeline.instants(known[outside])
    found = dense(values)
    if isinstance(found.dtype, pd.CategoricalDtype):
        found = found.astype(found.dtype.categories.dtype)
    if found.dtype.kind != "M":
        cells = found.to_numpy(dtype=object, copy=True)
        old = cells[outside]
        cells[outside] = [
            date if isinstance(cell, datetime.datetime) or timeline.unit != "D" else date.date()
            for date, cell in zip(dates, old, strict=True)
        ]
        return pd.Series(cells, index=values.index, dtype=found.dtype)
    index = _index(found)
    moved: Any = index.array.copy()
    moved[outside] = dates.as_unit(index.unit).array
    series: Any = pd.Series(moved, index=values.index)
    return series.astype(found.dtype) if isinstance(found.dtype, pd.ArrowDtype) else series  # type: ignore[no-any-return]
