"""Arguments that make row steps: the same as the step by itself, in plans, batches and on other engines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.declaration.schema import read_schema
from pdprivacy.errors import ParameterError
from tests.support.engine_frames import BESIDE_PANDAS, each_engine, frame_of
from tests.support.neighbours import losses_of

DATES = pd.date_range("2020-01-01", "2020-06-30", periods=90).as_unit("s")
FRAME = pd.DataFrame(
    {
        "when": DATES,
        "g": ["a", "b", None] * 30,
        "h": ["u", "v"] * 45,
        "x": np.arange(90.0) % 50 + 1,
    }
)
FLAG = {"metadata": {"dp": {}}}
IN_TIME = pa.Check.in_range("2019-12-15", "2020-07-15")
SCHEMA = pa.DataFrameSchema(
    {
        "when": pa.Column("datetime64[s]", IN_TIME, **FLAG),
        "g": pa.Column(str, pa.Check.isin(["a", "b"]), nullable=True, **FLAG),
        "h": pa.Column(str, pa.Check.isin(["u", "v"]), **FLAG),
        "x": pa.Column(float, pa.Check.in_range(0, 60), **FLAG),
    }
)
DOMAIN = read_schema(SCHEMA)
COST = {"epsilon": 1, "rng": 3}


def protected(frame=FRAME, **words):
    return pdprivacy.protect(frame, DOMAIN, epsilon=1000, **words)


CALLS = {
    "value_counts": (
        lambda dp: dp.value_counts("when", freq="M", **COST),
        lambda dp: dp.cut("when", freq="M").dp.value_counts("when", **COST),
    ),
    "value_counts of several": (
        lambda dp: dp.value_counts(["h", "when"], freq="Q", sort=False, **COST),
        lambda dp: dp.cut("when", freq="Q").dp.value_counts(["h", "when"], sort=False, **COST),
    ),
    "histogram": (
        lambda dp: dp.histogram("when", freq="W", **COST),
        lambda dp: dp.cut("when", freq="W").dp.value_counts("when", sort=False, **COST),
    ),
    "weighted histogram": (
        lambda dp: dp.histogram("when", freq="M", weights="x", **COST),
        lambda dp: dp.cut("when", freq="M").dp.value_counts("when", weights="x", sort=False, **COST),
    ),
    "crosstab": (
        lambda dp: dp.crosstab("g", "h", dropna=True, margins=True, **COST),
        lambda dp: dp.dropna(["g"]).dp.crosstab("g", "h", margins=True, **COST),
    ),
    "crosstab of values": (
        lambda dp: dp.crosstab("g", "h", values="x", aggfunc="mean", dropna=True, **COST),
        lambda dp: dp.dropna(["g"]).dp.pivot_table("x", "g", "h", "mean", **COST),
    ),
    "groupby": (
        lambda dp: dp.groupby(["g", "h"], dropna=True).mean("x", **COST),
        lambda dp: dp.dropna(["g"]).dp.groupby(["g", "h"]).mean("x", **COST),
    ),
    "groupby of periods": (
        lambda dp: dp.groupby(["g", "when"], freq="Q", dropna=True)["x"].median(**COST),
        lambda dp: dp.cut("when", freq="Q").dropna(["g"]).dp.groupby(["g", "when"])["x"].median(**COST),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_releases_what_the_step_releases(name):
    call, stepped = (release(protected().dp) for release in CALLS[name])
    assert call.to_numpy().tolist() == stepped.to_numpy().tolist()
    pd.testing.assert_index_equal(call.index, stepped.index)
    assert call.dp.metadata.scale == stepped.dp.metadata.scale
    assert call.dp.metadata.lineage == stepped.dp.metadata.lineage
    assert call.dp.metadata.lineage != []


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("engine", each_engine(BESIDE_PANDAS))
@pytest.mark.parametrize("name", CALLS)
def test_other_engines_release_the_same(name, engine):
    call, _ = CALLS[name]
    expected, released = call(protected().dp), call(protected(frame_of(engine, FRAME)).dp)
    pd.testing.assert_index_equal(released.index, expected.index)
    assert (released.to_numpy() == expected.to_numpy()).all()


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", CALLS)
def test_a_record_loses_at_most_the_charge(name):
    """A record more or less, one with a null key, and one replaced."""
    call, _ = CALLS[name]
    pairs = []
    for position in range(3):
        rest = FRAME.drop(index=position)
        pairs.append((protected(), protected(rest)))
        for other in (10, 11, 41):
            replaced = FRAME.copy()
            replaced.iloc[position] = FRAME.iloc[other]
            words = {"neighbors": "replace_one"}
            pairs.append((protected(**words), protected(replaced, **words)))
    assert all(loss.kept for loss in losses_of(pairs, call))


def test_steps_are_made_for_each_release_of_a_batch_and_of_a_plan():
    private = protected()
    with private.dp.batch() as batch:
        waits = [
            batch.count(epsilon=0.5, rng=1),
            batch.value_counts("when", freq="M", **COST),
            batch.crosstab("g", "h", dropna=True, **COST),
        ]
    counts, table = waits[1].result, waits[2].result
    assert counts.to_list() == CALLS["value_counts"][0](private.dp).to_list()
    assert table.to_numpy().tolist() == private.dropna("g").dp.crosstab("g", "h", **COST).to_numpy().tolist()
    plan = private.dp.plan_releases([("value_counts", "when", {"freq": "M", **COST})])
    assert plan.release()[0].to_list() == counts.to_list()
    expected = private.dp.plan.value_counts("when", freq="M", epsilon=1, rows=90)
    assert expected["cells"].sum() == len(counts)


def test_public_numbers_of_rows_are_private_without_nulls():
    private = protected(neighbors="replace_one")
    assert private.dp.crosstab("g", "h", **COST).dp.metadata.rows is None
    complete = private.dp.value_counts("h", **COST)
    assert complete.dp.metadata.rows == 90
    without = private.dp.crosstab("g", "h", dropna=True, **COST)
    assert without.dp.metadata.rows is None
    with pytest.raises(ParameterError, match="private here"):
        private.dp.crosstab("g", "h", dropna=True, constraint="simplex", **COST)


def test_nothing_is_dropped_where_no_null_is_declared():
    released = protected().dp.groupby("h", dropna=True).count(**COST)
    assert released.dp.metadata.lineage == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda dp: dp.value_counts("h", freq="M", **COST), "one column of dates among its columns"),
        (lambda dp: dp.histogram("x", freq="M", **COST), "one column of dates among its columns"),
        (lambda dp: dp.histogram("when", bins=3, freq="M", **COST), "takes the place of 'bins'"),
        (lambda dp: dp.value_counts("when", freq="fortnight", **COST), "'freq'"),
        (lambda dp: dp.groupby("g", freq="M"), "one column of dates among the keys"),
        (lambda dp: dp.groupby("g", dropna=None), "'dropna' must be True or False"),
        (lambda dp: dp.crosstab("g", "h", dropna="yes", **COST), "'dropna' must be True or False"),
        (lambda dp: dp.crosstab("g", "h", values="x", **COST), "'values' and 'aggfunc' go together"),
        (lambda dp: dp.crosstab("g", "h", aggfunc="mean", **COST), "'values' and 'aggfunc' go together"),
        (
            lambda dp: dp.crosstab("g", "h", values="x", aggfunc="mean", normalize=True, **COST),
            "'normalize' is for counts",
        ),
        (
            lambda dp: dp.crosstab("g", "h", values="x", aggfunc="mean", weights="x", **COST),
            "'weights' is for counts",
        ),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_charged(call, words):
    private = protected()
    with pytest.raises(ParameterError, match=words):
        call(private.dp)
    assert private.dp.budget.spent == (0, 0)
