"""Speed and memory of releases per engine, over its own queries and over other libraries; run by hand.

    python tests/benchmarks/peers_engines.py [--rows ROWS] [--only PART ...] [--environments FOLDER]
    python tests/benchmarks/peers_engines.py --only opendp --opendp-python ENVIRONMENT/bin/python

Ten million rows of four columns by default, in ten files of Parquet. Every contestant is a process of its
own, and the two of a ratio take turns, run by run, while the other waits. A ratio is the median over rounds
of one run of ours over one run of the other right after it; that of the least times, which a busy machine
disturbs least, is held to the target; that of the processor time used, by all threads but not by Spark's
virtual machine, stands beside it. The other answers the same question of the same data: engines without
noise, clamping nothing; OpenDP and Tumult for the same epsilon, bounds, keys and neighbours (a record more or
less); diffprivlib a mean under replaced records and a table under a record more or less. A release
clamps each number and leaves out what is none, so engines are asked for sums and means of numbers clamped and
cleared in that way, too ("the same sum"): what it costs beyond them is to be exact, charged and noisy.

Memory is the most that a process ever took, and what that is above what it took once its frame was opened;
of Spark with its virtual machine, whose heap may take 4 GiB (Linux only).

Other libraries live in environments of their own, since they pin engines: they are given by an option, or
made by pip in FOLDER and found there the next time. What cannot be installed is skipped with the reason. Ours
runs in this environment, on Spark in that of ``--spark-python``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, TypeAlias

FILES = 10
STATISTICS = ("count", "sum", "table", "mean")
SAME = ("same sum", "same mean")  # of numbers clamped and cleared, as a release reads them
LABELS = {
    "region": ["east", "north", "south", "west"],
    "sex": ["female", "male"],
    "school": [f"grade {number:02d}" for number in range(16)],
}
KEYS = list(LABELS)
MODULES = {
    "ours": "pdprivacy",
    "opendp": "opendp.prelude",
    "diffprivlib": "diffprivlib",
    "tumult": "tmlt.analytics",
}
LOWER, UPPER = 0.0, 100.0
MANY_ROWS = 100_000_000  # a public upper bound on the rows, which OpenDP asks for
EPSILON = 1.0
BUDGET = 10**6
CLOSE = 0.01  # how near two answers of one question are, at a million rows and more

OWN, OPENDP, DIFFPRIVLIB, TUMULT = 1.15, 0.2, {"mean": 0.5, "table": 0.05, "categories": 0.05}, 0.3
ENGINES = ("polars scan", "polars", "duckdb scan", "duckdb", "dask")
PACKAGES = {
    "opendp": ["opendp[polars]>=0.16"],
    "diffprivlib": ["diffprivlib>=0.6.6", "scikit-learn<1.6", "pyarrow"],  # newer ones cannot be imported
    "tumult": ["tmlt.analytics>=0.21"],
}

MISSING = ("ModuleNotFoundError", "MissingExtraError")

Runs: TypeAlias = dict[str, Callable[[], Any]]

missed = 0


# ---------------------------------------------------------------- data


def make(rows: int, folder: Path) -> None:
    """The data, in files of equal sizes; no more than one of them is in memory."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for number in range(FILES):
        size = rows * (number + 1) // FILES - rows * number // FILES
        drawn = {
            name: pa.array(labels).take(pa.array(rng.integers(0, len(labels), size)))
            for name, labels in LABELS.items()
        }
        table = pa.table({"income": rng.uniform(LOWER, UPPER, size), **drawn})
        pq.write_table(table, folder / f"{number}.parquet")


def coded(folder: str) -> dict[str, Any]:
    """The data in arrays of numpy: labels as their numbers, which is all that diffprivlib counts."""
    import numpy as np
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(folder)
    codes = {name: np.zeros(len(table), dtype=np.int64) for name in KEYS}
    for name, labels in LABELS.items():
        for number, label in enumerate(labels):
            codes[name][pc.equal(table[name], label).to_numpy()] = number
    return {"income": table["income"].to_numpy(), **codes}


# ---------------------------------------------------------------- ours


