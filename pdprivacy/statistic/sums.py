"""Sums, and numbers computed from noisy sums and noisy counts where the number of rows is private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.statistic.confidence import Ends, Noisy, of_products
from pdprivacy.statistic.interface import (
    Answer,
    Part,
    Quantity,
    Read,
    Scope,
    Terms,
    Whole,
    bounds_of_sums,
    ends_of_parts,
    grouped,
    groups_of,
    largest_variance,
    matrix_bounds,
    named,
    one_each,
    pairs,
    part_of_counts,
    part_of_sums,
    per_record,
    product_roundings,
)

__all__ = ["Covariance", "Sums"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """Sums of columns, with the largest term as sensitivity, or the range where a record is replaced.

    Quantities may be centred where the number of records is public; the centres are then added back.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        parts = []
        for q, weight in zip(self.quantities, self.weights, strict=True):
            terms, nullable = (q.low, q.high, q.unit), q.column.nullable
            bounds = bounds_of_sums(*terms, *self.scope.held(nullable=nullable))
            name = named("sum", q.column)
            parts.append(part_of_sums(self.scope, None, name, weight, terms, bounds, nullable=nullable))
        return tuple(parts)

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return tuple(
            q.center * (self.scope.public(q.column) or 0) if q.center else 0.0 for q in self.quantities
        )

    @property
    def ends(self) -> tuple[Any, Any]:
        return ends_of_parts(self.parts, self.offsets or ())

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(Read("sum", (quantity,)) for quantity in self.quantities)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return [[total] for _, total in answers]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return one_each(self, noisy)


def product_interval(
    level: float,
    count: Noisy,
    quantities: Sequence[Quantity],
    sums: Sequence[Noisy],
    products: Noisy,
    *,
    per_group: bool = False,
) -> Ends:
    """Return the interval of a variance (of one quantity) or a covariance (of two).

    ``per_group``: whether there is one number per group, or one over all groups of ``count`` and ``sums``.
    """
    first = quantities[0]
    shift = shift_of(first) if len(quantities) == 1 else 0.0

    def groups(noisy: Noisy) -> Noisy:
        return replace(noisy, values=noisy.values[:, np.newaxis]) if per_group else noisy

    factors = [
        (groups(total), q.lower - q.center, q.upper - q.center)
        for q, total in zip(quantities, sums, strict=True)
    ]
    spread = math.prod(q.upper - q.lower for q in quantities) ** (2 / len(quantities))
    # the largest (pooled) variance is n R^2 / (4 (n - J)), and n may be J + 1
    size = 1 if per_group else count.values.size
    most = spread * (size + 1) / 4
    total = products if per_group else replace(products, values=products.values[0])
    limits = (0.0 if len(factors) == 1 else -most, most)
    return of_products(level, groups(count), factors, total, shift, limits)


def half_square(reach: int) -> int:
    """Return the centre of squares: half the largest square, which makes their bounds symmetric."""
    return reach * reach // 2


def shift_of(quantity: Quantity) -> float:
    """Return `half_square` in the unit of the column, squared."""
    return half_square(quantity.reach) * float(quantity.unit) ** 2


def covariances(
    counts: Noisy, first: Noisy, second: Noisy, products: Noisy, shift: float, *, pooled: bool = False
) -> tuple[Floats, Floats]:
    """Return (sum of products - product of sums / n) / (n - 1) per group, and its standard error.

    The standard error is to first order. ``pooled``: return one number, from the sums of products of all J
    groups together, over (n - J).

    For a variance (``first`` is ``second``) the square of the noisy sum is too large by the variance of its
    noise on average; this known variance is subtracted.
    """
    rows = np.maximum(counts.values, 1.0 if pooled else 2.0)
    a, b = first.values, second.values
    same = first is second
    cross = a * b - (first.std**2 if same else 0.0)
    total, between, spare = rows, cross / rows, rows - 1
    if pooled:
        total = counts.values.sum(keepdims=True)
        between, spare = between.sum(), np.maximum(total - len(rows), 1.0)
    values = (products.values + shift * total - between) / spare
    by_count = (shift + cross / rows**2 - values) * counts.std
    by_sums = 2 * a * first.std / rows if same else np.hypot(b * first.std, a * second.std) / rows
    # hypot, because the squares may overflow
    if pooled:
        errors = np.hypot(products.std, np.hypot.reduce(np.concatenate([by_count, by_sums])))
    else:
        errors = np.hypot(np.hypot(products.std, by_sums), by_count)
    return values, errors / spare


