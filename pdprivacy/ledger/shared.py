"""The one read-write connection of a process to a ledger of SQLite, and what may happen to it.

A transaction holds a lock on a file beside the ledger, writes into the log of the connection that the process
keeps, and waits until the log is on the disk. What could make such a record vanish is looked for before and
after: other files at the path, a fork, a descriptor that was closed elsewhere in the process.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import NamedTuple

from pdprivacy.errors import LedgerError, MissingLedgerError
from pdprivacy.ledger import database
from pdprivacy.ledger.database import FAULTS, Records, told
from pdprivacy.ledger.files import (
    Files,
    Folder,
    Mark,
    clash,
    has_log,
    keep_for_ever,
    look,
    mark,
    print_of,
    refuse_mount,
    refuse_odd_file,
    refuse_odd_place,
    sweep,
)
from pdprivacy.ledger.locks import Hold, Lock
from pdprivacy.ledger.store import NOTHING, UNKNOWN

__all__ = ["Reading", "Shared", "shared"]

HELD_PATIENCE = 0.5  # seconds that a fork waits for other processes
FORK_PATIENCE = 10.0  # seconds that a fork waits for transactions and readers of other threads
EXIT_PATIENCE = 1.0
BRIEF = 0.02  # seconds that SQLite itself waits when a reader opens
WAITING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
RESTART = "restart this process, and copy a ledger by ledger.backup(path), which needs no restart."


class Reading(NamedTuple):
    """A connection that reads, the files it reads, the state of the database, and the thread that made it.

    No files where it takes the database for one that nobody writes to.
    """

    connection: sqlite3.Connection
    files: Files | None
    state: tuple[int, ...]
    thread: int


class Turn:
    """A block in which no other process, and no other thread, writes.

    An interrupt may come at any line, and comes once: whatever gives back is run twice. It is no generator,
    which an interrupt may leave suspended for as long as somebody keeps the exception.
    """

    def __init__(self, here: Shared, patience: float) -> None:
        self._here, self._patience = here, patience

    def __enter__(self) -> float:
        here = self._here
        entered = sys._getframe(1)
        while entered.f_code.co_name == "__enter__" and entered.f_back is not None:
            entered = entered.f_back
        if here.owner == threading.get_ident():
            if here.entered is None or _runs(here.entered):
                raise LedgerError(
                    f"This thread is writing to the ledger {here.path!r} already. {NOTHING}",
                    "leave the block of the first transaction before the next one.",
                )
            # an interrupt came just when the block was left: who entered it is gone
            here.rollback(failed=True)
            here.give_turn()
        try:
            return here.take_turn(self._patience, entered)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        given = False
        try:
            self._here.give_turn()
            given = True
        finally:
            if not given:
                self._here.give_turn()


def _runs(frame: FrameType) -> bool:
    """Whether a function of this thread has not ended yet."""
    now: FrameType | None = sys._getframe(1)
    while now is not None and now is not frame:
        now = now.f_back
    return now is frame


class Shared:
    """The read-write connection of this process to one ledger, and whoever reads it in this process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.process = os.getpid()
        self.turn = threading.RLock()  # for transactions; taken before the lock file
        self.gate = threading.RLock()  # for opening and closing connections; taken last
        self.folder = Folder(path)
        self.lock = Lock(path, self.folder)
        self.owner: int | None = None
        self.entered: FrameType | None = None  # whose block it is
        self.connection: sqlite3.Connection | None = None
        self.files: Files | None = None
        self.hold = Hold()
        self.holds: list[Hold] = []
        self.readings: list[Reading] = []
        self.stopped: list[threading.RLock] = []
        self.patience: float | None = None  # of the connection, with other programs
        self.seen = False

    def alone(self, patience: float) -> Turn:
        """No other transaction in any process, within a block that is told until when to wait."""
        return Turn(self, patience)

    def take_turn(self, patience: float, entered: FrameType) -> float:
        """Wait for all others; gives the time until which to wait. ``entered``: whose block it is."""
        me = threading.get_ident()
        until = time.monotonic() + patience
        if not self.turn.acquire(timeout=patience):
            raise LedgerError(
                f"Another thread of this process holds the ledger {self.path!r}. {NOTHING}",
                "try again once it has finished.",
            )
        self.entered = entered
        self.owner = me
        try:
            if self.connection is None:
                refuse_odd_place(self.path)
            self.lock.acquire(until)
        except OSError as error:
            raise told(error, self.path, NOTHING) from None
        return until

    def give_turn(self) -> None:
        """Let others go on; what was not taken, or given already, is not given again."""
        if self.owner == threading.get_ident():
            if self.connection is None:
                self.lock.close()
            else:
                self.lock.release()
            self.owner = self.entered = None
        try:  # twice as fast as to suppress it
            self.turn.release()
        except RuntimeError:
            return  # not taken

    def leads_here(self, path: str) -> bool:
        """Whether a path leads to the database that is open, in this process.

        What lies at the path itself is looked at by whoever begins a transaction.
        """
        files = self.files
        if files is None or self.process != os.getpid():
            return False
        return path == self.path or mark(path) == files.main

    def known(self) -> list[Files]:
        """The files of all connections of this process, to any ledger."""
        found = list(_ABANDONED)
        for one in list(_SHARED.values()):
            found += [] if one.files is None else [one.files]
            found += [reading.files for reading in list(one.readings) if reading.files is not None]
        return found

    def begin(self, until: float, patience: float) -> Records:
        """Start a transaction."""
        try:
            connection = self._sound(until) or self._renewed(until)
            if self.patience != patience:
                connection.execute(f"PRAGMA busy_timeout={int(1000 * patience)}").fetchall()
                self.patience = patience
            connection.execute("BEGIN IMMEDIATE")
            if not self.hold.holds_write_lock() or not self.hold.whole_log():
                self._give_up(connection)
                raise self._exchanged(NOTHING)
        except FAULTS as error:
            self.drop()
            raise told(error, self.path, NOTHING) from None
        return Records(connection, self.path, NOTHING)

    def _sound(self, until: float) -> sqlite3.Connection | None:
        """The connection, where the files at the path are those that were opened."""
        if self.connection is None:
            return None
        self.hold.take(until)
        if self.hold.names() != 1:
            return None
        if not self.folder.steady:
            if look(self.path) != self.files:
                return None
            self.folder.trust()
        return self.connection

    def _renewed(self, until: float) -> sqlite3.Connection:
        """A connection to what is at the path now, if that may be used."""
        with self.gate:
            if self.connection is not None:
                self._refuse_exchange()
            if self.connection is None:
                self._open(until)
            assert self.connection is not None
            return self.connection

    def _refuse_exchange(self) -> None:
        """Go on only with the files that were opened; another database at the path may be opened instead."""
        assert self.files is not None
        now = look(self.path)
        there = refuse_odd_file(self.path)
        if now == self.files:
            return
        same = now.main == self.files.main
        self.abandon()
        if not there:
            raise self._gone()
        if same:
            raise self._exchanged(NOTHING)

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.path!r} was here, and is gone. {NOTHING}",
            "restore it: a new one knows nothing of what was spent on the data.",
        )

    def _exchanged(self, fate: str) -> LedgerError:
        if mark(self.path) in _FORKED:
            return LedgerError(
                f"This process was forked while the ledger {self.path!r} was being used. {fate}",
                "start the process anew, or fork when no other thread uses the ledger.",
            )
        return LedgerError(
            f"The files of the ledger {self.path!r} were exchanged while this process used them; copying "
            f"them within the process, or a connection of SQLite that others opened in it, lets that happen. "
            f"{fate}",
            RESTART,
        )

    def _open(self, until: float) -> None:
        self.folder.forget()
        if os.path.realpath(self.path) != self.path:  # a link by now, to a ledger with another lock
            raise self._exchanged(NOTHING)
        refuse_mount(self.path)
        if not refuse_odd_file(self.path):
            if self.seen:
                raise self._gone()
            database.create(self.path)
        elif os.stat(self.path).st_nlink > 1:
            sweep(self.path)
        before = look(self.path)
        if clash(before, self.known()):
            raise self._exchanged(NOTHING)
        connection = database.writer(self.path, max(until - time.monotonic(), 0.1))
        try:
            database.put_right(connection, self.path)
            files = look(self.path)
            self.hold = Hold()
            self.holds.append(self.hold)
            held = self.hold.open(self.path, files)
            self.hold.take(until)
            if not held or files.main != before.main or None in files or clash(files, self.known()):
                raise self._exchanged(NOTHING)
        except BaseException:
            self._close(connection, before)
            self._let_go()
            raise
        self.connection, self.files, self.patience, self.seen = connection, files, None, True

    def _close(self, connection: sqlite3.Connection, files: Files) -> None:
        """Close a connection while its database lies at the path; else keep it, never to be used again."""
        try:
            now = look(self.path)
        except OSError:
            now = None
        whole = files.log is not None and files.index is not None
        if now is not None and (now == files if whole else now.main == files.main):
            with suppress(*FAULTS):
                connection.close()
        else:
            keep_for_ever(connection)
            _ABANDONED.append(files)

    def _give_up(self, connection: sqlite3.Connection) -> None:
        """Refuse this ledger from now on, as SQLite takes other files of it for the right ones."""
        with suppress(*FAULTS):
            connection.execute("ROLLBACK")  # nothing was written
        if self.files is not None:
            _ABANDONED.append(self.files._replace(log=(-1, -1)))
        self.abandon()

    def abandon(self) -> None:
        """Never use the connection again, nor close it."""
        connection, files = self.connection, self.files
        if connection is not None and files is not None:
            keep_for_ever(connection)
            _ABANDONED.append(files)
        self.connection = self.files = None
        self._let_go()

    def drop(self) -> None:
        """Close the connection; the next use opens it anew."""
        with self.gate:
            connection, files = self.connection, self.files
            self.connection = self.files = None
            if connection is not None and files is not None:
                self._close(connection, files)
            self._let_go()

    def _let_go(self) -> None:
        """Close our own descriptors, which takes all locks of the process, once they guard nothing."""
        if self.connection is None and not self.readings:
            while self.holds:
                self.holds.pop().close()

    def commit(self, records: Records, until: float) -> None:
        """Enter what was appended, durably."""
        connection = self.connection
        if self.process != os.getpid() or connection is None:
            raise LedgerError(
                f"This process was forked within a transaction on the ledger {self.path!r}. {NOTHING}",
                "leave the transaction before a fork.",
            )
        if records.failed or not connection.in_transaction:
            raise LedgerError(f"An earlier step in the ledger {self.path!r} failed. {NOTHING}")
        try:
            connection.execute("COMMIT")
        except FAULTS as error:
            self.rollback(failed=True)
            raise told(error, self.path, UNKNOWN) from None
        try:
            self.hold.take(max(until, time.monotonic() + 1))
            exchanged = not self.folder.ask() and look(self.path) != self.files
        except FAULTS as error:
            self.drop()
            raise told(error, self.path, UNKNOWN) from None
        if exchanged:
            self.abandon()
            raise self._exchanged(UNKNOWN)

    def rollback(self, failed: bool) -> None:
        """Leave the ledger as it was; does nothing in a forked process, whose parent goes on."""
        connection = self.connection
        if self.process != os.getpid() or connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except FAULTS:
            failed = True
        if failed:
            self.drop()

    def read(self, patience: float) -> Reading:
        """A connection that reads this moment."""
        until = time.monotonic() + patience
        while True:
            try:
                with self.gate:  # others open and close meanwhile: whoever has to wait leaves it
                    return self._read()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in WAITING or time.monotonic() > until:
                    raise
            time.sleep(0.005)

    def _read(self) -> Reading:
        if not refuse_odd_file(self.path):
            if self.seen:
                raise self._gone()
            raise MissingLedgerError(
                f"There is no ledger {self.path!r} yet.",
                "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...) makes it.",
            )
        if not self.seen:
            refuse_mount(self.path)
        before = look(self.path)
        if clash(before, self.known()):
            raise self._exchanged("Nothing was read.")
        reading = self._snapshot()
        try:
            self.readings.append(reading)
            self.seen = True
            files = reading.files
            if files is not None and (files.main != before.main or clash(files, self.known())):
                raise self._exchanged("Nothing was read.")
        except BaseException:
            self.leave(reading)
            raise
        return reading

    def _snapshot(self) -> Reading:
        me, state = threading.get_ident(), print_of(self.path)
        try:
            connection = database.reader(self.path, BRIEF)
            try:
                return Reading(connection, look(self.path), state, me)
            except BaseException:
                connection.close()
                raise
        except sqlite3.OperationalError as error:
            # where no log can be made, as in a directory that is read-only, there is nothing but the database
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or has_log(self.path):
                raise
        return Reading(database.reader(self.path, BRIEF, immutable=True), None, state, me)

    def refuse_torn(self, reading: Reading) -> None:
        """Refuse what was read, where it may not be of one moment."""
        try:
            if reading.files is None:
                same = print_of(self.path) == reading.state and not has_log(self.path)
            else:
                same = reading.files == look(self.path)
        except OSError as error:
            raise told(error, self.path) from None
        same = same and self.process == os.getpid()
        if not same:
            raise self._exchanged("What was read may be wrong.")

    def leave(self, reading: Reading) -> None:
        """Close a connection that reads."""
        if self.process != os.getpid():
            keep_for_ever(reading.connection)
            return
        with self.gate:
            with suppress(ValueError):
                self.readings.remove(reading)
            with suppress(*FAULTS):
                reading.connection.close()
            self._let_go()

    def close(self, patience: float) -> None:
        """Close the connection as soon as no transaction is under way."""
        if self.owner == threading.get_ident() or not self.seen:
            return
        with suppress(LedgerError, *FAULTS), self.alone(patience) as until:
            if self.connection is None and os.path.lexists(self.path + "-wal"):
                with self.gate:  # a reader, or a process that was killed, has left its log
                    self._open(until)
            self.drop()

    def before_fork(self) -> None:
        """Stop transactions and readers of other threads, and close the connection."""
        self.stopped = []
        until = time.monotonic() + FORK_PATIENCE
        if self.owner == threading.get_ident():
            return  # a handler of a signal forks within a transaction
        for one in (self.turn, self.gate):
            if not one.acquire(timeout=max(until - time.monotonic(), 0)):
                return
            self.stopped.append(one)
        me = threading.get_ident()
        while any(reading.thread != me for reading in self.readings) and time.monotonic() < until:
            self.gate.release()
            time.sleep(0.001)
            self.gate.acquire()
        if self.connection is not None:
            with suppress(LedgerError, *FAULTS):
                self.lock.acquire(min(until, time.monotonic() + HELD_PATIENCE))
            with suppress(*FAULTS):
                # who holds the lock has the files open, so this is not the last connection to them
                self.hold.take(until)
                self.drop()
        self.lock.close()  # no child inherits it

    def after_fork(self) -> None:
        """Let transactions and readers go on, in the process that forked."""
        for one in reversed(self.stopped):
            one.release()

    def disown(self) -> None:
        """Never touch what was inherited from another process, nor its files."""
        self.lock.forget()
        inherited = [(self.connection, self.files)] + [(one.connection, one.files) for one in self.readings]
        for connection, files in inherited:
            if connection is not None:
                keep_for_ever(connection)
            if files is not None:  # SQLite takes the locks of the parent for its own: no files are right here
                _FORKED.append(files.main)
                _ABANDONED.append(files._replace(log=(-1, -1)))


