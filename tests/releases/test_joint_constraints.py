"""Batches whose numbers are moved together onto linear constraints (`consistency`)."""

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
        Column("region", "category", categories=REGIONS),
        Column("ill", "boolean"),
        Column("hours", "float", lower=0, upper=60),
        Column("pay", "float", lower=0, upper=9000),
    )
)
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "region": RNG.choice(REGIONS, 400, p=[0.6, 0.35, 0.05]),
        "ill": RNG.random(400) < 0.3,
        "hours": RNG.uniform(10, 50, 400),
        "pay": RNG.uniform(1000, 5000, 400),
    }
)


@pytest.fixture
def private():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10_000)


def totals_and_parts(private, seed=1, constrain=True, **options):
    """A total, counts of its parts, and a table of these, with noise of three sizes."""
    with private.dp.batch() as batch:
        total = batch.count(epsilon=0.5, rng=seed, **options)
        parts = batch.value_counts("region", epsilon=0.2, rng=seed + 10**6, **options)
        table = batch.crosstab("region", "ill", epsilon=0.1, rng=seed + 2 * 10**6, **options)
        if constrain:
            batch.constrain(LinearConstraint({total: 1, parts[...]: -1}, equals=0))
            batch.constrain(
                *(LinearConstraint({parts[name]: 1, table[name, ...]: -1}, equals=0) for name in REGIONS)
            )
    return total.result, parts.result, table.result


def stacked(total, parts, table):
    """All numbers: the total, the parts in declared order, and the table by rows."""
    return np.concatenate(
        [total.to_numpy(float), parts[[*REGIONS]].to_numpy(float), table.to_numpy(float).ravel()]
    )


SUMS = np.zeros((4, 10))
SUMS[0, :4] = 1, -1, -1, -1
for part in range(3):
    SUMS[1 + part, 1 + part] = 1
    SUMS[1 + part, 4 + 2 * part : 6 + 2 * part] = -1


def variance(epsilon):
    """The variance of geometric noise at sensitivity 1."""
    ratio = np.exp(-epsilon)
    return 2 * ratio / (1 - ratio) ** 2


VARIANCES = np.repeat([variance(0.5), variance(0.2), variance(0.1)], [1, 3, 6])


def test_without_bounds_the_numbers_are_the_best_linear_estimates(private):
    """Generalized least squares in closed form: with V the variances, y - V A' (A V A')^-1 A y."""
    gain = VARIANCES[:, None] * SUMS.T @ np.linalg.inv((SUMS * VARIANCES) @ SUMS.T)
    for seed in range(5):
        noisy = stacked(*totals_and_parts(private, seed, constrain=False, bounding=None))
        moved = stacked(*totals_and_parts(private, seed, bounding=None))
        np.testing.assert_allclose(moved, noisy - gain @ SUMS @ noisy, atol=1e-7)


@pytest.mark.full
def test_the_errors_of_the_best_estimates_are_smaller(private):
    exact = np.concatenate(
        [
            [len(FRAME)],
            FRAME["region"].value_counts()[[*REGIONS]],
            pd.crosstab(FRAME["region"], FRAME["ill"]).loc[[*REGIONS]].to_numpy().ravel(),
        ]
    )
    moved = [stacked(*totals_and_parts(private, seed, bounding=None)) - exact for seed in range(400)]
    inverse = np.linalg.inv((SUMS * VARIANCES) @ SUMS.T)
    expected = VARIANCES - np.diag((SUMS * VARIANCES).T @ inverse @ (SUMS * VARIANCES))
    assert (np.abs(np.mean(moved, axis=0)) < 4 * np.sqrt(expected / 400)).all()
    np.testing.assert_allclose(np.var(moved, axis=0), expected, rtol=0.35)
    assert (expected < 0.98 * VARIANCES).all()


def test_within_bounds_they_are_those_of_an_optimiser(private):
    for seed in range(6):
        noisy = stacked(*totals_and_parts(private, seed, constrain=False))
        moved = stacked(*totals_and_parts(private, seed))
        answer = optimize.minimize(
            lambda x, noisy=noisy: ((x - noisy) ** 2 / VARIANCES).sum(),
            np.concatenate([[400], np.full(3, 400 / 3), np.full(6, 400 / 6)]),
            jac=lambda x, noisy=noisy: 2 * (x - noisy) / VARIANCES,
            bounds=[(0, None)] * 10,
            constraints={"type": "eq", "fun": lambda x: SUMS @ x, "jac": lambda x: SUMS},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        np.testing.assert_allclose(moved, answer.x, atol=1e-3)
        assert moved.min() >= 0
        np.testing.assert_allclose(SUMS @ moved, 0, atol=1e-9)


def test_each_release_keeps_its_noisy_numbers_and_its_noise(private):
    moved, noisy = (totals_and_parts(private, 3, constrain=constrain) for constrain in (True, False))
    compare = (pd.testing.assert_series_equal, pd.testing.assert_series_equal, pd.testing.assert_frame_equal)
    for each, before, same in zip(moved, noisy, compare, strict=True):
        same(each.dp.unprojected().sort_index(), before.sort_index())
        assert each.dp.verify()
        facts, earlier = each.dp.metadata, before.dp.metadata
        for name in ("epsilon", "scale", "sensitivity", "statistic", "split", "charge"):
            assert getattr(facts, name, None) == getattr(earlier, name, None)
        assert facts.error["standard_error"] == earlier.error["standard_error"]
        assert (facts.constraint, facts.error["bias"]) == ("linear", None)
        ends = each.dp.interval()
        assert (ends["lower"] <= ends["upper"]).all(axis=None)
    assert moved[0].dp.metadata.constraints == ["count[...] - value_counts of region[...] = 0"]
    assert moved[1].is_monotonic_decreasing
    assert private.dp.budget.spent == (1.6, 0)
    assert len(private.dp.budget.entries) == 2


def test_units_do_not_matter():
    """Means in other units are moved to the same numbers in these units."""
    results = []
    for factor in (1.0, 1024.0):
        domain = Domain((*DOMAIN.columns[:3], Column("pay", "float", lower=0, upper=9000 * factor)))
        private = pdprivacy.protect(FRAME.assign(pay=FRAME["pay"] * factor), domain, epsilon=100)
        with private.dp.batch() as batch:
            means = batch.mean(["hours", "pay"], epsilon=0.05, rng=2)
            batch.constrain(LinearConstraint({means["hours"]: 100 * factor, means["pay"]: -1}, upper=0))
            batch.constrain(LinearConstraint({means["pay"]: 1}, lower=8000 * factor))
        results.append(means.result.to_numpy() / [1, factor])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9)
    assert results[0][1] >= 8000 * (1 - 1e-9)
    assert 100 * results[0][0] <= results[0][1] * (1 + 1e-9)


