"""The values of conditions and terms, row by row, alike for every dtype."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from pdprivacy.domain import Column
from pdprivacy.expressions.arrays import Mask, dense, floats, nulls, whole
from pdprivacy.expressions.tree import ORDERINGS, Comparison, Condition, Negated, Term

__all__ = ["Numbers", "Read", "numbers", "truths"]

Read: TypeAlias = Mapping[Hashable, "pd.Series[Any]"]


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of all rows: int64 with a mask of nulls, or float64 with NaN.

    A constant is an array without dimensions.
    """

    array: NDArray[Any]
    null: Mask | None = None

    def doubles(self) -> NDArray[Any]:
        """With NaN for nulls; whole numbers without any stay, to be read as doubles."""
        if self.null is None:
            return self.array
        return np.where(self.null, np.nan, np.asarray(self.array, dtype=np.float64))


def numbers(term: Term, read: Read) -> Numbers:
    """The values of a term; ``read`` has every column that it names."""
    if isinstance(term.leaf, Column):
        values = read[term.leaf.name]
        return Numbers(*whole(values, term.leaf)) if term.whole else Numbers(floats(values, term.leaf))
    if term.run is None:
        return Numbers(np.array(term.leaf, dtype=np.int64 if term.whole else np.float64))
    found = [numbers(part, read) for part in term.parts]
    if not term.whole:
        with np.errstate(all="ignore"):
            return Numbers(np.asarray(term.run(*(one.doubles() for one in found), dtype=np.float64)))
    if term.fills:
        (before,) = found
        return before if before.null is None else Numbers(term.run(before.array, before.null))
    masks = [one.null for one in found if one.null is not None]
    null = functools.reduce(np.logical_or, masks) if masks else None
    return Numbers(term.run(*(one.array for one in found)), null)


def truths(condition: Condition, read: Read) -> Mask:
    """Return a mask of the rows that meet the condition; ``read`` has every column that it names."""
    if isinstance(condition, Negated):
        return ~truths(condition.part, read)
    if isinstance(condition, Comparison):
        values = dense(read[condition.name])
        if condition.symbol == "null":
            return nulls(values)
        if condition.symbol == "in":
            return _equal(values, condition.constants)
        return _ordering(values, condition.symbol, condition.constants[0])
    join = np.logical_and if condition.every else np.logical_or
    first, *rest = condition.parts
    met = truths(first, read)
    for part in rest:
        met = join(met, truths(part, read))
    return met


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
