"""Rollback journals of SQLite, as a process leaves them that is cut off within COMMIT."""

from __future__ import annotations

__all__ = ["hot_journal"]

MAGIC = bytes.fromhex("d9d505f920a163d7")
NONCE = 12345


def hot_journal(before: bytes, after: bytes) -> bytes:
    """Return the journal that changes a database back from ``after`` to ``before``.

    Source: sqlite.org/fileformat2.html, section 3.
    """
    size = int.from_bytes(before[16:18], "big")
    pages = [before[start : start + size] for start in range(0, len(before), size)]
    changed = [index for index, page in enumerate(pages) if after[index * size :][:size] != page]
    numbers = (len(changed), NONCE, len(pages), 512, size)
    header = MAGIC + b"".join(number.to_bytes(4, "big") for number in numbers)
    records = (
        (index + 1).to_bytes(4, "big")
        + pages[index]
        + ((NONCE + sum(pages[index][size - 200 : 0 : -200])) % 2**32).to_bytes(4, "big")
        for index in changed
    )
    return header.ljust(512, b"\0") + b"".join(records)
