"""A protected frame shows its declaration and budget, and refuses what would read a cell."""

from __future__ import annotations

import copy
import pickle
import re
import weakref

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from pandas.testing import assert_frame_equal

import pdprivacy
from pdprivacy import Column, Domain, Ledger
from pdprivacy.errors import OpaqueFrameError, ParameterError, UnknownNameError
from pdprivacy.frames import ProtectedFrame, find
from tests.support.released import released
from tests.support.snapshots import records_of


def test_a_protected_frame_shows_its_declaration_and_budget(survey, private):
    assert type(private) is ProtectedFrame
    assert list(private.columns) == list(private.dp.domain)
    adults = private[private["age"] >= 30]
    adults.dp.mean("age", epsilon=1)
    for text in (repr(adults), str(adults), adults._repr_html_()):
        assert "age" in text
        assert "query(" in text
        assert "add_remove" in text
        assert "99" in text  # what is left of the budget
    assert released(private) == released(private)


# ------------------------------------------------------------------ what reads cells, and raw frames

READS_CELLS = {
    "mean": lambda f: f.mean(),
    "sum of a column": lambda f: f["age"].sum(),
    "max of an expression": lambda f: (f["age"] + f["family"]).max(),
    "describe": lambda f: f.describe(),
    "len": len,
    "length of a column": lambda f: len(f["age"]),
    "shape": lambda f: f.shape,
    "values": lambda f: f.values,
    "values of a column": lambda f: f["age"].values,
    "to_numpy": lambda f: f["income"].to_numpy(),
    "array": lambda f: f["age"].array,
    "asarray": np.asarray,
    "asarray of a column": lambda f: np.asarray(f["age"]),
    "iloc": lambda f: f.iloc[0],
    "iloc of a column": lambda f: f["age"].iloc[0],
    "loc": lambda f: f.loc[:20],
    "at": lambda f: f.at[0, "age"],
    "slice": lambda f: f[:20],
    "mask of cells": lambda f: f[np.array([True] * 40)],
    "boolean frame": lambda f: f[pd.DataFrame({"age": [True] * 40})],
    "attribute": lambda f: f.age,
    "item": lambda f: f["age"].item(),
    "list": list,
    "list of a column": lambda f: list(f["age"]),
    "to_list": lambda f: f["age"].tolist(),
    "in": lambda f: 33 in f["age"],
    "in the frame": lambda f: "age" in f,
    "truth value": bool,
    "truth value of a condition": lambda f: bool(f["age"] > 30),
    "and": lambda f: f["age"] > 30 and f["family"] > 1,
    "chained comparison": lambda f: 18 <= f["age"] <= 65,
    "hash of a column": lambda f: {f["age"]: 1},
    "float": lambda f: float(f["age"]),
    "index": lambda f: f.index,
    "head": lambda f: f.head(),
    "pandas sample": lambda f: f.sample(5, random_state=1),
    "drop": lambda f: f.drop(0),
    "sort_values": lambda f: f.sort_values("age"),
    "reset_index": lambda f: f.reset_index(drop=True),
    "replace": lambda f: f.replace({"health": {"yes": "no"}}),
    "where": lambda f: f.where(f["age"] > 30),
    "transpose": lambda f: f.T,
    "arithmetic of a frame": lambda f: f + 1,
    "sum with a frame": lambda f: pd.DataFrame({"age": [1]}) + f,
    "product with a frame": lambda f: pd.DataFrame({"age": [1]}) @ f,
    "comparison of a frame": lambda f: f > 3,
    "equality of a frame": lambda f: f == 3,
    "raw frame indexed by a condition": lambda f: pd.DataFrame({"age": [1]})[f["age"] > 3],
    "eval": lambda f: f.eval("age = age + 1"),
    "merge": lambda f: pd.DataFrame({"age": [1]}).merge(f),
    "join": lambda f: pd.DataFrame({"age": [1]}).join(f),
    "concat": lambda f: pd.concat([f, f]),
    "groupby": lambda f: f.groupby("region"),
    "agg": lambda f: f.agg(["min", "max"]),
    "apply": lambda f: f.apply(lambda column: column),
    "map": lambda f: f["age"].map(str),
    "explode": lambda f: f.explode("age"),
    "DataFrame": lambda f: pd.DataFrame(f),
    "Series": lambda f: pd.Series(f["age"]),
    "dict": dict,
    "to_dict": lambda f: f.to_dict("list"),
    "to_csv": lambda f: f.to_csv(),
    "to_parquet": lambda f: f.to_parquet("private.parquet"),
    "plot": lambda f: f["age"].plot(),
    "pickle": pickle.dumps,
    "pickle of a column": lambda f: pickle.dumps(f["age"]),
    "numpy function": lambda f: np.mean(f["age"]),
    "ufunc": lambda f: np.sin(f["age"]),
    "ufunc of a frame": np.sqrt,
    "sum by a ufunc": lambda f: np.add.reduce(f["age"]),
    "ufunc with a place for its result": lambda f: np.sqrt(f["age"], out=np.zeros(3)),
    "sum by NumPy": lambda f: np.sum(f["age"]),
    "sorted by NumPy": lambda f: np.sort(f["age"]),
    "str": lambda f: f["region"].str.split("o"),
    "release of a column": lambda f: f["age"].dp.mean(epsilon=0.1),
    "new column": lambda f: f.__setitem__("extra", 1),
    "attribute set": lambda f: setattr(f, "age", 33),
    "del": lambda f: f.__delitem__("town"),
}


