"""Records in one SQLite file, shared by the processes of one machine.

Each transaction takes the lock file, opens the database, and closes both at its end: nothing is held in
between that a fork could inherit or a copy of the file could unlock. The journal is a rollback journal, so
the database holds all that was committed. A commit clears the head of the journal and keeps the file, which
takes less of the file system than to empty or remove it.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pdprivacy import checks
from pdprivacy.errors import LedgerError, MissingLedgerError, TamperedLedgerError
from pdprivacy.ledger import disk, files
from pdprivacy.ledger.files import FAULTS, RESTORE, LedgerFiles
from pdprivacy.ledger.store import AUDIT, NOTHING, UNKNOWN, Row, Store, T, Writer, are_rows

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


LAST_CHARGES = """
SELECT budget, max(CASE WHEN kind = 'charge' THEN number END) FROM records NOT INDEXED
WHERE budget <> '' GROUP BY budget ORDER BY min(number)
"""


class SQLiteStore(Store):
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
        self._patience = min(checks.real(patience, "patience", 0), 1e6)
        try:
            self.address = os.path.abspath(os.path.expanduser(text))
        except OSError as error:  # a relative path in a folder that was removed
            raise LedgerFiles(text, NOTHING).in_words(error) from None

    def __reduce__(self) -> Any:
        return partial(SQLiteStore, patience=self._patience), (self.address,)

    def close(self) -> None:
        """Do nothing: nothing is open between transactions."""

    def _run(self, work: Callable[[_Transaction], T], *, writes: bool, create: bool) -> T:
        until = time.monotonic() + self._patience
        while True:
            transaction = _Transaction(os.path.realpath(self.address), writes)
            try:
                return transaction.run(work, until, create)
            except LedgerError:
                if not transaction.again or time.monotonic() > until:
                    raise
            except FAULTS as error:  # before ValueError, as UnicodeError is one
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if transaction.working:
                    raise
                if not busy or time.monotonic() > until:
                    raise transaction.in_words(error) from None
            except Exception:  # a forked process has dropped the files of the transaction
                if transaction.working or os.getpid() == transaction.process:
                    raise
                raise transaction.forked() from None
            time.sleep(0.005)

    def backup(self, path: str | os.PathLike[str], rows: Iterable[Row]) -> None:
        """Make a ledger of these records at a path where nothing is, durably."""
        copy = LedgerFiles(os.path.realpath(SQLiteStore(path).address), "No copy was made.")
        try:
            if os.path.lexists(copy.path) or copy.status() is not None:
                raise FileExistsError(copy.path)
            files.make(copy.path, rows, _GUARD)
        except FileExistsError:
            raise LedgerError(
                f"{copy.path!r} exists already. No copy was made.", "name a new file for the copy."
            ) from None
        except FAULTS as error:
            fate = "A copy was made, but may not be durable."
            with suppress(OSError):
                if not os.path.lexists(copy.path) and os.lstat(os.path.dirname(copy.path)):
                    fate = copy.fate
            raise LedgerFiles(copy.path, fate).in_words(error) from None


class _Transaction(LedgerFiles, Writer):
    """The records of a ledger while its lock is held; a `Reader`, and a `Writer` where it ``writes``."""

    def __init__(self, path: str, writes: bool) -> None:
        super().__init__(path, NOTHING if writes else "")
        self.connection: sqlite3.Connection | None = None
        self.working = self.again = False
        self._writes = writes
        self.thread, self.process = threading.get_ident(), os.getpid()
        self._opened: os.stat_result | None = None
        self._failed = False

    # ------------------------------------------------------------ begin and end

    def run(self, work: Callable[[_Transaction], T], until: float, create: bool) -> T:
        """Run the transaction; ``until``: a time of ``time.monotonic``.

        An interrupt can occur between any two calls, but not within a call of C code. Each resource is
        therefore released here, by a single call of C code.
        """
        try:
            self.lock(until, create)
            with _GUARD:
                try:
                    self.begin(create)
                    self.working = True
                    result = work(self)
                    self.working = False
                    self.end()
                finally:
                    if self.connection is not None:
                        self.connection.close()
                    self.connection = None
            return result
        finally:
            try:
                if self.file is not None:
                    try:
                        disk.unlock(self.file)
                    finally:
                        self.file.close()
            finally:
                _ACTIVE.discard(self)

    def lock(self, until: float, create: bool) -> None:
        """Wait for the lock file."""
        mine = self.thread, self.path
        if any((outer.thread, outer.path) == mine for outer in tuple(_ACTIVE)):
            raise self.refused("is being used by this thread already", "leave the first transaction first.")
        _ACTIVE.add(self)
        if self.status() is None and not create:
            raise self._missing()
        self.acquire(until, create=self._writes)
        if os.getpid() != self.process:
            raise self.forked()

    def begin(self, create: bool) -> None:
        """Open the database, roll back or migrate it if needed, and begin the transaction."""
        self.refuse_mount()
        self._opened = self.status()
        if self._opened is None:
            if not create:
                raise self._missing()
            disk.sweep(self.path)
            files.make(self.path, (), _GUARD)
            self._opened = os.stat(self.path)
        if (self._opened.st_dev, self._opened.st_ino) in _FORKED or os.getpid() != self.process:
            raise self.forked()
        journaled = self.plain("-journal") is not None
        if journaled and self.is_hot():
            self._mark("")
        self.connection = files.connect(self.path)
        self._check_format()
        self._set_up()
        if journaled and not os.path.exists(self.journal):  # rolled back, or SQLite could not open it
            io.FileIO(self.journal, "a").close()
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
                raise LedgerError(f"An earlier step in the ledger {self.path!r} failed.", fate=NOTHING)
            self.fate = UNKNOWN
            self.connection.execute("COMMIT")
            self._refuse_exchange()

    def _refuse_exchange(self) -> None:
        """Raise if this is a forked process, or if the database or its lock file was replaced."""
        if self.connection is None:
            raise self.forked()
        lock = disk.stat_or_none(self.path + "-lock", os.lstat)
        opened = None if self.file is None else os.fstat(self.file.fileno())
        self.again = opened is None and lock is not None  # a writer has made the lock file since
        current = disk.stat_or_none(self.path)
        if not (disk.same_file(lock, opened) and disk.same_file(current, self._opened)):
            fact = "was replaced by another file while it was used, or its lock file was"
            raise self.refused(fact, "try again, with the ledger in its place.")

    def _check_format(self) -> None:
        self.execute("BEGIN")  # so that SQLite locks the file, and looks for a journal, once for both
        application, version = self._setting("application_id"), self._setting("user_version")
        self.execute("END")
        if application != files.APPLICATION:
            hint = "name a file that does not exist to start a new ledger."
            raise self.refused("is a database, but not a ledger", hint)
        if version == 1:
            self._migrate()
        elif version != files.FORMAT:
            fact = f"uses format {version}, and this pdprivacy reads format {files.FORMAT}"
            hint = "pip install --upgrade pdprivacy" if version > files.FORMAT else RESTORE
            raise self.refused(fact, hint)

    def _migrate(self) -> None:
        """Change a ledger of format 1, which had a write-ahead log, to this format.

        Leaving the log waits for processes that have the ledger open; the rest is one transaction.
        """
        self._set_up()
        self.execute("BEGIN EXCLUSIVE")
        if self._setting("user_version") == 1:  # not yet migrated by another process
            self._identity(new=True)
            self.execute(files.new_identity())
            self.execute(f"PRAGMA user_version={files.FORMAT}")
        self.execute("COMMIT")

    def _set_up(self) -> None:
        """Set the connection so that a commit is durable. macOS alone knows ``fullfsync``."""
        mode = self._setting("journal_mode=PERSIST")
        for pragma in ("synchronous=FULL", "fullfsync=ON", "cell_size_check=ON", "cache_spill=OFF"):
            self._setting(pragma)
        if mode != "persist" or self._setting("synchronous") != 2:
            fact = "cannot be made durable: SQLite refuses to set its journal here"
            raise self.refused(fact, "keep it on a local disk.")

    def _check_journal(self, identity: str) -> None:
        """Raise if the journal is missing; make it for a ledger that was copied here."""
        marked = self.content() == identity
        if marked and not os.path.exists(self.journal):
            fact = f"has lost its journal {self.journal!r}, which may hold what undoes half of a transaction"
            hint = (
                "put it back; if another program wrote to the ledger, remove '-lock' and run ledger.audit()"
            )
            raise self.refused(fact, f"{hint}; or {files.RESTORE_ALONE}")
        if self._writes and not marked:
            io.FileIO(self.journal, "a").close()
            disk.sync(os.path.dirname(self.path))
            self._mark(identity)

    def _mark(self, identity: str) -> None:
        """Write the id of the ledger to the lock file, if that is writable."""
        if self.file is not None and self.file.writable():
            self.file.truncate(0)
            self.file.write(identity.encode())
            os.fsync(self.file.fileno())

    def _identity(self, *, new: bool) -> str:
        """Check tables, indexes and triggers; return the id of the ledger, which a ``new`` one lacks."""
        identity, problems = files.identity(tuple(self.execute(files.OBJECTS)), new=new)
        if problems:
            raise self._tampered("; ".join(problems))
        return identity

    def forked(self) -> LedgerError:
        """The error for a process that was forked within a transaction."""
        hint = "start the process anew, or fork outside of transactions."
        return self.refused("was in use when this process was forked", hint)

    def _tampered(self, problem: str) -> TamperedLedgerError:
        text = f"The tables of the ledger {self.path!r} are not those it was made with: {problem}."
        return TamperedLedgerError(text, RESTORE, self.fate)

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

        SQLite would undo the transaction of the parent if it finalised the connection, so the connection is
        never freed. SQLite takes the locks of the parent for its own, so this process is refused the ledger.
        """
        connection, file = self.connection, self.file
        self.connection = self.file = None
        if connection is not None and self._opened is not None:
            _FORKED.add((self._opened.st_dev, self._opened.st_ino))
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        if file is not None:
            file.close()

    # ------------------------------------------------------------ records

    def _failure(self, error: BaseException) -> LedgerError:
        """Fail the transaction; return the error in words."""
        self._failed = True
        return self.in_words(error)

    def _ask(self, query: str, *values: object) -> list[Any]:
        """Return all rows of a query; raise errors in words."""
        try:
            return self.execute(query, *values)
        except FAULTS as error:
            if isinstance(error, UnicodeEncodeError) and query is not files.APPEND:
                return []  # no database holds a text with half a surrogate pair
            raise self._failure(error) from None

    def rows(self, condition: str, *values: object) -> list[Row]:
        rows = self._ask(f"SELECT {files.COLUMNS} FROM records NOT INDEXED WHERE {condition}", *values)
        if not are_rows(rows):
            raise TamperedLedgerError(f"A record of the ledger {self.path!r} is not what was entered.", AUDIT)
        return list(map(Row._make, rows))

    def indexed(self, index: str, condition: str, *values: object) -> int | None:
        query = f"SELECT number FROM records INDEXED BY {index} WHERE {condition}"
        rows = self._ask(f"{query} ORDER BY number DESC LIMIT 1", *values)
        return rows[0][0] if rows else None

    def last_charges(self) -> dict[str, int]:
        last = {name: number or 0 for name, number in self._ask(LAST_CHARGES)}
        if not all(isinstance(name, str) for name in last):
            raise self._tampered("the name of a budget is not a text")
        return last

    def append(self, row: Row) -> None:
        self._ask(files.APPEND, *row)

    def make_durable(self) -> None:
        """Make durable that the journal is cleared, before it is used again."""
        try:
            disk.sync(self.journal)
        except OSError as error:
            if error.errno not in (errno.ENOENT, *files.NO_RIGHT):
                raise self._failure(error) from None

    def damage(self, until: int) -> list[str]:
        if until > CHECKED_WHOLE:
            return []
        lines = [" ".join(str(line).split()) for (line,) in self._ask("PRAGMA integrity_check(10)")]
        return [f"SQLite finds damage ({line})" for line in lines if line != "ok"]

    def unindexed(self, after: int, until: int) -> list[str]:
        ((hidden,),) = self._ask(UNINDEXED, after, until)
        fault = f"{hidden} of the records {after + 1} to {until} are not found by an index"
        return [fault] * bool(hidden)

    def store(self, digest: str, answer: bytes) -> None:
        folder, private = self.path + "-answers", partial(os.open, mode=0o600)
        unfinished = f"{folder}/unfinished"  # nobody else makes one while the lock is held
        try:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
                disk.sync(os.path.dirname(folder))
            with suppress(FileNotFoundError):
                os.unlink(unfinished)  # of a process that was killed here
            with (
                disk.draft(f"{folder}/{digest}", os.replace, unfinished) as name,
                open(name, "xb", opener=private) as file,
            ):
                file.write(answer)
            disk.sync(folder)
        except FAULTS as error:
            raise self._failure(error) from None

    def stored(self, digest: str) -> bytes | None:
        try:
            return Path(f"{self.path}-answers", digest).read_bytes()
        except FileNotFoundError:
            return None
        except FAULTS as error:
            raise self._failure(error) from None


# ---------------------------------------------------------------- processes that fork

_GUARD = threading.RLock()
"""Held while SQLite is in use; forks wait for it, as a child inherits the locks within SQLite as they are."""

_FORKED: set[tuple[int, int]] = set()
"""The devices and inodes of ledgers that were in use when this process was forked."""

_ACTIVE: set[_Transaction] = set()
"""The transactions that are under way. No thread changes the set while ``tuple`` copies it."""


def _before_fork() -> None:
    _GUARD.acquire(timeout=FORK_PATIENCE)


def _after_in_parent() -> None:
    with suppress(RuntimeError):  # another thread held it for longer
        _GUARD.release()


def _after_in_child() -> None:
    global _GUARD
    _GUARD = threading.RLock()
    for transaction in tuple(_ACTIVE):
        transaction.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
