"""Maximum-likelihood models of cells against scipy's laws and optimisers, closed forms and simulation."""

import math
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import betabinom, logser, nbinom, poisson

from pdprivacy.errors import ParameterError
from pdprivacy.risk import likelihood
from pdprivacy.risk.likelihood import checked_alpha, dirichlet_alpha, size_distribution


def log_likelihood(alpha, table):
    """Dirichlet-multinomial, written out, but for the multinomial coefficients."""
    alpha, table = np.asarray(alpha, dtype=float), np.asarray(table)
    cells = gammaln(alpha.sum()) - gammaln(alpha.sum() + table.sum(axis=1))
    return float(cells.sum() + (gammaln(table + alpha) - gammaln(alpha)).sum())


def score(alpha, table):
    """The derivative in log alpha over the sum of its positive terms."""
    table = np.asarray(table)
    own = (digamma(table + alpha) - digamma(alpha)).sum(axis=0)
    whole = (digamma(table.sum(axis=1) + alpha.sum()) - digamma(alpha.sum())).sum()
    return (own - whole) / own


def information(alpha, table):
    """Minus the second derivatives in alpha."""
    own = (polygamma(1, alpha) - polygamma(1, table + alpha)).sum(axis=0)
    whole = (polygamma(1, alpha.sum()) - polygamma(1, alpha.sum() + table.sum(axis=1))).sum()
    return np.diag(own) - whole


def simulated(seed, alpha, cells, largest):
    rng = np.random.default_rng([30, seed])
    sizes = rng.integers(0, largest + 1, cells)
    return rng.multinomial(sizes, rng.dirichlet(alpha, cells))


