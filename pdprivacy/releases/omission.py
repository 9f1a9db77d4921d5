"""What leaving records out costs a release at an equal guarantee: advice on sampling and suppression."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import checks, noise
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, check_one_of, got, kind
from pdprivacy.ledger import Budget
from pdprivacy.ledger.budget import charging
from pdprivacy.metadata import KEY
from pdprivacy.noise import RandomState, Source
from pdprivacy.privacy import Approx, Pure, Rational, loss, positive
from pdprivacy.protection import Protected
from pdprivacy.release.execute import execute
from pdprivacy.release.spec import Release
from pdprivacy.releases import clustering
from pdprivacy.releases.batches import priced
from pdprivacy.releases.columns import Labels, columns_of
from pdprivacy.releases.disclosure.options import MARK, levels_of
from pdprivacy.releases.omission_errors import STATISTICS, UNKNOWN, Estimate
from pdprivacy.releases.parts import by_unit, limits_of, refuse_units, scores_of, spread_of
from pdprivacy.secret import Secret
from pdprivacy.show.progress import shown
from pdprivacy.suppression import Distance, keep_probabilities
from pdprivacy.suppression.amplification import Amplification, Outliers, Poisson, WithoutReplacement
from pdprivacy.suppression.sampling import check_rate

__all__ = ["compare_sampling", "compare_suppression"]

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Draw: TypeAlias = "Callable[[_Way, Source], Mask]"

MOST_REPETITIONS = 10**6


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to leave records out.

    ``key``: its place in the index. ``law``: what it does to a guarantee. ``share``: what it keeps of the
    records, about. ``rows``: how many, where that is public.
    """

    key: tuple[float, ...]
    law: Amplification
    share: Fraction
    rows: int | None = None

    def cost(self, whole: Pure | Approx) -> Pure | Approx | None:
        """What a release of the part may cost, so that the whole pays this; None where nothing may."""
        try:
            return Secret(self.law, "noise").within(whole)
        except ParameterError:
            return None

    def facts(self, protected: Protected) -> Protected:
        """What is public about the part, and still all records."""
        rows = self.rows
        scope = protected.scope.narrowed() if rows is None else replace(protected.scope, rows=rows)
        return replace(protected, scope=scope)

    def part(self, protected: Protected, held: Mask) -> Protected:
        """These records, as a release of the part sees them."""
        return replace(self.facts(protected), records=protected.snapshot.take(np.flatnonzero(held)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A release that is repeated: what it is called with, and the columns that it reads."""

    name: str
    columns: Any
    chosen: tuple[Column, ...]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        protected: Protected,
        name: Any,
        columns: Any,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> _Asked:
        if not isinstance(name, str) or name not in STATISTICS:
            raise ParameterError(
                f"'statistic' must be one of {', '.join(map(repr, STATISTICS))} (got {got(name)})."
            )
        for word in ("release_id", "releases"):
            if word in options:
                raise ParameterError(f"A comparison takes no {word!r}: it releases nothing.", "leave it out.")
        if any(step.stability is None for step in protected.lineage):
            raise ParameterError(
                "A secret part cannot be compared with all records, which are not there.",
                "compare from the whole frame.",
            )
        whole = name == "count" and columns is None
        chosen = () if whole else columns_of(protected, columns, name)
        if any(column.timeline is not None for column in chosen) and name != "count":
            raise ParameterError(
                f"{name!r} of dates is not compared, only that of numbers.",
                f"days since a date are numbers: private.assign(days=private[{chosen[0].name!r}] - ...)",
            )
        if STATISTICS[name].single and len(chosen) != 1:
            raise ParameterError(f"{name!r} is compared for one column.")
        return cls(name, columns, chosen, arguments, options)

    def cost(self, level: Rational) -> Pure | Approx:
        """What the release of all records costs."""
        return loss(level, self.options.get("delta", 0))

    def _releases(
        self, facts: Protected, cost: Pure | Approx, state: RandomState
    ) -> tuple[Release[Any], ...]:
        words = {**self.options, "epsilon": cost.epsilon, "rng": state}
        if self.name in clustering.__all__:
            words["progress"] = False  # one bar for all of them
        if cost.delta:
            words["delta"] = cost.delta
        return STATISTICS[self.name].releases(facts, self.columns, *self.arguments, **words)

    def release(self, facts: Protected, cost: Pure | Approx, state: RandomState) -> Any:
        """Return what comes out at this cost, charged to a budget in memory that holds just that."""
        budget = Budget.with_total(cost)  # which nobody keeps: its charges are not told of
        budget.bind(facts.unit)
        with charging():
            made = [
                execute(release) for release in self._releases(replace(facts, budget=budget), cost, state)
            ]
        return STATISTICS[self.name].combined(*made)

    def check(self, facts: Protected, cost: Pure | Approx) -> None:
        """Refuse what the releases would refuse, and those that cost more than is asked for."""
        prices = [priced(release)[1].cost for release in self._releases(facts, cost, 0)]
        epsilon, delta = (sum(getattr(price, name) for price in prices) for name in ("epsilon", "delta"))
        if epsilon > cost.epsilon or delta > cost.delta:
            raise ParameterError(
                "The release costs more than its epsilon, so that no guarantee would be equal.",
                "another calibration.",
            )


def _compared(
    protected: Protected,
    asked: _Asked,
    levels: Sequence[Rational],
    ways: Sequence[_Way],
    drawing: Callable[[], Draw],
    names: Sequence[str],
    *,
    repetitions: Any,
    rng: RandomState,
    progress: bool | None,
) -> pd.DataFrame:
    """One row per level and way; ``drawing`` reads what the parts depend on."""
    repetitions = checks.whole(repetitions, "repetitions", 2, MOST_REPETITIONS)
    wholes = [asked.cost(level) for level in levels]
    costs = {way: [way.cost(whole) for whole in wholes] for way in ways}
    feasible = [way for way, found in costs.items() if any(found)]
    if not feasible:
        raise ParameterError(
            "No part can be released at any of these epsilons: selecting its records costs more.",
            "a larger epsilon, or m and M nearer to each other; pdprivacy.suppression.outlier_floor(m, M) "
            "must be below it.",
        )
    state = noise.simulator(rng)
    places: list[tuple[_Way | None, int]] = list(product([None, *feasible], range(repetitions)))
    turns = shown(places, len(places), asked.name, progress, long=True, timed=True)
    for cost in wholes:
        asked.check(protected, cost)
    for way in feasible:
        asked.check(way.facts(protected), next(cost for cost in costs[way] if cost is not None))
    # nothing was read so far
    read = [column.name for column in asked.chosen]
    whole = replace(protected, records=protected.snapshot[read], units=None)
    statistic = STATISTICS[asked.name]
    score = statistic.score(whole, asked.chosen, asked.name, asked.arguments)
    draw = drawing()
    errors = {place: np.full((len(levels), repetitions), np.nan) for place in (None, *feasible)}
    for place, turn in turns:
        share = Fraction(1) if place is None else place.share
        part = whole if place is None else place.part(whole, draw(place, noise.source(state)))
        for level, cost_or_none in enumerate(wholes if place is None else costs[place]):
            if cost_or_none is not None:
                errors[place][level, turn] = score(asked.release(part, cost_or_none, state), share)
    return _table(asked, levels, ways, costs, errors, names)


def _table(
    asked: _Asked,
    levels: Sequence[Rational],
    ways: Sequence[_Way],
    costs: Mapping[_Way, Sequence[Pure | Approx | None]],
    errors: Mapping[_Way | None, Floats],
    names: Sequence[str],
) -> pd.DataFrame:
    """The frame of the errors that were found."""
    chance = STATISTICS[asked.name].chance
    rows: list[tuple[Any, ...]] = []
    worse: list[bool | None] = []
    for level, _ in enumerate(levels):
        without = Estimate.of(errors[None][level], chance=chance)
        for way in ways:
            cost = costs[way][level]
            found = UNKNOWN if cost is None else Estimate.of(errors[way][level], chance=chance)
            apart = found.above(without)
            inner = math.nan if cost is None else float(cost.epsilon)
            rows.append((*found, *without, *apart, inner))
            worse.append(None if math.isnan(apart.lower) else apart.lower > 0)
    keys = [(float(positive(level, "epsilon")), *way.key) for level in levels for way in ways]
    heads = [
        "error",
        "lower",
        "upper",
        *(f"{name}{end}" for name in ("without", "difference") for end in ("", "_lower", "_upper")),
        "part_epsilon",
    ]
    frame = pd.DataFrame(rows, pd.MultiIndex.from_tuples(keys, names=["epsilon", *names]), heads)
    frame.insert(9, "worse", pd.Series(worse, frame.index, dtype="boolean"))
    frame.columns.name = MARK
    return frame


def _marked(frame: pd.DataFrame, protected: Protected, asked: _Asked, kind: str, **more: str) -> pd.DataFrame:
    """The frame with words about it."""
    frame.attrs[KEY] = {
        MARK: kind,
        "statistic": asked.name,
        "columns": [str(column.name) for column in asked.chosen],
        "error": STATISTICS[asked.name].error,
        "neighbors": protected.unit.neighbors,
        **more,
    }
    return frame


def _listed(name: str, values: Any, example: str) -> list[Any]:
    if isinstance(values, str) or not np.iterable(values) or not (found := list(values)):
        raise ParameterError(f"{name!r} must be a list.", example)
    if not isinstance(values, list | tuple) and any(isinstance(one, str) for one in found):
        raise ParameterError(f"{name!r} must be a list of numbers (got {kind(values)}).", example)
    return found


def compare_sampling(
    protected: Protected,
    /,
    statistic: str,
    columns: Labels | None = None,
    *args: Any,
    epsilon: Rational | Sequence[Rational] = (0.25, 0.5, 1, 2),
    rates: Sequence[Rational] = (0.1, 0.3, 0.5, 0.7, 0.9),
    repetitions: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **options: Any,
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: what a release errs by, of all records and of a sample at no more cost.

    At each epsilon (and delta) the release of all records is repeated, and that of a sample, drawn anew each
    time as by `sample`, with the larger epsilon that the sample allows (``part_epsilon``; delta alike). So
    both have the same guarantee. Measured on the records themselves by the real releases; nothing is charged.

    Parameters
    ----------
    statistic, columns, args, options : the release, its arguments and its other keywords, as in
        ``compare_sampling("quantile", "age", 0.9)``. "count", "max", "mean", "median", "min", "quantile",
        "std", "sum", "var"; "mode" of one column; "kmeans", "kmedian"; and "noisy_average", a ``sum`` over a
        ``count`` with half of the epsilon each, not centred as "mean" is.
    epsilon : one or several.
    rates : which shares of the records are sampled, in (0, 1]: by coins under "add_remove"; under
        "replace_one" so many of their public number, without replacement.
    repetitions : of each release; from 2 to a million.
    rng, progress : a seed or generator; a bar, which needs tqdm (None: where it is long).

    Returns a DataFrame indexed by epsilon and rate: ``error`` of the sample with its 95 % interval
    (``lower``, ``upper``), that of all records (``without``, ``without_lower``, ``without_upper``), the
    ``difference`` with its interval, and ``worse``: whether that is above 0. Numbers: the mean of
    |released - true| / |true| over the columns (NaN where a true number is 0); counts and sums are divided
    by the rate. "mode": the probability that it has not the largest count, with Wilson's interval.
    "kmeans": the mean squared distance of all records to the nearest centre, with ranges brought to
    [-1, 1]. "kmedian": the mean distance, with ranges of length one. Rows where delta is not below the rate
    are NaN. ``frame.dp.plot()`` draws it.

    Source: "The adverse effects of omitting records in differential privacy", section 3; Newcombe (1998),
    method 10, for the difference of probabilities.

    Raises ParameterError, also for a secret part of a frame; and what the release itself would raise.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> found = private.dp.compare_sampling("mean", "age", epsilon=1, rates=[0.02], rng=1)
    >>> found["worse"].tolist(), private.dp.budget.spent
    ([True], (0.0, 0.0))
    """
    protected.refuse_elsewhere("compare_sampling")
    levels, _ = levels_of(epsilon)
    asked = _Asked.of(protected, statistic, columns, args, options)
    ways = _samples(protected, _listed("rates", rates, "rates=[0.1, 0.5, 0.9]."))

    def draw(way: _Way, source: Source) -> Mask:
        if way.rows is not None:
            return noise.draw_without_replacement(len(protected.snapshot), way.rows, source)
        return by_unit(protected, lambda size: noise.coins(size, way.share, source))

    frame = _compared(
        protected,
        asked,
        levels,
        ways,
        lambda: draw,
        ["rate"],
        repetitions=repetitions,
        rng=rng,
        progress=progress,
    )
    return _marked(frame, protected, asked, "compare_sampling")


def _samples(protected: Protected, rates: Sequence[Any]) -> list[_Way]:
    shares = [check_rate(rate) for rate in rates]
    if len(set(shares)) < len(shares):
        raise ParameterError("'rates' must be different numbers.")
    if protected.unit.neighbors == "add_remove":
        return [_Way((float(share),), Poisson(share), share) for share in shares]
    scope = protected.scope
    if scope.rows is None or scope.filtered or protected.units is not None:
        raise ParameterError(
            "A sample without replacement needs a public number of records, and that of these is private.",
            "compare from the frame before it is filtered.",
        )
    ways = []
    for share in shares:
        size = round(share * scope.rows) or 1
        exact = Fraction(size, scope.rows)
        ways.append(_Way((float(share),), WithoutReplacement(exact), exact, size))
    return ways


def compare_suppression(
    protected: Protected,
    /,
    statistic: str,
    columns: Labels | None = None,
    *args: Any,
    epsilon: Rational | Sequence[Rational] = (0.25, 0.5, 1, 2),
    spreads: Sequence[tuple[Rational, Rational]] = ((0.1, 0.1), (0.5, 0.5), (0.5, 0.6), (0.9, 0.9)),
    distance: Distance | None = None,
    repetitions: int = 200,
    rng: RandomState = None,
    progress: bool | None = None,
    **options: Any,
) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: as `compare_sampling`, of what `suppress_outliers` leaves.

    Parameters
    ----------
    statistic, columns, args, epsilon, repetitions, rng, progress, options : as of `compare_sampling`.
        Outliers are told by the columns of the release, which must be without nulls.
    spreads : pairs (m, M) of the least and the largest probability to be left out, in [0.01, 0.99], m not
        above M; in whole hundredths where they differ.
    distance : of `suppress_outliers`; None: "discrete" for a mode, "absolute" for one other column, else
        "euclidean".

    Returns a DataFrame indexed by epsilon, m and M, with the columns of `compare_sampling`; NaN where the
    choice alone costs as much as epsilon (`pdprivacy.suppression.outlier_floor`), or epsilon is above 100.
    How many records are left is private for m < M: counts and sums are divided by 1 - (m + M) / 2.

    Source: "The adverse effects of omitting records in differential privacy", section 6.

    Raises ParameterError, also where all rows would be NaN, for neighbours other than "add_remove", and for
    several records per unit.

    >>> import pandas as pd, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54] * 500}), domain, epsilon=1)
    >>> spreads = [(0.5, 0.5)]
    >>> private.dp.compare_suppression("mean", "age", epsilon=2, spreads=spreads, repetitions=5).index.names
    FrozenList(['epsilon', 'm', 'M'])
    """
    protected.refuse_elsewhere("compare_suppression")
    levels, _ = levels_of(epsilon)
    asked = _Asked.of(protected, statistic, columns, args, options)
    pairs = [_spread(pair) for pair in _listed("spreads", spreads, "spreads=[(0.5, 0.5), (0.5, 0.6)].")]
    if len(set(pairs)) < len(pairs):
        raise ParameterError("'spreads' must be different pairs.")
    refuse_units(protected)
    if distance is None:
        several = len(asked.chosen) > 1
        distance = "discrete" if asked.name == "mode" else "euclidean" if several else "absolute"
    check_one_of("distance", distance, get_args(Distance))
    limits = limits_of(asked.chosen, distance, "compare_suppression")
    ways = [_Way((float(m), float(M)), Outliers(m, M), 1 - (m + M) / 2) for m, M in pairs]

    def drawing() -> Draw:
        scores = np.empty(0)
        if any(m < M for m, M in pairs):
            scores = scores_of(protected, asked.chosen, distance, limits, progress)
        kept = {
            way: keep_probabilities(scores, *pair)
            for way, pair in zip(ways, pairs, strict=True)
            if pair[0] < pair[1]
        }

        def draw(way: _Way, source: Source) -> Mask:
            if way in kept:
                return noise.weighted_coins(kept[way], source)
            return noise.coins(len(protected.snapshot), way.share, source)

        return draw

    frame = _compared(
        protected,
        asked,
        levels,
        ways,
        drawing,
        ["m", "M"],
        repetitions=repetitions,
        rng=rng,
        progress=progress,
    )
    return _marked(frame, protected, asked, "compare_suppression", distance=distance)


def _spread(pair: Any) -> tuple[Fraction, Fraction]:
    if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ParameterError("'spreads' must be pairs (m, M).", "spreads=[(0.5, 0.5), (0.5, 0.6)].")
    return spread_of(*pair)
