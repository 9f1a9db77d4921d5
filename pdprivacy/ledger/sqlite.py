"""Records in one SQLite file, shared by the processes of one machine.

Each transaction takes the lock file, opens the database, and closes both at its end: nothing is held in
between that a fork could inherit or a copy of the file could unlock. The journal is a rollback journal, so
the database holds all that was committed.
"""

# ruff: noqa: D102 - stores and records are documented on the protocol
from __future__ import annotations

import ctypes
import errno
import io
import math
import os
import re
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pdprivacy import checks
from pdprivacy.errors import LedgerError, MissingLedgerError, ParameterError, TamperedLedgerError, got
from pdprivacy.ledger import files
from pdprivacy.ledger.files import FAULTS, RESTORE, in_words, refusal
from pdprivacy.ledger.store import NOTHING, SPAN, UNKNOWN, Reader, Row, Writer

__all__ = ["SQLiteStore"]

T = TypeVar("T")

PATIENCE = 60.0  # seconds that a transaction waits for others
FORK_PATIENCE = 10.0  # seconds that a fork waits for transactions of other threads
CHECKED_WHOLE = 10_000  # records that SQLite checks within one transaction

FORMAT = 2
APPLICATION = 0x70645072  # "pdPr"
COLUMNS = 'number, budget, kind, "release", body, hash'
TYPES = {(int, str, str, release, str, bytes) for release in (str, type(None))}
APPEND = f"INSERT INTO records ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
REFUSED = "BEGIN SELECT RAISE(ABORT, 'a ledger is appended to'); END"
SCHEMA = {
    "records": "CREATE TABLE records (number INTEGER PRIMARY KEY, budget TEXT NOT NULL, kind TEXT NOT NULL,"
    ' "release" TEXT, body TEXT NOT NULL, hash BLOB NOT NULL)',
    "records_by_kind": "CREATE INDEX records_by_kind ON records (budget, kind, number)",
    "records_by_release": 'CREATE UNIQUE INDEX records_by_release ON records (budget, "release")'
    ' WHERE "release" IS NOT NULL',
    "records_stay": f"CREATE TRIGGER records_stay BEFORE DELETE ON records {REFUSED}",
    "records_stay_the_same": f"CREATE TRIGGER records_stay_the_same BEFORE UPDATE ON records {REFUSED}",
    # INSERT OR REPLACE deletes without asking a DELETE trigger: a record that is there is refused before
    "records_follow": "CREATE TRIGGER records_follow BEFORE INSERT ON records"
    " WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM records)"
    ' OR NEW."release" IS NOT NULL AND EXISTS'
    ' (SELECT 1 FROM records WHERE budget = NEW.budget AND "release" = NEW."release")'
    f" {REFUSED}",
}
KINDS = {"TABLE": "table", "INDEX": "index", "UNIQUE": "index", "TRIGGER": "trigger"}
IDENTITY = "CREATE VIEW ledger_identity AS SELECT '{}' AS id"
"""A view that stores a random id on page 1, which identifies the journal of this ledger."""

IDENTITY_PATTERN = re.compile(re.escape(IDENTITY).replace(r"\{\}", "([0-9a-f]{32})"))

