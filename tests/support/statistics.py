"""Statistical verdicts with one false-alarm rate, shared out over the whole suite.

Every verdict below raises a false alarm with probability ``FALSE_ALARM`` at most. The suite takes about
a thousand of them, so that all together raise one with probability ``SUITE_FALSE_ALARM`` at most, by the
union bound. Seeds are fixed: an alarm appears when draws change, and stays until they change again.

A distribution is its cumulative distribution function, vectorised over an array of values. It may be
continuous, discrete, or have atoms (as clamped noise has at its bounds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special, stats

SUITE_FALSE_ALARM = 1e-3
VERDICTS = 1000
FALSE_ALARM = SUITE_FALSE_ALARM / VERDICTS

FEWEST = 20  # expected draws of a cell of Pearson's test
LEVELS = np.arange(1, 40) / 40  # of the quantiles that bound its cells

Distribution = Callable[[np.ndarray], Any]


def accepts_only(
    draws: Any, distribution: Callable[[float], Distribution], factors: Sequence[float] = (1, 0.9, 1.1)
) -> None:
    """Assert that draws fit ``distribution(factor)`` for the first of the factors and for no other.

    The usual factors multiply the claimed scale: the same test that accepts the claimed scale rejects one
    that is 10 % smaller or larger.
    """
    for index, factor in enumerate(factors):
        p = p_value(draws, distribution(factor))
        fits = p > FALSE_ALARM
        assert fits == (index == 0), f"p-value {p:.3g} at {float(factor):g} times the claimed scale"


def accepts(draws: Any, distribution: Distribution) -> bool:
    """Return whether draws may come from a distribution."""
    return p_value(draws, distribution) > FALSE_ALARM


def p_value(draws: Any, distribution: Distribution) -> float:
    """Return the p-value of Pearson's test over the cells between 40-quantiles of the distribution.

    A value that carries much of the probability has a cell of its own, so that discrete distributions
    over few values are compared value by value.
    """
    draws = np.asarray(draws).ravel()
    edges = _edges(draws, distribution)
    below = np.asarray(distribution(edges), float)
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    return counts_p_value(counts, np.diff(below, prepend=0.0, append=1.0))


def counts_p_value(counts: Any, probabilities: Any) -> float:
    """Return the p-value of Pearson's test of counts per cell; neighbouring rare cells are merged."""
    counts, expected = np.asarray(counts), np.asarray(probabilities, float)
    if counts[expected <= 0].any():
        return 0.0
    expected = expected * (counts.sum() / expected.sum())
    # a merged cell ends where FEWEST draws are expected since the last end; a rest joins the last cell
    starts, waiting = [0], 0.0
    for index, draws in enumerate(expected):
        waiting += draws
        if waiting >= FEWEST:
            starts.append(index + 1)
            waiting = 0.0
    observed, expected = (np.add.reduceat(cells, starts[:-1]) for cells in (counts, expected))
    if len(observed) < 2:
        raise ValueError("Too few draws, or a single value: there is nothing to compare.")
    return float(
        special.gammaincc((len(observed) - 1) / 2, ((observed - expected) ** 2 / expected).sum() / 2)
    )


def accepts_counts(counts: Any, probabilities: Any) -> bool:
    """Return whether counts per category may come from these probabilities."""
    return counts_p_value(counts, probabilities) > FALSE_ALARM


def accepts_share(hits: int, trials: int, probability: float, alternative: str = "two-sided") -> bool:
    """Return whether so many of independent trials may succeed with this probability (exact test)."""
    return float(stats.binomtest(int(hits), int(trials), probability, alternative).pvalue) > FALSE_ALARM


def accepts_same(first: Any, second: Any) -> bool:
    """Return whether two samples may come from the same continuous distribution (Kolmogorov-Smirnov)."""
    return float(stats.ks_2samp(np.ravel(first), np.ravel(second)).pvalue) > FALSE_ALARM


def discrete(values: Any, weights: Any) -> Distribution:
    """Return the distribution over increasing values with probabilities in proportion to weights."""
    values = np.asarray(values)
    below = np.concatenate([[0.0], np.cumsum(weights) / np.sum(weights)])
    return lambda x: below[np.searchsorted(values, x, side="right")]


def _edges(draws: np.ndarray, distribution: Distribution) -> np.ndarray:
    """Return values on both sides of each quantile, found by bisection; each ends a cell that includes it."""
    whole = draws.dtype.kind in "iub"
    least, most = (int if whole else float)(draws.min()), (int if whole else float)(draws.max())
    apart = 1 if whole else max(most - least, abs(most), abs(least)) * 2.0**-40
    low, high = np.repeat(least - apart, len(LEVELS)), np.repeat(most + apart, len(LEVELS))
    while (high - low > apart).any():
        middle = low + (high - low) // 2 if whole else low + (high - low) / 2
        above = np.asarray(distribution(middle), float) >= LEVELS
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.unique(np.concatenate([low, high]))
