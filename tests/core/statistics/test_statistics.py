"""No neighbour moves a statistic (`sums`, `counts`, `direct`, `interface`) further than its parts claim.

A release adds noise of a stated scale to the whole numbers of each part. If neighbouring tables
never differ by more than ``l1`` and ``l2_squared`` in a part, and the weights of the parts add up
to one, the release is private by composition. Here every statistic that the accessor makes is read
on every table that a small universe of records allows, and on all neighbours of it.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.statistics import (
    CellCounts,
    Covariance,
    Direct,
    Moments,
    Noisy,
    Part,
    Rows,
    Scope,
    Sums,
    indicator,
    quantity,
)
from pdprivacy.errors import DeclarationWarning, ParameterError
from tests.support.claims import Moved, captured, check_attained, check_claims, check_shape, numbers
from tests.support.gate import exact
from tests.support.snapshots import engine_of

# tiny tables leave a regression without standard errors, which it announces
pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.IntervalWarning")

NAN, INF = float("nan"), float("inf")


def protected(frame: pd.DataFrame, domain: Domain, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeclarationWarning)  # records at the bounds are the point here
        return frame.dp.protect(domain, epsilon=1, delta="0.01", **options)


class Remembered:
    """An engine that reads each sufficient statistic of its table once, whichever releases ask for it."""

    def __init__(self, engine: PandasEngine) -> None:
        self._engine = engine
        self._found: dict[Any, Any] = {}

    @property
    def rows(self) -> int:
        return self._engine.rows

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def read(*arguments: Any, **options: Any) -> Any:
            key = (
                name,
                *(tuple(argument) if isinstance(argument, list) else argument for argument in arguments),
                *options.items(),
            )
            if key not in self._found:
                self._found[key] = getattr(self._engine, name)(*arguments, **options)
            return self._found[key]

        return read


# ---------------------------------------------------------------- all tables of a small universe of records


@dataclass(frozen=True)
class World:
    """A declaration, a definition of neighbours and a way from the raw table to what is read."""

    name: str
    neighbors: str
    nullable: bool = False
    on_invalid: str = "raise"
    query: str | None = None
    size: int = 3
    """Rows of the larger table under "add_remove" at most, of both under "replace_one"."""
    public_rows: int | None = None
    few: bool = False
    """Whether the universe is cut down, to the first ones and nulls, where tables are larger."""

    @property
    def domain(self) -> Domain:
        return Domain(
            (
                Column("x", "float", self.nullable, -3.0, 10.0),
                Column("y", "integer", self.nullable, 90, 98),
                Column("flag", "boolean", self.nullable),
                Column("g", "category", self.nullable, categories=("a", "b")),
            )
        )

    @cached_property
    def universe(self) -> pd.DataFrame:
        """Records at the bounds, in the middle, beyond the bounds, null, and of an unseen label."""
        records: list[tuple[Any, ...]] = [
            (-3.0, 90, False, "a"),
            (10.0, 98, True, "b"),
            (10.0, 90, True, "b"),
            (-3.0, 98, False, "a"),
            (10.0, 98, False, "a"),
            (3.5, 94, False, "b"),
        ]
        if self.on_invalid == "clip":
            records += [(-INF, 10**9, True, "b"), (1e300, -7, False, "b"), (-5.0, 95, True, "a")]
        elif self.query is None:
            records += [(-INF, 10**9, True, "b"), (1e300, -7, False, "b"), (3.5, 90, True, "z")]
        else:
            records += [(0.25, 95, True, "a"), (9.0, 91, False, "b")]
        if self.nullable:
            records += [(NAN, 98, None, "b"), (10.0, None, True, None), (NAN, None, None, None)]
        if self.few:
            records = [*records[:6], records[-1 if self.nullable else 6]]
        x, y, flag, g = (list(column) for column in zip(*records, strict=True))
        return pd.DataFrame(
            {
                "x": np.array(x),
                "y": np.array(y, dtype=np.float64 if self.nullable else np.int64),
                "flag": pd.array(flag, dtype="boolean") if self.nullable else np.array(flag),
                "g": pd.Series(g, dtype=object),
            }
        )

    def private(self, raw: pd.DataFrame) -> pd.DataFrame:
        private = protected(
            raw,
            self.domain,
            neighbors=self.neighbors,
            on_invalid=self.on_invalid,
            public_rows=self.public_rows,
        )
        return private if self.query is None else private.dp.query(self.query)

    @cached_property
    def some(self) -> pd.DataFrame:
        """Some protected table: what a statistic claims may depend on nothing but public facts."""
        return self.private(self.universe.take(range(self.size)).reset_index(drop=True))

    @cached_property
    def of_units(self) -> pd.DataFrame:
        """The same with several records of a unit."""
        some = self.universe.take([0, 1, 2, 3]).reset_index(drop=True).assign(who=["a", "a", "b", "c"])
        return protected(some, self.domain, neighbors=self.neighbors, unit="who", max_rows=MOST)

    def engine(self, rows: tuple[int, ...]) -> Remembered:
        """The reads of a table: equal in all worlds that differ in their neighbours alone."""
        key = self.nullable, self.few, self.on_invalid, self.query, rows
        if key not in ENGINES:
            raw = self.universe.take(list(rows)).reset_index(drop=True)
            if self.on_invalid == "raise" and self.query is None:
                ENGINES[key] = Remembered(PandasEngine(raw))  # values that no validation has seen
            else:
                ENGINES[key] = Remembered(engine_of(self.private(raw)))
        return ENGINES[key]


ENGINES: dict[Any, Remembered] = {}


@cache
def engines(world: World) -> dict[tuple[int, ...], Remembered]:
    """The engine of every table, as a multiset of records."""
    records = range(len(world.universe))
    least = world.size if world.neighbors == "replace_one" else (world.public_rows or 1) - 1
    return {
        rows: world.engine(rows)
        for size in range(least, world.size + 1)
        for rows in itertools.combinations_with_replacement(records, size)
    }


def neighbours(
    tables: dict[tuple[int, ...], Any], world: World
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of neighbouring tables."""
    if world.neighbors == "add_remove":
        for rows in tables:
            for index in range(len(rows)):
                if (fewer := rows[:index] + rows[index + 1 :]) in tables:
                    yield fewer, rows
        return
    without = defaultdict(set)
    for rows in tables:
        for index in range(len(rows)):
            without[rows[:index] + rows[index + 1 :]].add(rows)
    for group in without.values():
        yield from itertools.combinations(sorted(group), 2)


