"""Disclosure risk from homogeneity attacks, from counts and the cdf of the noise.

A cell is one combination of the quasi-identifiers; its counts say how many of
its records have each label of the sensitive attribute. In a *homogeneous* cell
all records share one label, and whoever is known to be in the cell is known to
have it. Noise hides this: a released count below 1/2 reads as "nobody". The
risk of a cell is the probability that its noisy counts read as homogeneous in a
label that the cell really holds.

With independent noise e on every count and q(n) = Pr(n + e < 1/2),

- the local risk of counts n_1, ..., n_K is
  sum over k with n_k > 0 of (1 - q(n_k)) · prod over k' != k of q(n_k');
- the expected risk is its mean over multinomial counts with the cell's size
  and the cell's own proportions.

Both are exact for any additive noise. They depend on a cell through the sorted
counts alone, so equal cells are computed once; `Cells` holds them for use
with several kinds of noise.

The risks are computed from confidential counts and are confidential too. Risks
are averaged over the non-empty cells: nobody can be at risk in an empty one.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in
differentially privately sanitized frequency distribution", definitions 6, 7 and
11. The closed forms there (theorems 1 and 3) are neither exact nor bounds for
cells with three or more labels; nothing here uses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.errors import ParameterError, got

__all__ = ["Cdf", "Cells", "expected_cost", "expected_risk", "local_risk"]

Floats: TypeAlias = NDArray[np.float64]
Cdf: TypeAlias = Callable[[Floats], Any]

# Masses below this are dropped: millions of them stay below 1e-13.
NEGLIGIBLE = 1e-20
# Multiply-adds that take as long as the fixed work for one composition.
OVERHEAD = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The distinct compositions of the non-empty cells of a table of counts.

    Parameters
    ----------
    compositions : (U, K), the counts of a cell in ascending order; all rows
        differ, in lexicographic order.
    cells : (U,), how many cells have each composition.
    which : (N,), the composition of each cell of the table; -1 for an empty cell.

    >>> from pdprivacy.risk import Cells
    >>> Cells.of([[0, 3], [3, 0], [0, 0], [1, 2]]).compositions
    array([[0, 3],
           [1, 2]])
    """

    compositions: NDArray[np.int64]
    cells: NDArray[np.int64]
    which: NDArray[np.int64]

    @classmethod
    def of(cls, counts: ArrayLike | Cells) -> Cells:
        """From counts: one row per cell of the quasi-identifiers, one column per label.

        Raises
        ------
        ParameterError : not a table with two or more columns of whole numbers,
            none negative, not all zero. No message holds a count.
        """
        if isinstance(counts, Cells):
            return counts
        table = _checked(counts)
        filled = table.any(axis=1)
        rows = np.sort(table[filled], axis=1)
        labels = rows.shape[1]
        base = int(rows.max()) + 1
        if base**labels < 2**63:  # one integer per row sorts faster than the row
            keys = rows @ np.array([base**power for power in range(labels - 1, -1, -1)], dtype=np.int64)
            _, first, inverse, cells = np.unique(
                keys, return_index=True, return_inverse=True, return_counts=True
            )
            compositions = rows[first]
        else:
            compositions, inverse, cells = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        which = np.full(len(table), -1, dtype=np.int64)
        which[filled] = inverse.reshape(-1)
        return cls(compositions, cells.astype(np.int64), which)

    def average(self, risks: Floats, average: Literal["cells", "records"] | None) -> float | Floats:
        """The average of one risk per composition; with None, the risk of each cell (NaN if empty)."""
        if average is None:
            return np.append(risks, np.nan)[self.which]
        weights = self.cells.astype(np.float64)
        if average == "records":
            weights *= self.compositions.sum(axis=1)
        return float(weights @ risks / weights.sum())


def _checked(counts: ArrayLike) -> NDArray[np.int64]:
    table = np.asarray(counts)
    if table.ndim != 2:
        raise ParameterError(f"'counts' must have two dimensions, cells by labels (got {table.ndim}).")
    if table.shape[1] < 2:
        raise ParameterError(f"'counts' must have at least 2 columns, one per label (got {table.shape[1]}).")
    if table.dtype.kind not in "iuf":
        raise ParameterError(f"'counts' must be whole numbers (got the type {table.dtype}).")
    if not np.isfinite(table).all() or (table != np.floor(table)).any():
        raise ParameterError("'counts' must be whole numbers.")
    if (table < 0).any():
        raise ParameterError("'counts' must not be negative.")
    if not table.any():
        raise ParameterError("'counts' must hold at least one record.")
    if table.max() >= 2**53 // table.shape[1]:
        raise ParameterError("'counts' must add up to less than 2**53 in a cell.")
    return table.astype(np.int64)


def _options(cdf: Cdf, average: str | None, threshold: float) -> None:
    if not callable(cdf):
        raise ParameterError(f"'cdf' must be callable on an array (got {type(cdf).__name__}).")
    if average not in ("cells", "records", None):
        raise ParameterError(f"'average' must be one of 'cells', 'records', None (got {got(average)}).")
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not (number and math.isfinite(threshold)):
        raise ParameterError(f"'threshold' must be a finite number (got {got(threshold)}).")


