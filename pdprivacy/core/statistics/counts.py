"""Counts: records, and records per declared cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pdprivacy.core import sensitivities as sensitivity
from pdprivacy.core.statistics.confidence import Ends, Noisy
from pdprivacy.core.statistics.interface import (
    ROWS,
    Answer,
    Part,
    Read,
    Scope,
    Statistic,
    answer_of_parts,
    groups_of,
    part_name,
)
from pdprivacy.declaration.domain import Column
from pdprivacy.postprocess import Tree, hierarchy
from pdprivacy.types import Whole


@dataclass(frozen=True, slots=True)
class CellCounts(Statistic):
    """Counts per declared cell of one or more columns; ``edges``: the edges of bins given in the call."""

    columns: tuple[Column, ...]
    scope: Scope
    method: str
    edges: tuple[float, ...] | None = None
    offsets = (0.0,)

    @property
    def parts(self) -> tuple[Part, ...]:
        l1, l2 = self.scope.table_sensitivities()
        if self.edges is None:
            size = math.prod(column.cells(self.method) for column in self.columns)
        else:
            size = len(self.edges) - 1 + int(self.columns[0].nullable)
        most = self.scope.row_bounds()[1]
        return (
            Part(
                "counts",
                Fraction(1),
                l1,
                l2,
                Fraction(1),
                size,
                counts=True,
                l0=self.scope.l0,
                lower=Fraction(0),
                upper=None if most is None else Fraction(most),
            ),
        )

    @property
    def ends(self) -> tuple[Any, Any]:
        most = self.scope.row_bounds()[1]
        return 0.0, math.inf if most is None else float(most)

    @property
    def reads(self) -> tuple[Read, ...]:
        if self.edges is None:
            return (Read("table", (self.columns, self.method)),)
        return (Read("bins", (self.columns[0], self.edges)),)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return list(answers)

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        return Answer(noisy[0].values, noisy[0].std, 0.0, *self.ends)


@dataclass(frozen=True)
class TreeCells(Statistic):
    """Counts of cells and of the inner nodes of a tree over these cells, made consistent.

    A record is in one node per level, so the levels share the loss. A public number of records is the count
    of the root; otherwise the root is measured as another level.
    """

    cells: CellCounts
    branching: int
    offsets = None

    @cached_property
    def tree(self) -> Tree:
        """The layout of the nodes."""
        return Tree(self.cells.parts[0].size, self.branching, root=self.cells.scope.row_bounds()[1] is None)

    @property
    def parts(self) -> tuple[Part, ...]:
        (leaves,), tree = self.cells.parts, self.tree
        levels = len(tree.levels)
        l1, l2_squared = self.cells.scope.table_sensitivities(levels)
        return (
            replace(
                leaves,
                name="counts of the tree",
                l1=l1,
                l2_squared=l2_squared,
                size=tree.nodes,
                l0=leaves.l0 * levels,
            ),
        )

    @property
    def ends(self) -> tuple[Any, Any]:
        return self.cells.ends

    @property
    def reads(self) -> tuple[Read, ...]:
        return self.cells.reads

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        (leaves,) = answers
        return [self.tree.sums(np.asarray(leaves))]

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        nodes = noisy[0]
        leaves = hierarchy(self.tree, nodes.values, self.cells.scope.row_bounds()[1])

        def interval(level: float) -> Ends:
            centers = self.measured(nodes, leaves)
            half = nodes.tail.half(level, np.array([nodes.std]))
            return centers - half, centers + half

        return Answer(leaves, nodes.std, 0.0, *self.ends, interval)

    def measured(self, nodes: Noisy, leaves: Any) -> Any:
        """Return counts of the cells whose sums have errors no larger than sums of noisy counts.

        The least squares estimate from unbiased nodes errs no more than the noisy leaves (Gauss, Markov).
        Bounded nodes are biased: the error is known only for the noisy leaves themselves.
        """
        return leaves if nodes.tail.bounding is None else nodes.values[: self.cells.parts[0].size]


@dataclass(frozen=True)
class Rows(Statistic):
    """The number of records, or the number of records without null per column."""

    columns: tuple[Column, ...]
    weights: tuple[Fraction, ...]
    scope: Scope

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        count_sensitivity = self.scope.count_sensitivity()
        parts = []
        for column, weight in zip(self.columns or (None,), self.weights or (Fraction(1),), strict=True):
            least, most = self.scope.row_bounds(nullable=column is not None and column.nullable)
            name = "rows" if column is None else part_name("count", column)
            # a public number of rows needs no bounds, and bounds need a range
            lower = Fraction(0 if most is not None else least)
            upper = None if most is None else Fraction(most)
            parts.append(
                Part(
                    name,
                    weight,
                    count_sensitivity,
                    count_sensitivity**2,
                    Fraction(1),
                    counts=True,
                    lower=lower,
                    upper=upper,
                )
            )
        return tuple(parts)

    @property
    def reads(self) -> tuple[Read, ...]:
        if not self.columns:
            return (ROWS,)
        return tuple(Read("present", (column,)) for column in self.columns)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return [[rows] for rows in answers]


@dataclass(frozen=True)
class Distinct(Statistic):
    """Number of declared labels of each column that occur, without null, per declared group of ``keys``.

    A unit moves this number by at most its number of records, and by at most the number of labels.

    In groups, a record more or less moves the number of its own group by 0 or 1, and a replaced record is one
    less and one more, perhaps in another group. So the k records of a unit move no number by more than k, and
    all numbers together by at most k, or 2 k where they are replaced: the sum of squares is at most the
    product of the two.
    """

    columns: tuple[Column, ...]
    weights: tuple[Fraction, ...]
    scope: Scope
    keys: tuple[Column, ...] = ()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        if self.keys:
            return tuple(map(self._part_of_groups, self.columns, self.weights))
        largest = sensitivity.nunique(neighbors=self.scope.neighbors) * self.scope.contribution
        parts = []
        for column, weight in zip(self.columns, self.weights, strict=True):
            name, most, unit = part_name("nunique", column), len(column.labels("nunique")), Fraction(1)
            moved = min(largest, most)
            lower, upper = Fraction(0), Fraction(most)
            parts.append(Part(name, weight, moved, moved**2, unit, counts=True, lower=lower, upper=upper))
        return tuple(parts)

    def _part_of_groups(self, column: Column, weight: Fraction) -> Part:
        """The part of one column, a number per group."""
        groups, most = groups_of(self.keys, "nunique"), len(column.labels("nunique"))
        moved = min(self.scope.contribution, most)
        changes = sensitivity.disjoint_groups(neighbors=self.scope.neighbors) * self.scope.contribution
        l1 = min(changes, groups * moved)
        return Part(
            part_name("nunique", column),
            weight,
            l1,
            l1 * moved,
            Fraction(1),
            groups,
            counts=True,
            l0=min(changes, groups),
            lower=Fraction(0),
            upper=Fraction(most),
        )

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(Read("table", ((*self.keys, column), "nunique")) for column in self.columns)

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        if not self.keys:
            return answer_of_parts(self, noisy)
        values = np.column_stack([part.values for part in noisy])
        deviations = np.broadcast_to([part.std for part in noisy], values.shape)
        return Answer(values, deviations, 0.0, *self.ends)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        tables = zip(self.columns, answers, strict=True)
        if self.keys:
            groups = groups_of(self.keys, "nunique")
            return [
                np.count_nonzero(
                    np.reshape(table, (groups, -1))[:, : len(column.labels("nunique"))], axis=1
                ).tolist()
                for column, table in tables
            ]
        return [[int(np.count_nonzero(table[: len(column.labels("nunique"))]))] for column, table in tables]
