"""Tables whose cells are moved onto linear constraints of public knowledge."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import ParameterError
from pdprivacy.postprocess import LinearConstraint

REGIONS = ("north", "east", "south")
DOMAIN = Domain(
    (
        Column("region", "category", categories=REGIONS, role="quasi_identifier"),
        Column("ill", "boolean", nullable=True, role="sensitive"),
        Column("hours", "float", lower=0, upper=60),
    )
)
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "region": RNG.choice(REGIONS, 300, p=[0.6, 0.3, 0.1]),
        "ill": pd.array(RNG.choice([True, False, None], 300, p=[0.2, 0.7, 0.1]), dtype="boolean"),
        "hours": RNG.uniform(1, 59, 300),
    }
)
NORTH = int((FRAME["region"] == "north").sum())


@pytest.fixture
def dp():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=1000).dp


def truth():
    counts = pd.crosstab(FRAME["region"], FRAME["ill"].astype("string").fillna("null"))
    return counts.loc[[*REGIONS], ["False", "True", "null"]].to_numpy()


def by_optimiser(noisy, constraints, lower=0.0, upper=None):
    """The nearest numbers by sequential quadratic programming, in other words than the library's."""
    answer = optimize.minimize(
        lambda x: ((x - noisy) ** 2).sum() / 2,
        np.full(noisy.size, max(noisy.mean(), 1.0)),
        jac=lambda x: x - noisy,
        bounds=None if lower is None else [(lower, upper)] * noisy.size,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert answer.success or answer.status == 8  # the line search ends in rounding
    return answer.x


def test_a_table_is_moved_to_the_nearest_one(dp, full):
    """The north has a known number of records, and at most a fifth of the south is ill."""
    known = [
        LinearConstraint({("north", ...): 1}, equals=NORTH),
        LinearConstraint({("south", True): 1, ("south", ...): -0.2}, upper=0),
    ]
    for seed in range(10 if full else 3):
        noisy = dp.crosstab("region", "ill", epsilon=0.1, rng=seed)
        table = dp.crosstab("region", "ill", epsilon=0.1, rng=seed, constraint=known)
        expected = by_optimiser(
            noisy.to_numpy(np.float64).ravel(),
            [
                {"type": "eq", "fun": lambda x: x[:3].sum() - NORTH},
                {"type": "ineq", "fun": lambda x: 0.2 * x[6:].sum() - x[7]},
            ],
        )
        np.testing.assert_allclose(table.to_numpy().ravel(), expected, atol=1e-4)
        assert table.loc["north"].sum() == pytest.approx(NORTH)
        before, after = (np.linalg.norm(each.to_numpy() - truth()) for each in (noisy, table))
        assert after <= before
        pd.testing.assert_frame_equal(table.dp.unprojected(), noisy)
        assert table.dp.unprojected().dp.metadata.constraints is None


def test_labels_are_those_of_the_released_order(dp):
    """Sorted counts, a null label, and all labels of a column."""
    known = [LinearConstraint({("south", None): 1, ("east", ...): 2}, equals=500)]
    counts = dp.value_counts(["region", "ill"], epsilon=0.1, rng=3, constraint=known)
    noisy = dp.value_counts(["region", "ill"], epsilon=0.1, rng=3)
    assert counts.to_numpy().tolist() == sorted(counts, reverse=True)
    null = counts.index.get_level_values("ill").isna()
    south, east = ((counts.index.get_level_values(0) == name) for name in ("south", "east"))
    assert counts[south & null].sum() + 2 * counts[east].sum() == pytest.approx(500)
    pd.testing.assert_series_equal(counts.dp.unprojected().sort_index(), noisy.sort_index())
    assert counts.dp.verify()
    pairs = counts.dp.interval()
    assert ((pairs["lower"] <= pairs["released"]) & (pairs["released"] <= pairs["upper"])).all()


def test_shares_sum_to_one(dp):
    half = LinearConstraint({"north": 1}, equals=0.5)
    shares = dp.value_counts("region", epsilon=0.05, normalize=True, rng=2, constraint=half)
    noisy = dp.value_counts("region", epsilon=0.05, normalize=True, rng=2, sort=False)
    expected = by_optimiser(
        noisy.to_numpy(),
        [
            {"type": "eq", "fun": lambda x: x[0] - 0.5},
            {"type": "eq", "fun": lambda x: x.sum() - 1},
        ],
        upper=1.0,
    )
    np.testing.assert_allclose(shares[[*REGIONS]], expected, atol=1e-6)
    assert shares["north"] == pytest.approx(0.5)


@pytest.mark.full
def test_without_bounds_equalities_are_unbiased(dp):
    """The mean of many releases is that of the data, where cells near 0 would be biased within bounds."""
    known = LinearConstraint({...: 1}, equals=len(FRAME))
    options = {"epsilon": 40, "constraint": known, "releases": 2000, "rng": 1, "sort": False}  # 0.02 each
    free = dp.value_counts("region", **options, bounding=None)
    bounded = dp.value_counts("region", **options)
    exact = FRAME["region"].value_counts()[[*REGIONS]]
    variance = 2 * 50**2 * 2 / 3  # two of three dimensions are left
    error = np.sqrt(variance / 2000)
    assert (np.abs(free.mean(axis=1) - exact) < 4 * error).all()
    assert bounded.mean(axis=1)["south"] > exact["south"] + 4 * error
    np.testing.assert_allclose(free.sum(), len(FRAME))
    np.testing.assert_allclose(bounded.sum(), len(FRAME))
    assert bounded.to_numpy().min() == 0
    spread = (free.sub(exact, axis=0) ** 2).to_numpy().mean()
    assert spread == pytest.approx(variance, rel=0.1)


def test_public_rows_limit_each_count():
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=100, neighbors="replace_one")
    known = LinearConstraint({"north": 1, "east": -1}, lower=0)
    counts = private.dp.value_counts("region", epsilon=0.01, rng=1, constraint=known)
    assert counts.dp.metadata.bounds == [0.0, float(len(FRAME))]
    assert counts.between(0, len(FRAME)).all()
    assert counts["north"] >= counts["east"] - 1e-9


