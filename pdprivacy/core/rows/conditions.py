"""Conditions once they are read: frozen trees over nodes and constants.

A condition is walked with regions, which gives the declaration of the records that meet it, and with arrays,
which gives those records, row by row and alike for every dtype. It is true, false or unknown (None), as with
nullable dtypes of pandas: comparisons with a null are unknown, and `and`, `or` and `not` follow Kleene.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.core.rows.cells import Read, codes, column_of, dense, floats, nulls, whole
from pdprivacy.core.rows.nodes import Node
from pdprivacy.core.rows.regions import Region, bits, declared_in
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import INT64, LINE, Interval
from pdprivacy.errors import QueryError
from pdprivacy.hints.suggestions import nearest
from pdprivacy.types import Mask, settle

Condition: TypeAlias = "Comparison | Negation | BooleanOperation"
Regions: TypeAlias = dict[Any, Region]  # of the columns that are narrowed; the others are as declared
Truth: TypeAlias = "bool | None"
TRUE, FALSE, UNKNOWN = frozenset[Truth]({True}), frozenset[Truth]({False}), frozenset[Truth]({None})


ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FEW_CONSTANTS = 8
"""The largest number of constants with each of which numbers are compared."""
COMPLEMENT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``node symbol constants``; the symbol is an ordering, ``==``, ``in`` or ``null``.

    Unknown for a null cell; ``in`` is false, as `Series.isin`, and ``null`` is true. ``label_bits``: of the
    constants among the labels that the column declares, as `bits`.
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


def outcomes(condition: Condition, name: str) -> Node:
    """Return the truth values of the condition as a node, null where it is unknown.

    The node declares the truth values that the condition may have for declared records.
    """
    labels = tuple(
        label
        for label, truth in ((False, FALSE), (True, TRUE))
        if regions_where(condition, truth) is not None
    )
    column = Column(name, "boolean", regions_where(condition, UNKNOWN) is not None, categories=labels)

    def cells(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        truths = truths_of(condition, read, index)
        return column_of(truths.met, truths.unknown, column, index)

    return Node(column, cells)


def narrowed_domain(condition: Condition, domain: Domain) -> Domain | None:
    """The declaration of the records that meet the condition; None if no declared record can."""
    regions = regions_where(condition, TRUE)
    if regions is None:
        return None
    columns = [narrowed_column(domain[name], region) for name, region in regions.items()]
    return domain.replace(*columns)


def narrowed_column(column: Column, region: Region) -> Column:
    """The declaration of the cells of a column that are in a region of `regions_where`."""
    if column.categories is not None:
        flags = reversed(f"{region.label_bits:b}") if region.label_bits >= 0 else "1" * len(column.categories)
        labels = (label for label, bit in zip(column.categories, flags, strict=False) if bit == "1")
        region = replace(region, labels=dict.fromkeys(labels))
    return declared_in(column, region)


def regions_where(condition: Condition, truths: frozenset[Truth]) -> Regions | None:
    """Return the regions where the condition has one of these truth values; None if it never has.

    ``truths``: True or False, or unknown, or one of the former and unknown. A comparison of a result narrows
    no column.
    """
    if isinstance(condition, Negation):
        return regions_where(
            condition.part, frozenset(None if truth is None else not truth for truth in truths)
        )
    if isinstance(condition, Comparison):
        region, node = _comparison_region(condition, truths), condition.node
        if not (region.values or region.null):
            return None
        return {node.column.name: region} if node.declared else {}
    if (not condition.every) in truths:  # which one part decides
        return _joined([regions_where(part, truths) for part in condition.parts])
    undecided = [regions_where(part, truths | {condition.every}) for part in condition.parts]
    if truths == UNKNOWN:  # no part decides, and one is unknown
        undecided.append(_joined([regions_where(part, UNKNOWN) for part in condition.parts]))
    return _intersected(undecided)


def _intersected(parts: list[Regions | None]) -> Regions | None:
    met: Regions = {}
    for part in parts:
        if part is None:
            return None
        for name, region in part.items():
            met[name] = met[name].intersected(region) if name in met else region
            if not (met[name].values or met[name].null):
                return None
    return met


def _joined(parts: list[Regions | None]) -> Regions | None:
    met = [part for part in parts if part is not None]
    if not met:
        return None
    return {
        name: Region.hull([part[name] for part in met])
        for name in met[0]
        if all(name in part for part in met)
    }


def _comparison_region(comparison: Comparison, truths: frozenset[Truth]) -> Region:
    column = comparison.node.column
    of_null = {"null": True, "in": False}.get(comparison.symbol)
    declared = Region(True, column.nullable and of_null in truths, column.interval)
    if truths == UNKNOWN:
        return replace(declared, values=False)
    negated = False in truths
    if comparison.symbol == "null":
        return replace(declared, values=negated)
    if comparison.symbol in ("in", "=="):
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


@dataclass(frozen=True, slots=True)
class Truths:
    """The rows where a condition is true, and those where it is unknown; None for none."""

    met: Mask
    unknown: Mask | None = None

    def negated(self) -> Truths:
        """Return where the negation is true; where the condition is unknown, so is its negation."""
        false = ~self.met if self.unknown is None else ~(self.met | self.unknown)
        return Truths(false, self.unknown)


def truths_of(condition: Condition, read: Read, index: pd.Index[Any]) -> Truths:
    """Return where a condition is true; ``read`` has every column that it names."""
    if isinstance(condition, Negation):
        return truths_of(condition.part, read, index).negated()
    if isinstance(condition, Comparison):
        return _compared(condition, dense(condition.node.cells(read, index)))
    parts = [truths_of(part, read, index) for part in condition.parts]
    both, either = np.logical_and.reduce, np.logical_or.reduce
    join, join_false = (both, either) if condition.every else (either, both)
    met = join([part.met for part in parts])
    if all(part.unknown is None for part in parts):
        return Truths(met)
    return Truths(met, ~(met | join_false([part.negated().met for part in parts])))


def _compared(comparison: Comparison, values: pd.Series[Any]) -> Truths:
    """Compare cells as they are read: whole numbers and labels exactly, all other numbers as doubles."""
    column, symbol, constants = comparison.node.column, comparison.symbol, comparison.constants
    if symbol == "null":
        return Truths(nulls(values))
    null: Mask | None
    if column.kind == "category":
        met = codes(values, constants) >= 0
        null = nulls(values) if column.nullable and symbol != "in" else None
        return Truths(met, null)
    if column.kind == "float":
        array = floats(values, column)
        null = np.isnan(array) if column.nullable else None
    else:
        array, null = whole(values, column)
    met = _are_among(array, constants) if symbol in ("in", "==") else _are_beside(array, symbol, constants[0])
    met = met if null is None else met & ~null
    return Truths(met, None if symbol == "in" else null)


def _are_beside(array: NDArray[Any], symbol: str, constant: float) -> Mask:
    """Return a mask of the numbers on one side of a constant; False for NaN."""
    below, limits = symbol in ("<", "<="), INT64
    if array.dtype.kind == "f":
        limits = Interval(-sys.float_info.max, sys.float_info.max)
    elif constant != int(constant):
        # exact for integers beyond 2**53, which a comparison with a float would round
        constant, symbol = (math.floor(constant), "<=") if below else (math.ceil(constant), ">=")
    else:
        constant = int(constant)
    if array.dtype != object and constant not in limits:
        high = constant > limits.upper
        # an infinite number lies beyond every constant
        end, symbol = (
            (limits.upper, "<=" if below else ">") if high else (limits.lower, "<" if below else ">=")
        )
        constant = end
    return np.asarray(ORDERINGS[symbol](array, constant), dtype=bool)


def _are_among(array: NDArray[Any], constants: tuple[Any, ...]) -> Mask:
    """Return a mask of the numbers that equal one of the constants."""
    if array.dtype.kind == "f":
        listed = [float(constant) for constant in constants if abs(constant) <= sys.float_info.max]
    else:
        listed = [int(constant) for constant in constants if constant == math.floor(constant)]
        if array.dtype == object:
            among = frozenset(listed)
            return np.fromiter((number in among for number in array), dtype=bool, count=len(array))
        listed = [constant for constant in listed if constant in INT64]
    if len(listed) > FEW_CONSTANTS:
        return np.asarray(pd.Series(array).isin(np.array(listed, dtype=array.dtype)), dtype=bool)
    return functools.reduce(
        np.logical_or, (array == constant for constant in listed), np.zeros(len(array), dtype=bool)
    )
