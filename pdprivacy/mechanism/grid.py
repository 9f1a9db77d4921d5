"""The grid of a mechanism: how values are rounded to it, and what that costs.

Noise is a whole number of grid steps and is added to whole numbers of them, exactly, before anything becomes
a double: a double that had been rounded before the noise came would have another sensitivity.

Values that lie on the grid move as far as their sensitivity says. Others are rounded to it on the way in, and
then each number that a record moves lies at most a step further from its neighbour: a vector of which k
numbers move by ``sensitivity`` in all moves by at most ``sensitivity + k * grid`` in the l1 norm, and by at
most ``sensitivity + sqrt(k) * grid`` in the l2 norm. Every mechanism calibrates its noise for that larger
sensitivity. In a release k is what a unit moves (`moved_on_grid`). A mechanism that is used directly takes
the stated k, or leaves room for the `ROUNDING_STEPS` steps of the default grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import reals
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import exponent_below, power_below, power_of_two
from pdprivacy.privacy import Rational, rational

if TYPE_CHECKING:
    from pdprivacy.statistic import Part

__all__ = ["DRAWN_BITS", "GRID_BITS", "INVERTED_BITS", "ROUNDING_STEPS", "check_drawable", "check_grid"]
__all__ += ["first_step", "grid_units", "in_steps", "last_step", "moved_on_grid", "release_grid"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Whole: TypeAlias = "Sequence[int] | NDArray[np.int64]"

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
EXACT = 2**53


def release_grid(unit: Fraction, scale: Fraction, bits: int = DRAWN_BITS) -> Fraction:
    """Return a power of two well below the scale: at most the unit, unless too many steps would be drawn."""
    exponent = exponent_below(scale)
    return power_of_two(max(min(exponent_below(unit), exponent - GRID_BITS), exponent - bits))


def moved_on_grid(part: Part, grid: Fraction, truncated: bool) -> Fraction:
    """Return how far the part moves in the l1 norm on a grid that may be coarser than its unit."""
    moved = part.l1 * part.unit
    if grid <= part.unit:
        return moved
    # rounding moves each number that a record moves by a step
    coarse = (math.floor(moved / grid) + part.moves) * grid
    if truncated and part.moves == 1 and part.lower is not None and part.upper is not None:
        # clamped to the grid within its bounds first, the number moves no further than they are apart
        return min(coarse, max((part.upper - part.lower) // grid, 1) * grid)
    return coarse


def check_grid(grid: Rational, sensitivity: Fraction | None) -> Fraction:
    """Return a grid that is a power of two and divides the sensitivity."""
    # a float that is a power of two is one exactly, whatever its shortest decimal form
    step = Fraction(grid) if isinstance(grid, float) and math.isfinite(grid) else rational(grid, "grid")
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
    if steps > 1 << 52 or abs(scale) > MOST_SCALE_BITS:
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
