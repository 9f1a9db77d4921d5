"""Risks (`disclosure`, `exact_risk`, `compositions`) against enumeration, simulation and real counts."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import (
    betabinom,
    binom,
    dirichlet_multinomial,
    dlaplace,
    laplace,
    multinomial,
    nbinom,
    norm,
    poisson,
)

from pdprivacy import risk
from pdprivacy.core.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    GeneralizedGaussian,
    Geometric,
    Laplace,
    Staircase,
)
from pdprivacy.errors import ParameterError
from pdprivacy.risk import exact_risk

NOISE = {"laplace": laplace(scale=2.0), "gaussian": norm(scale=1.7), "geometric": dlaplace(0.6)}
BOUNDS = (0, math.inf)
MECHANISMS = {
    "laplace": Laplace(0.7, 1),
    "geometric": Geometric(0.7, 2),
    "gaussian": Gaussian(0.7, 1e-3, 1),
    "classic": Gaussian(0.7, 1e-3, 1, calibration="classic"),
    "pdp": Gaussian(0.7, 1e-3, 1, calibration="pdp"),
    "discrete gaussian": DiscreteGaussian(0.7, 1e-3, 1),
    "generalized gaussian": GeneralizedGaussian(0.7, 1e-3, 1, 3),
    "staircase": Staircase(0.7, 1),
    "laplace, bit": Laplace(0.7, 1, bounds=BOUNDS, bounding="clamp"),
    "laplace, truncated": Laplace(0.7, 1, bounds=BOUNDS, bounding="truncated", l0_sensitivity=1),
    "geometric, truncated": Geometric(0.7, 1, bounds=BOUNDS, bounding="truncated", l0_sensitivity=1),
    "gaussian, truncated": Gaussian(0.7, 1e-3, 1, bounds=BOUNDS, bounding="truncated"),
}
CELLS = {
    2: [(3, 0), (1, 1), (5, 2)],
    3: [(1, 0, 0), (2, 1, 1), (3, 3, 3)],
    4: [(4, 0, 0, 0), (2, 1, 0, 1)],
    5: [(2, 0, 0, 0, 0), (1, 1, 1, 1, 1)],
    6: [(6, 1, 0, 0, 0, 0), (2, 1, 1, 0, 1, 0)],
}


def dr_ha(counts, noise, *args, **more):
    """Risks of tables with more labels than cells, too."""
    return risk.dr_ha(risk.Cells.of(counts), noise, *args, **more)


def local(counts, noise, average="cells", **more):
    return dr_ha(counts, noise, "local", average, **more)


def expected(counts, noise, average="cells", **more):
    return dr_ha(counts, noise, "expected", average, **more)


RISKS = (local, expected)


def draw(name, rng, size):
    """Noise from numpy's samplers, not from the distribution under test."""
    if name == "laplace":
        return rng.laplace(scale=2.0, size=size)
    if name == "gaussian":
        return rng.normal(scale=1.7, size=size)
    stop = 1 - math.exp(-0.6)
    return rng.geometric(stop, size=size) - rng.geometric(stop, size=size)


@cache
def hidden(noise, count):
    """Pr(a released count reads as empty)."""
    if getattr(noise, "bounding", None) is not None:
        return float(noise.cdf(0.5, float(count)))
    return float(noise.cdf(0.5 - count))


def local_by_definition(counts, noise, partial=False):
    """The sum of the definition, one cell, no shortcuts."""
    q = [hidden(noise, count) for count in counts]
    return math.fsum(
        (counts[k] / sum(counts) if partial else 1)
        * (1 - q[k])
        * math.prod(q[other] for other in range(len(q)) if other != k)
        for k in range(len(q))
        if counts[k] > 0
    )


def tables(size, labels):
    """Every way to share out ``size`` records."""
    bars = itertools.combinations(range(size + labels - 1), labels - 1)
    return [np.diff([-1, *bar, size + labels - 1]) - 1 for bar in bars]


def mean_over(size, labels, chance, noise, partial=False):
    """The mean of the local risk over every table of one cell, with the chance of each."""
    every = tables(size, labels)
    weights = np.array([chance(table) for table in every])
    assert weights.sum() == pytest.approx(1, rel=1e-10)
    return math.fsum(
        weight * local_by_definition(table, noise, partial)
        for weight, table in zip(weights, every, strict=True)
        if weight
    )


def expected_by_enumeration(counts, noise, partial=False):
    counts = [count for count in counts if count] + [count for count in counts if not count]
    labels, size = sum(count > 0 for count in counts), sum(counts)
    if labels == 1:
        return local_by_definition(counts, noise, partial)
    law = multinomial(size, np.array(counts[:labels]) / size)
    absent = hidden(noise, 0) ** (len(counts) - labels)
    return absent * mean_over(size, labels, law.pmf, noise, partial)


def simulated(counts, name, rng, draws):
    """The frequency at which the noisy counts of a cell read as homogeneous in a label it holds."""
    counts = np.asarray(counts)
    seen = counts + draw(name, rng, (draws, counts.shape[-1])) >= 0.5
    return ((seen.sum(axis=1) == 1) & (seen & (counts > 0)).any(axis=1)).mean()


# Local risk


@pytest.mark.full(keep=32)
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("noise", MECHANISMS.values(), ids=MECHANISMS)
@pytest.mark.parametrize("labels", CELLS)
def test_local_risk_is_its_definition(noise, labels, partial):
    actual = local(CELLS[labels], noise, None, partial=partial)
    exact = [local_by_definition(cell, noise, partial) for cell in CELLS[labels]]
    assert actual == pytest.approx(exact, rel=1e-12)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("labels", CELLS)
