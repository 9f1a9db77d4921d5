"""The locks on the files of a ledger: one writer at a time, and what SQLite believes that it holds.

A lock file beside the database serialises writers. The POSIX locks of SQLite are gone as soon as the process
closes any descriptor of the files, so each transaction takes them anew, on descriptors of its own.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time
from contextlib import suppress

from pdprivacy.errors import LedgerError
from pdprivacy.ledger.files import Files, Folder, Mark, mark
from pdprivacy.ledger.store import NOTHING

if sys.platform != "win32":
    import fcntl

__all__ = ["Hold", "Lock"]

SHARED_FIRST = 0x40000002  # of the database: who holds it keeps others from unlinking the log
SHARED_SIZE = 510
WRITE_LOCK = 120  # of the -shm: who holds it writes
INDEX_PAGE = 14  # of the -shm: the size of a page, then how many frames the log holds
FRAMES = struct.Struct("=HI")
SWITCH_LOCK = 128  # of the -shm: who holds it keeps others from clearing the index of the log
if sys.platform != "win32":
    SHARED = fcntl.LOCK_SH | fcntl.LOCK_NB
    ALONE = fcntl.LOCK_EX | fcntl.LOCK_NB
    FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux
    WRITES = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, WRITE_LOCK, 1, 0)
    TELLS = hasattr(fcntl, "F_OFD_GETLK") and sys.maxsize > 2**32
    """Whether the system, as Linux alone, tells a process of its own locks."""


class Lock:
    """The lock on a file beside the ledger that one process at a time holds; none on Windows.

    The file may stay open in between. Whoever shares its descriptor shares the lock, so a forked process
    opens it anew; and where another file lies at the path, that is the one to lock.
    """

    def __init__(self, path: str, folder: Folder | None = None) -> None:
        self.path = path + "-lock"
        self._folder = Folder(path) if folder is None else folder
        self.descriptor: int | None = None
        self._file: Mark | None = None  # that the descriptor is of
        self._process: int | None = None  # that opened it

    def acquire(self, until: float) -> None:
        """Wait for the lock, at most until that time of ``time.monotonic``; raises LedgerError after it.

        To be released after an error, too.
        """
        if sys.platform == "win32":
            return
        pause = 0.0002
        while True:
            descriptor = self._open()
            try:
                fcntl.flock(descriptor, ALONE)
                locked = True
            except BlockingIOError:
                locked = False
            if not self._folder.ask() and mark(self.path) != self._file:
                self.close()  # somebody has put another one in its place
            elif locked:
                return
            if time.monotonic() > until:
                raise LedgerError(
                    f"Another process holds the ledger {self.path.removesuffix('-lock')!r}. {NOTHING}",
                    "try again once it has finished; lsof or fuser on the -lock file names it.",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 0.002)

    def _open(self) -> int:
        """The descriptor that is open; a new one where there is none, or others closed it or inherited it."""
        if self.descriptor is not None:
            if self._process == os.getpid() and self._is_ours(self.descriptor):
                return self.descriptor
            self.forget()
        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except PermissionError:  # made by another user; locking it takes no right to write
            with suppress(FileNotFoundError):
                self.descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            if self.descriptor is None:
                raise
        found = os.fstat(self.descriptor)
        self._file, self._process = (found.st_dev, found.st_ino), os.getpid()
        return self.descriptor

    def _is_ours(self, descriptor: int) -> bool:
        """Whether the descriptor is of the file it was opened for: others may have closed it, and used it."""
        try:
            found = os.fstat(descriptor)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            return False
        return (found.st_dev, found.st_ino) == self._file

    def release(self) -> None:
        """Give the lock up, in forked processes that inherited its descriptor as well."""
        if self.descriptor is None or sys.platform == "win32":
            return
        if self._process != os.getpid():  # the lock is that of the parent
            self.forget()
            return
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        except OSError:  # closing gives it up, too, where nobody inherited it
            self.forget()

    def close(self) -> None:
        """Give the lock up, and close its file."""
        self.release()
        self.forget()

    def forget(self) -> None:
        """Close the descriptor alone: in a forked process, the lock is that of its parent."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                if self._is_ours(descriptor):
                    os.close(descriptor)


class Hold:
    """The locks that SQLite believes it holds while a connection is open, to be taken again when lost.

    Closing it takes them from every connection of the process, so it is closed after the last of them.
    """

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def open(self, path: str, files: Files) -> bool:
        """Open the database, the index of its log and that, while a connection is; whether they are those."""
        if sys.platform != "win32":
            for one, expected in ((path, files.main), (path + "-shm", files.shm), (path + "-wal", files.log)):
                descriptor = os.open(one, os.O_RDONLY | os.O_CLOEXEC)
                self.descriptors.append(descriptor)
                found = os.fstat(descriptor)
                if (found.st_dev, found.st_ino) != expected:
                    return False
        return True

    def take(self, until: float) -> None:
        """Take the locks anew, which costs two system calls; BlockingIOError where others hold them."""
        if sys.platform == "win32" or len(self.descriptors) < 2:
            return
        while True:
            try:
                main, shm = self.descriptors[:2]
                fcntl.lockf(main, SHARED, SHARED_SIZE, SHARED_FIRST)
                fcntl.lockf(shm, SHARED, 1, SWITCH_LOCK)
                return
            except (BlockingIOError, PermissionError):  # either, says POSIX
                if time.monotonic() > until:
                    raise
            time.sleep(0.001)

    def holds_write_lock(self) -> bool:
        """Whether the lock that SQLite has just taken to write is on the very index that is open here.

        Else a connection of somebody else in this process made SQLite go on with an index that is no longer
        at the path.
        """
        if sys.platform == "win32" or not TELLS or len(self.descriptors) < 2:
            return True
        found = FLOCK.unpack(fcntl.fcntl(self.descriptors[1], fcntl.F_OFD_GETLK, WRITES))
        return bool(found[0] != fcntl.F_UNLCK and found[4] == os.getpid())

    def whole_log(self) -> bool:
        """Whether the log holds as much as its index says; asked within a transaction."""
        if len(self.descriptors) < 3:
            return True
        page, frames = FRAMES.unpack(os.pread(self.descriptors[1], FRAMES.size, INDEX_PAGE))
        size = 65536 if page == 1 else page
        return not frames or os.lseek(self.descriptors[2], 0, os.SEEK_END) >= 32 + frames * (size + 24)

    def names(self) -> int:
        """How many names (hard links) the database has."""
        return os.fstat(self.descriptors[0]).st_nlink if self.descriptors else 1

    def close(self) -> None:
        """Close the descriptors."""
        while self.descriptors:
            with suppress(OSError):
                os.close(self.descriptors.pop())
