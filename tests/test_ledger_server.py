from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import pickle
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import psycopg
import pytest

import pdprivacy
from pdprivacy import Ledger
from pdprivacy.errors import (
    AlreadyCharged,
    BudgetExceeded,
    LedgerError,
    MissingExtraError,
    ParameterError,
    TamperedLedgerError,
)
from pdprivacy.ledger.chain import ROOT, check, link
from pdprivacy.ledger.postgres import PAGE, refused
from pdprivacy.ledger.server import ServerStore
from pdprivacy.ledger.store import Row, Store
from tests.support.processes import STORE_ALONE

SECRET = "s3cr3t-pass"  # the password of every user of the test server
NOTHING = "Nothing was entered."
HANG = 120  # seconds after which a process of a test is taken to hang


def _program(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return shutil.which(name, path=os.pathsep.join(map(str, reversed(folders)))) or shutil.which(name)


class Server:
    """A PostgreSQL server of the tests, on a free port of this machine, run by a user that is not root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.user: str | None = None
        if os.getuid() == 0:
            known = {entry.pw_name for entry in pwd.getpwall()}
            self.user = next((name for name in ("postgres", "nobody") if name in known), None)
            if self.user is None:
                pytest.skip("a PostgreSQL server does not run as root, and there is no other user")
            os.chown(folder, pwd.getpwnam(self.user).pw_uid, -1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.numbers = itertools.count(1)

    def run(self, program: str, *arguments: str) -> None:
        path = _program(program)
        if path is None:
            pytest.skip(f"there is no {program} of PostgreSQL")
        done = subprocess.run(
            [path, "-D", str(self.data), *arguments], user=self.user, cwd="/", capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"{program} failed: {done.stderr.strip()[-300:]}")

    def create(self) -> None:
        with tempfile.NamedTemporaryFile("w", prefix="pw") as file:
            file.write(SECRET)
            file.flush()
            os.chmod(file.name, 0o644)
            self.run("initdb", "-U", "owner", "-A", "scram-sha-256", "-E", "UTF8", f"--pwfile={file.name}")
        self.start()

    def start(self) -> None:
        # WAL is flushed by commits that wait for it, and else late: what is not waited for is lost in a crash
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=on"
        options += " -c wal_writer_delay=10s"
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, how: str) -> None:
        self.run("pg_ctl", "-w", "-m", how, "stop")

    def url(self, schema: str, user: str = "owner") -> str:
        query = f"options=-csearch_path%3D{schema}&application_name={schema}"
        return f"postgresql://{user}:{SECRET}@127.0.0.1:{self.port}/postgres?{query}"

    def sql(self, schema: str, statement: str) -> list[tuple]:
        url = self.url(schema).replace("application_name=", "application_name=the-test-of-")
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def schema(self) -> str:
        """A new one; a schema for each test would make the server slow to stop and to recover."""
        name = f"ledger{next(self.numbers)}"
        self.sql("public", f"CREATE SCHEMA {name}; GRANT USAGE ON SCHEMA {name} TO PUBLIC")
        return name


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="pdprivacy-server-"))
    try:
        server = Server(folder)
        server.create()
        yield server
        server.stop("fast")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def schema(server) -> str:
    return server.schema()


@pytest.fixture
def open_store(server, schema) -> Iterator[Callable[..., ServerStore]]:
    with contextlib.ExitStack() as stack:

        def made(user: str = "owner", **options) -> ServerStore:
            return stack.enter_context(contextlib.closing(ServerStore(server.url(schema, user), **options)))

        yield made


@pytest.fixture
def store(open_store) -> ServerStore:
    return open_store()


@pytest.fixture
def records(store) -> ServerStore:
    """A store that holds one record."""
    _add(store)
    return store


def _add(store: Store, budget: str = "b", kind: str = "charge", release: str | None = None, **body) -> Row:
    with store.writing() as writer:
        row = link(writer.last(), budget, kind, release, body)
        writer.append(row)
    return row


def _whole(store: Store) -> list[Row]:
    """All records, after a check of the chain."""
    with store.reading() as reader:
        rows = list(reader.rows())
    before = ROOT
    for number, row in enumerate(rows, 1):
        assert row.number == number
        check(row, before)
        before = row.hash
    return rows


def _until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, "it never happens"
        time.sleep(0.01)


def _text(error: BaseException) -> str:
    """All that a user may see of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error.args)


