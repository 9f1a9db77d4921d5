"""The total cost of releases: by the budget that paid for them, or as the sum of their metadata."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from pdprivacy.checks import check_name
from pdprivacy.core.accounting import Spent, zcdp_epsilon
from pdprivacy.core.accounting.rules import Amount
from pdprivacy.core.privacy import ZCDP, Unit
from pdprivacy.errors import LedgerError, ParameterError, TamperedLedgerError, got
from pdprivacy.ledger import Account, Audit, Budget, Entry, Ledger
from pdprivacy.ledger.audit import audit
from pdprivacy.ledger.book import StoredBook
from pdprivacy.ledger.store import Chain
from pdprivacy.text.markup import Table
from pdprivacy.text.numbers import cost, factor, loss_text, percent_down, percent_up

if TYPE_CHECKING:
    from pdprivacy.show.report import Edition, ReportedRelease


DELTA = Fraction(1, 10**6)
"""The delta at which a limit in rho is converted."""

Row: TypeAlias = tuple[str, str, str]
"""A part of a total: what, its epsilon or rho, and its delta."""

OUTLIERS = "suppress_outliers("

TRY = 'pdprivacy.report(releases, ledger="budget.db", name="survey-2026").'


@dataclass(frozen=True)
class Charges:
    """A budget at one moment.

    ``fault``: what an audit found, in which case the rest may be missing. ``audited``: None of a budget in
    memory.
    """

    name: str
    account: Account | None
    entries: tuple[Entry, ...]
    audited: Audit | None = None
    fault: str | None = None

    @property
    def allowed(self) -> str:
        """The limit of the budget."""
        assert self.account is not None
        return _amount(self.account, self.account.total)

    @property
    def amounts(self) -> list[str]:
        """The limit of the budget, the spent part and what is left."""
        assert self.account is not None
        amounts = {"limit": self.account.total, "spent": self.account.used, "left": self.account.left}
        return [f"{part} {_amount(self.account, amount)}" for part, amount in amounts.items()]


def _amount(account: Account, amount: Amount) -> str:
    if account.terms.currency == "rho":
        return f"rho {cost(amount.amount)}"
    return loss_text(amount.amount, amount.delta)


def charges_of(ledger: Any, name: str | None, edition: Edition) -> Charges | None:
    """Read a budget.

    Raises ParameterError for another object, LedgerError if the budget cannot be read, and in the public
    edition TamperedLedgerError if the records of the ledger were changed.
    """
    if ledger is None:
        if name is not None:
            raise ParameterError("'name' needs a 'ledger', which holds the budget of that name.", TRY)
        return None
    if isinstance(ledger, Budget):
        return _of_budget(ledger, name, edition)
    checked = None if name is None else check_name(name, "name")
    if isinstance(ledger, Ledger):
        return _of_chain(ledger.chain, _only_name(ledger) if checked is None else checked, edition)
    if not isinstance(ledger, str | os.PathLike):
        raise ParameterError(
            f"'ledger' must be a Ledger, its path or URL, or a Budget (got {got(ledger)}).", TRY
        )
    with Ledger(ledger) as opened:
        return _of_chain(opened.chain, _only_name(opened) if checked is None else checked, edition)


def _only_name(ledger: Ledger) -> str:
    """Return the name of the one budget of a ledger; ParameterError where it has none or several."""
    names = [str(name) for name in ledger.budgets.index]
    if len(names) == 1:
        return names[0]
    if not names:
        raise ParameterError("The ledger has no budget yet.", TRY)
    raise ParameterError(
        f"'name' is missing: the ledger has {len(names)} budgets.",
        f"name={names[0]!r}, or another of its names.",
    )


def _of_budget(budget: Budget, name: str | None, edition: Edition) -> Charges:
    if name is not None and name != budget.name:
        raise ParameterError("'name' differs from the name of the budget that 'ledger' is.", "leave it out.")
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
    """Read a budget of a ledger after an audit of all its records; what is left of it, for the curator."""
    book = StoredBook(chain, name)
    try:
        audited = audit(chain)
        account, entries = book.entries()
        return Charges(name, account, tuple(entries), audited)
    except TamperedLedgerError as error:
        if edition == "public":
            raise
        fault = error.message
    try:
        account, entries = book.entries()
    except LedgerError:
        return Charges(name, None, (), None, fault)
    return Charges(name, account, tuple(entries), None, fault)


@dataclass(frozen=True)
class Total:
    """The total cost of the releases that compare the same neighbouring datasets.

    ``epsilon``, ``delta``: all releases together are (epsilon, delta)-private; None if that is not known, and
    ``why``. ``parts``: what it is made of, as texts. ``from_budget``: whether the budget vouches for it, with
    everything else charged to it. ``outside``: the releases of the report that the budget is not known to
    have paid.
    """

    unit: Unit
    releases: tuple[ReportedRelease, ...]
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    parts: tuple[Row, ...] = ()
    why: str = ""
    from_budget: bool = False
    outside: tuple[ReportedRelease, ...] = ()

    @property
    def text(self) -> str:
        """The total in words."""
        return "not known" if self.epsilon is None else loss_text(self.epsilon, self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of the total."""
        assert self.epsilon is not None
        return Guarantee(self.unit, self.epsilon, self.delta)

    @property
    def latest(self) -> float | None:
        """The largest epsilon that a release says was spent when it was made; None unless above the total."""
        spent = [
            float(release.facts.budget["spent"][0])
            for release in self.releases
            if release.facts.budget.get("currency") is None and release.facts.budget.get("accounting") is None
        ]
        most = max(spent, default=0.0)
        return most if self.epsilon is not None and most > float(self.epsilon) * (1 + 1e-9) else None

    def table(self) -> Table:
        """Return the parts of the total."""
        rows, closed = list(self.parts), False
        if self.epsilon is not None and len(rows) > 1:
            rows, closed = [*rows, _row("Together, at most", self.epsilon, self.delta)], True
        return Table(["What", "epsilon", "delta"], rows, "Total cost", last=closed)


