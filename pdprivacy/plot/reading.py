"""Releases as pictures read them: only as they were released, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy import metadata
from pdprivacy.errors import MetadataError
from pdprivacy.plot.canvas import Floats

Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"

LABELS = ("mode", "top_k")
NOT_GROUPED = ("proportion", "value_counts", "histogram")  # whose rows are labels of what is counted itself


@dataclass(frozen=True)
class Read:
    """Released numbers, (R, C, M): by row, column (one where ``columns`` is None) and release.

    ``half``: of the interval around each, from ``lower`` to ``upper``; None of numbers that were selected,
    whose ``lower`` and ``upper`` are NaN. ``bounds``: two arrays, the lower and upper ends of what the
    statistic can be as far as they were kept or are declared of the values of a mean, NaN for none.
    ``by``: the names of the rows, where these are cells of declared columns.
    """

    facts: Mapping[str, Any]
    rows: pd.Index[Any]
    columns: pd.Index[Any] | None
    values: Floats
    lower: Floats
    upper: Floats
    half: Floats | None
    bounds: tuple[Floats, Floats]

    @property
    def many(self) -> int:
        """How many releases are side by side."""
        return int(self.values.shape[2])

    @property
    def by(self) -> list[str]:
        """The declared columns whose cells the rows are; none where the rows are columns."""
        known = {str(name) for name in self.facts["columns"]}
        if self.facts["statistic"] in NOT_GROUPED:
            return []
        names = [str(name) for name in self.rows.names if name is not None]
        return names if len(names) == self.rows.nlevels and set(names) <= known else []


def read(released: Released) -> Read:
    """The numbers of a release.

    Raises
    ------
    MetadataError : it carries no metadata, its numbers are not those that were released, or it holds labels.
    """
    metadata.read(released)
    facts = released.attrs[metadata.KEY]
    statistic = facts["statistic"]
    if not metadata.verify(released):
        raise MetadataError(
            "The numbers are not those that were released, so there is no picture of them: what it would say "
            "of their error would not hold.",
            "released.dp.plot() on the object as it was returned, before it is rounded, sorted or changed.",
        )
    if statistic in LABELS:
        raise MetadataError(
            f"{statistic!r} releases labels and no numbers, so it has no picture.",
            "private.dp.value_counts(column, epsilon=...).dp.plot() draws counts, at a cost of their own.",
        )
    try:
        values = released.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise MetadataError("The release holds something else than numbers, so it has no picture.") from None
    if not values.size:
        raise MetadataError("The release holds no number, so it has no picture.")
    half, ends = None, (np.full(values.shape, np.nan),) * 2
    if "below_best" not in facts["error"]:
        shape = (len(released), 4, -1)
        found = metadata.interval(released).to_numpy(dtype=np.float64).reshape(shape)
        ends = tuple(found[:, place].reshape(values.shape) for place in (2, 3))  # type: ignore[assignment]
        half = (ends[1] - ends[0]) / 2
    bounds = _bounds(facts.get("bounds") or facts.get("value_bounds"), values.shape)
    columns, order = _order(released, facts)
    cubes = [order(one) for one in (values, *ends, *bounds)]
    return Read(
        facts, released.index, columns, cubes[0], cubes[1], cubes[2], None if half is None else order(half),
        (cubes[3], cubes[4]),
    )  # fmt: skip


def _bounds(stored: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Lower and upper bound of each number, NaN where there is none."""
    try:
        pairs = np.broadcast_to(np.array((None, None) if stored is None else stored, np.float64), (*shape, 2))
    except (TypeError, ValueError):
        raise MetadataError("The release metadata does not hold the bounds of each number.") from None
    return pairs[..., 0], pairs[..., 1]


def _order(released: Released, facts: Mapping[str, Any]) -> tuple[pd.Index[Any] | None, Any]:
    """The columns of one release, and what brings numbers to (R, C, M)."""
    rows = len(released)
    if isinstance(released, pd.Series):
        return None, lambda numbers: numbers.reshape(rows, 1, 1)
    many, names = facts.get("releases", 1), released.columns
    whole = isinstance(many, int) and many > 1 and len(names) % many == 0
    if not whole or names.names[0] != "release":
        return names, lambda numbers: numbers.reshape(rows, -1, 1)
    first = names[: len(names) // many]
    inner = first.droplevel(0) if isinstance(first, pd.MultiIndex) else None
    return inner, lambda numbers: numbers.reshape(rows, many, -1).transpose(0, 2, 1)
