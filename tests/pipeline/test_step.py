"""A step that is tried again: charged once, stored as it was made, and refused where it is another one."""

from __future__ import annotations

import copy
import errno
import inspect
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Budget, Column, Domain, releases
from pdprivacy.errors import (
    AlreadyCharged,
    ArgumentError,
    BudgetError,
    BudgetExceeded,
    ChangedStepError,
    InvalidDataError,
    LedgerError,
    MetadataError,
    MissingExtraError,
    ParameterError,
    StepError,
)
from pdprivacy.frames import ROW_STEPS
from pdprivacy.ledger.book import StoredBook
from pdprivacy.pipeline.keeper import ADMITTED, ROOM
from pdprivacy.pipeline.shapes import _digest
from pdprivacy.pipeline.storage import from_bytes, to_bytes
from pdprivacy.postprocess import LinearConstraint
from tests.support import kept_ledgers
from tests.support.released import same

pytest.importorskip("pyarrow", reason="releases are stored as Parquet")

NAME = "survey"
CELLS = (31, 54, 27, 39)


def declared(upper: int = 120) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(
        {
            "age": pa.Column(
                int,
                pa.Check.in_range(0, upper),
                metadata={"dp": {"bins": [0, 30, 60, upper], "role": "quasi_identifier"}},
            ),
            "health": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {"role": "sensitive"}}),
        }
    )


@pytest.fixture(scope="session")
def ages() -> pd.DataFrame:
    return pd.DataFrame({"age": [*CELLS] * 50, "health": ["no", "yes", "no", "no"] * 50})


