"""Gaussian noise on the integers, calibrated by its exact privacy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.checks import doubles, real, whole
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism.core import (
    Floats,
    Integers,
    add_integers,
    check_count,
    check_level,
    check_probabilities,
    check_source,
)
from pdprivacy.mechanism.gaussian import noise_multiplier
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Rational, positive

__all__ = ["DiscreteGaussian", "discrete_gaussian_delta"]


LEAST_SIGMA, MOST_SIGMA = 1e-3, 2.0**20
"""Of the sum over all integers that have a mass."""


@lru_cache(maxsize=4)
def _discrete_masses(sigma: float, reach: int) -> tuple[Floats, Floats]:
    """The integers within ``reach`` and their discrete Gaussian probabilities."""
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-z * z / (2 * sigma * sigma))
    return z, weights / math.fsum(weights)


def discrete_gaussian_delta(epsilon: float, sigma: float, sensitivity: int) -> float:
    """The smallest delta of one integer query under discrete Gaussian noise, by exact summation.

    Source: Canonne, Kamath, Steinke (2020), Theorem 7.
    """
    epsilon, sigma = real(epsilon, "epsilon", 0), real(sigma, "sigma", LEAST_SIGMA, MOST_SIGMA)
    whole(sensitivity, "sensitivity", 1, 2**53)
    # beyond 40 sigma a term is below the smallest double
    z, p = _discrete_masses(sigma, math.ceil(40 * sigma))
    # z is the noise of the neighbour that lies `sensitivity` higher: its privacy loss is linear in z
    privacy_loss = sensitivity * (2 * z + sensitivity) / (2 * sigma * sigma)
    gain = p * np.maximum(-np.expm1(np.minimum(epsilon - privacy_loss, 0.0)), 0.0)
    return math.fsum(gain)


@lru_cache(maxsize=256)
def _discrete_sigma(epsilon: Fraction, delta: Fraction, sensitivity: int) -> Fraction:
    start = float(noise_multiplier(epsilon, delta)) * sensitivity
    if math.isinf(start):
        raise ParameterError("The noise cannot be drawn: its scale must be at most 1e290.")
    if start > 2.0**16:
        # the grid of the integers is then below 2**-16 sigma and the continuous calibration,
        # grown by far more than the lattice adds, is as good
        return Fraction(start * (1 + 1e-6))

    # delta is not exactly monotone in sigma on a lattice: walk up until it is met, so that the
    # value returned has been checked itself
    def meets(sigma: float) -> bool:
        return discrete_gaussian_delta(float(epsilon), sigma, sensitivity) <= float(delta) * (1 - 1e-9)

    sigma = start
    while start < 64 and meets(sigma):
        sigma *= 0.75
    while not meets(sigma):
        sigma *= 1.001
    while start < 64 and meets(sigma * 0.98):
        sigma *= 0.98
    return Fraction(sigma)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise on the integers for one query: (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in (0, 1).
    sensitivity : sensitivity of the single integer query, a positive whole number. (For a
        vector the exact loss depends on its direction; use `Gaussian`.)

    Raises
    ------
    ParameterError : a parameter out of range.

    References
    ----------
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", Theorem 7:
    sigma is the smallest of a fine ladder whose exact delta is at most the stated one.

    >>> from pdprivacy.mechanism import Gaussian
    >>> mechanism = DiscreteGaussian(epsilon=1, delta=1e-5)
    >>> bool(abs(mechanism.scale - Gaussian(1, 1e-5, 1).scale) < 0.05)
    True
    """

    name: ClassVar[str] = "discrete_gaussian"
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    sigma: Fraction

    def __init__(self, epsilon: Rational, delta: Rational, sensitivity: Rational = 1) -> None:
        loss = Approx(epsilon, delta)
        sens = positive(sensitivity, "sensitivity")
        if sens.denominator != 1:
            raise ParameterError(f"'sensitivity' must be a whole number (got {got(sensitivity)}).")
        object.__setattr__(self, "epsilon", loss.epsilon)
        object.__setattr__(self, "delta", loss.delta)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "sigma", _discrete_sigma(loss.epsilon, loss.delta, int(sens)))

    @property
    def loss(self) -> Approx:
        """What one sample costs."""
        return Approx(self.epsilon, self.delta)

    @property
    def grid(self) -> Fraction:
        """The integers."""
        return Fraction(1)

    @property
    def scale(self) -> float:
        """The parameter sigma in P(z) proportional to exp(-z^2 / (2 sigma^2))."""
        return float(self.sigma)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, slightly below sigma."""
        if self.scale > 10:  # the lattice shows in the 800th decimal
            return self.scale
        z, p = self._masses()
        return math.sqrt(math.fsum(z * z * p))

    def _masses(self) -> tuple[Floats, Floats]:
        return _discrete_masses(self.scale, math.ceil(40 * self.scale) + 1)

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise."""
        return noise.discrete_gaussian(self.sigma**2, check_count(size), check_source(source))

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Integers:
        """Integer ``values`` plus independent noise; same shape, int64."""
        return add_integers(values, self.draw, rng)

    def pmf(self, z: ArrayLike) -> Floats:
        """Probability of the noise at integers, zero elsewhere."""
        x = doubles(z, "'z'")
        _, p = self._masses()
        with np.errstate(over="ignore"):
            mass = p[len(p) // 2] * np.exp(-((x / self.scale) ** 2) / 2)
        return np.asarray(np.where(x == np.rint(x), mass, 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        numbers = doubles(x, "'x'")
        if np.isnan(numbers).any():
            raise ParameterError("'x' must not be NaN.")
        z, p = self._masses()
        k = np.clip(np.floor(numbers), z[0] - 1, z[-1]) - z[0]
        total = np.concatenate([[0.0], np.minimum(np.cumsum(p), 1.0)])
        return np.asarray(total[np.clip(k + 1, 0, len(p)).astype(np.int64)])

    def ppf(self, q: ArrayLike) -> Floats:
        """Smallest integer whose cdf reaches ``q``."""
        probabilities = check_probabilities(q)
        z, p = self._masses()
        index = np.searchsorted(np.minimum(np.cumsum(p), 1.0), probabilities, side="left")
        return np.asarray(np.where(index < len(z), z[np.minimum(index, len(z) - 1)], np.inf))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The smallest symmetric integer interval that holds the noise with at least ``level``."""
        check_level(level)
        _, p = self._masses()
        middle = len(p) // 2
        held = np.cumsum(np.concatenate([[p[middle]], 2 * p[middle + 1 :]]))
        half = float(np.searchsorted(held, level, side="left"))
        return (-half if half else 0.0), half
