"""Labels in place of labels: numbers, orders, mappings and methods of texts, as in pandas."""

from __future__ import annotations

import calendar

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core import rows as transform
from pdprivacy.core.rows.label_mappings import PREDICATES, TEXT_METHODS
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import DeclarationError, ParameterError, QueryError, UnknownNameError
from tests.support.engine_frames import BESIDE_PANDAS, each_engine, frame_of

EXACT = {"epsilon": 1000, "rng": 1}
TOWNS = (" Aa", "ab", "B1 ", "12", "aB", "")
TOWN = Column("town", "category", categories=TOWNS, nullable=True)
SIZES = ("S", "M", "L", "XL")
SIZE = Column("size", "category", categories=SIZES, nullable=True, ordered=True)
HOURS = Column("hours", "category", categories=("<5", "5", "10+"))
DOMAIN = Domain((TOWN, SIZE, HOURS))
FRAME = pd.DataFrame(
    {
        "town": [*TOWNS, None, "ab"],
        "size": ["XL", "S", None, "M", "L", "M", "S", "L"],
        "hours": ["<5", "5", "10+", "5", "5", "<5", "10+", "5"],
    }
)


def cells(series: pd.Series) -> list[object]:
    return [None if pd.isna(cell) else cell for cell in series.tolist()]


def test_numbers_in_place_of_labels_are_numbers_with_bounds():
    for images, kind in [((4, 5, 10), "integer"), ((4.5, 5, 10), "float"), ((True, False, None), "boolean")]:
        step = transform.recode(DOMAIN, "hours", dict(zip(HOURS.categories, images, strict=True)))
        column = step.domain["hours"]
        assert column.kind == kind
        expected = FRAME["hours"].map(dict(zip(HOURS.categories, images, strict=True)))
        assert cells(step.apply(FRAME)["hours"]) == cells(expected)
        if kind != "boolean":
            assert column.bounds("mean") == (min(images), max(images))
        assert column.nullable is (None in images)
    assert transform.recode(DOMAIN, "hours", {"<5": 4}).domain["hours"].kind == "category"
    truths = Domain((Column("b", "boolean"),))
    assert transform.recode(truths, "b", {True: 1, False: 0}).domain["b"].kind == "integer"


@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("limit", SIZES)
def test_ordered_labels_are_compared_as_in_pandas(symbol, limit):
    """A comparison with a null is unknown here, and False in pandas."""
    typed = FRAME["size"].astype(pd.CategoricalDtype(list(SIZES), ordered=True))
    known = typed.notna()
    for text in (f"size {symbol} {limit!r}", f"not (size {symbol} {limit!r})"):
        theirs = eval(f"typed {symbol} limit", {"typed": typed, "limit": limit})
        theirs = known & (~theirs if text.startswith("not") else theirs)
        for frame in (FRAME, FRAME.assign(size=typed)):
            try:
                step = transform.query(DOMAIN, text)
            except QueryError as error:
                reason = str(error)
                assert ("no declared record can meet" in reason) is True
                assert not theirs.any()
                continue
            assert step.apply(frame).index.tolist() == np.flatnonzero(theirs).tolist()
            left = step.domain["size"]
            assert set(left.categories) >= set(FRAME["size"][theirs])
            assert left.ordered
            assert not left.nullable


def test_an_order_is_declared_kept_and_lost():
    size = pd.CategoricalDtype(list(SIZES), ordered=True)
    metadata = {"dp": {}}
    for column, ordered in [
        (pa.Column(size, metadata=metadata), True),
        (pa.Column(pd.CategoricalDtype(list(SIZES)), metadata=metadata), False),
        (pa.Column(size, pa.Check.isin(["S", "L"]), metadata=metadata), True),
        (pa.Column(size, metadata={"dp": {"categories": ["L", "S"]}}), False),
        (pa.Column(str, pa.Check.isin(["S", "L"]), metadata=metadata), False),
    ]:
        read = pdprivacy.read_schema(pa.DataFrameSchema({"size": column}))
        assert read["size"].ordered is ordered
    for step, ordered in [
        (transform.recode(DOMAIN, "size", {"M": "m"}), True),
        (transform.recode(DOMAIN, "size", {"S": "small", "M": "small"}), True),
        (transform.recode(DOMAIN, "size", {"S": "x", "L": "x"}), False),
        (transform.fillna(DOMAIN, {"size": "M"}), True),
        (transform.fillna(DOMAIN, {"size": "none"}), False),
        (transform.rename(DOMAIN, {"size": "other"}), True),
    ]:
        column = step.domain["other" if "other" in step.domain else "size"]
        assert column.ordered is ordered, step.text
    age = Domain((Column("age", "integer", lower=0, upper=9),))
    cut = transform.cut(age, "age", [-1, 4, 9])
    low = transform.query(cut.domain, "age <= '(-1, 4]'")
    assert low.apply(cut.apply(pd.DataFrame({"age": [1, 5]}))).index.tolist() == [0]
    assert Column("size", "category", categories=SIZES, nullable=True) == SIZE  # releases are the same
    assert DOMAIN.fingerprint() == Domain((TOWN, transform.astype(
        Domain((SIZE,)), {"size": pd.CategoricalDtype(list(SIZES))}
    ).domain["size"], HOURS)).fingerprint()  # fmt: skip


