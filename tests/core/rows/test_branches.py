"""One of two values by a condition: the cells are those of pandas' nullable dtypes, and lie as declared."""

from __future__ import annotations

import ast
import itertools
from random import Random

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core import rows as transform
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import ParameterError, QueryError
from tests.support.engine_frames import BESIDE_PANDAS, each_engine, frame_of
from tests.support.nullable import by_operators

X = (-2.0, -0.5, 0.0, 1.5, None)
N = (0, 1, 2, 3, None)
M = (-1, 4)
G = ("a", "b", None)
B = (True, False, None)
DOMAIN = Domain(
    (
        Column("x", "float", nullable=True, lower=-2, upper=1.5, public_bounds=True),
        Column("n", "integer", nullable=True, lower=0, upper=3, public_bounds=True),
        Column("m", "integer", categories=M),
        Column("g", "category", nullable=True, categories=("a", "b")),
        Column("b", "boolean", nullable=True),
    )
)
EVERY = pd.DataFrame(
    {
        name: pd.array(list(cells), dtype=dtype)
        for (name, dtype), cells in zip(
            {"x": "Float64", "n": "Int64", "m": "Int64", "g": "string", "b": "boolean"}.items(),
            zip(*itertools.product(X, N, M, G, B), strict=True),
            strict=True,
        )
    }
)
"""Every record of these cells, in nullable dtypes."""
DTYPES = [
    {"x": "float64", "n": "float64", "m": "int64", "g": "object", "b": "object"},
    {"x": "Float64", "n": "Int64", "m": "int8", "g": "string", "b": "boolean"},
    {"x": "object", "n": "object", "m": "object", "g": "category", "b": "object"},
]
CONDITIONS = [
    "x > 0", "n <= 1", "m == 4", "g == 'a'", "b == True", "x.isna()", "n.notna()", "~(n > 1)", "g != 'b'",
    "(x > 0) & (n > 0)", "(n == 3) | (g == 'a')", "~((x < 0) | (n < 2))", "n in [0, 3]",
]  # fmt: skip
NUMBERS = ["x", "n", "m", "b", "1", "-3", "2.5", "None"]
LABELS = ["g", "'a'", "'other'", "None"]


def value(text):
    """The cells of a column, or a constant."""
    if text in EVERY:
        return EVERY[text].astype("Int64") if text == "b" else EVERY[text]
    number = ast.literal_eval(text)
    return pd.Series([number] * len(EVERY), dtype="string" if isinstance(number, str) else "Float64")


def cells(series):
    return [None if pd.isna(cell) else cell for cell in series.tolist()]


def cases(number):
    random = Random(5)
    for _ in range(number):
        values = LABELS if random.random() < 0.3 else NUMBERS
        first, second = random.choice(values), random.choice(values)
        if first != second and (first != "None" or second != "None"):
            yield first, second, random.choice(CONDITIONS)


def expected(first, second, condition, form):
    met = by_operators(condition, EVERY)
    if form == "if":
        met = met.fillna(False)
    known, other = value(first), value(second)
    if "g" not in (first, second) and known.dtype != "string" and other.dtype != "string":
        known, other = known.astype("Float64"), other.astype("Float64")
    else:
        known, other = known.astype("string"), other.astype("string")
    return known.mask(met, other) if form == "mask" else known.where(met, other)


@pytest.mark.parametrize("dtypes", DTYPES)
def test_values_are_those_of_the_nullable_dtypes_of_pandas(dtypes):
    """Also within the bounds and labels that are declared, by every record of a small domain."""
    frame = EVERY.astype(dtypes)
    shapes = {"if": "{0} if {2} else {1}", "where": "({0}).where({2}, {1})", "mask": "({0}).mask({2}, {1})"}
    count = 0
    for first, second, condition in cases(60):
        for form, shape in shapes.items():
            text = shape.format(first, second, condition)
            if form != "if" and first not in EVERY:
                continue
            step = transform.assign(DOMAIN, {"new": text})
            made, column = step.apply(frame)["new"], step.domain["new"]
            theirs = cells(expected(first, second, condition, form))
            assert cells(made) == theirs, text
            present = {cell for cell in theirs if cell is not None}
            if column.categories is not None:
                assert present <= set(column.categories), text
            if column.kind != "category":
                assert all(column.lower <= cell <= column.upper for cell in present), text
            assert column.nullable or None not in theirs, text
            assert (column.kind == "category") is any(isinstance(cell, str) for cell in present), text
            count += 1
    assert count > 80