def test_local_risk_is_what_happens(name, labels):
    # 36 comparisons at 5 standard errors: one false alarm in 50,000 choices of the seed.
    rng = np.random.default_rng([20, labels, list(NOISE).index(name)])
    draws = 100_000
    for cell, value in zip(CELLS[labels], local(CELLS[labels], NOISE[name], None), strict=True):
        error = math.sqrt(value * (1 - value) / draws)
        assert abs(simulated(cell, name, rng, draws) - value) < 5 * error


def test_figures_where_published_bounds_fail():
    three, large = [[2, 1, 1]], [[10, 10, 10]]
    assert round(local(three, laplace(scale=100)), 3) == 0.372
    assert round(local(three, laplace(scale=100), method="published"), 3) == 0.251
    assert 0 < local(large, laplace(scale=1)) < 1e-4
    assert round(local(large, laplace(scale=1), method="published"), 3) == 0.211


@pytest.mark.full(keep=13)
@pytest.mark.parametrize("noise", [laplace(scale=1e9), norm(scale=1e9), risk.OnlyNoise()])
@pytest.mark.parametrize("cell", [cell for cells in CELLS.values() for cell in cells])
def test_without_information_the_risk_is_a_coin_per_label(noise, cell):
    present = sum(count > 0 for count in cell)
    assert local([cell], noise) == pytest.approx(present * 0.5 ** len(cell), rel=1e-6)
    # drawn anew, a label is there unless all records miss it
    drawn = sum(1 - (1 - count / sum(cell)) ** sum(cell) for count in cell)
    assert expected([cell], noise) == pytest.approx(drawn * 0.5 ** len(cell), rel=1e-6)


@pytest.mark.parametrize("function", RISKS)
@pytest.mark.parametrize("noise", [laplace(scale=1e-3), norm(scale=1e-3), risk.NoNoise()])
def test_without_noise_the_risk_is_the_share_of_homogeneous_cells(function, noise):
    counts = [[5, 0, 0], [0, 0, 1], [0, 0, 0], [40, 40, 0], [70, 80, 90]]
    assert function(counts, noise) == pytest.approx(2 / 4, abs=1e-12)
    assert function(counts, noise, average="records") == pytest.approx(6 / 326, abs=1e-12)
    each = function(counts, noise, average=None)
    assert np.isnan(each).tolist() == [False, False, True, False, False]
    assert each[[0, 1, 3, 4]] == pytest.approx([1, 1, 0, 0], abs=1e-12)


def test_certain_noise_needs_no_division():
    assert local([[3, 0], [1, 2], [0, 4]], risk.NoNoise(), None).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("function", RISKS)
def test_threshold_is_where_a_count_reads_as_empty(function):
    counts, scale = [[2, 1, 0], [6, 0, 0]], 0.5
    moved = function(counts, laplace(scale=scale), threshold=2.5)
    assert moved == pytest.approx(function(counts, laplace(loc=-2, scale=scale)), rel=1e-12)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("noise", [Geometric(1, 1), DiscreteGaussian(0.7, 1e-3, 1), risk.NoNoise()])
def test_a_count_at_a_whole_threshold_is_not_below_it(noise):
    # whole released counts below 1 are those below one half
    counts = [[1, 0], [0, 3], [2, 2]]
    for measure in ("local", "expected", "marginal"):
        at_one, at_half = (dr_ha(counts, noise, measure, None, threshold=at) for at in (1, 0.5))
        assert at_one.tolist() == pytest.approx(at_half.tolist(), abs=1e-14)
        assert dr_ha(counts, noise, measure, threshold=np.int64(2)) != dr_ha(counts, noise, measure)


def test_a_clamped_count_at_the_threshold_is_not_below_it():
    noise = Laplace(0.1, 1, bounds=(0.5, 10), bounding="clamp")
    assert local([[1, 0], [0, 3]], noise) == 0  # nothing reads as empty


small_tables = arrays.arrays(
    np.int64, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.integers(0, 6)
).filter(lambda table: table.any())


@pytest.mark.full
@given(small_tables, st.randoms(use_true_random=False), st.sampled_from(sorted(NOISE)))
def test_order_of_cells_and_labels_is_irrelevant(counts, random, name):
    rows = random.sample(range(counts.shape[0]), counts.shape[0])
    shuffled = np.array([random.sample(row, len(row)) for row in counts[rows].tolist()])
    for function in RISKS:
        for average in ("cells", "records"):
            value = function(counts, NOISE[name], average)
            assert function(shuffled, NOISE[name], average) == value
        each = function(counts, NOISE[name], None)
        np.testing.assert_array_equal(function(shuffled, NOISE[name], None), each[rows])


@given(
    small_tables,
    st.sampled_from(sorted(NOISE)),
    st.sampled_from(["local", "expected", "shrinkage", "marginal"]),
)
def test_averages_weight_the_non_empty_cells(counts, name, measure):
    more = {"alpha": "flat"} if measure == "shrinkage" else {}
    each = dr_ha(counts, NOISE[name], measure, None, **more)
    size = counts.sum(axis=1)
    assert np.array_equal(np.isnan(each), size == 0)
    inside = each[size > 0]
    assert ((inside >= 0) & (inside <= 1)).all()
    assert dr_ha(counts, NOISE[name], measure, **more) == pytest.approx(inside.mean(), rel=1e-12)
    weighted = (inside * size[size > 0]).sum() / size.sum()
    assert dr_ha(counts, NOISE[name], measure, "records", **more) == pytest.approx(weighted, rel=1e-12)


