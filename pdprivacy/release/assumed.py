"""Assumed sufficient statistics, which a plan reads in place of the records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.statistic import GroupedSums, Quantity, Read

__all__ = ["Assumption"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A table of ``rows`` records without nulls, spread evenly over all cells.

    ``at``: the mean of each number, or its variance in a plan of variances. By default
    the middle of the bounds, and the variance of uniform values; covariances are zero.
    """

    rows: int
    at: float | None = None

    def answer(self, read: Read) -> Any:
        """Return the answer to a read, of this table; ParameterError where ``at`` is out of bounds."""
        match read.name, read.args:
            case ("rows", ()) | ("present", _):
                return self.rows
            case "table", (columns, method):
                return self._cells(math.prod(column.cells(method) for column in columns))
            case "bins", (column, edges):
                return self._cells(len(edges) - 1 + int(column.nullable))
        quantities, keys, method = read.args
        return self._grouped(quantities, keys, method, products=dict(read.options)["products"])

    def _cells(self, cells: int) -> NDArray[np.int64]:
        if self.at is not None:
            return np.full(cells, round(self.at))
        counts = np.full(cells, self.rows // cells)
        counts[: self.rows % cells] += 1
        return counts

    def _mean(self, quantity: Quantity) -> int:
        if self.at is None:
            return 0 if quantity.low <= 0 <= quantity.high else (quantity.low + quantity.high) // 2
        _check(self.at, quantity.lower, quantity.upper)
        steps = round((self.at - quantity.center) / quantity.grid)
        return min(max(steps, quantity.low), quantity.high)

    def _square(self, quantity: Quantity) -> int:
        """The mean square about the centre, in steps."""
        if self.at is not None:
            _check(self.at, 0.0, (quantity.upper - quantity.lower) ** 2 / 2)
        middle = (quantity.high + quantity.low) / 2  # about 0, unless the quantity is not centred
        variance = (quantity.high - quantity.low) ** 2 / 12 + middle**2
        if self.at is not None:
            variance = self.at / quantity.grid**2
        return round(min(variance, quantity.reach**2))

    def _grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        rows = Assumption(self.rows)._cells(math.prod(key.cells(method) for key in keys)).tolist()
        if quantities[0].weighs and (len(quantities) == 2 or method != "groupby"):
            return self._weighted(quantities, rows, products=products)
        sums = [[0 if products else n * self._mean(quantity) for n in rows] for quantity in quantities]
        if not products:
            return GroupedSums(rows, sums, {})
        spare = 0 if keys else 1  # the divisor of a variance of all records is n - 1
        squares = {
            (i, j): [max(n - spare, 0) * self._square(quantities[i]) if i == j else 0 for n in rows]
            for i in range(len(quantities))
            for j in range(i, len(quantities))
        }
        return GroupedSums(rows, sums, squares)

    def _weighted(self, quantities: Sequence[Quantity], rows: list[int], *, products: bool) -> GroupedSums:
        """Sums for weights in the middle of their bounds; ``at``: the weight of a cell, or the mean."""
        weight, middle = quantities[0], (quantities[0].low + quantities[0].high) // 2
        if not products:
            total = None if self.at is None else round(self.at / weight.grid)
            return GroupedSums(rows, [[n * middle if total is None else total for n in rows]], {})
        mean = self._mean(quantities[1])
        sums = [[n * middle for n in rows], [n * mean for n in rows]]
        return GroupedSums(rows, sums, {(0, 1): [n * middle * mean for n in rows]})


def _check(at: float, lower: float, upper: float) -> None:
    if not lower <= at <= upper:
        raise ParameterError(f"'at' must be between {lower:g} and {upper:g} (got {at:g}).")
