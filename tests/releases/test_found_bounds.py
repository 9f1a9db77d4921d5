"""Bounds that nobody knows, end to end: charges, engines, units, hard inputs, refusals; `bounds_plans`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import AlreadyCharged, BudgetExceeded, DeclarationError, ParameterError
from pdprivacy.releases import metadata
from tests.support.cases import each
from tests.support.engine_frames import each_engine, frame_of

FLOATS, WHOLE = Column("x", "float", True), Column("x", "integer", True)
DOMAIN = Domain((FLOATS, Column("n", "integer"), Column("g", "category", categories=("a", "b"))))
G = np.random.default_rng(3)
FRAME = pd.DataFrame({"x": G.lognormal(3, 1, 600), "n": G.integers(18, 91, 600), "g": list("ab") * 300})


def of_column(cells: Any, column: Column = FLOATS, **options: Any) -> Any:
    dtype = "Int64" if column.kind == "integer" else "float64"
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
    return pdprivacy.protect(frame, Domain((column,)), **{"epsilon": 1000, **options})


def test_one_charge_pays_for_all_columns_and_stages():
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    bounds = private.dp.find_bounds(["x", "n"], epsilon="1/2", rng=1)
    (charge,) = private.dp.budget.entries.itertuples()
    assert charge.epsilon == 0.5
    assert "find_bounds of x, n" in charge
    assert bounds.index.tolist() == ["x", "n"]
    assert bounds.columns.tolist() == ["lower", "upper"]
    facts = bounds.dp.metadata
    assert facts.mechanism == "exponential"
    assert facts.split == pytest.approx(
        {f"{stage} of {name}": share / 2 for name in "xn" for stage, share in
         {"center": 0.4, "spread": 0.2, "reach": 0.4}.items()}
    )  # fmt: skip
    assert facts.scale["spread of x"] == pytest.approx(1 / (0.5 / 2 * 0.2))
    assert facts.found == {
        "kind": "bounds", "method": "reach", "declared": [["float", None, None], ["integer", None, None]]
    }  # fmt: skip
    assert bounds.dp.verify()
    metadata.check(facts)


def test_without_columns_those_that_lack_a_bound_are_taken():
    domain = Domain((FLOATS, Column("n", "integer", lower=0, upper=120), DOMAIN["g"]))
    bounds = pdprivacy.protect(FRAME, domain, epsilon=1).dp.find_bounds(epsilon=0.5)
    assert bounds.index.tolist() == ["x"]
    known = Domain((Column("n", "integer", lower=0, upper=120),))
    with pytest.raises(DeclarationError, match="no numeric column that lacks a bound"):
        pdprivacy.protect(FRAME[["n"]], known, epsilon=1).dp.find_bounds(epsilon=0.5)


def test_shares_follow_the_split():
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    split = private.dp.find_bounds(["x", "n"], epsilon=0.5, split={"x": 3, "n": 1}).attrs["dp"]["split"]
    assert split["reach of x"] == pytest.approx(0.3)
    assert split["reach of n"] == pytest.approx(0.1)


@pytest.mark.parametrize("engine", each_engine(["Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow"]))
def test_every_engine_draws_the_same_bounds(engine):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    hard = [0.0, -0.0, 5e-324, 0.5, 1.0, -4.0, 1e300, math.inf, -math.inf, math.nan, None] * 20
    for cells, kind, column in (
        (hard, arrow.float64(), FLOATS),
        ([0, 1, -1, 2**53 + 1, -(2**63), 2**63 - 1, None] * 20, arrow.int64(), WHOLE),
    ):
        table = arrow.table({"x": arrow.array(cells, kind)})
        domain = Domain((Column("x", column.kind, True, lower=None),))
        options: Any = {"epsilon": 1000, "on_invalid": "drop"} if column is FLOATS else {"epsilon": 1000}
        pandas = of_column([None if cell is None else cell for cell in cells], column, **options)
        other = pdprivacy.protect(frame_of(engine, table), domain, **options)
        drawn = [
            private.dp.find_bounds("x", epsilon=2, rng=1).loc["x"].tolist() for private in (pandas, other)
        ]
        assert drawn[0] == drawn[1]


@each(
    ("cells", "column"),
    [
        ([], FLOATS), ([3.5], FLOATS), ([1.0, math.nan], FLOATS), ([0.0] * 500, FLOATS),
        ([7.25] * 500, FLOATS), ([1e300] * 500, FLOATS),
        ([5e-324] * 500, FLOATS), ([-0.0] * 500, FLOATS), ([2.0**20] * 500, FLOATS),
        ([-(2**63)] * 500, WHOLE), ([2**63 - 1] * 500, WHOLE), ([None] * 10, WHOLE), ([2**16] * 500, WHOLE),
    ],
)  # fmt: skip
def test_any_records_get_bounds_that_can_be_declared(cells, column):
    private = of_column(cells, column)
    for seed in range(3):
        bounds = private.dp.find_bounds("x", epsilon=5, rng=seed)
        lower, upper = bounds.loc["x"]
        assert lower < upper
        used = private.use(bounds)
        assert used.dp.domain["x"].bounds("mean") == (lower, upper)
        assert lower <= used.dp.mean("x", epsilon=1)["x"] <= upper


def test_bounds_of_many_equal_records_hold_them_and_are_near():
    for value, width in ((7.25, 40.0), (-1e6, 4e6), (0.0, 4.0)):
        lower, upper = of_column([value] * 500).dp.find_bounds("x", epsilon=5).loc["x"]
        assert lower <= value <= upper <= lower + width


def test_declared_bounds_limit_the_found_ones():
    column = Column("x", "float", True, lower=0)
    for seed in range(5):
        lower, _ = of_column([1.0, 2, 3] * 100, column).dp.find_bounds("x", epsilon=5, rng=seed).loc["x"]
        assert lower >= 0
    wide = Column("x", "integer", True, lower=0, upper=10**12)
    private = of_column([30, 40, 50, 60] * 200, wide)
    lower, upper = private.dp.find_bounds("x", epsilon=20).loc["x"]
    assert 0 <= lower <= 30
    assert 60 <= upper < 1000


NARROW: list[tuple[Any, ...]] = [
    ("float", 1000, 1000.01), ("float", -1e6, -1e6), ("float", 0, 1e-85), ("float", 7e89, None),
    ("integer", 100_000, 100_001), ("integer", 1_600_000_000, 1_600_003_600), ("integer", 2**62, None),
    ("integer", None, -(2**63) + 1), ("integer", 2**60 + 1, 2**60 + 3), ("integer", 2**63 - 2, None),
]  # fmt: skip
"""Declared bounds that are near to each other beside their size, or beyond the largest candidate."""


def random_bounds(count: int) -> list[tuple[Any, ...]]:
    """Kinds and declared bounds of any size and distance."""
    g, declared = np.random.default_rng(8), []
    for _ in range(count):
        start = float(g.choice([-1, 1]) * 10.0 ** g.uniform(-5, 18))
        end = start + abs(start) * 10.0 ** g.uniform(-18, 2)
        bounds = [None if g.random() < 0.15 else bound for bound in (start, end)]
        limits = [None if bound is None else min(max(int(bound), -(2**63)), 2**63 - 1) for bound in bounds]
        declared.append(("float", *bounds) if g.random() < 0.5 else ("integer", *limits))
    return declared


@each("neighbors", ["add_remove", "replace_one"])
def test_any_declared_bounds_are_narrowed_at_most(neighbors):
    g = np.random.default_rng(9)
    for kind, lower, upper in (*NARROW, *random_bounds(50)):
        column = Column("x", kind, True, lower=lower, upper=upper, public_bounds=True)
        ends = [bound for bound in (lower, upper) if bound is not None] or [0]
        cells = [ends[at] for at in g.integers(len(ends), size=g.integers(1, 4))]
        private = of_column(cells, column, neighbors=neighbors, epsilon=1e6)
        bounds = private.dp.find_bounds("x", epsilon=float(g.choice([0.1, 10, 1000])))
        after = private.use(bounds).dp.domain["x"]
        assert after.lower <= after.upper
        assert lower is None or lower <= after.lower, column
        assert upper is None or after.upper <= upper, column


def test_a_unit_with_many_equal_rows_counts_as_often_as_it_may():
    frame = pd.DataFrame({"who": [0] * 1000 + list(range(1, 501)), "x": [1e9] * 1000 + [5.0] * 500})
    domain = Domain((Column("who", "integer", role="identifier"), Column("x", "float")))
    private = pdprivacy.protect(frame, domain, epsilon=1000, unit="who", max_rows=3)
    bounds = private.dp.find_bounds("x", epsilon=100)
    assert bounds.dp.metadata.sensitivity["reach of x"] == 3
    assert bounds.dp.metadata.scale["reach of x"] == pytest.approx(3 / 40)
    assert -20 < bounds.at["x", "lower"] <= 5


def test_replaced_records_need_twice_the_noise_but_for_the_reach():
    private = of_column([1.0, 2.0] * 100, neighbors="replace_one")
    scale = private.dp.find_bounds("x", epsilon=1).dp.metadata.scale
    assert scale == pytest.approx({"center of x": 5, "spread of x": 10, "reach of x": 2.5})


@each(
    ("call", "error", "match"),
    [
        (lambda dp: dp.find_bounds("g", epsilon=1), DeclarationError, "is for numbers"),
        (lambda dp: dp.find_bounds("unknown", epsilon=1), DeclarationError, "not declared"),
        (lambda dp: dp.find_bounds("x", epsilon=1, method="other"), ParameterError, "'method'"),
        (lambda dp: dp.find_bounds("x", epsilon=1, mechanism="laplace"), ParameterError, "'mechanism'"),
        (lambda dp: dp.find_bounds("x", epsilon=1, delta=1e-6), ParameterError, "'delta'"),
        (lambda dp: dp.find_bounds("x", epsilon=0), ParameterError, "'epsilon'"),
        (lambda dp: dp.find_bounds(["x", "n"], epsilon=1, split={"x": 1}), ParameterError, "'split'"),
        (lambda dp: dp.find_bounds("x", epsilon=9), BudgetExceeded, "asks for epsilon 9"),
    ],
)
def test_a_refusal_costs_nothing(call, error, match):
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    with pytest.raises(error, match=match):
        call(private.dp)
    assert len(private.dp.budget.entries) == 0


def test_a_release_id_is_charged_once():
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    private.dp.find_bounds("x", epsilon=0.1, release_id="bounds")
    with pytest.raises(AlreadyCharged):
        private.dp.find_bounds("x", epsilon=0.1, release_id="bounds")


@each("verb", ["sum", "mean", "var", "quantile", "histogram"])
def test_a_column_without_bounds_is_refused_with_the_call_that_finds_them(verb):
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    arguments = (0.5,) if verb == "quantile" else ()
    with pytest.raises(DeclarationError) as caught:
        getattr(private.dp, verb)("x", *arguments, epsilon=0.1)
    assert 'private.use(private.dp.find_bounds("x", epsilon=0.1))' in str(caught.value.hint)
    used: Any = eval('private.use(private.dp.find_bounds("x", epsilon=0.1))', {"private": private})
    assert len(getattr(used.dp, verb)("x", *arguments, epsilon=0.1)) > 0


def test_a_plan_judges_whether_the_records_suffice():
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    plan = private.dp.plan.find_bounds(["x", "n"], epsilon=[0.4, 0.8], rows=600, split={"x": 3, "n": 1})
    assert plan.index.names == ["epsilon", "column"]
    assert plan.loc[(0.8, "x"), "needed"] == math.ceil(200 / 0.6)
    assert plan["needed"].tolist() == [667, 2000, 334, 1000]
    assert plan["enough"].tolist() == ["barely", "no", "yes", "barely"]
    assert plan.attrs["dp_plan"]["statistic"] == "find_bounds"
    assert len(private.dp.budget.entries) == 0
    with pytest.raises(ParameterError, match="number of rows is private"):
        private.dp.plan.find_bounds("x", epsilon=0.5)


def test_a_plan_needs_twice_the_records_where_they_are_replaced():
    replaced = of_column([1.0] * 400, neighbors="replace_one")
    assert replaced.dp.plan.find_bounds("x", epsilon=1)["needed"].tolist() == [400]
    assert replaced.dp.plan.find_bounds("x", epsilon=1)["enough"].tolist() == ["yes"]