def opened(engine: str, folder: str) -> Any:
    """The frame of an engine; lazy where its name says scan, and on Dask and Spark."""
    if engine in ("pandas", "diffprivlib"):
        return coded(folder)
    if engine.startswith("polars"):
        import polars as pl

        return pl.scan_parquet(f"{folder}/*.parquet") if "scan" in engine else pl.read_parquet(folder)
    if engine.startswith("duckdb"):
        import duckdb

        connection = duckdb.connect()
        if "scan" in engine:
            return connection.read_parquet(f"{folder}/*.parquet")
        connection.execute(f"create table held as from '{folder}/*.parquet'")
        return connection.table("held")
    if engine == "dask":
        import dask.dataframe as dd

        return dd.read_parquet(folder)
    return spark().read.parquet(folder)


def spark() -> Any:
    """A session of Spark on this machine alone."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
    }
    builder = SparkSession.builder.master("local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("FATAL")
    return session


def declared(*, codes: bool = False) -> Any:
    import pandera.pandas as pa

    income = pa.Column(float, pa.Check.in_range(LOWER, UPPER), metadata={"dp": {}})
    if codes:
        ranges = {name: pa.Check.in_range(0, len(labels) - 1) for name, labels in LABELS.items()}
        return pa.DataFrameSchema(
            {"income": income, **{name: pa.Column(int, ranges[name], metadata={"dp": {}}) for name in KEYS}}
        )
    among = {name: pa.Check.isin(labels) for name, labels in LABELS.items()}
    return pa.DataFrameSchema(
        {"income": income, **{name: pa.Column(None, among[name], metadata={"dp": {}}) for name in KEYS}}
    )


def released(private: Any) -> Runs:
    return {
        "count": lambda: float(private.dp.count(epsilon=EPSILON)["rows"]),
        "sum": lambda: float(private.dp.sum("income", epsilon=EPSILON)["income"]),
        "mean": lambda: float(private.dp.mean("income", epsilon=EPSILON)["income"]),
        "table": lambda: float(private.dp.crosstab(KEYS[:2], KEYS[2], epsilon=EPSILON).to_numpy().sum()),
    }


def ours(engine: str, frame: Any) -> Runs:
    import pdprivacy

    if engine != "pandas":
        schema = declared()
        # protecting reads the whole frame once, which the engine's own query does not
        private = pdprivacy.protect(frame, schema, epsilon=BUDGET)
        return {
            **(runs := released(private)),
            **{task: runs[task.removeprefix("same ")] for task in SAME},
            "protect": lambda: pdprivacy.protect(frame, schema, epsilon=BUDGET) and None,
        }
    import pandas as pd

    arrays = pd.DataFrame(frame)
    means = pdprivacy.protect(arrays, declared(codes=True), epsilon=BUDGET, neighbors="replace_one")
    tables = pdprivacy.protect(arrays, declared(codes=True), epsilon=BUDGET)
    labelled = arrays.assign(
        **{
            name: pd.Categorical.from_codes(arrays[name].to_numpy(), labels)
            for name, labels in LABELS.items()
        }
    )
    categories = pdprivacy.protect(labelled, declared(), epsilon=BUDGET)
    return {
        "mean": released(means)["mean"],
        "table": released(tables)["table"],
        "categories": released(categories)["table"],
    }


# ---------------------------------------------------------------- engines by themselves


def own(engine: str, frame: Any) -> Runs:
    """The engine's own queries."""
    if engine.startswith("polars"):
        import polars as pl

        def ran(query: Any) -> float:
            return float(query.collect(engine="streaming").to_series(-1).sum())

        lazy = frame.lazy()
        clipped = pl.col("income").fill_nan(None).clip(LOWER, UPPER)
        return {
            "same sum": lambda: ran(lazy.select(clipped.sum())),
            "same mean": lambda: ran(lazy.select(clipped.mean())),
            "count": lambda: ran(lazy.select(pl.len())),
            "sum": lambda: ran(lazy.select(pl.col("income").sum())),
            "mean": lambda: ran(lazy.select(pl.col("income").mean())),
            "table": lambda: ran(lazy.group_by(KEYS).len()),
        }
    if engine.startswith("duckdb"):
        columns = ", ".join(KEYS)
        clipped = f"(least(greatest(income, {LOWER}), {UPPER})) filter (not isnan(income))"

        def asked(expression: str, keys: str = "") -> float:
            return float(sum(row[-1] for row in frame.aggregate(expression, keys).fetchall()))

        return {
            "count": lambda: asked("count(*)"),
            "same sum": lambda: asked(f"sum{clipped}"),
            "same mean": lambda: asked(f"avg{clipped}"),
            "sum": lambda: asked("sum(income)"),
            "mean": lambda: asked("avg(income)"),
            "table": lambda: asked(f"{columns}, count(*)", columns),
        }
    if engine == "dask":
        clipped = frame["income"].clip(LOWER, UPPER)  # NaN is left out by itself
        return {
            "same sum": lambda: float(clipped.sum().compute()),
            "same mean": lambda: float(clipped.mean().compute()),
            "count": lambda: float(len(frame)),
            "sum": lambda: float(frame["income"].sum().compute()),
            "mean": lambda: float(frame["income"].mean().compute()),
            "table": lambda: float(frame.groupby(KEYS).size().compute().sum()),
        }
    from pyspark.sql import functions as f

    clipped = frame.where(~f.isnan("income")).select(
        f.least(f.greatest("income", f.lit(LOWER)), f.lit(UPPER)).alias("income")
    )
    return {
        "same sum": lambda: float(clipped.agg(f.sum("income")).collect()[0][0]),
        "same mean": lambda: float(clipped.agg(f.avg("income")).collect()[0][0]),
        "count": lambda: float(frame.count()),
        "sum": lambda: float(frame.agg(f.sum("income")).collect()[0][0]),
        "mean": lambda: float(frame.agg(f.avg("income")).collect()[0][0]),
        "table": lambda: float(sum(row[-1] for row in frame.groupBy(KEYS).count().collect())),
    }


