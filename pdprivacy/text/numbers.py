"""Numbers and labels as people read them, in prompts, notebooks, plots, tables and reports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.exact import EXACT, decimal, decimals, exp_up
from pdprivacy.types import Floats

LARGE = 1e15
MOST_DIGITS = 12
DIGITS = 2
"""Significant digits of an error."""

WIDE = decimals(400)

COST_DIGITS = 6
"""Significant digits of a privacy loss."""

MOST_POWER = 20
"""The largest power of e that is written as a number."""

MOST_TEXT = 500
"""Characters of one cell; of a label that is longer, the beginning is shown."""


def paired(value: float, half: float) -> tuple[str, str]:
    """Format a number and its margin of error, rounded so that the interval shown contains the exact one.

    The margin of error has two significant digits, or those before the point, and the number ends at the
    same place. A whole number stays whole. Without a known error: as `plain`, and an empty string.

    >>> paired(38.950947, 0.083526), paired(1112, 6.0), paired(0.07, math.nan)
    (('38.951', '0.085'), ('1,112', '6'), ('0.07', ''))
    """
    if not math.isfinite(value) or not math.isfinite(half):
        return plain(value), ""
    whole = isinstance(value, int)
    error = half_width(half, whole)
    if whole:
        return f"{value:,}", error
    value = float(value) + 0.0  # no negative zero
    if half == 0 or abs(value) >= LARGE or "e" in error:
        return repr(value).removesuffix(".0"), error
    step = Decimal(1).scaleb(-len(error.partition(".")[2]))
    rounded = Decimal(repr(value)).quantize(step, ROUND_HALF_EVEN, WIDE)
    return f"{rounded if rounded else abs(rounded):,f}", error


UNKNOWN = "unknown"
"""The beginning of what stands in place of the margin of error of a number that is all noise."""


def unknown(low: str, high: str) -> str:
    """Return what stands in place of the margin of error of a number that is all noise.

    >>> unknown("0", "200,000")
    'unknown (0 to 200,000)'
    """
    return f"{UNKNOWN} ({low} to {high})"


def signed(error: str) -> str:
    """Return a margin of error with its sign, or that the number is unknown.

    >>> signed("0.085"), signed("unknown (0 to 1)")
    ('± 0.085', 'unknown (0 to 1)')
    """
    return error if error.startswith(UNKNOWN) else f"± {error}"


def joined(pair: tuple[str, str]) -> str:
    """Join a number and its margin of error, as `paired` formats them.

    >>> joined(("38.951", "0.085")), joined(("0.07", "")), joined(("0", "unknown (0 to 1)"))
    ('38.951 ± 0.085', '0.07', '0, unknown (0 to 1)')
    """
    value, error = pair
    if not value or not error:
        return value or error
    return f"{value}{',' if error.startswith(UNKNOWN) else ''} {signed(error)}"


def half_width(half: float, whole: bool = False) -> str:
    """Format a margin of error, rounded up; of a number that is not whole, by its own rounding, too.

    It depends on nothing else, so that equal errors look equal wherever they are shown.

    >>> half_width(0.083526), half_width(0.0996), half_width(6.0, whole=True), half_width(0.0)
    ('0.085', '0.11', '6', '0')
    """
    if half == 0:
        return "0"
    error = Decimal(repr(float(half)))
    places = DIGITS - 1 - error.adjusted()
    if half >= LARGE or places > MOST_DIGITS:
        return f"{decimals(DIGITS, ROUND_CEILING).plus(error):.{DIGITS - 1}e}"
    if whole and error == error.to_integral_value():
        places = 0
    rounded = _rounded_up(error, places, whole)
    if places > 0 and rounded.adjusted() > error.adjusted():  # to 10.0, which has a digit too many
        rounded = _rounded_up(error, places - 1, whole)
    return f"{rounded:,f}"


def _rounded_up(error: Decimal, places: int, whole: bool) -> Decimal:
    """Round a margin of error up, with what the number loses that is rounded to the same place."""
    step = Decimal(1).scaleb(-max(places, 0))
    return (error if whole else error + step / 2).quantize(step, ROUND_CEILING, WIDE)


def span(halves: Floats, whole: bool = False, dates: bool = False) -> str:
    """Format the margins of error of several numbers, or of ``dates``: one, or the smallest to the largest.

    >>> span(np.array([2.4, 6.0, math.nan]), whole=True), span(np.array([math.nan]))
    ('± 2.4 to 6', '')
    >>> span(np.array([447_000.0, math.nan]), dates=True)
    '± 5.3 days'
    """
    known = halves[np.isfinite(halves)]
    if not known.size:
        return ""
    ends = float(known.min()), float(known.max())
    low, high = map(duration, ends) if dates else (half_width(end, whole) for end in ends)
    return f"± {low}" if low == high else f"± {low} to {high}"


TIMES = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
DAY, HOUR, MINUTE = (size for size, _ in TIMES[:3])


def duration(seconds: float) -> str:
    """Format a margin of error that is a time, rounded up, in the largest unit of which it is two at least.

    >>> duration(447_000.0), duration(5.03), duration(0.0)
    ('5.3 days', '5.1 seconds', '0 seconds')
    """
    size, unit = next((pair for pair in TIMES if seconds >= 2 * pair[0]), TIMES[-1])
    return f"{half_width(seconds / size)} {unit}"


def dated(value: Any, seconds: float) -> tuple[str, str]:
    """Format a date and its margin of error, rounded so that the interval shown contains the exact one.

    >>> dated(pd.Timestamp("2020-06-03 20:28:30"), 947_000.0), dated(pd.Timestamp("2020-06-03"), math.nan)
    (('2020-06-04', '12 days'), ('2020-06-03 00:00:00', ''))
    """
    if pd.isna(value) or not math.isfinite(seconds):
        return label(value), ""
    if seconds >= 10 * DAY:  # an hour more where clocks are changed
        day = value.tz_localize(None) + pd.Timedelta(hours=12)
        return f"{day.date()}", duration(seconds + (0.0 if value.tzinfo is None else HOUR))
    if seconds < 2 * MINUTE:
        return str(value), duration(seconds)
    timespec, rounding = ("minutes", "30s") if seconds >= 2 * HOUR else ("seconds", "500ms")
    return (value + pd.Timedelta(rounding)).isoformat(sep=" ", timespec=timespec), duration(seconds)


def plain(value: object) -> str:
    """Format a number without a known error to six significant digits, or any other cell.

    Whole numbers keep all digits.

    >>> plain(0.25), plain(38.950947), plain(12345), plain(1.5e-9), plain(True), plain(None)
    ('0.25', '38.9509', '12,345', '1.5e-09', 'True', 'NaN')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return label(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value}"
    if value and not 1e-4 <= abs(value) < LARGE:
        return f"{value:.6g}"
    decimals = max(5 - Decimal(repr(value)).adjusted(), 0)
    text = f"{value + 0.0:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def printable(value: object, most: int | None = MOST_TEXT) -> str:
    r"""Format a label, with characters that cannot be printed, such as a new line, spelled out.

    Characters that change the direction of text cannot be printed either. A text longer than ``most`` is cut.

    >>> printable("a\nb"), printable(("age", 1)), printable(None)
    ('a\\nb', "('age', 1)", '')
    """
    if value is None:
        return ""
    text = str(value)
    if most is not None and len(text) > most:
        text = text[: most - 1].rstrip() + "…"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def label(value: Any, most: int | None = MOST_TEXT) -> str:
    """Format a label of an axis, or a cell that is no number; at most so many characters.

    >>> label("north"), label(2025.0), label(None)
    ('north', '2025', 'NaN')
    """
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return "NaN"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        value = int(value)  # pandas makes floats of integers beside a null
    return printable(value, most)