@cache
def pairs_of(world: World) -> Any:
    """Every pair of neighbouring tables, as places in the order of all tables."""
    tables = engines(world)
    position = {rows: number for number, rows in enumerate(tables)}
    return np.array([(position[first], position[second]) for first, second in neighbours(tables, world)])


def brute_force(statistic: Any, world: World) -> Moved:
    parts = statistic.parts
    with mock.patch.object(type(statistic), "parts", parts):  # not worked out again for every table
        read = [numbers(exact(statistic, engine)) for engine in engines(world).values()]
    for answers in read:
        check_shape(parts, answers)
    return Moved.between(parts, read, pairs_of(world))


CALLS: dict[str, Callable[[Any], Any]] = {
    "count": lambda dp: dp.count(epsilon=1),
    "count of columns": lambda dp: dp.count(["x", "g"], epsilon=1, split={"x": 2, "g": 1}),
    "value_counts": lambda dp: dp.value_counts("g", epsilon=1),
    "value_counts of two": lambda dp: dp.value_counts(["g", "y"], epsilon=1),
    "histogram, bins within the bounds": lambda dp: dp.histogram("x", [-1, 0.25, 5], epsilon=1),
    "histogram, bins beyond the bounds": lambda dp: dp.histogram("x", [-9, 0.25, 10, 50, 2e300], epsilon=1),
    "histogram, even bins": lambda dp: dp.histogram("x", 26, epsilon=1),
    "histogram of integers": lambda dp: dp.histogram("y", [80, 90, 93, 95.5, 200], epsilon=1),
    "crosstab": lambda dp: dp.crosstab("g", ["flag", "y"], epsilon=1),
    "sum": lambda dp: dp.sum(epsilon=1),
    "mean": lambda dp: dp.mean(["x", "y", "flag"], epsilon=1, split={"x": 5, "y": "1/3", "flag": 0.1}),
    "proportion": lambda dp: dp.proportion("g", "b", epsilon=1),
    "var": lambda dp: dp.var(["x", "y"], epsilon=1),
    "std": lambda dp: dp.std("y", epsilon=1),
    "cov": lambda dp: dp.cov(["x", "y"], epsilon=1),
    "corr": lambda dp: dp.corr(epsilon=1),
    "ols": lambda dp: dp.ols("y", "x", epsilon=1),
    "groupby count": lambda dp: dp.groupby("g").count(epsilon=1),
    "groupby sum": lambda dp: dp.groupby("g").sum(["x", "y"], epsilon=1),
    "groupby mean": lambda dp: dp.groupby(["g", "flag"]).mean(["x", "y"], epsilon=1),
    "groupby var": lambda dp: dp.groupby("g").var(["x", "y"], epsilon=1),
    "pooled_var": lambda dp: dp.pooled_var(["x", "y"], by="g", epsilon=1),
    "pooled_cov": lambda dp: dp.pooled_cov(["x", "y"], by="g", epsilon=1),
}