UNINDEXED = """
SELECT count(*) FROM records AS one NOT INDEXED WHERE number > ? AND number <= ? AND NOT (
EXISTS (SELECT 1 FROM records AS two INDEXED BY records_by_kind
WHERE two.budget = one.budget AND two.kind = one.kind AND two.number = one.number)
AND (one."release" IS NULL OR EXISTS (SELECT 1 FROM records AS two INDEXED BY records_by_release
WHERE two.budget = one.budget AND two."release" = one."release" AND two.number = one.number)))
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
            _make(target, rows)
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
        mine = [other for other in _transactions() if other.active and other.thread == self.thread]
        if any(other.path == self.path for other in mine):
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
        if files.status(self.path, self.fate, self.file) is None:
            if not create:
                raise self._missing()
            files.sweep(self.path)
            _make(self.path)
        self._opened = os.stat(self.path)
        if (self._opened.st_dev, self._opened.st_ino) in _FORKED or os.getpid() != self.process:
            raise self.forked()
        journal = self.path + "-journal"
        files.refuse_odd(journal, self.fate)
        try:
            files.sync(journal)  # a process may have been killed after it emptied the journal
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS):
                raise
        hot = files.size(journal) > 0
        if hot:
            files.check_journal(self.path)
            self._mark("")
        self.connection = _connect(self.path)
        self._check_format()
        if hot:  # SQLite removes a journal that it has rolled back
            io.FileIO(journal, "a").close()
        self._set_up()
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
        fact = "was replaced by another file while it was used, or its lock file was"
        replaced = self._refused(fact, "try again, with the ledger in its place.")
        lock = self.path + "-lock"
        if self.file is None and os.path.lexists(lock):
            self.again = True  # a writer has made one since
            raise replaced
        try:
            same = os.path.samestat(os.stat(self.path), self._opened)  # type: ignore[arg-type]
            same = same and (
                self.file is None or os.path.samestat(os.lstat(lock), os.fstat(self.file.fileno()))
            )
        except (FileNotFoundError, NotADirectoryError):
            same = False
        if not same:
            raise replaced

    def _check_format(self) -> None:
        if self._setting("application_id") != APPLICATION:
            hint = "name a file that does not exist to start a new ledger."
            raise self._refused("is a database, but not a ledger", hint)
        version = self._setting("user_version")
        if version == 1:
            self._migrate()
        elif version != FORMAT:
            hint = "pip install --upgrade pdprivacy" if version > FORMAT else RESTORE
            raise self._refused(f"uses format {version}, and this pdprivacy reads format {FORMAT}", hint)

    def _migrate(self) -> None:
        """Change a ledger of format 1, which had a write-ahead log, to this format.

        Leaving the log waits for processes that have the ledger open; the rest is one transaction.
        """
        self._set_up()
        self.execute("BEGIN EXCLUSIVE")
        if self._setting("user_version") == 1:  # not yet migrated by another process
            self._identity(new=True)
            self.execute(IDENTITY.format(uuid.uuid4().hex))
            self.execute(f"PRAGMA user_version={FORMAT}")
        self.execute("COMMIT")

    def _set_up(self) -> None:
        """Set the connection so that a commit is durable. macOS alone knows ``fullfsync``."""
        mode = self._setting("journal_mode=TRUNCATE")
        for pragma in ("synchronous=FULL", "fullfsync=ON", "cell_size_check=ON", "cache_spill=OFF"):
            self._setting(pragma)
        if mode != "truncate" or self._setting("synchronous") != 2:
            fact = "cannot be made durable: SQLite refuses to set its journal here"
            raise self._refused(fact, "keep it on a local disk.")

    def _check_journal(self, identity: str) -> None:
        """Raise if the journal is missing; make it for a ledger that was copied here."""
        journal = self.path + "-journal"
        known = files.content(self.file) == identity
        if known and not os.path.exists(journal):
            fact = f"has lost its journal {journal!r}, which may hold what undoes half of a transaction"
            hint = (
                "put it back; if another program wrote to the ledger, remove '-lock' and run ledger.audit()"
            )
            raise self._refused(fact, f"{hint}; or {files.RESTORE_ALONE}")
        if self._writes and not known:
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
        found = self.execute("SELECT name, type, sql FROM sqlite_master")
        ours = {name: sql for name, _, sql in found}
        problems = [
            f"the {KINDS[sql.split()[1]]} {name!r} is missing or was changed"
            for name, sql in SCHEMA.items()
            if ours.get(name) != sql
        ]
        if any(kind == "trigger" and name not in SCHEMA for name, kind, _ in found):
            problems.append("a trigger was added")
        identity = IDENTITY_PATTERN.fullmatch(str(ours.get("ledger_identity")))
        if (identity is None) != new:
            problems.append("its id or its format was changed")
        if problems:
            raise self._tampered("; ".join(problems))
        return "" if identity is None else identity[1]

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
        found = self.execute(f"PRAGMA {pragma}")
        return found[0][0] if found else None

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
            if query is not APPEND:
                return []
            self._failed = True
            raise in_words(sqlite3.DataError(), self.path, self.fate) from None
        except FAULTS as error:
            self._failed = True
            raise in_words(error, self.path, self.fate) from None

    def _rows(self, condition: str, *values: object) -> list[Row]:
        found = self._ask(f"SELECT {COLUMNS} FROM records NOT INDEXED WHERE {condition}", *values)
        if not all(tuple(map(type, row)) in TYPES and len(row[-1]) == 32 for row in found):
            raise TamperedLedgerError(
                f"A record of the ledger {self.path!r} is not what was entered.",
                "restore the ledger from a copy; ledger.audit() says what else was altered.",
            )
        return [Row(*row) for row in found]

    def _number(self, query: str, *values: object) -> int:
        """The number that a query finds; 0 for none."""
        found = self._ask(f"SELECT number FROM records {query} ORDER BY number DESC LIMIT 1", *values)
        return int(found[0][0]) if found else 0

    def last(self) -> Row | None:
        found = self._rows("true ORDER BY number DESC LIMIT 1")
        return found[0] if found else None

    def at(self, number: int) -> Row | None:
        found = self._rows("number = ?", int(number)) if 0 < number < 2**63 else []
        return found[0] if found else None

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
        found: dict[str, int] = {}
        name: Any = ""
        query = "SELECT min(budget) FROM records INDEXED BY records_by_kind WHERE budget > ?"
        while isinstance(name := self._ask(query, name)[0][0], str):
            opened = self.latest(name, "open")
            found |= {} if opened is None else {name: opened.number}
        if name is not None:
            raise self._tampered("the name of a budget is not a text")
        return sorted(found, key=found.__getitem__)

    def append(self, row: Row) -> None:
        self._ask(APPEND, *row)

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


def _connect(path: str, mode: str = "rw") -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        timeout=0.02,
        isolation_level=None,  # transactions begin and end where it is written
        check_same_thread=False,  # a finalizer may run in any thread
    )


def _make(path: str, rows: Iterable[Row] = ()) -> None:
    """Make a ledger at a path where nothing is, whole or not at all, durably."""
    with files.draft(path) as name:
        connection = _connect(name, "rwc")
        try:
            settings = (f"application_id={APPLICATION}", f"user_version={FORMAT}")
            for pragma in ("journal_mode=OFF", "synchronous=OFF", *settings):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("BEGIN")
            for statement in (*SCHEMA.values(), IDENTITY.format(uuid.uuid4().hex)):
                connection.execute(statement)
            waiting = iter(rows)
            while some := list(islice(waiting, SPAN)):
                with _GUARD:
                    connection.executemany(APPEND, some)
            connection.execute("COMMIT")
        finally:
            connection.close()


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
