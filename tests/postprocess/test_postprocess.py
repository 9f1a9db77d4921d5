"""Results (`least_distance`, too) against constraints, optimality conditions and exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, stats

from pdprivacy import postprocess
from pdprivacy.errors import ParameterError
from pdprivacy.postprocess import Tree, hierarchy
from tests.support.cases import each

CELLS = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
LINES = st.lists(CELLS, min_size=1, max_size=12)
TABLES = hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=3, max_side=5), elements=CELLS)
TOTALS = st.sampled_from([0.25, 1.0, 7.0, 1000.0])
CLOSED = (postprocess.rescale, postprocess.simplex, postprocess.all_but_one)  # onto a given sum


@given(LINES, CELLS, CELLS)
def test_clamped_values_are_the_nearest_within_the_bounds(values, single, other):
    lower, upper = sorted((single, other))
    expected = [lower if value < lower else upper if value > upper else value for value in values]
    assert postprocess.clamp(values, lower, upper).tolist() == expected
    assert postprocess.clamp(values, -math.inf, math.inf).tolist() == values
    assert postprocess.nonnegative(values).tolist() == [value if value > 0 else 0 for value in values]


def test_bounds_may_be_arrays_and_integers_stay_integers():
    large = 2**53 + 1  # no float
    clamped = postprocess.clamp(np.array([[large, -5], [2, 9]]), [0, 1], [[2**60, 7], [2**60, 8]])
    assert clamped.tolist() == [[large, 1], [2, 8]]
    assert clamped.dtype.kind == postprocess.nonnegative([large, -1]).dtype.kind == "i"
    assert postprocess.nonnegative([large, -1]).tolist() == [large, 0]
    assert postprocess.clamp([-math.inf, math.inf], -1.0, 1.0).tolist() == [-1.0, 1.0]
    assert not np.signbit(postprocess.nonnegative([-0.0])).any()


@given(LINES)
def test_without_a_total_each_value_goes_to_its_nearest_whole_number(values):
    result = postprocess.integers(values)
    assert result.dtype == np.int64
    assert result.tolist() == [round(value) for value in values]  # halves to even, as in Python


@given(st.lists(st.floats(-50, 1000), min_size=1, max_size=30), st.integers(0, 5000))
def test_whole_numbers_sum_to_the_total_within_one_of_each_cell(values, total):
    for closed in (postprocess.rescale, postprocess.simplex):
        cells = closed(values, total)
        result = postprocess.integers(cells, total)
        assert int(result.sum()) == total
        assert (np.abs(result - cells) < 1).all()
        assert (result >= 0).all()
        assert (postprocess.integers(result, total) == result).all()


@given(st.lists(st.integers(0, 12), min_size=2, max_size=4).filter(sum), st.integers(1, 6))
def test_no_whole_numbers_with_the_sum_are_nearer(weights, total):
    cells = [Fraction(weight * total, sum(weights)) for weight in weights]
    result = postprocess.integers([float(cell) for cell in cells], total)
    for power in (1, 2):

        def distance(counts, power=power):
            return sum(abs(count - cell) ** power for count, cell in zip(counts, cells, strict=True))

        others = (
            counts
            for counts in itertools.product(range(total + 1), repeat=len(cells))
            if sum(counts) == total
        )
        assert distance(result.tolist()) == min(map(distance, others))


def test_equal_remainders_give_to_the_first_cells():
    assert postprocess.integers([2.5, 0.5, 2.5, 0.5], 6).tolist() == [3, 1, 2, 0]
    halves = np.random.default_rng(1792).integers(0, 2, 2000)  # of remainder 1/2 or 0, many of each
    first = np.flatnonzero(halves)[: halves.sum() // 2]
    result = postprocess.integers(np.append(halves / 2, 0.5 * (halves.sum() % 2)), -(-halves.sum() // 2))
    assert np.flatnonzero(result)[: len(first)].tolist() == first.tolist()
    assert postprocess.integers([[2.5, 0.5], [2.5, 0.5]], 6).tolist() == [[3, 1], [2, 0]]
    assert postprocess.integers(np.array([[2.5, 2.5], [0.5, 0.5]]).T, 6).tolist() == [[3, 1], [2, 0]]


def test_values_that_are_off_by_rounding_sum_to_the_total():
    third = 1 / 3
    assert postprocess.integers([third, third, third - 1e-9], 1).tolist() == [1, 0, 0]
    assert postprocess.integers([-1e-17, 1.0, 4.0 + 1e-12], 5).tolist() == [0, 1, 4]
    large = 2**60 + 1  # no float
    assert postprocess.integers([large, 4], large + 4).tolist() == [large, 4]


@given(LINES, TOTALS)
def test_rescaled_cells_sum_to_the_total_in_their_ratios(values, total):
    result = postprocess.rescale(values, total)
    assert result.sum() == pytest.approx(total, rel=1e-14)
    assert result.min() >= 0
    assert result.max() <= total
    positive = np.maximum(values, 0)
    if positive.any():
        np.testing.assert_allclose(result * positive.sum(), positive * total, rtol=1e-13)
    else:
        assert (result == result[0]).all()


@given(LINES, TOTALS)
def test_the_simplex_point_meets_the_conditions_of_the_nearest_one(values, total):
    # Karush-Kuhn-Tucker: x = values - theta where x > 0 and values <= theta elsewhere; both are
    # sufficient, the problem is strictly convex.
    result = postprocess.simplex(values, total)
    assert result.sum() == pytest.approx(total, rel=1e-14)
    assert result.min() >= 0
    size = max(total, np.abs(values).max())
    gaps = (np.asarray(values) - result)[result > 0]
    assert np.ptp(gaps) <= 1e-14 * size
    assert (np.asarray(values)[result == 0] <= gaps.min() + 1e-14 * size).all()


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_simplex_point_is_that_of_a_general_optimiser(values, total):
    optimum = optimize.minimize(
        lambda x: ((x - values) ** 2).sum(),
        np.full(len(values), total / len(values)),
        jac=lambda x: 2 * (x - values),
        bounds=[(0, total)] * len(values),
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    result = postprocess.simplex(values, total)
    np.testing.assert_allclose(result, optimum.x, atol=1e-5)
    assert ((result - values) ** 2).sum() <= optimum.fun + 1e-9


@given(LINES, LINES, TOTALS)
def test_a_projection_is_never_farther_from_the_true_cells(values, weights, total):
    size = min(len(values), len(weights))
    noisy = np.array(values[:size])
    truth = postprocess.rescale(np.abs(weights[:size]), total)
    before = np.linalg.norm(noisy - truth)
    assert np.linalg.norm(postprocess.simplex(noisy, total) - truth) <= before * (1 + 1e-12) + 1e-12 * total


def test_projection_keeps_its_digits_over_many_cells():
    values = np.random.default_rng(1974).normal(0, 1, 10**6)
    for total in (1e-3, 1.0, 1e6):
        result = postprocess.simplex(values, total)
        assert result.sum() == pytest.approx(total, rel=1e-14)
        gaps = (values - result)[result > 0]
        assert np.ptp(gaps) <= 1e-14
        assert (values[result == 0] <= gaps.min() + 1e-14).all()


def test_projection_keeps_its_digits_far_from_the_simplex():
    values = np.array([0.75, -0.25, 0.5, -1e6])
    expected = [0.625, 0, 0.375, 0]
    for shift in (0.0, 2.0**40, -(2.0**40)):  # exact in floats
        assert postprocess.simplex(values + shift).tolist() == expected
    assert postprocess.simplex([1.0, -1e150, 1.0]).tolist() == [0.5, 0.0, 0.5]


def one_after_the_other(values, total):
    left, cells = total, []
    for value in values[:-1]:
        cells.append(min(max(value, 0), left))
        left -= cells[-1]
    return [*cells, left]


@given(st.lists(st.integers(-8, 20), min_size=1, max_size=10), st.integers(0, 60))
def test_all_but_one_takes_from_what_is_left(quarters, whole):
    values, total = [quarter / 4 for quarter in quarters], whole / 4  # no rounding anywhere
    expected = one_after_the_other(values, total)
    assert postprocess.all_but_one(values, total).tolist() == expected
    assert postprocess.all_but_one([*values[:-1], math.nan], total).tolist() == expected


@given(LINES, TOTALS)
def test_all_but_one_keeps_every_bound(values, total):
    result = postprocess.all_but_one(values, total)
    assert result.sum() == pytest.approx(total, rel=1e-14)
    assert result.min() >= 0
    assert result.max() <= total
    np.testing.assert_allclose(result, one_after_the_other(values, total), atol=1e-14 * total)


@given(st.lists(st.integers(-8, 20), min_size=1, max_size=10), st.integers(0, 60))
def test_all_but_one_as_printed_takes_the_others_from_the_total(quarters, whole):
    values, total = [quarter / 4 for quarter in quarters], whole / 4  # no rounding anywhere
    expected = [*values[:-1], total - sum(values[:-1])]
    assert postprocess.all_but_one(values, total, bounded=False).tolist() == expected
    table = np.array([[*values[:-1], math.nan]] * 2)
    assert postprocess.all_but_one(table, total, axis=1, bounded=False).tolist() == [expected] * 2


@pytest.mark.parametrize("truncated", [True, False], ids=["truncated", "clamped"])
def test_all_but_one_as_printed_has_more_bias_than_rescaling(truncated):
    """Liu, section 4.2, says less. Four proportions of 50 records at epsilon 0.1, the smallest one the last.

    The bias of the last one is minus the sum of those of the others, each the mean of (6) or (7) over
    binomial counts. False alarms: below 1e-5 for each of three numbers, by standard errors.
    """
    proportions, n, scale, draws = np.array([0.2, 0.3, 0.4, 0.1]), 50, 1 / 5, 40_000
    counts = np.arange(n + 1) / n
    below, above = np.exp(-counts / scale) / 2, np.exp(-(1 - counts) / scale) / 2
    bias = scale * (below - above)
    if truncated:
        bias = ((scale + counts) * below - (scale + 1 - counts) * above) / (1 - below - above)
    biases = [float(stats.binom(n, p).pmf(range(n + 1)) @ bias) for p in proportions]
    assert -sum(biases[:3]) == pytest.approx(-0.1546 if truncated else -0.0657, abs=1e-4)

    rng = np.random.default_rng(3)
    shares = rng.multinomial(n, proportions, size=draws) / n
    law = stats.laplace(shares, scale)
    noisy = (
        law.ppf(rng.uniform(law.cdf(0), law.cdf(1)))
        if truncated
        else np.clip(law.rvs(random_state=rng), 0, 1)
    )
    printed = postprocess.all_but_one(noisy, axis=1, bounded=False)[:, -1] - proportions[-1]
    rescaled = postprocess.rescale(noisy, axis=1)[:, -1] - proportions[-1]
    error = 4.5 * printed.std() / math.sqrt(draws)
    assert abs(printed.mean() + sum(biases[:3])) < error
    assert abs(printed.mean()) > abs(rescaled.mean()) + error
    assert 0.2 < (printed < -proportions[-1]).mean() < 0.56  # so often the last proportion is negative


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("closed", CLOSED)
@given(table=TABLES, total=TOTALS, position=st.integers(-3, 2))
def test_along_an_axis_each_line_is_closed_by_itself(closed, table, total, position):
    assume(-table.ndim <= position < table.ndim)
    result = closed(table, total, axis=position)
    expected = np.apply_along_axis(lambda line: closed(line, total), position, table)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14 * total)
    np.testing.assert_allclose(result.sum(axis=position), total, rtol=1e-13)
    whole = closed(table, total)
    assert whole.shape == table.shape
    assert (whole.ravel() == closed(table.ravel(), total)).all()


@pytest.mark.parametrize("closed", CLOSED)
def test_each_line_may_have_a_total_of_its_own(closed):
    rng = np.random.default_rng(8)
    for shape, axis in itertools.product([(1, 1), (4, 3), (2, 3, 4)], [0, 1, -1]):
        table = rng.normal(scale=5, size=shape)
        others = tuple(np.delete(shape, axis))
        totals = rng.choice([0.0, 0.5, 3.0, 40.0], others)
        result = closed(table, totals, axis=axis)
        assert result.shape == shape
        lines, closed_lines = (np.moveaxis(array, axis, -1) for array in (table, result))
        for where in np.ndindex(others):
            expected = closed(lines[where], totals[where])
            np.testing.assert_allclose(closed_lines[where], expected, rtol=1e-14, atol=1e-14)


def test_children_add_up_to_the_parents_that_were_released_before():
    """Noisy counts of two labels, projected onto the noisy counts of their cells.

    By a general optimiser, cell by cell; and with more noise in the children than in the parents, which is
    what a later and finer table has, they come nearer to the truth in all.
    """
    rng = np.random.default_rng(4)
    truth = rng.poisson(6, size=(400, 3))
    parents = postprocess.nonnegative(truth.sum(axis=1) + rng.laplace(scale=1, size=400))
    noisy = truth + rng.laplace(scale=3, size=truth.shape)
    children = postprocess.simplex(noisy, parents, axis=1)
    np.testing.assert_allclose(children.sum(axis=1), parents, rtol=1e-12)
    assert children.min() >= 0
    assert ((children - truth) ** 2).sum() < 0.8 * ((noisy - truth) ** 2).sum()
    for cell in range(0, 400, 40):
        best = optimize.minimize(
            lambda x, cell=cell: ((x - noisy[cell]) ** 2).sum(), np.full(3, parents[cell] / 3),
            bounds=[(0, None)] * 3, method="SLSQP", options={"ftol": 1e-14},
            constraints={"type": "eq", "fun": lambda x, cell=cell: x.sum() - parents[cell]},
        ).x  # fmt: skip
        np.testing.assert_allclose(children[cell], best, atol=1e-5)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("closed", CLOSED)
@given(line=LINES, total=TOTALS)
def test_cells_that_are_consistent_come_back_unchanged(closed, line, total):
    consistent = postprocess.rescale(line, total)
    np.testing.assert_allclose(closed(consistent, total), consistent, rtol=1e-12, atol=1e-14 * total)
    assert closed(line, 0).tolist() == [0.0] * len(line)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("closed", [postprocess.rescale, postprocess.simplex])
@given(line=LINES, total=TOTALS, rotation=st.integers(1, 11))
def test_the_order_and_the_unit_of_cells_do_not_matter(closed, line, total, rotation):
    result = closed(line, total)
    near = {"rtol": 1e-12, "atol": 1e-14 * max(total, np.abs(line).max())}
    np.testing.assert_allclose(closed(np.roll(line, rotation), total), np.roll(result, rotation), **near)
    assert (closed(np.multiply(line, 4), 4 * total) == 4 * result).all()


BOUNDS = st.tuples(st.integers(-6, 6), st.integers(-6, 6)).map(sorted)


def random_constraints(rng):
    """Numbers that meet some linear constraints, the constraints, and the numbers with noise."""
    n, k = rng.integers(1, 10), rng.integers(1, 12)
    rows = rng.choice([-1.0, 0.0, 0.0, 1.0, 2.0], (k, n))
    rows[~rows.any(axis=1)] = 1
    truth = rng.normal(scale=3, size=n)
    lower, upper = (rows @ truth + sign * rng.choice([0, 0.5, 2], k) for sign in (-1, 1))
    lower[rng.random(k) < 0.3], upper[rng.random(k) < 0.3] = -math.inf, math.inf
    return truth, rows, lower, upper, truth + rng.normal(scale=rng.choice([0.1, 5, 100]), size=n)


def test_linear_constraints_meet_the_optimality_conditions():
    """The nearest point: it meets the limits, and what was moved is a sum of rows whose limits are reached.

    Rows at the lower limit push upwards, those at the upper one downwards (Karush, Kuhn, Tucker).
    """
    rng = np.random.default_rng(6)
    moved = 0
    for _ in range(150):
        truth, rows, lower, upper, noisy = random_constraints(rng)
        result = postprocess.linear_constraints(noisy, rows, lower, upper)
        at, near = rows @ result, 1e-8 * (1 + np.abs(noisy).max())
        assert (at >= lower - near).all()
        assert (at <= upper + near).all()
        assert np.linalg.norm(result - truth) <= np.linalg.norm(noisy - truth) + near
        pushes = np.concatenate([rows[at <= lower + near], -rows[at >= upper - near]])
        if len(pushes):
            _, left = optimize.nnls(pushes.T, result - noisy)
            assert left <= 10 * near
        else:
            np.testing.assert_array_equal(result, noisy)
        moved += bool(np.abs(result - noisy).max() > near)
    assert moved > 100


def test_known_projections_are_linear_constraints():
    rng = np.random.default_rng(7)
    for _ in range(20):
        values = rng.normal(size=6)
        sums = np.vstack([np.ones(6), np.eye(6)])
        shares = postprocess.linear_constraints(values, sums, [1] + [0] * 6, [1] + [math.inf] * 6)
        np.testing.assert_allclose(shares, postprocess.simplex(values), atol=1e-12)
        clamped = postprocess.linear_constraints(values, np.eye(6), -0.5, 0.5)
        np.testing.assert_allclose(clamped, np.clip(values, -0.5, 0.5), atol=1e-12)


@given(BOUNDS, BOUNDS, st.integers(-9, 9))
def test_equality_bounds_hold_all_pairs_and_nothing_else(first, second, total):
    pairs = [s for s in range(first[0], first[1] + 1) if second[0] <= total - s <= second[1]]
    if not pairs:
        with pytest.raises(ParameterError):
            postprocess.equality_bounds(first, second, total)
        return
    bounds = postprocess.equality_bounds(first, second, total)
    assert bounds == (pairs[0], pairs[-1])
    assert postprocess.equality_bounds(second, first, total) == (total - bounds[1], total - bounds[0])


def test_equality_bounds_are_exact_in_decimals_and_may_be_infinite():
    assert 0.4 - 0.1 > 0.3  # the difference of the floats would leave nothing
    assert postprocess.equality_bounds((0, 0.3), (0, 0.1), 0.4) == (0.3, 0.3)
    assert postprocess.equality_bounds((0, math.inf), (2, math.inf), 10) == (0, 8)
    assert postprocess.equality_bounds((-math.inf, math.inf), (2, 3), 10) == (7, 8)
    endless = (-math.inf, math.inf)
    assert postprocess.equality_bounds(endless, endless, 10) == endless


TREES = st.builds(Tree, st.integers(1, 40), st.integers(2, 7), st.booleans())


def runs(level, branching):
    return [level[start : start + branching] for start in range(0, len(level), branching)]


@given(TREES)
def test_each_node_is_the_sum_of_a_run_below(tree):
    levels = [list(range(100, 100 + tree.cells))]
    while len(levels[-1]) > tree.branching:
        levels.append([sum(run) for run in runs(levels[-1], tree.branching)])
    if tree.root:
        levels.append([sum(levels[0])])
    assert tree.levels == tuple(map(len, levels))
    assert tree.nodes == sum(map(len, levels))
    sums = tree.sums(levels[0])
    assert sums.tolist() == [value for level in levels for value in level]
    assert sums.dtype == np.int64
    for unit in np.eye(tree.cells, dtype=np.int8):  # a record is in one node of each level
        assert tree.sums(unit).sum() == len(tree.levels)


def test_sums_of_integers_are_exact():
    large = 2**53 + 1  # no float
    assert Tree(3, 2, root=True).sums([large, 1, 1]).tolist() == [large, 1, 1, large + 1, 1, large + 2]
    assert Tree(3, 2).sums(np.ones(3, dtype=np.uint8)).dtype == np.int64
    assert Tree(3, 2).sums(np.array([200, 100, 1], dtype=np.uint8)).tolist() == [200, 100, 1, 300, 1]


def reference(tree, nodes, total, variances):
    """The procedure node by node, in exact arithmetic."""
    bounds = np.cumsum([0, *tree.levels])
    own = [list(map(Fraction, nodes[a:b])) for a, b in itertools.pairwise(bounds)]
    spread = [list(map(Fraction, variances[a:b])) for a, b in itertools.pairwise(bounds)]
    for level in range(1, len(own)):
        below = runs(list(zip(own[level - 1], spread[level - 1], strict=True)), tree.branching)
        for node, children in enumerate(below):
            value, other = own[level][node], sum(child for child, _ in children)
            precision = 1 / spread[level][node]
            below_precision = 1 / sum(variance for _, variance in children)
            spread[level][node] = 1 / (precision + below_precision)
            own[level][node] = (precision * value + below_precision * other) * spread[level][node]
    parents = [max(own.pop()[0], Fraction(0))] if tree.root else [Fraction(total)]
    for values, variance in zip(reversed(own), reversed(spread[: len(own)]), strict=True):
        level = []
        for parent, run, of_run in zip(
            parents, runs(values, tree.branching), runs(variance, tree.branching), strict=True
        ):
            lack = parent - sum(run)
            family = [max(z + lack * v / sum(of_run), Fraction(0)) for z, v in zip(run, of_run, strict=True)]
            sums = sum(family)
            level += [child * parent / sums if sums else Fraction(0) for child in family]
        parents = level
    return np.array(parents, dtype=float)


@given(TREES, st.integers(0, 200), st.data())
def test_the_hierarchy_is_the_procedure_in_exact_arithmetic(tree, total, data):
    whole = st.lists(st.integers(-30, 60), min_size=tree.nodes, max_size=tree.nodes)
    nodes = data.draw(whole)
    variances = data.draw(
        st.one_of(
            st.just([1] * tree.nodes),
            st.lists(st.integers(1, 9), min_size=tree.nodes, max_size=tree.nodes),
        )
    )
    fixed = None if tree.root else total
    result = hierarchy(tree, nodes, fixed, variances)
    expected = reference(tree, nodes, total, variances)
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    assert result.min() >= 0
    if fixed is not None:
        assert result.sum() == pytest.approx(total, rel=1e-13)


def least_squares(tree, nodes, total, variances):
    """Leaves of the least weighted sum of squares over all leaves, or all that sum to ``total``."""
    members = np.array([tree.sums(unit) for unit in np.eye(tree.cells)]).T
    weights = 1 / np.sqrt(variances)
    if tree.root:
        return np.linalg.lstsq(members * weights[:, None], nodes * weights, rcond=None)[0]
    start = np.full(tree.cells, total / tree.cells)
    free = np.linalg.svd(np.ones((1, tree.cells)))[2][1:].T  # a basis of the changes that sum to zero
    lhs, rhs = (members @ free) * weights[:, None], (nodes - members @ start) * weights
    return start + free @ np.linalg.lstsq(lhs, rhs, rcond=None)[0]


@given(TREES, st.integers(0, 2**32 - 1))
def test_the_hierarchy_is_weighted_least_squares(tree, seed):
    rng = np.random.default_rng(seed)
    leaves = rng.uniform(500, 1000, tree.cells)
    variances = rng.uniform(0.1, 10, tree.nodes)
    nodes = tree.sums(leaves) + rng.normal(0, 3, tree.nodes)
    total = None if tree.root else float(np.round(leaves.sum() + rng.normal(0, 10)))
    result = hierarchy(tree, nodes, total, variances)
    expected = least_squares(tree, nodes, total, variances)
    assert expected.min() > 0  # so non-negativity changes nothing
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def hay(nodes, branching, height, total):
    """The closed formulas of Hay et al. for a complete tree: z upwards, then h-bar downwards."""
    sizes = [branching ** (height - level) for level in range(1, height + 1)]
    own = np.split(np.asarray(nodes, dtype=float), np.cumsum(sizes[:-1]))
    z = [own[0]]
    for level in range(2, len(own) + 1):  # level l of the paper, the leaves are level 1
        weight = (branching**level - branching ** (level - 1)) / (branching**level - 1)
        other = (branching ** (level - 1) - 1) / (branching**level - 1)
        z.append(weight * own[level - 1] + other * z[-1].reshape(-1, branching).sum(axis=1))
    top = z.pop()
    estimates = top if total is None else np.array([total])
    for level in reversed(z):
        lack = estimates - level.reshape(-1, branching).sum(axis=1)
        estimates = level + np.repeat(lack / branching, branching)
    return estimates


@pytest.mark.parametrize(("branching", "height"), [(2, 2), (2, 3), (2, 7), (3, 4), (5, 3)])
@pytest.mark.parametrize("root", [False, True])
def test_the_hierarchy_of_a_complete_tree_has_the_closed_form(branching, height, root):
    rng = np.random.default_rng(branching * height)
    tree = Tree(branching ** (height - 1), branching, root)
    leaves = rng.integers(200, 400, tree.cells)
    nodes = tree.sums(leaves) + rng.laplace(0, 5, tree.nodes)
    total = None if root else int(leaves.sum())
    if root:
        expected = hay(nodes, branching, height, None)
    else:
        expected = hay([*nodes, math.nan], branching, height, total)
    np.testing.assert_allclose(hierarchy(tree, nodes, total), expected, rtol=1e-12)


def test_the_example_of_four_proportions():
    h1, h2, *leaves = (Fraction(share, 100) for share in (34, 65, 12, 20, 27, 43))
    z1 = Fraction(1, 3) * (leaves[0] + leaves[1]) + Fraction(2, 3) * h1
    z2 = Fraction(1, 3) * (leaves[2] + leaves[3]) + Fraction(2, 3) * h2
    upper = [z + (1 - z1 - z2) / 2 for z in (z1, z2)]
    expected = [
        leaves[i] + (upper[i // 2] - leaves[i // 2 * 2] - leaves[i // 2 * 2 + 1]) / 2 for i in range(4)
    ]
    result = hierarchy(Tree(4), [float(node) for node in (*leaves, h1, h2)], total=1)
    np.testing.assert_allclose(result, np.array(expected, dtype=float), rtol=1e-14)


@pytest.mark.full
@given(TREES, st.data())
def test_a_consistent_tree_comes_back_unchanged(tree, data):
    leaves = np.array(data.draw(st.lists(st.integers(0, 999), min_size=tree.cells, max_size=tree.cells)))
    total = None if tree.root else int(leaves.sum())
    result = hierarchy(tree, tree.sums(leaves), total)
    np.testing.assert_allclose(result, leaves, rtol=1e-12, atol=1e-9)
    assert (postprocess.integers(result, int(leaves.sum())) == leaves).all()
    repeated = hierarchy(tree, tree.sums(result), total)
    np.testing.assert_allclose(repeated, result, rtol=1e-12, atol=1e-9)


@pytest.mark.full
@given(TREES, st.data())
def test_only_ratios_of_variances_matter(tree, data):
    whole = st.lists(st.integers(-30, 60), min_size=tree.nodes, max_size=tree.nodes)
    nodes, total = data.draw(whole), None if tree.root else 50
    by_level = data.draw(st.lists(st.integers(1, 9), min_size=len(tree.levels), max_size=len(tree.levels)))
    by_node = np.repeat(by_level, tree.levels)
    result = hierarchy(tree, nodes, total, by_level)
    assert (hierarchy(tree, nodes, total, by_node) == result).all()
    for factor in (2.0**-490, 2.0**490):  # near the ends of what is accepted
        assert (hierarchy(tree, nodes, total, by_node * factor) == result).all()
    assert (hierarchy(tree, nodes, total, [4] * tree.nodes) == hierarchy(tree, nodes, total)).all()


def test_few_cells_are_least_squares_with_a_fixed_sum():
    assert hierarchy(Tree(3, 4), [10, 20, 30], total=66).tolist() == [12, 22, 32]
    # The lack of 6 is shared 1 : 2 : 3.
    assert hierarchy(Tree(3, 4), [10, 20, 30], total=66, variance=[2, 4, 6]).tolist() == [11, 22, 33]
    assert hierarchy(Tree(3, 4), [-10, 20, 60], total=70).tolist() == [0, 17.5, 52.5]
    assert hierarchy(Tree(1), [3], total=5).tolist() == [5]
    assert hierarchy(Tree(1, root=True), [3, 5]).tolist() == [4]
    assert hierarchy(Tree(2, root=True), [-3, 1, -5]).tolist() == [0, 0]


def test_a_total_that_is_lost_in_rounding_is_met():
    for cells in (3, 20):
        tree = Tree(cells)
        nodes = np.random.default_rng(cells).normal(0, 1e6, tree.nodes)
        result = hierarchy(tree, nodes, total=1e-40)
        assert result.sum() == pytest.approx(1e-40, rel=1e-12, abs=0)
        assert result.min() >= 0
        assert hierarchy(tree, nodes, total=0).tolist() == [0.0] * cells


SYMMETRIC = (
    st.integers(1, 6)
    .flatmap(
        lambda size: hnp.arrays(float, (size, size), elements=st.floats(-4, 4).map(lambda v: round(v, 3)))
    )
    .map(lambda matrix: np.triu(matrix) + np.triu(matrix, 1).T)
)


def gram(seed, size, columns):
    """A covariance matrix of at most that rank."""
    factors = np.random.default_rng(seed).normal(size=(size, columns))
    return factors @ factors.T


def assert_correlation(matrix):
    assert (np.diagonal(matrix) == 1).all()
    assert (matrix == matrix.T).all()
    assert np.abs(matrix).max() <= 1
    assert np.linalg.eigvalsh(matrix)[0] >= -1e-13


@given(st.lists(st.floats(-2, 1e3), min_size=1, max_size=5))
def test_the_limit_of_a_covariance_is_that_of_perfect_correlation(variances):
    limit = postprocess.covariance_limit(variances)
    positive = np.maximum(variances, 0)
    assert (np.diagonal(limit) == positive).all()
    np.testing.assert_allclose(limit**2, np.outer(positive, positive), rtol=1e-14, atol=1e-300)
    assert (limit == limit.T).all()


@given(SYMMETRIC, st.sampled_from([None, 0.5, 2.0]))
def test_bounded_covariances_are_the_nearest_within_their_limits(matrix, largest):
    result = postprocess.bound_covariances(matrix, largest)
    most = math.inf if largest is None else largest
    variances = [min(max(variance, 0.0), most) for variance in np.diagonal(matrix)]
    assert np.diagonal(result).tolist() == variances
    for i, j in itertools.combinations(range(len(matrix)), 2):
        limit = math.sqrt(variances[i] * variances[j])
        assert result[i, j] == result[j, i] == min(max(matrix[i, j], -limit), limit)
        assert np.linalg.eigvalsh(result[np.ix_([i, j], [i, j])])[0] >= -1e-14
    assert (postprocess.bound_covariances(result, largest) == result).all()


def test_largest_variances_may_differ():
    result = postprocess.bound_covariances([[5.0, 6.0], [6.0, 9.0]], largest=[1.0, 4.0])
    assert result.tolist() == [[1, 2], [2, 4]]


def test_the_correlation_is_that_of_the_data():
    data = np.random.default_rng(3).normal(size=(4, 30)) * np.array([[1e-3], [1.0], [1e3], [7.0]])
    result = postprocess.correlation(np.cov(data))
    np.testing.assert_allclose(result, np.corrcoef(data), rtol=1e-12)
    assert_correlation(result)


def test_without_variance_there_is_no_correlation():
    result = postprocess.correlation([[4.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 9.0]])
    expected = [[1, math.nan, 0.5], [math.nan, math.nan, math.nan], [0.5, math.nan, 1]]
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(postprocess.correlation([[-1.0]]), [[math.nan]])
    assert postprocess.correlation([[1.0, 3.0], [3.0, 1.0]]).tolist() == [[1, 1], [1, 1]]  # within [-1, 1]
    assert postprocess.correlation([[1e-300, 1e150], [1e150, 1e-300]]).tolist() == [[1, 1], [1, 1]]


def test_the_published_examples_of_nearest_correlations():
    nearest = postprocess.nearest_correlation([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    published = [[1, 0.7607, 0.1573], [0.7607, 1, 0.7607], [0.1573, 0.7607, 1]]  # Higham 2002
    np.testing.assert_allclose(nearest, published, atol=5e-5)
    nearest = postprocess.nearest_correlation([[2, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 2]])
    a, b, c, d = -0.80841, 0.19159, 0.10678, -0.65623  # the example of NAG's g02aac
    published = [[1, a, b, c], [a, 1, d, b], [b, d, 1, a], [c, b, a, 1]]
    np.testing.assert_allclose(nearest, published, atol=5e-6)


def assert_nearest(matrix, result, tolerance):
    """The optimality conditions: result = matrix + a diagonal + M, M and result semidefinite, M result = 0.

    They suffice, the problem is convex. M is known off the diagonal; the diagonal follows from the
    last condition, which is then checked in full.
    """
    multiplier = result - matrix
    np.fill_diagonal(multiplier, 0)
    np.fill_diagonal(multiplier, -(multiplier * result).sum(axis=1))
    assert np.linalg.eigvalsh(multiplier)[0] >= -tolerance
    assert np.abs(multiplier @ result).max() <= tolerance


@given(SYMMETRIC, st.sampled_from([0.25, 1.0, 2.5]))
def test_the_nearest_correlation_matrix_meets_the_optimality_conditions(matrix, size):
    matrix = matrix * size
    result = postprocess.nearest_correlation(matrix)
    assert_correlation(result)
    assert_nearest(matrix, result, 1e-6)
    assert (postprocess.nearest_correlation(result) == result).all()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("size", [3, 10, 40])
def test_no_correlation_matrix_is_nearer(size):
    rng = np.random.default_rng(size)
    noise = np.triu(rng.laplace(0, 0.5, (size, size)), 1)
    matrix = postprocess.correlation(gram(size, size, 2)) + noise + noise.T
    result = postprocess.nearest_correlation(matrix)
    assert_correlation(result)
    assert_nearest(matrix, result, 1e-6)
    others = [postprocess.correlation(gram(seed, size, 1 + seed % size)) for seed in range(300)]
    others += [0.99 * result + 0.01 * other for other in others]
    np.fill_diagonal(matrix, 1)
    least = np.linalg.norm(matrix - result)
    assert all(np.linalg.norm(matrix - other) >= least for other in others)


@given(SYMMETRIC, st.randoms(use_true_random=False))
def test_order_and_sign_of_variables_do_not_matter(matrix, random):
    order = list(range(len(matrix)))
    random.shuffle(order)
    signs = np.array([random.choice([-1, 1]) for _ in order])
    moved = (matrix * np.outer(signs, signs))[np.ix_(order, order)]
    expected = (postprocess.nearest_correlation(matrix) * np.outer(signs, signs))[np.ix_(order, order)]
    np.testing.assert_allclose(postprocess.nearest_correlation(moved), expected, atol=1e-7)


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8))
def test_a_correlation_matrix_comes_back_unchanged(seed, size, columns):
    matrix = postprocess.correlation(gram(seed, size, columns))
    assert (postprocess.nearest_correlation(matrix) == matrix).all()


@given(SYMMETRIC, st.integers(0, 3))
def test_an_iteration_that_is_cut_short_still_gives_a_correlation_matrix(matrix, iterations):
    assert_correlation(postprocess.nearest_correlation(matrix, iterations=iterations))


@given(SYMMETRIC)
def test_the_nearest_covariance_matrix_keeps_variances_and_is_semidefinite(matrix):
    result = postprocess.nearest_psd(matrix)
    variances = np.maximum(np.diagonal(matrix), 0)
    assert (np.diagonal(result) == variances).all()
    assert (result == result.T).all()
    assert np.linalg.eigvalsh(result)[0] >= -1e-12
    assert not result[variances == 0].any()
    np.testing.assert_allclose(postprocess.nearest_psd(result), result, atol=1e-12)
    if (variances > 0).all():
        np.testing.assert_allclose(
            postprocess.correlation(result),
            postprocess.nearest_correlation(postprocess.correlation(matrix)),
            atol=1e-12,
        )
    if len(matrix) == 2:  # two variables are consistent once they are bounded
        assert (result == postprocess.bound_covariances(matrix)).all()


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
def test_a_semidefinite_covariance_matrix_comes_back_unchanged(seed, size, columns):
    matrix = gram(seed, size, columns)
    np.testing.assert_allclose(postprocess.nearest_psd(matrix), matrix, rtol=1e-15)


@given(SYMMETRIC)
def test_without_too_large_variances_the_nearest_covariance_matrix_is_half_of_matrix_and_polar_factor(matrix):
    """Higham 1988: (A + H) / 2, with A = U H; by singular values, and the code takes eigenvalues."""
    _, sizes, right = np.linalg.svd(matrix)
    nearest = (matrix + (right.T * sizes) @ right) / 2
    largest = np.full(len(matrix), 4 * np.abs(matrix).sum() + 1)  # a common unit, far above all variances
    result = postprocess.nearest_covariance(matrix, largest)
    np.testing.assert_allclose(result, nearest, atol=1e-9 * max(1, np.abs(matrix).max()))


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("noise", [0.1, 1.0, 30.0])
def test_no_covariance_matrix_within_the_limits_is_nearer(size, noise):
    """X is nearest to A in a convex set where the angle at X between A and any C in it is not acute."""
    rng = np.random.default_rng(size)
    largest = 10.0 ** rng.integers(-3, 4, size)
    units = np.sqrt(np.outer(largest, largest))
    too_large = 0
    for seed in range(8):
        added = rng.laplace(0, noise, (size, size))
        matrix = units * (
            postprocess.correlation(gram(seed, size, 2)) * 0.4 + np.triu(added) + np.triu(added, 1).T
        )
        result = postprocess.nearest_covariance(matrix, largest)
        assert (result == result.T).all()
        assert (np.diagonal(result) >= 0).all()
        assert (np.diagonal(result) <= largest).all()
        assert np.linalg.eigvalsh(result / units)[0] >= -1e-12
        too_large += (np.diagonal(matrix) > largest).any()
        others = [postprocess.correlation(gram(other, size, 1 + other % 4)) for other in range(40)]
        others += [other * np.outer(*2 * [rng.uniform(0, 1, size)]) for other in others]
        others += [np.zeros((size, size)), result / units / 2]
        start, end = matrix / units, result / units
        for other in others:
            assert ((start - end) * (other - end)).sum() <= 1e-7 * max(1, np.abs(start).max())
        least = np.linalg.norm(start - end)
        assert all(np.linalg.norm(start - (0.99 * end + 0.01 * other)) >= least - 1e-7 for other in others)
    assert noise < 1 or too_large > 1


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8))
def test_a_covariance_matrix_within_its_limits_comes_back_unchanged(seed, size, columns):
    matrix = gram(seed, size, columns)
    largest = np.diagonal(matrix) * 1.5
    assert (postprocess.nearest_covariance(matrix, largest) == matrix).all()
    assert (postprocess.nearest_covariance(matrix, np.zeros(size)) == 0).all()


@given(SYMMETRIC, st.integers(0, 3))
def test_a_search_that_is_cut_short_still_gives_a_covariance_matrix(matrix, iterations):
    largest = np.full(len(matrix), 0.5)
    result = postprocess.nearest_covariance(matrix, largest, iterations=iterations)
    assert (np.diagonal(result) <= largest).all()
    assert np.linalg.eigvalsh(result)[0] >= -1e-12


@given(SYMMETRIC)
def test_units_of_variables_do_not_matter(matrix):
    units = 2.0 ** np.arange(-10, 10, 4)[: len(matrix)].repeat(2)[: len(matrix)]
    scaled = matrix * np.outer(units, units)
    expected = postprocess.nearest_psd(matrix) * np.outer(units, units)
    np.testing.assert_allclose(postprocess.nearest_psd(scaled), expected, rtol=1e-9, atol=1e-9)
    largest = np.full(len(matrix), 0.5)
    expected = postprocess.nearest_covariance(matrix, largest) * np.outer(units, units)
    result = postprocess.nearest_covariance(scaled, largest * units**2)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9 * np.outer(units, units).max())


def calls(values, matrix):
    """Every function on an array of six values or a matrix of three variables."""
    return {
        "clamp": lambda: postprocess.clamp(values, 0, 1),
        "clamp, bounds": lambda: postprocess.clamp([0.5] * 6, values, np.inf),
        "nonnegative": lambda: postprocess.nonnegative(values),
        "integers": lambda: postprocess.integers(values),
        "integers, total": lambda: postprocess.integers(postprocess.rescale(values, 9), 9),
        "rescale": lambda: postprocess.rescale(values),
        "simplex": lambda: postprocess.simplex(values),
        "all_but_one": lambda: postprocess.all_but_one(values),
        "sums": lambda: Tree(6, 8).sums(values),
        "hierarchy": lambda: hierarchy(Tree(6, 8), values, 10),
        "hierarchy, variance": lambda: hierarchy(Tree(6, 8), [1] * 6, 10, values),
        "covariance_limit": lambda: postprocess.covariance_limit(values),
        "bound_covariances": lambda: postprocess.bound_covariances(matrix),
        "bound_covariances, largest": lambda: postprocess.bound_covariances(np.eye(6), values),
        "correlation": lambda: postprocess.correlation(matrix),
        "nearest_correlation": lambda: postprocess.nearest_correlation(matrix),
        "nearest_psd": lambda: postprocess.nearest_psd(matrix),
        "nearest_covariance": lambda: postprocess.nearest_covariance(matrix, np.ones(len(matrix))),
    }


CALLS = tuple(calls(None, None))


@pytest.mark.full(keep=40)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float32", "float64"])
def test_the_input_is_left_alone_and_not_handed_out(name, dtype):
    values = np.array([3, 1, 4, 1, 5, 9], dtype)
    matrix = np.array([[4, 1, 0], [1, 2, 1], [0, 1, 3]], dtype)
    for array in (values, matrix):
        array.setflags(write=False)
    result = calls(values, matrix)[name]()
    assert not np.shares_memory(result, values)
    assert not np.shares_memory(result, matrix)
    assert result.flags.writeable
    as_lists = calls(values.tolist(), matrix.tolist())[name]()
    np.testing.assert_array_equal(result, as_lists)


SECRET = 7654321.25


@each("name", CALLS)
@each("bad", ["text", "none", "flag", "ragged", "nan", "complex", "object"])
def test_other_arguments_than_arrays_of_numbers_are_refused_without_a_value(name, bad):
    replaced = {
        "text": str(SECRET),
        "none": None,
        "flag": True,
        "ragged": [SECRET, SECRET],
        "nan": math.nan,
        "complex": complex(SECRET),
        "object": Fraction(SECRET),
    }[bad]
    rest = [True] * 5 if bad == "flag" else [SECRET] * 5
    values = [replaced, *rest]
    matrix = np.reshape(np.array([True if bad == "flag" else SECRET] * 9, dtype=object), (3, 3)).tolist()
    matrix[0][0] = replaced
    with pytest.raises(ParameterError) as caught:
        calls(values, matrix)[name]()
    assert "7654321" not in str(caught.value)


REFUSED = {
    "clamp, order": lambda: postprocess.clamp([SECRET], 1, 0),
    "clamp, shape": lambda: postprocess.clamp([SECRET, SECRET], [0, 0, 0], 1),
    "clamp, more bounds than values": lambda: postprocess.clamp(SECRET, [0, 0, 0], 1),
    "nonnegative, infinite": lambda: postprocess.nonnegative([SECRET, math.inf]),
    "integers, sum": lambda: postprocess.integers([SECRET, 1.0], 5),
    "integers, sum by one": lambda: postprocess.integers([SECRET - 0.25, 2.0], 7654322),
    "integers, half a total": lambda: postprocess.integers([1.0, 1.5], 2.5),
    "integers, negative total": lambda: postprocess.integers([-1.0, 0.0], -1),
    "integers, no total": lambda: postprocess.integers([1.0], math.nan),
    "integers, too large": lambda: postprocess.integers([7654321e60, 0.0]),
    "integers, empty": lambda: postprocess.integers([], 3),
    "rescale, empty": lambda: postprocess.rescale([]),
    "rescale, negative total": lambda: postprocess.rescale([SECRET], -1),
    "rescale, infinite total": lambda: postprocess.rescale([SECRET], math.inf),
    "rescale, total of text": lambda: postprocess.rescale([SECRET], "all"),
    "rescale, too large": lambda: postprocess.rescale([7654321e200, 1.0]),
    "simplex, axis": lambda: postprocess.simplex([[SECRET]], 1, axis=2),
    "simplex, axis of text": lambda: postprocess.simplex([[SECRET]], 1, axis="rows"),
    "simplex, axis of bool": lambda: postprocess.simplex([[SECRET]], 1, axis=True),
    "simplex, no cells": lambda: postprocess.simplex(np.ones((2, 0)), 1, axis=1),
    "all_but_one, nan": lambda: postprocess.all_but_one([math.nan, SECRET]),
    "all_but_one, negative total": lambda: postprocess.all_but_one([SECRET], -1),
    "rescale, totals without an axis": lambda: postprocess.rescale([SECRET], [SECRET]),
    "simplex, too many totals": lambda: postprocess.simplex([[1.0, 2.0]], [SECRET] * 2, axis=1),
    "simplex, totals of the other axis": lambda: postprocess.simplex(np.ones((2, 3)), [SECRET] * 2, axis=0),
    "simplex, a negative total": lambda: postprocess.simplex([[1.0, 2.0]], [-SECRET], axis=1),
    "all_but_one, totals of text": lambda: postprocess.all_but_one([[SECRET]], ["a"], axis=1),
    "all_but_one, bounded": lambda: postprocess.all_but_one([SECRET], 1, bounded=1),
    "linear_constraints, table": lambda: postprocess.linear_constraints([[SECRET]], [[1]], 0, 1),
    "linear_constraints, shape": lambda: postprocess.linear_constraints([SECRET], [[1, 1]], 0, 1),
    "linear_constraints, no row": lambda: postprocess.linear_constraints([SECRET], np.ones((0, 1)), 0, 1),
    "linear_constraints, zeros": lambda: postprocess.linear_constraints([SECRET], [[0]], 0, 1),
    "linear_constraints, limits": lambda: postprocess.linear_constraints([SECRET], [[1]], [0, 0], 1),
    "linear_constraints, order": lambda: postprocess.linear_constraints([SECRET], [[1]], 1, 0),
    "linear_constraints, infinite": lambda: postprocess.linear_constraints(
        [SECRET], [[1]], math.inf, math.inf
    ),
    "linear_constraints, nan": lambda: postprocess.linear_constraints([SECRET], [[1]], math.nan, 1),
    "linear_constraints, none": lambda: postprocess.linear_constraints(
        [SECRET], [[1], [1]], [1, -math.inf], [math.inf, 0]
    ),
    "equality_bounds, order": lambda: postprocess.equality_bounds((1, 0), (0, 1), 1),
    "equality_bounds, not met": lambda: postprocess.equality_bounds((0, 1), (0, 1), 3),
    "equality_bounds, nan": lambda: postprocess.equality_bounds((0, math.nan), (0, 1), 1),
    "equality_bounds, one": lambda: postprocess.equality_bounds(1, (0, 1), 1),
    "equality_bounds, three": lambda: postprocess.equality_bounds((0, 1, 2), (0, 1), 1),
    "equality_bounds, no number": lambda: postprocess.equality_bounds((math.inf, math.inf), (0, 1), 1),
    "equality_bounds, infinite total": lambda: postprocess.equality_bounds((0, 1), (0, 1), math.inf),
    "tree, no cells": lambda: Tree(0),
    "tree, a half": lambda: Tree(2.5),
    "tree, a bool": lambda: Tree(True),
    "tree, branching": lambda: Tree(4, 1),
    "tree, root": lambda: Tree(4, 2, 1),
    "sums, shape": lambda: Tree(4).sums([SECRET] * 5),
    "sums, table": lambda: Tree(4).sums(np.full((2, 2), SECRET)),
    "sums, too large": lambda: Tree(2).sums([2**61, 2**61]),
    "hierarchy, tree": lambda: hierarchy([SECRET], [SECRET], 1),
    "hierarchy, shape": lambda: hierarchy(Tree(4), [SECRET] * 4, 1),
    "hierarchy, no total": lambda: hierarchy(Tree(4), [SECRET] * 6),
    "hierarchy, two totals": lambda: hierarchy(Tree(4, root=True), [SECRET] * 7, 1),
    "hierarchy, negative total": lambda: hierarchy(Tree(4), [SECRET] * 6, -1),
    "hierarchy, variance shape": lambda: hierarchy(Tree(4), [SECRET] * 6, 1, [1] * 3),
    "hierarchy, one variance": lambda: hierarchy(Tree(4), [SECRET] * 6, 1, 2.0),
    "hierarchy, zero variance": lambda: hierarchy(Tree(4), [SECRET] * 6, 1, [0, 1]),
    "covariance_limit, table": lambda: postprocess.covariance_limit([[SECRET]]),
    "covariance_limit, empty": lambda: postprocess.covariance_limit([]),
    "bound_covariances, vector": lambda: postprocess.bound_covariances([SECRET]),
    "bound_covariances, oblong": lambda: postprocess.bound_covariances([[SECRET, 1.0]]),
    "bound_covariances, largest": lambda: postprocess.bound_covariances([[SECRET]], -1),
    "bound_covariances, two": lambda: postprocess.bound_covariances([[SECRET]], [1, 1]),
    "correlation, not symmetric": lambda: postprocess.correlation([[1.0, SECRET], [1.0, 1.0]]),
    "nearest_correlation, empty": lambda: postprocess.nearest_correlation(np.ones((0, 0))),
    "nearest_correlation, far": lambda: postprocess.nearest_correlation([[1.0, SECRET], [SECRET, 1.0]]),
    "nearest_correlation, tolerance": lambda: postprocess.nearest_correlation([[SECRET]], 0),
    "nearest_correlation, iterations": lambda: postprocess.nearest_correlation([[SECRET]], iterations=-1),
    "nearest_psd, not symmetric": lambda: postprocess.nearest_psd([[1.0, SECRET], [1.0, 1.0]]),
    "nearest_covariance, one limit": lambda: postprocess.nearest_covariance([[1.0, 0], [0, SECRET]], [1.0]),
    "nearest_covariance, negative": lambda: postprocess.nearest_covariance([[SECRET]], [-1.0]),
}


@each("name", REFUSED)
def test_bad_input_is_refused_without_a_value(name):
    with pytest.raises(ParameterError) as caught:
        REFUSED[name]()
    assert "7654321" not in str(caught.value)
