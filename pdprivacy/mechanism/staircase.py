"""Staircase noise: the least absolute error of a single number at a given epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism.bounds import Bounds
from pdprivacy.mechanism.continuous import Continuous, check_moves
from pdprivacy.mechanism.core import GRID_BITS, Floats, Integers, check_grid, power_below
from pdprivacy.noise import Source
from pdprivacy.privacy import Pure, Rational, positive, rational

__all__ = ["Staircase", "Stairs"]

WIDEST = 2**52


@dataclass(frozen=True, slots=True)
class Stairs:
    """The staircase law: stairs of width ``width``, each lower by exp(-epsilon), broken at ``gamma``.

    The density is a exp(-k epsilon) for |x| in [k, k + gamma) widths and a exp(-(k + 1) epsilon)
    for |x| in [k + gamma, k + 1) widths.

    Source: Geng, Kairouz, Oh, Viswanath (2015), "The staircase mechanism in differential
    privacy", equation (8).
    """

    epsilon: float
    width: float
    gamma: float

    @property
    def _ratio(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _whole(self) -> float:
        """The mass of a stair over that of a block of its width and first height."""
        return self.gamma + self._ratio * (1 - self.gamma)

    @property
    def std(self) -> float:
        """Standard deviation: the second moment of each stair, and geometric sums over the stairs."""
        r, g = self._ratio, self.gamma
        left = -math.expm1(-self.epsilon)
        # sums of k^2 r^k and k r^k, times 1 - r
        second, first = r * (1 + r) / left**2, r / left
        inner = self._whole * second + (g * g + r * (1 - g * g)) * first + (g**3 + r * (1 - g**3)) / 3
        return self.width * math.sqrt(inner / self._whole)

    def _place(self, t: Floats) -> tuple[Floats, Floats]:
        """The stair that a distance is on, and the part of the stair's width before it."""
        with np.errstate(invalid="ignore"):
            scaled = t / self.width
            stair = np.floor(scaled)
            return stair, np.where(np.isfinite(scaled), scaled - stair, 0.0)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density at ``x``."""
        stair, part = self._place(np.abs(np.asarray(x, dtype=np.float64)))
        height = -math.expm1(-self.epsilon) / (2 * self.width * self._whole)
        return np.asarray(height * np.exp(-self.epsilon * (stair + (part >= self.gamma))))

    def tail(self, t: ArrayLike) -> Floats:
        """Mass beyond a distance t >= 0 on one side."""
        stair, part = self._place(np.asarray(t, dtype=np.float64))
        r, g = self._ratio, self.gamma
        # what is left of the stair, and the stairs after it: a share r of the whole
        rest = np.maximum(g - part, 0.0) + r * np.minimum(1 - part, 1 - g)
        share = -math.expm1(-self.epsilon) * rest / self._whole + r
        return np.asarray(np.exp(-self.epsilon * stair) * share / 2)

    def reach(self, tail: ArrayLike) -> Floats:
        """The distance beyond which ``tail`` of the mass lies on one side: the inverse of `tail`."""
        mass = 2 * np.asarray(tail, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            depth = -np.log(mass) / self.epsilon
            stair = np.floor(depth)
            gone = -np.expm1((stair - depth) * self.epsilon) / -math.expm1(-self.epsilon) * self._whole
            far = self.gamma + (gone - self.gamma) / self._ratio
            part = np.clip(np.where(gone <= self.gamma, gone, far), 0.0, 1.0)
            return np.asarray(np.where(mass > 0, self.width * (stair + part), np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function."""
        x = np.asarray(x, dtype=np.float64)
        tail = self.tail(np.abs(x))
        return np.asarray(np.where(x < 0, tail, 1 - tail))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile function."""
        q = np.asarray(q, dtype=np.float64)
        t = self.reach(np.minimum(q, 1 - q))
        return np.asarray(np.where(q < 0.5, -t, t) + 0.0)

    def central(self, level: float) -> float:
        """Half the width of the interval around zero that holds ``level`` of the mass."""
        return float(self.reach((1 - level) / 2))


@dataclass(frozen=True, slots=True)
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
    moves : 1 for several values of which neighbours differ in one only. No other number is taken: a
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
    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    exact: bool
    stair: int
    step: int
    limits: Bounds
    moves: int | None

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        grid: Rational | None = None,
        *,
        gamma: Rational | None = None,
        moves: int | None = None,
    ) -> None:
        eps, sens = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        count = check_moves(moves)
        if count is not None and count > 1:
            raise ParameterError(
                f"Staircase noise is for neighbours that differ in one number (got moves={got(moves)}).",
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
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "grid", unit)
        object.__setattr__(self, "exact", grid is not None)
        object.__setattr__(self, "stair", stair)
        object.__setattr__(self, "step", min(max(round(share * stair), 1), stair))
        object.__setattr__(self, "limits", Bounds())
        object.__setattr__(self, "moves", count)

    @property
    def loss(self) -> Pure:
        """What one sample costs."""
        return Pure(self.epsilon)

    @property
    def gamma(self) -> float:
        """Where each stair breaks, as a share of its width."""
        return self.step / self.stair

    @property
    def steps(self) -> Fraction:
        """The width of a stair in grid steps."""
        return Fraction(self.stair)

    @property
    def scale(self) -> float:
        """The width of a stair, in the unit of the values."""
        return float(self.stair * self.grid)

    @property
    def law(self) -> Stairs:  # type: ignore[override]  # what it lacks is for bounded releases only
        """The staircase law of this width and break."""
        return Stairs(float(self.epsilon), self.scale, self.gamma)

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number only: ``moves`` is not stated."""
        return self.moves is None

    def _check_rounding(self, size: int) -> None:
        """One number moves, so the step of rounding that is allowed is enough for any size."""

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.staircase(self.epsilon, self.stair, self.step, size, source)