@pytest.mark.parametrize("read", READS_CELLS.values(), ids=READS_CELLS)
def test_a_method_that_reads_cells_is_refused(private, survey, read, quietly):
    before = released(private)
    error = quietly(lambda: read(private))
    assert isinstance(error, AttributeError | TypeError | ValueError)
    if isinstance(error, OpaqueFrameError):
        assert "shows none" in str(error) or "protected frame has no" in str(error)
        assert error.hint
    cells = {repr(cell) for name in ("age", "income") for cell in survey[name] if cell > 9}
    assert not cells & set(re.findall(r"[\d.]+", str(error))) - {"30", "18", "80", "65"}  # those of hints
    assert released(private) == before
    assert len(private.dp.budget.entries) == 4  # two by each of the two


@pytest.mark.parametrize(
    ("read", "call"),
    [
        (lambda f: f.mean(), 'private.dp.mean("age", epsilon=0.1)'),
        (lambda f: f["family"].mean(), 'private.dp.mean("family", epsilon=0.1)'),
        (len, "private.dp.count(epsilon=0.1)"),
        (lambda f: f["region"].value_counts(), 'private.dp.value_counts("region", epsilon=0.1)'),
        (lambda f: f.to_csv, "private.dp.describe("),
        (np.asarray, "private.dp.histogram("),
        (lambda f: f.crosstab, "private.dp.crosstab("),
        (lambda f: 18 <= f["age"] <= 65, 'private["age"].between(18, 65)'),
        (lambda f: f["age"] in [1, 2], 'private["age"].between(18, 65)'),
        (lambda f: list(f["age"]), "private.dp.histogram("),
        (lambda f: 3 in f["age"], 'private["age"].isin(['),
        (lambda f: "age" in f, "name in private.columns"),
        (
            lambda f: pd.DataFrame({"age": [1]})[f["age"] > 3],
            'protected frame: private[private["age"] >= 30]',
        ),
    ],
)
def test_the_call_to_write_instead_is_named(private, read, call):
    with pytest.raises(OpaqueFrameError) as caught:
        read(private)
    assert call in caught.value.hint


SYMBOLS = ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
OPERANDS = {
    "a number": 3,
    "NumPy number": np.int64(3),
    "array": np.array([1, 2]),
    "Series": pd.Series([1, 2], name="age"),
    "DataFrame": pd.DataFrame({"age": [1, 2]}),
    "Index": pd.Index([1, 2]),
    "Timestamp": pd.Timestamp("2020-01-31"),
    "None": None,
}


@pytest.mark.full(keep=18)
@pytest.mark.parametrize("operand", OPERANDS.values(), ids=OPERANDS)
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_operators_of_a_whole_frame_are_refused_in_both_orders(private, symbol, operand):
    for expression in (f"private {symbol} operand", f"operand {symbol} private"):
        with pytest.raises(OpaqueFrameError, match="This operator reads cells") as caught:
            eval(expression, {"private": private, "operand": operand})
        assert caught.value.hint == 'private[private["age"] >= 30]'


@pytest.mark.parametrize("expression", ["-f", "+f", "~f", "abs(f)", "round(f)", "divmod(f, 2)", "f @ 3"])
def test_operators_of_frames_alone_are_refused(private, expression):
    with pytest.raises(OpaqueFrameError, match="This operator reads cells"):
        eval(expression, {"f": private})


def test_frames_are_compared_by_identity(private):
    other = private.query("age >= 30")
    assert private in [private, other]
    assert {private: 1, other: 2}[private.copy()] == 1
    assert [private, other] == [private.copy(), copy.copy(other)]
    assert hash(private) == hash(copy.deepcopy(private))


