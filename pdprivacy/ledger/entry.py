"""What a budget is told and what it keeps: its terms, its charges, and their sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, get_args

from pdprivacy.accounting import Accounting, Amount, Events, Rule, Spent, rule
from pdprivacy.accounting.rules import add_all
from pdprivacy.checks import instance
from pdprivacy.errors import BudgetError, ParameterError, check_one_of, kind
from pdprivacy.privacy import ZCDP, Approx, Loss, Pure, Unit, Unshown, loss, show

__all__ = ["Account", "Entry", "Losses", "Terms", "counted_by", "near"]

Losses: TypeAlias = Sequence[tuple[Loss, int]]
"""Losses, each with how often it is charged."""

ZERO = Fraction(0)
MOST = 10**290
MOST_SUM = MOST**2
MOST_SQUARED = 10**140
MOST_BITS = 12_000
"""Of the denominator of a sum: Python writes no number of more than 4300 digits."""

RHO_DIGITS = 12


_rule = lru_cache(maxsize=64)(rule)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a budget is for: the cap, the rule that enforces it, whose data it protects, as declared how.

    ``declaration`` is the fingerprint of a `Domain`; None, as for ``unit``, before the first protection.
    """

    total: Loss
    accounting: Accounting = "basic"
    unit: Unit | None = None
    declaration: str | None = None
    rule: Rule = field(init=False, repr=False, compare=False)
    """What may be charged."""

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
        # refuses what does not fit together
        object.__setattr__(self, "rule", _rule(self.accounting, self.total))

    @property
    def in_rho(self) -> bool:
        """Whether the rule counts losses by their rho, or squares, and not by what was asked."""
        return self.accounting != "basic" or isinstance(self.total, ZCDP)

    def check_same(self, total: Loss | None, accounting: Accounting | None) -> None:
        """Refuse another cap or rule than the one that was fixed when the budget was opened."""
        if total is not None and Terms(total).total != self.total:
            stated = [getattr(total, name, None) for name in ("epsilon", "delta", "rho")]
            given = "" if any(isinstance(one, Unshown) for one in stated) else f", not {spelled(total)}"
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
    """What the rule counts of a charge: sums count what was asked, rules in rho what the noise says."""
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
    """At least the rho of Gaussian noise, in few digits, so that sums stay short.

    Source: Bun, Steinke (2016), Proposition 1.6; for the discrete Gaussian Canonne, Kamath, Steinke (2020).
    """
    rho = 1 / (2 * multiplier**2)
    context = Context(prec=RHO_DIGITS, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(rho.numerator), Decimal(rho.denominator)))


def near(number: Fraction) -> float:
    """The nearest double; infinite beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def spelled(total: Loss) -> str:
    """A cap in words."""
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
        """With one charge more, of which the rule counts ``counted``.

        Raises BudgetExceeded where it does not fit, BudgetError for what the rule cannot count.
        """
        enforced, before = self.terms.rule, self.spent
        spent = before
        for one, number in counted:
            spent = spent.add(one, number)
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
        """What is asked for with a charge more: a loss in rho states nothing."""
        epsilon, delta = self.asked
        if isinstance(item, ZCDP):
            return self.asked
        return epsilon + item.epsilon * count, delta + item.delta * count if item.delta else delta

    def declared(self, unit: Unit | None, declaration: str | None, redeclare: bool = False) -> Terms:
        """The terms for data of this unit, declared so; None asks for nothing.

        Raises BudgetError where they were others before: ``redeclare`` allows another declaration, and
        another unit before the first charge.
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
        found: dict[str, Any] = {
            "total": [near(total.amount), near(total.delta)],
            "spent": [near(spent.amount), near(spent.delta)],
        }
        if self.terms.accounting != "basic":
            found["accounting"] = self.terms.accounting
        if isinstance(self.terms.total, ZCDP):
            found["currency"] = "rho"
        return found

    @property
    def total(self) -> Amount:
        """The cap as an amount of its currency, and delta."""
        cap = self.terms.total
        return Amount(cap.rho) if isinstance(cap, ZCDP) else Amount(cap.epsilon, cap.delta)

    @property
    def composed(self) -> Pure | Approx | None:
        """All losses that were asked for together, by sums; None before the first.

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
        """What it and all charges before it were asked to cost together; see `Account.composed`."""
        return self.after.composed

    @property
    def amounts(self) -> tuple[Fraction | None, Fraction | None, Fraction]:
        """Epsilon and delta as asked for, of all ``count``; and the rho that was counted, where rho is."""
        counted = Spent()
        for one, number in self.counted:
            counted = counted.add(one, number)
        rho = counted.concentrated if self.after.terms.in_rho else ZERO
        if isinstance(self.loss, ZCDP):
            return None, None, rho
        return self.loss.epsilon * self.count, self.loss.delta * self.count, rho