@contextlib.contextmanager
def _raises(kind: type[BaseException]) -> Iterator[None]:
    """That very kind of error, at the end of a block of several statements."""
    with pytest.raises(kind) as caught:
        yield
    assert type(caught.value) is kind


@contextlib.contextmanager
def _refusal(match: str, effect: str = NOTHING, kind: type[Exception] = LedgerError) -> Iterator[None]:
    """A refusal in words of the ledger, which shows no password and no error of the driver."""
    with pytest.raises(kind, match=match) as caught:
        yield
    assert effect in str(caught.value)
    text = _text(caught.value)
    assert SECRET not in text
    assert "sqlalchemy.exc" not in text
    assert "psycopg." not in text.replace("+psycopg", "")


# imported at once, so that no forked process imports them by itself
DRIVERS = "import sqlalchemy.dialects.postgresql.psycopg, psycopg\n"

PREAMBLE = """
import contextlib, json, os, signal, sys, threading, time
from pdprivacy.errors import LedgerError
from pdprivacy.ledger.chain import link
from pdprivacy.ledger.server import ServerStore

def add(store, **body):
    with store.writing() as writer:
        row = link(writer.last(), "b", "charge", None, body)
        writer.append(row)
    return row.number

def children(count, work):
    # Runs work(index) in that many processes, which start together.
    ready, go = os.pipe(), os.pipe()
    ids = []
    for index in range(count):
        ids.append(os.fork())
        if ids[-1] == 0:
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            try:
                work(index)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            sys.stdout.flush()
            os._exit(0)
    while count:
        count -= len(os.read(ready[0], count))
    os.write(go[1], b"x" * len(ids))
    return [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in ids]
"""


