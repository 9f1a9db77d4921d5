"""Outlier scores against brute force, and keep probabilities."""

from __future__ import annotations

import math
import sys
import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pdprivacy.amplification.suppression import keep_probabilities, outlier_scores, scores
from pdprivacy.amplification.suppression.amplification import ROUNDED
from pdprivacy.errors import MissingExtraError, ParameterError

LISTS = st.lists(st.floats(-5, 15), max_size=30)
ON_GRID = st.lists(st.integers(-300, 900).map(lambda number: number / 64), max_size=30)
U = Fraction(1, 2**53)
CHANCES = [(0.01, 0.02), (0.01, 0.99), (0.1, 0.3), (0.3, 0.31), (0.5, 0.51), (0.98, 0.99)]


def brute(values, distance, bounds):
    """Section 5.3, record by record: the sum over all records, itself included, divided by their number."""

    def between(first, second):
        if distance == "discrete":
            return float(first != second)
        pairs = [bounds] if distance == "absolute" else bounds
        parts = zip(np.atleast_1d(first), np.atleast_1d(second), pairs, strict=True)
        scaled = [
            (min(max(a, low), high) - min(max(b, low), high)) / (high - low) for a, b, (low, high) in parts
        ]
        return math.sqrt(math.fsum(part**2 for part in scaled) / len(scaled))

    return [math.fsum(between(record, other) for other in values) / len(values) for record in values]


def exact(values, low, high):
    """The mean absolute distances as rational numbers, record by record."""
    low, high = Fraction(low), Fraction(high)
    positions = [(min(max(Fraction(value), low), high) - low) / (high - low) for value in values]
    return [sum(abs(position - other) for other in positions) / len(positions) for position in positions]


def rounded_up(first, second):
    """The distance of two points of whole numbers, in whole steps."""
    square = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    return math.isqrt(square - 1) + 1 if square else 0


def on_grid(column, pair, most):
    return scores._steps(column, *pair, most).astype(int).tolist()


@given(ON_GRID, st.sampled_from([(0, 10), (-4, 4), (-5, 12), (3, 4)]))
def test_absolute_scores_are_the_doubles_next_to_the_rational_ones(values, bounds):
    actual = outlier_scores(np.array(values), "absolute", bounds)
    assert actual.tolist() == [float(score) for score in exact(values, *bounds)]


@given(LISTS)
def test_absolute_scores_of_any_numbers_are_a_step_of_the_grid_off(values):
    actual = outlier_scores(np.array(values), "absolute", (0, 10))
    np.testing.assert_allclose(actual, brute(values, "absolute", (0, 10)), rtol=0, atol=2.0**-28)


@given(st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=30))
def test_discrete_scores_are_those_of_brute_force(labels):
    actual = outlier_scores(labels, "discrete")
    np.testing.assert_array_equal(actual, np.array(brute(labels, "discrete", None)))


@given(arrays.arrays(float, st.tuples(st.integers(0, 15), st.just(3)), elements=st.floats(-2, 3)))
def test_euclidean_scores_are_three_steps_of_the_grid_off(values):
    bounds = [(0, 1), (-1, 2), (-5, 5)]
    actual = outlier_scores(values, "euclidean", bounds)
    np.testing.assert_allclose(actual, brute(values, "euclidean", bounds), rtol=0, atol=3 * 2.0**-25)


@pytest.mark.parametrize(("width", "bits"), [(1, 26), (2, 25), (3, 25), (4, 25), (5, 24), (16, 24), (17, 23)])
def test_euclidean_scores_are_the_doubles_next_to_those_of_whole_steps(width, bits):
    """By integers alone: distances on the grid of the docstring, in whole steps, over the largest."""
    rng = np.random.default_rng(width)
    table = np.round(rng.uniform(-1.2, 1.2, (90, width)), 1 + width % 3)
    table[:5], table[5:9] = 1.0, -1.0  # the corners, which are as far apart as can be
    most = 2**bits
    points = list(zip(*(on_grid(column, (-1, 1), most) for column in table.T), strict=True))
    greatest = rounded_up([most] * width, [0] * width)
    expected = [sum(rounded_up(point, other) for other in points) / (90 * greatest) for point in points]
    assert outlier_scores(table, "euclidean", [(-1, 1)] * width).tolist() == expected
    assert width * most**2 <= 2**52 < width * (2 * most) ** 2  # the finest grid of exact products