def _row(description: str, epsilon: Fraction, delta: Fraction) -> Row:
    return description, cost(epsilon), cost(delta)


def totals(releases: Sequence[ReportedRelease], charges: Charges | None) -> list[Total]:
    """Return a total per kind of neighbours: losses of different kinds do not add up."""
    units = list(dict.fromkeys(release.unit for release in releases))
    account = None if charges is None else charges.account
    spent_by = None if account is None else account.terms.unit
    sums = []
    for unit in units:
        of_unit = tuple(release for release in releases if release.unit == unit)
        if charges is not None and charges.fault is not None:
            total = Total(unit, of_unit, why="the records of the ledger were changed")
        elif charges is not None and account is not None and spent_by == unit:
            total = _by_budget(unit, of_unit, charges, account)
        else:
            total = _by_sum(Total(unit, of_unit, outside=of_unit if charges is not None else ()))
        if total.epsilon is not None and total.delta >= 1:
            why = "the deltas add up to one or more, which guarantees nothing"
            total = replace(total, epsilon=None, why=why)
        sums.append(total)
    return sums


def _sum(releases: Sequence[ReportedRelease]) -> Spent:
    return Spent.of([release.loss for release in releases])


def _unclear(releases: Sequence[ReportedRelease]) -> str:
    """Return why the stated losses do not add up; empty if they do."""
    named = [release.name for release in releases if any(OUTLIERS in step for step in release.facts.lineage)]
    if not named:
        return ""
    return (
        "records left by suppress_outliers are charged as a whole, which only the budget knows "
        f"({', '.join(named)})"
    )


def _by_sum(total: Total) -> Total:
    """Return the sum of what the releases state."""
    if why := _unclear(total.releases):
        return replace(total, why=why)
    spent = _sum(total.releases)
    parts = (_row("Sum of the releases of this report", spent.epsilon, spent.delta),)
    return replace(total, epsilon=spent.epsilon, delta=spent.delta, parts=parts)


