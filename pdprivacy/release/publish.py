"""Publication of a release: its numbers with their errors, the pandas object and its metadata.

Numbers that stand for dates are published as dates, with their errors in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy import metadata
from pdprivacy._version import __version__
from pdprivacy.distributions import Distribution, GeneralizedNormal
from pdprivacy.domain import Column
from pdprivacy.errors import BoundingWarning, ParameterError, warn
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import Bounds
from pdprivacy.mechanism.additive import Additive
from pdprivacy.mechanism.support import bias_between, mse_between
from pdprivacy.metadata import Released
from pdprivacy.protection import Protected
from pdprivacy.release.spec import AnswerLabels, Call, Drawn, Price, Release, with_bounds
from pdprivacy.release.tasks import NoisyNumbers, sensitivity_of
from pdprivacy.request import Bounding
from pdprivacy.statistic import Answer, CellCounts, Noisy, Statistic, TreeCells, WeightedCells
from pdprivacy.statistic.confidence import Ends
from pdprivacy.timeline import Timeline
from pdprivacy.types import Floats, Integers

LEVEL = 0.95

RiskOf: TypeAlias = "Callable[[Sequence[Result], Entry | None], tuple[dict[str, Any], float | None]]"
"""The disclosure risk of results and of their charge: metadata, and the risk that the budget notes."""

WIDEST = Fraction(2**500)  # in scales of the noise: as good as infinite


@dataclass(frozen=True)
class Errors:
    """The errors of released numbers, each broadcastable to their shape.

    ``standard_error``: of the noise, before any bounding. ``plus_minus``: half the interval around a
    released number. With ``bounding`` also ``bias`` and ``rmse``: as if the statistic were the
    released number; and the largest of both over all statistics within the bounds, where each number
    is a noisy number of its own. ``lower``, ``upper``: the bounds of the numbers.
    ``rounding_per_record``: rounding that ``plus_minus`` leaves out, None where it leaves out nothing.
    ``effective_rows``: the effective number of weighted records behind each number, None if unknown.
    """

    standard_error: Any
    plus_minus: Any
    bias: Any = None
    rmse: Any = None
    worst_bias: Any = None
    worst_rmse: Any = None
    lower: Any = -math.inf
    upper: Any = math.inf
    rounding_per_record: Any = None
    effective_rows: Any = None

    @classmethod
    def side_by_side(cls, releases: Sequence[Errors], shape: tuple[int, ...]) -> Errors:
        """Return the errors of several releases of this shape, as columns."""

        def joined(name: str) -> Any:
            if getattr(releases[0], name) is None:
                return None
            return np.column_stack([np.broadcast_to(getattr(errors, name), shape) for errors in releases])

        return cls(*(joined(name) for name in cls.__dataclass_fields__))

    def reordered(self, order: Integers) -> Errors:
        """Return the errors of the numbers in another order of rows."""
        return replace(self, **{name: each[order] for name, each in vars(self).items() if np.ndim(each)})

    def to_json(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return the errors as the metadata of a frame of this shape stores them."""
        plain = partial(numbers_as_json, shape=shape)
        stored: dict[str, Any] = {
            "level": LEVEL,
            "standard_error": plain(self.standard_error),
            "plus_minus": plain(self.plus_minus),
        }
        if self.rounding_per_record is not None:
            stored["rounding_per_record"] = plain(self.rounding_per_record)
        if self.bias is not None:
            stored |= {"bias": plain(self.bias), "rmse": plain(self.rmse), "worst_case": None}
        if self.worst_bias is not None:
            stored["worst_case"] = {"bias": plain(self.worst_bias), "rmse": plain(self.worst_rmse)}
        return stored


