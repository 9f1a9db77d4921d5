"""How often the 95 % intervals that releases state hold the exact statistic, over a grid of releases."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

import pdprivacy
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.releases.metadata import all_noise

LEVEL = 0.95
EPSILONS = (0.1, 1.0, 10.0)
BOUNDINGS = (None, "project", "clamp", "truncated")
MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {"mechanism": "laplace"},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    "generalized_gaussian": {"mechanism": "generalized_gaussian", "p": 3, "delta": 1e-6},
    "geometric": {"mechanism": "geometric"},
}
COUNTED = ("geometric", "laplace", "gaussian")
NUMBERS = ("laplace", "gaussian", "generalized_gaussian")

DOMAIN = Domain(
    (
        Column("x", "float", lower=0, upper=10),
        Column("y", "float", lower=0, upper=10),
        Column("z", "float", lower=-5, upper=5),
        Column("g", "category", categories=("a", "b", "c", "d")),
        Column("b", "boolean"),
    )
)


def frame(rows: int, kind: str) -> pd.DataFrame:
    """Fixed data: spread over the range, close to a bound, or the same in all records but few."""
    rng = np.random.default_rng([rows, *kind.encode()])
    x = {
        "spread": rng.uniform(0, 10, rows),
        "near a bound": rng.beta(1, 40, rows) * 10,
        "constant": np.zeros(rows),
    }[kind]
    groups = np.full(rows, "a", dtype=object)
    groups[: rows // 3] = "b"
    groups[:3] = "c"  # and none is in the last group
    few = {"spread": 0.4, "near a bound": 0.05, "constant": 0.0}[kind]
    true = np.arange(rows) < round(few * rows)
    return pd.DataFrame(
        {"x": x, "y": x.copy(), "z": rng.permutation(x) - 5, "g": groups, "b": rng.permutation(true)}
    )


@dataclass(frozen=True)
class Case:
    """A release, and what it is of: ``truth`` in the shape of one release, from the data alone."""

    name: str
    call: Callable[..., Any]
    truth: Callable[[pd.DataFrame], Any]
    mechanisms: tuple[str, ...] = NUMBERS
    scopes: tuple[str, ...] = ("add_remove",)
    boundings: tuple[str | None, ...] = BOUNDINGS


def _by(data: pd.DataFrame, how: str) -> pd.DataFrame:
    aggregated = getattr(data.groupby("g")[["x", "z"]], how)()
    return aggregated.reindex(list("abcd"))


def _pooled(data: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    within = data[columns] - data.groupby("g")[columns].transform("mean")
    return within.T @ within / (len(data) - 4)


def _table(data: pd.DataFrame, normalize: Any, *, margins: bool) -> pd.DataFrame:
    """Like `pandas.crosstab`, with all declared cells."""
    counts = pd.crosstab(data["g"], data["b"]).reindex(
        index=list("abcd"), columns=[False, True], fill_value=0
    )
    table = counts.to_numpy(dtype=float)
    if margins:
        table = np.block(
            [
                [table, table.sum(1, keepdims=True)],
                [table.sum(0, keepdims=True), np.full((1, 1), table.sum())],
            ]
        )
    inner = table[:4, :2]
    with np.errstate(invalid="ignore"):  # a share of nothing is no number
        if normalize == "all":
            table = table / inner.sum()
        if normalize == "index":
            table = table[:, :2] / table[:, :2].sum(1, keepdims=True)
        if normalize == "columns":
            table = table[:4] / table[:4].sum(0, keepdims=True)
    return pd.DataFrame(table)


def _counts(data: pd.DataFrame) -> Any:
    return data["g"].value_counts().reindex(list("abcd"), fill_value=0)


def _upper(matrix: pd.DataFrame, offset: int = 0) -> Any:
    values = np.array(matrix, dtype=float)
    values[np.tril_indices(len(values), offset - 1)] = np.nan
    return values


BOTH = ("add_remove", "replace_one")
CASES = (
    Case("sum", lambda dp, **o: dp.sum(["x", "z"], **o), lambda d: d[["x", "z"]].sum(), boundings=(None,)),
    Case("mean", lambda dp, **o: dp.mean(["x", "z"], **o), lambda d: d[["x", "z"]].mean(), scopes=BOTH),
    Case("proportion", lambda dp, **o: dp.proportion("b", **o), lambda d: d["b"].mean(), scopes=BOTH),
    Case("var", lambda dp, **o: dp.var(["x", "z"], **o), lambda d: d[["x", "z"]].var(), scopes=BOTH),
    Case("std", lambda dp, **o: dp.std(["x", "z"], **o), lambda d: d[["x", "z"]].std(), scopes=BOTH),
    Case(
        "describe",
        lambda dp, **o: dp.describe(["x", "z"], **o),
        lambda d: d[["x", "z"]].describe().iloc[:3],
    ),
    Case(
        "cov",
        lambda dp, **o: dp.cov(["x", "y", "z"], **o),
        lambda d: _upper(d[["x", "y", "z"]].cov()),
        scopes=BOTH,
    ),
    Case(
        "corr",
        lambda dp, **o: dp.corr(["x", "y", "z"], **o),
        lambda d: _upper(d[["x", "y", "z"]].corr(), 1),
        scopes=BOTH,
    ),
    Case(
        "pooled_var",
        lambda dp, **o: dp.pooled_var(["x", "z"], by="g", **o),
        lambda d: np.diagonal(_pooled(d, ["x", "z"])),
        scopes=BOTH,
    ),
    Case(
        "pooled_cov",
        lambda dp, **o: dp.pooled_cov(["x", "z"], by="g", **o),
        lambda d: _upper(_pooled(d, ["x", "z"])),
    ),
    Case("groupby mean", lambda dp, **o: dp.groupby("g").mean(["x", "z"], **o), lambda d: _by(d, "mean")),
    Case("groupby var", lambda dp, **o: dp.groupby("g").var(["x", "z"], **o), lambda d: _by(d, "var")),
    Case("value_counts", lambda dp, **o: dp.value_counts("g", sort=False, **o), _counts, COUNTED),
    Case(
        "shares",
        lambda dp, **o: dp.value_counts("g", sort=False, normalize=True, **o),
        lambda d: _counts(d) / len(d),
        COUNTED,
    ),
    *(
        Case(
            f"crosstab{f', shares of {way}' if way else ''}, margins",
            lambda dp, way=way, **o: dp.crosstab("g", "b", margins=True, normalize=way, **o),
            lambda d, way=way: _table(d, way, margins=True),
            COUNTED,
        )
        for way in (False, "all", "index", "columns")
    ),
    *(
        Case(
            f"shares, {constraint}",
            lambda dp, constraint=constraint, **o: dp.value_counts(
                "g", sort=False, normalize=True, constraint=constraint, **o
            ),
            lambda d: _counts(d) / len(d),
            COUNTED,
        )
        for constraint in ("rescale", "simplex", "all_but_one", "hierarchy")
    ),
    Case(
        "counts, simplex",
        lambda dp, **o: dp.crosstab("g", "b", constraint="simplex", margins=True, **o),
        lambda d: _table(d, False, margins=True),
        COUNTED,
        ("replace_one",),
    ),
    Case(
        "cov, psd",
        lambda dp, **o: dp.cov(["x", "y", "z"], constraint="psd", **o),
        lambda d: _upper(d[["x", "y", "z"]].cov()),
        boundings=(None,),
    ),
    Case(
        "combine, one mean",
        lambda dp, **o: _combined(dp.mean(["x", "z"], **{**o, "releases": 1})),
        lambda d: d[["x", "z"]].mean(),
        ("laplace", "gaussian"),
        BOTH,
    ),
)


def _combined(released: Any) -> Any:
    return pdprivacy.combine(released, within=0)


@lru_cache
def protected(rows: int, kind: str, scope: str) -> Any:
    """The data, protected, with a budget that does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # clipped data ends at its bounds
        return frame(rows, kind).dp.protect(DOMAIN, epsilon=10**12, delta="0.9", neighbors=scope)


