"""What the mechanisms of a continuous law share: distribution, error, intervals and samples."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.checks import real, whole
from pdprivacy.errors import ParameterError
from pdprivacy.mechanism.bounds import Bounds, Limited
from pdprivacy.mechanism.core import (
    ROUNDING_STEPS,
    Floats,
    check_level,
    check_probabilities,
    check_size,
    grid_units,
)
from pdprivacy.mechanism.law import Law
from pdprivacy.noise import RandomState

__all__ = ["Continuous", "allowance", "check_moves", "check_one", "infinite", "rounded_up"]

UP = Context(prec=10, rounding=ROUND_CEILING, Emin=-(10**6), Emax=10**6)


def rounded_up(number: Fraction) -> Fraction:
    """A positive number rounded up to ten significant digits."""
    return Fraction(UP.divide(Decimal(number.numerator), Decimal(number.denominator)))


def check_moves(moves: Any) -> int | None:
    """The number of numbers in which neighbours differ, or None where it is not stated."""
    if moves is None:
        return None
    return whole(moves, "moves", 1, hint="moves=1 for cells that share no record.")


def check_one(size: int, name: str) -> None:
    """Refuse several values where it is not stated how many of them a record moves."""
    if size > 1:
        raise ParameterError(
            f"This {name} mechanism takes one number: its loss depends on how many numbers a record "
            f"moves, and 'moves' does not say (got {size} values).",
            "moves=1 for cells that share no record.",
        )


class Continuous(Limited):
    """Methods of a mechanism with a `Law` and `Bounds`; the mechanisms hold the fields.

    Without ``bounding`` the distribution is that of the noise, shifted to ``s`` where one is given.
    With it, it is that of the released number for the statistic ``s``, which is needed then.
    """

    __slots__ = ()

    moves: int | None
    grid: Fraction
    exact: bool

    @property
    def law(self) -> Law:
        """The law of the noise before any bounding."""
        raise NotImplementedError

    @property
    def std(self) -> float:
        """Standard deviation of the noise before any bounding.

        No bounding has a larger root mean squared error: see `Bounds.worst_mse`.
        """
        return self.law.std

    def pdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Density of the noise, or of the number released for the statistic ``s``.

        The probabilities with which "bit" releases exactly a bound are no part of a density:
        they are ``cdf(lower, s)`` and ``1 - cdf(x, s)`` for x just below ``upper``.
        """
        return self.limits.pdf(self.law, x, s)

    def cdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Distribution function of the noise, or of the number released for ``s``; right-continuous."""
        return self.limits.cdf(self.law, x, s)

    def ppf(self, q: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Quantile function of the noise, or of the number released for ``s``."""
        return self.limits.ppf(self.law, check_probabilities(q), s)

    def interval(self, level: float = 0.95, s: float | None = None) -> tuple[float, float]:
        """The central interval that holds the noise, or the number released for ``s``.

        Without ``s``: the symmetric interval of the noise before any bounding. It holds the
        released number minus the statistic with at least ``level`` for every statistic within the
        bounds. Truncated: with G(t) the mass within [0, t] and h the half width, the share is a
        mediant of min(1, G(h)/G(u)) and min(1, G(h)/G(v)), which are at least 2 G(h), since G <= 1/2.
        Clamped: clamping moves no number further from a statistic within the bounds.
        With ``s``: the quantiles that leave (1 - level)/2 on either side.
        """
        check_level(level)
        if s is None:
            half = self.law.central(level)
            return -half, half
        real(s, "s")
        if self.limits.bounding is None:
            half, centre = self.law.central(level), float(self.limits.centre(s))
            return centre - half, centre + half
        low, high = self.limits.ppf(self.law, np.array([(1 - level) / 2, (1 + level) / 2]), s)
        return float(low), float(high)

    def bias(self, s: ArrayLike) -> Floats:
        """Mean of the released number minus the statistic ``s``; zero without bounds.

        Source: Liu (2019), equations (6), (7), (9) and (10), for any order of the law.
        """
        return self.limits.bias(self.law, s)

    def mse(self, s: ArrayLike) -> Floats:
        """Mean squared error of the released number for the statistic ``s``.

        Never above ``std**2``. For the truncated law, Liu (2019), Appendix B, prints another
        expression, which is not the mean squared error; for "bit" the two agree.
        """
        return self.limits.mse(self.law, s)

    def worst_case_bias(self) -> float:
        """The largest absolute bias over all statistics within the bounds."""
        return self.limits.worst_bias(self.law)

    def worst_case_mse(self) -> float:
        """The largest mean squared error over all statistics within the bounds."""
        return self.limits.worst_mse(self.law)

    # Samples.

    @property
    def takes_one(self) -> bool:
        """Whether `sample` takes one number only: the loss depends on ``moves``, which is not stated."""
        return self.limits.bounding == "truncated" and self.moves is None

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Floats:
        """``values`` plus independent noise, on the grid and within the bounds; same shape, float64.

        Values outside the bounds are clamped into them first. Raises ParameterError where a value
        is not finite (without the value), or where there are several and ``moves`` is needed.
        """
        units = grid_units(values, self.grid, self.exact, *self._ends())
        if self.takes_one:
            check_one(units.size, self.limits.bounding or "")
        elif not self.exact:
            self._check_rounding(units.size)
        generator = noise.source(rng)
        flat = units.ravel()
        first, last = self._ends()
        if self.limits.bounding == "truncated":
            below, above = (np.full(flat.shape, noise.UNBOUNDED) for _ in range(2))
            if first is not None:
                below = flat - first
            if last is not None:
                above = last - flat
            total = flat + self._noise_within(below, above, generator)
        else:
            total = flat + self._noise(flat.size, generator)
            if self.limits.bounding is not None:
                total = np.clip(total, first, last)
        # The sum is an integer, and so a multiple of the grid also where the conversion to a
        # double rounds it; rounding is monotone, so it stays within the bounds as well.
        return np.asarray((total.astype(np.float64) * float(self.grid)).reshape(units.shape))

    def _ends(self) -> tuple[int | None, int | None]:
        return self.limits.on_grid(self.grid)

    def _check_rounding(self, size: int) -> None:
        """Refuse more values than the calibration allows to be rounded."""
        if self.limits.bounding != "truncated":
            check_size(min(size, self.moves or size), ROUNDING_STEPS)


def allowance(limits: Bounds, moves: int | None) -> int:
    """By how many steps rounding may move two neighbours further apart on a default grid."""
    return (moves or 1) if limits.bounding == "truncated" else ROUNDING_STEPS


def infinite(width: float | Fraction | None) -> float:
    """A range as a double, infinity for an open one."""
    return math.inf if width is None or width > 2**1000 else float(width)
