"""Answers given again at no cost, of equal calls, whatever the cells are; the warning of `second_budgets`."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.gate import execute as gate
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import BudgetError, DeclarationWarning, OmissionWarning, ParameterError
from pdprivacy.frames import second_budgets
from pdprivacy.text.marks import KEY
from tests.support.engine_frames import LAZY, ORDERED, each_engine, frame_of

DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=120, bins=(0, 30, 60, 120)),
        Column("pay", "float", lower=0.0, upper=1e5, nullable=True),
        Column("weight", "float", lower=0.5, upper=3.0),
        Column("area", "category", categories=("a", "b", "c")),
        Column("day", "integer", lower=0, upper=366 * 86400, timeline=Timeline(18262 * 86400, "s")),
    )
)
FRAME = pd.DataFrame(
    {
        "age": [31, 54, 27, 39, 70] * 40,
        "pay": [1.5e4, 2e4, np.nan, 9e4, 3e4] * 40,
        "weight": [1.0, 2.0] * 100,
        "area": ["a", "b", "b", "a", "b"] * 40,
        "day": pd.date_range("2020-02-01", periods=200).as_unit("s"),
    }
)


def protected(frame=FRAME, *, epsilon=1000, **options):
    return pdprivacy.protect(frame, DOMAIN, epsilon=epsilon, reuse=True, **options)


def charges(private):
    return len(private.dp.budget.entries)


def same(first, second):
    return first.equals(second) and first.attrs[KEY] == second.attrs[KEY] and type(first) is type(second)


CALLS = {
    "mean": lambda p: p.dp.mean(["age", "pay"], epsilon=0.1),
    "crosstab": lambda p: p.dp.crosstab("age", "area", epsilon=0.1, margins=True),
    "quantile": lambda p: p.dp.quantile("age", [0.25, 0.5], epsilon=0.1),
    "top_k": lambda p: p.dp.top_k("area", 2, epsilon=0.1),
    "ols": lambda p: p.dp.ols("pay", ["age"], epsilon=9, weights="weight"),
    "kmeans": lambda p: p.dp.kmeans(["age"], 2, epsilon=1),
    "find_bounds": lambda p: p.dp.find_bounds("age", epsilon=1),
    "groups": lambda p: p.dp.groupby("area")["pay"].mean(epsilon=0.1),
    "periods": lambda p: p.dp.groupby("day", freq="M").count(epsilon=0.1),
    "releases": lambda p: p.dp.count(epsilon=0.1, releases=3),
    "steps": lambda p: p[p["age"] > 30].assign(year="12 * pay").clip(upper={"year": 5e5}).dp.sum(epsilon=0.1),
    "named": lambda p: p.dp.count(epsilon=0.1, release_id="once"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_equal_call_has_the_same_answer_and_no_charge(name):
    private = protected()
    with warnings.catch_warnings(action="ignore"):
        first, again, third = (CALLS[name](private) for _ in range(3))
    assert charges(private) == 1
    assert same(first, again)
    assert same(first, third)
    assert again.dp.verify()
    assert "answered before: nothing was charged again" in str(again.dp)
    assert "answered before" in again.dp._repr_html_()
    assert "answered before" not in str(first.dp)


@pytest.mark.parametrize("engine", each_engine(ORDERED))
def test_all_engines_with_records_in_memory_answer_again(engine):
    private = protected(frame_of(engine, FRAME))
    calls = [CALLS["mean"], CALLS["steps"], CALLS["periods"]]
    assert all(same(call(private), call(private)) for call in calls)
    assert charges(private) == 3


@pytest.mark.parametrize("engine", each_engine([name for name in LAZY if name != "Spark"]))
def test_lazy_frames_may_hold_other_records(engine):
    with pytest.raises(ParameterError, match="'reuse' is not for lazy frames"):
        protected(frame_of(engine, FRAME))


def test_defaults_and_equal_numbers_make_equal_calls():
    private = protected()
    first = private.dp.mean("age", epsilon=0.25)
    same_calls = [
        private.dp.mean("age", epsilon=Fraction(1, 4), delta=0, mechanism="laplace", releases=1),
        private.dp.mean(columns="age", epsilon=0.25, bounding="project", split=None, rng=None),
    ]
    assert all(same(first, each) for each in same_calls)
    assert charges(private) == 1


def test_every_other_request_is_charged():
    private = protected()
    groups = private.dp.groupby("area")
    requests = [
        lambda: private.dp.mean("age", epsilon=0.25),
        lambda: private.dp.mean(["age"], epsilon=0.25),
        lambda: private.dp.mean("age", epsilon=0.5),
        lambda: private.dp.mean("age", epsilon=0.25, release_id="second"),
        lambda: private.dp.mean("age", epsilon=0.25, releases=2),
        lambda: private.dp.mean("age", epsilon=0.25, bounding=None),
        lambda: private.dp.mean("age", epsilon=0.25, mechanism="staircase"),
        lambda: private.dp.sum("age", epsilon=0.25),
        lambda: private[private["age"] > 30].dp.mean("age", epsilon=0.25),
        lambda: private[private["age"] > 31].dp.mean("age", epsilon=0.25),
        lambda: private.query("2 * age > 50").dp.mean("age", epsilon=0.25),  # which narrow no bound
        lambda: private.query("2 * age > 60").dp.mean("age", epsilon=0.25),
        lambda: private.clip(upper={"age": 100}).dp.mean("age", epsilon=0.25),
        lambda: private.select(["age"]).dp.mean("age", epsilon=0.25),
        lambda: groups.mean("age", epsilon=0.25),
        lambda: groups["age"].mean(epsilon=0.25),
        lambda: private.dp.groupby(["area"], dropna=True).sum("age", epsilon=0.25),
        lambda: private.dp.groupby("day", freq="M").mean("age", epsilon=0.25),
        lambda: private.dp.groupby("day", freq="Q").mean("age", epsilon=0.25),
    ]
    for number, request in enumerate(requests, 1):
        request()
        assert charges(private) == number
    for request in requests:
        request()
    assert charges(private) == len(requests)


def test_the_memory_has_copies_of_its_own():
    private = protected()
    first = private.dp.crosstab("age", "area", epsilon=0.1)
    # a copy of pandas 2 shares the labels
    expected, facts = (
        pickle.loads(pickle.dumps(pd.DataFrame(first))),
        pickle.loads(pickle.dumps(first.attrs[KEY])),
    )
    for changed in (first, private.dp.crosstab("age", "area", epsilon=0.1)):
        changed.iloc[:, :] = -1
        changed.attrs[KEY]["error"].clear()
        labels = changed.columns.values
        if isinstance(labels, np.ndarray):
            labels[0] = "z"
        changed.index.name = "changed"
    again = private.dp.crosstab("age", "area", epsilon=0.1)
    pd.testing.assert_frame_equal(again, expected)
    assert again.attrs[KEY] == facts
    assert again.dp.verify()


def test_steps_of_one_text_that_declare_otherwise_make_other_answers():
    """Two uses of found bounds have one text where the charges of two budgets have one number."""
    private = protected()
    uses = []
    for upper in (40, 90):
        other = pdprivacy.protect(FRAME.assign(age=upper // 2), DOMAIN, epsilon=1e6)
        uses.append(other.dp.find_bounds("age", epsilon=1e5))
    frames = [private.use(bounds).clip(0, 10, columns="age") for bounds in uses]
    texts = [frame.dp.lineage["step"].tolist() for frame in frames]
    assert texts[0] == texts[1]
    for number, frame in enumerate(frames, 1):
        frame.dp.mean("pay", epsilon=0.1)
        assert charges(private) == number


def test_secret_parts_and_groups_of_partitions_are_told_apart():
    private = protected()
    with pytest.warns(OmissionWarning):
        parts = [private.dp.sample(frac=0.5) for _ in range(2)]
    for part in (*parts, *parts):
        part.dp.count(epsilon=0.1)
    assert charges(private) == 2
    halves = [private.dp.partition("area", epsilon=1) for _ in range(2)]
    for groups in (*halves, *halves):
        for group in groups.values():
            group.dp.count(epsilon=0.1)
    assert charges(private) == 4
    assert [charges(group) for groups in halves for group in groups.values()] == [1] * 6


def test_seeded_releases_and_frames_are_charged_each_time():
    private = protected()
    for _ in range(2):
        private.dp.count(epsilon=0.1, rng=1)
        private.dp.kmeans(["age"], 2, epsilon=0.1, rng=np.random.default_rng(1))
    assert charges(private) == 4
    seeded = protected(unit="area", max_rows=10, rng=1)
    for _ in range(2):
        seeded.dp.count(epsilon=0.1)
    assert charges(seeded) == 2


def test_plans_batches_and_marginals_of_two_samples_are_told_apart():
    """Also of two samples that a row step follows: the texts of their steps are equal."""
    private = protected(neighbors="replace_one")
    with pytest.warns(OmissionWarning):
        parts = [private.dp.sample(n=3, spend="epsilon") for _ in range(2)]
    parts += [part.query("age > 20") for part in parts]

    def batch(part):
        with part.dp.batch() as batch:
            batch.value_counts("area", epsilon=0.1)

    for release in (
        batch,
        lambda part: part.dp.plan_releases([("value_counts", "area", {"epsilon": 0.2})]).release(),
        lambda part: part.dp.marginals(["area"], order=1, epsilon=0.3),
    ):
        before = charges(private)
        for part in (*parts, *parts):
            release(part)
        assert charges(private) == before + 4


def test_plans_batches_and_marginals_are_answered_again_as_a_whole():
    private = protected()

    def batch(epsilon):
        with private.dp.batch() as batch:
            pending = batch.mean("age", epsilon=epsilon), batch.value_counts("area", epsilon=0.1)
        return [each.result for each in pending]

    assert all(map(same, batch(0.1), batch(0.1)))
    assert charges(private) == 1
    batch(0.2)
    assert charges(private) == 2
    tables, again = (private.dp.marginals(["age", "area"], order=1, epsilon=0.1) for _ in range(2))
    assert all(same(tables[key], again[key]) for key in tables)
    assert charges(private) == 3
    plans = [private.dp.plan_releases([("count", {"epsilon": 0.1})] * 2) for _ in range(2)]
    first, second = (plan.release() for plan in plans)
    assert all(map(same, first, second))
    plans[0].release(release_id="another")
    assert charges(private) == 5


def test_constraints_of_a_batch_are_charged_each_time():
    private = protected()
    for number in (1, 2):
        with private.dp.batch() as batch:
            total, parts = batch.count(epsilon=0.1), batch.value_counts("area", epsilon=0.1)
            batch.constrain(pdprivacy.postprocess.LinearConstraint({total: 1, parts[...]: -1}, equals=0))
        assert charges(private) == number


def test_threads_pay_once():
    private, answers = protected(), []
    barrier = threading.Barrier(8)

    def run():
        barrier.wait()
        answers.append(private.dp.mean("age", epsilon=0.1))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert charges(private) == 1
    assert all(same(answers[0], each) for each in answers)


def test_a_fork_knows_the_answers_until_then(monkeypatch):
    private = protected()
    first = private.dp.mean("age", epsilon=0.1)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert same(first, private.dp.mean("age", epsilon=0.1))
    with pytest.raises(BudgetError, match="belongs to the process"):
        private.dp.mean("age", epsilon=0.2)


def test_a_failure_after_the_charge_is_charged_again(monkeypatch):
    private = protected()
    with monkeypatch.context() as faulty:
        faulty.setattr(PandasEngine, "grouped", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            private.dp.mean("age", epsilon=0.1)
    assert "Charge 1 is entered, but its answer was not handed out." in caught.value.__notes__
    first, again = (private.dp.mean("age", epsilon=0.1) for _ in range(2))
    assert same(first, again)
    assert charges(private) == 2


def test_a_refusal_is_not_remembered():
    private = protected(epsilon=0.5)
    for _ in range(2):
        with pytest.raises(pdprivacy.errors.BudgetExceeded):
            private.dp.mean("age", epsilon=1)
    assert charges(private) == 0
    first, again = (private.dp.mean("age", epsilon=0.5) for _ in range(2))
    assert same(first, again)  # with nothing left


def test_no_record_is_read_for_an_answer_given_again(monkeypatch):
    private = protected()
    first = {name: CALLS[name](private) for name in ("mean", "crosstab", "quantile", "groups")}
    monkeypatch.setattr(gate, "records_of", lambda _: 1 / 0)
    assert all(same(first[name], CALLS[name](private)) for name in first)


def test_charges_are_those_of_any_other_data():
    """Whether a call is charged is a function of the calls alone: equal frames, neighbours and others."""
    frames = [FRAME, FRAME.iloc[1:], FRAME.iloc[:0], FRAME.assign(age=1, area="c"), FRAME.copy()]
    logs = []
    for frame in frames:
        private, log = protected(frame), []
        for name in [*CALLS, *reversed(CALLS)]:
            with warnings.catch_warnings(action="ignore"):
                CALLS[name](private)
            log.append(charges(private))
        logs.append(log)
    assert logs == [[*range(1, len(CALLS) + 1), *[len(CALLS)] * len(CALLS)]] * len(frames)


def test_two_protections_share_no_answer():
    first, second = protected(), protected()
    first.dp.count(epsilon=0.1)
    second.dp.count(epsilon=0.1)
    assert (charges(first), charges(second)) == (1, 1)
    plain = pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
    for _ in range(2):
        plain.dp.count(epsilon=0.1)
    assert charges(plain) == 2


def test_a_ledger_holds_one_charge_and_its_audit_agrees(tmp_path):
    ledger = pdprivacy.Ledger(tmp_path / "budget.db")
    private = protected(epsilon=1, budget=ledger, name="survey")
    first, again = (private.dp.mean("age", epsilon=0.1) for _ in range(2))
    assert same(first, again)
    assert ledger.audit().charges == 1
    assert private.dp.budget.spent == (0.1, 0.0)


def test_one_release_is_not_combined_with_itself(tmp_path):
    private = protected()
    first, again = (private.dp.mean("age", epsilon=0.1) for _ in range(2))
    for pair in ([first, again], [again, private.dp.mean("age", epsilon=0.1)]):
        with pytest.raises(ParameterError, match="one release twice"):
            pdprivacy.combine(pair, within=0)
    pdprivacy.combine([again, private.dp.mean("age", epsilon=0.1, release_id="second")], within=0)
    plan = [private.dp.plan_releases([("count", {"epsilon": 1})] * 9).release() for _ in range(2)]
    pdprivacy.combine(plan[1], within=0)  # nine releases, of which some have equal numbers
    again.dp.save(tmp_path / "mean.json")
    assert same(pdprivacy.read_release(tmp_path / "mean.json"), first)


def test_copies_of_the_frame_have_its_memory():
    import copy

    private = protected()
    first = private.dp.count(epsilon=0.1)
    assert same(first, copy.deepcopy(private).dp.count(epsilon=0.1))
    assert same(first, pickle.loads(pickle.dumps(private.dp.count(epsilon=0.1))))
    assert charges(private) == 1


def test_reuse_is_true_or_false():
    with pytest.raises(ParameterError, match="'reuse' must be True or False"):
        pdprivacy.protect(FRAME, DOMAIN, epsilon=1, reuse="yes")


# ------------------------------------------------------------------ two budgets of one frame


@pytest.fixture
def interactive(monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(second_budgets, "_PROTECTED", {})


def typed(frame, *args, **options):
    """The protected frame of a call that is typed at a prompt."""
    names = {"__name__": "__main__", "pdprivacy": pdprivacy, "frame": frame, "args": args, "options": options}
    return eval("pdprivacy.protect(frame, *args, **options)", names)


@pytest.mark.usefixtures("interactive")
@pytest.mark.parametrize("engine", ["pandas", "Polars", "DuckDB"])
def test_a_second_budget_of_one_frame_warns_once(engine):
    frame = frame_of(engine, FRAME)
    typed(frame, DOMAIN, epsilon=1)
    with pytest.warns(DeclarationWarning, match="second full budget now"):
        typed(frame, DOMAIN, epsilon=1)
    typed(frame, DOMAIN, epsilon=1)


@pytest.mark.usefixtures("interactive")
def test_shared_and_named_budgets_and_other_frames_do_not_warn(tmp_path):
    frame = FRAME.copy()
    private = typed(frame, DOMAIN, epsilon=1)
    typed(frame, DOMAIN, budget=private.dp.budget)
    ledger = pdprivacy.Ledger(tmp_path / "budget.db")
    for _ in range(2):
        typed(frame, DOMAIN, epsilon=1, budget=ledger, name="survey")
    typed(frame.copy(), DOMAIN, epsilon=1)
    for _ in range(20):  # a frame that is gone may leave its id to another one
        typed(FRAME.copy(), DOMAIN, epsilon=1)
        gc.collect()
    assert len(second_budgets._PROTECTED) == 1
    with pytest.raises(ParameterError):
        typed(FRAME, DOMAIN, epsilon=-1)
    typed(FRAME, DOMAIN, epsilon=1)


def test_programs_are_not_warned(monkeypatch):
    monkeypatch.delattr(sys, "ps1", raising=False)
    for _ in range(2):
        typed(FRAME, DOMAIN, epsilon=1)


@pytest.mark.usefixtures("interactive")
def test_modules_are_not_warned_in_a_session():
    for _ in range(2):
        pdprivacy.protect(FRAME, DOMAIN, epsilon=1)