def test_an_unknown_name_is_no_method(private):
    with pytest.raises(UnknownNameError, match="'ProtectedFrame' has no attribute 'meann'") as caught:
        private.meann()
    assert "private.dp.mean(" in caught.value.hint
    assert not hasattr(private, "__dataframe__")
    assert not hasattr(private, "_repr_png_")


@pytest.mark.parametrize("name", ["groupby", "batch", "plan", "plan_releases"])
def test_contents_of_a_frame_are_not_pickled(tmp_path, name):
    """The budget of a ledger alone could be pickled; the records behind it are not."""
    domain = Domain((Column("x", "integer", lower=0, upper=9), Column("b", "boolean")))
    raw = pd.DataFrame({"x": [4, 5], "b": [True, False]})
    dp = raw.dp.protect(domain, budget=Ledger(tmp_path / "b.db"), name="s", epsilon=1).dp
    made = {
        "groupby": lambda: dp.groupby("b"),
        "batch": dp.batch,
        "plan": lambda: dp.plan,
        "plan_releases": lambda: dp.plan_releases([("count", {"epsilon": 0.1})]),
    }[name]()
    with pytest.raises(Exception, match="pickle"):
        pickle.dumps(made)
    assert not [name for name in dir(made) if name in ("facts", "protected", "records")]


def test_a_copy_is_the_same_frame_and_a_pickle_is_refused(private):
    for copied in (private.copy(), copy.copy(private), copy.deepcopy(private), *copy.deepcopy([private])):
        assert copied is private
    with pytest.raises(ParameterError, match="would not know what is spent") as caught:
        pickle.dumps(private)
    assert "Ledger" in caught.value.hint


def test_a_record_by_record_filter_keeps_the_guarantee(private):
    older = private.dp.query("age >= 30")
    assert older.dp.budget is private.dp.budget
    older.dp.mean("age", epsilon=1)
    assert private.dp.budget.spent == (1.0, 0.0)
    older[older["age"] > 50].dp.mean("age", epsilon=0.5)
    assert private.dp.budget.spent == (1.5, 0.0)


# ------------------------------------------------------------------ lifetimes


@pytest.mark.full
def test_contents_of_a_frame_die_with_it(survey, schema, collected):
    private = survey.dp.protect(schema, epsilon=1)
    private.dp.mean("age", epsilon=0.1)
    frame, snapshot = weakref.ref(private), weakref.ref(records_of(private))
    del private
    collected()
    assert frame() is None
    assert snapshot() is None


@pytest.mark.full
def test_a_query_outlives_the_frame_it_was_made_of(survey, schema, collected):
    older = survey.dp.protect(schema, epsilon=5).dp.query("age >= 30")
    collected()
    older.dp.mean("age", epsilon=1)
    assert older.dp.budget.left == (4.0, 0.0)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("public_rows", [None, 30])
def test_a_filter_makes_the_number_of_rows_private(survey, schema, neighbors, public_rows):
    options = {} if neighbors == "replace_one" else {"public_rows": public_rows}
    private = survey.dp.protect(schema, epsilon=100, neighbors=neighbors, **options)
    for older in (private.query("age >= 30"), private[private["age"] >= 30], private.dropna()):
        assert (find(older).scope.rows, find(older).scope.filtered) == (None, True)


@pytest.mark.parametrize("mask", [[True, False], [False], slice(1), np.array([True, False])], ids=str)
def test_a_mask_of_cells_is_no_list_of_columns(mask):
    frame = pd.DataFrame({"age": [31, 54]})
    private = frame.dp.protect(Domain((Column("age", "integer", lower=0, upper=120),)), epsilon=1)
    with pytest.raises(ParameterError, match="takes a column, a list of columns or a condition"):
        private[mask]


# ---------------------------------------------------------------- idioms of chains of methods

