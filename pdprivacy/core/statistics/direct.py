"""Statistics that are computed exactly before noise is added, where the number of rows is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pdprivacy.core import sensitivities as sensitivity
from pdprivacy.core.statistics.confidence import Ends, Noisy
from pdprivacy.core.statistics.interface import (
    ROWS,
    Answer,
    Limits,
    Part,
    Quantity,
    Read,
    Scope,
    Statistic,
    answer_of_parts,
    bounds_of,
    grouped,
    groups_of,
    matrix_bounds,
    matrix_limits,
    pairs,
    part_name,
    product_roundings,
)
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Whole


def _ends(lower: Fraction, upper: Fraction, unit: Fraction) -> tuple[int, int]:
    """Return the first and the last whole number of units within bounds."""
    return math.ceil(lower / unit), math.floor(upper / unit)


@dataclass(frozen=True)
class Direct(Statistic):
    """Means, variances or covariances, pooled or not, each computed exactly and released with its own noise.

    ``kind``: "mean", "var" or "cov"; with ``keys``, pooled variances or covariances. ``rows``: the public
    number of rows, or a public lower bound of it.
    """

    kind: str
    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope
    rows: int
    keys: tuple[Column, ...] = ()

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        size = len(self.quantities)
        return pairs(size) if self.kind == "cov" else [(i, i) for i in range(size)]

    @property
    def groups(self) -> int:
        """Number of declared groups."""
        return groups_of(self.keys, f"pooled_{self.kind}")

    def _sensitivity(self, i: int, j: int) -> Fraction:
        """Return the sensitivity of one entry, in grid steps or their products."""
        neighbors = self.scope.neighbors
        first, second = self.quantities[i], self.quantities[j]
        bounds = Fraction(first.low), Fraction(max(first.high, first.low + 1))
        if self.kind == "mean":
            return sensitivity.mean(*bounds, self.rows, neighbors=neighbors)
        if i == j:
            if self.keys:
                return sensitivity.pooled_var(*bounds, self.rows, self.groups, neighbors=neighbors)
            return sensitivity.var(*bounds, self.rows, neighbors=neighbors)
        others = Fraction(second.low), Fraction(max(second.high, second.low + 1))
        if self.keys:
            return sensitivity.pooled_cov(*bounds, *others, self.rows, self.groups, neighbors=neighbors)
        return sensitivity.cov(*bounds, *others, self.rows, neighbors=neighbors)

    def _refinement(self, moved: Fraction) -> Fraction:
        """Return the steps per unit of the statistic: a power of two, for a sensitivity near 2**21 steps."""
        exponent = 21 + moved.denominator.bit_length() - moved.numerator.bit_length()
        return Fraction(1 << max(exponent, 0), 1 << max(-exponent, 0))

    @cached_property
    def _refinements(self) -> tuple[Fraction, ...]:
        """The steps per unit of each entry."""
        return tuple(self._refinement(self._sensitivity(i, j)) for i, j in self._pairs)

    @cached_property  # a release reads it several times, and many releases share it
    def parts(self) -> tuple[Part, ...]:
        parts = []
        shares = self.weights if self.kind != "cov" else [Fraction(1, len(self._pairs))] * len(self._pairs)
        for (i, j), weight in zip(self._pairs, shares, strict=True):
            sensitivity_in_steps = self._sensitivity(i, j)
            finer = self._refinement(sensitivity_in_steps)
            first, second = self.quantities[i], self.quantities[j]
            unit = first.unit if self.kind == "mean" else first.unit * second.unit
            columns = (first.column,) if i == j else (first.column, second.column)
            statistic = self.kind if i != j or self.kind == "mean" else "var"
            name = part_name(f"pooled {statistic}" if self.keys else statistic, *columns)
            lower, upper, limits = self._bounds(i, j)
            unit /= finer
            # the statistic is rounded to the finer unit, which can add one step to a difference
            steps = math.floor(sensitivity_in_steps * finer) + 1
            if lower is not None and upper is not None:
                least, most = _ends(lower, upper, unit)
                steps = max(min(steps, most - least), 1)
            parts.append(Part(name, weight, steps, steps**2, unit, lower=lower, upper=upper, limits=limits))
        return tuple(parts)

    def _bounds(self, i: int, j: int) -> tuple[Fraction | None, Fraction | None, Limits | None]:
        """Return the bounds of an entry: of a mean (from the centre), a variance or a covariance."""
        first = self.quantities[i]
        if self.kind == "mean":
            return first.low * first.unit, max(first.high, first.low + 1) * first.unit, None
        if i == j:
            return Fraction(0), self._largest(first), None

        def limits(noisy: Sequence[Noisy]) -> tuple[float, float]:
            # the noisy variances lie within their own bounds: they were bounded first
            most = math.sqrt(noisy[i].values[0]) * math.sqrt(noisy[j].values[0])
            return -most, most

        return None, None, limits

    def _largest(self, quantity: Quantity) -> Fraction:
        """Return the largest (pooled) variance: n R^2 / (4 (n - J)), which decreases in n, at the least n."""
        width = max(quantity.high - quantity.low, 1) * quantity.unit
        spare = self.rows - (self.groups if self.keys else 1)
        return width**2 * self.rows / (4 * spare)

    @property
    def offsets(self) -> tuple[float, ...] | None:
        if self.kind == "cov":
            return None
        return tuple(q.center if self.kind == "mean" else 0.0 for q in self.quantities)

    @property
    def limits(self) -> tuple[Any, Any] | None:
        if self.kind == "mean":
            return bounds_of(self.quantities)
        largest = np.array([float(self._largest(quantity)) for quantity in self.quantities])
        return matrix_limits(largest) if self.kind == "cov" else (np.zeros(len(largest)), largest)

    @property
    def reads(self) -> tuple[Read, ...]:
        if self.kind == "mean":
            return (ROWS, *(grouped((quantity,), products=False) for quantity in self.quantities))
        if self.keys:
            method = f"pooled_{self.kind}"
            return ROWS, grouped(self.quantities, self.keys, method)
        if self.kind == "cov":
            return ROWS, grouped(self.quantities)
        return (ROWS, *(grouped((quantity,)) for quantity in self.quantities))

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        whole_numbers: list[Whole] = []
        for finer, part, entry in zip(self._refinements, self.parts, self._entries(*answers), strict=True):
            whole = round(entry * finer)
            if part.lower is not None and part.upper is not None:
                least, most = _ends(part.lower, part.upper, part.unit)
                whole = min(max(whole, least), most)
            whole_numbers.append([whole])
        return whole_numbers

    def _entries(self, rows: int, *answers: Any) -> list[Fraction]:
        """Return the exact statistic per entry, in grid steps or their products, of columns without nulls."""
        if self.kind == "mean":
            return [Fraction(grouped_sums.sums[0][0], rows) for grouped_sums in answers]
        if self.keys:
            (sums,) = answers
            spare = rows - self.groups
            return [
                sum(
                    (
                        sums.products[i, j][group]
                        - Fraction(sums.sums[i][group] * sums.sums[j][group], rows_of_group)
                        for group, rows_of_group in enumerate(sums.rows)
                        if rows_of_group
                    ),
                    Fraction(0),
                )
                / spare
                for i, j in self._pairs
            ]
        if self.kind == "cov":
            entries = [(answers[0], i, j) for i, j in self._pairs]
        else:
            entries = [(sums, 0, 0) for sums in answers]
        return [
            Fraction(
                rows * grouped_sums.products[i, j][0] - grouped_sums.sums[i][0] * grouped_sums.sums[j][0],
                rows * (rows - 1),
            )
            for grouped_sums, i, j in entries
        ]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        if self.kind == "mean":
            return answer_of_parts(self, noisy)
        if self.kind == "var":
            return answer_of_parts(self, noisy, np.array([q.product_rounding(q) for q in self.quantities]))
        size = len(self.quantities)
        matrix, errors = np.empty((size, size)), np.empty((size, size))
        for (i, j), part in zip(self._pairs, noisy, strict=True):
            matrix[i, j] = matrix[j, i] = part.values[0]
            errors[i, j] = errors[j, i] = part.std
        largest = np.array([float(self._largest(quantity)) for quantity in self.quantities])

        def interval(level: float) -> Ends:
            halves = np.empty((size, size))
            allowed = np.zeros((size, size))
            for (i, j), part in zip(self._pairs, noisy, strict=True):
                free = i == j or part.tail.bounding is None
                each = level if free else 1 - (1 - level) / 3
                halves[i, j] = halves[j, i] = part.tail.half(each, np.array([part.std]))
                if not free:
                    # the noisy variances may imply narrower bounds than the exact variances
                    roots = [
                        (
                            noisy[k].values[0] + noisy[k].tail.half(each, np.array([noisy[k].std])),
                            matrix[k, k],
                        )
                        for k in (i, j)
                    ]
                    most, kept = (
                        math.sqrt(max(x, 0.0)) * math.sqrt(max(y, 0.0)) for x, y in zip(*roots, strict=True)
                    )
                    allowed[i, j] = allowed[j, i] = max(most - kept, 0.0)
            return matrix - halves - allowed, matrix + halves + allowed

        bounds = matrix_bounds(matrix, largest)
        return Answer(matrix, errors, product_roundings(self.quantities), *bounds, interval)
