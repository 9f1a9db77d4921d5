"""Bounds that are dates, which declare a column of dates; and durations, which are refused with a hint."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd

from pdprivacy.errors import DeclarationError, PrivacyError, got
from pdprivacy.timeline import DATE_UNITS, Timeline, TimeUnit, nanoseconds, timestamp, zone_of

__all__ = ["Ends", "date_column", "is_date", "refuse_dates"]

Ends: TypeAlias = tuple[Any, bool]
"""A bound of any type, and whether it belongs to the interval."""

SPANS = {
    "pandas": "df[{name}] = df[{name}] / pd.Timedelta(days=1)",
    "polars": "df = df.with_columns(pl.col({name}).dt.total_microseconds() / 86_400_000_000)",
    "pyspark": 'df = df.withColumn({name}, F.col({name}).cast("long") / 86_400)',
}
"""How a column of durations becomes numbers of days."""


def is_date(value: object) -> bool:
    """Whether it is a date, a time or a duration.

    >>> is_date(pd.Timestamp("2020-01-01")), is_date(2020)
    (True, False)
    """
    dates = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64 | pd.Period
    return isinstance(value, dates)


def date_column(
    name: Hashable, dtype: Any, lows: Sequence[Ends], highs: Sequence[Ends], resolution: Any
) -> tuple[Timeline, int] | None:
    """The dates of a column, and the number of the last one; None where it has no such bounds.

    Parameters
    ----------
    lows, highs : the declared ends, with and without time zone.
    resolution : the declared unit of time; None for the coarsest of seconds, ms, us and ns that tells the
        bounds, or for days where the dtype or the bounds are days.

    Raises
    ------
    DeclarationError : bounds with a time zone beside some without, or bounds in the wrong order.
    """
    ends: list[list[tuple[Any, bool]]] = [
        [(timestamp(value), closed) for value, closed in side] for side in (lows, highs)
    ]
    if not all(ends) or any(instant is None for side in ends for instant, _ in side):
        return None
    zone = _zone(name, dtype, [instant for side in ends for instant, _ in side])
    stored = [[(_stored(instant, zone), closed) for instant, closed in side] for side in ends]
    lower, upper = max(stored[0]), min(stored[1])  # of equal upper ends the open one is the narrower
    days = _holds_days(dtype) or (dtype is None and all(_is_day(value) for value, _ in (*lows, *highs)))
    unit = _unit(name, resolution, days, zone, (lower[0], upper[0]))
    size = DATE_UNITS[unit]
    origin, rest = divmod(upper[0], size)
    last = origin - (rest == 0 and not upper[1])  # an open end that is a whole unit is not reached
    first = lower[0] // size
    if first > last:
        raise DeclarationError(f"the bounds of column {name!r} leave no date.", "the lower bound comes first")
    return Timeline(first, unit, zone), last - first


def _zone(name: Hashable, dtype: Any, instants: Sequence[pd.Timestamp]) -> str | None:
    """The time zone of the column: that of its dtype, or of its bounds."""
    native = getattr(dtype, "type", None)
    zones = [getattr(one, key, None) for one in (dtype, native) for key in ("tz", "time_zone")]
    declared = next((zone for zone in zones if zone is not None), None)
    aware = {instant.tzinfo is not None for instant in instants}
    if len(aware) > 1 or (declared is not None and aware == {False}):
        raise DeclarationError(
            f"the bounds of column {name!r} need a time zone, as the column has one.",
            f'pd.Timestamp("2020-01-01", tz="{declared or "UTC"}") for both bounds',
        )
    if aware == {False}:
        return None
    try:
        return zone_of(instants[0] if declared is None else instants[0].tz_convert(declared))
    except PrivacyError as error:
        found = DeclarationError(f"column {name!r}: {error.args[0]}")
    raise found


def _stored(instant: pd.Timestamp, zone: str | None) -> int:
    return nanoseconds(instant if zone is None else instant.tz_convert("UTC"))


def _unit(name: Hashable, resolution: Any, days: bool, zone: str | None, ends: tuple[int, int]) -> TimeUnit:
    """The declared unit, or the one that tells the ends."""
    if resolution is not None and resolution not in get_args(TimeUnit):
        known = ", ".join(map(repr, get_args(TimeUnit)))
        raise DeclarationError(
            f'"resolution" of column {name!r} must be one of {known} (got {got(resolution)}).',
            'metadata={"dp": {"resolution": "s"}}',
        )
    if resolution == "D" and zone is not None:
        raise DeclarationError(
            f'"resolution" of column {name!r} must be finer than days, whose lengths differ in a time zone.',
            'metadata={"dp": {"resolution": "h"}}',
        )
    if resolution is not None:
        found: TimeUnit = resolution
        return found
    fine: tuple[TimeUnit, ...] = ("s", "ms", "us", "ns")
    telling = (unit for unit in fine if all(end % DATE_UNITS[unit] == 0 for end in ends))
    return "D" if days and zone is None else next(telling)


def _holds_days(dtype: Any) -> bool:
    """Whether a dtype is of days, in whatever schema."""
    return str(dtype).lower().startswith("date") and not str(dtype).lower().startswith("datetime")


def _is_day(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def refuse_dates(name: Hashable, engine: str, ends: Sequence[Any], *, nullable: bool) -> None:
    """Refuse bounds that are durations, and dates that declare no column of dates.

    Parameters
    ----------
    engine : of the schema, "pandas", "polars" or "pyspark"; the hint is written for its frames.
    ends : the declared lower and upper end, None where there is none.

    Raises
    ------
    DeclarationError : one of them is no number; the hint makes numbers of durations and declares them, or
        declares dates.
    """
    if not any(map(is_date, ends)):
        return
    spans = [_span(end) for end in ends]
    if any(span is not None for span in spans):
        line = SPANS[engine].format(name=repr(name))
        raise DeclarationError(
            f"the bounds of column {name!r} are durations, and only numbers or dates are bounds.",
            f"{line}, declared as {_declared(engine, spans, nullable)}; or cut it to labels.",
        )
    low, high = (
        repr(end) if is_date(end) else text for end, text in zip(ends, ("LOWER", "UPPER"), strict=True)
    )
    raise DeclarationError(
        f"the bounds of column {name!r} are dates: a column of dates has a dtype of dates, a lower and an "
        "upper bound, and no bins.",
        f"pa.Column(DTYPE, pa.Check.in_range({low}, {high}), ...); periods are made by "
        f'private.cut({name!r}, freq="M").',
    )


def _span(end: Any) -> Any:
    """A duration as pandas has it; None for anything else."""
    if not isinstance(end, datetime.timedelta | np.timedelta64):
        return None
    found: Any = pd.Timedelta(end)
    return None if pd.isna(found) else found


def _declared(engine: str, spans: Sequence[Any], nullable: bool) -> str:
    """The declaration of durations as days."""
    ends = zip(spans, ("LOWER", "UPPER"), strict=True)
    texts = [blank if span is None else repr(float(span / pd.Timedelta(days=1))) for span, blank in ends]
    options = ", nullable=True" if nullable else ""
    options += ", coerce=True" if nullable and engine == "pandas" else ""
    return f'pa.Column(float, pa.Check.in_range({", ".join(texts)}){options}, metadata={{"dp": {{}}}})'
