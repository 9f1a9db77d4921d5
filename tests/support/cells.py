"""Cells drawn by hypothesis, as columns of any dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

__all__ = ["STR", "column_of"]

# pandas 2 has no string dtype of its own, and makes strings of nulls.
STR = "str" if pd.Series(["a"]).dtype == "str" else "object"


def column_of(cells: Sequence[Any], dtype: str) -> pd.Series[Any]:
    """Return a column of these cells; all columns of the same cells share the order of their categories."""
    if dtype == "category":
        plain = sorted({value for value in cells if value is not None}, key=repr)
        return pd.Series(pd.Categorical(cells, categories=plain))
    return pd.Series(cells, dtype="object").astype(dtype)
