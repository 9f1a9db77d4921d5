"""What a column may hold, as a region: intersected, joined, clipped and widened in one place.

A condition is walked with regions, which gives the declaration of the records that meet it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.domain import Column, Domain
from pdprivacy.expressions.tree import COMPLEMENT, ORDERINGS, Comparison, Condition, Negated

__all__ = ["Region", "declared_in", "narrow", "narrowed", "possible"]

Labels: TypeAlias = Mapping[Any, None]  # as keys in their order, to be looked up
End: TypeAlias = float | int | None


@dataclass(frozen=True, slots=True)
class Region:
    """What a column may hold: non-null values (between the ends, among the labels), and null or not."""

    values: bool
    null: bool
    lower: End = None
    upper: End = None
    labels: Labels | None = None

    @classmethod
    def of(cls, column: Column) -> Region:
        """The region that is declared."""
        return cls(True, column.nullable, column.lower, column.upper, _keys(column.categories))

    def intersected(self, other: Region) -> Region:
        """What both hold."""
        lower = max((end for end in (self.lower, other.lower) if end is not None), default=None)
        upper = min((end for end in (self.upper, other.upper) if end is not None), default=None)
        labels = self.labels if other.labels is None else other.labels
        if self.labels is not None and other.labels is not None:
            labels = {label: None for label in self.labels if label in other.labels}
        values = self.values and other.values
        if (lower is not None and upper is not None and lower > upper) or labels == {}:
            values = False
        return Region(values, self.null and other.null, lower, upper, labels)

    def joined(self, other: Region) -> Region:
        """The hull of both."""
        null = self.null or other.null
        if not (self.values and other.values):
            return replace(self if self.values else other, null=null)
        lower = None if self.lower is None or other.lower is None else min(self.lower, other.lower)
        upper = None if self.upper is None or other.upper is None else max(self.upper, other.upper)
        labels = None if self.labels is None or other.labels is None else {**self.labels, **other.labels}
        return Region(True, null, lower, upper, labels)

    def clipped(self, low: End, high: End) -> Region:
        """What is left once the values are moved between the ends."""

        def moved(value: Any) -> Any:
            if low is not None and value < low:
                return low
            return high if high is not None and value > high else value

        lower = low if self.lower is None else moved(self.lower)
        upper = high if self.upper is None else moved(self.upper)
        labels = None if self.labels is None else _keys(map(moved, self.labels))
        return replace(self, lower=lower, upper=upper, labels=labels)

    def filled(self, value: Any) -> Region:
        """What is left once the value stands for nulls."""
        lower = None if self.lower is None else min(self.lower, value)
        upper = None if self.upper is None else max(self.upper, value)
        labels = None if self.labels is None else {**self.labels, value: None}
        return Region(True, False, lower, upper, labels)


def _keys(labels: Iterable[Any] | None) -> Labels | None:
    return None if labels is None else dict.fromkeys(labels)


def declared_in(column: Column, region: Region) -> Column:
    """The declaration of a column whose cells are in the region.

    >>> age = Column("age", "integer", lower=0, upper=9, bins=(0, 5, 9))
    >>> declared_in(age, Region(True, False, 3, 9)).bins
    (3.0, 5.0, 9.0)
    """
    if not region.values:  # nulls only, which a column has no words for
        return column
    categories = None if region.labels is None else tuple(region.labels)
    if column.kind in ("boolean", "category"):
        return replace(column, nullable=region.null, lower=None, upper=None, categories=categories)
    lower = region.lower if column.kind == "float" or region.lower is None else int(region.lower)
    upper = region.upper if column.kind == "float" or region.upper is None else int(region.upper)
    return replace(
        column,
        nullable=region.null,
        lower=lower,
        upper=upper,
        categories=categories,
        bins=_bins(column, lower, upper),
    )


def _bins(column: Column, lower: End, upper: End) -> tuple[float, ...] | None:
    """The bins of a column cut off at new bounds, or reaching them; None if its one value is in none."""
    bins = column.bins
    if bins is None or (lower == column.lower and upper == column.upper):
        return bins
    first, last = bins[0], bins[-1]
    if lower is not None and column.lower is not None and lower != column.lower:
        first = float(lower) if lower > column.lower else min(first, float(lower))
    if upper is not None and column.upper is not None and upper != column.upper:
        last = float(upper) if upper < column.upper else max(last, float(upper))
    if not bins[0] <= last or not first <= bins[-1]:
        return None
    if first == last:  # one value; its bin stays whole, as a bin of no width is none
        place = min(int(np.searchsorted(bins, first, side="right")), len(bins) - 1)
        return bins[place - 1 : place + 1]
    return (first, *(edge for edge in bins if first < edge < last), last)


# ---------------------------------------------------------------- conditions

Regions: TypeAlias = dict[Any, Region]  # of the columns that are narrowed; the others are as declared


def possible(condition: Condition, domain: Domain) -> tuple[bool, ...]:
    """Return the truth values that the condition may have for declared records: False, True, or both."""
    return tuple(value for value in (False, True) if narrow(condition, not value, domain) is not None)


def narrowed(condition: Condition, domain: Domain) -> Domain | None:
    """The declaration of the records that meet the condition; None if no declared record can."""
    regions = narrow(condition, False, domain)
    if regions is None:
        return None
    columns = []
    for name, region in regions.items():
        column = domain[name]
        if column.categories is not None and region.labels is not None:
            held = region.labels
            region = replace(region, labels=_keys(label for label in column.categories if label in held))
        columns.append(declared_in(column, region))
    return domain.replace(*columns)


def narrow(condition: Condition, negated: bool, domain: Domain) -> Regions | None:
    """What the records hold for which the condition is true (false, if negated); None if there are none."""
    if isinstance(condition, Negated):
        return narrow(condition.part, not negated, domain)
    if isinstance(condition, Comparison):
        region = _compared(condition, negated, domain[condition.name])
        return {condition.name: region} if region.values or region.null else None
    parts = [narrow(part, negated, domain) for part in condition.parts]
    met = [part for part in parts if part is not None]
    if condition.every != negated:
        return _all(met) if len(met) == len(parts) else None
    return _any(met) if met else None


def _all(parts: list[Regions]) -> Regions | None:
    met: Regions = {}
    for part in parts:
        for name, region in part.items():
            met[name] = met[name].intersected(region) if name in met else region
            if not (met[name].values or met[name].null):
                return None
    return met


def _any(parts: list[Regions]) -> Regions:
    met, *rest = parts
    for part in rest:
        met = {name: region.joined(part[name]) for name, region in met.items() if name in part}
    return met


def _compared(comparison: Comparison, negated: bool, column: Column) -> Region:
    null = column.nullable and negated != (comparison.symbol == "null")
    declared = replace(Region.of(column), null=null)
    if comparison.symbol == "null":
        return replace(declared, values=negated)
    if comparison.symbol == "in":
        limit = _without if negated else _among
        return limit(declared, comparison.constants, column)
    symbol = COMPLEMENT[comparison.symbol] if negated else comparison.symbol
    return _beyond(declared, symbol, comparison.constants[0], column)


def _beyond(declared: Region, symbol: str, constant: Any, column: Column) -> Region:
    """The declared values on one side of a constant."""
    compare = ORDERINGS[symbol]
    below = symbol in ("<", "<=")
    end = constant
    if column.kind == "integer":
        below_end = math.ceil(constant) - 1 if symbol == "<" else math.floor(constant)
        above_end = math.floor(constant) + 1 if symbol == ">" else math.ceil(constant)
        end = below_end if below else above_end
    labels = None
    if column.categories is not None:
        labels = _keys(label for label in column.categories if compare(label, constant))
    lower, upper = (None, end) if below else (end, None)
    region = declared.intersected(Region(True, declared.null, lower, upper, labels))
    # no declared value is on the right side of the constant if the nearest bound is not
    nearest = column.lower if below else column.upper
    return region if nearest is None or compare(nearest, constant) else replace(region, values=False)


def _among(declared: Region, constants: Iterable[Any], column: Column) -> Region:
    """The declared values among the constants; the constants are declared labels where any are declared."""
    labelled = column.kind in ("category", "boolean")
    held = [
        constant
        for constant in dict.fromkeys(constants)
        if labelled
        or (
            (declared.lower is None or constant >= declared.lower)
            and (declared.upper is None or constant <= declared.upper)
            and not (column.kind == "integer" and constant != math.floor(constant))
        )
    ]
    if not held:
        return replace(declared, values=False)
    labels = _keys(held) if labelled or column.categories is not None else None
    lower, upper = (None, None) if column.kind == "category" else (min(held), max(held))
    return replace(declared, labels=None).intersected(Region(True, declared.null, lower, upper, labels))


def _without(declared: Region, constants: Container[Any], column: Column) -> Region:
    """The declared values except the constants."""
    if declared.labels is not None:
        labels = {label: None for label in declared.labels if label not in constants}
        return replace(declared, values=bool(labels), labels=labels)
    lower, upper = declared.lower, declared.upper
    if column.kind != "integer":
        return replace(declared, values=lower is None or lower != upper or lower not in constants)
    while lower is not None and lower in constants and (upper is None or lower <= upper):
        lower += 1
    while upper is not None and upper in constants and (lower is None or lower <= upper):
        upper -= 1
    return replace(
        declared, values=lower is None or upper is None or lower <= upper, lower=lower, upper=upper
    )
