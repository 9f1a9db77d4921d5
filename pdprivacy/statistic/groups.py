"""Statistics per declared group, and pooled over groups, with private group sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pdprivacy.domain import Column
from pdprivacy.statistic.confidence import Ends
from pdprivacy.statistic.interface import (
    Answer,
    Noisy,
    Part,
    Read,
    Scope,
    Whole,
    bounds_of,
    ends_of_parts,
    largest_variance,
    matrix_bounds,
    named,
    pairs,
    per_record,
    variance_bounds,
)
from pdprivacy.statistic.quantity import Quantity, product_roundings
from pdprivacy.statistic.sums import (
    SharedCounts,
    covariance,
    half_square,
    mean_interval,
    product_interval,
    product_intervals,
    products_part,
)

__all__ = ["GroupedMoments", "PooledCovariance"]


@dataclass(frozen=True)
class GroupedMoments:
    """Sums, means or variances per declared group, charged once: groups are disjoint.

    Source: parallel composition (McSherry 2009, Theorem 4) under "add_remove"; under
    "replace_one" a record may move, so that two groups change, which the sensitivities hold.
    """

    kind: str
    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    keys: tuple[Column, ...]
    scope: Scope

    @property
    def groups(self) -> int:
        """How many groups are declared."""
        return math.prod(key.cells("groupby") for key in self.keys)

    @property
    def _pieces(self) -> int:
        return {"sum": 1, "mean": 2, "var": 3}[self.kind]

    @cached_property
    def counted(self) -> SharedCounts:
        """The counts of the columns."""
        weights = (weight / self._pieces for weight in self.weights)
        return SharedCounts.of((q.column for q in self.quantities), weights)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        size = self.groups
        found = [] if self.kind == "sum" else self.counted.parts(self.scope, size)
        for q, weight, place in zip(self.quantities, self.weights, self.counted.places, strict=True):
            share = weight / self._pieces
            if self.kind == "sum":
                found.append(self._part(named("sum", q.column), share, q.low, q.high, q.unit, None))
                continue
            found.append(self._part(named("sum", q.column), share, q.low, q.high, q.unit, place))
            if self.kind == "var":
                shift = half_square(q.reach)
                low, high = -shift, q.reach**2 - shift
                found.append(self._part(named("squares", q.column), share, low, high, q.unit**2, place))
        return tuple(found)

    def _part(
        self, name: str, share: Fraction, low: int, high: int, unit: Fraction, place: int | None
    ) -> Part:
        """Sums per group of terms in [low, high], over the records that the part at ``place`` counts."""
        return Part(
            name,
            share,
            *self.scope.disjoint(low, high),
            unit,
            self.groups,
            moves=self.scope.moves,
            # a group may be empty, or hold any number of records
            lower=Fraction(0) if place is None and low >= 0 else None,
            upper=Fraction(0) if place is None and high <= 0 else None,
            limits=None if place is None else per_record(place, low, high, unit),
        )

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return (0.0,) * len(self.quantities) if self.kind == "sum" else None

    @property
    def ends(self) -> tuple[Any, Any]:
        if self.offsets is not None:
            return ends_of_parts(self.parts, self.offsets)
        return bounds_of(self.quantities) if self.kind == "mean" else variance_bounds(self.quantities)

    @property
    def reads(self) -> tuple[Read, ...]:
        products = (("products", self.kind == "var"),)
        return tuple(
            Read("grouped", ((quantity,), self.keys, "groupby"), products) for quantity in self.quantities
        )

    def exact(self, found: Sequence[Any]) -> list[Whole]:
        numbers: list[Whole] = []
        if self.kind != "sum":
            numbers += [grouped.rows for grouped in self.counted.read_with(found)]
        for quantity, grouped in zip(self.quantities, found, strict=True):
            numbers.append(grouped.sums[0])
            if self.kind == "var":
                shift = half_square(quantity.reach)
                squares = grouped.products[0, 0]
                numbers.append([square - shift * n for square, n in zip(squares, grouped.rows, strict=True)])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        if self.kind == "sum":
            values = np.column_stack([part.values for part in noisy])
            return Answer(values, np.full(values.shape, [part.std for part in noisy]), 0.0, *self.ends)
        counts = [noisy[place] for place in self.counted.places]
        others = noisy[len(self.counted.weights) :]
        return (self._means if self.kind == "mean" else self._variances)(counts, others)

    def _means(self, counts: Sequence[Noisy], sums: Sequence[Noisy]) -> Answer:
        """The means of groups, by the noisy count and sum of each column."""
        parts = list(zip(self.quantities, counts, sums, strict=True))
        values, errors = [], []
        for quantity, count, total in parts:
            rows = np.maximum(count.values, 1.0)
            offset = total.values / rows
            values.append(quantity.center + offset)
            errors.append(np.hypot(total.std, offset * count.std) / rows)

        def interval(level: float) -> Ends:
            return _columns(mean_interval(level, *part) for part in parts)

        return Answer(np.column_stack(values), np.column_stack(errors), 0.0, *self.ends, interval)

    def _variances(self, counts: Sequence[Noisy], others: Sequence[Noisy]) -> Answer:
        """The variances of groups, by the noisy count of each column, its sum and its sum of squares."""
        parts = list(zip(self.quantities, counts, others[::2], others[1::2], strict=True))
        found = np.empty((self.groups, len(parts), 2))
        for column, (quantity, *noisy) in enumerate(parts):
            shift = half_square(quantity.reach) * float(quantity.unit) ** 2
            for group in range(self.groups):
                count, total, squares = (Noisy(one.values[group : group + 1], one.std) for one in noisy)
                found[group, column] = covariance(count, total, total, squares, shift)

        def interval(level: float) -> Ends:
            return _columns(
                product_interval(level, count, [quantity], [total], squares, grouped=True)
                for quantity, count, total, squares in parts
            )

        values, errors = found[..., 0], found[..., 1]
        rounding = [quantity.product_rounding(quantity) for quantity in self.quantities]
        upper = [largest_variance(q.upper - q.lower, count.values) for q, count, *_ in parts]
        return Answer(values, errors, np.full(values.shape, rounding), 0.0, np.column_stack(upper), interval)


def _columns(ends: Iterable[Ends]) -> Ends:
    """The intervals of columns, side by side."""
    lower, upper = (np.column_stack(side) for side in zip(*ends, strict=True))
    return lower, upper


@dataclass(frozen=True, slots=True)
class PooledCovariance:
    """Pooled variances or a pooled covariance matrix by noisy counts and sums per group.

    Counts and sums get noise per declared group, sums of products as one total each. All parts
    have equal shares of their column's (variances) or of the call's loss (matrix). Records with a
    null in any of the columns are left out.
    """

    quantities: tuple[Quantity, ...]
    keys: tuple[Column, ...]
    scope: Scope
    matrix: bool

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return pairs(len(self.quantities))[: None if self.matrix else len(self.quantities)]

    @property
    def method(self) -> str:
        """The release that asks for it."""
        return "pooled_cov" if self.matrix else "pooled_var"

    @property
    def groups(self) -> int:
        """How many groups are declared."""
        return math.prod(key.cells(self.method) for key in self.keys)

    @property
    def parts(self) -> tuple[Part, ...]:
        size = self.groups
        share = Fraction(1, 1 + len(self.quantities) + len(self._pairs))
        nullable = any(q.column.nullable for q in self.quantities)
        moves = self.scope.moves
        cells = self.scope.cells()
        found = [
            Part("counts", share, *cells, Fraction(1), size, counts=True, moves=moves, lower=Fraction(0))
        ]
        for q in self.quantities:
            moved, limits = self.scope.disjoint(q.low, q.high), per_record(0, q.low, q.high, q.unit)
            found.append(
                Part(named("sums", q.column), share, *moved, q.unit, size, moves=moves, limits=limits)
            )
        for i, j in self._pairs:
            found.append(products_part(self.scope, share, self.quantities[i], self.quantities[j], nullable))
        return tuple(found)

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return None

    @property
    def ends(self) -> tuple[Any, Any]:
        size = len(self.quantities)
        return (-math.inf, math.inf) if self.matrix else (np.zeros(size), np.full(size, math.inf))

    @property
    def reads(self) -> tuple[Read, ...]:
        return (Read("grouped", (self.quantities, self.keys, self.method), (("products", True),)),)

    def exact(self, found: Sequence[Any]) -> list[Whole]:
        (grouped,) = found
        numbers: list[Whole] = [grouped.rows, *grouped.sums]
        for i, j in self._pairs:
            shift = half_square(self.quantities[i].reach) if i == j else 0
            numbers.append([sum(grouped.products[i, j]) - shift * sum(grouped.rows)])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size = len(self.quantities)
        counts = noisy[0]
        rows = np.maximum(counts.values, 1.0)
        total = float(counts.values.sum())
        spare = max(total - self.groups, 1.0)
        values, errors = np.full((size, size), np.nan), np.full((size, size), np.nan)
        for place, (i, j) in enumerate(self._pairs):
            a, b = noisy[1 + i], noisy[1 + j]
            cross = a.values * b.values - (a.std**2 if i == j else 0.0)
            quantity = self.quantities[i]
            shift = half_square(quantity.reach) * float(quantity.unit) ** 2 if i == j else 0.0
            products = noisy[1 + size + place]
            value = (float(products.values[0]) + shift * total - float((cross / rows).sum())) / spare
            by_count = (shift + cross / rows**2 - value) * counts.std
            if i == j:
                by_sums = 2 * a.values * a.std / rows
            else:
                by_sums = np.hypot(b.values * a.std, a.values * b.std) / rows
            # hypot, because the squares may be beyond what a double holds
            spread = float(np.hypot.reduce(np.concatenate([by_count, by_sums])))
            error = math.hypot(products.std, spread) / spare
            values[i, j] = values[j, i] = value
            errors[i, j] = errors[j, i] = error
        rounding = product_roundings(self.quantities)
        # n R^2 / (4 (n - J)) with the noisy n
        widths = np.array([q.upper - q.lower for q in self.quantities])
        largest = widths**2 / 4 * (max(total, 1.0) / spare)

        def interval(level: float) -> Ends:
            ends = product_intervals(level, noisy, self.quantities, self._pairs)
            return ends if self.matrix else (np.diagonal(ends[0]), np.diagonal(ends[1]))

        if self.matrix:
            return Answer(values, errors, rounding, *matrix_bounds(values, largest), interval)
        return Answer(
            np.diagonal(values).copy(),
            np.diagonal(errors).copy(),
            np.diagonal(rounding),
            0.0,
            largest,
            interval,
        )
