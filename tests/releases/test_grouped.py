"""Grouped and aggregated statistics: shapes of pandas, one charge, sensitivities, intervals that cover."""

from __future__ import annotations

import builtins
import itertools
from dataclasses import FrozenInstanceError
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain, sensitivity
from pdprivacy.core.engines import PandasEngine
from pdprivacy.core.statistics import Quantile, RankGrid, Scope
from pdprivacy.core.statistics.counts import Distinct
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import (
    DeclarationError,
    OpaqueFrameError,
    ParameterError,
    PrivacyError,
    TableTooLargeError,
)
from tests.support.neighbours import losses_of

SIZE = 600
rng = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "age": rng.integers(20, 80, SIZE).astype(float),
        "pay": rng.uniform(10, 90, SIZE),
        "region": rng.choice(["north", "south", "west"], SIZE),
        "ill": rng.random(SIZE) < 0.3,
        "grade": rng.choice(["a", "b", "b", None], SIZE),
    }
)
FRAME.loc[::20, "age"] = np.nan
DOMAIN = Domain(
    (
        Column("age", "float", True, lower=0, upper=100),
        Column("pay", "float", lower=0, upper=100),
        Column("region", "category", categories=("north", "south", "west")),
        Column("ill", "boolean"),
        Column("grade", "category", True, categories=("a", "b", "c")),
    )
)
NUMBERS = ["age", "pay"]
EXACT = {"epsilon": 10**6, "rng": 1}


@pytest.fixture
def private():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10**9)


def same(actual, expected, tolerance=1e-2):
    """Whether a nearly exact release has the labels of pandas in its order, and its numbers."""
    assert list(actual.index) == list(expected.index)
    assert list(actual.index.names) == list(expected.index.names)
    if isinstance(actual, pd.DataFrame):
        assert list(actual.columns) == list(expected.columns)
        assert list(actual.columns.names) == list(expected.columns.names)
    np.testing.assert_allclose(
        actual.to_numpy(np.float64), expected.to_numpy(np.float64), rtol=tolerance, atol=tolerance
    )
    assert actual.dp.verify()


# ---------------------------------------------------------------- shapes and numbers of pandas

GROUPED = {
    "std": (lambda g: g.std(NUMBERS, **EXACT), lambda g: g[NUMBERS].std()),
    "selected": (lambda g: g[["pay"]].std(**EXACT), lambda g: g[["pay"]].std()),
    "describe": (
        lambda g: g.describe(NUMBERS, **EXACT),
        lambda g: g[NUMBERS].agg(["count", "mean", "std"]),
    ),
    "agg by name": (lambda g: g.agg("var", NUMBERS, **EXACT), lambda g: g[NUMBERS].var()),
    "agg of a list": (
        lambda g: g.agg(["sum", "mean", "count", "std"], NUMBERS, **EXACT),
        lambda g: g[NUMBERS].agg(["sum", "mean", "count", "std"]),
    ),
    "agg of one in a list": (
        lambda g: g.agg(["sum"], NUMBERS, **EXACT),
        lambda g: g[NUMBERS].agg(["sum"]),
    ),
    "agg of a mapping": (
        lambda g: g.agg({"pay": "sum", "age": "count"}, **EXACT),
        lambda g: g.agg({"pay": "sum", "age": "count"}),
    ),
    "agg of a mapping to lists": (
        lambda g: g.agg({"pay": ["sum", "var"], "age": ["mean"]}, **EXACT),
        lambda g: g.agg({"pay": ["sum", "var"], "age": ["mean"]}),
    ),
    "value_counts": (lambda g: g.value_counts("ill", **EXACT), lambda g: g["ill"].value_counts()),
    "value_counts, shares": (
        lambda g: g["ill"].value_counts(normalize=True, **EXACT),
        lambda g: g["ill"].value_counts(normalize=True),
    ),
    "median": (lambda g: g.median("age", **EXACT), lambda g: g[["age"]].median()),
    "quantile": (
        lambda g: g.quantile(NUMBERS, 0.25, **EXACT),
        lambda g: g[NUMBERS].quantile(0.25, interpolation="lower"),
    ),
    "quantiles": (
        lambda g: g.quantile("age", [0.1, 0.9], **EXACT),
        lambda g: g[["age"]].quantile([0.1, 0.9]),
    ),
}


@pytest.mark.parametrize("keys", ["region", ["region", "ill"]], ids=str)
@pytest.mark.parametrize("name", GROUPED)
def test_groups_are_shaped_as_those_of_pandas(private, name, keys):
    release, reference = GROUPED[name]
    if "value_counts" in name and isinstance(keys, list):
        keys = ["region"]
    # between two records any number is a quantile, and 1e-2 of a year is not what they are apart
    tolerance = 2.5 if "quantile" in name or "median" in name else 1e-2
    same(release(private.dp.groupby(keys)), reference(FRAME.groupby(keys)), tolerance)


ONE_COLUMN = {
    "sum": (lambda g: g.sum(**EXACT), lambda g: g.sum()),
    "mean": (lambda g: g.mean(**EXACT), lambda g: g.mean()),
    "std": (lambda g: g.std(**EXACT), lambda g: g.std()),
    "median": (lambda g: g.median(**EXACT), lambda g: g.median()),
    "quantiles": (lambda g: g.quantile(q=[0.1, 0.9], **EXACT), lambda g: g.quantile([0.1, 0.9])),
    "min": (lambda g: g.min(**EXACT), lambda g: g.min()),
    "max": (lambda g: g.max(**EXACT), lambda g: g.max()),
    "agg by name": (lambda g: g.agg("var", **EXACT), lambda g: g.agg("var")),
    "agg of a list": (lambda g: g.agg(["sum", "mean"], **EXACT), lambda g: g.agg(["sum", "mean"])),
    "size": (lambda g: g.size(**EXACT), lambda g: g.size()),
}


