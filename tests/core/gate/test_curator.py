"""Exact numbers for the curator: those of the records, and nothing is charged."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd

from pdprivacy import Column, Domain, protect
from pdprivacy.core import noise
from pdprivacy.core.gate import curator
from pdprivacy.core.gate.parts import AlikeCoins
from pdprivacy.frames import find

DOMAIN = Domain(
    (
        Column("town", "category", categories=("a", "b", "c")),
        Column("age", "integer", lower=0, upper=100, nullable=True),
    )
)
FRAME = pd.DataFrame({"town": ["a", "c", "a", "a"], "age": pd.array([31, None, 54, 200], dtype="Int64")})


def test_numbers_are_those_of_the_records_and_cost_nothing():
    facts = find(protect(FRAME, DOMAIN, epsilon=1, on_invalid="drop"))
    assert curator.counts(facts, [DOMAIN["town"]], "a test").tolist()[:3] == [2, 0, 1]
    assert curator.present(facts, [DOMAIN["age"], DOMAIN["town"]]) == [2, 3]
    assert curator.present(facts, []) == [3]
    (ages,) = curator.numbers(facts, ["age"], np.nan)
    assert np.array_equal(ages, [31, np.nan, 54], equal_nan=True)
    quality, omitted = curator.quality(facts)
    assert omitted == (1, 4)
    assert quality["dropped"].sum() == 1
    quality["dropped"] = 99
    assert curator.quality(facts)[0]["dropped"].sum() == 1
    assert facts.budget.entries.empty


def test_parts_have_the_facts_of_the_whole_and_records_of_it():
    facts = find(protect(FRAME.head(3), DOMAIN, epsilon=1))
    whole = curator.only(facts, ["town"])
    assert (whole.domain, whole.budget) == (facts.domain, facts.budget)
    draw = curator.parts(whole, AlikeCoins(Fraction(1, 2)))
    sizes = [curator.present(draw(noise.source(seed)), [])[0] for seed in range(100)]
    assert set(sizes) == {0, 1, 2, 3}
    assert abs(np.mean(sizes) - 1.5) < 0.35  # four standard errors
    assert curator.present(whole, []) == [3]