TABLES = {
    "two labels": simulated(1, [0.8, 1.6], 40, 20),
    "three labels": simulated(2, [0.2, 0.3, 0.1], 60, 12),
    "five labels": simulated(3, [0.5, 6, 1, 2, 3], 150, 40),
    "large cells": simulated(4, [2, 0.3, 1], 80, 100_000),
    "even cells": simulated(5, [20, 30, 10], 300, 60),
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", TABLES)
def test_alpha_is_the_best_of_an_optimiser_from_several_starts(name):
    table = TABLES[name]
    alpha = dirichlet_alpha(table)
    assert np.abs(score(alpha, table)).max() < 1e-8
    fits = [
        minimize(lambda x: -log_likelihood(np.exp(x), table), np.full(len(alpha), start), method="BFGS")
        for start in (-1.0, 0.0, 2.0)
    ]
    best = min(fits, key=lambda fit: fit.fun)
    assert log_likelihood(alpha, table) >= -best.fun - 1e-9 * abs(best.fun)
    np.testing.assert_allclose(np.exp(best.x), alpha, rtol=0.01)


@pytest.mark.parametrize("name", TABLES)
def test_the_slope_of_the_likelihood_at_alpha_is_zero(name):
    table = TABLES[name]
    alpha = dirichlet_alpha(table)
    step = 1e-3
    for k in range(len(alpha)):
        up, down = alpha.copy(), alpha.copy()
        up[k] *= math.exp(step)
        down[k] *= math.exp(-step)
        slope = (log_likelihood(up, table) - log_likelihood(down, table)) / (2 * step)
        curvature = abs(information(alpha, table)[k, k]) * alpha[k] ** 2
        assert abs(slope) < 1e-4 * curvature  # alpha_k off by 1e-4 would give as much


@pytest.mark.parametrize(("same", "mixed"), [(2, 1), (6, 1), (60, 40), (501, 499)])
def test_alpha_of_pairs_has_a_closed_form(same, mixed):
    # Pr(both alike) = (a + 1) / (2a + 1) for two labels with the same a.
    share = same / (same + mixed)
    table = [[2, 0]] * same + [[0, 2]] * same + [[1, 1]] * (2 * mixed)
    expected = (1 - share) / (2 * share - 1)
    np.testing.assert_allclose(dirichlet_alpha(table), [expected] * 2, rtol=1e-9)
    # Cells of one record speak of the proportions only, and of none of them these two.
    np.testing.assert_allclose(dirichlet_alpha([*table, [1, 0], [0, 1]]), [expected] * 2, rtol=1e-9)


def test_two_labels_are_the_beta_binomial_of_scipy():
    table = TABLES["two labels"]
    alpha = dirichlet_alpha(table)

    def minus(x):
        return -betabinom.logpmf(table[:, 0], table.sum(axis=1), *np.exp(x)).sum()

    best = minimize(minus, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    np.testing.assert_allclose(np.exp(best.x), alpha, rtol=1e-5)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("alpha", [[0.4, 1.2], [0.05, 0.1, 0.3], [3.0, 8.0, 1.0, 2.0]])
def test_a_known_alpha_is_recovered(alpha):
    # 9 comparisons at 5 standard errors: one false alarm in 190,000 choices of the seed.
    table = simulated(len(alpha), alpha, 20_000, 30)
    estimate = dirichlet_alpha(table)
    errors = np.sqrt(np.diag(np.linalg.inv(information(estimate, table))))
    assert (errors < 0.05 * estimate).all()
    assert (np.abs(estimate - alpha) < 5 * errors).all()


small_tables = arrays.arrays(
    np.int64, st.tuples(st.integers(2, 8), st.integers(2, 4)), elements=st.integers(0, 7)
).filter(lambda table: table.any())


@given(small_tables, st.randoms(use_true_random=False), st.integers(2, 5))
def test_order_copies_and_empty_cells_do_not_matter(table, random, copies):
    alpha = reason = None
    try:
        alpha = dirichlet_alpha(table)
    except ParameterError as error:
        reason = str(error)
    if alpha is None:
        with pytest.raises(ParameterError) as again:
            dirichlet_alpha(np.repeat(table, copies, axis=0)[::-1, ::-1])
        assert str(again.value) == reason
        return
    if alpha.sum() > 1e4:
        return  # hardly a maximum: the likelihood is level to the rounding of floats
    labels = random.sample(range(table.shape[1]), table.shape[1])
    rows = random.sample(range(len(table)), len(table))
    for other in (table[rows], np.repeat(table, copies, axis=0), np.vstack([table, 0 * table])):
        np.testing.assert_allclose(dirichlet_alpha(other[:, labels]), alpha[labels], rtol=1e-6)


@given(
    arrays.arrays(np.int64, st.tuples(st.integers(2, 8), st.just(2)), elements=st.integers(0, 9)).filter(
        lambda table: table.any()
    )
)
def test_alpha_beats_a_grid_or_else_a_limit_does(table):
    proportion, precision = np.meshgrid(np.linspace(0.02, 0.98, 25), np.geomspace(1e-4, 1e6, 41))
    grid = np.stack([proportion * precision, (1 - proportion) * precision], axis=-1).reshape(-1, 2)
    best = max(log_likelihood(alpha, table) for alpha in grid)
    records = table.sum(axis=0)
    try:
        value = log_likelihood(dirichlet_alpha(table), table)
    except ParameterError as error:
        if "common proportions" in str(error):
            share = records / records.sum()
            assert (records @ np.log(share)) >= best - 1e-6
        else:
            size = table.sum(axis=1)
            assert size.max() < 2 or not records.all() or (table.max(axis=1) == size).all()
    else:
        assert value >= best - 1e-6


def test_a_maximum_may_hide_behind_the_multinomial():
    # A large even cell makes the likelihood fall from the multinomial; the pairs all agree.
    table = np.array([[5000, 5000]] + [[2, 0]] * 50 + [[0, 2]] * 50)
    pooled = ((table * (table - 1)).sum(axis=0) * 2).sum() - (
        table.sum(axis=1) * (table.sum(axis=1) - 1)
    ).sum()
    assert pooled < 0
    alpha = dirichlet_alpha(table)
    grid = np.geomspace(1e-5, 1e7, 400)
    values = [log_likelihood([a, a], table) for a in grid]
    assert log_likelihood(alpha, table) >= max(values)
    assert alpha == pytest.approx([grid[np.argmax(values)]] * 2, rel=0.1)
    assert log_likelihood(alpha, table) > table.sum() * math.log(0.5) + 1


@pytest.mark.parametrize(("pairs", "higher"), [(3, False), (6, True)])
def test_the_higher_of_a_maximum_and_the_multinomial_counts(pairs, higher):
    table = np.array([[5000, 5000]] + [[2, 0]] * pairs + [[0, 2]] * pairs)
    values = [log_likelihood([a, a], table) for a in np.geomspace(1e-3, 10, 300)]
    peak = int(np.argmax(values))
    assert 0 < peak < 299  # a maximum in any case
    assert (values[peak] > table.sum() * math.log(0.5)) == higher
    if higher:
        assert log_likelihood(dirichlet_alpha(table), table) >= values[peak]
    else:
        with pytest.raises(ParameterError, match="common proportions"):
            dirichlet_alpha(table)


def test_counts_of_any_size_are_summed():
    table = np.array([[10**9, 0], [0, 10**9], [1, 1], [10**14, 3], [10**6, 10**7]])
    alpha = dirichlet_alpha(table)
    assert np.abs(score(alpha, table)).max() < 1e-8
    assert alpha.max() < 1


def test_many_cells_cost_what_their_tallies_do():
    many = np.repeat(TABLES["three labels"], 5_000, axis=0)
    np.testing.assert_allclose(dirichlet_alpha(many), dirichlet_alpha(TABLES["three labels"]), rtol=1e-7)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([[777, 0], [0, 776], [0, 1]], "every cell of the table is homogeneous"),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 0]], "no cell of the table has two records"),
        ([[1, 0], [0, 1], [0, 1]], "no cell of the table has two records"),
        ([[777, 0, 3], [1, 0, 776]], "a label of the table has no record"),
        ([[777, 776]], "common proportions"),
        ([[777, 777], [776, 776], [775, 777]], "common proportions"),
        ([[1, 1], [1, 1], [2, 0], [0, 2]], "common proportions"),  # binomial to the letter
        ([[777, 776, 775]], "common proportions"),
    ],
)
def test_a_likelihood_without_maximum_is_an_error(counts, reason):
    with pytest.raises(ParameterError, match=reason) as caught:
        dirichlet_alpha(counts)
    assert 'alpha="flat"' in caught.value.hint
    assert "77" not in str(caught.value)


