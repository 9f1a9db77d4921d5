"""Outlier scores against brute force, and keep probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pdprivacy.errors import ParameterError
from pdprivacy.suppression import keep_probabilities, outlier_scores, scores

LISTS = st.lists(st.floats(-5, 15), max_size=30)


def brute(values, distance, bounds):
    """Section 5.3, record by record: the sum over all records, itself included, divided by their number."""

    def between(one, other):
        if distance == "discrete":
            return float(one != other)
        pairs = [bounds] if distance == "absolute" else bounds
        parts = zip(np.atleast_1d(one), np.atleast_1d(other), pairs, strict=True)
        scaled = [
            (min(max(a, low), high) - min(max(b, low), high)) / (high - low) for a, b, (low, high) in parts
        ]
        return math.sqrt(math.fsum(part**2 for part in scaled) / len(scaled))

    return [math.fsum(between(one, other) for other in values) / len(values) for one in values]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(LISTS)
def test_absolute_scores_are_those_of_brute_force(values):
    found = outlier_scores(np.array(values), "absolute", (0, 10))
    np.testing.assert_allclose(found, brute(values, "absolute", (0, 10)), rtol=0, atol=1e-14)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=30))
def test_discrete_scores_are_those_of_brute_force(labels):
    found = outlier_scores(labels, "discrete")
    np.testing.assert_array_equal(found, np.array(brute(labels, "discrete", None)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(arrays.arrays(float, st.tuples(st.integers(0, 15), st.just(3)), elements=st.floats(-2, 3)))
def test_euclidean_scores_are_those_of_brute_force(values):
    bounds = [(0, 1), (-1, 2), (-5, 5)]
    found = outlier_scores(values, "euclidean", bounds)
    np.testing.assert_allclose(found, brute(values, "euclidean", bounds), rtol=0, atol=1e-14)


def test_blocks_of_any_size_give_the_same_scores(monkeypatch):
    values = np.random.default_rng(3).uniform(0, 1, (101, 2))
    whole = outlier_scores(values, "euclidean", [(0, 1), (0, 1)])
    for held in (1, 150, 101 * 7, 10**6):
        monkeypatch.setattr(scores, "WORKING_SET", held)
        np.testing.assert_array_equal(outlier_scores(values, "euclidean", [(0, 1), (0, 1)]), whole)


def test_one_column_is_the_absolute_distance():
    values = np.random.default_rng(4).uniform(0, 7, 200)
    one = outlier_scores(values, "absolute", (0, 7))
    np.testing.assert_allclose(outlier_scores(values[:, np.newaxis], "euclidean", [(0, 7)]), one, atol=1e-14)


def test_many_records_are_as_exact_as_few():
    """Half a million of each of two values: the score is the share of the others, times their distance."""
    values = np.repeat([0.1, 0.7], 500_000)
    found = outlier_scores(values, "absolute", (0, 1))
    np.testing.assert_allclose(found, 0.3, rtol=0, atol=1e-12)
    ramp = outlier_scores(np.arange(10**6), "absolute", (0, 10**6 - 1))
    ends = (10**6 / 2) / 10**6  # the mean of k / (n - 1) over k = 0, ..., n - 1
    np.testing.assert_allclose(ramp[[0, -1]], ends, rtol=0, atol=1e-12)
    assert ramp.min() >= 0


def test_scores_are_means_with_the_record_itself_among_them():
    np.testing.assert_array_equal(outlier_scores([3], "absolute", (0, 10)), [0])
    np.testing.assert_array_equal(outlier_scores([0, 10], "absolute", (0, 10)), [0.5, 0.5])
    np.testing.assert_array_equal(outlier_scores([[0, 0], [1, 1]], "euclidean", [(0, 1)] * 2), [0.5, 0.5])


def test_values_outside_the_bounds_are_clipped_to_them():
    inside = outlier_scores([0, 10, 10], "absolute", (0, 10))
    np.testing.assert_array_equal(outlier_scores([-100, 10, 1e300], "absolute", (0, 10)), inside)


def test_equal_records_have_equal_scores_in_any_order():
    rng = np.random.default_rng(6)
    values = rng.choice([0.1, 0.2, 0.3, 1 / 3], 1000)
    found = outlier_scores(values, "absolute", (0, 1))
    assert all(len(set(found[values == value])) == 1 for value in set(values))
    order = rng.permutation(1000)
    np.testing.assert_array_equal(outlier_scores(values[order], "absolute", (0, 1)), found[order])


@pytest.mark.parametrize("kind", [object, str, None])
def test_labels_may_be_of_any_kind(kind):
    labels = np.array([1, 2, 2, 3], dtype=kind)
    np.testing.assert_array_equal(outlier_scores(labels, "discrete"), [0.75, 0.5, 0.5, 0.75])
    np.testing.assert_array_equal(outlier_scores([True, False], "discrete"), [0.5, 0.5])


def test_no_records_have_no_scores():
    assert outlier_scores([], "absolute", (0, 1)).shape == (0,)
    assert outlier_scores([], "discrete").shape == (0,)
    assert outlier_scores(np.empty((0, 2)), "euclidean", [(0, 1)] * 2).shape == (0,)
    assert keep_probabilities([], 0.1, 0.2).shape == (0,)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(LISTS, st.integers(1, 99), st.integers(1, 99))
def test_keep_probabilities_are_one_minus_the_mean_of_the_transformed_distances(values, one, other):
    m, M = sorted([one / 100, other / 100])
    found = keep_probabilities(outlier_scores(np.array(values), "absolute", (0, 10)), m, M)
    expected = [1 - (m + (M - m) * score) for score in brute(values, "absolute", (0, 10))]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert ((found >= 1 - M - 1e-15) & (found <= 1 - m + 1e-15)).all()
    if m == M:
        assert len(set(found.tolist())) <= 1


BAD_VALUES = [
    [1.0, math.nan],
    [1.0, math.inf],
    [1.0, -math.inf],
    ["a", "b"],
    [True, False],
    [1.0, None],
    3.0,
    [[1.0], [2.0]],
    [[1.0], [2.0, 3.0]],
]


def test_bad_values_are_refused_without_being_told():
    for values in BAD_VALUES:
        with pytest.raises(ParameterError, match="values"):
            outlier_scores(values, "absolute", (0, 10))
    for values in [[1.0, 2.0], [["a"]], [[math.nan]], [[1.0], [2.0, 3.0]], np.empty((2, 0))]:
        with pytest.raises(ParameterError, match="values"):
            outlier_scores(values, "euclidean", [(0, 10)])
    for values in [[1.0, math.nan], np.array([None, "a"]), [["a"]], [[1], [2, 3]], 3, np.array([{}, {}])]:
        with pytest.raises(ParameterError, match="values"):
            outlier_scores(values, "discrete")
    with pytest.raises(ParameterError) as error:
        outlier_scores([918273645, math.nan], "absolute", (0, 1))
    assert "918273645" not in str(error.value)


def test_bad_bounds_and_distances_are_refused():
    bad = [None, 3, (0,), (0, 1, 2), (1, 0), (1, 1), (0, math.inf), (math.nan, 1), ("a", "b"), (True, 2)]
    for bounds in [*bad, (-1e308, 1e308), (0, 10**400), "01"]:
        with pytest.raises(ParameterError, match="bounds"):
            outlier_scores([0.5], "absolute", bounds)
    for bounds in [None, (0, 1), [(0, 1)], [(0, 1)] * 3, [(0, 1), (1, 0)], [(0, 1), None]]:
        with pytest.raises(ParameterError, match="bounds"):
            outlier_scores([[0.5, 0.5]], "euclidean", bounds)
    with pytest.raises(ParameterError, match="bounds"):
        outlier_scores(["a"], "discrete", (0, 1))
    for distance in ("manhattan", None, 1, True):
        with pytest.raises(ParameterError, match="distance"):
            outlier_scores([0.5], distance, (0, 1))


def test_bad_scores_and_chances_are_refused():
    for bad in ([-0.1], [1.1], [math.nan], [math.inf], ["a"], [True], 0.5, [[0.5]]):
        with pytest.raises(ParameterError, match="scores"):
            keep_probabilities(bad, 0.1, 0.2)
    for chance in (0, 0.005, 0.995, 1, math.nan, math.inf, "half", True, None):
        with pytest.raises(ParameterError, match="'m'"):
            keep_probabilities([0.5], chance, 0.99)
        with pytest.raises(ParameterError, match="'M'"):
            keep_probabilities([0.5], 0.01, chance)
    with pytest.raises(ParameterError, match="must not be above 'M'"):
        keep_probabilities([0.5], 0.3, 0.2)
