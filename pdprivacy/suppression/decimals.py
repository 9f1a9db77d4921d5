"""Exponentials and logarithms of rational numbers to many digits, then moved to the safe side.

The decimal arithmetic of Python rounds exponentials and logarithms correctly. Formulas are computed with
so many digits that ``KEPT`` of them are right, and the result is moved by more than what may be wrong.
"""

from __future__ import annotations

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
)
from fractions import Fraction

from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import Rational, positive, rational

__all__ = [
    "at_least",
    "at_most",
    "check_epsilon",
    "check_rate",
    "digits",
    "of",
    "precise",
]

KEPT = 50
"""Digits of a result that are right."""

SMALLEST = Fraction(1, 10**300)
LARGEST = Fraction(10**300)

ABOVE = Decimal(f"1.{'0' * 34}1")
BELOW = Decimal(f"0.{'9' * 20}")
"""Further than what is above, so that what was moved down and is computed back stays below."""


def precise(count: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """A context of so many digits, whatever the context of the caller, in which no exponent is too small.

    >>> precise(3).divide(1, 3)
    Decimal('0.333')
    """
    traps = [InvalidOperation, DivisionByZero, Overflow]
    return Context(prec=count, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps)


def digits(*small: Fraction) -> Context:
    """A context in which a result that is as small as the product of these numbers has its digits."""
    bits = (max(0, one.denominator.bit_length() - one.numerator.bit_length() + 1) for one in small)
    return precise(KEPT + 20 + sum(bits) // 3)


def of(number: Fraction, context: Context) -> Decimal:
    """The number to the digits of the context."""
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def at_least(number: Decimal) -> Fraction:
    """Above a positive number of which ``KEPT`` digits are right, by at most 1e-28 of it.

    >>> at_least(Decimal(1)) > 1
    True
    """
    return Fraction(precise(30, ROUND_CEILING).multiply(number, ABOVE))


def at_most(number: Decimal) -> Fraction:
    """Below a positive number of which ``KEPT`` digits are right, by 1e-20 of it.

    >>> at_most(Decimal(1)) < 1
    True
    """
    return Fraction(precise(30, ROUND_FLOOR).multiply(number, BELOW))


def check_epsilon(epsilon: Rational, name: str = "epsilon") -> Fraction:
    """An epsilon that can be computed with; raises ParameterError else."""
    number = positive(epsilon, name)
    if not SMALLEST <= number <= LARGEST:
        raise ParameterError(f"{name!r} must be in [1e-300, 1e300] (got {got(epsilon)}).")
    return number


def check_rate(rate: Rational, name: str = "rate") -> Fraction:
    """A sampling rate in (0, 1]; raises ParameterError else."""
    number = rational(rate, name)
    if not 0 < number <= 1:
        raise ParameterError(
            f"{name!r} must be in (0, 1] (got {got(rate)}).", f"{name}='1/3', or {name}=0.1."
        )
    if number < SMALLEST:
        raise ParameterError(f"{name!r} must be at least 1e-300.")
    return number
