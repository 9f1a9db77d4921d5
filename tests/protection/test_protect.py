"""A protected frame shows no cell, and no later change of any frame reaches a release."""

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
import re
import warnings
import weakref
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from pdprivacy import Budget, Column, Domain, Ledger, releases
from pdprivacy.engine import PandasEngine
from pdprivacy.errors import (
    BudgetError,
    BudgetExceeded,
    DeclarationError,
    DeclarationWarning,
    InvalidDataError,
    InvalidDataWarning,
    NotProtectedError,
    OpaqueFrameError,
    ParameterError,
    QueryError,
    UnknownNameError,
)
from pdprivacy.protection import ProtectedFrame, find
from pdprivacy.release.execute import execute
from tests.support.engine_frames import sum_of

PANDAS_2 = pd.__version__.startswith("2.")


def released(private: ProtectedFrame) -> list[float]:
    """Numbers of several columns by one seed."""
    return numbers(find(private))


def numbers(protected) -> list[float]:
    means = execute(releases.mean(protected, ["age", "income", "family"], epsilon=0.01, rng=1))
    counts = execute(releases.crosstab(protected, "region", "health", epsilon=0.01, rng=1))
    return [*means.tolist(), *counts.to_numpy().ravel().tolist()]


# ------------------------------------------------------------------ an opaque frame


def test_a_protected_frame_shows_its_declaration_and_budget(survey, private):
    assert type(private) is ProtectedFrame
    assert list(private.columns) == list(private.dp.domain)
    adults = private[private["age"] >= 30]
    adults.dp.mean("age", epsilon=1)
    for shown in (repr(adults), str(adults), adults._repr_html_()):
        assert "age" in shown
        assert "query(" in shown
        assert "add_remove" in shown
        assert "99" in shown  # what is left of the budget
    assert released(private) == released(private)


def test_the_original_is_left_as_it_was_and_unprotected(survey, schema):
    before = survey.copy(deep=True)
    survey.attrs["source"] = "field work"
    survey.dp.protect(schema, epsilon=1)
    pd.testing.assert_frame_equal(survey, before)
    assert survey.attrs == {"source": "field work"}
    with pytest.raises(NotProtectedError):
        survey.dp.mean("age", epsilon=0.1)


def test_two_protections_are_two_frames(survey, schema):
    first, second = survey.dp.protect(schema, epsilon=1), survey.dp.protect(schema, epsilon=2)
    first.dp.mean("age", epsilon=0.5)
    assert (first.dp.budget.left, second.dp.budget.left) == ((0.5, 0.0), (2.0, 0.0))
    assert first is not second


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("index", [[7] * 40, list("ab") * 20, pd.date_range("2020", periods=40)])
def test_any_index_will_do(survey, schema, index):
    plain = survey.dp.protect(schema, epsilon=100)
    assert released(survey.set_axis(index).dp.protect(schema, epsilon=100)) == released(plain)


def test_other_columns_may_be_called_anything(survey, schema):
    odd = survey.assign(dp=1)
    odd[3] = 1
    odd[None] = 1
    odd[("a", 1)] = 1
    private = odd.dp.protect(schema, epsilon=100)
    assert released(private) == released(survey.dp.protect(schema, epsilon=100))


@pytest.mark.parametrize("name", [3, ("a", 1), "dp", 2.5, pd.Timestamp("2020"), "a b", ""])
def test_a_declared_column_may_be_called_anything(name):
    domain = Domain((Column(name, "integer", lower=0, upper=9), Column("other", "float", lower=0, upper=1)))
    frame = pd.DataFrame([[4, 0.25], [5, 0.5]])
    frame.columns = pd.Index([name, "other"], tupleize_cols=False)
    private = frame.dp.protect(domain, epsilon=10**6)
    assert private.dp.mean([name], epsilon=10**4, rng=1).tolist() == pytest.approx([4.5], abs=0.1)
    assert private.dp.value_counts([name], epsilon=100, sort=False, rng=1).tolist()[4:6] == [1, 1]
    assert private.dp.cov([name, "other"], epsilon=10**4, rng=1).shape == (2, 2)
    chosen = private[(private[name] >= 5) & (private["other"] > 0.25)]
    assert chosen.dp.domain[name].lower == 5
    assert chosen.dp.count(epsilon=10**4, rng=1).tolist() == [1]
    doubled = private.assign(doubled=2 * private[name])
    assert doubled.dp.domain["doubled"].upper == 18