def _by_budget(
    unit: Unit, releases: tuple[ReportedRelease, ...], charges: Charges, account: Account
) -> Total:
    """Return what the budget counted, plus what it is not known to have paid."""
    used = payments(releases, charges.entries)
    outside = tuple(release for release in releases if release.number not in used)
    terms, spent = account.terms, account.spent
    limit = "Limit of the budget"
    if isinstance(terms.total, ZCDP):
        epsilon, delta = Fraction(repr(zcdp_epsilon(terms.total.rho, DELTA))), DELTA
        parts = [
            (limit, f"rho {cost(terms.total.rho)}", cost(0)),
            _row("The same in epsilon, at this delta", epsilon, delta),
        ]
    elif terms.accounting != "basic":
        epsilon, delta = terms.total.epsilon, terms.total.delta
        parts = [_row(limit, epsilon, delta)]
    else:
        epsilon, delta = spent.epsilon, spent.delta
        parts = _charges_table(charges, used, epsilon, delta)
    if outside and (why := _unclear(outside)):
        return Total(unit, releases, None, delta, tuple(parts), why, True, outside)
    if outside:
        more = _sum(outside)
        parts.append(_row("Releases not known to be charged to the budget", more.epsilon, more.delta))
        epsilon, delta = epsilon + more.epsilon, delta + more.delta
    return Total(unit, releases, epsilon, delta, tuple(parts), "", True, outside)


def _charges_table(charges: Charges, used: dict[int, int], epsilon: Fraction, delta: Fraction) -> list[Row]:
    """Return the charges for releases of the report, and the sum of all others."""
    paid = Spent()
    for number in set(used.values()):
        entry = charges.entries[number - 1]
        paid = paid.add(entry.loss, entry.count)
    return [
        _row("Charged for releases of this report", paid.epsilon, paid.delta),
        _row("Charged for anything else from the same data", epsilon - paid.epsilon, delta - paid.delta),
    ]


def payments(releases: Sequence[ReportedRelease], entries: Sequence[Entry]) -> dict[int, int]:
    """Return the number of the charge that paid for each release; a release without one is left out."""
    numbers: dict[int, int] = {}
    for release in releases:
        number = release.facts.budget.get("charge") or 0
        if 0 < number <= len(entries) and entries[number - 1].id == release.facts.budget.get("charge_id"):
            numbers[release.number] = number
    return numbers


# ---------------------------------------------------------------- what a privacy loss means in numbers

FALSE_ALARMS = 0.05
LOOSE = 0.99


def posterior(epsilon: Fraction) -> float:
    """Return the most that a fifty-fifty guess can become under pure epsilon: e^epsilon / (1 + e^epsilon)."""
    return 1 / (1 + math.exp(-float(epsilon)))


def detected(epsilon: Fraction, delta: Fraction, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the largest power of a test of one dataset against a neighbour, at this rate of false alarms.

    Both ``P(S | x) <= e^epsilon P(S | y) + delta`` and the same of the complement, with x and y swapped.
    Source: Wasserman, Zhou (2010), "A statistical framework for differential privacy", Theorem 2.4; Kairouz,
    Oh, Viswanath (2015), "The composition theorem for differential privacy", Theorem 2.1.
    """
    power, slack = float(epsilon), float(delta)
    grown = math.exp(power) * false_alarms if power < 700 else math.inf
    return min(grown + slack, 1 - math.exp(-power) * max(1 - slack - false_alarms, 0.0), 1.0)


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of (epsilon, delta) between neighbouring datasets, in words for a report."""

    unit: Unit
    epsilon: Fraction
    delta: Fraction

    @property
    def replaced(self) -> bool:
        """Whether neighbouring datasets differ in the values of a record and not in its presence."""
        return self.unit.neighbors == "replace_one"

    @property
    def record(self) -> str:
        """The difference between neighbouring datasets, in words."""
        return "a record" if self.unit.column is None else f"all records of one {self.unit.column}"

    @property
    def grown(self) -> str | None:
        """E to the power of epsilon."""
        return factor(self.epsilon)

    @property
    def twice(self) -> str | None:
        """E to the power of twice epsilon."""
        return factor(2 * self.epsilon)

    @property
    def most(self) -> str:
        """The most that a fifty-fifty guess can become."""
        return percent_up(posterior(self.epsilon))

    @property
    def least(self) -> str:
        """The least that a fifty-fifty guess can become, rounded down."""
        return percent_down(1 - posterior(self.epsilon))

    @property
    def power(self) -> str:
        """The largest power of a test with 5 % of false alarms."""
        return percent_up(detected(self.epsilon, self.delta))

    @property
    def loose(self) -> bool:
        """Whether epsilon alone leaves nearly everything open."""
        return posterior(self.epsilon) > LOOSE
