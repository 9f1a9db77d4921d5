"""Row steps, and the `nodes` of expressions behind them: records, domains and refusals."""

from __future__ import annotations

import datetime as dt
import math
import traceback
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.core import rows as transform
from pdprivacy.core.conform import conform
from pdprivacy.core.rows.cells import BLOCK
from pdprivacy.errors import DeclarationError, ParameterError, PrivacyError, QueryError, UnstableStepError
from pdprivacy.frames.refused_steps import REFUSED, refusal
from tests.support.cases import each
from tests.support.cells import STR, column_of

LABELS = ("south", "north", "it's")
DOMAIN = Domain(
    (
        Column("age", "integer", nullable=True, lower=18, upper=65, bins=(18, 30, 45, 65), role="sensitive"),
        Column("rooms", "integer", nullable=True, lower=1, upper=5, categories=(5, 4, 3, 2, 1)),
        Column("big", "integer", nullable=True),
        Column("income", "float", nullable=True, lower=-1.5, upper=2.5, bins=(-2, 0, 1.5, 2.5)),
        Column("score", "float", nullable=True, categories=(0.5, -1.0, 2.0)),
        Column("wild", "float"),
        Column("region", "category", nullable=True, categories=LABELS),
        Column("town", "category", nullable=True),
        Column("member", "boolean", nullable=True),
        Column("id", "integer", lower=0, upper=9, role="identifier"),
    )
)
MOST = float(np.finfo(np.float64).max)
DTYPES = {
    "age": ["int64", "uint8", "float64", "Int64", "int64[pyarrow]", "object"],
    "rooms": ["int64", "Int8", "float32"],
    "big": ["int64", "uint64", "Int64", "object"],
    "income": ["float64", "Float64", "double[pyarrow]", "object"],
    "score": ["float64", "Float32", "object"],
    "wild": ["float64"],
    "region": ["object", STR, "string[pyarrow]", "category"],
    "town": ["object", STR, "string[python]", "category"],
    "member": ["bool", "boolean", "bool[pyarrow]", "object"],
    "id": ["int64"],
}
CELLS = {
    "age": st.integers(18, 65),
    "rooms": st.integers(1, 5),
    "big": st.integers(0, 3) | st.sampled_from([2**53 + 1, 2**63 - 1]),
    "income": st.sampled_from([-1.5, -1.0, -0.0, 0.0, 5e-324, 0.25, 1.0, 1.5, 2.5]),
    "score": st.sampled_from([0.5, -1.0, 2.0]),
    "wild": st.sampled_from([0.0, -0.0, 1.0, -7.5, 1e200, MOST, -MOST, 5e-324]),
    "region": st.sampled_from(LABELS),
    "town": st.sampled_from(["x", "y"]),
    "member": st.booleans(),
    "id": st.integers(0, 9),
}
WITHOUT_NULLS = ("int64", "uint8", "uint64", "bool")


@st.composite
def frames(draw):
    count = draw(st.integers(0, 5))
    columns = {}
    for name, dtypes in DTYPES.items():
        dtype = draw(st.sampled_from(dtypes))
        cell = CELLS[name]
        if name == "big" and dtype == "object":
            cell = cell | st.just(2**70)
        if DOMAIN[name].nullable and dtype not in WITHOUT_NULLS:
            cell = cell | st.none()
        columns[name] = column_of(draw(st.lists(cell, min_size=count, max_size=count)), dtype)
    index = draw(st.lists(st.sampled_from([1, 2, "a"]), min_size=count, max_size=count))
    return pd.DataFrame(columns).set_axis(pd.Index(index, dtype=object))


NUMBERS = st.integers(-3, 70) | st.sampled_from([-1.5, 0.25, 0.5, 1.75])
OPERANDS = st.sampled_from(
    ["age", "rooms", "income", "score", "wild", "member", "big", "2", "0.5", "-3", "7"]
)
ARITHMETIC = st.recursive(
    OPERANDS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda text: f"-({text})"),
        inner.map(lambda text: f"abs({text})"),
        st.tuples(inner, st.integers(0, 4)).map(lambda parts: f"({parts[0]}) ** {parts[1]}"),
    ),
    max_leaves=4,
)
CONDITIONS = st.sampled_from(
    ["age >= 30", "not (age < 30 or member)", "region in ['south', 'north']", "income.isna()", "town != 'x'"]
)
NUMERIC = ("age", "rooms", "income", "score", "wild", "big")
IMAGES = {
    "rooms": st.integers(0, 4) | st.none() | st.sampled_from([0.5, "many"]),
    "age": st.integers(10, 40) | st.none(),
    "score": st.sampled_from([1, 0.5, None, "x"]),
    "region": st.sampled_from(["south", "other", None, 3]),
    "member": st.sampled_from([True, False, None, "yes", "no"]),
}
FILLS = {
    "age": st.integers(0, 80),
    "rooms": st.integers(0, 7),
    "big": st.integers(-5, 5),
    "income": st.sampled_from([-3, 0.0, 1.25, 9]),
    "score": st.sampled_from([2.0, 4]),
    "region": st.sampled_from(["north", "none"]),
    "town": st.sampled_from(["x", "z"]),
    "member": st.booleans(),
}


@st.composite
def steps(draw):
    """A step by its text: each of them is parsed by Python itself, as a user writes it."""
    verb = draw(st.sampled_from(["query", "clip", "assign", "cut", "recode", "fillna", "dropna", "select"]))
    numbers = st.none() | NUMBERS | st.dictionaries(st.sampled_from(NUMERIC), NUMBERS, min_size=1)
    if verb == "query":
        call = transform.query, (draw(CONDITIONS),), {}
    elif verb == "clip":
        columns = draw(st.none() | st.lists(st.sampled_from(NUMERIC), min_size=1, unique=True))
        call = transform.clip, (draw(numbers), draw(numbers)), {"columns": columns}
    elif verb == "assign":
        names = draw(st.lists(st.sampled_from(["new", "age", "a b"]), min_size=1, unique=True))
        texts = {
            name: draw(ARITHMETIC | CONDITIONS | st.sampled_from(["region", "member"])) for name in names
        }
        ends = {
            name: draw(st.sampled_from([(-5, 5), (0, 100), (None, 7)]))
            for name in names
            if draw(st.booleans())
        }
        call = transform.assign, (texts, ends), {}
    elif verb == "cut":
        edges = sorted(
            draw(st.sets(NUMBERS | st.sampled_from([math.inf, -math.inf]), min_size=2, max_size=5))
        )
        given = draw(st.booleans())
        options = {"right": draw(st.booleans()), "include_lowest": draw(st.booleans())}
        labels = [f"g{index}" for index in range(len(edges) - 1)] if given else None
        call = transform.cut, (draw(st.sampled_from(NUMERIC)), edges), {"labels": labels, **options}
    elif verb == "recode":
        name = draw(st.sampled_from(sorted(IMAGES)))
        categories = DOMAIN[name].categories or tuple(range(18, 66))
        call = (
            transform.recode,
            (name, draw(st.dictionaries(st.sampled_from(categories), IMAGES[name], min_size=1))),
            {},
        )
    elif verb == "fillna":
        chosen = draw(st.lists(st.sampled_from(sorted(FILLS)), min_size=1, unique=True))
        call = transform.fillna, ({name: draw(FILLS[name]) for name in chosen},), {}
    elif verb == "dropna":
        subset = draw(st.none() | st.lists(st.sampled_from(sorted(FILLS)), min_size=1, unique=True))
        call = transform.dropna, (subset, draw(st.sampled_from(["any", "all"]))), {}
    else:
        call = (
            transform.select,
            (draw(st.lists(st.sampled_from(sorted(FILLS)), min_size=1, unique=True)),),
            {},
        )
    function, given, options = call
    try:
        return function(DOMAIN, *given, **options)
    except PrivacyError:
        reject()
        raise