@pytest.mark.parametrize("limit", [-1, 0, 1, 2.5])
def test_bounds_are_no_wider_than_needed(limit):
    """The condition narrows the column that it compares, so the bounds are those of the results."""
    for text in ("n if n > {} else -4", "n.mask(n > {}, 7)", "n.where(n <= {}, 2)", "n.where(n.notna(), 9)"):
        column = transform.assign(DOMAIN, {"new": text.format(limit)}).domain["new"]
        made = cells(transform.assign(DOMAIN, {"new": text.format(limit)}).apply(EVERY)["new"])
        present = [cell for cell in made if cell is not None]
        if present:
            assert (column.lower, column.upper) == (min(present), max(present)), text
        assert column.nullable == (None in made), text


def test_kinds_of_results():
    def made(text):
        return transform.assign(DOMAIN, {"new": text}).domain["new"]

    assert made("1 if n > 1 else 0").categories == (0, 1)
    assert made("n if b else x").kind == "float"
    assert made("b if n > 1 else False").kind == "boolean"
    assert (made("b if n > 1 else 5").kind, made("b if n > 1 else 5").bounds("mean")) == ("integer", (0, 5))
    assert made("'old' if n > 1 else 'young'").categories == ("old", "young")
    assert made("n if n > 1 else None").nullable
    assert made("log(x if x >= 1 else 1)").bounds("mean") == (0.0, np.log(1.5))
    assert made("2 * (n if b else 0) + 1").bounds("mean") == (1, 7)
    assert transform.query(DOMAIN, "(n if b else 0) > 2").domain == DOMAIN
    order = Column("s", "category", categories=("S", "M"), ordered=True)
    for text, ordered in [("s.where(s > 'S', 'S')", True), ("s.where(s > 'S', 'L')", False)]:
        assert transform.assign(Domain((order,)), {"new": text}).domain["new"].ordered is ordered


@pytest.mark.parametrize("number", [2**53 - 1, 2**53 + 1, 2**60 + 1, 2**63 - 1, -(2**53) - 1])
def test_whole_numbers_beside_fractions_become_the_nearest_floats(number):
    """Also where no float is the number; the bounds are those of the floats."""
    low, high = min(0, number), max(0, number)
    wide = Column("wide", "integer", lower=low, upper=high, public_bounds=True)
    domain = Domain((wide, Column("f", "float", lower=0, upper=1), Column("u", "boolean")))
    frame = pd.DataFrame({"wide": [number, 0], "f": 0.5, "u": [True, False]})
    private = pdprivacy.protect(frame, domain, epsilon=10**9)
    for text in (f"{number} if u else f", "wide if u else f"):
        renewed = private.assign(r=text)
        assert renewed.dp.domain["r"].bounds("mean") == (float(low), max(1.0, float(high)))
        assert renewed.dp.sum("r", epsilon=10**8, rng=1).item() == pytest.approx(float(number), rel=1e-6)


def test_bins_stay_with_their_column():
    age = Column("age", "integer", lower=0, upper=90, bins=(0, 18, 65, 90))
    for text, bins in [
        ("age.where(age >= 18, 18)", (18, 65, 90)),
        ("age.where(age < 80, 100)", (0, 18, 65, 90, 100)),
        ("age.where(age < 80)", (0, 18, 65, 79)),
        ("age + 1 if age > 3 else age", None),
    ]:
        assert transform.assign(Domain((age,)), {"new": text}).domain["new"].bins == bins, text


