"""Disclosure risk by Monte Carlo: draw counts, release them and read them, many times.

A draw takes the true counts from the model of the measure, adds the noise of the mechanism, applies a
postprocessing step if there is one, and lets the intruder read the result. Simulation serves where no
sum does, as for constraints that tie cells together, and as a check of the exact risks.

======================  =================================================================
measure                 true counts of a non-empty cell with n records
======================  =================================================================
"local"                 the observed counts
"expected"              multinomial(n, observed proportions)
"shrinkage"             multinomial(n, p) with p ~ Dirichlet(alpha)
"marginal"              multinomial(m, observed proportions) with m ~ sizes
"marginal_shrinkage"    multinomial(m, p) with p ~ Dirichlet(alpha), m ~ sizes
======================  =================================================================

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately
sanitized frequency distribution", definitions 6 to 10; section 6 for the other attacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import function, whole
from pdprivacy.core.noise import RandomState, simulator
from pdprivacy.errors import ParameterError, got
from pdprivacy.text.progress import shown
from pdprivacy.types import Floats, Integers, Mask

if TYPE_CHECKING:
    from pdprivacy.risk.compositions import Average
    from pdprivacy.risk.likelihood import Sizes


Measure: TypeAlias = Literal["local", "expected", "shrinkage", "marginal", "marginal_shrinkage"]
Attack: TypeAlias = Literal["homogeneity", "plurality", "probabilistic"]

MOST_DRAWS = 10**6
"""The largest number of tables."""

NUMBERS = 2**18
"""The number of counts drawn at a time; a dozen arrays of this size take 25 MB."""
LONG = 50
"""The number of batches of `NUMBERS` counts that take about a second."""


class Simulated(NamedTuple):
    """A simulated risk and the standard error of the simulation; floats, or arrays of one shape.

    A standard error of 0 means that all draws gave the same risk, not that the risk is certain: an event
    that happens less than once in ``draws`` is easily missed.
    """

    risk: Any
    standard_error: Any


def simulate(
    table: ArrayLike,
    mechanism: Any,
    measure: Measure = "local",
    average: Average | None = "cells",
    *,
    alpha: ArrayLike | None = None,
    sizes: Sizes | None = None,
    partial: bool = False,
    attack: Attack = "homogeneity",
    threshold: float = 0.5,
    draws: int = 1000,
    postprocess: Callable[[Floats], ArrayLike] | None = None,
    rng: RandomState = None,
    progress: bool | None = None,
) -> Simulated:
    """Simulate the disclosure risk of a table.

    Parameters
    ----------
    table : (N, K) whole numbers, one row per cell of the quasi-identifiers, one column per label.
    mechanism : a mechanism of `pdprivacy.mechanism`, bounded or not, a distribution of `scipy.stats`, or
        any object with a method ``sample(values, rng)`` or ``rvs``.
    measure : the model of the true counts, see the top of this page. "shrinkage" needs ``alpha`` (K,),
        "marginal" needs ``sizes``, and "marginal_shrinkage", which draws every non-empty cell as a
        generic cell, needs both. Empty cells stay empty.
    average : the average over the non-empty cells, with equal weights ("cells") or weighted by their
        observed records ("records"), or None: the risk of each cell, NaN for an empty cell. A cell that a
        draw makes empty counts with risk 0.
    attack : the conclusion of the intruder for the records of a cell. "homogeneity": the only label with
        a released count of at least ``threshold``; right if the cell holds it, or, with ``partial``,
        for the share of its records that have it. The other two read counts as the nearest whole
        numbers, at least 0, and are right for the share of the records that have the label:
        "plurality" concludes the label of the largest count, one at random on a tie; "probabilistic"
        concludes a random label, with the shares of the counts as probabilities. Both conclude nothing
        if all counts are 0.
    draws : the number of simulated tables, at least 2.
    postprocess : a function of the noisy (N, K) table, float64, that returns a table of its shape; it is
        called once per draw. Without it, cells are simulated separately, with bounded memory for tables of
        any size.
    progress : whether to show a progress bar, which needs tqdm; None: in long calls of interactive sessions
        (``pdprivacy.text.progress``).

    Raises
    ------
    ParameterError : invalid ``draws`` or ``rng``, a mechanism that cannot be drawn from, or a ``postprocess``
        that does not return a table of this shape. No message holds a count. `pdprivacy.risk.dr_ha` checks
        the other arguments.
    MissingExtraError : ``progress=True`` without tqdm.

    >>> from scipy.stats import laplace
    >>> risk, error = simulate([[2, 1, 1]], laplace(scale=100), draws=4000, rng=1)
    >>> bool(abs(risk - 0.372) < 4 * error)
    True
    """
    counts: Integers = np.asarray(table)
    prior = np.asarray(alpha, dtype=np.float64) if "shrinkage" in measure else None
    whole(draws, "draws", 2, MOST_DRAWS, "draws=1000.")
    if postprocess is not None:
        function(postprocess, "postprocess")
    _check_drawable(mechanism)
    tables = _Tables(measure, prior, sizes, _unrestricted(mechanism), postprocess, simulator(rng))

    filled: Mask = np.asarray(counts.any(axis=1))
    kept = counts if postprocess is not None else counts[filled]  # noise of empty cells changes no other
    totals = kept.sum(axis=1)
    weights = totals.astype(np.float64) if average == "records" else (totals > 0).astype(np.float64)
    weights /= weights.sum()

    batches = _batches(kept.shape, draws, whole_tables=postprocess is not None)
    per_draw = np.zeros(draws)
    per_cell = _Moments(len(kept))
    long = postprocess is not None or len(batches) > LONG
    for block, batch in shown(batches, len(batches), "simulated tables", progress, long=long, timed=True):
        true, noisy = tables.draw(kept[block], batch.stop - batch.start)
        risks = _risks(attack, true, noisy, threshold, partial)
        if average is None:
            per_cell.add(block, risks)
        else:
            per_draw[batch] += risks @ weights[block]

    if average is not None:
        error = float(per_draw.std(ddof=1)) / math.sqrt(draws)
        return Simulated(float(per_draw.mean()), error)
    among = filled[filled] if postprocess is None else filled
    moments = np.full((2, len(counts)), np.nan)
    moments[:, filled] = np.stack(per_cell.mean_and_error(draws))[:, among]
    return Simulated(*moments)


def _cells_at_once(labels: int) -> int:
    """Return how many cells with this many labels are drawn at a time; an interrupt waits for them."""
    return max(1, NUMBERS // labels)


def _batches(shape: tuple[int, ...], draws: int, *, whole_tables: bool) -> list[tuple[slice, slice]]:
    """Return the blocks of cells and of draws that are simulated together, of at most `NUMBERS` counts."""
    cells, labels = shape
    rows = cells if whole_tables else min(cells, _cells_at_once(labels))
    each = min(draws, max(1, NUMBERS // (rows * labels)))
    if whole_tables:  # their function may be slow, and the bar must move
        each = min(each, math.ceil(draws / 50))
    return [
        (slice(row, min(row + rows, cells)), slice(draw, min(draw + each, draws)))
        for row in range(0, cells, rows)
        for draw in range(0, draws, each)
    ]


class _Moments:
    """Mean and standard error of the risk of each cell, over batches of draws."""

    def __init__(self, cells: int) -> None:
        self.near = np.full(cells, np.nan)  # a number near the mean, around which squares lose no digits
        self.sums = np.zeros(cells)
        self.squares = np.zeros(cells)

    def add(self, block: slice, risks: Floats) -> None:
        """Add the risks (draws, cells) of a block of cells."""
        near = self.near[block]
        near[:] = np.where(np.isnan(near), risks.mean(axis=0), near)
        away = risks - near
        self.sums[block] += away.sum(axis=0)
        self.squares[block] += np.square(away).sum(axis=0)

    def mean_and_error(self, draws: int) -> tuple[Floats, Floats]:
        """Return the mean and the standard error for all cells, after ``draws`` draws of each."""
        variance = np.maximum(self.squares - np.square(self.sums) / draws, 0.0) / (draws - 1)
        return self.near + self.sums / draws, np.sqrt(variance / draws)


# Draws of counts.


@dataclass(frozen=True, slots=True)
class _Tables:
    """Random tables: true counts of a measure, and released counts with noise and postprocessing."""

    measure: str
    alpha: Floats | None
    sizes: Sizes | None
    source: Any
    postprocess: Callable[[Floats], ArrayLike] | None
    generator: np.random.Generator

    def draw(self, counts: Integers, draws: int) -> tuple[Integers, Floats]:
        """Return true and released counts (draws, N, K) of cells with observed counts (N, K)."""
        piece = _cells_at_once(counts.shape[1])
        pieces = []
        for row in range(0, len(counts), piece):
            true = self._true(counts[row : row + piece], draws)
            pieces.append((true, _noisy(self.source, true, self.generator)))
        true, noisy = pieces[0]
        if len(pieces) > 1:
            true, noisy = (np.concatenate(arrays, axis=1) for arrays in zip(*pieces, strict=True))
        if self.postprocess is not None:
            noisy = np.stack([_postprocessed(self.postprocess, table) for table in noisy])
        return true, noisy

    def _true(self, counts: Integers, draws: int) -> Integers:
        """Return true counts (draws, N, K) of cells with observed counts (N, K)."""
        totals = counts.sum(axis=1)
        shape = draws, len(counts)
        if self.measure == "local":
            return np.broadcast_to(counts, (draws, *counts.shape))
        size = np.broadcast_to(totals, shape)
        if self.sizes is not None and "marginal" in self.measure:
            # the rest of the probability belongs to size 0, the last of the values
            values = np.append(np.asarray(self.sizes.values, dtype=np.int64), 0)
            index = np.searchsorted(np.cumsum(self.sizes.chances), self.generator.random(shape), side="right")
            size = np.where(totals > 0, values[index], 0)
        if self.alpha is not None:
            shares = _dirichlet(self.alpha, shape, self.generator)
        else:
            shares = counts / np.maximum(totals, 1)[:, np.newaxis]
            shares[totals == 0, 0] = 1.0
        return np.asarray(self.generator.multinomial(size, shares))


def _dirichlet(alpha: Floats, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Draw proportions (..., K) by logarithms, because for tiny alpha all gamma variables underflow to 0."""
    # a gamma variable of shape a is one of shape a + 1 times a uniform one to the power 1 / a
    logs = np.log(generator.standard_gamma(alpha + 1, (*shape, len(alpha))))
    logs -= generator.standard_exponential(logs.shape) / alpha
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _check_drawable(mechanism: Any) -> None:
    able = callable(getattr(mechanism, "sample", None)) or callable(getattr(mechanism, "rvs", None))
    if isinstance(mechanism, type) or not able:
        kind = mechanism.__name__ if isinstance(mechanism, type) else got(mechanism)
        raise ParameterError(
            "A simulation draws from 'mechanism', so it must have a method 'sample(values, rng)' or "
            f"'rvs(size=..., random_state=...)' (got {kind}).",
            "pdprivacy.mechanism.Laplace(epsilon=1, sensitivity=1), or scipy.stats.norm(scale=2).",
        )


