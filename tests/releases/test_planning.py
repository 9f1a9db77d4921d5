"""Plans tell errors before anything is paid for; `plan_calls` checks them, `required_epsilon` searches."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core.engines import PandasEngine
from pdprivacy.errors import DeclarationWarning, MetadataError, ParameterError, PrivacyError
from tests.support.canaries import CANARY
from tests.support.engine_frames import ON_NEWEST_PANDAS

ROWS = 120
Z = 4.75
FRAME = pd.DataFrame(
    {
        "x": np.linspace(18, 90, ROWS),
        "y": np.linspace(0, 10, ROWS)[::-1],
        "z": np.where(np.arange(ROWS) % 10 == 0, np.nan, 1.0),
        "g": np.array(["a", "b", "c", "d"], dtype=object)[np.arange(ROWS) % 4],
        "b": np.arange(ROWS) % 2 == 0,
    }
)
DOMAIN = Domain(
    (
        Column("x", "float", lower=18, upper=90),
        Column("y", "float", lower=0, upper=10),
        Column("z", "float", nullable=True, lower=-2, upper=4),
        Column("g", "category", categories=("a", "b", "c", "d")),
        Column("b", "boolean"),
    )
)
SCOPES: dict[str, dict[str, Any]] = {
    "add_remove": {"neighbors": "add_remove"},
    "public rows": {"neighbors": "add_remove", "public_rows": 100},
    "replace_one": {"neighbors": "replace_one"},
}
COLUMNS = ["scale", "bias", "rmse", "worst_bias", "worst_rmse", "plus_minus", "cells"]


def protected(scope: str = "replace_one", **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # data at the bounds is the point here
        return FRAME.dp.protect(DOMAIN, **{"epsilon": 10**9, "delta": "0.9", **SCOPES[scope], **options})


def numbers_of(plan: pd.DataFrame) -> int:
    """The number of released numbers in the rows of a plan of one choice."""
    return int(plan["cells"].sum()) if "cells" in plan.columns else len(plan)


@pytest.fixture
def unread(monkeypatch):
    """Reading any data raises."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a plan read the data")

    names = [name for name in vars(PandasEngine) if not name.startswith("__")]
    assert {"rows", "grouped", "table", "bins", "present"} <= set(names)
    for name in names:
        plain = property(refuse) if name == "rows" else refuse
        monkeypatch.setattr(PandasEngine, name, plain)


