"""Privacy loss distributions, by Google's dp-accounting (the extra ``pld``, imported when used)."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from pdprivacy.accounting.events import Event, events_of
from pdprivacy.accounting.rounding import float_down, float_up
from pdprivacy.errors import MissingExtraError, ParameterError, got
from pdprivacy.privacy import Loss, Rational, positive, rational

__all__ = ["pld_delta", "pld_epsilon", "to_dp_event"]

LEAST_DELTA = Fraction(1, 10**10)
TRANSFORMS = 1e-13
"""What the Fourier transforms of dp-accounting may lose of delta; a thousand roundings of a double."""
INTERVAL = 1e-4
CELLS = 10**6
LARGEST = 700
"""A single loss above this is too large for the exponentials of dp-accounting, but of Gaussian noise."""


def pld_epsilon(events: Iterable[Loss | Event], delta: Rational, interval: Rational = INTERVAL) -> float:
    """An epsilon of ``events`` together at ``delta``, from above; infinite where there is none.

    Holds for events fixed beforehand only. The distributions are those of dp-accounting, with losses
    rounded up to multiples of ``interval`` (to a wider one where a single loss is above 1e6 of them): at
    most ``interval`` for each release, for continuous noise much less. Its Fourier transforms round to
    nearest; 1e-13 of delta is kept for them.

    Raises
    ------
    MissingExtraError : without dp-accounting.
    ParameterError : an event in rho (it has no distribution); delta not in [1e-10, 1).
    """
    slack = rational(delta, "delta")
    if not LEAST_DELTA <= slack < 1:
        raise ParameterError(
            f"'delta' must be in [1e-10, 1) for loss distributions (got {got(delta)}).",
            "accounting='optimal' or 'zcdp' holds for any delta.",
        )
    whole = _composed(events_of(events), positive(interval, "interval"))
    return math.inf if whole is None else float(whole.get_epsilon_for_delta(float_down(slack) - TRANSFORMS))


def pld_delta(events: Iterable[Loss | Event], epsilon: Rational, interval: Rational = INTERVAL) -> float:
    """A delta of ``events`` together at ``epsilon``, from above; as `pld_epsilon`."""
    level = rational(epsilon, "epsilon")
    if level < 0:
        raise ParameterError(f"'epsilon' must be at least 0 (got {got(epsilon)}).")
    whole = _composed(events_of(events), positive(interval, "interval"))
    return (
        1.0 if whole is None else min(1.0, float(whole.get_delta_for_epsilon(float_down(level))) + TRANSFORMS)
    )


def to_dp_event(event: Loss | Event) -> Any:
    """The event as a type of dp-accounting, with its count.

    A pure loss becomes discrete Laplace noise of sensitivity 1, whose two likelihood ratios are those of
    randomized response, the worst of all pure losses (Kairouz, Oh, Viswanath 2015). A loss with a
    delta and no more known becomes ``UnsupportedDpEvent``, which its accountants refuse: they know none.

    Raises
    ------
    MissingExtraError : without dp-accounting.
    """
    (one,) = events_of([event])
    types = _module("dp_accounting.dp_event")
    # not RandomizedResponseDpEvent: dp-accounting 0.6 charges it once, whatever its count
    if one.kind == "approx":
        return types.UnsupportedDpEvent()
    if one.kind == "zcdp":
        assert one.rho is not None
        single = types.ZCDpEvent(rho=float_up(one.rho))
    elif one.kind in ("laplace", "gaussian"):
        assert one.noise_multiplier is not None
        made = types.LaplaceDpEvent if one.kind == "laplace" else types.GaussianDpEvent
        single = made(noise_multiplier=float_down(one.noise_multiplier))
    else:
        parameter, sensitivity = _geometric(one)
        single = types.DiscreteLaplaceDpEvent(noise_parameter=parameter, sensitivity=sensitivity)
    return single if one.count == 1 else types.SelfComposedDpEvent(event=single, count=one.count)


def _geometric(event: Event) -> tuple[float, int]:
    """Loss per step, rounded up, and sensitivity in steps, of geometric noise or of a pure loss."""
    if event.noise_multiplier is None:
        assert event.epsilon is not None
        return float_up(event.epsilon), 1
    return float_up(1 / (event.noise_multiplier * event.sensitivity)), event.sensitivity


def _composed(events: list[Event], interval: Fraction) -> Any:
    """The distribution of all events, None past its range; the count is multiplied here, for every kind."""
    if any(event.kind == "zcdp" for event in events):
        raise ParameterError(
            "A loss in rho has no loss distribution.",
            'Event("gaussian", noise_multiplier=...) for Gaussian noise, or accounting="zcdp".',
        )
    largest = max(_span(event) for event in events)
    width = float_up(max(interval, largest / CELLS))
    known = _module("dp_accounting.pld.privacy_loss_distribution")
    if any(event.kind != "gaussian" and _span(event) > LARGEST for event in events):
        return None
    whole: Any = None
    for event in events:
        many = _single(event, width, known).self_compose(event.count)
        whole = many if whole is None else whole.compose(many)
    return whole


def _span(event: Event) -> Fraction:
    """About the largest loss of one release."""
    if event.epsilon is not None and event.noise_multiplier is None:
        return event.epsilon
    assert event.noise_multiplier is not None
    one = 1 / event.noise_multiplier
    return 10 * one + one**2 if event.kind == "gaussian" else one


def _single(event: Event, width: float, known: Any) -> Any:
    if event.kind in ("pure", "approx"):
        assert event.epsilon is not None
        parameters = _module("dp_accounting.pld.common").DifferentialPrivacyParameters
        losses = parameters(float_up(event.epsilon), float_up(event.delta))
        return known.from_privacy_parameters(losses, value_discretization_interval=width)
    options = {"pessimistic_estimate": True, "value_discretization_interval": width}
    if event.kind == "geometric":
        parameter, sensitivity = _geometric(event)
        return known.from_discrete_laplace_mechanism(parameter, sensitivity=sensitivity, **options)
    assert event.noise_multiplier is not None
    multiplier = float_down(event.noise_multiplier)
    if event.kind == "laplace":
        return known.from_laplace_mechanism(multiplier, **options)
    return known.from_gaussian_mechanism(multiplier, **options)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(
            "Privacy loss distributions need dp-accounting, which is not installed.",
            'pip install "pdprivacy[pld]"',
        ) from None
