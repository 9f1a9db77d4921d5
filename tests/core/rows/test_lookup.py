"""Columns of a public table, looked up: those of pandas, each by the cells of its own record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import Column, Domain, protect
from pdprivacy.core.rows import merge
from pdprivacy.errors import DeclarationError, ParameterError, PrivacyError
from tests.support.engine_frames import ENGINES, each_engine, frame_of
from tests.support.snapshots import records_of

ZIPS = ("8001", "3011", "8001 ", "")
DOMAIN = Domain(
    (
        Column("zip", "category", categories=ZIPS, nullable=True),
        Column("n", "integer", lower=-5, upper=12),
        Column("b", "boolean", nullable=True),
        Column("health", "category", categories=("yes", "no"), role="sensitive"),
    )
)
FRAME = pd.DataFrame(
    {
        "zip": ["8001", "3011", None, "8001 ", "8001", ""],
        "n": [1, 2, 3, -2, 9, 1],
        "b": pd.array([True, False, True, None, False, True], dtype="boolean"),
        "health": ["yes", "no"] * 3,
    }
)
TOWNS = pd.DataFrame(
    {"zip": ["3011", "8001"], "town": ["Bern", "Zurich"], "people": [140, 420], "area": [51.6, np.nan]}
)


def cells(frame: pd.DataFrame) -> list[list[object]]:
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.astype(object).to_numpy()]


KEYS = {"zip": st.sampled_from(ZIPS), "n": st.integers(-3, 10), "b": st.booleans()}
VALUES = st.one_of(st.integers(-5, 5), st.sampled_from(["x", "y"]), st.booleans(), st.none())


@st.composite
def tables(draw):
    """A public table with one row per key, of one to three keys and one or two columns."""
    keys = draw(st.lists(st.sampled_from([*KEYS]), min_size=1, max_size=3, unique=True))
    rows = draw(st.lists(st.tuples(*(KEYS[key] for key in keys)), min_size=1, max_size=12, unique=True))
    table = pd.DataFrame(rows, columns=keys)
    for name in draw(st.sampled_from([["new"], ["new", "other"]])):
        kind = draw(st.sampled_from([st.integers(-5, 5), st.sampled_from(["x", "y"]), st.booleans()]))
        table[name] = pd.Series([draw(kind) for _ in rows], dtype=object)
    return keys, table


@given(tables(), st.sampled_from(["left", "inner"]), st.permutations(range(len(FRAME))))
def test_records_get_the_cells_of_pandas_whatever_the_order_of_the_records(case, how, order):
    keys, table = case
    step = merge(DOMAIN, table, how, keys)
    plain = FRAME.astype({"b": object, "zip": object}).where(FRAME.notna(), None)
    expected = plain.assign(row=range(len(plain))).merge(table, how=how, on=keys).sort_values("row")
    result = step.apply(FRAME.take(order)).sort_index()
    assert result.index.tolist() == expected["row"].tolist()
    assert cells(result) == cells(expected.drop(columns="row"))
    for column in step.domain.columns:
        inside = result[column.name].dropna().tolist()
        if column.categories is not None:
            assert set(inside) <= set(column.categories)
        else:
            assert all(column.lower <= cell <= column.upper for cell in inside)
        assert column.nullable or result[column.name].notna().all()


def test_a_table_without_a_row_for_each_label_makes_nulls_or_leaves_records_out():
    left, inner = merge(DOMAIN, TOWNS, "left", "zip"), merge(DOMAIN, TOWNS, "inner", "zip")
    assert left.domain["town"].nullable
    assert left.keep is None
    assert not inner.domain["town"].nullable
    assert inner.domain["area"].nullable  # the table has a null
    assert inner.apply(FRAME)["people"].tolist() == [420, 140, 420]
    assert (left.domain["people"].lower, left.domain["people"].upper) == (140, 420)
    # 2 ** 53 + 3 is no double, and becomes 2 ** 53 + 4 beside a fraction
    mixed = pd.DataFrame({"zip": ["8001", "3011"], "x": pd.Series([2**53 + 3, 0.5], dtype=object)})
    step = merge(DOMAIN, mixed, "left", "zip")
    assert (step.domain["x"].lower, step.domain["x"].upper) == (0.5, 2**53 + 4)
    assert step.apply(FRAME)["x"].max() == 2**53 + 4
    whole = Domain((Column("zip", "category", categories=("8001", "3011")),))
    assert merge(whole, TOWNS, "inner", "zip").keep is None
    assert not merge(whole, TOWNS, "left", "zip").domain["people"].nullable


def test_columns_of_sensitive_keys_are_sensitive():
    table = pd.DataFrame({"health": ["yes", "no"], "cost": [5, 1]})
    assert merge(DOMAIN, table, "left", "health").domain["cost"].role == "sensitive"
    assert merge(DOMAIN, TOWNS, "left", "zip").domain["town"].role is None


def test_the_text_of_the_step_tells_tables_apart():
    texts = {
        merge(DOMAIN, table, how, "zip").text
        for table in (TOWNS, TOWNS.assign(people=[140, 421]), TOWNS.iloc[::-1].reset_index(drop=True))
        for how in ("left", "inner")
    }
    assert len(texts) == 6
    assert merge(DOMAIN, TOWNS.copy(), "left", "zip").text in texts
    assert not [text for text in texts if "Bern" in text or "3011" in text]


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_every_engine_looks_up_the_same(engine, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    pa = pytest.importorskip("pyarrow")
    private = protect(frame_of(engine, pa.Table.from_pandas(FRAME)), DOMAIN, epsilon=1e6)
    left, inner = private.merge(TOWNS, how="left", on="zip"), private.merge(TOWNS, on="zip")
    counts = left.dp.value_counts("town", epsilon=1000).to_dict()
    # the null label is None in pandas 2 and NaN in pandas 3
    assert {"none" if pd.isna(town) else town: count for town, count in counts.items()} == {
        "Zurich": 2, "Bern": 1, "none": 3,
    }  # fmt: skip
    assert round(inner.dp.sum("people", epsilon=100_000).item()) == 980
    assert inner.dp.count(epsilon=1000).item() == 3
    assert inner.dp.lineage["stability"].tolist() == [1]


def test_the_condition_of_an_inner_merge_is_told():
    private = protect(FRAME, DOMAIN, epsilon=10)
    released = private.merge(TOWNS, on="zip").dp.count(epsilon=1)
    assert released.dp.metadata.filters == ["zip in the merged table"]
    assert records_of(private.merge(TOWNS, on="zip"))["town"].tolist() == ["Zurich", "Bern", "Zurich"]


@pytest.mark.parametrize(
    ("table", "options", "error", "reason"),
    [
        (pd.concat([TOWNS, TOWNS]), {"on": "zip"}, ParameterError, "the same key"),
        (TOWNS.rename(columns={"town": "n"}), {"on": "zip"}, ParameterError, "declared already"),
        (TOWNS.drop(columns="zip"), {"on": "zip"}, ParameterError, "no column 'zip'"),
        (TOWNS.drop(columns="zip"), {}, ParameterError, "no column of a declared name"),
        (TOWNS.assign(zip=[1, 2]), {"on": "zip"}, ParameterError, "labels of type str"),
        (TOWNS.assign(zip=["1", None]), {"on": "zip"}, ParameterError, "has a null"),
        (TOWNS.assign(town=None), {"on": "zip"}, ParameterError, "no values"),
        (TOWNS.assign(area=np.inf), {"on": "zip"}, ParameterError, "finite numbers"),
        (
            pd.DataFrame({"zip": ["8001"], "x": pd.Series([10**400], dtype=object)}),
            {"on": "zip"},
            ParameterError,
            "finite numbers",
        ),
        (TOWNS.assign(town=[True, 1]), {"on": "zip"}, ParameterError, "truth values"),
        (TOWNS.assign(town=pd.Timestamp("2026")), {"on": "zip"}, ParameterError, "texts, numbers"),
        (TOWNS, {"on": "zip", "how": "outer"}, ParameterError, "'how'"),
        (TOWNS, {"on": "town"}, DeclarationError, "town"),
        (pd.concat({"a": TOWNS}, axis=1), {"on": "zip"}, ParameterError, "several levels"),
        (TOWNS.set_axis(["zip", "a", "a", "b"], axis=1), {"on": "zip"}, ParameterError, "twice"),
        ([1], {"on": "zip"}, ParameterError, "public table"),
        (pd.DataFrame({"n": [1.5], "x": [1]}), {"on": "n"}, ParameterError, "whole numbers"),
    ],
)
def test_other_tables_are_refused(table, options, error, reason):
    private = protect(FRAME, DOMAIN, epsilon=1)
    with pytest.raises(error, match=reason):
        private.merge(table, **options)
    assert private.dp.budget.entries.empty


def test_protected_tables_and_keys_of_fractions_are_refused():
    private = protect(FRAME, DOMAIN, epsilon=1)
    with pytest.raises(ParameterError, match="names the unit"):
        private.merge(private, on="zip")
    fractions = Domain((Column("x", "float", lower=0, upper=1),))
    with pytest.raises(PrivacyError, match="whole numbers"):
        merge(fractions, pd.DataFrame({"x": [0.5], "y": [1]}), "left", "x")