def coverage(
    case: Case,
    data: tuple[int, str],
    scope: str,
    bounding: str | None,
    mechanism: str,
    epsilon: float,
    draws: int,
    seed: int = 7,
) -> tuple[float, float]:
    """The share of numbers within their intervals, and the mean half width of the intervals."""
    dp = protected(*data, scope).dp
    truth = np.asarray(case.truth(frame(*data)), dtype=float)
    rng = np.random.default_rng(
        [seed, *f"{case.name} {data} {scope} {bounding} {mechanism} {epsilon}".encode()]
    )
    options = {**MECHANISMS[mechanism], **({} if bounding == "project" else {"bounding": bounding})}
    if "delta" in options:
        options["delta"] = 1e-6 * draws if not case.name.startswith("combine") else 1e-6
    if case.name.startswith("combine"):
        ends = [case.call(dp, epsilon=epsilon, rng=rng, **options) for _ in range(draws)]
        lower, upper = (np.array([end[side] for end in ends]) for side in ("lower", "upper"))
    else:
        released = case.call(dp, epsilon=epsilon * draws, releases=draws, rng=rng, **options).dp.interval()
        lower, upper = (released[side].to_numpy(dtype=float) for side in ("lower", "upper"))
        # one release next to the other
        lower, upper = (
            side.reshape(len(side), draws, -1).transpose(1, 0, 2).reshape(draws, *truth.shape)
            for side in (lower, upper)
        )
    known = np.isfinite(truth) & np.isfinite(lower)
    slack = 1e-9 * (1 + np.abs(np.nan_to_num(truth)))
    covered = (lower - slack <= truth) & (truth <= upper + slack)
    if not known.any():
        return math.nan, math.nan
    return float(covered[known].mean()), float(((upper - lower) / 2)[known].mean())


