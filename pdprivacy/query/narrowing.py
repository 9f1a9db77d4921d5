"""What a filter says about the declaration of the records that pass."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.domain import Column
from pdprivacy.query.tree import COMPLEMENT, ORDERINGS, All, Columns, Leaf, Not, Tree

__all__ = ["Region", "Regions", "cropped", "narrow", "narrowed_column", "possible"]


@dataclass(frozen=True, slots=True)
class Region:
    """What a column may hold: non-null values (between the ends, among the labels) and null, or not.

    ``labels``: as keys in their order, to be looked up.
    """

    values: bool
    null: bool
    lower: float | int | None = None
    upper: float | int | None = None
    labels: Labels | None = None

    def both(self, other: Region) -> Region:
        """What is held where both are."""
        lower = max((end for end in (self.lower, other.lower) if end is not None), default=None)
        upper = min((end for end in (self.upper, other.upper) if end is not None), default=None)
        labels = self.labels if other.labels is None else other.labels
        if self.labels is not None and other.labels is not None:
            labels = {label: None for label in self.labels if label in other.labels}
        values = self.values and other.values
        if (lower is not None and upper is not None and lower > upper) or labels == {}:
            values = False
        return Region(values, self.null and other.null, lower, upper, labels)


Labels: TypeAlias = Mapping[Any, None]
Regions: TypeAlias = dict[str, Region]  # of the columns that are narrowed; the others are as declared


def narrow(tree: Tree, negated: bool, domain: Columns) -> Regions | None:
    """What the records hold for which the tree is true (false, if negated); None if there are none."""
    if isinstance(tree, Not):
        return narrow(tree.part, not negated, domain)
    if isinstance(tree, Leaf):
        region = _leaf_region(tree, negated, domain[tree.name])
        return {tree.name: region} if region.values or region.null else None
    parts = [narrow(part, negated, domain) for part in tree.parts]
    if isinstance(tree, All) != negated:
        met: Regions = {}
        for part in parts:
            if part is None:
                return None
            for name, region in part.items():
                met[name] = met[name].both(region) if name in met else region
                if not (met[name].values or met[name].null):
                    return None
        return met
    possible = [part for part in parts if part is not None]
    if not possible:
        return None
    first, *rest = possible
    return {
        name: _union([region, *(part[name] for part in rest)])
        for name, region in first.items()
        if all(name in part for part in rest)
    }


def _union(regions: list[Region]) -> Region:
    """What is held where one of them is, or more."""
    null = any(region.null for region in regions)
    held = [region for region in regions if region.values]
    if len(held) < 2:
        return replace(held[0] if held else regions[-1], null=null)
    lows, highs = [region.lower for region in held], [region.upper for region in held]
    lower = None if None in lows else min(end for end in lows if end is not None)
    upper = None if None in highs else max(end for end in highs if end is not None)
    labels: dict[Any, None] = {}
    for region in held:
        if region.labels is None:
            return Region(True, null, lower, upper)
        labels.update(region.labels)
    return Region(True, null, lower, upper, labels)


def _leaf_region(leaf: Leaf, negated: bool, column: Column) -> Region:
    null = column.nullable and negated != (leaf.symbol == "null")
    declared = Region(True, null, column.lower, column.upper)
    whole = column.kind == "integer"
    if leaf.symbol == "in" and not negated:
        return _among(declared, leaf.constants, whole, column)
    declared = replace(declared, labels=_keys(column.categories))
    if leaf.symbol == "null":
        return replace(declared, values=negated)
    if leaf.symbol in ORDERINGS:
        symbol = COMPLEMENT[leaf.symbol] if negated else leaf.symbol
        (constant,) = leaf.constants
        compare = ORDERINGS[symbol]
        # No declared value is on the right side of the constant if the nearest bound is not.
        nearest = column.lower if symbol in ("<", "<=") else column.upper
        possible = nearest is None or compare(nearest, constant)
        if symbol in ("<", "<="):
            end = (math.ceil(constant) - 1 if symbol == "<" else math.floor(constant)) if whole else constant
            met = Region(True, null, None, end)
        else:
            end = (math.floor(constant) + 1 if symbol == ">" else math.ceil(constant)) if whole else constant
            met = Region(True, null, end, None)
        if column.categories is not None:
            met = replace(met, labels=_keys(label for label in column.categories if compare(label, constant)))
        region = declared.both(met)
        return region if possible else replace(region, values=False)
    return _without(declared, frozenset(leaf.constants), whole, column.kind)


def _keys(labels: Iterable[Any] | None) -> Labels | None:
    return None if labels is None else dict.fromkeys(labels)


def _among(declared: Region, constants: tuple[Any, ...], whole: bool, column: Column) -> Region:
    """Of constants that are declared labels, where any are declared."""
    kind = column.kind
    held = [
        constant
        for constant in dict.fromkeys(constants)
        if kind in ("category", "boolean")
        or (
            (declared.lower is None or constant >= declared.lower)
            and (declared.upper is None or constant <= declared.upper)
            and not (whole and constant != math.floor(constant))
        )
    ]
    if not held:
        return replace(declared, values=False)
    labels = _keys(held) if kind == "category" or column.categories is not None else None
    if kind == "category":
        return declared.both(Region(True, declared.null, labels=labels))
    if kind == "boolean":
        return declared.both(Region(True, declared.null, int(min(held)), int(max(held)), labels))
    return declared.both(Region(True, declared.null, min(held), max(held), labels))


def _without(declared: Region, constants: Container[Any], whole: bool, kind: str) -> Region:
    if declared.labels is not None:
        labels = {label: None for label in declared.labels if label not in constants}
        if not labels:
            return replace(declared, values=False, labels=labels)
        if kind == "boolean":
            return replace(declared, lower=int(min(labels)), upper=int(max(labels)), labels=labels)
        return replace(declared, labels=labels)
    lower, upper = declared.lower, declared.upper
    if whole:
        while lower is not None and lower in constants and (upper is None or lower <= upper):
            lower += 1
        while upper is not None and upper in constants and (lower is None or lower <= upper):
            upper -= 1
        values = lower is None or upper is None or lower <= upper
    else:
        values = lower is None or lower != upper or lower not in constants
    return replace(declared, values=values, lower=lower, upper=upper)


def narrowed_column(column: Column, region: Region) -> Column:
    """The declaration of a column whose cells are in the region."""
    if not region.values:  # nulls only, which a column has no words for
        return column
    if column.kind == "boolean":
        return replace(
            column, nullable=region.null, lower=None, upper=None, categories=_ordered(column, region)
        )
    lower = region.lower if column.kind == "float" or region.lower is None else int(region.lower)
    upper = region.upper if column.kind == "float" or region.upper is None else int(region.upper)
    return replace(
        column,
        nullable=region.null,
        lower=lower,
        upper=upper,
        categories=_ordered(column, region),
        bins=cropped(column, lower, upper),
    )


def _ordered(column: Column, region: Region) -> tuple[Any, ...] | None:
    """The labels in declared order, or in the order of the filter where none are declared."""
    if column.categories is None or region.labels is None:
        return None if region.labels is None else tuple(region.labels)
    return tuple(label for label in column.categories if label in region.labels)


def cropped(column: Column, lower: float | int | None, upper: float | int | None) -> tuple[float, ...] | None:
    """The bins of a column cut off at new bounds; None where it had none, or its one value is in none."""
    bins = column.bins
    if bins is None or (lower == column.lower and upper == column.upper):
        return bins
    first = bins[0] if lower is None or lower == column.lower else float(lower)
    last = bins[-1] if upper is None or upper == column.upper else float(upper)
    if not bins[0] <= last or not first <= bins[-1]:
        return None
    if first == last:  # one value; its bin stays whole, as a bin of no width is none
        place = min(int(np.searchsorted(bins, first, side="right")), len(bins) - 1)
        return bins[place - 1 : place + 1]
    return (first, *(edge for edge in bins if first < edge < last), last)


def possible(tree: Tree, domain: Columns) -> tuple[bool, ...]:
    """Which truth values the tree may have for declared records: False, True, or both."""
    return tuple(value for value in (False, True) if narrow(tree, not value, domain) is not None)
