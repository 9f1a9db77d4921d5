"""The chain of a ledger: each record holds a hash of all before it, checked where the record is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from pdprivacy.errors import LedgerError, MissingLedgerError, TamperedLedgerError
from pdprivacy.ledger.store import AUDIT, NOTHING, RESTORE, SPAN, Reader, Row, Store, T, Writer

__all__ = ["Chain", "altered", "parse"]

_DECODER = json.JSONDecoder()


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


_seen: dict[str, dict[int, Row]] = {}
"""The last record of each ledger that this process has seen, by its number: it detects an older copy.

There is no lock, which a signal handler or a forked process would find held. While threads add records, a
ledger may have several records here: the last record counts, and no earlier record replaces it.
"""


class Chain:
    """The chain of a ledger: what is read and added, checked against what was seen before."""

    def __init__(self, store: Store, seen: Row | None = None) -> None:
        self.store = store
        self._see(seen)

    def __reduce__(self) -> Any:
        return Chain, (self.store, self.seen)  # what was seen goes along to another process

    @property
    def seen(self) -> Row | None:
        """The last record that this process has seen."""
        return max(list(_seen.get(self.store.address, {}).values()), default=None)

    def _see(self, head: Row | None) -> None:
        """Remember the record in the place of earlier ones."""
        if head is not None:
            heads = _seen.setdefault(self.store.address, {})
            heads.setdefault(head.number, head)
            for number in [number for number in list(heads) if number < max(list(heads))]:
                heads.pop(number, None)

    def read(self, work: Callable[[Reader], T]) -> T:
        """Return what ``work`` makes of the records and the head of one moment."""
        return self._run(work, writes=False)

    def write(self, work: Callable[[Writer], T]) -> T:
        """Run ``work``, which adds to the chain; what it added is durable, and remembered, on return."""
        return self._run(work, writes=True)

    def _run(self, work: Callable[[Any], T], *, writes: bool) -> T:
        def checked(reader: Reader) -> tuple[T, Row | None]:
            reader.head = reader.last()
            if reader.head != seen:
                reader.settle()
                _check_seen(reader, seen)
                if writes and reader.head is not None:
                    reader.checked(reader.head.number)
            return work(reader), reader.head

        seen = self.seen  # before the moment is fixed: others may add, and see, more meanwhile
        try:
            if writes:
                result, head = self.store.write(checked, create=seen is None)
            else:
                result, head = self.store.read(checked)
        except MissingLedgerError:
            if seen is None and not writes:
                raise
            raise LedgerError(
                f"The ledger {self.store.address!r} was here, and is gone. {NOTHING}",
                "restore it: a new one knows nothing of what was spent on the data.",
            ) from None
        self._see(head)
        return result

    def rows(self, until: Row | None) -> Iterator[Row]:
        """Yield all records up to ``until``, in short transactions, so that a long reading delays nobody."""
        for rows in self.spans(until, Reader.span):
            yield from rows

    def spans(self, until: Row | None, look: Callable[[Reader, int, int], T]) -> Iterator[T]:
        """Yield what ``look`` reads of the records above a number and up to another; each a transaction."""
        last = 0 if until is None else until.number
        for after in range(0, last, SPAN):
            span = after, min(after + SPAN, last)
            yield self.read(lambda reader, span=span: look(reader, *span))  # type: ignore[misc]

    def head(self) -> Row | None:
        """The last record."""
        return self.read(lambda reader: reader.head)


def _check_seen(reader: Reader, seen: Row | None) -> None:
    """Refuse a ledger without a record that this process has seen in it."""
    row = None if seen is None else reader.at(seen.number)
    if seen is not None and (row is None or row.hash != seen.hash):
        raise TamperedLedgerError(
            "The ledger does not hold what it held before: an older copy, or another ledger, was put in "
            "its place. It is not used.",
            RESTORE,
        )
