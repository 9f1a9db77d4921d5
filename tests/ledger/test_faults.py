"""A ledger whose system calls fail, whose disk is full, whose bytes are damaged: it loses no record."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pdprivacy.errors import LedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import Row, check, link
from tests.support.processes import STORE_ALONE
from tests.support.system_calls import FAILING_CALLS, compiled

pytestmark = pytest.mark.full

# Take each step many times, with another call made to fail each time, and look at the ledger after each.
PROGRAM = (
    STORE_ALONE
    + r"""
import ctypes, errno, json, shutil, signal, traceback

from pdprivacy.errors import LedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import check, link

folder, library, faults = sys.argv[1], ctypes.CDLL(sys.argv[2]), json.loads(sys.argv[3])
ANSWER, HELD = b"answer " * 200, 30

def store(path):
    return SQLiteStore(path, patience=0.01)

def record(writer, text):
    return link(writer.last(), "b", "charge", None, {"text": text})

def append(path, text):
    store(path).write(lambda writer: writer.append(record(writer, text)))

def answer(path, text):
    def work(writer):
        writer.store("digest", ANSWER)
        writer.append(record(writer, text))
    store(path).write(work)

def read(path, text):
    store(path).read(lambda reader: reader.span(0, HELD))

def backup(path, text):
    rows = store(path).read(lambda reader: reader.span(0, HELD))
    store(path).backup(path + ".copy", rows)

def texts(path):
    rows, before = store(path).read(lambda reader: reader.span(0, 1000)), None
    for row in rows:
        check(row, before)
        before = row
    return [json.loads(row.body)["text"] for row in rows]

def copy_ledger(name, path):
    for end in ("", "-lock", "-journal"):
        if os.path.exists(f"{folder}/{name}{end}"):
            shutil.copy(f"{folder}/{name}{end}", path + end)

def crash(path, function, k):
    # kill a process at a call of a function while it appends a record; return whether the database changed,
    # or None where the process ends before that call
    copy_ledger("closed", path)
    if not (pid := os.fork()):
        library.fault_arm(function, ctypes.c_long(k), 0, 0)
        append(path, "killed")
        os._exit(0)
    if os.waitpid(pid, 0)[1] != signal.SIGKILL:
        return None
    with open(path, "rb") as file, open(f"{folder}/closed", "rb") as before:
        return file.read() != before.read()

for _ in range(HELD):
    append(f"{folder}/closed", "old")
k = 1
while not crash(f"{folder}/torn", b"write", k):  # after the first page of several
    k += 1
while crash(f"{folder}/done", b"write", k + 1):
    k += 1
assert crash(f"{folder}/crashed", b"write", k)  # at the end of the commit, which clears the journal
assert os.path.getsize(f"{folder}/torn-journal") == os.path.getsize(f"{folder}/crashed-journal") > 0

STEPS = {  # where each begins, and what it does
    "create": ("nothing", append),
    "charge": ("closed", append),
    "recover": ("crashed", append),
    "repair": ("torn", append),
    "read": ("closed", read),
    "recovering read": ("crashed", read),
    "store": ("closed", answer),
    "copy": ("closed", backup),
}

def attempt(path, start, action, function, k, error, stay):
    copy_ledger(start, path)
    outcome = {"held": 0 if start == "nothing" else HELD}
    try:
        descriptors = len(os.listdir("/proc/self/fd"))
        library.fault_arm(function.encode(), ctypes.c_long(k), getattr(errno, error), stay)
        try:
            action(path, "new")
            outcome["text"] = ""
        except LedgerError as caught:
            outcome["text"], outcome["chained"] = str(caught), caught.__cause__ is not None
        finally:
            outcome["fired"] = library.fault_disarm()
        outcome["open"] = len(os.listdir("/proc/self/fd")) - descriptors
        append(path, "after")
        entered = texts(path)
        outcome["new"], outcome["after"] = entered.count("new"), entered.count("after")
        outcome["kept"] = len(entered)
        outcome["names"] = sorted(name[len("budget.db"):] for name in os.listdir(os.path.dirname(path)))
        if "-answers" in outcome["names"]:
            outcome["answer"] = store(path).read(lambda reader: reader.stored("digest")) == ANSWER
        if ".copy" in outcome["names"]:
            append(path + ".copy", "after")
            outcome["copy"] = texts(path + ".copy") == ["old"] * HELD + ["after"]
        outcome["unfinished"] = any("-new-" in name for name in os.listdir(os.path.dirname(path)))
    except BaseException:
        outcome["raw"] = traceback.format_exc()
    return outcome

