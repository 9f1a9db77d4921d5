"""The book of one budget in a ledger: every charge a record of the chain, durable before it counts."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pdprivacy.errors import LedgerError, TamperedLedgerError
from pdprivacy.ledger.book import ALL, no_such_charge, noted, refuse_again
from pdprivacy.ledger.chain import ROOT, altered, check, link
from pdprivacy.ledger.entry import Account, Entry, Terms
from pdprivacy.ledger.pages import Answers
from pdprivacy.ledger.records import account_of, answer_of, charge_text, entry_of, terms_body, terms_of
from pdprivacy.ledger.store import Head, Reader, Row, Store, Writer

__all__ = ["Chain", "Head", "StoredBook"]


_seen: dict[str, Head] = {}
"""The last record of each ledger that this process has seen: older copies put in its place are told by it."""

_seeing = threading.RLock()  # a handler of a signal may look while this thread does


def _unlock() -> None:
    """Let a forked child see: no thread of its own holds the lock."""
    global _seeing
    _seeing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


class Chain:
    """The chain of a ledger: what is read and added, checked against what was seen before."""

    def __init__(self, store: Store, seen: Head | None = None) -> None:
        self.store = store
        self.known = Known(None, {})
        if seen is not None:
            self.see(seen)

    def __reduce__(self) -> Any:
        return Chain, (self.store, self.seen)  # what was seen goes along to another process

    @property
    def seen(self) -> Head | None:
        """The last record that this process has seen."""
        return _seen.get(self.store.address)

    def see(self, head: Head) -> None:
        """Remember the record, if it is later than the one remembered."""
        with _seeing:
            known = _seen.get(self.store.address)
            if known is None or head.number > known.number:
                _seen[self.store.address] = head

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """The records of one moment, none of those missing that were seen before."""
        seen = self.seen  # before the moment is fixed: others may add, and see, more meanwhile
        with self.store.reading() as reader:
            head = reader.head()
            _check_seen(reader, head, seen)
            yield reader
        if head is not None:
            self.see(head)

    def writing(self) -> Adding:
        """Add to the chain; what was added is durable, and remembered, once the block has been left."""
        return Adding(self)


class Adding:
    """A block that adds to the chain. No generator: an interrupt would leave that suspended."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._transaction = chain.store.writing()
        self._links: Link | None = None

    def __enter__(self) -> Link:
        chain, seen = self._chain, self._chain.seen
        writer = self._transaction.__enter__()
        try:
            head = writer.head()
            if head != seen:
                _check_seen(writer, head, seen)
                _check_last(writer, head, seen)
            self._links = Link(writer, head, chain.known)
            return self._links
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *error: Any) -> None:
        self._transaction.__exit__(*error)
        links = self._links
        if error[0] is None and links is not None and links.head is not None:
            self._chain.see(links.head)
            self._chain.known = Known(links.head, links.accounts)


class Known(NamedTuple):
    """The accounts of budgets as of a record, each with the number of its last charge (0: none)."""

    head: Head | None
    accounts: dict[str, tuple[int, Account]]


class Link:
    """The open end of the chain, within a transaction."""

    def __init__(self, writer: Writer, head: Head | None, known: Known) -> None:
        self.writer = writer
        self.head = head
        """The last record."""
        self.known = known
        # what is known of budgets stands as long as nothing was added by others
        self.accounts = dict(known.accounts) if head == known.head else {}

    def add(self, budget: str, kind: str, release: str | None, body: Mapping[str, Any] | str) -> None:
        """Add a record; its ``body`` as `link` takes it."""
        row = link(self.head, budget, kind, release, body)
        self.writer.append(row)
        self.head = Head(row.number, row.hash)


def _backwards(reader: Reader, head: Head | None) -> Iterator[Row]:
    """The records from the head down, each checked to follow from the one before it."""
    expected, later = head, None
    for row in reader.backwards(0 if head is None else head.number):
        if later is not None:
            check(later, row.hash)
            yield later
            expected = Head(later.number - 1, row.hash)
        if (row.number, row.hash) != expected:
            raise _missing(row.number + 1)
        later = row
    if later is not None:
        check(later, ROOT)
        yield later
    if (0 if head is None else 1) != (0 if later is None else later.number):
        raise _missing(1)


def _before(reader: Reader, row: Row) -> bytes:
    """The hash of the record before this one."""
    if row.number == 1:
        return ROOT
    before = reader.at(row.number - 1)
    if before is None:
        raise _missing(row.number - 1)
    return before.hash


def _missing(number: int) -> TamperedLedgerError:
    return TamperedLedgerError(f"Record {number} of the ledger is missing.", _RESTORE)


_RESTORE = "restore the latest copy of the ledger; ledger.audit() says what is missing."


def _check_last(reader: Reader, head: Head | None, seen: Head | None) -> None:
    """Refuse a last record that this process has not seen before, and that does not follow."""
    if head is not None and (seen is None or head.number > seen.number):
        last = reader.last()
        if last is not None:
            check(last, _before(reader, last))


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


