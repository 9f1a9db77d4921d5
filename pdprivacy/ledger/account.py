"""The terms, charges and sums of a budget, and the JSON of their records, in which numbers are exact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, get_args

from pdprivacy.checks import instance, one_of
from pdprivacy.core.accounting import Accounting, Amount, Event, Events, Rule, Spent, from_json, rule, to_json
from pdprivacy.core.accounting.events import loss_json, number_of
from pdprivacy.core.accounting.rules import exceeded_error, sums_with
from pdprivacy.core.privacy import MOST, ZCDP, Approx, Loss, Pure, Unit, Unshown, check_loss, loss, show
from pdprivacy.errors import BudgetError, LedgerError, ParameterError, PrivacyError
from pdprivacy.exact import near
from pdprivacy.ledger.store import Row, altered, canonical, parse
from pdprivacy.types import settle

Losses: TypeAlias = Sequence[tuple[Loss, int]]
Risk: TypeAlias = float | str | None
"""The disclosure risk of a release, the reason why it is not known, or None for a release without one."""

UNKNOWN_RISK = "dr_ha_unknown"
"""The field of a record that holds the reason; versions without it skip the field."""
"""Losses with their counts."""

ZERO = Fraction(0)
MOST_SUM = MOST**2
MOST_SQUARED = 10**140
MOST_BITS = 12_000
"""The largest denominator of a sum, in bits: Python writes no number of more than 4300 digits."""


_rule = lru_cache(maxsize=64)(rule)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a budget: cap, accounting, privacy unit and declaration.

    ``declaration`` is the fingerprint of a `Domain`; None, as for ``unit``, before the first protection.
    """

    total: Loss
    accounting: Accounting = "basic"
    unit: Unit | None = None
    declaration: str | None = None
    cap: Amount = field(init=False, repr=False, compare=False)
    """``total`` as an amount of its currency, and delta."""
    currency: str = field(init=False, repr=False, compare=False)
    """The currency of the cap: "rho", or "epsilon" with a delta."""
    rule: Rule = field(init=False, repr=False, compare=False)
    """The rule that enforces the cap."""

    def __post_init__(self) -> None:
        check_loss(self.total, "'total' must be", "Pure(2).")
        one_of(self.accounting, "accounting", get_args(Accounting))
        if self.unit is not None:
            instance(self.unit, Unit, "unit", "Unit().")
        if self.declaration is not None:
            text = instance(self.declaration, str, "declaration")
            if not text or not text.isprintable():
                raise ParameterError("'declaration' must be a fingerprint.", "domain.fingerprint().")
        total, name = self.total, "rho" if isinstance(self.total, ZCDP) else "epsilon"
        cap = Amount(total.rho) if isinstance(total, ZCDP) else Amount(total.epsilon, total.delta)
        if cap.amount > MOST:
            raise ParameterError(f"{name!r} must be at most 1e290.")
        if self.accounting != "basic" and name == "epsilon" and cap.amount > MOST_SQUARED:
            raise ParameterError(f"'epsilon' must be at most 1e140 with accounting={self.accounting!r}.")
        # raises for an accounting that has no meaning for the cap
        rule = _rule(self.accounting, total)
        settle(self, cap=cap, currency=name, rule=rule)

    def to_json(self, time: datetime) -> dict[str, Any]:
        """Return the body of a record that opens a budget or declares it anew; `terms_of` reads it."""
        return {
            "total": _losses_json([(self.total, 1)])[0],
            "accounting": self.accounting,
            "neighbors": None if self.unit is None else self.unit.neighbors,
            "declaration": self.declaration,
            "time": _stamp(time),
            # a unit of one record has no column
            **({} if self.unit is None or self.unit.column is None else {"unit": self.unit.column}),
        }

    def check_same(self, total: Loss | None, accounting: Accounting | None) -> None:
        """Refuse another cap or rule than the one that was fixed when the budget was opened."""
        if total is not None and Terms(total).total != self.total:
            stated = [getattr(total, name, None) for name in ("epsilon", "delta", "rho")]
            other = (
                "" if any(isinstance(number, Unshown) for number in stated) else f", not {total_text(total)}"
            )
            raise ParameterError(
                f"The 'budget' has another total: {total_text(self.total)}{other}.",
                "leave epsilon, delta and rho out: they were fixed when it was opened.",
            )
        if accounting is not None:
            one_of(accounting, "accounting", get_args(Accounting))
            if accounting != self.accounting:
                raise ParameterError(
                    f"The 'budget' counts by accounting={self.accounting!r}, which was fixed when it was "
                    "opened.",
                    "leave accounting out.",
                )

    def check_unit(self, unit: Unit | None) -> None:
        """Refuse losses between other neighbours: they do not add up."""
        if unit is not None:
            instance(unit, Unit, "unit", "Unit().")
        if unit is not None and self.unit is not None and unit != self.unit:
            raise BudgetError(
                f"This budget counts losses between {str(self.unit)!r} neighbours; "
                f"they do not add up with {str(unit)!r} ones.",
                "use the same neighbors= and unit= for every protection that shares a budget.",
            )


