"""Sums, and what is made of noisy sums and a noisy count where the number of rows is private."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pdprivacy.domain import Column
from pdprivacy.statistic.core import (
    Answer,
    Engine,
    Noisy,
    Part,
    Scope,
    Whole,
    named,
    one_each,
    scalar,
)
from pdprivacy.statistic.quantity import Quantity, product_roundings

__all__ = ["Covariance", "Means", "SharedCounts", "Sums", "Variances"]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of columns: each moves by its largest term, or by its range where a record is replaced."""

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            scalar(
                named("sum", q.column),
                weight,
                self.scope.term(q.low, q.high, nullable=q.column.nullable),
                q.unit,
            )
            for q, weight in zip(self.quantities, self.weights, strict=True)
        )

    def read(self, engine: Engine) -> list[Whole]:
        return [[engine.sum(quantity)[1]] for quantity in self.quantities]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return one_each(noisy)


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """The counts that several columns need: one for all columns without nulls, one per other column."""

    columns: tuple[Column, ...]
    weights: tuple[Fraction, ...]

    def keys(self) -> list[Hashable]:
        """Which count each column uses."""
        return [(column.name,) if column.nullable else () for column in self.columns]

    def parts(self, moved: int = 1, l2_squared: int = 1, size: int = 1, moves: int = 1) -> list[Part]:
        held: dict[Hashable, list[int]] = {}
        for place, key in enumerate(self.keys()):
            held.setdefault(key, []).append(place)
        return [
            Part(
                "count" if key == () else named("count", self.columns[places[0]]),
                sum((self.weights[place] for place in places), Fraction(0)),
                moved,
                l2_squared,
                Fraction(1),
                size,
                counts=True,
                moves=moves,
            )
            for key, places in held.items()
        ]

    def places(self) -> list[int]:
        """The part that holds the count of each column."""
        keys = self.keys()
        distinct = list(dict.fromkeys(keys))
        return [distinct.index(key) for key in keys]


