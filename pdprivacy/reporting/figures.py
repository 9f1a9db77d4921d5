"""Numbers as a report writes them: costs rounded up, never down, released numbers as exact as their error."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

__all__ = ["cost", "decimals_of", "factor", "percent_up", "released", "width"]

DIGITS = 6
LARGE = Fraction(10**6)
SMALL = Fraction(1, 10**9)
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _decimal(number: Fraction, digits: int, rounding: str) -> Decimal:
    context = Context(prec=digits, rounding=rounding)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)


def _written(number: Decimal, size: Fraction) -> str:
    """Without an exponent where that is short."""
    if number == 0 or SMALL <= size < LARGE * 1000:
        return f"{number:f}"
    digits, _, power = f"{number:e}".partition("e")
    mantissa = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{mantissa} × 10{str(int(power)).translate(RAISED)}"


def cost(number: Fraction, digits: int = DIGITS) -> str:
    """A cost in so many digits, rounded up.

    >>> cost(Fraction(7, 10)), cost(Fraction(1, 3)), cost(Fraction(1, 10**6)), cost(Fraction(1, 10**12))
    ('0.7', '0.333334', '0.000001', '1 × 10⁻¹²')
    """
    if number < 0:  # what is left over where sums were rounded
        return "0"
    return _written(_decimal(number, digits, ROUND_CEILING), number)


def factor(epsilon: Fraction, times: int = 1) -> str | None:
    """E to the power of ``times`` epsilon in three digits, rounded up; None where it is beyond all sense.

    >>> factor(Fraction(7, 10)), factor(Fraction(7, 10), 2), factor(Fraction(27, 2)), factor(Fraction(1000))
    ('2.02', '4.06', '730,000', None)
    """
    power = times * epsilon
    if power > 20:
        return None
    grown = math.exp(math.nextafter(float(power), math.inf)) * (1 + 1e-15)
    return f"{_decimal(Fraction(grown), 3, ROUND_CEILING):,f}"


def percent_up(share: float) -> str:
    """A share of at most one as a percentage, rounded up; one that is below 1 is never written as such.

    >>> percent_up(0.66818), percent_up(1.0), percent_up(0.99999), percent_up(0.0)
    ('66.9 %', '100 %', 'nearly 100 %', '0 %')
    """
    if 0.999 < share < 1:
        return "nearly 100 %"
    rounded = math.ceil(share * 1000 - 1e-9) / 10
    return f"{rounded:g} %"


def decimals_of(half: float) -> int | None:
    """How many decimals a number with this half width is told with: two digits of it; None where unknown."""
    if not math.isfinite(half) or half <= 0:
        return None
    return min(max(1 - math.floor(math.log10(half)), 0), 12)


def width(half: float, places: int | None) -> str:
    """Half an interval, rounded up.

    >>> width(0.08353, 3), width(6.0, 0), width(float("nan"), None)
    ('0.084', '6', 'not known')
    """
    if not math.isfinite(half):
        return "not known"
    if places is None:
        return f"{half:,.6g}"
    step = Decimal(1).scaleb(-places)
    up = Decimal(repr(float(half))).quantize(step, rounding=ROUND_CEILING) if half < 1e15 else Decimal(half)
    return f"{up:,.{places}f}" if half < 1e15 else f"{half:.3g}"


def released(value: Any, places: int | None = None) -> str:
    """A released number, label or nothing, as a person reads it.

    >>> released(38.950947, 3), released(1939), released("yes"), released(None)
    ('38.951', '1,939', 'yes', 'none')
    """
    if value is None:
        return "none"
    if isinstance(value, bool) or type(value).__name__ == "bool_" or type(value).__name__ == "bool":
        return str(bool(value))
    if isinstance(value, Integral):
        return f"{int(value):,}"
    try:
        number = float(value) if not isinstance(value, str) else None
    except (TypeError, ValueError):
        return str(value)
    if number is None:
        return str(value)
    if math.isnan(number):
        return "none"
    if not math.isfinite(number) or abs(number) >= 1e15 or places is None:
        return f"{number:,.6g}"
    text = f"{number:,.{places}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text
