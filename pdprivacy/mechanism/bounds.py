"""Bounds on released numbers: truncation and clamping of noisy statistics, in closed form.

Two ways of keeping a released number within declared bounds, after Liu (2019), "Statistical
properties of sanitized results from differentially private Laplace mechanism with univariate
bounding constraints":

``"truncated"``: the law of the noise around the statistic is cut off at the bounds and
renormalised. How much is cut off depends on the statistic, so the noise must be calibrated for
it (`Laplace`, `Gaussian`, `GeneralizedGaussian`).

``"bit"``, boundary inflated truncation: the noisy statistic is clamped to the bounds, where it
piles up. Clamping is post-processing, and the noise stays that of the unbounded mechanism.

The statistic itself is clamped into the bounds first: clamping moves no two values further apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import doubles
from pdprivacy.errors import ParameterError, check_one_of, got
from pdprivacy.mechanism.core import Integers, aligned, check_count, check_distances, check_source
from pdprivacy.mechanism.law import QUARTER, Law
from pdprivacy.noise import Source
from pdprivacy.privacy import rational

__all__ = ["FURTHEST", "LEAST_RANGE", "Bounding", "Bounds", "Limited", "bias_between", "mse_between"]

Floats: TypeAlias = NDArray[np.float64]
Bounding: TypeAlias = Literal["truncated", "bit"]

LEAST_RANGE = 8
"""Bounds are at least this many grid steps apart."""

FURTHEST = 2**61


def _bound(value: Any, sign: int, name: str) -> Fraction | None:
    """A bound as an exact number, None where that side is open."""
    if value is None:
        return None
    if isinstance(value, float | np.floating | Decimal) and value in (math.inf, -math.inf):
        if (value > 0) == (sign > 0):
            return None
        raise ParameterError(
            f"{name!r} must not be infinite on that side.", "bounds=(0, 1), or bounds=(0, math.inf)."
        )
    return rational(value, name)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a released number and how they are kept; open sides are None.

    ``Bounds()`` is no bounds at all. All methods take the law of the noise and the statistic
    ``s`` (arrays broadcast); the statistic is clamped into the bounds first.

    Raises
    ------
    ParameterError : bounds without ``bounding`` or the reverse, bounds that are no pair, reversed,
        equal or NaN, and "truncated" with both sides open.

    >>> bounds = Bounds.of((0, 1), "bit")
    >>> bounds.lower, bounds.upper
    (Fraction(0, 1), Fraction(1, 1))
    """

    lower: Fraction | None = None
    upper: Fraction | None = None
    bounding: Bounding | None = None

    @classmethod
    def of(cls, bounds: Any, bounding: Any) -> Bounds:
        """The bounds that the arguments of a mechanism state."""
        if bounds is None and bounding is None:
            return cls()
        if bounding is None:
            raise ParameterError(
                "'bounds' need a 'bounding', which says how they are kept.",
                'bounding="truncated" for a renormalised law, bounding="bit" for clamping.',
            )
        check_one_of("bounding", bounding, get_args(Bounding))
        example = f'bounds=(0, 1), bounding="{bounding}".'
        if bounds is None:
            raise ParameterError(f"bounding={bounding!r} needs 'bounds'.", example)
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise ParameterError(
                f"'bounds' must be a pair of a lower and an upper bound (got {got(bounds)}).", example
            )
        lower, upper = _bound(bounds[0], -1, "lower"), _bound(bounds[1], 1, "upper")
        if lower is not None and upper is not None and lower >= upper:
            raise ParameterError(
                f"The lower bound must be below the upper one (got {got(bounds[0])} and {got(bounds[1])}).",
                example,
            )
        if lower is None and upper is None and bounding == "truncated":
            raise ParameterError(
                "bounding='truncated' needs a finite bound.", "leave bounds and bounding out for none."
            )
        return cls(lower, upper, bounding)

    @property
    def lo(self) -> float:
        """The lower bound as a double."""
        return -math.inf if self.lower is None else float(self.lower)

    @property
    def hi(self) -> float:
        """The upper bound as a double."""
        return math.inf if self.upper is None else float(self.upper)

    @property
    def width(self) -> Fraction | None:
        """The range, upper minus lower; None where a side is open."""
        if self.lower is None or self.upper is None:
            return None
        return self.upper - self.lower

    def check_sensitivity(self, sensitivity: Fraction, moves: int | None) -> None:
        """Refuse a sensitivity that no numbers within the bounds can have."""
        width, count = self.width, moves or 1
        if width is not None and sensitivity > width * count:
            raise ParameterError(
                f"'sensitivity' must be at most the range of 'bounds' times the {count} moved number(s) "
                f"(got {float(sensitivity):g} for a range of {float(width):g}).",
                "a number within bounds moves by at most upper - lower; moves= says how many numbers move.",
            )

    def on_grid(self, grid: Fraction) -> tuple[int | None, int | None]:
        """The first and the last multiple of ``grid`` within the bounds, in steps."""
        first = None if self.lower is None else math.ceil(self.lower / grid)
        last = None if self.upper is None else math.floor(self.upper / grid)
        if any(end is not None and abs(end) >= FURTHEST for end in (first, last)):
            raise ParameterError(
                f"'bounds' must be below 2**61 grid steps of {float(grid):g}.",
                "a coarser grid=, or leave the far side open with math.inf.",
            )
        if first is not None and last is not None and last - first < LEAST_RANGE:
            raise ParameterError(
                f"'bounds' must be at least {LEAST_RANGE} grid steps of {float(grid):g} apart.",
                "a finer grid=, or none.",
            )
        return first, last

    def steps(self, grid: Fraction) -> int | None:
        """The range of the cells of the grid within the bounds, in steps; None where a side is open."""
        first, last = self.on_grid(grid)
        return None if first is None or last is None else last - first + 1

    def centre(self, s: ArrayLike | None) -> Floats:
        """The statistic clamped into the bounds; zero where there is none and need be none."""
        if s is None:
            if self.bounding is None:
                return np.float64(0.0)  # type: ignore[return-value]
            raise ParameterError(
                "'s' is needed: the law of a bounded release depends on the statistic.",
                "for example cdf(x, s=0.5).",
            )
        centre = doubles(s, "'s'")
        if not bool(np.all(np.isfinite(centre))):
            raise ParameterError("'s' must be finite.")
        return np.asarray(np.clip(centre, self.lo, self.hi))

    def distances(self, s: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
        """The clamped statistic, and its distances to the lower and the upper bound."""
        centre = self.centre(s)
        return centre, np.asarray(centre - self.lo), np.asarray(self.hi - centre)

    def pdf(self, law: Law, x: ArrayLike, s: ArrayLike | None) -> Floats:
        """Density of the released number; the atoms of "bit" are not part of it."""
        centre, below, above = self.distances(s)
        x = aligned(doubles(x, "'x'"), centre)
        density = law.pdf(x - centre)
        if self.bounding is None:
            return density
        if self.bounding == "truncated":
            density = density / (law.half(below) + law.half(above))
        return np.asarray(np.where((x >= self.lo) & (x <= self.hi), density, 0.0))

    def cdf(self, law: Law, x: ArrayLike, s: ArrayLike | None) -> Floats:
        """Distribution function of the released number, right-continuous."""
        centre, below, above = self.distances(s)
        x = aligned(doubles(x, "'x'"), centre)
        if self.bounding == "truncated":
            inside = np.clip(x, self.lo, self.hi) - centre
            whole = law.half(below) + law.half(above)
            # from the nearer end, so that both ends are met exactly
            left = law.between(-below, np.maximum(inside, -below)) / whole
            right = law.between(np.minimum(inside, above), above) / whole
            return np.asarray(np.where(inside < 0, left, 1 - right))
        held = law.cdf(x - centre)
        if self.bounding is None:
            return held
        return np.asarray(np.where(x < self.lo, 0.0, np.where(x >= self.hi, 1.0, held)))

    def ppf(self, law: Law, q: Floats, s: ArrayLike | None) -> Floats:
        """Quantile function: the smallest x whose cdf reaches q."""
        centre, below, above = self.distances(s)
        aligned(q, centre)
        if self.bounding is None:
            return np.asarray(centre + law.ppf(q))
        if self.bounding == "bit":
            return np.asarray(np.clip(centre + law.ppf(q), self.lo, self.hi))
        whole = law.half(below) + law.half(above)
        # the mass between the centre and the quantile, and beyond the quantile, on either side
        left, right = law.half(below) - q * whole, law.half(above) - (1 - q) * whole
        on_left = left > 0
        mass = np.where(on_left, left, right)
        mass = np.clip(mass, 0.0, 0.5)
        beyond = np.where(on_left, law.tail(below) + q * whole, law.tail(above) + (1 - q) * whole)
        beyond = np.clip(beyond, 0.0, 0.5)
        # each form where it keeps its digits
        t = np.where(mass < QUARTER, law.distance(mass), law.reach(beyond))
        return np.asarray(np.clip(centre + np.where(on_left, -t, t), self.lo, self.hi))

    def bias(self, law: Law, s: ArrayLike) -> Floats:
        """Mean of the released number minus the statistic."""
        _, below, above = self.distances(s)
        if self.bounding is None:
            return np.zeros_like(below)
        return bias_between(law, self.bounding, below, above)

    def mse(self, law: Law, s: ArrayLike) -> Floats:
        """Mean of the squared difference of the released number and the statistic."""
        _, below, above = self.distances(s)
        if self.bounding is None:
            return np.full_like(below, law.std**2)
        return mse_between(law, self.bounding, below, above)

    def worst_bias(self, law: Law) -> float:
        """The largest absolute bias over the statistics within the bounds; it is at an end.

        Truncated: for v >= u the bias (M(v) - M(u)) / (G(u) + G(v)), M the first partial moment, is
        at most M(v)/G(v), the mean of |e| given |e| <= v, which grows with v. Clamped: the bias is
        K(v) - K(u) with K increasing.
        """
        if self.bounding is None or (self.lower is None and self.upper is None):
            return 0.0
        width = self.hi - self.lo
        if self.bounding == "bit":
            return float(law.clamped(1, width))
        return float(law.moment(1, width) / law.half(width))

    def worst_mse(self, law: Law) -> float:
        """The largest mean squared error over the statistics within the bounds.

        Truncated: (M(u) + M(v)) / (G(u) + G(v)), M the second partial moment, is a mediant of
        M(u)/G(u) and M(v)/G(v). M(t)/G(t), the mean of e^2 given |e| <= t, grows with t, so the
        largest is M/G at the whole range: a statistic at an end. Clamped: symmetric about the
        middle, at the middle of a wide range and at an end of a narrow one; found by search.
        Where a side is open, both approach the variance of the noise and never exceed it.
        """
        width = self.hi - self.lo
        if self.bounding is None or math.isinf(width):
            return law.std**2
        if self.bounding == "truncated":
            return float(law.moment(2, width) / law.half(width))
        return _largest(
            lambda u: np.asarray(law.clamped(2, u) + law.clamped(2, np.maximum(width - u, 0.0))), width / 2
        )


def bias_between(law: Law, bounding: Bounding, below: Floats, above: Floats) -> Floats:
    """Mean of the released number minus a statistic at these distances from its bounds."""
    if bounding == "bit":
        return np.asarray(law.clamped(1, above) - law.clamped(1, below))
    return np.asarray((law.moment(1, above) - law.moment(1, below)) / _mass_between(law, below, above))


def mse_between(law: Law, bounding: Bounding, below: Floats, above: Floats) -> Floats:
    """Mean squared difference of the released number and a statistic at these distances from its bounds."""
    if bounding == "bit":
        return np.asarray(law.clamped(2, below) + law.clamped(2, above))
    return np.asarray((law.moment(2, below) + law.moment(2, above)) / _mass_between(law, below, above))


def _mass_between(law: Law, below: Floats, above: Floats) -> Floats:
    """The mass within the bounds; not zero even where they meet, as the moments are there."""
    return np.maximum(law.half(below) + law.half(above), np.finfo(np.float64).tiny)


class Limited:
    """What mechanisms with `Bounds` say of them, and how they draw; the mechanisms hold the fields."""

    __slots__ = ()

    limits: Bounds

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of what is released, infinite where a side is open; None without."""
        return None if self.limits.bounding is None else (self.limits.lo, self.limits.hi)

    @property
    def bounding(self) -> Bounding | None:
        """How the bounds are kept: "truncated", "bit", or None without bounds."""
        return self.limits.bounding

    def _noise(self, size: int, source: Source) -> Integers:
        raise NotImplementedError

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        raise NotImplementedError

    def draw(self, size: int, source: Source) -> Integers:
        """``size`` exact draws of the noise in grid steps, before any clamping.

        Raises
        ------
        ParameterError : a truncated mechanism, whose noise depends on the statistic: `draw_within`.
        """
        if self.limits.bounding == "truncated":
            raise ParameterError(
                "Truncated noise depends on the distances to the bounds.",
                "draw_within(below, above, source).",
            )
        return self._noise(check_count(size), check_source(source))

    def draw_within(self, below: ArrayLike, above: ArrayLike, source: Source) -> Integers:
        """Exact draws of the truncated noise in grid steps, between ``-below`` and ``above``.

        ``below`` and ``above`` are the distances of each statistic to its bounds in grid steps,
        int64, not negative, ``noise.UNBOUNDED`` for an open side; they may differ from number to number.
        The loss is as stated if the range ``below + above`` of every number is at most that of the
        mechanism's own bounds. The mass that truncation adds to a loss grows with the range
        (``log_gain``), so a mechanism with one open side is valid for every range.

        Raises
        ------
        ParameterError : a mechanism that is not truncated, or distances of different shapes.
        """
        if self.limits.bounding != "truncated":
            raise ParameterError(
                "Only a truncated mechanism draws within distances.", 'bounding="truncated", or draw().'
            )
        near, far = check_distances(below, "'below'"), check_distances(above, "'above'")
        check_source(source)
        if near.shape != far.shape:
            raise ParameterError(f"Distances must have one shape (got {near.shape} and {far.shape}).")
        drawn = self._noise_within(near.ravel(), far.ravel(), source)
        return np.asarray(drawn.reshape(near.shape))


def _largest(function: Callable[[Floats], Floats], stop: float, points: int = 2049) -> float:
    """The largest value of a smooth function on [0, stop]: a grid, refined around its best point."""
    from scipy.optimize import minimize_scalar

    places = np.linspace(0.0, stop, points)
    values = function(places)
    best = int(np.argmax(values))
    around = (places[max(best - 1, 0)], places[min(best + 1, points - 1)])
    found = minimize_scalar(
        lambda u: -float(function(np.asarray(u))),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-12 * stop},
    )
    return max(float(values[best]), -float(found.fun))