class Pipeline:
    """A step in a folder of its own, and what it has left there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.to = folder, folder / "released"
        self.ledger = pdprivacy.Ledger(folder / "budget.db")
        self.calls, self.seen = 0, {}

    def step(self, body=None, **options):
        """A step of this body, by default of two releases."""
        defaults = {"schema": declared(), "epsilon": 2, "ledger": self.ledger, "name": NAME, "to": self.to}

        def monthly(private, by="age", **more):
            self.calls += 1
            return {
                "age": private.dp.mean("age", epsilon=0.3),
                "health": private.dp.crosstab(by, "health", epsilon=0.5),
            }

        return pdprivacy.release_step(**{**defaults, **options})(body or monthly)

    def failing(self, after: int, error: BaseException | None = None):
        """The same two releases, with a failure after so many of them, once."""
        failures = [error or RuntimeError("the network went away")]

        def monthly(private, by="age", **more):
            self.calls += 1
            results = {}
            for index, (name, release) in enumerate(
                {
                    "age": lambda: private.dp.mean("age", epsilon=0.3),
                    "health": lambda: private.dp.crosstab(by, "health", epsilon=0.5),
                }.items()
            ):
                if index == after and failures:
                    raise failures.pop()
                results[name] = release()
                self.seen.setdefault(name, results[name].copy())
            return results

        return monthly

    @property
    def spent(self) -> float:
        try:
            return self.ledger.budget(NAME).spent[0]
        except LedgerError:
            return 0.0

    @property
    def charged(self) -> list[str]:
        try:
            return self.ledger.entries(NAME)["release_id"].tolist()
        except LedgerError:
            return []

    @property
    def answered(self) -> list[bool]:
        return self.ledger.entries(NAME)["answered"].tolist()

    @property
    def files(self) -> dict[str, bytes]:
        """Everything below the folder of the results, but what is empty."""
        paths = {str(path.relative_to(self.to)): path for path in self.to.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in sorted(paths.items()) if path.stat().st_size}

    @property
    def answers(self) -> list[Path]:
        """The files of the releases that the ledger stores."""
        return sorted((self.folder / "budget.db-answers").iterdir())


@pytest.fixture
def pipeline(tmp_path):
    instance = Pipeline(tmp_path)
    yield instance
    instance.ledger.close()


# ------------------------------------------------------------------ a step, and the same step again


def test_results_are_returned_stored_and_charged(pipeline, ages):
    results = pipeline.step()(ages, by="age", release_id="2026-05")
    assert list(results) == ["age", "health"]
    assert pipeline.charged == ["2026-05/1", "2026-05/2"]
    assert pipeline.answered == [True, True]
    assert pipeline.spent == 0.8
    assert [result.attrs["dp"]["release_id"] for result in results.values()] == ["2026-05/1", "2026-05/2"]
    assert sorted(path.name for path in (pipeline.to / "2026-05").iterdir()) == [
        "age.parquet",
        "health.parquet",
    ]
    assert sorted(path.name for path in pipeline.to.iterdir()) == [".steps", "2026-05"]
    for name, result in results.items():
        assert result.dp.verify()
        same(pdprivacy.read_release(pipeline.to / "2026-05" / f"{name}.parquet"), result)
    plain = pd.read_parquet(pipeline.to / "2026-05" / "health.parquet")
    assert plain.attrs["dp"] == results["health"].attrs["dp"]
    assert plain.dp.verify()
    assert plain.equals(results["health"])


def test_a_body_that_fails_says_that_its_releases_are_stored(pipeline, ages):
    failing = [True]

    def body(private):
        mean = private.dp.mean("age", epsilon=0.5)
        if failing:
            raise RuntimeError(failing.pop())
        return mean

    step = pipeline.step(body)
    with pytest.raises(RuntimeError) as caught:
        step(ages, release_id="a")
    (note,) = caught.value.__notes__
    assert note.startswith("The releases of the step 'a' are stored")
    assert pipeline.charged == ["a/1"]
    assert step(ages, release_id="a").dp.verify()
    assert pipeline.charged == ["a/1"]


def test_a_release_that_is_stored_and_cannot_be_noted_is_free_the_next_time(pipeline, ages, monkeypatch):
    step = pipeline.step(lambda private: private.dp.mean("age", epsilon=0.5))
    with monkeypatch.context() as patched:
        full(patched, pdprivacy.pipeline.folder, "write", lambda files: bool(pipeline.charged))
        with pytest.raises(
            StepError, match=r"No space left on device\)\. Nothing is charged that is not stored\."
        ) as caught:
            step(ages, release_id="a")
    assert "same release_id" in caught.value.hint
    assert "handed out" not in "".join(getattr(caught.value, "__notes__", []))
    assert step(ages, release_id="a").dp.verify()
    assert pipeline.charged == ["a/1"]
    assert pipeline.answered == [True]


def test_the_same_step_again_is_neither_run_nor_charged(pipeline, ages):
    step = pipeline.step()
    first = step(ages, by="age", release_id="2026-05")
    before = pipeline.files
    repeated = step("no frame at all", "age", release_id="2026-05")  # which is not looked at
    assert pipeline.calls == 1
    assert pipeline.spent == 0.8
    assert pipeline.files == before
    for name in first:
        same(first[name], repeated[name])
    first["age"].iloc[0] = -1  # what is returned is the caller's own
    same(step(ages, "age", release_id="2026-05")["health"], repeated["health"])
    assert step(ages, "age", release_id="2026-05")["age"].iloc[0] != -1


def test_another_id_is_another_step(pipeline, ages):
    step = pipeline.step()
    first, second = (step(ages, release_id=f"2026-0{month}") for month in (5, 6))
    assert pipeline.charged == ["2026-05/1", "2026-05/2", "2026-06/1", "2026-06/2"]
    assert not first["health"].equals(second["health"]) or not first["age"].equals(second["age"])


def test_one_release_is_a_result_too(pipeline, ages):
    step = pipeline.step(lambda private: private.dp.mean("age", epsilon=0.5))
    result = step(ages, release_id="a")
    assert isinstance(result, pd.Series)
    same(step(ages, release_id="a"), result)
    same(pdprivacy.read_release(pipeline.to / "a" / "result.parquet"), result)


def test_releases_that_are_not_returned_stay_charged_and_stored(pipeline, ages):
    def body(private):
        private.dp.count(epsilon=0.25)
        return {"age": private.dp.mean("age", epsilon=0.5)}

    pipeline.step(body)(ages, release_id="a")
    assert pipeline.charged == ["a/1", "a/2"]
    assert pipeline.answered == [True, True]
    assert len(pipeline.answers) == 2
    assert [path.name for path in pipeline.to.rglob("*.parquet")] == ["age.parquet"]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("way", ["path", "text", "ledger"])
def test_the_ledger_may_be_named_in_each_way(pipeline, ages, way):
    path = pipeline.folder / "budget.db"
    step = pipeline.step(ledger={"path": path, "text": str(path), "ledger": pipeline.ledger}[way])
    step(ages, release_id="a")
    assert pipeline.spent == 0.8


def test_the_total_need_not_be_stated_again(pipeline, ages):
    pipeline.step()(ages, release_id="a")
    pipeline.step(epsilon=None)(ages, release_id="b")
    assert pipeline.spent == 1.6


# ------------------------------------------------------------------ cut short


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("after", [0, 1])
def test_a_step_goes_on_where_it_failed(pipeline, ages, after):
    step = pipeline.step(pipeline.failing(after))
    with pytest.raises(RuntimeError, match="the network went away"):
        step(ages, release_id="a")
    assert pipeline.spent == [0, 0.3][after]
    assert not (pipeline.to / "a").exists()
    assert len(pipeline.seen) == after
    results = step(ages, release_id="a")
    assert pipeline.spent == 0.8
    assert pipeline.charged == ["a/1", "a/2"]
    for name, result in pipeline.seen.items():
        same(results[name], result)
    assert step(ages, release_id="a")["health"].equals(results["health"])


def test_a_failure_between_the_results_and_their_folder_is_mended(pipeline, ages, monkeypatch):
    step, rename = pipeline.step(), os.rename

    def fail(*paths):
        monkeypatch.setattr(os, "rename", rename)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(StepError, match=r"paid for and stored, and nothing will be charged again\."):
        step(ages, release_id="a")
    assert not (pipeline.to / "a").exists()
    results = step(None, release_id="a")
    assert pipeline.calls == 1
    assert pipeline.spent == 0.8
    assert all(result.dp.verify() for result in results.values())
    assert len(list((pipeline.to / "a").iterdir())) == 2


def interrupted(*args):
    raise KeyboardInterrupt


def test_a_lost_answer_is_refused_and_not_paid_for_again(pipeline, ages, monkeypatch):
    step = pipeline.step()
    with monkeypatch.context() as patched:
        patched.setattr(Budget, "store_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step(ages, release_id="a")
    assert (pipeline.spent, pipeline.answered) == (0.3, [False])
    for _ in range(2):
        with pytest.raises(AlreadyCharged) as caught:
            step(ages, release_id="a")
        assert re_flat(caught.value).startswith(
            "The release 'a/1' was charged before, and its answer is not stored"
        )
        assert "Nothing was charged again." in str(caught.value)
        assert "another release_id" in caught.value.hint
        assert pipeline.spent == 0.3
    step(ages, release_id="b")
    assert pipeline.spent == 1.1


def re_flat(error: BaseException) -> str:
    return " ".join(str(error).split())


def test_stored_releases_of_a_lost_step_can_be_read(pipeline, ages):
    def body(private):
        first = private.dp.mean("age", epsilon=0.25)
        if pipeline.calls == 0:
            pipeline.calls = 1
            raise RuntimeError
        return {"age": first, "rows": private.dp.count(epsilon=0.25)}

    step = pipeline.step(body)
    with pytest.raises(RuntimeError):
        step(ages, release_id="a")
    pipeline.ledger.budget(NAME).charge(pdprivacy.Pure(0.25), "count", release_id="a/2")
    with pytest.raises(AlreadyCharged, match="its answer is not stored") as caught:
        step(ages, release_id="a")
    assert caught.value.__notes__ == [
        f"The releases before it are in {str(pipeline.to / '.steps/a/releases')!r}."
    ]
    stored = pipeline.to / ".steps" / "a" / "releases" / "1.parquet"
    assert pdprivacy.read_release(stored).dp.verify()


# ------------------------------------------------------------------ tried again otherwise


def _at_work(pipeline, ages, *, finished: bool):
    """A step that is finished, or was cut short after its first release; and what there is of it."""
    step = pipeline.step() if finished else pipeline.step(pipeline.failing(1))
    if finished:
        step(ages, by="age", release_id="a")
    else:
        with pytest.raises(RuntimeError):
            step(ages, by="age", release_id="a")
    return pipeline.spent, pipeline.files


CHANGES = {
    "an argument": (r"another argument 'by' \(\"age\", not \"health\"\)", {}, {"by": "health"}),
    "an argument more": (r"another argument 'more' \({}, not {\"x\": 1}\)", {}, {"x": 1}),
    "the total": (r"another declaration of 'epsilon' \(2, not 5/2\)", {"epsilon": 2.5}, {}),
    "the delta": (r"declaration of 'delta' \(0, not 1/1000000\)", {"delta": 1e-6}, {}),
    "the name": (r"declaration of 'name' \(survey, not other\)", {"name": "other"}, {}),
    "the neighbors": (r"declaration of 'neighbors'", {"neighbors": "replace_one"}, {}),
    "the schema": (r"declaration of 'schema'", {"schema": declared(110)}, {}),
    "the fate of faults": (r"declaration of 'on_invalid'", {"on_invalid": "clip"}, {}),
}


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "cut short"])
def test_another_step_of_the_same_id_is_refused(pipeline, ages, finished):
    spent, files = _at_work(pipeline, ages, finished=finished)
    for message, options, arguments in CHANGES.values():  # each of which leaves all as it was
        with pytest.raises(ChangedStepError, match=message) as caught:
            pipeline.step(**options)(ages, **{"by": "age", **arguments}, release_id="a")
        assert "Nothing was charged." in str(caught.value)
        assert isinstance(caught.value, ValueError)
        assert (pipeline.spent, pipeline.files) == (spent, files)
        assert pipeline.calls == 1
    pipeline.step()(ages, by="age", release_id="a")
    assert pipeline.spent == 0.8


def test_another_function_of_the_same_id_is_refused(pipeline, ages):
    pipeline.step()(ages, release_id="a")

    def weekly(private, by="age", **more):
        raise AssertionError

    with pytest.raises(ChangedStepError, match="another function"):
        pipeline.step(weekly)(ages, release_id="a")


def test_equal_arguments_written_otherwise_repeat_the_step(pipeline, ages):
    def body(private, epsilon, split=None, names=()):
        return private.dp.mean("age", epsilon=epsilon)

    options = {"epsilon": 2, "delta": 0, "neighbors": "add_remove"}
    first = pipeline.step(body, **options)(ages, 0.5, split={"a": 1, "b": 2}, release_id="a")
    repeated = pipeline.step(body, epsilon=Fraction(2), delta=0.0)(
        ages, epsilon=Decimal("0.5"), split={"a": 1, "b": 2.0}, names=(), release_id="a"
    )
    same(first, repeated)
    for changed in ({"names": []}, {"split": {"b": 2, "a": 1}}):  # which may be the order of rows
        with pytest.raises(ChangedStepError):
            pipeline.step(body)(ages, 0.5, **{"split": {"a": 1, "b": 2}, **changed}, release_id="a")


def test_a_table_with_linear_constraints_is_stored_and_repeated(pipeline, ages):
    def body(private, known):
        return private.dp.value_counts("health", epsilon=0.5, constraint=known)

    def known(total):
        return [LinearConstraint({...: 1}, equals=total)]

    first = pipeline.step(body)(ages, known(30), release_id="a")
    assert first.sum() == pytest.approx(30)
    repeated = pipeline.step(body)(ages, known(30.0), release_id="a")
    same(first, repeated)
    same(first.dp.unprojected(), repeated.dp.unprojected())
    assert pipeline.spent == 0.5
    with pytest.raises(ChangedStepError):
        pipeline.step(body)(ages, known(31), release_id="a")


def counts(a: str, b: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return tuple(eval(f"lambda p: {call}.dp.count(epsilon=0.5)") for call in (a, b))


LOOK_ALIKE = {
    "a filter by another column": counts('p.query("`1` != 3")', "p[p[1] != 3]"),
    "a sum of columns, and a column": counts('p[p["a c"] + p["b c"] != 9]', 'p[p["a c` + `b c"] != 9]'),
    "letters that Python reads as others": counts('p.query("ﬁ != 3")', 'p[p["ﬁ"] != 3]'),
    "another column of a new one": counts('p.assign(x="`1` % 4")', "p.assign(x=p[1] % 4)"),
    "the order of a mapping": tuple(
        lambda p, names=names: p.dp.agg(dict.fromkeys(names, "mean"), epsilon=0.5) for names in ("xy", "yx")
    ),
}
"""Pairs of releases that differ in a label, or in the order of a mapping."""


@pytest.mark.parametrize("pair", LOOK_ALIKE)
def test_the_answer_to_a_release_that_looks_alike_is_not_returned(pipeline, pair):
    labels = [1, "1", "a c", "b c", "a c` + `b c", "ﬁ", "fi", "x", "y"]
    schema = Domain(tuple(Column(label, "integer", lower=0, upper=9) for label in labels))
    frame = pd.DataFrame(np.arange(90).reshape(10, 9) % 7 + 1, columns=pd.Index(labels, dtype=object))
    releases_in_turn = list(LOOK_ALIKE[pair])

    def monthly(private):
        releases_in_turn[0](private)
        raise RuntimeError

    step = pipeline.step(monthly, schema=schema)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            step(frame, release_id="a")
    assert pipeline.spent == 0.5
    releases_in_turn.reverse()
    with pytest.raises(ChangedStepError, match="'a/1' was made with another"):
        step(frame, release_id="a")


def test_data_declared_anew_is_not_another_step(pipeline, ages):
    pipeline.step()(ages, release_id="a")
    finer = pipeline.step(schema=declared(100), redeclare=True)
    first = finer(ages, release_id="b")
    same(pipeline.step(schema=declared(100))(ages, release_id="b")["age"], first["age"])


CALLS = {
    "epsilon": lambda p: p.dp.mean("age", epsilon=0.25),
    "statistic": lambda p: p.dp.sum("age", epsilon=0.3),
    "mechanism": lambda p: p.dp.mean("age", epsilon=0.3, delta=1e-6, mechanism="gaussian"),
    "bounding": lambda p: p.dp.mean("age", epsilon=0.3, bounding="clamp"),
    "columns": lambda p: p.dp.mean(["age"], epsilon=0.3),
    "filter": lambda p: p.dp.query("age > 30").dp.mean("age", epsilon=0.3),
    "transform": lambda p: p.dp.clip(upper=100).dp.mean("age", epsilon=0.3),
    "seed": lambda p: p.dp.mean("age", epsilon=0.3, rng=1),
    "groups": lambda p: p.dp.groupby("health").mean("age", epsilon=0.3),
}


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("change", CALLS)
def test_another_call_in_its_place_is_refused(pipeline, ages, change):
    spent, files = _at_work(pipeline, ages, finished=False)

    def monthly(private, by="age", **more):
        return CALLS[change](private)

    with pytest.raises(ChangedStepError, match="The stored release 'a/1' was made with another '") as got:
        pipeline.step(monthly)(ages, by="age", release_id="a")
    assert "Nothing was charged." in str(got.value)
    assert (pipeline.spent, pipeline.files) == (spent, files)


def test_a_changed_argument_is_named_and_not_shown(pipeline, ages):
    """It may be a column of the frame, which is a frame as every other within the body."""
    _at_work(pipeline, ages, finished=False)

    def monthly(private, by="age", **more):
        return {"age": private.dp.mean(["age"], epsilon=0.3)}

    with pytest.raises(ChangedStepError, match="'columns'") as got:
        pipeline.step(monthly)(ages, by="age", release_id="a")
    assert not set(map(str, ages["age"])) & set(re.findall(r"\d+", str(got.value)))

    def named(private, by="age", **more):
        return {str(cell): private for cell in ages["age"]}

    named.__name__ = "monthly"
    with pytest.raises(StepError, match="cannot be a result") as got:
        pipeline.step(named)(ages, by="age", release_id="b")
    assert not set(map(str, ages["age"])) & set(re.findall(r"\d\d+", str(got.value)))


def test_the_same_call_in_other_words_is_the_same(pipeline, ages):
    _at_work(pipeline, ages, finished=False)

    def monthly(private, by="age", **more):
        age = private.dp.mean(columns="age", epsilon=Fraction(3, 10), delta=0, releases=1, split=None)
        return {"age": age, "health": private.dp.crosstab(columns="health", index=by, epsilon=0.5)}

    pipeline.step(monthly)(ages, release_id="a")
    assert pipeline.charged == ["a/1", "a/2"]


@pytest.mark.parametrize("of", [lambda dp: dp, lambda dp: dp.groupby("health")], ids=["all", "groups"])
def test_quantiles_stored_by_an_earlier_version_are_not_charged_again(pipeline, ages, of, monkeypatch):
    """The earlier version had no argument ``bounding``: here None, which is not stored."""
    options: dict[str, Any] = {"bounding": None}

    def monthly(private):
        of(private.dp).quantile("age", [0.25, 0.5, 0.75], epsilon=0.5, **options)
        raise RuntimeError

    with monkeypatch.context() as earlier:
        earlier.setattr("pdprivacy.frames.call_texts.LATER", {})
        with pytest.raises(RuntimeError):
            pipeline.step(monthly)(ages, release_id="a")
    with pytest.raises(ChangedStepError, match="another 'bounding'"):
        pipeline.step(monthly)(ages, release_id="a")
    options.clear()
    with pytest.raises(RuntimeError):
        pipeline.step(monthly)(ages, release_id="a")
    assert pipeline.charged == ["a/1"]


def test_as_long_as_nothing_was_paid_all_may_change(pipeline, ages):
    step = pipeline.step()
    with pytest.raises(pdprivacy.errors.DeclarationError):
        step(ages, by="aeg", release_id="a")  # a slip of the pen; its first release is paid for
    assert pipeline.spent == 0.3
    with pytest.raises(ChangedStepError):
        step(ages, by="age", release_id="a")

    def other(private, column):
        return private.dp.mean(column, epsilon=0.5)

    with pytest.raises(pdprivacy.errors.DeclarationError):
        pipeline.step(other)(ages, "aeg", release_id="b")
    assert pipeline.charged == ["a/1"]
    pipeline.step(other)(ages, "age", release_id="b")
    assert pipeline.charged == ["a/1", "b/1"]


def test_a_refused_release_may_be_asked_for_more_cheaply(pipeline, ages):
    def body(private):
        return private.dp.mean("age", epsilon=5)

    def cheaper(private):
        return private.dp.mean("age", epsilon=1)

    cheaper.__name__ = "body"
    with pytest.raises(BudgetExceeded):
        pipeline.step(body)(ages, release_id="a")
    assert pipeline.spent == 0
    pipeline.step(cheaper)(ages, release_id="a")
    assert pipeline.spent == 1


def test_over_the_budget_nothing_is_lost(pipeline, ages):
    def body(private):
        return {"age": private.dp.mean("age", epsilon=1.5), "rows": private.dp.count(epsilon=1)}

    for _ in range(2):
        with pytest.raises(BudgetExceeded, match=r"asks for epsilon 1, but 0\.5 of 2 is left"):
            pipeline.step(body)(ages, release_id="a")
        assert pipeline.charged == ["a/1"]
    assert pipeline.answered == [True]


# ------------------------------------------------------------------ the ledger


def test_another_ledger_does_not_go_on(pipeline, ages):
    pipeline.step()(ages, release_id="before")
    older = pipeline.folder / "older.db"
    pipeline.ledger.backup(older)
    spent, files = _at_work(pipeline, ages, finished=False)
    elsewhere = pipeline.folder / "other.db"
    with pytest.raises(StepError, match="does not hold the charges of the stored releases of the step 'a'"):
        pipeline.step(ledger=elsewhere)(ages, by="age", release_id="a")
    assert not elsewhere.exists()
    with pdprivacy.Ledger(elsewhere) as other:
        budget = other.open(NAME, pdprivacy.Pure(2))
        for ledger in (other, older):
            with pytest.raises(StepError, match=r"another ledger, or an older copy\. Nothing was charged"):
                pipeline.step(ledger=ledger)(ages, by="age", release_id="a")
        assert budget.spent[0] == 0
    assert len(pdprivacy.Ledger(older).entries(NAME)) == 2
    assert (pipeline.spent, pipeline.files) == (spent, files)


def test_another_ledger_does_not_go_on_after_a_wrong_call(pipeline, ages):
    """A call that is refused leaves the note of what was paid for as it is."""
    _at_work(pipeline, ages, finished=False)
    elsewhere = pipeline.folder / "other.db"
    with pdprivacy.Ledger(elsewhere) as other:
        other.open(NAME, pdprivacy.Pure(2))
        for by in ("aeg", "age"):
            with pytest.raises(StepError, match=r"another ledger, or an older copy\. Nothing was charged"):
                pipeline.step(ledger=other)(ages, by=by, release_id="a")
        assert other.budget(NAME).spent[0] == 0


def test_a_wrong_call_does_not_block_the_right_one(pipeline, ages):
    """Where the folder was lost, a call that releases nothing new leaves no note."""
    step = pipeline.step()
    results = step(ages, by="age", release_id="a")
    shutil.rmtree(pipeline.to)
    with pytest.raises(ChangedStepError, match="another \"argument 'by'\""):
        step(ages, by="aeg", release_id="a")
    with pytest.raises(ParameterError):
        pipeline.step(epsilon=21)(ages, by="age", release_id="a")
    for name, result in step(ages, by="age", release_id="a").items():
        same(result, results[name])
    assert pipeline.charged == ["a/1", "a/2"]


def test_another_step_is_refused_without_the_folder_too(pipeline, ages):
    pipeline.step()(ages, by="age", release_id="a")
    for _, options, arguments in CHANGES.values():
        if "name" in options:
            continue  # which is another budget
        shutil.rmtree(pipeline.to)
        with pytest.raises((ChangedStepError, ParameterError, BudgetError)):
            pipeline.step(**options)(ages, **{"by": "age", **arguments}, release_id="a")
        assert pipeline.charged == ["a/1", "a/2"]


def test_without_a_total_a_new_name_is_refused(pipeline, ages):
    with pytest.raises(ParameterError, match="the ledger holds no budget 'survey' yet"):
        pipeline.step(epsilon=None)(ages, release_id="a")
    assert pipeline.calls == 0


def test_a_finished_step_needs_no_ledger(pipeline, ages):
    results = pipeline.step()(ages, release_id="a")
    same(pipeline.step(ledger=pipeline.folder / "gone.db")(ages, release_id="a")["age"], results["age"])
    assert not (pipeline.folder / "gone.db").exists()


def test_a_lost_release_counts_under_its_old_name(pipeline, ages, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Budget, "store_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pipeline.step()(ages, release_id="a")
    with pytest.raises(ChangedStepError, match="declaration of 'name'"):
        pipeline.step(name="other")(ages, release_id="a")
    assert list(pipeline.ledger.budgets.index) == [NAME]


def test_a_step_goes_on_without_its_folder(pipeline, ages):
    """As on another machine, which has another disk."""
    with pytest.raises(RuntimeError):
        pipeline.step(pipeline.failing(1))(ages, release_id="a")
    elsewhere = pipeline.folder / "other"
    results = pipeline.step(to=elsewhere)(ages, release_id="a")
    assert pipeline.charged == ["a/1", "a/2"]
    same(results["age"], pipeline.seen["age"])
    for name, result in pipeline.step()(ages, release_id="a").items():
        same(result, results[name])
        same(pdprivacy.read_release(elsewhere / "a" / f"{name}.parquet"), result)
    assert pipeline.charged == ["a/1", "a/2"]


def test_two_steps_cannot_share_a_release(pipeline, ages):
    pipeline.step()(ages, release_id="a")
    other = pipeline.step(lambda private: private.dp.count(epsilon=0.1), to=pipeline.folder / "other")
    with pytest.raises(ChangedStepError, match=r"'a/1' was made with .*another 'release'"):
        other(ages, release_id="a")
    pipeline.ledger.budget(NAME).charge(pdprivacy.Pure(0.1), "count", release_id="b/1")
    with pytest.raises(AlreadyCharged, match="the charge was made outside of the step"):
        pipeline.step()(ages, release_id="b")
    assert pipeline.spent == 0.9


# ------------------------------------------------------------------ what a body may ask


REFUSED = sorted({name for name in releases.__all__ if name[0].islower()} - ADMITTED)
ARGUMENTS = {
    "batch": ((), {}),
    "plan_releases": (([("count", {"epsilon": 0.1})],), {}),
    "marginals": ((), {"order": 1, "epsilon": 0.1}),
    "partition": (("health",), {"epsilon": 0.1}),
    "sample": ((), {"frac": 0.5}),
    "suppress_outliers": (("age", 0.1, 0.2), {}),
    "remaining": ((), {}),
    "quality": ((), {}),
    "homogeneity": (("age", "health"), {}),
    "anonymity": (("age", "health"), {}),
    "choose_epsilon": (("age", "health"), {"max_risk": 0.4}),
    "repeated_risk": (([{"by": "age", "sensitive": "health", "epsilon": 1}],), {}),
}


def test_every_method_is_admitted_or_refused():
    names = {name for name in releases.__all__ if name[0].islower()} | {"plan"}
    assert names >= ADMITTED - set(ROW_STEPS)
    assert {"batch", "plan_releases", "partition", "sample", "quality", "dr_ha", "tradeoff"} <= set(REFUSED)
    assert not set(REFUSED) & {"mean", "crosstab", "groupby", "mode", "kmeans", "query"}
    assert len(REFUSED) + len(ADMITTED) == len(names | set(ROW_STEPS))


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", REFUSED)
def test_methods_that_a_step_cannot_keep_are_refused_by_name(pipeline, ages, name):
    args, options = ARGUMENTS.get(name, (("age", "health"), {"epsilon": [1.0]}))

    def body(private):
        return getattr(private.dp, name)(*args, **options)

    with pytest.raises(
        ParameterError, match=rf"'{name}' is not for steps: it .*\. Nothing was charged\.\nHint: "
    ):
        pipeline.step(body)(ages, release_id="a")
    assert pipeline.charged == []
    assert not (pipeline.to / "a").exists()


def test_releases_are_named_by_the_step(pipeline, ages):
    def body(private):
        return private.dp.mean("age", epsilon=0.5, release_id="mine")

    with pytest.raises(ParameterError, match="named by the step"):
        pipeline.step(body)(ages, release_id="a")
    assert pipeline.charged == []


def test_the_budget_pays_for_nothing_else(pipeline, ages):
    def charging(private):
        private.dp.budget.charge(pdprivacy.Pure(0.5), "something", release_id="a/1")

    def protecting(private):
        other = pd.DataFrame({"age": [1, 2]}).dp.protect(
            declared().select_columns(["age"]), budget=private.dp.budget
        )
        return other.dp.mean("age", epsilon=0.5)

    def copying(private):
        copy.copy(private.dp.budget).charge(pdprivacy.Pure(0.5), "something")

    def pickling(private):
        pickle.loads(pickle.dumps(private.dp.budget)).charge(pdprivacy.Pure(0.5), "something")

    for body in (charging, protecting, copying, pickling):
        with pytest.raises(BudgetError):
            pipeline.step(body)(ages, release_id="a")
        assert pipeline.charged == []


def test_a_frame_is_of_no_use_after_its_step(pipeline, ages):
    captured = []

    def body(private):
        captured.extend([private, private.dp.query("age > 30"), private.dp.groupby("health")])
        return private.dp.mean("age", epsilon=0.5)

    pipeline.step(body)(ages, release_id="a")
    for frame in captured[:2]:
        with pytest.raises(StepError, match=r"is over, and its frame with it\. Nothing was charged"):
            frame.dp.mean("age", epsilon=0.1)
    with pytest.raises(StepError, match="is over"):
        captured[2].count(epsilon=0.1)
    assert pipeline.spent == 0.5


def test_a_step_may_use_methods_that_cost_nothing(pipeline, ages):
    answers = {}

    def body(private, epsilon):
        answers["left"], answers["domain"] = private.dp.budget.left, list(private.dp.domain)
        first, second = private.dp.split(epsilon, into=[2, 1])
        answers["plan"] = private.dp.plan.mean("age", epsilon=[0.1, 1], rows=200)
        older = private.dp.query("age >= 30").dp.assign(half="age / 2").dp.select(["half", "health"])
        return {
            "half": older.dp.mean("half", epsilon=first),
            "by health": older.dp.groupby("health")["half"].sum(epsilon=second),
        }

    results = pipeline.step(body)(ages, 0.3, release_id="a")
    assert answers["left"] == (2.0, 0.0)
    assert answers["domain"] == ["age", "health"]
    assert len(answers["plan"]) == 2
    assert pipeline.spent == 0.3
    assert results["half"].attrs["dp"]["filters"] == ["age >= 30"]
    repeated = pipeline.step(body)(ages, 0.3, release_id="a")
    same(repeated["by health"], results["by health"])


def test_seeded_releases_are_marked_and_their_seed_is_not_kept(pipeline, ages):
    seed = 918273645

    def body(private, rng):
        return private.dp.mean("age", epsilon=0.5, rng=rng)

    result = pipeline.step(body)(ages, seed, release_id="a")
    assert result.attrs["dp"]["seeded"] is True
    private = ages.dp.protect(declared(), epsilon=2)
    pd.testing.assert_series_equal(result, private.dp.mean("age", epsilon=0.5, rng=seed), check_exact=True)
    written = [path.read_bytes() for path in pipeline.folder.rglob("*") if path.is_file()]
    assert sum(map(len, written)) > 10_000
    assert not any(str(seed).encode() in data for data in written)
    same(pipeline.step(body)(ages, seed + 1, release_id="a"), result)  # another seed is no other step


# ------------------------------------------------------------------ what a body may return


def _altered(private):
    table = private.dp.crosstab("age", "health", epsilon=0.5)
    table["no"] = _raw()["age"].value_counts().iloc[:3].to_numpy()
    return {"health": table}


def _raw() -> pd.DataFrame:
    """Raw cells, which a body may have from elsewhere."""
    return pd.DataFrame({"age": [*CELLS] * 9, "health": ["no", "yes", "no", "no"] * 9})


def _marked(private):
    """Raw cells under the metadata of a release."""
    raw = _raw()["age"].head(1)
    raw.attrs = dict(private.dp.mean("age", epsilon=0.5).attrs)
    return {"age": raw}


BODIES = {
    "the protected frame": lambda p: {"age": p},
    "a raw column": lambda p: {"age": _raw()["age"]},
    "a column of the protected frame": lambda p: {"age": p["age"]},
    "raw cells": lambda p: _raw(),
    "raw cells with a mark": _marked,
    "an altered release": _altered,
    "a renamed release": lambda p: p.dp.mean("age", epsilon=0.5).rename("other"),
    "other labels": lambda p: p.dp.mean("age", epsilon=0.5).set_axis(["x"]),
    "a reordered release": lambda p: p.dp.crosstab("age", "health", epsilon=0.5).iloc[::-1],
    "other metadata": lambda p: _with(p.dp.mean("age", epsilon=0.5), epsilon=0.1),
    "a release of another frame": lambda p: _elsewhere().dp.mean("age", epsilon=0.5),
    "a release of another frame under this id": lambda p: _with(
        _elsewhere().dp.mean("age", epsilon=0.5), release_id="a/1"
    ),
    "a confidential curve": lambda p: {"risk": _elsewhere().dp.risk_curve("age", "health")},
    "a list": lambda p: [p.dp.mean("age", epsilon=0.5)],
    "releases in releases": lambda p: {"all": {"age": p.dp.mean("age", epsilon=0.5)}},
    "one release twice": lambda p: dict.fromkeys(["age", "mean"], p.dp.mean("age", epsilon=0.5)),
    "names that differ in case": lambda p: {name: p.dp.mean("age", epsilon=0.25) for name in ("age", "AGE")},
    "a number": lambda p: {"age": float(p.dp.mean("age", epsilon=0.5).iloc[0])},
    "something more": lambda p: {"age": p.dp.mean("age", epsilon=0.5), "rows": 36},
    "nothing": lambda p: None,
    "no release": lambda p: {},
}


def _with(released, **facts):
    released.attrs["dp"] = {**released.attrs["dp"], **facts}
    return released


def _elsewhere():
    return _raw().dp.protect(declared(), epsilon=2)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", BODIES)
def test_only_releases_of_the_step_are_results(pipeline, ages, name):
    def body(private):
        return BODIES[name](private)

    step = pipeline.step(body)
    with pytest.raises(StepError) as caught:
        step(ages, release_id="a")
    text = str(caught.value)
    assert "returned " in text
    assert "No result was written" in text
    assert not any(f"{cell}" in text.replace("0.1", "") for cell in CELLS)
    assert not (pipeline.to / "a").exists()
    assert list(pipeline.to.rglob("results")) == []
    spent = pipeline.spent

    def corrected(private):
        return {"age": private.dp.mean("age", epsilon=0.5)}

    corrected.__name__ = "body"
    if name in ("an altered release", "a reordered release", "names that differ in case"):
        return  # whose first release is another one
    results = pipeline.step(corrected)(ages, release_id="a")  # which takes what is stored
    assert pipeline.spent == max(spent, 0.5)
    assert results["age"].dp.verify()


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a\\b", ".hidden", "a:b", "con", "NUL.txt", " a", "a.", "x" * 151, "a\n", 3, None],
)
def test_names_that_are_no_files_are_refused(pipeline, ages, name):
    def body(private):
        return {name: private.dp.mean("age", epsilon=0.5)}

    with pytest.raises(ParameterError, match="'the name of a result'") as caught:
        pipeline.step(body)(ages, release_id="a")
    assert caught.value.hint.startswith('return {"age": private.dp.mean("age", epsilon=0.1)}')
    assert not (pipeline.to / "a").exists()
    if name is None:
        return
    with pytest.raises(ParameterError, match="'release_id'"):
        pipeline.step()(ages, release_id=name)
    assert pipeline.charged == ["a/1"]
    assert sorted(path.name for path in (pipeline.to / ".steps").iterdir()) == ["a"]


# ------------------------------------------------------------------ in


def test_data_that_does_not_meet_its_schema_is_refused(pipeline, ages, texts_of):
    faulty = ages.assign(age=ages["age"].replace(31, 3187))
    with pytest.raises(InvalidDataError) as caught:
        pipeline.step()(faulty, release_id="a")
    assert not any("3187" in text for text in texts_of(caught.value))
    assert pipeline.calls == 0
    assert pipeline.charged == []
    results = pipeline.step()(ages, release_id="a")
    assert results["age"].dp.verify()


def test_keywords_of_protect_are_passed_on(pipeline, ages):
    frame = ages.assign(person=np.arange(len(ages)) // 2, age=ages["age"] * 3)
    step = pipeline.step(on_invalid="clip", unit="person", max_rows=1)
    with pytest.raises(InvalidDataError):
        pipeline.step(unit="person", max_rows=1)(frame, release_id="a")
    results = step(frame, release_id="b")
    assert results["age"].attrs["dp"]["unit"] == "person"
    assert results["age"].attrs["dp"]["lineage"] == ["protect(unit='person', max_rows=1)"]


def test_frames_of_other_engines_are_taken(pipeline, ages):
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    step = pipeline.step(pipeline.failing(1))
    with pytest.raises(RuntimeError):
        step(polars.from_pandas(ages), release_id="a")
    results = step(polars.from_pandas(ages).lazy(), release_id="a")
    assert pipeline.spent == 0.8
    assert all(result.dp.verify() for result in results.values())


def test_no_cell_is_in_what_a_step_notes(pipeline, ages):
    pipeline.step()(ages.assign(town="Kleinkleckersdorf"), release_id="a")
    written = {path: path.read_bytes() for path in pipeline.folder.rglob("*") if path.is_file()}
    assert not any(b"Kleinkleckersdorf" in data for data in written.values())
    notes = [data for path, data in written.items() if path.suffix in (".json", ".db")]
    assert len(notes) == 2
    assert not any(str(ages["age"].mean()).encode() in data for data in notes)


# ------------------------------------------------------------------ files


def body_of_all(private):
    """A release of every kind, the labels of a Series, rows and columns of all kinds."""
    dp = private.dp
    banded = dp.cut("income", [0, 500, 1000])
    return {
        "rows": dp.count(epsilon=1),
        "agg": dp.agg({"age": ["mean", "std"], "family": "count"}, epsilon=1),
        "nunique": dp.nunique(["region", "health"], epsilon=1),
        "ols": dp.ols("family", ["age"], epsilon=1),
        "pivot": dp.pivot_table("age", "region", "health", ["mean", "count"], epsilon=1),
        "counts": dp.count(["income", "age"], epsilon=1),
        "sums": dp.sum(["age", "income"], epsilon=1),
        "means": dp.mean(["age", "family"], epsilon=1, releases=3),
        "gaussian": dp.mean("age", epsilon=0.5, delta=1e-6, mechanism="gaussian"),
        "bounded": dp.mean(["age", "family"], epsilon=0.01, bounding="truncated"),
        "vars": dp.var("age", epsilon=1),
        "stds": dp.std(["age", "family"], epsilon=1, bounding="clamp", bounds={"age": (1, 20)}),
        "describe": dp.describe(["age", "family"], epsilon=1),
        "cov": dp.cov(["age", "family"], epsilon=1),
        "corr": dp.corr(["age", "family"], epsilon=0.001),
        "proportion": dp.proportion("member", True, epsilon=1),
        "values": dp.value_counts("region", epsilon=1),
        "values of two": dp.value_counts(["member", "family"], epsilon=1),
        "shares": dp.value_counts("region", epsilon=1, normalize=True, constraint="simplex"),
        "histogram": dp.histogram("income", np.array([0.0, 250, 1000]), epsilon=1),
        "null rows": banded.dp.value_counts("income", epsilon=1),
        "null columns": banded.dp.crosstab("region", "income", epsilon=1),
        "null in columns": banded.dp.crosstab("region", ["income", "member"], epsilon=1, margins=True),
        "table": dp.crosstab(["region", "age"], "health", epsilon=1),
        "tables": dp.crosstab("region", "member", epsilon=1, releases=2),
        "margins": dp.crosstab("member", "health", epsilon=1, margins=True, normalize="index"),
        "pooled var": dp.pooled_var("family", by="region", epsilon=1),
        "pooled cov": dp.pooled_cov(["family", "age"], by="region", epsilon=1),
        "groups": dp.groupby("region").count(epsilon=1),
        "group means": dp.groupby(["region", "member"])[["family", "income"]].mean(epsilon=1),
        "mode": dp.mode("region", epsilon=1),
        "modes": dp.mode(["region", "family", "member"], epsilon=1),
        "top": dp.top_k("region", 2, epsilon=1),
        "tops": dp.top_k(["region", "family"], 2, epsilon=1, releases=2),
        "quantiles": dp.quantile("age", [0.25, 0.5], epsilon=1),
        "quantile": dp.quantile("age", 0.25, epsilon=1),
        "median": dp.median("age", epsilon=1),
        "min": dp.min("age", epsilon=1),
        "max": dp.max(["age", "family"], epsilon=1),
        "kmeans": dp.kmeans(["age", "family"], 2, epsilon=1, iterations=2),
        "kmedian": dp.kmedian("family", 2, epsilon=1, steps=3),
        "assigned": dp.assign(double="2 * family")
        .dp.query("region in ['north', 'south']")
        .dp.mean(epsilon=1),
        "recoded": dp.recode("region", {"north": "up", "south": None}).dp.value_counts("region", epsilon=1),
    }


@pytest.mark.full
def test_every_kind_of_release_comes_back_as_it_was(pipeline, survey, schema, monkeypatch):
    originals = []
    keep = pdprivacy.pipeline.keeper.StepKeeper.keep

    def watched(self, release, request, make):
        def made(release_id):
            released, number, risk = make(release_id)
            originals.append(released)
            return released.copy(), number, risk

        return keep(self, release, request, made)

    monkeypatch.setattr(pdprivacy.pipeline.keeper.StepKeeper, "keep", watched)
    step = pipeline.step(body_of_all, schema=schema, epsilon=1000, delta=1e-3)
    results = step(survey, release_id="all")
    assert len(originals) == len(results) == len(pipeline.charged)
    verbs = {str(name) for name in pdprivacy.releases.batches.VERBS}
    assert {result.attrs["dp"]["statistic"] for result in originals} == verbs - {
        "find_bounds",
        "find_labels",  # in a test of their own
        "pivot_table",  # an "agg" by group
    }
    repeated = step(survey, release_id="all")
    for (name, result), original in zip(results.items(), originals, strict=True):
        same(result, original)
        same(repeated[name], original)
        assert result.dp.verify()
        assert [*result.axes[0].names] == [*original.axes[0].names]
        stored = pipeline.to / "all" / f"{name}.parquet"
        same(pdprivacy.read_release(stored), original)
        plain = pd.read_parquet(stored)
        assert plain.attrs["dp"] == original.attrs["dp"]
        if isinstance(original, pd.DataFrame):
            assert plain.dp.verify(), name  # its labels are those, or their texts
        np.testing.assert_array_equal(
            plain.to_numpy().astype(str).ravel(), original.to_numpy().astype(str).ravel()
        )
    assert len(originals) == len(results)  # and none was made anew


def test_bounds_and_labels_that_were_found_come_back_as_they_were(pipeline):
    domain = pdprivacy.Domain(
        (pdprivacy.Column("x", "float"), pdprivacy.Column("town", "category", private_labels=True))
    )
    frame = pd.DataFrame({"x": np.linspace(1, 9, 300), "town": ["a", "b", "c"] * 100})

    def body(private):
        return {
            "bounds": private.dp.find_bounds("x", epsilon=1),
            "labels": private.dp.find_labels("town", epsilon=1, delta=1e-6),
            "counts": private.dp.find_labels("town", epsilon=1, delta=1e-6, counts=True),
        }

    step = pipeline.step(body, schema=domain, epsilon=3, delta=1e-3)
    first, again = step(frame, release_id="found"), step(frame, release_id="found")
    for name, released in first.items():
        same(again[name], released)
        same(pdprivacy.read_release(pipeline.to / "found" / f"{name}.parquet"), released)


def test_labels_that_no_file_can_keep_are_refused_before_the_charge(pipeline):
    class Odd:
        pass

    domain = Domain((Column("a", "category", categories=(Odd(), "b")), Column("c", "boolean")))
    frame = pd.DataFrame({"a": ["b"], "c": [True]})
    with pytest.raises(ParameterError, match="label of type Odd cannot be kept in a file"):
        pipeline.step(lambda p: p.dp.count(epsilon=1), schema=domain)(frame, release_id="a")
    assert pipeline.charged == []
    without = pipeline.step(lambda p: p.dp.select(["c"]).dp.count(epsilon=1), schema=domain)
    assert without(frame, release_id="b").dp.verify()


def _files(pipeline) -> dict[str, Path]:
    return {path.name: path for path in pipeline.to.rglob("*") if path.is_file()}


DAMAGES = {
    "cut off": lambda data: data[: len(data) // 2],
    "nothing": lambda data: b"",
    "garbage": lambda data: b"PAR1" + os.urandom(200) + b"PAR1",
    "a bit": lambda data: (
        data[: len(data) // 3] + bytes([data[len(data) // 3] ^ 255]) + data[len(data) // 3 + 1 :]
    ),
    "other text": lambda data: b'{"format": 1}',
}
NO_MANIFESTS = {
    "a number for a text": lambda data: re.sub(rb'("epsilon": )"[^"]*"', rb"\g<1>2", data, count=1),
    "a head of another kind": lambda data: re.sub(rb'("head": )"[^"]*"', rb"\g<1>5", data),
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["answer", "step.json"])
def test_a_damaged_file_on_the_way_is_told(pipeline, ages, name):
    spent, _ = _at_work(pipeline, ages, finished=False)
    path = pipeline.answers[0] if name == "answer" else _files(pipeline)[name]
    whole = path.read_bytes()
    for kind, damage in {**DAMAGES, **(NO_MANIFESTS if name == "step.json" else {})}.items():
        path.write_bytes(damage(whole))
        with pytest.raises((StepError, LedgerError), match=r"damaged|is missing or was changed"):
            pipeline.step()(ages, by="age", release_id="a")
        assert pipeline.spent == spent, kind
    path.write_bytes(whole)
    pipeline.step()(ages, by="age", release_id="a")
    assert pipeline.spent == 0.8


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("damage", [*DAMAGES, "another release", "gone"])
def test_a_damaged_result_is_told(pipeline, ages, damage):
    step = pipeline.step()
    step(ages, release_id="a")
    path = _files(pipeline)["age.parquet"]
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "another release":
        path.write_bytes(_files(pipeline)["health.parquet"].read_bytes())
    else:
        path.write_bytes(DAMAGES[damage](whole))
    with pytest.raises(
        StepError, match=r"A stored release of the step 'a' cannot be used.*Nothing was charged"
    ):
        step(ages, release_id="a")
    assert (pipeline.spent, pipeline.calls) == (0.8, 1)
    path.write_bytes(whole)
    assert step(ages, release_id="a")["age"].dp.verify()


def test_results_that_were_moved_away_are_written_again(pipeline, ages):
    step = pipeline.step()
    results = step(ages, release_id="a")
    whole = pipeline.files
    (pipeline.to / "a").rename(pipeline.folder / "published")
    for name, result in step(ages, release_id="a").items():
        same(result, results[name])
    assert pipeline.files == whole
    assert pipeline.charged == ["a/1", "a/2"]


def _earlier(tmp_path, *, noted: bool) -> tuple[Path, dict[str, bytes]]:
    """The folder of a step that an earlier version began, and the files of its results.

    Its run was cut short before the results were noted, or before their folder was renamed.
    """
    folder = Path(shutil.copytree(kept_ledgers.FOLDER / "first", tmp_path / "first"))
    results, steps = folder / "released" / "2026-05", folder / "released" / ".steps" / "2026-05"
    whole = {path.stem: path.read_bytes() for path in results.iterdir()}
    if noted:
        results.rename(steps / "results")
    else:
        manifest = json.loads((steps / "step.json").read_text())
        for name, facts in manifest["results"].items():
            (results / f"{name}.parquet").rename(steps / "releases" / f"{facts['release']}.parquet")
        results.rmdir()
        del manifest["single"]
        (steps / "step.json").write_text(json.dumps({**manifest, "results": None}))
    return folder, whole


@pytest.mark.parametrize("noted", [True, False])
def test_releases_that_an_earlier_version_stored_are_taken_and_not_charged(tmp_path, noted):
    folder, whole = _earlier(tmp_path, noted=noted)
    with pdprivacy.Ledger(folder / kept_ledgers.LEDGER) as ledger:
        before = ledger.entries("step")
        stored = kept_ledgers.step_of(folder)(kept_ledgers.survey(), release_id="2026-05")
        pd.testing.assert_frame_equal(ledger.entries("step"), before)
    assert stored.keys() == whole.keys()
    for name, release in stored.items():
        same(release, from_bytes(whole[name]))
    results = folder / "released" / "2026-05"
    assert {path.stem: path.read_bytes() for path in results.iterdir()} == whole


def test_files_of_an_earlier_version_are_checked(tmp_path):
    folder, _ = _earlier(tmp_path, noted=False)
    releases = folder / "released" / ".steps" / "2026-05" / "releases"
    step = kept_ledgers.step_of(folder)

    def refused(error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            step(kept_ledgers.survey(), release_id="2026-05")

    for name, words in {"1.parquet": "cannot be used", "1.json": "damaged"}.items():
        whole = (releases / name).read_bytes()
        (releases / name).write_bytes(whole[: len(whole) // 2])
        refused(StepError, words)
        (releases / name).write_bytes(whole)
    note = json.loads((releases / "1.json").read_text())
    (releases / "1.json").write_text(json.dumps({**note, "call": {**note["call"], "epsilon": "9"}}))
    refused(ChangedStepError, "'2026-05/1' was made with another 'epsilon'")
    (releases / "1.json").write_text(json.dumps(note))
    shutil.copytree(folder / "released", tmp_path / "released")
    step = kept_ledgers.step_of(tmp_path)
    refused(StepError, "another ledger, or an older copy")


def test_files_that_no_step_made_are_left_alone(pipeline, ages):
    (pipeline.to / "a").mkdir(parents=True)
    (pipeline.to / "a" / "notes.txt").write_text("mine")
    with pytest.raises(StepError, match="exists already"):
        pipeline.step()(ages, release_id="a")
    assert pipeline.charged == []
    assert (pipeline.to / "a" / "notes.txt").read_text() == "mine"


def test_a_lost_manifest_is_made_again(pipeline, ages):
    _at_work(pipeline, ages, finished=False)
    _files(pipeline)["step.json"].unlink()
    pipeline.step()(ages, by="age", release_id="a")
    assert pipeline.charged == ["a/1", "a/2"]
    _files(pipeline)["step.json"].unlink()
    with pytest.raises(StepError, match="exists already, and the manifest of the step is missing"):
        pipeline.step()(ages, by="age", release_id="a")


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("finished", [True, False], ids=["finished", "cut short"])
def test_files_of_another_version_are_told(pipeline, ages, finished):
    spent, _ = _at_work(pipeline, ages, finished=finished)
    path = _files(pipeline)["step.json"]
    whole = path.read_text()
    path.write_text(whole.replace('"format": 1', '"format": 2'))
    with pytest.raises(
        StepError, match=r"another version of pdprivacy.*\(format 2, here 1\). Nothing was charged"
    ):
        pipeline.step()(ages, by="age", release_id="a")
    path.write_text(whole)
    if not finished:
        return
    stored = _files(pipeline)["age.parquet"]
    frame = pd.read_parquet(stored)
    frame.attrs["dp_shape"]["format"] = 2
    frame.to_parquet(stored)
    with pytest.raises(
        StepError, match=r"another version of pdprivacy \(format 2, here 1\)\. Nothing was charged"
    ):
        pipeline.step()(ages, by="age", release_id="a")
    assert pipeline.spent == spent


def test_a_folder_that_cannot_be_written_costs_nothing(pipeline, ages):
    pipeline.to.write_text("a file")
    with pytest.raises(
        StepError, match=r"cannot be written \(.*\)\. Nothing was charged\.\nHint: "
    ) as caught:
        pipeline.step()(ages, release_id="a")
    assert str(pipeline.to) in str(caught.value)
    assert pipeline.charged == []
    assert pipeline.calls == 0


def full(monkeypatch, module, name, when=lambda *args: True):
    """A disk that is full, for calls of this function."""
    real = getattr(module, name)

    def call(*args, **options):
        if when(*args):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **options)

    monkeypatch.setattr(module, name, call)


def test_a_full_disk_is_found_before_the_charge(pipeline, ages, monkeypatch):
    step = pipeline.step()
    with monkeypatch.context() as patched:
        full(patched, pdprivacy.pipeline.folder, "write")
        with pytest.raises(StepError, match=r"No space left on device\)\. Nothing is charged that is not"):
            step(ages, release_id="a")
    assert pipeline.charged == []
    usage = shutil.disk_usage(pipeline.folder)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda path: usage._replace(free=ROOM - 1))
        with pytest.raises(
            StepError, match=r"has less than 4 MiB left.*Nothing was charged for this release"
        ) as caught:
            step(ages, release_id="a")
    assert str(pipeline.ledger.address) in str(caught.value)
    assert pipeline.charged == []
    step(ages, release_id="a")
    assert pipeline.spent == 0.8


def refuse(*_):
    raise LedgerError("The server is gone. Nothing was entered.")


def test_releases_that_a_ledger_cannot_store_are_stored_in_the_folder(pipeline, ages, monkeypatch):
    """As where the answers of a server or of another user may not be written, or are too large."""
    step = pipeline.step(pipeline.failing(1))
    with monkeypatch.context() as patched:
        patched.setattr(StoredBook, "store", refuse)
        with pytest.raises(RuntimeError, match="the network went away"):
            step(ages, release_id="a")
        assert pipeline.answered == [True]
        results = step(ages, release_id="a")
    assert (pipeline.charged, pipeline.answered) == (["a/1", "a/2"], [True, True])
    same(results["age"], pipeline.seen["age"])
    assert not (pipeline.folder / "budget.db-answers").exists()
    monkeypatch.setattr(pdprivacy.ledger.budget, "MOST_ANSWER", 1000)
    large = pipeline.step()(ages, release_id="b")
    shutil.rmtree(pipeline.to / "b")
    for name, result in pipeline.step()(ages, release_id="b").items():
        same(result, large[name])
    assert pipeline.spent == 1.6


def test_a_release_outlives_an_outage_of_the_ledger(pipeline, ages, monkeypatch):
    step = pipeline.step()
    with monkeypatch.context() as patched:
        patched.setattr(StoredBook, "store", refuse)
        patched.setattr(StoredBook, "answer", refuse)
        with pytest.raises(
            StepError, match=r"'a/1' is charged, and stored in the folder of the step.*: The server is gone"
        ) as caught:
            step(ages, release_id="a")
    assert "same release_id" in caught.value.hint
    assert (pipeline.spent, pipeline.answered) == (0.3, [False])
    step(ages, release_id="a")
    assert (pipeline.charged, pipeline.answered) == (["a/1", "a/2"], [True, True])


def test_releases_that_cannot_be_stored_are_reported_as_lost(pipeline, ages, monkeypatch):
    step = pipeline.step(pipeline.failing(1))
    with pytest.raises(RuntimeError):
        step(ages, release_id="a")
    with monkeypatch.context() as patched:
        patched.setattr(StoredBook, "store", refuse)
        full(
            patched,
            pdprivacy.pipeline.folder,
            "write",
            lambda files: "2.parquet" in [path.name for path in files],
        )
        with pytest.raises(
            StepError, match=r"No space left on device\)\. The release was charged, and is lost"
        ) as caught:
            step(ages, release_id="a")
    assert caught.value.hint.endswith("call again with another release_id, which is charged anew.")
    assert (pipeline.spent, pipeline.answered) == (0.8, [True, False])
    with pytest.raises(
        AlreadyCharged, match=r"'a/2' was charged before, and its answer is not stored"
    ) as caught:
        step(ages, release_id="a")
    (note,) = caught.value.__notes__
    assert note.startswith("The releases before it are in")
    same(pdprivacy.read_release(_files(pipeline)["1.parquet"]), pipeline.seen["age"])
    assert pipeline.spent == 0.8


@pytest.mark.full
def test_a_frame_of_a_step_has_dp_in_a_new_process(tmp_path):
    """Where nothing else of the package was used; no thread is started, which could abort at the end."""
    script = """