def _unrestricted(mechanism: Any) -> Any:
    """Return the same noise for any number of values.

    ``l0_sensitivity`` of a mechanism determines the cost of a sample of several values; it does not change
    the draws of a calibrated mechanism.
    """
    if hasattr(mechanism, "__dataclass_fields__") and getattr(mechanism, "l0_sensitivity", 1) is None:
        return replace(mechanism, l0_sensitivity=1)  # the scale was found for one moved number, too
    return mechanism


def _noisy(mechanism: Any, true: Integers, generator: np.random.Generator) -> Floats:
    """Return the noisy counts of ``true`` counts, of the same shape."""
    if callable(getattr(mechanism, "rvs", None)):
        noisy = true + np.asarray(mechanism.rvs(size=true.shape, random_state=generator))
    elif type(mechanism).__module__.startswith("scipy."):  # whose newer distributions take a shape
        noisy = true + np.asarray(mechanism.sample(true.shape, rng=generator))
    else:
        noisy = np.asarray(mechanism.sample(true, generator))
    if noisy.shape != true.shape:
        raise ParameterError("The 'sample' of a mechanism must return one number for each value.")
    return np.asarray(noisy, dtype=np.float64)


def _postprocessed(postprocess: Callable[[Floats], ArrayLike], noisy: Floats) -> Floats:
    returned = postprocess(noisy)
    try:
        table = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape != noisy.shape or not np.isfinite(table).all():
        raise ParameterError(
            "'postprocess' must return a table of finite numbers, of the shape of its argument.",
            "postprocess=lambda noisy: noisy.clip(0).",
        )
    return table


