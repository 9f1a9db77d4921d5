"""Sums, and statistics made of noisy sums and a noisy count where the number of rows is private."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.statistic.confidence import Ends, of_products, of_ratio
from pdprivacy.statistic.interface import (
    Answer,
    Noisy,
    Part,
    Quantity,
    Read,
    Scope,
    Whole,
    bounds_of,
    ends_of_parts,
    largest_variance,
    matrix_bounds,
    named,
    one_each,
    pairs,
    per_record,
    product_roundings,
    scalar,
    variance_bounds,
)

__all__ = ["Covariance", "Description", "Means", "SharedCounts", "Sums", "Variances", "rooted"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """Sums of columns: each moves by its largest term, or by its range where a record is replaced.

    Quantities may be centred where the number of records is public: the centres are added then.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            scalar(
                named("sum", q.column),
                weight,
                self.scope.term(q.low, q.high, nullable=q.column.nullable),
                q.unit,
                lower=self._end(q, q.low, 1),
                upper=self._end(q, q.high, -1),
            )
            for q, weight in zip(self.quantities, self.weights, strict=True)
        )

    def _end(self, q: Quantity, term: int, sign: int) -> Fraction | None:
        """A bound of the sum where each term is at least (``sign`` 1) or at most (-1) ``term``."""
        least, most = self.scope.held(nullable=q.column.nullable)
        rows = least if sign * term >= 0 else most
        return None if rows is None else rows * term * q.unit

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


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """The counts that several columns need: one for all columns without nulls, one per other column.

    ``weights``: the share of each count, by its name. ``places``: of each column, the place of its count.
    ``readers``: of each count, the place of the first column that needs it, with which it is read.
    """

    weights: tuple[tuple[str, Fraction], ...]
    places: tuple[int, ...]
    readers: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], weights: Sequence[Fraction]) -> SharedCounts:
        """Make shared counts of columns, each of which gives its count this share of the loss."""
        keys: list[Hashable] = [(column.name,) if column.nullable else () for column in columns]
        counts: dict[Hashable, tuple[str, Fraction]] = {}
        for key, column, weight in zip(keys, columns, weights, strict=True):
            name = named("count", column) if key else "count"
            counts[key] = name, weight + counts[key][1] if key in counts else weight
        order = list(counts)
        places, readers = [order.index(key) for key in keys], [keys.index(key) for key in order]
        return cls(tuple(counts.values()), tuple(places), tuple(readers))

    def parts(self, scope: Scope, groups: int | None = None) -> list[Part]:
        """Return the counts of all records, or one per group."""
        count = scope.count()
        sensitivities = (count, count**2) if groups is None else scope.cells()
        moves = 1 if groups is None else scope.moves
        size, unit, lower = groups or 1, Fraction(1), Fraction(0)
        return [
            Part(name, weight, *sensitivities, unit, size, counts=True, moves=moves, lower=lower)
            for name, weight in self.weights
        ]


