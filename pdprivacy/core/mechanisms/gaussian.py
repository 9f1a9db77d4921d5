"""Gaussian noise, bounded or not, and its calibrations: approximate differential privacy."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

from pdprivacy.checks import one_of, real
from pdprivacy.core import noise
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.mechanisms.additive import SAFE, Continuous
from pdprivacy.core.mechanisms.support import (
    DRAWN_BITS,
    INVERTED_BITS,
    Bounding,
    check_drawable,
    l2_on_grid,
    release_grid,
    remembered,
)
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import LEAST_DELTA, MOST, Approx, Rational, check_delta, positive
from pdprivacy.errors import ParameterError
from pdprivacy.exact import float_up, smallest
from pdprivacy.types import Integers

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part


Calibration: TypeAlias = Literal["analytic", "classic", "pdp"]


LEAST_EPSILON = Fraction(1, 10**5)
"""Below, the two terms of the exact delta agree in more digits than a double has."""

LEAST_MULTIPLIER = 1e-150


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """Return the least delta of Gaussian noise of standard deviation ``multiplier`` times l2 sensitivity.

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


def noise_multiplier(epsilon: Rational, delta: Rational, calibration: Calibration = "analytic") -> float:
    """Return the standard deviation of Gaussian noise per unit of l2 sensitivity, rounded up.

    ``"analytic"``: the smallest one (Balle, Wang 2018, Algorithm 1). ``"classic"``:
    ``sqrt(2 ln(1.25/delta)) / epsilon`` (Dwork, Roth 2014, Theorem A.1), epsilon below 1 only.
    ``"pdp"``: probabilistic differential privacy, Liu (2019), the formula
    ``(sqrt(z^2 + 2 epsilon) - z) / (2 epsilon)`` with z the delta/2 quantile of the normal.

    Raises
    ------
    ParameterError : unknown calibration, delta zero, "classic" with epsilon of 1 or more.

    >>> round(noise_multiplier(1, 1e-6), 3)
    4.225
    """
    one_of(calibration, "calibration", get_args(Calibration))
    return float_up(exact_multiplier(positive(epsilon, "epsilon"), check_delta(delta), calibration))


@remembered
def exact_multiplier(epsilon: Fraction, delta: Fraction, calibration: Calibration = "analytic") -> Fraction:
    """Return `noise_multiplier` of checked numbers, exact."""
    if not delta:
        raise ParameterError(
            "'delta' must be positive for Gaussian noise (got 0).",
            "pass delta=1e-6, or use Laplace noise, which needs none.",
        )
    if not LEAST_EPSILON <= epsilon < MOST or delta < LEAST_DELTA:
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
        # a relative margin of 1e-9 is above the rounding of `gaussian_delta`
        return Fraction(smallest(lambda m: gaussian_delta(eps, m) <= slack * (1 - 1e-9))) * SAFE
    if calibration == "classic":
        return Fraction(math.sqrt(2 * math.log(1.25 / slack)) / eps) * SAFE
    from scipy.special import ndtri

    z = float(ndtri(slack / 2))
    return Fraction((math.sqrt(z * z + 2 * eps) - z) / (2 * eps)) * SAFE


@dataclass(frozen=True)
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
    bounds, bounding, l0_sensitivity, exact : as for `Laplace`; truncated noise keeps the plain scale, and
        needs no ``l0_sensitivity``.

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
    title: ClassVar[str] = "Gaussian noise"
    calibrations: ClassVar[Mapping[str, Bounding | None]] = dict.fromkeys(get_args(Calibration))
    std_per_scale: ClassVar[float] = 1.0
    norm: ClassVar[Literal["l1", "l2"]] = "l2"
    truncation_is_free: ClassVar[bool] = True
    whole_on_grid: ClassVar[bool] = False
    delta: Fraction
    calibration: Calibration

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
        l0_sensitivity: int | None = None,
        exact: bool | None = None,
    ) -> None:
        cost = Approx(epsilon, delta)
        one_of(calibration, "calibration", get_args(Calibration))
        exact_multiplier(cost.epsilon, cost.delta, calibration)
        fields = {"delta": cost.delta, "calibration": calibration}
        self._set(cost.epsilon, sensitivity, bounds, bounding, l0_sensitivity, **fields)
        self._set_grid(grid, exact)
        if self.bounding == "truncated":  # drawn by its scale sqrt(2) sigma
            check_drawable(self.steps * Fraction(3, 2), self.grid)

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:  # noqa: ARG002
        return moved * self.multiplier

    @property
    def multiplier(self) -> Fraction:
        """Sigma per unit of l2 sensitivity, exact."""
        return exact_multiplier(self.epsilon, self.delta, self.calibration)

    @classmethod
    def _limit_scale(cls, part: Part, delta: Fraction, calibration: str | None) -> float:
        """The deviation at which the total variation distance is delta: 2 Phi(l2 / (2 sigma)) - 1 = delta.

        The other calibrations have none.
        """
        if calibration not in (None, "analytic"):
            return math.inf
        reach = float(GeneralizedNormal.gaussian(1.0).distance(float(delta) / 2))
        return math.sqrt(part.l2_squared) * float(part.unit) / (2 * reach) if reach else math.inf

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """Gaussian noise for a part of a release.

        Parts share the l2 norm, truncated or not: for weights w that sum to one, parts of deviation
        ``multiplier * l2 / sqrt(w)`` are one Gaussian vector of the whole loss.
        """
        cost = request.each
        calibration = request.calibration or "analytic"
        assert calibration != "published"
        multiplier = exact_multiplier(cost.epsilon, cost.delta, calibration)
        scale = l2_on_grid(part, part.unit) * multiplier
        truncated = request.bounding == "truncated"
        grid = release_grid(part.unit, scale, INVERTED_BITS if truncated else DRAWN_BITS)
        fields = {"epsilon": cost.epsilon, "delta": cost.delta, "calibration": calibration, "grid": grid}
        return cls._for_part(part, request, sensitivity=l2_on_grid(part, grid), **fields)

    @functools.cached_property
    def distribution(self) -> GeneralizedNormal:
        """The normal distribution of this standard deviation."""
        return GeneralizedNormal.gaussian(self.scale)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_gaussian(self.steps**2, size, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        return noise.generalized_normal(Fraction(2), 2 * self.steps**2, below, above, source)

    @property
    def takes_one(self) -> bool:
        """Return False: the loss depends on the l2 sensitivity alone."""
        return False

    @property
    def _leaves_room(self) -> bool:
        return True
