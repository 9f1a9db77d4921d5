"""The database of a ledger in SQLite: its tables, what guards them, and how a new one is made."""

from __future__ import annotations

import os
import re
import sqlite3
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import islice
from urllib.parse import quote

from pdprivacy import disk
from pdprivacy.ledger.store import SPAN, Row

__all__ = ["APPEND", "APPLICATION", "COLUMNS", "FORMAT", "OBJECTS", "connect", "identity", "make"]
__all__ += ["new_identity"]

FORMAT = 2
APPLICATION = 0x70645072  # "pdPr"
COLUMNS = 'number, budget, kind, "release", body, hash'
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
SETTINGS = ["PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF"]  # while a ledger is made
SETTINGS += [f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={FORMAT}"]
KINDS = {"TABLE": "table", "INDEX": "index", "UNIQUE": "index", "TRIGGER": "trigger"}
IDENTITY = "CREATE VIEW ledger_identity AS SELECT '{}' AS id"
"""A view that stores a random id on page 1, which identifies the journal of this ledger."""

IDENTITY_PATTERN = re.compile(re.escape(IDENTITY).replace(r"\{\}", "([0-9a-f]{32})"))

OBJECTS = "SELECT name, type, sql FROM sqlite_master"


def new_identity() -> str:
    """Return the statement that gives a ledger a new id."""
    return IDENTITY.format(uuid.uuid4().hex)


@lru_cache(maxsize=64)
def identity(objects: tuple[tuple[str, str, str], ...], *, new: bool) -> tuple[str, list[str]]:
    """Return the id of a ledger, which a ``new`` one lacks, and what is wrong with its tables.

    ``objects``: the rows that `OBJECTS` selects.
    """
    statements = {name: sql for name, _, sql in objects}
    problems = [
        f"the {KINDS[sql.split()[1]]} {name!r} is missing or was changed"
        for name, sql in SCHEMA.items()
        if statements.get(name) != sql
    ]
    if any(kind == "trigger" and name not in SCHEMA for name, kind, _ in objects):
        problems.append("a trigger was added")
    match = IDENTITY_PATTERN.fullmatch(str(statements.get("ledger_identity")))
    if (match is None) != new:
        problems.append("its id or its format was changed")
    return "" if match is None else match[1], problems


def connect(path: str, mode: str = "rw") -> sqlite3.Connection:
    """Open a database; ``mode``: as in a URI of SQLite."""
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        timeout=0.02,
        isolation_level=None,  # transactions begin and end where it is written
        check_same_thread=False,  # a finalizer may run in any thread
        # the traceback of an error may hold the cache, whose statements would keep the locks of SQLite
        cached_statements=0,
    )


def make(path: str, rows: Iterable[Row], guard: AbstractContextManager[object]) -> None:
    """Make a ledger at a path where nothing is, whole or not at all, durably.

    ``guard``: held while records are added.
    """
    with disk.draft(path) as name:
        connection = connect(name, "rwc")
        try:
            for statement in (*SETTINGS, "BEGIN", *SCHEMA.values(), new_identity()):
                connection.execute(statement).fetchall()
            remaining = iter(rows)
            while batch := list(islice(remaining, SPAN)):
                with guard:
                    connection.executemany(APPEND, batch)
            connection.execute("COMMIT")
        finally:
            connection.close()
    disk.sync(os.path.dirname(path))
