"""Which pandas frames are protected: known by identity, and by nothing that pandas could copy.

Releases read a snapshot taken at protection, so no later change of any frame can reach them; a frame whose
columns are no longer those of the snapshot is refused all the same, because its owner would expect other
numbers.
"""

from __future__ import annotations

import contextlib
import copy
import operator
import uuid
import weakref
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.domain import Column, Domain
from pdprivacy.engine_narwhals.pieces import copied as in_own_memory
from pdprivacy.errors import (
    DerivedFrameError,
    InvalidDataError,
    ModifiedFrameError,
    NotProtectedError,
    ParameterError,
)
from pdprivacy.metadata import KEY
from pdprivacy.protection.budget_request import BudgetRequest
from pdprivacy.protection.core import Protected
from pdprivacy.protection.elsewhere import ProtectedFrame

__all__ = ["copied", "find", "owned", "refuse_reprotection", "register"]

_MARK = "protected"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A protected frame in the registry.

    ``guard`` shares the frame's memory where pandas copies on write: its being there makes any
    write to the frame a copy, which ``buffers`` tells by its other address. ``blocks`` are the
    arrays that pandas keeps: where all of them are still the same objects, nothing was written.
    """

    frame: weakref.ref[pd.DataFrame]
    protected: Protected
    guard: pd.DataFrame | None
    columns: pd.Index[Any]
    buffers: tuple[Any, ...]
    blocks: tuple[Any, ...]


_registry: dict[int, _Entry] = {}


COPY_ON_WRITE = int(pd.__version__.split(".")[0]) >= 3
"""Whether pandas always copies a column that is shared before it writes to it."""


def copied(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """The declared columns in memory of their own: no write elsewhere changes a cell of them.

    Raises InvalidDataError for objects that cannot be copied.
    """
    columns = frame[list(domain)].columns
    arrays = {place: owned(frame[name].array, domain[name]) for place, name in enumerate(domain)}
    for place, array in arrays.items():
        if type(array) is pd.arrays.NumpyExtensionArray and array.to_numpy().dtype == object:
            # pandas 2 would make times of objects that are times
            arrays[place] = pd.Series(array.to_numpy(), index=frame.index, dtype=object, copy=False)
    found = pd.DataFrame(arrays, index=frame.index, copy=False)
    found.columns = columns
    return found


def owned(array: Any, column: Column) -> Any:
    """The array without shared memory.

    A deep copy of pandas shares what pandas itself never writes to: buffers of Arrow, the labels of
    categories, the positions of a sparse array, and objects.
    """
    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        labels = pd.Index(owned(dtype.categories.array, column), copy=False, tupleize_cols=False)
        return pd.Categorical.from_codes(array.codes.copy(), labels, dtype.ordered)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        import pyarrow as pa

        return dtype.__from_arrow__(in_own_memory(pa.table({"": array.__arrow_array__()})).column(0))
    if isinstance(dtype, pd.SparseDtype):
        return copy.deepcopy(array)
    texts = isinstance(dtype, pd.StringDtype)
    if texts or not isinstance(array, pd.arrays.NumpyExtensionArray) or array.to_numpy().dtype.kind != "O":
        return array.copy()
    cells = array.to_numpy(copy=True)
    if not all(kind in _IMMUTABLE or issubclass(kind, _SCALARS) for kind in set(map(type, cells))):
        for place, cell in enumerate(cells):
            cells[place] = _fixed(cell, column)
    return pd.arrays.NumpyExtensionArray(cells)


def _fixed(cell: Any, column: Column) -> Any:
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


def register(frame: pd.DataFrame, protected: Protected) -> pd.DataFrame:
    """A new frame of the same cells, known by identity from now on."""
    private = frame.copy(deep=not COPY_ON_WRITE)
    guard = private.copy(deep=False) if COPY_ON_WRITE else None
    private.attrs = {**frame.attrs, KEY: {_MARK: uuid.uuid4().hex}}
    buffers = () if guard is None else tuple(_buffer(guard[name].array) for name in protected.domain)
    key = id(private)
    reference = weakref.ref(private, lambda _: _registry.pop(key, None))
    blocks = _blocks(private) if COPY_ON_WRITE else ()
    known = replace(protected, frame=reference)
    _registry[key] = _Entry(reference, known, guard, private.columns, buffers, blocks)
    return private


def _buffer(array: Any) -> Any:
    """What identifies the memory behind a column: a new one after any write (copy on write)."""
    inner = getattr(array, "_pa_array", None)
    if inner is not None:
        return ("arrow", id(inner))
    inner = getattr(array, "_ndarray", getattr(array, "_codes", getattr(array, "_data", None)))
    if isinstance(inner, np.ndarray):
        return tuple(
            (part.__array_interface__["data"][0], part.shape, part.strides, str(part.dtype))
            for part in (inner, getattr(array, "_mask", None))
            if isinstance(part, np.ndarray)
        )
    return None


def _blocks(frame: pd.DataFrame) -> tuple[Any, ...]:
    """The arrays behind a frame where pandas shows them (it need not), else none."""
    blocks = getattr(getattr(frame, "_mgr", None), "blocks", ())
    arrays = tuple(getattr(block, "values", None) for block in blocks)
    return () if any(array is None for array in arrays) else arrays


def _same(frame: Any, entry: _Entry) -> bool:
    """Whether the declared columns of a protected frame are those of its snapshot."""
    if entry.blocks and frame.columns is entry.columns:
        now = _blocks(frame)
        if len(now) == len(entry.blocks) and all(map(operator.is_, now, entry.blocks)):
            return True
    snapshot = entry.protected.snapshot
    if len(frame) != len(snapshot) or not frame.columns.equals(entry.columns):
        return False
    if not entry.buffers:
        return all(_equal(frame[name], snapshot[name]) for name in entry.protected.domain)
    for name, buffer in zip(entry.protected.domain, entry.buffers, strict=True):
        if buffer is None:
            if not _equal(frame[name], snapshot[name]):
                return False
        elif _buffer(frame[name].array) != buffer:
            return False
    return True


def _equal(first: pd.Series[Any], second: pd.Series[Any]) -> bool:
    return first.dtype == second.dtype and bool(first.array.equals(second.array))


def _known(frame: Any) -> _Entry | None:
    """The registry's entry of this very frame."""
    entry = _registry.get(id(frame))
    return entry if entry is not None and entry.frame() is frame else None


