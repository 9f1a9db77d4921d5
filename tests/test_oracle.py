"""Every verb charges, reads and answers on every engine as `tests/oracle` says.

After a change on purpose: ``python -m tests.support.oracle --write``, and read the difference.
"""

from __future__ import annotations

import pandas as pd
import pytest

from tests.support import capabilities, oracle
from tests.support.oracle_cases import CASES
from tests.support.oracle_frames import ENGINES, available

PANDAS = ["pandas", "nullable", "Arrow-backed"]


def check(engine: str, few: int = 0) -> None:
    if not available(engine):
        pytest.skip(f"{engine} is not installed")
    if engine not in PANDAS and pd.__version__.startswith("2."):
        pytest.skip("the engines are checked against the newest pandas and Arrow")
    differences = oracle.differences(engine, oracle.computed(engine, few), oracle.stored())
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize(("engine", "few"), [("pandas", 2), ("Polars", 20)])
def test_each_verb_charges_and_reads_what_the_oracle_says(engine, few):
    check(engine, few)


@pytest.mark.full
@pytest.mark.xdist_group("spark")
def test_verbs_charge_and_read_in_spark_what_the_oracle_says(spark):
    """A part of the cases; ``python -m tests.support.oracle Spark`` takes minutes for all of them."""
    check("Spark", few=5)


@pytest.mark.full
@pytest.mark.parametrize("engine", [choice for choice in ENGINES if choice != "Spark"])
def test_each_case_charges_and_reads_what_the_oracle_says(engine):
    check(engine)


@pytest.mark.full
def test_the_oracle_holds_every_case_and_no_other():
    stored = oracle.stored()
    assert set(stored) == set(CASES)
    for title, engines in stored.items():
        expected = {engine for engine in ENGINES if oracle.asks(CASES[title], engine)}
        assert set(engines) == expected, title


# ---------------------------------------------------------------- what works where


def compare(engine: str, **words) -> None:
    if not available(engine):
        pytest.skip(f"{engine} is not installed")
    if engine != "pandas" and pd.__version__.startswith("2."):
        pytest.skip("the engines are checked against the newest pandas and Arrow")
    stored = capabilities.stored()
    computed = capabilities.computed(engine, **words)
    assert {cell: text for cell, text in computed.items() if stored.get(cell) != text} == {}


def test_each_verb_works_or_is_refused_in_the_ways_that_the_matrix_says():
    compare("pandas", ways=("plan", "batch"))


@pytest.mark.full
@pytest.mark.parametrize("engine", ["pandas", "Polars", "lazy Polars", "DuckDB", "Dask", "PyArrow"])
def test_each_verb_works_or_is_refused_on_the_engines_that_the_matrix_says(engine):
    compare(engine)


@pytest.mark.full
@pytest.mark.xdist_group("spark")
def test_verbs_work_or_are_refused_in_spark_as_the_matrix_says(spark):
    compare("Spark", ways=("plain",))