PLANS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "count": (("count", ["x", "z"]), {}),
    "value_counts": (("value_counts", ["g", "b"]), {}),
    "shares": (("value_counts", "g"), {"normalize": True}),
    "tree": (("value_counts", "g"), {"constraint": "hierarchy"}),
    "histogram": (("histogram", "x", 5), {}),
    "crosstab": (("crosstab", "g", "b"), {}),
    "crosstab with margins": (("crosstab", "g", "b"), {"margins": True}),
    "shares of rows": (("crosstab", "g", "b"), {"normalize": "index"}),
    "shares that sum to one": (("crosstab", "g", "b"), {"normalize": True, "constraint": "simplex"}),
    "sum": (("sum", ["x", "y"]), {}),
    "mean": (("mean", "x"), {}),
    "means": (("mean", ["x", "y"]), {"split": {"x": 3, "y": 1}}),
    "mean with nulls": (("mean", ["x", "z"]), {}),
    "proportion": (("proportion", "g", "b"), {}),
    "var": (("var", ["x", "y"]), {}),
    "std": (("std", "x"), {}),
    "cov": (("cov", ["x", "y"]), {}),
    "psd": (("cov", ["x", "y"]), {"constraint": "psd"}),
    "corr": (("corr", ["x", "y"]), {}),
    "pooled_var": (("pooled_var", "x"), {"by": "b"}),
    "pooled_cov": (("pooled_cov", ["x", "y"]), {"by": "b"}),
}
LAWS: dict[str, dict[str, Any]] = {
    "default": {},
    "gaussian": {"mechanism": "gaussian", "delta": "1e-5"},
    "generalized": {"mechanism": "generalized_gaussian", "p": 3, "delta": "1e-5"},
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("name", "scope", "law"),
    # every two of them together
    [
        (name, scope, [*LAWS][(row + position) % 3])
        for row, name in enumerate(PLANS)
        for position, scope in enumerate(SCOPES)
    ],
)
def test_a_plan_of_any_release_reads_and_charges_nothing(name, scope, law, unread):
    args, options = PLANS[name]
    private = protected(scope)
    plan = getattr(private.dp.plan, args[0])(
        *args[1:], epsilon=[0.1, 1], bounding=[None, "clamp", "truncated"], rows=ROWS, **options, **LAWS[law]
    )
    assert len(private.dp.budget.entries) == 0
    assert private.dp.budget.spent == (0, 0)
    assert "dp" not in plan.attrs  # no release
    assert plan.columns.tolist() == [column for column in COLUMNS if column in plan.columns]
    assert {"rmse", "bias", "plus_minus"} <= set(plan.columns)
    assert ("cells" in plan.columns) == (args[0] in ("value_counts", "histogram", "crosstab"))
    assert plan.notna().any().all()  # no column without a number
    assert plan.index.names[:2] == ["epsilon", "bounding"]
    kinds = {label[:2] for label in plan.index}
    assert kinds == {(epsilon, kind) for epsilon in (0.1, 1.0) for kind in ("none", "clamp", "truncated")}
    unbounded = plan[plan.index.get_level_values("bounding") == "none"]
    known = unbounded["rmse"].notna()  # a correlation with itself has no error
    assert (unbounded.loc[known, "bias"] == 0).all()
    assert (plan["rmse"].dropna() >= plan["bias"].dropna().abs() * (1 - 1e-9)).all()
    # more loss, less error
    levels = plan.index.get_level_values("epsilon")
    small, large = (plan["rmse"].to_numpy()[levels == epsilon] for epsilon in (0.1, 1.0))
    if name not in ("corr", "tree", "std"):
        assert (small >= large)[~np.isnan(small)].all()
    assert (plan["plus_minus"].dropna() >= 0).all()


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(
    ("name", "scope", "law", "bounding"),
    # every release with every law and bounding, in one scope or another, and in every scope with each of them
    [
        (name, scope, law, [None, "clamp", "truncated"][(row + position + turn) % 3])
        for row, name in enumerate(PLANS)
        for position, scope in enumerate(SCOPES)
        for turn, law in enumerate(LAWS)
    ],
)
def test_the_scale_of_a_plan_is_that_of_the_release(name, scope, law, bounding):
    args, options = PLANS[name]
    options = {**options, **LAWS[law], "bounding": bounding, "epsilon": 0.5}
    dp = protected(scope).dp
    planned = getattr(dp.plan, args[0])(*args[1:], rows=ROWS, **options)
    released = getattr(dp, args[0])(*args[1:], rng=1, **options)
    stored = released.attrs["dp"]
    assert numbers_of(planned) == released.size
    scale = stored["scale"]
    if not isinstance(scale, dict):
        assert (planned["scale"] == scale).all()
    elif len(scale) == released.size:
        assert planned["scale"].tolist() == list(scale.values())
    else:
        assert "scale" not in planned.columns
    # where every number has a noise of its own the interval is that of the release
    linear = {"count", "value_counts", "histogram", "crosstab", "sum"}
    single = linear if scope == "add_remove" else linear | {"mean", "means", "proportion"}
    if name in single:
        halves = np.broadcast_to(np.array(stored["error"]["plus_minus"], float), released.shape).ravel()
        half = planned["plus_minus"].repeat(planned["cells"] if "cells" in planned.columns else 1)
        np.testing.assert_allclose(half, halves, rtol=1e-12)


def test_a_plan_has_a_row_per_choice_and_per_number():
    dp = protected().dp
    plan = dp.plan.mean("x", epsilon=[0.5, 2], bounding=[None, "truncated"])
    assert plan.index.tolist() == [(0.5, "none"), (0.5, "truncated"), (2.0, "none"), (2.0, "truncated")]
    assert plan.index.names == ["epsilon", "bounding"]
    several = dp.plan.mean(["x", "y"], epsilon=0.5)
    assert [label[:2] for label in several.index] == [(0.5, "project")] * 2
    assert several.index.get_level_values(2).tolist() == ["x", "y"]
    table = dp.plan.crosstab("g", "b", epsilon=0.5)
    assert table.index.names == ["epsilon", "bounding"]
    assert table["cells"].tolist() == [8]
    for levels in (np.array([0.5, 2]), pd.Index([0.5, 2]), (0.5, 2), ["0.5", 2]):
        repeated = dp.plan.mean("x", epsilon=levels, bounding=[None, "truncated"])
        pd.testing.assert_frame_equal(repeated, plan)


