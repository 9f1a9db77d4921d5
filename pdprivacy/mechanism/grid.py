"""The grid of a mechanism: how values are rounded to it, what that costs, and how noise is added on it.

Noise is a whole number of grid steps and is added to whole numbers of them, exactly, before anything becomes
a double: a double that had been rounded before the noise came would have another sensitivity.

Values that lie on the grid move as far as their sensitivity says. Others are rounded to it on the way in, and
then each number that a record moves lies at most a step further from its neighbour: a vector of which k
numbers move by ``sensitivity`` in all moves by at most ``sensitivity + k * grid`` in the l1 norm, and by at
most ``sensitivity + sqrt(k) * grid`` in the l2 norm. Every mechanism calibrates its noise for that larger
sensitivity: for a stated k, or for the `ROUNDING_STEPS` steps that the default grid leaves room for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import reals
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import power_below
from pdprivacy.noise import UNBOUNDED, Source
from pdprivacy.privacy import Rational, rational

if TYPE_CHECKING:
    from pdprivacy.mechanism.additive import Additive

__all__ = ["GRID_BITS", "ROUNDING_STEPS", "add", "add_within", "check_drawable", "check_grid", "check_size"]
__all__ += ["first_step", "grid_units", "in_steps", "last_step", "rounding_grid"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Whole: TypeAlias = "Sequence[int] | NDArray[np.int64]"

GRID_BITS = 20
"""A grid is at most 2**-20 of the scale of the noise."""

ROUNDING_STEPS = 2**10
"""The number of steps by which the sensitivity grows on a default grid (2**-20 of it): enough for 2**10
rounded coordinates in the l1 norm and 2**20 in the l2 norm."""

LEAST_STEPS = Fraction(1, 2**10)
MOST_SCALE_BITS = 963  # 2**963 is about 1e290
EXACT = 2**53


def rounding_grid(sensitivity: Fraction, scale: Fraction) -> Fraction:
    """Return the grid to which values are rounded where none is given."""
    return power_below(min(sensitivity, scale)) / ((1 << GRID_BITS) * ROUNDING_STEPS)


def check_size(size: int, most: int) -> None:
    """Refuse more values than the rounding of ``ROUNDING_STEPS`` accounts for."""
    if size > most:
        raise ParameterError(
            f"Rounding to the grid is accounted for up to {most} values (got {size}).",
            "pass grid=, a power of two of which all values are multiples.",
        )


def check_grid(grid: Rational, sensitivity: Fraction | None, scale: Fraction) -> Fraction:
    """Return a grid that is a power of two, divides the sensitivity, and lies well below the scale."""
    # a float that is a power of two is one exactly, whatever its shortest decimal form
    step = Fraction(grid) if isinstance(grid, float) and math.isfinite(grid) else rational(grid, "grid")
    if step <= 0:
        raise ParameterError(f"'grid' must be positive (got {got(grid)}).")
    if power_below(step) != step:
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


# Whole numbers of a unit plus noise, in releases and in samples alike.


def add(whole: Whole, unit: Fraction, mechanism: Additive, source: Source) -> Floats:
    """Return whole numbers of ``unit`` plus noise, as multiples of the mechanism's grid."""
    steps = mechanism.draw(len(whole), source)
    grid = mechanism.grid
    if isinstance(whole, np.ndarray) and grid <= unit and _largest_size(whole) < EXACT:
        if grid == unit:
            return np.asarray((whole + steps).astype(np.float64) * float(grid))
        # both terms are exact doubles; their sum is rounded once, after the noise
        if _largest_size(steps) < EXACT:
            return np.asarray(whole.astype(np.float64) * float(unit) + steps * float(grid))
    sums = [number + step for number, step in zip(in_steps(whole, unit, grid), steps.tolist(), strict=True)]
    return np.array([float(total) for total in sums]) * float(grid)


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
    numbers = in_steps(whole, unit, grid)
    lowest, highest = (
        [step(limit, grid)] * len(numbers)
        if np.ndim(limit) == 0
        else [step(one, grid) for one in np.asarray(limit).tolist()]
        for step, limit in zip((first_step, last_step), limits, strict=True)
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
    sums = [center + step for center, step in zip(centers, drawn.tolist(), strict=True)]
    return np.array([float(total) for total in sums]) * float(grid)


def _add_within_static(
    whole: Integers, unit: Fraction, mechanism: Additive, limits: tuple[Any, Any], source: Source
) -> Floats | None:
    """Return the same in whole arrays for limits common to all numbers; None where 64 bits are too few."""
    finer = unit / mechanism.grid
    low, high = first_step(limits[0], mechanism.grid), last_step(limits[1], mechanism.grid)
    reach = max(_largest_size(whole), 1) * math.ceil(finer)  # an empty table is like any other
    if finer.denominator != 1 or max(reach, abs(low or 0), abs(high or 0)) >= 2**61:
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


def in_steps(whole: Whole, unit: Fraction, grid: Fraction) -> list[int]:
    """Return whole numbers of ``unit`` in steps of the grid, rounded half up where it is coarser."""
    numbers: Sequence[int] = whole.tolist() if isinstance(whole, np.ndarray) else whole
    if grid > unit:
        coarser = int(grid / unit)
        return [(number + coarser // 2) // coarser for number in numbers]
    finer = int(unit / grid)
    return [number * finer for number in numbers]


def first_step(limit: float | Fraction, grid: Fraction) -> int | None:
    """Return the first grid step at or above a limit; None where there is no limit."""
    return math.ceil(Fraction(limit) / grid) if math.isfinite(limit) else None


def last_step(limit: float | Fraction, grid: Fraction) -> int | None:
    """Return the last grid step at or below a limit; None where there is no limit."""
    return math.floor(Fraction(limit) / grid) if math.isfinite(limit) else None