# ---------------------------------------------------------------- other libraries


class InParts:
    """A run in two parts, of which the second alone reads the data: `read` is how long that took."""

    def __init__(self, prepare: Callable[[], Any], query: Callable[[Any], Any]) -> None:
        self._prepare, self._query, self.read = prepare, query, 0.0
        self._context = prepare()

    def __call__(self) -> float:
        planned = self._query(self._context)
        start = time.perf_counter()
        result = planned.collect()
        self.read = time.perf_counter() - start
        return float(result["len" if "len" in result.columns else "income"].sum())

    def renew(self) -> None:
        """A new budget, which no time is counted for."""
        self._context = self._prepare()


def opendp(frame: Any) -> Runs:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    keys = pl.LazyFrame({"region": LABELS["region"]})
    for name in KEYS[1:]:
        keys = keys.join(pl.LazyFrame({name: LABELS[name]}), how="cross")
    declared_keys = keys.collect().lazy()

    def context() -> Any:
        return dp.Context.compositor(
            data=frame.lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=MANY_ROWS)],
        )

    income = pl.col("income").dp
    queries: dict[str, Callable[[Any], Any]] = {
        "count": lambda budget: budget.query().select(dp.len()).release(),
        "sum": lambda budget: budget.query().select(income.sum((LOWER, UPPER))).release(),
        "mean": lambda budget: budget.query().select(income.mean((LOWER, UPPER))).release(),
        "table": lambda budget: (
            budget.query().group_by(KEYS).agg(dp.len()).with_keys(declared_keys).release()
        ),
    }
    return {name: InParts(context, query) for name, query in queries.items()}


def diffprivlib(arrays: dict[str, Any]) -> Runs:
    import numpy as np
    from diffprivlib import tools

    sample = np.stack([arrays[name] for name in KEYS], axis=1)
    bins = [len(labels) for labels in LABELS.values()]
    ends = [(-0.5, size - 0.5) for size in bins]

    def table() -> float:
        return float(tools.histogramdd(sample, epsilon=EPSILON, bins=bins, range=ends)[0].sum())

    return {
        "mean": lambda: float(tools.mean(arrays["income"], epsilon=EPSILON, bounds=(LOWER, UPPER))),
        "table": table,
        "categories": table,
    }


def tumult(frame: Any) -> Runs:
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    session = Session.from_dataframe(
        PureDPBudget(float("inf")), "people", frame, protected_change=AddOneRow()
    )
    people = QueryBuilder("people")
    queries = {
        "count": people.count(name="answer"),
        "sum": people.sum("income", LOWER, UPPER, name="answer"),
        "mean": people.average("income", LOWER, UPPER, name="answer"),
        "table": people.groupby(KeySet.from_dict(LABELS)).count(name="answer"),
    }

    def run(query: Any) -> Callable[[], float]:
        return lambda: float(
            sum(row["answer"] for row in session.evaluate(query, PureDPBudget(EPSILON)).collect())
        )

    return {name: run(query) for name, query in queries.items()}


# ---------------------------------------------------------------- a process per contestant


