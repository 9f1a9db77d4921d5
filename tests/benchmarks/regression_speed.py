"""Speed: a regression and `DataFrame.cov` of the same columns.

    python tests/benchmarks/regression_speed.py --rows 10000000 --columns 10

prints the seconds of both, the best of a few runs in turn, and their ratio; the goal is 0.6 at most.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

import pdprivacy
from pdprivacy import Column, Domain


def seconds(rows: int, columns: int, runs: int) -> tuple[float, float]:
    """The seconds of a regression of one column on the others, and of the covariance matrix of all."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"x{index}": rng.random(rows) for index in range(columns)})
    domain = Domain(tuple(Column(name, "float", lower=0, upper=1) for name in frame))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private = pdprivacy.protect(frame, domain, epsilon=10**6)
    names = list(frame)
    best = [np.inf, np.inf]
    for _ in range(runs):
        for index, call in enumerate(
            (lambda: private.dp.ols(names[0], names[1:], epsilon=1), lambda: frame.cov())
        ):
            start = time.perf_counter()
            call()
            best[index] = min(best[index], time.perf_counter() - start)
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    ours, pandas = seconds(options.rows, options.columns, options.runs)
    print(
        f"{options.rows:,} x {options.columns}: ols {ours:.3f} s, DataFrame.cov {pandas:.3f} s, "
        f"ratio {ours / pandas:.2f}"
    )


if __name__ == "__main__":
    main()
