"""Speed of k-means against plain Lloyd iterations of scikit-learn, runs interleaved; run by hand.

    python tests/benchmarks/clustering_speed.py [rows]

A million rows of six columns by default, five centres and five iterations on both sides. Needs the extra
``benchmarks`` for scikit-learn. A ratio is the median over rounds of one run of the release over one
run of the other right after it; below 1 the release takes less time.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pandera.pandas as pa

import pdprivacy  # noqa: F401  (puts dp on every frame)

COLUMNS, CENTERS, ITERATIONS, ROUNDS = 6, 5, 5, 9
TARGET = 2.5


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def clustered(rows: int) -> pd.DataFrame:
    """Clouds around as many points as there are centres, within [-1, 1]."""
    generator = np.random.default_rng(1)
    middles = generator.uniform(-0.8, 0.8, (CENTERS, COLUMNS))
    values = middles[generator.integers(0, CENTERS, rows)] + generator.normal(0, 0.4, (rows, COLUMNS))
    return pd.DataFrame(np.clip(values, -0.999, 0.999), columns=[f"x{number}" for number in range(COLUMNS)])


def main() -> int:
    import sklearn
    from sklearn.cluster import KMeans

    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    frame = clustered(rows)
    columns = list(frame)
    schema = pa.DataFrameSchema(
        {name: pa.Column(float, pa.Check.in_range(-1, 1), metadata={"dp": {}}) for name in columns}
    )
    private = frame.dp.protect(schema, epsilon=10**6)
    values = frame.to_numpy()
    start = np.random.default_rng(2).uniform(-0.8, 0.8, (CENTERS, COLUMNS))

    def ours() -> object:
        return private.dp.kmeans(columns, CENTERS, epsilon=1, iterations=ITERATIONS)

    def theirs() -> object:
        return KMeans(CENTERS, algorithm="lloyd", n_init=1, max_iter=ITERATIONS, tol=0, init=start).fit(
            values
        )

    print(f"{rows} rows x {COLUMNS}, k = {CENTERS}, {ITERATIONS} iterations, {os.cpu_count()} processors")
    print(f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}")
    warnings.simplefilter("ignore")  # that it has not converged
    ours()
    theirs()
    gc.collect()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    for name, times in zip(("release", "scikit-learn"), zip(*pairs, strict=True), strict=True):
        print(f"{name:<14}{statistics.median(times):>8.3f} s  ({min(times):.3f}..{max(times):.3f})")
    ratio = statistics.median(mine / other for mine, other in pairs)
    print(f"{'ratio':<14}{ratio:>8.2f}    target {TARGET}  {'ok' if ratio <= TARGET else 'over'}")
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main())
