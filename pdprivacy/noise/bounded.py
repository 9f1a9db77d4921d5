"""Discrete Laplace noise between bounds, without rejection: what lies outside is folded back.

The magnitude of a discrete Laplace draw is geometric, and a geometric number
has no memory: less a bound that it exceeds, and modulo any length, it is again
geometric or geometric below that length, whatever is known of the side.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.noise.bits import Pool, Source
from pdprivacy.noise.decisions import BLOCK, FEW, MARGIN, WIDEST, Odds, coins, heads
from pdprivacy.noise.discrete import discrete_laplace

__all__ = ["UNBOUNDED", "distances", "truncated_laplace"]

UNBOUNDED = 2**63 - 1
"""The distance to a side without a bound. A draw lies beyond it with probability below exp(-2000)."""

_STEEP = Fraction(4096)  # exp(-4096) is zero in double precision, and so is what lies beyond it


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
        return _few(Fraction(scale), low, high, source)
    drawn = discrete_laplace(scale, low.size, source)
    for start in range(0, drawn.size, BLOCK):
        part = slice(start, start + BLOCK)
        _fold(Fraction(scale), drawn[part], low[part], high[part], source)
    return drawn


def _few(
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
    side = coins(
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
