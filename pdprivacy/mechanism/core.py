"""What all mechanisms share: the grid, the checks of their arguments, and adding integers."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy import noise
from pdprivacy.checks import doubles, instance, reals, whole
from pdprivacy.errors import ParameterError, got
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Pure, Rational, rational

__all__ = ["GRID_BITS", "ROUNDING_STEPS", "SAFE", "Mechanism", "power_below"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
F = TypeVar("F", bound=Callable[..., Any])


GRID_BITS = 20
"""A grid is at most 2**-20 of the scale of the noise."""


ROUNDING_STEPS = 2**10
"""Where values are rounded to the grid on the way in, the sensitivity grows by this many steps
(2**-20 of it): enough for 2**10 rounded coordinates in the l1 norm and 2**20 in the l2 norm."""


MOST_DRAWS = 10**8
LEAST_STEPS = Fraction(1, 2**10)
MOST_SCALE_BITS = 963  # 2**963 is about 1e290


@runtime_checkable
class Mechanism(Protocol):
    """What a release needs of its noise."""

    name: ClassVar[str]

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


SAFE = Fraction(1 + 2**-30)
"""Scales found in floating point grow by this factor: it exceeds the rounding of the calibration
and, for the discrete Gaussian, what a grid of 2**-20 sigma adds to the loss of the continuous density."""


def check_level(level: float) -> None:
    """Refuse what is no number strictly between 0 and 1."""
    number = isinstance(level, numbers.Real) and not isinstance(level, bool | np.bool_)
    if not (number and 0 < level < 1):
        raise ParameterError(f"'level' must be strictly between 0 and 1 (got {got(level)}).")


def check_count(size: int) -> int:
    """How many draws are asked for: refuse more than memory holds."""
    return whole(size, "size", 0, MOST_DRAWS)


def check_distances(values: ArrayLike, name: str) -> Integers:
    """Distances to bounds in grid steps: whole numbers, not negative."""
    array = reals(values, name)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.size and (int(array.min()) < 0 or int(array.max()) >= 2**63)):
        raise ParameterError(f"{name} must be whole numbers of grid steps, not negative.")
    return array.astype(np.int64)


def aligned(x: Floats, s: Floats) -> Floats:
    """Refuse places and statistics whose shapes do not fit each other."""
    try:
        np.broadcast_shapes(np.shape(x), np.shape(s))
    except ValueError:
        raise ParameterError("The places and the statistics must have shapes that broadcast.") from None
    return x


def check_source(source: Any) -> Source:
    """Refuse what gives no random bits."""
    return instance(source, Source, "source", "pdprivacy.noise.source().")


def remembered(function: F) -> F:
    """The function of exact numbers, with its answers kept; numbers out of its range are refused.

    Raises ParameterError where an argument has no hash, and where a number has no double.
    """
    kept = functools.lru_cache(maxsize=1024)(function)

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return kept(*args, **options)
        except (TypeError, ArithmeticError) as error:
            if not isinstance(error, ArithmeticError) and not _unhashable((*args, *options.values())):
                raise
        raise ParameterError(f"{function.__name__!r} takes Fractions and whole numbers that doubles hold.")

    return cast("F", called)


def _unhashable(values: tuple[Any, ...]) -> bool:
    try:
        hash(values)
    except TypeError:
        return True
    return False


def check_probabilities(q: ArrayLike) -> Floats:
    """Probabilities as doubles, or ParameterError."""
    probabilities = doubles(q, "'q'")
    if not bool(np.all((probabilities >= 0) & (probabilities <= 1))):
        raise ParameterError("Probabilities must be in [0, 1].")
    return probabilities


def power_below(size: Fraction) -> Fraction:
    """The largest power of two that is at most ``size``."""
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    power: Fraction = Fraction(1 << max(exponent, 0), 1 << max(-exponent, 0))
    if power > size:
        power = Fraction(power.numerator, 2 * power.denominator)
    return power


def smallest(meets: Callable[[float], bool]) -> float:
    """The smallest positive number that meets a monotone condition, from the side that meets it."""
    low, high = 0.0, 1.0
    while not meets(high):
        low, high = high, high * 2
        if math.isinf(high):
            raise OverflowError
    if low == 0.0:
        low = high / 2
        while meets(low):
            low, high = low / 2, low
            if not low:
                raise OverflowError
    while high - low > high * 2.0**-44:
        middle = (low + high) / 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


def rounding_grid(sensitivity: Fraction, scale: Fraction) -> Fraction:
    """The grid to which values are rounded where none is given."""
    return power_below(min(sensitivity, scale)) / ((1 << GRID_BITS) * ROUNDING_STEPS)


def check_size(size: int, most: int) -> None:
    """Refuse more values than the rounding of ``ROUNDING_STEPS`` accounts for."""
    if size > most:
        raise ParameterError(
            f"Rounding to the grid is accounted for up to {most} values (got {size}).",
            "pass grid=, a power of two of which all values are multiples.",
        )


def check_grid(grid: Rational, sensitivity: Fraction | None, scale: Fraction) -> Fraction:
    """A grid that is a power of two, divides the sensitivity, and lies well below the scale."""
    # a float that is a power of two is one exactly, whatever its shortest decimal form
    step = Fraction(grid) if isinstance(grid, float) and math.isfinite(grid) else rational(grid, "grid")
    if step <= 0:
        raise ParameterError(f"'grid' must be positive (got {got(grid)}).")
    if step.numerator & (step.numerator - 1) or step.denominator & (step.denominator - 1):
        raise ParameterError(f"'grid' must be a power of two (got {got(grid)}).")
    if sensitivity is not None and (sensitivity / step).denominator != 1:
        raise ParameterError("'sensitivity' must be a whole number of grid steps.")
    if scale < step * (1 << GRID_BITS):
        raise ParameterError("'grid' must be at most 2**-20 of the scale.")
    return step


def check_drawable(steps: Fraction, grid: Fraction) -> None:
    """Refuse noise that cannot be drawn, or whose scale no double holds, before anything is charged."""
    fits = steps.denominator <= steps.numerator << 10 and steps.numerator <= steps.denominator << 52
    scale = steps.numerator.bit_length() - steps.denominator.bit_length()
    scale += grid.numerator.bit_length() - grid.denominator.bit_length()
    if not fits or abs(scale) > MOST_SCALE_BITS:
        raise ParameterError(
            "The noise cannot be drawn: its scale must be between 1e-290 and 1e290 "
            "and at most 2**52 grid steps.",
            "'epsilon' between 1e-5 and 1e5 is always possible.",
        )


def grid_units(
    values: ArrayLike, grid: Fraction, exact: bool, first: int | None = None, last: int | None = None
) -> Integers:
    """``values`` in grid steps, clamped into [first, last] where these are given; same shape."""
    step = float(grid)
    array = reals(values)
    whole = array.dtype.kind in "iu" and array.size > 0
    if whole and max(abs(int(array.max())), abs(int(array.min()))) > 2**53:
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
    if first is not None or last is not None:
        # as doubles the ends may be off by their rounding, but no double lies between
        rounded = np.clip(
            rounded, None if first is None else float(first), None if last is None else float(last)
        )
    if not bool(np.all(np.abs(rounded) < 2.0**62)):
        raise ParameterError(f"Values must be below 2**62 grid steps of {step}.")
    steps = rounded.astype(np.int64)
    if first is not None or last is not None:
        steps = np.clip(steps, first, last)
    return np.asarray(steps)


def add_integers(values: ArrayLike, draw: Callable[[int, Source], Integers], rng: RandomState) -> Integers:
    """Integer ``values`` plus ``draw``n integers."""
    array = reals(values, wanted="integers")
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"Values must be integers (got dtype {array.dtype}).")
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) >= 2**62:
        raise ParameterError("Values must be integers below 2**62 in size.")
    steps = draw(array.size, noise.source(rng)).reshape(array.shape)
    return np.asarray(array.astype(np.int64) + steps)
