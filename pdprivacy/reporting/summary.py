"""What a reader with one minute should know."""

from __future__ import annotations

from pdprivacy.markup import Markup
from pdprivacy.plot.canvas import percent
from pdprivacy.reporting import words
from pdprivacy.reporting.costs import Total
from pdprivacy.reporting.pieces import Contents, box, items, many, quoted, stated

__all__ = ["summary"]


def summary(contents: Contents) -> Markup:
    """What a reader with one minute should know."""
    columns = list(dict.fromkeys(name for one in contents.releases for name in one.facts.columns))
    of = f", of the columns {', '.join(columns)}" if columns else ""
    told = [f"Released: {many(len(contents.releases), 'result')}{of}."]
    told += [_cost_in_short(one, contents) for one in contents.totals]
    if len(contents.totals) > 1:
        told.append(
            "The results protect against different comparisons (see “What it cost”), whose costs do not add "
            "up: each figure above stands for itself, and there is no figure for all of them together."
        )
    told.append(
        "Each result is random, by as much as is stated beside it: numbers carry noise, choices are drawn."
    )
    told.append(_risk_in_short(contents))
    return Markup(_not_private(contents) + items(told))


def _not_private(contents: Contents) -> Markup:
    seeded = contents.seeded
    if not seeded:
        return Markup("")
    whole = len(seeded) == len(contents.releases)
    of = "All results here were" if whole else f"{quoted(seeded)} {'was' if len(seeded) == 1 else 'were'}"
    more = "" if whole else " One such result is enough: no guarantee holds for the results as a whole."
    return box(
        [
            Markup("<strong>Not private.</strong>"),
            f"{of} made with noise from a seed. Whoever knows the seed can take the noise off again and has "
            f"the exact numbers.{more} Epsilon and delta below are what would hold if the noise were secret.",
        ]
    )


def _cost_in_short(total: Total, contents: Contents) -> str:
    between = f"Compared are data with {words.protected(total.unit)}."
    if total.epsilon is None:
        return f"Cost: not known, because {total.why}. {between}"
    told = f"Cost: {stated(total.epsilon, total.delta)} at most"
    if total.from_budget:
        told += (
            ", counting everything that was charged to the budget, also for results that are not shown here, "
            "where none of those was made with noise from a seed."
        )
    else:
        told += ", if nothing else was released from the same data."
    if contents.seeded:
        return f"{told} It does not hold: see the warning above."
    if not total.delta and total.epsilon <= 20:
        told += f" {words.guess(total.unit, total.epsilon)}"
    return f"{told} {between}"


def _risk_in_short(contents: Contents) -> str:
    known = [one for one in contents.releases if one.facts.dr_ha is not None]
    if not known:
        return "The risk of a homogeneity attack is not known for any of the results."
    worst = max(known, key=lambda one: float((one.facts.dr_ha or {})["by_records"]))
    share = percent(float((worst.facts.dr_ha or {})["by_records"]))
    return f"A homogeneity attack on “{worst.name}” is estimated to succeed for {share} of the records" + (
        ", the most of all tables for which this is known." if len(known) > 1 else "."
    )
