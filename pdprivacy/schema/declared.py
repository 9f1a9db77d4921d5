"""What a built-in check of pandera declares, by its name and statistics; the same for every engine."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.domain import Column


def check_text(check: Any, *, values: bool = True) -> str:
    """What was declared, in words of the declaration; without ``values`` by its name alone."""
    if isinstance(check, str):
        known = re.fullmatch(r"[a-z_]+|(?:coerce_)?dtype\(.*\)|field_name\(.*\)", check)
        return check if known else "validation"
    name = check.name if isinstance(check.name, str) and check.name.isidentifier() else None
    statistics = getattr(check, "statistics", None) or {}
    if name and statistics and values:
        shown = [
            in_order(value) if isinstance(value, set | frozenset) else value
            for key, value in statistics.items()
            if value is not None and not (key in ("include_min", "include_max") and value)
        ]
        return f"{name}({', '.join(map(repr, shown))})"
    return name or (check.error if isinstance(check.error, str) else "a check without a name")


End: TypeAlias = tuple[int | float, bool]
"""A bound, and whether it belongs to the interval."""


def ends(check: Any) -> tuple[End | None, End | None]:
    """The lower and upper end that a built-in check declares; infinite ends declare nothing."""
    (low, high), (closed_below, closed_above) = bounds_of(check), closed(check)
    return _end(low, closed_below), _end(high, closed_above)


def closed(check: Any) -> tuple[bool, bool]:
    """Whether the lower and the upper end that a built-in check names belong to the interval."""
    statistics = check.statistics or {}
    below = check.name != "greater_than" and bool(statistics.get("include_min", True))
    above = check.name != "less_than" and bool(statistics.get("include_max", True))
    return below, above


BOUNDS = {"in_range", "greater_than_or_equal_to", "greater_than", "less_than_or_equal_to", "less_than"}


def bounds_of(check: Any) -> tuple[Any, Any]:
    """What a built-in check names as its lower and upper end, of any type; None where it names none."""
    statistics = (check.statistics or {}) if check.name in BOUNDS else {}
    return statistics.get("min_value"), statistics.get("max_value")


def _end(value: Any, closed: bool) -> End | None:
    return (value, closed) if is_number(value) and math.isfinite(value) else None


def is_number(value: Any) -> bool:
    """Whether it is a real number: no truth value, and no duration, which numpy takes for an integer."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)


def reaches(bound: float | None, end: End, sign: int) -> bool:
    """Whether a declared bound is on the right side of the end of a check."""
    value, closed = end
    if bound is None:
        return False
    return sign * bound > sign * value or (closed and bound == value)


def implied_by_dates(check: Any, column: Column) -> bool:
    """Whether a check is a bound that every date of a column meets; of an open end, the end itself aside.

    Dates and ends are rounded down to the resolution of the column.
    """
    bounds = bounds_of(check)
    if column.timeline is None or check.groupby is not None or all(end is None for end in bounds):
        return False
    if (column.nullable and not check.ignore_na) or column.lower is None or column.upper is None:
        return False
    low, high = (None if end is None else column.timeline.position(end) for end in bounds)
    below = low is None or math.floor(low) <= column.lower
    # of an open end the last unit before it
    last = None if high is None else math.floor(high) if closed(check)[1] else math.ceil(high) - 1
    return below and (last is None or last >= column.upper)


def allowed(check: Any) -> list[Any] | None:
    """The labels that ``isin`` or ``eq`` declares, in order and without nulls; else None."""
    statistics = check.statistics or {}
    if check.name == "isin" and "allowed_values" in statistics:
        values = statistics["allowed_values"]
        return [value for value in in_order(values) if not pd.isna(value)]
    if check.name == "equal_to" and "value" in statistics:
        return [statistics["value"]]
    return None


def in_order(values: Iterable[Any]) -> list[Any]:
    """The values as declared; those of a set, which has no order, by type name and text."""
    if isinstance(values, set | frozenset):
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
    return list(dict.fromkeys(values))