import pandas as pd, pathlib, pyarrow.parquet, scipy.special, sys, pdprivacy
from pdprivacy.declaration.schema import read_schema
from pdprivacy.declaration.domain import Column, Domain

@pdprivacy.release_step(
    schema=Domain((Column("age", "integer", lower=0, upper=120),)), epsilon=1,
    ledger=sys.argv[1] + "/budget.db", name="survey", to=sys.argv[1],
)
def monthly(private):
    return private.dp.mean("age", epsilon=0.5)

def threads():
    names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    return sorted(name for name in names if name != "jemalloc_bg_thd")

before = threads()
monthly(pd.DataFrame({"age": [31, 54]}), release_id="a")
assert threads() == before
"""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path)],
        capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert (tmp_path / "a" / "result.parquet").is_file()


def test_a_file_that_is_no_release_is_told(tmp_path, private):
    path = tmp_path / "a.parquet"
    with pytest.raises(MetadataError):
        pdprivacy.read_release(path)
    path.write_bytes(b"no Parquet")
    with pytest.raises(MetadataError, match=r"a\.parquet' is damaged, or no Parquet"):
        pdprivacy.read_release(path)
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(MetadataError, match="no release metadata"):
        pdprivacy.read_release(path)
    table = private.dp.crosstab("region", "health", epsilon=1)
    table.to_parquet(path)
    same(pdprivacy.read_release(path), table)
    changed = table + 1
    changed.attrs = table.attrs
    changed.to_parquet(path)
    with pytest.raises(MetadataError, match="does not hold the numbers and labels that were released"):
        pdprivacy.read_release(str(path))
    data, _ = to_bytes(private.dp.mean("age", epsilon=1))
    frame = pd.read_parquet(io.BytesIO(data))
    frame.attrs["dp_shape"]["rows"] = {"names": [None]}
    frame.to_parquet(path)
    with pytest.raises(MetadataError, match="does not hold the metadata that were saved"):
        pdprivacy.read_release(path)
    frame.attrs["dp_shape"]["digest"] = _digest(frame.attrs["dp"], frame.attrs["dp_shape"])
    frame.to_parquet(path)
    with pytest.raises(MetadataError, match=r"its labels cannot be read \(KeyError\)"):
        pdprivacy.read_release(path)


def test_without_arrow_nothing_begins(pipeline, ages, monkeypatch):
    monkeypatch.setattr(pdprivacy.pipeline.storage, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "pdprivacy\[parquet\]"'):
        pipeline.step()(ages, release_id="a")
    assert not pipeline.to.exists()
    with pytest.raises(MissingExtraError):
        pdprivacy.read_release("a.parquet")


NULLABLE = Domain(
    (
        Column("pay", "float", lower=0, upper=9),
        Column("ill", "boolean"),
        Column("rooms", "integer", nullable=True, categories=(1, 2, 3)),
        Column("member", "boolean", nullable=True),
        Column("grade", "category", nullable=True, categories=("a", "b")),
    )
)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("columns", ["rooms", "member", "grade", ["member", "rooms"]], ids=str)
def test_tables_with_null_columns_are_stored_and_read(pipeline, columns, count):
    frame = pd.DataFrame(
        {
            "pay": [1.0, 2.0] * 6,
            "ill": [True, False] * 6,
            "rooms": pd.array([1, 2, None] * 4, dtype="Int64"),
            "member": pd.array([True, None] * 6, dtype="boolean"),
            "grade": ["a", None, "b"] * 4,
        }
    )
    words = {"epsilon": 1, "releases": count}

    def body(private):
        return {
            "one": private.dp.pivot_table("pay", "ill", columns, **words),
            "listed": private.dp.pivot_table(["pay"], "ill", columns, **words),
            "counts": private.dp.crosstab("ill", columns, **words),
        }

    results = pipeline.step(body, schema=NULLABLE, epsilon=3)(frame, release_id="a")
    files = {path.stem: path for path in pipeline.to.rglob("*.parquet")}
    assert set(results) == set(files)
    for name, released in results.items():
        back = pdprivacy.read_release(files[name])
        assert back.columns.equals(released.columns)
        assert any(
            pd.isna(back.columns.get_level_values(level)).any() for level in range(back.columns.nlevels)
        )
        for table in (back, released):
            released.dp.schema().validate(table)


# ------------------------------------------------------------------ the decorator


def test_the_function_keeps_its_name_and_arguments(pipeline):
    def body(private, by: str, *, epsilon: float = 0.5, **more: int):
        """Counts."""

    step = pipeline.step(body)
    assert (step.__name__, step.__doc__) == ("body", "Counts.")
    signature = inspect.signature(step)
    assert list(signature.parameters) == ["private", "by", "epsilon", "release_id", "more"]
    assert signature.parameters["release_id"].kind is inspect.Parameter.KEYWORD_ONLY


def test_a_call_without_an_id_is_refused(pipeline, ages):
    with pytest.raises(ArgumentError, match="'release_id' is missing"):
        pipeline.step()(ages)
    with pytest.raises(TypeError):
        pipeline.step()(release_id="a")
    with pytest.raises(TypeError):
        pipeline.step(lambda private: None)(ages, by="age", release_id="a")
    assert not pipeline.to.exists()


async def _later(private):
    return None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget": 1}, ArgumentError, "unexpected keyword argument 'budget'"),
        ({"epsilom": 1}, ArgumentError, "unexpected keyword argument 'epsilom'"),
        ({"ledger": None}, ParameterError, "'ledger' must be a path, a URL or a Ledger"),
        ({"ledger": 3}, ParameterError, "'ledger' must be"),
        ({"name": ""}, ParameterError, "'name' must be 1 to 200"),
        ({"name": None}, ParameterError, "'name' must be a string"),
        ({"to": ""}, ParameterError, "'to' must be the path of a folder"),
        ({"to": 3}, ParameterError, "'to' must be the path"),
        ({"body": 3}, ParameterError, "made of a plain function"),
        ({"body": _later}, ParameterError, "made of a plain function"),
        ({"body": lambda: None}, ParameterError, "takes the protected frame first"),
        ({"body": lambda *frames: None}, ParameterError, "takes the protected frame first"),
        ({"body": lambda private, release_id: None}, ParameterError, "no 'release_id'"),
    ],
)
def test_invalid_steps_are_refused_where_they_are_defined(pipeline, options, error, message):
    with pytest.raises(error, match=message):
        pipeline.step(**options)


@pytest.mark.parametrize(
    "argument",
    [pd.DataFrame({"a": [1]}), pd.Series([1]), np.array([1]), object(), len, [object()], {"a": {1: len}}],
)
def test_arguments_that_cannot_be_told_apart_are_refused(pipeline, ages, argument):
    with pytest.raises(
        ParameterError, match="'more' cannot be compared with its value in a repeated call of the step"
    ):
        pipeline.step()(ages, more=argument, release_id="a")
    assert not pipeline.to.exists()


def test_confidential_numbers_are_not_written_down(pipeline, ages):
    private = ages.dp.protect(declared(), epsilon=2)
    chosen = private.dp.choose_epsilon("age", "health", max_risk=0.9)
    with pytest.raises(ParameterError, match="made of confidential counts"):
        pipeline.step()(ages, epsilon=chosen, release_id="a")
    assert not pipeline.to.exists()


# ------------------------------------------------------------------ one at a time


def test_a_second_run_is_told_of_the_first(pipeline, ages):
    inside, leave = threading.Event(), threading.Event()

    def monthly(private):
        inside.set()
        assert leave.wait(30)
        return private.dp.mean("age", epsilon=0.5)

    step = pipeline.step(monthly)
    first = threading.Thread(target=step, args=(ages,), kwargs={"release_id": "a"})
    first.start()
    assert inside.wait(30)
    try:
        with pytest.raises(
            StepError, match=r"Another run of the step 'a' is under way\. Nothing was charged"
        ):
            step(ages, release_id="a")
    finally:
        leave.set()
        first.join()
    assert step(ages, release_id="a").dp.verify()
    assert pipeline.spent == 0.5


def test_a_finished_step_is_read_by_many_at_once(pipeline, ages):
    step = pipeline.step()
    results = step(ages, release_id="a")
    with pdprivacy.pipeline.folder.Folder(pipeline.to, "a").locked():
        same(step(ages, release_id="a")["age"], results["age"])
        with pytest.raises(ChangedStepError):
            step(ages, by="health", release_id="a")


def test_a_large_table_is_stored_in_time_that_grows_with_it(private):
    """Errors of each cell make ``attrs`` large, and pandas copies them with every column."""
    wide = Domain(tuple(Column(name, "integer", lower=0, upper=149) for name in "ab"))
    table = pd.DataFrame({"a": [1], "b": [2]}).dp.protect(wide, epsilon=1)
    released = table.dp.crosstab("a", "b", epsilon=1, normalize=True)
    assert len(released.attrs["dp"]["error"]["standard_error"]) == 150
    copies = []

    class Counted(dict):
        def __deepcopy__(self, memo):
            copies.append(1)
            return dict(self)

    released.attrs["dp"] = Counted(released.attrs["dp"])
    _, back = to_bytes(released)
    assert back.equals(released)
    assert len(copies) <= 2


def test_a_step_within_itself_does_not_wait_for_itself(pipeline, ages):
    steps = []

    def monthly(private):
        return steps[0](ages, release_id="a")

    steps.append(pipeline.step(monthly))
    with pytest.raises(StepError, match="under way"):
        steps[0](ages, release_id="a")
    assert pipeline.spent == 0


PROCESS = """
import gc, json, os, random, signal, sys, time, warnings
warnings.simplefilter("ignore")
import sqlite3  # and what else a child would import for itself; nothing here starts a thread
import pandas as pd, pandas.core.arrays.arrow.extension_types, pyarrow.dataset, pyarrow.parquet
import pdprivacy, pdprivacy.ledger.sqlite
from pdprivacy.errors import AlreadyCharged, StepError

