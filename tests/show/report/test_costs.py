"""The total cost of releases: of a budget, of several, by each accounting, and where there is none."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdprivacy import Approx, Column, Domain, Pure, accounting
from pdprivacy.errors import OmissionWarning, ParameterError
from pdprivacy.show.report import collect
from pdprivacy.show.report.costs import totals
from tests.support.report_pages import fabricated, page, total_of

LOSSES = st.lists(
    st.tuples(
        st.floats(1e-3, 3).map(lambda number: float(f"{number:.3g}")),
        st.sampled_from([0.0, 1e-6, 1 / 3 * 1e-5]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(LOSSES)
def test_the_total_is_that_of_the_accounting(losses):
    releases = [fabricated(*loss, number=number) for number, loss in enumerate(losses)]
    exact = accounting.compose(
        [Approx(epsilon, delta) if delta else Pure(epsilon) for epsilon, delta in losses]
    )
    (total,) = totals(collect(releases, "public").releases, None)
    assert (total.epsilon, total.delta) == (exact.epsilon, exact.delta)
    epsilon, delta = total_of(page(releases))
    for stated, true in ((epsilon, exact.epsilon), (delta, exact.delta)):
        assert true <= stated <= true * (1 + Fraction(1, 10**5))


def test_releases_that_are_not_shown_are_told_by_what_was_spent(private):
    private.dp.count(epsilon=3)
    later = private.dp.mean("age", epsilon=1)
    assert "epsilon 4 had been spent of its budget by then" in page(later).text
    domain = Domain((Column("x", "integer", lower=0, upper=2),))
    first = pd.DataFrame({"x": [1]}).dp.protect(domain, epsilon=1)
    assert "had been spent" not in page(first.dp.count(epsilon=1)).text


def test_the_very_same_object_counts_once_and_equal_ones_twice(schema, survey):
    budgets = [survey.dp.protect(schema, epsilon=2) for _ in range(2)]
    first, second = (private.dp.count(epsilon=1) for private in budgets)
    second.iloc[0] = first.iloc[0]  # the noise may well come out equal
    second.attrs = {"dp": dict(first.attrs["dp"])}
    assert second.dp.verify()
    assert total_of(page([first, first])) == (1, 0)
    report = page([first, second])
    assert total_of(report) == (2, 0)
    assert "Equal numbers may come of different noise" in report.text


def test_the_budget_vouches_for_all_that_was_charged(private):
    mean = private.dp.mean("age", epsilon=0.25)
    private.dp.count(epsilon=0.125)
    gaussian = private.dp.sum("age", epsilon=0.5, delta=1e-6, mechanism="gaussian")
    report = page([mean, gaussian], ledger=private.dp.budget)
    rows = {row[0]: row[1:] for row in report.tables["Total cost"][1:]}
    assert rows["Charged for releases of this report"] == ["0.75", "1e-06"]
    assert rows["Charged for anything else from the same data"] == ["0.125", "0"]
    assert rows["Together, at most"] == ["0.875", "1e-06"]
    assert private.dp.budget.spent == (0.875, 1e-6)
    assert "The budget allows epsilon 100, delta 0.001" in report.text


def test_a_release_of_another_budget_is_added_on_top(schema, survey):
    first, second = survey.dp.protect(schema, epsilon=2), survey.dp.protect(schema, epsilon=2)
    mean, foreign = first.dp.mean("age", epsilon=0.5), second.dp.mean("age", epsilon=0.5)
    budgets = [dict(release.attrs["dp"]["budget"]) for release in (mean, foreign)]
    assert budgets[0].pop("charge_id") != budgets[1].pop("charge_id")
    assert budgets[0] == budgets[1]
    report = page({"mean": mean, "again": foreign}, ledger=first.dp.budget)
    assert total_of(report) == (1, 0)
    assert "Not known to be charged to this budget: “again”" in report.text


def test_a_charge_pays_for_what_it_says_alone(schema, survey):
    """Releases of another budget, after as much was spent, of other columns, or of other records."""
    mine, other = (survey.dp.protect(schema, epsilon=10) for _ in "ab")
    mine.dp.mean("age", epsilon=0.5)
    for foreign in (
        other.dp.mean("income", epsilon=0.5),
        survey.dp.protect(schema, epsilon=10).dp.query("age > 30").dp.mean("age", epsilon=0.5),
    ):
        epsilon, _ = total_of(page(foreign, ledger=mine.dp.budget))
        assert epsilon >= 1


@pytest.mark.full
def test_a_plan_is_paid_once(private, schema, survey):
    plan = private.dp.plan_releases([("mean", "age", {"epsilon": 0.05})] * 60, delta=1e-6)
    releases = plan.release()
    assert plan.cost.epsilon < plan.apart.epsilon
    report = page(releases, ledger=private.dp.budget)
    assert plan.cost.epsilon <= total_of(report)[0] <= plan.cost.epsilon * (1 + Fraction(1, 10**5))
    assert total_of(page(releases))[0] == plan.apart.epsilon
    more = survey.dp.protect(schema, epsilon=100).dp.mean("age", epsilon=0.05)
    more.attrs["dp"]["budget"] = {**releases[0].attrs["dp"]["budget"], "charge_id": "00" * 8}
    assert "Not known to be charged" in page([*releases, more], ledger=private.dp.budget).text


def test_groups_of_a_partition_are_counted_on_the_safe_side(private):
    groups = private.dp.partition("health", epsilon=0.5)
    counts = {label: group.dp.count(epsilon=0.5) for label, group in groups.items()}
    assert private.dp.budget.spent[0] == 0.5
    report = page(counts, ledger=private.dp.budget)
    assert total_of(report)[0] == Fraction(3, 2)
    assert "charge of a partition may already cover" in report.text
    with pytest.raises(ParameterError, match="budget of a group"):
        page(counts, ledger=groups["yes"].dp.budget)


def test_the_remainder_after_outliers_is_paid_for_as_a_whole(private):
    with pytest.warns(OmissionWarning):
        part = private.dp.suppress_outliers("age", m=0.3, M=0.4)
    count = part.dp.count(epsilon=2)
    alone = page({"count": count})
    assert "Total cost" not in alone.tables
    assert "Total cost: not known" in alone.text
    assert "No total can be stated" in alone.text
    assert total_of(page({"count": count}, ledger=private.dp.budget)) == (2, 0)
    assert "nobody knows which records were drawn" in alone.text
    assert "nobody knows which" not in page(private.dp.count(epsilon=1)).text


@pytest.mark.parametrize("rule", ["filter", "zcdp"])
def test_other_accountings_guarantee_their_limit(schema, survey, rule):
    private = survey.dp.protect(schema, epsilon=2, delta=1e-6, accounting=rule)
    mean = private.dp.mean("age", epsilon=0.1)
    report = page(mean, ledger=private.dp.budget)
    assert total_of(report) == (2, Fraction(1, 10**6))
    assert "the limit as a whole" in report.text
    assert "The budget allows epsilon 2, delta 1e-06 and refuses" in report.text.replace("\n", " ")
    curators = page(mean, ledger=private.dp.budget, edition="curator").text
    assert "limit epsilon 2, delta 1e-06; spent epsilon 0.1" in curators.replace("\n", " ")
    assert "rho 2" not in curators


def test_a_limit_in_rho_is_converted(schema, survey):
    private = survey.dp.protect(schema, rho=0.5)
    report = page(private.dp.mean("age", epsilon=0.1), ledger=private.dp.budget)
    limit = accounting.zcdp_epsilon(Fraction(1, 2), Fraction(1, 10**6))
    epsilon, delta = total_of(report)
    assert Fraction(repr(limit)) <= epsilon <= Fraction(repr(limit)) * (1 + Fraction(1, 10**5))
    assert delta == Fraction(1, 10**6)
    assert "rho 0.5" in report.text


def test_different_neighbours_have_no_common_total(schema, survey):
    first, second = (
        survey.dp.protect(schema, epsilon=5),
        survey.dp.protect(schema, epsilon=5, neighbors="replace_one"),
    )
    report = page({"a": first.dp.mean("age", epsilon=1), "b": second.dp.mean("age", epsilon=2)})
    assert "costs do not add up" in report.text
    assert "Total cost: epsilon 1." in report.text
    assert "Total cost: epsilon 2." in report.text
    assert "epsilon 3 " not in report.text
    assert "the number of records is public" in report.text


def test_a_unit_is_named(survey, schema):
    crowd = pd.concat([survey, survey], ignore_index=True)
    private = crowd.dp.protect(schema, epsilon=5, unit="person", max_rows=2)
    report = page({"units": private.dp.mean("age", epsilon=1), "records": fabricated(epsilon=2)})
    assert "all records of one person, present or absent" in report.text
    assert "protect(unit='person', max_rows=2)" in report.text
    assert "costs do not add up" in report.text


def test_deltas_of_one_or_more_guarantee_nothing():
    report = page([fabricated(delta=0.6, number=number) for number in range(2)])
    assert "the deltas add up to one or more" in report.text
    assert "times as likely" not in report.text
