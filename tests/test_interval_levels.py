"""Intervals at any level from the metadata, against those that a release of this level states."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.domain import Column, Domain
from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.release import execute
from pdprivacy.release.spec import Drawn

DOMAIN = Domain(
    (
        Column("x", "integer", lower=0, upper=101, bins=(0, 50, 101)),
        Column("y", "float", lower=-300, upper=1000),
        Column("g", "category", categories=("a", "b", "c")),
        Column("b", "boolean"),
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
    }
)
ENDS = ["lower", "upper"]
LEVELS = (0.5, 0.8, 0.99, 0.9999)


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
    for level in LEVELS:
        with monkeypatch.context() as patch:
            patch.setattr(execute, "Drawn", partial(Drawn, level=level))
            expected = release()
        pd.testing.assert_frame_equal(pd.DataFrame(released), pd.DataFrame(expected), check_exact=True)
        ours, stated = (
            np.stack([table[end] for end in ENDS])
            for table in (released.dp.interval(level), expected.dp.interval())
        )
        same = np.isclose(ours, stated, rtol=1e-4, atol=1e-6).all(axis=0)
        wider = (ours[0] <= stated[0]) & (ours[1] >= stated[1])
        default = np.stack([released.dp.interval()[end] for end in ENDS])
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


@pytest.mark.parametrize(
    "release",
    [
        lambda dp: dp.var("x", epsilon=1),
        lambda dp: dp.std("x", epsilon=1),
        lambda dp: dp.corr(["x", "y"], epsilon=1),
        lambda dp: dp.ols("y", "x", epsilon=1),
        lambda dp: dp.describe("x", epsilon=1),
        lambda dp: dp.crosstab("g", "b", epsilon=1, normalize=True),
        lambda dp: dp.crosstab("g", "b", epsilon=1, margins=True),
        lambda dp: dp.value_counts("g", epsilon=1, constraint="nonnegative"),
        lambda dp: dp.mean("x", epsilon=1, bounding="clamp"),
        lambda dp: dp.mean("y", epsilon=1, weights="x"),
        lambda dp: dp.count(epsilon=1, mechanism="staircase"),
    ],
)
def test_other_errors_are_known_at_the_stated_level_only(release):
    released = release(protected())
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
