"""Numbers that are projected onto what is possible, in `results`, and the numbers before."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy.core.gate.request import Request
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import MetadataError, ParameterError
from tests.support.coverage import CASES, DATA, EPSILONS, by_default
from tests.support.coverage import NUMBERS as MECHANISMS

DOMAIN = Domain(
    (
        Column("x", "float", lower=0, upper=10),
        Column("y", "float", lower=-5, upper=5),
        Column("w", "float", lower=0.5, upper=2),
        Column("g", "category", categories=("a", "b", "c")),
        Column("b", "boolean"),
    )
)
RNG = np.random.default_rng(11)
ROWS = 40
FRAME = pd.DataFrame(
    {
        "x": RNG.beta(1, 30, ROWS) * 10,
        "y": RNG.uniform(-5, 5, ROWS),
        "w": RNG.uniform(0.5, 2, ROWS),
        "g": RNG.choice(["a", "b"], ROWS),  # and none is in the last group
        "b": np.arange(ROWS) < 2,
    }
)
GROUPS = pd.Index(["a", "b", "c"], name="g")


def protected(neighbors="add_remove"):
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10**9, neighbors=neighbors)


def by_group(how):
    return getattr(FRAME.groupby("g")[["x", "y"]], how)().reindex(GROUPS)


def table(margins=False):
    """The shares of the labels among the records of each value of b, by hand."""
    counts = pd.crosstab(FRAME["g"], FRAME["b"]).reindex(GROUPS, fill_value=0)
    shares = counts / counts.sum()
    return shares.assign(All=counts.sum(axis=1) / ROWS) if margins else shares


CALLS = {
    "mean": (lambda dp, **o: dp.mean(["x", "y"], **o), lambda: FRAME[["x", "y"]].mean()),
    "weighted mean": (
        lambda dp, **o: dp.mean("x", weights="w", **o),
        lambda: pd.Series({"x": np.average(FRAME["x"], weights=FRAME["w"])}),
    ),
    "proportion": (lambda dp, **o: dp.proportion("b", **o), lambda: pd.Series([FRAME["b"].mean()])),
    "var": (lambda dp, **o: dp.var(["x", "y"], **o), lambda: FRAME[["x", "y"]].var()),
    "std": (lambda dp, **o: dp.std(["x", "y"], **o), lambda: FRAME[["x", "y"]].std()),
    "describe": (
        lambda dp, **o: dp.describe(["x", "y"], **o),
        lambda: FRAME[["x", "y"]].describe().loc[["count", "mean", "std"]],
    ),
    "pooled_var": (
        lambda dp, **o: dp.pooled_var(["x", "y"], by="g", **o),
        lambda: (FRAME[["x", "y"]] - FRAME.groupby("g")[["x", "y"]].transform("mean")).pow(2).sum() / 37,
    ),
    "group means": (lambda dp, **o: dp.groupby("g").mean(["x", "y"], **o), lambda: by_group("mean")),
    "group variances": (lambda dp, **o: dp.groupby("g").var(["x", "y"], **o), lambda: by_group("var")),
    "shares": (
        lambda dp, **o: dp.value_counts("g", normalize=True, sort=False, **o),
        lambda: FRAME["g"].value_counts(normalize=True).reindex(GROUPS, fill_value=0),
    ),
    "shares by group": (
        lambda dp, **o: dp.groupby("b").value_counts("g", normalize=True, sort=False, **o),
        lambda: table().unstack(),
    ),
    "shares of columns": (
        lambda dp, **o: dp.crosstab("g", "b", normalize="columns", margins=True, **o),
        lambda: table(margins=True),
    ),
    "weighted shares": (
        lambda dp, **o: dp.value_counts("g", normalize=True, sort=False, weights="w", **o),
        lambda: (FRAME.groupby("g")["w"].sum() / FRAME["w"].sum()).reindex(GROUPS, fill_value=0),
    ),
}
LIMITS = {
    # a mean within the bounds, a share of all; a variance is at most R^2 / 2, that of two records
    "mean": ([0, -5], [10, 5]), "weighted mean": (0, 10), "proportion": (0, 1),
    "var": ([0, 0], [50, 50]), "std": (0, 50**0.5),
    "describe": ([[-np.inf] * 2, [0, -5], [0, 0]], [[np.inf] * 2, [10, 5], [50**0.5] * 2]),
    "pooled_var": (0, 100),  # of three groups R^2 (3 + 1) / 4, that of four records in one of them
    "group means": ([0, -5], [10, 5]), "group variances": (0, 50),
    **dict.fromkeys(("shares", "shares by group", "shares of columns", "weighted shares"), (0, 1)),
}  # fmt: skip


@pytest.mark.full(keep=13)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_no_number_moves_away_from_the_truth_or_beyond_its_limits(name, neighbors):
    call, truth = CALLS[name]
    exact, draws = np.asarray(truth(), float), 40
    released = call(protected(neighbors).dp, epsilon=0.1 * draws, releases=draws, rng=1)
    sides = [
        released,
        released.dp.unprojected(),
        *released.dp.metadata.bounds_of_each("bounds", released.shape),
    ]
    # one release after the other
    values, before, least, most = (
        np.asarray(side).reshape(len(side), draws, -1).swapaxes(0, 1).reshape(draws, *exact.shape)
        for side in sides
    )
    lower, upper = (np.array(end) for end in LIMITS[name])
    assert ((values >= lower - 1e-12) & (values <= upper + 1e-12)).all()
    known = np.broadcast_to(np.isfinite(exact), values.shape)  # an empty group has no mean
    assert (np.abs(values - exact)[known] <= np.abs(before - exact)[known] + 1e-9).all()
    outside = (before < least) | (before > most)
    assert (values == before)[~outside].all()
    assert outside.any()


@pytest.mark.full(keep=13)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("releases", [1, 3])
def test_the_numbers_before_are_those_of_no_bounding_bit_for_bit(name, releases):
    call, _ = CALLS[name]
    for seed in range(3):
        options = {"epsilon": 0.5, "rng": seed, "releases": releases}
        projected, plain = (
            call(protected().dp, **options, **bounding) for bounding in ({}, {"bounding": None})
        )
        before = projected.dp.unprojected()
        assert before.dp.verify()
        assert before.equals(plain)
        facts, other = before.dp.metadata.to_dict(), plain.dp.metadata.to_dict()
        facts.pop("budget"), other.pop("budget")
        assert facts == other
        json.dumps(projected.attrs["dp"], allow_nan=False)
        for field in ("scale", "sensitivity", "epsilon", "split"):
            assert getattr(projected.dp.metadata, field) == facts[field]


@pytest.mark.parametrize("name", ["mean", "proportion", "group means", "weighted mean"])
def test_combine_takes_the_numbers_before(name):
    call, _ = CALLS[name]
    for options in ({}, {"releases": 4}):
        estimates = [
            pdprivacy.combine(call(protected().dp, epsilon=0.3, rng=5, **options, **bounding), within=0)
            for bounding in ({}, {"bounding": None})
        ]
        assert estimates[0].equals(estimates[1])


def test_the_mean_of_projected_shares_is_biased_and_that_of_the_shares_before_is_not():
    rows, groups = 50, 100
    names = tuple(f"group {number}" for number in range(groups))
    labels = np.repeat(names, rows)
    frame = pd.DataFrame({"g": labels, "b": np.tile(np.arange(rows) < 1, groups)})  # a share of 0.02 each
    domain = Domain((Column("g", "category", categories=names), Column("b", "boolean")))
    private = pdprivacy.protect(frame, domain, epsilon=10**6)
    projected, before = [], []
    for seed in range(20):
        shares = private.dp.groupby("g").proportion("b", epsilon=0.5, rng=seed)
        projected.append(shares.to_numpy().mean())
        before.append(shares.dp.unprojected().to_numpy().mean())
    error = np.std(before) / np.sqrt(20)
    assert abs(np.mean(before) - 0.02) < 4 * error + 0.002  # a ratio of noisy numbers has a little bias
    assert np.mean(projected) > 0.03


def test_counts_and_sums_stay_and_say_so():
    private = protected()
    for released in (
        private.dp.count(epsilon=0.01, rng=2),
        private.dp.sum(["x", "y"], epsilon=0.01, rng=2),
        private.dp.value_counts("g", epsilon=0.01, rng=2),
    ):
        facts = released.dp.metadata
        assert (facts.bounding, facts.bounds, facts.projection) == (None, None, None)
        assert "bias" not in facts.error
        assert released.to_numpy().min() < 0


def test_a_projection_that_moves_nothing_is_refused_before_it_is_charged():
    private = protected()
    dp, own = private.dp, {"bounding": "project", "epsilon": 1}
    for call in (
        lambda **o: dp.count(**o),
        lambda **o: dp.sum("x", **o),
        lambda **o: dp.agg("sum", "x", **o),
        lambda **o: dp.value_counts("g", **o),
        lambda **o: dp.groupby("g").size(**o),
        lambda **o: dp.crosstab("g", "b", values="x", aggfunc="sum", **o),
    ):
        with pytest.raises(ParameterError, match=r"moves no number of '\w+' here(.|\n)*bounding=\"clamp\""):
            call(**own)
    assert private.dp.budget.spent[0] == 0
    for call in (
        lambda **o: dp.agg(["sum", "mean"], "x", **o),
        lambda **o: dp.value_counts("g", normalize=True, **o),
        lambda **o: dp.crosstab("g", "b", values="x", aggfunc="mean", **o),
    ):
        assert call(**own, rng=1).equals(call(epsilon=1, rng=1))
    plan = dp.plan.value_counts("g", epsilon=1, rows=40, bounding=[None, "clamp"])
    assert plan.index.get_level_values("bounding").unique().tolist() == ["none", "clamp"]


def test_intervals_of_shares_end_at_0_and_1_with_every_bounding():
    private = protected()
    for options in (
        {},
        {"bounding": None},
        {"constraint": "simplex"},
        {"constraint": "hierarchy"},
    ):
        ends = private.dp.value_counts("g", normalize=True, epsilon=0.2, rng=4, **options).dp.interval()
        assert ends["lower"].min() == 0, options
        assert ends["upper"].max() <= 1, options


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.DeclarationWarning")  # the data end at a bound
def test_an_interval_ends_at_the_limits_and_one_beyond_them_keeps_its_margin_of_error():
    domain = Domain((Column("x", "float", lower=0, upper=10),))
    private = pdprivacy.protect(
        pd.DataFrame({"x": [0.0] * 10}), domain, epsilon=10**9, neighbors="replace_one"
    )
    missed = cut = 0
    for seed in range(100):
        mean = private.dp.mean("x", epsilon=1, rng=seed)
        facts, before = mean.dp.metadata, mean.dp.unprojected()
        half = before.dp.metadata.error["plus_minus"]
        assert half < 5
        ends = before.iloc[0] - half, before.iloc[0] + half
        for released in (mean, before):  # bounding=None has the same interval
            interval = released.dp.interval()[["lower", "upper"]].iloc[0].tolist()
            assert interval == pytest.approx([max(mean.iloc[0] - half, 0), min(mean.iloc[0] + half, 10)])
        assert facts.error["plus_minus"] == half
        cut += interval[0] > ends[0]
        if ends[1] < 0:
            missed += 1
            assert facts.projection["missed"] == [0]
            assert "whole interval" in repr(mean.dp)
        else:
            assert facts.projection is None or facts.projection["missed"] == []
    # the noise is beyond its 95 % margin at one side in 2.5 % of draws: 2.5 of 100
    assert 0 < missed <= 10
    assert cut > 25


@pytest.mark.full(keep=14)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("epsilon", [0.02, 1])
def test_the_margin_of_error_stays_up_to_the_limits_and_holds_the_truth_as_often(name, neighbors, epsilon):
    call, truth = CALLS[name]
    exact, draws = np.asarray(truth().to_numpy(), np.float64), 40
    released = call(protected(neighbors).dp, epsilon=epsilon * draws, releases=draws, rng=3)
    plain = released.dp.unprojected()
    least, most = released.dp.metadata.bounds_of_each("bounds", released.shape)
    least, most = np.nan_to_num(least, nan=-np.inf), np.nan_to_num(most, nan=np.inf)
    values = released.to_numpy()
    half, stated = (each.dp.metadata.error_of_each("plus_minus", values.shape) for each in (plain, released))
    assert stated == pytest.approx(np.minimum(half, np.maximum(most - values, values - least)))
    assert (stated > 0).all()
    ends = released.dp.interval()
    covers = []
    for sides in ((plain.to_numpy() - half, plain.to_numpy() + half),
                  (ends["lower"].to_numpy(), ends["upper"].to_numpy())):  # fmt: skip
        lower, upper = (
            side.reshape(len(values), draws, -1).swapaxes(0, 1).reshape(draws, *exact.shape) for side in sides
        )
        covers.append((lower <= exact + 1e-9) & (exact - 1e-9 <= upper))
    assert covers[1][covers[0]].all()


@pytest.mark.full
@pytest.mark.parametrize("data", range(len(DATA)))
@pytest.mark.parametrize("name", ["mean", "proportion", "var"])
def test_intervals_hold_by_default_and_are_no_wider(name, data):
    """1,000 releases have a simulation error of 0.007. The interval of a number that is all noise holds."""
    (case,) = (case for case in CASES if case.name == name)
    for turn, epsilon in enumerate(EPSILONS):
        mechanism = MECHANISMS[(data + turn) % len(MECHANISMS)]
        result = by_default(case, DATA[data], "replace_one", mechanism, epsilon, 1000)
        assert result.covered >= 0.93
        assert result.width <= 1 + 1e-9
        if result.known == 1:
            assert result.covered < 0.995


def test_a_mean_of_a_group_without_records_is_not_stated_as_certain(full):
    private = protected()
    hidden = 0
    for seed in range(300 if full else 60):
        mean = private.dp.groupby("g").mean("x", epsilon=1, rng=seed)
        facts, ends = mean.dp.metadata, mean.dp.interval().xs("x", axis=1, level=1).loc["c"]
        half = facts.error_of_each("plus_minus", mean.shape)[list(mean.index).index("c")]
        assert half > 0
        assert ends["upper"] - ends["lower"] > 0
        if (ends["lower"], ends["upper"]) == tuple(facts.bounds):
            hidden += 1
            assert half == pytest.approx(max(mean.loc["c", "x"], 10 - mean.loc["c", "x"]))
    # the noisy count of no record is beyond its margin of error upwards in 2.5 % of draws
    assert hidden >= (280 if full else 54)


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.DeclarationWarning")
def test_bias_and_error_are_those_of_a_clamped_number():
    """For Laplace noise of scale b around s at the lower bound: E max(noise, 0) = b / 2, E max^2 = b^2."""
    domain = Domain((Column("x", "float", lower=0, upper=1000),))
    private = pdprivacy.protect(
        pd.DataFrame({"x": [0.0] * 100}), domain, epsilon=10**9, neighbors="replace_one"
    )
    mean = next(
        mean
        for seed in range(50)
        if (mean := private.dp.mean("x", epsilon=10, rng=seed)).dp.unprojected().iloc[0] < 0
    )
    b, error = mean.dp.metadata.scale, mean.dp.metadata.error
    assert (error["bias"], error["rmse"]) == pytest.approx((b / 2, b), rel=1e-6)
    assert error["worst_case"]["bias"] == pytest.approx(b / 2, rel=1e-3)
    assert "bias" in repr(mean.dp)


def test_displays_show_the_possible_number_and_say_that_it_was_moved():
    private = protected()
    moved = next(
        mean
        for seed in range(50)
        if (mean := private.dp.mean("x", epsilon=0.05, rng=seed)).dp.unprojected().iloc[0] < 0
    )
    text = repr(moved.dp)
    assert "1 of 1 moved to the nearest possible number" in text
    assert "unprojected()" in text
    assert "projected" not in repr(private.dp.mean("x", epsilon=10**6, rng=1).dp)


def test_files_keep_both(tmp_path):
    table = protected().dp.groupby("g").var(["x", "y"], epsilon=0.1, rng=3)
    table.dp.save(tmp_path / "table.json")
    again = pdprivacy.read_release(tmp_path / "table.json")
    assert again.dp.unprojected().equals(table.dp.unprojected())
    assert not again.equals(again.dp.unprojected())


def test_means_of_dates_are_projected_too():
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-02"] * 40)})
    private = pdprivacy.protect(frame, schema_of_dates(), epsilon=10**9)
    first, last = pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31")
    moved = 0
    for seed in range(20):
        mean = private.dp.mean("when", epsilon=0.2, rng=seed)
        interval, before = mean.dp.interval(), mean.dp.unprojected()
        assert first <= interval["lower"].iloc[0] <= mean.iloc[0] <= interval["upper"].iloc[0] <= last
        moved += before.iloc[0] < first
        plain = private.dp.mean("when", epsilon=0.2, rng=seed, bounding=None)
        assert before.equals(plain)
    assert moved


def schema_of_dates():
    import pandera.pandas as pa

    within = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    return pa.DataFrameSchema({"when": pa.Column("datetime64[ns]", within, metadata={"dp": {}})})


def test_a_projection_is_no_property_of_the_noise():
    request = Request(1, mechanism="laplace", bounding="project")
    assert request.bounding is None
    assert request.projects
    assert request.with_cost(Request(2, mechanism="laplace").cost).projects
    with pytest.raises(ParameterError, match="'bounding' must be one of 'truncated', 'clamp', 'project'"):
        protected().dp.mean("x", epsilon=1, bounding="projected")
    with pytest.raises(ParameterError, match="'bounds' need a 'bounding'"):
        protected().dp.mean("x", epsilon=1, bounds=(0, 5))


def test_a_changed_release_has_no_numbers_before():
    with pytest.raises(MetadataError, match="before the projection are not known"):
        (protected().dp.mean("x", epsilon=0.1) + 1).dp.unprojected()


# ---------------------------------------------------------------- matrices

PAIR = ["x", "y"]
MATRICES = {
    "cov": (lambda dp, **o: dp.cov(["x", "y", "w"], **o), lambda: FRAME[["x", "y", "w"]].cov()),
    "corr": (lambda dp, **o: dp.corr(["x", "y", "w"], **o), lambda: FRAME[["x", "y", "w"]].corr()),
    "pooled_cov": (
        lambda dp, **o: dp.pooled_cov(PAIR, by="g", **o),
        lambda: (
            (FRAME[PAIR] - FRAME.groupby("g")[PAIR].transform("mean")).pipe(lambda d: d.T @ d) / (ROWS - 3)
        ),
    ),
}
RANGES = {"cov": [10, 10, 1.5], "corr": [1, 1, 1], "pooled_cov": [10, 10]}


@cache
def several(name, neighbors, draws=12, **options):
    """Matrices by default and with no bounding, of the same noise."""
    call, truth = MATRICES[name]
    projected, plain = (
        [call(protected(neighbors).dp, epsilon=0.5, rng=seed, **options, **bounding) for seed in range(draws)]
        for bounding in ({}, {"bounding": None})
    )
    return projected, plain, truth().to_numpy()


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_matrices_are_possible_and_as_a_whole_never_farther_from_the_truth(name, neighbors):
    projected, plain, exact = several(name, neighbors)
    units = np.outer(RANGES[name], RANGES[name])
    indefinite = 0
    for matrix, raw in zip(projected, plain, strict=True):
        values, before = matrix.to_numpy() / units, raw.to_numpy() / units
        known = np.isfinite(np.diagonal(before))
        assert (np.isfinite(np.diagonal(values)) == known).all()
        values, before, true = (each[np.ix_(known, known)] for each in (values, before, exact / units))
        if not known.any():
            continue
        assert (values == values.T).all()
        assert np.linalg.eigvalsh(values)[0] >= -1e-12
        if name == "corr":
            assert (np.diagonal(values) == 1).all()
        else:  # R^2 / 2 for two records, R^2 for four records in three groups
            most = 0.5 if name == "cov" else 1.0
            assert ((np.diagonal(values) >= 0) & (np.diagonal(values) <= most * (1 + 1e-12))).all()
        distances = np.linalg.norm(values - true), np.linalg.norm(before - true)
        assert distances[0] <= distances[1] * (1 + 1e-9)
        possible = np.linalg.eigvalsh(before)[0] >= 0
        indefinite += not possible
        if not possible:
            assert distances[0] < distances[1]
    assert indefinite > (3 if name != "corr" else 0)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("options", [{}, {"releases": 3}, {"neighbors": "replace_one"}])
def test_the_matrix_before_is_that_of_no_bounding_bit_for_bit(name, options):
    options = {"neighbors": "add_remove", **options}
    moved = 0
    for matrix, raw in zip(*several(name, draws=4, **options)[:2], strict=True):
        before = matrix.dp.unprojected()
        moved += matrix.dp.metadata.projection is not None
        assert before.dp.verify()
        assert before.equals(raw)
        facts, other = before.dp.metadata.to_dict(), raw.dp.metadata.to_dict()
        facts.pop("budget"), other.pop("budget")
        assert facts == other
        for field in ("scale", "sensitivity", "epsilon", "split"):
            assert getattr(matrix.dp.metadata, field) == facts[field]
        json.dumps(matrix.attrs["dp"], allow_nan=False)
    assert moved


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_interval_of_an_entry_holds_the_truth_as_often_and_is_never_wider(name, neighbors):
    projected, plain, exact = several(name, neighbors)
    for matrix, raw in zip(projected, plain, strict=True):
        ends, before = matrix.dp.interval(), raw.dp.interval()
        lower, upper = (ends[side].to_numpy() for side in ("lower", "upper"))
        low, high = (before[side].to_numpy() for side in ("lower", "upper"))
        known = np.isfinite(matrix.to_numpy())
        values = matrix.to_numpy()[known]
        assert ((lower[known] <= values) & (values <= upper[known])).all()
        covers = (low <= exact) & (exact <= high)
        assert ((lower <= exact + 1e-9) & (exact - 1e-9 <= upper))[covers & known].all()
        half = np.asarray(matrix.dp.metadata.error_of_each("plus_minus", matrix.shape))
        assert (np.abs(values - exact[known]) <= half[known] + 1e-9)[covers[known]].all()
        # the matrix itself is outside the interval of some entry before
        inside = (low[known] <= values) & (values <= high[known])
        assert ((upper - lower)[known] <= (high - low)[known] + 1e-9)[inside].all()


def test_displays_and_files_of_matrices_keep_both(tmp_path):
    projected, _, _ = several("cov", "add_remove")
    matrix = next(each for each in projected if each.dp.metadata.projection is not None)
    text = repr(matrix.dp)
    assert "9 of 9 moved to the nearest possible matrix" in text
    assert "As a whole the matrix is never farther from the true one" in text
    matrix.dp.save(tmp_path / "matrix.json")
    again = pdprivacy.read_release(tmp_path / "matrix.json")
    assert again.dp.unprojected().equals(matrix.dp.unprojected())
    precise = MATRICES["cov"][0](protected().dp, epsilon=10**6, rng=1)
    assert precise.dp.metadata.projection is None
    assert "As a whole" not in repr(precise.dp)


def test_tests_of_correlations_take_the_matrix_before():
    projected, plain, _ = several("corr", "replace_one")
    moved = 0
    for matrix, raw in zip(projected, plain, strict=True):
        moved += not matrix.equals(raw)
        results = [pdprivacy.pearsonr(each, "x", "y", rows=ROWS) for each in (matrix, raw)]
        assert repr(results[0]) == repr(results[1])
    assert moved


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.DeclarationWarning")
def test_a_column_of_one_value_has_variance_zero_and_a_matrix_of_any_size_is_released():
    domain = Domain(
        (
            Column("x", "float", lower=0, upper=1),
            Column("same", "float", lower=3, upper=3),
            Column("large", "float", lower=-1e80, upper=1e80),
        )
    )
    frame = pd.DataFrame({"x": np.linspace(0.1, 0.9, 20), "same": 3.0, "large": 1e79})
    for neighbors in ("add_remove", "replace_one"):
        private = pdprivacy.protect(frame, domain, epsilon=10**9, neighbors=neighbors)
        for epsilon in (1e-9, 1, 10**6):
            matrix = private.dp.cov(epsilon=epsilon, rng=4)
            assert np.isfinite(matrix.to_numpy()).all()
            assert np.abs(matrix.loc["same"]).max() <= 1e-6 * np.abs(matrix.to_numpy()).max()
            private.dp.corr(epsilon=epsilon, rng=4)
