"""Diversity and distances of classes, against enumeration and linear programs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from pdprivacy.risk.classes import distinct_labels, entropy_labels, equal_distances, ordered_distances

TABLES = st.tuples(st.integers(1, 6), st.integers(2, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 30))
)
FILLED = TABLES.map(lambda table: table[table.any(axis=1)]).filter(len)


def moved(first, second, distance):
    """The least cost of moving some shares to others, by the linear program of the definition."""
    size = len(first)
    ways = list(product(range(size), repeat=2))
    rows = np.array([[source == row for source, _ in ways] for row in range(size)])
    columns = np.array([[goal == row for _, goal in ways] for row in range(size)])
    costs = [distance(source, goal) for source, goal in ways]
    solved = linprog(costs, A_eq=np.vstack([rows, columns]).astype(float), b_eq=[*first, *second])
    assert solved.success
    return solved.fun


@pytest.mark.parametrize("seed", range(3))
def test_distances_are_the_least_work_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 9, (3, 3 + seed)) * (rng.random((3, 3 + seed)) < 0.6)
    table[:, 0] += 1
    everyone, steps = table.sum(axis=0) / table.sum(), table.shape[1] - 1
    for row, equal, ordered in zip(table, equal_distances(table), ordered_distances(table), strict=True):
        shares = row / row.sum()
        assert equal == pytest.approx(moved(shares, everyone, lambda a, b: float(a != b)), abs=1e-9)
        assert ordered == pytest.approx(moved(shares, everyone, lambda a, b: abs(a - b) / steps), abs=1e-9)


def test_the_salaries_of_the_source():
    """Li et al. 2007: salaries 3k to 11k; {3k, 4k, 5k} is 0.375 from all nine, and {6k, 8k, 11k} 0.167."""
    table = np.zeros((3, 9), dtype=np.int64)
    for row, salaries in enumerate([(3, 4, 5), (6, 8, 11), (7, 9, 10)]):
        table[row, np.array(salaries) - 3] = 1
    assert ordered_distances(table)[:2] == pytest.approx([0.375, 1 / 6])


@given(FILLED)
def test_labels_are_counted_as_by_hand(table):
    for row, distinct, entropy in zip(
        table.tolist(), distinct_labels(table), entropy_labels(table), strict=True
    ):
        shares = [count / sum(row) for count in row if count]
        assert distinct == len(shares)
        assert math.log(entropy) == pytest.approx(-sum(share * math.log(share) for share in shares))
        assert 1 - 1e-12 <= entropy <= distinct + 1e-9


@given(FILLED)
def test_distances_keep_their_order_and_their_symmetries(table):
    equal, ordered = equal_distances(table), ordered_distances(table)
    assert (ordered >= 0).all()
    assert (ordered <= equal + 1e-12).all()
    assert (equal < 1).all()
    assert ordered_distances(table[:, ::-1]) == pytest.approx(ordered, abs=1e-12)
    assert equal_distances(np.roll(table, 1, axis=1)) == pytest.approx(equal, abs=1e-12)
    assert ordered_distances(3 * table) == pytest.approx(ordered, abs=1e-12)
    if table.shape[1] == 2:
        assert ordered == pytest.approx(equal, abs=1e-12)


@given(FILLED)
def test_a_single_class_is_all_records(table):
    together = table.sum(axis=0, keepdims=True)
    assert equal_distances(together).tolist() == ordered_distances(together).tolist() == [0.0]
