"""The smallest epsilon whose planned margin of error is at most a requested one, by bisection."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.checks import real
from pdprivacy.declaration.timeline import times
from pdprivacy.errors import ParameterError
from pdprivacy.types import Floats

Margin: TypeAlias = "float | datetime.timedelta | np.timedelta64"
"""A margin of error: a number, or a time for dates."""

TIMES = datetime.timedelta | np.timedelta64
DECADES = 9
PER_DECADE = 9000
LEAST = 10**-6
MOST = 10**3
LARGEST_MARGIN = 1e300


def epsilon_at(position: int) -> Fraction:
    """Return a number of four digits between 1e-6 and 1000; the positions count in order, from 0.

    >>> [str(epsilon_at(position)) for position in (0, 1, 9000 * 9)]
    ['1/1000000', '1001/1000000000', '1000']
    """
    decade, digits = divmod(position, PER_DECADE)
    return Fraction((1000 + digits) * 10**decade, 10**9)


def required_epsilon(planned: Callable[[Fraction], Any], margin: Any, name: str = "plus_minus") -> Fraction:
    """Return the smallest epsilon of four digits at which no ``planned`` margin exceeds ``margin``.

    ``planned`` returns the margins of error at an epsilon. They count as infinite where they are unknown, or
    where epsilon is too small for the mechanism; one that is unknown at any epsilon is left out.
    Where margins do not fall as epsilon grows, the result meets ``margin``, and the next smaller epsilon does
    not.

    Raises ParameterError where no epsilon or every epsilon reaches ``margin``.
    """
    most = planned(epsilon_at(DECADES * PER_DECADE))
    seconds = most.dtype.kind == "m"
    requested = _seconds(margin, name) if seconds else real(margin, name, 0, LARGEST_MARGIN)
    known = ~pd.isna(most)
    if not known.any():
        raise ParameterError(
            f"The plan states no margin of error at any epsilon, so {name!r} cannot be reached.",
            f"leave {name} out.",
        )

    def largest(position: int) -> float:
        try:
            halves = _as_floats(planned(epsilon_at(position)))[known]
        except ParameterError:
            return math.inf
        return float(np.where(np.isnan(halves), np.inf, halves).max())

    def text(number: float) -> str:
        return str(times([number])[0]) if seconds else f"{number:.3g}"

    if (best := largest(DECADES * PER_DECADE)) > requested:
        raise ParameterError(
            f"No epsilon up to {MOST:,} reaches a margin of error of {text(requested)}: "
            f"there the plan has {text(best)}.",
            f"a larger {name}, or more rows." if name == "plus_minus" else f"more {name}.",
        )
    if (worst := largest(0)) <= requested:
        raise ParameterError(
            f"Every epsilon from {LEAST:g} on reaches a margin of error of {text(requested)}: "
            f"there the plan has {text(worst)}.",
            f"a smaller {name}." if name == "plus_minus" else f"fewer {name}.",
        )
    missing, reaching = 0, DECADES * PER_DECADE
    while reaching - missing > 1:
        middle = (missing + reaching) // 2
        if largest(middle) <= requested:
            reaching = middle
        else:
            missing = middle
    return epsilon_at(reaching)


def _as_floats(margins: Any) -> Floats:
    """Return margins as numbers, and times in seconds."""
    if margins.dtype.kind == "m":
        margins = pd.Series(margins).dt.total_seconds()
    return np.asarray(margins, np.float64)


def _seconds(margin: Any, name: str) -> float:
    """Return the seconds of a time."""
    if not isinstance(margin, TIMES) or pd.isna(margin) or pd.Timedelta(margin) < pd.Timedelta(0):
        raise ParameterError(
            f"{name!r} must be a time, because the columns hold dates.", f"{name}=pd.Timedelta(days=1)"
        )
    return pd.Timedelta(margin).total_seconds()
