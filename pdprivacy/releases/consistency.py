"""Linear constraints of released numbers: their labels, their limits, and the nearest numbers that meet them.

The noisy numbers move by post-processing alone: to the nearest point of a convex set that holds the exact
numbers, by public knowledge. No point of the set is farther from the result than from the noisy numbers.
Distances divide each number by its standard error: numbers of different units and noise are then comparable,
and those with more noise move more. For independent Gaussian noise the result is the likeliest point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pdprivacy.checks import is_null
from pdprivacy.core.gate.spec import LINEAR, Call, Release, cell_index
from pdprivacy.core.gate.tasks import NoisyNumbers
from pdprivacy.core.statistics import CellCounts, WeightedCells
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.linear import LinearConstraint, LinearLimits, positions
from pdprivacy.errors import ParameterError
from pdprivacy.postprocess.least_distance import nearest_bounded
from pdprivacy.releases import metadata
from pdprivacy.releases.metadata import PROJECT, Released
from pdprivacy.releases.projection import numbers_as_json, pairs_as_json, unprojected
from pdprivacy.releases.publish import LINEARLY, largest_first
from pdprivacy.releases.results import Result, narrowed
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


# ---------------------------------------------------------------- several releases

CONSTRAINED = (
    *("count", "sum", "mean", "proportion", "var", "pooled_var"),
    *("value_counts", "histogram", "crosstab", "nunique"),
)
"""Statistics whose numbers each have a bound and an error of their own."""


@dataclass(frozen=True, eq=False)
class JointLimits:
    """The limits of the numbers of several releases.

    ``releases``: those that constraints name, by their number. Their numbers follow each other in the columns
    of ``limits``, each release in declared order.
    """

    releases: dict[int, Release[Any]]
    limits: LinearLimits
    texts: tuple[str, ...]

    @classmethod
    def of(
        cls,
        constraints: Sequence[LinearConstraint],
        terms: Sequence[Sequence[tuple[int, Any, float]]],
        releases: Sequence[Release[Any]],
    ) -> JointLimits:
        """Return the limits of constraints; ``terms``: the number of a release, a label and the weight, each.

        Raises ParameterError for releases that cannot be constrained, and for unknown labels.
        """
        named = {number: releases[number] for number in sorted({term[0] for row in terms for term in row})}
        sizes = {number: math.prod(release.labels.shape) for number, release in named.items()}
        check_size(sum(sizes.values()), len(constraints))
        bounds = [np.concatenate(ends) for ends in zip(*map(_bounds, named.values()), strict=True)]
        rows = np.zeros((len(constraints), len(bounds[0])))
        starts = dict(zip(named, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
        levels = {number: _levels(release) for number, release in named.items()}
        for row, row_terms in zip(rows, terms, strict=True):
            for number, label, weight in row_terms:
                cells = row[starts[number] : starts[number] + sizes[number]]
                shaped = cells.reshape([len(level) for level in levels[number]])
                if (at := positions(label, levels[number])) is None:
                    raise _unknown_number(releases[number], levels[number])
                shaped[at] += weight
        limits = limits_of(constraints, rows, bounds[0], bounds[1])
        return cls(named, limits, tuple(map(str, constraints)))

    def in_declared_order(self, number: int, release: Release[Any]) -> Release[Any]:
        """Return a release whose numbers are in declared order until they have moved."""
        if number not in self.releases:
            return release
        return replace(release, call=replace(release.call, sort=False))

    def moved(self, released: Sequence[Released]) -> list[Released]:
        """Return the released objects with the nearest numbers that meet all limits."""
        before = {number: unprojected(released[number]) for number in self.releases}
        values = [each.to_numpy(np.float64).reshape(-1) for each in before.values()]
        errors = [
            metadata.read(each).error_of_each("standard_error", each.shape).reshape(-1)
            for each in before.values()
        ]
        numbers, spread = np.concatenate(values), self._spread(np.concatenate(errors))
        # in units of the least error, so that squares stay within doubles
        after = nearest(numbers, (spread / spread.min()) ** 2, self.limits)
        cuts = np.cumsum([each.size for each in values])[:-1]
        parts = [np.split(each, cuts) for each in (after, self.limits.lower, self.limits.upper)]
        result = list(released)
        for number, own, low, high in zip(self.releases, *parts, strict=True):
            texts = [
                text for text, row in zip(self.texts, self._rows_of(number, cuts), strict=True) if row.any()
            ]
            call = self.releases[number].call
            result[number] = _republished(before[number], own, (low, high), texts, call)
        return result

    def _rows_of(self, number: int, cuts: Any) -> Floats:
        """The weights of the numbers of a release."""
        return np.split(self.limits.rows, cuts, axis=1)[[*self.releases].index(number)]

    def _spread(self, errors: Floats) -> Floats:
        """Standard errors; one that is not known is the range of the number, or larger than all others."""
        known = np.isfinite(errors) & (errors > 0)
        if known.all():
            return errors
        width = self.limits.upper - self.limits.lower
        largest = 1e6 * errors[known].max(initial=1e-6)
        return np.where(known, errors, np.where(np.isfinite(width) & (width > 0), width, largest))


def _bounds(release: Release[Any]) -> tuple[Floats, Floats]:
    """The bounds of the numbers of a release; refuse a release that linear constraints cannot move."""
    call, task = release.call, release.task
    numbers = isinstance(task, NoisyNumbers) and call.statistic in CONSTRAINED
    dates = any(column.timeline for column in call.columns) and call.statistic != "count"
    if not isinstance(task, NoisyNumbers) or not numbers or dates or call.request.releases > 1:
        raise ParameterError(
            f"Linear constraints of a batch cannot move {release.label!r}: they take single releases of "
            f"{', '.join(CONSTRAINED)}, of numbers.",
            "batch.constrain of the other releases.",
        )
    if call.normalize or call.margins or call.constraint is not None or call.request.bounding is not None:
        raise ParameterError(
            f"Linear constraints of a batch move {release.label!r} within its bounds, and by themselves.",
            "leave out its normalize, margins, constraint and bounding.",
        )
    shape = release.labels.shape
    if not call.request.projects:
        return np.full(math.prod(shape), -math.inf), np.full(math.prod(shape), math.inf)
    ends = task.statistic.limits or task.statistic.ends
    low, high = (np.broadcast_to(np.asarray(end, np.float64), shape).reshape(-1) for end in ends)
    return low, high


def _levels(release: Release[Any]) -> list[dict[Hashable, int]]:
    """The labels of each level of a release, with their positions: first of the rows, then of the columns."""
    return [
        {label: number for number, label in enumerate(dict.fromkeys(map(_key, axis.get_level_values(level))))}
        for axis in release.labels.axes
        for level in range(axis.nlevels)
    ]


def _republished(
    before: Released, values: Floats, bounds: tuple[Floats, Floats], texts: list[str], call: Call
) -> Released:
    """Return a release with moved numbers; their metadata keep those ``before``."""
    facts, shape = metadata.read(before), before.shape
    moved: Any = before.astype(np.float64)
    moved[:] = values.reshape(shape)
    half, earlier = (
        facts.error_of_each("plus_minus", shape).reshape(-1),
        before.to_numpy(np.float64).reshape(-1),
    )
    low, high = bounds
    order = np.arange(len(moved))
    if call.sort:
        order = largest_first(moved, call)
        moved = moved.iloc[order]
        values, half, earlier, low, high = (each[order] for each in (values, half, earlier, low, high))
    narrow = narrowed(earlier, values, half, (low, high))
    at = np.flatnonzero((values != earlier) | ((narrow != half) & ~np.isnan(half)))
    missed = np.flatnonzero((earlier + half < low) | (earlier - half > high))
    unknown = {"bias": None, "rmse": None, "worst_case": None, "note": LINEARLY}
    error = {**facts.error, **unknown, "plus_minus": numbers_as_json(narrow.reshape(shape), shape)}
    projection = None
    if at.size:
        numbers = {"at": at, "values": earlier[at], "plus_minus": half[at], "missed": missed}
        projection = {name: each.tolist() for name, each in numbers.items()}
    stored = {
        **facts.to_dict(),
        "error": error,
        "bounding": PROJECT,
        "bounds": pairs_as_json(low.reshape(shape), high.reshape(shape), shape),
        "projection": projection,
        "constraint": LINEAR,
        "constraints": texts,
    }
    metadata.attach(moved, stored)
    return moved  # type: ignore[no-any-return]


# ---------------------------------------------------------------- labels


def _key(label: Any) -> Hashable:
    return None if is_null(label) else label


def _first_key(levels: Sequence[dict[Hashable, int]]) -> str:
    """The key of the first number, as it is written: a label, or a tuple of one label of each level."""
    first = tuple(next(iter(level)) for level in levels)
    return repr(first if len(first) > 1 else first[0])


def _unknown_cell(columns: Sequence[Column], levels: Sequence[dict[Hashable, int]]) -> ParameterError:
    """The error of a label that is no cell of the table."""
    names = ", ".join(repr(column.name) for column in columns)
    what = "one label of each of its columns" if len(levels) > 1 else "the labels of its column"
    return ParameterError(
        f"'constraint' must name cells of the table by {what}, {names}.",
        f"LinearConstraint({{{_first_key(levels)}: 1}}, lower=0)",
    )


def _unknown_number(release: Release[Any], levels: Sequence[dict[Hashable, int]]) -> ParameterError:
    """The error of a label that is no number of a release."""
    return ParameterError(
        f"'constraints' must name numbers of {release.label!r} by their labels.",
        f"LinearConstraint({{pending[{_first_key(levels)}]: 1}}, lower=0)",
    )
