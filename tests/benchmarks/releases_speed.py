"""Speed of releases against bare numpy and against pandas, runs interleaved; run by hand.

    python tests/benchmarks/releases_speed.py [rows]

Ten million rows by default. A ratio is the median over rounds of one run of the release over one run
of the other right after it; below 1 the release takes less time.
"""

from __future__ import annotations

import gc
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

import pdprivacy  # noqa: F401  (puts dp on every frame)
from pdprivacy.core.gate import execute

BLOCK = 1 << 17
EPSILON = 0.1
BUDGET = 10**6
SMALL = {"district": 4, "kind": 3, "month": 12}
LARGE = {"first": 100, "second": 100, "third": 100}
FLOATS = ["income", "rent", "height", "weight", "score"]

over = 0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def row(label: str, values: list[float], target: float, unit: str = "") -> None:
    """One line of the report: the median of ``values`` against ``target``."""
    global over
    middle = statistics.median(values)
    met = middle <= target
    over += not met
    spread = f"({min(values):.3f}..{max(values):.3f})"
    print(
        f"{label:<66}{middle:>9.3f} {unit:<3}{spread:>18}{target:>9.3g}  {'ok' if met else 'over'}",
        flush=True,
    )


def versus(
    label: str, ours: Callable[[], object], theirs: Callable[[], object], target: float, rounds: int
) -> None:
    """The ratio of two runs, interleaved, after one run of each that is not counted."""
    ours()
    theirs()
    gc.collect()
    row(label, [seconds(ours) / seconds(theirs) for _ in range(rounds)], target)


# ---------------------------------------------------------------- what a release cannot beat


