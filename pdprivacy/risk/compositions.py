"""The distinct compositions of a table of counts, and averages over its cells."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.errors import ParameterError

__all__ = ["AVERAGES", "Average", "Cells", "checked_counts", "whole_numbers"]

Floats: TypeAlias = NDArray[np.float64]
Average: TypeAlias = Literal["cells", "records"]
AVERAGES = (*get_args(Average), None)


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
        return counts if isinstance(counts, Cells) else cls.of_checked(checked_counts(counts))

    @classmethod
    def of_checked(cls, table: NDArray[np.int64]) -> Cells:
        """From what ``checked_counts`` returned."""
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

    def at(self, rows: NDArray[np.int64]) -> Cells:
        """These compositions alone, without the table that they are of."""
        return Cells(self.compositions[rows], self.cells[rows], np.empty(0, dtype=np.int64))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(U,), the records of a cell of each composition."""
        return np.asarray(self.compositions.sum(axis=1))

    @property
    def all_sizes(self) -> NDArray[np.int64]:
        """(N,), the records of each cell of the table, the empty ones too."""
        return np.append(self.sizes, 0)[self.which]

    def weights(self, average: Average) -> Floats:
        """(U,), the share of the non-empty cells, or of the records, that each composition stands for."""
        weights = self.cells.astype(np.float64)
        if average == "records":
            weights *= self.sizes
        return np.asarray(weights / weights.sum())

    def average(self, risks: Floats, average: Average | None) -> Floats:
        """Risks (..., U) of the compositions as averages (...); with None as (..., N), NaN if empty."""
        if average is None:
            nobody = np.full((*risks.shape[:-1], 1), np.nan)
            return np.asarray(np.concatenate([risks, nobody], axis=-1)[..., self.which])
        # no product by a library that would start threads of its own for it
        return np.asarray((risks * self.weights(average)).sum(axis=-1))


def checked_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """The counts as an (N, K) table of integers, or ParameterError; no message holds a count."""
    table = whole_numbers(counts)
    if table.ndim != 2:
        raise ParameterError(f"'counts' must have two dimensions, cells by labels (got {table.ndim}).")
    if table.shape[1] < 2:
        raise ParameterError(f"'counts' must have at least 2 columns, one per label (got {table.shape[1]}).")
    if not table.any():
        raise ParameterError("'counts' must hold at least one record.")
    if table.max() >= 2**53 // table.shape[1]:
        raise ParameterError("'counts' must add up to less than 2**53 in a cell.")
    return table


def whole_numbers(counts: Any) -> NDArray[np.int64]:
    """``counts`` as integers, none negative, of the same shape, or ParameterError without any of them."""
    try:
        table = np.asarray(counts)
    except ValueError:
        raise ParameterError("'counts' must be a table: rows of the same length.") from None
    if table.dtype == object and all(
        isinstance(one, numbers.Real) and not isinstance(one, bool) for one in table.flat
    ):
        try:
            doubles = table.astype(np.float64)  # as a frame of nullable integers gives them
        except OverflowError:
            raise ParameterError("'counts' must be less than 2**53.") from None
        if any(one != double for one, double in zip(table.flat, doubles.flat, strict=True)):
            raise ParameterError("'counts' must be whole numbers that doubles hold.")
        table = doubles
    if table.dtype.kind not in "iuf":
        raise ParameterError(f"'counts' must be whole numbers (got the type {table.dtype}).")
    if table.dtype.kind == "f":
        table = table.astype(np.float64)  # the narrow ones do not hold the limit below
    if not np.isfinite(table).all() or (table != np.floor(table)).any():
        raise ParameterError("'counts' must be whole numbers.")
    if (table < 0).any():
        raise ParameterError("'counts' must not be negative.")
    if (table >= 2**53).any():
        raise ParameterError("'counts' must be less than 2**53.")
    return table.astype(np.int64)
