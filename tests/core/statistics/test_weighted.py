"""Weighted statistics: sensitivities by brute force, exact losses, the numbers of NumPy, and errors."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, errors
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.statistics import Part, Quantile, RankGrid, Scope, quantile_bits, weight_of
from pdprivacy.core.statistics.weighted import WeightedCells, effective_rows
from pdprivacy.errors import ArgumentError, DeclarationError, ParameterError
from tests.support.claims import Moved, captured, check_attained, check_claims, check_shape, numbers
from tests.support.engine_frames import ENGINES
from tests.support.gate import exact
from tests.support.neighbours import loss_of

NAN = float("nan")
BOTH = ["add_remove", "replace_one"]

# ---------------------------------------------------------------- how far neighbours move them

DOMAIN = Domain(
    (
        Column("x", "float", True, lower=-3.0, upper=10.0),
        Column("y", "integer", lower=2, upper=9),
        Column("w", "float", True, lower=0.0, upper=3.0),
        Column("v", "integer", lower=1, upper=4),
        Column("g", "category", True, categories=("a", "b")),
        Column("u", "float", True, lower=1.0, upper=3.0),
    )
)
UNIVERSE = pd.DataFrame(
    [
        (10.0, 9, 3.0, 4, "a"),
        (10.0, 9, 3.0, 4, "b"),
        (-3.0, 2, 3.0, 4, "b"),
        (-3.0, 2, 3.0, 1, "a"),
        (10.0, 2, 0.0, 1, "a"),
        (1e300, 99, 77.0, 9, "b"),  # clamped, values and weights
        (-1e300, -5, -8.0, -2, "a"),
        (0.3, 4, 0.7, 2, None),
        (NAN, 9, 3.0, 4, "b"),
        (10.0, 9, NAN, 4, "a"),
    ],
    columns=["x", "y", "w", "v", "g"],
).astype({"g": object})
UNIVERSE["u"] = [3.0, 3.0, 3.0, 1.0, 1.0, 7.0, -8.0, 2.0, 3.0, NAN]
"""Weights and values at both bounds, beyond them, in between, null and zero."""

SETTINGS: dict[str, tuple[dict[str, Any], int, int | None]] = {
    "add_remove": ({}, 1, None),
    "replace_one": ({"neighbors": "replace_one"}, 1, 2),
    "unit": ({"unit": "who", "max_rows": 2}, 2, None),
    "unit, replace_one": ({"unit": "who", "max_rows": 2, "neighbors": "replace_one"}, 2, None),
}
"""Keywords of `protect`, how many records of one unit differ, and how many records there are in all."""

CALLS = {
    "count": lambda dp: dp.count(weights="w", epsilon=1),
    "count, no nulls": lambda dp: dp.count(weights="v", epsilon=1),
    "sum": lambda dp: dp.sum(["x", "y"], weights="w", epsilon=1),
    "sum, no nulls": lambda dp: dp.sum("y", weights="v", epsilon=1),
    "sum, null weights": lambda dp: dp.sum("y", weights="u", epsilon=1),
    "mean, null weights": lambda dp: dp.mean("y", weights="u", epsilon=1),
    "mean": lambda dp: dp.mean(["x", "y"], weights="w", epsilon=1, split={"x": 3, "y": 1}),
    "mean, some nulls": lambda dp: dp.mean(["x", "y"], weights="v", epsilon=1),
    "proportion": lambda dp: dp.proportion("g", "b", weights="w", epsilon=1),
    "value_counts": lambda dp: dp.value_counts("g", weights="w", epsilon=1),
    "histogram": lambda dp: dp.histogram("x", [-3, 0, 9], weights="w", epsilon=1),
    "histogram of integers": lambda dp: dp.histogram("y", [0, 2, 4, 9], weights="v", epsilon=1),
    "crosstab": lambda dp: dp.crosstab("g", "y", weights="v", epsilon=1),
    "groupby count": lambda dp: dp.groupby("g").count(weights="v", epsilon=1),
    "groupby sum": lambda dp: dp.groupby("g").sum(["x", "y"], weights="w", epsilon=1),
    "groupby mean": lambda dp: dp.groupby("g").mean(["x", "y"], weights="v", epsilon=1),
    "groupby proportion": lambda dp: dp.groupby("y").proportion("g", "b", weights="v", epsilon=1),
    "agg": lambda dp: dp.agg({"x": ["count", "sum", "mean"], "y": ["sum", "mean"]}, weights="w", epsilon=1),
    "agg of sums": lambda dp: dp.agg(["count", "sum"], "y", weights="v", epsilon=1),
    "groupby agg": lambda dp: dp.groupby("g").agg(
        {"x": ["sum", "mean"], "y": ["count"]}, weights="u", epsilon=1
    ),
    "value_counts without nulls": lambda dp: dp.value_counts("g", dropna=True, weights="v", epsilon=1),
}


def protected(frame: Any, domain: Domain = DOMAIN, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        return pdprivacy.protect(frame, domain, **{"epsilon": 10**9, "delta": 0.9, **options})


@cache
def tables(size: int | None) -> list[tuple[int, ...]]:
    """All tables of up to three records of the universe, or of so many."""
    sizes = range(4) if size is None else [size]
    records = range(len(UNIVERSE))
    return [rows for n in sizes for rows in itertools.combinations_with_replacement(records, n)]


@cache
def pairs(setting: str) -> Any:
    """Every pair of neighbouring tables, by their places."""
    options, most, size = SETTINGS[setting]
    both_ways = options.get("neighbors") == "replace_one"
    counted = np.array([np.bincount(rows, minlength=len(UNIVERSE)) for rows in tables(size)])
    gone = np.maximum(counted[:, None] - counted, 0).sum(axis=2)
    neighbouring = (most >= gone.T) & (gone <= (most if both_ways else 0))
    np.fill_diagonal(neighbouring, False)
    return np.argwhere(neighbouring)


@cache
def engine(rows: tuple[int, ...]) -> PandasEngine:
    return PandasEngine(UNIVERSE.take(list(rows)).reset_index(drop=True))


@cache
def parts_and_numbers(setting: str, name: str) -> tuple[tuple[Part, ...], list[list[list[int]]]]:
    """The parts of a statistic, and its whole numbers of each table."""
    options, _, size = SETTINGS[setting]
    some = UNIVERSE.take([0, 3]).reset_index(drop=True).assign(who=["a", "b"])
    statistic = captured(protected(some, **options), CALLS[name])
    return statistic.parts, [numbers(exact(statistic, engine(rows))) for rows in tables(size)]


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_neighbour_moves_a_weighted_statistic_further_than_its_parts_claim(setting, name):
    parts, read = parts_and_numbers(setting, name)
    check_shape(parts, read[0])
    moved = Moved.between(parts, read, pairs(setting))
    check_claims(parts, moved, (setting, name))
    check_attained(parts, moved, Fraction(1))


@pytest.mark.full(keep=30)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_of_parts_hold_for_all_tables(setting, name):
    """Bounding keeps noisy numbers within limits that exact numbers cannot leave."""
    parts, read = parts_and_numbers(setting, name)
    for part, answers in zip(parts, zip(*read, strict=True), strict=True):
        low, high = part.bounds
        assert low <= min(map(min, answers)) * part.unit, part.name
        assert max(map(max, answers)) * part.unit <= high, part.name


# ---------------------------------------------------------------- quantiles

POINTS = Column("x", "integer", True, 0, 3)
WEIGHTS = Column("w", "integer", True, 0, 5)
WEIGHED = [(x, w) for x in (0, 2, 3) for w in (0, 2, 5)] + [(None, 5), (1, None), (2, 99)]


def choice(q: Fraction, neighbors: str, contribution: int = 1) -> Quantile:
    scope = Scope(neighbors, None, contribution=contribution)  # type: ignore[arg-type]
    weight = weight_of(WEIGHTS, "quantile", bits=quantile_bits(q))
    return Quantile(RankGrid(POINTS, "quantile"), q, scope, Fraction(1), None, weights=weight)


def scores(data: tuple[Any, ...], q: Fraction) -> list[Fraction]:
    """By the definition: minus the distance of q times all weights to those below a point and up to it."""
    complete = [(x, min(w, 5)) for x, w in data if x is not None and w is not None]
    target = q * sum(w for _, w in complete)
    values = []
    for point in range(4):
        below = sum(w for x, w in complete if x < point)
        upto = sum(w for x, w in complete if x <= point)
        values.append(-max(below - target, target - upto, Fraction(0)))
    return values


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 10), Fraction(3, 4)])
def test_a_record_moves_no_weighted_score_further_than_is_stated(q, neighbors):
    statistic = choice(q, neighbors)
    largest = Fraction(0)
    for others in itertools.combinations_with_replacement(WEIGHED, 2):
        joined = [scores((*others, record), q) for record in WEIGHED]
        alone = [scores(others, q)]
        for first, second in itertools.product(joined, alone if neighbors == "add_remove" else joined):
            largest = max(largest, *(abs(a - b) for a, b in zip(first, second, strict=True)))
    assert largest == statistic.sensitivity * Fraction(statistic.unit)
    assert choice(q, neighbors, 2).sensitivity == 2 * statistic.sensitivity


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(2, 7)])
def test_runs_have_the_weighted_scores_of_their_points(q):
    statistic = choice(q, "add_remove")
    assert statistic.weights is not None
    for data in itertools.combinations_with_replacement(WEIGHED, 3):
        frame = pd.DataFrame(data, columns=["x", "w"], dtype="float64")
        runs, others, _, _ = statistic.runs_near_target(
            PandasEngine(frame).ranks(statistic.grid, statistic.weights), 4.0, 10**12
        )
        assert others == 0
        unit = Fraction(statistic.unit) / statistic.parts
        deficits = np.repeat(runs.deficits, runs.lengths).tolist()
        assert [-deficit * unit for deficit in deficits] == scores(data, q)


# ---------------------------------------------------------------- exact losses

WORST = {
    "sum": (lambda dp: dp.sum("x", weights="w", epsilon=1), 2),
    "value_counts": (CALLS["value_counts"], 1),
    "crosstab": (CALLS["crosstab"], 1),
    "groupby sum": (lambda dp: dp.groupby("g").sum("x", weights="w", epsilon=1), 1),
}
"""Releases, and the record that replaces the first one."""


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("name", WORST)
def test_the_worst_neighbours_lose_all_of_the_charge(name, neighbors):
    call, other = WORST[name]
    rows = [[4, 0], [4, other] if neighbors == "replace_one" else [4]]
    frames = [UNIVERSE.take(indices).reset_index(drop=True) for indices in rows]
    loss = loss_of(*(protected(frame, neighbors=neighbors, on_invalid="clip") for frame in frames), call)
    assert loss.epsilon == pytest.approx(float(loss.charged_epsilon), rel=1e-3)
    assert loss.kept


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("kinds", [["count", "sum"], ["sum", "mean", "count"]])
def test_a_record_at_all_bounds_loses_all_of_the_charge_of_several_statistics(by, kinds):
    """It moves the weights by 3, the sum by 3 times 10, and the centred sum by 3 times 6.5, all in full."""
    frames = [UNIVERSE.take(rows).reset_index(drop=True) for rows in ([4, 0], [4])]

    def call(dp):
        return (dp if by is None else dp.groupby(by)).agg(kinds, ["x"], weights="w", epsilon=1)

    loss = loss_of(*(protected(frame, on_invalid="clip") for frame in frames), call)
    assert loss.epsilon == pytest.approx(float(loss.charged_epsilon), rel=1e-3)
    assert loss.kept


@pytest.mark.parametrize("neighbors", BOTH)
def test_neighbours_of_a_weighted_quantile_lose_at_most_the_charge(neighbors):
    losses = []
    for others, first, other in [((0,), 0, 2), ((2, 2), 0, 3), ((0, 2), 2, 0), ((5, 3), 1, 6)]:
        rows = [[*others, first], [*others, other] if neighbors == "replace_one" else [*others]]
        frames = [UNIVERSE.take(taken).reset_index(drop=True) for taken in rows]
        private = [protected(frame, neighbors=neighbors, on_invalid="clip") for frame in frames]
        for q in (0.5, "1/3", 0.9):
            loss = loss_of(*private, lambda dp, q=q: dp.quantile("x", q, weights="w", epsilon=1, rng=1))
            assert loss.kept
            losses.append(loss.epsilon)
    assert max(losses) > 0.4


@pytest.mark.parametrize("neighbors", BOTH)
def test_every_pair_of_small_tables_keeps_to_the_charge(neighbors):
    rows = [(a, b) for a in range(6) for b in range(6)]
    frames = {pair: UNIVERSE.take(list(pair)).reset_index(drop=True) for pair in rows}
    if neighbors == "add_remove":
        frames |= {(a,): UNIVERSE.take([a]).reset_index(drop=True) for a in range(6)}
    for first, second in [((0, 1), (0, 5)), ((2, 4), (2, 0)), ((3, 5), (3, 2)), ((1, 4), (1, 0))]:
        beside = second if neighbors == "replace_one" else second[:1]
        private = [
            protected(frames[pair], neighbors=neighbors, on_invalid="clip") for pair in (first, beside)
        ]
        for call in CALLS.values():
            assert loss_of(*private, call).kept


# ---------------------------------------------------------------- the numbers of NumPy, on every engine


@cache
def sample(size: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x, w = rng.uniform(-3, 10, size), rng.uniform(0, 3, size)
    x[::9], w[::13], w[1::17] = NAN, NAN, 0.0
    return pd.DataFrame(
        {
            "x": x,
            "y": rng.integers(2, 10, size),
            "w": w,
            "v": rng.integers(1, 5, size),
            "g": rng.choice(np.array(["a", "b"], dtype=object), size),
            "u": rng.uniform(1, 3, size),
        }
    )


def quantile_of(x: Any, w: Any, q: float) -> float:
    """The smallest value with at least a share of q of the weights up to it."""
    order = np.argsort(x)
    upto = np.cumsum(w[order])
    return float(x[order][np.searchsorted(upto, q * upto[-1])])


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "Spark"])
def test_weighted_numbers_are_those_of_numpy(engine):
    pa = pytest.importorskip("pyarrow")
    whole = sample()
    if "pandas" not in engine and pd.__version__.startswith("2."):
        pytest.skip("the engines are checked against the newest pandas and Arrow")
    frame = ENGINES[engine](pa.Table.from_pandas(whole))
    dp = protected(frame).dp
    options = {"epsilon": 10**5, "rng": 1, "weights": "w"}
    weighted = whole.dropna(subset=["w"])
    both = weighted.dropna(subset=["x"])
    x, w = both["x"].to_numpy(), both["w"].to_numpy()
    close = {"rtol": 1e-4, "atol": 2e-3}
    np.testing.assert_allclose(dp.sum("x", **options), [(w * x).sum()], **close)
    np.testing.assert_allclose(dp.mean("x", **options), [np.average(x, weights=w)], **close)
    np.testing.assert_allclose(dp.count(**options), [weighted["w"].sum()], **close)
    several = [w.sum(), (w * x).sum(), np.average(x, weights=w)]
    released = dp.agg(["count", "sum", "mean"], ["x", "y"], **options)
    np.testing.assert_allclose(released["x"], several, **close)
    several = [weighted["w"].sum(), (weighted["w"] * weighted["y"]).sum()]
    np.testing.assert_allclose(released.loc[["count", "sum"], "y"], several, **close)
    share = np.average(weighted["g"] == "b", weights=weighted["w"])
    np.testing.assert_allclose(dp.proportion("g", "b", **options), [share], **close)
    counts = weighted.groupby("g")["w"].sum()
    np.testing.assert_allclose(dp.value_counts("g", sort=False, **options)[["a", "b"]], counts, **close)
    edges = [-2, 0, 4.5, 11]
    actual = dp.histogram("x", edges, **options).to_numpy()[:3]
    np.testing.assert_allclose(actual, np.histogram(x, edges, weights=w)[0], **close)
    cells = pd.crosstab(weighted["g"], weighted["y"], weighted["w"], aggfunc="sum")
    table = dp.crosstab("g", "y", **options).loc[["a", "b"]]
    np.testing.assert_allclose(table, cells, **close)
    actual = dp.value_counts("g", sort=False, dropna=True, **options)
    np.testing.assert_allclose(actual, counts.reindex(actual.index), **close)
    by = weighted.groupby("y")
    parts = by.apply(lambda part: np.average(part["g"] == "b", weights=part["w"]), include_groups=False)
    np.testing.assert_allclose(
        dp.groupby("y").proportion("g", "b", **options)["b"][parts.index], parts, **close
    )
    by = both.groupby("g")
    means = by.apply(lambda part: np.average(part["x"], weights=part["w"]), include_groups=False)
    np.testing.assert_allclose(dp.groupby("g").mean("x", **options)["x"][["a", "b"]], means, **close)
    sums = both.assign(s=both["w"] * both["x"]).groupby("g")[["w", "s"]].sum()
    named = dp.groupby("g").agg(n=("x", "count"), s=("x", "sum"), m=("x", "mean"), **options)
    np.testing.assert_allclose(named.loc[["a", "b"]], sums.assign(m=sums["s"] / sums["w"]), **close)
    for q in (0.1, 0.5, 0.77):
        near = float(dp.quantile("x", q, **options)["x"])
        assert near == pytest.approx(quantile_of(x, w, q), abs=1e-3), q


EDGES = [(0.0, 0.3, 1.0), (-5.0, -0.3), (0.3, 0.5), (-3.0, 0.0, 10.0), (9.0, 20.0, 30.0), (-9.0, 40.0)]
NUMBERS = [-3.0, -0.3, -0.1, -0.0, 0.0, 0.3, 0.1 + 0.2, 0.5, 1.0, 9.0, 9.5, 10.0, NAN]


@pytest.mark.parametrize("engine", ["pandas", "Polars"])
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("name", ["x", "n", "b"])
def test_records_of_weight_one_are_in_the_bins_that_count_them(engine, edges, name):
    """Also numbers next to an edge, the upper edge itself, and what is in no bin."""
    pa = pytest.importorskip("pyarrow")
    if engine != "pandas" and pd.__version__.startswith("2."):
        pytest.skip("the engines are checked against the newest pandas and Arrow")
    domain = Domain(
        (
            Column("x", "float", True, lower=-3.0, upper=10.0),
            Column("n", "integer", lower=-3, upper=10),
            Column("b", "boolean"),
            Column("one", "integer", lower=0, upper=1),
        )
    )
    integers = [-3, -1, 0, 0, 1, 2, 3, 5, 8, 9, 9, 10, 10]
    columns = {"x": NUMBERS, "n": integers, "b": [n > 2 for n in integers], "one": [1] * len(NUMBERS)}
    dp = protected(ENGINES[engine](pa.table(columns)), domain).dp
    options = {"epsilon": 10**6, "rng": 1}
    counts = dp.histogram(name, edges, **options)
    weights = dp.histogram(name, edges, weights="one", **options)
    assert weights.index.equals(counts.index)
    assert weights.to_numpy() == pytest.approx(counts.to_numpy(), abs=1e-3)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("engine", ["Polars", "DuckDB", "PyArrow", "Dask"])
def test_weighted_ranks_are_the_same_on_every_engine(engine):
    """With many records and little epsilon, so that windows are narrower than the whole."""
    pa = pytest.importorskip("pyarrow")
    if engine not in ENGINES or pd.__version__.startswith("2."):
        pytest.skip("the engines are checked against the newest pandas and Arrow")
    whole = sample(70_000)
    released = [
        protected(frame).dp.quantile(["x", "y"], [0.25, "1/3"], weights="w", epsilon=800, rng=3)
        for frame in (whole, ENGINES[engine](pa.Table.from_pandas(whole)))
    ]
    pd.testing.assert_frame_equal(*released)


# ---------------------------------------------------------------- errors


@pytest.mark.full
@pytest.mark.parametrize("name", ["sum", "mean", "proportion", "value_counts"])
def test_the_error_of_weighted_numbers_is_the_one_that_is_stated(name):
    whole, many = sample(), 2000
    weighted = whole.dropna(subset=["w"])
    both = weighted.dropna(subset=["x"])
    truth = {
        "sum": (both["w"] * both["x"]).sum(),
        "mean": np.average(both["x"], weights=both["w"]),
        "proportion": np.average(weighted["g"] == "a", weights=weighted["w"]),
        "value_counts": weighted.loc[weighted["g"] == "a", "w"].sum(),
    }[name]
    args = {"sum": ("x",), "mean": ("x",), "proportion": ("g", "a"), "value_counts": ("g",)}[name]
    released = getattr(protected(whole).dp, name)(*args, weights="w", epsilon=many, releases=many, rng=7)
    if name == "value_counts":
        released = released.loc[["a"]]
    off = released.to_numpy()[0] - truth
    single = getattr(protected(whole).dp, name)(*args, weights="w", epsilon=1, rng=7).dp.metadata
    stated = float(np.ravel(single.error["standard_error"])[0])
    # the squares of Laplace noise have a relative deviation of sqrt(5 / many)
    assert np.sqrt(np.mean(off**2)) == pytest.approx(stated, rel=4 * np.sqrt(5 / many) / 2)
    half = float(np.ravel(single.error["plus_minus"])[0])
    assert np.mean(np.abs(off) <= half) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / many)


@pytest.mark.full
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_errors_of_several_weighted_statistics_are_those_that_are_stated(level):
    whole, many = sample(), 2000
    both = whole.dropna(subset=["w", "x"])
    x, w = both["x"].to_numpy(), both["w"].to_numpy()
    truth = np.array([w.sum(), (w * x).sum(), np.average(x, weights=w)])
    dp, call = protected(whole).dp, (["count", "sum", "mean"], ["x"])
    released = dp.agg(*call, weights="w", epsilon=many, releases=many, rng=7)
    off = released.to_numpy() - truth[:, np.newaxis]
    single = dp.agg(*call, weights="w", epsilon=1, rng=7).dp
    stated = np.ravel(single.metadata.error["standard_error"])
    assert np.sqrt(np.mean(off**2, axis=1)) == pytest.approx(stated, rel=4 * np.sqrt(5 / many) / 2)
    ends = single.interval(level)
    half = ((ends["upper"] - ends["lower"]) / 2).to_numpy().ravel()
    covered = np.mean(np.abs(off) <= half[:, np.newaxis], axis=1)
    assert (covered >= level - 4 * np.sqrt(level * (1 - level) / many)).all()
    if level == single.metadata.error["level"]:
        assert covered[0] == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / many))


# ---------------------------------------------------------------- rounding

ROUNDED = Domain(
    (
        Column("x", "float", lower=-20.0, upper=100.0),
        Column("w", "float", lower=0.0, upper=100.0),
        Column("v", "float", lower=0.3, upper=100.0),
        Column("g", "category", categories=("a", "b")),
    )
)


def off_the_grid(kind: str, size: int = 80_000) -> pd.DataFrame:
    """Values and weights whose rounding adds up: half a step of the grids off, or nearly no weight at all."""
    even = np.arange(size) % 2 == 0
    x, w = {
        "values": (np.full(size, 33.3335), np.full(size, 1.0)),
        "weights": (np.full(size, 33.0), np.full(size, 0.7)),
        "small weights": (np.where(even, 100.0, -20.0), np.where(even, 0.00635, 0.0034)),
        "vanishing weights": (np.where(even, 100.0, -20.0), np.where(even, 0.001, 0.0003)),
    }[kind]
    return pd.DataFrame({"x": x, "w": w, "v": np.maximum(w, 0.3), "g": np.where(even, "a", "b")})


LAST_DIGIT = 1e-7
"""The rounding error of sums of floats."""

KINDS = ["values", "weights", "small weights", "vanishing weights"]


def truth_of(frame: pd.DataFrame, name: str, weights: str) -> float:
    product = (frame["x"] * frame[weights]).sum()
    return float(product if name == "sum" else product / frame[weights].sum())


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "weights", "options"),
    [
        ("sum", "w", {"neighbors": "replace_one"}),
        ("sum", "v", {"neighbors": "replace_one"}),
        ("mean", "w", {"neighbors": "replace_one"}),
        ("mean", "v", {"neighbors": "replace_one"}),
        ("mean", "v", {}),
    ],
)
@pytest.mark.parametrize("bounding", [None, "clamp"])
def test_intervals_hold_the_rounding_of_weights_and_values(kind, name, weights, options, bounding):
    """With so little noise that rounding is nearly all of the error."""
    frame = off_the_grid(kind)
    dp = protected(frame, ROUNDED, epsilon=10**12, **options).dp
    request = {"weights": weights, "epsilon": 10**8, "bounding": bounding, "rng": 1}
    released = getattr(dp, name)("x", **request)
    ends = released.dp.interval().iloc[0]
    assert ends["lower"] - LAST_DIGIT <= truth_of(frame, name, weights) <= ends["upper"] + LAST_DIGIT
    assert "rounding_per_record" not in released.dp.metadata.error
    if bounding is not None and name == "sum":  # nothing bounds the sum of a group
        return
    table = getattr(dp.groupby("g"), name)("x", **request)
    for group, part in frame.groupby("g"):
        low, high = (table.dp.interval().loc[group, (end, "x")] for end in ("lower", "upper"))
        assert low - LAST_DIGIT <= truth_of(part, name, weights) <= high + LAST_DIGIT


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("weights", "options"), [("w", {"neighbors": "replace_one"}), ("v", {})])
def test_intervals_of_several_statistics_hold_the_rounding_or_state_it_per_record(kind, weights, options):
    frame = off_the_grid(kind)
    dp = protected(frame, ROUNDED, epsilon=10**12, **options).dp
    released = dp.agg(["mean", "count", "sum"], ["x"], weights=weights, epsilon=10**8, rng=1)
    ends, size = released.dp.interval(), len(frame)
    each = np.ravel(released.dp.metadata.error.get("rounding_per_record", np.zeros(3)))
    assert each[0] == 0  # the least weight is positive, or the number of records is public
    assert (each[1:] > 0).all() == (not options)
    truth = [truth_of(frame, "mean", weights), frame[weights].sum(), truth_of(frame, "sum", weights)]
    for number, true in enumerate(truth):
        low, high = (ends.iloc[number].filter(like=end).iloc[0] for end in ("lower", "upper"))
        more = size * each[number] + LAST_DIGIT
        assert low - more <= true <= high + more


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("by", [None, "g"])
def test_rounding_that_intervals_leave_out_is_stated_per_record(kind, name, by):
    """Where the number of records is private and weights may vanish, no interval can hold it."""
    frame = off_the_grid(kind)
    dp = protected(frame, ROUNDED, epsilon=10**12).dp
    released = getattr(dp if by is None else dp.groupby(by), name)("x", weights="w", epsilon=10**8, rng=1)
    each = released.dp.metadata.error["rounding_per_record"]
    assert "not of rounding, at most " in repr(released.dp)
    groups = [frame] if by is None else [part for _, part in frame.groupby(by)]
    half = np.broadcast_to(released.dp.metadata.error["plus_minus"], np.shape(released)).ravel()
    for part, number, own in zip(groups, np.ravel(released.to_numpy()), half, strict=True):
        size = len(part) * each / (1 if name == "sum" else part["w"].sum())
        assert abs(number - truth_of(part, name, "w")) <= own + size


def test_whole_weights_are_not_rounded():
    domain = Domain((Column("x", "integer", lower=-5, upper=9), Column("w", "integer", lower=0, upper=4)))
    frame = pd.DataFrame({"x": [1, 2, 9], "w": [0, 1, 4]})
    for name in ("sum", "mean"):
        released = getattr(protected(frame, domain).dp, name)("x", weights="w", epsilon=10**6, rng=1)
        assert "rounding_per_record" not in released.dp.metadata.error


# ---------------------------------------------------------------- the design effect


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 3.0), (0.5, 3.0), (2.0, 2.5)])
def test_the_effective_number_is_never_above_the_one_of_kish(lower, upper):
    weight = weight_of(Column("w", "float", lower=lower, upper=upper), "mean")
    for size in (2, 3, 7, 50):
        for upper_count in range(size + 1):
            w = np.array([upper] * upper_count + [lower] * (size - upper_count))
            if w.sum() >= upper:
                kish = w.sum() ** 2 / (w**2).sum()
                assert effective_rows(w.sum(), weight) <= kish * (1 + 1e-12)
                # weights at the two bounds are the worst where the number of records is known
                assert effective_rows(w.sum(), weight, size) == pytest.approx(kish)
        for seed in range(20):
            w = np.random.default_rng(seed).uniform(lower, upper, size)
            if w.sum() >= upper:
                for rows in (0, size):
                    assert effective_rows(w.sum(), weight, rows) <= w.sum() ** 2 / (w**2).sum() * (1 + 1e-12)


def survey(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """Records whose values do not depend on their weights, a fifth of which are thirty times the others."""
    x = rng.uniform(0, 1, size)
    return pd.DataFrame({"x": x, "w": rng.choice([0.1, 3.0], size, p=[0.8, 0.2]), "big": x > 0.5})


SURVEY = Domain(
    (
        Column("x", "float", lower=-1.0, upper=2.0),
        Column("w", "float", lower=0.0, upper=3.0),
        Column("big", "boolean"),
    )
)


@pytest.mark.full
@pytest.mark.parametrize("name", ["mean", "proportion", "value_counts"])
def test_intervals_for_the_population_hold_the_design_effect(name):
    """There are 200 samples; intervals by the number of records would hold far less often."""
    rng, times, size = np.random.default_rng(11), 200, 500
    case = {
        "mean": (("x",), {}, {"variance": 1 / 12}),
        "proportion": (("big", True), {}, {}),
        "value_counts": (("big",), {"normalize": True, "sort": False}, {}),
    }[name]
    args, words, known = case
    hits = {"effective": 0, "records": 0}
    for seed in range(times):
        dp = protected(survey(rng, size), SURVEY).dp
        released = getattr(dp, name)(*args, weights="w", epsilon=50, rng=seed, **words)
        for kind, rows in (("effective", None), ("records", size)):
            last = pdprivacy.combine(released, rows=rows, **known).iloc[-1]
            hits[kind] += last["lower"] <= 0.5 <= last["upper"]
    assert hits["effective"] / times >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / times)
    assert hits["records"] / times < 0.8


def test_a_released_sum_of_squares_gives_the_effective_number_itself():
    private = protected(survey(np.random.default_rng(3), 2000), SURVEY)
    mean = private.dp.mean("x", weights="w", epsilon=50, rng=1)
    sums = private.assign(w2="w * w").dp.sum(["w", "w2"], epsilon=50, rng=2)
    effective = float(sums["w"] ** 2 / sums["w2"])
    assert mean.dp.metadata.effective_rows <= effective * 1.01
    narrower = pdprivacy.combine(mean, rows=effective, variance=1 / 12)
    assert narrower["variance"].iloc[0] == pytest.approx(1 / 12 / effective, rel=0.05)


CELLS = Domain(
    (
        Column("w", "float", lower=0.0, upper=1.0),
        Column("g", "category", categories=("a", "b", "c")),
        Column("h", "category", categories=("p", "q")),
    )
)


def cells(size: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    g = rng.choice(np.array(["a", "b", "c"], dtype=object), size, p=[0.7, 0.2, 0.1])
    h = rng.choice(np.array(["p", "q"], dtype=object), size)
    return pd.DataFrame({"w": rng.uniform(0, 1, size), "g": g, "h": h})


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize(("normalize", "by"), [("index", "g"), ("columns", "h")])
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
def test_shares_of_a_row_or_a_column_have_its_own_effective_number(margins, normalize, by, bounding):
    frame = cells(3000)
    dp = protected(frame, CELLS).dp
    options = {"normalize": normalize, "margins": margins, "bounding": bounding, "epsilon": 10**5, "rng": 1}
    table = dp.crosstab("g", "h", weights="w", **options)
    actual = pd.DataFrame(table.dp.metadata.effective_rows, index=table.index, columns=table.columns)
    sums = frame.groupby(by)["w"].sum()
    if margins:
        sums["All"] = frame["w"].sum()
    expected = actual.copy()
    for label, total in sums.items():
        # weights from 0 to 1: the least effective number of a sum is the sum
        expected.loc[label if by == "g" else slice(None), slice(None) if by == "g" else label] = total
    np.testing.assert_allclose(actual, expected, rtol=1e-3)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("margins", [False, True])
def test_numbers_of_a_whole_table_have_its_effective_number(normalize, margins):
    frame = cells(3000)
    options = {"normalize": normalize, "margins": margins, "epsilon": 10**5, "rng": 1}
    table = protected(frame, CELLS).dp.crosstab("g", "h", weights="w", **options)
    assert table.dp.metadata.effective_rows == pytest.approx(frame["w"].sum(), rel=1e-3)


def test_the_effective_number_is_at_most_the_public_number_of_rows():
    """However large the noise is."""
    frame = cells(20)
    private = protected(frame.assign(w=1.0), CELLS, neighbors="replace_one")
    largest = 0.0
    for seed in range(40):
        for released in (
            private.dp.proportion("g", "a", weights="w", epsilon=0.1, rng=seed),
            private.dp.groupby("h").proportion("g", "a", weights="w", epsilon=0.1, rng=seed),
            private.dp.value_counts("g", weights="w", normalize=True, epsilon=0.1, rng=seed),
            private.dp.crosstab("g", "h", weights="w", normalize="index", epsilon=0.1, rng=seed),
        ):
            rows = np.ravel(released.dp.metadata.effective_rows)
            assert ((rows >= 1) & (rows <= 20)).all()
            largest = max(largest, *rows)
    assert largest == 20


@pytest.mark.full
@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
def test_bounded_cells_do_not_raise_the_effective_number(bounding):
    """A thousand cells, nearly all of them empty, that noise and bounds raise above 0."""
    domain = Domain(
        (Column("g", "integer", lower=0, upper=999), Column("w", "float", lower=0.0, upper=1.0)),
    )
    rng, size, effective = np.random.default_rng(4), 100, []
    for seed in range(40):
        frame = pd.DataFrame({"g": (rng.random(size) < 0.5).astype(int), "w": 1.0})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.BoundingWarning)
            released = protected(frame, domain).dp.value_counts(
                "g", weights="w", normalize=True, epsilon=10, bounding=bounding, rng=seed
            )
        effective.append(released.dp.metadata.effective_rows)
    assert np.mean(effective) <= size + 4 * np.std(effective) / np.sqrt(len(effective))
    assert np.mean(effective) >= 0.9 * size


def test_truncated_cells_start_at_0():
    """No sum of weights is below 0, so that noise has an open side from 0 on."""
    column = Column("k", "category", categories=("a", "b"))
    weight = weight_of(Column("w", "float", lower=0, upper=8), "value_counts")
    for neighbors in ("add_remove", "replace_one"):
        rows = None if neighbors == "add_remove" else 10
        (part,) = WeightedCells((column,), Scope(neighbors, rows), "value_counts", weight).parts
        assert (part.lower, part.upper) == (0, None)


def test_metadata_say_the_weights_and_no_public_number_of_rows():
    private = protected(survey(np.random.default_rng(3), 50), SURVEY, neighbors="replace_one")
    weighted, plain = (private.dp.mean("x", epsilon=1, weights=column) for column in ("w", None))
    assert (weighted.dp.metadata.weights, plain.dp.metadata.weights) == ("w", None)
    assert (weighted.dp.metadata.rows, plain.dp.metadata.rows) == (None, 50)
    assert plain.dp.metadata.effective_rows is None
    assert "mean of x weighted by w" in private.dp.budget.entries.to_string()
    with pytest.raises(ParameterError, match="different statistics"):
        pdprivacy.combine([weighted, plain])


# ---------------------------------------------------------------- refusals, before anything is charged

BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda dp: dp.sum("y", weights="x", epsilon=1), DeclarationError, "numbers of at least 0"),
    (lambda dp: dp.sum("y", weights="y", epsilon=1), ParameterError, "both as a value and as its weights"),
    (lambda dp: dp.mean("y", weights=["w"], epsilon=1), ParameterError, "label of one declared column"),
    (lambda dp: dp.mean("y", weights="g", epsilon=1), DeclarationError, "needs the bounds"),
    (lambda dp: dp.mean("y", weights="none", epsilon=1), DeclarationError, "not declared"),
    (lambda dp: dp.value_counts("g", weights="x", epsilon=1), DeclarationError, "numbers of at least 0"),
    (
        lambda dp: dp.value_counts("g", weights="w", constraint="rescale", epsilon=1),
        ParameterError,
        "sum of the weights, which is private",
    ),
    (
        lambda dp: dp.crosstab("g", "y", weights="w", constraint="hierarchy", epsilon=1),
        ParameterError,
        "not for sums of weights",
    ),
    (
        lambda dp: dp.value_counts("g", weights="w", mechanism="discrete_gaussian", delta=1e-6, epsilon=1),
        ParameterError,
        "is for counts",
    ),
    (lambda dp: dp.count("x", weights="w", epsilon=1), ParameterError, "all records, not of columns"),
    (lambda dp: dp.quantile("y", [0, 0.5], weights="w", epsilon=1), ParameterError, "above 0 and below 1"),
    (lambda dp: dp.quantile("y", [0.5, 0.12345], weights="w", epsilon=1), ParameterError, "at most 16383"),
    (lambda dp: dp.quantile("y", 0.1234567, weights="w", epsilon=1), ParameterError, 'q="10/81"'),
    (lambda dp: dp.quantile("y", 0.99999, weights="w", epsilon=1), ParameterError, 'q="16382/16383"'),
    (
        lambda dp: dp.groupby("g").quantile("y", weights="w", epsilon=1),
        ArgumentError,
        "unexpected keyword argument 'weights'",
    ),
    (lambda dp: dp.groupby("g").count(weights="g", epsilon=1), ParameterError, "both as a value"),
    (lambda dp: dp.groupby("y").mean("x", weights="y", epsilon=1), ParameterError, "both as a value"),
]


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("position", range(len(BAD)))
def test_invalid_weights_are_refused_before_a_charge(position, neighbors):
    call, kind, message = BAD[position]
    private = protected(UNIVERSE.take([0, 3]).reset_index(drop=True), neighbors=neighbors)
    with pytest.raises(kind, match=message):
        call(private.dp)
    assert float(private.dp.budget.spent[0]) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda dp: dp.sum(weights="w", epsilon=1),
        lambda dp: dp.mean(weights="w", epsilon=1),
        lambda dp: dp.quantile(weights="w", epsilon=1),
        lambda dp: dp.groupby("g").sum(weights="w", epsilon=1),
        lambda dp: dp.groupby("g").mean(weights="w", epsilon=1),
    ],
)
def test_no_other_column_than_the_weights_is_told_before_a_charge(call):
    private = protected(cells(5), CELLS)
    with pytest.raises(DeclarationError, match="no declared column with bounds beside its weights, 'w'"):
        call(private.dp)
    assert float(private.dp.budget.spent[0]) == 0
    assert private.dp.count(weights="w", epsilon=10**5, rng=1)["rows"] == pytest.approx(
        cells(5)["w"].sum(), abs=1e-3
    )


def test_no_other_column_than_the_keys_is_told_before_a_charge():
    domain = Domain((Column("n", "integer", lower=0, upper=3), Column("g", "category", categories=("a",))))
    private = protected(pd.DataFrame({"n": [1, 2], "g": ["a", "a"]}), domain)
    with pytest.raises(DeclarationError, match="no declared column with bounds beside the keys, 'n'"):
        private.dp.groupby("n").mean(epsilon=1)
    assert float(private.dp.budget.spent[0]) == 0


def test_a_weighted_quantile_is_of_all_records_and_of_no_end():
    statistic = choice(Fraction(1, 2), "add_remove")
    for wrong in ({"keys": (POINTS,)}, {"end": "lower"}):
        with pytest.raises(ParameterError, match="Weighted quantiles are offered for all records"):
            replace(statistic, **wrong)


@pytest.mark.parametrize("q", [0.1234, "1/16383", "16382/16383"])
def test_a_quantile_of_many_digits_weighs_by_weights_far_below_the_largest(q):
    """Weights of a two-thousandth of the largest, all at one value."""
    domain = Domain(
        (Column("x", "float", lower=0.0, upper=1.0), Column("w", "float", lower=0.0, upper=3000.0))
    )
    frame = pd.DataFrame({"x": np.full(10**5, 0.25), "w": 1.5})
    released = protected(frame, domain).dp.quantile("x", q, weights="w", epsilon=10**8, rng=1)
    assert float(released["x"]) == pytest.approx(0.25, abs=1e-6)


def test_all_columns_leave_out_the_weights():
    released = protected(sample()).dp.sum(weights="w", epsilon=1, rng=1)
    assert released.index.tolist() == ["x", "y", "v", "u"]


def test_sums_of_weights_are_floats_without_a_disclosure_risk():
    domain = Domain(
        tuple(
            Column(c.name, c.kind, c.nullable, c.lower, c.upper, c.categories, c.bins, role)
            for c, role in zip(
                DOMAIN.columns, (None, "sensitive", None, None, "quasi_identifier", None), strict=True
            )
        )
    )
    private = protected(sample(), domain)
    plain, weighted = (
        private.dp.crosstab("g", "y", epsilon=1, rng=1, weights=weights) for weights in (None, "w")
    )
    assert plain.dp.metadata.dr_ha is not None
    assert weighted.dp.metadata.dr_ha["by_records"] is None
    assert "weights" in weighted.dp.metadata.dr_ha["reason"]
    assert (weighted.dtypes == np.float64).all()
    assert weighted.dp.metadata.mechanism == "laplace"
    assert weighted.dp.metadata.sensitivity == 3.0


@pytest.mark.parametrize("constraint", ["rescale", "simplex", "all_but_one"])
def test_shares_of_weights_can_be_made_consistent(constraint):
    released = protected(sample()).dp.crosstab(
        "g", "y", weights="w", normalize=True, constraint=constraint, epsilon=1, rng=1
    )
    assert released.to_numpy().sum() == pytest.approx(1)
    assert (released.to_numpy() >= 0).all()


def test_shares_of_small_weights_are_not_drawn_to_zero():
    """A total below one record is no total of nothing where a record weighs a thousandth."""
    domain = Domain(
        (Column("w", "float", lower=0.0, upper=1e-3), Column("g", "category", categories=("a", "b")))
    )
    frame = pd.DataFrame({"w": [1e-3] * 400, "g": ["a", "b"] * 200})
    dp = protected(frame, domain).dp
    shares = dp.value_counts("g", weights="w", normalize=True, epsilon=10**5, rng=1)
    assert shares.to_numpy() == pytest.approx([0.5, 0.5], abs=1e-3)
    assert float(dp.proportion("g", "a", weights="w", epsilon=10**5, rng=1).iloc[0]) == pytest.approx(
        0.5, abs=1e-3
    )


def test_plans_state_the_errors_that_releases_have():
    private = protected(sample())
    planned = private.dp.plan.sum("x", weights="w", epsilon=0.5, rows=4000)
    released = private.dp.sum("x", weights="w", epsilon=0.5, rng=1)
    assert planned["plus_minus"].iloc[0] == pytest.approx(released.dp.metadata.error["plus_minus"])
    planned = private.dp.plan.mean("x", weights="w", epsilon=0.5, rows=len(sample().dropna()), at=3.5)
    released = private.dp.mean("x", weights="w", epsilon=0.5, rng=1)
    assert planned["rmse"].iloc[0] == pytest.approx(released.dp.metadata.error["standard_error"], rel=0.15)


@pytest.mark.parametrize("bounding", ["clamp", "truncated"])
def test_bounded_means_stay_within_their_bounds(bounding, full):
    frame = sample().head(20)
    for seed in range(30 if full else 10):
        dp = protected(frame).dp
        means = dp.mean(["x", "y"], weights="w", epsilon=0.01, bounding=bounding, rng=seed)
        assert means.between([-3.0, 2.0], [10.0, 9.0]).all()
        assert (dp.value_counts("g", weights="w", epsilon=0.01, bounding=bounding, rng=seed) >= 0).all()


def test_several_weighted_statistics_are_sums_and_means_alone():
    frame = sample(200)
    private = protected(frame)
    dp, groups, options = private.dp, private.dp.groupby("g"), {"weights": "w", "epsilon": 1}
    for call in (
        lambda: dp.agg(["mean", "std"], "x", **options),
        lambda: dp.agg("var", "x", **options),
        lambda: dp.agg("max", "x", **options),
        lambda: dp.agg(["min", "median"], "x", **options),
        lambda: dp.agg(["mean"], ["x", "w"], **options),
        lambda: dp.agg({"x": "mean", "w": "sum"}, **options),
        lambda: groups.agg(["std"], "x", **options),
        lambda: groups.agg("median", "x", **options),
        lambda: groups.agg(s=("x", "std"), **options),
        lambda: groups.agg(n=("y", "size"), **options),
        lambda: groups.agg(["mean"], "x", weights="g", epsilon=1),
    ):
        with pytest.raises((ParameterError, DeclarationError)):
            call()
    assert private.dp.budget.spent == (0, 0)
    released = dp.agg("median", "y", **options, rng=1)
    assert released.equals(dp.median("y", **options, rng=1))
    assert dp.agg("mean", "y", **options, rng=1).equals(dp.mean("y", **options, rng=1))
    counts = dp.agg("count", ["y"], **options)
    assert counts.dp.metadata.weights == "w"
    with pytest.raises(ParameterError, match="sampling variance"):
        pdprivacy.combine(dp.agg(["mean", "sum"], ["x"], **options))
    plan = dp.plan.agg(["count", "sum"], "x", weights="w", epsilon=1, rows=200)
    own = dp.agg(["count", "sum"], ["x"], **options).dp.metadata.error["standard_error"]
    assert plan["rmse"].to_list() == pytest.approx(np.ravel(own).tolist())
