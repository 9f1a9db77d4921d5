"""Ledgers in SQLite (`files`, `store`): durable, shared by processes, never short of a reported charge."""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import os
import resource
import select
import shutil
import signal
import sqlite3
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import LedgerError, ParameterError, TamperedLedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import Row, link
from tests.support.sqlite_ledgers import (
    Bell,
    Child,
    append,
    changed,
    charge,
    charges_until_refused,
    forks,
    labels,
    opened,
    records,
    refused,
    texts,
    traced,
)


def in_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


# ---------------------------------------------------------------- transactions


def enter(row: Row, before: Row | None, writer) -> None:
    assert writer.last() == before
    writer.append(row)
    assert writer.last() == row


def test_records_come_back_as_they_were_entered(path):
    store = SQLiteStore(path)
    assert store.address == path
    rows: list[Any] = [None]
    for budget, kind, release in (
        ("", "ledger", None),
        ("b", "open", None),
        ("a", "open", None),
        ("b", "charge", "r1"),
        ("a", "charge", "r1"),
        ("b", "charge", None),
        ("b", "answer", None),
    ):
        rows.append(link(rows[-1], budget, kind, release, {"text": "µ"}))
        store.write(partial(enter, *rows[:-3:-1]))

    def look(reader):
        assert reader.span(0, 9) == rows[1:]
        assert reader.span(2, 5) == rows[3:6]
        assert reader.last() == rows[7]
        assert [reader.at(number) for number in (0, 1, 7, 8, -1, 10**40)] == [
            None, rows[1], rows[7], None, None, None
        ]  # fmt: skip
        assert reader.find("b", "charge") == rows[6]
        assert reader.find("a", "answer") is None
        assert [reader.last_charge("b", after) for after in (0, 4, 6)] == [rows[6], rows[6], None]
        assert reader.find("a", "charge", "r1") == rows[5]
        assert reader.find("a", "charge", "r2") is reader.find("\ud800", "charge", "\ud800") is None
        assert list(reader.last_charges().items()) == [("b", 6), ("a", 5)]
        assert reader.damage(7) == []
        assert reader.unindexed(0, 7) == []

    store.read(look)
    assert records(path) == rows[1:]


def busy() -> sqlite3.Error:
    """The error of another database of the user, which other programs hold."""
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_BUSY, "SQLITE_BUSY"
    return error


ERRORS = [KeyboardInterrupt(), SystemExit(), ZeroDivisionError(), OSError("no"), MemoryError(), busy()]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_of_the_work_enters_nothing_and_passes_through(path, error):
    store = SQLiteStore(path, patience=0.2)
    append(store)

    def work(writer):
        calls.append(writer)
        if run == store.write:
            writer.append(link(writer.last(), "s", "charge", None, {}))
        raise error

    for run in (store.write, store.read):
        calls: list[Any] = []
        with pytest.raises(type(error)) as caught:
            run(work)
        assert caught.value is error
        assert len(calls) == 1
    assert append(store) == 2
    assert len(records(path)) == 2


def test_a_refused_record_enters_nothing_of_its_transaction(path):
    store = SQLiteStore(path)
    append(store, release="r")
    (last,) = records(path)
    good = link(last, "s", "charge", None, {})

    def swallow(writer, bad):
        with suppress(LedgerError):
            writer.append(bad)
        with suppress(LedgerError):
            writer.append(good)

    for bad in (
        last,
        good._replace(number=4),
        good._replace(release="r"),
        good._replace(number=10**30),
        good._replace(body="\ud800"),
        good._replace(hash=None),
    ):
        with pytest.raises(LedgerError, match="Nothing was entered"):
            store.write(lambda writer, bad=bad: writer.append(bad))
        with pytest.raises(LedgerError, match="Nothing was entered"):
            store.write(partial(swallow, bad=bad))
    assert records(path) == [last]


def test_records_are_used_within_their_transaction(path):
    store = SQLiteStore(path)
    kept: list[Any] = []
    store.write(kept.append)
    store.read(kept.append)
    for use in (lambda: kept[0].append(link(None, "s", "charge", None, {})), kept[1].last):
        with pytest.raises(LedgerError, match="after their transaction"):
            use()
    assert records(path) == []


