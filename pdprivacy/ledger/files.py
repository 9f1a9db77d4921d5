"""Files of a ledger on disk: which they are, who may write them, and how a new one is put in place.

SQLite guards a database with POSIX locks, which a process loses as soon as it closes any descriptor of the
file (``shutil.copy`` does). Another process may then take itself for the last one, and unlink a log that is
still written to. So nothing here opens the database to look at it, and each transaction starts and ends with
a look at the files that lie at the path. The locks themselves are in `pdprivacy.ledger.locks`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import struct
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from pdprivacy.errors import LedgerError
from pdprivacy.ledger.store import NOTHING

__all__ = [
    "Files",
    "Folder",
    "Mark",
    "clash",
    "draft",
    "has_log",
    "keep_for_ever",
    "look",
    "mark",
    "place",
    "print_of",
    "refuse_mount",
    "refuse_odd_file",
    "refuse_odd_place",
    "sweep",
]

TICK = 3 * 10**9  # nanoseconds; the clock of no file system ticks more slowly than every two seconds
SMALLEST = 512  # bytes of a database page, at least
NO_LINKS = {  # what file systems without hard links answer; not every system knows every name
    getattr(errno, name, None) for name in ("EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK")
}
STATX = getattr(ctypes.CDLL(None), "statx", None) if sys.platform.startswith("linux") else None
AT_FDCWD, STATX_INO = -100, 0x100
TOLD = ctypes.c_char * 256  # struct statx
INODE = struct.Struct("=I28xQ96xII")  # of it: what is told, the inode, its device

Mark = tuple[int, int]


class Files(NamedTuple):
    """The device and inode of the database, its log and the index of its log; None for what is not there."""

    main: Mark | None
    log: Mark | None
    shm: Mark | None


def mark(path: str) -> Mark | None:
    """The device and inode at a path; opens nothing."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _mark_of_log(path: str) -> Mark | None:
    """The same, without asking for times.

    Who asks for them makes Linux (6.13 and later) note a finer one at the next write, which costs the next
    sync a third more time.
    """
    if STATX is not None:
        found = TOLD()
        if STATX(AT_FDCWD, os.fsencode(path), 0, STATX_INO, found) == 0:
            told, inode, major, minor = INODE.unpack_from(found)
            if told & STATX_INO:
                return os.makedev(major, minor), inode
    return mark(path)


def look(path: str) -> Files:
    """The files that lie at the path of a ledger now."""
    return Files(mark(path), _mark_of_log(path + "-wal"), mark(path + "-shm"))


class Folder:
    """Whether any name in the folder of a path may lead to another file than it did; asked in a turn.

    A file that is put in the place of another, made or removed changes the folder's time of change, which
    nobody can set back. Two changes within one tick of the clock of a file system leave the same time, so
    a folder is believed to be as it was only where the files were looked at well after its last change.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.dirname(path)
        self._known: tuple[int, ...] | None = None
        self._now: tuple[int, ...] | None = None
        self.steady = False
        """Whether it was as before when it was last asked for."""

    def ask(self) -> bool:
        """Whether it is as it was when all files in it were looked at."""
        self.steady = False
        try:
            found = os.stat(self._path)
        except OSError:  # who looks at the files says what is wrong
            self._now = None
        else:
            self._now = found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
            self.steady = self._now == self._known
        return self.steady

    def trust(self) -> None:
        """After a look at all files, which found them to be right, since it was asked for."""
        if sys.platform.startswith("linux") and self._now is not None:
            quiet = time.time_ns() - max(self._now[2:]) > TICK
            self._known = self._now if quiet else None

    def forget(self) -> None:
        """Other files will be right from now on."""
        self._known, self.steady = None, False


def print_of(path: str) -> tuple[int, ...]:
    """What changes whenever the database is written to."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def clash(now: Files, known: Iterable[Files]) -> bool:
    """Whether connections that know other files keep this process from opening those at the path.

    SQLite keeps one state per inode of the database in a process: with it, the log and its index have to be
    those that are known. Another database must not be given a log or an index that belongs to a known one.
    """
    for files in known:
        if files.main == now.main:
            if files != now:
                return True
        elif {files.log, files.shm} & {now.log, now.shm} - {None}:
            return True
    return False