def doubles(amount: Amount) -> tuple[float, float]:
    """Return an amount and its delta as doubles."""
    return near(amount.amount), float(amount.delta)


def total_text(total: Loss) -> str:
    """Return a cap in words."""
    if isinstance(total, ZCDP):
        return f"rho {show(total.rho)}"
    return f"epsilon {show(total.epsilon)}, delta {show(total.delta)}"


class Charge(NamedTuple):
    """A charge to enter: the loss, how often, for what, and the privacy unit of the loss.

    Its parts are as of `Entry`. ``times``: the count. ``unit``: None for that of the budget.
    """

    loss: Loss
    times: int
    label: str
    mechanism: str
    events: Events
    release: str | None
    unit: Unit | None


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a budget: its terms and the sums of its charges.

    ``spent``: the sums that the rule uses. ``requested``: the sums of the requested epsilons and deltas.
    ``unstated``: whether a charge was asked for in rho, which has no epsilon.
    """

    terms: Terms
    spent: Spent = field(default_factory=Spent)
    requested: tuple[Fraction, Fraction] = (ZERO, ZERO)
    unstated: bool = False
    charges: int = 0

    def charge(self, charge: Charge) -> Entry:
        """Return the entry of one more charge, with the account after it.

        Raises BudgetExceeded where it does not fit, BudgetError for another unit, or a loss that the rule
        cannot count.
        """
        terms, cost, count, before = self.terms, charge.loss, charge.times, self.spent
        if charge.unit is not None and charge.unit is not terms.unit:
            terms.check_unit(charge.unit)
        counted = terms.rule._counted(cost, count, charge.events)
        spent = before
        for item, times in counted:
            spent = spent.add(item, times)
        if not terms.rule.holds(spent):
            raise exceeded_error(terms.rule, before, counted)
        alike = counted == ((cost, count),) and self.requested == (before.epsilon, before.delta)
        # a loss in rho adds nothing to the epsilons and deltas
        sums = (spent if alike else Spent(*self.requested).add(cost, count))[:2]
        for total in (*spent, *(() if alike else sums)):
            # a fraction is at most its numerator, which is quicker to look at
            large = total.numerator > MOST_SUM and total > MOST_SUM
            if large or total.denominator.bit_length() > MOST_BITS:
                raise BudgetError(
                    "The sum of all losses would be too large, or have too many digits to be kept exactly.",
                    "state losses in decimals of few digits.",
                )
        after = Account(terms, spent, sums, self.unstated or isinstance(cost, ZCDP), self.charges + 1)
        texts, now = (charge.label, charge.mechanism), datetime.now(UTC)
        return Entry(after.charges, *texts, cost, count, counted, charge.events, now, after, charge.release)

    def declared(self, unit: Unit | None, declaration: str | None, redeclare: bool = False) -> Terms:
        """Return the terms for data of this unit and declaration; None keeps the present ones.

        Raises BudgetError where the unit or the declaration was another one before: ``redeclare`` allows
        another declaration, and another unit before the first charge.
        """
        terms, given = self.terms, {"unit": unit, "declaration": declaration}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        new_terms = replace(terms, **changes)
        if terms.unit is not None and self.charges:
            terms.check_unit(unit)
        moved = terms.unit not in (None, new_terms.unit) or terms.declaration not in (
            None,
            new_terms.declaration,
        )
        if moved and not redeclare:
            raise BudgetError(
                "The data of this budget was protected before with another declaration or other neighbors.",
                "budget=ledger, name=..., redeclare=True, for the same data declared anew; another name for "
                "other data.",
            )
        return new_terms

    def to_json(self) -> dict[str, Any]:
        """Return total and spent as [epsilon, delta] for the metadata of a release.

        ``accounting`` is left out if it is "basic". Under a cap in rho, ``currency`` is "rho", and total and
        spent are [rho, 0].
        """
        terms, spent = self.terms, self.terms.rule.spent(self.spent)
        budget: dict[str, Any] = {"total": [*doubles(terms.cap)], "spent": [*doubles(spent)]}
        if terms.accounting != "basic":
            budget["accounting"] = terms.accounting
        if terms.currency == "rho":
            budget["currency"] = "rho"
        return budget

    @property
    def total(self) -> Amount:
        """The cap as an amount of its currency, and delta."""
        return self.terms.cap

    @property
    def used(self) -> Amount:
        """The spent part of the cap; see `pdprivacy.accounting.Rule.spent`."""
        return self.terms.rule.spent(self.spent)

    @property
    def left(self) -> Amount:
        """The largest further pure loss (under a cap in rho: rho) that fits, and the delta beside it."""
        return self.terms.rule.left(self.spent)

    @property
    def composed(self) -> Pure | Approx | None:
        """The sum of all losses as asked for; None before the first charge.

        It is also None if a loss was stated in rho, or if the deltas sum to one or more.
        """
        epsilon, delta = self.requested
        return loss(epsilon, delta) if epsilon and delta < 1 and not self.unstated else None


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: its loss, its release and its time.

    Attributes
    ----------
    number : 1, 2, 3, ... in its budget.
    label, mechanism : the release and its noise.
    loss, count : the loss as asked for, and how often.
    counted : the losses that the budget's rule counts: the same, or losses in rho.
    events : the events of the release, for accountings applied later.
    time : in UTC.
    after : the account after the charge.
    release : the id of the release, where it was given one.
    answered : whether the answer is known to have been handed out.
    dr_ha : the disclosure risk of the release, where it was estimated.
    risk_unknown : the reason why it was not, of a release that has one.
    """

    number: int
    label: str
    mechanism: str
    loss: Loss
    count: int
    counted: Losses
    events: Events
    time: datetime
    after: Account = field(repr=False)
    release: str | None = None
    answered: bool = False
    dr_ha: float | None = None
    risk_unknown: str | None = None

    @property
    def id(self) -> str:
        """A hash of number, label, mechanism and time, which tells charges of all budgets apart."""
        text = repr((self.number, self.label, self.mechanism, _stamp(self.time)))
        return blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def amounts(self) -> tuple[Fraction | None, Fraction | None, Fraction]:
        """Epsilon and delta as asked for, of all ``count``; and the rho that was counted, where rho is."""
        rho = sums_with(Spent(), self.counted).concentrated if self.after.terms.rule.in_rho else ZERO
        if isinstance(self.loss, ZCDP):
            return None, None, rho
        return self.loss.epsilon * self.count, self.loss.delta * self.count, rho

    def to_json(self) -> dict[str, Any]:
        """Return the body of the record, with ``counted`` and ``events`` if they add to the loss."""
        after, requested = self.after, ((self.loss, self.count),)
        more: dict[str, Any] = {} if self.counted == requested else {"counted": _losses_json(self.counted)}
        if list(self.events) != [(Event(self.loss), self.count)]:
            more["events"] = to_json(self.events)
        return {
            "asked": [str(total) for total in after.requested],
            "charge": self.number,
            "label": self.label,
            "loss": _losses_json(requested)[0],
            "mechanism": self.mechanism,
            "spent": [str(total) for total in after.spent],
            "time": _stamp(self.time),
            "unstated": after.unstated,
            **more,
        }


