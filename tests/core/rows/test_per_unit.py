"""One row for each unit: the numbers of pandas, within what is declared, and one row of each unit."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdprivacy import Column, Domain, protect
from pdprivacy.core.rows.per_unit import FUNCTIONS, features_of, values_of
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import DeclarationError, ParameterError
from tests.support.snapshots import records_of

SIZES = ("S", "M", "L")
DOMAIN = Domain(
    (
        Column("x", "float", True, lower=-2, upper=3),
        Column("n", "integer", lower=-4, upper=5),
        Column("k", "integer", True, lower=0, upper=9),
        Column("b", "boolean", True),
        Column("g", "category", categories=("u", "v"), role="sensitive"),
        Column("size", "category", True, categories=SIZES, ordered=True),
        Column("day", "integer", lower=0, upper=9, timeline=Timeline(18262, "D")),
    )
)
MOST = 4
SUITABLE = [
    (name, function)
    for name in DOMAIN
    for function in FUNCTIONS
    if (function in ("sum", "mean")) <= (name in "xnkb")
    and (function in ("any", "all")) <= (name == "b")
    and (function in ("min", "max")) <= (name != "g")
]
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([-2.0, -0.5, 0.25, 3.0, np.nan]),
        st.integers(-4, 5),
        st.sampled_from([0, 7, 9, None]),
        st.sampled_from([True, False, None]),
        st.sampled_from(["u", "v"]),
        st.sampled_from([*SIZES, None]),
        st.integers(0, 9),
    ),
    max_size=12,
)


def frame_from(records):
    columns = ["unit", *DOMAIN]
    frame = pd.DataFrame(records, columns=columns)
    sizes = pd.CategoricalDtype(SIZES, ordered=True)
    kinds = {"x": "float64", "n": "int64", "k": "Int64", "b": "boolean", "g": object, "size": sizes}
    return frame.astype({"unit": "int64", **kinds, "day": "int64"})


def computed(frame, named, bounds=None, most=MOST):
    features, _ = features_of(DOMAIN, named, bounds, most)
    rows, units = values_of(features, frame, frame["unit"].to_numpy(dtype=np.int64))
    return rows.set_axis(units), features


def cells(values):
    return [None if pd.isna(cell) else cell for cell in values.tolist()]


@settings(max_examples=30)
@given(RECORDS)
def test_the_numbers_are_those_of_pandas_and_within_the_declaration(records):
    frame = frame_from(records)
    named = {f"{name} {function}": (name, function) for name, function in SUITABLE}
    result, features = computed(frame, {**named, "rows": "size"}, most=12)
    groups = frame.groupby("unit")
    assert cells(result["rows"]) == cells(groups.size())
    for feature, (name, function) in zip(features, SUITABLE, strict=False):
        values = result[feature.column.name]
        theirs = cells(groups[name].agg(function))
        if function == "mean":
            assert cells(values.astype("Float64").round(9)) == cells(
                pd.Series(theirs, dtype="Float64").round(9)
            )
        else:
            assert cells(values) == theirs, (name, function)
        known = [cell for cell in cells(values) if cell is not None]
        assert feature.column.nullable or len(known) == len(values)
        if feature.column.categories is not None:
            assert set(known) <= set(feature.column.categories)
        else:
            assert all(feature.column.lower <= cell <= feature.column.upper for cell in known)


def test_declared_sums_are_reached_and_are_no_wider():
    """By every unit of one to three records with each extreme."""
    for name, ends in (("n", (-4, 5)), ("x", (-2.0, 3.0, None)), ("k", (0, 9, None))):
        sums = [
            sum(cell for cell in chosen if cell is not None)
            for count in (1, 2, 3)
            for chosen in product(ends, repeat=count)
        ]
        (feature,), _ = features_of(DOMAIN, {"s": (name, "sum")}, None, 3)
        assert (feature.column.lower, feature.column.upper) == (min(sums), max(sums))


def test_the_first_and_the_last_are_those_in_the_order_of_the_table():
    units, numbers = (2, 0, 2, 0, 1), (3, 1, -4, 5, 2)
    frame = frame_from([(unit, 1.0, n, 7, True, "u", "S", 2) for unit, n in zip(units, numbers, strict=True)])
    result, _ = computed(frame, {"first": ("n", "first"), "last": ("n", "last"), "least": ("n", "min")})
    assert result.to_dict("list") == {"first": [1, 2, 3], "last": [5, 2, -4], "least": [1, 2, -4]}


def databases():
    """All tables of up to three units with one or two records of two columns each."""
    record = list(product([-2.0, 3.0], [None, True]))
    each = [[], *([first] for first in record), *(list(pair) for pair in combinations(record, 2))]
    yield from product(each, repeat=3)


@pytest.mark.full
def test_one_unit_more_less_or_replaced_is_one_row():
    """By all pairs of neighbours: the rows of the other units are the same cells."""
    named = {"s": ("x", "sum"), "m": ("x", "mean"), "b": ("b", "any"), "f": ("b", "first"), "n": "size"}
    blank = {"n": 1, "k": None, "g": "u", "size": None, "day": 3}
    rows_of = {}
    for position, chosen in enumerate(databases()):
        records = [
            (unit, x, blank["n"], blank["k"], b, blank["g"], blank["size"], blank["day"])
            for unit, listed in enumerate(chosen)
            for x, b in listed
        ]
        if position % 7 == 0:
            records.reverse()  # the order of the table does not matter to other units
        result, _ = computed(frame_from(records), {name: named[name] for name in ("s", "m", "b", "n")})
        rows = dict(zip(result.index.tolist(), map(tuple, result.astype(object).to_numpy()), strict=True))
        assert set(rows) == {unit for unit, listed in enumerate(chosen) if listed}
        for unit, row in rows.items():
            key = (unit, tuple(chosen[unit]))
            assert rows_of.setdefault(key, str(row)) == str(row)


def test_a_release_after_the_step_has_the_sensitivity_of_one_record():
    frame = frame_from([(unit, 3.0, 1, 7, True, "u", "S", 2) for unit in range(3) for _ in range(4)])
    domain = Domain(tuple(replace(DOMAIN[name], public_bounds=True) for name in "xnk"))
    private = protect(frame, domain, epsilon=100, unit="unit", max_rows=5)
    persons = private.per_unit({"total": ("x", "sum"), "rows": "size"}, bounds={"total": (0, 6)})
    assert private.dp.sum("n", epsilon=1).dp.metadata.sensitivity == 25
    total = persons.dp.sum("total", epsilon=1)
    assert total.dp.metadata.sensitivity == 6
    assert persons.dp.count(epsilon=50).item() == 3
    assert records_of(persons)["total"].tolist() == [6.0, 6.0, 6.0]
    assert records_of(persons)["rows"].tolist() == [4, 4, 4]
    assert persons.dp.budget is private.dp.budget
    assert persons.dp.lineage["stability"].tolist() == [5, 1]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_rows_are_those_that_the_contribution_bound_and_steps_left(neighbors):
    frame = frame_from([(unit, float(n % 3), n, 0, True, "u", "S", 0) for unit in range(4) for n in range(5)])
    domain = Domain(tuple(replace(DOMAIN[name], public_bounds=True) for name in "xnk"))
    private = protect(frame, domain, epsilon=100, unit="unit", max_rows=2, neighbors=neighbors)
    sizes = private.per_unit({"rows": "size"})
    assert records_of(sizes)["rows"].tolist() == [2] * 4
    assert sizes.dp.domain["rows"].upper == 2
    none = private.query("n == 5").per_unit({"rows": "size"})
    assert len(records_of(none)) == 0
    assert none.dp.count(epsilon=50).item() == 0


def test_functions_of_sensitive_columns_are_sensitive():
    features, _ = features_of(DOMAIN, {"a": ("g", "nunique"), "b": ("g", "first"), "c": "size"}, None, MOST)
    assert [feature.column.role for feature in features] == ["sensitive", "sensitive", None]


@pytest.mark.parametrize(
    ("named", "bounds", "error", "reason"),
    [
        ({"s": "sum"}, None, ParameterError, "pair of a column"),
        ({"s": ("x", "median")}, None, ParameterError, "the function of column 's'"),
        ({"s": ("g", "sum")}, None, DeclarationError, "for numbers"),
        ({"s": ("g", "max")}, None, DeclarationError, "have none"),
        ({"s": ("n", "any")}, None, DeclarationError, "truth values"),
        ({"s": ("y", "sum")}, None, DeclarationError, "'y'"),
        ({"s": ("x", "sum")}, {"t": (0, 1)}, ParameterError, "no new one"),
        ({"s": ("x", "sum")}, {"s": 5}, ParameterError, "must be a pair"),
        ({"s": ("x", "sum")}, {"s": (None, 5)}, ParameterError, "two numbers"),
        ({"s": ("x", "sum")}, {"s": (5, 0)}, DeclarationError, "below"),
        ({"s": ("g", "first")}, {"s": (5, 0)}, DeclarationError, "for numbers"),
    ],
)
def test_other_columns_are_refused(named, bounds, error, reason):
    with pytest.raises(error, match=reason):
        features_of(DOMAIN, named, bounds, MOST)


def test_sums_that_may_be_too_large_are_refused():
    large = Domain((Column("n", "integer", lower=0, upper=2**62), Column("x", "float", lower=0, upper=1e308)))
    for name in ("n", "x"):
        with pytest.raises(DeclarationError, match="too large"):
            features_of(large, {"s": (name, "sum")}, None, 5)


def test_frames_without_units_and_of_other_engines_are_refused():
    polars = pytest.importorskip("polars")
    domain = Domain((Column("n", "integer", lower=-4, upper=5),))
    frame = pd.DataFrame({"unit": [1, 1, 2], "n": [1, 2, 3]})
    with pytest.raises(ParameterError, match="names the unit"):
        protect(frame, domain, epsilon=1).per_unit({"s": ("n", "sum")})
    elsewhere = polars.DataFrame({"unit": [1, 1, 2], "n": [1, 2, 3]})
    private = protect(elsewhere, domain, epsilon=1, unit="unit", max_rows=2)
    with pytest.raises(ParameterError, match="looks at all records in memory"):
        private.per_unit({"s": ("n", "sum")})