def contestant(whose: str, engine: str, frame: Any) -> Runs:
    if whose in ("ours", "own"):
        return {"ours": ours, "own": own}[whose](engine, frame)
    return {"opendp": opendp, "diffprivlib": diffprivlib, "tumult": tumult}[whose](frame)


def taken(field: str) -> float:
    """The memory of this process and those below it in MB: ``VmRSS``, now, or ``VmHWM``, at most."""
    status = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            status[int(lines["Pid"])] = (int(lines["PPid"]), int(lines.get(field, "0 kB").split()[0]) / 1024)
    total, below = 0.0, [os.getpid()]
    while below:
        above = below.pop()
        total += status[above][1]
        below += [process for process, (parent, _) in status.items() if parent == above]
    return total


def work(name: str, folder: str, answers: IO[str]) -> None:
    """Open the data, then run what each line of the input names; one line of JSON answers each."""

    def answer(**facts: Any) -> None:
        print(json.dumps(facts), file=answers, flush=True)

    whose, _, engine = name.partition(": ")
    if whose in MODULES:
        import_module(MODULES[whose])
    frame = opened(engine or whose, folder)
    baseline = taken("VmRSS")
    runs = contestant(whose, engine, frame)
    for run in runs.values():
        if isinstance(run, InParts):
            run.renew()
    packages = (
        "polars",
        "duckdb",
        "dask",
        "pandas",
        "pyspark",
        "narwhals",
        "opendp",
        "diffprivlib",
        "tmlt.analytics",
    )
    known = {}
    for package in packages:
        with contextlib.suppress(Exception):
            known[package] = version(package)
    answer(versions={package: known[package] for package in known if package.split(".")[0] in sys.modules})
    for line in sys.stdin:
        request = line.strip()
        if request == "memory":
            peak = taken("VmHWM")
            answer(peak=peak, above=peak - baseline)
            continue
        run = runs[request]
        start, used = time.perf_counter(), time.process_time()
        value = run()
        seconds, used = time.perf_counter() - start, time.process_time() - used
        read = run.read if isinstance(run, InParts) else seconds
        answer(seconds=seconds, used=used, value=value, read=read)
        if isinstance(run, InParts):
            run.renew()


class AbsentError(Exception):
    """Why a contestant does not take part."""


