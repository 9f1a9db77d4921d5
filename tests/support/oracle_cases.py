"""The calls whose charges, integers and scales the oracle holds: verbs, noise, neighbours and steps."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdprivacy import errors, release_step
from tests.support.oracle_frames import DATED_SETTINGS, DOMAIN, SETTINGS

__all__ = ["CASES", "FAMILIES", "Case"]

Call = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """One call on the protected frame of a setting. ``fresh``: of a frame and budget of its own.

    ``engines``: whether other engines than pandas are asked, too.
    """

    family: str
    name: str
    setting: str
    call: Call
    engines: bool = False
    fresh: bool = False

    @property
    def title(self) -> str:
        """Its name in the oracle."""
        return f"{self.name} | {self.setting}"


def verb(method: str, *args: Any, **words: Any) -> Call:
    """A release of cost one, if not told otherwise."""
    return lambda dp: getattr(dp, method)(*args, **{"epsilon": 1, "rng": 1, **words})


def grouped(by: Any, method: str, *args: Any, **words: Any) -> Call:
    return lambda dp: getattr(dp.groupby(by), method)(*args, **{"epsilon": 1, "rng": 1, **words})


Spec = tuple[Callable[..., Call], tuple[Any, ...], dict[str, Any]]


def spec(make: Callable[..., Call], *args: Any, **words: Any) -> Spec:
    return make, args, words


MOMENTS: dict[str, Spec] = {
    "sum x": spec(verb, "sum", "x"),
    "sum of several, split": spec(verb, "sum", ["x", "y", "m"], split={"x": 2, "y": 1, "m": 1}),
    "sum of all": spec(verb, "sum"),
    "mean x": spec(verb, "mean", "x"),
    "mean y": spec(verb, "mean", "y"),
    "mean of m and n": spec(verb, "mean", ["m", "n"]),
    "proportion g": spec(verb, "proportion", "g", "a"),
    "proportion e": spec(verb, "proportion", "e"),
    "var x": spec(verb, "var", "x"),
    "var y": spec(verb, "var", "y"),
    "std of x and n": spec(verb, "std", ["x", "n"]),
    "std m": spec(verb, "std", "m"),
    "describe": spec(verb, "describe", ["x", "n"]),
    "describe y": spec(verb, "describe", "y"),
    "cov": spec(verb, "cov", ["x", "y", "n"]),
    "cov y m, psd": spec(verb, "cov", ["y", "m"], constraint="psd"),
    "corr": spec(verb, "corr", ["y", "m"]),
    "pooled_var x": spec(verb, "pooled_var", "x", by="k"),
    "pooled_var y": spec(verb, "pooled_var", ["y", "m"], by=["k", "e"]),
    "pooled_cov": spec(verb, "pooled_cov", ["y", "m"], by="k"),
    "pooled_cov with nulls": spec(verb, "pooled_cov", ["x", "n"], by=["g"]),
    "ols": spec(verb, "ols", "y", ["m", "e"]),
    "ols with nulls": spec(verb, "ols", "x", ["n"], ridge=2),
    "ols, weights": spec(verb, "ols", "y", ["x", "e"], weights="m"),
    "agg": spec(verb, "agg", {"x": ["sum", "std"], "y": ["mean"], "m": ["count"]}),
    "agg by name": spec(verb, "agg", {"x": "mean", "m": "sum"}),
}
TABLES: dict[str, Spec] = {
    "count": spec(verb, "count"),
    "count of columns": spec(verb, "count", ["x", "y", "g"]),
    "value_counts g": spec(verb, "value_counts", "g"),
    "value_counts n, unsorted": spec(verb, "value_counts", "n", sort=False),
    "value_counts of several": spec(verb, "value_counts", ["k", "e"]),
    "value_counts h, normalize": spec(verb, "value_counts", "h", normalize=True),
    "value_counts k, simplex": spec(verb, "value_counts", "k", constraint="simplex", normalize=True),
    "value_counts m, hierarchy": spec(verb, "value_counts", "m", constraint="hierarchy", branching=3),
    "value_counts k, rescale": spec(verb, "value_counts", "k", constraint="rescale"),
    "value_counts k, all but one": spec(verb, "value_counts", "k", constraint="all_but_one"),
    "histogram y": spec(verb, "histogram", "y"),
    "histogram x, edges": spec(verb, "histogram", "x", [-3, 0, 2.5, 10]),
    "histogram n, equal bins": spec(verb, "histogram", "n", 4),
    "crosstab": spec(verb, "crosstab", "k", "s"),
    "crosstab of several": spec(verb, "crosstab", ["k", "y"], ["s", "e"]),
    "crosstab, margins": spec(verb, "crosstab", "g", "s", margins=True),
    "crosstab, normalize": spec(verb, "crosstab", "k", "e", normalize="all"),
    "crosstab, normalize by index": spec(verb, "crosstab", "k", "e", normalize="index", margins=True),
    "crosstab, normalize by columns": spec(verb, "crosstab", "k", "e", normalize="columns"),
    "crosstab, nonnegative": spec(verb, "crosstab", "k", "s", constraint="nonnegative"),
    "crosstab, hierarchy": spec(verb, "crosstab", "k", "s", constraint="hierarchy"),
    "marginals": spec(lambda **words: lambda dp: dp.marginals(["k", "s", "e"], **words), epsilon=1, rng=1),
    "marginals of order 1": spec(lambda **words: lambda dp: dp.marginals(order=1, **words), epsilon=1, rng=1),
    "value_counts g, dropna": spec(verb, "value_counts", "g", dropna=True),
    "nunique": spec(verb, "nunique", ["n", "g", "y"]),
    "crosstab, dropna": spec(verb, "crosstab", "g", "s", dropna=True),
}
GROUPS: dict[str, Spec] = {
    "groupby count": spec(grouped, "k", "count"),
    "groupby count of cells": spec(grouped, ["g", "e"], "count"),
    "groupby sum": spec(grouped, "k", "sum", ["x", "n"]),
    "groupby sum of all": spec(grouped, "e", "sum"),
    "groupby mean": spec(grouped, "g", "mean", "x"),
    "groupby mean of several": spec(grouped, ["k", "e"], "mean", ["y", "m"], split={"y": 3, "m": 1}),
    "groupby var": spec(grouped, "k", "var", ["x", "m"]),
    "groupby, selected": spec(
        lambda **words: lambda dp: dp.groupby("k")["y"].mean(**words), epsilon=1, rng=1
    ),
    "groupby std": spec(grouped, "k", "std", ["x", "m"]),
    "groupby proportion": spec(grouped, "k", "proportion", "g", "a"),
    "groupby describe": spec(grouped, ["g", "e"], "describe", ["x", "n"]),
    "groupby agg": spec(grouped, "k", "agg", {"x": ["sum", "std"], "y": ["count", "sum"], "n": ["sum"]}),
    "groupby agg by name": spec(grouped, "g", "agg", {"y": "mean", "m": "count"}),
    "groupby value_counts": spec(grouped, "k", "value_counts", "g"),
    "groupby value_counts, dropna": spec(
        grouped, ["g", "e"], "value_counts", ["h", "s"], dropna=True, normalize=True
    ),
    "pivot_table": spec(verb, "pivot_table", ["x", "y"], "g", "e", ["mean", "sum"]),
    "pivot_table, margins": spec(verb, "pivot_table", ["x", "y"], "g", "e", ["var", "sum"], margins=True),
    "crosstab of values": spec(verb, "crosstab", "g", "e", values="x", aggfunc="mean", dropna=True),
    "groupby size": spec(grouped, ["k", "e"], "size"),
    "groupby nunique": spec(grouped, "k", "nunique", ["g", "n"]),
    "groupby, dropna": spec(
        lambda **words: lambda dp: dp.groupby(["g", "e"], dropna=True)["x"].mean(**words), epsilon=1, rng=1
    ),
}
GROUPED_SELECTIONS: dict[str, Spec] = {
    "groupby mode": spec(grouped, ["g", "e"], "mode", ["k", "n"]),
    "groupby median": spec(grouped, "g", "median", ["x", "m"]),
    "groupby quantile": spec(grouped, ["k", "e"], "quantile", ["y", "n"], [0, 0.2, 0.5, 1]),
    "groupby min": spec(grouped, "k", "min", ["x", "m"]),
    "groupby max": spec(grouped, ["g", "e"], "max", "y"),
}
SELECTIONS: dict[str, Spec] = {
    "mode g": spec(verb, "mode", "g"),
    "mode of several": spec(verb, "mode", ["k", "m", "y"]),
    "top_k m": spec(verb, "top_k", "m", 3),
    "top_k of several": spec(verb, "top_k", ["k", "n"], 2),
    "quantile x": spec(verb, "quantile", "x", 0.25),
    "quantile of several": spec(verb, "quantile", ["x", "n"], [0.1, "1/2", 0.9]),
    "median y": spec(verb, "median", "y"),
    "median of several": spec(verb, "median", ["m", "e"]),
    "min x": spec(verb, "min", "x"),
    "max of several": spec(verb, "max", ["n", "y"]),
    **GROUPED_SELECTIONS,
}
WEIGHTED: dict[str, Spec] = {
    "weighted sum": spec(verb, "sum", ["x", "y"], weights="n"),
    "weighted mean": spec(verb, "mean", ["x", "y"], weights="m"),
    "weighted proportion": spec(verb, "proportion", "g", "a", weights="n"),
    "weighted value_counts": spec(verb, "value_counts", "g", weights="m"),
    "weighted value_counts, simplex": spec(
        verb, "value_counts", "k", weights="n", constraint="simplex", normalize=True
    ),
    "weighted histogram, edges": spec(verb, "histogram", "x", [-2, 0, 2.5, 4], weights="m"),
    "weighted crosstab, margins": spec(verb, "crosstab", "g", "s", weights="n", margins=True),
    "groupby, weighted count": spec(grouped, ["g", "e"], "count", weights="n"),
    "groupby, weighted sum": spec(grouped, "k", "sum", ["x", "y"], weights="m"),
    "groupby, weighted mean": spec(grouped, "g", "mean", "x", weights="n"),
    "groupby, weighted proportion": spec(grouped, "k", "proportion", "g", "a", weights="m"),
    "groupby, weighted value_counts": spec(grouped, "k", "value_counts", "s", weights="n"),
    "weighted agg": spec(verb, "agg", {"x": ["count", "sum", "mean"], "y": ["sum"]}, weights="m"),
    "groupby, weighted agg": spec(grouped, "k", "agg", {"x": ["sum", "mean"], "y": ["count"]}, weights="m"),
}
WEIGHTED_SELECTIONS: dict[str, Spec] = {
    "weighted quantile": spec(verb, "quantile", ["x", "y"], ["1/3", 0.5], weights="n"),
    "weighted quantile of integers": spec(verb, "quantile", "n", 0.9, weights="m"),
    "weighted median": spec(verb, "median", "x", weights="m"),
}
INTERVALS_OF_RANKS: dict[str, Spec] = {
    "interval of quantiles": spec(verb, "quantile", ["x", "n"], [0, 0.25, 1], interval=True),
    "interval of a minimum": spec(verb, "min", "m", interval=True),
    "groupby median, interval": spec(grouped, ["k", "e"], "median", ["y", "n"], interval=True),
    "groupby max, interval": spec(grouped, "g", "max", "x", interval=True),
}
DATES: dict[str, Call] = {
    "mean of dates": verb("mean", ["when", "day"]),
    "mean of dates, truncated": verb("mean", "when", bounding="truncated"),
    "mean of dates, Gaussian": verb("mean", "zoned", mechanism="gaussian", delta=1e-6),
    "min and max of dates": lambda dp: [verb("min", "day")(dp), verb("max", "zoned")(dp)],
    "median of dates": verb("median", ["when", "day"]),
    "quantile of dates": verb("quantile", "day", [0.1, 0.9]),
    "count of dates": verb("count", ["when", "day", "zoned"]),
    "periods": lambda dp: verb("value_counts", "when", sort=False)(dp.cut("when", freq="M").dp),
    "periods with a time zone": lambda dp: verb("crosstab", "zoned", "k")(dp.cut("zoned", freq="Q").dp),
    "periods of weeks": lambda dp: verb("mode", "day")(dp.cut("day", freq="W").dp),
    "value_counts by period": verb("value_counts", "when", freq="M"),
    "histogram by period": verb("histogram", "day", freq="Q"),
    "groups by period": lambda dp: dp.groupby("day", freq="Q").mean("m", epsilon=1, rng=1),
    "groups of dates": grouped("k", "mean", ["when", "day"]),
    "medians of dates by group": grouped("k", "median", "zoned"),
    "pivot_table of dates": lambda dp: verb("pivot_table", "m", "day", "k", "mean")(
        dp.cut("day", freq="Y").dp
    ),
    "difference of dates": lambda dp: verb("mean", "d")(dp.assign(d="day - when").dp),
    "fields of dates": lambda dp: [
        verb("value_counts", name, sort=False)(dp.assign(**{name: f"{column}.dt.{field}"}).dp)
        for name, column, field in (("y", "when", "year"), ("w", "day", "dayofweek"), ("h", "zoned", "hour"))
    ],
    "query of dates": lambda dp: verb("count")(dp.query("when >= '2022-03-27' and day < '2022-11-01'").dp),
    "query with a time zone": lambda dp: verb("mean", "zoned")(
        dp.query("zoned > '2022-03-27 02:00+02:00'").dp
    ),
    "fillna of dates": lambda dp: verb("mean", "when")(dp.fillna({"when": "2022-01-01"}).dp),
}
CLUSTERINGS: dict[str, Spec] = {
    "kmeans x y": spec(verb, "kmeans", ["x", "y"], 2, iterations=2, progress=False),
    "kmeans m": spec(verb, "kmeans", "m", 3, iterations=3, progress=False),
    "kmeans, Gaussian": spec(
        verb, "kmeans", ["y", "m"], 2, iterations=2, mechanism="gaussian", delta=1e-6, progress=False
    ),
    "kmedian n": spec(verb, "kmedian", "n", 2, steps=3, progress=False),
    "kmedian m y": spec(
        verb, "kmedian", ["m", "y"], 2, steps=2, mechanism="permute_and_flip", progress=False
    ),
}

NOISE: dict[str, dict[str, Any]] = {
    "Gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    "Gaussian, classic": {"mechanism": "gaussian", "delta": 1e-6, "calibration": "classic", "epsilon": 0.5},
    "Gaussian, pdp": {"mechanism": "gaussian", "delta": 1e-6, "calibration": "pdp"},
    "generalized Gaussian": {"mechanism": "generalized_gaussian", "p": 3, "delta": 1e-6},
    "generalized Gaussian of order 1": {"mechanism": "generalized_gaussian", "p": 1},
    "clamp": {"bounding": "clamp"},
    "truncated": {"bounding": "truncated"},
    "truncated Gaussian": {"bounding": "truncated", "mechanism": "gaussian", "delta": 1e-6},
    "truncated generalized": {
        "bounding": "truncated", "mechanism": "generalized_gaussian", "p": "5/2", "delta": 1e-6,
    },
    "published": {"bounding": "truncated", "mechanism": "laplace", "calibration": "published"},
    "bounds": {"bounding": "truncated", "bounds": (0, 5)},
    "bounds, clamp": {"bounding": "clamp", "bounds": (None, 3)},
    "three releases": {"releases": 3},
    "tiny epsilon": {"epsilon": "1e-7"},
    "large epsilon": {"epsilon": 40},
}  # fmt: skip
PARTICULAR: dict[str, dict[str, Any]] = {
    "staircase": {"mechanism": "staircase"},
    "clamped staircase": {"mechanism": "staircase", "bounding": "clamp"},
    "staircase, three releases": {"mechanism": "staircase", "releases": 3},
    "discrete Gaussian": {"mechanism": "discrete_gaussian", "delta": 1e-6},
    "clamped discrete Gaussian": {"mechanism": "discrete_gaussian", "delta": 1e-6, "bounding": "clamp"},
    "discrete Gaussian, two releases": {"mechanism": "discrete_gaussian", "delta": 1e-6, "releases": 2},
}
"""Noise that is not for every release: where one number changes, and for counts."""
LAPLACE: dict[str, dict[str, Any]] = {"Laplace": {"mechanism": "laplace"}}
CHOICES: dict[str, dict[str, Any]] = {
    "exponential": {"mechanism": "exponential"},
    "noisy max": {"mechanism": "noisy_max"},
    "noisy max, Gaussian": {"mechanism": "noisy_max", "noise": "gaussian", "delta": 1e-6},
    "two releases": {"releases": 2},
}

BASIC = ["add_remove", "replace_one", "public_rows", "unit", "unit, replace_one"]
"""Settings in which all verbs are asked, on every engine but public_rows, and with one more noise."""

BRIEF = ["sum x", "mean x", "var y", "groupby mean", "count", "value_counts g", "crosstab", "median y"]
BRIEF.append("mode g")
"""Verbs that are asked with all noise, and in all other settings."""

FEW = 7
"""Noises that are asked of all verbs; of more, a few in turn."""


def _covering(position: int, name: str, setting: str, noises: dict[str, dict[str, Any]]) -> list[str]:
    """The noises that a verb is asked in a setting: all of a few verbs, in turn a few of the others."""
    listed = list(noises)
    if setting not in ("add_remove", "replace_one"):
        return listed[:1]
    if name in BRIEF or len(listed) < FEW:
        return listed
    times = 3 if setting == "add_remove" else 2
    return [listed[(position * times + more * FEW) % len(listed)] for more in range(times)]


def _releases(family: str, verbs: dict[str, Spec], noises: dict[str, dict[str, Any]]) -> Iterator[Case]:
    for setting in BASIC:
        for position, (name, (make, args, words)) in enumerate(verbs.items()):
            whole = setting != "public_rows" and family != "clusterings"
            yield Case(family, name, setting, make(*args, **words), engines=whole or name.startswith("kmed"))
            if "mechanism" in words or name.startswith(("kme", "marginals")):
                continue
            for noise in _covering(position, name, setting, noises):
                more = noises[noise]
                yield Case(family, f"{name}, {noise}", setting, make(*args, **{**words, **more}))
    for setting in SETTINGS:
        if setting not in BASIC:
            for name in BRIEF:
                if name in verbs:
                    make, args, words = verbs[name]
                    all_engines = setting != "unit, crowded"
                    yield Case(family, name, setting, make(*args, **words), engines=all_engines)


def _particular(family: str, verbs: dict[str, Spec]) -> Iterator[Case]:
    """Few verbs with all `PARTICULAR` noise, on every engine in one setting."""
    for setting in ("add_remove", "replace_one", "unit"):
        for name in [*BRIEF, "value_counts of several", "crosstab, hierarchy"]:
            if name in verbs:
                make, args, words = verbs[name]
                for noise, more in PARTICULAR.items():
                    call = make(*args, **{**words, **more})
                    yield Case(family, f"{name}, {noise}", setting, call, engines=setting == "add_remove")


# ---------------------------------------------------------------- steps

STEPS: dict[str, Call] = {
    "query": lambda dp: dp.query("x > 1.5"),
    "query of several": lambda dp: dp.query("n >= 3 and g == 'a' or not h"),
    "query of nulls": lambda dp: dp.query("x.isna() or g in ['a']"),
    "query of a range": lambda dp: dp.query("0 < y <= 1"),
    "clip": lambda dp: dp.clip(lower=0, upper={"x": 5, "n": 4}),
    "clip of columns": lambda dp: dp.clip(0.1, 1.2, columns=["x", "y"]),
    "assign": lambda dp: dp.assign(z="x * 2 + n", w="y > 0.3"),
    "assign, bounds": lambda dp: dp.assign(z="1 / x", bounds={"z": (-4, 4)}),
    "assign of integers": lambda dp: dp.assign(z="n // 2 + m % 3"),
    "cut": lambda dp: dp.cut("x", [-3, 0, 5, 10]),
    "cut, labels": lambda dp: dp.cut("m", [0, 2, 5], right=False, labels=["few", "many"]),
    "recode": lambda dp: dp.recode("g", {"a": "c", "b": None}),
    "recode of few": lambda dp: dp.recode("k", {"u": "v"}),
    "fillna": lambda dp: dp.fillna({"x": 1.5, "n": 12, "g": "z"}),
    "fillna of all": lambda dp: dp.select(["x", "n", "m"]).dp.fillna(0),
    "dropna": lambda dp: dp.dropna(["x", "g"]),
    "dropna, all": lambda dp: dp.dropna(["x", "n"], how="all"),
    "select": lambda dp: dp.select(["n", "k", "y"]),
    "rename": lambda dp: dp.rename({"x": "z", "g": "f"}),
    "astype": lambda dp: dp.astype({"n": "float64", "h": "int64", "e": float}),
    "several": lambda dp: dp.query("m > 0").dp.fillna({"x": 0}).dp.clip(upper={"x": 2}).dp.assign(z="x + m"),
}


def stepped(step: Call) -> Call:
    """Every column that is left, as it is read by sums and tables."""

    def call(dp: Any) -> Any:
        left = step(dp)
        columns = left.dp.domain.columns
        numbers = [
            declared.name for declared in columns if declared.lower is not None and declared.kind != "boolean"
        ]
        labelled = [
            declared.name
            for declared in columns
            if declared.categories is not None or declared.kind == "boolean"
        ]
        results = [left.dp.lineage, str(left.dp.domain), left.dp.count(epsilon=1, rng=1)]
        if numbers:
            results.append(left.dp.sum(numbers, epsilon=1, rng=1))
        return results + [left.dp.value_counts(name, epsilon=1, rng=1, sort=False) for name in labelled]

    return call


# ---------------------------------------------------------------- parts, partitions, plans, batches


def quietly(part: Call, *releases: Call) -> Call:
    """Releases of a secret part, one after the other."""

    def call(dp: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.OmissionWarning)
            left = part(dp)
        results: list[Any] = [left.dp.lineage, *(release(left.dp) for release in releases)]
        return [*results, left.dp.budget.spent, left.dp.remaining()]

    return call


MEAN, COUNT = verb("mean", "y"), verb("count")
GAUSSIAN = verb("sum", "y", mechanism="gaussian", delta=1e-6)
SECRET: dict[tuple[str, str], Call] = {
    ("sample", "add_remove"): quietly(
        lambda dp: dp.sample(frac=0.5, rng=1), MEAN, COUNT, verb("median", "y")
    ),
    ("sample, Gaussian", "add_remove"): quietly(lambda dp: dp.sample(frac="1/3", rng=1), GAUSSIAN),
    ("sample, spend epsilon", "add_remove"): quietly(
        lambda dp: dp.sample(frac=0.5, spend="epsilon", rng=1), MEAN, COUNT, GAUSSIAN
    ),
    ("sample n", "replace_one"): quietly(lambda dp: dp.sample(8, rng=1), MEAN, COUNT),
    ("sample n, spend epsilon", "replace_one"): quietly(
        lambda dp: dp.sample(n=8, spend="epsilon", rng=1), MEAN, COUNT
    ),
    ("sample", "unit"): quietly(lambda dp: dp.sample(frac=0.5, rng=1), MEAN, COUNT),
    ("suppress_outliers", "add_remove"): quietly(
        lambda dp: dp.suppress_outliers("y", 0.1, 0.2, rng=1), MEAN, COUNT
    ),
    ("suppress_outliers, spend epsilon", "add_remove"): quietly(
        lambda dp: dp.suppress_outliers("k", 0.1, 0.3, distance="discrete", spend="epsilon", rng=1),
        MEAN,
        COUNT,
    ),
    ("suppress_outliers, euclidean", "add_remove"): quietly(
        lambda dp: dp.suppress_outliers(["y", "m"], 0.1, 0.2, distance="euclidean", rng=1, progress=False),
        MEAN,
    ),
    ("suppress_outliers, alike", "add_remove"): quietly(
        lambda dp: dp.suppress_outliers("y", 0.5, 0.5, rng=1), MEAN
    ),
    ("suppress_outliers", "replace_one"): quietly(lambda dp: dp.suppress_outliers("y", 0.1, 0.2), MEAN),
    ("plan of a sample", "add_remove"): quietly(
        lambda dp: dp.sample(frac=0.5, spend="epsilon", rng=1),
        lambda dp: dp.plan_releases([("count", {"epsilon": 1, "rng": 1})] * 2).release(),
    ),
    ("partition of a sample", "add_remove"): quietly(
        lambda dp: dp.sample(frac=0.5, rng=1),
        lambda dp: {key: COUNT(group.dp) for key, group in dp.partition("e", epsilon=1).items()},
    ),
}


def parted(by: Any, *releases: Call) -> Call:
    def call(dp: Any) -> Any:
        groups = dp.partition(by, epsilon=3, delta=1e-5)
        return {key: [release(group.dp) for release in releases] for key, group in groups.items()}

    return call


PLANNED: list[tuple[Any, ...]] = [
    ("mean", "x", {"epsilon": 0.2, "rng": 1}),
    ("crosstab", "k", "s", {"epsilon": 0.3, "rng": 2}),
    ("median", "y", {"epsilon": 0.1, "rng": 3}),
    ("mode", "g", {"epsilon": 0.1, "rng": 3}),
    *[("count", {"epsilon": 0.05, "rng": 4})] * 4,
    ("sum", ["x", "m"], {"epsilon": 0.4, "delta": 1e-7, "mechanism": "gaussian", "rng": 5}),
]


def planning(calls: list[Any], **words: Any) -> Call:
    def call(dp: Any) -> Any:
        plan = dp.plan_releases(calls, **words)
        costs = [plan.cost.epsilon, plan.cost.delta, plan.apart.epsilon, plan.apart.delta]
        return [*costs, *plan.release()]

    return call


def together(dp: Any) -> Any:
    with dp.batch() as batch:
        pending = [
            batch.mean("x", epsilon=0.2, rng=1),
            batch.crosstab("k", "s", epsilon=0.3, rng=2, margins=True),
            batch.var(["y", "m"], epsilon=0.5, rng=3),
            batch.mode("k", epsilon=0.1, rng=3),
            batch.histogram("x", [-3, 0, 10], epsilon=0.1, rng=4),
        ]
    return [wait.result for wait in pending]


def errors_of(statistic: str, *args: Any, **words: Any) -> Call:
    """The noise scales of a plan; its errors are another matter."""

    def call(dp: Any) -> Any:
        table = getattr(dp.plan, statistic)(*args, **{"epsilon": [0.1, 1], "rows": 24, **words})
        return table.reindex(columns=["scale"])["scale"]  # left out where no number has one noise

    return call


TOGETHER: dict[str, tuple[list[str], Call]] = {
    "partition k": (BASIC, parted("k", COUNT, MEAN, GAUSSIAN)),
    "partition g": (["add_remove", "replace_one"], parted("g", COUNT, verb("median", "x"))),
    "partition of bins": (["add_remove"], parted("y", verb("mean", "y"))),
    "plan_releases": (
        ["add_remove", "replace_one", "unit"], planning(PLANNED, delta=1e-6, accounting="basic")),
    "plan_releases, optimal": (["add_remove"], planning(PLANNED[4:8] * 5, delta=1e-6, accounting="optimal")),
    "plan_releases, zcdp": (["add_remove"], planning(PLANNED, delta=1e-6, accounting="zcdp")),
    "plan_releases of clusters": (
        ["add_remove"],
        planning([("kmedian", "n", 2, {"epsilon": 1, "steps": 2, "rng": 1})], accounting="basic"),
    ),
    "batch": (["add_remove", "replace_one", "unit"], together),
    "plan mean": (["add_remove", "replace_one"], errors_of("mean", ["x", "y"])),
    "plan crosstab": (["add_remove"], errors_of("crosstab", "k", "s", bounding=[None, "truncated"])),
    "plan var, Gaussian": (["add_remove"], errors_of("var", "y", mechanism="gaussian", delta=1e-6)),
}  # fmt: skip

STEPPED: dict[str, dict[str, Call]] = {
    "numbers": {
        "count": COUNT, "mean": MEAN, "sum": GAUSSIAN, "groups": grouped("k", "mean", "y")},
    "tables": {
        "crosstab": verb("crosstab", "k", "s", margins=True),
        "counts": verb("value_counts", "g", releases=2)},
    "selections": {"median": verb("median", "x"), "mode": verb("mode", "k")},
    "clusters": {"medians": verb("kmedian", "n", 2, steps=2, progress=False)},
    "filtered": {"mean": lambda dp: MEAN(dp.query("m > 1").dp)},
}  # fmt: skip


def in_a_step(releases: dict[str, Call]) -> Call:
    """A step of a pipeline, made and then tried again: the second time it charges and reads nothing."""

    def call(frame: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:

            @release_step(
                schema=DOMAIN,
                ledger=Path(folder) / "budgets.ledger",
                name="table",
                epsilon=100,
                delta=0.1,
                to=Path(folder) / "released",
            )
            def step(private: Any) -> Any:
                return {name: release(private.dp) for name, release in releases.items()}

            return [step(frame, release_id="first"), step(frame, release_id="first")]

    return call


EXACT: dict[str, Call] = {
    "dr_ha": lambda dp: dp.dr_ha(by=["k", "y"], sensitive="s", epsilon=[0.1, 1]),
    "dr_ha, expected": lambda dp: dp.dr_ha("k", "s", [1], measure="expected"),
    "risk_curve": lambda dp: dp.risk_curve(["k"], "s", epsilon=[0.5, 1], progress=False),
    "choose_epsilon": lambda dp: float(dp.choose_epsilon("k", "s", max_risk=0.4, progress=False)),
    "homogeneity": lambda dp: [dp.homogeneity("k", "s").summary, dp.homogeneity("k", "s").exposed],
    "anonymity": lambda dp: [table for _, table in dp.anonymity(["k", "y"], "s").tables()],
    "repeated_risk": lambda dp: dp.repeated_risk(
        [{"by": "k", "sensitive": "s", "epsilon": 1}], progress=False
    ),
    "quality": lambda dp: dp.quality(),
    "split": lambda dp: [str(share) for share in dp.split(1, into=[1, 2])],
    "domain": lambda dp: str(dp.domain),
}
"""Numbers for the curator, without noise; simulations are left out, because their draws may change."""

# ---------------------------------------------------------------- budgets

BUDGETS: dict[str, dict[str, Any]] = {
    "basic, pure": {"epsilon": 10},
    "basic": {"epsilon": 10, "delta": 1e-4},
    "filter": {"epsilon": 10, "delta": 1e-4, "accounting": "filter"},
    "zcdp": {"epsilon": 10, "delta": 1e-4, "accounting": "zcdp"},
    "rho": {"rho": 2, "accounting": "zcdp"},
    "rho, basic": {"rho": 2},
    "small": {"epsilon": 1},
}
SPENDING: list[tuple[str, Call]] = [
    ("count", verb("count", epsilon=0.1)),
    ("count again", verb("count", epsilon=0.1)),
    ("mean", verb("mean", "y", epsilon="1/3")),
    ("Gaussian sum", verb("sum", "y", epsilon=0.5, delta=1e-6, mechanism="gaussian")),
    ("truncated Gaussian", verb(
        "mean", "y", epsilon=0.5, delta=1e-6, mechanism="gaussian", bounding="truncated")),
    ("generalized Gaussian", verb(
        "count", epsilon=0.25, delta=1e-6, mechanism="generalized_gaussian", p=3)),
    ("three crosstabs", verb("crosstab", "k", "s", epsilon=0.3, releases=3)),
    ("median", verb("median", "y", epsilon=0.1)),
    ("kmeans", verb("kmeans", "y", 2, epsilon=0.2, iterations=2, progress=False)),
    ("partition", lambda dp: dp.partition("k", epsilon=0.1)),
    ("plan", planning(PLANNED[4:8], accounting="basic")),
    ("too much", verb("count", epsilon=50)),
    ("sample", lambda dp: dp.sample(frac=0.5)),
]  # fmt: skip


def budgeted(terms: dict[str, Any]) -> Call:
    """The spent and the remaining budget after each of several charges."""

    def call(make: Any) -> Any:
        dp = make(**terms).dp
        results: list[Any] = []
        for title, release in SPENDING:
            refusal = ""
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", errors.OmissionWarning)
                try:
                    release(dp)
                except errors.PrivacyError as error:
                    refusal = f"refused by {type(error).__name__}"
            left = [*dp.budget.spent, *dp.budget.left, dp.remaining()]
            with contextlib.suppress(errors.PrivacyError):
                left.append(dp.remaining(delta=1e-6))
            results.append([title, *left, *([refusal] if refusal else [])])
        report = dp.budget.report(1e-5)
        results.append([f"{name} {report['epsilon'][name]:.6g}" for name in ("basic", "optimal", "zcdp")])
        total = dp.budget.composed
        return [*results, [] if total is None else [total.epsilon, total.delta]]

    return call


def _cases() -> Iterator[Case]:
    yield from _releases("moments", MOMENTS, NOISE)
    yield from _particular("moments", MOMENTS)
    yield from _releases("tables", TABLES, {**LAPLACE, **NOISE})
    yield from _particular("tables", TABLES)
    yield from _releases("groups", GROUPS, NOISE)
    yield from _particular("groups", GROUPS)
    yield from _releases("selections", SELECTIONS, CHOICES)
    yield from _releases("selections", INTERVALS_OF_RANKS, {"two releases": {"releases": 2}})
    yield from _releases("clusterings", CLUSTERINGS, {})
    yield from _releases("weighted", WEIGHTED, NOISE)
    yield from _releases("weighted", WEIGHTED_SELECTIONS, {"two releases": {"releases": 2}})
    for name, call in DATES.items():
        for setting in DATED_SETTINGS:
            yield Case("dates", name, setting, call, engines=setting == "dates")
    for name, step in STEPS.items():
        yield Case("steps", name, "add_remove", stepped(step), engines=True)
    for name in ("query", "assign", "fillna", "several"):
        for setting in ("replace_one", "public_rows", "unit, crowded", "drop"):
            yield Case("steps", name, setting, stepped(STEPS[name]))
    for (name, setting), call in SECRET.items():
        yield Case("parts", name, setting, call, engines=name in ("sample", "suppress_outliers"), fresh=True)
    for name, (settings, call) in TOGETHER.items():
        for setting in settings:
            yield Case("together", name, setting, call, engines=setting != "public_rows")
    for name, releases in STEPPED.items():
        yield Case("pipeline", f"a step of {name}", "add_remove", in_a_step(releases), engines=True)
    for name, call in EXACT.items():
        for setting in ("add_remove", "clip", "drop", "unit"):
            yield Case("curator", name, setting, call, engines=True)
    for name, terms in BUDGETS.items():
        yield Case("budgets", name, "add_remove", budgeted(terms), fresh=True)


CASES: dict[str, Case] = {}
for _case in _cases():
    assert _case.title not in CASES, _case.title
    CASES[_case.title] = _case
FAMILIES = list(dict.fromkeys(case.family for case in CASES.values()))
