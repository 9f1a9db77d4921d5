"""Publication of a release: the pandas object, its errors and its metadata.

Numbers that stand for dates are published as dates, with their errors in seconds.
"""

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
from pdprivacy.domain import Column
from pdprivacy.errors import BoundingWarning, ParameterError, got, kind, warn
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.protection import Protected
from pdprivacy.release.result import Errors, Result, numbers_as_json, pairs_as_json
from pdprivacy.release.spec import Call, Drawn, Price, Release
from pdprivacy.release.tasks import NoisyNumbers, sensitivity_of
from pdprivacy.request import MechanismName
from pdprivacy.statistic import CellCounts, Narrowed, Statistic, TreeCells, WeightedCells
from pdprivacy.timeline import Timeline

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
    """Return the release of a statistic.

    ``make`` makes the pandas object of the answer of each release. Several releases come side by side in one
    DataFrame, also those of one number. ``arrange`` reorders the numbers; ``risk`` adds the disclosure
    risk to the metadata of a single release.
    """
    timelines_of(call.columns, call.statistic)  # refused before anything is charged
    narrowed, request = statistic if call.bounds is None else _narrowed(statistic, call), call.request
    if request.bounding is not None and isinstance(statistic, CellCounts | TreeCells | WeightedCells):
        warn(
            "Bounding biases each count, and the biases add up in totals and other sums of the counts; "
            "release a sum by itself, or the counts without bounding.",
            BoundingWarning,
        )

    def publish(drawn: Drawn) -> tuple[R, float | None]:
        bounding, offsets, ends, results = request.bounding, narrowed.offsets, statistic.ends, []
        for noisy in drawn.outcomes[0]:
            answer = narrowed.finish(noisy)
            if bounding is not None:
                answer = replace(answer, values=np.clip(answer.values, answer.lower, answer.upper))
            results.append(Result(answer, noisy, drawn.price, offsets, bounding, ends))
        return published(facts, call, drawn, results, make, arrange=arrange, risk=risk)

    return Release(facts, call, call.label(facts), NoisyNumbers(narrowed, request), publish)


def _narrowed(statistic: Statistic, call: Call) -> Statistic:
    """Return the statistic with the bounds of the call."""
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
    """Return a lower and an upper bound as doubles, infinite where a side is open."""
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
    """Return the released object with its metadata, and the cumulative disclosure risk."""
    made = [*map(make, results)]
    timelines = timelines_of(call.columns, call.statistic)
    if timelines:
        made = [(dated(numbers, timelines), in_seconds(errors, timelines)) for numbers, errors in made]
    released, errors = made[0] if len(made) == 1 else _side_by_side(made)
    if arrange is not None:
        released, errors = arrange((released, errors))
    details, reached_risk = _details(results, drawn.entry, risk)
    request, shape, bounds = call.request, released.shape, None
    error, effective = errors.to_json(shape), errors.effective_rows
    if request.bounding is not None:
        bounds = pairs_as_json(errors.lower, errors.upper, shape)
        if call.margins or call.normalize or call.constraint not in (None, "psd"):
            error["note"] = SUMS
    if timelines:
        error["unit"], bounds = "s", bounds_as_text(bounds, timelines)
    of_values = call.statistic in ("mean", "proportion") and not timelines
    attach(
        facts,
        call,
        drawn,
        released,
        **{"rows": public_rows(facts, call), **more},
        **_by_part(drawn.price),
        error=error,
        p=None if request.p is None else float(request.p),
        calibration=request.calibration,
        bounding=request.bounding,
        bounds=bounds,
        value_bounds=_value_bounds(call, results[0], shape) if of_values else None,
        normalize=call.normalize or None,
        margins=call.margins,
        constraint=call.constraint,
        effective_rows=None if effective is None else numbers_as_json(effective, shape),
        **details,
    )
    return cast("R", released), reached_risk


def _details(
    results: Sequence[Result],
    entry: Entry | None,
    risk: Callable[[Result, Entry | None], tuple[dict[str, Any], float | None]] | None,
) -> tuple[dict[str, Any], float | None]:
    """Return the metadata of regressions and of disclosure risk, and the cumulative disclosure risk."""
    details, reached_risk = ({}, None) if risk is None or len(results) > 1 else risk(results[0], entry)
    regressions = [result.answer.regression for result in results]
    if regressions[0] is not None:
        details = {"regression": regressions[0] if len(results) == 1 else regressions, **details}
    return details, reached_risk