def _below(cdf: Cdf, counts: NDArray[np.int64], threshold: float) -> Floats:
    """q: the probability that a count reads as empty."""
    q = np.asarray(cdf(threshold - counts.astype(np.float64)), dtype=np.float64)
    if q.shape != counts.shape or not ((q >= 0) & (q <= 1)).all():
        raise ParameterError("'cdf' must return one probability for each element of its argument.")
    return q


@overload
def local_risk(
    counts: ArrayLike | Cells,
    cdf: Cdf,
    average: Literal["cells", "records"] = ...,
    threshold: float = ...,
) -> float: ...
@overload
def local_risk(counts: ArrayLike | Cells, cdf: Cdf, average: None, threshold: float = ...) -> Floats: ...
def local_risk(
    counts: ArrayLike | Cells,
    cdf: Cdf,
    average: Literal["cells", "records"] | None = "cells",
    threshold: float = 0.5,
) -> float | Floats:
    """The local disclosure risk, exactly.

    Parameters
    ----------
    counts : (N, K) whole numbers, one row per cell of the quasi-identifiers, one
        column per label of the sensitive attribute; or `Cells`.
    cdf : Pr(noise <= t) for an array of t; the noise on all counts is independent
        with this distribution.
    average : over non-empty cells equally ("cells"), weighted by their records
        ("records"), or the risk of each cell, NaN where it is empty (None).
    threshold : released counts below it read as empty. Noise with atoms must
        have none at ``threshold - n``; integer noise has none at one half.

    Raises
    ------
    ParameterError : see `Cells.of`; or an argument is off.

    Definition 6 and equation 12 of the source, without its bounds.

    >>> from scipy.stats import laplace
    >>> from pdprivacy import risk
    >>> round(risk.local_risk([[2, 1, 1]], laplace(scale=100).cdf), 3)
    0.372
    """
    _options(cdf, average, threshold)
    cells = Cells.of(counts)
    values, place = np.unique(cells.compositions, return_inverse=True)
    q = _below(cdf, values, threshold)[place].reshape(cells.compositions.shape)
    # Products over all other labels, from the left and from the right: no division, q may be 0.
    ones = np.ones((len(q), 1))
    left = np.cumprod(np.hstack([ones, q[:, :-1]]), axis=1)
    right = np.cumprod(np.hstack([ones, q[:, :0:-1]]), axis=1)[:, ::-1]
    seen = np.where(cells.compositions > 0, 1 - q, 0.0)
    return cells.average((seen * left * right).sum(axis=1), average)


class _Run(NamedTuple):
    """Masses at start, start + 1, ...; none elsewhere."""

    start: int
    mass: Floats

    @classmethod
    def trimmed(cls, start: int, mass: Floats) -> _Run:
        kept = np.flatnonzero(mass >= NEGLIGIBLE)
        if not kept.size:
            return NO_MASS
        return cls(start + int(kept[0]), mass[kept[0] : kept[-1] + 1])

    def joined(self, other: _Run) -> _Run:
        """The masses of the sum of two independent numbers."""
        if not self.mass.size or not other.mass.size:
            return NO_MASS
        return _Run.trimmed(self.start + other.start, np.convolve(self.mass, other.mass))

    def plus(self, other: _Run) -> _Run:
        """Both masses together."""
        if not self.mass.size or not other.mass.size:
            return self if self.mass.size else other
        start = min(self.start, other.start)
        total = np.zeros(max(run.start + run.mass.size for run in (self, other)) - start)
        for run in (self, other):
            total[run.start - start : run.start - start + run.mass.size] += run.mass
        return _Run(start, total)

    def joined_at(self, other: _Run, total: int) -> float:
        """``joined`` at one total only."""
        low = max(self.start, total - other.start - other.mass.size + 1)
        high = min(self.start + self.mass.size, total - other.start + 1)
        if low >= high:
            return 0.0
        mine = self.mass[low - self.start : high - self.start]
        theirs = other.mass[total - high + 1 - other.start : total - low + 1 - other.start]
        return float(mine @ theirs[::-1])


NO_MASS = _Run(0, np.empty(0))
NOTHING = _Run(0, np.ones(1))  # all mass at zero


def _poisson(rate: int) -> _Run:
    """Poisson masses around their mode, by ratios: exact to about 1e-14, where logarithms lose digits."""
    below = min(rate, 10 + math.isqrt(100 * rate))
    above = 50 + math.isqrt(100 * rate)
    up = np.cumprod(rate / np.arange(rate + 1.0, rate + above + 1))
    down = np.cumprod(np.arange(rate, rate - below, -1.0) / rate)[::-1]
    mass = np.concatenate([down, [1.0], up])
    return _Run(rate - below, mass / mass.sum())


