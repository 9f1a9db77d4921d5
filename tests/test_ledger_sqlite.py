"""The store of a durable ledger in one SQLite file: serial, durable, and never silently short of a record."""

from __future__ import annotations

import ctypes
import fcntl
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pdprivacy.errors import LedgerError, ParameterError, TamperedLedgerError
from pdprivacy.ledger import chain, database, files, locks, shared
from pdprivacy.ledger.sqlite import SQLiteStore
from tests.support.processes import STORE_ALONE

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "budget.db")


def append(store, budget="study", kind="charge", release=None, **body) -> int:
    with store.writing() as writer:
        row = chain.link(writer.last(), budget, kind, release, body)
        writer.append(row)
    return row.number


def whole(path, after=None) -> list[Any]:
    """All records, each of which follows from the one before."""
    with SQLiteStore(path).reading() as reader:
        rows = list(reader.rows())
    before = chain.ROOT
    for number, row in enumerate(rows, 1):
        assert row.number == number
        chain.check(row, before)
        chain.parse(row)
        before = row.hash
    return rows


def texts(path) -> list[Any]:
    return [json.loads(row.body).get("text") for row in whole(path)]


class Child:
    """A forked process that does what it is told, and tells what came of it."""

    def __init__(self, action: Callable[..., Any], *given: Any) -> None:
        self.end, end = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is what is tested
            self.pid = os.fork()
        if self.pid:
            os.close(end)
            return
        os.close(self.end)
        try:
            told = {"value": action(*given)}
        except LedgerError as error:
            told = {"error": type(error).__name__, "text": str(error)}
        except BaseException:
            told = {"raw": traceback.format_exc()}
        os.write(end, json.dumps(told).encode())
        os._exit(0)

    def result(self) -> dict[str, Any]:
        with os.fdopen(self.end, "rb") as stream:
            text = stream.read()
        os.waitpid(self.pid, 0)
        told = json.loads(text)
        assert "raw" not in told, told["raw"]
        return told

    def value(self) -> Any:
        told = self.result()
        assert "value" in told, told
        return told["value"]


class Bell:
    """One byte from one process to another."""

    def __init__(self) -> None:
        self.ends = os.pipe()

    def ring(self) -> None:
        os.write(self.ends[1], b"!")

    def wait(self) -> None:
        assert os.read(self.ends[0], 1) == b"!"


# the protocol


def test_records_come_back_as_they_were_entered(path):
    store = SQLiteStore(path)
    assert store.address == path
    rows = []
    for budget, kind, release in (
        ("", "ledger", None),
        ("b", "open", None),
        ("a", "open", None),
        ("b", "charge", "r1"),
        ("a", "charge", "r1"),
        ("b", "charge", None),
        ("b", "answer", None),
    ):
        row = chain.link(rows[-1] if rows else None, budget, kind, release, {"text": "µ"})
        with store.writing() as writer:
            assert writer.last() == (rows[-1] if rows else None)
            writer.append(row)
            assert writer.last() == row
        rows.append(row)
    with store.reading() as reader:
        assert list(reader.rows()) == rows
        assert reader.last() == rows[-1]
        assert [reader.at(number) for number in (0, 1, 7, 8, -1)] == [None, rows[0], rows[6], None, None]
        assert reader.latest("b", "charge") == rows[5]
        assert reader.latest("a", "answer") is None
        assert reader.released("a", "r1") == rows[4]
        assert reader.released("a", "r2") is None
        assert list(reader.rows("b")) == [rows[1], rows[3], rows[5], rows[6]]
        assert list(reader.rows("b", after=4)) == [rows[5], rows[6]]
        assert list(reader.rows(after=6)) == [rows[6]]
        assert reader.budgets() == ["b", "a"]


def test_many_records_are_read_in_pieces_and_at_one_moment(path):
    store = SQLiteStore(path)
    with store.writing() as writer:
        row = None
        for number in range(700):
            row = chain.link(row, f"b{number % 3}", "charge", None, {})
            writer.append(row)
        assert len(list(writer.rows())) == 700
    with store.reading() as reader:
        rows = reader.rows("b1")
        first = next(rows)
        append(store, "b1")
        assert [row.number for row in (first, *rows)] == list(range(2, 701, 3))
        assert reader.last().number == 700
    assert len(whole(path)) == 701


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64, 10**40, -(10**40)])
def test_numbers_beyond_the_database_are_not_there(path, number):
    store = SQLiteStore(path)
    append(store)
    with store.reading() as reader:
        assert reader.at(number) is None
        assert len(list(reader.rows(after=number))) == (number < 0)
        assert reader.released("\ud800", "\ud800") is None
        assert list(reader.rows("\ud800")) == []


def test_the_block_rolls_back_and_lets_the_error_through(path):
    store = SQLiteStore(path)
    append(store)

    def stopped(error):
        with store.writing() as writer:
            writer.append(chain.link(writer.last(), "b", "charge", None, {}))
            raise error

    for error in (KeyboardInterrupt, ZeroDivisionError, SystemExit):
        with pytest.raises(error):
            stopped(error)
    assert append(store) == 2
    assert len(whole(path)) == 2


