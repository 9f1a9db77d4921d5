"""Every release of counts that a known and a sensitive column inform states its risk, or why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain

DOMAIN = Domain(
    (
        Column("region", "category", categories=("north", "south"), role="quasi_identifier"),
        Column("age", "integer", lower=0, upper=99, bins=(0, 40, 99), role="quasi_identifier"),
        Column("year", "integer", lower=2020, upper=2022, categories=(2020, 2021, 2022)),
        Column("health", "category", categories=("well", "flu", "cold"), role="sensitive", nullable=True),
        Column("income", "integer", lower=0, upper=90, bins=(0, 30, 60, 90), role="sensitive"),
        Column("debt", "boolean", role="sensitive"),
        Column("w", "float", lower=0, upper=2),
    )
)


def people(rows=60):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], rows),
            "age": rng.integers(1, 99, rows),
            "year": rng.integers(2020, 2023, rows),
            "health": rng.choice(np.array(["well", "flu", "cold", None], dtype=object), rows),
            "income": rng.integers(1, 90, rows),
            "debt": rng.random(rows) < 0.5,
            "w": 1.0,
        }
    )


@pytest.fixture(scope="module")
def private():
    return people().dp.protect(DOMAIN, epsilon=10**6)


COMPUTED = {
    "a truth value": (
        lambda p: p.assign(ill="health == 'flu'").dp.crosstab("region", "ill", epsilon=1),
        "ill",
    ),
    "a truth value by item": (
        lambda p: p.assign(ill=p["health"].isin(["flu", "cold"])).dp.value_counts(
            ["region", "ill"], epsilon=1
        ),
        "ill",
    ),
    "of two columns": (
        lambda p: p.assign(x="income > 30 and age > 40").dp.crosstab("region", "x", epsilon=1),
        "x",
    ),
    "a chain": (
        lambda p: p.assign(half="income // 45", low="half < 1").dp.crosstab("region", "low", epsilon=1),
        "low",
    ),
    "recoded": (
        lambda p: p.recode("health", {"cold": "flu"}).dp.crosstab("region", "health", epsilon=1),
        "health",
    ),
    "cut": (lambda p: p.cut("income", [-1, 50, 99]).dp.crosstab("region", "income", epsilon=1), "income"),
    "clipped": (lambda p: p.clip(upper={"income": 60}).dp.crosstab("region", "income", epsilon=1), "income"),
    "filled": (lambda p: p.fillna({"health": "well"}).dp.crosstab("region", "health", epsilon=1), "health"),
    "renamed": (lambda p: p.rename(columns={"debt": "d"}).dp.crosstab("region", "d", epsilon=1), "d"),
    "a derived quasi-identifier": (
        lambda p: p.assign(old="age > 50").dp.crosstab("old", "debt", epsilon=1),
        "debt",
    ),
    "a column without a role": (lambda p: p.dp.crosstab("year", "debt", epsilon=1), "debt"),
    "a known filter": (lambda p: p.query("region == 'north'").dp.value_counts("debt", epsilon=1), "debt"),
    "bins of a known filter": (lambda p: p.query("age > 50").dp.histogram("income", epsilon=1), "income"),
    "no nulls as declared": (lambda p: p.dropna().dp.crosstab("region", "health", epsilon=1), "health"),
    "means by group": (lambda p: p.dp.groupby(["region", "debt"]).mean("w", epsilon=1), "debt"),
    "a pivot table of means": (
        lambda p: p.dp.pivot_table("w", "region", "debt", aggfunc="mean", epsilon=1),
        "debt",
    ),
    "marginals": (lambda p: p.dp.marginals(["region", "debt"], epsilon=1)["region", "debt"], "debt"),
}

REASONS = {
    "a filter": (
        lambda p: p.query("health == 'flu'").dp.value_counts("region", epsilon=1),
        "condition on a sensitive column",
    ),
    "a filter by item": (lambda p: p[p["income"] > 30].dp.crosstab("region", "age", epsilon=1), "condition"),
    "a filter by a derived column": (
        lambda p: p.assign(ill="health == 'flu'").query("ill").dp.value_counts("region", epsilon=1),
        "condition",
    ),
    "a filter and groups": (lambda p: p.query("debt").dp.groupby("region").count(epsilon=1), "condition"),
    "a filter and bins": (lambda p: p.query("debt").dp.histogram("age", epsilon=1), "condition"),
    "a filter and a mean by group": (
        lambda p: p.query("debt").dp.groupby("region").mean("w", epsilon=1),
        "condition",
    ),
    "a filter of both kinds": (
        lambda p: p.query("health == 'flu' and region == 'north'").dp.count(epsilon=1),
        "condition",
    ),
    "a filter beside another sensitive column": (
        lambda p: p.query("income > 30").dp.crosstab("region", "debt", epsilon=1),
        "condition",
    ),
    "nulls that a step made": (
        lambda p: (
            p.recode("health", {"well": None}).dropna(subset=["health"]).dp.value_counts("region", epsilon=1)
        ),
        "condition",
    ),
    "a part": (
        lambda p: p.dp.partition("debt", epsilon=1)[True].dp.value_counts("region", epsilon=1),
        "condition",
    ),
    "shares by group": (lambda p: p.dp.groupby("region").proportion("debt", epsilon=1), "Shares"),
    "shares of a derived column": (
        lambda p: p.assign(ill="health == 'flu'").dp.groupby("region").proportion("ill", epsilon=1),
        "Shares",
    ),
    "means of truth values": (lambda p: p.dp.groupby("region").mean("debt", epsilon=1), "Shares"),
    "a share of a known filter": (
        lambda p: p.query("region == 'north'").dp.proportion("debt", epsilon=1),
        "Shares",
    ),
    "sums by group": (lambda p: p.dp.groupby(["region", "debt"]).sum("w", epsilon=1), "no counts"),
    "means of numbers": (lambda p: p.dp.groupby("region").mean("income", epsilon=1), "no counts"),
    "counts of a column": (lambda p: p.dp.groupby("region").agg("count", "debt", epsilon=1), "no counts"),
    "weights": (lambda p: p.dp.value_counts(["region", "debt"], epsilon=1, weights="w"), "weights"),
    "weighted shares": (
        lambda p: p.dp.groupby("region").proportion("debt", epsilon=1, weights="w"),
        "weights",
    ),
}

NO_RISK = {
    "known columns alone": lambda p: p.dp.crosstab("region", "age", epsilon=1),
    "a known filter": lambda p: p.query("region == 'north'").dp.value_counts("age", epsilon=1),
    "a sensitive column alone": lambda p: p.dp.value_counts("health", epsilon=1),
    "one share": lambda p: p.dp.proportion("debt", epsilon=1),
    "sensitive columns alone": lambda p: p.dp.crosstab("health", "debt", epsilon=1),
    "all records": lambda p: p.dp.count(epsilon=1),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_a_derived_column_keeps_what_it_tells(private, case):
    release, learned = COMPUTED[case]
    record = release(private).dp.metadata.dr_ha
    assert 0 <= record["by_records"] <= 1
    assert list(record["by_column"]) == [learned]
    assert record["by"]
    assert learned not in record["by"]


@pytest.mark.parametrize("case", REASONS)
def test_a_risk_that_is_not_known_has_a_reason(private, case):
    release, reason = REASONS[case]
    record = release(private).dp.metadata.dr_ha
    assert record["by_records"] is record["by_cells"] is None
    assert reason in record["reason"]


@pytest.mark.parametrize("case", NO_RISK)
def test_counts_without_known_or_without_sensitive_columns_have_none(private, case):
    assert NO_RISK[case](private).dp.metadata.dr_ha is None


def test_the_filter_of_a_known_column_is_named(private):
    record = private.query("age > 50 and region == 'north'").dp.crosstab("year", "debt", epsilon=1)
    assert record.dp.metadata.dr_ha["by"] == ["year", "age", "region"]


def test_the_defaults_of_the_curator_leave_out_derived_numbers_without_labels(private):
    logs = private.assign(log="log1p(income)")
    assert logs.dp.domain["log"].role == "sensitive"
    plain, derived = private.dp.dr_ha(epsilon=1), logs.dp.dr_ha(epsilon=1)
    assert float(plain) == float(derived)


def test_a_report_gives_the_reason(private):
    weighted = private.dp.value_counts(["region", "debt"], epsilon=1, weights="w")
    page = pdprivacy.report({"incomes": weighted})
    assert "The risk of “incomes” is not known. Sums of weights" in str(getattr(page, "html", page))


MIXED = pdprivacy.Domain(
    (
        pdprivacy.Column("a", "category", categories=("x", "y"), role="quasi_identifier"),
        pdprivacy.Column("s", "category", categories=("i", "w"), role="sensitive"),
        pdprivacy.Column("n", "category", True, categories=("i", "w"), role="sensitive"),
    )
)


def mixed_frame():
    frame = pd.DataFrame({"a": ["x", "y"] * 50, "s": ["i", "w"] * 50, "n": ["i", None] * 50})
    return pdprivacy.protect(frame, MIXED, epsilon=1000)


COUNTS_OF_MIXED = {
    "value_counts": lambda private: private.dp.value_counts("z", epsilon=1),
    "of a copy": lambda private: private.assign(y="not z").drop(columns="z").dp.value_counts("y", epsilon=1),
    "renamed": lambda private: private.rename(columns={"z": "y"}).dp.value_counts("y", epsilon=1),
    "size": lambda private: private.dp.groupby("z").size(epsilon=1),
    "a condition": lambda private: private.query("z").dp.count(epsilon=1),
    "proportion": lambda private: private.dp.proportion("z", True, epsilon=1),
}


@pytest.mark.parametrize("name", COUNTS_OF_MIXED)
def test_counts_by_a_column_of_a_sensitive_one_and_another_have_a_reason(name):
    private = mixed_frame().assign(z="(a == 'x') & (s == 'i')")
    assert COUNTS_OF_MIXED[name](private).dp.metadata.dr_ha["reason"]
    alone = mixed_frame().assign(
        z="s == 'i'"
    )  # of the sensitive column alone, no other column tells anything
    assert alone.dp.value_counts("z", epsilon=1).dp.metadata.dr_ha is None


def test_counts_without_the_nulls_of_a_sensitive_column_have_a_reason_or_a_risk():
    private = mixed_frame().dropna("n")
    assert private.dp.value_counts("a", epsilon=1).dp.metadata.dr_ha["reason"]
    assert private.dp.crosstab("a", "s", epsilon=1).dp.metadata.dr_ha["by_records"] > 0.5
    assert mixed_frame().dp.value_counts("a", epsilon=1).dp.metadata.dr_ha is None


def test_the_budget_of_the_whole_says_where_the_risks_of_groups_are():
    private = mixed_frame()
    private.dp.partition("a", epsilon=5)
    assert "budgets of the groups" in str(private.dp.budget)


def test_cells_without_the_nulls_that_a_step_made_have_a_reason():
    private = mixed_frame().assign(z="a if s == 'i' else None")
    for dropna in (True, False):
        counts = private.dp.value_counts(["a", "z"], dropna=dropna, epsilon=1)
        by_group = private.dp.groupby("a").value_counts("z", dropna=dropna, epsilon=1)
        for released in (counts, by_group):
            assert ("reason" in released.dp.metadata.dr_ha) == dropna
