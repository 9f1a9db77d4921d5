"""Hints of wrong calls, on a frame without the names of the examples: each runs as it is written."""

from __future__ import annotations

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import PrivacyError
from pdprivacy.protection.frame import ROW_STEPS

DOMAIN = Domain(
    (
        Column("my weight", "float", lower=40, upper=90),
        Column("floor", "integer", lower=-2, upper=9),
        Column("side", "category", categories=("left", "right")),
        Column("kept", "boolean"),
    )
)
FRAME = pd.DataFrame({"my weight": [50.5], "floor": [3], "side": ["left"], "kept": [True]})
CALLS = [
    *(f"private.{step}(nothing=1)" for step in ROW_STEPS),
    *(
        f"private.dp.{method}(nothing=1)"
        for method in ("mean", "corr", "value_counts", "crosstab", "ols", "top_k")
    ),
    "private.query(3)",
    "private.clip()",
    "private.clip({})",
    "private.clip('3')",
    "private.fillna([1])",
    "private.cut('floor')",
    "private.cut('floor', 3)",
    "private.cut('floor', [0, 1, 2], labels=3)",
    "private.recode('side', 3)",
    "private.rename(3)",
    "private.assign(x=private['side'] + 1)",
    "private.mean()",
    "private.head",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_hint_that_is_a_call_runs(call):
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=100)
    with pytest.raises(PrivacyError) as caught:
        eval(call, {"private": private})
    hint = caught.value.hint or ""
    if hint.startswith("private"):
        eval(hint, {"private": private})
    assert (
        not {"age", "region", "income", "health"} & set(hint.replace('"', " ").split())
        or call == "private.head"
    )
