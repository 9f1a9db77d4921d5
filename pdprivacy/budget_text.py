"""A budget, and the budgets of a ledger, as text and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from pdprivacy import markup
from pdprivacy.privacy import ZCDP, show

if TYPE_CHECKING:
    from pdprivacy.ledger import Account, Entry

__all__ = ["MOST_ROWS", "heading", "page", "plain", "reached", "shelf"]

MOST_ROWS = 1000
"""Charges that are shown one by one."""

Row = tuple[str, str, str]


def plain(account: Account, entries: Sequence[Entry], name: str = "") -> str:
    """The summary, and a line per charge; of a budget that has a name, also which are not answered."""
    lines = [_head(account, name)]
    lines += [f"  {what:<6} {amount:<18} {delta}".rstrip() for what, amount, delta in _summary(account)]
    if account.charges > len(entries):
        return "\n".join([*lines, f"  {account.charges:,} charges, listed by .entries"])
    costs = [_cost(entry) for entry in entries]
    widths = [
        max((len(part) for part in column), default=0)
        for column in (
            [entry.label for entry in entries],
            [amount for amount, _ in costs],
            [entry.mechanism for entry in entries],
        )
    ]
    for entry, (amount, delta), risk in zip(entries, costs, reached(entries), strict=True):
        line = (
            f"  {entry.number:>4}  {entry.label:<{widths[0]}}  {amount:<{max(widths[1], 16)}} {delta:<14} "
            f"{entry.mechanism:<{widths[2]}}  {_percent(risk, 'risk ')}"
            f"{'  not answered' if name and not entry.answered else ''}"
        )
        lines.append(line.rstrip())
    return "\n".join(lines)


def page(account: Account, entries: Sequence[Entry], name: str = "") -> str:
    """The same as an HTML table; of a budget that has a name, also which charges are not answered."""
    known = any(entry.dr_ha is not None for entry in entries)
    named = "rho" if isinstance(account.terms.total, ZCDP) else "epsilon"
    head = ["", named, "delta", "mechanism", *(["risk"] if known else [])]
    rows = [[what, _value(amount), _value(delta)] for what, amount, delta in _summary(account)]
    for entry, risk in zip(entries, reached(entries), strict=True):
        amount, delta = _cost(entry)
        waiting = " (not answered)" if name and not entry.answered else ""
        told = [
            f"{entry.number}. {entry.label}{waiting}",
            _value(amount, named),
            _value(delta),
            entry.mechanism,
        ]
        rows.append([*told, *([_percent(risk)] if known else [])])
    if account.charges > len(entries):
        rows = [*rows[:3], [f"{account.charges:,} charges, listed by .entries"]]
    return markup.table(head, rows, caption=_head(account, name), text={3})


def shelf(address: str, budgets: pd.DataFrame) -> str:
    """The budgets of a ledger as an HTML table: of each what was spent of what, and what is left.

    ``budgets``: as of `Ledger.budgets`.
    """
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


def _head(account: Account, name: str) -> str:
    terms = account.terms
    unit = "" if terms.unit is None else f", neighbors {terms.unit}"
    accounting = "" if terms.accounting == "basic" else f", accounting {terms.accounting}"
    return f"{heading(name)}{unit}{accounting}"


def heading(name: str) -> str:
    """Return the heading of a budget, with its name in a ledger if it has one."""
    return f"Privacy budget {name!r}" if name else "Privacy budget"


def _summary(account: Account) -> list[Row]:
    """(what, epsilon or rho, delta) of total, spent and left."""
    terms = account.terms
    amounts = [account.total, terms.rule.spent(account.spent), terms.rule.left(account.spent)]
    named = "rho" if isinstance(terms.total, ZCDP) else "epsilon"
    return [
        (what, f"{named} {show(amount)}", "" if named == "rho" else f"delta {show(delta)}")
        for what, (amount, delta) in zip(("total", "spent", "left"), amounts, strict=True)
    ]


def _cost(entry: Entry) -> tuple[str, str]:
    epsilon, delta, rho = entry.amounts
    if epsilon is None or delta is None:
        return f"rho {show(rho)}", ""
    return f"epsilon {show(epsilon)}", f"delta {show(delta)}"


def _value(named: str, expected: str | None = None) -> str:
    """The number of ``epsilon 0.1``; whole where it is in another currency than the column's."""
    name, _, number = named.partition(" ")
    return named if expected is not None and name != expected else number


def _percent(risk: float, before: str = "") -> str:
    return "" if math.isnan(risk) else f"{before}{100 * risk:.1f} % of records"


def reached(entries: Sequence[Entry]) -> list[float]:
    """The largest risk up to each entry; NaN before the first that has one."""
    risks, most = [], math.nan
    for entry in entries:
        if entry.dr_ha is not None and not entry.dr_ha <= most:
            most = entry.dr_ha
        risks.append(most)
    return risks
