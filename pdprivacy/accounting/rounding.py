"""Roots, logarithms and exponentials of rational numbers, rounded to a stated side.

The decimal arithmetic of Python rounds roots, logarithms and exponentials correctly, to the nearest
of ``DIGITS`` digits, so that the neighbour on one side is a bound. A float is a bound both as the
binary number it is and as the shortest decimal that it prints, which is what a loss reads it as.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

__all__ = ["decimal_up", "exp_up", "float_down", "float_up", "log_up", "root_down", "root_up"]

DIGITS = 50

UP = Context(
    prec=DIGITS,
    rounding=ROUND_CEILING,
    Emin=-2000,
    Emax=2000,
    traps=[InvalidOperation, DivisionByZero, Overflow],
)
DOWN = UP.copy()
DOWN.rounding = ROUND_FLOOR


def decimal_up(number: Fraction, context: Context = UP) -> Decimal:
    """``number`` as a decimal of the context's digits, not below it (in a context that rounds up)."""
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def log_up(number: Fraction) -> Fraction:
    """At least the natural logarithm of a positive number."""
    return Fraction(UP.next_plus(UP.ln(decimal_up(number))))


def exp_up(number: Fraction) -> Fraction:
    """At least the exponential of a number below 4000."""
    if number < -4000:  # less than the smallest float
        return Fraction(1, 10**400)
    return Fraction(UP.next_plus(UP.exp(decimal_up(number))))


def root_up(number: Fraction) -> Fraction:
    """At least the square root."""
    return Fraction(UP.next_plus(UP.sqrt(decimal_up(number))))


def root_down(number: Fraction) -> Fraction:
    """At most the square root, and not negative."""
    return max(Fraction(0), Fraction(DOWN.next_minus(DOWN.sqrt(decimal_up(number, DOWN)))))


def float_up(number: Fraction) -> float:
    """The next float that is not below ``number``, as it is and as it prints; infinite past all floats.

    >>> float_up(Fraction(1, 10)), float_up(Fraction(1, 3))
    (0.1, 0.33333333333333337)
    """
    try:
        near = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.nextafter(math.inf, 0)
    while math.isfinite(near) and min(_printed(near), _stored(near, number)) < number:
        near = math.nextafter(near, math.inf)
    return near


def float_down(number: Fraction) -> float:
    """The next float that is not above ``number``, as it is and as it prints.

    >>> float_down(Fraction(1, 10)), float_down(Fraction(1, 3))
    (0.1, 0.3333333333333333)
    """
    return -float_up(-number)


def _printed(near: float) -> Fraction:
    return Fraction(repr(near))


def _stored(near: float, number: Fraction) -> Fraction:
    """The binary number, or what it prints where this is exactly meant."""
    return number if _printed(near) == number else Fraction(near)