@dataclass(frozen=True)
class Result:
    """One release of a statistic: its numbers, with the bounding of the call, and its noisy parts.

    ``offsets``: as of a statistic; None once the numbers are made of the statistic's. ``ends``: the
    declared bounds of the statistic. ``bias_known``: whether the bias of bounding is known; biases of several
    numbers add up, and depend on the exact ones. ``stated_errors``: where they do not follow from the answer.
    """

    answer: Answer
    noisy: tuple[Noisy, ...]
    price: Price
    offsets: tuple[float, ...] | None
    bounding: Bounding | None
    ends: tuple[Any, Any]
    bias_known: bool = True
    stated_errors: Errors | None = None

    @property
    def errors(self) -> Errors:
        """Errors of the released numbers."""
        if self.stated_errors is not None:
            return self.stated_errors
        answer, price, bounding = self.answer, self.price, self.bounding
        biases: tuple[Any, Any, Any, Any] = (None, None, None, None)
        if bounding is not None and not self.bias_known:
            biases = (math.nan, math.nan, None, None)
        elif bounding is not None and self.offsets is None:
            biases = (*_approximate_bias(answer, price, bounding), None, None)
        elif bounding is not None and self.offsets is not None:
            biases = _bias_of_parts(answer, price, self.offsets, bounding)
        if self.offsets is not None:  # exactly the quantile of the noise, which bounding does not widen
            half = _half_widths(price.mechanisms, LEVEL)
        elif answer.interval is not None:  # the distance to the farther end
            lower, upper = answer.interval(LEVEL)
            half = np.maximum(upper - answer.values, answer.values - lower)
        else:
            half = np.full(np.shape(answer.values), np.nan)
        return Errors(
            answer.standard_error,
            half + np.asarray(answer.rounding),
            *biases,
            answer.lower,
            answer.upper,
            answer.rounding_per_record,
            answer.effective_rows,
        )

    def interval(self, level: float) -> Ends:
        """The ends of the intervals of this level, before rounding."""
        if self.answer.interval is not None:
            return self.answer.interval(level)
        values, half = self.answer.values, _half_widths(self.price.mechanisms, level)
        return values - half, values + half

    def reshaped(self, shape: tuple[int, ...]) -> Result:
        """The result in this shape; its errors are the same for all numbers, or of the same shape."""

        def interval(level: float) -> Ends:
            lower, upper = (np.reshape(end, shape) for end in self.interval(level))
            return lower, upper

        answer = replace(self.answer, values=np.reshape(self.answer.values, shape), interval=interval)
        return replace(self, answer=answer)

    def projected(self, values: Any) -> Result:
        """Return the result with consistent numbers instead of its own, and intervals around them."""
        return self.transformed(lambda answer: replace(answer, values=values), bias_known=False)

    def transformed(self, transform: Callable[[Answer], Answer], *, bias_known: bool = True) -> Result:
        """Return the result with numbers made of these."""
        answer = transform(replace(self.answer, interval=self.interval))
        known = self.bias_known and bias_known
        return replace(self, answer=answer, offsets=None, bias_known=known, stated_errors=None)

    def arranged(self, arrange: Callable[[Floats], Floats]) -> Result:
        """Return the result with its numbers and errors in another shape."""
        return self.transformed(lambda answer: answer.arranged(arrange))


def numbers_as_json(numbers: Any, shape: tuple[int, ...]) -> Any:
    """The numbers of a frame as JSON: one number where all are the same, None where one is not finite."""
    values = np.asarray(numbers, np.float64)
    if values.size == 1 and 0 not in shape:
        return values.item() if math.isfinite(values.item()) else None
    values = np.broadcast_to(values, shape)
    if not np.isfinite(values).any():
        return None
    if values.size and bool(np.all(values == values.flat[0])):
        return float(values.flat[0])
    return _with_none(values)


def pairs_as_json(lower: Any, upper: Any, shape: tuple[int, ...]) -> Any:
    """[lower, upper] of all numbers of a frame of this shape, or of each; None for an end that is open."""
    ends = [np.asarray(lower, np.float64), np.asarray(upper, np.float64)]
    if ends[0].size == ends[1].size == 1 and 0 not in shape:
        return [numbers_as_json(end, ()) for end in ends]
    ends = [np.broadcast_to(end, shape) for end in ends]
    pairs = np.stack(ends, axis=-1)
    if pairs.size and all(bool(np.all(end == end.flat[0])) for end in ends):
        pairs = pairs.reshape(-1, 2)[0]
    return _with_none(pairs)