@contextlib.contextmanager
def _process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python of its own, which is gone at the end."""
    root = str(Path(pdprivacy.__file__).parents[1])
    alone = "" if "from pdprivacy import" in code else STORE_ALONE + DRIVERS
    process = subprocess.Popen(
        [sys.executable, "-c", alone + PREAMBLE + code, *arguments],
        env={**os.environ, "PYTHONPATH": root}, text=True, bufsize=1,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    timer = threading.Timer(HANG, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        with process:
            yield process
            process.stdin.close()
            process.stdin = None
    finally:
        timer.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _run(code: str, *arguments: str) -> str:
    with _process(code, *arguments) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert err == ""
    return out


def _said(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.strip()


# Records


@pytest.mark.full
def test_records_come_back_as_they_were_entered(store):
    long = "é" * 100
    with store.writing() as writer:
        assert writer.last() is None
        entered = []
        for budget, kind, release in (
            ("", "ledger", None), ("B", "open", None), ("a", "open", None), ("a", "charge", "r1"),
            ("a", "charge", None), ("a", "charge", None), ("B", "charge", "r1"), (long, "open", None),
            ("a", "answer", "r1x"), ("%(x)s :y ? \\ '\"", "open", "{}"),
        ):  # fmt: skip
            row = link(writer.last(), budget, kind, release, {"x": "'\"\\:y %s"})
            writer.append(row)
            entered.append(row)
            assert writer.last() == row
    for context in (store.reading, store.writing):
        with context() as reader:
            assert list(reader.rows()) == entered
            assert list(reader.rows("a")) == [row for row in entered if row.budget == "a"]
            assert list(reader.rows("a", after=5)) == [entered[5], entered[8]]
            assert list(reader.rows(after=9)) == entered[9:]
            assert list(reader.rows("A")) == []
            assert reader.last() == entered[-1]
            assert reader.at(3) == entered[2]
            assert reader.latest("a", "charge") == entered[5]
            assert reader.latest("b", "charge") is None
            assert reader.released("B", "r1") == entered[6]
            assert reader.released("B", "r2") is None
            assert reader.budgets() == ["B", "a", long, "%(x)s :y ? \\ '\""]


@pytest.mark.full
@pytest.mark.parametrize("number", [-(10**30), -(2**63) - 1, -1, 0, 2, 2**31, 2**63 - 1, 2**63, 10**30])
def test_numbers_without_a_record(records, number):
    with records.reading() as reader:
        assert reader.at(number) is None
        assert [row.number for row in reader.rows(after=number)] == ([1] if number < 1 else [])


@pytest.mark.full
def test_many_records_come_in_pages(store):
    count = 2 * PAGE + 1
    with store.writing() as writer:
        row = None
        for index in range(count):
            row = link(row, "even" if index % 2 else "odd", "charge", None, {})
            writer.append(row)
    assert len(_whole(store)) == count
    with store.reading() as reader:
        pairs = itertools.islice(zip(reader.rows("odd"), reader.rows("even"), strict=False), PAGE // 2 + 1)
        assert all(left.number + 1 == right.number for left, right in pairs)  # two at a time, left unfinished
        assert reader.last().number == count
        assert [row.number for row in reader.rows(after=PAGE)] == list(range(PAGE + 1, count + 1))


def test_a_release_is_entered_once_per_budget(records):
    _add(records, release="r")
    _add(records, budget="c", release="r")
    with _refusal("that number or release already"):
        _add(records, release="r")
    with _refusal("that number or release already"), records.writing() as writer:
        writer.append(writer.at(1))
    assert len(_whole(records)) == 3


@pytest.mark.parametrize("name", ["nul \0", "surrogate \ud800"])
def test_names_that_the_server_cannot_hold(records, name):
    row = Row(2, name, "charge", name, "{}", bytes(32))
    with _refusal("no such text"), records.writing() as writer:
        writer.append(row)
    with _refusal("no such text", ""), records.reading() as reader:
        reader.released("b", name)
    assert len(_whole(records)) == 1


def test_a_name_longer_than_an_index_holds(records):
    name = "".join(chr(0x4E00 + (index * 7919) % 20000) for index in range(5000))
    with _refusal("longer than the server can index"):
        _add(records, budget=name)
    with records.reading() as reader:
        assert reader.latest(name, "open") is None


def test_a_number_that_the_server_cannot_hold(records):
    with _refusal("no such text or number"), records.writing() as writer:
        writer.append(Row(2**63, "b", "charge", None, "{}", bytes(32)))


# Blocks


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, StopIteration, GeneratorExit, LedgerError])
def test_an_error_of_the_block_goes_through_and_nothing_is_entered(records, kind):
    raised = kind("of the caller")

    def enter() -> None:
        with records.writing() as writer:
            writer.append(link(writer.last(), "b", "charge", None, {}))
            raise raised

    def look() -> None:
        with records.reading() as reader:
            reader.last()
            raise raised

    for use in (enter, look):
        with pytest.raises(kind) as caught:
            use()
        assert caught.value is raised
    assert len(_whole(records)) == 1
    assert _add(records).number == 2


def test_an_error_that_the_block_swallows_is_raised_at_its_end(records):
    with _refusal("an error before"), records.writing() as writer:
        first = writer.last()
        writer.append(link(first, "b", "charge", None, {}))
        with _refusal("already"):
            writer.append(first)
        with _refusal("an error before"):
            writer.last()
    assert len(_whole(records)) == 1


def test_readers_and_writers_end_with_their_block(records):
    with records.reading() as reader:
        rows = reader.rows()
    with records.writing() as writer:
        pass
    for use in (reader.last, lambda: next(rows), lambda: writer.append(writer.last())):
        with _refusal("after its block", ""):
            use()


def test_a_reader_sees_one_moment_and_delays_nobody(records, open_store):
    with records.reading() as reader:
        rows = reader.rows()
        assert next(rows).number == 1
        for _ in range(3):
            _add(open_store(patience=20))
        assert reader.last().number == 1
        assert list(rows) == []
    assert len(_whole(records)) == 4


def test_a_writer_delays_no_reader(records, open_store):
    with records.writing() as writer:
        writer.append(link(writer.last(), "b", "charge", None, {}))
        assert len(_whole(open_store())) == 1
    assert len(_whole(records)) == 2


def test_patience_ends(records, open_store):
    hasty = open_store(patience=0.2)
    with records.writing() as writer:
        with _refusal("others hold the ledger"):
            _add(hasty)
        writer.append(link(writer.last(), "b", "charge", None, {}))
    assert _add(hasty).number == 3


def test_limits_of_the_user_do_not_cut_the_patience(records, server, schema, open_store):
    server.sql(schema, f"CREATE ROLE hasty LOGIN SUPERUSER PASSWORD '{SECRET}'")
    server.sql(schema, "ALTER ROLE hasty SET statement_timeout = 100")
    server.sql(schema, "ALTER ROLE hasty SET lock_timeout = 100")
    waiting = threading.Thread(target=_add, args=(open_store("hasty"),))
    with records.writing():
        waiting.start()
        _until(lambda: server.sql(schema, "SELECT 1 FROM pg_locks WHERE NOT granted"))
        time.sleep(0.5)
    waiting.join()
    assert len(_whole(records)) == 2


def test_writers_wait_for_one_that_holds_only_the_row(records, server, schema, open_store):
    """The row of turns alone keeps writers apart; the advisory lock only keeps their order."""
    with psycopg.connect(server.url(schema)) as other:
        other.execute("UPDATE pdprivacy_ledger SET turn = turn + 1")
        with _refusal("others hold the ledger"):
            _add(open_store(patience=0.2))
    assert _add(records).number == 2


# Many at once


@pytest.mark.full
def test_sixteen_processes_never_spend_more_than_the_total(server, schema):
    code = """