def test_columns_of_several_levels_are_named_by_tuples():
    frame = pd.DataFrame({("a", "x"): [1, 2], ("a", "y"): [3, 4]})
    domain = Domain((Column(("a", "x"), "integer", lower=0, upper=9),))
    assert frame.columns.nlevels == 2
    private = frame.dp.protect(domain, epsilon=10**6)
    assert private.dp.mean([("a", "x")], epsilon=10**5, rng=1).tolist() == pytest.approx([1.5], abs=0.01)
    with pytest.raises(InvalidDataError, match="'a'"):
        frame.dp.protect(Domain((Column("a", "integer", lower=0, upper=9),)), epsilon=1)


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
    "drop": lambda f: f.drop(columns="town"),
    "sort_values": lambda f: f.sort_values("age"),
    "reset_index": lambda f: f.reset_index(drop=True),
    "replace": lambda f: f.replace({"health": {"yes": "no"}}),
    "where": lambda f: f.where(f["age"] > 30),
    "transpose": lambda f: f.T,
    "arithmetic of a frame": lambda f: f + 1,
    "sum with a frame": lambda f: pd.DataFrame({"age": [1]}) + f,
    "eval": lambda f: f.eval("age = age + 1"),
    "merge": lambda f: pd.DataFrame({"age": [1]}).merge(f),
    "join": lambda f: pd.DataFrame({"age": [1]}).join(f),
    "concat": lambda f: pd.concat([f, f]),
    "groupby": lambda f: f.groupby("region"),
    "agg": lambda f: f.agg(["min", "max"]),
    "apply": lambda f: f.apply(lambda column: column),
    "map": lambda f: f["age"].map({33: 1}),
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
    "ufunc": lambda f: np.add(f["age"], 1),
    "str": lambda f: f["region"].str.upper(),
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
        assert "shows none" in str(error)
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
    ],
)
def test_the_call_to_write_instead_is_named(private, read, call):
    with pytest.raises(OpaqueFrameError) as caught:
        read(private)
    assert call in caught.value.hint


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
    for made in (private.copy(), copy.copy(private), copy.deepcopy(private), *copy.deepcopy([private])):
        assert made is private
    with pytest.raises(ParameterError, match="would not know what is spent") as caught:
        pickle.dumps(private)
    assert "Ledger" in caught.value.hint


@pytest.mark.parametrize(
    "other",
    [
        pd.Series([1, 2]),
        pd.Series([1, 2], dtype="Int64"),
        pd.Series(["a", "b"]),
        pd.Series(["a"], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.DataFrame({"age": [1]}),
        pd.Index([1, 2]),
        pd.date_range("2020", periods=2),
        pd.array([1, None], dtype="Int64"),
        pd.arrays.SparseArray([1, 2]),
        np.arange(3),
        np.array(3),
        np.float64(3),
        np.int64(3),
        np.bool_(True),
        np.str_("a"),
        np.datetime64("2020-01-01"),
        pd.Timestamp("2020-01-01"),
        pd.Timedelta("1D"),
        pd.NA,
        pd.NaT,
        Decimal(3),
        [1, 2],
        "private",
    ],
    ids=lambda other: type(other).__name__,
)
def test_operands_of_numpy_and_pandas_are_refused_in_both_orders(private, other, quietly):
    column = private["age"]
    if isinstance(other, str):
        other = private
    for symbol in ("lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "truediv", "floordiv", "mod"):
        run = getattr(operator, symbol)
        for pair in ((column, other), (other, column)):
            error = quietly(lambda run=run, pair=pair: run(*pair))
            assert isinstance(error, TypeError | ValueError), (symbol, pair)
    for run in (operator.and_, operator.or_):
        for pair in ((column > 30, other), (other, column > 30)):
            error = quietly(lambda run=run, pair=pair: run(*pair))
            assert isinstance(error, TypeError | ValueError), (run, pair)
    assert isinstance(quietly(lambda: column.isin([other])), ParameterError)
    assert isinstance(quietly(lambda: column.between(1, other)), ParameterError)
    assert isinstance(quietly(lambda: private.assign(x=column.clip(upper=other))), ParameterError)


EXPRESSIONS = {
    'f["age"] >= 30': "age >= 30",
    '30 <= f["age"]': "age >= 30",
    '(f["age"] > 25) & (f["region"] == "north")': "age > 25 and region == 'north'",
    '(f["age"] < 25) | (f["age"] > 60) | f["income"].isna()': "age < 25 or age > 60 or income.isna()",
    '~(f["age"] != 33)': "not age != 33",
    '~f["region"].isin(["north"])': "not region in ['north']",
    'f["age"].isin((30, 31)) | f["age"].isin(range(40, 43))': "age in [30, 31] or age in [40, 41, 42]",
    'f["age"].between(30, 40)': "30 <= age <= 40",
    'f["age"].between(30, 40, inclusive="neither")': "30 < age < 40",
    'f["age"].between(30, 40, "left")': "30 <= age < 40",
    'f["age"].between(30, 40, "right")': "30 < age <= 40",
    'f["income"].notna() & (f["income"] > -1.5)': "income.notna() and income > -1.5",
}


@pytest.mark.parametrize(("symbolic", "text"), EXPRESSIONS.items())
def test_a_symbolic_condition_is_the_filter_of_the_same_text(private, symbolic, text):
    condition = eval(symbolic, {"f": private})
    chosen, queried = private[condition], private.query(text)
    assert chosen.dp.domain == queried.dp.domain
    assert find(chosen).scope == find(queried).scope
    pd.testing.assert_frame_equal(find(chosen).snapshot, find(queried).snapshot)
    assert find(private.query(str(condition))).snapshot.equals(find(queried).snapshot)
    assert chosen.dp.lineage["step"].tolist() == [f"query({str(condition)!r})"]


ARITHMETIC = {
    'f["age"] + f["family"]': "age + family",
    '2 * f["age"] - 1': "2 * age - 1",
    '(f["age"] - f["family"]) ** 2 / 7': "(age - family) ** 2 / 7",
    '-f["age"] // 3 % 5': "-age // 3 % 5",
    'abs(f["income"]) - +f["age"]': "abs(income) - +age",
    'f["age"].clip(upper=40)': "age.clip(upper=40)",
    'f["income"].fillna(0).clip(1, 300) / 2': "income.fillna(0).clip(1, 300) / 2",
    '(f["age"] + f["family"]).clip(lower=50)': "(age + family).clip(lower=50)",
    '(f["age"] > 30) & (f["family"] > 1)': "age > 30 and family > 1",
    'f["region"]': "region",
    'f["age"] * -1.5': "age * -1.5",
}


@pytest.mark.parametrize(("symbolic", "text"), ARITHMETIC.items())
def test_symbolic_arithmetic_is_that_of_the_same_text(private, survey, symbolic, text):
    made, said = private.assign(new=eval(symbolic, {"f": private})), private.assign(new=text)
    assert made.dp.domain == said.dp.domain
    found = find(made).snapshot["new"]
    pd.testing.assert_series_equal(found, find(said).snapshot["new"])
    theirs = eval(symbolic, {"f": survey})
    assert [-1 if pd.isna(cell) else cell for cell in found] == pytest.approx(
        [-1 if pd.isna(cell) else cell for cell in theirs]
    )


def test_a_column_belongs_to_its_frame(private):
    adults, older = private[private["age"] >= 30], private.assign(age="age + 1")
    for use in (
        lambda: private[adults["age"] < 50],
        lambda: older[private["age"] < 50],
        lambda: older.assign(new=private["age"] + 1),
        lambda: private["age"] + older["age"],
        lambda: (private["age"] > 30) & (older["family"] > 1),
    ):
        with pytest.raises(
            ParameterError, match=r"different protected frames|another protected frame"
        ) as caught:
            use()
        assert "adults[" in caught.value.hint
    assert adults[adults["age"] < 50].dp.domain["age"].bounds("mean") == (30.0, 49.0)


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (lambda f: f["nobody"], "'nobody' is not declared"),
        (lambda f: f["age"] > f["region"], "is not numeric"),
        (lambda f: f[f["age"] * 2 > 3000], "no declared record can meet"),
        (lambda f: f["age"] > "a", "cannot be compared with 'a'"),
        (lambda f: f["age"] == None, "compares with None"),  # noqa: E711
        (lambda f: f["age"] > math.nan, "not a finite number"),
        (lambda f: f["region"] < "north", "has no order"),
        (lambda f: f["region"] == "nowhere", "not a declared category"),
        (lambda f: f["region"] + 1, "is not numeric"),
        (lambda f: f["age"] & f["family"], "alone is not a condition"),
        (lambda f: ~f["age"], "alone is not a condition"),
        (lambda f: f[f["age"]], "alone is not a condition"),
        (lambda f: f[f["age"] > 1000], "no declared record can meet"),
        (lambda f: 2 ** f["age"], "is not a whole constant"),
        (lambda f: (f["age"] > 3) & True, "joined with another condition"),
        (lambda f: f["age"].between(3, 4, inclusive="ends"), "'inclusive' must be one of"),
        (lambda f: f["age"].isin(lambda: [3]), "must be a list"),
        (lambda f: f.assign(new=f["region"].clip(upper=3)), "is of kind"),
        (lambda f: f.assign(new=f["age"].clip()), "takes lower and upper"),
        (lambda f: f.assign(new=(f["age"] + 1).fillna("x")), "must be a finite number"),
    ],
)
def test_symbolic_columns_keep_the_grammar_of_filters_and_arithmetic(private, use, reason):
    with pytest.raises((QueryError, ParameterError, DeclarationError), match=re.escape(reason)):
        use(private)