for function, error, stay in faults:
    for step, (start, action) in STEPS.items():
        for k in range(1, 1000):
            place = f"{folder}/{function} {error} {stay} {step} {k}"
            os.mkdir(place)
            outcome = attempt(f"{place}/budget.db", start, action, function, k, error, stay)
            print(json.dumps({"step": step, "k": k, **outcome}), flush=True)
            shutil.rmtree(place)
            if not outcome.get("fired"):
                break
"""
)

FILES = ["open", "close", "write", "short", "read", "sync", "ftruncate", "fcntl", "flock", "stat"]
NAMES = ["link", "mkdir", "rename", "unlink"]
FAULTS = [
    *((function, "EIO", False) for function in FILES + NAMES),  # one call fails
    *((function, "ENOSPC", True) for function in ("open", "write", "sync", "ftruncate", "link", "mkdir")),
    *((function, "EACCES", True) for function in ("open", "unlink", "fcntl", "flock", "rename", "stat")),
]  # and with True all calls after it


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> str:
    return compiled(FAILING_CALLS, tmp_path_factory.mktemp("faults"))


@pytest.fixture
def fast(tmp_path) -> Iterator[Path]:
    """A directory in memory where there is one, as thousands of syncs take their time."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def outcomes(library: str, folder: Path, *fault: object) -> list[dict[str, Any]]:
    """Take all steps with each call made to fail in its turn; return what came of each attempt."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), library, json.dumps([fault])],
        env={**os.environ, "LD_PRELOAD": library},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def problem(outcome: dict[str, Any]) -> str:
    """Describe what is wrong with an attempt; return an empty text where all is right."""
    if "raw" in outcome:
        return outcome["raw"]
    text, step, names = outcome["text"], outcome["step"], outcome["names"]
    appends = step not in ("read", "recovering read", "copy")
    wrong = {
        "a record is lost, or the next attempt fails": outcome["after"] != 1
        or outcome["kept"] != outcome["held"] + outcome["new"] + 1,
        "the record was reported, and is missing": not text and outcome["new"] != appends,
        "the record was entered": "Nothing was entered." in text and outcome["new"] > 0,
        "the record is entered twice": outcome["new"] > appends,
        "the error says nothing about the record": appends
        and text != ""
        and not ("Nothing was entered." in text or "Whether it was entered is not known" in text),
        "the answer is missing": step == "store" and outcome["new"] > 0 and not outcome.get("answer"),
        "the copy was reported, and is missing": step == "copy" and not text and ".copy" not in names,
        "a copy was made": "No copy was made." in text and ".copy" in names,
        "the copy is incomplete": outcome.get("copy") is False,
        "the error shows another error": outcome.get("chained", False),
        "a file stays open": outcome["open"] > 0,
        # the next write to a ledger removes it
        "an unfinished ledger stays": outcome["unfinished"] and not (text and step == "copy"),
    }
    return "; ".join(name for name, holds in wrong.items() if holds)


@pytest.mark.parametrize(("function", "error", "stay"), FAULTS)
def test_failing_calls_lose_no_record(library, fast, function, error, stay):
    attempts = outcomes(library, fast, function, error, stay)
    assert [(attempt, problem(attempt)) for attempt in attempts if problem(attempt)] == []
    failed = {attempt["step"] for attempt in attempts if attempt["fired"]}
    expected = {"open": 8, "write": 7, "read": 8, "sync": 7, "fcntl": 8, "flock": 8, "link": 2, "stat": 8}
    assert len(failed) >= expected.get(function, 0), failed


def entered(path: str | Path) -> int:
    """Append a long record; return its number."""

    def work(writer):
        row = link(writer.last(), "b", "charge", None, {"text": "x" * 500})
        writer.append(row)
        return row.number

    return SQLiteStore(path).write(work)


def all_rows(path: str | Path) -> list[Row]:
    return SQLiteStore(path).read(lambda reader: reader.span(0, 10**6))


def error_of(action: Callable[..., object], *given: object) -> str:
    """Return the error of the ledger, empty for none; "secret" for an error that shows another one."""
    try:
        action(*given)
    except LedgerError as error:
        return "secret" if error.__cause__ is not None else str(error)
    return ""


def forked(action: Callable[[str], Any], path: str) -> Any:
    """Return what an action gives in another process, which ends at once."""
    start, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(end, json.dumps(action(path)).encode())
        finally:
            os._exit(0)
    os.close(end)
    with os.fdopen(start) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def test_a_limit_on_the_size_of_files_loses_no_record(tmp_path):
    def fill(path):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        last, error = entered(path), ""
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        while not error:
            error = error_of(entered, path)
            last += not error
        return last, error

    path = str(tmp_path / "budget.db")
    last, error = forked(fill, path)
    assert "cannot be used: " in error
    unreported = len(all_rows(path)) - last
    assert unreported in ((0,) if "Nothing was entered." in error else (0, 1))
    assert entered(path) == last + unreported + 1


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid() != 0, reason="only root may act as another user"
)
@pytest.mark.parametrize("ends", [("",), ("", "-lock", "-journal")])
def test_a_directory_that_is_read_only_can_be_read(ends):
    def visit(path):
        os.setgid(65534)
        os.setuid(65534)
        return len(all_rows(path)), error_of(entered, path)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "budget.db")
        assert entered(path) == 1
        for name in ("budget.db", "budget.db-lock", "budget.db-journal"):
            if name.removeprefix("budget.db") not in ends:
                os.unlink(os.path.join(folder, name))
        os.chmod(folder, 0o755)
        names = sorted(os.listdir(folder))
        number, error = forked(visit, path)
        assert number == 1
        assert "Nothing was entered." in error
        assert sorted(os.listdir(folder)) == names
        assert entered(path) == 2


def check_damage(path: Path) -> None:
    if SQLiteStore(path).read(lambda reader: reader.damage(10**6)):
        raise LedgerError("damaged")


def check_rows(path: Path, rows: list[Row]) -> None:
    """Read all that can be looked up; all records that are read must be those that were entered."""

    def look(reader):
        reader.find("b", "charge")
        reader.find("b", "charge", "r")
        reader.last_charges()
        return reader.span(0, 10**6)

    rows_read = SQLiteStore(path).read(look)
    before = None
    for row in rows_read:
        check(row, before)
        before = row
    assert rows_read == rows[: len(rows_read)]


def test_damaged_bytes_give_an_error_or_the_records(fast):
    def work(writer):
        for _ in range(3):
            writer.append(link(writer.last(), "b", "charge", None, {"text": "secret " * 40}))

    path = str(fast / "budget.db")
    for _ in range(12):
        SQLiteStore(path).write(work)
    rows, good = all_rows(path), Path(path).read_bytes()
    chance = random.Random(3)
    positions = [*range(0, 100, 3), *(chance.randrange(len(good)) for _ in range(250))]
    errors = 0
    for turn, position in enumerate(positions):
        bad = bytearray(good)
        for offset in range(chance.choice([1, 1, 4, 200])):
            bad[(position + offset) % len(bad)] ^= chance.randrange(1, 256)
        copy = fast / f"{turn}.db"
        copy.write_bytes(bad)
        texts = [error_of(check_rows, copy, rows), error_of(entered, copy) or error_of(check_damage, copy)]
        assert "secret" not in "".join(texts)
        errors += texts != ["", ""]
        for end in ("", "-journal", "-lock"):
            Path(f"{copy}{end}").unlink(missing_ok=True)
    assert errors > 100
