"""Confidence intervals of numbers that are computed from several noisy numbers.

Each interval inverts a test. For the true value of a ratio, ``sum - ratio * count`` is noise alone, whose
law is known: the interval holds every ratio that the noisy numbers do not contradict. It has its stated
coverage for counts of any size, and is as wide as the declared range where noise hides the count.

Sources: Fieller (1954), "Some problems in interval estimation", for ratios; Berger, Boos (1994), "P values
maximized over a confidence set for the nuisance parameter", for the means in a variance; Cornish, Fisher
(1938), "Moments and cumulants in the specification of distributions", for sums of bounded noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.core.distributions import Distribution, GeneralizedNormal
from pdprivacy.core.mechanisms import Bounding
from pdprivacy.types import Floats

Ends: TypeAlias = "tuple[Any, Any]"

NUISANCE = 0.1
"""The share of the error probability for the means on which a variance depends."""

MOST_STEPS = 60

CLOSE = 1e-7
"""The precision of an end of an interval, relative to its distance from the number."""


NEAR, FEW, CAUTION = (0.8, 0.95), (2, 3, 4, 6, 8), 1.0001
"""Levels at which a sum of a few noises may be wider, their numbers, and a factor for all other numbers."""

CELLS, CELL = 1500, 0.01
"""The grid for sums of a few noises: cells on either side, and their width in standard deviations."""

NO_NOISE = 1e-20
"""The standard deviation below which noise on the integers counts as 0."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The law of all the noise of one release, without its scales.

    Parameters
    ----------
    law : the distribution of the noise; the scale of a continuous distribution does not matter.
    bounding : how the noisy numbers were kept within bounds.
    """

    law: Distribution
    bounding: Bounding | None = None

    @property
    def bias(self) -> float:
        """The largest bias of a noisy number that a lower bound causes, in deviations of the noise."""
        if self.bounding is None or self.law.std < NO_NOISE:
            return 0.0
        return _cumulants(self.law, self.bounding)[0]

    def half(self, level: float, deviations: Any, times: Any = 1.0) -> Any:
        """Return a size that a signed sum of independent noises exceeds with probability at most 1 - level.

        ``deviations``: the standard deviation of each noise times its weight, along the last axis.
        ``times``: the number of noises with each deviation.

        Unbounded noise is symmetric: a sum has lighter tails than its heaviest term. Bounding moves a noise e
        towards 0 ("clamp"), or makes its size smaller ("truncated"), but not symmetrically. The bound is then
        that of the sum of all positive parts, or of all sizes.

        Noise on the integers and staircase noise are coarse: a sum may lie a step or a stair beyond the bound
        that follows from the deviations.
        """
        deviations, std = np.abs(deviations), _std(self.law)
        if std < NO_NOISE:
            return np.zeros(deviations.shape[:-1])
        # in units of the largest deviation, as powers of large doubles may overflow
        unit = deviations.max(axis=-1)
        deviations = deviations / np.where(unit > 0, unit, 1.0)[..., np.newaxis]
        width = _factor(self.law.order, level) * np.sqrt((times * deviations**2).sum(axis=-1))
        if self.bounding is not None:
            cumulants = _cumulants(self.law, self.bounding)
            sums = [(times * deviations**power).sum(axis=-1) for power in (1, 2, 3, 4)]
            q = (1 + level) / 2 if self.bounding == "clamp" else level
            bound = _cornish_fisher(q, [k * s for k, s in zip(cumulants, sums, strict=True)])
            width = np.maximum(width, bound)
        return (width + self.law.coarseness / std) * unit


LAPLACE = Tail(GeneralizedNormal.of(1, 1.0))


@dataclass(frozen=True, slots=True)
class Noisy:
    """A noisy part: values in the unit of the statistic, and the standard deviation and law of the noise.

    ``std``: one standard deviation for all values, or one each where they are sums of noisy numbers.
    """

    values: Floats
    std: Any
    tail: Tail = LAPLACE

    @property
    def deviation(self) -> Floats:
        """The standard deviations as `Tail.half` takes those of single noises."""
        return np.asarray(self.std, np.float64)[..., np.newaxis]

    def by_group(self) -> Noisy:
        """Return the part with a last axis of one group for each value."""
        std = self.std if np.ndim(self.std) == 0 else self.deviation
        return Noisy(self.values[:, np.newaxis], std, self.tail)

    @classmethod
    def of(cls, values: Floats, mechanism: Any, bounding: Bounding | None) -> Noisy:
        """Return a noisy part with these values and the noise of this mechanism."""
        law = mechanism.distribution
        return cls(values, law.std, Tail(law.standard[0], bounding))


@lru_cache(maxsize=256)
def _std(law: Distribution) -> float:
    """Return the standard deviation of a distribution, cached because a search needs it at each step."""
    return law.std


@lru_cache(maxsize=256)
def _factor(order: float, level: float) -> float:
    """Return the half width per standard deviation: the largest of those for one noise, a few and very many.

    Those of a few are the largest only near the level at which those of one and of very many are the same.
    """
    single, normal = GeneralizedNormal.of(order, 1.0), GeneralizedNormal.gaussian(1.0)
    least = max(single.central(level) / single.std, normal.central(level))
    if order == 2 or not NEAR[0] < level < NEAR[1]:
        return least
    return max(least, *(CAUTION * _of_few(order, level, terms) for terms in FEW))


def _of_few(order: float, level: float, terms: int) -> float:
    """Return the half width per standard deviation for equal noises, from their distribution on a grid."""
    law, cells = GeneralizedNormal.of(order, 1.0), np.arange(-CELLS, CELLS + 1)
    edges = np.append(cells - 0.5, CELLS + 0.5) * (CELL * law.std)
    masses = np.diff(law.cdf(edges))
    # the convolution by its transform; the grid holds sums of all sizes but improbable ones
    size = 2 * CELLS * terms + 1
    sums = np.fft.irfft(np.fft.rfft(masses, size) ** terms, size)
    middle = CELLS * terms
    within = 2 * np.cumsum(sums[middle:]) - sums[middle]
    ends = (np.arange(len(within)) + 0.5) * CELL
    return float(np.interp(level, within, ends)) / math.sqrt(terms)


@lru_cache(maxsize=256)
def _cumulants(law: Distribution, bounding: Bounding) -> tuple[float, ...]:
    """Return the first four cumulants of the positive part ("clamp") or the size of noise of deviation 1."""
    raw = [2 * law.half_moment(power) / law.std**power for power in (1, 2, 3, 4)]
    if bounding == "clamp":
        raw = [moment / 2 for moment in raw]
    m1, m2, m3, m4 = raw
    variance = m2 - m1**2
    fourth = m4 - 4 * m3 * m1 + 6 * m2 * m1**2 - 3 * m1**4
    return m1, variance, m3 - 3 * m2 * m1 + 2 * m1**3, fourth - 3 * variance**2


@lru_cache(maxsize=256)
def _normal_quantile(q: float) -> float:
    """Return the quantile of the normal distribution of deviation 1."""
    return float(GeneralizedNormal.gaussian(1.0).ppf(q))


def _cornish_fisher(q: float, cumulants: list[Any]) -> Any:
    """Return the quantile of a sum with these cumulants."""
    mean, variance, third, fourth = cumulants
    z = _normal_quantile(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(variance > 0, third / variance**1.5, 0.0)
        kurtosis = np.where(variance > 0, fourth / variance**2, 0.0)
    terms = (
        z + skewness * (z**2 - 1) / 6 + kurtosis * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    )
    return mean + np.sqrt(variance) * terms


def _hull(excess: Callable[[Floats], Any], start: Any, low: Any, high: Any) -> tuple[Floats, Floats]:
    """Return the smallest and the largest number of [low, high] without excess, around ``start``.

    On either side of ``start`` the excess is concave: it is positive from some number to the end of the
    range, or not positive at the end. The Illinois method (Dowell, Jarratt 1971) finds that number; the outer
    end of its bracket is returned.
    """
    start, low, high = np.broadcast_arrays(*(np.asarray(number, np.float64) for number in (start, low, high)))
    ends = np.stack([low, high])
    near, far = np.stack([start, start]), ends
    inner, outer = excess(near), excess(far)
    whole = outer <= 0
    outer = np.where(whole, 1.0, outer)
    inner = np.where(inner < 0, inner, -1.0)
    was_inner = np.zeros(far.shape, dtype=np.int8)
    for _ in range(MOST_STEPS if not whole.all() else 0):
        point = near + (far - near) * (inner / (inner - outer))
        point_excess = excess(point)
        within = point_excess <= 0
        # an end that stays twice in a row counts half
        inner = np.where(within, point_excess, np.where(was_inner == -1, inner / 2, inner))
        outer = np.where(within, np.where(was_inner == 1, outer / 2, outer), point_excess)
        near, far = np.where(within, point, near), np.where(within, far, point)
        was_inner = np.where(within, 1, -1)
        if bool(np.all(whole | (np.abs(far - near) <= CLOSE * np.abs(far - start)))):
            break
    lower, upper = np.where(whole, ends, far)
    return lower, upper


def of_ratio(
    level: float, total: Noisy, count: Noisy, low: Any, high: Any, *, rounding: float = 0.0
) -> tuple[Floats, Floats]:
    """Return the interval of a ratio of a noisy sum and a noisy count, within [low, high].

    ``rounding``: the largest size of ``sum - ratio * count`` without noise.
    """
    tail, of_total, of_count = count.tail, total.std, count.std
    totals, counts = np.asarray(total.values, np.float64), np.asarray(count.values, np.float64)
    if tail.bounding is None and tail.law.coarseness == 0 and not rounding:
        times = _factor(tail.law.order, level)
        return _fieller(totals, counts, times * of_total, times * of_count, low, high)
    totals, counts = np.broadcast_arrays(totals, counts)

    def excess(ratio: Floats) -> Any:
        parts = np.stack([np.full(ratio.shape, of_total), ratio * of_count], axis=-1)
        distance = np.abs(totals - ratio * counts) - tail.half(level, parts) - rounding
        return np.where(counts > 0, distance, -1.0)

    start = np.clip(totals / np.where(counts > 0, counts, 1.0), low, high)
    return _hull(excess, start, low, high)


def of_mean(
    level: float, total: Noisy, count: Noisy, low: Any, high: Any, *, rounding: float = 0.0
) -> tuple[Floats, Floats]:
    """Return the interval of a mean: that of the ratio, or the whole range where the count is all noise."""
    lower, upper = of_ratio(level, total, count, low, high, rounding=rounding)
    hidden = count.values <= count.tail.half(level, count.deviation)
    return np.where(hidden, low, lower), np.where(hidden, high, upper)


def _fieller(
    total: Floats, count: Floats, of_total: float, of_count: float, low: Any, high: Any
) -> tuple[Floats, Floats]:
    """Return the interval of the ratios r with |total - r count| <= hypot(of_total, r of_count), by roots.

    ``of_total``, ``of_count``: positive. The ends are those that `_hull` would find: roots of a quadratic, or
    the ends of the range.
    """
    # in units of the larger of each pair, as squares of large doubles may overflow
    sums, rows = np.maximum(np.abs(total), of_total), np.maximum(np.abs(count), of_count)
    t, h, n, g = total / sums, of_total / sums, count / rows, of_count / rows
    unit, spare, middle = sums / rows, (n - g) * (n + g), t * n
    large = middle + np.copysign(np.sqrt(np.maximum(h * h * spare + (g * t) ** 2, 0.0)), middle)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first, second, start = unit * ((t - h) * (t + h) / large), unit * (large / spare), total / count
    positive, empty = large > 0, count <= 0
    roots = np.where(positive, first, second), np.where(positive, second, first)
    start = np.minimum(np.maximum(start, low), high)
    ends = []
    for end, root, inner, outer in ((low, roots[0], low, start), (high, roots[1], start, high)):
        bound = np.minimum(np.maximum(root, inner), outer)
        within = np.abs(total - end * count) <= np.hypot(of_total, end * of_count)
        ends.append(np.where(within | empty | np.isnan(bound), end, bound))
    return ends[0], ends[1]


def of_shares(level: float, sums: Noisy, wholes: Any, size: Any, members: Any) -> tuple[Floats, Floats]:
    """Return the interval of the share of ``size`` noisy cells in all ``members`` cells of a whole.

    ``sums``: noisy sums of the ``size`` cells, with the standard deviation of the noise of one cell.
    ``wholes``: noisy sums of all cells. The interval of a share of a whole that is all noise is [0, 1].
    """
    cells, wholes, size, members = np.broadcast_arrays(sums.values, wholes, size, members)
    times = np.stack([size, members - size], axis=-1)

    def excess(share: Floats) -> Any:
        parts = sums.std * np.stack([1 - share, share], axis=-1)
        distance = np.abs(cells - share * wholes) - sums.tail.half(level, parts, times)
        return np.where(wholes > 0, distance, -1.0)

    start = np.clip(cells / np.where(wholes > 0, wholes, 1.0), 0.0, 1.0)
    lower, upper = _hull(excess, start, 0.0, 1.0)
    hidden = wholes <= sums.tail.half(level, np.full((*wholes.shape, 1), sums.std), members[..., np.newaxis])
    return np.where(hidden, 0.0, lower), np.where(hidden, 1.0, upper)


def of_products(
    level: float,
    count: Noisy,
    factors: Sequence[tuple[Noisy, float, float]],
    products: Noisy,
    shift: float,
    limits: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Return the interval of a covariance of two ``factors``, or of the variance of one, within groups.

    The last axis of counts and sums is that of the groups; the products are summed over all groups, each
    product less by ``shift``. ``factors``: noisy sums, and the range of their means. ``limits``: the range of
    the covariance.

    About the true means the sum of products is (n - J) times the covariance, so a linear combination of all
    noisy numbers is noise alone. The interval holds every covariance that the noisy numbers do not contradict
    for some means within confidence intervals of their own.
    """
    n, tail = np.asarray(count.values, np.float64), count.tail
    groups = n.shape[-1]
    a, b = factors[0][0], factors[-1][0]
    squares = len(factors) == 1
    sure = 1 - (1 - level) * NUISANCE / (len(factors) * groups)
    boxes = [of_ratio(sure, sums, count, low, high) for sums, low, high in factors]
    if squares:
        low, high = boxes[0]
        # a square is extreme at an end, at the vertex of the parabola, or at 0
        vertex = np.clip(a.values / np.where(n > 0, n, 1.0), low, high)
        corners = [(mean, mean) for mean in (low, high, vertex, np.clip(0.0, low, high))]
    else:
        corners = [(mean, other) for mean in boxes[0] for other in boxes[1]]
    crossed = np.stack([mean * other for mean, other in corners])
    moved = np.stack([mean * other * n - mean * b.values - other * a.values for mean, other in corners])
    at_a, at_b = (np.abs(np.stack(side)).max(axis=0) for side in zip(*corners, strict=True))
    least, most = crossed.min(axis=0), crossed.max(axis=0)
    rows = n.sum(axis=-1)
    base, spare = np.asarray(products.values) + shift * rows, rows - groups
    lowest, highest = (base + ends.sum(axis=-1) for ends in (moved.min(axis=0), moved.max(axis=0)))
    # the noise of the sums does not depend on the covariance
    of_sums = [at_b * a.std + at_a * b.std] if squares else [at_b * a.std, at_a * b.std]
    of_products = np.broadcast_to(products.deviation, (*rows.shape, 1))
    known = np.concatenate([of_products, *of_sums], axis=-1)

    def excess(value: Floats) -> Any:
        theta = value[..., np.newaxis]
        if tail.bounding is None:
            weight = np.maximum(np.abs(shift + least - theta), np.abs(shift + most - theta))
        else:
            weight = _bounded_weight(theta, shift, least, most, rows[..., np.newaxis])
        deviations = _joined_deviations(known, weight * count.std, value.shape)
        half = tail.half(1 - (1 - level) * (1 - NUISANCE), deviations)
        distance = np.maximum(lowest - value * spare, value * spare - highest) - half
        return np.where(spare > 0, distance, -1.0)

    start = np.clip((lowest + highest) / 2 / np.where(spare > 0, spare, 1.0), *limits)
    return _hull(excess, start, *limits)


def _joined_deviations(known: Floats, others: Floats, shape: tuple[int, ...]) -> Floats:
    """Join deviations along the last axis, each repeated for values of this shape."""
    shape = np.broadcast_shapes(known.shape[:-1], shape)
    return np.concatenate(
        [np.broadcast_to(part, (*shape, part.shape[-1])) for part in (known, others)], axis=-1
    )


def _bounded_weight(theta: Floats, shift: float, least: Floats, most: Floats, rows: Floats) -> Floats:
    """Return the weight of the noise of each count where noisy counts imply the bounds of other parts.

    Each part is bounded by itself, so nothing cancels. ``least``, ``most``: the range of the product of the
    means of each group.
    """
    all_least, all_most = least.min(axis=-1, keepdims=True), most.max(axis=-1, keepdims=True)
    own = np.abs(theta) * least.shape[-1] / np.maximum(rows, 1.0)
    per_record = np.maximum(np.abs(theta + all_least - shift), np.abs(theta + all_most - shift))
    others = np.maximum(all_most - least, most - all_least)
    weight: Floats = per_record + own + 2 * np.maximum(np.abs(least), np.abs(most)) + others + own
    return weight