@pytest.mark.parametrize("option", ["epsilon", "bounding"])
@pytest.mark.parametrize("make", [pd.Series, pd.Index, lambda cells: np.array(cells, dtype=object)])
def test_series_and_arrays_of_texts_are_no_choices_and_are_not_shown(option, make):
    with pytest.raises(ParameterError, match=f"'{option}' must be one value or a list of several") as caught:
        protected().dp.plan.mean("x", **{"epsilon": 1, option: make([CANARY])})
    assert CANARY not in str(caught.value)


def test_a_frame_is_no_bounding():
    with pytest.raises(ParameterError, match="'bounding' must be one of"):
        protected().dp.plan.histogram(
            "x", 5, bounds=(0, 1), bounding=pd.DataFrame({"a": [CANARY]}), plus_minus=1
        )


@pytest.mark.parametrize("options", [{}, {"mechanism": "gaussian", "delta": 0.001}])
def test_a_series_is_no_bounding(options):
    private = protected()
    with pytest.raises(ParameterError, match="'bounding' must be one of") as caught:
        private.dp.groupby("g").size(epsilon=1, bounding=pd.Series([CANARY, "project"]), **options)
    assert CANARY not in str(caught.value)
    assert private.dp.budget.entries.empty


def test_a_plan_is_what_theory_says():
    """A mean of n rows: scale R / (n epsilon); with truncation ln((1 + e^epsilon)/2) for epsilon."""
    plan = protected().dp.plan.mean("x", epsilon=[0.5, 1], bounding=[None, "truncated"])
    for epsilon in (0.5, 1.0):
        plain, bounded = plan.loc[(epsilon, "none")], plan.loc[(epsilon, "truncated")]
        scale = 72 / ROWS / epsilon
        assert plain["scale"] == pytest.approx(scale, rel=1e-5)
        assert plain["rmse"] == plain["worst_rmse"] == pytest.approx(math.sqrt(2) * scale, rel=1e-5)
        assert plain["plus_minus"] == pytest.approx(math.log(20) * scale, rel=1e-5)
        wider = 72 / ROWS / math.log((1 + math.exp(epsilon)) / 2)
        assert bounded["scale"] == pytest.approx(wider, rel=1e-5)
        assert bounded["bias"] == pytest.approx(0, abs=1e-9)  # the middle
        assert bounded["worst_bias"] == pytest.approx(wider, rel=1e-4)  # at an end: the mean of |e|
        assert bounded["worst_rmse"] == pytest.approx(math.sqrt(2) * wider, rel=1e-4)


def test_the_supposed_value_moves_the_errors():
    dp = protected().dp
    options = {"epsilon": 0.5, "bounding": ["clamp", "truncated"]}
    middle = dp.plan.mean("x", **options)
    low = dp.plan.mean("x", at=18, **options)
    high = dp.plan.mean("x", at=90, **options)
    assert (middle["bias"].abs() < 1e-6).all()
    np.testing.assert_allclose(low["bias"], -high["bias"], rtol=1e-6)
    np.testing.assert_allclose(low["bias"], low["worst_bias"], rtol=1e-4)
    assert (low["bias"] > 0).all()
    assert (low["worst_bias"] == middle["worst_bias"]).all()
    for value in (17, 1000):
        with pytest.raises(ParameterError, match="'at' must be between 18 and 90"):
            dp.plan.mean("x", at=value, **options)
    empty = dp.plan.value_counts("g", at=0, **options)
    assert (empty["bias"] > 0).all()


def test_a_mean_may_be_supposed_at_any_place_within_narrow_bounds():
    """A mean near 1 is no variance, which is at most 1/2 here."""
    domain = Domain((Column("x", "float", lower=0, upper=1),))
    plan = pdprivacy.protect(pd.DataFrame({"x": [0.2, 0.9]}), domain, epsilon=1).dp.plan
    at_end, middle = (plan.mean("x", epsilon=0.5, rows=100, at=at) for at in (1, None))
    assert at_end["rmse"].item() >= middle["rmse"].item()


# ---------------------------------------------------------------- margins of error in place of epsilon


