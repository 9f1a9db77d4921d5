"""Conditions from their text to the records and narrowed domain (`regions`), against `DataFrame.query`."""

from __future__ import annotations

import datetime as dt
import enum
import re
import traceback

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.core.rows import Transform
from pdprivacy.errors import InvalidDataError, QueryError
from pdprivacy.frames import find
from tests.support.cases import each
from tests.support.cells import STR, column_of
from tests.support.filters import DOMAIN, LABELS, parse
from tests.support.nullable import by_operators, truths
from tests.support.snapshots import records_of


def narrowed(text: str, name: str, domain: Domain = DOMAIN) -> Column:
    return parse(text, domain).domain[name]


# ------------------------------------------------------------------ frames and filters at random

NAMES = ("age", "family size", "income", "region", "town", "member")
DTYPES = {
    "age": ["int64", "uint8", "float64", "Int64", "int64[pyarrow]", "category", "object"],
    "family size": ["int64", "Int8", "float32", "category"],
    "income": ["float64", "Float64", "double[pyarrow]", "object"],
    "region": ["object", STR, "string[pyarrow]", "string[python]", "category"],
    "town": ["object", STR, "category"],
    "member": ["bool", "boolean", "bool[pyarrow]", "object", "category"],
}
CELLS = {
    "age": st.integers(18, 65) | st.sampled_from([18, 29, 30, 31, 65]),
    "family size": st.integers(1, 5),
    "income": st.sampled_from([-1.5, -1.0, -0.0, 0.0, 0.25, 1.0, 2.5]),
    "region": st.sampled_from(LABELS),
    "town": st.sampled_from(["x", "y", "z"]),
    "member": st.booleans(),
}
CONSTANTS = {
    "age": st.integers(15, 68) | st.sampled_from([18, 29.5, 30, 30.0, 31, 64.5, 65]),
    "family size": st.integers(1, 5),
    "income": st.sampled_from([-2, -1.5, -1, 0, 0.25, 1e0, 2.5, 3]),
    "region": st.sampled_from(LABELS),
    "town": st.sampled_from(["x", "y"]),
    "member": st.booleans(),
}


@st.composite
def frames(draw, nulls: bool, dtypes=DTYPES):
    count = draw(st.integers(1, 6))
    columns = {}
    for name in NAMES:
        dtype = draw(st.sampled_from(dtypes[name]))
        cell = CELLS[name]
        if nulls and dtype not in ("int64", "uint8", "bool"):
            cell = cell | st.none()
        columns[name] = column_of(draw(st.lists(cell, min_size=count, max_size=count)), dtype)
    return pd.DataFrame(columns)


def code(name: str) -> str:
    return f"`{name}`" if " " in name else name


@st.composite
def leaves(draw):
    name = draw(st.sampled_from(NAMES))
    constant = draw(CONSTANTS[name])
    shape = draw(st.integers(0, 7))
    if shape == 6:
        sign = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
        return f"2 * age - `family size` {sign} {draw(st.sampled_from(['50', '100.5', '3 * income + 60']))}"
    if shape == 7:
        return draw(st.sampled_from(["age - 20 <= income", "(income - age).isna()", "3 * age in [90, 93]"]))
    if name == "member" and shape == 0:
        return name
    if name in ("age", "income") and shape <= 3:
        sign = draw(st.sampled_from(["<", "<=", ">", ">="]))
        if shape == 1:
            return f"{constant!r} {sign} {code(name)}"
        if shape == 2:
            other = draw(CONSTANTS[name])
            return f"{other!r} {draw(st.sampled_from(['<', '<=']))} {code(name)} {sign} {constant!r}"
        return f"{code(name)} {sign} {constant!r}"
    if shape == 4:
        return f"{code(name)}.{draw(st.sampled_from(['isna', 'isnull', 'notna', 'notnull']))}()"
    if shape == 5 or name == "family size":
        constants = draw(st.lists(CONSTANTS[name], min_size=1, max_size=12))
        if name == "age":
            constants = [int(value) for value in constants]
        return f"{code(name)} {draw(st.sampled_from(['in', 'not in', '==', '!=']))} {constants!r}"
    return f"{code(name)} {draw(st.sampled_from(['==', '!=']))} {constant!r}"


