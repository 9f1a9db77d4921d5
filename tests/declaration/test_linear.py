"""Linear constraints as values, their feasibility, and the nearest point within linear limits and bounds."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import optimize

from pdprivacy.declaration.linear import LinearLimits, positions
from pdprivacy.errors import ParameterError
from pdprivacy.postprocess import LinearConstraint
from pdprivacy.postprocess.least_distance import nearest_bounded


def random_problem(rng, size, sums):
    """Numbers within limits and bounds, which are often met exactly, and the numbers with noise."""
    rows = rng.choice([-1.0, 0.0, 0.0, 1.0, 2.0], (sums, size))
    rows[~rows.any(axis=1)] = 1
    lower = np.where(rng.random(size) < 0.4, -math.inf, -rng.integers(0, 3, size))
    upper = np.where(rng.random(size) < 0.4, math.inf, rng.integers(0, 4, size))
    truth = np.clip(rng.normal(scale=3, size=size), lower, upper)
    least, most = (rows @ truth + sign * rng.choice([0, 0, 0.5, 2], sums) for sign in (-1, 1))
    least[rng.random(sums) < 0.3], most[rng.random(sums) < 0.3] = -math.inf, math.inf
    noisy = truth + rng.normal(scale=rng.choice([0.1, 5, 100]), size=size)
    return truth, noisy, rng.choice([1, 1, 4, 0.01, 100.0], size), rows, (least, most), (lower, upper)


def by_enumeration(noisy, variances, rows, limits, bounds):
    """The nearest point: the shortest of all projections onto sides that are met with equality.

    Some set of sides is met with equality at the nearest point, and it is the projection onto these alone.
    """
    sides = np.vstack([rows, np.eye(noisy.size)])
    low, high = (np.append(*pair) for pair in zip(limits, bounds, strict=True))
    best, distance = None, math.inf
    for choice in itertools.product((None, "low", "high"), repeat=len(sides)):
        active = [index for index, end in enumerate(choice) if end is not None]
        goals = np.array([(low if choice[index] == "low" else high)[index] for index in active])
        if len(active) > noisy.size or not np.isfinite(goals).all():
            continue
        point = noisy.copy()
        if active:
            normal = sides[active] * variances
            point += normal.T @ np.linalg.pinv(normal @ sides[active].T) @ (goals - sides[active] @ noisy)
        at, near = sides @ point, 1e-7 * (1 + np.abs(noisy).max())
        length = ((point - noisy) ** 2 / variances).sum()
        if (at >= low - near).all() and (at <= high + near).all() and length < distance:
            best, distance = point, length
    return best


def test_the_nearest_point_is_that_of_all_sets_of_active_sides():
    rng = np.random.default_rng(1)
    moved = 0
    for _ in range(60):
        _, *problem = random_problem(rng, *rng.integers(1, 4, 2))
        expected, result = by_enumeration(*problem), nearest_bounded(*problem)
        scale = 1 + np.abs(problem[0]).max()
        np.testing.assert_allclose(result / scale, expected / scale, atol=1e-6)
        moved += not np.array_equal(expected, problem[0])
    assert moved > 40


def test_the_nearest_point_meets_the_optimality_conditions():
    """Karush, Kuhn, Tucker: the move, divided by the variances, is a sum of the sides that are reached."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        truth, noisy, variances, rows, limits, bounds = random_problem(
            rng, rng.integers(1, 30), rng.integers(1, 9)
        )
        result = nearest_bounded(noisy, variances, rows, limits, bounds)
        near, sums = 1e-7 * (1 + np.abs(noisy).max()), rows @ result
        assert (bounds[0] <= result).all()
        assert (result <= bounds[1]).all()
        assert (limits[0] - near <= sums).all()
        assert (sums <= limits[1] + near).all()
        pushes = np.concatenate(
            [
                rows[sums <= limits[0] + near],
                -rows[sums >= limits[1] - near],
                np.eye(noisy.size)[result <= bounds[0]],
                -np.eye(noisy.size)[result >= bounds[1]],
            ]
        )
        gradient = (result - noisy) / np.sqrt(variances)
        left = np.linalg.norm(gradient)
        if len(pushes):
            left = optimize.nnls((pushes * np.sqrt(variances)).T, gradient)[1]
        assert left <= 1e-6 * (1 + np.abs(noisy / np.sqrt(variances)).max())
        # nearer to every point within the limits, and a point within them stays
        before, after = (((point - truth) ** 2 / variances).sum() for point in (noisy, result))
        assert after <= before * (1 + 1e-9) + near
        again = nearest_bounded(result, variances, rows, limits, bounds)
        np.testing.assert_allclose(again, result, atol=10 * near)