def cells(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """The rows as plain values, any null as None."""
    read = [[None if pd.isna(cell) else cell for cell in frame[name].astype(object)] for name in frame]
    return list(zip(*read, strict=True))


# ------------------------------------------------------------------ stability


def check_each_record_alone(frame, step, result):
    """Stability 1: of one record alone comes what comes of it among others, whatever these are."""
    alone = [cells(step.apply(frame.iloc[[index]])) for index in range(len(frame))]
    assert all(len(rows) <= 1 for rows in alone)
    assert cells(result) == [row for rows in alone for row in rows]
    backwards = step.apply(frame.iloc[::-1])
    assert cells(backwards) == cells(result)[::-1]


def check_what_is_declared(frame, step, result):
    assert tuple(result.columns) == step.domain.names
    conform(result, step.domain, on_invalid="raise")
    if step.columns is not None:
        assert all(made.index.equals(frame.index) for made in step.made(frame).values())
    if step.keep is None:
        assert result.index.equals(frame.index)
    else:
        kept = step.keep(frame)
        assert kept.dtype == bool
        assert kept.shape == (len(frame),)
        assert result.index.equals(frame.index[kept])


def check_one_more(step, result, data):
    names = [name for name in step.domain if step.domain[name].role != "identifier"]
    second = transform.dropna(
        step.domain, data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    )
    conform(second.apply(result), second.domain, on_invalid="raise")


@given(frames(), steps(), st.data())
def test_a_step_treats_each_record_by_itself_and_meets_what_is_declared_of_it(frame, step, data):
    """And steps follow each other: three facts of the same frames and steps, which are costly to draw."""
    before = frame.copy(deep=True)
    result = step.apply(frame)
    pd.testing.assert_frame_equal(frame, before)
    check_what_is_declared(frame, step, result)
    check_each_record_alone(frame, step, result)
    check_one_more(step, result, data)


@given(steps())
def test_the_text_of_a_step_makes_the_step(step):
    verbs = {
        "assign": lambda bounds=None, **expressions: transform.assign(DOMAIN, expressions, bounds),
    }
    for verb in ("query", "clip", "cut", "recode", "fillna", "dropna", "select"):
        verbs[verb] = lambda *given, verb=verb, **options: getattr(transform, verb)(DOMAIN, *given, **options)
    again = eval(step.text, {"inf": math.inf, **verbs})
    assert again.domain == step.domain
    assert again.text == step.text


# ------------------------------------------------------------------ the methods of pandas

PLAIN = pd.DataFrame(
    {
        "age": pd.array([18, 30, 31, 65, None, 45], dtype="Int64"),
        "rooms": [1, 2, 3, 4, 5, 5],
        "big": [0, 1, 2, 3, 4, 5],
        "income": [-1.5, 0.0, np.nan, 2.5, 1.0, -0.5],
        "score": [0.5, np.nan, -1.0, 2.0, 0.5, 0.5],
        "wild": [0.0, 1.0, 2.0, -3.0, 4.0, 1e9],
        "region": ["south", None, "north", "it's", "south", "south"],
        "town": ["x", "y", None, "x", "x", "y"],
        "member": pd.array([True, False, None, True, True, False], dtype="boolean"),
        "id": range(6),
    },
    index=[3, 3, 1, 0, 7, 9],
)


def same(ours: pd.Series, theirs: pd.Series) -> None:
    assert ours.index.equals(theirs.index)
    mine, other = (
        [None if pd.isna(cell) else cell for cell in series.astype(object)] for series in (ours, theirs)
    )
    assert mine == other


@pytest.mark.parametrize(
    ("lower", "upper"), [(30, 45), (None, 40), (20, None), ({"age": 31, "income": 0.25}, {"income": 1.5})]
)
def test_clip_is_that_of_pandas(lower, upper):
    names = ["age", "income"]
    columns = None if isinstance(lower, dict) else names
    step = transform.clip(DOMAIN, lower, upper, columns=columns)
    as_series = [
        pd.Series(bound, index=names, dtype="float64") if isinstance(bound, dict) else bound
        for bound in (lower, upper)
    ]
    result = step.apply(PLAIN)
    for name in names:
        ends = [bound[name] if isinstance(bound, pd.Series) else bound for bound in as_series]
        ends = [None if end is None or pd.isna(end) else int(end) if name == "age" else end for end in ends]
        same(result[name], PLAIN[name].clip(*ends) if ends != [None, None] else PLAIN[name])
    same(result["rooms"], PLAIN["rooms"])


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", ["age", "income", "rooms"])
@pytest.mark.parametrize(
    "edges", [[18, 30, 65], [-1.5, 0, 2.5], [0, 1, 2, 3], (1, 5, math.inf), range(0, 60, 15)]
)
@pytest.mark.parametrize(
    "options", [{}, {"right": False}, {"include_lowest": True}, {"right": False, "include_lowest": True}]
)
def test_cut_is_that_of_pandas(name, edges, options):
    step = transform.cut(DOMAIN, name, edges, **options)
    theirs = pd.cut(PLAIN[name].astype("float64"), list(edges), **options)
    texts = [
        str(interval) for interval in pd.cut([], list(edges), right=options.get("right", True)).categories
    ]
    if options.get("include_lowest"):  # pandas writes (17.999, 30.0] for [18, 30]
        texts[0] = f"[{texts[0][1:]}"
    placed = theirs.cat.codes.map(lambda code: texts[code] if code >= 0 else None)
    same(step.apply(PLAIN)[name], placed.astype(object).where(theirs.notna(), np.nan))
    assert step.domain[name].categories == tuple(texts)
    labels = [f"g{index}" for index in range(len(edges) - 1)]
    named = transform.cut(DOMAIN, name, edges, labels=labels, **options)
    same(
        named.apply(PLAIN)[name], pd.cut(PLAIN[name].astype("float64"), list(edges), labels=labels, **options)
    )


def test_fillna_is_that_of_pandas():
    value = {"age": 40, "income": -2.0, "region": "none", "town": "x", "member": False}
    step = transform.fillna(DOMAIN, value)
    result, theirs = step.apply(PLAIN), PLAIN.fillna(value)
    for name in DOMAIN:
        same(result[name], theirs[name])
    assert all(not step.domain[name].nullable for name in value)
    assert step.domain["rooms"].nullable
    assert result["income"].dtype == np.float64
    assert result["age"].dtype == np.int64
    assert result["member"].dtype == bool


@pytest.mark.parametrize("how", ["any", "all"])
@pytest.mark.parametrize("subset", [None, ["age", "income"], ["region"], ["rooms", "town"]])
def test_dropna_is_that_of_pandas(how, subset):
    step = transform.dropna(DOMAIN, subset, how)
    theirs = PLAIN.dropna(subset=subset, how=how)
    assert step.apply(PLAIN)["id"].tolist() == theirs["id"].tolist()


@pytest.mark.parametrize(
    ("name", "mapping"),
    [
        ("rooms", {1: 2, 2: 1, 5: 0}),
        ("rooms", {1: 1.5}),
        ("age", {18: 99, 30: 31}),
        ("region", {"south": "north", "north": "south"}),
        ("region", {"it's": "else", "south": None}),
        ("score", {0.5: 7}),
        ("member", {True: "yes", False: "no"}),
        ("member", {True: False, False: True}),
    ],
)
def test_recode_is_that_of_pandas(name, mapping):
    """By Series.map, as Series.replace warns of what it infers; nulls stay."""
    result = transform.recode(DOMAIN, name, mapping).apply(PLAIN)[name]
    theirs = PLAIN[name].astype(object).map(lambda cell: cell if pd.isna(cell) else mapping.get(cell, cell))
    same(result, theirs)


@pytest.mark.parametrize(
    "text",
    [
        "wild * 2 - rooms",
        "-rooms + 3",
        "rooms / 4",
        "(rooms + big) // 3",
        "rooms % 3",
        "rooms ** 3",
        "income ** 2",
        "abs(income)",
        "wild % 3.5",
        "wild // 0.5",
        "rooms // big",
        "1 / rooms",
        "wild / big",
        "income % big",
        "rooms >= 3",
        "rooms > 1 and wild < 3",
        "2 * (rooms > 3)",
        "(rooms >= 3) + rooms",
        "rooms + 1 > 3",
        "rooms > big",
    ],
)
def test_assign_is_eval_of_pandas(text):
    bounds = {"new": (-(2**62), 2**62)} if "big" in text or "wild" in text else None
    bounds = None if ">" in text else bounds
    result = transform.assign(DOMAIN, {"new": text}, bounds).apply(PLAIN)["new"]
    theirs = (
        PLAIN.eval(text, engine="python").clip(-(2**62), 2**62)
        if bounds
        else PLAIN.eval(text, engine="python")
    )
    same(result, theirs)


def test_an_expression_may_use_those_before_it():
    frame = PLAIN[["rooms"]]
    domain = Domain((DOMAIN["rooms"],))
    step = transform.assign(domain, {"twice": "2 * rooms", "rooms": "twice + 1", "more": "rooms > 5"})
    theirs = frame.assign(
        twice=lambda table: 2 * table.rooms,
        rooms=lambda table: table.twice + 1,
        more=lambda table: table.rooms > 5,
    )
    result = step.apply(frame)
    assert step.domain.names == ("rooms", "twice", "more")
    for name in result:
        same(result[name], theirs[name])
    assert step.domain["rooms"].bounds("mean") == (3.0, 11.0)


# ------------------------------------------------------------------ declarations


def column(step, name):
    return step.domain[name]


def test_clip_declares_what_it_leaves():
    step = transform.clip(DOMAIN, {"age": 20, "rooms": 2}, {"age": 45, "income": 1})
    assert column(step, "age") == Column(
        "age", "integer", nullable=True, lower=20, upper=45, bins=(20, 30, 45), role="sensitive"
    )
    assert column(step, "rooms").categories == (5, 4, 3, 2)
    assert column(step, "income").bins == (-2, 0, 1)
    assert transform.clip(DOMAIN, lower=0, columns="big").domain["big"].lower == 0
    assert transform.clip(DOMAIN, lower=0, columns="big").domain["big"].upper is None
    beyond = transform.clip(DOMAIN, upper={"age": 10}).domain["age"]
    assert (beyond.lower, beyond.upper, beyond.bins) == (10, 10, None)
    everything = transform.clip(DOMAIN, 1, 2)
    assert {name for name in DOMAIN if everything.domain[name] != DOMAIN[name]} == set(NUMERIC)


def test_cut_declares_nulls_only_where_they_occur():
    whole = Domain((Column("n", "integer", lower=18, upper=65),))
    for edges, options, nullable in [
        ([17, 30, 65], {}, False),
        ([18, 30, 65], {}, True),
        ([18, 30, 65], {"include_lowest": True}, False),
        ([18, 30, 65], {"right": False}, True),
        ([18, 30, 66], {"right": False}, False),
        ([17, 30, 64], {}, True),
        ([-math.inf, 30, math.inf], {}, False),
    ]:
        assert column(transform.cut(whole, "n", edges, **options), "n").nullable is nullable
    some = Domain((Column("n", "integer", categories=(1, 4)),))
    assert not column(transform.cut(some, "n", [0, 1, 2, 4]), "n").nullable
    bare = Domain((Column("n", "float"),))
    assert column(transform.cut(bare, "n", [-1e300, 1e300]), "n").nullable
    assert not column(transform.cut(bare, "n", [-math.inf, 0, math.inf]), "n").nullable


def test_recode_declares_the_images_in_declared_order():
    assert column(transform.recode(DOMAIN, "region", {"north": "south"}), "region").categories == (
        "south",
        "it's",
    )
    rooms = column(transform.recode(DOMAIN, "rooms", {5: 9, 4: 9, 1: None}), "rooms")
    assert (rooms.kind, rooms.categories, rooms.bounds("mean"), rooms.nullable) == (
        "integer",
        (9, 3, 2),
        (2, 9),
        True,
    )
    assert column(transform.recode(DOMAIN, "rooms", {5: "many"}), "rooms").kind == "category"
    assert column(transform.recode(DOMAIN, "rooms", {5: 4.5}), "rooms").categories == (4.5, 4, 3, 2, 1)
    assert column(transform.recode(DOMAIN, "rooms", {5: 4.5}), "rooms").kind == "float"
    # no double is that large
    assert column(transform.recode(DOMAIN, "rooms", {5: 10**400}), "rooms").kind == "category"
    truths = dict.fromkeys(range(1, 6), True) | {1: False}
    assert column(transform.recode(DOMAIN, "rooms", truths), "rooms").kind == "boolean"
    assert column(transform.recode(DOMAIN, "member", {True: "yes"}), "member").categories == (False, "yes")
    assert column(transform.recode(DOMAIN, "age", {18: 17}), "age").role == "sensitive"
    assert column(transform.recode(DOMAIN, "age", {18: 17}), "age").bins is None
    sure = Domain((Column("x", "category", categories=("a", "b")),))
    assert not column(transform.recode(sure, "x", {"a": "c"}), "x").nullable
    numbers = column(transform.recode(sure, "x", {"a": 1, "b": 2}), "x")
    assert (numbers.kind, numbers.categories, numbers.bounds("mean")) == ("integer", (1, 2), (1, 2))
    halves = Domain((Column("x", "float", categories=(0.5, 1.5)),))
    assert column(transform.recode(halves, "x", {0.5: 1, 1.5: 2}), "x").kind == "float"


def test_fillna_widens_what_is_declared():
    step = transform.fillna(DOMAIN, {"age": 80, "income": -3, "rooms": 7, "region": "none", "member": True})
    age = column(step, "age")
    assert (age.lower, age.upper, age.bins, age.nullable) == (18, 80, (18, 30, 45, 65, 80), False)
    income = column(step, "income")
    assert (income.lower, income.upper, income.bins) == (-3, 2.5, (-3, -2, 0, 1.5, 2.5))
    assert column(step, "rooms").categories == (5, 4, 3, 2, 1, 7)
    assert column(step, "rooms").upper == 7
    assert column(step, "region").categories == (*LABELS, "none")
    assert column(transform.fillna(DOMAIN, {"income": 0}), "income").bins == DOMAIN["income"].bins
    only = Domain((Column("m", "boolean", nullable=True, categories=(True,)),))
    assert column(transform.fillna(only, False), "m").categories == (False, True)
    assert column(transform.fillna(only, True), "m").categories == (True,)
    sure = Domain((Column("n", "integer", lower=0, upper=9),))
    assert transform.fillna(sure, 99).domain == sure


def test_dropna_declares_no_nulls_where_none_are_left():
    every = transform.dropna(DOMAIN)
    assert not any(every.domain[name].nullable for name in DOMAIN)
    some = transform.dropna(DOMAIN, ["age", "town"])
    assert {name for name in DOMAIN if some.domain[name].nullable} == {
        name for name in DOMAIN if DOMAIN[name].nullable
    } - {"age", "town"}
    assert transform.dropna(DOMAIN, ["age", "town"], how="all").domain == DOMAIN
    assert not column(transform.dropna(DOMAIN, ["age"], how="all"), "age").nullable
    assert transform.dropna(DOMAIN, ["wild"]).keep is None
    assert transform.dropna(DOMAIN, ["wild", "age"], how="all").keep is None


def test_assign_declares_the_kind_and_the_role():
    step = transform.assign(
        DOMAIN,
        {
            "whole": "age * 2 - rooms",
            "part": "age / 2",
            "large": f"rooms * {2**62}",
            "old": "age >= 65",
            "never": "age >= 100",
            "again": "age",
            "one": "1",
        },
    )
    columns = {name: column(step, name) for name in list(step.domain)[len(DOMAIN) :]}
    assert {name: declared.kind for name, declared in columns.items()} == {
        "whole": "integer",
        "part": "float",
        "large": "float",
        "old": "boolean",
        "never": "boolean",
        "again": "integer",
        "one": "integer",
    }
    assert {name for name, declared in columns.items() if not declared.nullable} == {"one"}
    roles = {name: declared.role for name, declared in columns.items()}
    assert roles == {name: None if name in ("large", "one") else "sensitive" for name in columns}
    assert columns["again"].bins == DOMAIN["age"].bins
    assert columns["never"].categories == (False,)
    assert columns["old"].categories == (False, True)
    assert columns["one"].bounds("mean") == (1.0, 1.0)


def test_select_keeps_the_order_asked_for():
    step = transform.select(DOMAIN, ["region", "age"])
    assert step.domain == Domain((DOMAIN["region"], DOMAIN["age"]))
    assert list(step.apply(PLAIN)) == ["region", "age"]


def test_a_step_copies_no_column_that_it_leaves_as_it_is():
    domain = Domain((Column("a", "integer", lower=0, upper=9), Column("b", "float", lower=0, upper=1)))
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.0]})
    result = transform.assign(domain, {"c": "a + 1"}).apply(frame)
    for name in frame:
        assert np.shares_memory(result[name].to_numpy(), frame[name].to_numpy())