def _with_none(values: Floats) -> Any:
    """Return numbers as lists, with None where JSON has no number."""
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def _half_widths(mechanisms: Sequence[Additive], level: float) -> Any:
    """Half the interval of noisy numbers that are parts themselves: exactly the quantile of their noise."""
    halves = [mechanism.interval(level)[1] for mechanism in mechanisms]
    return np.array(halves) if len(halves) > 1 else halves[0]


def _bias_of_parts(
    answer: Answer, price: Price, offsets: tuple[float, ...], bounding: Bounding
) -> tuple[Any, Any, Any, Any]:
    """Return bias and root mean squared error of noisy numbers at the released numbers, and the largest."""
    values = np.asarray(answer.values, np.float64)
    by_part = [values] if len(price.parts) == 1 else np.moveaxis(values, -1, 0)
    columns = [
        _bias_within(mechanism, part.bounds, bounding, numbers - offset)
        for numbers, part, mechanism, offset in zip(
            by_part, price.parts, price.mechanisms, offsets, strict=True
        )
    ]
    if len(columns) == 1:
        return columns[0]
    return tuple(np.stack(field, axis=-1) for field in zip(*columns, strict=True))  # type: ignore[return-value]


def _bias_within(
    mechanism: Additive, ends: tuple[Any, Any], bounding: Bounding, statistic: Floats
) -> tuple[Any, Any, float, float]:
    """Return bias and root mean squared error for these statistics, and the largest within the bounds."""
    if ends == (-math.inf, math.inf):
        return np.zeros_like(statistic), np.full_like(statistic, mechanism.std), 0.0, mechanism.std
    # in units of the scale: its square may be more than a double holds, or less
    law, unit = mechanism.distribution.standard
    low, high = (float(end) for end in ends)
    within = np.clip(statistic, low, high)
    distances = (within - low) / unit, (high - within) / unit
    bias, mse = bias_between(law, bounding, *distances), mse_between(law, bounding, *distances)
    width = None
    if math.isfinite(low) and math.isfinite(high):
        width = min((Fraction(ends[1]) - Fraction(ends[0])) / Fraction(unit), WIDEST)
    largest, worst = _largest_errors(law, Bounds(Fraction(0), width, bounding))
    return bias * unit, np.sqrt(mse) * unit, largest * unit, math.sqrt(worst) * unit


# The worst cases take a search, and are the same for every release of a statistic.


@lru_cache(maxsize=256)
def _largest_errors(law: Distribution, bounds: Bounds) -> tuple[float, float]:
    return bounds.worst_bias(law), bounds.worst_mse(law)