# Expected risk


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("noise", [*NOISE.values(), laplace(scale=100), *MECHANISMS.values()])
def test_expected_risk_is_the_sum_over_all_tables(noise, partial):
    cells = [*(cell for cells in CELLS.values() for cell in cells), (12, 1), (9, 1, 1), (8, 3, 0, 2)]
    for cell in cells:
        exact = expected_by_enumeration(cell, noise, partial)
        assert expected([cell], noise, partial=partial) == pytest.approx(exact, rel=1e-11, abs=1e-14)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("cell", [(40, 3, 2), (14, 13, 12), (8, 7, 0, 6)])
def test_expected_risk_of_larger_cells(cell):
    for noise in (NOISE["laplace"], laplace(scale=100)):
        exact = expected_by_enumeration(cell, noise)
        assert expected([cell], noise) == pytest.approx(exact, rel=1e-10, abs=1e-14)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("size", "first"), [(50, 25), (1000, 20), (10_000, 5), (10_000, 3000), (100_000, 9), (10**7, 3)]
)
@pytest.mark.parametrize("epsilon", [1, 0.1, 0.01, 0.001])
def test_expected_risk_of_two_labels_is_a_binomial_sum(size, first, epsilon):
    noise = laplace(scale=1 / epsilon)
    count = np.arange(min(size, first + 20_000) + 1)
    chance = binom(size, first / size).pmf(count)
    q, far = noise.cdf(0.5 - count), noise.cdf(0.5 - (size - count))
    present = np.where(count > 0, 1 - q, 0)
    exact = chance @ (present * far + np.where(count < size, 1 - far, 0) * q)
    assert expected([[first, size - first]], noise) == pytest.approx(
        exact, abs=1e-16 * math.sqrt(size) + 1e-12
    )


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("cell", [(6, 3, 1), (300, 4, 2, 2), (3, 2, 2, 1, 1, 0)])
def test_expected_risk_is_what_happens(name, cell):
    # 9 comparisons at 5 standard errors: one false alarm in 190,000 choices of the seed.
    rng = np.random.default_rng([21, len(cell), list(NOISE).index(name)])
    draws = 100_000
    drawn = rng.multinomial(sum(cell), np.array(cell) / sum(cell), size=draws)
    value = expected([cell], NOISE[name])
    error = math.sqrt(value * (1 - value) / draws)
    assert abs(simulated(drawn, name, rng, draws) - value) < 5 * error


def test_expected_risk_of_homogeneous_cells_is_the_local_risk():
    counts = np.zeros((5000, 2), dtype=int)
    counts[:, 0] = np.arange(1, 5001)
    first, second = (function(counts, laplace(scale=300), None) for function in RISKS)
    np.testing.assert_allclose(second, first, rtol=1e-12)


@pytest.mark.full
def test_expected_risk_shares_work_between_cells_without_mixing_them():
    counts = [(a, b, c, d) for a in range(3) for b in range(3) for c in range(2) for d in range(4)][1:]
    together = expected(counts, laplace(scale=3), None)
    alone = [expected([cell], laplace(scale=3)) for cell in counts]
    np.testing.assert_allclose(together, alone, atol=1e-15)


@pytest.mark.full
def test_expected_risk_does_not_depend_on_how_many_noises_are_asked_for():
    counts = [(3, 1, 0), (2, 2, 2), (40, 3, 1), (7, 0, 0)]
    noises = [laplace(scale=scale) for scale in np.logspace(-2, 3, 60)]
    together = expected(counts, noises)
    assert together == pytest.approx([expected(counts, noise) for noise in noises], abs=1e-15)


@pytest.mark.full
def test_expected_risk_of_large_mixed_cells_vanishes():
    assert expected([[3000, 2000, 4000]], laplace(scale=1)) < 1e-13
    assert expected([[10**9, 10**9, 0]], laplace(scale=1)) < 1e-10


@pytest.mark.full
def test_many_distinct_cells_cost_little():
    rng = np.random.default_rng(3)
    sizes = np.exp(rng.uniform(0, math.log(1e4), 3000)).astype(int)
    counts = np.array(
        [rng.multinomial(n, p) for n, p in zip(sizes, rng.dirichlet(np.ones(5), 3000), strict=True)]
    )
    assert risk.expected_cost(counts) < 2e9
    value = expected(counts, laplace(scale=1))
    assert 0 < value < local(counts, laplace(scale=1e-3)) + 0.1


@pytest.mark.parametrize("slack", [0, 9])
def test_a_transform_folds_next_to_nothing_into_a_coefficient(slack):
    sizes = np.unique(np.concatenate([np.arange(1, 300), np.geomspace(300, 1e10, 80).astype(np.int64)]))
    beyond = sizes + exact_risk.periods(sizes, slack) - 2 * slack
    assert (poisson.logpmf(beyond, sizes) - poisson.logpmf(sizes, sizes) < math.log(exact_risk.FOLDED)).all()


def test_masses_of_counts_keep_their_digits():
    rates = np.array([0.0, 0.3, 1, 2.5, 17, 184, 186, 1000, 12345])
    series = exact_risk.Series.of(rates, 64)
    counts = series.first[:, np.newaxis] + np.arange(700)
    masses = series._masses(counts)
    np.testing.assert_allclose(masses, poisson.pmf(counts, rates[:, np.newaxis]), rtol=1e-10, atol=1e-200)
    np.testing.assert_allclose(masses[:-1].sum(axis=1), 1, rtol=0, atol=1e-14)
    few = series.at(np.arange(6))  # from 0 on
    np.testing.assert_allclose(few._masses(counts[:6]), masses[:6], rtol=1e-13, atol=1e-200)
    sizes = np.arange(1, 99)
    np.testing.assert_allclose(exact_risk.at_mean(sizes), poisson.pmf(sizes, sizes), rtol=1e-13)


