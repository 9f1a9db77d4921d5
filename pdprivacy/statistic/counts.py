"""Counts: records, and records per declared cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

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
    one_each,
    scalar,
)

__all__ = ["Cells", "Rows"]


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts per declared cell of one or more columns; ``edges`` for bins given in the call."""

    columns: tuple[Column, ...]
    scope: Scope
    method: str
    edges: tuple[float, ...] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        l1, l2 = self.scope.cells()
        if self.edges is None:
            size = math.prod(column.cells(self.method) for column in self.columns)
        else:
            size = len(self.edges) - 1 + int(self.columns[0].nullable)
        return (Part("counts", Fraction(1), l1, l2, Fraction(1), size, counts=True, moves=self.scope.moves),)

    def read(self, engine: Engine) -> list[Whole]:
        if self.edges is None:
            return [engine.table(self.columns, self.method)]
        return [engine.bins(self.columns[0], self.edges)]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return Answer(noisy[0].values, noisy[0].std)


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of records, or of records without null per column."""

    columns: tuple[Column, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @property
    def parts(self) -> tuple[Part, ...]:
        moved = sensitivity.count(neighbors=self.scope.neighbors)
        if not self.columns:
            return (scalar("rows", Fraction(1), moved, Fraction(1), counts=True),)
        return tuple(
            scalar(named("count", column), weight, moved, Fraction(1), counts=True)
            for column, weight in zip(self.columns, self.weights, strict=True)
        )

    def read(self, engine: Engine) -> list[Whole]:
        if not self.columns:
            return [[engine.rows]]
        return [[engine.present(column)] for column in self.columns]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return one_each(noisy)
