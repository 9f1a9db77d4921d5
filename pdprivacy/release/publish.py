"""What is made of a release that was drawn: the pandas object, its errors and its metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import metadata
from pdprivacy._version import __version__
from pdprivacy.errors import BoundingWarning, ParameterError, got, kind, warn
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.protection import Protected
from pdprivacy.release.calibration import sensitivity_of
from pdprivacy.release.date_release import bounds_as_text, dated, in_seconds, timelines_of
from pdprivacy.release.result import Errors, Result, numbers_as_json, pairs_as_json
from pdprivacy.release.spec import Call, Drawn, Price, Release
from pdprivacy.release.tasks import NoisyNumbers
from pdprivacy.request import MechanismName
from pdprivacy.statistic import CellCounts, Narrowed, Statistic, TreeCells, WeightedCells

Floats: TypeAlias = NDArray[np.float64]
Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"
R = TypeVar("R", "pd.Series[Any]", pd.DataFrame)
# Made[R]: a released object and the errors of its numbers
Made: TypeAlias = tuple[R, Errors]


def release_of(
    facts: Protected,
    call: Call,
    statistic: Statistic,
    make: Callable[[Result], Made[R]],
    *,
    arrange: Callable[[Made[Any]], Made[Any]] | None = None,
    risk: Callable[[Result, Entry | None], tuple[dict[str, Any], float | None]] | None = None,
) -> Release[R]:
    """The release of a statistic.

    ``make`` makes the pandas object of the answer of each release. Several releases come side by side in one
    DataFrame, whatever the type of one is. ``arrange`` reorders the numbers; ``risk`` adds the disclosure
    risk to the metadata of a single release.
    """
    timelines_of(call.columns, call.statistic)
    narrowed, request = _narrowed(statistic, call), call.request
    if request.bounding is not None and isinstance(statistic, CellCounts | TreeCells | WeightedCells):
        warn(
            "Bounding biases each count, and the biases add up in totals and other sums of the counts; "
            "release a sum by itself, or the counts without bounding.",
            BoundingWarning,
        )

    def publish(drawn: Drawn) -> tuple[R, float | None]:
        price, bounding, results = drawn.price, request.bounding, []
        for noisy in drawn.outcomes[0]:
            answer = narrowed.finish(noisy)
            if bounding is not None:
                answer = replace(answer, values=np.clip(answer.values, answer.lower, answer.upper))
            results.append(Result(answer, noisy, price, narrowed.offsets, bounding, statistic.ends))
        return published(facts, call, drawn, results, make, arrange=arrange, risk=risk)

    return Release(facts, call, call.label(facts), NoisyNumbers(narrowed, request), publish)


def _narrowed(statistic: Statistic, call: Call) -> Statistic:
    """The statistic within the bounds of the call."""
    if call.bounds is None:
        return statistic
    if any(column.timeline for column in call.columns):
        raise ParameterError(
            "'bounds' are for numbers, and the columns hold dates.",
            'private.clip(lower={"when": pd.Timestamp("2020-01-01")}) before the release',
        )
    if not isinstance(call.bounds, Mapping):
        return Narrowed(statistic, (pair_of(call.bounds),))
    names = [column.name for column in call.columns]
    if np.shape(statistic.ends[0]) != (len(names),):
        raise ParameterError("'bounds' must be one pair for all numbers here.", "bounds=(0, 100).")
    if not call.bounds or not set(call.bounds) <= set(names):
        raise ParameterError(
            f"'bounds' must be a pair, or map columns of the call to one ({', '.join(map(repr, names))})."
        )
    return Narrowed(statistic, tuple(pair_of(call.bounds.get(name, (None, None))) for name in names))


def pair_of(bounds: Any) -> tuple[float, float]:
    """A lower and an upper bound as doubles, infinite or None where there is none."""
    if isinstance(bounds, str | bytes) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise ParameterError(f"'bounds' must be a pair of numbers (got {got(bounds)}).", "bounds=(0, 1).")
    ends = []
    for value, without in zip(bounds, (-math.inf, math.inf), strict=True):
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if value is not None and not number:
            raise ParameterError(f"'bounds' must be numbers or None (got {kind(value)}).")
        try:
            ends.append(without if value is None else float(value))
        except OverflowError:
            raise ParameterError("'bounds' must be numbers that doubles hold.") from None
    if not ends[0] < ends[1]:  # a NaN is not below anything
        raise ParameterError("'bounds' must be a lower and a higher number.")
    return ends[0], ends[1]


def published(
    facts: Protected,
    call: Call,
    drawn: Drawn,
    results: Sequence[Result],
    make: Callable[[Result], Made[R]],
    *,
    arrange: Callable[[Made[Any]], Made[Any]] | None = None,
    risk: Callable[[Result, Entry | None], tuple[dict[str, Any], float | None]] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[R, float | None]:
    """The released object with its metadata, and the disclosure risk that was reached."""
    made: list[Made[Any]] = [*map(make, results)]
    if timelines := timelines_of(call.columns, call.statistic):
        made = [(dated(one, timelines), in_seconds(errors, timelines)) for one, errors in made]
    released, errors = made[0] if len(made) == 1 else _side_by_side(made)
    if arrange is not None:
        released, errors = arrange((released, errors))
    found, reached = risk(results[0], drawn.entry) if risk is not None and len(results) == 1 else ({}, None)
    price, request = drawn.price, call.request
    error, effective = errors.to_json(released.shape), errors.effective_rows
    effective = None if effective is None else numbers_as_json(effective, released.shape)
    if request.bounding and (call.margins or call.normalize or call.constraint not in (None, "psd")):
        error["note"] = SUMS
    bounds = pairs_as_json(errors.lower, errors.upper, released.shape) if request.bounding else None
    if timelines:
        error["unit"], bounds = "s", bounds_as_text(bounds, timelines)
    moved = [sensitivity_of(*pair) for pair in zip(price.parts, price.mechanisms, strict=True)]
    attach(
        facts,
        call,
        drawn,
        released,
        **{"rows": public_rows(facts, call), **more},
        sensitivity=_by_part(price, moved),
        scale=_by_part(price, [mechanism.scale for mechanism in price.mechanisms]),
        split={part.name: float(part.weight) for part in price.parts},
        error=error,
        p=None if request.p is None else float(request.p),
        calibration=request.calibration,
        bounding=request.bounding,
        bounds=bounds,
        value_bounds=_value_bounds(call, results[0], released),
        normalize=call.normalize or None,
        margins=call.margins,
        constraint=call.constraint,
        effective_rows=effective,
        **_regression(results),
        **found,
    )
    return cast("R", released), reached


def attach(facts: Protected, call: Call, drawn: Drawn, released: Released, **own: Any) -> None:
    """Write the metadata of a release; ``own``: what only this kind of release has to say."""
    price, entry = drawn.price, drawn.entry
    cost = price.cost if facts.secret is None else facts.secret.stated(entry, drawn.cost)
    account = facts.budget.account if entry is None else entry.after
    stored = {
        "statistic": call.statistic,
        "columns": [str(column.name) for column in (*call.by, *call.columns)],
        "mechanism": price.title,
        "epsilon": float(cost.epsilon),
        "delta": float(cost.delta),
        "neighbors": facts.unit.neighbors,
        "unit": facts.unit.column,
        "lineage": list(facts.steps),
        "budget": account.to_json(),
        "seeded": drawn.seeded or facts.seeded,
        "version": __version__,
        "filters": list(facts.filters),
        "releases": call.request.releases,
        "release_id": drawn.release_id,
        "weights": None if call.weights is None else str(call.weights.name),
        **own,
    }
    metadata.attach(released, stored)


def _side_by_side(made: Sequence[Made[Any]]) -> Made[Any]:
    """Several releases as columns, under a level named "release" that counts from 1."""
    frames: dict[Any, Any] = {number: released for number, (released, _) in enumerate(made, 1)}
    together: Any = pd.concat(frames, axis=1, names=["release"])
    names = together.columns
    if isinstance(names, pd.MultiIndex):
        # concat keeps a null as a label of its level, which no other index does
        levels = [names.get_level_values(level) for level in range(names.nlevels)]
        together.columns = pd.MultiIndex.from_arrays(levels, names=names.names)
    return together, Errors.side_by_side([(released.shape, errors) for released, errors in made])


def series(result: Result, index: pd.Index[Any], name: str | None = None) -> Made[pd.Series[Any]]:
    """The numbers as a Series."""
    return pd.Series(result.answer.values, index=index, name=name), result.errors


def _by_part(price: Price, numbers: Sequence[float]) -> Any:
    """One number, or one per part by name."""
    if len(numbers) == 1:
        return numbers[0]
    return {part.name: number for part, number in zip(price.parts, numbers, strict=True)}


def _value_bounds(call: Call, result: Result, released: Released) -> Any:
    """The bounds of the values that means are made of, which `pdprivacy.combine` needs."""
    if call.statistic not in ("mean", "proportion") or any(column.timeline for column in call.columns):
        return None
    # one per column: the labels of a Series, the inner columns of a table
    lower, upper = (np.atleast_1d(np.asarray(end, np.float64)) for end in result.ends)
    if call.by:
        # of a pivot table, each column of values is one per label of the column keys
        each = released.shape[1] // (len(lower) * call.request.releases)
        lower, upper = (np.tile(np.repeat(end, each), call.request.releases) for end in (lower, upper))
    elif call.request.releases > 1:
        lower, upper = lower[:, np.newaxis], upper[:, np.newaxis]
    return pairs_as_json(lower, upper, released.shape)


def _regression(results: Sequence[Result]) -> dict[str, Any]:
    """What is published of regressions beside the coefficients: of one, or a list of several."""
    each = [result.answer.regression for result in results]
    if each[0] is None:
        return {}
    return {"regression": each[0] if len(each) == 1 else each}


def public_rows(facts: Protected, call: Call) -> int | None:
    """The number of records behind each number, where that is public."""
    nullable = any(column.nullable for column in (*call.columns, *call.by))
    grouped = bool(call.by) and call.statistic != "crosstab"
    return None if nullable or grouped or call.weights is not None else facts.scope.held()[1]


SUMS = "The biases of bounded numbers add up in sums and shares; they depend on the exact numbers."
"""Why no bias is stated of a number that is made of several bounded ones."""


def whole_counts(released: R, mechanism: MechanismName) -> R:
    """Counts as integers where the noise is."""
    return released.astype(np.int64) if MECHANISMS[mechanism].integer else released


def counts(call: Call, index: pd.Index[Any], name: str | None, result: Result) -> Made[pd.Series[Any]]:
    """Counts as a Series, of integers where the noise is."""
    released, errors = series(result, index, name)
    return whole_counts(released, call.request.mechanism), errors
