"""The requests of `peers.py` to each library, in a process of its own with that library alone.

    python tests/benchmarks/peers_libraries.py LIBRARY

Each line of the input is a request, each line of the output its answer, both JSON. A release is asked for as
the documentation of its library does; what a user does once (reading the file, declaring, opening a budget)
is prepared before and not timed. Nothing is seeded.
"""

from __future__ import annotations

import contextlib
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

MODULES = {"opendp": "opendp.prelude"}
UNITS = {"add_remove": "contributions", "replace_one": "changes"}  # as OpenDP calls them
TABLE = ("region", "education")
BUDGET = 10**6
QUERIES = 100
KEPT = (
    "pdprivacy",
    "opendp",
    "diffprivlib",
    "privjail",
    "pandas",
    "polars",
    "numpy",
    "scikit-learn",
    "pyarrow",
    "jax",
)

Answer: TypeAlias = "list[float]"


class Release(NamedTuple):
    """One statistic of one library: `ask` is timed, with what `prepare` gave; `read` its numbers in order."""

    prepare: Callable[[], Any]
    ask: Callable[[Any], Any]
    read: Callable[[Any], Answer]
    spent: Callable[[Any], float]  # what the library itself says that this release cost
    law: Callable[[], Callable[[], Answer]] | None = None  # draws of the same law, where that is quicker

    def once(self) -> Answer:
        return self.read(self.ask(self.prepare()))


Releases: TypeAlias = "dict[str, Release]"


def single(value: Any) -> Answer:
    return [float(value)]


def cells(result: Any) -> Answer:
    return [float(cell) for cell in result.to_numpy().ravel()]


# ---------------------------------------------------------------- ours


def pdprivacy(folder: Path, request: dict[str, Any], relation: str) -> Releases:
    import pandas as pd
    import pandera.pandas as pa

    import pdprivacy as library

    frame = pd.read_parquet(folder / "data.parquet")
    bounds, metadata = pa.Check.in_range(request["lower"], request["upper"]), {"dp": {}}
    if "pay" in frame:
        columns = {"pay": pa.Column(float, bounds, nullable=True, metadata=metadata)}
    else:
        columns = {"age": pa.Column(int, bounds, metadata={"dp": {"bins": request["edges"]}})}
        for name, labels in request["labels"].items():
            columns[name] = pa.Column(str, pa.Check.isin(labels), metadata=metadata)
    private = library.protect(
        frame, pa.DataFrameSchema(columns), epsilon=BUDGET, neighbors=relation, on_invalid="clip"
    )
    epsilon = request["epsilon"]

    def release(call: Callable[[], Any]) -> Release:
        return Release(
            prepare=lambda: private.dp.budget.spent[0],
            ask=lambda _: call(),
            read=cells,
            spent=lambda before: float(private.dp.budget.spent[0] - before),
        )

    if "pay" in frame:
        return {"mean": release(lambda: private.dp.mean("pay", epsilon=epsilon))}
    return {
        "count": release(lambda: private.dp.query("health == 'no'").dp.count(epsilon=epsilon)),
        "sum": release(lambda: private.dp.sum("age", epsilon=epsilon)),
        "mean": release(lambda: private.dp.mean("age", epsilon=epsilon)),
        "variance": release(lambda: private.dp.var("age", epsilon=epsilon)),
        "histogram": release(lambda: private.dp.histogram("age", epsilon=epsilon)),
        "table": release(lambda: private.dp.crosstab(*TABLE, epsilon=epsilon)),
    }


# ---------------------------------------------------------------- OpenDP