schema = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120, bins=(0, 30, 60, 120)),))
ages = pd.DataFrame({"age": [31, 54, 27, 39] * 9})
made = ages.dp.protect(schema, epsilon=1).dp.value_counts("age", epsilon=1)
made.dp.schema().validate(made)
gc.collect()
gc.freeze()  # no child copies the memory of all that is imported to look for garbage in it


def attempt(folder, release_id, before=lambda: None):
    # a child that runs the step; it ends with 0: done, 3: lost, 4: another run is under way
    @pdprivacy.release_step(
        schema=schema, epsilon=1000, ledger=folder + "/budget.db", name="survey", to=folder + "/released"
    )
    def monthly(private):
        return {
            "age": private.dp.mean("age", epsilon=0.25),
            "ages": private.dp.value_counts("age", epsilon=0.75),
        }

    child = os.fork()
    if child:
        return child
    code = 1
    try:
        before()
        monthly(ages, release_id=release_id)
        code = 0
    except AlreadyCharged:
        code = 3
    except StepError as error:
        code = 4 if "under way" in str(error) else 1
    finally:
        os._exit(code)


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(folder):
    # at a random moment; most steps more than once
    rng, story, number = random.Random(1), [], 0
    for release_id in ("first", "second"):
        start = time.monotonic()
        story.append([release_id, ended(attempt(folder, release_id))])
        span = time.monotonic() - start
    for kill in range(16):
        release_id = f"run {number}"
        child = attempt(folder, release_id)
        time.sleep(rng.uniform(0, span))
        os.kill(child, signal.SIGKILL)
        code = ended(child)
        story.append([release_id, code])
        if code != -signal.SIGKILL or kill % 2:
            story.append([release_id, ended(attempt(folder, release_id))])
            number += 1
    return story