@dataclass(frozen=True)
class StoredBook:
    """The charges of one budget in a ledger; a `Book`."""

    chain: Chain
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredBook) and (self.chain.store.address, self.name) == (
            other.chain.store.address,
            other.name,
        )

    def __hash__(self) -> int:
        return hash((self.chain.store.address, self.name))

    def account(self) -> Account:
        """As `Book`."""
        with self.chain.reading() as reader:
            return self.account_in(reader)

    def declare(self, change: Callable[[Account], Terms]) -> None:
        """As `Book`; nothing is written where nothing changes."""
        account = self.account()
        if change(account) == account.terms:
            return
        with self.chain.writing() as links:
            account = self._account_of(links)
            terms = change(account)
            if terms != account.terms:
                links.add(self.name, "redeclare", None, terms_body(terms, datetime.now(UTC)))
                number, account = links.accounts[self.name]
                links.accounts[self.name] = number, replace(account, terms=terms)

    def charge(self, make: Callable[[Account], Entry], release: str | None) -> Entry:
        """As `Book`."""
        with self.chain.writing() as links:
            account = self._account_of(links)
            if release is not None and (row := links.writer.released(self.name, release)) is not None:
                refuse_again(self._answered(links.writer, entry_of(row, account.terms), row))
            entry = make(account)
            links.add(self.name, "charge", release, charge_text(entry, self.name))
            assert links.head is not None
            links.accounts[self.name] = links.head.number, entry.after
        return entry

    def answer(self, number: int, risk: float | None) -> None:
        """As `Book`."""
        body = {"charge": number} if risk is None else {"charge": number, "dr_ha": risk}
        with self.chain.writing() as links:
            if number > self._account_of(links).charges:
                raise no_such_charge()
            links.add(self.name, "answer", None, body)

    def entries(self) -> tuple[Account, list[Entry]]:
        """As `Book`."""
        entries: list[Entry] = []
        account, answers = self.read(entries.append)
        known = zip(entries, answers.answered.tolist(), answers.risks, strict=True)
        return account, [noted(entry, risk) if answered else entry for entry, answered, risk in known]

    def read(self, take: Callable[[Entry], object], pick: slice = ALL) -> tuple[Account, Answers]:
        """As `Book`; every record is read, as answers come at any later time, but only one is kept."""
        with self.chain.reading() as reader:
            terms = self._terms(reader)
            account = self.account_in(reader, terms)
            answers = Answers(pick, account.charges)
            for row in reader.rows(self.name):
                if row.kind == "charge" and answers.charge():
                    take(entry_of(row, terms))
                elif row.kind == "answer":
                    number, risk = answer_of(row)
                    if not 1 <= number <= answers.charges:
                        raise TamperedLedgerError(
                            f"Record {row.number} of the ledger answers a charge that is not there.", _RESTORE
                        )
                    answers.answer(number, risk)
            return account, answers

    def _terms(self, reader: Reader) -> Terms:
        opened = self._latest(reader, "open")
        row = self._latest(reader, "redeclare") or opened
        if row is None or opened is None:
            raise LedgerError(
                f"The ledger holds no budget {self.name!r}.",
                "df.dp.protect(schema, epsilon=1.0, budget=ledger, name=...) opens one.",
            )
        check(row, _before(reader, row))
        terms, first = terms_of(row), terms_of(opened)
        if (terms.total, terms.accounting) != (first.total, first.accounting):
            raise TamperedLedgerError(
                f"Record {row.number} of the ledger gives a budget another total.", _RESTORE
            )
        return terms

    def account_in(self, reader: Reader, terms: Terms | None = None) -> Account:
        """The sums that the last charge holds, after a look whether it follows from the one before it."""
        terms = self._terms(reader) if terms is None else terms
        row = self._latest(reader, "charge")
        if row is not None:
            check(row, _before(reader, row))
        return account_of(row, terms)

    def _latest(self, reader: Reader, kind: str) -> Row | None:
        """The last record of a kind of this budget, as the index has it."""
        row = reader.latest(self.name, kind)
        if row is not None and (row.budget, row.kind) != (self.name, kind):
            raise altered(row)
        return row

    def _account_of(self, links: Link) -> Account:
        """The account that the next charge adds to: of the table of records, where the index agrees.

        Damage to one of the two hides no charge, as the other still has it.
        """
        if self.name not in links.accounts:
            links.accounts[self.name] = self._last_charge(links)
        number, account = links.accounts[self.name]
        latest = self._latest(links.writer, "charge")
        if number != (0 if latest is None else latest.number):
            raise TamperedLedgerError(
                f"The table of records and its index disagree on the last charge of {self.name!r}.",
                "restore the ledger from a copy; ledger.audit() says what else was altered.",
            )
        return account

    def _last_charge(self, links: Link) -> tuple[int, Account]:
        """The number of the last charge and the account after it, from the head of the chain downwards."""
        terms, known = self._terms(links.writer), links.known
        for row in _backwards(links.writer, links.head):
            if (row.number, row.hash) == known.head and self.name in known.accounts:
                number, account = known.accounts[self.name]
                return number, replace(account, terms=terms)
            if (row.budget, row.kind) == (self.name, "charge"):
                return row.number, account_of(row, terms)
            if (row.budget, row.kind) == (self.name, "open"):
                break
        return 0, Account(terms)

    def _answered(self, reader: Reader, entry: Entry, row: Row) -> Entry:
        """The charge, answered if it was."""
        for later in reader.rows(self.name, row.number):
            if later.kind == "answer" and answer_of(later)[0] == entry.number:
                return noted(entry, None)
        return entry
