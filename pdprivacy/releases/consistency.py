"""Linear constraints of released numbers: their labels, their limits, and the nearest numbers that meet them.

The noisy numbers move by post-processing alone: to the nearest point of a convex set that holds the exact
numbers, by public knowledge. No point of the set is farther from the result than from the noisy numbers.
Distances divide each number by its standard error: numbers of different units and noise are then comparable,
and those with more noise move more. For independent Gaussian noise the result is the likeliest point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pdprivacy.checks import is_null
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.least_distance import nearest_bounded
from pdprivacy.linear import LinearConstraint, LinearLimits, positions
from pdprivacy.release.results import Result
from pdprivacy.release.spec import Call, cell_index
from pdprivacy.statistic import CellCounts, WeightedCells
from pdprivacy.types import Floats

MOST_NUMBERS, MOST_WEIGHTS = 10**5, 10**7
"""The most numbers that linear constraints may hold together, and the most weights of all constraints."""

TOGETHER = "leave constraint out, and take sums and shares of the released counts, at no cost."


def linearly(
    cells: CellCounts | WeightedCells, call: Call, shares_of: Callable[..., Result]
) -> Callable[[Result], Result]:
    """Return the function that moves a table onto the linear constraints of its call.

    ``shares_of``: makes shares of counts.

    Raises ParameterError for unknown labels, arguments that do not go together, and constraints that no table
    meets.
    """
    if call.margins or call.normalize in ("index", "columns"):
        raise ParameterError(
            "'constraint' of linear sums is for cells, and for shares of all of them.", TOGETHER
        )
    if call.request.bounding is not None:
        raise ParameterError(
            "'constraint' of linear sums moves numbers within their bounds by itself.",
            "leave bounding out, or bounding=None for no other bounds.",
        )
    columns = cells.columns
    indexes = [cell_index([column], call.statistic) for column in columns]
    levels = [{_key(label): number for number, label in enumerate(index)} for index in indexes]
    size = math.prod(map(len, levels))
    check_size(size, len(call.linear))
    rows = np.zeros((len(call.linear), *map(len, levels)))
    for row, constraint in zip(rows, call.linear, strict=True):
        for key, number in constraint.terms:
            if (at := positions(key, levels)) is None:
                raise _unknown_cell(columns, levels)
            row[at] += number
    bounds = (0.0, 1.0 if call.normalize else cells.ends[1])
    if not call.request.projects:
        bounds = (-math.inf, math.inf)
    limits = limits_of(
        call.linear, rows.reshape(len(rows), size), np.full(size, bounds[0]), np.full(size, bounds[1])
    )
    if call.normalize:
        ones = np.ones((1, size))
        limits = replace(
            limits,
            rows=np.concatenate([limits.rows, ones]),
            least=np.append(limits.least, 1.0),
            most=np.append(limits.most, 1.0),
        )
    if limits.contradict():
        raise ParameterError(
            "'constraint' holds linear constraints that no table meets.",
            "release with fewer of them, or wider limits.",
        )

    def moved(result: Result) -> Result:
        if call.normalize:
            result = shares_of(result, axis=None, total=None)
        answer = replace(result.answer, lower=bounds[0], upper=bounds[1])
        return replace(result, answer=answer).as_a_whole(lambda values: nearest(values, np.ones(()), limits))

    return moved


def limits_of(
    constraints: Sequence[LinearConstraint], rows: Floats, lower: Floats, upper: Floats
) -> LinearLimits:
    """Return the limits of numbers between bounds; refuse constraints whose weights cancel to 0."""
    if not rows.any(axis=1).all():
        raise ParameterError(
            "'constraint' holds a linear constraint whose coefficients add up to 0 in every cell.",
            "leave it out.",
        )
    least, most = (np.array([getattr(each, end) for each in constraints]) for end in ("lower", "upper"))
    return LinearLimits(rows, least, most, lower, upper)


def check_size(numbers: int, constraints: int) -> None:
    """Refuse constraints of more numbers than can be moved together."""
    if numbers > MOST_NUMBERS or numbers * constraints > MOST_WEIGHTS:
        raise ParameterError(
            f"'constraint' of linear sums takes at most {MOST_NUMBERS} numbers and {MOST_WEIGHTS} weights in "
            f"all (got {numbers} numbers in {constraints} constraints).",
            "release fewer columns at once, or declare coarser bins.",
        )


def nearest(values: Floats, variances: Floats, limits: LinearLimits) -> Floats:
    """Return the nearest numbers within the limits, in the shape of ``values``."""
    numbers = np.asarray(values, np.float64)
    flat = np.broadcast_to(variances, numbers.shape).reshape(-1)
    ends = (limits.least, limits.most), (limits.lower, limits.upper)
    return nearest_bounded(numbers.reshape(-1), flat, limits.rows, *ends).reshape(numbers.shape)


def _key(label: Any) -> Hashable:
    return None if is_null(label) else label


def _unknown_cell(columns: Sequence[Column], levels: Sequence[dict[Hashable, int]]) -> ParameterError:
    """The error of a label that is no cell of the table."""
    names = ", ".join(repr(column.name) for column in columns)
    first = tuple(next(iter(level)) for level in levels)
    key = repr(first if len(first) > 1 else first[0])
    what = "one label of each of its columns" if len(first) > 1 else "the labels of its column"
    return ParameterError(
        f"'constraint' must name cells of the table by {what}, {names}.",
        f"LinearConstraint({{{key}: 1}}, lower=0)",
    )