def append_both(store, bad, good):
    with store.writing() as writer:
        for row, match in ((bad, "Nothing was entered"), (good, "An earlier step")):
            with pytest.raises(LedgerError, match=match):
                writer.append(row)


def test_what_does_not_follow_is_refused_and_nothing_of_the_block_is_entered(path):
    store = SQLiteStore(path)
    append(store, release="r")
    with store.reading() as reader:
        last = reader.last()
    good = chain.link(last, "study", "charge", None, {})
    for bad in (
        last,
        good._replace(number=4),
        good._replace(release="r"),
        good._replace(number=10**30),
        good._replace(body="\ud800"),
        good._replace(hash=None),
    ):
        with pytest.raises(LedgerError, match="Nothing was entered"), store.writing() as writer:
            writer.append(bad)
        with pytest.raises(LedgerError, match=r"failed\. Nothing was entered"):  # at the end of the block
            append_both(store, bad, good)
    assert whole(path) == [last]


def test_records_are_used_within_their_block(path):
    store = SQLiteStore(path)
    with store.writing() as writer:
        pass
    with store.reading() as reader:
        rows = reader.rows()
    for use in (
        lambda: writer.append(chain.link(None, "b", "charge", None, {})),
        reader.last,
        lambda: list(rows),
    ):
        with pytest.raises(LedgerError, match="after the end of their block"):
            use()


def test_a_thread_writes_one_block_at_a_time(path):
    store = SQLiteStore(path)
    with store.writing() as writer:
        writer.append(chain.link(None, "b", "charge", None, {}))
        with pytest.raises(LedgerError, match="already"), SQLiteStore(path).writing():
            pass
        store.close()
        with pytest.raises(LedgerError, match=r"Another thread.*Nothing was entered"):
            in_thread(lambda: append(SQLiteStore(path, patience=0.05)))
    assert len(whole(path)) == 1


def in_thread(action):
    told: list[Any] = []

    def run():
        try:
            told.append((action(), None))
        except BaseException as error:
            told.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    value, error = told[0]
    if error is not None:
        raise error
    return value


def test_readers_and_writers_do_not_wait_for_each_other(path):
    store = SQLiteStore(path, patience=0.5)
    append(store)
    with store.writing() as writer:
        writer.append(chain.link(writer.last(), "b", "charge", None, {}))
        for read in (lambda: len(whole(path)), lambda: in_thread(lambda: len(whole(path)))):
            assert read() == 1
    with store.reading() as reader:
        assert append(store) == 3
        assert in_thread(lambda: append(store)) == 4
        assert reader.last().number == 2
    assert len(whole(path)) == 4


@forks
def test_readers_and_writers_of_other_processes_do_not_wait(path):
    append(SQLiteStore(path))
    begun, done = Bell(), Bell()

    def write():
        with SQLiteStore(path).writing() as writer:
            begun.ring()
            done.wait()
            writer.append(chain.link(writer.last(), "b", "charge", None, {}))

    def read():
        with SQLiteStore(path).reading() as reader:
            begun.ring()
            done.wait()
            return reader.last().number

    child = Child(write)
    begun.wait()
    assert len(whole(path)) == 1
    with pytest.raises(LedgerError, match=r"Another process.*Nothing was entered"):
        append(SQLiteStore(path, patience=0.05))
    done.ring()
    child.value()
    child = Child(read)
    begun.wait()
    assert append(SQLiteStore(path, patience=0.5)) == 3
    done.ring()
    assert child.value() == 2


# settings and files


def test_a_commit_is_set_to_be_durable(path):
    store = SQLiteStore(path)
    append(store)
    connection = shared.shared(path).connection
    for pragma, value in (
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("page_size", 2048),
        ("user_version", 1),
    ):
        assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)
    store.close()
    assert sorted(os.listdir(os.path.dirname(path))) == ["budget.db", "budget.db-lock"]
    assert Path(path).read_bytes()[68:72] == b"pdPr"


def test_records_can_be_neither_changed_nor_removed_by_other_programs(path):
    append(SQLiteStore(path), release="r")
    append(SQLiteStore(path))
    before = whole(path)
    other = sqlite3.connect(path)
    for statement in (
        "UPDATE records SET body = ''",
        "DELETE FROM records",
        "INSERT OR REPLACE INTO records SELECT 1, budget, kind, 'x', body, hash FROM records LIMIT 1",
        'REPLACE INTO records SELECT 3, budget, kind, "release", body, hash FROM records WHERE number = 1',
        "INSERT INTO records SELECT 9, budget, kind, 'x', body, hash FROM records LIMIT 1",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="appended"):
            other.execute(statement)
        other.rollback()
    other.close()
    assert whole(path) == before


def test_making_a_store_touches_nothing_and_reading_makes_nothing(path, tmp_path):
    store = SQLiteStore(path)
    with pytest.raises(LedgerError, match="There is no ledger"), store.reading():
        pass
    store.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("wrong", [5, None, "", "a\0b", b"a"])
