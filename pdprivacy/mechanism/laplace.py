"""Laplace noise and its integer form: pure differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.errors import ParameterError
from pdprivacy.mechanism.core import (
    LEAST_STEPS,
    ROUNDING_STEPS,
    Floats,
    Integers,
    add_integers,
    add_noise,
    check_drawable,
    check_grid,
    check_level,
    check_probabilities,
    check_size,
    rounding_grid,
)
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Pure, Rational, positive

__all__ = ["Geometric", "Laplace"]


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of scale ``sensitivity / epsilon``: epsilon-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive; a float, a decimal or fraction as text, or a Fraction.
    sensitivity : l1 sensitivity of the values, positive, in their unit.
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number,
        at most 2**-20 of the scale.
        By default 2**-30 below scale and sensitivity; values are then rounded to it, which can
        move two neighbouring vectors a step per coordinate further apart: the scale grows by
        2**-20 of itself for that, which is enough for 1024 values.

    Attributes
    ----------
    steps : the scale in grid steps, exact.
    scale : the scale b, in the unit of the values.

    Raises
    ------
    ParameterError : epsilon or sensitivity not positive and finite, a grid that is none.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), Proposition 1. On the grid the noise is the discrete
    Laplace distribution of Ghosh, Roughgarden, Sundararajan (2009).

    >>> mechanism = Laplace(epsilon=0.5, sensitivity=1)
    >>> round(mechanism.scale, 4), round(mechanism.std, 4)
    (2.0, 2.8284)
    >>> round(float(mechanism.cdf(0.0)), 2)
    0.5
    """

    name: ClassVar[str] = "laplace"
    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    exact: bool
    steps: Fraction
    scale: float

    def __init__(self, epsilon: Rational, sensitivity: Rational, grid: Rational | None = None) -> None:
        eps, sens = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        step = rounding_grid(sens, sens / eps) if grid is None else check_grid(grid, sens, sens / eps)
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)
        steps = (sens / step + (ROUNDING_STEPS if grid is None else 0)) / eps
        check_drawable(steps, step)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", float(steps * step))

    @property
    def loss(self) -> Pure:
        """What one sample costs."""
        return Pure(self.epsilon)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, ``sqrt(2) b``."""
        return math.sqrt(2) * self.scale

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise in grid steps."""
        return noise.discrete_laplace(self.steps, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Floats:
        """``values`` plus independent noise, on the grid; same shape, float64.

        Raises ParameterError where a value is not finite (without the value).
        """
        if not self.exact:
            check_size(np.size(values), ROUNDING_STEPS)
        return add_noise(values, self.grid, self.exact, self.draw, rng)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density of the noise."""
        b = self.scale
        return np.asarray(np.exp(-np.abs(np.asarray(x, dtype=np.float64)) / b) / (2 * b))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        z = np.asarray(x, dtype=np.float64) / self.scale
        tail = np.exp(-np.abs(z)) / 2
        return np.asarray(np.where(z < 0, tail, 1 - tail))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile function of the noise."""
        p = check_probabilities(q)
        with np.errstate(divide="ignore"):
            return np.asarray(self.scale * np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the noise with probability ``level``."""
        check_level(level)
        half = -self.scale * math.log1p(-level)
        return -half, half


@dataclass(frozen=True, slots=True)
class Geometric:
    """Two-sided geometric (discrete Laplace) noise on the integers: epsilon-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : l1 sensitivity of the integer values, a positive whole number.

    Raises
    ------
    ParameterError : epsilon not positive and finite, sensitivity not a positive whole number.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms",
    Definition 2.1, with ratio exp(-epsilon / sensitivity).

    >>> mechanism = Geometric(epsilon=1, sensitivity=1)
    >>> mechanism.interval(0.95)
    (-3.0, 3.0)
    >>> round(float(mechanism.pmf(0) / mechanism.pmf(1)), 4)  # exp(1)
    2.7183
    """

    name: ClassVar[str] = "geometric"
    epsilon: Fraction
    sensitivity: Fraction

    def __init__(self, epsilon: Rational, sensitivity: Rational = 1) -> None:
        sens = positive(sensitivity, "sensitivity")
        if sens.denominator != 1:
            raise ParameterError(f"'sensitivity' must be a whole number (got {sensitivity}).")
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", sens)
        check_drawable(max(sens / self.epsilon, LEAST_STEPS), Fraction(1))

    @property
    def loss(self) -> Pure:
        """What one sample costs."""
        return Pure(self.epsilon)

    @property
    def grid(self) -> Fraction:
        """The integers."""
        return Fraction(1)

    @property
    def scale(self) -> float:
        """The scale b in P(z) proportional to exp(-abs(z)/b)."""
        return float(self.sensitivity / self.epsilon)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, ``sqrt(2 r) / (1 - r)`` with r = exp(-1/b)."""
        b = self.scale
        return math.sqrt(2) * math.exp(-0.5 / b) / -math.expm1(-1 / b)

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise."""
        return noise.discrete_laplace(self.sensitivity / self.epsilon, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Integers:
        """Integer ``values`` plus independent noise; same shape, int64."""
        return add_integers(values, self.draw, rng)

    def pmf(self, z: ArrayLike) -> Floats:
        """Probability of the noise at integers, zero elsewhere."""
        x = np.asarray(z, dtype=np.float64)
        b = self.scale
        mass = math.tanh(0.5 / b) * np.exp(-np.abs(x) / b)
        return np.asarray(np.where(x == np.rint(x), mass, 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        k = np.floor(np.asarray(x, dtype=np.float64))
        share = self._share
        below = share * np.exp(np.minimum(k, 0.0) / self.scale)
        above = 1 - share * np.exp(-(np.maximum(k, 0.0) + 1) / self.scale)
        return np.asarray(np.where(k < 0, below, above))

    @property
    def _share(self) -> float:
        """The probability of zero and everything on one side of it."""
        return 1 / (1 + math.exp(-1 / self.scale))

    def ppf(self, q: ArrayLike) -> Floats:
        """Smallest integer whose cdf reaches ``q``."""
        p = check_probabilities(q)
        b, share = self.scale, self._share
        with np.errstate(divide="ignore"):
            low = np.ceil(b * np.log(p / share))
            high = np.ceil(-b * np.log((1 - p) / share) - 1)
        k = np.where(p <= share * math.exp(-1 / b), low, np.maximum(high, 0.0))
        # the logarithm may land beside the integer: the cdf itself settles it
        found = k.copy()
        for near in (k + 1, k, k - 1):
            with np.errstate(invalid="ignore"):
                found = np.where(np.isfinite(k) & (self.cdf(near) >= p), near, found)
        return np.asarray(found)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The smallest symmetric integer interval that holds the noise with at least ``level``."""
        check_level(level)
        b = self.scale
        # beyond k on both sides lies 2 exp(-(k + 1)/b) / (1 + exp(-1/b))
        half = max(math.ceil(-b * math.log((1 - level) / (2 * self._share)) - 1), 0)
        while half > 0 and 2 * self._share * math.exp(-half / b) <= 1 - level:
            half -= 1
        while 2 * self._share * math.exp(-(half + 1) / b) > 1 - level:
            half += 1
        return (-float(half) if half else 0.0), float(half)
