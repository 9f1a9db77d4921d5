"""Intervals of numbers: intersected, joined and clipped, and the arithmetic of their ends.

Declared bounds, the checks of schemas, conditions, steps and bounds of statistics are intervals, and nothing
else intersects or joins their ends.

Adding, subtracting, multiplying and dividing doubles rounds the exact result, and rounding keeps order. So
the ends are what the same operation, in doubles, gives at the corners of the operands: no result lies beyond,
and each end is attained. A denominator that may be zero gives the whole line.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

EXACT_QUOTIENT = 2**51
"""Floors of quotients up to here come out exactly; those beyond, a few units in the last place off."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers between two ends, which are infinite where there is no bound.

    The ends belong to the interval unless they are open. They may be integers, floats or Fractions, and are
    never converted.

    >>> Interval(0, 9).intersect(Interval(5, 12)), Interval(0, 9).hull(Interval(5, 12))
    (Interval(5, 9), Interval(0, 12))
    """

    lower: Any = -math.inf
    upper: Any = math.inf
    open_lower: bool = False
    open_upper: bool = False

    @classmethod
    def between(cls, lower: Any, upper: Any) -> Interval:
        """Return the interval of two bounds, of which None is no bound."""
        return cls(-math.inf if lower is None else lower, math.inf if upper is None else upper)

    @classmethod
    def around(cls, numbers: Iterable[Any]) -> Interval:
        """Return the least interval that holds all of these numbers.

        >>> Interval.around([3, 1, 2])
        Interval(1, 3)
        """
        listed = list(numbers)
        return cls(min(listed), max(listed))

    def __iter__(self) -> Iterator[Any]:
        """The lower and the upper end."""
        return iter((self.lower, self.upper))

    def __contains__(self, number: Any) -> bool:
        above = self.lower < number or (self.lower == number and not self.open_lower)
        return bool(above and (number < self.upper or (number == self.upper and not self.open_upper)))

    def __repr__(self) -> str:
        left, right = "]" if self.open_lower else "", "[" if self.open_upper else ""
        return f"Interval({left}{self.lower}, {self.upper}{right})"

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The lower and the upper end, None for an infinite one."""
        lower, upper = (None if abs(end) == math.inf else end for end in self)
        return lower, upper

    @property
    def empty(self) -> bool:
        """Whether no number is between the ends."""
        meet = self.lower == self.upper and (self.open_lower or self.open_upper)
        return bool(self.lower > self.upper or meet)

    def within(self, other: Interval) -> bool:
        """Return whether the other interval holds all of this one."""
        return self.intersect(other) == self

    def intersect(self, *others: Interval) -> Interval:
        """Return the intersection; of two equal ends an open one is narrower."""
        lower, open_lower = max((each.lower, each.open_lower) for each in (self, *others))
        upper, closed = min((each.upper, not each.open_upper) for each in (self, *others))
        return Interval(lower, upper, open_lower, not closed)

    def hull(self, *others: Interval) -> Interval:
        """Return the least interval that holds this one and the others."""
        lower, open_lower = min((each.lower, each.open_lower) for each in (self, *others))
        upper, closed = max((each.upper, not each.open_upper) for each in (self, *others))
        return Interval(lower, upper, open_lower, not closed)

    def clip(self, number: Any) -> Any:
        """Return the number moved to the nearest end, if it is outside.

        >>> Interval(0, 9).clip(12)
        9
        """
        return min(max(number, self.lower), self.upper)

    def map(self, increasing: Callable[[Any], Any]) -> Interval:
        """Return the interval with an increasing function of each end."""
        return replace(self, lower=increasing(self.lower), upper=increasing(self.upper))

    def closed(self) -> Interval:
        """Return the interval with both of its ends in it."""
        return Interval(self.lower, self.upper)

    def whole(self) -> Interval:
        """Return the interval from the first to the last whole number within.

        >>> Interval(0.5, 3, open_upper=True).whole()
        Interval(1, 2)
        """
        # a floor of an integer of NumPy is rounded to doubles
        lower, upper = (int(end) if isinstance(end, numbers.Integral) else end for end in self)
        if abs(lower) != math.inf:
            lower = math.floor(lower) + 1 if self.open_lower else math.ceil(lower)
        if abs(upper) != math.inf:
            upper = math.ceil(upper) - 1 if self.open_upper else math.floor(upper)
        return Interval(lower, upper)


LINE = Interval()
INT64 = Interval(-(2**63), 2**63 - 1)
"""The whole numbers of 64 bits."""