def test_a_condition_of_many_parts(private):
    met = functools.reduce(operator.or_, (private["age"] == age for age in range(20, 80)))
    assert private[met].dp.domain["age"].bounds("mean") == (20.0, 79.0)
    with pytest.raises((QueryError, RecursionError)):  # and no crash of the interpreter
        functools.reduce(operator.add, [1] * 3000, private["age"])


@pytest.mark.parametrize("frame", [pd.DataFrame({"age": [30]}), pd.DataFrame(), pd.DataFrame({"dp": [1]})])
def test_a_raw_frame_is_told_to_protect(frame):
    for use in (
        lambda: frame.dp.mean("age", epsilon=0.1),
        lambda: frame.dp.groupby("age"),
        lambda: frame.dp.domain,
        lambda: frame.dp.dr_ha("age", "age", 1),
    ):
        with pytest.raises(NotProtectedError, match="not protected") as caught:
            use()
        assert "df.dp.protect(schema, epsilon=" in caught.value.hint


def test_a_record_by_record_filter_keeps_the_guarantee(private):
    older = private.dp.query("age >= 30")
    assert older.dp.budget is private.dp.budget
    older.dp.mean("age", epsilon=1)
    assert private.dp.budget.spent == (1.0, 0.0)
    older[older["age"] > 50].dp.mean("age", epsilon=0.5)
    assert private.dp.budget.spent == (1.5, 0.0)


# ------------------------------------------------------------------ changed in place


def _write(array, value) -> None:
    array.setflags(write=True)
    array[0] = value


