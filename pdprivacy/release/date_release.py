"""Released numbers that stand for dates, published as dates, with their errors in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.release.result import Errors
from pdprivacy.timeline import Timeline

__all__ = ["bounds_as_text", "dated", "in_seconds", "timelines_of"]

R = TypeVar("R", "pd.Series[Any]", pd.DataFrame)


def timelines_of(columns: Sequence[Column], statistic: str) -> tuple[Timeline, ...]:
    """The dates of the columns of a release of numbers, one per column; empty where none holds dates.

    Raises ParameterError for dates beside numbers, or of several time zones.
    """
    if statistic == "count" or not any(column.timeline for column in columns):
        return ()
    names = [column.name for column in columns if column.timeline is not None]
    timelines = tuple(column.timeline for column in columns if column.timeline is not None)
    if len(names) < len(columns):
        raise ParameterError(
            f"{statistic!r} takes dates by themselves: their errors are times, and those of numbers are not.",
            f"private.dp.{statistic}({names!r}, epsilon=0.1), and the other columns in a call of their own",
        )
    if len({timeline.zone for timeline in timelines}) > 1:
        raise ParameterError(
            f"{statistic!r} takes dates of one time zone at a time.",
            f"private.dp.{statistic}({names[0]!r}, epsilon=0.1)",
        )
    return timelines


def dated(released: R, timelines: Sequence[Timeline]) -> R:
    """The numbers of a release as dates; one timeline per number of a Series, or per column of a frame."""
    found: Any
    if isinstance(released, pd.DataFrame):
        columns = [
            _dates(released.iloc[:, place], timeline, timelines) for place, timeline in enumerate(timelines)
        ]
        found = pd.DataFrame(dict(enumerate(columns)), index=released.index)
        found.columns = released.columns
        return found  # type: ignore[no-any-return]
    numbers = released.to_numpy(dtype=np.float64)
    first, *rest = (
        _dates(number, timeline, timelines) for timeline, number in zip(timelines, numbers, strict=True)
    )
    found = pd.Series(first.append(rest), index=released.index, name=released.name)
    return found  # type: ignore[no-any-return]


def _dates(numbers: Any, timeline: Timeline, timelines: Sequence[Timeline]) -> pd.DatetimeIndex:
    """Numbers of one of the columns of a release as dates.

    Nanoseconds beside coarser resolutions are rounded down to microseconds, in which all dates can be held
    together.
    """
    dates = timeline.dates(numbers)
    return dates.as_unit("us") if _mixed(timeline, timelines) else dates


def _mixed(timeline: Timeline, timelines: Sequence[Timeline]) -> bool:
    """Whether its dates are of nanoseconds and some of the others are not."""
    return timeline.unit == "ns" and any(other.unit != "ns" for other in timelines)


def in_seconds(errors: Errors, timelines: Sequence[Timeline]) -> Errors:
    """The errors of numbers as those of dates: in seconds, and of the rounding of what is published, too.

    Bounds are in seconds since 1970.
    """
    seconds = np.array([timeline.seconds for timeline in timelines])
    origins = np.array([float(timeline.origin) for timeline in timelines])
    rounding = np.array(
        [
            float(1 / timeline.units(timeline.stored_unit)) / 2 + 1000 * _mixed(timeline, timelines)
            for timeline in timelines
        ]
    )

    def spread(number: Any) -> Any:
        return None if number is None else np.asarray(number) * seconds

    return replace(
        errors,
        standard_error=spread(errors.standard_error),
        plus_minus=(np.asarray(errors.plus_minus) + rounding) * seconds,
        bias=spread(errors.bias),
        rmse=spread(errors.rmse),
        worst_bias=spread(errors.worst_bias),
        worst_rmse=spread(errors.worst_rmse),
        lower=(errors.lower + origins) * seconds,
        upper=(errors.upper + origins) * seconds,
        uncounted=spread(errors.uncounted),
    )


def bounds_as_text(pairs: Any, timelines: Sequence[Timeline]) -> Any:
    """Bounds in seconds since 1970, nested in lists, as texts of dates; None stays."""
    if isinstance(pairs, list):
        return [bounds_as_text(pair, timelines) for pair in pairs]
    return None if pairs is None else Timeline(0, "s", timelines[0].zone).text(pairs)