def test_paths_that_are_none(wrong):
    with pytest.raises(ParameterError, match="'path'"):
        SQLiteStore(wrong)


def test_the_patience_is_a_number_of_seconds():
    for wrong in (-1, float("nan"), float("inf"), "1"):
        with pytest.raises(ParameterError, match="'patience'"):
            SQLiteStore("x", patience=wrong)


def refused(path, match, store=None):
    """Neither read nor written; what lies there stays as it is."""
    store = SQLiteStore(path, patience=2) if store is None else store
    with pytest.raises(LedgerError, match=match), store.reading():
        pass
    with pytest.raises(LedgerError, match=match):
        append(store)


def test_what_is_no_ledger_is_refused_and_stays(tmp_path):
    foreign = tmp_path / "foreign.db"
    other = sqlite3.connect(foreign)
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    (tmp_path / "empty.db").write_bytes(b"")
    (tmp_path / "short.db").write_bytes(b"SQLite format 3\0")
    (tmp_path / "text.db").write_text("no database at all" * 100)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    refused(foreign, "but no ledger")
    refused(tmp_path / "empty.db", "holds 0 bytes")
    refused(tmp_path / "short.db", "holds 16 bytes")
    refused(tmp_path / "text.db", "no ledger, or it is damaged")
    refused(tmp_path, "not a plain file")
    refused(tmp_path / "no" / "budget.db", r"directory .* does not exist")
    refused(foreign / "budget.db", r"directory .* does not exist")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_truncated_ledger_is_refused(path):
    for _ in range(30):
        append(SQLiteStore(path), text="x" * 300)
    SQLiteStore(path).close()
    size = os.path.getsize(path)
    for left in (600, 2048, 4096, size // 2, size - 2048):
        copy = f"{path}.{left}"
        shutil.copy(path, copy)
        os.truncate(copy, left)
        refused(copy, "damaged")


def test_a_newer_format_is_refused_by_both_numbers(path):
    append(SQLiteStore(path))
    SQLiteStore(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 7")
    other.close()
    refused(path, r"has format 7, .* knows format 1")


def test_tables_without_their_triggers_are_not_written_to(path):
    append(SQLiteStore(path))
    SQLiteStore(path).close()
    other = sqlite3.connect(path)
    other.execute("DROP TRIGGER records_stay")
    other.close()
    with pytest.raises(TamperedLedgerError, match="not those it was made with"):
        append(SQLiteStore(path))


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_log_without_its_ledger_is_not_written_over(path, end):
    Path(path + end).write_bytes(b"x")
    refused(path, "is missing, but")


def test_a_ledger_that_was_removed_is_not_started_anew(path):
    store = SQLiteStore(path)
    append(store)
    for end in ("", "-wal", "-shm"):
        os.unlink(path + end)
    for _ in range(2):
        with pytest.raises(LedgerError, match="is gone"):
            append(store)
        with pytest.raises(LedgerError, match="is gone"), store.reading():
            pass
    assert not os.path.exists(path)


def test_a_second_name_is_refused_and_a_symbolic_link_followed(path, tmp_path):
    append(SQLiteStore(path))
    os.link(path, tmp_path / "hard.db")
    refused(path, "2 names")
    refused(tmp_path / "hard.db", "2 names")
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
    assert len(whole(path)) == 3


@pytest.mark.parametrize("name", ["a b%20?c#d&e.db", "ü'\".db", "-new-.db"])
def test_odd_names_are_names(tmp_path, name):
    append(SQLiteStore(tmp_path / name))
    assert (tmp_path / name).is_file()
    assert len(whole(tmp_path / name)) == 1


def test_what_a_crash_left_is_removed_and_nothing_else(path):
    left = f"{path}-new-123-{'0' * 32}"
    for name in (left, left + "-journal", path + "-new-ideas"):
        Path(name).write_text("x")
    append(SQLiteStore(path))
    assert not os.path.exists(left)
    assert os.path.exists(path + "-new-ideas")
    os.link(path, left)  # a crash between the two steps of putting a new ledger in place
    assert len(whole(path)) == 1
    SQLiteStore(path).close()
    assert append(SQLiteStore(path)) == 2
    assert os.stat(path).st_nlink == 1


def test_values_of_other_types_are_tampered_with(path):
    for column, value in (("hash", b"short"), ("hash", "x" * 32), ("body", b"\xff"), ("kind", b"charge")):
        copy = f"{path}.{column}{len(value)}{type(value).__name__}"
        append(SQLiteStore(copy))
        SQLiteStore(copy).close()
        other = sqlite3.connect(copy)
        other.execute("DROP TRIGGER records_stay_the_same")
        other.execute(f"UPDATE records SET {column} = ?", (value,))
        other.execute(database.SCHEMA["records_stay_the_same"])
        other.commit()
        other.close()
        with SQLiteStore(copy).reading() as reader, pytest.raises(TamperedLedgerError):
            reader.last()


def test_a_text_that_is_none_is_refused_without_being_quoted(path):
    append(SQLiteStore(path))
    SQLiteStore(path).close()
    other = sqlite3.connect(path)
    other.execute("DROP TRIGGER records_stay_the_same")
    other.execute("UPDATE records SET body = CAST(x'73656372657400ff' AS TEXT)")
    other.commit()
    other.close()
    with SQLiteStore(path).reading() as reader, pytest.raises(LedgerError, match="as text") as caught:
        reader.last()
    assert "secret" not in str(caught.value)


def test_other_programs_that_write_only_delay(path):
    append(SQLiteStore(path))
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match=r"another program holds it\. Nothing was entered"):
        append(SQLiteStore(path, patience=0.2))
    timer = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
    timer.start()
    assert append(SQLiteStore(path, patience=20)) == 2
    timer.join()
    other.close()


# copies


def test_a_backup_is_a_ledger(path, tmp_path):
    store = SQLiteStore(path)
    for _ in range(3):
        append(store, text="x")
    before = whole(path)
    with store.writing() as writer:  # of what is entered, not of what is under way
        writer.append(chain.link(writer.last(), "b", "charge", None, {}))
        store.backup(tmp_path / "copy.db")
    assert whole(tmp_path / "copy.db") == before
    assert append(SQLiteStore(tmp_path / "copy.db")) == 4
    names = set(os.listdir(tmp_path))
    for target in (tmp_path / "copy.db", path, tmp_path):
        with pytest.raises(LedgerError, match="exists already"):
            store.backup(target)
    with pytest.raises(LedgerError, match="does not exist"):
        store.backup(tmp_path / "no" / "copy.db")
    assert set(os.listdir(tmp_path)) == names
    with store.reading() as reader:
        assert reader.damage() == []


def test_a_copy_by_vacuum_becomes_a_ledger_that_is_durable(path, tmp_path):
    append(SQLiteStore(path))
    SQLiteStore(path).close()
    other = sqlite3.connect(path)
    other.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    other.close()
    assert len(whole(tmp_path / "copy.db")) == 1
    assert append(SQLiteStore(tmp_path / "copy.db")) == 2
    connection = shared.shared(str(tmp_path / "copy.db")).connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_closing_a_reader_leaves_the_log(path):
    append(SQLiteStore(path))
    other = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    other.execute("SELECT count(*) FROM records").fetchone()
    shutil.copy(path, path + ".lost")  # takes all locks of this process
    log = os.stat(path + "-wal")
    other.close()
    whole(path)
    assert os.stat(path + "-wal") == log


COPIES: dict[str, Callable[[str], None]] = {
    "file": lambda path: shutil.copy(path, path + ".copy"),
    "directory": lambda path: shutil.copytree(os.path.dirname(path), os.path.dirname(path) + ".copy"),
    "read": lambda path: Path(path).read_bytes(),
    "shm": lambda path: Path(path + "-shm").read_bytes(),
}


@pytest.mark.full(keep=2)
@forks
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("reading", [False, True])
def test_a_copy_within_a_process_loses_no_record(tmp_path, copy, reading):
    (tmp_path / "d").mkdir()
    path = str(tmp_path / "d" / "budget.db")
    copied, other_done = Bell(), Bell()

    def first():
        store = SQLiteStore(path)
        entered = [append(store, text="A1")]
        COPIES[copy](path)
        copied.ring()
        other_done.wait()
        for text in ("A2", "A3"):
            try:
                append(store, text=text)
                entered.append(text)
            except LedgerError as error:
                told = str(error)
                with pytest.raises(LedgerError, match="restart this process"):
                    whole(path)
                assert "Nothing was entered" in told
        return entered[1:]

    def second():
        store = SQLiteStore(path)
        append(store, text="B1")
        append(store, text="B2")
        store.close()

    def look():
        for _ in range(3):
            whole(path)

    child = Child(first)
    copied.wait()
    if reading:
        Child(look).value()
    Child(second).value()
    other_done.ring()
    entered = child.value()
    assert texts(path) == ["A1", "B1", "B2", *entered]
    assert append(SQLiteStore(path), text="C") == 4 + len(entered)
    if copy == "shm":  # the lock on the database is kept, so nothing is taken away
        assert entered == ["A2", "A3"]


@forks
@pytest.mark.parametrize("copy", ["file", "directory"])
def test_locks_lost_by_a_copy_are_taken_again(tmp_path, copy):
    (tmp_path / "d").mkdir()
    path = str(tmp_path / "d" / "budget.db")
    store = SQLiteStore(path)
    append(store, text="A1")
    COPIES[copy](path)
    append(store, text="A2")
    begun, done = Bell(), Bell()

    def second():  # without a fork in between, which would close the connection of this process
        begun.wait()
        append(SQLiteStore(path), text="B")
        SQLiteStore(path).close()
        done.ring()

    child = Child(second)
    append(store, text="A3")
    shutil.copy(path, path + ".copy2")
    append(store, text="A4")
    begun.ring()
    done.wait()
    child.value()
    append(store, text="A5")
    assert texts(path) == ["A1", "A2", "A3", "A4", "B", "A5"]


REPLACED = """
import gc, os, sys
from pdprivacy.ledger import chain
from pdprivacy.ledger.sqlite import SQLiteStore
path, copy = sys.argv[1:]
store = SQLiteStore(path)
def append(text):
    with store.writing() as writer:
        writer.append(chain.link(writer.last(), "b", "charge", None, {"text": text}))
append("1")
store.backup(copy)
append("2")
for end in ("-wal", "-shm"):
    os.unlink(path + end)
os.replace(copy, path)
append("3")
gc.collect()
log = os.stat(path + "-wal").st_ino
append("4")
assert os.stat(path + "-wal").st_ino == log
"""


def test_a_ledger_replaced_by_a_copy_is_opened_anew(path, tmp_path):
    command = [sys.executable, "-c", STORE_ALONE + REPLACED, path, str(tmp_path / "copy.db")]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=True, timeout=60)
    assert texts(path) == ["1", "3", "4"]  # the chain says that "2" is missing to whoever has seen it