def test_roots_are_rounded_up_exactly():
    """Where it is hardest: one above a square, up to the largest one, 2**52."""
    rng = np.random.default_rng(8)
    roots = np.concatenate([rng.integers(1, 2**26, 10_000), 2**26 - np.arange(1, 1000)])
    for above in (0, 1, 2):
        squares = roots**2 + above
        squares = squares[squares <= 2**52]
        expected = [math.isqrt(square - 1) + 1 for square in squares.tolist()]
        assert np.ceil(np.sqrt(squares.astype(float))).tolist() == expected


def test_distances_in_whole_steps_are_a_metric():
    """The theorem asks for the triangle inequality; points on a line and near it try it most."""
    rng = np.random.default_rng(9)
    for _ in range(2000):
        first, middle, last = rng.integers(0, [5, 2**25][rng.integers(2)], (3, 2)).tolist()
        if rng.integers(2):
            last = [2 * b - a + int(rng.integers(-1, 2)) for a, b in zip(first, middle, strict=True)]
        direct = rounded_up(first, last)
        assert direct <= rounded_up(first, middle) + rounded_up(middle, last)
        assert direct == rounded_up(last, first)
        assert (direct == 0) == (first == last)


@pytest.mark.full
def test_blocks_of_any_size_give_the_same_scores(monkeypatch):
    rng = np.random.default_rng(3)
    table, values = rng.uniform(0, 1, (301, 2)), rng.choice(rng.uniform(0, 1, 200), 301)
    apart = outlier_scores(table, "euclidean", [(0, 1), (0, 1)])
    along = outlier_scores(values, "absolute", (0, 1))
    for size in (1, 2, 7, 100, 300, 301, 302, 1000):
        monkeypatch.setattr(scores, "TILE", size)
        monkeypatch.setattr(scores, "BLOCK", size)
        np.testing.assert_array_equal(outlier_scores(table, "euclidean", [(0, 1), (0, 1)]), apart)
        np.testing.assert_array_equal(outlier_scores(values, "absolute", (0, 1)), along)


def test_one_column_is_the_absolute_distance():
    values = np.random.default_rng(4).integers(-9, 9 * 64, 200) / 64
    expected = outlier_scores(values, "absolute", (0, 8))
    np.testing.assert_array_equal(outlier_scores(values[:, np.newaxis], "euclidean", [(0, 8)]), expected)


def test_steps_are_the_nearest_and_the_clipping_comes_first():
    rng = np.random.default_rng(5)
    for low, high in [(0, 1), (-3, 4), (0.1, 0.7), (-1e300, 1e300), (0, 5e-324), (1e15, 1e15 + 1)]:
        values = rng.uniform(low, high, 300)
        values[:4] = low, high, np.nextafter(low, -math.inf), np.nextafter(high, math.inf)
        width = Fraction(float(high)) - Fraction(float(low))
        steps = on_grid(values, (float(low), float(high)), 2**29)
        for value, step in zip(values.tolist(), steps, strict=True):
            share = (Fraction(min(max(value, low), high)) - Fraction(float(low))) / width
            assert abs(step - share * 2**29) <= Fraction(1, 2) + 2**31 * U
        assert steps[:4] == [0, 2**29, 0, 2**29]


@pytest.mark.full
@pytest.mark.parametrize("bounds", [(0, 100), (-0.3, 0.9), (0, 1e-320)])
def test_a_hundred_thousand_scores_are_the_doubles_next_to_the_rational_ones(bounds):
    rng = np.random.default_rng(11)
    low, high = bounds
    values = rng.normal(0.5, 0.4, 100_000) * (high - low) + low
    values[::7] = np.round(values[::7], 2)
    steps = on_grid(values, bounds, most := round(math.frexp(high - low)[0] * 2**29))
    order = sorted(range(len(steps)), key=steps.__getitem__)
    below, total, n = 0, sum(steps), len(steps)
    actual = outlier_scores(values, "absolute", bounds)
    for rank, record in enumerate(order):  # integers of Python, whose quotient is the double next to it
        step = steps[record]
        away = step * rank - below + (total - below) - step * (n - rank)
        assert actual[record] == away / (n * most)
        below += step


