"""The reader of expressions: names, strings and operators as they are written, and reasons of refusals."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.errors import ParameterError, QueryError
from tests.support.cases import each
from tests.support.filters import DOMAIN, LABELS, parse


def test_a_query_says_what_it_reads():
    step = parse("income > 0 and (`family size` > 2 or income < -1)", DOMAIN)
    assert step.reads == ("income", "family size")
    assert step.text == "query('income > 0 and (`family size` > 2 or income < -1)')"
    with pytest.raises(AttributeError):
        step.text = ""


@each(
    ("text", "reason", "hint"),
    [
        ("", "the filter is empty", "a filter compares"),
        ("  ", "the filter is empty", "a filter compares"),
        ("age >", "the filter 'age >' is not valid syntax", "a filter compares"),
        ("age = 3", "is not valid syntax", "a filter compares"),
        ("age > 3; age < 5", "is not valid syntax", "a filter compares"),
        ("age > 3\x00", "is not valid syntax", "a filter compares"),
        ("region == 'south", "is not valid syntax", "a filter compares"),
        ("region == '''south", "is not valid syntax", "a filter compares"),
        ("`family size > 2", "a backtick is not closed", None),
        ("wage > 3", "'wage' is not declared for release (declared: 'age', ", '"wage": pa.Column('),
        ("`my wage` > 3", "'my wage' is not declared for release", '"my wage": pa.Column('),
        ("age > limit", "'limit' is not declared for release", 'f"... {limit}"'),
        ("age > @limit", "refers to a variable by '@'", "{limit}"),
        ("age in income", "'income' is not a comparison", "a filter compares"),
        ("`family size` > age", "no declared record can meet", None),
        ("age > region", "column 'region' of kind 'category' is not numeric", "private['region'] == 'south'"),
        ("age > age.mean()", "'age.mean()' calls a method, which may look at other rows", "a filter"),
        ("age.mean() < age", "'age.mean()' calls a method", "a filter"),
        (
            "age < age.quantile(0.9)",
            "'age.quantile(0.9)' calls a method, which may look at other rows: a filter against an aggregate "
            "has infinite sensitivity, because one record may change which others pass",
            "a filter takes constants: a declared bound, or a number that was released before",
        ),
        ("(age - age.mean()).abs() < 3 * age.std()", "'age.mean()' calls a method, which", "takes constants"),
        ("abs(income - 1) < 3 * income.std()", "'income.std()' calls a method, which", "takes constants"),
        ("income < 3 * income.std()", "'income.std()' calls a method, which", "takes constants"),
        ("3 * `family size`.max() > age", "'`family size`.max()' calls a method", "takes constants"),
        ("age.rank() < 10", "'age.rank()' calls a method, which may look at other rows", "a filter compares"),
        ("age * 2 > 130", "no declared record can meet the filter 'age * 2 > 130'", None),
        ("age * 2", "'age * 2' is not a comparison", "a filter"),
        ("age.isna(1)", "calls a method", "a filter"),
        ("sin(age) > 3", "'sin(age)' calls a function", "functions are abs(x)"),
        ("age > len('a')", "calls a function", "functions are abs(x)"),
        ("age.values > 3", "'age.values' reads an attribute", "a filter"),
        ("age[0] > 3", "'age[0]' reads by position", "a filter"),
        ("age + 1 == 'a'", "column 'age + 1' of kind 'integer' cannot be compared with 'a'", None),
        ("age > (lambda: 3)", "is not a comparison", "a filter"),
        ("3 if member else 4", "alone is not a condition", "a filter"),
        ("f'{age}' == 'a'", "is not a comparison", "a filter"),
        ("3", "'3' is not a comparison", "a filter"),
        ("3 < 4", "'3 < 4' compares constants only", "a filter"),
        ("age", "column 'age' alone is not a condition", "a filter"),
        ("age and member", "column 'age' alone is not a condition", "a filter"),
        ("not income", "column 'income' alone is not a condition", "a filter"),
        ("age == None", "compares with None", "isna()"),
        ("None != age", "compares with None", "isna()"),
        ("age is None", "compares with None", "isna()"),
        ("age is 3", "'is' is not a comparison of values", "write =="),
        ("id > 3", "column 'id' has the role 'identifier'", "other columns"),
        ("age > 3 & income == 2", "'&' and '|' bind differently", "'and'"),
        ("age > 3 and not member & (income > 2)", "bind differently", "'and'"),
        ("(age > 3) | member and (income > 2)", "bind differently", "'and'"),
        ("age > 3 &", "is not valid syntax", "a filter"),
        ("age & in [1]", "is not valid syntax", "a filter"),
        ("age in [*age & 3]", "bind differently", "'and'"),
        ("age <(3) &-1", "bind differently", "'and'"),
        ("age == 'a'", "column 'age' of kind 'integer' cannot be compared with 'a'", None),
        ("age == True", "column 'age' of kind 'integer' cannot be compared with True", None),
        ("income in [1, 'a']", "column 'income' of kind 'float' cannot be compared with 'a'", None),
        ("member == 1", "column 'member' of kind 'boolean' cannot be compared with 1", "True and False"),
        ("member == 'yes'", "cannot be compared with 'yes'", "True and False"),
        ("region < 'south'", "has no order, so '<' does not apply", "region in ["),
        ("'a' <= town", "has no order, so '>=' does not apply", "town in ["),
        ("member > False", "has no order", "member in ["),
        ("region == 'east'", "'east' is not a declared category of column 'region'", None),
        ("region in ['south', 'east']", "'east' is not a declared category", None),
        ("`family size` != 9", "9 is not a declared category of column 'family size'", None),
        ("age in 30", "'in' takes a list of constants", "write age in [30]"),
        ("region not in 'south'", "'not in' takes a list of constants", "write region not in ['south']"),
        ("age < [30]", "'<' takes one constant, not a list", None),
        ("age < 30 < 40 in [1]", "compares constants only", "a filter"),
        ("30 in age", "the column stands on the left of 'in'", "column in ["),
        ("age in [[30]]", "'[30]' is not a number", "a filter"),
        ("age > 3j", "'3j' is not a number", "a filter"),
        ("age > -'a'", "is not a number", "a filter"),
        ("age > -True", "is not a number", "a filter"),
        ("region == b'south'", "is not a number, a string", "a filter"),
        ("income < 1e999", "not a finite number", None),
        ("income > -1e999", "not a finite number", None),
        ("income < nan", "'nan' is not declared", None),
        (f"age < {10**400}", "not a finite number", None),
        ("age > 65", "no declared record can meet the filter 'age > 65'", None),
        ("age in []", "no declared record can meet", None),
        ("age == 30.5", "no declared record can meet", None),
        ("income < -1.5", "no declared record can meet", None),
        ("income > 2.5", "no declared record can meet", None),
        ("age < 30 and age > 40", "no declared record can meet", None),
        ("age < 30 and age.isna()", "no declared record can meet", None),
        ("region == 'south' and region in ['north']", "no declared record can meet", None),
        ("not (age < 30 or age >= 30) and age.notna()", "no declared record can meet", None),
        ("age > 65 or income > 3", "no declared record can meet", None),
        ("member and not member", "no declared record can meet", None),
        ("(" * 90 + "age" + ")" * 90, "alone is not a condition", "a filter"),
        ("not " * 3000 + "member", "nested too deeply", None),
        ("not " * 300000 + "member", "", None),
    ],
)
def test_what_is_not_a_filter_is_refused_with_its_reason(text, reason, hint):
    with pytest.raises(QueryError) as caught:
        parse(text, DOMAIN)
    assert reason in str(caught.value)
    if hint is not None:
        assert hint in caught.value.hint
    assert "_name" not in str(caught.value)


@pytest.mark.parametrize("text", [None, 3, b"age > 3", ["age > 3"]])
def test_a_filter_is_a_string(text):
    with pytest.raises(ParameterError, match="'expression' must be a string"):
        parse(text, DOMAIN)


@pytest.mark.parametrize(
    "text",
    [
        "region == 'a`b'",
        'region == "a`b" or region == "it\'s"',
        "region == 'it\\'s' or region == 'a`b'",
        "(region in ['a`b', '&|']) & (`family size` > 1)",
        "`family size` > 1 and region != '''a`b''' # a ` and ' in a comment",
        "(`family size` > 1) & (`family size` < 5)  # & |\n",
        "region == '@'  or region == 'south'",
        "(age > 30) & (income > 0) | member",
        "not ((age > 30) & member)",
        "~member & (age > 30)",
        "+30 < age and income > -1",
        "age in (30, 31) or age in {32, 33}",
        "30 < age <= 40 and 2.5 != income",
        "age > 25 and (income >= 0 and member)",
        "(age == 25 or age == 33) or (income > 1 or income < 0)",
    ],
)
def test_strings_backticks_and_operators_are_read_apart(text):
    domain = DOMAIN.replace(Column("region", "category", categories=(*LABELS, "@")))
    frame = pd.DataFrame(
        {
            "age": [25, 35, 35, 33, 30],
            "family size": [1, 2, 5, 4, 3],
            "income": [0.5, -1.0, 1.0, 0.0, 2.0],
            "region": ["a`b", "it's", "&|", "@", "south"],
            "member": [True, False, True, False, True],
        }
    )
    mask = parse(text, domain).keep(frame)
    if "`b" not in text and "{" not in text and "#" not in text:
        assert mask.tolist() == frame.index.isin(frame.query(text, engine="python").index).tolist()
    assert 0 < mask.sum() < len(frame)


def test_backticked_names_are_shown_as_they_were_written():
    names = [f"a {index}" for index in range(12)]
    domain = Domain(tuple(Column(name, "integer", lower=0, upper=9) for name in names))
    text = " and ".join(f"`{name}` > 1" for name in names)
    assert parse(text, domain).reads == tuple(names)
    with pytest.raises(QueryError) as caught:
        parse(text + " and `a 11` in `a 1`", domain)
    assert "'`a 1`' is not a comparison" in str(caught.value)


def test_a_name_that_looks_like_a_placeholder_stays_itself():
    domain = Domain(
        (Column("_name0_", "integer", lower=0, upper=9), Column("x y", "integer", lower=0, upper=9))
    )
    step = parse("_name0_ > 3 and `x y` < 3", domain)
    assert step.keep(pd.DataFrame({"_name0_": [4, 0], "x y": [0, 4]})).tolist() == [True, False]


@given(st.text(max_size=30))
@example("age > 'a'''")
@example("`")
@example("age > 3 & `")
def test_any_text_is_a_filter_or_a_query_error(text):
    try:
        step = parse(text, DOMAIN)
    except QueryError:
        return
    assert step.text == f"query({text!r})"


def test_columns_without_strings_as_labels_cannot_be_named():
    domain = Domain((Column(("a", "age"), "integer"), Column(3, "integer"), Column("b", "integer")))
    for text in ("`('a', 'age')` > 1", "`('a','age')` > 1"):
        with pytest.raises(QueryError) as caught:
            parse(text, domain)
        assert "label of column ('a', 'age') is not a string, and the filter names strings only" in str(
            caught.value
        )
        assert "private.rename(columns={('a', 'age'): " in caught.value.hint
    with pytest.raises(QueryError, match="label of column 3 is not a string"):
        parse("`3` == 1", domain)
    with pytest.raises(QueryError, match="'age' is not declared for release") as caught:
        parse("age > 1", domain)
    assert "private.rename(columns={('a', 'age'): " in caught.value.hint
    with pytest.raises(QueryError, match="'wage' is not declared for release") as caught:
        parse("wage > 1", domain)
    assert "rename" not in caught.value.hint
    with pytest.raises(QueryError) as caught:
        parse("wage > 1", DOMAIN)
    assert "strings" not in caught.value.hint
