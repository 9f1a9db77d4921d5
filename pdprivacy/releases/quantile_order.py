"""Quantiles of one column in the order of their shares, and how many ranks they are off.

Each quantile is drawn by itself, so a higher one may come out below a lower one. Sorting the drawn numbers is
post-processing: it costs nothing. Let L(x) records be below a number x and R(x) up to it. The distance of x
to a rank T is max(L(x) - T, T - R(x), 0), the error in rank of the mechanism. Let x_1, ..., x_k be drawn for
ranks T_1 <= ... <= T_k, each at a distance of at most e, and let y_1 <= ... <= y_k be the sorted numbers.

- At least one of x_1, ..., x_j is not below y_j, the j-th smallest number: x_i, say, with i <= j. Hence
  L(y_j) - T_j <= L(x_i) - T_i <= e.
- At least one of x_j, ..., x_k is not above y_j: x_i, say, with i >= j. Hence
  T_j - R(y_j) <= T_i - R(x_i) <= e.

So no sorted number is farther from its rank than e. By the union bound, all k drawn numbers are within the
ranks that each exceeds with a probability of at most 5 % / k, with a probability of at least 95 %. The
sorted numbers are then within the largest of these k bounds.

A minimum or maximum (``q`` of 0 or 1) has a fixed rank r from the end, which may be beyond that of a quantile
of few records. It does not move quantiles, but becomes the least number x of all that were drawn: not above
the drawn minimum, so that L(x) - r is at most what it was, and r - R(x) <= r. The same holds from the other
end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdprivacy.core.mechanisms.exponential import ExponentialMechanism
from pdprivacy.core.statistics import Quantile
from pdprivacy.types import Floats, Integers


def in_order(choices: Sequence[Quantile], q: Floats, steps: Integers) -> Integers:
    """Return the drawn steps of the quantiles of a column in the order of ``q``, group by group.

    The numbers of the quantiles are sorted. Those of minima and maxima become the least and the largest of
    all.

    Parameters
    ----------
    choices : the quantiles of the column.
    q : their shares as the result is labelled by them.
    steps : (choices, groups) the drawn steps.
    """
    ordered = steps.copy()
    ranking = np.argsort(q, kind="stable")
    inner = [at for at in ranking.tolist() if choices[at].end is None]
    ordered[inner] = np.sort(steps[inner], axis=0)
    for at, choice in enumerate(choices):
        if choice.end is not None:
            ordered[at] = (np.min if choice.end == "lower" else np.max)(steps, axis=0)
    return ordered


def ranks_in_order(pairs: Sequence[tuple[Quantile, ExponentialMechanism]], level: float) -> list[float]:
    """Return how many ranks each of the ordered numbers of a column is off at most, at this level.

    With weights it is a sum of weights, up to their rounding. The proof is in the docstring of the module.

    ``pairs``: the quantiles of the column and their mechanisms.
    """
    sorted_quantiles = sum(choice.end is None for choice, _ in pairs)
    together = 1 - (1 - level) / max(sorted_quantiles, 1)
    drawn = [
        mechanism.shortfall(choice.candidates, together if choice.end is None else level) * choice.unit
        for choice, mechanism in pairs
    ]
    quantiles = [off for off, (choice, _) in zip(drawn, pairs, strict=True) if choice.end is None]
    largest = max(quantiles, default=0.0)
    return [
        largest if choice.end is None else max(off, float(choice.rank(mechanism.scale)))
        for off, (choice, mechanism) in zip(drawn, pairs, strict=True)
    ]