def test_one_cell_more_than_binomial_has_a_maximum():
    alpha = dirichlet_alpha([[1, 1]] * 1000 + [[2, 0]] * 501 + [[0, 2]] * 501)
    share = 1002 / 2002
    assert alpha == pytest.approx([(1 - share) / (2 * share - 1)] * 2, rel=1e-6)


def test_a_failed_convergence_is_an_error(monkeypatch):
    table = TABLES["two labels"]
    steps = likelihood.Steps.over([likelihood.tally_of(table[:, k]) for k in range(2)])
    whole = likelihood.Steps.over([likelihood.tally_of(table.sum(axis=1))])
    with pytest.raises(ParameterError, match="did not converge"):
        likelihood._LabelLikelihood(steps, whole, np.array([0.5, 0.5]), 1).proportions(math.nan)
    monkeypatch.setattr(likelihood._LabelLikelihood, "relative_score", lambda self, alpha: 1e-3)
    with pytest.raises(ParameterError, match="did not converge"):
        dirichlet_alpha(table)


def test_bad_counts_are_refused_as_elsewhere():
    with pytest.raises(ParameterError, match="must not be negative"):
        dirichlet_alpha([[1, -1], [2, 3]])


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=10),
    st.lists(st.integers(1, 10**7), max_size=6),
    st.floats(1e-4, 1e3),
)
def test_sums_over_all_numbers_below_each_count(small, large, a):
    counts = np.array(small + large)
    steps = likelihood.Steps.over([likelihood.tally_of(counts)])
    assert steps.sums(np.log(a + steps.points))[0] == pytest.approx(
        (gammaln(counts + a) - gammaln(a)).sum(), rel=1e-11, abs=1e-10
    )
    assert steps.sums(np.ones_like(steps.points))[0] == pytest.approx(counts.sum(), rel=1e-12)
    assert steps.sums(steps.points**3)[0] == pytest.approx(
        sum((n * (n - 1) // 2) ** 2 for n in counts.tolist()), rel=1e-11
    )


# alpha as an argument


def test_alpha_is_checked():
    table = TABLES["three labels"]
    np.testing.assert_array_equal(checked_alpha(None, table, 3), dirichlet_alpha(table))
    for alpha, expected in (
        ("flat", [1, 1, 1]),
        (0.5, [0.5] * 3),
        (np.int64(2), [2] * 3),
        ((1, 2.5, 3), [1, 2.5, 3]),
        (pd.Series([1, 2, 3]), [1, 2, 3]),
    ):
        actual = checked_alpha(alpha, None, 3)
        assert actual.dtype == np.float64
        assert actual.tolist() == expected


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ("round", r"'alpha' must be None, 'flat' or positive numbers \(got 'round'\)"),
        (True, r"got True"),
        ({"a": 1}, r"got dict"),
        (["1", "2", "3"], r"got list"),
        ([[1, 2, 3]], r"got list"),
        ([1, [2, 3], 4], r"got list"),
        ([1, 2], r"one number for each of 3 labels \(got 2\)"),
        ([], r"one number for each of 3 labels \(got 0\)"),
        (0, r"from 1e-300 to 1e\+15 \(got 0\)"),
        (-1.5, r"from 1e-300 to 1e\+15 \(got -1.5\)"),
        ([1, math.nan, 2], r"from 1e-300 to 1e\+15 \(got nan\)"),
        ([1, 2, math.inf], r"from 1e-300 to 1e\+15 \(got inf\)"),
        (None, "cannot be estimated without counts"),
    ],
)
def test_bad_alpha_is_refused(alpha, message):
    with pytest.raises(ParameterError, match=message):
        checked_alpha(alpha, None, 3)


