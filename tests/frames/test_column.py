"""Symbolic columns: conditions and arithmetic as in the text of the same step, and what they refuse."""

from __future__ import annotations

import functools
import math
import operator
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from pdprivacy.errors import DeclarationError, ParameterError, QueryError
from pdprivacy.frames import find
from tests.support.snapshots import records_of


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
    pd.testing.assert_frame_equal(records_of(chosen), records_of(queried))
    assert records_of(private.query(str(condition))).equals(records_of(queried))
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
    by_symbols, by_text = private.assign(new=eval(symbolic, {"f": private})), private.assign(new=text)
    assert by_symbols.dp.domain == by_text.dp.domain
    values = records_of(by_symbols)["new"]
    pd.testing.assert_series_equal(values, records_of(by_text)["new"])
    theirs = eval(symbolic, {"f": survey})
    assert [-1 if pd.isna(cell) else cell for cell in values] == pytest.approx(
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
        assert 'private[private["' in caught.value.hint
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
