"""Ticks of an axis of dates, which are seconds since 1970 of the clock."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdprivacy.show.view import Floats

__all__ = ["date_ticks"]

DAY = 86_400.0
FIRST, LAST = -62_135_596_800.0 + DAY, 253_402_300_800.0 - DAY


def date_ticks(low: float, high: float, most: int) -> tuple[Floats, list[str]]:
    """Return at most about ``most`` dates from ``low`` to ``high``, with texts as short as they can be.

    >>> date_ticks(0.0, 100 * DAY, 4)[1]
    ['1970-01', '1970-02', '1970-03', '1970-04']
    """
    from matplotlib import dates as calendar

    known: Any = calendar
    ends = [known.num2date(min(max(end, FIRST), LAST) / DAY) for end in (low, high)]
    found = known.AutoDateLocator(minticks=min(most, 2), maxticks=most).tick_values(*ends)
    dates = np.round(np.asarray(found) * DAY).astype("datetime64[s]")
    ticks = dates.astype(np.float64)
    dates = dates[(ticks >= low) & (ticks <= high)]
    units = ("Y", "M", "D", "m")
    unit = next((one for one in units if (dates.astype(f"datetime64[{one}]") == dates).all()), "s")
    texts = [str(date).replace("T", " ") for date in dates.astype(f"datetime64[{unit}]")]
    return dates.astype(np.float64), texts
