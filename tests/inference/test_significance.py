"""Tests of hypotheses from released numbers: their levels, their power, and what they refuse."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core.noise import noise_sums
from pdprivacy.errors import DeclarationWarning, MetadataError, ParameterError
from pdprivacy.inference import significance
from tests.support.statistics import accepts_share

DOMAIN = Domain(
    (
        Column("a", "category", categories=("p", "q", "r")),
        Column("b", "boolean", True),
        Column("x", "float", lower=0, upper=1),
        Column("y", "float", lower=0, upper=1),
    )
)


def frame(size: int, seed: int, *, dependent: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.choice(["p", "q", "r"], size, p=[0.5, 0.3, 0.2])
    x = rng.beta(2, 3, size)
    y = rng.beta(3, 2, size)
    b = rng.random(size) < (np.where(a == "p", 0.3, 0.5) if dependent else 0.4)
    return pd.DataFrame(
        {"a": a, "b": pd.array(b, dtype="boolean"), "x": x, "y": (x + y) / 2 if dependent else y}
    )


def protected(some: pd.DataFrame) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        return pdprivacy.protect(some, DOMAIN, epsilon=10**9, delta=0.1)


@pytest.fixture(scope="module")
def private() -> Any:
    return protected(frame(3000, 1, dependent=True))


@pytest.fixture(scope="module")
def table(private: Any) -> pd.DataFrame:
    return private.dp.crosstab("a", "b", epsilon=1, rng=1)


# ---------------------------------------------------------------- agreement with scipy where noise is small


def test_with_little_noise_statistics_and_p_values_are_those_of_scipy():
    some = frame(400, 6)
    private = protected(some)
    result = pdprivacy.chi2_contingency(private.dp.crosstab("a", "b", epsilon=1000, rng=1), rng=1)
    exact = stats.chi2_contingency(pd.crosstab(some["a"], some["b"]), correction=False)
    assert result.statistic == pytest.approx(exact.statistic)
    assert result.pvalue == pytest.approx(exact.pvalue, abs=0.03)
    first, second = (
        private.query(condition).dp.describe("x", epsilon=10**5, rng=1) for condition in ("b", "not b")
    )
    t = pdprivacy.ttest_ind(first, second, "x", rng=1)
    exact = stats.ttest_ind(some["x"][some["b"]], some["x"][~some["b"]], equal_var=False)
    assert t.statistic == pytest.approx(exact.statistic, abs=0.02)
    assert t.pvalue == pytest.approx(exact.pvalue, abs=0.03)
    r = pdprivacy.pearsonr(private.dp.corr(["x", "y"], epsilon=10**5, rng=1), "x", "y", rows=400, rng=1)
    exact = stats.pearsonr(some["x"], some["y"])
    assert r.statistic == pytest.approx(exact.statistic, abs=1e-3)
    assert r.pvalue == pytest.approx(exact.pvalue, abs=0.03)


def test_cells_of_nulls_are_left_out():
    some = frame(400, 6)
    some.loc[:99, "b"] = pd.NA
    result = pdprivacy.chi2_contingency(protected(some).dp.crosstab("a", "b", epsilon=1000, rng=1), rng=1)
    exact = stats.chi2_contingency(pd.crosstab(some["a"], some["b"]), correction=False)
    assert result.statistic == pytest.approx(exact.statistic)


def test_effects_that_stand_out_of_the_noise_are_found(private, table):
    assert pdprivacy.chi2_contingency(table, rng=1).pvalue < 0.001
    corr = private.dp.corr(["x", "y"], epsilon=2, rng=1)
    assert pdprivacy.pearsonr(corr, "x", "y", rows=private.dp.count(epsilon=1, rng=1), rng=1).pvalue < 0.001
    p, others = (
        private.query(condition).dp.describe(["b"], epsilon=2, rng=1)
        for condition in ("a == 'p'", "a != 'p'")
    )
    assert pdprivacy.ttest_ind(p, others, "b", rng=1).pvalue < 0.001


# ---------------------------------------------------------------- levels

LEVEL = 0.05


def at_level(rejected: int, trials: int) -> bool:
    """Whether a test may reject between 4 and 6 % of true hypotheses."""
    return accepts_share(rejected, trials, 0.04, "less") and accepts_share(rejected, trials, 0.06, "greater")


@pytest.mark.full
@pytest.mark.parametrize("rows", [500, 2000, 50_000])
@pytest.mark.parametrize(
    ("mechanism", "multiplier"), [("geometric", 1.0), ("laplace", 1.0), ("gaussian", 4.2)]
)
@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
def test_independent_tables_are_rejected_as_often_as_the_level_says(rows, mechanism, multiplier, shape):
    """From tables with noise of each scale; less often where noise is large beside an expected count."""
    rng = np.random.default_rng([rows, *shape])
    shares = np.outer(*(np.arange(size, 0, -1) / np.arange(size, 0, -1).sum() for size in shape))
    trials, draws = 2000, 399
    for epsilon in (0.5, 1, 2):
        scale = multiplier / epsilon
        tables = rng.multinomial(rows, shares.ravel(), trials).astype(float)
        tables += noise_sums(mechanism, scale, 1, tables.shape, rng)
        rejected = valid = 0
        for counts in tables.reshape(-1, *shape):
            expected = significance._expected(counts[np.newaxis])[0]
            if expected.min() < significance.LEAST_EXPECTED:
                continue
            valid += 1
            null = significance._simulated(counts, expected, mechanism, scale, draws, rng)
            rejected += (
                significance._result(float(significance._pearson(counts[np.newaxis])[0]), null, "").pvalue
                <= LEVEL
            )
        clear = rows * shares.min() > 2 * significance.CLEAR * significance._deviation(mechanism, scale)
        if clear and valid == trials:
            assert at_level(rejected, valid), (epsilon, rejected / valid)
        else:
            assert accepts_share(rejected, max(valid, 1), 0.06, "greater"), (epsilon, rejected, valid)


@pytest.mark.full
@pytest.mark.parametrize("rows", [500, 5000])
@pytest.mark.parametrize(
    "options", [{}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"]
)
def test_equal_means_and_no_correlation_are_rejected_as_often_as_the_level_says(rows, options):
    """By releases of samples of one population, two of them for means and one for a correlation."""
    rng = np.random.default_rng([rows, len(options)])
    rejected, valid = np.zeros(3), np.zeros(3)
    for _ in range(500):
        samples = [protected(frame(size, int(rng.integers(2**31)))) for size in (rows, rows // 2)]
        words: dict[str, Any] = {"epsilon": 1, "rng": int(rng.integers(2**31)), **options}
        described = [
            item.dp.describe(["x", "b"], **{**words, "rng": words["rng"] + position})
            for position, item in enumerate(samples)
        ]
        corr = samples[0].dp.corr(["x", "y"], **words)
        tests = [
            *(pdprivacy.ttest_ind(*described, name, draws=399, rng=rng) for name in ("x", "b")),
            pdprivacy.pearsonr(corr, "x", "y", rows=rows, draws=399, rng=rng),
        ]
        for position, item in enumerate(tests):
            valid[position] += np.isfinite(item.pvalue)
            rejected[position] += item.pvalue <= LEVEL
    for item, total in zip(rejected, valid, strict=True):
        assert total > 300
        assert at_level(int(item), int(total)), item / total


def test_scipy_on_noisy_counts_rejects_true_hypotheses_too_often():
    """With noise of deviation 14 in cells of 250, which is the reason for these tests."""
    rng = np.random.default_rng(7)
    tables = rng.multinomial(1000, [0.25] * 4, 400) + noise_sums("geometric", 10.0, 1, (400, 4), rng)
    pvalues = [stats.chi2_contingency(noisy.reshape(2, 2), correction=False).pvalue for noisy in tables]
    assert not accepts_share(int((np.array(pvalues) <= LEVEL).sum()), 400, 0.06, "greater")


# ---------------------------------------------------------------- no p-value, and refusals


def test_where_noise_hides_what_a_test_needs_there_is_no_p_value(private):
    few = protected(frame(40, 3))
    for result in (
        pdprivacy.chi2_contingency(few.dp.crosstab("a", "b", epsilon=1, rng=2)),
        pdprivacy.pearsonr(few.dp.corr(["x", "y"], epsilon=0.1, rng=1), "x", "y", rows=40),
        pdprivacy.ttest_ind(
            few.dp.describe("x", epsilon=0.1, rng=1), private.dp.describe("x", epsilon=1, rng=1), "x"
        ),
    ):
        assert np.isnan(result.pvalue)
        assert result.note.startswith("no p-value")


def test_large_noise_beside_an_expected_count_is_said(private):
    table = private.dp.crosstab("a", "b", epsilon=0.01, rng=1)
    assert "large beside an expected count" in pdprivacy.chi2_contingency(table, draws=99, rng=1).note


def test_results_do_not_change_and_seeds_repeat_them(table):
    first, second = (pdprivacy.chi2_contingency(table, draws=500, rng=3) for _ in range(2))
    assert first == second
    assert first.draws == 500
    with pytest.raises(FrozenInstanceError):
        first.pvalue = 0.5  # type: ignore[misc]


def test_unreleased_tables_and_other_noise_are_refused(private, table):
    plain = pd.crosstab(frame(50, 1)["a"], frame(50, 1)["b"])
    changed = table + 1
    refused: list[tuple[Any, type[Exception], str]] = [
        (plain, MetadataError, "no release metadata"),
        (changed, MetadataError, "not those that were released"),
        (private.dp.corr(["x", "y"], epsilon=1), MetadataError, "does not test"),
        (private.dp.value_counts("a", epsilon=1), ParameterError, "a released DataFrame"),
        (private.dp.crosstab("a", "b", epsilon=1, normalize="all"), ParameterError, "counts without margins"),
        (private.dp.crosstab("a", "b", epsilon=1, margins=True), ParameterError, "counts without margins"),
        (private.dp.crosstab("a", "b", epsilon=1, releases=2), ParameterError, "single release"),
        (private.dp.crosstab("a", "b", epsilon=1, constraint="nonnegative"), ParameterError, "simulates"),
        (
            private.dp.crosstab("a", "b", epsilon=1, mechanism="generalized_gaussian", p=3, delta=1e-6),
            ParameterError,
            "simulates",
        ),
        ([[1, 2], [3, 4]], ParameterError, "a released DataFrame"),
    ]
    for source, error, message in refused:
        with pytest.raises(error, match=message):
            pdprivacy.chi2_contingency(source)


def test_what_is_no_independent_count_of_records_is_refused():
    domain = Domain(
        (*DOMAIN.columns, Column("w", "float", lower=0, upper=3), Column("u", "integer", lower=0, upper=99))
    )
    some = frame(200, 1).assign(w=1.5, u=np.arange(200) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        whole = pdprivacy.protect(some, domain, epsilon=100)
        units = pdprivacy.protect(some, domain, epsilon=100, unit="u", max_rows=2)
    with pytest.raises(ParameterError, match="sums of weights"):
        pdprivacy.chi2_contingency(whole.dp.crosstab("a", "b", weights="w", epsilon=1))
    for test in (
        lambda: pdprivacy.chi2_contingency(units.dp.crosstab("a", "b", epsilon=1)),
        lambda: pdprivacy.pearsonr(units.dp.corr(["x", "y"], epsilon=1), "x", "y", rows=200),
        lambda: pdprivacy.ttest_ind(*(units.dp.describe("x", epsilon=1) for _ in "ab"), "x"),
    ):
        with pytest.raises(ParameterError, match="those of one unit"):
            test()


def test_one_release_twice_and_columns_that_read_alike_are_refused(private):
    described = private.dp.describe("x", epsilon=1)
    with pytest.raises(ParameterError, match="different records"):
        pdprivacy.ttest_ind(described, described.copy(), "x")
    domain = Domain((Column(1, "float", lower=0, upper=1), Column("1", "float", lower=0, upper=1000)))
    some = pd.DataFrame({1: np.linspace(0.1, 0.9, 500), "1": np.linspace(1, 999, 500)})
    ambiguous = pdprivacy.protect(some, domain, epsilon=100)
    with pytest.raises(ParameterError, match="read '1'"):
        pdprivacy.ttest_ind(*(ambiguous.dp.describe(epsilon=1) for _ in "ab"), 1)


def test_the_rows_of_a_correlation_are_those_without_nulls(private):
    with pytest.raises(ParameterError, match=r"private\.dropna\(\['x', 'y'\]\)"):
        pdprivacy.pearsonr(private.dp.corr(["x", "y"], epsilon=1), "x", "y")


def test_columns_rows_and_draws_are_checked(private, table):
    described, corr = private.dp.describe("x", epsilon=1), private.dp.corr(["x", "y"], epsilon=1)
    for call, message in (
        (lambda: pdprivacy.ttest_ind(described, described, "x"), "different records"),
        (lambda: pdprivacy.ttest_ind(described, private.dp.describe("x", epsilon=1), "y"), "'column'"),
        (lambda: pdprivacy.ttest_ind(described, private.dp.describe("x", epsilon=1), ["x"]), "'column'"),
        (lambda: pdprivacy.pearsonr(corr, "x", "z", rows=10), "two columns"),
        (lambda: pdprivacy.pearsonr(corr, "x", "x", rows=10), "two columns"),
        (lambda: pdprivacy.pearsonr(corr, "x", "y"), "not public"),
        (lambda: pdprivacy.pearsonr(corr, "x", "y", rows=[1, 2]), "one number"),
        (lambda: pdprivacy.chi2_contingency(table, draws=5), "'draws'"),
        (lambda: pdprivacy.chi2_contingency(table, rng="a"), "rng"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
