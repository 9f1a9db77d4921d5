"""Interval arithmetic of results, and regions: the values that a column may hold.

Adding, subtracting, multiplying and dividing doubles rounds the exact result, and rounding keeps order. So
the ends are what the same operation, in doubles, gives at the corners of the operands: no result lies beyond,
and each end is attained. A denominator that may be zero gives the whole line.

Regions are intersected, joined, clipped and filled here and nowhere else.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.domain import Column

Range: TypeAlias = tuple[float, float] | tuple[int, int]
LabelKeys: TypeAlias = Mapping[Any, None]  # as keys in their order, to be looked up
End: TypeAlias = float | int | None


LINE = (-math.inf, math.inf)

EXACT_QUOTIENT = 2**51
"""Floors of quotients up to here come out exactly; those beyond, a few units in the last place off."""


def holds_zero(interval: Range) -> bool:
    """Return whether zero lies between the ends.

    >>> holds_zero((-1, 2)), holds_zero((1, 2))
    (True, False)
    """
    return interval[0] <= 0 <= interval[1]


def negate(interval: Range) -> Range:
    """``-x``.

    >>> negate((-1, 2))
    (-2, 1)
    """
    return -interval[1], -interval[0]


def absolute(interval: Range) -> Range:
    """``|x|``.

    >>> absolute((-3, 2))
    (0, 3)
    """
    low, high = interval
    if low >= 0:
        return interval
    return negate(interval) if high <= 0 else (type(low)(0), max(-low, high))


def add(left: Range, right: Range) -> Range:
    """``x + y``.

    >>> add((1, 2), (10, 20))
    (11, 22)
    """
    low, high = left[0] + right[0], left[1] + right[1]
    # infinite ends of opposite sign have no sum
    return -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high


def subtract(left: Range, right: Range) -> Range:
    """``x - y``.

    >>> subtract((1, 2), (10, 20))
    (-19, -8)
    """
    return add(left, negate(right))


def multiply(left: Range, right: Range) -> Range:
    """``x * y``.

    >>> multiply((-1, 2), (3, 4))
    (-4, 8)
    """
    return _hull(_times(x, y) for x in left for y in right)


def _times(x: float, y: float) -> float:
    # an infinite end is the limit of finite numbers, of which the product with zero is zero
    return x * y if x and y else type(x)(0)


def divide(left: Range, right: Range) -> Range:
    """``x / y`` in doubles.

    >>> divide((1.0, 2.0), (4.0, 8.0)), divide((1.0, 2.0), (0.0, 1.0))
    ((0.125, 0.5), (-inf, inf))
    """
    if holds_zero(right):
        return LINE
    ends = []
    for x in left:
        for y in right:
            if math.isinf(y):
                ends.append(0.0)
                if math.isinf(x):
                    ends.append(math.copysign(math.inf, x) * math.copysign(1.0, y))
            else:
                ends.append(x / y)
    return _hull(ends)


def floor_divide(left: Range, right: Range) -> Range:
    """``x // y`` in doubles.

    >>> floor_divide((-1.0, 7.0), (2.0, 2.0))
    (-1.0, 3.0)
    """
    if holds_zero(right) or not all(map(math.isfinite, (*left, *right))):
        return LINE
    low, high = _hull(math.floor(Fraction(x) / Fraction(y)) for x in left for y in right)
    return _rounded_outwards(low, -math.inf), _rounded_outwards(high, math.inf)


def _rounded_outwards(quotient: float, side: float) -> float:
    if abs(quotient) < EXACT_QUOTIENT:
        return float(quotient)
    try:
        double = float(quotient)
    except OverflowError:
        double = sys.float_info.max if quotient > 0 else -sys.float_info.max
    for _ in range(4):
        double = math.nextafter(double, side)
    return double


def floor_divide_whole(left: Range, right: Range) -> Range:
    """``x // y`` of whole numbers, y never zero.

    >>> floor_divide_whole((-7, 7), (2, 3))
    (-4, 3)
    """
    return _hull(x // y for x in left for y in right)


def modulo(left: Range, right: Range) -> Range:
    """``x % y`` in doubles: of the sign of y, and no larger in size.

    >>> modulo((-5.0, 9.0), (4.0, 4.0)), modulo((1.0, 2.0), (4.0, 4.0))
    ((0.0, 4.0), (1.0, 2.0))
    """
    (low, high), (least, most) = left, right
    if least > 0 and low >= 0:
        return (low, high) if high < least else (0.0, min(most, high))
    if most < 0 and high <= 0:
        return (low, high) if low > most else (max(least, low), 0.0)
    return min(least, 0.0), max(most, 0.0)


def modulo_whole(left: Range, right: Range) -> Range:
    """``x % y`` of whole numbers, y never zero.

    >>> modulo_whole((-5, 9), (4, 4)), modulo_whole((1, 2), (4, 9))
    ((0, 3), (1, 2))
    """
    (low, high), (least, most) = left, right
    if least > 0:
        if low >= 0:
            return (low, high) if high < least else (0, min(most - 1, high))
        return 0, most - 1
    if high <= 0:
        return (low, high) if low > most else (max(least + 1, low), 0)
    return least + 1, 0


def power(interval: Range, exponent: int, raised: Callable[[float, int], float]) -> Range:
    """``x ** exponent`` for a whole exponent, as ``raised`` computes it for numbers that are not negative.

    >>> power((-3, 2), 2, pow), power((-3, 2), 3, pow)
    ((0, 9), (-27, 8))
    """
    if exponent % 2 == 0:
        low, high = absolute(interval)
        return raised(low, exponent), raised(high, exponent)
    return _hull(-raised(-x, exponent) if x < 0 else raised(x, exponent) for x in interval)


def _hull(ends: Iterable[float]) -> Range:
    numbers = list(ends)
    return min(numbers), max(numbers)


@dataclass(frozen=True, slots=True)
class Region:
    """The values that a column may hold: between the ends, among the labels, and null or not.

    ``labels``: the labels themselves, of a computed column, or None. ``label_bits``: labels that the column
    declares, by their positions as `bits`, which conditions on many labels combine fast; -1 for all.
    """

    values: bool
    null: bool
    lower: End = None
    upper: End = None
    labels: LabelKeys | None = None
    label_bits: int = -1

    @classmethod
    def of(cls, column: Column) -> Region:
        """The region that is declared."""
        return cls(True, column.nullable, column.lower, column.upper, _keys(column.categories))

    def intersected(self, other: Region) -> Region:
        """Return the intersection of two regions."""
        lower = max((end for end in (self.lower, other.lower) if end is not None), default=None)
        upper = min((end for end in (self.upper, other.upper) if end is not None), default=None)
        labels = self.labels if other.labels is None else other.labels
        if self.labels is not None and other.labels is not None:
            labels = {label: None for label in self.labels if label in other.labels}
        label_bits = self.label_bits & other.label_bits
        values = self.values and other.values and label_bits != 0
        if (lower is not None and upper is not None and lower > upper) or labels == {}:
            values = False
        return Region(values, self.null and other.null, lower, upper, labels, label_bits)

    @classmethod
    def hull(cls, regions: Sequence[Region]) -> Region:
        """Return the hull of several regions."""
        null = any(region.null for region in regions)
        with_values = [region for region in regions if region.values]
        if not with_values:
            return replace(regions[0], null=null)
        lowers, uppers = [region.lower for region in with_values], [region.upper for region in with_values]
        lower = None if None in lowers else min(end for end in lowers if end is not None)
        upper = None if None in uppers else max(end for end in uppers if end is not None)
        mentioned = [region.labels for region in with_values if region.labels is not None]
        labels = (
            _keys(itertools.chain.from_iterable(mentioned)) if len(mentioned) == len(with_values) else None
        )
        label_bits = functools.reduce(operator.or_, (region.label_bits for region in with_values))
        return cls(True, null, lower, upper, labels, label_bits)

    def clipped(self, low: End, high: End) -> Region:
        """Return the region after the values are clipped to the ends."""

        def moved(value: Any) -> Any:
            if low is not None and value < low:
                return low
            return high if high is not None and value > high else value

        lower = low if self.lower is None else moved(self.lower)
        upper = high if self.upper is None else moved(self.upper)
        labels = None if self.labels is None else _keys(map(moved, self.labels))
        return replace(self, lower=lower, upper=upper, labels=labels)

    def filled(self, value: Any) -> Region:
        """Return the region after nulls are replaced by the value."""
        lower = None if self.lower is None else min(self.lower, value)
        upper = None if self.upper is None else max(self.upper, value)
        labels = None if self.labels is None else {**self.labels, value: None}
        return Region(True, False, lower, upper, labels)


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
    if first == last:  # one value; its bin stays whole, as bins have a width
        index = min(int(np.searchsorted(bins, first, side="right")), len(bins) - 1)
        return bins[index - 1 : index + 1]
    return (first, *(edge for edge in bins if first < edge < last), last)
