"""Staircase noise: the least absolute error of a single number at a given epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from pdprivacy import noise
from pdprivacy.distributions import Stairs
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import power_below
from pdprivacy.mechanism.additive import Continuous, check_l0
from pdprivacy.mechanism.bounds import Bounds
from pdprivacy.mechanism.grid import GRID_BITS, Integers, check_grid
from pdprivacy.noise import Source
from pdprivacy.privacy import Rational, positive, rational

__all__ = ["Staircase"]

WIDEST = 2**52


@dataclass(frozen=True, init=False)
class Staircase(Continuous):
    """Staircase noise: epsilon-differentially private, for one number.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : by how much the number of two neighbours differs, positive, in its unit.
    grid : a power of two of which all values are multiples and ``sensitivity`` is a whole number,
        at most 2**-20 of the break ``gamma * sensitivity``. By default 2**-20 of that; the value is then
        rounded to it, and the sensitivity grows by a step.
    gamma : where each stair breaks, in (0, 1), as a share of the sensitivity; by default the one of
        least expected absolute error, ``1 / (1 + exp(epsilon / 2))``.
    l0_sensitivity : 1 for several values of which neighbours differ in one only. No other number is taken: a
        shift that is spread over several numbers can cost epsilon in each.

    Attributes
    ----------
    stair, step : width of a stair (the sensitivity) and place of its break, in grid steps.
    scale : the width of a stair, in the unit of the values.

    Raises
    ------
    ParameterError : a parameter out of range, an epsilon so large that the stairs are no longer drawn.

    Notes
    -----
    On the integers the noise z has the level ell(|z|), nondecreasing with ell(a + stair) = ell(a) + 1,
    and P(z) is proportional to exp(-epsilon ell(|z|)). A shift by at most ``stair`` changes |z| by at
    most ``stair``, so the level by at most one: the loss is epsilon exactly.

    References
    ----------
    Geng, Kairouz, Oh, Viswanath (2015), Theorems 4 and 5.

    >>> mechanism = Staircase(epsilon=2, sensitivity=1)
    >>> round(mechanism.gamma, 4), round(mechanism.std, 3)
    (0.2689, 0.654)
    """

    name: ClassVar[str] = "staircase"
    stair: int
    step: int

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        grid: Rational | None = None,
        *,
        gamma: Rational | None = None,
        l0_sensitivity: int | None = None,
    ) -> None:
        eps, sens = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        l0 = check_l0(l0_sensitivity)
        if l0 is not None and l0 > 1:
            raise ParameterError(
                f"Staircase noise is for neighbours that differ in one number (got l0_sensitivity={l0}).",
                "Laplace noise, whose loss adds up to epsilon however a shift is spread.",
            )
        if gamma is None:
            # for a larger epsilon the break would be too small to draw, and is refused below
            share = Fraction(1 / (1 + math.exp(float(eps) / 2 if eps < 1000 else 500.0)))
        else:
            share = rational(gamma, "gamma")
            if not 0 < share < 1:
                raise ParameterError(f"'gamma' must be strictly between 0 and 1 (got {got(gamma)}).")
        if grid is None:
            unit = power_below(share * sens) / (1 << GRID_BITS)
        else:
            unit = check_grid(grid, sens, share * sens)
        stair = math.ceil(sens / unit) + (1 if grid is None else 0)
        if stair > WIDEST or stair > WIDEST * eps:
            raise ParameterError(
                "Staircase noise cannot be drawn: its stairs would be too many grid steps.",
                "'epsilon' between 1e-5 and 40 is always possible at the default gamma.",
            )
        vars(self).update(
            epsilon=eps,
            sensitivity=sens,
            grid=unit,
            exact=grid is not None,
            stair=stair,
            steps=Fraction(stair),
            step=min(max(round(share * stair), 1), stair),
            limits=Bounds(),
            l0_sensitivity=l0,
        )

    @property
    def gamma(self) -> float:
        """Where each stair breaks, as a share of its width."""
        return self.step / self.stair

    @property
    def distribution(self) -> Stairs:
        """The staircase distribution of this width and break."""
        return Stairs(float(self.epsilon), self.scale, self.gamma)

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number only: ``l0_sensitivity`` is not stated."""
        return self.l0_sensitivity is None

    def _check_rounding(self, size: int) -> None:
        """One number l0_sensitivity, so the step of rounding that is allowed is enough for any size."""

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.staircase(self.epsilon, self.stair, self.step, size, source)
