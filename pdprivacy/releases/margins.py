"""Margins of tables: the label of their sums, and the sums of noisy numbers by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import instance
from pdprivacy.core.statistics import Moments
from pdprivacy.core.statistics.confidence import Ends
from pdprivacy.errors import ParameterError
from pdprivacy.releases.results import Result
from pdprivacy.types import Floats

ALL = "All"
"""The label of margins, as pandas names it."""


def margin_label(name: str | None) -> str:
    """Return the label of the margins, the argument ``margins_name``."""
    return ALL if name is None else instance(name, str, "margins_name")


def with_all(index: pd.Index[Any], name: str) -> pd.Index[Any]:
    """Return the index with the label of the sums at its end, as `pandas.crosstab` names it.

    Raises ParameterError where a declared label is the same.
    """
    for level in range(index.nlevels):
        if name in set(index.get_level_values(level)):
            raise ParameterError(
                f"'margins_name' must be no declared label of column {index.names[level]!r} (got {name!r}).",
                f"margins_name={f'{name} of them'!r}.",
            )
    if isinstance(index, pd.MultiIndex):
        last = (name, *[""] * (index.nlevels - 1))
        return pd.MultiIndex.from_tuples([*index.tolist(), last], names=index.names)
    return pd.Index([*index.tolist(), name], name=index.name, dtype=object, tupleize_cols=False)


def below(heads: Sequence[pd.Index[Any]], index: pd.Index[Any]) -> pd.Index[Any]:
    """Return column labels with each label of the heads above all labels of the index."""
    if not heads:
        return index
    cells = [label if isinstance(index, pd.MultiIndex) else (label,) for label in index.tolist()]
    tuples: list[tuple[Any, ...]] = [()]
    for head in heads:
        tuples = [(*label, other) for label in tuples for other in head.tolist()]
    names = [*(name for head in heads for name in head.names), *index.names]
    return pd.MultiIndex.from_tuples([(*label, *cell) for label in tuples for cell in cells], names=names)


def summed(cells: Floats, *, columns: bool = True) -> Floats:
    """Return a table with a last row of sums, and a last column of sums unless ``columns`` is False."""
    below_all = cells.sum(axis=0, keepdims=True)
    if not columns:
        return np.concatenate([cells, below_all])
    across = cells.sum(axis=1, keepdims=True)
    return np.block([[cells, across], [below_all, across.sum(keepdims=True)]])


def with_margins_of_groups(
    result: Result, statistic: Moments, shape: tuple[int, int], *, columns: bool
) -> Result:
    """Return statistics per group, of a table of groups of this shape, with those of its rows and columns.

    The statistics of a margin are made of the sums of the noisy numbers of its groups, so they cost nothing
    more and have the noise of all these groups.

    ``columns``: whether there is a column of margins beside the row of margins.
    """
    size = summed(np.ones(shape), columns=columns)
    noisy = [
        replace(
            part,
            values=summed(part.values.reshape(shape), columns=columns).ravel(),
            std=(part.std * np.sqrt(size)).ravel(),
        )
        for part in result.noisy
    ]
    answer = statistic.answer_of(noisy)
    if statistic.limits is not None and result.bounding is None:
        lower, upper = (np.broadcast_to(limit, np.shape(answer.values)) for limit in statistic.limits)
        answer = replace(answer, lower=lower, upper=upper)
    groups = np.zeros(size.shape, bool)
    groups[: shape[0], : shape[1]] = True

    def interval(level: float) -> Ends:
        assert answer.interval is not None
        ends = [np.array(end, np.float64) for end in answer.interval(level)]
        for end, own in zip(ends, result.interval(level), strict=True):
            end[groups.ravel()] = own
        return ends[0], ends[1]

    return replace(result, answer=replace(answer, interval=interval), offsets=None)
