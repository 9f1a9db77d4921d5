"""Partition selection: labels that nobody declared, found with the largest possible probability.

A record has at most one label, and a label is found by coins of its own. Between neighbours the count of one
label moves by one (of two labels under "replace_one").
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np

from pdprivacy.checks import one_of
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import Approx, Neighbors, Pure, Rational, check_delta, loss, positive
from pdprivacy.errors import ParameterError
from pdprivacy.exact import SLIP, exponential
from pdprivacy.types import Integers, settle

BITS = 192
WHOLE = 1 << BITS
"""Probabilities are whole multiples of 2**-192."""

RESERVE = Fraction(1, 2**100)
"""The share of delta that pays for the rounding of the masses."""

LARGEST = Fraction(1000)
"""A larger epsilon has the masses of this one: 192 bits hold no smaller probability than e^-134."""

MOST_MASSES = 2**18
"""The largest number of entries of a table."""

AT_ONCE = 1 << 16
"""The number of labels that are drawn at a time."""


@dataclass(frozen=True)
class PartitionSelection:
    """Find a label of n records with the largest probability pi(n) that (epsilon, delta) allows.

    ``pi(0) = 0``, and pi(n) is the least of ``e^epsilon pi(n - 1) + delta``,
    ``1 - e^-epsilon (1 - pi(n - 1) - delta)`` and 1 (Desfontaines, Voss, Gipson, Mandayam 2022,
    "Differentially private partition selection", Theorem 1: no other rule finds a label with a larger
    probability).

    One draw decides for a label, and may release its count, too. Let d(j) = pi(j) - pi(j - 1), j = 1, ..., K
    with pi(K) = 1, be masses; they sum to 1. A label of n records draws j with probability d(j), and is found
    if j <= n, which has probability pi(n). The released count is n + X with the noise X = k + 1 - j; this is
    above k if and only if the label is found.

    Proof, for masses d(1), ..., d(K) of sum 1, d(K + 1) = 0, and a number r with 1 <= r <= e^epsilon. A label
    of n records releases the count k + t, t = 1, ..., n, with probability d(n + 1 - t), and nothing with
    probability H(n) = sum of d(i) over i > n. The hockey-stick divergence is the sum over the outputs of the
    positive parts of P(output) - r Q(output).

    - From n + 1 to n records: the count k + n + 1 has d(1) against 0, the other counts have d(j + 1) against
      d(j), and nothing has H(n + 1) <= H(n). So it is at most d(1) + sum over j of (d(j + 1) - r d(j))+.
    - From n to n + 1 records: the counts have d(j) against d(j + 1) for j <= n, and for nothing
      H(n) - r H(n + 1) is the sum of d(i) - r d(i + 1) over i > n. So it is at most the sum over
      j = 1, ..., K of (d(j) - r d(j + 1))+, whose last term is d(K).

    Both sums are checked to be at most delta, in whole numbers, for the very masses that are drawn. For the
    exact recurrence both are delta: its masses grow by e^epsilon and then shrink by it. Here the recurrence
    runs in whole multiples of 2**-192, rounded down, with a rational r <= e^epsilon and at
    delta (1 - 2**-100); the rest of delta pays for the differences of rounded numbers.

    Labels draw independently, and one record moves the count of one label, so the loss of a label is that of
    the release. Whether counts are shown does not matter: the labels follow from the counts. A label without
    records is never found, as j >= 1.

    Under "replace_one", one count falls and one rises. Each label has half of epsilon and of delta, and the
    losses of the two add up (basic composition).

    Parameters
    ----------
    epsilon, delta : the loss; ``delta`` must be positive.
    neighbors : "add_remove" or "replace_one".

    Raises
    ------
    ParameterError : delta is 0, or too small for epsilon and 192 bits; or epsilon is so small that the table
        has more than 2**18 entries.

    >>> selection = PartitionSelection(1, 1e-6)
    >>> selection.probability(1), selection.probability(30)
    (1e-06, 1.0)
    >>> [round(selection.probability(n), 3) for n in (12, 14, 16)]
    [0.095, 0.7, 0.959]
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors

    def __init__(self, epsilon: Rational, delta: Rational, neighbors: Neighbors = "add_remove") -> None:
        settle(
            self,
            epsilon=positive(epsilon, "epsilon"),
            delta=check_delta(delta),
            neighbors=one_of(neighbors, "neighbors", ("add_remove", "replace_one")),
        )
        if self.delta == 0:
            raise ParameterError(
                "'delta' must be positive to find labels (got 0): without it a label could show one record.",
                "delta=1e-6, of a budget that has a delta.",
            )
        _masses(self.epsilon / self.changes, self.delta / self.changes)

    @property
    def changes(self) -> int:
        """The number of labels whose counts differ between neighbours."""
        return 2 if self.neighbors == "replace_one" else 1

    @property
    def loss(self) -> Pure | Approx:
        """The privacy loss of all labels together."""
        return loss(self.epsilon, self.delta)

    @property
    def masses(self) -> tuple[int, ...]:
        """The masses d(1), ..., d(K), in multiples of 2**-192."""
        return _masses(self.epsilon / self.changes, self.delta / self.changes)

    @cached_property
    def cumulative(self) -> tuple[int, ...]:
        """The probabilities pi(1), ..., pi(K), in multiples of 2**-192."""
        return tuple(accumulate(self.masses))

    @property
    def certain(self) -> int:
        """The number of records from which on a label is always found."""
        return len(self.masses)

    @property
    def threshold(self) -> int:
        """The number k that all released counts exceed; the noise is as symmetric about 0 as it can be."""
        return (self.certain - 1) // 2

    @property
    def scale(self) -> float:
        """The number of records over which a mass changes by the factor e."""
        return float(self.changes / self.epsilon)

    @cached_property
    def std(self) -> float:
        """The standard deviation of the noise of a count before labels are left out."""
        noise = [self.threshold + 1 - j for j in range(1, self.certain + 1)]
        mean = Fraction(sum(x * d for x, d in zip(noise, self.masses, strict=True)), WHOLE)
        square = Fraction(sum(x * x * d for x, d in zip(noise, self.masses, strict=True)), WHOLE)
        return math.sqrt(square - mean * mean)

    def probability(self, count: int) -> float:
        """Return the probability with which a label of this many records is found."""
        if count <= 0:
            return 0.0
        return self.cumulative[min(count, self.certain) - 1] / WHOLE

    def plus_minus(self, level: float) -> int:
        """Return the least half width in which the noise of a count lies with probability ``level``."""
        middle, inside, half = self.threshold + 1, 0, 0  # the noise middle - j
        while True:
            ends = {middle - half, middle + half}
            inside += sum(self.masses[j - 1] for j in ends if 1 <= j <= self.certain)
            if inside >= level * WHOLE:
                return half
            half += 1

    def draw(self, counts: Integers, source: Source) -> Integers:
        """Return the noisy count of each label, and 0 for labels that are not found.

        The draws are exact: 192 uniform bits are compared with the probabilities. ``counts``: (n,), in an
        order that does not depend on the order of the records.
        """
        first = np.array([value >> BITS - 64 for value in self.cumulative[:-1]], dtype=np.uint64)
        noisy = np.zeros(len(counts), dtype=np.int64)
        for start in range(0, len(counts), AT_ONCE):
            exact = counts[start : start + AT_ONCE]
            words = source.words(3 * len(exact), np.uint64).reshape(-1, 3)
            reached = np.searchsorted(first, words[:, 0], side="left")
            for at in np.flatnonzero(reached != np.searchsorted(first, words[:, 0], side="right")):
                high, middle, low = map(int, words[at])
                reached[at] = bisect_right(self.cumulative, high << 128 | middle << 64 | low)
            drawn = reached + 1
            noisy[start : start + AT_ONCE] = np.where(drawn <= exact, exact + (self.threshold + 1 - drawn), 0)
        return noisy


