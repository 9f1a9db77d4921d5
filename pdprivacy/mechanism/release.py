"""Calibration to a part of a release: its bounds, its grid, and how far it moves on that grid."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pdprivacy.errors import ParameterError
from pdprivacy.exact import power_below
from pdprivacy.mechanism.grid import GRID_BITS

if TYPE_CHECKING:
    from pdprivacy.request import Request
    from pdprivacy.statistic import Part

__all__ = ["DRAWN_BITS", "INVERTED_BITS", "check_counts", "moved_on_grid", "part_bounds", "release_grid"]
__all__ += ["share_of_loss"]

DRAWN_BITS = 48
"""The bits of a scale in grid steps: it is at most 2**49 of them."""

INVERTED_BITS = 30
"""The number for noise that is drawn by inversion, where double precision decides nearly all draws."""


def share_of_loss(part: Part, request: Request) -> tuple[Fraction, Fraction]:
    """Return epsilon and delta of a part: parts of weight w that cost (w epsilon, w delta) cost all of it."""
    cost = request.each
    return cost.epsilon * part.weight, cost.delta * part.weight


def check_counts(part: Part, name: str, instead: str) -> None:
    """Refuse a part that does not count records; ``instead``: what to use for it."""
    if not part.counts:
        raise ParameterError(f"mechanism={name!r} is for counts.", instead)


def part_bounds(part: Part, request: Request) -> dict[str, Any]:
    """Return what a truncated mechanism is told of its bounds; clamped noise need not know them."""
    if request.bounding is not None and part.limits is None and part.lower is None and part.upper is None:
        raise ParameterError(
            f"Nothing bounds the {part.name}: it can be any number.", "pass bounds=(lower, upper)."
        )
    if request.bounding != "truncated":
        return {}
    width: Fraction | float = math.inf
    # calibrated for one bound, truncated noise keeps its loss within any two; the distance of bounds that
    # are fixed is all that the scale depends on
    if part.limits is None and part.lower is not None and part.upper is not None:
        width = part.upper - part.lower
        if width == 0:
            raise ParameterError(f"The {part.name} can be one number only, which is public.")
    return {"bounds": (0, width), "bounding": "truncated", "l0_sensitivity": part.moves}


def release_grid(unit: Fraction, scale: Fraction, bits: int = DRAWN_BITS) -> Fraction:
    """Return a power of two well below the scale: at most the unit, unless too many steps would be drawn."""
    power = power_below(scale)
    return max(min(unit, power / (1 << GRID_BITS)), power / (1 << bits))


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
