"""Which rows meet a filter: one truth value per row, from this row alone, alike for every dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types

from pdprivacy.query.tree import ORDERINGS, All, Leaf, Not, Tree

__all__ = ["Mask", "dense", "evaluate", "nulls"]

Mask: TypeAlias = npt.NDArray[np.bool_]


def evaluate(tree: Tree, read: dict[str, pd.Series[Any]]) -> Mask:
    """Which rows the tree is true for; ``read`` has every column that it names."""
    if isinstance(tree, Not):
        return ~evaluate(tree.part, read)
    if isinstance(tree, Leaf):
        values = dense(read[tree.name])
        if tree.symbol == "null":
            return nulls(values)
        if tree.symbol == "in":
            return _equal(values, tree.constants)
        return _ordering(values, tree.symbol, tree.constants[0])
    join = np.logical_and if isinstance(tree, All) else np.logical_or
    first, *rest = tree.parts
    met = evaluate(first, read)
    for part in rest:
        met = join(met, evaluate(part, read))
    return met


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
    one = np.empty(1, dtype=cells.dtype)
    one[0] = fill  # by place: numpy would spread a tuple over the cells
    cells[:] = one
    cells[array.sp_index.to_int_index().indices] = array.sp_values
    return pd.Series(cells, index=values.index, name=values.name)


def nulls(values: pd.Series[Any]) -> Mask:
    """Which cells are null, whatever stands for it (NaN, None, NA, NaT)."""
    null = values.isna().to_numpy(dtype=bool)
    if types.is_float_dtype(values.dtype) and types.is_extension_array_dtype(values.dtype):
        # Arrow and masked columns may hold NaN beside NA.
        null = null | np.isnan(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return null


def _by_category(values: pd.Series[Any], compare: Callable[[pd.Series[Any]], Mask]) -> Mask:
    """The comparison made once per category of the dtype; a null has the code -1, the last place."""
    of_categories = compare(pd.Series(values.cat.categories))
    return np.append(of_categories, False)[values.cat.codes.to_numpy()]


def _plain(result: Any) -> Mask:
    """A pandas truth column as an array; nulls are False."""
    if isinstance(result.dtype, np.dtype):
        return np.asarray(result, dtype=bool)
    return np.asarray(result.to_numpy(dtype=bool, na_value=False), dtype=bool)


def _cell_by_cell(values: pd.Series[Any], met: Callable[[Any], Any]) -> Mask:
    """The slow path, for cells that pandas refuses to compare as a whole: such a cell is False."""

    def outcome(cell: Any) -> bool:
        try:
            return bool(met(cell))
        except Exception:
            return False

    null = nulls(values)
    cells = values.to_numpy(dtype=object)
    return np.fromiter(
        (not missing and outcome(cell) for cell, missing in zip(cells, null, strict=True)),
        dtype=bool,
        count=len(cells),
    )


def _ordering(values: pd.Series[Any], symbol: str, constant: float) -> Mask:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _by_category(values, lambda categories: _ordering(categories, symbol, constant))
    if types.is_integer_dtype(values.dtype) and constant != int(constant):
        # Exact for integers beyond 2**53, which a comparison with a float would round.
        constant = math.floor(constant) if symbol in ("<", "<=") else math.ceil(constant)
        symbol = "<=" if symbol in ("<", "<=") else ">="
    elif types.is_integer_dtype(values.dtype):
        constant = int(constant)
    compare = ORDERINGS[symbol]
    try:
        return _plain(compare(values, constant))
    except Exception:
        return _cell_by_cell(values, lambda cell: compare(cell, constant))


def _equal(values: pd.Series[Any], constants: tuple[Any, ...]) -> Mask:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _by_category(values, lambda categories: _equal(categories, constants))
    if types.is_integer_dtype(dtype):
        limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        constants = tuple(
            int(constant)
            for constant in constants
            if isinstance(constant, int | float)
            and constant == math.floor(constant)
            and limits.min <= constant <= limits.max
        )
    met = np.zeros(len(values), dtype=bool)
    try:
        if types.is_object_dtype(dtype):
            return _plain(values.isin(np.fromiter(constants, dtype=object)))
        if len(constants) > 8 and types.is_integer_dtype(dtype):
            # Of the dtype of the column: large integers take no detour over floats.
            return _plain(values.isin(np.array(constants, dtype=limits.dtype)))
        if len(constants) > 8 and types.is_float_dtype(dtype):
            # As numpy numbers, since Arrow tells 0.0 from -0.0 here; of the width that == compares in.
            arrow = isinstance(dtype, pd.ArrowDtype)
            width: Any = np.float64 if arrow else getattr(dtype, "numpy_dtype", dtype)
            numbers = pd.Series(values.to_numpy(dtype=width, na_value=np.nan))
            return _plain(numbers.isin(np.array(constants, dtype=width)))
        if len(constants) > 8 and types.is_string_dtype(dtype):
            return _plain(values.isin(list(constants)))
        for constant in constants:
            met |= _plain(values == constant)
    except Exception:
        return _cell_by_cell(values, lambda cell: any(bool(cell == constant) for constant in constants))
    return met
