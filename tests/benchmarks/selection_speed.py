"""Speed of medians over ten million records, over sorting the column with numpy; and of modes.

A ratio below 1 means that the release takes less time than `numpy.sort` of the same numbers. Sorting is
quick where few numbers are different; reading a column is not, so that the target is for floats at large.
At a tiny epsilon all records count, and there is no target.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy.core.mechanisms import ExponentialMechanism, NoisyMax, PermuteAndFlip
from pdprivacy.core.noise import source
from pdprivacy.declaration.domain import Column, Domain

SIZE = 10**7
CANDIDATES = 10**5
ROUNDS = 7
TARGET = 1.2
TINY = 1e-6
BOUNDS = (0.0, 1000.0)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(run: Callable[[], object], reference: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of ``run`` and median ratio to ``reference``, interleaved."""
    run()
    reference()
    times, ratios = [], []
    for _ in range(ROUNDS):
        times.append(seconds(run))
        ratios.append(times[-1] / seconds(reference))
    return statistics.median(times), statistics.median(ratios)


def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    wide = rng.lognormal(3, 1, SIZE).clip(*BOUNDS)
    holes = wide.copy()
    holes[::5] = np.nan
    return {
        "uniform": rng.uniform(*BOUNDS, SIZE),
        "lognormal": wide,
        "a fifth null": holes,
        "all in one bin": rng.uniform(0, 0.01, SIZE),
        "few different": np.round(wide, -1),
    }


def main() -> None:
    print(f"{SIZE:,} records, medians of interleaved rounds; the target is {TARGET} times numpy.sort\n")
    print(f"{'column':<18}{'epsilon':>10}{'ms':>8}{'ratio':>8}")
    for name, values in columns().items():
        domain = Domain((Column("x", "float", True, *BOUNDS),))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            private = pd.DataFrame({"x": values}).dp.protect(domain, epsilon=10**6)
        for epsilon in (1, 0.01, TINY):
            duration, ratio = compare(
                lambda private=private, epsilon=epsilon: private.dp.median("x", epsilon=epsilon),
                lambda values=values: np.sort(values),
            )
            note = "" if ratio <= TARGET or epsilon == TINY else "  over the target"
            print(f"{name:<18}{epsilon:>10g}{1000 * duration:>8.0f}{ratio:>8.2f}{note}")
    scores = np.random.default_rng(1).integers(0, 1000, CANDIDATES)
    print(f"\nOne selection of {CANDIDATES:,} candidates\n{'mechanism':<26}{'ms':>8}")
    for mechanism in (PermuteAndFlip(1, 1), ExponentialMechanism(1, 1), NoisyMax(1, 1)):
        duration = statistics.median(
            seconds(lambda mechanism=mechanism: mechanism.select(scores, source(None))) for _ in range(ROUNDS)
        )
        print(f"{mechanism.name:<26}{1000 * duration:>8.1f}")


if __name__ == "__main__":
    main()
