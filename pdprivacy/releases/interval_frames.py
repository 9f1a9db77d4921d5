"""Intervals as frames: of dates, and of quantiles whose ends were selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.declaration.timeline import first_and_last, times
from pdprivacy.errors import MetadataError
from pdprivacy.types import Floats

Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"


def interval_of_quantiles(released: Released, error: Mapping[str, Any]) -> pd.DataFrame:
    """Intervals of quantiles with selected ends, which have no standard error."""
    table = released.to_frame() if isinstance(released, pd.Series) else released
    ends: dict[str, pd.DataFrame] = {}
    for name in ("lower", "upper"):
        cells = np.reshape(np.array(error[name], dtype=object), table.shape)
        columns = [
            _dates_of(cells[:, at], table.iloc[:, at])
            if table.dtypes.iloc[at].kind == "M"
            else pd.Series(cells[:, at].astype(np.float64), index=table.index)
            for at in range(table.shape[1])
        ]
        ends[name] = pd.concat(columns, axis=1).set_axis(table.columns, axis=1)
    unknown = pd.DataFrame(np.nan, index=table.index, columns=table.columns)
    pieces = {"released": table, "standard_error": unknown, **ends}
    if isinstance(released, pd.Series):
        return pd.concat({name: piece.iloc[:, 0] for name, piece in pieces.items()}, axis=1)
    return pd.concat(pieces, axis=1)


def interval_of_dates(released: Released, error: Floats, half: Floats, bounds: Any) -> pd.DataFrame:
    """Intervals of dates, with errors as times; ``bounds`` are texts, or None."""
    table = released.to_frame() if isinstance(released, pd.Series) else released
    if any(dtype.kind != "M" for dtype in table.dtypes):
        raise MetadataError(
            "The released dates are texts or objects here, and an interval is around dates.",
            "the interval of the release, before its dates were converted.",
        )
    pairs = None
    if bounds is not None:
        pairs = np.broadcast_to(np.array(bounds), (*released.shape, 2)).reshape(*table.shape, 2)
    columns: dict[str, list[Any]] = {name: [] for name in ("released", "standard_error", "lower", "upper")}
    for position, (spread, margin) in enumerate(
        zip(error.reshape(table.shape).T, half.reshape(table.shape).T, strict=True)
    ):
        dates = table.iloc[:, position].dt.as_unit("us")
        width, error_of = (pd.Series(times(seconds), index=dates.index) for seconds in (margin, spread))
        ends = [_known_dates(dates - width), _known_dates(dates + width)]
        if pairs is not None:
            low, high = (_dates_of(pairs[:, position, side], dates) for side in (0, 1))
            ends = [end.clip(low, high) for end in ends]
        pieces = (dates, error_of, *ends)
        for name, values in zip(columns, pieces, strict=True):
            columns[name].append(values)
    if isinstance(released, pd.Series):
        return pd.DataFrame({name: values[0].array for name, values in columns.items()}, index=released.index)
    frames: dict[str, Any] = {
        name: pd.concat(values, axis=1).set_axis(table.columns, axis=1) for name, values in columns.items()
    }
    together: pd.DataFrame = pd.concat(frames, axis=1)
    return together


def _dates_of(texts: Any, like: pd.Series[Any]) -> pd.Series[Any]:
    """Texts as dates of the time zone and with the labels of other dates."""
    zone: Any = like.dt.tz
    stamps = [pd.Timestamp(str(text)) for text in texts]  # pandas 2 parses lists of them as nanoseconds
    if zone is not None:
        stamps = [stamp.tz_convert("UTC").tz_localize(None) for stamp in stamps]
    array = np.array([stamp.as_unit("us").to_datetime64() for stamp in stamps], dtype="datetime64[us]")
    dates = pd.Series(array, index=like.index)
    return dates if zone is None else dates.dt.tz_localize("UTC").dt.tz_convert(zone)


def _known_dates(dates: pd.Series[Any]) -> pd.Series[Any]:
    """Dates in microseconds, moved between the first and the last that a declaration can hold."""
    zone: Any = dates.dt.tz
    first, last = first_and_last("us", zone)
    ends: list[Any] = [pd.Timestamp(end, unit="us", tz=zone) for end in (first, last)]
    limited: pd.Series[Any] = dates.clip(*ends)
    return limited
