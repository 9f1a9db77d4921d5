"""Gaussian noise and its calibrations: approximate differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism.core import (
    ROUNDING_STEPS,
    Floats,
    Integers,
    add_noise,
    check_drawable,
    check_grid,
    check_level,
    check_probabilities,
    check_size,
    rounding_grid,
)
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Rational, positive

__all__ = ["Calibration", "Gaussian", "gaussian_delta", "noise_multiplier"]

Calibration: TypeAlias = Literal["analytic", "classic", "pdp"]


SAFE = Fraction(1 + 2**-30)
"""Calibrated Gaussian scales grow by this factor: it exceeds the rounding of the calibration
and what a grid of 2**-20 sigma adds to the privacy loss of the continuous density."""


LEAST_EPSILON = Fraction(1, 10**5)


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """The smallest delta of Gaussian noise of standard deviation ``multiplier`` times the l2 sensitivity.

    Source: Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy",
    Theorem 8, written with scaled complementary error functions so that neither a large epsilon
    nor a small delta cancels.

    >>> round(gaussian_delta(1.0, 0.5), 6)  # of sigma half the sensitivity
    0.509862
    """
    from scipy.special import erfcx, ndtr

    upper = 1 / (2 * multiplier) - epsilon * multiplier
    lower = -1 / (2 * multiplier) - epsilon * multiplier
    scaled = math.exp(-upper * upper / 2) / 2  # exp(epsilon) phi(lower) = phi(upper)
    second = scaled * float(erfcx(-lower / math.sqrt(2)))
    if upper < 0:
        return scaled * float(erfcx(-upper / math.sqrt(2))) - second
    return float(ndtr(upper)) - second


def _smallest(meets: Callable[[float], bool]) -> float:
    """The smallest positive number that meets a monotone condition, from the side that meets it."""
    low, high = 0.0, 1.0
    while not meets(high):
        low, high = high, high * 2
    if low == 0.0:
        low = high / 2
        while meets(low):
            low, high = low / 2, low
    while high - low > high * 2.0**-44:
        middle = (low + high) / 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=1024)
def noise_multiplier(epsilon: Fraction, delta: Fraction, calibration: Calibration = "analytic") -> Fraction:
    """Standard deviation of Gaussian noise per unit of l2 sensitivity, on the safe side.

    ``"analytic"``: the smallest one (Balle, Wang 2018, Algorithm 1). ``"classic"``:
    ``sqrt(2 ln(1.25/delta)) / epsilon`` (Dwork, Roth 2014, Theorem A.1), epsilon below 1 only.
    ``"pdp"``: probabilistic differential privacy, Liu (2019), the formula
    ``(sqrt(z^2 + 2 epsilon) - z) / (2 epsilon)`` with z the delta/2 quantile of the normal.

    Raises
    ------
    ParameterError : unknown calibration, delta zero, "classic" with epsilon of 1 or more.
    """
    if calibration not in get_args(Calibration):
        raise ParameterError(
            f"'calibration' must be one of 'analytic', 'classic', 'pdp' (got {got(calibration)})."
        )
    if delta <= 0:
        raise ParameterError(
            "'delta' must be positive for Gaussian noise (got 0).",
            'pass delta=1e-6, or mechanism="laplace", which needs none.',
        )
    if not LEAST_EPSILON <= epsilon < 10**290 or delta < Fraction(1, 10**290):
        # below, the two terms of the exact delta agree in more digits than a double has
        raise ParameterError(
            "Gaussian noise is calibrated for 'epsilon' from 1e-5 and 'delta' from 1e-290 on."
        )
    eps, slack = float(epsilon), float(delta)
    if calibration == "classic":
        if epsilon >= 1:
            raise ParameterError(
                f"calibration='classic' holds for 'epsilon' below 1 only (got {eps:g}).",
                'use calibration="analytic", which holds everywhere and needs less noise.',
            )
        multiplier = math.sqrt(2 * math.log(1.25 / slack)) / eps
    elif calibration == "pdp":
        from scipy.special import ndtri

        z = float(ndtri(slack / 2))
        multiplier = (math.sqrt(z * z + 2 * eps) - z) / (2 * eps)
    else:
        # a relative margin of 1e-9 is above the rounding of `gaussian_delta`
        multiplier = _smallest(lambda m: gaussian_delta(eps, m) <= slack * (1 - 1e-9))
    return Fraction(multiplier) * SAFE


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian noise: (epsilon, delta)-differentially private for any epsilon.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in (0, 1).
    sensitivity : l2 sensitivity of the values (of the whole vector), positive, in their unit.
    calibration : "analytic" (least noise), "classic" (epsilon below 1 only) or "pdp"
        (probabilistic differential privacy).
    grid : as for `Laplace`; sigma must be at least 2**20 grid steps.

    Attributes
    ----------
    multiplier : sigma per unit of l2 sensitivity, exact.
    steps : sigma in grid steps, exact.
    scale : the standard deviation sigma, in the unit of the values.

    Raises
    ------
    ParameterError : a parameter out of range; "classic" with epsilon of 1 or more.

    References
    ----------
    Balle, Wang (2018); Dwork, Roth (2014), Appendix A; Liu (2019) for "pdp". On the grid the
    noise is the discrete Gaussian of Canonne, Kamath, Steinke (2020).

    >>> round(Gaussian(epsilon=1, delta=1e-5, sensitivity=1).scale, 2)
    3.73
    >>> round(Gaussian(epsilon=1, delta=1e-5, sensitivity=1, calibration="pdp").scale, 4)
    4.5276
    """

    name: ClassVar[str] = "gaussian"
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    calibration: Calibration
    grid: Fraction
    exact: bool
    multiplier: Fraction
    steps: Fraction
    scale: float

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational,
        sensitivity: Rational,
        calibration: Calibration = "analytic",
        grid: Rational | None = None,
    ) -> None:
        loss = Approx(epsilon, delta)
        sens = positive(sensitivity, "sensitivity")
        multiplier = noise_multiplier(loss.epsilon, loss.delta, calibration)
        if grid is None:
            step = rounding_grid(sens, sens * multiplier)
        else:
            step = check_grid(grid, None, sens * multiplier)
        object.__setattr__(self, "epsilon", loss.epsilon)
        object.__setattr__(self, "delta", loss.delta)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "calibration", calibration)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)
        object.__setattr__(self, "multiplier", multiplier)
        steps = (sens / step + (ROUNDING_STEPS if grid is None else 0)) * multiplier
        check_drawable(steps, step)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", float(steps * step))

    @property
    def loss(self) -> Approx:
        """What one sample costs."""
        return Approx(self.epsilon, self.delta)

    @property
    def std(self) -> float:
        """The same as ``scale``."""
        return self.scale

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise in grid steps."""
        return noise.discrete_gaussian(self.steps**2, size, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Floats:
        """``values`` plus independent noise, on the grid; same shape, float64."""
        if not self.exact:
            check_size(np.size(values), ROUNDING_STEPS**2)
        return add_noise(values, self.grid, self.exact, self.draw, rng)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density of the noise."""
        z = np.asarray(x, dtype=np.float64) / self.scale
        return np.asarray(np.exp(-z * z / 2) / (self.scale * math.sqrt(2 * math.pi)))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function of the noise."""
        from scipy.special import ndtr

        return np.asarray(ndtr(np.asarray(x, dtype=np.float64) / self.scale))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile function of the noise."""
        from scipy.special import ndtri

        return np.asarray(self.scale * ndtri(check_probabilities(q)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the noise with probability ``level``."""
        check_level(level)
        from scipy.special import ndtri

        half = -self.scale * float(ndtri((1 - level) / 2))
        return -half, half
