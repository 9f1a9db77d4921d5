"""Mechanisms that add noise: what they share, from the checks of arguments to samples and intervals."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.checks import doubles, instance, real, reals, whole
from pdprivacy.distributions import Distribution
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism.bounds import Bounding, Bounds
from pdprivacy.mechanism.grid import (
    ROUNDING_STEPS,
    Floats,
    Integers,
    add,
    add_within,
    check_drawable,
    check_grid,
    check_size,
    grid_units,
    rounding_grid,
)
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Pure, Rational, loss, positive

if TYPE_CHECKING:
    from pdprivacy.request import Request
    from pdprivacy.statistic import Part

__all__ = ["SAFE", "Additive", "Continuous", "Discrete", "Mechanism", "remembered"]

F = TypeVar("F", bound=Callable[..., Any])

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


def check_level(level: float) -> None:
    """Refuse everything but a number strictly between 0 and 1."""
    number = isinstance(level, numbers.Real) and not isinstance(level, bool | np.bool_)
    if not (number and 0 < level < 1):
        raise ParameterError(f"'level' must be strictly between 0 and 1 (got {got(level)}).")


def check_source(source: Any) -> Source:
    """Refuse everything but a source of random bits."""
    return instance(source, Source, "source", "pdprivacy.noise.source().")


def check_probabilities(q: ArrayLike) -> Floats:
    """Return probabilities as doubles; raise ParameterError for other numbers."""
    probabilities = doubles(q, "'q'")
    if not bool(np.all((probabilities >= 0) & (probabilities <= 1))):
        raise ParameterError("Probabilities must be in [0, 1].")
    return probabilities


def whole_sensitivity(sensitivity: Rational) -> Fraction:
    """Return the sensitivity of integers, a positive whole number."""
    number = positive(sensitivity, "sensitivity")
    if number.denominator != 1:
        raise ParameterError(f"'sensitivity' must be a whole number (got {got(sensitivity)}).")
    return number


def check_l0(l0_sensitivity: Any) -> int | None:
    """Return the number of numbers in which neighbours differ, or None where it is not stated."""
    if l0_sensitivity is None:
        return None
    hint = "l0_sensitivity=1 for cells that share no record."
    return whole(l0_sensitivity, "l0_sensitivity", 1, hint=hint)


def finite_width(width: float | Fraction | None) -> float:
    """Return a range as a double, infinity for an open one."""
    return math.inf if width is None or width > LARGEST_WIDTH else float(width)


def remembered(function: F) -> F:
    """Return a function of exact numbers that keeps its answers and refuses numbers out of its range.

    Raises ParameterError where an argument has no hash, and where a number has no double.
    """
    kept = functools.lru_cache(maxsize=1024)(function)

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            hash((args, tuple(options.values())))
        except TypeError:
            pass
        else:
            with contextlib.suppress(ArithmeticError):
                return kept(*args, **options)
        raise ParameterError(f"{function.__name__!r} takes Fractions and whole numbers that doubles hold.")

    return cast("F", called)


@dataclass(frozen=True, init=False)
class Additive:
    """Noise of a `Distribution`, added on a grid and kept within `Bounds`.

    ``limits``: the bounds of what is released, and how they are kept. ``l0_sensitivity``: in how many numbers
    neighbours may differ; None where it is not stated. ``grid``: the step of the noise. ``exact``: whether
    values must lie on the grid; others are rounded to it. ``steps``: the scale of the noise in steps.

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

    epsilon: Fraction
    sensitivity: Fraction
    limits: Bounds
    l0_sensitivity: int | None
    grid: Fraction
    exact: bool
    steps: Fraction

    @property
    def multiplier(self) -> Fraction | None:
        """Sigma per unit of l2 sensitivity, where the loss is that of Gaussian noise; else None."""
        return None

    @property
    def loss(self) -> Pure | Approx:
        """The privacy loss of one sample."""
        return loss(self.epsilon, getattr(self, "delta", 0))

    @property
    def scale(self) -> float:
        """The scale of the noise before any bounding, in the unit of the values."""
        return float(self.steps * self.grid)

    @classmethod
    def takes_delta(cls, p: Rational | None = None) -> bool:  # noqa: ARG003
        """Whether a loss must have a positive delta; else it must have none. ``p``: the order asked for."""
        return "delta" in cls.__dataclass_fields__

    @classmethod
    def limit_scale(cls, part: Part, delta: Fraction, calibration: str | None) -> float:  # noqa: ARG003
        """The scale that the noise for a part approaches as epsilon goes to 0."""
        return math.inf

    @classmethod
    def calibrate(cls, part: Part, request: Request) -> Self:
        """The mechanism for a part of a release, from declared facts alone.

        Raises ParameterError where the mechanism or its bounds do not fit the part.
        """
        raise NotImplementedError

    @classmethod
    def _limits(cls, sensitivity: Fraction, bounds: Any, bounding: Any, l0_sensitivity: int | None) -> Bounds:
        """Return checked bounds of the released number."""
        limits = Bounds.of(bounds, bounding)
        if limits.bounding == "truncated" and not cls.truncatable:
            raise ParameterError(
                f"bounding='truncated' is not offered for {cls.title}: what truncation adds to its loss is "
                "not known.",
                'bounding="clamp", or mechanism="laplace".',
            )
        limits.check_sensitivity(sensitivity, l0_sensitivity)
        return limits

    def _bind(
        self, sensitivity: Fraction, bounds: Any, bounding: Any, l0_sensitivity: Any, **fields: Any
    ) -> None:
        """Set what is stated, checked."""
        l0 = check_l0(l0_sensitivity)
        limits = self._limits(sensitivity, bounds, bounding, l0)
        vars(self).update(fields, sensitivity=sensitivity, limits=limits, l0_sensitivity=l0)

    def with_bounds(self, bounds: Any, bounding: Bounding | None, l0_sensitivity: int) -> Self:
        """Return the same noise with bounds of the released number.

        This is the mechanism itself where there are no bounds, or where its scale depends on them, because it
        then has them from its calibration.
        """
        if bounding is None or (bounding == "truncated" and not self.truncation_is_free):
            return self
        twin = copy.copy(self)
        twin._bind(self.sensitivity, bounds, bounding, l0_sensitivity)
        return twin

    @property
    def distribution(self) -> Distribution:
        """The distribution of the noise before any bounding."""
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of what is released, infinite where a side is open; None without."""
        return None if self.limits.bounding is None else (self.limits.lo, self.limits.hi)

    @property
    def bounding(self) -> Bounding | None:
        """How the bounds are kept: "truncated", "clamp", or None without bounds."""
        return self.limits.bounding

    @property
    def std(self) -> float:
        """Standard deviation of the noise before any bounding.

        No bounding has a larger root mean squared error: see `Bounds.worst_mse`.
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
        check_level(level)
        half = self.distribution.central(level)
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
        (``log_gain``), so a mechanism with one open side is valid for every range.

        Raises
        ------
        ParameterError : a mechanism that is not truncated, or distances of different shapes.
        """
        if self.limits.bounding != "truncated":
            raise ParameterError(
                "Only a truncated mechanism draws within distances.", 'bounding="truncated", or draw().'
            )
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
                "l0_sensitivity=1 for cells that share no record.",
            )


class Continuous(Additive):
    """Noise of a continuous distribution, whose values are rounded to a grid that is given or found."""

    whole_on_grid: ClassVar[bool] = True
    """Whether the sensitivity must be a whole number of steps of a grid that is given."""

    def _settle(
        self, scale: Callable[[Fraction, Fraction | int | None], Fraction], grid: Rational | None
    ) -> None:
        """Set the grid and the scale on it.

        ``scale``: what noise needs for a sensitivity and a range (None for an open one), in one unit.
        """
        plain = scale(self.sensitivity, self.limits.width)
        if grid is None:
            step = self._default_grid(plain)
        else:
            step = check_grid(grid, self.sensitivity if self.whole_on_grid else None, plain)
        vars(self).update(grid=step, exact=grid is not None)
        steps = scale(self.moved_steps, self.limits.steps(step))
        check_drawable(steps, step)
        vars(self).update(steps=steps)

    def _default_grid(self, plain: Fraction) -> Fraction:
        """Return the grid where none is given, for noise of this scale."""
        return rounding_grid(self.sensitivity, plain)

    @property
    def moved_steps(self) -> Fraction:
        """The distance of neighbours in grid steps, rounding included."""
        return self.sensitivity / self.grid + (0 if self.exact else self._rounding_steps())

    def _rounding_steps(self) -> int:
        """Return by how many steps rounding to a default grid may move two neighbours further apart."""
        return (self.l0_sensitivity or 1) if self.bounding == "truncated" else ROUNDING_STEPS

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
        statistic within the bounds (```Additive.interval```).
        With ``s``: the quantiles that leave (1 - level)/2 on either side.
        """
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
        units = grid_units(values, grid, self.exact, first, last)
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
        if not (self.exact or self.takes_one):
            self._check_rounding(size)

    def _check_rounding(self, size: int) -> None:
        if self.limits.bounding != "truncated":
            check_size(min(size, self.l0_sensitivity or size), ROUNDING_STEPS)


class Discrete(Additive):
    """Noise of a distribution on the integers, added to integers."""

    integer = True
    grid = Fraction(1)
    exact = True

    @classmethod
    def _limits(cls, sensitivity: Fraction, bounds: Any, bounding: Any, l0_sensitivity: int | None) -> Bounds:
        return super()._limits(sensitivity, bounds, bounding, l0_sensitivity).whole()

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
        array = reals(values, wanted="integers")
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
