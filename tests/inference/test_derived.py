"""Ratios, differences and totals of released numbers: labels, coverage by the law of the noise, refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.inference import derived
from pdprivacy.mechanism import Gaussian, Geometric, Laplace
from pdprivacy.risk.noise_sums import NoiseSum

DOMAIN = Domain(
    (
        Column("area", "category", categories=("a", "b", "c", "d")),
        Column("ill", "category", categories=("no", "yes")),
        Column("x", "float", lower=-10, upper=10),
        Column("y", "float", lower=0, upper=1000),
    )
)
N = np.arange(1000)
FRAME = pd.DataFrame(
    {
        "area": np.array(["a", "b", "c", "d"])[np.searchsorted([500, 900, 997], N, side="right")],
        "ill": np.where(N % 4, "no", "yes"),
        "x": N % 19 - 9.0,
        "y": N * 0.5 + 1,
    }
)


def protected(**words):
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10**6, delta=0.5, **words)


def counts(**words):
    return protected().dp.value_counts("area", sort=False, **{"epsilon": 1, "rng": 4, **words})


def table(**words):
    return protected().dp.crosstab("area", "ill", **{"epsilon": 1, "rng": 4, **words})


def test_values_and_labels_are_those_of_pandas():
    series, two = counts(), table()
    assert series.dp.total()["estimate"].item() == series.sum()
    assert series.dp.difference("a", "b")["estimate"].to_dict() == {"a - b": series["a"] - series["b"]}
    assert series.dp.ratio("a", "b")["estimate"].to_dict() == {"a / b": series["a"] / series["b"]}
    pd.testing.assert_series_equal(two.dp.total(axis=0)["estimate"], two.sum() * 1.0, check_names=False)
    pd.testing.assert_series_equal(
        two.dp.total("columns")["estimate"], two.sum(axis=1) * 1.0, check_names=False
    )
    assert two.dp.total()["estimate"].item() == two.to_numpy().sum()
    by_row, by_column = two.dp.ratio("yes", "no"), two.dp.difference("a", "b")
    pd.testing.assert_series_equal(by_row["estimate"], two["yes"] / two["no"], check_names=False)
    expected = (two.loc["a"] - two.loc["b"]) * 1.0
    pd.testing.assert_series_equal(by_column["estimate"], expected, check_names=False)
    assert [*by_row] == ["estimate", "standard_error", "lower", "upper"]


def test_parts_of_a_release_have_the_same_errors():
    series = counts()
    part = series.sort_values().loc[["b", "a"]]
    pd.testing.assert_frame_equal(part.dp.difference("a", "b"), series.dp.difference("a", "b"))
    assert part.dp.total()["standard_error"].item() < series.dp.total()["standard_error"].item()
    assert series.dp.difference("a", "b")["standard_error"].item() == pytest.approx(
        math.sqrt(2) * series.dp.interval()["standard_error"].iloc[0]
    )


@pytest.mark.parametrize("terms", [2, 3, 8])
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "geometric"])
def test_intervals_hold_by_the_law_of_the_sum_of_the_noise(mechanism, level, terms):
    """The exact probability that the noise of the terms stays within the margin is at least the level.

    That of Gaussian noise is the level, and 0.9 of the margin is too little.
    """
    words = {"delta": 1e-6} if mechanism == "gaussian" else {}
    series = counts(mechanism=mechanism, **words)
    scale = series.dp.metadata.scale
    made = {
        "laplace": lambda: Laplace(epsilon=1, sensitivity=scale),
        "geometric": lambda: Geometric(epsilon=1, sensitivity=1),
        "gaussian": lambda: Gaussian(epsilon=1, delta=1e-6, sensitivity=1),
    }[mechanism]()
    law = made.distribution
    numbers = derived._Independent.of(series)
    assert numbers.std[0] == pytest.approx(law.std, rel=1e-6)
    half = float(numbers.tail.half(level, np.full(terms, numbers.std[0])))
    noise = NoiseSum(made, terms)

    def within(size):
        return float(noise.cdf(size) - noise.cdf(-size - (1 if mechanism == "geometric" else 0)))

    assert within(half) >= level - 1e-4
    if mechanism == "gaussian":
        assert within(half) <= level + 1e-3
        assert within(0.9 * half) < level
    assert within(half) < 1 - (1 - level) / (6 if mechanism == "geometric" else 3)  # and a step of integers


@pytest.mark.parametrize(("a", "b"), [(50.0, 40.0), (3.0, 100.0), (0.0, 20.0), (-30.0, 60.0), (400.0, 9.0)])
def test_intervals_of_ratios_cover(a, b):
    """By simulated noise of the law of the release; 20,000 intervals, within four standard errors."""
    generator, level = np.random.default_rng(3), 0.9
    scale = 4.0
    noise = generator.laplace(scale=scale, size=(20_000, 2))
    values = np.array([a, b]) + noise
    numbers = derived._Independent.of(counts(mechanism="laplace"))
    half = numbers.tail.half(level, np.full((1, 2, 1), scale * math.sqrt(2)))
    lower, upper = derived._fieller(values, np.broadcast_to(half, values.shape))
    covered = ((lower <= a / b) & (a / b <= upper)).mean()
    assert covered >= level - 4 * math.sqrt(level * (1 - level) / 20_000)
    assert (lower <= values[:, 0] / values[:, 1]).all()
    assert (values[:, 0] / values[:, 1] <= upper).all()


@pytest.mark.parametrize(("a", "b"), [(0, 200), (1, 30), (0, 12), (5, 5), (0, 0)])
def test_intervals_of_ratios_of_counts_are_never_empty(a, b, monkeypatch):
    """With counts near 0; the ratio is covered as often as stated, and 0 / 0 has the whole range."""
    generator, level, times = np.random.default_rng(8), 0.9, 2000
    law = Laplace(epsilon=1, sensitivity=1).distribution
    noise = generator.laplace(scale=1.0, size=(times, 2))
    numbers = derived._Independent(
        np.array([a, b]) + noise,
        np.full((times, 2), law.std),
        derived.Tail(law),
        True,
        (pd.RangeIndex(times), pd.Index(["a", "b"])),
        np.arange(2 * times).reshape(times, 2),
        np.zeros((times, 2)),
    )
    monkeypatch.setattr(derived._Independent, "of", lambda _: numbers)
    result = derived.ratio(pd.Series([1.0]), "a", "b", level)
    assert (result["lower"] >= 0).all()
    assert (result["lower"] <= result["upper"]).all()
    assert ((result["lower"] < result["upper"]) | (result["estimate"] > 0)).all()
    ratio = a / b if b else 7.0
    covered = result["lower"].le(ratio) & result["upper"].ge(ratio)
    assert covered.mean() >= level - 4 * math.sqrt(level * (1 - level) / times)


def test_a_denominator_that_may_be_zero_has_no_finite_interval():
    row = counts(epsilon=0.5, rng=1).dp.ratio("a", "d").iloc[0]
    assert row["upper"] == math.inf
    assert math.isnan(row["standard_error"])
    assert row["lower"] >= 0


def test_sums_and_groups():
    sums = protected().dp.groupby("area").sum("y", epsilon=100, rng=2)
    assert sums.dp.total(axis=0).index.tolist() == ["y"]
    share = sums.dp.ratio("a", "b").loc["y"]
    assert share["lower"] < share["estimate"] < share["upper"]
    several = protected().dp.sum(["x", "y"], epsilon=100, rng=2)
    error = several.dp.interval()["standard_error"]
    assert several.dp.difference("x", "y")["standard_error"].item() == pytest.approx(math.hypot(*error))


def test_repeated_numbers_have_the_same_noise():
    """The error of k times a number is k times that of the number; other numbers add their variances."""
    series, two = counts(), table()
    error = series.dp.interval()["standard_error"].iloc[0]
    repeated = series.loc[["a", "b", "a", "a"]]
    total = repeated.dp.total().loc["total"]
    assert total["estimate"] == repeated.sum()
    assert total["standard_error"] == pytest.approx(error * math.sqrt(3**2 + 1))
    single, nine = (series.loc[["a"] * times].dp.total().iloc[0] for times in (1, 9))
    assert nine["upper"] - nine["estimate"] >= 9 * (single["upper"] - single["estimate"] - 1)
    rows, columns = two.loc[["a", "a", "b"]], two[["yes", "yes", "no"]]
    error = two.dp.interval()["standard_error"].iloc[0, 0]
    for called in (rows.dp.total("index"), columns.dp.total("columns")):
        assert called["standard_error"].to_numpy() == pytest.approx(error * math.sqrt(5))
    assert rows.dp.total("columns")["standard_error"].to_numpy() == pytest.approx(error * math.sqrt(2))
    assert columns.dp.total("index")["standard_error"].to_numpy() == pytest.approx(error * 2)
    stacked = pd.concat([series, series], keys=["p", "q"])
    assert stacked.dp.total()["standard_error"].item() == pytest.approx(
        2 * series.dp.total()["standard_error"].item()
    )
    assert stacked.dp.difference(("p", "a"), ("q", "b"))["standard_error"].item() > 0
    for call in (stacked.dp.difference, stacked.dp.ratio):
        with pytest.raises(ParameterError, match="different released numbers"):
            call(("p", "a"), ("q", "a"))


def test_rounding_widens_intervals(tmp_path):
    """Without noise to speak of, what was rounded by 5 at most is in the interval, also after saving."""
    series, two = counts(epsilon=10**5), table(epsilon=10**5)
    rounded = series.round(-1)
    rounded.dp.save(tmp_path / "rounded.json")
    for part in (rounded, pdprivacy.read_release(tmp_path / "rounded.json")):
        for made, exact in (
            (part.dp.total(), series.sum()),
            (part.dp.difference("b", "c"), series["b"] - series["c"]),
            (part.dp.ratio("b", "a"), series["b"] / series["a"]),
        ):
            assert made["lower"].item() <= exact <= made["upper"].item()
        total = part.dp.total().loc["total"]
        assert total["upper"] - total["estimate"] == pytest.approx(4 * 5)
    by_row = two.round(-1).dp.total("columns")
    assert by_row["lower"].le(two.sum(axis=1)).all()
    assert by_row["upper"].ge(two.sum(axis=1)).all()


def test_saved_parts_with_repeated_numbers_have_no_total(tmp_path):
    part = counts().loc[["a", "a", "b"]]
    assert "numbers repeated" in part.dp.changes
    part.dp.save(tmp_path / "part.json")
    again = pdprivacy.read_release(tmp_path / "part.json")
    for saved in (again, again.dp.relabel({"a": "c"})):
        with pytest.raises(MetadataError, match="repeats some of the released numbers"):
            saved.dp.total()


def of_unit(unit):
    """Sums of numbers below a unit, per group, with noise from a seed."""
    domain = Domain(
        (Column("g", "category", categories=("p", "q")), Column("x", "float", lower=0, upper=unit))
    )
    frame = pd.DataFrame({"g": ["p", "q"] * 100, "x": unit * np.linspace(0.01, 0.99, 200)})
    return pdprivacy.protect(frame, domain, epsilon=10).dp.groupby("g").sum("x", epsilon=1, rng=1)


@pytest.mark.parametrize("exponent", [-280, -70, 70, 280])
def test_intervals_do_not_depend_on_the_unit(exponent):
    """A power of two as the unit scales numbers, noise and intervals exactly."""
    unit = 2.0**exponent
    for calculate in (
        lambda dp: dp.total(),
        lambda dp: dp.total(axis="index"),
        lambda dp: dp.difference("p", "q"),
    ):
        here, expected = calculate(of_unit(unit).dp), calculate(of_unit(1.0).dp)
        pd.testing.assert_frame_equal(here / unit, expected, rtol=1e-9)
        assert (here["upper"] - here["lower"] > here["standard_error"]).all()
    ratio = of_unit(unit).dp.ratio("p", "q")
    pd.testing.assert_frame_equal(ratio, of_unit(1.0).dp.ratio("p", "q"), rtol=1e-9)
    assert (ratio["upper"] - ratio["lower"] > ratio["standard_error"]).all()


@pytest.mark.parametrize(
    "release",
    [
        lambda: protected().dp.mean(["x", "y"], epsilon=1),
        lambda: protected().dp.value_counts("area", normalize=True, epsilon=1),
        lambda: table(margins=True),
        lambda: protected().dp.median(["x", "y"], epsilon=1),
        lambda: counts(bounding="clamp"),
        lambda: protected().dp.corr(["x", "y"], epsilon=1),
    ],
)
def test_other_numbers_are_refused(release):
    released = release()
    for call in (lambda dp: dp.total(), lambda dp: dp.difference(*released.index[:2])):
        with pytest.raises(MetadataError):
            call(released.dp)


@pytest.mark.parametrize("words", [{}, {"counts": True}])
def test_labels_that_were_found_have_no_total(words):
    domain = Domain((Column("name", "category", private_labels=True),))
    private = pdprivacy.protect(pd.DataFrame({"name": ["x", "y"] * 300}), domain, epsilon=10, delta=0.5)
    labels = private.dp.find_labels("name", epsilon=5, delta=1e-6, rng=1, **words)
    assert len(labels) == 2
    for call in (lambda dp: dp.total(), lambda dp: dp.difference(0, 1), lambda dp: dp.ratio("x", "y")):
        with pytest.raises(MetadataError, match="'find_labels' are not known"):
            call(labels.dp)


def test_wrong_arguments_and_changed_numbers():
    series = counts()
    for call in (
        lambda: series.dp.ratio("a", "z"),
        lambda: series.dp.ratio("a", "a"),
        lambda: series.dp.total(axis=1),
        lambda: series.dp.total(level=2),
        lambda: series.dp.difference("a", ["b"]),
        lambda: series.dp.censor("ten"),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(MetadataError):
        (series + 1).dp.total()
    with pytest.raises(MetadataError):
        pd.Series([1.0]).dp.total()


# ---------------------------------------------------------------- small cells


def test_small_counts_leave_the_release_and_its_metadata():
    series, two = counts(epsilon=50), table(epsilon=50)
    left = series.dp.censor(10)
    assert left.to_dict() == {"a": 500, "b": 400, "c": 97}
    assert left.dp.metadata.part is not None
    assert "counts below 10 are left out" in left.dp.changes
    pd.testing.assert_frame_equal(left.dp.interval(), series.dp.interval().loc[["a", "b", "c"]])
    cells = two.dp.censor(10)
    assert cells.min() >= 10
    assert len(cells) < two.size
    for released, gone in ((left, "d"), (cells, "d")):
        stored = json.dumps(released.attrs["dp"]["original"])
        assert f'"{gone}"' not in stored
        assert f'\\"{gone}\\"' not in stored
    assert left.dp.censor(450).to_dict() == {"a": 500}
    assert series.dp.censor(0).to_dict() == series.to_dict()


CENSORED = {
    "value_counts": lambda dp, **words: dp.value_counts("area", **words),
    "in the order of labels": lambda dp, **words: dp.value_counts("area", sort=False, **words),
    "crosstab": lambda dp, **words: dp.crosstab("area", "ill", **words),
    "part": lambda dp, **words: dp.crosstab("area", "ill", **words).loc[["d", "a", "c"]],
    "relabelled": lambda dp, **words: dp.value_counts("area", **words).dp.relabel({"d": "D"}),
    "weights": lambda dp, **words: dp.value_counts("area", weights="y", **words),
    "clamp": lambda dp, **words: dp.crosstab("area", "ill", bounding="clamp", **words),
    "nonnegative": lambda dp, **words: dp.value_counts("area", constraint="nonnegative", **words),
}


@pytest.mark.parametrize("case", CENSORED)
def test_censored_releases_do_not_depend_on_what_was_left_out(case):
    """Two releases with the same noise that differ in left-out counts alone are the same when censored."""
    domain = Domain(
        (
            Column("area", "category", categories=("a", "b", "c", "d")),
            Column("ill", "category", categories=("no", "yes"), role="sensitive"),
            Column("y", "float", lower=0, upper=2),
        )
    )
    whole, left = [], []
    for few in (2, 9):
        rows = pd.DataFrame({"area": ["a"] * 500 + ["c"] * 300 + ["d"] * few, "y": 1.0})
        rows["ill"] = ["no", "yes"] * (len(rows) // 2) + ["yes"] * (len(rows) % 2)
        private = pdprivacy.protect(rows, domain, epsilon=10)
        release = CENSORED[case](private.dp, epsilon=5, rng=3)
        whole.append(release.to_numpy().ravel().tolist())
        left.append(release.dp.censor(60))
        del left[-1].attrs["dp"]["budget"]["charge_id"]  # of the time of the charge
    assert whole[0] != whole[1]
    assert left[0].attrs == left[1].attrs
    pd.testing.assert_series_equal(left[0], left[1])
    facts = left[0].dp.metadata
    assert not left[0].dp.verify()
    assert facts.dr_ha is None or (facts.dr_ha["by_records"] is None and "left out" in facts.dr_ha["reason"])
    assert len(left[0].dp.interval()) == len(left[0])


@pytest.mark.parametrize("constraint", ["hierarchy", "simplex", "rescale", "all_but_one"])
def test_counts_that_depend_on_each_other_are_not_censored(constraint):
    with pytest.raises(MetadataError, match="depend on each other"):
        protected(neighbors="replace_one").dp.value_counts(
            "area", constraint=constraint, epsilon=1
        ).dp.censor(10)


def test_censored_releases_can_be_saved(tmp_path):
    left = counts(epsilon=50).dp.censor(10)
    left.dp.save(tmp_path / "counts.json")
    again = pdprivacy.read_release(tmp_path / "counts.json")
    assert again.to_dict() == left.to_dict()
    assert '"d"' not in (tmp_path / "counts.json").read_text()


@pytest.mark.parametrize(
    "release",
    [lambda: table(margins=True), lambda: protected().dp.mean("x", epsilon=1), lambda: counts().head(0)],
)
def test_censoring_other_numbers_is_refused(release):
    with pytest.raises(MetadataError):
        release().dp.censor(10)
    with pytest.raises(MetadataError):
        counts().dp.censor(10**6)
