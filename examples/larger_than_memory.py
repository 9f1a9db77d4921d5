"""A table larger than memory: releases from 100 million rows of Parquet, in less than 2 GiB.

    python examples/larger_than_memory.py --engine polars
    python examples/larger_than_memory.py --engine duckdb --rows 1000000
    python examples/larger_than_memory.py --engine dask --folder data --keep

The rows are made up and written piece by piece, 1.6 GiB of files for 100 million of them, in a temporary
folder that is gone in the end. `--folder` names another one; with `--keep` what is made stays, and the next
run with as many rows reads it again. The process measures its own peak memory, and fails if that was more
than `--limit`.

Since the rows are made up, the exact numbers are known: they are printed beside the released ones. Do not do
that with real data.
"""

import argparse
import contextlib
import json
import math
import platform
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandera.pandas as pa
import pyarrow
import pyarrow.parquet as pq

import pdprivacy

PIECE = 250_000
"""Rows that are in memory when they are made; also those of a row group."""

FILE = 40
"""Pieces of a file."""

YEARS = [2019, 2020, 2021, 2022, 2023]
REGIONS = ["centre", "east", "islands", "north", "south", "west"]
SCHOOLS = ["none", "primary", "secondary", "tertiary"]
AGES = [0, 20, 40, 60, 80, 100]
TABLE = ["region", "age", "education"], ["year", "insured"]

SCHEMA = pa.DataFrameSchema(
    {
        "year": pa.Column(int, pa.Check.in_range(YEARS[0], YEARS[-1]), metadata={"dp": {}}),
        "region": pa.Column(str, pa.Check.isin(REGIONS), metadata={"dp": {}}),
        "age": pa.Column(int, pa.Check.in_range(0, 100), metadata={"dp": {"bins": AGES}}),
        "education": pa.Column(str, pa.Check.isin(SCHOOLS), metadata={"dp": {}}),
        "insured": pa.Column(bool, metadata={"dp": {}}),
        "income": pa.Column(float, pa.Check.in_range(0, 500_000), nullable=True, metadata={"dp": {}}),
    }
)


# ---------------------------------------------------------------- the rows