def _approximate_bias(answer: Answer, price: Price, bounding: Bounding) -> tuple[Any, Any]:
    """The same to first order, where numbers are made of several noisy ones.

    As if the number had noise of its standard error, of the order of the parts' noise, and were bounded
    itself.
    """
    error, values = np.asarray(answer.standard_error, np.float64), np.asarray(answer.values, np.float64)
    law = GeneralizedNormal.of(price.mechanisms[0].distribution.order, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = error / law.std
        below, above = ((side / scale) for side in (values - answer.lower, answer.upper - values))
        below, above = (np.where(np.isnan(side), np.inf, np.maximum(side, 0.0)) for side in (below, above))
    bias, mse = bias_between(law, bounding, below, above), mse_between(law, bounding, below, above)
    return bias * scale, np.sqrt(mse) * scale


# ---------------------------------------------------------------- released objects and their metadata


def release_of(
    facts: Protected,
    call: Call,
    statistic: Statistic,
    labels: AnswerLabels,
    transform: Callable[[Result], Result] | None = None,
    *,
    risk: RiskOf | None = None,
) -> Release[Any]:
    """Return the release of a statistic.

    ``transform`` makes the labelled numbers of each release. Several releases come side by side in one
    DataFrame, also those of one number. ``risk`` adds the disclosure risk to the metadata.
    """
    timelines_of(call.columns, call.statistic)  # refused before anything is charged
    bounded, request = statistic if call.bounds is None else with_bounds(statistic, call), call.request
    if request.bounding is not None and isinstance(statistic, CellCounts | TreeCells | WeightedCells):
        warn(
            "Bounding biases each count, and the biases add up in totals and other sums of the counts; "
            "release a sum by itself, or the counts without bounding.",
            BoundingWarning,
        )

    def publish(release: Release[Any], drawn: Drawn) -> tuple[Any, float | None]:
        bounding, offsets, ends, results = request.bounding, bounded.offsets, statistic.ends, []
        for noisy in drawn.outcomes[0]:
            answer = bounded.finish(noisy)
            if bounding is not None:
                answer = replace(answer, values=np.clip(answer.values, answer.lower, answer.upper))
            results.append(Result(answer, noisy, drawn.price, offsets, bounding, ends))
        details, reached = ({}, None) if risk is None else risk(results, drawn.entry)
        results = results if transform is None else [*map(transform, results)]
        return published(release, drawn, results, details), reached

    return Release(facts, call, call.label(facts), NoisyNumbers(bounded, request), labels, publish)


def published(release: Release[Any], drawn: Drawn, results: Sequence[Result], details: dict[str, Any]) -> Any:
    """Return the released object with its metadata; ``details``: facts of this kind of release alone."""
    facts, call, labels = release.facts, release.call, release.labels
    timelines = timelines_of(call.columns, call.statistic)
    released = side_by_side([labels.to_pandas(dated(result.answer.values, timelines)) for result in results])
    each = [in_seconds(result.errors, timelines) for result in results]
    errors = each[0] if len(each) == 1 else Errors.side_by_side(each, labels.shape)
    if call.sort:
        released, errors = _largest_first(released, errors, call)
    regressions = [result.answer.regression for result in results]
    if regressions[0] is not None:
        details["regression"] = regressions[0] if len(results) == 1 else regressions
    request, shape, bounds = call.request, released.shape, None
    error, effective_rows = errors.to_json(shape), errors.effective_rows
    if request.bounding is not None:
        bounds = pairs_as_json(errors.lower, errors.upper, shape)
        if call.margins or call.normalize or call.constraint not in (None, "psd"):
            error["note"] = SUMS
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
        bounding=request.bounding,
        bounds=bounds,
        value_bounds=None if timelines else _value_bounds(call, results, shape),
        normalize=call.normalize or None,
        margins=call.margins,
        constraint=call.constraint,
        effective_rows=None if effective_rows is None else numbers_as_json(effective_rows, shape),
        **{"rows": public_rows(facts, call), **details},
    )
    return released


def attach(facts: Protected, call: Call, drawn: Drawn, released: Released, **details: Any) -> None:
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


def _largest_first(released: Any, errors: Errors, call: Call) -> tuple[Any, Errors]:
    """Sort the labels of each group by their released numbers (the mean over several releases)."""
    values = released if isinstance(released, pd.Series) else released.mean(axis=1)
    table = values.to_numpy().reshape(math.prod(key.cells(call.statistic) for key in call.by), -1)
    first = np.arange(0, table.size, table.shape[1])[:, np.newaxis]
    order = (first + np.argsort(-table, axis=1, kind="stable")).ravel()
    return released.iloc[order], errors.reordered(order)


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
        repeats = shape[1] // (len(lower) * len(results))
        lower, upper = (np.tile(np.repeat(end, repeats), len(results)) for end in (lower, upper))
    elif len(results) > 1:
        lower, upper = lower[:, np.newaxis], upper[:, np.newaxis]
    return pairs_as_json(lower, upper, shape)


def public_rows(facts: Protected, call: Call) -> int | None:
    """Return the number of records behind each number, if it is public."""
    grouped = call.by and call.statistic != "crosstab"
    nullable = any(column.nullable for column in (*call.columns, *call.by))
    return None if grouped or nullable or call.weights is not None else facts.scope.row_bounds()[1]


SUMS = "The biases of bounded numbers add up in sums and shares; they depend on the exact numbers."
"""The note on a missing bias of a number that is made of several bounded ones."""


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
        lower=(errors.lower + origins) * seconds,
        upper=(errors.upper + origins) * seconds,
    )


def bounds_as_text(pairs: Any, timelines: Sequence[Timeline]) -> Any:
    """Return bounds in seconds since 1970, nested in lists, as texts of dates; None stays."""
    if isinstance(pairs, list):
        return [bounds_as_text(pair, timelines) for pair in pairs]
    return None if pairs is None else Timeline(0, "s", timelines[0].zone).text(pairs)
