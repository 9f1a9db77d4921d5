"""The shortest vector that meets linear inequalities, and the nearest point within linear limits and bounds.

Source: Lawson, Hanson (1974), "Solving least squares problems", chapter 23: the least distance problem is
dual to a least squares problem in numbers of at least 0. With few limits and many bounded numbers
(`nearest_bounded`) the dual has one number for each limit, and is convex and quadratic in pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pdprivacy.types import Floats

ROUNDS, HALVINGS = 500, 60
"""The largest number of Newton steps, and of halvings of each."""

FEW = 200
"""The most numbers for which the exact method of Lawson and Hanson takes over where Newton steps stop."""

EXACT = 1e-12
"""How far a sum may end beyond its limit, relative to the largest move."""

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


def nearest_bounded(
    numbers: Floats,
    variances: Floats,
    rows: Floats,
    limits: tuple[Floats, Floats],
    bounds: tuple[Floats, Floats],
) -> Floats:
    """Return the nearest point within ``bounds`` whose sums ``rows @ point`` lie within ``limits``.

    Distances are Euclidean, with each number divided by the root of its variance. Some point must meet all
    limits; the bounds are met exactly, the limits to rounding.

    The dual is minimised by Newton steps: at multipliers u the point is numbers + variances * (rows.T @ u),
    moved into the bounds, and u_i > 0 (< 0) only where sum i is at its lower (upper) limit. These conditions
    are those of Karush, Kuhn and Tucker, and the point that meets them is the nearest.

    >>> rows, limits = np.ones((1, 2)), (np.array([4.0]), np.array([4.0]))
    >>> bounds = np.zeros(2), np.array([1.5, 9.0])
    >>> nearest_bounded(np.array([1.0, 1.0]), np.ones(2), rows, limits, bounds).round(9).tolist()
    [1.5, 2.5]
    """
    roots, start = np.sqrt(variances), np.clip(numbers, *bounds)
    sums = rows @ start
    beyond = max((limits[0] - sums).max(initial=0.0), (sums - limits[1]).max(initial=0.0))
    if beyond <= 0:
        return start
    scaled = rows * roots
    norms = np.sqrt((scaled**2).sum(axis=1))
    ends = [(limit - rows @ numbers) / norms for limit in limits]
    sides = [(bound - numbers) / roots for bound in bounds]
    # in units of the move that takes each sum to its limit by itself, and each number to its bound
    unit = max(*(np.maximum(side, 0).max(initial=0.0) for side in (ends[0], -ends[1], sides[0], -sides[1])))
    directions = scaled / norms[:, np.newaxis]
    problem = _Dual(directions, ends[0] / unit, ends[1] / unit, sides[0] / unit, sides[1] / unit)
    moves, residual = problem.minimised()
    if residual > NEAR and numbers.size <= FEW:  # limits that nearly contradict each other
        all_rows, units = np.vstack([directions, np.eye(numbers.size)]), (problem.least, problem.most)
        low, high = (np.append(*pair) for pair in zip(units, (problem.low, problem.high), strict=True))
        exact = nearest_within(np.zeros(numbers.size), all_rows, low, high)
        moves = moves if exact is None else exact
    point = numbers + roots * unit * moves
    at_bounds = [moves <= problem.low, moves >= problem.high]
    return np.clip(np.where(at_bounds[0], bounds[0], np.where(at_bounds[1], bounds[1], point)), *bounds)


@dataclass(frozen=True)
class _Dual:
    """The dual of the shortest vector between ``low`` and ``high`` with ``least <= rows @ x <= most``."""

    rows: Floats
    least: Floats
    most: Floats
    low: Floats
    high: Floats

    def vector(self, multipliers: Floats) -> Floats:
        """The vector that belongs to these multipliers."""
        return np.clip(multipliers @ self.rows, self.low, self.high)

    def value(self, multipliers: Floats) -> float:
        """The dual function, which is convex."""
        forces = multipliers @ self.rows
        vector = np.clip(forces, self.low, self.high)
        up, down = multipliers > 0, multipliers < 0
        paid = multipliers[up] @ self.least[up] + multipliers[down] @ self.most[down]
        return float((vector * (forces - vector / 2)).sum() - paid)

    def residuals(self, multipliers: Floats, vector: Floats) -> Floats:
        """How far each sum is from the limit that its multiplier pushes to; 0 within the limits."""
        sums = self.rows @ vector
        pushed = np.where(multipliers > 0, sums - self.least, sums - self.most)
        within = np.minimum(sums - self.least, 0.0) + np.maximum(sums - self.most, 0.0)
        return np.where(multipliers == 0, within, pushed)

    def minimised(self) -> tuple[Floats, float]:
        """The shortest vector, and how far its sums are beyond their limits."""
        multipliers = np.zeros(len(self.rows))
        vector, best = self.vector(multipliers), (math.inf, np.zeros(0))
        for _ in range(ROUNDS):
            residuals = self.residuals(multipliers, vector)
            size = float(np.abs(residuals).max())
            if size < best[0]:
                best = size, vector
            if size <= EXACT:
                break
            multipliers = self._step(multipliers, vector, residuals)
            vector = self.vector(multipliers)
        return best[1], best[0]

    def _step(self, multipliers: Floats, vector: Floats, residuals: Floats) -> Floats:
        """Multipliers at which the dual function is smaller."""
        size = float(np.abs(residuals).max())
        signs = np.where(multipliers != 0, np.sign(multipliers), -np.sign(residuals))
        signs[self.least == self.most] = 0  # an equality pushes either way
        newton = self._newton(multipliers, vector, residuals, signs)
        value, trial = self.value(multipliers), multipliers
        # along the gradient a short step always succeeds: no row is longer than 1
        for course in (newton, -residuals):
            length = 1.0
            for _ in range(HALVINGS):
                trial = multipliers + length * course
                trial[trial * signs < 0] = 0.0
                if self._improves(trial, multipliers, residuals, value, size):
                    return trial
                length /= 2
        return trial

    def _newton(self, multipliers: Floats, vector: Floats, residuals: Floats, signs: Floats) -> Floats:
        """The Newton direction, of multipliers that are 0 to their own side only."""
        free = (self.low < vector) & (vector < self.high)
        moving = np.flatnonzero((multipliers != 0) | (residuals != 0))
        part = self.rows[np.ix_(moving, free)]
        curvature = part @ part.T
        curvature[np.diag_indices_from(curvature)] += 1e-3 * min(float(np.abs(residuals).max()), 1e-3)
        kept = np.arange(len(moving))
        while True:
            course = -np.linalg.solve(curvature[np.ix_(kept, kept)], residuals[moving[kept]])
            inward = (multipliers[moving[kept]] == 0) & (course * signs[moving[kept]] < 0)
            if not inward.any():
                direction = np.zeros(len(multipliers))
                direction[moving[kept]] = course
                return direction
            kept = kept[~inward]

    def _improves(
        self, trial: Floats, multipliers: Floats, residuals: Floats, value: float, size: float
    ) -> bool:
        if not np.isfinite(trial).all() or (trial == multipliers).all():
            return False
        after = self.value(trial)
        if after <= value + 1e-4 * min(float(residuals @ (trial - multipliers)), 0.0):
            return True
        # near the minimum the values differ by rounding only
        nearer = float(np.abs(self.residuals(trial, self.vector(trial))).max()) <= size / 2
        return nearer and after <= value + 1e-13 * max(abs(value), 1.0)