@pytest.mark.parametrize("keys", ["region", ["region", "ill"]], ids=str)
@pytest.mark.parametrize("name", ONE_COLUMN)
def test_releases_of_one_selected_column_are_those_of_a_series_of_pandas(private, name, keys):
    release, reference = ONE_COLUMN[name]
    released, expected = release(private.dp.groupby(keys)["pay"]), reference(FRAME.groupby(keys)["pay"])
    assert type(released) is type(expected)
    if name != "size":
        assert getattr(released, "name", None) == getattr(expected, "name", None)
    same(released, expected, 3.5 if name in ("median", "quantiles", "min", "max") else 1e-2)
    if name not in ("median", "quantiles", "min", "max"):
        assert len(released.dp.interval()) == len(expected)
    assert "by region" in repr(released.dp)


def test_one_column_in_a_list_stays_a_frame_with_the_same_numbers(private):
    groups = private.dp.groupby("region")
    for name in ("sum", "mean", "var", "median", "min"):
        of_list, of_label = (getattr(groups[own], name)(epsilon=1, rng=3) for own in (["pay"], "pay"))
        pd.testing.assert_series_equal(of_list["pay"], of_label, check_names=False)
        errors = [released.dp.metadata.error.get("standard_error") for released in (of_list, of_label)]
        np.testing.assert_array_equal(*(np.ravel(np.array(error, float)) for error in errors))
    several = groups["pay"].mean(epsilon=1, releases=2, rng=3)
    assert several.columns.names == ["release"]
    assert len(pdprivacy.combine(several, within=0)) == 3
    bounded = groups["pay"].sum(epsilon=1, bounding="clamp", rng=3)
    assert bounded.dp.metadata.error["worst_case"]["bias"] is not None


def test_dates_of_one_column_by_group_are_dates():
    flag, within = {"metadata": {"dp": {}}}, pa.Check.in_range("1989-01-01", "1991-01-01")
    schema = pa.DataFrameSchema(
        {"when": pa.Column("datetime64[ns]", within, **flag), "ill": pa.Column(bool, **flag)}
    )
    dates = pd.date_range("1990-01-01", periods=40).as_unit("ns")
    frame = pd.DataFrame({"when": dates, "ill": [True, False] * 20})
    groups = pdprivacy.protect(frame, schema, epsilon=10**9).dp.groupby("ill")["when"]
    for released in (groups.mean(**EXACT), groups.median(**EXACT), groups.max(**EXACT)):
        assert released.dtype.kind == "M"
        assert released.between("1989-12-01", "1990-03-01").all()
    assert groups.mean(epsilon=1, rng=1).dp.interval()["lower"].dtype.kind == "M"


def test_numbers_of_labels_by_group_are_those_of_pandas(private):
    released = private.dp.groupby("region").nunique(["ill", "grade"], **EXACT)
    pd.testing.assert_frame_equal(released, FRAME.groupby("region")[["ill", "grade"]].nunique())
    of_one = private.dp.groupby(["region", "ill"])["grade"].nunique(**EXACT)
    pd.testing.assert_series_equal(of_one, FRAME.groupby(["region", "ill"])["grade"].nunique())


def test_weights_of_labels_by_group_are_sums(private):
    released = private.dp.groupby("region").value_counts("ill", weights="pay", sort=False, **EXACT)
    expected = FRAME.groupby(["region", "ill"])["pay"].sum()
    np.testing.assert_allclose(released, expected, rtol=1e-3)
    median = private.dp.median("age", weights="pay", epsilon=10**5, rng=1)
    known = FRAME.dropna(subset="age").sort_values("age")
    middle = known["age"][known["pay"].cumsum() >= known["pay"].sum() / 2].iloc[0]
    assert median["age"] == pytest.approx(middle, abs=1)


def test_groups_take_no_attribute(private):
    groups = private.dp.groupby("region")
    for name in ("keys", "rows"):
        with pytest.raises(FrozenInstanceError):
            setattr(groups, name, ())


def test_quantiles_of_groups_lie_between_the_records_around_the_rank(private):
    quantiles = private.dp.groupby("region").quantile("pay", [0.25, 0.5], **EXACT)["pay"]
    for (region, q), value in quantiles.items():
        records = np.sort(FRAME.loc[FRAME["region"] == region, "pay"])
        rank = q * len(records)
        assert abs(np.searchsorted(records, value) - rank) <= 1, (region, q)


def test_modes_of_groups_are_the_labels_with_the_most_records(private):
    modes = private.dp.groupby("region").mode(["grade", "ill"], **EXACT)
    expected = FRAME.groupby("region")[["grade", "ill"]].agg(lambda cells: cells.mode()[0])
    assert modes.to_numpy().tolist() == expected.to_numpy().tolist()
    assert list(modes.index) == list(expected.index)


def test_proportions_of_groups_are_means_of_an_indicator(private):
    shares = private.dp.groupby("region").proportion("grade", "b", **EXACT)
    known = FRAME.dropna(subset="grade")
    expected = (known["grade"] == "b").groupby(known["region"]).mean().to_frame("b")
    same(shares, expected.rename_axis(columns="grade"))
    assert shares.dp.metadata.statistic == "proportion"