filters = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        inner.map(lambda text: f"~({text})"),
        st.tuples(inner, st.sampled_from(["and", "or", "&", "|"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=4,
)


def parsed(text: str) -> Transform:
    try:
        return parse(text, DOMAIN)
    except QueryError as error:
        if "no declared record can meet" not in str(error):
            raise
    reject()
    raise AssertionError


# Where DataFrame.query itself works: not on categories of another dtype order, and not on bare objects.
PLAIN = {
    "age": ["int64", "float64", "Int64", "int64[pyarrow]", "object"],
    "family size": ["int64", "Int8"],
    "income": ["float64", "Float64", "object"],
    "region": ["object", STR, "category"],
    "town": ["object", STR],
    "member": ["bool"],
}


@given(frames(nulls=False, dtypes=PLAIN), filters)
def test_the_mask_is_what_dataframe_query_selects(frame, text):
    step = parsed(text)
    assume(not (re.search("[-*] ", text) and object in (frame["age"].dtype, frame["income"].dtype)))
    try:
        selected = frame.query(text, engine="python")
    except (TypeError, AttributeError):  # pandas has no common dtype of its own and of int64[pyarrow]
        reject()
    assert frame.index[step.keep(frame)].tolist() == selected.index.tolist()


NULLABLE = {
    **dict.fromkeys(("age", "family size"), "Int64"),
    "income": "Float64",
    **dict.fromkeys(("region", "town"), "string"),
    "member": "boolean",
}


def selected(text: str, frame: pd.DataFrame) -> list[bool]:
    """Which records a condition of nullable columns of pandas selects."""
    nullable = {
        name: pd.array([None if pd.isna(cell) else cell for cell in frame[name].astype(object)], dtype)
        for name, dtype in NULLABLE.items()
    }
    return [truth is True for truth in truths(by_operators(text, pd.DataFrame(nullable)))]


def conforms(value: object, column: Column) -> bool:
    if pd.isna(value):
        return column.nullable
    if column.categories is not None and value not in column.categories:
        return False
    if column.bins is not None and not column.bins[0] <= value <= column.bins[-1]:
        return False
    return (column.lower is None or column.lower <= value) and (column.upper is None or value <= column.upper)


def check_each_row_alone(step: Transform, frame: pd.DataFrame, mask: np.ndarray, order: list[int]) -> None:
    assert mask.dtype == bool
    assert mask.shape == (len(frame),)
    assert [step.keep(frame.iloc[[row]])[0] for row in range(len(frame))] == mask.tolist()
    assert step.keep(frame.iloc[order]).tolist() == mask[order].tolist()


def check_narrowed(step: Transform, kept: pd.DataFrame) -> None:
    domain = step.domain
    assert domain.names == DOMAIN.names
    for row in kept.to_dict("records"):
        for name, value in row.items():
            assert conforms(value, domain[name]), (name, value)


def check_impossible(text: str, frame: pd.DataFrame) -> None:
    """With the impossible filter as an alternative the expression is possible again."""
    either = parse(f"({text}) or (age == 18 and member and region == 'south')", DOMAIN)
    alone = parse("age == 18 and member and region == 'south'", DOMAIN)
    assert either.keep(frame).tolist() == alone.keep(frame).tolist()


@given(frames(nulls=True), filters, st.randoms())
def test_a_filter_means_of_each_row_alone_what_it_says_for_every_dtype(frame, text, random):
    """Four facts of the same frames and filters, which are costly to draw.

    The outcome of a row depends on this row alone; the mask means the same for every dtype; every record that
    passes conforms to the narrowed domain; a filter that is refused as impossible passes no record.
    """
    try:
        step = parse(text, DOMAIN)
    except QueryError as error:
        if "no declared record can meet" not in str(error):
            raise
        check_impossible(text, frame)
        return
    mask = step.keep(frame)
    order = list(range(len(frame)))
    random.shuffle(order)
    check_each_row_alone(step, frame, mask, order)
    assert mask.tolist() == selected(text, frame)
    check_narrowed(step, frame[mask])


# ------------------------------------------------------------------ narrowing


@pytest.mark.parametrize(
    ("text", "bounds", "bins"),
    [
        ("age >= 35", (35, 65), (35, 45, 65)),
        ("age > 35", (36, 65), (36, 45, 65)),
        ("age > 35.5", (36, 65), (36, 45, 65)),
        ("age < 30", (18, 29), (18, 29)),
        ("age < 30.5", (18, 30), (18, 30)),
        ("age <= 45", (18, 45), (18, 30, 45)),
        ("45 <= age", (45, 65), (45, 65)),
        ("30 <= age < 45", (30, 44), (30, 44)),
        ("age == 35", (35, 35), (30, 45)),
        ("age == 30", (30, 30), (30, 45)),
        ("age == 65", (65, 65), (45, 65)),
        ("age in [50, 20, 99]", (20, 50), (20, 30, 45, 50)),
        ("age != 18", (19, 65), (19, 30, 45, 65)),
        ("age not in [65, 18, 19, 64, 40]", (20, 63), (20, 30, 45, 63)),
        ("age < 25 or age > 60", (18, 65), (18, 30, 45, 65)),
        ("age < 25 or age == 30", (18, 30), (18, 30)),
        ("age < 25 or member", (18, 65), (18, 30, 45, 65)),
        ("not (age < 25 or age > 60)", (25, 60), (25, 30, 45, 60)),
        ("not (age >= 25 and age <= 70)", (18, 24), (18, 24)),
        ("(age < 25 and age > 30) or age == 50", (50, 50), (45, 65)),
        ("age > 20 and member and age < 40", (21, 39), (21, 30, 39)),
        ("age >= 18", (18, 65), (18, 30, 45, 65)),
    ],
)
def test_integer_bounds_and_bins_after_the_filter(text, bounds, bins):
    column = narrowed(text, "age")
    assert (column.lower, column.upper) == bounds
    assert column.bins == bins


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("income > 0", (0, 2.5)),
        ("income < 0.5", (-1.5, 0.5)),
        ("income == 1", (1, 1)),
        ("income != -1.5", (-1.5, 2.5)),
        ("income in [0.5, 1, 9]", (0.5, 1)),
    ],
)
def test_float_bounds_stay_closed(text, bounds):
    column = narrowed(text, "income")
    assert (column.lower, column.upper) == bounds


