"""The smallest epsilon that is known of releases fixed beforehand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from pdprivacy.accounting.concentrated import LEAST_SLACK, zcdp_epsilon
from pdprivacy.accounting.distributions import pld_epsilon
from pdprivacy.accounting.events import Event, events_of
from pdprivacy.accounting.optimal import optimal_epsilon
from pdprivacy.accounting.rounding import float_up
from pdprivacy.accounting.sums import Spent
from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import Loss, Rational, rational

__all__ = ["Bound", "best_epsilon"]

Method: TypeAlias = Literal["best", "basic", "optimal", "zcdp", "pld"]


class Bound(NamedTuple):
    """An epsilon, and the accounting that gives it."""

    accounting: str
    epsilon: float


def best_epsilon(
    events: Iterable[Loss | Event],
    delta: Rational,
    accounting: Method | Sequence[Method] = "best",
) -> tuple[Bound, ...]:
    """Valid epsilons of ``events`` together at ``delta``, the smallest first.

    For reports and plans only: all but "basic" and "zcdp" hold for losses fixed beforehand, and the
    smallest of several only if the choice among them is not made after seeing answers. A budget is
    enforced by `rule`.

    Parameters
    ----------
    events : losses, and events that tell the noise.
    delta : in [0, 1).
    accounting : "basic" (sums), "optimal" (`optimal_epsilon`), "zcdp" (`zcdp_epsilon` of the sum of
        rhos, at what the deltas of losses leave of ``delta``), "pld" (`pld_epsilon`; needs the extra
        ``pld``), "best" (the first three), or several of them. One that says nothing of these
        events is left out.

    Raises
    ------
    ParameterError : no accounting asked for gives an epsilon; an unknown one; delta out of range.
    MissingExtraError : "pld" without dp-accounting.

    >>> from pdprivacy import Pure
    >>> [(bound.accounting, round(bound.epsilon, 3)) for bound in best_epsilon([Pure(0.1)] * 100, 1e-6)]
    [('optimal', 4.775), ('zcdp', 5.222), ('basic', 10.0)]
    """
    slack = rational(delta, "delta")
    if not 0 <= slack < 1:
        raise ParameterError(f"'delta' must be in [0, 1) (got {got(delta)}).")
    items = events_of(events)
    found = [Bound(name, _METHODS[name](items, slack)) for name in _asked(accounting)]
    valid = sorted((bound for bound in found if math.isfinite(bound.epsilon)), key=lambda one: one.epsilon)
    if not valid:
        raise ParameterError(
            f"No accounting of {', '.join(bound.accounting for bound in found)} gives these releases an "
            f"epsilon at delta {float(slack):g}.",
            "a larger delta; losses in rho need a positive one beside the deltas of the others.",
        )
    return tuple(valid)


def _asked(accounting: Method | Sequence[Method]) -> list[str]:
    names = [accounting] if isinstance(accounting, str) else list(accounting)
    for name in names:
        if name != "best" and name not in _METHODS:
            raise ParameterError(
                f"'accounting' must be of 'best', 'basic', 'optimal', 'zcdp', 'pld' (got {got(name)})."
            )
    several = [("basic", "optimal", "zcdp") if name == "best" else (name,) for name in names]
    if not several:
        raise ParameterError("'accounting' must name at least one (got an empty list).")
    return list(dict.fromkeys(name for group in several for name in group))


def _losses(events: Sequence[Event]) -> Counter[Loss]:
    """What was charged, and how often."""
    counts: Counter[Loss] = Counter()
    for event in events:
        counts[event.loss] += event.count
    return counts


def _basic(events: Sequence[Event], delta: Fraction) -> float:
    spent = Spent.of(_losses(events))
    return math.inf if spent.rho or spent.delta > delta else float_up(spent.epsilon)


def _optimal(events: Sequence[Event], delta: Fraction) -> float:
    try:
        return optimal_epsilon(_losses(events), delta)
    except ParameterError:  # losses in rho, too many, or of deltas above this one
        return math.inf


def _zcdp(events: Sequence[Event], delta: Fraction) -> float:
    spent = Spent()
    for event in events:
        spent = spent.add(event.least, event.count)
    slack = delta - spent.delta
    return math.inf if slack < LEAST_SLACK else zcdp_epsilon(spent.concentrated, slack)


_METHODS: Mapping[str, Callable[[Sequence[Event], Fraction], float]] = {
    "basic": _basic,
    "optimal": _optimal,
    "zcdp": _zcdp,
    "pld": pld_epsilon,
}
