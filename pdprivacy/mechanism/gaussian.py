"""Gaussian noise, bounded or not, and its calibrations: approximate differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from pdprivacy import noise
from pdprivacy.checks import fractions, real
from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.mechanism.bounds import Bounding, Bounds
from pdprivacy.mechanism.continuous import Continuous, check_moves
from pdprivacy.mechanism.core import (
    ROUNDING_STEPS,
    SAFE,
    Integers,
    check_drawable,
    check_grid,
    check_size,
    remembered,
    rounding_grid,
    smallest,
)
from pdprivacy.mechanism.law import Law
from pdprivacy.noise import Source
from pdprivacy.privacy import Approx, Rational, check_delta, positive

__all__ = ["Calibration", "Gaussian", "gaussian_delta", "noise_multiplier"]

Calibration: TypeAlias = Literal["analytic", "classic", "pdp"]


LEAST_EPSILON = Fraction(1, 10**5)
LEAST_MULTIPLIER = 1e-150


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """The smallest delta of Gaussian noise of standard deviation ``multiplier`` times the l2 sensitivity.

    Source: Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy",
    Theorem 8, written with scaled complementary error functions so that neither a large epsilon
    nor a small delta cancels.

    >>> round(gaussian_delta(1.0, 0.5), 6)  # of sigma half the sensitivity
    0.509862
    """
    from scipy.special import erfcx, ndtr

    real(epsilon, "epsilon", 0), real(multiplier, "multiplier", LEAST_MULTIPLIER)
    epsilon, multiplier = float(epsilon), float(multiplier)
    upper = 1 / (2 * multiplier) - epsilon * multiplier
    lower = -1 / (2 * multiplier) - epsilon * multiplier
    scaled = math.exp(-upper * upper / 2) / 2  # exp(epsilon) phi(lower) = phi(upper)
    second = scaled * float(erfcx(-lower / math.sqrt(2)))
    if upper < 0:
        return scaled * float(erfcx(-upper / math.sqrt(2))) - second
    return float(ndtr(upper)) - second


@remembered
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
    check_one_of("calibration", calibration, get_args(Calibration))
    fractions(epsilon=epsilon)
    if check_delta(delta) <= 0:
        raise ParameterError(
            "'delta' must be positive for Gaussian noise (got 0).",
            'pass delta=1e-6, or mechanism="laplace", which needs none.',
        )
    if not LEAST_EPSILON <= epsilon < 10**290 or delta < Fraction(1, 10**290):
        # below, the two terms of the exact delta agree in more digits than a double has
        raise ParameterError(
            "Gaussian noise is calibrated for 'epsilon' from 1e-5 and 'delta' from 1e-290 on."
        )
    if calibration == "classic" and epsilon >= 1:
        raise ParameterError(
            "calibration='classic' holds for 'epsilon' below 1 only.",
            'use calibration="analytic", which holds everywhere and needs less noise.',
        )
    eps, slack = float(epsilon), float(delta)
    if calibration == "analytic":
        return Fraction(smallest(lambda m: _meets(m, eps, slack, calibration))) * SAFE
    return Fraction(_multiplier(eps, slack, calibration)) * SAFE


def _multiplier(eps: float, slack: float, calibration: Calibration) -> float:
    """The calibrations that have a formula."""
    if calibration == "classic":
        return math.sqrt(2 * math.log(1.25 / slack)) / eps
    from scipy.special import ndtri

    z = float(ndtri(slack / 2))
    return (math.sqrt(z * z + 2 * eps) - z) / (2 * eps)


def _meets(multiplier: float, eps: float, slack: float, calibration: Calibration) -> bool:
    """Whether noise of this multiplier meets (eps, slack) by this calibration."""
    if calibration == "analytic":
        # a relative margin of 1e-9 is above the rounding of `gaussian_delta`
        return gaussian_delta(eps, multiplier) <= slack * (1 - 1e-9)
    return multiplier >= _multiplier(eps, slack, calibration)


@dataclass(frozen=True, slots=True)
class Gaussian(Continuous):
    """Gaussian noise: (epsilon, delta)-differentially private for any epsilon.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in (0, 1).
    sensitivity : l2 sensitivity of the values (of the whole vector), positive, in their unit.
    calibration : "analytic" (least noise), "classic" (epsilon below 1 only) or "pdp"
        (probabilistic differential privacy).
    grid : as for `Laplace`; sigma must be at least 2**20 grid steps.
    bounds, bounding, moves : as for `Laplace`; truncated noise keeps the plain scale, and needs no
        ``moves``.

    Attributes
    ----------
    multiplier : sigma per unit of sensitivity, exact.
    steps : sigma in grid steps, exact.
    scale : the standard deviation sigma (before any bounding), in the unit of the values.

    Raises
    ------
    ParameterError : a parameter out of range; "classic" with epsilon of 1 or more; bounds as `Laplace`.

    Notes
    -----
    Truncation, which makes Laplace noise lose more, makes Gaussian noise lose nothing. Let I(u) be the
    normal density at its u quantile: concave, zero at 0 and 1. A law cut off to the share [a, a + w] of
    the mass has I(a + w u) >= w I(u), so g(u) = I(a + w u) - (1 - u) I(a) - u I(a + w), whose second
    derivative is -w^2 / I(a + w u) >= -w / I(u) and which is zero at both ends, is at most w I(u).
    sigma g(u) / w is the covariance of X with the indicator of its u largest values, and over sigma^2 it
    is the derivative of Pr(X > t) by the centre. So the normal quantile of Pr(X > t) changes by at
    most 1/sigma per unit of the centre: two centres are no easier to tell apart than without bounds,
    at any threshold, and so (the likelihood ratio is monotone) in any way. Several numbers, also such
    whose bounds depend on the noisy ones before, compose as Gaussian noise does (Dong, Roth, Su
    2022, "Gaussian differential privacy", composition).

    References
    ----------
    Balle, Wang (2018); Dwork, Roth (2014), Appendix A; Liu (2019) for "pdp". On the grid the
    noise is the discrete Gaussian of Canonne, Kamath, Steinke (2020); truncated noise is the
    continuous law within half a step beyond the bounds, rounded. Truncation: Gopi, Lee, Liu (2022),
    "Private convex optimization via exponential mechanism", for strongly log-concave laws in general.

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
    limits: Bounds
    moves: int | None

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational,
        sensitivity: Rational,
        calibration: Calibration = "analytic",
        grid: Rational | None = None,
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        moves: int | None = None,
    ) -> None:
        loss = Approx(epsilon, delta)
        sens = positive(sensitivity, "sensitivity")
        plain = noise_multiplier(loss.epsilon, loss.delta, calibration)
        limits, count = Bounds.of(bounds, bounding), check_moves(moves)
        limits.check_sensitivity(sens, count)

        step = rounding_grid(sens, sens * plain) if grid is None else check_grid(grid, None, sens * plain)
        limits.steps(step)  # refuses bounds that are too close
        moved = sens / step + (ROUNDING_STEPS if grid is None else 0)
        steps = moved * plain
        # truncated, the noise is drawn by its scale sqrt(2) sigma
        check_drawable(steps * (Fraction(3, 2) if limits.bounding == "truncated" else 1), step)
        object.__setattr__(self, "epsilon", loss.epsilon)
        object.__setattr__(self, "delta", loss.delta)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "calibration", calibration)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)
        object.__setattr__(self, "multiplier", plain)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", float(steps * step))
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "moves", count)

    @property
    def loss(self) -> Approx:
        """What one sample costs."""
        return Approx(self.epsilon, self.delta)

    @property
    def law(self) -> Law:
        """The Gaussian law of this standard deviation."""
        return Law.gaussian(self.scale)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_gaussian(self.steps**2, size, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        return noise.generalized_normal(Fraction(2), 2 * self.steps**2, below, above, source)

    @property
    def takes_one(self) -> bool:
        """False: the l2 sensitivity says all that the loss depends on."""
        return False

    def _check_rounding(self, size: int) -> None:
        check_size(size, ROUNDING_STEPS**2)
