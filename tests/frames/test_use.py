"""The row step that declares what a release found: what it accepts, declares and costs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, ProtectedFrame
from pdprivacy.errors import DeclarationError, MetadataError, ParameterError
from tests.support.engine_frames import each_engine, frame_of

DOMAIN = Domain((Column("pay", "float", True), Column("age", "integer"), Column("member", "boolean")))
FRAME = pd.DataFrame(
    {
        "pay": np.where(np.arange(500) % 10 == 0, np.nan, 1000.0 + np.arange(500)),
        "age": 20 + np.arange(500) % 60,
        "member": np.arange(500) % 2 == 0,
    }
)


def protected(frame: Any = FRAME, domain: Domain = DOMAIN, **options: Any) -> ProtectedFrame:
    return pdprivacy.protect(frame, domain, epsilon=100, **options)


def test_the_bounds_are_declared_and_the_lineage_names_the_release():
    private = protected()
    private.dp.count(epsilon=1)
    bounds = private.dp.find_bounds(["pay", "age"], epsilon=50)
    spent = private.dp.budget.spent
    used = private.use(bounds)
    assert private.dp.budget.spent == spent
    for name in ("pay", "age"):
        assert used.dp.domain[name].bounds("mean") == tuple(bounds.loc[name])
        assert type(used.dp.domain[name].lower) is (float if name == "pay" else int)
    assert used.dp.domain["pay"].nullable
    assert used.dp.lineage["step"].tolist() == ["use(find_bounds of pay, age, charge 2)"]
    assert used.dp.lineage["stability"].tolist() == [1]
    mean = used.dp.mean(["pay", "age"], epsilon=40)
    assert mean.attrs["dp"]["lineage"] == ["use(find_bounds of pay, age, charge 2)"]
    assert abs(mean["age"] - FRAME["age"].mean()) < 5


def test_a_release_that_was_saved_is_used_as_well(tmp_path):
    private = protected()
    bounds = private.dp.find_bounds("pay", epsilon=50)
    bounds.dp.save(tmp_path / "bounds.json")
    again = pdprivacy.read_release(tmp_path / "bounds.json")
    assert private.use(again).dp.domain.fingerprint() == private.use(bounds).dp.domain.fingerprint()
    assert json.loads(json.dumps(bounds.attrs["dp"])) == bounds.attrs["dp"]


@pytest.mark.parametrize("rng", [None, 5])
def test_releases_after_a_seeded_one_are_seeded(rng):
    domain = Domain((*DOMAIN.columns, Column("sex", "category", private_labels=True)))
    private = protected(FRAME.assign(sex="f"), domain, delta=1e-3)
    bounds = private.dp.find_bounds("pay", epsilon=10, rng=rng)
    labels = private.dp.find_labels("sex", epsilon=1, delta=1e-6, rng=rng)
    for released, other in ((bounds, labels), (labels, bounds)):
        used = private.use(released)
        later = [used, used.query("member"), used.use(other)]
        assert [each.dp.count(epsilon=1).dp.metadata.seeded for each in later] == [rng is not None] * 3
        assert ("seed" in repr(used.dp)) == (rng is not None)
    assert private.dp.count(epsilon=1).dp.metadata.seeded is False


def test_bounds_found_on_a_part_of_the_records_declare_the_whole():
    private = protected()
    bounds = private[private["member"]].dp.find_bounds("pay", epsilon=50)
    assert private.use(bounds).dp.domain["pay"].bounds("mean") == tuple(bounds.loc["pay"])


@pytest.mark.parametrize("engine", each_engine(["pandas", "Polars", "lazy Polars", "DuckDB", "PyArrow"]))
def test_numbers_outside_are_clipped_on_every_engine(engine):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = arrow.Table.from_pandas(FRAME)
    private = protected(FRAME if engine == "pandas" else frame_of(engine, table))
    bounds = protected(FRAME.assign(pay=FRAME["pay"].clip(1100, 1110))).dp.find_bounds("pay", epsilon=90)
    lower, upper = bounds.loc["pay"]
    expected = FRAME["pay"].clip(lower, upper).mean()
    mean = private.use(bounds).dp.mean("pay", epsilon=99)
    assert abs(mean["pay"] - expected) < 0.2 * (upper - lower)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda bounds, _: bounds * 2, MetadataError, "as it was made"),
        (lambda bounds, _: bounds.iloc[:1], MetadataError, "as it was made"),
        (lambda bounds, _: bounds[["upper", "lower"]], MetadataError, "as it was made"),
        (lambda _, private: private.dp.count(epsilon=1), ParameterError, "one of 'count'"),
        (lambda *_: FRAME, MetadataError, "no release metadata"),
        (lambda *_: {"pay": (0, 1)}, ParameterError, "got dict"),
        (lambda *_: 5, ParameterError, "got int"),
    ],
)
def test_anything_but_a_release_as_it_was_made_is_refused(change, error, match):
    private = protected()
    bounds = private.dp.find_bounds(["pay", "age"], epsilon=1)
    with pytest.raises(error, match=match):
        private.use(change(bounds, private))


@pytest.mark.parametrize(
    "columns",
    [
        [Column("pay", "float", True, 0), Column("age", "integer")],
        [Column("pay", "integer", True), Column("age", "integer")],
        [Column("pay", "float", True), Column("age", "integer", upper=99)],
    ],
)
def test_another_declaration_is_refused(columns):
    private = protected()
    bounds = private.dp.find_bounds(["pay", "age"], epsilon=1)
    frame = FRAME[["pay", "age"]].assign(pay=FRAME["pay"].round())
    if columns[0].kind == "integer":
        frame["pay"] = frame["pay"].astype("Int64")
    with pytest.raises(DeclarationError, match="declared otherwise"):
        protected(frame, Domain(tuple(columns))).use(bounds)


def test_a_column_that_is_not_there_and_bounds_that_are_used_twice_are_refused():
    private = protected()
    bounds = private.dp.find_bounds(["pay", "age"], epsilon=1)
    with pytest.raises(DeclarationError, match="'age' is not declared"):
        private.select(["pay"]).use(bounds)
    with pytest.raises(DeclarationError, match="declared otherwise"):
        private.use(bounds).use(bounds)
