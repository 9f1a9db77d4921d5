"""The SQLite database of a ledger: its tables, its connections, its records and the words for its errors."""

# ruff: noqa: D102 - records are documented on the protocol
from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pdprivacy.errors import LedgerError, TamperedLedgerError
from pdprivacy.ledger.files import draft, place, sweep
from pdprivacy.ledger.store import NOTHING, Head, Row

__all__ = ["FAULTS", "Records", "copy", "create", "put_right", "reader", "told", "writer"]

FORMAT = 1
APPLICATION = 0x70645072  # "pdPr"
FAULTS = (sqlite3.Error, sqlite3.Warning, OSError, MemoryError, OverflowError, UnicodeError)
"""What SQLite, Python's module for it and the operating system raise when a ledger cannot be used."""

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

_MALFORMED = ("it is damaged", "restore it from a copy made by ledger.backup(path).")
_HELD = ("another program holds it", "try again once that has finished.")
_CLOSED = ("it may not be opened or written here", "look at the rights on the file and on its directory.")
_FULL = ("the disk is full, or a limit on the size of files is reached", "make room, then try again.")
_BROKEN = ("the disk or the operating system failed", "look at the log of the system, then try again.")
_TOO_MANY = ("too many files are open", "close some, or raise the limit (ulimit -n).")
_GONE = ("its folder is gone, or its path cannot be used", "look at the path, and at the links on it.")
_READ_ONLY = ("it is read-only here, or the rights to change it are missing", _CLOSED[1])
REASONS = {
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_PROTOCOL: _HELD,
    sqlite3.SQLITE_CORRUPT: _MALFORMED,
    sqlite3.SQLITE_NOTADB: (
        "it is no ledger, or it is damaged",
        "restore it from a copy, or name another file.",
    ),
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _BROKEN,
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_PERM: _CLOSED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_CONSTRAINT: (
        "the record does not follow the last one, or its release is in it already",
        None,
    ),
    sqlite3.SQLITE_NOMEM: ("memory ran out", None),
}
SYSTEM = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EROFS: _READ_ONLY,
    errno.EMFILE: _TOO_MANY,
    errno.ENFILE: _TOO_MANY,
    errno.ENOENT: _GONE,
    errno.ENOTDIR: _GONE,
    errno.EISDIR: _GONE,
    errno.ELOOP: _GONE,
    errno.ENAMETOOLONG: _GONE,
    errno.EAGAIN: _HELD,
}


def told(error: BaseException, path: str, fate: str = "") -> LedgerError:
    """What a fault means, in plain words; its own text may quote a record, and is left out."""
    code = getattr(error, "sqlite_errorcode", None)
    reason: tuple[str, str | None]
    if isinstance(error, OSError):
        reason = SYSTEM.get(error.errno or 0, _BROKEN)
    elif isinstance(error, MemoryError):
        reason = REASONS[sqlite3.SQLITE_NOMEM]
    elif code is None and type(error) is sqlite3.DatabaseError:
        reason = _MALFORMED
    elif code is None:
        reason = ("SQLite could not read or take a value as text or number", _MALFORMED[1])
    else:
        name = getattr(error, "sqlite_errorname", code)
        reason = REASONS.get(code & 0xFF, (f"SQLite refused it ({name})", None))
    return LedgerError(f"The ledger {path!r} cannot be used: {reason[0]}. {fate}".rstrip(), reason[1])


def _connect(path: str, options: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{Path(path).as_uri()}?{options}",
        uri=True,
        timeout=patience,
        isolation_level=None,  # transactions begin and end where it is written
        check_same_thread=False,  # locks of the callers see to it
    )


def _setting(connection: sqlite3.Connection, pragma: str) -> Any:
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return None if row is None else row[0]


def _ask_format(connection: sqlite3.Connection, path: str) -> None:
    if _setting(connection, "application_id") != APPLICATION:
        raise LedgerError(
            f"{path!r} is a database, but no ledger. {NOTHING}",
            "name a file that does not exist to start a new ledger.",
        )
    found = _setting(connection, "user_version")
    if found > FORMAT:
        raise LedgerError(
            f"The ledger {path!r} has format {found}, and this pdprivacy knows format {FORMAT}. {NOTHING}",
            "pip install --upgrade pdprivacy",
        )
    if found != FORMAT:
        raise LedgerError(f"The ledger {path!r} has format {found}, which there is not. {NOTHING}")