def test_null_labels_of_groups_can_be_left_out(private):
    groups = private.dp.groupby("region")
    whole = groups.value_counts("grade", sort=False, **EXACT)
    known = groups.value_counts("grade", sort=False, dropna=True, **EXACT)
    assert whole.index.get_level_values("grade").isna().sum() == 3
    assert known.equals(whole[whole.index.get_level_values("grade").notna()])
    shares = groups.value_counts("grade", normalize=True, dropna=True, **EXACT)
    np.testing.assert_allclose(shares.groupby(level="region").sum(), 1.0, atol=1e-3)


def test_every_declared_group_is_there_with_or_without_records(private):
    groups = private.dp.groupby(["grade", "ill"])
    for table in (
        groups.std("pay", epsilon=1),
        groups.agg(["mean", "sum"], "pay", epsilon=1),
        groups.median("pay", epsilon=1),
        groups.mode("region", epsilon=1),
    ):
        assert len(table) == 8  # a, b, c and null, by two
    assert groups.value_counts("region", epsilon=1).size == 24


def test_aggregates_of_the_frame_are_shaped_as_those_of_pandas(private):
    numbers = FRAME[NUMBERS]
    for func in (
        "mean",
        ["mean"],
        ["mean", "std", "sum", "count", "var"],
        {"age": "mean", "pay": "std"},
        {"age": "count", "pay": "sum"},
        {"age": ["mean", "sum"], "pay": ["var", "sum"]},
    ):
        columns = None if isinstance(func, dict) else NUMBERS
        table = private.dp.agg(func, columns, **EXACT)
        expected = numbers.agg(func)
        if isinstance(func, dict) and isinstance(expected, pd.DataFrame):
            expected = expected.reindex(table.index)  # pandas orders such rows by release
        same(table, expected)


@pytest.mark.parametrize(
    "words",
    [
        {"values": "pay", "index": "region", "columns": "ill"},
        {"values": "pay", "index": "region", "columns": ["ill", "grade"], "aggfunc": "count"},
        {"values": ["age", "pay"], "index": "region", "columns": "ill", "aggfunc": "sum"},
        {"values": "pay", "index": "region", "columns": "ill", "aggfunc": ["mean", "count"]},
        {"values": ["age", "pay"], "index": ["region", "ill"], "aggfunc": ["std", "sum"]},
        {"values": "pay", "index": "region"},
    ],
    ids=str,
)
def test_pivot_tables_are_shaped_as_those_of_pandas(words):
    frame = FRAME.assign(grade=FRAME["grade"].fillna("c"))
    domain = DOMAIN.replace(Column("grade", "category", categories=("a", "b", "c")))
    private = pdprivacy.protect(frame, domain, epsilon=10**9)
    table = private.dp.pivot_table(**words, **EXACT)
    same(table, pd.pivot_table(frame, **words))
    kinds = words.get("aggfunc", "mean")
    assert table.dp.metadata.statistic == (kinds if isinstance(kinds, str) else "agg")


def test_a_pivot_table_is_the_grouped_statistic_unstacked(private):
    table = private.dp.pivot_table("pay", "region", "grade", "sum", epsilon=1, rng=3)
    groups = private.dp.groupby(["region", "grade"]).sum("pay", epsilon=1, rng=3)
    assert table.to_numpy().ravel().tolist() == groups["pay"].tolist()
    for name in ("standard_error", "lower", "upper"):
        of_table, of_groups = (x.dp.interval()[name].to_numpy().ravel() for x in (table, groups))
        np.testing.assert_allclose(of_table, of_groups)
    assert table.dp.metadata.scale == groups.dp.metadata.scale


def test_numbers_of_labels_are_those_of_pandas(private):
    counts = private.dp.nunique(["region", "grade", "ill"], **EXACT)
    same(counts, FRAME[["region", "grade", "ill"]].nunique())
    assert counts.dtype == np.int64


# ---------------------------------------------------------------- one charge

CALLS = {
    "groupby std": lambda dp: dp.groupby("region").std(NUMBERS, epsilon=0.5),
    "groupby describe": lambda dp: dp.groupby("region").describe(epsilon=0.5),
    "groupby agg": lambda dp: dp.groupby("region").agg(["mean", "std"], epsilon=0.5),
    "groupby quantile": lambda dp: dp.groupby("region").quantile("pay", [0.1, 0.9], epsilon=0.5),
    "groupby mode": lambda dp: dp.groupby("region").mode(["ill", "grade"], epsilon=0.5),
    "groupby value_counts": lambda dp: dp.groupby("region").value_counts("ill", epsilon=0.5),
    "agg": lambda dp: dp.agg({"age": ["mean", "sum"], "pay": ["std"]}, epsilon=0.5),
    "pivot_table": lambda dp: dp.pivot_table("pay", "region", "ill", ["mean", "std"], epsilon=0.5),
    "nunique": lambda dp: dp.nunique(["ill", "grade"], epsilon=0.5),
}


@pytest.mark.parametrize("words", [{}, {"neighbors": "replace_one"}], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_charged_once_whatever_it_is_made_of(name, words):
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=1, **words)
    released = CALLS[name](private.dp)
    assert private.dp.budget.spent == (0.5, 0)
    assert len(private.dp.budget.entries) == 1
    assert released.dp.metadata.epsilon == 0.5
    assert sum(released.dp.metadata.split.values()) == pytest.approx(1)


