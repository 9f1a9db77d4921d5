from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import pickle
import pwd
import re
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
from pdprivacy import Ledger, errors
from pdprivacy.ledger import postgres
from pdprivacy.ledger.postgres import PostgresStore
from pdprivacy.ledger.store import NOTHING, UNKNOWN, Row, Store, check, link
from tests.support.processes import STORE_ALONE

SECRET = "s3cr3t-pass"  # the password of every user of the test server
HANG = 120  # seconds after which a process of a test is taken to hang
LAST = 2**63 - 1


def _program(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return shutil.which(name, path=os.pathsep.join(map(str, reversed(folders)))) or shutil.which(name)


class Server:
    """A PostgreSQL server of the tests, on a free port of this machine, run by a user that is not root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
        command = [path, "-D", str(self.folder / "data"), *arguments]
        process = subprocess.run(command, user=self.user, cwd="/", capture_output=True, text=True)
        if process.returncode:
            pytest.skip(f"{program} failed: {process.stderr.strip()[-300:]}")

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
        """A new one; a database for each test would make the server slow to stop and to recover."""
        name = f"ledger{next(self.numbers)}"
        self.sql("public", f"CREATE SCHEMA {name}; GRANT USAGE ON SCHEMA {name} TO PUBLIC")
        return name

    def user_of(self, schema: str, name: str, setting: str = "") -> str:
        """The URL for a new user."""
        self.sql(schema, f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}' {'SUPERUSER' * bool(setting)}")
        if setting:
            self.sql(schema, f"ALTER ROLE {name} SET {setting}")
        return self.url(schema, name)

    def connections(self, schema: str) -> int:
        """The number of open connections, except those of the test itself."""
        return len(self.sql(schema, f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{schema}'"))

    def end_connections(self, schema: str) -> int:
        end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        return len(self.sql(schema, f"{end} WHERE application_name = '{schema}'"))


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
def open_store(server, schema) -> Iterator[Callable[..., PostgresStore]]:
    with contextlib.ExitStack() as stack:

        def made(url: str | None = None, **options) -> PostgresStore:
            store = PostgresStore(url or server.url(schema), **options)
            return stack.enter_context(contextlib.closing(store))

        yield made


@pytest.fixture
def store(open_store) -> PostgresStore:
    return open_store()


@pytest.fixture
def records(store) -> PostgresStore:
    """A store that holds one record."""
    _add(store)
    return store


def _enter(writer, budget: str = "b", kind: str = "charge", release: str | None = None, **body) -> Row:
    row = link(writer.last(), budget, kind, release, body)
    writer.append(row)
    return row


def _add(store: Store, *columns, **body) -> Row:
    return store.write(lambda writer: _enter(writer, *columns, **body))


def _whole(store: Store) -> list[Row]:
    """All records, after a check of the chain."""
    rows = store.read(lambda reader: reader.span(0, LAST))
    before = None
    for row in rows:
        check(row, before)
        before = row
    return rows


def _until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, "it never happens"
        time.sleep(0.01)


def _refused(match: str, call: Callable, *args, fate: str = NOTHING, kind: type = errors.LedgerError) -> None:
    """A call is refused in words of the ledger, which show no password and no error of the driver."""
    with pytest.raises(kind, match=match) as caught:
        call(*args)
    error = caught.value
    assert type(error) is kind
    assert fate in str(error)
    assert fate or NOTHING not in str(error)
    text = "".join(traceback.format_exception(error)) + repr(error) + str(error.args)
    assert SECRET not in text
    assert "psycopg." not in text


# psycopg is imported at once, so that no forked process imports it by itself
PREAMBLE = """
import multiprocessing, os, signal, sys, threading, time
import psycopg
from pdprivacy.errors import LedgerError
from pdprivacy.ledger.postgres import PostgresStore
from pdprivacy.ledger.store import link

def enter(writer, **body):
    row = link(writer.last(), "b", "charge", None, body)
    writer.append(row)
    return row.number

def add(store, **body):
    return store.write(lambda writer: enter(writer, **body))

def children(count, work):
    # Runs work(index) in that many processes, which start together.
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(count)
    run = lambda index: (barrier.wait(), work(index))
    processes = [fork.Process(target=run, args=(index,)) for index in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]
"""


@contextlib.contextmanager
def _process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python of its own, which is gone at the end."""
    alone = "" if "from pdprivacy import" in code else STORE_ALONE
    process = subprocess.Popen(
        [sys.executable, "-W", "always::ResourceWarning", "-c", alone + PREAMBLE + code, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(pdprivacy.__file__).parents[1])}, text=True, bufsize=1,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    timer = threading.Timer(HANG, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        with process:
            yield process
    finally:
        timer.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _run(code: str, *arguments: str) -> str:
    with _process(code, *arguments) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return out


def _line(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.strip()


# Records


def test_records_come_back_as_they_were_entered(store):
    long, odd = "é" * 100, "%(x)s :y ? \\ '\""
    columns = [
        ("", "ledger", None), ("B", "open", None), ("a", "open", None), ("a", "charge", "r1"),
        ("a", "charge", None), ("a", "charge", None), ("B", "charge", "r1"), (long, "open", None),
        ("a", "answer", "r1x"), (odd, "open", "{}"),
    ]  # fmt: skip
    entered = store.write(lambda writer: [_enter(writer, *values, x="'\"\\:y %s") for values in columns])

    def look(reader) -> None:
        assert reader.span(0, 10) == entered
        assert reader.span(3, 5) == entered[3:5]
        assert reader.span(9, LAST) == entered[9:]
        assert reader.last() == entered[-1]
        assert reader.at(3) == entered[2]
        assert [reader.at(number) for number in (-1, 0, 11, LAST, 10**30)] == [None] * 5
        assert reader.find("a", "charge") == entered[5]
        assert reader.find("b", "charge") is None
        assert [reader.last_charge("a", after) for after in (0, 5, 6)] == [entered[5], entered[5], None]
        assert reader.last_charge("A", 0) is None
        assert reader.find("B", "charge", "r1") == entered[6]
        assert reader.find("B", "charge", "r2") is None
        assert list(reader.last_charges().items()) == [("B", 7), ("a", 6), (long, 0), (odd, 0)]
        assert reader.damage(10) == []
        assert reader.unindexed(0, 10) == []

    store.read(look)
    store.write(look)


def test_a_release_is_entered_once_per_budget(records):
    _add(records, "b", "charge", "r")
    _add(records, "c", "charge", "r")
    _refused("number or release already", _add, records, "b", "charge", "r")
    _refused("number or release already", records.write, lambda writer: writer.append(writer.at(1)))
    assert len(_whole(records)) == 3


def test_values_that_the_server_cannot_store(records):
    for number, name in ((2, "nul \0"), (2, "surrogate \ud800"), (LAST + 1, "b")):
        row = Row(number, name, "charge", None, "{}", bytes(32))
        _refused("cannot store this value", records.write, lambda writer, row=row: writer.append(row))
    _refused(
        "cannot store this value", records.read, lambda reader: reader.find("b", "charge", "nul \0"), fate=""
    )
    assert len(_whole(records)) == 1


def test_answers_are_stored_once(server, schema, records, open_store):
    """Also in a ledger of an earlier version, which has no table for them."""
    server.sql(schema, "DROP TABLE pdprivacy_answers")
    assert records.read(lambda reader: reader.stored("one")) is None
    records.write(lambda writer: writer.store("one", b"\0 first"))
    records.write(lambda writer: writer.store("one", b"second"))
    with pytest.raises(ZeroDivisionError):
        records.write(lambda writer: (writer.store("two", b"answer"), 1 / 0))
    look = lambda reader: (reader.stored("one"), reader.stored("two"))  # noqa: E731
    assert open_store().read(look) == (b"\0 first", None)


# Transactions


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "kind", [ValueError, KeyboardInterrupt, StopIteration, GeneratorExit, errors.LedgerError]
)
def test_an_error_of_the_work_passes_through_and_nothing_is_entered(records, open_store, kind):
    raised = kind("of the caller")

    def fail(use: Callable) -> Callable:
        def work(session) -> None:
            use(session)
            raise raised

        return work

    for run, use in ((records.read, lambda reader: reader.last()), (records.write, _enter)):
        with pytest.raises(kind) as caught:
            run(fail(use))
        assert caught.value is raised
    assert _add(open_store(patience=5)).number == 2  # the turn is free
    assert _add(records).number == 3


@pytest.mark.parametrize("values", [(1, "b"), (3, "\0")], ids=["refused by the server", "by the driver"])
def test_a_failed_statement_that_the_work_swallows_is_not_committed(records, open_store, values):
    def work(writer) -> None:
        _enter(writer)
        row = Row(*values, "charge", None, "{}", bytes(32))
        _refused("already|cannot store", writer.append, row)
        _refused("transaction failed", writer.last)

    _refused("transaction failed", records.write, work)
    assert _add(open_store(patience=5)).number == 2  # the turn is free
    assert _add(records).number == 3


def test_readers_and_writers_end_with_their_work(records):
    reader = records.read(lambda reader: reader)
    _refused("after its transaction", reader.last, fate="")
    writer = records.write(lambda writer: writer)
    _refused("after its transaction", _enter, writer)
    assert len(_whole(records)) == 1


def test_readers_see_one_moment_and_neither_wait_nor_delay(records, open_store):
    def look(reader) -> None:
        for _ in range(3):
            _add(open_store(patience=20))
            assert reader.last().number == 1

    records.read(look)
    records.write(lambda writer: (_enter(writer), len(_whole(open_store()))) == 4)
    assert len(_whole(records)) == 5


def test_patience_ends(records, open_store):
    with contextlib.closing(pickle.loads(pickle.dumps(open_store(patience=0.2)))) as hasty:

        def enter(writer) -> None:
            _refused("in use by another transaction", _add, hasty)
            _enter(writer)

        records.write(enter)
        assert _add(hasty).number == 3


@pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout"])
def test_limits_of_the_user_do_not_cut_the_patience(records, server, schema, open_store, setting):
    user = open_store(server.user_of(schema, f"limited_by_{setting}", f"{setting} = 100"))
    waiting = threading.Thread(target=_add, args=(user,))

    def hold(_) -> None:
        waiting.start()
        _until(lambda: server.sql(schema, "SELECT 1 FROM pg_locks WHERE NOT granted"))
        time.sleep(0.3)

    records.write(hold)
    waiting.join()
    assert len(_whole(records)) == 2


def test_a_writer_that_does_nothing_loses_its_turn(records, open_store, monkeypatch):
    monkeypatch.setattr(postgres, "BEGIN", postgres.BEGIN.replace("60s", "200ms"))
    others = []

    def idle(writer) -> None:
        others.append(_add(open_store(patience=20)))
        writer.last()

    _refused("was idle|lost the connection", records.write, idle)  # psycopg 3.1 tells no reason
    assert others == _whole(records)[1:]


@pytest.mark.full
def test_an_interrupt_ends_the_wait_for_a_turn(server, schema, records):
    code = """
store, other = PostgresStore(sys.argv[1]), PostgresStore(sys.argv[1])
add(store)

def hold(writer):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        add(store)
    except KeyboardInterrupt:
        print("interrupted")

other.write(hold)
add(store)
"""
    assert _run(code, server.url(schema)) == "interrupted\n"
    assert len(_whole(records)) == 3


# Many at once


@pytest.mark.full
def test_sixteen_processes_never_spend_more_than_the_total(server, schema):
    code = """
from pdprivacy import Ledger, Pure
from pdprivacy.errors import BudgetExceeded

def work(index):
    budget, longest, accepted = Ledger(sys.argv[1]).budget("one"), 0, 0
    for turn in range(200):
        start = time.monotonic()
        try:
            budget.charge(Pure("1/1000"), f"{index} {turn}")
            accepted += 1
        except BudgetExceeded:
            pass
        longest = max(longest, time.monotonic() - start)
    os.write(1, f"{accepted} {longest}\\n".encode())

ledger = Ledger(sys.argv[1])
ledger.open("one", Pure("403/2000"))
assert children(16, work) == [0] * 16
"""
    lines = [line.split() for line in _run(code, server.url(schema)).splitlines()]
    assert sum(int(accepted) for accepted, _ in lines) == 201
    assert max(float(longest) for _, longest in lines) < 10
    with Ledger(server.url(schema)) as ledger:
        assert ledger.budget("one").account.spent.epsilon == Fraction(201, 1000)
        assert ledger.entries("one").index.tolist() == list(range(1, 202))
        assert ledger.audit().charges == 201


def test_a_budget_on_a_server_is_that_of_every_process(server, schema):
    column = pa.Column(bool, metadata={"dp": {}})
    frame, declared = pd.DataFrame({"member": [True, False]}), pa.DataFrameSchema({"member": column})
    with Ledger(server.url(schema)) as ledger, pickle.loads(pickle.dumps(ledger)) as copy:
        private = frame.dp.protect(declared, epsilon=1, budget=ledger, name="survey")
        private.dp.count(epsilon="1/4", release_id="a")
        again = frame.dp.protect(declared, budget=copy, name="survey")
        with pytest.raises(errors.AlreadyCharged, match="its answer was handed out"):
            again.dp.count(epsilon="1/4", release_id="a")
        again.dp.count(epsilon="1/2")
        assert private.dp.budget.left == (0.25, 0)
        assert copy.audit(ledger.head).charges == 2
        with pytest.raises(errors.BudgetExceeded):
            private.dp.count(epsilon="1/2")
        assert SECRET not in repr((ledger, copy, private.dp.budget))


@pytest.mark.full
def test_threads_share_a_store(server, schema, records):
    failed = []

    def work(index: int) -> None:
        try:
            for _ in range(10):
                _add(records, thread=index)
                records.read(lambda reader: reader.last())
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(_whole(records)) == 201
    _until(lambda: server.connections(schema) == 1)  # those of the threads are closed


@pytest.mark.full
def test_processes_that_make_the_ledger_at_once(server, schema, store):
    code = "assert children(8, lambda index: add(PostgresStore(sys.argv[1]), index=index)) == [0] * 8"
    _run(code, server.url(schema))
    assert sorted(json.loads(row.body)["index"] for row in _whole(store)) == list(range(8))
    assert server.sql(schema, "SELECT format, turn FROM pdprivacy_ledger") == [(1, 8)]


@pytest.mark.full
def test_both_sides_of_a_fork(server, schema, store):
    """With connections in use, idle, and of another thread."""
    code = """
import gc
store, other = PostgresStore(sys.argv[1]), PostgresStore(sys.argv[1])
ready, go = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: (add(store), ready.set(), go.wait(), add(store)))
thread.start()
ready.wait()
add(other)

def look(reader):
    child = os.fork()
    if child == 0:
        try:
            reader.last()
        except LedgerError as error:
            assert "another process" in str(error)
        else:
            os._exit(1)
    for _ in range(30):
        add(store, child=child == 0)
        add(other, child=child == 0)
    if child == 0:
        gc.collect()
        sys.exit(0)  # leaves the transaction of the parent
    assert os.waitpid(child, 0)[1] == 0
    return reader.last().number

assert store.read(look) == 2
go.set()
thread.join()
add(store)
add(other)
"""
    _run(code, server.url(schema))
    bodies = [json.loads(row.body) for row in _whole(store)]
    assert len(bodies) == 125
    assert sum(body.get("child", False) for body in bodies) == 60


@pytest.mark.full
def test_a_child_that_leaves_the_work_of_its_parent_does_not_end_it(server, schema, store):
    code = """
store = PostgresStore(sys.argv[1])
left = os.pipe()

def work(writer):
    enter(writer)
    child = os.fork()
    if child:
        os.read(left[0], 1)
    return child

try:
    child = store.write(work)
except LedgerError as error:
    assert "another process" in str(error)
    os.write(left[1], b"x")
    add(store)
else:
    assert os.waitpid(child, 0)[1] == 0
"""
    _run(code, server.url(schema))
    assert len(_whole(store)) == 2


# Sudden ends


@pytest.mark.full
def test_a_killed_writer_lets_go_and_leaves_nothing(server, schema, records, open_store):
    """At once, not only when the server takes the turn from a writer that does nothing."""
    code = """
def work(writer):
    enter(writer, killed=True)
    print("entered", flush=True)
    time.sleep(600)

PostgresStore(sys.argv[1]).write(work)
"""
    with _process(code, server.url(schema)) as process:
        assert _line(process) == "entered"
        process.kill()
        assert _add(open_store(patience=20)).number == 2
    assert "killed" not in _whole(records)[1].body


def test_a_connection_that_the_server_ends(server, schema, records):
    def end(session) -> None:
        assert server.end_connections(schema) == 1

    for work, fate in ((lambda writer: (_enter(writer), end(writer), _enter(writer)), NOTHING),
                       (lambda writer: (_enter(writer), end(writer)), UNKNOWN)):  # fmt: skip
        _refused("lost the connection", records.write, work, fate=fate)
        assert len(_whole(records)) == 1
    with pytest.raises(ZeroDivisionError):
        records.write(lambda writer: (end(writer), 1 / 0))
    _refused("lost the connection", records.read, lambda reader: (end(reader), reader.last()), fate="")
    for number in (2, 3):
        assert _add(records).number == number
        end(None)  # an idle one is replaced
    assert len(_whole(records)) == 3


@pytest.mark.full
def test_reported_charges_survive_a_crash_of_the_server(server, schema, records):
    """Even for a user whose commits do not wait for the disk elsewhere."""
    url = server.user_of(schema, "careless", "synchronous_commit = off")
    code = """
def work(index):
    store = PostgresStore(sys.argv[1])
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
        with _process(code, url) as process:
            reported = [_line(process) for _ in range(60)]
            server.stop("immediate")
            rest, err = process.communicate()
            assert (process.returncode, err) == (0, "")
        reported += rest.split("\n")[:-1]
        server.start()
        rows = {row.number: json.loads(row.body)["process"] for row in _whole(records)[1:]}
        for number, process in (map(int, line.split()) for line in reported):
            assert rows[number] == process, crash
    _add(records)


def test_an_answer_that_the_server_does_not_take_leaves_its_charge_entered(server, schema):
    with Ledger(server.url(schema)) as ledger:
        budget = ledger.open("survey", pdprivacy.Pure(1))
        entry = budget.charge(pdprivacy.Pure("0.25"), "count", release_id="a")
        server.stop("immediate")
        try:
            with pytest.raises(errors.LedgerError) as caught:
                budget.answered(entry.number)
        finally:
            server.start()
        text = str(caught.value)
        assert "Charge 1 of the budget 'survey' is entered, but its answer was not handed out" in text
        assert NOTHING not in text
        assert budget.entries["answered"].tolist() == [False]
        assert budget.spent == (0.25, 0)
        budget.store_answer("a", b"17", {"count": "member"})
        assert budget.stored_answer("a", {"count": "member"}) == b"17"


def test_a_step_goes_on_on_another_machine(server, schema, tmp_path):
    """Two machines share the ledger on the server, and no disk."""
    pytest.importorskip("pyarrow", reason="releases are stored as Parquet")
    domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    seen = []

    def monthly(private):
        seen.append(private.dp.mean("age", epsilon=0.25).copy())
        if len(seen) == 1:
            raise ConnectionError
        return {"age": seen[-1], "rows": private.dp.count(epsilon=0.5)}

    def step(machine: str):
        return pdprivacy.release_step(
            schema=domain, epsilon=1, ledger=server.url(schema), name="survey", to=tmp_path / machine
        )(monthly)

    frame = pd.DataFrame({"age": [31, 54, 27, 39]})
    with pytest.raises(ConnectionError):
        step("first")(frame, release_id="2026-05")
    results = step("second")(frame, release_id="2026-05")
    assert results["age"].equals(seen[0])
    assert results["age"].dp.verify()
    with Ledger(server.url(schema)) as ledger:
        assert ledger.entries("survey")["release_id"].tolist() == ["2026-05/1", "2026-05/2"]
        assert ledger.budget("survey").spent == (0.75, 0)
        assert ledger.audit().unanswered == 0


TRIGGER = "TRIGGER pdprivacy_append_only"
ON = "ON pdprivacy_records FOR EACH STATEMENT"
RUN = "EXECUTE FUNCTION pdprivacy_append_only()"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (f"DROP {TRIGGER} ON pdprivacy_records", "the trigger .* is missing"),
        ("ALTER TABLE pdprivacy_records DISABLE TRIGGER USER", "the trigger .* is missing"),
        ("DROP INDEX pdprivacy_records_kind", "the index 'pdprivacy_records_kind' is missing"),
        (
            "CREATE OR REPLACE FUNCTION pdprivacy_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RETURN NULL; END'",
            "the trigger .* was changed",
        ),
        (f"CREATE OR REPLACE {TRIGGER} BEFORE TRUNCATE {ON} {RUN}", "the trigger .* was changed"),
        (f"CREATE TRIGGER more BEFORE INSERT {ON} WHEN (false) {RUN}", "a trigger was added"),
    ],
    ids=["no trigger", "disabled", "no index", "another function", "another trigger", "one more trigger"],
)
def test_an_audit_finds_what_no_longer_guards_the_records(server, schema, statement, problem):
    with Ledger(server.url(schema)) as ledger:
        ledger.open("survey", pdprivacy.Pure(1)).charge(pdprivacy.Pure("0.25"), "count")
        assert ledger.audit().charges == 1
        server.sql(schema, statement)
        with pytest.raises(errors.TamperedLedgerError, match=problem):
            ledger.audit()


# Refusals


def test_a_server_that_cannot_be_reached(server, schema):
    good = server.url(schema)
    for bad in (
        good.replace(SECRET, SECRET + "x"), good.replace(f":{SECRET}@", "@"),
        good.replace("owner", "nobody-known"), good.replace("/postgres?", "/absent?"),
        good.replace(str(server.port), "1"), good.replace("127.0.0.1", "host.invalid"),
        good + "&connect_timeout=never",
    ):  # fmt: skip
        store = PostgresStore(bad, patience=10)
        _refused("cannot be reached.*\n.* host, port, database, user and password", _add, store)
        _refused("cannot be reached", _whole, store, fate="")


def test_a_schema_without_a_ledger(server, schema, store):
    missing = {"kind": errors.MissingLedgerError}
    _refused("does not exist yet", _whole, store, fate="", **missing)
    _refused("does not exist yet", lambda: store.write(_enter, create=False), **missing)
    with pytest.raises(ZeroDivisionError):
        store.write(lambda writer: 1 / 0)
    assert server.sql(schema, "SELECT to_regclass('pdprivacy_records')::text") == [(None,)]


def test_a_ledger_of_another_format(server, schema, records):
    for statement, version in (
        ("UPDATE pdprivacy_ledger SET format = 7", 7),
        ("INSERT INTO pdprivacy_ledger VALUES (1, 0)", 7),
        ("DELETE FROM pdprivacy_ledger", "unknown"),
    ):
        server.sql(schema, statement)
        words = f"uses format {version}; this version of pdprivacy reads format 1"
        _refused(words, _add, records)
        _refused(words, _whole, records, fate="")


@pytest.mark.parametrize("table", ["pdprivacy_ledger (x int)", "pdprivacy_records (format int)"])
def test_tables_of_something_else(server, schema, store, table):
    server.sql(schema, f"CREATE TABLE {table}")
    _refused("tables that are not those of a ledger", _add, store)


def test_a_user_without_permissions(server, schema, records, open_store):
    weak = open_store(server.user_of(schema, "weak"))
    denied = "denies this user a permission"
    _refused(denied, _whole, weak, fate="")
    server.sql(schema, "GRANT SELECT ON pdprivacy_records, pdprivacy_ledger TO weak")
    assert len(_whole(weak)) == 1
    _refused(denied, _add, weak)
    server.sql(schema, "GRANT INSERT ON pdprivacy_records TO weak")
    server.sql(schema, "GRANT UPDATE (turn) ON pdprivacy_ledger TO weak")
    assert _add(weak).number == 2
    keep, look = lambda writer: writer.store("d", b"answer"), lambda reader: reader.stored("d")
    _refused(denied, weak.write, keep)
    _refused(denied, weak.read, look, fate="")
    server.sql(schema, "GRANT SELECT, INSERT ON pdprivacy_answers TO weak")
    weak.write(keep)
    assert weak.read(look) == b"answer"
    _refused(denied, _add, open_store(server.url(server.schema(), "weak")))


def test_a_server_that_takes_no_writes(server, schema, records, open_store):
    standby = open_store(server.user_of(schema, "standby", "default_transaction_read_only = on"))
    assert len(_whole(standby)) == 1
    _refused("is on a read-only server", _add, standby)


def test_records_are_neither_changed_nor_removed(server, schema, records):
    before = _whole(records)
    for statement in (
        "UPDATE pdprivacy_records SET body = '{}'", "DELETE FROM pdprivacy_records",
        "TRUNCATE pdprivacy_records", "DELETE FROM pdprivacy_records WHERE number = 5",
        "INSERT INTO pdprivacy_records SELECT * FROM pdprivacy_records"
        " ON CONFLICT (number) DO UPDATE SET body = '{}'",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.RaiseException, match="never changed or removed"):
            server.sql(schema, statement)
    assert _whole(records) == before


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "change",
    ["hash = '\\x00'", "hash = NULL", "budget = NULL", "kind = NULL", "body = NULL", "number = 1.5"],
)
def test_columns_of_another_kind_are_tampered_with(server, schema, records, change):
    column = change.split()[0]
    server.sql(schema, "ALTER TABLE pdprivacy_records DISABLE TRIGGER ALL")
    how = "TYPE double precision" if column == "number" else "DROP NOT NULL"
    server.sql(schema, f"ALTER TABLE pdprivacy_records ALTER {column} {how}")
    server.sql(schema, f"UPDATE pdprivacy_records SET {change}")
    for look in (lambda reader: reader.last(), lambda reader: reader.span(0, 9)):
        words = "a record that is not what was entered"
        _refused(words, records.read, look, fate="", kind=errors.TamperedLedgerError)


def test_errors_of_a_server_that_are_hard_to_cause():
    for codes, words in (
        ("53100 53200 53300", "lacks disk space, memory or connections"),
        ("40001 40P01 57014", "rolled the transaction back"),
        ("57P01 57P02 08006", "lost the connection"),
        ("25P03", "idle for 60 seconds"), ("XX001", "damaged"), ("0A000", "SQLSTATE 0A000"),
    ):  # fmt: skip
        for code in codes.split():
            text = str(postgres.refusal("ADDRESS", NOTHING, code))
            assert re.fullmatch(f"The ledger at ADDRESS .*{words}.*\\. {NOTHING}\nHint: .*", text)


# Making a store


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///folder/budget.db", "mysql://u:s3cr3t-pass@host/db", "postgresql+asyncpg://host/db",
        "postgresql+psycopg2://u:s3cr3t-pass@host/db", "postgresql+psycopg_async://host/db",
        "nonsense s3cr3t-pass", "postgresql://u:s3cr3t-pass@host:port/db", "postgresql://u:s3cr3t-pass",
        "postgresql://u:s3cr3t-pass/x@host/db", "postgresql://u:x@s3cr3t-pass@host/db",
        "postgresql://u:1/s3cr3t-pass@host/db", "postgresql://u@host/db?s3cr3t-pass=1",
        "postgresql://u:%zz@host/db", "host=localhost password=s3cr3t-pass", "", 5, None,
    ],
)  # fmt: skip
def test_urls_that_are_refused(url):
    message = "'url' must be the URL of a PostgreSQL database"
    _refused(message, PostgresStore, url, fate="", kind=errors.ParameterError)


@pytest.mark.parametrize("patience", [0, -1, float("nan"), True, "60", None])
def test_patience_that_is_refused(patience):
    with pytest.raises(errors.ParameterError, match="'patience' must be a finite number"):
        PostgresStore("postgresql://host/db", patience=patience)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_an_address_holds_no_password(scheme):
    query = f"password={SECRET}&%70assword={SECRET}&sslpassword={SECRET}&options=-csearch_path%3Dx"
    for text, address in (
        (f"ada:{SECRET}%40@host:5/db?{query}", "ada@host:5/db?options=-csearch_path%3Dx"),
        (f":{SECRET}?x@[::1],b:5/", "[::1],b:5/"),
        ("/db", "/db"),
    ):
        store = PostgresStore(f"{scheme}://{text}")
        assert store.address == f"postgresql://{address}"
        assert repr(store) == f"PostgresStore({store.address!r})"
        assert SECRET not in repr(vars(store))


def test_schemas_keep_their_ledgers_apart(server, records, open_store):
    other = open_store(server.url(server.schema()), patience=1)
    assert records.write(lambda _: _add(other).number) == 1  # waits for no writer of the first
    assert other.address != records.address
    assert _add(other).number == 2
    assert len(_whole(records)) == 1


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    for name in [name for name in sys.modules if name == "psycopg" or name.startswith("psycopg.")]:
        monkeypatch.setitem(sys.modules, name, None)
    hint = r'needs psycopg.*\n.*pip install "pdprivacy\[server\]"'
    with pytest.raises(errors.MissingExtraError, match=hint):
        PostgresStore("postgresql+psycopg://host/db")


def test_a_store_lets_go_of_its_connections(server, schema):
    store = PostgresStore(server.url(schema))
    for _ in range(2):
        _add(store)
        assert server.connections(schema) == 1
        store.close()
        store.close()
        _until(lambda: server.connections(schema) == 0)
    _add(store)
    del store
    gc.collect()
    _until(lambda: server.connections(schema) == 0)