def test_many_small_blocks_are_made_few():
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.uniform(1, 40, (300, 1)), (300, 2))
    cells = risk.Cells.of(counts)
    mixed = cells.compositions[:, 0] > 0
    blocks = list(exact_risk._blocks(cells))
    assert len(blocks) < len(np.unique(exact_risk.periods(cells.sizes[mixed]))) / 2
    assert sorted(np.concatenate([rows for rows, _ in blocks])) == np.flatnonzero(mixed).tolist()
    for rows, period in blocks:
        assert (exact_risk.periods(cells.sizes[rows]) <= period).all()


def test_expected_cost_counts_equal_cells_once_and_grows_with_them():
    cells = [[5, 4, 3], [3, 4, 5], [7, 0, 0]]
    cost = risk.expected_cost(cells[:1])
    assert risk.expected_cost(cells[:2]) == cost
    assert risk.expected_cost(cells[2:]) == 0  # homogeneous: nothing to draw
    assert risk.expected_cost([*cells, [300, 200, 100]]) > 2 * cost


@pytest.mark.parametrize("noise", [laplace(scale=1), laplace(scale=200), norm(scale=30), risk.NoNoise()])
def test_hidden_masses_are_at_most_their_bounds(noise):
    rates = np.array([0, 1, 2, 7, 40, 150, 600, 4000])
    counts = np.arange(12_000)
    reading, wider = exact_risk.Reading(noise), exact_risk.Reading(laplace(scale=9))
    hidden = [poisson.pmf(counts, rate) @ noise.cdf(0.5 - counts) for rate in rates]
    bounds = exact_risk.hidden_at_most(rates, [reading])
    assert (bounds >= np.array(hidden) - 1e-12).all()
    assert bounds[-1] < 1e-3
    assert (exact_risk.hidden_at_most(rates, [reading, wider]) >= bounds).all()
    assert exact_risk.hidden_at_most(rates, []).tolist() == [1] * len(rates)


def test_cells_that_noise_cannot_hide_take_almost_no_work():
    counts = np.random.default_rng(1).poisson(1000, (300, 4))
    assert risk.expected_cost(counts, laplace(scale=1)) < risk.expected_cost(counts) / 10
    assert risk.expected_cost(counts, [laplace(scale=1), risk.OnlyNoise()]) > risk.expected_cost(counts) / 2
    assert expected(counts, laplace(scale=1)) < 1e-18
    small = np.random.default_rng(2).poisson(3, (300, 4))
    assert risk.expected_cost(small, laplace(scale=1)) > 0.9 * risk.expected_cost(small)


# Shrinkage risk


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("alpha", [(1, 1), (0.2, 3), (1.5, 0.3, 2.0), (0.4, 0.4, 5, 1), (900.0, 300.0)])
@pytest.mark.parametrize("noise", [laplace(scale=0.3), norm(scale=2), MECHANISMS["geometric, truncated"]])
def test_shrinkage_risk_is_the_sum_over_all_tables(alpha, noise, partial):
    for size in (1, 2, 5, 9):
        exact = mean_over(size, len(alpha), dirichlet_multinomial(alpha, size).pmf, noise, partial)
        counts = [[size, *[0] * (len(alpha) - 1)]]
        actual = dr_ha(counts, noise, "shrinkage", alpha=alpha, partial=partial)
        assert actual == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("alpha", [(0.5, 2.0), (1.0, 1.0), (200.0, 30.0), (1e4, 1e4)])
def test_shrinkage_risk_of_two_labels_is_a_beta_binomial_sum(alpha):
    noise = laplace(scale=7)
    sizes = np.array([1, 3, 30, 500, 2000, 5000])
    exact = []
    for size in sizes:
        count = np.arange(size + 1)
        q, far = noise.cdf(0.5 - count), noise.cdf(0.5 - (size - count))
        right = np.where(count > 0, 1 - q, 0) * far + np.where(count < size, 1 - far, 0) * q
        exact.append(betabinom(size, *alpha).pmf(count) @ right)
    actual = dr_ha(np.stack([sizes, 0 * sizes], axis=1), noise, "shrinkage", None, alpha=alpha)
    np.testing.assert_allclose(actual, exact, rtol=1e-8, atol=1e-13)


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("alpha", [1e-300, 1e-18, 1e-12, 1e-9, 1e-6, 0.1, 1e15])
@pytest.mark.parametrize("size", [1, 2040, 2048, 3000, 20_000])
def test_shrinkage_risk_of_extreme_priors(alpha, size):
    """With a tiny alpha one label has all records; with a huge one each has half of them."""
    noise = laplace(scale=1)
    actual = dr_ha([[size, 0]], noise, "shrinkage", alpha=alpha)
    count = np.arange(size + 1)
    q, far = noise.cdf(0.5 - count), noise.cdf(0.5 - (size - count))
    right = np.where(count > 0, 1 - q, 0) * far + np.where(count < size, 1 - far, 0) * q
    if alpha >= 1e9:
        exact = binom(size, 0.5).pmf(count) @ right
    elif alpha <= 1e-9:
        exact = right[0] + alpha * (right[1:-1] * size / (count[1:-1] * (size - count[1:-1]))).sum() / 2
        exact = (right[0] + right[-1]) / 2 + (exact - right[0])
    else:
        exact = betabinom(size, alpha, alpha).pmf(count) @ right
    assert actual == pytest.approx(exact, rel=2e-7, abs=1e-12)


