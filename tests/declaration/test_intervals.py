"""Intervals as sets of numbers, and of results (`arithmetic`): no cell lies beyond its declared bounds."""

from __future__ import annotations

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.core.rows import assign, clip, cut
from pdprivacy.core.rows.arithmetic import whole_power
from pdprivacy.declaration import intervals
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import QueryError

MOST = float(np.finfo(np.float64).max)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, -5e-324, 2.0**53, 2.0**-1022, MOST, -MOST, 1e308, 1e-308]
)
MODEST = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.5, -3.0])
WHOLE = (
    st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9) | st.sampled_from([2**31, 2**32, -(2**63), 2**62])
)
OPERATORS = {
    "+": (intervals.add, np.add),
    "-": (intervals.subtract, np.subtract),
    "*": (intervals.multiply, np.multiply),
    "/": (intervals.divide, np.divide),
    "//": (intervals.floor_divide, np.floor_divide),
    "%": (intervals.modulo, np.mod),
}


@st.composite
def ranges(draw, numbers=FLOATS):
    ends = sorted((draw(numbers), draw(numbers)), key=lambda end: (end, math.copysign(1, end)))
    return Interval(*ends)


def within(draw, ends):
    """A number of a range: an end, or anywhere between."""
    low, high = ends
    return draw(st.sampled_from([low, high]) | st.floats(low, high))


# ------------------------------------------------------------------ one operation


@pytest.mark.full
@given(st.sampled_from(sorted(OPERATORS)), ranges() | ranges(MODEST), ranges() | ranges(MODEST), st.data())
def test_no_result_of_doubles_lies_beyond_the_ends(symbol, first, other, data):
    ends, run = OPERATORS[symbol]
    low, high = ends(first, other)
    with np.errstate(all="ignore"):
        for _ in range(3):
            x, y = within(data.draw, first), within(data.draw, other)
            # as arrays too: numpy may compute them by other instructions
            for value in (run(x, y), run(np.full(9, x), y)[-1], run(np.full(9, x), np.full(9, y))[0]):
                assert math.isnan(value) or low <= value <= high


@pytest.mark.full
@given(st.sampled_from("+-*/"), ranges() | ranges(MODEST), ranges() | ranges(MODEST))
def test_the_ends_are_attained_at_corners(symbol, first, other):
    ends, run = OPERATORS[symbol]
    assume(symbol != "/" or 0 not in other)
    with np.errstate(all="ignore"):
        corners = [run(x, y) for x in first for y in other]
    assert ends(first, other) == Interval(min(corners), max(corners))


@given(FLOATS | MODEST, FLOATS | MODEST)
@example(6.0, 0.1)
@example(-6.0, 0.1)
@example(1e308, 3e-308)
@example(-5e-324, 1.0)
def test_the_ends_of_a_floor_quotient_are_exact_below_what_is_claimed(x, y):
    assume(y != 0)
    exact = math.floor(Fraction(x) / Fraction(y))
    with np.errstate(all="ignore"):
        value = float(np.floor_divide(x, y))
    low, high = intervals.floor_divide(Interval(x, x), Interval(y, y))
    assert low <= value <= high
    if abs(exact) < intervals.EXACT_QUOTIENT:
        assert low == high == value == exact


@pytest.mark.full
@given(ranges() | ranges(MODEST), st.integers(0, 12) | st.integers(0, 1000), st.data())
def test_powers_of_doubles_lie_between_their_ends(base, exponent, data):
    low, high = intervals.power(base, exponent, lambda x, n: whole_power(x, n) if n else 1.0)
    with np.errstate(all="ignore"):
        for _ in range(3):
            x = within(data.draw, base)
            value = whole_power(np.full(3, x), exponent)[0] if exponent else 1.0
            assert low <= value <= high