def epsilon_of(plan: pd.DataFrame) -> float:
    """The epsilon of a plan of one choice."""
    (epsilon,) = set(plan.index.get_level_values("epsilon"))
    return float(epsilon)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(
    ("name", "scope", "law"),
    [
        (name, scope, [*LAWS][(row + position) % 3])
        for row, name in enumerate(PLANS)
        for position, scope in enumerate(SCOPES)
    ],
)
def test_the_epsilon_of_a_margin_is_the_smallest_that_reaches_it(name, scope, law, unread):
    args, options = PLANS[name]
    planned = getattr(protected(scope).dp.plan, args[0])
    words = {"rows": ROWS, "level": 0.9, "bounding": None, **options, **LAWS[law]}
    margin = 0.8 * float(planned(*args[1:], epsilon=0.7, **words)["plus_minus"].max())
    plan_at_margin = planned(*args[1:], plus_minus=margin, **words)
    assert plan_at_margin["plus_minus"].max() <= margin
    epsilon = epsilon_of(plan_at_margin)
    assert float(f"{epsilon:.4g}") == epsilon
    pd.testing.assert_frame_equal(planned(*args[1:], epsilon=epsilon, **words), plan_at_margin)
    assert planned(*args[1:], epsilon=0.99 * epsilon, **words)["plus_minus"].max() > margin


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_epsilon_of_a_margin_follows_from_the_law_of_the_noise(level):
    """Laplace noise of scale b exceeds b ln(1 / (1 - level)); the range of x is 72, of 120 records."""
    dp = protected().dp
    needed = 72 * math.log(1 / (1 - level)) / (ROWS * 0.5)
    plan_at_margin = dp.plan.mean("x", plus_minus=0.5, level=level)
    assert needed * (1 - 1e-6) <= epsilon_of(plan_at_margin) <= needed * 1.001
    released = dp.mean("x", epsilon=epsilon_of(dp.plan.mean("x", plus_minus=0.5)))
    assert 0.4995 < released.attrs["dp"]["error"]["plus_minus"] <= 0.5


def test_the_epsilon_of_a_count_follows_from_the_law_of_whole_noise():
    """The probability of noise beyond k is 2 a**(k + 1) / (1 + a) for a = exp(-epsilon)."""
    epsilon = epsilon_of(protected("add_remove").dp.plan.count(plus_minus=10, rows=5, level=0.99))

    def beyond(epsilon: float) -> float:
        return 2 * math.exp(-epsilon * 11) / (1 + math.exp(-epsilon))

    assert beyond(epsilon) <= 0.01 < beyond(0.999 * epsilon)


def test_several_margins_and_boundings_have_their_own_epsilon():
    dp = protected("add_remove").dp
    table = dp.plan.mean(["x", "y"], plus_minus=[2, 8], bounding=[None, "truncated"], rows=5000)
    labels = dict.fromkeys(label[:2] for label in table.index)
    assert [kind for _, kind in labels] == ["none", "truncated"] * 2
    for (epsilon, kind), margin in zip(labels, [2, 2, 8, 8], strict=True):
        chosen = table[[label[:2] == (epsilon, kind) for label in table.index]]
        assert margin * 0.99 < chosen["plus_minus"].max() <= margin
    by_group = dp.plan.groupby("g").mean("x", plus_minus=8, rows=5000)
    assert 7.9 < by_group["plus_minus"].max() <= 8
    assert by_group.attrs["dp_plan"]["level"] == 0.95


def test_a_margin_of_dates_is_a_time():
    within = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    schema = pa.DataFrameSchema({"day": pa.Column("datetime64[ns]", within, metadata={"dp": {}})})
    days = pd.DataFrame({"day": pd.date_range("2020-02-01", periods=100, unit="ns")})
    plan = days.dp.protect(schema, epsilon=1).dp.plan
    margin = pd.Timedelta(days=2)
    plan_at_margin = plan.mean("day", plus_minus=margin, rows=3000)
    assert plan_at_margin["plus_minus"].item() <= margin
    assert (
        plan.mean("day", epsilon=0.99 * epsilon_of(plan_at_margin), rows=3000)["plus_minus"].item() > margin
    )
    for wrong in (2, "2 days", pd.NaT, -margin):
        with pytest.raises(ParameterError, match=r"pd.Timedelta\(days=1\)"):
            plan.mean("day", plus_minus=wrong, rows=3000)


def test_a_small_epsilon_that_a_mechanism_refuses_is_no_error_of_the_search():
    plan = protected().dp.plan.mean("x", plus_minus=1, mechanism="gaussian", delta="1e-6", releases=50)
    assert plan["plus_minus"].item() <= 1


