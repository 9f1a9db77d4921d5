"""Calls and their arguments as text: equal calls have equal texts in every process.

Texts are stored with releases and compared when a step is tried again, so they stay as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Rational
from pathlib import PurePath
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from pdprivacy.errors import ParameterError
from pdprivacy.privacy import Confidential

__all__ = ["argument_texts", "differing", "text_of"]

_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)
_SCALARS = (*_DATES, UUID, PurePath, bytes, pd.Interval, pd.Period)
_ARRAYS = (np.ndarray, pd.Index, pd.Series)
MOST_DIGITS = 1000
"""The longest number that is written as a decimal or fraction."""
SEED = "rng"
"""The argument whose value is never stored: whoever knows it can subtract the noise."""


def text_of(value: Any, name: str, *, arrays: bool = False) -> str:
    """Return a value as text: the same for 1, 1.0 and ``Fraction(1)``, another for a list and a tuple.

    ``name``: of the argument, for errors. ``arrays``: whether an array or Series is taken as a list.

    Raises ParameterError for a frame, a number made of confidential counts, and any other object that has no
    text of its own.

    >>> text_of({"b": [0.5, None], "a": ("x", True)}, "by")
    '{"a": ("x", True), "b": [1/2, None]}'
    """
    if isinstance(value, Confidential):
        raise ParameterError(f"{name!r} is written down, and this number was made of confidential counts.")
    if arrays and isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if value is None or value is pd.NA or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float | Decimal | Rational):
        return _number(value)
    if isinstance(value, _SCALARS):
        return f"{type(value).__qualname__} {json.dumps(str(value))}"
    if isinstance(value, Mapping):
        pairs = sorted((text_of(key, name), text_of(one, name, arrays=arrays)) for key, one in value.items())
        return "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
    if isinstance(value, set | frozenset):
        return f"set({', '.join(sorted(text_of(one, name, arrays=arrays) for one in value))})"
    listed = isinstance(value, Sequence) or (arrays and isinstance(value, _ARRAYS))
    if not listed:
        raise ParameterError(
            f"{name!r} cannot be compared with its value in a repeated call of the step "
            f"(got {type(value).__name__}).",
            "pass text, numbers, dates, lists or mappings of them; data is the first argument of a step.",
        )
    parts = [text_of(one, name, arrays=arrays) for one in value]
    if isinstance(value, tuple):
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"[{', '.join(parts)}]"


def _number(value: float | Decimal | Rational) -> str:
    """Return a number as the fraction that its shortest decimal is."""
    if not isinstance(value, Rational):
        if not math.isfinite(value):
            return str(value)
        exponent = value.adjusted() if isinstance(value, Decimal) else 0
        if abs(exponent) > MOST_DIGITS:  # written out, it would fill the memory
            return f"Decimal {value}"
    whole = Fraction(repr(value) if isinstance(value, float) else value)
    if max(abs(whole.numerator), whole.denominator) > 10**MOST_DIGITS:  # Python writes no such decimals
        return f"{whole.numerator:#x}/{whole.denominator:#x}"
    return str(whole)


def argument_texts(arguments: Mapping[str, Any], *, arrays: bool = False) -> dict[str, str]:
    """Return each argument as text, by name; a seed only as given or not."""
    return {
        name: ("None" if value is None else "given") if name == SEED else text_of(value, name, arrays=arrays)
        for name, value in arguments.items()
    }


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names whose values differ, in order."""
    return [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
