"""Plans of quantiles: ranks, before anything is read or paid for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import ArgumentError, NoPictureError, ParameterError, UnknownNameError

DOMAIN = Domain(
    (
        Column("x", "integer", lower=0, upper=1000),
        Column("y", "float", lower=-5, upper=5),
        Column("w", "float", lower=0, upper=4),
        Column("g", "category", categories=("a", "b")),
    )
)
ROWS = 3000
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "x": RNG.integers(1, 1000, ROWS),
        "y": RNG.uniform(-4, 4, ROWS),
        "w": RNG.uniform(0.1, 3.9, ROWS),
        "g": RNG.choice(["a", "b"], ROWS),
    }
)


def protected(**options: Any) -> Any:
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10**6, **options)


CALLS: dict[str, tuple[Any, ...]] = {
    "median": ("median", "x"),
    "medians": ("median", ["x", "y"]),
    "quantiles": ("quantile", ["x", "y"], [0.1, 0.75]),
    "min": ("min", "x"),
    "max": ("max", ["x", "y"]),
}


@pytest.mark.parametrize("scope", [{}, {"neighbors": "replace_one"}, {"public_rows": 40}])
@pytest.mark.parametrize("name", CALLS)
def test_a_plan_states_the_ranks_of_the_release(name, scope):
    verb, *args = CALLS[name]
    private = protected(**scope)
    plan = getattr(private.dp.plan, verb)(*args, epsilon=[0.2, 3], releases=2)
    assert len(private.dp.budget.entries) == 0
    for epsilon in (0.2, 3):
        facts = getattr(private.dp, verb)(*args, epsilon=epsilon, releases=2).dp.metadata
        own = plan.loc[[epsilon]]
        for column, stated in {"ranks": "below_best", "rank": "rank", "cut": "cut"}.items():
            if stated in facts.error:
                each = facts.error[stated]
                assert own[column].tolist() == ([*each.values()] if isinstance(each, dict) else [each])
        assert ("rank" in plan.columns) == (verb in ("min", "max"))
    if scope == {"neighbors": "replace_one"}:
        assert (plan["share"] * ROWS).tolist() == pytest.approx(plan["ranks"].tolist())


def test_the_ranks_follow_from_the_exponential_mechanism():
    """The sensitivity is 1/2: of N candidates, the farther than d ranks weigh N exp(-epsilon d) at most."""
    dp = protected().dp
    plan = dp.plan.median("x", epsilon=[0.5, 2], level=0.99, rows=ROWS)
    expected = [math.log(1001 / 0.01) / epsilon for epsilon in (0.5, 2)]
    assert plan["ranks"].tolist() == pytest.approx(expected)
    assert plan["share"].tolist() == pytest.approx([ranks / ROWS for ranks in expected])
    at_ranks = dp.plan.median("x", ranks=[20, 5])
    needed = [math.log(1001 / 0.05) / ranks for ranks in (20, 5)]
    for epsilon, least in zip(at_ranks.index, needed, strict=True):
        assert least * (1 - 1e-9) <= epsilon <= least * 1.001
    assert (at_ranks["ranks"] <= [20, 5]).all()


@pytest.mark.full
def test_released_quantiles_lie_within_the_planned_ranks():
    """The share of 1000 medians within the ranks of a level of 80 % is at least 80 % (false alarm 1e-6)."""
    dp = protected().dp
    ranks = dp.plan.quantile("y", 0.3, epsilon=0.2, level=0.8)["ranks"].item()
    released = dp.quantile("y", 0.3, epsilon=200, releases=1000, rng=3).to_numpy().ravel()
    below = np.searchsorted(np.sort(FRAME["y"].to_numpy()), released)
    within = (abs(below - 0.3 * ROWS) <= ranks + 1).mean()
    assert within >= 0.8 - 4.8 * math.sqrt(0.16 / 1000)


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
def test_plans_by_group_and_with_weights():
    dp = protected().dp
    by_group = dp.plan.groupby("g").median(["x", "y"], ranks=50, rows=ROWS)
    assert by_group.index.names == ["epsilon", "column"]
    assert by_group["ranks"].max() <= 50
    assert by_group.attrs["dp_plan"]["by"] == ["g"]
    weighted = dp.plan.quantile("x", 0.25, epsilon=1, weights="w", rows=ROWS)
    assert (
        weighted["ranks"].item()
        == dp.quantile("x", 0.25, epsilon=1, weights="w").dp.metadata.error["below_best"]
    )
    assert "share" not in weighted.columns
    sample = protected().dp.sample(frac=0.5, rng=1)
    assert (
        sample.dp.plan.median("x", epsilon=0.5)["ranks"].item()
        < dp.plan.median("x", epsilon=0.5)["ranks"].item()
    )


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda plan: plan.median("x"), ArgumentError, "or 'ranks'"),
        (lambda plan: plan.median("x", rows=0), ArgumentError, "or 'ranks'"),  # the cost comes first
        (lambda plan: plan.median("x", epsilon=1, ranks=3), ParameterError, "exclude each other"),
        (lambda plan: plan.median("x", ranks=1e-6), ParameterError, "No epsilon up to 1,000"),
        (lambda plan: plan.median("x", ranks=1e9), ParameterError, "Every epsilon"),
        (lambda plan: plan.median("x", ranks="3"), ParameterError, "'ranks' must be a finite number"),
        (lambda plan: plan.median("x", epsilon=1, level=1), ParameterError, "'level'"),
        (lambda plan: plan.median("x", epsilon=1, rows=0), ParameterError, "'rows'"),
        (lambda plan: plan.median("x", epsilon=1, rng=1), ArgumentError, "'rng'"),
        (lambda plan: plan.median("x", plus_minus=1), ParameterError, "'plus_minus'"),
        (lambda plan: plan.median("x", epsilon=1).dp.plot(), NoPictureError, "no picture"),
        (lambda plan: plan.mode("g", epsilon=1), UnknownNameError, "'mode'"),
    ],
)
def test_a_wrong_plan_of_ranks_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call(protected().dp.plan)


def test_a_margin_in_value_is_refused_with_the_reason():
    plan = protected().dp.plan
    for verb, call in (("median", plan.median), ("min", plan.groupby("g").min)):
        with pytest.raises(ParameterError, match=rf"known in ranks alone(.|\n)*{verb}\(.*ranks=20\)"):
            call("x", plus_minus=3)