# Sizes


def size_log_likelihood(r, chance, sizes, truncated):
    """Masses of the negative binomial; of the Poisson distribution with this mean if r is infinite."""
    values, cells = np.unique(sizes, return_counts=True)
    law, parameters = (poisson, (chance,)) if math.isinf(r) else (nbinom, (r, chance))
    value = law.logpmf(values, *parameters)
    return float((value - (np.log(-np.expm1(law.logpmf(0, *parameters))) if truncated else 0)) @ cells)


def sizes_of(seed, name, cells=400):
    rng = np.random.default_rng([31, seed])
    if name == "poisson":
        return rng.poisson(1.7, cells)
    if name == "negative binomial":
        return rng.negative_binomial(0.8, 0.1, cells)
    if name == "nearly poisson":
        return rng.negative_binomial(30, 0.8, cells)
    return rng.negative_binomial(2.5, 0.001, cells)


NAMES = ("negative binomial", "nearly poisson", "large")


def test_observed_sizes_are_their_frequencies():
    sizes = [0, 3, 1, 0, 3, 3, 7, 1]
    distribution = size_distribution(sizes, "observed")
    assert distribution.values.tolist() == [1, 3, 7]
    assert distribution.chances.tolist() == [2 / 6, 3 / 6, 1 / 6]
    assert (distribution.model, distribution.parameters) == ("observed", {})
    assert distribution.values.dtype == np.int64
    plain = size_distribution(sizes, "observed", zero_truncated=False)
    assert plain.chances.tolist() == [2 / 8, 3 / 8, 1 / 8]
    spread = size_distribution([10**12, 0, 5, 10**12], "observed")  # too large to be counted in place
    assert (spread.values.tolist(), spread.chances.tolist()) == ([5, 10**12], [1 / 3, 2 / 3])