def bare_count(codes: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Records per combination: codes widened block by block, one bincount per block."""
    cells = math.prod(shape)
    counts = np.zeros(cells, dtype=np.intp)
    buffer = np.empty(BLOCK, dtype=np.intp)
    for start in range(0, len(codes[0]), BLOCK):
        block = buffer[: len(codes[0][start : start + BLOCK])]
        for position, (code, radix) in enumerate(zip(codes, shape, strict=True)):
            if position == 0:
                np.copyto(block, code[start : start + BLOCK])
            else:
                block *= radix
                block += code[start : start + BLOCK]
        counts += np.bincount(block, minlength=cells)
    return counts


def bare_sum(values: np.ndarray, lower: float, upper: float) -> float:
    """A sum of clamped values, block by block."""
    buffer = np.empty(BLOCK)
    total = 0.0
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        total += float(np.clip(block, lower, upper, out=buffer[: len(block)]).sum())
    return total


# ---------------------------------------------------------------- data


def labels(name: str, radix: int) -> list[str]:
    return [f"{name} {number:02d}" for number in range(radix)]


def categoricals(shape: dict[str, int], rows: int) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(
                generator.integers(0, radix, rows, dtype=np.int8), labels(name, radix)
            )
            for name, radix in shape.items()
        }
    )


def categories(shape: dict[str, int], dtype: str | None = None) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(
        {
            name: pa.Column(dtype, pa.Check.isin(labels(name, radix)), metadata={"dp": {}})
            for name, radix in shape.items()
        }
    )


def numbers(rows: int) -> pd.DataFrame:
    generator = np.random.default_rng(2)
    return pd.DataFrame({name: generator.normal(50, 10, rows).clip(1, 99) for name in FLOATS})


NUMBERS = pa.DataFrameSchema(
    {name: pa.Column(float, pa.Check.in_range(0, 100), metadata={"dp": {}}) for name in FLOATS}
)


# ---------------------------------------------------------------- comparisons


def tables(rows: int, rounds: int) -> None:
    frame = categoricals(SMALL, rows)
    private = frame.dp.protect(categories(SMALL), epsilon=BUDGET)
    names, shape = list(SMALL), tuple(SMALL.values())
    codes = [frame[name].cat.codes.to_numpy() for name in names]

    def ours() -> object:
        return private.dp.crosstab(names[:2], names[2], epsilon=EPSILON)

    versus("crosstab, 144 cells / bare count", ours, lambda: bare_count(codes, shape), 1.25, rounds)
    versus(
        "crosstab, 144 cells / pandas.crosstab",
        ours,
        lambda: pd.crosstab([frame[names[0]], frame[names[1]]], frame[names[2]]),
        0.05,
        max(3, rounds // 3),
    )
    versus(
        "crosstab, 144 cells / groupby(observed=False).size",
        ours,
        lambda: frame.groupby(names, observed=False).size(),
        0.33,
        max(3, rounds // 2),
    )
    memory("crosstab, 144 cells: extra memory", ours, 144)


def large_table(rows: int, rounds: int) -> None:
    frame = categoricals(LARGE, rows)
    private = frame.dp.protect(categories(LARGE), epsilon=BUDGET)
    names, shape = list(LARGE), tuple(LARGE.values())
    codes = [frame[name].cat.codes.to_numpy() for name in names]

    def ours() -> object:
        return private.dp.crosstab(names[:2], names[2], epsilon=EPSILON)

    versus("crosstab, 1,000,000 cells / bare count", ours, lambda: bare_count(codes, shape), 2, rounds)
    memory("crosstab, 1,000,000 cells: extra memory", ours, 10**6)


def strings(rows: int, rounds: int) -> None:
    frame = categoricals(SMALL, rows).astype("string[pyarrow]")
    private = frame.dp.protect(categories(SMALL), epsilon=BUDGET)
    names = list(SMALL)
    versus(
        "crosstab of Arrow strings, 144 cells / pandas.crosstab",
        lambda: private.dp.crosstab(names[:2], names[2], epsilon=EPSILON),
        lambda: pd.crosstab([frame[names[0]], frame[names[1]]], frame[names[2]]),
        0.35,
        max(3, rounds // 3),
    )


def moments(rows: int, rounds: int) -> None:
    frame = numbers(rows)
    private = frame.dp.protect(NUMBERS, epsilon=BUDGET)
    income = frame["income"]
    array = income.to_numpy()

    def mean() -> object:
        return private.dp.mean("income", epsilon=EPSILON)

    versus("mean / bare clamp and sum", mean, lambda: bare_sum(array, 0.0, 100.0), 1.5, rounds)
    versus("mean / Series.clip().mean()", mean, lambda: income.clip(0, 100).mean(), 0.5, rounds)
    versus("var / Series.var()", lambda: private.dp.var("income", epsilon=EPSILON), income.var, 0.5, rounds)
    versus(
        "cov of five columns / DataFrame.cov()",
        lambda: private.dp.cov(FLOATS, epsilon=EPSILON),
        frame.cov,
        0.6,
        max(3, rounds // 2),
    )
    for bins in (10, 50):
        edges = np.linspace(0, 100, bins + 1)
        versus(
            f"histogram, {bins} bins / numpy.histogram of the same edges",
            lambda edges=edges: private.dp.histogram("income", edges.tolist(), epsilon=EPSILON),
            lambda edges=edges: np.histogram(array, edges),
            0.6,
            rounds,
        )
    memory("mean: extra memory", mean, 1)


def small(rounds: int) -> None:
    """Fixed costs: a hundred rows."""
    frame = pd.concat([categoricals({"age": 5, "region": 4}, 100), numbers(100)], axis=1)
    schema = categories({"age": 5, "region": 4}).add_columns(NUMBERS.columns)
    private = frame.dp.protect(schema, epsilon=BUDGET)

    def mean() -> object:
        return private.dp.mean("income", epsilon=EPSILON)

    mean()
    row("mean of 100 rows with charge and metadata", [1000 * seconds(mean) for _ in range(rounds)], 0.5, "ms")
    versus(
        "crosstab of 100 rows, 5 x 4 / pandas.crosstab",
        lambda: private.dp.crosstab("age", "region", epsilon=EPSILON),
        lambda: pd.crosstab(frame["age"], frame["region"]),
        1,
        rounds,
    )


def unverified() -> None:
    """The share of the gate's last check in a mean of a hundred rows: with it over without it."""
    real = execute.verified
    for neighbors in ("add_remove", "replace_one"):
        private = numbers(100).dp.protect(NUMBERS, epsilon=BUDGET, neighbors=neighbors)

        def mean(private: Any = private, verified: Any = real) -> object:
            execute.verified = verified
            return private.dp.mean("income", epsilon=EPSILON)

        def without(mean: Any = mean) -> object:
            return mean(verified=lambda facts, task, price: price)

        try:
            versus(f"mean of 100 rows, {neighbors} / unverified", mean, without, 1.05, 1000)
        finally:
            execute.verified = real


def memory(label: str, run: Callable[[], object], cells: int) -> None:
    """The peak of what one call allocates, beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    result = run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    row(label, [peak / 1e6], 8 + 48 * cells / 1e6, "MB")


def importing(rounds: int) -> None:
    """The time that ``import pdprivacy`` adds to ``import pandas``, in fresh processes."""

    def fresh(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    for code in ("import pandas", "import pandas, pdprivacy"):
        fresh(code)
    row(
        "import pdprivacy beyond import pandas",
        [fresh("import pandas, pdprivacy") - fresh("import pandas") for _ in range(rounds)],
        0.1,
        "s",
    )


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    print(
        f"{rows:,} rows, pandas {pd.__version__}, numpy {np.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} processors"
    )
    print(f"{'what':<66}{'median':>9} {'':<3}{'(min..max)':>18}{'target':>9}")
    importing(11)
    small(200)
    unverified()
    tables(rows, 9)
    large_table(rows, 9)
    moments(rows, 9)
    strings(rows, 9)
    print(f"{over} over target" if over else "all within target")


if __name__ == "__main__":
    main()
