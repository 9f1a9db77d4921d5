"""Confidence intervals of numbers that are computed from several noisy numbers.

Each interval inverts a test. For the true value of a ratio, ``sum - ratio * count`` is noise alone, whose
law is known: the interval holds every ratio that the noisy numbers do not contradict. It has its stated
coverage for counts of any size, and is as wide as the declared range where noise hides the count.

Sources: Fieller (1954), "Some problems in interval estimation", for ratios; Berger, Boos (1994), "P values
maximized over a confidence set for the nuisance parameter", for the means in a variance; Cornish, Fisher
(1938), "Moments and cumulants in the specification of distributions", for sums of bounded noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.distributions import Distribution, GeneralizedNormal
from pdprivacy.mechanism import Bounding

__all__ = ["LAPLACE", "Ends", "Tail", "of_products", "of_ratio", "of_shares"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = "tuple[Any, Any]"

NUISANCE = 0.1
"""The share of the error probability for the means on which a variance depends."""

MOST_STEPS = 60

CLOSE = 1e-7
"""The precision of an end of an interval, relative to its distance from the number."""


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
        found = _factor(self.law.order, level) * np.sqrt((times * deviations**2).sum(axis=-1))
        if self.bounding is not None:
            cumulants = _cumulants(self.law, self.bounding)
            sums = [(times * deviations**power).sum(axis=-1) for power in (1, 2, 3, 4)]
            q = (1 + level) / 2 if self.bounding == "clamp" else level
            bound = _cornish_fisher(q, [k * s for k, s in zip(cumulants, sums, strict=True)])
            found = np.maximum(found, bound)
        return (found + self.law.coarseness / std) * unit


LAPLACE = Tail(GeneralizedNormal.of(1, 1.0))


@lru_cache(maxsize=256)
def _std(law: Distribution) -> float:
    """Return the standard deviation of a distribution, cached because a search needs it at each step."""
    return law.std


@lru_cache(maxsize=256)
def _factor(order: float, level: float) -> float:
    """Return the half width per standard deviation: the larger of those for one noise and for very many."""
    single, normal = GeneralizedNormal.of(order, 1.0), GeneralizedNormal.gaussian(1.0)
    return max(single.central(level) / single.std, normal.central(level))


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
    start, low, high = np.broadcast_arrays(*(np.asarray(one, np.float64) for one in (start, low, high)))
    ends = np.stack([low, high])
    near, far = np.stack([start, start]), ends
    inner, outer = excess(near), excess(far)
    whole = outer <= 0
    outer = np.where(whole, 1.0, outer)
    inner = np.where(inner < 0, inner, -1.0)
    was_inner = np.zeros(far.shape, dtype=np.int8)
    for _ in range(MOST_STEPS if not whole.all() else 0):
        place = near + (far - near) * (inner / (inner - outer))
        found = excess(place)
        within = found <= 0
        # an end that stays twice in a row counts half
        inner = np.where(within, found, np.where(was_inner == -1, inner / 2, inner))
        outer = np.where(within, np.where(was_inner == 1, outer / 2, outer), found)
        near, far = np.where(within, place, near), np.where(within, far, place)
        was_inner = np.where(within, 1, -1)
        if bool(np.all(whole | (np.abs(far - near) <= CLOSE * np.abs(far - start)))):
            break
    lower, upper = np.where(whole, ends, far)
    return lower, upper


def of_ratio(
    tail: Tail,
    level: float,
    total: Any,
    count: Any,
    deviations: tuple[float, float],
    low: Any,
    high: Any,
    *,
    rounding: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the interval of a ratio of a noisy sum and a noisy count, within [low, high].

    ``rounding``: the largest size of ``sum - ratio * count`` without noise.
    """
    total, count = np.broadcast_arrays(np.asarray(total, np.float64), np.asarray(count, np.float64))
    of_total, of_count = deviations
    if tail.bounding is None and tail.law.coarseness == 0 and not rounding:
        times = _factor(tail.law.order, level)
        return _fieller(total, count, times * of_total, times * of_count, low, high)

    def excess(ratio: Floats) -> Any:
        parts = np.stack([np.full(ratio.shape, of_total), ratio * of_count], axis=-1)
        found = np.abs(total - ratio * count) - tail.half(level, parts) - rounding
        return np.where(count > 0, found, -1.0)

    start = np.clip(total / np.where(count > 0, count, 1.0), low, high)
    return _hull(excess, start, low, high)


