"""The charges of one budget, in memory or in a ledger."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pdprivacy.core.accounting import Event, Events
from pdprivacy.errors import AlreadyCharged, BudgetError, ChangedStepError, LedgerError, ParameterError
from pdprivacy.ledger.account import (
    UNKNOWN_RISK,
    Account,
    Charge,
    Entry,
    Risk,
    Terms,
    answer_of,
    entry_of,
    priced_text,
    terms_of,
)
from pdprivacy.ledger.store import SPAN, Chain, Reader, Row, Writer, altered, canonical, check, hidden, parse
from pdprivacy.types import Floats, Mask

Flags: TypeAlias = Mask
Risks: TypeAlias = Floats

ALL = slice(None)
FEW = 20
"""Records after the last charge that was entered here, among which a later one is looked for."""

ANSWERED = "\nanswer"
"""The end of the release of a record for a stored answer. No release id holds a line break."""
MARK = re.compile("[0-9a-f]{64}")


Request: TypeAlias = dict[str, str]
"""Arguments of a release, as a text for each."""


def _facts(request: Request, terms: Terms) -> list[dict[str, Any]]:
    """Return what a stored answer is for: the request, and the declaration and privacy unit of the data."""
    unit = None if terms.unit is None else str(terms.unit)
    return [request, {"declaration of the data": terms.declaration, "privacy unit": unit}]


def _unpacked(body: bytes, release: str, request: Request, terms: Terms) -> bytes:
    """Return a stored answer; raise ChangedStepError if it is for another request or declaration."""
    text, _, answer = body.partition(b"\n")
    pairs = zip(json.loads(text), _facts(request, terms), strict=True)
    changed = [name for old, new in pairs for name in {**old, **new} if old.get(name) != new.get(name)]
    if changed:
        raise ChangedStepError(
            f"The stored release {release!r} was made with another "
            f"{', another '.join(map(repr, changed))}. Nothing was charged.",
            "ask for the same release as before, or choose another release_id.",
        )
    return answer


def _mark(body: bytes) -> str:
    return blake2b(body, digest_size=32).hexdigest()


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
        self._lock: Any = threading.RLock()
        self._process = os.getpid()

    def account(self) -> Account:
        """Return the terms and sums at one moment."""
        return self._account

    def _check_turn(self) -> None:
        """Refuse a change in a forked process, and within another change of this thread."""
        if os.getpid() != self._process:
            raise BudgetError(
                "A budget in memory belongs to the process that made it; a fork made this copy. "
                "Nothing was charged.",
                'processes share a budget in a ledger: budget=pdprivacy.Ledger("budget.db"), name="survey".',
            )
        if self._lock._is_owned():
            raise BudgetError("This thread is changing the budget already. Nothing was charged.")

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """Replace the terms by those that ``change`` makes of the account.

        An error of ``change`` leaves the terms as they were.
        """
        if change(self._account) == self._account.terms:
            return
        self._check_turn()
        with self._lock:
            self._account = replace(self._account, terms=change(self._account))

    def charge(self, charge: Charge) -> Entry:
        """Enter a charge; an error enters nothing.

        Raises AlreadyCharged where the release was charged before, and the errors of `Account.charge`.
        """
        self._check_turn()
        with self._lock:
            if charge.release is not None:
                self._refuse_again(charge.release)
            entry = self._account.charge(charge)
            self._entries[self._account.charges :] = [entry]
            if charge.release is not None:
                self._releases[charge.release] = entry.number
            self._account = entry.after
            return entry

    def _refuse_again(self, release: str) -> None:
        number = self._releases.get(release, 0)
        if 0 < number <= self._account.charges and self._entries[number - 1].release == release:
            _refuse_again(self._entries[number - 1])

    def answer(self, number: int, risk: Risk) -> None:
        """Note that charge ``number`` was answered, and the risk of what was released."""
        self._check_turn()
        with self._lock:
            if not 1 <= number <= self._account.charges:
                raise no_such_charge()
            self._entries[number - 1] = _noted(self._entries[number - 1], risk)

    def store(self, release: str, answer: bytes, request: Request, risk: Risk) -> int:  # noqa: ARG002
        """Store the answer to a charged release, and return the number of the charge.

        A budget in memory raises BudgetError: nothing in it outlives the process.
        """
        raise BudgetError("A budget in memory stores no answers.", 'budget=pdprivacy.Ledger("budget.db").')

    def stored(self, release: str, request: Request) -> bytes | None:  # noqa: ARG002
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

    def events(self) -> Events:
        """Return the events of all charges, equal ones once, with their counts."""
        counts: Counter[Event] = Counter()
        for entry in self.entries()[1]:
            for event, count in entry.events:
                counts[event] += count
        return list(counts.items())

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
        self._last: tuple[Row, Account] | None = None  # the last charge that was entered here

    def __reduce__(self) -> Any:
        return StoredBook, (self.chain, self.name)

    def _key(self) -> tuple[str, str]:
        return self.chain.store.address, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredBook) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def account(self) -> Account:
        """Implement `MemoryBook.account`."""
        return self.chain.read(self.account_in)

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """Implement `MemoryBook.declare`; write nothing where nothing changes."""

        def add(writer: Writer) -> None:
            account = self.account_in(writer)
            terms = change(account)
            if terms != account.terms:
                writer.add(self.name, "redeclare", None, terms.to_json(datetime.now(UTC)))

        account = self.account()
        if change(account) != account.terms:
            self.chain.write(add)

    def charge(self, charge: Charge) -> Entry:
        """Implement `MemoryBook.charge`."""

        def add(writer: Writer) -> Entry:
            account, release = self.account_in(writer), charge.release
            if release is not None and (row := writer.find(self.name, "charge", release)) is not None:
                _refuse_again(self._answered(writer, row, account.terms))
            entry = account.charge(charge)
            self._last = writer.add(self.name, "charge", release, entry.to_json()), entry.after
            return entry

        return self.chain.write(add)

    def answer(self, number: int, risk: Risk) -> None:
        """Implement `MemoryBook.answer`."""

        def add(writer: Writer) -> None:
            if number > self.account_in(writer).charges:
                raise no_such_charge()
            writer.add(self.name, "answer", None, _answer_body(number, risk))

        self.chain.write(add)

    def store(self, release: str, answer: bytes, request: Request, risk: Risk) -> int:
        """Implement `MemoryBook.store`."""

        def add(writer: Writer) -> int:
            terms = self.account_in(writer).terms
            row = writer.find(self.name, "charge", release)
            if row is None:
                raise no_such_charge()
            if writer.find(self.name, "answer", release + ANSWERED) is not None:
                raise BudgetError(
                    f"The answer to the release {release!r} is stored already. Nothing was stored."
                )
            number = entry_of(row, terms).number
            body = canonical(_facts(request, terms)).encode() + b"\n" + answer
            mark = _mark(body)
            writer.store(mark, body)
            writer.add(self.name, "answer", release + ANSWERED, _answer_body(number, risk, mark))
            return number

        return self.chain.write(add)

    def stored(self, release: str, request: Request) -> bytes | None:
        """Implement `MemoryBook.stored`."""

        def look(reader: Reader) -> bytes | None:
            terms = self._terms(reader)[1]
            row = reader.find(self.name, "charge", release)
            if row is None:
                return None
            answer = reader.find(self.name, "answer", release + ANSWERED)
            if answer is None:
                _refuse_again(self._answered(reader, row, terms))
            mark = parse(answer).get("answer")
            body = reader.stored(mark) if isinstance(mark, str) and MARK.fullmatch(mark) else None
            if body is None or _mark(body) != mark:
                raise LedgerError(
                    f"The stored answer to the release {release!r} is missing or was changed.",
                    "restore it from a copy; another release_id pays for another answer.",
                )
            return _unpacked(body, release, request, terms)

        return self.chain.read(look)

    def _answered(self, reader: Reader, row: Row, terms: Terms) -> Entry:
        """Return the charge of a record, marked as answered if one of the next records says so."""
        entry = entry_of(row, terms)
        for later in reader.span(row.number, row.number + 2 * SPAN):
            if (later.budget, later.kind) == (self.name, "answer") and answer_of(later)[0] == entry.number:
                return _noted(entry, None)
        return entry

    def entries(self) -> tuple[Account, list[Entry]]:
        """Implement `MemoryBook.entries`."""
        entries: list[Entry] = []
        reasons: dict[int, str] = {}
        account, answered, risks = self.read(entries.append, reasons=reasons)
        known = (None if math.isnan(risk) else risk for risk in risks.tolist())
        answers = zip(entries, answered.tolist(), known, strict=True)
        noted = [_noted(entry, risk) if is_answered else entry for entry, is_answered, risk in answers]
        for number, reason in reasons.items():
            noted[number - 1] = _noted(noted[number - 1], reason)
        return account, noted

    def events(self) -> Events:
        """Implement `MemoryBook.events`; charges of equal text are counted before one of them is parsed."""
        head, account = self.chain.read(lambda reader: (reader.head, self.account_in(reader)))
        first: dict[str, Row] = {}
        charges: Counter[str] = Counter()
        for row in self.chain.checked_rows(head):
            if row.kind == "charge" and row.budget == self.name:
                text = priced_text(row)
                charges[text] += 1
                first.setdefault(text, row)
        if charges.total() != account.charges:
            raise hidden(self.name)
        counts: Counter[Event] = Counter()
        for text, row in first.items():
            for event, count in entry_of(row, account.terms).events:
                counts[event] += count * charges[text]
        return list(counts.items())

    def read(
        self,
        take: Callable[[Entry], object],
        pick: slice = ALL,
        reasons: dict[int, str] | None = None,
    ) -> tuple[Account, Flags, Risks]:
        """Implement `MemoryBook.read`: read all records (answers may come late), keep the picked charges.

        ``reasons``: receives the reason of each charge whose risk was not estimated.
        """
        head, account = self.chain.read(lambda reader: (reader.head, self.account_in(reader)))
        answered, risks = np.zeros(account.charges, dtype=bool), np.full(account.charges, np.nan)
        charges, picked = 0, range(account.charges)[pick]
        for row in self.chain.checked_rows(head):
            if row.budget == self.name and row.kind == "charge":
                if charges in picked:
                    take(entry_of(row, account.terms))
                charges += 1
            elif row.budget == self.name and row.kind == "answer":
                number, risk = answer_of(row)
                if not 1 <= number <= min(charges, account.charges):
                    raise altered(row)
                answered[number - 1] = True
                if isinstance(risk, str):
                    if reasons is not None:
                        reasons.setdefault(number, risk)
                elif risk is not None:
                    risks[number - 1] = np.fmax(risks[number - 1], risk)
        if charges != account.charges:
            raise hidden(self.name)
        return account, answered, risks

    def account_in(self, reader: Reader, last: int | None = None) -> Account:
        """Return the sums that the last charge holds.

        Refuses a table of records in which another charge is the last, so that a damaged table or index
        cannot hide a charge. ``last``: the number of the last charge by the table, where it is known.
        """
        known = self._known(reader)
        if known is not None:
            return known
        opened, terms = self._terms(reader)
        row = reader.find(self.name, "charge")
        number = (row or opened).number
        if last is None and reader.last_charge(self.name, number) is not None:
            raise hidden(self.name)
        if last is not None and last > number:
            raise hidden(self.name)
        return Account(terms) if row is None else entry_of(row, terms).after

    def _known(self, reader: Reader) -> Account | None:
        """Return the account after the last charge that was entered here, if it still holds.

        None unless the table, from that charge to its end, holds a few answers and charges of other budgets.
        """
        if self._last is None or reader.head is None:
            return None
        (row, account), head = self._last, reader.head
        rows = reader.span(row.number - 1, head.number) if head.number - row.number < FEW else []
        if not rows or (rows[0], rows[-1]) != (row, head):
            return None
        for before, later in pairwise(rows):
            check(later, before)
            if later.budget == self.name and later.kind != "answer":
                return None
        return account

    def _terms(self, reader: Reader) -> tuple[Row, Terms]:
        """Return the record that opened the budget, and the terms that hold now."""
        opened, declared = reader.find(self.name, "open"), reader.find(self.name, "redeclare")
        if opened is None:
            raise LedgerError(
                f"The ledger holds no budget {self.name!r}.",
                "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...) opens one.",
            )
        row = declared or opened
        terms, first = terms_of(row), terms_of(opened)
        if (terms.total, terms.accounting) != (first.total, first.accounting):
            raise altered(row)
        return opened, terms


Book: TypeAlias = MemoryBook | StoredBook
"""The charges of one budget, in order. Each method is one transaction: whole or not at all."""


def _noted(entry: Entry, risk: Risk) -> Entry:
    """Return the charge marked as answered; of several risks the largest counts."""
    if isinstance(risk, str):
        return replace(entry, answered=True, risk_unknown=entry.risk_unknown or risk)
    if risk is None or (entry.dr_ha is not None and entry.dr_ha > risk):
        risk = entry.dr_ha
    return replace(entry, answered=True, dr_ha=risk)


def _answer_body(number: int, risk: Risk, stored: str | None = None) -> dict[str, Any]:
    """Return the body of a record for an answered charge; ``stored``: the digest of a stored answer."""
    name = UNKNOWN_RISK if isinstance(risk, str) else "dr_ha"
    body = {"charge": number, name: risk, "answer": stored}
    return {name: value for name, value in body.items() if value is not None}


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
