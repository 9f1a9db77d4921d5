"""Local and expected disclosure risk, exactly, for each distinct composition.

With independent noise on every count and q(n) = Pr(a count of n reads as empty),

- the local risk of counts n_1, ..., n_K is
  sum over k with n_k > 0 of w_k · (1 - q(n_k)) · prod over k' != k of q(n_k'), with w_k = 1
  (equation 6 of the source), or n_k/n, the share of the records that are told rightly (equation 7);
- the expected risk is its mean over multinomial counts with the cell's size and the cell's own
  proportions (definition 7).

Multinomial counts are independent Poisson counts given their total, and with plug-in proportions the
Poisson rates are the observed counts. So the expected risk is one coefficient of a product of power
series, one per label, that depend on the observed count alone:

    B_m(t) = sum_j q(j) Pois(j; m) t^j          the label reads as empty
    A_m(t) = sum_{j>0} (1 - q(j)) Pois(j; m) t^j    it is there, and reads so

    risk = [t^n] sum_k A_{n_k}(t) prod_{k'!=k} B_{n_k'}(t) / Pois(n; n)

The coefficient is taken by a discrete Fourier transform, whose period is so long that what it folds
into the coefficient stays below 1e-16. Compositions that begin alike share their products, and the
last label of all is joined by one matrix product.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution", definitions 6 and 7. The closed forms there (theorems 1 and 3) are neither exact
nor bounds for cells with three or more labels; see `pdprivacy.risk.published` for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.risk.compositions import Cells
from pdprivacy.risk.reading import NEGLIGIBLE, Reading
from pdprivacy.risk.series import Beginnings, Complex, Series, at_mean, periods

__all__ = ["expected", "expected_cost", "local"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

WORKING_SET = 1 << 18
"""Complex numbers that are worked on at a time: they stay in the cache."""

SINGLE = 1 << 18
"""Multiply-adds of a matrix product that a library leaves to one thread."""

EACH = 20
"""Multiply-adds that take as long as one number of a transform."""

OVERHEAD = 20_000
"""Multiply-adds that take as long as the fixed work for one block of compositions."""

JOINED = 10 * OVERHEAD
"""Multiply-adds that are saved where two small blocks are made one: the calls take longer than the work."""


def local(cells: Cells, readings: Sequence[Reading], partial: bool = False) -> Iterator[Floats]:
    """(U,), the local risk of each composition, one array per reading.

    Definition 6 of the source, without its bounds; with ``partial`` by equation 7.

    >>> from pdprivacy.risk import Cells, OnlyNoise
    >>> list(local(Cells.of([[2, 1, 1]]), [Reading(OnlyNoise())]))
    [array([0.375])]
    """
    values, place = np.unique(cells.compositions, return_inverse=True)
    place = np.ascontiguousarray(place.reshape(cells.compositions.shape).T)
    share = cells.compositions.T / cells.sizes if partial else None
    for reading in readings:
        hidden = reading.empty(values)
        seen = np.where(values > 0, 1 - hidden, 0.0)
        none, one = np.ones(place.shape[1]), np.zeros(place.shape[1])
        for label, at in enumerate(place):
            q, there = hidden[at], seen[at]
            one *= q
            one += none * (there if share is None else there * share[label])
            none *= q
        yield one


def expected(
    cells: Cells, readings: Sequence[Reading], partial: bool = False
) -> Iterator[tuple[Integers, Floats]]:
    """The expected risks, block by block: which compositions (C,), and their risks (E, C).

    Exact to about 1e-16 times the square root of the size of the cell.
    """
    same = np.flatnonzero(cells.compositions[:, -2] == 0)
    if same.size:  # drawn anew, they are what they were
        yield same, np.array(list(local(cells.at(same), readings, partial)))
    for rows, period in _blocks(cells):
        block = _Block.of(cells.compositions[rows], period)
        each = max(1, WORKING_SET // block.numbers)
        found = [block.risks(readings[at : at + each], partial) for at in range(0, len(readings), each)]
        yield rows, np.concatenate(found)


def expected_cost(counts: ArrayLike | Cells) -> int:
    """The work of the expected risk for one noise, an estimate in multiply-adds; a second does about 1e9.

    Grows with the distinct mixed compositions and the root of their sizes. Errors as of `Cells.of`.

    >>> from pdprivacy.risk import expected_cost
    >>> expected_cost([[2, 1, 1], [1, 2, 1]]) < 1e5
    True
    """
    cells = Cells.of(counts)
    labels = cells.compositions.shape[1]
    cost = 0
    for rows, period in _blocks(cells):
        compositions = cells.compositions[rows]
        masses = len(np.unique(compositions)) * Series.width(int(compositions.max()))
        cost += OVERHEAD + EACH * len(rows) * labels * period + 50 * masses
    return cost


def _blocks(cells: Cells) -> Iterator[tuple[Integers, int]]:
    """Mixed compositions with transforms of the same length, as many as are worked on at a time."""
    mixed, labels = np.flatnonzero(cells.compositions[:, -2]), cells.compositions.shape[1]
    lengths = periods(cells.sizes[mixed])
    for shortest, period in _ranges(lengths, labels):
        rows = mixed[(lengths >= shortest) & (lengths <= period)]
        compositions = cells.compositions[rows]
        width = Series.width(int(compositions[:, -1].max()))
        most = max(1, 8 * WORKING_SET // period)
        if compositions.size * width > 8 * WORKING_SET < len(np.unique(compositions)) * width:
            most = min(most, max(1, 8 * WORKING_SET // (width * labels)))
        for start in range(0, len(rows), most):
            yield rows[start : start + most], period


def _ranges(lengths: Integers, labels: int) -> list[tuple[int, int]]:
    """The shortest and the longest length of each block, the longest ones first.

    All compositions of a block have the longest, where that takes less time than one block more.
    """
    distinct, numbers = (each[::-1].tolist() for each in np.unique(lengths, return_counts=True))
    found: list[tuple[int, int]] = []
    for period, number in zip(distinct, numbers, strict=True):
        longest = found[-1][1] if found else period
        if found and EACH * number * labels * (longest - period) <= JOINED:
            found[-1] = period, longest
        else:
            found.append((period, period))
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """Compositions with transforms of the same length; ``place``: (C, K), the counts by their place."""

    series: Series
    place: Integers
    at_size: Floats
    sizes: Integers

    @classmethod
    def of(cls, compositions: Integers, period: int) -> _Block:
        values, place = np.unique(compositions, return_inverse=True)
        sizes = compositions.sum(axis=1)
        series = Series.of(values.astype(np.float64), period)
        return cls(series, place.reshape(compositions.shape), at_mean(sizes), sizes)

    @property
    def numbers(self) -> int:
        """Complex numbers that one reading takes."""
        return 2 * len(self.place) * self.series.length + self.series.numbers

    def risks(self, readings: Sequence[Reading], partial: bool) -> Floats:
        """(E, C) risks."""
        found = np.zeros((len(readings), len(self.place)))
        hidden = self.series.hidden(readings)
        rows = self._visible(hidden.masses.sum(axis=2).max(axis=0))
        if rows.size:
            kept, place = np.unique(self.place[rows], return_inverse=True)
            below, there = self.series.at(kept).transforms(hidden.at(kept), partial)
            joined = self._joined(place.reshape(len(rows), -1), below, there)
            found[:, rows] = joined / self.at_size[rows]
        if partial:
            found /= self.sizes
        return np.clip(found, 0.0, 1.0)

    def _visible(self, hidden: Floats) -> Integers:
        """The rows whose risk is not negligible; ``hidden``: (D,), how much of each count is, at most."""
        none, one = np.ones(len(self.place)), np.zeros(len(self.place))
        for column in self.place.T:
            q = hidden[column]
            one = one * q + none
            none = none * q
        return np.flatnonzero(one > NEGLIGIBLE * self.at_size)

    def _joined(self, place: Integers, below: Complex, there: Complex) -> Floats:
        """(E, C) coefficients at the size of each row."""
        beginnings, node = Beginnings.of(place[:, :-1])
        none, one = beginnings.products(below, there)
        # The coefficient is the mean of the transform: a scalar product of real vectors.
        ends, last = np.unique(place[:, -1], return_inverse=True)
        last = last.reshape(-1)
        right = [(part[:, ends].conj() * self.series.weights).view(np.float64) for part in (there, below)]
        left = [part.view(np.float64) for part in (none, one)]
        if none.shape[1] * len(ends) <= 16 * len(node):
            table = _product(left[0], right[0]) + _product(left[1], right[1])
            return np.asarray(table[:, node, last])
        pairs = zip(left, right, strict=True)
        return np.asarray(sum(np.einsum("ecl,ecl->ec", a[:, node], b[:, last]) for a, b in pairs))


def _product(left: Floats, right: Floats) -> Floats:
    """(E, P, D) from (E, P, L) and (E, D, L), in pieces too small to be shared out among threads.

    The noises are shared out already.
    """
    noises, rows, length = left.shape
    piece = max(1, SINGLE // (length * right.shape[1]))
    whole = rows // piece * piece
    pieces = left[:, :whole].reshape(noises, -1, piece, length) @ right[:, np.newaxis].transpose(0, 1, 3, 2)
    rest = left[:, whole:] @ right.transpose(0, 2, 1)
    return np.concatenate([pieces.reshape(noises, whole, right.shape[1]), rest], axis=1)