def opendp(folder: Path, request: dict[str, Any], relation: str) -> Releases:
    import numpy as np
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame = pl.read_parquet(folder / "data.parquet")
    known = {"invariant": "lengths"} if relation == "replace_one" else {}
    margins = [dp.polars.Margin(max_length=request["many"], **known)]
    epsilon = request["epsilon"]

    def session(**data: Any) -> Callable[[], Any]:
        """A context of many queries, and what it has spent; renewed at times, since its sums take longer."""
        contexts: list[Any] = []

        def context() -> tuple[Any, float]:
            if not contexts:
                unit = dp.unit_of(**{UNITS[relation]: 1})
                loss = dp.loss_of(epsilon=QUERIES * epsilon)
                contexts[:] = [dp.Context.compositor(privacy_unit=unit, privacy_loss=loss, **data)] * QUERIES
            compositor = contexts.pop()
            return compositor, float(np.sum(compositor.current_privacy_loss()))

        return context

    def collected(result: Any) -> Any:
        return result.collect() if hasattr(result, "collect") else result  # frames are not computed before

    def release(
        context: Callable[[], Any], query: Callable[[Any], Any], read: Callable[[Any], Answer]
    ) -> Release:
        def law() -> Callable[[], Answer]:
            resolved = query(context()[0].query(epsilon=epsilon)).resolve()
            return lambda: read(collected(context()[0](resolved)))

        return Release(
            prepare=context,
            ask=lambda state: collected(query(state[0].query(epsilon=epsilon)).release()),
            read=read,
            spent=lambda state: float(np.sum(state[0].current_privacy_loss())) - state[1],
            law=law,
        )

    def number(result: Any) -> Answer:
        return [float(result.item())]

    tables = session(data=frame.lazy(), margins=margins)

    if "pay" in frame.columns:
        within = (float(request["lower"]), float(request["upper"]))
        return {"mean": release(tables, lambda query: query.select(pl.col("pay").dp.mean(within)), number)}
    age, bounds = pl.col("age"), (request["lower"], request["upper"])
    inner = request["edges"][1:-1]
    bins = [f"bin {number:02d}" for number in range(len(inner) + 1)]
    keys = pl.LazyFrame({"bin": bins})
    pairs = [
        (first, second) for first in request["labels"][TABLE[0]] for second in request["labels"][TABLE[1]]
    ]
    crossed = pl.LazyFrame(pairs, schema=list(TABLE), orient="row")

    def in_order(by: list[str], ordered: list[Any]) -> Callable[[Any], Answer]:
        def read(result: Any) -> Answer:
            counted = {row[:-1]: row[-1] for row in result.select(*by, "len").rows()}
            return [float(counted[key]) for key in ordered]

        return read

    def histogram(query: Any) -> Any:
        cut = age.cut(inner, labels=bins, left_closed=True).cast(pl.String).alias("bin")
        return query.with_columns(cut).group_by("bin").agg(dp.len(signed=True)).with_keys(keys)

    def table(query: Any) -> Any:
        return query.group_by(*TABLE).agg(dp.len(signed=True)).with_keys(crossed)

    releases = {
        "count": release(
            tables, lambda query: query.filter(pl.col("health") == "no").select(dp.len(signed=True)), number
        ),
        "sum": release(tables, lambda query: query.select(age.dp.sum(bounds)), number),
        "mean": release(tables, lambda query: query.select(age.dp.mean(bounds)), number),
        "histogram": release(tables, histogram, in_order(["bin"], [(name,) for name in bins])),
        "table": release(tables, table, in_order(list(TABLE), pairs)),
    }
    if relation == "replace_one":
        values = frame["age"].cast(pl.Float64).to_numpy()
        sized = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values))
        within = (float(request["lower"]), float(request["upper"]))
        releases["variance"] = release(
            session(data=values, domain=sized),
            lambda query: query.metric_unbounded().clamp(within).variance(ddof=0).laplace(),
            single,
        )
    return releases


# ---------------------------------------------------------------- diffprivlib


def diffprivlib(folder: Path, request: dict[str, Any], relation: str) -> Releases:
    import numpy as np
    import pyarrow.parquet as pq
    from diffprivlib import BudgetAccountant, tools

    read = pq.read_table(folder / "data.parquet")
    arrays = {name: read[name].to_numpy() for name in read.column_names}
    bounds = (request["lower"], request["upper"])
    epsilon = request["epsilon"]

    def release(call: Callable[[Any], Any], read: Callable[[Any], Answer] = single) -> Release:
        return Release(
            prepare=lambda: BudgetAccountant(epsilon=epsilon),
            ask=call,
            read=read,
            spent=lambda accountant: float(accountant.total()[0]),
        )

    def by_bounds(function: Callable[..., Any], values: Any) -> Release:
        return release(
            lambda accountant: function(values, epsilon=epsilon, bounds=bounds, accountant=accountant)
        )

    if "pay" in arrays:
        pay = arrays["pay"].astype(float)
        return {name: by_bounds(getattr(tools, name), pay) for name in ("mean", "nanmean")}
    age, health, labels = arrays["age"], arrays["health"], request["labels"]
    # it counts numbers, not labels
    codes = [sum(k * (arrays[name] == label) for k, label in enumerate(labels[name])) for name in TABLE]
    sizes = [len(labels[name]) for name in TABLE]
    ends = [(-0.5, size - 0.5) for size in sizes]

    def histogram(accountant: Any) -> Any:
        return tools.histogram(
            age, epsilon=epsilon, bins=request["edges"], range=bounds, accountant=accountant
        )[0]

    def table(accountant: Any) -> Any:
        return tools.histogram2d(*codes, epsilon=epsilon, bins=sizes, range=ends, accountant=accountant)[0]

    def listed(result: Any) -> Answer:
        return [float(number) for number in np.ravel(result)]

    counts = {"histogram": release(histogram, listed), "table": release(table, listed)}
    if relation == "add_remove":
        return counts
    return {
        "count": release(
            lambda accountant: tools.count_nonzero(health == "no", epsilon=epsilon, accountant=accountant)
        ),
        "sum": by_bounds(tools.sum, age),
        "mean": by_bounds(tools.mean, age),
        "variance": by_bounds(tools.var, age),
        **counts,
    }


# ---------------------------------------------------------------- PrivJail


