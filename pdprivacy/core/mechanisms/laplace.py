"""Laplace noise, bounded or not: pure differential privacy."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pdprivacy.checks import one_of
from pdprivacy.core import noise
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.mechanisms.additive import SAFE, Continuous, check_moves, finite_width
from pdprivacy.core.mechanisms.support import Bounding, release_grid, remembered, sensitivity_on_grid
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import Pure, Rational, positive
from pdprivacy.errors import ParameterError
from pdprivacy.exact import float_up, rounded_up, smallest
from pdprivacy.types import Integers

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part


WIDEST = Fraction(2**1000)
"""A range that no noise crosses."""


def laplace_gain(b: float, distance: float, width: float) -> float:
    """Return ``ln(C(lower + distance) / C(lower))`` of the notes of `Laplace`, for the scale ``b``.

    ``width``: the range within the bounds, infinite for an open side. No difference cancels.

    >>> round(laplace_gain(1.0, 1.0, math.inf), 6)  # ln(2 - exp(-1))
    0.48988
    """
    near, rest, whole = (-math.expm1(-t / b) for t in (distance, width - distance, width))
    return math.log1p(near * rest / whole)


def truncated_laplace_loss(
    scale: Rational, sensitivity: Rational, width: Rational | None = None, l0_sensitivity: int = 1
) -> float:
    """Return the privacy loss of truncated Laplace noise of a given scale, rounded up.

    ``sensitivity / scale + k * ln(C(lower + d) / C(lower))``, k the l0 sensitivity, d = sensitivity / k; see
    the notes of `Laplace`. ``width``: the range within the bounds, None for an open side.

    >>> round(truncated_laplace_loss(1, 1), 3)  # not the 1 of sensitivity / scale
    1.49
    """
    return float_up(
        exact_laplace_loss(positive(scale, "scale"), *check_moves(sensitivity, width, l0_sensitivity))
    )


@remembered
def exact_laplace_loss(
    scale: Fraction, sensitivity: Fraction, width: Fraction | int | None, l0_sensitivity: int
) -> Fraction:
    """Return `truncated_laplace_loss` of checked numbers, exact."""
    whole = finite_width(width) / float(scale)
    moved = min(float(sensitivity / l0_sensitivity / scale), whole)
    gain = laplace_gain(1.0, moved, whole)
    return rounded_up(sensitivity / scale + l0_sensitivity * Fraction(gain) * SAFE, 10)


def truncated_laplace_scale(
    epsilon: Rational, sensitivity: Rational, width: Rational | None = None, l0_sensitivity: int = 1
) -> float:
    """Return the scale at which truncated Laplace noise loses ``epsilon``, rounded up.

    It solves `truncated_laplace_loss` = epsilon; with an open side (``width`` None) this is
    ``sensitivity / (k * ln((1 + exp(epsilon / k)) / 2))``. ``sensitivity`` and ``width`` are in one unit,
    which is that of the result.

    >>> round(truncated_laplace_scale(1, 1), 2)
    1.61
    """
    return float_up(
        exact_laplace_scale(positive(epsilon, "epsilon"), *check_moves(sensitivity, width, l0_sensitivity))
    )


@remembered
def exact_laplace_scale(
    epsilon: Fraction, sensitivity: Fraction, width: Fraction | int | None, l0_sensitivity: int
) -> Fraction:
    """Return `truncated_laplace_scale` of checked numbers, exact."""
    each = float(epsilon) / l0_sensitivity
    # the open-sided solution, without overflow or cancellation
    y = math.log1p(math.expm1(each) / 2) if each < 30 else each - math.log(2) + math.log1p(math.exp(-each))
    if width is not None:
        ratio = max(float(min(Fraction(width) * l0_sensitivity / sensitivity, WIDEST)), 1.0)
        y = 1 / smallest(lambda b: 1 / b + laplace_gain(b, 1.0, ratio) <= each)
    return sensitivity / l0_sensitivity / Fraction(y) * SAFE


@dataclass(frozen=True)
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
        2**-20 of itself for that, which is enough for 1024 values, or any number of which ``l0_sensitivity``
        says that 1024 move. (Truncated noise grows by a step for each of the moved numbers instead.)
    bounds : lower and upper bound of the released numbers; either may be infinite.
    bounding : how the bounds are kept. "clamp" clamps the noisy values: post-processing, the plain
        scale. "truncated" renormalises the law within the bounds; since that depends on the
        value, the scale is larger (`truncated_laplace_scale`): 1.61 times at epsilon 1.
    calibration : None, or "published" for truncated noise of the plain scale, as in Liu (2019),
        Definition 2a. It loses more than ``epsilon``; ``loss`` states how much.
    l0_sensitivity : the number of entries in which two neighbours may differ, by ``sensitivity`` in all.
        Truncated noise needs it for more than one value: 1 for cells that share no record.
    exact : whether values must be multiples of the grid, by default of one that is given alone; else they
        are rounded to it. With ``exact=True``, ``sensitivity`` need not be a multiple of a given grid: it
        bounds the distances of values, which are.

    Attributes
    ----------
    steps : the scale in grid steps, exact.
    scale : the scale b, in the unit of the values.
    loss : the privacy loss of one sample.

    Raises
    ------
    ParameterError : epsilon or sensitivity not positive and finite, an invalid grid or invalid bounds, a
        sensitivity above the range of the bounds.

    Notes
    -----
    Unbounded, neighbours that are d apart in the l1 norm have densities that differ by at most
    exp(d / scale), so the loss is sensitivity / scale. Clamping is post-processing and costs nothing.

    Truncated, let C(s) be the mass of the distribution around s within the bounds. A number that moves by d
    loses at most g(d) = d / scale + ln(C(lower + d) / C(lower)): ln C is concave, as C is a convolution of
    log-concave functions, and symmetric, so it changes most from an end. A record moves at most k numbers
    (``l0_sensitivity``), by ``sensitivity`` in all. g is concave, and nondecreasing up to the whole range, so
    k * g(sensitivity / k) bounds every split.

    Noise is drawn on the grid. On the integers within a range of n - 1 steps, P(z) proportional to r^|z - s|
    loses no more than the continuous distribution within a range of n: the ratio of two normalising sums is
    (1 + r - r^(d+1) - r^(n-d)) / (1 - r^n), which the continuous (2 - r^d - r^(n-d)) / (1 - r^n)
    exceeds by (1 - r)(1 - r^d) / (1 - r^n). ``pdprivacy.core.mechanisms.support`` says what
    rounding to the grid adds to the sensitivity.

    Names elsewhere: diffprivlib's ``LaplaceTruncated`` clamps and is "clamp" here; its
    ``LaplaceBoundedDomain`` is the recalibrated "truncated" of this class. Its
    ``LaplaceBoundedNoise``, and "truncated" noise in OpenDP, bound the noise and not the result.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), Proposition 1. On the grid the noise is the discrete
    Laplace distribution of Ghosh, Roughgarden, Sundararajan (2009). Truncated, for one number: Holohan,
    Antonatos, Braghin, Mac Aonghusa (2020), "The bounded Laplace mechanism in differential privacy".

    >>> mechanism = Laplace(epsilon=0.5, sensitivity=1)
    >>> round(mechanism.scale, 4), round(mechanism.std, 4)
    (2.0, 2.8284)
    >>> bounded = Laplace(epsilon=1, sensitivity=1, bounds=(0, 100), bounding="truncated")
    >>> round(bounded.scale, 2), bool(0 <= bounded.sample(0.0, rng=1) <= 100)
    (1.61, True)
    """

    name: ClassVar[str] = "laplace"
    title: ClassVar[str] = "Laplace noise"
    calibrations: ClassVar[Mapping[str, Bounding | None]] = {"published": "truncated"}
    std_per_scale: ClassVar[float] = math.sqrt(2)
    calibration: Literal["published"] | None

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        grid: Rational | None = None,
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        calibration: Literal["published"] | None = None,
        l0_sensitivity: int | None = None,
        exact: bool | None = None,
    ) -> None:
        one_of(calibration, "calibration", ("published", None))
        if calibration == "published" and bounding != "truncated":
            raise ParameterError(
                "calibration='published' is for bounding='truncated'.",
                "leave calibration out: without truncation the plain scale is right.",
            )
        self._set(epsilon, sensitivity, bounds, bounding, l0_sensitivity, calibration=calibration)
        self._set_grid(grid, exact)

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:
        if self.limits.bounding != "truncated" or self.calibration == "published":
            return moved / self.epsilon
        return exact_laplace_scale(self.epsilon, moved, width, self.l0_sensitivity or 1)

    @property
    def loss(self) -> Pure:
        """The privacy loss of one sample."""
        if self.calibration != "published":
            return Pure(self.epsilon)
        width = self.limits.steps(self.grid)
        return Pure(
            exact_laplace_loss(self.steps, self.sensitivity_in_steps, width, self.l0_sensitivity or 1)
        )

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """Laplace noise for a part of a release."""
        epsilon = request.each.epsilon * part.weight
        grid = release_grid(part.unit, part.l1 * part.unit / epsilon)
        moved = sensitivity_on_grid(part, grid, request.bounding == "truncated")
        arguments = {"epsilon": epsilon, "sensitivity": moved, "grid": grid}
        return cls._for_part(part, request, **arguments, calibration=request.calibration)

    @functools.cached_property
    def distribution(self) -> GeneralizedNormal:
        """The Laplace distribution of this scale."""
        return GeneralizedNormal.of(1, self.scale)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_laplace(self.steps, size, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        return noise.truncated_laplace(self.steps, below, above, source)
