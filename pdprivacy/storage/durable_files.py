"""Files that are written whole and durably, or not at all."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["sync", "write"]


def write(path: Path, data: bytes, beside: Path | None = None, rights: int = 0o666) -> None:
    """Write a file whole and durably, or leave it unchanged.

    ``beside``: the file that is written first, in the same folder; where several processes may write the same
    file at once, each needs one of its own. ``rights``: of a new file, before the umask.
    """
    new = path.with_name(f"{path.name}.new") if beside is None else beside
    try:
        with open(new, "wb", opener=lambda name, flags: os.open(name, flags, rights)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports that."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