def test_many_numbers_and_limits():
    rng = np.random.default_rng(3)
    truth = rng.poisson(2, 20_000).astype(float)
    rows = np.zeros((30, truth.size))
    for row in rows:
        row[rng.choice(truth.size, 3_000, replace=False)] = 1
    noisy, bounds = (
        truth + rng.normal(scale=5, size=truth.size),
        (np.zeros(truth.size), np.full(truth.size, math.inf)),
    )
    result = nearest_bounded(noisy, np.ones(truth.size), rows, (rows @ truth, rows @ truth), bounds)
    np.testing.assert_allclose(rows @ result, rows @ truth, rtol=1e-10)
    assert result.min() == 0
    # one shift for each sum, the same in all cells that are not at 0
    free = result > 0
    shifts = np.linalg.lstsq(rows[:, free].T, (result - noisy)[free], rcond=None)[0]
    np.testing.assert_allclose((shifts @ rows)[free], (result - noisy)[free], atol=1e-8)
    assert ((noisy + shifts @ rows)[~free] <= 1e-8).all()


def test_feasibility_is_that_of_random_systems():
    """Feasible by construction, or infeasible by Farkas: a sum of sides that promises less than nothing."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        _, _, _, rows, (least, most), (lower, upper) = random_problem(rng, *rng.integers(1, 7, 2))
        assert not LinearLimits(rows, least, most, lower, upper).contradict()
        weights = rng.integers(1, 4, len(rows)).astype(float)
        top = weights @ rows
        ends = np.where(rng.random(lower.size) < 0.5, 1.0, 3.0)
        largest = np.abs(top) @ ends  # of the weighted sum of all rows
        needed = np.full(len(rows), largest / weights.sum())
        for excess, contradicts in ((1.01, True), (-1.0, False)):
            system = LinearLimits(rows, needed * excess, np.full(len(rows), math.inf), -ends, ends)
            if contradicts or (rows @ (ends * np.sign(top)) >= needed * excess).all():
                assert system.contradict() == (contradicts and largest > 0)


def test_a_constraint_is_a_value():
    constraint = LinearConstraint({"north": 1, "east": -2.5, None: 0}, lower=0, upper=7)
    assert constraint == LinearConstraint({"north": 1.0, "east": -2.5, None: 0}, lower=0, upper=7)
    assert constraint != LinearConstraint({"north": 1, "east": -2.5, None: 0}, lower=0)
    assert hash(constraint) == hash(pickle.loads(pickle.dumps(constraint)))
    assert eval(repr(constraint)) == constraint
    assert str(constraint) == "0 <= 'north' - 2.5 * 'east' + 0 * None <= 7"
    assert str(LinearConstraint({True: -1}, upper=3)) == "-True <= 3"
    assert str(LinearConstraint({True: -1}, lower=3)) == "-True >= 3"
    assert str(LinearConstraint({...: 1}, lower=3, upper=3)) == "... = 3"
    many = LinearConstraint(dict.fromkeys(range(100), 1), equals=3)
    assert str(many).endswith("+ 11 + ... (100 terms) = 3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["north"], {"lower": 0}), "'coefficients' must map labels to numbers"),
        (({}, {"lower": 0}), "must hold a number that is not 0"),
        (({"north": 0}, {"lower": 0}), "must hold a number that is not 0"),
        (({"north": math.nan}, {"lower": 0}), "'coefficients' must be"),
        (({"north": "1"}, {"lower": 0}), "'coefficients' must be"),
        (({"north": 1}, {}), "needs 'lower', 'upper' or 'equals'"),
        (({"north": 1}, {"lower": 2, "upper": 1}), "'lower' must not be above 'upper'"),
        (({"north": 1}, {"lower": 2, "equals": 1}), "'equals' cannot be combined"),
        (({"north": 1}, {"upper": math.inf}), "'upper' must be"),
        (({"north": 1}, {"equals": True}), "'equals' must be"),
    ],
)
def test_invalid_constraints_are_refused(arguments, message):
    coefficients, limits = arguments
    with pytest.raises(ParameterError, match=message):
        LinearConstraint(coefficients, **limits)


def test_positions_of_labels():
    levels = [{"a": 0, "b": 1}, {True: 0, False: 1, None: 2}]
    assert positions(("b", False), levels) == (1, 1)
    assert positions(("b", math.nan), levels) == (1, 2)
    assert positions((..., None), levels) == (slice(None), 2)
    assert positions(..., levels) == (slice(None), slice(None))
    assert positions("b", levels[:1]) == positions(("b",), levels[:1]) == (1,)
    for unknown in ("b", ("b",), ("b", "c"), ("b", True, True), ("b", []), ["b", True]):
        assert positions(unknown, levels) is None