CHANGES = {
    "column": lambda f: f.__setitem__("age", 33),
    "column from array": lambda f: f.__setitem__("age", f["age"].to_numpy()[::-1].copy()),
    "column of other rows": lambda f: f.__setitem__("income", f["income"].shift(1)),
    "attribute": lambda f: setattr(f, "age", 33),
    "loc": lambda f: f.loc.__setitem__((0, "age"), 33),
    "loc of rows": lambda f: f.loc.__setitem__((f["age"] > 30, "age"), 33),
    "loc of all rows": lambda f: f.loc.__setitem__((slice(None), "age"), 33),
    "iloc": lambda f: f.iloc.__setitem__((0, 0), 33),
    "iloc of a column": lambda f: f.iloc.__setitem__((slice(None), 0), 33),
    "at": lambda f: f.at.__setitem__((0, "age"), 33),
    "iat": lambda f: f.iat.__setitem__((0, 0), 33),
    "at of text": lambda f: f.at.__setitem__((0, "region"), "west"),
    "isetitem": lambda f: f.isetitem(0, 33),
    "boolean frame": lambda f: f.__setitem__(f[["age"]] > 30, 33),
    "new row": lambda f: f.loc.__setitem__(99, f.iloc[0]),
    "new column": lambda f: f.__setitem__("extra", 1),
    "insert": lambda f: f.insert(0, "extra", 1),
    "drop a column": lambda f: f.drop(columns="town", inplace=True),
    "drop a row": lambda f: f.drop(index=0, inplace=True),
    "dropna": lambda f: f.dropna(inplace=True),
    "drop_duplicates": lambda f: f.drop_duplicates("region", inplace=True),
    "pop": lambda f: f.pop("age"),
    "del": lambda f: f.__delitem__("town"),
    "columns": lambda f: setattr(f, "columns", ["family", "region", "health", "age", *f.columns[4:]]),
    "set_axis by name": lambda f: f.rename_axis(columns={}, inplace=True) or f.pop("town"),
    "sort_values": lambda f: f.sort_values("income", inplace=True),
    "sort_index": lambda f: f.sort_index(ascending=False, inplace=True),
    "sort columns": lambda f: f.sort_index(axis=1, inplace=True),
    "set_index": lambda f: f.set_index("age", inplace=True),
    "reset_index": lambda f: f.reset_index(inplace=True),
    "fillna": lambda f: f.fillna({"income": 3.0}, inplace=True),
    "ffill": lambda f: f.bfill(inplace=True),
    "interpolate": lambda f: f[["income"]].interpolate(inplace=True) or f.__setitem__("income", 1.0),
    "replace": lambda f: f.replace({"health": {"yes": "no"}}, inplace=True),
    "mask": lambda f: f.mask(f["income"] > 300, f.iloc[::-1].set_axis(f.index), inplace=True),
    "where": lambda f: f.where(f["income"] > 300, f.iloc[::-1].set_axis(f.index), inplace=True),
    "clip": lambda f: f.__setitem__("age", f["age"].clip(30, 40)),
    "update": lambda f: f.update(pd.DataFrame({"age": [33] * 40})),
    "eval": lambda f: f.eval("age = age + 1", inplace=True),
    "query": lambda f: f.query("age > 30", inplace=True),
    "augmented": lambda f: f.__setitem__("age", f["age"].__iadd__(1)),
    "augmented frame": lambda f: f.__iadd__(f[["age", "family"]] * 0 + 1),
    "dtype": lambda f: f.__setitem__("age", f["age"].astype("int32")),
    "categories": lambda f: f.__setitem__("region", f["region"].astype("category")),
}
# Through memory that pandas hands out: pandas may refuse, or forget to look.
WRITES = {
    "values": lambda f: f["age"].values.__setitem__(0, 33),
    "to_numpy": lambda f: f["age"].to_numpy().__setitem__(0, 33),
    "asarray": lambda f: np.asarray(f["income"]).__setitem__(0, 33.0),
    "array": lambda f: f["age"].array.__setitem__(0, 33),
    "array of floats": lambda f: f["income"].array.__setitem__(1, 33.0),
    "array of text": lambda f: f["region"].array.__setitem__(0, "west"),
    "frame values": lambda f: f[["age"]].values.__setitem__((0, 0), 33),
    "writable": lambda f: _write(f["age"].to_numpy(), 33),
    "writable floats": lambda f: _write(f["income"].to_numpy(), 33.0),
    "chained": lambda f: f["age"].__setitem__(0, 33),
    "chained inplace": lambda f: f["income"].fillna(0, inplace=True),
    "series": lambda f: f["age"].iloc.__setitem__(0, 33),
    "view": lambda f: f.iloc[:].iloc.__setitem__((0, 0), 33),
    "shallow copy": lambda f: f.copy(deep=False).iloc.__setitem__((0, 0), 33),
    "buffer": lambda f: memoryview(f["age"].to_numpy()).__setitem__(0, 33),
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("change", {**CHANGES, **WRITES}.values(), ids={**CHANGES, **WRITES})
def test_a_protected_frame_cannot_be_changed(private, change, quietly):
    before = released(private)
    assert quietly(lambda: change(private)) is not None
    assert released(private) == before


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("change", "schemed"),
    # what writes to memory is tried on both, what pandas changes on either in turn
    [
        pytest.param(change, schemed, id=f"{name}-{'schema' if schemed else 'domain'}")
        for place, (name, change) in enumerate({**CHANGES, **WRITES}.items())
        for schemed in (True, False)
        if name in WRITES or schemed == (place % 2 == 0)
    ],
)
def test_no_change_of_the_original_reaches_a_release(survey, schema, change, schemed, writing, quietly):
    from pdprivacy import read_schema

    private = survey.dp.protect(schema if schemed else read_schema(schema), epsilon=100)
    before = released(private)
    quietly(lambda: change(survey))
    assert released(private) == before