@dataclass(frozen=True)
class Default:
    """How the intervals of projected numbers did: ``covered`` of all, ``known``: the part not all noise.

    ``width``: the largest ratio of the median width of a number's intervals to that before the projection.
    """

    covered: float
    known: float
    width: float


def by_default(
    case: Case, data: tuple[int, str], scope: str, mechanism: str, epsilon: float, draws: int, seed: int = 7
) -> Default:
    """Draw projected releases, and compare their intervals with the truth and with those before."""
    dp, truth = protected(*data, scope).dp, np.asarray(case.truth(frame(*data)), dtype=float)
    rng = np.random.default_rng([seed, *f"{case.name} {data} {scope} {mechanism} {epsilon}".encode()])
    options = dict(MECHANISMS[mechanism])
    if "delta" in options:
        options["delta"] = 1e-6 * draws
    released = case.call(dp, epsilon=epsilon * draws, releases=draws, rng=rng, **options)
    ends, shape = released.dp.interval(), released.shape
    half = released.dp.unprojected().dp.metadata.error_of_each("plus_minus", shape)
    lower, upper, before, hidden = (
        np.asarray(side).reshape(len(released), draws, -1).transpose(1, 0, 2).reshape(draws, *truth.shape)
        for side in (ends["lower"], ends["upper"], 2 * half, all_noise(released, released.dp.metadata))
    )
    slack = 1e-9 * (1 + np.abs(np.nan_to_num(truth)))
    there = np.isfinite(truth) & np.isfinite(lower)  # a correlation may not exist
    if not there.any():
        return Default(math.nan, math.nan, math.nan)
    covered = (lower - slack <= truth) & (truth <= upper + slack)
    some = there.any(axis=0)
    medians = [
        np.nanmedian(np.where(there, side, np.nan)[:, some], axis=0) for side in (upper - lower, before)
    ]
    return Default(
        float(covered[there].mean()),
        1 - float(hidden[there].mean()),
        float((medians[0] / np.where(medians[1] > 0, medians[1], np.inf)).max()),
    )


DATA = ((20, "spread"), (20, "constant"), (1000, "spread"), (1000, "near a bound"))


def default_grid(index: int, draws: int, every: bool = False, seed: int = 7) -> list[dict[str, Any]]:
    """The combinations of one case as it is released by default, as `grid`."""
    case, rows = CASES[index], []
    pairs = list(itertools.product(case.mechanisms, EPSILONS))
    for turn, (scope, data) in enumerate(itertools.product(case.scopes, DATA)):
        for mechanism, epsilon in pairs if every else [pairs[(turn + turn // 3) % len(pairs)]]:
            result = by_default(case, data, scope, mechanism, epsilon, draws, seed)
            inputs = {"rows": data[0], "values": data[1], "mechanism": mechanism, "epsilon": epsilon}
            rows.append({"release": case.name, "neighbors": scope, **inputs, **asdict(result)})
    return rows


def grid(index: int, draws: int, every: bool = False, seed: int = 7) -> list[dict[str, Any]]:
    """The combinations of one case: mechanisms and epsilons take turns, or ``every`` pair is drawn."""
    case, rows = CASES[index], []
    pairs = list(itertools.product(case.mechanisms, EPSILONS))
    for turn, (scope, data, bounding) in enumerate(itertools.product(case.scopes, DATA, case.boundings)):
        # A step further after each 3, so that every bounding meets every epsilon.
        for mechanism, epsilon in pairs if every else [pairs[(turn + turn // 3) % len(pairs)]]:
            covered, half = coverage(case, data, scope, bounding, mechanism, epsilon, draws, seed)
            rows.append(
                {
                    "release": case.name,
                    "neighbors": scope,
                    "rows": data[0],
                    "values": data[1],
                    "bounding": bounding or "none",
                    "mechanism": mechanism,
                    "epsilon": epsilon,
                    "coverage": covered,
                    "half": half,
                    "short": covered < LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / draws),
                }
            )
    return rows