@pytest.mark.parametrize("handler", [False, True], ids=["within the work", "in a handler of a signal"])
def test_a_second_transaction_of_a_thread_is_refused_at_once(path, handler):
    budget, store = opened(path), SQLiteStore(path)

    def second(*_):
        for use in (lambda: budget.left, lambda: budget.charge(Pure(1), "second")):
            with pytest.raises(LedgerError, match="used by this thread already"):
                use()
        refusals.append(2)

    refusals: list[int] = []
    before = signal.signal(signal.SIGINT, second)
    try:
        for run in (store.read, store.write):
            run(lambda _: signal.raise_signal(signal.SIGINT) if handler else second())
    finally:
        signal.signal(signal.SIGINT, before)
    assert refusals == [2, 2]
    budget.charge(Pure(1), "first")
    assert labels(path) == ["first"]


def test_patience_ends_with_an_error_that_says_that_nothing_was_entered(path):
    append(SQLiteStore(path))
    hasty = SQLiteStore(path, patience=0.05)

    def work(writer):
        with pytest.raises(LedgerError, match=r"nother process or thread.*Nothing was entered"):
            in_thread(partial(append, hasty))
        with pytest.raises(LedgerError, match="nother process or thread"):
            in_thread(partial(hasty.read, lambda reader: reader.last()))

    for run in (SQLiteStore(path).write, SQLiteStore(path).read):
        run(work)
    assert append(hasty) == 2


# ---------------------------------------------------------------- settings and files


def test_a_commit_is_set_to_be_durable(path, monkeypatch):
    append(SQLiteStore(path))
    statements: list[str] = []
    with traced(monkeypatch, statements.append) as made:

        def work(writer):
            writer.append(link(writer.last(), "s", "charge", None, {}))
            settings = ("journal_mode", "synchronous", "fullfsync", "user_version")
            return [made[-1].execute(f"PRAGMA {name}").fetchone()[0] for name in settings]

        assert SQLiteStore(path).write(work) == ["persist", 2, 1, 2]
    assert "BEGIN EXCLUSIVE" in statements
    assert statements[-1] == "COMMIT"
    assert sorted(os.listdir(os.path.dirname(path))) == ["budget.db", "budget.db-journal", "budget.db-lock"]
    assert not any(Path(path + "-journal").read_bytes()[:28])  # nothing is to be rolled back


def test_records_can_be_neither_changed_nor_removed_by_other_programs(path):
    append(SQLiteStore(path), release="r")
    append(SQLiteStore(path))
    before = records(path)
    for statement in (
        "UPDATE records SET body = ''",
        "DELETE FROM records",
        "INSERT OR REPLACE INTO records SELECT 1, budget, kind, 'x', body, hash FROM records LIMIT 1",
        'REPLACE INTO records SELECT 3, budget, kind, "release", body, hash FROM records WHERE number = 1',
        "INSERT INTO records SELECT 9, budget, kind, 'x', body, hash FROM records LIMIT 1",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="appended"), changed(path) as other:
            other.execute(statement)
    assert records(path) == before


def test_a_store_touches_nothing_and_reading_makes_no_file(path, tmp_path):
    store = SQLiteStore(path)
    for use in (
        lambda: store.read(lambda reader: reader.last()),
        lambda: store.write(lambda writer: writer.last(), create=False),
        lambda: Ledger(path).budget("s"),
    ):
        with pytest.raises(LedgerError, match="There is no ledger"):
            use()
    store.close()
    assert os.listdir(os.path.dirname(path)) == []
    append(store)
    shutil.copy(path, tmp_path / "copy.db")
    assert len(records(tmp_path / "copy.db")) == 1
    assert sorted(os.listdir(tmp_path)) == ["copy.db", "folder"]


def test_invalid_paths_and_patiences_are_refused():
    for wrong in (5, None, "", "a\0b", b"a"):
        with pytest.raises(ParameterError, match="'path'"):
            SQLiteStore(wrong)
    for wrong in (-1, float("nan"), float("inf"), "1"):
        with pytest.raises(ParameterError, match="'patience'"):
            SQLiteStore("x", patience=wrong)