@pytest.mark.parametrize(
    ("text", "name", "labels"),
    [
        ("region in ['north', 'south']", "region", ("south", "north")),
        ("region != 'south'", "region", LABELS[1:]),
        ("not region in ['south', 'north']", "region", LABELS[2:]),
        ("region == 'north' or region == 'south'", "region", ("south", "north")),
        ("region == 'north' or age > 30", "region", LABELS),
        ("`family size` <= 2", "family size", (2, 1)),
        ("`family size` > 3.5", "family size", (5, 4)),
        ("`family size` != 3", "family size", (5, 4, 2, 1)),
        ("`family size` in [1, 4]", "family size", (4, 1)),
        ("town == 'y' or town == 'x'", "town", ("y", "x")),
        ("town in ['y', 'x', 'y']", "town", ("y", "x")),
        ("town != 'y'", "town", None),
        ("member", "member", (True,)),
        ("not member", "member", (False,)),
        ("member != True", "member", (False,)),
        ("member in [True, False]", "member", (False, True)),
    ],
)
def test_categories_after_the_filter_keep_the_declared_order(text, name, labels):
    assert narrowed(text, name).categories == labels


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    ("join", "part", "meets"),
    [
        (" or ", "c == {!r}", lambda index, chosen: index in chosen),
        (" or ", "c != {!r}", lambda index, chosen: True),
        (" or ", "(c in [{!r}, 'l1'] and c.notna())", lambda index, chosen: index in chosen or index == 1),
        (" and ", "c != {!r}", lambda index, chosen: index not in chosen),
        (" and ", "(not c == {!r} or c.isna())", lambda index, chosen: index not in chosen),
        (" and ", "c not in [{!r}, 'l1']", lambda index, chosen: index not in chosen and index != 1),
    ],
)
def test_many_conditions_on_many_labels_leave_those_that_meet_them(join, part, meets, negated):
    labels, chosen = tuple(f"l{index}" for index in range(300)), range(7, 300, 3)
    domain = Domain((Column("c", "category", categories=labels),))
    text = join.join(part.format(labels[index]) for index in chosen)
    met = tuple(label for index, label in enumerate(labels) if meets(index, chosen) != negated)
    if not met:
        with pytest.raises(QueryError, match="no declared record"):
            parse(f"not ({text})", domain)
        return
    assert parse(f"not ({text})" if negated else text, domain).domain["c"].categories == met


