"""The releases of a run of a step: the texts of `call_texts` that tell their arguments apart."""

from __future__ import annotations

import datetime
import inspect
import math
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain, releases
from pdprivacy import frames as protection
from pdprivacy.core.gate.spec import MethodCall
from pdprivacy.frames.call_texts import LATER, call_texts, differing, text_of
from pdprivacy.postprocess import LinearConstraint
from pdprivacy.releases.batches import VERBS
from pdprivacy.releases.grouped import VERBS_BY_GROUP, GroupBy
from tests.support.labels import SCALARS

DOMAIN = Domain((Column("age", "integer", lower=0, upper=99),))


class Region(Enum):
    NORTH = "north"


class North(Enum):
    NORTH = "the north"


North.__qualname__ = "Region"  # as it is called after its value was changed


def test_texts_tell_what_differs_and_nothing_else():
    groups = [
        (1, 1.0, np.int8(1), Fraction(1), Decimal("1.00")),
        (0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)),
        ("a", np.str_("a")),
        ([1, 2], [1.0, 2]),
        ({"a": 1, "b": 2}, {"a": 1.0, "b": 2}),
        ({1, 2}, frozenset({2, 1})),
    ]
    seen = set()
    for group in groups:
        texts = {text_of(value, "x") for value in group}
        assert len(texts) == 1
        seen |= texts
    other = [
        True, None, "1", "1/10", 2, (1, 2), [[1], 2], ["1", 2], {"a": "1", "b": 2}, "", " ", '"a"', "a, b",
        ["a", "b"], ["a, b"], datetime.date(2026, 5, 1), "2026-05-01", math.inf, -math.inf, b"a", Path("a"),
        10**5000, 10**5001, Decimal("1e999999"), UUID(int=1), pd.Timestamp("2026-05-01"), [], (), {}, set(),
        [None], (1,), {"b": 2, "a": 1}, {1: 0, "1": 0}, {"1": 0, 1: 0}, {(1,): 0}, {"(1,)": 0}, {True: 0},
        {"True": 0}, {datetime.date(2026, 5, 1): 0}, {"2026-05-01": 0}, bytearray(b"a"), [97], range(3),
        pd.Period("2026", "Y-DEC"), pd.Period("2026", "Y-JUN"), pd.Interval(0, 1), Region.NORTH, North.NORTH,
    ]  # fmt: skip
    texts = [text_of(value, "x") for value in other]
    assert len(set(texts)) == len(texts)
    assert not seen & set(texts)
    assert (
        text_of(np.array([1, 2]), "x", arrays=True)
        == text_of(pd.Series([1, 2]), "x", arrays=True)
        == "[1, 2]"
    )
    assert text_of(np.array(0.5), "x", arrays=True) == "1/2"
    labelled = [pd.Series([1, 2], index=labels) for labels in (list("ab"), list("ba"), ["1", "2"], [1, 2])]
    assert len({text_of(series, "x", arrays=True) for series in [*labelled, pd.Series([1, 2])]}) == 5


def test_a_long_range_is_written_at_once():
    assert text_of(range(10**12), "x") != text_of(range(10**12 + 1), "x")


def call_of(**options):
    """The texts of a call of quantiles, as a step stores them."""
    facts = protection.find(pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), DOMAIN, epsilon=1))
    call = MethodCall(releases.quantile, (facts, "age", [0.25, 0.5]), {"epsilon": 1, **options})
    return call_texts(facts, "quantile", call.arguments())


def test_quantiles_that_an_earlier_version_stored_are_those_of_the_default():
    """It had no ``bounding``, and its numbers may be out of order; those as drawn are another release."""
    earlier = {name: text for name, text in call_of().items() if name != "bounding"}
    assert differing(earlier, call_of()) == []
    assert earlier == call_of() == call_of(bounding="project")
    assert differing(earlier, call_of(bounding=None)) == ["bounding"]


def test_no_argument_of_a_release_is_taken_for_what_a_request_adds():
    added = {"release", "after", "declaration", "neighbors", "function"}
    for verb in map(str, VERBS):
        assert added.isdisjoint(inspect.signature(getattr(releases, verb)).parameters), verb


def test_linear_constraints_have_texts_of_their_own():
    north = {("north", ...): 1, ("east", True): -0.5}
    constraints = [
        LinearConstraint(north, lower=0),
        LinearConstraint(north, upper=0),
        LinearConstraint(north, equals=0),
        LinearConstraint({**north, ("east", True): -0.25}, lower=0),
        LinearConstraint({("north", "..."): 1, ("east", True): -0.5}, lower=0),
        LinearConstraint({...: 1}, lower=0),
    ]
    assert len({text_of(each, "x") for each in constraints}) == len(constraints)
    assert text_of(constraints[0], "x") == text_of(LinearConstraint(north, lower=Fraction(0)), "x")
    assert text_of(constraints, "x") != text_of(constraints[:1], "x")


@given(
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    )
)
def test_equal_arguments_have_equal_texts(argument):
    import copy

    assert text_of(argument, "x") == text_of(copy.deepcopy(argument), "x")
    assert text_of([argument], "x") != text_of(argument, "x")
    assert text_of(str(argument), "x") != text_of([str(argument)], "x")


ALWAYS = {"delta", "mechanism", "bounding", "releases"}
AT_FIRST = {
    "agg": {"func"},
    "crosstab": {"branching", "margins", "normalize"},
    "kmeans": {"iterations"},
    "ols": {"ridge"},
    "pivot_table": {"aggfunc"},
    "proportion": {"value"},
    "quantile": {"q"},
    "value_counts": {"branching", "dropna", "normalize", "sort"},
}
"""Arguments whose default is not None, which methods had when releases were stored first."""


def test_a_stored_release_without_a_later_argument_is_that_of_its_default():
    """A new argument of a method that can be stored is None by default, or in `LATER` with its default."""
    methods = {name: getattr(releases, name) for name in VERBS}
    methods |= {f"GroupBy.{name}": getattr(GroupBy, name) for name in VERBS_BY_GROUP}
    assert len(methods) > 30
    for name, method in methods.items():
        parameters = inspect.signature(method).parameters.values()
        stated = {
            each.name: each.default for each in parameters if each.default not in (None, inspect._empty)
        }
        later = dict(LATER.get(name, {}))
        first = ALWAYS - {*later} | AT_FIRST.get(name.removeprefix("GroupBy."), set())
        absent = (None, inspect.Parameter.empty)
        new = {key: value for key, value in stated.items() if key not in first and value not in absent}
        assert new == later, name
    facts = protection.find(pdprivacy.protect(pd.DataFrame({"age": [1]}), DOMAIN, epsilon=1))
    assert "dropna" not in call_texts(facts, "crosstab", {"index": "age", "dropna": False})
    assert "dropna" in call_texts(facts, "crosstab", {"index": "age", "dropna": True})
