"""A budget, and the budgets of a ledger, as text, as HTML and as tables."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import LedgerError, MissingLedgerError
from pdprivacy.exact import near
from pdprivacy.privacy import show
from pdprivacy.show import markup
from pdprivacy.show.numbers import percent

if TYPE_CHECKING:
    from pdprivacy.ledger import Account, Budget, Entry, Ledger
    from pdprivacy.ledger.book import Book

__all__ = ["MOST_ROWS", "block", "heading", "html", "ledger_html", "page", "plain", "reached"]
__all__ += ["read_table", "shelf", "table", "text"]

MOST_ROWS = 1000
"""Charges that are shown one by one."""

Row = tuple[str, str, str]


def plain(account: Account, entries: Sequence[Entry], name: str = "") -> str:
    """Return `block` as text."""
    return block(account, entries, name).plain


def page(account: Account, entries: Sequence[Entry], name: str = "") -> str:
    """Return `block` as an HTML table."""
    return block(account, entries, name).html


def block(account: Account, entries: Sequence[Entry], name: str = "") -> markup.Block:
    """Return the summary and a row per charge; of a named budget, also which charges are not answered."""
    named, title = account.terms.currency, _title(account, name)
    lines, rows = [title], []
    for what, amount, delta in _summary(account, entries):
        lines.append(f"  {what:<6} {amount:<18} {delta}")
        rows.append([what, amount.removeprefix(f"{named} "), delta.removeprefix("delta ")])
    costs = [_cost(entry) for entry in entries]
    labels = max((len(entry.label) for entry in entries), default=0)
    amounts = max([16, *(len(amount) for amount, _ in costs)])
    for entry, (amount, delta) in zip(entries, costs, strict=True):
        waiting = "not answered" if name and not entry.answered else ""
        made = f"{entry.mechanism}  {waiting}"
        lines.append(f"  {entry.number:>4}  {entry.label:<{labels}}  {amount:<{amounts}} {delta:<14} {made}")
        text = f"{entry.number}. {entry.label}" + (f" ({waiting})" if waiting else "")
        rows.append([text, amount.removeprefix(f"{named} "), delta.removeprefix("delta "), entry.mechanism])
    if account.charges > len(entries):
        more = f"{account.charges:,} charges, listed by .entries"
        lines.append(f"  {more}")
        rows.append([more])
    head = ["", named, "delta", "mechanism"]
    table = markup.table(head, rows, caption=title, text={3})
    return markup.Block("\n".join(line.rstrip() for line in lines), table)


def shelf(address: str, budgets: pd.DataFrame) -> str:
    """Return the budgets of a ledger as an HTML table; ``budgets``: as of `Ledger.budgets`."""
    head = ["name", "total", "spent", "left", "accounting", "neighbors", "charges"]
    rows = []
    for name, one in budgets.to_dict("index").items():
        amounts = [f"{one['currency']} {one[what]:.12g}" for what in head[1:4]]
        if one["currency"] != "rho":
            deltas = (one[f"{what}_delta"] for what in head[1:4])
            amounts = [f"{amount}, delta {delta:.12g}" for amount, delta in zip(amounts, deltas, strict=True)]
        unit = one["neighbors"] if isinstance(one["neighbors"], str) else ""  # none before it is used
        rows.append([name, *amounts, one["accounting"], unit, f"{one['charges']:,}"])
    return markup.table(head, rows, caption=f"Ledger {address}", text={4, 5})


def _title(account: Account, name: str) -> str:
    terms = account.terms
    unit = "" if terms.unit is None else f", neighbors {terms.unit}"
    accounting = "" if terms.accounting == "basic" else f", accounting {terms.accounting}"
    return f"{heading(name)}{unit}{accounting}"


def heading(name: str) -> str:
    """Return the heading of a budget, with its name in a ledger if it has one."""
    return f"Privacy budget {name!r}" if name else "Privacy budget"


def _summary(account: Account, entries: Sequence[Entry]) -> list[Row]:
    """(what, epsilon or rho, delta) of total, spent and left, and the cumulative risk if one is known."""
    amounts = [account.total, account.used, account.left]
    named = account.terms.currency
    rows = [
        (what, f"{named} {show(amount)}", "" if named == "rho" else f"delta {show(delta)}")
        for what, (amount, delta) in zip(("total", "spent", "left"), amounts, strict=True)
    ]
    known = [risk for risk in reached(entries)[-1:] if not math.isnan(risk)]
    return [*rows, *(("risk", f"{percent(risk)} of records, cumulative (dr_ha)", "") for risk in known)]


def _cost(entry: Entry) -> tuple[str, str]:
    epsilon, delta, rho = entry.amounts
    if epsilon is None or delta is None:
        return f"rho {show(rho)}", ""
    return f"epsilon {show(epsilon)}", f"delta {show(delta)}"


def reached(entries: Sequence[Entry]) -> list[float]:
    """Return the largest risk up to each entry; NaN before the first entry with a risk."""
    risks, most = [], math.nan
    for entry in entries:
        if entry.dr_ha is not None and not entry.dr_ha <= most:
            most = entry.dr_ha
        risks.append(most)
    return risks


def text(budget: Budget) -> str:
    """Return a budget as text, and why it cannot be read if so: what a prompt calls must not raise."""
    try:
        return plain(*_listed(budget), budget.name)
    except LedgerError as error:
        return f"{heading(budget.name)}: it cannot be read. {error}"


def html(budget: Budget) -> str:
    """Return a budget as HTML; as `text` if it cannot be read."""
    try:
        return page(*_listed(budget), budget.name)
    except LedgerError:
        return markup.warning(text(budget))


def ledger_html(ledger: Ledger) -> str:
    """Return the budgets of a ledger as HTML, or why they cannot be read."""
    try:
        return shelf(ledger.address, ledger.budgets)
    except MissingLedgerError:
        return markup.note(f"Ledger {ledger.address}: no budget is open yet")
    except LedgerError as error:
        return markup.warning(f"Ledger {ledger.address}: {error}")


def _listed(budget: Budget) -> tuple[Account, list[Entry]]:
    """Return the account, and the charges if they are few enough to be shown."""
    account = budget.account
    return budget._book.entries() if account.charges <= MOST_ROWS else (account, [])


# ---------------------------------------------------------------- as tables


ENTRY_TYPES: dict[str, Any] = {"release": str, "mechanism": str, "epsilon": float, "delta": float}
ENTRY_TYPES |= {"rho": float, "time": "datetime64[us, UTC]", "release_id": object}


def _cells(entry: Entry) -> tuple[Any, ...]:
    """Return the cells of a charge; equal texts are kept once."""
    epsilon, delta, rho = entry.amounts
    amounts = (math.nan if amount is None else near(amount) for amount in (epsilon, delta, rho or None))
    return sys.intern(str(entry.label)), sys.intern(str(entry.mechanism)), *amounts, entry.time, entry.release


def _frame(rows: list[tuple[Any, ...]], first: int, answered: Any, reached: Any) -> pd.DataFrame:
    """Return the table of rows that `_cells` made; ``first`` is the number of the first charge."""
    index = pd.RangeIndex(first, first + len(rows), name="charge")
    frame = pd.DataFrame(rows, index, columns=list(ENTRY_TYPES), dtype=object).astype(ENTRY_TYPES)
    frame.insert(6, "answered", np.array(answered, dtype=bool))
    frame.insert(7, "dr_ha", np.array(reached, dtype="float64"))
    return frame


def read_table(book: Book, pick: slice = slice(None)) -> tuple[Account, pd.DataFrame]:
    """Return the account, and one row per picked charge; see `Budget.entries`."""
    rows: list[tuple[Any, ...]] = []
    account, answered, risks = book.read(lambda entry: rows.append(_cells(entry)), pick)
    first = pick.indices(account.charges)[0] + 1
    return account, _frame(rows, first, answered[pick], np.fmax.accumulate(risks)[pick])


def table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row per charge; see `Budget.entries`."""
    rows = [_cells(entry) for entry in entries]
    return _frame(rows, 1, [entry.answered for entry in entries], reached(entries))