def test_a_concentrated_prior_gives_the_expected_risk():
    counts, noise = [(6, 3, 1), (12, 6, 2)], NOISE["laplace"]
    alpha = 1e7 * np.array([0.6, 0.3, 0.1])
    actual = dr_ha(counts, noise, "shrinkage", None, alpha=alpha)
    assert actual == pytest.approx(expected(counts, noise, None), rel=1e-5)


def test_no_estimate_needs_the_order_of_labels_but_that_of_the_prior():
    counts = np.array([(5, 1, 0), (0, 2, 2), (3, 0, 0), (1, 4, 1), (2, 2, 0)])
    noise = NOISE["geometric"]
    value = risk.dr_ha(counts, noise, "shrinkage")
    assert risk.dr_ha(counts[:, [2, 0, 1]], noise, "shrinkage") == pytest.approx(value, rel=1e-9)
    assert risk.dr_ha(counts[::-1], noise, "shrinkage") == pytest.approx(value, rel=1e-9)
    fitted = risk.dirichlet_alpha(counts)
    assert dr_ha(counts, noise, "shrinkage", alpha=fitted) == value


# Marginal risks


def marginal_by_enumeration(cell, law, noise, partial, most=13):
    """Over sizes up to ``most``; what is left out is returned, too."""
    share, chance = np.array([count for count in cell if count]) / sum(cell), law.pmf(np.arange(1, most + 1))
    absent = hidden(noise, 0) ** (len(cell) - len(share))
    total = 0.0
    for size, weight in enumerate(chance, 1):
        drawn = multinomial(size, share).pmf if len(share) > 1 else lambda table: 1.0
        total += weight * absent * mean_over(size, len(share), drawn, noise, partial)
    return total, law.sf(most)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("noise", [laplace(scale=0.3), laplace(scale=40), MECHANISMS["laplace, truncated"]])
def test_marginal_risk_is_the_sum_over_all_sizes(noise, partial):
    counts = np.array([(3, 0, 0), (2, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0), (2, 1, 0)])
    rate = counts.sum() / len(counts)
    actual = dr_ha(counts, noise, "marginal", None, sizes="poisson", zero_truncated=False, partial=partial)
    for cell, value in zip(counts, actual, strict=True):
        exact, left = marginal_by_enumeration(cell, poisson(rate), noise, partial)
        assert exact - 1e-13 <= value <= exact + left
    truncated = dr_ha(counts, noise, "marginal", None, sizes="observed", partial=partial)
    sizes = counts.sum(axis=1)
    for cell, value in zip(counts, truncated, strict=True):
        scaled = [np.array(cell) / sum(cell)] * len(sizes)
        exact = np.mean(
            [
                mean_over(size, 3, multinomial(size, share).pmf, noise, partial)
                for size, share in zip(sizes, scaled, strict=True)
            ]
        )
        assert value == pytest.approx(exact, rel=1e-11, abs=1e-13)


def test_marginal_risk_over_poisson_sizes_is_a_product_of_independent_labels():
    # Poisson counts given their total are multinomial, so without that condition labels are independent.
    counts = np.array([(30, 10, 5), (70, 0, 1), (100, 90, 80), (250, 1, 2)])
    noise = laplace(scale=5)
    rate = counts.sum() / len(counts)
    count = np.arange(2000)
    q = noise.cdf(0.5 - count)
    exact = []
    for cell in counts:
        pmf = [poisson(rate * n / cell.sum()).pmf(count) for n in cell]
        empty = [p @ q for p in pmf]
        present = [p[1:] @ (1 - q[1:]) for p in pmf]
        exact.append(sum(present[k] * math.prod(empty[:k] + empty[k + 1 :]) for k in range(3)))
    actual = risk.dr_ha(counts, noise, "marginal", None, sizes="poisson", zero_truncated=False)
    assert actual == pytest.approx(exact, rel=1e-9, abs=1e-13)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("sizes", ["observed", "poisson", "negative_binomial"])
@pytest.mark.parametrize("zero_truncated", [True, False])
def test_marginal_risks_average_over_the_fitted_sizes(sizes, zero_truncated):
    rng = np.random.default_rng(8)
    drawn = 1 + nbinom(0.8, 0.15).rvs(300, random_state=rng)
    counts = np.array(
        [rng.multinomial(n, p) for n, p in zip(drawn, rng.dirichlet((0.6, 1, 0.4), 300), strict=True)]
    )
    counts[:40] = 0
    model = risk.size_distribution(counts.sum(axis=1), sizes, zero_truncated)
    noise = NOISE["geometric"]
    each = dr_ha([[n, 0, 0] for n in model.values], noise, "shrinkage", None, alpha=(0.6, 1, 0.4))
    value = risk.dr_ha(
        counts, noise, "marginal_shrinkage", alpha=(0.6, 1, 0.4), sizes=sizes, zero_truncated=zero_truncated
    )
    assert value == pytest.approx(each @ model.chances, rel=1e-12)
    cell = [(2, 1, 0), (4, 2, 0)]  # the same proportions, so the same marginal risk
    first, second = (
        dr_ha(np.vstack([counts, cell[index]]), noise, "marginal", None, sizes="observed")[-1]
        for index in (0, 1)
    )
    assert first == pytest.approx(second, rel=0.01)
    of_sizes = [expected_of(noise, n, np.array((2, 1)) / 3, 3) for n in model.values]
    risks = dr_ha(counts, noise, "marginal", None, sizes=sizes, zero_truncated=zero_truncated)
    like = np.flatnonzero(
        (np.sort(counts, axis=1) * 3 == counts.sum(axis=1)[:, None] * np.array([0, 1, 2])).all(axis=1)
        & counts.any(axis=1)
    )
    assert like.size
    assert risks[like] == pytest.approx(np.full(like.size, np.array(of_sizes) @ model.chances), abs=1e-12)