def negate(interval: Interval) -> Interval:
    """``-x``.

    >>> negate(Interval(-1, 2))
    Interval(-2, 1)
    """
    low, high = interval
    return Interval(-high, -low)


def absolute(interval: Interval) -> Interval:
    """``|x|``.

    >>> absolute(Interval(-3, 2))
    Interval(0, 3)
    """
    low, high = interval
    if low >= 0:
        return interval
    return negate(interval) if high <= 0 else Interval(type(low)(0), max(-low, high))


def add(left: Interval, right: Interval) -> Interval:
    """``x + y``.

    >>> add(Interval(1, 2), Interval(10, 20))
    Interval(11, 22)
    """
    low, high = left.lower + right.lower, left.upper + right.upper
    # infinite ends of opposite sign have no sum
    return Interval(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


def subtract(left: Interval, right: Interval) -> Interval:
    """``x - y``.

    >>> subtract(Interval(1, 2), Interval(10, 20))
    Interval(-19, -8)
    """
    return add(left, negate(right))


def multiply(left: Interval, right: Interval) -> Interval:
    """``x * y``.

    >>> multiply(Interval(-1, 2), Interval(3, 4))
    Interval(-4, 8)
    """
    return Interval.around(_times(x, y) for x in left for y in right)


def _times(x: float, y: float) -> float:
    # an infinite end is the limit of finite numbers, of which the product with zero is zero
    return x * y if x and y else type(x)(0)


def divide(left: Interval, right: Interval) -> Interval:
    """``x / y`` in doubles.

    >>> divide(Interval(1.0, 2.0), Interval(4.0, 8.0)), divide(Interval(1.0, 2.0), Interval(0.0, 1.0))
    (Interval(0.125, 0.5), Interval(-inf, inf))
    """
    if 0 in right:
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
    return Interval.around(ends)


def floor_divide(left: Interval, right: Interval) -> Interval:
    """``x // y`` in doubles.

    >>> floor_divide(Interval(-1.0, 7.0), Interval(2.0, 2.0))
    Interval(-1.0, 3.0)
    """
    if 0 in right or not all(map(math.isfinite, (*left, *right))):
        return LINE
    low, high = Interval.around(math.floor(Fraction(x) / Fraction(y)) for x in left for y in right)
    return Interval(_rounded_outwards(low, -math.inf), _rounded_outwards(high, math.inf))


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


def floor_divide_whole(left: Interval, right: Interval) -> Interval:
    """``x // y`` of whole numbers, y never zero.

    >>> floor_divide_whole(Interval(-7, 7), Interval(2, 3))
    Interval(-4, 3)
    """
    return Interval.around(x // y for x in left for y in right)


def modulo(left: Interval, right: Interval) -> Interval:
    """``x % y`` in doubles: of the sign of y, and no larger in size.

    >>> modulo(Interval(-5.0, 9.0), Interval(4.0, 4.0)), modulo(Interval(1.0, 2.0), Interval(4.0, 4.0))
    (Interval(0.0, 4.0), Interval(1.0, 2.0))
    """
    (low, high), (least, most) = left, right
    if least > 0 and low >= 0:
        return left if high < least else Interval(0.0, min(most, high))
    if most < 0 and high <= 0:
        return left if low > most else Interval(max(least, low), 0.0)
    return Interval(min(least, 0.0), max(most, 0.0))


def modulo_whole(left: Interval, right: Interval) -> Interval:
    """``x % y`` of whole numbers, y never zero.

    >>> modulo_whole(Interval(-5, 9), Interval(4, 4)), modulo_whole(Interval(1, 2), Interval(4, 9))
    (Interval(0, 3), Interval(1, 2))
    """
    (low, high), (least, most) = left, right
    if least > 0:
        if low >= 0:
            return left if high < least else Interval(0, min(most - 1, high))
        return Interval(0, most - 1)
    if high <= 0:
        return left if low > most else Interval(max(least + 1, low), 0)
    return Interval(least + 1, 0)


def power(interval: Interval, exponent: int, raised: Callable[[float, int], float]) -> Interval:
    """``x ** exponent`` for a whole exponent, as ``raised`` computes it for numbers that are not negative.

    >>> power(Interval(-3, 2), 2, pow), power(Interval(-3, 2), 3, pow)
    (Interval(0, 9), Interval(-27, 8))
    """
    if exponent % 2 == 0:
        low, high = absolute(interval)
        return Interval(raised(low, exponent), raised(high, exponent))
    return Interval.around(-raised(-x, exponent) if x < 0 else raised(x, exponent) for x in interval)
