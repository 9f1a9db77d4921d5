"""Ticks of an axis of dates, which are seconds since 1970 of the clock."""

from __future__ import annotations

import math

import numpy as np

from pdprivacy.show.view import Floats

__all__ = ["date_ticks"]

FIRST, LAST = -62_135_510_400.0, 253_402_128_000.0
"""The seconds of a day in the year 1 and of one in 9999."""

STEPS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("s", (1, 5, 15, 30)),
    ("m", (1, 5, 15, 30)),
    ("h", (1, 3, 6, 12)),
    ("D", (1, 2, 7, 14)),
    ("M", (1, 2, 3, 6)),
    ("Y", (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)),
)
"""The units of ticks, and how many of them may lie between two ticks."""


def date_ticks(low: float, high: float, most: int) -> tuple[Floats, list[str]]:
    """Return at most ``most`` dates from ``low`` to ``high``, with texts as short as they can be.

    >>> date_ticks(0.0, 100 * 86_400.0, 4)[1]
    ['1970-01', '1970-02', '1970-03', '1970-04']
    """
    ends = np.array([math.ceil(max(low, FIRST)), math.floor(min(high, LAST))], dtype="datetime64[s]")
    for unit, steps in STEPS:
        first, last = ends.astype(f"datetime64[{unit}]").astype(np.int64)
        for step in steps:
            if (last - first) // step > most + 1:
                continue
            since = 1970 if unit == "Y" else 0  # round years
            start = -(-(first + since) // step) * step - since
            places = np.arange(start, last + 1, step).astype(f"datetime64[{unit}]")
            dates = places.astype("datetime64[s]")
            dates = dates[(dates >= ends[0]) & (dates <= ends[1])]
            if len(dates) <= most:
                shown = dates.astype("datetime64[m]" if unit == "h" else places.dtype)
                return dates.astype(np.float64), [str(date).replace("T", " ") for date in shown]
    return np.array([]), []