def test_the_bounds_of_a_narrowed_boolean_follow_its_categories():
    assert narrowed("member", "member").bounds("m") == (1.0, 1.0)
    assert narrowed("member == False", "member").bounds("m") == (0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "nullable"),
    [
        ("age > 30", False),
        ("not age > 30", False),
        ("age != 30", False),
        ("not age != 30", False),
        ("age not in [30]", True),
        ("age != [30, 31]", True),
        ("not (age != 30 or age.isna())", False),
        ("age.notna()", False),
        ("not age.isnull()", False),
        ("age.isna()", True),
        ("age.isna() or age > 30", True),
        ("age != 30 and age.notnull()", False),
        ("age > 30 or member", True),
        ("income > 0", True),
    ],
)
def test_nulls_stay_declared_only_where_they_can_pass(text, nullable):
    assert narrowed(text, "age").nullable is nullable


def test_null_tests_narrow_no_bounds():
    assert narrowed("age.isna()", "age") == DOMAIN["age"]
    assert narrowed("age.isna() or age > 60", "age").lower == 61
    assert narrowed("age > 60 or age.isna()", "age").lower == 61
    assert narrowed("age.isna() or income > 3 or age.isnull()", "age") == DOMAIN["age"]
    bare = Domain((Column("age", "integer", lower=1, upper=9),))
    with pytest.raises(QueryError, match="no declared record can meet"):
        parse("age.isna()", bare)
    assert parse("not age.isna()", bare).domain == bare


def test_bounds_that_are_not_declared_are_declared_by_the_filter():
    bare = Domain((Column("x", "float"), Column("n", "integer"), Column("half", "float", upper=1)))
    column = narrowed("0 <= x < 5", "x", bare)
    assert (column.lower, column.upper) == (0, 5)
    assert narrowed("n > 3 or n > 5", "n", bare).lower == 4
    assert narrowed("n > 3 or n < 1", "n", bare) == Column("n", "integer")
    assert narrowed("half > 0 and half != 0", "half", bare).bounds("m") == (0.0, 1.0)
    assert narrowed("x in [1.5, -3]", "x", bare).bounds("m") == (-3.0, 1.5)


def test_a_narrowed_domain_takes_the_next_filter():
    first = parse("age >= 30 and region in ['south', 'north']", DOMAIN).domain
    second = parse("age < 40 and region != 'south'", first).domain
    assert second["age"].bounds("m") == (30.0, 39.0)
    assert second["age"].bins == (30, 39)
    assert second["region"].categories == ("north",)
    assert parse("age == 35 and age != 36", second).domain["age"].bins == (30, 39)
    with pytest.raises(QueryError, match="no declared record can meet"):
        parse("region != 'north'", second.replace(Column("region", "category", categories=("north",))))


def test_one_float_value_can_be_excluded():
    point = Domain((Column("x", "float", lower=1, upper=1),))
    with pytest.raises(QueryError, match="no declared record can meet"):
        parse("x != 1", point)
    assert parse("x != 2", point).domain == point


# ------------------------------------------------------------------ masks

BIG = 2**53
LIMITS = [-(2**63), -BIG - 1, 0, BIG, BIG + 1, 2**63 - 1]


@pytest.mark.full(keep=17)
@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "object", "category"])
@pytest.mark.parametrize(
    "text",
    [
        "n <= 9007199254740992.0",
        "n == 9007199254740992.0",
        "n == 9007199254740993",
        f"n < {2**63}",
        f"n > {2**63}",
        f"n >= -{2**64}",
        f"n == {2**64}",
        f"n in [{BIG}, {2**64}, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
        "n > 0.5",
        "n != 0.5",
    ],
)
def test_integers_are_compared_exactly(dtype, text):
    cells = pd.Series(LIMITS).astype(dtype)
    step = parse(f"({text}) or other", Domain((Column("n", "integer"), Column("other", "boolean"))))
    frame = pd.DataFrame({"n": cells, "other": False})
    expected = [bool(eval(text, {"n": value})) for value in LIMITS]
    assert step.keep(frame).tolist() == expected