from pdprivacy import Ledger, Pure
from pdprivacy.errors import BudgetExceeded

def work(index):
    budget, longest, accepted = Ledger(sys.argv[1]).budget("one"), 0, 0
    for turn in range(25):
        start = time.monotonic()
        with contextlib.suppress(BudgetExceeded):
            budget.charge(Pure("1/1000"), f"{index} {turn}")
            accepted += 1
        longest = max(longest, time.monotonic() - start)
    os.write(1, f"{accepted} {longest}\\n".encode())

ledger = Ledger(sys.argv[1])
ledger.open("one", Pure("403/2000"))
assert children(16, work) == [0] * 16
"""
    told = [line.split() for line in _run(code, server.url(schema)).splitlines()]
    assert sum(int(accepted) for accepted, _ in told) == 201
    assert max(float(longest) for _, longest in told) < 10
    ledger = Ledger(server.url(schema))
    assert ledger.budget("one").account.spent.epsilon == Fraction(201, 1000)
    assert ledger.entries("one").index.tolist() == list(range(1, 202))
    assert ledger.audit().charges == 201
    ledger.close()


def test_a_budget_on_a_server_is_that_of_every_process(server, schema):
    column = pa.Column(bool, metadata={"dp": {}})
    frame, declared = pd.DataFrame({"member": [True, False]}), pa.DataFrameSchema({"member": column})
    ledger = Ledger(server.url(schema))
    private = frame.dp.protect(declared, epsilon=1, budget=ledger, name="survey")
    private.dp.count(epsilon="1/4", release_id="a")
    copy = pickle.loads(pickle.dumps(ledger))
    again = frame.dp.protect(declared, budget=copy, name="survey")
    with pytest.raises(AlreadyCharged, match="its answer was handed out"):
        again.dp.count(epsilon="1/4", release_id="a")
    again.dp.count(epsilon="1/2")
    assert private.dp.budget.left == (0.25, 0)
    assert copy.audit(ledger.head).charges == 2
    with pytest.raises(BudgetExceeded):
        private.dp.count(epsilon="1/2")
    assert SECRET not in repr((ledger, copy, private.dp.budget))
    ledger.close()
    copy.close()


@pytest.mark.full
def test_threads_share_a_store(records):
    failed = []

    def work(index: int) -> None:
        try:
            for _ in range(10):
                _add(records, thread=index)
                with records.reading() as reader:
                    reader.last()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(_whole(records)) == 201


@pytest.mark.full
def test_processes_that_make_the_ledger_at_once(server, schema, store):
    code = "assert children(8, lambda index: add(ServerStore(sys.argv[1]), index=index)) == [0] * 8"
    _run(code, server.url(schema))
    assert sorted(json.loads(row.body)["index"] for row in _whole(store)) == list(range(8))
    assert server.sql(schema, "SELECT format, turn FROM pdprivacy_ledger") == [(1, 8)]


@pytest.mark.full
def test_both_sides_of_a_fork(server, schema, store):
    code = """