_SHARED: dict[str, Shared] = {}
_ABANDONED: list[Files] = []
_FORKED: list[Mark | None] = []
_REGISTER = threading.RLock()
_PROCESS = os.getpid()


def shared(path: str) -> Shared:
    """What this process has open of the ledger at a real path."""
    if os.getpid() != _PROCESS:
        _after_in_child()  # a fork that told Python nothing
    with _REGISTER:
        found = _SHARED.get(path)
        if found is None:
            found = _SHARED[path] = Shared(path)
        return found


def _before_fork() -> None:
    _REGISTER.acquire()
    for one in _SHARED.values():
        one.before_fork()


def _after_in_parent() -> None:
    for one in _SHARED.values():
        one.after_fork()
    _REGISTER.release()


def _after_in_child() -> None:
    global _REGISTER, _PROCESS
    _PROCESS = os.getpid()
    _REGISTER = threading.RLock()
    for one in _SHARED.values():
        one.disown()
    _SHARED.clear()


def _close_all() -> None:
    if os.getpid() != _PROCESS:
        _after_in_child()
    for one in list(_SHARED.values()):
        one.close(EXIT_PATIENCE)
        if one.connection is not None:
            keep_for_ever(one.connection)  # closing it without the lock is worse than not closing it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
atexit.register(_close_all)
