"""Costs of omission: the guarantee of both releases, and errors that are known in closed form.

Statistical tests are seeded; each is wrong with a probability below 1e-6 if the code is right.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binom, binomtest, hypergeom, t

from pdprivacy import Budget, releases
from pdprivacy.amplification import omission
from pdprivacy.amplification.suppression import (
    outlier_epsilon,
    outlier_floor,
    sampling_epsilon,
    sampling_target,
)
from pdprivacy.amplification.suppression.amplification import Outliers
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.records import records_of as opened
from pdprivacy.core.gate.records import seal
from pdprivacy.errors import ArgumentError, DeclarationError, OmissionWarning, ParameterError, PrivacyError
from pdprivacy.frames import find
from tests.support.statistics import accepts_same, accepts_share

# the table of ones and zeros reaches both of its bounds
pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.DeclarationWarning")

SIGMAS = 4.9
DP: dict[str, Any] = {"dp": {}}
SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(0, 100), metadata=DP),
        "one": pa.Column(int, pa.Check.in_range(0, 1), metadata=DP),
        "income": pa.Column(float, pa.Check.in_range(0, 1000), nullable=True, metadata=DP),
        "sex": pa.Column(str, pa.Check.isin(["f", "m", "x"]), metadata=DP),
    }
)
ROWS, ONES = 60, 24


def survey(rows: int = ROWS) -> pd.DataFrame:
    positions = np.arange(rows)
    income = 50.0 + (positions * 61) % 900
    income[::7] = np.nan
    return pd.DataFrame(
        {
            "age": 1 + (positions * 37) % 98,
            "one": (positions < ONES).astype(int),
            "income": income,
            "sex": np.where(positions % 3, "f", "m"),
            "who": positions // 2,
        }
    )


def private(rows: int = ROWS, **options: Any) -> pd.DataFrame:
    return survey(rows).dp.protect(SCHEMA, epsilon=1, delta=1e-3, **options)


@pytest.fixture
def watched(monkeypatch):
    """Every release that is made: the facts it saw, what it was told, what it gave and what it charged."""
    calls: list[dict[str, Any]] = []
    budgets: list[Budget] = []
    opened, release = Budget.with_total, omission._Comparison.release

    def open_budget(*args: Any, **more: Any) -> Budget:
        budgets.append(opened(*args, **more))
        return budgets[-1]

    monkeypatch.setattr(Budget, "with_total", staticmethod(open_budget))

    def watch(name: str, answer: Any = None) -> list[dict[str, Any]]:
        def watched(request: Any, facts: Facts, cost: Any, state: Any) -> Any:
            assert request.name == name
            result = release(request, facts, cost, state) if answer is None else answer(facts)
            calls.append(
                {"facts": facts, "words": {"epsilon": cost.epsilon, "delta": cost.delta}, "found": result}
            )
            if answer is None:
                calls[-1] |= {"spent": budgets[-1].spent, "total": budgets[-1].total}
            return result

        monkeypatch.setattr(omission._Comparison, "release", watched)
        return calls

    return watch


# ---------------------------------------------------------------- the guarantee


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("statistic", ["mean", "noisy_average", "count", "median"])
@pytest.mark.parametrize("rate", ["0.03", "1/3", "0.9"])
def test_the_sample_is_released_at_what_the_sampling_leaves_of_the_same_epsilon(watched, statistic, rate):
    calls = watched(statistic)
    levels = [Fraction(1, 4), Fraction(2)]
    table = private().dp.compare_sampling(
        statistic, "age", epsilon=levels, rates=[rate], repetitions=3, rng=1
    )
    assert [call["words"]["epsilon"] for call in calls] == 3 * levels + 3 * [
        sampling_target(level, rate).epsilon for level in levels
    ]
    for call, level in zip(calls[6:], itertools.cycle(levels), strict=False):
        inner = call["words"]["epsilon"]
        whole = sampling_epsilon(inner, rate).epsilon
        assert level * (1 - Fraction(1, 10**15)) < whole <= level
        # what was charged for the part is what it may cost, however many charges it takes
        assert call["spent"][0] == pytest.approx(float(inner), rel=1e-12)
        assert call["total"].epsilon == inner
    assert table["part_epsilon"].tolist() == [float(sampling_target(level, rate).epsilon) for level in levels]


def test_delta_is_divided_by_the_share_that_may_be_kept(watched):
    calls = watched("noisy_average")
    frame, how = private(), {"mechanism": "gaussian", "delta": "1e-6", "repetitions": 2, "rng": 1}
    frame.dp.compare_sampling("noisy_average", "age", epsilon=1, rates=["0.2"], **how)
    assert [call["words"]["delta"] for call in calls] == [Fraction(1, 10**6)] * 2 + [Fraction(5, 10**6)] * 2
    assert all(
        call["spent"] == pytest.approx([float(call["words"][w]) for w in ("epsilon", "delta")])
        for call in calls
    )
    calls.clear()
    frame.dp.compare_suppression("noisy_average", "age", epsilon=1, spreads=[("0.5", "0.6")], **how)
    assert [call["words"]["delta"] for call in calls] == [Fraction(1, 10**6)] * 2 + [Fraction(2, 10**6)] * 2
    inner = calls[-1]["words"]["epsilon"]
    assert 1 - 1e-9 < Outliers(Fraction(1, 2), Fraction(3, 5)).whole(inner) <= 1
    assert outlier_epsilon(inner, "0.5", "0.6") < 1  # by what the rounding of probabilities may cost


def test_the_guarantee_is_that_of_the_secret_part_itself():
    """The same epsilon and noise as a release of a sample with spend="noise"."""
    frame = private()
    table = frame.dp.compare_sampling("sum", "age", epsilon=0.5, rates=[0.3], repetitions=2, rng=1)
    with pytest.warns(OmissionWarning):
        part = frame.dp.sample(frac=0.3)
    scale = part.dp.sum("age", epsilon=0.5).attrs["dp"]["scale"]
    assert 100 / scale == pytest.approx(table["part_epsilon"].iloc[0], rel=1e-6)


@pytest.mark.parametrize("statistic", ["mean", "noisy_average"])
def test_with_equal_noise_both_releases_have_the_same_epsilon_and_the_whole_pays_what_it_should(
    watched, statistic
):
    """ln(1 + rate (e^epsilon - 1)) for coins of one rate; for outliers the bound at its best p of a grid."""
    calls = watched(statistic)
    levels = [0.5, 2.0]
    words = {"epsilon": levels, "spend": "epsilon", "repetitions": 2, "rng": 1}
    sampled = private().dp.compare_sampling(statistic, "age", rates=[0.3], **words)
    left = private().dp.compare_suppression(statistic, "age", spreads=[(0.7, 0.7), (0.1, 0.3)], **words)
    assert [float(call["words"]["epsilon"]) for call in calls] == levels * 10
    assert sampled["part_epsilon"].tolist() == levels
    assert sampled["whole_epsilon"].tolist() == pytest.approx(np.log1p(0.3 * np.expm1(levels)), rel=1e-12)
    assert left["whole_epsilon"].iloc[::2].tolist() == sampled["whole_epsilon"].tolist()
    p = np.linspace(0, 1, 100_001)
    q = 0.3 * p + 0.1 * (1 - p)
    t = (0.3 + 0.1 - 0.3 * p) / (2 - p)
    for level, whole in zip(levels, left["whole_epsilon"].iloc[1::2], strict=True):
        gain = np.expm1(level)
        first = np.log(1 + gain * (1 - q)) + p * 3 + (1 - p) * 0.9 / (1 - q) - 1
        other = np.log(1 + gain * (1 - 0.3 * p - (1 - p) * t)) + p * 3 + (1 - p) * (1 - t) / 0.7 - 1
        assert 0.0005 <= whole - max(first.max(), other.max()) < 0.0006  # of rounded probabilities
    assert sampled.attrs["dp"]["spend"] == left.attrs["dp"]["spend"] == "epsilon"


def test_equal_noise_has_no_floor_and_no_loss_above_what_is_proved():
    comparison = private().dp.compare_suppression(
        "mean", "age", epsilon=[0.25, 100, 101], spreads=[(0.1, 0.5)], spend="epsilon", repetitions=2, rng=1
    )
    assert outlier_floor(0.1, 0.5) > 0.25
    assert comparison["error"].isna().tolist() == [False, False, True]
    assert comparison["without"].notna().all()
    assert (comparison["whole_epsilon"].iloc[:2] > [4, 100]).all()


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
def test_releases_after_suppression_stay_below_the_largest_epsilon_with_a_proof():
    frame = survey().dp.protect(SCHEMA, epsilon=1000)
    part = frame.dp.suppress_outliers("age", 0.1, 0.5, spend="epsilon")
    part.dp.mean("age", epsilon=60)
    spent = frame.dp.budget.spent
    with pytest.raises(ParameterError, match="at most 100 in all"):
        part.dp.mean("age", epsilon=41)
    assert frame.dp.budget.spent == spent
    assert 30 < part.dp.remaining() <= 40
    part.dp.mean("age", epsilon=40)
    with pytest.raises(ParameterError, match="at most 100 in all"):
        part.dp.mean("age", epsilon=0.1)


OPTIONS: list[dict[str, Any]] = [
    {}, {"speed": 1}, {"protected": 1}, {"columns": "age"}, {"q": 0.9}, {"k": 3}, {"iterations": 2},
    {"split": {"age": 1}}, {"split": [1]}, {"weights": "one"}, {"p": 3}, {"noise": "exponential"},
    {"bounding": None}, {"bounding": "clamp", "bounds": (0, 9000)}, {"bounds": (0, 50)},
    {"calibration": "analytic"}, {"delta": "1e-6"}, {"delta": None},
    *({"mechanism": name, "delta": delta}
      for name in ("laplace", "gaussian", "staircase", "noisy_max", "permute_and_flip", None)
      for delta in (0, "1e-6")),
]  # fmt: skip


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("spend", ["noise", "epsilon", "time"])
@pytest.mark.parametrize("statistic", sorted(omission.STATISTICS))
@pytest.mark.parametrize("compare", ["compare_sampling", "compare_suppression"])
def test_every_statistic_takes_an_option_or_says_why_not(compare, statistic, spend):
    """An error is one of the package, and names no part of the statistic; else only data are missing."""
    ways = {"rates": [0.5]} if compare == "compare_sampling" else {"spreads": [(0.5, 0.6)]}
    words = {"epsilon": 2, "spend": spend, "repetitions": 2, "rng": 1, **ways}
    if statistic in ("kmeans", "kmedian"):
        words["k"] = 2
    frame = unread()
    for options in OPTIONS:
        with pytest.raises((PrivacyError, TypeError, AssertionError)) as error:
            getattr(releases, compare)(frame, statistic, "age", **(words | options))
        text = str(error.value)
        if error.type is AssertionError:
            assert text.startswith("the data were read: ")
            assert spend != "time"
        elif not issubclass(error.type, PrivacyError):
            assert "multiple values for argument 'columns'" in text
        elif statistic == "noisy_average":
            assert "'sum'" not in text
            assert "'count'" not in text


def test_nothing_is_charged_and_the_frame_says_that_it_is_confidential():
    frame = private()
    sampled = frame.dp.compare_sampling("mean", ["age", "income"], epsilon=[0.5, 1], repetitions=2, rng=1)
    left = frame.dp.compare_suppression(
        "mode", "sex", epsilon=[1], spreads=[(0.1, 0.1)], repetitions=2, rng=1
    )
    assert frame.dp.budget.spent == (0.0, 0.0)
    assert len(frame.dp.budget.entries) == 0
    assert sampled.columns.name == left.columns.name == "confidential"
    assert sampled.attrs["dp"] == {
        "confidential": "compare_sampling",
        "statistic": "mean",
        "columns": ["age", "income"],
        "error": "mean percent error",
        "neighbors": "add_remove",
        "spend": "noise",
    }
    assert left.attrs["dp"]["distance"] == "discrete"
    assert all(isinstance(word, str) for word in left.attrs["dp"].values() if not isinstance(word, list))
    assert releases.compare_sampling.__doc__.startswith("CONFIDENTIAL")
    assert releases.compare_suppression.__doc__.startswith("CONFIDENTIAL")


# ---------------------------------------------------------------- who is in a part


@pytest.mark.full
def test_rate_one_is_the_release_of_all_records(watched):
    """The released numbers have one distribution; that of a quarter of the epsilon is another."""
    calls, repetitions = watched("mean"), 500
    private().dp.compare_sampling("mean", "age", epsilon=[1, 0.25], rates=[1], repetitions=repetitions, rng=5)
    values = np.array([float(call["found"].iloc[0]) for call in calls]).reshape(2, repetitions, 2)
    (all_at_1, _), (sample_at_1, sample_less) = values[0].T, values[1].T
    assert accepts_same(all_at_1, sample_at_1)
    assert not accepts_same(all_at_1, sample_less)
    assert all(len(opened(call["facts"]).snapshot) == ROWS for call in calls)


@pytest.mark.full
def test_every_repetition_draws_a_part_of_its_own(watched):
    calls = watched("mean")
    private().dp.compare_sampling("mean", "age", epsilon=1, rates=[0.5], repetitions=50, rng=1)
    parts = [frozenset(opened(call["facts"]).snapshot.index) for call in calls[50:]]
    assert len(set(parts)) == 50
    assert accepts_share(sum(map(len, parts)), 50 * ROWS, 0.5)
    assert all(call["facts"].scope == find(private()).scope.of_subset() for call in calls[50:])


def test_under_replacement_so_many_of_the_public_number_are_drawn(watched):
    calls = watched("mean")
    frame = private(neighbors="replace_one")
    frame.dp.compare_sampling("mean", "age", epsilon=1, rates=[0.001, 0.31, 1], repetitions=4, rng=1)
    sizes = [len(opened(call["facts"]).snapshot) for call in calls]
    assert sizes == [ROWS] * 4 + [1] * 4 + [19] * 4 + [ROWS] * 4
    assert [call["facts"].scope.rows for call in calls] == sizes
    rates = [Fraction(size, ROWS) for size in sizes]
    assert [call["words"]["epsilon"] for call in calls] == [
        sampling_target(1, rate).epsilon for rate in rates
    ]


def test_units_are_sampled_with_all_their_records(watched):
    calls = watched("count")
    frame = survey().dp.protect(SCHEMA, epsilon=1, unit="who", max_rows=2)
    frame.dp.compare_sampling("count", epsilon=1, rates=[0.4], repetitions=30, rng=1)
    for call in calls[30:]:
        rows = set(opened(call["facts"]).snapshot.index)
        assert {row ^ 1 for row in rows} == rows  # a unit has an even place and the next one


# ---------------------------------------------------------------- errors


def expected_share(ones: Any, zeros: Any) -> float:
    """E |A / max(A + B, 1) - p| / p of independent numbers of ones and zeros that are kept."""
    share = ONES / ROWS
    a, b = np.arange(ONES + 1)[:, None], np.arange(ROWS - ONES + 1)
    chance = ones.pmf(a) * zeros.pmf(b)
    return float((chance * np.abs(a / np.maximum(a + b, 1) - share)).sum() / share)


def held_to(comparison: pd.DataFrame, expected: float, repetitions: int) -> None:
    """The expected error is accepted, and 0.8 and 1.25 times it are rejected, by the same test."""
    row = comparison.iloc[0]
    error = (row["upper"] - row["lower"]) / 2 / t.ppf(0.975, repetitions - 1)
    accepted = [abs(row["error"] - factor * expected) <= SIGMAS * error for factor in (0.8, 1, 1.25)]
    assert accepted == [False, True, False]


MANY = 600


@pytest.mark.full
@pytest.mark.parametrize("statistic", ["mean", "noisy_average"])
def test_without_noise_the_error_of_a_mean_is_that_of_a_poisson_sample(statistic):
    comparison = private().dp.compare_sampling(
        statistic, "one", epsilon=10**5, rates=[0.3], repetitions=MANY, rng=11
    )
    held_to(comparison, expected_share(binom(ONES, 0.3), binom(ROWS - ONES, 0.3)), MANY)
    assert comparison["without"].iloc[0] < 1e-3


@pytest.mark.full
def test_without_noise_the_error_of_a_mean_is_that_of_a_sample_without_replacement():
    comparison = private(neighbors="replace_one").dp.compare_sampling(
        "mean", "one", epsilon=10**5, rates=[0.2], repetitions=MANY, rng=12
    )
    size = round(0.2 * ROWS)
    a = np.arange(size + 1)
    error = np.abs(a / size - ONES / ROWS) * hypergeom(ROWS, ONES, size).pmf(a)
    held_to(comparison, float(error.sum()) * ROWS / ONES, MANY)


@pytest.mark.full
@pytest.mark.parametrize("statistic", ["count", "sum"])
def test_counts_and_sums_are_scaled_up_to_all_records(statistic):
    comparison = private().dp.compare_sampling(
        statistic, "one", epsilon=10**5, rates=[0.3], repetitions=MANY, rng=13
    )
    n = ROWS if statistic == "count" else ONES
    a = np.arange(n + 1)
    held_to(comparison, float((np.abs(a / 0.3 - n) * binom(n, 0.3).pmf(a)).sum()) / n, MANY)


@pytest.mark.full
@pytest.mark.parametrize("distance", ["absolute", "discrete"])
def test_without_noise_the_error_of_a_mean_is_that_of_what_suppression_leaves(distance):
    """A one is at distance 1 from all zeros, and the other way round, so that ones are left out likelier."""
    low, high = 0.1, 0.7
    comparison = private().dp.compare_suppression(
        "mean", "one", epsilon=100, spreads=[(low, high)], distance=distance, repetitions=MANY, rng=14
    )
    keep_one, keep_zero = (1 - (low + (high - low) * far / ROWS) for far in (ROWS - ONES, ONES))
    expected = expected_share(binom(ONES, keep_one), binom(ROWS - ONES, keep_zero))
    held_to(comparison, expected, MANY)


def constant(values: list[float]) -> Any:
    """A release that gives these numbers, over and over."""
    turn = itertools.cycle(values)
    return lambda _: pd.Series([next(turn)])


def test_intervals_of_numbers_are_students(watched):
    values = [40.0, 55.0, 47.0, 61.0, 30.0]
    watched("mean", constant(values))
    comparison = (
        private().dp.compare_sampling("mean", "age", epsilon=1, rates=[0.5], repetitions=5, rng=1).iloc[0]
    )
    truth = survey()["age"].mean()
    errors = np.abs(np.array(values) - truth) / truth
    low, high = t.interval(0.95, 4, errors.mean(), errors.std(ddof=1) / math.sqrt(5))
    for kind in (["error", "lower", "upper"], ["without", "without_lower", "without_upper"]):
        assert comparison[kind].tolist() == pytest.approx([errors.mean(), low, high])
    half = (high - low) / math.sqrt(2)
    apart = comparison[["difference", "difference_lower", "difference_upper"]].tolist()
    assert apart == pytest.approx([0, -half, half])
    assert not comparison["worse"]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 50, 199])
def test_intervals_of_any_number_of_repetitions_are_students(watched, freedom):
    repetitions = freedom + 1
    values = [0.0] * freedom + [100.0]
    watched("mean", constant(values))
    comparison = private().dp.compare_sampling(
        "mean", "one", epsilon=1, rates=[0.5], repetitions=repetitions, rng=1
    )
    truth = ONES / ROWS
    errors = np.abs(np.array(values) - truth) / truth
    half = t.ppf(0.975, freedom) * errors.std(ddof=1) / math.sqrt(repetitions)
    assert (comparison["upper"] - comparison["error"]).iloc[0] == pytest.approx(half, rel=1e-7)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("wrong", [(0, 0), (0, 7), (3, 12), (12, 12), (5, 4)])
def test_intervals_of_chances_are_wilsons_and_their_difference_newcombes(watched, wrong):
    n = 12
    labels = [["m"] * count + ["f"] * (n - count) for count in wrong]  # "f" has the largest count
    turn = iter([*labels[0], *labels[1]])
    watched("mode", lambda _: pd.Series([next(turn)]))
    comparison = (
        private().dp.compare_sampling("mode", "sex", epsilon=1, rates=[0.5], repetitions=n, rng=1).iloc[0]
    )
    wholes, parts = (binomtest(k, n).proportion_ci(0.95, method="wilson") for k in wrong)
    without, error = (k / n for k in wrong)
    assert comparison[["error", "lower", "upper"]].tolist() == pytest.approx([error, parts.low, parts.high])
    assert comparison[["without", "without_lower", "without_upper"]].tolist() == pytest.approx(
        [without, wholes.low, wholes.high]
    )
    low = error - without - math.hypot(error - parts.low, wholes.high - without)
    high = error - without + math.hypot(parts.high - error, without - wholes.low)
    assert comparison[["difference_lower", "difference_upper"]].tolist() == pytest.approx([low, high])
    assert bool(comparison["worse"]) == (low > 0)


def test_any_of_several_most_frequent_labels_is_right(watched):
    rows = pd.DataFrame({"sex": ["f"] * 5 + ["m"] * 5 + ["x"] * 4})
    turn = itertools.cycle(["f", "m", "x", "x"])
    watched("mode", lambda _: pd.Series([next(turn)]))
    frame = rows.dp.protect(pa.DataFrameSchema({"sex": SCHEMA.columns["sex"]}), epsilon=1)
    comparison = frame.dp.compare_sampling("mode", "sex", epsilon=1, rates=[0.5], repetitions=8, rng=1)
    assert comparison["error"].iloc[0] == 0.5


@pytest.mark.parametrize("statistic", ["kmeans", "kmedian"])
def test_clusterings_are_judged_by_all_records_and_their_nearest_centre(watched, statistic):
    """Against all distances; ranges of 2 for k-means, of 1 for k-median, a constant column left out."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"a": rng.integers(0, 51, 300), "b": rng.integers(-20, 21, 300), "c": 5})
    rows = rows.astype({"a": "Int64"})
    rows.loc[::9, "a"] = pd.NA
    columns = {
        "a": pa.Column("Int64", pa.Check.in_range(-1, 51), nullable=True, metadata=DP),
        "b": pa.Column(int, pa.Check.in_range(-21, 21), metadata=DP),
        "c": pa.Column(int, pa.Check.in_range(5, 5), metadata=DP),
    }
    frame = rows.dp.protect(pa.DataFrameSchema(columns), epsilon=1)
    centers = pd.DataFrame({"a": [3.0, 40.0, 20.5], "b": [-3.0, 11.0, 0.0], "c": [5.0, 5.0, 5.0]})
    watched(statistic, lambda _: centers)
    comparison = frame.dp.compare_sampling(statistic, None, 3, epsilon=1, rates=[0.5], repetitions=2, rng=1)
    widths = np.array([26, 21] if statistic == "kmeans" else [52, 42])
    points = rows.dropna()[["a", "b"]].to_numpy(dtype=float) / widths
    nearest = cdist(points, centers[["a", "b"]].to_numpy() / widths).min(axis=1)
    expected = (nearest**2).mean() if statistic == "kmeans" else nearest.mean()
    assert comparison["error"].iloc[0] == pytest.approx(expected, rel=1e-12)
    assert comparison["without"].iloc[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(
    ("statistic", "args"),
    [("sum", ()), ("mean", ()), ("var", ()), ("std", ()), ("median", ()), ("min", ()), ("max", ()),
     ("count", ()), ("quantile", (0.75,)), ("quantile", ([0.25, 0.75],))],
)  # fmt: skip
def test_numbers_are_compared_with_those_of_pandas(watched, statistic, args):
    """Nulls are left out; the mean over the columns."""
    watched(statistic, lambda _: truth * np.array([1.1, 0.7]))
    rows = survey()[["age", "income"]]
    truth = getattr(rows, statistic)(*args)
    comparison = private().dp.compare_sampling(
        statistic, ["age", "income"], *args, epsilon=1, rates=["1/2"], repetitions=2, rng=1
    )
    assert comparison["without"].iloc[0] == pytest.approx(0.2)


@pytest.mark.parametrize("q", [0.9, [0.1, 0.9]])
def test_arguments_mean_the_same_by_name_and_by_place(watched, q):
    """The exact quantile has no error, whichever way it was asked for."""
    watched("quantile", lambda _: survey()["age"].quantile(q))
    words: dict[str, Any] = {"epsilon": 1, "rates": [0.5], "repetitions": 2, "rng": 1}
    for placed, named in [((q,), {}), ((), {"q": q})]:
        comparison = private().dp.compare_sampling("quantile", "age", *placed, **named, **words)
        assert comparison["without"].iloc[0] == 0
    with pytest.raises(ArgumentError, match="multiple values for argument 'q'"):
        private().dp.compare_sampling("quantile", "age", 0.5, q=q, **words)


def test_a_true_zero_has_no_percent_error():
    rows = pd.DataFrame({"one": [0] * 30})
    frame = rows.dp.protect(pa.DataFrameSchema({"one": SCHEMA.columns["one"]}), epsilon=1)
    comparison = frame.dp.compare_sampling("mean", "one", epsilon=1, rates=[0.5], repetitions=2, rng=1)
    assert comparison[["error", "without", "difference"]].isna().all(axis=None)
    assert comparison["worse"].isna().all()


@pytest.mark.full
def test_a_seed_says_everything_and_rows_are_in_the_order_asked():
    frame = private()
    first, repeated, other = (
        frame.dp.compare_sampling("mode", "sex", epsilon=[2, 0.5], rates=[0.9, 0.1], repetitions=20, rng=rng)
        for rng in (3, 3, 4)
    )
    pd.testing.assert_frame_equal(first, repeated)
    assert not first.equals(other)
    assert first.index.tolist() == [(2.0, 0.9), (2.0, 0.1), (0.5, 0.9), (0.5, 0.1)]
    assert first.index.names == ["epsilon", "rate"]
    drawn = frame.dp.compare_sampling("mode", "sex", epsilon=1, rates=[0.5], repetitions=2)
    assert drawn["error"].between(0, 1).all()


@pytest.mark.full
def test_sampling_is_found_worse_where_it_is():
    """A tenth of 2000 records errs by some percent, at epsilon 5 the noise by some hundredths of one."""
    comparison = private(2000).dp.compare_sampling(
        "mean", "age", epsilon=5, rates=[0.1, 1], repetitions=100, rng=2
    )
    assert comparison["worse"].tolist() == [True, False]
    assert (
        comparison["difference"].iloc[0] == comparison["error"].iloc[0] - comparison["without"].iloc[0] > 0.01
    )


# ---------------------------------------------------------------- what cannot be met


def test_rows_that_cannot_be_met_are_left_empty():
    floor = outlier_floor(0.1, 0.2)
    assert 0.9 < floor < 1.1
    comparison = private().dp.compare_suppression(
        "mean", "age", epsilon=[0.5, 2], spreads=[(0.1, 0.2), (0.5, 0.5)], repetitions=3, rng=1
    )
    assert comparison.index.names == ["epsilon", "m", "M"]
    empty = comparison.loc[(0.5, 0.1, 0.2)]
    assert empty.drop(["without", "without_lower", "without_upper"]).isna().all()
    assert comparison.drop(index=(0.5, 0.1, 0.2)).notna().all(axis=None)
    assert comparison["without"].notna().all()
    assert str(comparison["worse"].dtype) == "boolean"
    with pytest.raises(ParameterError, match="No part can be released"):
        private().dp.compare_suppression("mean", "age", epsilon=0.5, spreads=[(0.1, 0.2)], repetitions=2)


def test_a_delta_that_is_not_below_the_rate_cannot_be_met():
    comparison = private().dp.compare_sampling(
        "mean", "age", epsilon=1, rates=[0.01, 0.5], repetitions=2, rng=1, mechanism="gaussian", delta=0.02
    )
    assert comparison["error"].isna().tolist() == [True, False]


class Unread(pd.DataFrame):  # of which only the kind may be asked
    """A table that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Unread
        raise AssertionError(f"the data were read: {name}")


def unread(**options: Any) -> Facts:
    facts = find(private(**options))
    return replace(facts, sealed=seal(object.__new__(Unread), pd.DataFrame(), (0, 0)))


SAMPLING = {
    "statistic": (("mode of ages", "age"), {}),
    "no name": ((None, "age"), {}),
    "releases of rows": (("value_counts", "sex"), {}),
    "zero": (("mean", "age"), {"rates": [0, 0.5]}),
    "above one": (("mean", "age"), {"rates": [1.5]}),
    "no list": (("mean", "age"), {"rates": 0.5}),
    "none": (("mean", "age"), {"rates": []}),
    "twice": (("mean", "age"), {"rates": [0.5, "1/2"]}),
    "a truth value": (("mean", "age"), {"rates": [True]}),
    "once": (("mean", "age"), {"repetitions": 1}),
    "half": (("mean", "age"), {"repetitions": 2.5}),
    "truth": (("mean", "age"), {"repetitions": True}),
    "epsilon": (("mean", "age"), {"epsilon": [1, -1]}),
    "unknown column": (("mean", "weight"), {}),
    "two modes": (("mode", ["sex", "age"]), {}),
    "release_id": (("mean", "age"), {"release_id": "a"}),
    "releases": (("mean", "age"), {"releases": 2}),
    "mechanism": (("mean", "age"), {"mechanism": "none"}),
    "no delta": (("mean", "age"), {"mechanism": "gaussian"}),
    "no number of centres": (("kmeans", "age", 0), {}),
    "seed": (("mean", "age"), {"rng": "seed"}),
    "labels": (("mean", "sex"), {}),
    "labels of an average": (("noisy_average", "sex"), {}),
    "spend": (("mean", "age"), {"spend": "time"}),
    "weights": (("mean", "age"), {"weights": "one"}),
    "another option": (("noisy_average", "age"), {"speed": 1}),
    "another argument": (("noisy_average", "age", 5), {}),
}


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("name", SAMPLING)
def test_a_refusal_comes_before_any_read(name):
    args, options = SAMPLING[name]
    with pytest.raises((ArgumentError, ParameterError, DeclarationError)):
        releases.compare_sampling(unread(), *args, **options)


@pytest.mark.parametrize("statistic", ["mean", "noisy_average"])
def test_a_delta_is_refused_as_it_was_stated(statistic):
    """An average has two releases, of half of the cost each."""
    for compare in (releases.compare_sampling, releases.compare_suppression):
        with pytest.raises(ParameterError, match=r"'delta' must be 0 for Laplace noise \(got 1e-06\)"):
            compare(unread(), statistic, "age", epsilon=1, delta=1e-6)
        with pytest.raises(ParameterError, match=r"'delta' must be positive for Gaussian noise"):
            compare(unread(), statistic, "age", epsilon=1, mechanism="gaussian")


SUPPRESSION = {
    "m above M": (("mean", "age"), {"spreads": [(0.3, 0.2)]}),
    "zero": (("mean", "age"), {"spreads": [(0, 0.2)]}),
    "one": (("mean", "age"), {"spreads": [(0.5, 1)]}),
    "thousandths": (("mean", "age"), {"spreads": [(0.101, 0.2)]}),
    "no pairs": (("mean", "age"), {"spreads": [0.1]}),
    "a text": (("mean", "age"), {"spreads": ["ab"]}),
    "none": (("mean", "age"), {"spreads": []}),
    "twice": (("mean", "age"), {"spreads": [(0.5, 0.5), ("1/2", 0.5)]}),
    "distance": (("mean", "age"), {"distance": "far"}),
    "two columns": (("mean", ["age", "one"]), {"distance": "absolute"}),
    "nulls": (("mean", "income"), {}),
    "labels": (("mode", "sex"), {"distance": "absolute"}),
    "no columns": (("count",), {}),
    "once": (("mean", "age"), {"repetitions": 1}),
    "statistic": (("frequency", "age"), {}),
}


@pytest.mark.parametrize("name", SUPPRESSION)
def test_suppression_is_refused_before_anything_is_read(name):
    args, options = SUPPRESSION[name]
    with pytest.raises((ParameterError, DeclarationError)):
        releases.compare_suppression(unread(), *args, **options)


def test_suppression_is_for_records_that_come_and_go():
    with pytest.raises(ParameterError, match="add_remove"):
        releases.compare_suppression(unread(neighbors="replace_one"), "mean", "age")
    by_unit = survey().dp.protect(SCHEMA, epsilon=1, unit="who", max_rows=2)
    with pytest.raises(ParameterError, match="one record per unit"):
        by_unit.dp.compare_suppression("mean", "age")


def test_a_sample_of_a_private_number_of_records_is_refused_under_replacement():
    frame = private(neighbors="replace_one").dp.query("age > 10")
    with pytest.raises(ParameterError, match="needs a public number of records"):
        frame.dp.compare_sampling("mean", "age")


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
def test_a_secret_part_is_not_compared():
    for part in (private().dp.sample(frac=0.5), private().dp.suppress_outliers("age", 0.1, 0.2)):
        for compare in (part.dp.compare_sampling, part.dp.compare_suppression):
            with pytest.raises(ParameterError, match="A secret part cannot be compared"):
                compare("mean", "age")


def test_a_release_that_costs_more_than_its_epsilon_is_refused():
    """The published scale of truncated noise does."""
    with pytest.raises(ParameterError, match="no guarantee would be equal"):
        private().dp.compare_sampling(
            "count", "age", epsilon=1, rates=[0.5], repetitions=2, rng=1,
            mechanism="laplace", bounding="truncated", calibration="published", bounds=(0, 100),
        )  # fmt: skip