def test_bounds_are_kept_and_intervals_hold_the_exact_numbers(private):
    means = FRAME[["hours", "pay"]].mean()
    inside = []
    for seed in range(200):
        with private.dp.batch() as batch:
            released = batch.mean(["hours", "pay"], epsilon=0.05, rng=seed)
            batch.constrain(LinearConstraint({released["pay"]: 1, released["hours"]: -120}, upper=0))
        result = released.result
        assert (result >= 0).all()
        assert (result <= [60, 9000]).all()
        assert result["pay"] <= 120 * result["hours"] + 1e-6
        ends = result.dp.interval()
        inside.append((ends["lower"] <= means) & (means <= ends["upper"]))
    assert np.mean(inside) >= 0.93


def test_a_plan_of_a_batch_keeps_its_constraints(private):
    with private.dp.batch() as batch:
        parts = batch.value_counts("region", epsilon=0.1, rng=1)
        batch.constrain(LinearConstraint({parts[...]: 1}, equals=400))
        plan = batch.plan()
        assert plan.cost.epsilon == pytest.approx(0.1)
    (again,) = plan.release()
    assert again.sum() == parts.result.sum() == pytest.approx(400)
    pd.testing.assert_series_equal(again, parts.result)


def test_constraints_are_refused_before_the_charge(private):
    with private.dp.batch() as other:
        elsewhere = other.count(epsilon=0.1)
        with private.dp.batch() as batch:
            parts = batch.value_counts("region", epsilon=0.1)
            means = batch.mean(["hours", "pay"], epsilon=0.1)
            for key, message in (
                (parts["west"], "must name numbers of 'value_counts of region' by their labels"),
                (means["age"], "must name numbers of 'mean of hours, pay' by their labels"),
                (parts["north", "east"], "by their labels"),
                (parts, "'value_counts of region' holds several numbers"),
                (elsewhere, "must name releases of this batch"),
                ("north", "must name releases of this batch"),
            ):
                with pytest.raises(ParameterError, match=message):
                    batch.constrain(LinearConstraint({key: 1}, lower=0))
            with pytest.raises(ParameterError, match="that no numbers meet"):
                batch.constrain(LinearConstraint({means["hours"]: 1}, lower=61))
            with pytest.raises(ParameterError, match="add up to 0"):
                batch.constrain(LinearConstraint({parts["east"]: 1, parts["east",]: -1}, lower=1))
            with pytest.raises(ParameterError, match="one or more linear constraints"):
                batch.constrain()
            with pytest.raises(ParameterError, match="is not released yet"):
                list(parts)
            batch.constrain(LinearConstraint({means["hours"]: 1}, lower=30))
            with pytest.raises(ParameterError, match="that no numbers meet"):
                batch.constrain(LinearConstraint({means["hours"]: 1}, upper=29))
            assert private.dp.budget.spent == (0, 0)
    with pytest.raises(ParameterError, match="not open"):
        batch.constrain(LinearConstraint({means["hours"]: 1}, lower=30))
    assert means.result["hours"] >= 30 - 1e-9
    assert means.result["hours"] == means.result.dp.unprojected()["hours"] or means.result["hours"] < 60


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.BoundingWarning")
def test_releases_without_bounds_and_errors_of_their_own_are_refused(private):
    with private.dp.batch() as batch:
        for pending in (
            batch.mode("region", epsilon=0.1),
            batch.median("hours", epsilon=0.1),
            batch.cov(["hours", "pay"], epsilon=0.1),
            batch.describe("hours", epsilon=0.1),
            batch.mean("hours", epsilon=0.1, releases=2),
        ):
            with pytest.raises(ParameterError, match="cannot move"):
                batch.constrain(LinearConstraint({pending[...]: 1}, lower=0))
        for pending in (
            batch.crosstab("region", "ill", epsilon=0.1, margins=True),
            batch.value_counts("region", epsilon=0.1, normalize=True),
            batch.value_counts("region", epsilon=0.1, constraint="nonnegative"),
            batch.mean("hours", epsilon=0.1, bounding="clamp"),
        ):
            with pytest.raises(ParameterError, match="within its bounds, and by themselves"):
                batch.constrain(LinearConstraint({pending[...]: 1}, lower=0))
        batch.__exit__(ValueError, None, None)
    assert private.dp.budget.spent == (0, 0)
