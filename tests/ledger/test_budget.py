"""Budgets in a ledger: what stays, what is refused, and what is shared by processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from pdprivacy import ZCDP, Approx, Budget, Column, Domain, Ledger, Pure, Unit
from pdprivacy.core.accounting import Event, GaussianNoise
from pdprivacy.core.accounting.events import from_json, tally
from pdprivacy.errors import (
    AlreadyCharged,
    BudgetError,
    BudgetExceeded,
    DeclarationWarning,
    LedgerError,
    ParameterError,
    PrivacyError,
)
from pdprivacy.ledger.account import entry_of

SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}}),
        "member": pa.Column(bool, metadata={"dp": {}}),
    }
)
WIDER = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 130), metadata={"dp": {}})})
FRAME = pd.DataFrame({"age": [31, 54, 27, 39, 44], "member": [True, False, True, True, False]})


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path) -> Ledger:
    return Ledger(path)


def protect(ledger, frame=FRAME, schema=SCHEMA, **options):
    return frame.dp.protect(schema, budget=ledger, name="survey", **options)


# ---------------------------------------------------------------- what stays


def test_charges_in_turns_through_two_ledgers_add_up(path):
    first = Ledger(path).open("survey", Pure(2), unit=Unit("add_remove"), declaration="first")
    second = Ledger(path).budget("survey")
    for turn, budget in enumerate([first, first, second, first, second, second, first], start=1):
        budget.charge(Pure(Fraction(1, 7)), "mean of age")
        assert [first.account.spent.epsilon, second.account.spent.epsilon] == [Fraction(turn, 7)] * 2
    Ledger(path).open("survey", declaration="second", redeclare=True)
    assert [first.account.terms.declaration, second.account.terms.declaration] == ["second"] * 2
    assert first.charge(Pure(1), "mean of age").after.terms.declaration == "second"
    with pytest.raises(BudgetExceeded):
        second.charge(Pure("1/7"), "mean of age")
    assert Ledger(path).audit().charges == 8


@pytest.mark.parametrize("accounting", ["basic", "filter", "zcdp"])
def test_an_audit_adds_up_each_accounting_as_the_charges_do(path, accounting):
    budget = Ledger(path).open("survey", Approx(10, "0.01"), accounting)
    noise = [(Event(Approx("1/10", "1e-6"), GaussianNoise(Fraction(20), l0_sensitivity=1, steps=2**20)), 3)]
    for number in range(1, 13):
        budget.charge(Pure(Fraction(1, 7 * number)), "count", count=number)
        budget.charge(Approx("1/10", "1e-6"), "mean", count=3, events=noise)
    assert Ledger(path).audit().charges == 24
    assert budget.account.requested == (Fraction(12, 7) + Fraction(36, 10), Fraction(36, 10**6))


def test_a_budget_outlives_its_objects(path):
    private = protect(Ledger(path), epsilon="1/3", delta=1e-6)
    private.dp.mean("age", epsilon="1/9")
    private.dp.mean("age", epsilon="1/9")
    again = protect(Ledger(str(path)))
    assert again.dp.budget.total == Approx("1/3", 1e-6)
    assert again.dp.budget.account.spent.epsilon == Fraction(2, 9)
    again.dp.mean("age", epsilon="1/9")
    assert again.dp.budget.left == (0, 1e-6)
    with pytest.raises(BudgetExceeded, match="but 0 of 1/3 is left"):
        private.dp.mean("age", epsilon="1e-9")
    assert Ledger(path).entries("survey")["answered"].tolist() == [True] * 3


@pytest.mark.full
def test_another_process_goes_on_where_this_one_stopped(path):
    protect(Ledger(path), epsilon=1).dp.count(epsilon=0.25)
    code = (
        "import sys, pdprivacy; budget = pdprivacy.Ledger(sys.argv[1]).budget('survey');"
        "budget.charge(pdprivacy.Pure('0.5'), 'elsewhere'); print(budget.left)"
    )
    process = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "(0.25, 0.0)"
    assert Ledger(path).entries("survey")["release"].tolist() == ["count", "elsewhere"]


def test_budgets_of_a_ledger_do_not_mix(ledger):
    first, second = ledger.open("one", Pure(1)), ledger.open("other", ZCDP("1/2"))
    first.charge(Pure("0.5"), "a", release_id="same")
    second.charge(ZCDP("0.25"), "b", release_id="same")
    assert first.spent == (0.5, 0)
    assert second.spent == (0.25, 0)
    assert ledger.budgets[["currency", "total", "spent", "left", "charges"]].to_dict("index") == {
        "one": {"currency": "epsilon", "total": 1, "spent": 0.5, "left": 0.5, "charges": 1},
        "other": {"currency": "rho", "total": 0.5, "spent": 0.25, "left": 0.25, "charges": 1},
    }


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("accounting", ["basic", "filter", "zcdp"])
def test_a_ledger_and_memory_keep_the_same_accounts(path, accounting):
    cap = Approx(3, 1e-5)
    stored, in_memory = Ledger(path).open("x", cap, accounting), Budget.with_total(cap, accounting)
    rng = np.random.default_rng(5)
    refused = 0
    for number in range(60):
        cost = Pure(Fraction(int(rng.integers(1, 40)), 100))
        options = {"count": int(rng.integers(1, 3)), "release_id": f"r{number % 50}"}
        if number % 3 == 0 and accounting != "basic":
            noise = GaussianNoise(Fraction(int(rng.integers(10, 200))), 2, 2**20)
            options["events"] = [(Event(Approx("0.1", 1e-7), noise), 1)]
        outcomes = []
        for budget in (stored, in_memory):
            try:
                entry = budget.charge(cost, "x", "laplace", **options)
                outcomes.append((entry.number, entry.counted, entry.after))
            except (BudgetExceeded, AlreadyCharged) as error:
                outcomes.append((type(error), str(error).partition("UTC")[0].partition(" 20")[0]))
        assert outcomes[0] == outcomes[1]
        refused += isinstance(outcomes[0][0], type)
    assert 0 < refused < 55
    assert Ledger(path).budget("x").account == in_memory.account
    assert stored.events == in_memory.events


# ---------------------------------------------------------------- names, terms and declarations


def test_a_name_is_for_one_declaration(ledger):
    private = protect(ledger, epsilon=1)
    private.dp.count(epsilon=0.25)
    with pytest.raises(BudgetError, match="protected before with another declaration") as caught:
        protect(ledger, schema=WIDER)
    assert "redeclare=True" in caught.value.hint
    wider = protect(ledger, schema=WIDER, redeclare=True)
    assert wider.dp.budget == private.dp.budget
    private.dp.count(epsilon=0.25)  # the frame of before goes on: losses between the same neighbours add up
    wider.dp.count(epsilon=0.25)
    assert wider.dp.budget.left == (0.25, 0)
    with pytest.raises(BudgetError, match="another declaration"):
        protect(ledger)  # the declaration of before is another one now
    ledger.audit()


def test_neighbors_are_declared_anew_only_before_the_first_charge(ledger):
    private = protect(ledger, epsilon=1)
    with pytest.raises(BudgetError, match="other neighbors"):
        protect(ledger, neighbors="replace_one")
    other = protect(ledger, neighbors="replace_one", redeclare=True)
    with pytest.raises(BudgetError, match="'replace_one' neighbours"):
        private.dp.count(epsilon=0.25)  # protected before, between other neighbours
    other.dp.mean("age", epsilon=0.25)
    with pytest.raises(BudgetError, match="do not add up"):
        protect(ledger, neighbors="add_remove", redeclare=True)
    assert ledger.budget("survey").spent == (0.25, 0)
    ledger.audit()


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 2}, "another total: epsilon 1, delta 0, not epsilon 2"),
        ({"epsilon": 1, "delta": 1e-6}, "another total"),
        ({"rho": 1}, "another total: epsilon 1, delta 0, not rho 1"),
        ({"accounting": "zcdp"}, "accounting='basic', which was fixed"),
        ({"delta": 1e-6}, "'delta' cannot be given together with 'budget'"),
        ({"epsilon": 1, "rho": 1}, "not in both"),
        ({"redeclare": 1}, "'redeclare' must be True or False"),
    ],
)
def test_terms_are_fixed_when_a_budget_is_opened(ledger, options, words):
    protect(ledger, epsilon=1)
    with pytest.raises(ParameterError, match=words):
        protect(ledger, **options)
    assert protect(ledger, epsilon="1.0", accounting="basic").dp.budget.left == (1, 0)


def test_a_new_name_needs_a_total(ledger, path):
    with pytest.raises(ParameterError, match="holds no budget 'survey' yet"):
        protect(ledger)
    assert not path.exists()
    with pytest.raises(LedgerError):
        ledger.budget("survey")
    assert not path.exists()


@pytest.mark.parametrize(
    "name", ["", " x", "x ", "a\nb", "x" * 201, None, 3, b"x", "\x00", "\ud800"], ids=repr
)
def test_names_are_plain_text(ledger, path, name):
    with pytest.raises(ParameterError, match="'name'"):
        FRAME.dp.protect(SCHEMA, epsilon=1, budget=ledger, name=name)
    assert not path.exists()


def test_one_name_is_one_budget_however_it_is_written(ledger):
    ledger.open("caf\u00e9", Pure(1)).charge(Pure("0.5"), "x")
    assert ledger.open("cafe\u0301").spent == (0.5, 0)


@pytest.mark.parametrize(
    "options", [{"name": "x"}, {"redeclare": True}, {"name": "x", "budget": Budget(1)}], ids=repr
)
def test_names_are_for_ledgers(options):
    with pytest.raises(ParameterError, match="'name' and 'redeclare' are for a budget in a ledger"):
        FRAME.dp.protect(SCHEMA, epsilon=1, **options)


def test_a_warning_that_is_an_error_opens_no_budget(ledger, path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeclarationWarning):
            protect(ledger, frame=FRAME.assign(age=[0, 1, 2, 3, 4]), epsilon=1)
    assert not path.exists()


def test_data_that_is_not_as_declared_opens_no_budget(ledger, path):
    with pytest.raises(PrivacyError):
        protect(ledger, frame=FRAME.assign(age=500), epsilon=1)
    assert not path.exists()


def test_the_raw_frame_is_protected_again_with_the_same_budget(ledger):
    private = protect(ledger, epsilon=1)
    assert protect(ledger).dp.budget == private.dp.budget
    with pytest.raises(ParameterError, match="protected already"):
        protect(ledger, frame=private)
    with pytest.raises(ParameterError, match="protected already"):
        private.dp.protect(SCHEMA, epsilon=1, budget=ledger, name="another")
    with pytest.raises(ParameterError, match="protected already"):
        private.dp.protect(SCHEMA, epsilon=1)


@pytest.mark.parametrize("address", [3, None, b"x", ["x"]], ids=repr)
def test_an_address_is_a_path_or_a_url(address):
    with pytest.raises(ParameterError, match="'address' must be a path or a URL"):
        Ledger(address)


# ---------------------------------------------------------------- tried again


def test_a_release_of_one_id_is_charged_and_made_once(path):
    private = protect(Ledger(path), epsilon=1)
    private.dp.count(epsilon=0.25, release_id="nightly 7")
    for again in (private, protect(Ledger(path))):
        with pytest.raises(AlreadyCharged, match=r"is charge 1 of this budget .*its answer was handed out"):
            again.dp.count(epsilon=0.25, release_id="nightly 7")
    assert private.dp.budget.spent == (0.25, 0)
    private.dp.count(epsilon=0.25, release_id="nightly 8")
    assert private.dp.budget.entries["release_id"].tolist() == ["nightly 7", "nightly 8"]


def test_a_charge_whose_answer_was_lost_stays_and_is_not_answered_later(ledger, monkeypatch):
    private = protect(ledger, epsilon=1)
    with monkeypatch.context() as patch:
        patch.setattr("pdprivacy.releases.publish.attach", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            private.dp.count(epsilon=0.25, release_id="a")
    assert private.dp.budget.entries[["epsilon", "answered"]].to_numpy().tolist() == [[0.25, False]]
    assert ledger.audit().unanswered == 1
    with pytest.raises(AlreadyCharged, match="is not known to have been handed out"):
        private.dp.count(epsilon=0.25, release_id="a")
    assert private.dp.budget.spent == (0.25, 0)


def test_nothing_is_released_where_the_answer_cannot_be_noted(ledger, monkeypatch):
    private = protect(ledger, epsilon=1)
    kept = []
    book = private.dp.budget._book

    def fail(*_):
        kept.append(1)
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(type(book), "answer", fail)
    with pytest.raises(LedgerError, match="disk is full"):
        private.dp.count(epsilon=0.25)
    assert kept == [1]
    assert private.dp.budget.entries[["epsilon", "answered"]].to_numpy().tolist() == [[0.25, False]]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("damage", ["gone", "held", "other"])
def test_an_answer_that_cannot_be_noted_says_which_charge_is_entered(path, damage):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    pytest.importorskip("pdprivacy.polars", reason="narwhals is not installed")
    reads = []

    def read(batch):
        """Damage to the ledger while the data is read, which is after the charge."""
        if reads:
            Path(path).rename(f"{path}-moved")
            if damage == "other":
                Path(path).write_bytes(b"no ledger at all " * 100)
            if damage == "held":
                Path(path).mkdir()
        return batch

    frame = polars.LazyFrame({"age": [20, 30, 40]}).map_batches(read)
    domain = Domain((Column("age", "integer", lower=0, upper=120),))
    private = frame.dp.protect(domain, epsilon=1, budget=Ledger(path), name="survey")
    private.dp.mean("age", epsilon=0.25)
    reads.append(True)
    with pytest.raises(LedgerError) as caught:
        private.dp.mean("age", epsilon=0.25)
    text = str(caught.value)
    assert text.startswith("Charge 2 of the budget 'survey' is entered, but its answer was not handed out")
    assert "Nothing was entered" not in text
    assert "again" not in text
    reads.clear()
    if damage != "gone":
        Path(path).rmdir() if damage == "held" else Path(path).unlink()
    Path(f"{path}-moved").rename(path)
    code = "import sys, pdprivacy; print(*pdprivacy.Ledger(sys.argv[1]).entries('survey')['answered'])"
    assert subprocess.check_output([sys.executable, "-c", code, path], text=True).split() == ["True", "False"]


def test_nothing_is_read_where_the_charge_cannot_be_entered(ledger, monkeypatch):
    private = protect(ledger, epsilon=1)
    monkeypatch.setattr(
        type(ledger.chain.store), "write", lambda *_, **__: raise_(LedgerError("The disk is full."))
    )
    monkeypatch.setattr(
        "pdprivacy.core.engines.PandasEngine.rows", property(lambda _: pytest.fail("data was read"))
    )
    with pytest.raises(LedgerError, match="disk is full"):
        private.dp.count(epsilon=0.25)


def raise_(error: Exception) -> None:
    raise error


# ---------------------------------------------------------------- processes


def test_a_budget_in_a_ledger_goes_to_other_processes(ledger):
    budget = ledger.open("one", Pure(1))
    budget.charge(Pure("0.5"), "x")
    copy = pickle.loads(pickle.dumps(budget))
    copy.charge(Pure("0.25"), "y")
    assert budget == copy
    assert budget.left == (0.25, 0)
    assert pickle.loads(pickle.dumps(ledger)).address == ledger.address


def _spend(path, times, loss, answers):
    budget = Ledger(path).budget("one")
    accepted, longest = 0, 0.0
    for _ in range(times):
        before = time.monotonic()
        try:
            budget.charge(Pure(loss), "x")
            accepted += 1
        except BudgetExceeded:
            pass
        longest = max(longest, time.monotonic() - before)
    answers.put((accepted, longest))


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_many_processes_never_spend_more_than_the_total(path):
    processes, times = 16, 80
    fitting = processes * times // 2 + 1
    total = Fraction(fitting, 1000) + Fraction(1, 2000)
    Ledger(path).open("one", Pure(total))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    running = [
        context.Process(target=_spend, args=(path, times, "1/1000", answers)) for _ in range(processes)
    ]
    start = time.monotonic()
    for process in running:
        process.start()
    results = [answers.get(timeout=120) for _ in running]
    elapsed = time.monotonic() - start
    for process in running:
        process.join()
    assert sum(accepted for accepted, _ in results) == fitting
    assert max(longest for _, longest in results) < elapsed / 2  # nobody waits until the others are done
    budget = Ledger(path).budget("one")
    assert budget.account.spent.epsilon == Fraction(fitting, 1000) <= total
    assert budget.entries.index.tolist() == list(range(1, fitting + 1))
    assert Ledger(path).audit().charges == fitting


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_parent_and_child_go_on_with_one_budget(path):
    budget = Ledger(path).open("one", Pure(1))
    for turn in range(8):
        child = os.fork()
        if child == 0:
            try:
                budget.charge(Pure("1/32"), f"child {turn}")
            finally:
                os._exit(0)
        budget.charge(Pure("1/32"), f"parent {turn}")
        os.waitpid(child, 0)
    assert budget.spent == (0.5, 0)
    labels = Ledger(path).entries("one")["release"]
    assert sorted(labels) == sorted(f"{name} {turn}" for name in ("child", "parent") for turn in range(8))
    Ledger(path).audit()


KILLED = """
import os, random, select, signal, sys, time
import pandas as pd, pandera.pandas as pa
import pdprivacy

