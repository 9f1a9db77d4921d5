"""The charges of one budget, in memory or in a ledger."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdprivacy.errors import (
    AlreadyCharged,
    BudgetError,
    ChangedStepError,
    LedgerError,
    ParameterError,
    TamperedLedgerError,
)
from pdprivacy.ledger.account import (
    Account,
    Entry,
    Terms,
    account_of,
    answer_body,
    answer_of,
    charge_body,
    entry_of,
    terms_body,
    terms_of,
)
from pdprivacy.ledger.chain import AUDIT, Chain, Link, altered, canonical, check_place, parse
from pdprivacy.ledger.charges import ALL
from pdprivacy.ledger.store import SPAN, Head, Reader, Row

__all__ = ["Answer", "Book", "MemoryBook", "StoredBook", "no_such_charge"]

T = TypeVar("T")
Flags: TypeAlias = NDArray[np.bool_]
Risks: TypeAlias = NDArray[np.float64]

ANSWERED = "\nanswer"
"""The end of the release of a record for a stored answer. No release id holds a line break."""
MARK = re.compile("[0-9a-f]{64}")


class Answer(NamedTuple):
    """An answer to be stored: what was asked, argument by argument, and the bytes of what was released."""

    request: Mapping[str, str]
    content: bytes

    def body(self, terms: Terms) -> bytes:
        """Return the bytes to store, for data of these terms."""
        return canonical([dict(self.request), _data(terms)]).encode() + b"\n" + self.content

    @staticmethod
    def read(body: bytes, release: str, request: Mapping[str, str], terms: Terms) -> bytes:
        """Return the stored content; raise ChangedStepError for another request or declaration."""
        text, _, content = body.partition(b"\n")
        (before, data), now = json.loads(text), dict(request)
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        changed += [name for name, value in _data(terms).items() if data[name] != value]
        if changed:
            raise ChangedStepError(
                f"The stored release {release!r} was made with another "
                f"{', another '.join(map(repr, changed))}. Nothing was charged.",
                "ask for the same release as before, or choose another release_id.",
            )
        return content


def _data(terms: Terms) -> dict[str, str | None]:
    """Return the declaration and the privacy unit of data."""
    unit = None if terms.unit is None else str(terms.unit)
    return {"declaration of the data": terms.declaration, "privacy unit": unit}


class MemoryBook:
    """Charges kept in memory; lost when the process exits.

    A charge counts once ``_account`` is assigned, which no interrupt divides. The next charge removes entries
    beyond the number of charges of the account. Readers take no lock, so that neither a signal handler nor a
    forked process waits for ever.
    """

    name = ""

    def __init__(self, terms: Terms) -> None:
        self._account = Account(terms)
        self._entries: list[Entry] = []
        self._releases: dict[str, int] = {}
        self._lock = threading.RLock()
        self._changing = False
        self._process = os.getpid()

    def account(self) -> Account:
        """Return the terms and sums at one moment."""
        return self._account

    def _change(self, change: Callable[[], T]) -> T:
        """Run ``change`` while no other thread changes the book, nor this thread within another change."""
        if os.getpid() != self._process:
            raise BudgetError(
                "A budget in memory belongs to the process that made it; a fork made this copy. "
                "Nothing was charged.",
                'processes share a budget in a ledger: budget=pdprivacy.Ledger("budget.db"), name="survey".',
            )
        with self._lock:
            if self._changing:
                raise BudgetError("This thread is changing the budget already. Nothing was charged.")
            try:
                self._changing = True
                return change()
            finally:
                self._changing = False

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """Replace the terms by those that ``change`` makes of the account.

        An error of ``change`` leaves the terms as they were.
        """

        def put() -> None:
            self._account = replace(self._account, terms=change(self._account))

        if change(self._account) != self._account.terms:
            self._change(put)

    def charge(self, make: Callable[[Account], Entry], release: str | None) -> Entry:
        """Enter the charge that ``make`` makes of the account; an error of ``make`` enters nothing.

        Raises AlreadyCharged where ``release`` was charged before.
        """

        def enter() -> Entry:
            self._refuse_again(release)
            entry = make(self._account)
            self._entries[self._account.charges :] = [entry]
            if release is not None:
                self._releases[release] = entry.number
            self._account = entry.after
            return entry

        return self._change(enter)

    def _refuse_again(self, release: str | None) -> None:
        number = 0 if release is None else self._releases.get(release, 0)
        if 0 < number <= self._account.charges and self._entries[number - 1].release == release:
            _refuse_again(self._entries[number - 1])

    def answer(self, number: int, risk: float | None) -> None:
        """Note that charge ``number`` was answered, and the risk of what was released."""

        def note() -> None:
            if not 1 <= number <= self._account.charges:
                raise no_such_charge()
            self._entries[number - 1] = _noted(self._entries[number - 1], risk)

        self._change(note)

    def store(self, release: str, answer: Answer, risk: float | None) -> int:  # noqa: ARG002
        """Store the answer to a charged release, and return the number of the charge.

        A budget in memory raises BudgetError: nothing in it outlives the process.
        """
        raise BudgetError("A budget in memory stores no answers.", 'budget=pdprivacy.Ledger("budget.db").')

    def stored(self, release: str, request: Mapping[str, str]) -> bytes | None:  # noqa: ARG002
        """Return the stored answer to a release; None if the release was not charged.

        Raises ChangedStepError where it was stored for another request, AlreadyCharged where the release was
        charged and no answer is stored.
        """
        self._refuse_again(release)
        return None

    def entries(self) -> tuple[Account, list[Entry]]:
        """Return the account and all charges at one moment."""
        account = self._account
        return account, self._entries[: account.charges]

    def read(self, take: Callable[[Entry], object], pick: slice = ALL) -> tuple[Account, Flags, Risks]:
        """Pass each picked charge to ``take``; return the account at one moment, and the answers until then.

        ``pick``: positions in the list of all charges. The answers are two arrays over all charges: whether
        each was answered, and its risk, NaN where none is known.
        """
        account, entries = self.entries()
        for entry in entries[pick]:
            take(entry)
        answered = np.array([entry.answered for entry in entries], dtype=bool)
        return account, answered, np.array([entry.dr_ha for entry in entries], dtype="float64")


class StoredBook:
    """The charges of one budget in a ledger. Equal where the ledger and the name are."""

    def __init__(self, chain: Chain, name: str) -> None:
        self.chain, self.name = chain, name

    def _key(self) -> tuple[str, str]:
        return self.chain.store.address, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredBook) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def account(self) -> Account:
        """As `MemoryBook`."""
        return self.chain.read(lambda reader, _: self.account_in(reader))

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """As `MemoryBook`; nothing is written where nothing changes."""

        def add(links: Link) -> None:
            account = self.account_in(links.writer, decides=True)
            terms = change(account)
            if terms != account.terms:
                links.add(self.name, "redeclare", None, terms_body(terms, datetime.now(UTC)))

        account = self.account()
        if change(account) != account.terms:
            self.chain.write(add)

    def charge(self, make: Callable[[Account], Entry], release: str | None) -> Entry:
        """As `MemoryBook`."""

        def add(links: Link) -> Entry:
            account = self.account_in(links.writer, decides=True)
            if release is not None and (row := self._released(links.writer, release)) is not None:
                _refuse_again(self._answered(links.writer, row, account.terms))
            entry = make(account)
            links.add(self.name, "charge", release, charge_body(entry))
            return entry

        return self.chain.write(add)

    def answer(self, number: int, risk: float | None) -> None:
        """As `MemoryBook`."""

        def add(links: Link) -> None:
            if number > self.account_in(links.writer, decides=True).charges:
                raise no_such_charge()
            links.add(self.name, "answer", None, answer_body(number, risk))

        self.chain.write(add)

    def store(self, release: str, answer: Answer, risk: float | None) -> int:
        """As `MemoryBook`."""

        def add(links: Link) -> int:
            account = self.account_in(links.writer, decides=True)
            row = self._released(links.writer, release)
            if row is None:
                raise no_such_charge()
            if self._released(links.writer, release + ANSWERED) is not None:
                raise BudgetError(
                    f"The answer to the release {release!r} is stored already. Nothing was stored."
                )
            number = entry_of(row, account.terms).number
            body = answer.body(account.terms)
            mark = blake2b(body, digest_size=32).hexdigest()
            links.writer.store(mark, body)
            links.add(self.name, "answer", release + ANSWERED, answer_body(number, risk, mark))
            return number

        return self.chain.write(add)

    def stored(self, release: str, request: Mapping[str, str]) -> bytes | None:
        """As `MemoryBook`."""

        def look(reader: Reader, _: Head | None) -> bytes | None:
            terms = self._terms(reader)[1]
            row = self._released(reader, release)
            if row is None:
                return None
            answer = self._released(reader, release + ANSWERED)
            if answer is None:
                _refuse_again(self._answered(reader, row, terms))
            check_place(reader, answer)
            mark = parse(answer).get("answer")
            body = reader.stored(mark) if isinstance(mark, str) and MARK.fullmatch(mark) else None
            if body is None or blake2b(body, digest_size=32).hexdigest() != mark:
                raise LedgerError(
                    f"The stored answer to the release {release!r} is missing or was changed.",
                    "restore it from a copy; another release_id pays for another answer.",
                )
            return Answer.read(body, release, request, terms)

        return self.chain.read(look)

    def _released(self, reader: Reader, release: str) -> Row | None:
        """Return the record with this release id, as the index has it."""
        row = reader.released(self.name, release)
        if row is not None and (row.budget, row.release) != (self.name, release):
            raise altered(row)
        return row

    def _answered(self, reader: Reader, row: Row, terms: Terms) -> Entry:
        """Return the charge of a record, marked as answered if one of the next records says so."""
        entry = entry_of(row, terms)
        for later in reader.span(row.number, row.number + SPAN):
            if (later.budget, later.kind) == (self.name, "answer") and answer_of(later)[0] == entry.number:
                return _noted(entry, None)
        return entry

    def entries(self) -> tuple[Account, list[Entry]]:
        """As `MemoryBook`."""
        entries: list[Entry] = []
        account, answered, risks = self.read(entries.append)
        for place in answered.nonzero()[0].tolist():
            risk = float(risks[place])
            entries[place] = _noted(entries[place], None if math.isnan(risk) else risk)
        return account, entries

    def read(self, take: Callable[[Entry], object], pick: slice = ALL) -> tuple[Account, Flags, Risks]:
        """As `MemoryBook`; reads every record, as answers may come late, and keeps the picked charges."""
        head, account = self.chain.read(lambda reader, head: (head, self.account_in(reader)))
        answered, risks = np.zeros(account.charges, dtype=bool), np.full(account.charges, np.nan)
        charges, picked = 0, range(account.charges)[pick]
        for row in self.chain.rows(head):
            if row.budget == self.name and row.kind == "charge":
                if charges in picked:
                    take(entry_of(row, account.terms))
                charges += 1
            elif row.budget == self.name and row.kind == "answer":
                number, risk = answer_of(row)
                if not 1 <= number <= min(charges, account.charges):
                    raise altered(row)
                answered[number - 1] = True
                if risk is not None:
                    risks[number - 1] = np.fmax(risks[number - 1], risk)
        if charges != account.charges:
            raise self._disagree()
        return account, answered, risks

    def _disagree(self) -> TamperedLedgerError:
        return TamperedLedgerError(
            f"The table of records and its index disagree on the last charge of {self.name!r}.", AUDIT
        )

    def _terms(self, reader: Reader) -> tuple[Row, Terms]:
        opened = self._latest(reader, "open")
        row = self._latest(reader, "redeclare") or opened
        if row is None or opened is None:
            raise LedgerError(
                f"The ledger holds no budget {self.name!r}.",
                "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...) opens one.",
            )
        check_place(reader, row)
        terms, first = terms_of(row), terms_of(opened)
        if (terms.total, terms.accounting) != (first.total, first.accounting):
            raise altered(row)
        return opened, terms

    def account_in(self, reader: Reader, *, decides: bool = False) -> Account:
        """Return the sums that the last charge holds, after a check of its place in the chain.

        ``decides``: also refuse a table of records in which another charge is the last, so that damage to one
        of the two, table or index, hides no charge.
        """
        opened, terms = self._terms(reader)
        row = self._latest(reader, "charge")
        if row is not None:
            check_place(reader, row)
        if decides and reader.last_charge(self.name, (row or opened).number):
            raise self._disagree()
        return account_of(row, terms)

    def _latest(self, reader: Reader, kind: str) -> Row | None:
        """Return the last record of a kind of this budget, as the index has it."""
        row = reader.latest(self.name, kind)
        if row is not None and (row.budget, row.kind) != (self.name, kind):
            raise altered(row)
        return row


Book: TypeAlias = MemoryBook | StoredBook
"""The charges of one budget, in order. Each method is one transaction: whole or not at all."""


def _noted(entry: Entry, risk: float | None) -> Entry:
    """Return the charge marked as answered; of several risks the largest counts."""
    known = [one for one in (entry.dr_ha, risk) if one is not None]
    return replace(entry, answered=True, dr_ha=max(known, default=None))


def no_such_charge() -> ParameterError:
    """Return the error for a number that no charge has."""
    return ParameterError("'number' must be that of a charge in this budget.")


def _refuse_again(entry: Entry) -> NoReturn:
    """Raise AlreadyCharged for a release id that was charged before."""
    answered = "was handed out" if entry.answered else "is not known to have been handed out"
    raise AlreadyCharged(
        f"The release {entry.release!r} is charge {entry.number} of this budget ({entry.label}, "
        f"{entry.time:%Y-%m-%d %H:%M} UTC), and its answer {answered}. Nothing was charged again.",
        "take the answer from where it was stored; for another answer, another release_id.",
    )