@dataclass(frozen=True)
class Means:
    """Means by centred noisy sums and noisy counts: centre + sum / count.

    Half of each column's share goes to its sum, half to its count; columns without nulls share
    one count and pool what they give it. Source: the noisy average of Li, Lyu, Su, Yang (2016),
    Algorithm 2.3, centred, which halves the sum's sensitivity.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope
    offsets = None

    @cached_property
    def counted(self) -> SharedCounts:
        """The counts of the columns."""
        return SharedCounts.of([q.column for q in self.quantities], [w / 2 for w in self.weights])

    @property
    def parts(self) -> tuple[Part, ...]:
        parts = self.counted.parts(self.scope)
        for q, weight, position in zip(self.quantities, self.weights, self.counted.places, strict=True):
            sensitivity = self.scope.term(q.low, q.high, nullable=q.column.nullable)
            limits = per_record(position, q.low, q.high, q.unit)
            parts.append(scalar(named("sum", q.column), weight / 2, sensitivity, q.unit, limits=limits))
        return tuple(parts)

    @property
    def ends(self) -> tuple[Any, Any]:
        return bounds_of(self.quantities)

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple([Read("sum", (quantity,)) for quantity in self.quantities])

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        counts: list[Whole] = [[answers[reader][0]] for reader in self.counted.readers]
        return counts + [[total] for _, total in answers]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        counts = [noisy[position] for position in self.counted.places]
        columns = self.quantities, counts, noisy[-len(counts) :]
        values, errors = np.transpose([*map(mean_of, *columns)])

        def interval(level: float) -> Ends:
            return beside([*map(partial(mean_interval, level), *columns)])

        return Answer(values, errors, 0.0, *self.ends, interval)


def beside(ends: Sequence[Ends]) -> Ends:
    """The intervals of several columns, each of numbers along the first axis, or of one number."""
    lower, upper = (np.column_stack(side) for side in zip(*ends, strict=True))
    return (lower[0], upper[0]) if len(lower) == 1 else (lower, upper)


def mean_interval(
    level: float, quantity: Quantity, count: Noisy, total: Noisy, rounding: float = 0.0
) -> Ends:
    """Return the interval of a mean, or of means per group; ``rounding`` as in `of_ratio`."""
    low, high = quantity.lower - quantity.center, quantity.upper - quantity.center
    deviations = total.std, count.std
    lower, upper = of_ratio(
        count.tail, level, total.values, count.values, deviations, low, high, rounding=rounding
    )
    return quantity.center + lower, quantity.center + upper


def product_interval(
    level: float,
    count: Noisy,
    quantities: Sequence[Quantity],
    sums: Sequence[Noisy],
    products: Noisy,
    *,
    grouped: bool = False,
) -> Ends:
    """The interval of a variance (one quantity) or covariance (two).

    ``grouped``: one number per group; else one number over all groups of ``count`` and ``sums``.
    """
    first = quantities[0]
    shift = half_square(first.reach) * float(first.unit) ** 2 if len(quantities) == 1 else 0.0

    def groups(values: Floats) -> Floats:
        return values[:, np.newaxis] if grouped else values

    factors = [
        (groups(total.values), total.std, q.lower - q.center, q.upper - q.center)
        for q, total in zip(quantities, sums, strict=True)
    ]
    spread = math.prod(q.upper - q.lower for q in quantities) ** (2 / len(quantities))
    # the largest (pooled) variance is n R^2 / (4 (n - J)), and n may be J + 1
    size = 1 if grouped else count.values.size
    most = spread * (size + 1) / 4
    return of_products(
        count.tail,
        level,
        (groups(count.values), count.std),
        factors[0],
        factors[1] if len(factors) > 1 else None,
        (products.values if grouped else products.values[0], products.std),
        shift,
        (0.0 if len(factors) == 1 else -most, most),
    )


def mean_of(quantity: Quantity, count: Noisy, total: Noisy) -> tuple[float, float]:
    """Centre + centred sum / count, and its standard error to first order."""
    rows = max(float(count.values[0]), 1.0)
    offset = float(total.values[0]) / rows
    return quantity.center + offset, math.hypot(total.std, offset * count.std) / rows


def half_square(reach: int) -> int:
    """Return the centre of squares, which makes their bounds symmetric: half the largest square."""
    return reach * reach // 2


@dataclass(frozen=True)
class Variances:
    """Variances by noisy sums of centred values and of their squares, and noisy counts.

    A third of each column's share goes to its count, its sum and its sum of squares; half the
    largest square is subtracted from each square, which halves the sensitivity.
    """

    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope
    offsets = None

    @cached_property
    def counted(self) -> SharedCounts:
        """The counts of the columns."""
        return SharedCounts.of([q.column for q in self.quantities], [w / 3 for w in self.weights])

    @property
    def parts(self) -> tuple[Part, ...]:
        parts = self.counted.parts(self.scope)
        for q, weight, position in zip(self.quantities, self.weights, self.counted.places, strict=True):
            nullable, shift = q.column.nullable, half_square(q.reach)
            sensitivity = self.scope.term(q.low, q.high, nullable=nullable)
            limits = per_record(position, q.low, q.high, q.unit)
            parts.append(scalar(named("sum", q.column), weight / 3, sensitivity, q.unit, limits=limits))
            sensitivity = self.scope.term(-shift, q.reach**2 - shift, nullable=nullable)
            limits = per_record(position, -shift, q.reach**2 - shift, q.unit**2)
            parts.append(
                scalar(named("squares", q.column), weight / 3, sensitivity, q.unit**2, limits=limits)
            )
        return tuple(parts)

    @property
    def ends(self) -> tuple[Any, Any]:
        return variance_bounds(self.quantities)

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(Read("moments", ((quantity,),)) for quantity in self.quantities)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        numbers: list[Whole] = [[answers[reader].rows] for reader in self.counted.readers]
        for quantity, moments in zip(self.quantities, answers, strict=True):
            numbers.append([moments.sums[0]])
            numbers.append([moments.products[0][0] - moments.rows * half_square(quantity.reach)])
        return numbers

    def columns(self, noisy: Sequence[Noisy]) -> list[tuple[Quantity, Noisy, Noisy, Noisy]]:
        """Each column with its noisy count, sum and sum of squares."""
        sums = noisy[len(self.counted.weights) :]
        counts = [noisy[position] for position in self.counted.places]
        return [*zip(self.quantities, counts, sums[::2], sums[1::2], strict=True)]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        values, errors, upper = [], [], []
        columns = self.columns(noisy)
        for quantity, count, total, squares in columns:
            shift = half_square(quantity.reach) * float(quantity.unit) ** 2
            value, error = covariance(count, total, total, squares, shift)
            values.append(value)
            errors.append(error)
            upper.append(largest_variance(quantity.upper - quantity.lower, float(count.values[0])))
        rounding = np.array([quantity.product_rounding(quantity) for quantity in self.quantities])

        def interval(level: float) -> Ends:
            return beside(
                [
                    product_interval(level, count, [quantity], [total], squares)
                    for quantity, count, total, squares in columns
                ]
            )

        return Answer(np.array(values), np.array(errors), rounding, 0.0, np.array(upper), interval)


def rooted(answer: Answer) -> Answer:
    """Standard deviations of variances, 0 where one is negative."""
    roots = np.sqrt(np.maximum(answer.values, 0.0))
    # to first order error / (2 root), and never more than the root of the error
    error = np.asarray(answer.standard_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.where(roots > 0, 1 / (2 * roots), np.inf)
        first = np.where(error > 0, error * steep, 0.0)
    low, high = (np.sqrt(np.maximum(side, 0.0)) for side in (answer.lower, answer.upper))

    def interval(level: float) -> Ends:
        assert answer.interval is not None
        lower, upper = answer.interval(level)
        widened = lower - answer.rounding, upper + answer.rounding
        return np.sqrt(np.maximum(widened[0], 0.0)), np.sqrt(np.maximum(widened[1], 0.0))

    return Answer(roots, np.minimum(first, np.sqrt(error)), 0.0, low, high, interval)


@dataclass(frozen=True, slots=True)
class Description:
    """Counts, means and standard deviations, all made of the noisy parts of `Variances`."""

    variances: Variances
    offsets = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.variances.parts

    @property
    def ends(self) -> tuple[Any, Any]:
        quantities = self.variances.quantities
        (low, high), (none, most) = bounds_of(quantities), variance_bounds(quantities)
        return np.stack([none, low, none]), np.stack([none + math.inf, high, np.sqrt(most)])

    @property
    def reads(self) -> tuple[Read, ...]:
        return self.variances.reads

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return self.variances.exact(answers)

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        deviations = rooted(self.variances.finish(noisy))
        columns = [column[:3] for column in self.variances.columns(noisy)]
        counted = [count for _, count, _ in columns]
        counts = [(float(count.values[0]), count.std) for count in counted]
        means = [mean_of(*column) for column in columns]
        values, errors = (np.array([[pair[i] for pair in row] for row in (counts, means)]) for i in (0, 1))
        lower, upper = self.ends
        upper[2] = deviations.upper

        def interval(level: float) -> Ends:
            halves = [count.tail.half(level, np.array([count.std])) for count in counted]
            center = np.array([count.values[0] for count in counted])
            mean = beside([mean_interval(level, *column) for column in columns])
            assert deviations.interval is not None
            rows = ((center - halves, center + halves), mean, deviations.interval(level))
            lower, upper = (np.vstack(side) for side in zip(*rows, strict=True))
            return lower, upper

        return Answer(
            np.vstack([values, deviations.values]),
            np.vstack([errors, deviations.standard_error]),
            0.0,
            lower,
            upper,
            interval,
        )


def products_part(scope: Scope, share: Fraction, first: Quantity, second: Quantity, nullable: bool) -> Part:
    """The sum of products of two quantities (of centred squares of one), bounded by the count before it."""
    same, most = first is second, first.reach * second.reach
    shift = half_square(first.reach) if same else 0
    low, high, unit = -shift if same else -most, most - shift, first.unit * second.unit
    name = named("squares", first.column) if same else named("products", first.column, second.column)
    sensitivity = scope.term(low, high, nullable=nullable)
    return scalar(name, share, sensitivity, unit, limits=per_record(0, low, high, unit, pooled=True))


def covariance(
    count: Noisy, first: Noisy, second: Noisy, products: Noisy, shift: float
) -> tuple[float, float]:
    """(sum of products - product of sums / n) / (n - 1) and its standard error to first order.

    For a variance (``first`` is ``second``) the square of the noisy sum is too large by the
    variance of its noise on average; that is known, and taken off.
    """
    values, errors = covariances(count, first, second, products, shift)
    return float(values[0]), float(errors[0])


def covariances(
    count: Noisy, first: Noisy, second: Noisy, products: Noisy, shift: float
) -> tuple[Floats, Floats]:
    """Return `covariance` for each group."""
    rows = np.maximum(count.values, 2.0)
    a, b = first.values, second.values
    same = first is second
    cross = a * b - (first.std**2 if same else 0.0)
    values = (products.values + shift * rows - cross / rows) / (rows - 1)
    by_count = (shift + cross / rows**2 - values) * count.std
    by_sums = 2 * a * first.std / rows if same else np.hypot(b * first.std, a * second.std) / rows
    return values, np.hypot(np.hypot(products.std, by_sums), by_count) / (rows - 1)


@dataclass(frozen=True, slots=True)
class Covariance:
    """A covariance matrix by noisy sums: one count, d sums and d(d+1)/2 sums of products, equal shares.

    Records with a null in any of the columns are left out of all entries. ``summed``: whether the sums of the
    quantities themselves are among the parts; a covariance needs them.
    """

    quantities: tuple[Quantity, ...]
    scope: Scope
    summed: bool = True
    offsets = None

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return pairs(len(self.quantities))

    @property
    def parts(self) -> tuple[Part, ...]:
        summed = self.quantities if self.summed else ()
        share = Fraction(1, 1 + len(summed) + len(self._pairs))
        nullable = any(q.column.nullable for q in self.quantities)
        parts = [scalar("count", share, self.scope.count(), Fraction(1), counts=True, lower=Fraction(0))]
        for q in summed:
            sensitivity = self.scope.term(q.low, q.high, nullable=nullable)
            limits = per_record(0, q.low, q.high, q.unit)
            parts.append(scalar(named("sum", q.column), share, sensitivity, q.unit, limits=limits))
        for i, j in self._pairs:
            parts.append(products_part(self.scope, share, self.quantities[i], self.quantities[j], nullable))
        return tuple(parts)

    @property
    def ends(self) -> tuple[Any, Any]:
        return -math.inf, math.inf

    @property
    def reads(self) -> tuple[Read, ...]:
        return (Read("moments", (self.quantities,)),)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        (moments,) = answers
        sums = moments.sums if self.summed else ()
        numbers: list[Whole] = [[moments.rows], *([total] for total in sums)]
        for i, j in self._pairs:
            shift = half_square(self.quantities[i].reach) if i == j else 0
            numbers.append([moments.products[i][j] - moments.rows * shift])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        size = len(self.quantities)
        values, errors = np.empty((size, size)), np.empty((size, size))
        for position, (i, j) in enumerate(self._pairs):
            quantity = self.quantities[i]
            shift = half_square(quantity.reach) * float(quantity.unit) ** 2 if i == j else 0.0
            value, error = covariance(noisy[0], noisy[1 + i], noisy[1 + j], noisy[1 + size + position], shift)
            values[i, j] = values[j, i] = value
            errors[i, j] = errors[j, i] = error
        rows = float(noisy[0].values[0])
        largest = np.array([largest_variance(q.upper - q.lower, rows) for q in self.quantities])

        def interval(level: float) -> Ends:
            return product_intervals(level, noisy, self.quantities, self._pairs)

        bounds = matrix_bounds(values, largest)
        return Answer(values, errors, product_roundings(self.quantities), *bounds, interval)


def product_intervals(
    level: float, noisy: Sequence[Noisy], quantities: Sequence[Quantity], entries: Sequence[tuple[int, int]]
) -> Ends:
    """The intervals of a covariance matrix by a count, sums, and products of each entry, in this order."""
    size = len(quantities)
    ends = np.full((2, size, size), np.nan)
    for position, (i, j) in enumerate(entries):
        indices = [i] if i == j else [i, j]
        ends[:, i, j] = ends[:, j, i] = product_interval(
            level,
            noisy[0],
            [quantities[index] for index in indices],
            [noisy[1 + index] for index in indices],
            noisy[1 + size + position],
        )
    return ends[0], ends[1]
