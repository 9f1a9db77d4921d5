"""Ledgers in SQLite files as tests write, read, change and watch them, from this process or another."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from pdprivacy import Budget, Ledger, Pure
from pdprivacy.errors import BudgetExceeded, LedgerError
from pdprivacy.ledger.sqlite import SQLiteStore
from pdprivacy.ledger.store import Row, link

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def append(store: SQLiteStore, text: str = "", *, release: str | None = None) -> int:
    """Append a record; return its number."""

    def work(writer):
        row = link(writer.last(), "s", "charge", release, {"text": text})
        writer.append(row)
        return row.number

    return store.write(work)


def records(path) -> list[Row]:
    """Return all records, each checked to follow from the one before it."""
    rows = SQLiteStore(path).read(lambda reader: reader.span(0, 10**9))
    for before, row in zip([None, *rows], rows, strict=False):
        assert row == link(before, row.budget, row.kind, row.release, json.loads(row.body))
    return rows


def texts(path) -> list[str]:
    return [json.loads(row.body)["text"] for row in records(path)]


def opened(path, cap: int = 10**6) -> Budget:
    return Ledger(path).open("s", Pure(cap))


def charge(path, label: str) -> str:
    Ledger(path).budget("s").charge(Pure(1), label)
    return label


def labels(path) -> list[str]:
    """Return the labels of all charges of an audited ledger, sorted."""
    entries = Ledger(path).entries("s")["release"].tolist()
    assert Ledger(path).audit().charges == len(entries)
    return sorted(entries)


class Child:
    """A forked process that calls a function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.end, end = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
            self.pid = os.fork()
        if self.pid:
            os.close(end)
            return
        try:
            os.close(self.end)
            try:
                outcome = [function(*arguments), None, None]
            except LedgerError as error:
                outcome = [None, str(error), None]
            except BaseException:
                outcome = [None, None, traceback.format_exc()]
            with os.fdopen(end, "w") as stream:
                json.dump(outcome, stream)
        finally:
            os._exit(0)

    def value(self, patience: float = 90) -> Any:
        """Return what the function returned, or raise its LedgerError; a child hangs after ``patience`` s."""
        answered = select.select([self.end], [], [], patience)[0]
        if not answered:
            os.kill(self.pid, signal.SIGKILL)
        with os.fdopen(self.end) as stream:
            content = stream.read()
        os.waitpid(self.pid, 0)
        assert answered, "the process hangs"
        value, refusal, failure = json.loads(content)
        assert failure is None, failure
        if refusal is not None:
            raise LedgerError(refusal)
        return value


class Bell:
    """A signal from one process to another."""

    def __init__(self) -> None:
        self.ends = os.pipe()

    def ring(self) -> None:
        os.write(self.ends[1], b"!")

    def wait(self) -> None:
        assert select.select([self.ends[0]], [], [], 90)[0], "the other process does not go on"
        assert os.read(self.ends[0], 1) == b"!"


@contextmanager
def changed(path) -> Iterator[sqlite3.Connection]:
    """Change a ledger as another program does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        yield connection


def refused(path, match: str) -> None:
    """Check that a ledger is neither read nor written."""
    store = SQLiteStore(path, patience=2)
    with pytest.raises(LedgerError, match=match):
        store.read(lambda reader: reader.last())
    with pytest.raises(LedgerError, match=match):
        append(store)


@contextmanager
def traced(monkeypatch, look: Callable[[str], object]) -> Iterator[list[sqlite3.Connection]]:
    """Show each statement before it runs; yield the connections that are made."""
    connect, made = sqlite3.connect, []

    def traced_connection(*arguments, **options):
        made.append(connect(*arguments, **options))
        made[-1].set_trace_callback(look)
        return made[-1]

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", traced_connection)
        yield made


def charges_until_refused(path, name, most: int = 10**9) -> list[str]:
    """Charge until the budget is spent; return the labels of the charges."""
    budget, entered = Ledger(path).budget("s"), []
    with suppress(BudgetExceeded):
        while len(entered) < most:
            entered.append(budget.charge(Pure(1), f"{name}.{len(entered)}").label)
    return entered