@pytest.mark.full
def test_intervals_hold_the_exact_counts(dp):
    known = [
        LinearConstraint({("north", ...): 1}, equals=NORTH),
        LinearConstraint({(..., True): 1, (..., False): -0.5}, upper=0),
    ]
    inside = []
    for seed in range(150):
        table = dp.crosstab("region", "ill", epsilon=0.2, rng=seed, constraint=known)
        for level in (None, 0.95):
            ends = table.dp.interval() if level is None else table.dp.interval(level=level)
            inside.append((ends["lower"].to_numpy() <= truth()) & (truth() <= ends["upper"].to_numpy()))
    assert np.mean(inside) >= 0.94


def test_the_charge_and_the_noise_are_those_without_constraints(dp):
    known = LinearConstraint({"north": 1}, upper=100)
    plain, moved = (
        dp.value_counts("region", epsilon=0.25, rng=4, constraint=constraint).dp.metadata
        for constraint in (None, known)
    )
    for name in ("epsilon", "delta", "scale", "sensitivity", "split", "mechanism"):
        assert getattr(plain, name) == getattr(moved, name)
    assert plain.error["standard_error"] == moved.error["standard_error"]
    assert dp.budget.spent == (0.5, 0.0)
    assert moved.constraint == "linear"
    assert moved.constraints == ["'north' <= 100"]
    assert moved.error["bias"] is None
    assert "depends on the exact numbers" in moved.error["note"]


def test_the_risk_is_that_of_the_noisy_counts():
    """The metadata hold the noisy counts, so that a reader has them and their sums over a column."""
    known = LinearConstraint({("north", ..., ...): 1}, equals=300)
    sensitive = tuple(Column(name, "boolean", role="sensitive") for name in ("ill", "poor"))
    frame = pd.DataFrame(
        {
            "region": ["north"] * 290 + ["south"] * 10,
            "ill": [True] * 290 + [False] * 10,
            "poor": [True, False] * 150,
        }
    )
    risks = []
    for constraint in (None, known):
        private = pdprivacy.protect(frame, Domain((DOMAIN["region"], *sensitive)), epsilon=1)
        table = private.dp.value_counts(["region", "ill", "poor"], epsilon=1, rng=1, constraint=constraint)
        risks.append(table.dp.metadata.dr_ha)
    assert risks[0]["by_cells"] > 0
    assert risks[0] == risks[1]


@pytest.mark.parametrize(
    "noise",
    [
        {"mechanism": "geometric"},
        {"mechanism": "laplace"},
        {"mechanism": "discrete_gaussian", "delta": 1e-6},
    ],
)
def test_the_noisy_counts_keep_their_type(noise):
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1000, delta=0.1)
    known = LinearConstraint({"north": 1}, upper=100)
    noisy, moved = (
        private.dp.value_counts("region", epsilon=0.5, rng=4, constraint=constraint, **noise)
        for constraint in (None, known)
    )
    assert moved.dtype == np.float64
    pd.testing.assert_series_equal(moved.dp.unprojected().sort_index(), noisy.sort_index())