def test_astype_states_an_order():
    hours = pd.CategoricalDtype(["<5", "5", "10+"], ordered=True)
    step = transform.astype(DOMAIN, {"hours": hours})
    assert step.text == "astype({'hours': pd.CategoricalDtype(['<5', '5', '10+'], True)})"
    few = transform.query(step.domain, "hours < '10+'")
    assert few.apply(step.apply(FRAME)).index.tolist() == [0, 1, 3, 4, 5, 7]
    assert transform.astype(DOMAIN, {"hours": hours}).domain["hours"].ordered
    with pytest.raises(ParameterError, match="has others than column 'hours'") as caught:
        transform.astype(DOMAIN, {"hours": pd.CategoricalDtype(["<5", "5"], ordered=True)})
    assert "['<5', '5', '10+']" in caught.value.hint


CONSTANTS = {
    "contains": ["'a'", "'A', case=False", "'^a'", "'1', regex=False"],
    "count": ["'a'"], "endswith": ["'b'", "' '"], "find": ["'b'"], "fullmatch": ["'[ab]+'"], "match": ["'a'"],
    "removeprefix": ["'a'"], "removesuffix": ["'b'"], "replace": ["'a', 'x'"], "rfind": ["'b'"],
    "slice": ["0, 2", "1"], "startswith": ["'a'"], "zfill": ["4"], "strip": ["", "'1'"],
}  # fmt: skip


@pytest.mark.parametrize("method", TEXT_METHODS)
def test_methods_of_texts_are_those_of_pandas(method):
    for constants in CONSTANTS.get(method, [""]):
        text = f"town.str.{method}({constants})"
        theirs = eval(text, {"town": FRAME["town"].astype(object)})
        step = transform.assign(DOMAIN, {"y": text})
        assert cells(step.apply(FRAME)["y"]) == cells(theirs), text
        assert step.domain["y"].nullable
        truths = theirs.tolist()
        if method in PREDICATES and True in truths:
            kept = transform.query(DOMAIN, text).apply(FRAME).index.tolist()
            assert kept == [row for row, truth in enumerate(truths) if truth is True]
            others = transform.query(DOMAIN, f"not {text}").apply(FRAME).index.tolist()
            assert others == [row for row, truth in enumerate(truths) if truth is False]


def test_slices_maps_and_replacements_are_those_of_pandas():
    for text, expected in [
        ("town.str[:1]", FRAME["town"].str[:1]),
        ("town.str[-1:]", FRAME["town"].str[-1:]),
        ("town.str.strip().str.lower()", FRAME["town"].str.strip().str.lower()),
        ("hours.map({'<5': 4, '5': 5})", FRAME["hours"].map({"<5": 4, "5": 5})),
        ("hours.map({'<5': 4, '5': 5}) * 2", FRAME["hours"].map({"<5": 4, "5": 5}) * 2),
        ("hours.replace({'<5': 'few'})", FRAME["hours"].replace({"<5": "few"})),
        ("hours.replace({'<5': None})", FRAME["hours"].map({"5": "5", "10+": "10+"})),
    ]:
        assert cells(transform.assign(DOMAIN, {"y": text}).apply(FRAME)["y"]) == cells(expected), text
    step = transform.query(DOMAIN, "hours.map({'<5': 4, '5': 5}) > 4")
    assert step.apply(FRAME).index.tolist() == [1, 3, 4, 7]


def test_names_of_dates_are_those_of_the_calendar():
    when = Column("when", "integer", lower=0, upper=400, timeline=Timeline(18262, "D"))
    dates = pd.Series(pd.date_range("2020-01-01", periods=400, freq="D"))
    for method in ("day_name", "month_name"):
        step = transform.assign(Domain((when,)), {"y": f"when.dt.{method}()"})
        made = step.apply(pd.DataFrame({"when": np.arange(400)}))["y"]
        assert made.tolist() == getattr(dates.dt, method)().tolist()
        names = calendar.day_name if method == "day_name" else calendar.month_name
        assert step.domain["y"].categories == tuple(name for name in names if name)
        assert step.domain["y"].ordered


