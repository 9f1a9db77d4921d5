from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.declaration.domain import MAX_INTEGER_CELLS, declaration_hint
from pdprivacy.errors import DeclarationError, ParameterError

AGE = Column("age", "integer", lower=18, upper=65, bins=(18, 30, 45, 65), role="quasi_identifier")
REGION = Column("region", "category", nullable=True, categories=("south", "north"), role="sensitive")
INCOME = Column("income", "float", lower=0.0, upper=1e5)
MEMBER = Column("member", "boolean")
DOMAIN = Domain((AGE, REGION, INCOME, MEMBER))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "text"}, "'kind' of column 'x' must be one of"),
        ({"kind": "float", "role": "secret"}, "'role' of column 'x' must be one of"),
        ({"kind": "float", "lower": float("nan")}, "'lower' of column 'x' must be finite numbers"),
        ({"kind": "float", "upper": float("inf")}, "'upper' of column 'x' must be finite numbers"),
        ({"kind": "float", "upper": 10**400}, "'upper' of column 'x' must be finite numbers"),
        ({"kind": "float", "lower": True}, "'lower' of column 'x' must be finite numbers"),
        ({"kind": "float", "lower": "1"}, "'lower' of column 'x' must be finite numbers"),
        ({"kind": "integer", "lower": 0.5}, "'lower' of the integer column 'x' must be whole numbers"),
        ({"kind": "float", "lower": 2, "upper": 1}, "'lower' of column 'x' must be below 'upper'"),
        ({"kind": "category", "lower": 2}, "'lower' of column 'x' needs a numeric column"),
        ({"kind": "category", "categories": ()}, "'categories' of column 'x' must hold at least one label"),
        ({"kind": "category", "categories": ("a", "a")}, "'categories' of column 'x' must be unique"),
        ({"kind": "category", "categories": (1, True)}, "'categories' of column 'x' must be unique"),
        ({"kind": "category", "categories": ("a", None)}, "'categories' of column 'x' must not hold a null"),
        ({"kind": "category", "categories": ("a", pd.NA)}, "'categories' of column 'x' must not hold a null"),
        ({"kind": "category", "categories": (pd.NaT,)}, "'categories' of column 'x' must not hold a null"),
        ({"kind": "float", "categories": (np.nan,)}, "'categories' of column 'x' must not hold a null"),
        ({"kind": "category", "categories": "ab"}, "'categories' of column 'x' must be a sequence"),
        ({"kind": "category", "categories": 3}, "'categories' of column 'x' must be a sequence"),
        ({"kind": "category", "categories": ([1],)}, "'categories' of column 'x' must be hashable"),
        ({"kind": "category", "categories": (np.zeros(2),)}, "'categories' of column 'x' must be hashable"),
        ({"kind": "integer", "categories": ("a",)}, "'categories' of column 'x' must be finite numbers"),
        ({"kind": "integer", "categories": (1.5,)}, "'categories' of the integer column 'x' must be whole"),
        ({"kind": "integer", "categories": (1, 9), "upper": 5}, "'categories' of column 'x' must lie within"),
        ({"kind": "float", "categories": (1, 9), "lower": 5}, "'categories' of column 'x' must lie within"),
        ({"kind": "boolean", "categories": (0, 1)}, "'categories' of the boolean column 'x' must be truth"),
        ({"kind": "boolean", "lower": 2}, "the bounds of the boolean column 'x' must hold 0 or 1"),
        ({"kind": "float", "bins": (1,)}, "'bins' of column 'x' must be at least two strictly increasing"),
        ({"kind": "float", "bins": (1, 1)}, "'bins' of column 'x' must be at least two strictly increasing"),
        ({"kind": "float", "bins": (1, "b")}, "'bins' of column 'x' must be finite numbers"),
        ({"kind": "float", "bins": 3}, "'bins' of column 'x' must be a sequence of edges"),
        ({"kind": "float", "bins": (1, 2), "lower": 0}, "'bins' of column 'x' must cover its bounds"),
        ({"kind": "float", "bins": (1, 2), "upper": 3}, "'bins' of column 'x' must cover its bounds"),
        ({"kind": "integer", "bins": (1.2, 1.8)}, "'lower' of column 'x' must be below 'upper'"),
        ({"kind": "boolean", "bins": (0, 1)}, "'bins' of column 'x' needs a numeric column"),
        ({"kind": "category", "bins": (0, 1)}, "'bins' of column 'x' needs a numeric column"),
    ],
)
def test_a_contradiction_is_refused_by_name(arguments, message):
    with pytest.raises(DeclarationError) as caught:
        Column(name="x", **arguments)
    assert message in str(caught.value)


