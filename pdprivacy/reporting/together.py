"""What each release cost, what all cost together, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdprivacy.markup import Markup
from pdprivacy.reporting import words
from pdprivacy.reporting.costs import Total
from pdprivacy.reporting.figures import cost
from pdprivacy.reporting.pieces import Contents, box, first_upper, paragraphs, quoted, stated
from pdprivacy.reporting.reading import Release
from pdprivacy.reporting.tables import Shown, table

__all__ = ["costs"]


def costs(contents: Contents) -> Markup:
    """The cost of each release and of all, and what that means."""
    rows = [
        [one.name, words.noise(one), cost(one.loss.epsilon), cost(one.loss.delta) if one.loss.delta else "0"]
        for one in contents.releases
    ]
    each = Shown(
        "What each result says that it cost",
        ["Result", "Noise", "epsilon", "delta"],
        rows,
        text=frozenset({1}),
    )
    lead = (
        "Epsilon measures what a result may give away about one person: 0 is nothing, and each further "
        "result adds to it. Delta is a small probability beside it; 0 is best."
    )
    pieces = [paragraphs([lead]), table(each, "costs")]
    for number, total in enumerate(contents.totals, 1):
        pieces.append(_total(total, number, contents))
    return Markup("".join(pieces))


def _total(total: Total, number: int, contents: Contents) -> Markup:
    several = len(contents.totals) > 1
    pieces = [Markup(f"<h3>All together{f', comparison {number}' if several else ''}</h3>")]
    told = [f"What is compared: data with {words.protected(total.unit)}."]
    if several:
        told.append(f"Of this kind: {quoted(total.releases)}.")
    pieces.append(paragraphs(told))
    if total.parts:
        pieces.append(table(_sums(total), f"total{number}"))
    pieces.append(paragraphs(_vouched(total, contents)))
    if total.epsilon is None:
        pieces.append(box([f"No total can be stated: {total.why}."]))
    elif contents.seeded:
        pieces.append(box(["Nothing of this is promised: see “Not private” above."]))
    else:
        pieces.append(Markup("<h4>What that means</h4>"))
        pieces.append(paragraphs(words.meaning(total.unit, total.epsilon, total.delta)))
    return Markup("".join(pieces))


def _sums(total: Total) -> Shown:
    rows = []
    for part in total.parts:
        amount = f"rho {cost(part.rho)}" if part.rho is not None else cost(part.epsilon or 0)  # type: ignore[arg-type]
        rows.append([first_upper(part.what), amount, cost(part.delta) if part.delta else "0"])
    whole = total.epsilon is not None
    if whole and len(rows) > 1 and total.epsilon is not None:
        rows.append(["Together, at most", cost(total.epsilon), cost(total.delta) if total.delta else "0"])
    return Shown("Cost in total", ["What", "epsilon", "delta"], rows, last=whole and len(rows) > 1)


def _vouched(total: Total, contents: Contents) -> list[str]:
    """Where a total comes from, and what it leaves out."""
    account = None if contents.charges is None else contents.charges.account
    told = []
    if total.from_budget and account is not None:
        rule = account.terms.accounting
        told.append(
            f"The budget allows {_allowed(account)} in all and refuses what goes beyond it. It has counted "
            "everything that was charged to it, also what is not shown here."
        )
        if rule != "basic" or account.terms.in_rho:
            told.append(
                "It adds up losses by a rule under which many small ones cost less; what that rule "
                "guarantees is the limit as a whole, not what has been used of it so far."
            )
    else:
        told.append(
            "It holds if nothing else was released from the same data: this report knows of no other "
            "result, and losses add up over all results ever made."
        )
        latest = _latest(total.releases)
        if latest is not None and total.epsilon is not None and latest > float(total.epsilon) * (1 + 1e-9):
            told.append(
                f"One of the results says that epsilon {latest:.6g} had been spent of its budget by then, "
                "which is more: other results were paid for that are not in this report."
            )
    if total.outside and not total.from_budget:
        told.append(
            "The budget that was handed in counts another comparison, and so says nothing of this cost."
        )
    elif total.outside:
        told.append(
            f"Not known to be paid by this budget: {quoted(total.outside)}. Their cost is added to be on "
            "the safe side; results from the groups of a partition may have been paid with it already."
        )
    return told


def _allowed(account: Any) -> str:
    amount, delta = account.total
    if account.to_json().get("currency") == "rho":
        return f"rho {cost(amount)}"
    return stated(amount, delta)


def _latest(releases: Sequence[Release]) -> float | None:
    """The largest epsilon that a release says was spent when it was made."""
    spent = [
        float(one.facts.budget["spent"][0])
        for one in releases
        if one.facts.budget.get("currency") is None and one.facts.budget.get("accounting") is None
    ]
    return max(spent, default=None)