def expected_of(noise, size, share, labels):
    """The expected risk of a cell with two labels in any proportion: a binomial sum."""
    count = np.arange(size + 1)
    q = noise.cdf(0.5 - count)
    present = np.where(count > 0, 1 - q, 0)
    chance = binom(size, share[0]).pmf(count)
    return noise.cdf(0.5) ** (labels - 2) * (chance @ (present * q[::-1] + present[::-1] * q))


def test_observed_sizes_make_no_difference_to_what_depends_on_sizes_alone():
    counts = [(5, 1, 0), (0, 2, 2), (3, 0, 0), (1, 4, 1), (0, 0, 0)]
    noise = NOISE["laplace"]
    marginal_risk = risk.dr_ha(counts, noise, "marginal_shrinkage", alpha="flat")
    assert marginal_risk == pytest.approx(risk.dr_ha(counts, noise, "shrinkage", alpha="flat"), rel=1e-12)
    unconditional = risk.dr_ha(counts, noise, "marginal_shrinkage", alpha="flat", zero_truncated=False)
    assert unconditional == pytest.approx(marginal_risk * 4 / 5, rel=1e-12)
    each = risk.dr_ha(counts, noise, "marginal_shrinkage", None, alpha="flat")
    assert each[:4].tolist() == [marginal_risk] * 4
    assert np.isnan(each[4])


# As published


def published_laplace(counts, epsilon, average, alpha=None, density=None):
    """Equations 13 to 16, written out; the factor of the first sum of 13 belongs to it alone."""
    counts = np.array(counts, dtype=float)
    n, labels = counts.sum(axis=1), counts.shape[1]
    weights = np.full(len(n), 1 / len(n)) if average == "cells" else n / n.sum()
    first = (1 - math.exp(-epsilon / 2) / 2) ** (labels - 1) * (1 - np.exp((0.5 - n) * epsilon) / 2)
    second = (1 - math.exp(-epsilon / 2) / 2) ** (labels - 2) / 2
    second = second * (math.exp(-epsilon / 2) + np.exp((1.5 - n) * epsilon) - np.exp((1 - n) * epsilon))
    local = (counts > 0).sum(axis=1) == 1
    expected = ((counts / n[:, None]) ** n[:, None]).sum(axis=1)
    results = {}
    for name, same in {"local": local, "expected": expected}.items():
        results[name] = weights @ (same * first + (1 - same) * (n >= 2) * second)
    if alpha is not None:
        total = sum(alpha)
        same = sum(
            np.array([math.prod((a + i) / (total + i) for i in range(int(size))) for size in n])
            for a in alpha
        )
        results["shrinkage"] = weights @ (same * first + (1 - same) * (n >= 2) * second)
    if density is not None:
        results["marginal"] = weights @ (density(n) * (expected * first + (1 - expected) * (n >= 2) * second))
    return results


def published_gaussian(counts, sigma):
    """Equation 23, cells weighted equally."""
    counts = np.array(counts, dtype=float)
    n, labels = counts.sum(axis=1), counts.shape[1]

    def erf(x):
        return np.vectorize(math.erf)(x / (math.sqrt(2) * sigma))

    e = (1 - erf(1.5 - n)) * (1 + erf(-0.5)) + (1 + erf(1.5 - n)) * (1 + erf(0.5))
    same = ((counts / n[:, None]) ** n[:, None]).sum(axis=1)
    first = (1 + erf(0.5)) ** (labels - 1) * (1 + erf(n - 0.5)) * same
    second = (1 + erf(0.5)) ** (labels - 2) * (n >= 2) * (1 - same) * e
    return (first + second).mean() / 2**labels


@pytest.mark.parametrize("epsilon", [0.01, 1, 4])
@pytest.mark.parametrize("average", ["cells", "records"])
def test_published_forms_are_the_printed_ones(epsilon, average):
    counts = [(3, 0, 0), (2, 1, 1), (1, 0, 0), (9, 1, 0), (4, 4, 4)]
    alpha, noise = (0.7, 1.2, 2.0), laplace(scale=1 / epsilon)
    rate = np.mean([sum(cell) for cell in counts])
    printed = published_laplace(counts, epsilon, average, alpha, poisson(rate).pmf)
    for measure, value in printed.items():
        more = {"alpha": alpha} if measure == "shrinkage" else {}
        more |= {"sizes": "poisson", "zero_truncated": False} if measure == "marginal" else {}
        assert risk.dr_ha(counts, noise, measure, average, "published", **more) == pytest.approx(
            value, rel=1e-12
        )
    sigma = 1.3 / epsilon
    actual = risk.dr_ha(counts, norm(scale=sigma), "expected", method="published")
    assert actual == pytest.approx(published_gaussian(counts, sigma), rel=1e-12)


def test_published_marginal_shrinkage_is_a_sum_over_sizes():
    counts, alpha, epsilon = [(3, 0), (2, 1), (1, 0), (9, 1)], (0.7, 1.2), 0.8
    rate = np.mean([sum(cell) for cell in counts])
    n = np.arange(1, 100)
    actual = risk.dr_ha(
        counts, laplace(scale=1 / epsilon), "marginal_shrinkage", method="published",
        alpha=alpha, sizes="poisson", zero_truncated=False,
    )  # fmt: skip
    each = [published_laplace([(size, 0)], epsilon, "cells", alpha)["shrinkage"] for size in n]
    assert actual == pytest.approx(poisson(rate).pmf(n) @ np.array(each), rel=1e-11)


