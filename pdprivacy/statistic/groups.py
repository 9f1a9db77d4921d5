"""Statistics per declared group, and pooled over groups, with private group sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pdprivacy.domain import Column
from pdprivacy.statistic.confidence import Ends
from pdprivacy.statistic.interface import (
    NUMBERS,
    Answer,
    Noisy,
    Part,
    Quantity,
    Read,
    Scope,
    Whole,
    largest_variance,
    matrix_bounds,
    named,
    pairs,
    per_record,
    product_roundings,
    variance_bounds,
)
from pdprivacy.statistic.sums import (
    SharedCounts,
    covariances,
    half_square,
    mean_interval,
    product_interval,
    product_intervals,
    products_part,
    rooted,
)

__all__ = ["PIECES", "GroupedMoments", "PooledCovariance"]


PIECES = {
    "count": ("count",),
    "sum": ("total",),
    "mean": ("count", "sum"),
    "var": ("count", "sum", "squares"),
    "std": ("count", "sum", "squares"),
}
"""The noisy numbers of a column that each statistic is made of: a count, a sum as it is, centred sums."""


@dataclass(frozen=True)
class GroupedMoments:
    """Counts, sums, means, variances or deviations per declared group, charged once: groups are disjoint.

    Source: parallel composition (McSherry 2009, Theorem 4) under "add_remove"; under
    "replace_one" a record may move, so that two groups change, which the sensitivities hold.

    Parameters
    ----------
    kinds : the statistics of each column. They are made of one set of noisy pieces, `PIECES`, whose shares of
        the column's loss are equal, so that a statistic more costs nothing where it has no piece of its own.
    quantities, weights : of each column, its numbers and its share of the loss.
    keys : the columns of the groups; none for all records as one group.
    """

    kinds: tuple[tuple[str, ...], ...]
    quantities: tuple[Quantity, ...]
    weights: tuple[Fraction, ...]
    keys: tuple[Column, ...]
    scope: Scope

    @property
    def groups(self) -> int:
        """Number of declared groups."""
        return math.prod(key.cells("groupby") for key in self.keys)

    @property
    def numbers(self) -> list[tuple[int, str]]:
        """The place of a column and its statistic, of each released number of a group."""
        return [(place, kind) for place, kinds in enumerate(self.kinds) for kind in kinds]

    @cached_property
    def _pieces(self) -> list[list[str]]:
        """The pieces of each column."""
        return [
            [piece for piece in ORDER if any(piece in PIECES[kind] for kind in kinds)] for kinds in self.kinds
        ]

    @cached_property
    def _counting(self) -> list[int]:
        """The places of the columns that need a count."""
        return [place for place, pieces in enumerate(self._pieces) if "count" in pieces]

    @cached_property
    def counted(self) -> SharedCounts:
        """The counts of the columns that need one."""
        shares = [self.weights[place] / len(self._pieces[place]) for place in self._counting]
        return SharedCounts.of([self.quantities[place].column for place in self._counting], shares)

    @cached_property
    def _places(self) -> dict[tuple[int, str], int]:
        """The place among the parts of each piece of a column."""
        counts = zip(self._counting, self.counted.places, strict=True)
        found = {(column, "count"): place for column, place in counts}
        own = [(at, piece) for at, pieces in enumerate(self._pieces) for piece in pieces if piece != "count"]
        return found | {key: place for place, key in enumerate(own, len(self.counted.weights))}

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        found = self.counted.parts(self.scope, self.groups if self.keys else None)
        for column, piece in [key for key in self._places if key[1] != "count"]:
            q = self.quantities[column]
            share = self.weights[column] / len(self._pieces[column])
            if piece == "total":
                origin = round(q.center / q.grid)
                low, high = q.low + origin, q.high + origin
                found.append(self._part(named("sum", q.column), share, q, low, high, q.unit, None))
                continue
            place = self._places[column, "count"]
            # a centred sum beside a sum as it is has a name of its own
            beside = piece == "sum" and "total" in self._pieces[column]
            name = named("centred sum" if beside else piece, q.column)
            low, high, unit = q.low, q.high, q.unit
            if piece == "squares":
                shift = half_square(q.reach)
                low, high, unit = -shift, q.reach**2 - shift, q.unit**2
            found.append(self._part(name, share, q, low, high, unit, place))
        return tuple(found)

    def _part(
        self, name: str, share: Fraction, q: Quantity, low: int, high: int, unit: Fraction, place: int | None
    ) -> Part:
        """Sums per group of terms in [low, high], over the records that the part at ``place`` counts."""
        moved = self.scope.term(low, high, nullable=q.column.nullable)
        l1, l2_squared = self.scope.disjoint(low, high) if self.keys else (moved, moved**2)
        return Part(
            name,
            share,
            l1,
            l2_squared,
            unit,
            self.groups,
            moves=self.scope.moves if self.keys else 1,
            # a group may be empty, or hold any number of records
            lower=Fraction(0) if place is None and low >= 0 else None,
            upper=Fraction(0) if place is None and high <= 0 else None,
            limits=None if place is None else per_record(place, low, high, unit),
        )

    @property
    def offsets(self) -> tuple[float, ...] | None:
        alone = all(kinds == ("sum",) for kinds in self.kinds)
        return (0.0,) * len(self.quantities) if alone else None

    @property
    def ends(self) -> tuple[Any, Any]:
        lower, upper = zip(*(self._ends(*number) for number in self.numbers), strict=True)
        return np.array(lower), np.array(upper)

    def _ends(self, column: int, kind: str) -> tuple[float, float]:
        """The public bounds of a statistic of a column."""
        quantity = self.quantities[column]
        if kind == "sum":
            lower, upper = self.parts[self._places[column, "total"]].bounds
            return float(lower), float(upper)
        if kind == "mean":
            return quantity.lower, quantity.upper
        if kind == "count":
            return 0.0, math.inf
        most = float(variance_bounds([quantity])[1][0])
        return 0.0, math.sqrt(most) if kind == "std" else most

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(
            Read("grouped", ((quantity,), self.keys, "groupby"), (("products", "squares" in pieces),))
            for quantity, pieces in zip(self.quantities, self._pieces, strict=True)
        )

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        numbers: list[Whole] = [answers[self._counting[reader]].rows for reader in self.counted.readers]
        for column, piece in [key for key in self._places if key[1] != "count"]:
            quantity, grouped = self.quantities[column], answers[column]
            if piece == "sum":
                numbers.append(grouped.sums[0])
                continue
            # the centre of each record is added again; half the largest square is taken off
            totals, term = grouped.sums[0], round(quantity.center / quantity.grid)
            if piece == "squares":
                totals, term = grouped.products[0, 0], -half_square(quantity.reach)
            numbers.append([total + term * n for total, n in zip(totals, grouped.rows, strict=True)])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        answers = [self._answer(column, kind, noisy) for column, kind in self.numbers]

        def beside(name: str) -> Any:
            columns = [np.broadcast_to(getattr(answer, name), self.groups) for answer in answers]
            return np.column_stack(columns).astype(np.float64)

        def interval(level: float) -> Ends:
            ends = [answer.interval(level) for answer in answers if answer.interval is not None]
            lower, upper = (np.column_stack(side) for side in zip(*ends, strict=True))
            return lower, upper

        fields = {name: beside(name) for name in NUMBERS}
        return Answer(**fields, interval=None if self.offsets is not None else interval)

    def _answer(self, column: int, kind: str, noisy: Sequence[Noisy]) -> Answer:
        """One statistic of a column, a number per group."""
        quantity = self.quantities[column]
        lower, upper = self._ends(column, kind)
        one, *more = (noisy[self._places[column, piece]] for piece in PIECES[kind])
        if not more:

            def own(level: float) -> Ends:
                half = one.tail.half(level, np.array([one.std]))
                return one.values - half, one.values + half

            return Answer(one.values, one.std, 0.0, lower, upper, own)
        if kind == "mean":
            return _means(quantity, one, more[0], (lower, upper))
        answer = _variances(quantity, one, *more)
        return rooted(answer) if kind == "std" else answer


ORDER = ("count", "total", "sum", "squares")
"""The order of the pieces of a column."""


def _means(quantity: Quantity, count: Noisy, total: Noisy, ends: tuple[float, float]) -> Answer:
    """Centre + centred sum / count per group, with standard errors to first order."""
    rows = np.maximum(count.values, 1.0)
    offset = total.values / rows
    errors = np.hypot(total.std, offset * count.std) / rows

    def interval(level: float) -> Ends:
        return mean_interval(level, quantity, count, total)

    return Answer(quantity.center + offset, errors, 0.0, *ends, interval)


def _variances(quantity: Quantity, count: Noisy, total: Noisy, squares: Noisy) -> Answer:
    """Sample variances per group, with standard errors to first order."""
    shift = half_square(quantity.reach) * float(quantity.unit) ** 2
    values, errors = covariances(count, total, total, squares, shift)
    upper = largest_variance(quantity.upper - quantity.lower, count.values)

    def interval(level: float) -> Ends:
        return product_interval(level, count, [quantity], [total], squares, grouped=True)

    return Answer(values, errors, quantity.product_rounding(quantity), 0.0, upper, interval)


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
    offsets = None

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return pairs(len(self.quantities))[: None if self.matrix else len(self.quantities)]

    @property
    def method(self) -> str:
        """The release that asks for it."""
        return "pooled_cov" if self.matrix else "pooled_var"

    @property
    def groups(self) -> int:
        """Number of declared groups."""
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
    def ends(self) -> tuple[Any, Any]:
        size = len(self.quantities)
        return (-math.inf, math.inf) if self.matrix else (np.zeros(size), np.full(size, math.inf))

    @property
    def reads(self) -> tuple[Read, ...]:
        return (Read("grouped", (self.quantities, self.keys, self.method), (("products", True),)),)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        (grouped,) = answers
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
