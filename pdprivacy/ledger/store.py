"""What keeps the records of a ledger: one append-only chain for all its budgets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

__all__ = ["NOTHING", "UNKNOWN", "Head", "Reader", "Row", "Store", "Writer"]

NOTHING = "Nothing was entered."
UNKNOWN = "Whether it was entered is not known: look at ledger.entries."


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


class Head(NamedTuple):
    """The number and the hash of a record, the last one that was seen."""

    number: int
    hash: bytes


class Reader(Protocol):
    """The records of one moment."""

    def head(self) -> Head | None:
        """The number and the hash of the last record of the ledger."""

    def last(self) -> Row | None:
        """The last record of the ledger."""

    def at(self, number: int) -> Row | None:
        """The record of this number."""

    def latest(self, budget: str, kind: str) -> Row | None:
        """The last record of a kind of a budget; its cost does not grow with the ledger."""

    def released(self, budget: str, release: str) -> Row | None:
        """The charge for a release id."""

    def rows(self, budget: str | None = None, after: int = 0) -> Iterator[Row]:
        """Records above ``after``, of one budget or of all, in order and one at a time."""

    def backwards(self, number: int) -> Iterator[Row]:
        """Records from ``number`` down to the first, one at a time, by no index of budgets."""

    def budgets(self) -> list[str]:
        """The names of all budgets, in the order they were opened."""

    def damage(self) -> list[str]:
        """What is wrong with whatever guards and finds the records: tables, indexes, triggers, pages."""


class Writer(Reader, Protocol):
    """The records of the moment, which nobody else adds to."""

    def append(self, row: Row) -> None:
        """Add a record; it stays only if the block ends without an error."""


class Store(Protocol):
    """Where records are kept. Every error of its own is a LedgerError."""

    @property
    def address(self) -> str:
        """The absolute path, or the URL without its password."""

    def reading(self) -> AbstractContextManager[Reader]:
        """The records of one moment; waits for no writer."""

    def writing(self) -> AbstractContextManager[Writer]:
        """One writer at a time, over all processes and machines.

        What was appended is durable once the block has been left. An exception inside leaves the ledger as
        it was, and goes through unchanged.
        """

    def close(self) -> None:
        """Let go of files and connections; a later use opens them anew."""
