"""Publication of a release: the pandas object and its metadata.

Numbers that stand for dates are published as dates, with their errors in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy._version import __version__
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import PROJECT
from pdprivacy.core.gate.spec import AnswerLabels, Call, Drawn, Price, Release, with_bounds
from pdprivacy.core.gate.tasks import NoisyNumbers, sensitivity_of
from pdprivacy.core.statistics import CellCounts, Statistic, TreeCells, WeightedCells
from pdprivacy.declaration.domain import Column
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import BoundingWarning, ParameterError, warn
from pdprivacy.ledger import Entry
from pdprivacy.releases import metadata
from pdprivacy.releases.metadata import Released
from pdprivacy.releases.noisy_parts import noisy_parts, reordered
from pdprivacy.releases.projection import numbers_as_json, pairs_as_json
from pdprivacy.releases.results import Errors, Result
from pdprivacy.types import Floats, Integers

RiskOf: TypeAlias = "Callable[[Sequence[Result], Entry | None], tuple[dict[str, Any], float | str | None]]"
"""The disclosure risk of results and of their charge: metadata, and the risk that the budget notes."""


# ---------------------------------------------------------------- released objects and their metadata


def release_of(
    facts: Facts,
    call: Call,
    statistic: Statistic,
    labels: AnswerLabels,
    transform: Callable[[Result], Result] | None = None,
    *,
    project: Callable[[Result], Result] = Result.within_bounds,
    risk: RiskOf | None = None,
) -> Release[Any]:
    """Return the release of a statistic.

    ``transform`` makes the labelled numbers of each release. Several releases come side by side in one
    DataFrame, also those of one number. ``project`` moves them to the nearest possible ones, unless the call
    has another bounding. ``risk`` adds the disclosure risk to the metadata.
    """
    timelines_of(call.columns, call.statistic)  # refused before anything is charged
    bounded, request = statistic if call.bounds is None else with_bounds(statistic, call), call.request
    if request.bounding is not None and isinstance(statistic, CellCounts | TreeCells | WeightedCells):
        warn(
            "Bounding biases each count, and the biases add up in totals and other sums of the counts; "
            "release a sum by itself, or the counts without bounding.",
            BoundingWarning,
        )

    def publish(release: Release[Any], drawn: Drawn) -> tuple[Any, float | str | None]:
        bounding, offsets, ends, results = request.bounding, bounded.offsets, statistic.ends, []
        limits = statistic.limits if request.projects else None
        for noisy in drawn.outcomes[0]:
            answer = bounded.finish(noisy)
            if bounding is not None:
                answer = replace(answer, values=np.clip(answer.values, answer.lower, answer.upper))
            elif limits is not None:
                lower, upper = (np.broadcast_to(limit, np.shape(answer.values)) for limit in limits)
                answer = replace(answer, lower=lower, upper=upper)
            results.append(Result(answer, noisy, drawn.price, offsets, bounding, ends, level=drawn.level))
        details, reached = (
            ({}, risk_noted(facts, call, drawn)) if risk is None else risk(results, drawn.entry)
        )
        labelled = results if transform is None else [*map(transform, results)]
        details["parts"] = noisy_parts(statistic, call, results, labelled)
        results = labelled
        results = results if limits is None else [*map(project, results)]
        return published(release, drawn, results, details), reached

    return Release(facts, call, call.label(facts), NoisyNumbers(bounded, request), labels, publish)


def published(release: Release[Any], drawn: Drawn, results: Sequence[Result], details: dict[str, Any]) -> Any:
    """Return the released object with its metadata; ``details``: facts of this kind of release alone."""
    facts, call, labels = release.facts, release.call, release.labels
    timelines = timelines_of(call.columns, call.statistic)
    released = side_by_side([labels.to_pandas(dated(result.answer.values, timelines)) for result in results])
    each = [in_seconds(result.errors, timelines) for result in results]
    errors = each[0] if len(each) == 1 else Errors.side_by_side(each, labels.shape)
    earlier = None
    if errors.before is not None:
        earlier = side_by_side([labels.to_pandas(dated(result.before, timelines)) for result in results])
    # numbers that are moved one by one stay in the order of those before
    sorting = released if earlier is None or call.linear else earlier
    order = largest_first(sorting, call) if call.sort else None
    if order is not None:
        released, errors = released.iloc[order], errors.reordered(order)
        earlier = None if earlier is None else earlier.iloc[order]
        details["parts"] = reordered(details.get("parts"), order)
    regressions = [result.answer.regression for result in results]
    if regressions[0] is not None:
        details["regression"] = regressions[0] if len(results) == 1 else regressions
    request, shape, bounds, projection = call.request, released.shape, None, None
    error, effective_rows = errors.to_json(shape, drawn.level), errors.effective_rows
    bounding = request.bounding if errors.before is None else PROJECT
    if bounding is not None:
        bounds = _bounds(errors, shape)
        sums = (call.margins and call.statistic == "crosstab") or call.normalize
        if call.linear:
            error["note"] = LINEARLY
        elif (sums and errors.before is None) or call.constraint not in (None, "psd"):
            error["note"] = SUMS
    if earlier is not None:
        projection = _moved(released, earlier, errors)
        if call.statistic in metadata.MATRICES:
            error["note"] = AS_A_WHOLE
    if timelines:
        error["unit"], bounds = "s", bounds_as_text(bounds, timelines)
    attach(
        facts,
        call,
        drawn,
        released,
        **_facts_by_part(drawn.price),
        error=error,
        p=None if request.p is None else float(request.p),
        calibration=request.calibration,
        bounding=bounding,
        bounds=bounds,
        projection=projection,
        value_bounds=None if timelines else _value_bounds(call, results, shape),
        normalize=call.normalize or None,
        margins=call.margins,
        constraint=call.constraint,
        constraints=[str(constraint) for constraint in call.linear] or None,
        effective_rows=None if effective_rows is None else numbers_as_json(effective_rows, shape),
        **{"rows": public_rows(facts, call), **details},
    )
    return released


def _bounds(errors: Errors, shape: tuple[int, ...]) -> Any:
    """Return the bounds of all numbers, of each, or of each column of a table whose rows have the same."""
    ends = [np.broadcast_to(end, shape) for end in (errors.lower, errors.upper)]
    if len(shape) == 2 and all(bool((end == end[:1]).all()) for end in ends) and 0 not in shape:
        return pairs_as_json(ends[0][0], ends[1][0], shape[1:])
    return pairs_as_json(ends[0], ends[1], shape)


def _moved(released: Released, before: Released, errors: Errors) -> dict[str, list[Any]] | None:
    """Return the numbers that a projection moved, or whose margin of error it changed; None for none.

    Their places count from 0, row by row.
    """
    cells, earlier = (frame.to_numpy(copy=True).ravel() for frame in (released, before))
    half, half_before, missed = (
        np.broadcast_to(each, released.shape).ravel()
        for each in (errors.plus_minus, errors.plus_minus_before, errors.missed)
    )
    same = (cells == earlier) | (pd.isna(cells) & pd.isna(earlier))
    same &= (half == half_before) | (np.isnan(half) & np.isnan(half_before))
    at = np.flatnonzero(~same)
    if not at.size:
        return None
    dates = cells.dtype.kind != "f"
    return {
        "at": at.tolist(),
        "values": [str(pd.Timestamp(date)) for date in earlier[at]] if dates else earlier[at].tolist(),
        "plus_minus": half_before[at].tolist(),
        "missed": np.flatnonzero(missed).tolist(),
    }


NO_LABELS = "The release is by group and of a sensitive column, but holds no counts of its labels."
"""Why there is no estimate of the risk of means, modes, quantiles and the like."""

BY_LABEL = ("value_counts", "histogram", "crosstab", "proportion", "find_labels")
"""Statistics whose numbers are by the labels of their columns."""


def unknown_risk(facts: Facts, call: Call) -> str:
    """Return why the disclosure risk of a release without counts of labels is not known.

    It is empty where no sensitive column takes part, or where nothing else divides the records: a key, the
    labels of a table, or a condition. A pooled statistic is of all groups together.
    """
    keys = (*call.by, *(call.columns if call.statistic in BY_LABEL else ()))
    columns = (*call.by, *call.columns, *(() if call.weights is None else (call.weights,)))
    decided = {*facts.decided_by.values()}
    sensitive = "sensitive" in {*(column.role for column in columns), *decided}
    divided = bool({*(column.role for column in keys), *decided} - {"sensitive"})
    return NO_LABELS if sensitive and divided and not call.statistic.startswith("pooled") else ""


def risk_noted(facts: Facts, call: Call, drawn: Drawn) -> str | None:
    """Return what the budget notes of such a release: the reason; None where there is none, or in a plan."""
    return (unknown_risk(facts, call) or None) if drawn.entry is not None else None


def attach(facts: Facts, call: Call, drawn: Drawn, released: Released, **details: Any) -> None:
    """Write the metadata of a release; ``details``: facts of this kind of release alone."""
    price, entry = drawn.price, drawn.entry
    cost = price.cost if facts.secret is None else facts.secret.stated_loss(entry, drawn.cost)
    budget = (facts.budget.account if entry is None else entry.after).to_json()
    if entry is not None:
        budget |= {"name": facts.budget.name, "charge": entry.number, "charge_id": entry.id}
    stored = {
        "statistic": call.statistic,
        "columns": [str(column.name) for column in (*call.by, *call.columns)],
        "mechanism": price.title,
        "epsilon": float(cost.epsilon),
        "delta": float(cost.delta),
        "neighbors": facts.unit.neighbors,
        "unit": facts.unit.column,
        "lineage": list(facts.steps),
        "budget": budget,
        "seeded": drawn.seeded or facts.seeded,
        "version": __version__,
        "filters": list(facts.filters),
        "releases": call.request.releases,
        "release_id": drawn.release_id,
        "weights": None if call.weights is None else str(call.weights.name),
        **details,
    }
    if "dr_ha" not in stored and (reason := unknown_risk(facts, call)):
        stored["dr_ha"] = metadata.no_risk(reason)
    metadata.attach(released, stored)


def side_by_side(releases: Sequence[Any]) -> Any:
    """Return one release, or several as columns, under a level named "release" that counts from 1."""
    if len(releases) == 1:
        return releases[0]
    table: Any = pd.concat(dict(enumerate(releases, 1)), axis=1, names=["release"])
    names = table.columns
    if isinstance(names, pd.MultiIndex):
        # concat keeps a null as a label of its level, which no other index does
        levels = [names.get_level_values(level) for level in range(names.nlevels)]
        table.columns = pd.MultiIndex.from_arrays(levels, names=names.names)
    return table


def largest_first(released: Any, call: Call) -> Integers:
    """Return the order of the labels of each group by released numbers (the mean over several releases)."""
    values = released if isinstance(released, pd.Series) else released.mean(axis=1)
    table = values.to_numpy().reshape(math.prod(key.cells(call.statistic) for key in call.by), -1)
    first = np.arange(0, table.size, table.shape[1])[:, np.newaxis]
    return np.asarray((first + np.argsort(-table, axis=1, kind="stable")).ravel())


def _facts_by_part(price: Price) -> dict[str, Any]:
    """Return the sensitivity, noise scale and share of each part by name; a number for a single part."""
    sensitivity: Any = {}
    scale: Any = {}
    for part, mechanism in zip(price.parts, price.mechanisms, strict=True):
        sensitivity[part.name], scale[part.name] = sensitivity_of(part, mechanism), mechanism.scale
    if len(price.parts) == 1:
        (sensitivity,), (scale,) = sensitivity.values(), scale.values()
    split = {part.name: float(part.weight) for part in price.parts}
    return {"sensitivity": sensitivity, "scale": scale, "split": split}


def _value_bounds(call: Call, results: Sequence[Result], shape: tuple[int, ...]) -> Any:
    """Return the bounds of the values of means, which `pdprivacy.combine` needs; None for no means."""
    if call.statistic not in ("mean", "proportion"):
        return None
    # one per column: the labels of a Series, the inner columns of a table
    lower, upper = [np.atleast_1d(np.asarray(end, np.float64)) for end in results[0].ends]
    if call.by:
        # a pivot table repeats each column of values for every label of the column keys
        repeats = shape[1] // (len(lower) * len(results)) if len(shape) > 1 else 1
        lower, upper = (np.tile(np.repeat(end, repeats), len(results)) for end in (lower, upper))
    elif len(results) > 1:
        lower, upper = lower[:, np.newaxis], upper[:, np.newaxis]
    return pairs_as_json(lower, upper, shape)


def public_rows(facts: Facts, call: Call) -> int | None:
    """Return the number of records behind each number, if it is public."""
    grouped = call.by and call.statistic != "crosstab"
    nullable = any(column.nullable for column in (*call.columns, *call.by))
    return None if grouped or nullable or call.weights is not None else facts.scope.row_bounds()[1]


SUMS = "The biases of bounded numbers add up in sums and shares; they depend on the exact numbers."
"""The note on a missing bias of a number that is made of several bounded ones."""


LINEARLY = (
    "The numbers were moved together onto linear constraints: as a whole they are not farther from the true "
    "ones than before (each divided by its standard error, which is that of the noise); the bias of a number "
    "depends on the exact numbers."
)
"""The note on a missing bias of numbers with linear constraints."""


AS_A_WHOLE = (
    "As a whole the matrix is never farther from the true one (Frobenius norm, with each column in units of "
    "its range); the bias of an entry depends on the exact numbers."
)
"""The note on a missing bias of a projected matrix."""


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


def dated(values: Floats, timelines: Sequence[Timeline]) -> Any:
    """Return numbers as dates, one timeline per number or column; without timelines, as they are."""
    if not timelines:
        return values
    if np.ndim(values) == 1 and len(timelines) == 1:  # one column, of groups perhaps
        return _dates(values, timelines[0], timelines)
    pairs = zip(np.transpose(values), timelines, strict=True)
    columns = [_dates(numbers, timeline, timelines) for numbers, timeline in pairs]
    return columns if np.ndim(values) > 1 else columns[0].append(columns[1:])


def _dates(numbers: Any, timeline: Timeline, timelines: Sequence[Timeline]) -> pd.DatetimeIndex:
    """Return the numbers of one column of a release as dates.

    Nanoseconds beside coarser resolutions are rounded down to microseconds, in which all dates can be held
    together.
    """
    dates = timeline.dates(numbers)
    return dates.as_unit("us") if _mixes_resolutions(timeline, timelines) else dates


def _mixes_resolutions(timeline: Timeline, timelines: Sequence[Timeline]) -> bool:
    """Return whether its dates are of nanoseconds and some of the others are not."""
    return timeline.unit == "ns" and any(other.unit != "ns" for other in timelines)


def in_seconds(errors: Errors, timelines: Sequence[Timeline]) -> Errors:
    """Return errors of numbers as errors of dates: in seconds, with the rounding of published dates.

    Bounds are in seconds since 1970. Without timelines, the errors stay.
    """
    if not timelines:
        return errors
    seconds = np.array([timeline.seconds for timeline in timelines])
    origins = np.array([float(timeline.origin) for timeline in timelines])
    rounding = np.array(
        [
            float(1 / timeline.units(timeline.stored_unit)) / 2
            + 1000 * _mixes_resolutions(timeline, timelines)
            for timeline in timelines
        ]
    )

    spreads = {
        name: np.asarray(number) * seconds
        for name in ("standard_error", "bias", "rmse", "worst_bias", "worst_rmse", "rounding_per_record")
        if (number := getattr(errors, name)) is not None
    }
    return replace(
        errors,
        **spreads,
        plus_minus=(np.asarray(errors.plus_minus) + rounding) * seconds,
        plus_minus_before=None
        if errors.plus_minus_before is None
        else (np.asarray(errors.plus_minus_before) + rounding) * seconds,
        lower=(errors.lower + origins) * seconds,
        upper=(errors.upper + origins) * seconds,
    )


def bounds_as_text(pairs: Any, timelines: Sequence[Timeline]) -> Any:
    """Return bounds in seconds since 1970, nested in lists, as texts of dates; None stays."""
    if isinstance(pairs, list):
        return [bounds_as_text(pair, timelines) for pair in pairs]
    return None if pairs is None else Timeline(0, "s", timelines[0].zone).text(pairs)