def test_numbers_are_stored_as_plain_python():
    column = Column("x", "integer", lower=np.int8(1), upper=3.0, categories=(np.int64(1), 3.0))
    assert [type(value) for value in (column.lower, column.upper, *column.categories)] == [int] * 4
    assert type(Column("x", "category", categories=(np.str_("a"),)).categories[0]) is str
    assert Column("x", "float", lower=1, upper=1).bounds("mean") == (1.0, 1.0)


def test_a_boolean_has_both_labels_and_follows_what_is_given():
    assert (MEMBER.categories, MEMBER.lower, MEMBER.upper) == ((False, True), 0, 1)
    only = Column("x", "boolean", categories=(True,))
    assert (only.lower, only.upper, only.labels("m")) == (1, 1, (True,))
    assert Column("x", "boolean", upper=0).categories == (False,)


def test_bins_stand_in_for_missing_bounds():
    assert Column("x", "float", bins=(0.5, 1, 2.5)).bounds("m") == (0.5, 2.5)
    assert Column("x", "integer", bins=(0.5, 1, 2.5)).bounds("m") == (1.0, 2.0)
    assert Column("x", "float", lower=1, bins=(0.5, 1, 2.5)).bounds("m") == (1.0, 2.5)


@pytest.mark.parametrize(
    ("column", "missing", "hint"),
    [
        (Column("x", "integer", lower=1), "declared upper bound", '"x": pa.Column(int, pa.Check.in_range('),
        (Column("x", "float"), "declared lower or upper bound", '"x": pa.Column(float, pa.Check.in_range('),
        (Column("x", "category"), "not numeric", '"x": pa.Column(float, pa.Check.in_range('),
        (Column(3, "float"), "declared lower or upper bound", "3: pa.Column(float"),
    ],
)
def test_bounds_name_what_is_missing(column, missing, hint):
    with pytest.raises(DeclarationError) as caught:
        column.bounds("mean")
    assert missing in str(caught.value)
    assert f"'mean' needs the bounds of column {column.name!r}" in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("column", "missing", "hint"),
    [
        (Column("x", "category"), "no categories", '"x": pa.Column(str, pa.Check.isin([LABEL, ...])'),
        (Column("x", "float", lower=0, upper=1), "no bins", '"bins": [LOWER, ..., UPPER]'),
        (Column("x", "integer", lower=0), "no bins", "pa.Column(int, pa.Check.in_range(LOWER, UPPER)"),
        (Column("x", "integer", lower=1, upper=MAX_INTEGER_CELLS + 1), "1001 integers", '"bins"'),
    ],
)
def test_labels_name_what_is_missing(column, missing, hint):
    for read in (column.labels, column.cells):
        with pytest.raises(DeclarationError) as caught:
            read("crosstab")
        assert missing in str(caught.value)
        assert "'crosstab' needs the cells of column 'x'" in str(caught.value)
        assert hint in caught.value.hint


