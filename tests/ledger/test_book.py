"""Answers that a ledger keeps for releases that are tried again."""

from __future__ import annotations

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pdprivacy import Budget, Ledger, Pure, Unit
from pdprivacy.errors import AlreadyCharged, BudgetError, ChangedStepError, LedgerError, ParameterError
from pdprivacy.ledger import disk
from pdprivacy.ledger.book import MARK

REQUEST = {"release": "mean", "columns": "'age'", "epsilon": "0.5"}


@contextmanager
def small_files() -> Iterator[None]:
    """A limit of 64 KiB on the size of files, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "budget.db")


@pytest.fixture
def budget(ledger) -> Budget:
    """One release was charged, and its answer is stored."""
    budget = ledger.open("survey", Pure(2), unit=Unit("add_remove"), declaration="f1")
    budget.charge(Pure(0.5), "count")
    budget.charge(Pure(0.5), "mean of age", release_id="2026-05")
    budget.store_answer("2026-05", b"\n41.7\0", REQUEST, risk=0.25)
    return budget


def test_an_answer_is_returned_byte_by_byte_and_costs_nothing(budget, ledger):
    for _ in range(2):
        assert Ledger(ledger.address).budget("survey").stored_answer("2026-05", dict(REQUEST)) == b"\n41.7\0"
    assert budget.left == (1.0, 0.0)
    assert budget.entries["answered"].tolist() == [False, True]
    assert budget.entries["cumulative_dr_ha"].iloc[1] == 0.25
    audit = ledger.audit()
    assert (audit.charges, audit.unanswered) == (2, 1)


def test_a_release_that_was_not_charged_has_no_answer(budget):
    assert budget.stored_answer("2026-06", REQUEST) is None
    with pytest.raises(ParameterError, match="charge in this budget"):
        budget.store_answer("2026-06", b"1", REQUEST)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": "'pay'"}, "another 'columns'"),
        ({"mechanism": "'gaussian'"}, "another 'mechanism'"),
        ({"epsilon": "0.5 "}, "another 'epsilon'"),
    ],
)
def test_an_answer_is_returned_to_the_same_request_alone(budget, change, words):
    with pytest.raises(ChangedStepError, match=words):
        budget.stored_answer("2026-05", {**REQUEST, **change})


def test_an_answer_is_returned_for_the_same_declaration_alone(budget, ledger):
    again = ledger.open("survey", unit=Unit("add_remove"), declaration="f2", redeclare=True)
    with pytest.raises(ChangedStepError, match="another 'declaration of the data'"):
        again.stored_answer("2026-05", REQUEST)


def test_a_charge_without_an_answer_stays_already_charged(budget):
    budget.charge(Pure(0.5), "count", release_id="lost")
    with pytest.raises(AlreadyCharged, match="is not known to have been handed out"):
        budget.stored_answer("lost", REQUEST)
    assert budget.left == (0.5, 0.0)


def test_an_answer_is_stored_once(budget):
    with pytest.raises(BudgetError, match="is stored already"):
        budget.store_answer("2026-05", b"another", REQUEST)
    assert budget.stored_answer("2026-05", REQUEST) == b"\n41.7\0"


def test_an_equal_answer_is_stored_for_each_release(budget, tmp_path):
    budget.charge(Pure(0.5), "mean of age", release_id="2026-06")
    with small_files(), pytest.raises(LedgerError, match="stays charged, but its answer was not stored"):
        budget.store_answer("2026-06", b"\n41.7\0" * 2**14, REQUEST)
    budget.store_answer("2026-06", b"\n41.7\0", REQUEST)
    for release in ("2026-05", "2026-06"):
        assert budget.stored_answer(release, REQUEST) == b"\n41.7\0"
    assert len(list((tmp_path / "budget.db-answers").iterdir())) == 1


def test_arguments_are_not_mistaken_for_the_declaration(budget):
    budget.charge(Pure(0.5), "count", release_id="named")
    budget.store_answer("named", b"1", {"declaration of the data": "f2", "privacy unit": "x"})
    with pytest.raises(ChangedStepError):
        budget.stored_answer("named", {})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_what_a_process_leaves_that_is_killed_while_it_stores_an_answer_is_removed(budget, tmp_path):
    folder = tmp_path / "budget.db-answers"
    budget.charge(Pure(0.5), "mean of age", release_id="2026-06")
    for unfinished in (b"1" * 10_000, b"2"):
        if not (child := os.fork()):
            disk.sync = lambda path: os.path.isdir(path) or os._exit(9)
            budget.store_answer("2026-06", unfinished, REQUEST)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert len(list(folder.iterdir())) == 2
    budget.store_answer("2026-06", b"3", REQUEST)
    assert budget.stored_answer("2026-06", REQUEST) == b"3"
    assert all(MARK.fullmatch(path.name) for path in folder.iterdir())
    assert len(list(folder.iterdir())) == 2


def test_answers_have_permissions_of_their_own(budget, tmp_path):
    folder = tmp_path / "budget.db-answers"
    (answer,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(answer.stat().st_mode) == 0o600
    assert b"41.7" not in (tmp_path / "budget.db").read_bytes()


@pytest.mark.parametrize("damage", ["changed", "removed"])
def test_an_answer_that_was_changed_is_refused(budget, tmp_path, damage):
    (answer,) = (tmp_path / "budget.db-answers").iterdir()
    if damage == "removed":
        answer.unlink()
    else:
        answer.write_bytes(answer.read_bytes().replace(b"41.7", b"40.7"))
    with pytest.raises(LedgerError, match="missing or was changed") as caught:
        budget.stored_answer("2026-05", REQUEST)
    assert "40.7" not in str(caught.value)


def test_the_digest_of_an_answer_is_in_the_chain(budget, ledger, tmp_path):
    (answer,) = (tmp_path / "budget.db-answers").iterdir()
    assert ledger.chain.store.read(lambda reader: json.loads(reader.last().body))["answer"] == answer.name


@pytest.mark.parametrize(
    ("answer", "request_", "words"),
    [
        ("text", REQUEST, "'answer' must be at most 268435456 bytes"),
        (bytes(2**28 + 1), REQUEST, "'answer' must be at most 268435456 bytes"),
        (b"1", [("a", "b")], "'request' must be a dict"),
        (b"1", {"epsilon": 0.5}, "'request' must hold texts"),
        (b"1", {5: "x"}, "'request' must hold texts"),
    ],
    ids=["text", "large", "pairs", "number", "key"],
)
def test_a_value_that_cannot_be_stored_is_refused(budget, answer, request_, words):
    budget.charge(Pure(0.25), "count", release_id="next")
    with pytest.raises(ParameterError, match=words):
        budget.store_answer("next", answer, request_)
    with pytest.raises(AlreadyCharged):
        budget.stored_answer("next", REQUEST)


def test_a_budget_in_memory_stores_no_answer():
    budget = Budget(epsilon=1)
    budget.charge(Pure(0.5), "count", release_id="a")
    with pytest.raises(BudgetError, match="in memory stores no answers"):
        budget.store_answer("a", b"1", REQUEST)
    with pytest.raises(AlreadyCharged):
        budget.stored_answer("a", REQUEST)
    assert budget.stored_answer("b", REQUEST) is None