UNREACHED: dict[str, tuple[Callable[..., Any], str]] = {
    "every epsilon": (lambda plan: plan.mean("x", plus_minus=40), "Every epsilon"),
    "no epsilon": (lambda plan: plan.mean("x", plus_minus=1e-9), "No epsilon up to 1,000"),
    "sampling error": (lambda plan: plan.ols("y", "x", plus_minus=1e-3), "No epsilon up to 1,000"),
    "no margin": (lambda plan: plan.ols("y", "x", plus_minus=1, rows=3), "states no margin"),
    "both": (lambda plan: plan.mean("x", epsilon=1, plus_minus=1), "exclude each other"),
    "text": (lambda plan: plan.mean("x", plus_minus="1"), "'plus_minus' must be a finite number"),
    "negative": (lambda plan: plan.mean("x", plus_minus=-1), "'plus_minus' must be a finite number"),
    "NaN": (lambda plan: plan.mean("x", plus_minus=math.nan), "'plus_minus' must be a finite number"),
    "empty": (lambda plan: plan.mean("x", plus_minus=[]), "'plus_minus' must not be empty"),
    "a time": (lambda plan: plan.mean("x", plus_minus=pd.Timedelta(days=1)), "must be a finite number"),
    "published": (
        lambda plan: plan.mean("x", plus_minus=1, bounding="truncated", calibration="published"),
        "calibration='published'",
    ),
    "level 0": (lambda plan: plan.mean("x", plus_minus=1, level=0), "'level'"),
    "level 95": (lambda plan: plan.mean("x", epsilon=1, level=95), "'level'"),
}


@pytest.mark.parametrize("name", UNREACHED)
def test_a_margin_that_no_search_can_reach_is_refused(name):
    call, says = UNREACHED[name]
    private = protected()
    plan = private.dp.plan if name != "no margin" else protected("add_remove").dp.plan
    with pytest.raises(ParameterError, match=says):
        call(plan)
    assert len(private.dp.budget.entries) == 0


def test_a_plan_without_epsilon_and_margin_names_both():
    with pytest.raises(TypeError, match="'epsilon', what the call may cost, or 'plus_minus'"):
        protected().dp.plan.mean("x")


@functools.cache
def released_and_exact(statistic: str) -> tuple[np.ndarray, float]:
    """4000 releases, and the statistic of the data."""
    dp = protected("add_remove").dp
    released = draws(dp, (statistic, "x"), MOST, 3, bounding=None, rng=np.random.default_rng(5))
    return released, float(getattr(dp, statistic)("x", epsilon=10**6, rng=0).item())


@pytest.mark.full
@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("statistic", ["mean", "var"])
def test_margins_of_any_level_cover_so_many_releases(statistic, level):
    """4000 releases of several noisy parts: the share within the margin is the level, or more."""
    value = 54.0 if statistic == "mean" else float(FRAME["x"].var())
    dp = protected("add_remove").dp
    words: dict[str, Any] = {"epsilon": 3, "bounding": None}
    planned = getattr(dp.plan, statistic)("x", rows=ROWS, at=value, level=level, **words)
    released, exact = released_and_exact(statistic)
    within = float((np.abs(released - exact) <= planned["plus_minus"].item()).mean())
    assert within >= level - Z * math.sqrt(level * (1 - level) / MOST)


# ---------------------------------------------------------------- refusals


def test_a_private_number_of_rows_is_not_read(unread):
    for scope in ("add_remove", "public rows"):
        private = protected(scope)
        if scope == "add_remove":
            with pytest.raises(ParameterError, match="rows=1000"):
                private.dp.plan.mean("x", epsilon=1)
        private.dp.plan.mean("x", epsilon=1, rows=50)
        assert len(private.dp.budget.entries) == 0


FREE_OF_ROWS: dict[str, Callable[..., Any]] = {
    "count": lambda plan, **words: plan.count(**words),
    "sum": lambda plan, **words: plan.sum(["x", "y"], **words),
    "labels": lambda plan, **words: plan.value_counts("g", **words),
    "table with margins": lambda plan, **words: plan.crosstab("g", "b", margins=True, **words),
    "histogram": lambda plan, **words: plan.histogram("x", **words),
    "nunique": lambda plan, **words: plan.nunique("g", **words),
    "groups": lambda plan, **words: plan.groupby("g").sum("x", **words),
    "sums and counts": lambda plan, **words: plan.agg(["sum", "count"], "x", **words),
    "weights": lambda plan, **words: plan.value_counts("g", weights="x", **words),
}


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", FREE_OF_ROWS)
def test_errors_that_do_not_depend_on_the_number_of_rows_need_none(name):
    plan, call = protected("add_remove").dp.plan, FREE_OF_ROWS[name]
    for words in ({"epsilon": [0.2, 2]}, {"plus_minus": 7, "bounding": None}):
        alone, guesses = call(plan, **words), [call(plan, rows=rows, **words) for rows in (3, 50_000)]
        for guess in guesses:
            pd.testing.assert_frame_equal(alone, guess, rtol=1e-9)
        assert alone.attrs["dp_plan"]["rows"] is None