def stopping(place):
    # just before the change of a file of this number, the process is gone
    count = 0

    def counted(real):
        def call(*args, **options):
            nonlocal count
            count += 1
            if count == place:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)
        return call

    def patch():
        for name in ("open", "replace", "rename", "fsync", "mkdir", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
    return patch


def stopped(folder):
    story, place = [], 1
    while True:
        release_id = f"at {place}"
        code = ended(attempt(folder, release_id, stopping(place)))
        story.append([release_id, code])
        if code == 0:
            return story
        story.append([release_id, ended(attempt(folder, release_id))])
        place += 4


def together(folder):
    story = []
    for number in range(4):
        release_id = f"run {number}"
        children = [attempt(folder, release_id) for _ in range(2)]
        story += [[release_id, ended(child)] for child in children]
        story.append([release_id, ended(attempt(folder, release_id))])
    return story


stories = {}
for one in (killed, stopped, together):
    folder = os.path.join(sys.argv[1], one.__name__)
    os.mkdir(folder)
    stories[one.__name__] = one(folder)
print(json.dumps(stories))
"""


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    """Attempts at steps by processes of their own: each with how it ended, by release id, in order."""
    if not hasattr(os, "fork"):
        pytest.skip("processes are forked")
    folder = tmp_path_factory.mktemp("stories")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROCESS, str(folder)],
        capture_output=True, encoding="utf-8", timeout=600, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    recorded = json.loads(process.stdout.splitlines()[-1])
    return {name: (folder / name, [tuple(event) for event in story]) for name, story in recorded.items()}


def check_story(folder: Path, story: list[tuple[str, int]]) -> dict[str, int]:
    """Check the facts after the attempts: no release is paid for twice, and stored releases verify."""
    ledger = pdprivacy.Ledger(folder / "budget.db")
    entries = ledger.entries(NAME)
    assert entries["release_id"].is_unique
    spent = entries["epsilon"].groupby(entries["release_id"].str.rpartition("/")[0]).sum()
    assert (spent <= 1).all()
    stored = {path.parent.name: [] for path in folder.rglob("*.parquet")}
    for path in (folder / "released").rglob("*.parquet"):
        released = pdprivacy.read_release(path)  # which verifies it
        stored[path.parent.name].append(released.attrs["dp"]["release_id"])
    stored_ids = [identifier for numbers in stored.values() for identifier in numbers]
    assert len(set(stored_ids)) == len(stored_ids)
    records = ledger.chain.rows(ledger.chain.head())
    answers = {str(row.release).partition("\n")[0] for row in records if row.kind == "answer"}
    assert set(entries["release_id"][entries["answered"]]) == answers
    assert set(stored_ids) <= answers
    last = dict(story)
    for release_id, code in last.items():
        if code == 0:
            assert spent[release_id] == 1
            assert sorted(stored[release_id]) == [f"{release_id}/{number}" for number in (1, 2)]
        if code == 3:  # lost, and told: one release, charged and neither stored nor answered
            lost = [
                identifier for identifier in entries["release_id"] if identifier.startswith(f"{release_id}/")
            ]
            assert len(set(lost) - answers) == 1
    ledger.audit()
    ledger.close()
    return last


@pytest.mark.full
def test_a_killed_step_pays_at_most_once(stories):
    folder, story = stories["killed"]
    last = check_story(folder, story)
    assert sum(code == -9 for _, code in story) >= 3
    assert set(last.values()) <= {0, 3, -9}
    assert 0 in last.values()


@pytest.mark.full
def test_a_step_that_is_stopped_at_any_point_goes_on(stories):
    """A release is lost only between its charge and its answer, and the next try says so."""
    folder, story = stories["stopped"]
    last = check_story(folder, story)
    assert len(last) >= 10
    assert set(last.values()) <= {0, 3}
    assert list(last.values()).count(0) > list(last.values()).count(3)


@pytest.mark.full
def test_two_processes_do_not_both_pay(stories):
    folder, story = stories["together"]
    last = check_story(folder, story)
    assert set(last.values()) == {0}
    assert {code for _, code in story} <= {0, 4}