# Two rows where records leave or are clipped: every record comes, goes and replaces every other beside every
# third; how rows add up is seen in three.
WORLDS = [
    World("private number of rows", "add_remove"),
    World("private number of rows, nulls", "add_remove", nullable=True),
    World("private number of rows, filter", "add_remove", nullable=True, query="x >= 0 or flag", size=2),
    World("private number of rows, dropped", "add_remove", on_invalid="drop", size=2),
    World("private number of rows, clipped", "add_remove", on_invalid="clip", size=2),
    World("replacement, nulls", "replace_one", nullable=True),
    World("replacement, filter", "replace_one", query="x >= 0 and g in ['a', 'b']", size=2),
    World("replacement, filter to one value", "replace_one", query="y == 98", size=2),
    World("replacement, filter and nulls", "replace_one", nullable=True, query="not x < 3.5", size=2),
    World("replacement, dropped", "replace_one", on_invalid="drop", size=2),
]


# The number of all rows is public under replacement without a filter, and counting them is refused. So is a
# regression with a column of one value.
PAIRS = [
    (call, world)
    for call in CALLS
    for world in WORLDS
    if call != "count" or world.name != "replacement, nulls"
    if call != "ols" or world.name != "replacement, filter to one value"
]


@cache
def claimed_and_moved(call: str, world: World) -> tuple[tuple[Part, ...], Moved]:
    """The stated sensitivities of the parts of a release, and their moves between neighbours."""
    statistic = captured(world.some, CALLS[call])
    return statistic.parts, brute_force(statistic, world)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("call", "world"), PAIRS, ids=lambda value: getattr(value, "name", value))
def test_no_neighbour_moves_a_statistic_further_than_its_parts_claim(call, world):
    check_claims(*claimed_and_moved(call, world))


TIGHT = [
    (call, world)
    for call, world in PAIRS
    if world.query is None and world.on_invalid == "raise"
    if call != "corr"  # a truth value less a half is 1/4 when squared, whatever it is
]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("call", "world"), TIGHT, ids=lambda value: getattr(value, "name", value))
def test_the_claims_are_no_larger_than_needed(call, world):
    check_attained(*claimed_and_moved(call, world), 1 - Fraction(1, 2**12))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("query", ["x >= -3 and flag", "y >= 90 and not flag"])
def test_a_replaced_record_that_leaves_by_a_filter_moves_a_sum_by_its_whole_value(query):
    world = World("filter", "replace_one", query=query, size=2)
    statistic = captured(world.some, lambda dp: dp.sum("y", epsilon=1))
    assert statistic.parts[0].l1 * statistic.parts[0].unit == 98  # not 98 - 90
    check_attained(statistic.parts, brute_force(statistic, world), Fraction(1))