@pytest.mark.parametrize("seed", range(3))
def test_the_poisson_rate_solves_its_equation(seed):
    sizes = sizes_of(seed, "poisson", 200 * 3**seed)
    plain = size_distribution(sizes, "poisson", zero_truncated=False)
    assert plain.parameters == {"lambda": pytest.approx(sizes.mean(), rel=1e-14)}
    np.testing.assert_allclose(plain.chances, poisson(sizes.mean()).pmf(plain.values), rtol=1e-12)
    distribution = size_distribution(sizes, "poisson")
    rate = distribution.parameters["lambda"]
    assert rate / (1 - math.exp(-rate)) == pytest.approx(sizes[sizes > 0].mean(), rel=1e-13)
    np.testing.assert_allclose(
        distribution.chances, poisson(rate).pmf(distribution.values) / (1 - math.exp(-rate)), rtol=1e-12
    )


def test_a_truncated_rate_near_zero_keeps_its_digits():
    # One cell of two records in a million: rate / (1 - exp(-rate)) = 1 + rate/2 + rate**2/12.
    excess = 1e-6
    sizes = np.ones(1_000_000, dtype=int)
    sizes[0] = 2
    rate = size_distribution(sizes, "poisson").parameters["lambda"]
    assert rate == pytest.approx(2 * excess - 2 * excess**2 / 3, rel=1e-9)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_the_negative_binomial_is_the_best_of_an_optimiser(name, truncated):
    sizes = sizes_of(1, name)
    fitted = sizes[sizes > 0] if truncated else sizes
    distribution = size_distribution(sizes, "negative_binomial", truncated)
    r, chance = distribution.parameters["r"], distribution.parameters["lambda"]

    def minus(x):
        return -size_log_likelihood(math.exp(x[0]), 1 / (1 + math.exp(-x[1])), fitted, truncated)

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000}
    starts = [(0.0, -1.0), (3.0, -2.0), (math.log(r * 1.5), math.log(chance / (1 - chance)) - 0.2)]
    best = min(
        (minimize(minus, x, method="Nelder-Mead", options=options) for x in starts), key=lambda b: b.fun
    )
    assert size_log_likelihood(r, chance, fitted, truncated) >= -best.fun - 1e-9
    # The likelihood is level near its maximum, so the optimiser knows r less well than its value.
    assert math.exp(best.x[0]) == pytest.approx(r, rel=1e-3)
    assert 1 / (1 + math.exp(-best.x[1])) == pytest.approx(chance, rel=1e-3)
    law = nbinom(r, chance)
    total = 1 - law.pmf(0) if truncated else 1
    np.testing.assert_allclose(distribution.chances, law.pmf(distribution.values) / total, rtol=1e-9)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize(("r", "chance"), [(0.5, 0.1), (4.0, 0.6)])
def test_known_sizes_are_recovered(r, chance, truncated):
    # 8 comparisons at 5 standard errors: one false alarm in 210,000 choices of the seed.
    rng = np.random.default_rng([32, int(10 * r)])
    sizes = rng.negative_binomial(r, chance, 20_000)
    fitted = sizes[sizes > 0] if truncated else sizes
    values, cells = np.unique(fitted, return_counts=True)
    parameters = size_distribution(sizes, "negative_binomial", truncated).parameters
    estimate = np.array([parameters["r"], parameters["lambda"]])

    def value(x):
        law = nbinom(*x)
        return cells @ (law.logpmf(values) - (math.log(1 - law.pmf(0)) if truncated else 0))

    step = 1e-3 * estimate
    corners = [[value(estimate + step * (a, b)) for b in (-1, 0, 1)] for a in (-1, 0, 1)]
    c = np.array(corners)
    mixed = (c[2, 2] - c[2, 0] - c[0, 2] + c[0, 0]) / 4
    second = np.array([[c[2, 1] - 2 * c[1, 1] + c[0, 1], mixed], [mixed, c[1, 2] - 2 * c[1, 1] + c[1, 0]]])
    errors = np.sqrt(np.diag(np.linalg.inv(-second / np.outer(step, step))))
    assert (errors < 0.1 * estimate).all()
    assert (np.abs(estimate - (r, chance)) < 5 * errors).all()


