"""Gaussian noise on the integers, calibrated by its exact privacy loss."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import one_of, real, reals, whole
from pdprivacy.core import noise
from pdprivacy.core.accounting.rules import largest_rho
from pdprivacy.core.distributions import DiscreteNormal, discrete_normal_masses, total
from pdprivacy.core.mechanisms.additive import Discrete, whole_sensitivity
from pdprivacy.core.mechanisms.gaussian import Gaussian, exact_multiplier
from pdprivacy.core.mechanisms.support import Bounding, check_drawable
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import Approx, Rational
from pdprivacy.errors import ParameterError
from pdprivacy.exact import EXACT, bisect, root_above
from pdprivacy.types import Floats, Integers

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part


MOST_SQUARED = 16
"""The largest squared l2 sensitivity for which the deltas of all directions of a shift are computed."""

LEAST_SIGMA, MOST_SIGMA = 1e-3, 2.0**20
"""The range of sigma for which delta is a sum over all integers that have a mass."""


def discrete_gaussian_delta(epsilon: float, sigma: float, sensitivity: int) -> float:
    """Return the least delta of one integer query under discrete Gaussian noise, by exact summation.

    Source: Canonne, Kamath, Steinke (2020), Theorem 7.

    >>> round(discrete_gaussian_delta(1.0, sigma=2.0, sensitivity=1), 4)
    0.0072
    """
    epsilon, sigma = real(epsilon, "epsilon", 0), real(sigma, "sigma", LEAST_SIGMA, MOST_SIGMA)
    whole(sensitivity, "sensitivity", 1, EXACT)
    z, p = discrete_normal_masses(sigma)
    # z is the noise of the neighbour that lies `sensitivity` higher: its privacy loss is linear in z
    privacy_loss = sensitivity * (2 * z + sensitivity) / (2 * sigma * sigma)
    gain = p * np.maximum(-np.expm1(np.minimum(epsilon - privacy_loss, 0.0)), 0.0)
    return total(gain)


@functools.lru_cache(maxsize=256)
def _discrete_sigma(epsilon: Fraction, delta: Fraction, squared: int, l0: int) -> Fraction:
    """Return a sigma whose delta is at most ``delta`` for all shifts of `_shifts`, one of the least."""
    root = math.isqrt(squared) if l0 == 1 else math.sqrt(squared)
    start = float(exact_multiplier(epsilon, delta)) * root
    if math.isinf(start):
        raise ParameterError("The noise cannot be drawn: its scale must be at most 1e290.")
    # on so fine a lattice sums and integrals differ by less than 1 / sigma**2 of sigma, and the continuous
    # calibration, grown by a thousand times as much, is as good
    if start > (2.0**11 if l0 == 1 else 2.0**9):
        return Fraction(start * (1 + (3e-4 if l0 == 1 else 4e-3)))
    every = _shifts(squared, l0)

    def meets(sigma: float, shifts: Sequence[tuple[int, int]]) -> bool:
        slack = float(delta) * (1 - 1e-9) / _sum_gain(sigma, squared, l0)
        return all(_shift_delta(float(epsilon), sigma, *shift) <= slack for shift in shifts)

    # delta is not exactly monotone in sigma on a lattice: the value returned has been checked itself
    high, largest = max(start, LEAST_SIGMA), every[-1:]
    while not meets(high, largest):
        high *= 1.1
    while high * 0.75 > LEAST_SIGMA and meets(high * 0.75, largest):
        high *= 0.75
    sigma = bisect(lambda sigma: meets(sigma, largest), max(high * 0.75, LEAST_SIGMA), high, 1e-4)
    while sigma * 0.98 > LEAST_SIGMA and meets(sigma * 0.98, largest):
        sigma *= 0.98
    while not meets(sigma, every):
        for shift in reversed(every):
            while not meets(sigma, [shift]):
                sigma *= 1.001
    return Fraction(sigma)


def _shifts(squared: int, l0: int) -> list[tuple[int, int]]:
    """Return the squared l2 norms of whole shifts and the divisors of all their numbers, the largest last."""
    if l0 == 1:
        return [(squared, math.isqrt(squared))]
    norms = range(1, squared + 1)
    return [(norm, g) for norm in norms for g in range(math.isqrt(norm), 0, -1) if norm % g**2 == 0]


def _shift_delta(epsilon: float, sigma: float, squared: int, divisor: int) -> float:
    """Return delta of one number that stands for a shift; see the notes of `DiscreteGaussian`."""
    root = math.sqrt(squared) if divisor**2 != squared else float(divisor)
    return discrete_gaussian_delta(epsilon, sigma * root / divisor, squared // divisor)


def _sum_gain(sigma: float, squared: int, l0: int) -> float:
    """Return by which factor a sum of ``l0`` draws may exceed the discrete Gaussian that stands for it."""
    if l0 == 1:
        return 1.0
    decay = math.exp(-2 * math.pi**2 * sigma**2 / squared)
    ripple = 2 * decay / (1 - decay**3)  # decay + decay**4 + decay**9 + ...
    if ripple >= 0.99:
        return math.inf
    return math.exp((min(l0, squared) - 1) * (math.log1p(ripple) - math.log1p(-ripple)))


@dataclass(frozen=True)
class DiscreteGaussian(Discrete):
    """Discrete Gaussian noise on the integers: (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in (0, 1).
    sensitivity : l2 sensitivity of the integers, positive; a whole number where neighbours differ in one
        number, by calibration="exact".
    calibration : "exact" is the least noise whose delta, summed over the integers, is at most the stated
        one. It is for sensitivities up to 4 where neighbours differ in several numbers. "zcdp" is the
        noise that is zero-concentrated with the largest rho that converts to epsilon and delta.
    bounds, bounding : as for `Laplace`; "clamp" alone is offered, because the loss of truncated discrete
        Gaussian noise is not known. What is released are the whole numbers within.
    l0_sensitivity : in how many numbers neighbours may differ. "exact" needs it for more than one value.

    Attributes
    ----------
    steps : sigma, exact.
    multiplier : sigma per unit of l2 sensitivity, not above the true quotient.

    Raises
    ------
    ParameterError : a parameter out of range, bounding="truncated", "exact" for several numbers of a
        sensitivity above 4.

    Notes
    -----
    "exact", one number: the privacy loss of a number that moves by s is (2 s z + s^2) / (2 sigma^2), linear
    in the noise z, so that delta is a sum over all integers beyond one. A smaller whole s has a smaller
    delta: the best test is a threshold, and every threshold is passed more often the further the number
    moves.

    "exact", several numbers: the loss of a shift by whole numbers v = (v_1, ..., v_k) is
    (2 Y + |v|^2) / (2 sigma^2) with Y = sum_i v_i z_i. Let g be the greatest common divisor of v. If Y / g
    were discrete Gaussian of sigma |v| / g, this would be the loss of one such number that moves by
    |v|^2 / g. Y is nearly that. Suppose that the first numbers add up to a discrete Gaussian of variance
    sigma^2 V on the multiples of g', V the sum of their v_i^2; add v z, and let h be the greatest common
    divisor of g' and v. The pairs that add up to y lie on a line, and completing the square gives P(y) in
    proportion to exp(-y^2 / (2 sigma^2 (V + v^2))) S(y), where S(y) is the sum of exp(-(t - c)^2 / (2 s^2))
    over whole t, c depends on y, and s^2 = h^2 sigma^2 V / (g'^2 (V + v^2)). As V >= g'^2, s^2 is at least
    sigma^2 over the squared sensitivity. By Poisson summation S(y) is within 1 +- e of its mean for
    e = 2 sum_{q >= 1} exp(-2 pi^2 q^2 s^2). So probabilities exceed those of the discrete Gaussian by a
    factor of at most ((1 + e) / (1 - e))^(k - 1) in all, and delta does, too. Sigma is the least for which
    the largest delta over all |v|^2 and g is small enough, or that of "zcdp" if it is smaller.

    "zcdp": integers that move by v have a Renyi divergence of order alpha of at most
    alpha |v|^2 / (2 sigma^2), in any dimension, so noise of sigma = l2 / sqrt(2 rho) is rho-zCDP. Parts of
    weights w with sigma = l2 / sqrt(2 rho w) have rho w each, which add up to rho.

    References
    ----------
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy": Theorem 7 for
    "exact"; Theorem 14 and Corollary 13 for "zcdp". Kairouz,
    Liu, Steinke (2021), "The distributed discrete Gaussian mechanism", bound sums of draws (all v_i are 1).

    >>> from pdprivacy.mechanism import Gaussian
    >>> mechanism = DiscreteGaussian(epsilon=1, delta=1e-5)
    >>> bool(abs(mechanism.scale - Gaussian(1, 1e-5, 1).scale) < 0.05)
    True
    >>> round(DiscreteGaussian(epsilon=1, delta=1e-5, calibration="zcdp").scale, 2)
    4.05
    """

    name: ClassVar[str] = "discrete_gaussian"
    title: ClassVar[str] = "discrete Gaussian noise"
    std_per_scale: ClassVar[float] = 1.0
    norm: ClassVar[Literal["l1", "l2"]] = "l2"
    truncatable: ClassVar[bool] = False
    delta: Fraction
    calibration: Literal["exact", "zcdp"]

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational,
        sensitivity: Rational = 1,
        calibration: Literal["exact", "zcdp"] = "exact",
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        l0_sensitivity: int | None = None,
    ) -> None:
        cost = Approx(epsilon, delta)
        one_of(calibration, "calibration", ("exact", "zcdp"))
        if calibration == "exact" and (
            l0_sensitivity is None or (type(l0_sensitivity) is int and l0_sensitivity == 1)
        ):
            whole_sensitivity(sensitivity)
        fields = {"delta": cost.delta, "calibration": calibration}
        self._set(cost.epsilon, sensitivity, bounds, bounding, l0_sensitivity, **fields)
        check_drawable(self.steps, self.grid, integer=True)

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:  # noqa: ARG002
        l0, exact = self.l0_sensitivity or 1, self.calibration == "exact"
        whole_only = exact and l0 == 1
        # the squared norm of whole numbers is whole, and a root as a double may be too small
        squared = math.floor(moved**2 * (1 if whole_only else 1 + Fraction(1, 2**40)))
        if exact and not (l0 == 1 or 1 <= squared <= MOST_SQUARED):
            raise ParameterError(
                "calibration='exact' is for an l2 sensitivity from 1 to 4 of several numbers "
                f"(got {float(moved):g}).",
                'calibration="zcdp", which is for any.',
            )
        scales = []
        if exact:
            scales.append(_discrete_sigma(self.epsilon, self.delta, squared, l0))
        if not whole_only:
            rho = largest_rho(self.epsilon, self.delta)
            scales.append(root_above(max(moved**2, Fraction(squared)) / (2 * rho)))
        return min(scales)

    @classmethod
    def _limit_scale(cls, part: Part, delta: Fraction, calibration: str | None) -> float:
        """The deviation of `Gaussian` noise; infinite by "zcdp", whose rho goes to 0 with epsilon."""
        return Gaussian._limit_scale(part, delta, calibration) if _exact(part) else math.inf

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """Discrete Gaussian noise for a part of a release that counts records: see the notes."""
        cls._check_counts(part, "gaussian")
        cost, exact = request.each, _exact(part)
        share = root_above(part.l2_squared / part.weight)
        moved = Fraction(part.l1) if exact and part.l0 == 1 else share
        fields = {"epsilon": cost.epsilon, "delta": cost.delta, "calibration": "exact" if exact else "zcdp"}
        return cls._for_part(part, request, sensitivity=moved, **fields)

    @property
    def multiplier(self) -> Fraction:
        """Sigma per unit of l2 sensitivity, not above the true quotient."""
        return self.steps / self.sensitivity

    @property
    def sigma(self) -> Fraction:
        """The parameter of P(z) proportional to exp(-z^2 / (2 sigma^2)), exact."""
        return self.steps

    @functools.cached_property
    def distribution(self) -> DiscreteNormal:
        """The discrete normal distribution of this sigma."""
        return DiscreteNormal(self.scale)

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number only: for "exact", where ``l0_sensitivity`` is not stated."""
        return self.calibration == "exact" and self.l0_sensitivity is None

    def cdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Distribution function of the noise, or of the number released for ``s``; right-continuous."""
        if np.isnan(reals(x, "'x'")).any():
            raise ParameterError("'x' must not be NaN.")
        return super().cdf(x, s)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_gaussian(self.sigma**2, size, source)


def _exact(part: Part) -> bool:
    """Return whether a part is all of a release, and its loss is known exactly."""
    return part.weight == 1 and (part.l0 == 1 or part.l2_squared <= MOST_SQUARED)