PEOPLE = pd.DataFrame(
    {
        "age": pd.array([20, 31, None, 54, 67, 31], dtype="Int64"),
        "pay": [1.5, 2.0, 8.0, 3.0, 5.0, 9.0],
        "town": ["n", "s", "n", "s", "e", "n"],
    }
)
PEOPLE_DOMAIN = Domain(
    (
        Column("age", "integer", nullable=True, lower=0, upper=99),
        Column("pay", "float", lower=0, upper=10),
        Column("town", "category", categories=("n", "s", "e")),
    )
)
CHAINS = {
    "loc of records": lambda f: f.loc[f["pay"] > 2],
    "loc of a condition of two": lambda f: f.loc[(f["pay"] > 2) & f["town"].isin(["n"])],
    "loc of records and columns": lambda f: f.loc[f["pay"] > 2, ["town", "pay"]],
    "loc of columns": lambda f: f.loc[:, ["town"]],
    "loc of all": lambda f: f.loc[f["pay"] > 2, :],
    "pipe": lambda f: f.pipe(lambda frame, least: frame[frame["pay"] >= least], least=3),
    "function in assign": lambda f: f.assign(double=lambda frame: 2 * frame["pay"]),
    "functions that read new columns": lambda f: f.assign(
        double=lambda frame: 2 * frame["pay"], more=lambda frame: frame["double"] + 1
    ),
    "a column and functions": lambda f: f.assign(
        double=2 * f["pay"], more=lambda frame: frame["double"] + 1, less=lambda frame: frame["more"] - 3
    ),
    "a function that reads a replaced column": lambda f: f.assign(
        pay=f["pay"] * 3, third=lambda frame: frame["pay"] / 3
    ),
    "drop": lambda f: f.drop(columns="age"),
    "drop of several": lambda f: f.drop(columns=["town", "age"]),
    "between in query": lambda f: f.query("pay.between(2, 5)"),
    "not between in query": lambda f: f.query("not age.between(30, 60)"),
    "isin in query": lambda f: f.query("town.isin(['n', 'e']) and pay.isin([1.5, 5.0])"),
    "not isin in query": lambda f: f.query("not town.isin(['n'])"),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_chains_of_methods_do_what_they_do_in_pandas(chain):
    private = pdprivacy.protect(PEOPLE, PEOPLE_DOMAIN, epsilon=1)
    assert_frame_equal(records_of(chain(private)), chain(PEOPLE), check_dtype=False)


def test_a_column_of_loc_is_a_column_of_the_records_that_are_left():
    private = pdprivacy.protect(PEOPLE, PEOPLE_DOMAIN, epsilon=1)
    town = private.loc[private["pay"] > 2, "town"]
    assert repr(town) == "town"
    assert town._protected.filters == ("pay > 2",)


def test_bounds_of_assign_are_those_of_columns_made_by_functions():
    private = pdprivacy.protect(PEOPLE, PEOPLE_DOMAIN, epsilon=1)
    bounds = {"double": (1, 7), "more": (2, 3)}
    made = private.assign(bounds=bounds, double="2 * pay", more=lambda frame: frame["double"] + 1)
    assert made.dp.domain["double"].bounds("mean") == (1, 7)
    assert made.dp.domain["more"].bounds("mean") == (2, 3)
    with pytest.raises(ParameterError, match="'other', which is not a new column"):
        private.assign(bounds={"other": (1, 7)}, double=lambda frame: 2 * frame["pay"])


@pytest.mark.parametrize(
    "cells", [lambda frame: PEOPLE["pay"], lambda frame: frame, lambda frame: PEOPLE["pay"].to_numpy()]
)
def test_functions_of_assign_return_expressions_alone(cells):
    private = pdprivacy.protect(PEOPLE, PEOPLE_DOMAIN, epsilon=1)
    with pytest.raises(ParameterError, match="must be an expression of columns"):
        private.assign(new=cells)


@pytest.mark.parametrize(
    "key", [3, slice(3, 5), "a", (3, "pay"), (slice(1, 2), "pay"), [1, 2], [True, False]]
)
def test_loc_reads_no_index_labels(key):
    private = pdprivacy.protect(PEOPLE, PEOPLE_DOMAIN, epsilon=1)
    with pytest.raises(OpaqueFrameError, match="'loc' by index labels reads cells"):
        private.loc[key]


def test_no_column_left_is_an_error():
    private = pdprivacy.protect(PEOPLE, PEOPLE_DOMAIN, epsilon=1)
    with pytest.raises(ParameterError, match="'drop' would leave no declared column"):
        private.drop(columns=["age", "pay", "town"])


def test_the_day_of_the_week_has_the_names_of_pandas():
    bounds = pa.Check.in_range("1969-12-01", "1970-12-31")
    schema = pa.DataFrameSchema({"day": pa.Column("datetime64[ns]", bounds, metadata={"dp": {}})})
    frame = pd.DataFrame({"day": pd.to_datetime(["1970-01-01", "1970-01-04"]).astype("datetime64[ns]")})
    private = frame.dp.protect(schema, epsilon=1)
    made = private.assign(first=lambda f: f["day"].dt.weekday, second=lambda f: f["day"].dt.day_of_week)
    assert records_of(made)[["first", "second"]].to_numpy().tolist() == [[3, 3], [6, 6]]  # 0 is Monday
