"""What keeps the charges of one budget: the protocol, and the book in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from pdprivacy.errors import AlreadyCharged, BudgetError, ParameterError
from pdprivacy.ledger.entry import Account, Entry, Terms
from pdprivacy.ledger.pages import Answers

__all__ = ["ALL", "Book", "MemoryBook", "no_such_charge", "noted", "refuse_again"]

ALL = slice(None)


class Book(Protocol):
    """The charges of one budget, in order. Each method is one transaction: whole or not at all."""

    @property
    def name(self) -> str:
        """Of the budget in a ledger; empty in memory."""

    def account(self) -> Account:
        """The terms and sums of this moment."""

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """Put the terms that ``change`` makes of the account in the place of the old ones.

        What ``change`` raises leaves the terms as they were.
        """

    def charge(self, make: Callable[[Account], Entry], release: str | None) -> Entry:
        """Enter the charge that ``make`` makes of the account; what it raises leaves the book as it was.

        Raises AlreadyCharged where ``release`` was charged before.
        """

    def answer(self, number: int, risk: float | None) -> None:
        """Note that charge ``number`` was answered, and the risk of what was released."""

    def entries(self) -> tuple[Account, list[Entry]]:
        """The account and all charges, of one moment."""

    def read(self, take: Callable[[Entry], object], pick: slice = ALL) -> tuple[Account, Answers]:
        """Hand the picked charges to ``take``, one at a time; return the account and the answers to them.

        ``pick``: positions in the list of all charges. Whether a charge was answered is in the answers, and
        not yet in the charge. All is of one moment.
        """


class MemoryBook:
    """Charges in a list, which ends with the process."""

    name = ""

    def __init__(self, terms: Terms) -> None:
        self._account = Account(terms)
        self._entries: list[Entry] = []
        self._releases: dict[str, int] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    def account(self) -> Account:
        """As `Book`."""
        with self._lock:
            return self._account

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """As `Book`."""
        with self._lock:
            self._account = replace(self._account, terms=change(self._account))

    def charge(self, make: Callable[[Account], Entry], release: str | None) -> Entry:
        """As `Book`."""
        if os.getpid() != self._process:
            raise BudgetError(
                "A budget in memory is of the process that made it, and this one is a copy made by a fork. "
                "Nothing was charged.",
                'processes share a budget in a ledger: budget=pdprivacy.Ledger("budget.db"), name="survey".',
            )
        with self._lock:
            if release is not None and release in self._releases:
                refuse_again(self._entries[self._releases[release] - 1])
            entry = make(self._account)
            self._entries.append(entry)
            self._account = entry.after
            if release is not None:
                self._releases[release] = entry.number
            return entry

    def answer(self, number: int, risk: float | None) -> None:
        """As `Book`."""
        with self._lock:
            if not 1 <= number <= len(self._entries):
                raise no_such_charge()
            self._entries[number - 1] = noted(self._entries[number - 1], risk)

    def entries(self) -> tuple[Account, list[Entry]]:
        """As `Book`."""
        with self._lock:
            return self._account, [*self._entries]

    def read(self, take: Callable[[Entry], object], pick: slice = ALL) -> tuple[Account, Answers]:
        """As `Book`."""
        account, entries = self.entries()
        answers = Answers(pick, account.charges)
        for entry in entries:
            if answers.charge():
                take(entry)
            if entry.answered:
                answers.answer(entry.number, entry.dr_ha)
        return account, answers


def noted(entry: Entry, risk: float | None) -> Entry:
    """The charge as answered; of several risks the largest stands."""
    known = [one for one in (entry.dr_ha, risk) if one is not None]
    return replace(entry, answered=True, dr_ha=max(known, default=None))


def no_such_charge() -> ParameterError:
    """For a number that no charge has."""
    return ParameterError("'number' must be that of a charge in this budget.")


def refuse_again(entry: Entry) -> None:
    """Refuse a release id that was charged before: its answer may be in somebody's hands."""
    answered = "was handed out" if entry.answered else "is not known to have been handed out"
    raise AlreadyCharged(
        f"The release {entry.release!r} is charge {entry.number} of this budget ({entry.label}, "
        f"{entry.time:%Y-%m-%d %H:%M} UTC), and its answer {answered}. Nothing was charged again.",
        "take the answer from where it was stored; for another answer, another release_id.",
    )
