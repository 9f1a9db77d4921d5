"""Exact choices: coins of known probability, parts of a whole, and one of many weighted candidates.

Parts are drawn without replacement; rounding never decides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from pdprivacy.core.noise.bits import Source
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.types import Floats, Integers, Mask, Words

WIDEST = 2**52
"""The widest noise, in steps: every draw is within int64, but for an event rarer than exp(-2000)."""

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


def lazy_coins(probability: Floats, decide: Callable[[int, int], bool], source: Source) -> Mask:
    """Independent coins that show heads with ``probability``, which doubles approximate to a few bits.

    Eight bits settle nearly all; ``decide(i, value)`` settles coin i where 64 bits are within the margin.
    """
    words = source.words(probability.size, np.uint8)
    threshold = 256 * probability
    shown = words < threshold
    rest = np.flatnonzero(np.abs(threshold - words - 0.5) <= 0.5 + 256 * MARGIN)
    if rest.size:
        bits = (words[rest].astype(np.uint64) << np.uint64(56)) | (
            source.words(rest.size, np.uint64) >> np.uint64(8)
        )
        gap = probability[rest] - bits * 2.0**-64
        shown[rest] = gap > 0
        for i in np.flatnonzero(np.abs(gap) < MARGIN):
            shown[rest[i]] = decide(int(rest[i]), int(bits[i]))
    return shown


def coins(n: int, probability: Fraction, source: Source) -> Mask:
    """(n,) independent coins, each True with exactly this probability.

    >>> from pdprivacy.core.noise import source
    >>> coins(3, Fraction(1), source(1)).tolist()
    [True, True, True]
    """
    if not 0 <= probability <= 1:
        raise ParameterError("A probability must be in [0, 1].")
    shown = np.ones(n, dtype=bool)
    if probability == 1:
        return shown
    sure, rest = divmod(probability * WORD, 1)
    for start in range(0, n, THROWN):
        words = source.words(min(THROWN, n - start), np.uint32)
        part = words < np.uint32(sure)
        for index in np.flatnonzero(words == np.uint32(sure)):  # further bits decide
            part[index] = source.bernoulli(rest.numerator, rest.denominator)
        shown[start : start + len(part)] = part
    return shown


def weighted_coins(probabilities: Floats, source: Source) -> Mask:
    """Independent coins, each True with exactly the probability that its double is, of at least 2**-11.

    >>> from pdprivacy.core.noise import source
    >>> weighted_coins(np.array([1 - 2**-40, 0.5]), source(1)).shape
    (2,)
    """
    if not ((probabilities >= 2.0**-11) & (probabilities < 1)).all():
        raise ParameterError("Probabilities must be in [2**-11, 1).")
    shown = np.empty(len(probabilities), dtype=bool)
    for start in range(0, len(shown), THROWN):
        part = probabilities[start : start + THROWN]
        # a double of at least 2**-11 is a whole number of 2**-64
        limits = (part * 2.0**64).astype(np.uint64)
        shown[start : start + len(part)] = source.words(len(part), np.uint64) < limits
    return shown


def shuffled_keys(n: int, source: Source) -> Words:
    """(n,) distinct keys in an order that is any order with the same probability.

    >>> from pdprivacy.core.noise import source
    >>> len(set(shuffled_keys(5, source(1)).tolist()))
    5
    """
    while True:
        keys = source.words(n, np.uint64)
        ordered = np.sort(keys)
        if not (ordered[1:] == ordered[:-1]).any():  # all orders are alike, given that no two keys are
            return keys


def draw_without_replacement(n: int, size: int, source: Source) -> Mask:
    """(n,) of which ``size`` are True: any of these sets with the same probability.

    >>> from pdprivacy.core.noise import source
    >>> int(draw_without_replacement(10, 4, source(1)).sum())
    4
    """
    if not 0 <= size <= n:
        raise ParameterError("A part cannot be larger than the whole.")
    drawn = np.zeros(n, dtype=bool)
    if size:
        drawn[np.argpartition(shuffled_keys(n, source), size - 1)[:size]] = True
    return drawn


# One of many candidates, with exponential weights.


_OF_POWER, _OF_WEIGHT = 2.0**-51, 2.0**-49
"""Bounds of relative errors in double precision: of an exponent, and of a weight beside it."""

_LAST, _VANISHING = 1000.0, 2.0**-1000
"""An exponent beyond which exp underflows, and the most that a weight then lacks per unit of length."""

_BLOCK = 128
"""The number of terms that are summed in a row, then of blocks of them, so that few roundings add up."""

_PATIENCE = 192
"""The number of bits of a uniform number after which the candidates of `Rest` are looked at."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Candidates that are drawn with negligible probability, computed only when a draw may reach them.

    ``length``: an upper bound of their total length. ``exponent``: a lower bound of their exponents, not
    below the least of the others.
    ``load()``: their lengths and exponents.
    """

    length: int
    exponent: int
    load: Callable[[], tuple[Integers, Integers]]


class Weights:
    """Candidates i with probability proportional to ``lengths[i] * exp(-rate * exponents[i])``.

    Parameters
    ----------
    lengths : (n,) int64, none negative, one positive at least, their sum below 2**62.
    exponents : (n,) int64, below 2**62 in size; only their differences matter.
    rate : a positive rational.
    rest : more candidates, numbered from n on as they are loaded.

    Raises
    ------
    ParameterError : another shape or dtype, a negative length, no positive one, a rate not positive, a rest
        that is more likely.
    """

    def __init__(
        self, lengths: Integers, exponents: Integers, rate: Fraction, rest: Rest | None = None
    ) -> None:
        lengths, exponents = np.asarray(lengths), np.asarray(exponents)
        for name, array in (("lengths", lengths), ("exponents", exponents)):
            if array.dtype != np.int64 or array.ndim != 1 or array.shape != lengths.shape:
                raise ParameterError(f"{name!r} must be an int64 array of shape (n,), one shape for both.")
        if not lengths.max(initial=0) > 0 or lengths.min() < 0:
            raise ParameterError("'lengths' must hold a positive number and no negative one.")
        if rate <= 0:
            raise ParameterError(f"'rate' must be positive (got {rate}).")
        self._rate, self._rest = Fraction(rate), rest
        self._set(lengths, exponents)
        if rest is not None and rest.exponent < self._least:
            raise ParameterError("The 'rest' must not have a lower exponent than all other candidates.")

    def _set(self, lengths: Integers, exponents: Integers) -> None:
        self._lengths, self._exponents = lengths, exponents
        self._least = int(exponents[lengths > 0].min())
        weights, powers = self._weigh()
        self._sums, roundings = _running(weights)
        whole = float(self._sums[-1])
        relative = _OF_WEIGHT + roundings * 2.0**-53
        vanishing = float(lengths.sum(dtype=np.float64)) * _VANISHING
        self._error = 2 * (whole * relative + float(weights @ powers) * _OF_POWER + vanishing)
        self._last = int(np.flatnonzero(lengths)[-1])

    def estimates(self) -> Floats:
        """The weights in double precision, the least exponent taken as zero; the rest left out."""
        return self._weigh()[0]

    def _weigh(self) -> tuple[Floats, Floats]:
        """The weights, and the powers that they are of."""
        # a run of length 0 may have any exponent
        powers = np.maximum(self._exponents - self._least, 0).astype(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            powers *= float(self._rate)
            np.minimum(powers, _LAST, out=powers)
            return np.asarray(self._lengths * np.exp(-powers), np.float64), powers

    def draw(self, source: Source) -> int:
        """A candidate, exactly: double precision decides where its error leaves no doubt, integers else.

        A uniform number u chooses the first candidate whose running sum exceeds u times the total.
        The candidate depends on the bits of u alone; more bits are drawn only where those drawn so far
        leave it open.

        Source: lazy comparison of a uniform number (Knuth, Yao 1976).
        """
        value = int.from_bytes(source.bytes(8), "little")
        candidate = self._quick(value)
        return self._exact(value, source) if candidate is None else candidate

    def _quick(self, value: int) -> int | None:
        """The candidate of the 64 bits ``value`` if double precision can tell it."""
        sums, error = self._sums, self._error
        whole, beyond = float(sums[-1]), self._beyond()
        # the candidate is looked up among rounded sums, and taken only if their errors cannot matter
        low = value * 2.0**-64 * max(whole - error, 0.0) * (1 - 2.0**-48)
        high = (value + 1) * 2.0**-64 * (whole + error + beyond) * (1 + 2.0**-48)
        candidate = int(np.searchsorted(sums, low, side="right"))
        if candidate > self._last:
            return None
        below = float(sums[candidate - 1]) if candidate else 0.0
        clear_below = below == 0.0 and not self._lengths[:candidate].any()
        clear_above = candidate == self._last and self._rest is None
        if (clear_below or below + error <= low) and (clear_above or high <= float(sums[candidate]) - error):
            return candidate
        return None

    def _beyond(self) -> float:
        """An upper bound of the weight of the rest."""
        if self._rest is None:
            return 0.0
        gap = float(self._rest.exponent - self._least) * float(self._rate)
        with np.errstate(under="ignore"):
            decay = float(np.exp(-gap * (1 - 2.0**-40)))
        return self._rest.length * (decay * (1 + 2.0**-40) + _VANISHING)

    def _exact(self, value: int, source: Source) -> int:
        """The candidate of the uniform number that starts with the 64 bits ``value``, by integers."""
        bits = 64
        while True:
            candidate = self._decided(value, bits)
            if candidate is not None:
                return candidate
            if self._rest is not None and bits >= _PATIENCE:
                lengths, exponents = self._rest.load()
                self._rest = None
                self._set(
                    np.concatenate([self._lengths, lengths]), np.concatenate([self._exponents, exponents])
                )
                continue
            value = value << 64 | int.from_bytes(source.bytes(8), "little")
            bits += 64

    def _decided(self, value: int, bits: int) -> int | None:
        """The candidate, if the first ``bits`` bits and as many digits of the weights tell it."""
        least, most = self._bounds(bits + 64)
        all_least, all_most = least[-1], most[-1]
        if self._rest is not None:
            gap = self._rest.exponent - self._least
            all_most += self._rest.length * (exponential(self._rate * gap, bits + 64) + SLIP)
        beyond = (1 << bits) - value

        def below(candidate: int) -> bool:
            """Return whether u times the total is below this running sum, for sure."""
            return (value + 1) * (all_most - most[candidate]) <= (beyond - 1) * least[candidate]

        def above(candidate: int) -> bool:
            """Return whether it is not, for sure."""
            return value * (all_least - least[candidate]) >= beyond * most[candidate]

        first = bisect_left(range(self._last + 1), True, key=below)
        if first > self._last:  # only the rest can lie beyond
            return None
        return first if first == 0 or above(first - 1) else None

    def _bounds(self, bits: int) -> tuple[list[int], list[int]]:
        """Running sums of the weights times 2**bits, from below and from above."""
        powers, which = np.unique(self._exponents, return_inverse=True)
        # candidates without length have exponents of no meaning, which may be below the least
        exact = [exponential(self._rate * max(power - self._least, 0), bits) for power in powers.tolist()]
        slips = [0 if power <= self._least else SLIP for power in powers.tolist()]
        least = [n * exact[i] for n, i in zip(self._lengths.tolist(), which.tolist(), strict=True)]
        slip = [n * slips[i] for n, i in zip(self._lengths.tolist(), which.tolist(), strict=True)]
        lower = list(accumulate(least))
        return lower, [bound + more for bound, more in zip(lower, accumulate(slip), strict=True)]


def _running(terms: Floats) -> tuple[Floats, int]:
    """Running sums, and how many roundings each has at most, in units of 2**-53 of the whole."""
    if len(terms) <= _BLOCK:
        return np.cumsum(terms), len(terms)
    blocks = -(-len(terms) // _BLOCK)
    inner = np.zeros((blocks, _BLOCK))
    inner.ravel()[: len(terms)] = terms
    np.cumsum(inner, axis=1, out=inner)
    before, roundings = _running(inner[:, -1])
    inner[1:] += before[:-1, np.newaxis]
    return inner.ravel()[: len(terms)], roundings + _BLOCK + 1


def pick(lengths: Integers, exponents: Integers, rate: Fraction, source: Source) -> int:
    """An index i with probability proportional to ``lengths[i] * exp(-rate * exponents[i])``, exactly.

    As `Weights`, for one draw.

    >>> from pdprivacy.core.noise import source
    >>> pick(np.array([1, 0, 5]), np.array([0, 0, 10**6]), Fraction(1, 3), source(0))
    0
    """
    return Weights(lengths, exponents, rate).draw(source)


def flips(gaps: Integers, rate: Fraction, source: Source) -> Mask:
    """Independent coins that show heads with probability ``exp(-rate * gaps)``, exactly; gaps not negative.

    >>> from pdprivacy.core.noise import source
    >>> flips(np.array([0, 0, 10**6]), Fraction(1, 3), source(0)).tolist()
    [True, True, False]
    """
    with np.errstate(over="ignore", under="ignore"):
        probability = np.exp(-gaps.astype(np.float64) * float(rate))

    def decide(index: int, value: int) -> bool:
        power = rate * int(gaps[index])

        def odds(bits: int) -> tuple[int, int, int, int]:
            least = exponential(power, bits)
            most = least + SLIP if power else least
            return least, most, (1 << bits) - most, (1 << bits) - least

        return heads(odds, value, source)

    return lazy_coins(probability, decide, source)
