"""Cost in accuracy of sampling and suppression, at an equal guarantee or with equal noise.

A release of all records and one of a part are repeated, and their errors are measured against the exact
statistic.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
import pandas as pd

from pdprivacy import checks
from pdprivacy.amplification.sampling import (
    OutlierScores,
    Secret,
    Spend,
    limits_of,
    refuse_units,
    spread_of,
)
from pdprivacy.amplification.suppression import Distance
from pdprivacy.amplification.suppression.amplification import (
    LARGEST_EPSILON,
    Amplification,
    Outliers,
    Poisson,
    WithoutReplacement,
    check_rate,
)
from pdprivacy.checks import one_of
from pdprivacy.core import noise
from pdprivacy.core.gate import curator
from pdprivacy.core.gate.entered import charging
from pdprivacy.core.gate.execute import execute
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import AlikeCoins, Coins, SomeOf
from pdprivacy.core.gate.request import Request
from pdprivacy.core.gate.spec import Release, columns_of
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Approx, Pure, Rational, loss, positive
from pdprivacy.core.statistics import numbers_of
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ArgumentError, ParameterError, kind
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.hints.suggestions import with_hints
from pdprivacy.inference.combining import Pooled
from pdprivacy.ledger import Budget
from pdprivacy.releases import clustering, histograms, moments, selection
from pdprivacy.releases.batches import with_price
from pdprivacy.risk.table_risk import confidential, levels_of
from pdprivacy.text.progress import shown
from pdprivacy.types import Floats, Labels

Score: TypeAlias = Callable[[Any, Fraction], float]
"""The error of what was released, of about this share of the records."""

MOST_REPETITIONS = 10**6
LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


class Estimate(NamedTuple):
    """An expected error with its 95 % interval."""

    error: float
    lower: float
    upper: float

    @classmethod
    def of(cls, errors: Floats, *, chance: bool) -> Estimate:
        """Estimate a probability with Wilson's interval (1927), or a mean with Student's."""
        n, middle = len(errors), float(errors.mean())
        if not chance:
            mean = Pooled(errors.mean(), errors.var(ddof=1) / n, np.array(n - 1))
            return cls(middle, *map(float, mean.interval(LEVEL)))
        center = (middle + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = Z / (1 + Z**2 / n) * math.sqrt(middle * (1 - middle) / n + Z**2 / (4 * n**2))
        # for 0 and for n of n, rounding must not move the error out of its interval
        low, high = (0.0 if middle == 0 else center - half), (1.0 if middle == 1 else center + half)
        return cls(middle, low, high)

    def above(self, other: Estimate) -> Estimate:
        """Return the difference between this error and an independent one.

        Source: Newcombe (1998), method 10; for means it is Welch's interval, or a bit wider.
        """
        apart = self.error - other.error
        return Estimate(
            apart,
            apart - math.hypot(self.error - self.lower, other.upper - other.error),
            apart + math.hypot(self.upper - self.error, other.error - other.lower),
        )


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


# ---------------------------------------------------------------- what is compared


@dataclass(frozen=True, slots=True)
class Compared:
    """A statistic that can be compared: its releases, their combination, and its error.

    ``verbs``: the releases, of an equal part of the cost each. ``exact``: the statistic of the numbers of a
    column. ``single``: whether it is of one column. ``grows``: whether it is scaled up to all records.
    ``chance``: whether its errors are 0 and 1. ``defaults``: of the keywords.
    """

    verbs: tuple[Callable[..., Release[Any]], ...]
    score: Callable[..., Score]
    error: str = "mean percent error"
    exact: Callable[[Floats], Any] | None = None
    single: bool = False
    grows: bool = False
    chance: bool = False
    combined: Callable[..., Any] = lambda released: released
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _noisy_average(total: Any, rows: Any) -> float:
    """A noisy sum over a noisy count (at least 1), of half the cost each, and not centred.

    Source: "The adverse effects of omitting records in differential privacy", section 3.1, NoisyAverage.
    """
    return float(total.iloc[0] / np.maximum(rows.iloc[0], 1.0))


def _of_numbers(
    protected: Facts, columns: Sequence[Column], statistic: str, arguments: Mapping[str, Any]
) -> Score:
    """The mean over all numbers of |released - true| / |true|; NaN where a true one is 0."""
    truth = np.asarray(_truth(protected, columns, statistic, arguments), dtype=np.float64).ravel()
    grows = STATISTICS[statistic].grows

    def score(released: Any, share: Fraction) -> float:
        numbers = np.asarray(released, dtype=np.float64).ravel() / (float(share) if grows else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(numbers - truth) / np.abs(truth)
        return float(np.where(truth == 0, np.nan, ratio).mean())

    return score


def _truth(protected: Facts, columns: Sequence[Column], statistic: str, arguments: Mapping[str, Any]) -> Any:
    """Return the exact statistic, without noise."""
    if statistic == "count":
        return curator.present(protected, columns)
    values = [_values(protected, column, statistic) for column in columns]
    if any(len(numbers) < 2 for numbers in values):
        raise ParameterError("Fewer than two records are without nulls, so that there is nothing to compare.")
    if statistic == "quantile":
        shares = np.asarray(arguments.get("q", 0.5), dtype=np.float64)
        return np.stack([np.quantile(numbers, shares) for numbers in values], axis=-1)
    exact = STATISTICS[statistic].exact
    assert exact is not None
    return [exact(numbers) for numbers in values]


def _values(protected: Facts, column: Column, method: str) -> Floats:
    """The numbers of a column as they are released: clamped to the bounds, nulls left out."""
    (numbers,) = curator.numbers(protected, [column.name], np.nan)
    return np.asarray(np.clip(numbers[~np.isnan(numbers)], *column.bounds(method)))


def _of_labels(protected: Facts, columns: Sequence[Column], statistic: str, _: Mapping[str, Any]) -> Score:
    """Return 1 where the label has less than the largest count, else 0."""
    labels = columns[0].labels(statistic)
    counts = curator.counts(protected, columns, statistic)[: len(labels)]
    best = {labels[position] for position in np.flatnonzero(counts == counts.max())}
    return lambda released, _: float(released.iloc[0] not in best)


def _of_centers(protected: Facts, columns: Sequence[Column], statistic: str, _: Mapping[str, Any]) -> Score:
    """The mean squared distance (k-means), or distance (k-median), of all records to the nearest centre.

    Ranges are brought to [-1, 1] by the declared bounds for k-means, and to length one for k-median.
    """
    squared = statistic == "kmeans"
    if squared:
        widths = np.array([np.subtract(*column.bounds(statistic)[::-1]) / 2 for column in columns])
    else:
        widths = np.array([np.ptp(numbers_of(column)) for column in columns])
    scale = np.divide(1.0, widths, out=np.zeros(len(widths)), where=widths > 0)
    points = np.column_stack(curator.numbers(protected, [column.name for column in columns], np.nan))
    points = points[~np.isnan(points).any(axis=1)] * scale
    if not len(points):
        raise ParameterError("No record is without nulls, so that there is nothing to compare.")

    def score(released: Any, _: Fraction) -> float:
        least = np.full(len(points), np.inf)
        for center in released.to_numpy(dtype=np.float64) * scale:
            np.minimum(least, np.square(points - center).sum(axis=1), out=least)
        return float((least if squared else np.sqrt(least)).mean())

    return score


STATISTICS: dict[str, Compared] = {
    "count": Compared((histograms.count,), _of_numbers, grows=True),
    "kmeans": Compared((clustering.kmeans,), _of_centers, "normalised intracluster variance"),
    "kmedian": Compared((clustering.kmedian,), _of_centers, "mean distance"),
    "max": Compared((selection.max,), _of_numbers, exact=np.max),
    "mean": Compared((moments.mean,), _of_numbers, exact=np.mean),
    "median": Compared((selection.median,), _of_numbers, exact=np.median),
    "min": Compared((selection.min,), _of_numbers, exact=np.min),
    "mode": Compared((selection.mode,), _of_labels, "probability of a wrong mode", single=True, chance=True),
    "noisy_average": Compared(
        (moments.sum, histograms.count),
        _of_numbers,
        exact=np.mean,
        single=True,
        combined=_noisy_average,
        defaults={"mechanism": "laplace"},
    ),
    "quantile": Compared((selection.quantile,), _of_numbers),
    "std": Compared((moments.std,), _of_numbers, exact=lambda numbers: np.std(numbers, ddof=1)),
    "sum": Compared((moments.sum,), _of_numbers, exact=np.sum, grows=True),
    "var": Compared((moments.var,), _of_numbers, exact=lambda numbers: np.var(numbers, ddof=1)),
}


RELEASES_NOTHING = {"release_id", "releases"}
DECIDED = {"protected", "columns", "epsilon", "rng", "progress", "weights"} | RELEASES_NOTHING
"""Arguments of a release that are no options of a comparison."""


def _arguments(name: str, placed: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the releases of a statistic by name; refuse those that they do not all take."""
    for word in RELEASES_NOTHING & options.keys():
        raise ParameterError(f"A comparison takes no {word!r}: it releases nothing.", "leave it out.")
    if "weights" in options:
        raise ParameterError(
            "A comparison takes no 'weights': it compares unweighted numbers.", "leave it out."
        )
    first, *others = (inspect.signature(verb).parameters for verb in STATISTICS[name].verbs)
    known = [word for word in first if word not in DECIDED and all(word in other for other in others)]
    for word in options:
        if word not in known:
            text = f"{name!r} got an unexpected keyword argument {word!r}."
            raise ArgumentError(text, f"it takes {', '.join(known)}.")
    by_place = [word for word in known if first[word].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(placed) > len(by_place):
        text = " and ".join(map(repr, ["columns", *by_place]))
        raise ArgumentError(f"{name!r} takes {text} by position, and all other arguments by name.")
    if twice := options.keys() & set(by_place[: len(placed)]):
        raise ArgumentError(f"{name!r}: multiple values for argument {min(twice)!r}.")
    return {**dict(zip(by_place, placed, strict=False)), **options}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison: the records, the epsilons, the statistic, its arguments and the columns that it reads."""

    protected: Facts
    levels: Sequence[Rational]
    name: str
    columns: Any
    chosen: tuple[Column, ...]
    arguments: Mapping[str, Any]
    spend: Spend

    @classmethod
    def of(
        cls,
        protected: Facts,
        levels: Sequence[Rational],
        name: Any,
        columns: Any,
        placed: Sequence[Any],
        options: Mapping[str, Any],
        spend: Spend,
    ) -> _Comparison:
        one_of(name, "statistic", tuple(STATISTICS))
        one_of(spend, "spend", get_args(Spend))
        arguments = _arguments(name, placed, options)
        if protected.in_secret:
            raise ParameterError(
                "A secret part cannot be compared with all records, which are not there.",
                "compare from the whole frame.",
            )
        chosen = () if name == "count" and columns is None else columns_of(protected, columns, name)
        if any(column.timeline is not None for column in chosen) and name != "count":
            raise ParameterError(
                f"{name!r} of dates is not compared, only that of numbers.",
                f"days since a date are numbers: private.assign(days=private[{chosen[0].name!r}] - ...)",
            )
        if STATISTICS[name].single and len(chosen) != 1:
            raise ParameterError(f"{name!r} is compared for one column.")
        if name == "noisy_average":
            chosen[0].bounds(name)
            # its releases have half of the delta each, so the stated one is checked before
            words = ("delta", "mechanism", "p", "calibration", "bounding")
            stated = {word: arguments[word] for word in words if word in arguments}
            noise_of_both: dict[str, Any] = {**STATISTICS[name].defaults, **stated}
            for level in levels:
                Request(level, **noise_of_both)
        return cls(protected, levels, name, columns, chosen, arguments, spend)

    @property
    def statistic(self) -> Compared:
        """The statistic that is compared."""
        return STATISTICS[self.name]

    def _releases(self, facts: Facts, cost: Pure | Approx, state: RandomState) -> list[Release[Any]]:
        verbs, defaults = self.statistic.verbs, self.statistic.defaults
        words = {**defaults, **self.arguments, "rng": state, "epsilon": cost.epsilon / len(verbs)}
        if self.name in ("kmeans", "kmedian"):
            words["progress"] = False  # one bar for all of them
        if cost.delta:
            words["delta"] = cost.delta / len(verbs)
        return [with_hints(verb)(facts, self.columns, **words) for verb in verbs]

    def release(self, facts: Facts, cost: Pure | Approx, state: RandomState) -> Any:
        """Return a release of this cost, charged to a budget in memory of the same total."""
        budget = Budget.with_total(cost)  # discarded afterwards, with its charges
        budget.bind(facts.unit)
        releases = self._releases(replace(facts, budget=budget), cost, state)
        with charging():
            return self.statistic.combined(*map(execute, releases))

    def check(self, facts: Facts, cost: Pure | Approx) -> None:
        """Refuse what the releases would refuse, and those that cost more than is asked for."""
        prices = [with_price(release)[1].cost for release in self._releases(facts, cost, 0)]
        epsilon, delta = (sum(getattr(price, name) for price in prices) for name in ("epsilon", "delta"))
        if epsilon > cost.epsilon or delta > cost.delta:
            raise ParameterError(
                "The release costs more than its epsilon, so that no guarantee would be equal.",
                "another calibration.",
            )


# ---------------------------------------------------------------- what is left out


class _Costs(NamedTuple):
    """The loss of a release of a part, and what the whole pays for it."""

    part: Pure | Approx
    whole: Pure | Approx


@dataclass(frozen=True, slots=True)
class _Omission:
    """A way to leave records out.

    ``key``: its place in the index. ``law``: what it does to a guarantee; None where nothing is left out.
    ``share``: what it keeps of the records, about. ``rows``: how many, where that is public.
    """

    key: tuple[float, ...]
    law: Amplification | None
    share: Fraction
    rows: int | None = None

    def costs(self, stated: Pure | Approx, spend: Spend) -> _Costs | None:
        """Return the losses of a release of the part that states this cost; None if there is none."""
        if self.law is None:
            return _Costs(stated, stated)
        secret = Secret(self.law, spend)
        try:
            part = secret.loss_of_part(stated)
            return _Costs(part, stated if spend == "noise" else secret.cost_of_whole(part))
        except ParameterError:
            return None

    def facts(self, protected: Facts) -> Facts:
        """Return the public facts of the part, with all records."""
        rows = self.rows
        scope = protected.scope.of_subset() if rows is None else replace(protected.scope, rows=rows)
        return replace(protected, scope=scope)


ALL_RECORDS = _Omission((), None, Fraction(1))


def _compared(
    comparison: _Comparison,
    ways: Sequence[_Omission],
    names: Sequence[str],
    coins: Mapping[_Omission, Coins],
    repetitions: Any,
    rng: RandomState,
    progress: bool | None,
) -> pd.DataFrame:
    """One row per level and way; ``coins``: how each way chooses its records."""
    protected, levels = comparison.protected, comparison.levels
    repetitions = checks.whole(repetitions, "repetitions", 2, MOST_REPETITIONS)
    stated = [loss(level, comparison.arguments.get("delta", 0)) for level in levels]
    costs = {way: [way.costs(cost, comparison.spend) for cost in stated] for way in (ALL_RECORDS, *ways)}
    feasible = [way for way in ways if any(costs[way])]
    if not feasible and comparison.spend == "epsilon":
        raise ParameterError(
            f"No part can be released at any of these epsilons: above {LARGEST_EPSILON}, no bound is known.",
            "a smaller epsilon.",
        )
    if not feasible:
        raise ParameterError(
            "No part can be released at any of these epsilons: selecting its records costs more.",
            "a larger epsilon, or m and M nearer to each other; pdprivacy.suppression.outlier_floor(m, M) "
            "must be below it.",
        )
    state = noise.simulator(rng)
    runs = list(product([ALL_RECORDS, *feasible], range(repetitions)))
    turns = shown(runs, len(runs), comparison.name, progress, long=True, timed=True)
    for cost in stated:
        comparison.check(protected, cost)
    for way in feasible:
        comparison.check(way.facts(protected), next(known.part for known in costs[way] if known is not None))
    # nothing was read so far
    read = [column.name for column in comparison.chosen]
    whole = curator.only(protected, read)
    score = comparison.statistic.score(whole, comparison.chosen, comparison.name, comparison.arguments)
    draw = {way: curator.parts(way.facts(whole), coins[way]) for way in feasible}
    errors = {way: np.full((len(levels), repetitions), np.nan) for way in (ALL_RECORDS, *feasible)}
    for way, turn in turns:
        part = whole if way is ALL_RECORDS else draw[way](noise.source(state))
        for level, affordable in enumerate(costs[way]):
            if affordable is not None:
                released = comparison.release(part, affordable.part, state)
                errors[way][level, turn] = score(released, way.share)
    return _table(comparison, ways, costs, errors, names)


def _table(
    comparison: _Comparison,
    ways: Sequence[_Omission],
    costs: Mapping[_Omission, Sequence[_Costs | None]],
    errors: Mapping[_Omission, Floats],
    names: Sequence[str],
) -> pd.DataFrame:
    """The frame of the errors that were found."""
    levels, chance = comparison.levels, comparison.statistic.chance
    rows: list[tuple[float, ...]] = []
    for level, _ in enumerate(levels):
        without = Estimate.of(errors[ALL_RECORDS][level], chance=chance)
        for way in ways:
            cost = costs[way][level]
            estimate = UNKNOWN if cost is None else Estimate.of(errors[way][level], chance=chance)
            losses = (math.nan, math.nan) if cost is None else [float(each.epsilon) for each in cost]
            rows.append((*estimate, *without, *estimate.above(without), *losses))
    keys = [(float(positive(level, "epsilon")), *way.key) for level in levels for way in ways]
    others = [f"{name}{end}" for name in ("without", "difference") for end in ("", "_lower", "_upper")]
    heads = ["error", "lower", "upper", *others, "part_epsilon", "whole_epsilon"]
    frame = pd.DataFrame(rows, pd.MultiIndex.from_tuples(keys, names=["epsilon", *names]), heads)
    least = frame["difference_lower"]
    frame.insert(9, "worse", (least > 0).astype("boolean").mask(least.isna()))
    return frame


def _description(comparison: _Comparison) -> dict[str, Any]:
    """Words about a comparison, for ``attrs``."""
    return {
        "statistic": comparison.name,
        "columns": [str(column.name) for column in comparison.chosen],
        "error": comparison.statistic.error,
        "neighbors": comparison.protected.unit.neighbors,
        "spend": comparison.spend,
    }


def _checked_values(name: str, values: Any, example: str) -> list[Any]:
    if isinstance(values, str) or not np.iterable(values):
        raise ParameterError(f"{name!r} must be a list.", example)
    items = checks.items(values, name, example, MOST_REPETITIONS)
    if not items:
        raise ParameterError(f"{name!r} must be a list.", example)
    if not isinstance(values, list | tuple) and any(isinstance(item, str) for item in items):
        raise ParameterError(f"{name!r} must be a list of numbers (got {kind(values)}).", example)
    return items


def compare_sampling(
    protected: Facts,
    /,
    statistic: str,
    columns: Labels | None = None,
    *args: Any,
    epsilon: Rational | Sequence[Rational] = (0.25, 0.5, 1, 2),
    rates: Sequence[Rational] = (0.1, 0.3, 0.5, 0.7, 0.9),
    spend: Spend = "noise",
    repetitions: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **options: Any,
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: compare a release of all records with one of a sample.

    At each epsilon (and delta) the release of all records is repeated, and that of a sample, drawn anew each
    time as by `sample`. The errors are those of real releases of these records; nothing is charged.

    Parameters
    ----------
    statistic, columns, args, options : the release, its arguments and its other keywords, as in
        ``compare_sampling("quantile", "age", 0.9)``. "count", "max", "mean", "median", "min", "quantile",
        "std", "sum", "var"; "mode" of one column; "kmeans", "kmedian"; and "noisy_average", a ``sum`` over a
        ``count`` with half of the epsilon each, not centred as "mean" is.
    epsilon : one or several.
    rates : the shares of the records that are sampled, in (0, 1]: by coins under "add_remove"; under
        "replace_one" that share of their public number, without replacement.
    spend : "noise" compares at the same guarantee: a release of the sample has the larger epsilon that the
        sample allows (``part_epsilon``; delta alike). "epsilon" compares with the same noise: both releases
        have this epsilon and delta, and the whole pays less (``whole_epsilon``; delta times the rate).
    repetitions : the number of times each release is made, from 2 to a million.
    rng, progress : a seed or generator; whether to show a bar, which needs tqdm (None: in long calls).

    Returns a DataFrame indexed by epsilon and rate: ``error`` of the sample with its 95 % interval
    (``lower``, ``upper``), that of all records (``without``, ``without_lower``, ``without_upper``), the
    ``difference`` with its interval, ``worse``: whether that is above 0, and the epsilons of the part and of
    the whole. Numbers: the mean of
    |released - true| / |true| over the columns (NaN where a true number is 0); counts and sums are divided
    by the rate. "mode": the probability that it has not the largest count, with Wilson's interval.
    "kmeans": the mean squared distance of all records to the nearest centre, with ranges brought to
    [-1, 1]. "kmedian": the mean distance, with ranges of length one. Rows where delta is not below the rate
    are NaN. ``frame.dp.plot()`` draws it.

    Source: "The adverse effects of omitting records in differential privacy", section 3, and appendices A.7
    to A.9 for equal noise; Newcombe (1998), method 10, for the difference of probabilities.

    Raises ParameterError, also for a secret part of a frame; and what the release itself would raise.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> found = private.dp.compare_sampling("mean", "age", epsilon=1, rates=[0.02], rng=1)
    >>> found["worse"].tolist(), private.dp.budget.spent
    ([True], (0.0, 0.0))
    """
    protected.refuse_other_engines_for("compare_sampling")
    levels, _ = levels_of(epsilon)
    comparison = _Comparison.of(protected, levels, statistic, columns, args, options, spend)
    ways = _samples(protected, _checked_values("rates", rates, "rates=[0.1, 0.5, 0.9]."))
    coins = {way: AlikeCoins(way.share) if way.rows is None else SomeOf(way.rows) for way in ways}
    frame = _compared(comparison, ways, ["rate"], coins, repetitions, rng, progress)
    return confidential(frame, "compare_sampling", **_description(comparison))


def _samples(protected: Facts, rates: Sequence[Any]) -> list[_Omission]:
    shares = [check_rate(rate) for rate in rates]
    if len(set(shares)) < len(shares):
        raise ParameterError("'rates' must be different numbers.")
    if protected.unit.neighbors == "add_remove":
        return [_Omission((float(share),), Poisson(share), share) for share in shares]
    scope = protected.scope
    if scope.rows is None or scope.filtered or protected.unit.column is not None:
        raise ParameterError(
            "A sample without replacement needs a public number of records; that of this frame is private.",
            "compare from the frame before it is filtered.",
        )
    ways = []
    for share in shares:
        size = round(share * scope.rows) or 1
        exact = Fraction(size, scope.rows)
        ways.append(_Omission((float(share),), WithoutReplacement(exact), exact, size))
    return ways


def compare_suppression(
    protected: Facts,
    /,
    statistic: str,
    columns: Labels | None = None,
    *args: Any,
    epsilon: Rational | Sequence[Rational] = (0.25, 0.5, 1, 2),
    spreads: Sequence[tuple[Rational, Rational]] = ((0.1, 0.1), (0.5, 0.5), (0.5, 0.6), (0.9, 0.9)),
    distance: Distance | None = None,
    spend: Spend = "noise",
    repetitions: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **options: Any,
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: compare a release of all records with one after suppression.

    Parameters
    ----------
    statistic, columns, args, epsilon, spend, repetitions, rng, progress, options : as in `compare_sampling`.
        The columns of the release decide about outliers, and must be without nulls. With ``spend="epsilon"``
        the whole pays `pdprivacy.suppression.outlier_epsilon`, which may be more, and delta times 1 - m.
    spreads : pairs (m, M) of the least and the largest probability to be left out, in [0.01, 0.99], m not
        above M; in whole hundredths where they differ.
    distance : as in `suppress_outliers`; None: "discrete" for a mode, "absolute" for one other column, else
        "euclidean".

    Returns a DataFrame indexed by epsilon, m and M, with the columns of `compare_sampling`; NaN where the
    choice alone costs as much as epsilon (`pdprivacy.suppression.outlier_floor`; not with equal noise), or
    epsilon is above 100. How many records are left is private for m < M: counts and sums are divided by
    1 - (m + M) / 2.

    Source: "The adverse effects of omitting records in differential privacy", section 6, and appendices A.7
    to A.9 for equal noise.

    Raises ParameterError, also where all rows would be NaN, for neighbours other than "add_remove", and for
    several records per unit.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54] * 500}), domain, epsilon=1)
    >>> spreads = [(0.5, 0.5)]
    >>> private.dp.compare_suppression("mean", "age", epsilon=2, spreads=spreads, repetitions=5).index.names
    FrozenList(['epsilon', 'm', 'M'])
    """
    protected.refuse_other_engines_for("compare_suppression")
    levels, _ = levels_of(epsilon)
    comparison = _Comparison.of(protected, levels, statistic, columns, args, options, spend)
    pairs = [
        _spread(pair) for pair in _checked_values("spreads", spreads, "spreads=[(0.5, 0.5), (0.5, 0.6)].")
    ]
    if len(set(pairs)) < len(pairs):
        raise ParameterError("'spreads' must be different pairs.")
    refuse_units(protected)
    if not comparison.chosen:
        raise ParameterError(
            "'columns' must be given: they decide about outliers.", EXAMPLES["compare_suppression"]
        )
    if distance is None:
        several = len(comparison.chosen) > 1
        distance = "discrete" if comparison.name == "mode" else "euclidean" if several else "absolute"
    one_of(distance, "distance", get_args(Distance))
    limits = limits_of(comparison.chosen, distance, "compare_suppression")
    ways = [_Omission((float(m), float(M)), Outliers(m, M), 1 - (m + M) / 2) for m, M in pairs]
    scores = OutlierScores(comparison.chosen, distance, limits, progress)
    coins = {way: scores.coins(*pair) for way, pair in zip(ways, pairs, strict=True)}
    frame = _compared(comparison, ways, ["m", "M"], coins, repetitions, rng, progress)
    return confidential(frame, "compare_suppression", **_description(comparison), distance=distance)


def _spread(pair: Any) -> tuple[Fraction, Fraction]:
    if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ParameterError("'spreads' must be pairs (m, M).", "spreads=[(0.5, 0.5), (0.5, 0.6)].")
    return spread_of(*pair)
