"""The laws of the noise, unbounded: densities proportional to exp(-|x/b|^p)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Law", "log_gain"]

Floats: TypeAlias = NDArray[np.float64]

QUARTER = 0.25

FLAT = 1e-17
"""Below this exponent the density is that at zero; the exponent itself may underflow."""


@dataclass(frozen=True, slots=True)
class Law:
    """The generalized normal law of order ``p`` >= 1 and scale ``b``, centred at zero.

    p = 1 is the Laplace law of scale b, p = 2 the Gaussian law of standard deviation b / sqrt(2).
    ``half(t)``, ``tail(t)`` and ``moment(k, t)`` are for distances t >= 0, infinity included, and
    sum positive terms only, so that neither narrow nor wide distances lose digits.

    References
    ----------
    Nadarajah (2005), "A generalized normal distribution". With P the regularized incomplete gamma
    function, the mass within [0, t] is ``P(1/p, (t/b)^p) / 2`` and the partial moments are
    ``b^k / 2 * Gamma((k+1)/p) / Gamma(1/p) * P((k+1)/p, (t/b)^p)``.

    >>> law = Law.of(1, 2.0)
    >>> bool(law.half(np.inf) == 0.5), round(float(law.moment(2, np.inf)), 12), round(law.std**2, 12)
    (True, 4.0, 8.0)
    """

    p: float
    b: float
    std: float

    @classmethod
    def of(cls, p: float, b: float) -> Law:
        """The law of order ``p`` and scale ``b``."""
        if p == 1:
            return cls(1.0, b, math.sqrt(2) * b)
        if p == 2:
            return cls(2.0, b, b / math.sqrt(2))
        return cls(p, b, b * math.exp((math.lgamma(3 / p) - math.lgamma(1 / p)) / 2))

    @classmethod
    def gaussian(cls, sigma: float) -> Law:
        """The Gaussian law of standard deviation ``sigma``, kept to the last digit."""
        return cls(2.0, sigma * math.sqrt(2), sigma)

    def _power(self, t: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray((np.asarray(t, dtype=np.float64) / self.b) ** self.p)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        if self.p == 1:
            return np.asarray(np.exp(-np.abs(x) / self.b) / (2 * self.b))
        if self.p == 2:
            z = x / self.std
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(-z * z / 2) / (self.std * math.sqrt(2 * math.pi)))
        return np.asarray(np.exp(-self._power(np.abs(x))) / (2 * self.b * math.gamma(1 + 1 / self.p)))

    def half(self, t: ArrayLike) -> Floats:
        """Mass within [0, t]."""
        from scipy.special import erf, gammainc

        if self.p == 1:
            return np.asarray(-np.expm1(-np.asarray(t, dtype=np.float64) / self.b) / 2)
        if self.p == 2:
            return np.asarray(erf(np.asarray(t, dtype=np.float64) / self.b) / 2)
        power = self._power(t)
        flat = np.asarray(t, dtype=np.float64) / (2 * self.b * math.gamma(1 + 1 / self.p))
        return np.asarray(np.where(power < FLAT, flat, gammainc(1 / self.p, power) / 2))

    def tail(self, t: ArrayLike) -> Floats:
        """Mass beyond t."""
        from scipy.special import gammaincc, ndtr

        if self.p == 1:
            return np.asarray(np.exp(-np.asarray(t, dtype=np.float64) / self.b) / 2)
        if self.p == 2:
            return np.asarray(ndtr(-np.asarray(t, dtype=np.float64) / self.std))
        power = self._power(t)
        return np.asarray(np.where(power < FLAT, 0.5 - self.half(t), gammaincc(1 / self.p, power) / 2))

    def moment(self, k: int, t: ArrayLike) -> Floats:
        """The integral of x^k times the density over [0, t]."""
        from scipy.special import gammainc

        order, power = (k + 1) / self.p, self._power(t)
        whole = self.b**k / 2 * math.exp(math.lgamma(order) - math.lgamma(1 / self.p))
        near = np.where(power < FLAT, np.asarray(t, dtype=np.float64), 0.0)
        flat = near ** (k + 1) / (2 * (k + 1) * self.b * math.gamma(1 + 1 / self.p))
        return np.asarray(np.where(power < FLAT, flat, whole * gammainc(order, power)))

    def clamped(self, k: int, t: ArrayLike) -> Floats:
        """The integral of min(x, t)^k times the density over the positive numbers, k >= 1."""
        t = np.asarray(t, dtype=np.float64)
        far = self.tail(t)
        # nothing lies beyond infinity; and where the tail vanishes, t^k may overflow
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.where(far > 0, t**k * far, 0.0)
        return np.asarray(self.moment(k, t) + beyond)

    def distance(self, half: ArrayLike) -> Floats:
        """The t within which ``half`` of the mass lies: the inverse of `half`."""
        from scipy.special import erfinv, gammaincinv

        mass = np.asarray(half, dtype=np.float64)
        with np.errstate(divide="ignore"):
            if self.p == 1:
                return np.asarray(-self.b * np.log1p(-2 * mass))
            if self.p == 2:
                return np.asarray(self.b * erfinv(2 * mass))
            flat = 2 * self.b * math.gamma(1 + 1 / self.p) * mass
            far = self.b * gammaincinv(1 / self.p, 2 * mass) ** (1 / self.p)
            return np.asarray(np.where(self._power(flat) < FLAT, flat, far))

    def reach(self, tail: ArrayLike) -> Floats:
        """The t beyond which ``tail`` of the mass lies: the inverse of `tail`."""
        from scipy.special import gammainccinv, ndtri

        mass = np.asarray(tail, dtype=np.float64)
        with np.errstate(divide="ignore"):
            if self.p == 1:
                return np.asarray(-self.b * np.log(2 * mass))
            if self.p == 2:
                return np.asarray(-self.std * ndtri(mass))
            far = self.b * gammainccinv(1 / self.p, 2 * mass) ** (1 / self.p)
            return np.asarray(np.where(mass > QUARTER, self.distance(0.5 - mass), far))

    def cdf(self, x: ArrayLike) -> Floats:
        """Distribution function."""
        x = np.asarray(x, dtype=np.float64)
        if self.p == 2:
            from scipy.special import ndtr

            return np.asarray(ndtr(x / self.std))
        tail = self.tail(np.abs(x))
        return np.asarray(np.where(x < 0, tail, 1 - tail))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile function, for probabilities."""
        q = np.asarray(q, dtype=np.float64)
        if self.p == 2:
            from scipy.special import ndtri

            return np.asarray(self.std * ndtri(q))
        t = self.reach(np.minimum(q, 1 - q))
        return np.asarray(np.where(q < 0.5, -t, t) + 0.0)  # no negative zero

    def central(self, level: float) -> float:
        """Half the width of the interval around zero that holds ``level`` of the mass."""
        if self.p == 1:
            return -self.b * math.log1p(-level)
        if self.p == 2:
            from scipy.special import ndtri

            return -self.std * float(ndtri(float((1 - level) / 2)))
        return float(self.distance(level / 2) if level < 0.5 else self.reach((1 - level) / 2))

    def between(self, start: ArrayLike, stop: ArrayLike) -> Floats:
        """Mass within [start, stop], start <= stop, of either sign."""
        start, stop = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(stop, np.float64))
        near = np.where(start >= 0, start, np.where(stop <= 0, -stop, 0.0))
        far = np.maximum(np.abs(start), np.abs(stop))
        low, high = self.half(near), self.half(far)
        # far out, masses from zero are all close to a half: tails keep the digits there
        beside = np.where(low > QUARTER, self.tail(near) - self.tail(far), high - low)
        across = self.half(np.abs(start)) + self.half(np.abs(stop))
        return np.asarray(np.where((start < 0) & (stop > 0), across, beside))