path, kills = sys.argv[1], int(sys.argv[2])
schema = pa.DataFrameSchema({"member": pa.Column(bool, metadata={"dp": {}})})
ledger = pdprivacy.Ledger(path)
private = pd.DataFrame({"member": [True, False]}).dp.protect(schema, epsilon=1000, budget=ledger, name="x")
chance, told = random.Random(7), []
for kill in range(kills):
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for turn in range(10**6):
                private.dp.count(epsilon="1/1000", release_id=f"{kill}-{turn}")
                os.write(into, f"{kill}-{turn}\\n".encode())
        finally:
            os._exit(3)
    os.close(into)
    if kill % 2:  # not before the first answer
        select.select([out], [], [])
    time.sleep(chance.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(out, "rb") as heard:
        told += heard.read().decode().split()
    if kill % 10 == 9:
        found = pdprivacy.Ledger(path).audit()
        assert found.unanswered <= kill + 1, (found, kill)
entries = ledger.entries("x")
answered = set(entries["release_id"][entries["answered"]])
lost = [name for name in told if name not in answered]
print(len(told), len(entries), len(answered), len(lost))
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_killed_process_loses_nothing_that_it_told(path):
    """100 kills at random moments (fixed seed) of charging and releasing; no false alarms."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED, path, "100"], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    reported, charged, answered, lost = map(int, process.stdout.split())
    assert lost == 0
    assert reported >= 50  # every other kill waits for an answer
    # whatever was told was answered; at most one charge and one untold answer per kill
    assert reported <= answered
    assert answered <= charged <= answered + 100


# ---------------------------------------------------------------- what cannot be read


def test_an_invalid_ledger_is_not_taken_for_a_new_one(path):
    path.write_text("no database\n" * 100)
    for options in ({}, {"epsilon": 1}):
        with pytest.raises(LedgerError, match="not a ledger, or it is damaged"):
            protect(Ledger(path), **options)
    assert path.read_text() == "no database\n" * 100


def test_equal_charges_are_counted_before_they_are_parsed(ledger, monkeypatch):
    """The events are those of all entries, and a record is parsed for each kind of charge alone."""
    label = 'a,"kind":"charge","label":"b","loss":{} \\ ,"events":'  # which looks like parts of a record
    noise = GaussianNoise(Fraction(3), 1, 1)
    kinds = [
        (Pure(0.25), {}),
        (Pure("0.1"), {"count": 3}),
        (Pure(0.5), {"events": [(Event(Pure(0.125)), 4)]}),
        (Approx(0.5, 1e-6), {"events": [(Event(Approx(0.5, 1e-6), noise), 1), (Event(Pure(0.25)), 2)]}),
        (Pure(0.5), {"events": [(Event(Pure(0.5), group="sample"), 1)]}),
    ]
    books = [Budget(100, 0.5), ledger.open("b", Approx(100, 0.5))]
    ledger.open("other", Pure(9)).charge(Pure(3), "count")
    for budget in books:
        for number in range(4):
            for loss, options in kinds:
                budget.charge(loss, label if number % 2 else "count", **options)
    in_memory, stored = books
    expected = tally(pair for entry in in_memory._book.entries()[1] for pair in entry.events)
    parsed = []

    def counted_entry_of(row, terms):
        parsed.append(row)
        return entry_of(row, terms)

    monkeypatch.setattr("pdprivacy.ledger.book.entry_of", counted_entry_of)
    for budget in books:
        events = budget.events
        assert tally(events) == expected
        assert len(events) == len({event for event, _ in events})
    assert len(parsed) == len(kinds)
    assert stored.report(1e-3).equals(in_memory.report(1e-3))


def test_losses_of_equal_charges_are_parsed_once(ledger, monkeypatch):
    """The sums and times of charges differ, but most losses of a long ledger are equal."""
    parsed = []

    def counted_from_json(items):
        parsed.append(items)
        return from_json(items)

    monkeypatch.setattr("pdprivacy.ledger.account.from_json", counted_from_json)
    in_memory, stored = Budget(100), ledger.open("b", Pure(100))
    for number in range(30):
        for budget in (in_memory, stored):
            budget.charge(Pure(Fraction(1 + number % 3, 1009)), "mean of age", count=1 + number % 2)
    parsed.clear()
    costs = ["epsilon", "delta", "rho"]
    pd.testing.assert_frame_equal(stored.entries[costs], in_memory.entries[costs])
    assert len(parsed) <= 6
