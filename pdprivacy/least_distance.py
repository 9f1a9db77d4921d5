"""The shortest vector that meets linear inequalities.

Source: Lawson, Hanson (1974), "Solving least squares problems", chapter 23: the least distance problem is
dual to a least squares problem in numbers of at least 0.
"""

from __future__ import annotations

import math

import numpy as np

from pdprivacy.types import Floats

NEAR = 1e-9
"""How far below its side a shortest vector may end, relative to the largest side."""


def nearest_within(numbers: Floats, rows: Floats, least: Floats, most: Floats) -> Floats | None:
    """Return the nearest point to ``numbers`` with ``least <= rows @ point <= most``, or None.

    >>> nearest_within(np.zeros(2), np.ones((1, 2)), np.array([4.0]), np.array([math.inf])).round(9).tolist()
    [2.0, 2.0]
    """
    norms = np.sqrt((rows**2).sum(axis=1))
    rows, least, most = rows / norms[:, np.newaxis], least / norms, most / norms
    at, low, high = rows @ numbers, np.isfinite(least), np.isfinite(most)
    sides = np.concatenate([(least - at)[low], (at - most)[high]])
    if not (sides > 0).any():
        return numbers
    moved = least_distance(np.concatenate([rows[low], -rows[high]]), sides)
    return None if moved is None else np.asarray(numbers + moved)


def least_distance(rows: Floats, sides: Floats) -> Floats | None:
    """Return the shortest x with ``rows @ x >= sides``; None where no x meets all of them.

    ``rows``: (k, n), each of length 1. ``sides``: (k,).

    >>> least_distance(np.eye(2), np.array([3.0, -1.0])).round(9).tolist()
    [3.0, 0.0]
    """
    farthest = np.abs(sides).max()
    duals = np.vstack([rows.T, sides / farthest])
    goal = np.append(np.zeros(rows.shape[1]), 1.0)
    solution = _nonnegative_least_squares(duals, goal)
    if solution is None or (residual := duals @ solution - goal)[-1] > -1e-13:
        return None
    shortest = -farthest * residual[:-1] / residual[-1]
    return None if (rows @ shortest < sides - NEAR * farthest).any() else np.asarray(shortest)


def _nonnegative_least_squares(matrix: Floats, goal: Floats) -> Floats | None:
    """The numbers of at least 0 that bring ``matrix @ numbers`` nearest to ``goal``; None without an end."""
    free = np.zeros(matrix.shape[1], dtype=bool)
    solution = np.zeros(matrix.shape[1])
    for _ in range(30 * (matrix.shape[1] + 1)):
        slope = np.where(free, -math.inf, matrix.T @ (goal - matrix @ solution))
        if slope.max() <= 1e-13:
            return solution
        free[slope.argmax()] = True
        while True:
            trial = np.zeros(len(solution))
            trial[free] = np.linalg.lstsq(matrix[:, free], goal, rcond=None)[0]
            falling = free & (trial <= 0)
            if not falling.any():
                break
            step = (solution[falling] / (solution[falling] - trial[falling])).min()
            solution = solution + step * (trial - solution)
            free &= solution > 1e-15
            solution[~free] = 0.0
        solution = trial
    return None
