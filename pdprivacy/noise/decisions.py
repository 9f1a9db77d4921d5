"""Decisions of known probability: in double precision where it can tell, in more digits where not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.noise.bits import Source

__all__ = ["BLOCK", "FEW", "MARGIN", "WIDEST", "Odds", "coins", "heads"]

WIDEST = 2**52  # keeps every draw within int64, but for an event rarer than exp(-2000)
FEW = 1024  # up to here drawing one by one costs less than building a table
BLOCK = 2**16  # draws at a time: temporaries stay in the cache
MARGIN = 2.0**-40  # far above the error of a double computation of a probability, about 2^-50

Odds: TypeAlias = Callable[[int], tuple[int, int, int, int]]
"""Least and greatest weight of heads, least and greatest weight of tails, times 2^bits, from the bits."""


def heads(odds: Odds, value: int, source: Source) -> bool:
    """Whether the uniform number that starts with the 64 bits ``value`` is below the share of heads.

    u < A/(A + B) is u·B < (1 - u)·A, compared at both ends of what is known of u, A and B. What
    comes out depends on the bits alone, whoever asked: more are drawn only where these leave it open.
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


def coins(
    probability: NDArray[np.float64], decide: Callable[[int, int], bool], source: Source
) -> NDArray[np.bool_]:
    """Independent coins that show heads with ``probability``, which double precision knows to a few bits.

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
