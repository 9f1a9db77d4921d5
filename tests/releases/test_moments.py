"""Sums, means and variances without noise are those of pandas; with it only the numbers depend on the data.

Charges, metadata, refusals and errors are those of releases of every kind.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from pdprivacy.errors import BudgetExceeded, DeclarationError, ParameterError
from tests.support.every_dtype import (
    DOMAIN,
    GRID,
    LABELLED,
    LABELS,
    LARGE,
    NAN,
    NUMERIC,
    PLAIN,
    ROWS,
    SCOPES,
    TRUTHS,
    VALID,
    WITHOUT_NULLS,
    cells_of,
    named,
    protected,
)
from tests.support.surveys import SURVEY, SURVEYED


@pytest.fixture(params=SCOPES, scope="module")
def private(request):
    return protected(VALID, DOMAIN, **SCOPES[request.param])


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("method", ["sum", "mean", "var", "std"])
def test_moments_are_those_of_pandas(method, private, cost):
    expected = getattr(PLAIN[NUMERIC], method)()
    released = getattr(private.dp, method)(NUMERIC, **cost)
    spans = pd.Series({name: DOMAIN[name].upper - DOMAIN[name].lower for name in NUMERIC})
    scale = {"sum": ROWS * 33, "mean": spans, "var": spans**2, "std": spans}[method]
    assert ((released - expected).abs() <= GRID * scale).all()
    assert released.index.tolist() == NUMERIC
    assert released.dtype == np.float64
    # every column alone, and without naming any
    for name in WITHOUT_NULLS:
        alone = getattr(private.dp, method)(name, **cost)
        assert alone[name] == pytest.approx(expected[name], abs=float(np.max(GRID * scale)))
    every = getattr(private.dp, method)(**cost)
    assert every.index.tolist() == [column.name for column in DOMAIN.columns if column.lower is not None]


@pytest.mark.full(keep=13)
@pytest.mark.parametrize("name", [*LABELS, *TRUTHS])
def test_proportions_are_those_of_pandas(name, private, cost):
    known = PLAIN[name][(PLAIN[name] != "(null)") & PLAIN[name].notna()]
    for value in DOMAIN[name].labels("test"):
        released = private.dp.proportion(name, value, **cost)
        assert released.iloc[0] == pytest.approx((known == value).mean(), abs=1e-6)
        assert released.index.tolist() == [value]
        assert released.index.name == name


# ---------------------------------------------------------------- groups


@pytest.mark.full(keep=7)
@pytest.mark.parametrize("by", [["group"], ["object"], ["string arrow", "bool"]], ids=str)
@pytest.mark.parametrize("method", ["count", "sum", "mean", "var"])
def test_groups_are_those_of_pandas(method, by, cost, private):
    names = ["int64", "float64", "Int64", "decimal"]
    grouped = LABELLED.groupby(by if len(by) > 1 else by[0])
    every = cells_of(by)
    if method == "count":
        released = private.dp.groupby(by).count(epsilon=1)
        sizes = grouped.size().to_dict()
        assert released.tolist() == [sizes.get(cell, 0) for cell in every]
        assert named(released.index) == every
        return
    released = getattr(private.dp.groupby(by), method)(names, **cost)
    assert named(released.index) == every
    assert released.columns.tolist() == names
    expected = getattr(grouped[names], method)()
    valid = grouped[names].count()
    span = {"sum": 33 * ROWS, "mean": 43, "var": 43**2}[method]
    for cell, name in itertools.product(expected.index, names):
        if valid.loc[cell, name] >= (2 if method == "var" else 1):
            value = released[name].iloc[every.index(cell)]
            assert value == pytest.approx(expected.loc[cell, name], abs=GRID * span)
    for cell in set(every) - set(expected.index):
        if method == "sum":
            assert (released.iloc[every.index(cell)] == 0).all()


def test_releases_after_a_filter_are_those_of_the_filtered_frame(silent):
    private = protected(VALID, DOMAIN).dp.query("int64 >= 7 and group == 'a'")
    kept = PLAIN[(PLAIN["int64"] >= 7) & (PLAIN["group"] == "a")]
    assert private.dp.count(epsilon=1)["rows"] == len(kept)
    assert private.dp.mean("int64", epsilon=LARGE)["int64"] == pytest.approx(kept["int64"].mean(), abs=1e-4)
    assert private.dp.sum("int64", epsilon=LARGE).attrs["dp"]["sensitivity"] == 18
    released = private.dp.value_counts(["group", "int8"], epsilon=1, sort=False)
    assert released.index.levels[0].tolist() == ["a"]
    assert released.sum() == len(kept)


# ---------------------------------------------------------------- only the numbers depend on the data

NEIGHBOURLY = Domain(
    (
        Column("x", "float", nullable=True, lower=-1.0, upper=3.0),
        Column("y", "integer", nullable=True, lower=0, upper=6),
        Column("g", "category", nullable=True, categories=("a", "b"), role="quasi_identifier"),
        Column("s", "boolean", role="sensitive"),
    )
)


def table(rows: list[tuple[Any, ...]], **dtypes: Any) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["x", "y", "g", "s"])
    kinds = {"x": "float64", "y": "float64", "g": "object", "s": "bool", **dtypes}
    return frame.astype(kinds)


ORDINARY = [(0.5, 3, "a", True), (2.5, 6, "b", False), (-1.0, 0, "a", True), (NAN, None, None, False)]
TABLES = {
    "ordinary": table(ORDINARY),
    "one record less": table(ORDINARY[:-1]),
    "without nulls": table(ORDINARY[:-1], y="int64"),
    "one record": table(ORDINARY[:1]),
    "empty": table([]),
    "nulls only": table([(NAN, None, None, True)] * 3),
    "nulls only, no dtype": table([(None, None, None, True)] * 3, x="object", y="object"),
    "one value": table([(3.0, 6, "b", True)] * 40),
    "extension dtypes": table(ORDINARY, x="Float64", y="Int64", g="string", s="boolean"),
    "arrow": table(ORDINARY, x="double[pyarrow]", y="int64[pyarrow]", g="string[pyarrow]", s="bool[pyarrow]"),
    "categories": table(ORDINARY, g=pd.CategoricalDtype(["b", "a"])),
    "observed categories": table(ORDINARY[:1], g=pd.CategoricalDtype(["a"])),
}
RELEASES: dict[str, Callable[[Any], Any]] = {
    "count": lambda dp: dp.count(epsilon=1, rng=1),
    "count of columns": lambda dp: dp.count(["x", "y", "g", "s"], epsilon=1, rng=1),
    "sum": lambda dp: dp.sum(epsilon=1, rng=1),
    "mean": lambda dp: dp.mean(epsilon=1, rng=1),
    "mean, hardly any noise": lambda dp: dp.mean(epsilon=10**5, rng=1),
    "var": lambda dp: dp.var(epsilon=1, rng=1),
    "std": lambda dp: dp.std(epsilon=1, rng=1),
    "std, hardly any noise": lambda dp: dp.std(epsilon=10**5, rng=1),
    "cov": lambda dp: dp.cov(epsilon=1, rng=1),
    "corr": lambda dp: dp.corr(epsilon=1, rng=1),
    "corr, hardly any noise": lambda dp: dp.corr(["x", "y"], epsilon=10**5, rng=1),
    "corr, gaussian": lambda dp: dp.corr(["x", "y"], epsilon=1, delta="0.01", mechanism="gaussian", rng=1),
    "proportion": lambda dp: dp.proportion("g", "a", epsilon=1, rng=1),
    "value_counts": lambda dp: dp.value_counts("g", epsilon=1, sort=False, rng=1),
    "value_counts, shares": lambda dp: dp.value_counts(
        ["g", "y"], epsilon=1, sort=False, normalize=True, rng=1
    ),
    "histogram": lambda dp: dp.histogram("x", epsilon=1, rng=1),
    "histogram of integers": lambda dp: dp.histogram("y", [0, 2.5, 4], epsilon=1, rng=1),
    "crosstab": lambda dp: dp.crosstab("g", "s", epsilon=1, rng=1),
    "crosstab with margins": lambda dp: dp.crosstab(
        "g", ["s", "y"], epsilon=1, margins=True, normalize="index", rng=1
    ),
    "groupby count": lambda dp: dp.groupby(["g", "s"]).count(epsilon=1, rng=1),
    "groupby sum": lambda dp: dp.groupby("g").sum(["x", "y"], epsilon=1, rng=1),
    "groupby mean": lambda dp: dp.groupby("g").mean(["x", "y"], epsilon=1, rng=1),
    "groupby var": lambda dp: dp.groupby(["g", "s"]).var(["x", "y"], epsilon=1, rng=1),
    "pooled_var": lambda dp: dp.pooled_var(["x", "y"], by="g", epsilon=1, rng=1),
    "pooled_cov": lambda dp: dp.pooled_cov(["x", "y"], by="g", epsilon=1, rng=1),
}


def public_facts(released: Any) -> Any:
    """All of a release but its numbers and what is computed from them."""
    axes = [(named(axis), axis.dtype, axis.names) for axis in released.axes]
    dtypes = released.dtypes.tolist() if isinstance(released, pd.DataFrame) else [released.dtype]
    facts = {
        key: value
        for key, value in released.attrs["dp"].items()
        if key not in ("error", "fingerprint", "dr_ha", "budget", "projection", "original", "parts")
    }
    parts = released.attrs["dp"].get("parts")
    facts["parts"] = None if parts is None else {key: value for key, value in parts.items() if key != "noisy"}
    return (
        type(released),
        released.shape,
        axes,
        dtypes,
        getattr(released, "name", None),
        facts,
        sorted(set(released.attrs["dp"]) - {"projection"}),  # there where a number was moved
        sorted(released.attrs["dp"]["error"]),
        sorted(released.attrs),
    )


@lru_cache
def neighbourly(kind: str, query: str | None) -> pd.DataFrame:
    private = protected(TABLES[kind], NEIGHBOURLY)
    return private if query is None else private.dp.query(query)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("query", [None, "x >= 0 or s"])
def test_all_but_the_numbers_of_a_release_is_the_same_for_every_table(name, query):
    """No dtype, label, error or warning tells an empty table from a full one."""
    by_kind = {}
    for kind in TABLES:
        private = neighbourly(kind, query)
        released = RELEASES[name](private.dp)
        by_kind[kind] = public_facts(released)
        json.dumps(released.attrs["dp"], allow_nan=False)
        assert released.dp.verify()
        released.dp.interval()
    assert all(facts == by_kind["ordinary"] for facts in by_kind.values())


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("mechanism", ["laplace", "geometric", "gaussian"])
def test_the_order_of_released_counts_is_the_order_of_the_released_numbers(mechanism):
    delta = "0.01" if mechanism == "gaussian" else 0
    for seed in range(5):
        private = protected(TABLES["one value"], NEIGHBOURLY)
        released = private.dp.value_counts("y", epsilon=0.5, delta=delta, mechanism=mechanism, rng=seed)
        unsorted = private.dp.value_counts(
            "y", epsilon=0.5, delta=delta, mechanism=mechanism, rng=seed, sort=False
        )
        assert (np.diff(released) <= 0).all()
        assert dict(zip(named(released.index), released, strict=True)) == dict(
            zip(named(unsorted.index), unsorted, strict=True)
        )


# ---------------------------------------------------------------- what a release says about itself


def test_metadata_states_sensitivity_scale_and_split_of_every_part():
    private = SURVEYED.dp.protect(SURVEY, epsilon=100)

    def facts(released: Any) -> tuple[Any, Any, Any]:
        stored = released.attrs["dp"]
        return stored["sensitivity"], stored["scale"], stored["split"]

    sensitivity, scale, split = facts(private.dp.count(epsilon=0.5))
    assert (sensitivity, scale, split) == (1, 2, {"rows": 1})
    sensitivity, scale, split = facts(private.dp.sum(["age", "pay"], epsilon=1, split={"age": 3, "pay": 1}))
    assert split == {"sum of age": 0.75, "sum of pay": 0.25}
    assert sensitivity == {"sum of age": 90, "sum of pay": 8}
    assert scale == pytest.approx({"sum of age": 120, "sum of pay": 32}, rel=1e-9)
    sensitivity, scale, split = facts(private.dp.mean("age", epsilon=1))
    assert sensitivity == {"count": 1, "sum of age": 36}  # centred: half of 90 - 18
    assert scale == pytest.approx({"count": 2, "sum of age": 72}, rel=1e-9)
    assert split == {"count": 0.5, "sum of age": 0.5}
    split = private.dp.mean(["age", "pay"], epsilon=1).attrs["dp"]["split"]
    assert split == {"count": 0.25, "count of pay": 0.25, "sum of age": 0.25, "sum of pay": 0.25}
    sensitivity, _, split = facts(private.dp.var("age", epsilon=1))
    assert sensitivity == pytest.approx({"count": 1, "sum of age": 36, "squares of age": 36**2 / 2}, rel=1e-4)
    assert split == pytest.approx(dict.fromkeys(split, 1 / 3))
    sensitivity, _, split = facts(private.dp.cov(["age", "pay"], epsilon=1))
    assert sensitivity["products of age, pay"] == pytest.approx(36 * 4, rel=1e-4)
    assert split == pytest.approx(dict.fromkeys(split, 1 / 6))
    assert len(split) == 6
    sensitivity, scale, split = facts(private.dp.crosstab("town", "ill", epsilon=0.5))
    assert (sensitivity, scale, split) == (1, 2, {"counts": 1})
    sensitivity, _, split = facts(private.dp.groupby("town").var("age", epsilon=1))
    assert sensitivity == pytest.approx({"count": 1, "sum of age": 36, "squares of age": 648}, rel=1e-4)


def test_metadata_under_replacement_and_for_gaussian_noise():
    private = SURVEYED.dp.protect(SURVEY, epsilon=100, delta="0.1", neighbors="replace_one")
    assert private.dp.mean("age", epsilon=1).attrs["dp"]["sensitivity"] == pytest.approx(72 / 20, rel=1e-6)
    assert private.dp.var("age", epsilon=1).attrs["dp"]["sensitivity"] == pytest.approx(72**2 / 20, rel=1e-4)
    assert private.dp.sum("age", epsilon=1).attrs["dp"]["sensitivity"] == 72
    assert private.dp.sum("pay", epsilon=1).attrs["dp"]["sensitivity"] == 8
    assert private.dp.crosstab("town", "ill", epsilon=1).attrs["dp"]["sensitivity"] == 2
    assert private.dp.crosstab("town", "ill", epsilon=0.5).attrs["dp"]["scale"] == 4
    released = private.dp.crosstab("town", "ill", epsilon=1, delta="1e-5", mechanism="gaussian")
    assert released.attrs["dp"]["sensitivity"] == pytest.approx(math.sqrt(2))
    assert released.attrs["dp"]["delta"] == 1e-5
    pooled_var = private.dp.pooled_var("age", by="town", epsilon=1).attrs["dp"]
    assert pooled_var["sensitivity"] == pytest.approx(72**2 / 18, rel=1e-4)
    groups = private.dp.groupby("town").mean("age", epsilon=1).attrs["dp"]
    assert groups["sensitivity"] == {"count": 2, "sum of age": 72}


def test_metadata_names_the_call_and_the_budget():
    private = SURVEYED.dp.protect(SURVEY, epsilon=2)
    stored = private.dp.crosstab("town", "ill", epsilon="0.5", mechanism="laplace", rng=3).attrs["dp"]
    assert stored["statistic"] == "crosstab"
    assert stored["columns"] == ["town", "ill"]
    assert (stored["mechanism"], stored["epsilon"], stored["delta"]) == ("laplace", 0.5, 0)
    assert stored["neighbors"] == "add_remove"
    (entry,) = private.dp.budget._book.entries()[1]
    paid = {"name": "", "charge": 1, "charge_id": entry.id}
    assert stored["budget"] == {"total": [2, 0], "spent": [0.5, 0], **paid}
    assert stored["seeded"] is True
    assert stored["error"]["standard_error"] == pytest.approx(2 * math.sqrt(2), rel=1e-9)
    assert stored["error"]["plus_minus"] == pytest.approx(2 * math.log(20), rel=1e-9)
    assert private.dp.mean("age", epsilon=0.5).attrs["dp"]["seeded"] is False
    assert private.dp.budget.entries["release"].tolist() == ["crosstab of ill by town", "mean of age"]
    assert private.dp.budget.left == (1, 0)


def test_errors_of_sorted_counts_stay_with_their_numbers():
    private = protected(SURVEYED, SURVEY)
    for normalize in (False, True):
        options = {"epsilon": 0.3, "normalize": normalize, "rng": 5}
        released = private.dp.value_counts("age", **options)
        unsorted = private.dp.value_counts("age", sort=False, **options)
        errors = released.dp.interval()["standard_error"]
        expected = unsorted.dp.interval()["standard_error"].reindex(errors.index)
        pd.testing.assert_series_equal(errors, expected)


@pytest.mark.parametrize(
    "release",
    [
        lambda dp: dp.mean(["a", "b"], epsilon=1).index,
        lambda dp: dp.value_counts("k", epsilon=1, sort=False).index,
        lambda dp: dp.crosstab("k", "k2", epsilon=1).columns,
    ],
    ids=["columns", "cells", "table"],
)
@pytest.mark.parametrize(
    "cells",
    [lambda labels: labels.values, lambda labels: pd.Series(labels, copy=False).array],
    ids=["values", "array"],
)
def test_a_label_that_is_written_into_a_release_reaches_no_other_release(release, cells):
    texts = ("u", "v")
    columns = (Column("a", "boolean"), Column("b", "boolean"))
    columns += tuple(Column(name, "category", categories=texts) for name in ("k", "k2"))
    frame = pd.DataFrame({"a": [True, False], "b": True, "k": ["u", "v"], "k2": "u"})
    private = protected(frame, Domain(columns))
    labels = release(private.dp)
    before = labels.tolist()
    with contextlib.suppress(ValueError):  # pandas 3 refuses to write into the values
        cells(labels)[0] = "w"
    assert release(private.dp).tolist() == before


# ---------------------------------------------------------------- refusals


def test_a_proportion_without_its_label_hints_at_the_labels():
    private = SURVEYED.dp.protect(SURVEY, epsilon=2)
    with pytest.raises(ParameterError) as caught:
        private.dp.proportion("town", epsilon=1)
    first = private.dp.domain["town"].categories[0]
    assert f"private.dp.proportion('town', {first!r}, epsilon=0.1)" in caught.value.hint
    assert all(repr(label) in caught.value.hint for label in private.dp.domain["town"].categories)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda dp: dp.mean("age", epsilon=3), BudgetExceeded),
        (lambda dp: dp.mean("age", epsilon=0), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, mechanism="geometric"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, mechanism="normal"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, mechanism="gaussian"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, delta="1e-6"), ParameterError),
        (lambda dp: dp.mean("age", epsilon=1, rng="seed"), ParameterError),
        (lambda dp: dp.mean("town", epsilon=1), DeclarationError),
        (lambda dp: dp.mean("nothing", epsilon=1), DeclarationError),
        (lambda dp: dp.mean(["age", "age"], epsilon=1), ParameterError),
        (lambda dp: dp.mean([], epsilon=1), ParameterError),
        (lambda dp: dp.mean(["age", "pay"], epsilon=1, split={"age": 1}), ParameterError),
        (lambda dp: dp.mean(["age", "pay"], epsilon=1, split={"age": 1, "pay": 0}), ParameterError),
        (lambda dp: dp.cov("age", epsilon=1), ParameterError),
        (lambda dp: dp.proportion("town", "z", epsilon=1), ParameterError),
        (lambda dp: dp.proportion(["town", "ill"], "a", epsilon=1), ParameterError),
        (lambda dp: dp.value_counts("pay", epsilon=1), DeclarationError),
        (lambda dp: dp.crosstab("town", ["ill", "town"], epsilon=1), ParameterError),
        (lambda dp: dp.crosstab("town", "ill", epsilon=1, normalize="rows"), ParameterError),
        (lambda dp: dp.histogram("age", 0, epsilon=1), ParameterError),
        (lambda dp: dp.histogram("age", [3, 3], epsilon=1), ParameterError),
        (lambda dp: dp.histogram("age", [3, NAN, 5], epsilon=1), ParameterError),
        (lambda dp: dp.histogram(["age", "pay"], epsilon=1), ParameterError),
        (lambda dp: dp.pooled_var("age", by="age", epsilon=1), ParameterError),
        (lambda dp: dp.pooled_cov(["age", "town"], by="ill", epsilon=1), DeclarationError),
        (lambda dp: dp.groupby("pay").count(epsilon=1), DeclarationError),
        (lambda dp: dp.groupby("town").mean("town", epsilon=1), ParameterError),
        (lambda dp: dp.groupby("town").mean("age", epsilon=1, mechanism="geometric"), ParameterError),
    ],
)
def test_a_refused_call_costs_nothing(call, error):
    private = SURVEYED.dp.protect(SURVEY, epsilon=2)
    with pytest.raises(error):
        call(private.dp)
    assert private.dp.budget.spent == (0, 0)
    assert private.dp.budget.entries.empty


def test_the_number_of_rows_is_public_under_replacement():
    private = SURVEYED.dp.protect(SURVEY, epsilon=2, neighbors="replace_one")
    with pytest.raises(ParameterError, match="public"):
        private.dp.count(epsilon=1)
    assert private.dp.budget.spent == (0, 0)
    assert private.dp.query("age >= 40").dp.count(epsilon=1).attrs["dp"]["sensitivity"] == 1


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("epsilon", ["1e-5", "1e5"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", RELEASES)
def test_any_epsilon_between_a_hundred_thousandth_and_a_hundred_thousand(name, neighbors, epsilon):
    """A charged release is published."""
    if name == "count" and neighbors == "replace_one":
        return  # public
    private = protected(TABLES["one value"], NEIGHBOURLY, neighbors=neighbors)

    class Scaled:
        """The accessor with another epsilon."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, method: str) -> Any:
            member = getattr(self.inner, method)
            if method == "groupby":
                return lambda by: Scaled(member(by))
            return lambda *args, **options: member(*args, **{**options, "epsilon": epsilon})

    try:
        released = RELEASES[name](Scaled(private.dp))
    except ParameterError:  # a scale that cannot be drawn is refused like any other argument
        assert private.dp.budget.spent == (0, 0)
        return
    assert released.attrs["dp"]["epsilon"] == float(epsilon)
    assert private.dp.budget.spent[0] == float(epsilon)


