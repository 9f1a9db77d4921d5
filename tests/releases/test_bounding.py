"""Releases within bounds (`narrow`): private to the last whole number, within their bounds, and saying so.

The exact numbers are read on every table of a small universe of records, and privacy losses are summed
from the laws of the noise; what is released is checked against bounds that are written out here.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import pdprivacy
from pdprivacy import Budget, Column, Domain
from pdprivacy.core import noise
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.gate.request import Request
from pdprivacy.core.gate.tasks import calibrate
from pdprivacy.core.mechanisms import Laplace
from pdprivacy.core.statistics import (
    BoundedStatistic,
    CellCounts,
    Direct,
    Noisy,
    Part,
    Scope,
    Sums,
    TreeCells,
    quantity,
)
from pdprivacy.errors import (
    BudgetExceeded,
    DeclarationWarning,
    ParameterError,
    PrivacyError,
    TableTooLargeError,
)
from pdprivacy.releases import metadata
from tests.support import gate
from tests.support.cases import check_each
from tests.support.divergences import truncated_hockey_stick
from tests.support.gate import measured
from tests.support.snapshots import engine_of

NAN = float("nan")


def protected(frame: pd.DataFrame, domain: Domain, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # records at the bounds are the point here
        return frame.dp.protect(domain, **{"epsilon": 10**9, "delta": "0.99", **options})


def in_turn(*choices: Any) -> list[tuple[Any, ...]]:
    """All combinations of all choices but the last, whose values take turns: every two come together."""
    *others, last = map(list, choices)
    positions = itertools.product(*(range(len(choice)) for choice in others))
    return [
        (*(choice[position] for choice, position in zip(others, at, strict=True)), last[sum(at) % len(last)])
        for at in positions
    ]


class CapturedError(Exception):
    pass


def captured(private: pd.DataFrame, call: Callable[[Any], Any]) -> tuple[Any, Request]:
    """The statistic and the request that a call of the accessor hands to the gate."""
    received: list[Any] = []

    def capture(release: Any, *_: Any) -> None:
        received.extend((release.task.statistic, release.task.request))
        raise CapturedError

    with mock.patch("pdprivacy.core.gate.execute.execute", capture), pytest.raises(CapturedError):
        call(private.dp)
    return received[0], received[1]


# ---------------------------------------------------------------- every table of a small universe


@dataclass(frozen=True)
class World:
    """A declaration, a definition of neighbours, and the tables of at most ``size`` records."""

    name: str
    neighbors: str
    size: int = 3
    public_rows: int | None = None
    nullable: bool = False
    query: str | None = None

    @property
    def domain(self) -> Domain:
        return Domain(
            (
                Column("x", "float", self.nullable, -3.0, 10.0),
                Column("y", "float", self.nullable, 90, 98),
                Column("flag", "boolean", self.nullable),
                Column("g", "category", self.nullable, categories=("a", "b", "c")),
            )
        )

    @property
    def records(self) -> pd.DataFrame:
        rows: list[tuple[Any, ...]] = [
            (-3.0, 90.0, False, "a"),
            (10.0, 98.0, True, "c"),
            (-3.0, 98.0, True, "a"),
            (10.0, 90.0, False, "b"),
            (3.7, 94.1, False, "c"),
        ]
        if self.nullable:
            rows += [(NAN, 98.0, None, "b"), (10.0, NAN, True, None)]
        x, y, flag, g = (list(column) for column in zip(*rows, strict=True))
        return pd.DataFrame(
            {
                "x": np.array(x),
                "y": np.array(y),
                "flag": pd.array(flag, dtype="boolean") if self.nullable else np.array(flag),
                "g": pd.Series(g, dtype=object),
            }
        )

    def private(self, rows: tuple[int, ...]) -> pd.DataFrame:
        raw = self.records.take(list(rows)).reset_index(drop=True)
        private = protected(raw, self.domain, neighbors=self.neighbors, public_rows=self.public_rows)
        return private if self.query is None else private.dp.query(self.query)

    def engine(self, rows: tuple[int, ...]) -> Any:
        if self.query is None:
            return PandasEngine(self.records.take(list(rows)).reset_index(drop=True))
        return engine_of(self.private(rows))

    def counts(self, rows: tuple[int, ...]) -> bool:
        """Whether a table of these rows is one that what is public allows."""
        return len(rows) >= (self.public_rows or 0)


@lru_cache
def engines(world: World) -> dict[tuple[int, ...], Any]:
    least = world.size if world.neighbors == "replace_one" else max((world.public_rows or 1) - 1, 0)
    return {
        rows: world.engine(rows)
        for size in range(least, world.size + 1)
        for rows in itertools.combinations_with_replacement(range(len(world.records)), size)
    }


@lru_cache
def neighbours(world: World) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return list(pairs_of(world))


def pairs_of(world: World) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    without = defaultdict(set)
    for rows in engines(world):
        for position in range(len(rows)):
            without[rows[:position] + rows[position + 1 :]].add(rows)
    for fewer, group in without.items():
        if world.neighbors == "replace_one":
            yield from itertools.combinations(sorted(group), 2)
        elif fewer in engines(world):
            yield from ((fewer, rows) for rows in group)


HIERARCHY = {"constraint": "hierarchy", "bounding": "truncated"}
CALLS: dict[str, Callable[[Any], Any]] = {
    "count": lambda dp: dp.count(["x", "g"], epsilon=1, bounding="truncated"),
    "value_counts": lambda dp: dp.value_counts(["g", "flag"], epsilon=1, bounding="truncated"),
    "tree of 2": lambda dp: dp.value_counts(["g", "flag"], epsilon=1, branching=2, **HIERARCHY),
    "tree of 3": lambda dp: dp.crosstab("g", "flag", epsilon=1, branching=3, **HIERARCHY),
    "tree of leaves": lambda dp: dp.value_counts("flag", epsilon=1, branching=9, **HIERARCHY),
    "histogram": lambda dp: dp.histogram("x", [-1, 0.25, 5], epsilon=1, bounding="truncated"),
    "sum": lambda dp: dp.sum(["x", "y"], epsilon=1, bounding="clamp"),
    "mean": lambda dp: dp.mean(["x", "y", "flag"], epsilon=1, bounding="truncated"),
    "mean, narrow": lambda dp: dp.mean("x", epsilon=1, bounding="clamp", bounds=(-1, 8)),
    "proportion": lambda dp: dp.proportion("g", "b", epsilon=1, bounding="truncated"),
    "var": lambda dp: dp.var(["x", "y"], epsilon=1, bounding="truncated"),
    "std": lambda dp: dp.std("y", epsilon=1, bounding="truncated"),
    "cov": lambda dp: dp.cov(["x", "y", "flag"], epsilon=1, bounding="truncated"),
    "groupby count": lambda dp: dp.groupby("g").count(epsilon=1, bounding="truncated"),
    "groupby sum": lambda dp: dp.groupby("g").sum(["x", "y"], epsilon=1, bounding="clamp"),
    "groupby mean": lambda dp: dp.groupby("g").mean(["x", "y"], epsilon=1, bounding="truncated"),
    "groupby var": lambda dp: dp.groupby("flag").var(["x", "y"], epsilon=1, bounding="truncated"),
    "pooled_var": lambda dp: dp.pooled_var(["x", "y"], by="flag", epsilon=1, bounding="truncated"),
    "pooled_cov": lambda dp: dp.pooled_cov(["x", "y"], by="flag", epsilon=1, bounding="truncated"),
}
WORLDS = [
    World("private rows", "add_remove"),
    World("at least 2 rows", "add_remove", public_rows=2),
    World("private rows, nulls", "add_remove", size=2, nullable=True),
    World("private rows, filter", "add_remove", size=2, query="x >= 0"),
    World("2 rows", "replace_one", size=2),
    World("3 rows", "replace_one"),
    World("2 rows, nulls", "replace_one", size=2, nullable=True),
    World("2 rows, filter", "replace_one", size=2, query="x >= 0"),
]


def refused(call: str, world: World) -> bool:
    """Pooled moments of two groups need three rows; columns without nulls have a public count."""
    few = world.neighbors == "replace_one" and world.size < 3 and not (world.nullable or world.query)
    return few and call.startswith("pooled")


PAIRS = [(call, world) for call in CALLS for world in WORLDS if not refused(call, world)]


@lru_cache
def exact(call: str, world: World) -> tuple[Any, tuple[Part, ...], dict[tuple[int, ...], list[list[int]]]]:
    statistic, _ = captured(world.private(tuple(range(world.size))), CALLS[call])
    tables = {
        rows: [[int(number) for number in part] for part in gate.exact(statistic, engine)]
        for rows, engine in engines(world).items()
    }
    return statistic, statistic.parts, tables


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("call", "world"), PAIRS, ids=lambda value: getattr(value, "name", value))
def test_neighbours_move_no_part_further_and_no_more_numbers_than_it_says(call, world):
    _, parts, tables = exact(call, world)
    assert sum((part.weight for part in parts), Fraction(0)) == 1
    most = np.zeros((3, len(parts)), dtype=object)
    for left, right in neighbours(world):
        for position, (first, second) in enumerate(zip(tables[left], tables[right], strict=True)):
            steps = [abs(a - b) for a, b in zip(first, second, strict=True) if a != b]
            norms = sum(steps), sum(step * step for step in steps), len(steps)
            most[:, position] = [max(pair) for pair in zip(most[:, position], norms, strict=True)]
    for position, part in enumerate(parts):
        assert most[0, position] <= part.l1, part.name
        assert most[1, position] <= part.l2_squared, part.name
        assert most[2, position] <= part.l0, part.name
    if call.startswith("tree") and world.neighbors == "replace_one" and not world.query:
        # two paths from different leaves of which one is in all levels of its own
        assert most[0, 0] >= 2 if call == "tree of leaves" else most[0, 0] >= 4
    if call.startswith("tree") and world.neighbors == "add_remove" and not world.query:
        assert most[0, 0] == parts[0].l1 == parts[0].l0 == len(exact(call, world)[0].tree.levels)


def noise_free(part: Part, whole: list[int]) -> Noisy:
    return Noisy(np.array([float(number * part.unit) for number in whole]), 0.0)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("call", "world"), PAIRS, ids=lambda value: getattr(value, "name", value))
def test_exact_numbers_lie_within_their_bounds_on_every_table(call, world):
    """Static bounds hold to the last unit. Those that follow from exact parts hold to the rounding of
    doubles, and to the unit to which covariances are rounded; and so do the numbers made of them."""
    statistic, parts, tables = exact(call, world)
    narrow = isinstance(statistic, BoundedStatistic)
    for rows, read in tables.items():
        if not world.counts(rows):
            continue
        earlier: list[Noisy] = []
        for part, whole in zip(parts, read, strict=True):
            values = [number * part.unit for number in whole]
            lower, upper = part.bounds
            if not narrow:  # the caller may bound more narrowly: then numbers are clamped
                assert all(lower <= value <= upper for value in values), (part.name, rows)
            low, high = part.bounds_given(earlier)
            slack = float(2 * part.unit) if part.limits is not None else 0.0
            numbers = noise_free(part, whole)
            slack += 1e-12 * float(np.abs(numbers.values).max(initial=0.0))
            if not narrow:
                assert (numbers.values >= low - slack).all(), (part.name, rows)
                assert (numbers.values <= high + slack).all(), (part.name, rows)
            earlier.append(numbers)
        answer = statistic.finish(earlier)
        values = np.asarray(answer.values)
        size = 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
        slack = size + np.asarray(answer.rounding) + 2 * max(float(part.unit) for part in parts)
        if not narrow:
            assert (values >= answer.lower - slack).all(), rows
            assert (values <= answer.upper + slack).all(), rows


def test_bounds_are_those_of_the_statistic_and_not_wider():
    """Every end of a static bound that is not an open one is met by some table, up to rounding."""
    world = World("3 rows", "replace_one")
    for call in ("value_counts", "sum", "mean", "proportion", "groupby count"):
        _, parts, tables = exact(call, world)
        for position, part in enumerate(parts):
            numbers = [number * part.unit for read in tables.values() for number in read[position]]
            assert min(numbers) == pytest.approx(float(part.bounds[0]), abs=1e-5)
            assert max(numbers) == pytest.approx(float(part.bounds[1]), abs=1e-5)
    for call in ("var", "pooled_var"):  # of an odd number of records 1 - 1/n^2 of it
        _, parts, tables = exact(call, world)
        most = max(read[0][0] * parts[0].unit for read in tables.values())
        assert most == pytest.approx(float(parts[0].upper * Fraction(8, 9)), rel=1e-4)


# ---------------------------------------------------------------- coarse grids


GENERALIZED = {"mechanism": "generalized_gaussian", "delta": "1e-6", "p": 3}


@pytest.mark.full(keep=10)
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
@pytest.mark.parametrize(("low", "high"), [(0.3, 10.7), (-3.3, 9.1), (18.0, 90.0), (1.0, 97.3), (-7.7, 0.9)])
@pytest.mark.parametrize("epsilon", ["1", "0.01"])
def test_one_record_alone_moves_a_rounded_sum_no_further_than_is_paid_for(
    low, high, epsilon, bounding, monkeypatch
):
    """A grid coarser than the unit rounds both neighbours, which may move them a step further apart."""
    zero = lambda _power, _divisor, below, _above, _source: np.zeros(len(below), np.int64)  # noqa: E731
    monkeypatch.setattr(noise, "generalized_normal", zero)
    column = Column("x", "float", lower=low, upper=high)
    statistic = Sums((quantity(column, "sum", centered=False),), (Fraction(1),), Scope("replace_one", 1))
    request = Request(epsilon, bounding=bounding, **GENERALIZED)
    (mechanism,) = calibrate(statistic.parts, request)
    assert mechanism.grid > statistic.parts[0].unit
    released = []
    for value in (low, high, (low + high) / 2):
        engine = PandasEngine(pd.DataFrame({"x": [value]}))
        (result,) = measured(statistic, engine, Budget(10**6, "0.1"), request, None)
        released.append(Fraction(result.noisy[0].values[0]))
    assert max(released) - min(released) <= mechanism.sensitivity


# ---------------------------------------------------------------- privacy losses of the calibrated noise


def lost(steps: float, moved: float, moves: int, width: float) -> float:
    """The loss of truncated Laplace noise: d/b + ln C(lo + d) - ln C(lo) for each of ``moves`` numbers.

    ``width``: the range in steps. On the integers C is a geometric sum: the range holds width + 1 points.
    """
    d = min(moved / moves, width)

    def gained(at: float) -> float:
        # r^0 + ... + r^at and r^1 + ... + r^(width - at)
        gap = -math.expm1(-1 / steps)
        left = -math.expm1(-(at + 1) / steps) / gap
        right = math.exp(-1 / steps) * -math.expm1(-(width - at) / steps) / gap if width > at else 0.0
        return math.log(left + right)

    best = 0.0
    for at in (d, min(d, width / 2)):
        best = max(best, d / steps + gained(at) - gained(0.0))
    return moves * best


def moved_steps(part: Part, grid: Fraction) -> float:
    moved = Fraction(part.l1) * part.unit
    return float(moved / grid) if grid <= part.unit else math.floor(moved / grid) + part.l0


def width_of(part: Part, grid: Fraction) -> float:
    if part.lower is None or part.upper is None:
        return math.inf
    return math.floor(part.upper / grid) - math.ceil(part.lower / grid)


SCOPES = {
    "add_remove": {"neighbors": "add_remove"},
    "public rows": {"neighbors": "add_remove", "public_rows": 10},
    "replace_one": {"neighbors": "replace_one"},
}
ROWS = 12
X = [18.0, 90.0, 20.5, 33.25, 41.0, 60.0, 75.5, 88.0, 50.0, 18.0, 90.0, 27.0]
FRAME = pd.DataFrame(
    {
        "x": X,
        "y": [10.0 - value / 9 for value in X],
        "z": [NAN, 4.0, -2.0, 0.5, 1.0, 1.5, NAN, 3.0, -1.0, 2.0, 0.0, 4.0],
        "g": list("aabacbaaacaa"),
        "b": [row % 4 == 0 for row in range(ROWS)],
    }
)
DOMAIN = Domain(
    (
        Column("x", "float", lower=18, upper=90),
        Column("y", "float", lower=0, upper=10),
        Column("z", "float", nullable=True, lower=-2, upper=4),
        Column("g", "category", categories=("a", "b", "c", "d")),
        Column("b", "boolean"),
    )
)
RANGES = {"x": (18.0, 90.0), "y": (0.0, 10.0), "z": (-2.0, 4.0), "b": (0.0, 1.0)}


@lru_cache
def private_of(scope: str) -> pd.DataFrame:
    return protected(FRAME, DOMAIN, **SCOPES[scope])


NUMBERS: dict[str, Callable[..., Any]] = {
    "mean": lambda dp, **options: dp.mean(["x", "y"], split={"x": 3, "y": 1}, **options),
    "mean with nulls": lambda dp, **options: dp.mean(["x", "z"], **options),
    "proportion": lambda dp, **options: dp.proportion("g", "b", **options),
    "var": lambda dp, **options: dp.var(["x", "y"], **options),
    "std": lambda dp, **options: dp.std(["x", "z"], **options),
    "cov": lambda dp, **options: dp.cov(["x", "y", "b"], **options),
    "corr": lambda dp, **options: dp.corr(["x", "y", "b"], **options),
    "pooled_var": lambda dp, **options: dp.pooled_var(["x", "y"], by="b", **options),
    "pooled_cov": lambda dp, **options: dp.pooled_cov(["x", "y"], by="b", **options),
    "groupby mean": lambda dp, **options: dp.groupby("g").mean(["x", "y"], **options),
    "groupby var": lambda dp, **options: dp.groupby("g").var(["x", "z"], **options),
    "sum": lambda dp, **options: dp.sum(["x", "y"], **options),
    "groupby sum": lambda dp, **options: dp.groupby("g").sum(["x", "y"], **options),
}
COUNTS: dict[str, Callable[..., Any]] = {
    "count": lambda dp, **options: dp.count(["z", "x"], **options),
    "value_counts": lambda dp, **options: dp.value_counts(["g", "b"], **options),
    "histogram": lambda dp, **options: dp.histogram("x", 5, **options),
    "crosstab": lambda dp, **options: dp.crosstab("g", "b", **options),
    "groupby count": lambda dp, **options: dp.groupby("g").count(**options),
    "tree": lambda dp, **options: dp.value_counts(["g", "b"], constraint="hierarchy", **options),
}
SHARES: dict[str, Callable[..., Any]] = {
    "shares": lambda dp, **options: dp.value_counts("g", normalize=True, **options),
    "shares of a table": lambda dp, **options: dp.crosstab("g", "b", normalize=True, **options),
    "shares of rows": lambda dp, **options: dp.crosstab("g", "b", normalize="index", **options),
    "shares of columns": lambda dp, **options: dp.crosstab("g", "b", normalize="columns", **options),
}
MARGINS: dict[str, Callable[..., Any]] = {
    "margins": lambda dp, **options: dp.crosstab("g", "b", margins=True, **options),
    "shares with margins": lambda dp, **options: dp.crosstab(
        "g", "b", normalize=True, margins=True, **options
    ),
}
ALL = {**NUMBERS, **COUNTS, **SHARES, **MARGINS}
OPEN_RANGES = (0, 1, 2, 5, 100, 10**6, 10**12)


def calibrated(name: str, scope: str, **options: Any) -> tuple[Any, tuple[Part, ...], Any, Request]:
    statistic, request = captured(private_of(scope), lambda dp: ALL[name](dp, **options))
    return statistic, statistic.parts, calibrate(statistic.parts, request), request


@pytest.mark.full(keep=26)
@pytest.mark.parametrize(
    ("name", "scope", "epsilon", "releases"),
    in_turn([*NUMBERS, *COUNTS], SCOPES, ["0.001", "0.1", "1", "10"], [1, 3]),
)
def test_truncated_laplace_noise_of_all_parts_loses_epsilon_at_most(name, scope, epsilon, releases):
    """Summed from the laws on their grids, per part, whatever the noisy parts before it bound it by."""
    _, parts, mechanisms, _ = calibrated(
        name, scope, epsilon=epsilon, mechanism="laplace", bounding="truncated", releases=releases
    )
    total = 0.0
    for part, mechanism in zip(parts, mechanisms, strict=True):
        steps, moved = float(mechanism.steps), moved_steps(part, mechanism.grid)
        if part.limits is None:
            loss = lost(steps, moved, part.l0, width_of(part, mechanism.grid))
        else:
            reach = [float(unit * steps / 3) for unit in OPEN_RANGES] + [float(k) for k in OPEN_RANGES]
            loss = max(lost(steps, moved, part.l0, width) for width in (*reach, math.inf))
        assert loss >= 0.9 * float(epsilon) * float(part.weight) / releases  # and no noise is wasted
        total += loss
    assert total * releases <= float(epsilon) * (1 + 1e-12)


@pytest.mark.full(keep=31)
@pytest.mark.parametrize("releases", [1, 3])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "10"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", COUNTS)
def test_truncated_geometric_noise_loses_epsilon_at_most(name, scope, epsilon, releases):
    """Exact sums over every place of every pair of counts; several counts share what a record moves."""
    _, parts, mechanisms, _ = calibrated(
        name, scope, epsilon=epsilon, mechanism="geometric", bounding="truncated", releases=releases
    )
    total = 0.0
    for part, mechanism in zip(parts, mechanisms, strict=True):
        width = width_of(part, Fraction(1))
        positions = np.arange(int(width if math.isfinite(width) else 40) + 1)
        exponent = -np.abs(positions[:, None] - positions) / float(mechanism.steps)
        if math.isinf(width):  # what lies beyond the places is in proportion to the last one
            tail = np.exp(exponent[:, -1]) / math.expm1(1 / float(mechanism.steps))
        else:
            tail = np.zeros(len(positions))
        logs = exponent - np.log(np.exp(exponent).sum(axis=1) + tail)[:, None]
        # one number that moves by d: the worst place of the worst pair
        apart = [0.0] + [
            float(np.abs(logs[d:] - logs[:-d]).max()) for d in range(1, min(part.l1, len(positions) - 1) + 1)
        ]
        # every way of spreading l1 over at most `moves` numbers
        best = [0.0] * (part.l1 + 1)
        for _ in range(part.l0):
            best = [
                max(best[left] + apart[min(used - left, len(apart) - 1)] for left in range(used + 1))
                for used in range(part.l1 + 1)
            ]
        total += max(best)
    assert 0.9 * float(epsilon) <= total * releases <= float(epsilon) * (1 + 1e-12)


@dataclass(frozen=True)
class Normal:
    """The generalized normal law by its formulas: scipy's own checks its arguments at every call."""

    p: float
    scale: float

    def cdf(self, x: float) -> float:
        beyond = special.gammaincc(1 / self.p, abs(x / self.scale) ** self.p) / 2
        return float(beyond if x < 0 else 1 - beyond)

    def logpdf(self, x: float) -> float:
        return -(abs(x / self.scale) ** self.p) - math.log(2 * self.scale / self.p * math.gamma(1 / self.p))