def test_unsigned_integers_are_compared_exactly():
    domain = Domain((Column("n", "integer"),))
    for dtype in ("uint64", "UInt64", "uint64[pyarrow]"):
        frame = pd.DataFrame({"n": pd.Series([0, 2**63, 2**64 - 1]).astype(dtype)})
        assert parse("n > -1", domain).keep(frame).tolist() == [True] * 3
        assert parse(f"n >= {2**64 - 1}", domain).keep(frame).tolist() == [False, False, True]
        assert parse(f"n in [{2**63}, -5]", domain).keep(frame).tolist() == [False, True, False]
        many = list(range(1, 12))
        assert parse(f"n in {[*many, 2**64 - 1]}", domain).keep(frame).tolist() == [False, False, True]


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


def test_an_enum_is_written_as_its_value():
    domain = Domain((Column("x", "category", categories=tuple(Colour)),))
    step = parse("x == 'b'", domain)
    assert step.domain["x"].categories == (Colour.BLUE,)
    cells = pd.Categorical([Colour.RED, Colour.BLUE, None], categories=list(Colour))
    assert step.keep(pd.DataFrame({"x": cells})).tolist() == [False, True, False]


@pytest.mark.parametrize("unit", ["ns", "s", "object"])
def test_a_date_is_written_as_a_string(unit):
    days = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-02-01")]
    domain = Domain((Column("day", "category", nullable=True, categories=tuple(days)),))
    dtype = "object" if unit == "object" else f"datetime64[{unit}]"
    frame = pd.DataFrame({"day": pd.Series([*days, pd.NaT], dtype="object").astype(dtype)})
    step = parse("day == '2020-02-01'", domain)
    assert step.domain["day"].categories == (days[1],)
    assert step.keep(frame).tolist() == [False, True, False]
    assert parse("day not in ['2020-02-01 00:00']", domain).keep(frame).tolist() == [True, False, True]
    assert parse("day.isna()", domain).keep(frame).tolist() == [False, False, True]
    for text in ("day == '2020-03-01'", "day == 'soon'", "day == 3"):
        with pytest.raises(QueryError, match="is not a declared category"):
            parse(text, domain)
    date = Domain((Column("day", "category", categories=(dt.date(2020, 1, 1),)),))
    assert parse("day == '2020-01-01'", date).keep(pd.DataFrame({"day": [dt.date(2020, 1, 1)]})).all()


@pytest.mark.full(keep=8)
@pytest.mark.parametrize(
    "cells",
    [
        [1.0, np.nan],
        pd.array([1, None], dtype="Int64"),
        pd.array([1.0, None], dtype="Float64"),
        pd.array([1.0, None], dtype="double[pyarrow]"),
        [1, None],
        pd.Series([1, None], dtype="object"),
        pd.Series([1, np.nan], dtype="object"),
        pd.Series([1, pd.NA], dtype="object"),
        pd.Series([1, pd.NaT], dtype="object"),
        pd.Categorical([1, None]),
    ],
)
def test_every_null_has_one_fate(cells):
    frame = pd.DataFrame({"x": cells})
    domain = Domain((Column("x", "float", nullable=True),))
    fates = {
        "x == 1": False,
        "x < 9": False,
        "x >= 0": False,
        "x in [1, 2]": False,
        "x in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]": False,
        "x != 2": False,
        "x not in [2, 3]": True,
        "not x > 5": False,
        "not (x > 5 and x != x)": False,
        "not (x > 5 and x.notna())": True,
        "x.isna() or x == 1": True,
        "x.notna()": False,
    }
    for text, fate in fates.items():
        assert parse(text, domain).keep(frame).tolist() == [True, fate], text