@pytest.mark.full(keep=7)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("ends", [(-1e89, 1e89), (0.0, 1e-89), (1e80, 2e80)])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "cov", "corr", "pooled_var", "pooled_cov"])
def test_bounds_of_any_size_that_may_be_declared(name, ends, mechanism):
    lower, upper = ends
    columns = [Column(name, "float", lower=lower, upper=upper) for name in "xy"]
    domain = Domain((*columns, Column("g", "boolean")))
    share = np.linspace(0, 1, 50)
    frame = pd.DataFrame({"x": lower + share * (upper - lower), "y": upper - share * (upper - lower)})
    frame = frame.clip(lower, upper).assign(g=[True, False] * 25)
    options = {"by": "g"} if "pooled" in name else {}
    private = protected(frame, domain)
    delta = "0.01" if mechanism == "gaussian" else 0
    released = getattr(private.dp, name)(
        ["x", "y"], epsilon=1, delta=delta, mechanism=mechanism, rng=1, **options
    )
    assert released.shape[0] == 2
    json.dumps(released.attrs["dp"], allow_nan=False)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
def test_sums_far_from_zero_are_as_exact_as_their_interval_says(bounding):
    """With a public number of rows the terms are taken from the middle of their bounds."""
    values = pd.DataFrame({"x": np.full(100_000, 1e6 + 0.3001)})
    domain = Domain((Column("x", "float", lower=1e6, upper=1e6 + 1),))
    private = values.dp.protect(domain, epsilon=10**9, neighbors="replace_one")
    off = []
    for seed in range(40):
        released = private.dp.sum("x", epsilon=10, bounding=bounding, rng=seed)
        off.append(abs(float(released.iloc[0]) - math.fsum(values["x"])))
    half = released.attrs["dp"]["error"]["plus_minus"]
    assert half < 0.6  # three to six scales of 0.1
    # 95 % of forty: more than eight outside is a chance of one in ten thousand
    assert sum(distance > half for distance in off) <= 8
    # within every declared bound the answer to a very large epsilon is the sum itself
    exact = private.dp.sum("x", epsilon=10**6, rng=1)
    assert float(exact.iloc[0]) == pytest.approx(math.fsum(values["x"]), abs=1e-3)
