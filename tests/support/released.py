"""A release of every shape: what files, tables for readers and reports have to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from pdprivacy import releases
from pdprivacy.core.gate.execute import execute
from pdprivacy.frames import ProtectedFrame, find

RELEASES: Mapping[str, Callable[[Any], Any]] = {
    "count": lambda dp: dp.count(epsilon=1),
    "mean": lambda dp: dp.mean("age", epsilon=1),
    "means": lambda dp: dp.mean(["age", "family"], epsilon=1),
    "releases": lambda dp: dp.mean(["age", "family"], epsilon=1, releases=2),
    "proportion": lambda dp: dp.proportion("member", True, epsilon=1),
    "values": lambda dp: dp.value_counts("region", epsilon=1),
    "truth values": lambda dp: dp.value_counts("member", epsilon=1),
    "whole numbers": lambda dp: dp.value_counts("family", epsilon=1),
    "values of two": lambda dp: dp.value_counts(["member", "region"], epsilon=1),
    "shares": lambda dp: dp.value_counts("region", epsilon=1, normalize=True),
    "histogram": lambda dp: dp.histogram("income", 4, epsilon=1),
    "table": lambda dp: dp.crosstab("region", "health", epsilon=1),
    "margins": lambda dp: dp.crosstab("age", "health", epsilon=1, margins=True),
    "table of four": lambda dp: dp.crosstab(["region", "member"], ["health", "age"], epsilon=1),
    "rows": lambda dp: dp.crosstab("region", "member", epsilon=1, normalize="index"),
    "cov": lambda dp: dp.cov(["age", "family"], epsilon=1),
    "description": lambda dp: dp.describe(["age", "family"], epsilon=1),
    "groups": lambda dp: dp.groupby(["region", "member"]).mean(["age", "family"], epsilon=1),
    "pooled": lambda dp: dp.pooled_cov(["age", "family"], by="region", epsilon=1),
    "quantiles": lambda dp: dp.quantile(["age", "family"], [0.25, 0.5], epsilon=1),
    "median": lambda dp: dp.median("age", epsilon=1),
    "mode": lambda dp: dp.mode(["region", "family"], epsilon=1),
    "top": lambda dp: dp.top_k("region", 2, epsilon=1),
    "centres": lambda dp: dp.kmeans(["age", "family"], 2, epsilon=1, iterations=2),
}
"""By name, of a protected frame of the survey of the tests."""


def same(first, other) -> None:
    """The same numbers, labels, dtypes and metadata."""
    assert type(first) is type(other)
    check = pd.testing.assert_series_equal if isinstance(first, pd.Series) else pd.testing.assert_frame_equal
    check(first, other, check_exact=True)
    assert first.attrs == other.attrs


def released(private: ProtectedFrame) -> list[float]:
    """Numbers of several columns by one seed."""
    return numbers(find(private))


def numbers(protected) -> list[float]:
    means = execute(releases.mean(protected, ["age", "income", "family"], epsilon=0.01, rng=1))
    counts = execute(releases.crosstab(protected, "region", "health", epsilon=0.01, rng=1))
    return [*means.tolist(), *counts.to_numpy().ravel().tolist()]
