"""Speed and memory of sums and tables per engine against its own query, runs interleaved; run by hand.

    python tests/benchmarks/engines_speed.py [rows] [engine ...]

Ten million rows by default. A ratio is the median over rounds of one run of ours over one run of the
engine's own query right after it, which clamps nothing and leaves nothing out. A peak is that of a process
of its own, above what it takes with the frame in memory (Linux only).
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pdprivacy.core.engines.other import NarwhalsEngine
from pdprivacy.core.statistics import quantity
from pdprivacy.declaration.domain import Column

TARGET = 1.15
REGIONS = ("midwest", "northeast", "south", "west")
INCOME = Column("income", "float", nullable=True, lower=0, upper=10)
AGE = Column("age", "integer", lower=18, upper=65)
REGION = Column("region", "category", categories=REGIONS)
MEMBER = Column("member", "boolean")
ENGINES = {"polars": "polars", "lazy": "polars", "duckdb": "duckdb", "dask": "dask", "pyarrow": "pyarrow"}

missed = 0


def made(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "income": rng.uniform(-1, 11, rows),
            "age": rng.integers(18, 66, rows),
            "region": pa.array(REGIONS).take(pa.array(rng.integers(0, 4, rows))),
            "member": rng.random(rows) < 0.3,
        }
    )


Own = dict[str, Callable[[], Any]]


def opened(engine: str, table: pa.Table) -> tuple[Any, Own]:
    """The frame and the engine's own queries of it."""
    if engine in ("polars", "lazy"):
        import polars as pl

        frame = pl.from_arrow(table)
        lazy = frame.lazy()

        def ran(query: Any) -> Any:
            return query.collect(engine="streaming")

        return frame if engine == "polars" else lazy, {
            "sum": lambda: ran(lazy.select(pl.col("income").sum())),
            "mean": lambda: ran(lazy.select(pl.col("age").mean())),
            "table of ages": lambda: ran(lazy.group_by("age").len()),
            "table of regions": lambda: ran(lazy.group_by("region").len()),
            "table of regions and members": lambda: ran(lazy.group_by("region", "member").len()),
            "sums by region": lambda: ran(lazy.group_by("region").agg(pl.len(), pl.col("income").sum())),
        }
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.register("given", table)
        connection.execute("create table held as select * from given")

        def asked(query: str) -> Callable[[], Any]:
            return lambda: connection.execute(query).fetchall()

        return connection.table("held"), {
            "sum": asked("select sum(income) from held"),
            "mean": asked("select avg(age) from held"),
            "table of ages": asked("select age, count(*) from held group by age"),
            "table of regions": asked("select region, count(*) from held group by region"),
            "table of regions and members": asked(
                "select region, member, count(*) from held group by region, member"
            ),
            "sums by region": asked("select region, count(*), sum(income) from held group by region"),
        }
    if engine == "dask":
        import dask.dataframe as dd

        frame = dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=10, sort=False)
        return frame, {
            "sum": lambda: frame["income"].sum().compute(),
            "mean": lambda: frame["age"].mean().compute(),
            "table of ages": lambda: frame.groupby("age").size().compute(),
            "table of regions": lambda: frame.groupby("region").size().compute(),
            "table of regions and members": lambda: frame.groupby(["region", "member"]).size().compute(),
            "sums by region": lambda: frame.groupby("region")["income"].agg(["count", "sum"]).compute(),
        }
    return table, {
        "sum": lambda: pc.sum(table["income"]),
        "mean": lambda: pc.mean(table["age"]),
        "table of ages": lambda: table.group_by("age").aggregate([([], "count_all")]),
        "table of regions": lambda: table.group_by("region").aggregate([([], "count_all")]),
        "table of regions and members": lambda: table.group_by(["region", "member"]).aggregate(
            [([], "count_all")]
        ),
        "sums by region": lambda: table.group_by("region").aggregate([([], "count_all"), ("income", "sum")]),
    }


def ours(frame: Any) -> Own:
    engine = NarwhalsEngine(frame)
    income, age = quantity(INCOME, "sum"), quantity(AGE, "mean")
    return {
        "sum": lambda: engine.sum(income),
        "mean": lambda: engine.sum(age),
        "table of ages": lambda: engine.table([AGE], "crosstab"),
        "table of regions": lambda: engine.table([REGION], "crosstab"),
        "table of regions and members": lambda: engine.table([REGION, MEMBER], "crosstab"),
        "sums by region": lambda: engine.grouped([income], [REGION], "groupby", products=False),
    }


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def taken(field: str) -> float:
    """The memory of this process in MB: ``VmRSS``, what it takes, or ``VmHWM``, the most it took."""
    with open("/proc/self/status") as status:
        entry = next(line for line in status if line.startswith(field))
    return int(entry.split()[1]) / 1024


def measured(engine: str, rows: int, rounds: int = 5) -> None:
    """Print the ratios of one engine."""
    global missed
    frame, own = opened(engine, made(rows))
    for name, run in ours(frame).items():
        run()
        own[name]()
        gc.collect()
        pairs = [(seconds(run), seconds(own[name])) for _ in range(rounds)]
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        met = ratio <= TARGET
        missed += not met
        mine, theirs = (1e3 * statistics.median(side) for side in zip(*pairs, strict=True))
        print(
            f"{engine:8} {name:30} {mine:8.1f} ms {theirs:8.1f} ms  ratio {ratio:6.2f} "
            f"(target {TARGET}) {'ok' if met else 'MISSED'}",
            flush=True,
        )


def memory(engine: str, rows: int, whose: str) -> None:
    """Print the peak of all queries of one side, in a process that did nothing else."""
    frame, own = opened(engine, made(rows))
    gc.collect()
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")  # forget the most it took so far
    before = taken("VmRSS")
    for run in (ours(frame) if whose == "ours" else own).values():
        run()
    print(f"{taken('VmHWM') - before:.0f}")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["memory"]:
        memory(arguments[1], int(arguments[2]), arguments[3])
        return 0
    rows = int(float(arguments[0])) if arguments else 10_000_000
    print(f"{rows} rows, {os.cpu_count()} processors, Python {platform.python_version()}")
    for engine in arguments[1:] or ENGINES:
        try:
            print(f"{engine}: {ENGINES[engine]} {version(ENGINES[engine])}, narwhals {version('narwhals')}")
        except PackageNotFoundError as absent:
            print(f"{engine}: skipped, {absent}")
            continue
        measured(engine, rows)
        extra = [
            subprocess.run(
                [sys.executable, __file__, "memory", engine, str(rows), whose],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for whose in ("ours", "theirs")
        ]
        print(f"{engine:8} peak above the frame: ours {extra[0]} MB, its own {extra[1]} MB", flush=True)
    print(f"{missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
