"""Records in one SQLite file, shared by the processes of one machine.

Each transaction takes the lock file, opens the database, and closes both at its end: nothing is held in
between that a fork could inherit or a copy of the file could unlock. The journal is a rollback journal, so
the database holds all that was committed. A commit clears the head of the journal and keeps the file, which
takes less of the file system than to empty or remove it.
"""

# ruff: noqa: D102 - stores and records are documented on the protocol
from __future__ import annotations

import ctypes
import errno
import io
import math
import os
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from pdprivacy import checks
from pdprivacy.errors import LedgerError, MissingLedgerError, ParameterError, TamperedLedgerError, got
from pdprivacy.ledger import database, files
from pdprivacy.ledger.files import FAULTS, RESTORE, in_words, refusal
from pdprivacy.ledger.store import NOTHING, UNKNOWN, Reader, Row, Writer, are_rows

__all__ = ["SQLiteStore"]

T = TypeVar("T")

PATIENCE = 60.0  # seconds that a transaction waits for others
FORK_PATIENCE = 10.0  # seconds that a fork waits for transactions of other threads
CHECKED_WHOLE = 10_000  # records that SQLite checks within one transaction

UNINDEXED = """
SELECT count(*) FROM records AS row NOT INDEXED WHERE number > ? AND number <= ? AND NOT (
EXISTS (SELECT 1 FROM records AS twin INDEXED BY records_by_kind
WHERE twin.budget = row.budget AND twin.kind = row.kind AND twin.number = row.number)
AND (row."release" IS NULL OR EXISTS (SELECT 1 FROM records AS twin INDEXED BY records_by_release
WHERE twin.budget = row.budget AND twin."release" = row."release" AND twin.number = row.number)))
"""