@pytest.mark.full
def test_sixteen_million_records_are_as_exact_as_few():
    """The scores of some of 2**24 records, from integers; the last number for which the error is promised."""
    n, most = 2**24, 1000 * 2**19
    values = np.random.default_rng(12).integers(0, 1001, n)
    values[: n // 3] = 1000
    counts = np.bincount(values, minlength=1001).tolist()
    actual = outlier_scores(values, "absolute", (0, 1000))
    for record in (0, n // 3, n // 2, n - 1):
        steps = sum(2**19 * abs(int(values[record]) - other) * times for other, times in enumerate(counts))
        assert actual[record] == steps / (n * most)
    alike = outlier_scores(values, "discrete")
    assert alike[0] == (n - counts[1000]) / n


def test_scores_are_made_in_memory_of_the_size_of_the_records():
    n = 2**20
    values = np.random.default_rng(13).uniform(0, 1, n)
    codes = (values * 50).astype(np.int64)
    table = values[:12_000].reshape(-1, 2)
    for distance, records, bounds, most in (
        ("absolute", values, (0, 1), 16 * n + 2**23),  # sorted keys and scores
        ("discrete", codes, None, 8 * n + 2**23),
        ("euclidean", table, [(0, 1)] * 2, 2**23),  # a matrix of distances has 288 MB
    ):
        tracemalloc.start()
        outlier_scores(records, distance, bounds)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= most, distance


def test_scores_are_means_with_the_record_itself_among_them():
    np.testing.assert_array_equal(outlier_scores([3], "absolute", (0, 10)), [0])
    np.testing.assert_array_equal(outlier_scores([0, 10], "absolute", (0, 10)), [0.5, 0.5])
    np.testing.assert_array_equal(outlier_scores([[0, 0], [1, 1]], "euclidean", [(0, 1)] * 2), [0.5, 0.5])


def test_values_outside_the_bounds_are_clipped_to_them():
    inside = outlier_scores([0, 10, 10], "absolute", (0, 10))
    np.testing.assert_array_equal(outlier_scores([-100, 10, 1e300], "absolute", (0, 10)), inside)


@pytest.mark.parametrize("distance", ["absolute", "discrete", "euclidean"])
def test_equal_records_have_equal_scores_in_any_order(distance):
    rng = np.random.default_rng(6)
    values = rng.choice([0.1, 0.2, 0.3, 1 / 3], 1000)
    bounds = {"absolute": (0, 1), "discrete": None, "euclidean": [(0, 1)] * 2}[distance]
    records = np.column_stack([values, values**2]) if distance == "euclidean" else values
    actual = outlier_scores(records, distance, bounds)
    assert all(len(set(actual[values == value])) == 1 for value in set(values))
    order = rng.permutation(1000)
    np.testing.assert_array_equal(outlier_scores(records[order], distance, bounds), actual[order])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 0, 3, -1]),
        np.array([-128, 127, -128, 0], dtype=np.int8),
        np.array([0, 255, 0, 1], dtype=np.uint8),
        np.array([0, 2**39, 0, 1]),  # too far apart to be counted by place
        np.array([-(2**63), 2**63 - 1, -(2**63), 0]),
        np.array([-(2**63), -(2**63) + 1, -(2**63), -(2**63) + 9]),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 1, 0], dtype=np.uint64),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 3], dtype=np.uint64),
        np.array([2**63, 2**63 - 1, 2**63, 2**63 - 2], dtype=np.uint64),
        np.array([7, 5, 7, 6] * 2, dtype=np.int32)[::-1][1::2][::-1],
        [10**30, 1, 10**30, 2],
    ],
)
def test_codes_are_counted_whatever_their_integers_are(labels):
    expected = brute(list(labels), "discrete", None)
    assert outlier_scores(labels, "discrete").tolist() == expected
    assert outlier_scores([True, True, False], "discrete").tolist() == [1 / 3, 1 / 3, 2 / 3]


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


@given(ON_GRID, st.integers(1, 99), st.integers(1, 99))
def test_keep_probabilities_are_one_minus_the_mean_of_the_transformed_distances(values, column, other):
    """And off by 3 * 2**-53 at most, never above 1 - m; the distances are transformed as in Section 5.3."""
    m, M = sorted([Fraction(column, 100), Fraction(other, 100)])
    actual = keep_probabilities(outlier_scores(np.array(values), "absolute", (0, 10)), m, M)
    for kept, score in zip(actual.tolist(), exact(values, 0, 10), strict=True):
        assert abs(Fraction(kept) - (1 - m - (M - m) * score)) <= 3 * U
        assert 1 - M - U <= kept <= 1 - m
    if m == M:
        assert len(set(actual.tolist())) <= 1


