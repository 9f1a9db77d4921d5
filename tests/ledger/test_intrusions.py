"""Intrusions into a ledger in use: copies, moves, locks, forks, kills, signals, mounts and clocks."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import pdprivacy
from pdprivacy import Ledger, Pure
from pdprivacy.errors import LedgerError, MissingLedgerError, TamperedLedgerError
from pdprivacy.ledger import files
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import link
from tests.support.journals import hot_journal
from tests.support.sqlite_ledgers import (
    Bell,
    Child,
    append,
    charge,
    charges_until_refused,
    labels,
    opened,
    records,
    refused,
    texts,
    traced,
)

ROOT = Path(pdprivacy.__file__).parents[1]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and locks of Linux")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one, as thousands of transactions take their time on a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


# ---------------------------------------------------------------- copies


def test_a_backup_is_a_ledger_also_of_a_ledger_in_use(path, tmp_path):
    budget = opened(path)
    stop = threading.Event()

    def charges():
        while not stop.is_set():
            budget.charge(Pure(1), "x")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(charges)
        try:
            for turn in range(5):
                copy = tmp_path / f"{turn}.db"
                least = budget.account.charges
                Ledger(path).backup(copy)
                assert least <= Ledger(copy).audit().charges <= budget.account.charges
                assert charge(copy, "y") == "y"
        finally:
            stop.set()
        running.result()
    names = sorted(os.listdir(tmp_path))
    for target in (copy, path, tmp_path):
        with pytest.raises(LedgerError, match="exists already"):
            Ledger(path).backup(target)
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger(path).backup(tmp_path / "no" / "copy.db")
    assert sorted(os.listdir(tmp_path)) == names


def test_a_copy_is_read_while_another_process_makes_its_first_charge(path, full):
    opened(path).charge(Pure(1), "first")
    for turn in range(100 if full else 10):
        copy = f"{path}.{turn}"
        shutil.copy(path, copy)
        child = Child(charge, copy, "second")
        numbers = [len(records(copy)) for _ in range(10)]
        assert child.value() == "second"
        assert set(numbers) <= {3, 4}
        assert labels(copy) == ["first", "second"]


def test_a_copy_by_vacuum_is_a_ledger(path, tmp_path):
    charge_first = opened(path).charge(Pure(1), "first")
    with closing(sqlite3.connect(path)) as other:
        other.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    assert charge(tmp_path / "copy.db", "second") == "second"
    assert labels(tmp_path / "copy.db") == [charge_first.label, "second"]


COPIES: dict[str, Callable[[str], object]] = {
    "database": lambda path: shutil.copy(path, os.path.dirname(path) + ".copy"),
    "folder": lambda path: shutil.copytree(
        os.path.dirname(path), os.path.dirname(path) + ".copies", dirs_exist_ok=True
    ),
    "lock file": lambda path: Path(path + "-lock").read_bytes(),
    "journal": lambda path: Path(path + "-journal").read_bytes(),
}


def copies_at_each_step(path, name, copy) -> list[str]:
    """Charge until the budget is spent, and copy before and after each call that the ledger makes."""

    def profile(frame, *_):
        if os.path.basename(os.path.dirname(frame.f_code.co_filename)) == "ledger":
            copy(path)

    sys.setprofile(profile)
    try:
        return charges_until_refused(path, name)
    finally:
        sys.setprofile(None)


def copies_in_a_thread(path, name) -> list[str]:
    """Charge until the budget is spent, while another thread copies all the time."""
    stop = threading.Event()

    def copies():
        while not stop.is_set():
            for copy in COPIES.values():
                copy(path)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(copies)
        try:
            return charges_until_refused(path, name)
        finally:
            stop.set()
            running.result()


def shared_out(path, cap: int, children: list[Child]) -> None:
    """Check that processes have charged what a budget holds, once each, and no more."""
    entered = [label for child in children for label in child.value()]
    assert sorted(entered) == labels(path)
    assert len(entered) == cap
    assert Ledger(path).budget("s").left == (0, 0)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("copy", COPIES)
def test_copies_at_each_step_of_a_charge_lose_no_charge(path, full, copy):
    cap = 8 if full else 3
    opened(path, cap)
    shared_out(path, cap, [Child(copies_at_each_step, path, name, COPIES[copy]) for name in "ab"])


def test_copies_by_another_thread_lose_no_charge(path, full):
    cap = 600 if full else 60
    opened(path, cap)
    child = Child(lambda: [charge(path, "c")])
    shared_out(
        path, cap, [child, Child(copies_in_a_thread, path, "a"), Child(charges_until_refused, path, "b")]
    )


@pytest.mark.parametrize("backup", [False, True])
def test_an_older_copy_is_refused_by_a_process_that_saw_the_newer_ledger(path, backup):
    budget = opened(path)
    budget.charge(Pure(1), "first")
    if backup:
        Ledger(path).backup(path + ".older")
    else:
        shutil.copy(path, path + ".older")
    budget.charge(Pure(1), "second")
    os.rename(path, path + ".newer")
    os.rename(path + ".older", path)
    for use in (lambda: budget.left, lambda: budget.charge(Pure(1), "x"), lambda: Ledger(path).audit()):
        with pytest.raises(TamperedLedgerError, match="older copy"):
            use()
    os.rename(path + ".newer", path)
    budget.charge(Pure(1), "third")
    assert labels(path) == ["first", "second", "third"]


def leave_half_a_transaction(path) -> None:
    """Leave a ledger as a process does that is killed within COMMIT: its pages changed, its journal there."""
    shutil.copy(path, path + ".before")
    shutil.copy(path, path + ".after")
    append(SQLiteStore(path + ".after"), "half")
    before, after = (Path(path + end).read_bytes() for end in (".before", ".after"))
    Path(path).write_bytes(after)
    Path(path + "-journal").write_bytes(hot_journal(before, after))


def test_half_a_transaction_is_undone(path):
    append(SQLiteStore(path), "first")
    for number in (2, 3):
        leave_half_a_transaction(path)
        assert append(SQLiteStore(path), "next") == number
        leave_half_a_transaction(path)
        assert texts(path) == ["first", "next", "next"][:number]


def test_a_journal_of_another_time_is_refused(path):
    append(SQLiteStore(path), "first")
    leave_half_a_transaction(path)
    journal = Path(path + "-journal").read_bytes()
    for text in ("second", "third"):
        append(SQLiteStore(path), text)
    before = Path(path).read_bytes()
    Path(path + "-journal").write_bytes(journal)
    refused(path, "of another ledger, or of this one at another time")
    assert Path(path).read_bytes() == before
    Path(path + "-journal").write_bytes(b"")
    assert append(SQLiteStore(path)) == 4


def test_a_lost_journal_is_refused_until_it_is_back(path):
    append(SQLiteStore(path))
    os.rename(path + "-journal", path + "-mislaid")
    refused(path, "has lost its journal")
    os.rename(path + "-mislaid", path + "-journal")
    assert append(SQLiteStore(path)) == 2


# ---------------------------------------------------------------- files that move


def test_a_moved_folder_is_followed(path, tmp_path):
    budget = opened(path)
    budget.charge(Pure(1), "first")
    os.rename(os.path.dirname(path), tmp_path / "moved")
    with pytest.raises(LedgerError, match="Nothing was entered"):
        budget.charge(Pure(1), "x")
    charge(tmp_path / "moved" / "budget.db", "second")
    os.symlink(tmp_path / "moved", os.path.dirname(path))
    budget.charge(Pure(1), "third")
    os.unlink(os.path.dirname(path))
    os.rename(tmp_path / "moved", os.path.dirname(path))
    budget.charge(Pure(1), "fourth")
    assert labels(path) == sorted(["first", "second", "third", "fourth"])


MOVES: dict[str, Callable[[str], object]] = {
    "moved": lambda path: os.rename(path, path + ".moved"),
    "replaced": lambda path: os.replace(path + ".copy", path),
    "without its lock file": lambda path: os.unlink(path + "-lock"),
    "with another lock file": lambda path: os.replace(path + ".copy", path + "-lock"),
    "without its folder": lambda path: os.rename(os.path.dirname(path), os.path.dirname(path) + ".moved"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_ledger_that_moves_within_a_transaction_is_refused(path, move):
    append(SQLiteStore(path), "first")
    shutil.copy(path, path + ".copy")

    def work(writer):
        writer.append(link(writer.last(), "s", "charge", None, {}))
        MOVES[move](path)

    with pytest.raises(LedgerError, match=r"its lock file was.*Nothing was entered"):
        SQLiteStore(path).write(work)
    for moved, target in ((os.path.dirname(path) + ".moved", os.path.dirname(path)), (path + ".moved", path)):
        if os.path.exists(moved):
            os.rename(moved, target)
    assert append(SQLiteStore(path), "second") == 2
    assert texts(path) == ["first", "second"]


def test_a_ledger_that_moves_during_a_commit_may_hold_the_charge(path, monkeypatch):
    budget = opened(path)

    def move(statement):
        if statement == "COMMIT":
            os.unlink(path + "-lock")

    with traced(monkeypatch, move), pytest.raises(LedgerError, match="Whether it was entered is not known"):
        budget.charge(Pure(1), "first")
    assert labels(path) == ["first"]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("how", [["unlink"], ["rename"], ["replace"], ["unlink", "replace"]], ids="+".join)
def test_two_processes_never_write_at_once_while_the_lock_file_goes(path, how):
    opened(path)

    def go(name):
        if "rename" in how:
            os.rename(path + "-lock", f"{path}-lock.{name}")
        if "unlink" in how:
            os.unlink(path + "-lock")
        if "replace" in how:
            Path(f"{path}.{name}").touch()
            os.replace(f"{path}.{name}", path + "-lock")

    def alone(name, turn, writer):
        try:
            os.mkdir(path + ".writing")
        except FileExistsError:
            return True
        writer.append(link(writer.last(), "s", "charge", None, {"text": f"{name}.{turn}"}))
        if turn % 5 == name:
            with suppress(FileNotFoundError):
                go(name)
        os.rmdir(path + ".writing")
        return False

    def writes(name):
        entered = []
        for turn in range(20):
            with suppress(LedgerError):
                assert not SQLiteStore(path).write(partial(alone, name, turn)), "two processes write"
                entered.append(f"{name}.{turn}")
        return entered

    children = [Child(writes, name) for name in range(4)]
    entered = [text for child in children for text in child.value()]
    assert len(entered) >= 40
    assert sorted(json.loads(row.body)["text"] for row in records(path)[2:]) == sorted(entered)


def mount_read_only(folder: str) -> Callable[[], object] | None:
    """Mount a folder read-only, for this process alone; return a function that makes it writable again."""
    library, name = ctypes.CDLL(None), folder.encode()
    read_only, remount, bind, recursive, private = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18
    steps = [
        library.unshare(0x20000),
        library.mount(b"none", b"/", None, recursive | private, None),
        library.mount(name, name, None, bind, None),
        library.mount(None, name, None, remount | bind | read_only, None),
    ]
    return None if any(steps) else lambda: library.mount(None, name, None, remount | bind, None)


def take_rights(names: list[str]) -> Callable[[], object]:
    """Take the right to write files and folders; return a function that gives it back."""
    modes = {name: os.stat(name).st_mode for name in names}
    for name in names:
        os.chmod(name, 0o555)
    return lambda: [os.chmod(name, mode) for name, mode in modes.items()]


def charges_while_read_only(path, how) -> bool:
    """Charge before, while and after a ledger is read-only; return whether that was possible."""
    folder = os.path.dirname(path)
    if os.geteuid() == 0 and how != "mount":
        os.setgid(65534)  # root may write everything
        os.setuid(65534)
    os.mkdir(folder)
    budget = opened(path)
    entered = [budget.charge(Pure(1), "before").label]
    if how == "mount":
        restore = mount_read_only(folder)
    else:
        names = {"file": [path], "lock file": [path + "-lock"], "journal": [path + "-journal"], "folder": []}
        everything = [os.path.join(folder, name) for name in os.listdir(folder)]
        restore = take_rights([*names.get(how, everything), *[folder] * (how in ("folder", "all"))])
    if restore is None:
        return False
    with suppress(LedgerError):
        assert budget.spent == (1, 0)
    with suppress(LedgerError):
        entered.append(budget.charge(Pure(1), "while").label)
    restore()
    entered.append(budget.charge(Pure(1), "after").label)
    assert labels(path) == sorted(entered)
    assert how not in ("file", "journal", "mount") or "while" not in entered
    return True


@pytest.mark.parametrize("how", ["file", "lock file", "journal", "folder", "all", "mount"])
def test_a_ledger_that_was_read_only_is_used_again_without_a_restart(how):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        if not Child(charges_while_read_only, folder + "/in/budget.db", how).value():
            pytest.skip("this user may not mount a folder")


# ---------------------------------------------------------------- forks and kills


def test_a_fork_at_any_moment_of_a_charge_neither_doubles_nor_loses_it(path, full):
    budget, parent, chance = opened(path), os.getpid(), random.Random(1)
    pids, (answers, answer) = [], os.pipe()
    before = signal.signal(signal.SIGALRM, lambda *_: pids.append(os.fork()))
    for turn in range(400 if full else 15):
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 2e-3))
        while len(pids) == turn:
            try:
                outcome = str(budget.charge(Pure(1), "x").number)
            except LedgerError:
                outcome = "refused"
            except BaseException as error:
                outcome = repr(error)
            os.write(answer, f"{outcome}\n".encode())
        if os.getpid() != parent:
            os._exit(0)
        os.waitpid(pids[turn], 0)
    signal.signal(signal.SIGALRM, before)
    os.close(answer)
    with os.fdopen(answers) as stream:
        outcomes = set(stream.read().splitlines()) - {"refused"}
    assert outcomes == {str(number) for number in range(1, len(labels(path)) + 1)}


def test_children_charge_whatever_threads_of_the_parent_do_at_the_fork(path, full):
    append(SQLiteStore(path), "before")
    stop, written = threading.Event(), []

    def busy(use):
        while not stop.is_set():
            written.append(use())

    def child():
        return append(SQLiteStore(path, patience=10), "child")

    uses = [partial(SQLiteStore(path).read, lambda reader: None)] * 2
    uses += [partial(append, SQLiteStore(path), "thread")]
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(busy, use) for use in uses]
        try:
            numbers = [Child(child).value() for _ in range(200 if full else 20)]
        finally:
            stop.set()
        for thread in running:
            thread.result()
    assert len(set(numbers)) == len(numbers)
    entered = texts(path)
    assert entered.count("child") == len(numbers)
    assert entered.count("thread") == sum(number is not None for number in written)


def test_children_that_python_is_not_told_of_charge(path):
    budget = opened(path)
    budget.charge(Pure(1), "before")
    pid = ctypes.PyDLL(None).fork()
    if not pid:
        try:
            budget.charge(Pure(1), "child")
        finally:
            os._exit(0)
    budget.charge(Pure(1), "parent")
    os.waitpid(pid, 0)
    assert labels(path) == ["before", "child", "parent"]


def charges_for_ever(path, end: int, name: str) -> None:
    """Open a budget and charge; report each charge that was entered."""
    budget = opened(path)
    for number in count():
        budget.charge(Pure(1), f"{name}.{number}")
        os.write(end, f"{name}.{number}\n".encode())


def looks_for_ever(path) -> None:
    while True:
        with suppress(MissingLedgerError):
            Ledger(path).budgets  # noqa: B018


def test_reported_charges_outlive_kills(tmp_path, full):
    chance = random.Random(1)
    for turn in range(250 if full else 3):
        if turn % 10 == 0:  # the processes of this turn make a ledger
            path, reported = str(tmp_path / f"{turn}.db"), set()
            answers, answer = os.pipe()
        children = [Child(charges_for_ever, path, answer, f"{turn}.{name}") for name in "abc"]
        children.append(Child(looks_for_ever, path))
        time.sleep(chance.uniform(0, 0.05))
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
        for child in children:
            os.waitpid(child.pid, 0)
            os.close(child.end)
        os.write(answer, opened(path).charge(Pure(1), str(turn)).label.encode() + b"\n")
        reported |= set(os.read(answers, 10**5).decode().split())
        if turn % 10 == 9 or not full:
            entered = labels(path)
            assert len(set(entered)) == len(entered)
            assert reported <= set(entered)
            assert len(entered) <= len(reported) + 3 * 10  # of each process, at most one is not reported


# ---------------------------------------------------------------- other connections


@pytest.mark.parametrize("how", ["close", "fork", "copy"])
def test_another_connection_in_the_process_loses_no_charge(path, how):
    opened(path)
    go_on, charged = Bell(), Bell()

    def there():
        entered = []
        for turn in range(3):
            go_on.wait()
            entered.append(charge(path, f"there.{turn}"))
            charged.ring()
        return entered

    child, entered = Child(there), []
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM records").fetchall()
        for turn in range(3):
            entered.append(charge(path, f"here.{turn}"))
            if how == "close":
                Ledger(path).close()
            elif how == "fork":
                Child(lambda: None).value()
            else:
                shutil.copy(path, path + ".copy")
            go_on.ring()
            charged.wait()
            entered.append(charge(path, f"then.{turn}"))
    assert sorted(entered + child.value()) == labels(path)


def test_a_write_ahead_log_that_another_program_begins_only_delays(path):
    append(SQLiteStore(path), "first")
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
        other.execute("SELECT count(*) FROM records").fetchall()
        with pytest.raises(LedgerError, match=r"another program holds it\. Nothing was entered"):
            append(SQLiteStore(path, patience=0.05))
    append(SQLiteStore(path), "second")
    assert texts(path) == ["first", "second"]
    assert not os.path.exists(path + "-wal")


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("charges", [False, True], ids=["reads", "charges"])
def test_a_handler_of_a_signal_uses_the_ledger_or_is_refused(path, full, charges):
    budget, done, outcomes = opened(path), 0, []

    def handle(*_):
        try:
            outcomes.append(budget.charge(Pure(1), "handler").label if charges else budget.left)
        except LedgerError as error:
            outcomes.append(error)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    try:
        while len(outcomes) < (500 if full else 60):
            budget.charge(Pure(1), "thread")
            done += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    refusals = [str(outcome) for outcome in outcomes if isinstance(outcome, LedgerError)]
    assert refusals
    assert all("used by this thread already" in refusal for refusal in refusals)
    assert labels(path) == ["handler"] * outcomes.count("handler") + ["thread"] * done


def test_a_kept_error_of_a_handler_keeps_no_lock(path):
    """The frames of its traceback hold what SQLite was making when the handler was called."""
    budget, kept = opened(path), []

    def handle(frame, event, _):
        if event == "call" and frame.f_code.co_name == "update_wrapper" and not kept:
            try:
                budget.charge(Pure(1), "handler")
            except LedgerError as error:
                kept.append(error)

    sys.setprofile(handle)
    try:
        assert budget.left == (10**6, 0)
    finally:
        sys.setprofile(None)
    if not kept:
        pytest.skip("this version of Python calls no function of functools to connect to SQLite")
    assert append(SQLiteStore(path, patience=0.5)) == 3


def interrupted(step: int, path: Path) -> bool:
    """Make a ledger and store an answer; interrupt after a call of C code, and return whether it was made."""
    left = step

    def profile(frame, event, _):
        nonlocal left
        left -= (
            event == "c_return" and os.path.basename(os.path.dirname(frame.f_code.co_filename)) == "ledger"
        )
        if not left:
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        budget = opened(path, 1)
        budget.charge(Pure(1), "count", release_id="r")
        budget.store_answer("r", b"answer", {})
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list open files")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_an_interrupt_while_a_ledger_is_made_leaves_no_file_open(tmp_path, full):
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    for step in count(1, 1 if full else 31):
        path = tmp_path / f"{step}.db"
        done = not interrupted(step, path)
        gc.collect(1)  # a connection of SQLite holds a reference to itself
        assert len(os.listdir("/proc/self/fd")) == descriptors, step
        assert opened(path, 1).total == Pure(1)
        if done:
            break
    assert step > 300


INTERRUPTS = """
import gc, os, random, signal, sys, threading
from pdprivacy import Ledger, Pure
from pdprivacy.ledger.sqlite import SQLiteStore

