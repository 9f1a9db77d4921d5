"""The releases of a run of a step: the texts that tell their arguments apart."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy.step.keeper import text_of
from tests.support.labels import SCALARS


def test_texts_tell_what_differs_and_nothing_else():
    groups = [
        (1, 1.0, np.int8(1), Fraction(1), Decimal("1.00")),
        (0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)),
        ("a", np.str_("a")),
        ([1, 2], [1.0, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
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
        [None], (1,),
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