def refuse_odd_place(path: str, fate: str = NOTHING) -> None:
    """Refuse a path that no ledger can have, with a LedgerError."""
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(f"The directory of the ledger {path!r} does not exist. {fate}", "make it first.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise LedgerError(f"{path!r} is no ledger: it is not a plain file. {fate}")


def refuse_odd_file(path: str, fate: str = NOTHING) -> bool:
    """Whether a file that can be a ledger is there; raises LedgerError for what can never be one."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        refuse_odd_place(path, fate)
        left = [path + end for end in ("-wal", "-journal") if _size(path + end)]
        if left:
            raise LedgerError(
                f"The ledger {path!r} is missing, but {left[0]!r}, a part of it, is there. {fate}",
                "restore the ledger, or move what is left of it away to start a new one.",
            ) from None
        return False
    if not stat.S_ISREG(found.st_mode):
        refuse_odd_place(path, fate)
    if found.st_size < SMALLEST:
        raise LedgerError(
            f"{path!r} is no ledger: it holds {found.st_size} bytes. {fate}",
            "restore it from a copy, or name a file that does not exist to start a new ledger.",
        )
    if found.st_nlink > 1:
        _refuse_names(path, fate)
    return True


def _refuse_names(path: str, fate: str) -> None:
    for _ in range(3):  # a new ledger has two names for a moment: the second look finds one
        twins = [one for one in drafts(path) if mark(one) == mark(path)]
        names = os.stat(path).st_nlink
        if names <= 1 + len(twins):
            return
        time.sleep(0.001)
    raise LedgerError(
        f"The ledger {path!r} has {names} names (hard links), each with a log of its own. {fate}",
        "keep one of the names; use a symbolic link for another.",
    )


def refuse_mount(path: str) -> None:
    """Refuse a file that is mounted by itself, which has a log on each side of the mount."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            points = {line.split(" ")[4] for line in mounts}
    except (OSError, IndexError):  # no Linux, or no /proc
        return
    if re.sub(r"[ \t\n\\]", lambda odd: f"\\{ord(odd[0]):03o}", path) in points:
        raise LedgerError(
            f"The ledger {path!r} is mounted as a single file, so its log is another one here. {NOTHING}",
            "mount the folder that it is in.",
        )


def has_log(path: str) -> bool:
    """Whether records may lie beside the database, in a log that is not in it yet."""
    return bool(_size(path + "-wal") or _size(path + "-journal"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def keep_for_ever(thing: Any) -> None:
    """See to it that an object is never finalised, not even at the end of the interpreter.

    A connection whose files were taken away from it may neither be used nor closed: closing writes old pages
    into the database, and unlinks whatever log lies at the path.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


DRAFT = re.compile(r"-new-[0-9]+-[0-9a-f]{32}(-wal|-shm|-journal)?")


def drafts(path: str) -> list[str]:
    """Unfinished ledgers that were meant for a path."""
    folder, name = os.path.split(path)
    with os.scandir(folder) as found:
        names = [one.name for one in found if one.name.startswith(name)]
    return [os.path.join(folder, one) for one in names if DRAFT.fullmatch(one.removeprefix(name))]


def sweep(path: str) -> None:
    """Remove what a crash left of unfinished ledgers; under the lock, as nobody makes one then."""
    for one in drafts(path):
        with suppress(FileNotFoundError):
            os.unlink(one)


@contextmanager
def draft(path: str) -> Iterator[str]:
    """The name of a file to make beside a path; what is left of it is removed in the end."""
    name = f"{path}-new-{os.getpid()}-{uuid.uuid4().hex}"
    try:
        yield name
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(name + end)


def place(name: str, path: str) -> None:
    """Give a finished file its path, durably; FileExistsError where something is there already."""
    _sync(name, os.O_RDWR)
    try:
        os.link(name, path)  # refuses what is there, where renaming would replace it
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "exists", path) from None
        os.rename(name, path)
    else:
        os.unlink(name)
    if sys.platform != "win32":
        _sync(os.path.dirname(path), os.O_RDONLY)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