def _marked(frame: Any) -> bool:
    mark = getattr(frame, "attrs", {}).get(KEY)
    return isinstance(mark, dict) and _MARK in mark


def _derived() -> DerivedFrameError:
    return DerivedFrameError(
        "This frame was made by pandas from a protected one, and how is not known; a filter or a sum "
        "may depend on other records.",
        "release from the protected frame itself: private.dp.mean(...); for a filter, "
        'private.dp.query("age >= 30") first. To protect the raw frame anew, pass '
        "budget=private.dp.budget: losses of the same people add up.",
    )


def find(frame: Any) -> Protected:
    """What stands behind a protected frame.

    Raises
    ------
    NotProtectedError : the frame was never protected.
    DerivedFrameError : pandas made it from a protected one.
    ModifiedFrameError : it was changed in place since.
    """
    if isinstance(frame, ProtectedFrame):
        return frame._protected
    entry = _known(frame)
    if entry is None:
        if _marked(frame):
            raise _derived()
        raise NotProtectedError(
            "The frame is not protected: nothing is declared about it.",
            'private = df.dp.protect(schema, epsilon=1.0); private.dp.mean("age", epsilon=0.1). '
            '"python -m pdprivacy declare data.csv" writes a schema to fill in.',
        )
    if not _same(frame, entry):
        raise ModifiedFrameError(
            "The protected frame was changed in place, so it no longer is what was protected.",
            "make the change before df.dp.protect(...), and keep the protected frame as it is.",
        )
    return entry.protected


def refuse_reprotection(frame: pd.DataFrame, asked: BudgetRequest) -> None:
    """Refuse a protected frame, unless it goes on with its own budget and is the whole table."""
    if not _known(frame) and not _marked(frame):
        return
    protected = find(frame)
    if not asked.serves(protected.budget):
        raise ParameterError(
            "The frame is protected already, and a new budget would not know what was spent.",
            "pass budget=private.dp.budget to go on with the same one, or protect the raw frame again.",
        )
    if protected.scope.filtered or protected.lineage:
        raise ParameterError(
            "The frame was made of a protected one, and which records it holds may be private; protected "
            "anew, it would look like a table of its own.",
            "protect the raw frame, with the budget of the whole table, and take the same steps from there.",
        )