# Where a number of rows is public. Under "add_remove" it is a lower bound: the pairs (n - 1, n),
# (n, n + 1) and (n + 1, n + 2) are all neighbours that the claim covers.

PUBLIC = [
    World("replacement, 2 rows", "replace_one", size=2),
    World("replacement, 3 rows", "replace_one", size=3),
    World("replacement, 4 rows", "replace_one", size=4),
    World("replacement, 5 rows", "replace_one", size=5, few=True),
    World("replacement, clipped", "replace_one", on_invalid="clip"),
    World("at least 2 rows", "add_remove", size=4, public_rows=2),
    World("at least 3 rows", "add_remove", size=4, public_rows=3),
    World("at least 4 rows", "add_remove", size=5, public_rows=4, few=True),
    World("at least 4 rows, nulls", "add_remove", nullable=True, size=4, public_rows=4, few=True),
]
DIRECT = ("mean", "proportion", "var", "std", "cov", "corr", "pooled_var", "pooled_cov")


def least_rows(call: str, neighbors: str) -> int:
    """From how many rows on both neighbours have the statistic; J = 2 groups."""
    least = {"mean": 1, "proportion": 1, "pooled_var": 3, "pooled_cov": 3}.get(call, 2)
    return least + (neighbors == "add_remove")


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("world", PUBLIC, ids=lambda world: world.name)
@pytest.mark.parametrize("call", DIRECT)
def test_no_neighbour_moves_a_direct_statistic_further_than_it_claims(call, world):
    private = world.some
    enough = (world.public_rows or world.size) >= least_rows(call, world.neighbors)
    if not enough and world.neighbors == "replace_one":
        with pytest.raises(ParameterError, match="at least"):
            CALLS[call](private.dp)
        assert private.dp.budget.spent == (0, 0)
        return
    statistic = captured(private, CALLS[call])
    assert isinstance(statistic, Direct) == (enough and not world.nullable)
    check_claims(*claimed_and_moved(call, world))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("world", "call", "share"),
    [
        (world, call, Fraction(1))
        for world in (PUBLIC[2], PUBLIC[6])
        for call in ("mean", "var", "cov", "corr")
    ]
    # upper bounds: 1 - 1/n of R^2 / (n - J), and (n - 1)/(n + 1) of 2 R1 R2 / (n - J) for odd n
    + [(PUBLIC[2], "pooled_var", Fraction(3, 4)), (PUBLIC[3], "pooled_var", Fraction(4, 5))]
    + [(PUBLIC[1], "pooled_cov", Fraction(1, 2)), (PUBLIC[3], "pooled_cov", Fraction(2, 3))],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_direct_claims_are_no_larger_than_stated(world, call, share):
    check_attained(*claimed_and_moved(call, world), share * (1 - Fraction(1, 2**12)))


def test_a_number_of_records_is_public_only_where_none_can_leave():
    complete, may_be_null = Column("x", "float", lower=0, upper=1), Column("y", "float", True, 0, 1)
    for neighbors in ("add_remove", "replace_one"):
        scope = Scope(neighbors, 9)
        assert scope.direct_rows([complete], "mean", 1) == 9
        assert scope.direct_rows([complete, may_be_null], "mean", 1) is None
        assert Scope(neighbors, 9, filtered=True).direct_rows([complete], "mean", 1) is None
        assert Scope(neighbors, None).direct_rows([complete], "mean", 1) is None


# ---------------------------------------------------------------- any bounds, any dtype, any scope

BOUNDS = [
    (-3.0, 10.0),
    (0.0, 1.0),
    (5.0, 5.0),
    (0.0, 0.0),
    (-7.5, -2.25),
    (0.1, 0.7),
    (1e9, 1e9 + 1e-3),
    (1e-8, 3e-8),
    (-1e12, 1.0),
    (-1e80, 1e80),
]


