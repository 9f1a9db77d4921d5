"""Exact arithmetic: decimals of many digits, directed rounding and bisection.

The decimal arithmetic of Python rounds roots, logarithms and exponentials correctly, so that the next
decimal above a result is an upper bound of the exact value, and the next one below it is a lower bound. A
float that is returned as a bound satisfies it twice: as a binary number, and as the shortest decimal that it
prints, because a loss reads a float as that decimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from typing import Any, TypeVar

T = TypeVar("T", float, Decimal)

EXACT = 2**53
"""The size up to which doubles hold every whole number."""

LARGEST_EXPONENT = 2000
"""The largest exponent of ten in `UP` and `DOWN`; larger exponentials are never computed."""

KEPT = 50
"""The number of correct digits that `moved_up` and `moved_down` expect of a decimal."""

ABOVE = Decimal(f"1.{'0' * 34}1")
BELOW = Decimal(f"0.{'9' * 20}")
"""The factor is further from 1 than `ABOVE`, so that a number that is moved down and then up stays below."""

SLIP = 3
"""The largest error of `exponential`, in its last place."""


def decimals(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """Return a context of this many digits whose exponents have no limits.

    >>> decimals(3).divide(1, 3)
    Decimal('0.333')
    """
    traps = [InvalidOperation, DivisionByZero, Overflow]
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps)


def _limited(rounding: str) -> Context:
    context = decimals(KEPT, rounding)
    context.Emin, context.Emax = -LARGEST_EXPONENT, LARGEST_EXPONENT
    return context


UP, DOWN = _limited(ROUND_CEILING), _limited(ROUND_FLOOR)


def decimals_of_product(*factors: Fraction) -> Context:
    """Return a context for numbers as small as the product of ``factors``, to ``KEPT`` correct digits."""
    bits = (max(0, factor.denominator.bit_length() - factor.numerator.bit_length() + 1) for factor in factors)
    return decimals(KEPT + 20 + sum(bits) // 3)


def decimal(number: Fraction, context: Context) -> Decimal:
    """Return ``number`` with the digits and the rounding of ``context``."""
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


# Rounding to a stated side.


def rounded_up(number: Fraction, digits: int) -> Fraction:
    """Round a number up to this many significant digits.

    >>> rounded_up(Fraction(1, 3), 4)
    Fraction(1667, 5000)
    """
    return Fraction(decimal(number, decimals(digits, ROUND_CEILING)))


def rounded_down(number: Fraction) -> Fraction:
    """Round a number down to the digits of `DOWN`."""
    return Fraction(decimal(number, DOWN))


def moved_up(number: Decimal) -> Fraction:
    """Return a number above a positive one of ``KEPT`` correct digits, by at most 1e-28 of it.

    >>> moved_up(Decimal(1)) > 1
    True
    """
    return Fraction(decimals(30, ROUND_CEILING).multiply(number, ABOVE))


def moved_down(number: Decimal) -> Fraction:
    """Return a number below a positive one of ``KEPT`` correct digits, by 1e-20 of it.

    >>> moved_down(Decimal(1)) < 1
    True
    """
    return Fraction(decimals(30, ROUND_FLOOR).multiply(number, BELOW))


def float_up(number: Fraction) -> float:
    """Return the float that prints as ``number``, or the next one above it; infinite past all floats.

    A float is read as the decimal that it prints: 0.1 is one tenth.

    >>> float_up(Fraction(1, 10)), float_up(Fraction(1, 3))
    (0.1, 0.33333333333333337)
    """
    try:
        near = float(number)
    except OverflowError:
        return math.inf if number > 0 else next_up(-math.inf)
    while math.isfinite(near) and Fraction(repr(near)) != number:
        if min(Fraction(repr(near)), Fraction(near)) >= number:
            break
        near = next_up(near)
    return near


def float_down(number: Fraction) -> float:
    """Return the float that prints as ``number``, or the next one below it.

    >>> float_down(Fraction(1, 10)), float_down(Fraction(1, 3))
    (0.1, 0.3333333333333333)
    """
    return -float_up(-number)


def near(number: Fraction) -> float:
    """Return the nearest double; infinity beyond the largest.

    >>> near(Fraction(1, 10)), near(Fraction(10**400))
    (0.1, inf)
    """
    try:
        return float(number)
    except OverflowError:
        return math.inf


# Functions.


def next_up(number: float) -> float:
    """Return the next float above.

    >>> next_up(1.0) - 1.0 == 2.0**-52
    True
    """
    return math.nextafter(number, math.inf)


def next_down(number: float) -> float:
    """Return the next float below.

    >>> 1.0 - next_down(1.0) == 2.0**-53
    True
    """
    return -next_up(-number)


def log_up(number: Fraction) -> Fraction:
    """Return an upper bound of the natural logarithm of a positive number."""
    return Fraction(UP.next_plus(UP.ln(decimal(number, UP))))


def exp_up(number: Fraction) -> Fraction:
    """Return an upper bound of the exponential of a number below 4000."""
    if number < -4000:  # less than the smallest float
        return Fraction(1, 10**400)
    return Fraction(UP.next_plus(UP.exp(decimal(number, UP))))


def root_up(number: Fraction) -> Fraction:
    """Return an upper bound of the square root."""
    return Fraction(UP.next_plus(UP.sqrt(decimal(number, UP))))


def root_down(number: Fraction) -> Fraction:
    """Return a lower bound of the square root, not negative."""
    return max(Fraction(0), Fraction(DOWN.next_minus(DOWN.sqrt(decimal(number, DOWN)))))


def root_above(square: Fraction) -> Fraction:
    """Return an upper bound of the square root, of 60 bits."""
    shift = max(0, 120 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    scaled = -((-square.numerator << shift) // square.denominator)
    return Fraction(math.isqrt(scaled) + 1, 1 << (shift // 2))


def power_down(number: Fraction, count: int) -> Fraction:
    """Return a lower bound of a whole power, not negative."""
    power = DOWN.power(decimal(number, DOWN), count)
    return max(Fraction(0), Fraction(DOWN.next_minus(DOWN.next_minus(power))))


def power_up(base: Fraction, exponent: Fraction) -> Fraction:
    """Return ``base ** exponent`` rounded up to 64 bits, by less than 2**-60 of itself.

    >>> power_up(Fraction(4), Fraction(3, 2)) > 8
    True
    """
    context = decimals(60)
    logarithm = context.ln(decimal(base, context))
    power = Fraction(context.exp(context.multiply(logarithm, decimal(exponent, context))))
    power *= 1 + Fraction(1, 2**100)
    step = Fraction(2) ** (power.numerator.bit_length() - power.denominator.bit_length() - 64)
    return math.ceil(power / step) * step


def power_below(size: Fraction) -> Fraction:
    """Return the largest power of two that is at most ``size``."""
    return power_of_two(exponent_below(size))


def exponent_below(size: Fraction) -> int:
    """Return the largest exponent of two whose power is at most ``size``.

    >>> exponent_below(Fraction(5)), exponent_below(Fraction(1, 5))
    (2, -3)
    """
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    below = size.numerator << max(0, -exponent) >= size.denominator << max(0, exponent)
    return exponent if below else exponent - 1


def power_of_two(exponent: int) -> Fraction:
    """Return two to a whole exponent.

    >>> power_of_two(3), power_of_two(-3)
    (Fraction(8, 1), Fraction(1, 8))
    """
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def exponential(x: Fraction, bits: int) -> int:
    """Return an integer e with e <= exp(-x)·2^bits <= e + SLIP, and no error at x = 0."""
    if x == 0:
        return 1 << bits
    if x > bits:
        return 0
    # Sixteen and more digits beyond the bits: Decimal.exp is correctly rounded, its argument nearly so.
    with localcontext(decimals(bits // 3 + 24)):
        value = (-Decimal(x.numerator) / Decimal(x.denominator)).exp() * Decimal(1 << bits)
        return max(0, int(value) - 1)


# Search.


def bisect(
    meets: Callable[[T], bool], low: T, high: T, tolerance: Any = 0, *, logarithmic: bool = False
) -> T:
    """Return the number in (low, high] from which on ``meets`` holds, from the side on which it does.

    ``tolerance``: how far the result may be off, as a share of it; 0: to all digits of a float.
    ``logarithmic``: for limits that are orders of magnitude apart, both positive.
    """
    while high - low > tolerance * high:
        middle: Any = math.exp((math.log(low) + math.log(high)) / 2) if logarithmic else (low + high) / 2
        if not low < middle < high:
            break
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


def smallest(meets: Callable[[float], bool]) -> float:
    """Return the smallest positive number that meets a monotone condition, from the side that meets it."""
    low, high = 0.0, 1.0
    while not meets(high):
        low, high = high, high * 2
        if math.isinf(high):
            raise OverflowError
    if low == 0.0:
        low = high / 2
        while meets(low):
            low, high = low / 2, low
            if not low:
                raise OverflowError
    return bisect(meets, low, high, 2.0**-44)
