"""Sums of losses, exact in rational numbers; and one loss shared out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from pdprivacy.checks import instance, items
from pdprivacy.errors import ParameterError, kind
from pdprivacy.privacy import ZCDP, Loss, Rational, check_loss, loss, rational, whole

__all__ = ["Losses", "Spent", "compose", "counted", "shares", "times"]

Losses: TypeAlias = Iterable[Loss] | Mapping[Loss, int]
"""Losses one by one, or a mapping of each to how often it is charged."""

ZERO = Fraction(0)
HELD = "'losses' must hold"


def counted(losses: Losses) -> Counter[Loss]:
    """Return how often each loss is charged.

    Raises ParameterError for what is no loss and for a count that is no positive whole number.
    """
    if isinstance(losses, Mapping):
        found: Counter[Loss] = Counter({item: whole(count) for item, count in losses.items()})
    elif isinstance(losses, Iterable) and not isinstance(losses, str):
        listed = items(losses, "losses")
        for item in listed:
            check_loss(item, HELD)
        found = Counter(listed)
    else:
        raise ParameterError(
            f"'losses' must be a list of losses (got {kind(losses)}).", "[Pure(0.1), Approx(0.5, 1e-6)]."
        )
    for item in found:
        check_loss(item, HELD)
    return found


def compose(losses: Losses) -> Loss | None:
    """The loss of all ``losses`` together: epsilons, deltas and rhos add up; None where there are none.

    Source: Dwork, Roth (2014), Theorem 3.16, and Bun, Steinke (2016), Lemma 1.7; adaptive choice
    allowed (Rogers, Roth, Ullman, Vadhan 2016, Section 3).

    Raises
    ------
    ParameterError : zero-concentrated losses among others; they have no exact sum.

    >>> from pdprivacy import Approx, Pure
    >>> compose([Pure(0.1), Pure(0.1), Approx(0.1, 1e-6)]) == Approx("0.3", 1e-6)
    True
    >>> compose({Pure("1/3"): 3}) == Pure(1)
    True
    """
    spent = Spent()
    items = counted(losses)
    for item, count in items.items():
        spent = spent.add(item, count)
    if not items:
        return None
    if not spent.rho:
        return loss(spent.epsilon, spent.delta)
    if spent.epsilon:
        raise ParameterError("Losses in epsilon and losses in rho do not add up.")
    return ZCDP(spent.rho)


def times(item: Loss, count: int) -> Loss:
    """The loss of ``count`` releases of loss ``item``, by sums: that of `compose` on ``count`` of them.

    A sum forgets how many it is of: to a `Filter` ten losses of 0.1 cost less than one of 1. What is
    charged ``count`` times is charged as such: `Spent.add`.

    >>> from pdprivacy import Approx
    >>> times(Approx(0.1, 1e-6), 3) == Approx(0.3, 3e-6)
    True
    """
    check_loss(item, HELD)
    return item.times(whole(count))


class Spent(NamedTuple):
    """All that the rules of `rule` ask of the losses so far: four exact sums.

    They are the same for every rule and in every order. A rule is chosen before the first answer: whoever
    changes it after seeing some may exceed the cap of either.

    Parameters
    ----------
    epsilon : the sum of the epsilons of pure and approximate losses.
    delta : the sum of the deltas of approximate losses.
    squares : the sum of the squares of these epsilons.
    rho : the sum of the rhos of zero-concentrated losses.

    >>> from pdprivacy import Pure
    >>> Spent().add(Pure(0.1), 3) == Spent().add(Pure(0.1)).add(Pure(0.1)).add(Pure(0.1))
    True
    """

    epsilon: Fraction = ZERO
    delta: Fraction = ZERO
    squares: Fraction = ZERO
    rho: Fraction = ZERO

    def add(self, item: Loss, count: int = 1) -> Spent:
        """Return the sums with ``count`` more charges of ``item``; nothing else multiplies by a count."""
        number = count if type(count) is int and count > 0 else whole(count)
        check_loss(item, HELD)
        if isinstance(item, ZCDP):
            return Spent(self.epsilon, self.delta, self.squares, self.rho + number * item.rho)
        delta = item.delta
        above, below = item.epsilon.numerator, item.epsilon.denominator
        return Spent(
            _plus(self.epsilon, number * above, below),
            self.delta + number * delta if delta else self.delta,
            _plus(self.squares, number * above * above, below * below),
            self.rho,
        )

    @classmethod
    def of(cls, losses: Losses) -> Spent:
        """The sums of ``losses``."""
        spent = cls()
        for item, count in counted(losses).items():
            spent = spent.add(item, count)
        return spent

    @property
    def concentrated(self) -> Fraction:
        """The rho of all: an (epsilon, delta) loss is delta-approximately epsilon^2/2-zCDP.

        Source: Bun, Steinke (2016), Proposition 1.4 and Section 8.
        """
        return self.squares / 2 + self.rho


def _plus(total: Fraction, above: int, below: int) -> Fraction:
    """``total + above / below``, in half the time: one fraction is made, of whole numbers."""
    so_far, other = total.numerator, total.denominator
    if below == other:
        return Fraction(so_far + above, below)
    return Fraction(so_far * below + above * other, other * below)


def shares(weights: Sequence[Rational], name: str = "split") -> tuple[Fraction, ...]:
    """Positive ``weights`` as exact shares that sum to one.

    Raises ParameterError where a weight is not a positive number.

    >>> [str(share) for share in shares([2, 1])]
    ['2/3', '1/3']
    """
    instance(name, str, "name")
    if isinstance(weights, str | Mapping) or not isinstance(weights, Iterable):
        raise ParameterError(f"{name!r} must hold positive weights (got {kind(weights)}).", f"{name}=[2, 1].")
    numbers = [rational(weight, name, item=True) for weight in items(weights, name)]
    if not numbers or min(numbers) <= 0:
        raise ParameterError(f"{name!r} must hold positive weights.")
    total = sum(numbers)
    return tuple(number / total for number in numbers)
