"""The example of a table larger than memory, at few rows: what it prints, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "larger_than_memory.py"
ROWS = 200_001
ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"needs {name}"))
    for name in ("polars", "duckdb", "dask")
]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(find_spec("narwhals") is None, reason="the example needs narwhals"),
]


def ran(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "utf8", str(SCRIPT), *map(str, arguments)],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False,
        env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the rows are, made by whichever engine comes first."""
    return tmp_path_factory.mktemp("larger")


@pytest.fixture(scope="module")
def printed(folder):
    """The output of a run of an engine, by parts."""
    outputs: dict[str, list[str]] = {}

    def of(engine: str) -> list[str]:
        if engine not in outputs:
            process = ran(
                folder, "--rows", ROWS, "--engine", engine, "--folder", folder, "--keep", "--seed", 20_26
            )
            assert process.returncode == 0, process.stderr
            outputs[engine] = process.stdout.split("\n\n")
        return outputs[engine]

    return of


@pytest.fixture(scope="module")
def rows(printed, folder) -> pd.DataFrame:
    pytest.importorskip("polars")
    printed("polars")
    return pd.read_parquet(folder / f"rows-{ROWS}" / "part-0000.parquet")


def test_the_exact_numbers_are_those_of_the_files(rows, folder):
    exact = json.loads((folder / f"rows-{ROWS}" / "exact.json").read_text())
    assert len(rows) == exact["rows"] == ROWS
    edges = pd.cut(rows["age"], [0, 20, 40, 60, 80, 100], right=False)
    keys = [rows["region"], edges, rows["education"], rows["year"], rows["insured"]]
    labels = [sorted(set(key)) for key in keys]
    cells = rows.groupby(keys, observed=True).size()
    cells = cells.reindex(pd.MultiIndex.from_product(labels), fill_value=0)
    assert cells.tolist() == exact["cells"]
    assert rows["age"].sum() == exact["age"]
    assert round(rows["income"].sum() * 100) == exact["cents"]
    assert rows["income"].count() == exact["incomes"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_table_is_as_near_as_it_says(printed, engine):
    # 1200 cells of geometric noise at epsilon 0.5: within 6 with probability 0.962, so that less than 0.93 of
    # them has a probability below 1e-6, and one beyond 45 one below 1e-6, with any seed
    text = "\n".join(printed(engine))
    stated, within, largest = re.search(
        r"stated error, 95 %: (\S+); cells within: (\S+)%; largest: (\S+)", text
    ).groups()
    assert float(stated) == 6
    assert 93 < float(within) < 99
    assert 6 < float(largest) < 45


@pytest.mark.parametrize("engine", ENGINES)
def test_the_means_are_as_near_as_they_say(printed, engine):
    (block,) = (part for part in printed(engine) if "standard_error" in part)
    for line in block.strip().splitlines()[1:]:
        name, released, error, _, _, exact = line.split()
        # the noise of a mean is about Laplace: beyond 8 standard errors with probability 2e-5
        assert 0 < abs(float(released) - float(exact)) < 8 * float(error), name


@pytest.mark.parametrize("engine", ENGINES)
def test_one_epsilon_is_the_cost_of_all(printed, engine):
    (block,) = (part for part in printed(engine) if part.startswith("Privacy budget"))
    costs = [float(cost) for cost in re.findall(r"^ +\d+ .* epsilon (\S+) +delta", block, re.MULTILINE)]
    assert costs == [0.5, 0.25, 0.25]
    assert re.search(r"left +epsilon 0 ", block)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_engines_release_the_same_numbers(printed, engine):
    pytest.importorskip("polars")

    def numbers(name: str) -> list[str]:
        return [part for part in printed(name)[2:] if "memory" not in part]

    assert numbers(engine) == numbers("polars")
    assert len(numbers(engine)) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_the_peak_is_measured_and_within_the_limit(printed, engine):
    peak, limit = re.search(
        r"peak memory of this process: ([\d,.]+|nan) MiB \(limit ([\d,]+) MiB\)", "\n".join(printed(engine))
    ).groups()
    # the libraries alone take some 100 MiB
    assert peak == "nan" or 50 < float(peak.replace(",", "")) <= 2048 == float(limit.replace(",", ""))


@pytest.mark.skipif(sys.platform == "win32", reason="the peak is not known there")
def test_more_memory_than_the_limit_is_a_failure_and_nothing_is_left(tmp_path):
    pytest.importorskip("polars")
    process = ran(tmp_path, "--rows", 300, "--limit", 1)
    assert process.returncode == 1
    assert "That is more than the limit." in process.stderr
    assert list(tmp_path.iterdir()) == []


def test_stored_releases_are_read_again(printed, folder, rows):
    files = sorted((folder / f"rows-{ROWS}").iterdir())
    assert [file.name for file in files] == ["exact.json", "part-0000.parquet"]
    before = [file.stat().st_mtime_ns for file in files]
    printed("polars")
    printed("duckdb" if find_spec("duckdb") else "polars")
    assert [file.stat().st_mtime_ns for file in files] == before


def test_a_wrong_argument_is_told(tmp_path):
    process = ran(tmp_path, "--rows", 300, "--keep")
    assert process.returncode == 2
    assert "--keep needs --folder" in process.stderr
    assert list(tmp_path.iterdir()) == []
