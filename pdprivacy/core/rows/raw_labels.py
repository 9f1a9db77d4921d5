"""Labels that are not declared: the label of a cell, and the step that declares labels that were found.

A text is the label that it is, to the last blank. A whole number is one label whatever type stores it: 1 and
1.0. A null, a text that no file can hold, and a number that is not whole have no label. Each label follows
from its cell alone.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import is_encodable
from pdprivacy.core.rows.cells import (
    Read,
    category_column,
    column_of,
    dense,
    nulls,
    whole,
)
from pdprivacy.core.rows.nodes import Node
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.types import Integers

CUTS_TEXTS = pd.__version__.startswith("2.")
"""Whether pandas ends a text at its first null character when it compares the texts of a column."""

PUT_TOGETHER = {str, int, float, type(None), type(pd.NA)}
"""The types of Python objects whose equal cells have the same label."""


def label_of(cell: Any, column: Column) -> Any:
    """Return the label of a cell, None where it has none.

    >>> label_of(1.0, Column("zip", "integer")), label_of("a ", Column("city", "category"))
    (1, 'a ')
    >>> label_of(np.int64(2**53 + 1), Column("zip", "integer")) == 2**53 + 1
    True
    """
    if column.kind == "category":
        text = str.__str__(cell) if isinstance(cell, str) else None  # `str` of a subclass may be another text
        return text if text is not None and is_encodable(text) else None
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, numbers.Real | Decimal):
        return None
    if isinstance(cell, numbers.Integral):  # exactly: `math.floor` makes doubles of integers of NumPy
        return INT64.clip(int(cell))
    if isinstance(cell, float):
        cell = float.__float__(cell)  # without the equality of a subclass
    try:
        number = math.floor(cell)
        return INT64.clip(number) if number == cell else None
    except (TypeError, ValueError, ArithmeticError):  # infinite, or a null
        return None


def labels_of(cells: list[Any], column: Column) -> list[Any]:
    """Return the label of each cell, None where it has none: the list itself where all are labels."""
    kinds = set(map(type, cells))
    if column.kind == "category" and kinds == {str} and is_encodable("".join(cells)):
        return cells
    if column.kind == "integer" and kinds == {int} and min(cells) in INT64 and max(cells) in INT64:
        return cells
    return [label_of(cell, column) for cell in cells]


def counts_of_cells(values: pd.Series[Any], column: Column) -> tuple[list[Any], list[int]]:
    """Return the distinct cells of a column, without nulls and in any order, and the number of each.

    Cells that are put together have the same label.
    """
    values = _plain(values, column)
    if isinstance(values.dtype, pd.CategoricalDtype):
        times = np.bincount(values.cat.codes.to_numpy() + 1, minlength=len(values.cat.categories) + 1)
        return values.cat.categories.tolist(), times[1:].tolist()
    if CUTS_TEXTS and values.dtype == object:
        counts = Counter(values[~nulls(values)].to_numpy(dtype=object))
        return list(counts), list(counts.values())
    table = values.value_counts(sort=False, dropna=True)
    return table.index.tolist(), table.tolist()


def label_codes(values: pd.Series[Any], column: Column) -> tuple[Integers, list[Any]]:
    """Return the label of each record as a position in a list of labels, -1 for none, and this list."""
    values = _plain(values, column)
    if isinstance(values.dtype, pd.CategoricalDtype):
        stored, cells = np.asarray(values.cat.codes, dtype=np.int64), values.cat.categories.tolist()
    elif CUTS_TEXTS and values.dtype == object:
        first: dict[Any, int] = {}
        listed = values.to_numpy(dtype=object)
        stored = np.fromiter((first.setdefault(cell, len(first)) for cell in listed), np.int64, len(listed))
        cells = list(first)
    else:
        factors, uniques = pd.factorize(values)
        stored, cells = np.asarray(factors, dtype=np.int64), uniques.tolist()
    labels: dict[Any, int] = {}
    images = labels_of(cells, column)
    table = [-1 if image is None else labels.setdefault(image, len(labels)) for image in images]
    return np.array([*table, -1], dtype=np.int64)[stored], list(labels)


def _plain(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """A column that is neither sparse nor a dictionary of Arrow, which may repeat an entry.

    Python objects are put together by their equality. So where any type is not a built-in one whose equal
    cells have equal labels, such as an `Enum` of texts, each cell is replaced by its label first.
    """
    values, dtype = dense(values), values.dtype
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("dictionary"):
        return values.astype(pd.ArrowDtype(dtype.pyarrow_dtype.value_type))
    if values.dtype == object or (isinstance(dtype, pd.StringDtype) and dtype.storage == "python"):
        cells = values.to_numpy(dtype=object)
        if not set(map(type, cells)) <= PUT_TOGETHER:
            labels = np.empty(len(cells), dtype=object)
            labels[:] = [label_of(cell, column) for cell in cells]
            return pd.Series(labels, index=values.index, dtype=object)
    return values


def declared_labels(node: Node, labels: Sequence[Any], other: Any) -> Node:
    """Return a column of private labels with these labels declared.

    All others become ``other``, which is declared last, or null where it is None; nulls stay.
    """
    column, beyond = node.column, -1 if other is None else len(labels)
    after = (*labels, *(() if other is None else (other,)))
    nullable = column.nullable or other is None
    renewed = replace(column, nullable=nullable, categories=after, private_labels=False)
    if column.kind == "integer":
        bounds = Interval.around(after)
        renewed = replace(renewed, lower=bounds.lower, upper=bounds.upper)

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        values = dense(node.cells(read, index))
        null = nulls(values)
        if column.kind == "integer":
            values = pd.Series(whole(values, column)[0])
        positions = np.where(null, -1, _positions(values, column, labels, beyond))
        if column.kind == "category":
            return category_column(positions, after, index)
        numbers = np.array([*after, after[0]], dtype=np.int64)[positions]
        return column_of(numbers, positions < 0, renewed, index)

    return Node(renewed, cells)


def _positions(values: pd.Series[Any], column: Column, labels: Sequence[Any], beyond: int) -> Integers:
    """Return the place of the label of each cell, ``beyond`` for all others."""
    stored, cells = label_codes(values, column)
    positions = {label: position for position, label in enumerate(labels)}
    return np.array([*(positions.get(cell, beyond) for cell in cells), beyond], dtype=np.int64)[stored]
