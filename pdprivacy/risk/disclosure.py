"""The disclosure risk of a table of counts: one function for every measure, method and attack."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.checks import flag, one_of, real
from pdprivacy.core.noise import RandomState, simulator
from pdprivacy.errors import ParameterError
from pdprivacy.risk import exact_risk
from pdprivacy.risk.attacks import plurality_risk, probabilistic_risk
from pdprivacy.risk.compositions import AVERAGES, Average, Cells, HasCdf, Reading, checked_counts, readings
from pdprivacy.risk.likelihood import SizeModel, Sizes, checked_alpha, size_distribution
from pdprivacy.risk.monte_carlo import Attack, Measure, Simulated, simulate
from pdprivacy.types import Floats, Integers, settle

Method: TypeAlias = Literal["exact", "published", "monte_carlo"]

MOST_RECORDS = {"expected": 10**10, "shrinkage": 10**7, "marginal": 10**7, "marginal_shrinkage": 10**7}
"""The largest number of records of a cell, by measure; the sums are too long for more."""

QUICK = 1 << 12
"""The number of counts times noises up to which starting threads takes longer than it saves."""


def dr_ha(
    counts: ArrayLike | Cells,
    mechanism: HasCdf | Sequence[HasCdf],
    measure: Measure = "local",
    average: Average | None = "cells",
    method: Method = "exact",
    alpha: float | ArrayLike | Literal["flat"] | None = None,
    sizes: SizeModel = "observed",
    *,
    zero_truncated: bool = True,
    partial: bool = False,
    attack: Attack = "homogeneity",
    threshold: float = 0.5,
    draws: int = 1000,
    postprocess: Callable[[Floats], Any] | None = None,
    rng: RandomState = None,
    progress: bool = False,
) -> Any:
    """Return the disclosure risk from homogeneity attacks (DR-HA) on a table of counts with noise.

    The risk of a cell is the probability that its noisy counts read as homogeneous, with exactly one count
    of at least ``threshold``, in a label that the cell truly holds. The risk is computed from the
    confidential counts, and is as confidential as they are.

    Parameters
    ----------
    counts : (N, K) whole numbers, one row per cell of the quasi-identifiers, one column per label of the
        sensitive attribute; or `Cells`, for a table that has more labels than cells or is used often.
    mechanism : the noise of each count: a mechanism of `pdprivacy.mechanism`, bounded or not, any object
        with a method ``cdf``, or a list of these. Its sensitivity states the neighbours: 1 for an added or
        removed record, 2 (l1) or the root of 2 (l2) for a replaced record.
    measure : the counts that the risk is averaged over. "local": the counts as they are. "expected":
        multinomial counts with the cell's size and proportions. "shrinkage": also over proportions ~
        Dirichlet(``alpha``). "marginal": the expected risk over the ``sizes`` of cells.
        "marginal_shrinkage": the shrinkage risk over ``sizes``, one number for a generic cell, for any
        ``average``.
    average : the average over the non-empty cells, with equal weights ("cells") or weighted by their records
        ("records"); None: the risk of each cell, NaN for an empty cell.
    method : "exact"; "published", the source's closed forms, which are neither exact nor bounds (see
        ``pdprivacy.risk.disclosure.published``); or "monte_carlo", by simulation.
    alpha : the parameter of the Dirichlet prior: a positive number for each label, one number for all labels,
        "flat" (1 for all), or None, which estimates it from the table by maximum likelihood.
    sizes : the distribution of the sizes of cells: "observed", or "poisson" or "negative_binomial", fitted by
        maximum likelihood.
    zero_truncated : whether the sizes are conditioned on at least one record, as only non-empty cells are at
        risk. If False, they are fitted to all rows of the table, empty ones too, and a cell drawn empty has
        no risk.
    partial : whether a mixed cell that reads as homogeneous counts with the share of its records that have
        the label (equation 7), and not as a whole (equation 6).
    attack : "homogeneity", or an attack that also concludes labels in mixed cells: "plurality" concludes the
        label with the largest released count (hard threshold), "probabilistic" a label drawn by its share of
        the released counts (soft threshold). The risk is then the probability that the label is right for a
        record of the cell; see ``pdprivacy.risk.attacks``. These attacks are exact for the local risk.
    threshold : released counts below it read as empty.
    draws, postprocess, rng, progress : for "monte_carlo": the number of tables, at most a million; a function
        of each noisy table (N, K) that returns a table of the same shape; a seed or generator; whether to
        show a bar (needs the extra ``pdprivacy[progress]``).

    Returns
    -------
    A float; for a list of mechanisms an array (E,); for ``average=None`` (N,) or (E, N). With "monte_carlo",
    `Simulated`, a pair (risk, standard_error) of these.

    Raises
    ------
    ParameterError : counts that are negative, fractional, all zero, of one label only, or with more labels
        than cells; a mechanism without ``cdf``; an alpha that is not positive or cannot be estimated;
        arguments that do not fit each other. No message holds a count.

    Source: Liu, Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
    frequency distribution", definitions 6 to 11.

    >>> from pdprivacy.mechanism import Laplace
    >>> from pdprivacy.risk import dr_ha
    >>> counts = [[3, 0], [0, 1], [2, 2]]
    >>> dr_ha(counts, [Laplace(epsilon, sensitivity=1) for epsilon in (0.01, 1, 100)]).round(3)
    array([0.337, 0.451, 0.667])
    """
    risk_measure = RiskMeasure(measure, method, alpha, sizes, zero_truncated, partial, attack, threshold)
    one_of(average, "average", AVERAGES)
    noises, many = readings(mechanism, risk_measure.threshold)
    table = counts if isinstance(counts, Cells) else _table(counts)
    fitted = risk_measure.fit(table)
    if method == "monte_carlo":
        if isinstance(table, Cells):
            raise ParameterError("method='monte_carlo' needs the table of counts itself.")
        simulated = fitted.simulated(table, noises, average, draws, postprocess, rng, progress)
        return simulated if many else Simulated(*(each[0] for each in simulated))
    if postprocess is not None:
        raise ParameterError("'postprocess' needs simulation.", 'method="monte_carlo".')
    values = fitted.risks(noises, average)
    if average is None:
        values = fitted.cells._average(values, None)
    if many:
        return values
    return float(values[0]) if average is not None else values[0]


def _table(counts: ArrayLike) -> Integers:
    table = checked_counts(counts)
    cells, labels = table.shape
    if labels > cells:
        raise ParameterError(
            f"'counts' has more labels (columns, {labels}) than cells (rows, {cells}).",
            "one row per cell: counts.T; or pdprivacy.risk.Cells.of(counts), where it is truly so.",
        )
    return table


@dataclass(frozen=True, slots=True, eq=False)
class RiskMeasure:
    """A risk measure without a table; the parameters are those of `dr_ha`.

    Raises ParameterError for unknown names and for arguments that do not fit each other.

    >>> RiskMeasure("shrinkage", alpha="flat").fit(Cells.of([[3, 0], [2, 2]])).alpha
    array([1., 1.])
    """

    measure: Measure = "local"
    method: Method = "exact"
    alpha: Any = None
    sizes: SizeModel = "observed"
    zero_truncated: bool = True
    partial: bool = False
    attack: Attack = "homogeneity"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        one_of(self.measure, "measure", get_args(Measure))
        one_of(self.method, "method", get_args(Method))
        one_of(self.sizes, "sizes", get_args(SizeModel))
        one_of(self.attack, "attack", get_args(Attack))
        flag(self.partial, "partial"), flag(self.zero_truncated, "zero_truncated")
        settle(self, threshold=real(self.threshold, "threshold"))
        if self.attack != "homogeneity":
            if self.method != "monte_carlo" and (self.measure != "local" or self.method == "published"):
                raise ParameterError(
                    f"attack={self.attack!r} is exact for measure='local' only.",
                    'method="monte_carlo" takes the others.',
                )
            if self.threshold != 0.5:
                raise ParameterError(
                    "'threshold' is for attack='homogeneity'; the others read counts as whole numbers."
                )
            if self.partial:
                raise ParameterError(
                    "'partial' is for attack='homogeneity'; the others always count records."
                )
        if self.partial and self.method == "published":
            raise ParameterError("'partial' has no published form.", 'method="exact".')
        if self.alpha is not None and "shrinkage" not in self.measure:
            raise ParameterError("'alpha' is for the shrinkage measures.", 'measure="shrinkage".')

    def fit(self, counts: Cells | Integers) -> FittedRisk:
        """Return the measure with the fitted prior and sizes; an estimate of ``alpha`` needs a table."""
        cells, table = (counts, None) if isinstance(counts, Cells) else (Cells._of_checked(counts), counts)
        alpha = sizes = None
        if "shrinkage" in self.measure:
            alpha = checked_alpha(self.alpha, table, cells.compositions.shape[1])
        if "marginal" in self.measure:
            sizes = size_distribution(cells.all_sizes, self.sizes, self.zero_truncated)
        return FittedRisk(self, cells, alpha, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class FittedRisk:
    """A risk measure of the cells of a table, with the parameters fitted to the table.

    ``alpha``: (K,) for the shrinkage measures, else None. ``sizes``: for the marginal measures, else None.
    """

    risk_measure: RiskMeasure
    cells: Cells
    alpha: Floats | None
    sizes: Sizes | None

    def simulated(
        self,
        table: Integers,
        noises: Sequence[Reading],
        average: Average | None,
        draws: int,
        postprocess: Callable[[Floats], Any] | None,
        rng: RandomState,
        progress: bool | None,
    ) -> Simulated:
        """Return simulated risks as arrays, one entry per noise, with independent errors."""
        generator = simulator(rng)
        simulations = [
            simulate(
                table,
                noise.mechanism,
                self.risk_measure.measure,
                average,
                alpha=self.alpha,
                sizes=self.sizes,
                partial=self.risk_measure.partial,
                attack=self.risk_measure.attack,
                threshold=self.risk_measure.threshold,
                draws=draws,
                postprocess=postprocess,
                rng=generator,
                progress=progress,
            )
            for noise in noises
        ]
        return Simulated(*(np.array(each) for each in zip(*simulations, strict=True)))

    def risks(self, noises: Sequence[Reading], average: Average | None = None) -> Floats:
        """Return (E, U), the risk of each composition, or averages (E,) over the cells.

        For much work, several threads share the noises.
        """
        self._check_sizes()
        quick = self.cells.compositions.size * len(noises) <= QUICK
        workers = 1 if quick else min(os.cpu_count() or 1, len(noises), 8)
        if workers == 1:
            return self._gathered(noises, average)
        ends = [len(noises) * worker // workers for worker in range(workers + 1)]
        parts = [noises[a:b] for a, b in itertools.pairwise(ends)]
        with ThreadPoolExecutor(workers) as pool:
            return np.concatenate(list(pool.map(lambda some: self._gathered(some, average), parts)))

    def _check_sizes(self) -> None:
        largest = int(self.cells.sizes.max())
        if self.sizes is not None:
            largest = max(largest, int(self.sizes.values.max()))
        most = MOST_RECORDS.get(self.risk_measure.measure, largest)
        if largest > most:
            raise ParameterError(
                f"The {self.risk_measure.measure} risk is computed for cells of at most {most:.0e} records.",
                'measure="local".',
            )

    def _gathered(self, noises: Sequence[Reading], average: Average | None) -> Floats:
        if average is None:
            risks = np.empty((len(noises), len(self.cells.cells)))
            for each, rows, some in self._blocks(noises):
                risks[each, rows] = some
            return risks
        weights, total = self.cells._weights(average), np.zeros(len(noises))
        for each, rows, some in self._blocks(noises):
            # no product by a library that would start threads of its own for it
            total[each] += (some * weights[rows]).sum(axis=-1)
        return total

    def _blocks(self, noises: Sequence[Reading]) -> Iterator[tuple[Any, Any, Floats]]:
        """Yield the risks block by block: the noises, the compositions, and their risks."""
        measure, cells, every = self.risk_measure, self.cells, slice(None)
        each: Iterator[Floats]
        if measure.method == "published":
            each = (published(cells, reading, measure.measure, self.alpha, self.sizes) for reading in noises)
        elif measure.attack == "plurality":
            each = (plurality_risk(cells, reading) for reading in noises)
        elif measure.attack == "probabilistic":
            each = (probabilistic_risk(cells, reading) for reading in noises)
        elif measure.measure == "local":
            each = exact_risk.local(cells, noises, measure.partial)
        elif measure.measure == "expected":
            yield from ((every, *block) for block in exact_risk.expected(cells, noises, measure.partial))
            return
        else:
            yield every, every, self._modelled(noises)
            return
        yield from ((index, every, risks) for index, risks in enumerate(each))

    def _modelled(self, noises: Sequence[Reading]) -> Floats:
        """Return averages (E, U) over a model of the counts."""
        cells, partial = self.cells, self.risk_measure.partial
        if self.alpha is None:
            assert self.sizes is not None
            return exact_risk.marginal(cells, self.sizes, noises, partial)
        if self.sizes is None:
            distinct, index = np.unique(cells.sizes, return_inverse=True)
            return exact_risk.shrinkage(distinct, self.alpha, noises, partial)[:, index.reshape(-1)]
        generic = exact_risk.marginal_shrinkage(self.sizes, self.alpha, noises, partial)
        return np.repeat(generic[:, np.newaxis], len(cells.cells), axis=1)


def published(
    cells: Cells, reading: Reading, measure: str, alpha: Floats | None, sizes: Sizes | None
) -> Floats:
    """Return (U,), the risk of each composition by the closed forms of the source, for comparison.

    Source: equations 13 to 17 (Laplace noise) and 22 to 26 (Gaussian noise), here for any noise by q(n), the
    probability that a count of n reads as empty. Equations 13 and 22 print the factor of the first sum before
    both sums; it belongs to the first sum alone, as in equations 14 and 23, and is used so.

    The closed forms have two errors:

    - They treat a heterogeneous cell as the composition (n - 1, 1, 0, ...), which has the largest risk only
      for two labels: a cell (2, 1, 1) has a risk of 0.372 at epsilon 0.01, and 0.251 here. For large mixed
      cells the result is far too high: (10, 10, 10) at epsilon 1 has a risk below 1e-4, and 0.211 here. So
      the closed forms are not bounds.
    - Equations 16 and 25 weight each cell by the density of its own observed size. Definition 9 requires the
      expectation over sizes.

    ``alpha``: (K,), for the shrinkage measures. ``sizes``: for the marginal measures, whose sums have a
    weight per observed size.
    """
    labels, observed = cells.compositions.shape[1], cells.sizes
    n = observed if alpha is None or sizes is None else sizes.values
    first, second = _scenarios(reading, n, labels)
    if alpha is not None:
        same = _all_same(alpha, n)
    elif measure == "local":
        same = ((cells.compositions > 0).sum(axis=1) == 1).astype(np.float64)
    else:
        same = ((cells.compositions / n[:, np.newaxis]) ** n[:, np.newaxis]).sum(axis=1)
    risks = np.asarray(first * same + second * (1 - same))
    if sizes is None:
        return risks
    if alpha is not None:  # of a generic cell
        return np.full(len(observed), float(risks @ sizes.chances))
    at = np.minimum(np.searchsorted(sizes.values, n), len(sizes.values) - 1)
    return np.asarray(risks * np.where(sizes.values[at] == n, sizes.chances[at], 0.0))


def _scenarios(reading: Reading, n: Integers, labels: int) -> tuple[Floats, Floats]:
    """Return the risks of a homogeneous cell of n records and of (n - 1, 1, 0, ...), 0 where n is 1."""
    q = reading.empty(np.array([0, 1]))
    hidden, one_less = reading.empty(n), reading.empty(np.maximum(n - 1, 1))
    first = q[0] ** (labels - 1) * (1 - hidden)
    second = q[0] ** (labels - 2) * ((1 - one_less) * q[1] + one_less * (1 - q[1]))
    return first, np.where(n >= 2, second, 0.0)


def _all_same(alpha: Floats, n: Integers) -> Floats:
    """Return A_n, the probability that n records have one label, for proportions ~ Dirichlet(alpha)."""
    from scipy.special import gammaln

    total = alpha.sum()
    each = gammaln(alpha[:, np.newaxis] + n) - gammaln(alpha)[:, np.newaxis]
    return np.asarray(np.exp(each + gammaln(total) - gammaln(total + n)).sum(axis=0))
