"""Intervals at any level from the metadata (`noisy_parts`, `part_intervals`), against stated ones."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache, partial

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.core.gate import execute
from pdprivacy.core.gate.spec import Drawn
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.releases.batches import VERBS
from pdprivacy.releases.grouped import VERBS_BY_GROUP
from tests.support.cases import check_each
from tests.test_accessor import CALLS

DOMAIN = Domain(
    (
        Column("x", "integer", lower=0, upper=101, bins=(0, 50, 101)),
        Column("y", "float", lower=-300, upper=1000),
        Column("g", "category", categories=("a", "b", "c")),
        Column("b", "boolean"),
        Column("w", "float", lower=0.5, upper=2),
    )
)
RNG = np.random.default_rng(3)
ROWS = 400
FRAME = pd.DataFrame(
    {
        "x": RNG.integers(1, 101, ROWS),
        "y": RNG.uniform(-300, 1000, ROWS),
        "g": RNG.choice(["a", "b"], ROWS, p=[0.95, 0.05]),  # few records of b, and none of c
        "b": RNG.random(ROWS) < 0.02,
        "w": RNG.uniform(0.5, 2, ROWS),
    }
)
ENDS = ["lower", "upper"]
LEVELS = (0.5, 0.8, 0.99, 0.9999)


def _ends(intervals):
    return np.stack([intervals[end] for end in ENDS])


def protected(neighbors="add_remove", **scope):
    frame, domain = FRAME, DOMAIN
    return pdprivacy.protect(frame, domain, epsilon=10**9, delta=0.9, neighbors=neighbors, **scope).dp


RELEASES = {
    "count": lambda dp, **o: dp.count(**o),
    "counts": lambda dp, **o: dp.count(["x", "y"], split={"x": 1, "y": 3}, **o),
    "sum": lambda dp, **o: dp.sum(["x", "y"], **o),
    "value_counts": lambda dp, **o: dp.value_counts("g", sort=True, **o),
    "crosstab": lambda dp, **o: dp.crosstab("g", "b", **o),
    "sums by group": lambda dp, **o: dp.groupby("g").sum(["x", "y"], **o),
    "mean": lambda dp, **o: dp.mean("x", **o),
    "means": lambda dp, **o: dp.mean(["x", "y"], split={"x": 1, "y": 3}, **o),
    "proportion": lambda dp, **o: dp.proportion("b", **o),
    "means by group": lambda dp, **o: dp.groupby("g").mean(["x", "y"], **o),
    "means by groups": lambda dp, **o: dp.groupby(["g", "b"]).mean("y", **o),
    "mean of one by group": lambda dp, **o: dp.groupby("g")["y"].mean(**o),
    "pivot": lambda dp, **o: dp.pivot_table(["x", "y"], "g", "b", **o),
}
WAYS = {
    "default": {},
    "not projected": {"bounding": None},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    "order 3": {"mechanism": "generalized_gaussian", "p": 3, "delta": 1e-6},
    "two releases": {"releases": 2},
}


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize(
    "scope",
    [{}, {"neighbors": "replace_one"}, {"public_rows": ROWS}],
    ids=["add_remove", "replace_one", "public"],
)
@pytest.mark.parametrize("epsilon", [0.02, 1])
def test_an_interval_of_another_level_is_that_of_a_release_with_this_level(
    name, way, scope, epsilon, monkeypatch
):
    """The release computes its margins from the noisy parts; `interval` has the metadata alone."""
    if name == "count" and scope == {"neighbors": "replace_one"}:
        pytest.skip("the number of rows is public")
    dp = protected(**scope)
    release = partial(RELEASES[name], dp, epsilon=epsilon, rng=7, **WAYS[way])
    released = release()
    default = _ends(released.dp.interval())
    for level in LEVELS:
        with monkeypatch.context() as patch:
            patch.setattr(execute, "Drawn", partial(Drawn, level=level))
            expected = release()
        pd.testing.assert_frame_equal(pd.DataFrame(released), pd.DataFrame(expected), check_exact=True)
        ours, stated = _ends(released.dp.interval(level)), _ends(expected.dp.interval())
        same = np.isclose(ours, stated, rtol=1e-4, atol=1e-6).all(axis=0)
        wider = (ours[0] <= stated[0]) & (ours[1] >= stated[1])
        if name == "sums by group" and level < 0.9:  # the release states the quantile of a sum of noises
            assert (~wider | same).all()
        else:  # wider where the noise hides the count, and 95 % have the whole range
            assert (same | (wider & np.isin(default, [0, 1, 101, -300, 1000]).all(axis=0))).all()
            assert same.mean() >= 0.5
    assert released.dp.verify()


@pytest.mark.parametrize("level", [1e-6, 0.5, 0.999999])
def test_half_an_interval_is_the_quantile_of_the_noise(level):
    """Laplace noise of scale b exceeds b ln(1 / (1 - level)) with probability 1 - level."""
    total = protected().sum("x", epsilon=0.5, rng=1)
    lower, upper = total.dp.interval(level)[ENDS].iloc[0]
    assert (upper - lower) / 2 == pytest.approx(-101 / 0.5 * math.log1p(-level))
    counts = protected().value_counts("g", epsilon=0.1, rng=1).dp.interval(level=level)
    half = ((counts["upper"] - counts["lower"]) / 2).iloc[0]

    def beyond(k: float) -> float:
        return 2 * math.exp(-0.1 * (k + 1)) / (1 + math.exp(-0.1))

    assert beyond(half) <= 1 - level + 1e-12 < beyond(half - 1) + 1e-9


@pytest.mark.parametrize("mechanism", ["discrete_gaussian", "geometric"])
def test_noise_on_integers_has_intervals_with_their_mass(mechanism):
    delta = {"delta": 1e-6} if mechanism == "discrete_gaussian" else {}
    mechanism_of = {
        "discrete_gaussian": lambda z, s: np.exp(-(z**2) / (2 * s**2)),
        "geometric": lambda z, s: np.exp(-abs(z) / s),
    }
    for epsilon in (0.5, 5):
        count = protected().count(epsilon=epsilon, mechanism=mechanism, rng=1, **delta)
        z = np.arange(-500, 501)
        masses = mechanism_of[mechanism](z, count.dp.metadata.scale)
        masses /= masses.sum()
        for level in (0.3, 0.9, 0.999):
            half = (count.dp.interval(level)["upper"] - count).iloc[0]
            assert masses[abs(z) <= half].sum() >= level > masses[abs(z) <= half - 1].sum()


def test_intervals_of_dates_have_any_level():
    within = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    schema = pa.DataFrameSchema({"day": pa.Column("datetime64[ns]", within, metadata={"dp": {}})})
    days = pd.DataFrame({"day": pd.date_range("2020-02-01", periods=1000, freq="h", unit="ns")})
    dp = days.dp.protect(schema, epsilon=10, neighbors="replace_one").dp
    mean = dp.mean("day", epsilon=1, rng=1)
    half = (mean.dp.interval(0.99)["upper"] - mean).iloc[0]
    assert half / pd.Timedelta(days=1) == pytest.approx(0.365 * math.log(100), rel=1e-5)


def test_a_saved_release_has_the_same_intervals(tmp_path):
    mean = protected().groupby("g").mean(["x", "y"], epsilon=1, rng=2)
    mean.dp.save(tmp_path / "mean.json")
    again = pdprivacy.read_release(tmp_path / "mean.json")
    pd.testing.assert_frame_equal(again.dp.interval(0.8), mean.dp.interval(0.8))
    assert mean.dp.interval(level=0.95).equals(mean.dp.interval())
    assert mean.dp.unprojected().dp.interval(0.8).shape == (3, 8)


OF_PARTS = {
    "var": lambda dp, **o: dp.var(["x", "y"], **o),
    "std": lambda dp, **o: dp.std(["x", "y"], **o),
    "cov": lambda dp, **o: dp.cov(["x", "y"], **o),
    "cov, psd": lambda dp, **o: dp.cov(["x", "y"], constraint="psd", **o),
    "corr": lambda dp, **o: dp.corr(["x", "y"], **o),
    "pooled_var": lambda dp, **o: dp.pooled_var(["x", "y"], by="g", **o),
    "pooled_cov": lambda dp, **o: dp.pooled_cov(["x", "y"], by="g", **o),
    "describe": lambda dp, **o: dp.describe(["x", "y"], **o),
    "agg": lambda dp, **o: dp.agg({"x": ["mean", "std"], "y": ["count", "sum"]}, **o),
    "variances by group": lambda dp, **o: dp.groupby("g").var(["x", "y"], **o),
    "several by group": lambda dp, **o: dp.groupby("g").describe(["x", "y"], **o),
    "pivot": lambda dp, **o: dp.pivot_table(["x", "y"], "g", "b", ["mean", "std"], **o),
    "weighted mean": lambda dp, **o: dp.mean("y", weights="w", **o),
    "weighted means by group": lambda dp, **o: dp.groupby("g").mean("y", weights="w", **o),
    "ols": lambda dp, **o: dp.ols("y", "x", **o),
    "kmeans": lambda dp, **o: dp.kmeans(["x", "y"], 3, **o),
    "shares": lambda dp, **o: dp.value_counts("g", normalize=True, **o),
    "weighted shares": lambda dp, **o: dp.value_counts("g", normalize=True, weights="w", **o),
    "shares by group": lambda dp, **o: dp.groupby("b").value_counts("g", normalize=True, **o),
    "shares, simplex": lambda dp, **o: dp.value_counts("g", normalize=True, constraint="simplex", **o),
    "shares, hierarchy": lambda dp, **o: dp.value_counts("g", normalize=True, constraint="hierarchy", **o),
    "counts, hierarchy": lambda dp, **o: dp.value_counts("g", constraint="hierarchy", **o),
    "counts, nonnegative": lambda dp, **o: dp.value_counts("g", constraint="nonnegative", **o),
    "crosstab, margins": lambda dp, **o: dp.crosstab("g", "b", margins=True, **o),
    "crosstab, shares": lambda dp, **o: dp.crosstab("g", "b", margins=True, normalize=True, **o),
    "crosstab, shares of rows": lambda dp, **o: dp.crosstab("g", "b", margins=True, normalize="index", **o),
    "staircase": lambda dp, **o: dp.count("x", mechanism="staircase", **o),
    "staircase, mean": lambda dp, **o: dp.mean("x", mechanism="staircase", **o),
}
"""Releases whose metadata hold noisy parts, or whose errors follow from the stated ones by a closed form."""

UNLIKE = {
    "several": ("kmeans",),
    "clamped": ("kmeans", "ols", "agg"),
    "gaussian": ("staircase", "staircase, mean"),
}
"""Releases that do not take the noise of a way."""

NOISES = {
    "laplace": {},
    "several": {"releases": 2},
    "clamped": {"bounding": "clamp"},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6},
}


@pytest.mark.full(keep=8)
@pytest.mark.filterwarnings(
    "ignore::pdprivacy.errors.BoundingWarning", "ignore::pdprivacy.errors.IntervalWarning"
)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", OF_PARTS)
def test_an_interval_of_another_level_follows_from_the_noisy_parts(name, neighbors, noise, monkeypatch):
    """Again the release computes its margins at each level, and `interval` has the metadata alone."""
    if name in UNLIKE.get(noise, ()):
        pytest.skip("not offered")
    for epsilon in (0.1, 2):
        release = partial(OF_PARTS[name], protected(neighbors), epsilon=epsilon, rng=7, **NOISES[noise])
        released = release()
        facts = json.loads(json.dumps(released.attrs["dp"], sort_keys=True))
        released.attrs["dp"] = facts  # as from a file
        for level in (0.5, 0.95 - 1e-12, 0.99):
            with monkeypatch.context() as patch:
                patch.setattr(execute, "Drawn", partial(Drawn, level=level))
                expected = release().dp.interval()
            ours = _ends(released.dp.interval(level))
            np.testing.assert_allclose(ours, _ends(expected), rtol=1e-4, atol=1e-6)
    assert released.dp.verify()


TRUE = {
    "var": lambda d: d[["x", "y"]].var(),
    "std": lambda d: d[["x", "y"]].std(),
    "cov": lambda d: d[["x", "y"]].cov(),
    "corr": lambda d: d[["x", "y"]].corr(),
    "pooled_var": lambda d: (
        (d[["x", "y"]] - d.groupby("g")[["x", "y"]].transform("mean")).pow(2).sum() / (ROWS - 3)
    ),
    "describe": lambda d: d[["x", "y"]].describe().iloc[:3],
    "variances by group": lambda d: d.groupby("g")[["x", "y"]].var().reindex(["a", "b", "c"]),
    "weighted mean": lambda d: pd.Series([np.average(d["y"], weights=d["w"])]),
    "shares": lambda d: d["g"].value_counts(normalize=True).reindex(["a", "b", "c"], fill_value=0),
    "crosstab, margins": lambda d: _with_margins(d),
    "crosstab, shares": lambda d: _with_margins(d) / ROWS,
}
"""The statistics of the data, by pandas."""


def _with_margins(data):
    counts = pd.crosstab(data["g"], data["b"]).reindex(["a", "b", "c"], fill_value=0)
    return pd.concat([counts, counts.sum().to_frame("All").T]).assign(All=lambda table: table.sum(axis=1))


@cache
def many_releases(name, neighbors, draws):
    """Releases of epsilon 2 side by side, whose intervals of each level are tried."""
    sort = {"sort": False} if name == "shares" else {}
    call = OF_PARTS[name] if not sort else lambda dp, **o: dp.value_counts("g", normalize=True, **o)
    return call(protected(neighbors), epsilon=2 * draws, releases=draws, rng=5, **sort)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("level", [0.8, 0.99])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", TRUE)
def test_intervals_of_other_levels_hold_as_often_as_they_say(name, neighbors, level):
    draws, truth = 400, np.asarray(TRUE[name](FRAME), np.float64)
    released = many_releases(name, neighbors, draws)
    ends = [end.reshape(len(truth), draws, -1) for end in _ends(released.dp.interval(level))]
    value = truth.reshape(len(truth), 1, -1)
    known = np.isfinite(value) & np.isfinite(ends[0])
    slack = 1e-9 * (1 + abs(value))
    share = ((ends[0] - slack <= value) & (value <= ends[1] + slack))[known].mean()
    assert share >= level - 4 * math.sqrt(level * (1 - level) / draws)


SELECTIONS = {"find_bounds", "find_labels", "quantile", "median", "min", "max", "mode", "top_k", "kmedian"}
"""Releases without intervals: their error is in counts or ranks, at the stated level alone."""


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.IntervalWarning")
def test_every_release_has_intervals_of_every_level_or_a_reason(survey, schema):
    private = survey.dp.protect(schema, epsilon=1000, delta=0.5)
    calls = {name: partial(getattr(private.dp, name), *args, **options) for name, args, options in CALLS}
    calls |= {name: calls[name] for name in VERBS}  # all of them are among the calls
    groups = private.dp.groupby("region")
    by_group = {
        "proportion": ("health", "yes"),
        "agg": ("mean", "age"),
        "mode": ("health",),
        "nunique": ("health",),
        "count": (),
        "size": (),
    }
    calls |= {
        f"{name} by group": partial(getattr(groups, name), *by_group.get(name, ("age",)), epsilon=1, rng=1)
        for name in VERBS_BY_GROUP
        if name != "value_counts"
    }

    def check(name):
        released = calls[name]()
        if name.removesuffix(" by group") in SELECTIONS:
            with pytest.raises(MetadataError, match="no interval around its value"):
                released.dp.interval(level=0.99)
            return
        tables = [released.dp.interval(level) for level in (0.5, 0.95, 0.99)]
        pd.testing.assert_frame_equal(tables[1], released.dp.interval())
        widths = [np.asarray(table["upper"]) - np.asarray(table["lower"]) for table in tables]
        for narrow, wide in itertools.pairwise(widths):
            assert not (narrow > wide * (1 + 1e-9)).any()
        assert np.isnan(widths[0]).all() or (widths[0] >= 0).any()

    check_each([*VERBS, *(name for name in calls if name.endswith(" by group"))], check)


def test_the_ends_of_selected_intervals_belong_to_one_level():
    released = protected().median("x", interval=True, epsilon=1, rng=1)
    with pytest.raises(MetadataError, match=r"selected at level 0\.95"):
        released.dp.interval(level=0.99)


def test_metadata_without_noisy_parts_determine_the_stated_level_only():
    released = protected().var("x", epsilon=1, rng=1)
    released.attrs["dp"]["parts"] = None  # as from a version before
    with pytest.raises(MetadataError, match=r"at level 0\.95 only"):
        released.dp.interval(level=0.99)
    assert released.dp.interval(level=0.95).equals(released.dp.interval())


def test_wrong_levels_and_frames_are_refused():
    mean = protected().mean("x", epsilon=1, rng=1)
    for level in (0, 1, 95, "0.9", math.nan, True):
        with pytest.raises(ParameterError, match="'level'"):
            mean.dp.interval(level=level)
    with pytest.raises(MetadataError, match="not those that were released"):
        (mean + 1).dp.interval(level=0.9)
    broken = mean.copy()
    broken.attrs["dp"] = {**broken.attrs["dp"], "error": None}
    with pytest.raises(MetadataError):
        broken.dp.interval(level=0.9)
    with pytest.raises(MetadataError, match="no interval around its value"):
        protected().median("x", epsilon=1).dp.interval(level=0.9)
