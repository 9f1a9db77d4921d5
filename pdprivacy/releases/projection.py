"""The numbers of a release before they were projected onto what is possible, and numbers as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.errors import MetadataError
from pdprivacy.releases.metadata import COUNTS, PROJECT, Metadata, Released, as_released, attach, read
from pdprivacy.types import Floats


def unprojected(released: Released) -> Released:
    """Return a release as ``bounding=None`` returns it, at no cost; one with another bounding as it is.

    The numbers before a projection have no bias (of a ratio: hardly any), so that averages, differences and
    sums of many are right. They may be beyond what is possible: negative variances, shares above 1.

    Raises MetadataError for a frame without metadata, or one whose numbers were changed.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("member", "boolean"),))
    >>> private = pdprivacy.protect(pd.DataFrame({"member": [True] * 49 + [False]}), domain, epsilon=1)
    >>> share = private.dp.proportion("member", epsilon=1, rng=5)
    >>> float(share.iloc[0]), float(unprojected(share).round(3).iloc[0])
    (1.0, 1.118)
    """
    facts, original = read(released), as_released(released)
    if original is None:
        raise MetadataError(
            "The numbers are not those that were released, so those before the projection are not known.",
            "take the release as it was returned; verify() tells.",
        )
    if facts.bounding != PROJECT:
        return original
    if "below_best" in facts.error:
        return _as_drawn(original, facts)
    half = np.array(facts.error_of_each("plus_minus", original.shape))
    before = original.copy()
    if facts.projection is not None:
        at = facts.projection["at"]
        half.reshape(-1)[at] = facts.projection["plus_minus"]
        before = _with_cells(original, at, facts.projection["values"])
    error = {name: each for name, each in facts.error.items() if name not in BIASES}
    error["plus_minus"] = numbers_as_json(half, half.shape)
    stored = {**facts.to_dict(), "error": error, "bounding": None, "bounds": None, "projection": None}
    if facts.constraints is not None:
        stored |= {"constraint": None, "constraints": None}
        counts = facts.statistic in (*COUNTS, "nunique") and facts.normalize is facts.weights is None
        if counts and facts.mechanism in WHOLE_NOISE:
            before = before.astype(np.int64)
    attach(before, stored)
    return before


def _as_drawn(released: Released, facts: Metadata) -> Released:
    """Return quantiles that were sorted as they were drawn, with their ranks and the ends of intervals."""
    error = {name: each for name, each in facts.error.items() if name != RANKS_BEFORE}
    error["below_best"] = facts.error[RANKS_BEFORE]
    before = released.copy()
    if facts.projection is not None:
        at = facts.projection["at"]
        before = _with_cells(released, at, facts.projection["values"])
        for name in {"lower", "upper"} & error.keys():
            ends = np.array(error[name], dtype=object)
            ends.reshape(-1)[at] = facts.projection[name]
            error[name] = ends.tolist()
    attach(before, {**facts.to_dict(), "error": error, "bounding": None, "projection": None})
    return before


RANKS_BEFORE = "below_best_before"
"""The error of sorted quantiles that holds the ranks of the numbers as they were drawn."""

WHOLE_NOISE = ("geometric", "discrete_gaussian")
"""Mechanisms whose noisy counts are integers."""

BIASES = ("bias", "rmse", "worst_case", "note")
"""Errors of bounded numbers alone."""


def _with_cells(released: Released, at: Sequence[int], cells: Sequence[Any]) -> Released:
    """Return a release with other cells at some places, which count row by row; dates are texts."""
    changed: Released = released.copy()
    cell_at: Any = changed.iloc
    if not any(isinstance(cell, str) for cell in cells):
        values = np.array(released, np.float64, order="C")
        values.reshape(-1)[list(at)] = cells
        changed[:] = values
        return changed
    for number, cell in zip(at, cells, strict=True):
        where = number if isinstance(released, pd.Series) else divmod(number, released.shape[1])
        cell_at[where] = pd.Timestamp(cell)
    return changed


def numbers_as_json(numbers: Any, shape: tuple[int, ...]) -> Any:
    """The numbers of a frame as JSON: one number where all are the same, None where one is not finite."""
    values = np.asarray(numbers, np.float64)
    if values.size == 1 and 0 not in shape:
        return values.item() if math.isfinite(values.item()) else None
    values = np.broadcast_to(values, shape)
    if not np.isfinite(values).any():
        return None
    if values.size and bool(np.all(values == values.flat[0])):
        return float(values.flat[0])
    return _with_none(values)


def pairs_as_json(lower: Any, upper: Any, shape: tuple[int, ...]) -> Any:
    """[lower, upper] of all numbers of a frame of this shape, or of each; None for an end that is open."""
    ends = [np.asarray(lower, np.float64), np.asarray(upper, np.float64)]
    if ends[0].size == ends[1].size == 1 and 0 not in shape:
        return [numbers_as_json(end, ()) for end in ends]
    ends = [np.broadcast_to(end, shape) for end in ends]
    pairs = np.stack(ends, axis=-1)
    if pairs.size and all(bool(np.all(end == end.flat[0])) for end in ends):
        pairs = pairs.reshape(-1, 2)[0]
    return _with_none(pairs)


def _with_none(values: Floats) -> Any:
    """Return numbers as lists, with None where JSON has no number."""
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()