def test_statistics_of_the_same_noisy_numbers_share_them(private):
    groups = private.dp.groupby("region")
    alone = groups.std(NUMBERS, epsilon=1, rng=4)
    three = groups.agg(["mean", "var", "std"], NUMBERS, epsilon=1, rng=4)
    assert alone.dp.metadata.scale == three.dp.metadata.scale
    assert alone["pay"].tolist() == three["pay", "std"].tolist()
    np.testing.assert_allclose(three["pay", "var"].clip(lower=0) ** 0.5, three["pay", "std"])
    with_sum = groups.agg(["mean", "sum"], "pay", epsilon=1).dp.metadata.split
    assert with_sum == {"count": 1 / 3, "sum of pay": 1 / 3, "centred sum of pay": pytest.approx(1 / 3)}


def test_split_is_shares_of_columns():
    private = pdprivacy.protect(FRAME, DOMAIN, epsilon=10)
    split = private.dp.agg(["sum"], NUMBERS, epsilon=1, split={"age": 3, "pay": 1}).dp.metadata.split
    assert split == {"sum of age": 0.75, "sum of pay": 0.25}


# ---------------------------------------------------------------- sensitivities

LETTERS = ("a", "b", "c")
CELLS = (*LETTERS, None)


@cache
def occurring(*cells):
    """The number of labels in a table of one column, by the engine."""
    column = Column("x", "category", True, categories=LETTERS)
    statistic = Distinct((column,), (Fraction(1),), Scope("add_remove", None))
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    ((number,),) = statistic.exact([read.on(PandasEngine(frame)) for read in statistic.reads])
    return number


def tables(most):
    return [
        list(records)
        for size in range(most + 1)
        for records in itertools.combinations_with_replacement(CELLS, size)
    ]


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_number_of_labels_moves_as_far_as_is_stated(neighbors, most):
    """Over all tables of up to three records, and all units of up to ``most`` records."""
    column = Column("x", "category", True, categories=LETTERS)
    (part,) = Distinct((column,), (Fraction(1),), Scope(neighbors, None, contribution=most)).parts
    numbers, moved = {}, 0
    for table in tables(3):
        for unit in tables(min(most, 3)):
            numbers[tuple(map(str, [*table, *unit]))] = number = occurring(*table, *unit)
            if neighbors == "add_remove":
                moved = max(moved, abs(number - occurring(*table)))
        if neighbors == "replace_one":
            # a unit is replaced by one with as many records
            for size in range(min(most, 3) + 1):
                counts = [
                    occurring(*table, *unit) for unit in itertools.combinations_with_replacement(CELLS, size)
                ]
                moved = max(moved, max(counts) - min(counts))
    assert moved == part.l1 == min(most * sensitivity.nunique(neighbors=neighbors), len(LETTERS))


GROUPS = Domain(
    (
        Column("x", "integer", True, lower=-1, upper=4, bins=(-1, 1, 3, 4)),
        Column("w", "integer", lower=0, upper=3),
        Column("g", "category", True, categories=("u", "v")),
        Column("s", "category", True, categories=("no", "yes")),
    )
)
RECORDS = list(itertools.product([0, 2, 3, None], ["u", "v", None], ["yes", None]))[::2]
SELECTIONS = {
    "median": lambda dp: dp.groupby("g").median("x", epsilon=1, rng=2),
    "quantiles": lambda dp: dp.groupby("g").quantile("x", [0, 0.2, 1], epsilon=1, rng=2),
    "mode": lambda dp: dp.groupby("g").mode(["s", "x"], epsilon=1, rng=2),
    "mode, exponential": lambda dp: dp.groupby("g").mode("s", epsilon=1, mechanism="exponential", rng=2),
    "min": lambda dp: dp.groupby("g").min("x", epsilon=1, rng=2),
    "max": lambda dp: dp.groupby("g")["x"].max(epsilon=1, rng=2),
    "nunique": lambda dp: dp.groupby("g").nunique(["s", "x"], epsilon=1, rng=2),
    "nunique, Gaussian": lambda dp: dp.groupby(["g", "s"]).nunique(
        "x", epsilon=1, delta=1e-6, mechanism="gaussian", rng=2
    ),
    "value_counts, weights": lambda dp: dp.groupby("g").value_counts("s", weights="w", epsilon=1, rng=2),
    "mode, noisy max": lambda dp: dp.groupby("g").mode("s", epsilon=1, mechanism="noisy_max", rng=2),
}


