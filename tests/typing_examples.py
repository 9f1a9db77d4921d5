"""Code of a user, as type checkers read it: each line that ends in ``# wrong`` is an error, no other line is.

``tests/test_typing.py`` gives it to mypy and to pyright, and runs it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, assert_type

import pandas as pd

import pdprivacy
from pdprivacy import Budget, Column, Domain, Metadata, ProtectedFrame
from pdprivacy.accessor import PlanDP, ProtectedDP
from pdprivacy.core.privacy import Confidential
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.frames import ProtectedColumn
from pdprivacy.releases.batches import Batch, Pending, ReleasePlan
from pdprivacy.releases.grouped import GroupBy, SeriesGroupBy

domain = Domain(
    (
        Column("age", "integer", lower=0, upper=120, bins=(0, 40, 80, 120)),
        Column("region", "category", categories=("north", "south"), role="quasi_identifier"),
        Column("ill", "boolean", role="sensitive"),
    )
)
frame = pd.DataFrame(
    {"age": [31, 54] * 500, "region": ["north", "south"] * 500, "ill": [True, False] * 500},
)

private = pdprivacy.protect(frame, domain, epsilon=1000, delta=0.01)
times = Domain((Column("when", "integer", lower=0, upper=400, timeline=Timeline(18262, "D")),))
days = pd.DataFrame({"when": pd.to_datetime(["2020-02-29", "2020-12-31"])})
dated = pdprivacy.protect(days, times, epsilon=1000)
assert_type(private, ProtectedFrame)
assert_type(private.dp, ProtectedDP)
assert_type(private.dp.budget, Budget)
assert_type(private.dp.domain, Domain)
assert_type(private.dp.lineage, pd.DataFrame)
assert_type(private.dp.remaining(), float)

# ---------------------------------------------------------------- row steps

assert_type(private["age"], ProtectedColumn)
assert_type(private["age"] >= 18, ProtectedColumn)
assert_type((private["age"] >= 18) & ~private["ill"], ProtectedColumn)
assert_type(private["region"] == "north", ProtectedColumn)
assert_type(private["region"] != "north", ProtectedColumn)
assert_type(~(private["region"] == "north") | (private["age"] != 20), ProtectedColumn)
assert_type(private[private["region"] == "north"], ProtectedFrame)
assert_type(private.assign(north=private["region"] == "north"), ProtectedFrame)
assert_type(private[private["age"] >= 18], ProtectedFrame)
assert_type(private[["age", "ill"]], ProtectedFrame)
assert_type(private.query("age >= 18"), ProtectedFrame)
assert_type(dated.cut("when", freq="M"), ProtectedFrame)
assert_type(dated[dated["when"] >= "2020-06-01"], ProtectedFrame)
assert_type(dated["when"] - "2020-01-01", ProtectedColumn)
assert_type(dated["when"].dt.month, ProtectedColumn)
assert_type(dated.clip(upper={"when": "2020-06-01"}), ProtectedFrame)
assert_type(dated.dp.groupby("when", freq="M"), GroupBy)
assert_type(private.dp.query("age >= 18"), ProtectedFrame)
assert_type(private.assign(months=12 * private["age"]), ProtectedFrame)
assert_type(private.dp.sample(frac=0.5), ProtectedFrame)

# ---------------------------------------------------------------- releases

mean = private.dp.mean("age", epsilon=0.1)
assert_type(mean, "pd.Series[Any]")
assert_type(
    private.dp.mean("age", epsilon=Fraction(1, 10), delta=1e-6, mechanism="gaussian"), "pd.Series[Any]"
)
assert_type(private.dp.mean(["age"], epsilon=1, releases=5), pd.DataFrame)
assert_type(private.dp.describe("age", epsilon=1), pd.DataFrame)
assert_type(private.dp.ols("age", ["ill"], epsilon=1), "pd.Series[Any]")
assert_type(private.dp.ols("age", "ill", epsilon=1, releases=2), pd.DataFrame)
assert_type(private.dp.count(epsilon=1), "pd.Series[Any]")
assert_type(private.dp.count(epsilon=1, releases=2), pd.DataFrame)
assert_type(private.dp.value_counts("region", epsilon=1, normalize=True), "pd.Series[Any]")
assert_type(private.dp.histogram("age", epsilon=1), "pd.Series[Any]")
assert_type(private.dp.crosstab(["region", "age"], "ill", epsilon=1), pd.DataFrame)
assert_type(private.dp.median("age", epsilon=1), "pd.Series[Any]")
assert_type(private.dp.quantile("age", epsilon=1), "pd.Series[Any]")
assert_type(private.dp.quantile("age", 0.5, epsilon=1, releases=2), pd.DataFrame)
assert_type(private.dp.quantile("age", [0.25, 0.75], epsilon=1), pd.DataFrame)
assert_type(private.dp.mode("region", epsilon=1), "pd.Series[Any]")
assert_type(private.dp.top_k("region", 2, epsilon=1), "pd.Series[Any]")
assert_type(private.dp.top_k(["region"], 2, epsilon=1), pd.DataFrame)
assert_type(private.dp.kmeans(["age"], 2, epsilon=1), pd.DataFrame)

groups = private.dp.groupby("region")
assert_type(groups, GroupBy)
assert_type(groups.count(epsilon=1), "pd.Series[Any]")
assert_type(groups.count(epsilon=1, releases=2), pd.DataFrame)
assert_type(groups.mean("age", epsilon=1), pd.DataFrame)
assert_type(groups["age"], SeriesGroupBy)
assert_type(groups["age"].var(epsilon=1), "pd.Series[Any]")
assert_type(groups[["age"]].var(epsilon=1), pd.DataFrame)
assert_type(groups.agg(["mean", "std"], epsilon=1), pd.DataFrame)
assert_type(groups.quantile("age", 0.25, epsilon=1), pd.DataFrame)
assert_type(groups.mode("ill", epsilon=1), pd.DataFrame)
assert_type(groups.value_counts("ill", epsilon=1), "pd.Series[Any]")
assert_type(private.dp.agg("mean", epsilon=1), "pd.Series[Any]")
assert_type(private.dp.agg(["mean", "std"], epsilon=1), pd.DataFrame)
assert_type(private.dp.agg({"age": "mean"}, epsilon=1), "pd.Series[Any]")
assert_type(private.dp.pivot_table("age", "region", "ill", epsilon=1), pd.DataFrame)
assert_type(private.dp.nunique("region", epsilon=1), "pd.Series[Any]")
assert_type(private.rename({"age": "years"}).astype({"years": float}), ProtectedFrame)
assert_type(groups.count(weights="age", epsilon=1), "pd.Series[Any]")
assert_type(groups.proportion("ill", weights="age", epsilon=1), pd.DataFrame)
assert_type(private.dp.crosstab("region", "ill", weights="age", epsilon=1), pd.DataFrame)
assert_type(private.dp.proportion("ill", weights="age", epsilon=1), "pd.Series[Any]")

assert_type(private.dp.dr_ha("region", "ill", 1), Confidential)
assert_type(private.dp.dr_ha("region", "ill", [0.1, 1]), "pd.Series[Any]")
assert_type(private.dp.dr_ha("region", "ill", 1, average=None), "pd.Series[Any]")
assert_type(private.dp.dr_ha("region", "ill", [0.1, 1], average=None), pd.DataFrame)
assert_type(private.dp.dr_ha("region", "ill", 1, method="monte_carlo", draws=10), pd.DataFrame)

assert_type(private.dp.split(1, into=2), list[Fraction])
assert_type(pdprivacy.combine(mean, within=0), pd.DataFrame)
assert_type(pdprivacy.chi2_contingency(private.dp.crosstab("region", "ill", epsilon=1)).pvalue, float)
for part in private.dp.partition("region", epsilon=1).values():
    assert_type(part, ProtectedFrame)

# ---------------------------------------------------------------- plans and batches

assert_type(private.dp.plan, PlanDP)
assert_type(private.dp.plan.mean("age", epsilon=0.1, rows=1000), pd.DataFrame)
assert_type(private.dp.plan.mean("age", epsilon=[0.1, 1], bounding=[None, "bit"], rows=1000), pd.DataFrame)
assert_type(private.dp.plan.median("age", ranks=20), pd.DataFrame)
assert_type(private.dp.median("age", epsilon=1, interval=True), "pd.Series[Any]")
assert_type(private.dp.plan.mean("age", plus_minus=0.5, level=0.99, rows=1000), pd.DataFrame)
assert_type(private.dp.plan.agg(["mean"], epsilon=0.1, rows=1000), pd.DataFrame)
assert_type(private.dp.plan.groupby("region").mean("age", epsilon=[0.1, 1], rows=1000), pd.DataFrame)
assert_type(private.dp.plan_releases([("mean", "age", {"epsilon": 0.1})]), ReleasePlan)

with private.dp.batch() as batch:
    assert_type(batch, Batch)
    waiting = batch.mean("age", epsilon=1)
    assert_type(waiting, "Pending[pd.Series[Any]]")
    table = batch.crosstab("region", "ill", epsilon=1)
assert_type(waiting.result, "pd.Series[Any]")
assert_type(table.result, pd.DataFrame)

# ---------------------------------------------------------------- accessors of pandas objects, annotated

faults: pd.DataFrame = pdprivacy.check(frame, domain)
protected: ProtectedFrame = frame.dp.protect(domain, epsilon=10)
assert_type(protected.dp.mean("age", epsilon=0.1), "pd.Series[Any]")
facts: Metadata = mean.dp.metadata
assert_type(facts.epsilon, float)
text: str = mean.dp.to_markdown(note=False)
numbers: pd.DataFrame = mean.dp.to_frame()


def wrong(private: ProtectedFrame, batch: Batch) -> None:
    """Calls that no protected frame has."""
    private["when"].dt.weak  # wrong
    private.dp.mean("age", epsilom=0.1)  # wrong
    private.dp.mean("age")  # wrong
    private.dp.mean("age", 0.1)  # wrong
    private.dp.mean("age", epsilon=0.1, mechanism="gausian")  # wrong
    private.dp.mean("age", epsilon=0.1, bounding="truncate")  # wrong
    private.dp.meann("age", epsilon=0.1)  # wrong
    private.dp.protect(domain, epsilon=1)  # wrong
    private.dp.verify()  # wrong
    private.dp.save("mean.csv")  # wrong
    private.dp["age"]  # wrong
    private.mean()  # wrong
    private.age  # wrong
    private["age"].mean()  # wrong
    private["age"].between(0, 1, "some")  # wrong
    private.query("age > 3", inplace=True)  # wrong
    private.dp.crosstab("region", epsilon=0.1)  # wrong
    private.dp.kmeans("age", epsilon=0.1)  # wrong
    private.dp.plan.mean("age", epsilon=0.1, rng=1)  # wrong
    private.dp.plan.mode("region", epsilon=0.1)  # wrong
    private.dp.groupby("region").cov("age", epsilon=0.1)  # wrong
    private.dp.groupby("region").mean("age", epsilom=0.1)  # wrong
    private.dp.budget.lefft  # wrong
    batch.meann("age", epsilon=0.1)  # wrong
    batch.mean("age")  # wrong
    batch.mean("age", epsilon=0.1).resultt  # wrong
    pdprivacy.protect(frame, domain, epsilom=1)  # wrong
    pdprivacy.protekt(frame, domain, epsilon=1)  # wrong
    pdprivacy.Budget(1, detla=1e-6)  # wrong
    label: int = private.dp.mean("age", epsilon=0.1)  # wrong
    print(label)
