"""Every public call ends in a result or in an error of the library, whatever it is given.

A call is drawn with one or two of its arguments replaced by something hostile: a number without end, an
array, a text that cannot be encoded, a cell. It must return or raise a `PrivacyError`. A refusal charges
nothing, and no message of the chain of exceptions holds a cell.
"""

from __future__ import annotations

import inspect
import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from pdprivacy import (
    ZCDP,
    Approx,
    Budget,
    Column,
    Domain,
    Ledger,
    Pure,
    Unit,
    accounting,
    combine,
    errors,
    mechanism,
    postprocess,
    protect,
    read_release,
    read_schema,
    release_step,
    report,
    risk,
    sensitivity,
    suppression,
)
from pdprivacy.checks import has_hash
from pdprivacy.command import main
from pdprivacy.core import noise
from pdprivacy.core.gate.request import Options
from tests.support.canaries import CANARY, CELL, NUMBER
from tests.support.engine_frames import ON_NEWEST_PANDAS


class Whole(int):
    """A whole number of a type of its own."""


class Text(str):
    """A text of a type of its own."""


SCALARS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "true": lambda: True,
    "zero": lambda: 0,
    "one": lambda: 1,
    "minus one": lambda: -1,
    "half": lambda: 0.5,
    "past 64 bits": lambda: 2**64,
    "below 64 bits": lambda: -(2**63) - 1,
    "a billion": lambda: 10**9,
    "5000 digits": lambda: 10**5000,
    "minus 5000 digits": lambda: -(10**5000),
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "minus infinity": lambda: float("-inf"),
    "subnormal": lambda: 5e-324,
    "largest double": lambda: 1.7e308,
    "complex": lambda: 1j,
    "decimal of a million digits": lambda: Decimal("1E+999999"),
    "decimal beyond any power": lambda: Decimal("1E+999999999999999999"),
    "tiny decimal": lambda: Decimal("1E-999999"),
    "signalling": lambda: Decimal("sNaN"),
    "decimal NaN": lambda: Decimal("NaN"),
    "decimal infinity": lambda: Decimal("-Infinity"),
    "tiny fraction": lambda: Fraction(1, 10**4000),
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "day": lambda: pd.Timestamp("2020-01-01"),
    "date": lambda: date(2020, 1, 1),
    "span": lambda: timedelta(1),
}
TEXTS: dict[str, Callable[[], Any]] = {
    "empty text": lambda: "",
    "other text": lambda: "abc",
    "column": lambda: "pay",
    "long text": lambda: "x" * 100_000,
    "digits": lambda: "9" * 5000,
    "huge power": lambda: "1e999999999",
    "surrogate": lambda: "\ud800",
    "null character": lambda: "a\0b",
    "slash": lambda: "../x",
    "bytes": lambda: b"abc",
    "bytes of no text": lambda: b"\xff\xfe",
    "path": lambda: Path("nowhere"),
    "surrogate path": lambda: Path("\ud800"),
}
CELLS: dict[str, Callable[[], Any]] = {
    "cell": lambda: np.int64(NUMBER),
    "negative cell": lambda: np.int64(-NUMBER),
    "double cell": lambda: np.float64(NUMBER + 0.5),
    "narrow cell": lambda: np.float32(9.18273e8),
    "long cell": lambda: np.longdouble(NUMBER),
    "decimal cell": lambda: Decimal(NUMBER),
    "fraction cell": lambda: Fraction(-NUMBER, 7),
    "whole of its own": lambda: Whole(-NUMBER),
    "text of its own": lambda: Text(CANARY),
    "numpy text": lambda: np.str_(CANARY),
    "numpy bytes": lambda: np.bytes_(CANARY),
    "numpy truth": lambda: np.True_,
    "numpy object": lambda: np.array(CANARY, dtype=object),
    "array": lambda: np.array([NUMBER, 1]),
    "array of none": lambda: np.array([]),
    "array of one": lambda: np.array([NUMBER]),
    "array of no dimension": lambda: np.array(NUMBER),
    "matrix": lambda: np.full((2, 2), float(NUMBER)),
    "array of texts": lambda: np.array([CANARY, "b"]),
    "array of anything": lambda: np.array([CANARY, None, NUMBER], dtype=object),
    "masked": lambda: pd.array([NUMBER, None], dtype="Int64"),
    "series": lambda: pd.Series([NUMBER, 2]),
    "series of one": lambda: pd.Series([NUMBER]),
    "series of texts": lambda: pd.Series([CANARY, "b"]),
    "series of nothing": lambda: pd.Series([], dtype=float),
    "frame": lambda: pd.DataFrame({"pay": [NUMBER], "x": [CANARY]}),
    "frame of nothing": lambda: pd.DataFrame(),
    "index": lambda: pd.Index([CANARY]),
    "row": lambda: next(pd.DataFrame({"a": [CANARY], "b": [NUMBER]}).itertuples()),
    "interval": lambda: pd.Interval(0, NUMBER),
    "list of cells": lambda: [np.int64(NUMBER)],
    "list of series": lambda: [pd.Series([NUMBER])],
    "mapping of cells": lambda: {"pay": np.int64(-NUMBER)},
    "mapping of series": lambda: {"pay": pd.Series([NUMBER])},
    "mapping from cells": lambda: {np.str_(CANARY): 1, np.int64(NUMBER): 2},
}
OTHERS: dict[str, Callable[[], Any]] = {
    "empty list": list,
    "empty tuple": tuple,
    "empty mapping": dict,
    "ragged": lambda: [[1], [2, 3]],
    "nested": lambda: [[[1]]],
    "pair": lambda: (0, 1),
    "falling pair": lambda: (1, 0),
    "pair of NaN": lambda: (float("nan"), float("nan")),
    "pair of texts": lambda: ("a", "b"),
    "pair without end": lambda: (-(10**5000), 10**5000),
    "list of hugeness": lambda: [10**5000, Decimal("sNaN")],
    "list of columns": lambda: ["pay", "rent"],
    "list of none": lambda: [None],
    "list of surrogates": lambda: ["\ud800"],
    "mapping": lambda: {"pay": 1},
    "mapping of hugeness": lambda: {"pay": 10**5000},
    "mapping of none": lambda: {None: None},
    "mapping of lists": lambda: {"pay": [1, [2]]},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "generator": lambda: iter([1, 2]),
    "class": lambda: int,
    "function": lambda: len,
    "object": object,
    "slice": lambda: slice(None),
    "not implemented": lambda: NotImplemented,
    "error": lambda: ValueError("x"),
}
HOSTILE = SCALARS | TEXTS | CELLS | OTHERS