def test_homogeneous_cells_are_published_rightly():
    counts = [(3, 0, 0), (0, 1, 0), (0, 0, 12)]
    for measure in ("local", "expected"):
        exact, printed = (
            risk.dr_ha(counts, Laplace(0.4, 1), measure, method=method) for method in ("exact", "published")
        )
        assert exact == pytest.approx(printed, rel=1e-12)


# Cells


@pytest.mark.parametrize("scale", [1, 1000])
def test_cells_holds_each_composition_once(scale):
    # Ten labels up to 3,000 do not fit one integer key: the other way to find equal rows.
    counts = scale * np.array([[1, 2, 3] + 7 * [0], 7 * [0] + [3, 2, 1], 10 * [0], [4] + 9 * [0]])
    cells = risk.Cells.of(counts)
    assert cells.compositions.tolist() == [9 * [0] + [4 * scale], [0] * 7 + [scale, 2 * scale, 3 * scale]]
    assert cells.cells.tolist() == [1, 2]
    assert cells.which.tolist() == [1, 1, -1, 0]
    assert cells.all_sizes.tolist() == [6 * scale, 6 * scale, 0, 4 * scale]
    assert risk.Cells.of(cells) is cells


def test_frames_and_whole_floats_are_counts():
    frame = pd.DataFrame({"no": [3.0, 1.0], "yes": [0.0, 1.0]})
    assert risk.dr_ha(frame, norm()) == risk.dr_ha([[3, 0], [1, 1]], norm())


def test_counts_of_any_numeric_type_are_the_same_counts():
    plain = np.array([[3, 0, 1], [1, 1, 0], [0, 2, 0]])
    value = risk.dr_ha(plain, norm())
    frame = pd.DataFrame(plain)
    for counts in (
        plain.astype(np.uint8), plain.astype(np.float16), np.asfortranarray(plain), plain.astype(object),
        frame.astype("Int64"), frame.astype("float32"), plain.tolist(), np.repeat(plain, 2, axis=1)[:, ::2],
    ):  # fmt: skip
        assert risk.dr_ha(counts, norm()) == value


def test_a_list_of_mechanisms_gives_an_array():
    counts = [(3, 0, 0), (2, 1, 1), (0, 0, 0), (1, 0, 0)]
    noises = [Laplace(epsilon, 1) for epsilon in (0.1, 1, 3)]
    for measure in ("local", "expected", "marginal"):
        many = risk.dr_ha(counts, noises, measure)
        assert many.tolist() == pytest.approx([risk.dr_ha(counts, noise, measure) for noise in noises])
        each = risk.dr_ha(counts, noises, measure, None)
        assert each.shape == (3, 4)
        np.testing.assert_allclose(each[1], risk.dr_ha(counts, noises[1], measure, None), rtol=1e-12)
    assert isinstance(risk.dr_ha(counts, noises[0]), float)


# Real counts


def count_table(rows):
    """Rows of counts as a table of cells by labels."""
    *known, sensitive, count = rows.columns
    return rows.pivot_table(index=known, columns=sensitive, values=count, aggfunc="sum", fill_value=0)


def test_census_records_end_at_their_share_of_homogeneous_cells(count_rows):
    rows = count_rows("adult_6qid_counts.csv.gz")
    counts = count_table(rows)
    assert counts.to_numpy().sum() == 27_504
    assert counts.shape == (5_009, 2)
    assert ((counts > 0).sum(axis=1) == 1).sum() == 4_044
    cells, exact = risk.Cells.of(counts), risk.NoNoise()
    assert round(risk.dr_ha(cells, exact), 3) == 0.807
    assert round(risk.dr_ha(cells, exact, average="records"), 3) == 0.404
    # As published each combination with the income is a cell of its own, and so homogeneous.
    alone = np.stack([rows.iloc[:, -1], 0 * rows.iloc[:, -1]], axis=1)
    assert alone.shape == (5_974, 2)
    assert risk.dr_ha(alone, [risk.OnlyNoise(), exact]) == pytest.approx([0.25, 1.0], rel=1e-12)
    # A mixed cell may come out homogeneous when it is drawn anew; never the reverse.
    almost = laplace(scale=1e-3)
    assert risk.dr_ha(cells, almost, "expected") > risk.dr_ha(cells, almost)
    # More noise, less risk for homogeneous cells, which are the most.
    curve = risk.dr_ha(cells, [laplace(scale=1 / epsilon) for epsilon in (0.01, 0.1, 1, 10)]).tolist()
    assert curve == sorted(curve)
    assert 0.25 < curve[0] < curve[-1] < 0.807


def test_asymptotes_of_the_bankruptcy_subset_are_the_published_ones(count_rows):
    counts = count_table(count_rows("bankruptcy_ff_counts.csv"))
    assert counts.shape == (78, 3)
    for measure, average, low, high in (
        ("local", "cells", 0.16, 0.69), ("local", "records", 0.18, 0.57),
        ("expected", "cells", 0.16, 0.75), ("expected", "records", 0.17, 0.63),
    ):  # fmt: skip
        risks = risk.dr_ha(counts, [Laplace(1e-3, 1), risk.NoNoise()], measure, average, "published")
        assert risks.round(2).tolist() == [low, high]


# Errors


