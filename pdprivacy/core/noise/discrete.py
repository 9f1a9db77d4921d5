"""The discrete laws, P(z) ∝ exp(-|z|^power / divisor) on all integers: Laplace and Gaussian.

Two more laws are made of Laplace noise: Laplace noise between bounds, without rejection, and the staircase.
The magnitude of a discrete Laplace draw is geometric, and a geometric number has no memory: less a bound
that it exceeds, and modulo any length, it is again geometric or geometric below that length, whatever is
known of the side. Folded at zero the draw itself is geometric: the number of the flat steps of a staircase,
each lower than the last by a factor exp(-epsilon).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain, zip_longest
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import whole
from pdprivacy.core.noise.bits import Pool, Source
from pdprivacy.core.noise.choice import BLOCK, FEW, MARGIN, WIDEST, Odds, heads, lazy_coins
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.types import Floats, Integers, Words

_TOP = 7  # strips are so wide that scale or sigma is less than 2^_TOP of them
_OPEN = np.iinfo(np.int16).min  # marks the buckets that 16 bits do not decide


def discrete_laplace(scale: Fraction, size: int, source: Source) -> Integers:
    """Exact independent draws of P(z) ∝ exp(-|z|/scale) on the integers.

    ``scale`` is any positive rational up to 2^52; the result has shape (size,).

    Raises
    ------
    ParameterError : scale outside (0, 2^52], or a negative size.

    Source: few draws by Canonne, Kamath, Steinke (2020), Algorithm 2; many by
    inversion with a guide table (Devroye 1986, III.2.4), in strips by rejection (II.3).

    >>> from pdprivacy.core.noise import source
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


def discrete_gaussian(variance: Fraction, size: int, source: Source) -> Integers:
    """Exact independent draws of P(z) ∝ exp(-z²/(2·variance)) on the integers.

    ``variance`` is the parameter sigma² (the variance of the draws is no
    larger), any positive rational up to 2^104; the result has shape (size,).

    Raises
    ------
    ParameterError : variance outside (0, 2^104], or a negative size.

    Source: few draws by Canonne, Kamath, Steinke (2020), Algorithm 3; many by
    inversion with a guide table (Devroye 1986, III.2.4), in strips by rejection (II.3).

    >>> from pdprivacy.core.noise import source
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

    def exponents(self, start: Integers, step: Integers) -> Floats:
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
    thresholds = []
    threshold = 0
    while threshold != full:
        # F is at least part/above, and above that by less than slack/2^bits/above.
        threshold, rest = divmod(next(parts) << bits, above)
        if threshold != full and rest + slack >= above:
            return _thresholds(law, shift, bits, 2 * guard)
        thresholds.append(threshold)
    return thresholds


# Many at a time, in numpy.


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The distribution of the strips: by their first 16 bits where these decide, by 64 where not."""

    law: _Discrete
    shift: int
    lookup: NDArray[np.int16]
    thresholds: Words

    def fill(self, out: Integers, source: Source) -> None:
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


def _unfold(index: Integers) -> Integers:
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


def _many(law: _Discrete, size: int, source: Source) -> Integers:
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


def _strips(table: _Table, count: int, source: Source) -> Integers:
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


# Laplace noise between bounds.

UNBOUNDED = 2**63 - 1
"""The distance to a side without a bound. A draw lies beyond it with probability below exp(-2000)."""

_STEEP = Fraction(4096)  # exp(-4096) is zero in double precision, and so are all smaller terms


def distances(below: ArrayLike, above: ArrayLike) -> tuple[Integers, Integers]:
    """Distances to both bounds, checked: whole numbers, not negative, of one shape (n,).

    Raises
    ------
    ParameterError : anything else.

    >>> distances([0, 2], [5, 5])[0]
    array([0, 2])
    """
    checked = []
    for name, value in (("below", below), ("above", above)):
        array = np.asarray(value)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu" or array.dtype == np.uint64:
            raise ParameterError(f"{name!r} must hold int64 distances (got dtype {array.dtype}).")
        if array.ndim != 1:
            raise ParameterError(f"{name!r} must have shape (n,) (got {array.ndim} dimensions).")
        if array.size and array.min() < 0:
            raise ParameterError(f"{name!r} must not hold negative distances.")
        checked.append(array.astype(np.int64, copy=False))
    if checked[0].shape != checked[1].shape:
        raise ParameterError("'below' and 'above' must have the same shape.")
    return checked[0], checked[1]


