"""Methods for the curator (`table_risk`): risks, epsilons, distances, homogeneous cells."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Budget, Column, Domain, Ledger, Pure, risk
from pdprivacy.core.mechanisms import Gaussian, Geometric, Laplace
from pdprivacy.core.privacy import Confidential, rational
from pdprivacy.errors import (
    DeclarationError,
    MetadataError,
    NotProtectedError,
    ParameterError,
    PrivacyError,
    TableTooLargeError,
)
from pdprivacy.frames import find
from pdprivacy.risk.plausible_counts import plausible
from pdprivacy.risk.table_utility import total_variation
from pdprivacy.text.numbers import percent
from tests.support.cases import each

AGES, TOWNS, SEXES = tuple(range(10)), ("Aa", "Bb", "Cc"), ("f", "m")
ILLS, JOBS = ("flu", "gout", "no"), ("a", "b")


def column(name, labels, role, *, nullable=False):
    if labels == AGES:
        return Column(name, "integer", nullable, 0, 9, role=role)
    return Column(name, "category", nullable, categories=labels, role=role)


DOMAIN = Domain(
    (
        column("age", AGES, "quasi_identifier"),
        column("town", TOWNS, "quasi_identifier"),
        column("sex", SEXES, "quasi_identifier"),
        column("ill", ILLS, "sensitive"),
        column("job", JOBS, "sensitive", nullable=True),
        column("one", ("only",), "sensitive"),
        Column("person", "integer", lower=-1, upper=20, role="identifier"),
        Column("score", "float", lower=0, upper=1),
    )
)


def people(rows: int, seed: int) -> pd.DataFrame:
    """Unlike cells, empty ones among them; nobody is 7."""
    rng = np.random.default_rng(seed)
    age = rng.choice([1, 2, 3, 4, 5, 6, 8], rows, p=[0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02])
    ill = np.where(rng.random(rows) < 0.1 + 0.1 * age, "no", rng.choice(["flu", "gout"], rows))
    job = rng.choice(np.array(["a", "b", None], dtype=object), rows, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice(np.array(TOWNS, dtype=object), rows, p=[0.6, 0.3, 0.1]),
            "sex": rng.choice(np.array(SEXES, dtype=object), rows),
            "ill": ill.astype(object),
            "job": job,
            "one": np.full(rows, "only", dtype=object),
            "person": np.arange(rows) % 10,
            "score": rng.random(rows),
        }
    )


PEOPLE = people(160, 3)
BY = ["age", "town"]


def protect(frame=PEOPLE, **options):
    return frame.dp.protect(DOMAIN, **{"epsilon": 10**6, "delta": 0.5, **options})


@pytest.fixture(scope="module")
def private():
    return protect()


def counted(by, sensitive, frame=PEOPLE) -> pd.DataFrame:
    """The confidential table, by pandas: every declared cell, nulls of the sensitive column last."""
    labels = {"age": AGES, "town": TOWNS, "sex": SEXES, "ill": ILLS, "job": (*JOBS, "null")}
    filled = frame.fillna({"job": "null"})
    table = pd.crosstab([filled[name] for name in by], filled[sensitive])
    if len(by) == 1:
        cells = pd.Index(labels[by[0]], name=by[0])
    else:
        cells = pd.MultiIndex.from_product([labels[name] for name in by], names=by)
    return table.reindex(cells, fill_value=0).reindex(columns=labels[sensitive], fill_value=0)


# ---------------------------------------------------------------- confidential numbers


def test_a_confidential_number_says_so_and_is_a_number():
    number = Confidential(1.02)
    assert repr(number) == str(number) == f"{number}" == "1.02 (confidential)"
    assert f"{number:.1f}" == "1.0"
    for derived in (number + 1, round(number, 1), -number, number * number):
        assert type(derived) is float
    with pytest.raises(ParameterError, match="made of confidential counts") as refused:
        rational(number, "epsilon")
    assert "1.02" not in str(refused.value)
    assert rational(round(number, 1), "epsilon") == 1
    assert json.dumps(number) == "1.02"
    assert repr(Confidential("inf")) == "inf (confidential): any epsilon will do, even without noise"


@pytest.mark.parametrize("value", [np.float32(0.1), np.float64(0.1), 0.1])
def test_other_floats_mean_what_they_did(value):
    assert rational(value, "epsilon") == Fraction(1, 10)


# ---------------------------------------------------------------- dr_ha


def noise_of(name, epsilon, l1=1, l2=1.0):
    if name == "gaussian":
        return Gaussian(epsilon, 1e-3, l2)
    return (Laplace if name == "laplace" else Geometric)(epsilon, l1)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["laplace", "geometric", "gaussian"])
def test_the_risk_is_that_of_the_noise_the_table_would_get(name, neighbors):
    private = protect(neighbors=neighbors)
    l1, l2 = (1, 1.0) if neighbors == "add_remove" else (2, math.sqrt(2))
    table = counted(BY, "ill")
    options = {"mechanism": name, "delta": 1e-3 if name == "gaussian" else 0}
    noises = [noise_of(name, epsilon, l1, l2) for epsilon in (0.3, 2)]
    for average in ("cells", "records"):
        expected = risk.dr_ha(table.to_numpy(), noises, average=average)
        risks = private.dp.dr_ha(BY, "ill", [0.3, 2], average=average, **options)
        assert risks.name == "dr_ha (confidential)"
        assert risks.index.name == "epsilon"
        assert risks.index.tolist() == [0.3, 2.0]
        assert risks.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
        single = private.dp.dr_ha(BY, "ill", 2, average=average, **options)
        assert isinstance(single, Confidential)
        assert single == risks.iloc[1]


MEASURES = [
    {"measure": "expected"},
    {"measure": "shrinkage"},
    {"measure": "shrinkage", "alpha": [1.0, 2.0, 3.0]},
    {"measure": "marginal"},
    {"measure": "marginal", "sizes": "negative_binomial", "zero_truncated": False},
    {"measure": "marginal_shrinkage", "sizes": "poisson"},
    {"partial": True},
    {"attack": "plurality"},
    {"attack": "probabilistic"},
    {"method": "published"},
]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("options", MEASURES, ids=str)
def test_every_measure_is_that_of_the_array_function(private, options):
    table = counted(BY, "ill").to_numpy()
    noises = [Geometric("0.4"), Geometric(3)]
    for average in ("cells", "records"):
        expected = risk.dr_ha(table, noises, average=average, **options)
        risks = private.dp.dr_ha(BY, "ill", [0.4, 3], average=average, **options)
        assert risks.tolist() == pytest.approx(expected.tolist(), rel=1e-9)
        curve = private.dp.risk_curve(BY, "ill", [3, 0.4], **options)
        assert curve[average].tolist()[1:-1] == pytest.approx(expected.tolist(), rel=1e-9)
    cells = private.dp.dr_ha(BY, "ill", 3, average=None, **options)
    expected = risk.dr_ha(table, noises[1], average=None, **options)
    np.testing.assert_allclose(cells.to_numpy(), expected, rtol=1e-9)


def test_risks_of_single_cells_are_labelled(private):
    single = private.dp.dr_ha(BY, "ill", 1, average=None)
    assert isinstance(single, pd.Series)
    assert single.name == "dr_ha (confidential)"
    table = counted(BY, "ill")
    assert single.index.tolist() == table.index.tolist()
    assert single.index.names == BY
    assert (single.isna() == (table.sum(axis=1) == 0)).all()
    assert math.isnan(single[(7, "Aa")])
    several = private.dp.dr_ha(BY, "ill", [0.1, 1], average=None)
    assert several.columns.tolist() == [0.1, 1.0]
    assert several.columns.name == "epsilon (confidential)"
    pd.testing.assert_series_equal(several[1.0], single, check_names=False)
    assert single.mean() == pytest.approx(private.dp.dr_ha(BY, "ill", 1))


def test_nulls_are_a_label(private):
    table = counted(["sex", "age"], "job")
    assert table.shape == (20, 3)
    expected = risk.dr_ha(table.to_numpy(), Geometric(1))
    assert private.dp.dr_ha(["sex", "age"], "job", 1) == pytest.approx(expected, rel=1e-12)
    assert expected != pytest.approx(risk.dr_ha(table.iloc[:, :2].to_numpy(), Geometric(1)), rel=1e-3)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("overall", ["max", "sum"])
@pytest.mark.parametrize("joint", [True, False])
def test_several_sensitive_columns_count_per_cell(private, overall, joint, monkeypatch):
    if not joint:
        monkeypatch.setattr("pdprivacy.risk.table_risk.JOINT", 1)
    noises = [Geometric("0.2"), Geometric(2)]
    each = np.array(
        [risk.dr_ha(counted(BY, name).to_numpy(), noises, average=None) for name in ("ill", "job")]
    )
    cells = each.max(axis=0) if overall == "max" else each.sum(axis=0)
    sizes = counted(BY, "ill").sum(axis=1).to_numpy()
    for average, weights in (("cells", sizes > 0), ("records", sizes)):
        expected = np.average(np.nan_to_num(cells), axis=1, weights=weights)
        risks = private.dp.dr_ha(BY, ["ill", "job"], [0.2, 2], average=average, overall=overall)
        assert risks.tolist() == pytest.approx(expected.tolist(), rel=1e-9)
        curve = private.dp.risk_curve(BY, ["ill", "job"], [0.2, 2], overall=overall)
        assert curve[average].tolist()[1:-1] == pytest.approx(expected.tolist(), rel=1e-9)
    risks = private.dp.dr_ha(BY, ["ill", "job"], [0.2, 2], average=None, overall=overall)
    np.testing.assert_allclose(risks.to_numpy().T, cells, rtol=1e-9)
    assert not np.isclose(each.max(axis=0), each[0]).all()  # both columns matter


def test_generic_cells_of_several_columns(private):
    options = {"measure": "marginal_shrinkage", "alpha": "flat"}
    each = [private.dp.dr_ha(BY, name, 1, **options) for name in ("ill", "job")]
    assert private.dp.dr_ha(BY, ["ill", "job"], 1, **options) == pytest.approx(max(each))
    assert private.dp.dr_ha(BY, ["ill", "job"], 1, overall="sum", **options) == pytest.approx(sum(each))


def test_tables_with_more_labels_than_cells_are_answered(private):
    table = counted(["sex"], "ill")
    assert table.shape == (2, 3)
    expected = risk.dr_ha(risk.Cells.of(table.to_numpy()), Geometric(1))
    assert private.dp.dr_ha("sex", "ill", 1) == pytest.approx(expected)


def test_simulated_risks_come_with_their_errors(private):
    exact = private.dp.dr_ha(BY, "ill", [0.5, 2])
    risks = private.dp.dr_ha(BY, "ill", [0.5, 2], method="monte_carlo", draws=400, rng=5)
    assert risks.columns.tolist() == ["risk", "standard_error"]
    assert risks.columns.name == "dr_ha (confidential)"
    assert risks.index.tolist() == [0.5, 2.0]
    # fixed seed; beyond 5 standard errors lies less than one in a million
    assert ((risks["risk"] - exact).abs() < 5 * risks["standard_error"]).all()
    assert (risks["standard_error"] < 0.01).all()
    repeated = private.dp.dr_ha(BY, "ill", [0.5, 2], method="monte_carlo", draws=400, rng=5)
    pd.testing.assert_frame_equal(risks, repeated)
    cells = private.dp.dr_ha(BY, "ill", 2, average=None, method="monte_carlo", draws=50, rng=1)
    assert cells.index.names == BY
    assert cells.columns.tolist() == ["risk", "standard_error"]
    several = private.dp.dr_ha(BY, "ill", [0.5, 2], average=None, method="monte_carlo", draws=50, rng=1)
    assert several.columns.tolist() == [*product(("risk", "standard_error"), (0.5, 2.0))]


# ---------------------------------------------------------------- curves


def test_the_ends_of_a_curve_are_counted_by_hand(private):
    table = counted(BY, "ill").to_numpy()
    table = table[table.any(axis=1)]
    sizes, present = table.sum(axis=1), (table > 0).sum(axis=1)
    assert {1, 2, 3} == set(present)
    for name in ("geometric", "laplace"):
        curve = private.dp.risk_curve(BY, "ill", [1], mechanism=name)
        assert curve.index.tolist() == [0.0, 1.0, math.inf]
        assert curve.index.name == "epsilon"
        assert curve.columns.tolist() == ["cells", "records"]
        homogeneous = present == 1
        assert curve.loc[math.inf, "cells"] == pytest.approx(homogeneous.mean())
        assert curve.loc[math.inf, "records"] == pytest.approx(sizes[homogeneous].sum() / sizes.sum())
        # as epsilon goes to 0, each of m labels alone is seen with probability 1/2 to the power of 3
        assert curve.loc[0.0, "cells"] == pytest.approx((present / 8).mean())
        assert curve.loc[0.0, "records"] == pytest.approx(np.average(present / 8, weights=sizes))
    near = private.dp.risk_curve(BY, "ill", [1e-5, 1e3])
    assert near.iloc[1].tolist() == pytest.approx(near.iloc[0].tolist(), abs=1e-3)
    assert near.iloc[2].tolist() == pytest.approx(near.iloc[3].tolist(), abs=1e-9)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
@pytest.mark.parametrize(
    "noise",
    [
        {"mechanism": "geometric"},
        {"mechanism": "laplace"},
        {"mechanism": "gaussian", "delta": 0.3},
        {"mechanism": "gaussian", "delta": 1e-3, "calibration": "pdp"},
        {"mechanism": "generalized_gaussian", "delta": 1e-3, "p": 3},
    ],
    ids=str,
)
def test_the_first_row_is_the_limit_of_the_noise_itself(neighbors, bounding, noise):
    private = protect(PEOPLE.iloc[:20], neighbors=neighbors)
    curve = private.dp.risk_curve(BY, "ill", [1e-4], bounding=bounding, **noise)
    assert curve.iloc[0].tolist() == pytest.approx(curve.iloc[1].tolist(), rel=5e-3, abs=1e-6)
    if bounding == "truncated" and neighbors == "add_remove":
        assert curve.iloc[0].tolist() == pytest.approx([0, 0], abs=0.07)  # few counts read as empty
    else:
        assert curve.iloc[0].min() > 1e-3


def test_truncated_noise_is_that_within_both_bounds():
    """Under replace_one no count is above the number of rows, and the noise is told so."""
    few = PEOPLE.iloc[:12]
    private = protect(few, neighbors="replace_one")
    released = Gaussian(
        "0.1", 1e-3, math.sqrt(2), bounds=(0, 12), bounding="truncated", l0_sensitivity=2, grid=2.0**-30
    )
    assert released.scale > 12  # so that the upper bound matters
    expected = risk.dr_ha(counted(BY, "ill", few).to_numpy(), released)
    value = private.dp.dr_ha(BY, "ill", 0.1, mechanism="gaussian", delta=1e-3, bounding="truncated")
    assert value == pytest.approx(expected, rel=1e-6)


def test_a_curve_has_51_epsilons_and_is_in_order(private):
    curve = private.dp.risk_curve(BY, "ill")
    assert curve.index[1:-1].tolist() == pytest.approx(np.logspace(-3, 2, 51).tolist())
    some = private.dp.risk_curve(BY, "ill", [2, 0.5, 2, 1])
    assert some.index.tolist() == [0.0, 0.5, 1.0, 2.0, math.inf]
    assert some.loc[2.0, "cells"] == pytest.approx(private.dp.dr_ha(BY, "ill", 2))


# ---------------------------------------------------------------- choose_epsilon


def alone(labels) -> pd.DataFrame:
    """One cell, with these labels."""
    rows = len(labels)
    return PEOPLE.iloc[:rows].assign(age=1, town="Aa", ill=pd.array(labels, dtype=object))


@pytest.mark.full
@pytest.mark.parametrize("average", ["cells", "records"])
@pytest.mark.parametrize("options", [{}, {"mechanism": "laplace"}, {"measure": "expected"}], ids=str)
def test_the_chosen_epsilon_is_the_last_that_keeps_the_risk(average, options):
    frame = alone(["flu"] * 3)
    private = protect(pd.concat([frame, frame.assign(age=2, ill="no").iloc[:1]], ignore_index=True))
    chosen = [
        private.dp.choose_epsilon(BY, "ill", most, average=average, **options) for most in (0.3, 0.5, 0.9)
    ]
    assert chosen == sorted(chosen)
    for epsilon, most in zip(chosen, (0.3, 0.5, 0.9), strict=True):
        assert isinstance(epsilon, Confidential)
        below, beyond = private.dp.dr_ha(
            BY, "ill", [epsilon, epsilon * 1.001], average=average, measure=options.get("measure", "local"),
            mechanism=options.get("mechanism", "geometric"),
        )  # fmt: skip
        assert below <= most < beyond
    left = private.dp.budget.left
    with pytest.raises(ParameterError, match=r"epsilon=round\(epsilon, 1\)"):
        private.dp.crosstab(BY, "ill", epsilon=chosen[0])  # it would be published with the table
    assert private.dp.budget.left == left
    assert private.dp.crosstab(BY, "ill", epsilon=round(chosen[1], 1)).attrs["dp"]["epsilon"] == round(
        float(chosen[1]), 1
    )


def test_a_closed_form_of_the_chosen_epsilon():
    """One record alone: geometric noise hides it, or shows another label, with r / (1 + r) each."""
    private = protect(alone(["flu"]))
    most = 0.5
    chosen = private.dp.choose_epsilon(BY, "ill", most)
    r = math.exp(-float(chosen))
    assert (1 / (1 + r)) ** 3 == pytest.approx(most, abs=1e-5)


def test_a_risk_that_rises_and_falls_is_low_at_the_largest_epsilon():
    """Mixed cells are safe without noise, and at risk under some."""
    private = protect(alone(["flu", "gout", "no"] * 3))
    curve = private.dp.risk_curve(BY, "ill")["cells"]
    assert curve[math.inf] == 0
    most = curve.iloc[0] / 2
    assert curve.max() > most
    assert private.dp.choose_epsilon(BY, "ill", most) == math.inf


def test_where_every_epsilon_will_do_it_is_infinite():
    private = protect(alone(["flu"] * 5 + ["no"] * 5))
    assert private.dp.choose_epsilon(BY, "ill", 0.9) == math.inf


def test_where_none_will_do_it_is_refused_without_a_number_of_the_data():
    private = protect(alone(["flu"] * 17))
    with pytest.raises(ParameterError, match="'max_risk'") as caught:
        private.dp.choose_epsilon(BY, "ill", 0.05)
    assert "17" not in str(caught.value)
    assert "0.125" not in str(caught.value)


# ---------------------------------------------------------------- utility and tradeoff


def test_utility_is_the_distance_of_each_marginal(private):
    distances = private.dp.utility(["age", "town", "ill"], epsilon=[0.1, 2], draws=300, rng=4)
    assert distances.index.names == ["order", "marginal"]
    assert distances.index.tolist() == [
        (1, "age"),
        (1, "town"),
        (1, "ill"),
        (2, "age × town"),
        (2, "age × ill"),
        (2, "town × ill"),
        (3, "age × town × ill"),
    ]
    assert distances.columns.tolist() == [*product(("tvd", "standard_error"), (0.1, 2.0))]
    assert distances.columns.names[1] == "epsilon"
    cells = {"age": 10, "town": 3, "ill": 3}
    for (_, name), row in distances.iterrows():
        axes = name.split(" × ")
        full = counted(["age", "town"], "ill").stack().rename_axis(["age", "town", "ill"])
        margin = full.groupby(axes, sort=False).sum().to_numpy()
        pieces = 90 // math.prod(cells[axis] for axis in axes)
        for epsilon in (0.1, 2.0):
            expected, error = total_variation(margin, Geometric(str(epsilon)), pieces, draws=300, rng=9)
            spread = math.hypot(error, row["standard_error", epsilon])
            assert row["tvd", epsilon] == pytest.approx(expected, abs=5 * spread)
    repeated = private.dp.utility(["age", "town", "ill"], epsilon=[0.1, 2], draws=300, rng=4)
    pd.testing.assert_frame_equal(distances, repeated)


def test_utility_takes_the_declared_roles_and_orders_by_default(private):
    distances = private.dp.utility(epsilon=1, draws=2, order=1, rng=1)
    assert distances.index.get_level_values(1).tolist() == ["age", "town", "sex", "ill", "job", "one"]
    pair = private.dp.utility(["age", "sex"], epsilon=1, draws=2, rng=1)
    assert pair.index.get_level_values("order").tolist() == [1, 1, 2]
    assert distances.attrs == {
        "dp": {
            "confidential": "utility",
            "mechanism": "geometric",
            "columns": ["age", "town", "sex", "ill", "job", "one"],
        }
    }


def test_tradeoff_puts_risk_and_distance_side_by_side(private):
    table = private.dp.tradeoff(
        BY, "ill", [10, 0.1, 1], max_risk=0.24, max_tvd=0.06, order=(1, 3), draws=200, rng=2
    )
    assert table.index.tolist() == [0.1, 1.0, 10.0]
    assert table.columns.tolist() == ["risk", "tvd 1-way", "tvd 3-way", "recommended"]
    assert table["risk"].tolist() == private.dp.dr_ha(BY, "ill", [0.1, 1, 10]).tolist()
    by_marginal = private.dp.utility(["age", "town", "ill"], (1, 3), [0.1, 1, 10], draws=200, rng=6)
    mean = by_marginal["tvd"].groupby(level="order").mean().T
    for order in (1, 3):
        # the standard error of each marginal is below 0.01
        assert table[f"tvd {order}-way"].tolist() == pytest.approx(mean[order].tolist(), abs=0.03)
    recommended = (table["risk"] <= 0.24) & (table["tvd 1-way"] <= 0.06) & (table["tvd 3-way"] <= 0.06)
    assert table["recommended"].tolist() == recommended.tolist()
    assert table["recommended"].dtype == bool
    joint = private.dp.tradeoff(BY, ["ill", "job"], [1], draws=2, rng=1, overall="sum", average="records")
    expected = private.dp.dr_ha(BY, ["ill", "job"], 1, overall="sum", average="records")
    assert joint["risk"].tolist() == pytest.approx([expected])
    default = private.dp.tradeoff("sex", "ill", draws=2, rng=1)
    assert default.index.tolist() == pytest.approx(np.logspace(-2, 2, 17).tolist())
    assert default.columns.tolist() == ["risk", "tvd 1-way", "tvd 2-way", "recommended"]


# ---------------------------------------------------------------- homogeneous cells


@pytest.mark.parametrize("by", [["age", "town", "sex"], ["age"]], ids=str)
def test_homogeneous_cells_are_those_that_pandas_counts(private, by):
    groups = PEOPLE.groupby(by[0] if len(by) == 1 else by)["ill"]
    records, kinds, most = (
        groups.size(),
        groups.nunique(),
        groups.agg(lambda labels: labels.value_counts().max()),
    )
    result = private.dp.homogeneity(by, "ill", top=7)
    homogeneous = kinds == 1
    assert result.summary.index.tolist() == ["homogeneous", "heterogeneous", "all"]
    assert result.summary["cells"].tolist() == [homogeneous.sum(), (~homogeneous).sum(), len(homogeneous)]
    assert result.summary["records"].tolist() == [
        records[homogeneous].sum(),
        records[~homogeneous].sum(),
        len(PEOPLE),
    ]
    assert result.summary["share of records"].tolist() == pytest.approx(
        [records[homogeneous].sum() / 160, records[~homogeneous].sum() / 160, 1.0]
    )
    ranked = sorted(zip(-(most / records), -records, strict=True))[:7]
    assert (-result.exposed["share"]).tolist() == pytest.approx([share for share, _ in ranked])
    assert (-result.exposed["records"]).tolist() == [size for _, size in ranked]
    for cell, row in result.exposed.iterrows():
        assert row["records"] == records[cell]
        assert (groups.get_group(cell) == row["label"]).mean() == row["share"]
    assert result.exposed.index.names == by
    assert repr(result).startswith("CONFIDENTIAL")


def test_cells_of_several_sensitive_columns_are_completely_or_partially_homogeneous(private):
    """Definitions 4 and 5, by groups of pandas."""
    groups = PEOPLE.groupby(["age", "town"])
    kinds = groups[["ill", "job"]].nunique(dropna=False) == 1
    records, every, some = groups.size(), kinds.all(axis=1), kinds.any(axis=1)
    result = private.dp.homogeneity(["age", "town"], ["ill", "job"], top=400)
    expected = {
        "completely homogeneous": every,
        "partially homogeneous": some & ~every,
        "completely heterogeneous": ~some,
        "all": records > 0,
        "homogeneous in ill": kinds["ill"],
        "homogeneous in job": kinds["job"],
    }
    assert result.summary.index.tolist() == list(expected)
    assert result.summary["cells"].tolist() == [cells.sum() for cells in expected.values()]
    assert result.summary["records"].tolist() == [records[cells].sum() for cells in expected.values()]
    assert (expected["partially homogeneous"]).any()
    exposed = result.exposed
    assert len(exposed) == 2 * len(records)
    assert exposed["share"].is_monotonic_decreasing
    for cell, row in exposed.iterrows():
        labels = groups.get_group(cell)[row["column"]]
        equal = labels.isna() if pd.isna(row["label"]) else labels == row["label"]
        assert row["share"] == pytest.approx(equal.mean())
        assert row["share"] == pytest.approx(labels.value_counts(dropna=False).max() / len(labels))


def test_the_declared_roles_take_the_place_of_columns_that_are_left_out(private):
    by, sensitive = ["age", "town", "sex"], ["ill", "job"]  # "one" has a single label
    dp = private.dp
    assert dp.dr_ha(epsilon=[0.5, 2]).equals(dp.dr_ha(by, sensitive, [0.5, 2]))
    assert dp.dr_ha("age", epsilon=1) == dp.dr_ha("age", sensitive, 1)
    assert dp.dr_ha(sensitive="ill", epsilon=1) == dp.dr_ha(by, "ill", 1)
    assert dp.dr_ha(sensitive=["town"], epsilon=1) == dp.dr_ha(["age", "sex"], "town", 1)
    assert dp.risk_curve(epsilon=[1]).equals(dp.risk_curve(by, sensitive, [1]))
    assert dp.homogeneity().summary.equals(dp.homogeneity(by, sensitive).summary)
    assert dp.choose_epsilon(max_risk=0.5) == dp.choose_epsilon(by, sensitive, 0.5)
    alone = {"epsilon": 0.5}
    named = dp.repeated_risk([{"by": by, "sensitive": sensitive, **alone}])
    assert dp.repeated_risk([alone]).equals(named)
    few = {"epsilon": [1, 2], "order": 1, "draws": 2, "rng": 1}
    assert dp.tradeoff("age", **few).equals(dp.tradeoff("age", sensitive, **few))


def test_roles_that_nobody_declared_are_named_in_the_error():
    plain = pd.DataFrame({"a": [True, False], "s": [True, False]})
    domain = Domain((Column("a", "boolean"), Column("s", "boolean", role="sensitive")))
    with pytest.raises(ParameterError, match="no column is declared with the role 'quasi_identifier'"):
        plain.dp.protect(domain, epsilon=1).dp.homogeneity()


def test_exposed_labels_may_be_null():
    private = protect(PEOPLE.assign(job=pd.array([None] * 160, dtype=object)))
    result = private.dp.homogeneity("sex", "job")
    assert result.exposed["label"].isna().all()
    assert result.summary.loc["homogeneous", "cells"] == 2


# ---------------------------------------------------------------- repeated publications


def per_record(frame, by, sensitive, noise, overall="max") -> pd.Series:
    """The risk of the cell that holds each record."""
    total = None
    for name in sensitive:
        cells = pd.Series(
            risk.dr_ha(risk.Cells.of(counted(by, name, frame).to_numpy()), noise, average=None),
            index=counted(by, name, frame).index,
            name="risk",
        )
        risks = frame[by].merge(cells.reset_index(), on=by, how="left")["risk"]
        total = risks if total is None else (np.maximum(total, risks) if overall == "max" else total + risks)
    return total


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("average", ["cells", "records"])
@pytest.mark.parametrize("overall", ["max", "sum"])
def test_publications_add_up_over_the_cells_that_hold_a_record(private, overall, average):
    publications = [
        (["age"], ["ill"], "0.1"),
        (["age", "town"], ["ill"], "0.1"),
        (["sex", "age"], ["job", "ill"], "0.1"),
    ]
    table = private.dp.repeated_risk(
        [{"by": by, "sensitive": sensitive, "epsilon": float(e)} for by, sensitive, e in publications],
        overall=overall,
        average=average,
    )
    assert table.index.tolist() == [1, 2, 3]
    assert table.index.name == "publication"
    assert table.columns.name == "confidential"
    assert table["cohort"].tolist() == [1, 1, 1]
    assert table["by"].tolist() == ["age", "age, town", "sex, age"]
    assert table["sensitive"].tolist() == ["ill", "ill", "job, ill"]
    assert table["epsilon_so_far"].tolist() == [0.1, 0.2, 0.3]  # not 0.30000000000000004
    assert table["delta_so_far"].tolist() == [0, 0, 0]
    total, union = 0.0, []
    for number, (by, sensitive, _) in enumerate(publications, 1):
        noise = Geometric(Fraction(number, 10))
        each = per_record(PEOPLE, by, sensitive, noise, overall)
        total = np.maximum(total, each) if overall == "max" else total + each
        union += [name for name in by if name not in union]
        for column, values, cells in (("risk", each, by), ("overall", total, union)):
            if average == "records":
                expected = values.mean()
            else:  # all records of a cell have one risk
                expected = values.groupby([PEOPLE[name] for name in cells]).first().mean()
            assert table.loc[number, column] == pytest.approx(expected, rel=1e-9), (number, column)
    if average == "records":
        assert table["overall"].is_monotonic_increasing


def test_cohorts_are_apart(private):
    newer = people(90, 8)
    other = protect(newer)
    table = private.dp.repeated_risk(
        [
            {"by": "age", "sensitive": "ill", "epsilon": 0.5},
            {"by": "age", "sensitive": "ill", "epsilon": 0.25, "frame": other},
            {"by": "age", "sensitive": "ill", "epsilon": 0.5, "frame": private},
            {"by": BY, "sensitive": "ill", "epsilon": 0.5, "frame": other},
        ]
    )
    assert table["cohort"].tolist() == [1, 2, 1, 2]
    assert table["epsilon_so_far"].tolist() == [0.5, 0.25, 1.0, 0.75]
    assert table.loc[2, "risk"] == pytest.approx(other.dp.dr_ha("age", "ill", 0.25))
    assert table.loc[3, "risk"] == pytest.approx(private.dp.dr_ha("age", "ill", 1))
    risks = private.dp.dr_ha("age", "ill", [0.5, 1], average=None)
    assert table.loc[3, "overall"] == pytest.approx(risks.max(axis=1).mean())
    alone = other.dp.repeated_risk(
        [{"by": by, "sensitive": "ill", "epsilon": epsilon} for by, epsilon in (("age", 0.25), (BY, 0.5))]
    )
    assert table["overall"].iloc[[1, 3]].tolist() == pytest.approx(alone["overall"].tolist())


def test_spent_epsilon_may_count_towards_the_repeated_risk():
    private = protect(epsilon="2/3", delta=1e-3)
    publication = [{"by": "age", "sensitive": "ill", "epsilon": "1/6"}]
    assert private.dp.repeated_risk(publication, spent=True)["epsilon_so_far"].tolist() == [1 / 6]
    private.dp.count(epsilon="1/3")
    private.dp.mean("score", epsilon="1/6", delta=1e-3, mechanism="gaussian")
    table = private.dp.repeated_risk(publication, spent=True)
    assert table["epsilon_so_far"].tolist() == [2 / 3]
    assert table["delta_so_far"].tolist() == [1e-3]
    # geometric noise takes no delta: that of the epsilon
    assert table["risk"].tolist() == pytest.approx([private.dp.dr_ha("age", "ill", "2/3")])
    assert private.dp.repeated_risk(publication)["epsilon_so_far"].tolist() == [1 / 6]
    gaussian = private.dp.repeated_risk([{**publication[0], "delta": 1e-3}], spent=True, mechanism="gaussian")
    expected = private.dp.dr_ha("age", "ill", "2/3", mechanism="gaussian", delta=2e-3)
    assert gaussian["risk"].tolist() == pytest.approx([expected])
    default = private.dp.repeated_risk(publication, delta=1e-3, mechanism="gaussian")
    assert default["delta_so_far"].tolist() == [1e-3]


# ---------------------------------------------------------------- refusals


BAD = {
    "no such column": (lambda d: d.dr_ha("height", "ill", 1), DeclarationError, "not declared"),
    "no epsilon": (lambda d: d.dr_ha("age", "ill"), ParameterError, "'epsilon'"),
    "overlap": (lambda d: d.risk_curve(["age", "ill"], "ill"), ParameterError, "both in 'by' and in"),
    "one label": (
        lambda d: d.choose_epsilon("age", "one"),
        ParameterError,
        "two labels or more|at least two",
    ),
    "an identifier": (lambda d: d.tradeoff("person", "ill"), DeclarationError, "identifier"),
    "a sensitive identifier": (lambda d: d.homogeneity("age", "person"), DeclarationError, "identifier"),
    "no declared cells": (lambda d: d.utility(["age", "score"]), DeclarationError, "cells"),
    "epsilon zero": (lambda d: d.dr_ha("age", "ill", 0), ParameterError, "'epsilon' must be positive"),
    "epsilon among others": (lambda d: d.dr_ha("age", "ill", [1, -7.25]), ParameterError, "positive"),
    "epsilon nan": (lambda d: d.tradeoff("age", "ill", [math.nan]), ParameterError, "'epsilon'"),
    "epsilon none": (lambda d: d.risk_curve("age", "ill", []), ParameterError, "'epsilon'"),
    "epsilon nested": (lambda d: d.risk_curve("age", "ill", [[1], [1, 2]]), ParameterError, "'epsilon'"),
    "epsilon a table": (lambda d: d.dr_ha("age", "ill", np.ones((2, 2))), ParameterError, "'epsilon'"),
    "epsilon a column": (lambda d: d.dr_ha("age", "ill", PEOPLE["score"] - 9), ParameterError, "'epsilon'"),
    "epsilon a frame": (lambda d: d.utility(epsilon=PEOPLE), ParameterError, "DataFrame"),
    "max_risk 0": (lambda d: d.choose_epsilon("age", "ill", 0), ParameterError, "'max_risk'"),
    "max_risk 1": (lambda d: d.choose_epsilon("age", "ill", 1), ParameterError, "'max_risk'"),
    "max_risk text": (lambda d: d.tradeoff("age", "ill", max_risk="a"), ParameterError, "'max_risk'"),
    "max_tvd": (lambda d: d.tradeoff("age", "ill", max_tvd=1.5), ParameterError, "'max_tvd'"),
    "max_risk a column": (
        lambda d: d.choose_epsilon("age", "ill", PEOPLE["score"]),
        ParameterError,
        r"\(got Series\)",
    ),
    "average": (lambda d: d.dr_ha("age", "ill", 1, average="people"), ParameterError, "'average'"),
    "average of none": (lambda d: d.choose_epsilon("age", "ill", average=None), ParameterError, "'average'"),
    "average an array": (
        lambda d: d.tradeoff("age", "ill", average=np.array(["cells", "x"])),
        ParameterError,
        "'average'",
    ),
    "overall": (lambda d: d.dr_ha("age", "ill", 1, overall="mean"), ParameterError, "'overall'"),
    "measure": (lambda d: d.dr_ha("age", "ill", 1, "globe"), ParameterError, "'measure'"),
    "method": (lambda d: d.dr_ha("age", "ill", 1, method="guess"), ParameterError, "'method'"),
    "sizes": (lambda d: d.dr_ha("age", "ill", 1, sizes="many"), ParameterError, "'sizes'"),
    "attack": (lambda d: d.risk_curve("age", "ill", attack="x"), ParameterError, "'attack'"),
    "partial": (lambda d: d.risk_curve("age", "ill", partial=1), ParameterError, "'partial'"),
    "zero_truncated": (
        lambda d: d.risk_curve("age", "ill", zero_truncated=None),
        ParameterError,
        "truncated",
    ),
    "alpha of another": (lambda d: d.dr_ha("age", "ill", 1, alpha=2), ParameterError, "'alpha'"),
    "alpha too short": (
        lambda d: d.dr_ha("age", "ill", 1, "shrinkage", alpha=[1, 2]),
        ParameterError,
        "'alpha'",
    ),
    "attack of a measure": (
        lambda d: d.dr_ha("age", "ill", 1, "expected", attack="plurality"),
        ParameterError,
        "monte_carlo",
    ),
    "simulated curve": (
        lambda d: d.risk_curve("age", "ill", method="monte_carlo"),
        ParameterError,
        "'method'",
    ),
    "simulated together": (
        lambda d: d.dr_ha("age", ["ill", "job"], 1, method="monte_carlo"),
        ParameterError,
        "one sensitive",
    ),
    "rng": (lambda d: d.dr_ha("age", "ill", 1, method="monte_carlo", rng="x"), ParameterError, "rng"),
    "mechanism": (
        lambda d: d.dr_ha("age", "ill", 1, mechanism="discrete"),
        ParameterError,
        "'mechanism'",
    ),
    "delta missing": (lambda d: d.risk_curve("age", "ill", mechanism="gaussian"), ParameterError, "'delta'"),
    "delta too much": (lambda d: d.choose_epsilon("age", "ill", delta=0.1), ParameterError, "'delta'"),
    "bounding": (lambda d: d.dr_ha("age", "ill", 1, bounding="clip"), ParameterError, "'bounding'"),
    "bounded distances": (lambda d: d.utility(bounding="clamp"), ParameterError, "without bounds"),
    "distances of order p": (
        lambda d: d.tradeoff("age", "ill", mechanism="generalized_gaussian", p=3, delta=0.1),
        ParameterError,
        "'mechanism'",
    ),
    "order": (lambda d: d.utility(order=0), ParameterError, "'order'"),
    "order none": (lambda d: d.utility(order=None), ParameterError, "'order'"),
    "order too high": (lambda d: d.utility(["age"], order=4), ParameterError, "'order'"),
    "draws": (lambda d: d.utility(draws=1), ParameterError, "'draws'"),
    "top": (lambda d: d.homogeneity("age", "ill", top=0), ParameterError, "'top'"),
    "publications": (lambda d: d.repeated_risk({}), ParameterError, "'publications'"),
    "no publications": (lambda d: d.repeated_risk([]), ParameterError, "'publications'"),
    "publication lacks": (lambda d: d.repeated_risk([{"by": "age"}]), ParameterError, "'epsilon'"),
    "publication of another key": (
        lambda d: d.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": 1, "eps": 1}]),
        ParameterError,
        "'publications'",
    ),
    "publication of no frame": (
        lambda d: d.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": 1, "frame": "x"}]),
        ParameterError,
        "'frame'",
    ),
    "publication of a raw frame": (
        lambda d: d.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": 1, "frame": PEOPLE}]),
        NotProtectedError,
        "not protected",
    ),
    "publication costs": (
        lambda d: d.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": [1]}]),
        ParameterError,
        "'epsilon'",
    ),
    "spent": (
        lambda d: d.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": 1}], spent="yes"),
        ParameterError,
        "'spent'",
    ),
}


@each("name", BAD)
def test_bad_arguments_are_refused_before_the_data_is_read(private, name, monkeypatch):
    call, error, match = BAD[name]

    def read(*_):
        raise AssertionError("read")

    for method in ("table", "grouped"):
        monkeypatch.setattr(f"pdprivacy.core.engines.PandasEngine.{method}", read)
    with pytest.raises(error, match=match) as caught:
        call(private.dp)
    assert "7.25" not in str(caught.value)


def test_unknown_keywords_are_type_errors(private):
    for call in (
        lambda: private.dp.dr_ha("age", "ill", 1, weights="cells"),
        lambda: private.dp.risk_curve("age", "ill", average="cells"),
        lambda: private.dp.utility(measure="local"),
    ):
        with pytest.raises(TypeError, match="unexpected keyword"):
            call()


def test_frames_that_share_a_budget_are_no_cohorts():
    budget = Budget(9)
    first = PEOPLE.dp.protect(DOMAIN, budget=budget)
    second = first.dp.query("age > 1")
    publication = {"by": "age", "sensitive": "ill", "epsilon": 1}
    with pytest.raises(ParameterError, match="budget"):
        first.dp.repeated_risk([publication, {**publication, "frame": second}])


def test_tables_that_are_too_large_are_refused():
    wide = [Column(f"w{i}", "integer", lower=0, upper=999, role="quasi_identifier") for i in range(3)]
    frame = PEOPLE.assign(w0=1, w1=2, w2=3)
    private = frame.dp.protect(Domain((*DOMAIN.columns, *wide)), epsilon=1)
    for call in (
        lambda: private.dp.dr_ha(["w0", "w1", "w2"], "ill", 1),
        lambda: private.dp.tradeoff(["w0", "w1"], ["ill", "job", "w2"]),
        lambda: private.dp.utility(["w0", "w1", "w2"]),
        lambda: private.dp.repeated_risk(
            [{"by": by, "sensitive": "ill", "epsilon": 1} for by in (["w0", "w1"], "w2")]
        ),
    ):
        with pytest.raises(TableTooLargeError):
            call()
    # the joint table would be too large, the two that are asked about are not
    domain = Domain((*DOMAIN.columns, *(Column(f"w{i}", "integer", lower=0, upper=999) for i in range(3))))
    private = frame.dp.protect(domain, epsilon=1)
    # all people are in one cell, and share one of a thousand labels: 999 counts of 0 must read as empty
    expected = (1 / (1 + math.exp(-10))) ** 999
    assert private.dp.dr_ha("w0", ["w1", "w2", "ill"], 10) == pytest.approx(expected)


def test_nobody_is_at_risk_in_an_empty_table():
    private = protect(PEOPLE.iloc[:0])
    for call in (
        lambda: private.dp.dr_ha("age", "ill", 1),
        lambda: private.dp.homogeneity("age", "ill"),
        lambda: private.dp.utility(["age", "ill"]),
        lambda: private.dp.tradeoff("age", "ill"),
    ):
        with pytest.raises(ParameterError, match="no record"):
            call()


# ---------------------------------------------------------------- nothing is charged, nothing leaks


def test_nothing_is_charged_and_nothing_is_stored():
    private = protect(epsilon=1, delta=0)
    before = find(private)
    words = {"by": BY, "sensitive": ["ill"], "mechanism": "geometric", "measure": "local"}
    words |= {"method": "exact", "attack": "homogeneity", "partial": False, "overall": "max"}
    curve = private.dp.risk_curve(BY, "ill", [1])
    trade = private.dp.tradeoff(BY, "ill", [1], draws=2, max_risk=0.3, max_tvd=0.2)
    assert curve.attrs == {"dp": {"confidential": "risk_curve", **words}}
    assert curve.columns.name == "local risk (confidential)"
    assert trade.attrs == {
        "dp": {"confidential": "tradeoff", **words, "average": "cells", "max_risk": 0.3, "max_tvd": 0.2}
    }
    assert trade.columns.name == "confidential"
    homogeneity = private.dp.homogeneity(BY, "ill")
    for frame in (
        private.dp.dr_ha(BY, "ill", [1]),
        private.dp.dr_ha(BY, "ill", 1, average=None),
        private.dp.dr_ha(BY, "ill", 1, method="monte_carlo", draws=2),
        homogeneity.summary,
        homogeneity.exposed,
    ):
        assert frame.attrs["dp"].keys() == {"confidential"}
        assert frame.T.attrs == frame.reset_index().attrs == frame.attrs
    repeated = private.dp.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": 1}])
    assert repeated.attrs == {"dp": {"confidential": "repeated_risk", "accounting": "basic"}}
    private.dp.choose_epsilon(BY, "ill")
    for frame in (curve, trade, private.dp.utility(draws=2, order=1)):
        json.dumps(frame.attrs)
        with pytest.raises(MetadataError):
            frame.dp.metadata  # noqa: B018
        with pytest.raises(PrivacyError):
            frame.dp.mean("risk", epsilon=1)
    assert private.dp.budget.left == (1, 0)
    assert private.dp.budget.entries.empty
    assert find(private) is before


def test_a_filtered_frame_is_asked_like_any_other():
    few = protect().dp.query("age >= 2")
    table = counted(BY, "ill", PEOPLE[PEOPLE["age"] >= 2]).loc[2:]
    expected = risk.dr_ha(table.to_numpy(), Geometric(1))
    assert few.dp.dr_ha(BY, "ill", 1) == pytest.approx(expected)


@pytest.mark.full
def test_pictures_are_of_these_frames_alone(private):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports itself
        pytest.importorskip("matplotlib").use("Agg")
        import matplotlib.pyplot as plt

    axes = private.dp.risk_curve("age", "ill").dp.plot()
    assert "CONFIDENTIAL" in " ".join(
        text.get_text() for text in [axes.title, *axes.figure.texts, *axes.texts]
    )
    _, target = plt.subplots()
    assert private.dp.tradeoff("age", "ill", draws=2).dp.plot(ax=target) is target
    private.dp.utility(["age", "ill"], draws=2).dp.plot()
    plt.close("all")
    with pytest.raises(MetadataError):
        private.dp.dr_ha("age", "ill", [1]).dp.plot()


# ---------------------------------------------------------------- the risk that a budget has reached


def again(table, noise, own, bounding=None) -> float:
    """The expected risk of counts that were released with the noise ``own``, by their records."""
    counts = plausible(table.to_numpy(), own.std, own.cdf, nonnegative=bounding is not None)
    return risk.dr_ha(risk.Cells.of(counts.reshape(-1, table.shape[1])), noise, "expected", "records")


def test_the_budget_tells_the_risk_of_released_counts_at_all_that_was_spent():
    private = protect(epsilon=100, delta=0.1)
    budget = private.dp.budget
    assert budget.entries["cumulative_dr_ha"].tolist() == []
    private.dp.mean("score", epsilon=0.5)
    first = private.dp.crosstab(BY, "ill", epsilon=1, rng=1)
    private.dp.count(epsilon=0.25, rng=1)
    private.dp.mean("score", epsilon=0.25, delta=1e-3, mechanism="gaussian")
    second = private.dp.crosstab(["age", "town", "sex"], "ill", epsilon=2, mechanism="laplace", rng=2)
    third = private.dp.crosstab("sex", "ill", epsilon=1, delta=1e-3, mechanism="gaussian", rng=3)
    fourth = private.dp.crosstab(["age", "town", "sex"], "job", epsilon=9, bounding="clamp", rng=4)
    own = [
        again(first, Geometric("3/2"), Geometric(1)),
        again(second, Laplace(4, 1), Laplace(2, 1)),
        again(third, Gaussian(5, 2e-3, 1), Gaussian(1, 1e-3, 1)),
        again(fourth, Geometric(14), Geometric(9), "clamp"),
    ]
    reached = np.maximum.accumulate(own)
    risks = budget.entries["cumulative_dr_ha"]
    assert risks.isna().tolist() == [True] + [False] * 6
    order = [0, 0, 0, 1, 2, 3]
    assert risks.tolist()[1:] == pytest.approx([reached[position] for position in order], rel=1e-6)
    assert own[2] < reached[2]  # the third table alone would be lower
    assert first.attrs["dp"]["dr_ha"]["by_records"] == pytest.approx(again(first, Geometric(1), Geometric(1)))
    assert budget.spent == (14.0, 2e-3)
    of_tables = "of records, the largest of all tables so far, each at the total loss by then"
    cumulative = f"{percent(reached[-1])} {of_tables} (cumulative_dr_ha)"
    assert [line.split("risk   ")[1] for line in repr(budget).splitlines() if "risk" in line] == [cumulative]
    assert f"<td>{cumulative}</td>" in budget._repr_html_()


def test_the_risks_of_a_release_and_of_all_that_was_spent_are_computed_at_once(monkeypatch):
    private, sizes, computed = protect(epsilon=9), [], risk.dr_ha

    def counted(cells, noises, *more):
        sizes.append(len(noises))
        return computed(cells, noises, *more)

    monkeypatch.setattr(risk, "dr_ha", counted)
    for _ in range(3):
        private.dp.crosstab(BY, "ill", epsilon=1)
    assert sizes == [1, 2, 2]  # the first release is all that was spent


def test_the_first_table_with_a_risk_imports_no_large_package():
    code = """
