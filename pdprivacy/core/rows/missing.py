"""Missing-value codes: declared numbers and texts, such as -99 and "n/a", that stand for a null.

Codes are public, and a cell becomes null by its own value alone, so this is a step of single records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import is_number
from pdprivacy.core.rows.cells import dense, label_position, label_positions
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.exact import EXACT
from pdprivacy.types import Mask


def without_codes(values: pd.Series[Any], column: Column) -> pd.Series[Any] | None:
    """Return a column with nulls in place of its missing-value codes; None where nothing changes.

    Integers and truth values of NumPy, which hold no null, become nullable ones, with or without a code.

    >>> age = Column("age", "integer", lower=0, upper=120, missing=(-99,))
    >>> without_codes(pd.Series([31, -99]), age).tolist()
    [31, <NA>]
    """
    if not column.missing:
        return None
    if str(values.dtype) == "string_view[pyarrow]":  # of which pandas can replace no cell
        texts: Any = values.array
        values = pd.Series(texts.astype("large_string[pyarrow]"), index=values.index)
    read = _nullable(dense(values))
    codes = _is_code(read, column.missing)
    if codes.any():
        return _with_nulls(read, codes)
    return None if read is values else read


def frame_without_codes(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """Return a frame with nulls in place of missing-value codes; the frame itself is not changed."""
    changed = {}
    for column in domain.columns:
        if column.missing and int((frame.columns == column.name).sum()) == 1:
            values = without_codes(frame[column.name], column)
            if values is not None:
                changed[column.name] = values.array  # by position: an index may hold a label twice
    if not changed:
        return frame
    nulled = frame.copy(deep=False)
    for name, array in changed.items():
        nulled[name] = array
    return nulled


def columns_without_codes(frame: pd.DataFrame, domain: Domain) -> dict[Any, pd.Series[Any]]:
    """Return the columns of a piece of a frame, with nulls in place of their missing-value codes."""
    nulled = frame_without_codes(frame, domain)
    return {name: nulled[name] for name in domain}


def _nullable(values: pd.Series[Any]) -> pd.Series[Any]:
    dtype: Any = values.dtype
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iub":
        return values
    integer = f"{'UInt' if dtype.kind == 'u' else 'Int'}{8 * dtype.itemsize}"
    nullable: Any = "boolean" if dtype.kind == "b" else integer
    return values.astype(nullable)


def _is_code(values: pd.Series[Any], codes: Sequence[Any]) -> Mask:
    """Return a mask of the cells that equal a code: numbers a number, texts a text."""
    numbers = [code for code in codes if is_number(code)]
    if isinstance(values.dtype, pd.CategoricalDtype):
        labels = [*values.cat.categories.tolist(), None]  # the code -1 of a null is the last one
        return _equal(labels, codes)[values.cat.codes.to_numpy()]
    kind = values.dtype.kind
    if kind in "bcmM" or (kind in "iuf" and not numbers):
        return np.zeros(len(values), dtype=bool)
    if kind in "iuf" and all(abs(number) < EXACT for number in numbers):
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.isin(array, np.asarray(numbers, dtype=np.float64))
    if isinstance(values.dtype, pd.StringDtype):
        texts = [code for code in codes if isinstance(code, str)]
        return np.asarray(values.isin(texts).to_numpy(dtype=bool))
    return _equal(values.tolist(), codes)


def _equal(cells: Sequence[Any], codes: Sequence[Any]) -> Mask:
    """Return a mask of the cells that equal a code; a truth value equals no number."""
    positions = label_positions(codes)
    return np.array(
        [not isinstance(cell, bool | np.bool_) and label_position(cell, positions) >= 0 for cell in cells],
        dtype=bool,
    )


def _with_nulls(values: pd.Series[Any], null: Mask) -> pd.Series[Any]:
    if values.dtype != object:
        return values.mask(null)
    cells = values.to_numpy(dtype=object, copy=True)
    cells[null] = None
    return pd.Series(cells, index=values.index, dtype=object)
