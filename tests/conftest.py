from __future__ import annotations

import functools
import gc
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

# of the processes that tests start: pandera imports pyspark where it is there, which warns of pandas 3
# and from Python 3.12 on, a fork of a process with threads warns
os.environ.setdefault(
    "PYTHONWARNINGS",
    "ignore:PySpark does not yet fully support pandas:FutureWarning,"
    "ignore:This process (pid=:DeprecationWarning",
)
if not hasattr(sys.modules["__main__"], "__file__"):
    # a worker of xdist: pyspark, which pandera imports where it is there, would take it for its own doctests
    sys.modules["__main__"].__file__ = __file__

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

import pdprivacy  # noqa: F401  (puts dp on every frame)
from pdprivacy.declaration.domain import Domain
from pdprivacy.declaration.pandera_reader import read_schema
from tests.support import spark as support_spark

collect_ignore = ["typing_examples.py"]  # code of a user, which test_typing.py runs
TESTS = Path(__file__).parent
PANDAS_2 = pd.__version__.startswith("2.")
if hasattr(os, "register_at_fork"):
    # a forked process collects nothing that its parent left: a connection of DuckDB, whose threads the fork
    # does not have, ends it by a segmentation fault
    os.register_at_fork(after_in_child=gc.freeze)
OLDEST_TOO = {"declaration", "engines", "examples", "frames", "pipeline", "rows"}
OLDEST_TOO |= {"plots", "test_costs", "test_dates_shown", "test_export", "test_pages", "test_report"}
OLDEST_TOO |= {"test_accessor", "test_bad_input", "test_cell_types", "test_conform", "test_oracle"}
OLDEST_TOO |= {"test_covariances", "test_disclosure_risk", "test_histograms", "test_metadata", "test_moments"}
OLDEST_TOO |= {"test_postgres", "test_tables"}
"""Folders and modules of the long tests that run with the oldest dependencies, too.

They are about frames, files, pictures and servers. Other long tests repeat what dependencies do not change:
noise, losses, locks, the layout of a report in a browser, and more parameters of tests that run by default.
Of a test with several parameters, some run that have every value of each; the newest pandas runs every
combination.
"""
FAST = {"test_assignment", "test_bits", "test_blocks", "test_cells", "test_checks", "test_choice"}
FAST |= {"test_conditions", "test_facts", "test_conversion", "test_date_steps"}
FAST |= {"test_discrete_gaussian", "test_distributions", "test_events", "test_exact", "test_execute"}
FAST |= {"test_exponential", "test_gaussian", "test_geometric", "test_inverse", "test_laplace"}
FAST |= {"test_mechanisms", "test_optimal", "test_pandas_engine", "test_privacy"}
FAST |= {"test_random_calls", "test_rules", "test_sensitivities", "test_staircase", "test_steps"}
"""Modules whose default tests are marked ``fast``: those of the core that take a second or less each.

``pytest -m fast`` takes less than twenty seconds on two processors.
"""