@pytest.mark.parametrize(
    "call",
    [
        lambda plan: plan.count(epsilon=1, bounding="clamp"),
        lambda plan: plan.sum("x", epsilon=1, bounding="truncated", at=1),
        lambda plan: plan.value_counts("g", epsilon=1, normalize=True),
        lambda plan: plan.value_counts("g", epsilon=1, constraint="nonnegative"),
        lambda plan: plan.agg(["sum", "mean"], "x", epsilon=1),
        lambda plan: plan.describe("x", epsilon=1),
        lambda plan: plan.groupby("g").mean("x", epsilon=1),
    ],
)
def test_errors_that_depend_on_the_number_of_rows_need_it(call):
    with pytest.raises(ParameterError, match=r"the error depends on it(.|\n)*rows=1000"):
        call(protected("add_remove").dp.plan)


def test_the_bias_of_counts_needs_their_number_alone():
    """A clamped count of 0 under Laplace noise of scale 1: half of the noise is lost, 1/2 on average."""
    plan = protected("add_remove").dp.plan.count(epsilon=1, bounding="clamp", at=0, mechanism="laplace")
    assert plan["bias"].item() == pytest.approx(0.5)


def test_a_filter_makes_the_number_of_rows_private():
    private = protected("replace_one").dp.query("x > 30")
    with pytest.raises(ParameterError, match="rows=1000"):
        private.dp.plan.mean("x", epsilon=1)


SHARED: dict[str, Callable[..., Any]] = {
    "mean": lambda dp, **words: dp.mean(["x", "y"], **words),
    "std": lambda dp, **words: dp.std("x", **words),
    "crosstab": lambda dp, **words: dp.crosstab("g", "b", **words),
    "by group": lambda dp, **words: dp.groupby("b").mean(["x", "y"], **words),
}


@pytest.mark.parametrize("call", SHARED.values(), ids=SHARED)
def test_several_releases_are_planned_by_the_error_of_each(call):
    dp = protected().dp
    several, single = call(dp.plan, epsilon=1, releases=4), call(dp.plan, epsilon=0.25)
    pd.testing.assert_frame_equal(several.set_axis(single.index), single)
    assert set(several.index.get_level_values("epsilon")) == {1}
    assert several.attrs["dp_plan"]["releases"] == 4
    if "scale" in several:
        scale = call(dp, epsilon=1, releases=4).attrs["dp"]["scale"]
        assert set(several["scale"]) == {*(scale.values() if isinstance(scale, dict) else [scale])}


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rng": (lambda dp: dp.plan.mean("x", epsilon=1, rng=1), "'rng'"),
    "release_id": (lambda dp: dp.plan.mean("x", epsilon=1, release_id="a"), "'release_id'"),
    "releases": (lambda dp: dp.plan.mean("x", epsilon=1, releases=0), "'releases'"),
    "unknown": (lambda dp: dp.plan.mode("g", epsilon=1), "'mode'"),
    "itself": (lambda dp: dp.plan.plan("x", epsilon=1), "'plan'"),
    "epsilon 0": (lambda dp: dp.plan.mean("x", epsilon=[1, 0]), "'epsilon'"),
    "epsilon NaN": (lambda dp: dp.plan.mean("x", epsilon=float("nan")), "'epsilon'"),
    "no epsilon": (lambda dp: dp.plan.mean("x", epsilon=[]), "'epsilon'"),
    "no bounding": (lambda dp: dp.plan.mean("x", epsilon=1, bounding=[]), "'bounding'"),
    "bounding": (lambda dp: dp.plan.mean("x", epsilon=1, bounding=["clamp", "cut"]), "'bounding'"),
    "delta": (lambda dp: dp.plan.mean("x", epsilon=1, mechanism="gaussian"), "'delta'"),
    "bounds": (lambda dp: dp.plan.mean("x", epsilon=1, bounding="clamp", bounds=(2, 1)), "'bounds'"),
    "no column": (lambda dp: dp.plan.mean("q", epsilon=1), "declared"),
    "rows 0": (lambda dp: dp.plan.mean("x", epsilon=1, rows=0), "'rows'"),
    "rows negative": (lambda dp: dp.plan.mean("x", epsilon=1, rows=-4), "'rows'"),
    "rows broken": (lambda dp: dp.plan.mean("x", epsilon=1, rows=1.5), "'rows'"),
    "rows True": (lambda dp: dp.plan.mean("x", epsilon=1, rows=True), "'rows'"),
    "rows text": (lambda dp: dp.plan.mean("x", epsilon=1, rows="9"), "'rows'"),
    "at text": (lambda dp: dp.plan.mean("x", epsilon=1, at="high"), "'at'"),
    "at NaN": (lambda dp: dp.plan.mean("x", epsilon=1, at=float("nan")), "'at'"),
    "at infinite": (lambda dp: dp.plan.value_counts("g", epsilon=1, at=math.inf), "'at'"),
    "at a list": (lambda dp: dp.plan.mean("x", epsilon=1, at=[1, 2]), "'at'"),
    "at negative count": (lambda dp: dp.plan.value_counts("g", epsilon=1, at=-5), "'at'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_plan_is_refused_with_a_reason(name):
    call, says = REFUSED[name]
    private = protected()
    with pytest.raises(PrivacyError) as caught:
        call(private.dp)
    assert says in str(caught.value)
    assert len(private.dp.budget.entries) == 0


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="'rowz'"):
        protected().dp.plan.mean("x", epsilon=1, rowz=3)
    with pytest.raises(TypeError, match="epsilon"):
        protected().dp.plan.mean("x")