def percent(share: float) -> str:
    """Format a share in percent; one that is not quite 0 or 1 is never written as 0 % or 100 %.

    >>> percent(0.0625), percent(0.99999), percent(0.0001)
    ('6.25 %', '> 99.9 %', '< 0.1 %')
    """
    text = f"{100 * share:.3g}"
    if text == "100" and share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if 0 < share < 0.001 else f"{text} %"


def percent_up(share: float) -> str:
    """Format an upper limit of a share, rounded up; one below 1 is never written as 100 %.

    >>> percent_up(0.66818), percent_up(1.0), percent_up(0.99999), percent_up(0.0)
    ('66.9 %', '100 %', 'nearly 100 %', '0 %')
    """
    if 0.999 < share < 1:
        return "nearly 100 %"
    return f"{math.ceil(share * 1000 - 1e-9) / 10:g} %"


def percent_down(share: float) -> str:
    """Format a lower limit of a share, rounded down; one above 0 is never written as 0 %.

    >>> percent_down(0.33182), percent_down(0.0), percent_down(0.00001)
    ('33.1 %', '0 %', 'nearly 0 %')
    """
    return "nearly 0 %" if 0 < share < 0.001 else f"{math.floor(share * 1000 + 1e-9) / 10:g} %"


def cost(number: Fraction | float, digits: int = COST_DIGITS) -> str:
    """Format a privacy loss that is spent, or its limit, in so many significant digits, rounded up.

    Displays never show less than was spent. Messages of errors use `pdprivacy.core.privacy.show`.

    >>> cost(0.7), cost(Fraction(1, 3)), cost(Fraction(1, 10**6))
    ('0.7', '0.333334', '1e-06')
    """
    return _loss(number, digits, ROUND_CEILING)


