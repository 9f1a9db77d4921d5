"""The public callables, found by walking the public names, and calls of them with odd arguments."""

from __future__ import annotations

import datetime
import inspect
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

import pdprivacy
from pdprivacy import accounting, command, mechanism, postprocess, risk, suppression
from pdprivacy.core import noise
from tests.support.canaries import CANARY, NUMBER

ODD: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 3,
    lambda: 2**63,
    lambda: 10**400,
    lambda: 0.5,
    lambda: -0.0,
    lambda: math.nan,
    lambda: math.inf,
    lambda: 5e-324,
    lambda: 1j,
    lambda: "",
    lambda: "no such name",
    lambda: "a\0b",
    lambda: "\ud800",
    lambda: "1/0",
    lambda: b"bytes",
    lambda: Decimal("sNaN"),
    lambda: Decimal("0.1"),
    lambda: Fraction(1, 3),
    lambda: pd.NA,
    lambda: pd.NaT,
    lambda: np.float64(0.5),
    lambda: np.int8(-3),
    lambda: np.bool_(False),
    lambda: np.str_("text"),
    lambda: np.datetime64("2020-01-01"),
    lambda: np.timedelta64(3, "D"),
    lambda: pd.Timestamp("2020-01-01", tz="UTC"),
    lambda: datetime.date(2020, 1, 1),
    lambda: pd.Interval(0, 1),
    lambda: (),
    list,
    dict,
    lambda: set(),
    lambda: [None],
    lambda: ["pay", "pay"],
    lambda: [[1, 2], [3]],
    lambda: {"pay": {"pay": None}},
    lambda: (1, "a", None),
    lambda: {1: 2},
    lambda: range(3),
    lambda: iter([1, 2]),
    lambda: slice(1, 2),
    lambda: ...,
    lambda: object(),
    lambda: Exception,
    lambda: lambda *_: 1,
    lambda: np.array([NUMBER, 1]),
    lambda: np.array(5),
    lambda: np.array([[0.5, math.nan]]),
    lambda: np.array([CANARY, None], dtype=object),
    lambda: np.empty((0, 2)),
    lambda: pd.Series([NUMBER, 1], name=CANARY),
    lambda: pd.Series([CANARY, None], dtype=object),
    lambda: pd.DataFrame({CANARY: [NUMBER], "pay": [1]}),
    lambda: pd.Index([CANARY]),
    lambda: pd.Categorical([CANARY]),
)
"""What an argument may be, made anew for each call."""

FITTING: dict[str, tuple[Any, ...]] = {
    "epsilon": (0.1, 1),
    "delta": (0, 1e-6),
    "sensitivity": (1, 2),
    "column": ("pay", "area"),
    "columns": ("pay", ["pay", "rent"], "area", "ill"),
    "index": ("area",),
    "by": ("area",),
    "values": ("pay",),
    "value": ("yes", True),
    "sensitive": ("ill",),
    "q": (0.5, [0.25, 0.75]),
    "k": (2,),
    "level": (0.95,),
    "counts": ([[3, 0], [1, 2]],),
    "size": (2,),
    "universe": ("ab",),
    "bounds": ((0, 10),),
    "lower": (0,),
    "upper": (10,),
    "scores": ([1, 2, 3],),
    "losses": ([pdprivacy.Pure(1)],),
    "mechanism": ("laplace", "gaussian", "geometric"),
    "neighbors": ("add_remove", "replace_one"),
    "bounding": ("clamp", "truncated", None),
    "expr": ("pay > 3",),
    "rate": (0.5,),
    "rows": (100,),
    "plus_minus": (1,),
    "count": (2,),
    "candidates": (5,),
    "number": (2,),
    "s": (1.0, [0.5, 2.0]),
    "x": (1.0,),
    "frame": ("frame",),
    "schema": ("schema",),
    "source": ("source",),
    "rng": (1, None),
}
"""Arguments by the name of the parameter that many calls take, so that odd ones meet what is behind them."""


OPERATORS = {"__getitem__", "__setitem__", "__call__", "__add__", "__and__", "__contains__"}


def public_names() -> Iterator[tuple[str, Any]]:
    """The public names of the package and of its public modules, and the commands."""
    for name in pdprivacy.__all__:
        thing = getattr(pdprivacy, name)
        if isinstance(thing, ModuleType):
            for inner in thing.__all__:
                yield f"{name}.{inner}", getattr(thing, inner)
        else:
            yield name, thing
    yield "command.main", command.main