# Readings of released counts.


def _risks(attack: str, true: Integers, noisy: Floats, threshold: float, partial: bool) -> Floats:
    """Return (draws, N), the share of each cell's records for which the conclusion is right."""
    chance = ATTACKS[attack](noisy, threshold)
    if attack == "homogeneity" and not partial:
        return np.asarray((chance * (true > 0)).sum(axis=-1))
    return np.asarray((chance * true).sum(axis=-1) / np.maximum(true.sum(axis=-1), 1))


def _as_read(noisy: Floats) -> Floats:
    """Return released counts as an intruder reads them: whole and not negative."""
    return np.maximum(np.floor(noisy + 0.5), 0.0)


def _homogeneity(noisy: Floats, threshold: float) -> Floats:
    """Return the probabilities to conclude each label: 1 for a label that is the only one seen."""
    seen = noisy >= threshold
    return np.asarray(seen & (seen.sum(axis=-1, keepdims=True) == 1), dtype=np.float64)


def _plurality(noisy: Floats, _: float) -> Floats:
    """Return the probabilities to conclude each label: shared equally by the labels seen most often."""
    read = _as_read(noisy)
    most = read.max(axis=-1, keepdims=True)
    best = (read == most) & (most > 0)
    return np.asarray(best / np.maximum(best.sum(axis=-1, keepdims=True), 1))


def _probabilistic(noisy: Floats, _: float) -> Floats:
    """Return the probabilities to conclude each label: its share of the counts."""
    read = _as_read(noisy)
    return np.asarray(read / np.maximum(read.sum(axis=-1, keepdims=True), 1.0))


ATTACKS: dict[str, Callable[[Floats, float], Floats]] = {
    "homogeneity": _homogeneity,
    "plurality": _plurality,
    "probabilistic": _probabilistic,
}
"""The functions that return the probability to conclude each label, from noisy counts (..., K)."""
