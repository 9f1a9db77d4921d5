"""Variables of the caller in expressions: plain constants alone, and none inside texts."""

# ruff: noqa: F841
from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import QueryError

DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=99),
        Column("town", "category", categories=("A", "B", "@limit")),
    )
)
FRAME = pd.DataFrame({"age": [3, 20, 40, 40] * 50, "town": ["A", "B", "A", "@limit"] * 50})
least = 30


def protected():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10**6)


def steps(private):
    return private.dp.lineage["step"].tolist()


def test_variables_are_the_callers():
    """Local ones hide global ones; the lineage shows constants."""
    private, town, factor = protected(), "A", -1.5
    assert steps(private.query("age > @least and town == @town")) == ["query(\"age > 30 and town == 'A'\")"]
    least = 5
    assert steps(private.query("age > @least")) == ["query('age > 5')"]
    assert steps(private.assign(z="age * @factor"))[0] == "assign(z='age * (-1.5)')"
    assert private.assign(z="age ** 2 + @factor ** 2").dp.domain["z"].lower == factor**2
    assert private.assign(z=lambda f: "age if town == @town else @factor").dp.domain["z"].lower == factor


@pytest.mark.parametrize("file", ["pdprivacy_study.py", "pdprivacy.py", "pdprivacy_study/run.py", "study.py"])
def test_files_beside_the_package_are_callers(file):
    path, names = Path(pdprivacy.__file__).parent.parent / file, {}
    text = "def adults(private):\n    least = 7\n    return private.query('age > @least')"
    exec(compile(text, str(path), "exec"), names)
    assert steps(names["adults"](protected())) == ["query('age > 7')"]


def test_a_sign_inside_texts_and_names_is_no_variable():
    private = protected()
    limit = 40
    kept = private.query("town == '@limit' and age <= @limit")
    assert steps(kept) == ["query(\"town == '@limit' and age <= 40\")"]
    assert round(float(kept.dp.count(epsilon=1000, rng=1).iloc[0])) == 50
    odd = Domain((Column("a@limit", "integer", lower=0, upper=99),))
    other = pdprivacy.protect(FRAME[["age"]].set_axis(["a@limit"], axis=1), odd, epsilon=1)
    assert steps(other.query("`a@limit` < @limit")) == ["query('`a@limit` < 40')"]


def test_dates_and_truth_values():
    days = Domain(
        (Column("day", "category", categories=("2020-01-31", "2020-02-01")), Column("b", "boolean"))
    )
    frame = pd.DataFrame({"day": ["2020-01-31", "2020-02-01"] * 50, "b": [True, False] * 50})
    private = pdprivacy.protect(frame, days, epsilon=1)
    day, truth = datetime.date(2020, 1, 31), True
    assert private.query("day == @day and b == @truth").dp.domain["day"].categories == ("2020-01-31",)


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        (np.float64(30), "limit = limit.item()"),
        (FRAME["age"], "limit.item()"),
        (pd.Timestamp("2020-01-01"), "limit = str(limit)"),
        ([30, 40], "f'age in {limit}'"),
        (None, "limit = 18"),
        (float("nan"), "limit = 18"),
        (lambda: 3, "limit = 18"),
    ],
    ids=["NumPy", "column", "time", "list", "None", "NaN", "function"],
)
def test_other_values_are_refused_before_anything_is_read(value, instead):
    private, limit = protected(), value
    with pytest.raises(QueryError) as error:
        private.query("age in @limit")
    assert instead in str(error.value)
    assert "30" not in str(error.value).replace(repr(limit), "")
    assert private.dp.budget.spent[0] == 0


@pytest.mark.parametrize("text", ["age > @nowhere", "age > @private.x", "age > @FRAME['age']", "age > @f(3)"])
def test_unknown_names_and_parts_of_objects_are_refused(text):
    private = protected()
    with pytest.raises(QueryError, match=r"not defined|not the name"):
        private.query(text)