def test_labels_prefer_bins_to_categories_to_integers():
    assert AGE.labels("m") == ("[18, 30)", "[30, 45)", "[45, 65]")
    assert Column("x", "float", bins=(0, 0.5, 1)).labels("m") == ("[0, 0.5)", "[0.5, 1]")
    assert Column("x", "integer", categories=(3, 1), bins=(1, 3)).labels("m") == ("[1, 3]",)
    assert Column("x", "integer", lower=0, upper=5, categories=(3, 1)).labels("m") == (3, 1)
    assert len(Column("x", "integer", lower=1, upper=MAX_INTEGER_CELLS).labels("m")) == MAX_INTEGER_CELLS
    assert REGION.labels("m") == ("south", "north")
    assert (REGION.cells("m"), AGE.cells("m"), MEMBER.cells("m")) == (3, 3, 2)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=8, unique=True))
def test_labels_of_distinct_bins_are_distinct(edges):
    column = Column("x", "float", bins=tuple(sorted(edges)))
    labels = column.labels("m")
    assert len(set(labels)) == len(edges) - 1
    assert [label[-1] for label in labels] == [")"] * (len(edges) - 2) + ["]"]


@pytest.mark.parametrize("read", ["bounds", "labels", "cells"])
def test_an_identifier_is_never_released(read):
    column = Column("id", "integer", lower=1, upper=9, role="identifier")
    with pytest.raises(DeclarationError, match="its role is 'identifier'"):
        getattr(column, read)("mean")


def test_a_domain_is_a_mapping_of_names():
    assert list(DOMAIN) == ["age", "region", "income", "member"]
    assert DOMAIN.names == ("age", "region", "income", "member")
    assert len(DOMAIN) == 4
    assert DOMAIN["income"] is INCOME
    assert "age" in DOMAIN
    assert "wage" not in DOMAIN
    assert ["age"] not in DOMAIN
    assert DOMAIN.with_role("sensitive") == ("region",)
    assert DOMAIN.with_role("identifier") == ()


def test_an_undeclared_column_lists_the_declared_ones():
    with pytest.raises(DeclarationError) as caught:
        DOMAIN["wage"]
    assert "'wage' is not declared for release (declared: 'age', 'region', 'income', 'member')" in str(
        caught.value
    )
    assert caught.value.hint == '"wage": pa.Column(..., metadata={"dp": {}})'


def test_domain_guards():
    with pytest.raises(DeclarationError, match="column 'age' is declared twice"):
        Domain((AGE, AGE))
    with pytest.raises(ParameterError, match="'role' must be one of"):
        DOMAIN.with_role("secret")
    with pytest.raises(DeclarationError, match="'wage' is not declared"):
        DOMAIN.replace(Column("wage", "float"))


def test_replace_keeps_the_order():
    new = DOMAIN.replace(Column("income", "float", lower=5), Column("age", "float"))
    assert new.names == DOMAIN.names
    assert (new["income"].lower, new["age"].kind, new["region"]) == (5, "float", REGION)
    assert DOMAIN["income"] is INCOME


def test_the_fingerprint_sees_every_field_and_the_order():
    changed = [
        Column("y", "integer", lower=0, upper=3),
        Column("x", "float", lower=0, upper=3),
        Column("x", "integer", nullable=True, lower=0, upper=3),
        Column("x", "integer", lower=1, upper=3),
        Column("x", "integer", lower=0, upper=4),
        Column("x", "integer", lower=0, upper=3, categories=(1, 2)),
        Column("x", "integer", lower=0, upper=3, categories=(2, 1)),
        Column("x", "integer", lower=0, upper=3, bins=(0, 3)),
        Column("x", "integer", lower=0, upper=3, role="sensitive"),
        Column("x", "integer", lower=0, upper=3),
    ]
    assert len({Domain((column,)).fingerprint() for column in changed}) == len(changed)
    assert Domain((AGE, REGION)).fingerprint() != Domain((REGION, AGE)).fingerprint()
    assert Domain((Column("x", "float", lower=0),)).fingerprint() == (
        Domain((Column("x", "float", lower=np.float32(0.0)),)).fingerprint()
    )
    assert Domain((Column("x", "category", categories=("1",)),)).fingerprint() != (
        Domain((Column("x", "category", categories=(1,)),)).fingerprint()
    )


