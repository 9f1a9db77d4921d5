"""Budgets: append-only lists of charges under a cap, in memory or in a ledger.

A `Ledger` holds the budgets of many tables, shared by many processes, kept for months.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from pdprivacy.checks import check_name, flag, whole
from pdprivacy.core.accounting import Accounting
from pdprivacy.core.privacy import Loss, Unit
from pdprivacy.errors import MissingLedgerError, ParameterError, short_tracebacks
from pdprivacy.ledger import audit
from pdprivacy.ledger.account import Account, Entry, Terms, doubles
from pdprivacy.ledger.audit import Audit
from pdprivacy.ledger.book import StoredBook
from pdprivacy.ledger.budget import Budget
from pdprivacy.ledger.store import Chain, Reader, Row, Store, Writer, altered, hidden

__all__ = ["Account", "Audit", "Budget", "Entry", "Ledger"]


FORMAT = 1
"""The format of the records."""


@short_tracebacks
class Ledger:
    """Budgets that outlive the process, and that notebooks, pipelines and people share.

    Pass it as ``budget=`` to `df.dp.protect`, with a ``name=`` for the data. A charge is on disk before a
    cell is read; a crash, a power cut or a full disk may cost budget, but never lose a charge.

    Parameters
    ----------
    address : the path of an SQLite file, made at the first protection, on a disk of this machine (SQLite
        is not safe on network file systems); or the URL of a PostgreSQL database, such as
        ``"postgresql://ledger@db/privacy"`` (extra ``server``).

    Raises
    ------
    ParameterError : the address is neither a path nor the URL of a PostgreSQL database.
    LedgerError : raised by each use of a ledger that cannot be read or written.

    Notes
    -----
    The records are append-only, and each holds a hash of all before it; see `audit`.

    >>> import tempfile
    >>> from pdprivacy import Pure
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(folder.name + "/budget.db")
    >>> budget = ledger.open("survey-2026", Pure(2))
    >>> _ = budget.charge(Pure(0.5), "mean of age")
    >>> Ledger(folder.name + "/budget.db").budget("survey-2026").left
    (1.5, 0.0)
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self.chain = Chain(_store(address))

    @property
    def address(self) -> str:
        """The absolute path, or the URL without its password."""
        return self.chain.store.address

    def __repr__(self) -> str:
        return f"Ledger({self.address!r})"

    def _repr_html_(self) -> str:
        from pdprivacy.show import pages

        return pages.ledger_html(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(
        self,
        name: str,
        total: Loss | None = None,
        accounting: Accounting | None = None,
        *,
        unit: Unit | None = None,
        declaration: str | None = None,
        redeclare: bool = False,
    ) -> Budget:
        """Return the budget of this name, and open it if it is new.

        `df.dp.protect` calls it. ``total``: the cap, needed for a new budget; ``accounting``: as of `Budget`.
        ``unit`` and ``declaration``: the privacy unit and the declaration of the data; None keeps the present
        ones.

        Raises
        ------
        BudgetError : the budget is for another unit or declaration, and ``redeclare`` is False. Losses
            between other neighbours do not add up, so a unit can be declared anew only before the first
            charge.
        ParameterError : no ``total`` for a new budget; another total or accounting than that of the budget.
        """
        name = check_name(name, "name")
        flag(redeclare, "redeclare")
        book = StoredBook(self.chain, name)
        if not self._is_open(name):
            self._open(name, total, accounting)

        def declared(account: Account) -> Terms:
            account.terms.check_same(total, accounting)
            return account.declared(unit, declaration, redeclare)

        book.declare(declared)
        return Budget.of(book)

    def _open(self, name: str, total: Loss | None, accounting: Accounting | None) -> None:
        """Open a budget, unless another process has opened it meanwhile."""
        if total is None:
            raise ParameterError(
                f"'epsilon' is missing: the ledger holds no budget {name!r} yet.",
                "epsilon=1.0 opens it; a budget that is there needs no epsilon.",
            )
        body = Terms(total, "basic" if accounting is None else accounting).to_json(datetime.now(UTC))

        def add(writer: Writer) -> None:
            if writer.head is None:
                writer.add("", "ledger", None, {"format": FORMAT, "time": body["time"]})
            if writer.find(name, "open") is None:
                charged = writer.last_charge(name, 0)
                if charged is not None:  # by the table, where its index finds nothing
                    raise altered(charged)
                writer.add(name, "open", None, body)

        self.chain.write(add)

    def _is_open(self, name: str) -> bool:
        try:
            return self.chain.read(lambda reader: reader.find(name, "open") is not None)
        except MissingLedgerError:
            return False  # writing makes it

    def budget(self, name: str) -> Budget:
        """Return the budget of this name; raise LedgerError where there is none."""
        budget = Budget.of(StoredBook(self.chain, check_name(name, "name")))
        _ = budget.account
        return budget

    def entries(self, name: str, start: int | None = None, stop: int | None = None) -> pd.DataFrame:
        """Return one row per charge of the budget of this name, as `Budget.entries`; or a page of them.

        ``start``, ``stop``: the rows that ``.iloc[start:stop]`` picks of all. Only these are kept in memory,
        with ``answered`` and ``cumulative_dr_ha`` as in the whole table. ``start=-10`` picks the last ten
        charges.

        Raises ParameterError for a ``start`` or ``stop`` that is not a whole number.
        """
        ends = {"start": start, "stop": stop}
        pick = slice(*(None if end is None else whole(end, argument) for argument, end in ends.items()))
        from pdprivacy.show import pages

        return pages.read_table(StoredBook(self.chain, check_name(name, "name")), pick)[1]

    def to_dp_events(self, name: str) -> Any:
        """Return the releases of the data of this name as an event of dp-accounting (extra ``pld``)."""
        return self.budget(name).to_dp_events()

    @property
    def budgets(self) -> pd.DataFrame:
        """One row per budget: total, spent and left (in epsilon, or rho, and delta), accounting, charges."""
        rows = {}
        for name, account in self.accounts()[1].items():
            terms = account.terms
            amounts, deltas = zip(*map(doubles, (account.left, account.used, account.total)), strict=True)
            unit = None if terms.unit is None else str(terms.unit)
            rows[name] = (*amounts, terms.currency, *deltas, terms.accounting, unit, account.charges)
        columns = ["left", "spent", "total", "currency", "left_delta", "spent_delta", "total_delta"]
        columns += ["accounting", "neighbors", "charges"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis(index="name")

    def accounts(self) -> tuple[Row | None, dict[str, Account]]:
        """Return the last record, and the account of each budget at that record."""

        def look(reader: Reader) -> tuple[Row | None, dict[str, Account]]:
            accounts = {}
            for name, last in reader.last_charges().items():
                if reader.find(name, "open") is None:
                    raise hidden(name)
                accounts[name] = StoredBook(self.chain, name).account_in(reader, last)
            return reader.head, accounts

        return self.chain.read(look)

    @property
    def head(self) -> str:
        """The number and the hash of the last record, ``"number:hash"``; keep it elsewhere for `audit`."""
        last = self.chain.head()
        return "" if last is None else last.label

    def audit(self, head: str | None = None) -> Audit:
        """Read every record, and check that it is what was entered.

        ``head``: an earlier `head` that was kept elsewhere. The audit detects a changed, removed, swapped or
        added record; wrong sums; charges over the cap; and a trigger, an index or a page of the database that
        is not as it was made. With a ``head``, it also detects an older copy, and a chain that was made up
        afterwards: whoever can write the whole file can write another whole chain.

        Raises
        ------
        TamperedLedgerError : the ledger is not what was entered; the message names each fault.
        ParameterError : an invalid ``head``.
        """
        return audit.audit(self.chain, head)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger as it is now to a new file (SQLite only).

        Raises LedgerError where the file exists or cannot be written; ParameterError for a server, which has
        backups of its own.
        """
        self.chain.store.backup(path, self.chain.checked_rows(self.chain.head()))

    def close(self) -> None:
        """Close connections; a later use opens them again."""
        self.chain.store.close()


def _store(address: str | os.PathLike[str]) -> Store:
    """The store at a path or a URL."""
    if isinstance(address, str) and "://" in address:
        if not address.startswith("postgres"):
            raise ParameterError(
                "'address' must be a path, or the URL of a PostgreSQL database.",
                'Ledger("budget.db"), or Ledger("postgresql://clerk@db.example.org/privacy").',
            )
        from pdprivacy.ledger.postgres import PostgresStore

        return PostgresStore(address)
    if not isinstance(address, str | os.PathLike):
        raise ParameterError(
            f"'address' must be a path or a URL (got {type(address).__name__}).", 'Ledger("budget.db").'
        )
    if address == ":memory:":
        raise ParameterError("A ledger is kept on disk.", "Budget(epsilon=1.0) is kept in memory.")
    from pdprivacy.ledger.sqlite import SQLiteStore

    return SQLiteStore(address)
