"""Columns under other names and of other types: cells and declaration stay, all else is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core.rows import astype, rename
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import DeclarationError, ParameterError

DOMAIN = Domain(
    (
        Column("age", "integer", True, lower=0, upper=120, bins=(0, 40, 120)),
        Column("pay", "float", lower=0, upper=9),
        Column("ill", "boolean", True),
        Column("rooms", "integer", categories=(1, 2, 5)),
        Column("region", "category", categories=("north", "south")),
        Column("person", "category", role="identifier"),
    )
)
FRAME = pd.DataFrame(
    {
        "age": pd.array([31, None, 119], "Int64"),
        "pay": [1.5, 2.0, 3.25],
        "ill": pd.array([True, None, False], "boolean"),
        "rooms": [1, 5, 2],
        "region": ["north", "south", "south"],
        "person": ["a", "b", "c"],
    },
    index=[7, 7, 9],
)


# ---------------------------------------------------------------- rename


def test_a_column_keeps_its_cells_its_declaration_and_its_place():
    step = rename(DOMAIN, {"age": "years", "region": "where"})
    assert list(step.domain) == ["years", "pay", "ill", "rooms", "where", "person"]
    assert step.domain["years"] == Column("years", "integer", True, lower=0, upper=120, bins=(0, 40, 120))
    assert step.domain["where"].categories == ("north", "south")
    renamed = step.apply(FRAME)
    pd.testing.assert_frame_equal(renamed, FRAME.rename(columns={"age": "years", "region": "where"}))
    assert step.keep is None  # no record is left out: what is public of their number stays


def test_a_name_that_is_kept_changes_nothing():
    step = rename(DOMAIN, {"age": "age"})
    assert step.domain == DOMAIN
    assert step.columns == {}


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"age": "pay"}, "another column has that name"),
        ({"age": "x", "pay": "x"}, "another column has that name"),
        ({"age": "pay", "pay": "age"}, "another column has that name"),
        ({"age": None}, "the new name of column 'age' must be a label .got None."),
        ({"age": ["years"]}, "must be a label .got list."),
        ({"age": pd.NA}, "must be a label .got NAType."),
        ({"age": float("nan")}, "must be a label .got float."),
        ({"age": "\ud800"}, "must be encodable text"),
        (str.upper, "a mapping"),
        (["a", "b"], "a mapping"),
    ],
    ids=str,
)
def test_a_name_must_be_new(columns, text):
    with pytest.raises(ParameterError, match=text):
        rename(DOMAIN, columns)


@pytest.mark.parametrize("name", ["person", "unknown"])
def test_only_declared_columns_that_are_released_get_other_names(name):
    with pytest.raises(DeclarationError):
        rename(DOMAIN, {name: "x"})
    with pytest.raises(DeclarationError):
        astype(DOMAIN, {name: "float64"})


def test_releases_name_the_new_column():
    private = pdprivacy.protect(FRAME.reset_index(drop=True), DOMAIN, epsilon=9)
    renamed = private.rename(columns={"pay": "wage"})
    mean = renamed.dp.mean("wage", epsilon=1, rng=1)
    assert mean.index.tolist() == mean.dp.metadata.columns == ["wage"]
    assert mean.tolist() == private.dp.mean("pay", epsilon=1, rng=1).tolist()
    assert mean.dp.schema().validate(mean).equals(mean)
    assert renamed.dp.budget == private.dp.budget
    assert renamed[renamed["wage"] > 2].dp.domain["wage"].bounds("mean") == (2.0, 9.0)


# ---------------------------------------------------------------- astype


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float", "Float64", float, np.float64, np.dtype("float64"), pd.Float64Dtype()],
    ids=str,
)
def test_integers_and_truth_values_become_floats(dtype):
    step = astype(DOMAIN, dict.fromkeys(["age", "ill", "rooms"], dtype))
    assert step.domain["age"] == Column("age", "float", True, lower=0, upper=120, bins=(0, 40, 120))
    assert step.domain["ill"] == Column("ill", "float", True, lower=0, upper=1, categories=(0.0, 1.0))
    assert step.domain["rooms"] == Column("rooms", "float", categories=(1.0, 2.0, 5.0))
    converted = step.apply(FRAME)
    for name in ("age", "ill", "rooms"):
        assert converted[name].dtype == np.float64
        expected = FRAME[name].astype("Float64").to_numpy(np.float64, na_value=np.nan)
        np.testing.assert_array_equal(converted[name], expected)


def test_truth_values_become_integers():
    step = astype(DOMAIN, {"ill": int})
    assert step.domain["ill"] == Column("ill", "integer", True, lower=0, upper=1, categories=(0, 1))
    assert step.apply(FRAME)["ill"].equals(FRAME["ill"].astype("Int64"))


def test_a_type_that_a_column_has_changes_nothing():
    step = astype(DOMAIN, {"age": "int64", "pay": float, "region": "category", "ill": bool})
    assert step.domain == DOMAIN
    assert step.columns == {}


@pytest.mark.parametrize(
    ("dtype", "error", "text"),
    [
        ({"pay": "int64"}, ParameterError, "of kind 'float', one of kind 'integer'"),
        ({"pay": "bool"}, ParameterError, "one of kind 'boolean'"),
        ({"age": "bool"}, ParameterError, "one of kind 'boolean'"),
        ({"age": "str"}, ParameterError, "makes labels"),
        ({"region": "float64"}, ParameterError, "recode"),
        ({"age": "float32"}, ParameterError, "does not know this type"),
        ({"age": "int8"}, ParameterError, "does not know this type"),
        ({"age": 3}, ParameterError, "does not know this type"),
        ({"age": pd.CategoricalDtype([1])}, ParameterError, "does not know this type"),
        ({"age": None}, ParameterError, "does not know this type"),
    ],
    ids=str,
)
def test_a_type_must_hold_every_declared_cell(dtype, error, text):
    with pytest.raises(error, match=text):
        astype(DOMAIN, dtype)


@pytest.mark.parametrize("upper", [None, 2**53 + 1])
def test_integers_that_floats_do_not_hold_stay_integers(upper):
    domain = Domain((Column("id", "integer", lower=0, upper=upper),))
    with pytest.raises(DeclarationError, match="bounds"):
        astype(domain, {"id": float})


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ({"ill": int}, "astype({'ill': 'int'})"),
        ({"ill": np.dtype("int64"), "age": "float64"}, "astype({'ill': 'int64', 'age': 'float64'})"),
        ({"age": pd.Int64Dtype()}, "astype({'age': 'Int64'})"),  # changes nothing
    ],
    ids=str,
)
def test_the_lineage_is_the_call(dtype, text):
    step = astype(DOMAIN, dtype)
    assert step.text == text
    assert eval(text, {"astype": lambda given: astype(DOMAIN, given)}).domain == step.domain


@pytest.mark.parametrize("given", [int, float, bool, "Float64", pd.BooleanDtype()], ids=str)
def test_the_lineage_of_one_type_is_the_call(given):
    domain = Domain((Column("ill", "boolean"),))
    step = astype(domain, given)
    again = eval(step.text, {"astype": lambda dtype: astype(domain, dtype)})
    assert (again.text, again.domain) == (step.text, step.domain)


@pytest.mark.parametrize("dtype", [int, float, "str", "category"])
def test_dates_stay_dates(dtype):
    domain = Domain((Column("when", "integer", lower=0, upper=90, timeline=Timeline(19_723, "D")),))
    with pytest.raises(ParameterError, match="column 'when' holds dates"):
        astype(domain, {"when": dtype})


def test_one_type_for_all_columns():
    domain = DOMAIN.replace(Column("person", "integer", lower=0, upper=9))
    domain = Domain(tuple(column for column in domain.columns if column.name != "region"))
    converted = astype(domain, "float64").domain
    assert {column.kind for column in converted.columns} == {"float"}
