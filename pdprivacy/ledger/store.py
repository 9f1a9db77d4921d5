"""The chain of records of a ledger, and the interface of a store, which keeps it for all budgets.

Each record holds a hash of all before it, which is checked where the record is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeVar

from pdprivacy.errors import LedgerError, MissingLedgerError, ParameterError, TamperedLedgerError

T = TypeVar("T")

NOTHING = "Nothing was entered."
UNKNOWN = "Whether it was entered is not known: look at ledger.entries."
AUDIT = "restore the ledger from a copy; ledger.audit() says what else was altered."
RESTORE = "restore the latest copy of the ledger; ledger.audit() says what is missing."

ROOT = bytes(32)
"""The hash before the first record."""

SPAN = 500
"""Records that one transaction reads at most, so that no reader keeps a charge waiting."""

_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


class Row(NamedTuple):
    """One record.

    ``number``: 1, 2, 3, ... over the whole ledger. ``budget``: the name of the budget, empty for a record
    of the ledger itself. ``kind``: "ledger", "open", "redeclare", "charge" or "answer". ``release``: the
    id of the release that a charge pays for, where it has one; once per budget. ``body``: canonical JSON that
    holds these three again. ``hash``: of the hash before, the number and the body.
    """

    number: int
    budget: str
    kind: str
    release: str | None
    body: str
    hash: bytes

    @property
    def label(self) -> str:
        """The number and the hash: all records up to this one, in a line."""
        return f"{self.number}:{self.hash.hex()}"


TYPES: tuple[set[type], ...] = ({int}, {str}, {str}, {str, type(None)}, {str}, {bytes})


def are_rows(rows: Collection[Sequence[Any]]) -> bool:
    """Return whether rows, as a database returns them, have the types of records."""
    columns = list(zip(*rows, strict=True))
    typed = all(types.issuperset(map(type, column)) for column, types in zip(columns, TYPES, strict=False))
    return typed and (not rows or set(map(len, columns[-1])) == {32})


def canonical(body: Mapping[str, Any] | list[Any] | str) -> str:
    """Return the only text of a JSON value: sorted keys, no spaces, ASCII, finite floats."""
    return _ENCODER.encode(body)


def decoded(text: str) -> Any:
    """Return a JSON value from its only text; None for any other text."""
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if _ENCODER.encode(value) == text else None


def digest(before: bytes, number: int, body: str) -> bytes:
    """Return the hash of a record: 32 bytes of BLAKE2b over the hash before, the number and the text."""
    return blake2b(before + number.to_bytes(8, "big") + body.encode(), digest_size=32).digest()


def link(before: Row | None, budget: str, kind: str, release: str | None, body: Mapping[str, Any]) -> Row:
    """Return the record that follows ``before``; ``body`` lacks budget, kind and release."""
    number, hashed = (1, ROOT) if before is None else (before.number + 1, before.hash)
    text = canonical({**body, "budget": budget, "kind": kind, "release": release})
    return Row(number, budget, kind, release, text, digest(hashed, number, text))


def check(row: Row, before: Row | None) -> None:
    """Refuse a record that does not follow from the one before it, by its number and its hash."""
    number, hashed = (1, ROOT) if before is None else (before.number + 1, before.hash)
    if (row.number, row.hash) != (number, digest(hashed, number, row.body)):
        raise TamperedLedgerError(
            f"Record {row.number} of the ledger does not follow from the one before it.", AUDIT
        )


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


def hidden(budget: str) -> TamperedLedgerError:
    """Return the error for a charge that the table of records holds and its index does not find."""
    return TamperedLedgerError(
        f"The table of records and its index disagree on the last charge of {budget!r}.", AUDIT
    )


class Reader(Protocol):
    """The records within one transaction.

    ``head``: the last record, which `Chain` sets.
    """

    head: Row | None

    def rows(self, condition: str, *values: object) -> list[Row]:
        """Return the records of the table that meet a condition of SQL, with a ``?`` for each value."""

    def last_row(self, condition: str, *values: object) -> Row | None:
        """Return the last record of the table that meets a condition."""
        rows = self.rows(f"{condition} ORDER BY number DESC LIMIT 1", *values)
        return rows[0] if rows else None

    def last(self) -> Row | None:
        """Return the last record of the table."""
        return self.last_row("true")

    def at(self, number: int) -> Row | None:
        """Return the record of this number."""
        return self.last_row("number = ?", number) if 0 < number < 2**63 else None

    def span(self, after: int, until: int) -> list[Row]:
        """Return the records of the table above ``after`` and up to ``until``, in order."""
        return self.rows("number > ? AND number <= ? ORDER BY number", after, until)

    def last_charge(self, budget: str, after: int) -> Row | None:
        """Return the last charge of a budget above the number ``after``, by the table alone."""
        return self.last_row("number > ? AND budget = ? AND kind = 'charge'", after, budget)

    def find(self, budget: str, kind: str, release: str | None = None) -> Row | None:
        """Return the last record of a kind of a budget, or that of a release, which an index finds.

        Refuses a record of other columns, and as `checked`.
        """
        if release is None:
            number = self.indexed("records_by_kind", "budget = ? AND kind = ?", budget, kind)
        else:
            number = self.indexed("records_by_release", 'budget = ? AND "release" = ?', budget, release)
        row = None if number is None else self.checked(number)
        if row is not None and row[1:4] != (budget, kind, row.release if release is None else release):
            raise altered(row)
        return row

    def indexed(self, index: str, condition: str, *values: object) -> int | None:  # noqa: ARG002
        """Return the number of the last record that an index finds; a server chooses the index itself."""
        row = self.last_row(condition, *values)
        return None if row is None else row.number

    def checked(self, number: int) -> Row:
        """Return the record of this number.

        Refuses one that is missing, does not follow from the record before it, or is contradicted by the
        record after it.
        """
        rows = {row.number: row for row in self.span(number - 2, number + 1)}
        for position in (number - 1, number):
            if position not in rows and position != 0:
                raise TamperedLedgerError(f"Record {position} of the ledger is missing.", RESTORE)
        check(rows[number], rows.get(number - 1))
        if number + 1 in rows:
            check(rows[number + 1], rows[number])
        return rows[number]

    def last_charges(self) -> dict[str, int]:
        """Return the number of the last charge of each budget, 0 without one, by the table alone.

        The budgets are in the order they were opened.
        """
        names = [row.budget for row in self.rows("kind = 'open' ORDER BY number")]
        charges = {name: self.last_charge(name, 0) for name in names}
        return {name: 0 if row is None else row.number for name, row in charges.items()}

    def stored(self, digest: str) -> bytes | None:
        """Return the stored answer with this digest."""

    def make_durable(self) -> None:
        """Make the records durable, which another process may have been killed before it could do."""

    def damage(self, until: int) -> list[str]:
        """Describe damage to triggers and indexes that one short transaction can find.

        ``until``: the number of records.
        """

    def unindexed(self, after: int, until: int) -> list[str]:  # noqa: ARG002
        """Describe the records above ``after`` and up to ``until`` that an index does not find."""
        return []


class Writer(Reader, Protocol):
    """The records within the only writing transaction."""

    head: Row | None

    def add(self, budget: str, kind: str, release: str | None, body: Mapping[str, Any]) -> Row:
        """Add the next record of the chain, and return it; its ``body`` as `link` takes it."""
        row = link(self.head, budget, kind, release, body)
        self.append(row)
        self.head = row
        return row

    def append(self, row: Row) -> None:
        """Append a record."""

    def store(self, digest: str, answer: bytes) -> None:
        """Keep an answer, durable no later than the records of this transaction."""


class Store(Protocol):
    """A place for records. Each error that it raises is a LedgerError.

    ``address``: the absolute path, or the URL without its password.
    """

    address: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    def read(self, work: Callable[[Reader], T]) -> T:
        """Return what ``work`` makes of the records of one moment.

        Raises MissingLedgerError where there is no ledger yet. No other transaction of the same thread may
        begin within ``work``.
        """
        return self._run(work, writes=False, create=False)

    def write(self, work: Callable[[Writer], T], *, create: bool = True) -> T:
        """Run ``work`` as the only writer over all processes and machines, and commit.

        All that ``work`` appends is durable on return. An error of ``work`` leaves the ledger as it was and
        passes through unchanged. ``create``: make a ledger where there is none; else that raises
        MissingLedgerError.
        """
        return self._run(work, writes=True, create=create)

    def _run(self, work: Callable[[Any], T], *, writes: bool, create: bool) -> T:
        """Run ``work`` within a transaction."""

    def backup(self, path: str | os.PathLike[str], rows: Iterable[Row]) -> None:  # noqa: ARG002
        """Make a ledger of these records at a path where nothing is, durably.

        Raises LedgerError where something is at the path already, ParameterError for a server.
        """
        raise ParameterError("A ledger on a server is copied by the server's own tools.")

    def close(self) -> None:
        """Release connections; a later use opens them again."""


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
        return Chain, (self.store, self.seen)  # another process keeps the last seen record

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
            if reader.head != seen_head:
                reader.make_durable()
                row = None if seen_head is None else reader.at(seen_head.number)
                if seen_head is not None and (row is None or row.hash != seen_head.hash):
                    raise TamperedLedgerError(
                        "The ledger does not hold what it held before: an older copy, or another ledger, was "
                        "put in its place. It is not used.",
                        RESTORE,
                    )
                if writes and reader.head is not None:
                    reader.checked(reader.head.number)
            return work(reader), reader.head

        seen_head = self.seen  # before the moment is fixed: others may add, and see, more meanwhile
        try:
            if writes:
                result, head = self.store.write(checked, create=seen_head is None)
            else:
                result, head = self.store.read(checked)
        except MissingLedgerError:
            if seen_head is None and not writes:
                raise
            raise LedgerError(
                f"The ledger {self.store.address!r} was here, and is gone.",
                "restore it: a new one knows nothing of what was spent on the data.",
                NOTHING,
            ) from None
        self._see(head)
        return result

    def rows(self, until: Row | None) -> Iterator[Row]:
        """Yield all records up to ``until``, in short transactions, so that a long reading delays nobody."""
        for rows in self.spans(until, Reader.span):
            yield from rows

    def checked_rows(self, until: Row | None) -> Iterator[Row]:
        """Yield all records up to ``until``; refuse one that does not follow from the one before it."""
        before = None
        for row in self.rows(until):
            check(row, before)
            yield row
            before = row

    def spans(self, until: Row | None, look: Callable[[Reader, int, int], T]) -> Iterator[T]:
        """Yield what ``look`` reads of the records above a number and up to another; each a transaction."""
        last = 0 if until is None else until.number
        for after in range(0, last, SPAN):
            span = after, min(after + SPAN, last)
            yield self.read(lambda reader, span=span: look(reader, *span))  # type: ignore[misc]

    def head(self) -> Row | None:
        """The last record."""
        return self.read(lambda reader: reader.head)