def test_a_process_that_only_reads_leaves_one_file(path, tmp_path):
    append(SQLiteStore(path))
    SQLiteStore(path).close()
    whole(path)
    SQLiteStore(path).close()
    assert sorted(os.listdir(tmp_path)) == ["budget.db", "budget.db-lock"]


def test_an_old_log_beside_a_replaced_ledger_is_refused(path, tmp_path):
    store = SQLiteStore(path)
    append(store)
    store.backup(tmp_path / "old.db")
    append(store)
    os.replace(tmp_path / "old.db", path)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"exchanged.*Nothing was entered"):
            append(store)
    for end in ("-wal", "-shm"):
        os.unlink(path + end)
    assert append(store) == 2


def test_a_log_that_vanished_during_a_commit_is_told(path):
    store = SQLiteStore(path)
    append(store)

    def lost():
        with store.writing() as writer:
            writer.append(chain.link(writer.last(), "b", "charge", None, {}))
            os.unlink(path + "-wal")

    with pytest.raises(LedgerError, match="Whether it was entered is not known"):
        lost()
    with pytest.raises(LedgerError, match="Nothing was entered"):
        append(store)


def test_a_renamed_ledger_is_not_used_under_both_names(path, tmp_path):
    store = SQLiteStore(path)
    append(store)
    os.rename(path, tmp_path / "new.db")
    with pytest.raises(LedgerError, match="Nothing was entered"):
        append(SQLiteStore(tmp_path / "new.db"))
    with pytest.raises(LedgerError, match="Nothing was entered"):
        append(store)
    os.rename(tmp_path / "new.db", path)
    assert len(whole(path)) == 1