# ------------------------------------------------------------------ what is called


def _column(dtype: Any, *checks: Any, nullable: bool = False, **dp: Any) -> pa.Column:
    return pa.Column(dtype, list(checks), nullable=nullable, metadata={"dp": dp})


def _schema() -> pa.DataFrameSchema:
    """A declaration that names no cell."""
    wide = pa.Check.in_range(0, 2_000_000_000)
    return pa.DataFrameSchema(
        {
            "pay": _column(int, wide, bins=[0, 10**6, 2 * 10**9]),
            "rent": _column(float, wide, nullable=True),
            "area": _column(str, pa.Check.isin(["north", "south"]), role="quasi_identifier"),
            "ill": _column(str, pa.Check.isin(["no", "yes"]), role="sensitive"),
            "member": _column(bool),
        }
    )


def _frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pay": [NUMBER, 5] * 6,
            "rent": [NUMBER + 0.5, None, 7.0] * 4,
            "area": ["north", "south", "south"] * 4,
            "ill": ["no", "yes"] * 6,
            "member": [True, False] * 6,
        }
    )


@dataclass
class World:
    """The objects of the calls."""

    raw: pd.DataFrame
    private: pd.DataFrame
    ledger: Ledger
    file: Path
    budget: Budget
    table: pd.DataFrame
    series: pd.Series
    several: pd.DataFrame
    read: tuple[bytes, Any] = (b"", None)
    """The bytes of the ledger when it was read, and what was spent."""

    def spent(self) -> tuple[Any, ...]:
        """The state that a refusal must not change. The same bytes of a ledger are read once."""
        content = self.file.read_bytes()
        if content != self.read[0]:
            self.read = content, self.budget.spent
        return self.private.dp.budget.spent, self.read[1]


LIMITS = Approx(10**6, 0.5)


def _world(folder: Path) -> World:
    raw = _frame()
    private = raw.dp.protect(_schema(), epsilon=10**8, delta=0.9, public_rows=5)
    file = folder / "budgets.ledger"
    ledger = Ledger(file)
    budget = ledger.open("b", LIMITS, unit=Unit())
    table = private.dp.crosstab("area", "ill", epsilon=1)
    series = private.dp.mean(["pay", "rent"], epsilon=1)
    several = private.dp.mean("pay", epsilon=1, releases=3)
    return World(raw, private, ledger, file, budget, table, series, several)


@dataclass(frozen=True)
class Call:
    """A public callable and arguments that it takes."""

    of: Callable[[World], Any]
    arguments: Mapping[str, Any]
    more: tuple[str, ...] = ()
    """Names of optional arguments that the signature does not tell."""