@cache
def held(records, units=None, **words):
    """A protected table; all tests of its loss release from the same."""
    frame = pd.DataFrame(list(records), columns=["x", "g", "s"], dtype=object)
    frame["x"] = frame["x"].astype("Int64")
    frame["w"] = [1 + len(str(record)) % 2 for record in records]
    if units is not None:
        frame["unit"] = list(units)
        words = {**words, "unit": "unit", "max_rows": 2}
    return pdprivacy.protect(frame, GROUPS, epsilon=10**6, delta=0.1, **words)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_by_group_lose_at_most_the_charge(name):
    """One record more or less, one replaced in all ways, and units of two records in any groups."""
    draw = np.random.default_rng(3)
    release, largest = SELECTIONS[name], {}
    for _ in range(12):
        table = tuple(RECORDS[position] for position in draw.integers(0, len(RECORDS), 4))
        first, second, third, fourth = (RECORDS[position] for position in draw.integers(0, len(RECORDS), 4))
        pairs = {
            "add_remove": (held(table), held((*table, first))),
            "replace_one": tuple(held((*table, x), neighbors="replace_one") for x in (first, second)),
            "unit": tuple(
                held((*table, *unit), ("a", "b", "c", "d", *["own"] * len(unit)))
                for unit in ([], [first, second])
            ),
            "unit, replace_one": tuple(
                held((*table, *unit), ("a", "b", "c", "d", "own", "own"), neighbors="replace_one")
                for unit in ([first, second], [third, fourth])
            ),
        }
        for setting, loss in zip(pairs, losses_of(list(pairs.values()), release), strict=True):
            assert loss.kept, (setting, table, first, second, loss)
            largest[setting] = max(largest.get(setting, 0.0), loss.epsilon)
    if "Gaussian" not in name:
        assert min(largest.values()) > 0.1, largest


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_numbers_of_labels_by_group_move_as_far_as_is_stated(neighbors, most):
    """Over all tables of up to two records in two groups, and all units of up to ``most`` records."""
    key = Column("g", "category", categories=("u", "v"))
    column = Column("x", "category", categories=LETTERS)
    scope = Scope(neighbors, None, contribution=most)
    (part,) = Distinct((column,), (Fraction(1),), scope, (key,)).parts
    cells = list(itertools.product("uv", LETTERS))
    few = {
        size: list(itertools.combinations_with_replacement(cells, size))
        for size in range(builtins.max(most, 2) + 1)
    }

    def numbers(records):
        return [len({label for group, label in records if group == own}) for own in "uv"]

    largest = {"l0": 0, "l1": 0, "l2": 0}
    for table in (records for size in (0, 1, 2) for records in few[size]):
        ends = [numbers((*table, *unit)) for unit in few[most]]
        others = ends if neighbors == "replace_one" else [numbers(table)]
        for first, second in itertools.product(ends, others):
            moved = [abs(a - b) for a, b in zip(first, second, strict=True)]
            largest["l0"] = builtins.max(largest["l0"], sum(map(bool, moved)))
            largest["l1"] = builtins.max(largest["l1"], sum(moved))
            largest["l2"] = builtins.max(largest["l2"], sum(change**2 for change in moved))
    assert largest["l0"] == part.l0
    assert largest["l1"] <= part.l1
    assert largest["l2"] <= part.l2_squared
    if most == 1:
        assert (largest["l1"], largest["l2"]) == (part.l1, part.l2_squared)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("name", "least"),
    [("mode", 0.999), ("mode, noisy max", 0.999), ("mode, exponential", 0.75), ("median", 0.3)],
)
def test_a_record_that_moves_to_another_group_loses_in_both(name, least):
    """The largest loss of a record that leaves a group is more than that of one that stays."""
    lost = {"stays": 0.0, "moves": 0.0}
    records = list(itertools.combinations(itertools.product((0, 3), ("u", "v"), ("yes", "no")), 2))
    for table in ([(0, "u", None), (3, "v", None)], [(3, "u", "no"), (0, "v", "yes")] * 2):
        pairs = [
            tuple(held((*table, record), neighbors="replace_one") for record in pair) for pair in records
        ]
        for (first, second), loss in zip(records, losses_of(pairs, SELECTIONS[name]), strict=True):
            assert loss.kept
            way = "moves" if first[1] != second[1] else "stays"
            lost[way] = max(lost[way], loss.epsilon)
    assert lost["moves"] >= max(lost["stays"], least), lost


@pytest.mark.parametrize("q", [0, Fraction(1, 5), Fraction(1, 2), 1])
def test_the_sensitivity_of_quantiles_by_group_is_that_of_records_that_come_and_go(q):
    key = (Column("g", "category", categories=("u", "v")),)
    column = RankGrid(Column("x", "integer", lower=0, upper=9), "quantile")
    end = {0: "lower", 1: "upper"}.get(q)
    single = Fraction(1) if end else max(q, 1 - q)
    for neighbors, contribution, times in (
        ("add_remove", 1, 1),
        ("add_remove", 3, 3),
        ("replace_one", 1, 2),
        ("replace_one", 3, 6),
    ):
        scope = Scope(neighbors, None, contribution=contribution)
        assert Quantile(column, Fraction(q), scope, Fraction(1), end, key).sensitivity == times * single


# ---------------------------------------------------------------- ranks

NUMBER = RankGrid(Column("x", "integer", True, lower=0, upper=40), "quantile")


@pytest.mark.parametrize("seed", range(8))
def test_ranks_of_a_group_are_those_of_its_records(seed):
    draw = np.random.default_rng(seed)
    size = int(draw.choice([0, 1, 7, 60]))
    frame = pd.DataFrame(
        {
            "x": pd.Series(draw.integers(0, 41, size)).astype("Int64").mask(draw.random(size) < 0.2),
            "g": pd.Series(draw.choice(["u", "v", "unseen"], size), dtype=object),
        }
    )
    key = Column("g", "category", categories=("u", "v", "w"))
    groups = PandasEngine(frame).grouped_ranks(NUMBER, (key,), "groupby")
    assert len(groups) == 3
    for label, ranks in zip(("u", "v", "w"), groups, strict=True):
        cells = np.sort(frame.loc[frame["g"] == label, "x"].dropna().to_numpy(np.int64))
        assert ranks.rows == len(cells)
        for first, last in itertools.combinations_with_replacement(range(-2, len(cells) + 3), 2):
            window = ranks.between(first, last)
            assert NUMBER.low <= window.low <= window.high <= NUMBER.high
            assert window.below == np.count_nonzero(cells < window.low) <= max(first, 0)
            above = np.count_nonzero(cells > window.high)
            assert above <= max(len(cells) - last, 0)
            assert window.below or window.low == NUMBER.low
            assert above or window.high == NUMBER.high
            inside = cells[(cells >= window.low) & (cells <= window.high)]
            values, counts = np.unique(inside, return_counts=True)
            assert window.values.tolist() == values.tolist()
            assert window.counts.tolist() == counts.tolist()