def _fieller(
    total: Floats, count: Floats, of_total: float, of_count: float, low: Any, high: Any
) -> tuple[Floats, Floats]:
    """Return the interval of the ratios r with |total - r count| <= hypot(of_total, r of_count), by roots.

    Its ends are those that `_hull` would find: roots of a quadratic, or the ends of the range.
    """
    # in units of the larger of each pair, as squares of large doubles may overflow
    sums, rows = np.maximum(np.abs(total), of_total), np.maximum(np.abs(count), of_count)
    sums, rows = np.where(sums > 0, sums, 1.0), np.where(rows > 0, rows, 1.0)
    t, h, n, g = total / sums, of_total / sums, count / rows, of_count / rows
    unit, spare = sums / rows, (n - g) * (n + g)
    large = t * n + np.copysign(np.sqrt(np.maximum(h**2 * spare + (g * t) ** 2, 0.0)), t * n)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = unit * ((t - h) * (t + h) / large), unit * (large / spare)
    right = np.where(large > 0, second, first), np.where(large > 0, first, second)
    start = np.clip(total / np.where(count > 0, count, 1.0), low, high)
    ends = []
    for end, root in ((low, right[1]), (high, right[0])):
        within = np.abs(total - end * count) <= np.hypot(of_total, end * of_count)
        found = np.clip(root, np.minimum(start, end), np.maximum(start, end))
        ends.append(np.where(within | (count <= 0) | np.isnan(found), end, found))
    return ends[0], ends[1]


def of_shares(
    tail: Tail, level: float, sums: Any, wholes: Any, std: float, size: Any, members: Any
) -> tuple[Floats, Floats]:
    """Return the interval of the share of ``size`` noisy cells in all ``members`` cells of a whole."""
    sums, wholes, size, members = np.broadcast_arrays(sums, wholes, size, members)
    times = np.stack([size, members - size], axis=-1)

    def excess(share: Floats) -> Any:
        parts = std * np.stack([1 - share, share], axis=-1)
        found = np.abs(sums - share * wholes) - tail.half(level, parts, times)
        return np.where(wholes > 0, found, -1.0)

    start = np.clip(sums / np.where(wholes > 0, wholes, 1.0), 0.0, 1.0)
    return _hull(excess, start, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of products: its noisy sums per group, their standard deviation, the range of its means."""

    sums: Floats
    std: float
    low: float
    high: float


def of_products(
    tail: Tail,
    level: float,
    counts: tuple[Any, float],
    first: tuple[Any, float, float, float],
    second: tuple[Any, float, float, float] | None,
    products: tuple[Any, float],
    shift: float,
    limits: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Return the interval of a covariance (of a variance without ``second``), within groups on the last axis.

    ``counts``, ``products``: noisy numbers and their standard deviation; the products are summed over all
    groups, each product less by ``shift``. ``first``, ``second``: noisy sums, their standard deviation and
    the range of a term. ``limits``: the range of the covariance.

    About the true means the sum of products is (n - J) times the covariance, so a linear combination of all
    noisy numbers is noise alone. The interval holds every covariance that the noisy numbers do not contradict
    for some means within confidence intervals of their own.
    """
    n, of_count = np.asarray(counts[0], np.float64), counts[1]
    groups = n.shape[-1]
    a = _Factor(np.asarray(first[0], np.float64), *first[1:])
    b = a if second is None else _Factor(np.asarray(second[0], np.float64), *second[1:])
    means = groups if second is None else 2 * groups
    sure = 1 - (1 - level) * NUISANCE / means
    boxes = [
        of_ratio(tail, sure, factor.sums, n, (factor.std, of_count), factor.low, factor.high)
        for factor in ((a,) if second is None else (a, b))
    ]
    if second is None:
        low, high = boxes[0]
        # a square is extreme at an end, at the vertex of the parabola, or at 0
        vertex = np.clip(a.sums / np.where(n > 0, n, 1.0), low, high)
        corners = [(mean, mean) for mean in (low, high, vertex, np.clip(0.0, low, high))]
    else:
        corners = [(mean, other) for mean in boxes[0] for other in boxes[1]]
    crossed = np.stack([mean * other for mean, other in corners])
    moved = np.stack([mean * other * n - mean * b.sums - other * a.sums for mean, other in corners])
    at_a, at_b = (np.abs(np.stack(side)).max(axis=0) for side in zip(*corners, strict=True))
    least, most = crossed.min(axis=0), crossed.max(axis=0)
    rows = n.sum(axis=-1)
    base, spare = np.asarray(products[0]) + shift * rows, rows - groups
    lowest, highest = (base + ends.sum(axis=-1) for ends in (moved.min(axis=0), moved.max(axis=0)))
    # the noise of the sums does not depend on the covariance
    of_sums = [at_b * a.std + at_a * b.std] if second is None else [at_b * a.std, at_a * b.std]
    known = np.concatenate([np.full((*rows.shape, 1), products[1]), *of_sums], axis=-1)

    def excess(value: Floats) -> Any:
        theta = value[..., np.newaxis]
        if tail.bounding is None:
            weight = np.maximum(np.abs(shift + least - theta), np.abs(shift + most - theta))
        else:
            weight = _bounded_weight(theta, shift, least, most, rows[..., np.newaxis])
        deviations = _joined(known, weight * of_count, value.shape)
        half = tail.half(1 - (1 - level) * (1 - NUISANCE), deviations)
        found = np.maximum(lowest - value * spare, value * spare - highest) - half
        return np.where(spare > 0, found, -1.0)

    start = np.clip((lowest + highest) / 2 / np.where(spare > 0, spare, 1.0), *limits)
    return _hull(excess, start, *limits)


def _joined(known: Floats, others: Floats, shape: tuple[int, ...]) -> Floats:
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
