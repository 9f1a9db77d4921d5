"""Regions: the values that a column may hold, intersected, joined, clipped and filled."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.intervals import LINE, Interval

LabelKeys: TypeAlias = Mapping[Any, None]  # as keys in their order, to be looked up


@dataclass(frozen=True, slots=True)
class Region:
    """The values that a column may hold: in the interval, among the labels, and null or not.

    ``labels``: the labels themselves, of a computed column, or None. ``label_bits``: labels that the column
    declares, by their positions as `bits`, which conditions on many labels combine fast; -1 for all.
    """

    values: bool
    null: bool
    interval: Interval = LINE
    labels: LabelKeys | None = None
    label_bits: int = -1

    @classmethod
    def of(cls, column: Column) -> Region:
        """The region that is declared."""
        return cls(True, column.nullable, column.interval, _keys(column.categories))

    def intersected(self, other: Region) -> Region:
        """Return the intersection of two regions."""
        interval = self.interval.intersect(other.interval)
        labels = self.labels if other.labels is None else other.labels
        if self.labels is not None and other.labels is not None:
            labels = {label: None for label in self.labels if label in other.labels}
        label_bits = self.label_bits & other.label_bits
        values = self.values and other.values and label_bits != 0 and labels != {} and not interval.empty
        return Region(values, self.null and other.null, interval, labels, label_bits)

    @classmethod
    def hull(cls, regions: Sequence[Region]) -> Region:
        """Return the hull of several regions."""
        null = any(region.null for region in regions)
        with_values = [region for region in regions if region.values]
        if not with_values:
            return replace(regions[0], null=null)
        first, *rest = (region.interval for region in with_values)
        mentioned = [region.labels for region in with_values if region.labels is not None]
        labels = (
            _keys(itertools.chain.from_iterable(mentioned)) if len(mentioned) == len(with_values) else None
        )
        label_bits = functools.reduce(operator.or_, (region.label_bits for region in with_values))
        return cls(True, null, first.hull(*rest), labels, label_bits)

    def clipped(self, limits: Interval) -> Region:
        """Return the region after the values are clipped to the limits."""
        labels = None if self.labels is None else _keys(map(limits.clip, self.labels))
        return replace(self, interval=self.interval.map(limits.clip), labels=labels)

    def filled(self, value: Any) -> Region:
        """Return the region after nulls are replaced by the value."""
        labels = None if self.labels is None else {**self.labels, value: None}
        # labels that are no numbers have no ends
        interval = self.interval if self.interval == LINE else self.interval.hull(Interval(value, value))
        return Region(True, False, interval, labels)


def _keys(labels: Iterable[Any] | None) -> LabelKeys | None:
    return None if labels is None else dict.fromkeys(labels)


def bits(positions: Iterable[int]) -> int:
    """Return a set of positions as a whole number with these bits set.

    >>> bits([0, 2]) | bits([1])
    7
    """
    listed = list(positions)
    octets = bytearray(max(listed, default=0) // 8 + 1)
    for position in listed:
        octets[position // 8] |= 1 << position % 8
    return int.from_bytes(octets, "little")


def declared_in(column: Column, region: Region) -> Column:
    """The declaration of a column whose cells are in the region.

    >>> age = Column("age", "integer", lower=0, upper=9, bins=(0, 5, 9))
    >>> declared_in(age, Region(True, False, Interval(3, 9))).bins
    (3.0, 5.0, 9.0)
    """
    if not region.values:  # nulls only, which a column has no words for
        return column
    categories = None if region.labels is None else tuple(region.labels)
    column = replace(column, private_labels=column.private_labels and categories is None)
    if column.kind in ("boolean", "category"):
        return replace(column, nullable=region.null, lower=None, upper=None, categories=categories)
    interval = region.interval.whole() if column.kind == "integer" else region.interval
    lower, upper = interval.bounds
    bins = _bins(column, interval)
    return replace(column, nullable=region.null, lower=lower, upper=upper, categories=categories, bins=bins)


def _bins(column: Column, interval: Interval) -> tuple[float, ...] | None:
    """The bins of a column cut off at new bounds, or reaching them; None if its one value is in none."""
    bins, (lower, upper), declared = column.bins, interval, column.interval
    if bins is None or interval == declared:
        return bins
    first, last = bins[0], bins[-1]
    if lower != declared.lower:
        first = float(lower) if lower > declared.lower else min(first, float(lower))
    if upper != declared.upper:
        last = float(upper) if upper < declared.upper else max(last, float(upper))
    if not bins[0] <= last or not first <= bins[-1]:
        return None
    if first == last:  # one value; its bin stays whole, as bins have a width
        index = min(int(np.searchsorted(bins, first, side="right")), len(bins) - 1)
        return bins[index - 1 : index + 1]
    return (first, *(edge for edge in bins if first < edge < last), last)
