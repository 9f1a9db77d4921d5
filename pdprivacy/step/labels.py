"""Labels as JSON, and back: of all kinds that a declaration may hold and a file can keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from pdprivacy.domain import Domain
from pdprivacy.errors import MetadataError, ParameterError

__all__ = ["check_labels", "from_json", "to_json"]

_NULLS: dict[str, Any] = {"NaT": pd.NaT, "NA": pd.NA}

# of each type that JSON has no word for: its name there, how it is written and how it is read
_KINDS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    float: ("float", repr, float),  # that is not finite
    tuple: (
        "tuple",
        lambda label: [to_json(part) for part in label],
        lambda parts: tuple(map(from_json, parts)),
    ),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    Decimal: ("decimal", str, Decimal),
    Fraction: ("fraction", str, Fraction),
    UUID: ("uuid", str, UUID),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    timedelta: (
        "timedelta",
        lambda label: [label.days, label.seconds, label.microseconds],
        lambda parts: timedelta(*parts),
    ),
    pd.Timestamp: ("Timestamp", pd.Timestamp.isoformat, pd.Timestamp),
    pd.Timedelta: ("Timedelta", pd.Timedelta.isoformat, pd.Timedelta),
    pd.Interval: (
        "Interval",
        lambda label: [to_json(label.left), to_json(label.right), label.closed],
        lambda parts: pd.Interval(from_json(parts[0]), from_json(parts[1]), parts[2]),
    ),
    pd.Period: (
        "Period",
        lambda label: [str(label), label.freqstr],
        lambda parts: pd.Period(parts[0], freq=parts[1]),
    ),
}
_READERS = {name: read for name, _, read in _KINDS.values()}


def to_json(label: Any) -> Any:
    """A label as JSON: text, numbers and truth values as they are, all else with its kind.

    Raises ParameterError for a label of a kind that has no text, such as a member of an Enum.

    >>> to_json("north"), to_json((1, None)), to_json(Decimal("0.5"))
    ('north', {'tuple': [1, None]}, {'decimal': '0.5'})
    """
    if label is None or type(label) in (str, bool, int) or (type(label) is float and math.isfinite(label)):
        return label
    for name, null in _NULLS.items():
        if label is null:
            return {"null": name}
    if isinstance(label, np.datetime64 | np.timedelta64):
        return to_json(pd.Timestamp(label) if isinstance(label, np.datetime64) else pd.Timedelta(label))
    if isinstance(label, np.generic):
        return to_json(label.item())
    known = _KINDS.get(type(label))
    if known is None:
        raise ParameterError(
            f"A label of type {type(label).__name__} cannot be kept in a file.",
            "declare labels that are texts, numbers or dates; or leave the column out: "
            'private.dp.select(["age"]).',
        )
    name, write, _ = known
    return {name: write(label)}


def from_json(stored: Any) -> Any:
    """The label that `to_json` wrote; MetadataError for what it never writes."""
    if not isinstance(stored, dict):
        return stored
    ((name, value),) = stored.items()
    if name == "null":
        return _NULLS[value]
    if name not in _READERS:
        raise MetadataError(f"The file holds a label of an unknown kind ({name!r}).")
    return _READERS[name](value)


def check_labels(domain: Domain) -> None:
    """Refuse a declaration some of whose labels no file can keep, before anything is paid for.

    Raises ParameterError.
    """
    for column in domain.columns:
        if column.role != "identifier":
            for label in (column.name, *(column.categories or ())):
                to_json(label)