@dataclass(frozen=True)
class Covariance:
    """A covariance matrix from noisy counts, sums and sums of products, with equal shares of the loss.

    Records with a null in any of the columns are left out of all entries.

    Parameters
    ----------
    keys : the columns of the groups within which the matrix is pooled. Noise is added to counts and sums per
        declared group, and to the totals of the sums of products.
    matrix : False for the variances alone.
    summed : whether the sums of the quantities themselves are among the parts; a covariance needs them.
    """

    quantities: tuple[Quantity, ...]
    scope: Scope
    keys: tuple[Column, ...] = ()
    matrix: bool = True
    summed: bool = True
    offsets = None

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return pairs(len(self.quantities))[: None if self.matrix else len(self.quantities)]

    @property
    def method(self) -> str:
        """The method of the release."""
        return ("pooled_cov" if self.matrix else "pooled_var") if self.keys else "groupby"

    @property
    def parts(self) -> tuple[Part, ...]:
        groups, plural = (groups_of(self.keys, self.method), "s") if self.keys else (None, "")
        summed = self.quantities if self.summed else ()
        share = Fraction(1, 1 + len(summed) + len(self._pairs))
        nullable = any(q.column.nullable for q in self.quantities)
        parts = [part_of_counts(self.scope, groups, f"count{plural}", share)]
        for q in summed:
            name, terms = named(f"sum{plural}", q.column), (q.low, q.high, q.unit)
            bounds = per_record(0, *terms)
            parts.append(part_of_sums(self.scope, groups, name, share, terms, bounds, nullable=nullable))
        for i, j in self._pairs:
            name, terms = self._products(self.quantities[i], self.quantities[j])
            bounds = per_record(0, *terms, pooled=True)
            parts.append(part_of_sums(self.scope, None, name, share, terms, bounds, nullable=nullable))
        return tuple(parts)

    def _products(self, first: Quantity, second: Quantity) -> tuple[str, Terms]:
        """Return the name and the terms of a sum of products, or of a sum of centred squares."""
        unit, most = first.unit * second.unit, first.reach * second.reach
        if first is not second:
            return named("products", first.column, second.column), (-most, most, unit)
        shift = half_square(first.reach)
        return named("squares", first.column), (-shift, most - shift, unit)

    @property
    def ends(self) -> tuple[Any, Any]:
        size = len(self.quantities)
        return (-math.inf, math.inf) if self.matrix else (np.zeros(size), np.full(size, math.inf))

    @property
    def reads(self) -> tuple[Read, ...]:
        return (grouped(self.quantities, self.keys, self.method),)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        (sums,) = answers
        numbers: list[Whole] = [sums.rows, *(sums.sums if self.summed else ())]
        for i, j in self._pairs:
            shift = half_square(self.quantities[i].reach) if i == j else 0
            numbers.append([sum(sums.products[i, j]) - shift * sum(sums.rows)])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size, counts = len(self.quantities), noisy[0]
        values, errors = np.full((2, size, size), np.nan)
        pooled = bool(self.keys)
        for place, (i, j) in enumerate(self._pairs):
            shift = shift_of(self.quantities[i]) if i == j else 0.0
            entry, own = ([i, j], [j, i]), noisy[1 + size + place]
            values[entry], errors[entry] = covariances(
                counts, noisy[1 + i], noisy[1 + j], own, shift, pooled=pooled
            )
        widths, total = np.array([q.upper - q.lower for q in self.quantities]), float(counts.values.sum())
        if pooled:  # n R^2 / (4 (n - J)) with the noisy n
            largest = widths**2 / 4 * (max(total, 1.0) / max(total - counts.values.size, 1.0))
        else:
            largest = largest_variance(widths, total)
        answer = Answer(
            values,
            errors,
            product_roundings(self.quantities),
            *matrix_bounds(values, largest),
            partial(self._interval, noisy),
        )
        return answer if self.matrix else answer.arranged(lambda matrix: np.diagonal(matrix).copy())

    def _interval(self, noisy: Sequence[Noisy], level: float) -> Ends:
        size = len(self.quantities)
        ends = np.full((2, size, size), np.nan)
        for position, (i, j) in enumerate(self._pairs):
            indices = [i] if i == j else [i, j]
            ends[:, i, j] = ends[:, j, i] = product_interval(
                level,
                noisy[0],
                [self.quantities[index] for index in indices],
                [noisy[1 + index] for index in indices],
                noisy[1 + size + position],
            )
        return ends[0], ends[1]