def test_odd_cells_are_read_as_the_numbers_they_are():
    frame = pd.DataFrame({"n": pd.Series([Decimal(3), 2.0, True, None, 2**70], dtype=object)})
    domain = Domain((Column("n", "integer", nullable=True),))
    assert cells(transform.clip(domain, lower=2).apply(frame)) == [(3,), (2,), (2,), (None,), (2**70,)]
    assert cells(transform.clip(domain, 0, 2).apply(frame)) == [(2,), (2,), (1,), (None,), (2,)]
    floats = Domain((Column("n", "float", nullable=True, lower=0, upper=5),))
    assert cells(transform.assign(floats, {"n": "n * 2"}).apply(frame)) == [
        (6.0,),
        (4.0,),
        (2.0,),
        (None,),
        (10.0,),
    ]


PAIRS = (("a", 1), ("b", 2))


def objects(values):
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return pd.Series(array)


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("dtype", ["object", "category"])
@pytest.mark.parametrize("nulls", [0, 1, 2, 3, 5])
def test_tuples_are_labels_like_others(dtype, nulls):
    """numpy spreads a tuple over as many cells as it has parts, and raises where there are more or fewer."""
    domain = Domain((Column("c", "category", nullable=True, categories=PAIRS),))
    values = objects([*PAIRS, *[None] * nulls])
    if dtype == "category":
        labels = pd.Index(list(PAIRS), dtype=object, tupleize_cols=False)
        values = pd.Series(pd.Categorical.from_codes([0, 1, *[-1] * nulls], categories=labels))
    frame = pd.DataFrame({"c": values})
    for label in (PAIRS[1], ("c", 3), ("d", 4, 5)):
        step = transform.fillna(domain, {"c": label})
        assert step.apply(frame)["c"].tolist() == [*PAIRS, *[label] * nulls]
        assert step.domain["c"].categories == tuple(dict.fromkeys([*PAIRS, label]))
        recoded = transform.recode(domain, "c", {PAIRS[0]: label}).apply(frame)["c"]
        assert recoded.dropna().tolist() == [label, PAIRS[1]]
        assert int(recoded.isna().sum()) == nulls
    copied = transform.assign(domain, {"d": "c", "e": "c.isna()"}).apply(frame)
    assert copied["d"].dropna().tolist() == list(PAIRS)
    assert copied["e"].tolist() == [False, False, *[True] * nulls]