def truncated_laplace(scale: Fraction, below: ArrayLike, above: ArrayLike, source: Source) -> Integers:
    """Exact independent draws of P(z) ∝ exp(-|z|/scale) on the integers -below..above.

    ``scale`` is any positive rational up to 2^52. ``below`` and ``above`` are
    int64 distances of one shape (n,), zero or more, or UNBOUNDED; so is the result.

    A discrete Laplace draw within the bounds stays. Outside, what its
    magnitude exceeds its bound by is geometric and independent of all else:
    an exact coin draws the side in proportion to its probability, and modulo
    the length of that side this excess is the place on it.

    Raises
    ------
    ParameterError : scale outside (0, 2^52], negative distances, different shapes.

    Source: wrapping by the memorylessness of the geometric law (Devroye 1986, X.2.2).

    >>> from pdprivacy.core.noise import source
    >>> noise = truncated_laplace(Fraction(10), np.full(5000, 2), np.full(5000, UNBOUNDED), source(0))
    >>> int(noise.min()), bool(noise.max() > 20)
    (-2, True)
    """
    if not 0 < scale <= WIDEST:
        raise ParameterError(f"'scale' must be positive and at most 2**52 (got {scale}).")
    low, high = distances(below, above)
    if low.size <= FEW:
        return _few_between(Fraction(scale), low, high, source)
    drawn = discrete_laplace(scale, low.size, source)
    for start in range(0, drawn.size, BLOCK):
        part = slice(start, start + BLOCK)
        _fold(Fraction(scale), drawn[part], low[part], high[part], source)
    return drawn


def _few_between(scale: Fraction, below: Integers, above: Integers, source: Source) -> Integers:
    pool = Pool(source)
    t, s = scale.as_integer_ratio()
    rate = float(min(1 / scale, _STEEP))
    draws = []
    for low, high in zip(below.tolist(), above.tolist(), strict=True):
        z = pool.laplace(t, s)
        if not -low <= z <= high:
            excess = ~z - low if z < 0 else z - high - 1
            left = math.exp(-rate) * -math.expm1(-low * rate)
            right = -math.expm1(-(high + 1) * rate)
            value = pool.below(2**64)
            gap = left / (left + right) - value * 2.0**-64
            side = gap > 0 if abs(gap) >= MARGIN else heads(_sides(scale, low, high), value, source)
            z = ~(excess % low) if side else excess % (high + 1)
        draws.append(z)
    return np.array(draws, np.int64)


def _fold(
    scale: Fraction,
    draws: Integers,
    below: Integers,
    above: Integers,
    source: Source,
) -> None:
    """Replace those of the unbounded ``draws`` that lie outside."""
    # Where the bounds leave out most, all are folded: a magnitude is geometric also before it exceeds
    # anything. This must not depend on what was drawn.
    narrow = max(int(below.max()), int(above.max())) <= scale
    out = slice(None) if narrow else np.flatnonzero((draws < -below) | (draws > above))
    z, low, high = draws[out], below[out], above[out]
    if z.size == 0:
        return
    # Sides are masks of no bits or all, as np.where on random sides costs ten times as much; lengths are
    # unsigned, as one more than UNBOUNDED is a number too.
    left = low.view(np.uint64)
    right = high.view(np.uint64) + np.uint64(1)
    either = left ^ right
    sign = z >> 63
    excess = (z ^ sign).view(np.uint64)
    if not narrow:
        excess -= right ^ either & sign.view(np.uint64)
    rate = float(min(1 / scale, _STEEP))
    weight = np.expm1(low * -rate)
    weight *= math.exp(-rate)
    probability = weight / (weight + np.expm1(right * -rate))
    side = lazy_coins(
        probability,
        lambda i, value: heads(_sides(scale, int(low[i]), int(high[i])), value, source),
        source,
    )
    sign = -side.astype(np.int64)
    excess %= right ^ either & sign.view(np.uint64)
    draws[out] = excess.view(np.int64) ^ sign


def _sides(scale: Fraction, below: int, above: int) -> Odds:
    """Left against right: r(1 - r^below) against 1 - r^(above + 1), with r = exp(-1/scale)."""

    def weights(bits: int) -> tuple[int, int, int, int]:
        right = (1 << bits) - exponential((above + 1) / scale, bits)
        if below == 0:
            return 0, 0, max(0, right - SLIP), right
        left = exponential(1 / scale, bits) - exponential((below + 1) / scale, bits)
        return max(0, left - SLIP), left + SLIP, max(0, right - SLIP), right

    return weights


# The staircase.


