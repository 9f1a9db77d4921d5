"""Files that are written whole and durably, or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pdprivacy import disk

__all__ = ["sync", "write"]


def write(files: Mapping[Path, bytes], mark: str = "new", rights: int = 0o666) -> None:
    """Write files of one folder whole and durably, or leave all of them unchanged.

    Each is written beside its place first, and moved when all are on the disk. ``mark``: the end of the names
    there; where several processes may write the same file at once, each needs one of its own. ``rights``: of
    new files, before the umask.
    """
    drafts = {path: path.with_name(f".{path.name[:40]}{place}.{mark}") for place, path in enumerate(files)}
    try:
        for path, draft in drafts.items():
            with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, rights)) as file:
                file.write(files[path])
                file.flush()
                os.fsync(file.fileno())
        for path, draft in drafts.items():
            os.replace(draft, path)
    except BaseException:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports that."""
    with suppress(OSError):
        disk.sync(folder)