@pytest.mark.parametrize("name", ["a b%20?c#d&e.db", "ü'\".db", "-new-.db", "\udcff.db", "a\nb.db"])
def test_unusual_names_of_files_are_names(tmp_path, name):
    append(SQLiteStore(tmp_path / name))
    assert name in os.listdir(tmp_path)
    assert len(records(tmp_path / name)) == 1


def test_a_file_that_is_no_ledger_is_refused_and_stays(tmp_path):
    foreign = tmp_path / "foreign.db"
    with changed(foreign) as other:
        other.execute("CREATE TABLE t (x)")
    (tmp_path / "empty.db").write_bytes(b"")
    (tmp_path / "short.db").write_bytes(b"SQLite format 3\0")
    (tmp_path / "text.db").write_text("no database at all" * 100)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    refused(foreign, "is a database, but not a ledger")
    refused(tmp_path / "empty.db", "holds 0 bytes")
    refused(tmp_path / "short.db", "holds 16 bytes")
    refused(tmp_path / "text.db", "ledger, or it is damaged")
    refused(tmp_path, "not a plain file")
    refused(tmp_path / "no" / "budget.db", "directory does not exist")
    refused(foreign / "budget.db", "directory does not exist")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_truncated_ledger_is_refused(path):
    for _ in range(30):
        append(SQLiteStore(path), "x" * 500)
    size = os.path.getsize(path)
    page = int.from_bytes(Path(path).read_bytes()[16:18], "big")
    for left in (600, page, 2 * page, size // 2 // page * page, size - page):
        copy = f"{path}.{left}"
        shutil.copy(path, copy)
        os.truncate(copy, left)
        refused(copy, "damaged")


def test_a_newer_format_is_refused_by_both_numbers(path):
    append(SQLiteStore(path))
    with changed(path) as other:
        other.execute("PRAGMA user_version = 7")
    refused(path, r"uses format 7, .* reads format 2")


CHANGES = ["DROP TRIGGER records_stay", "DROP INDEX records_by_kind", "DROP VIEW ledger_identity"]
CHANGES += ["CREATE TRIGGER more AFTER INSERT ON records BEGIN SELECT 1; END"]


@pytest.mark.parametrize("change", CHANGES)
def test_tables_without_their_triggers_are_not_written_to(path, change):
    append(SQLiteStore(path))
    with changed(path) as other:
        other.execute(change)
    with pytest.raises(TamperedLedgerError, match="not those it was made with"):
        append(SQLiteStore(path))


def test_a_ledger_that_was_removed_is_not_started_anew(path):
    budget = opened(path)
    os.unlink(path)
    for use in (lambda: budget.left, lambda: budget.charge(Pure(1), "x"), lambda: opened(path)):
        with pytest.raises(LedgerError, match="is gone"):
            use()
    with pytest.raises(LedgerError, match=r"is missing, but .*-lock"):
        append(SQLiteStore(path))  # as a process that never saw the ledger does
    os.unlink(path + "-lock")
    Path(path + "-journal").write_bytes(b"x")
    refused(path, "is missing, but .*-journal'")
    assert not os.path.exists(path)


def test_a_hard_link_is_refused_and_a_symbolic_link_followed(path, tmp_path):
    append(SQLiteStore(path))
    os.link(path, tmp_path / "hard.db")
    for name in (path, tmp_path / "hard.db"):
        with pytest.raises(LedgerError, match="2 names"):
            append(SQLiteStore(name))
    os.unlink(tmp_path / "hard.db")
    assert append(SQLiteStore(path)) == 2
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "soft.db"
    link.symlink_to(path)
    store = SQLiteStore(link)
    assert append(store) == 3
    assert os.listdir(tmp_path / "elsewhere") == ["soft.db"]
    link.unlink()
    link.symlink_to(tmp_path / "other.db")
    assert append(store) == 1
    assert len(records(path)) == 3


def test_unfinished_drafts_are_removed_and_nothing_else(path):
    draft = f"{path}-new-123-{'0' * 32}"
    for name in (draft, draft + "-journal", path + "-new-ideas"):
        Path(name).write_text("x")
    append(SQLiteStore(path))
    assert not os.path.exists(draft)
    assert os.path.exists(path + "-new-ideas")
    os.link(path, draft)  # as after a crash between the two steps that put a new ledger in its place
    assert append(SQLiteStore(path)) == 2
    assert os.stat(path).st_nlink == 1


def altered(path, value: str) -> None:
    with changed(path) as other:
        cursor = other.execute("SELECT sql FROM sqlite_master WHERE name = 'records_stay_the_same'")
        (trigger,) = cursor.fetchone()
        other.execute("DROP TRIGGER records_stay_the_same")
        other.execute(f"UPDATE records SET {value}")
        other.execute(trigger)


VALUES = ["hash = x'aa'", "hash = printf('%32s', 1)", "body = x'ff'", "kind = x'63'"]


@pytest.mark.parametrize("value", VALUES)
def test_values_of_other_types_are_tampered_with(path, value):
    append(SQLiteStore(path))
    altered(path, value)
    with pytest.raises(TamperedLedgerError):
        SQLiteStore(path).read(lambda reader: reader.last())


def test_a_text_that_is_not_unicode_is_refused_without_being_quoted(path):
    append(SQLiteStore(path))
    altered(path, "body = CAST(x'73656372657400ff' AS TEXT)")
    with pytest.raises(LedgerError, match="cannot be used") as caught:
        SQLiteStore(path).read(lambda reader: reader.last())
    assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "BEGIN; SELECT * FROM records"])
