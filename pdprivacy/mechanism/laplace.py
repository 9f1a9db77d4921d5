"""Laplace noise, bounded or not: pure differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pdprivacy import noise
from pdprivacy.checks import fractions
from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.mechanism.bounds import Bounding, Bounds
from pdprivacy.mechanism.continuous import Continuous, allowance, check_moves, infinite, rounded_up
from pdprivacy.mechanism.core import (
    SAFE,
    Integers,
    check_drawable,
    check_grid,
    remembered,
    rounding_grid,
    smallest,
)
from pdprivacy.mechanism.law import Law
from pdprivacy.noise import Source
from pdprivacy.privacy import Pure, Rational, positive

__all__ = ["Laplace", "truncated_laplace_loss", "truncated_laplace_scale"]


@remembered
def truncated_laplace_loss(
    scale: Fraction, sensitivity: Fraction, width: Fraction | int | None = None, moves: int = 1
) -> Fraction:
    """Privacy loss of truncated Laplace noise of a given scale, rounded up.

    ``sensitivity / scale + moves * ln(C(lower + d) / C(lower))`` with d = sensitivity / moves and
    C(s) the mass of the law around s within the range ``width`` (None for an open side).
    A record moves at most ``moves`` numbers, by ``sensitivity`` in all; a number that moves by d
    loses at most g(d) = d / scale + ln(C(lower + d) / C(lower)), because ln C is concave and
    symmetric. g is concave, and nondecreasing up to the whole range, so ``moves * g(sensitivity /
    moves)`` bounds every split. Source: Holohan, Antonatos, Braghin, Mac Aonghusa (2020), "The
    bounded Laplace mechanism in differential privacy", for one number.

    On the integers within a range of n - 1 steps, P(z) proportional to r^|z - s| loses no more
    than the continuous law within a range of n: the ratio of two normalising sums is
    (1 + r - r^(d+1) - r^(n-d)) / (1 - r^n), which the continuous (2 - r^d - r^(n-d)) / (1 - r^n)
    exceeds by (1 - r)(1 - r^d) / (1 - r^n).

    >>> round(float(truncated_laplace_loss(Fraction(1), Fraction(1))), 3)  # not the 1 of sensitivity / scale
    1.49
    """
    fractions(scale=scale, sensitivity=sensitivity, width=width, moves=moves)
    whole = infinite(width) / float(scale)
    moved = min(float(Fraction(sensitivity) / moves / scale), whole)
    # what the range gains is ln Z at the moved place itself, also where that is beyond the middle
    near, rest = -math.expm1(-moved), -math.expm1(moved - whole)
    gain = math.log1p(near * rest / -math.expm1(-whole))
    return rounded_up(Fraction(sensitivity) / scale + moves * Fraction(gain) * SAFE)


WIDEST = Fraction(2**1000)  # a range that no noise gets across


@remembered
def truncated_laplace_scale(
    epsilon: Fraction, sensitivity: Fraction, width: Fraction | int | None = None, moves: int = 1
) -> Fraction:
    """The scale at which truncated Laplace noise loses ``epsilon``, on the safe side.

    Solves `truncated_laplace_loss` = epsilon; with an open side (``width`` None) this is
    ``sensitivity / (moves * ln((1 + exp(epsilon / moves)) / 2))``. ``sensitivity`` and ``width``
    in one unit, which is that of the result.

    >>> round(float(truncated_laplace_scale(Fraction(1), Fraction(1))), 2)
    1.61
    """
    fractions(epsilon=epsilon, sensitivity=sensitivity, width=width, moves=moves)
    each = float(epsilon) / moves
    # the open-sided solution, without overflow or cancellation
    y = math.log1p(math.expm1(each) / 2) if each < 30 else each - math.log(2) + math.log1p(math.exp(-each))
    if width is not None:
        ratio = max(float(min(Fraction(width) * moves / sensitivity, WIDEST)), 1.0)

        def loses_less(b: float) -> bool:
            gain = math.expm1(-1 / b) * math.expm1((1 - ratio) / b) / -math.expm1(-ratio / b)
            return 1 / b + math.log1p(gain) <= each

        y = 1 / smallest(loses_less)
    return sensitivity / moves / Fraction(y) * SAFE


@dataclass(frozen=True, slots=True)
class Laplace(Continuous):
    """Laplace noise: epsilon-differentially private, of scale ``sensitivity / epsilon`` unless truncated.

    Parameters
    ----------
    epsilon : privacy loss, positive; a float, a decimal or fraction as text, or a Fraction.
    sensitivity : l1 sensitivity of the values, positive, in their unit.
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number,
        at most 2**-20 of the scale.
        By default 2**-30 below scale and sensitivity; values are then rounded to it, which can
        move two neighbouring vectors a step per coordinate further apart: the scale grows by
        2**-20 of itself for that, which is enough for 1024 values, or any number of which ``moves``
        says that 1024 move. (Truncated noise grows by a step for each of the moved numbers instead.)
    bounds : lower and upper bound of what is released, either may be infinite.
    bounding : how the bounds are kept. "bit" clamps the noisy values: post-processing, the plain
        scale. "truncated" renormalises the law within the bounds; since that depends on the
        value, the scale is larger (`truncated_laplace_scale`): 1.61 times at epsilon 1.
    calibration : None, or "published" for truncated noise of the plain scale, as in Liu (2019),
        Definition 2a. It loses more than ``epsilon``; ``loss`` states how much.
    moves : in how many numbers of the vector two neighbours may differ, by ``sensitivity`` in all.
        Truncated noise needs it for more than one value: 1 for cells that share no record.

    Attributes
    ----------
    steps : the scale in grid steps, exact.
    scale : the scale b, in the unit of the values.
    loss : what one sample costs.

    Raises
    ------
    ParameterError : epsilon or sensitivity not positive and finite, a grid that is none, bounds
        that are none, a sensitivity above the range of the bounds.

    Notes
    -----
    Names elsewhere: diffprivlib's ``LaplaceTruncated`` clamps and is "bit" here; its
    ``LaplaceBoundedDomain`` is the recalibrated "truncated" of this class. Its
    ``LaplaceBoundedNoise``, and "truncated" noise in OpenDP, bound the noise and not the result.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), Proposition 1. On the grid the noise is the discrete
    Laplace distribution of Ghosh, Roughgarden, Sundararajan (2009). Truncated: Holohan et al. (2020).

    >>> mechanism = Laplace(epsilon=0.5, sensitivity=1)
    >>> round(mechanism.scale, 4), round(mechanism.std, 4)
    (2.0, 2.8284)
    >>> bounded = Laplace(epsilon=1, sensitivity=1, bounds=(0, 100), bounding="truncated")
    >>> round(bounded.scale, 2), bool(0 <= bounded.sample(0.0, rng=1) <= 100)
    (1.61, True)
    """

    name: ClassVar[str] = "laplace"
    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    exact: bool
    steps: Fraction
    scale: float
    limits: Bounds
    calibration: Literal["published"] | None
    moves: int | None
    loss: Pure

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        grid: Rational | None = None,
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        calibration: Literal["published"] | None = None,
        moves: int | None = None,
    ) -> None:
        eps, sens = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        limits, count = Bounds.of(bounds, bounding), check_moves(moves)
        limits.check_sensitivity(sens, count)
        _check_calibration(calibration, limits)

        def scale(moved: Fraction, width: Fraction | int | None) -> Fraction:
            if limits.bounding != "truncated" or calibration == "published":
                return moved / eps
            return truncated_laplace_scale(eps, moved, width, count or 1)

        plain = scale(sens, limits.width)
        step = rounding_grid(sens, plain) if grid is None else check_grid(grid, sens, plain)
        width = limits.steps(step)
        moved = sens / step + (allowance(limits, count) if grid is None else 0)
        steps = scale(moved, width)
        check_drawable(steps, step)
        loss = eps
        if calibration == "published":
            loss = truncated_laplace_loss(steps, moved, width, count or 1)
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "exact", grid is not None)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", float(steps * step))
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "calibration", calibration)
        object.__setattr__(self, "moves", count)
        object.__setattr__(self, "loss", Pure(loss))

    @property
    def law(self) -> Law:
        """The Laplace law of this scale."""
        return Law.of(1, self.scale)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_laplace(self.steps, size, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        return noise.truncated_laplace(self.steps, below, above, source)


def _check_calibration(calibration: object, limits: Bounds) -> None:
    check_one_of("calibration", calibration, ("published", None))
    if calibration is None:
        return
    if limits.bounding != "truncated":
        raise ParameterError(
            "calibration='published' is for bounding='truncated'.",
            "leave calibration out: without truncation the plain scale is right.",
        )
