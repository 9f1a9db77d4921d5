"""The compositions of the cells of a table, and the readings of noisy counts as empty or as whole numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import doubles, is_number, items, real
from pdprivacy.errors import ParameterError, kind
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats, Integers

Average: TypeAlias = Literal["cells", "records"]
AVERAGES = (*get_args(Average), None)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The distinct compositions of the non-empty cells of a table of counts.

    Parameters
    ----------
    compositions : (U, K), the counts of a cell in ascending order; the rows are distinct and in
        lexicographic order.
    cells : (U,), the number of cells with each composition.
    which : (N,), the composition of each cell of the table; -1 for an empty cell.

    >>> from pdprivacy.risk import Cells
    >>> Cells.of([[0, 3], [3, 0], [0, 0], [1, 2]]).compositions
    array([[0, 3],
           [1, 2]])
    """

    compositions: Integers
    cells: Integers
    which: Integers

    @classmethod
    def of(cls, counts: ArrayLike | Cells) -> Cells:
        """Return the compositions of counts: one row per cell of the quasi-identifiers, one column per label.

        Raises
        ------
        ParameterError : anything but a table of at least two columns of whole numbers that are not
            negative and not all zero. No message holds a count.
        """
        return counts if isinstance(counts, Cells) else cls._of_checked(checked_counts(counts))

    @classmethod
    def _of_checked(cls, table: Integers) -> Cells:
        """Return the compositions of a table from ``checked_counts``."""
        filled = table.any(axis=1)
        rows = np.sort(table[filled], axis=1)
        keys = rows[:, 0]
        for column in rows.T[1:]:  # one integer per row sorts faster than the row
            base = int(column.max()) + 1
            if (int(keys.max()) + 1) * base >= 2**63:
                keys = np.unique(keys, return_inverse=True)[1].reshape(-1)  # in the same order
            if (int(keys.max()) + 1) * base >= 2**63:
                values, column = np.unique(column, return_inverse=True)
                base, column = len(values), column.reshape(-1)
            keys = keys * base + column
        _, first, inverse, cells = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        compositions = rows[first]
        which = np.full(len(table), -1, dtype=np.int64)
        which[filled] = inverse.reshape(-1)
        return cls(compositions, cells.astype(np.int64), which)

    def _at(self, rows: Integers) -> Cells:
        """Return these compositions, without the cells of their table."""
        return Cells(self.compositions[rows], self.cells[rows], np.empty(0, dtype=np.int64))

    @property
    def sizes(self) -> Integers:
        """(U,), the number of records of a cell of each composition."""
        return np.asarray(self.compositions.sum(axis=1))

    @property
    def all_sizes(self) -> Integers:
        """(N,), the number of records of each cell of the table, empty cells included."""
        return np.append(self.sizes, 0)[self.which]

    def _weights(self, average: Average) -> Floats:
        """Return (U,), the share of the non-empty cells, or of the records, that have each composition."""
        weights = self.cells.astype(np.float64)
        if average == "records":
            weights *= self.sizes
        return np.asarray(weights / weights.sum())

    def _average(self, risks: Floats, average: Average | None) -> Floats:
        """Return averages (...) of risks (..., U); with None, the risks (..., N) of cells, NaN if empty."""
        if average is None:
            nobody = np.full((*risks.shape[:-1], 1), np.nan)
            return np.asarray(np.concatenate([risks, nobody], axis=-1)[..., self.which])
        # not a matrix product, for which a library would start threads of its own
        return np.asarray((risks * self._weights(average)).sum(axis=-1))


def checked_counts(counts: ArrayLike) -> Integers:
    """Return counts as an (N, K) table of integers, or raise ParameterError without any of the counts."""
    table = whole_numbers(counts)
    if table.ndim != 2:
        raise ParameterError(f"'counts' must have two dimensions, cells by labels (got {table.ndim}).")
    if table.shape[1] < 2:
        raise ParameterError(f"'counts' must have at least 2 columns, one per label (got {table.shape[1]}).")
    if not table.any():
        raise ParameterError("'counts' must hold at least one record.")
    if table.max() >= EXACT // table.shape[1]:
        raise ParameterError("'counts' must add up to less than 2**53 in a cell.")
    return table


def whole_numbers(counts: Any) -> Integers:
    """Return counts as integers of the same shape; raise ParameterError, without any count, for others."""
    if isinstance(counts, range):  # of any length in no memory
        counts = items(counts, "counts")
    try:
        table = np.asarray(counts)
    except ValueError:
        raise ParameterError("'counts' must be a table: rows of the same length.") from None
    if table.dtype == object and all(map(is_number, table.flat)):
        try:
            doubles = table.astype(np.float64)  # objects, as from a frame of nullable integers
        except OverflowError:
            raise ParameterError("'counts' must be less than 2**53.") from None
        if any(count != double for count, double in zip(table.flat, doubles.flat, strict=True)):
            raise ParameterError("'counts' must be whole numbers that doubles hold.")
        table = doubles
    if table.dtype.kind not in "iuf":
        raise ParameterError(f"'counts' must be whole numbers (got the type {table.dtype}).")
    if table.dtype.kind == "f":
        table = table.astype(np.float64)  # narrower floats do not hold the limit below
    if not np.isfinite(table).all() or (table != np.floor(table)).any():
        raise ParameterError("'counts' must be whole numbers.")
    if (table < 0).any():
        raise ParameterError("'counts' must not be negative.")
    if (table >= EXACT).any():
        raise ParameterError("'counts' must be less than 2**53.")
    return table.astype(np.int64)


