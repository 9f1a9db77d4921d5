"""Releases of supposed data: what a plan looks at. No data is read, nothing is charged, no noise drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdprivacy.accounting import Events
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.measure import Measurement, calibrate, events, total_cost
from pdprivacy.privacy import Approx, Pure
from pdprivacy.request import Request
from pdprivacy.statistic import GroupedSums, Moments, Noisy, Quantity, Ranks, Read, Statistic
from pdprivacy.statistic.confidence import Tail

__all__ = ["Asked", "Supposed", "suppose"]


class Asked(NamedTuple):
    """What a release would charge: its label, noise, loss, and what it would release."""

    label: str
    mechanism: str
    cost: Pure | Approx
    events: Events


@dataclass(frozen=True, slots=True)
class Supposed:
    """A table of ``rows`` records without nulls, spread evenly over all cells, as an engine reads it.

    ``at``: the mean of each number, or its variance where variances are asked for. By default
    the middle of the bounds, and the variance of uniform values; covariances are zero.
    ``asked``: where each release that reads the table is noted, and ``reads``: what it reads.
    """

    rows: int
    at: float | None = None
    asked: list[Asked] | None = field(default=None, compare=False)
    reads: list[Read] | None = field(default=None, compare=False)

    def present(self, column: Column) -> int:  # noqa: ARG002
        return self.rows

    def _cells(self, cells: int) -> NDArray[np.int64]:
        if self.at is not None:
            return np.full(cells, round(self.at))
        counts = np.full(cells, self.rows // cells)
        counts[: self.rows % cells] += 1
        return counts

    def table(self, columns: Sequence[Column], method: str) -> NDArray[np.int64]:
        return self._cells(math.prod(column.cells(method) for column in columns))

    def bins(self, column: Column, edges: Sequence[float]) -> NDArray[np.int64]:
        return self._cells(len(edges) - 1 + int(column.nullable))

    def _mean(self, quantity: Quantity) -> int:
        if self.at is None:
            return 0 if quantity.low <= 0 <= quantity.high else (quantity.low + quantity.high) // 2
        _check(self.at, quantity.lower, quantity.upper)
        steps = round((self.at - quantity.center) / quantity.grid)
        return min(max(steps, quantity.low), quantity.high)

    def sum(self, quantity: Quantity) -> tuple[int, int]:
        return self.rows, self.rows * self._mean(quantity)

    def ranks(self, quantity: Quantity) -> Ranks:
        raise ParameterError(f"A selection of column {quantity.column.name!r} reads no supposed table.")

    def _square(self, quantity: Quantity) -> int:
        """The mean square about the centre, in steps."""
        if self.at is not None:
            _check(self.at, 0.0, (quantity.upper - quantity.lower) ** 2 / 2)
        variance = (quantity.high - quantity.low) ** 2 / 12 if self.at is None else self.at / quantity.grid**2
        return round(min(variance, quantity.reach**2))

    def moments(self, quantities: Sequence[Quantity]) -> Moments:
        size = len(quantities)
        products = [[0] * size for _ in range(size)]
        for place, quantity in enumerate(quantities):
            products[place][place] = max(self.rows - 1, 0) * self._square(quantity)
        return Moments(self.rows, [0] * size, products)

    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        groups = math.prod(key.cells(method) for key in keys)
        rows = Supposed(self.rows)._cells(groups).tolist()
        sums = [[0 if products else n * self._mean(quantity) for n in rows] for quantity in quantities]
        squares = {
            (i, j): [n * self._square(quantities[i]) if i == j else 0 for n in rows]
            for i in range(len(quantities))
            for j in range(i, len(quantities))
        }
        return GroupedSums(rows, sums, squares if products else {})

    def clusters(self, quantities: Sequence[Quantity], centers: NDArray[np.float64]) -> GroupedSums:
        rows = Supposed(self.rows)._cells(len(centers)).tolist()
        return GroupedSums(rows, [[0] * len(rows) for _ in quantities], {})


def _check(at: float, lower: float, upper: float) -> None:
    if not lower <= at <= upper:
        raise ParameterError(f"'at' must be between {lower:g} and {upper:g} (got {at:g}).")


class _Noting:
    """A supposed table that notes what is read of it."""

    def __init__(self, table: Supposed, reads: list[Read]) -> None:
        self._table, self._reads = table, reads

    def __getattr__(self, name: str) -> Any:
        if name == "rows":
            self._reads.append(Read.of(name))
            return self._table.rows
        method = getattr(self._table, name)

        def noted(*args: Any, **options: Any) -> Any:
            self._reads.append(Read.of(name, *args, **options))
            return method(*args, **options)

        return noted


def suppose(statistic: Statistic, request: Request, table: Supposed, label: str) -> Measurement:
    """What `pdprivacy.measure` would find in supposed data if no noise came out."""
    parts = statistic.parts
    mechanisms = calibrate(parts, request)
    noisy: list[Noisy] = []
    engine: Any = table if table.reads is None else _Noting(table, table.reads)
    for part, mechanism, whole in zip(parts, mechanisms, statistic.read(engine), strict=True):
        values = np.array([float(number * part.unit) for number in np.asarray(whole, object)])
        if request.bounding is not None:
            values = np.clip(values, *(np.asarray(limit, np.float64) for limit in part.within(noisy)))
        noisy.append(Noisy(values, mechanism.std, Tail.of(mechanism, request.bounding)))
    cost = total_cost(mechanisms, request)
    if table.asked is not None:
        table.asked.append(Asked(label, request.mechanism, cost, events(parts, mechanisms, request)))
    return Measurement(parts, mechanisms, tuple(noisy), cost, seeded=False)