# ---------------------------------------------------------------- intervals

TRUE = FRAME.groupby("region")
COVERED = {
    "groupby std": (
        lambda dp, **words: dp.groupby("region").std("pay", **words),
        TRUE[["pay"]].std(),
    ),
    "groupby agg": (
        lambda dp, **words: dp.groupby("region").agg(["sum", "mean", "count"], "age", **words),
        TRUE[["age"]].agg(["sum", "mean", "count"]),
    ),
    "groupby proportion": (
        lambda dp, **words: dp.groupby("region").proportion("ill", **words),
        TRUE[["ill"]].mean(),
    ),
    "agg": (
        lambda dp, **words: dp.agg({"age": ["sum", "std"], "pay": ["mean"]}, **words),
        FRAME[NUMBERS].agg({"age": ["sum", "std"], "pay": ["mean"]}).reindex(["sum", "std", "mean"]),
    ),
    "pivot_table": (
        lambda dp, **words: dp.pivot_table("pay", "region", "ill", "sum", **words),
        FRAME.pivot_table("pay", "region", "ill", "sum"),
    ),
}
DRAWS = 200


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("bounding", [None, "clamp", "truncated"])
@pytest.mark.parametrize("name", COVERED)
def test_intervals_cover_what_is_released_of(private, name, bounding):
    """Each interval holds the number in at least 88 % of 200 draws: four standard deviations below 95 %.

    One call draws them all, side by side and each of epsilon 1: each has noise and intervals of its own.
    """
    release, true = COVERED[name]
    dp = private.dp if bounding is None else _Bounded(private.dp, bounding)
    released = release(dp, epsilon=DRAWS, releases=DRAWS, rng=1)
    half = np.reshape(released.dp.metadata.error_of_each("plus_minus", released.shape), released.shape)
    shape = (len(true), DRAWS, true.shape[1])
    numbers, half = (array.reshape(shape).swapaxes(0, 1) for array in (released.to_numpy(), half))
    inside = np.abs(numbers - true.to_numpy()) <= half
    known = ~np.isnan(true.to_numpy())
    assert inside.mean(axis=0)[known].min() > 0.88
    assert inside[:, known].mean() > 0.93


class _Bounded:
    """Releases with a bounding."""

    def __init__(self, dp, bounding):
        self._dp, self._bounding = dp, bounding

    def __getattr__(self, name):
        method = getattr(self._dp, name)
        if name == "groupby":
            return lambda *keys: _Bounded(method(*keys), self._bounding)
        return lambda *args, **words: method(*args, bounding=self._bounding, **words)


# ---------------------------------------------------------------- plans


def test_a_plan_by_group_states_the_errors_of_the_release(private):
    plan = private.dp.plan.groupby("region")
    release = private.dp.groupby("region").sum(NUMBERS, epsilon=0.5)
    planned = plan.sum(NUMBERS, epsilon=[0.5, 1], rows=SIZE)
    half = release.dp.metadata.error_of_each("plus_minus", release.shape)
    np.testing.assert_allclose(planned.loc[0.5, "plus_minus"].to_numpy(), np.ravel(half))
    counts = plan.count(epsilon=0.5, rows=SIZE)
    assert (
        counts["plus_minus"].iloc[0]
        == private.dp.groupby("region").count(epsilon=0.5).dp.metadata.error["plus_minus"]
    )
    assert private.dp.budget.spent == (1, 0)  # of the two releases


def test_a_plan_by_group_is_of_even_groups(private):
    """The error of a mean in the middle of its bounds is that of its sum over its records, to first order."""
    table = private.dp.plan.groupby(["region", "ill"]).mean("pay", epsilon=2, rows=600)
    scale = 50 / 1  # half of the bounds, at half of the epsilon
    np.testing.assert_allclose(table["rmse"], np.sqrt(2) * scale / 100, rtol=1e-3)
    assert len(table) == 6
    assert "scale" not in table or table["scale"].isna().all()
    several = private.dp.plan.groupby("region").agg(["mean", "std"], NUMBERS, epsilon=2, rows=600)
    assert len(several) == 12
    assert several["plus_minus"].notna().all()