@pytest.mark.parametrize("way", ["DataFrame", "dict", "Series"])
def test_no_change_of_an_array_beneath_the_frame_reaches_a_release(way, writing):
    cells = np.arange(10.0)
    made = {
        "DataFrame": lambda: pd.DataFrame(cells.reshape(-1, 1), columns=["x"], copy=False),
        "dict": lambda: pd.DataFrame({"x": cells}, copy=False),
        "Series": lambda: pd.Series(cells, name="x", copy=False).to_frame(),
    }[way]()
    private = made.dp.protect(Domain((Column("x", "float", lower=-1, upper=10),)), epsilon=100)
    stands = find(private)
    before = execute(releases.mean(stands, "x", epsilon=0.1, rng=1)).tolist()
    cells[:] = 10.0
    assert execute(releases.mean(stands, "x", epsilon=0.1, rng=1)).tolist() == before


KINDS = {
    "int8": (["int8"], [3, 4, 5], 6),
    "uint64": (["uint64"], [3, 4, 5], 6),
    "float32": (["float32"], [3.0, np.nan, 5.0], 6.0),
    "Int64": (["Int64"], [3, None, 5], 6),
    "Float64": (["Float64"], [3, None, 5], 6),
    "int64[pyarrow]": (["int64[pyarrow]"], [3, None, 5], 6),
    "double[pyarrow]": (["double[pyarrow]"], [3, None, 5], 6),
    "Sparse": ([pd.SparseDtype("float64")], [3.0, np.nan, 5.0], 6.0),
    "object numbers": (["object"], [3, None, Decimal("5")], 6),
    "object NA": (["object"], [3, pd.NA, 5], 6),
    "object NaN": (["object"], [3, float("nan"), 5], 6),
    "object text": (["object"], ["a", None, "b"], "b"),
    "str": (["str", "object"], ["a", None, "b"], "b"),
    "string": (["string"], ["a", None, "b"], "b"),
    "string[python]": (["string[python]"], ["a", None, "b"], "b"),
    "string[pyarrow]": (["string[pyarrow]"], ["a", None, "b"], "b"),
    "category": (["category"], ["a", None, "b"], "b"),
    "ordered category": ([pd.CategoricalDtype(["b", "a"], ordered=True)], ["a", None, "b"], "b"),
    "bool": (["bool"], [True, False, True], False),
    "boolean": (["boolean"], [True, None, True], False),
    "bool[pyarrow]": (["bool[pyarrow]"], [True, None, True], False),
    "object bool": (["object"], [True, None, True], False),
    "datetime": (["datetime64[ns]"], ["2020-01-01", None, "2020-01-02"], pd.Timestamp("2020-01-02")),
    "zoned": (
        ["datetime64[ns, UTC]"],
        ["2020-01-01", None, "2020-01-02"],
        pd.Timestamp("2020-01-02", tz="UTC"),
    ),
    "period": (["period[D]"], ["2020-01-01", None, "2020-01-02"], pd.Period("2020-01-02", "D")),
    "timedelta": (["timedelta64[ns]"], ["1D", None, "2D"], pd.Timedelta("2D")),
    "interval": (["interval"], [pd.Interval(0, 1), None, pd.Interval(1, 2)], pd.Interval(1, 2)),
}


def _of_kind(kind: str) -> tuple[pd.DataFrame, Domain, object]:
    (dtype, *_), cells, other = KINDS[kind]
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow")
    values = pd.Series(pd.array(cells, dtype=dtype)) if dtype != "object" else pd.Series(cells, dtype=object)
    if isinstance(cells[0], bool):
        column = Column("x", "boolean", nullable=True)
    elif isinstance(cells[0], int | float):
        column = Column("x", "float", nullable=True, lower=-9, upper=9)
    else:
        labels = tuple(dict.fromkeys([*values.dropna().tolist(), other]))
        column = Column("x", "category", nullable=True, categories=labels)
    frame = pd.DataFrame({"x": values, "y": [1, 2, 3]})
    return frame, Domain((column, Column("y", "integer", lower=0, upper=9))), other


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("kind", KINDS)
def test_no_change_of_a_column_of_any_kind_reaches_a_release(kind, writing, quietly):
    frame, domain, other = _of_kind(kind)
    make = (domain["x"].kind != "category" and "mean") or "value_counts"

    def number(protected):
        if make == "mean":
            return execute(releases.mean(protected, "x", epsilon=0.1, rng=1)).tolist()
        return execute(releases.value_counts(protected, "x", epsilon=0.1, sort=False, rng=1)).tolist()

    changes = (
        lambda f: f.iloc.__setitem__((0, 0), other),
        lambda f: f.at.__setitem__((0, "x"), other),
        lambda f: f.loc.__setitem__(([0, 1], "x"), other),
        lambda f: f.__setitem__("x", f["x"].iloc[::-1].set_axis(f.index)),
        lambda f: f["x"].array.__setitem__(0, other),
        lambda f: f.fillna({"x": other}, inplace=True),
    )
    for change in changes:
        original = frame.copy(deep=True)
        protected = find(original.dp.protect(domain, epsilon=100))
        before = number(protected)
        quietly(lambda change=change, original=original: change(original))
        assert number(protected) == before