@pytest.mark.parametrize("p", [1.5, 2.0, 4.0])
def test_the_law_of_the_formulas_is_that_of_scipy(p):
    law, other = Normal(p, 3.0), stats.gennorm(p, scale=3.0)
    for x in np.linspace(-20, 20, 41):
        assert law.cdf(x) == pytest.approx(other.cdf(x), rel=1e-11, abs=1e-300)
        assert law.logpdf(x) == pytest.approx(other.logpdf(x), rel=1e-11)


def ranges_of(part: Part, moved: float, scale: float) -> list[float]:
    """The range of a static part; some for one with an open side, or with bounds that noisy parts imply."""
    if part.limits is None and part.lower is not None and part.upper is not None:
        return [float(part.upper - part.lower)]
    return [moved, 1.5 * moved, 3 * moved, 30 * scale, 100 * scale]


def worst(law: Any, grid: float, width: float, moved: float, epsilon: float) -> float:
    """The largest hockey-stick divergence of truncated noise over places all over the range, both ways."""
    return max(
        truncated_hockey_stick(
            law,
            -grid / 2,
            width + grid / 2,
            start * width,
            min(max(start * width + way, 0.0), width),
            epsilon,
        )
        for start in (0.0, 0.1, 0.4, 0.5, 0.8, 1.0)
        for way in (-moved, moved)
    )


