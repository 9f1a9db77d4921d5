"""What all mechanisms share: the grid, the checks of their arguments, and adding integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy import noise
from pdprivacy.errors import ParameterError
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Pure, Rational, positive

__all__ = ["GRID_BITS", "ROUNDING_STEPS", "Mechanism", "power_below"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


GRID_BITS = 20
"""A grid is at most 2**-20 of the scale of the noise."""


ROUNDING_STEPS = 2**10
"""Where values are rounded to the grid on the way in, the sensitivity grows by this many steps
(2**-20 of it): enough for 2**10 rounded coordinates in the l1 norm and 2**20 in the l2 norm."""


@runtime_checkable
class Mechanism(Protocol):
    """What a release needs of its noise."""

    name: ClassVar[str]

    @property
    def loss(self) -> Pure | Approx: ...
    @property
    def scale(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def grid(self) -> Fraction: ...
    def draw(self, size: int, source: Source) -> Integers: ...
    def cdf(self, x: ArrayLike) -> Floats: ...
    def interval(self, level: float = 0.95) -> tuple[float, float]: ...


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ParameterError(f"'level' must be strictly between 0 and 1 (got {level}).")


def check_probabilities(q: ArrayLike) -> Floats:
    probabilities = np.asarray(q, dtype=np.float64)
    if not bool(np.all((probabilities >= 0) & (probabilities <= 1))):
        raise ParameterError("Probabilities must be in [0, 1].")
    return probabilities


def power_below(size: Fraction) -> Fraction:
    """The largest power of two that is at most ``size``."""
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    power = Fraction(1 << max(exponent, 0), 1 << max(-exponent, 0))
    return power if power <= size else Fraction(power, 2)


def rounding_grid(sensitivity: Fraction, scale: Fraction) -> Fraction:
    return power_below(min(sensitivity, scale)) / (2**GRID_BITS * ROUNDING_STEPS)


def check_size(size: int, most: int) -> None:
    if size > most:
        raise ParameterError(
            f"Rounding to the grid is accounted for up to {most} values (got {size}).",
            "pass grid=, a power of two of which all values are multiples (1 for counts).",
        )


def check_grid(grid: Rational, sensitivity: Fraction) -> Fraction:
    step = positive(grid, "grid")
    if step.numerator & (step.numerator - 1) or step.denominator & (step.denominator - 1):
        raise ParameterError(f"'grid' must be a power of two (got {grid}).")
    if (sensitivity / step).denominator != 1:
        raise ParameterError("'sensitivity' must be a whole number of grid steps.")
    return step


def add_noise(
    values: ArrayLike, grid: Fraction, exact: bool, draw: Callable[[int, Source], Integers], rng: RandomState
) -> Floats:
    """``values`` put on the grid, plus ``draw``n grid steps, as multiples of the grid."""
    step = float(grid)
    array = np.asarray(values, dtype=np.float64)
    if not bool(np.all(np.isfinite(array))):
        raise ParameterError("Values must be finite.")
    units = array / step
    if not bool(np.all(np.abs(units) < 2.0**62)):
        raise ParameterError(f"Values must be below 2**62 grid steps of {step}.")
    rounded = np.rint(units)
    if exact and not np.array_equal(rounded, units):
        raise ParameterError(f"Values must be multiples of the grid {step}.")
    steps = draw(array.size, noise.source(rng)).reshape(array.shape)
    # Both are integers; their sum is an integer, and so a multiple of the grid also where the
    # conversion to a double rounds it.
    return np.asarray((rounded.astype(np.int64) + steps).astype(np.float64) * step)


def add_integers(values: ArrayLike, draw: Callable[[int, Source], Integers], rng: RandomState) -> Integers:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"Values must be integers (got dtype {array.dtype}).")
    steps = draw(array.size, noise.source(rng)).reshape(array.shape)
    return np.asarray(array.astype(np.int64) + steps)