@lru_cache(maxsize=32)
def _masses(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """Return checked masses of the optimal recurrence, in multiples of 2**-192; see `PartitionSelection`."""
    epsilon = min(epsilon, LARGEST)
    _check_size(epsilon, delta)
    bits = BITS + 16 + math.ceil(epsilon * 2)
    inverse = exponential(epsilon, bits) + SLIP  # at least e^-epsilon 2^bits
    rate = (1 << 2 * bits) // inverse  # r 2^bits, at most e^epsilon 2^bits
    slack = math.floor(delta * WHOLE)
    growth = math.floor(delta * (1 - RESERVE) * WHOLE)
    masses, reached = [], 0
    while reached < WHOLE:
        upper = WHOLE - -(-(WHOLE - reached - growth) * inverse >> bits)
        after = min((reached * rate >> bits) + growth, upper, WHOLE)
        if after <= reached or WHOLE - reached <= growth:
            after = WHOLE
        masses.append(after - reached)
        reached = after
    if max(excesses(masses, rate, bits)) > slack:
        raise ParameterError(
            "'delta' is too small for this epsilon and probabilities of 192 bits.", "delta=1e-12."
        )
    return tuple(masses)


def excesses(masses: Sequence[int], rate: int, bits: int) -> tuple[int, int]:
    """Return bounds of both hockey-stick divergences of neighbours, in multiples of 2**-192.

    ``rate``: r 2**bits, where r is at most e^epsilon.
    """
    up = masses[0] + sum(max(0, after - (before * rate >> bits)) for before, after in pairwise(masses))
    down = masses[-1] + sum(max(0, before - (after * rate >> bits)) for before, after in pairwise(masses))
    return up, down


def _check_size(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse an epsilon whose table would have more than 2**18 entries."""
    rate = float(epsilon)
    odds = rate + math.log(-math.expm1(-rate)) - math.log(2 * max(float(delta), 1e-300))
    half = np.logaddexp(0, odds) / rate  # log(1 + (e^epsilon - 1) / (2 delta)) / epsilon
    if 2 * half > MOST_MASSES:
        raise ParameterError(
            "'epsilon' is too small to find labels: the table of probabilities would have more than "
            f"{MOST_MASSES:,} entries.",
            "epsilon=0.01.",
        )
