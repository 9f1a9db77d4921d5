"""Weighted sums, means and tables; the weights are a declared column of numbers of at least 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from pdprivacy.core import sensitivities as sensitivity
from pdprivacy.core.statistics.confidence import Noisy
from pdprivacy.core.statistics.interface import (
    SUM_BITS,
    Answer,
    Part,
    Quantity,
    Read,
    Scope,
    Statistic,
    bounds_of_sums,
    grouped,
    groups_of,
    limits_per_record,
    part_name,
    part_of_sums,
)
from pdprivacy.core.statistics.sums import ANSWERS, PIECES, Layout, mean_of, shift_to, side_by_side
from pdprivacy.declaration.domain import Column, Kind
from pdprivacy.errors import DeclarationError, ParameterError
from pdprivacy.exact import next_up
from pdprivacy.types import Floats, Whole, settle


def weight_of(column: Column, method: str, *, bits: int = SUM_BITS) -> Quantity:
    """Return the quantity of the weights in ``column``, not centred, as ``method`` reads them.

    Raises DeclarationError if the declared bounds of the column are missing, below 0 or both 0.
    """
    lower, upper = column.bounds(method)
    if not 0 <= lower <= upper or not upper > 0:
        raise DeclarationError(
            f"'weights' must be declared as numbers of at least 0, some above 0 "
            f"(column {column.name!r} has bounds {lower:g} and {upper:g}).",
            f"private.clip(lower={{{column.name!r}: 0}}), or other bounds in the schema",
        )
    return Quantity(column, lower, upper, centered=False, bits=bits)


FEWEST_BITS = 16
"""The smallest number of bits of the weights of a quantile; fewer would be too coarse."""


def quantile_bits(q: Fraction) -> int:
    """Return the bits of weights that keep sums over 2**32 records below 2**62 steps of 1 / denominator.

    Raises ParameterError if these are fewer than `FEWEST_BITS`.

    >>> quantile_bits(Fraction(1, 2)), quantile_bits(Fraction(9_999, 10**4))
    (28, 16)
    """
    bits = 30 - q.denominator.bit_length()
    if bits < FEWEST_BITS:
        most = 2 ** (30 - FEWEST_BITS) - 1
        near = min(max(q.limit_denominator(most), Fraction(1, most)), Fraction(most - 1, most))
        raise ParameterError(
            f"With 'weights', the denominator of 'q' must be at most {most} (got q={float(q):.7g}).",
            f'q="{near}", which is {float(near):.7g}',
        )
    return bits


@dataclass(frozen=True)
class Weighted(Statistic):
    """Weighted sums, sums of weights, and weighted means: centre + sum of w (x - c) / sum of w.

    With ``keys`` there is one number per declared group, charged once because groups are disjoint. Records
    with a null in the weight or in the column are left out. The pieces of a column (`PIECES`) have equal
    shares of its loss: a mean spends half on its sum and half on the sum of the weights; columns without
    nulls share one sum of the weights and pool their shares for it.

    ``kinds``: "count" (the sum of the weights), "sum" and "mean", for each column.

    Sensitivity: a product of a value and a weight is a term between the least and the largest product of
    their bounds (`pdprivacy.sensitivity.weighted_range`). A sum beside a mean is read as the sum of
    w (x - c), and c times the sum of w is added: both are sums over the same records, so its terms are
    products of w and x, as those of a sum by itself.
    """

    kinds: tuple[tuple[str, ...], ...]
    quantities: tuple[Quantity, ...]
    shares: tuple[Fraction, ...]
    weight: Quantity
    scope: Scope
    keys: tuple[Column, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        """The layout of the parts, with sums of weights in place of counts."""
        return Layout.of(self.kinds, tuple([q.column.nullable for q in self.quantities]), self.shares)

    def _are_all(self, kind: str) -> bool:
        """Return whether the statistics are all of one kind."""
        return {*self.kinds} == {(kind,)}

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        weight, scope, parts = self.weight, self.scope, []
        groups = groups_of(self.keys) if self.keys else None
        for piece, (column, *_), share in self.layout.parts:
            q = self.quantities[column]
            bounds: Any = Fraction(0), None
            name, terms = part_name("sum", q.column), (weight.low, weight.high, weight.unit)
            nullable = q.column.nullable or weight.column.nullable
            if piece == "count":
                name = part_name("weights", q.column) if q.column.nullable else "weights"
            else:
                shift = shift_to(q, piece)
                low, high = sensitivity.weighted_range(q.low + shift, q.high + shift, weight.low, weight.high)
                terms = low, high, weight.unit * q.unit
            if piece == "sum":
                if (column, "total") in self.layout.places:
                    name = part_name("centred sum", q.column)
                bounds = limits_per_record(self.layout.places[column, "count"], q.low, q.high, q.unit)
            if piece == "total":
                bounds = bounds_of_sums(*terms, *(() if self.keys else scope.row_bounds(nullable=nullable)))
            parts.append(part_of_sums(scope, groups, name, share, terms, bounds, nullable=nullable))
        return tuple(parts)

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return (0.0,) * len(self.quantities) if self._are_all("sum") else None

    @property
    def ends(self) -> tuple[Any, Any]:
        return super().ends if self._are_all("sum") else self._ends(None)

    @property
    def limits(self) -> tuple[Any, Any] | None:
        if not any("mean" in own for own in self.kinds):
            return None
        return self._ends((-math.inf, math.inf))

    def _ends(self, of_sums: tuple[float, float] | None) -> tuple[Floats, Floats]:
        """Return the bounds of each number; ``of_sums``: those of sums, or None for those of their parts."""
        ends = np.empty((2, len(self.layout.numbers)))
        for position, (column, kind) in enumerate(self.layout.numbers):
            q = self.quantities[column]
            part = self.parts[self.layout.places[column, PIECES[kind][0]]]
            ends[:, position] = (q.lower, q.upper) if kind == "mean" else of_sums or part.bounds
        return ends[0], ends[1]

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(grouped((self.weight, q), self.keys) for q in self.quantities)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        numbers: list[Whole] = []
        for piece, (column, *_), _ in self.layout.parts:
            weights, products = answers[column].sums[0], answers[column].products
            if piece == "count":
                numbers.append(weights)
                continue
            shift = shift_to(self.quantities[column], piece)
            pairs = zip(products[0, 1], weights, strict=True)
            numbers.append([product + shift * total for product, total in pairs])
        return numbers

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        if self._are_all("sum"):
            deviations = np.array([part.std for part in noisy])
            values = np.column_stack([part.values for part in noisy])
            values = values if self.keys else values[0]
            moved = [self._term_rounding(q) for q in self.quantities]
            answer = Answer(values, np.broadcast_to(deviations, values.shape), 0.0, *self.ends)
            if (rows := self.scope.row_bounds()[1]) is None:
                return replace(answer, rounding_per_record=self._rounding_per_record(moved, values))
            return replace(answer, rounding=np.broadcast_to(rows * np.array(moved), values.shape))
        answers, private = zip(*map(partial(self._number, noisy), self.layout.numbers), strict=True)
        answer = side_by_side(answers, per_group=bool(self.keys))
        answer = replace(answer, rounding_per_record=self._rounding_per_record(private, answer.values))
        if not self._are_all("mean"):
            return answer
        effective = []
        for column, q in enumerate(self.quantities):
            total = noisy[self.layout.places[column, "count"]]
            least, most = self.scope.row_bounds(nullable=q.column.nullable or self.weight.column.nullable)
            effective.append(effective_rows(total.values, self.weight, 0 if self.keys else least, most))
        records = np.column_stack(effective)
        return replace(answer, effective_rows=records if self.keys else records[0])

    def _number(self, noisy: Sequence[Noisy], number: tuple[int, str]) -> tuple[Answer, float]:
        """Return one number per group, and its rounding for each record where the interval leaves it out."""
        column, kind = number
        q, places = self.quantities[column], self.layout.places
        if kind == "mean":
            known, private, ratio = (each[column] for each in self.ratio_roundings())
            total, part = noisy[places[column, "count"]], noisy[places[column, "sum"]]
            mean = mean_of(q, total, part, least=self.weight.upper, rounding=ratio)
            return replace(mean, rounding=known), private
        piece = places[column, PIECES[kind][0]]
        lower, upper = map(float, self.parts[piece].bounds)
        answer = replace(ANSWERS[kind](q, noisy[piece]), lower=lower, upper=upper)
        moved = self.weight.rounding if kind == "count" else self._term_rounding(q)
        if (rows := self.scope.row_bounds()[1]) is None:
            return answer, moved
        return replace(answer, rounding=rows * moved), 0.0

    def _term_rounding(self, q: Quantity) -> float:
        """Return the largest rounding error of a term w x: w'x' - wx = w'(x' - x) + x (w' - w)."""
        largest = self.weight.high * self.weight.grid
        return largest * q.rounding + max(abs(q.lower), abs(q.upper)) * self.weight.rounding

    def ratio_roundings(self) -> tuple[list[float], list[float], list[float]]:
        """Return three bounds of the rounding error of each mean: in all, per record, and of its sum.

        With w' and x' the rounded numbers, W' the sum of w', and m the weighted mean of x, the sum of
        w (x - m) is 0. So the sum of w'(x' - m) is the sum of w'(x' - x) + (w' - w)(x - m). This sum is at
        most W' times the rounding of a value, plus n times the rounding of a weight times the range of the
        values.

        The first bound is the first term, divided by W'. Where n is public, the third bound is the second
        term. Where the least declared weight is positive, n is at most W' divided by that weight, and the
        second term adds to the first bound. Otherwise n is unknown, and the second bound is the second term
        for each record.
        """
        rows, least = self.scope.row_bounds()[1], self.weight.low * self.weight.grid
        terms = [(q.upper - q.lower) * self.weight.rounding for q in self.quantities]
        known, none = [q.rounding for q in self.quantities], [0.0] * len(terms)
        if rows is not None:
            return known, none, [rows * term for term in terms]
        if least > 0:
            return [rounding + term / least for rounding, term in zip(known, terms, strict=True)], none, none
        return known, terms, none

    @staticmethod
    def _rounding_per_record(each: Sequence[float], values: Floats) -> Floats | None:
        return np.broadcast_to(np.array(each), values.shape) if any(each) else None


def effective_rows(totals: Any, weight: Quantity, rows: int = 0, most: int | None = None) -> Floats:
    """Return the least effective number of records with these total weights, from 1 to ``most``.

    The effective number of n records is (sum of w)^2 / (sum of w^2). For weights in [a, b],
    (w - a) (w - b) <= 0, so the sum of squares is at most (a + b) W - n a b, where W is the sum of the
    weights. Without a known n it is at most b W, the same bound for the fewest records, n = W / b. Noise can
    raise W above the largest weight of all records, so a public number of records, ``most``, is a limit, too.

    Source: Kish (1965), "Survey Sampling", section 8.2; the bound is that of Bhatia, Davis (2000).
    """
    a, b = weight.lower, weight.upper
    totals = np.maximum(totals, b)
    known = np.clip(rows, totals / b, totals / a if a > 0 else np.inf)
    sizes = totals**2 / ((a + b) * totals - known * a * b)
    return np.asarray(sizes if most is None else np.clip(sizes, 1.0, max(most, 1)))


@dataclass(frozen=True)
class WeightedCells(Statistic):
    """Sums of weights per declared cell of one or more columns; ``edges``: the edges of bins in the call.

    The total weight is private even where the number of records is public.
    """

    columns: tuple[Column, ...]
    scope: Scope
    method: str
    weight: Quantity
    edges: tuple[float, ...] | None = None
    most: int | None = field(init=False)
    offsets = (0.0,)

    def __post_init__(self) -> None:
        settle(self, most=self.scope.row_bounds()[1], scope=replace(self.scope, rows=None))

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns whose cells are read; with edges, there are a bin below and a bin above all edges."""
        if self.edges is None:
            return self.columns
        column, (first, *_, last) = self.columns[0], self.edges
        lower, upper = column.bounds(self.method)
        # the last bin includes its upper edge, which would otherwise begin the next bin
        inner = (*self.edges[:-1], next_up(last))
        outer = min(lower, first - max(abs(first), 1.0)), max(upper, last) + max(abs(upper), abs(last), 1.0)
        kind: Kind = "integer" if column.kind == "integer" else "float"
        bins = (outer[0], *inner, outer[1])
        return (replace(column, kind=kind, categories=None, bins=bins),)

    @property
    def parts(self) -> tuple[Part, ...]:
        size = math.prod(key.cells(self.method) for key in self.keys) - (2 if self.edges else 0)
        terms, bounds = (self.weight.low, self.weight.high, self.weight.unit), (Fraction(0), None)
        return (part_of_sums(self.scope, size, "weights", Fraction(1), terms, bounds, nullable=True),)

    @property
    def ends(self) -> tuple[Any, Any]:
        return 0.0, math.inf

    @property
    def reads(self) -> tuple[Read, ...]:
        return (grouped((self.weight,), self.keys, self.method, products=False),)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        sums = answers[0].sums[0]
        if self.edges is None:
            return [sums]
        return [[*sums[1 : len(self.edges)], *sums[len(self.edges) + 1 :]]]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        values, std = noisy[0].values, noisy[0].std
        # bounding may raise each cell of a sum by this much: subtract it from the total
        raised = noisy[0].tail.bias * std

        def effective_rows_of_sums(sums: Any, cells: Any) -> Floats:
            return effective_rows(sums - raised * cells, self.weight, most=self.most)

        return Answer(
            values,
            std,
            0.0,
            *self.ends,
            effective_rows=effective_rows_of_sums(values.sum(), values.size),
            effective_rows_of_sums=effective_rows_of_sums,
            largest_term=self.weight.upper,
        )
