"""Constants that a step takes: finite numbers and labels, told from what may hold cells."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from pdprivacy.checks import finite
from pdprivacy.domain import Column, is_null, plain
from pdprivacy.errors import ParameterError, kind

__all__ = ["INTEGERS", "NUMERIC", "label", "number", "shown"]

NUMERIC = ("float", "integer")
"""The kinds of column that are moved by a bound."""

INTEGERS = (-(2**63), 2**63 - 1)
"""What a column of integers can hold."""


def shown(value: Any) -> Any:
    """A constant, or a mapping to constants, as a person writes it."""
    if isinstance(value, Mapping):
        return {plain(name): plain(one) for name, one in value.items()}
    return plain(value)


def number(value: Any, column: Column, what: str) -> int | float:
    """A finite constant that cells of the column can equal.

    Raises
    ------
    ParameterError : no finite number, one made of confidential counts, or for a column of integers no
        whole number, or one beyond 64 bits; for a column of dates no date.
    """
    if getattr(value, "confidential", False) is True:
        raise ParameterError(f"{what} is public, and this number was made of confidential counts.")
    if column.timeline is not None:
        return math.floor(column.timeline.position(value, f"{what} of column {column.name!r}"))
    found: Any = plain(value)
    real = isinstance(found, numbers.Real) and not isinstance(found, bool)
    if not real or not finite(found):
        raise ParameterError(f"{what} of column {column.name!r} must be a finite number (got {kind(value)}).")
    if column.kind != "integer":
        return float(found)
    if found != math.floor(found):
        raise ParameterError(
            f"{what} of the integer column {column.name!r} must be a whole number (got {kind(value)})."
        )
    whole = int(found)
    if not INTEGERS[0] <= whole <= INTEGERS[1]:
        raise ParameterError(
            f"{what} of the integer column {column.name!r} must be a number of 64 bits (got {kind(value)})."
        )
    return whole


def label(value: Any, what: str) -> Any:
    """A constant that may be a label: hashable, no container, no null, and of text that can be encoded.

    Raises
    ------
    ParameterError : anything else.
    """
    found = plain(value)
    container = hasattr(found, "__iter__") and not isinstance(found, str | bytes | tuple)
    try:
        hash(found)
    except TypeError:
        container = True
    if container or is_null(found) or getattr(found, "confidential", False) is True:
        raise ParameterError(f"{what} must be a label (got {kind(value)}).")
    if isinstance(found, str) and any("\ud800" <= sign <= "\udfff" for sign in found):
        raise ParameterError(f"{what} must be encodable text (got {kind(value)}).")
    return found