folder, most, source = sys.argv[1], int(sys.argv[2]), sys.argv[3]
budget = Ledger(folder + "/budget.db").open("s", Pure(10**9))
chance, waiting, number, interrupts, reported = random.Random(1), 0, 0, 0, []

def interrupt(*_):
    global waiting
    if waiting:
        waiting -= 1
        raise KeyboardInterrupt

def send():
    delay = chance.uniform(1e-5, 3e-3)
    if source == "timer":  # which goes on: others interrupt what the first one began to release
        signal.setitimer(signal.ITIMER_REAL, delay, chance.uniform(1e-5, 1e-4))
    else:
        target = threading.main_thread().ident, signal.SIGALRM
        threading.Timer(delay, signal.pthread_kill, target).start()

def use(label):
    reported.append(budget.charge(Pure(1), label + "a").label)
    reported.append(budget.charge(Pure(1), label + "b", release_id=label).label)
    budget.spent

signal.signal(signal.SIGALRM, interrupt)
descriptors = len(os.listdir("/proc/self/fd"))
while interrupts < most:
    number += 1
    try:
        try:
            send()  # not interrupted, so that each thread that is made starts
            waiting = 1 + number % 4
            use(str(number))
        finally:
            waiting = 0
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt as error:
        kept = error  # with its traceback, and all that the frames in it hold
        interrupts += 1
    SQLiteStore(folder + "/budget.db", patience=0).read(lambda reader: reader.last())