def test_tables_with_null_labels_are_planned(private):
    """The errors are those of the release, cell by cell in its order, the null label last."""
    released = private.dp.pivot_table("pay", "ill", "grade", epsilon=1)
    for values in ("pay", ["pay"]):
        planned = private.dp.plan.pivot_table(values, "ill", "grade", epsilon=1, rows=SIZE)
        assert len(planned) == released.size
        assert planned.index.get_level_values("ill").tolist() == [False] * 4 + [True] * 4
        grades = planned.index.get_level_values(-1)
        assert grades[:3].tolist() == grades[4:7].tolist() == ["a", "b", "c"]
        assert grades.isna().tolist() == [False, False, False, True] * 2
    several = private.dp.plan.pivot_table("pay", "grade", ["ill", "region"], "sum", epsilon=1, rows=SIZE)
    half = private.dp.pivot_table("pay", "grade", ["ill", "region"], "sum", epsilon=1)
    half = half.dp.metadata.error_of_each("plus_minus", half.shape)
    np.testing.assert_allclose(several["plus_minus"].to_numpy(), np.ravel(half))
    table = private.dp.plan.crosstab("ill", "grade", epsilon=[0.5, 1], rows=SIZE)
    assert table["cells"].tolist() == [8, 8]
    counts = private.dp.crosstab("ill", "grade", epsilon=1).dp.metadata.error["plus_minus"]
    assert table["plus_minus"].iloc[1] == pytest.approx(counts)


def test_a_plan_by_group_is_written_as_the_release(private):
    plan = private.dp.plan.groupby("region")
    words = {"epsilon": 1, "rows": SIZE}
    pd.testing.assert_frame_equal(plan["pay"].mean(**words), plan.mean("pay", **words))
    pd.testing.assert_frame_equal(plan[NUMBERS].sum(**words), plan.sum(NUMBERS, **words))
    assert {"count", "mean", "agg"} <= {*dir(plan)}
    assert "sample" not in dir(plan)


def test_a_plan_by_period_has_a_row_for_each():
    days = pd.DataFrame({"when": pd.date_range("2024-01-05", periods=80), "pay": 1.0})
    domain = Domain(
        (
            Column("when", "integer", lower=0, upper=90, timeline=Timeline(19_723, "D")),
            Column("pay", "float", lower=0, upper=9),
        )
    )
    private = pdprivacy.protect(days, domain, epsilon=1)
    words = {"epsilon": 1, "rows": 80}
    for plan in (
        private.dp.plan.groupby("when", freq="M"),
        private.dp.plan.groupby(pd.Grouper(key="when", freq="ME")),
    ):
        assert len(plan["pay"].mean(**words)) == 3
    assert private.dp.budget.spent == (0, 0)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", ["release", "plan"])
@pytest.mark.parametrize("read", [iter, list, len, lambda groups: "x" in groups, lambda g: [*g]])
def test_groups_are_not_iterated(private, read, kind):
    groups = (private.dp if kind == "release" else private.dp.plan).groupby("region")
    with pytest.raises(OpaqueFrameError, match=r"groupby\('region'\)\.count\(epsilon="):
        read(groups)


@pytest.mark.parametrize("name", ["typo", None, ("age", "pay"), 0, ["age", "typo"], []], ids=str)
def test_groups_take_declared_columns(private, name):
    for groups in (private.dp.groupby("region"), private.dp.plan.groupby("region")):
        with pytest.raises((DeclarationError, ParameterError)):
            groups[name]


