"""Distributions of noise before any bounding: each symmetric about zero, each implemented once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.types import Floats

QUARTER = 0.25

FLAT = 2.0**-60
"""Below this exponent the density is that at zero; the exponent itself may underflow."""

TABLE = 4096
"""The distance up to which sums over integers are added up; beyond, closed forms keep enough digits."""


class Distribution:
    """A distribution symmetric about zero; distances ``t`` are at least 0, infinity included.

    A subclass has ``std``, ``half`` (or ``tail``), ``reach``, ``pdf`` and, where noise may be bounded,
    ``moment``. On the integers (``step`` is 1) distances are whole numbers, ``half`` holds half the mass at
    zero, and ``pdf`` is the probability of an integer.
    """

    __slots__ = ()

    step: ClassVar[int] = 0

    @property
    def std(self) -> float:
        """Return the standard deviation."""
        raise NotImplementedError

    @property
    def standard(self) -> tuple[Distribution, float]:
        """Return the distribution in units of its scale, and the scale; on the integers itself, and 1."""
        return self, 1.0

    @property
    def order(self) -> float:
        """Return the order of the generalized normal distribution that it resembles in the large."""
        raise NotImplementedError

    @property
    def coarseness(self) -> float:
        """Return the width of its pieces in the small: a step of the integers, a stair; 0 without any."""
        return float(self.step)

    def half_moment(self, k: int) -> float:
        """Return the mean of x^k over the positive half of the distribution, k from 1 to 4."""
        return float(self.moment(k, math.inf))

    def pdf(self, x: ArrayLike) -> Floats:
        """Return the density at ``x``, or the probability of an integer."""
        raise NotImplementedError

    def half(self, t: ArrayLike) -> Floats:
        """Return the mass within [0, t]."""
        return np.asarray(0.5 - self.tail(t))

    def tail(self, t: ArrayLike) -> Floats:
        """Return the mass beyond ``t`` on one side."""
        raise NotImplementedError

    def reach(self, tail: ArrayLike) -> Floats:
        """Return the distance beyond which ``tail`` of the mass lies: the inverse of `tail`."""
        raise NotImplementedError

    def distance(self, half: ArrayLike) -> Floats:
        """Return the distance within which ``half`` of the mass lies: the inverse of `half`."""
        return self.reach(0.5 - np.asarray(half, dtype=np.float64))

    def moment(self, k: int, t: ArrayLike) -> Floats:
        """Return the mean of x^k over the part of the distribution within (0, t], k >= 1."""
        raise NotImplementedError

    def clamped(self, k: int, t: ArrayLike) -> Floats:
        """Return the mean of min(x, t)^k over the positive part of the distribution, k >= 1."""
        t = np.asarray(t, dtype=np.float64)
        far = self.tail(t)
        # nothing lies beyond infinity; and where the tail vanishes, t^k may overflow
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.where(far > 0, t**k * far, 0.0)
        return np.asarray(self.moment(k, t) + beyond)

    def between(self, near: Floats, far: Floats) -> Floats:
        """Return the mass beyond ``near`` up to ``far``, on one side."""
        low, high = self.half(near), self.half(far)
        # far out, masses from zero are all close to a half: tails keep the digits there
        return np.asarray(np.where(low > QUARTER, self.tail(near) - self.tail(far), high - low))

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the distribution function."""
        x = np.asarray(x, dtype=np.float64)
        x = np.floor(x) if self.step else x
        tail = self.tail(np.where(x < 0, -x - self.step, x) if self.step else np.abs(x))
        return np.asarray(np.where(x < 0, tail, 1 - tail))

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile function, for probabilities."""
        q = np.asarray(q, dtype=np.float64)
        t = self.reach(np.minimum(q, 1 - q))
        return np.asarray(np.where(q < 0.5, -t, t) + 0.0)  # no negative zero

    def central(self, level: float) -> float:
        """Return half the width of the interval around zero that holds ``level`` of the mass."""
        return float(self.distance(level / 2) if level < 0.5 else self.reach((1 - level) / 2))


@dataclass(frozen=True, slots=True)
class GeneralizedNormal(Distribution):
    """The generalized normal distribution of order ``p`` >= 1 and scale ``b``: density ∝ exp(-|x/b|^p).

    p = 1 is the Laplace distribution of scale b, p = 2 the normal one of standard deviation b / sqrt(2).
    All methods sum positive terms only, so that neither narrow nor wide distances lose digits.

    References
    ----------
    Nadarajah (2005), "A generalized normal distribution". With P the regularized incomplete gamma
    function, the mass within [0, t] is ``P(1/p, (t/b)^p) / 2`` and the partial moments are
    ``b^k / 2 * Gamma((k+1)/p) / Gamma(1/p) * P((k+1)/p, (t/b)^p)``.

    >>> laplace = GeneralizedNormal.of(1, 2.0)
    >>> bool(laplace.half(np.inf) == 0.5), round(float(laplace.moment(2, np.inf)), 12)
    (True, 4.0)
    """

    p: float
    b: float
    std: float

    @classmethod
    def of(cls, p: float, b: float) -> GeneralizedNormal:
        """Return the distribution of order ``p`` and scale ``b``."""
        if p in (1, 2):
            return cls(float(p), b, b * math.sqrt(2) if p == 1 else b / math.sqrt(2))
        return cls(p, b, b * math.exp((math.lgamma(3 / p) - math.lgamma(1 / p)) / 2))

    @classmethod
    def gaussian(cls, sigma: float) -> GeneralizedNormal:
        """Return the normal distribution of standard deviation ``sigma``, kept to the last digit."""
        return cls(2.0, sigma * math.sqrt(2), sigma)

    @property
    def standard(self) -> tuple[Distribution, float]:
        """Return the distribution in units of its scale, and the scale."""
        return GeneralizedNormal.of(self.p, 1.0), self.b

    @property
    def order(self) -> float:
        """Return the order of the distribution itself."""
        return self.p

    @property
    def peak(self) -> float:
        """Return one over the density of magnitudes at zero, in units of the scale."""
        return math.gamma(1 + 1 / self.p)

    # Magnitudes in units of the scale: their distribution function and its complement, and the inverses.

    def inside(self, s: Floats) -> Floats:
        """Return the share of magnitudes up to ``s`` scales, with a small relative error."""
        from scipy.special import erf, gammainc

        if self.p == 1:
            return np.asarray(-np.expm1(-s))
        if self.p == 2:
            return np.asarray(erf(s))
        power = self._power(s)
        return np.where(power < FLAT, s / self.peak, gammainc(1 / self.p, power))

    def outside(self, s: Floats) -> Floats:
        """Return the share of magnitudes beyond ``s`` scales, with a small relative error."""
        from scipy.special import erfc, gammaincc

        if self.p == 1:
            return np.asarray(np.exp(-s))
        if self.p == 2:
            return np.asarray(erfc(s))
        power = self._power(s)
        return np.where(power < FLAT, 1 - s / self.peak, gammaincc(1 / self.p, power))

    def inside_inverse(self, share: Floats) -> Floats:
        """Return the magnitude in scales that ``share`` of them do not exceed."""
        from scipy.special import erfinv, gammaincinv

        with np.errstate(divide="ignore", under="ignore"):
            if self.p == 1:
                return np.asarray(-np.log1p(-share))
            if self.p == 2:
                return np.asarray(erfinv(share))
            flat = share * self.peak
            curved = gammaincinv(1 / self.p, share) ** (1 / self.p)
            return np.where(self._power(flat) < FLAT, flat, curved)

    def outside_inverse(self, share: Floats) -> Floats:
        """Return the magnitude in scales that ``share`` of them exceed."""
        from scipy.special import erfcinv, gammainccinv

        with np.errstate(divide="ignore", under="ignore"):
            if self.p == 1:
                return np.asarray(-np.log(share))
            if self.p == 2:
                return np.asarray(erfcinv(share))
            curved = gammainccinv(1 / self.p, share) ** (1 / self.p)
            return np.where(share > 0.5, self.inside_inverse(np.maximum(1 - share, 0.0)), curved)

    def _power(self, s: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(s**self.p)

    def _scaled(self, t: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.asarray(t, dtype=np.float64) / self.b)

    def pdf(self, x: ArrayLike) -> Floats:
        """Return the density at ``x``."""
        return np.asarray(np.exp(-self._power(np.abs(self._scaled(x)))) / (2 * self.b * self.peak))

    def half(self, t: ArrayLike) -> Floats:
        """Return the mass within [0, t]."""
        return np.asarray(self.inside(self._scaled(t)) / 2)

    def tail(self, t: ArrayLike) -> Floats:
        """Return the mass beyond ``t`` on one side."""
        return np.asarray(self.outside(self._scaled(t)) / 2)

    def distance(self, half: ArrayLike) -> Floats:
        """Return the distance within which ``half`` of the mass lies."""
        return np.asarray(self.b * self.inside_inverse(2 * np.asarray(half, dtype=np.float64)))

    def reach(self, tail: ArrayLike) -> Floats:
        """Return the distance beyond which ``tail`` of the mass lies."""
        return np.asarray(self.b * self.outside_inverse(2 * np.asarray(tail, dtype=np.float64)))

    def moment(self, k: int, t: ArrayLike) -> Floats:
        """Return the mean of x^k over the part of the distribution within [0, t]."""
        from scipy.special import gammainc

        order, power = (k + 1) / self.p, self._power(self._scaled(t))
        whole = self.b**k / 2 * math.exp(math.lgamma(order) - math.lgamma(1 / self.p))
        near = np.where(power < FLAT, np.asarray(t, dtype=np.float64), 0.0)
        flat = near ** (k + 1) / (2 * (k + 1) * self.b * self.peak)
        return np.asarray(np.where(power < FLAT, flat, whole * gammainc(order, power)))


@dataclass(frozen=True, slots=True)
class Stairs(Distribution):
    """The staircase distribution: stairs of one width, each lower by exp(-epsilon), broken at ``gamma``.

    The density is a exp(-k epsilon) for |x| in [k, k + gamma) widths and a exp(-(k + 1) epsilon)
    for |x| in [k + gamma, k + 1) widths.

    Source: Geng, Kairouz, Oh, Viswanath (2015), "The staircase mechanism in differential
    privacy", equation (8).
    """

    epsilon: float
    width: float
    gamma: float
    order: ClassVar[float] = 1.0  # the heights of the stairs are those of a Laplace distribution

    @property
    def standard(self) -> tuple[Distribution, float]:
        """Return the distribution in units of its width, and the width."""
        return Stairs(self.epsilon, 1.0, self.gamma), self.width

    @property
    def coarseness(self) -> float:
        """Return the width of a stair."""
        return self.width

    @property
    def _ratio(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _whole(self) -> float:
        """Return the mass of a stair over that of a block of its width and first height."""
        return self.gamma + self._ratio * (1 - self.gamma)

    @property
    def std(self) -> float:
        """Return the standard deviation: second moments of the stairs, and geometric sums over them."""
        r, g = self._ratio, self.gamma
        left = -math.expm1(-self.epsilon)
        # sums of k^2 r^k and k r^k, times 1 - r
        second, first = r * (1 + r) / left**2, r / left
        inner = self._whole * second + (g * g + r * (1 - g * g)) * first + (g**3 + r * (1 - g**3)) / 3
        return self.width * math.sqrt(inner / self._whole)

    def _place(self, t: Floats) -> tuple[Floats, Floats]:
        """Return the stair that a distance is on, and the part of the stair's width before it."""
        with np.errstate(invalid="ignore"):
            scaled = t / self.width
            stair = np.floor(scaled)
            return stair, np.where(np.isfinite(scaled), scaled - stair, 0.0)

    def pdf(self, x: ArrayLike) -> Floats:
        """Return the density at ``x``."""
        stair, part = self._place(np.abs(np.asarray(x, dtype=np.float64)))
        height = -math.expm1(-self.epsilon) / (2 * self.width * self._whole)
        return np.asarray(height * np.exp(-self.epsilon * (stair + (part >= self.gamma))))

    def tail(self, t: ArrayLike) -> Floats:
        """Return the mass beyond ``t`` on one side."""
        stair, part = self._place(np.asarray(t, dtype=np.float64))
        r, g = self._ratio, self.gamma
        # the rest of the stair, and the stairs after it: a share r of the whole
        rest = np.maximum(g - part, 0.0) + r * np.minimum(1 - part, 1 - g)
        share = -math.expm1(-self.epsilon) * rest / self._whole + r
        return np.asarray(np.exp(-self.epsilon * stair) * share / 2)

    def reach(self, tail: ArrayLike) -> Floats:
        """Return the distance beyond which ``tail`` of the mass lies."""
        mass = 2 * np.asarray(tail, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            depth = -np.log(mass) / self.epsilon
            stair = np.floor(depth)
            gone = -np.expm1((stair - depth) * self.epsilon) / -math.expm1(-self.epsilon) * self._whole
            far = self.gamma + (gone - self.gamma) / self._ratio
            part = np.clip(np.where(gone <= self.gamma, gone, far), 0.0, 1.0)
            return np.asarray(np.where(mass > 0, self.width * (stair + part), np.inf))

    def moment(self, k: int, t: ArrayLike) -> Floats:
        """Return the mean of x^k over (0, t], by sums of positive terms only.

        The mean over the stairs before the n-th is that of ``sum_i binom(k, i) c_i j^(k-i) exp(-j epsilon)``
        over j < n, where c_i is the integral of v^i over a stair of heights 1 and exp(-epsilon).
        """
        r, g = self._ratio, self.gamma
        vanished = math.ceil(VANISHED / self.epsilon)
        stair, part = self._place(np.asarray(t, dtype=np.float64))
        part = np.where(stair < vanished, part, 0.0)
        stair = np.minimum(stair, vanished)
        below, beyond = np.minimum(part, g), np.maximum(part, g)
        sums, total = _geometric_sums(k, self.epsilon, stair), np.zeros(part.shape)
        decay = np.exp(-self.epsilon * stair)
        for i in range(k + 1):
            whole = (g ** (i + 1) + r * (1 - g ** (i + 1))) / (i + 1)
            last = (below ** (i + 1) + r * (beyond ** (i + 1) - g ** (i + 1))) / (i + 1)
            total += math.comb(k, i) * (whole * sums[k - i] + last * decay * stair ** (k - i))
        height = -math.expm1(-self.epsilon) / (2 * self._whole)
        return np.asarray(self.width**k * height * total)


VANISHED = 800.0
"""exp(-VANISHED) is 0 in double precision."""


def _geometric_sums(most: int, rate: float, stop: Floats) -> list[Floats]:
    """Return the sums of j^m exp(-j rate) over whole numbers 0 <= j < stop, for m = 0, ..., most.

    Sums over 2^b numbers are doubled from b = 0 on, and added up by the binary digits of ``stop``.
    """
    blocks = [[1.0] + [0.0] * most]
    length = 1.0
    while 2 * length <= np.max(stop, initial=0.0):
        blocks.append(_sums_after(blocks[-1], length, math.exp(-rate * length), blocks[-1]))
        length *= 2
    sums: list[Any] = [np.zeros(np.shape(stop))] * (most + 1)
    start = np.zeros(np.shape(stop))
    for block in reversed(blocks):
        taken = stop - start >= length
        longer = _sums_after(sums, start, np.exp(-rate * start), block)
        sums = [np.where(taken, more, so_far) for more, so_far in zip(longer, sums, strict=True)]
        start = np.where(taken, start + length, start)
        length /= 2
    return sums


def _sums_after(sums: list[Any], start: Any, decay: Any, block: list[Any]) -> list[Any]:
    """Return sums of j^m exp(-j rate) up to ``start``, and the block of numbers from there on."""
    return [
        sums[m] + decay * sum(math.comb(m, i) * start ** (m - i) * block[i] for i in range(m + 1))
        for m in range(len(sums))
    ]


class _Discrete(Distribution):
    """A distribution on the integers; quantiles of subclasses may be beside the integer by one."""

    __slots__ = ()

    step: ClassVar[int] = 1

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the smallest integer whose distribution function reaches ``q``."""
        q = np.asarray(q, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            below = np.ceil(-1 - self.reach(q))
            k = np.where(q <= self.tail(0), below, np.maximum(np.ceil(self.reach(1 - q)), 0.0))
            smallest = k.copy()
            for near in (k + 1, k, k - 1):
                smallest = np.where(np.isfinite(k) & (self.cdf(near) >= q), near, smallest)
        return np.asarray(smallest + 0.0)

    def central(self, level: float) -> float:
        """Return the smallest integer within which, on both sides of zero, lies at least ``level``."""
        half = max(math.ceil(self.reach((1 - level) / 2)), 0)
        while half > 0 and 2 * self.tail(half - 1) <= 1 - level:
            half -= 1
        while 2 * self.tail(half) > 1 - level:
            half += 1
        return float(half)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(_Discrete):
    """The discrete Laplace (two-sided geometric) distribution: P(z) ∝ r^abs(z), r = exp(-1/b)."""

    b: float
    order: ClassVar[float] = 1.0

    def half_moment(self, k: int) -> float:
        """Return the mean of x^k over the positive integers, by Eulerian polynomials, k from 1 to 4."""
        r, gap = math.exp(-1 / self.b), -math.expm1(-1 / self.b)
        eulerian = (1.0, 1 + r, 1 + 4 * r + r * r, 1 + 11 * r + 11 * r * r + r**3)
        return self.mass * r * eulerian[k - 1] / gap ** (k + 1)

    @property
    def std(self) -> float:
        """Return the standard deviation, ``sqrt(2 r) / (1 - r)``."""
        return math.sqrt(2) * math.exp(-0.5 / self.b) / -math.expm1(-1 / self.b)

    @property
    def mass(self) -> float:
        """Return the probability of zero, ``(1 - r) / (1 + r)``."""
        return math.tanh(0.5 / self.b)

    def pdf(self, x: ArrayLike) -> Floats:
        """Return the probability of an integer."""
        return np.asarray(self.mass * np.exp(-np.abs(np.asarray(x, dtype=np.float64)) / self.b))

    def half(self, t: ArrayLike) -> Floats:
        """Return half the mass at zero and the mass of 1..t."""
        return np.asarray(self.mass * (0.5 + self._geometric(np.asarray(t, dtype=np.float64))))

    def tail(self, t: ArrayLike) -> Floats:
        """Return the mass beyond ``t`` on one side."""
        share = 1 / (1 + math.exp(-1 / self.b))  # of zero and all on one side of it
        return np.asarray(share * np.exp(-(np.asarray(t, dtype=np.float64) + 1) / self.b))

    def reach(self, tail: ArrayLike) -> Floats:
        """Return the distance beyond which ``tail`` of the mass lies, as if it were between integers."""
        with np.errstate(divide="ignore"):
            logarithm = np.log(np.asarray(tail, dtype=np.float64) * (1 + math.exp(-1 / self.b)))
        return np.asarray(-self.b * logarithm - 1)

    def _geometric(self, t: Floats) -> Floats:
        """Return the sum of r^k over k = 1..t."""
        return np.asarray(math.exp(-1 / self.b) * -np.expm1(-t / self.b) / -math.expm1(-1 / self.b))

    def moment(self, k: int, t: ArrayLike) -> Floats:
        """Return the mean of x^k over 1..t, for k of 1 or 2: sums of j^k r^j, by parts."""
        t = np.asarray(t, dtype=np.float64)
        r, gap = math.exp(-1 / self.b), -math.expm1(-1 / self.b)
        plain = self._geometric(t)
        with np.errstate(invalid="ignore"):
            last, last_square = (
                np.where(np.isfinite(t), r * t**power * np.exp(-t / self.b), 0.0) for power in (1, 2)
            )
        closed = (plain - last) / gap
        if k == 2:
            closed = (2 * closed - plain - last_square) / gap
        longest = min(TABLE, float(np.max(t, initial=0.0, where=np.isfinite(t))))
        terms = np.arange(1.0, longest + 1)
        table = np.concatenate([[0.0], np.cumsum(terms**k * np.exp(-terms / self.b))])
        index = np.minimum(t, len(table) - 1).astype(np.int64)
        return np.asarray(self.mass * np.where(t < len(table), table[index], closed))


SMOOTH = 2.0**14


def total(terms: Floats) -> float:
    """Return the sum of non-negative numbers, rounded once.

    Terms below 1e-40 of the largest change no digit of it, and cost `math.fsum` most of its time.
    """
    return math.fsum(terms[terms > 1e-40 * np.max(terms, initial=0.0)])


@lru_cache(maxsize=4)
def discrete_normal_masses(sigma: float) -> tuple[Floats, Floats]:
    """Return the integers within 40 sigma and their discrete normal probabilities."""
    reach = math.ceil(40 * sigma) + 1  # beyond, a term is below the smallest double
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-z * z / (2 * sigma * sigma))
    return z, weights / total(weights)


@dataclass(frozen=True, slots=True)
class DiscreteNormal(_Discrete):
    """The discrete normal distribution: P(z) ∝ exp(-z²/(2 sigma²)), by exact summation.

    From a sigma of ``SMOOTH`` on, sums over integers are replaced by integrals over their cells, which agree
    to eight digits: a term differs from the mean over its cell by about (z / sigma)² / (24 sigma²).
    """

    sigma: float
    order: ClassVar[float] = 2.0

    @property
    def _continuous(self) -> GeneralizedNormal | None:
        return GeneralizedNormal.gaussian(self.sigma) if self.sigma > SMOOTH else None

    @property
    def std(self) -> float:
        """Return the standard deviation, slightly below sigma."""
        if self.sigma > 10:  # the lattice shows in the 800th decimal
            return self.sigma
        z, p = discrete_normal_masses(self.sigma)
        return math.sqrt(math.fsum(z * z * p))

    def pdf(self, x: ArrayLike) -> Floats:
        """Return the probability of an integer."""
        if self._continuous is not None:
            return self._continuous.pdf(x)
        _, p = discrete_normal_masses(self.sigma)
        with np.errstate(over="ignore"):
            scaled = np.asarray(x, dtype=np.float64) / self.sigma
            return np.asarray(p[len(p) // 2] * np.exp(-(scaled**2) / 2))

    def tail(self, t: ArrayLike) -> Floats:
        """Return the mass beyond ``t`` on one side."""
        if self._continuous is not None:
            return self._continuous.tail(np.asarray(t, dtype=np.float64) + 0.5)
        tails = _discrete_normal_tails(self.sigma)
        return np.asarray(tails[np.minimum(np.asarray(t), len(tails) - 1).astype(np.int64)])

    def reach(self, tail: ArrayLike) -> Floats:
        """Return the smallest integer beyond which at most ``tail`` of the mass lies."""
        if self._continuous is not None:
            return np.asarray(np.ceil(self._continuous.reach(tail) - 0.5))
        tails = _discrete_normal_tails(self.sigma)
        index = np.searchsorted(-tails, -np.asarray(tail, dtype=np.float64))
        return np.where(np.asarray(tail) > 0, index.astype(np.float64), np.inf)

    def moment(self, k: int, t: ArrayLike) -> Floats:
        """Return the mean of x^k over 1..t."""
        t = np.asarray(t, dtype=np.float64)
        if self._continuous is not None:
            beyond = self._continuous.moment(k, t + 0.5) - self._continuous.moment(k, 0.5)
            return np.asarray(np.maximum(beyond, 0.0))
        z, p = discrete_normal_masses(self.sigma)
        middle = len(p) // 2
        sums = np.cumsum(np.abs(z[middle:]) ** k * p[middle:])
        return np.asarray(sums[np.minimum(t, len(sums) - 1).astype(np.int64)])


@lru_cache(maxsize=4)
def _discrete_normal_tails(sigma: float) -> Floats:
    """Return the masses beyond 0, 1, 2, ... on one side, the last of them zero."""
    _, p = discrete_normal_masses(sigma)
    return np.append(np.cumsum(p[: len(p) // 2])[::-1], 0.0)
