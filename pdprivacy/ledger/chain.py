"""The chain of records: each one holds a hash of all before it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from pdprivacy.errors import LedgerError, MissingLedgerError, TamperedLedgerError
from pdprivacy.ledger.store import NOTHING, SPAN, Head, Reader, Row, Store, Writer

__all__ = [
    "ROOT",
    "Chain",
    "Link",
    "altered",
    "canonical",
    "check",
    "check_place",
    "digest",
    "link",
    "parse",
    "spans",
]

T = TypeVar("T")

ROOT = bytes(32)
"""The hash before the first record."""

AUDIT = "restore the ledger from a copy; ledger.audit() says what else was altered."
_RESTORE = "restore the latest copy of the ledger; ledger.audit() says what is missing."

_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(body: Mapping[str, Any] | list[Any]) -> str:
    """Return the only text of a JSON object or list: sorted keys, no spaces, ASCII, finite floats."""
    return _ENCODER.encode(body)


def digest(before: bytes, number: int, body: str) -> bytes:
    """Return the hash of a record: 32 bytes of BLAKE2b over the hash before, the number and the text."""
    return blake2b(before + number.to_bytes(8, "big") + body.encode(), digest_size=32).digest()


def link(
    before: Head | Row | None, budget: str, kind: str, release: str | None, body: Mapping[str, Any]
) -> Row:
    """Return the record that follows ``before``; ``body`` lacks budget, kind and release."""
    number, hashed = (1, ROOT) if before is None else (before.number + 1, before.hash)
    text = canonical({**body, "budget": budget, "kind": kind, "release": release})
    return Row(number, budget, kind, release, text, digest(hashed, number, text))


def parse(row: Row) -> dict[str, Any]:
    """Return the body of a record.

    Raises TamperedLedgerError where it is not a JSON object, or contradicts the columns beside it.
    """
    try:
        body, end = _DECODER.raw_decode(row.body)
    except (ValueError, RecursionError):
        raise altered(row) from None
    if not isinstance(body, dict) or end != len(row.body):
        raise altered(row)
    if (body.get("budget", ""), body.get("kind", ""), body.get("release", "")) != row[1:4]:
        raise altered(row)
    return body


def altered(row: Row) -> TamperedLedgerError:
    """Return the error for a record that is not what was entered."""
    return TamperedLedgerError(f"Record {row.number} of the ledger is not what was entered.", AUDIT)


def check(row: Row, before: bytes) -> None:
    """Refuse a record whose hash does not match its content and the hash ``before``."""
    if digest(before, row.number, row.body) != row.hash:
        raise TamperedLedgerError(
            f"Record {row.number} of the ledger does not follow from the one before it.", AUDIT
        )


def check_place(reader: Reader, row: Row) -> None:
    """Refuse a record that does not follow from the one before it, or that the one after it contradicts."""
    near = {one.number: one for one in reader.span(row.number - 2, row.number + 1)}
    if row.number > 1 and row.number - 1 not in near:
        raise TamperedLedgerError(f"Record {row.number - 1} of the ledger is missing.", _RESTORE)
    check(row, near[row.number - 1].hash if row.number > 1 else ROOT)
    if row.number + 1 in near:
        check(near[row.number + 1], row.hash)


_seen: dict[str, Head] = {}
"""The last record of each ledger that this process has seen, by which it detects an older copy."""

_seeing = threading.RLock()  # a handler of a signal may look while this thread does


def _unlock() -> None:
    """Replace the lock in a forked process, in which no thread holds it."""
    global _seeing
    _seeing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


class Chain:
    """The chain of a ledger: what is read and added, checked against what was seen before."""

    def __init__(self, store: Store, seen: Head | None = None) -> None:
        self.store = store
        if seen is not None:
            self._see(seen)

    def __reduce__(self) -> Any:
        return Chain, (self.store, self.seen)  # what was seen goes along to another process

    @property
    def seen(self) -> Head | None:
        """The last record that this process has seen."""
        return _seen.get(self.store.address)

    def _see(self, head: Head | None) -> None:
        """Remember the record, if it is later than the one remembered."""
        with _seeing:
            seen = _seen.get(self.store.address)
            if head is not None and (seen is None or head.number > seen.number):
                _seen[self.store.address] = head

    def read(self, work: Callable[[Reader, Head | None], T]) -> T:
        """Return what ``work`` makes of the records and the head of one moment."""

        def checked(reader: Reader) -> tuple[Head | None, T]:
            head = _head(reader)
            _check_seen(reader, head, seen)
            return head, work(reader, head)

        seen = self.seen  # before the moment is fixed: others may add, and see, more meanwhile
        try:
            head, result = self.store.read(checked)
        except MissingLedgerError:
            if seen is not None:
                raise self._gone() from None
            raise
        self._see(head)
        return result

    def write(self, work: Callable[[Link], T]) -> T:
        """Run ``work``, which adds to the chain; what it added is durable, and remembered, on return."""

        def checked(writer: Writer) -> tuple[Head | None, T]:
            head = _head(writer)
            if head != seen:
                _check_seen(writer, head, seen)
                last = writer.last()
                if last is not None:
                    check_place(writer, last)
            links = Link(writer, head)
            result = work(links)
            return links.head, result

        seen = self.seen
        try:
            head, result = self.store.write(checked, create=seen is None)
        except MissingLedgerError:
            raise self._gone() from None
        self._see(head)
        return result

    def rows(self, until: Head | None) -> Iterator[Row]:
        """Yield all records up to ``until``, in short transactions, so that a long reading delays nobody."""
        for after, last in spans(until):
            yield from self.read(lambda reader, _, span=(after, last): reader.span(*span))  # type: ignore[misc]

    def head(self) -> Head | None:
        """The last record."""
        return self.read(lambda _, head: head)

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.store.address!r} was here, and is gone. {NOTHING}",
            "restore it: a new one knows nothing of what was spent on the data.",
        )


class Link:
    """The open end of the chain, within a transaction."""

    def __init__(self, writer: Writer, head: Head | None) -> None:
        self.writer = writer
        self.head = head
        """The last record."""

    def add(self, budget: str, kind: str, release: str | None, body: Mapping[str, Any]) -> None:
        """Add a record; its ``body`` as `link` takes it."""
        row = link(self.head, budget, kind, release, body)
        self.writer.append(row)
        self.head = Head(row.number, row.hash)


def spans(until: Head | None) -> Iterator[tuple[int, int]]:
    """Yield ranges of numbers, above the first and up to the second, for one transaction each."""
    last = 0 if until is None else until.number
    for after in range(0, last, SPAN):
        yield after, min(after + SPAN, last)


def _head(reader: Reader) -> Head | None:
    last = reader.last()
    return None if last is None else Head(last.number, last.hash)


def _check_seen(reader: Reader, head: Head | None, seen: Head | None) -> None:
    """Refuse a ledger without a record that this process has seen in it."""
    if seen is None or head == seen:
        return
    row = reader.at(seen.number)
    if row is None or row.hash != seen.hash:
        raise TamperedLedgerError(
            "The ledger does not hold what it held before: an older copy, or another ledger, was put in "
            "its place. It is not used.",
            _RESTORE,
        )
