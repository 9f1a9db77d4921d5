"""No pair of neighbouring tables loses more than its release is charged, computed exactly."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from pdprivacy import errors
from tests.support.neighbours import loss_of
from tests.support.oracle_frames import available
from tests.support.pairs import RELEASES, SETTINGS, pair, protected

# tiny tables leave a regression without standard errors, which it announces
pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.IntervalWarning")

LAZY = ("lazy Polars", "DuckDB", "Dask", "Spark")


def refusal(private, release):
    """The text of the refusal of a release, or none."""
    try:
        release(private.dp)
    except errors.PrivacyError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def check(engine: str, setting: str, seed: int, names: list[str]) -> int:
    """Each release keeps to its charge on a pair; how many were made. What is refused is refused of both."""
    tables = pair(seed, setting)
    first, second = (protected(engine, setting, table) for table in tables)
    count = 0
    for name in names:
        try:
            loss = loss_of(first, second, RELEASES[name])
        except errors.PrivacyError:
            assert refusal(first, RELEASES[name]) == refusal(second, RELEASES[name]) != "", (name, tables)
            continue
        assert loss.kept, (engine, setting, seed, name, loss, tables)
        count += 1
    return count


def some(seed: int, count: int) -> list[str]:
    return random.Random(seed).sample(list(RELEASES), count)


@pytest.mark.parametrize("setting", SETTINGS)
def test_neighbours_lose_at_most_the_charge(setting):
    assert sum(check("pandas", setting, seed, some(seed, 8)) for seed in range(2)) > 5


@pytest.mark.parametrize("name", ["count", "sum x", "mean x", "var y", "crosstab"])
def test_a_record_that_is_left_out_loses_at_most_the_charge(name):
    """The number of rows is public where a record is replaced, but not that of the records that are kept."""
    left_out = of(RECORD, {**OPPOSITE, "n": 12})
    kept, other = (protected("pandas", "drop, replace_one", table) for table in (TWO, left_out))
    assert loss_of(kept, other, RELEASES[name]).kept


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("engine", ["Polars", "PyArrow"])
def test_neighbours_in_other_engines_lose_at_most_the_charge(engine, setting):
    beside(engine, setting, range(1), 3)


def beside(engine: str, setting: str, seeds: range, count: int) -> None:
    if not available(engine):
        pytest.skip(f"{engine} is not installed")
    if engine not in ("pandas", "nullable", "Arrow-backed") and pd.__version__.startswith("2."):
        pytest.skip("the engines are checked against the newest pandas and Arrow")
    if engine in LAZY and setting == "public_rows":
        pytest.skip("the number of rows of a lazy frame is private")
    for seed in seeds:
        check(engine, setting, seed, some(seed, count))


@pytest.mark.full
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("engine", ["pandas", "nullable", "Arrow-backed", "Polars", "PyArrow"])
def test_many_neighbours_lose_at_most_the_charge(engine, setting):
    beside(engine, setting, range(100, 110 if pd.__version__.startswith("2.") else 130), 25)


@pytest.mark.full
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("engine", ["lazy Polars", "DuckDB", "Dask"])
def test_many_neighbours_in_lazy_frames_lose_at_most_the_charge(engine, setting):
    beside(engine, setting, range(200, 206), 12)


@pytest.mark.full
@pytest.mark.xdist_group("spark")
def test_neighbours_in_spark_lose_at_most_the_charge(spark):
    for setting in SETTINGS:
        beside("Spark", setting, range(1), 6)


# ---------------------------------------------------------------- the worst pairs lose all of the charge

RECORD = {
    "x": 10.0,
    "y": 1.5,
    "n": 9,
    "m": 5,
    "g": "a",
    "k": "u",
    "h": True,
    "e": True,
    "s": "yes",
    "p": "own",
}
OPPOSITE = {**RECORD, "x": -3.0, "y": -1.0, "n": 1, "m": 0, "g": "b", "k": "w", "e": False, "s": "no"}


def of(*records):
    return {name: [record[name] for record in records] for name in RECORD}


TWO = of(RECORD, OPPOSITE)
WORST = {
    "count": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "sum x": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "mean x": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "mean y": ("replace_one", TWO, of(OPPOSITE, OPPOSITE)),
    "crosstab": ("replace_one", TWO, of(OPPOSITE, OPPOSITE)),
    "groupby sum": ("add_remove", of(OPPOSITE), of(OPPOSITE, RECORD)),
    "mode g": ("replace_one", of(OPPOSITE, OPPOSITE, RECORD), of(OPPOSITE, RECORD, RECORD)),
    "sum x, bounds, clamp": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "sum x, staircase": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "mean x, staircase": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "crosstab, clamped staircase": ("add_remove", TWO, of(RECORD, OPPOSITE, RECORD)),
    "sum of several, split": ("replace_one", of(RECORD, RECORD), of(RECORD, OPPOSITE)),
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_neighbours_of_pure_releases_lose_all_of_the_charge(name):
    setting, *tables = WORST[name]
    loss = loss_of(*(protected("pandas", setting, table) for table in tables), RELEASES[name])
    least = {"mode g": 0.5}.get(name, 0.999)
    assert least * float(loss.charged_epsilon) <= loss.epsilon <= float(loss.charged_epsilon) * (1 + 1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "count, Gaussian",
        "sum x, Gaussian",
        "crosstab, Gaussian",
        "count, discrete Gaussian",
        "crosstab, clamped discrete Gaussian",
    ],
)
def test_the_worst_neighbours_of_gaussian_releases_lose_all_of_the_charge(name):
    tables = of(RECORD, OPPOSITE), of(RECORD, OPPOSITE, RECORD)
    loss = loss_of(*(protected("pandas", "add_remove", table) for table in tables), RELEASES[name])
    assert 0.99 * float(loss.charged_delta) <= loss.delta <= float(loss.charged_delta) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "setting", "least"),
    [
        ("crosstab, discrete Gaussian", "replace_one", 0.9),
        ("count of columns, discrete Gaussian", "add_remove", 0.1),
    ],
)
def test_discrete_gaussian_noise_of_several_numbers_loses_a_good_part_of_its_delta(name, setting, least):
    """One table is calibrated exactly; several share the rho that converts to the charge."""
    other = of(OPPOSITE, OPPOSITE) if setting == "replace_one" else of(RECORD, OPPOSITE, RECORD)
    loss = loss_of(*(protected("pandas", setting, table) for table in (TWO, other)), RELEASES[name])
    assert least * float(loss.charged_delta) <= loss.delta <= float(loss.charged_delta)


def test_a_generalized_gaussian_release_loses_most_of_its_delta():
    tables = of(RECORD, OPPOSITE), of(RECORD, OPPOSITE, RECORD)
    name = "sum x, generalized Gaussian"
    loss = loss_of(*(protected("pandas", "add_remove", table) for table in tables), RELEASES[name])
    assert 0.01 * float(loss.charged_delta) <= loss.delta <= float(loss.charged_delta)
