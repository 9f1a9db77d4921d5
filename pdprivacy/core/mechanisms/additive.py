"""Additive mechanisms: checks of arguments, distribution functions, samples and intervals."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import doubles, flag, instance, proportion, real, reals, whole
from pdprivacy.core import noise
from pdprivacy.core.distributions import Distribution
from pdprivacy.core.mechanisms import support
from pdprivacy.core.mechanisms.support import Bounding, Bounds
from pdprivacy.core.noise import UNBOUNDED, RandomState, Source
from pdprivacy.core.privacy import Approx, Pure, Rational, loss, positive
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import EXACT, exponent_below, near, power_below
from pdprivacy.types import Floats, Integers, Whole, settle

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part

__all__ = ["SAFE", "Additive", "Continuous", "Discrete", "Mechanism", "add", "add_within"]


SAFE = Fraction(1 + 2**-30)
"""Scales found in floating point grow by this factor: it exceeds the rounding of the calibration
and, for the discrete Gaussian, what a grid of 2**-20 sigma adds to the loss of the continuous density."""

MOST_DRAWS = 10**8
LARGEST_WIDTH = 2**1000


@runtime_checkable
class Mechanism(Protocol):
    """The part of a mechanism that releases use."""

    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def loss(self) -> Pure | Approx: ...
    @property
    def scale(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def grid(self) -> Fraction: ...
    def draw(self, size: int, source: Source) -> Integers: ...
    def cdf(self, x: ArrayLike) -> Floats: ...
    def interval(self, level: float = 0.95) -> tuple[float, float]: ...


def check_source(source: Any) -> Source:
    """Refuse everything but a source of random bits."""
    return instance(source, Source, "source", "pdprivacy.core.noise.source().")


def check_probabilities(q: ArrayLike) -> Floats:
    """Return probabilities as doubles; raise ParameterError for other numbers."""
    probabilities = doubles(q, "'q'")
    if not bool(np.all((probabilities >= 0) & (probabilities <= 1))):
        raise ParameterError("Probabilities must be in [0, 1].")
    return probabilities


def whole_sensitivity(sensitivity: Rational, name: str = "sensitivity") -> Fraction:
    """Return the sensitivity of integers, a positive whole number; ``name``: of another such argument."""
    number = positive(sensitivity, name)
    if number.denominator != 1:
        raise ParameterError(f"{name!r} must be a whole number (got {got(sensitivity)}).")
    return number


def check_moves(
    sensitivity: Rational, width: Rational | None, l0_sensitivity: int
) -> tuple[Fraction, Fraction | None, int]:
    """Return the sensitivity, the range and the l0 sensitivity of truncated noise, checked and exact."""
    span = None if width is None else positive(width, "width")
    return positive(sensitivity, "sensitivity"), span, whole(l0_sensitivity, "l0_sensitivity", 1)


def finite_width(width: float | Fraction | None) -> float:
    """Return a range as a double, infinity for an open one."""
    return math.inf if width is None or width > LARGEST_WIDTH else float(width)


def _width(part: Part) -> Fraction | None:
    """Return the distance of fixed bounds, which is all that the scale of truncated noise depends on.

    Calibrated for one bound (None), truncated noise keeps its loss within any two.
    """
    if part.limits is not None or part.lower is None or part.upper is None:
        return None
    if part.lower == part.upper:
        raise ParameterError(f"The {part.name} can be one number only, which is public.")
    return part.upper - part.lower


@dataclass(frozen=True)
class Additive:
    """Noise of a `Distribution`, added on a grid and kept within `Bounds`.

    The fields are the arguments of the constructor, checked and exact; a grid that was found is one of them,
    so that ``dataclasses.replace`` keeps it. ``bounds``, ``bounding``: the bounds of what is released, and
    how they are kept. ``l0_sensitivity``: in how many numbers neighbours may differ; None where it is not
    stated. ``grid``: the step of the noise. ``exact``: whether values must lie on the grid; others are
    rounded to it.

    Without ``bounding`` distributions are those of the noise, shifted to ``s`` where one is given. With it,
    they are those of the released number for the statistic ``s``, which is needed then.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """The name in words, such as "Laplace noise"."""
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    """The norm of the sensitivity that the noise is calibrated to."""
    integer: ClassVar[bool] = False
    """Whether the noise is on the integers, and released numbers are integers."""
    truncatable: ClassVar[bool] = True
    """Whether the loss of truncated noise is known, so that bounding="truncated" is offered."""
    truncation_is_free: ClassVar[bool] = False
    """Whether truncated noise keeps the scale of unbounded noise."""
    calibrations: ClassVar[Mapping[str, Bounding | None]] = {}
    """The calibrations that a release may state, each with the bounding that it is for; None for any."""
    takes_order: ClassVar[bool] = False
    """Whether the noise has an order ``p``."""
    std_per_scale: ClassVar[float]
    """The standard deviation per unit of the scale, nearly on the integers, where nothing else changes it."""

    epsilon: Fraction
    sensitivity: Fraction
    bounds: tuple[float | Fraction, float | Fraction] | None
    """Lower and upper bound of what is released, infinite where a side is open; None without."""
    bounding: Bounding | None
    """The bounding method: "truncated", "clamp", or None without bounds."""
    l0_sensitivity: int | None
    grid: Fraction = field(init=False, repr=False)
    exact: bool = field(init=False, repr=False)

    @property
    def shape(self) -> list[float] | None:
        """The numbers besides scale and order that the distribution depends on; None without any."""
        return None

    @property
    def multiplier(self) -> Fraction | None:
        """Sigma per unit of l2 sensitivity, where the loss is that of Gaussian noise; else None."""
        return None

    @property
    def loss(self) -> Pure | Approx:
        """The privacy loss of one sample."""
        return loss(self.epsilon, getattr(self, "delta", 0))

    @functools.cached_property
    def scale(self) -> float:
        """The scale of the noise before any bounding, in the unit of the values."""
        return float(self.steps * self.grid)

    @classmethod
    def takes_delta(cls, p: Rational | None = None) -> bool:  # noqa: ARG003
        """Return whether a loss must have a positive delta; else it must have none. ``p``: the order."""
        return "delta" in cls.__dataclass_fields__

    @classmethod
    def _limit_scale(cls, part: Part, delta: Fraction, calibration: str | None) -> float:  # noqa: ARG003
        """The scale that the noise for a part approaches as epsilon goes to 0."""
        return math.inf

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """The mechanism for a part of a release, from declared facts alone.

        Raises ParameterError where the mechanism or its bounds do not fit the part.
        """
        raise NotImplementedError

    @classmethod
    def _for_part(cls, part: Part, request: Request, **arguments: Any) -> Self:
        """Return a mechanism with all bounds of a part that its scale depends on.

        Clamped noise need not know its bounds. Raises ParameterError where the part has no bounds to keep.
        """
        if request.bounding is not None:
            if part.limits is None and part.lower is None and part.upper is None:
                raise ParameterError(
                    f"Nothing bounds the {part.name}: it can be any number.", "pass bounds=(lower, upper)."
                )
            if request.bounding == "truncated":
                width = _width(part)
                arguments["bounds"] = (0, None if cls.truncation_is_free else width)
                arguments["bounding"] = "truncated"
        return cls(l0_sensitivity=part.l0, **arguments)

    def _set(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        bounds: Any,
        bounding: Any,
        l0_sensitivity: int | None,
        **fields: Any,
    ) -> None:
        """Set the fields: those that all mechanisms have, once checked, and ``fields`` of this one.

        Raises ParameterError for bounds that the mechanism or its sensitivity do not fit.
        """
        cost, moved = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        if l0_sensitivity is not None:
            hint = "l0_sensitivity=1 for cells that share no record."
            l0_sensitivity = whole(l0_sensitivity, "l0_sensitivity", 1, hint=hint)
        limits = Bounds.of(bounds, bounding)
        if limits.bounding is not None:
            if limits.bounding == "truncated" and not self.truncatable:
                raise ParameterError(
                    f"bounding='truncated' is not offered for {self.title}: what truncation adds to its loss "
                    "is not known.",
                    'bounding="clamp", or Laplace noise.',
                )
            limits.check_sensitivity(moved, l0_sensitivity)
            limits = limits.whole() if self.integer else limits
        settle(self, epsilon=cost, sensitivity=moved, l0_sensitivity=l0_sensitivity, **fields)
        # the bounds are read once: the cached property is for copies
        settle(self, bounds=limits.stated, bounding=limits.bounding, limits=limits)

    @functools.cached_property
    def limits(self) -> Bounds:
        """The bounds of what is released, exact, and how they are kept."""
        return Bounds.of(self.bounds, self.bounding)

    @functools.cached_property
    def steps(self) -> Fraction:
        """The scale of the noise in grid steps, exact."""
        return self._scale(
            self.sensitivity_in_steps, None if self.bounding is None else self._width(self.grid)
        )

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:
        """Return the scale that noise needs for a sensitivity and a range (None: open), in their unit."""
        raise NotImplementedError

    def _width(self, grid: Fraction) -> Fraction | int | None:
        """Return the range within the bounds in grid steps; None where a side is open."""
        return self.limits.steps(grid)

    @property
    def sensitivity_in_steps(self) -> Fraction:
        """The distance of neighbours in grid steps, rounding included."""
        moved = self.sensitivity / self.grid
        if self.exact:
            return moved
        return moved + (support.ROUNDING_STEPS if self._leaves_room else self.l0_sensitivity or 1)

    @property
    def _leaves_room(self) -> bool:
        """Whether the sensitivity leaves room for `support.ROUNDING_STEPS`, and not for each moved number."""
        return self.bounding != "truncated"

    def _with_bounds(self, bounds: Any, bounding: Bounding | None, l0_sensitivity: int) -> Self:
        """Return the same noise with bounds of the released number.

        This is the mechanism itself where there are no bounds, or where its scale depends on them, because it
        then has them from its calibration.
        """
        if bounding is None or (bounding == "truncated" and not self.truncation_is_free):
            return self
        return replace(self, bounds=bounds, bounding=bounding, l0_sensitivity=l0_sensitivity)

    @functools.cached_property
    def distribution(self) -> Distribution:
        """The distribution of the noise before any bounding."""
        raise NotImplementedError

    @property
    def std(self) -> float:
        """Standard deviation of the noise before any bounding.

        No bounding has a larger root mean squared error: see ``Bounds.worst_mse``.
        """
        return self.distribution.std

    def cdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Distribution function of the noise, or of the number released for ``s``; right-continuous."""
        return self.limits.cdf(self.distribution, x, s)

    def bias(self, s: ArrayLike) -> Floats:
        """Mean of the released number minus the statistic ``s``; zero without bounds.

        Source: Liu (2019), equations (6), (7), (9) and (10), for any order of the distribution.
        """
        return self.limits.bias(self.distribution, s)

    def mse(self, s: ArrayLike) -> Floats:
        """Mean squared error of the released number for the statistic ``s``.

        Never above ``std**2``. For truncated noise, Liu (2019), Appendix B, prints another
        expression, which is not the mean squared error; for "clamp" the two agree.
        """
        return self.limits.mse(self.distribution, s)

    def worst_case_bias(self) -> float:
        """The largest absolute bias over all statistics within the bounds; it is at an end."""
        return self.limits.worst_bias(self.distribution)

    def worst_case_mse(self) -> float:
        """The largest mean squared error over all statistics within the bounds.

        Where a side is open it approaches the variance of the noise, and never exceeds it.
        """
        return self.limits.worst_mse(self.distribution)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The smallest symmetric interval that holds the noise with at least ``level``.

        The noise is that before any bounding. With bounding, the released number minus the statistic lies
        in the interval with at least the same probability, for every statistic within the bounds.

        Proof for truncated noise: let G(t) be the mass within [0, t], h the half width of the interval, and
        u and v the distances of the statistic to the bounds. The probability is a mediant of
        min(1, G(h)/G(u)) and min(1, G(h)/G(v)), and both are at least 2 G(h), because G <= 1/2. Clamping
        moves no number further from a statistic within the bounds.
        """
        half = self.distribution.central(proportion(level, "level"))
        return 0.0 - half, half

    # Draws and samples.

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
        return self._noise(whole(size, "size", 0, MOST_DRAWS), check_source(source))

    def draw_within(self, below: ArrayLike, above: ArrayLike, source: Source) -> Integers:
        """Exact draws of the truncated noise in grid steps, between ``-below`` and ``above``.

        ``below`` and ``above`` are the distances of each statistic to its bounds in grid steps,
        int64, not negative, ``noise.UNBOUNDED`` for an open side; they may differ from number to number.
        The loss is as stated if the range ``below + above`` of every number is at most that of the
        mechanism's own bounds. The mass that truncation adds to a loss grows with the range
        (see `GeneralizedGaussian`), so a mechanism with one open side is valid for every range.

        Raises
        ------
        ParameterError : a mechanism that is not truncated, or distances of different shapes.
        """
        if self.limits.bounding != "truncated":
            raise ParameterError("Only a truncated mechanism draws within distances.", "draw(size, source).")
        near, far = reals(below, "'below'"), reals(above, "'above'")
        if near.shape != far.shape:
            raise ParameterError(f"Distances must have one shape (got {near.shape} and {far.shape}).")
        drawn = self._noise_within(near.ravel(), far.ravel(), check_source(source))
        return np.asarray(drawn.reshape(near.shape))

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number: the loss depends on ``l0_sensitivity``, which is not stated."""
        return self.limits.bounding == "truncated" and self.l0_sensitivity is None

    def _check_size(self, size: int) -> None:
        """Refuse more values than the calibration is for."""
        if self.takes_one and size > 1:
            raise ParameterError(
                f"This {self.limits.bounding or self.name} mechanism takes one number: its loss depends on "
                f"how many numbers a record moves, and 'l0_sensitivity' does not say (got {size} values).",
                f"{self._call('l0_sensitivity=1')} for cells that share no record.",
            )

    def _call(self, argument: str) -> str:
        """Return the call that makes this mechanism with another argument, for a hint."""
        numbers = {name: getattr(self, name, None) for name in ("epsilon", "delta", "sensitivity", "p")}
        arguments = [f"{name}={near(value):g}" for name, value in numbers.items() if value is not None]
        if self.bounding is not None:
            ends = (
                None if end is None else f"{near(end):g}" for end in (self.limits.lower, self.limits.upper)
            )
            arguments += ["bounds=({}, {})".format(*ends), f'bounding="{self.bounding}"']
        return f"{type(self).__name__}({', '.join([*arguments, argument])})"


@dataclass(frozen=True)
class Continuous(Additive):
    """Noise of a continuous distribution, whose values are rounded to a grid that is given or found."""

    whole_on_grid: ClassVar[bool] = True
    """Whether the sensitivity must be a whole number of steps of a grid that is given without ``exact``."""

    grid: Fraction
    exact: bool

    def _set_grid(self, grid: Rational | None, exact: bool | None) -> None:
        """Set the grid, which is given or found, after all other fields.

        Raises ParameterError for a grid that does not fit, and for noise that cannot be drawn on it.
        """
        on_grid = grid is not None if exact is None else flag(exact, "exact")
        if grid is None:
            step = self._default_grid()
        else:
            whole_steps = exact is None and self.whole_on_grid
            step = support.check_grid(grid, self.sensitivity if whole_steps else None)
        settle(self, grid=step, exact=on_grid)
        support.check_drawable(self.steps, self.grid)

    def _default_grid(self) -> Fraction:
        """Return the grid where none is given."""
        plain = self._scale(self.sensitivity, self.limits.width)
        return power_below(min(self.sensitivity, plain)) / ((1 << support.GRID_BITS) * support.ROUNDING_STEPS)

    def pdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Density of the noise, or of the number released for the statistic ``s``.

        The probabilities with which "clamp" releases exactly a bound are no part of a density:
        they are ``cdf(lower, s)`` and ``1 - cdf(x, s)`` for x just below ``upper``.
        """
        return self.limits.pdf(self.distribution, x, s)

    def ppf(self, q: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Quantile function of the noise, or of the number released for ``s``."""
        return self.limits.ppf(self.distribution, check_probabilities(q), s)

    def interval(self, level: float = 0.95, s: float | None = None) -> tuple[float, float]:
        """The central interval that holds the noise, or the number released for ``s``.

        Without ``s``: the symmetric interval of the noise, which holds the released number minus any
        statistic within the bounds (``Additive.interval``).
        With ``s``: the quantiles that leave (1 - level)/2 on either side.
        """
        level = proportion(level, "level")
        low, high = super().interval(level)
        if s is None:
            return low, high
        real(s, "s")
        if self.limits.bounding is None:
            centre = float(self.limits.centre(s))
            return centre + low, centre + high
        ends = self.limits.ppf(self.distribution, np.array([(1 - level) / 2, (1 + level) / 2]), s)
        return float(ends[0]), float(ends[1])

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Floats:
        """``values`` plus independent noise, on the grid and within the bounds; same shape, float64.

        Values outside the bounds are clamped into them first. Raises ParameterError where a value
        is not finite (without the value), or where there are several and ``l0_sensitivity`` is needed.
        """
        grid, limits = self.grid, self.limits
        first, last = limits.on_grid(grid)
        units = support.grid_units(values, grid, self.exact, first, last)
        self._check_size(units.size)
        generator = noise.source(rng)
        if limits.bounding == "truncated":
            return add_within(units.ravel(), grid, self, limits.ends, generator).reshape(units.shape)
        noisy = add(units.ravel(), grid, self, generator).reshape(units.shape)
        if limits.bounding is None:
            return noisy
        low, high = (None if step is None else float(step) * float(grid) for step in (first, last))
        return np.asarray(np.clip(noisy, low, high))

    def _check_size(self, size: int) -> None:
        """Refuse also more values than the calibration allows to be rounded."""
        super()._check_size(size)
        if self.exact or not self._leaves_room:
            return
        most = support.ROUNDING_STEPS ** (2 if self.norm == "l2" else 1)
        if size > most and not (self.l0_sensitivity is not None and self.l0_sensitivity <= most):
            raise ParameterError(
                f"Rounding to the grid is accounted for up to {most} values (got {size}).",
                self._without_rounding(),
            )

    def _without_rounding(self) -> str:
        """Return the call for many values: with a grid that they are multiples of, if there may be one."""
        if self.whole_on_grid and (self.sensitivity / self.grid).denominator != 1:
            return f"{self._call('l0_sensitivity=1')} for values that share no record."
        return f"{self._call(f'grid=2**{exponent_below(self.grid)}')} for multiples of this grid."


class Discrete(Additive):
    """Noise of a distribution on the integers, added to integers."""

    integer = True
    grid = Fraction(1)
    exact = True

    def _width(self, grid: Fraction) -> int | None:  # noqa: ARG002
        return None if self.limits.width is None else int(self.limits.width)

    @classmethod
    def _check_counts(cls, part: Part, instead: str) -> None:
        """Refuse a part that does not count records; ``instead``: the mechanism to use for it."""
        if not part.counts:
            raise ParameterError(
                f"mechanism={cls.name!r} is for counts.", f'use mechanism="{instead}" for numbers.'
            )

    def pmf(self, z: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Probability of the noise, or of the number released for ``s``, at integers; zero elsewhere."""
        x = doubles(z, "'z'")
        if self.limits.bounding == "clamp":
            mass = self.cdf(x, s) - self.cdf(x - 1, s)
        else:  # without cancellation
            mass = self.limits.pdf(self.distribution, x, s)
        return np.asarray(np.where(x == np.rint(x), mass, 0.0))

    def ppf(self, q: ArrayLike) -> Floats:
        """Smallest integer that the unbounded noise does not exceed with a probability of at least ``q``."""
        return self.distribution.ppf(check_probabilities(q))

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Integers:
        """Integer ``values`` plus independent noise, within the bounds; same shape, int64."""
        array = reals(values, expected="integers")
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise ParameterError(f"Values must be integers (got dtype {array.dtype}).")
        if array.size and max(abs(int(array.max())), abs(int(array.min()))) >= 2**62:
            raise ParameterError("Values must be integers below 2**62 in size.")
        self._check_size(array.size)
        generator, centers = noise.source(rng), array.astype(np.int64)
        first, last = self.limits.on_grid(self.grid)
        if first is not None or last is not None:
            centers = np.clip(centers, first, last)
        if self.limits.bounding != "truncated":
            noisy = centers + self.draw(centers.size, generator).reshape(centers.shape)
            return np.asarray(noisy if first is last is None else np.clip(noisy, first, last))
        free = np.full(centers.shape, noise.UNBOUNDED, np.int64)
        below = free if first is None else centers - first
        above = free if last is None else last - centers
        return np.asarray(centers + self.draw_within(below, above, generator))


# Whole numbers of a unit plus noise, in releases and in samples alike.


def add(whole: Whole, unit: Fraction, mechanism: Additive, source: Source) -> Floats:
    """Return whole numbers of ``unit`` plus noise, as multiples of the mechanism's grid."""
    assert mechanism.limits.bounding != "truncated", "truncated noise depends on the distances to its bounds"
    steps = mechanism._noise(len(whole), source)
    grid = mechanism.grid
    if isinstance(whole, np.ndarray) and grid <= unit and _largest_size(whole) < EXACT:
        if grid == unit:
            return np.asarray((whole + steps).astype(np.float64) * float(grid))
        # both terms are exact doubles; their sum is rounded once, after the noise
        if _largest_size(steps) < EXACT:
            return np.asarray(whole.astype(np.float64) * float(unit) + steps * float(grid))
    numbers = support.in_steps(whole, unit, grid)
    sums = [float(number + step) for number, step in zip(numbers, steps.tolist(), strict=True)]
    return np.array(sums) * float(grid)


def add_within(
    whole: Whole, unit: Fraction, mechanism: Additive, limits: tuple[Any, Any], source: Source
) -> Floats:
    """Return whole numbers of ``unit`` clamped into ``limits``, plus noise truncated to them.

    ``limits``: a lower and an upper end for all numbers, or one of each for every number.
    """
    grid = mechanism.grid
    if isinstance(whole, np.ndarray) and np.ndim(limits[0]) == np.ndim(limits[1]) == 0:
        quick = _add_within_static(whole, unit, mechanism, limits, source)
        if quick is not None:
            return quick
    numbers = support.in_steps(whole, unit, grid)
    lowest, highest = (
        [step(limit, grid)] * len(numbers)
        if np.ndim(limit) == 0
        else [step(value, grid) for value in np.asarray(limit).tolist()]
        for step, limit in zip((support.first_step, support.last_step), limits, strict=True)
    )
    centers, below, above = [], [], []
    for number, least, most in zip(numbers, lowest, highest, strict=True):
        if least is not None and most is not None:
            most = max(least, most)  # a range narrower than a step is its lower end
        center = number if least is None else max(number, least)
        center = center if most is None else min(center, most)
        centers.append(center)
        below.append(UNBOUNDED if least is None else min(center - least, UNBOUNDED))
        above.append(UNBOUNDED if most is None else min(most - center, UNBOUNDED))
    drawn = mechanism.draw_within(np.array(below, np.int64), np.array(above, np.int64), source)
    sums = [float(center + step) for center, step in zip(centers, drawn.tolist(), strict=True)]
    return np.array(sums) * float(grid)


def _add_within_static(
    whole: Integers, unit: Fraction, mechanism: Additive, limits: tuple[Any, Any], source: Source
) -> Floats | None:
    """Return the same in whole arrays for limits common to all numbers; None where 64 bits are too few."""
    finer = unit / mechanism.grid
    low, high = support.first_step(limits[0], mechanism.grid), support.last_step(limits[1], mechanism.grid)
    reach = max(_largest_size(whole), 1) * math.ceil(finer)  # an empty table is like any other
    if finer.denominator != 1 or max(reach, abs(low or 0), abs(high or 0)) >= support.FURTHEST:
        return None
    if low is not None and high is not None:
        high = max(low, high)
    centers = whole if finer == 1 else whole * int(finer)
    if low is not None or high is not None:
        centers = np.clip(centers, low, high)
    free = np.full(whole.size, UNBOUNDED, np.int64)
    below = free if low is None else centers - low
    above = free if high is None else high - centers
    return np.asarray((centers + mechanism.draw_within(below, above, source)) * float(mechanism.grid))


def _largest_size(numbers: Integers) -> int:
    return max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