MASSES = {0: 0.75, 1: 0.25}
HALVES = suppression.independent(lambda database: [0.5] * len(database))
NOISE = mechanism.Laplace(1, 1)
COUNTS = [[3, 0, 1], [2, 2, 0], [0, 0, 5], [1, 1, 1]]
LOSSES = [Pure(0.1), Approx(0.5, 1e-6)]
EVENTS = [(accounting.Event(Pure(Fraction(1, 10))), 2)]
BOUNDS = {"lower": 0, "upper": 10}
OTHER_BOUNDS = BOUNDS | {"other_lower": 0.0, "other_upper": 2.0}
SMALL = {"universe": "ab", "size": 2}
NEIGHBORS = {"neighbors": "add_remove"}


def _tells(database: Any) -> dict[int, float]:
    return {len(database): 1.0}


def _dp(name: str, /, **arguments: Any) -> tuple[str, Call]:
    options = tuple(Options.__optional_keys__)
    return f"private.dp.{name}", Call(lambda world: getattr(world.private.dp, name), arguments, options)


def _plain(function: Callable[..., Any], /, **arguments: Any) -> tuple[str, Call]:
    module = inspect.unwrap(function).__module__.split(".")[1]
    return f"{module}.{function.__qualname__}", Call(lambda world: function, arguments)


def _on(owner: Any, name: str, /, **arguments: Any) -> tuple[str, Call]:
    return f"{type(owner).__name__}.{name}", Call(lambda world: getattr(owner, name), arguments)


def _in_world(name: str, of: Callable[[World], Any], /, **arguments: Any) -> tuple[str, Call]:
    return name, Call(of, arguments)


SOURCE = noise.source(1)
TRUNCATED = mechanism.Laplace(1, 1, bounds=(0, 10), bounding="truncated")
CLAMPED = mechanism.Geometric(1, 1, bounds=(0, 10), bounding="clamp")
TREE = postprocess.Tree(4)
COLUMN = Column("age", "integer", lower=0, upper=9)
MECHANISMS = (
    NOISE,
    TRUNCATED,
    mechanism.Geometric(1, 1),
    CLAMPED,
    mechanism.Gaussian(1, 1e-5, 1),
    mechanism.GeneralizedGaussian(1, 1e-5, 1, 3),
    mechanism.DiscreteGaussian(1, 1e-5),
    mechanism.Staircase(1, 1),
)
SELECTING = tuple(
    kind(1) for kind in (mechanism.ExponentialMechanism, mechanism.PermuteAndFlip, mechanism.NoisyMax)
)
RULES = (
    accounting.Basic(Approx(1, 1e-6)),
    accounting.Concentrated(ZCDP(1)),
    accounting.Filter(Approx(1, 1e-6)),
)
TABLE = {"by": "area", "sensitive": "ill"}
OF_NOISE = {
    "cdf": {"x": 0.5, "s": 1},
    "pdf": {"x": 0.5, "s": 1},
    "pmf": {"z": 1, "s": 1},
    "ppf": {"q": 0.5, "s": 1},
    "interval": {"level": 0.9, "s": 1},
    "bias": {"s": 1},
    "mse": {"s": 1},
    "sample": {"values": [1, 2], "rng": 1},
    "draw": {"size": 2, "source": SOURCE},
    "draw_within": {"below": np.array([8]), "above": np.array([9]), "source": SOURCE},
    "worst_case_bias": {},
    "worst_case_mse": {},
}


def _of_noise(owner: Any) -> Iterator[tuple[str, Call]]:
    for name, arguments in OF_NOISE.items():
        method = getattr(owner, name, None)
        if method is not None:
            parameters = inspect.signature(method).parameters
            yield (
                f"{type(owner).__name__}({owner.bounding if hasattr(owner, 'bounding') else ''}).{name}",
                Call(
                    lambda world, method=method: method,
                    {key: value for key, value in arguments.items() if key in parameters},
                ),
            )


