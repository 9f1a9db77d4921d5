"""Whose the records are: at most so many of each unit are kept."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import noise
from pdprivacy.checks import printable
from pdprivacy.errors import InvalidDataError, ParameterError, got
from pdprivacy.expressions import dense

__all__ = ["bounded", "codes_of", "most_rows", "name_of", "with_dropped"]

MOST_ROWS = 10**9
"""Of a unit."""

Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]


def most_rows(unit: Hashable, max_rows: Any, public_rows: Any) -> int:
    """How many records of a unit are kept: one where each record is a unit."""
    if (unit is None) != (max_rows is None):
        raise ParameterError(
            "'unit' and 'max_rows' must be given together: the column of the unit, and the number of its "
            "records that are kept.",
            'unit="person_id", max_rows=3.',
        )
    if unit is None:
        return 1
    if isinstance(max_rows, bool) or not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ParameterError(f"'max_rows' must be a positive whole number (got {got(max_rows)}).")
    if public_rows is not None:
        raise ParameterError(
            "'public_rows' cannot be combined with 'unit': how many rows are kept is private."
        )
    if max_rows > MOST_ROWS:
        raise ParameterError(f"'max_rows' must be at most {MOST_ROWS} (got {got(max_rows)}).")
    return int(max_rows)


def name_of(unit: Any) -> str | None:
    """The label of the column of the unit as text, another one for each label."""
    if unit is None or isinstance(unit, str):
        return unit if unit is None else printable(unit)
    if not isinstance(unit, int | float | tuple | date | np.generic) or isinstance(unit, bool):
        raise ParameterError(
            f"'unit' must be a column label (got {type(unit).__name__}).", 'unit="person_id".'
        )
    try:
        return printable(f"{type(unit).__name__} {unit!r}")
    except ValueError:  # a whole number of more digits than Python writes
        raise ParameterError("'unit' must be the label of one column of the frame.") from None


def codes_of(frame: pd.DataFrame, unit: Hashable) -> Integers:
    """The unit of each record, as a number; refuses records of nobody."""
    from pdprivacy.engine.unit_codes import unit_codes

    if unit not in frame.columns:
        raise ParameterError(
            "The schema leaves the column of the unit out.",
            'declare it, or strict=False in place of "filter".',
        )
    _refuse_rounded_names(frame[unit])
    codes = unit_codes(frame[unit])
    if (codes < 0).any():
        raise InvalidDataError(
            "The column of the unit holds nulls, and a record of nobody cannot be counted.",
            "leave such records out before df.dp.protect(...), or give each a name of its own.",
        )
    return codes


def _refuse_rounded_names(names: pd.Series[Any]) -> None:
    """Refuse floats that may each stand for several integers: one null makes floats of integers."""
    if names.dtype.kind != "f":
        return
    from pdprivacy.engine.unit_codes import filled

    numbers = np.abs(filled(dense(names) if isinstance(names.dtype, pd.SparseDtype) else names))
    if bool((np.isfinite(numbers) & (numbers >= 2.0 ** (np.finfo(numbers.dtype).nmant + 1))).any()):
        raise InvalidDataError(
            "The column of the unit holds floats that may stand for several integers each.",
            f'read it as integers or as text: pd.read_csv(PATH, dtype={{{names.name!r}: "Int64"}}).',
        )


def bounded(codes: Integers, most: int, source: noise.Source) -> Mask:
    """Which records are kept: at most so many of each unit, any of them with the same probability."""
    kept = np.ones(len(codes), dtype=bool)
    times = np.bincount(codes)
    crowded = np.flatnonzero(times[codes] > most)
    if len(crowded):
        from pdprivacy.engine.unit_codes import lowest_of_each

        kept[crowded] = False
        keys = noise.shuffled_keys(len(crowded), source)
        kept[crowded[lowest_of_each(codes[crowded], keys, most)]] = True
    return kept


def with_dropped(quality: pd.DataFrame, unit: Hashable, dropped: int) -> pd.DataFrame:
    """The curator's figures with the records that were too many of their unit."""
    names = list(quality.index)
    rows = dict(zip(names, quality.to_dict("records"), strict=True))
    row = rows.setdefault(unit, dict.fromkeys(quality.columns, 0))
    row["dropped"] += dropped
    index = pd.Index(list(rows), name=quality.index.name, tupleize_cols=False)
    return pd.DataFrame(list(rows.values()), index=index, columns=quality.columns)