def test_intervals_may_be_named_by_tuples():
    domain = Domain((Column("n", "integer", lower=0, upper=9),))
    step = transform.cut(domain, "n", [-1, 4, 9], labels=list(PAIRS))
    for cells_ in ([0, 9], [0, 9, 3], [1], []):
        frame = pd.DataFrame({"n": np.array(cells_, dtype=np.int64)})
        assert step.apply(frame)["n"].tolist() == [PAIRS[n > 4] for n in cells_]


@pytest.mark.parametrize(
    ("dtype", "cell"),
    [
        ("int64[pyarrow]", [3, None, 4]),
        ("Int64", [3, None, 4]),
        ("Sparse[object]", ["y", None, "z"]),
        ("date32[pyarrow]", [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2)]),
        ("decimal", [Decimal(3), None, Decimal(4)]),
        ("bool[pyarrow]", [True, None, False]),
        ("datetime64[ns]", [pd.Timestamp("2020-01-01"), None, pd.Timestamp("2020-01-02")]),
        ("string[pyarrow]", ["y", None, "z"]),
        ("large_string[pyarrow]", ["y", None, "z"]),
        ("string[python]", ["y", None, "z"]),
    ],
)
def test_a_text_fills_nulls_of_any_dtype_where_no_labels_are_declared(dtype, cell):
    import pyarrow

    known = {"decimal": pyarrow.decimal128(5, 2), "large_string[pyarrow]": pyarrow.large_string()}
    of_dtype = pd.ArrowDtype(known[dtype]) if dtype in known else dtype
    frame = pd.DataFrame({"c": pd.Series(cell, dtype="object").astype(of_dtype)})
    domain = Domain((Column("c", "category", nullable=True),))
    filled = transform.fillna(domain, {"c": "x"}).apply(frame)["c"]
    assert filled.tolist() == [cell[0], "x", cell[2]]
    assert (filled.dtype == of_dtype) == ("string" in dtype)