kept = None
gc.collect()
for thread in threading.enumerate()[1:]:
    thread.join()
assert len(os.listdir("/proc/self/fd")) == descriptors, os.listdir("/proc/self/fd")
ledger = Ledger(folder + "/budget.db")
entered = ledger.entries("s")["release"].tolist()
assert len(set(entered)) == len(entered) == ledger.audit().charges
assert set(reported) <= set(entered)
assert len(entered) <= len(reported) + interrupts
"""


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("source", ["timer", "thread"])
def test_interrupts_lose_no_charge_and_keep_neither_locks_nor_files(tmp_path, full, source):
    given = [str(tmp_path), str(5000 if full else 300), source]
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", INTERRUPTS, *given],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr


# ---------------------------------------------------------------- mounts and clocks


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """Return a function that moves a ledger with one charge to a mount, and reads it there."""
    made = tmp_path / "made" / "my budget.db"
    made.parent.mkdir()
    opened(made).charge(Pure(1), "first")

    def use(mount: str) -> None:
        folder = made.parent.rename(tmp_path / "mounted")
        escaped = str(folder / made.name).replace(" ", "\\040")
        device = f"{os.major(os.stat(folder).st_dev)}:{os.minor(os.stat(folder).st_dev)}"
        mounted = mount.format(device=device, folder=folder, place=escaped)
        lines = f"22 1 8:1 / / rw - ext4 /dev/sda rw\n{mounted}\n"

        def read(name, *rest, **options):
            return io.StringIO(lines) if name == "/proc/self/mountinfo" else open(name, *rest, **options)

        try:
            with monkeypatch.context() as patch:
                patch.setattr(files, "open", read, raising=False)
                charge(folder / made.name, "second")
        finally:
            folder.rename(made.parent)
            assert labels(made) == ["first"]

    return use


def test_a_file_that_is_mounted_by_itself_is_refused(mounts):
    with pytest.raises(LedgerError, match="mounted as a single file") as caught:
        mounts("40 22 {device} /x {place} rw - ext4 /dev/sda rw")
    assert "mount the folder" in caught.value.hint


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system_is_refused(mounts, kind):
    with pytest.raises(LedgerError, match=rf"network file system \({kind}\)") as caught:
        mounts("40 22 {device} / {folder} rw,relatime shared:1 - " + kind + " server:/export rw")
    assert "local disk" in caught.value.hint


@pytest.mark.parametrize("year", [1970, 1999, 2300])
def test_a_clock_that_cannot_be_right_enters_nothing(path, monkeypatch, year):
    budget = opened(path)

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(year, 1, 1, tzinfo=UTC)

    with monkeypatch.context() as patch:
        patch.setattr("pdprivacy.ledger.account.datetime", Clock)
        with pytest.raises(LedgerError, match=f"the year {year}"):
            budget.charge(Pure(1), "x")
    assert budget.entries.empty
    charge(path, "first")
    assert labels(path) == ["first"]