def test_a_plan_needs_no_budget():
    poor = protected(epsilon="1e-9", delta=0)
    assert len(poor.dp.plan.mean("x", epsilon=[1, 100])) == 2


# ---------------------------------------------------------------- against real releases

SIMULATED: dict[str, tuple[tuple[Any, ...], dict[str, Any], float, str]] = {
    # release, keywords, the value that the data has, scope
    "mean": (("mean", "x"), {}, 54.0, "replace_one"),
    "mean, gaussian": (
        ("mean", "x"),
        {"mechanism": "gaussian", "delta": "1e-6"},
        54.0,
        "replace_one",
    ),
    "mean, generalized": (
        ("mean", "y"),
        {"mechanism": "generalized_gaussian", "delta": "1e-6", "p": 4},
        5.0,
        "replace_one",
    ),
    "proportion": (("proportion", "g", "b"), {}, 0.25, "replace_one"),
    "var": (("var", "x"), {}, float(FRAME["x"].var()), "replace_one"),
    "counts": (("value_counts", "g"), {"sort": False}, 30, "replace_one"),
    "counts of private rows": (("value_counts", "g"), {"sort": False}, 30, "add_remove"),
    "sum of private rows": (("sum", "y"), {}, 5.0, "add_remove"),
    "mean of private rows": (("mean", "x"), {}, 54.0, "add_remove"),
    "std": (("std", "x"), {}, float(FRAME["x"].std()), "replace_one"),
}


# So many that the squares of errors of a scale that is off by 10 % are told: fewer where tails are lighter
# than those of Laplace noise, and where a release has four numbers.
DRAWS = {"mean, gaussian": 2000, "mean, generalized": 1200, "counts": 1000, "counts of private rows": 1000}
MOST = 4000


def draws(dp: Any, args: tuple[Any, ...], number: int, epsilon: float, delta: Any = 0, **options: Any) -> Any:
    """The numbers of many releases of this loss each, without their errors and the metadata of the call."""

    def numbers(_release: Any, _drawn: Any, results: Any, *_: Any) -> Any:
        return np.array([result.answer.values for result in results])

    with (
        mock.patch("pdprivacy.releases.publish.published", numbers),
        mock.patch("pdprivacy.releases.results.Result.errors"),
    ):
        return getattr(dp, args[0])(
            *args[1:], epsilon=epsilon * number, delta=Fraction(delta) * number, releases=number, **options
        )