def callables(roots: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """All public functions, constructors, and methods of the public classes and of these objects, by name."""
    known: dict[str, Callable[..., Any]] = {}
    for name, thing in public_names():
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            continue
        if inspect.isroutine(thing) or (inspect.isclass(thing) and not getattr(thing, "_is_protocol", False)):
            known[name] = thing
        if inspect.isclass(thing):
            known.update(
                (f"{name}.{member}", getattr(thing, member))
                for member, raw in inspect.getmembers_static(thing)
                if isinstance(raw, classmethod | staticmethod) and member[0] != "_"
            )
    for name, instance in roots.items():
        if not type(instance).__module__.startswith("pdprivacy.") or isinstance(instance, noise.Source):
            continue
        for member in dir(instance):
            raw = inspect.getattr_static(instance, member, None)
            public = member[0] != "_" or member in OPERATORS
            public &= not (isinstance(instance, tuple) and hasattr(tuple, member))
            if public and not isinstance(raw, property):
                method = getattr(instance, member, None)
                # the errors of a function that `pipe` calls are its own
                if callable(method) and member != "pipe":
                    known[f"{name}.{member}"] = method
    return known


def arguments_of(
    function: Callable[..., Any], things: dict[str, Any], draw: random.Random
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call by position and by name, some of them odd."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    positional, named = [], {}

    def value(name: str) -> Any:
        if name in FITTING and draw.random() < 0.6:
            fitting = draw.choice(FITTING[name])
            return things.get(fitting, fitting) if isinstance(fitting, str) else fitting
        if draw.random() < 0.1:
            return draw.choice(list(things.values()))
        return draw.choice(ODD)()

    if signature is None:
        return [value("value")], {}
    for parameter in signature.parameters.values():
        needed = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [value(parameter.name) for _ in range(draw.randrange(3))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            name = draw.choice(("epsilon", "rng", "pay", "mechanism"))
            named[name] = value(name)
        elif parameter.kind is parameter.POSITIONAL_ONLY and (needed or draw.random() < 0.5):
            positional.append(value(parameter.name))
        elif parameter.kind is not parameter.POSITIONAL_ONLY and (needed or draw.random() < 0.25):
            named[parameter.name] = value(parameter.name)
    return positional, named


def things() -> dict[str, Any]:
    """Objects of every public class that has methods, and of the accessors; all of one protected frame."""
    frame = pd.DataFrame(
        {
            "pay": [NUMBER, 5, NUMBER],
            "rent": [float(NUMBER), None, 7.0],
            "area": ["north", "south", "south"],
            "ill": ["no", "yes", "no"],
            "name": [CANARY, "x", "y"],
            "member": [True, False, True],
            "secret": [CANARY] * 3,
        },
        index=pd.Index([CANARY, NUMBER, NUMBER], name=CANARY),
    )
    wide = pa.Check.in_range(0, 2_000_000_000)

    def column(dtype: Any, check: Any = None, *, nullable: bool = False, **dp: Any) -> Any:
        return pa.Column(dtype, check, nullable=nullable, metadata={"dp": dp})

    schema = pa.DataFrameSchema(
        {
            "pay": column(int, wide, bins=[0, 10**6, 2 * 10**9]),
            "rent": column(float, wide, nullable=True),
            "area": column(str, pa.Check.isin(["north", "south"]), role="quasi_identifier"),
            "ill": column(str, pa.Check.isin(["no", "yes"]), role="sensitive"),
            "name": column(str),
            "member": column(bool),
        }
    )
    private = frame.dp.protect(schema, epsilon=10**6, delta=0.1)
    released, table = private.dp.mean("pay", epsilon=1), private.dp.crosstab("area", "ill", epsilon=1)
    laplace = mechanism.Laplace(1, 1)
    return {
        "frame": frame,
        "schema": schema,
        "source": noise.source(1),
        "private": private,
        "private.dp": private.dp,
        "private.dp.groupby": private.dp.groupby("area"),
        "private.dp.plan": private.dp.plan,
        "private[]": private["pay"],
        "private[area]": private["area"],
        "frame.dp": frame.dp,
        "series.dp": frame["pay"].dp,
        "released": released,
        "table": table,
        "released.dp": released.dp,
        "table.dp": table.dp,
        "metadata": released.dp.metadata,
        "domain": private.dp.domain,
        "column": private.dp.domain["pay"],
        "budget": private.dp.budget,
        "ZCDP": pdprivacy.ZCDP(1),
        "Approx": pdprivacy.Approx(1, 1e-6),
        "Pure": pdprivacy.Pure(1),
        "Laplace": laplace,
        "Gaussian": mechanism.Gaussian(1, 1e-6, 1),
        "GeneralizedGaussian": mechanism.GeneralizedGaussian(1, 1e-6, 1, 3),
        "Geometric": mechanism.Geometric(1, 1),
        "Staircase": mechanism.Staircase(1, 1),
        "DiscreteGaussian": mechanism.DiscreteGaussian(1, 1e-6, 1),
        "ExponentialMechanism": mechanism.ExponentialMechanism(1),
        "PermuteAndFlip": mechanism.PermuteAndFlip(1),
        "NoisyMax": mechanism.NoisyMax(1),
        "Ledger": pdprivacy.Ledger("ledger"),
        "Unit": pdprivacy.Unit(),
        "Basic": accounting.Basic(pdprivacy.Pure(1)),
        "Filter": accounting.Filter(pdprivacy.Approx(1, 1e-6)),
        "Concentrated": accounting.Concentrated(pdprivacy.ZCDP(1)),
        "Event": accounting.Event(pdprivacy.Pure(1)),
        "GaussianNoise": accounting.GaussianNoise(Fraction(3), 1, 1),
        "Spent": accounting.Spent(),
        "Bound": accounting.Bound("basic", 1.0),
        "Amount": accounting.Amount(Fraction(1)),
        "LinearConstraint": postprocess.LinearConstraint({"a": 1}, lower=0),
        "Tree": postprocess.Tree(4),
        "Cells": risk.Cells.of([[3, 0], [1, 2]]),
        "NoNoise": risk.NoNoise(),
        "OnlyNoise": risk.OnlyNoise(),
        "Simulated": risk.Simulated(0.5, 0.1),
        "SuppressionBound": suppression.SuppressionBound(1.0, 0.0),
    }
