"""Files on a disk: made whole or not at all, made durable, and locked."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from pdprivacy.errors import ParameterError

if sys.platform == "win32":
    import msvcrt

    HELD: type[OSError] = PermissionError
else:
    import fcntl

    HELD = BlockingIOError


OUTSIDE = 2**30
"""A byte beyond the content of a lock file: Windows keeps others from reading a locked byte."""


def lock(file: io.FileIO) -> bool:
    """Lock an open file; return False where another process or thread holds the lock."""
    try:
        if sys.platform == "win32":
            file.seek(OUTSIDE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except HELD:
        return False
    return True


def unlock(file: io.FileIO) -> None:
    """Release the lock of an open file, also in processes that have inherited the file."""
    if sys.platform != "win32" and not file.closed:
        fcntl.flock(file, fcntl.LOCK_UN)  # on Windows, closing the file releases it


def sync(path: str | os.PathLike[str]) -> None:
    """Make a file durable, or the names in a folder where the system supports that."""
    if not os.path.isdir(path):
        with io.FileIO(path, "r+") as file:  # closed by whatever drops it, after an interrupt too
            os.fsync(file.fileno())
    elif sys.platform != "win32":
        opened: list[int] = []
        try:
            # no interrupt comes within a call of C code
            opened.extend(map(os.open, [path], [os.O_RDONLY]))
            os.fsync(opened[0])
        finally:
            if opened:
                os.close(opened[0])


def _link(name: str, path: str) -> None:
    """Move a file to a path; raise FileExistsError where something is there already."""
    try:
        os.link(name, path)  # refuses what is there, where renaming would replace it
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "exists", path) from None
        os.rename(name, path)


@contextmanager
def draft(path: str, put: Callable[[str, str], None] = _link, name: str | None = None) -> Iterator[str]:
    """Yield the name of a file to make; at the end of the block, make it durable and ``put`` it at its path.

    By default, FileExistsError is raised where something is at the path; `os.replace` replaces it. The names
    in the folder are not made durable. ``name``: of the file while it is made, by default a unique one.
    """
    name = name or f"{path}-new-{os.getpid()}-{uuid.uuid4().hex}"  # as `sweep` finds it
    try:
        yield name
        sync(name)
        put(name, path)
    finally:
        with suppress(OSError):
            os.unlink(name)


@contextmanager
def new_file(path: str | None, done: str, encoding: str = "ascii") -> Iterator[TextIO]:
    """A new file, on disk when the block is left and gone when it fails; without a path, the output.

    ``done``: what happens to the content, as in "Nothing was exported."

    Raises ParameterError where the file exists already or cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    try:
        file = open(path, "x", encoding=encoding, newline="\n")  # noqa: SIM115
    except FileExistsError:
        raise ParameterError(f"{path!r} exists already. Nothing was {done}.", "give a new name") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise ParameterError(f"{path!r} cannot be written: {reason}. Nothing was {done}.") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def sweep(path: str) -> None:
    """Remove unfinished drafts of a path that a crash left; the caller sees to it that nobody makes one."""
    folder, name = os.path.split(path)
    pattern = re.compile(re.escape(name) + r"-new-[0-9]+-[0-9a-f]{32}")
    for draft_name in filter(pattern.fullmatch, os.listdir(folder)):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, draft_name))


def stat_or_none(path: str, look: Callable[[str], os.stat_result] = os.stat) -> os.stat_result | None:
    """Return the status of a file, by `os.stat` or `os.lstat`; None where it is missing."""
    try:
        return look(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def same_file(first: os.stat_result | None, second: os.stat_result | None) -> bool:
    """Return whether two statuses are of the same file, or both of a missing file, which is None."""
    return first is second if first is None or second is None else os.path.samestat(first, second)
