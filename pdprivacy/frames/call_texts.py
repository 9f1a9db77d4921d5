"""Calls and their arguments as text: equal calls have equal texts in every process.

Steps of pipelines store these texts with releases, and compare them when a step is tried again, so they stay
as they are. A frame with ``reuse=True`` compares them within a process.
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

from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import PROJECT
from pdprivacy.core.privacy import Confidential
from pdprivacy.declaration.linear import LinearConstraint
from pdprivacy.errors import ParameterError

LATER: Mapping[str, Mapping[str, Any]] = {
    **{method: {"bounding": PROJECT} for method in ("quantile", "GroupBy.quantile")},
    "crosstab": {"dropna": False},
    "find_bounds": {"method": "reach"},
    "find_labels": {"counts": False, "max_labels": 1},
    "pivot_table": {"margins": False},
}
"""Arguments that an earlier version did not have, and whose default is not None, by method."""


def call_texts(protected: Facts, method: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a call in texts that are the same in every run; of the records only how they were declared.

    Arguments that are None are left out, since a later version may have further arguments. `LATER` ones whose
    default is not None are left out where they have this default, and None is written as "none".
    """
    passed = {name: value for name, value in arguments.items() if value is not None}
    for name, default in LATER.get(method, {}).items():
        if passed.setdefault(name, "none") == default:
            del passed[name]
    return {
        "release": method,
        **argument_texts(passed, arrays=True),
        "after": text_of([step.text for step in protected.lineage], "after"),
        "declaration": protected.domain.fingerprint(),
        "neighbors": str(protected.unit),
    }


# ---------------------------------------------------------------- calls and arguments as text

_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)
_SCALARS = (*_DATES, UUID, PurePath, bytes, bytearray)
_PRINTED = (range, pd.Interval, pd.Period)
"""Types whose ``str`` leaves out a part of the value, or takes as long as the value is."""
_ARRAYS = (np.ndarray, pd.Index, pd.Series)
MOST_DIGITS = 1000
"""The longest number that is written as a decimal or fraction."""
SEED = "rng"
"""The argument whose value is never stored: whoever knows it can subtract the noise."""


def text_of(value: Any, name: str, *, arrays: bool = False) -> str:
    """Return a value as text: the same for 1, 1.0 and ``Fraction(1)``, another for a list and a tuple.

    The order of a mapping counts, since an answer may have its rows in that order.

    ``name``: of the argument, for errors. ``arrays``: whether an array or Series is taken as a list; a Series
    with labels of its own as a list of pairs.

    Raises ParameterError for a frame, a number made of confidential counts, and any other object that has no
    text of its own.

    >>> text_of({"b": [0.5, None], "a": ("x", True)}, "by")
    '{"b": [1/2, None], "a": ("x", True)}'
    """
    if isinstance(value, Confidential):
        raise ParameterError(f"{name!r} is written down, and this number was made of confidential counts.")
    if arrays and isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}({text_of(value.value, name, arrays=arrays)})"
    if value is None or value is pd.NA or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float | Decimal | Rational):
        return _number(value)
    if isinstance(value, _SCALARS):
        return f"{type(value).__qualname__} {json.dumps(str(value))}"
    if isinstance(value, _PRINTED):
        return repr(value)
    if isinstance(value, LinearConstraint):
        limits = {"lower": value.lower, "upper": value.upper}
        return f"LinearConstraint({text_of(dict(value.terms), name)}, {text_of(limits, name)})"
    if value is ...:
        return "..."
    if isinstance(value, Mapping):
        pairs = (f"{text_of(key, name)}: {text_of(item, name, arrays=arrays)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, set | frozenset):
        return f"set({', '.join(sorted(text_of(item, name, arrays=arrays) for item in value))})"
    listed = isinstance(value, Sequence) or (arrays and isinstance(value, _ARRAYS))
    if not listed:
        raise ParameterError(
            f"{name!r} cannot be compared with its value in a repeated call of the step "
            f"(got {type(value).__name__}).",
            "pass text, numbers, dates, lists or mappings of them; data is the first argument of a step.",
        )
    items = value.items() if isinstance(value, pd.Series) and not _counts_rows(value.index) else value
    parts = [text_of(item, name, arrays=arrays) for item in items]
    if isinstance(value, tuple):
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"[{', '.join(parts)}]"


def _counts_rows(index: pd.Index[Any]) -> bool:
    """Return whether an index is 0, 1, 2 and so on."""
    return index.equals(pd.RangeIndex(len(index)))


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
    """Return the names whose values differ, in order; a name that one of them lacks stands for None.

    An argument that an earlier version did not have is None by default.
    """
    none = text_of(None, "")
    names = dict.fromkeys([*before, *now])
    return [name for name in names if before.get(name, none) != now.get(name, none)]
