"""Numbers as a person reads them, each with as many digits as its error leaves."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import pandas as pd

from pdprivacy.markup import printable

__all__ = ["label", "paired", "plain", "short"]

LARGE = 1e15
MOST_DIGITS = 12
DIGITS = 2
"""Of an error."""

EXACT = Context(prec=400)


def paired(value: float, half: float) -> tuple[str, str]:
    """A number and half the width of its interval, rounded so that what is shown holds the interval.

    The error has two digits, or those before the point, and is rounded up, by what rounding moves the number,
    too. A whole number stays whole. Without a known error: as `plain`, and no text.

    >>> paired(38.950947, 0.083526), paired(112, 6.0), paired(0.07, math.nan)
    (('38.951', '0.084'), ('112', '6'), ('0.07', ''))
    """
    if not math.isfinite(value) or not math.isfinite(half):
        return plain(value), ""
    whole = isinstance(value, int)
    exact = str(value) if whole else repr(float(value) + 0.0)  # no negative zero
    if half == 0:
        return exact, "0"
    number, error = Decimal(exact), Decimal(repr(float(half)))
    places = DIGITS - 1 - error.adjusted()
    if max(abs(value), half) >= LARGE or places > MOST_DIGITS:
        rounded = Context(prec=DIGITS, rounding=ROUND_CEILING).plus(error)
        return exact, f"{rounded:.{DIGITS - 1}e}"
    if whole and error == error.to_integral_value():
        places = 0
    step = Decimal(1).scaleb(-max(places, 0))
    shown = number if whole else number.quantize(step, ROUND_HALF_EVEN, EXACT)
    rounded = EXACT.add(error, abs(EXACT.subtract(number, shown))).quantize(step, ROUND_CEILING, EXACT)
    return f"{shown if shown else abs(shown):f}", f"{rounded:f}"


def plain(value: object) -> str:
    """A number, to six places behind the point where that is enough, or any other cell.

    >>> plain(0.25), plain(34.0), plain(3), plain(1.5e-9), plain(True), plain(None)
    ('0.25', '34.0', '3', '1.5e-09', 'True', 'NaN')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return label(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value}"
    if value and not 1e-4 <= abs(value) < LARGE:
        return repr(float(value))
    text = f"{value + 0.0:.6f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def label(value: Any) -> str:
    """A label of an index, or a cell that is no number; a null as pandas shows it."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return "NaN"
    return printable(value)


def short(number: float) -> str:
    """A number of the metadata, which has few digits as a rule.

    >>> short(0.1), short(2.0)
    ('0.1', '2')
    """
    return f"{float(number):.12g}"
