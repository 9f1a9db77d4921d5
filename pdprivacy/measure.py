"""The gate: the one function where private data meets noise.

The order is the guarantee: sensitivities and scales from declared facts, then
the charge, then the data, then the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pdprivacy import noise
from pdprivacy.errors import ParameterError, got
from pdprivacy.ledger import Budget
from pdprivacy.mechanism import Gaussian, Geometric, Laplace, noise_multiplier
from pdprivacy.mechanism.core import GRID_BITS, power_below
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Approx, Pure
from pdprivacy.statistic import Engine, Noisy, Part, Statistic, Whole

__all__ = ["Measurement", "MechanismName", "measure"]

MechanismName: TypeAlias = Literal["laplace", "gaussian", "geometric"]
PartMechanism: TypeAlias = Laplace | Gaussian | Geometric
Floats: TypeAlias = NDArray[np.float64]

EXACT = 2**53

DRAWN_BITS = 48
"""The scale of the noise is at most 2**49 grid steps."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Noisy parts with the mechanism of each."""

    parts: tuple[Part, ...]
    mechanisms: tuple[PartMechanism, ...]
    noisy: tuple[Noisy, ...]
    seeded: bool


def measure(
    statistic: Statistic,
    engine: Engine,
    budget: Budget,
    cost: Pure | Approx,
    mechanism: MechanismName,
    label: str,
    rng: RandomState,
) -> Measurement:
    """Charge ``cost`` for ``statistic``, then read it and add noise.

    Raises
    ------
    ParameterError : a mechanism that does not fit; nothing is charged.
    BudgetExceeded : nothing is charged. Whatever fails later stays charged.
    """
    source = noise.source(rng)
    parts = statistic.parts
    mechanisms = tuple(_calibrate(part, cost, mechanism) for part in parts)
    budget.charge(cost, label, mechanism)
    read = statistic.read(engine)
    noisy = tuple(
        Noisy(_add(whole, part, kind, source), kind.std)
        for part, kind, whole in zip(parts, mechanisms, read, strict=True)
    )
    return Measurement(parts, mechanisms, noisy, source.seeded)


def _calibrate(part: Part, cost: Pure | Approx, mechanism: MechanismName) -> PartMechanism:
    """The noise of one part: its share of epsilon, or for Gaussian noise its share of the l2 norm.

    For weights w that sum to one, noise of l1 scale ``l1 / (w epsilon)`` per part costs epsilon in
    all, and Gaussian noise of deviation ``multiplier * l2 / sqrt(w)`` costs (epsilon, delta).
    """
    if not isinstance(mechanism, str) or mechanism not in get_args(MechanismName):
        raise ParameterError(
            f"'mechanism' must be one of 'laplace', 'gaussian', 'geometric' (got {got(mechanism)})."
        )
    if mechanism == "gaussian":
        if not isinstance(cost, Approx):
            raise ParameterError(
                "'delta' must be positive for Gaussian noise (got 0).",
                'pass delta=1e-6, or mechanism="laplace", which needs none.',
            )
        share = _root(Fraction(part.l2_squared) / part.weight)
        multiplier = noise_multiplier(cost.epsilon, cost.delta)
        grid = _grid(part.unit, share * multiplier * part.unit)
        # rounding to a grid coarser than the unit moves each number that a record moves by a step
        rounding = part.moves * grid * _root(1 / part.weight) if grid > part.unit else 0
        return Gaussian(cost.epsilon, cost.delta, share * part.unit + rounding, grid=grid)
    if isinstance(cost, Approx):
        raise ParameterError(
            f"'delta' must be 0 for {mechanism} noise (got {float(cost.delta):g}).",
            'leave delta out, or use mechanism="gaussian".',
        )
    epsilon = cost.epsilon * part.weight
    if mechanism == "geometric":
        if not part.counts:
            raise ParameterError(
                "mechanism='geometric' is for counts.", 'use mechanism="laplace" for numbers.'
            )
        return Geometric(epsilon, part.l1)
    moved = part.l1 * part.unit
    grid = _grid(part.unit, moved / epsilon)
    if grid > part.unit:
        moved = (math.floor(moved / grid) + part.moves) * grid
    return Laplace(epsilon, moved, grid=grid)


def _grid(unit: Fraction, scale: Fraction) -> Fraction:
    """A power of two well below the scale: at most the unit, unless that would be too many steps to draw."""
    power = power_below(scale)
    return max(min(unit, power / (1 << GRID_BITS)), power / (1 << DRAWN_BITS))


def _root(square: Fraction) -> Fraction:
    """A square root rounded up, to 60 bits."""
    shift = max(0, 120 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    scaled = -((-square.numerator << shift) // square.denominator)
    return Fraction(math.isqrt(scaled) + 1, 1 << (shift // 2))


def _add(whole: Whole, part: Part, mechanism: PartMechanism, source: noise.Source) -> Floats:
    """Whole numbers plus noise, as multiples of the mechanism's grid.

    The sum is formed exactly before it becomes a double: a double that had been rounded before
    the noise came would have another sensitivity.
    """
    steps = mechanism.draw(len(whole), source)
    grid = mechanism.grid
    if isinstance(whole, np.ndarray) and grid <= part.unit and np.abs(whole).max(initial=0) < EXACT:
        if grid == part.unit:
            return np.asarray((whole + steps).astype(np.float64) * float(grid))
        # both terms are exact doubles; their sum is rounded once, after the noise
        if int(np.abs(steps).max(initial=0)) < EXACT:
            return np.asarray(whole.astype(np.float64) * float(part.unit) + steps * float(grid))
    numbers: Sequence[int] = whole.tolist() if isinstance(whole, np.ndarray) else whole
    if grid > part.unit:
        coarser = int(grid / part.unit)
        numbers = [(number + coarser // 2) // coarser for number in numbers]
        finer = 1
    else:
        finer = int(part.unit / grid)
    sums = [number * finer + step for number, step in zip(numbers, steps.tolist(), strict=True)]
    return np.array([float(total) for total in sums]) * float(grid)