for _profile, _examples in (("default", 15), ("full", 100 if PANDAS_2 else 300)):
    settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--full``, which also runs the tests marked ``full``, and ``--rest``."""
    parser.addoption("--full", action="store_true", help="run all tests, also those marked 'full'")
    parser.addoption(
        "--rest",
        action="store_true",
        help="run what --full adds: tests marked 'full', and more examples or turns of others",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw few examples of a property by default; `pytest_make_collect_report` says where many."""
    config.option.full = config.option.full or config.option.rest
    settings.load_profile("default")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to run the tests that were left out."""
    if not config.getoption("full"):
        terminalreporter.write_line("Tests marked 'full' were left out. 'pytest --full' runs all tests.")


def covering(items: list[pytest.Item], number: int | None = None) -> set[pytest.Item]:
    """Choose parameters of a test: each time those with most values, then pairs of values, not yet chosen.

    ``number``: how many; by default so many that they have every value of each parameter.
    """
    features = {}
    for item in items:
        values = list(enumerate(item.callspec._idlist))  # its indices are new ones for every combination
        features[item] = set(values), set(combinations(values, 2))
    waiting = list(items)
    Random(0).shuffle(waiting)
    values, pairs, every = set(), set(), set().union(*(own for own, _ in features.values()))
    chosen = set()
    while waiting and (values < every if number is None else len(chosen) < number):
        best = max(
            waiting, key=lambda item: (len(features[item][0] - values), len(features[item][1] - pairs))
        )
        waiting.remove(best)
        chosen.add(best)
        values |= features[best][0]
        pairs |= features[best][1]
    return chosen


def long_tests(items: list[pytest.Item]) -> set[pytest.Item]:
    """The tests marked ``full``, but for the parameters that they keep."""
    long, kept_in_part = set(), defaultdict(list)
    for item in items:
        if marks := list(item.iter_markers("full")):
            long.add(item)
            if all("keep" in mark.kwargs for mark in marks):
                kept_in_part[item.nodeid.split("[")[0], marks[0].kwargs["keep"]].append(item)
    for (_, keep), parameters in kept_in_part.items():
        long -= covering(parameters, keep)
    return long


def left_to_the_newest(long: set[pytest.Item]) -> set[pytest.Item]:
    """The long tests that do not run with these dependencies, but for parameters that cover every value."""
    left, by_test = set(), defaultdict(list)
    for item in long if PANDAS_2 else ():
        if not runs_long(item):
            left.add(item)
        elif hasattr(item, "callspec"):
            by_test[item.nodeid.split("[")[0]].append(item)
    for items in by_test.values():
        items.sort(key=lambda item: item.nodeid)
        left |= set(items) - covering(items)
    return left


def is_longer(item: pytest.Item) -> bool:
    """Whether a test does more with ``--full``: it draws examples, or it asks for the fixture `full`."""
    return is_hypothesis_test(getattr(item, "obj", None)) or "full" in getattr(item, "fixturenames", ())


@functools.cache
def names_of(path: Path) -> frozenset[str]:
    """The names of a file of tests and of its folders; none of a file elsewhere."""
    if not path.is_relative_to(TESTS):
        return frozenset()
    return frozenset({path.stem, *path.relative_to(TESTS).parts})


def is_in(names: set[str], path: Path) -> bool:
    """Whether a file of tests is one of these modules, or in one of these folders."""
    return not names.isdisjoint(names_of(path))


def runs_long(item: pytest.Item | pytest.Collector) -> bool:
    """Whether these dependencies run the long tests of a module."""
    return not PANDAS_2 or is_in(OLDEST_TOO, item.path)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m fast``, import no module without fast tests: importing all takes longer than the tests."""
    name = collection_path.name
    slow = name.startswith("test_") and not is_in(FAST, collection_path)
    return True if slow and config.option.markexpr == "fast" else None


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Draw few examples in a module that is imported where these dependencies do not run its long tests."""
    many = collector.config.option.full and runs_long(collector)
    settings.load_profile("full" if many else "default")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked ``full``, unless ``--full`` is given; skip them where a test is named.

    A test marked ``full(keep=n)`` keeps n of its parameters, which cover as many values of each as n can.
    With ``--full``, pandas 2 leaves out long tests that the newest pandas runs: all but `OLDEST_TOO`, and of
    these, parameters that combine values otherwise.
    With ``--rest``, what runs in the same way without it is left out.

    The tests of a file run in one process, one after the other: they share what is made once. Those that
    name a group of pytest-xdist themselves are together across files instead.
    """
    full, rest = config.option.full, config.option.rest
    for item in items:
        if is_in(FAST, item.path):
            item.add_marker(pytest.mark.fast)
    long = long_tests(items) if rest or PANDAS_2 or not full else set()
    if full:
        if rest:
            added = [item for item in items if item in long or is_longer(item)]
            config.hook.pytest_deselected(items=list(set(items).difference(added)))
            items[:] = added
        if left := left_to_the_newest(long):
            items[:] = [item for item in items if item not in left]
            config.hook.pytest_deselected(items=list(left))
    elif any("::" in argument for argument in config.args):
        for item in long:
            item.add_marker(pytest.mark.skip(reason="long test: run it with 'pytest --full'"))
    elif long:
        items[:] = [item for item in items if item not in long]
        config.hook.pytest_deselected(items=list(long))
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))


def pytest_collection_finish() -> None:
    """Leave all that was collected, which stays to the end, out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether a test makes its long runs."""
    return request.config.option.full and runs_long(request.node)


def _column(dtype, check=None, *, nullable=False, **dp) -> pa.Column:
    return pa.Column(dtype, check, nullable=nullable, metadata={"dp": dp})


@pytest.fixture(scope="session")
def schema() -> pa.DataFrameSchema:
    """One column of every kind: with bins, labels, nulls, without bounds, never released, undeclared."""
    return pa.DataFrameSchema(
        {
            "age": _column(
                int, pa.Check.in_range(18, 90), role="quasi_identifier", bins=[18, 30, 45, 65, 90]
            ),
            "region": _column(
                str, pa.Check.isin(["north", "east", "south", "west"]), role="quasi_identifier"
            ),
            "health": _column(str, pa.Check.isin(["no", "yes"]), role="sensitive"),
            "family": _column(int, pa.Check.in_range(1, 15)),
            "income": _column(float, pa.Check.in_range(0, 1000), nullable=True),
            "member": _column(bool),
            "weight": _column(float),
            "town": _column(str, labels="private"),
            "person": _column(int, pa.Check.in_range(0, 10**6), role="identifier"),
            "visits": pa.Column(int),
        }
    )


