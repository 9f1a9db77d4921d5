"""Laws that discrete Laplace noise is folded into: between bounds, without rejection, and the staircase.

The magnitude of a discrete Laplace draw is geometric, and a geometric number
has no memory: less a bound that it exceeds, and modulo any length, it is again
geometric or geometric below that length, whatever is known of the side. Folded
at zero the draw itself is geometric: the number of the flat steps of a
staircase, each lower than the last by a factor exp(-epsilon).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.checks import whole
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.noise.bits import Pool, Source
from pdprivacy.noise.decisions import BLOCK, FEW, MARGIN, WIDEST, Odds, heads, lazy_coins
from pdprivacy.noise.discrete import discrete_laplace

__all__ = ["UNBOUNDED", "distances", "staircase", "truncated_laplace"]

UNBOUNDED = 2**63 - 1
"""The distance to a side without a bound. A draw lies beyond it with probability below exp(-2000)."""

_STEEP = Fraction(4096)  # exp(-4096) is zero in double precision, and so are all smaller terms


def distances(below: ArrayLike, above: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def truncated_laplace(
    scale: Fraction, below: ArrayLike, above: ArrayLike, source: Source
) -> NDArray[np.int64]:
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

    >>> from pdprivacy.noise import source
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


def _few_between(
    scale: Fraction, below: NDArray[np.int64], above: NDArray[np.int64], source: Source
) -> NDArray[np.int64]:
    pool = Pool(source)
    t, s = scale.as_integer_ratio()
    rate = float(min(1 / scale, _STEEP))
    drawn = []
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
        drawn.append(z)
    return np.array(drawn, np.int64)


def _fold(
    scale: Fraction,
    drawn: NDArray[np.int64],
    below: NDArray[np.int64],
    above: NDArray[np.int64],
    source: Source,
) -> None:
    """Replace those of the unbounded draws ``drawn`` that lie outside."""
    # Where the bounds leave out most, all are folded: a magnitude is geometric also before it exceeds
    # anything. This must not depend on what was drawn.
    narrow = max(int(below.max()), int(above.max())) <= scale
    out = slice(None) if narrow else np.flatnonzero((drawn < -below) | (drawn > above))
    z, low, high = drawn[out], below[out], above[out]
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
    drawn[out] = excess.view(np.int64) ^ sign


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


def staircase(epsilon: Fraction, width: int, step: int, size: int, source: Source) -> NDArray[np.int64]:
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


def _few_stairs(epsilon: Fraction, width: int, step: int, size: int, source: Source) -> NDArray[np.int64]:
    pool = Pool(source)
    s, t = epsilon.as_integer_ratio()
    first = _first_share(epsilon, width, step)
    drawn: list[int] = []
    while len(drawn) < size:
        # Folded at zero a discrete Laplace draw is geometric (see `truncated_laplace`).
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
    probability = np.full(count, _first_share(epsilon, width, step))
    near = lazy_coins(probability, lambda _, value: heads(odds, value, source), source)
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