NEGLIGIBLE = 1e-18
"""Masses below this are dropped; a thousand of them stay below 1e-15."""


SMALL = 256
"""The number of counts whose probabilities are stored in a table."""

ROUNDING = 1e-12
"""The rounding allowance of a distribution function outside [0, 1]."""


class HasCdf(Protocol):
    """Noise with a distribution function, such as a mechanism or a distribution of `scipy.stats`."""

    def cdf(self, x: Any, /) -> Any:
        """Return Pr(noise <= x) for an array."""


@dataclass(frozen=True, slots=True)
class OnlyNoise:
    """The limit of symmetric noise as epsilon goes to 0: each count reads as empty with probability 1/2."""

    def cdf(self, x: Any, /) -> Floats:
        """Return one half everywhere."""
        return np.full(doubles(x, "'x'").shape, 0.5)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The limit of noise as epsilon goes to infinity: counts are exact."""

    def cdf(self, x: Any, /) -> Floats:
        """Return 1 from 0 on, and 0 below."""
        return (doubles(x, "'x'") >= 0).astype(np.float64)


@dataclass(frozen=True)
class Reading:
    """The reading of noisy counts; ``threshold``: released counts below it read as empty.

    >>> from pdprivacy.mechanism import Laplace
    >>> Reading(Laplace(epsilon=1, sensitivity=1)).empty(np.array([0, 1])).round(3)
    array([0.697, 0.303])
    """

    mechanism: HasCdf
    threshold: float = 0.5

    def not_above(self, points: Floats, counts: Integers) -> Floats:
        """Return Pr(noisy count <= point); the two shapes broadcast.

        Raises ParameterError if the ``cdf`` does not return probabilities.
        """
        return self._chances(points, counts, below=False)

    def _chances(self, points: Floats, counts: Integers, *, below: bool) -> Floats:
        """Return Pr(noisy count <= point), or with ``below`` Pr(noisy count < point)."""
        if getattr(self.mechanism, "bounding", None) is not None:
            bounded: Any = self.mechanism  # its law depends on the count
            at = np.nextafter(points, -math.inf) if below else points
            probabilities = bounded.cdf(at, counts.astype(np.float64))
        else:
            noise = points - counts
            probabilities = self.mechanism.cdf(np.nextafter(noise, -math.inf) if below else noise)
        try:
            chance = np.asarray(probabilities, dtype=np.float64)
        except (TypeError, ValueError):
            chance = np.empty(0)
        if (
            chance.shape != np.broadcast_shapes(points.shape, counts.shape)
            or not ((chance >= -ROUNDING) & (chance <= 1 + ROUNDING)).all()
        ):
            raise ParameterError("The 'cdf' of a mechanism must return one probability for each number.")
        return np.clip(chance, 0.0, 1.0)

    def empty(self, counts: Integers) -> Floats:
        """Return q, the probability that each count reads as empty, below the threshold, in its shape."""
        if counts.max(initial=0) < SMALL:
            return np.asarray(self._small[counts])
        return self._empty(counts)

    def _empty(self, counts: Integers) -> Floats:
        return self._chances(np.full(counts.shape, self.threshold), counts, below=True)

    @functools.cached_property
    def _small(self) -> Floats:
        """(SMALL,), q of the counts from 0 on, stored because most tables need them several times."""
        return self._empty(np.arange(SMALL))

    def reach(self, largest: int) -> int:
        """Return the smallest count that reads as empty with negligible probability; at most ``largest``.

        This assumes that q falls with the count.
        """
        size = SMALL
        while size < largest and self.empty(np.array([size]))[0] >= NEGLIGIBLE:
            size *= 2
        return min(size, largest)


def readings(mechanism: Any, threshold: float = 0.5) -> tuple[list[Reading], bool]:
    """Return the readings of one mechanism, or of a list of mechanisms, and whether it was a list.

    Raises
    ------
    ParameterError : a mechanism without a ``cdf``, or an empty list.
    """
    limit = real(threshold, "threshold")
    many = isinstance(mechanism, Sequence) and not isinstance(mechanism, str)
    many = many or (isinstance(mechanism, np.ndarray) and mechanism.ndim == 1)
    each = list(mechanism) if many else [mechanism]
    if not each:
        raise ParameterError("'mechanism' must hold at least one mechanism (got an empty list).")
    for noise in each:
        if isinstance(noise, type) or not callable(getattr(noise, "cdf", None)):
            named = noise.__name__ if isinstance(noise, type) else kind(noise)
            raise ParameterError(
                f"'mechanism' must have a method 'cdf' (got {named}).",
                "pdprivacy.mechanism.Laplace(epsilon=1, sensitivity=1), or scipy.stats.norm(scale=2).",
            )
    return [Reading(noise, limit) for noise in each], many