size_lists = st.lists(st.integers(0, 30), min_size=2, max_size=30).filter(any)


@given(size_lists, st.booleans(), st.sampled_from(["poisson", "negative_binomial"]))
def test_fitted_laws_have_the_observed_mean_and_all_their_mass(sizes, truncated, model):
    try:
        distribution = size_distribution(sizes, model, truncated)
    except ParameterError:
        return
    parameters = distribution.parameters
    rate = parameters["lambda"]
    law = poisson(rate) if model == "poisson" else nbinom(parameters["r"], rate)
    whole = 1.0 if truncated else 1 - law.pmf(0)
    records, filled = sum(sizes), sum(size > 0 for size in sizes)
    mean = records / (filled if truncated else len(sizes))
    assert distribution.chances.sum() == pytest.approx(whole, rel=1e-9)
    assert distribution.chances @ distribution.values == pytest.approx(mean, rel=1e-9)
    assert (np.diff(distribution.values) == 1).all()
    assert distribution.values[0] >= 1
    share = 1 - law.pmf(0)
    missing = law.cdf(distribution.values[0] - 1) - law.cdf(0) + law.sf(distribution.values[-1])
    if share > 1e-3:
        assert -1e-13 < missing / share < 1.5e-13


@given(size_lists, st.integers(1, 3))
def test_a_plain_negative_binomial_exists_if_the_variance_exceeds_the_mean(sizes, copies):
    records, pairs, cells = sum(sizes), sum(n * (n - 1) for n in sizes), len(sizes)
    if pairs * cells > records**2:
        distribution = size_distribution(sizes, "negative_binomial", zero_truncated=False)
        again = size_distribution(sizes * copies, "negative_binomial", zero_truncated=False)
        assert again.parameters == {
            name: pytest.approx(x, rel=1e-6) for name, x in distribution.parameters.items()
        }
    else:
        with pytest.raises(ParameterError, match="no more than those of a Poisson") as caught:
            size_distribution(sizes, "negative_binomial", zero_truncated=False)
        assert caught.value.hint == 'sizes="poisson".'


@given(size_lists)
def test_a_truncated_negative_binomial_beats_a_grid_or_else_a_limit_does(sizes):
    filled = np.array([size for size in sizes if size])
    values, cells = np.unique(filled, return_counts=True)
    mean = filled.mean()
    spread = np.geomspace(1e-2, 1e3, 40)[:, np.newaxis]
    chance = 1 / (1 + mean * np.geomspace(0.05, 1, 40) / spread)
    laws = nbinom(spread[..., np.newaxis], chance[..., np.newaxis])
    best = ((laws.logpmf(values) - np.log(-np.expm1(laws.logpmf(0)))) @ cells).max()
    try:
        parameters = size_distribution(sizes, "negative_binomial").parameters
    except ParameterError as error:
        if "every cell has one record" in str(error):
            assert filled.max() == 1
        elif "Poisson" in str(error):
            rate = size_distribution(sizes, "poisson").parameters["lambda"]
            assert size_log_likelihood(math.inf, rate, filled, True) >= best - 1e-8
        else:
            series = minimize(
                lambda x: -(logser(1 / (1 + math.exp(-x[0]))).logpmf(values) @ cells),
                [0.0],
                method="Nelder-Mead",
            )
            assert -series.fun >= best - 1e-4
    else:
        value = size_log_likelihood(parameters["r"], parameters["lambda"], filled, True)
        assert value >= best - 1e-8


