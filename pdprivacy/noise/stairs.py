"""The discrete staircase law: flat steps, each lower than the last by a factor exp(-epsilon)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pdprivacy.checks import whole
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.noise.bits import Pool, Source
from pdprivacy.noise.decisions import BLOCK, FEW, MARGIN, WIDEST, Odds, coins, heads
from pdprivacy.noise.discrete import discrete_laplace

__all__ = ["staircase"]


def staircase(epsilon: Fraction, width: int, step: int, size: int, source: Source) -> NDArray[np.int64]:
    """Exact independent draws of the discrete staircase law on the integers.

    P(z) ∝ exp(-epsilon·k) where k·width <= |z| < k·width + step, and
    exp(-epsilon·(k + 1)) where k·width + step <= |z| < (k + 1)·width.
    1 <= step <= width, all whole; the result has shape (size,).

    Magnitude and sign are drawn independently, and minus zero again, so that
    zero counts once. Of the magnitude k is geometric, an exact coin with the
    odds step : (width - step)·exp(-epsilon) draws the part, and the place in
    it is uniform: nothing is rejected, however small the first part is.

    Raises
    ------
    ParameterError : epsilon not positive, step outside [1, width], width or width/epsilon above 2^52,
        negative size.

    Source: Geng, Kairouz, Oh, Viswanath (2015), Algorithm 1, on the integers.

    >>> from pdprivacy.noise import source
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
        return _few(eps, width, step, size, source)
    out = np.empty(size, np.int64)
    done = 0
    while done < size:
        # At most every second draw is minus zero.
        drawn = _block(eps, width, step, min(BLOCK, size - done + 16), source)[: size - done]
        out[done : done + drawn.size] = drawn
        done += drawn.size
    return out


def _first(epsilon: Fraction, width: int, step: int) -> float:
    """The probability of the first part, in double precision."""
    return step / (step + (width - step) * math.exp(-float(min(epsilon, Fraction(2000)))))


def _parts(epsilon: Fraction, width: int, step: int) -> Odds:
    """The first part against the second: step against (width - step)·exp(-epsilon)."""

    def weights(bits: int) -> tuple[int, int, int, int]:
        decay = exponential(epsilon, bits)
        return step << bits, step << bits, (width - step) * decay, (width - step) * (decay + SLIP)

    return weights


def _few(epsilon: Fraction, width: int, step: int, size: int, source: Source) -> NDArray[np.int64]:
    pool = Pool(source)
    s, t = epsilon.as_integer_ratio()
    first = _first(epsilon, width, step)
    drawn: list[int] = []
    while len(drawn) < size:
        # Folded at zero a discrete Laplace draw is geometric (see truncated_laplace).
        k = pool.laplace(t, s)
        k ^= k >> 63
        value = pool.below(2**64)
        gap = first - value * 2.0**-64
        near = gap > 0 if abs(gap) >= MARGIN else heads(_parts(epsilon, width, step), value, source)
        z = k * width + (pool.below(step) if near else step + pool.below(width - step))
        if pool.below(2) == 0:
            drawn.append(z)
        elif z:  # minus zero is zero: counted once
            drawn.append(-z)
    return np.array(drawn, np.int64)


def _block(epsilon: Fraction, width: int, step: int, count: int, source: Source) -> NDArray[np.int64]:
    """Draw ``count`` magnitudes and signs; return those that are not minus zero."""
    k = discrete_laplace(1 / epsilon, count, source)
    k ^= k >> 63
    odds = _parts(epsilon, width, step)
    probability = np.full(count, _first(epsilon, width, step))
    near = coins(probability, lambda _, value: heads(odds, value, source), source)
    z = k * width
    z[near] += _uniform(step, int(near.sum()), source)
    far = np.flatnonzero(~near)
    z[far] += step + _uniform(width - step, far.size, source)
    negative = source.words(count, np.uint8) >> 7 == 1
    np.negative(z, out=z, where=negative)
    return np.asarray(z[(z != 0) | ~negative])


def _uniform(n: int, count: int, source: Source) -> NDArray[np.int64]:
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