def test_locks_of_other_programs_only_delay(path, statement):
    append(SQLiteStore(path))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        for part in statement.split("; "):
            other.execute(part).fetchall()
        with pytest.raises(LedgerError, match=r"another program holds it\. Nothing was entered"):
            append(SQLiteStore(path, patience=0.05))
        timer = threading.Timer(0.1, lambda: other.execute("ROLLBACK"))
        timer.start()
        assert append(SQLiteStore(path)) == 2
        timer.join()


# ---------------------------------------------------------------- threads and processes


@forks
def test_processes_enter_each_charge_once_and_never_overspend(path, full):
    processes, charges = (16, 200) if full else (4, 25)
    cap = processes * charges * 9 // 10
    opened(path, cap)
    children = [Child(charges_until_refused, path, name, charges) for name in range(processes)]
    # a charge of one of many processes takes 30 ms where other programs keep all processors busy
    entered = [label for child in children for label in child.value(600)]
    assert sorted(entered) == labels(path)
    assert len(entered) == cap
    assert Ledger(path).budget("s").left == (0, 0)


@forks
def test_a_journal_that_another_process_cleared_is_made_durable_before_it_is_used(path, monkeypatch):
    budget, synced = opened(path), []
    budget.charge(Pure(1), "a")
    sync = os.fsync

    def watched(file):
        synced.append(os.fstat(file).st_ino)
        sync(file)

    monkeypatch.setattr(os, "fsync", watched)  # SQLite calls the system itself
    journal = os.stat(path + "-journal").st_ino
    budget.charge(Pure(1), "b")
    assert synced == []  # the charge before it is durable, as it was reported
    for use in (lambda: budget.charge(Pure(1), "d"), lambda: budget.left):
        Child(charge, path, "c").value()
        use()
        assert synced == [journal]
        synced.clear()


CHARGES = list("abcdefgh")
CELL = "async def cell(): return [await asyncio.to_thread(charge, path, label) for label in CHARGES]"


def by_threads(path):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(partial(charge, path), CHARGES))


def by_tasks(path):
    async def main():
        return await asyncio.gather(*(asyncio.to_thread(charge, path, label) for label in CHARGES))

    return asyncio.run(main())


def by_executors(path):
    async def main():
        run = asyncio.get_running_loop().run_in_executor
        with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            charges = [run(pool, charge, path, label) for label in CHARGES[:4]]
            charges += [run(None, charge, path, label) for label in CHARGES[4:]]
            return await asyncio.gather(*charges)

    return asyncio.run(main())


def by_a_notebook(path):
    def cell():
        names = {"asyncio": asyncio, "charge": charge, "path": path, "CHARGES": CHARGES}
        exec(CELL, names)
        with closing(asyncio.new_event_loop()) as loop:
            return loop.run_until_complete(names["cell"]())

    return in_thread(cell)


