"""The terms, charges and sums of a budget, and the JSON of their records, in which numbers are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, get_args

from pdprivacy.accounting import Accounting, Amount, Event, Events, Rule, Spent, from_json, rule, to_json
from pdprivacy.accounting.events import NUMBER, loss_json
from pdprivacy.accounting.rules import add_all
from pdprivacy.checks import instance
from pdprivacy.errors import BudgetError, LedgerError, ParameterError, PrivacyError, check_one_of, kind
from pdprivacy.ledger.chain import altered, parse
from pdprivacy.ledger.store import Row
from pdprivacy.privacy import ZCDP, Approx, Loss, Pure, Unit, Unshown, loss, show

__all__ = ["Account", "Entry", "Losses", "Terms", "account_of", "answer_body", "answer_of", "charge_body"]
__all__ += ["counted_by", "entry_of", "moment", "near", "summed", "terms_body", "terms_of"]

Losses: TypeAlias = Sequence[tuple[Loss, int]]
"""Losses, each with how often it is charged."""

ZERO = Fraction(0)
MOST = 10**290
MOST_SUM = MOST**2
MOST_SQUARED = 10**140
MOST_BITS = 12_000
"""The largest denominator of a sum, in bits: Python writes no number of more than 4300 digits."""

RHO_DIGITS = 12


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
    rule: Rule = field(init=False, repr=False, compare=False)
    """The rule that enforces the cap."""

    def __post_init__(self) -> None:
        if not isinstance(self.total, Pure | Approx | ZCDP):
            raise ParameterError(
                f"'total' must be Pure, Approx or ZCDP (got {kind(self.total)}).", "Pure(2)."
            )
        check_one_of("accounting", self.accounting, get_args(Accounting))
        if self.unit is not None:
            instance(self.unit, Unit, "unit", "Unit().")
        if self.declaration is not None:
            text = instance(self.declaration, str, "declaration")
            if not text or not text.isprintable():
                raise ParameterError("'declaration' must be a fingerprint.", "domain.fingerprint().")
        amount = self.total.rho if isinstance(self.total, ZCDP) else self.total.epsilon
        if amount > MOST:
            name = "rho" if isinstance(self.total, ZCDP) else "epsilon"
            raise ParameterError(f"{name!r} must be at most 1e290.")
        if self.accounting != "basic" and not isinstance(self.total, ZCDP) and amount > MOST_SQUARED:
            raise ParameterError(f"'epsilon' must be at most 1e140 with accounting={self.accounting!r}.")
        # raises for an accounting that has no meaning for the cap
        object.__setattr__(self, "rule", _rule(self.accounting, self.total))

    @property
    def in_rho(self) -> bool:
        """Whether the rule counts losses by their rho, or squares, and not by what was asked."""
        return self.accounting != "basic" or isinstance(self.total, ZCDP)

    def check_same(self, total: Loss | None, accounting: Accounting | None) -> None:
        """Refuse another cap or rule than the one that was fixed when the budget was opened."""
        if total is not None and Terms(total).total != self.total:
            stated = [getattr(total, name, None) for name in ("epsilon", "delta", "rho")]
            given = "" if any(isinstance(number, Unshown) for number in stated) else f", not {spelled(total)}"
            raise ParameterError(
                f"The 'budget' has another total: {spelled(self.total)}{given}.",
                "leave epsilon, delta and rho out: they were fixed when it was opened.",
            )
        if accounting is not None:
            check_one_of("accounting", accounting, get_args(Accounting))
        if accounting is not None and accounting != self.accounting:
            raise ParameterError(
                f"The 'budget' counts by accounting={self.accounting!r}, which was fixed when it was opened.",
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


def counted_by(terms: Terms, cost: Loss, count: int, events: Events) -> Losses:
    """Return the losses that the rule counts: the loss as asked for, or the rho of the noise."""
    if not terms.in_rho:
        return ((cost, count),)
    if any(event.group is not None for event, _ in events):
        raise BudgetError(
            "The losses of one secret part add up by sums alone, and this budget counts otherwise."
        )
    return tuple(
        (event.loss if event.noise is None else ZCDP(_rounded_up(event.noise.multiplier)), number)
        for event, number in events
    )


def _rounded_up(multiplier: Fraction) -> Fraction:
    """Return the rho of Gaussian noise, rounded up to few digits, so that sums stay short.

    Source: Bun, Steinke (2016), Proposition 1.6; for the discrete Gaussian Canonne, Kamath, Steinke (2020).
    """
    rho = 1 / (2 * multiplier**2)
    context = Context(prec=RHO_DIGITS, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(rho.numerator), Decimal(rho.denominator)))


def summed(losses: Losses, spent: Spent) -> Spent:
    """Return the sums after these losses."""
    for item, count in losses:
        spent = spent.add(item, count)
    return spent


def near(number: Fraction) -> float:
    """Return the nearest double; infinity beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def spelled(total: Loss) -> str:
    """Return a cap in words."""
    if isinstance(total, ZCDP):
        return f"rho {show(total.rho)}"
    return f"epsilon {show(total.epsilon)}, delta {show(total.delta)}"


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a budget: its terms and the sums of its charges.

    ``spent``: what the rule asks of the charges. ``asked``: the sums of the epsilons and deltas that
    were asked for; ``unstated``: whether some charge stated none.
    """

    terms: Terms
    spent: Spent = field(default_factory=Spent)
    asked: tuple[Fraction, Fraction] = (ZERO, ZERO)
    unstated: bool = False
    charges: int = 0

    def after(self, item: Loss, count: int, counted: Losses) -> Account:
        """Return the account after one more charge, of which the rule counts ``counted``.

        Raises BudgetExceeded where it does not fit, BudgetError for what the rule cannot count.
        """
        enforced, before = self.terms.rule, self.spent
        spent = summed(counted, before)
        if not enforced.holds(spent):
            spent = add_all(enforced, before, counted)  # says what is asked and what is left
        alike = counted == ((item, count),) and self.asked == (before.epsilon, before.delta)
        asked = (spent.epsilon, spent.delta) if alike else self.stated(item, count)
        for total in (spent.epsilon, spent.delta, spent.squares, spent.rho, *(() if alike else asked)):
            # a fraction is at most its numerator, which is quicker to look at
            large = total.numerator > MOST_SUM and total > MOST_SUM
            if large or total.denominator.bit_length() > MOST_BITS:
                raise BudgetError(
                    "The sum of all losses would be too large, or have too many digits to be kept exactly.",
                    "state losses in decimals of few digits.",
                )
        unstated = self.unstated or isinstance(item, ZCDP)
        return Account(self.terms, spent, asked, unstated, self.charges + 1)

    def stated(self, item: Loss, count: int) -> tuple[Fraction, Fraction]:
        """Return the sums as asked for after one more charge; a loss in rho adds nothing."""
        epsilon, delta = self.asked
        if isinstance(item, ZCDP):
            return self.asked
        return epsilon + item.epsilon * count, delta + item.delta * count if item.delta else delta

    def declared(self, unit: Unit | None, declaration: str | None, redeclare: bool = False) -> Terms:
        """Return the terms for data of this unit and declaration; None keeps the present ones.

        Raises BudgetError where the unit or the declaration was another one before: ``redeclare`` allows
        another declaration, and another unit before the first charge.
        """
        terms = self.terms
        wanted = replace(
            terms,
            unit=terms.unit if unit is None else unit,
            declaration=terms.declaration if declaration is None else declaration,
        )
        if terms.unit is not None and self.charges:
            terms.check_unit(unit)
        moved = terms.unit not in (None, wanted.unit) or terms.declaration not in (None, wanted.declaration)
        if moved and not redeclare:
            raise BudgetError(
                "The data of this budget was protected before with another declaration or other neighbors.",
                "budget=ledger, name=..., redeclare=True, for the same data declared anew; another name for "
                "other data.",
            )
        return wanted

    def to_json(self) -> dict[str, Any]:
        """Total and spent for the metadata of a release: [epsilon, delta]; ``accounting`` where not by sums.

        Under a cap in rho they are [rho, 0], and ``currency`` says so.
        """
        total, spent = self.total, self.terms.rule.spent(self.spent)
        budget: dict[str, Any] = {
            "total": [near(total.amount), near(total.delta)],
            "spent": [near(spent.amount), near(spent.delta)],
        }
        if self.terms.accounting != "basic":
            budget["accounting"] = self.terms.accounting
        if isinstance(self.terms.total, ZCDP):
            budget["currency"] = "rho"
        return budget

    @property
    def total(self) -> Amount:
        """The cap as an amount of its currency, and delta."""
        cap = self.terms.total
        return Amount(cap.rho) if isinstance(cap, ZCDP) else Amount(cap.epsilon, cap.delta)

    @property
    def composed(self) -> Pure | Approx | None:
        """The sum of all losses as asked for; None before the first charge.

        None, too, where some were stated in rho alone, or the deltas sum to one or more.
        """
        epsilon, delta = self.asked
        return loss(epsilon, delta) if epsilon and delta < 1 and not self.unstated else None


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: what it cost, what for, and when.

    Attributes
    ----------
    number : 1, 2, 3, ... in its budget.
    label, mechanism : what was released, by which noise.
    loss, count : the loss as asked for, and how often.
    counted : what the budget's rule counts in its place: the same, or losses in rho.
    events : what was released, for accountings applied later.
    time : in UTC.
    after : the account after the charge.
    release : the id of the release, where it was given one.
    answered : whether the answer is known to have been handed out.
    dr_ha : the disclosure risk of what was released, where it was estimated.
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

    @property
    def so_far(self) -> Pure | Approx | None:
        """The sum of this and all earlier losses as asked for; see `Account.composed`."""
        return self.after.composed

    @property
    def amounts(self) -> tuple[Fraction | None, Fraction | None, Fraction]:
        """Epsilon and delta as asked for, of all ``count``; and the rho that was counted, where rho is."""
        rho = summed(self.counted, Spent()).concentrated if self.after.terms.in_rho else ZERO
        if isinstance(self.loss, ZCDP):
            return None, None, rho
        return self.loss.epsilon * self.count, self.loss.delta * self.count, rho


# ---------------------------------------------------------------- as the JSON of records

FIRST_YEAR, LAST_YEAR = 2000, 2200


def terms_body(terms: Terms, time: datetime) -> dict[str, Any]:
    """Return the body of a record that opens a budget or declares it anew."""
    return {
        "total": _losses_json([(terms.total, 1)])[0],
        "accounting": terms.accounting,
        "neighbors": None if terms.unit is None else terms.unit.neighbors,
        "declaration": terms.declaration,
        "time": _stamp(time),
        # a unit of one record has no column
        **({} if terms.unit is None or terms.unit.column is None else {"unit": terms.unit.column}),
    }


@lru_cache(maxsize=64)
def terms_of(row: Row) -> Terms:
    """Return the terms of a record that `terms_body` made."""
    body = parse(row)
    try:
        neighbors, declaration = body["neighbors"], body["declaration"]
        if not (declaration is None or isinstance(declaration, str)):
            raise altered(row)
        unit = None if neighbors is None else Unit(neighbors, body.get("unit"))
        ((total, _),) = _losses_of([body["total"]])
        return Terms(total, body["accounting"], unit, declaration)
    except (PrivacyError, KeyError, TypeError, ValueError):
        raise altered(row) from None


def charge_body(entry: Entry) -> dict[str, Any]:
    """Return the body of the record of a charge; ``counted`` and ``events`` if they add to the loss."""
    after, asked = entry.after, ((entry.loss, entry.count),)
    more: dict[str, Any] = {} if entry.counted == asked else {"counted": _losses_json(entry.counted)}
    if list(entry.events) != [(Event(entry.loss), entry.count)]:
        more["events"] = to_json(entry.events)
    return {
        "asked": [str(total) for total in after.asked],
        "charge": entry.number,
        "label": entry.label,
        "loss": _losses_json(asked)[0],
        "mechanism": entry.mechanism,
        "spent": [str(total) for total in after.spent],
        "time": _stamp(entry.time),
        "unstated": after.unstated,
        **more,
    }


def entry_of(row: Row, terms: Terms) -> Entry:
    """Return the charge of a record that `charge_body` made, not answered."""
    body = parse(row)
    try:
        ((event, count),) = from_json([body["loss"]])
        time = moment(body["time"])
        texts = (body["label"], body["mechanism"])
        number, unstated = body["charge"], body["unstated"]
        epsilon, delta = map(_fraction, body["asked"])
        spent = Spent(*map(_fraction, body["spent"]))
        asked = ((event.loss, count),)
        counted = asked if "counted" not in body else _losses_of(body["counted"])
        events = [(event, count)] if "events" not in body else from_json(body["events"])
        sound = all(isinstance(text, str) for text in texts) and type(number) is int and number > 0
        sound = sound and event.noise is None and len(counted) > 0 and len(events) > 0
        if not sound or type(unstated) is not bool:
            raise altered(row)
    except (PrivacyError, KeyError, TypeError, ValueError, ZeroDivisionError):
        raise altered(row) from None
    after = Account(terms, spent, (epsilon, delta), unstated, number)
    return Entry(number, *texts, event.loss, count, counted, tuple(events), time, after, row.release)


def _stamp(time: datetime) -> str:
    """Return the time of a record as text; raise LedgerError where the clock cannot be right."""
    if not FIRST_YEAR < time.year < LAST_YEAR:
        raise LedgerError(
            f"The clock of this machine says that it is the year {time.year}. Nothing was entered.",
            "set the clock right: a ledger tells when each charge was made.",
        )
    return time.isoformat()


def moment(text: Any) -> datetime:
    """Return the time of a record, in UTC; raise ValueError or TypeError for an invalid text."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is not UTC or not FIRST_YEAR < time.year < LAST_YEAR:
        raise ValueError
    return time