class SQLiteStore:
    """Records in a file of SQLite: durable, and shared by all processes of one machine.

    Parameters
    ----------
    path : the file; the first writing transaction makes it where nothing is. Symbolic links are followed.
        Not on a network file system.
    patience : seconds that a transaction waits for others before it gives up with a LedgerError.

    Beside the file, ``-lock`` is locked by every transaction, ``-journal`` is SQLite's rollback journal, and
    ``-answers`` is the folder of stored answers, with permissions of its own. Copy a ledger with `backup`.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = PATIENCE) -> None:
        text = checks.path(path, "path", 'Ledger("budget.db").')
        if not isinstance(patience, int | float) or patience is True or not 0 <= patience < math.inf:
            raise ParameterError(f"'patience' must be a number of seconds (got {got(patience)}).")
        try:
            self._path = os.path.abspath(os.path.expanduser(text))
        except OSError as error:  # a relative path in a folder that was removed
            raise in_words(error, text, NOTHING) from None
        self._patience = min(float(patience), 1e6)

    def __reduce__(self) -> Any:
        return partial(SQLiteStore, patience=self._patience), (self._path,)

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    @property
    def address(self) -> str:
        return self._path

    def read(self, work: Callable[[Reader], T]) -> T:
        return self._run(work, writes=False, create=False)

    def write(self, work: Callable[[Writer], T], *, create: bool = True) -> T:
        return self._run(work, writes=True, create=create)

    def close(self) -> None:
        """Do nothing: nothing is open between transactions."""

    def _run(self, work: Callable[[_Transaction], T], *, writes: bool, create: bool) -> T:
        until = time.monotonic() + self._patience
        while True:
            transaction = _Transaction(os.path.realpath(self._path), writes)
            try:
                return self._attempt(transaction, work, until, create)
            except LedgerError:
                if not transaction.again or time.monotonic() > until:
                    raise
            except FAULTS as error:  # before ValueError, as UnicodeError is one
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if transaction.working:
                    raise
                if not busy or time.monotonic() > until:
                    raise in_words(error, self._path, transaction.fate) from None
            except Exception:  # a forked process has dropped the files of the transaction
                if transaction.working or os.getpid() == transaction.process:
                    raise
                raise transaction.forked() from None
            time.sleep(0.005)

    @staticmethod
    def _attempt(
        transaction: _Transaction, work: Callable[[_Transaction], T], until: float, create: bool
    ) -> T:
        """Run a transaction.

        An interrupt can occur between any two calls, but not within a call of C code. Each resource is
        therefore released here, by a single call of C code.
        """
        try:
            transaction.lock(until, create)
            with _GUARD:
                try:
                    transaction.begin(create)
                    transaction.working = True
                    result = work(transaction)
                    transaction.working = False
                    transaction.end()
                finally:
                    if transaction.connection is not None:
                        transaction.connection.close()
                    transaction.connection = None
            return result
        finally:
            try:
                if transaction.file is not None:
                    try:
                        files.unlock(transaction.file)
                    finally:
                        transaction.file.close()
            finally:
                transaction.active = False

    def backup(self, path: str | os.PathLike[str], rows: Iterable[Row]) -> None:
        """Make a ledger of these records at a path where nothing is, durably.

        Raises LedgerError where something is at the path already.
        """
        target = os.path.realpath(SQLiteStore(path).address)
        try:
            if os.path.lexists(target) or files.status(target, "No copy was made.") is not None:
                raise FileExistsError(target)
            database.make(target, rows, _GUARD)
        except FileExistsError:
            raise LedgerError(
                f"{target!r} exists already. No copy was made.", "name a new file for the copy."
            ) from None
        except FAULTS as error:
            made = "A copy was made, but may not be durable."
            with suppress(OSError):
                if not os.path.lexists(target) and os.lstat(os.path.dirname(target)):
                    made = "No copy was made."
            raise in_words(error, target, made) from None


class _Transaction:
    """The records of a ledger while its lock is held; a `Reader`, and a `Writer` where it ``writes``."""

    def __init__(self, path: str, writes: bool) -> None:
        self.path = path
        self.file: io.FileIO | None = None
        self.connection: sqlite3.Connection | None = None
        self.active = self.working = self.again = False
        self.fate = NOTHING if writes else ""
        self._writes = writes
        self.thread, self.process = threading.get_ident(), os.getpid()
        self._opened: os.stat_result | None = None
        self._failed = False

    # ------------------------------------------------------------ begin and end

    def lock(self, until: float, create: bool) -> None:
        """Wait for the lock file."""
        nested = [outer for outer in _transactions() if outer.active and outer.thread == self.thread]
        if any(outer.path == self.path for outer in nested):
            raise self._refused("is being used by this thread already", "leave the first transaction first.")
        _TRANSACTIONS.add(weakref.ref(self, _TRANSACTIONS.discard))
        self.active = True
        if files.status(self.path, self.fate) is None and not create:
            raise self._missing()
        while True:
            self.file = files.open_lock(self.path, create=self._writes)
            locked = self.file is None or files.acquire(self.file, self.path, until, self.fate)
            if os.getpid() != self.process:
                raise self.forked()
            if locked:
                return
            if self.file is not None:
                self.file.close()

    def begin(self, create: bool) -> None:
        """Open the database, roll back or migrate it if needed, and begin the transaction."""
        files.refuse_mount(self.path, self.fate)
        self._opened = files.status(self.path, self.fate, self.file)
        if self._opened is None:
            if not create:
                raise self._missing()
            files.sweep(self.path)
            database.make(self.path, (), _GUARD)
            self._opened = os.stat(self.path)
        if (self._opened.st_dev, self._opened.st_ino) in _FORKED or os.getpid() != self.process:
            raise self.forked()
        journal = self.path + "-journal"
        journaled = files.plain(journal, self.fate) is not None
        if journaled:
            try:
                files.sync(journal)  # a process may have been killed after it cleared the journal
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
            if files.is_hot(self.path):
                self._mark("")
        self.connection = database.connect(self.path)
        self._check_format()
        self._set_up()
        if journaled and not os.path.exists(journal):  # rolled back by SQLite, or SQLite could not open it
            io.FileIO(journal, "a").close()
        self.execute("BEGIN EXCLUSIVE" if self._writes else "BEGIN")
        self._check_journal(self._identity(new=False))

    def _missing(self) -> MissingLedgerError:
        return MissingLedgerError(
            f"There is no ledger {self.path!r} yet.",
            "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...) makes it.",
        )

    def end(self) -> None:
        """Commit what was appended."""
        self._refuse_exchange()
        if self._writes:
            assert self.connection is not None
            if self._failed or not self.connection.in_transaction:
                raise LedgerError(f"An earlier step in the ledger {self.path!r} failed. {NOTHING}")
            self.fate = UNKNOWN
            self.connection.execute("COMMIT")
            self._refuse_exchange()

    def _refuse_exchange(self) -> None:
        """Raise if this is a forked process, or if the database or its lock file was replaced."""
        if self.connection is None:
            raise self.forked()
        current = files.stat_or_none(self.path)
        lock = files.stat_or_none(self.path + "-lock", os.lstat)
        if self.file is None:
            self.again = lock is not None  # a writer has made one since
            same = not self.again
        else:
            same = lock is not None and os.path.samestat(lock, os.fstat(self.file.fileno()))
        if not same or current is None or not os.path.samestat(current, cast(os.stat_result, self._opened)):
            fact = "was replaced by another file while it was used, or its lock file was"
            raise self._refused(fact, "try again, with the ledger in its place.")

    def _check_format(self) -> None:
        if self._setting("application_id") != database.APPLICATION:
            hint = "name a file that does not exist to start a new ledger."
            raise self._refused("is a database, but not a ledger", hint)
        version = self._setting("user_version")
        if version == 1:
            self._migrate()
        elif version != database.FORMAT:
            hint = "pip install --upgrade pdprivacy" if version > database.FORMAT else RESTORE
            raise self._refused(
                f"uses format {version}, and this pdprivacy reads format {database.FORMAT}", hint
            )

    def _migrate(self) -> None:
        """Change a ledger of format 1, which had a write-ahead log, to this format.

        Leaving the log waits for processes that have the ledger open; the rest is one transaction.
        """
        self._set_up()
        self.execute("BEGIN EXCLUSIVE")
        if self._setting("user_version") == 1:  # not yet migrated by another process
            self._identity(new=True)
            self.execute(database.new_identity())
            self.execute(f"PRAGMA user_version={database.FORMAT}")
        self.execute("COMMIT")

    def _set_up(self) -> None:
        """Set the connection so that a commit is durable. macOS alone knows ``fullfsync``."""
        mode = self._setting("journal_mode=PERSIST")
        for pragma in ("synchronous=FULL", "fullfsync=ON", "cell_size_check=ON", "cache_spill=OFF"):
            self._setting(pragma)
        if mode != "persist" or self._setting("synchronous") != 2:
            fact = "cannot be made durable: SQLite refuses to set its journal here"
            raise self._refused(fact, "keep it on a local disk.")

    def _check_journal(self, identity: str) -> None:
        """Raise if the journal is missing; make it for a ledger that was copied here."""
        journal = self.path + "-journal"
        marked = files.content(self.file) == identity
        if marked and not os.path.exists(journal):
            fact = f"has lost its journal {journal!r}, which may hold what undoes half of a transaction"
            hint = (
                "put it back; if another program wrote to the ledger, remove '-lock' and run ledger.audit()"
            )
            raise self._refused(fact, f"{hint}; or {files.RESTORE_ALONE}")
        if self._writes and not marked:
            io.FileIO(journal, "a").close()
            files.sync(os.path.dirname(self.path))
            self._mark(identity)

    def _mark(self, identity: str) -> None:
        """Write the id of the ledger to the lock file, if that is writable."""
        if self.file is not None and self.file.writable():
            self.file.truncate(0)
            self.file.write(identity.encode())
            os.fsync(self.file.fileno())

    def _identity(self, *, new: bool) -> str:
        """Check tables, indexes and triggers; return the id of the ledger, which a ``new`` one lacks."""
        identity, problems = database.identity(self.execute(database.OBJECTS), new=new)
        if problems:
            raise self._tampered("; ".join(problems))
        return identity

    def forked(self) -> LedgerError:
        """The error for a process that was forked within a transaction."""
        hint = "start the process anew, or fork outside of transactions."
        return self._refused("was in use when this process was forked", hint)

    def _refused(self, fact: str, hint: str) -> LedgerError:
        return refusal(self.path, fact, hint, self.fate)

    def _tampered(self, problem: str) -> TamperedLedgerError:
        text = f"The tables of the ledger {self.path!r} are not those it was made with: {problem}."
        return TamperedLedgerError(f"{text} {self.fate}".rstrip(), RESTORE)

    def _setting(self, pragma: str) -> Any:
        rows = self.execute(f"PRAGMA {pragma}")
        return rows[0][0] if rows else None

    def execute(self, query: str, *values: object) -> list[Any]:
        """Return all rows of a query; raise errors as SQLite does."""
        if self.connection is None:
            raise LedgerError("The records of a ledger were used after their transaction, or after a fork.")
        return self.connection.execute(query, values).fetchall()

    def disown(self) -> None:
        """Drop files that a forked process has inherited.

        SQLite would undo the transaction of the parent when it finalises the connection, so the connection
        is kept for good. It takes the locks of the parent for its own, so the process is refused the ledger.
        """
        connection, file = self.connection, self.file
        self.connection = self.file = None
        if connection is not None and self._opened is not None:
            _FORKED.add((self._opened.st_dev, self._opened.st_ino))
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        if file is not None:
            file.close()

    # ------------------------------------------------------------ records

    def _ask(self, query: str, *values: object) -> list[Any]:
        """Return all rows of a query; raise errors in words."""
        try:
            return self.execute(query, *values)
        except UnicodeEncodeError:  # no database holds a text with half a surrogate pair
            if query is not database.APPEND:
                return []
            self._failed = True
            raise in_words(sqlite3.DataError(), self.path, self.fate) from None
        except FAULTS as error:
            self._failed = True
            raise in_words(error, self.path, self.fate) from None

    def _rows(self, condition: str, *values: object) -> list[Row]:
        found = self._ask(f"SELECT {database.COLUMNS} FROM records NOT INDEXED WHERE {condition}", *values)
        if not are_rows(found):
            raise TamperedLedgerError(
                f"A record of the ledger {self.path!r} is not what was entered.",
                "restore the ledger from a copy; ledger.audit() says what else was altered.",
            )
        return list(map(Row._make, found))

    def _number(self, query: str, *values: object) -> int:
        """The number that a query finds; 0 for none."""
        numbers = self._ask(f"SELECT number FROM records {query} ORDER BY number DESC LIMIT 1", *values)
        return int(numbers[0][0]) if numbers else 0

    def last(self) -> Row | None:
        rows = self._rows("true ORDER BY number DESC LIMIT 1")
        return rows[0] if rows else None

    def at(self, number: int) -> Row | None:
        rows = self._rows("number = ?", int(number)) if 0 < number < 2**63 else []
        return rows[0] if rows else None

    def span(self, after: int, until: int) -> list[Row]:
        return self._rows("number > ? AND number <= ? ORDER BY number", after, until)

    def latest(self, budget: str, kind: str) -> Row | None:
        return self._found("INDEXED BY records_by_kind WHERE budget = ? AND kind = ?", budget, kind)

    def released(self, budget: str, release: str) -> Row | None:
        return self._found(
            'INDEXED BY records_by_release WHERE budget = ? AND "release" = ?', budget, release
        )

    def _found(self, query: str, *values: object) -> Row | None:
        """The record that an index finds; refuses an index that names a record that is not there."""
        number = self._number(query, *values)
        row = self.at(number)
        if number and row is None:
            raise self._tampered("an index names a record that is missing")
        return row

    def last_charge(self, budget: str, after: int) -> int:
        return self._number("NOT INDEXED WHERE number > ? AND budget = ? AND kind = 'charge'", after, budget)

    def budgets(self) -> list[str]:
        opened_at: dict[str, int] = {}
        name: Any = ""
        query = "SELECT min(budget) FROM records INDEXED BY records_by_kind WHERE budget > ?"
        while isinstance(name := self._ask(query, name)[0][0], str):
            opened = self.latest(name, "open")
            opened_at |= {} if opened is None else {name: opened.number}
        if name is not None:
            raise self._tampered("the name of a budget is not a text")
        return sorted(opened_at, key=opened_at.__getitem__)

    def append(self, row: Row) -> None:
        self._ask(database.APPEND, *row)

    def damage(self, until: int) -> list[str]:
        if until > CHECKED_WHOLE:
            return []
        lines = [" ".join(str(line).split()) for (line,) in self._ask("PRAGMA integrity_check(10)")]
        return [f"SQLite finds damage ({line})" for line in lines if line != "ok"]

    def unindexed(self, after: int, until: int) -> int:
        return int(self._ask(UNINDEXED, after, until)[0][0])

    def store(self, digest: str, answer: bytes) -> None:
        folder = self.path + "-answers"
        draft = f"{folder}/new-{uuid.uuid4().hex}"
        try:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
                files.sync(os.path.dirname(folder))
            try:
                with open(draft, "xb", opener=partial(os.open, mode=0o600)) as file:
                    file.write(answer)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, f"{folder}/{digest}")
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft)
            files.sync(folder)
        except FAULTS as error:
            self._failed = True
            raise in_words(error, self.path, self.fate) from None

    def stored(self, digest: str) -> bytes | None:
        try:
            return Path(f"{self.path}-answers", digest).read_bytes()
        except FileNotFoundError:
            return None
        except FAULTS as error:
            raise in_words(error, self.path, self.fate) from None


# ---------------------------------------------------------------- processes that fork

_GUARD = threading.RLock()
"""Held while SQLite is in use; forks wait for it, as a child inherits the locks within SQLite as they are."""

_FORKED: set[tuple[int, int]] = set()
"""The devices and inodes of ledgers that were in use when this process was forked."""

_TRANSACTIONS: set[weakref.ref[_Transaction]] = set()


def _transactions() -> list[_Transaction]:
    """Return the live transactions of this process."""
    return [one for found in tuple(_TRANSACTIONS) if (one := found()) is not None]


def _before_fork() -> None:
    _GUARD.acquire(timeout=FORK_PATIENCE)


def _after_in_parent() -> None:
    with suppress(RuntimeError):  # another thread held it for longer
        _GUARD.release()


def _after_in_child() -> None:
    global _GUARD
    _GUARD = threading.RLock()
    for transaction in _transactions():
        transaction.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
