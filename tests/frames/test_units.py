"""Units of several records: how far one of them moves a statistic, which records stay, whose loss is counted.

The statistical tests are seeded; each is wrong with a probability below 1e-6 if the code is right.
"""

from __future__ import annotations

import itertools
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from pdprivacy import Budget, Ledger, Unit
from pdprivacy import frames as protection
from pdprivacy.core.gate.records import records_of as opened
from pdprivacy.errors import BudgetError, InvalidDataError, ParameterError
from tests.support.snapshots import records_of
from tests.support.statistics import accepts_counts

NEIGHBORS = ("add_remove", "replace_one")
FLAG = pa.DataFrameSchema({"flag": pa.Column(bool, metadata={"dp": {}})})


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("most", [1, 3, 7])
def test_noise_grows_with_the_records_of_a_unit(neighbors, most):
    frame = pd.DataFrame({"flag": [True, False, True], "who": [1, 1, 2]})
    scale = {}
    for unit in (None, "who"):
        rows = None if unit is None else most
        private = frame.dp.protect(FLAG, epsilon=9, delta=0.1, neighbors=neighbors, unit=unit, max_rows=rows)
        table = private.dp.value_counts("flag", epsilon=1, mechanism="laplace")
        normal = private.dp.value_counts("flag", epsilon=1, delta=0.01, mechanism="gaussian")
        scale[unit] = (
            table.dp.metadata.scale,
            normal.dp.metadata.scale,
            table.dp.metadata.sensitivity,
            normal.dp.metadata.sensitivity,
        )
    base = 1 if neighbors == "add_remove" else 2
    assert scale["who"][2:] == pytest.approx((base * most, sqrt(base) * most), rel=1e-12)
    assert np.divide(scale["who"], scale[None]) == pytest.approx([most] * 4, rel=1e-4)


# ---------------------------------------------------------------- which records stay


def kept_of(names: list[Any], most: int, seed: int) -> pd.DataFrame:
    frame = pd.DataFrame({"flag": [False] * len(names), "who": names})
    return frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=most, rng=seed)


def test_at_most_so_many_records_of_a_unit_stay_and_all_of_smaller_ones():
    names = [9, 3, 3, 9, 9, 1, 3, 9, 9]
    private = kept_of(names, 3, 5)
    assert [names[row] for row in records_of(private).index].count(9) == 3
    assert sorted(names[row] for row in records_of(private).index) == [1, 3, 3, 3, 9, 9, 9]
    assert records_of(private).index.is_monotonic_increasing
    assert private.dp.quality().loc["who", "dropped"] == 2
    whole = kept_of(names, 5, 5)
    assert len(records_of(whole)) == 9
    assert whole.dp.quality().loc["who", "dropped"] == 0


@pytest.mark.full
def test_any_records_of_a_unit_stay_with_the_same_probability():
    """There are 50 choices for 60 units, and for a unit of a single record.

    Of all, and of a few units or a few choices alone: the choices come from different seeds.
    """
    units, seeds = 60, 50
    pairs = {pair: index for index, pair in enumerate(itertools.combinations(range(5), 2))}
    names = ["y"] + [f"x{unit}" for unit in range(units) for _ in range(5)]
    choices = np.zeros((seeds, units), dtype=int)
    for seed in range(seeds):
        left = records_of(kept_of(names, 2, seed)).index.to_numpy()
        assert left[0] == 0
        remaining = (left[1:] - 1).reshape(units, 2)
        assert (remaining // 5 == np.arange(units)[:, np.newaxis]).all()
        choices[seed] = [pairs[tuple(pair)] for pair in (remaining % 5).tolist()]
    for part in (choices, choices[:, :10], choices[:, -10:], choices[:10], choices[-10:]):
        assert accepts_counts(np.bincount(part.ravel(), minlength=10), np.full(10, 1 / 10))


def test_a_choice_that_can_be_repeated_marks_every_release():
    frame = pd.DataFrame({"flag": [True, False], "who": [1, 1]})
    seeded = frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=1, rng=3)
    assert seeded.dp.count(epsilon=0.5).dp.metadata.seeded is True
    fresh = frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=1)
    assert fresh.dp.count(epsilon=0.5).dp.metadata.seeded is False


def test_filters_keep_the_units_of_their_records():
    names = ["a", "b", "b", "c"]
    frame = pd.DataFrame({"flag": [True, False, True, True], "who": names})
    private = frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=2)
    left = protection.find(private.dp.query("flag"))
    records = opened(left)
    assert len(records.units) == len(records.snapshot) == 3
    assert len(set(records.units.tolist())) == 3
    assert left.scope.contribution == 2


# ---------------------------------------------------------------- the budget