@dataclass(frozen=True, slots=True)
class Means:
    """Means by centred noisy sums and noisy counts: centre + sum / count.

    Half of each column's share goes to its sum, half to its count; columns without nulls share
    one count and pool what they give it. Source: the noisy average of Li, Lyu, Su, Yang (2016),
    Algorithm 2.3, centred, which halves the sum's sensitivity.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def _counts(self) -> SharedCounts:
        return SharedCounts(tuple(q.column for q in self.quantities), tuple(w / 2 for w in self.weights))

    @property
    def parts(self) -> tuple[Part, ...]:
        sums = [
            scalar(
                named("sum", q.column),
                weight / 2,
                self.scope.term(q.low, q.high, nullable=q.column.nullable),
                q.unit,
            )
            for q, weight in zip(self.quantities, self.weights, strict=True)
        ]
        return (*self._counts.parts(), *sums)

    def read(self, engine: Engine) -> list[Whole]:
        found = [engine.sum(quantity) for quantity in self.quantities]
        places = self._counts.places()
        counts = [found[places.index(part)][0] for part in range(max(places) + 1)]
        return [*([count] for count in counts), *([total] for _, total in found)]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        places = self._counts.places()
        start = max(places) + 1
        values, errors = [], []
        for column, quantity in enumerate(self.quantities):
            count, total = noisy[places[column]], noisy[start + column]
            rows = max(float(count.values[0]), 1.0)
            offset = float(total.values[0]) / rows
            values.append(quantity.center + offset)
            errors.append(math.hypot(total.std, offset * count.std) / rows)
        return Answer(np.array(values), np.array(errors))


def half_square(reach: int) -> int:
    """What is subtracted from each square so that its bounds are symmetric: half the largest square."""
    return reach * reach // 2


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances by noisy sums of centred values and of their squares, and noisy counts.

    A third of each column's share goes to its count, its sum and its sum of squares; half the
    largest square is subtracted from each square, which halves what one record can do.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def _counts(self) -> SharedCounts:
        return SharedCounts(tuple(q.column for q in self.quantities), tuple(w / 3 for w in self.weights))

    @property
    def parts(self) -> tuple[Part, ...]:
        found = self._counts.parts()
        for q, weight in zip(self.quantities, self.weights, strict=True):
            nullable, shift = q.column.nullable, half_square(q.reach)
            moved = self.scope.term(q.low, q.high, nullable=nullable)
            found.append(scalar(named("sum", q.column), weight / 3, moved, q.unit))
            moved = self.scope.term(-shift, q.reach**2 - shift, nullable=nullable)
            found.append(scalar(named("squares", q.column), weight / 3, moved, q.unit**2))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        moments = [engine.moments([quantity]) for quantity in self.quantities]
        places = self._counts.places()
        found: list[Whole] = [[moments[places.index(part)].rows] for part in range(max(places) + 1)]
        for quantity, moment in zip(self.quantities, moments, strict=True):
            found.append([moment.sums[0]])
            found.append([moment.products[0][0] - moment.rows * half_square(quantity.reach)])
        return found

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        places = self._counts.places()
        start = max(places) + 1
        values, errors = [], []
        for column, quantity in enumerate(self.quantities):
            count = noisy[places[column]]
            total, squares = noisy[start + 2 * column : start + 2 * column + 2]
            shift = half_square(quantity.reach) * float(quantity.unit) ** 2
            value, error = covariance(count, total, total, squares, shift)
            values.append(value)
            errors.append(error)
        rounding = np.array([quantity.product_rounding(quantity) for quantity in self.quantities])
        return Answer(np.array(values), np.array(errors), rounding)


def covariance(
    count: Noisy, first: Noisy, second: Noisy, products: Noisy, shift: float
) -> tuple[float, float]:
    """(sum of products - product of sums / n) / (n - 1) and its standard error to first order.

    For a variance (``first`` is ``second``) the square of the noisy sum is too large by the
    variance of its noise on average; that is known, and taken off.
    """
    rows = max(float(count.values[0]), 2.0)
    a, b = float(first.values[0]), float(second.values[0])
    same = first is second
    cross = a * b - (first.std**2 if same else 0.0)
    value = (float(products.values[0]) + shift * rows - cross / rows) / (rows - 1)
    by_count = (shift + cross / rows**2 - value) * count.std
    by_sums = 2 * a * first.std / rows if same else math.hypot(b * first.std, a * second.std) / rows
    return value, math.hypot(products.std, by_sums, by_count) / (rows - 1)


@dataclass(frozen=True, slots=True)
class Covariance:
    """A covariance matrix by noisy sums: one count, d sums and d(d+1)/2 sums of products, equal shares.

    Records with a null in any of the columns are left out of all entries.
    """

    quantities: tuple[Quantity, ...]
    scope: Scope

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        size = len(self.quantities)
        return [(i, j) for i in range(size) for j in range(i, size)]

    @property
    def parts(self) -> tuple[Part, ...]:
        size = len(self.quantities)
        share = Fraction(1, 1 + size + len(self._pairs))
        nullable = any(q.column.nullable for q in self.quantities)
        found = [scalar("count", share, 1, Fraction(1), counts=True)]
        for q in self.quantities:
            moved = self.scope.term(q.low, q.high, nullable=nullable)
            found.append(scalar(named("sum", q.column), share, moved, q.unit))
        for i, j in self._pairs:
            first, second = self.quantities[i], self.quantities[j]
            most = first.reach * second.reach
            shift = half_square(first.reach) if i == j else 0
            moved = self.scope.term(-shift if i == j else -most, most - shift, nullable=nullable)
            name = (
                named("squares", first.column) if i == j else named("products", first.column, second.column)
            )
            found.append(scalar(name, share, moved, first.unit * second.unit))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        moments = engine.moments(self.quantities)
        found: list[Whole] = [[moments.rows], *([total] for total in moments.sums)]
        for i, j in self._pairs:
            shift = half_square(self.quantities[i].reach) if i == j else 0
            found.append([moments.products[i][j] - moments.rows * shift])
        return found

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size = len(self.quantities)
        values, errors = np.empty((size, size)), np.empty((size, size))
        for place, (i, j) in enumerate(self._pairs):
            quantity = self.quantities[i]
            shift = half_square(quantity.reach) * float(quantity.unit) ** 2 if i == j else 0.0
            value, error = covariance(noisy[0], noisy[1 + i], noisy[1 + j], noisy[1 + size + place], shift)
            values[i, j] = values[j, i] = value
            errors[i, j] = errors[j, i] = error
        return Answer(values, errors, product_roundings(self.quantities))
