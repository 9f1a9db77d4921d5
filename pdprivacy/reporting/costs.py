"""What all releases cost together: by the budget that paid for them, or added up from what each says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pdprivacy.accounting import Spent, zcdp_epsilon
from pdprivacy.checks import check_name
from pdprivacy.errors import LedgerError, ParameterError, TamperedLedgerError, got
from pdprivacy.ledger import Account, Audit, Budget, Entry, Ledger
from pdprivacy.ledger.audit import audit
from pdprivacy.ledger.book import StoredBook
from pdprivacy.ledger.chain import Chain
from pdprivacy.metadata import Metadata
from pdprivacy.privacy import ZCDP, Unit
from pdprivacy.reporting.reading import Edition, Release

__all__ = ["Charges", "Part", "Total", "charges_of", "totals"]

DELTA = Fraction(1, 10**6)
"""Of the epsilon that stands for a cap in rho."""

OUTLIERS = "suppress_outliers("
PLAN = "plan: "
RUN = re.compile(r"([1-9][0-9]{0,8}) x ", re.ASCII)

TRY = 'pdprivacy.report(releases, ledger="budget.db", name="survey-2026").'


@dataclass(frozen=True)
class Charges:
    """A budget as of one moment. ``fault``: what an audit found, in which case the rest may be missing.

    ``audited``: None of a budget in memory.
    """

    name: str
    account: Account | None
    entries: tuple[Entry, ...]
    audited: Audit | None = None
    fault: str | None = None


def charges_of(ledger: Any, name: str | None, edition: Edition) -> Charges | None:
    """What the budget holds; reads, and writes nothing.

    Raises ParameterError for what is no budget, LedgerError where it cannot be read, and in the public
    edition TamperedLedgerError where its records are not those that were entered.
    """
    if ledger is None:
        if name is not None:
            raise ParameterError("'name' is of a budget in a ledger, and there is no 'ledger'.", TRY)
        return None
    if isinstance(ledger, Budget):
        return _of_budget(ledger, name, edition)
    if name is None:
        raise ParameterError("'name' is missing: a ledger keeps a budget per name.", TRY)
    checked = check_name(name, "name")
    if isinstance(ledger, Ledger):
        return _of_chain(ledger.chain, checked, edition)
    if not isinstance(ledger, str | os.PathLike):
        raise ParameterError(
            f"'ledger' must be a Ledger, its path or URL, or a Budget (got {got(ledger)}).", TRY
        )
    with Ledger(ledger) as opened:
        return _of_chain(opened.chain, checked, edition)


def _of_budget(budget: Budget, name: str | None, edition: Edition) -> Charges:
    if name is not None and name != budget.name:
        raise ParameterError(
            "'name' is not that of the 'ledger', which is a budget by itself.", "leave it out."
        )
    if budget.of_group:
        raise ParameterError(
            "The 'ledger' is the budget of a group of partition(), and not that of all records.",
            "ledger=private.dp.budget of the whole table.",
        )
    book = budget._book
    if isinstance(book, StoredBook):
        return _of_chain(book.chain, book.name, edition)
    account, entries = book.entries()
    return Charges("", account, tuple(entries))


def _of_chain(chain: Chain, name: str, edition: Edition) -> Charges:
    """Of a ledger, after an audit of all its records."""
    book = StoredBook(chain, name)
    try:
        audited = audit(chain)
        account, entries = book.entries()
    except TamperedLedgerError as error:
        if edition == "public":
            raise
        return _damaged(book, name, str(error).partition("\n")[0])
    return Charges(name, account, tuple(entries), audited)


def _damaged(book: StoredBook, name: str, fault: str) -> Charges:
    """What can still be read of a ledger that is not what was entered, for the curator."""
    try:
        account, entries = book.entries()
    except LedgerError:
        return Charges(name, None, (), None, fault)
    return Charges(name, account, tuple(entries), None, fault)


@dataclass(frozen=True)
class Part:
    """A part of a total: what, and its epsilon and delta, or rho."""

    what: str
    epsilon: Fraction | None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None


@dataclass(frozen=True)
class Total:
    """What is known of all releases between neighbours of one kind.

    ``epsilon``, ``delta``: such that everything together is (epsilon, delta)-private; None where that is not
    known, and why. ``from_budget``: whether the budget vouches for it, with everything else that it paid.
    ``outside``: the releases of the report that the budget is not known to have paid.
    """

    unit: Unit
    releases: tuple[Release, ...]
    parts: tuple[Part, ...]
    epsilon: Fraction | None
    delta: Fraction
    why: str = ""
    from_budget: bool = False
    outside: tuple[Release, ...] = ()

    @property
    def seeded(self) -> bool:
        """Whether some noise can be repeated, so that nothing is private."""
        return any(one.facts.seeded for one in self.releases)


def totals(releases: Sequence[Release], charges: Charges | None) -> list[Total]:
    """A total per kind of neighbours: losses of different kinds do not add up."""
    units = list(dict.fromkeys(unit_of(one) for one in releases))
    account = None if charges is None else charges.account
    spent_by = None if account is None else account.terms.unit
    found = []
    for unit in units:
        held = tuple(one for one in releases if unit_of(one) == unit)
        if charges is not None and charges.fault is not None:
            why = "the ledger is not what was entered, so that nothing can be said by it"
            found.append(Total(unit, held, (), None, Fraction(0), why))
        elif charges is not None and account is not None and spent_by == unit:
            found.append(_by_budget(unit, held, charges, account))
        else:
            found.append(_by_sum(unit, held, outside=held if charges is not None else ()))
    return found


def unit_of(release: Release) -> Unit:
    """Between whose data the loss of a release is."""
    return Unit(release.facts.neighbors, release.facts.unit)  # type: ignore[arg-type]


def _sum(releases: Sequence[Release]) -> Spent:
    return Spent.of([one.loss for one in releases])


def _unclear(releases: Sequence[Release]) -> str:
    """Why the losses that these releases state do not tell what all cost; nothing where they do."""
    named = [one.name for one in releases if any(OUTLIERS in step for step in one.facts.lineage)]
    if not named:
        return ""
    return (
        "what remains after suppress_outliers is paid for as a whole, which only the budget tells "
        f"({', '.join(named)})"
    )


def _closed(total: Total) -> Total:
    """The total, unless its deltas leave nothing of a guarantee."""
    if total.epsilon is None or total.delta < 1:
        return total
    why = "the deltas add up to one or more, which guarantees nothing"
    return Total(
        total.unit, total.releases, total.parts, None, total.delta, why, total.from_budget, total.outside
    )


def _by_sum(unit: Unit, releases: tuple[Release, ...], outside: tuple[Release, ...]) -> Total:
    spent = _sum(releases)
    parts = (Part("the releases of this report, added up", spent.epsilon, spent.delta),)
    if why := _unclear(releases):
        return Total(unit, releases, (), None, Fraction(0), why, outside=outside)
    return _closed(Total(unit, releases, parts, spent.epsilon, spent.delta, outside=outside))


def _by_budget(unit: Unit, releases: tuple[Release, ...], charges: Charges, account: Account) -> Total:
    """What the budget counted, and on top what it is not known to have paid."""
    used = payments(releases, charges.entries)
    outside = tuple(one for one in releases if one.place not in used)
    terms, spent = account.terms, account.spent
    parts = []
    if isinstance(terms.total, ZCDP):
        cap = Fraction(repr(zcdp_epsilon(terms.total.rho, DELTA)))
        epsilon, delta = cap, DELTA
        parts.append(Part("the limit of the budget, which no release may exceed", None, rho=terms.total.rho))
        parts.append(Part("the same in epsilon, at this delta", epsilon, delta))
    elif terms.accounting != "basic":
        epsilon, delta = terms.total.epsilon, terms.total.delta
        parts.append(Part("the limit of the budget, which no release may exceed", epsilon, delta))
    else:
        epsilon, delta = spent.epsilon, spent.delta
        parts += _listed(charges, used, epsilon, delta)
    if outside:
        more = _sum(outside)
        if why := _unclear(outside):
            return Total(unit, releases, tuple(parts), None, delta, why, True, outside)
        parts.append(Part("releases that the budget is not known to have paid", more.epsilon, more.delta))
        epsilon, delta = epsilon + more.epsilon, delta + more.delta
    return _closed(Total(unit, releases, tuple(parts), epsilon, delta, "", True, outside))


def _listed(charges: Charges, used: dict[int, int], epsilon: Fraction, delta: Fraction) -> list[Part]:
    """The charges for releases of the report, and all others in one sum."""
    paid = Spent()
    for number in set(used.values()):
        entry = charges.entries[number - 1]
        paid = paid.add(entry.loss, entry.count)
    return [
        Part("charged for releases of this report", paid.epsilon, paid.delta),
        Part("charged for anything else from the same data", epsilon - paid.epsilon, delta - paid.delta),
    ]


def payments(releases: Sequence[Release], entries: Sequence[Entry]) -> dict[int, int]:
    """The charge that paid for each release, by their numbers; a release that is in none is left out.

    A charge pays for one release, or for those of a plan. That two releases say the same of their budget
    does not make them one: equal numbers may come of different noise.
    """
    found: dict[int, int] = {}
    room: dict[int, int] = {}
    waiting: dict[str, list[Entry]] = {}
    stated = {(one.facts.epsilon, one.facts.delta) for one in releases}
    for entry in entries:
        if _is_plan(entry) or _stated(entry) in stated:  # what stands after each of them takes long to tell
            room[entry.number] = _pays_for(entry)
            waiting.setdefault(_key(entry.after.to_json()), []).append(entry)
    for release in releases:
        for entry in waiting.get(_key(release.facts.budget), []):
            if room[entry.number] and _paid_by(release, entry):
                found[release.place] = entry.number
                room[entry.number] -= 1
                break
    return found


def _stated(entry: Entry) -> tuple[float, float] | None:
    """What a charge was asked to cost, as the metadata of its release has it."""
    if isinstance(entry.loss, ZCDP):
        return None
    return float(entry.loss.epsilon * entry.count), float(entry.loss.delta * entry.count)


def _pays_for(entry: Entry) -> int:
    """How many releases a charge pays for: one, or those of a plan."""
    if not _is_plan(entry):
        return 1
    runs = entry.label.removeprefix(PLAN).split("; ")
    return sum(int(found[1]) if (found := RUN.match(run)) else 1 for run in runs)


def _key(budget: Any) -> str:
    """What a release and its charge both say of the budget afterwards."""
    sums = [[float(one) for one in budget[name]] for name in ("total", "spent")]
    return repr((sums, budget.get("accounting"), budget.get("currency")))


def _is_plan(entry: Entry) -> bool:
    return entry.label.startswith(PLAN)


def _paid_by(release: Release, entry: Entry) -> bool:
    """Whether a charge is of this release, as far as both say: what, of which columns and records."""
    facts = release.facts
    if facts.mechanism not in entry.mechanism:
        return False
    if _is_plan(entry):
        runs = [RUN.sub("", run, 1) for run in entry.label.removeprefix(PLAN).split("; ")]
        losses = [event.loss for event, _ in entry.events]
        stated = {(float(one.epsilon), float(one.delta)) for one in losses if not isinstance(one, ZCDP)}
        return (facts.epsilon, facts.delta) in stated and any(_is_label(facts, run) for run in runs)
    same = _stated(entry) == (facts.epsilon, facts.delta) and facts.release_id == entry.release
    return same and _is_label(facts, entry.label)


def _is_label(facts: Metadata, label: str) -> bool:
    """Whether a budget lists a release of these facts so, whose columns are keys first and then values."""
    after = [f"(?:{re.escape(step)}|{re.escape(step.partition('(')[0])})" for step in facts.lineage]
    end = re.escape(f" where {' and '.join(f'({one})' for one in facts.filters)}" if facts.filters else "")
    end += f" after {', '.join(after)}" if after else ""
    end += f", {facts.releases} releases" if facts.releases > 1 else ""
    end += "(?:, [0-9]+ (?:iteration|step)s?)?"  # of clusters
    for keys in range(len(facts.columns) + 1):
        by, of = facts.columns[:keys], facts.columns[keys:]
        start = facts.statistic
        start += f" of {', '.join(of)}" if of else ""
        start += f" by {', '.join(by)}" if by else ""
        if re.fullmatch(re.escape(start) + end, label):
            return True
    return False
