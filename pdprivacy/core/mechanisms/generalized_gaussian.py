"""Generalized Gaussian noise of any order, bounded or not."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from pdprivacy.checks import flag, whole
from pdprivacy.core import noise
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.mechanisms.additive import SAFE, Continuous, check_moves, finite_width
from pdprivacy.core.mechanisms.gaussian import LEAST_EPSILON
from pdprivacy.core.mechanisms.joint_loss import JointLoss
from pdprivacy.core.mechanisms.laplace import exact_laplace_scale
from pdprivacy.core.mechanisms.support import (
    GRID_BITS,
    INVERTED_BITS,
    Bounding,
    release_grid,
    remembered,
    sensitivity_on_grid,
)
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import LEAST_DELTA, MOST, Approx, Rational, positive, rational
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import bisect, float_up, power_below, power_up, root_above, smallest
from pdprivacy.types import Integers

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part


MOST_ORDER = 100

SEARCHED = 2.0**-12
"""The share by which the scale for several numbers may exceed the smallest one that suffices."""

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
    linf_sensitivity: Rational | None = None,
) -> float:
    """Return the scale b of generalized Gaussian noise of order p, rounded up.

    See the notes of `GeneralizedGaussian`. ``truncated``: the noise is cut off within a range ``width`` (None
    for an open side).

    Raises
    ------
    ParameterError : delta zero for p > 1; epsilon below 1e-5 or delta below 1e-290; sensitivities that no
        vector has.

    >>> round(generalized_gaussian_scale(1, 1e-5, 1, p=2) / 2**0.5, 4)
    4.5276
    """
    moved, span, count = check_moves(sensitivity, width, l0_sensitivity)
    cost, order = Approx(epsilon, delta), check_order(p)
    largest, is_cut = check_largest(linf_sensitivity, moved, count), flag(truncated, "truncated")
    return float_up(
        exact_generalized_scale(cost.epsilon, cost.delta, order, moved, span, count, largest, is_cut)
    )


@remembered
def exact_generalized_scale(
    epsilon: Fraction,
    delta: Fraction,
    p: Fraction,
    sensitivity: Fraction,
    width: Fraction | int | None,
    l0_sensitivity: int,
    linf_sensitivity: Fraction,
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
    eps, slack, order = float(epsilon), float(delta), float(p)
    if p == 2 and not truncated:
        # the loss depends on the l2 norm of the moves, which is at most the root of l1 times linf
        return root_above(sensitivity * linf_sensitivity) * _by_number(eps, slack, order, 1, None)
    count, gain = l0_sensitivity, None
    if truncated:
        gain = functools.partial(_gain, order, finite_width(width) / float(sensitivity))
    scale = _by_number(eps, slack, order, count, gain)
    if count > 1:
        scale = min(
            scale, _together(eps, slack, order, count, float(linf_sensitivity / sensitivity), gain, scale)
        )
    return sensitivity * scale


Gain: TypeAlias = Callable[[float, float], float]
"""What truncation adds to the loss of a number, given the scale and the distance that the number moves."""


def _gain(p: float, width: float, b: float, distance: float) -> float:
    return log_gain(GeneralizedNormal.of(p, b), distance, width) + ROUNDING


def _by_number(epsilon: float, delta: float, p: float, count: int, gain: Gain | None) -> Fraction:
    """Return the scale per unit of l1 sensitivity where ``count`` numbers share delta evenly."""
    from scipy.special import gammainccinv

    power = float(gammainccinv(1 / p, delta / count)) * float(SAFE)
    tau = power ** (1 / p)

    def shift(left: float) -> float:
        """The d/b at which (tau + d/b)^p - tau^p is ``left``."""
        if power == 0 or left > power:
            return float((left + power) ** (1 / p) - tau)
        return float(tau * math.expm1(math.log1p(left / power) / p))

    if gain is None:
        return 1 / Fraction(shift(epsilon)) * SAFE

    def meets(b: float) -> bool:
        left = epsilon - count * gain(b, 1 / count)
        return left > 0 and b * shift(left) >= 1

    return Fraction(smallest(meets)) * SAFE


@functools.lru_cache(maxsize=4)
def _joint_loss(p: float, count: int, delta: float, cut: bool) -> JointLoss:
    """Return the loss, whose cells are the same for every epsilon."""
    return JointLoss(p, count, delta, cut=cut)


def _together(
    epsilon: float, delta: float, p: float, count: int, largest: float, gain: Gain | None, most: Fraction
) -> Fraction:
    """Return the scale per unit of l1 sensitivity where each of ``count`` numbers moves by ``largest``.

    A scale of ``most`` is known to suffice.
    """
    loss = _joint_loss(p, count, delta, gain is not None)

    def meets(b: float) -> bool:
        left = epsilon if gain is None else epsilon - count * gain(b, largest)
        return left > 0 and loss.probability(largest / b, left) <= delta * (1 - 1e-9)

    high = float(most)
    return Fraction(bisect(meets, high / (2 * count), high, SEARCHED, logarithmic=True)) * SAFE


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
    linf_sensitivity : the most by which one entry may differ, at most ``sensitivity`` (the default) and at
        least ``sensitivity / l0_sensitivity``. The smaller it is, the less noise several entries need.
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
    One number. The privacy loss of noise e at a shift d is at most ((|e| + d)^p - |e|^p) / b^p, which grows
    with |e|. With tau^p the upper delta quantile of |e/b|^p, the scale is that at which
    (tau + sensitivity / b)^p - tau^p is epsilon: Pr((|e| + sensitivity)^p - |e|^p > b^p epsilon) <= delta.
    Equation (3) of Liu (2019) lacks a sign. At p = 2 it is the "pdp" calibration of `Gaussian`, at p = 1 (no
    delta needed) the Laplace mechanism.

    Several numbers. Let k be the l0 sensitivity. The scale is the smaller of two that suffice. Either the
    numbers share delta: with tau^p the upper delta / k quantile, all moved numbers have |e| <= tau b with
    probability 1 - delta. Since (tau + t)^p - tau^p is convex in t and zero at zero, the loss of shifts that
    add up to ``sensitivity`` is then at most (tau + sensitivity / b)^p - tau^p. Or each of the k numbers
    moves by ``linf_sensitivity``, and the law of the sum of their losses is computed, with a proof that no
    smaller moves lose more (``pdprivacy.core.mechanisms.joint_loss``). At p = 2, the loss depends on the l2
    norm of the moves alone, at most the root of ``sensitivity * linf_sensitivity``: one number that moves so
    far.

    Truncated, the noise is cut off within a range, or at one side. Let f be its density, G(t) its mass within
    [0, t], and C(s) its mass around s within a range w. C is a convolution of log-concave functions, so ln C
    is concave, and symmetric about the middle of the range: it changes most from an end, up to the middle. A
    move by d changes it by at most kappa(d) = ln((G(d') + G(w - d')) / G(w)) with d' = min(d, w / 2); at an
    open side this is ln(1 + 2 G(d)). As kappa is concave and grows with d, the mass within the range adds at
    most k * kappa(sensitivity / k), and k * kappa(linf_sensitivity), to the loss. kappa grows with w, so that
    an open side covers every range: for
    h(w) = G(d) + G(w - d) - G(w), h'/G' = f(w - d) / f(w) - 1 is nondecreasing, so h G' <= h' G, and h/G is
    nondecreasing.

    A larger loss needs a larger e on the side away from the neighbour. With distances u and v to the bounds,
    the probability of e > t is at most (G(v) - G(t)) / (G(u) + G(v)) <= 1 - 2 G(t), that of |e| > t without
    bounds: delta / k again at t = tau b. At p = 1 the scale is `truncated_laplace_scale`.

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
    linf_sensitivity: Fraction

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
        linf_sensitivity: Rational | None = None,
        exact: bool | None = None,
    ) -> None:
        cost = Approx(epsilon, delta)
        largest = check_largest(linf_sensitivity, positive(sensitivity, "sensitivity"), l0_sensitivity)
        fields = {"delta": cost.delta, "p": check_order(p), "linf_sensitivity": largest}
        self._set(cost.epsilon, sensitivity, bounds, bounding, l0_sensitivity, **fields)
        self._set_grid(grid, exact)

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:
        l0, truncated = self.l0_sensitivity or 1, self.limits.bounding == "truncated"
        # a step for each of l0 numbers is a larger share of the sensitivity than one for the largest
        largest = self.linf_sensitivity * (moved / self.sensitivity)
        return exact_generalized_scale(self.epsilon, self.delta, self.p, moved, width, l0, largest, truncated)

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
        return p is None or positive(p, "p") != 1

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """Generalized Gaussian noise for a part of a release."""
        assert request.p is not None
        cost, p = request.each, request.p
        epsilon, delta = cost.epsilon * part.weight, cost.delta * part.weight
        l1, linf = part.l1 * part.unit, part.linf * part.unit
        scale = exact_generalized_scale(epsilon, delta, p, l1, None, part.l0, linf, False)
        grid = release_grid(part.unit, scale, INVERTED_BITS)
        moved = sensitivity_on_grid(part, grid, request.bounding == "truncated")
        fields = {"epsilon": epsilon, "delta": delta, "p": p, "grid": grid}
        # on a coarser grid, rounding moves each number by a step
        largest = min(linf if grid <= part.unit else (linf // grid + 1) * grid, moved)
        return cls._for_part(part, request, sensitivity=moved, linf_sensitivity=largest, **fields)

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


def check_largest(
    linf_sensitivity: Rational | None, sensitivity: Fraction, l0_sensitivity: int | None
) -> Fraction:
    """Return the linf sensitivity, exact, by default the l1 sensitivity; refuse one that no vector has."""
    if linf_sensitivity is None:
        return sensitivity
    largest = positive(linf_sensitivity, "linf_sensitivity")
    count = 1 if l0_sensitivity is None else whole(l0_sensitivity, "l0_sensitivity", 1)
    if not sensitivity / count <= largest <= sensitivity:
        raise ParameterError(
            "'linf_sensitivity' must be between 'sensitivity' divided by 'l0_sensitivity' and 'sensitivity' "
            f"(got {got(linf_sensitivity)}).",
            "linf_sensitivity=1, l0_sensitivity=2 where two counts may differ by one, and sensitivity=2.",
        )
    return largest