@pytest.mark.skipif(not PANDAS_2, reason="pandas 3 has one way to write")
@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_switching_the_way_to_write_opens_no_door(survey, schema, before, after, quietly):
    with pd.option_context("mode.copy_on_write", before):
        private = survey.dp.protect(schema, epsilon=100)
        stands = find(private)
        told = numbers(stands)
    with pd.option_context("mode.copy_on_write", after):
        assert released(private) == told
        survey.iloc[0, 0] = 33
        assert numbers(stands) == told


# ------------------------------------------------------------------ lifetimes


@pytest.mark.full
def test_contents_of_a_frame_die_with_it(survey, schema, collected):
    private = survey.dp.protect(schema, epsilon=1)
    private.dp.mean("age", epsilon=0.1)
    frame, snapshot = weakref.ref(private), weakref.ref(find(private).snapshot)
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


# ------------------------------------------------------------------ budgets


def test_two_protections_share_one_budget(survey, schema):
    budget = Budget(1)
    first = survey.dp.protect(schema, budget=budget)
    second = survey.head(20).dp.protect(schema, budget=budget)
    assert first.dp.budget is second.dp.budget is budget
    first.dp.mean("age", epsilon=0.75)
    with pytest.raises(BudgetExceeded, match=r"0\.25"):
        second.dp.mean("age", epsilon=0.5)
    second.dp.mean("age", epsilon=0.25)
    assert budget.left == (0.0, 0.0)
    assert budget.entries["release"].tolist() == ["mean of age"] * 2


def test_a_protected_frame_is_not_protected_again(private, schema):
    frames = (private, private.query("age > 30"), private.copy())
    for options in ({"epsilon": 1}, {"budget": Budget(100, 1e-3)}, {"budget": private.dp.budget}):
        for frame in frames:
            with pytest.raises(ParameterError, match="protected already") as caught:
                frame.dp.protect(schema, **options)
            assert "budget=private.dp.budget" in caught.value.hint
    assert len(private.dp.budget.entries) == 0


def test_the_raw_frame_may_be_protected_again_with_the_same_budget(survey, private, schema):
    again = survey.dp.protect(schema, budget=private.dp.budget)
    again.dp.mean("age", epsilon=1)
    assert private.dp.budget.spent == (1.0, 0.0)


def test_one_budget_counts_one_kind_of_neighbours(survey, schema):
    budget = Budget(1)
    survey.dp.protect(schema, budget=budget)
    with pytest.raises(BudgetError, match="add_remove") as caught:
        survey.dp.protect(schema, budget=budget, neighbors="replace_one")
    assert "neighbors=" in caught.value.hint
    assert budget.left == (1.0, 0.0)


def test_a_protection_that_fails_does_not_bind_the_budget(survey, schema):
    budget = Budget(1)
    with pytest.raises(InvalidDataError):
        survey.assign(age=5).dp.protect(schema, budget=budget, neighbors="replace_one")
    survey.dp.protect(schema, budget=budget, neighbors="add_remove")
    assert budget.unit.neighbors == "add_remove"


def test_a_total_given_twice_must_be_the_same(survey, schema):
    assert survey.dp.protect(schema, epsilon=1, budget=Budget("1.0")).dp.budget.left == (1.0, 0.0)
    for options in ({"epsilon": 2}, {"epsilon": 1, "delta": 1e-6}, {"delta": 1e-6}):
        with pytest.raises(ParameterError, match="'budget'"):
            survey.dp.protect(schema, budget=Budget(1), **options)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("public_rows", [None, 30])
def test_a_filter_makes_the_number_of_rows_private(survey, schema, neighbors, public_rows):
    options = {} if neighbors == "replace_one" else {"public_rows": public_rows}
    private = survey.dp.protect(schema, epsilon=100, neighbors=neighbors, **options)
    for older in (private.query("age >= 30"), private[private["age"] >= 30], private.dropna()):
        assert (find(older).scope.rows, find(older).scope.filtered) == (None, True)


def test_a_declared_bound_that_is_the_datas_own_is_warned_about(survey):
    schema = pa.DataFrameSchema(
        {"age": pa.Column(int, pa.Check.in_range(20, 90), metadata={"dp": {}}), "family": pa.Column(int)}
    )
    with pytest.warns(DeclarationWarning, match="'age'") as caught:
        survey.dp.protect(schema, epsilon=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the call
    assert "family" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        survey.assign(age=survey["age"] + 1).dp.protect(schema, epsilon=1)


def test_bounds_that_are_confirmed_as_public_are_not_warned_about(survey):
    declared = pa.Column(int, pa.Check.in_range(20, 90), metadata={"dp": {"bounds": "public"}})
    column = Column("age", "integer", lower=20, upper=90, public_bounds=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private = survey.dp.protect(pa.DataFrameSchema({"age": declared}), epsilon=1)
        survey.dp.protect(Domain((column,)), epsilon=1)
    assert private.dp.domain["age"].bounds("mean") == (20.0, 90.0)
    plain = Domain((Column("age", "integer", lower=20, upper=90),))
    assert private.dp.domain.fingerprint() == plain.fingerprint()
    family = Column("family", "integer", lower=1, upper=int(survey["family"].max()))
    with pytest.warns(DeclarationWarning, match="'family'") as caught:
        survey.dp.protect(Domain((column, family)), epsilon=1)
    assert "'age'" not in str(caught[0].message)


CLEAN = pd.DataFrame({"age": [31, 54, 27], "pay": [1.0, 2.0, 3.0]})
MESSY = pd.DataFrame({"age": [31, 999, -5], "pay": [1.0, -2.0, math.inf]})


@pytest.mark.parametrize("on_invalid", ["clip", "drop"])
def test_the_warning_of_what_is_left_out_is_the_same_whatever_the_data_is(on_invalid):
    texts = set()
    for frame in (CLEAN, MESSY, CLEAN[:0]):
        with pytest.warns(InvalidDataWarning) as caught:
            frame.dp.protect(DOMAIN, epsilon=1, on_invalid=on_invalid)
        (one,) = (told for told in caught if told.category is InvalidDataWarning)
        assert one.filename == __file__
        texts.add(str(one.message))
    with (
        pytest.warns(InvalidDataWarning) as caught,
        pytest.raises(InvalidDataError),
    ):  # the same before a refusal
        CLEAN.astype(str).dp.protect(DOMAIN, epsilon=1, on_invalid=on_invalid)
    texts.add(str(caught[0].message))
    (text,) = texts
    assert f'on_invalid="{on_invalid}"' in text
    assert "private.dp.quality()" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InvalidDataWarning)
        CLEAN.dp.protect(DOMAIN, epsilon=1, on_invalid=on_invalid)
        CLEAN.dp.protect(DOMAIN, epsilon=1)  # which gives none


def test_a_refusal_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ParameterError, match="'on_invalid'"):
            CLEAN.dp.protect(DOMAIN, epsilon=1, on_invalid="keep")


