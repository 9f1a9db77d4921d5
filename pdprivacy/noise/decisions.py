"""Exact coins of known probability, and parts of a whole that are drawn without replacement."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.errors import ParameterError
from pdprivacy.noise.bits import Source

__all__ = ["BLOCK", "FEW", "MARGIN", "WIDEST", "Odds", "coins", "draw_without_replacement", "heads"]
__all__ += ["lazy_coins", "shuffled_keys", "weighted_coins"]

WIDEST = 2**52  # keeps every draw within int64, but for an event rarer than exp(-2000)
FEW = 1024  # up to here drawing one by one costs less than building a table
BLOCK = 2**16  # draws at a time: temporaries stay in the cache
MARGIN = 2.0**-40  # far above the error of a double computation of a probability, about 2^-50

THROWN = 1 << 22
"""Coins at a time."""

WORD = 1 << 32

Odds: TypeAlias = Callable[[int], tuple[int, int, int, int]]
"""Function from a number of bits to bounds of the weights of heads and of tails, times 2^bits."""


def heads(odds: Odds, value: int, source: Source) -> bool:
    """Return whether the uniform number that starts with the 64 bits ``value`` is below the share of heads.

    u < A/(A + B) is u·B < (1 - u)·A, compared at both ends of what is known of u, A and B. The
    result depends on the bits alone: more are drawn only where these leave it open.
    """
    bits = 64
    while True:
        least, most, least_tails, most_tails = odds(bits + 128)
        beyond = (1 << bits) - value
        if (value + 1) * most_tails <= (beyond - 1) * least:
            return True
        if value * least_tails >= beyond * most:
            return False
        value = value << 64 | int.from_bytes(source.bytes(8), "little")
        bits += 64


def lazy_coins(
    probability: NDArray[np.float64], decide: Callable[[int, int], bool], source: Source
) -> NDArray[np.bool_]:
    """Independent coins that show heads with ``probability``, which doubles approximate to a few bits.

    Eight bits settle nearly all; ``decide(i, value)`` settles coin i where 64 bits are within the margin.
    """
    words = source.words(probability.size, np.uint8)
    place = 256 * probability
    shown = words < place
    rest = np.flatnonzero(np.abs(place - words - 0.5) <= 0.5 + 256 * MARGIN)
    if rest.size:
        bits = (words[rest].astype(np.uint64) << np.uint64(56)) | (
            source.words(rest.size, np.uint64) >> np.uint64(8)
        )
        gap = probability[rest] - bits * 2.0**-64
        shown[rest] = gap > 0
        for i in np.flatnonzero(np.abs(gap) < MARGIN):
            shown[rest[i]] = decide(int(rest[i]), int(bits[i]))
    return shown


def coins(n: int, probability: Fraction, source: Source) -> NDArray[np.bool_]:
    """(n,) independent coins, each True with exactly this probability.

    >>> from pdprivacy.noise import source
    >>> coins(3, Fraction(1), source(1)).tolist()
    [True, True, True]
    """
    if not 0 <= probability <= 1:
        raise ParameterError("A probability must be in [0, 1].")
    found = np.ones(n, dtype=bool)
    if probability == 1:
        return found
    sure, rest = divmod(probability * WORD, 1)
    for start in range(0, n, THROWN):
        words = source.words(min(THROWN, n - start), np.uint32)
        part = words < np.uint32(sure)
        for place in np.flatnonzero(words == np.uint32(sure)):  # further bits decide
            part[place] = source.bernoulli(rest.numerator, rest.denominator)
        found[start : start + len(part)] = part
    return found


def weighted_coins(probabilities: NDArray[np.float64], source: Source) -> NDArray[np.bool_]:
    """Independent coins, each True with exactly the probability that its double is, of at least 2**-11.

    >>> from pdprivacy.noise import source
    >>> weighted_coins(np.array([1 - 2**-40, 0.5]), source(1)).shape
    (2,)
    """
    if not ((probabilities >= 2.0**-11) & (probabilities < 1)).all():
        raise ParameterError("Probabilities must be in [2**-11, 1).")
    found = np.empty(len(probabilities), dtype=bool)
    for start in range(0, len(found), THROWN):
        part = probabilities[start : start + THROWN]
        # a double of at least 2**-11 is a whole number of 2**-64
        limits = (part * 2.0**64).astype(np.uint64)
        found[start : start + len(part)] = source.words(len(part), np.uint64) < limits
    return found


def shuffled_keys(n: int, source: Source) -> NDArray[np.uint64]:
    """(n,) distinct keys in an order that is any order with the same probability.

    >>> from pdprivacy.noise import source
    >>> len(set(shuffled_keys(5, source(1)).tolist()))
    5
    """
    while True:
        keys = source.words(n, np.uint64)
        ordered = np.sort(keys)
        if not (ordered[1:] == ordered[:-1]).any():  # all orders are alike, given that no two keys are
            return keys


def draw_without_replacement(n: int, size: int, source: Source) -> NDArray[np.bool_]:
    """(n,) of which ``size`` are True: any of these sets with the same probability.

    >>> from pdprivacy.noise import source
    >>> int(draw_without_replacement(10, 4, source(1)).sum())
    4
    """
    if not 0 <= size <= n:
        raise ParameterError("A part cannot be larger than the whole.")
    found = np.zeros(n, dtype=bool)
    if size:
        found[np.argpartition(shuffled_keys(n, source), size - 1)[:size]] = True
    return found
