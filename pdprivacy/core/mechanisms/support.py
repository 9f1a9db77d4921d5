"""The support of a released number: the grid of the noise, and the bounds that are kept.

Grid. Noise is a whole number of grid steps and is added to whole numbers of them, exactly, before anything
becomes a double: a double that had been rounded before the noise came would have another sensitivity.

Values on the grid have the stated sensitivity. Other values are rounded to the nearest multiple first, which
moves a number by at most half a step, however ties are broken. Two numbers that are d apart are then at most
d + 1 steps apart: a whole number, so at most floor(d) + 1. If a record changes k numbers, the l1 sensitivity
grows by at most ``k * grid``, and the l2 sensitivity by at most ``sqrt(k) * grid``. Every mechanism
calibrates its noise for the larger sensitivity.

In a release, k is the l0 sensitivity of the part. The grid divides its unit, and nothing is rounded, unless
the noise is so large that the grid is coarser: then whole steps are counted (`sensitivity_on_grid`,
`l2_on_grid`). A mechanism that is used directly adds the stated k to the sensitivity in steps, or leaves room
for `ROUNDING_STEPS`: its default grid is at most 2**-20 of the sensitivity, where whole steps gain nothing.

Bounds. There are two ways of keeping a released number within declared bounds, after Liu (2019), "Statistical
properties of sanitized results from differentially private Laplace mechanism with univariate
bounding constraints":

``"truncated"``: the law of the noise around the statistic is cut off at the bounds and
renormalised. How much is cut off depends on the statistic, so the noise must be calibrated for
it (`Laplace`, `Gaussian`, `GeneralizedGaussian`).

``"clamp"``: the noisy statistic is clamped to the bounds, where it piles up. Clamping is
post-processing, and the noise stays that of the unbounded mechanism. Liu calls this boundary inflated
truncation; ``"bit"`` is accepted as another name of it.

The statistic itself is clamped into the bounds first: clamping moves no two values further apart.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import builtin, doubles, one_of, pair, reals
from pdprivacy.core.distributions import QUARTER, Distribution
from pdprivacy.core.noise.choice import WIDEST
from pdprivacy.core.privacy import Rational, rational
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import EXACT, exponent_below, power_below, power_of_two, root_above
from pdprivacy.types import Floats, Integers, Whole, settle

if TYPE_CHECKING:
    from pdprivacy.core.statistics import Part

F = TypeVar("F", bound=Callable[..., Any])

GRID_BITS = 20
"""A grid is at most 2**-20 of the scale of the noise."""

DRAWN_BITS = 48
"""The bits of a scale in the steps of a release: it is at most 2**49 of them."""

INVERTED_BITS = 30
"""The number for noise that is drawn by inversion, where double precision decides nearly all draws."""

ROUNDING_STEPS = 2**10
"""The number of steps by which the sensitivity grows on a default grid (2**-20 of it): enough for 2**10
rounded coordinates in the l1 norm and 2**20 in the l2 norm."""

LEAST_STEPS = Fraction(1, 2**10)
MOST_SCALE_BITS = 963  # 2**963 is about 1e290


def remembered(function: F) -> F:
    """Return a function of checked, exact numbers that keeps its answers.

    Raises ParameterError where a number has no double.
    """
    cached = functools.lru_cache(maxsize=1024)(function)

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        try:
            return cached(*args)
        except ArithmeticError:
            raise ParameterError(
                "The noise cannot be computed: doubles do not hold all numbers that it depends on.",
                "'epsilon' between 1e-5 and 1e5 is always possible.",
            ) from None

    return cast("F", called)


def release_grid(unit: Fraction, scale: Fraction, bits: int = DRAWN_BITS) -> Fraction:
    """Return a power of two well below the scale: at most the unit, unless too many steps would be drawn."""
    exponent = exponent_below(scale)
    return power_of_two(max(min(exponent_below(unit), exponent - GRID_BITS), exponent - bits))


def sensitivity_on_grid(part: Part, grid: Fraction, truncated: bool) -> Fraction:
    """Return the l1 sensitivity of the part on a grid that may be coarser than its unit."""
    moved = part.l1 * part.unit
    if grid <= part.unit:
        return moved
    # rounding moves each number that a record moves by a step
    coarse = (math.floor(moved / grid) + part.l0) * grid
    if truncated and part.l0 == 1 and part.lower is not None and part.upper is not None:
        # clamped to the grid within its bounds first, the number moves no further than they are apart
        return min(coarse, max((part.upper - part.lower) // grid, 1) * grid)
    return coarse


def l2_on_grid(part: Part, grid: Fraction) -> Fraction:
    """Return the l2 sensitivity of the part over the root of its weight, on a grid as above."""
    moved = root_above(Fraction(part.l2_squared) / part.weight) * part.unit
    return moved if grid <= part.unit else moved + part.l0 * grid * root_above(1 / part.weight)


def check_grid(grid: Rational, sensitivity: Fraction | None) -> Fraction:
    """Return a grid that is a power of two and divides the sensitivity."""
    # a float that is a power of two is one exactly, whatever its shortest decimal form
    exact = isinstance(grid, float) and math.isfinite(grid)
    step = Fraction(builtin(grid)) if exact else rational(grid, "grid")
    if step <= 0:
        raise ParameterError(f"'grid' must be positive (got {got(grid)}).")
    if power_below(step) != step:
        raise ParameterError(f"'grid' must be a power of two (got {got(grid)}).")
    if sensitivity is not None and (sensitivity / step).denominator != 1:
        raise ParameterError("'sensitivity' must be a whole number of grid steps.")
    return step


def check_drawable(steps: Fraction, grid: Fraction, integer: bool = False) -> None:
    """Refuse noise that cannot be drawn, or whose scale no double holds, before anything is charged.

    ``integer``: whether the noise is on the integers, where a scale may be below a step; else the grid must
    not show in the noise.
    """
    if integer:
        steps = max(steps, LEAST_STEPS)
    elif steps < 1 << GRID_BITS:
        raise ParameterError("'grid' must be at most 2**-20 of the scale.")
    scale = steps.numerator.bit_length() - steps.denominator.bit_length()
    scale += grid.numerator.bit_length() - grid.denominator.bit_length()
    if steps > WIDEST or abs(scale) > MOST_SCALE_BITS:
        raise ParameterError(
            "The noise cannot be drawn: its scale must be between 1e-290 and 1e290 "
            "and at most 2**52 grid steps.",
            "'epsilon' between 1e-5 and 1e5 is always possible.",
        )


def grid_units(
    values: ArrayLike, grid: Fraction, exact: bool, first: int | None = None, last: int | None = None
) -> Integers:
    """Return ``values`` in grid steps, clamped into [first, last] where these are given; same shape."""
    step = float(grid)
    array = reals(values)
    whole = array.dtype.kind in "iu" and array.size > 0
    if whole and max(abs(int(array.max())), abs(int(array.min()))) > EXACT:
        # rounded to a double before the noise, neighbours could move apart
        raise ParameterError("Values must be numbers that doubles hold: at most 2**53 in size.")
    array = array.astype(np.float64)
    if not bool(np.all(np.isfinite(array))):
        raise ParameterError("Values must be finite.")
    with np.errstate(over="ignore"):
        units = array / step
    rounded = np.rint(units)
    if exact and not np.array_equal(rounded, units):
        raise ParameterError(f"Values must be multiples of the grid {step}.")
    bounded = first is not None or last is not None
    if bounded:  # as doubles the ends may be off by their rounding, but no double lies between
        low, high = (None if end is None else float(end) for end in (first, last))
        rounded = np.clip(rounded, low, high)
    if not bool(np.all(np.abs(rounded) < 2.0**62)):
        raise ParameterError(f"Values must be below 2**62 grid steps of {step}.")
    steps = rounded.astype(np.int64)
    return np.asarray(np.clip(steps, first, last) if bounded else steps)


def in_steps(whole: Whole, unit: Fraction, grid: Fraction) -> list[int]:
    """Return whole numbers of ``unit`` in steps of the grid, rounded half up where it is coarser."""
    numbers: Sequence[int] = whole.tolist() if isinstance(whole, np.ndarray) else whole
    if grid > unit:
        coarser = grid // unit
        return [(number + coarser // 2) // coarser for number in numbers]
    finer = unit // grid
    return [number * finer for number in numbers]


def first_step(limit: float | Fraction, grid: Fraction) -> int | None:
    """Return the first grid step at or above a limit; None where there is no limit."""
    return math.ceil(Fraction(limit) / grid) if math.isfinite(limit) else None


def last_step(limit: float | Fraction, grid: Fraction) -> int | None:
    """Return the last grid step at or below a limit; None where there is no limit."""
    return math.floor(Fraction(limit) / grid) if math.isfinite(limit) else None


# ---------------------------------------------------------------- bounds

Bounding: TypeAlias = Literal["truncated", "clamp", "bit"]
"""Bounding methods; "bit" is the name of "clamp" in Liu (2019)."""

LEAST_RANGE = 8
"""Bounds are at least this many grid steps apart."""

FURTHEST = 2**61
"""Grid steps and scores are below this size, so that sums and differences of two stay within 64 bits."""

POINTS = 2049
"""Statistics that a search for the largest error looks at first."""


def bounding_name(bounding: Any) -> Bounding | None:
    """Return "truncated", "clamp", or None for no bounding; ParameterError for anything else.

    >>> bounding_name("bit")
    'clamp'
    """
    if bounding is None:
        return None
    name = "clamp" if isinstance(bounding, str) and bounding == "bit" else bounding
    one_of(name, "bounding", ("truncated", "clamp"))
    return cast("Bounding", name)


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


def _stated(end: Fraction | float) -> Fraction | float:
    """Return a bound as the double that stands for it, if there is one."""
    if isinstance(end, float) or abs(end) > WIDEST:
        return end
    return float(end) if rational(float(end), "bounds") == end else end


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a released number and how they are kept; open sides are None.

    ``Bounds()`` is no bounds at all. All methods take the law of the noise and the statistic
    ``s`` (arrays broadcast); the statistic is clamped into the bounds first.

    Raises
    ------
    ParameterError : bounds without ``bounding`` or the reverse, bounds that are no pair, reversed,
        equal or NaN, and "truncated" with both sides open.

    >>> bounds = Bounds.of((0, 1), "clamp")
    >>> bounds.lower, bounds.upper
    (Fraction(0, 1), Fraction(1, 1))
    """

    lower: Fraction | None = None
    upper: Fraction | None = None
    bounding: Bounding | None = None

    def __post_init__(self) -> None:
        settle(self, bounding=bounding_name(self.bounding))

    @classmethod
    def of(cls, bounds: Any, bounding: Any) -> Bounds:
        """The bounds that the arguments of a mechanism state."""
        if bounds is None and bounding is None:
            return NO_BOUNDS
        if bounding is None:
            raise ParameterError(
                "'bounds' need a 'bounding', which says how they are kept.",
                'bounding="truncated" for a renormalised law, bounding="clamp" for clamping.',
            )
        bounding = bounding_name(bounding)
        example = f'bounds=(0, 1), bounding="{bounding}".'
        if bounds is None:
            raise ParameterError(f"bounding={bounding!r} needs 'bounds'.", example)
        ends = pair(bounds, "bounds", example)
        lower, upper = _bound(ends[0], -1, "lower"), _bound(ends[1], 1, "upper")
        if lower is not None and upper is not None and lower >= upper:
            raise ParameterError(
                f"The lower bound must be below the upper one (got {got(ends[0])} and {got(ends[1])}).",
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
    def ends(self) -> tuple[Fraction | float, Fraction | float]:
        """The lower and the upper bound, infinite where a side is open."""
        lower: Fraction | float = -math.inf if self.lower is None else self.lower
        return lower, math.inf if self.upper is None else self.upper

    @property
    def stated(self) -> tuple[float | Fraction, float | Fraction] | None:
        """The bounds as doubles, exact where no double stands for one; None for no bounds."""
        return None if self.bounding is None else (_stated(self.ends[0]), _stated(self.ends[1]))

    @property
    def width(self) -> Fraction | None:
        """The range, upper minus lower; None where a side is open."""
        if self.lower is None or self.upper is None:
            return None
        return self.upper - self.lower

    def check_sensitivity(self, sensitivity: Fraction, l0_sensitivity: int | None) -> None:
        """Refuse a sensitivity that no numbers within the bounds can have."""
        width, count = self.width, l0_sensitivity or 1
        if width is not None and sensitivity > width * count:
            raise ParameterError(
                f"'sensitivity' must be at most the range of 'bounds' times the {count} moved number(s) "
                f"(got {float(sensitivity):g} for a range of {float(width):g}).",
                "a number within bounds moves by at most upper - lower; l0_sensitivity= says how many move.",
            )

    def on_grid(self, grid: Fraction) -> tuple[int | None, int | None]:
        """The first and the last multiple of ``grid`` within the bounds, in steps."""
        first = None if self.lower is None else math.ceil(self.lower / grid)
        last = None if self.upper is None else math.floor(self.upper / grid)
        if any(end is not None and abs(end) >= FURTHEST for end in (first, last)):
            raise ParameterError(
                f"'bounds' must be below 2**61 grid steps of {float(grid):g}.",
                "bounds=(0, math.inf), which leaves the far side open.",
            )
        return first, last

    def steps(self, grid: Fraction) -> int | None:
        """The range of the cells of the grid within the bounds, in steps; None where a side is open.

        Raises ParameterError for a range of too few of them.
        """
        first, last = self.on_grid(grid)
        if first is None or last is None:
            return None
        if last - first < LEAST_RANGE:
            raise ParameterError(
                f"'bounds' must be at least {LEAST_RANGE} grid steps of {float(grid):g} apart.",
                "a finer grid=, or none.",
            )
        return last - first + 1

    def whole(self) -> Bounds:
        """The whole numbers within the bounds."""
        ends = self.on_grid(Fraction(1))
        first, last = (None if end is None else Fraction(end) for end in ends)
        if first is not None and last is not None and first >= last:
            raise ParameterError("'bounds' must have two whole numbers between them.")
        return Bounds(first, last, self.bounding)

    def centre(self, s: ArrayLike | None, step: int = 0) -> Floats:
        """Return the statistic clamped into the bounds; zero without a statistic, where none is needed.

        ``step``: 1 where statistics are whole numbers, to which they are rounded.
        """
        if s is None and self.bounding is not None:
            raise ParameterError(
                "'s' is needed: the distribution of a bounded release depends on the statistic.",
                "for example cdf(x, s=3).",
            )
        centre = doubles(0.0 if s is None else s, "'s'")
        if not bool(np.all(np.isfinite(centre))):
            raise ParameterError("'s' must be finite.")
        return np.asarray(np.clip(np.rint(centre) if step else centre, self.lo, self.hi))

    def distances(self, s: ArrayLike | None, step: int = 0) -> tuple[Floats, Floats, Floats]:
        """The clamped statistic, and its distances to the lower and the upper bound."""
        centre = self.centre(s, step)
        return centre, np.asarray(centre - self.lo), np.asarray(self.hi - centre)

    def pdf(self, noise: Distribution, x: ArrayLike, s: ArrayLike | None) -> Floats:
        """Density of the released number; the atoms of "clamp" are not part of it."""
        centre, below, above = self.distances(s, noise.step)
        x = _aligned(doubles(x, "'x'"), centre)
        density = noise.pdf(x - centre)
        if self.bounding is None:
            return density
        if self.bounding == "truncated":
            density = density / (noise.half(below) + noise.half(above))
        return np.asarray(np.where((x >= self.lo) & (x <= self.hi), density, 0.0))

    def cdf(self, noise: Distribution, x: ArrayLike, s: ArrayLike | None) -> Floats:
        """Distribution function of the released number, right-continuous."""
        centre, below, above = self.distances(s, noise.step)
        x = _aligned(doubles(x, "'x'"), centre)
        if self.bounding == "truncated":
            # from the nearer end, so that both ends are met exactly
            e = np.clip((np.floor(x) if noise.step else x) - centre, -below - noise.step, above)
            left = e < 0
            mass = noise.between(np.where(left, -e - noise.step, e), np.where(left, below, above))
            mass = mass / (noise.half(below) + noise.half(above))
            return np.asarray(np.where(left, mass, 1 - mass))
        chance = noise.cdf(x - centre)
        if self.bounding is None:
            return chance
        return np.asarray(np.where(x < self.lo, 0.0, np.where(x >= self.hi, 1.0, chance)))

    def ppf(self, noise: Distribution, q: Floats, s: ArrayLike | None) -> Floats:
        """Quantile function: the smallest x whose cdf reaches q."""
        centre, below, above = self.distances(s)
        _aligned(q, centre)
        if self.bounding is None:
            return np.asarray(centre + noise.ppf(q))
        if self.bounding == "clamp":
            return np.asarray(np.clip(centre + noise.ppf(q), self.lo, self.hi))
        whole = noise.half(below) + noise.half(above)
        # the mass between the centre and the quantile, and beyond the quantile, on either side
        left, right = noise.half(below) - q * whole, noise.half(above) - (1 - q) * whole
        on_left = left > 0
        mass = np.where(on_left, left, right)
        mass = np.clip(mass, 0.0, 0.5)
        beyond = np.where(on_left, noise.tail(below) + q * whole, noise.tail(above) + (1 - q) * whole)
        beyond = np.clip(beyond, 0.0, 0.5)
        # each form where it keeps its digits
        t = np.where(mass < QUARTER, noise.distance(mass), noise.reach(beyond))
        return np.asarray(np.clip(centre + np.where(on_left, -t, t), self.lo, self.hi))

    def bias(self, noise: Distribution, s: ArrayLike) -> Floats:
        """Mean of the released number minus the statistic."""
        _, below, above = self.distances(s, noise.step)
        if self.bounding is None:
            return np.zeros_like(below)
        return bias_between(noise, self.bounding, below, above)

    def mse(self, noise: Distribution, s: ArrayLike) -> Floats:
        """Mean of the squared difference of the released number and the statistic."""
        _, below, above = self.distances(s, noise.step)
        if self.bounding is None:
            return np.full_like(below, noise.std**2)
        return mse_between(noise, self.bounding, below, above)

    def worst_bias(self, noise: Distribution) -> float:
        """The largest absolute bias over the statistics within the bounds; it is at an end.

        Let u <= v be the distances of the statistic to the bounds, G(t) the mass of the noise within [0, t]
        and M(t) its first partial moment. The bias of truncated noise is (M(v) - M(u)) / (G(u) + G(v)), at
        most M(v) / G(v), the mean of |e| given |e| <= v, which grows with v. The bias of clamped noise is
        K(v) - K(u) for an increasing K.
        """
        if self.bounding is None or (self.lower is None and self.upper is None):
            return 0.0
        return float(bias_between(noise, self.bounding, np.array(0.0), np.array(self.hi - self.lo)))

    def worst_mse(self, noise: Distribution) -> float:
        """The largest mean squared error over the statistics within the bounds.

        Let u and v be the distances of the statistic to the bounds, G(t) the mass of the noise within [0, t]
        and M(t) its second partial moment. The error of truncated continuous noise,
        (M(u) + M(v)) / (G(u) + G(v)), lies between M(u) / G(u) and M(v) / G(v). The mean of e^2 given
        |e| <= t, M(t) / G(t), grows with t. So no error exceeds M / G of the whole range, which is the error
        of a statistic at an end.

        The error of clamped noise is symmetric about the middle of the range. It is largest at the middle of
        a wide range and at an end of a narrow one, and is found by search; so is the error of noise on the
        integers. Where a side is open, the error approaches the variance and never exceeds it.
        """
        width, bounding = self.hi - self.lo, self.bounding
        if bounding is None or math.isinf(width):
            return noise.std**2

        def error(u: Floats) -> Floats:
            return mse_between(noise, bounding, u, np.maximum(width - u, 0.0))

        if noise.step:
            return float(error(np.unique(np.rint(np.linspace(0, width // 2, POINTS)))).max())
        if bounding == "truncated":
            return float(error(np.array(0.0)))
        return _largest(error, width / 2)


NO_BOUNDS = Bounds()


def bias_between(noise: Distribution, bounding: Bounding, below: Floats, above: Floats) -> Floats:
    """Mean of the released number minus a statistic at these distances from its bounds."""
    if bounding == "clamp":
        return np.asarray(noise.clamped(1, above) - noise.clamped(1, below))
    return np.asarray((noise.moment(1, above) - noise.moment(1, below)) / _mass_between(noise, below, above))


def mse_between(noise: Distribution, bounding: Bounding, below: Floats, above: Floats) -> Floats:
    """Mean squared difference of the released number and a statistic at these distances from its bounds."""
    if bounding == "clamp":
        return np.asarray(noise.clamped(2, below) + noise.clamped(2, above))
    return np.asarray((noise.moment(2, below) + noise.moment(2, above)) / _mass_between(noise, below, above))


def _mass_between(noise: Distribution, below: Floats, above: Floats) -> Floats:
    """The mass within the bounds; not zero even where they meet, as the moments are there."""
    return np.maximum(noise.half(below) + noise.half(above), np.finfo(np.float64).tiny)


def _aligned(x: Floats, s: Floats) -> Floats:
    """Refuse places and statistics whose shapes do not fit each other."""
    try:
        np.broadcast_shapes(np.shape(x), np.shape(s))
    except ValueError:
        raise ParameterError("The places and the statistics must have shapes that broadcast.") from None
    return x


def _largest(function: Callable[[Floats], Floats], stop: float, points: int = POINTS) -> float:
    """The largest value of a smooth function on [0, stop]: a grid, refined around its best point."""
    from scipy.optimize import minimize_scalar

    grid = np.linspace(0.0, stop, points)
    values = function(grid)
    best = int(np.argmax(values))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, points - 1)])
    optimum = minimize_scalar(
        lambda u: -float(function(np.asarray(u))),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-12 * stop},
    )
    return max(float(values[best]), -float(optimum.fun))