def attach(facts: Protected, call: Call, drawn: Drawn, released: Released, **details: Any) -> None:
    """Write the metadata of a release; ``details``: facts of this kind of release alone."""
    price, entry = drawn.price, drawn.entry
    cost = price.cost if facts.secret is None else facts.secret.stated(entry, drawn.cost)
    account = facts.budget.account if entry is None else entry.after
    steps, filters = (facts.steps, facts.filters) if facts.lineage else ((), ())
    stored = {
        "statistic": call.statistic,
        "columns": [str(column.name) for column in (*call.by, *call.columns)],
        "mechanism": price.title,
        "epsilon": float(cost.epsilon),
        "delta": float(cost.delta),
        "neighbors": facts.unit.neighbors,
        "unit": facts.unit.column,
        "lineage": list(steps),
        "budget": account.to_json(),
        "seeded": drawn.seeded or facts.seeded,
        "version": __version__,
        "filters": list(filters),
        "releases": call.request.releases,
        "release_id": drawn.release_id,
        "weights": None if call.weights is None else str(call.weights.name),
        **details,
    }
    metadata.attach(released, stored)


def _side_by_side(made: Sequence[Made[Any]]) -> Made[Any]:
    """Return several releases as columns, under a level named "release" that counts from 1."""
    frames: dict[Any, Any] = {number: released for number, (released, _) in enumerate(made, 1)}
    table: Any = pd.concat(frames, axis=1, names=["release"])
    names = table.columns
    if isinstance(names, pd.MultiIndex):
        # concat keeps a null as a label of its level, which no other index does
        levels = [names.get_level_values(level) for level in range(names.nlevels)]
        table.columns = pd.MultiIndex.from_arrays(levels, names=names.names)
    return table, Errors.side_by_side([(released.shape, errors) for released, errors in made])


def series(result: Result, index: pd.Index[Any], name: str | None = None) -> Made[pd.Series[Any]]:
    """Return the numbers as a Series."""
    return pd.Series(result.answer.values, index=index, name=name), result.errors


def _by_part(price: Price) -> dict[str, Any]:
    """Return the sensitivity, noise scale and share of each part by name; a number for a single part."""
    parts, mechanisms = price.parts, price.mechanisms
    sensitivities, scale, split = {}, {}, {}
    for part, mechanism in zip(parts, mechanisms, strict=True):
        sensitivities[part.name], scale[part.name] = sensitivity_of(part, mechanism), mechanism.scale
        split[part.name] = float(part.weight)
    if len(parts) == 1:
        (name,) = split
        return {"sensitivity": sensitivities[name], "scale": scale[name], "split": split}
    return {"sensitivity": sensitivities, "scale": scale, "split": split}


def _value_bounds(call: Call, result: Result, shape: tuple[int, ...]) -> Any:
    """Return the bounds of the values of means, which `pdprivacy.combine` needs."""
    # one per column: the labels of a Series, the inner columns of a table
    lower, upper = (np.atleast_1d(np.asarray(end, np.float64)) for end in result.ends)
    if call.by:
        # a pivot table repeats each column of values for every label of the column keys
        repeats = shape[1] // (len(lower) * call.request.releases)
        lower, upper = (np.tile(np.repeat(end, repeats), call.request.releases) for end in (lower, upper))
    elif call.request.releases > 1:
        lower, upper = lower[:, np.newaxis], upper[:, np.newaxis]
    return pairs_as_json(lower, upper, shape)


def public_rows(facts: Protected, call: Call) -> int | None:
    """Return the number of records behind each number, if it is public."""
    grouped = call.by and call.statistic != "crosstab"
    if grouped or call.weights is not None:
        return None
    for column in (*call.columns, *call.by):
        if column.nullable:
            return None
    return facts.scope.held()[1]


SUMS = "The biases of bounded numbers add up in sums and shares; they depend on the exact numbers."
"""The note on a missing bias of a number that is made of several bounded ones."""


def whole_counts(values: Any, mechanism: MechanismName) -> NDArray[Any]:
    """Return counts as integers if the noise is on the integers."""
    return np.asarray(values, np.int64 if MECHANISMS[mechanism].integer else None)