def test_losses_of_records_and_of_units_do_not_add_up(tmp_path):
    frame = pd.DataFrame({"flag": [True, False], "who": [1, 1], "house": [1, 2]})
    budget = Budget(epsilon=3)
    frame.dp.protect(FLAG, budget=budget, unit="who", max_rows=2)
    for other in ({}, {"unit": "house", "max_rows": 2}):
        with pytest.raises(BudgetError):
            frame.dp.protect(FLAG, budget=budget, **other)
    # how many records are kept is a choice of the release, and not of whom it protects
    repeated = frame.dp.protect(FLAG, budget=budget, unit="who", max_rows=1)
    repeated.dp.count(epsilon=1)
    assert budget.left == (2.0, 0.0)
    assert budget.unit == Unit("add_remove", "who")

    ledger = Ledger(tmp_path / "budget.db")
    frame.dp.protect(FLAG, epsilon=3, budget=ledger, name="data", unit="who", max_rows=2).dp.count(epsilon=1)
    assert Ledger(tmp_path / "budget.db").budget("data").unit == Unit("add_remove", "who")
    with pytest.raises(BudgetError):
        frame.dp.protect(FLAG, budget=ledger, name="data")
    ledger.audit()


@pytest.mark.parametrize(
    ("neighbors", "most", "times"),
    [
        ("add_remove", 1, 1),
        ("add_remove", 2, 2),
        ("add_remove", 5, 3),
        ("replace_one", 1, 2),
        ("replace_one", 4, 3),
    ],
)
def test_groups_are_charged_as_often_as_a_unit_can_touch_them(neighbors, most, times):
    schema = pa.DataFrameSchema({"g": pa.Column(str, pa.Check.isin(["a", "b", "c"]), metadata={"dp": {}})})
    frame = pd.DataFrame({"g": list("abcabc"), "who": range(6)})
    private = frame.dp.protect(schema, epsilon=9, neighbors=neighbors, unit="who", max_rows=most)
    private.dp.partition("g", epsilon=1)
    assert private.dp.budget.spent == (float(times), 0.0)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "who"},
        {"max_rows": 2},
        {"unit": "who", "max_rows": 0},
        {"unit": "who", "max_rows": True},
        {"unit": "who", "max_rows": 2.0},
        {"unit": "nobody", "max_rows": 2},
        {"unit": "who", "max_rows": 2, "public_rows": 1},
    ],
)
def test_a_call_that_does_not_fit_is_refused(wrong):
    frame = pd.DataFrame({"flag": [True, False], "who": [1, 1]})
    budget = Budget(epsilon=1)
    with pytest.raises(ParameterError):
        frame.dp.protect(FLAG, budget=budget, **wrong)
    assert budget.unit is None


@pytest.mark.parametrize("names", [[1.0, None], [None, "secret"], pd.array([pd.NA, 5], dtype="Int64")])
def test_a_record_of_nobody_is_refused_without_a_cell_in_the_message(names):
    frame = pd.DataFrame({"flag": [True, False], "who": names})
    with pytest.raises(InvalidDataError) as caught:
        frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=2)
    assert "secret" not in str(caught.value)


class Unhashable:
    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    "unit",
    [
        ["who"],
        {"who"},
        {"who": 1},
        True,
        float("nan"),
        10**400,
        pd.Series(["who"]),
        np.array(["who"]),
        ("who",),
    ],
)
def test_an_invalid_label_names_no_unit(unit):
    frame = pd.DataFrame({"flag": [True, False], "who": [1, 1]})
    with pytest.raises(ParameterError):
        frame.dp.protect(FLAG, epsilon=1, unit=unit, max_rows=2)
    with pytest.raises(ParameterError):
        frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=10**310)


def test_units_of_labels_that_look_alike_are_two():
    frame = pd.DataFrame([[True, 1, 1], [False, 1, 2]], columns=["flag", 1, "1"])
    budget = Budget(epsilon=1)
    frame.dp.protect(FLAG, budget=budget, unit=1, max_rows=2)
    with pytest.raises(BudgetError):
        frame.dp.protect(FLAG, budget=budget, unit="1", max_rows=2)


def test_units_of_tuples_are_told_apart():
    columns = pd.Index(["flag", ("a", 1), ("a", 2)], tupleize_cols=False)
    frame = pd.DataFrame([[True, 1, 1], [False, 1, 2]], columns=columns)
    budget = Budget(epsilon=1)
    frame.dp.protect(FLAG, budget=budget, unit=("a", 1), max_rows=2)
    with pytest.raises(BudgetError):
        frame.dp.protect(FLAG, budget=budget, unit=("a", 2), max_rows=2)


@pytest.mark.parametrize(
    "names",
    [
        pd.arrays.FloatingArray(np.array([np.nan, 1.0]), np.array([False, False])),
        pd.Series([[1], [2]], dtype=object),
        pd.Series([Unhashable(), Unhashable()], dtype=object),
    ],
)
def test_names_that_are_none_are_refused(names):
    frame = pd.DataFrame({"flag": [True, False]}).assign(who=names)
    with pytest.raises(InvalidDataError):
        frame.dp.protect(FLAG, epsilon=1, unit="who", max_rows=2)


def test_a_schema_that_leaves_the_unit_out_is_told_so():
    schema = pa.DataFrameSchema(
        {"flag": pa.Column(bool, metadata={"dp": {}})},
        strict="filter",
    )
    frame = pd.DataFrame({"flag": [True, False], "who": [1, 1]})
    with pytest.raises(ParameterError, match="leaves the column of the unit out"):
        frame.dp.protect(schema, epsilon=1, unit="who", max_rows=2)
