"""What a privacy loss means in numbers: factors, guesses and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from pdprivacy.privacy import Unit
from pdprivacy.show.numbers import percent_up

__all__ = ["Guarantee", "detected", "factor", "posterior"]

FALSE_ALARMS = 0.05
LOOSE = 0.99
MOST_POWER = 20


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


def factor(power: Fraction) -> str | None:
    """Format e to a power in three digits, rounded up; None above e^20.

    >>> factor(Fraction(7, 10)), factor(Fraction(27, 2)), factor(Fraction(1000))
    ('2.02', '730,000', None)
    """
    if power > MOST_POWER:
        return None
    grown = Fraction(math.exp(math.nextafter(float(power), math.inf)) * (1 + 1e-15))
    context = Context(prec=3, rounding=ROUND_CEILING)
    rounded = context.divide(Decimal(grown.numerator), Decimal(grown.denominator)).normalize(context)
    return f"{rounded:,f}"


@dataclass(frozen=True)
class Guarantee:
    """What (epsilon, delta) guarantees between neighbouring datasets, for a report to say."""

    unit: Unit
    epsilon: Fraction
    delta: Fraction

    @property
    def replaced(self) -> bool:
        """Whether neighbouring datasets differ in the values of a record and not in its presence."""
        return self.unit.neighbors == "replace_one"

    @property
    def record(self) -> str:
        """What neighbouring datasets differ in."""
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
        share = 1 - posterior(self.epsilon)
        return "nearly 0 %" if 0 < share < 0.001 else f"{math.floor(share * 1000 + 1e-9) / 10:g} %"

    @property
    def power(self) -> str:
        """The largest power of a test with 5 % of false alarms."""
        return percent_up(detected(self.epsilon, self.delta))

    @property
    def loose(self) -> bool:
        """Whether epsilon alone leaves nearly everything open."""
        return posterior(self.epsilon) > LOOSE