def staircase(epsilon: Fraction, width: int, step: int, size: int, source: Source) -> Integers:
    """Exact independent draws of the discrete staircase law on the integers.

    P(z) ∝ exp(-epsilon·k) where k·width <= |z| < k·width + step, and
    exp(-epsilon·(k + 1)) where k·width + step <= |z| < (k + 1)·width.
    1 <= step <= width, all whole; the result has shape (size,).

    Magnitude and sign are drawn independently, and minus zero again, so that
    zero counts once. The number k of the magnitude is geometric, an exact coin with the
    odds step : (width - step)·exp(-epsilon) draws the part, and the place in
    it is uniform: nothing is rejected, however small the first part is.

    Raises
    ------
    ParameterError : epsilon not positive, step outside [1, width], width or width/epsilon above 2^52,
        negative size.

    Source: Geng, Kairouz, Oh, Viswanath (2015), Algorithm 1, on the integers.

    >>> from pdprivacy.core.noise import source
    >>> noise = staircase(Fraction(50), 100, 3, 2000, source(0))
    >>> np.unique(noise).tolist()
    [-2, -1, 0, 1, 2]
    """
    if not 0 < epsilon < math.inf:
        raise ParameterError(f"'epsilon' must be positive and finite (got {epsilon}).")
    eps = Fraction(epsilon)
    width, step, size = whole(width, "width"), whole(step, "step"), whole(size, "size", 0)
    if not 1 <= step <= width:
        raise ParameterError(f"'step' must be between 1 and 'width' (got {step} and {width}).")
    if width > WIDEST or width > WIDEST * eps:
        raise ParameterError("'width' and 'width'/'epsilon' must be at most 2**52.")
    if size <= FEW:
        return _few_stairs(eps, width, step, size, source)
    out = np.empty(size, np.int64)
    done = 0
    while done < size:
        # At most every second draw is minus zero.
        drawn = _block(eps, width, step, min(BLOCK, size - done + 16), source)[: size - done]
        out[done : done + drawn.size] = drawn
        done += drawn.size
    return out


def _first_share(epsilon: Fraction, width: int, step: int) -> float:
    """The probability of the first part, in double precision."""
    return step / (step + (width - step) * math.exp(-float(min(epsilon, Fraction(2000)))))


def _parts(epsilon: Fraction, width: int, step: int) -> Odds:
    """The first part against the second: step against (width - step)·exp(-epsilon)."""

    def weights(bits: int) -> tuple[int, int, int, int]:
        decay = exponential(epsilon, bits)
        return step << bits, step << bits, (width - step) * decay, (width - step) * (decay + SLIP)

    return weights


def _few_stairs(epsilon: Fraction, width: int, step: int, size: int, source: Source) -> Integers:
    pool = Pool(source)
    s, t = epsilon.as_integer_ratio()
    first = _first_share(epsilon, width, step)
    draws: list[int] = []
    while len(draws) < size:
        # Folded at zero a discrete Laplace draw is geometric (see `truncated_laplace`).
        k = pool.laplace(t, s)
        k ^= k >> 63
        value = pool.below(2**64)
        gap = first - value * 2.0**-64
        near = gap > 0 if abs(gap) >= MARGIN else heads(_parts(epsilon, width, step), value, source)
        z = k * width + (pool.below(step) if near else step + pool.below(width - step))
        if pool.below(2) == 0:
            draws.append(z)
        elif z:  # minus zero is zero: counted once
            draws.append(-z)
    return np.array(draws, np.int64)


def _block(epsilon: Fraction, width: int, step: int, count: int, source: Source) -> Integers:
    """Draw ``count`` magnitudes and signs; return those that are not minus zero."""
    k = discrete_laplace(1 / epsilon, count, source)
    k ^= k >> 63
    odds = _parts(epsilon, width, step)
    probability = np.full(count, _first_share(epsilon, width, step))
    near = lazy_coins(probability, lambda _, value: heads(odds, value, source), source)
    z = k * width
    z[near] += _uniform(step, int(near.sum()), source)
    far = np.flatnonzero(~near)
    z[far] += step + _uniform(width - step, far.size, source)
    negative = source.words(count, np.uint8) >> 7 == 1
    np.negative(z, out=z, where=negative)
    return np.asarray(z[(z != 0) | ~negative])


def _uniform(n: int, count: int, source: Source) -> Integers:
    """Uniform integers in [0, n): words at or above the last multiple of n are drawn again."""
    if count == 0:
        return np.zeros(0, np.int64)
    words = source.words(count, np.uint64)
    last = 2**64 // n * n
    if last < 2**64:
        words = words.copy()
        while (beyond := np.flatnonzero(words >= np.uint64(last))).size:
            words[beyond] = source.words(beyond.size, np.uint64)
    return (words % np.uint64(n)).astype(np.int64)