KINDS = {"TABLE": "table", "INDEX": "index", "UNIQUE": "index", "TRIGGER": "trigger"}
TABLES = "SELECT name, type, sql FROM sqlite_master"


def _alien(found: Iterable[tuple[str, str, str]]) -> list[str]:
    """What of the tables, indexes and triggers is not what a ledger is made with."""
    ours = {name: sql for name, _, sql in found if name in SCHEMA}
    wrong = [
        f"the {KINDS[sql.split()[1]]} {name!r} is missing or was changed"
        for name, sql in SCHEMA.items()
        if ours.get(name) != sql
    ]
    more = any(kind == "trigger" and name not in SCHEMA for name, kind, _ in found)
    return wrong + ["a trigger was added"] * more


def _ask_schema(connection: sqlite3.Connection, path: str) -> None:
    if _alien(connection.execute(TABLES).fetchall()):
        raise TamperedLedgerError(
            f"The tables of the ledger {path!r} are not those it was made with. {NOTHING}",
            "restore the ledger from a copy made by ledger.backup(path).",
        )


def _ask(connection: sqlite3.Connection, path: str, pragma: str, answer: object) -> None:
    if _setting(connection, pragma) != answer:
        raise LedgerError(
            f"The ledger {path!r} cannot be made durable: SQLite refuses 'PRAGMA {pragma}' here. {NOTHING}",
            "keep it on a local disk that this process may write to.",
        )


def writer(path: str, patience: float) -> sqlite3.Connection:
    """A connection that still has to be put right; opens no file before it is used."""
    return _connect(path, "mode=rw", patience)


