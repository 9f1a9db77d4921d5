"""Cells of a declared column as arrays, whatever dtype holds them, and arrays as columns again.

Cells of a column of dates are the whole numbers that they are read as.
"""

from __future__ import annotations

import datetime
import numbers
import sys
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.declaration.timeline import DATE_UNITS, Timeline, nanoseconds
from pdprivacy.types import Floats, Integers, Mask

Read: TypeAlias = Mapping[Hashable, "pd.Series[Any]"]


BLOCK = 1 << 16
"""Rows that are computed at a time, so that intermediate arrays stay in the cache."""


def dense(values: pd.Series[Any]) -> pd.Series[Any]:
    """A sparse column with each of its cells, as they are; any other as it is.

    Integers and truth values between which nulls are left out are cells of dtype object: pandas makes them
    doubles where a null is among them, which rounds large ones.
    """
    if not isinstance(values.dtype, pd.SparseDtype):
        return values
    array: Any = values.array
    fill, subtype = array.fill_value, values.dtype.subtype
    cells = np.empty(len(array), dtype=object if pd.isna(fill) and subtype.kind in "iub" else subtype)
    single = np.empty(1, dtype=cells.dtype)
    single[0] = fill  # by place: numpy would spread a tuple over the cells
    cells[:] = single
    cells[array.sp_index.to_int_index().indices] = array.sp_values
    return pd.Series(cells, index=values.index, name=values.name)


def nulls(values: pd.Series[Any]) -> Mask:
    """Return a mask of the null cells (NaN, None, NA or NaT)."""
    null = values.isna().to_numpy(dtype=bool)
    if types.is_float_dtype(values.dtype) and types.is_extension_array_dtype(values.dtype):
        # Arrow and masked columns may hold NaN beside NA.
        null = null | np.isnan(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return null


def floats(values: pd.Series[Any], column: Column) -> Floats:
    """The numbers of a column within its bounds, NaN for a null; for reading only."""
    array = _doubles(dense(values))
    low, high = map(float, column.interval)
    if not len(array) or (low == -np.inf and high == np.inf):
        return array
    least, most = array.min(), array.max()
    if np.isnan(least):  # a minimum is NaN where any value is
        least, most = np.fmin.reduce(array), np.fmax.reduce(array)
    return np.clip(array, low, high) if least < low or most > high else array


def _doubles(values: pd.Series[Any]) -> Floats:
    dtype = values.dtype
    if dtype.kind in "iufb":
        if isinstance(dtype, np.dtype):
            return np.asarray(values.to_numpy(), dtype=np.float64)
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    real = numbers.Real | Decimal | np.bool_
    return np.array([double(cell) if isinstance(cell, real) else np.nan for cell in values], np.float64)


def double(cell: Any) -> float:
    """Return a cell as a float: infinite beyond every double, NaN for anything but a number."""
    try:
        return float(cell)
    except OverflowError:  # an integer or a fraction
        return np.inf if cell > 0 else -np.inf
    except (TypeError, ValueError, ArithmeticError):
        return np.nan


def whole(values: pd.Series[Any], column: Column) -> tuple[NDArray[Any], Mask | None]:
    """Return the integers of a column within its bounds, and a mask of nulls; for reading only.

    The dtype is int64, or object with Python integers where one is beyond it. A null holds
    a number within the bounds.
    """
    values = dense(values)
    null = nulls(values) if column.nullable else None
    array = _integers(values)
    if array is None:
        array, missing = _python_integers(values)
        null = missing if null is None else null | missing
    low, high = column.interval.intersect(INT64)
    if array.dtype == object:
        if column.lower is not None and column.upper is not None:
            array = np.clip(array, column.lower, column.upper).astype(np.int64)
    elif len(array) and not (low <= int(array.min()) and int(array.max()) <= high):
        array = np.clip(array, low, high)
    return array, null


def _integers(values: pd.Series[Any]) -> Integers | None:
    """A column as int64, where its dtype says that all of it are such."""
    dtype: Any = values.dtype
    masked = not isinstance(dtype, np.dtype)
    if dtype.kind in "ib" or (dtype.kind == "u" and dtype.itemsize < 8):
        if not masked:
            return np.asarray(values.to_numpy(), dtype=np.int64)
        return np.asarray(values.to_numpy(dtype=np.int64, na_value=False if dtype.kind == "b" else 0))
    if dtype.kind == "u":
        large = np.asarray(values.to_numpy(dtype=np.uint64, na_value=0) if masked else values.to_numpy())
        return large.astype(np.int64) if not len(large) or large.max() in INT64 else None
    if dtype.kind == "f":
        array = _doubles(values)
        finite = np.isfinite(array)
        if (np.abs(array[finite]) < 2.0**63).all() and (finite | np.isnan(array)).all():
            return np.where(finite, array, 0.0).astype(np.int64)
    return None


def _python_integers(values: pd.Series[Any]) -> tuple[NDArray[Any], Mask]:
    cells = [_integer(cell) for cell in values]
    null = np.array([cell is None for cell in cells], dtype=bool)
    integers = [0 if cell is None else cell for cell in cells]
    fits = not integers or Interval.around(integers).within(INT64)
    return np.array(integers, dtype=np.int64 if fits else object), null


def _integer(cell: Any) -> int | None:
    if not isinstance(cell, numbers.Real | Decimal | np.bool_):
        return None
    try:
        return int(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, ArithmeticError):  # a null, or a number in name only
        return None


def column_of(array: NDArray[Any], null: Mask | None, column: Column, index: pd.Index[Any]) -> pd.Series[Any]:
    """An array as a column of the declared kind.

    float64 with NaN for floats; int64 and bool, or Int64 and boolean where nulls are declared.
    """
    values: Any = array
    if column.kind == "float":
        values = np.asarray(array, dtype=np.float64)
        if null is not None and null.any():
            values = np.where(null, np.nan, values)
    elif array.dtype == object:
        values = array.copy()
        values[null if null is not None else []] = None
    elif column.nullable or (null is not None and bool(null.any())):
        null = np.zeros(len(array), dtype=bool) if null is None else null
        masked = pd.arrays.BooleanArray if column.kind == "boolean" else pd.arrays.IntegerArray
        values = masked(np.asarray(array), null.copy())
    return pd.Series(values, index=index)


def frame_of(columns: Mapping[Hashable, pd.Series[Any]], index: pd.Index[Any]) -> pd.DataFrame:
    """Return columns of this index as a frame, without copies; labels that are tuples stay single labels.

    >>> frame_of({("a", 1): pd.Series([5])}, pd.RangeIndex(1)).columns.tolist()
    [('a', 1)]
    """
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=index, copy=False)
    frame.columns = pd.Index(list(columns), tupleize_cols=False)
    return frame


