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
from pdprivacy.checks import real, reals, whole
from pdprivacy.distributions import DiscreteNormal, discrete_normal_masses
from pdprivacy.errors import ParameterError
from pdprivacy.mechanism.additive import Discrete, whole_sensitivity
from pdprivacy.mechanism.bounds import Bounds
from pdprivacy.mechanism.gaussian import noise_multiplier
from pdprivacy.mechanism.grid import Floats, Integers
from pdprivacy.noise import Source
from pdprivacy.privacy import Approx, Rational

__all__ = ["DiscreteGaussian", "discrete_gaussian_delta"]


LEAST_SIGMA, MOST_SIGMA = 1e-3, 2.0**20
"""Of the sum over all integers that have a mass."""


def discrete_gaussian_delta(epsilon: float, sigma: float, sensitivity: int) -> float:
    """The smallest delta of one integer query under discrete Gaussian noise, by exact summation.

    Source: Canonne, Kamath, Steinke (2020), Theorem 7.

    >>> round(discrete_gaussian_delta(1.0, sigma=2.0, sensitivity=1), 4)
    0.0072
    """
    epsilon, sigma = real(epsilon, "epsilon", 0), real(sigma, "sigma", LEAST_SIGMA, MOST_SIGMA)
    whole(sensitivity, "sensitivity", 1, 2**53)
    z, p = discrete_normal_masses(sigma)
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


@dataclass(frozen=True, init=False)
class DiscreteGaussian(Discrete):
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
    delta: Fraction

    def __init__(self, epsilon: Rational, delta: Rational, sensitivity: Rational = 1) -> None:
        loss = Approx(epsilon, delta)
        sens = whole_sensitivity(sensitivity)
        steps = _discrete_sigma(loss.epsilon, loss.delta, int(sens))
        vars(self).update(
            epsilon=loss.epsilon,
            delta=loss.delta,
            sensitivity=sens,
            steps=steps,
            limits=Bounds(),
            l0_sensitivity=None,
        )

    @property
    def sigma(self) -> Fraction:
        """The parameter of P(z) proportional to exp(-z^2 / (2 sigma^2)), exact."""
        return self.steps

    @property
    def distribution(self) -> DiscreteNormal:
        """The discrete normal distribution of this sigma."""
        return DiscreteNormal(self.scale)

    def cdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Distribution function of the noise, shifted to ``s`` where one is given."""
        if np.isnan(reals(x, "'x'")).any():
            raise ParameterError("'x' must not be NaN.")
        return super().cdf(x, s)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_gaussian(self.sigma**2, size, source)