import sys
import pandas as pd
from pdprivacy import Column, Domain, protect
place = Column("place", "category", categories=("a", "b"), role="quasi_identifier")
ill = Column("ill", "boolean", role="sensitive")
frame = pd.DataFrame({"place": ["a", "b"] * 50, "ill": [True] * 100})
table = protect(frame, Domain((place, ill)), epsilon=9).dp.crosstab("place", "ill", epsilon=1)
assert table.attrs["dp"]["dr_ha"]["by_records"] > 0
assert "scipy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_gaussian_noise_is_that_of_all_delta_spent_too():
    private = protect(epsilon=100, delta=0.1, neighbors="replace_one")
    private.dp.mean("score", epsilon=0.25, delta=1e-2, mechanism="gaussian")
    table = private.dp.crosstab(BY, "ill", epsilon=1, delta=1e-4, mechanism="gaussian", rng=3)
    expected = again(table, Gaussian("1.25", "0.0101", math.sqrt(2)), Gaussian(1, 1e-4, math.sqrt(2)))
    assert private.dp.budget.entries["cumulative_dr_ha"].tolist()[1] == pytest.approx(expected, rel=1e-6)


def test_where_the_risk_is_not_known_none_is_told():
    private = protect(epsilon=100, delta=0.1)
    private.dp.crosstab(BY, "one", epsilon=1)
    private.dp.value_counts("ill", epsilon=1)
    private.dp.crosstab(BY, "ill", epsilon=1, weights="score")
    private.dp.plan.crosstab("age", "ill", epsilon=1, rows=10)
    assert private.dp.budget.entries["cumulative_dr_ha"].isna().tolist() == [True] * 3
    weights = "not known of 2 charges: Sums of weights do not show how many records a cell holds."
    for shown in (repr(private.dp.budget), private.dp.budget._repr_html_()):
        assert weights in shown
    private.dp.crosstab(BY, "ill", epsilon=1)
    assert f"(cumulative_dr_ha); {weights}" in repr(private.dp.budget)