def account_of(row: Row | None, terms: Terms) -> Account:
    """Return the account after the charge of a record; without a record, the account of a new budget."""
    return Account(terms) if row is None else entry_of(row, terms).after


def answer_body(number: int, risk: float | None, stored: str | None = None) -> dict[str, Any]:
    """Return the body of a record for an answered charge; ``stored``: the digest of a stored answer."""
    body = {"charge": number, "dr_ha": risk, "answer": stored}
    return {name: value for name, value in body.items() if value is not None}


def answer_of(row: Row) -> tuple[int, float | None]:
    """Return the number of the charge that a record answers, and the risk of the release."""
    body = parse(row)
    number, risk = body.get("charge"), body.get("dr_ha")
    if type(number) is not int or not (risk is None or (isinstance(risk, float) and 0 <= risk <= 1)):
        raise altered(row)
    return number, risk


def _losses_json(losses: Losses) -> list[dict[str, Any]]:
    return [{"loss": loss_json(item), "count": count} for item, count in losses]


def _losses_of(entries: Any) -> Losses:
    return tuple((event.loss, count) for event, count in from_json(entries))


@lru_cache(maxsize=64)  # what was asked for is mostly what was spent, and some sums stay 0
def _fraction(text: object) -> Fraction:
    """Return a sum of losses from its text: in lowest terms, not negative."""
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise TypeError
    number = Fraction(text)
    if number > MOST_SUM or str(number) != text:
        raise ValueError
    return number