def test_dates_beside_dates_and_constants():
    """Those of another origin are counted from the first one's."""
    domain = Domain(
        (
            Column("day", "integer", nullable=True, lower=0, upper=9, timeline=Timeline(18262, "D")),
            Column("due", "integer", lower=0, upper=99, timeline=Timeline(18200, "D")),
            Column("at", "integer", lower=0, upper=99, timeline=Timeline(18262 * 86400, "s")),
        )
    )
    counted = pd.DataFrame({"day": [2, None, 8], "due": [81, 1, 62], "at": [0, 0, 0]}).convert_dtypes()
    for text, theirs in [
        ("day if day < '2020-01-05' else due", ["2020-01-03", "2019-11-01", "2020-01-01"]),
        ("due if day < '2020-01-05' else day", ["2020-01-20", None, "2020-01-09"]),
        ("day.where(day < '2020-01-05', '2020-02-01')", ["2020-01-03", "2020-02-01", "2020-02-01"]),
    ]:
        step = transform.assign(domain, {"new": text})
        column = step.domain["new"]
        made = step.made(counted)["new"]
        days = [None if number is None else column.timeline.text(number) for number in cells(made)]
        assert [day if day is None else day[:10] for day in days] == theirs
        assert made.dropna().between(column.lower, column.upper).all()
    with pytest.raises(QueryError, match="another resolution"):
        transform.assign(domain, {"new": "day if day < '2020-01-05' else at"})
    with pytest.raises(ParameterError):
        transform.assign(domain, {"new": "day if day < '2020-01-05' else 3"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x if n > 1 else 'a'", "a label and the other one a number"),
        ("None if b else None", "null for every record"),
        ("x if n else 0", "alone is not a condition"),
        ("x.where()", "other arguments"),
        ("x.where(n > 1, 0, 0)", "other arguments"),
        ("x.where(n > 1, axis=0)", "other arguments"),
        ("x.case_when(n > 1)", "other arguments"),
        ("x.case_when([(n > 1, 2, 3)])", "other arguments"),
        ("x if n > n.mean() else 0", "aggregate|method"),
        ("x if n > 1 else x.mean()", "method"),
        ("t if n > 1 else 'a'", "needs the labels"),
        ("g if n > 1 else True", "a label and the other one a number"),
    ],
)
def test_refusals(text, reason):
    free = DOMAIN.columns
    with pytest.raises(QueryError, match=reason):
        transform.assign(Domain((*free, Column("t", "category"))), {"new": text})


# ---------------------------------------------------------------- protected columns


def protected():
    return pdprivacy.protect(EVERY, DOMAIN, epsilon=10**9)


def test_methods_of_columns_and_functions_of_numpy():
    private = protected()
    x, n, b = private["x"], private["n"], private["b"]
    texts = {
        "x if n > 1 else 0": [x.where(n > 1, 0), np.where(n > 1, x, 0), np.select([n > 1], [x])],
        "x if x > 0 else None": [x.where(x > 0), x.where(lambda column: column > 0)],
        "x if not n > 1 else -x": [x.mask(n > 1, -x)],
        "(x if not b else 5) if not n > 1 else 0": [x.case_when([(n > 1, 0), (b, 5)])],
        "'a' if n > 1 else 'b' if b else 'c'": [np.select([n > 1, b], ["a", "b"], "c")],
    }
    for text, columns in texts.items():
        for column in columns:
            assert repr(column) == text
            assert private.assign(z=column).dp.domain["z"] == private.assign(z=text).dp.domain["z"]
    for call in (
        lambda: x.where([True] * 3),
        lambda: x.where(n > 1, EVERY["x"]),
        lambda: x.where(n > 1, np.float64(2)),
        lambda: x.case_when([]),
        lambda: x.case_when([n > 1]),
        lambda: np.select([n > 1], [x, 1]),
        lambda: x.where(protected()["n"] > 1),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(QueryError):
        x.where(n)


def test_the_first_case_that_is_not_false_counts_as_in_pandas():
    private = protected()
    n, x, b = private["n"], private["x"], private["b"]
    made = private.assign(z=n.case_when([(x > 0, 1), (b, n + 5)]))
    theirs = EVERY["n"].case_when([(EVERY["x"] > 0, 1), (EVERY["b"], EVERY["n"] + 5)])
    for label in range(9):
        count = made[made["z"] == label].dp.count(epsilon=1000, rng=1) if label in range(9) else 0
        assert round(float(count.iloc[0])) == int((theirs == label).sum())


@pytest.mark.parametrize("engine", each_engine(BESIDE_PANDAS))
def test_values_are_alike_on_every_engine(engine, request):
    if engine == "Spark":
        request.getfixturevalue("spark")

    def answers(source):
        private = pdprivacy.protect(source, DOMAIN, epsilon=10**9)
        made = private.assign(
            p="x if n > 1 else m",
            q="g.where(b, 'other')",
            r=private["n"].mask(private["x"] < 0, 7),
        )
        options = {"epsilon": 10_000, "rng": 1}
        return [
            made.dp.sum(["p", "r"], **options).round(3).tolist(),
            made.dp.value_counts("q", sort=False, **options).tolist(),
        ]

    assert answers(frame_of(engine, EVERY)) == answers(EVERY)