def test_a_maximum_below_a_limit_is_no_estimate(monkeypatch):
    monkeypatch.setattr(likelihood, "peaks_of", lambda *_: [5.0])  # as if the slope changed its sign there
    for truncated in (True, False):
        with pytest.raises(ParameterError, match="which fits at least as well"):
            size_distribution([1, 2, 2, 2, 3], "negative_binomial", truncated)
    with pytest.raises(ParameterError, match="as r falls to 0"):
        size_distribution(np.repeat([1, 2, 40], [50, 2, 3]), "negative_binomial")


def test_small_differences_keep_their_digits():
    for z in (1e-6, 0.01, 0.099, 0.1, 0.101, 3.0, 1e6):
        exact = Decimal(z) - (1 + Decimal(z)).ln()
        assert likelihood._gap(z) == pytest.approx(float(exact / Decimal(z) ** 2), rel=1e-13)
    for y in (1e-6, 0.01, 0.029, 0.03, 0.031, 2.0, 50.0):
        exact = 1 / (1 - (-Decimal(y)).exp()) - 1 / Decimal(y)
        assert likelihood._excess(y) == pytest.approx(float(exact), rel=1e-13)


def test_the_limits_of_the_likelihood_of_sizes():
    sizes = np.repeat([1, 2, 3, 8], [9, 5, 3, 2])
    tally = likelihood.tally_of(sizes)
    steps = likelihood.Steps.over([tally])
    counted = likelihood._SizeLikelihood(steps, 19, *likelihood.moments_of(tally), True)
    assert counted.pairs == 5 * 2 + 3 * 6 + 2 * 56
    assert counted.slope(1e9) == pytest.approx(counted.last_slope(), rel=1e-6)
    assert counted.value(1e9) == pytest.approx(counted.last_value(), rel=1e-8)
    chance = -math.expm1(-counted.series())
    exact = logser(chance).logpmf(sizes).sum() + gammaln(sizes + 1).sum()
    assert counted.last_value() == pytest.approx(exact, rel=1e-12)
    assert logser(chance).mean() == pytest.approx(sizes.mean(), rel=1e-12)
    for truncated in (True, False):
        counted = likelihood._SizeLikelihood(steps, 19, *likelihood.moments_of(tally), truncated)
        for phi in (1e-3, 0.3, 0.999, 1.001, 4.0, 300.0):
            step = 1e-4 * phi
            slope = (counted.value(phi + step) - counted.value(phi - step)) / (2 * step)
            assert counted.slope(phi) == pytest.approx(slope * max(1, phi) ** 2, rel=1e-5)


def test_many_ones_beside_large_cells_are_no_negative_binomial_given_one_record():
    sizes = np.repeat([0, 1, 2, 5, 40, 1000], [7, 500, 40, 10, 5, 2])
    with pytest.raises(ParameterError, match="as r falls to 0") as caught:
        size_distribution(sizes, "negative_binomial")
    assert 'sizes="observed"' in caught.value.hint
    filled = sizes[sizes > 0]
    values = []
    for r in (1.0, 0.1, 0.01, 0.001):
        grid = 1 / (1 + np.exp(np.linspace(-3, 15, 100)))
        values.append(max(size_log_likelihood(r, chance, filled, True) for chance in grid))
    assert values == sorted(values)
    assert size_distribution(sizes, "negative_binomial", zero_truncated=False).parameters["r"] < 1


@pytest.mark.parametrize("model", ["poisson", "negative_binomial"])
def test_single_records_have_no_truncated_law(model):
    with pytest.raises(ParameterError, match="every cell has one record") as caught:
        size_distribution([1, 0, 1, 1], model)
    assert 'sizes="observed"' in caught.value.hint
    assert size_distribution([1, 0, 1, 1], "poisson", zero_truncated=False).parameters == {"lambda": 0.75}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("truncated", [True, False])
