"""The discrete laws, P(z) ∝ exp(-|z|^power / divisor) on all integers: Laplace and Gaussian."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain, zip_longest
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pdprivacy.checks import whole
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.noise.bits import Pool, Source
from pdprivacy.noise.decisions import BLOCK, FEW, MARGIN, WIDEST

__all__ = ["discrete_gaussian", "discrete_laplace"]

_TOP = 7  # strips are so wide that scale or sigma is less than 2^_TOP of them
_OPEN = np.iinfo(np.int16).min  # marks the buckets that 16 bits do not decide


def discrete_laplace(scale: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """Exact independent draws of P(z) ∝ exp(-|z|/scale) on the integers.

    ``scale`` is any positive rational up to 2^52; the result has shape (size,).

    Raises
    ------
    ParameterError : scale outside (0, 2^52], or a negative size.

    Source: few draws by Canonne, Kamath, Steinke (2020), Algorithm 2; many by
    inversion with a guide table (Devroye 1986, III.2.4), in strips by rejection (II.3).

    >>> from pdprivacy.noise import source
    >>> noise = discrete_laplace(Fraction(10, 3), 100_000, source(0))
    >>> bool(abs(noise.mean()) < 0.1), noise.dtype.name
    (True, 'int64')
    """
    if not 0 < scale <= WIDEST:
        raise ParameterError(f"'scale' must be positive and at most 2**52 (got {scale}).")
    scale = Fraction(scale)
    if whole(size, "size", 0) > FEW:
        return _many(_Discrete(1, scale), size, source)
    pool, (t, s) = Pool(source), scale.as_integer_ratio()
    drawn = np.empty(size, np.int64)
    for i in range(size):
        drawn[i] = pool.laplace(t, s)
    return drawn


def discrete_gaussian(variance: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """Exact independent draws of P(z) ∝ exp(-z²/(2·variance)) on the integers.

    ``variance`` is the parameter sigma² (the variance of the draws is no
    larger), any positive rational up to 2^104; the result has shape (size,).

    Raises
    ------
    ParameterError : variance outside (0, 2^104], or a negative size.

    Source: few draws by Canonne, Kamath, Steinke (2020), Algorithm 3; many by
    inversion with a guide table (Devroye 1986, III.2.4), in strips by rejection (II.3).

    >>> from pdprivacy.noise import source
    >>> noise = discrete_gaussian(Fraction(25), 100_000, source(0))
    >>> bool(abs(noise.std() - 5) < 0.1), noise.dtype.name
    (True, 'int64')
    """
    if not 0 < variance <= WIDEST**2:
        raise ParameterError(f"'variance' must be positive and at most 2**104 (got {variance}).")
    variance = Fraction(variance)
    if whole(size, "size", 0) > FEW:
        return _many(_Discrete(2, 2 * variance), size, source)
    pool, (p, q) = Pool(source), variance.as_integer_ratio()
    drawn = np.empty(size, np.int64)
    for i in range(size):
        drawn[i] = pool.gaussian(p, q)
    return drawn


@dataclass(frozen=True, slots=True)
class _Discrete:
    """P(z) ∝ exp(-|z|^power / divisor): Laplace has power 1, Gaussian power 2 and divisor 2 sigma²."""

    power: Literal[1, 2]
    divisor: Fraction

    @property
    def shift(self) -> int:
        """Strips hold 2^shift integers; none are needed where a table holds every integer."""
        width = int(self.divisor) if self.power == 1 else isqrt(int(self.divisor / 2))
        return max(0, width.bit_length() - _TOP)

    def exponent(self, start: int, stop: int) -> Fraction:
        """Minus the logarithm of P(stop)/P(start)."""
        return Fraction(stop**self.power - start**self.power) / self.divisor

    def exponents(self, start: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.float64]:
        """`exponent` from start to start + step, with a relative error below 2^-49."""
        gamma = step.astype(np.float64) * float(1 / self.divisor)
        if self.power == 2:
            gamma *= 2.0 * start + step
        return gamma


# The distribution function to any number of bits, in integers.


def _heads(law: _Discrete, shift: int, first: int, bits: int) -> list[int]:
    """exp(-m^power/divisor)·2^bits at m = first, first + 2^shift, ..., until it vanishes.

    Neighbours have ratios and the ratios have a constant ratio, so three
    exponentials and two products per term are enough. Every entry k is a lower
    bound, off by at most 5(k+1)²: a ratio gains at most 5 per term, and a
    weight the error of its ratio and 2.
    """
    width = 1 << shift
    weight = exponential(law.exponent(0, first), bits)
    ratio = exponential(law.exponent(first, first + width), bits)
    bend = exponential(
        law.exponent(first + width, first + 2 * width) - law.exponent(first, first + width), bits
    )
    weights = []
    while weight:
        weights.append(weight)
        weight = weight * ratio >> bits
        ratio = ratio * bend >> bits
    return weights


def _thresholds(law: _Discrete, shift: int, bits: int, guard: int = 96) -> list[int]:
    """floor(F(j)·2^bits) for the strips j, up to the first that is 2^bits - 1.

    Strip 2k holds the integers from k·2^shift on, strip 2k+1 is its mirror
    image at -1-z; a strip weighs as its member nearest to zero. F is the
    distribution function over the strips in this order.
    """
    work = bits + guard
    right = _heads(law, shift, 0, work)
    left = _heads(law, shift, 1, work)
    total = sum(right) + sum(left)
    # The errors of all entries, and the terms after the last: a geometric series at most,
    # whose sum is at most (1 + 1/x) times its first term, x the first exponent.
    terms = max(len(right), len(left)) + 1
    error = 10 * terms**2 * (terms + 2 + int(law.divisor) // (1 << shift * law.power))
    above = total + error
    slack = 3 * error << bits
    full = (1 << bits) - 1
    parts = accumulate(chain.from_iterable(zip_longest(right, left, fillvalue=0)))
    found = []
    threshold = 0
    while threshold != full:
        # F is at least part/above, and above that by less than slack/2^bits/above.
        threshold, rest = divmod(next(parts) << bits, above)
        if threshold != full and rest + slack >= above:
            return _thresholds(law, shift, bits, 2 * guard)
        found.append(threshold)
    return found


# Many at a time, in numpy.


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The distribution of the strips: by their first 16 bits where these decide, by 64 where not."""

    law: _Discrete
    shift: int
    lookup: NDArray[np.int16]
    thresholds: NDArray[np.uint64]

    def fill(self, out: NDArray[np.int64], source: Source) -> None:
        """Draw strips into ``out``: k for the strip 2k, -1-k for the strip 2k+1."""
        words = source.words(out.size, np.uint16)
        drawn = self.lookup.take(words)
        out[:] = drawn
        rest = np.flatnonzero(drawn == _OPEN)
        if rest.size:
            bits = words[rest].astype(np.uint64) << np.uint64(48)
            bits |= source.words(rest.size, np.uint64) >> np.uint64(16)
            index = np.searchsorted(self.thresholds, bits)
            out[rest] = _unfold(index)
            for i in np.flatnonzero(self.thresholds[index] == bits):
                out[rest[i]] = self.untie(int(bits[i]), source)

    def untie(self, value: int, source: Source) -> int:
        """The strip where the 64 bits ``value`` equal a threshold: more bits decide."""
        bits = 64
        while True:
            value = value << 64 | int.from_bytes(source.bytes(8), "little")
            bits += 64
            thresholds = _thresholds(self.law, self.shift, bits)
            index = bisect_left(thresholds, value)
            if thresholds[index] != value:
                return index >> 1 ^ -(index & 1)


