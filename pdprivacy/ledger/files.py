"""The files of a ledger in SQLite: database, lock file and journal; the tables, and how a new ledger is made.

SQLite locks the database itself with POSIX locks, which a process loses as soon as it closes any descriptor
of the file (``shutil.copy`` does). So whoever reads or writes a ledger holds the lock of a file beside it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sqlite3
import stat
import time
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import islice
from urllib.parse import quote

from pdprivacy.errors import LedgerError, TamperedLedgerError
from pdprivacy.ledger import disk
from pdprivacy.ledger.store import NOTHING, SPAN, Row

FAULTS = (sqlite3.Error, sqlite3.Warning, OSError, MemoryError, OverflowError, UnicodeError)
"""The errors of SQLite, of its module in Python and of the operating system."""

NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
"""The errors of a file of another user, or on a read-only disk."""

MOST_OPEN = 5
"""The files that a transaction opens: lock file, database, journal, its folder, and a file to store."""

LONGEST_PAUSE, CROWDED = 0.002, 0.05  # seconds
SMALLEST = 512  # bytes of a database, at least

MAGIC = bytes.fromhex("d9d505f920a163d7")  # begins a journal that is to be rolled back
COUNTER = slice(24, 28)  # of page 1: raised by each transaction
CHANGING = slice(18, 20), slice(24, 40), slice(92, 100)  # of page 1: journal mode, counter, sizes
SIZE = slice(28, 32)  # of page 1: pages of the database
VERSION = slice(60, 64)  # of page 1: PRAGMA user_version

NETWORK = re.compile(r"nfs|cifs|smb|ncpfs|afs|ceph|lustre|gluster|9p|fuse\.(sshfs|gluster)")

RESTORE = "restore the ledger from a copy made by ledger.backup(path)."
RESTORE_ALONE = f"{RESTORE[:-1]}, with neither '-journal' nor '-lock' beside it."
RIGHTS = "look at the rights on the file and on its directory."
REASONS = {
    "BUSY LOCKED PROTOCOL EAGAIN": ("another program holds it", "try again once that has finished."),
    "CORRUPT": ("it is damaged", RESTORE),
    "UNREADABLE": ("SQLite could not decode or store a value", RESTORE),
    "NOTADB": ("it is not a ledger, or it is damaged", "restore it from a copy, or name another file."),
    "CANTOPEN PERM EACCES EPERM": ("it may not be opened or written here", RIGHTS),
    "READONLY EROFS": ("it is read-only here, or the rights to change it are missing", RIGHTS),
    "FULL ENOSPC EDQUOT EFBIG": (
        "the disk is full, or a limit on the size of files is reached",
        "make room, then try again.",
    ),
    "EMFILE ENFILE": ("too many files are open", "close some, or raise the limit (ulimit -n)."),
    "ENOENT ENOTDIR EISDIR ELOOP ENAMETOOLONG": (
        "its folder is gone, or its path cannot be used",
        "look at the path, and at the links on it.",
    ),
    "ENOLCK ENOTSUP": ("its file system has no locks", "keep it on a local disk."),
    "CONSTRAINT": ("the record does not follow the last one, or its release is in it already", None),
    "NOMEM": ("memory ran out", None),
    "IOERR": ("the disk or the operating system failed", "look at the log of the system, then try again."),
}
"""Facts and hints, by the names of the errors of SQLite and of the operating system."""

UNNAMED: dict[type[BaseException], str] = {MemoryError: "NOMEM", sqlite3.DatabaseError: "CORRUPT"}
"""The reasons of errors that SQLite gives no name; of all others "UNREADABLE"."""

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

_crowded = 0.0
"""The time until which other processes are assumed to wait for a lock."""


class LedgerFiles:
    """The files of a ledger, as one transaction uses them.

    ``path``: of the database; ``journal``: of its rollback journal. ``fate``: what errors say of the records
    to enter. ``file``: the lock file, once it is open.
    """

    def __init__(self, path: str, fate: str) -> None:
        self.path, self.journal, self.fate = path, path + "-journal", fate
        self.file: io.FileIO | None = None

    def refused(self, fact: str, hint: str | None = None) -> LedgerError:
        """Return the error for a ledger that cannot be used."""
        return LedgerError(f"The ledger {self.path!r} {fact}.", hint, self.fate)

    def in_words(self, error: BaseException) -> LedgerError:
        """Return an error of SQLite or of the system in plain words; its own text may quote a record."""
        unnamed = UNNAMED.get(type(error), "UNREADABLE")
        name = str(getattr(error, "sqlite_errorname", unnamed)).removeprefix("SQLITE_")
        reason: tuple[str, str | None] = f"SQLite refused it ({name})", None
        if isinstance(error, OSError):
            name, reason = errno.errorcode.get(error.errno or 0, ""), REASONS["IOERR"]
        code = name.partition("_")[0]
        if code == "CANTOPEN" and _lacks_descriptors():
            code = "EMFILE"
        fact, hint = next((texts for names, texts in REASONS.items() if code in names.split()), reason)
        return self.refused(f"cannot be used: {fact}", hint)

    # ------------------------------------------------------------ the lock

    def acquire(self, until: float, *, create: bool) -> None:
        """Open the lock file and wait for its lock; without ``create``, a missing lock file is no error.

        Raises LedgerError after ``until``, a time of ``time.monotonic``.
        """
        has_lock = False
        while not has_lock:
            self._open_lock(create)
            if self.file is not None:
                self._wait(self.file, until)
            # another file may have the name by now
            has_lock = self.file is None or disk.same_file(self.plain("-lock"), os.fstat(self.file.fileno()))

    def _open_lock(self, create: bool) -> None:
        lock = self.path + "-lock"
        if self.file is not None:
            self.file.close()
        self.file = None
        self.plain("-lock")
        try:
            self.file = io.FileIO(lock, "a+" if create else "r+")
        except FileNotFoundError:
            if create:
                raise
        except OSError as error:
            if error.errno not in NO_RIGHT or not os.path.exists(lock):
                raise
            self.file = io.FileIO(lock, "r")  # which can be locked all the same

    def _wait(self, file: io.FileIO, until: float) -> None:
        global _crowded
        if time.monotonic() < _crowded:
            time.sleep(LONGEST_PAUSE)  # others wait, too: let them go first
        pause = 0.0002
        while not disk.lock(file):
            _crowded = time.monotonic() + CROWDED
            if time.monotonic() > until:
                hint = "try again once it has finished; lsof or fuser on the -lock file names it."
                raise self.refused("is held by another process or thread", hint)
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def content(self) -> str:
        """Return the id of the ledger in the lock file; empty for a new or missing lock file."""
        if self.file is None:
            return ""
        self.file.seek(0)
        return (self.file.read(64) or b"").decode("ascii", "replace")

    # ------------------------------------------------------------ the database

    def plain(self, end: str) -> os.stat_result | None:
        """Return the status of a file beside the database, None if missing; refuse links and devices."""
        stats = disk.stat_or_none(self.path + end, os.lstat)
        if stats is not None and not stat.S_ISREG(stats.st_mode):
            raise self.refused(f"needs a plain file {self.path + end!r}", "move it away.")
        return stats

    def status(self) -> os.stat_result | None:
        """Return the status of the database, None where a new one may be made; refuse anything else."""
        stats = disk.stat_or_none(self.path)
        if stats is None:
            if not os.path.isdir(os.path.dirname(self.path)):
                raise self.refused("cannot be made: its directory does not exist", "make it first.")
            left = [self.path + end for end in ("-wal", "-journal") if _is_used(self.path + end)]
            left += [self.path + "-lock"] * bool(self.content())
            if left:
                hint = "restore the ledger, or move what is left of it away to start a new one."
                raise self.refused(f"is missing, but {left[0]!r}, a part of it, is there", hint)
            return None
        if not stat.S_ISREG(stats.st_mode):
            raise self.refused("is not a plain file")
        if stats.st_size < SMALLEST:
            hint = "restore it from a copy, or name a file that does not exist to start a new ledger."
            raise self.refused(f"holds {stats.st_size} bytes, and no ledger", hint)
        if stats.st_nlink > 1 and self.file is not None:
            disk.sweep(self.path)  # left by a process that was killed while it made the ledger
            names = os.stat(self.path).st_nlink
            if names > 1:
                hint = "keep one of the names; use a symbolic link for another."
                raise self.refused(f"has {names} names (hard links), each with a lock of its own", hint)
        return stats

    def refuse_mount(self) -> None:
        """Refuse a file that is mounted by itself, and network file systems, if the system lists mounts."""
        reason = _mount_fault(self.path, os.stat(os.path.dirname(self.path)).st_dev)
        if reason is not None:
            raise self.refused(*reason)

    def is_hot(self) -> bool:
        """Return whether SQLite would roll back the journal; refuse one of another ledger or another time.

        A transaction changes page 1, so its journal holds that page as it was: with the id of the ledger, and
        with its counter as it is now, or one less. Source: sqlite.org/fileformat2.html, section 3.
        """
        with io.FileIO(self.journal) as file:
            header = file.read(28) or b""
            unlike = int.from_bytes(header[:8], "big") ^ int.from_bytes(MAGIC, "big")
            if len(header) < 28 or unlike.bit_count() > 8:
                # the transaction was complete, or was cut off before the database was changed
                return header[:1] not in (b"", b"\0")
            count, nonce, pages, sector, page = _numbers(header[8:])
            sound = not unlike and SMALLEST <= page <= 2**16 and sector <= 2**16
            with open(self.path, "rb") as database:
                now = database.read(page) if sound else b""
            file.seek(sector)
            first_pages = 0
            for _ in range(count if sound else 0):
                record = file.read(page + 8) or b""
                before = record[4:-4]
                # the sum of every 200th byte from the end
                checksum = (nonce + sum(before[page - 200 : 0 : -200])) % 2**32
                sound = len(record) == page + 8 and _numbers(record[-4:]) == [checksum]
                if not sound:
                    break
                if _numbers(record[:4]) == [1]:
                    first_pages += _same_page(before, now, pages)
        if not sound or first_pages != 1:
            raise TamperedLedgerError(
                f"The journal {self.journal!r} is damaged, or it is of another ledger, or of this one at "
                "another time.",
                RESTORE_ALONE,
                NOTHING,
            )
        return True


def _lacks_descriptors() -> bool:
    """Return whether this process may not open as many files as a transaction does."""
    opened: list[int] = []
    try:
        while len(opened) < MOST_OPEN:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return False


def _is_used(path: str) -> bool:
    """Return whether there is a write-ahead log, or a journal that SQLite has not cleared."""
    try:
        with open(path, "rb") as file:
            return file.read(1) not in (b"", b"\0")
    except FileNotFoundError:
        return False


@lru_cache(maxsize=256)
def _mount_fault(path: str, device: int) -> tuple[str, str] | None:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split(" ") for line in file]
    except OSError:  # no Linux, or no /proc
        return None
    escaped = re.sub(r"[ \t\n\\]", lambda odd: f"\\{ord(odd[0]):03o}", path)
    for mount in mounts:
        kind = mount[mount.index("-") + 1]
        if mount[4] == escaped:
            fact = "is mounted as a single file, so its lock and its journal are others here"
            return fact, "mount the folder that it is in."
        if mount[2] == f"{os.major(device)}:{os.minor(device)}" and NETWORK.match(kind):
            return f"is on a network file system ({kind}), where locks may fail", "keep it on a local disk."
    return None


def _numbers(content: bytes) -> list[int]:
    """Return the whole numbers of four bytes each."""
    return [int.from_bytes(content[at : at + 4], "big") for at in range(0, len(content), 4)]


def _same_page(before: bytes, now: bytes, pages: int) -> bool:
    """Return whether page 1 is as it was before a transaction, or as the transaction leaves it.

    ``pages``: the size of the database before the transaction.
    """
    counters = [*_numbers(before[COUNTER]), *_numbers(now[COUNTER])]
    constant = [bytearray(before), bytearray(now)]
    for page in constant:
        for part in CHANGING:
            page[part] = bytes(part.stop - part.start)
    migrates = _numbers(before[VERSION]) == [1]  # the one transaction that changes the tables
    same = constant[0] == constant[1] and _numbers(before[SIZE]) == [pages]
    return (counters[1] - counters[0]) % 2**32 <= 1 and (migrates or same)


# ---------------------------------------------------------------- tables


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
        isolation_level=None,  # transactions begin and end explicitly
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