CALLS: dict[str, Call] = dict(
    [
        # releases
        *(
            _dp(name, columns="pay", epsilon=1)
            for name in ("sum", "mean", "var", "std", "describe", "quantile", "median", "min", "max", "count")
        ),
        *(_dp(name, columns=["pay", "rent"], epsilon=1) for name in ("cov", "corr")),
        *(_dp(name, columns="area", epsilon=1) for name in ("value_counts", "mode")),
        _dp("proportion", column="ill", value="yes", epsilon=1),
        _dp("histogram", column="pay", bins=3, epsilon=1),
        _dp("crosstab", index="area", columns="ill", epsilon=1),
        _dp("top_k", columns="area", k=1, epsilon=1),
        _dp("pooled_var", columns="pay", by="area", epsilon=1),
        _dp("pooled_cov", columns=["pay", "rent"], by="area", epsilon=1),
        _dp("kmeans", columns="pay", k=2, epsilon=1),
        _dp("kmedian", columns="pay", k=2, epsilon=1, steps=2),
        _dp("marginals", columns=["area", "ill"], epsilon=1),
        _dp("partition", by="area", epsilon=1),
        _dp("groupby", by="area"),
        *(
            _in_world(
                f"groups.{name}",
                lambda world, name=name: getattr(world.private.dp.groupby("area"), name),
                columns="pay",
                epsilon=1,
            )
            for name in ("sum", "mean", "var")
        ),
        _in_world("groups.count", lambda world: world.private.dp.groupby("area").count, epsilon=1),
        # rows
        _dp("query", expr="pay > 5"),
        _dp("clip", lower={"pay": 1}, upper={"pay": 9}),
        _dp("assign", double="pay * 2"),
        _dp("cut", column="pay", bins=[0, 5, 10]),
        _dp("recode", column="area", mapping={"north": "south"}),
        _dp("fillna", value={"rent": 0}),
        _dp("dropna", subset="rent"),
        _dp("select", columns=["pay"]),
        _dp("sample", frac=0.5),
        _dp("suppress_outliers", columns="pay", m=0.1, M=0.2),
        # plans and disclosure
        _in_world("plan.mean", lambda world: world.private.dp.plan.mean, columns="pay", epsilon=1, rows=100),
        _dp("plan_releases", calls=[("mean", "pay", {"epsilon": 0.1})], delta=1e-6),
        _dp("batch", delta=1e-6, accounting="basic"),
        _dp("split", epsilon=1, into=2),
        _dp("remaining", delta=1e-6),
        _dp("dr_ha", **TABLE, epsilon=1),
        _dp("risk_curve", **TABLE, epsilon=1),
        _dp("choose_epsilon", **TABLE),
        _dp("utility", columns=["area", "ill"], order=1, epsilon=1, draws=5),
        _dp("tradeoff", **TABLE, epsilon=1, order=1, draws=5),
        _dp("homogeneity", **TABLE),
        _dp("anonymity", **TABLE),
        _dp("repeated_risk", publications=[TABLE | {"epsilon": 1}]),
        _dp("compare_sampling", statistic="mean", columns="pay", epsilon=1, rates=[0.5], repetitions=2),
        _dp("compare_suppression", statistic="mean", epsilon=1, spreads=[(0.1, 0.2)], repetitions=2),
        _dp("quality"),
        # what a frame is
        _in_world("df.dp.protect", lambda world: world.raw.dp.protect, schema=_schema(), epsilon=1),
        _in_world("protect", lambda world: protect, frame=_frame(), schema=_schema(), epsilon=1),
        _in_world(
            "protect in a ledger",
            lambda world: world.raw.dp.protect,
            schema=_schema(),
            epsilon=1,
            budget=None,
            name="x",
        ),
        _plain(read_schema, schema=_schema()),
        _in_world("release.plot", lambda world: world.table.dp.plot),
        _in_world("release.save", lambda world: world.table.dp.save, path="table.json", format="json"),
        _in_world("release.to_markdown", lambda world: world.table.dp.to_markdown, note=True),
        _in_world("release.to_latex", lambda world: world.series.dp.to_latex, note=False),
        _in_world("release.to_excel", lambda world: world.series.dp.to_excel, path="table.xlsx"),
        _in_world("combine", lambda world: combine, released=None),
        _in_world("combine several", lambda world: lambda **given: combine(world.several, **given)),
        _plain(report, releases=None),
        _in_world("report of a table", lambda world: lambda **given: report(world.table, **given), path=None),
        _plain(read_release, path="nowhere.parquet", format="csv"),
        _plain(release_step, schema=_schema(), ledger="steps.ledger", name="n", to="out", epsilon=1),
        # budgets
        _plain(Budget, epsilon=1),
        _in_world(
            "Budget.charge", lambda world: world.private.dp.budget.charge, cost=Pure(0.1), label="x", count=1
        ),
        _in_world("Budget.bind", lambda world: Budget(1).bind, unit=Unit()),
        _in_world("Budget.answered", lambda world: world.private.dp.budget.answered, number=1),
        _in_world("Budget.report", lambda world: world.private.dp.budget.report, delta=1e-6),
        _in_world("Budget.with_total", lambda world: Budget.with_total, total=Pure(1)),
        _plain(Ledger, address="other.ledger"),
        _in_world("Ledger.open", lambda world: world.ledger.open, name="b", total=LIMITS),
        _in_world("Ledger.budget", lambda world: world.ledger.budget, name="b"),
        _in_world("Ledger.entries", lambda world: world.ledger.entries, name="b"),
        _in_world("Ledger.audit", lambda world: world.ledger.audit, head=None),
        _in_world("Ledger.backup", lambda world: world.ledger.backup, path="budgets.ledger"),
        _in_world("Ledger.charge", lambda world: world.budget.charge, cost=Pure(0.1), label="x", count=1),
        _in_world(
            "command",
            lambda world: lambda word: main(["ledger", "show", word if isinstance(word, str) else "x"]),
            word="nowhere",
        ),
        # declarations
        _plain(Column, name="age", kind="integer", lower=0, upper=9),
        _plain(Domain, columns=(COLUMN,)),
        _on(Domain((COLUMN,)), "with_role", role="sensitive"),
        _on(Domain((COLUMN,)), "__getitem__", name="age"),
        _on(COLUMN, "bounds", method="mean"),
        _on(COLUMN, "cells", method="mean"),
        _on(COLUMN, "labels", method="mean"),
        # losses
        _plain(Pure, epsilon=1),
        _plain(Approx, epsilon=1, delta=0.1),
        _plain(ZCDP, rho=1),
        _plain(Unit, neighbors="add_remove", column="x"),
        *(_on(loss, "times", count=2) for loss in (*LOSSES, ZCDP(1))),
        # sensitivities
        _plain(sensitivity.count, **NEIGHBORS),
        _plain(sensitivity.sum, **BOUNDS, **NEIGHBORS),
        _plain(sensitivity.mean, **BOUNDS, n=9, **NEIGHBORS),
        _plain(sensitivity.histogram, levels=2, **NEIGHBORS),
        _plain(sensitivity.var, **BOUNDS, n=9, **NEIGHBORS),
        _plain(sensitivity.disjoint_sums, lower=0, upper=5, **NEIGHBORS),
        _plain(sensitivity.disjoint_groups, **NEIGHBORS),
        _plain(sensitivity.quantile, q=0.25, **NEIGHBORS),
        _plain(sensitivity.extreme, grouped=True, **NEIGHBORS),
        _plain(sensitivity.cov, **OTHER_BOUNDS, n=9, **NEIGHBORS),
        _plain(sensitivity.pooled_var, **BOUNDS, n=9, groups=2, **NEIGHBORS),
        _plain(sensitivity.pooled_cov, **OTHER_BOUNDS, n=9, groups=2, **NEIGHBORS),
        # mechanisms
        _plain(mechanism.Laplace, epsilon=1, sensitivity=1),
        _plain(mechanism.Geometric, epsilon=1, sensitivity=1),
        _plain(mechanism.Gaussian, epsilon=1, delta=1e-5, sensitivity=1),
        _plain(mechanism.GeneralizedGaussian, epsilon=1, delta=1e-5, sensitivity=1, p=3),
        _plain(mechanism.DiscreteGaussian, epsilon=1, delta=1e-5, sensitivity=1),
        _plain(mechanism.Staircase, epsilon=1, sensitivity=1),
        *(_plain(type(owner), epsilon=1, sensitivity=1, monotone=True) for owner in SELECTING),
        _plain(mechanism.gaussian_delta, epsilon=1.0, multiplier=1.0),
        _plain(mechanism.discrete_gaussian_delta, epsilon=1.0, sigma=2.0, sensitivity=1),
        _plain(mechanism.noise_multiplier, epsilon=1, delta=1e-5, calibration="pdp"),
        _plain(mechanism.generalized_gaussian_scale,
               epsilon=1, delta=1e-5, sensitivity=1, p=3, width=10, l0_sensitivity=1, truncated=True),
        _plain(mechanism.truncated_geometric_scale, epsilon=1, sensitivity=1, width=10, l0_sensitivity=1),
        _plain(mechanism.truncated_laplace_loss, scale=1, sensitivity=1, width=10, l0_sensitivity=1),
        _plain(mechanism.truncated_laplace_scale, epsilon=1, sensitivity=1, width=10, l0_sensitivity=1),
        *(call for owner in MECHANISMS for call in _of_noise(owner)),
        *(_on(owner, "select", scores=[1, 2], source=SOURCE) for owner in SELECTING),
        *(_on(owner, "probabilities", scores=[1, 2]) for owner in SELECTING),
        *(_on(owner, "shortfall", candidates=2, level=0.9) for owner in SELECTING),
        *(_on(owner, "times", count=2) for owner in SELECTING[:2]),
        # suppression
        _plain(suppression.databases, **SMALL),
        _plain(suppression.neighbor_pairs, **SMALL),
        _plain(suppression.exact_delta, **SMALL, suppression=HALVES, mechanism=_tells, epsilon=1),
        _plain(suppression.exact_epsilon, **SMALL, suppression=HALVES, mechanism=_tells),
        _plain(suppression.suppression_bound, **SMALL, suppression=HALVES, epsilon=1),
        _plain(suppression.stability_factor, keeps=lambda d: [True] * len(d), **SMALL),
        _plain(suppression.hockey_stick, left=MASSES, right=MASSES, epsilon=1),
        _plain(suppression.least_epsilon, left=MASSES, right=MASSES),
        _plain(suppression.output_law, database=("a", "b"), suppression=HALVES, mechanism=_tells),
        ("suppression.independent", Call(lambda world: lambda keep: suppression.independent(keep)("ab"),
                                         {"keep": lambda d: [0.5] * len(d)})),
        ("suppression.without_replacement",
         Call(lambda world: lambda count: suppression.without_replacement(count)("abc"), {"count": 1})),
        _plain(suppression.keep_probabilities, scores=[0.5], m=0.1, M=0.2),
        _plain(suppression.outlier_scores, values=[0, 5], distance="absolute", bounds=(0, 10)),
        _plain(suppression.outlier_delta, delta=1e-6, m=0.1),
        _plain(suppression.outlier_epsilon, epsilon=1, m=0.1, M=0.2),
        _plain(suppression.outlier_floor, m=0.1, M=0.2),
        _plain(suppression.outlier_target, epsilon=2, m=0.1, M=0.2),
        _plain(suppression.sampling_epsilon, epsilon=1, rate=0.1),
        _plain(suppression.sampling_target, epsilon=1, rate=0.1),
        _plain(suppression.stable_epsilon, epsilon=1, stability=2, delta=1e-9),
        # accounting
        *(_plain(type(owner), total=owner.total) for owner in RULES),
        *(_on(owner, "add", so_far=accounting.Spent(), item=ZCDP(0.1), count=1) for owner in RULES),
        *(_on(owner, "fits", so_far=accounting.Spent(), item=Pure(0.1), count=1) for owner in RULES),
        *(_on(owner, name, so_far=accounting.Spent()) for owner in RULES for name in ("left", "spent")),
        *(_on(owner, "holds", after=accounting.Spent()) for owner in RULES),
        _on(accounting.Spent(), "add", item=Pure(1), count=1),
        ("accounting.Spent.of", Call(lambda world: accounting.Spent.of, {"losses": LOSSES})),
        _plain(accounting.Event, loss=Pure(1), noise=None, group=None),
        _plain(accounting.GaussianNoise, multiplier=Fraction(2), l0_sensitivity=1, steps=1),
        _plain(accounting.compose, losses=LOSSES),
        _plain(accounting.epsilon, events=EVENTS, delta=1e-6),
        _plain(accounting.from_json, entries=accounting.to_json(EVENTS)),
        _plain(accounting.to_json, events=EVENTS),
        _plain(accounting.to_dp_events, events=EVENTS),
        _plain(accounting.optimal_delta, losses=LOSSES, epsilon=1),
        _plain(accounting.optimal_epsilon, losses=LOSSES, delta=1e-5),
        _plain(accounting.optimal_error, losses=LOSSES),
        _plain(accounting.pld_epsilon, events=EVENTS, delta=1e-6),
        _plain(accounting.report, events=EVENTS, delta=1e-6),
        _plain(accounting.rule, name="basic", total=Pure(1)),
        _plain(accounting.shares, weights=[1, 2]),
        _plain(accounting.times, item=Pure(1), count=2),
        _plain(accounting.zcdp_delta, rho=1, epsilon=1),
        _plain(accounting.zcdp_epsilon, rho=1, delta=1e-6),
        _plain(accounting.zcdp_of, item=Pure(1)),
        _plain(accounting.zcdp_rho, epsilon=1, delta=1e-6),
        # post-processing
        _plain(postprocess.Tree, cells=4, branching=2),
        _on(TREE, "sums", leaves=[1, 2, 3, 4]),
        _plain(postprocess.all_but_one, values=[1, 2], total=3),
        _plain(postprocess.bound_covariances, matrix=np.eye(2), largest=np.ones((2, 2))),
        _plain(postprocess.clamp, values=[1, 2], lower=0, upper=1),
        _plain(postprocess.correlation, covariance=np.eye(2)),
        _plain(postprocess.covariance_limit, variances=[1, 2]),
        _plain(postprocess.equality_bounds, first=(0, 1), second=(0, 1), total=1),
        _plain(postprocess.hierarchy, tree=TREE, nodes=np.ones(6), total=4),
        _plain(postprocess.integers, values=[1.5, 2.5], total=4),
        _plain(postprocess.linear_constraints, values=[1, 2], coefficients=[[1, 1]], lower=0, upper=2),
        _plain(postprocess.nearest_correlation, matrix=np.eye(2)),
        _plain(postprocess.nearest_psd, covariance=np.eye(2)),
        _plain(postprocess.nearest_covariance, matrix=np.eye(2), largest=[1, 1]),
        _plain(postprocess.nonnegative, values=[1, -2]),
        _plain(postprocess.rescale, values=[1, 2], total=1, axis=0),
        _plain(postprocess.simplex, values=[1, 2], total=1, axis=0),
        # risk
        _plain(risk.dirichlet_alpha, counts=COUNTS),
        _plain(risk.dr_ha, counts=COUNTS, mechanism=NOISE, measure="local"),
        _plain(risk.dr_ha, counts=COUNTS, mechanism=NOISE, measure="expected"),
        ("risk of attack", Call(lambda world: risk.dr_ha, {
            "counts": COUNTS, "mechanism": NOISE, "method": "monte_carlo", "draws": 5, "rng": 1})),
        _plain(risk.expected_cost, counts=COUNTS),
        _plain(risk.size_distribution, sizes_of_cells=[1, 2, 3], model="poisson"),
        ("risk.Cells.of", Call(lambda world: risk.Cells.of, {"counts": COUNTS})),
        _in_world("OnlyNoise.cdf", lambda world: lambda x: risk.OnlyNoise().cdf(x), x=0.5),
        _in_world("NoNoise.cdf", lambda world: lambda x: risk.NoNoise().cdf(x), x=0.5),
    ]
)  # fmt: skip


