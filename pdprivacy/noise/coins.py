"""Coins that are thrown all at once, and parts of a whole that are drawn without replacement."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pdprivacy.errors import ParameterError
from pdprivacy.noise.bits import Source

__all__ = ["coins", "draw_without_replacement", "shuffled_keys", "weighted_coins"]

THROWN = 1 << 22
"""Coins at a time."""

WORD = 1 << 32


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