def test_quality_says_in_one_line_what_became_of_the_records():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidDataWarning)
        dropped = MESSY.dp.protect(DOMAIN, epsilon=1, on_invalid="drop")
        clipped = MESSY.dp.protect(DOMAIN, epsilon=1, on_invalid="clip")
    line = "Confidential: 2 of 3 records (66.7 %) left out, 0 values clipped"
    assert repr(dropped.dp.quality()).splitlines()[0] == line
    assert repr(clipped.dp.quality()).startswith("Confidential: 0 of 3 records left out, 4 values clipped")
    assert repr(clipped.query("age > 30").dp.quality()) == repr(clipped.dp.quality())
    twice = pd.concat([CLEAN.assign(who=1), CLEAN.assign(who=2)])
    units = twice.dp.protect(DOMAIN, epsilon=1, unit="who", max_rows=1)
    assert repr(units.dp.quality()).startswith("Confidential: 4 of 6 records (66.7 %) left out")
    for shown in (dropped.dp.quality(), dropped.dp.quality().head(1)):
        assert shown.attrs["dp"]["confidential"] == "quality"
    assert "2 of 3 records (66.7 %) left out" in dropped.dp.quality().dp._repr_html_()


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
def test_every_fate_of_records_is_of_use_under_both_kinds_of_neighbours(neighbors, on_invalid):
    """No combination is one that no release can use, so none is refused."""
    private = CLEAN.dp.protect(DOMAIN, epsilon=10**6, neighbors=neighbors, on_invalid=on_invalid)
    for name in ("sum", "mean", "var", "median", "min"):
        assert np.isfinite(getattr(private.dp, name)("age", epsilon=10**4, rng=1)["age"])


# ------------------------------------------------------------------ clamping


DOMAIN = Domain((Column("age", "integer", lower=18, upper=90), Column("pay", "float", lower=0, upper=10)))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "object", "Int64"])
@pytest.mark.parametrize("outlier", [100_000, -100_000, 2**62])
def test_an_outlier_moves_a_release_as_a_bound_would(neighbors, dtype, outlier):
    ages = [20, 30, 40, 50, 60]

    def moved(last):
        cells = pd.Series([*ages, last]).astype(dtype)
        frame = pd.DataFrame({"age": cells, "pay": np.arange(6.0) + 1})
        private = frame.dp.protect(DOMAIN, epsilon=10**6, neighbors=neighbors, on_invalid="clip")
        return [
            *private.dp.mean("age", epsilon=10**4, rng=3),
            *private.dp.sum("age", epsilon=10**4, rng=3),
            *private.dp.var("age", epsilon=10**4, rng=3),
            *private.dp.cov(["age", "pay"], epsilon=10**4, rng=3).to_numpy().ravel(),
            *private.dp.histogram("age", 4, epsilon=10**4, rng=3),
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)
        assert moved(outlier) == moved(90 if outlier > 0 else 18)
        assert moved(outlier) != moved(54)  # there is something to be moved


def test_bounds_clip_at_every_read_whatever_was_validated():
    """The engine trusts no validation: the same column, unclipped, gives the same sums."""
    from pdprivacy.statistic import quantity

    age = DOMAIN["age"]
    wild = pd.DataFrame({"age": [20, 100_000, -5]})
    tame = pd.DataFrame({"age": [20, 90, 18]})
    q = quantity(age, "mean")
    assert sum_of(PandasEngine(wild), q) == sum_of(PandasEngine(tame), q)
    counted = Column("age", "integer", lower=18, upper=90, bins=(18, 45, 90))
    assert (
        PandasEngine(wild).table([counted], "m").tolist() == PandasEngine(tame).table([counted], "m").tolist()
    )


