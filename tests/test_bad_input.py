"""Invalid calls and data (`checks`) raise an error of the library with a remedy, and cost nothing.

And no cell of the data is told by anything: no error, no warning, nothing that is shown or stored.
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from pdprivacy import Budget, Column, Domain
from pdprivacy.errors import (
    BudgetExceeded,
    DeclarationError,
    DeclarationWarning,
    InvalidDataError,
    ParameterError,
    PrivacyError,
    QueryError,
    TableTooLargeError,
)
from pdprivacy.frames import find
from tests.support.canaries import CANARY, CELL, NUMBER
from tests.support.cases import check_each
from tests.support.snapshots import engine_of, records_of


def attempt(call, *arguments, **options) -> tuple[object, PrivacyError | None]:
    """The result of a call, or the error that the library raises."""
    try:
        return call(*arguments, **options), None
    except PrivacyError as error:
        return None, error


def column(dtype, *checks, nullable=False, **dp) -> pa.Column:
    return pa.Column(dtype, list(checks), nullable=nullable, metadata={"dp": dp})


def canary_schema() -> pa.DataFrameSchema:
    """A declaration that holds the canary in every column and names it nowhere."""
    wide = pa.Check.in_range(0, 2_000_000_000)
    return pa.DataFrameSchema(
        {
            "pay": column(int, wide, bins=[0, 10**6, 2 * 10**9]),
            "rent": column(float, wide, nullable=True),
            "free": column(float),
            "area": column(str, pa.Check.isin(["north", "south"]), role="quasi_identifier"),
            "ill": column(str, pa.Check.isin(["no", "yes"]), role="sensitive"),
            "name": column(str),
            "person": column(int, wide, role="identifier"),
            "member": column(bool),
            **{f"m{number}": column(int, pa.Check.in_range(0, 999)) for number in range(3)},
            "secret": pa.Column(str),
        }
    )


def canary_frame() -> pd.DataFrame:
    cells = 3 * [NUMBER, 5]
    return pd.DataFrame(
        {
            "pay": cells,
            "rent": [float(NUMBER), None, 7.0, NUMBER + 0.5, 1.0, 2.0],
            "free": np.array(cells) * 1.0,
            "area": ["north", "south", "south"] * 2,
            "ill": ["no", "yes"] * 3,
            "name": [CANARY, "x", "y"] * 2,
            "person": cells,
            "member": [True, False] * 3,
            **{f"m{number}": [1, 2, 3] * 2 for number in range(3)},
            "secret": [CANARY + str(NUMBER)] * 6,
            CANARY: cells,
        },
        index=pd.Index([CANARY, NUMBER] * 3, name=CANARY + " index"),
    )


@pytest.fixture
def canaries() -> pd.DataFrame:
    return canary_frame().dp.protect(canary_schema(), epsilon=100, delta=1e-3)


RAW = pd.Series([NUMBER, NUMBER])
TEXT = pd.Series([CANARY])

# ------------------------------------------------------------------ calls that are refused
# name: (call, error, what the message or its hint says)

BAD = {
    "undeclared column": (lambda p: p.dp.mean("secret", epsilon=1), DeclarationError, "metadata="),
    "no such column": (lambda p: p.dp.mean("nope", epsilon=1), DeclarationError, "declared: 'pay'"),
    "no bounds": (lambda p: p.dp.mean("free", epsilon=1), DeclarationError, "pa.Check.in_range("),
    "no bounds in a sum": (lambda p: p.dp.sum("free", epsilon=1), DeclarationError, "pa.Check.in_range("),
    "no bounds in a covariance": (
        lambda p: p.dp.cov(["pay", "free"], epsilon=1),
        DeclarationError,
        "pa.Check.in_range(",
    ),
    "no bounds in a histogram": (
        lambda p: p.dp.histogram("free", 5, epsilon=1),
        DeclarationError,
        "in_range(",
    ),
    "text in a mean": (lambda p: p.dp.mean("area", epsilon=1), DeclarationError, "not numeric"),
    "no labels": (lambda p: p.dp.value_counts("name", epsilon=1), DeclarationError, "pa.Check.isin("),
    "no labels in a table": (lambda p: p.dp.crosstab("area", "name", epsilon=1), DeclarationError, "isin("),
    "no labels of a key": (lambda p: p.dp.groupby("name"), DeclarationError, "pa.Check.isin("),
    "no bins": (lambda p: p.dp.value_counts("free", epsilon=1), DeclarationError, '"bins"'),
    "identifier": (lambda p: p.dp.mean("person", epsilon=1), DeclarationError, "'identifier'"),
    "identifier counted": (lambda p: p.dp.count("person", epsilon=1), DeclarationError, "'identifier'"),
    "identifier in a table": (
        lambda p: p.dp.crosstab("person", "ill", epsilon=1),
        DeclarationError,
        "identifier",
    ),
    "identifier as key": (lambda p: p.dp.groupby("person"), DeclarationError, "identifier"),
    "no columns": (lambda p: p.dp.mean([], epsilon=1), ParameterError, "at least one column"),
    "columns twice": (lambda p: p.dp.mean(["pay", "pay"], epsilon=1), ParameterError, "twice"),
    "a tuple of columns": (
        lambda p: p.dp.mean(("pay", "rent"), epsilon=1),
        DeclarationError,
        "declared: 'pay'",
    ),
    "a set": (lambda p: p.dp.mean({"pay"}, epsilon=1), ParameterError, "list of labels"),
    "a dict": (lambda p: p.dp.mean({"pay": 1}, epsilon=1), ParameterError, "list of labels"),
    "a nested list": (lambda p: p.dp.mean(["pay", ["rent"]], epsilon=1), ParameterError, "list of labels"),
    "a Series": (lambda p: p.dp.mean(RAW, epsilon=1), ParameterError, "list of labels"),
    "a Series in a list": (lambda p: p.dp.mean([RAW], epsilon=1), ParameterError, "list of labels"),
    "a frame": (lambda p: p.dp.mean(pd.DataFrame(RAW), epsilon=1), ParameterError, "list of labels"),
    "an array": (lambda p: p.dp.mean(np.array([NUMBER, 1]), epsilon=1), ParameterError, "list of labels"),
    "pd.NA as a column": (
        lambda p: p.dp.mean(pd.NA, epsilon=1),
        (ParameterError, DeclarationError),
        "column",
    ),
    "None as an index": (lambda p: p.dp.crosstab(None, "ill", epsilon=1), PrivacyError, "'crosstab'|column"),
    "None as a key": (lambda p: p.dp.groupby(None), PrivacyError, "'groupby'|column"),
    "a function as a key": (lambda p: p.dp.groupby(len), PrivacyError, "not declared"),
    "one column for a covariance": (lambda p: p.dp.cov("pay", epsilon=1), ParameterError, "use var"),
    "two for a histogram": (lambda p: p.dp.histogram(["pay", "rent"], epsilon=1), ParameterError, "crosstab"),
    "two for a proportion": (
        lambda p: p.dp.proportion(["ill", "area"], epsilon=1),
        ParameterError,
        "one column",
    ),
    "index and columns share": (lambda p: p.dp.crosstab("ill", "ill", epsilon=1), ParameterError, "share"),
    "value and key": (lambda p: p.dp.groupby("pay").mean("pay", epsilon=1), ParameterError, "as a key"),
    "value and key pooled": (
        lambda p: p.dp.pooled_var("pay", by="pay", epsilon=1),
        ParameterError,
        "as a key",
    ),
    "over budget": (lambda p: p.dp.mean("pay", epsilon=101), BudgetExceeded, "epsilon=100 or less"),
    "over delta": (
        lambda p: p.dp.mean("pay", epsilon=1, delta=0.01, mechanism="gaussian"),
        BudgetExceeded,
        "need no delta",
    ),
    "table too large": (
        lambda p: p.dp.value_counts(["m0", "m1", "m2"], epsilon=1),
        TableTooLargeError,
        "coarser bins",
    ),
    "crosstab too large": (
        lambda p: p.dp.crosstab(["m0", "m1"], "m2", epsilon=1),
        TableTooLargeError,
        "coarser bins",
    ),
    "groups too many": (lambda p: p.dp.groupby(["m0", "m1", "m2"]), TableTooLargeError, "coarser bins"),
    "pooled groups too many": (
        lambda p: p.dp.pooled_var("pay", by=["m0", "m1", "m2"], epsilon=1),
        TableTooLargeError,
        "coarser bins",
    ),
    "risk of too many": (
        lambda p: p.dp.dr_ha(["m0", "m1", "m2"], "ill", 1),
        TableTooLargeError,
        "coarser bins",
    ),
    "geometric mean": (
        lambda p: p.dp.mean("pay", epsilon=1, mechanism="geometric"),
        ParameterError,
        'mechanism="laplace"',
    ),
    "gaussian without delta": (
        lambda p: p.dp.mean("pay", epsilon=1, mechanism="gaussian"),
        ParameterError,
        "delta=1e-6",
    ),
    "laplace with delta": (lambda p: p.dp.mean("pay", epsilon=1, delta=1e-6), ParameterError, "gaussian"),
    "geometric with delta": (lambda p: p.dp.count(epsilon=1, delta=1e-6), ParameterError, "gaussian"),
    "value not declared": (
        lambda p: p.dp.proportion("ill", "maybe", epsilon=1),
        ParameterError,
        "'no', 'yes'",
    ),
    "default value of a text": (lambda p: p.dp.proportion("ill", epsilon=1), ParameterError, "'no', 'yes'"),
    "value is a Series": (lambda p: p.dp.proportion("ill", TEXT, epsilon=1), ParameterError, "label"),
    "value is an array": (
        lambda p: p.dp.proportion("ill", np.array(["no", CANARY]), epsilon=1),
        ParameterError,
        "ndarray",
    ),
    "q is a column": (
        lambda p: p.dp.quantile("pay", pd.Series([40404.25]), epsilon=1),
        ParameterError,
        "Series",
    ),
    "a row is a label": (
        lambda p: p.dp.mean(next(pd.DataFrame({"a": [CANARY]}).itertuples()), epsilon=1),
        DeclarationError,
        "Pandas",
    ),
    "labels are cells": (lambda p: p.dp.mean(pd.Index([CANARY]), epsilon=1), DeclarationError, "Index"),
    "value is NA": (lambda p: p.dp.proportion("ill", pd.NA, epsilon=1), ParameterError, "label"),
    "value is None": (lambda p: p.dp.proportion("pay", None, epsilon=1), PrivacyError, "label"),
    "proportion of no labels": (lambda p: p.dp.proportion("free", 1.0, epsilon=1), DeclarationError, "cells"),
    "sensitive in by": (lambda p: p.dp.dr_ha("ill", "ill", 1), ParameterError, "'sensitive'"),
    "average": (
        lambda p: p.dp.dr_ha("area", "ill", 1, average="people"),
        ParameterError,
        "'cells', 'records', None",
    ),
    "gaussian risk without delta": (
        lambda p: p.dp.dr_ha("area", "ill", 1, mechanism="gaussian"),
        ParameterError,
        "delta",
    ),
    "query of no text": (lambda p: p.dp.query(None), ParameterError, 'private.query("pay'),
    "query of a Series": (lambda p: p.dp.query(RAW), ParameterError, 'private.query("pay'),
    "query of a mask": (lambda p: p.dp.query(p["pay"] > 3), ParameterError, 'private.query("pay'),
    "query of nothing": (lambda p: p.dp.query(""), QueryError, "a filter compares"),
    "query of an undeclared column": (
        lambda p: p.dp.query("secret == 'x'"),
        PrivacyError,
        "metadata=|declared",
    ),
    "query of a variable": (lambda p: p.dp.query("pay == @RAW"), QueryError, "RAW = RAW.item()"),
    "query of a call": (lambda p: p.dp.query("pay > pay.mean()"), QueryError, "."),
    "query of code": (lambda p: p.dp.query("__import__('os').getcwd() == 1"), QueryError, "."),
    "query of the index": (lambda p: p.dp.query("index > 1"), PrivacyError, "declared"),
    "query that none can meet": (lambda p: p.dp.query("pay < 0"), QueryError, "can meet"),
}

for _name, _value in {
    "zero": 0,
    "negative": -1,
    "infinite": float("inf"),
    "NaN": float("nan"),
    "text": "a lot",
    "empty text": "",
    "None": None,
    "bool": True,
    "list": [1],
    "dict": {},
    "complex": 1j,
    "bytes": b"1",
    "NA": pd.NA,
    "NaT": pd.NaT,
    "Decimal NaN": Decimal("NaN"),
    "division by zero": "1/0",
    "array": np.array([NUMBER, 1]),
    "Series": RAW,
    "Series of text": TEXT,
    "frame": pd.DataFrame({"x": RAW}),
}.items():
    for _method in ("mean", "value_counts", "count", "cov", "crosstab", "dr_ha", "groupby"):
        _arguments = {
            "mean": ("pay",),
            "value_counts": ("area",),
            "count": (),
            "cov": (["pay", "rent"],),
            "crosstab": ("area", "ill"),
            "dr_ha": ("area", "ill"),
            "groupby": ("area",),
        }[_method]
        if _method == "dr_ha" and _name in ("list", "array", "Series", "frame"):
            continue  # several levels of epsilon may be asked for at once
        if _method == "groupby":
            BAD[f"epsilon {_name} of groups"] = (
                lambda p, v=_value: p.dp.groupby("area").mean("pay", epsilon=v),
                ParameterError,
                "'epsilon' must be",
            )
            continue
        BAD[f"epsilon {_name} in {_method}"] = (
            lambda p, m=_method, a=_arguments, v=_value: getattr(p.dp, m)(*a, epsilon=v),
            ParameterError,
            "'epsilon' must be",
        )
    if _name != "zero":
        BAD[f"delta {_name}"] = (
            lambda p, v=_value: p.dp.mean("pay", epsilon=1, delta=v, mechanism="gaussian"),
            ParameterError,
            "'delta' must be",
        )
    BAD[f"split {_name}"] = (
        lambda p, v=_value: (
            p.dp.mean(["pay", "rent"], epsilon=1, split={"pay": v, "rent": 1})
            if v is not True
            else p.dp.mean(["pay", "rent"], epsilon=1, split={"pay": "x", "rent": 1})
        ),
        ParameterError,
        "'split' must",
    )
for _value in (1, 2, 1.5, "1"):
    BAD[f"delta of {_value!r}"] = (
        lambda p, v=_value: p.dp.mean("pay", epsilon=1, delta=v, mechanism="gaussian"),
        ParameterError,
        "'delta' must be in [0, 1)",
    )
for _name, _value in {
    "other name": "cauchy",
    "upper case": "Laplace",
    "None": None,
    "number": 1,
    "list": ["laplace"],
    "Series": TEXT,
    "array": np.array(["laplace", CANARY]),
    "class": int,
}.items():
    for _method, _arguments in {
        "mean": ("pay",),
        "crosstab": ("area", "ill"),
        "dr_ha": ("area", "ill", 1),
        "count": (),
    }.items():
        BAD[f"mechanism {_name} in {_method}"] = (
            lambda p, m=_method, a=_arguments, v=_value: getattr(p.dp, m)(
                *a, mechanism=v, **({} if m == "dr_ha" else {"epsilon": 1})
            ),
            ParameterError,
            "'mechanism' must be one of 'laplace', 'gaussian', ",
        )
for _name, _value in {
    "text": "abc",
    "of text": [1, "x"],
    "broken": 3.5,
    "zero": 0,
    "negative": -1,
    "True": True,
    "too many": 10**7,
    "one edge": [1],
    "none": [],
    "falling": [2, 1],
    "equal": [1, 1],
    "infinite": [0, float("inf")],
    "NaN": [float("nan"), 1],
    "None among": [None, 1],
    "complex": [1j, 2],
    "nested": [[1, 2], [3, 4]],
    "matrix": np.array([[1, 2], [3, 4]]),
    "dict": {},
    "raw": RAW,
    "raw text": TEXT,
    "NA among": [pd.NA, 1],
}.items():
    BAD[f"bins {_name}"] = (
        lambda p, v=_value: p.dp.histogram("pay", v, epsilon=1),
        ParameterError,
        "'bins' must",
    )
for _name, _value in {
    "empty": {},
    "too few": {"pay": 1},
    "too many": {"pay": 1, "rent": 1, "free": 1},
    "list": [1, 2],
    "number": 5,
    "text": "x",
    "Series": RAW,
}.items():
    for _group in (False, True):
        BAD[f"split is {_name}{' of groups' if _group else ''}"] = (
            lambda p, v=_value, g=_group: (p.dp.groupby("area") if g else p.dp).mean(
                ["pay", "rent"], epsilon=1, split=v
            ),
            ParameterError,
            "'split' must map",
        )
for _name, _value in {
    "None": None,
    "text": "rows",
    "list": ["all"],
    "number": 2,
    "Series": TEXT,
    "array": np.array([NUMBER, 2]),
}.items():
    BAD[f"normalize {_name}"] = (
        lambda p, v=_value: p.dp.crosstab("area", "ill", epsilon=1, normalize=v),
        ParameterError,
        "'normalize' must be",
    )
for _name, _value in {"Series": RAW, "array": np.array([NUMBER, 1])}.items():
    BAD[f"margins {_name}"] = (
        lambda p, v=_value: p.dp.crosstab("area", "ill", epsilon=1, margins=v),
        ParameterError,
        "'margins'",
    )
    BAD[f"normalize of counts {_name}"] = (
        lambda p, v=_value: p.dp.value_counts("area", epsilon=1, normalize=v),
        ParameterError,
        "'normalize'",
    )
    BAD[f"sort {_name}"] = (
        lambda p, v=_value: p.dp.value_counts("area", epsilon=1, sort=v),
        ParameterError,
        "'sort'",
    )
for _name, _value in {
    "text": "x",
    "negative": -1,
    "broken": 1.5,
    "list": [1],
    "True": True,
    "old": np.random.RandomState(1),
    "Series": RAW,
}.items():
    BAD[f"rng {_name}"] = (
        lambda p, v=_value: p.dp.mean("pay", epsilon=1, rng=v),
        ParameterError,
        "'rng' must",
    )
# Noise wider than can be drawn is known from declared facts, and refused before it is paid for.
for _value in (1e-17, 1e-320, "1e-400"):
    BAD[f"epsilon as small as {_value}"] = (
        lambda p, v=_value: p.dp.mean("pay", epsilon=v),
        ParameterError,
        "epsilon",
    )
for _value in (1e-17, 1e-320):
    BAD[f"epsilon of a count as small as {_value}"] = (
        lambda p, v=_value: p.dp.count(epsilon=v),
        ParameterError,
        "epsilon",
    )


def safe(text: str) -> bool:
    return CELL.search(text) is None


def test_bad_calls_are_refused_for_free(canaries, texts_of):
    budget = canaries.dp.budget

    def check(bad):
        call, error, says = BAD[bad]
        with pytest.raises(error) as caught:
            call(canaries)
        assert isinstance(caught.value, PrivacyError)
        message = str(caught.value)
        assert any(piece in message for piece in says.split("|")), message
        assert len(message) < 600
        assert message.split("\nHint: ")[0].rstrip().endswith((".", ")", "?"))
        assert caught.value.hint or re.search("must|needs|takes|got|declared|can meet|share|both", message)
        for text in texts_of(caught.value):
            assert safe(text), text
        assert len(budget.entries) == 0
        assert budget.left == (100.0, 1e-3)
        assert find(canaries)

    check_each(BAD, check)


# ------------------------------------------------------------------ protections that are refused

DOMAIN = Domain((Column("age", "integer", lower=18, upper=90),))
FRAME = pd.DataFrame({"age": [20, 30]})


def inferred():
    return pa.infer_schema(FRAME)


class People(pa.DataFrameModel):
    age: int


PROTECTIONS = {
    "no budget": (lambda: FRAME.dp.protect(DOMAIN), ParameterError, "epsilon=1.0"),
    "budget no budget": (lambda: FRAME.dp.protect(DOMAIN, budget=1), ParameterError, "Budget"),
    "budget is data": (lambda: FRAME.dp.protect(DOMAIN, budget=RAW), ParameterError, "Budget"),
    "schema None": (lambda: FRAME.dp.protect(None, epsilon=1), ParameterError, "pa.DataFrameSchema"),
    "schema a dict": (lambda: FRAME.dp.protect({"age": int}, epsilon=1), ParameterError, "DataFrameSchema"),
    "schema a column": (
        lambda: FRAME.dp.protect(pa.Column(int), epsilon=1),
        ParameterError,
        "DataFrameSchema",
    ),
    "schema a frame": (lambda: FRAME.dp.protect(FRAME, epsilon=1), ParameterError, "DataFrameSchema"),
    "schema a series schema": (
        lambda: FRAME.dp.protect(pa.SeriesSchema(int), epsilon=1),
        ParameterError,
        "DataFrameSchema",
    ),
    "schema inferred": (
        lambda: FRAME.dp.protect(inferred(), epsilon=1),
        DeclarationError,
        'metadata={"dp": {}}',
    ),
    "model that declares nothing": (
        lambda: FRAME.dp.protect(People, epsilon=1),
        DeclarationError,
        'metadata={"dp": {}}',
    ),
    "schema of no columns": (
        lambda: FRAME.dp.protect(pa.DataFrameSchema(), epsilon=1),
        DeclarationError,
        "dp",
    ),
    "domain of no columns": (lambda: FRAME.dp.protect(Domain(()), epsilon=1), DeclarationError, "declared"),
    "neighbors": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, neighbors="rows"),
        ParameterError,
        "'add_remove', 'replace_one'",
    ),
    "neighbors a list": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, neighbors=["add_remove"]),
        ParameterError,
        "'neighbors'",
    ),
    "neighbors data": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, neighbors=TEXT),
        ParameterError,
        "'neighbors'",
    ),
    "on_invalid": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, on_invalid="keep"),
        ParameterError,
        "'on_invalid'",
    ),
    "on_invalid data": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, on_invalid=TEXT),
        ParameterError,
        "'on_invalid'",
    ),
    "public_rows too many": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, public_rows=3),
        InvalidDataError,
        "at least",
    ),
    "public_rows with replace_one": (
        lambda: FRAME.dp.protect(DOMAIN, epsilon=1, public_rows=2, neighbors="replace_one"),
        ParameterError,
        "neighbors='add_remove'",
    ),
    "doubled column": (
        lambda: pd.DataFrame([[20, 30]], columns=["age", "age"]).dp.protect(DOMAIN, epsilon=1),
        InvalidDataError,
        "more than once",
    ),
    "missing column": (
        lambda: pd.DataFrame({CANARY: [NUMBER]}).dp.protect(DOMAIN, epsilon=1),
        InvalidDataError,
        "'age'",
    ),
    "frame of nothing": (lambda: pd.DataFrame().dp.protect(DOMAIN, epsilon=1), InvalidDataError, "'age'"),
}
for _value in (0, -1, 1.5, "2", True, [2], float("nan"), RAW):
    PROTECTIONS[f"public_rows {str(_value)[:8]!r}"] = (
        lambda v=_value: FRAME.dp.protect(DOMAIN, epsilon=1, public_rows=v),
        ParameterError,
        "'public_rows' must be a positive whole number",
    )
for _value in (0, -1, float("inf"), float("nan"), "x", [1], True, 1j, RAW, TEXT, {}):
    PROTECTIONS[f"epsilon {str(_value)[:8]!r}"] = (
        lambda v=_value: FRAME.dp.protect(DOMAIN, epsilon=v),
        ParameterError,
        "'epsilon' must be",
    )
for _value in (1, 1.5, -0.1, float("nan"), "x", None, RAW):
    PROTECTIONS[f"delta {str(_value)[:8]!r}"] = (
        lambda v=_value: FRAME.dp.protect(DOMAIN, epsilon=1, delta=v),
        ParameterError,
        "'delta' must be",
    )


@pytest.mark.parametrize("bad", PROTECTIONS)
def test_a_bad_protection_is_refused(bad, texts_of):
    call, error, says = PROTECTIONS[bad]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, PrivacyError)
    assert says in str(caught.value)
    for text in texts_of(caught.value):
        assert safe(text.replace(f"'{CANARY}'", "") if "budget" in bad else text), text
    assert FRAME.attrs == {}


@pytest.mark.parametrize("public_rows", [1, 2, np.int64(2)])
def test_few_public_rows_are_enough_or_told_to_be_too_few(public_rows):
    private = FRAME.dp.protect(DOMAIN, epsilon=10, public_rows=public_rows)
    for call in (private.dp.mean, private.dp.var, private.dp.std):
        spent = private.dp.budget.spent
        result, error = attempt(call, "age", epsilon=1, rng=1)
        if error is None:
            assert result.dp.metadata.epsilon == 1
        else:
            assert "rows" in str(error)
            assert error.hint
            assert private.dp.budget.spent == spent


# ------------------------------------------------------------------ data that is refused

INVALID = {
    "beyond the bounds": [20, NUMBER],
    "infinite": [20.0, float("inf")],
    "NaN": [float(NUMBER), float("nan")],
    "text": ["20", CANARY],
    "text and numbers": pd.Series([20, CANARY], dtype=object),
    "numbers as text": pd.Series([str(NUMBER), "20"], dtype=object),
    "None": pd.Series([NUMBER, None], dtype=object),
    "NA": pd.array([NUMBER, None], dtype="Int64"),
    "broken": [20.5, NUMBER + 0.5],
    "bool": [True, False],
    "bools among numbers": pd.Series([NUMBER, True], dtype=object),
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02"]),
    "categories": pd.Categorical([NUMBER, 20]),
    "categories of text": pd.Categorical([CANARY, "20"]),
    "huge": pd.Series([2**63 + NUMBER, 20], dtype="uint64"),
    "huger": pd.Series([10**400 + NUMBER, 20], dtype=object),
    "decimals": pd.Series([Decimal(NUMBER), Decimal("NaN")], dtype=object),
    "signalling": pd.Series([Decimal("sNaN"), Decimal(NUMBER)], dtype=object),
    "complex": [NUMBER + 1j, 20],
    "lists": pd.Series([[NUMBER], {CANARY: 1}], dtype=object),
    "surrogates": pd.Series(["\ud800" + CANARY, 20], dtype=object),
    "bytes": pd.Series([CANARY.encode(), 20], dtype=object),
}
DECLARATIONS = {
    "domain": DOMAIN,
    "schema": pa.DataFrameSchema({"age": column(int, pa.Check.in_range(18, 90))}),
    "coerced": pa.DataFrameSchema(
        {"age": pa.Column(int, pa.Check.in_range(18, 90), coerce=True, metadata={"dp": {}})}
    ),
    "float": pa.DataFrameSchema({"age": column(float, pa.Check.in_range(18, 90))}),
    "labels": pa.DataFrameSchema({"age": column(str, pa.Check.isin(["a", "b"]))}),
    "domain of labels": Domain((Column("age", "category", categories=("a", "b")),)),
    "domain of truth": Domain((Column("age", "boolean"),)),
    "checked": pa.DataFrameSchema(
        {"age": pa.Column(None, pa.Check(lambda s: s.map(str) == "a", error="is a"), metadata={"dp": {}})}
    ),
    "checked cell by cell": pa.DataFrameSchema(
        {"age": pa.Column(None, pa.Check(lambda x: 1 / (x == 0) > 1, element_wise=True), metadata={"dp": {}})}
    ),
}


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("cells", INVALID)
def test_data_that_does_not_fit_is_refused_without_a_cell(cells, texts_of):
    # all cells with all declarations; what is done with them takes turns, and meets each of both
    turns = itertools.cycle(("raise", "clip", "drop"))
    start = list(INVALID).index(cells) % 3
    check_each(
        zip(DECLARATIONS, itertools.islice(turns, start, None), strict=False),
        lambda case: check_misfit(cells, *case, texts_of),
    )


def check_misfit(cells, declaration, on_invalid, texts_of):
    frame = pd.DataFrame({"age": INVALID[cells], CANARY: [NUMBER, NUMBER]}, index=[CANARY, NUMBER])
    if isinstance(INVALID[cells], pd.Series):
        frame = pd.DataFrame({"age": INVALID[cells], CANARY: [NUMBER, NUMBER]})
    budget = Budget(1)
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        private, error = attempt(
            frame.dp.protect, DECLARATIONS[declaration], budget=budget, on_invalid=on_invalid
        )
    if error is None:
        private.dp.count(epsilon=1)  # what was taken can be counted
    else:
        assert isinstance(error, InvalidDataError)
        assert "'age'" in str(error) or "schema" in str(error)
        assert error.hint
        for text in texts_of(error):
            assert safe(text), text
    for warning in recorded:
        assert safe(str(warning.message)), warning
        assert safe(repr(vars(warning.message)))
    assert len(budget.entries) <= 1


# ------------------------------------------------------------------ odd tables that are fine


def every_release(p) -> list[object]:
    return [
        p.dp.mean(["pay", "rent"], epsilon=1),
        p.dp.sum(epsilon=1),
        p.dp.var("rent", epsilon=1),
        p.dp.std("pay", epsilon=1),
        p.dp.cov(["pay", "rent"], epsilon=1),
        p.dp.corr(["pay", "rent"], epsilon=1),
        p.dp.count(["name", "pay", "free"], epsilon=1),
        p.dp.proportion("ill", "yes", epsilon=1),
        p.dp.value_counts(["area", "ill"], epsilon=1),
        p.dp.histogram("rent", 4, epsilon=1),
        p.dp.crosstab(["area", "pay"], "ill", epsilon=1, margins=True),
        p.dp.crosstab("area", "ill", epsilon=1, normalize="index"),
        p.dp.pooled_var("pay", by="area", epsilon=1),
        p.dp.pooled_cov(["pay", "rent"], by="area", epsilon=1),
        p.dp.groupby("area").count(epsilon=1),
        p.dp.groupby(["area", "member"]).sum(["pay", "rent"], epsilon=1),
        p.dp.groupby("area").mean("rent", epsilon=1),
        p.dp.groupby("area").var("pay", epsilon=1),
        p.dp.query("pay >= 5 and area == 'north'").dp.mean("rent", epsilon=1),
    ]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tables_of_hardly_any_rows_are_released_or_refused_for_free(rows, neighbors):
    frame = canary_frame().iloc[:rows]
    private = frame.dp.protect(canary_schema(), epsilon=100, neighbors=neighbors)
    calls = [
        lambda p: p.dp.mean("pay", epsilon=1),
        lambda p: p.dp.mean("rent", epsilon=1),
        lambda p: p.dp.var(["pay"], epsilon=1),
        lambda p: p.dp.cov(["pay", "m0"], epsilon=1),
        lambda p: p.dp.corr(["pay", "rent"], epsilon=1),
        lambda p: p.dp.sum("pay", epsilon=1),
        lambda p: p.dp.proportion("ill", "yes", epsilon=1),
        lambda p: p.dp.value_counts("area", epsilon=1),
        lambda p: p.dp.histogram("rent", epsilon=1),
        lambda p: p.dp.crosstab("area", "ill", epsilon=1, normalize=True),
        lambda p: p.dp.pooled_var("pay", by="area", epsilon=1),
        lambda p: p.dp.pooled_cov(["pay", "m0"], by="area", epsilon=1),
        lambda p: p.dp.groupby("area").mean("pay", epsilon=1),
        lambda p: p.dp.groupby("area").var("rent", epsilon=1),
    ]
    for call in calls:
        spent = len(private.dp.budget.entries)
        result, error = attempt(call, private)
        if error is None:
            assert len(result) > 0
            assert len(private.dp.budget.entries) == spent + 1
        else:
            assert neighbors == "replace_one"  # else how few they are would be told by the refusal
            assert "rows" in str(error) or "records" in str(error)
            assert len(private.dp.budget.entries) == spent


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("index", [[1, 1, 1, 2, 2, 2], [CANARY] * 6, [None] * 6])
def test_a_repeated_index_changes_no_number(index):
    plain = canary_frame().reset_index(drop=True).dp.protect(canary_schema(), epsilon=100)
    odd = canary_frame().set_axis(index).dp.protect(canary_schema(), epsilon=100)
    for name in ("pay", "rent"):
        plain_mean, odd_mean = (frame.dp.mean(name, epsilon=1, rng=1).tolist() for frame in (plain, odd))
        assert plain_mean == odd_mean
    older = odd.dp.query("pay > 5").dp.count(epsilon=1, rng=1).tolist()
    assert older == plain.dp.query("pay > 5").dp.count(epsilon=1, rng=1).tolist()


# ------------------------------------------------------------------ nothing shows a cell


def test_no_release_and_nothing_shown_holds_a_cell(canaries):
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        results = every_release(canaries)
        dropped = canary_frame().dp.protect(canary_schema(), epsilon=100, neighbors="replace_one")
        results += every_release(dropped)
    texts = [str(warning.message) for warning in recorded]
    for private in (canaries, dropped):
        texts += [repr(private.dp), str(private.dp), repr(private.dp.budget), private.dp.budget._repr_html_()]
        texts += [
            repr(private.dp.domain),
            private.dp.domain._repr_html_(),
            repr(private),
            private._repr_html_(),
        ]
        texts += [private.dp.budget.entries.to_csv()]
    for result in results:
        texts += [json.dumps(result.attrs), repr(result.dp.metadata), str(result.dp), repr(result.dp)]
        texts += [repr(list(axis)) for axis in result.axes] + [repr(axis.names) for axis in result.axes]
    for text in texts:
        assert safe(text), text
    assert len(texts) > 100


def test_groups_and_engines_show_no_cell(canaries):
    """A notebook prints the last value of a cell: groups not yet released must not print their records."""
    for value in (canaries.dp.groupby("area"), find(canaries), engine_of(canaries)):
        for text in (repr(value), str(value), f"{value}"):
            assert safe(text), text[:200]
            assert "clipped" not in text  # the curator's own


def test_the_warning_of_a_touched_bound_holds_no_cell():
    schema = pa.DataFrameSchema({"pay": column(int, pa.Check.in_range(0, NUMBER))})
    with pytest.warns(DeclarationWarning) as recorded:
        pd.DataFrame({"pay": [5, NUMBER]}).dp.protect(schema, epsilon=1)
    assert [safe(str(warning.message)) for warning in recorded] == [True]


def test_refusals_of_a_frame_show_no_cell(canaries, texts_of):
    raw = canary_frame()
    for refused in (
        lambda: raw.dp.mean("pay", epsilon=1),
        lambda: raw["name"].dp.mean("pay", epsilon=1),
        lambda: raw["pay"].rename(None).dp.mean("pay", epsilon=1),
        lambda: canaries["pay"].dp.mean("pay", epsilon=1),
        lambda: canaries[raw["pay"] > 5],
        lambda: canaries[raw["name"]],
        lambda: canaries[raw["name"].to_numpy()],
        lambda: canaries["pay"] > raw["pay"],
        lambda: raw["pay"] > canaries["pay"],
        lambda: canaries["pay"].isin(raw["pay"]),
        lambda: canaries.assign(pay=raw["pay"]),
        lambda: canaries.pay,
        lambda: list(canaries["pay"]),
        lambda: canaries.to_csv(),
        lambda: np.asarray(canaries),
    ):
        with pytest.raises(PrivacyError) as caught:
            refused()
        assert caught.value.hint
        for text in texts_of(caught.value):
            assert safe(text), text


def test_a_read_that_fails_after_the_charge_shows_no_cell(canaries, texts_of, monkeypatch):
    """Failures of the engine itself put no cell into a message."""
    from pdprivacy.core.engines import PandasEngine

    def fail(self, *arguments, **options):
        raise RuntimeError("the engine stopped")

    monkeypatch.setattr(PandasEngine, "grouped", fail)
    with pytest.raises(RuntimeError) as caught:
        canaries.dp.mean("pay", epsilon=1)
    for text in texts_of(caught.value):
        assert safe(text)
    assert canaries.dp.budget.spent == (1.0, 0.0)


LABELS = {
    "surrogate": pd.Series(["\ud800" + CANARY, "a"], dtype=object),
    "tuple": pd.Series([(CANARY, 1), "a"], dtype=object),
    "list": pd.Series([[CANARY], "a"], dtype=object),
    "bytes": pd.Series([CANARY.encode(), "a"], dtype=object),
    "text": pd.Series([CANARY, "a"], dtype="string"),
    "category": pd.Series([CANARY, "a"], dtype="category"),
    "mixed category": pd.Series(pd.Categorical([NUMBER, "a"])),
    "numbers": pd.Series([NUMBER, 1]),
    "dates": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])),
}
OF_OTHER_TYPES = {"tuple", "list", "bytes", "dates"}


@pytest.mark.parametrize("cells", LABELS)
def test_labels_of_any_kind_are_counted_or_refused_without_a_cell(cells, texts_of):
    """Also what pandas or Arrow would raise, at protection and at release, for cells they cannot hold."""
    domain = Domain((Column("x", "category", categories=("a", 1)),))
    frame = pd.DataFrame({"x": LABELS[cells]})
    for on_invalid in ("raise", "drop"):
        private, error = attempt(frame.dp.protect, domain, epsilon=10**6, on_invalid=on_invalid)
        if error is not None:
            for text in texts_of(error):
                assert safe(text), text
            assert isinstance(error, InvalidDataError)
            assert on_invalid == "raise" or cells in OF_OTHER_TYPES
            continue
        released = private.dp.value_counts("x", epsilon=100, sort=False, rng=1)
        filtered = private.dp.query("x == 'a'").dp.count(epsilon=100, rng=1)
        assert released.sum() == len(records_of(private))
        assert filtered.tolist() == [int((records_of(private)["x"] == "a").sum())]
        private.dp.query("x != 'a'").dp.value_counts("x", epsilon=1)


@pytest.mark.parametrize("kind", ["dictionary", "string_view", "large_string", "decimal128"])
def test_arrow_columns_of_any_kind_are_counted_or_refused(kind, texts_of):
    pyarrow = pytest.importorskip("pyarrow")
    if kind == "string_view" and not hasattr(pyarrow, "string_view"):
        pytest.skip("this version of pyarrow has no views")
    dtype = {
        "dictionary": lambda: pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
        "string_view": lambda: pyarrow.string_view(),
        "large_string": lambda: pyarrow.large_string(),
        "decimal128": lambda: pyarrow.decimal128(12, 2),
    }[kind]()
    if kind == "decimal128":
        cells = pd.Series([Decimal(1), Decimal(2)], dtype=pd.ArrowDtype(dtype))
        domain = Domain((Column("x", "float", lower=0, upper=9),))
    else:
        cells = pd.Series(["a", "b"], dtype=pd.ArrowDtype(dtype))
        domain = Domain((Column("x", "category", categories=("a", "b")),))
    frame = pd.DataFrame({"x": cells})
    private, error = attempt(frame.dp.protect, domain, epsilon=10**6)
    if error is not None:
        assert isinstance(error, InvalidDataError)
        assert kind == "decimal128"
        return
    if kind == "decimal128":
        assert private.dp.sum("x", epsilon=10**5, rng=1).tolist() == pytest.approx([3], abs=0.1)
    else:
        assert private.dp.value_counts("x", epsilon=100, sort=False, rng=1).tolist() == [1, 1]
