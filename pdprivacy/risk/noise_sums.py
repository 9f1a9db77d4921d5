"""The distribution of a sum of independent noises, for a reader who adds up released counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy import fft
from numpy.typing import ArrayLike

from pdprivacy.core.distributions import Distribution, GeneralizedNormal
from pdprivacy.types import Floats

MOST_TERMS = 10_000
"""Sums of more terms are taken as Gaussian; the error of their distribution function is below 1e-4."""

STEPS, FEW = 256, 8
"""Steps of the grid within the standard deviation of one noise, times the root of the terms, at most FEW."""

MOST_STEPS = 1 << 15
"""The largest number of steps of the grid on one side of zero."""

MOST_SHAPES = 64
"""The largest number of terms whose sum of Laplace noise is computed by its closed form."""

BEYOND = 1e-18
"""The mass of one noise that the grid may leave out."""


class HasDistribution(Protocol):
    """A mechanism without bounding, whose noise has a distribution."""

    @property
    def distribution(self) -> Distribution:
        """The distribution of the noise."""
        ...


@dataclass(frozen=True)
class NoiseSum:
    """The sum of ``terms`` independent noises of one mechanism over ``divisor``, by its distribution.

    Sums of Gaussian noise have a closed form, and so have short sums of Laplace noise. Probabilities of noise
    on the integers are convolved by Fourier transforms, to about 1e-15 while the standard deviation is below
    64. Wider and other noise is rounded to a fine grid first, which moves the distribution function by less
    than 1e-5.

    >>> from pdprivacy.mechanism import Geometric
    >>> NoiseSum(Geometric(epsilon=1, sensitivity=1), 3).cdf([0, 2]).round(3)
    array([0.603, 0.876])
    """

    mechanism: HasDistribution
    terms: int
    divisor: int = 1

    def cdf(self, x: ArrayLike, /) -> Floats:
        """Return Pr(sum / divisor <= x)."""
        points, law = np.asarray(x, dtype=np.float64) * self.divisor, self.mechanism.distribution
        if self.terms == 1:
            return law.cdf(points)
        if self.terms > MOST_TERMS or (isinstance(law, GeneralizedNormal) and law.p == 2):
            return GeneralizedNormal.gaussian(law.std * math.sqrt(self.terms)).cdf(points)
        if isinstance(law, GeneralizedNormal) and law.p == 1 and self.terms <= MOST_SHAPES:
            return _laplace_sum(points / law.b, self.terms)
        step, first, reached = self._steps
        ends = np.floor(points) + 0.5 if law.step else points
        return np.interp(ends / step - 0.5 - first, np.arange(len(reached)), reached)

    @cached_property
    def _steps(self) -> tuple[float, int, Floats]:
        """The width of a step, the number of the first one, and Pr(sum < its upper end) of each."""
        law, spread = self.mechanism.distribution, self.mechanism.distribution.std
        furthest = 1.5 * float(law.reach(BEYOND)) + 10 * math.sqrt(self.terms) * spread
        step = max(spread * min(math.sqrt(self.terms), FEW) / STEPS, furthest / MOST_STEPS)
        if law.step:
            step = 2.0 * math.floor(step / 2) + 1  # odd, so that the ends of steps lie between integers
        last = math.ceil(furthest / step) + 1
        ends = law.cdf((np.arange(-last - 1, last + 1) + 0.5) * step)
        masses = np.diff(ends)
        length = 1 << (len(masses) - 1).bit_length()
        folded = np.zeros(length)
        folded[np.arange(-last, last + 1) % length] = masses
        sums = fft.irfft(fft.rfft(folded) ** self.terms, length)
        inside = sums[np.arange(-last, last + 1) % length]
        return step, -last, np.clip(np.cumsum(inside), 0.0, 1.0)


def _laplace_sum(x: Floats, terms: int) -> Floats:
    """Return the distribution function of a sum of standard Laplace noises.

    Each is a difference of two exponential variables. By partial fractions of its characteristic function the
    sum is, on either side, a mixture of gamma variables of the shapes k = 1, ..., m with the weights
    binomial(2m - k - 1, m - 1) / 2^(2m - k).
    """
    from scipy.special import gammaincc, gammaln

    shapes = np.arange(1, terms + 1, dtype=np.float64)
    rest = 2 * terms - shapes
    logs = gammaln(rest) - gammaln(terms) - gammaln(rest - terms + 1) - rest * math.log(2)
    tail = gammaincc(shapes, np.abs(x)[..., np.newaxis]) @ np.exp(logs)
    return np.asarray(np.where(x < 0, tail, 1 - tail))