def log_gain(law: Law, distance: float, width: float = math.inf) -> float:
    """How far ln Z may change where a centre moves by at most ``distance`` within a range ``width``.

    Z(s) is the mass of the law around s that falls into the range. Z is a convolution of
    log-concave functions, so ln Z is concave, and symmetric about the middle of the range: it
    changes most from an end point, and ``ln Z(lo + d) - ln Z(lo)`` with d = min(distance, width/2)
    bounds every change. With G(t) the mass within [0, t] this is
    ``ln((G(d) + G(width - d)) / G(width))``; it is concave in d and grows with the width:
    for h(r) = G(d) + G(r - d) - G(r), h'/G' = f(r - d)/f(r) - 1 is nondecreasing in r (f is
    log-concave), so h G' <= h' G, and h/G is nondecreasing. For an open side it is
    ``ln(1 + 2 G(d))``.

    >>> round(log_gain(Law.of(1, 1.0), 1.0), 6)  # ln(2 - exp(-1))
    0.48988
    """
    d = min(distance, width / 2)
    if math.isinf(width):
        return math.log1p(2 * float(law.half(d)))
    if law.p == 1:
        near, rest, whole = (-math.expm1(-t / law.b) for t in (d, width - d, width))
        return math.log1p(near * rest / whole)
    near, rest, whole = (float(law.half(t)) for t in (d, width - d, width))
    return math.log1p(max(near + rest - whole, 0.0) / whole)
