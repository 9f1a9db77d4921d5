"""The disclosure risk of a table of counts: every measure, method and attack by one function."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdprivacy.errors import ParameterError, check_one_of, got
from pdprivacy.noise import RandomState, simulator
from pdprivacy.risk import averaged, exact_risk
from pdprivacy.risk.attacks import plurality_risk, probabilistic_risk
from pdprivacy.risk.compositions import AVERAGES, Average, Cells, checked_counts
from pdprivacy.risk.monte_carlo import Attack, Measure, Simulated, simulate
from pdprivacy.risk.prior import checked_alpha
from pdprivacy.risk.published import published
from pdprivacy.risk.reading import HasCdf, Reading, readings
from pdprivacy.risk.sizes import SizeModel, Sizes, size_distribution

__all__ = ["Method", "Question", "check_question", "dr_ha"]

Floats: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Literal["exact", "published", "monte_carlo"]

MOST_RECORDS = {"expected": 10**10, "shrinkage": 10**7, "marginal": 10**7, "marginal_shrinkage": 10**7}
"""In one cell, beyond which the sums are too long."""

QUICK = 1 << 12
"""Counts, times noises, up to which starting threads would take longer than the threads save."""


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
    """The disclosure risk from homogeneity attacks (DR-HA) on a table of counts with noise.

    The risk of a cell is the probability that its noisy counts read as homogeneous, a single one of them
    being at least ``threshold``, in a label that the cell truly holds. It is computed from the
    confidential counts, and as confidential as they are.

    Parameters
    ----------
    counts : (N, K) whole numbers, one row per cell of the quasi-identifiers, one column per label of the
        sensitive attribute; or `Cells`, for a table with more labels than cells, or one used often.
    mechanism : the noise of each count: a mechanism of `pdprivacy.mechanism`, bounded or not, or any
        object with a method ``cdf``; or a list of them. What neighbours differ in is the
        mechanism's: its sensitivity is 1 where a record more or less changes the table, 2 (l1) or the
        root of 2 (l2) where a record is replaced.
    measure : "local": of the counts as they are. "expected": averaged over multinomial counts with the
        cell's size and proportions. "shrinkage": over proportions ~ Dirichlet(``alpha``), too.
        "marginal": the expected risk over the ``sizes`` of cells. "marginal_shrinkage": the shrinkage
        risk over ``sizes``, one number for a generic cell, whatever the ``average``.
    average : over the non-empty cells equally ("cells"), or weighted by their records ("records"); None:
        the risk of each cell, NaN where it is empty.
    method : "exact"; "published", the source's closed forms, which are neither exact nor bounds (see
        ``pdprivacy.risk.published``); "monte_carlo", by simulation.
    alpha : of the Dirichlet prior: a positive number for each label, one for all, "flat" (1 for all), or
        None: estimated from the table by maximum likelihood.
    sizes : the distribution of the sizes of cells: as "observed", or "poisson" or "negative_binomial" by
        maximum likelihood.
    zero_truncated : whether it is conditioned on at least one record, as only non-empty cells are at
        risk. If not, it is fitted to all rows of the table, empty ones too, and a cell drawn empty has
        no risk.
    partial : a mixed cell that reads as homogeneous counts with the share of its records that have
        the label (equation 7), and not as a whole (equation 6).
    attack : "homogeneity"; or what may be concluded from mixed cells, too: "plurality", that a record has
        the label with the largest released count (hard threshold), or "probabilistic", that it has a
        label with its share of the released counts (soft threshold). The risk then is the probability
        that this is right for a record of the cell; see ``pdprivacy.risk.attacks``. Exact for the local
        risk.
    threshold : released counts below it read as empty.
    draws, postprocess, rng, progress : of "monte_carlo": how many tables, at most a million; what is done
        to each noisy table (N, K), as a function that returns the same shape; a seed or generator; a bar
        (needs the extra ``pdprivacy[progress]``).

    Returns
    -------
    A float; for a list of mechanisms an array (E,); for ``average=None`` (N,) or (E, N). "monte_carlo":
    `Simulated`, a pair (risk, standard_error) of these.

    Raises
    ------
    ParameterError : counts negative, fractional, of one label or of nobody, with more labels than cells;
        a mechanism without ``cdf``; an alpha that is not positive or cannot be estimated; arguments that
        do not fit each other. No message holds a count.

    Source: Liu, Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
    frequency distribution", definitions 6 to 11.

    >>> from pdprivacy.mechanism import Laplace
    >>> from pdprivacy.risk import dr_ha
    >>> counts = [[3, 0], [0, 1], [2, 2]]
    >>> dr_ha(counts, [Laplace(epsilon, sensitivity=1) for epsilon in (0.01, 1, 100)]).round(3)
    array([0.337, 0.451, 0.667])
    """
    noises, many = readings(mechanism, threshold)
    check_question(measure, average, method, sizes, attack, partial, zero_truncated, threshold)
    if isinstance(counts, Cells):
        table, cells = None, counts
    else:
        table = _table(counts)
        cells = Cells.of_checked(table)
    question = Question.of(
        cells, table, measure, average, alpha, sizes, zero_truncated, partial, attack, threshold
    )
    if method == "monte_carlo":
        if table is None:
            raise ParameterError("method='monte_carlo' needs the table of counts itself.")
        found = question.simulated(table, noises, draws, postprocess, rng, progress)
        return found if many else Simulated(*(each[0] for each in found))
    if postprocess is not None:
        raise ParameterError("'postprocess' needs simulation.", 'method="monte_carlo".')
    values = question.computed(noises, method == "published")
    if many:
        return values
    return float(values[0]) if average is not None else values[0]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about the cells of a table, with what was fitted to it.

    ``alpha``: (K,), for the shrinkage measures, else None. ``sizes``: for the marginal ones, else None.
    """

    cells: Cells
    measure: Measure
    average: Average | None
    alpha: Floats | None
    sizes: Sizes | None
    partial: bool
    attack: Attack
    threshold: float

    @classmethod
    def of(
        cls,
        cells: Cells,
        table: NDArray[np.int64] | None,
        measure: Measure,
        average: Average | None,
        alpha: Any,
        sizes: SizeModel,
        zero_truncated: bool,
        partial: bool,
        attack: Attack,
        threshold: float,
    ) -> Question:
        """Fits the prior and the sizes where they are asked for; ``table``: what an estimate is made of."""
        prior, model = None, None
        if measure in ("shrinkage", "marginal_shrinkage"):
            prior = checked_alpha(alpha, table, cells.compositions.shape[1])
        elif alpha is not None:
            raise ParameterError("'alpha' is for the shrinkage measures.", 'measure="shrinkage".')
        if measure in ("marginal", "marginal_shrinkage"):
            model = size_distribution(cells.all_sizes, sizes, zero_truncated)
        return cls(cells, measure, average, prior, model, partial, attack, float(threshold))

    def simulated(
        self,
        table: NDArray[np.int64],
        noises: Sequence[Reading],
        draws: int,
        postprocess: Callable[[Floats], Any] | None,
        rng: RandomState,
        progress: bool,
    ) -> Simulated:
        """Arrays, one entry per noise; the errors of different kinds of noise are independent."""
        generator = simulator(rng)
        found = [
            simulate(
                table,
                noise.mechanism,
                self.measure,
                self.average,
                alpha=self.alpha,
                sizes=self.sizes,
                partial=self.partial,
                attack=self.attack,
                threshold=self.threshold,
                draws=draws,
                postprocess=postprocess,
                rng=generator,
                progress=progress,
            )
            for noise in noises
        ]
        return Simulated(*(np.array(each) for each in zip(*found, strict=True)))

    def computed(self, noises: Sequence[Reading], as_published: bool) -> Floats:
        """(E,) averages, or (E, N); where there is much to do, the processors share out the noises."""
        self._check_sizes()
        quick = self.cells.compositions.size * len(noises) <= QUICK
        workers = 1 if quick else min(os.cpu_count() or 1, len(noises), 8)
        ends = [len(noises) * worker // workers for worker in range(workers + 1)]
        parts = [noises[a:b] for a, b in itertools.pairwise(ends)]
        if workers == 1:
            return self._risks(parts[0], as_published)
        with ThreadPoolExecutor(workers) as pool:
            return np.concatenate(list(pool.map(lambda some: self._risks(some, as_published), parts)))

    def of_compositions(self, noises: Sequence[Reading], as_published: bool) -> Floats:
        """(E, U), the risk of each composition instead of an average."""
        once = replace(self.cells, which=np.arange(len(self.cells.cells)))
        return replace(self, cells=once, average=None).computed(noises, as_published)

    def _check_sizes(self) -> None:
        largest = int(self.cells.sizes.max())
        if self.sizes is not None:
            largest = max(largest, int(self.sizes.values.max()))
        most = MOST_RECORDS.get(self.measure, largest)
        if largest > most:
            raise ParameterError(
                f"The {self.measure} risk is computed for cells of at most {most:.0e} records.",
                'measure="local".',
            )

    def _risks(self, noises: Sequence[Reading], as_published: bool) -> Floats:
        cells, average = self.cells, self.average
        if as_published:
            return self._one_by_one(
                published(cells, one, self.measure, self.alpha, self.sizes) for one in noises
            )
        if self.attack != "homogeneity":
            risk = plurality_risk if self.attack == "plurality" else probabilistic_risk
            return self._one_by_one(risk(cells, one) for one in noises)
        if self.measure == "local":
            return self._one_by_one(exact_risk.local(cells, noises, self.partial))
        if self.measure == "expected":
            return self._expected(noises)
        if self.measure == "marginal":
            assert self.sizes is not None
            return cells.average(averaged.marginal(cells, self.sizes, noises, self.partial), average)
        assert self.alpha is not None
        if self.measure == "shrinkage":
            distinct, place = np.unique(cells.sizes, return_inverse=True)
            by_size = averaged.shrinkage(distinct, self.alpha, noises, self.partial)
            return cells.average(by_size[:, place.reshape(-1)], average)
        assert self.sizes is not None
        generic = averaged.marginal_shrinkage(self.sizes, self.alpha, noises, self.partial)
        return cells.average(np.repeat(generic[:, np.newaxis], len(cells.cells), axis=1), average)

    def _one_by_one(self, risks: Iterable[Floats]) -> Floats:
        """Of risks (U,), one array per noise, of which one is held at a time."""
        if self.average is None:
            return np.array([self.cells.average(one, None) for one in risks])
        weights = self.cells.weights(self.average)
        # no product by a library that would start threads of its own for it
        return np.array([(one * weights).sum() for one in risks])

    def _expected(self, noises: Sequence[Reading]) -> Floats:
        blocks = exact_risk.expected(self.cells, noises, self.partial)
        if self.average is None:
            risks = np.empty((len(noises), len(self.cells.cells)))
            for rows, found in blocks:
                risks[:, rows] = found
            return self.cells.average(risks, None)
        weights, total = self.cells.weights(self.average), np.zeros(len(noises))
        for rows, found in blocks:
            total += (found * weights[rows]).sum(axis=1)
        return total


def check_question(
    measure: object,
    average: object,
    method: object,
    sizes: object,
    attack: object,
    partial: object,
    zero_truncated: object,
    threshold: float,
) -> None:
    """Refuse names that are not known, and arguments that do not fit each other."""
    check_one_of("measure", measure, get_args(Measure))
    check_one_of("method", method, get_args(Method))
    check_one_of("sizes", sizes, get_args(SizeModel))
    check_one_of("attack", attack, get_args(Attack))
    check_one_of("average", average, AVERAGES)
    for name, flag in (("partial", partial), ("zero_truncated", zero_truncated)):
        if not isinstance(flag, bool | np.bool_):
            raise ParameterError(f"{name!r} must be True or False (got {got(flag)}).")
    if attack != "homogeneity":
        if method != "monte_carlo" and (measure != "local" or method == "published"):
            raise ParameterError(
                f"attack={attack!r} is exact for measure='local' only.",
                'method="monte_carlo" takes the others.',
            )
        if threshold != 0.5:
            raise ParameterError("'threshold' is for attack='homogeneity'; the others read whole numbers.")
        if partial:
            raise ParameterError("'partial' is for attack='homogeneity'; the others count records anyway.")
    if partial and method == "published":
        raise ParameterError("'partial' has no published form.", 'method="exact".')


def _table(counts: ArrayLike) -> NDArray[np.int64]:
    table = checked_counts(counts)
    cells, labels = table.shape
    if labels > cells:
        raise ParameterError(
            f"'counts' has more labels (columns, {labels}) than cells (rows, {cells}).",
            "one row per cell: counts.T; or pdprivacy.risk.Cells.of(counts), where it is truly so.",
        )
    return table