class Contestant:
    """A contestant in a process of its own, which waits between its runs."""

    def __init__(self, name: str, python: str, folder: Path) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [python, __file__, "--work", name, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        try:
            self.versions = self._answer()["versions"]
        except RuntimeError as reason:
            # a failure of ours is none of what is absent
            if name in PACKAGES or name.startswith("opendp") or any(kind in str(reason) for kind in MISSING):
                raise AbsentError(str(reason)) from None
            raise

    def ask(self, request: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(request, file=self._process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            errors = [text for text in self._errors.read().splitlines() if text.strip()]
            raise RuntimeError(f"{self.name}: {errors[-1] if errors else 'it ended'}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def started(name: str, python: str, folder: Path) -> Iterator[Contestant]:
    runner = Contestant(name, python, folder)
    try:
        yield runner
    finally:
        runner.close()


def environment(peer: str, interpreter: str | None, folder: Path | None) -> str:
    """The Python of an environment that has a library; made where there is none."""
    if interpreter is not None:
        return interpreter
    if folder is None:
        raise AbsentError(f"{peer}: no environment; give --{peer}-python or --environments")
    python = folder / peer / "bin" / "python"
    marker = folder / peer / "installed"
    if not marker.exists():
        venv.create(folder / peer, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES[peer]]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode:
            errors = [line for line in tried.stderr.splitlines() if line.startswith("ERROR")]
            raise AbsentError(f"{peer}: {errors[0] if errors else 'pip failed'}")
        marker.touch()
    return str(python)


# ---------------------------------------------------------------- comparisons


def versus(mine: Contestant, other: Contestant, task: str, target: float, rounds: int) -> None:
    """The ratio of two runs, interleaved, after one run of each that is not counted."""
    global missed
    first = mine.ask(task)["value"], other.ask(task)["value"]
    if abs(first[0] - first[1]) > CLOSE * abs(first[1]):
        raise RuntimeError(f"{mine.name} and {other.name} answer different questions: {task}.")
    pairs = [(mine.ask(task), other.ask(task)) for _ in range(rounds)]
    seconds = [(left["seconds"], right["seconds"]) for left, right in pairs]
    least = [min(side) for side in zip(*seconds, strict=True)]
    used = [min(side) for side in zip(*((left["used"], right["used"]) for left, right in pairs), strict=True)]
    ratio = least[0] / least[1]
    met = ratio <= target
    missed += not met
    read = min(right["read"] for _, right in pairs)
    part = "" if read > 0.9 * least[1] else f"  of which {1e3 * read:.0f} ms read the data"
    print(
        f"  {task:<12}{1e3 * least[0]:>10.1f}{1e3 * least[1]:>10.1f}{ratio:>9.3f}"
        f"{statistics.median(left / right for left, right in seconds):>9.3f}"
        f"{used[0] / max(used[1], 1e-6):>9.3f}{target:>8.4g}  "
        f"{'ok' if met else 'MISSED'}{part}",
        flush=True,
    )


def compared(
    pair: tuple[str, str], pythons: tuple[str, str], targets: dict[str, float], folder: Path, rounds: int
) -> None:
    """All statistics of two contestants, then their memory."""
    with started(pair[0], pythons[0], folder) as mine, started(pair[1], pythons[1], folder) as other:
        print(
            f"{' / '.join(pair)}: "
            + "; ".join(", ".join(f"{k} {v}" for k, v in runner.versions.items()) for runner in (mine, other))
        )
        for task, target in targets.items():
            versus(mine, other, task, target, rounds)
        for runner in (mine, other):
            memory = runner.ask("memory")
            print(
                f"{runner.name:<28}memory {memory['peak']:>9.0f} MB, {memory['above']:.0f} MB above its frame"
            )
        if mine.name != "ours: pandas":
            mine.ask("protect")
            print(f"{mine.name:<28}protect{1e3 * min(mine.ask('protect')['seconds'] for _ in '12'):>10.1f}")


def everything(options: argparse.Namespace, folder: Path) -> Iterator[Callable[[], None]]:
    """The comparisons asked for, each to be run by itself."""
    python, rounds = sys.executable, options.rounds

    def against(
        pair: tuple[str, str], peer: str | None, targets: dict[str, float], home: str = python
    ) -> Callable[[], None]:
        def run() -> None:
            interpreter = None if peer is None else getattr(options, f"{peer}_python")
            other = home if peer is None else environment(peer, interpreter, options.environments)
            # a mean of Tumult takes minutes, however few the rows
            compared(pair, (home, other), targets, folder, min(rounds, 2) if peer == "tumult" else rounds)

        return run

    def all_to(target: float, more: Sequence[str] = ()) -> dict[str, float]:
        return dict.fromkeys([*STATISTICS, *more], target)

    if "own" in options.only:
        for engine in ENGINES:
            yield against((f"ours: {engine}", f"own: {engine}"), None, all_to(OWN, SAME))
    if "spark" in options.only:
        yield against(("ours: spark", "own: spark"), None, all_to(OWN, SAME), options.spark_python)
    if "opendp" in options.only:
        for engine in ("polars scan", "polars"):
            yield against((f"ours: {engine}", f"opendp: {engine}"), "opendp", all_to(OPENDP))
    if "diffprivlib" in options.only:
        yield against(("ours: pandas", "diffprivlib"), "diffprivlib", DIFFPRIVLIB)
    if "tumult" in options.only:
        yield against(("ours: spark", "tumult"), "tumult", all_to(TUMULT), options.spark_python)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--work"]:
        answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
        work(arguments[1], arguments[2], answers)
        return 0
    parts = ("own", "spark", "opendp", "diffprivlib", "tumult")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--environments", type=Path, help="folder of environments, made where missing")
    for peer in PACKAGES:
        parser.add_argument(f"--{peer}-python", help=f"the Python of an environment that has {peer}")
    parser.add_argument("--spark-python", default=sys.executable, help="of pdprivacy with pyspark")
    options = parser.parse_args(arguments)
    print(f"{options.rows} rows, {os.cpu_count()} processors, Python {platform.python_version()}")
    print(f"{'':<14}{'ours ms':>10}{'other ms':>10}{'ratio':>9}{'median':>9}{'used':>9}{'target':>8}")
    with tempfile.TemporaryDirectory() as directory:
        make(options.rows, Path(directory))
        for comparison in everything(options, Path(directory)):
            try:
                comparison()
            except AbsentError as reason:
                print(f"skipped, {reason}", flush=True)
    print(f"{missed} over their targets")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