# ---------------------------------------------------------------- from records

FIRST_YEAR, LAST_YEAR = 2000, 2200
FIELDS = {"label": str, "mechanism": str, "charge": int, "unstated": bool, "spent": list, "asked": list}
"""The types of plain fields of the record of a charge."""


@lru_cache(maxsize=64)
def terms_of(row: Row) -> Terms:
    """Return the terms of a record that `Terms.to_json` made."""
    body = parse(row)
    try:
        neighbors = body["neighbors"]
        unit = None if neighbors is None else Unit(neighbors, body.get("unit"))
        ((total, _),) = _losses_of([body["total"]])
        return Terms(total, body["accounting"], unit, body["declaration"])
    except (PrivacyError, KeyError, TypeError, ValueError):
        raise altered(row) from None


def time_of(text: str) -> datetime:
    """Return the time of a record; raise ValueError for one that no clock tells."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is not UTC or not FIRST_YEAR < time.year < LAST_YEAR:
        raise ValueError
    return time


def entry_of(row: Row, terms: Terms) -> Entry:
    """Return the charge of a record that `Entry.to_json` made, not answered."""
    body = parse(row)
    try:
        time, sound = time_of(body["time"]), all(type(body[name]) is kind for name, kind in FIELDS.items())
        priced: dict[str, Any] = {name: body[name] for name in ("loss", "counted", "events") if name in body}
        (cost, count), counted, events = _priced_of(canonical(priced))
        epsilon, delta = map(_fraction, body["asked"])
        spent = Spent._make(map(_fraction, body["spent"]))
        if not sound or body["charge"] <= 0:
            raise altered(row)
    except (PrivacyError, KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError):
        raise altered(row) from None
    after = Account(terms, spent, (epsilon, delta), body["unstated"], body["charge"])
    texts = body["label"], body["mechanism"]
    return Entry(after.charges, *texts, cost, count, counted, events, time, after, row.release)


@lru_cache(maxsize=1024)  # most charges of a budget cost the same
def _priced_of(text: str) -> tuple[tuple[Loss, int], Losses, Events]:
    """Return the loss of a charge with its count, its counted losses and its events, from their JSON."""
    priced = json.loads(text)
    ((event, count),) = from_json([priced["loss"]])
    counted = _losses_of(priced["counted"]) if "counted" in priced else ((event.loss, count),)
    events = from_json(priced["events"]) if "events" in priced else [(event, count)]
    if event.noise is not None or not counted or not events:
        raise ValueError
    return (event.loss, count), counted, tuple(events)


def priced_text(row: Row) -> str:
    """Return the part of the record of a charge that its loss and its events depend on.

    The names of the parts are found as they are written: a quote within a text is escaped.
    """
    before, _, after = row.body.partition(',"kind":"charge","label":')
    loss = after.partition(',"loss":')[2].partition(',"mechanism":')[0]
    return before.partition(',"events":')[2] + loss


def _stamp(time: datetime) -> str:
    """Return the time of a record as text; raise LedgerError where the clock cannot be right."""
    if not FIRST_YEAR < time.year < LAST_YEAR:
        raise LedgerError(
            f"The clock of this machine says that it is the year {time.year}. Nothing was entered.",
            "set the clock right: a ledger tells when each charge was made.",
        )
    return time.isoformat()


def answer_of(row: Row) -> tuple[int, Risk]:
    """Return the number of the charge that a record answers, and the risk of the release or its reason."""
    body = parse(row)
    number, risk, reason = body.get("charge"), body.get("dr_ha"), body.get(UNKNOWN_RISK)
    if type(number) is not int or not (risk is None or (isinstance(risk, float) and 0 <= risk <= 1)):
        raise altered(row)
    if not isinstance(reason, str | None):
        raise altered(row)
    return number, reason if risk is None else risk


def _losses_json(losses: Losses) -> list[dict[str, Any]]:
    return [{"loss": loss_json(item), "count": count} for item, count in losses]


def _losses_of(entries: Any) -> Losses:
    return tuple((event.loss, count) for event, count in from_json(entries))


@lru_cache(maxsize=64)  # what was asked for is mostly what was spent, and some sums stay 0
def _fraction(text: object) -> Fraction:
    """Return a sum of losses from its text; raise ParameterError or ValueError for an invalid one."""
    number = number_of(text)
    if number > MOST_SUM:
        raise ValueError
    return number
