"""Records that do not meet the declaration: each kind of fault has one declared fate.

    fault            "raise"   "clip"                    "drop"
    out of bounds    refused   moved to nearest bound    record left out
    infinite         refused   moved to nearest bound    record left out
    null, undeclared refused   refused                   record left out
    unseen label     refused   refused                   record left out
    wrong type       refused   refused                   record left out

Each fate looks at one record alone, so it is a transform that a later privacy
guarantee may rest on. Errors name columns and faults, never a value.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.domain import Column, Domain
from pdprivacy.errors import InvalidDataError, ParameterError
from pdprivacy.privacy import rational as _rational
from pdprivacy.privacy import show

__all__ = ["Conformed", "Fate", "conform"]

Fate: TypeAlias = Literal["raise", "clip", "drop"]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Conformed:
    """A frame that meets its declaration, and what was done to make it so (for the curator).

    ``quality``: per declared column the number of values clipped, null, unseen and of records
    dropped because of it. ``touching``: columns whose declared bound is the data's own extreme.
    """

    frame: pd.DataFrame
    quality: pd.DataFrame
    touching: tuple[Hashable, ...]


@dataclass(slots=True)
class _Faults:
    null: Mask
    outside: Mask
    unseen: Mask
    mistyped: Mask
    touching: bool = False
    numbers: NDArray[np.float64] | None = field(default=None)


def conform(frame: pd.DataFrame, domain: Domain, on_invalid: Fate = "raise") -> Conformed:
    """``frame`` with every declared column within its declaration; the frame itself stays as it was.

    Raises
    ------
    ParameterError : unknown ``on_invalid``.
    InvalidDataError : a declared column is missing or appears twice, or a fault that
        ``on_invalid`` does not mend; names columns and faults.
    """
    if on_invalid not in get_args(Fate):
        raise ParameterError(f"'on_invalid' must be one of 'raise', 'clip', 'drop' (got {on_invalid!r}).")
    for name in domain:
        found_labels = int((frame.columns == name).sum()) if name in frame.columns else 0
        if found_labels != 1:
            held = "appears more than once" if found_labels else "is declared but not in the frame"
            raise InvalidDataError(
                f"Column {name!r} {held}.", "the frame needs exactly one column of that label."
            )
    faults = {column.name: _faults(frame[column.name], column) for column in domain.columns}
    refused = _refused(domain, faults, on_invalid)
    if refused:
        raise InvalidDataError(
            "The data does not meet its declaration: " + "; ".join(refused) + ".",
            'on_invalid="clip" moves out-of-bounds numbers to the nearest bound, '
            'on_invalid="drop" leaves faulty records out; or correct the data or the declaration.',
        )
    keep = np.ones(len(frame), dtype=bool)
    changed = {}
    for column in domain.columns:
        found = faults[column.name]
        if on_invalid == "drop":
            keep &= ~_faulty(found, column)
        elif found.outside.any():
            changed[column.name] = _clipped(frame[column.name], column, found)
    conformed = frame.assign() if not changed else frame.copy(deep=False)
    for name, values in changed.items():
        conformed[name] = values
    if not keep.all():
        conformed = conformed.loc[keep]
    for column in domain.columns:
        conformed = _whole_again(conformed, column)
    return Conformed(conformed, _quality(domain, faults, on_invalid), _touching(domain, faults))


def _faults(values: pd.Series[Any], column: Column) -> _Faults:
    null = values.isna().to_numpy(dtype=bool)
    if values.dtype.kind == "f":  # a nullable float may hold NaN besides NA
        null = null | np.isnan(values.to_numpy(dtype=np.float64, na_value=np.nan))
    none = np.zeros(len(values), dtype=bool)
    found = _Faults(null, none, none, none)
    if column.kind == "category":
        if column.categories is not None:
            found.unseen = ~null & ~_among(values, column.categories)
        return found
    if column.kind == "boolean" and values.dtype.kind not in "bO":
        found.mistyped = ~null
        return found
    array, typed = _as_numbers(values, boolean=column.kind == "boolean")
    found.mistyped = ~null & ~typed
    good = ~null & typed
    if column.kind == "integer" and values.dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):
            broken = good & np.isfinite(array) & (array != np.rint(array))
        found.mistyped |= broken
        good &= ~broken
    if column.categories is not None and column.kind != "boolean":
        found.unseen = good & ~np.isin(array, np.asarray(column.categories, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        if column.lower is not None:
            found.outside = found.outside | (good & (array < column.lower))
        if column.upper is not None:
            found.outside = found.outside | (good & (array > column.upper))
    if column.categories is None and good.any() and column.lower is not None and column.upper is not None:
        held = array[good]
        found.touching = bool(held.min() == column.lower or held.max() == column.upper)
    found.outside &= ~found.unseen
    found.numbers = array
    return found


def _as_numbers(values: pd.Series[Any], *, boolean: bool) -> tuple[NDArray[np.float64], Mask]:
    """A column as doubles, and which cells are numbers (truth values where ``boolean``)."""
    if values.dtype.kind in ("b" if boolean else "iuf"):
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return array, np.ones(len(array), dtype=bool)
    if values.dtype != object:
        return np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)

    def number(cell: object) -> float:
        if boolean:
            return float(cell) if isinstance(cell, bool | np.bool_) else np.nan
        real = isinstance(cell, numbers.Real | Decimal) and not isinstance(cell, bool | np.bool_)
        try:
            return float(cell) if real else np.nan  # type: ignore[arg-type]
        except OverflowError:
            return float("inf") if cell > 0 else float("-inf")  # type: ignore[operator]

    array = np.array([number(cell) for cell in values], dtype=np.float64)
    return array, ~np.isnan(array)


def _among(values: pd.Series[Any], categories: tuple[Any, ...]) -> Mask:
    if isinstance(values.dtype, pd.CategoricalDtype):
        known = set(categories)
        held = np.array([label in known for label in values.cat.categories] + [False], dtype=bool)
        return held[values.cat.codes.to_numpy()]
    try:
        return np.asarray(values.isin(list(categories)).to_numpy(dtype=bool))
    except TypeError:  # cells without a hash
        known = set(categories)
        return np.array([isinstance(cell, Hashable) and cell in known for cell in values], dtype=bool)


def _faulty(found: _Faults, column: Column) -> Mask:
    bad = found.outside | found.unseen | found.mistyped
    return bad if column.nullable else bad | found.null


def _refused(domain: Domain, faults: dict[Hashable, _Faults], on_invalid: Fate) -> list[str]:
    if on_invalid == "drop":
        return []
    lines = []
    for column in domain.columns:
        found = faults[column.name]
        reasons = []
        if found.mistyped.any():
            reasons.append(f"values that are not of kind {column.kind!r}")
        if found.null.any() and not column.nullable:
            reasons.append("nulls, which are not declared (nullable=True would)")
        if found.unseen.any():
            reasons.append("labels that are not declared")
        if found.outside.any() and on_invalid == "raise":
            reasons.append(f"values outside [{_bound(column.lower)}, {_bound(column.upper)}]")
        if reasons:
            lines.append(f"column {column.name!r} has {' and '.join(reasons)}")
    return lines


def _bound(bound: float | int | None) -> str:
    return "..." if bound is None else show(_rational(bound, "bound"))


def _clipped(values: pd.Series[Any], column: Column, found: _Faults) -> pd.Series[Any]:
    if values.dtype.kind in "iuf":
        return values.clip(column.lower, column.upper)
    array = found.numbers
    assert array is not None
    moved = values.copy()
    low = np.zeros(len(array), dtype=bool) if column.lower is None else array < column.lower
    moved[low] = column.lower
    moved[found.outside & ~low] = column.upper
    return moved


def _whole_again(frame: pd.DataFrame, column: Column) -> pd.DataFrame:
    """An integer column that nulls had made floating, integer again once they are gone."""
    values = frame[column.name]
    floating = column.kind == "integer" and values.dtype == np.float64
    if floating and bool(np.isfinite(values.to_numpy()).all()):
        frame = frame.copy(deep=False)
        frame[column.name] = values.astype(np.int64)
    return frame


def _quality(domain: Domain, faults: dict[Hashable, _Faults], on_invalid: Fate) -> pd.DataFrame:
    rows = []
    for column in domain.columns:
        found = faults[column.name]
        rows.append(
            {
                "clipped": int(found.outside.sum()) if on_invalid == "clip" else 0,
                "null": int(found.null.sum()),
                "unseen": int(found.unseen.sum()),
                "dropped": int(_faulty(found, column).sum()) if on_invalid == "drop" else 0,
            }
        )
    index = pd.Index(list(domain), name="column", tupleize_cols=False)
    return pd.DataFrame(rows, index=index, columns=["clipped", "null", "unseen", "dropped"])


def _touching(domain: Domain, faults: dict[Hashable, _Faults]) -> tuple[Hashable, ...]:
    return tuple(name for name in domain if faults[name].touching)
