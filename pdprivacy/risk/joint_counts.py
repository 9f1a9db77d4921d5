"""The expected risk of one sensitive attribute where several released counts make up each of its labels.

A table of several sensitive attributes has, for each label of one of them, a count per combination of the
others. A reader of such a table who looks for one attribute reads a cell as homogeneous if all its positive
counts have one label of this attribute. With q(n) the probability that a count of n reads as empty, the local
risk of counts n_kz (label k, combination z) is

    sum over k with n_k > 0 of (1 - prod_z q(n_kz)) · prod over k' != k, z of q(n_k'z)

and the expected risk is its mean over multinomial counts with the size and the proportions of the cell. With
the series B of `exact_risk` it is the coefficient of t^n in sum_k A_k prod_{k' != k} B_k', over Pois(n; n):

    B_k(t) = prod_z B_{n_kz}(t)                     no count of the label reads as positive
    A_k(t) = sum_{j>0} (Pois(j; n_k) - [t^j] B_k) t^j   the label is held, and some count of it is positive
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pdprivacy.risk.compositions import Cells, Reading
from pdprivacy.risk.exact_risk import (
    WORKING_SET,
    CellBlock,
    Complex,
    Hidden,
    Series,
    at_mean,
    hidden_at_most,
    periods,
    ranges,
    visible,
    work,
)
from pdprivacy.types import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class JointCells:
    """The distinct cells of a table of several counts per label.

    ``groups``: (G, M), the counts that make up a label, in ascending order. ``cells``: the cells, with the
    rows of ``groups`` as their labels. ``which``: (N,), the distinct cell of each cell of the table; -1 for
    an empty one.

    >>> JointCells.of_checked(np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]]])).sizes
    array([1])
    """

    groups: Integers
    cells: Cells
    which: Integers

    @classmethod
    def of_checked(cls, table: Integers) -> JointCells:
        """Return the cells of checked counts (N, K, M): by cell, label and combination of the others."""
        filled = table.any(axis=(1, 2))
        rows = table[filled]
        groups = Cells._of_checked(rows.reshape(-1, rows.shape[2]))
        cells = Cells._of_checked(groups.which.reshape(rows.shape[:2]) + 1)
        nobody = np.zeros((1, rows.shape[2]), dtype=np.int64)
        which = np.full(len(table), -1, dtype=np.int64)
        which[filled] = cells.which
        return cls(np.concatenate([nobody, groups.compositions]), cells, which)

    @property
    def sizes(self) -> Integers:
        """(U,), the number of records of each distinct cell."""
        return np.asarray(self.groups.sum(axis=1)[self.cells.compositions].sum(axis=1))

    @property
    def all_sizes(self) -> Integers:
        """(N,), the number of records of each cell of the table, empty cells included."""
        return np.append(self.sizes, 0)[self.which]

    def expected(self, readings: Sequence[Reading]) -> Floats:
        """Return the expected risk (E, U) of each distinct cell, for each reading of the counts.

        >>> from pdprivacy.risk import NoNoise
        >>> table = np.array([[[1, 1], [0, 0]], [[1, 0], [0, 1]]])
        >>> JointCells.of_checked(table).expected([Reading(NoNoise())]).round(3)
        array([[1. , 0.5]])
        """
        risks = np.empty((len(readings), len(self.cells.cells)))
        for rows, period in self._blocks():
            risks[:, rows] = self._block(rows, period).risks(readings, False)
        return risks

    def cost(self, readings: Sequence[Reading] = ()) -> int:
        """Return an estimate of the work for one reading, in multiply-adds, as `exact_risk.expected_cost`."""
        values, places = np.unique(self.groups, return_inverse=True)
        hidden = hidden_at_most(values, readings)[places.reshape(self.groups.shape)].prod(axis=1)
        shown = np.zeros(len(self.cells.cells), dtype=bool)
        shown[visible(self.cells.compositions, hidden, self.sizes)] = True
        cost = 0
        for rows, period in self._blocks():
            compositions = self.cells.compositions[rows]
            groups = self.groups[np.unique(compositions[shown[rows]])]
            counts = np.unique(self.groups[np.unique(compositions)])
            cost += work(counts, compositions[shown[rows]].size + groups.size, period, readings)
        return cost

    def _blocks(self) -> Iterator[tuple[Integers, int]]:
        """Yield the distinct cells whose transforms have the same length, and this length."""
        lengths, labels = periods(self.sizes), self.cells.compositions.shape[1]
        for shortest, period in ranges(lengths, labels):
            rows = np.flatnonzero((lengths >= shortest) & (lengths <= period))
            most = max(1, 8 * WORKING_SET // period)
            for start in range(0, len(rows), most):
                yield rows[start : start + most], period

    def _block(self, rows: Integers, period: int) -> JointBlock:
        labels, positions = np.unique(self.cells.compositions[rows], return_inverse=True)
        values, groups = np.unique(self.groups[labels], return_inverse=True)
        sizes = self.sizes[rows]
        return JointBlock(
            Series.of(values.astype(np.float64), period),
            positions.reshape(len(rows), -1),
            at_mean(sizes),
            sizes,
            groups.reshape(len(labels), -1),
        )


@dataclass(frozen=True, slots=True)
class JointBlock(CellBlock):
    """Cells with transforms of one length; ``positions``: (C, K), of labels, which are rows of ``groups``.

    ``groups``: (G, M), the counts of each label as places in ``series``.
    """

    groups: Integers

    def _masses_of_labels(self, masses: Floats) -> Floats:
        return np.asarray(masses[self.groups].prod(axis=1))

    def _transforms_of_labels(
        self, labels: Integers, hidden: Hidden, partial: bool
    ) -> tuple[Complex, Complex]:
        assert not partial
        groups = self.groups[labels]
        counts, places = np.unique(groups, return_inverse=True)
        each, _ = self.series.at(counts).transforms(hidden.at(counts), False)
        places = places.reshape(groups.shape)
        below = each[:, places[:, 0]]
        for column in places.T[1:]:
            below = below * each[:, column]
        rates = self.series.rates[groups].sum(axis=1)
        joined = Series.of(rates, self.series.period)
        present = joined.whole - below
        present -= (1 - hidden.at_zero ** groups.shape[1])[:, np.newaxis, np.newaxis] * joined.nobody
        present[:, rates == 0] = 0  # a label that nobody has is never concluded rightly
        return below, present
