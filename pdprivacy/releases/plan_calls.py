"""Calls of plans: their signatures, their arguments, and what a planned release would cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.checks import whole
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.spec import Price, Release
from pdprivacy.core.privacy import Rational
from pdprivacy.errors import ArgumentError, ParameterError, got
from pdprivacy.hints.suggestions import example_of
from pdprivacy.releases.grouped import DeclaredGroups

Levels: TypeAlias = "Rational | Sequence[Rational] | np.ndarray[Any, Any] | pd.Index[Any]"

PLAN_OF_GROUPS = 'private.dp.plan.groupby("region")'

DRAWN = {"rng", "release_id"}
"""Keywords of releases that plans lack: a plan draws and charges nothing."""


def plan_of(method: Callable[..., Any], verb: Callable[..., Any]) -> Callable[..., pd.DataFrame]:
    """Return the method with the name and the signature of the release, and with its own keywords."""
    signature, own = inspect.signature(verb), dict(inspect.signature(method).parameters)
    parameters = [
        own.pop(name, parameter)
        for name, parameter in signature.parameters.items()
        if name not in DRAWN and parameter.kind is not parameter.VAR_KEYWORD
    ]
    added = [parameter for parameter in own.values() if parameter.kind is parameter.KEYWORD_ONLY]
    method.__name__ = method.__qualname__ = verb.__name__
    method.__doc__ = f"Return how far off `{verb.__name__}` would be; see `PlanDP`."
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, *added], return_annotation="pd.DataFrame"
    )
    return method


def begin_plan(
    statistic: str,
    facts: Facts | DeclaredGroups,
    options: Mapping[str, Any],
    epsilon: Any,
    margin: Any,
    name: str = "plus_minus",
) -> tuple[Facts, list[Any], bool]:
    """Return the protected frame, the losses or margins of error of a plan, and whether these are margins.

    Keywords that plans lack are refused first, then a call without a cost.
    """
    for keyword in DRAWN & {*options}:
        raise TypeError(f"{statistic}() got an unexpected keyword argument {keyword!r}")
    prefix = PLAN_OF_GROUPS if isinstance(facts, DeclaredGroups) else "private.dp.plan"
    choices, choose = _alternatives(statistic, epsilon, margin, name, prefix)
    return facts._protected if isinstance(facts, DeclaredGroups) else facts, choices, choose


def _alternatives(
    statistic: str, epsilon: Any, margin: Any, name: str, prefix: str
) -> tuple[list[Any], bool]:
    """Return the losses, or the margins of error in their place, and whether these are margins.

    ``prefix``: how the call that an error suggests begins.
    """
    if epsilon is None and margin is None:
        raise ArgumentError(
            f"{statistic!r} needs 'epsilon', what the call may cost, or {name!r}, how far off it may be.",
            example_of(statistic, prefix),
        )
    if epsilon is not None and margin is not None:
        raise ParameterError(f"'epsilon' and {name!r} exclude each other.", "leave one of them out.")
    return (listed("epsilon", epsilon), False) if margin is None else (listed(name, margin), True)


def price_of(release: Release[Any]) -> Price:
    """Return the noise of a release, which is more of a secret part."""
    cost, secret = release.task.cost, release.facts.secret
    return release.task.price(cost if secret is None else secret.loss_of_part(cost))


def listed(name: str, value: Any) -> list[Any]:
    """Return the values of an argument that takes one or several.

    Refused are Series and arrays of other objects than numbers: they may hold cells, which errors would show.
    """
    numeric = isinstance(value, np.ndarray | pd.Index) and value.dtype.kind in "iuf"
    if isinstance(value, np.ndarray | pd.Index | pd.Series) and not numeric:
        raise ParameterError(f"{name!r} must be one value or a list of several (got {got(value)}).")
    several = isinstance(value, Sequence | np.ndarray | pd.Index) and not isinstance(value, str)
    several = several and getattr(value, "ndim", 1) > 0  # an array of no dimension is one value
    items = list(value) if several else [value]
    if not items:
        raise ParameterError(f"{name!r} must not be empty.")
    return items


def rows_of(protected: Facts, rows: Any) -> int:
    """The public number of rows, or the guess of the caller."""
    public = protected.scope.row_bounds()[1]
    rows_assumed = public if rows is None else whole(rows, "rows", 1)
    if public not in (None, rows_assumed):
        raise ParameterError("The number of rows is public, and not what 'rows' says.", "leave rows out.")
    if rows_assumed is None:
        raise ParameterError(
            "The number of rows is private, a plan must not read it, and the error depends on it.",
            "rows=1000, a guess of yours.",
        )
    return max(rows_assumed, 1)