def put_right(connection: sqlite3.Connection, path: str) -> None:
    """Refuse what is no ledger, and set the connection so that a commit is durable."""
    _ask_format(connection, path)
    _ask_schema(connection, path)
    _ask(connection, path, "journal_mode=WAL", "wal")  # a copy made by VACUUM INTO comes with another one
    connection.execute("PRAGMA synchronous=FULL")
    _ask(connection, path, "synchronous", 2)
    for pragma in (
        "fullfsync=ON",
        "checkpoint_fullfsync=ON",
        "cell_size_check=ON",
        "wal_autocheckpoint=1000",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()  # macOS alone knows the first two
    connection.execute(
        "SELECT max(number) FROM records"
    ).fetchall()  # makes SQLite open the log and its index


def reader(path: str, patience: float, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection that reads what was entered before this moment."""
    connection = _connect(path, "mode=ro&immutable=1" if immutable else "mode=ro", patience)
    try:
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("BEGIN")
        _ask_format(connection, path)  # the first that is read fixes the moment
        connection.execute("SELECT max(number) FROM records").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def create(path: str) -> None:
    """Make an empty ledger at a path where nothing is, whole or not at all; under the lock."""
    sweep(path)
    with draft(path) as name:
        connection = _connect(name, "mode=rwc", 0)
        try:
            for pragma in ("page_size=2048", f"application_id={APPLICATION}", f"user_version={FORMAT}"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN")
            for statement in SCHEMA.values():
                connection.execute(statement)
            connection.execute("COMMIT")
            _ask(connection, path, "journal_mode=WAL", "wal")
        finally:
            connection.close()
        _put_in_place(name, path)


def copy(source: sqlite3.Connection, path: str) -> None:
    """Make a ledger at a path where nothing is, of what a connection reads."""
    with draft(path) as name:
        connection = _connect(name, "mode=rwc", 0)
        try:
            source.backup(connection)
            put_right(connection, path)
            if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                raise sqlite3.DatabaseError("damaged")
        finally:
            connection.close()
        _put_in_place(name, path)


def _put_in_place(name: str, path: str) -> None:
    if os.path.exists(name + "-wal"):  # closing could not write it into the database
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    place(name, path)


def _row(values: tuple[Any, ...], path: str) -> Row:
    if tuple(map(type, values)) not in TYPES or len(values[-1]) != 32:
        raise _altered(path)
    return Row(*values)


def _altered(path: str) -> TamperedLedgerError:
    return TamperedLedgerError(
        f"A record of the ledger {path!r} is not what was entered.",
        "restore the ledger from a copy; ledger.audit() says what else was altered.",
    )


class Records:
    """The records that a connection sees, until the block that it was made for ends."""

    def __init__(self, connection: sqlite3.Connection, path: str, fate: str = "") -> None:
        self._connection: sqlite3.Connection | None = connection
        self._path = path
        self._fate = fate
        self._process = os.getpid()
        self.failed = False

    def end(self) -> None:
        """Let go of the connection."""
        self._connection = None

    def _ask(self, query: str, *values: object) -> list[Any]:
        if self._connection is None or self._process != os.getpid():
            raise LedgerError(
                f"The records of the ledger {self._path!r} are used after the end of their block, or in a "
                f"process forked from within it. {self._fate}".rstrip()
            )
        try:
            return self._connection.execute(query, values).fetchall()
        except FAULTS as error:
            self.failed = True
            raise told(error, self._path, self._fate) from None

    def _one(self, condition: str, *values: object) -> Row | None:
        if not all(isinstance(value, int) or _storable(value) for value in values):
            return None
        found = self._ask(f"SELECT {COLUMNS} FROM records {condition} LIMIT 1", *values)
        return _row(found[0], self._path) if found else None

    def head(self) -> Head | None:
        found = self._ask("SELECT number, hash FROM records NOT INDEXED ORDER BY number DESC LIMIT 1")
        if not found:
            return None
        number, hashed = found[0]
        if type(number) is not int or type(hashed) is not bytes or len(hashed) != 32:
            raise _altered(self._path)
        return Head(number, hashed)

    def last(self) -> Row | None:
        return self._one("NOT INDEXED ORDER BY number DESC")

    def at(self, number: int) -> Row | None:
        if not 0 < number < 2**63:
            return None
        return self._one("NOT INDEXED WHERE number = ?", int(number))

    def latest(self, budget: str, kind: str) -> Row | None:
        return self._one(
            "INDEXED BY records_by_kind WHERE budget = ? AND kind = ? ORDER BY number DESC", budget, kind
        )

    def released(self, budget: str, release: str) -> Row | None:
        return self._one('WHERE budget = ? AND "release" = ?', budget, release)

    def rows(self, budget: str | None = None, after: int = 0) -> Iterator[Row]:
        # In pieces, as an unfinished query keeps the snapshot of a writer's connection beyond its COMMIT. And
        # by number, so that a damaged index hides no record.
        condition = "number > ?" if budget is None else "number > ? AND budget = ?"
        query = f"SELECT {COLUMNS} FROM records NOT INDEXED WHERE {condition} ORDER BY number LIMIT 256"
        after = max(after, 0)
        while after < 2**63 and (budget is None or _storable(budget)):
            found = self._ask(query, int(after), *([] if budget is None else [budget]))
            if not found:
                return
            for values in found:
                row = _row(values, self._path)
                after = row.number
                yield row

    def backwards(self, number: int) -> Iterator[Row]:
        # by number, so that the table alone tells; mostly the second record is the one that is looked for
        query = f"SELECT {COLUMNS} FROM records NOT INDEXED WHERE number <= ? ORDER BY number DESC LIMIT ?"
        many = 4
        while found := self._ask(query, number, many):
            for values in found:
                row = _row(values, self._path)
                number = row.number - 1
                yield row
            many = 256

    def budgets(self) -> list[str]:
        query = "SELECT budget, min(number) FROM records WHERE kind = 'open' GROUP BY budget ORDER BY 2"
        found = [budget for budget, _ in self._ask(query)]
        if not all(isinstance(budget, str) for budget in found):
            raise TamperedLedgerError(
                f"The name of a budget of the ledger {self._path!r} is not what was entered."
            )
        return found

    def append(self, row: Row) -> None:
        """Add a record; after one that failed, nothing of the block is entered."""
        if self.failed:  # SQLite may have rolled back by itself, and would enter the next one at once
            raise LedgerError(f"An earlier step in the ledger {self._path!r} failed. {self._fate}")
        self._ask(APPEND, *row)

    def damage(self) -> list[str]:
        """What is wrong with tables, indexes, triggers and pages."""
        found = _alien(self._ask(TABLES))
        checked = [" ".join(str(line).split()) for (line,) in self._ask("PRAGMA integrity_check(10)")]
        return found + [f"SQLite finds damage ({line})" for line in checked if line != "ok"]


def _storable(value: object) -> bool:
    """Whether a text can be in a database at all: one with half a surrogate pair cannot."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True
