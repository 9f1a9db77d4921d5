"""What the curator's edition holds beyond the public one: charges, the audit, and exact figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from pdprivacy.ledger import Entry
from pdprivacy.markup import Markup
from pdprivacy.plot.canvas import percent
from pdprivacy.privacy import Confidential
from pdprivacy.releases.disclosure.cells import Homogeneity
from pdprivacy.reporting.costs import Charges, payments
from pdprivacy.reporting.figures import cost
from pdprivacy.reporting.pictures import budget_picture, figure_picture
from pdprivacy.reporting.pieces import Contents, box, paragraphs
from pdprivacy.reporting.prose import escape
from pdprivacy.reporting.tables import MOST_ROWS, Shown, frame_table, table

__all__ = ["figures", "ledger"]


def ledger(contents: Contents) -> Markup:
    """The budget, charge by charge, and whether its records are what was entered."""
    charges = contents.charges
    if charges is None:
        return paragraphs(["No budget was handed to this report."])
    pieces = [_audit(charges)]
    if charges.account is not None:
        pieces.append(paragraphs(_state(charges)))
        picture = budget_picture(charges) if contents.pictures else None
        pieces += [] if picture is None else [picture]
        if charges.entries:
            pieces.append(table(_listed(contents, charges), "charges"))
    return Markup("".join(pieces))


def _audit(charges: Charges) -> Markup:
    if charges.fault is not None:
        return box([Markup("<strong>The audit failed.</strong>"), charges.fault])
    found = charges.audited
    if found is None:
        return paragraphs(
            ["The budget is in memory, where there is nothing to audit, and ends with its process."]
        )
    told = [
        f"Audit: no fault found in {found.records:,} records of {found.budgets:,} budgets; "
        f"{found.charges:,} charges, of which {found.unanswered:,} are without a known answer.",
        Markup(
            f"The head, to be kept elsewhere and given to the next audit: <code>{escape(found.head)}</code>"
        ),
    ]
    return paragraphs(told)


def _state(charges: Charges) -> list[str]:
    account = charges.account
    assert account is not None
    terms = account.terms
    named = "rho" if account.to_json().get("currency") == "rho" else "epsilon"
    amounts = [
        f"{what} {named} {cost(amount)}" + (f", delta {cost(delta)}" if delta else "")
        for what, (amount, delta) in (
            ("allowed", account.total), ("counted", terms.rule.spent(account.spent)),
            ("left", terms.rule.left(account.spent)),
        )
    ]  # fmt: skip
    name = f"Budget “{charges.name}”" if charges.name else "Budget"
    told = [f"{name}, accounting “{terms.accounting}”: {'; '.join(amounts)}."]
    waiting = [entry for entry in charges.entries if not entry.answered]
    if waiting:
        told.append(
            "Charged, but not known to have been answered: "
            f"{', '.join(str(one.number) for one in waiting[:20])}"
            + (f" and {len(waiting) - 20:,} more" if len(waiting) > 20 else "")
            + ". They are spent all the same: somebody may have seen the answer."
        )
    return told


def _listed(contents: Contents, charges: Charges) -> Shown:
    paid: dict[int, list[str]] = {}
    names = {one.place: one.name for one in contents.releases}
    for place, number in payments(contents.releases, charges.entries).items():
        paid.setdefault(number, []).append(names[place])
    rows = [_charge(entry, paid.get(entry.number, ())) for entry in charges.entries[:MOST_ROWS]]
    more = len(charges.entries) - len(rows)
    note = (
        f"The first {MOST_ROWS} of {len(charges.entries):,} charges; ledger.entries(name) has all."
        if more
        else ""
    )
    heads = [
        "No.",
        "What",
        "Noise",
        "epsilon",
        "delta",
        "When (UTC)",
        "Answered",
        "Risk",
        "Id",
        "In this report",
    ]
    return Shown("All charges", heads, rows, text=frozenset({1, 2, 5, 6, 8, 9}), note=note)


def _charge(entry: Entry, paid: Sequence[str]) -> list[object]:
    epsilon, delta, rho = entry.amounts
    return [
        entry.number,
        entry.label,
        entry.mechanism,
        f"rho {cost(rho)}" if epsilon is None else cost(epsilon),
        "" if not delta else cost(delta),
        f"{entry.time:%Y-%m-%d %H:%M}",
        "yes" if entry.answered else "no",
        "" if entry.dr_ha is None else percent(entry.dr_ha),
        entry.release,
        ", ".join(paid),
    ]


def figures(contents: Contents) -> Markup:
    """The curator's frames, as they are."""
    pieces = [
        paragraphs(["Made of exact counts. Whoever publishes one of these numbers has no guarantee left."])
    ]
    for number, (name, one) in enumerate(contents.figures.items(), 1):
        pieces.append(Markup(f"<h3>{escape(name)} (confidential)</h3>"))
        picture = figure_picture(name, one) if contents.pictures else None
        pieces += [] if picture is None else [picture]
        pieces += [table(shown, f"f{number}-{place}") for place, shown in enumerate(_tables(name, one), 1)]
    return Markup("".join(pieces))


def _tables(name: str, thing: Any) -> list[Shown]:
    if isinstance(thing, Homogeneity):
        return [
            frame_table(thing.summary, f"{name} (confidential): cells and records"),
            frame_table(thing.exposed, f"{name} (confidential): most exposed cells"),
        ]
    if isinstance(thing, Confidential):
        return [frame_table(pd.Series({name: float(thing)}, name="value"), f"{name} (confidential)")]
    return [frame_table(thing, f"{name} (confidential)")]
