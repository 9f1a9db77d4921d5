"""Generalized Gaussian noise of any order, bounded or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pdprivacy import noise
from pdprivacy.checks import flag, fractions
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism.bounds import Bounding, Bounds
from pdprivacy.mechanism.continuous import Continuous, allowance, check_moves, infinite
from pdprivacy.mechanism.core import (
    GRID_BITS,
    ROUNDING_STEPS,
    SAFE,
    Integers,
    check_drawable,
    check_grid,
    check_size,
    power_below,
    remembered,
    rounding_grid,
    smallest,
)
from pdprivacy.mechanism.laplace import truncated_laplace_scale
from pdprivacy.mechanism.law import Law, log_gain
from pdprivacy.noise import Source
from pdprivacy.privacy import Approx, Pure, Rational, check_delta, loss, positive, rational

__all__ = ["GeneralizedGaussian", "generalized_gaussian_scale"]

MOST_ORDER = 100
LEAST_EPSILON = Fraction(1, 10**5)
EXACT_POWERS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)


@remembered
def generalized_gaussian_scale(
    epsilon: Fraction,
    delta: Fraction,
    sensitivity: Fraction,
    p: Fraction,
    width: Fraction | int | None = None,
    moves: int = 1,
    truncated: bool = False,
) -> Fraction:
    """The scale b of generalized Gaussian noise of order p, on the safe side.

    The privacy loss of noise e at a shift d is at most ((|e| + d)^p - |e|^p) / b^p, which grows with
    |e|. With tau^p the upper delta / moves quantile of |e/b|^p, all moved numbers have |e| <= tau b
    but for delta, and since (tau + t)^p - tau^p is convex in t and zero at zero, the loss of shifts
    that add up to ``sensitivity`` is at most (tau + sensitivity / b)^p - tau^p = epsilon. For one
    number this is Pr((|e| + sensitivity)^p - |e|^p > b^p epsilon) <= delta; the condition printed as
    equation (3) of Liu (2019) lacks a sign. At p = 2 it is the "pdp" calibration of `Gaussian`, at
    p = 1 (no delta needed) the Laplace mechanism.

    ``truncated``: to be cut off within a range ``width`` (None for an open side). The mass within
    the range adds at most moves * kappa(sensitivity / moves) to the loss (``log_gain``). A loss above
    the rest needs e > tau b on the side away from the neighbour; with distances u and v to the
    bounds, that has probability at most (G(v) - G(tau b)) / (G(u) + G(v)) <= 1 - 2 G(tau b): delta
    / moves again. At p = 1 it is `truncated_laplace_scale`.

    Raises
    ------
    ParameterError : delta zero for p > 1; epsilon below 1e-5 or delta below 1e-290.

    >>> b = generalized_gaussian_scale(Fraction(1), Fraction(1, 10**5), Fraction(1), Fraction(2))
    >>> round(float(b) / 2**0.5, 4)
    4.5276
    """
    fractions(epsilon=epsilon, sensitivity=sensitivity, p=p, width=width, moves=moves)
    flag(truncated, "truncated")
    slack = check_delta(delta)
    if p == 1:
        return (
            truncated_laplace_scale(epsilon, sensitivity, width, moves)
            if truncated
            else sensitivity / epsilon
        )
    if slack <= 0:
        raise ParameterError(
            "'delta' must be positive for generalized Gaussian noise of order above 1 (got 0).",
            "pass delta=1e-6, or p=1, which needs none.",
        )
    least = LEAST_EPSILON * (2 if truncated else 1)
    if not least <= epsilon < 10**290 or slack < Fraction(1, 10**290):
        raise ParameterError(
            f"Generalized Gaussian noise is calibrated for 'epsilon' from {float(least):g} "
            "and 'delta' from 1e-290 on."
        )
    from scipy.special import gammainccinv

    order, eps = float(p), float(epsilon)
    power = float(gammainccinv(1 / order, float(slack) / moves)) * float(SAFE)
    tau = power ** (1 / order)

    def shift(left: float) -> float:
        """The d/b at which (tau + d/b)^p - tau^p is ``left``."""
        if power == 0 or left > power:
            return float((left + power) ** (1 / order) - tau)
        return float(tau * math.expm1(math.log1p(left / power) / order))

    if not truncated:
        return sensitivity / Fraction(shift(eps)) * SAFE
    ratio = infinite(width) / float(sensitivity)

    def meets(b: float) -> bool:
        left = eps - moves * log_gain(Law.of(order, b), 1 / moves, ratio)
        return left > 0 and b * shift(left) >= 1

    return sensitivity * Fraction(smallest(meets)) * SAFE


def power_above(base: Fraction, exponent: Fraction) -> Fraction:
    """``base ** exponent`` rounded up to 64 bits, by less than 2**-60 of itself.

    >>> power_above(Fraction(4), Fraction(3, 2)) > 8
    True
    """
    context = EXACT_POWERS
    logarithm = context.ln(context.divide(Decimal(base.numerator), Decimal(base.denominator)))
    part = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    power = Fraction(context.exp(context.multiply(logarithm, part))) * (1 + Fraction(1, 2**100))
    bits = 64 - power.numerator.bit_length() + power.denominator.bit_length()
    if bits >= 0:
        return Fraction(math.ceil(power * (1 << bits)), 1 << bits)
    return Fraction(math.ceil(power / (1 << -bits)) << -bits)


@dataclass(frozen=True, slots=True)
class GeneralizedGaussian(Continuous):
    """Generalized Gaussian noise of order p, of density proportional to exp(-|x/b|^p).

    Parameters
    ----------
    epsilon : privacy loss, positive.
    delta : slack, in [0, 1); positive unless p is 1.
    sensitivity : by how much the ``moves`` numbers of neighbours differ in all (l1), positive.
    p : the order, from 1 (Laplace) over 2 (Gaussian, calibrated as ``"pdp"``) to 100 (nearly uniform).
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number, at
        most 2**-20 of the scale. By default about 2**-21 of scale and sensitivity; values are then
        rounded to it, and the sensitivity grows by a step for each moved number.
    bounds, bounding : as for `Laplace`; truncated noise is calibrated for its bounds.
    moves : in how many numbers of the vector two neighbours may differ. Needed for more than one
        value, unless p is 1 and nothing is truncated.

    Attributes
    ----------
    steps : the scale in grid steps.
    scale : the scale b, in the unit of the values; ``std`` is the standard deviation.
    loss : what one sample costs; `Pure` where delta is zero.

    Raises
    ------
    ParameterError : a parameter out of range, delta zero with p above 1, bounds as `Laplace`.

    References
    ----------
    Liu (2019), "Generalized Gaussian mechanism for differential privacy", with the sign of its
    condition put right: `generalized_gaussian_scale`. On the grid the continuous law is rounded.

    >>> mechanism = GeneralizedGaussian(epsilon=1, delta=1e-5, sensitivity=1, p=2)
    >>> round(mechanism.std, 3)
    4.528
    """

    name: ClassVar[str] = "generalized_gaussian"
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    p: Fraction
    grid: Fraction
    exact: bool
    steps: Fraction
    scale: float
    limits: Bounds
    moves: int | None

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
        moves: int | None = None,
    ) -> None:
        stated = Approx(epsilon, delta)
        sens, order = positive(sensitivity, "sensitivity"), rational(p, "p")
        if not 1 <= order <= MOST_ORDER:
            raise ParameterError(
                f"'p' must be between 1 and {MOST_ORDER} (got {got(p)}).",
                "p=1 is Laplace noise, p=2 Gaussian.",
            )
        limits, count = Bounds.of(bounds, bounding), check_moves(moves)
        limits.check_sensitivity(sens, count)

        def scale(moved: Fraction, width: Fraction | int | None) -> Fraction:
            truncated = limits.bounding == "truncated"
            return generalized_gaussian_scale(
                stated.epsilon, stated.delta, moved, order, width, count or 1, truncated
            )

        plain = scale(sens, limits.width)
        if grid is not None:
            step, rounding = check_grid(grid, sens, plain), 0
        elif order == 1:
            step, rounding = rounding_grid(sens, plain), allowance(limits, count)
        else:
            step, rounding = power_below(min(sens, plain)) / (1 << GRID_BITS), count or 1
        steps = scale(sens / step + rounding, limits.steps(step))
        check_drawable(steps, step)
        object.__setattr__(self, "epsilon", stated.epsilon)
        object.__setattr__(self, "delta", stated.delta)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "p", order)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", float(steps * step))
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "moves", count)

    @property
    def loss(self) -> Pure | Approx:
        """What one sample costs."""
        return loss(self.epsilon, self.delta)

    @property
    def law(self) -> Law:
        """The generalized normal law of this order and scale."""
        return Law.of(float(self.p), self.scale)

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number only: the loss depends on ``moves``, which is not stated."""
        return self.moves is None and (self.p > 1 or self.limits.bounding == "truncated")

    def _check_rounding(self, size: int) -> None:
        if self.p == 1 and self.limits.bounding != "truncated":
            check_size(min(size, self.moves or size), ROUNDING_STEPS)

    def _noise(self, size: int, source: Source) -> Integers:
        if self.p == 1:
            return noise.discrete_laplace(self.steps, size, source)
        far = np.full(size, noise.UNBOUNDED, dtype=np.int64)
        return self._noise_within(far, far, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        if self.p == 1:
            return noise.truncated_laplace(self.steps, below, above, source)
        return noise.generalized_normal(self.p, power_above(self.steps, self.p), below, above, source)