def test_sizes_up_to_a_million(truncated):
    rng = np.random.default_rng(33)
    even = size_distribution(rng.poisson(1e6, 100), "poisson", truncated)
    rate = even.parameters["lambda"]
    mean = even.chances @ even.values
    assert mean == pytest.approx(rate, rel=1e-12)
    assert even.chances @ (even.values - mean) ** 2 == pytest.approx(rate, rel=1e-9)
    assert len(even.values) < 20_000
    spread = rng.negative_binomial(3, 3e-5, 500)
    assert 300_000 < spread.max() < 10**6
    distribution = size_distribution(spread, "negative_binomial", truncated)
    assert distribution.chances.sum() == pytest.approx(1, abs=1e-6)
    assert distribution.chances @ distribution.values == pytest.approx(spread.mean(), rel=1e-9)
    r, chance = distribution.parameters["r"], distribution.parameters["lambda"]
    expected = r * (1 - chance) / chance**2
    assert distribution.chances @ (distribution.values - spread.mean()) ** 2 == pytest.approx(
        expected, rel=1e-6
    )


def test_laws_that_reach_too_far_are_refused(monkeypatch):
    monkeypatch.setattr(likelihood, "MOST_SIZES", 2_000)
    with pytest.raises(ParameterError, match="more than 2,000 sizes"):
        size_distribution([1000, 1, 30], "negative_binomial", zero_truncated=False)
    assert len(size_distribution([1000, 900], "poisson").values) > 300


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([[777, 1]], "an array of whole numbers"),
        (["777"], "an array of whole numbers"),
        ([777, -1], "none negative"),
        ([777, 0.5], "whole numbers"),
        ([777, math.nan], "whole numbers"),
        ([0, 0], "at least one record"),
        (np.array([], dtype=int), "at least one record"),
    ],
)
def test_bad_sizes_are_refused(sizes, message):
    with pytest.raises(ParameterError, match=message) as caught:
        size_distribution(sizes, "observed")
    assert "777" not in str(caught.value)


@pytest.mark.parametrize("model", ["uniform", None, 3, ["poisson"]])
def test_unknown_models_are_refused(model):
    with pytest.raises(
        ParameterError, match="'sizes' must be one of 'observed', 'poisson', 'negative_binomial'"
    ):
        size_distribution([1, 2], model)


# Real counts


@pytest.mark.parametrize(
    ("name", "drop", "digits", "rate"),
    [
        ("adult_6qid_counts.csv.gz", 0, 1, 4.6),  # the cells of the paper: with the label
        ("bankruptcy_counts.csv", 1, 2, 2.43),
        ("bankruptcy_ff_counts.csv", 1, 2, 3.21),
    ],
)
def test_poisson_rates_of_the_paper(count_rows, name, drop, digits, rate):
    # Footnote 6: the rate of the plain law, empty cells left out.
    table = count_rows(name)
    by = list(table.columns[: len(table.columns) - 1 - drop])
    sizes = table.groupby(by)[table.columns[-1]].sum()
    parameters = size_distribution(sizes, "poisson", zero_truncated=False).parameters
    assert round(parameters["lambda"], digits) == rate


@pytest.mark.parametrize(
    ("name", "labels"), [("adult_6qid_counts.csv.gz", 2), ("bankruptcy_ff_counts.csv", 3)]
)
def test_alpha_of_real_cells_is_a_maximum(count_rows, name, labels):
    table = count_rows(name)
    sensitive, count = table.columns[-2:]
    counts = table.pivot_table(
        index=list(table.columns[:-2]), columns=sensitive, values=count, aggfunc="sum", fill_value=0
    ).to_numpy()
    alpha = dirichlet_alpha(counts)
    assert alpha.shape == (labels,)
    assert np.abs(score(alpha, counts)).max() < 1e-9
    assert (np.linalg.eigvalsh(information(alpha, counts)) > 0).all()


@pytest.mark.full
def test_the_models_load_no_scipy():
    code = "import sys, pdprivacy.risk.likelihood; print('scipy' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"