_BUILT_IN = {
    str, int, float, bool, type(None), type(pd.NA), type(pd.NaT), pd.Timestamp, pd.Timedelta,
    datetime.date, datetime.datetime, Decimal, np.bool_, np.int64, np.float64, np.str_,
}  # fmt: skip
"""The types of Python objects that are equal where their values are."""


def codes(values: pd.Series[Any], labels: Sequence[Any]) -> Integers:
    """The place of each cell among the labels, by hash and equality; -1 for a null and for any other.

    pandas puts equal cells together. Objects of types that may define their own equality are compared with
    the labels one by one instead, so that no cell decides on the place of another one.
    """
    values = dense(values)
    positions = label_positions(labels)
    if isinstance(values.dtype, pd.CategoricalDtype):
        cell_codes, uniques = values.cat.codes.to_numpy(), values.cat.categories
    elif values.dtype == object and not set(map(type, values.array)) <= _BUILT_IN:
        return np.array([label_position(cell, positions) for cell in values.array], dtype=np.int64)
    else:
        try:
            cell_codes, uniques = pd.factorize(values)
        except Exception:  # cells without a hash, or that raise when compared
            cells = values.to_numpy(dtype=object)
            return np.array([label_position(cell, positions) for cell in cells], dtype=np.int64)
    table = np.array([*(label_position(label, positions) for label in uniques), -1], dtype=np.int64)
    return np.asarray(table[cell_codes])


def label_positions(labels: Sequence[Any]) -> dict[Any, int]:
    """The place of each label, for `label_position`."""
    return {_pandas_time(label): position for position, label in enumerate(labels)}


def label_position(cell: Any, positions: dict[Any, int]) -> int:
    """Return the place of the label that a cell equals, by hash and equality; -1 for any other cell."""
    try:
        return positions.get(_pandas_time(cell), -1)
    except Exception:
        return -1


def _pandas_time(cell: Any) -> Any:
    """Return times of numpy, which hash differently, as times of pandas, which columns hold."""
    if isinstance(cell, np.datetime64):
        return pd.Timestamp(cell)
    return pd.Timedelta(cell) if isinstance(cell, np.timedelta64) else cell


def category_column(
    positions: NDArray[np.integer[Any]], labels: Sequence[Any], index: pd.Index[Any], *, ordered: bool = False
) -> pd.Series[Any]:
    """A category column from places among the labels; -1 is null."""
    texts = all(type(label) is str for label in labels)
    dtype = None if texts else object
    categories: pd.Index[Any] = pd.Index(list(labels), dtype=dtype, tupleize_cols=False)
    return pd.Series(
        pd.Categorical.from_codes(positions, categories=categories, ordered=ordered), index=index
    )