def by_processes(path, method="fork"):
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.starmap(charge, [(path, label) for label in CHARGES])


SPAWNED = partial(by_processes, method="spawn")


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "run",
    [by_threads, by_tasks, by_executors, by_a_notebook, by_processes,
     pytest.param(SPAWNED, marks=pytest.mark.full, id="by_spawned_processes")],
)  # fmt: skip
def test_threads_tasks_and_processes_share_a_budget(path, run):
    opened(path).charge(Pure(1), "before")
    assert sorted(run(path)) == CHARGES
    charge(path, "then")
    assert labels(path) == sorted(["before", *CHARGES, "then"])


@forks
@pytest.mark.parametrize("run", [SQLiteStore.read, SQLiteStore.write])
def test_a_fork_within_a_transaction_leaves_it_to_the_parent(path, run):
    append(SQLiteStore(path), "before")
    parent, refusals, pids, committed = os.getpid(), [], [], Bell()
    answers, answer = os.pipe()

    def work(records):
        if run == SQLiteStore.write:
            records.append(link(records.last(), "s", "charge", None, {"text": "parent"}))
        pids.append(os.fork())
        if os.getpid() == parent:
            os.close(answer)
            assert select.select([answers], [], [], 60)[0], "the child hangs"

    try:
        run(SQLiteStore(path), work)
    except LedgerError as error:
        refusals.append(str(error))
    if os.getpid() != parent:  # the child, which has left the transaction by the same frames
        try:
            gc.collect()
            with pytest.raises(LedgerError):
                append(SQLiteStore(path, patience=0.05), "child")
            os.write(answer, json.dumps(refusals).encode())
            committed.wait()
            with suppress(LedgerError):
                append(SQLiteStore(path, patience=0.05))
            os.write(answer, b"!")
        finally:
            os._exit(0)
    (refusal,) = json.loads(os.read(answers, 10_000))
    assert "was in use when this process was forked" in refusal
    append(SQLiteStore(path, patience=1), "after")  # the child is there, and holds no lock
    committed.ring()
    os.waitpid(pids[0], 0)
    assert os.read(answers, 1) == b"!"
    entered = ["before", "parent", "after"] if run == SQLiteStore.write else ["before", "after"]
    assert texts(path)[: len(entered)] == entered
    assert SQLiteStore(path).read(lambda reader: reader.damage(9)) == []


@forks
def test_a_suspended_writer_keeps_others_waiting(path):
    append(SQLiteStore(path), "before")

    def suspended(writer):
        writer.append(link(writer.last(), "s", "charge", None, {"text": "suspended"}))
        shutil.copy(path, path + ".copy")  # takes the locks of SQLite away, but not that of the ledger
        os.kill(os.getpid(), signal.SIGSTOP)

    child = Child(SQLiteStore(path).write, suspended)
    os.waitpid(child.pid, os.WUNTRACED)
    hasty = SQLiteStore(path, patience=0.05)
    with pytest.raises(LedgerError, match=r"nother process or thread.*Nothing was entered"):
        append(hasty)
    with pytest.raises(LedgerError, match="nother process or thread"):
        hasty.read(lambda reader: reader.last())
    timer = threading.Timer(0.1, os.kill, (child.pid, signal.SIGCONT))
    timer.start()
    assert append(SQLiteStore(path), "waited") == 3
    timer.join()
    child.value()
    assert texts(path) == ["before", "suspended", "waited"]


def test_too_few_file_descriptors_are_not_reported_as_missing_rights(path):
    """A process may open so many files more: too few for a transaction, whichever of them it opens last."""
    budget = Ledger(path).open("survey", Pure(1))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = [os.open(os.devnull, os.O_RDONLY)]
    texts = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors[0] + 20, before[1]))
        with suppress(OSError):
            while True:
                descriptors.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(6):
            try:
                budget.charge(Pure("0.1"), "count")
            except LedgerError as error:
                texts.append(str(error))
            os.close(descriptors.pop())
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(texts) >= 2
    assert all("too many files are open" in text for text in texts), texts
    budget.charge(Pure("0.1"), "count")
