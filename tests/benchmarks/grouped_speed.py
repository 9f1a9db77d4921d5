"""Speed of grouped statistics over the pandas groupby of the same statistic.

A ratio below 1 means that the release takes less time than pandas. ``python -m tests.benchmarks.grouped_speed
1_000_000`` takes so many records; ten million by default.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy.declaration.domain import Column, Domain
from tests.benchmarks.selection_speed import compare

SIZE = 10**7
GROUPS = 1000
BOUNDS = (0.0, 1000.0)
STATISTICS: dict[str, tuple[Callable[[Any], object], Callable[[Any], object], float]] = {
    "mean": (lambda groups: groups.mean("x", epsilon=1), lambda groups: groups["x"].mean(), 1.0),
    "std": (lambda groups: groups.std("x", epsilon=1), lambda groups: groups["x"].std(), 1.0),
    "median": (lambda groups: groups.median("x", epsilon=1), lambda groups: groups["x"].median(), 3.0),
    "three quantiles": (
        lambda groups: groups.quantile("x", [0.25, 0.5, 0.75], epsilon=1),
        lambda groups: groups["x"].quantile([0.25, 0.5, 0.75]),
        3.0,
    ),
    "mean and std": (
        lambda groups: groups.agg(["mean", "std"], "x", epsilon=1),
        lambda groups: groups["x"].agg(["mean", "std"]),
        1.0,
    ),
}
"""A release, the call of pandas, and the largest ratio that is aimed for."""


def frames(size: int) -> dict[str, tuple[pd.DataFrame, Column]]:
    """Frames of a number and a key: whole numbers, and labels of a categorical column."""
    rng = np.random.default_rng(0)
    codes, numbers = rng.integers(0, GROUPS, size), rng.lognormal(3, 1, size).clip(*BOUNDS)
    labels = tuple(f"region {number}" for number in range(GROUPS))
    return {
        "integer key": (
            pd.DataFrame({"x": numbers, "key": codes}),
            Column("key", "integer", lower=0, upper=GROUPS - 1),
        ),
        "categorical key": (
            pd.DataFrame({"x": numbers, "key": pd.Categorical.from_codes(codes, list(labels))}),
            Column("key", "category", categories=labels),
        ),
    }


def main(size: int) -> None:
    """Print the median time of each statistic, and its median ratio to pandas."""
    print(f"{size:,} records in {GROUPS:,} groups, medians of interleaved rounds\n")
    print(f"{'key':<18}{'statistic':<18}{'ms':>8}{'ratio':>8}{'target':>8}")
    for name, (frame, key) in frames(size).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            private = frame.dp.protect(Domain((Column("x", "float", False, *BOUNDS), key)), epsilon=10**6)
        groups = private.dp.groupby("key")
        for statistic, (release, reference, target) in STATISTICS.items():
            duration, ratio = compare(
                lambda release=release, groups=groups: release(groups),
                # pandas finds the groups anew: those of a `groupby` that was asked before are kept
                lambda reference=reference, frame=frame: reference(frame.groupby("key", observed=False)),
            )
            note = "" if ratio <= target else "  over the target"
            print(
                f"{name:<18}{statistic:<18}{1000 * duration:>8.0f}{ratio:>8.2f}{target:>8g}{note}", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SIZE)
