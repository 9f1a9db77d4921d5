"""The noise of each part: its scale, from declared facts alone, and its exact sum with the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.accounting import Event, GaussianNoise
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.mechanism.additive import Additive, add, add_within
from pdprivacy.noise import Source
from pdprivacy.privacy import Approx, Pure, loss
from pdprivacy.request import Bounding, Request
from pdprivacy.statistic import Part, Whole

__all__ = [
    "PartMechanism",
    "add_noise",
    "add_noise_within",
    "calibrate",
    "events",
    "released_by",
    "sensitivity_of",
    "total_cost",
]

PartMechanism: TypeAlias = Additive
Floats: TypeAlias = NDArray[np.float64]


def total_cost(mechanisms: Sequence[PartMechanism], request: Request) -> Pure | Approx:
    """Return the loss of all releases: the requested one, or more with the published calibration."""
    if request.calibration != "published":
        return request.cost
    losses = [mechanism.loss.times(request.releases) for mechanism in mechanisms]
    return loss(sum(cost.epsilon for cost in losses), sum(cost.delta for cost in losses))


def events(
    parts: Sequence[Part], mechanisms: Sequence[PartMechanism], request: Request
) -> tuple[tuple[Event, int], ...]:
    """Return the events that an accounting composes: the loss of each release, and Gaussian noise.

    Parts of weights w have deviations of ``multiplier / sqrt(w)`` sensitivities each, so that together
    they are Gaussian noise of that multiplier. Truncated noise is another law.
    """
    release_loss = request.each
    if request.calibration == "published":
        losses = [mechanism.loss for mechanism in mechanisms]
        release_loss = loss(sum(cost.epsilon for cost in losses), sum(cost.delta for cost in losses))
    multipliers = [mechanism.multiplier for mechanism in mechanisms if mechanism.multiplier is not None]
    if not multipliers or request.bounding == "truncated":
        return ((Event(release_loss), request.releases),)
    # on the integers a deviation may be below 1: rho holds for it as well, and 1 is too coarse for all else
    steps = max(min(math.floor(mechanism.steps) for mechanism in mechanisms), 1)
    gaussian = GaussianNoise(min(multipliers), sum(part.moves for part in parts), steps)
    return ((Event(release_loss, gaussian), request.releases),)


def calibrate(parts: Sequence[Part], request: Request) -> tuple[PartMechanism, ...]:
    """Return the mechanism of each part, from declared facts alone.

    For weights w that sum to one, parts that cost (w epsilon, w delta) each cost (epsilon, delta)
    in all. Gaussian noise shares the l2 norm instead, truncated or not: deviation ``multiplier * l2 /
    sqrt(w)`` per part.

    Raises ParameterError where the mechanism or its bounds do not fit the statistic.
    """
    mechanism = MECHANISMS[request.mechanism]
    return tuple(mechanism.calibrate(part, request) for part in parts)


def released_by(mechanism: PartMechanism, part: Part, bounding: Bounding | None) -> PartMechanism:
    """Return the mechanism with all bounds of the released numbers of the part.

    `calibrate` passes bounds to a mechanism only where its scale depends on them.
    """
    lower, upper = part.bounds
    return mechanism.with_bounds((lower * part.unit, upper * part.unit), bounding, part.moves)


def sensitivity_of(part: Part, mechanism: PartMechanism) -> float:
    """Return the sensitivity of a part in the norm of its mechanism, in the unit of the statistic."""
    sensitivity = math.sqrt(part.l2_squared) if mechanism.norm == "l2" else float(part.l1)
    return sensitivity * float(part.unit)


def add_noise(whole: Whole, part: Part, mechanism: PartMechanism, source: Source) -> Floats:
    """Return the whole numbers of a part plus noise, as multiples of the mechanism's grid."""
    return add(whole, part.unit, mechanism, source)


def add_noise_within(
    whole: Whole, part: Part, mechanism: PartMechanism, limits: tuple[Any, Any], source: Source
) -> Floats:
    """Return the whole numbers of a part clamped into ``limits``, plus noise truncated to them."""
    return add_within(whole, part.unit, mechanism, limits, source)