def piece(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Rows that are made up: labels as their places, incomes in whole cents, -1 where there is none."""
    age = rng.binomial(99, rng.beta(2, 2.5, rows))
    income = np.minimum(rng.lognormal(10, 0.8, rows) * 100, 5e7).astype(np.int64)
    income[rng.random(rows) < 0.05] = -1
    return {
        "year": rng.integers(0, len(YEARS), rows),
        "region": np.searchsorted([0.3, 0.45, 0.5, 0.7, 0.9], rng.random(rows)),
        "age": age,
        "education": np.minimum(rng.binomial(3, 0.6, rows), age // 7),
        "insured": rng.random(rows) < 0.7 + 0.002 * age,
        "income": income,
        "person": rng.integers(0, 2**40, rows),  # not declared, so that no release reads it
    }


def arrow_of(columns: dict[str, Any]) -> pyarrow.Table:
    absent = columns["income"] < 0
    return pyarrow.table(
        {
            "year": pyarrow.array(columns["year"] + YEARS[0], type=pyarrow.int32()),
            "region": pyarrow.array(REGIONS).take(pyarrow.array(columns["region"])),
            "age": pyarrow.array(columns["age"], type=pyarrow.int32()),
            "education": pyarrow.array(SCHOOLS).take(pyarrow.array(columns["education"])),
            "insured": pyarrow.array(columns["insured"]),
            "income": pyarrow.array(columns["income"] / 100, mask=absent),
            "person": pyarrow.array(columns["person"]),
        }
    )


def make(folder: Path, rows: int) -> dict[str, Any]:
    """Write the files, and return the exact numbers, which are kept beside them."""
    known = folder / "exact.json"
    if known.exists():
        return json.loads(known.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2026)
    shape = (len(REGIONS), len(AGES) - 1, len(SCHOOLS), len(YEARS), 2)
    cells = np.zeros(np.prod(shape), dtype=np.int64)
    exact = {"rows": rows, "bytes": 0, "age": 0, "cents": 0, "incomes": 0}
    writer = None
    for number, start in enumerate(range(0, rows, PIECE)):
        columns = piece(rng, min(PIECE, rows - start))
        table = arrow_of(columns)
        if number % FILE == 0:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(folder / f"part-{number // FILE:04}.parquet", table.schema)
        writer.write_table(table)
        indices = (
            columns["region"],
            columns["age"] // 20,
            columns["education"],
            columns["year"],
            columns["insured"] * 1,
        )
        cells += np.bincount(np.ravel_multi_index(indices, shape), minlength=len(cells))
        incomes = columns["income"][columns["income"] >= 0]
        exact["bytes"] += table.nbytes
        exact["age"] += int(columns["age"].sum())
        exact["cents"] += int(incomes.sum())
        exact["incomes"] += len(incomes)
    writer.close()
    exact["cells"] = cells.tolist()
    known.write_text(json.dumps(exact))
    return exact


# ---------------------------------------------------------------- the engines


Own = dict[str, Callable[[], Any]]


def polars(folder: Path) -> tuple[Any, Own]:
    import polars as pl

    frame = pl.scan_parquet(folder / "*.parquet")
    keys = ["region", pl.col("age") // 20, "education", "year", "insured"]
    means = pl.col("age", "income").mean()

    def ran(query: pl.LazyFrame) -> Callable[[], Any]:
        return lambda: query.collect(engine="streaming")

    return frame, {
        "table of five columns": ran(frame.group_by(keys).len()),
        "means": ran(frame.select(means)),
        "mean income by region": ran(frame.group_by("region").agg(pl.col("income").mean())),
    }


def duckdb(folder: Path) -> tuple[Any, Own]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set memory_limit = '1GB'")
    frame = connection.read_parquet(str(folder / "*.parquet"))

    def ran(query: str) -> Callable[[], Any]:
        return lambda: frame.query("rows", query).fetchall()

    return frame, {
        "table of five columns": ran(
            "select region, age // 20, education, year, insured, count(*) from rows group by all"
        ),
        "means": ran("select avg(age), avg(income) from rows"),
        "mean income by region": ran("select region, avg(income) from rows group by region"),
    }


def dask(folder: Path) -> tuple[Any, Own]:
    import dask.dataframe as dd

    frame = dd.read_parquet(folder / "*.parquet", split_row_groups=4)
    keys = ["region", "older", "education", "year", "insured"]
    return frame, {
        "table of five columns": lambda: (
            frame.assign(older=frame["age"] // 20).groupby(keys).size().compute()
        ),
        "means": lambda: frame[["age", "income"]].mean().compute(),
        "mean income by region": lambda: frame.groupby("region")["income"].mean().compute(),
    }


ENGINES = {"polars": polars, "duckdb": duckdb, "dask": dask}


# ---------------------------------------------------------------- the releases


def timed(call: Callable[[], Any]) -> tuple[Any, str]:
    """The result of a call, and its seconds: on the clock, and of all processors together."""
    start, used = time.perf_counter(), time.process_time()
    result = call()
    return result, f"{time.perf_counter() - start:>8.2f}{time.process_time() - used:>11.2f}"


def release(folder: Path, engine: str, exact: dict[str, Any], epsilon: float, rng: int | None) -> None:
    """Print released numbers beside the exact ones, and their time beside that of the engine's own query."""
    frame, own = ENGINES[engine](folder)
    with warnings.catch_warnings():
        # the bounds are those that the rows are made with, so of course they are met
        warnings.simplefilter("ignore", pdprivacy.errors.DeclarationWarning)
        private, took = timed(lambda: pdprivacy.protect(frame, SCHEMA, epsilon=epsilon))
    releases = {
        "table of five columns": lambda: private.dp.crosstab(*TABLE, epsilon=epsilon / 2, rng=rng),
        "means": lambda: private.dp.mean(["age", "income"], epsilon=epsilon / 4, rng=rng),
        "mean income by region": lambda: private.dp.groupby("region").mean(
            "income", epsilon=epsilon / 4, rng=rng
        ),
    }
    print(f"{'':<24}{'release':>8}{'processors':>11}{'own query':>11}{'processors':>11}   (seconds)")
    print(f"{'protect':<24}{took}")
    results = {}
    for name, call in releases.items():
        results[name], took = timed(call)
        print(f"{name:<24}{took}   {timed(own[name])[1]}")

    table = results["table of five columns"]
    error = np.abs(table.to_numpy().ravel() - exact["cells"])
    stated = table.dp.metadata.error["plus_minus"]
    print(f"\ntable: {table.size} cells of {exact['rows'] / table.size:,.0f} records on average")
    within = (error <= stated).mean()
    print(f"stated error, 95 %: {stated:g}; cells within: {within:.1%}; largest: {error.max():g}")
    means = results["means"].dp.interval()
    means["exact"] = [exact["age"] / exact["rows"], exact["cents"] / 100 / exact["incomes"]]
    print(f"\n{means.to_string()}")
    print(f"\n{results['mean income by region'].round(2).to_string()}")
    print(f"\n{private.dp.budget}")


def peak() -> float:
    """The most memory of this process so far, in MiB, pages of files included; NaN if not known."""
    try:
        import resource
    except ImportError:
        return math.nan
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description="Releases from a table larger than memory.")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--engine", choices=ENGINES, default="polars")
    parser.add_argument("--folder", type=Path, help="where the files are made (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the files in --folder")
    parser.add_argument("--limit", type=float, default=2048, help="MiB of memory (default: 2048)")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, help="repeats the noise: for tests, never for real releases")
    options = parser.parse_args()
    if options.rows < 1:
        parser.error("--rows must be at least 1")
    if options.keep and options.folder is None:
        parser.error("--keep needs --folder")
    with contextlib.ExitStack() as stack:
        parent = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = parent / f"rows-{options.rows}"
        if not options.keep:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        exact = make(folder, options.rows)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{options.rows:,} rows of seven columns")
        print(f"{size / 2**20:,.0f} MiB of Parquet, {exact['bytes'] / 2**20:,.0f} MiB as Arrow tables")
        print(f"peak memory so far: {peak():,.0f} MiB")
        print(f"{options.engine} {version(options.engine)}, Python {platform.python_version()}\n")
        release(folder, options.engine, exact, options.epsilon, options.seed)
    print(f"\npeak memory of this process: {peak():,.0f} MiB (limit {options.limit:,.0f} MiB)")
    if peak() > options.limit:
        raise SystemExit("That is more than the limit.")


if __name__ == "__main__":
    main()
