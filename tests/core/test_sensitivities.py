"""Each closed form against a search over all small tables, then over random and large ones.

A search takes every multiset of n - 1 records and joins each record in turn.
The results for one multiset are neighbours of each other by replacement, and of
the multiset alone by adding a record.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import sensitivity
from pdprivacy.errors import ParameterError

BOTH = ("add_remove", "replace_one")
ROWS = [*itertools.product(BOTH, [3, 4, 5, 6]), ("replace_one", 2)]  # both tables have a variance
GRID = (0.0, 0.5, 1.0)
CLOSE = 1e-12


def multisets(records, size):
    """Every multiset of ``size`` records: an array of (multisets, size, fields)."""
    table = np.asarray(records, dtype=float)
    index = np.array(list(itertools.combinations_with_replacement(range(len(table)), size)), dtype=int)
    return table[index.reshape(-1, size)]


def length(change, norm):
    if norm == "l0":
        return (change != 0).sum(axis=-1)
    if norm == "largest by group":
        return np.abs(change).max(axis=-1).sum(axis=-1)
    return np.abs(change).sum(axis=-1) if norm == "l1" else np.sqrt((change**2).sum(axis=-1))


def search(statistic, records, n, *, neighbors, norm="l1", may_vanish=False, same=lambda a, b: True):
    """The largest change of a statistic (tables of rows of fields, to vectors) over neighbours."""
    others = multisets(records, n - 1)
    joined = []
    for record in records:
        row = np.broadcast_to(np.asarray(record, dtype=float), (len(others), 1, len(record)))
        joined.append(statistic(np.concatenate([others, row], axis=1)))
    if neighbors == "add_remove":
        alone = statistic(others)
        return max(length(value - alone, norm).max() for value in joined)
    if may_vanish:
        joined.append(statistic(others))
    pairs = [
        length(joined[i] - joined[j], norm).max()
        for i, j in itertools.combinations(range(len(joined)), 2)
        if max(i, j) >= len(records) or same(records[i], records[j])
    ]
    return max(pairs)


def one_column(values):
    return [(value,) for value in values]


def two_columns(values):
    return list(itertools.product(values, values))


def pooled(tables, groups, first=0, second=0):
    """The pooled covariance of two fields, the last field being the group."""
    total = np.zeros(tables.shape[0])
    group = tables[..., -1]
    for label in range(groups):
        inside = (group == label).astype(float)
        size = np.maximum(inside.sum(axis=1), 1)
        x, y = tables[..., first], tables[..., second]
        x_mean = (inside * x).sum(axis=1) / size
        y_mean = (inside * y).sum(axis=1) / size
        total += (inside * (x - x_mean[:, None]) * (y - y_mean[:, None])).sum(axis=1)
    return (total / (tables.shape[1] - groups))[:, None]


def covariance(tables):
    x = tables[..., 0] - tables[..., 0].mean(axis=1, keepdims=True)
    y = tables[..., -1] - tables[..., -1].mean(axis=1, keepdims=True)
    return ((x * y).sum(axis=1) / (tables.shape[1] - 1))[:, None]


# Sums and counts


@pytest.mark.parametrize("neighbors", BOTH)
def test_count_is_tight(neighbors):
    largest = search(lambda t: (t == 1).sum(axis=1), one_column(GRID), 4, neighbors=neighbors)
    assert largest == sensitivity.count(neighbors=neighbors) == 1


@pytest.mark.parametrize("bounds", [(-1.0, 3.0), (2.0, 5.0), (-4.0, -1.0), (-3.0, 1.0)])
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("may_vanish", [False, True])
def test_sums_are_tight(bounds, neighbors, may_vanish):
    lower, upper = bounds
    width, middle = upper - lower, (lower + upper) / 2
    values = np.linspace(lower, upper, 5)  # holds the middle: the smallest square
    options = {"neighbors": neighbors, "may_vanish": may_vanish}
    cases = [
        (lambda t: t[..., 0].sum(axis=1), sensitivity.sum(lower, upper, **options)),
        (lambda t: (t[..., 0] - middle).sum(axis=1), sensitivity.sum(lower, upper, centered=True, **options)),
        (
            lambda t: ((t[..., 0] - middle) ** 2 - width**2 / 8).sum(axis=1),
            sensitivity.sum(-(width**2) / 8, width**2 / 8, **options),
        ),
    ]
    for statistic, value in cases:
        largest = search(lambda t, s=statistic: s(t)[:, None], one_column(values), 3, **options)
        assert largest == pytest.approx(value, abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("may_vanish", [False, True])
def test_sums_of_centred_products_are_tight(neighbors, may_vanish):
    records = list(itertools.product((-1.0, 1.0, 3.0), (2.0, 2.5, 3.0)))
    largest = search(
        lambda t: ((t[..., 0] - 1) * (t[..., 1] - 2.5)).sum(axis=1)[:, None],
        records,
        3,
        neighbors=neighbors,
        may_vanish=may_vanish,
    )
    value = sensitivity.sum(-1.0, 1.0, neighbors=neighbors, may_vanish=may_vanish)  # 4 * 1 / 4 each way
    assert largest == pytest.approx(value, abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("bounds", [(0, 2), (-1, 3), (-2, 2), (1, 3), (-3, -1)])
def test_sums_of_disjoint_groups_are_tight(neighbors, bounds):
    values = range(bounds[0], bounds[1] + 1)
    records = list(itertools.product(values, range(2)))

    def sums(tables):
        return (tables[..., :1] * (tables[..., 1:] == np.arange(2))).sum(axis=1)

    stated = sensitivity.disjoint_sums(*bounds, neighbors=neighbors)
    for norm, value in zip(("l1", "l2"), (stated[0], math.sqrt(stated[1])), strict=True):
        assert search(sums, records, 2, neighbors=neighbors, norm=norm) == pytest.approx(value, abs=CLOSE)


def test_sums_that_cannot_move_have_a_sensitivity_of_one():
    assert sensitivity.disjoint_sums(0, 0, neighbors="add_remove") == (1, 1)
    assert sensitivity.disjoint_sums(0, 0, neighbors="replace_one") == (2, 2)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("may_vanish", [False, True])
@pytest.mark.parametrize("bounds", [(-1.0, 3.0), (2.0, 5.0), (-4.0, -1.0)])
@pytest.mark.parametrize("weights", [(0.0, 2.0), (0.5, 3.0)])
def test_the_range_of_weighted_terms_is_tight(weights, bounds, neighbors, may_vanish):
    options = {"neighbors": neighbors, "may_vanish": may_vanish}
    (lower, upper), b = bounds, weights[1]
    records = list(itertools.product(np.linspace(lower, upper, 3), np.linspace(*weights, 3)))
    terms = [x * w for x, w in records]
    stated = sensitivity.weighted_range(lower, upper, *weights)
    assert stated == (min(terms), max(terms))
    largest = search(lambda t: (t[..., 0] * t[..., 1]).sum(axis=1)[:, None], records, 3, **options)
    assert largest == pytest.approx(sensitivity.sum(*stated, **options), abs=CLOSE)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    largest = search(lambda t: ((t[..., 0] - middle) * t[..., 1]).sum(axis=1)[:, None], records, 3, **options)
    assert largest == pytest.approx(b * half * (1 if neighbors == "add_remove" else 2), abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
def test_tables_of_weights_are_tight(neighbors):
    records = list(itertools.product((0, 1, 3), range(2)))

    def sums(tables):
        return (tables[..., :1] * (tables[..., 1:] == np.arange(2))).sum(axis=1)

    l1, l2_squared = sensitivity.disjoint_sums(0, 3, neighbors=neighbors)
    assert (l1, l2_squared) == ((3, 9) if neighbors == "add_remove" else (6, 18))
    assert search(sums, records, 3, neighbors=neighbors) == l1
    largest = search(sums, records, 3, neighbors=neighbors, norm="l2")
    assert largest == pytest.approx(math.sqrt(l2_squared), abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("q", [Fraction(1, 4), Fraction(1, 2), Fraction(2, 3)], ids=str)
def test_scores_of_weighted_quantiles_are_tight(neighbors, q):
    records = list(itertools.product(range(3), (0.0, 0.5, 2.0)))

    def score(tables, point):
        x, w = tables[..., 0], tables[..., 1]
        target = float(q) * w.sum(axis=1)
        below, upto = (w * (x < point)).sum(axis=1), (w * (x <= point)).sum(axis=1)
        return np.maximum(np.maximum(below - target, target - upto), 0)[:, None]

    changes = (search(lambda t, k=k: score(t, k), records, 4, neighbors=neighbors) for k in range(3))
    stated = sensitivity.quantile(q, neighbors=neighbors, weight_upper=2)
    assert max(changes) == pytest.approx(float(stated), abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(
    "q", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)], ids=str
)
def test_scores_of_quantiles_are_tight(neighbors, q):
    def scores(tables):
        below = (tables < np.arange(3)).sum(axis=1) - float(q) * tables.shape[1]
        upto = (tables <= np.arange(3)).sum(axis=1) - float(q) * tables.shape[1]
        return np.maximum(np.maximum(below, -upto), 0)

    changes = (
        search(lambda t, k=k: scores(t)[:, k : k + 1], one_column(range(3)), 4, neighbors=neighbors)
        for k in range(3)
    )
    assert max(changes) == pytest.approx(float(sensitivity.quantile(q, neighbors=neighbors)), abs=CLOSE)


def distance_to_rank(tables, point, target):
    """Minus the score of a point, by the records below it and those up to it."""
    return np.maximum(
        np.maximum((tables < point).sum(axis=1) - target, target - (tables <= point).sum(axis=1)), 0
    )


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("end", ["lower", "upper"])
def test_scores_of_extremes_are_tight(neighbors, rank, end):
    def score(tables, point):
        values = tables[..., 0]
        return distance_to_rank(values, point, rank if end == "lower" else values.shape[1] - rank)[:, None]

    changes = (
        search(lambda t, k=k: score(t, k), one_column(range(3)), 4, neighbors=neighbors) for k in range(3)
    )
    assert max(changes) == sensitivity.extreme(neighbors=neighbors) == 1


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("q", [None, Fraction(1, 4), Fraction(1, 2), Fraction(1)], ids=str)
def test_scores_in_groups_are_tight(neighbors, q):
    """By the sum over groups of the largest change of a score, of a rank (None) or a quantile."""
    records, points = list(itertools.product(range(3), range(2))), range(3)

    def scores(tables):
        inside = tables[..., 1:] == np.arange(2)  # table, record, group
        rows = inside.sum(axis=1)
        targets = [1, rows - 1] if q is None else [float(q) * rows]
        below = [(inside & (tables[..., :1] < point)).sum(axis=1) for point in points]
        upto = [(inside & (tables[..., :1] <= point)).sum(axis=1) for point in points]
        pairs = zip(below, upto, strict=True)
        every = [np.maximum(np.maximum(b - t, t - u), 0) for b, u in pairs for t in targets]
        return np.stack(every, axis=-1).astype(float)  # table, group, score

    worst = search(scores, records, 3, neighbors=neighbors, norm="largest by group")
    stated = (
        sensitivity.extreme(neighbors=neighbors, grouped=True)
        if q is None
        else sensitivity.quantile(q, neighbors=neighbors, grouped=True)
    )
    assert worst == pytest.approx(float(stated), abs=CLOSE)


def test_a_vanishing_record_matters_only_far_from_zero():
    assert sensitivity.sum(18, 65, neighbors="replace_one") == 47
    assert sensitivity.sum(18, 65, neighbors="replace_one", may_vanish=True) == 65
    assert sensitivity.sum(18, 65, neighbors="add_remove", may_vanish=True) == 65
    assert sensitivity.sum(-5, 65, neighbors="replace_one", may_vanish=True) == 70


# Means and shares


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_mean_is_tight(neighbors, n):
    largest = search(lambda t: t.mean(axis=1), one_column(GRID), n, neighbors=neighbors)
    assert largest == pytest.approx(sensitivity.mean(0.0, 1.0, n, neighbors=neighbors), abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_proportion_is_the_mean_of_an_indicator(neighbors, n):
    largest = search(lambda t: (t == 1).mean(axis=1), one_column(GRID), n, neighbors=neighbors)
    assert largest == pytest.approx(sensitivity.mean(0.0, 1.0, n, neighbors=neighbors), abs=CLOSE)


@pytest.mark.full(keep=26)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("cells", [2, 3, 4])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_histograms_are_tight(neighbors, norm, cells, n):
    labels = np.arange(cells)
    records = one_column(labels)

    def counts(tables):
        return (tables == labels).sum(axis=1)

    worst = search(counts, records, n, neighbors=neighbors, norm=norm)
    assert worst == pytest.approx(float(sensitivity.histogram(neighbors=neighbors, norm=norm)), abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("root", [False, True])
def test_levels_of_a_tree_of_counts_are_tight_but_for_a_root(neighbors, norm, root):
    # Four leaves and two nodes above them.
    nodes = np.vstack([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], *([np.ones((1, 4))] if root else [])])

    def counts(tables):
        return (tables == np.arange(4)).sum(axis=1) @ nodes.T

    worst = search(counts, one_column(range(4)), 3, neighbors=neighbors, norm=norm)
    stated = float(sensitivity.histogram(neighbors=neighbors, norm=norm, levels=3 if root else 2))
    moved = 2 if root and neighbors == "replace_one" else 3 if root else 2
    reached = sensitivity.histogram(neighbors=neighbors, norm=norm, levels=moved)
    assert worst == pytest.approx(float(reached), abs=CLOSE)
    assert worst <= stated + CLOSE


@pytest.mark.parametrize("neighbors", BOTH)
def test_disjoint_groups_are_tight(neighbors):
    """By the number of groups of which any sum of terms moves, for terms that tell all records apart."""
    records = list(itertools.product((1.0, 5.0), range(3)))

    def sums(tables):
        return (tables[..., :1] * (tables[..., 1:] == np.arange(3))).sum(axis=1)

    worst = search(sums, records, 3, neighbors=neighbors, norm="l0")
    assert worst == sensitivity.disjoint_groups(neighbors=neighbors)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("levels", [2, 3, 7, 1000, 12345])
def test_the_l2_float_is_the_next_one_above_the_root(neighbors, levels):
    exact = sensitivity.histogram(neighbors=neighbors, norm="l2", squared=True, levels=levels)
    assert exact == levels * (1 if neighbors == "add_remove" else 2)
    root = sensitivity.histogram(neighbors=neighbors, norm="l2", levels=levels)
    assert isinstance(root, float)
    assert Fraction(root) ** 2 >= exact > Fraction(math.nextafter(root, 0)) ** 2


def test_squares_are_exact():
    def squared(neighbors, norm):
        return sensitivity.histogram(neighbors=neighbors, norm=norm, squared=True)

    assert [squared(n, "l1") for n in BOTH] == [1, 4]
    assert [squared(n, "l2") for n in BOTH] == [1, 2]
    assert sensitivity.histogram(neighbors="add_remove", squared=True, levels=5) == 25
    assert sensitivity.histogram(neighbors="add_remove", norm="l2") == 1.0


# Variance and covariance


@pytest.mark.parametrize(("neighbors", "n"), ROWS)
def test_var_is_tight(neighbors, n):
    largest = search(covariance, one_column(GRID), n, neighbors=neighbors)
    assert largest == pytest.approx(sensitivity.var(0.0, 1.0, n, neighbors=neighbors), abs=CLOSE)


@pytest.mark.parametrize(("neighbors", "n"), ROWS)
def test_cov_is_tight(neighbors, n):
    largest = search(covariance, two_columns(GRID), n, neighbors=neighbors)
    assert largest == pytest.approx(sensitivity.cov(0.0, 1.0, 0.0, 1.0, n, neighbors=neighbors), abs=CLOSE)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("n", [10, 20, 40])
def test_cov_holds_at_every_corner_of_larger_tables(n):
    # Linear in each value, so the corners hold the extremes over all real values.
    largest = max(abs(change) for change in corner_changes(n, 1))
    assert largest == pytest.approx(1 / n, abs=CLOSE)
    assert largest <= sensitivity.cov(0.0, 1.0, 0.0, 1.0, n, neighbors="add_remove") + CLOSE


# Pooled variance


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(
    ("n", "groups"), [(3, 1), (5, 1), (4, 2), (5, 2), (6, 2), (6, 3), (7, 3), (6, 4), (7, 4)]
)
def test_pooled_var_bound_and_supremum(neighbors, n, groups):
    records = list(itertools.product(GRID, range(groups)))
    largest = search(lambda t: pooled(t, groups), records, n, neighbors=neighbors)
    value = sensitivity.pooled_var(0.0, 1.0, n, groups, neighbors=neighbors)
    assert largest <= value + CLOSE
    if neighbors == "replace_one" or 3 * n >= 4 * (groups + 1):
        assert largest == pytest.approx((1 - 1 / n) / (n - groups), abs=CLOSE)


def test_pooled_var_of_few_records_exceeds_the_plain_bound():
    records = list(itertools.product((0.0, 1.0), range(5)))
    largest = search(lambda t: pooled(t, 5), records, 7, neighbors="add_remove")
    value = sensitivity.pooled_var(0.0, 1.0, 7, 5, neighbors="add_remove")
    assert largest > 1 / (7 - 5)
    assert largest == pytest.approx(value, abs=CLOSE)  # three pairs (0, 1), an empty group for the seventh


# Pooled covariance


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("n", "groups"), [(3, 1), (5, 1), (4, 2), (5, 2), (6, 2), (5, 3)])
@pytest.mark.parametrize("neighbors", BOTH)
def test_pooled_cov_dominates(neighbors, n, groups):
    records = [(x, y, g) for x, y in two_columns(GRID) for g in range(groups)]
    largest = search(lambda t: pooled(t, groups, 0, 1), records, n, neighbors=neighbors)
    value = sensitivity.pooled_cov(0.0, 1.0, 0.0, 1.0, n, groups, neighbors=neighbors)
    assert largest <= value + CLOSE
    if neighbors == "replace_one":
        fixed = search(
            lambda t: pooled(t, groups, 0, 1),
            records,
            n,
            neighbors=neighbors,
            same=lambda a, b: a[-1] == b[-1],
        )
        bound = sensitivity.pooled_cov(
            0.0, 1.0, 0.0, 1.0, n, groups, neighbors=neighbors, group_changes=False
        )
        assert fixed <= bound + CLOSE
        assert fixed == pytest.approx((1 - 1 / n) * bound, abs=CLOSE)
        if groups > 1 and n % 2:
            assert largest == pytest.approx((n - 1) / (n + 1) * value, abs=CLOSE)


def test_pooled_cov_of_a_record_that_changes_its_group():
    records = [(x, y, g) for x, y in two_columns((0.0, 1.0)) for g in range(2)]
    largest = search(lambda t: pooled(t, 2, 0, 1), records, 6, neighbors="replace_one")
    fixed = sensitivity.pooled_cov(0, 1, 0, 1, 6, 2, neighbors="replace_one", group_changes=False)
    assert fixed == 0.25
    assert largest == pytest.approx(17 / 48, abs=CLOSE)
    assert largest <= sensitivity.pooled_cov(0, 1, 0, 1, 6, 2, neighbors="replace_one") == 0.5


def compositions(total, parts):
    """All ways to put ``total`` records into ``parts`` kinds, one row each."""
    bars = np.array(list(itertools.combinations(range(total + parts - 1), parts - 1)), dtype=int)
    edges = np.hstack(
        [
            np.full((len(bars), 1), -1),
            bars.reshape(len(bars), parts - 1),
            np.full((len(bars), 1), total + parts - 1),
        ]
    )
    return np.diff(edges, axis=1) - 1


def products(kinds):
    """Sum of products about the means of a group with counts of (0,0), (0,1), (1,0), (1,1)."""
    size = np.maximum(kinds.sum(axis=1), 1)
    return kinds[:, 3] - (kinds[:, 2] + kinds[:, 3]) * (kinds[:, 1] + kinds[:, 3]) / size


def corner_changes(n, groups):
    """Smallest and largest change of the pooled covariance when (0, 0) joins, all values at a bound.

    Other corners are reflections of this one. The other groups matter only
    through the extremes of their sums, taken over all splits of their records.
    """
    extremes = {0: (0.0, 0.0)}
    for size in range(1, n):
        sums = products(compositions(size, 4))
        extremes[size] = (sums.min(), sums.max())
    others = {0: (0.0, 0.0)} if groups == 1 else dict(extremes)
    for _ in range(groups - 2):
        others = {
            size: (
                min(others[part][0] + extremes[size - part][0] for part in range(size + 1)),
                max(others[part][1] + extremes[size - part][1] for part in range(size + 1)),
            )
            for size in range(n)
        }
    smallest, largest = math.inf, -math.inf
    for rest, (low, high) in others.items():
        kinds = compositions(n - 1 - rest, 4)
        before = products(kinds)
        after = products(kinds + np.array([1, 0, 0, 0]))
        for rest_sum in (low, high):
            change = (after + rest_sum) / (n - groups) - (before + rest_sum) / (n - 1 - groups)
            smallest, largest = min(smallest, change.min()), max(largest, change.max())
    return smallest, largest


@pytest.mark.full(keep=10)
@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("n", [6, 9, 13, 18, 25])
def test_pooled_cov_holds_at_every_corner(n, groups):
    largest = max(abs(change) for change in corner_changes(n, groups))
    value = sensitivity.pooled_cov(0.0, 1.0, 0.0, 1.0, n, groups, neighbors="add_remove")
    assert largest <= value + CLOSE
    # Tight, but for groups of odd size g, which fall 1/(4g) short of g/4.
    assert largest >= value - 1 / (4 * (n - 1 - groups) * (n - groups)) - CLOSE


@pytest.mark.parametrize(("n", "groups"), [(40, 2), (110, 2), (110, 5), (1000, 3), (20001, 2)])
def test_pooled_cov_exceeds_the_printed_bound_in_large_tables(n, groups):
    size = {t: 1 - 1 / t + (n - t) / (4 * (n - 1 - groups)) for t in range(2, n)}
    together = max(size, key=lambda t: size[t])
    rest = n - together
    half = rest // 2
    x = np.concatenate([np.zeros(together - 1), np.zeros(half), np.ones(rest - half)])
    y = np.concatenate([np.zeros(together - 1), np.ones(half), np.zeros(rest - half)])
    group = np.concatenate([np.zeros(together - 1), np.ones(rest)])
    before = np.stack([x, y, group], axis=1)[None]
    after = np.concatenate([before, np.array([[[1.0, 1.0, 0.0]]])], axis=1)
    change = (pooled(after, groups, 0, 1) - pooled(before, groups, 0, 1)).item()
    printed = 1 / (n - groups)
    value = sensitivity.pooled_cov(0.0, 1.0, 0.0, 1.0, n, groups, neighbors="add_remove")
    assert change > 1.1 * printed
    assert value - printed / (4 * (n - 1 - groups)) <= change <= value + 1e-15


# Groups of a public largest size


def search_small_groups(statistic, records, n, largest, *, neighbors, same=lambda a, b: True):
    """The largest change of a statistic over neighbours none of whose groups exceeds a size."""
    others = multisets(records, n - 1)
    groups = sorted({record[-1] for record in records})

    def small(tables):
        sizes = [(tables[..., -1] == group).sum(axis=1) for group in groups]
        return np.max(sizes, axis=0) <= largest

    def joined(record):
        row = np.broadcast_to(np.asarray(record, dtype=float), (len(others), 1, len(record)))
        tables = np.concatenate([others, row], axis=1)
        return np.where(small(tables), statistic(tables)[:, 0], np.nan)

    values = [joined(record) for record in records]
    if neighbors == "add_remove":
        alone = np.where(small(others), statistic(others)[:, 0], np.nan)
        return max(np.nanmax(np.abs(value - alone), initial=0) for value in values)
    return max(
        np.nanmax(np.abs(values[i] - values[j]), initial=0)
        for i, j in itertools.combinations(range(len(records)), 2)
        if same(records[i], records[j])
    )


SMALL_GROUPS = [(4, 2, 2), (5, 2, 3), (5, 3, 2), (6, 2, 4), (6, 3, 2), (6, 3, 3), (7, 4, 2)]


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(("n", "groups", "largest"), SMALL_GROUPS)
@pytest.mark.parametrize("neighbors", BOTH)
def test_pooled_var_of_small_groups(neighbors, n, groups, largest):
    records = list(itertools.product((0.0, 0.5, 1.0) if n < 7 else (0.0, 1.0), range(groups)))
    change = search_small_groups(lambda t: pooled(t, groups), records, n, largest, neighbors=neighbors)
    bound = sensitivity.pooled_var(0.0, 1.0, n, groups, neighbors=neighbors, largest_group=largest)
    assert change <= bound + CLOSE
    printed = (1 - 1 / largest) / (n - groups)
    if neighbors == "replace_one":
        assert change == pytest.approx(printed, abs=CLOSE)
        assert bound == pytest.approx(printed, abs=CLOSE)
    else:
        assert change >= printed - CLOSE
        assert bound >= printed - CLOSE


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("n", "groups", "largest"), SMALL_GROUPS)
@pytest.mark.parametrize("neighbors", BOTH)
def test_pooled_cov_of_small_groups(neighbors, n, groups, largest):
    records = [(x, y, g) for x, y in two_columns((0.0, 1.0)) for g in range(groups)]
    if len(records) > 12:
        n, groups, largest = 5, 3, 2  # the most that a search takes
        records = [(x, y, g) for x, y in two_columns((0.0, 1.0)) for g in range(groups)]
    options = {"neighbors": neighbors, "largest_group": largest}
    value = sensitivity.pooled_cov(0.0, 1.0, 0.0, 1.0, n, groups, **options)

    def covariance_of_groups(tables):
        return pooled(tables, groups, 0, 1)

    change = search_small_groups(covariance_of_groups, records, n, largest, neighbors=neighbors)
    assert change <= value + CLOSE
    if neighbors == "replace_one":
        if n == groups * largest or 2 * largest - 1 <= n:  # a full group before, and another one after
            assert change == pytest.approx(value, abs=CLOSE)
        fixed = search_small_groups(
            covariance_of_groups, records, n, largest, neighbors=neighbors, same=lambda a, b: a[-1] == b[-1]
        )
        bound = sensitivity.pooled_cov(0.0, 1.0, 0.0, 1.0, n, groups, group_changes=False, **options)
        assert fixed == pytest.approx(bound, abs=CLOSE)


@pytest.mark.parametrize("neighbors", BOTH)
def test_a_largest_group_lowers_sensitivities_and_a_large_one_does_not(neighbors):
    for largest in (2, 3, 10, 100, 10**6):
        for change in (False, True):
            options = {"neighbors": neighbors, "group_changes": change}
            plain = sensitivity.pooled_cov(0, 1, 0, Fraction(1), 200, 100, **options)
            small = sensitivity.pooled_cov(0, 1, 0, Fraction(1), 200, 100, largest_group=largest, **options)
            assert small <= plain
            if neighbors == "replace_one":
                full = 2 if change and largest == 2 else 1  # no record can change its group
                assert small * full == plain * (1 - Fraction(1, largest))
        variance = sensitivity.pooled_var(
            0, Fraction(1), 200, 100, neighbors=neighbors, largest_group=largest
        )
        assert variance == Fraction(1, 100) * (1 - Fraction(1, largest)) or largest == 2
    with pytest.raises(ParameterError, match="must let 100 groups hold 201 records"):
        sensitivity.pooled_var(0, 1, 201, 100, neighbors=neighbors, largest_group=2)


# All of them: random tables, monotony, exactness, errors


def released(rows, groups):
    """Every statistic of rows (x, y, group): a dictionary of vectors."""
    table = np.asarray(rows, dtype=float)[None]
    counts = np.bincount(table[0, :, 2].astype(int), minlength=groups)
    return {
        "mean": table[..., 0].mean(axis=1),
        "var": covariance(table[..., [0]])[0],
        "cov": covariance(table[..., :2])[0],
        "pooled_var": pooled(table, groups)[0],
        "pooled_cov": pooled(table, groups, 0, 1)[0],
        "histogram": counts,
        "sum": table[..., 0].sum(axis=1),
    }


def claimed(bounds, other, n, groups, neighbors):
    lower, upper = bounds
    named = {"neighbors": neighbors}
    return {
        "mean": sensitivity.mean(lower, upper, n, **named),
        "var": sensitivity.var(lower, upper, n, **named),
        "cov": sensitivity.cov(lower, upper, *other, n, **named),
        "pooled_var": sensitivity.pooled_var(lower, upper, n, groups, **named),
        "pooled_cov": sensitivity.pooled_cov(lower, upper, *other, n, groups, **named),
        "histogram": sensitivity.histogram(**named),
        "sum": sensitivity.sum(lower, upper, **named),
    }


bound = st.floats(-100, 100, allow_nan=False)
share = st.floats(0, 1) | st.sampled_from([0.0, 1.0])


@given(st.data())
def test_random_tables_stay_within_every_sensitivity(data):
    groups = data.draw(st.integers(1, 4))
    n = data.draw(st.integers(groups + 2, 14))
    ends = []
    for _ in range(2):
        lower = data.draw(bound)
        ends.append((lower, lower + data.draw(st.floats(0.01, 50))))
    row = st.tuples(share, share, st.integers(0, groups - 1))

    def scaled(unit):
        (a, b), (c, d) = ends
        return (a + (b - a) * unit[0], c + (d - c) * unit[1], unit[2])

    rows = [scaled(unit) for unit in data.draw(st.lists(row, min_size=n, max_size=n))]
    replaced = [*rows[1:], scaled(data.draw(row))]
    full = released(rows, groups)
    for neighbors, changed in (("add_remove", rows[1:]), ("replace_one", replaced)):
        limit = claimed(ends[0], ends[1], n, groups, neighbors)
        for name, value in released(changed, groups).items():
            moved = length(np.atleast_1d(full[name] - value), "l1")
            assert moved <= float(limit[name]) * (1 + 1e-9) + 1e-9, (name, neighbors)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("groups", [1, 2, 5, 20])
def test_no_sensitivity_grows_with_n(neighbors, groups):
    ends = (Fraction(0), Fraction(1))
    values = [claimed(ends, ends, n, groups, neighbors) for n in range(groups + 2, 300)]
    for before, after in itertools.pairwise(values):
        assert all(after[name] <= before[name] for name in before)


@pytest.mark.parametrize("neighbors", BOTH)
def test_fractions_stay_exact(neighbors):
    ends, other = (Fraction(-1, 3), Fraction(3, 7)), (Fraction(1, 9), Fraction(2))
    width, area = Fraction(16, 21), Fraction(16, 21) * Fraction(17, 9)
    value = claimed(ends, other, 11, 3, neighbors)
    assert all(type(number) is Fraction for number in value.values())
    assert value["mean"] == width / 11
    assert value["var"] == width**2 / 11
    assert value["cov"] == area / 11
    assert value["pooled_var"] == width**2 / 8
    plain = {"neighbors": neighbors}
    if neighbors == "add_remove":
        assert value["pooled_cov"] == area / 8 * (1 - Fraction(1, 5) + Fraction(6, 28))
        assert sensitivity.sum(*ends, centered=True, **plain) == width / 2
        assert value["sum"] == Fraction(3, 7)
    else:
        assert value["pooled_cov"] == 2 * area / 8
        assert sensitivity.sum(*ends, centered=True, **plain) == width
        assert value["sum"] == width


def test_integers_larger_than_floats_stay_exact():
    assert sensitivity.sum(0, 10**400, neighbors="add_remove") == 10**400


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sensitivity.count(neighbors="swap"),
            "'neighbors' must be one of 'add_remove', 'replace_one'",
        ),
        (lambda: sensitivity.sum(1.0, 1.0, neighbors="add_remove"), "'lower' must be less than 'upper'"),
        (lambda: sensitivity.mean(2, 1, 5, neighbors="add_remove"), r"\(got 2 and 1\)"),
        (lambda: sensitivity.sum(math.nan, 1.0, neighbors="add_remove"), "'lower' must be a finite"),
        (lambda: sensitivity.sum(0.0, math.inf, neighbors="add_remove"), "'upper' must be a finite"),
        (lambda: sensitivity.sum(False, 1.0, neighbors="add_remove"), "'lower' must be a finite"),
        (lambda: sensitivity.sum("0", 1.0, neighbors="add_remove"), "'lower' must be a finite"),
        (lambda: sensitivity.sum(np.int8(-100), 100, neighbors="add_remove"), "'lower' must be a finite int"),
        (lambda: sensitivity.cov(0, 1, 3, 2, 9, neighbors="add_remove"), "'other_lower' must be less than"),
        (
            lambda: sensitivity.cov(0, 1, 0, 1, 2, neighbors="add_remove"),
            r"of at least 3 \(got 2\)\.$",
        ),
        (
            lambda: sensitivity.cov(0, 1, 0, 1, 1, neighbors="replace_one"),
            "of at least 2",
        ),
        (
            lambda: sensitivity.var(0, 1, 2, neighbors="add_remove"),
            "of at least 3",
        ),
        (
            lambda: sensitivity.var(0, 1, 1, neighbors="replace_one"),
            "of at least 2",
        ),
        (
            lambda: sensitivity.mean(0, 1, 1, neighbors="add_remove"),
            "of at least 2",
        ),
        (lambda: sensitivity.quantile(1.5, neighbors="add_remove"), "'q' must be between 0 and 1"),
        (
            lambda: sensitivity.quantile(0.5, neighbors="add_remove", weight_upper=0),
            "'weight_upper' must be positive",
        ),
        (lambda: sensitivity.weighted_range(0.0, 1.0, -1.0, 2.0), "those of weights at least 0"),
        (lambda: sensitivity.weighted_range(1.0, 0.0, 0.0, 2.0), "in order"),
        (lambda: sensitivity.weighted_range(0.0, 1.0, 0.0, math.inf), "finite"),
        (lambda: sensitivity.disjoint_sums(0, 0.5, neighbors="add_remove"), "'upper' must be a whole"),
        (lambda: sensitivity.disjoint_sums(2, 1, neighbors="add_remove"), "'upper' must be a whole"),
        (lambda: sensitivity.mean(0, 1, 0, neighbors="replace_one"), "'n' must be a positive"),
        (lambda: sensitivity.mean(0, 1, 2.5, neighbors="replace_one"), "'n' must be a positive"),
        (
            lambda: sensitivity.mean(0, 1, True, neighbors="replace_one"),
            "'n' must be a positive",
        ),
        (lambda: sensitivity.histogram(neighbors="add_remove", levels=0), "'levels' must be a positive"),
        (lambda: sensitivity.disjoint_groups(neighbors="swap"), "'neighbors' must be one of"),
        (lambda: sensitivity.extreme(neighbors="add_remove", grouped=2), "'grouped' must be True or False"),
        (lambda: sensitivity.quantile(0.5, neighbors="add_remove", grouped=2), "'grouped' must be True or"),
        (
            lambda: sensitivity.histogram(neighbors="add_remove", norm="max"),
            "'norm' must be one of 'l1', 'l2'",
        ),
        (
            lambda: sensitivity.pooled_var(0, 1, 9, 0, neighbors="add_remove"),
            "'groups' must be a pos",
        ),
        (
            lambda: sensitivity.pooled_var(0, 1, 6, 5, neighbors="add_remove"),
            "of at least 7",
        ),
        (
            lambda: sensitivity.pooled_var(0, 1, 5, 5, neighbors="replace_one"),
            "of at least 6",
        ),
        (
            lambda: sensitivity.pooled_cov(0, 1, 0, 1, 6, 5, neighbors="add_remove"),
            "of at least 7",
        ),
        (
            lambda: sensitivity.pooled_cov(0, 1, 0, 1, 5, 5, neighbors="replace_one"),
            "of at least 6",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_numpy_row_counts_are_accepted():
    assert sensitivity.mean(0.0, 1.0, np.int64(4), neighbors="add_remove") == 0.25


def test_every_public_name_is_documented():
    for name in set(sensitivity.__all__) - {"Norm"}:
        text = getattr(sensitivity, name).__doc__
        assert ">>>" in text, name
        assert "Tight" in text or "upper bound" in text.lower(), name
