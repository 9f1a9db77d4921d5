"""Speed of outlier scores against sorting, counting and pairwise distances, runs interleaved; run by hand.

    python tests/benchmarks/suppression_speed.py [rows [records]]

Ten million rows of one column by default, and 20,000 records of three for the euclidean distance. A ratio is
the median over rounds of one run of the scores over one run of the other right after it; below 1 the scores
take less time. The memory is the most that Python and numpy held at a time beyond the data.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import scipy
from scipy.spatial.distance import pdist

from pdprivacy.amplification.suppression import keep_probabilities, outlier_scores

ROUNDS = 9

over = 0


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def megabytes(run: Callable[[], object]) -> float:
    gc.collect()
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def versus(label: str, ours: Callable[[], object], theirs: Callable[[], object], target: float) -> None:
    """The ratio of two runs, interleaved, after one run of each that is not counted."""
    global over
    ours()
    theirs()
    runs = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    ratios = [mine / other for mine, other in runs]
    middle = statistics.median(ratios)
    over += middle > target
    duration = statistics.median(mine for mine, _ in runs)
    spread = f"({min(ratios):.2f}..{max(ratios):.2f})"
    print(
        f"{label:<46}{duration:>8.3f} s{middle:>9.2f} {spread:>16}{target:>8g}"
        f"  {'ok' if middle <= target else 'over':<5}{megabytes(ours):>7.0f} MiB",
        flush=True,
    )


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    records = int(float(sys.argv[2])) if len(sys.argv) > 2 else 20_000
    print(
        f"{rows:,} rows, {records:,} records, numpy {np.__version__}, scipy {scipy.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} processors"
    )
    print(f"{'what':<46}{'median':>10}{'ratio':>9} {'(min..max)':>16}{'target':>8}{'':<7}{'memory':>11}")
    generator = np.random.default_rng(1)
    values = generator.normal(50, 10, rows).clip(1, 99)
    whole = np.rint(values)
    codes = generator.integers(0, 50, rows)
    table, bounds = generator.uniform(0, 1, (records, 3)), [(0, 1)] * 3
    scores = outlier_scores(values, bounds=(0, 100))

    def absolute(column: np.ndarray) -> Callable[[], object]:
        return lambda: outlier_scores(column, bounds=(0, 100))

    versus("absolute, floats / np.sort", absolute(values), lambda: np.sort(values), 6)
    versus("absolute, whole numbers / np.sort", absolute(whole), lambda: np.sort(values), 6)
    versus(
        "discrete, 50 codes / np.bincount",
        lambda: outlier_scores(codes, "discrete"),
        lambda: np.bincount(codes),
        4,
    )
    versus(
        "euclidean, 3 columns / scipy pdist",
        lambda: outlier_scores(table, "euclidean", bounds),
        lambda: pdist(table),
        1.5,
    )
    versus(
        "keep probabilities / np.sort",
        lambda: keep_probabilities(scores, 0.1, 0.2),
        lambda: np.sort(values),
        1.5,
    )
    print(f"{over} over target" if over else "all within target")


if __name__ == "__main__":
    main()
