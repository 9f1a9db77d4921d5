"""Speed of disclosure risks: of distinct compositions against every cell on its own; run by hand.

    python tests/benchmarks/risk_speed.py [cells] [rows]

One million cells and ten million rows by default. Times are medians over rounds; what is evaluated without
grouping is timed on a part and scaled up, as said. Released tables are compared in processor time with the
same table of columns without roles, which has no risk, and with the table of one sensitive column.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import scipy

from pdprivacy import Column, Domain, risk
from pdprivacy import frames as protection
from pdprivacy.core.mechanisms import Laplace

LABELS = 5
EPSILON = np.logspace(-3, 2, 200)
SECONDS, MEMORY = 2.0, 1024.0
CURVE_RATIO, CURVE_SECONDS = 1.3, 2.0
RELEASE_RATIO, RELEASE_SECONDS = 2.0, 0.05

# mean and shape (negative binomial) of the sizes of cells, alpha of their labels
TABLES = {
    "census-like (sizes to about 140, 63 % homogeneous)": (5.0, 0.3, 0.2),
    "small cells (sizes to about 60, 62 % homogeneous)": (5.0, 1.0, 0.1),
    "large cells (sizes to about 500, 33 % homogeneous)": (20.0, 0.5, 0.2),
}
WITH_TARGET = list(TABLES)[:2]

over = 0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def report(label: str, value: float, target: float | None, unit: str) -> None:
    global over
    mark = ""
    if target is not None:
        met = value <= target
        over += not met
        mark = f"target {target:g}  {'ok' if met else 'over'}"
    print(f"  {label:<62}{value:>12.2f} {unit:<6}{mark}", flush=True)


def table(cells: int, mean: float, shape: float, alpha: float) -> np.ndarray:
    generator = np.random.default_rng(1)
    sizes = 1 + generator.negative_binomial(shape, shape / (shape + mean - 1), cells)
    return generator.multinomial(sizes, generator.dirichlet(np.full(LABELS, alpha), cells))


# ---------------------------------------------------------------- cell by cell


def local_of_all(counts: np.ndarray, mechanism: Laplace) -> float:
    """The local risk of every cell on its own, in numpy."""
    q = mechanism.cdf(0.5 - counts)
    total = np.zeros(len(counts))
    for label in range(counts.shape[1]):
        others = np.prod(np.delete(q, label, axis=1), axis=1)
        total += np.where(counts[:, label] > 0, (1 - q[:, label]) * others, 0.0)
    return float(total.mean())


def expected_of_each(counts: np.ndarray, mechanism: Laplace) -> float:
    """The expected risk of every cell on its own: products of power series, term by term."""
    from scipy.special import gammaln

    total = 0.0
    for cell in counts:
        size = int(cell.sum())
        j = np.arange(size + 1)
        q = mechanism.cdf(0.5 - j)
        none, exactly_one = np.ones(1), np.zeros(1)
        for count in cell:
            mass = np.exp(j * np.log(count) - count - gammaln(j + 1)) if count else (j == 0) * 1.0
            present = mass * (1 - q) * (j > 0)
            exactly_one = (np.convolve(exactly_one, mass * q) + np.convolve(none, present))[: size + 1]
            none = np.convolve(none, mass * q)[: size + 1]
        total += exactly_one[size] / np.exp(size * np.log(size) - size - gammaln(size + 1))
    return total / len(counts)


def cell_by_cell(counts: np.ndarray, mechanisms: list[Laplace]) -> dict[str, float]:
    """Seconds for all cells and mechanisms, from two mechanisms or 2,000 cells; what comes out is checked."""
    some, mechanism = counts[:: max(1, len(counts) // 2000)], mechanisms[len(mechanisms) // 2]
    for function, measure in ((local_of_all, "local"), (expected_of_each, "expected")):
        assert abs(function(some, mechanism) - risk.dr_ha(some, mechanism, measure)) < 1e-10
    local = seconds(lambda: [local_of_all(counts, each) for each in mechanisms[::100]])
    expected = seconds(lambda: expected_of_each(some, mechanism))
    return {
        "local": local / len(mechanisms[::100]) * len(mechanisms),
        "expected": expected / len(some) * len(counts) * len(mechanisms),
    }


def tables(cells: int, rounds: int) -> None:
    mechanisms = [Laplace(epsilon, 1) for epsilon in EPSILON]
    for name, parameters in TABLES.items():
        counts = table(cells, *parameters)
        distinct = len(risk.Cells.of(counts).cells)
        print(f"\n{cells:,} cells, {LABELS} labels, {name}; {distinct:,} distinct compositions")
        naive = cell_by_cell(counts, mechanisms)
        for measure, slow in naive.items():
            run = lambda: risk.dr_ha(counts, mechanisms, measure)  # noqa: B023, E731
            run()
            took = statistics.median(seconds(run) for _ in range(rounds))
            target = SECONDS if name in WITH_TARGET and cells == 10**6 else None
            report(f"{measure}, {len(EPSILON)} values of epsilon", took, target, "s")
            report("  cell by cell (a part, scaled up), times as long", slow / took, None, "times")
            tracemalloc.start()
            run()
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
            report("  memory over the table", peak, MEMORY, "MiB")


# ---------------------------------------------------------------- from rows to a curve


def curve(rows: int, rounds: int) -> None:
    generator = np.random.default_rng(2)
    shape = {"district": 50, "age": 20, "kind": 10, "month": 12, "health": 5}
    labels = {name: [f"{name} {number:02d}" for number in range(radix)] for name, radix in shape.items()}
    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes((generator.random(rows) ** 2 * len(known)).astype(np.int8), known)
            for name, known in labels.items()
        }
    )
    roles = {name: "sensitive" if name == "health" else "quasi_identifier" for name in shape}
    schema = pa.DataFrameSchema(
        {
            name: pa.Column("category", pa.Check.isin(known), metadata={"dp": {"role": roles[name]}})
            for name, known in labels.items()
        }
    )
    private = frame.dp.protect(schema, epsilon=10**6)
    *by, sensitive = shape
    print(f"\n{rows:,} rows, {np.prod(list(shape.values())):,} declared cells")

    def counting() -> object:
        known = protection.find(private)
        return known.engine.table([known.domain[name] for name in shape], "dr_ha")

    def whole() -> object:
        return private.dp.risk_curve(by, sensitive, EPSILON)

    counting()
    whole()
    counted, took = zip(*((seconds(counting), seconds(whole)) for _ in range(rounds)), strict=True)
    report("counting alone", statistics.median(counted), None, "s")
    allowed = CURVE_RATIO * statistics.median(counted) + CURVE_SECONDS
    report("risk curve, counting included", statistics.median(took), allowed, "s")


# ---------------------------------------------------------------- the risk that released tables carry


LAYOUTS = {
    "one sensitive column": (("a", "s"), lambda dp: dp.crosstab("a", "s", epsilon=1)),
    "one sensitive column, swapped": (("a", "s"), lambda dp: dp.crosstab("s", "a", epsilon=1)),
    "value_counts": (("a", "s"), lambda dp: dp.value_counts(["a", "s"], epsilon=1)),
    "groupby and value_counts": (("a", "s"), lambda dp: dp.groupby("a").value_counts("s", epsilon=1)),
    "two sensitive columns": (("a", "t", "u"), lambda dp: dp.crosstab("a", ["t", "u"], epsilon=1)),
    "value_counts, two columns": (("a", "t", "u"), lambda dp: dp.value_counts(["a", "t", "u"], epsilon=1)),
}
LABELS_OF = {"s": 10, "t": 5, "u": 2}


def released(cells: int, rows: int, rounds: int) -> None:
    """Compare tables of ``cells`` cells with and without a risk; all layouts have as many labels."""
    print(f"\nreleased tables of {cells:,} cells, {rows:,} rows")
    generator = np.random.default_rng(3)
    sizes = {"a": cells // LABELS_OF["s"], **LABELS_OF}
    labels = {name: tuple(f"{name} {number}" for number in range(size)) for name, size in sizes.items()}
    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes((generator.random(rows) ** 2 * len(known)).astype(int), known)
            for name, known in labels.items()
        }
    )
    before = 0.0
    for name, (columns, release) in LAYOUTS.items():
        took: dict[bool, list[float]] = {False: [], True: []}
        records: list[Any] = []
        roles = {column: "quasi_identifier" if column == "a" else "sensitive" for column in columns}
        private = {
            with_roles: frame[list(columns)].dp.protect(
                Domain(
                    tuple(
                        Column(
                            column, "category", categories=labels[column], role=role if with_roles else None
                        )
                        for column, role in roles.items()
                    )
                ),
                epsilon=10**6,
            )
            for with_roles in (False, True)
        }
        for with_roles in (False, True) * rounds:
            release(private[with_roles].dp)
            start = time.process_time()
            table = release(private[with_roles].dp)
            took[with_roles].append(time.process_time() - start)
            records.append(table.dp.metadata.dr_ha)
        alone, whole = (statistics.median(took[kind]) for kind in (False, True))
        before = before or whole
        allowed = None if name == "one sensitive column" else RELEASE_RATIO * alone + RELEASE_SECONDS
        estimated = "" if records[-1]["by_records"] is not None else ", without an estimate"
        report(name + estimated, 1000 * whole, allowed and 1000 * allowed, "ms")
        report("  the table alone, of columns without roles", 1000 * alone, None, "ms")
        report("  times as long as one sensitive column", whole / before, None, "times")


def main() -> None:
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 10**7
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}, pandas {pd.__version__}"
    print(f"Python {platform.python_version()}, {versions}, {os.cpu_count()} processors")
    for size in (10**2, 10**3, 10**4, 10**5, 10**6):
        released(size, 10**5, 5)
    tables(cells, 3)
    curve(rows, 3)
    print(f"\n{over} over target" if over else "\nall within target")


if __name__ == "__main__":
    main()