@pytest.fixture
def survey() -> pd.DataFrame:
    """Forty records within the declaration of ``schema``; no declared bound is reached."""
    rows = np.arange(40)
    income = 100.0 + 20.5 * rows
    income[::7] = np.nan
    return pd.DataFrame(
        {
            "age": 20 + (rows * 17) % 60,
            "region": np.array(["north", "east", "south", "west"], dtype=object)[(rows * 7) % 4],
            "health": np.array(["no", "yes"], dtype=object)[(rows % 5 == 0).astype(int)],
            "family": 2 + (rows * 5) % 9,
            "income": income,
            "member": rows % 3 == 0,
            "weight": 50.0 + rows,
            "town": np.array(["Aa", "Bb", "Cc"], dtype=object)[rows % 3],
            "person": 500 + rows,
            "visits": rows % 6,
        }
    )


@pytest.fixture(scope="session")
def declared(schema) -> Domain:
    """The declaration in ``schema``, which is read once: to check cells, pandera takes longer than a test."""
    return read_schema(schema)


@pytest.fixture
def private(survey, declared) -> pd.DataFrame:
    """The survey, protected with a large budget."""
    return survey.dp.protect(declared, epsilon=100, delta=1e-3)


@pytest.fixture(params=["default", "copy_on_write"] if PANDAS_2 else ["default"])
def writing(request) -> Iterator[str]:
    """Each way in which this pandas writes to shared columns."""
    if request.param == "default":
        yield request.param
        return
    with pd.option_context("mode.copy_on_write", True):
        yield request.param


@pytest.fixture
def quietly() -> Callable[[Callable[[], object]], Exception | None]:
    """Run something that pandas may warn about or refuse; what it raised."""

    def run(action: Callable[[], object]) -> Exception | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                action()
            except Exception as error:
                return error
        return None

    return run


@pytest.fixture
def texts_of() -> Callable[[BaseException], list[str]]:
    """Every text that an error can show: its own, its causes' and contexts', and what they carry."""

    def walk(error: BaseException) -> list[str]:
        texts: list[str] = []
        waiting: list[BaseException | None] = [error]
        seen: set[int] = set()
        while waiting:
            exception = waiting.pop()
            if exception is None or id(exception) in seen:
                continue
            seen.add(id(exception))
            texts += [
                str(exception),
                repr(exception),
                repr(exception.args),
                repr(vars(exception)),
                repr(getattr(exception, "object", "")),
            ]
            texts += [str(note) for note in getattr(exception, "__notes__", [])]
            waiting += [exception.__cause__, exception.__context__]
        return texts

    return walk


@pytest.fixture
def collected() -> Callable[[], None]:
    """Let go of what nothing refers to any more (an accessor and its frame refer to each other)."""

    def collect() -> None:
        for _ in range(3):
            gc.collect()

    return collect


@pytest.fixture(scope="session")
def count_rows() -> Callable[[str], pd.DataFrame]:
    """The rows of a file of real counts, the count last, or a skip that says why."""

    def read(name: str) -> pd.DataFrame:
        folder = os.environ.get("PDPRIVACY_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")
        path = Path(folder) / name
        if not path.is_file():
            pytest.skip(f"{name} is not there; the environment variable PDPRIVACY_DATA names its folder")
        return pd.read_csv(path, skipinitialspace=True)

    return read


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one session of Spark, on this machine alone; all its tests are in one group of pytest-xdist."""
    if reason := support_spark.missing():
        pytest.skip(reason)
    session = support_spark.session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def as_module() -> Iterator[Callable[[Path], ModuleType]]:
    """Scripts as modules, for as long as the tests of one file run."""
    names: list[str] = []

    def load(script: Path) -> ModuleType:
        spec = spec_from_file_location(script.stem, script)
        module = module_from_spec(spec)
        sys.modules[script.stem] = module
        names.append(script.stem)
        with warnings.catch_warnings():
            # what an older matplotlib uses of its own dependencies is not ours
            warnings.simplefilter("ignore", DeprecationWarning)
            spec.loader.exec_module(module)
        return module

    yield load
    for name in names:
        del sys.modules[name]