@pytest.mark.full
@pytest.mark.parametrize(("m", "M"), CHANCES)
def test_keep_and_suppress_are_as_near_to_their_probabilities_as_is_said(m, M):
    """Each is off by 300 * 2**-53 of itself at most."""
    share = 300 * U
    assert 2 * 2**24 * (share + share**2) <= Fraction(12, 10**7)
    assert 2**32 * Fraction(1, 10**13) < ROUNDED
    low, high = Fraction(str(m)), Fraction(str(M))
    rng = np.random.default_rng(14)
    parts = [(int(a), int(b)) for a, b in np.sort(rng.integers(1, 2**53, (20_000, 2)), axis=1)]
    parts += [(0, 1), (1, 1), (2**53 - 1, 2**53), (1, 2**53)]
    rounded = keep_probabilities(np.array([a / b for a, b in parts]), m, M).tolist()
    for kept, (a, b) in zip(rounded, parts, strict=True):
        keep = 1 - low - (high - low) * Fraction(a, b)
        error = abs(Fraction(kept) - keep)
        assert error <= 3 * U
        assert error <= share * min(keep, 1 - keep)
        assert kept <= 1 - low  # a delta is multiplied by it


@pytest.mark.parametrize("distance", ["absolute", "discrete", "euclidean"])
def test_rounded_probabilities_cost_little_for_all_kept_sets(distance):
    """The likeliest and the least likely change of a kept set, by rational numbers, for each neighbour."""
    rng = np.random.default_rng(15)
    low, high = Fraction(1, 100), Fraction(99, 100)
    for n in (1, 2, 5, 40):
        numbers = rng.integers(0, 9, n)
        bounds = {"absolute": (0, 8), "discrete": None, "euclidean": [(0, 8)]}[distance]
        records = numbers[:, np.newaxis] if distance == "euclidean" else numbers
        kept = keep_probabilities(outlier_scores(records, distance, bounds), low, high).tolist()
        if distance == "discrete":
            ideal = [Fraction(int((numbers != number).sum()), n) for number in numbers]
        else:
            ideal = exact(numbers.tolist(), 0, 8)
        most = least = Fraction(1)
        for rounded, score in zip(kept, ideal, strict=True):
            keep = 1 - low - (high - low) * score
            changes = Fraction(rounded) / keep, (1 - Fraction(rounded)) / (1 - keep)
            most, least = most * max(changes), least * min(changes)
        assert most <= (1 + 300 * U) ** n
        assert least >= (1 - 300 * U) ** n


def test_progress_shows_every_tile_and_changes_nothing(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, tiles, total, **_):
            self.tiles, self.total = tiles, total

        def __iter__(self):
            for tile in self.tiles:
                yield tile
                shown.append(tile)
            assert len(shown) == self.total

    table, bounds = np.random.default_rng(16).uniform(0, 1, (95, 2)), [(0, 1), (0, 1)]
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(scores, "TILE", 10)
    silent = outlier_scores(table, "euclidean", bounds)
    np.testing.assert_array_equal(outlier_scores(table, "euclidean", bounds, progress=False), silent)
    assert not shown
    np.testing.assert_array_equal(outlier_scores(table, "euclidean", bounds, progress=True), silent)
    assert len(shown) == 55  # of ten by ten, each pair once
    shown.clear()
    monkeypatch.setattr(scores, "LONG", 95)
    monkeypatch.setattr("pdprivacy.text.progress._in_terminal", lambda: True)
    np.testing.assert_array_equal(outlier_scores(table, "euclidean", bounds), silent)
    assert len(shown) == 55


def test_progress_needs_tqdm_only_where_it_was_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(scores, "LONG", 1)
    assert outlier_scores([[0.0], [1.0]], "euclidean", [(0, 1)]).tolist() == [0.5, 0.5]
    with pytest.raises(MissingExtraError, match=r'pip install "pdprivacy\[progress\]"'):
        outlier_scores([[0.0], [1.0]], "euclidean", [(0, 1)], progress=True)


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
