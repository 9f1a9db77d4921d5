"""The noisy parts of a release in its metadata, where intervals of another level follow from them alone.

They are post-processing: numbers that the charge paid for, before means, variances or shares were made of
them. `pdprivacy.releases.part_intervals` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.core.gate.spec import Call
from pdprivacy.core.statistics import (
    CellCounts,
    Clusters,
    Covariance,
    Direct,
    Moments,
    Noisy,
    Quantity,
    Statistic,
    TreeCells,
    Weighted,
    WeightedCells,
)
from pdprivacy.releases.results import Result
from pdprivacy.types import Floats, Integers

Parts: TypeAlias = "dict[str, Any]"
"""Noisy parts as JSON: ``of`` says which statistic they are parts of, ``noisy`` holds their names and values.

``stairs``: epsilon and the break of staircase noise by part; the scale alone does not determine it.
"""

KEPT_TOTAL = ("rescale", "simplex", "all_but_one")
"""Constraints of shares whose denominator is the number of rows where that is public."""


def noisy_parts(
    statistic: Statistic, call: Call, before: Sequence[Result], after: Sequence[Result]
) -> Parts | None:
    """Return the noisy parts of releases as JSON, or None where intervals need none.

    ``before``, ``after``: the results before and after they were labelled.
    """
    price = before[0].price
    shapes = [(part.name, each.shape) for part, each in zip(price.parts, price.mechanisms, strict=True)]
    stairs = {name: shape for name, shape in shapes if shape is not None}
    source = _source(statistic, call, plain=not stairs)
    if source is not None:
        source["noisy"] = [_values(statistic, result) for result in before]
        if (places := after[0].places) is not None:
            source["places"] = np.where(np.isnan(places), -1, places).astype(np.int64).ravel().tolist()
    stored = {**(source or {}), **({"stairs": stairs} if stairs else {})}
    return stored or None


def reordered(parts: Parts | None, order: Integers) -> Parts | None:
    """Return the parts of cells in the order of sorted labels; other parts as they are."""
    if parts is None or parts.get("of") != "cells":
        return parts

    def in_order(cells: list[list[Any]]) -> list[list[Any]]:
        return [[name, np.asarray(values, object)[order].tolist()] for name, values in cells]

    return {**parts, "noisy": [in_order(cells) for cells in parts["noisy"]]}


def _values(statistic: Statistic, result: Result) -> list[list[Any]]:
    """Return the name and the values of each noisy part in order; of a tree those of its leaves."""
    noisy: Sequence[Noisy] = result.noisy
    if isinstance(statistic, TreeCells):
        leaves = statistic.measured(noisy[0], np.asarray(result.answer.values))
        return [[result.price.parts[0].name, _plain(leaves)]]
    return [[part.name, _plain(each.values)] for part, each in zip(result.price.parts, noisy, strict=True)]


def _plain(values: Any) -> list[Any]:
    numbers: Floats = np.ravel(np.asarray(values, np.float64))
    plain: list[Any] = numbers.tolist()
    if np.isfinite(numbers).all():
        return plain
    return [number if math.isfinite(number) else None for number in plain]


def _source(statistic: Statistic, call: Call, *, plain: bool) -> Parts | None:
    """Return what the noisy parts are parts of, with the public facts that intervals depend on.

    ``plain``: whether the scale determines the noise.
    """
    if isinstance(statistic, CellCounts | TreeCells | WeightedCells):
        return _source_of_cells(statistic, call) if call.normalize else None
    source: Parts
    if isinstance(statistic, Moments):
        if call.margins or not _need_parts(statistic, call, plain=plain):
            return None
        source = {"of": "moments", "kinds": [list(own) for own in statistic.kinds]}
    elif isinstance(statistic, Covariance):
        source = {"of": "covariance", "pooled": bool(statistic.keys), "matrix": statistic.matrix}
    elif isinstance(statistic, Direct) and (statistic.kind == "cov" or call.statistic == "std"):
        source = {"of": "direct", "kind": statistic.kind}
    elif isinstance(statistic, Weighted) and statistic.offsets is None:
        source = {"of": "moments", "kinds": [list(own) for own in statistic.kinds]}
        source["rounding"] = [float(each) for each in statistic.ratio_roundings()[2]]
    elif isinstance(statistic, Clusters):
        source = {"of": "clusters"}
    else:
        return None
    return {**source, "columns": [_column(q) for q in statistic.quantities]}


def _need_parts(statistic: Moments, call: Call, *, plain: bool) -> bool:
    """Return whether intervals need the parts; those of sums, and of means with unbounded noise, do not."""
    if statistic.offsets is not None or {*statistic.kinds} == {("count",)}:
        return False
    dates = any(column.timeline is not None for column in call.columns)
    inverted = plain and call.request.bounding is None and not dates
    return {*statistic.kinds} != {("mean",)} or not inverted


def _column(q: Quantity) -> Parts:
    """Return the facts of a quantity: its bounds, whether it is whole or may be null, and its grid."""
    facts = {"bounds": [q.lower, q.upper], "whole": q.column.kind != "float", "nullable": q.column.nullable}
    timeline = q.column.timeline
    seconds = {} if timeline is None else {"seconds": float(timeline.seconds)}
    return {**facts, "center": q.center, "grid": q.grid, **seconds}


def _source_of_cells(statistic: CellCounts | TreeCells | WeightedCells, call: Call) -> Parts:
    """Return the facts of shares of cells: the sides of the table, and the public denominator if any."""
    cells = statistic.cells if isinstance(statistic, TreeCells) else statistic
    total = None
    if call.constraint in KEPT_TOTAL and call.normalize == "all" and not call.margins:
        total = cells.scope.row_bounds()[1]
    sides = [math.prod(key.cells(call.statistic) for key in call.by), -1] if call.by else [-1]
    return {"of": "cells", "total": total, "sides": sides}
