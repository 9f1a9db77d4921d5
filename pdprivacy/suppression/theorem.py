"""A bound for every mechanism that is run on what a suppression keeps, by trying all small databases.

Source: "The adverse effects of omitting records in differential privacy", Theorems 5.3 and B.6.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from pdprivacy.checks import function, whole
from pdprivacy.errors import ParameterError
from pdprivacy.privacy import Rational, check_delta
from pdprivacy.suppression.decimals import check_epsilon
from pdprivacy.suppression.finite import LONGEST, Kept, Suppression, checked_law, neighbor_pairs

__all__ = ["SuppressionBound", "suppression_bound"]

Halves: TypeAlias = Mapping[Kept, tuple[float, float]]
"""For each set of the common records, its probability without and with the record that one has more."""


class SuppressionBound(NamedTuple):
    """An epsilon and a delta for which a mechanism on what a suppression keeps is private."""

    epsilon: float
    delta: float


def suppression_bound(
    universe: Iterable[Hashable],
    size: int,
    suppression: Suppression,
    epsilon: Rational,
    delta: Rational = 0,
) -> SuppressionBound:
    """A bound for every mechanism of loss (epsilon, delta) on what a suppression keeps of small databases.

    For neighbours ``add_remove`` of at most ``size`` records. Each kept set that has no counterpart in the
    neighbour is assigned the nearest one that has; where there is none of these (the support condition)
    this is Theorem 5.3, else Theorem B.6, whose epsilon or delta may be useless. Epsilon is the logarithm of
    the maxima, of which one side is printed without.

    Source: "The adverse effects of omitting records in differential privacy", Theorems 5.3 and B.6.

    Raises
    ------
    ParameterError : as `neighbor_pairs`; epsilon not positive or so large that floats overflow, delta not in
        [0, 1), probabilities that do not add up to 1.

    >>> from pdprivacy.suppression import independent
    >>> keeps = independent(lambda database: [0.5] * len(database))
    >>> bound = suppression_bound("ab", 3, keeps, epsilon=math.log(3), delta=0.01)
    >>> round(math.exp(bound.epsilon), 9), round(bound.delta, 9)  # those of Poisson sampling
    (2.0, 0.005)
    """
    level, slack = check_epsilon(epsilon), float(check_delta(delta))
    if level * (whole(size, "size", 0) + 1) > LONGEST:
        raise ParameterError("'epsilon' times 'size' is too large for floats.", "a smaller epsilon.")
    ratio = math.exp(level)
    most, slacks = 1.0, 0.0
    function(suppression, "suppression")
    for left, right in neighbor_pairs(universe, size):
        smaller = checked_law(suppression(left), "suppression")
        larger = _split(checked_law(suppression(right), "suppression"), len(left))
        for factor, extra in (_removed(smaller, larger, ratio), _added(smaller, larger, ratio)):
            most, slacks = max(most, factor), max(slacks, extra)
    return SuppressionBound(math.log(most), slack * slacks)


def _split(law: Mapping[Kept, float], last: int) -> Halves:
    """For each set of the common records, its probability without and with the last record."""
    common = {kept - {last} for kept in law}
    return {kept: (law.get(kept, 0.0), law.get(kept | {last}, 0.0)) for kept in common}


def _removed(smaller: Mapping[Kept, float], larger: Halves, ratio: float) -> tuple[float, float]:
    """e^epsilon and the sum beside delta for the smaller database against the larger one."""
    weights, extra = dict.fromkeys(larger, 0.0), 0.0
    for kept, mass in smaller.items():
        nearest, apart = _nearest(kept, larger)
        weights[nearest] += ratio**apart * mass
        extra += mass * _geometric(ratio, apart)
    factor = 0.0
    for kept, weight in weights.items():
        without, with_last = larger[kept]
        share = weight / (without + with_last / ratio)
        factor = max(factor, share)
        extra += share * with_last / ratio
    return factor, extra


def _added(smaller: Mapping[Kept, float], larger: Halves, ratio: float) -> tuple[float, float]:
    """e^epsilon and the sum beside delta for the larger database against the smaller one."""
    weights, extra = dict.fromkeys(smaller, 0.0), 0.0
    for kept, (without, with_last) in larger.items():
        nearest, apart = _nearest(kept, smaller)
        weights[nearest] += ratio**apart * (without + ratio * with_last)
        extra += without * _geometric(ratio, apart) + with_last * _geometric(ratio, apart + 1)
    return max(weight / smaller[kept] for kept, weight in weights.items()), extra


def _nearest(kept: Kept, possible: Iterable[Kept]) -> tuple[Kept, int]:
    """The possible set that differs from this one in the fewest records, and in how many."""
    best = min(possible, key=lambda other: (len(kept ^ other), sorted(other)))
    return best, len(kept ^ best)


def _geometric(ratio: float, terms: int) -> float:
    return math.fsum(ratio**power for power in range(terms))