REFUSED = {
    "a column to count records of": (
        lambda dp: dp.groupby("ill")["age"].count(epsilon=1),
        ParameterError,
        r"groupby\('ill'\).agg\(\"count\", \['age'\]",
    ),
    "a median in agg": (lambda dp: dp.agg(["mean", "median"], epsilon=1), ParameterError, "one of 'count'"),
    "no statistic": (lambda dp: dp.agg([], epsilon=1), ParameterError, "one of 'count'"),
    "a function": (lambda dp: dp.agg(np.mean, epsilon=1), ParameterError, "one of 'count'"),
    "a statistic twice": (lambda dp: dp.agg(["sum", "sum"], epsilon=1), ParameterError, "twice"),
    "a mapping and columns": (lambda dp: dp.agg({"age": "sum"}, "pay", epsilon=1), ParameterError, "itself"),
    "a mapping and columns of the groups": (
        lambda dp: dp.groupby("ill")["pay"].agg({"age": "sum"}, epsilon=1),
        ParameterError,
        "itself",
    ),
    "an unknown column": (lambda dp: dp.agg({"sex": "sum"}, epsilon=1), DeclarationError, "sex"),
    "bounds of several": (
        lambda dp: dp.agg(["sum", "mean"], bounding="clamp", bounds=(0, 1), epsilon=1),
        ParameterError,
        "a single statistic",
    ),
    "a key as a value": (
        lambda dp: dp.groupby("ill").agg(["sum"], "ill", epsilon=1),
        ParameterError,
        "as a key",
    ),
    "labels as numbers": (lambda dp: dp.groupby("ill").std("region", epsilon=1), DeclarationError, "region"),
    "no column to count": (lambda dp: dp.groupby("ill").value_counts(epsilon=1), ParameterError, "a column"),
    "no column of a mode": (lambda dp: dp.groupby("ill").mode(epsilon=1), ParameterError, "a column"),
    "an unknown label": (
        lambda dp: dp.groupby("ill").proportion("region", "east", epsilon=1),
        ParameterError,
        "declared label",
    ),
    "a pivot table without rows": (lambda dp: dp.pivot_table("age", epsilon=1), ParameterError, "rows"),
    "a key on both sides": (
        lambda dp: dp.pivot_table("age", "ill", "ill", epsilon=1),
        ParameterError,
        "share a column",
    ),
    "an unknown aggfunc": (
        lambda dp: dp.pivot_table("age", "ill", aggfunc="max", epsilon=1),
        ParameterError,
        "one of 'count'",
    ),
    "distinct numbers": (lambda dp: dp.nunique("pay", epsilon=1), DeclarationError, "pay"),
    "a quantile beyond": (lambda dp: dp.groupby("ill").quantile("age", 2, epsilon=1), ParameterError, "'q'"),
    "labels to count records of": (
        lambda dp: dp.groupby("ill")["grade"].count(epsilon=1),
        ParameterError,
        r"groupby\('ill'\).value_counts\(\['grade'\], epsilon",
    ),
    "the long name of agg": (
        lambda dp: dp.aggregate("mean", epsilon=1),
        AttributeError,
        r"Hint: private\.dp\.agg",
    ),
    "the long name of agg by group": (
        lambda dp: dp.groupby("ill").aggregate("mean", epsilon=1),
        AttributeError,
        r"groupby\(\"region\"\)\.agg",
    ),
    "a share in the place of a column": (
        lambda dp: dp.quantile(0.5, epsilon=1),
        ParameterError,
        r"private\.dp\.quantile\(q=0\.5, epsilon",
    ),
    "shares in the place of columns": (
        lambda dp: dp.groupby("ill")["age"].quantile([0.25, 0.75], epsilon=1),
        ParameterError,
        r"groupby\('ill'\)\['age'\]\.quantile\(q=\[0",
    ),
    "noise of a quantile": (
        lambda dp: dp.groupby("ill").median("age", mechanism="laplace", epsilon=1),
        ParameterError,
        "mechanism",
    ),
    "more selections than fit": (
        lambda dp: dp.groupby(["region", "ill", "grade"]).median("age", releases=500, epsilon=1),
        TableTooLargeError,
        "fewer releases",
    ),
    "an assumed value of several": (
        lambda dp: dp.plan.agg(["sum", "mean"], at=1, rows=9, epsilon=1),
        ParameterError,
        "a single statistic",
    ),
    "a selection in a plan": (
        lambda dp: dp.plan.groupby("ill").mode("age", epsilon=1, rows=9),
        AttributeError,
        "mode",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_release_is_not_charged(private, name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(private.dp)
    assert private.dp.budget.spent == (0, 0)


def test_the_hint_of_a_count_of_a_key_is_a_call_that_works():
    domain = pdprivacy.Domain((pdprivacy.Column("h", "category", categories=("u", "v")),))
    private = pdprivacy.protect(pd.DataFrame({"h": ["u", "v"] * 5}), domain, epsilon=1)
    with pytest.raises(ParameterError) as caught:
        private.dp.groupby("h")["h"].count(epsilon=1)
    assert caught.value.hint == "private.dp.groupby('h').count(epsilon=0.1)"


# ---------------------------------------------------------------- named aggregations


@pytest.mark.parametrize("keys", ["region", ["region", "ill"]], ids=str)
def test_named_aggregations_are_those_of_pandas(private, keys):
    named = {
        "spread": ("pay", "std"),
        "n": ("pay", "size"),
        "known": ("age", "count"),
        "top": ("pay", "mean"),
    }
    released = private.dp.groupby(keys).agg(**named, **EXACT)
    same(released, FRAME.groupby(keys).agg(**named))
    assert released.dp.metadata.columns[-2:] == ["pay", "age"]
    tuples = private.dp.groupby(keys).agg(m=pd.NamedAgg("pay", "mean"), epsilon=1, rng=2)
    expected = private.dp.groupby(keys).mean("pay", epsilon=1, rng=2)
    assert tuples["m"].tolist() == expected["pay"].tolist()
    assert tuples.dp.metadata.scale == expected.dp.metadata.scale


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: g.agg(m=("age", "size"), epsilon=1), "'size' counts all records, and column 'age'"),
        (lambda g: g.agg(m=("pay", "mode"), epsilon=1), "'m' must be one of 'count'"),
        (lambda g: g.agg(m=("pay", ["mean"]), epsilon=1), "'m' must be one of 'count'"),
        (lambda g: g.agg(m=("salary", "mean"), epsilon=1), "salary"),
        (lambda g: g.agg(m=("region", "mean"), epsilon=1), "as a value and as a key|bounds"),
        (lambda g: g.agg(m="mean", epsilon=1), "unexpected keyword argument 'm'"),
        (lambda g: g.agg(["mean"], m=("pay", "mean"), epsilon=1), "Named aggregations name"),
        (lambda g: g["pay"].agg(m=("pay", "mean"), epsilon=1), "Named aggregations name"),
        (lambda g: g.agg(count=("pay", "mean"), epsilon=1), "holds counts"),
        (lambda g: g.agg(m=("pay", "mean"), epsilon=1, bounding="clamp", bounds=(0, 1)), "'bounds'"),
        (lambda g: g.agg(epsilon=1), "'func' must be one of"),
    ],
)
def test_invalid_named_aggregations_are_refused(private, call, words):
    with pytest.raises(PrivacyError, match=words):
        call(private.dp.groupby("region"))
    assert private.dp.budget.spent == (0, 0)


def test_a_step_stores_named_aggregations(tmp_path):
    ledger = pdprivacy.Ledger(tmp_path / "budget.db")

    @pdprivacy.release_step(schema=DOMAIN, epsilon=2, ledger=ledger, name="survey", to=tmp_path)
    def monthly(private, statistic):
        return private.dp.groupby("region").agg(m=("pay", statistic), epsilon=0.5)

    first, again = (monthly(FRAME, statistic="mean", release_id="2026-05") for _ in range(2))
    assert first.equals(again)
    assert ledger.budget("survey").left == (1.5, 0.0)
    ledger.close()