class Drawn:
    """A random declaration with a universe of random records for it."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([5, seed])
        self.x, self.y = self._numeric("x"), self._numeric("y")
        self.key = Column("key", "category", self._coin(), categories=("b", "a")[: self.rng.integers(1, 3)])
        self.flag = Column("flag", "boolean", self._coin())
        self.dtypes = {name: self._pick(["float64", "float32", "Float64", "object"]) for name in "xy"}
        self.dtypes["key"] = self._pick(["object", "category", "string"])

    def _coin(self) -> bool:
        return bool(self.rng.integers(2))

    def _pick(self, choices: list[Any]) -> Any:
        return choices[self.rng.integers(len(choices))]

    def _numeric(self, name: str) -> Column:
        lower, upper = self._pick(BOUNDS)
        return Column(name, "float", self._coin(), lower, upper)

    def _number(self, column: Column) -> float:
        lower, upper = column.bounds("test")
        inside = float(lower + self.rng.random() * (upper - lower))
        pool = [lower, upper, lower / 2 + upper / 2, inside, lower - 1, upper * 2 + 3, INF, -INF]
        return NAN if column.nullable and self.rng.random() < 0.2 else self._pick(pool)

    def record(self) -> tuple[Any, ...]:
        key = self._pick(["a", "b", "z", None] if self.key.nullable else ["a", "b", "z"])
        flag = self._pick([True, False, None] if self.flag.nullable else [True, False])
        return self._number(self.x), self._number(self.y), key, flag

    def engine(self, records: list[tuple[Any, ...]]) -> PandasEngine:
        x, y, key, flag = zip(*records, strict=True) if records else ((), (), (), ())
        frame = pd.DataFrame(
            {
                "x": np.array(x, dtype=np.float64),
                "y": np.array(y, dtype=np.float64),
                "key": pd.Series(key, dtype=object),
                "flag": pd.array(flag, dtype="boolean"),
            }
        )
        with np.errstate(over="ignore"):  # 1e80 as a narrow float is infinite, and clamped
            return PandasEngine(frame.astype(self.dtypes))

    def scope(self, rows: int) -> Scope:
        return self._pick(
            [
                Scope("add_remove", None),
                Scope("add_remove", rows),
                Scope("replace_one", rows),
                Scope("replace_one", None, filtered=True),
            ]
        )

    def statistics(self, scope: Scope) -> list[Any]:
        x, y, keys = self.x, self.y, (self.key, self.flag)
        sums = tuple(quantity(column, "sum", centered=False) for column in (x, y))
        means = tuple(quantity(column, "mean") for column in (x, y))
        products = tuple(quantity(column, "var", products=True) for column in (x, y))
        share = indicator(self.key, "proportion", "b")
        halves = (Fraction(1, 3), Fraction(2, 3))
        edges = (x.bounds("test")[0] - 0.5, sum(x.bounds("test")) / 2, x.bounds("test")[1] + 3.5)
        statistics = [
            Rows((), (), scope),
            Rows((x, self.key), halves, scope),
            CellCounts(keys, scope, "crosstab"),
            CellCounts((x,), scope, "histogram", edges if edges[0] < edges[1] < edges[2] else (-1.0, 6.0)),
            Sums(sums, halves, scope),
            Covariance(products, scope),
            *(
                Moments(((kind,), (kind,)), means, halves, scope, groups)
                for kind in ("count", "sum", "mean")
                for groups in (keys, ())
            ),
            Moments((("sum",), ("sum",)), sums, halves, scope, (self.flag,)),
            *(
                Moments(kinds, products, halves, scope, groups)
                for kinds in ((("var",), ("std",)), (("sum", "std"), ("sum", "count")))
                for groups in (keys, ())
            ),
            *(
                Moments((("mean",),), (share,), (Fraction(1),), scope, groups)
                for groups in ((self.flag,), ())
            ),
            Covariance(products, scope, keys, matrix=False),
            Covariance(products, scope, keys),
        ]
        complete = not (scope.filtered or scope.rows is None or x.nullable or y.nullable)
        if complete and (rows := scope.rows) >= 3:
            statistics += [
                Direct("mean", means, halves, scope, rows),
                Direct("var", products, halves, scope, rows),
                Direct("cov", products, (), scope, rows),
            ]
            if rows >= 6 and not self.flag.nullable:
                statistics += [
                    Direct(kind, products, halves, scope, rows, (self.flag,)) for kind in ("var", "cov")
                ]
        return statistics


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", range(40))
def test_random_tables_and_all_their_neighbours(seed):
    drawn = Drawn(seed)
    rows = int(drawn.rng.integers(1, 9))
    scope = drawn.scope(rows)
    table = [drawn.record() for _ in range(rows)]
    universe = [drawn.record() for _ in range(4)]
    fewer = [table[:index] + table[index + 1 :] for index in range(rows)]
    others = [[*table, record] for record in universe]
    if scope.neighbors == "replace_one":
        replaced = [[*rest, record] for rest in fewer for record in universe]
        others = [*replaced, *(others + fewer if scope.filtered else [])]
    else:
        others += fewer
    engine, *engines = (Remembered(drawn.engine(rows)) for rows in (table, *others))
    for statistic in drawn.statistics(scope):
        values = numbers(exact(statistic, engine))
        check_shape(statistic.parts, values)
        moved = Moved.none(statistic.parts)
        for other in engines:
            moved.see(values, numbers(exact(statistic, other)))
        check_claims(statistic.parts, moved, (statistic, table))


@pytest.mark.parametrize("kinds", [("mean",), ("var",), ("count", "mean", "std"), ("sum", "mean", "var")])
def test_statistics_of_all_records_are_those_of_a_single_group(kinds):
    """The same parts, answers and intervals, with an axis of groups and without."""
    columns = Column("x", "float", lower=-3, upper=10), Column("y", "float", True, lower=0, upper=7)
    numbers = tuple(quantity(column, "var", products=True) for column in columns)
    shares, scope = (Fraction(1, 3), Fraction(2, 3)), Scope("add_remove", None)
    alone, grouped = (
        Moments((kinds, kinds), numbers, shares, scope, keys)
        for keys in ((), (Column("k", "category", categories=("a",)),))
    )
    facts = operator.attrgetter("name", "weight", "l1", "l2_squared", "unit", "size", "lower", "upper")
    assert list(map(facts, alone.parts)) == list(map(facts, grouped.parts))
    assert np.array_equal(alone.ends, grouped.ends)
    noisy = [Noisy(np.array([20.0 + index]), 0.5 + index) for index in range(len(alone.parts))]
    answer, of_group = alone.finish(noisy), grouped.finish(noisy)
    assert answer.values.shape == (2 * len(kinds),)
    for name in ("values", "standard_error", "rounding", "lower", "upper"):
        assert np.array_equal([getattr(answer, name)], getattr(of_group, name))
    assert np.array_equal(answer.interval(0.9), np.array(of_group.interval(0.9))[:, 0])


# ---------------------------------------------------------------- units of several records

MOST = 2

UNITS = [
    World(f"{neighbors}, {'nulls' if nullable else 'no nulls'}", neighbors, nullable)
    for neighbors in ("add_remove", "replace_one")
    for nullable in (False, True)
]


def reached(world: World, name: str) -> tuple[Any, Moved]:
    """The parts of a release by unit, and how far one unit of at most two records moves them."""
    statistic = captured(world.of_units, CALLS[name])
    tables = [
        rows
        for size in range(MOST + 1)
        for rows in itertools.combinations_with_replacement(range(len(world.universe)), size)
    ]
    read = [numbers(exact(statistic, world.engine((3, 0, *rows)))) for rows in tables]
    if world.neighbors == "replace_one":
        pairs = list(itertools.combinations(range(len(tables)), 2))
    else:
        pairs = [(0, index) for index in range(1, len(tables))]  # the first one holds nothing
    return statistic.parts, Moved.between(statistic.parts, read, np.array(pairs))


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("world", UNITS, ids=lambda world: world.name)
def test_no_unit_moves_a_statistic_further_than_its_parts_claim(world, name):
    parts, moved = reached(world, name)
    check_claims(parts, moved, name)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["value_counts", "crosstab", "groupby count"])
def test_the_claims_about_cells_are_attained(neighbors, name):
    parts, moved = reached(World(neighbors, neighbors), name)
    assert moved.l1 == [part.l1 for part in parts]
    assert moved.l2_squared == [part.l2_squared for part in parts]