ONE_NUMBER = [
    ("proportion", "replace_one"),
    ("mean", "public rows"),
    ("var", "replace_one"),
    ("count", "add_remove"),
    ("mean with nulls", "add_remove"),
]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("p", "delta"), [("1.5", "1e-3"), (2, "1e-5"), (4, "1e-4")])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
@pytest.mark.parametrize(("name", "scope"), ONE_NUMBER)
def test_truncated_generalized_noise_of_a_part_keeps_its_delta(name, scope, epsilon, p, delta):
    """Hockey-stick divergences at the share of each part; the shares add up by composition."""
    options = {"mechanism": "generalized_gaussian", "p": p, "delta": delta}
    _, parts, mechanisms, _ = calibrated(name, scope, epsilon=epsilon, bounding="truncated", **options)
    assert sum(part.weight for part in parts) == 1
    for part, mechanism in zip(parts, mechanisms, strict=True):
        assert part.l0 == 1
        grid = float(mechanism.grid)
        moved = moved_steps(part, mechanism.grid) * grid
        law = Normal(float(p), mechanism.scale)
        for width in ranges_of(part, moved, mechanism.scale):
            worst_delta = worst(law, grid, width, moved, float(epsilon) * float(part.weight))
            assert worst_delta <= float(delta) * float(part.weight) * (1 + 1e-6) + 1e-13, part.name


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The hockey-stick divergence of two normal laws whose centres are mu standard deviations apart."""
    first, second = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.logcdf(-mu / 2 - epsilon / mu)
    return float(first - math.exp(epsilon + second))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("calibration", ["analytic", "pdp"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
@pytest.mark.parametrize(("name", "scope"), ONE_NUMBER)
def test_truncated_gaussian_noise_tells_centres_apart_no_better_than_without_bounds(
    name, scope, epsilon, calibration
):
    """At every epsilon, for statistics all over the range: then parts compose as Gaussian noise does."""
    options = {"mechanism": "gaussian", "delta": "1e-3", "calibration": calibration}
    _, parts, mechanisms, _ = calibrated(name, scope, epsilon=epsilon, bounding="truncated", **options)
    for part, mechanism in zip(parts, mechanisms, strict=True):
        assert part.l0 == 1
        grid = float(mechanism.grid)
        moved = moved_steps(part, mechanism.grid) * grid
        law = Normal(2.0, math.sqrt(2) * mechanism.scale)
        for width, at in itertools.product(ranges_of(part, moved, mechanism.scale), (0.01, 0.1, 1.0, 3.0)):
            plain = gaussian_delta(at, moved / mechanism.scale)
            assert worst(law, grid, width, moved, at) <= plain * (1 + 1e-6) + 1e-13, part.name


@pytest.mark.full(keep=23)
@pytest.mark.parametrize(
    ("name", "scope", "calibrated_by", "bounding"),
    in_turn(
        [*NUMBERS, *COUNTS],
        SCOPES,
        [("analytic", "1"), ("pdp", "1"), ("classic", "0.5")],
        [None, "clamp", "truncated"],
    ),
)
def test_gaussian_noise_of_all_parts_is_that_of_one_vector(name, scope, calibrated_by, bounding):
    """The squares of shift over deviation add up; the sum has the delta of the call at its epsilon."""
    calibration, epsilon = calibrated_by
    for releases in (1, 3):
        _, parts, mechanisms, _ = calibrated(
            name,
            scope,
            epsilon=epsilon,
            delta="1e-5",
            mechanism="gaussian",
            calibration=calibration,
            bounding=bounding,
            releases=releases,
        )
        total = 0.0
        for part, mechanism in zip(parts, mechanisms, strict=True):
            shift = math.sqrt(part.l2_squared) * float(part.unit)
            if mechanism.grid > part.unit:
                shift += part.l0 * float(mechanism.grid)
            total += (shift / mechanism.scale) ** 2
        total_delta = gaussian_delta(float(epsilon) / releases, math.sqrt(total)) * releases
        assert total_delta <= 1e-5 * (1 + 1e-6)
        assert calibration != "analytic" or total_delta >= 0.99e-5


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", [*NUMBERS, *COUNTS])
def test_unbounded_and_clamped_noise_have_one_calibration(name, scope):
    for options in (
        {"mechanism": "laplace"},
        {"mechanism": "gaussian", "delta": "1e-5"},
        {"mechanism": "generalized_gaussian", "delta": "1e-5", "p": 3},
    ):
        plain = calibrated(name, scope, epsilon=1, **options)[2]
        clamped = calibrated(name, scope, epsilon=1, bounding="clamp", **options)[2]
        assert plain == clamped


# ---------------------------------------------------------------- the published calibration


def published(epsilon: float, moved: float, width: float, moves: int = 1) -> float:
    """epsilon + m ln( C(lo + d) / C(lo) ) of noise of the scale moved / epsilon; d = moved / m."""
    b, d = moved / epsilon, moved / moves
    if math.isinf(width):
        return epsilon + moves * math.log(2 - math.exp(-d / b))
    ratio = (2 - math.exp(-d / b) - math.exp(-(width - d) / b)) / -math.expm1(-width / b)
    return epsilon + moves * math.log(ratio)


PUBLISHED: dict[str, tuple[str, Callable[..., Any], Callable[[float], float]]] = {
    "mean of a public number of rows": (
        "replace_one",
        lambda dp, **options: dp.mean(["x", "y"], split={"x": 3, "y": 1}, **options),
        lambda e: published(0.75 * e, 72 / ROWS, 72) + published(0.25 * e, 10 / ROWS, 10),
    ),
    "variance": (
        "replace_one",
        lambda dp, **options: dp.var("x", **options),
        lambda e: published(e, 72**2 / ROWS, 72**2 * ROWS / (4 * (ROWS - 1))),
    ),
    "counts": (
        "add_remove",
        lambda dp, **options: dp.value_counts("g", mechanism="laplace", **options),
        lambda e: published(e, 1, math.inf),
    ),
    "counts of a public number of rows": (
        "replace_one",
        lambda dp, **options: dp.value_counts("g", mechanism="laplace", **options),
        lambda e: published(e, 2, ROWS, 2),
    ),
    "mean of a private number of rows": (
        "add_remove",
        lambda dp, **options: dp.mean("x", **options),
        lambda e: 2 * published(e / 2, 1, math.inf),
    ),
    "tree": (
        "add_remove",
        lambda dp, **options: dp.value_counts("g", mechanism="laplace", constraint="hierarchy", **options),
        lambda e: published(e, 3, math.inf, 3),
    ),
}


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("releases", [1, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_calibration_costs_what_it_truly_loses(name, epsilon, releases):
    scope, call, loss = PUBLISHED[name]
    options = {
        "bounding": "truncated",
        "calibration": "published",
        "epsilon": epsilon,
        "releases": releases,
    }
    true = releases * loss(epsilon / releases)
    assert true > epsilon
    private = protected(FRAME, DOMAIN, epsilon=100, **SCOPES[scope])
    released = call(private.dp, **options)
    spent = private.dp.budget.spent
    assert spent[0] == pytest.approx(true, rel=1e-6)
    # and by the sums of the laws on the grids that are drawn from
    statistic, request = captured(private_of(scope), lambda dp: call(dp, **options))
    on_grids = 0.0
    for part, mechanism in zip(statistic.parts, calibrate(statistic.parts, request), strict=True):
        moved, width = moved_steps(part, mechanism.grid), width_of(part, mechanism.grid)
        on_grids += lost(float(mechanism.steps), moved, part.l0, width)
    assert spent[0] >= releases * on_grids * (1 - 1e-12)
    assert released.attrs["dp"]["epsilon"] == pytest.approx(spent[0], rel=1e-12)
    poor = protected(FRAME, DOMAIN, epsilon=epsilon, delta=0, **SCOPES[scope])
    with pytest.raises(BudgetExceeded):
        call(poor.dp, **options)
    assert len(poor.dp.budget.entries) == 0
    assert poor.dp.budget.left == (epsilon, 0)
    exactly = protected(FRAME, DOMAIN, epsilon=true * (1 + 1e-6), delta=0, **SCOPES[scope])
    call(exactly.dp, **options)


# ---------------------------------------------------------------- what is released stays within bounds

LAWS: dict[str, dict[str, Any]] = {
    "laplace": {"mechanism": "laplace"},
    "geometric": {"mechanism": "geometric"},
    "gaussian": {"mechanism": "gaussian", "delta": "1e-6"},
    "generalized": {"mechanism": "generalized_gaussian", "delta": "1e-6", "p": 3},
    "generalized of order 1": {"mechanism": "generalized_gaussian", "p": 1},
}


def fits(name: str, law: str) -> bool:
    """Geometric noise is for counts."""
    counted = name in COUNTS or name in SHARES or name in MARGINS
    return law != "geometric" or counted


CASES = [
    (name, law, bounding, scope)
    for name in ALL
    for law in LAWS
    for bounding in ("clamp", "truncated")
    for scope in SCOPES
    if fits(name, law)
]


def largest(column: str, scope: str, spare: int = 1) -> float:
    low, high = RANGES[column]
    if scope == "replace_one" and column != "z":
        return (high - low) ** 2 * ROWS / (4 * (ROWS - spare))
    if scope == "public rows" and column != "z":
        return (high - low) ** 2 * 10 / (4 * (10 - spare))
    return (high - low) ** 2 / 2  # two records at the ends


def check_within(name: str, scope: str, released: Any) -> None:
    values = released.to_numpy(dtype=float)
    columns = released.columns if isinstance(released, pd.DataFrame) else released.index
    if name in ("mean", "mean with nulls", "groupby mean"):
        low, high = np.array([RANGES[column] for column in columns]).T
    elif name in ("var", "std", "groupby var", "pooled_var"):
        grouped = name == "groupby var" or "z" in columns
        spare = 2 if name == "pooled_var" else 1
        low = np.zeros(len(columns))
        high = np.array([largest(column, "" if grouped else scope, spare) for column in columns])
        if name == "pooled_var" and scope == "add_remove":
            high = np.full(len(columns), np.inf)  # n over n - 2 has no bound
        if name == "std":
            high = np.sqrt(high)
    elif name in ("corr", "proportion") or name in SHARES or name == "shares with margins":
        low, high = -1.0 if name == "corr" else 0.0, 1.0
    elif name in ("cov", "pooled_cov"):
        variances = np.diagonal(values)
        assert (variances >= 0).all()
        spare = 2 if name == "pooled_cov" else 1
        if name == "cov" or scope != "add_remove":
            most = np.array([largest(column, scope, spare) for column in columns])
            assert (variances <= most * (1 + 1e-9)).all()
        high = np.sqrt(np.outer(variances, variances)) * (1 + 1e-12)
        low = -high
    elif name == "sum":
        lows, highs = np.array([RANGES[column] for column in columns]).T
        least = {"add_remove": 0, "public rows": 10, "replace_one": ROWS}[scope]
        low = lows * least
        high = highs * ROWS if scope == "replace_one" else np.inf
    elif name == "groupby sum":
        low, high = 0.0, np.inf
    else:
        low, high = 0.0, float(ROWS) if scope == "replace_one" and name != "margins" else np.inf
    known = ~np.isnan(values)
    assert name == "corr" or known.all()
    rounding = 1e-12 * np.where(np.isfinite(high), np.abs(high), 0.0)
    assert ((values >= low - rounding) | ~known).all()
    assert ((values <= high + rounding) | ~known).all()


def check_stated_bounds(released: Any) -> None:
    """The bounds of the metadata are a pair for all numbers, or one for each, and hold them."""
    stored = released.attrs["dp"]["bounds"]
    values = released.to_numpy(dtype=float)
    if stored is None:
        return
    ends = np.array(stored, dtype=float)  # None becomes NaN
    assert ends.shape in ((2,), (*values.shape, 2), (*values.shape[1:], 2))  # or one for each column
    low = np.where(np.isnan(ends[..., 0]), -np.inf, ends[..., 0])
    high = np.where(np.isnan(ends[..., 1]), np.inf, ends[..., 1])
    assert (low <= high).all()
    unknown = np.isnan(values)
    with np.errstate(invalid="ignore"):
        assert ((values >= low - 1e-9 * np.abs(low)) | unknown).all()
        assert ((values <= high + 1e-9 * np.abs(high)) | unknown).all()


@pytest.mark.full
@given(
    case=st.sampled_from(CASES),
    epsilon=st.sampled_from([0.001, 0.01, 0.1, 1.0, 10.0]),
    seed=st.integers(0, 2**32),
)
def test_released_numbers_lie_within_their_bounds(case, epsilon, seed):
    name, law, bounding, scope = case
    released = ALL[name](private_of(scope).dp, epsilon=epsilon, bounding=bounding, rng=seed, **LAWS[law])
    check_within(name, scope, released)
    json.dumps(released.attrs["dp"], allow_nan=False)
    assert released.dp.verify()


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("name", ALL)
def test_released_numbers_lie_within_the_bounds_that_the_metadata_states(name, bounding, scope):
    for seed in range(2):
        released = ALL[name](
            private_of(scope).dp, epsilon=0.01, mechanism="laplace", bounding=bounding, rng=seed
        )
        check_stated_bounds(released)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("name", ["mean", "var", "cov", "corr", "groupby var", "value_counts", "shares"])
def test_the_bounds_of_several_releases_hold_for_each_of_them(name, bounding, scope):
    """One pair for all, or one for each number of all: but true."""
    for seed in range(2):  # of five releases
        released = ALL[name](
            private_of(scope).dp, epsilon=0.1, mechanism="laplace", bounding=bounding, rng=seed, releases=5
        )
        check_stated_bounds(released)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("scope", SCOPES)
def test_shares_are_stated_to_lie_within_zero_and_one(scope, bounding):
    for name in (*SHARES, "proportion"):
        released = ALL[name](private_of(scope).dp, epsilon=1, bounding=bounding, rng=1)
        assert released.attrs["dp"]["bounds"] == [0.0, 1.0]


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(
    ("bounds", "scope", "bounding", "mechanism"),
    in_turn(
        [(0.5, 3.5), (1.2, 6.9), (2, 4), (None, 5.5), (0.3, None), (-7, 3)],
        SCOPES,
        ["clamp", "truncated"],
        ["geometric", "laplace", "gaussian"],
    ),
)
def test_counts_lie_within_bounds_of_the_call_whole_or_not(bounds, scope, bounding, mechanism):
    low, high = (without if end is None else end for end, without in zip(bounds, (0, math.inf), strict=True))
    for seed in range(5):
        released = private_of(scope).dp.value_counts(
            "g", epsilon=0.5, bounding=bounding, bounds=bounds, rng=seed, **LAWS[mechanism]
        )
        assert released.between(max(low, 0), high).all()
        if mechanism == "geometric":
            assert released.dtype == np.int64
        check_stated_bounds(released)


NARROW: dict[str, tuple[Callable[..., Any], Any, tuple[float, float]]] = {
    "mean": (lambda dp, **o: dp.mean(["x", "y"], **o), {"x": (40, 60), "y": (2.5, 7)}, (40, 60)),
    "mean of one": (lambda dp, **o: dp.mean("x", **o), (30, None), (30, 90)),
    "mean, wider": (lambda dp, **o: dp.mean("x", **o), (-1000, 1000), (18, 90)),
    "proportion": (lambda dp, **o: dp.proportion("g", "a", **o), (0.1, 0.9), (0.1, 0.9)),
    "var": (lambda dp, **o: dp.var("x", **o), (100, 900), (100, 900)),
    "std": (lambda dp, **o: dp.std("x", **o), (10, 30), (10, 30)),
    "pooled_var": (lambda dp, **o: dp.pooled_var("x", by="b", **o), (100, 900), (100, 900)),
    "sum": (lambda dp, **o: dp.sum("x", **o), (400, 800), (400, 800)),
    "groupby mean": (lambda dp, **o: dp.groupby("b").mean("x", **o), (40, 60), (40, 60)),
    "groupby count": (lambda dp, **o: dp.groupby("b").count(mechanism="laplace", **o), (2, 9), (2, 9)),
}


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", NARROW)
def test_bounds_of_the_call_are_kept_and_stated(name, scope, bounding):
    call, bounds, (low, high) = NARROW[name]
    values = []
    for seed in range(6):
        released = call(private_of(scope).dp, epsilon=0.05, bounding=bounding, bounds=bounds, rng=seed)
        check_stated_bounds(released)
        values.append(released.to_numpy().ravel()[0])
        assert low * (1 - 1e-12) <= values[-1] <= high * (1 + 1e-12)
    stored = released.attrs["dp"]["bounds"]
    first = stored[0] if isinstance(stored[0], list) else stored
    assert first == pytest.approx([low, high], rel=1e-12)
    if bounding == "clamp":
        assert {low, high} & {round(value, 9) for value in values}  # the bounds are what was met


# ---------------------------------------------------------------- constraints

SUMMED = ("rescale", "all_but_one", "hierarchy", "simplex")


@given(
    constraint=st.sampled_from(SUMMED),
    law=st.sampled_from(["geometric", "laplace", "gaussian", "generalized"]),
    bounding=st.sampled_from([None, "clamp", "truncated"]),
    scope=st.sampled_from(list(SCOPES)),
    epsilon=st.sampled_from([0.001, 0.1, 1.0, 10.0]),
    normalize=st.sampled_from([False, True, "index", "columns"]),
    table=st.booleans(),
    branching=st.integers(2, 5),
    seed=st.integers(0, 2**32),
)
def test_constrained_tables_sum_to_what_they_must(
    constraint, law, bounding, scope, epsilon, normalize, table, branching, seed
):
    options = {"constraint": constraint, "bounding": bounding, "branching": branching, "rng": seed}
    private_total = normalize is False and scope != "replace_one" and constraint != "hierarchy"
    one_sided = normalize in ("index", "columns") and (constraint == "hierarchy" or not table)
    if private_total or one_sided:
        return
    dp = private_of(scope).dp
    if table:
        released = dp.crosstab("g", "b", epsilon=epsilon, normalize=normalize, **options, **LAWS[law])
    else:
        released = dp.value_counts(["g", "b"], epsilon=epsilon, normalize=normalize, **options, **LAWS[law])
    values = released.to_numpy()
    assert (values >= 0).all()
    assert released.attrs["dp"]["constraint"] == constraint
    if normalize is False:
        assert values.dtype == np.int64
        if scope == "replace_one":
            assert values.sum() == ROWS
        return
    axis = {"index": 1, "columns": 0}.get(normalize)
    assert np.abs(values.sum(axis=axis) - 1).max() <= 1e-12
    assert (values <= 1).all()


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("law", ["geometric", "laplace"])
@pytest.mark.parametrize("scope", SCOPES)
def test_counts_without_negative_ones_are_whole_and_clamped(law, scope):
    for seed in range(10):
        options = {"epsilon": 0.1, "rng": seed, **LAWS[law]}
        plain = private_of(scope).dp.crosstab("g", "b", **options)
        clamped = private_of(scope).dp.crosstab("g", "b", constraint="nonnegative", **options)
        assert (clamped.to_numpy() == np.rint(np.maximum(plain.to_numpy(), 0))).all()
        assert set(clamped.dtypes) == {np.dtype(np.int64)}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("constraint", ["rescale", "simplex", "all_but_one", "hierarchy"])
def test_margins_of_a_constrained_table_are_its_own_sums(constraint):
    for seed, normalize in itertools.product(range(4), (False, True)):
        released = private_of("replace_one").dp.crosstab(
            "g", "b", epsilon=0.2, normalize=normalize, margins=True, constraint=constraint, rng=seed
        )
        cells = released.drop(index="All", columns="All")
        np.testing.assert_allclose(released.loc["All"].drop("All"), cells.sum(), rtol=1e-12)
        np.testing.assert_allclose(released["All"].drop("All"), cells.sum(axis=1), rtol=1e-12)
        assert released.loc["All", "All"] == pytest.approx(1 if normalize else ROWS, rel=1e-12)


def test_a_constraint_is_kept_within_the_bounds_of_the_call_or_refused():
    """Twelve records in four cells of at most two each cannot be."""
    private = protected(FRAME, DOMAIN, neighbors="replace_one", epsilon=100)
    for constraint in SUMMED:
        spent = private.dp.budget.spent
        try:
            released = private.dp.value_counts(
                "g", epsilon=1, constraint=constraint, bounding="clamp", bounds=(0, 2), rng=1
            )
        except ParameterError:
            assert private.dp.budget.spent == spent
        else:
            check_stated_bounds(released)


@given(
    law=st.sampled_from(["laplace", "gaussian", "generalized"]),
    bounding=st.sampled_from([None, "clamp", "truncated"]),
    scope=st.sampled_from(list(SCOPES)),
    epsilon=st.sampled_from([0.001, 0.1, 1.0, 10.0]),
    pooled=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_covariance_matrices_can_be_made_ones_that_exist(law, bounding, scope, epsilon, pooled, seed):
    dp, names = private_of(scope).dp, ["x", "y", "b"]
    options = {"epsilon": epsilon, "bounding": bounding, "rng": seed, "constraint": "psd", **LAWS[law]}
    if pooled:
        names = ["x", "y"]
        released = dp.pooled_cov(names, by="b", **options).to_numpy()
    else:
        released = dp.cov(names, **options).to_numpy()
    values = np.linalg.eigvalsh(released / (np.abs(released).max() or 1))
    assert values[0] >= -1e-9
    assert (released == released.T).all()
    if pooled:
        return
    for constraint in (None, "psd"):
        cov = dp.cov(names, **{**options, "constraint": constraint}).to_numpy()
        corr = dp.corr(names, **{**options, "constraint": constraint}).to_numpy()
        variances = np.diagonal(cov)
        known = variances > 0
        expected = np.full(cov.shape, np.nan)
        roots = np.sqrt(variances[known])
        expected[np.ix_(known, known)] = cov[np.ix_(known, known)] / np.outer(roots, roots)
        expected = np.clip(expected, -1, 1)
        np.fill_diagonal(expected, np.where(known, 1.0, np.nan))
        np.testing.assert_allclose(corr, expected, atol=1e-12)
        if constraint == "psd" and known.any():
            assert np.linalg.eigvalsh(corr[np.ix_(known, known)])[0] >= -1e-9


# ---------------------------------------------------------------- clamping is clamping

CLAMPED: dict[str, tuple[Callable[..., Any], str, Any]] = {
    "value_counts": (lambda dp, **o: dp.value_counts(["g", "b"], sort=False, **o), "replace_one", (0, ROWS)),
    "counts of private rows": (
        lambda dp, **o: dp.value_counts("g", sort=False, **o),
        "add_remove",
        (0, np.inf),
    ),
    "histogram": (lambda dp, **o: dp.histogram("x", 4, **o), "replace_one", (0, ROWS)),
    "crosstab": (lambda dp, **o: dp.crosstab("g", "b", **o), "replace_one", (0, ROWS)),
    "count": (lambda dp, **o: dp.count("z", **o), "add_remove", (0, np.inf)),
    "count of public rows": (lambda dp, **o: dp.count("x", **o), "public rows", (10, np.inf)),
    "groupby count": (lambda dp, **o: dp.groupby("g").count(**o), "add_remove", (0, np.inf)),
    "sum": (
        lambda dp, **o: dp.sum(["x", "y"], **o),
        "replace_one",
        ([18 * ROWS, 0], [90 * ROWS, 10 * ROWS]),
    ),
    "sum with nulls": (lambda dp, **o: dp.sum("z", **o), "replace_one", (-2 * ROWS, 4 * ROWS)),
    "sum of private rows": (lambda dp, **o: dp.sum("x", **o), "add_remove", (0, np.inf)),
    "mean": (lambda dp, **o: dp.mean(["x", "y"], **o), "replace_one", ([18, 0], [90, 10])),
    "mean of public rows": (lambda dp, **o: dp.mean("x", **o), "public rows", (18, 90)),
    "proportion": (lambda dp, **o: dp.proportion("g", "a", **o), "replace_one", (0, 1)),
    "var": (lambda dp, **o: dp.var("x", **o), "replace_one", (0, 72**2 * ROWS / (4 * (ROWS - 1)))),
    "pooled_var": (
        lambda dp, **o: dp.pooled_var("x", by="b", **o),
        "replace_one",
        (0, 72**2 * ROWS / (4 * (ROWS - 2))),
    ),
}


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", CLAMPED)
def test_clamped_releases_are_unbounded_ones_clamped(name, law):
    call, scope, (low, high) = CLAMPED[name]
    if law == "geometric" and (
        "mean" in name or "sum" in name or name in ("proportion", "var", "pooled_var")
    ):
        return
    met = 0
    for seed in range(12):
        if met and seed >= 6:
            break
        options = {"epsilon": 0.05, "rng": seed, **LAWS[law]}
        plain = call(private_of(scope).dp, bounding=None, **options)
        clamped = call(private_of(scope).dp, bounding="clamp", **options)
        expected = np.clip(plain.to_numpy(), low, high)
        met += int((expected != plain.to_numpy()).sum())
        assert (clamped.to_numpy() == expected).all()
        assert clamped.attrs["dp"]["scale"] == plain.attrs["dp"]["scale"]
    assert met > 0


# ---------------------------------------------------------------- errors that are stated


def density(mechanism: dict[str, Any]) -> Callable[[float], Any]:
    """The law of the noise of a scale, from scipy alone."""
    if mechanism["mechanism"] == "laplace":
        return lambda scale: stats.laplace(scale=scale)
    if mechanism["mechanism"] == "gaussian":
        return lambda scale: stats.norm(scale=scale)
    return lambda scale: stats.gennorm(float(mechanism["p"]), scale=scale)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def integrated(law: Any, s: float, low: float, high: float, bounding: str) -> tuple[float, float]:
    """Bias and root mean squared error of a bounded number whose statistic is s, by quadrature.

    Gauss's rule on stretches that double with the distance from zero, where the density has its edge.
    """
    std = law.std()
    ends = max(low - s, -60 * std), min(high - s, 60 * std)
    doubled = [sign * std * 2.0**k for sign in (-1, 1) for k in range(-2, 6)]
    breaks = np.array(sorted({*ends, 0.0, *(point for point in doubled if ends[0] < point < ends[1])}))
    middles, halves = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks) / 2
    errors = (middles[:, np.newaxis] + halves[:, np.newaxis] * NODES).ravel()
    masses = (halves[:, np.newaxis] * WEIGHTS).ravel() * law.pdf(errors)
    below, above = law.cdf(low - s), law.sf(high - s)
    whole = 1 - below - above if bounding == "truncated" else 1.0
    bias, square = float(masses @ errors) / whole, float(masses @ errors**2) / whole
    if bounding == "clamp":
        for mass, end in ((below, low - s), (above, high - s)):
            if mass > 0:
                bias, square = bias + mass * end, square + mass * end**2
    return bias, math.sqrt(square)


STATED_ERRORS: dict[str, tuple[Callable[..., Any], str, float, float]] = {
    "mean": (lambda dp, **o: dp.mean("x", **o), "replace_one", 18, 90),
    "mean, narrow": (lambda dp, **o: dp.mean("x", bounds=(35, 60), **o), "replace_one", 35, 60),
    "mean of public rows": (lambda dp, **o: dp.mean("y", **o), "public rows", 0, 10),
    "proportion": (lambda dp, **o: dp.proportion("g", "b", **o), "replace_one", 0, 1),
    "counts": (lambda dp, **o: dp.value_counts("g", **o), "replace_one", 0, ROWS),
    "counts of private rows": (lambda dp, **o: dp.value_counts("g", **o), "add_remove", 0, math.inf),
    "var": (lambda dp, **o: dp.var("y", **o), "replace_one", 0, 100 * ROWS / (4 * (ROWS - 1))),
    "sum": (lambda dp, **o: dp.sum("x", **o), "add_remove", 0, math.inf),
}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("name", "law", "bounding"),
    in_turn(STATED_ERRORS, ["laplace", "gaussian", "generalized"], ["clamp", "truncated"]),
)
def test_stated_errors_are_those_of_the_law(name, law, bounding):
    """Against quadrature of the densities of scipy, at every released number and over the bounds."""
    call, scope, low, high = STATED_ERRORS[name]
    for seed, epsilon in ((1, 0.3), (2, 3.0)):
        released = call(private_of(scope).dp, epsilon=epsilon, bounding=bounding, rng=seed, **LAWS[law])
        stored = released.attrs["dp"]
        noise_law = density(LAWS[law])(stored["scale"])
        error = stored["error"]
        shape = released.shape
        bias, rmse = (np.broadcast_to(error[field], shape) for field in ("bias", "rmse"))
        for value, stated_bias, stated_rmse in zip(released, bias, rmse, strict=True):
            expected = integrated(noise_law, value, low, high, bounding)
            assert (stated_bias, stated_rmse) == pytest.approx(expected, rel=1e-6, abs=1e-8 * stored["scale"])
        if math.isinf(high):
            # the largest bias is that of a statistic at the bound; the error has that of the noise as limit
            worst = abs(integrated(noise_law, low, low, high, bounding)[0])
            assert error["worst_case"]["bias"] == pytest.approx(worst, rel=1e-6)
            assert error["worst_case"]["rmse"] == pytest.approx(noise_law.std(), rel=1e-6)
            continue
        points = np.linspace(low, high, 41)
        every = np.array([integrated(noise_law, point, low, high, bounding) for point in points])
        worst = np.abs(every[:, 0]).max(), every[:, 1].max()
        assert error["worst_case"]["bias"] == pytest.approx(worst[0], rel=1e-6)
        assert worst[1] * (1 - 1e-9) <= error["worst_case"]["rmse"] <= worst[1] * 1.01


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("scope", ["replace_one", "add_remove"])
def test_stated_errors_of_whole_counts_are_sums(scope, bounding):
    high = ROWS if scope == "replace_one" else 400
    for seed, epsilon in ((1, 0.5), (2, 2.0)):
        released = private_of(scope).dp.value_counts(
            "g", epsilon=epsilon, bounding=bounding, rng=seed, sort=False
        )
        stored = released.attrs["dp"]
        ratio = math.exp(-1 / stored["scale"])
        z = np.arange(-2000, 2001)
        masses = ratio ** np.abs(z) * (1 - ratio) / (1 + ratio)
        every = []
        for s in range(ROWS + 1):
            inside = (z + s >= 0) & (z + s <= high)
            probabilities = masses * inside / (masses[inside].sum()) if bounding == "truncated" else masses
            e = np.clip(z + s, 0, high) - s
            every.append(((probabilities * e).sum(), math.sqrt((probabilities * e**2).sum())))
        error = stored["error"]
        for field, column in (("bias", 0), ("rmse", 1)):
            given_errors = np.broadcast_to(error[field], released.shape)
            expected = [every[min(value, ROWS)][column] for value in released]
            small = released.to_numpy() <= ROWS
            np.testing.assert_allclose(given_errors[small], np.array(expected)[small], rtol=1e-9, atol=1e-12)
        if scope == "replace_one":
            worst = np.abs(every).max(axis=0)
            assert error["worst_case"] == pytest.approx({"bias": worst[0], "rmse": worst[1]}, rel=1e-9)


def test_no_bounding_states_no_errors_of_bounding():
    stored = private_of("replace_one").dp.mean("x", epsilon=1, bounding=None).attrs["dp"]
    assert set(stored["error"]) == {"level", "standard_error", "plus_minus", "all_noise"}
    assert stored["bounding"] is None
    assert stored["bounds"] is None
    assert stored["value_bounds"] == [18.0, 90.0]
    assert private_of("replace_one").dp.var("x", epsilon=1).attrs["dp"]["value_bounds"] is None


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(("name", "scope", "bounding"), in_turn(ALL, SCOPES, [None, "clamp", "truncated"]))
def test_metadata_survives_json_and_the_typed_view_says_the_same(name, scope, bounding):
    for releases in (1, 2):
        released = ALL[name](
            private_of(scope).dp,
            epsilon=0.5,
            bounding=bounding,
            releases=releases,
            rng=releases,
            **LAWS["generalized"],
        )
        stored = released.attrs["dp"]
        restored = json.loads(json.dumps(stored, allow_nan=False))
        assert restored == stored
        other = released.copy()
        other.attrs["dp"] = restored
        view = other.dp.metadata
        assert view.to_dict() == {"dr_ha": None, "found": None, "regression": None, "part": None, **stored}
        assert (view.bounding, view.releases, view.p) == (bounding, releases, 3.0)
        assert view.mechanism == "generalized_gaussian"
        assert other.dp.verify()
        table = other.dp.interval()
        lower, upper = table["lower"], table["upper"]
        # intervals end at the public limits of the statistic, beyond which noise may take a number
        least, most = view.limits_of_each(released.shape)
        inside = np.fmin(np.fmax(released.to_numpy(), least), most)
        assert (lower.to_numpy() <= inside).sum() == released.notna().to_numpy().sum()
        assert (upper.to_numpy() >= inside).sum() == released.notna().to_numpy().sum()
        assert lower.shape == released.shape


def test_rows_are_stated_where_they_are_public_and_only_there():
    public, private = private_of("replace_one").dp, private_of("add_remove").dp
    bounded = private_of("public rows").dp
    releases = {
        "mean": public.mean("x", epsilon=1),
        "proportion": public.proportion("g", "a", epsilon=1),
        "shares": public.value_counts("g", normalize=True, epsilon=1),
        "table": public.crosstab("g", "b", normalize=True, epsilon=1),
        "cov": public.cov(["x", "y"], epsilon=1),
    }
    for name, released in releases.items():
        assert released.attrs["dp"]["rows"] == ROWS, name
    hidden = {
        "nullable": public.mean("z", epsilon=1),
        "one of two nullable": public.mean(["x", "z"], epsilon=1),
        "groups": public.groupby("g").mean("x", epsilon=1),
        "sizes of groups": public.groupby("g").count(epsilon=1),
        "filtered": private_of("replace_one").dp.query("x > 30").dp.mean("x", epsilon=1),
        "private": private.mean("x", epsilon=1),
        "a lower bound": bounded.mean("x", epsilon=1),
        "shares of private rows": private.value_counts("g", normalize=True, epsilon=1),
    }
    for name, released in hidden.items():
        assert released.attrs["dp"]["rows"] is None, name


# ---------------------------------------------------------------- several releases


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(("name", "scope", "bounding"), in_turn(ALL, SCOPES, [None, "truncated"]))
def test_several_releases_come_side_by_side_for_one_charge(name, scope, bounding):
    private = protected(FRAME, DOMAIN, **SCOPES[scope])
    single = ALL[name](private.dp, epsilon="0.5", bounding=bounding, rng=1)
    several = ALL[name](private.dp, epsilon="0.5", bounding=bounding, releases=3, rng=1)
    entries = private.dp.budget.entries
    assert len(entries) == 2
    assert entries["release"].iloc[1] == entries["release"].iloc[0] + ", 3 releases"
    assert entries["epsilon"].tolist() == [0.5, 0.5]
    assert private.dp.budget.spent[0] == pytest.approx(1.0)
    assert isinstance(several, pd.DataFrame)
    outer = several.columns.get_level_values("release")
    assert outer.unique().tolist() == [1, 2, 3]
    assert several.columns.names[0] == "release"
    assert sorted(map(str, several.index)) == sorted(map(str, single.index))
    if isinstance(single, pd.Series):
        assert several.columns.tolist() == [1, 2, 3]
    else:
        for number in (1, 2, 3):
            assert several[number].columns.equals(single.columns)
            assert several[number].index.equals(single.index)
    stored = several.attrs["dp"]
    assert stored["releases"] == 3
    assert stored["epsilon"] == 0.5
    assert several.dp.verify()
    for field in ("standard_error", "plus_minus"):
        np.broadcast_to(np.array(stored["error"][field], dtype=float), several.shape)
    corrupt = several.copy()
    corrupt.iloc[0, 0] = 12345
    assert not corrupt.dp.verify()


def test_several_releases_are_those_that_come_after_each_other_at_a_share_of_the_cost():
    """Releases of one seed: the same as single ones of a third of the loss whose noise comes in turn."""
    dp = private_of("replace_one").dp
    for name in ("mean", "value_counts", "cov", "crosstab"):
        several = ALL[name](dp, epsilon="0.6", releases=3, rng=np.random.default_rng(5), mechanism="laplace")
        rng = np.random.default_rng(5)
        alone = [ALL[name](dp, epsilon="0.2", rng=rng, mechanism="laplace") for _ in range(3)]
        for number, single in enumerate(alone, 1):
            pd.testing.assert_index_equal(
                several[number].index.sort_values(), single.index.sort_values(), check_names=False
            )
            np.testing.assert_array_equal(several[number].reindex(single.index), single)
            assert several.attrs["dp"]["scale"] == single.attrs["dp"]["scale"]


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
@pytest.mark.parametrize("name", ["mean", "proportion", "shares", "shares of a table"])
def test_several_releases_can_be_combined(name, bounding):
    dp = private_of("replace_one").dp
    several = ALL[name](dp, epsilon=5, releases=4, bounding=bounding, rng=3)
    combined = pdprivacy.combine(several, **({"variance": 400} if name == "mean" else {}))
    sets = np.array([several[number].to_numpy().ravel() for number in range(1, 5)])
    np.testing.assert_allclose(combined["estimate"], sets.mean(axis=0), rtol=1e-12)
    between = sets.var(axis=0, ddof=1)
    assert (combined["variance"].to_numpy() >= between / 4 - 1e-15).all()
    assert (combined["lower"] <= combined["estimate"]).all()
    assert (combined["estimate"] <= combined["upper"]).all()


# ---------------------------------------------------------------- bad calls

SECRET = 918273645.25
TOP = 2.0 * 10**9


def secretive() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [SECRET, SECRET, 1.0, 2.0],
            "s": [-SECRET, SECRET, 0.0, 1.0],
            "g": list("aabb"),
            "h": ["u", "v", "v", "v"],
            "c": [5.0] * 4,
        }
    )


SECRET_DOMAIN = Domain(
    (
        Column("x", "float", lower=0, upper=TOP),
        Column("s", "float", lower=-TOP, upper=TOP),
        Column("g", "category", categories=("a", "b")),
        Column("h", "category", categories=("u", "v")),
        Column("c", "float", lower=5, upper=5),
    )
)


@lru_cache
def secretive_private(neighbors: str) -> pd.DataFrame:
    """One for all calls that are refused: what they charged would be seen after each."""
    return protected(secretive(), SECRET_DOMAIN, epsilon=100, delta="0.1", neighbors=neighbors)


def bounded(bounds: Any, **more: Any) -> Callable[[Any], Any]:
    return lambda dp: dp.mean("x", epsilon=1, bounding="truncated", bounds=bounds, **more)


BAD: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "bounds reversed": (bounded((2, 1)), ParameterError, "lower"),
    "bounds equal": (bounded((1, 1)), ParameterError, "lower"),
    "bounds NaN": (bounded((NAN, 1)), ParameterError, "lower"),
    "bounds NaN above": (bounded((0, NAN)), ParameterError, "lower"),
    "bounds text": (bounded("01"), ParameterError, "bounds=(0, 1)"),
    "bounds of texts": (bounded(("0", "1")), ParameterError, "numbers"),
    "bounds of truth values": (bounded((False, True)), ParameterError, "numbers"),
    "bounds complex": (bounded((0j, 1j)), ParameterError, "numbers"),
    "bounds too large for a double": (bounded((0, 10**400)), ParameterError, "bounds"),
    "bounds of three": (bounded((0, 1, 2)), ParameterError, "pair"),
    "bounds of one": (bounded((0,)), ParameterError, "pair"),
    "bounds a number": (bounded(1), ParameterError, "pair"),
    "bounds a matrix": (bounded(np.eye(2)), ParameterError, "numbers"),
    "bounds a Series": (bounded(pd.Series([0.0, 1.0])), ParameterError, "pair"),
    "bounds infinite and wrong": (bounded((math.inf, math.inf)), ParameterError, "lower"),
    "bounds of another column": (bounded({"s": (0, 1)}), ParameterError, "'x'"),
    "bounds of none": (bounded({}), ParameterError, "'x'"),
    "bounds without bounding": (
        lambda dp: dp.mean("x", epsilon=1, bounds=(0, 1)),
        ParameterError,
        'bounding="truncated"',
    ),
    "bounds of a matrix": (
        lambda dp: dp.cov(["x", "s"], epsilon=1, bounding="clamp", bounds=(0, 1)),
        ParameterError,
        "leave bounds out",
    ),
    "bounds by column of a table": (
        lambda dp: dp.value_counts(
            ["g", "h"], epsilon=1, bounding="clamp", bounds={"g": (0, 1), "h": (0, 2)}
        ),
        ParameterError,
        "bounds",
    ),
    "bounds by column of a tree": (
        lambda dp: dp.value_counts(
            ["g", "h"],
            epsilon=1,
            bounding="clamp",
            constraint="hierarchy",
            bounds={"g": (0, 1), "h": (0, 2)},
        ),
        ParameterError,
        "bounds",
    ),
    "no bounds by column of groups": (
        lambda dp: dp.groupby("g").count(epsilon=1, bounding="clamp", bounds={}),
        ParameterError,
        "bounds",
    ),
    "bounds narrower than a record": (bounded((0, 1)), ParameterError, "narrower"),
    "bounds that leave out all, above": (bounded((3 * TOP, 4 * TOP)), ParameterError, "exclude"),
    "bounds that leave out all, below": (bounded((-5, -1)), ParameterError, "exclude"),
    "bounds that leave out all means of groups": (
        lambda dp: dp.groupby("g").mean("x", epsilon=1, bounding="clamp", bounds=(3 * TOP, 4 * TOP)),
        ParameterError,
        "exclude",
    ),
    "bounds that leave out all variances": (
        lambda dp: dp.var("x", epsilon=1, bounding="clamp", bounds=(TOP**2, 2 * TOP**2)),
        ParameterError,
        "exclude",
    ),
    "bounds that leave out all counts": (
        lambda dp: dp.value_counts("g", epsilon=1, bounding="clamp", bounds=(-5, -1)),
        ParameterError,
        "exclude",
    ),
    "bounds that leave out all counts of a tree": (
        lambda dp: dp.value_counts("g", epsilon=1, constraint="hierarchy", bounding="clamp", bounds=(-5, -1)),
        ParameterError,
        "bounds of their own",
    ),
    "bounds below zero of a deviation": (
        lambda dp: dp.std("x", epsilon=1, bounding="clamp", bounds=(-2, -1)),
        ParameterError,
        "above 0",
    ),
    "bounds of a deviation too large to square": (
        lambda dp: dp.std("x", epsilon=1, bounding="clamp", bounds=(1e200, 1e201)),
        ParameterError,
        "bounds",
    ),
    "no whole number within": (
        lambda dp: dp.value_counts("g", epsilon=1, bounding="truncated", bounds=(1.2, 1.9)),
        ParameterError,
        "bounds",
    ),
    "no whole number within, clamped": (
        lambda dp: dp.value_counts("g", epsilon=1, bounding="clamp", bounds=(1.2, 1.9)),
        ParameterError,
        "bounds",
    ),
    "a sum without an end": (
        lambda dp: dp.sum("s", epsilon=1, bounding="truncated"),
        ParameterError,
        "bounds=(lower, upper)",
    ),
    "sums of groups without an end": (
        lambda dp: dp.groupby("g").sum("s", epsilon=1, bounding="truncated"),
        ParameterError,
        "bounds=(lower, upper)",
    ),
    "unknown bounding": (lambda dp: dp.mean("x", epsilon=1, bounding="BIT"), ParameterError, "'truncated'"),
    "bounding True": (lambda dp: dp.mean("x", epsilon=1, bounding=True), ParameterError, "'truncated'"),
    "bounding a list": (
        lambda dp: dp.mean("x", epsilon=1, bounding=["clamp"]),
        ParameterError,
        "'truncated'",
    ),
    "unknown mechanism": (
        lambda dp: dp.mean("x", epsilon=1, mechanism="stairs"),
        ParameterError,
        "'generalized_gaussian'",
    ),
    "unknown calibration": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="gaussian", calibration="best"),
        ParameterError,
        "'analytic'",
    ),
    "calibration of Laplace noise": (
        lambda dp: dp.mean("x", epsilon=1, calibration="classic"),
        ParameterError,
        'mechanism="gaussian"',
    ),
    "published without truncation": (
        lambda dp: dp.mean("x", epsilon=1, bounding="clamp", calibration="published"),
        ParameterError,
        'bounding="truncated"',
    ),
    "published geometric": (
        lambda dp: dp.count(epsilon=1, bounding="truncated", calibration="published"),
        ParameterError,
        'mechanism="laplace"',
    ),
    "classic beyond one": (
        lambda dp: dp.mean("x", epsilon=4, delta=1e-6, mechanism="gaussian", calibration="classic"),
        ParameterError,
        "analytic",
    ),
    "p missing": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="generalized_gaussian"),
        ParameterError,
        "p=3",
    ),
    "p below 1": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="generalized_gaussian", p=0.5),
        ParameterError,
        "'p' must be between 1 and 100",
    ),
    "p NaN": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="generalized_gaussian", p=NAN),
        ParameterError,
        "'p'",
    ),
    "p True": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="generalized_gaussian", p=True),
        ParameterError,
        "'p'",
    ),
    "p too large": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="generalized_gaussian", p=10**6),
        ParameterError,
        "'p'",
    ),
    "p of Laplace noise": (lambda dp: dp.mean("x", epsilon=1, p=2), ParameterError, "generalized_gaussian"),
    "p of Gaussian noise": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="gaussian", p=2),
        ParameterError,
        "generalized_gaussian",
    ),
    "generalized without delta": (
        lambda dp: dp.mean("x", epsilon=1, mechanism="generalized_gaussian", p=3),
        ParameterError,
        "delta=1e-6",
    ),
    "delta for order 1": (
        lambda dp: dp.mean("x", epsilon=1, delta=1e-6, mechanism="generalized_gaussian", p=1),
        ParameterError,
        "delta",
    ),
    "geometric mean": (
        lambda dp: dp.mean("x", epsilon=1, mechanism="geometric", bounding="clamp"),
        ParameterError,
        'mechanism="laplace"',
    ),
    "one column of a covariance": (lambda dp: dp.cov("x", epsilon=1), ParameterError, "use var"),
    "a total that is private": (
        lambda dp: dp.value_counts("g", epsilon=1, constraint="simplex"),
        ParameterError,
        "normalize=True",
    ),
    "a total of rescaling that is private": (
        lambda dp: dp.crosstab("g", "h", epsilon=1, constraint="rescale"),
        ParameterError,
        "nonnegative",
    ),
    "unknown constraint": (
        lambda dp: dp.value_counts("g", epsilon=1, constraint="sum"),
        ParameterError,
        "'simplex'",
    ),
    "constraint a list": (
        lambda dp: dp.value_counts("g", epsilon=1, constraint=["simplex"]),
        ParameterError,
        "'simplex'",
    ),
    "constraint of a matrix for a table": (
        lambda dp: dp.crosstab("g", "h", epsilon=1, constraint="psd"),
        ParameterError,
        "'simplex'",
    ),
    "constraint of a table for a matrix": (
        lambda dp: dp.cov(["x", "s"], epsilon=1, constraint="simplex"),
        ParameterError,
        "'psd'",
    ),
    "nonnegative shares": (
        lambda dp: dp.value_counts("g", epsilon=1, normalize=True, constraint="nonnegative"),
        ParameterError,
        "simplex",
    ),
    "hierarchy of rows": (
        lambda dp: dp.crosstab("g", "h", epsilon=1, normalize="index", constraint="hierarchy"),
        ParameterError,
        "whole table",
    ),
    "margins of constrained rows": (
        lambda dp: dp.crosstab("g", "h", epsilon=1, normalize="index", margins=True, constraint="simplex"),
        ParameterError,
        "'margins'",
    ),
}
for _value in (1, 0, -2, 1.5, True, "2", None, NAN, [2]):
    BAD[f"branching {_value!r}"] = (
        lambda dp, v=_value: dp.value_counts("g", epsilon=1, constraint="hierarchy", branching=v),
        ParameterError,
        "'branching'",
    )
for _value in (0, -1, 1.5, 1.0, True, "2", None, NAN, [2], 10**6):
    for _name in ("mean", "count", "corr", "value_counts", "groupby"):
        _calls: dict[str, Callable[..., Any]] = {
            "mean": lambda dp, v=_value: dp.mean("x", epsilon=1, releases=v),
            "count": lambda dp, v=_value: dp.count(epsilon=1, releases=v),
            "corr": lambda dp, v=_value: dp.corr(["x", "s"], epsilon=1, releases=v),
            "value_counts": lambda dp, v=_value: dp.value_counts("g", epsilon=1, releases=v),
            "groupby": lambda dp, v=_value: dp.groupby("g").sum("x", epsilon=1, releases=v),
        }
        BAD[f"releases {_value!r} of {_name}"] = (_calls[_name], ParameterError, "'releases'")

PUBLIC_ONLY = {
    # where the number of rows is public more is refused before anything is read
    "bounds narrower than a record",
    "bounds that leave out all variances",
}


def is_allowed(bad: str, neighbors: str) -> bool:
    """Whether a neighbour definition allows what is bad under the other."""
    if neighbors == "add_remove":
        return bad in PUBLIC_ONLY
    named = "that is private" in bad or bad in ("a sum without an end", "releases", "published geometric")
    return named or (bad.startswith("releases") and bad.endswith("of count"))


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_bad_calls_are_refused_for_free(neighbors, texts_of):
    private = secretive_private(neighbors)

    def check(bad: str) -> None:
        call, error, says = BAD[bad]
        with pytest.raises(error) as caught:
            call(private.dp)
        assert isinstance(caught.value, PrivacyError)
        message = str(caught.value)
        assert says in message, message
        assert len(message) < 600
        for text in texts_of(caught.value):
            assert "918273645" not in text
        assert len(private.dp.budget.entries) == 0
        assert private.dp.budget.left == (100.0, 0.1)

    check_each((bad for bad in BAD if not is_allowed(bad, neighbors)), check)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_an_unknown_keyword_is_a_type_error_that_names_it(neighbors):
    private = protected(secretive(), SECRET_DOMAIN, epsilon=100, neighbors=neighbors)
    calls = {
        "mean": lambda: private.dp.mean("x", epsilon=1, boundings="clamp"),
        "count": lambda: private.dp.count(epsilon=1, boundings="clamp"),
        "cov": lambda: private.dp.cov(["x", "s"], epsilon=1, boundings="clamp"),
        "value_counts": lambda: private.dp.value_counts("g", epsilon=1, boundings="clamp"),
        "crosstab": lambda: private.dp.crosstab("g", "h", epsilon=1, boundings="clamp"),
        "groupby": lambda: private.dp.groupby("g").mean("x", epsilon=1, boundings="clamp"),
        "plan": lambda: private.dp.plan.mean("x", epsilon=1, rows=4, boundings="clamp"),
    }
    for call in calls.values():
        with pytest.raises(TypeError, match="'boundings'"):
            call()
    with pytest.raises(TypeError, match="'constraint'"):
        private.dp.mean("x", epsilon=1, constraint="psd")
    with pytest.raises(TypeError, match="epsilon"):
        private.dp.mean("x")
    assert len(private.dp.budget.entries) == 0


# What bounds nothing, or leaves one number only, is released or refused, but never paid for in vain.

DEGENERATE: dict[str, tuple[Callable[..., Any], int]] = {
    "sum of one value": (lambda dp, **o: dp.sum("c", **o), 4),
    "mean of one value": (lambda dp, **o: dp.mean("c", **o), 4),
    "variance of one value": (lambda dp, **o: dp.var("c", **o), 4),
    "sums of groups of one value": (lambda dp, **o: dp.groupby("g").sum("c", **o), 4),
    "covariance with one value": (lambda dp, **o: dp.corr(["x", "c"], **o), 4),
    "counts of one record": (lambda dp, **o: dp.value_counts("g", **o), 1),
    "tree of one record": (lambda dp, **o: dp.value_counts("g", constraint="hierarchy", **o), 1),
    "sizes of groups of one record": (lambda dp, **o: dp.groupby("g").count(**o), 1),
    "counts of two records": (lambda dp, **o: dp.value_counts("g", **o), 2),
    "counts of no record": (lambda dp, **o: dp.value_counts("g", **o), 0),
    "table of no record": (lambda dp, **o: dp.crosstab("g", "h", normalize=True, **o), 0),
    "sum of no record": (lambda dp, **o: dp.sum("x", **o), 0),
    "counts of at most one": (lambda dp, **o: dp.value_counts("g", bounds=(0, 1), **o), 4),
    "counts from one to two and a half": (lambda dp, **o: dp.value_counts("g", bounds=(1, 2.5), **o), 4),
    "counts of one whole number": (lambda dp, **o: dp.value_counts("g", bounds=(0.9, 2.9), **o), 4),
    "means above the middle": (lambda dp, **o: dp.mean("x", bounds=(TOP, 2 * TOP), **o), 4),
    "variance that only two records have": (
        lambda dp, **o: dp.var("x", bounds=(0.3 * TOP**2, TOP**2), **o),
        4,
    ),
}


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_every_charged_release_is_returned(name, bounding, neighbors):
    call, rows = DEGENERATE[name]
    private = protected(secretive().iloc[:rows], SECRET_DOMAIN, epsilon=100, neighbors=neighbors)
    counted = "count" in name or "record" in name
    mechanisms = ("laplace", "geometric") if counted and "sum" not in name else ("laplace",)
    for mechanism, seed in itertools.product(mechanisms, range(3)):
        before = len(private.dp.budget.entries)
        try:
            released = call(private.dp, epsilon=1, bounding=bounding, mechanism=mechanism, rng=seed)
        except PrivacyError:
            assert len(private.dp.budget.entries) == before
            continue
        assert len(private.dp.budget.entries) == before + 1
        check_stated_bounds(released)


# ---------------------------------------------------------------- small facts


def test_a_tree_of_a_private_total_has_a_root_and_one_of_a_public_total_has_none():
    for scope, root in (("add_remove", True), ("public rows", True), ("replace_one", False)):
        statistic = calibrated("tree", scope, epsilon=1)[0]
        assert isinstance(statistic, TreeCells)
        assert statistic.tree.root is root
        assert statistic.tree.levels == ((8, 4, 2, 1) if root else (8, 4, 2))


def test_bounds_of_the_call_never_widen_those_of_the_statistic():
    column = Column("x", "float", lower=0, upper=1)
    scope = Scope("replace_one", 10)
    inner = Direct("mean", (quantity(column, "mean"),), (Fraction(1),), scope, 10)
    (own,) = inner.parts
    (wide,) = BoundedStatistic(inner, ((-5.0, 7.0),)).parts
    assert (wide.lower, wide.upper) == (own.lower, own.upper)
    (narrow,) = BoundedStatistic(inner, ((0.25, math.inf),)).parts
    assert (narrow.lower, narrow.upper) == (Fraction(-1, 4), own.upper)
    assert (narrow.l1, narrow.unit, narrow.weight) == (own.l1, own.unit, own.weight)
    cells = CellCounts((Column("g", "category", categories=("a", "b")),), scope, "value_counts")
    (counts,) = BoundedStatistic(cells, ((2.0, 4.0),)).parts
    assert (counts.lower, counts.upper, counts.l0) == (2, 4, 2)


def test_the_signature_of_a_release_spells_out_its_keywords():
    import inspect

    parameters = inspect.signature(pd.DataFrame({"x": [1]}).dp.value_counts).parameters
    expected = {
        "delta", "mechanism", "p", "calibration", "bounding", "bounds", "releases", "rng", "constraint",
        "branching",
    }  # fmt: skip
    assert expected <= set(parameters)
    assert parameters["mechanism"].default == "geometric"
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in expected)


def test_a_table_too_large_is_refused_with_a_hierarchy_too():
    domain = Domain(tuple(Column(f"m{k}", "integer", lower=0, upper=999) for k in range(3)))
    frame = pd.DataFrame({f"m{k}": [1, 2] for k in range(3)})
    private = protected(frame, domain)
    with pytest.raises(TableTooLargeError):
        private.dp.value_counts(["m0", "m1", "m2"], epsilon=1, constraint="hierarchy")
    assert len(private.dp.budget.entries) == 0


def test_a_changed_bounded_release_has_no_interval():
    released = private_of("replace_one").dp.mean("x", epsilon=1, bounding="truncated", rng=1)
    assert metadata.verify(released)
    released["x"] += 1e-9
    assert not metadata.verify(released)
    with pytest.raises(PrivacyError):
        released.dp.interval()


# ---------------------------------------------------------------- columns of extreme ranges


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("size", [1e-85, 1e-40, 1.0, 1e40, 1e85])
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
def test_errors_scale_with_the_unit_of_the_column(size, bounding):
    """A release of a column in another unit has its errors in that unit: nothing under- or overflows."""
    domain = Domain(
        (Column("x", "float", lower=0, upper=2 * size), Column("y", "float", lower=0, upper=size))
    )
    frame = pd.DataFrame({"x": [0.5 * size, 1.5 * size] * 20, "y": [0.2 * size, 0.7 * size] * 20})
    dp = frame.dp.protect(domain, epsilon=1000, neighbors="replace_one").dp
    released = dp.var("x", epsilon=1, bounding=bounding, rng=1)
    error = released.attrs["dp"]["error"]
    # sensitivity (2 size)^2 / 40, largest variance 40/39 size^2
    law = Laplace(1, "0.1", bounds=(0, Fraction(40, 39)), bounding=bounding)
    rmse = math.sqrt(float(law.mse(released.iloc[0] / size / size)))
    assert error["rmse"] / size / size == pytest.approx(rmse, rel=1e-4)
    worst = math.sqrt(law.worst_case_mse())
    assert error["worst_case"]["rmse"] / size / size == pytest.approx(worst, rel=1e-4)
    matrix = dp.cov(["x", "y"], epsilon=50, bounding=bounding, rng=1)
    off = matrix.loc["x", "y"] / size / size
    assert (
        0
        < abs(off)
        <= math.sqrt(matrix.loc["x", "x"] / size / size)
        * math.sqrt(matrix.loc["y", "y"] / size / size)
        * (1 + 1e-9)
    )