@given(ranges(st.integers(-6, 6)), ranges(st.integers(-6, 6)))
def test_whole_numbers_have_the_exact_ends(first, other):
    """By trying all of them; for a remainder the ends hold all, and are attained where the divisor is one."""
    xs, ys = (range(low, high + 1) for low, high in (first, other))
    for symbol, run in (("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)):
        results = [run(x, y) for x in xs for y in ys]
        assert OPERATORS[symbol][0](first, other) == Interval(min(results), max(results))
    for exponent in range(5):
        results = [x**exponent for x in xs]
        assert intervals.power(first, exponent, pow) == Interval(min(results), max(results))
    assert intervals.absolute(first) == Interval(min(map(abs, xs)), max(map(abs, xs)))
    assert intervals.negate(first) == Interval(min(-x for x in xs), max(-x for x in xs))
    if 0 not in other:
        results = [x // y for x in xs for y in ys]
        assert intervals.floor_divide_whole(first, other) == Interval(min(results), max(results))
        results = [x % y for x in xs for y in ys]
        low, high = intervals.modulo_whole(first, other)
        assert low <= min(results)
        assert max(results) <= high
        if len(ys) == 1 and len(xs) >= 2 * abs(ys[0]):
            assert (low, high) == (min(results), max(results))


# ------------------------------------------------------------------ intersections and hulls

ENDS = st.integers(-3, 3) | st.sampled_from([-math.inf, -2.5, -0.5, 0.5, 1.5, math.inf])
INTERVALS = st.builds(Interval, ENDS, ENDS, st.booleans(), st.booleans())
NUMBERS = [Fraction(quarter, 4) for quarter in range(-14, 15)]


def held(interval):
    """The numbers between the ends, by comparing each with them."""
    below = operator.lt if interval.open_lower else operator.le
    above = operator.lt if interval.open_upper else operator.le
    return {number for number in NUMBERS if below(interval.lower, number) and above(number, interval.upper)}


@given(INTERVALS, INTERVALS)
def test_sets_of_numbers(first, other):
    both = first.intersect(other)
    assert held(both) == held(first) & held(other)
    wholes = {number for number in NUMBERS if number.denominator == 1}
    assert held(first.whole()) & wholes == held(first) & wholes
    assert {number for number in NUMBERS if number in first} == held(first)
    if all(map(math.isfinite, (*first, *other))):
        assert both.empty == (not held(both))
        assert both == other.intersect(first)
        if held(first) and held(other):
            assert held(first) | held(other) <= held(first.hull(other))
            assert first.within(other) == (held(first) <= held(other))
            assert first.within(first.hull(other))


@given(INTERVALS, st.sampled_from(NUMBERS))
def test_clipped_numbers_are_the_nearest(first, number):
    assume(first.lower <= first.upper)
    inside = {each for each in NUMBERS if first.lower <= each <= first.upper}
    assume(inside)
    assert first.clip(number) == min(inside, key=lambda each: abs(each - number))


def test_ends_are_never_rounded():
    large = 2**60 + 1
    assert Interval(np.int64(-large), np.int64(large)).whole() == Interval(-large, large)
    assert large not in Interval(upper=float(2**60))
    assert INT64.intersect(Interval(upper=10**400)) == INT64
    assert Interval(-(10**400), math.inf).bounds == (-(10**400), None)


# ------------------------------------------------------------------ whole expressions

NAMES = ("x", "y", "n", "m")
EXPRESSIONS = st.recursive(
    st.sampled_from([*NAMES, *NAMES, "2", "0.1", "-3", "1e10", "9007199254740993"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda text: f"(-{text})"),
        inner.map(lambda text: f"abs({text})"),
        st.tuples(inner, st.integers(0, 5)).map(lambda parts: f"({parts[0]}) ** {parts[1]}"),
        st.tuples(inner, ranges(MODEST | st.integers(-9, 9))).map(
            lambda parts: f"({parts[0]}).clip({parts[1].lower!r}, {parts[1].upper!r})"
        ),
        st.tuples(inner, MODEST | st.integers(-9, 9)).map(lambda parts: f"({parts[0]}).fillna({parts[1]!r})"),
    ),
    max_leaves=6,
)


@st.composite
def declared(draw):
    """A domain of two columns of floats and two of whole numbers, and rows of it, all corners among them."""
    columns, choices = [], []
    for name in NAMES:
        whole = name in "nm"
        low, high = draw(ranges(WHOLE if whole else FLOATS | MODEST))
        columns.append(Column(name, "integer" if whole else "float", lower=low, upper=high))
        between = st.integers(low, high) if whole else st.floats(low, high)
        choices.append([low, high, draw(between)])
    rows = list(itertools.product(*choices))
    frame = pd.DataFrame(
        {
            name: np.array([row[index] for row in rows], dtype=np.int64 if name in "nm" else np.float64)
            for index, name in enumerate(NAMES)
        }
    )
    return Domain(tuple(columns)), frame


@given(declared(), EXPRESSIONS, ranges(MODEST))
def test_every_cell_lies_within_the_declared_bounds(data, text, ends):
    """And whole results are exact, and public bounds always give a column."""
    domain, frame = data
    check_public_bounds(domain, frame, text, ends)
    try:
        step = assign(domain, {"new": f"({text}) + 0"})
    except QueryError:
        with pytest.raises(QueryError, match="has results without bounds"):
            assign(domain, {"new": f"({text}) + 0"})
        return
    column = step.domain["new"]
    cells = step.apply(frame)["new"]
    if not column.nullable:
        assert not cells.isna().any()
    values = cells.dropna()
    assert all(column.lower <= value <= column.upper for value in values.tolist())
    assert cells.dtype == (np.int64 if column.kind == "integer" else np.float64)
    if column.kind == "integer" and ").clip(" not in text and ").fillna(" not in text:
        exact = [eval(text, {"abs": abs}, row) for row in frame.astype(object).to_dict("records")]
        assert cells.tolist() == exact


def check_public_bounds(domain, frame, text, ends):
    step = assign(domain, {"new": f"({text}) * 1.0"}, {"new": tuple(ends)})
    column = step.domain["new"]
    cells = step.apply(frame)["new"]
    assert column.interval.within(ends)
    assert bool(cells.isna().any()) <= column.nullable
    assert cells.dropna().between(column.lower, column.upper).all()


@given(declared(), st.permutations(NAMES), st.lists(st.sampled_from("+-*"), min_size=3, max_size=3))
def test_the_bounds_are_tight_where_each_column_occurs_once(data, names, symbols):
    """Sums, differences and products are monotone in each operand, so that corners attain the bounds."""
    domain, frame = data
    text = names[0]
    for name, symbol in zip(names[1:], symbols, strict=True):
        text = f"({text} {symbol} {name})"
    try:
        step = assign(domain, {"new": text})
    except QueryError:
        return
    cells = step.apply(frame)["new"]
    column = step.domain["new"]
    if not column.nullable:  # infinity times zero, where a product before is too large
        assert (column.lower, column.upper) == (cells.min(), cells.max())


@given(declared(), st.sampled_from(NAMES), MODEST, MODEST)
def test_clipping_has_exact_bounds(data, name, first, second):
    domain, frame = data
    low, high = sorted((first, second))
    if name in "nm":
        low, high = math.floor(low), math.floor(high)
    step = clip(domain, {name: low}, {name: high})
    cells = step.apply(frame)[name]
    column = step.domain[name]
    assert (column.lower, column.upper) == (cells.min(), cells.max())
    assert cells.tolist() == frame[name].clip(low, high).tolist()


@given(
    declared(),
    st.sampled_from(NAMES),
    st.sets(WHOLE | FLOATS, min_size=2, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_cutting_declares_nulls_exactly_where_corners_have_them(data, name, edges, right, lowest):
    domain, frame = data
    doubles = sorted({float(edge) for edge in edges})
    assume(len(doubles) > 1)
    labels = [str(index) for index in range(len(doubles) - 1)]
    step = cut(domain, name, doubles, right=right, include_lowest=lowest, labels=labels)
    cells = step.apply(frame)[name]
    assert bool(cells.isna().any()) == step.domain[name].nullable


# ------------------------------------------------------------------ fixed cases


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("n + 1", -1, 6),
        ("n - n", -7, 7),
        ("n * n", -10, 25),
        ("n ** 2", 0, 25),
        ("n ** 3", -8, 125),
        ("n ** 0", 1, 1),
        ("-n", -5, 2),
        ("abs(n)", 0, 5),
        ("n // 2", -1, 2),
        ("n // -2", -3, 1),
        ("n % 3", 0, 2),
        ("n % -3", -2, 0),
        ("(n + 2) % 10", 0, 7),
        ("n / 4", -0.5, 1.25),
        ("1 / (n + 3)", 0.125, 1.0),
        ("n + 0.5", -1.5, 5.5),
        ("x * 2", 0.0, 2.0),
        ("x ** 2 - x", -1.0, 1.0),
        ("1 / (1 + x)", 0.5, 1.0),
        ("x // 0.25", 0.0, 4.0),
        ("x % 0.25", 0.0, 0.25),
        ("b * 3 + 1", 1, 4),
        ("n * 4611686018427387904", -(2.0**63), 5 * 2.0**62),
        ("u % 7", 0.0, 7.0),
        ("1 / (u ** 2 + 1)", 0.0, 1.0),
    ],
)
def test_bounds_of_known_expressions(text, lower, upper):
    domain = Domain(
        (
            Column("n", "integer", lower=-2, upper=5),
            Column("x", "float", lower=0, upper=1),
            Column("b", "boolean"),
            Column("u", "float"),
        )
    )
    column = assign(domain, {"new": text}).domain["new"]
    assert (column.lower, column.upper) == (lower, upper)
    assert type(column.lower) is type(lower)
    assert not column.nullable
