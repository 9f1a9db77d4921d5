"""Dates as whole numbers: units of time since an origin, and numbers as dates again.

A column of dates is read as a bounded column of whole numbers, so that statistics, sensitivities and noise
know of numbers only. Dates become numbers by `Timeline.counted`, and numbers dates by `Timeline.dates`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from pdprivacy.checks import one_of
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import ParameterError, kind
from pdprivacy.types import Integers

TimeUnit: TypeAlias = Literal["D", "h", "min", "s", "ms", "us", "ns"]
Freq: TypeAlias = Literal["D", "W", "M", "Q", "Y"]

SECOND = 10**9
DAY = 86_400 * SECOND
DATE_UNITS: dict[str, int] = {
    "D": DAY,
    "h": 3600 * SECOND,
    "min": 60 * SECOND,
    "s": SECOND,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}

MOST_UNITS = 2**52
"""The largest number of units between bounds, so that doubles distinguish halves of units."""

MOST_PERIODS = 100_000

FREQS: dict[str, Freq] = {
    **{name: name for name in get_args(Freq)},
    "W-SUN": "W",
    **dict.fromkeys(("ME", "MS"), "M"),
    **dict.fromkeys(("QE", "QS", "Q-DEC", "QE-DEC", "QS-JAN", "QS-OCT"), "Q"),
    **dict.fromkeys(("YE", "YS", "Y-DEC", "YE-DEC", "YS-JAN"), "Y"),
}
"""Frequencies of pandas by name: calendar periods; weeks end on Sundays."""

FIELDS: dict[str, tuple[int, int]] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "dayofweek": (0, 6),
    "hour": (0, 23),
}
"""The least and the greatest value of each field of a date but the year, as ``Series.dt`` has them."""

FIRST = int(np.datetime64("0001-01-01", "D").astype(np.int64)) * DAY
LAST = int(np.datetime64("10000-01-01", "D").astype(np.int64)) * DAY - 1
"""The first and the last nanosecond since 1970 of the years 1 to 9999, of which Python knows no others."""

LONGEST = 1e12
"""Seconds of a time, about 30,000 years."""

DATE = re.compile(r"\d{4}(-\d{2}(-\d{2}([T ].*)?)?)?\Z")


def timestamp(value: Any) -> pd.Timestamp | None:
    """A date, a time or a text of one as a Timestamp; None for anything else.

    >>> timestamp("2020-02-29"), timestamp("now"), timestamp(5)
    (Timestamp('2020-02-29 00:00:00'), None, None)
    """
    if isinstance(value, pd.Period):
        value = value.start_time
    dates = datetime.date | np.datetime64
    if not isinstance(value, dates) and not (isinstance(value, str) and DATE.match(value)):
        return None
    try:
        instant: Any = pd.Timestamp(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if pd.isna(instant) else instant


def nanoseconds(instant: pd.Timestamp) -> int:
    """Nanoseconds since 1970, of UTC, or of the clock where there is no time zone.

    >>> nanoseconds(pd.Timestamp("1970-01-01 00:00:01"))
    1000000000
    """
    stored = instant.to_datetime64()
    return int(stored.astype(np.int64)) * DATE_UNITS[np.datetime_data(stored.dtype)[0]]


def first_and_last(unit: str, zone: str | None) -> Interval:
    """The interval from the first to the last date that can be held, in whole units since 1970.

    These are the years 1 to 9999, and of nanoseconds what 64 bits hold. With a time zone they end a day
    earlier on both sides, so that the clocks of every time zone show such a date.

    >>> first, last = first_and_last("s", None)
    >>> str(np.datetime64(first, "s")), str(np.datetime64(last, "s"))
    ('0001-01-01T00:00:00', '9999-12-31T23:59:59')
    """
    size, margin = DATE_UNITS[unit], 0 if zone is None else DAY
    # the least number of 64 bits is no date
    low, high = (INT64.lower + 1, INT64.upper) if unit == "ns" else (FIRST, LAST)
    return Interval(-(-(low + margin) // size), (high - margin) // size)


def zone_of(instant: pd.Timestamp) -> str | None:
    """The name of the time zone.

    Raises ParameterError for a zone without a name.
    """
    if instant.tzinfo is None:
        return None
    name = str(instant.tzinfo)
    try:
        same = pd.Timestamp(0, tz=name).utcoffset() == pd.Timestamp(0, tz=instant.tzinfo).utcoffset()
    except Exception:
        same = False
    if not same:
        raise ParameterError("a time zone must have a name.", 'pd.Timestamp("2020-01-01", tz="Europe/Paris")')
    return name


def times(seconds: Any) -> pd.TimedeltaIndex:
    """Seconds as times, rounded up to microseconds and cut off at 30,000 years; NaT for NaN.

    >>> times([1.5, float("nan")]).tolist()
    [Timedelta('0 days 00:00:01.500000'), NaT]
    """
    whole = np.ceil(np.minimum(np.asarray(seconds, dtype=np.float64), LONGEST) * 1e6)
    known = np.where(np.isnan(whole), np.iinfo(np.int64).min, np.nan_to_num(whole).astype(np.int64))
    return pd.TimedeltaIndex(known.view("timedelta64[us]"))


@dataclass(frozen=True, slots=True)
class Timeline:
    """The dates that whole numbers from 0 on stand for.

    Attributes
    ----------
    origin : the date of 0, in units since 1970-01-01; of UTC where there is a time zone.
    unit : the resolution, to which dates are rounded down: "D", "h", "min", "s", "ms", "us" or "ns".
    zone : the name of the time zone in which dates are published, and their periods and fields are taken.

    >>> days = Timeline(18262, "D")
    >>> days.position("2020-01-31"), str(days.dates(30.0)[0])
    (30, '2020-01-31 00:00:00')
    """

    origin: int
    unit: TimeUnit
    zone: str | None = None

    @property
    def seconds(self) -> float:
        """The length of a unit."""
        return DATE_UNITS[self.unit] / SECOND

    def units(self, unit: str) -> Fraction:
        """Return the number of another unit in one of this unit."""
        return Fraction(DATE_UNITS[self.unit], DATE_UNITS[unit])

    # ------------------------------------------------------------ dates as numbers

    def position(self, value: Any, what: str = "a date") -> int | float:
        """The number of a constant; one that lies between two units has the number in the middle.

        A date without a time zone is one of the declared zone.

        Raises
        ------
        ParameterError : no date, one with a time zone where none is declared, or one that the clocks of the
            declared zone skip or show twice.
        """
        instant = timestamp(value)
        if instant is None:
            raise ParameterError(
                f"{what} must be a date (got {kind(value)}).",
                'pd.Timestamp("2020-01-31")',
            )
        if instant.tzinfo is not None and self.zone is None:
            raise ParameterError(f"{what} has a time zone, and the declared dates have none.")
        if instant.tzinfo is None and self.zone is not None:
            try:
                instant = instant.tz_localize(self.zone)
            except Exception:
                instant = None
        if instant is None:
            raise ParameterError(
                f"{what} is not one instant in the time zone {self.zone!r}.",
                f"state its offset: {self.nearest(value)!r}",
            )
        units, rest = divmod(nanoseconds(instant), DATE_UNITS[self.unit])
        return units - self.origin + 0.5 if rest else units - self.origin

    def nearest(self, value: Any) -> str:
        """Return the nearest date that `position` accepts, as text; any such date for other constants.

        >>> Timeline(0, "s", "Europe/Paris").nearest("2020-10-25 02:30")
        '2020-10-25 02:30:00+02:00'
        """
        instant = timestamp(value)
        if instant is None:
            return "2020-01-31"
        if self.zone is None:
            return str(instant.tz_localize(None)).removesuffix(" 00:00:00")
        try:
            if instant.tzinfo is None:
                instant = instant.tz_localize(self.zone, ambiguous=True, nonexistent="shift_forward")
        except Exception:  # too near to the year 1 or 9999
            instant = pd.Timestamp("2020-01-31", tz=self.zone)
        return str(instant)

    def counted(self, stored: Integers, unit: str, lower: int, upper: int) -> Integers:
        """The numbers of dates stored as integers since 1970, rounded down.

        A date whose number is below ``lower`` is ``lower - 1``, one above ``upper`` is ``upper + 1``.
        """
        size, step = DATE_UNITS[unit], DATE_UNITS[self.unit]
        first, last = self.origin + lower, self.origin + upper
        if size <= step:
            units = stored // (step // size)  # and no product that may overflow
            below, above = units < first, units > last
        else:
            factor = size // step
            below, above = stored < -(-first // factor), stored > last // factor
            units = np.where(below | above, 0, stored) * factor
        numbers = np.where(below | above, self.origin, units) - self.origin
        return np.where(below, lower - 1, np.where(above, upper + 1, numbers)).astype(np.int64)

    # ------------------------------------------------------------ numbers as dates

    @property
    def stored_unit(self) -> str:
        """The unit in which dates are published: that of the resolution, or seconds."""
        return "s" if DATE_UNITS[self.unit] >= SECOND else self.unit

    def dates(self, numbers: Any) -> pd.DatetimeIndex:
        """Numbers as dates, rounded to `stored_unit`; NaT for NaN, and none outside `first_and_last`."""
        unit = self.stored_unit
        factor = int(self.units(unit))
        origin, missing = self.origin * factor, np.iinfo(np.int64).min
        known = first_and_last(unit, self.zone).map(lambda end: end - origin)
        values = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
        stored = [
            missing if number != number else origin + round(known.clip(number * factor))
            for number in values.tolist()
        ]
        return self._index(np.array(stored, dtype=np.int64), unit)

    def instants(self, numbers: Integers) -> pd.DatetimeIndex:
        """Whole numbers between declared bounds as dates, exactly."""
        return self._index((numbers + self.origin) * int(self.units(self.stored_unit)), self.stored_unit)

    def _index(self, stored: Integers, unit: str) -> pd.DatetimeIndex:
        index = pd.DatetimeIndex(stored.view(f"datetime64[{unit}]"))
        return index if self.zone is None else index.tz_localize("UTC").tz_convert(self.zone)

    def text(self, number: int | float) -> str:
        """A number as the text of its date; a whole day without a time.

        >>> Timeline(0, "s", "UTC").text(90)
        '1970-01-01 00:01:30+00:00'
        """
        return str(self.dates(number)[0]).removesuffix(" 00:00:00")

    # ------------------------------------------------------------ the calendar

    def field(self, name: str) -> Callable[[Integers], Integers]:
        """Return the function from numbers to a field of their dates, such as the month, in the zone."""
        known = name.replace("dayof", "day_of_")  # as all supported versions of pandas have it
        return lambda numbers: np.asarray(getattr(self.instants(numbers), known), dtype=np.int64)

    def periods(self, freq: Any, lower: int, upper: int) -> tuple[tuple[str, ...], Integers]:
        """The calendar's periods between two numbers, by the names of pandas, and the first number of each.

        A period begins at the first instant of its first day, in the declared time zone.

        Raises ParameterError for another frequency than days, weeks, months, quarters and years.

        >>> names, first = Timeline(18262, "D").periods("M", 0, 60)
        >>> names, first.tolist()
        (('2020-01', '2020-02', '2020-03'), [0, 31, 60])
        """
        known = isinstance(freq, str) and freq in FREQS
        code = FREQS[freq] if known else one_of(freq, "freq", get_args(Freq), 'freq="M"')
        # as the clock shows them
        ends = self.instants(np.array([lower, upper])).tz_localize(None).to_numpy().astype("datetime64[D]")
        first, last = (_start(day, code) for day in ends)
        count = _later(first, last, code)
        if count > MOST_PERIODS:
            raise ParameterError(
                f"the bounds hold {count} periods of freq={freq!r}, more than {MOST_PERIODS}.",
                "a longer period, or narrower bounds by private.clip(...)",
            )
        starts = _starts(first, count, code)
        names = tuple(_names(starts, code))
        begin = pd.DatetimeIndex(starts.astype("datetime64[s]"))
        if self.zone is not None:
            # a midnight that clocks skip is the instant when they skip it, one that they show twice the first
            early = np.ones(len(begin), dtype=bool)
            begin = begin.tz_localize(self.zone, nonexistent="shift_forward", ambiguous=early)
        seconds = begin.as_unit("s").asi8
        if DATE_UNITS[self.unit] > SECOND:
            numbers = -(-seconds // (DATE_UNITS[self.unit] // SECOND)) - self.origin
        else:
            numbers = seconds * (SECOND // DATE_UNITS[self.unit]) - self.origin
        numbers[0] = lower
        return names, np.asarray(numbers, dtype=np.int64)


def _start(day: Any, freq: Freq) -> Any:
    """The first day of the period of a day."""
    if freq == "W":  # 1970-01-01 was a Thursday
        return day - ((day.astype(np.int64) + 3) % 7).astype("timedelta64[D]")
    if freq == "Q":
        month = day.astype("datetime64[M]")
        return (month - (month.astype(np.int64) % 3).astype("timedelta64[M]")).astype("datetime64[D]")
    return day.astype(f"datetime64[{freq}]").astype("datetime64[D]")


def _later(first: Any, last: Any, freq: Freq) -> int:
    """Return the number of periods that begin from the first to the last of these days."""
    if freq in ("D", "W"):
        return int((last - first).astype(np.int64)) // (7 if freq == "W" else 1) + 1
    months = int((last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(np.int64))
    return months // {"M": 1, "Q": 3, "Y": 12}[freq] + 1


def _starts(first: Any, count: int, freq: Freq) -> Any:
    """The first days of so many periods."""
    steps = np.arange(count)
    if freq in ("D", "W"):
        return first + (steps * (7 if freq == "W" else 1)).astype("timedelta64[D]")
    months = (steps * {"M": 1, "Q": 3, "Y": 12}[freq]).astype("timedelta64[M]")
    return (first.astype("datetime64[M]") + months).astype("datetime64[D]")


def _names(starts: Any, freq: Freq) -> list[str]:
    """Periods as pandas names them."""
    if freq == "W":
        return [f"{start}/{start + np.timedelta64(6, 'D')}" for start in starts]
    if freq == "Q":
        months = starts.astype("datetime64[M]")
        years = months.astype("datetime64[Y]")
        quarters = (months - years.astype("datetime64[M]")).astype(np.int64) // 3 + 1
        return [f"{year}Q{quarter}" for year, quarter in zip(years, quarters, strict=True)]
    return list(map(str, starts.astype(f"datetime64[{freq}]")))
