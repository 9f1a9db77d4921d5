"""Staircase and discrete Gaussian noise in releases: charges, laws, refusals, and what is made of them."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Approx, Pure
from pdprivacy.core.distributions import DiscreteNormal, Stairs
from pdprivacy.core.mechanisms import MECHANISMS, DiscreteGaussian, MechanismName, Staircase
from pdprivacy.core.statistics.confidence import Tail
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import ParameterError
from tests.support.recorder import recording
from tests.support.statistics import accepts_only, accepts_share

DOMAIN = Domain(
    (
        Column("x", "float", lower=0.0, upper=100.0),
        Column("y", "float", lower=-1.0, upper=1.0),
        Column("g", "category", categories=("a", "b", "c"), role="quasi_identifier"),
        Column("h", "category", categories=("u", "v"), role="sensitive"),
        Column("id", "integer", lower=-1, upper=10**6),
    )
)
ROWS = 400
STAIRCASE: dict[str, Any] = {"mechanism": "staircase"}
DISCRETE: dict[str, Any] = {"mechanism": "discrete_gaussian", "delta": 1e-6}


def private(**terms: Any) -> Any:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "x": draw.uniform(0, 100, ROWS).round(1),
            "y": draw.uniform(-1, 1, ROWS),
            "g": draw.choice(["a", "b", "c"], ROWS),
            "h": draw.choice(["u", "v"], ROWS),
            "id": np.arange(ROWS),
        }
    )
    return frame.dp.protect(DOMAIN, **{"epsilon": 10**6, "delta": 0.5, **terms})


def test_the_names_of_mechanisms_are_those_that_may_be_asked_for():
    assert tuple(MECHANISMS) == get_args(MechanismName)
    assert all(mechanism.name == name and mechanism.title for name, mechanism in MECHANISMS.items())


# ---------------------------------------------------------------- what is charged, and what is drawn


def test_the_noise_of_a_staircase_release_is_that_of_its_share_of_epsilon():
    p = private()
    with recording() as record:
        p.dp.mean(["x", "y"], epsilon="0.3", rng=1, **STAIRCASE)
    (charge,), draws = record.charges, record.draws
    assert (charge.epsilon, charge.delta) == (Fraction(3, 10), 0)
    assert sum(draw.epsilon for draw in draws) == charge.epsilon
    for draw in draws:
        epsilon, width, step = draw.law.parameters
        assert epsilon == draw.epsilon == charge.epsilon * draw.weight
        assert draw.moves == 1
        assert width * draw.grid == draw.l1 * draw.unit  # the stair is as wide as the number moves
        assert step >= 2**20
        assert float(step / width) == pytest.approx(1 / (1 + math.exp(float(epsilon) / 2)), rel=1e-6)


def test_a_coarse_grid_widens_the_stair_by_a_step():
    """With so small an epsilon the stairs would be too many steps of the unit."""
    p = private(epsilon=1, unit="id", max_rows=2000)
    with recording() as record:
        p.dp.sum("x", epsilon="1e-6", rng=1, **STAIRCASE)
    (draw,) = record.draws
    _, width, _ = draw.law.parameters
    assert draw.grid > draw.unit
    assert draw.l1 * draw.unit <= (width - 1) * draw.grid
    assert (width - 2) * draw.grid < draw.l1 * draw.unit


def test_staircase_numbers_have_the_claimed_law_and_no_other():
    p = private()
    exact = float(p.dp.sum("x", epsilon=10**5, rng=1).iloc[0])
    epsilon = 1.5
    drawn = (
        p.dp.sum("x", epsilon=epsilon * 5000, releases=5000, rng=2, **STAIRCASE).to_numpy().ravel() - exact
    )
    gamma = 1 / (1 + math.exp(epsilon / 2))
    accepts_only(drawn, lambda factor: Stairs(epsilon, 100 * factor, gamma).cdf)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_discrete_gaussian_counts_have_the_claimed_law_and_no_other(neighbors):
    p = private(neighbors=neighbors)
    exact = p.dp.value_counts("g", epsilon=10**5, sort=False, rng=1).to_numpy()
    options = {"mechanism": "discrete_gaussian", "delta": 1e-3, "sort": False, "rng": 2}
    table = p.dp.value_counts("g", epsilon=1000, releases=2000, **options)
    assert (table.dtypes == np.int64).all()
    scale = table.attrs["dp"]["scale"]
    sensitivity = 1 if neighbors == "add_remove" else math.sqrt(2)
    assert table.attrs["dp"]["sensitivity"] == pytest.approx(sensitivity)
    expected = DiscreteGaussian(
        Fraction(1, 2), Fraction(1, 2_000_000), sensitivity, l0_sensitivity=1 if sensitivity == 1 else 2
    )
    assert scale == pytest.approx(expected.scale, rel=1e-6)
    drawn = table.to_numpy() - exact[:, np.newaxis]
    accepts_only(drawn, lambda factor: DiscreteNormal(scale * factor).cdf)


def test_several_tables_of_discrete_gaussian_noise_share_rho():
    p = private(delta=1e-4, accounting="zcdp")
    with recording() as record:
        p.dp.count(["x", "y", "g"], epsilon=1, delta=1e-5, mechanism="discrete_gaussian", rng=1)
        p.dp.value_counts("g", epsilon=1, delta=1e-5, mechanism="discrete_gaussian", rng=1)
    for charge, draws in zip(record.charges, (record.draws[:-1], record.draws[-1:]), strict=True):
        assert (charge.epsilon, charge.delta) == (1, Fraction(1, 10**5))
        (event,) = charge.events
        multiplier, moves, steps = event.gaussian
        rho = sum(Fraction(draw.l2_squared) / (2 * draw.law.parameters[0]) for draw in draws)
        assert rho <= 1 / (2 * multiplier**2) <= rho * (1 + Fraction(1, 10**9))
        assert moves == sum(draw.moves for draw in draws)
        assert steps == min(math.isqrt(math.floor(draw.law.parameters[0])) for draw in draws)
    # only rho is charged, which adds up to less than the epsilons do
    assert p.dp.budget.spent[1] <= 1e-4


@pytest.mark.parametrize("epsilon", [5, 8, 40])
def test_noise_of_a_deviation_below_one_has_its_rho(epsilon):
    p = private()
    with recording() as record:
        p.dp.count(epsilon=epsilon, delta=1e-3, mechanism="discrete_gaussian", rng=1)
    (charge,) = record.charges
    (event,) = charge.events
    assert (event.epsilon, event.delta) == (epsilon, Fraction(1, 1000))
    multiplier, *_ = event.gaussian
    assert multiplier < 1
    # Rényi divergences between a count and the next one, exactly: Canonne, Kamath, Steinke (2020), Theorem 4
    z = np.arange(-60, 61)
    log_mass = -(z**2) / (2 * float(multiplier) ** 2)
    log_mass -= np.log(np.exp(log_mass).sum())
    for alpha in (1.1, 2, 5, 20):
        terms = alpha * log_mass[1:] + (1 - alpha) * log_mass[:-1]
        divergence = (terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (alpha - 1)
        assert divergence <= alpha / (2 * float(multiplier) ** 2) * (1 + 1e-9)


def test_small_and_large_epsilons_are_possible():
    p = private(epsilon=10**7)
    for epsilon in ("1e-5", 1, 100, "1e5"):
        number = p.dp.sum("x", epsilon=epsilon, rng=1, **STAIRCASE)
        assert math.isfinite(number.iloc[0])
        assert p.dp.count(epsilon=epsilon, rng=1, **DISCRETE).dtypes == np.int64


# ---------------------------------------------------------------- what is refused, before it is charged

REFUSED: dict[str, tuple[Any, str, str]] = {
    "staircase of two changed cells": (
        lambda p: p.dp.crosstab("g", "h", epsilon=1, **STAIRCASE), "one changed number", "laplace"),
    "staircase of a tree": (
        lambda p: p.dp.value_counts("g", epsilon=1, constraint="hierarchy", **STAIRCASE),
        "one changed number", "laplace"),
    "truncated staircase": (
        lambda p: p.dp.mean("x", epsilon=1, bounding="truncated", **STAIRCASE), "not offered", "clamp"),
    "staircase with a delta": (
        lambda p: p.dp.mean("x", epsilon=1, delta=1e-6, **STAIRCASE), "'delta' must be 0", "leave delta out"),
    "staircase of an order": (
        lambda p: p.dp.mean("x", epsilon=1, p=2, **STAIRCASE), "is the order", "p=3"),
    "staircase, analytic": (
        lambda p: p.dp.mean("x", epsilon=1, calibration="analytic", **STAIRCASE), "for Gaussian", "gaussian"),
    "discrete Gaussian mean": (
        lambda p: p.dp.mean("x", epsilon=1, **DISCRETE), "is for counts", 'mechanism="gaussian"'),
    "discrete Gaussian without delta": (
        lambda p: p.dp.value_counts("g", epsilon=1, mechanism="discrete_gaussian"),
        "'delta' must be positive", "1e-6"),
    "truncated discrete Gaussian": (
        lambda p: p.dp.value_counts("g", epsilon=1, bounding="truncated", **DISCRETE),
        "not offered", "clamp"),
    "discrete Gaussian, analytic": (
        lambda p: p.dp.value_counts("g", epsilon=1, calibration="classic", **DISCRETE),
        "for Gaussian", "gaussian"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_claim_is_refused_before_the_charge(name):
    call, message, hint = REFUSED[name]
    p = private(neighbors="replace_one")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdprivacy.errors.BoundingWarning)
        with pytest.raises(ParameterError, match=message) as caught:
            call(p)
    assert hint in caught.value.hint
    assert p.dp.budget.spent == (0, 0)


# ---------------------------------------------------------------- what is made of such releases

TABLES = {"staircase": STAIRCASE, "discrete Gaussian": DISCRETE}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("bounding", [None, "clamp", "bit"])
def test_a_table_states_its_noise_and_holds_its_counts(name, bounding):
    p, noise = private(), TABLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdprivacy.errors.BoundingWarning)
        table = p.dp.crosstab("g", "h", epsilon=1, bounding=bounding, rng=1, **noise)
    facts = table.dp.metadata
    assert (facts.mechanism, facts.bounding) == (noise["mechanism"], bounding and "clamp")
    assert p.dp.budget.spent == (1, noise.get("delta", 0))
    assert 0 < facts.dr_ha["by_records"] < 1
    mechanism = Staircase(1, 1, grid=2.0**-24) if name == "staircase" else DiscreteGaussian(1, 1e-6)
    assert facts.scale == pytest.approx(mechanism.scale)
    assert facts.error["standard_error"] == pytest.approx(mechanism.std)
    assert facts.error["plus_minus"] == pytest.approx(mechanism.interval(0.95)[1])
    assert table.dp.verify()
    # more was spent: the risk that the budget notes is that of the noise of all of it
    p.dp.crosstab("g", "h", epsilon=2, rng=1, **noise)
    assert len(p.dp.budget.entries) == 2


def test_bit_is_clamp_in_plans_and_for_the_curator():
    p = private()
    plan = p.dp.plan.mean("x", epsilon=1, bounding=[None, "bit"], rows=ROWS)
    assert plan.index.get_level_values("bounding").tolist() == ["none", "clamp"]
    risks = [p.dp.dr_ha("g", "h", 0.1, bounding=name) for name in ("bit", "clamp")]
    assert risks[0] == risks[1]
    with pytest.raises(ParameterError, match="'bounding' must be one of 'truncated', 'clamp'"):
        p.dp.mean("x", epsilon=1, bounding="byte")


@pytest.mark.parametrize("name", TABLES)
def test_every_way_to_ask_for_a_release_offers_the_noise(name):
    p, noise = private(), TABLES[name]
    plan = p.dp.plan.crosstab("g", "h", epsilon=[0.5, 1], rows=ROWS, **noise)
    assert (plan["rmse"] > 0).all()
    with p.dp.batch() as batch:
        pending = batch.count(epsilon=1, rng=1, **noise)
    assert abs(int(pending.result.iloc[0]) - ROWS) < 60
    (planned,) = p.dp.plan_releases(
        [("count", {"epsilon": 1, "rng": 1, **noise})], delta=noise.get("delta", 0), accounting="basic"
    ).release()
    assert abs(int(planned.iloc[0]) - ROWS) < 60
    grouped = p.dp.groupby("g").count(epsilon=1, rng=1, **noise)
    assert grouped.sum() == pytest.approx(ROWS, abs=100)
    several = p.dp.value_counts("g", epsilon=1, releases=3, rng=1, **noise)
    assert pdprivacy.combine(several, within=0).shape[0] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdprivacy.errors.OmissionWarning)
        sample = p.dp.sample(frac=0.5, rng=1)
    spent = p.dp.budget.spent
    assert 100 < int(sample.dp.count(epsilon=1, rng=1, **noise).iloc[0]) < 300
    assert spent[0] < p.dp.budget.spent[0] <= spent[0] + 1.01
    risks = p.dp.risk_curve("g", "h", epsilon=[0.01, 1, 50], progress=False, **noise)
    assert risks.iloc[:, 0].between(0, 1).all()
    assert float(p.dp.choose_epsilon("g", "h", max_risk=0.4, progress=False, **noise)) > 0


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("name", "epsilon"), [("mean", 0.5), ("mean", 16.0), ("var", 0.5)])
@pytest.mark.parametrize("bounding", [None, "clamp"])
def test_ratios_and_variances_with_staircase_noise_have_intervals_that_hold_them(name, epsilon, bounding):
    """Both columns share a count, whose noise is of another epsilon than theirs.

    One call makes 120 releases side by side, each of this epsilon and with an interval of its own.
    """
    p = private()
    release = getattr(p.dp, name)
    truth = release(["x", "y"], epsilon=10**5, rng=1)
    options = {"epsilon": 120 * epsilon, "releases": 120, "bounding": bounding, **STAIRCASE}
    ends = release(["x", "y"], rng=2, **options).dp.interval()
    for column in ("x", "y"):
        inside = (ends["lower"].loc[column] <= truth[column]) & (truth[column] <= ends["upper"].loc[column])
        assert accepts_share(inside.sum(), len(inside), 0.95, "less")


# ---------------------------------------------------------------- sums of coarse noise

WEIGHTS = [(1,), (1, 1), (1, 0.3), (1, 1, 1, 1), (1,) * 30, (1, *[0.1] * 20)]


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda value: f"{len(value)} of {value[-1]}")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("bounding", [None, "clamp"])
def test_the_tail_of_coarse_noise_bounds_sums(weights, epsilon, bounding):
    draws = 40_000
    mechanisms = [Staircase(epsilon, 1, l0_sensitivity=1), DiscreteGaussian(epsilon, 1e-4, l0_sensitivity=1)]
    for mechanism in mechanisms:
        drawn = np.array([mechanism.sample(np.zeros(draws, np.int64), rng=k) for k in range(len(weights))])
        if bounding == "clamp":  # at its bound every number is moved to one side
            drawn = np.maximum(drawn, 0)
        sums = np.abs(np.array(weights) @ drawn)
        half = float(
            Tail(mechanism.distribution.standard[0], bounding).half(0.95, mechanism.std * np.array(weights))
        )
        assert accepts_share(int((sums <= half + 1e-9).sum()), draws, 0.95, "less")
        assert half <= 6 * mechanism.std * math.sqrt(sum(w**2 for w in weights)) * len(weights) ** 0.5 + 2


def test_the_loss_of_each_mechanism_is_what_was_asked_for():
    assert Staircase("0.3", 1).loss == Pure("0.3")
    assert DiscreteGaussian("0.3", "1e-6").loss == Approx("0.3", "1e-6")