@pytest.mark.full
def test_the_fingerprint_is_the_same_in_every_process():
    class Colour(enum.Enum):
        RED = "r"

    labels = ("a", 1, 2.5, Colour.RED, dt.date(2020, 1, 1), frozenset({"a"}))
    assert len(Domain((Column("x", "category", categories=labels),)).fingerprint()) == 32
    code = (
        "from pdprivacy.declaration.domain import *;"
        "print(Domain((Column('x', 'category', categories=('b', 'a', 1)),)).fingerprint())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert printed == {Domain((Column("x", "category", categories=("b", "a", 1)),)).fingerprint()}


def test_the_table_of_a_domain_says_what_is_declared():
    lines = repr(DOMAIN).splitlines()
    assert lines[0].split() == ["name", "kind", "bounds", "or", "categories", "bins", "nullable", "role"]
    assert lines[1].split() == ["age", "integer", "18", "to", "65", "18,", "30,", "45,", "65", "no", AGE.role]
    assert lines[2].split() == ["region", "category", "'south',", "'north'", "yes", "sensitive"]
    text = repr(
        Domain((Column("x", "category", categories=tuple("abcdefgh")), Column("y", "float", lower=1)))
    )
    assert "'f', ... (2 more)" in text
    assert "1 and up" in text
    assert "up to 1" in repr(Domain((Column("y", "float", upper=1),)))


def test_the_html_table_is_escaped():
    text = Domain((Column("<b>", "category", categories=("<i>",)),))._repr_html_()
    assert "<b>" not in text
    assert "<i>" not in text
    assert text.count("<tr>") == 2
    assert "&lt;b&gt;" in text


@pytest.mark.parametrize("what", ["declared", "bounds", "labels"])
@pytest.mark.parametrize("kind", ["float", "integer", "boolean", "category"])
def test_every_hint_is_python(kind, what):
    compile("{" + declaration_hint("a b", kind, what) + "}", "hint", "eval")


@pytest.mark.parametrize("name", [True, False, np.True_, np.False_])
def test_a_truth_value_is_no_name(name):
    """A list of truth values chooses rows: ``frame[[True, False]]`` is the first row, not two columns."""
    with pytest.raises(DeclarationError, match=f"truth value {bool(name)} as its name") as caught:
        Domain((Column("x", "integer"), Column(name, "integer")))
    assert "df.rename" in caught.value.hint


@pytest.mark.parametrize("name", [["age"], {}, {"age"}, np.array(["age"]), pd.Series(["age"]), ("age", [])])
def test_a_column_is_named_by_a_hashable_label(name):
    with pytest.raises(ParameterError, match="a column is named by its label") as caught:
        DOMAIN[name]
    assert f"(got {type(name).__name__})" in str(caught.value)
    assert name not in DOMAIN
    with pytest.raises(DeclarationError, match="must be hashable"):
        Domain((Column(name, "integer"),))


def test_names_are_told_apart_by_hash():
    names = (pd.NA, None, "a", ("a", 1), 3, pd.NaT)
    domain = Domain(tuple(Column(name, "integer") for name in names))
    assert [domain[name].name is name for name in names] == [True] * len(names)
    assert all(name in domain for name in names)
    assert "b" not in domain


def test_an_array_of_no_dimension_is_no_list():
    with pytest.raises(DeclarationError, match="'categories' of column 'x' must be a sequence"):
        Column("x", "integer", categories=np.array(31))
    with pytest.raises(DeclarationError, match="'bins' of column 'x' must be a sequence"):
        Column("x", "integer", bins=np.array(31))
    assert Column("x", "integer", bins=np.array([0, 31])).bins == (0, 31)


def test_a_domain_is_pickled_and_compared_by_its_columns():
    restored = pickle.loads(pickle.dumps(DOMAIN))
    assert restored == DOMAIN
    assert hash(restored) == hash(DOMAIN)
    assert restored["age"] == AGE
    assert dataclasses.replace(DOMAIN, columns=(AGE,)).names == ("age",)
    assert "wage" not in restored
