"""Conditions once they are read: frozen trees over nodes and constants.

A condition is walked with regions, which gives the declaration of the records that meet it, and with arrays,
which gives those records, row by row and alike for every dtype.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from pdprivacy.domain import Column, Domain
from pdprivacy.errors import QueryError
from pdprivacy.expressions.cells import Read, column_of, dense, nulls
from pdprivacy.expressions.nodes import Node
from pdprivacy.expressions.regions import Region, bits, declared_in
from pdprivacy.hints import nearest
from pdprivacy.intervals import LINE, Interval
from pdprivacy.types import Mask, settle

Condition: TypeAlias = "Comparison | Negation | BooleanOperation"
Regions: TypeAlias = dict[Any, Region]  # of the columns that are narrowed; the others are as declared


ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPLEMENT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``node symbol constants``; the symbol is an ordering, ``in`` or ``null``.

    False for a null cell, except ``null``. ``label_bits``: of the constants among the labels that the column
    declares, as `bits`.
    """

    node: Node
    symbol: str
    constants: tuple[Any, ...] = ()
    label_bits: int = 0


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a condition."""

    part: Condition


@dataclass(frozen=True, slots=True)
class BooleanOperation:
    """Conditions joined by ``and`` (``every``) or by ``or``."""

    parts: tuple[Condition, ...]
    every: bool


class DeclaredLabels:
    """The declared categories of a column, to be found by the constants that mean them.

    A constant means the first of those that equal it, are an Enum of this value, or are this date.
    """

    def __init__(self, name: Hashable, categories: tuple[Any, ...]) -> None:
        self.name = name
        self.categories = categories
        # True equals 1, and they are different labels
        self.equal = {(isinstance(label, bool), label): position for position, label in enumerate(categories)}
        self.values: dict[Any, int] = {}
        self.dates: dict[pd.Timestamp, int] = {}
        for position, label in enumerate(categories):
            if isinstance(label, Enum) and isinstance(label.value, bool | int | float | str):
                self.values.setdefault(label.value, position)
            if isinstance(label, date) and (day := _timestamp(label)) is not None:
                self.dates.setdefault(day, position)

    @classmethod
    def of(cls, column: Column) -> DeclaredLabels:
        """Return the categories of a column, which are read once."""
        labels = getattr(column, "_meanings", None)
        if not isinstance(labels, cls):
            labels = cls(column.name, column.categories or ())
            settle(column, _meanings=labels)
        return labels

    def position(self, value: Any) -> int:
        """Return the position of the label that a constant means; QueryError where it means none."""
        positions = [self.equal.get((isinstance(value, bool), value)), self.values.get(value)]
        if self.dates and isinstance(value, str) and (day := _timestamp(value)) is not None:
            positions.append(self.dates.get(day))
        position = min((position for position in positions if position is not None), default=None)
        if position is not None:
            return position
        shown = ", ".join(map(repr, self.categories[:10])) + (", ..." if len(self.categories) > 10 else "")
        close = nearest(value, self.categories)
        raise QueryError(
            f"{value!r} is not a declared category of column {self.name!r} (declared: {shown}).",
            f"one of these, such as {self.categories[0] if close is None else close!r}",
        )


def _timestamp(value: Any) -> pd.Timestamp | None:
    try:
        return pd.Timestamp(value)
    except (ValueError, TypeError):
        return None


# ---------------------------------------------------------------- declarations


def possible(condition: Condition) -> tuple[bool, ...]:
    """Return the truth values that the condition may have for declared records: False, True, or both."""
    return tuple(value for value in (False, True) if regions_where(condition, not value) is not None)


def outcomes(condition: Condition, name: str) -> Node:
    """Return the truth values of the condition as a node."""
    column = Column(name, "boolean", categories=possible(condition))
    return Node(column, lambda read, index: column_of(truths(condition, read, index), None, column, index))


def narrowed_domain(condition: Condition, domain: Domain) -> Domain | None:
    """The declaration of the records that meet the condition; None if no declared record can."""
    regions = regions_where(condition, False)
    if regions is None:
        return None
    columns = []
    for name, region in regions.items():
        column = domain[name]
        if column.categories is not None:
            flags = (
                reversed(f"{region.label_bits:b}") if region.label_bits >= 0 else "1" * len(column.categories)
            )
            labels = (label for label, bit in zip(column.categories, flags, strict=False) if bit == "1")
            region = replace(region, labels=dict.fromkeys(labels))
        columns.append(declared_in(column, region))
    return domain.replace(*columns)


def regions_where(condition: Condition, negated: bool) -> Regions | None:
    """Return the regions where the condition is true (false, if negated); None if it never is.

    A comparison of a result narrows no column.
    """
    if isinstance(condition, Negation):
        return regions_where(condition.part, not negated)
    if isinstance(condition, Comparison):
        region, node = _comparison_region(condition, negated), condition.node
        if not (region.values or region.null):
            return None
        return {node.column.name: region} if node.declared else {}
    parts = [regions_where(part, negated) for part in condition.parts]
    met = [part for part in parts if part is not None]
    if condition.every != negated:
        return _intersected(met) if len(met) == len(parts) else None
    return _hulls(met) if met else None


def _intersected(parts: list[Regions]) -> Regions | None:
    met: Regions = {}
    for part in parts:
        for name, region in part.items():
            met[name] = met[name].intersected(region) if name in met else region
            if not (met[name].values or met[name].null):
                return None
    return met


def _hulls(parts: list[Regions]) -> Regions:
    return {
        name: Region.hull([part[name] for part in parts])
        for name in parts[0]
        if all(name in part for part in parts)
    }


def _comparison_region(comparison: Comparison, negated: bool) -> Region:
    column = comparison.node.column
    null = column.nullable and negated != (comparison.symbol == "null")
    declared = Region(True, null, column.interval)
    if comparison.symbol == "null":
        return replace(declared, values=negated)
    if comparison.symbol == "in":
        limit = _region_without if negated else _region_among
        return limit(declared, comparison, column)
    symbol = COMPLEMENT[comparison.symbol] if negated else comparison.symbol
    return _one_sided_region(declared, symbol, comparison.constants[0], column)


def _one_sided_region(declared: Region, symbol: str, constant: Any, column: Column) -> Region:
    """The declared values on one side of a constant."""
    compare, strict = ORDERINGS[symbol], not symbol.endswith("=")
    below = Interval(upper=constant, open_upper=strict)
    above = Interval(lower=constant, open_lower=strict)
    interval = declared.interval.intersect(below if symbol in ("<", "<=") else above)
    if column.kind == "integer":
        interval = interval.whole()
    mask = -1
    if column.categories is not None:
        mask = bits(position for position, label in enumerate(column.categories) if compare(label, constant))
    values = mask != 0 and not interval.empty
    return replace(declared, values=values, interval=interval.closed(), label_bits=mask)


def _region_among(declared: Region, comparison: Comparison, column: Column) -> Region:
    """The declared values among the constants; the constants are declared labels where any are declared."""
    labelled = column.kind in ("category", "boolean")
    constants = [
        constant
        for constant in dict.fromkeys(comparison.constants)
        if labelled
        or (
            constant in declared.interval
            and not (column.kind == "integer" and constant != math.floor(constant))
        )
    ]
    if not constants:
        return replace(declared, values=False)
    interval = LINE if column.kind == "category" else Interval.around(constants)
    among = Region(True, declared.null, interval, label_bits=comparison.label_bits)
    if column.categories is None:
        among = replace(among, labels=dict.fromkeys(constants) if labelled else None, label_bits=-1)
    return declared.intersected(among)


def _region_without(declared: Region, comparison: Comparison, column: Column) -> Region:
    """The declared values except the constants."""
    if column.categories is not None:
        mask = ((1 << len(column.categories)) - 1) & ~comparison.label_bits
        return replace(declared, values=mask != 0, label_bits=mask)
    constants = frozenset(comparison.constants)
    lower, upper = declared.interval
    if column.kind != "integer":
        return replace(declared, values=lower != upper or lower not in constants)
    while lower in constants and lower <= upper:
        lower += 1
    while upper in constants and lower <= upper:
        upper -= 1
    interval = Interval(lower, upper)
    return replace(declared, values=not interval.empty, interval=interval)


# ---------------------------------------------------------------- records


def truths(condition: Condition, read: Read, index: pd.Index[Any]) -> Mask:
    """Return a mask of the rows that meet the condition; ``read`` has every column that it names."""
    if isinstance(condition, Negation):
        return ~truths(condition.part, read, index)
    if isinstance(condition, Comparison):
        values = dense(condition.node.cells(read, index))
        if condition.symbol == "null":
            return nulls(values)
        if condition.symbol == "in":
            return _equal(values, condition.constants)
        return _ordering(values, condition.symbol, condition.constants[0])
    join = np.logical_and if condition.every else np.logical_or
    first, *rest = condition.parts
    met = truths(first, read, index)
    for part in rest:
        met = join(met, truths(part, read, index))
    return met


def _by_category(values: pd.Series[Any], compare: Callable[[pd.Series[Any]], Mask]) -> Mask:
    """The comparison made once per category of the dtype; a null has the code -1, the last place."""
    of_categories = compare(pd.Series(values.cat.categories))
    return np.append(of_categories, False)[values.cat.codes.to_numpy()]


def _as_mask(result: Any) -> Mask:
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
        return _as_mask(compare(values, constant))
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
            return _as_mask(values.isin(np.fromiter(constants, dtype=object)))
        if len(constants) > 8 and types.is_integer_dtype(dtype):
            # Constants have the dtype of the column: large integers take no detour over floats.
            return _as_mask(values.isin(np.array(constants, dtype=limits.dtype)))
        if len(constants) > 8 and types.is_float_dtype(dtype):
            # As numpy numbers, since Arrow tells 0.0 from -0.0 here; of the width that == compares in.
            arrow = isinstance(dtype, pd.ArrowDtype)
            width: Any = np.float64 if arrow else getattr(dtype, "numpy_dtype", dtype)
            numbers = pd.Series(values.to_numpy(dtype=width, na_value=np.nan))
            return _as_mask(numbers.isin(np.array(constants, dtype=width)))
        if len(constants) > 8 and types.is_string_dtype(dtype):
            return _as_mask(values.isin(list(constants)))
        for constant in constants:
            met |= _as_mask(values == constant)
    except Exception:
        return _cell_by_cell(values, lambda cell: any(bool(cell == constant) for constant in constants))
    return met