def test_nan_beside_na_is_null_too():
    import pyarrow

    arrow = pd.arrays.ArrowExtensionArray(pyarrow.array([1.0, float("nan"), None]))
    frame = pd.DataFrame({"x": arrow})
    domain = Domain((Column("x", "float", nullable=True),))
    assert parse("x.isna()", domain).keep(frame).tolist() == [False, True, True]
    assert parse("x == 1", domain).keep(frame).tolist() == [True, False, False]
    assert parse("x != 1", domain).keep(frame).tolist() == [False, False, False]
    assert parse("x not in [1]", domain).keep(frame).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "Float32", "float[pyarrow]", "double[pyarrow]", "object"]
)
def test_a_long_list_means_what_its_comparisons_mean(dtype):
    frame = pd.DataFrame({"x": pd.Series([-0.0, 0.1, 7.0, None], dtype="object").astype(dtype)})
    domain = Domain((Column("x", "float", nullable=True),))
    constants = [0, 0.1, 11, 12, 13, 14, 15, 16, 17, 18]
    alone = parse(" or ".join(f"x == {constant}" for constant in constants), domain).keep(frame)
    assert parse(f"x in {constants}", domain).keep(frame).tolist() == alone.tolist()
    assert alone[[0, 2, 3]].tolist() == [True, False, False]


def test_cells_of_a_wrong_type_compare_as_false_and_are_never_shown():
    canary = "canary-91b2"
    cells = pd.Series([1, canary, [canary], np.zeros(2), 9.5, None, b"x", {}], dtype="object")
    frame = pd.DataFrame({"x": cells, "y": [canary] * len(cells)})
    domain = Domain((Column("x", "float", nullable=True), Column("y", "integer", nullable=True)))
    assert parse("x > 0", domain).keep(frame).tolist() == [True, False, False, False, True, *[False] * 3]
    assert parse("x == 9.5", domain).keep(frame).tolist() == [*[False] * 4, True, *[False] * 3]
    many = "x in [1, 2, 3, 4, 5, 6, 7, 8, 9]"
    assert parse(many, domain).keep(frame).tolist() == [True, *[False] * 7]
    for text in ("y > 3", "y == 3", "y in [1, 2, 3, 4, 5, 6, 7, 8, 9]"):
        assert not parse(text, domain).keep(frame).any()
        for dtype in ("str", "string[pyarrow]", "category"):
            assert not parse(text, domain).keep(frame.astype({"y": dtype})).any()


def test_a_frame_without_the_column_is_refused_by_name():
    frame = pd.DataFrame([["canary-91b2", 1]], columns=["x", "y"])
    for refused in (frame, frame.set_axis(["age", "age"], axis=1)):
        with pytest.raises(InvalidDataError, match="'age'") as caught:
            refused.dp.protect(Domain((DOMAIN["age"],)), epsilon=1)
        assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_an_empty_frame_has_an_empty_mask():
    frame = pd.DataFrame({"age": pd.Series([], dtype="int64"), "region": pd.Categorical([])})
    mask = parse("age > 30 or region == 'south' or age.isna()", DOMAIN).keep(frame)
    assert mask.shape == (0,)
    assert mask.dtype == bool


@given(
    st.lists(st.sampled_from(["age", "member", ">", "==", "3", "&", "|", "and", "or", "not", "~", "(", ")"]))
)
def test_whatever_is_accepted_means_what_dataframe_query_means(words):
    text = " ".join(words)
    try:
        step = parse(text, DOMAIN)
    except QueryError:
        return
    frame = pd.DataFrame({"age": [3, 20, 3, 20], "member": [True, True, False, False]})
    selected = frame.query(text, engine="python")
    assert frame.index[step.keep(frame)].tolist() == selected.index.tolist()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    ("labels", "text", "meant"),
    [
        ((True, "x"), "c == True", True),
        ((2, "x", 1), "c == 1.0", 1),
        ((*Level,), "c == 2", Level.HIGH),
        (("r", *Colour), "c == 'r'", "r"),
        ((*Colour, "r"), "c == 'r'", Colour.RED),
        (("2020-01-01", dt.date(2020, 1, 1)), "c == '2020-01-01'", "2020-01-01"),
        ((dt.date(2020, 1, 1), "2020-01-01"), "c == '2020-01-01'", dt.date(2020, 1, 1)),
        (
            (pd.Timestamp("2020-01-01", tz="UTC"), "x"),
            "c == '2020-01-01 00:00Z'",
            pd.Timestamp("2020-01-01", tz="UTC"),
        ),
        ((dt.date(1, 1, 1), "x"), "c == 'x'", "x"),
    ],
)
def test_a_constant_means_the_first_label_that_it_fits(labels, text, meant):
    domain = Domain((Column("c", "category", categories=labels),))
    (label,) = parse(text, domain).domain["c"].categories
    assert label is meant or (type(label) is type(meant) and label == meant)


