"""Maximum likelihood: the Dirichlet prior of the proportions of labels, and the sizes of cells.

An estimate is returned only if it is a maximum; a likelihood that is highest in a limit has no estimate and
raises an error. The estimates are computed from confidential counts and are confidential, too.

Both likelihoods are sums of log(a + j) over j below each count, so they depend on the data only through the
number of cells with each count. As functions of phi = 1/a they are smooth at phi = 0, the law without
overdispersion (multinomial, Poisson). The other parameters have one best value for each phi. The remaining
function of phi alone is searched for all its maxima, which are compared with the limits.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution", sections 3.2, 4.1 and S2. The moment estimates of S2 divide by zero for two labels
and are not used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import flag, one_of, reals
from pdprivacy.errors import ParameterError, got
from pdprivacy.risk.compositions import checked_counts
from pdprivacy.types import Floats, Integers

Tally: TypeAlias = tuple[Integers, Integers]

NODES = 8  # nodes for a run of terms of equal weight, with an error below 1e-15; see _run
SINGLE = 64  # the number of first terms of a sum that are added one by one


def tally_of(counts: Integers) -> Tally:
    """Return the distinct positive counts, ascending, and the number of cells with each count."""
    if counts.max() < 4 * len(counts) + 1024:
        cells = np.bincount(counts)
        cells[0] = 0
        values = np.flatnonzero(cells)
        return values.astype(np.int64), cells[values].astype(np.int64)
    values, cells = np.unique(counts[counts > 0], return_counts=True)
    return values, cells.astype(np.int64)


def moments_of(tally: Tally) -> tuple[int, int]:
    """Return the exact sums of n and of n (n - 1) over the cells."""
    pairs = list(zip(tally[0].tolist(), tally[1].tolist(), strict=True))
    return sum(cells * n for n, cells in pairs), sum(cells * n * (n - 1) for n, cells in pairs)


def _run(first: Integers, lengths: Integers) -> tuple[Floats, Floats]:
    """Return Gauss nodes and weights (R, NODES) for the sum of f(j) over each run of whole numbers j.

    They are exact for polynomials of degree 15, by the discrete Chebyshev polynomials, which are
    orthogonal on equidistant points. Runs are at most half as long as their first number, so sums of
    log(a + j) and similar functions converge by a factor of 98 with each node.
    """
    k = np.arange(1, NODES)
    beside = np.sqrt(k**2 * (lengths[:, np.newaxis].astype(float) ** 2 - k**2) / (4 * (4 * k**2 - 1)))
    jacobi = np.zeros((len(lengths), NODES, NODES))
    jacobi[:, k - 1, k] = jacobi[:, k, k - 1] = beside
    nodes, vectors = np.linalg.eigh(jacobi)
    middle = first + (lengths - 1) / 2
    return middle[:, np.newaxis] + nodes, lengths[:, np.newaxis] * vectors[:, 0, :] ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Points x and weights w, with the sum of w f(x) equal to the sum over cells of f(0) + ... + f(n - 1).

    ``of``: (P,), the column of the table to which each point belongs.
    """

    points: Floats
    weights: Floats
    of: Integers
    columns: int

    @classmethod
    def over(cls, tallies: Sequence[Tally]) -> Steps:
        """Return the steps of columns with at least one record each."""
        points, weights, of = [], [], []
        for column, (values, cells) in enumerate(tallies):
            top = int(values[-1])
            cuts = [*range(min(SINGLE, top))]
            while cuts[-1] < top:
                cuts.append(cuts[-1] + max(1, cuts[-1] // 2))
            edges = np.unique(np.minimum(np.concatenate([values, np.array(cuts)]), top))
            first, lengths = edges[:-1], np.diff(edges)
            below = np.concatenate([[0], np.cumsum(cells)])
            above = below[-1] - below[np.searchsorted(values, first, side="right")]
            short = lengths <= NODES
            number = lengths[short]
            start = np.repeat(first[short], number)
            since = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
            nodes, shares = _run(first[~short], lengths[~short])
            points += [start + since.astype(np.float64), nodes.ravel()]
            weights += [
                np.repeat(above[short], number).astype(np.float64),
                (shares * above[~short, np.newaxis]).ravel(),
            ]
            of.append(np.full(len(start) + nodes.size, column))
        return cls(np.concatenate(points), np.concatenate(weights), np.concatenate(of), len(tallies))

    def sums(self, terms: Floats) -> Floats:
        """Return sums (columns,) of the weighted ``terms``, which hold one term for each point."""
        totals = np.bincount(self.of, weights=self.weights * terms, minlength=self.columns)
        return np.asarray(totals, dtype=np.float64)


def peaks_of(slope: Callable[[float], float], grid: Sequence[float], slopes: Sequence[float]) -> list[float]:
    """Return the peaks: the points where the slope changes sign from positive, between grid points."""
    from scipy.optimize import brentq

    peaks = []
    for left in range(len(grid) - 1):
        if slopes[left] > 0 >= slopes[left + 1]:
            root = brentq(slope, grid[left], grid[left + 1], xtol=1e-300, rtol=1e-15, maxiter=500)
            peaks.append(float(root))
    return peaks


def log_grid(low: float, high: float, per_decade: int) -> list[float]:
    """Return points from ``low`` to ``high``, evenly spaced on a logarithmic scale."""
    steps = math.ceil(per_decade * math.log10(high / low)) + 1
    return [float(value) for value in np.geomspace(low, high, steps)]


LEAST_ALPHA, MOST_ALPHA = 1e-300, 1e15
"""The range of alpha: below it draws underflow, and beyond it a prior is the proportions themselves."""

FLAT = "'alpha' may be given: alpha=\"flat\", or alpha=[...] with one positive number per label."


def _no_alpha(reason: str) -> ParameterError:
    return ParameterError(f"'alpha' has no maximum-likelihood estimate: {reason}.", FLAT)


@dataclass(frozen=True, slots=True, eq=False)
class _LabelLikelihood:
    """The Dirichlet-multinomial likelihood at alpha = p / phi, with the best p for each phi.

    ``start``: p at phi = 0. ``extra``: the number of labels beyond the first in a cell, summed over cells.
    """

    labels: Steps
    sizes: Steps
    start: Floats
    extra: int

    def proportions(self, phi: float) -> Floats:
        """Return the best p (K,), which sums to 1.

        The likelihood is concave in p, and at its maximum G_k(p_k) = 1 / (its derivative in p_k) has the same
        value for all k. Each G_k is concave and increasing, so Newton's method on these equations converges.
        """
        shares = self.start
        for _ in range(200):
            inverse = 1 / (shares[self.labels.of] + self.labels.points * phi)
            first = self.labels.sums(inverse)
            second = self.labels.sums(inverse**2)
            slope = first**2 / second
            offset = first / second - shares
            step = slope * ((1 + offset.sum()) / slope.sum()) - offset - shares
            longest = float((-step / shares).max())
            if longest >= 1:  # keep the shares positive
                step *= 0.9 / longest
            shares = np.asarray(shares + step)
            shares /= shares.sum()
            if abs(step / shares).max() < 1e-9:
                return shares
        raise _no_alpha("the search for it did not converge")

    def slope(self, phi: float) -> float:
        """Return the derivative of the log-likelihood in phi, at the best p."""
        x, y = self.labels.points, self.sizes.points
        shares = self.proportions(phi)[self.labels.of]
        own, whole = 1 / (shares + x * phi), 1 / (1 + y * phi)
        if self.sizes.sums(whole)[0] > self.sizes.sums(1 - whole)[0]:
            return float(self.labels.sums(x * own).sum() - self.sizes.sums(y * whole)[0])
        # The same without the terms that cancel: x phi / (p + x phi) = 1 - p / (p + x phi).
        rest = self.sizes.sums(whole * (y > 0))[0] - self.labels.sums(shares * own * (x > 0)).sum()
        return float(rest - self.extra) / phi

    def value(self, phi: float) -> float:
        """Return the log-likelihood at the best p, up to a constant."""
        shares = self.proportions(phi)[self.labels.of]
        mixed = self.labels.sums(np.log(shares + self.labels.points * phi)).sum()
        return float(mixed - self.sizes.sums(np.log1p(self.sizes.points * phi)).sum())

    def relative_score(self, alpha: Floats) -> float:
        """Return the largest derivative in log alpha, relative to the two terms whose difference it is."""
        total = alpha.sum()
        own = self.labels.sums(alpha[self.labels.of] / (alpha[self.labels.of] + self.labels.points))
        share = alpha / total
        whole = share * self.sizes.sums(total / (total + self.sizes.points)).sum()
        return float((np.abs(own - whole) / own).max())


def dirichlet_alpha(counts: ArrayLike) -> Floats:
    """Return the maximum-likelihood alpha (K,) of Dirichlet-multinomial cells, from counts (N, K).

    The labels of a cell are multinomial given its size, with proportions drawn from a
    Dirichlet(alpha) for each cell. Empty cells add nothing. The best of all maxima is returned,
    to a relative score of 1e-9 or better. A million cells take a second.

    Raises
    ------
    ParameterError : as `Cells.of`, or if the likelihood has no maximum: no cell holds two records (the sum
        of alpha is undetermined), a label has no record (its alpha falls to 0), every cell is homogeneous
        (alpha falls to 0), or the cells differ no more than draws from common proportions do (alpha grows
        without bound). No message holds a count.

    Source: the likelihood of section S2; Minka 2000, "Estimating a Dirichlet distribution".

    >>> dirichlet_alpha([[2, 0], [0, 2], [1, 1]]).round(9)
    array([1., 1.])
    """
    table = checked_counts(counts)
    sizes = table.sum(axis=1)
    if sizes.max() < 2:
        raise _no_alpha("no cell of the table has two records, so how much cells differ is not seen")
    if not table.any(axis=0).all():
        raise _no_alpha("a label of the table has no record")
    extra = int((table > 0).sum()) - int((sizes > 0).sum())
    if not extra:
        raise _no_alpha(
            "every cell of the table is homogeneous, and the likelihood grows as alpha falls to 0"
        )
    tallies = [tally_of(table[:, label]) for label in range(table.shape[1])]
    total = tally_of(sizes)
    records, pairs = moments_of(total)
    moments = [moments_of(tally) for tally in tallies]
    share = np.array([own / records for own, _ in moments])
    model = _LabelLikelihood(Steps.over(tallies), Steps.over([total]), share, extra)

    # At phi = 0 the slope is a rational number.
    slope = sum((Fraction(both * records, own) for own, both in moments), start=Fraction(-pairs))
    # The likelihood is smooth below `low`. The slope is negative from `high`:
    # phi * slope < (sum over j >= 1 of the cells larger than j, divided by j) / phi - extra.
    low = 1e-3 * min(part / float(values[-1]) for part, (values, _) in zip(share, tallies, strict=True))
    inner = model.sizes.points > 0
    high = 1.01 * float((model.sizes.weights[inner] / model.sizes.points[inner]).sum()) / extra
    grid = [0.0, *log_grid(low, high, per_decade=4)]
    slopes = [float(slope / 2), *(model.slope(phi) for phi in grid[1:])]
    peaks = peaks_of(lambda phi: model.slope(phi) if phi else slopes[0], grid, slopes)
    best = max(peaks, key=model.value, default=0.0)
    if slope <= 0 and best:  # the multinomial is a maximum too
        limit = records * float(share @ np.log(share))
        best = best if model.value(best) > limit + 1e-12 * abs(limit) else 0.0
    if not best:
        raise _no_alpha(
            "the cells of the table differ no more than draws from common proportions do, "
            "and the likelihood grows with alpha without end"
        )
    alpha = model.proportions(best) / best
    if not model.relative_score(alpha) < 1e-9:
        raise _no_alpha("the search for it did not converge")
    return alpha


def checked_alpha(alpha: Any, counts: ArrayLike | None, labels: int) -> Floats:
    """Return positive alpha (K,), one per label.

    Parameters
    ----------
    alpha : None for the maximum-likelihood estimate from ``counts`` (N, K); ``"flat"`` for 1 for each
        label; a positive number for each label; or K positive numbers.

    Raises
    ------
    ParameterError : any other alpha, or a wrong number of numbers; and as `dirichlet_alpha`.

    >>> checked_alpha("flat", None, 3)
    array([1., 1., 1.])
    """
    if alpha is None:
        if counts is None:
            raise ParameterError("'alpha' cannot be estimated without counts.", FLAT)
        return dirichlet_alpha(counts)
    if isinstance(alpha, str):
        if alpha != "flat":
            raise ParameterError(
                f"'alpha' must be None, 'flat' or positive numbers (got {got(alpha)}).", FLAT
            )
        return np.ones(labels)
    try:
        array = np.asarray(alpha)
    except ValueError:  # a ragged list
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise ParameterError(f"'alpha' must be None, 'flat' or positive numbers (got {got(alpha)}).", FLAT)
    if array.ndim and len(array) != labels:
        raise ParameterError(f"'alpha' must have one number for each of {labels} labels (got {len(array)}).")
    values = np.full(labels, array, dtype=np.float64)
    wrong = ~((values >= LEAST_ALPHA) & (values <= MOST_ALPHA))
    if wrong.any():
        value = f"{values[wrong][0]:g}"
        raise ParameterError(f"'alpha' must be from {LEAST_ALPHA:g} to {MOST_ALPHA:g} (got {value}).")
    return values


SizeModel: TypeAlias = Literal["observed", "poisson", "negative_binomial"]

DROPPED = 1e-13
"""The largest total probability of the sizes that `size_distribution` leaves out."""
MOST_SIZES = 2**24
"""The largest number of sizes that `size_distribution` lists above the most frequent size."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """A distribution of the size n of a cell over n >= 1.

    Parameters
    ----------
    values : (S,) sizes, ascending and at least 1.
    chances : (S,) their probabilities, which sum to 1 if empty cells are excluded, and otherwise to the
        probability of a non-empty cell.
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
    """Return (z - log(1 + z)) / z**2 for z >= 0."""
    if z > 0.1:
        return (z - math.log1p(z)) / z**2
    return math.fsum((-z) ** k / (k + 2) for k in range(18))


def _excess(y: float) -> float:
    """Return 1 / (1 - exp(-y)) - 1/y for y >= 0."""
    if y > 0.03:
        return -1 / math.expm1(-y) - 1 / y
    return 0.5 + y / 12 - y**3 / 720 + y**5 / 30240


@dataclass(frozen=True, slots=True)
class _SizeDistribution:
    """The negative binomial with mean ``mean`` and r = 1/phi; Poisson at phi = 0; f(0) = exp(-empty)."""

    mean: float
    phi: float

    @property
    def empty(self) -> float:
        return math.log1p(self.mean * self.phi) / self.phi if self.phi else self.mean

    def log_ratio(self, sizes: Floats) -> Floats:
        """Return log(f(n + 1) / f(n))."""
        ratio = 1 + sizes * self.phi  # in place: there may be millions
        ratio *= self.mean / (1 + self.mean * self.phi)
        ratio /= 1 + sizes
        return np.log(ratio, out=ratio)

    def mode(self) -> int:
        """Return the most frequent size of at least 1."""
        return max(1, math.floor(self.mean * (1 - self.phi)))


@dataclass(frozen=True, slots=True, eq=False)
class _SizeLikelihood:
    """The likelihood of the law of sizes in phi, with the best mean for each phi."""

    steps: Steps
    cells: int
    records: int
    pairs: int
    truncated: bool

    def law(self, phi: float) -> _SizeDistribution:
        """Return the best law with this phi, whose mean size is the observed mean."""
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
        """Return the derivative of the log-likelihood in phi, times phi**2 for phi above 1."""
        law, points = self.law(phi), self.steps.points
        if phi <= 1:
            own = self.steps.sums(points / (1 + points * phi))[0]
            return float(own) - self.records * law.mean * _gap(phi * law.mean)
        # Minus the derivative in r; if truncated, without the terms that cancel.
        rest = self.cells * phi * law.empty * (_excess(law.empty) if self.truncated else 1.0)
        above = points > 0 if self.truncated else True
        return rest - float(self.steps.sums(np.where(above, 1 / (points + 1 / phi), 0.0))[0])

    def last_slope(self) -> float:
        """Return the slope in the limit r -> 0, the logarithmic series."""
        if not self.truncated:
            return -math.inf
        points = self.steps.points
        own = self.steps.sums(np.divide(1, points, out=np.zeros_like(points), where=points > 0))[0]
        return self.cells * self.series() / 2 - float(own)

    def series(self) -> float:
        """Return -log(lambda) in the limit r -> 0."""
        from scipy.optimize import brentq
        from scipy.special import exprel

        goal = math.log1p((self.records - self.cells) / self.cells)
        high = goal + 1  # log(exprel(y)) >= y/2 and, from y = 3 on, >= y - log(y)
        while math.log(exprel(high)) < goal:
            high *= 2
        return float(brentq(lambda y: math.log(exprel(y)) - goal, goal, high, xtol=1e-300, rtol=1e-15))

    def value(self, phi: float) -> float:
        """Return the log-likelihood, up to a constant."""
        law = self.law(phi)
        own = float(self.steps.sums(np.log1p(self.steps.points * phi))[0])
        own += self.records * (math.log(law.mean) - math.log1p(phi * law.mean)) - self.cells * law.empty
        return own - (self.cells * math.log(-math.expm1(-law.empty)) if self.truncated else 0.0)

    def last_value(self) -> float:
        """Return the log-likelihood in the limit r -> 0, up to the same constant."""
        rate, points = self.series(), self.steps.points
        own = float(self.steps.sums(np.log(np.where(points > 0, points, 1.0)))[0])
        return own + self.records * math.log(-math.expm1(-rate)) - self.cells * math.log(rate)

    def overdispersed(self) -> _SizeDistribution:
        """Return the best law with phi > 0."""
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
    """Return the sizes of at least 1 and their probabilities, except sizes of total mass `DROPPED`."""
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
            f"The fitted distribution has more than {MOST_SIZES:,} sizes of non-negligible probability.",
            'sizes="observed".',
        )
    return min(2 * reach, MOST_SIZES)


def size_distribution(sizes_of_cells: ArrayLike, model: SizeModel, zero_truncated: bool = True) -> Sizes:
    """Return the distribution of the size of a cell, as observed or by maximum likelihood.

    Parameters
    ----------
    sizes_of_cells : (N,) the number of records of every cell of the table, empty cells included.
    model : ``"observed"``, the relative frequencies; ``"poisson"``, ``lambda**n exp(-lambda) / n!``;
        ``"negative_binomial"``, ``binom(n + r - 1, r - 1) (1 - lambda)**n lambda**r``.
    zero_truncated : whether to return the law given n >= 1, fitted to the non-empty cells. If False, the
        plain law is fitted to all cells, and one minus the sum of its chances is the probability of an
        empty cell.

    Returns
    -------
    Sizes : without the rarest sizes of a fitted law, less than 1e-13 in all; the chances of the
        others are scaled up to the same total.

    Raises
    ------
    ParameterError : an unknown model; sizes that are negative, fractional or all zero; a likelihood
        without a maximum: for a truncated law, non-empty cells that all have one record (lambda falls to
        0, or r is unbounded); for the negative binomial, sizes that vary no more than a Poisson
        distribution, or so much that r falls to 0; a law with more than 2**24 sizes of non-negligible
        probability. No message holds a size.

    Source: the models of section 4.1.

    >>> size_distribution([0, 2, 1, 1], "observed", zero_truncated=False).chances
    array([0.5 , 0.25])
    >>> size_distribution([0, 2, 1, 1], "poisson", zero_truncated=False).parameters
    {'lambda': 1.0}
    """
    one_of(model, "sizes", get_args(SizeModel))
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
    counted = _SizeLikelihood(Steps.over([tally]), cells, *moments_of(tally), zero_truncated)
    law = counted.law(0.0) if model == "poisson" else counted.overdispersed()
    parameters = {"lambda": law.mean}
    if law.phi:
        parameters = {"r": 1 / law.phi, "lambda": 1 / (1 + law.mean * law.phi)}
    return Sizes(*_chances(law, zero_truncated), model, parameters)