SPARSE = [2**53 + 1, 0, 3, 9, 2**53]


@pytest.mark.parametrize("gap", [0, 3, None])
@pytest.mark.parametrize("nulls", [0, 2])
def test_sparse_columns_are_columns(gap, nulls):
    """The fill value of a sparse column changes no result."""
    if gap is not None and nulls:
        return  # integers hold none
    values = [*SPARSE, *[None] * nulls]
    fill = np.nan if gap is None else gap
    array = pd.arrays.SparseArray(np.array(values, dtype=object), dtype=pd.SparseDtype(np.int64, fill))
    assert len(array.sp_values) == sum(cell != gap for cell in values)
    frame = pd.DataFrame({"n": array})
    assert frame["n"].dtype == pd.SparseDtype(np.int64, fill)
    plain = pd.DataFrame({"n": pd.Series(values, dtype="Int64" if nulls else "int64")})
    domain = Domain((Column("n", "integer", nullable=gap is None, lower=0, upper=2**60),))
    steps = [
        *(
            transform.query(domain, text)
            for text in ("n == 3", "n in [0, 9]", f"n in {[*SPARSE[:2], *range(1, 12)]}")
        ),
        *(transform.query(domain, text) for text in ("n != 3", "n > 2.5", f"n <= {2**53}", "not n < 3")),
        transform.assign(domain, {"a": "n + 1", "b": "n == 3", "c": "n > 2", "d": "n / 2", "e": "n % 5"}),
        transform.clip(domain, 1, 5),
        transform.cut(domain, "n", [-1, 3, 2**60]),
        transform.fillna(domain, {"n": 7}),
        transform.dropna(domain),
    ]

    def made(step, of):  # some versions of pandas round such cells where they take rows of them
        columns = pd.DataFrame(step.made(of)) if step.columns else pd.DataFrame(index=of.index)
        return cells(columns) + ([] if step.keep is None else step.keep(of).tolist())

    for step in steps:
        assert made(step, frame) == made(step, plain), step.text
    few = Domain((Column("n", "integer", nullable=gap is None, categories=(0, 3, 9, 2**53, 2**53 + 1)),))
    step = transform.recode(few, "n", {2**53 + 1: 1, 9: None})
    assert made(step, frame) == made(step, plain)


@pytest.mark.parametrize(
    ("kind", "dtype", "values", "text"),
    [
        ("boolean", "Sparse[bool]", [True, False, True], "x"),
        ("float", "Sparse[float64]", [0.5, None, 0.0], "x in [0, 0.5]"),
        ("float", pd.SparseDtype("float64", 0.0), [0.5, 1.5, 0.0], "x != 0"),
        ("category", "Sparse[object]", ["a", None, "b"], "x == 'a' or x.isna()"),
    ],
)
def test_sparse_cells_of_other_kinds_compare_as_others(kind, dtype, values, text):
    cells_ = pd.Series(values, dtype="object" if kind == "category" else None)
    domain = Domain((Column("x", kind, nullable=None in values),))
    step = transform.query(domain, text)
    assert step.keep(pd.DataFrame({"x": cells_.astype(dtype)})).tolist() == (
        step.keep(pd.DataFrame({"x": cells_})).tolist()
    )


LEVELS = Domain((Column(("a", "age"), "integer", lower=0, upper=9), Column(("a", "sex"), "category")))

# ------------------------------------------------------------------ refusals

NO_NAMES = [["age"], {}, {"age": 1}, {"age"}, slice(1), np.array(["age"]), np.array(31), ("age", [1])]