@pytest.mark.parametrize(("labels", "text"), [((True, "x"), "c == 1"), ((1, "x"), "c == True")])
def test_truth_values_are_no_numbers(labels, text):
    with pytest.raises(QueryError, match="is not a declared category"):
        parse(text, Domain((Column("c", "category", categories=labels),)))


@each(
    "text",
    [
        "age + 1 > 30",
        "30 < 2 * age - `family size` <= 100",
        "age > 20 + `family size` * 7",
        "income < age - 30",
        "age > -income * 20",
        "abs(income) in [1, 2.5]",
        "not (age // 10 == 3)",
        "10 * (age > 30) + `family size` >= 13",
        "age.clip(20, 40.5) == 40.5",
        "income.fillna(0) + age > 31",
        "(age + income).notna() and (member == (age > 30))",
    ],
)
def test_arithmetic_in_a_filter_is_that_of_pandas(text):
    frame = pd.DataFrame(
        {
            "age": [18, 29, 30, 33, 65],
            "family size": [1, 2, 5, 4, 3],
            "income": [-1.5, -1.0, 0.5, 1.0, 2.5],
            "member": [True, False, True, False, True],
        }
    )
    step = parse(text, DOMAIN)
    columns = {name.replace(" ", "_"): frame[name] for name in frame}
    if "abs" in text:
        theirs = frame[columns["income"].abs().isin([1, 2.5])]
    elif "notna" in text:  # pandas 2 reads no method of a sum
        theirs = frame[columns["member"] == (columns["age"] > 30)]
    else:
        theirs = frame.query(text, engine="python")
    assert 0 < len(theirs) < len(frame) or "notna" in text
    kept = frame[step.keep(frame)]
    assert kept.index.tolist() == theirs.index.tolist()
    check_narrowed(step, kept)


def test_arithmetic_narrows_no_column_and_knows_what_no_record_meets():
    assert parse("age + 1 > 30", DOMAIN).domain == DOMAIN
    assert parse("age + 1 > 30 and age < 40", DOMAIN).domain["age"].upper == 39
    assert parse("age + 1 > 300 or age < 40", DOMAIN).domain["age"].upper == 39
    assert parse("age + 1 > 300 or age.isna()", DOMAIN).domain["age"].nullable
    with pytest.raises(QueryError, match="no declared record can meet"):
        parse("age + income > 67.5", DOMAIN)


def test_whole_numbers_too_far_apart_for_64_bits_are_not_compared():
    domain = Domain(tuple(Column(name, "integer", lower=-(2**62) - 1, upper=2**62) for name in ("x", "y")))
    with pytest.raises(QueryError, match="whole numbers more than 64 bits apart"):
        parse("x > y", domain)
    narrow = Domain(tuple(Column(name, "integer", lower=-(2**62) + 1, upper=2**62) for name in ("x", "y")))
    frame = pd.DataFrame({"x": [2**62, 2**60 + 1, 5], "y": [2**62 - 1, 2**60, 5]})
    assert parse("x > y", narrow).keep(frame).tolist() == [True, True, False]


@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("constant", [2**53 + 1, -(2**53) - 1, 2**62 + 1])
def test_integers_that_no_double_holds_narrow_as_they_compare(symbol, constant):
    numbers = pd.Series([0.0, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**62])
    domain = Domain((Column("x", "float", lower=-(2.0**63), upper=2.0**63),))
    private = numbers.to_frame("x").dp.protect(domain, epsilon=1).query(f"x {symbol} {constant}")
    (column,), kept = find(private).domain.columns, records_of(private)["x"]
    assert all(column.lower <= cell <= column.upper for cell in kept.tolist())
    compare = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}[symbol]
    assert kept.tolist() == numbers[getattr(numbers, compare)(float(constant))].tolist()
