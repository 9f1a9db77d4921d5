"""The joint cost of events fixed beforehand, by each accounting and by the best of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias, get_args

from pdprivacy.accounting.distribution import pld_epsilon
from pdprivacy.accounting.events import Event, Events, tally
from pdprivacy.accounting.optimal import optimal_epsilon
from pdprivacy.accounting.rules import zcdp_epsilon
from pdprivacy.errors import MissingExtraError, ParameterError, check_one_of
from pdprivacy.exact import float_up
from pdprivacy.privacy import ZCDP, Loss, Rational, check_delta, rational

Method: TypeAlias = Literal["basic", "optimal", "zcdp", "pld", "best"]


class Bound(NamedTuple):
    """The epsilon of one accounting, rounded up; or None, with the reason for its absence."""

    accounting: Method
    epsilon: float | None
    reason: str | None = None


def epsilon(events: Events, delta: Rational, accounting: Method = "best") -> float:
    """Return an epsilon, rounded up, such that all ``events`` together are (epsilon, delta)-private.

    This epsilon holds only for losses fixed beforehand. If a loss, or the existence of a further release,
    depended on answers, the cap of the enforced rule holds instead (see `rule`).

    Parameters
    ----------
    events : pairs of an event and its count.
    delta : the delta of all events together, in [0, 1).
    accounting : ``"basic"``: the sum of the epsilons, where the deltas sum to at most ``delta``.
        ``"optimal"``: `optimal_epsilon` of the losses. ``"zcdp"``: the sum of the rhos (of the noise if it
        is known, else epsilon^2 / 2 of the loss), by the tight conversion at the part of ``delta`` that the
        deltas of the losses leave. ``"pld"``: the privacy loss distribution (of the noise if it is known,
        else of the loss); needs ``pdprivacy[pld]`` and a delta of at least 1e-10. ``"best"``: the least of
        the accountings that apply.

    Raises
    ------
    ParameterError : no events, a delta outside [0, 1), or an accounting that does not apply.
    MissingExtraError : "pld" without dp-accounting.

    Notes
    -----
    Source of "zcdp": Bun, Steinke (2016), Proposition 1.4 and Lemma 1.7; the discrete Gaussian has the rho
    of the continuous one, 1 / (2 multiplier^2) (Canonne, Kamath, Steinke 2020, Theorem 14). An (epsilon,
    delta) loss is a pure loss except for an outcome of probability delta (Kairouz, Oh, Viswanath 2015). These
    outcomes occur with probability at most sum delta; without them all losses are zero-concentrated.

    >>> from fractions import Fraction
    >>> from pdprivacy import Approx, Pure
    >>> from pdprivacy.accounting import GaussianNoise
    >>> noise = GaussianNoise(Fraction(10), moves=1, steps=2**20)
    >>> events = [(Event(Pure(0.1)), 20), (Event(Approx("0.4", 1e-5), noise), 10)]
    >>> [round(epsilon(events, 1e-3, name), 2) for name in ("basic", "optimal", "zcdp")]
    [6.0, 4.14, 1.72]
    """
    check_one_of("accounting", accounting, get_args(Method))
    if accounting == "best":
        return _least(report(events, delta))
    _check(events, delta)
    return _METHODS[accounting](events, rational(delta, "delta"))


def report(events: Events, delta: Rational) -> list[Bound]:
    """Return the epsilon of each accounting of `epsilon`, "best" last.

    Raises ParameterError for no events and for a delta outside [0, 1).

    >>> from pdprivacy import ZCDP
    >>> [bound.accounting for bound in report([(Event(ZCDP(0.1)), 2)], 1e-6) if bound.epsilon is not None]
    ['zcdp', 'best']
    """
    _check(events, delta)
    found = []
    for name, method in _METHODS.items():
        try:
            found.append(Bound(name, method(events, rational(delta, "delta"))))
        except (ParameterError, MissingExtraError) as error:
            found.append(Bound(name, None, str(error).partition("\n")[0]))
    known = [bound.epsilon for bound in found if bound.epsilon is not None]
    if known:
        return [*found, Bound("best", min(known))]
    return [*found, Bound("best", None, "No accounting applies to these events at this delta.")]


def _least(bounds: list[Bound]) -> float:
    *_, best = bounds
    if best.epsilon is None:
        why = "; ".join(f"{one.accounting}: {one.reason}" for one in bounds[:-1])
        raise ParameterError(f"{best.reason} {why}", "a larger delta.")
    return best.epsilon


def _check(events: Events, delta: Rational) -> None:
    if not tally(events):
        raise ParameterError("'events' must hold at least one event.")
    check_delta(delta)


def _basic(events: Events, delta: Fraction) -> float:
    total, slack = Fraction(0), Fraction(0)
    for event, count in tally(events):
        if isinstance(event.loss, ZCDP):
            raise ParameterError("A zero-concentrated loss has no epsilon to add up.")
        total += count * event.loss.epsilon
        slack += count * event.loss.delta
    if slack > delta:
        raise ParameterError(f"The deltas of the losses sum to {float_up(slack):.6g}, above 'delta'.")
    return _finite(float_up(total))


def _optimal(events: Events, delta: Fraction) -> float:
    counts: Counter[Loss] = Counter()
    for event, count in tally(events):
        counts[event.loss] += count
    return _finite(optimal_epsilon(counts, delta))


def _zcdp(events: Events, delta: Fraction) -> float:
    rho, slack = Fraction(0), Fraction(0)
    for event, count in tally(events):
        one, reveals = _concentrated(event)
        rho += count * one
        slack += count * reveals
    if not delta:
        raise ParameterError("The conversion of rho needs a positive 'delta'.")
    if slack >= delta:
        raise ParameterError("The deltas of the losses leave nothing of 'delta' for the conversion of rho.")
    return _finite(zcdp_epsilon(rho, delta - slack))


def _concentrated(event: Event) -> tuple[Fraction, Fraction]:
    """Return the rho of an event, from its noise if that is known, and the probability that it has no rho."""
    item = event.loss
    if event.noise is not None:
        return 1 / (2 * event.noise.multiplier**2), Fraction(0)
    return (item.rho, Fraction(0)) if isinstance(item, ZCDP) else (item.epsilon**2 / 2, item.delta)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ParameterError("The epsilon exceeds the largest float.")
    return number


_METHODS: dict[Method, Callable[[Events, Fraction], float]] = {
    "basic": _basic,
    "optimal": _optimal,
    "zcdp": _zcdp,
    "pld": pld_epsilon,
}
