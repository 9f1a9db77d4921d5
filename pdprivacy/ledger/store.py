"""The interface of a store: an append-only chain of records for all budgets of a ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

__all__ = ["NOTHING", "SPAN", "UNKNOWN", "Head", "Reader", "Row", "Store", "Writer", "are_rows"]

T = TypeVar("T")

NOTHING = "Nothing was entered."
UNKNOWN = "Whether it was entered is not known: look at ledger.entries."

SPAN = 1000
"""Records that one transaction reads at most, so that no reader keeps a charge waiting."""


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


TYPES = {(int, str, str, release, str, bytes) for release in (str, type(None))}


def are_rows(found: Collection[Sequence[Any]]) -> bool:
    """Return whether these values, as a database returns them, have the types of records."""
    return {tuple(map(type, row)) for row in found} <= TYPES and all(len(row[-1]) == 32 for row in found)


class Head(NamedTuple):
    """The number and the hash of a record, usually the last one."""

    number: int
    hash: bytes


class Reader(Protocol):
    """The records within one transaction."""

    def last(self) -> Row | None:
        """Return the last record of the table."""

    def at(self, number: int) -> Row | None:
        """Return the record of this number."""

    def span(self, after: int, until: int) -> list[Row]:
        """Return the records of the table above ``after`` and up to ``until``, in order."""

    def latest(self, budget: str, kind: str) -> Row | None:
        """Return the last record of a kind of a budget, found by an index."""

    def last_charge(self, budget: str, after: int) -> int:
        """Return the number of the last charge of a budget above ``after``, by the table alone; else 0."""

    def released(self, budget: str, release: str) -> Row | None:
        """Return the charge for a release id."""

    def budgets(self) -> list[str]:
        """Return the names of all budgets, in the order they were opened."""

    def stored(self, digest: str) -> bytes | None:
        """Return the stored answer with this digest."""

    def damage(self, until: int) -> list[str]:
        """Describe damage to what guards and finds the records, as far as one short transaction can tell.

        ``until``: the number of records.
        """

    def unindexed(self, after: int, until: int) -> int:
        """Count the records above ``after`` and up to ``until`` that an index does not find."""


class Writer(Reader, Protocol):
    """The records within the only writing transaction."""

    def append(self, row: Row) -> None:
        """Add a record."""

    def store(self, digest: str, answer: bytes) -> None:
        """Keep an answer, durable no later than the records of this transaction."""


class Store(Protocol):
    """A place for records. Each error that it raises is a LedgerError."""

    @property
    def address(self) -> str:
        """The absolute path, or the URL without its password."""

    def read(self, work: Callable[[Reader], T]) -> T:
        """Return what ``work`` makes of the records of one moment.

        Raises MissingLedgerError where there is no ledger yet. No other transaction of the same thread may
        begin within ``work``.
        """

    def write(self, work: Callable[[Writer], T], *, create: bool = True) -> T:
        """Run ``work`` as the only writer over all processes and machines, and commit.

        All that ``work`` appends is durable on return. An error of ``work`` leaves the ledger as it was and
        passes through unchanged. ``create``: make a ledger where there is none; else that raises
        MissingLedgerError.
        """

    def close(self) -> None:
        """Release connections; a later use opens them again."""
