"""Cells in memory of their own, so that no later change of a frame reaches a release."""

from __future__ import annotations

import contextlib
import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import InvalidDataError


def copied_columns(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """The declared columns in memory of their own: no later change of any frame reaches a release.

    Raises InvalidDataError for objects that cannot be copied.
    """
    columns = frame[list(domain)].columns
    arrays = {position: _own_array(frame[name].array, domain[name]) for position, name in enumerate(domain)}
    for position, array in arrays.items():
        if type(array) is pd.arrays.NumpyExtensionArray and array.to_numpy().dtype == object:
            # pandas 2 would make times of objects that are times
            arrays[position] = pd.Series(array.to_numpy(), index=frame.index, dtype=object, copy=False)
    result = pd.DataFrame(arrays, index=frame.index, copy=False)
    result.columns = columns
    return result


def _own_array(array: Any, column: Column) -> Any:
    """The array without shared memory.

    A deep copy of pandas shares what pandas itself never writes to: buffers of Arrow, the labels of
    categories, the positions of a sparse array, and objects.
    """
    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        labels = pd.Index(_own_array(dtype.categories.array, column), copy=False, tupleize_cols=False)
        return pd.Categorical.from_codes(array.codes.copy(), labels, dtype.ordered)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        import pyarrow as pa

        from pdprivacy.core.engines.other.native_frames import in_own_memory

        return dtype.__from_arrow__(in_own_memory(pa.table({"": array.__arrow_array__()})).column(0))
    if isinstance(dtype, pd.SparseDtype):
        return copy.deepcopy(array)
    texts = isinstance(dtype, pd.StringDtype)
    if texts or not isinstance(array, pd.arrays.NumpyExtensionArray) or array.to_numpy().dtype.kind != "O":
        return array.copy()
    cells = array.to_numpy(copy=True)
    if not all(kind in _IMMUTABLE or issubclass(kind, _SCALARS) for kind in set(map(type, cells))):
        for index, cell in enumerate(cells):
            cells[index] = _own_cell(cell, column)
    return pd.arrays.NumpyExtensionArray(cells)


def _own_cell(cell: Any, column: Column) -> Any:
    """The declared label that the cell is, or a copy of the cell."""
    with contextlib.suppress(Exception):
        return next(label for label in column.categories or () if label == cell)
    with contextlib.suppress(Exception):
        return copy.deepcopy(cell)
    raise InvalidDataError(f"Column {column.name!r} holds objects that cannot be copied.")


_IMMUTABLE = {
    type(None),
    type(pd.NA),
    type(pd.NaT),
    str,
    bytes,
    bool,
    int,
    float,
    Decimal,
    date,
    datetime,
    time,
    timedelta,
    pd.Timestamp,
    pd.Timedelta,
}
_SCALARS = (np.bool_, np.number, np.datetime64)