def test_a_ledger_keeps_the_reason_of_an_unknown_risk(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    budget = ledger.open("survey", Pure(9))
    plain, weighted = (
        budget.charge(Pure(1), text).number for text in ("mean of age", "crosstab of ill by age")
    )
    budget.answered(plain)
    budget.answered(weighted, "Sums of weights do not show how many records a cell holds.")
    reopened = ledger.open("survey", Pure(9))
    assert reopened.entries["cumulative_dr_ha"].isna().all()
    assert reopened.entries["answered"].all()
    assert "not known of 1 charge: Sums of weights" in repr(reopened)
    budget.answered(weighted, 0.25)
    assert "25 %" in repr(reopened)
    assert ledger.audit().charges == 2
    for wrong in ("x " * 251, "", "0.5", 1.5):
        with pytest.raises(ParameterError):
            budget.answered(weighted, wrong)


@pytest.mark.parametrize("mechanism", ["laplace", "geometric", "staircase"])
def test_so_much_noise_that_a_cell_says_nothing_has_no_risk(mechanism):
    """By the deviation, which of staircase noise is far more than its scale."""
    private = protect(epsilon=100)
    for deviation, known in ((2 * 10**4, False), (5 * 10**3, True)):
        epsilon = math.sqrt(2) / deviation  # about that of all three
        table = private.dp.crosstab(BY, "ill", epsilon=epsilon, mechanism=mechanism, rng=1)
        assert ("reason" not in table.attrs["dp"]["dr_ha"]) == known


@pytest.mark.parametrize(
    "noise",
    [
        {"mechanism": "laplace", "bounding": "truncated"},
        {"delta": 1e-3, "mechanism": "generalized_gaussian", "p": 3},
        {"delta": 1e-3, "mechanism": "gaussian", "bounding": "truncated"},
    ],
    ids=str,
)
def test_a_table_counts_with_its_own_risk_where_no_composed_noise_is_known(noise):
    private = protect(epsilon=100, delta=0.1)
    private.dp.count(epsilon=2)
    table = private.dp.crosstab(BY, "ill", epsilon=3, **noise)
    own = table.attrs["dp"]["dr_ha"]["by_records"]
    assert private.dp.budget.entries["cumulative_dr_ha"].tolist()[1] == own > 0


def test_classic_noise_is_analytic_where_the_losses_add_up_to_more_than_one():
    private = protect(epsilon=100, delta=0.1)
    noise = {"delta": 1e-3, "mechanism": "gaussian", "calibration": "classic"}
    private.dp.crosstab(BY, "ill", epsilon=0.7, **noise)
    table = private.dp.crosstab(BY, "ill", epsilon=0.9, **noise, rng=3)
    own = Gaussian(0.9, 1e-3, 1, calibration="classic")
    expected = again(table, Gaussian(1.6, 2e-3, 1), own)
    first, second = private.dp.budget.entries["cumulative_dr_ha"]
    assert second == pytest.approx(max(first, expected), rel=1e-6)


@pytest.mark.parametrize("broken", ["dr_ha", "expected_cost"])
def test_no_estimate_keeps_a_release_back(monkeypatch, broken):
    private = protect(epsilon=9)
    private.dp.count(epsilon=1)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(risk, broken, fail)
    table = private.dp.crosstab(BY, "ill", epsilon=1)
    assert table.shape == (30, 3)
    assert table.attrs["dp"]["dr_ha"]["reason"] == "The estimate failed."
    assert private.dp.budget.entries["cumulative_dr_ha"].isna().all()
    assert private.dp.budget.spent == (2.0, 0.0)


# ---------------------------------------------------------------- what is confidential says so


def test_everything_made_of_exact_counts_says_so(private):
    results = [
        private.dp.dr_ha(BY, "ill", 1),
        private.dp.dr_ha(BY, "ill", [1, 2]),
        private.dp.dr_ha(BY, "ill", 1, average=None),
        private.dp.dr_ha(BY, "ill", [1, 2], average=None),
        private.dp.dr_ha(BY, "ill", [1, 2], method="monte_carlo", draws=2),
        private.dp.dr_ha(BY, "ill", [1, 2], average=None, method="monte_carlo", draws=2),
        private.dp.risk_curve(BY, "ill", [1, 2]),
        private.dp.choose_epsilon(BY, "ill", 0.5),
        private.dp.utility(order=1, draws=2),
        private.dp.tradeoff(BY, "ill", [1, 2], order=1, draws=2),
        private.dp.homogeneity(BY, "ill"),
        private.dp.repeated_risk([{"by": "age", "sensitive": "ill", "epsilon": 1}]),
    ]
    for result in results:
        assert "confidential" in repr(result).lower()
        if hasattr(result, "_repr_html_"):
            assert "confidential" in result._repr_html_().lower()


# ---------------------------------------------------------------- what bounds do, and simulation


def two_columns(cells, labels, **options):
    """A protected frame with a cell and a label per record."""
    domain = Domain(
        (
            Column("g", "category", categories=tuple(sorted(set(cells))), role="quasi_identifier"),
            Column("y", "category", categories=tuple("abcdef"), role="sensitive"),
        )
    )
    return pd.DataFrame({"g": list(cells), "y": list(labels)}).dp.protect(domain, epsilon=9, **options)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("attack", ["plurality", "probabilistic"])
@pytest.mark.parametrize("noise", [{}, {"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-3}])
def test_clamped_counts_are_clamped_at_the_number_of_rows_too(noise, attack):
    private = two_columns("xxx", "aab", neighbors="replace_one")
    clamped = private.dp.dr_ha("g", "y", 0.5, attack=attack, bounding="clamp", **noise)
    free = private.dp.dr_ha("g", "y", 0.5, attack=attack, **noise)
    simulated = private.dp.dr_ha(
        "g", "y", 0.5, attack=attack, bounding="clamp", method="monte_carlo", draws=20_000, rng=5, **noise
    )
    value, error = simulated.iloc[0]
    assert abs(clamped - value) < 4.5 * error
    if attack == "plurality" and "delta" not in noise:  # memoryless noise, as it reads
        assert clamped == pytest.approx(free, rel=1e-12)
    if attack == "probabilistic":
        assert abs(clamped - free) > 1e-4


def test_simulation_of_a_frame_fits_what_the_exact_risk_fits():
    # More labels than cells, and sizes that are fitted to all cells.
    private = two_columns("aabbbbba", "abcdefaa")
    for sizes in ("observed", "poisson"):
        options = {"measure": "marginal", "sizes": sizes, "zero_truncated": False}
        exact = private.dp.dr_ha("g", "y", 2, **options)
        value, error = private.dp.dr_ha(
            "g", "y", 2, method="monte_carlo", draws=20_000, rng=4, **options
        ).iloc[0]
        assert abs(exact - value) < 4.5 * error


def test_simulation_of_a_frame_takes_what_is_done_to_the_noisy_table(private):
    def only_zero(table):
        return np.zeros_like(table)

    options = {"method": "monte_carlo", "draws": 20, "rng": 1}
    assert private.dp.dr_ha(BY, "ill", 1, postprocess=only_zero, **options)["risk"].tolist() == [0.0]
    low, high = (
        private.dp.dr_ha(BY, "ill", 5, threshold=at, **options)["risk"].iloc[0] for at in (0.5, 1000)
    )
    assert low > 0.1 > high == 0
    with pytest.raises(ParameterError, match="'postprocess' needs simulation"):
        private.dp.dr_ha(BY, "ill", 1, postprocess=only_zero)


# ---------------------------------------------------------------- curves that fall and rise


@pytest.mark.full
def test_an_epsilon_within_a_dip_of_the_curve_is_found():
    # Pure noise makes up risks in the mixed cell, no noise discloses the other one.
    private = protect(pd.concat([alone(["no", "flu"] * 4), alone(["flu"]).assign(age=2)], ignore_index=True))
    fine = private.dp.dr_ha("age", "ill", np.geomspace(0.01, 10, 1500), average="records")
    lowest, at = float(fine.min()), float(fine.idxmin())
    assert fine.iloc[0] > lowest < fine.iloc[-1]
    most = lowest * (1 + 1e-6)
    coarse = private.dp.risk_curve("age", "ill")["records"].iloc[1:-1]
    assert coarse.min() > most  # no number of the coarse curve meets it
    chosen = private.dp.choose_epsilon("age", "ill", most, average="records")
    assert chosen == pytest.approx(at, rel=0.02)
    assert private.dp.dr_ha("age", "ill", chosen, average="records") <= most
    with pytest.raises(ParameterError, match=r"No epsilon from 0\.001 to 100"):
        private.dp.choose_epsilon("age", "ill", lowest * 0.999, average="records")


def test_a_risk_that_is_reached_without_noise_alone_ends_the_search():
    private, noise = protect(alone(["flu"]), delta=0.5), {"mechanism": "gaussian", "delta": 1e-12}
    at_most = float(private.dp.dr_ha("age", "ill", 100, **noise))
    assert 0.9 < at_most < 1
    assert private.dp.choose_epsilon("age", "ill", (1 + at_most) / 2, **noise) == 100
    assert private.dp.choose_epsilon("age", "ill", 2 * at_most - 1, **noise) < 100


def test_classic_noise_is_looked_at_below_one():
    private = protect(delta=0.5)
    noise = {"mechanism": "gaussian", "calibration": "classic", "delta": 1e-3}
    curve = private.dp.risk_curve("age", "ill", **noise)
    assert curve.index[1] == pytest.approx(0.001)
    assert curve.index[-2] == pytest.approx(0.999)
    assert private.dp.choose_epsilon("age", "ill", 0.999, **noise) <= math.inf


def test_a_range_is_recommended_where_both_limits_are_met(private):
    epsilon = [0.1, 0.3, 1, 3, 10]
    options = {"order": (1, 2), "draws": 50, "rng": 2}
    plain = private.dp.tradeoff(BY, "ill", epsilon, max_risk=0.99, max_tvd=0.99, **options)
    assert plain["recommended"].all()
    risks, far = plain["risk"].to_numpy(), plain["tvd 2-way"].to_numpy()
    assert risks[2] < risks[3]
    by_risk = private.dp.tradeoff(
        BY, "ill", epsilon, max_risk=(risks[2] + risks[3]) / 2, max_tvd=0.99, **options
    )
    assert by_risk["recommended"].tolist() == (risks <= (risks[2] + risks[3]) / 2).tolist()
    assert not by_risk["recommended"].all()
    by_distance = private.dp.tradeoff(BY, "ill", epsilon, max_risk=0.99, max_tvd=far[1] * 1.05, **options)
    assert by_distance["recommended"].tolist() == [False, True, True, True, True]
    tighter = private.dp.tradeoff(BY, "ill", epsilon, max_risk=0.99, max_tvd=far[1] * 0.95, **options)
    assert tighter["recommended"].tolist() == [False, False, True, True, True]


def test_a_sum_of_risks_may_be_limited_above_one(private):
    chosen = private.dp.choose_epsilon(BY, ["ill", "job"], 1.2, overall="sum")
    if math.isfinite(chosen):
        below, beyond = private.dp.dr_ha(BY, ["ill", "job"], [chosen, chosen * 1.001], overall="sum")
        assert below <= 1.2 < beyond
    with pytest.raises(ParameterError, match=r"'max_risk' must be strictly between 0 and 1 \(got 1.2\)"):
        private.dp.choose_epsilon(BY, ["ill", "job"], 1.2)


def test_no_confidential_number_is_published_or_printed(private):
    secret, digits = Confidential(1.2345678), "234"
    calls = [
        lambda: private.dp.crosstab(BY, "ill", epsilon=secret),
        lambda: private.dp.mean("age", epsilon=1, delta=secret, mechanism="gaussian"),
        lambda: private.dp.histogram("age", bins=[0, secret, 100], epsilon=1),
        lambda: private.dp.choose_epsilon(BY, "ill", Confidential(secret + 2)),
        lambda: private.dp.plan.crosstab("age", "ill", epsilon=secret, rows=10),
        lambda: private.dp.budget.answered(1, Confidential(0.5)),
        lambda: Pure(secret),
        lambda: Budget(secret),
        lambda: PEOPLE.dp.protect(DOMAIN, epsilon=secret),
    ]
    private.dp.count(epsilon=1)
    left = private.dp.budget.left
    for call in calls:
        with pytest.raises(ParameterError) as refused:
            call()
        assert digits not in str(refused.value)
    assert private.dp.budget.left == left
    noise = {"mechanism": "gaussian", "delta": Confidential(1e-3)}  # for the curator it is a number
    assert private.dp.dr_ha(BY, "ill", secret, **noise) == private.dp.dr_ha(
        BY, "ill", float(secret), mechanism="gaussian", delta=1e-3
    )
    assert "confidential" in repr(private.dp.quality())


def test_a_tradeoff_of_classic_noise_ends_below_one():
    noise = {"mechanism": "gaussian", "calibration": "classic", "delta": 1e-3}
    table = protect(delta=0.5).dp.tradeoff("sex", "ill", draws=2, rng=1, **noise)
    assert table.index[-1] == pytest.approx(0.999)


@pytest.mark.parametrize("noise", [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 0.5}])
def test_an_empty_table_is_released_like_any_other(noise):
    labels = Column("y", "category", categories=("a", "b"), role="sensitive")
    private = pd.DataFrame({"y": ["a"]}).iloc[:0].dp.protect(Domain((labels,)), epsilon=10**250, delta=0.99)
    table = private.dp.value_counts("y", epsilon=10.0**200, bounding="truncated", **noise)
    assert table.to_numpy() == pytest.approx(0, abs=1e-9)
