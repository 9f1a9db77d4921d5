"""The computations of Theorems B.21 and B.23, against the ratios themselves for few records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pdprivacy.amplification.suppression import outlier_epsilon, outlier_peak, outlier_search
from pdprivacy.errors import ParameterError

PROOF_ERROR = 2e-7
CASES = [(0.5, 0.5, 0.7), (1.0, 0.49, 0.84), (0.01, 0.5, 0.56), (5.0, 0.16, 0.96), (20.0, 0.21, 0.67)]


def vertex(a, m, M, chosen):
    """The vertex of the polytope of Proposition B.19 that belongs to a set of records."""
    n = len(a)
    tops = np.minimum(m + (n - 1) * M, (n - 2) * (a - m) + a.sum()) / n
    z = tops.copy()
    z[chosen] = ((n - 2) * m + tops[~chosen].sum()) / (2 * n - 2 - chosen.sum())
    return z


def logarithms(a, z, suppressed, epsilon, m):
    """ln f of Theorem B.21 (as its proof has it) and ln g of Theorem B.23."""
    n = len(a)
    mean = (m + a.sum()) / (n + 1)
    ratios = np.where(suppressed, a / z, (1 - a) / (1 - z))
    product = np.log((n + ratios) / (n + 1)).sum()
    f = math.log(math.exp(epsilon) - math.expm1(epsilon) * mean) + product
    return f, -math.log(math.exp(-epsilon) - math.expm1(-epsilon) * mean) - product


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("epsilon", "m", "M"), CASES)
def test_the_search_comes_near_the_bounds_and_not_above(epsilon, m, M):
    search = outlier_search(epsilon, m, M)
    assert search.added_bound - PROOF_ERROR < search.added <= search.added_bound * (1 + 1e-13)
    assert search.removed_bound - PROOF_ERROR < search.removed <= search.removed_bound * (1 + 1e-13)
    # the second expression of Theorem B.23 is no part of Theorem 5.4, as it is never the largest
    largest = max(search.added_bound, search.removed_bound)
    assert outlier_peak(epsilon, m, M).epsilon == pytest.approx(largest, rel=1e-13)
    assert largest < outlier_epsilon(epsilon, m, M)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("epsilon", "m", "M"), CASES)
def test_no_ratio_of_few_records_is_above_what_the_search_found(epsilon, m, M):
    """Random distances and sets, at the corners of the polytope of the probabilities; f and g themselves."""
    rng = np.random.default_rng(5)
    search, best = outlier_search(epsilon, m, M), np.full(2, -np.inf)
    for _ in range(3000):
        n = int(rng.integers(3, 9))
        a = m + (M - m) * rng.beta(0.3, 0.3, n)
        suppressed = rng.random(n) < rng.random()
        f, _ = logarithms(a, vertex(a, m, M, rng.random(n) < rng.random()), suppressed, epsilon, m)
        _, g = logarithms(a, m + (M - m) * rng.beta(0.3, 0.3, n), suppressed, epsilon, m)
        best = np.maximum(best, [f, g])
    assert best[0] <= search.added
    assert best[1] <= search.removed
    assert (best > 0).all()


@pytest.mark.full
def test_both_expressions_of_theorem_b23_can_be_the_largest():
    kinds = set()
    for epsilon, m, M in [(0.1, 0.1, 0.2), (3.0, 0.3, 0.4), (0.01, 0.6, 0.9)]:
        first = -math.log(math.exp(-epsilon) - math.expm1(-epsilon) * M) + 1 - (1 - M) / (1 - m)
        second = -math.log(math.exp(-epsilon) - math.expm1(-epsilon) * m) + 1 - m / M
        assert outlier_search(epsilon, m, M).removed_bound == pytest.approx(max(first, second), rel=1e-12)
        kinds.add(first > second)
    assert kinds == {True, False}


def test_equal_chances_leave_nothing_to_search():
    with pytest.raises(ParameterError, match="must be below 'M'"):
        outlier_search(1, 0.3, 0.3)