@pytest.mark.parametrize("engine", each_engine(BESIDE_PANDAS))
def test_labels_are_mapped_alike_on_every_engine(engine, request):
    if engine == "Spark":
        request.getfixturevalue("spark")

    def answers(source):
        private = pdprivacy.protect(source, DOMAIN, epsilon=10**9)
        hours = private.recode("hours", {"<5": 4, "5": 5, "10+": 10})
        made = private.assign(
            upper=private["town"].str.strip().str.upper(),
            first=private["hours"].map({"<5": 1.5, "5": 2}),
            few=private["hours"].str.contains("5"),
        )
        ordered = private.astype({"hours": pd.CategoricalDtype(["<5", "5", "10+"], ordered=True)})
        return [
            hours.dp.sum("hours", **EXACT).round().tolist(),
            private[private["size"] <= "M"].dp.count(**EXACT).tolist(),
            ordered[ordered["hours"] >= "5"].dp.value_counts("hours", **EXACT).tolist(),
            made.dp.value_counts("upper", sort=False, **EXACT).tolist(),
            made.dp.sum(["first"], **EXACT).round(1).tolist(),
            made.dp.value_counts("few", sort=False, **EXACT).tolist(),
        ]

    big = pd.concat([FRAME] * 25, ignore_index=True)
    ours = answers(big)
    assert ours[0] == [25 * (4 + 5 + 10 + 5 + 5 + 4 + 10 + 5)]
    assert ours[1] == [25 * 4]
    assert answers(frame_of(engine, big)) == ours


@pytest.fixture
def private():
    return pdprivacy.protect(pd.concat([FRAME] * 20, ignore_index=True), DOMAIN, epsilon=100)


@pytest.mark.parametrize(
    ("use", "error", "reason"),
    [
        (lambda f: f.query("size <= 'Q'"), QueryError, "is not a declared category"),
        (lambda f: f.query("town <= 'ab'"), QueryError, "has no order"),
        (lambda f: f.query("size < 'S'"), QueryError, "no declared record can meet"),
        (lambda f: f["town"].map({"nowhere": 1}), ParameterError, "does not declare"),
        (lambda f: f["town"].map(str.upper), ParameterError, "must be a mapping"),
        (lambda f: f["town"].map({"ab": np.int64(3)}), ParameterError, "plain Python values alone"),
        (lambda f: f["town"].replace(dict.fromkeys(TOWNS)), ParameterError, "would become null"),
        (lambda f: f["town"].str.contains("("), QueryError, "cannot be called with these arguments"),
        (lambda f: f["town"].str.contains("a", nothing=1), QueryError, "cannot be called"),
        (lambda f: f["town"].str.zfill(10**20), QueryError, "takes whole numbers up to 10,000"),
        (lambda f: f.query("town.str.contains('a', na=False)"), QueryError, "a null stays null"),
        (lambda f: f["town"].str.contains("a", na="no"), ParameterError, "'na' must be True or False"),
        (lambda f: f["town"].map({"ab": "x"}, na_action="skip"), ParameterError, "'na_action' must be"),
        (lambda f: f["town"].str.split("a"), UnknownNameError, "is not offered"),
        (lambda f: f["town"].str[0], ParameterError, "takes a slice"),
        (lambda f: f["town"].str.nothing, AttributeError, "has no attribute"),
        (lambda f: f.assign(y="town.str.contains(size)"), QueryError, "not a number, a string"),
        (lambda f: f.recode("size", {"S": "M", "Q": "L"}), ParameterError, "does not declare"),
        (lambda f: f["size"].str.len().str.len(), QueryError, "'.str' is for declared labels"),
        (lambda f: f.assign(y="size.map({**{}})"), QueryError, "not a mapping"),
        (lambda f: f["town"].str.len() > "a", QueryError, "cannot be compared"),
    ],
)  # fmt: skip
def test_refusals_come_before_a_charge(private, use, error, reason):
    with pytest.raises(error, match=reason.replace(".", r"\.")):
        use(private)
    assert private.dp.budget.entries.empty


def test_labels_without_a_declaration_are_refused():
    with pytest.raises((QueryError, DeclarationError), match="has no categories"):
        transform.assign(Domain((Column("t", "category"),)), {"y": "t.str.upper()"})


def test_na_says_what_a_condition_is_of_a_null():
    domain = Domain((Column("c", "category", categories=("a", "b"), nullable=True),))
    frame = pd.DataFrame({"c": ["a", "b", None] * 20})
    private = pdprivacy.protect(frame, domain, epsilon=10**6)
    for name, na in [("contains", False), ("contains", True), ("startswith", False), ("match", True)]:
        expected = getattr(frame["c"].str, name)("a", na=na).astype(bool)
        condition = getattr(private["c"].str, name)("a", na=na)
        for ours, theirs in ((condition, expected), (~condition, ~expected)):
            assert private[ours].dp.count(epsilon=10**4, rng=1).iloc[0] == theirs.sum(), (name, na)


def test_replace_and_map_take_what_pandas_takes(private):
    labels = private.dp.domain["town"].categories
    for by in (private["town"].replace(labels[0], "x"), private["town"].replace({labels[0]: "x"})):
        assert private.assign(y=by).dp.domain["y"].categories == ("x", *labels[1:])
    everything = private["town"].replace([*labels], "x")
    assert private.assign(y=everything).dp.domain["y"].categories == ("x",)
    mapped = private["town"].map(dict.fromkeys(labels, "x"), na_action="ignore")
    assert private.assign(y=mapped).dp.domain["y"].categories == ("x",)