@pytest.mark.parametrize("name", [*NO_NAMES, pd.Series(["age"])], ids=lambda name: type(name).__name__)
def test_a_column_is_named_by_its_label(name):
    for run in (
        lambda: transform.cut(DOMAIN, name, [0, 5]),
        lambda: transform.recode(DOMAIN, name, {1: 2}),
        lambda: transform.select(DOMAIN, [name]),
    ):
        with pytest.raises(ParameterError) as caught:
            run()
        assert type(name).__name__ in str(caught.value)


REFUSALS = [
    (
        lambda: transform.assign(LEVELS, {"net": "1"}),
        ParameterError,
        "those of all declared columns are tuples",
    ),
    (lambda: transform.cut(DOMAIN, "age", np.array(1e9)), ParameterError, "takes from the least"),
    (lambda: transform.cut(DOMAIN, "age", np.array("x")), ParameterError, "must be a list of edges"),
    (lambda: transform.cut(DOMAIN, "age", np.array(True)), ParameterError, "must be a list of edges"),
    (lambda: transform.cut(DOMAIN, "age", np.ones((2, 2))), ParameterError, "must be public numbers"),
    (
        lambda: transform.cut(DOMAIN, "age", [1, 2], labels=np.array(1e9)),
        ParameterError,
        "must be a list of labels, one per interval (got ndarray)",
    ),
    (
        lambda: transform.query(DOMAIN, "age > age.mean()"),
        QueryError,
        "one record may change which others pass",
    ),
    (lambda: transform.clip(DOMAIN), ParameterError, "'clip' needs 'lower' or 'upper'"),
    (lambda: transform.clip(DOMAIN, {"age": 3.5}), ParameterError, "must be a whole number (got float)"),
    (lambda: transform.clip(DOMAIN, 3, 2), ParameterError, "of column 'age' must not be above 'upper'"),
    (lambda: transform.clip(DOMAIN, {"region": 3}), DeclarationError, "is of kind 'category'"),
    (lambda: transform.clip(DOMAIN, 1, columns=["member"]), DeclarationError, "is of kind 'boolean'"),
    (lambda: transform.clip(DOMAIN, {"wage": 3}), DeclarationError, "'wage' is not declared"),
    (lambda: transform.clip(DOMAIN, {"id": 3}), DeclarationError, "its role is 'identifier'"),
    (lambda: transform.clip(DOMAIN, {}), ParameterError, "'lower' names no column"),
    (lambda: transform.clip(DOMAIN, True), ParameterError, "must be a finite number"),
    (lambda: transform.clip(DOMAIN, math.nan), ParameterError, "must be a finite number"),
    (lambda: transform.clip(DOMAIN, "3"), ParameterError, "must be a number or a mapping"),
    (lambda: transform.clip(DOMAIN, PLAIN["income"]), ParameterError, "must be a number or a mapping"),
    (lambda: transform.clip(DOMAIN, {"age": 2**63}), ParameterError, "must be a number of 64 bits"),
    (lambda: transform.clip(DOMAIN, {"age": 1}, columns=["age"]), ParameterError, "names its columns itself"),
    (lambda: transform.clip(DOMAIN, 1, columns=["age", "age"]), ParameterError, "names column 'age' twice"),
    (lambda: transform.clip(Domain((DOMAIN["town"],)), 1), DeclarationError, "none is declared"),
    (lambda: transform.assign(DOMAIN, {}), ParameterError, "must map new columns to expressions"),
    (lambda: transform.assign(DOMAIN, {"x": len}), ParameterError, "may have looked at other rows"),
    (lambda: transform.assign(DOMAIN, {"x": PLAIN["age"]}), ParameterError, "may have looked at other rows"),
    (lambda: transform.assign(DOMAIN, {"x": 3}), ParameterError, 'assign(x="1")'),
    (lambda: transform.assign(DOMAIN, {3: "age"}), ParameterError, "must be a string"),
    (lambda: transform.assign(DOMAIN, {"x": ""}), QueryError, "the expression of 'x' is empty"),
    (lambda: transform.assign(DOMAIN, {"x": "age +"}), QueryError, "is not valid syntax"),
    (lambda: transform.assign(DOMAIN, {"x": "age + wage"}), QueryError, "'wage' is not declared"),
    (lambda: transform.assign(DOMAIN, {"x": "age + id"}), QueryError, "has the role 'identifier'"),
    (lambda: transform.assign(DOMAIN, {"x": "id"}), QueryError, "has the role 'identifier'"),
    (lambda: transform.assign(DOMAIN, {"id": "age"}), DeclarationError, "its role is 'identifier'"),
    (lambda: transform.assign(DOMAIN, {"x": "region + 1"}), QueryError, "is not numeric"),
    (
        lambda: transform.assign(DOMAIN, {"x": "age.mean()"}),
        QueryError,
        "'age.mean()' calls a method, which may look",
    ),
    (lambda: transform.assign(DOMAIN, {"x": "age - age.mean()"}), QueryError, "the new cells of all others"),
    (
        lambda: transform.assign(DOMAIN, {"x": "(age - age.mean()).abs()"}),
        QueryError,
        "the new cells of all others",
    ),
    (lambda: transform.assign(DOMAIN, {"x": "age.rank()"}), QueryError, "may look at other rows"),
    (lambda: transform.assign(DOMAIN, {"x": "age.shift() + 1"}), QueryError, "may look at other rows"),
    (
        lambda: transform.assign(DOMAIN, {"x": "sin(age)"}),
        QueryError,
        "a function that expressions do not have",
    ),
    (lambda: transform.assign(DOMAIN, {"x": "abs(age, 3)"}), QueryError, "has other arguments than abs(x)"),
    (lambda: transform.assign(DOMAIN, {"x": "age[0]"}), QueryError, "reads by position"),
    (lambda: transform.assign(DOMAIN, {"x": "age.values"}), QueryError, "reads an attribute"),
    (lambda: transform.assign(DOMAIN, {"x": "age + @k"}), QueryError, "refers to a variable by '@'"),
    (lambda: transform.assign(DOMAIN, {"x": "rooms.clip(4, 2)"}), ParameterError, "must not be above"),
    (lambda: transform.assign(DOMAIN, {"x": "rooms.clip(4, 2) + 0"}), ParameterError, "must not be above"),
    (lambda: transform.assign(DOMAIN, {"x": "(rooms + 0).clip(4, 2)"}), ParameterError, "must not be above"),
    (lambda: transform.assign(DOMAIN, {"x": "age.fillna('x')"}), ParameterError, "must be a finite number"),
    (lambda: transform.assign(DOMAIN, {"x": "age.fillna('x') + 0"}), ParameterError, "a finite number"),
    (lambda: transform.assign(DOMAIN, {"x": "age in income"}), QueryError, "is not arithmetic"),
    (
        lambda: transform.assign(DOMAIN, {"x": "age ** income"}),
        QueryError,
        "'income' is not a whole constant",
    ),
    (lambda: transform.assign(DOMAIN, {"x": "age ** -1"}), QueryError, "'-1' is not a whole constant"),
    (lambda: transform.assign(DOMAIN, {"x": "age ** 0.5"}), QueryError, "'0.5' is not a whole constant"),
    (lambda: transform.assign(DOMAIN, {"x": "2 ** 1001"}), QueryError, "from 0 to 1000"),
    (lambda: transform.assign(DOMAIN, {"x": "age + 1e400"}), QueryError, "is not a finite number"),
    (lambda: transform.assign(DOMAIN, {"x": "age + 'a'"}), QueryError, "is not arithmetic"),
    (lambda: transform.assign(DOMAIN, {"x": "age + True"}), QueryError, "is not arithmetic"),
    (lambda: transform.assign(DOMAIN, {"x": "age @ age"}), QueryError, "refers to a variable by '@'"),
    (lambda: transform.assign(DOMAIN, {"x": "age << 2"}), QueryError, "is not arithmetic"),
    (lambda: transform.assign(DOMAIN, {"x": "wild * 2"}), QueryError, "has results without bounds"),
    (lambda: transform.assign(DOMAIN, {"x": "1 / income"}), QueryError, "has results without bounds"),
    (lambda: transform.assign(DOMAIN, {"x": "1 / income"}, {"x": (0, None)}), QueryError, "without bounds"),
    (lambda: transform.assign(DOMAIN, {"x": "age * 1e308"}), QueryError, "has results without bounds"),
    (
        lambda: transform.assign(DOMAIN, {"x": "age"}, {"y": (0, 1)}),
        ParameterError,
        "which is not a new column",
    ),
    (lambda: transform.assign(DOMAIN, {"x": "age"}, {"x": 3}), ParameterError, "must be a pair of a lower"),
    (
        lambda: transform.assign(DOMAIN, {"x": "age"}, {"x": (3, 1)}),
        ParameterError,
        "must not be above 'upper'",
    ),
    (
        lambda: transform.assign(DOMAIN, {"x": "age"}, {"x": (0.5, 1)}),
        ParameterError,
        "must be a whole number",
    ),
    (lambda: transform.assign(DOMAIN, {"x": "member"}, {"x": (0, 1)}), ParameterError, "are for numbers"),
    (lambda: transform.assign(DOMAIN, {"x": "age"}, 3), ParameterError, "'bounds' must map"),
    (lambda: transform.assign(DOMAIN, {"x": "-" * 100000 + "age"}), QueryError, "'x'"),
    (lambda: transform.cut(DOMAIN, "age", 4), ParameterError, "takes from the least and the greatest value"),
    (lambda: transform.cut(DOMAIN, "age", "abc"), ParameterError, "must be a list of edges"),
    (lambda: transform.cut(DOMAIN, "age", PLAIN["income"]), ParameterError, "must be a list of edges"),
    (lambda: transform.cut(DOMAIN, "age", [1]), ParameterError, "at least two strictly increasing"),
    (lambda: transform.cut(DOMAIN, "age", [3, 1]), ParameterError, "at least two strictly increasing"),
    (lambda: transform.cut(DOMAIN, "age", [1, math.nan]), ParameterError, "must be public numbers"),
    (lambda: transform.cut(DOMAIN, "age", [1, "a"]), ParameterError, "must be public numbers"),
    (lambda: transform.cut(DOMAIN, "age", [0, 10**400]), ParameterError, "beyond the largest number"),
    (lambda: transform.cut(DOMAIN, "region", [1, 2]), DeclarationError, "is of kind 'category'"),
    (lambda: transform.cut(DOMAIN, "id", [1, 2]), DeclarationError, "its role is 'identifier'"),
    (lambda: transform.cut(DOMAIN, "age", [1, 2], labels=["a", "b"]), ParameterError, "(1, got 2)"),
    (lambda: transform.cut(DOMAIN, "age", [1, 2, 3], labels=["a", "a"]), ParameterError, "must be different"),
    (lambda: transform.cut(DOMAIN, "age", [1, 2], labels=False), ParameterError, "must be a list of labels"),
    (lambda: transform.cut(DOMAIN, "age", [1, 2], labels=[None]), ParameterError, "must be a label"),
    (lambda: transform.cut(DOMAIN, "age", [1, 2], labels=["\ud800"]), ParameterError, "encodable"),
    (
        lambda: transform.cut(DOMAIN, "age", [1, 2], right="yes"),
        ParameterError,
        "'right' must be True or False",
    ),
    (lambda: transform.recode(DOMAIN, "town", {"x": "y"}), DeclarationError, "has no categories"),
    (lambda: transform.recode(DOMAIN, "income", {1.0: 2}), DeclarationError, "has no categories"),
    (lambda: transform.recode(DOMAIN, "big", {1: 2}), DeclarationError, "has no categories"),
    (lambda: transform.recode(DOMAIN, "id", {1: 2}), DeclarationError, "its role is 'identifier'"),
    (
        lambda: transform.recode(DOMAIN, "region", {"west": "x"}),
        ParameterError,
        "does not declare",
    ),
    (lambda: transform.recode(DOMAIN, "rooms", {True: 2}), ParameterError, "does not declare"),
    (lambda: transform.recode(DOMAIN, "region", {None: "x"}), ParameterError, "fillna"),
    (
        lambda: transform.recode(DOMAIN, "region", {"south": ["x"]}),
        ParameterError,
        "must be a label (got list)",
    ),
    (lambda: transform.recode(DOMAIN, "region", dict.fromkeys(LABELS)), ParameterError, "would become null"),
    (lambda: transform.recode(DOMAIN, "region", str.upper), ParameterError, "may remember other rows"),
    (lambda: transform.recode(DOMAIN, "rooms", {1: True, 2: 1}), ParameterError, "must not mix truth values"),
    (
        lambda: transform.recode(Domain((Column("n", "integer", lower=0, upper=5000),)), "n", {1: 2}),
        DeclarationError,
        "has 5001 integers",
    ),
    (lambda: transform.fillna(DOMAIN, {"age": 1.5}), ParameterError, "must be a whole number"),
    (lambda: transform.fillna(DOMAIN, {"age": "x"}), ParameterError, "must be a finite number"),
    (lambda: transform.fillna(DOMAIN, {"age": None}), ParameterError, "must not be null"),
    (lambda: transform.fillna(DOMAIN, {"region": 3}), ParameterError, "of type str (got int)"),
    (lambda: transform.fillna(DOMAIN, {"town": 3}), ParameterError, "of type str (got int)"),
    (lambda: transform.fillna(DOMAIN, {"member": 1}), ParameterError, "must be True or False"),
    (lambda: transform.fillna(DOMAIN, {"id": 1}), DeclarationError, "its role is 'identifier'"),
    (lambda: transform.fillna(DOMAIN, PLAIN["income"]), ParameterError, "must be a constant or a mapping"),
    (lambda: transform.fillna(DOMAIN, 0), ParameterError, "of type str (got int)"),
    (lambda: transform.dropna(DOMAIN, how="none"), ParameterError, "'how' must be one of"),
    (lambda: transform.dropna(DOMAIN, how=None), ParameterError, "'how' must be one of"),
    (lambda: transform.dropna(DOMAIN, ["wage"]), DeclarationError, "'wage' is not declared"),
    (lambda: transform.dropna(DOMAIN, []), ParameterError, "needs at least one column"),
    (lambda: transform.dropna(DOMAIN, ["id"]), DeclarationError, "its role is 'identifier'"),
    (lambda: transform.select(DOMAIN, ["wage"]), DeclarationError, "'wage' is not declared"),
    (lambda: transform.select(DOMAIN, [["age"]]), ParameterError, "must be a list of columns"),
    (lambda: transform.select(DOMAIN, {"age"}), ParameterError, "must be a list of columns"),
    (lambda: transform.select(DOMAIN, ["age", "age"]), ParameterError, "names column 'age' twice"),
]