# ---------------------------------------------------------------- dates

NO_DATE = ""
"""The mark of a cell that is no date, which the check of a column of numbers finds."""


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
        return _numbers_of_objects(values.astype(object), column, timeline)
    return _numbers_of_index(_index(values), column, timeline, values.index)


def _index(values: pd.Series[Any]) -> pd.DatetimeIndex:
    """A column of times, or of days of Arrow, as an index."""
    if isinstance(values.dtype, pd.ArrowDtype) and str(values.dtype).startswith("date"):
        values = values.astype("timestamp[ms][pyarrow]")  # which also holds days of no year of Python
    return pd.DatetimeIndex(values.array)


def _numbers_of_index(
    dates: pd.DatetimeIndex, column: Column, timeline: Timeline, index: pd.Index[Any]
) -> pd.Series[Any]:
    null = np.asarray(dates.isna())
    stored = np.where(null, 0, dates.asi8)
    numbers = timeline.counted(stored, dates.unit, *_ends(column))
    return column_of(np.where(null, 0, numbers), null, column, index)


def _ends(column: Column) -> tuple[int, int]:
    return int(column.lower or 0), int(column.upper or 0)


def _numbers_of_objects(values: pd.Series[Any], column: Column, timeline: Timeline) -> pd.Series[Any]:
    """The numbers of cells that are dates or times of Python or pandas."""
    null = values.isna().to_numpy(dtype=bool)
    if timeline.zone is None and pd.api.types.infer_dtype(values, skipna=True) == "date":
        days = np.array(values.where(~null, None).tolist(), dtype="datetime64[D]").astype("datetime64[s]")
        return _numbers_of_index(pd.DatetimeIndex(days), column, timeline, values.index)
    lower, upper = _ends(column)
    limits = Interval(lower - 1, upper + 1)
    listed = [
        None if missing else _number(cell, timeline, limits)
        for cell, missing in zip(values.tolist(), null.tolist(), strict=True)
    ]
    if NO_DATE in listed:
        return pd.Series(listed, index=values.index, dtype=object)
    numbers = np.array([0 if number is None else number for number in listed], dtype=np.int64)
    return column_of(numbers, null, column, values.index)


def _number(cell: Any, timeline: Timeline, limits: Interval) -> int | str:
    if not isinstance(cell, datetime.date | np.datetime64):
        return NO_DATE
    try:
        instant: Any = pd.Timestamp(cell)
        if (instant.tzinfo is None) != (timeline.zone is None):
            return NO_DATE
        number = nanoseconds(instant) // DATE_UNITS[timeline.unit] - timeline.origin
    except Exception:  # a date in name only
        return NO_DATE
    return limits.clip(number)  # type: ignore[no-any-return]


def date_numbers_of_frame(frame: pd.DataFrame, domain: Domain) -> dict[Any, pd.Series[Any]]:
    """The columns of dates of a frame, or of a piece of one, as the numbers that they are read as."""
    return {
        column.name: counted(frame[column.name], column)
        for column in domain.columns
        if column.timeline is not None
    }


def clipped_dates(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """A column of dates, those outside its bounds moved to the nearest bound."""
    timeline = column.timeline
    assert timeline is not None
    numbers, (lower, upper) = counted(values, column), _ends(column)
    outside = np.asarray(((numbers < lower) | (numbers > upper)).fillna(False), dtype=bool)
    if not outside.any():
        return values
    known = numbers.fillna(0).to_numpy(dtype=np.int64).clip(lower, upper)
    dates = timeline.instants(known[outside])
    cells_before = dense(values)
    if isinstance(cells_before.dtype, pd.CategoricalDtype):
        cells_before = cells_before.astype(cells_before.dtype.categories.dtype)
    if cells_before.dtype.kind != "M":
        cells = cells_before.to_numpy(dtype=object, copy=True)
        old = cells[outside]
        cells[outside] = [
            date if isinstance(cell, datetime.datetime) or timeline.unit != "D" else date.date()
            for date, cell in zip(dates, old, strict=True)
        ]
        return pd.Series(cells, index=values.index, dtype=cells_before.dtype)
    index = _index(cells_before)
    moved: Any = index.array.copy()
    moved[outside] = dates.as_unit(index.unit).array
    series: Any = pd.Series(moved, index=values.index)
    return series.astype(cells_before.dtype) if isinstance(cells_before.dtype, pd.ArrowDtype) else series  # type: ignore[no-any-return]


def as_compared(constant: Any, column: Column) -> Any:
    """Return a constant as cells are compared with it: for floats, the double nearest to an integer."""
    if column.kind != "float" or abs(constant) > sys.float_info.max or float(constant) == constant:
        return constant
    return float(constant)