def test_sums_of_weights_are_moved(dp):
    known = LinearConstraint({...: 1}, equals=9000)
    sums = dp.value_counts("region", weights="hours", epsilon=0.1, rng=1, constraint=known)
    assert sums.sum() == pytest.approx(9000)
    assert sums.min() >= 0
    noisy = dp.value_counts("region", weights="hours", epsilon=0.1, rng=1)
    moved = sums - noisy
    assert np.ptp(moved[sums > 0]) == pytest.approx(0, abs=1e-6)


CASES = {
    "an unknown label": (
        {"constraint": LinearConstraint({"west": 1}, lower=0)},
        "must name cells of the table by the labels of its column, 'region'",
        "LinearConstraint({'north': 1}, lower=0)",
    ),
    "a contradiction": (
        {"constraint": [LinearConstraint({"north": 1}, lower=2), LinearConstraint({"north": 1}, upper=1)]},
        "no table meets",
        None,
    ),
    "a negative sum of counts": (
        {"constraint": LinearConstraint({"north": 1, "east": 2}, upper=-1)},
        "no table meets",
        None,
    ),
    "shares above one": (
        {"constraint": LinearConstraint({"north": 1, "east": 1}, lower=1.01), "normalize": True},
        "no table meets",
        None,
    ),
    "nothing left": (
        {"constraint": LinearConstraint({"north": 1, ("north",): -1}, lower=0)},
        "add up to 0 in every cell",
        None,
    ),
    "other bounding": (
        {"constraint": LinearConstraint({"north": 1}, lower=0), "bounding": "truncated"},
        "moves numbers within their bounds by itself",
        "bounding=None",
    ),
    "texts": ({"constraint": ["simplex"]}, "or one or more linear constraints", "LinearConstraint("),
    "nothing": ({"constraint": []}, "or one or more linear constraints", "LinearConstraint("),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.BoundingWarning")
def test_constraints_are_refused_before_the_charge(dp, case):
    options, message, hint = CASES[case]
    with pytest.raises(ParameterError, match=message) as caught:
        dp.value_counts("region", epsilon=0.1, **options)
    assert hint is None or hint in str(caught.value)
    assert dp.budget.spent == (0, 0)


def test_margins_and_shares_of_rows_are_refused(dp):
    known = LinearConstraint({("north", ...): 1}, lower=3)
    for options in ({"margins": True}, {"normalize": "index"}, {"normalize": "columns"}):
        with pytest.raises(ParameterError, match="for cells, and for shares of all"):
            dp.crosstab("region", "ill", epsilon=0.1, constraint=known, **options)
    with pytest.raises(ParameterError, match="one label of each of its columns, 'region', 'ill'"):
        dp.crosstab("region", "ill", epsilon=0.1, constraint=LinearConstraint({"north": 1}, lower=3))
    wide = Domain(tuple(Column(name, "integer", lower=0, upper=400) for name in "nm"))
    private = pdprivacy.protect(pd.DataFrame({"n": [1, 399], "m": [1, 399]}), wide, epsilon=1)
    with pytest.raises(ParameterError, match="at most 100000 numbers"):
        private.dp.value_counts(["n", "m"], epsilon=1, constraint=LinearConstraint({...: 1}, equals=2))
    assert dp.budget.spent == (0, 0)


def test_a_plan_and_saved_releases_keep_constraints(dp, tmp_path):
    known = LinearConstraint({"north": 1, "east": -1}, lower=0)
    plan = dp.plan.value_counts("region", epsilon=0.5, rows=300, constraint=known)
    assert (
        plan["plus_minus"].to_list()
        == dp.plan.value_counts("region", epsilon=0.5, rows=300)["plus_minus"].to_list()
    )
    counts = dp.value_counts("region", epsilon=0.1, rng=1, constraint=known)
    for name in ("a.parquet", "a.csv", "a.json"):
        counts.dp.save(tmp_path / name)
        again = pdprivacy.read_release(tmp_path / name)
        assert again.dp.verify()
        assert again.dp.metadata.constraints == ["'north' - 'east' >= 0"]
        pd.testing.assert_series_equal(again.dp.unprojected(), counts.dp.unprojected())