@each(("run", "error", "part"), REFUSALS)
def test_refusals_tell_the_reason_before_a_cell_is_read(run, error, part):
    with pytest.raises(error) as caught:
        run()
    assert type(caught.value) is error
    assert part in str(caught.value)
    message = "".join(traceback.format_exception_only(caught.value))
    assert "1e+09" not in message
    assert "1000000000" not in message  # a cell of the Series that some of them were given


def test_numbers_made_of_confidential_counts_are_no_constants():
    class Secret(float):
        confidential = True

    for run in (
        lambda: transform.clip(DOMAIN, {"age": Secret(40.25)}),
        lambda: transform.fillna(DOMAIN, {"income": Secret(40.25)}),
        lambda: transform.cut(DOMAIN, "age", [0, Secret(40.25)]),
        lambda: transform.recode(DOMAIN, "rooms", {1: Secret(40.25)}),
        lambda: transform.assign(DOMAIN, {"x": "age"}, {"x": (0, Secret(40.25))}),
        lambda: transform.assign(DOMAIN, {"x": "age / 2"}, {"x": (0, Secret(40.25))}),
    ):
        with pytest.raises(ParameterError) as caught:
            run()
        assert "40.25" not in str(caught.value)


@each("name", sorted(REFUSED))
def test_steps_that_look_at_other_records_are_refused_by_name(name):
    error = refusal(name)
    assert isinstance(error, UnstableStepError)
    assert isinstance(error, AttributeError)
    assert str(error).startswith(f"{name!r} is not offered: ")
    assert error.hint
    assert (
        name.startswith("drop_")
        or hasattr(pd.DataFrame, name)
        or hasattr(pd, name)
        or name in ("pad", "backfill", "first", "last")
    )


