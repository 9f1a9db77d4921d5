"""Frames made of others: which records they have, and what their facts say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Budget, Column, Domain, protect
from pdprivacy.core import noise
from pdprivacy.core.gate.parts import AlikeCoins, SomeOf, WeightedCoins, divided
from pdprivacy.core.gate.records import records_of
from pdprivacy.frames import find

DOMAIN = Domain(
    (
        Column("town", "category", categories=("a", "b", "c"), nullable=True),
        Column("row", "integer", lower=-1, upper=100),
    )
)
TOWNS = ["b", "a", None, "b", "a", "b"]


def facts(**options):
    frame = pd.DataFrame({"town": TOWNS, "row": range(len(TOWNS)), "who": [0, 0, 1, 1, 2, 2]})
    return find(protect(frame, DOMAIN, epsilon=10, **options))


def rows(of):
    return records_of(of).snapshot["row"].tolist()


def test_each_record_is_in_the_group_of_its_label_once():
    groups = divided(facts(unit="who", max_rows=2), DOMAIN["town"], lambda: Budget(epsilon=1))
    assert {label: rows(group) for label, group in groups.items()} == {
        "a": [1, 4], "b": [0, 3, 5], "c": [], None: [2]
    }  # fmt: skip
    assert [len(records_of(group).units) for group in groups.values()] == [2, 3, 0, 1]
    assert len({id(group.budget) for group in groups.values()}) == 4
    assert all(group.scope.filtered and group.filters for group in groups.values())


def test_records_of_one_unit_share_a_coin():
    throw = AlikeCoins(Fraction(1, 2)).of(records_of(facts(unit="who", max_rows=2)))
    masks = np.array([throw(noise.source(seed)) for seed in range(40)])
    assert (masks[:, ::2] == masks[:, 1::2]).all()
    assert len(np.unique(masks, axis=0)) == 8  # all sets of three units
    alone = np.array([AlikeCoins(Fraction(1, 2)).of(records_of(facts()))(noise.source(n)) for n in range(40)])
    assert (alone[:, ::2] != alone[:, 1::2]).any()


def test_a_number_of_records_is_drawn_without_replacement():
    draw = SomeOf(2).of(records_of(facts()))
    masks = np.array([draw(noise.source(seed)) for seed in range(300)])
    assert (masks.sum(axis=1) == 2).all()
    assert len(np.unique(masks, axis=0)) == 15


@pytest.mark.parametrize(("coded", "cells"), [(True, [[1, 0, 3, 1, 0, 1]]), (False, [[0, 1, 2, 3, 4, 5]])])
def test_coins_by_score_are_weighted_by_the_columns_that_they_name(coded, cells):
    seen = []

    def probabilities(arrays):
        seen.extend(array.tolist() for array in arrays)
        return np.array([0.01, 0.99] * 3)

    column = DOMAIN["town" if coded else "row"]
    throw = WeightedCoins((column,), coded, probabilities).of(records_of(facts()))
    kept = np.mean([throw(noise.source(seed)) for seed in range(200)], axis=0)
    assert seen == cells
    assert (kept[::2] < 0.1).all()
    assert (kept[1::2] > 0.9).all()
