"""Budgets in several currencies, plans charged as one, groups that do not add up, shares and what remains."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Budget, Column, Domain, Pure, Unit, accounting
from pdprivacy.core.gate.request import Request
from pdprivacy.core.gate.tasks import calibrate, events
from pdprivacy.core.mechanisms.gaussian import exact_multiplier
from pdprivacy.core.statistics import Part
from pdprivacy.errors import (
    AlreadyCharged,
    ArgumentError,
    BudgetError,
    BudgetExceeded,
    DeclarationError,
    ParameterError,
    TableTooLargeError,
)
from pdprivacy.releases import split
from tests.support.snapshots import records_of

# ---------------------------------------------------------------- budgets in several currencies


def caps():
    return [
        Budget(epsilon=5),
        Budget(epsilon=5, delta=1e-5),
        Budget(epsilon=5, delta=1e-5, accounting="filter"),
        Budget(epsilon=5, delta=1e-5, accounting="zcdp"),
        Budget(rho=2),
        Budget(rho=2, accounting="zcdp"),
    ]


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("position", range(6))
@pytest.mark.parametrize("count", [1, 2, 17])
def test_n_charges_are_one_of_count_n(position, count):
    single, repeated = caps()[position], caps()[position]
    single.charge(Pure("0.05"), "x", count=count)
    for _ in range(count):
        repeated.charge(Pure("0.05"), "x")
    assert single.account.spent == repeated.account.spent
    assert (single.spent, single.left) == (repeated.spent, repeated.left)
    assert accounting.report(single.events, 1e-6) == accounting.report(repeated.events, 1e-6)
    assert single.entries["epsilon"].sum() == pytest.approx(0.05 * count)


def test_a_cap_in_rho_counts_pure_losses_by_their_squares():
    budget = Budget(rho="0.5")
    budget.charge(Pure(0.6), "x")
    assert budget.account.spent.concentrated == Fraction(18, 100)
    budget.charge(ZCDP("0.3"), "y")
    assert budget.spent == (0.48, 0)
    assert budget.left == (0.02, 0)
    with pytest.raises(BudgetExceeded, match=r"asks for rho 0.045, but 0.02 of 0.5 is left"):
        budget.charge(Pure(0.3), "z")
    with pytest.raises(BudgetError, match="adds up rhos"):
        budget.charge(Approx(0.01, 1e-9), "z")
    assert budget.charge(Pure(0.2), "z").number == 3
    assert budget.left == (0, 0)
    assert budget.entries[["epsilon", "rho"]].fillna(-1).to_numpy().tolist() == [
        [0.6, 0.18],
        [-1, 0.3],
        [0.2, 0.02],
    ]


@pytest.mark.parametrize("name", ["filter", "zcdp"])
def test_small_losses_last_longer_by_their_squares(name):
    plain, squares = Budget(1, 1e-6), Budget(1, 1e-6, accounting=name)
    for budget in (plain, squares):
        while budget.account.terms.rule.fits(budget.account.spent, Pure("1/100")):
            budget.charge(Pure("1/100"), "x")
        with pytest.raises(BudgetExceeded):
            budget.charge(Pure("1/100"), "x")
    assert len(plain.entries) == 100
    assert 250 < len(squares.entries) < 500
    # what was taken is private at the cap, also by the optimal composition of as many losses
    assert accounting.optimal_epsilon({Pure("1/100"): len(squares.entries)}, 1e-6) <= 1


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"rho": 1, "delta": 1e-6},
        {"rho": 0},
        {"rho": -1},
        {"rho": float("inf")},
        {"rho": float("nan")},
        {"rho": "x"},
        {"rho": 10**300},
        {"epsilon": 10**300},
        {"epsilon": 1, "accounting": "filter"},
        {"epsilon": 1, "accounting": "zcdp"},
        {"rho": 1, "accounting": "filter"},
        {"epsilon": 1, "accounting": "best"},
        {"epsilon": 1, "accounting": None},
    ],
    ids=str,
)
def test_caps_that_make_no_sense_are_refused(arguments):
    with pytest.raises(ParameterError):
        Budget(**arguments)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None], ids=repr)
def test_counts_are_positive_whole_numbers(count):
    budget = Budget(1)
    with pytest.raises(ParameterError, match="'count'"):
        budget.charge(Pure(0.1), "x", count=count)
    assert budget.spent == (0, 0)


def test_an_id_is_charged_once():
    budget = Budget(1)
    budget.charge(Pure(0.25), "x", release_id="a")
    with pytest.raises(AlreadyCharged, match="'a' is charge 1 of this budget"):
        budget.charge(Pure(0.5), "y", release_id="a")
    with pytest.raises(BudgetExceeded):
        budget.charge(Pure(2), "y", release_id="b")
    budget.charge(Pure(0.25), "y", release_id="b")  # a refusal uses no id up
    assert budget.entries["release_id"].tolist() == ["a", "b"]
    for bad in ("", " a", 3, "a\n", "x" * 300):
        with pytest.raises(ParameterError, match="'release_id'"):
            budget.charge(Pure(0.1), "x", release_id=bad)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_copy_that_a_fork_makes_of_a_budget_in_memory_spends_nothing():
    budget = Budget(1)
    out, into = os.pipe()
    if os.fork() == 0:
        try:
            budget.charge(Pure(0.5), "x")
            os.write(into, b"charged")
        except BudgetError:
            os.write(into, b"refused")
        finally:
            os._exit(0)
    os.wait()
    assert os.read(out, 100) == b"refused"
    budget.charge(Pure(0.5), "x")


# ---------------------------------------------------------------- the noise that is noted

PARTS = [
    (Part("a", Fraction(1), 3, 9, Fraction(1), l0=3, counts=True),),
    (
        Part("a", Fraction(1, 3), 2**30, 2**60, Fraction(1, 2**30)),
        Part("b", Fraction(2, 3), 1, 1, Fraction(1)),
    ),
    tuple(Part(str(number), Fraction(1, 5), 7, 25, Fraction(1, 4), l0=2) for number in range(5)),
]


@pytest.mark.parametrize("parts", PARTS, ids=len)
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "4"])
@pytest.mark.parametrize("releases", [1, 3])
def test_the_noise_of_a_charge_is_that_of_all_parts_together(parts, epsilon, releases):
    request = Request(epsilon, 1e-6, mechanism="gaussian", releases=releases)
    mechanisms = calibrate(parts, request)
    ((event, count),) = events(parts, mechanisms, request)
    assert count == releases
    assert event.loss == request.each
    # divided by its deviation, what a record moves has this l2 norm at most
    norm = sum(
        Fraction(part.l2_squared) * part.unit**2 / (mechanism.steps * mechanism.grid) ** 2
        for part, mechanism in zip(parts, mechanisms, strict=True)
    )
    assert 1 / norm >= event.noise.multiplier**2
    assert 1 / norm <= event.noise.multiplier**2 * Fraction(101, 100)
    assert event.noise.l0_sensitivity == sum(part.l0 for part in parts)
    assert all(event.noise.steps <= mechanism.steps for mechanism in mechanisms)


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "laplace"},
        {"mechanism": "gaussian", "delta": 1e-6, "bounding": "truncated"},
        {"mechanism": "generalized_gaussian", "p": 3, "delta": 1e-6},
    ],
    ids=str,
)
def test_other_noise_is_known_by_its_loss_alone(options):
    part = Part("a", Fraction(1), 1, 1, Fraction(1, 2**20), lower=Fraction(0), upper=Fraction(10**6))
    request = Request(1, **options)
    ((event, _),) = events((part,), calibrate((part,), request), request)
    assert event.noise is None
    assert event.loss == request.cost


def test_gaussian_noise_counts_by_its_rho(survey, schema):
    for name, cap in (("filter", {"epsilon": 3}), ("zcdp", {"epsilon": 3}), ("zcdp", {"rho": 1})):
        options = {"delta": 1e-5, **cap} if "epsilon" in cap else cap
        private = survey.dp.protect(schema, accounting=name, **options)
        private.dp.mean("age", epsilon=0.5, delta=1e-6, mechanism="gaussian", releases=2)
        rho = 2 / (2 * exact_multiplier(Fraction(1, 4), Fraction(1, 2 * 10**6)) ** 2)
        spent = private.dp.budget.account.spent
        assert rho <= spent.rho <= rho * (1 + Fraction(1, 10**11))
        assert spent == accounting.Spent(rho=spent.rho)
        row = private.dp.budget.entries.iloc[0]
        assert (row["epsilon"], row["delta"], row["rho"]) == (0.5, 1e-6, float(spent.rho))
        assert private.dp.budget.left[0] > 0


@pytest.mark.full
def test_a_report_finds_less_than_the_sums(survey, schema):
    private = survey.dp.protect(schema, epsilon=10, delta=1e-4)
    for _ in range(20):
        private.dp.mean("age", epsilon=0.25, delta=1e-6, mechanism="gaussian")
    report = private.dp.budget.report(delta=2e-5)["epsilon"]
    assert report["basic"] == 5
    assert report["zcdp"] < 2.5
    assert report["best"] == report.drop("best").min()
    assert private.dp.budget.spent == (5, 2e-5)
    with pytest.raises(ParameterError, match="at least one event"):
        Budget(1).report(1e-6)


# ---------------------------------------------------------------- plans

CALLS = [
    ("count", {"epsilon": "0.1"}),
    ("mean", "age", {"epsilon": 0.2}),
    ("mean", ["age", "family"], {"epsilon": 0.3, "mechanism": "gaussian", "delta": 1e-7}),
    ("crosstab", "region", "health", {"epsilon": 0.25}),
    ("histogram", "age", {"epsilon": 0.1, "releases": 2}),
    ("var", "family", {"epsilon": 0.1, "bounding": "clamp"}),
]


def test_a_plan_is_charged_as_one_and_gives_every_release(survey, schema):
    private = survey.dp.protect(schema, epsilon=3, delta=1e-5)
    plan = private.dp.plan_releases(CALLS, delta=1e-6)
    assert plan.apart == Approx("1.05", 1e-7)
    assert plan.cost.epsilon <= Fraction("1.05")
    assert private.dp.budget.spent == (0, 0)
    released = plan.release(release_id="monday")
    budget = private.dp.budget
    assert budget.composed == plan.cost
    assert len(budget.entries) == 1
    assert budget.entries["answered"].tolist() == [True]
    assert budget.entries["cumulative_dr_ha"].notna().all()  # of the crosstab
    assert [frame.attrs["dp"]["statistic"] for frame in released] == [call[0] for call in CALLS]
    assert [frame.attrs["dp"]["epsilon"] for frame in released] == [0.1, 0.2, 0.3, 0.25, 0.1, 0.1]
    assert {frame.attrs["dp"]["budget"]["spent"][0] for frame in released} == {float(plan.cost.epsilon)}
    assert isinstance(released[0], pd.Series)
    assert all(frame.dp.verify() for frame in released)
    with pytest.raises(AlreadyCharged):
        plan.release(release_id="monday")
    plan.release()
    assert budget.composed == Approx(2 * plan.cost.epsilon, 2 * plan.cost.delta)


@pytest.mark.full
def test_many_small_releases_cost_less_together(survey, schema):
    private = survey.dp.protect(schema, epsilon=10, delta=1e-5)
    plan = private.dp.plan_releases([("mean", "age", {"epsilon": 0.05})] * 100, delta=1e-6)
    assert plan.apart == Pure(5)
    assert plan.cost.delta == Fraction(1, 10**6)
    best = accounting.epsilon([(accounting.Event(Pure("0.05")), 100)], 1e-6)
    assert best <= float(plan.cost.epsilon) <= best * (1 + 1e-8)
    assert float(plan.cost.epsilon) < 2.5
    plan.release()
    # each has the noise of its own epsilon
    assert private.dp.budget.left[0] == pytest.approx(10 - float(plan.cost.epsilon))
    assert float(private.dp.budget.report(1e-6)["epsilon"]["best"]) == pytest.approx(best)


def test_a_plan_is_never_dearer_than_the_sums(survey, schema):
    private = survey.dp.protect(schema, epsilon=10, delta=1e-5)
    for calls, delta in (([("count", {"epsilon": 1})], 1e-6), (CALLS[:2], 0), (CALLS[:1] * 2, 1e-9)):
        plan = private.dp.plan_releases(calls, delta=delta)
        assert plan.cost.epsilon <= plan.apart.epsilon
        assert plan.cost.delta <= Fraction(str(delta))
    assert plan.apart == Pure("0.2")


@pytest.mark.parametrize("rule", ["filter", "zcdp"])
def test_a_plan_counts_by_its_releases_under_a_rule_in_rho(survey, schema, rule):
    private = survey.dp.protect(schema, epsilon=10, delta=1e-5, accounting=rule)
    private.dp.plan_releases([("mean", "age", {"epsilon": 0.5})] * 10, delta=1e-6).release()
    assert private.dp.budget.account.spent == accounting.Spent(epsilon=Fraction(5), squares=Fraction(5, 2))


def test_a_plan_that_does_not_fit_reads_and_charges_nothing(survey, schema, monkeypatch):
    private = survey.dp.protect(schema, epsilon=1)
    plan = private.dp.plan_releases([("mean", "age", {"epsilon": 0.6})] * 2)
    monkeypatch.setattr("pdprivacy.core.gate.records.Records.engine", property(lambda _: pytest.fail("read")))
    with pytest.raises(BudgetExceeded):
        plan.release()
    assert private.dp.budget.entries.empty


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([], "must be a list of releases"),
        ("mean", "must be a list of releases"),
        ([("mean", "age")], "must be a release, its arguments"),
        (["mean"], "must be a release, its arguments"),
        ([({"epsilon": 1},)], "must be a release, its arguments"),
        ([("media", "age", {"epsilon": 1})], "must be one of"),
        ([("mean", "age", {"epsilon": 1, "release_id": "x"})], "has no 'release_id'"),
        ([("mean", "age", {"epsilon": -1})], "'epsilon' must be positive"),
        ([("mean", "age", {"epsilon": 1, "mechanism": "geometric"})], "geometric"),
    ],
    ids=str,
)
def test_plans_are_checked_whole(private, calls, words):
    with pytest.raises(ParameterError, match=words):
        private.dp.plan_releases(calls, delta=1e-6)
    assert private.dp.budget.entries.empty


def test_a_plan_makes_its_releases_in_their_order(survey, schema):
    private = survey.dp.protect(schema, epsilon=10)
    plan = private.dp.plan_releases([("count", {"epsilon": 0.1}), ("mean", "age", {"epsilon": 0.1})])
    metadata = [released.dp.metadata for released in plan.release()]
    assert [(view.statistic, view.epsilon, view.scale) for view in metadata] == [
        ("count", 0.1, 10.0),
        ("mean", 0.1, {"count": 20.0, "sum of age": metadata[1].sensitivity["sum of age"] * 20}),
    ]
    assert {view.budget["spent"][0] for view in metadata} == {0.2}


def test_planned_releases_name_the_charge_that_paid_for_them(survey, schema):
    private = survey.dp.protect(schema, epsilon=10)
    plan = private.dp.plan_releases([("count", {"epsilon": 0.1}), ("mode", "region", {"epsilon": 0.1})])
    assert [release.dp.metadata.release_id for release in plan.release("may")] == ["may", "may"]
    with private.dp.batch(release_id="june") as batch:
        count = batch.count(epsilon=0.1)
    assert count.result.dp.metadata.release_id == "june"


def test_a_misspelled_keyword_of_a_plan_is_told_as_that_of_a_release(private):
    with pytest.raises(ArgumentError, match="'mean' got an unexpected keyword argument 'zz'") as caught:
        private.dp.plan_releases([("mean", "age", {"epsilon": 0.1, "zz": 1})])
    assert "private.dp.mean(" in caught.value.hint
    assert private.dp.budget.entries.empty


def test_the_risk_of_a_plan_is_the_largest(survey, schema):
    private = survey.dp.protect(schema, epsilon=100)
    risky = ("crosstab", ["region", "age"], "health", {"epsilon": 20, "rng": 1})
    coarse = ("crosstab", "region", "health", {"epsilon": 1e-3, "rng": 1})
    risks = []
    for calls in ([risky], [coarse], [risky, coarse], [coarse, risky]):
        private.dp.plan_releases(calls).release()
        risks.append(private.dp.budget._book.entries()[1][-1].dr_ha)
    assert risks[0] != risks[1]
    assert risks[2] == risks[3] >= max(risks[:2]) * 0.99
    labels = private.dp.budget.entries[["release", "mechanism"]].to_numpy().tolist()
    assert labels[0] == ["plan: crosstab of health by region, age", "geometric"]
    private.dp.plan_releases([("count", {"epsilon": 0.1})] * 3).release()
    assert private.dp.budget.entries["release"].iloc[-1] == "plan: 3 x count"


# ---------------------------------------------------------------- groups


@pytest.mark.parametrize(("neighbors", "times"), [("add_remove", 1), ("replace_one", 2)])
def test_groups_are_charged_once(survey, schema, neighbors, times):
    private = survey.dp.protect(schema, epsilon=2, neighbors=neighbors)
    groups = private.dp.partition("region", epsilon=0.5)
    assert list(groups) == ["north", "east", "south", "west"]
    assert private.dp.budget.spent == (0.5 * times, 0)
    for group in groups.values():
        group.dp.mean("age", epsilon=0.25)
        group.dp.count(epsilon=0.25)
        with pytest.raises(BudgetExceeded):
            group.dp.count(epsilon=0.01)
        assert group.dp.budget.total == Pure(0.5)
    assert private.dp.budget.spent == (0.5 * times, 0)
    assert private.dp.budget.entries["answered"].all()


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("column", ["region", "health", "age", "family", "member"])
def test_groups_hold_the_records_of_their_label(survey, schema, column):
    private = survey.dp.protect(schema, epsilon=1)
    groups = private.dp.partition(column, epsilon=1)
    table = private.dp.domain[column].labels("partition")
    assert list(groups) == list(table)
    pieces = []
    for label, part in groups.items():
        group = records_of(part)
        if column == "age":
            low, high = (int(part) for part in label.strip("[])").split(","))
            assert group["age"].between(low, high, inclusive="both" if label[-1] == "]" else "left").all()
        else:
            assert (group[column] == label).all()
        pieces.append(group)
    assert sum(map(len, pieces)) == len(survey)
    assert sorted(pd.concat(pieces).index) == list(survey.index)


def test_nulls_are_a_group(survey, schema):
    income = pa.Column(float, pa.Check.isin([float(k) for k in range(3)]), nullable=True, metadata={"dp": {}})
    frame = pd.DataFrame({"income": [0.0, np.nan, 2.0, np.nan, 0.0]})
    groups = frame.dp.protect(pa.DataFrameSchema({"income": income}), epsilon=1).dp.partition(
        "income", epsilon=1
    )
    assert {label: len(records_of(group)) for label, group in groups.items()} == {
        0.0: 2,
        1.0: 0,
        2.0: 1,
        None: 2,
    }


def test_the_number_of_records_of_a_group_is_private(survey, schema):
    for neighbors in ("add_remove", "replace_one"):
        private = survey.dp.protect(schema, epsilon=2, neighbors=neighbors)
        group = private.dp.partition("region", epsilon=0.5)["north"]
        assert group.dp.count(epsilon=0.1).attrs["dp"]["rows"] is None
        query = private.dp.query("region == 'north'")
        options = {"epsilon": 0.1, "rng": 3}
        assert group.dp.mean("age", **options).tolist() == query.dp.mean("age", **options).tolist()
        assert (
            group.dp.mean("age", **options).attrs["dp"]["sensitivity"]
            == query.dp.mean("age", **options).attrs["dp"]["sensitivity"]
        )


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_groups_together_lose_what_was_charged_for_them(neighbors):
    """The loss of a count per group, each with all of its budget, over every pair of neighbours."""
    labels = ["a", "b", "c"]
    column = pa.Column(str, pa.Check.isin(labels), metadata={"dp": {}})
    schema = pa.DataFrameSchema({"g": column})
    epsilon = 0.5

    def counts(rows):
        return np.array([rows.count(label) for label in labels])

    worst = 0.0
    for rows in product(labels, repeat=3):
        if neighbors == "add_remove":
            others = [rows[:position] + rows[position + 1 :] for position in range(3)]
        else:
            others = [
                (*rows[:position], label, *rows[position + 1 :]) for position in range(3) for label in labels
            ]
        for other in others:
            # geometric noise per group: the loss is epsilon per step that its count moves
            worst = max(worst, epsilon * np.abs(counts(rows) - counts(other)).sum())
    private = pd.DataFrame({"g": ["a", "b", "a"]}).dp.protect(schema, epsilon=2, neighbors=neighbors)
    groups = private.dp.partition("g", epsilon=epsilon)
    scales = {group.dp.count(epsilon=epsilon).attrs["dp"]["scale"] for group in groups.values()}
    assert scales == {1 / epsilon}
    assert worst == private.dp.budget.spent[0]


def test_invalid_groups_are_refused_before_the_charge(private):
    for by, error in (
        ("weight", DeclarationError),
        ("person", DeclarationError),
        ("nothing", DeclarationError),
        (["region", "health"], ParameterError),
        ([], ParameterError),
    ):
        with pytest.raises(error):
            private.dp.partition(by, epsilon=0.5)
    with pytest.raises(ParameterError):
        private.dp.partition("region", epsilon=0)
    with pytest.raises(BudgetExceeded):
        private.dp.partition("region", epsilon=1000)
    assert private.dp.budget.entries.empty
    column = Column("x", "category", categories=tuple(range(10_001)))
    wide = pd.DataFrame({"x": [1, 2]}).dp.protect(Domain((column,)), epsilon=1)
    with pytest.raises(TableTooLargeError):
        wide.dp.partition("x", epsilon=0.5)


def test_a_partition_has_an_id_a_label_and_a_unit(survey, schema):
    private = survey.dp.protect(schema, epsilon=2)
    older = private.dp.query("age >= 30")
    older.dp.partition("region", epsilon=0.5, release_id="a")
    with pytest.raises(AlreadyCharged):
        private.dp.partition("health", epsilon=0.5, release_id="a")
    entries = private.dp.budget.entries
    assert entries["release"].tolist() == ["partition by region where (age >= 30)"]
    assert entries["release_id"].tolist() == ["a"]
    budget = Budget(2)
    frame = survey.dp.protect(schema, budget=budget)
    budget._book._account = replace(
        budget.account, terms=replace(budget.account.terms, unit=Unit("replace_one"))
    )
    for spend in (
        lambda: frame.dp.partition("region", epsilon=0.5),
        lambda: frame.dp.count(epsilon=0.5),
        lambda: frame.dp.plan_releases([("count", {"epsilon": 0.5})]).release(),
    ):
        with pytest.raises(BudgetError, match="do not add up"):
            spend()
    assert budget.entries.empty


def test_groups_of_groups(survey, schema):
    private = survey.dp.protect(schema, epsilon=1)
    north = private.dp.partition("region", epsilon=1)["north"]
    inner = north.dp.partition("health", epsilon=0.75)
    assert north.dp.budget.left == (0.25, 0)
    rejoined = pd.concat(map(records_of, inner.values()))
    assert sorted(rejoined.index) == sorted(survey.index[survey["region"] == "north"])
    assert {(*pair,) for pair in rejoined[["region", "health"]].to_numpy()} == {
        ("north", "no"),
        ("north", "yes"),
    }
    assert private.dp.budget.left == (0, 0)


# ---------------------------------------------------------------- shares, and what remains


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=100, max_denominator=1000),
    st.lists(
        st.fractions(min_value=Fraction(1, 100), max_value=9, max_denominator=100), min_size=1, max_size=8
    ),
)
def test_shares_sum_to_the_whole(epsilon, weights):
    shares = split(None, epsilon, into=weights)
    assert sum(shares) == epsilon
    assert all(
        share * weights[0] == shares[0] * weight for share, weight in zip(shares, weights, strict=True)
    )
    named = split(None, epsilon, into={str(position): weight for position, weight in enumerate(weights)})
    assert list(named.values()) == shares
    assert split(None, epsilon, into=len(weights)) == [epsilon / len(weights)] * len(weights)


def test_shares_are_spent_to_the_last_digit(survey, schema):
    private = survey.dp.protect(schema, epsilon="0.7")
    for share in private.dp.split("0.7", into=3):
        private.dp.count(epsilon=share)
    assert private.dp.budget.left == (0, 0)
    assert private.dp.remaining() == 0


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(
    "into",
    [
        0,
        -1,
        True,
        "ab",
        [],
        [1, -1],
        {},
        None,
        2.5,
        [0],
        np.array(31),
        np.array(2.5),
        np.ones((2, 2)),
        [[1], [1, 2]],
    ],
    ids=repr,
)
def test_shares_have_positive_weights(private, into):
    with pytest.raises(ParameterError):
        private.dp.split(1, into=into)


def test_an_array_holds_weights(private):
    assert private.dp.split(1, into=np.array([3, 1])) == [Fraction(3, 4), Fraction(1, 4)]
    assert private.dp.split(1, into=pd.Series([3, 1])) == [Fraction(3, 4), Fraction(1, 4)]
    assert private.dp.split(1, into=np.int64(2)) == [Fraction(1, 2)] * 2


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": "1"},
        {"epsilon": 1, "delta": 1e-5},
        {"epsilon": "5/3", "delta": 1e-5},
        {"epsilon": 1, "delta": 1e-5, "accounting": "filter"},
        {"epsilon": 1, "delta": 1e-5, "accounting": "zcdp"},
        {"rho": "0.3"},
    ],
    ids=str,
)
@pytest.mark.parametrize("spent", [0, 1, 5])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_the_remaining_epsilon_fits_and_more_does_not(survey, schema, options, spent, delta):
    private = survey.dp.protect(schema, **options)
    for _ in range(spent):
        private.dp.count(epsilon="1/9")
    remaining = private.dp.remaining(delta)
    noise = {"delta": delta, "mechanism": "gaussian"} if delta else {}
    if delta and options == {"epsilon": "1"}:
        assert remaining == 0
        return
    with pytest.raises(BudgetExceeded):
        private.dp.mean("age", epsilon=max(remaining * (1 + 1e-6), 1e-5), **noise)
    if delta and spent == 5 and "accounting" in options:
        assert remaining == 0  # these pure losses fit by their sum, which a loss in rho is no part of
        return
    assert remaining > 0
    private.dp.mean("age", epsilon=remaining, **noise)
    left = private.dp.remaining(delta)
    assert 0 <= left < (1e-3 * remaining if delta == 0 or "rho" in options else remaining)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("delta", [-1, 1, 2, "x", None, float("nan")], ids=repr)
def test_deltas_of_what_remains(private, delta):
    with pytest.raises(ParameterError, match="'delta'"):
        private.dp.remaining(delta)


# ---------------------------------------------------------------- what is refused, and costs nothing


def test_the_budget_of_a_group_is_for_its_records_alone(survey, schema):
    private = survey.dp.protect(schema, epsilon=1)
    groups = private.dp.partition("region", epsilon=1)
    for frame in (survey, private, groups["north"], groups["south"]):
        with pytest.raises(ParameterError, match=r"that of a group of partition|protected already"):
            frame.dp.protect(schema, budget=groups["north"].dp.budget)
    with pytest.raises(ParameterError, match="that of a group"):
        survey.dp.protect(schema, budget=groups["north"].dp.partition("health", epsilon=1)["yes"].dp.budget)


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6, accounting="zcdp"), Budget(rho=1)], ids=str)
def test_no_charge_is_of_nothing(budget):
    with pytest.raises(ParameterError, match="at least one event"):
        budget.charge(Pure(0.5), "x", events=[])
    assert budget.entries.empty


def test_a_plan_looks_at_everything_before_it_is_charged(survey, schema):
    private = survey.dp.protect(schema, epsilon=5)
    good = ("mean", "age", {"epsilon": 0.5})
    for bad in (
        ("mean", "age", {"epsilon": 0.5, "rng": "seed"}),
        ("mean", "age", {"epsilon": 0.5, 3: 4}),
        ("histogram", "age", [0, "x"], {"epsilon": 0.5}),
    ):
        with pytest.raises(ParameterError):
            private.dp.plan_releases([good, bad])
    assert private.dp.budget.entries.empty


def test_a_plan_is_fixed(survey, schema):
    private = survey.dp.protect(schema, epsilon=5)
    bins, options = [18, 50, 90], {"epsilon": 0.5}
    plan = private.dp.plan_releases([("histogram", "age", bins, options)])
    bins[1], options["epsilon"] = 31, 4
    (released,) = plan.release()
    assert released.index.tolist() == ["[18, 50)", "[50, 90]"]
    assert released.attrs["dp"]["epsilon"] == 0.5


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("call", ["mean", "proportion", "value_counts", "cov", "crosstab", "count"])
def test_several_releases_of_one_statistic_can_be_planned(survey, schema, call):
    arguments = {
        "mean": (["age", "family"],),
        "proportion": ("health", "yes"),
        "value_counts": ("region",),
        "cov": (["age", "family"],),
        "crosstab": ("region", "health"),
        "count": (),
    }[call]
    private = survey.dp.protect(schema, epsilon=5)
    plan = private.dp.plan_releases([(call, *arguments, {"epsilon": 0.75, "releases": 3})])
    assert plan.cost == plan.apart == Pure("0.75")
    (released,) = plan.release()
    assert released.columns.get_level_values("release").unique().tolist() == [1, 2, 3]
    assert private.dp.budget.composed == Pure("0.75")


def test_a_delta_that_covers_all_leaves_hardly_an_epsilon(survey, schema):
    private = survey.dp.protect(schema, epsilon=5, delta=0.9)
    plan = private.dp.plan_releases([("count", {"epsilon": 0.01})], delta=0.5)
    assert plan.cost == Approx(1e-9, 0.5)


@pytest.mark.full
def test_sums_of_many_different_gaussian_releases_stay_short(survey, schema):
    private = survey.dp.protect(schema, epsilon=50, delta=1e-5, accounting="zcdp")
    exact = Fraction(0)
    for number in range(150):
        epsilon = Fraction(1000 + number, 100_000)
        call = ("mean", "age", {"epsilon": epsilon, "delta": 1e-7, "mechanism": "gaussian"})
        ((_, price),) = private.dp.plan_releases([call], delta=1e-6, accounting="basic")._releases
        ((event, _),) = price.events
        exact += 1 / (2 * event.noise.multiplier**2)
        private.dp.budget.charge(event.loss, "x", events=[(event, 1)])
    rho = private.dp.budget.account.spent.rho
    assert exact <= rho <= exact * (1 + Fraction(1, 10**10))
    assert len(str(rho)) < 100
    assert len(repr(private.dp.budget).splitlines()[2]) < 80


@pytest.mark.parametrize("size", [10**300, 10**5000, Fraction(1, 10**5000)], ids=["e300", "e5000", "e-5000"])
@pytest.mark.parametrize("position", range(6))
def test_numbers_of_no_budget_are_refused_in_words(position, size):
    budget = caps()[position]
    for charge in (
        lambda: budget.charge(Pure(size), "x"),
        lambda: budget.charge(Pure(0.1), "x", count=size),
        lambda: budget.charge(ZCDP(size), "x"),
    ):
        with pytest.raises((ParameterError, BudgetError)) as caught:
            charge()
        assert len(str(caught.value)) < 400
    assert budget.entries.empty
    assert len(repr(budget)) < 400


def test_what_is_left_for_gaussian_noise_fits():
    budget = Budget(epsilon=10, delta=1e-6, accounting="filter")
    budget.charge(Pure(1), "x")
    with pytest.raises(BudgetExceeded, match="asks for rho 5, but") as caught:
        budget.charge(ZCDP(5), "x")
    room = caught.value.hint.removeprefix("ZCDP(").partition(")")[0]
    budget.charge(ZCDP(room), "x")
    with pytest.raises(BudgetExceeded):
        budget.charge(ZCDP("0.000001"), "x")


def test_a_plan_that_does_not_fit_is_told_as_a_whole(survey, schema):
    private = survey.dp.protect(schema, epsilon=1, delta=1e-6, accounting="filter")
    plan = private.dp.plan_releases([("count", {"epsilon": 0.9}), ("count", {"epsilon": 0.8})])
    with pytest.raises(BudgetExceeded, match=r"asks for epsilon 1\.7, but 1 of 1 is left"):
        plan.release()


def test_labels_are_kept_on_one_line():
    budget = Budget(1)
    budget.charge(Pure(0.1), "a\nb\ud800", "\x1b[31m")
    assert budget.entries["release"].tolist() == ["a\\nb\\ud800"]
    assert budget.entries["mechanism"].tolist() == ["\\x1b[31m"]
    assert len(repr(budget).splitlines()) == 5
