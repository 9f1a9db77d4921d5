"""Accounting: what several releases cost together, and how one loss is shared out.

Everything is exact in rational numbers. The sum of losses (basic composition)
stays valid when each loss is chosen after seeing the answers before it, so it
is what a budget is enforced with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from pdprivacy.errors import ParameterError
from pdprivacy.privacy import ZCDP, Loss, Rational, loss, rational

__all__ = ["compose", "shares"]


def compose(losses: Iterable[Loss]) -> Loss | None:
    """The loss of all ``losses`` together: epsilons, deltas and rhos add up; None where there are none.

    Source: Dwork, Roth (2014), Theorem 3.16, and Bun, Steinke (2016), Lemma 1.7; adaptive choice
    allowed (Rogers, Roth, Ullman, Vadhan 2016, Section 3).

    Raises
    ------
    ParameterError : zero-concentrated losses among others; they have no exact sum.

    >>> from pdprivacy import Approx, Pure
    >>> compose([Pure(0.1), Pure(0.1), Approx(0.1, 1e-6)]) == Approx("0.3", 1e-6)
    True
    """
    items = list(losses)
    if not items:
        return None
    concentrated = [item.rho for item in items if isinstance(item, ZCDP)]
    if len(concentrated) == len(items):
        return ZCDP(sum(concentrated))
    if concentrated:
        raise ParameterError("Losses in epsilon and losses in rho do not add up.")
    plain = [item for item in items if not isinstance(item, ZCDP)]
    return loss(sum(item.epsilon for item in plain), sum(item.delta for item in plain))


def shares(weights: Sequence[Rational]) -> tuple[Fraction, ...]:
    """Positive ``weights`` as exact shares that sum to one.

    Raises ParameterError where a weight is not a positive number.

    >>> [str(share) for share in shares([2, 1])]
    ['2/3', '1/3']
    """
    numbers = [rational(weight, "split") for weight in weights]
    if not numbers or min(numbers) <= 0:
        raise ParameterError("'split' must hold positive weights.")
    total = sum(numbers)
    return tuple(number / total for number in numbers)