@pytest.mark.parametrize("function", [*RISKS, risk.expected_cost])
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([3, 777], "two dimensions"),
        ([[777, 2], [3]], "rows of the same length"),
        ([[777, Fraction(10**20 + 1, 10**20)]], "must be whole numbers"),
        ([[777, 10**400]], "less than"),
        ([[[777]]], "two dimensions"),
        ([[777], [2]], "at least 2 columns"),
        ([[777, -3]], "must not be negative"),
        ([[777, 2.5]], "must be whole numbers"),
        ([[777, math.nan]], "must be whole numbers"),
        ([[777, math.inf]], "must be whole numbers"),
        ([["777", "1"]], "must be whole numbers"),
        ([[True, False]], "must be whole numbers"),
        ([[0, 0], [0, 0]], "at least one record"),
        (np.zeros((0, 3)), "at least one record"),
        ([[777, 2**60]], "less than"),
    ],
)
def test_bad_counts_are_refused_without_printing_them(function, counts, message):
    arguments = () if function is risk.expected_cost else (norm(),)
    with pytest.raises(ParameterError, match=message) as caught:
        function(counts, *arguments)
    assert "777" not in str(caught.value)


class Wrong:
    """Something with a cdf that is none."""

    def __init__(self, cdf):
        self.cdf = cdf


COUNTS = [(3, 1), (2, 0), (0, 5)]


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((1.0,), {}, r"'mechanism' must have a method 'cdf' \(got float\)"),
        ((Laplace,), {}, r"must have a method 'cdf' \(got Laplace\)"),
        ((norm.cdf,), {}, "must have a method 'cdf'"),
        (("laplace",), {}, "must have a method 'cdf'"),
        (([],), {}, "at least one mechanism"),
        (([norm(), None],), {}, "must have a method 'cdf'"),
        ((norm(), "global"), {}, "'measure' must be one of 'local', 'expected', 'shrinkage'"),
        ((norm(), ["local"]), {}, r"'measure' must be one of .* \(got list\)"),
        ((norm(), "local", "mean"), {}, "'average' must be one of 'cells', 'records', None"),
        ((norm(), "local", np.array([1, 2])), {}, "'average' must be one of"),
        (
            (norm(), "local", "cells", "closed"),
            {},
            "'method' must be one of 'exact', 'published', 'monte_carlo'",
        ),
        ((norm(), "marginal"), {"sizes": "normal"}, "'sizes' must be one of 'observed', 'poisson'"),
        ((norm(), "shrinkage"), {"alpha": -1}, "'alpha' must"),
        ((norm(), "shrinkage"), {"alpha": (1, 2, 3)}, "'alpha' must"),
        ((norm(), "local"), {"alpha": 1}, "'alpha' is for the shrinkage measures"),
        (
            (norm(),),
            {"attack": "linkage"},
            "'attack' must be one of 'homogeneity', 'plurality', 'probabilistic'",
        ),
        ((norm(), "expected"), {"attack": "plurality"}, "exact for measure='local' only"),
        ((norm(),), {"attack": "plurality", "threshold": 1.5}, "'threshold' is for attack='homogeneity'"),
        ((norm(),), {"attack": "plurality", "partial": True}, "'partial' is for attack='homogeneity'"),
        ((norm(),), {"method": "published", "partial": True}, "no published form"),
        ((norm(),), {"postprocess": np.abs}, "'postprocess' needs simulation"),
        ((norm(),), {"threshold": math.nan}, "'threshold' must be a finite number"),
        ((norm(),), {"partial": "yes"}, "'partial' must be True or False"),
        ((norm(), "marginal"), {"zero_truncated": "no"}, "'zero_truncated' must be True or False"),
        ((norm(),), {"method": "monte_carlo", "postprocess": 3}, "'postprocess' must be a function"),
        ((np.array(norm(), dtype=object),), {}, "must have a method 'cdf'"),
        ((Wrong(lambda t: ["a"] * 4),), {}, "must return one probability"),
        ((norm(), "shrinkage"), {"alpha": 1e16}, "from 1e-300 to 1e"),
        ((norm(),), {"threshold": "0.5"}, "'threshold' must be a finite number"),
        ((norm(),), {"threshold": True}, "'threshold' must be a finite number"),
        ((Wrong(lambda t: 0.5),), {}, "'cdf' of a mechanism must return one probability"),
        ((Wrong(lambda t: t),), {}, "must return one probability"),
        ((Wrong(lambda t: t * math.nan),), {}, "must return one probability"),
        ((Wrong(lambda t: np.full(len(t) + 1, 0.5)),), {}, "must return one probability"),
    ],
)
def test_bad_arguments_are_refused(arguments, more, message):
    with pytest.raises(ParameterError, match=message):
        risk.dr_ha(COUNTS, *arguments, **more)


def test_a_table_on_its_side_is_refused():
    with pytest.raises(ParameterError, match=r"more labels \(columns, 3\) than cells \(rows, 2\)"):
        risk.dr_ha(np.transpose(COUNTS), norm())
    assert risk.dr_ha(risk.Cells.of(np.transpose(COUNTS)), norm()) > 0


def test_simulation_and_estimates_need_the_table_itself():
    cells = risk.Cells.of(COUNTS)
    with pytest.raises(ParameterError, match="needs the table of counts itself"):
        risk.dr_ha(cells, Laplace(1, 1), method="monte_carlo")
    with pytest.raises(ParameterError, match="'alpha'"):
        risk.dr_ha(cells, Laplace(1, 1), "shrinkage")


def test_cells_too_large_for_a_measure_are_refused():
    counts = [(10**11, 5), (3, 1)]
    assert 0 < risk.dr_ha(counts, Laplace(1, 1)) < 1
    for measure in ("expected", "shrinkage", "marginal", "marginal_shrinkage"):
        more = {"alpha": "flat"} if "shrinkage" in measure else {}
        with pytest.raises(ParameterError, match="computed for cells of at most"):
            risk.dr_ha(counts, Laplace(1, 1), measure, **more)