def test_a_null_that_pandas_does_not_call_one_moves_no_sum_further_than_its_sensitivity():
    """NaN inside a masked or Arrow column is no null to isna() everywhere."""
    pyarrow = pytest.importorskip("pyarrow")
    domain = Domain((Column("x", "float", lower=18, upper=90),))
    masked = pd.arrays.FloatingArray(np.array([20.0, np.nan, 40.0]), np.array([False] * 3))
    arrow = pd.arrays.ArrowExtensionArray(pyarrow.array([20.0, float("nan"), 40.0]))
    for cells in (masked, arrow):
        with pytest.raises(InvalidDataError, match="null"):
            pd.DataFrame({"x": cells}).dp.protect(domain, epsilon=1, neighbors="replace_one")
        kept = pd.DataFrame({"x": cells}).dp.protect(domain, epsilon=1, on_invalid="drop")
        assert find(kept).snapshot["x"].tolist() == [20.0, 40.0]


# ------------------------------------------------------------------ the order: charge, read, noise

CALLS = {
    "count": lambda p: p.dp.count(epsilon=0.5),
    "count of": lambda p: p.dp.count(["income", "age"], epsilon=0.5),
    "sum": lambda p: p.dp.sum(["age", "income"], epsilon=0.5),
    "mean": lambda p: p.dp.mean(["age", "income"], epsilon=0.5),
    "var": lambda p: p.dp.var("age", epsilon=0.5),
    "std": lambda p: p.dp.std("age", epsilon=0.5),
    "cov": lambda p: p.dp.cov(["age", "income"], epsilon=0.5),
    "corr": lambda p: p.dp.corr(["age", "income"], epsilon=0.5),
    "proportion": lambda p: p.dp.proportion("health", "yes", epsilon=0.5),
    "value_counts": lambda p: p.dp.value_counts("region", epsilon=0.5),
    "histogram": lambda p: p.dp.histogram("income", 5, epsilon=0.5),
    "crosstab": lambda p: p.dp.crosstab(["region", "age"], "health", epsilon=0.5),
    "pooled_var": lambda p: p.dp.pooled_var("family", by="region", epsilon=0.5),
    "pooled_cov": lambda p: p.dp.pooled_cov(["family", "age"], by="region", epsilon=0.5),
    "groupby count": lambda p: p.dp.groupby("region").count(epsilon=0.5),
    "groupby sum": lambda p: p.dp.groupby("region").sum("family", epsilon=0.5),
    "groupby mean": lambda p: p.dp.groupby("region").mean(["family", "income"], epsilon=0.5),
    "groupby var": lambda p: p.dp.groupby("region").var("family", epsilon=0.5),
}
READS = ("present", "table", "bins", "grouped")


def _spy(monkeypatch, look) -> None:
    """Call ``look`` before every read of the engine."""

    def wrapped(original):
        def method(self, *arguments, **options):
            look()
            return original(self, *arguments, **options)

        return method

    for name in READS:
        monkeypatch.setattr(PandasEngine, name, wrapped(getattr(PandasEngine, name)))
    rows = PandasEngine.rows.fget
    monkeypatch.setattr(PandasEngine, "rows", property(lambda self: (look(), rows(self))[1]))


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_charge_comes_before_the_first_read(survey, schema, call, neighbors, monkeypatch):
    private = survey.dp.protect(schema, epsilon=100, neighbors=neighbors)
    if call is CALLS["count"] and neighbors == "replace_one":
        private = private.dp.query("age > 30")
    seen: list[int] = []
    _spy(monkeypatch, lambda: seen.append(len(private.dp.budget.entries)))
    call(private)
    assert seen
    assert set(seen) == {1}
    assert private.dp.budget.spent == (0.5, 0.0)  # one epsilon is the whole cost


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_failure_after_the_charge_stays_charged(private, call, monkeypatch):
    def fail():
        raise MemoryError

    _spy(monkeypatch, fail)
    with pytest.raises(MemoryError):
        call(private)
    assert private.dp.budget.spent == (0.5, 0.0)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_release_that_the_budget_refuses_reads_nothing(survey, schema, call, monkeypatch):
    private = survey.dp.protect(schema, epsilon=0.25)

    def fail():
        raise AssertionError("read")

    _spy(monkeypatch, fail)
    with pytest.raises(BudgetExceeded, match=r"0\.25") as caught:
        call(private)
    assert "epsilon=0.25" in caught.value.hint
    assert private.dp.budget.left == (0.25, 0.0)
    assert len(private.dp.budget.entries) == 0


def test_transforms_and_the_curators_own_are_not_charged(private):
    private.dp.query("age > 30")
    private.dp.quality()
    private.dp.dr_ha(["region"], "health", [0.1, 1])
    private.dp.risk_curve("region", "health", 1)
    private.dp.choose_epsilon("region", "health")
    private.dp.utility(["region", "health"], draws=2)
    private.dp.tradeoff("region", "health", 1, draws=2)
    private.dp.homogeneity("region", "health")
    private.dp.repeated_risk([{"by": "region", "sensitive": "health", "epsilon": 1}])
    private.dp.groupby("region")
    assert len(private.dp.budget.entries) == 0


@pytest.mark.parametrize("mask", [[True, False], [False], slice(1), np.array([True, False])], ids=str)
def test_a_mask_of_cells_is_no_list_of_columns(mask):
    frame = pd.DataFrame({"age": [31, 54]})
    private = frame.dp.protect(Domain((Column("age", "integer", lower=0, upper=120),)), epsilon=1)
    with pytest.raises(ParameterError, match="takes a column, a list of columns or a condition"):
        private[mask]