store = ServerStore(sys.argv[1])
add(store)
with store.reading() as reader:  # a second connection, in use
    with store.reading():        # and a third one, idle after this
        pass
    child = os.fork()
    for _ in range(30):
        add(store, child=child == 0)
    if child == 0:
        try:
            reader.last()
        except LedgerError as error:
            assert "another process" in str(error)
        else:
            sys.exit("the child reads on the connection of the parent")
        store.close()
        sys.exit(0)              # leaves the block of the parent
    assert os.waitpid(child, 0)[1] == 0
    assert reader.last().number == 1
add(store)
store.close()
"""
    _run(code, server.url(schema))
    bodies = [json.loads(row.body) for row in _whole(store)]
    assert len(bodies) == 62
    assert sum(body.get("child", False) for body in bodies) == 30


@pytest.mark.full
def test_a_child_that_leaves_the_block_of_its_parent_does_not_end_it(server, schema, store):
    code = """
store = ServerStore(sys.argv[1])
go = os.pipe()
with contextlib.suppress(ZeroDivisionError), store.writing() as writer:
    writer.append(link(writer.last(), "b", "charge", None, {}))
    child = os.fork()
    if child == 0:
        1 / 0
    os.read(go[0], 1)  # the child has left
if child == 0:
    os.write(go[1], b"x")
    add(store)
else:
    assert os.waitpid(child, 0)[1] == 0
"""
    _run(code, server.url(schema))
    assert len(_whole(store)) == 2


# What ends suddenly


@pytest.mark.full
@pytest.mark.parametrize("orphan", [False, True], ids=["alone", "with a child that lives on"])
def test_a_killed_writer_lets_go_and_leaves_nothing(server, schema, records, open_store, orphan):
    """At once, not only when the server takes the turn from a writer that does nothing."""
    code = """
with ServerStore(sys.argv[1]).writing() as writer:
    writer.append(link(writer.last(), "b", "charge", None, {"killed": True}))
    if sys.argv[2] == "True" and os.fork() == 0:
        time.sleep(600)
    print("entered", flush=True)
    time.sleep(600)
"""
    with _process(code, server.url(schema), str(orphan)) as process:
        assert _said(process) == "entered"
        process.kill()
        assert _add(open_store(patience=20)).number == 2
        os.killpg(process.pid, signal.SIGKILL)
    assert "killed" not in [json.loads(row.body) for row in _whole(records)][1]


@pytest.mark.parametrize("when", ["before a statement", "before the end"])
def test_a_connection_that_the_server_ends(server, schema, records, when):
    end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    end += f" WHERE application_name = '{schema}' AND state = 'idle in transaction'"
    effect = NOTHING if when == "before a statement" else "Whether it was entered is not known"
    with _refusal("the server ended the connection|lost", effect), records.writing() as writer:
        writer.append(link(writer.last(), "b", "charge", None, {}))
        assert server.sql(schema, end) == [(True,)]
        if when == "before a statement":
            writer.append(link(writer.last(), "b", "charge", None, {}))
    assert len(_whole(records)) == 1
    with _raises(ZeroDivisionError), records.writing():
        server.sql(schema, end)
        1 / 0  # noqa: B018 - goes through, whatever became of the connection
    with _refusal("the server ended the connection|lost", ""), records.reading() as reader:
        server.sql(schema, end)
        reader.last()
    assert _add(records).number == 2


def test_idle_connections_that_the_server_ended_are_replaced(server, schema, records):
    end = f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = '{schema}'"
    server.sql(schema, end)
    assert _add(records).number == 2


@pytest.mark.full
def test_what_was_reported_survives_a_crash_of_the_server(server, schema, records):
    """Even for a user whose commits do not wait for the disk elsewhere."""
    server.sql(schema, f"CREATE ROLE careless LOGIN SUPERUSER PASSWORD '{SECRET}'")
    server.sql(schema, "ALTER ROLE careless SET synchronous_commit = off")
    code = """