def _unfold(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2, 3, ... to 0, -1, 1, -2, ..."""
    return index >> 1 ^ -(index & 1)


@lru_cache(maxsize=64)
def _table(law: _Discrete, shift: int) -> _Table:
    thresholds = np.array(_thresholds(law, shift, 64), np.uint64)
    buckets = (thresholds >> np.uint64(48)).astype(np.int64)
    index = np.searchsorted(buckets, np.arange(2**16))
    lookup = _unfold(index)
    lookup[buckets] = _OPEN
    table = _Table(law, shift, lookup.astype(np.int16), thresholds)
    table.lookup.setflags(write=False)
    table.thresholds.setflags(write=False)
    return table


def _many(law: _Discrete, size: int, source: Source) -> NDArray[np.int64]:
    table = _table(law, law.shift)
    out = np.empty(size, np.int64)
    if table.shift == 0:
        for start in range(0, size, BLOCK):
            table.fill(out[start : start + BLOCK], source)
        return out
    done = 0
    while done < size:
        need = size - done
        drawn = _strips(table, min(BLOCK, need + need // 32 + 16), source)[:need]
        out[done : done + drawn.size] = drawn
        done += drawn.size
    return out


def _strips(table: _Table, count: int, source: Source) -> NDArray[np.int64]:
    """Make ``count`` proposals; return those that are accepted.

    The weight of a strip is that of its member nearest to zero times its
    width; a member at distance step from there is accepted with exp(-gamma),
    gamma the exponent from there to the member: every integer is proposed and
    accepted in proportion to its probability.
    """
    shift = table.shift
    strip = np.empty(count, np.int64)
    table.fill(strip, source)
    # A word holds 16 bits for the acceptance and, apart from them, the step.
    words = (
        source.words(count, np.uint32).astype(np.int64)
        if shift <= 16
        else source.words(count, np.uint64).view(np.int64)
    )
    step = words >> 16 & ((1 << shift) - 1)
    sign = strip >> 63
    start = (strip ^ sign) << shift
    result = (start | step) ^ sign
    start -= sign
    gamma = table.law.exponents(start, step)
    coin = words & 0xFFFF
    # exp(-gamma) >= 1 - gamma decides for nearly all; a unit of the 16 bits is spared for rounding.
    rest = np.flatnonzero(coin > 65534.0 - 65536.0 * gamma)
    if rest.size == 0:
        return result
    bits = (words[rest].astype(np.uint64) << np.uint64(48)) | (
        source.words(rest.size, np.uint64) >> np.uint64(16)
    )
    gap = np.exp(-gamma[rest]) - bits * 2.0**-64
    accepted = np.ones(count, np.bool_)
    accepted[rest] = gap > 0
    for i in np.flatnonzero(np.abs(gap) < MARGIN):
        at = rest[i]
        exponent = table.law.exponent(int(start[at]), int(start[at]) + int(step[at]))
        accepted[at] = _accept(exponent, int(bits[i]), source)
    return result[accepted]


def _accept(exponent: Fraction, value: int, source: Source) -> bool:
    """Return whether the uniform number that starts with the 64 bits ``value`` is below exp(-exponent)."""
    bits = 64
    while True:
        value = value << 64 | int.from_bytes(source.bytes(8), "little")
        bits += 64
        bound = exponential(exponent, bits)
        if value < bound:
            return True
        if value >= bound + SLIP:
            return False