# the lock file, which stays open between transactions


def leading_to(path) -> list[int]:
    """The descriptors of this process that lead to a file."""
    numbers = map(int, os.listdir("/proc/self/fd"))
    return [one for one in numbers if os.path.realpath(f"/proc/self/fd/{one}").startswith(path)]


procfs = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are listed in /proc")


@procfs
def test_the_lock_file_is_open_as_long_as_the_ledger_is(path):
    store = SQLiteStore(path)
    for _ in range(3):
        append(store)
        (first,) = leading_to(path + "-lock")
        assert shared.shared(path).lock.descriptor == first
    store.close()
    assert leading_to(path) == []
    assert append(store) == 4


@procfs
def test_a_ledger_that_cannot_be_opened_keeps_no_file_open(path):
    Path(path).write_text("no database at all" * 100)
    with pytest.raises(LedgerError):
        append(SQLiteStore(path))
    assert leading_to(path) == []


@forks
@pytest.mark.parametrize("how", ["deleted", "replaced", "renamed"])
def test_another_lock_file_is_the_one_to_lock(path, how):
    store, hasty = SQLiteStore(path), SQLiteStore(path, patience=0.05)
    append(store)
    before = shared.shared(path).lock.descriptor
    if how == "deleted":
        os.unlink(path + "-lock")
    elif how == "renamed":
        os.rename(path + "-lock", path + "-lock.old")
    else:
        Path(path + "-lock.new").touch()
        os.replace(path + "-lock.new", path + "-lock")
    other = os.open(path + "-lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(LedgerError, match=r"Another process.*Nothing was entered"):
        append(hasty)
    fcntl.flock(other, fcntl.LOCK_UN)
    assert append(store) == 2
    now = shared.shared(path).lock.descriptor
    assert os.path.sameopenfile(now, other)
    assert now == before or not os.path.sameopenfile(before, other)
    os.close(other)


@forks
def test_no_two_processes_hold_the_lock_whose_file_goes(path):
    def work(name):
        lock = locks.Lock(path)
        for turn in range(100):
            lock.acquire(time.monotonic() + 60)
            os.close(os.open(path + ".held", os.O_CREAT | os.O_EXCL))
            if turn % 10 == name:
                os.unlink(path + "-lock")  # the others wait for a file that is no longer there
            os.unlink(path + ".held")
            if turn % 3:
                lock.release()
            else:
                lock.close()
        return "done"

    children = [Child(work, name) for name in range(4)]
    assert [child.value() for child in children] == ["done"] * 4


@forks
@procfs
def test_a_child_inherits_no_lock_file(path):
    append(SQLiteStore(path))
    assert Child(lambda: leading_to(path + "-lock")).value() == []
    assert leading_to(path + "-lock") == []  # closed before the fork
    store = SQLiteStore(path)
    with store.writing() as writer:  # where it has to, as within a transaction, it lets go of it
        assert Child(lambda: leading_to(path + "-lock")).value() == []
        told = Child(lambda: locks.Lock(path).acquire(time.monotonic())).result()
        assert "Another process holds" in told["text"]
        writer.append(chain.link(writer.last(), "b", "charge", None, {}))
    assert append(store) == 3


@forks
def test_a_lock_that_a_fork_doubled_is_that_of_the_parent(path):
    lock = locks.Lock(path)
    lock.acquire(time.monotonic())
    end = os.pipe()
    pid = ctypes.PyDLL(None).fork()  # which Python is not told of
    if pid == 0:
        told = []
        for _ in range(2):
            lock.release()
            try:
                lock.acquire(time.monotonic())
            except LedgerError:
                told.append("refused")
        os.write(end[1], json.dumps(told).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert json.loads(os.read(end[0], 99)) == ["refused"] * 2
    with pytest.raises(LedgerError):
        locks.Lock(path).acquire(time.monotonic())
    lock.release()
    other = locks.Lock(path)
    other.acquire(time.monotonic())
    other.close()
    lock.close()


def test_a_descriptor_that_others_closed_is_not_used(path, tmp_path):
    store = SQLiteStore(path)
    append(store)
    number = shared.shared(path).lock.descriptor
    os.close(number)
    assert append(store) == 2
    number = shared.shared(path).lock.descriptor
    os.close(number)
    (tmp_path / "theirs").touch()
    theirs = os.open(tmp_path / "theirs", os.O_RDWR)
    os.dup2(theirs, number)
    assert append(store) == 3
    again = os.open(tmp_path / "theirs", os.O_RDWR)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)  # neither locked
    store.close()
    assert os.path.sameopenfile(number, theirs)  # nor closed
    for one in {number, theirs, again}:
        os.close(one)


def waits_for_a_quiet_folder(store, monkeypatch):
    """The folder of a ledger that was looked at well after its last change."""
    monkeypatch.setattr(files, "TICK", 4 * 10**7)
    append(store)
    for _ in range(1000):
        append(store)
        if store._shared().folder.ask():
            return store._shared().folder
        time.sleep(0.01)
    raise AssertionError("the folder changes on and on")


@forks
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-lock"])
def test_a_file_put_in_the_place_of_another_is_seen_by_its_folder(path, end, monkeypatch):
    store = SQLiteStore(path)
    folder = waits_for_a_quiet_folder(store, monkeypatch)
    before = store._shared().files
    os.rename(path + end, path + ".was")
    assert not folder.ask()
    Child(lambda: shutil.copyfile(path + ".was", path + end)).result()
    assert not folder.ask()
    if end == "-lock":
        append(store)
        assert store._shared().files.main == before.main
    else:
        with pytest.raises(LedgerError, match="Nothing was entered"):
            append(store)
    assert not folder.steady


def test_a_folder_that_has_just_changed_is_not_believed_to_stay(path, monkeypatch):
    store = SQLiteStore(path)
    folder = waits_for_a_quiet_folder(store, monkeypatch)
    open(path + ".new", "x").close()
    assert not folder.ask()
    folder.trust()  # a second change in this tick would leave the same time
    assert not folder.ask()
    os.rename(os.path.dirname(path), os.path.dirname(path) + ".was")
    assert not folder.ask()


@forks
def test_a_path_that_became_a_link_leads_to_the_lock_of_its_target(path, tmp_path):
    store, other = SQLiteStore(path), str(tmp_path / "other.db")
    append(store)
    append(SQLiteStore(other))
    SQLiteStore(other).close()
    for end in ("", "-wal", "-shm"):
        os.rename(path + end, f"{path}.was{end}")
    os.symlink(other, path)
    with pytest.raises(LedgerError, match="Nothing was entered"):
        append(store)
    assert append(store) == 2
    assert store._shared().path == os.path.realpath(other)


def test_files_are_the_same_whoever_is_asked(path, monkeypatch):
    append(SQLiteStore(path))
    found = files.look(path)
    log = os.stat(path + "-wal")
    assert found.log == (log.st_dev, log.st_ino)
    assert files.look(path + ".no") == (None, None, None)
    for statx in (None, lambda *_: -1, lambda *_: 0):  # not there, refused, without an answer
        monkeypatch.setattr(files, "STATX", statx)
        assert files.look(path) == found
        assert files.look(path + ".no") == (None, None, None)


# many processes


def appends(path, name, count):
    store = SQLiteStore(path)
    for number in range(count):
        append(store, text=f"{name}.{number}")
    store.close()


PEERS, LEAST, MOST = 16, 50, 8_000


def appends_with_others(path, name, finished):
    """Until each of all has so many records, or all together far more than that takes; how many it has."""
    store, number, last = SQLiteStore(path), 0, 0
    while last < MOST and len(os.listdir(finished)) < PEERS:
        last = append(store, text=f"{name}.{number}")
        number += 1
        if number == LEAST:
            (finished / str(name)).touch()
    store.close()
    return number


@pytest.mark.full
@forks
def test_sixteen_processes_append_in_turn_and_none_starves(path, tmp_path):
    """Each has its fifty records before all together have ten times as many, while all go on; and every
    one of them gets an answer, as a LedgerError of a child would be raised here. No clock is looked at."""
    finished = tmp_path / "finished"
    finished.mkdir()
    children = [Child(appends_with_others, path, name, finished) for name in range(PEERS)]
    counts = [child.value() for child in children]
    assert min(counts) >= LEAST
    assert not os.path.exists(path + "-wal")
    found = texts(path)
    assert len(found) == sum(counts)
    for name, count in enumerate(counts):
        own = [text for text in found if text.split(".")[0] == str(name)]
        assert own == [f"{name}.{number}" for number in range(count)]


SCRIPT = """
import sys
from pdprivacy.ledger import chain
from pdprivacy.ledger.sqlite import SQLiteStore
store = SQLiteStore(sys.argv[1])
for number in range(int(sys.argv[2])):
    with store.writing() as writer:
        writer.append(chain.link(writer.last(), "b", "charge", None, {"text": "script"}))
"""


@pytest.mark.full
def test_processes_that_were_started_anew_append_in_turn(path):
    command = [sys.executable, "-c", STORE_ALONE + SCRIPT, path, "60"]
    started = [subprocess.Popen(command, cwd=Path(__file__).parents[1]) for _ in range(3)]
    assert [one.wait(60) for one in started] == [0, 0, 0]
    assert not os.path.exists(path + "-wal")  # closed at exit
    assert texts(path) == ["script"] * 180


def test_threads_append_in_turn(path):
    threads = [threading.Thread(target=appends, args=(path, name, 25)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(whole(path)) == 200


# forks


@forks
@pytest.mark.parametrize("first", ["parent", "child"])
def test_parent_and_child_go_on(path, first):
    store = SQLiteStore(path)
    append(store, text="before")
    bell = Bell()

    def child():
        if first == "parent":
            bell.wait()
        append(store, text="child")
        nested = Child(lambda: append(store, text="nested"))
        append(store, text="child")
        nested.value()
        store.close()
        if first == "child":
            bell.ring()

    forked = Child(child)
    if first == "child":
        bell.wait()
    append(store, text="parent")
    store.close()
    if first == "parent":
        bell.ring()
    forked.value()
    append(store, text="parent")
    assert sorted(texts(path)) == ["before", "child", "child", "nested", "parent", "parent"]


@forks
def test_processes_of_multiprocessing_append(path):
    append(SQLiteStore(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=appends, args=(path, name, 20)) for name in range(4)]
        for process in processes:
            process.start()
            append(SQLiteStore(path))
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
    assert len(whole(path)) == 85


@pytest.mark.full
@forks
def test_a_fork_beside_a_thread_that_appends(path):
    append(SQLiteStore(path))
    stop = threading.Event()
    entered: list[int] = []

    def busy():
        while not stop.is_set():
            entered.append(append(SQLiteStore(path), text="thread"))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            Child(lambda: append(SQLiteStore(path), text="child")).value()
    finally:
        stop.set()
        thread.join(60)
    found = texts(path)
    assert found.count("child") == 10
    assert found.count("thread") == len(entered)


@forks
def test_a_fork_within_a_transaction_leaves_it_to_the_parent(path):
    store = SQLiteStore(path)
    append(store, text="before")
    with store.writing() as writer:
        writer.append(chain.link(writer.last(), "b", "charge", None, {"text": "parent"}))

        def child():
            with pytest.raises(LedgerError, match="forked"):
                writer.append(chain.link(None, "b", "charge", None, {}))
            shared._close_all()
            with pytest.raises(LedgerError, match="Nothing was entered"):
                append(SQLiteStore(path, patience=0.1))
            shared._close_all()

        Child(child).value()
        assert os.path.exists(path + "-wal")
    append(store, text="after")
    assert texts(path) == ["before", "parent", "after"]


@forks
def test_a_child_forked_by_a_signal_cannot_commit_for_its_parent(path):
    store = SQLiteStore(path)
    append(store, text="before")
    end = os.pipe()
    pids: list[int] = []

    def handle(*_):
        pids.append(os.fork())

    old = signal.signal(signal.SIGUSR1, handle)
    try:
        with store.writing() as writer:
            writer.append(chain.link(writer.last(), "b", "charge", None, {"text": "parent"}))
            me = os.getpid()
            signal.raise_signal(signal.SIGUSR1)
            writer.end()
            if not pids[0]:
                raise ChildError
    except ChildError:
        os.write(end[1], b"rolled back")
        os._exit(0)
    finally:
        signal.signal(signal.SIGUSR1, old)
        assert os.getpid() == me
    os.waitpid(pids[0], 0)
    assert os.read(end[0], 99) == b"rolled back"
    append(store, text="after")
    assert texts(path) == ["before", "parent", "after"]


class ChildError(Exception):
    pass


@forks
def test_a_transaction_that_a_fork_doubled_is_committed_once(path):
    store = SQLiteStore(path)
    append(store, text="before")
    me = os.getpid()
    end = os.pipe()
    try:
        with store.writing() as writer:
            writer.append(chain.link(writer.last(), "b", "charge", None, {"text": "parent"}))
            os.fork()
    except LedgerError as error:
        os.write(end[1], str(error).encode())
    if os.getpid() != me:
        os._exit(0)
    os.wait()
    assert b"forked within a transaction" in os.read(end[0], 999)
    assert texts(path) == ["before", "parent"]


@forks
def test_a_fork_that_python_is_not_told_of(path):
    store = SQLiteStore(path)
    append(store, text="before")
    end = os.pipe()
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        try:
            append(store, text="child")
            told = b"entered"
        except LedgerError as error:
            told = str(error).encode()
        except BaseException:
            told = traceback.format_exc().encode()
        shared._close_all()
        os.write(end[1], told)
        os._exit(0)
    os.waitpid(pid, 0)
    assert b"Nothing was entered" in os.read(end[0], 4000)
    append(store, text="after")
    assert texts(path) == ["before", "after"]


@forks
def test_a_child_of_a_process_that_reads_is_told(path):
    store = SQLiteStore(path)
    append(store)
    with store.reading() as reader:
        told = Child(lambda: append(store)).result()
        assert "Nothing was entered" in told["text"]
        assert reader.last().number == 1
    assert Child(lambda: append(store)).value() == 2


# crashes


KILLER = """
import json, select, signal, time
from pdprivacy.ledger import chain
from pdprivacy.ledger.sqlite import SQLiteStore

def numbers(end, path):
    store = SQLiteStore(path)
    while True:
        with store.writing() as writer:
            row = chain.link(writer.last(), "study", "charge", None, {"text": "x" * 200})
            writer.append(row)
        os.write(end, b"%d\\n" % row.number)

for line in sys.stdin:
    path, delay, first = json.loads(line)
    end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            numbers(end[1], path)
        finally:
            os._exit(1)
    os.close(end[1])
    if first:
        select.select([end[0]], [], [])
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with os.fdopen(end[0], "rb") as stream:
        print(json.dumps([int(line) for line in stream.read().splitlines()]), flush=True)
"""


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[..., list[int]]]:
    """What a process that was killed after a time, or a time after the first, had told to be entered.

    It is forked by a process that holds little else, which is quick.
    """
    killer = subprocess.Popen(
        [sys.executable, "-c", STORE_ALONE + KILLER],
        cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    def kill(path: str, delay: float, *, first: bool = False) -> list[int]:
        killer.stdin.write(json.dumps([path, delay, first]) + "\n")
        killer.stdin.flush()
        return json.loads(killer.stdout.readline())

    yield kill
    killer.communicate()


@forks
@pytest.mark.full
def test_what_was_told_to_be_entered_outlives_a_kill(path, killed):
    chance = random.Random(1)
    last = append(SQLiteStore(path))
    for turn in range(100):
        told = killed(path, chance.uniform(0, 0.02), first=bool(turn % 2))
        with SQLiteStore(path).reading() as reader:
            found = list(reader.rows(after=last))
            before = reader.at(last)
        assert before is not None
        assert [row.number for row in found] == list(range(last + 1, last + 1 + len(found)))
        assert len(found) - len(told) in (0, 1)
        assert told == [row.number for row in found[: len(told)]]
        for row in found:
            chain.check(row, before.hash)
            before = row
        last = before.number
        if turn % 10 == 0:
            last = append(SQLiteStore(path))
    assert last > 100
    assert len(whole(path)) == last


@forks
@pytest.mark.full
def test_a_kill_leaves_a_whole_ledger_or_none(tmp_path, killed):
    chance = random.Random(2)
    start = time.monotonic()
    killed(str(tmp_path / "first.db"), 0, first=True)
    longest = 1.5 * (time.monotonic() - start)
    made = 0
    for turn in range(40):
        folder = tmp_path / str(turn)
        folder.mkdir()
        path = str(folder / "budget.db")
        told = killed(path, chance.uniform(0, longest))
        there = os.path.exists(path)
        made += there
        assert there or not told
        assert append(SQLiteStore(path)) - 1 - len(told) in (0, 1)
        assert len(whole(path)) >= len(told) + 1
        SQLiteStore(path).close()
        assert sorted(os.listdir(folder)) == ["budget.db", "budget.db-lock"]
    assert 0 < made < 40
