"""What others do to a ledger in use: their connections, their signals, their mounts, their clocks."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import pdprivacy
from pdprivacy import Ledger, Pure
from pdprivacy.errors import LedgerError
from pdprivacy.ledger import files

ROOT = Path(pdprivacy.__file__).parents[1]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and locks of Linux"),
]

PREAMBLE = """
import atexit, json, os, shutil, signal, sqlite3, sys, time, traceback
from pdprivacy import Ledger, Pure
from pdprivacy.errors import LedgerError

path = sys.argv[1]

class Other:
    # A process of its own, which does what it is told later. It is forked before any ledger is open, as the
    # only difference to a new Python is that this takes a second to import everything.

    def __init__(self):
        given, told = os.pipe(), os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.dup2(given[0], 0)
            os.dup2(told[1], 1)
            os.closerange(3, 100)
            sys.stdin, sys.stdout = open(0), open(1, "w")
            code, status = sys.stdin.readline(), 1
            try:
                exec(json.loads(code) if code else "", dict(globals()))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                atexit._run_exitfuncs()
                os._exit(status)
        os.close(given[0])
        os.close(told[1])
        self.stdin, self.stdout = open(given[1], "w"), open(told[0])

    def do(self, code):
        self.stdin.write(json.dumps(code) + "\\n")
        self.stdin.flush()
        return self

    def wait(self):
        self.stdin.close()
        text = self.stdout.read()
        assert os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) == 0
        return text.split()

others = [Other() for _ in range(4)]

def other(code):
    return others.pop().do(code).wait()
"""


def run(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREAMBLE + code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FOREIGN = """
how = sys.argv[2]
other("budget = Ledger(path).open('s', Pure(1000)); budget.charge(Pure(1), 'first')")
looking = sqlite3.connect(path)                       # somebody's own connection, left open
looking.execute("SELECT count(*) FROM records").fetchone()
ledger, returned = Ledger(path), ["first"]
if how != "copy":
    ledger.budget("s").charge(Pure(1), "here")
    returned.append("here")
if how == "close":
    ledger.close()
elif how == "copy":
    shutil.copy(path, path + ".copy")
elif not (child := os.fork()):
    os._exit(0)
else:
    os.waitpid(child, 0)
other("Ledger(path).budget('s').charge(Pure(1), 'gone')")   # the last one, as it believes
returned.append("gone")
there = others.pop().do('''
budget = Ledger(path).budget("s")
for line in sys.stdin:
    try:
        budget.charge(Pure(1), line.strip())
        print("charged", flush=True)
    except LedgerError:
        print("told", flush=True)
''')

def ask(label):
    there.stdin.write(label + "\\n")
    there.stdin.flush()
    if there.stdout.readline().strip() == "charged":
        returned.append(label)

for turn in range(3):
    ask(f"there{turn}")
for turn in range(3):
    try:
        ledger.budget("s").charge(Pure(1), f"later{turn}")
        returned.append(f"later{turn}")
    except LedgerError:
        pass
    ask(f"and{turn}")
there.wait()
found = other("ledger = Ledger(path); ledger.audit(); print(*ledger.entries('s').release)")
print(sorted(returned) == sorted(found), found, returned)
os._exit(0)
"""


@pytest.mark.parametrize("how", ["close", "fork", "copy"])
def test_a_connection_of_somebody_else_in_the_process_loses_no_charge(tmp_path, how):
    assert run(FOREIGN, tmp_path / "budget.db", how).startswith("True")


def test_a_log_that_was_cut_off_is_not_written_to(tmp_path):
    code = """
budget = Ledger(path).open("s", Pure(1000))
for turn in range(5):
    budget.charge(Pure(1), str(turn))
os.truncate(path + "-wal", 0)
for turn in range(3):
    try:
        budget.charge(Pure(1), "after")
        print("returned")
    except LedgerError as error:
        assert "Nothing was entered" in str(error), error
os._exit(0)
"""
    assert run(code, tmp_path / "budget.db") == ""


def test_interrupts_lose_no_charge_and_hold_nobody_up(tmp_path):
    code = """
budget = Ledger(path).open("s", Pure(10**9))

class Interrupted(BaseException):
    pass

def interrupt(*_):
    raise Interrupted

signal.signal(signal.SIGALRM, interrupt)
returned, interrupted, end = 0, 0, time.monotonic() + 5
while interrupted < 8 * 97 and time.monotonic() < end:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 + (interrupted % 97) * 2e-5)
            while True:
                budget.charge(Pure(1), "x")
                returned += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        interrupted += 1
budget.charge(Pure(1), "x")
print(interrupted, returned + 1, *other("budget = Ledger(path).budget('s'); budget.charge(Pure(1), 'y');"
    "print(len(budget.entries) - 1, Ledger(path).audit().charges - 1)"))
"""
    interrupted, returned, entered, audited = map(int, run(code, tmp_path / "budget.db").split())
    assert interrupted > 100
    assert returned <= entered == audited <= returned + interrupted


@pytest.mark.parametrize("action", ["budget.left", "budget.charge(Pure(1), 'y')"])
def test_a_handler_of_a_signal_uses_the_ledger_while_its_thread_does(tmp_path, action):
    code = f"""
budget = Ledger(path).open("s", Pure(10**9))
handled = refused = 0

def handle(*_):
    global handled, refused
    try:
        {action}
        handled += 1
    except LedgerError as error:
        assert "already" in str(error), error
        refused += 1

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
end, charged = time.monotonic() + 2, 0
while handled + refused < 300 and time.monotonic() < end:
    budget.charge(Pure(1), "x")
    charged += 1
signal.setitimer(signal.ITIMER_REAL, 0)
labels = budget.entries["release"]
print((labels == "x").sum() == charged, (labels == "y").sum() in (0, handled), handled + refused > 20)
"""
    assert run(code, tmp_path / "budget.db").split() == ["True"] * 3


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "my budget.db"
    ledger = Ledger(path)
    ledger.open("s", Pure(1))
    ledger.close()
    real = str(path).replace(" ", "\\040")
    mounts = f"22 1 8:1 / / rw - ext4 /dev/sda rw\n40 22 8:1 /x {real} rw - ext4 /dev/sda rw\n"

    def opened(name, *rest, **options):
        return io.StringIO(mounts) if name == "/proc/self/mountinfo" else open(name, *rest, **options)

    monkeypatch.setattr(files, "open", opened, raising=False)
    with pytest.raises(LedgerError, match="mounted as a single file"):
        ledger.budget("s").charge(Pure("0.5"), "x")
    monkeypatch.undo()
    assert ledger.budget("s").spent == (0, 0)


@pytest.mark.parametrize("year", [1970, 1999, 2300])
def test_a_clock_that_cannot_be_right_enters_nothing(tmp_path, monkeypatch, year):
    budget = Ledger(tmp_path / "budget.db").open("s", Pure(1))

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(year, 1, 1, tzinfo=UTC)

    monkeypatch.setattr("pdprivacy.ledger.budget.datetime", Clock)
    with pytest.raises(LedgerError, match=f"the year {year}"):
        budget.charge(Pure("0.5"), "x")
    monkeypatch.undo()
    assert budget.entries.empty
    budget.charge(Pure("0.5"), "x")
    assert Ledger(tmp_path / "budget.db").audit().charges == 1
