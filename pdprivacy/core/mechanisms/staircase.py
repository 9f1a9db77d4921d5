"""Staircase noise: the least absolute error of a single number at a given epsilon."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pdprivacy.core import noise
from pdprivacy.core.distributions import Stairs
from pdprivacy.core.mechanisms.additive import Continuous
from pdprivacy.core.mechanisms.support import GRID_BITS, Bounding, check_drawable, sensitivity_on_grid
from pdprivacy.core.noise import Source
from pdprivacy.core.noise.choice import WIDEST
from pdprivacy.core.privacy import Rational, positive, rational
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import power_below
from pdprivacy.types import Integers, settle

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part


LEAST_GAMMA = Fraction(1, 2**26)
"""A smaller default break would leave stairs of too many grid steps; any break has the same loss."""

FLAT = Fraction(1000)
"""The largest epsilon of the shape: above it nothing lies beyond the first step in double precision."""


@dataclass(frozen=True)
class Staircase(Continuous):
    """Staircase noise: epsilon-differentially private, for one number.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : the largest difference of the number between neighbours, positive, in its unit.
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number,
        at most 2**-20 of the break ``gamma * sensitivity``. By default 2**-20 of that; the value is then
        rounded to it, and the sensitivity grows by a step.
    gamma : where each stair breaks, in (0, 1), as a share of the sensitivity; by default the one of
        least expected absolute error, ``1 / (1 + exp(epsilon / 2))``, but at least 2**-26.
    bounds, bounding : as for `Laplace`; "clamp" alone is offered, because the loss of truncated staircase
        noise is not known.
    l0_sensitivity : 1 for several values of which neighbours differ in one only. Other numbers are refused: a
        shift that is spread over several numbers can cost epsilon in each.
    exact : as for `Laplace`.

    Attributes
    ----------
    stair, step : width of a stair (the sensitivity) and place of its break, in grid steps.
    scale : the width of a stair, in the unit of the values.

    Raises
    ------
    ParameterError : a parameter out of range, bounding="truncated", a grid or gamma so small that the stairs
        cannot be drawn.

    Notes
    -----
    On the integers the noise z has the level ell(|z|), nondecreasing with ell(a + stair) = ell(a) + 1,
    and P(z) is proportional to exp(-epsilon ell(|z|)). A shift by at most ``stair`` changes |z| by at
    most ``stair``, so the level by at most one: the loss is epsilon exactly, for every gamma. A smaller
    shift loses epsilon, too, so that k numbers that move by ``sensitivity`` in all can lose k epsilon.
    Calibrated for that, staircase noise would be larger than Laplace noise; releases therefore offer it
    where a unit moves one number of a part.

    References
    ----------
    Geng, Kairouz, Oh, Viswanath (2015), Theorems 4 and 5.

    >>> mechanism = Staircase(epsilon=2, sensitivity=1)
    >>> round(mechanism.gamma, 4), round(mechanism.std, 3)
    (0.2689, 0.654)
    """

    name: ClassVar[str] = "staircase"
    title: ClassVar[str] = "staircase noise"
    truncatable: ClassVar[bool] = False
    gamma: float

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        grid: Rational | None = None,
        *,
        gamma: Rational | None = None,
        bounds: Any = None,
        bounding: Bounding | None = None,
        l0_sensitivity: int | None = None,
        exact: bool | None = None,
    ) -> None:
        share = _least_error(positive(epsilon, "epsilon")) if gamma is None else rational(gamma, "gamma")
        if not 0 < share < 1:
            raise ParameterError(f"'gamma' must be strictly between 0 and 1 (got {got(gamma)}).")
        self._set(epsilon, sensitivity, bounds, bounding, l0_sensitivity, gamma=share)
        self._set_grid(grid, exact)
        if (self.l0_sensitivity or 1) > 1:
            raise ParameterError(
                "Staircase noise is for neighbours that differ in one number "
                f"(got l0_sensitivity={got(l0_sensitivity)}).",
                "Laplace noise, whose loss adds up to epsilon however a shift is spread.",
            )
        check_drawable(Fraction(self.step), self.grid)
        settle(self, gamma=self.step / self.stair)  # as drawn, in whole steps of the grid

    def _default_grid(self) -> Fraction:
        return power_below(Fraction(self.gamma) * self.sensitivity) / (1 << GRID_BITS)

    @property
    def _leaves_room(self) -> bool:
        return False  # one number moves

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:  # noqa: ARG002
        stair = math.ceil(moved)
        if stair > WIDEST or stair > WIDEST * self.epsilon:
            raise ParameterError(
                "Staircase noise cannot be drawn: its stairs would be too many grid steps.",
                "'epsilon' from 1e-5 on is always possible at the default gamma.",
            )
        return Fraction(stair)

    @property
    def stair(self) -> int:
        """The width of a stair in grid steps."""
        return int(self.steps)

    @functools.cached_property
    def step(self) -> int:
        """The place of the break of a stair, in grid steps."""
        return min(max(round(rational(self.gamma, "gamma") * self.stair), 1), self.stair)

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """Staircase noise for a part of a release of which a unit moves one number."""
        if part.l0 > 1:
            raise ParameterError(
                f"mechanism='staircase' is for one changed number, and a unit can change {part.l0} of "
                f"the {part.name}.",
                'mechanism="laplace", whose loss adds up to epsilon however a change is spread.',
            )
        epsilon, moved = request.each.epsilon * part.weight, part.l1 * part.unit
        share = _least_error(epsilon)
        fine = power_below(share * moved) / (1 << GRID_BITS)
        # at most 2**51 steps a stair, and a stair over epsilon
        drawable = power_below(moved / min(epsilon, Fraction(1))) / 2**50
        grid = max(min(part.unit, fine), drawable)
        moved = sensitivity_on_grid(part, grid, truncated=False)
        return cls._for_part(part, request, epsilon=epsilon, sensitivity=moved, grid=grid)

    @functools.cached_property
    def distribution(self) -> Stairs:
        """The staircase distribution of this width and break."""
        return Stairs(float(min(self.epsilon, FLAT)), self.scale, self.gamma)

    @property
    def shape(self) -> list[float]:
        """Epsilon and the place of the break, as a share of a stair."""
        return [self.distribution.epsilon, self.distribution.gamma]

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number only: ``l0_sensitivity`` is not stated."""
        return self.l0_sensitivity is None

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.staircase(self.epsilon, self.stair, self.step, size, source)


def _least_error(epsilon: Fraction) -> Fraction:
    """Return the break of least expected absolute error (Theorem 5), not below `LEAST_GAMMA`."""
    return max(Fraction(1 / (1 + math.exp(float(min(epsilon, FLAT)) / 2))), LEAST_GAMMA)
