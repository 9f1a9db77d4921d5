"""Distributions of the sizes of cells: as observed, or Poisson or negative binomial by maximum likelihood.

An estimate is returned only if it is a maximum; a likelihood that is highest in a limit has no estimate,
and that is an error. The estimates are computed from confidential counts and are confidential too.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution", sections 3.2 and 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import flag, reals
from pdprivacy.errors import ParameterError, check_one_of
from pdprivacy.risk.likelihood import Steps, log_grid, moments_of, peaks_of, tally_of

__all__ = ["SizeModel", "Sizes", "size_distribution"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
SizeModel: TypeAlias = Literal["observed", "poisson", "negative_binomial"]

DROPPED = 1e-13
"""The largest total chance of the sizes that `size_distribution` leaves out."""
MOST_SIZES = 2**24
"""The most sizes that `size_distribution` lists above the most frequent one."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """A distribution of the size n of a cell over n >= 1.

    Parameters
    ----------
    values : (S,) sizes, ascending and at least 1.
    chances : (S,) their probabilities. They sum to 1 if empty cells are excluded, and else to the
        probability of a cell that is not empty.
    model : ``"observed"``, ``"poisson"`` or ``"negative_binomial"``.
    parameters : estimates by name: ``lambda``, and ``r`` of the negative binomial.

    >>> Sizes(np.array([1, 3]), np.array([0.5, 0.5]), "observed", {}).values
    array([1, 3])
    """

    values: Integers
    chances: Floats
    model: SizeModel
    parameters: dict[str, float]


def _gap(z: float) -> float:
    """(z - log(1 + z)) / z**2 for z >= 0."""
    if z > 0.1:
        return (z - math.log1p(z)) / z**2
    return math.fsum((-z) ** k / (k + 2) for k in range(18))


def _excess(y: float) -> float:
    """1 / (1 - exp(-y)) - 1/y for y >= 0."""
    if y > 0.03:
        return -1 / math.expm1(-y) - 1 / y
    return 0.5 + y / 12 - y**3 / 720 + y**5 / 30240


@dataclass(frozen=True, slots=True)
class _SizeDistribution:
    """Negative binomial with mean ``mean`` and r = 1/phi; Poisson at phi = 0; f(0) = exp(-empty)."""

    mean: float
    phi: float

    @property
    def empty(self) -> float:
        return math.log1p(self.mean * self.phi) / self.phi if self.phi else self.mean

    def log_ratio(self, sizes: Floats) -> Floats:
        """log(f(n + 1) / f(n))."""
        ratio = 1 + sizes * self.phi  # in place: there may be millions
        ratio *= self.mean / (1 + self.mean * self.phi)
        ratio /= 1 + sizes
        return np.log(ratio, out=ratio)

    def mode(self) -> int:
        """The most frequent size of at least 1."""
        return max(1, math.floor(self.mean * (1 - self.phi)))


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """The likelihood of the law of sizes in phi, with the best mean for each phi."""

    steps: Steps
    cells: int
    records: int
    pairs: int
    truncated: bool

    def law(self, phi: float) -> _SizeDistribution:
        """The best law with this phi: its mean size is the observed one."""
        if not self.truncated:
            return _SizeDistribution(self.records / self.cells, phi)
        from scipy.optimize import brentq
        from scipy.special import exprel

        goal = math.log1p((self.records - self.cells) / self.cells)

        def off(empty: float) -> float:
            return math.log(exprel(phi * empty)) - math.log(exprel(-empty)) - goal

        mean = self.records / self.cells
        low, high = goal / (1 + phi), _SizeDistribution(mean, phi).empty
        root = float(brentq(off, low * (1 - 1e-9), high * (1 + 1e-9), xtol=1e-300, rtol=1e-15, maxiter=500))
        return _SizeDistribution(root * float(exprel(phi * root)), phi)

    def slope(self, phi: float) -> float:
        """The derivative of the log-likelihood in phi; above 1, phi**2 times that."""
        law, points = self.law(phi), self.steps.points
        if phi <= 1:
            own = self.steps.sums(points / (1 + points * phi))[0]
            return float(own) - self.records * law.mean * _gap(phi * law.mean)
        # Minus the derivative in r; if truncated, what cancels is left out.
        rest = self.cells * phi * law.empty * (_excess(law.empty) if self.truncated else 1.0)
        above = points > 0 if self.truncated else True
        return rest - float(self.steps.sums(np.where(above, 1 / (points + 1 / phi), 0.0))[0])

    def last_slope(self) -> float:
        """The slope in the limit r -> 0, the logarithmic series."""
        if not self.truncated:
            return -math.inf
        points = self.steps.points
        own = self.steps.sums(np.divide(1, points, out=np.zeros_like(points), where=points > 0))[0]
        return self.cells * self.series() / 2 - float(own)

    def series(self) -> float:
        """-log(lambda) in the limit r -> 0."""
        from scipy.optimize import brentq
        from scipy.special import exprel

        goal = math.log1p((self.records - self.cells) / self.cells)
        high = goal + 1  # log(exprel(y)) >= y/2 and, from y = 3 on, >= y - log(y)
        while math.log(exprel(high)) < goal:
            high *= 2
        return float(brentq(lambda y: math.log(exprel(y)) - goal, goal, high, xtol=1e-300, rtol=1e-15))

    def value(self, phi: float) -> float:
        """The log-likelihood but for a constant."""
        law = self.law(phi)
        own = float(self.steps.sums(np.log1p(self.steps.points * phi))[0])
        own += self.records * (math.log(law.mean) - math.log1p(phi * law.mean)) - self.cells * law.empty
        return own - (self.cells * math.log(-math.expm1(-law.empty)) if self.truncated else 0.0)

    def last_value(self) -> float:
        """The log-likelihood in the limit r -> 0, but for the same constant."""
        rate, points = self.series(), self.steps.points
        own = float(self.steps.sums(np.log(np.where(points > 0, points, 1.0)))[0])
        return own + self.records * math.log(-math.expm1(-rate)) - self.cells * math.log(rate)

    def overdispersed(self) -> _SizeDistribution:
        """The best law with phi > 0."""
        first = self.pairs - self.records * self.law(0.0).mean
        if not self.truncated:  # exactly
            first = float(Fraction(self.pairs * self.cells - self.records**2, self.cells))
        grid = [0.0, *log_grid(1e-4 / float(self.steps.points[-1] + 1), 1e12, per_decade=3)]
        slopes = [first / 2, *(self.slope(phi) for phi in grid[1:])]
        peaks = peaks_of(lambda phi: self.slope(phi) if phi else slopes[0], grid, slopes)
        best = max(peaks, key=self.value, default=math.nan)
        value = self.value(best) if peaks else -math.inf
        margin = 1e-12 * abs(value) if peaks else 0.0
        poisson = self.value(0.0) if first <= 0 else -math.inf
        series = self.last_value() if slopes[-1] > 0 or self.last_slope() >= 0 else -math.inf
        if value > max(poisson, series) + margin:
            return self.law(best)
        if poisson >= series:
            raise ParameterError(
                "The negative binomial has no maximum-likelihood estimate: the sizes of cells vary no more "
                "than those of a Poisson distribution, which fits at least as well.",
                'sizes="poisson".',
            )
        raise ParameterError(
            "The negative binomial has no maximum-likelihood estimate: given n >= 1, the likelihood grows "
            "as r falls to 0.",
            'sizes="observed", or zero_truncated=False.',
        )


def _chances(law: _SizeDistribution, truncated: bool) -> tuple[Integers, Floats]:
    """The sizes of at least 1 and their probabilities, less `DROPPED`."""
    mode, reach = law.mode(), 64
    limit = 1 / (1 + law.mean * law.phi)
    while True:  # upwards; the ratios of neighbours move towards 1 - limit
        logs = law.log_ratio(np.arange(mode, mode + reach, dtype=np.float64))
        np.cumsum(logs, out=logs)
        fall = -math.expm1(float(law.log_ratio(np.array([mode + reach], dtype=np.float64))[0]))
        if logs[-1] - math.log(min(fall, limit)) < math.log(DROPPED / 100):
            break
        reach = _further(reach)
    reach = 64
    while True:  # downwards; below a mode that is not 1 the ratios fall
        last = max(1, mode - reach)
        down = -np.cumsum(law.log_ratio(np.arange(mode - 1, last - 1, -1, dtype=np.float64)))
        if last == 1:
            break
        fall = -math.expm1(-float(law.log_ratio(np.array([last - 1.0]))[0]))
        if down[-1] - math.log(fall) < math.log(DROPPED / 100):
            break
        reach = _further(reach)
    weights = np.concatenate([down[::-1], [0.0], logs])
    np.exp(weights, out=weights)
    weights /= weights.sum()
    start = int(np.searchsorted(np.cumsum(weights), DROPPED / 4))
    stop = len(weights) - int(np.searchsorted(np.cumsum(weights[::-1]), DROPPED / 4))
    kept = weights[start:stop]
    total = 1.0 if truncated else -math.expm1(-law.empty)
    return np.arange(last + start, last + stop, dtype=np.int64), kept * (total / kept.sum())


def _further(reach: int) -> int:
    if reach >= MOST_SIZES:
        raise ParameterError(
            f"The fitted distribution of sizes has more than {MOST_SIZES:,} sizes of some probability.",
            'sizes="observed".',
        )
    return min(2 * reach, MOST_SIZES)


def size_distribution(sizes_of_cells: ArrayLike, model: SizeModel, zero_truncated: bool = True) -> Sizes:
    """The distribution of the size of a cell, as observed or by maximum likelihood.

    Parameters
    ----------
    sizes_of_cells : (N,) records of every cell of the table, empty cells included.
    model : ``"observed"``, the relative frequencies; ``"poisson"``, ``lambda**n exp(-lambda) / n!``;
        ``"negative_binomial"``, ``binom(n + r - 1, r - 1) (1 - lambda)**n lambda**r``.
    zero_truncated : the law given n >= 1, fitted to the cells that are not empty. Otherwise the
        plain law, fitted to all cells; what the chances lack of 1 is the chance of an empty cell.

    Returns
    -------
    Sizes : without the rarest sizes of a fitted law, less than 1e-13 in all; the chances of the
        others are scaled up to the same total.

    Raises
    ------
    ParameterError : an unknown model; sizes that are not whole numbers, none negative and not all
        zero; a likelihood without a maximum: non-empty cells that all have one record, for a
        truncated law (lambda falls to 0, or r without bounds); sizes that vary no more than a
        Poisson distribution, or so much that r falls to 0, for the negative binomial; a law with
        more than 2**24 sizes of some probability. No message holds a size.

    Source: the models of section 4.1.

    >>> size_distribution([0, 2, 1, 1], "observed", zero_truncated=False).chances
    array([0.5 , 0.25])
    >>> size_distribution([0, 2, 1, 1], "poisson", zero_truncated=False).parameters
    {'lambda': 1.0}
    """
    check_one_of("sizes", model, get_args(SizeModel))
    sizes = reals(sizes_of_cells, "'sizes_of_cells'", "an array of whole numbers, one per cell")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf":
        raise ParameterError("'sizes_of_cells' must be an array of whole numbers, one per cell.")
    if not (np.isfinite(sizes).all() and (sizes == np.floor(sizes)).all() and (sizes >= 0).all()):
        raise ParameterError("'sizes_of_cells' must be whole numbers, none negative.")
    if not sizes.any():
        raise ParameterError("'sizes_of_cells' must hold at least one record.")
    tally = tally_of(sizes.astype(np.int64))
    values, times = tally
    cells = int(times.sum()) if flag(zero_truncated, "zero_truncated") else len(sizes)
    if model == "observed":
        return Sizes(values, times / cells, model, {})
    if zero_truncated and values[-1] == 1:
        raise ParameterError(
            "The distribution of sizes has no maximum-likelihood estimate: given n >= 1, every cell has "
            "one record, and the mean falls to 0.",
            'sizes="observed", or zero_truncated=False.',
        )
    counted = _Counted(Steps.over([tally]), cells, *moments_of(tally), zero_truncated)
    law = counted.law(0.0) if model == "poisson" else counted.overdispersed()
    found = {"lambda": law.mean}
    if law.phi:
        found = {"r": 1 / law.phi, "lambda": 1 / (1 + law.mean * law.phi)}
    return Sizes(*_chances(law, zero_truncated), model, found)