def test_a_record_of_each_is_kept_where_it_is_known_whose_they_are():
    for name in ("drop_duplicates", "duplicated"):
        assert "df.dp.protect(..., unit=..., max_rows=1)" in refusal(name).hint


def test_outliers_are_refused_as_infinitely_sensitive():
    for name in ("drop_outliers", "drop_top"):
        assert "infinite sensitivity" in str(refusal(name))
        assert "suppress_outliers" in str(refusal(name))


@pytest.mark.parametrize("size", [3, 30, 300])
def test_one_record_changes_any_number_of_others_beyond_k_standard_deviations(size):
    """Why `drop_outliers` is refused: the records that one more leaves in grow with the data."""

    def kept(values):
        return int(((values - values.mean()).abs() <= 1.5 * values.std(ddof=0)).sum())

    low, high = [0.0] * (size * 3), [1.0] * size
    before, after = pd.Series(low + high), pd.Series([*low, *high, 1e9])
    assert abs(kept(after) - kept(before)) >= size - 1


def test_rows_in_blocks_are_rows_all_the_same():
    rows = 2 * BLOCK + 3
    frame = pd.DataFrame(
        {"n": np.arange(rows), "x": np.where(np.arange(rows) % 5, np.arange(rows) / 7, np.nan)}
    )
    domain = Domain(
        (
            Column("n", "integer", lower=0, upper=rows),
            Column("x", "float", nullable=True, lower=0, upper=rows),
        )
    )
    step = transform.assign(
        domain, {"a": "2 * n + 1", "b": "x * 3 - n", "c": "7", "d": "n - 5"}, {"d": (0, 9)}
    )
    result = step.apply(frame)
    assert result["a"].tolist() == (2 * frame["n"] + 1).tolist()
    same(result["b"], frame["x"] * 3 - frame["n"])
    assert set(result["c"]) == {7}
    assert result["d"].tolist() == (frame["n"] - 5).clip(0, 9).tolist()
    filled = transform.fillna(domain, {"x": 0.5}).apply(frame)["x"]
    assert filled.tolist() == frame["x"].fillna(0.5).tolist()


@each(
    ("text", "kind", "ends"),
    [
        ("rooms.clip(2, 4)", "integer", (2, 4)),
        ("rooms.clip(2.5, 4)", "float", (2.5, 4.0)),
        ("rooms.fillna(0.5)", "float", (0.5, 5.0)),
        ("member.fillna(2)", "integer", (0, 2)),
        ("income.clip(lower=0)", "float", (0.0, 2.5)),
    ],
)
def test_clip_and_fillna_are_the_same_of_a_column_and_of_arithmetic(text, kind, ends):
    name, call = text.split(".", 1)
    texts = {"own": text, "added": f"{text} + 0", "of": f"({name} + 0).{call}"}
    step = transform.assign(DOMAIN, texts)
    made = step.apply(PLAIN)
    for name in texts:
        column = step.domain[name]
        assert (column.kind, (column.lower, column.upper)) == (kind, ends)
        assert made[name].astype("Float64").equals(made["own"].astype("Float64"))
