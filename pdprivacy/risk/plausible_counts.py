"""Plausible numbers of records behind released counts, drawn from these counts and the law of their noise.

A released count m is n + noise for a number of records n. Taken as it is, noise makes counts of labels that
nobody has positive, so that cells with one label look mixed, and the disclosure risk is underestimated.
Here n is drawn from its distribution given m, under a prior p that all counts of a table share. The prior is
estimated from the released counts by steps of expectation and maximization:

    p(n) <- (sum over counts of Pr(n | m) + PRIOR [n = 0]) / (number of counts + PRIOR)

It weighs 0 as four counts, because most labels of a cell are held by nobody; large
tables outweigh it. A few steps from a flat prior keep it smooth where a table has few counts.

Sources: Robbins (1956), "An empirical Bayes approach to statistics"; Rubin (1987), "Multiple imputation for
nonresponse in surveys".
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pdprivacy.core.noise import simulator
from pdprivacy.types import Floats, Integers

PRIOR, STEPS = 4.0, 5
"""The weight of the prior at 0, in counts, and the number of steps of its estimation."""

DRAWN = 32
"""The number of drawn counts, at least: a small table is drawn several times."""

MANY, LEVELS = 10_000, 256
"""The number of drawn counts above which quantiles are random, and the number of these quantiles."""

BEYOND, STEPS_IN_DEVIATION = 8, 16
"""Counts above so many standard deviations of the noise stay; and the steps of wide noise in one of them."""


def plausible(
    counts: Floats, std: float, cdf: Callable[[Floats], Floats], *, nonnegative: bool = False
) -> Integers:
    """Return plausible numbers of records (draws, ...) behind released counts (...).

    ``std``, ``cdf``: the standard deviation and the distribution function of the noise. ``nonnegative``:
    whether counts below 0 were released as 0. Equal released counts share the quantiles of their
    distribution, so that little is left to chance; the draws are the same for the same counts.

    >>> from pdprivacy.mechanism import Geometric
    >>> noise = Geometric(epsilon=3, sensitivity=1)
    >>> plausible(np.array([90.0, 0.0, 80.0, -1.0]), noise.std, noise.cdf).mean(axis=0).round()
    array([90.,  0., 80.,  0.])
    """
    step = max(1, round(std / STEPS_IN_DEVIATION))
    drawn = np.rint(counts).astype(np.int64).ravel()
    steps = np.maximum(np.rint(drawn / step), -math.ceil(BEYOND * std / step)).astype(np.int64)
    near = np.flatnonzero(steps <= math.ceil(BEYOND * std / step) + 2)
    steps = steps[near]
    values = np.arange(steps.min(initial=0), steps.max(initial=0) + 1)
    kinds = steps - values[0]
    draws = max(1, math.ceil(DRAWN / max(drawn.size, 1)))
    table = np.clip(np.tile(drawn, (draws, 1)), 0, None)
    if near.size:
        chances = _given(
            values,
            np.bincount(kinds, minlength=len(values)),
            std / step,
            _masses(cdf, step),
            nonnegative=nonnegative,
        )
        table[:, near] = step * _draws(chances, np.tile(kinds, draws)).reshape(draws, -1)
    if not table.any():
        table = np.clip(drawn, 0, None)[np.newaxis]
    return table.reshape(-1, *counts.shape)


def _masses(cdf: Callable[[Floats], Floats], step: int) -> Callable[[Integers], Floats]:
    """Return the function from a number of steps to the probability of this noise, rounded to steps."""
    return lambda noise: np.diff(cdf((np.append(noise, noise[-1] + 1) - 0.5) * step))


def _given(
    values: Integers,
    numbers: Integers,
    std: float,
    masses: Callable[[Integers], Floats],
    *,
    nonnegative: bool,
) -> Floats:
    """Return the distribution (values, records) of the number of records, given each released count."""
    records = np.arange(max(int(values[-1]), 0) + math.ceil(4 * std) + 2)
    noise = np.arange(int(values[0]) - len(records) + 1, int(values[-1]) + 1)
    mass = np.maximum(masses(noise), 1e-300)
    law = np.cumsum(mass) if nonnegative else mass
    at = values[:, np.newaxis] - records - noise[0]
    likelihood = np.where((values <= 0)[:, np.newaxis], law[at], mass[at])
    prior = np.full(len(records), 0.5 / len(records))
    prior[0] += 0.5
    for _ in range(STEPS):
        prior = numbers @ _normal(likelihood * prior)
        prior[0] += PRIOR
        prior /= prior.sum()
    return _normal(likelihood * prior)


def _normal(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _draws(chances: Floats, kinds: Integers) -> Integers:
    """Return a draw for each of ``kinds``, rows of ``chances``.

    Draws of a row are at evenly spaced quantiles of it, or many at random ones of LEVELS.
    """
    sums, rows = np.cumsum(chances, axis=1), np.arange(len(chances))
    ends, most = sums / sums[:, -1:] + rows[:, np.newaxis], chances.shape[1] - 1
    if len(kinds) > MANY:
        quantiles = rows[:, np.newaxis] + (np.arange(LEVELS) + 0.5) / LEVELS
        drawn = np.searchsorted(ends.ravel(), quantiles) - rows[:, np.newaxis] * chances.shape[1]
        levels = np.clip(drawn, 0, most)
        return np.asarray(levels[kinds, simulator(0).integers(0, LEVELS, len(kinds))])
    shuffled = simulator(0).permutation(len(kinds))
    order = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    numbers = np.bincount(kinds, minlength=len(chances))
    rank = np.arange(len(kinds)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    quantiles = np.empty(len(kinds))
    quantiles[order] = kinds[order] + (rank + 0.5) / numbers[kinds[order]]
    drawn = np.searchsorted(ends.ravel(), quantiles) - kinds * chances.shape[1]
    return np.asarray(np.clip(drawn, 0, most))