# ------------------------------------------------------------------ random calls

DECLARED = [("declaration.Column", "name"), ("core.shares", "name")]
"""Arguments that are facts of a declaration or of a program, which messages repeat."""

CALLBACKS = ("keep", "keeps", "suppression", "mechanism", "postprocess")
"""Errors of a function of the caller, which pass unchanged."""


def _names(function: Any, call: Call) -> list[str]:
    """The arguments that can be replaced."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = {
        parameter.name for parameter in parameters if parameter.kind not in kinds and parameter.name != "self"
    }
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        named |= set(call.more)
    return sorted(named | set(call.arguments))


def _drawn(world: World, numbers: random.Random) -> tuple[str, Callable[[], Any]]:
    """A random call, in words and as a function."""
    name = numbers.choice(list(CALLS))
    call = CALLS[name]
    function, arguments, texts = call.of(world), dict(call.arguments), []
    parameters = _names(function, call)
    for parameter in numbers.sample(parameters, min(len(parameters), numbers.choice((1, 1, 2)))):
        value = numbers.choice(list(HOSTILE))
        theirs = (parameter in CALLBACKS and value in ("class", "function")) or (
            (name, parameter) in DECLARED and value in CELLS and has_hash(CELLS[value]())
        )
        if not theirs:
            arguments[parameter] = HOSTILE[value]()
            texts.append(f"{parameter}={value!r}")

    def make() -> Any:
        result = function(**arguments)
        return list(islice(result, 50)) if isinstance(result, Iterator) else result

    return f"{name}({', '.join(texts)})", make


def outcome(world: World, name: str, make: Callable[[], Any], texts_of: Callable[..., list[str]]) -> str:
    """The faults of a call; empty without any."""
    before, error = world.spent(), None
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        try:
            make()
        except Exception as caught:
            error = caught
    texts = [str(warning.message) for warning in recorded if warning.category is not RuntimeWarning]
    if error is not None:
        if not isinstance(error, errors.PrivacyError):
            return f"{name}: {type(error).__name__}: {str(error)[:150]}"
        if world.spent() != before:
            return f"{name}: charged, and refused: {error}"
        if len(str(error)) > 2100:
            return f"{name}: a long message: {str(error)[:300]}"
        texts += texts_of(error)
    leak = next((text for text in texts if CELL.search(text)), None)
    return f"{name}: a cell in {leak[:200]!r}" if leak else ""


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    folder, previous = tmp_path_factory.mktemp("calls"), Path.cwd()
    os.chdir(folder)  # some calls write what they are told to
    yield _world(folder)
    os.chdir(previous)


def _run(world: World, seed: int, count: int, texts_of: Callable[..., list[str]]) -> list[str]:
    numbers = random.Random(seed)
    calls = (_drawn(world, numbers) for _ in range(count))
    return [wrong for name, make in calls if (wrong := outcome(world, name, make, texts_of))]


def test_a_call_ends_in_a_result_or_in_an_error_of_the_library(world, texts_of, capsys):
    assert _run(world, seed=1, count=200, texts_of=texts_of) == []
    for number in (0, 1, 2):
        os.fstat(number)


@pytest.mark.full
@ON_NEWEST_PANDAS
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_calls_end_in_a_result_or_in_an_error_of_the_library(world, texts_of, capsys, seed):
    assert _run(world, seed=seed, count=1500, texts_of=texts_of) == []


# ------------------------------------------------------------------ single faults


@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("mean", "delta"),
        ("mean", "releases"),
        ("mean", "epsilon"),
        ("mean", "rng"),
        ("mean", "p"),
        ("top_k", "k"),
        ("quantile", "q"),
        ("histogram", "bins"),
        ("crosstab", "branching"),
        ("proportion", "value"),
        ("sample", "n"),
        ("clip", "lower"),
        ("fillna", "value"),
        ("select", "columns"),
        ("split", "into"),
        ("query", "expr"),
    ],
)
@pytest.mark.parametrize(
    "cell",
    [
        np.int64(-NUMBER),
        np.float64(NUMBER + 0.5),
        np.str_(CANARY),
        Decimal(-NUMBER),
        Fraction(-NUMBER, 2),
        Whole(-NUMBER),
        Text(CANARY),
        [np.int64(NUMBER)],
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_what_comes_out_of_a_table_is_named_by_its_type(world, texts_of, method, argument, cell):
    call = CALLS[f"private.dp.{method}"]
    arguments = {**call.arguments, argument: cell}
    if argument in ("delta", "p"):
        arguments["mechanism"] = "generalized_gaussian"
    assert outcome(world, method, lambda: getattr(world.private.dp, method)(**arguments), texts_of) == ""


@pytest.mark.parametrize("epsilon", [np.int64(NUMBER), np.float64(NUMBER), Decimal(NUMBER)])
def test_a_budget_does_not_repeat_an_epsilon_that_may_be_a_cell(epsilon):
    budget = Budget(epsilon=1, delta=0.5)
    with pytest.raises(errors.BudgetExceeded) as caught:
        budget.charge(Pure(epsilon), "x")
    assert str(caught.value).startswith("The release asks for more epsilon than is left: 1 of 1.")
    with pytest.raises(errors.BudgetExceeded, match="asks for epsilon 918273645, but 1 of 1 is left"):
        budget.charge(Pure(NUMBER), "x")  # as it was typed


@pytest.mark.parametrize("declaration", [0, "", "\ud800", b"abc", "a\nb", np.int64(1)])
def test_a_ledger_takes_no_declaration_that_it_cannot_read_again(tmp_path, declaration):
    ledger = Ledger(tmp_path / "a.ledger")
    budget = ledger.open("b", Pure(1))
    with pytest.raises(errors.ParameterError, match="'declaration'"):
        ledger.open("b", Pure(1), declaration=declaration)
    assert budget.left == (1.0, 0.0)
    assert ledger.audit()


@pytest.mark.parametrize("path", [0, 1, 2, True, "", "\ud800", "a\0b", b"a.parquet", None, Path("\ud800")])
def test_a_release_is_read_from_a_path_alone(path):
    with pytest.raises(errors.ParameterError, match="'path' must be the path of a file"):
        read_release(path)
    for number in (0, 1, 2):
        os.fstat(number)  # open, as it was


@pytest.mark.parametrize(
    "number",
    [Decimal("1E+999999"), "1e999999999", Decimal("1E-999999"), "9" * 5000, 10**5000],
    ids=("decimal", "text", "tiny decimal", "digits", "whole number"),
)
def test_a_number_without_end_is_refused_before_it_is_computed_with(world, number):
    with pytest.raises(errors.ParameterError, match="'epsilon' must be"):
        world.private.dp.mean("pay", epsilon=number)


@pytest.mark.parametrize(
    "call",
    [
        lambda: suppression.hockey_stick({0: 1}, True, 0.1),
        lambda: suppression.exact_epsilon("ab", 10**9, HALVES, _tells),
        lambda: suppression.output_law("ab", "abc", _tells),
        lambda: sensitivity.count(neighbors=np.array(["add_remove", "x"])),
        lambda: sensitivity.mean(0.0, 1.0, 10**5000, neighbors="add_remove"),
        lambda: mechanism.Laplace(1, 1).cdf("abc"),
        lambda: mechanism.Geometric(1, 1).draw(10**12, SOURCE),
        lambda: mechanism.Laplace(1, 1).draw(2, "abc"),
        lambda: mechanism.truncated_laplace_scale({}, 1),
        lambda: mechanism.noise_multiplier(1, 1e-5, pd.Series([1, 2])),
        lambda: Domain("age"),
        lambda: accounting.rule("basic", Pure(1)).left(5),
    ],
)
def test_a_mathematical_function_refuses_what_it_cannot_compute_with(call):
    with pytest.raises(errors.PrivacyError):
        call()
