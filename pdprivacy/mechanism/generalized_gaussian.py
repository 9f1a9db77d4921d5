"""Generalized Gaussian noise of any order, bounded or not."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from pdprivacy import noise
from pdprivacy.checks import flag
from pdprivacy.distributions import GeneralizedNormal
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import float_up, power_below, power_up, smallest
from pdprivacy.mechanism.additive import SAFE, Continuous, check_moves, finite_width
from pdprivacy.mechanism.gaussian import LEAST_EPSILON
from pdprivacy.mechanism.laplace import exact_laplace_scale
from pdprivacy.mechanism.support import (
    GRID_BITS,
    INVERTED_BITS,
    Bounding,
    release_grid,
    remembered,
    sensitivity_on_grid,
)
from pdprivacy.noise import Source
from pdprivacy.privacy import LEAST_DELTA, MOST, Approx, Rational, rational
from pdprivacy.types import Integers

if TYPE_CHECKING:
    from pdprivacy.request import Request
    from pdprivacy.statistic import Part


MOST_ORDER = 100

ROUNDING = 2.0**-50
"""An upper bound of the rounding error of `log_gain`, whose terms are at most one and may cancel."""


def log_gain(noise: GeneralizedNormal, distance: float, width: float = math.inf) -> float:
    """Return kappa(distance) of the notes of `GeneralizedGaussian`: how far ln C changes within a range.

    >>> round(log_gain(GeneralizedNormal.of(1, 1.0), 1.0), 6)  # ln(2 - exp(-1))
    0.48988
    """
    d = min(distance, width / 2)
    if math.isinf(width):
        return math.log1p(2 * float(noise.half(d)))
    near, rest, whole = (float(noise.half(t)) for t in (d, width - d, width))
    return math.log1p(max(near + rest - whole, 0.0) / whole)


def generalized_gaussian_scale(
    epsilon: Rational,
    delta: Rational,
    sensitivity: Rational,
    p: Rational,
    width: Rational | None = None,
    l0_sensitivity: int = 1,
    truncated: bool = False,
) -> float:
    """Return the scale b of generalized Gaussian noise of order p, rounded up.

    See the notes of `GeneralizedGaussian`. ``truncated``: the noise is cut off within a range ``width`` (None
    for an open side).

    Raises
    ------
    ParameterError : delta zero for p > 1; epsilon below 1e-5 or delta below 1e-290.

    >>> round(generalized_gaussian_scale(1, 1e-5, 1, p=2) / 2**0.5, 4)
    4.5276
    """
    moved, span, count = check_moves(sensitivity, width, l0_sensitivity)
    cost, order = Approx(epsilon, delta), check_order(p)
    is_cut = flag(truncated, "truncated")
    return float_up(exact_generalized_scale(cost.epsilon, cost.delta, order, moved, span, count, is_cut))


@remembered
def exact_generalized_scale(
    epsilon: Fraction,
    delta: Fraction,
    p: Fraction,
    sensitivity: Fraction,
    width: Fraction | int | None,
    l0_sensitivity: int,
    truncated: bool,
) -> Fraction:
    """Return `generalized_gaussian_scale` of checked numbers, exact."""
    if p == 1:
        return (
            exact_laplace_scale(epsilon, sensitivity, width, l0_sensitivity)
            if truncated
            else sensitivity / epsilon
        )
    if not delta:
        raise ParameterError(
            "'delta' must be positive for generalized Gaussian noise of order above 1 (got 0).",
            "pass delta=1e-6, or p=1, which needs none.",
        )
    least = LEAST_EPSILON * (2 if truncated else 1)
    if not least <= epsilon < MOST or delta < LEAST_DELTA:
        raise ParameterError(
            f"Generalized Gaussian noise is calibrated for 'epsilon' from {float(least):g} "
            "and 'delta' from 1e-290 on."
        )
    from scipy.special import gammainccinv

    order, eps = float(p), float(epsilon)
    power = float(gammainccinv(1 / order, float(delta) / l0_sensitivity)) * float(SAFE)
    tau = power ** (1 / order)

    def shift(left: float) -> float:
        """The d/b at which (tau + d/b)^p - tau^p is ``left``."""
        if power == 0 or left > power:
            return float((left + power) ** (1 / order) - tau)
        return float(tau * math.expm1(math.log1p(left / power) / order))

    if not truncated:
        return sensitivity / Fraction(shift(eps)) * SAFE
    ratio = finite_width(width) / float(sensitivity)

    def meets(b: float) -> bool:
        gain = log_gain(GeneralizedNormal.of(order, b), 1 / l0_sensitivity, ratio) + ROUNDING
        left = eps - l0_sensitivity * gain
        return left > 0 and b * shift(left) >= 1

    return sensitivity * Fraction(smallest(meets)) * SAFE


@dataclass(frozen=True)
class GeneralizedGaussian(Continuous):
    """Generalized Gaussian noise of order p, of density proportional to exp(-|x/b|^p).

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in [0, 1); positive unless p is 1.
    sensitivity : the l1 sensitivity, positive: ``l0_sensitivity`` numbers differ by so much in all.
    p : the order, from 1 (Laplace) over 2 (Gaussian, calibrated as ``"pdp"``) to 100 (nearly uniform).
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number, at
        most 2**-20 of the scale. By default about 2**-21 of scale and sensitivity; values are then
        rounded to it, and the sensitivity grows by a step for each moved number.
    bounds, bounding : as for `Laplace`; truncated noise is calibrated for its bounds.
    l0_sensitivity : the number of entries of the vector in which two neighbours may differ. Needed for more
        than one value, unless p is 1 and nothing is truncated.
    exact : as for `Laplace`.

    Attributes
    ----------
    steps : the scale in grid steps.
    scale : the scale b, in the unit of the values; ``std`` is the standard deviation.
    loss : the privacy loss of one sample; `Pure` where delta is zero.

    Raises
    ------
    ParameterError : a parameter out of range, delta zero with p above 1, bounds as `Laplace`.

    Notes
    -----
    The privacy loss of noise e at a shift d is at most ((|e| + d)^p - |e|^p) / b^p, which grows with |e|.
    Let k be the l0 sensitivity and tau^p the upper delta / k quantile of |e/b|^p. With probability
    1 - delta, all moved numbers have |e| <= tau b. Since (tau + t)^p - tau^p is convex in t and zero at
    zero, the loss of shifts that add up to ``sensitivity`` is then at most
    (tau + sensitivity / b)^p - tau^p, which is set to epsilon. For one number this is the condition
    Pr((|e| + sensitivity)^p - |e|^p > b^p epsilon) <= delta; equation (3) of Liu (2019) lacks a sign. At
    p = 2 it is the "pdp" calibration of `Gaussian`, at p = 1 (no delta needed) the Laplace mechanism.

    Truncated, the noise is cut off within a range, or at one side. Let f be its density, G(t) its mass within
    [0, t], and C(s) its mass around s within a range w. C is a convolution of log-concave functions, so ln C
    is concave, and symmetric about the middle of the range: it changes most from an end, up to the middle. A
    move by d changes it by at most kappa(d) = ln((G(d') + G(w - d')) / G(w)) with d' = min(d, w / 2); at an
    open side this is ln(1 + 2 G(d)). As kappa is concave, the mass within the range adds at most
    k * kappa(sensitivity / k) to the loss. kappa grows with w, so that an open side covers every range: for
    h(w) = G(d) + G(w - d) - G(w), h'/G' = f(w - d) / f(w) - 1 is nondecreasing, so h G' <= h' G, and h/G is
    nondecreasing.

    A larger loss needs e > tau b on the side away from the neighbour. With distances u and v to the bounds,
    the probability of that is at most (G(v) - G(tau b)) / (G(u) + G(v)) <= 1 - 2 G(tau b), which is delta / k
    again. At p = 1 the scale is `truncated_laplace_scale`.

    Clamping is post-processing and costs nothing.

    References
    ----------
    Liu (2019), "Generalized Gaussian mechanism for differential privacy", with a corrected sign in
    its condition. On the grid the continuous law is rounded.

    >>> mechanism = GeneralizedGaussian(epsilon=1, delta=1e-5, sensitivity=1, p=2)
    >>> round(mechanism.std, 3)
    4.528
    """

    name: ClassVar[str] = "generalized_gaussian"
    title: ClassVar[str] = "generalized Gaussian noise"
    takes_order: ClassVar[bool] = True
    delta: Fraction
    p: Fraction

    def __init__(
        self,
        epsilon: Rational,
        delta: Rational,
        sensitivity: Rational,
        p: Rational,
        grid: Rational | None = None,
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        l0_sensitivity: int | None = None,
        exact: bool | None = None,
    ) -> None:
        cost = Approx(epsilon, delta)
        fields = {"delta": cost.delta, "p": check_order(p)}
        self._set(cost.epsilon, sensitivity, bounds, bounding, l0_sensitivity, **fields)
        self._set_grid(grid, exact)

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:
        l0, truncated = self.l0_sensitivity or 1, self.limits.bounding == "truncated"
        return exact_generalized_scale(self.epsilon, self.delta, self.p, moved, width, l0, truncated)

    def _default_grid(self) -> Fraction:
        if self.p == 1:
            return super()._default_grid()
        plain = self._scale(self.sensitivity, self.limits.width)
        return power_below(min(self.sensitivity, plain)) / (1 << GRID_BITS)

    @property
    def _leaves_room(self) -> bool:
        return self.p == 1 and super()._leaves_room

    @classmethod
    def takes_delta(cls, p: Rational | None = None) -> bool:
        """True but for the order 1, which is Laplace noise."""
        return p != 1

    @classmethod
    def calibrate(cls, part: Part, request: Request) -> Self:
        """Generalized Gaussian noise for a part of a release."""
        assert request.p is not None
        cost, p = request.each, request.p
        epsilon, delta = cost.epsilon * part.weight, cost.delta * part.weight
        scale = exact_generalized_scale(epsilon, delta, p, part.l1 * part.unit, None, part.l0, False)
        grid = release_grid(part.unit, scale, INVERTED_BITS)
        moved = sensitivity_on_grid(part, grid, request.bounding == "truncated")
        fields = {"epsilon": epsilon, "delta": delta, "p": p, "grid": grid}
        return cls._for_part(part, request, sensitivity=moved, **fields)

    @functools.cached_property
    def distribution(self) -> GeneralizedNormal:
        """The generalized normal distribution of this order and scale."""
        return GeneralizedNormal.of(float(self.p), self.scale)

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number: the loss depends on ``l0_sensitivity``, which is not stated."""
        return self.l0_sensitivity is None and (self.p > 1 or self.limits.bounding == "truncated")

    def _noise(self, size: int, source: Source) -> Integers:
        if self.p == 1:
            return noise.discrete_laplace(self.steps, size, source)
        far = np.full(size, noise.UNBOUNDED, dtype=np.int64)
        return self._noise_within(far, far, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        if self.p == 1:
            return noise.truncated_laplace(self.steps, below, above, source)
        return noise.generalized_normal(self.p, power_up(self.steps, self.p), below, above, source)


def check_order(p: Rational) -> Fraction:
    """Return the order as an exact number; refuse one that noise cannot have."""
    order = rational(p, "p")
    if not 1 <= order <= MOST_ORDER:
        raise ParameterError(
            f"'p' must be between 1 and {MOST_ORDER} (got {got(p)}).",
            "p=1 is Laplace noise, p=2 Gaussian.",
        )
    return order