def work(index):
    store = ServerStore(sys.argv[1])
    while True:
        try:
            number = add(store, process=index)
        except LedgerError as error:
            assert "ntered" in str(error)
            return
        os.write(1, f"{number} {index}\\n".encode())

assert children(4, work) == [0] * 4
"""
    for crash in range(2):
        with _process(code, server.url(schema, "careless")) as process:
            reported = [_said(process) for _ in range(60)]
            server.stop("immediate")
            rest, err = process.communicate()
            assert (process.returncode, err) == (0, "")
        reported += rest.split("\n")[:-1]
        server.start()
        rows = {row.number: json.loads(row.body)["process"] for row in _whole(records)[1:]}
        for number, process in (map(int, line.split()) for line in reported):
            assert rows[number] == process, crash
    _add(records)


def test_an_answer_that_the_server_does_not_take_says_which_charge_is_entered(server, schema):
    ledger = Ledger(server.url(schema))
    budget = ledger.open("survey", pdprivacy.Pure(1))
    entry = budget.charge(pdprivacy.Pure("0.25"), "count")
    server.stop("immediate")
    try:
        with pytest.raises(LedgerError) as caught:
            budget.answered(entry.number)
    finally:
        server.start()
    text = str(caught.value)
    assert text.startswith("Charge 1 of the budget 'survey' is entered, but its answer was not handed out")
    assert NOTHING not in text
    assert "again" not in text
    assert budget.entries["answered"].tolist() == [False]
    assert budget.spent == (0.25, 0)
    ledger.close()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TRIGGER pdprivacy_append_only ON pdprivacy_records", "the trigger .* is missing"),
        ("ALTER TABLE pdprivacy_records DISABLE TRIGGER USER", "the trigger .* is missing"),
        ("DROP INDEX pdprivacy_records_kind", "the index 'pdprivacy_records_kind' is missing"),
        (
            "CREATE OR REPLACE FUNCTION pdprivacy_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RETURN NULL; END'",
            "the trigger .* was changed",
        ),
    ],
)
def test_an_audit_finds_what_no_longer_guards_the_records(server, schema, statement, words):
    with Ledger(server.url(schema)) as ledger:
        ledger.open("survey", pdprivacy.Pure(1)).charge(pdprivacy.Pure("0.25"), "count")
        assert ledger.audit().charges == 1
        server.sql(schema, statement)
        with pytest.raises(TamperedLedgerError, match=words):
            ledger.audit()


# What cannot be used


def test_a_server_that_cannot_be_reached(server, schema, open_store):
    good = server.url(schema)
    for bad, match in (
        (good.replace(SECRET, SECRET + "x"), "refuses the user or the password"),
        (good.replace(f":{SECRET}@", "@"), "refuses the user or the password"),
        (good.replace("owner", "nobody-known"), "refuses the user or the password"),
        (good.replace("/postgres?", "/absent?"), "no such database"),
        (good.replace(str(server.port), "1"), "no server answers"),
        (good.replace("127.0.0.1", "host.invalid"), "its host is not known"),
        (good + "&connect_timeout=never", "no server answers"),
    ):
        store = ServerStore(bad, patience=10)
        assert SECRET not in store.address + repr(store) + repr(vars(store))
        with _refusal(match):
            _add(store)
        with _refusal(match, ""), store.reading():
            pass
        store.close()


def test_too_many_connections(server, schema):
    server.sql(schema, f"CREATE ROLE few LOGIN PASSWORD '{SECRET}' CONNECTION LIMIT 1")
    server.sql(schema, f"GRANT ALL ON SCHEMA {schema} TO few")
    store = ServerStore(server.url(schema, "few"))
    with store.writing(), _refusal("too many connections"):
        _add(store)
    store.close()


def test_a_schema_without_a_ledger(server, schema, store):
    with _refusal("no ledger there yet", ""), store.reading():
        pass
    with _raises(ZeroDivisionError), store.writing():
        1 / 0  # noqa: B018
    assert server.sql(schema, "SELECT to_regclass('pdprivacy_records')::text") == [(None,)]


def test_a_ledger_of_another_format(server, schema, records):
    server.sql(schema, "UPDATE pdprivacy_ledger SET format = 7")
    for match, effect, context in (("", NOTHING, records.writing), ("", "", records.reading)):
        with _refusal(f"has format 7; this version of pdprivacy reads format 1{match}", effect), context():
            pass
    server.sql(schema, "DELETE FROM pdprivacy_ledger")
    with _refusal("must hold its format once"), records.writing():
        pass


def test_tables_of_something_else(server, schema, store):
    server.sql(schema, "CREATE TABLE pdprivacy_ledger (x int)")
    with _refusal("not those of a ledger"):
        _add(store)


def test_a_user_without_permissions(server, schema, records, open_store):
    server.sql(schema, f"CREATE ROLE weak LOGIN PASSWORD '{SECRET}'")
    weak = open_store("weak")
    with _refusal("lacks a permission", ""), weak.reading():
        pass
    server.sql(schema, "GRANT SELECT ON pdprivacy_records, pdprivacy_ledger TO weak")
    assert len(_whole(weak)) == 1
    with _refusal("lacks a permission"):
        _add(weak)
    server.sql(schema, "GRANT INSERT ON pdprivacy_records TO weak; GRANT UPDATE ON pdprivacy_ledger TO weak")
    assert _add(weak).number == 2
    empty = ServerStore(server.url(server.schema(), "weak"))
    with _refusal("lacks a permission"):
        _add(empty)
    empty.close()


def test_a_server_that_takes_no_writes(server, schema, records, open_store):
    server.sql(schema, f"CREATE ROLE standby LOGIN SUPERUSER PASSWORD '{SECRET}'")
    server.sql(schema, "ALTER ROLE standby SET default_transaction_read_only = on")
    with _refusal("takes no writes"):
        _add(open_store("standby"))
    assert len(_whole(open_store("standby"))) == 1


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE pdprivacy_records SET body = '{}'", "DELETE FROM pdprivacy_records",
        "TRUNCATE pdprivacy_records", "DELETE FROM pdprivacy_records WHERE number = 5",
        "INSERT INTO pdprivacy_records SELECT * FROM pdprivacy_records"
        " ON CONFLICT (number) DO UPDATE SET body = '{}'",
    ],
)  # fmt: skip
def test_records_are_neither_changed_nor_removed(server, schema, records, statement):
    before = _whole(records)
    with pytest.raises(psycopg.errors.RaiseException, match="never changed or removed"):
        server.sql(schema, statement)
    assert _whole(records) == before


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "change",
    [
        "hash = '\\x00'", "hash = NULL", "budget = NULL", "kind = NULL", "body = NULL",
    ],
)  # fmt: skip
def test_columns_of_another_kind_are_tampered_with(server, schema, records, change):
    server.sql(schema, "ALTER TABLE pdprivacy_records DISABLE TRIGGER ALL")
    for column in ("budget", "kind", "body", "hash"):
        server.sql(schema, f"ALTER TABLE pdprivacy_records ALTER {column} DROP NOT NULL")
    server.sql(schema, f"UPDATE pdprivacy_records SET {change}")
    with _refusal("Record 1 .* not what was entered", "", TamperedLedgerError), records.reading() as reader:
        reader.last()
    with _refusal("Record 1 .* not what was entered", "", TamperedLedgerError), records.reading() as reader:
        list(reader.rows())


def test_numbers_of_another_kind_are_tampered_with(server, schema, records):
    server.sql(schema, "ALTER TABLE pdprivacy_records ALTER number TYPE double precision")
    with (
        _refusal("A record of .* not what was entered", "", TamperedLedgerError),
        records.reading() as reader,
    ):
        reader.last()


@pytest.mark.parametrize(
    ("code", "match"),
    [
        ("53100", "disk of the server is full"), ("53200", "ran out of a resource"),
        ("40001", "undid the transaction"), ("40P01", "undid the transaction"),
        ("25P03", "lost its turn"), ("57P01", "ended the connection"), ("08006", "was lost"),
        ("57014", "cancelled"), ("XX001", "damaged"), ("0A000", "SQLSTATE 0A000"), ("", "unknown"),
    ],
)  # fmt: skip
def test_errors_that_a_test_does_not_make_happen(code, match):
    error = Exception("INSERT INTO secrets")
    error.orig = Exception("the secrets")
    error.orig.sqlstate = code or None
    text = str(refused("postgresql://host/db", NOTHING, error))
    assert match in text
    assert NOTHING in text
    assert "secrets" not in text


# Making a store


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("sqlite:///folder/budget.db", "'folder/budget.db'"), ("sqlite://", "path alone"),
        ("sqlite+aiosqlite:///x.db", "'x.db'"),
        ("mysql://u:s3cr3t-pass@host/db", "PostgreSQL"), ("postgresql+asyncpg://host/db", "psycopg"),
        ("postgresql+psycopg_async://host/db", "psycopg"), ("nonsense s3cr3t-pass", "not a URL"),
        ("postgresql://u:s3cr3t-pass@host:port/db", "not a URL"), (5, "must be a text"),
    ],
)  # fmt: skip
def test_urls_that_are_refused(url, match):
    with _refusal(match, "", ParameterError):
        ServerStore(url)


@pytest.mark.parametrize("patience", [0, -1, float("nan"), True, "60", None])
def test_patience_that_is_refused(patience):
    with pytest.raises(ParameterError, match="'patience' must be a positive number"):
        ServerStore("postgresql://host/db", patience=patience)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_an_address_holds_no_password(scheme):
    store = ServerStore(
        f"{scheme}://ada:s3cr3t-pass@host:5/db?password=s3cr3t-pass&sslpassword=s3cr3t-pass&options=-csearch_path%3Dx"
    )
    assert store.address == "postgresql+psycopg://ada@host:5/db?options=-csearch_path%3Dx"
    assert repr(store) == f"ServerStore({store.address!r})"


def test_schemas_keep_their_ledgers_apart(server, schema, records, open_store):
    with contextlib.closing(ServerStore(server.url(server.schema()), patience=1)) as other:
        with records.writing():
            assert _add(other).number == 1  # waits for no writer of the first
        assert other.address != records.address
        assert _add(other).number == 2
    assert len(_whole(records)) == 1


@pytest.mark.parametrize(
    ("module", "what"), [("sqlalchemy", "SQLAlchemy"), ("psycopg", "the driver psycopg")]
)
def test_the_extra_is_named_where_it_is_missing(monkeypatch, module, what):
    for name in [name for name in sys.modules if name == module or name.startswith(module + ".")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f'needs {what}.*\n.*pip install "pdprivacy\\[server\\]"'):
        ServerStore("postgresql+psycopg://host/db")


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("how", ["closed", "collected"])
def test_a_store_lets_go_of_its_connections(server, schema, records, how):
    connected = f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{schema}'"
    store = ServerStore(server.url(schema))
    records.close()
    assert len(_whole(store)) == 1
    assert server.sql(schema, connected) == [(1,)]
    if how == "closed":
        store.close()
        store.close()
        assert len(_whole(store)) == 1  # opens anew
        store.close()
    else:
        del store
        gc.collect()
    _until(lambda: not server.sql(schema, connected))
