"""Sums, and moments and covariances from noisy sums and noisy counts where the number of rows is private."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any

import numpy as np

from pdprivacy.core.statistics.confidence import Ends, Noisy, of_mean, of_products
from pdprivacy.core.statistics.interface import (
    NUMBERS,
    Answer,
    Part,
    Quantity,
    Read,
    Scope,
    Statistic,
    Terms,
    bounds_of_sums,
    grouped,
    groups_of,
    largest_variance,
    limits_per_record,
    matrix_bounds,
    matrix_limits,
    pairs,
    part_name,
    part_of_counts,
    part_of_sums,
    product_roundings,
)
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Floats, Whole


@dataclass(frozen=True)
class Sums(Statistic):
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
            bounds = bounds_of_sums(*terms, *self.scope.row_bounds(nullable=nullable))
            name = part_name("sum", q.column)
            parts.append(part_of_sums(self.scope, None, name, weight, terms, bounds, nullable=nullable))
        return tuple(parts)

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return tuple(
            q.center * (self.scope.complete_rows(q.column) or 0) if q.center else 0.0 for q in self.quantities
        )

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(grouped((quantity,), products=False) for quantity in self.quantities)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return [answer.sums[0] for answer in answers]


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
        return noisy.by_group() if per_group else noisy

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
class Covariance(Statistic):
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
            name, terms = part_name(f"sum{plural}", q.column), (q.low, q.high, q.unit)
            bounds = limits_per_record(0, *terms)
            parts.append(part_of_sums(self.scope, groups, name, share, terms, bounds, nullable=nullable))
        for i, j in self._pairs:
            name, terms = self._products(self.quantities[i], self.quantities[j])
            bounds = limits_per_record(0, *terms, pooled=True)
            parts.append(part_of_sums(self.scope, None, name, share, terms, bounds, nullable=nullable))
        return tuple(parts)

    def _products(self, first: Quantity, second: Quantity) -> tuple[str, Terms]:
        """Return the name and the terms of a sum of products, or of a sum of centred squares."""
        unit, most = first.unit * second.unit, first.reach * second.reach
        if first is not second:
            return part_name("products", first.column, second.column), (-most, most, unit)
        shift = half_square(first.reach)
        return part_name("squares", first.column), (-shift, most - shift, unit)

    @property
    def ends(self) -> tuple[Any, Any]:
        size = len(self.quantities)
        return (-math.inf, math.inf) if self.matrix else (np.zeros(size), np.full(size, math.inf))

    @property
    def limits(self) -> tuple[Any, Any] | None:
        # the largest (pooled) variance of J groups has J + 1 records
        groups = groups_of(self.keys, self.method)
        largest = np.array([(q.upper - q.lower) ** 2 for q in self.quantities]) / 4 * (groups + 1)
        return matrix_limits(largest) if self.matrix else (np.zeros(len(largest)), largest)

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
        for position, (i, j) in enumerate(self._pairs):
            shift = shift_of(self.quantities[i]) if i == j else 0.0
            entry, own = ([i, j], [j, i]), noisy[1 + size + position]
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


# ---------------------------------------------------------------- moments per group

PIECES = {
    "count": ("count",),
    "sum": ("total",),
    "mean": ("count", "sum"),
    "var": ("count", "sum", "squares"),
    "std": ("count", "sum", "squares"),
}
"""The noisy numbers of a column for each statistic: a count, a sum that is not centred, centred sums."""

ORDER = ("count", "total", "sum", "squares")
"""The order of the pieces of a column."""


def mean_of(
    quantity: Quantity, count: Noisy, total: Noisy, *, least: float = 1.0, rounding: float = 0.0
) -> Answer:
    """Return centre + noisy centred sum / noisy count per group, with standard errors to first order.

    ``least``: a lower bound of the count that divides the sum. ``rounding`` as in `of_ratio`.

    Source: the noisy average of Li, Lyu, Su, Yang (2016), Algorithm 2.3, centred, which halves the
    sensitivity of the sum.
    """
    rows = np.maximum(count.values, least)
    offset = total.values / rows
    errors = np.hypot(total.std, offset * count.std) / rows
    interval = partial(mean_interval, quantity, count, total, rounding=rounding)
    return Answer(quantity.center + offset, errors, 0.0, quantity.lower, quantity.upper, interval)


def mean_interval(
    quantity: Quantity, count: Noisy, total: Noisy, level: float, *, rounding: float = 0.0
) -> Ends:
    """Return the intervals of means per group; ``rounding`` as in `of_ratio`."""
    low, high = quantity.lower - quantity.center, quantity.upper - quantity.center
    lower, upper = of_mean(level, total, count, low, high, rounding=rounding)
    return quantity.center + lower, quantity.center + upper


def variance_of(quantity: Quantity, count: Noisy, total: Noisy, squares: Noisy) -> Answer:
    """Return sample variances per group, with standard errors to first order."""
    values, errors = covariances(count, total, total, squares, shift_of(quantity))
    upper = largest_variance(quantity.upper - quantity.lower, count.values)

    def interval(level: float) -> Ends:
        return product_interval(level, count, [quantity], [total], squares, per_group=True)

    return Answer(values, errors, quantity.product_rounding(quantity), 0.0, upper, interval)


def deviations_of(answer: Answer) -> Answer:
    """Return the standard deviations for an answer of variances; the root of a negative variance is 0.

    Its interval is that of a variance of 0 with the same margin of error.
    """
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
        widened = lower - answer.rounding, upper - np.minimum(answer.values, 0.0) + answer.rounding
        return np.sqrt(np.maximum(widened[0], 0.0)), np.sqrt(np.maximum(widened[1], 0.0))

    return Answer(roots, np.minimum(first, np.sqrt(error)), 0.0, low, high, interval)


def side_by_side(answers: Sequence[Answer], *, per_group: bool) -> Answer:
    """Return the numbers of several answers as columns; ``per_group``: with one row per group."""

    def table(columns: Sequence[Sequence[Any]]) -> Floats:
        numbers = np.empty((len(columns[0]), answers[0].values.size, len(columns)))
        for position, column in enumerate(columns):
            for row, values in enumerate(column):
                numbers[row, :, position] = values
        return numbers if per_group else numbers[:, 0]

    def interval(level: float) -> Ends:
        lower, upper = table([answer.interval(level) for answer in answers if answer.interval is not None])
        return lower, upper

    numbers = table([*map(attrgetter(*NUMBERS), answers)])
    return Answer(**dict(zip(NUMBERS, numbers, strict=True)), interval=interval)


def shift_to(quantity: Quantity, piece: str) -> int:
    """Return the number that is added for each record: the centre, or minus half the largest square."""
    if piece == "total":
        return round(quantity.center / quantity.grid)
    return -half_square(quantity.reach) if piece == "squares" else 0


def _one_number(_: Quantity, number: Noisy) -> Answer:
    """Return an answer of one noisy number per group, which has the bounds of its part."""

    def interval(level: float) -> Ends:
        half = number.tail.half(level, number.deviation)
        return number.values - half, number.values + half

    return Answer(number.values, number.std, interval=interval)


ANSWERS: dict[str, Callable[..., Answer]] = {
    "count": _one_number,
    "sum": _one_number,
    "mean": mean_of,
    "var": variance_of,
    "std": lambda *pieces: deviations_of(variance_of(*pieces)),
}
"""The function that makes the answer of each statistic from a quantity and its noisy pieces."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of statistics of several columns.

    Parameters
    ----------
    numbers : the column and the statistic of each released number of a group.
    parts : the piece, the columns and the share of the loss of each part. Counts come first; columns without
        nulls share a count. The pieces of a column have equal shares of the loss of the column.
    places : the position among the parts of each piece of a column.
    """

    numbers: tuple[tuple[int, str], ...]
    parts: tuple[tuple[str, tuple[int, ...], Fraction], ...]
    places: dict[tuple[int, str], int]

    @classmethod
    @lru_cache(maxsize=256)
    def of(
        cls, kinds: tuple[tuple[str, ...], ...], nullable: tuple[bool, ...], weights: tuple[Fraction, ...]
    ) -> Layout:
        """Return the layout for the statistics, nullability and share of the loss of each column."""
        pieces = [[piece for piece in ORDER if any(piece in PIECES[kind] for kind in own)] for own in kinds]
        needed = [(column, piece) for column, own in enumerate(pieces) for piece in own]
        needed.sort(key=lambda pair: pair[1] != "count")
        columns: dict[tuple[str, int | None], tuple[int, ...]] = {}
        for column, piece in needed:
            key = piece, None if piece == "count" and not nullable[column] else column
            columns[key] = (*columns.get(key, ()), column)
        shares = [weight / len(own) for weight, own in zip(weights, pieces, strict=True)]
        return cls(
            tuple((column, kind) for column, own in enumerate(kinds) for kind in own),
            tuple(
                (piece, own, sum((shares[column] for column in own), Fraction(0)))
                for (piece, _), own in columns.items()
            ),
            {
                (column, piece): index
                for index, ((piece, _), own) in enumerate(columns.items())
                for column in own
            },
        )


@dataclass(frozen=True)
class Moments(Statistic):
    """Counts, sums, means, variances or deviations per declared group, charged once: groups are disjoint.

    Sums are centred, and half the largest square is subtracted from each square, which halves their
    sensitivities.

    Source: parallel composition (McSherry 2009, Theorem 4) under "add_remove"; under "replace_one" a record
    may move and change two groups, and the sensitivities include both.

    Parameters
    ----------
    kinds : the statistics of each column. They share one set of noisy pieces, `PIECES`, which have equal
        shares of the column's loss, so a further statistic costs nothing unless it needs another piece.
    quantities, weights : the numbers and the share of the loss of each column.
    scope : the public facts of the rows.
    keys : the columns of the groups; if empty, all records are one group and the answer has no group axis.
    """

    kinds: tuple[tuple[str, ...], ...]
    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    scope: Scope
    keys: tuple[Column, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        """The parts and the released numbers."""
        return Layout.of(self.kinds, tuple([q.column.nullable for q in self.quantities]), self.weights)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        groups, positions, parts = groups_of(self.keys) if self.keys else None, self.layout.places, []
        for piece, (column, *_), share in self.layout.parts:
            q, nullable = self.quantities[column], self.quantities[column].column.nullable
            if piece == "count":
                name = part_name("count", q.column) if nullable else "count"
                parts.append(part_of_counts(self.scope, groups, name, share))
                continue
            shift = shift_to(q, piece)
            terms = q.low + shift, q.high + shift, q.unit
            if piece == "squares":
                terms = shift, q.reach**2 + shift, q.unit**2
            bounds: Any
            if piece == "total":
                # a group may be empty, or hold any number of records
                name, bounds = "sum", bounds_of_sums(*terms)
            else:
                # tell a centred sum from a plain sum of the same column
                name = "centred sum" if piece == "sum" and (column, "total") in positions else piece
                bounds = limits_per_record(positions[column, "count"], *terms)
            name = part_name(name, q.column)
            parts.append(part_of_sums(self.scope, groups, name, share, terms, bounds, nullable=nullable))
        return tuple(parts)

    @cached_property
    def offsets(self) -> tuple[float, ...] | None:
        return (0.0,) * len(self.quantities) if set(self.kinds) == {("sum",)} else None

    @property
    def ends(self) -> tuple[Any, Any]:
        ends = np.empty((2, len(self.layout.numbers)))
        for position, (column, kind) in enumerate(self.layout.numbers):
            q = self.quantities[column]
            if kind == "mean":
                ends[:, position] = q.lower, q.upper
            elif kind in ("count", "sum"):
                ends[:, position] = self.parts[self.layout.places[column, PIECES[kind][0]]].bounds
            else:
                # a variance is largest for two records
                most = largest_variance(q.upper - q.lower, 2.0)
                ends[:, position] = 0.0, math.sqrt(most) if kind == "std" else most
        return ends[0], ends[1]

    @property
    def limits(self) -> tuple[Any, Any] | None:
        summed = np.array([kind in ("count", "sum") for _, kind in self.layout.numbers])
        if summed.all():
            return None
        lower, upper = self.ends
        return np.where(summed, -math.inf, lower), np.where(summed, math.inf, upper)

    @property
    def reads(self) -> tuple[Read, ...]:
        squared = [(column, "squares") in self.layout.places for column in range(len(self.quantities))]
        columns = zip(self.quantities, squared, strict=True)
        return tuple([grouped((q,), self.keys, products=products) for q, products in columns])

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        numbers: list[Whole] = []
        for piece, (column, *_), _ in self.layout.parts:
            sums = answers[column]
            if piece in ("count", "sum"):
                numbers.append(sums.rows if piece == "count" else sums.sums[0])
                continue
            totals, shift = sums.sums[0], shift_to(self.quantities[column], piece)
            if piece == "squares":
                totals = sums.products[0, 0]
            numbers.append([total + shift * n for total, n in zip(totals, sums.rows, strict=True)])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        answer = self.answer_of(noisy)
        return answer if self.offsets is None else replace(answer, interval=None)

    def answer_of(self, noisy: Sequence[Noisy]) -> Answer:
        """Return the answer with its intervals; a standard deviation of noise may be one per group."""
        answers = []
        for column, kind in self.layout.numbers:
            positions = [self.layout.places[column, piece] for piece in PIECES[kind]]
            answer = ANSWERS[kind](self.quantities[column], *[noisy[position] for position in positions])
            if len(positions) == 1:
                lower, upper = self.parts[positions[0]].bounds
                answer = replace(answer, lower=lower, upper=upper)
            answers.append(answer)
        return side_by_side(answers, per_group=bool(self.keys))