def privjail(folder: Path, request: dict[str, Any], relation: str) -> Releases:
    import privjail as library
    from privjail import pandas as ppd

    if relation != "add_remove":
        return {}
    lower, upper = request["lower"], request["upper"]
    columns: dict[str, Any] = {
        "age": {"type": "int64", "range": [None, None]},
        # the declared range is taken on trust, so that only `clip` makes it true
        "pay": {"type": "float64", "range": [float(lower), float(upper)]},
    }
    for name, labels in request["labels"].items():
        columns[name] = {"type": "category", "categories": labels}
    (folder / "schema.json").write_text(json.dumps(columns))
    library.local_session()
    frame = ppd.read_csv(
        str(folder / "data.csv"), str(folder / "schema.json"), accountant="pure", budget_limit=float(BUDGET)
    )
    epsilon, accountant = request["epsilon"], frame.accountant

    def release(call: Callable[[], Any], read: Callable[[Any], Answer] = single) -> Release:
        return Release(
            prepare=lambda: accountant.budget_spent,
            ask=lambda _: call(),
            read=read,
            spent=lambda before: float(accountant.budget_spent - before),
        )

    if "pay" in list(frame.columns):
        pay = frame["pay"]
        return {
            "mean": release(lambda: pay.mean(eps=epsilon)),
            "clip(...).mean": release(lambda: pay.clip(lower, upper).mean(eps=epsilon)),
        }
    edges = [*request["edges"][:-1], upper + 1]  # its last bin leaves out its end

    def histogram() -> Any:
        return ppd.cut(frame["age"], edges, right=False).value_counts(sort=False).reveal(eps=epsilon)

    def table() -> Any:
        return ppd.crosstab(frame[TABLE[0]], frame[TABLE[1]]).reveal(eps=epsilon)

    return {
        "count": release(lambda: frame[frame["health"] == "no"].shape[0].reveal(eps=epsilon)),
        "sum": release(lambda: frame["age"].clip(lower, upper).sum().reveal(eps=epsilon)),
        "mean": release(lambda: frame["age"].clip(lower, upper).mean(eps=epsilon)),
        "histogram": release(histogram, cells),
        "table": release(table, cells),
    }


# ---------------------------------------------------------------- requests

LIBRARIES: dict[str, Callable[[Path, dict[str, Any], str], Releases]] = {
    "pdprivacy": pdprivacy,
    "opendp": opendp,
    "diffprivlib": diffprivlib,
    "privjail": privjail,
}


def memory(field: str) -> float:
    """The memory of this process in MB: ``VmRSS``, now, or ``VmHWM``, at most since `forget`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def forget() -> None:
    """Let the most memory be counted anew, where the system can (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class Process:
    """The requests that a library answers, and the data that it has opened."""

    def __init__(self, library: str) -> None:
        self._library = library
        self._opened: dict[str, Releases] = {}

    def open(self, name: str, folder: str, said: dict[str, Any], relation: str) -> dict[str, Any]:
        start = time.perf_counter()
        self._opened[name] = LIBRARIES[self._library](Path(folder), said, relation)
        return {
            "seconds": time.perf_counter() - start,
            "memory": memory("VmRSS"),
            "offered": list(self._opened[name]),
        }

    def cost(self, name: str, statistic: str) -> dict[str, Any]:
        """One release, which warms up and whose cost is asked of the library."""
        forget()
        release = self._opened[name][statistic]
        state = release.prepare()
        release.ask(state)
        return {"claimed": release.spent(state)}

    def clock(self, name: str, statistic: str, times: int) -> dict[str, Any]:
        """Seconds, and those of the processor, of each of some releases as they are documented."""
        release = self._opened[name][statistic]
        seconds, used = [], []
        for _ in range(times):
            state = release.prepare()
            before, start = time.process_time(), time.perf_counter()
            release.ask(state)
            seconds.append(time.perf_counter() - start)
            used.append(time.process_time() - before)
        return {"seconds": seconds, "used": used, "peak": memory("VmHWM")}

    def draw(self, name: str, statistic: str, times: int, seconds: float) -> dict[str, Any]:
        """Answers of many releases, and the seconds of one; two at least, however long they take."""
        release = self._opened[name][statistic]
        once = release.once if release.law is None else release.law()
        answers: list[Answer] = []
        durations: list[float] = []
        end = time.perf_counter() + seconds
        while len(answers) < times and (len(answers) < 2 or time.perf_counter() < end):
            start = time.perf_counter()
            answers.append(once())
            durations.append(time.perf_counter() - start)
        repeated = None if release.law is None else statistics.median(durations)
        return {"answers": answers, "again": repeated}


def main(library: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    start = time.perf_counter()
    import_module(MODULES.get(library, library))
    seconds = time.perf_counter() - start
    versions = {}
    for package in KEPT:
        with contextlib.suppress(Exception):
            versions[package] = version(package)
    first = {"seconds": seconds, "memory": memory("VmRSS"), "versions": versions}
    print(json.dumps(first), file=answers, flush=True)
    process = Process(library)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(process, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(sys.argv[1])
