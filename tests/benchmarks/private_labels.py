"""Private labels: how many are found beside the published noisy counts, and how long it takes.

The labels are those of 10**6 units, drawn with seed 0 from Zipf laws over 10**6 labels. The expected number
of labels found is computed, not drawn. The published noisy counts have truncated geometric noise
(Desfontaines, Voss, Gipson, Mandayam 2022, Section 4): noise on [-k, k] with probabilities proportional to
exp(-epsilon |x|), and a label is shown if its noisy count is above k.

Times are ratios to `Series.value_counts` of the same column, of 10**5 labels, in interleaved rounds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import pdprivacy
from pdprivacy.core.mechanisms.partition_selection import PartitionSelection
from pdprivacy.declaration.domain import Column, Domain

UNITS = 10**6
LOSSES = ((1.0, 1e-6), (0.1, 1e-6), (1.0, 1e-10))
ZIPF = (1.0, 1.5)
LABELS = 10**5
ROUNDS = 5
TARGET = 1.1


def zipf_counts(power: float) -> np.ndarray:
    """The records of each label that occurs."""
    weights = np.arange(1, UNITS + 1, dtype=float) ** -power
    counts = np.random.default_rng(0).multinomial(UNITS, weights / weights.sum())
    return counts[counts > 0]


def optimum(counts: np.ndarray, epsilon: float, delta: float) -> float:
    """The expected number of labels that `find_labels` finds, with or without counts."""
    selection = PartitionSelection(epsilon, delta)
    shares = np.array([selection.probability(n) for n in range(selection.certain + 1)])
    return float(shares[np.minimum(counts, selection.certain)].sum())


def published(counts: np.ndarray, epsilon: float, delta: float) -> float:
    """The expected number of labels that noisy counts with truncated geometric noise show."""
    power = math.exp(epsilon)
    k = math.ceil(math.log((power + 2 * delta - 1) / ((power + 1) * delta)) / epsilon)
    noise = np.exp(-epsilon * np.abs(np.arange(-k, k + 1)))
    above = np.append(np.cumsum(noise[::-1]) / noise.sum(), 1.0)  # of n records: the noise is above k - n
    return float(above[np.minimum(counts, 2 * k + 1) - 1].sum())


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(values: pd.Series, column: Column) -> tuple[float, float]:
    """Median seconds of `find_labels`, and its median ratio to `value_counts`."""
    frame = pd.DataFrame({"label": values})
    private = pdprivacy.protect(frame, Domain((column,)), epsilon=10**6, delta=0.5)
    times, ratios = [], []
    for _ in range(ROUNDS):
        times.append(seconds(lambda: private.dp.find_labels("label", epsilon=1, delta=1e-6)))
        ratios.append(times[-1] / seconds(values.value_counts))
    return statistics.median(times), statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[10**6, 10**7])
    rows = parser.parse_args().rows
    for power in ZIPF:
        counts = zipf_counts(power)
        for epsilon, delta in LOSSES:
            best, noisy = (f(counts, epsilon, delta) for f in (optimum, published))
            print(
                f"Zipf {power:g}, {len(counts):,} labels, epsilon {epsilon:g}, delta {delta:g}: "
                f"{best:,.0f} found with counts, {noisy:,.0f} by published noisy counts, "
                f"{100 * (best / noisy - 1):+.1f} %"
            )
    for size in rows:
        codes = np.random.default_rng(0).integers(LABELS, size=size)
        texts = pd.Series(pd.Index([f"label {number}" for number in range(LABELS)]).take(codes).array)
        columns = (
            ("texts", texts, Column("label", "category", private_labels=True)),
            ("whole numbers", pd.Series(codes), Column("label", "integer", private_labels=True)),
        )
        for name, values, column in columns:
            took, times = ratio(values, column)
            print(f"{size:,} {name} ({values.dtype}): {took:.2f} s, {times:.2f} of value_counts")
    print(f"target: {TARGET:.2f}")


if __name__ == "__main__":
    main()
