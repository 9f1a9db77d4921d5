"""How far off a release is that is compared with the exact statistic, and how well that is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.pooling import Pooled
from pdprivacy.privacy import Rational, loss, positive
from pdprivacy.protection import Protected
from pdprivacy.release.spec import Release
from pdprivacy.releases import clustering, moments, selection, tables
from pdprivacy.releases.columns import Labels
from pdprivacy.statistic import numbers_of

__all__ = ["STATISTICS", "UNKNOWN", "Compared", "Estimate"]

Floats: TypeAlias = NDArray[np.float64]
Score: TypeAlias = Callable[[Any, Fraction], float]
"""The error of what was released, of about this share of the records."""

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


def _sum_and_count(
    facts: Protected,
    column: Labels,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: Any = "laplace",
    **options: Any,
) -> tuple[Release[Any], ...]:
    half = {
        "epsilon": positive(epsilon, "epsilon") / 2,
        "delta": loss(epsilon, delta).delta / 2,
        "mechanism": mechanism,
        **options,
    }
    return moments.sum(facts, column, **half), tables.count(facts, column, **half)


def _noisy_average(total: Any, rows: Any) -> float:
    """A noisy sum over a noisy count (at least 1), of half the cost each, and not centred.

    Source: "The adverse effects of omitting records in differential privacy", section 3.1, NoisyAverage.
    """
    return float(total.iloc[0] / np.maximum(rows.iloc[0], 1.0))


def _only(released: Any) -> Any:
    return released


def _one(verb: Callable[..., Release[Any]]) -> Callable[..., tuple[Release[Any], ...]]:
    return lambda *args, **words: (verb(*args, **words),)


@dataclass(frozen=True, slots=True)
class Compared:
    """What can be compared: releases, what is made of them, and the error of that.

    ``single``: whether it is of one column. ``grows``: whether it is scaled up to all records.
    ``chance``: whether its errors are 0 and 1.
    """

    releases: Callable[..., tuple[Release[Any], ...]]
    score: Callable[..., Score]
    error: str
    single: bool = False
    grows: bool = False
    chance: bool = False
    combined: Callable[..., Any] = _only


def _of_numbers(
    protected: Protected, columns: Sequence[Column], statistic: str, arguments: Sequence[Any]
) -> Score:
    """The mean over all numbers of |released - true| / |true|; NaN where a true one is 0."""
    truth = np.asarray(_truth(protected, columns, statistic, arguments), dtype=np.float64).ravel()
    grows = STATISTICS[statistic].grows

    def score(released: Any, share: Fraction) -> float:
        found = np.asarray(released, dtype=np.float64).ravel() / (float(share) if grows else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(found - truth) / np.abs(truth)
        return float(np.where(truth == 0, np.nan, ratio).mean())

    return score


def _truth(protected: Protected, columns: Sequence[Column], statistic: str, arguments: Sequence[Any]) -> Any:
    """What would be released without noise."""
    if statistic == "count":
        engine = protected.engine
        return [engine.present(column) for column in columns] if columns else [engine.rows]
    values = [_values(protected, column, statistic) for column in columns]
    if any(len(one) < 2 for one in values):
        raise ParameterError("Fewer than two records are without nulls, so that there is nothing to compare.")
    if statistic == "quantile":
        asked = np.asarray(arguments[0] if arguments else 0.5, dtype=np.float64)
        return np.stack([np.quantile(one, asked) for one in values], axis=-1)
    plain: Mapping[str, Callable[[Floats], Any]] = {
        "sum": np.sum,
        "mean": np.mean,
        "noisy_average": np.mean,
        "var": lambda one: np.var(one, ddof=1),
        "std": lambda one: np.std(one, ddof=1),
        "median": np.median,
        "min": np.min,
        "max": np.max,
    }
    return [plain[statistic](one) for one in values]


def _values(protected: Protected, column: Column, method: str) -> Floats:
    """The numbers of a column as they are released: clamped to the bounds, nulls left out."""
    found = protected.snapshot[column.name].to_numpy(dtype=np.float64, na_value=np.nan)
    present: Floats = np.clip(found[~np.isnan(found)], *column.bounds(method))
    return present


def _of_labels(protected: Protected, columns: Sequence[Column], statistic: str, _: Sequence[Any]) -> Score:
    """1 where the label is none of those with the largest count, else 0."""
    labels = columns[0].labels(statistic)
    counts = protected.engine.table(columns, statistic)[: len(labels)]
    best = {labels[place] for place in np.flatnonzero(counts == counts.max())}
    return lambda released, _: float(released.iloc[0] not in best)


def _of_centers(protected: Protected, columns: Sequence[Column], statistic: str, _: Sequence[Any]) -> Score:
    """The mean squared distance (k-means), or distance (k-median), of all records to the nearest centre.

    Ranges are brought to [-1, 1] by the declared bounds for k-means, and to length one for k-median.
    """
    squared = statistic == "kmeans"
    if squared:
        widths = np.array([np.subtract(*column.bounds(statistic)[::-1]) / 2 for column in columns])
    else:
        widths = np.array([np.ptp(numbers_of(column)) for column in columns])
    scale = np.divide(1.0, widths, out=np.zeros(len(widths)), where=widths > 0)
    found = protected.snapshot[[column.name for column in columns]]
    points = np.column_stack([one.to_numpy(dtype=np.float64, na_value=np.nan) for _, one in found.items()])
    points = points[~np.isnan(points).any(axis=1)] * scale
    if not len(points):
        raise ParameterError("No record is without nulls, so that there is nothing to compare.")

    def score(released: Any, _: Fraction) -> float:
        least = np.full(len(points), np.inf)
        for center in released.to_numpy(dtype=np.float64) * scale:
            np.minimum(least, np.square(points - center).sum(axis=1), out=least)
        return float((least if squared else np.sqrt(least)).mean())

    return score


PERCENT = "mean percent error"
STATISTICS: dict[str, Compared] = {
    "count": Compared(_one(tables.count), _of_numbers, PERCENT, grows=True),
    "kmeans": Compared(_one(clustering.kmeans), _of_centers, "normalised intracluster variance"),
    "kmedian": Compared(_one(clustering.kmedian), _of_centers, "mean distance"),
    "max": Compared(_one(selection.max), _of_numbers, PERCENT),
    "mean": Compared(_one(moments.mean), _of_numbers, PERCENT),
    "median": Compared(_one(selection.median), _of_numbers, PERCENT),
    "min": Compared(_one(selection.min), _of_numbers, PERCENT),
    "mode": Compared(
        _one(selection.mode), _of_labels, "probability of a wrong mode", single=True, chance=True
    ),
    "noisy_average": Compared(_sum_and_count, _of_numbers, PERCENT, single=True, combined=_noisy_average),
    "quantile": Compared(_one(selection.quantile), _of_numbers, PERCENT),
    "std": Compared(_one(moments.std), _of_numbers, PERCENT),
    "sum": Compared(_one(moments.sum), _of_numbers, PERCENT, grows=True),
    "var": Compared(_one(moments.var), _of_numbers, PERCENT),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """An expected error with its 95 % interval."""

    error: float
    lower: float
    upper: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.error, self.lower, self.upper))

    @classmethod
    def of(cls, errors: Floats, *, chance: bool) -> Estimate:
        """Of a probability by Wilson (1927), else of a mean by Student's law."""
        n, middle = len(errors), float(errors.mean())
        if not chance:
            mean = Pooled(errors.mean(), errors.var(ddof=1) / n, np.array(n - 1))
            return cls(middle, *map(float, mean.interval(LEVEL)))
        center = (middle + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = Z / (1 + Z**2 / n) * math.sqrt(middle * (1 - middle) / n + Z**2 / (4 * n**2))
        # at none and at all of n rounding must not leave the error outside of its interval
        low, high = (0.0 if middle == 0 else center - half), (1.0 if middle == 1 else center + half)
        return cls(middle, low, high)

    def above(self, other: Estimate) -> Estimate:
        """How far this error is above another one that is independent of it.

        Source: Newcombe (1998), method 10; of means it is Welch's interval, or a bit wider.
        """
        apart = self.error - other.error
        return Estimate(
            apart,
            apart - math.hypot(self.error - self.lower, other.upper - other.error),
            apart + math.hypot(self.upper - self.error, other.error - other.lower),
        )


UNKNOWN = Estimate(math.nan, math.nan, math.nan)