@pytest.mark.full
@ON_NEWEST_PANDAS
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
@pytest.mark.parametrize("name", SIMULATED)
def test_the_error_of_a_plan_is_that_of_releases_of_such_data(name, bounding):
    """1000 to 4000 releases: bias and root mean squared error within their chance errors (two false alarms
    in a million each) and, where a number is made of several noisy ones or is a root, within another 10 %."""
    args, options, value, scope = SIMULATED[name]
    epsilon = 2.0 if name in ("mean of private rows", "std", "var") else 0.25
    dp = protected(scope).dp
    planned = getattr(dp.plan, args[0])(
        *args[1:], epsilon=epsilon, bounding=bounding, rows=ROWS, at=value, **options
    )
    exact = getattr(dp, args[0])(*args[1:], epsilon=10**6 if "counts" not in name else 300, rng=0).to_numpy()
    number, rng = DRAWS.get(name, MOST), np.random.default_rng([3, *name.encode()])
    released = draws(dp, args, number, epsilon, bounding=bounding, rng=rng, **options)
    assert released.shape == (number, numbers_of(planned))
    errors = released - exact
    squares = errors.ravel() ** 2
    observed, chance = squares.mean(), squares.std() / math.sqrt(squares.size)
    stated = float((planned["rmse"] ** 2).mean())
    slack = 0.2 if name in ("mean of private rows", "std") else 1e-4
    assert abs(observed - stated) <= Z * chance + slack * stated
    if slack < 0.1:
        chance = errors.std() / math.sqrt(errors.size)
        assert abs(errors.mean() - planned["bias"].mean()) <= Z * chance + 1e-4 * math.sqrt(stated)


# ---------------------------------------------------------------- what a plan and a release must agree on


def test_bounds_and_the_published_calibration_count_where_they_fit():
    dp = protected().dp
    table = dp.plan.mean("x", epsilon=1, bounding=[None, "clamp", "truncated"], bounds=(20, 50))
    plain = dp.plan.mean("x", epsilon=1, bounding=[None, "clamp", "truncated"])
    assert table.loc[1.0, "none"].equals(plain.loc[1.0, "none"])
    assert (table["worst_bias"] <= plain["worst_bias"]).all()
    both = dp.plan.mean("x", epsilon=0.4, bounding=[None, "truncated"], calibration="published")
    costs = both.index.get_level_values("epsilon")
    # the truncated one costs more than was asked for, as its release does
    released = dp.mean("x", epsilon=0.4, bounding="truncated", calibration="published")
    assert costs.tolist() == [0.4, released.attrs["dp"]["epsilon"]]
    assert costs[1] > 0.6


def test_counts_are_planned_at_the_supposed_count():
    dp = protected("add_remove").dp
    options = {"epsilon": 0.01, "bounding": "clamp", "rows": 5000}
    near, far = (float(dp.plan.count(at=at, **options)["bias"].iloc[0]) for at in (1, 4000))
    assert near > 30 > 1 > far >= 0  # noise of scale 100, cut off at zero
    for arguments in ({"normalize": True},):
        with pytest.raises(ParameterError, match="not for shares"):
            dp.plan.value_counts("g", at=0.2, **options, **arguments)


def test_a_constrained_table_with_margins_has_its_errors():
    dp = protected("replace_one").dp
    table = dp.plan.crosstab(
        "g", "b", epsilon=1, bounding="clamp", normalize=True, constraint="simplex", margins=True
    )
    assert np.isfinite(table["plus_minus"]).all()
    # biases of bounded counts add up, and depend on the exact counts: they are not known
    assert table.columns.tolist() == ["scale", "plus_minus", "cells"]
    with pytest.raises(MetadataError, match="no bias and no root mean squared error"):
        table.dp.plot()


def test_equal_rows_of_a_table_are_told_once():
    dp = protected("add_remove").dp
    table = dp.plan.crosstab("g", "b", epsilon=[0.5, 1], rows=ROWS, margins=True)
    assert table.index.names == ["epsilon", "bounding", "g", "b"]
    # the cells, the sums of rows and of columns, and the sum of all
    first = [("a", False), ("a", "All"), ("All", False), ("All", "All")]
    assert table.loc[0.5, "none"].index.tolist() == first
    assert table["cells"].tolist() == [8, 4, 2, 1] * 2
    assert table.loc[0.5, "plus_minus"].is_monotonic_increasing
    released = dp.crosstab("g", "b", epsilon=0.5, margins=True)
    stored = np.array(released.attrs["dp"]["error"]["plus_minus"])
    expected = [stored[0, 0], stored[0, 2], stored[4, 0], stored[4, 2]]
    assert table.loc[0.5, "plus_minus"].tolist() == pytest.approx(expected)
    several = dp.plan.count(["x", "y"], epsilon=1, rows=ROWS)  # no table: each has its row
    assert several.index.get_level_values(2).tolist() == ["x", "y"]