def remaining(number: Fraction | float, digits: int = COST_DIGITS) -> str:
    """Format a privacy loss that is left in so many significant digits, rounded down.

    A release may ask for as much.

    >>> remaining(0.7), remaining(Fraction(2, 3)), remaining(Fraction(0))
    ('0.7', '0.666666', '0')
    """
    return _loss(number, digits, ROUND_FLOOR)


def _loss(number: Fraction | float, digits: int, rounding: str) -> str:
    """Format a privacy loss."""
    exact = number if isinstance(number, Fraction) else Fraction(repr(float(number)))
    if exact <= 0:  # what is left where sums were rounded
        return "0"
    context = decimals(digits, rounding)
    rounded = decimal(exact, context).normalize(context)
    if -5 < rounded.adjusted() < 9:
        return f"{rounded:f}"
    mantissa, _, power = f"{rounded:e}".partition("e")
    return f"{mantissa}e{int(power):+03d}"


def factor(power: Fraction) -> str | None:
    """Format e to a power in three digits, rounded up; None above e^20.

    >>> factor(Fraction(7, 10)), factor(Fraction(27, 2)), factor(Fraction(1000))
    ('2.02', '730,000', None)
    """
    if power > MOST_POWER:
        return None
    context = decimals(3, ROUND_CEILING)
    return f"{decimal(exp_up(power), context).normalize(context):,f}"


def loss_text(epsilon: Fraction | float, delta: Fraction | float) -> str:
    """Format a privacy loss; a delta of zero is left out.

    >>> loss_text(0.5, 0), loss_text(0.5, 1e-6)
    ('epsilon 0.5', 'epsilon 0.5, delta 1e-06')
    """
    return f"epsilon {cost(epsilon)}" + (f", delta {cost(delta)}" if delta else "")


def listed(names: Iterable[object], most: int | None = None) -> str:
    """Join names in a sentence; of more than ``most``, the last ones are counted.

    >>> listed("ab"), listed("abcd", most=3)
    ('a and b', 'a, b and 2 more')
    """
    texts = [str(name) for name in names]
    if most is not None and len(texts) > most:
        texts = [*texts[: most - 1], f"{len(texts) - most + 1} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def many(number: int, noun: str) -> str:
    """Format how many there are of something.

    >>> many(1, "release"), many(2000, "release")
    ('1 release', '2,000 releases')
    """
    return f"{number:,} {noun}{'s'[: number != 1]}"


def short(number: float) -> str:
    """Format a number of an axis or a label to six significant digits, without separators.

    >>> short(0.1 + 0.2), short(2025.0)
    ('0.3', '2025')
    """
    return f"{number:g}"


def tick_texts(ticks: Floats) -> list[str]:
    """Format the numbers of ticks with as few digits as tell them apart.

    >>> tick_texts(np.array([0.0, 0.5, 1.0])), tick_texts(np.array([0.0, 2e7]))
    (['0.0', '0.5', '1.0'], ['0', '2e+07'])
    """
    size = float(np.abs(ticks).max(initial=0))
    step = float(np.diff(ticks).min()) if len(ticks) > 1 else size
    for digits in range(8):
        if np.abs(np.round(ticks, digits) - ticks).max(initial=0) <= 1e-3 * step:
            break
    if size >= 1e7 or digits > 5:  # by powers of ten
        digits = max(int(np.ceil(np.log10(size / step) - 1e-9)), 0) + 1 if size and step else 0
        return [f"{tick:.{digits + 1}g}" for tick in ticks]
    return [f"{tick:,.{digits}f}" for tick in ticks]


def number_text(number: float) -> str:
    """A number as a person writes it: whole numbers without a decimal point.

    >>> number_text(18.0), number_text(0.5)
    ('18', '0.5')
    """
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e16 else repr(number)