class _Labels:
    """For a label with a given observed count: its random count, split by how it reads.

    Multinomial counts are independent Poisson counts given their total, and with
    plug-in proportions the Poisson rates are the observed counts.
    """

    def __init__(self, cdf: Cdf, threshold: float, largest: int) -> None:
        needed = largest + 60 + math.isqrt(100 * largest)
        size = 64  # up to where the noise cannot hide a count
        while size < needed and _below(cdf, np.array([size]), threshold)[0] >= NEGLIGIBLE:
            size *= 2
        self.q = _below(cdf, np.arange(min(size, needed) + 1), threshold)
        self.runs: dict[int, tuple[_Run, _Run]] = {}

    def split(self, count: int) -> tuple[_Run, _Run]:
        """The masses of reading as empty, and of being there (at least 1) and reading so."""
        if count not in self.runs:
            if len(self.runs) == 4096:  # bounds the memory
                self.runs.clear()
            start, mass = _poisson(count)
            q = np.zeros(mass.size)
            known = self.q[start : start + mass.size]
            q[: known.size] = known
            there = mass * (1 - q)
            if start == 0:
                there[0] = 0.0
            self.runs[count] = _Run.trimmed(start, mass * q), _Run.trimmed(start, there)
        return self.runs[count]


@overload
def expected_risk(
    counts: ArrayLike | Cells,
    cdf: Cdf,
    average: Literal["cells", "records"] = ...,
    threshold: float = ...,
) -> float: ...
@overload
def expected_risk(counts: ArrayLike | Cells, cdf: Cdf, average: None, threshold: float = ...) -> Floats: ...
def expected_risk(
    counts: ArrayLike | Cells,
    cdf: Cdf,
    average: Literal["cells", "records"] | None = "cells",
    threshold: float = 0.5,
) -> float | Floats:
    """The expected disclosure risk: the local risk over multinomial counts of each cell.

    The multinomial has the size of the cell and its observed proportions. The
    result is exact to about 1e-13, from sums of positive terms. `expected_cost` tells
    beforehand how long it takes.

    Parameters and errors are those of `local_risk`. Definition 7 of the source
    with plug-in proportions, without its bounds.

    >>> from scipy.stats import laplace
    >>> from pdprivacy import risk
    >>> round(risk.expected_risk([[2, 1, 1]], laplace(scale=1).cdf), 3)
    0.188
    """
    _options(cdf, average, threshold)
    cells = Cells.of(counts)
    labels = _Labels(cdf, threshold, int(cells.compositions.max()))
    empty = float(_below(cdf, np.zeros(1, dtype=np.int64), threshold)[0])
    rows = [[count for count in row if count] for row in cells.compositions.tolist()]
    at_mode: dict[int, float] = {}
    risks = np.zeros(len(rows))
    # Over the smallest labels so far: masses of their total with all of them reading as
    # empty, and with exactly one not. Rows that begin alike share this work.
    begun: list[tuple[int, _Run, _Run]] = [(0, NOTHING, NO_MASS)]
    for place, row in enumerate(rows):
        size = sum(row)
        *smaller, largest = row
        shared = 1
        while shared <= min(len(smaller), len(begun) - 1) and begun[shared][0] == smaller[shared - 1]:
            shared += 1
        del begun[shared:]
        for count in smaller[shared - 1 :]:
            hidden, there = labels.split(count)
            _, none, one = begun[-1]
            begun.append((count, none.joined(hidden), none.joined(there).plus(one.joined(hidden))))
        _, none, one = begun[-1]
        hidden, there = labels.split(largest)
        if size not in at_mode:
            poisson = _poisson(size)
            at_mode[size] = float(poisson.mass[size - poisson.start])
        joint = none.joined_at(there, size) + one.joined_at(hidden, size)
        absent = cells.compositions.shape[1] - len(row)
        risks[place] = empty**absent * joint / at_mode[size]
    return cells.average(risks, average)


def expected_cost(counts: ArrayLike | Cells, cdf: Cdf, threshold: float = 0.5) -> int:
    """The work of `expected_risk`, an estimate in multiply-adds; a second does 1e9 or more.

    Grows with the distinct compositions that have three or more labels and with
    the counts that the noise can hide. Parameters and errors are those of
    `local_risk`.

    >>> from scipy.stats import laplace
    >>> from pdprivacy import risk
    >>> risk.expected_cost([[2, 1, 1], [1, 2, 1]], laplace(scale=1).cdf) < 1e5
    True
    """
    _options(cdf, None, threshold)
    cells = Cells.of(counts)
    labels = _Labels(cdf, threshold, int(cells.compositions.max()))
    values, place = np.unique(cells.compositions, return_inverse=True)
    # An absent label always reads as empty: one mass, at zero.
    splits = [labels.split(value) if value else (NOTHING, NO_MASS) for value in values.tolist()]
    length = np.array([[run.mass.size for run in split] for split in splits], dtype=np.float64)
    rows, columns = cells.compositions.shape
    place = place.reshape(rows, columns)
    hidden, there = length[place, 0], length[place, 1]
    none, one = np.ones(rows), np.zeros(rows)
    cost = np.full(rows, float(OVERHEAD))
    for label in range(columns - 1):
        h, t = hidden[:, label], there[:, label]
        cost += none * (h + t) + one * h
        one = np.maximum(np.where(none * t > 0, none + t - 1, 0), np.where(one * h > 0, one + h - 1, 0))
        none = np.where(none * h > 0, none + h - 1, 0)
    return int(cost.sum())
