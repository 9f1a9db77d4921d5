"""Statistics computed exactly and given their own noise, where a number of rows is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pdprivacy import sensitivity
from pdprivacy.domain import Column
from pdprivacy.statistic.core import (
    Answer,
    Engine,
    Noisy,
    Part,
    Scope,
    Whole,
    named,
    scalar,
)
from pdprivacy.statistic.quantity import Quantity, product_roundings

__all__ = ["Direct"]


@dataclass(frozen=True, slots=True)
class Direct:
    """Means, variances, covariances or pooled ones, each exact and then given its own noise.

    ``kind``: "mean", "var" or "cov"; with ``keys`` the pooled form of the last two. ``rows``:
    the public number of rows, or its lower bound.
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
        if self.kind == "cov":
            return [(i, j) for i in range(size) for j in range(i, size)]
        return [(i, i) for i in range(size)]

    @property
    def groups(self) -> int:
        """How many groups are declared."""
        return math.prod(key.cells(f"pooled_{self.kind}") for key in self.keys)

    def _moved(self, i: int, j: int) -> Fraction:
        """The sensitivity of one entry, in grid steps or their products."""
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
        """Steps per unit of the statistic: a power of two that makes the sensitivity about 2**21 steps."""
        exponent = 21 + moved.denominator.bit_length() - moved.numerator.bit_length()
        return Fraction(1 << max(exponent, 0), 1 << max(-exponent, 0))

    @property
    def parts(self) -> tuple[Part, ...]:
        found = []
        shares = self.weights if self.kind != "cov" else [Fraction(1, len(self._pairs))] * len(self._pairs)
        for (i, j), weight in zip(self._pairs, shares, strict=True):
            moved = self._moved(i, j)
            finer = self._refinement(moved)
            first, second = self.quantities[i], self.quantities[j]
            unit = first.unit if self.kind == "mean" else first.unit * second.unit
            columns = (first.column,) if i == j else (first.column, second.column)
            what = self.kind if i != j or self.kind == "mean" else "var"
            name = named(f"pooled {what}" if self.keys else what, *columns)
            # the statistic is rounded to the finer unit, which can add one step to a difference
            steps = math.floor(moved * finer) + 1
            found.append(scalar(name, weight, steps, unit / finer))
        return tuple(found)

    def read(self, engine: Engine) -> list[Whole]:
        return [
            [round(entry * self._refinement(self._moved(i, j)))]
            for (i, j), entry in zip(self._pairs, self._entries(engine), strict=True)
        ]

    def _entries(self, engine: Engine) -> list[Fraction]:
        """The exact statistic per entry, in grid steps or their products."""
        rows = engine.rows  # the columns are without nulls
        if self.kind == "mean":
            return [Fraction(engine.sum(quantity)[1], rows) for quantity in self.quantities]
        if self.keys:
            grouped = engine.grouped(self.quantities, self.keys, f"pooled_{self.kind}", products=True)
            spare = rows - self.groups
            return [
                sum(
                    (
                        grouped.products[i, j][group]
                        - Fraction(grouped.sums[i][group] * grouped.sums[j][group], held)
                        for group, held in enumerate(grouped.rows)
                        if held
                    ),
                    Fraction(0),
                )
                / spare
                for i, j in self._pairs
            ]
        if self.kind == "cov":
            together = engine.moments(self.quantities)
            entries = [(together, i, j) for i, j in self._pairs]
        else:
            entries = [(engine.moments([quantity]), 0, 0) for quantity in self.quantities]
        return [
            Fraction(rows * m.products[i][j] - m.sums[i] * m.sums[j], rows * (rows - 1))
            for m, i, j in entries
        ]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        if self.kind != "cov":
            values = np.array([part.values[0] for part in noisy])
            errors = np.array([part.std for part in noisy])
            if self.kind == "mean":
                return Answer(values + [quantity.center for quantity in self.quantities], errors)
            return Answer(values, errors, np.array([q.product_rounding(q) for q in self.quantities]))
        size = len(self.quantities)
        matrix, errors = np.empty((size, size)), np.empty((size, size))
        for (i, j), part in zip(self._pairs, noisy, strict=True):
            matrix[i, j] = matrix[j, i] = part.values[0]
            errors[i, j] = errors[j, i] = part.std
        return Answer(matrix, errors, product_roundings(self.quantities))