def counts(call: Call, index: pd.Index[Any], name: str | None, result: Result) -> Made[pd.Series[Any]]:
    """Return counts as a Series, of integers if the noise is on the integers."""
    values = whole_counts(result.answer.values, call.request.mechanism)
    return pd.Series(values, index=index, name=name), result.errors


# ---------------------------------------------------------------- dates


def timelines_of(columns: Sequence[Column], statistic: str) -> tuple[Timeline, ...]:
    """Return the timelines of the columns of a release of numbers, one per column; empty without dates.

    Raises ParameterError for dates beside numbers, or of several time zones.
    """
    timelines = tuple([column.timeline for column in columns if column.timeline is not None])
    if not timelines or statistic == "count":
        return ()
    names = [column.name for column in columns if column.timeline is not None]
    if len(names) < len(columns):
        raise ParameterError(
            f"{statistic!r} takes dates by themselves: their errors are times, and those of numbers are not.",
            f"private.dp.{statistic}({names!r}, epsilon=0.1), and the other columns in a call of their own",
        )
    if len({timeline.zone for timeline in timelines}) > 1:
        raise ParameterError(
            f"{statistic!r} takes dates of one time zone at a time.",
            f"private.dp.{statistic}({names[0]!r}, epsilon=0.1)",
        )
    return timelines


def dated(released: R, timelines: Sequence[Timeline]) -> R:
    """Return the numbers of a release as dates; one timeline per number of a Series or column of a frame."""
    result: Any
    if isinstance(released, pd.DataFrame):
        columns = [
            _dates(released.iloc[:, position], timeline, timelines)
            for position, timeline in enumerate(timelines)
        ]
        result = pd.DataFrame(dict(enumerate(columns)), index=released.index)
        result.columns = released.columns
        return result  # type: ignore[no-any-return]
    numbers = released.to_numpy(dtype=np.float64)
    first, *rest = (
        _dates(number, timeline, timelines) for timeline, number in zip(timelines, numbers, strict=True)
    )
    result = pd.Series(first.append(rest), index=released.index, name=released.name)
    return result  # type: ignore[no-any-return]


def _dates(numbers: Any, timeline: Timeline, timelines: Sequence[Timeline]) -> pd.DatetimeIndex:
    """Return the numbers of one column of a release as dates.

    Nanoseconds beside coarser resolutions are rounded down to microseconds, in which all dates can be held
    together.
    """
    dates = timeline.dates(numbers)
    return dates.as_unit("us") if _mixed(timeline, timelines) else dates


def _mixed(timeline: Timeline, timelines: Sequence[Timeline]) -> bool:
    """Return whether its dates are of nanoseconds and some of the others are not."""
    return timeline.unit == "ns" and any(other.unit != "ns" for other in timelines)


def in_seconds(errors: Errors, timelines: Sequence[Timeline]) -> Errors:
    """Return errors of numbers as errors of dates: in seconds, with the rounding of published dates.

    Bounds are in seconds since 1970.
    """
    seconds = np.array([timeline.seconds for timeline in timelines])
    origins = np.array([float(timeline.origin) for timeline in timelines])
    rounding = np.array(
        [
            float(1 / timeline.units(timeline.stored_unit)) / 2 + 1000 * _mixed(timeline, timelines)
            for timeline in timelines
        ]
    )

    def spread(number: Any) -> Any:
        return None if number is None else np.asarray(number) * seconds

    return replace(
        errors,
        standard_error=spread(errors.standard_error),
        plus_minus=(np.asarray(errors.plus_minus) + rounding) * seconds,
        bias=spread(errors.bias),
        rmse=spread(errors.rmse),
        worst_bias=spread(errors.worst_bias),
        worst_rmse=spread(errors.worst_rmse),
        lower=(errors.lower + origins) * seconds,
        upper=(errors.upper + origins) * seconds,
        uncounted=spread(errors.uncounted),
    )


def bounds_as_text(pairs: Any, timelines: Sequence[Timeline]) -> Any:
    """Return bounds in seconds since 1970, nested in lists, as texts of dates; None stays."""
    if isinstance(pairs, list):
        return [bounds_as_text(pair, timelines) for pair in pairs]
    return None if pairs is None else Timeline(0, "s", timelines[0].zone).text(pairs)
