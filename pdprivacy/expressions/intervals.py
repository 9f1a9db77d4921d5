"""Where the results of arithmetic lie: the hull of the values that doubles, or whole numbers, can take.

Adding, subtracting, multiplying and dividing doubles rounds the exact result, and rounding keeps order. So
the ends are what the same operation, in doubles, gives at the corners of the operands: no result lies beyond,
and each end is attained. A denominator that may be zero gives the whole line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

__all__ = [
    "LINE",
    "Range",
    "absolute",
    "add",
    "divide",
    "floor_divide",
    "floor_divide_whole",
    "holds_zero",
    "modulo",
    "modulo_whole",
    "multiply",
    "negate",
    "power",
    "subtract",
]

Range: TypeAlias = tuple[float, float] | tuple[int, int]

LINE = (-math.inf, math.inf)

EXACT_QUOTIENT = 2**51
"""Floors of quotients up to here come out exactly; those beyond, a few units in the last place off."""


def holds_zero(one: Range) -> bool:
    """Whether zero lies between the ends.

    >>> holds_zero((-1, 2)), holds_zero((1, 2))
    (True, False)
    """
    return one[0] <= 0 <= one[1]


def negate(one: Range) -> Range:
    """``-x``.

    >>> negate((-1, 2))
    (-2, 1)
    """
    return -one[1], -one[0]


def absolute(one: Range) -> Range:
    """``|x|``.

    >>> absolute((-3, 2))
    (0, 3)
    """
    low, high = one
    if low >= 0:
        return one
    return negate(one) if high <= 0 else (type(low)(0), max(-low, high))


def add(one: Range, other: Range) -> Range:
    """``x + y``.

    >>> add((1, 2), (10, 20))
    (11, 22)
    """
    low, high = one[0] + other[0], one[1] + other[1]
    # infinite ends of opposite sign: there is no telling
    return -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high


def subtract(one: Range, other: Range) -> Range:
    """``x - y``.

    >>> subtract((1, 2), (10, 20))
    (-19, -8)
    """
    return add(one, negate(other))


def multiply(one: Range, other: Range) -> Range:
    """``x * y``.

    >>> multiply((-1, 2), (3, 4))
    (-4, 8)
    """
    return _hull(_times(x, y) for x in one for y in other)


def _times(x: float, y: float) -> float:
    # an infinite end is the limit of finite numbers, of which the product with zero is zero
    return x * y if x and y else type(x)(0)


def divide(one: Range, other: Range) -> Range:
    """``x / y`` in doubles.

    >>> divide((1.0, 2.0), (4.0, 8.0)), divide((1.0, 2.0), (0.0, 1.0))
    ((0.125, 0.5), (-inf, inf))
    """
    if holds_zero(other):
        return LINE
    ends = []
    for x in one:
        for y in other:
            if math.isinf(y):
                ends.append(0.0)
                if math.isinf(x):
                    ends.append(math.copysign(math.inf, x) * math.copysign(1.0, y))
            else:
                ends.append(x / y)
    return _hull(ends)


def floor_divide(one: Range, other: Range) -> Range:
    """``x // y`` in doubles.

    >>> floor_divide((-1.0, 7.0), (2.0, 2.0))
    (-1.0, 3.0)
    """
    if holds_zero(other) or not all(map(math.isfinite, (*one, *other))):
        return LINE
    low, high = _hull(math.floor(Fraction(x) / Fraction(y)) for x in one for y in other)
    return _beside(low, -math.inf), _beside(high, math.inf)


def _beside(quotient: float, side: float) -> float:
    if abs(quotient) < EXACT_QUOTIENT:
        return float(quotient)
    try:
        found = float(quotient)
    except OverflowError:
        found = sys.float_info.max if quotient > 0 else -sys.float_info.max
    for _ in range(4):
        found = math.nextafter(found, side)
    return found


def floor_divide_whole(one: Range, other: Range) -> Range:
    """``x // y`` of whole numbers, y never zero.

    >>> floor_divide_whole((-7, 7), (2, 3))
    (-4, 3)
    """
    return _hull(x // y for x in one for y in other)


def modulo(one: Range, other: Range) -> Range:
    """``x % y`` in doubles: of the sign of y, and no larger in size.

    >>> modulo((-5.0, 9.0), (4.0, 4.0)), modulo((1.0, 2.0), (4.0, 4.0))
    ((0.0, 4.0), (1.0, 2.0))
    """
    (low, high), (least, most) = one, other
    if least > 0 and low >= 0:
        return (low, high) if high < least else (0.0, min(most, high))
    if most < 0 and high <= 0:
        return (low, high) if low > most else (max(least, low), 0.0)
    return min(least, 0.0), max(most, 0.0)


def modulo_whole(one: Range, other: Range) -> Range:
    """``x % y`` of whole numbers, y never zero.

    >>> modulo_whole((-5, 9), (4, 4)), modulo_whole((1, 2), (4, 9))
    ((0, 3), (1, 2))
    """
    (low, high), (least, most) = one, other
    if least > 0:
        if low >= 0:
            return (low, high) if high < least else (0, min(most - 1, high))
        return 0, most - 1
    if high <= 0:
        return (low, high) if low > most else (max(least + 1, low), 0)
    return least + 1, 0


def power(one: Range, exponent: int, raised: Callable[[float, int], float]) -> Range:
    """``x ** exponent`` for a whole exponent, as ``raised`` computes it for numbers that are not negative.

    >>> power((-3, 2), 2, pow), power((-3, 2), 3, pow)
    ((0, 9), (-27, 8))
    """
    if exponent % 2 == 0:
        low, high = absolute(one)
        return raised(low, exponent), raised(high, exponent)
    return _hull(-raised(-x, exponent) if x < 0 else raised(x, exponent) for x in one)


def _hull(ends: Iterable[float]) -> Range:
    found = list(ends)
    return min(found), max(found)
