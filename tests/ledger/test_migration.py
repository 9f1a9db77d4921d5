"""Ledgers of format 1, which had a write-ahead log, are changed to format 2 when they are opened."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import LedgerError, TamperedLedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from tests.support.kept_ledgers import FOLDER, LEDGER, LEFT_BEHIND
from tests.support.sqlite_ledgers import Bell, Child, changed, forks

STATES = {"closed": FOLDER / "first", "left by a killed process": FOLDER / "first" / "in_use"}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one, as thousands of transactions take their time on a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(params=STATES)
def state(request) -> Path:
    """The folder of a ledger as an earlier version left it."""
    return STATES[request.param]


@pytest.fixture
def path(state, tmp_path) -> str:
    return copy(state, tmp_path / "ledger")


def copy(state: Path, folder: Path) -> str:
    folder.mkdir()
    for end in ("", "-wal"):
        if (state / f"{LEDGER}{end}").exists():
            shutil.copy(state / f"{LEDGER}{end}", folder)
    return str(folder / LEDGER)


def rows(path: str) -> list[Any]:
    """Return all records of a copy of the file and its log, as SQLite reads them."""
    with tempfile.TemporaryDirectory() as folder:
        copied = copy(Path(path).parent, Path(folder) / "copy")
        with closing(sqlite3.connect(copied)) as connection:
            return connection.execute("SELECT * FROM records ORDER BY number").fetchall()


def contents(path: str) -> dict[str, bytes]:
    return {end: Path(path + end).read_bytes() for end in ("", "-wal") if os.path.exists(path + end)}


def read(path: str, patience: float = 60) -> int:
    return SQLiteStore(path, patience=patience).read(lambda reader: reader.last().number)


def charge(path: str, label: str = "next") -> int:
    return Ledger(path).budget("basic").charge(Pure("0.01"), label).number


def check_migrated(path: str, before: list[Any]) -> None:
    """Check that a ledger has format 2 and no log, with all its records, and that charges follow."""
    header = Path(path).read_bytes()[:100]
    assert header[18:20] == b"\1\1"  # of a database with a rollback journal
    assert int.from_bytes(header[60:64], "big") == 2 > 1  # 1 is all that earlier versions read
    assert header[68:72] == b"pdPr"
    assert not contents(path).get("-wal")
    assert rows(path) == before
    charges = Ledger(path).audit().charges
    number = charge(path)
    assert Ledger(path).entries("basic")["release"].tolist()[number - 1] == "next"
    assert Ledger(path).audit().charges == charges + 1
    assert rows(path)[: len(before)] == before


@pytest.mark.parametrize("use", [read, charge])
def test_the_first_use_migrates_a_ledger(path, use):
    before = rows(path)
    use(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() != ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    check_migrated(path, rows(path) if use is charge else before)
    assert rows(path)[: len(before)] == before


def test_charges_in_the_log_of_a_killed_process_are_kept(tmp_path):
    path = copy(STATES["left by a killed process"], tmp_path / "ledger")
    read(path)
    assert Ledger(path).entries("basic")["release"].tolist()[-1] == LEFT_BEHIND


@forks
@pytest.mark.parametrize("reads", [False, True], ids=["idle", "reading"])
def test_a_process_that_has_the_ledger_open_keeps_the_migration_waiting(path, reads):
    before = rows(path)
    begun, done = Bell(), Bell()

    def hold():
        with closing(sqlite3.connect(path)) as connection:
            cursor = connection.execute("SELECT number FROM records")
            cursor.fetchone() if reads else cursor.fetchall()
            begun.ring()
            done.wait()

    child = Child(hold)
    begun.wait()
    unchanged = contents(path)
    with pytest.raises(LedgerError, match="another program holds it"):
        read(path, patience=0.05)
    with pytest.raises(LedgerError, match=r"another program holds it\. Nothing was entered"):
        SQLiteStore(path, patience=0.05).write(lambda writer: writer.last())
    assert contents(path) == unchanged
    timer = threading.Timer(0.1, done.ring)
    timer.start()
    assert read(path) == len(before)
    timer.join()
    child.value()
    check_migrated(path, before)


def ends_early(path: str, step: int, kills: bool) -> str:
    """Read a ledger in a process that is killed, or where SQLite fails, before a statement."""
    connect, left = sqlite3.connect, step

    class Connection(sqlite3.Connection):
        def execute(self, *given):
            nonlocal left
            left -= 1
            if left == 0 and kills:
                os.kill(os.getpid(), signal.SIGKILL)
            if left == 0:
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(*given)

    sqlite3.connect = partial(connect, factory=Connection)
    read(path)
    return "done"


@forks
@pytest.mark.full(keep=2)
@pytest.mark.parametrize("kills", [True, False], ids=["killed", "failing"])
def test_a_migration_that_ends_at_any_statement_goes_on_at_the_next_use(state, tmp_path, full, kills):
    for step in count(1, 1 if full else 3):
        path = copy(state, tmp_path / str(step))
        before = rows(path)
        child = Child(ends_early, path, step, kills)
        if kills:
            _, status = os.waitpid(child.pid, 0)
            os.close(child.end)
            done = not os.WIFSIGNALED(status)
        else:
            try:
                done = child.value() == "done"
            except LedgerError:
                done = False
        assert rows(path) == before
        (charge if step % 2 == 0 else read)(path)
        check_migrated(path, rows(path))
        assert rows(path)[: len(before)] == before
        if done:
            break
    assert step > 15


@forks
def test_a_migration_that_is_killed_at_any_moment_goes_on_at_the_next_use(state, tmp_path, full):
    chance = random.Random(1)
    for turn in range(60 if full else 5):
        path = copy(state, tmp_path / str(turn))
        before = rows(path)
        children = [Child(read, path), Child(charge, path, "killed")]
        time.sleep(chance.uniform(0, 0.02))
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            os.close(child.end)
        assert len(before) <= read(path) <= len(before) + 1
        check_migrated(path, rows(path))
        assert rows(path)[: len(before)] == before


def use_after(start: Bell, path: str, label: str) -> int:
    start.wait()
    return charge(path, label) if label else read(path)


@forks
def test_processes_that_migrate_at_once_do_not_disturb_each_other(state, tmp_path, full):
    for turn in range(20 if full else 2):
        path = copy(state, tmp_path / str(turn))
        before, start = rows(path), Bell()
        children = [Child(use_after, start, path, label) for label in ("a", "", "b", "")]
        for _ in children:
            start.ring()
        first, second, third, fourth = (child.value() for child in children)
        assert abs(first - third) == 1
        assert {second, fourth} <= {len(before) + number for number in range(3)}
        check_migrated(path, rows(path))
        assert rows(path)[: len(before)] == before


def test_a_ledger_with_other_tables_is_not_migrated(path):
    with changed(path) as other:
        other.execute("DROP TRIGGER records_stay")
    before = rows(path)
    for use in (read, charge):
        with pytest.raises(TamperedLedgerError, match="not those it was made with"):
            use(path)
    assert rows(path) == before
    assert int.from_bytes(Path(path).read_bytes()[60:64], "big") == 1
