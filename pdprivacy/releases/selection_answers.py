"""Answers of selections: labels, or numbers in the order of their shares, with their errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.core.gate.request import PROJECT
from pdprivacy.core.gate.spec import LEVEL, AnswerLabels, Drawn, Release
from pdprivacy.core.gate.tasks import Choice, ChoiceMechanism, Selections
from pdprivacy.core.statistics import LabelScores, Quantile
from pdprivacy.core.statistics.candidates import Side
from pdprivacy.exact import EXACT
from pdprivacy.releases.metadata import Released
from pdprivacy.releases.projection import RANKS_BEFORE
from pdprivacy.releases.publish import attach, dated, public_rows, risk_noted, side_by_side, timelines_of
from pdprivacy.releases.quantile_order import in_order, ranks_in_order


def selection_answer(release: Release[Any], drawn: Drawn) -> tuple[Any, str | None]:
    """Return the selected labels or numbers of a release, with their metadata."""
    choices = _choices_of(release)
    steps = map(_with_reach, choices, drawn.price.mechanisms, drawn.outcomes)
    outcomes = [*zip(*steps, strict=True)]
    before = _frame(release, outcomes)
    released, ends, ends_before = before, {}, {}
    if release.call.request.projects:
        released = _frame(release, [_in_order(release, selected) for selected in outcomes])
    if any(_side(choice) is not None for choice in choices):
        outer = {
            "lower": _frame(release, outcomes, "below").to_numpy(),
            "upper": _frame(release, outcomes, "above").to_numpy(),
        }
        ends, ends_before = (_around(frame.to_numpy(), **outer) for frame in (released, before))
    moved = _moved(released, before, ends_before) if release.call.request.projects else None
    _attach(release, drawn, released, ends, moved)
    return released, risk_noted(release.facts, release.call, drawn)


def _ranges(release: Release[Any]) -> Any:
    """Return the least and the largest candidate of all numbers, or of each, as JSON."""
    choices = [choice for choice in _choices_of(release) if isinstance(choice, Quantile)]
    steps = ([(getattr(choice.grid, end),) * choice.groups for choice in choices] for end in ("low", "high"))
    frames = [_frame(release, [own] * release.call.request.releases).to_numpy() for own in steps]
    pairs = np.stack(frames, axis=-1)
    alike = bool((pairs == pairs.reshape(-1, 2)[0]).all())
    return _plain(pairs.reshape(-1, 2)[0] if alike else pairs)


def _choices_of(release: Release[Any]) -> Sequence[Choice]:
    return _task_of(release).choices


def _task_of(release: Release[Any]) -> Selections:
    assert isinstance(release.task, Selections)
    return release.task


def _in_order(release: Release[Any], selected: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """Return the selected steps of one release, the quantiles of each column in order."""
    ordered = list(selected)
    for quantiles in _by_column(_choices_of(release)):
        shown = release.labels.index.get_level_values(-1)[: len(quantiles)]
        own = [float(quantile.q) for quantile in quantiles.values()]
        q = np.array(own if shown.dtype.kind != "f" else shown, np.float64)
        steps = in_order([*quantiles.values()], q, np.array([selected[at] for at in quantiles], np.int64))
        for at, row in zip(quantiles, steps.tolist(), strict=True):
            ordered[at] = row
    return ordered


def _by_column(choices: Sequence[Choice]) -> list[dict[int, Quantile]]:
    """Return the quantiles of each column by their positions, without the ends of intervals."""
    numbers = [
        (at, choice)
        for at, choice in enumerate(choices)
        if isinstance(choice, Quantile) and choice.side is None
    ]
    return [dict(own) for _, own in groupby(numbers, lambda pair: pair[1].grid.column.name)]


def _frame(
    release: Release[Any], outcomes: Sequence[Sequence[Sequence[int]]], side: Side | None = None
) -> Any:
    """Return the selections of all releases as a Series or DataFrame; of a ``side`` the ends of intervals."""
    labels, call = release.labels, release.call
    timelines = timelines_of(call.columns, call.statistic)
    values = [_values(_choices_of(release), selected, labels, side) for selected in outcomes]
    return side_by_side([labels.to_pandas(dated(each, timelines)) for each in values])


def _around(numbers: Any, lower: Any, upper: Any) -> dict[str, NDArray[Any]]:
    """Return the ends of intervals, moved to the numbers that lie beyond them.

    An interval that holds the released number, too, covers the quantile at least as often.
    """
    return {"lower": np.minimum(lower, numbers), "upper": np.maximum(upper, numbers)}


def _moved(
    released: Released, before: Released, ends_before: Mapping[str, NDArray[Any]]
) -> dict[str, list[Any]] | None:
    """Return the numbers that sorting moved, as they were drawn, and the ends of their intervals then."""
    earlier = before.to_numpy().ravel()
    at = np.flatnonzero(released.to_numpy().ravel() != earlier)
    if not at.size:
        return None
    return {
        "at": at.tolist(),
        "values": _plain(earlier[at]),
        "plus_minus": [None] * at.size,
        "missed": [],
        **{name: _plain(ends.ravel()[at]) for name, ends in ends_before.items()},
    }


def _side(choice: Choice) -> Side | None:
    """Return the end of an interval that a choice selects; None where it selects no end."""
    return choice.side if isinstance(choice, Quantile) else None


def _chosen(choice: Choice, selected: Sequence[int]) -> list[Any]:
    """Return the selected labels of a choice, or its number.

    An end of an interval is one step farther out where steps round numbers.
    """
    if isinstance(choice, LabelScores):
        labels = choice.column.labels(choice.method)
        return [labels[index] for index in selected]
    grid = choice.grid
    moved = {None: 0, "below": -1, "above": 1}[choice.side] if grid.relative_step else 0
    return [choice.value(int(np.clip(step + moved, grid.low, grid.high))) for step in selected]


def _with_reach(
    choice: Choice, mechanism: ChoiceMechanism, outcomes: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]]:
    """Return the selected steps; the bounds in place of ends of intervals that reach no quantile."""
    if _side(choice) is None or not isinstance(choice, Quantile):
        return outcomes
    if not choice.margin_is_limited(mechanism.scale):
        return outcomes
    bound = choice.grid.low if choice.side == "below" else choice.grid.high
    return [(bound,) * len(selected) for selected in outcomes]


def _values(
    choices: Sequence[Choice],
    selected: Sequence[Sequence[int]],
    labels: AnswerLabels,
    side: Side | None = None,
) -> Any:
    """Return numbers as an array, or selected labels as an array or a list of columns.

    ``side``: the ends of intervals to return in place of the numbers.
    """
    pairs = [*zip(choices, selected, strict=True)]
    pairs = _ends(pairs, side) if side else [pair for pair in pairs if _side(pair[0]) is None]
    choices, chosen = [choice for choice, _ in pairs], [_chosen(*pair) for pair in pairs]
    scores = [choice for choice in choices if isinstance(choice, LabelScores)]
    if not scores:  # the quantiles of a column one after the other, each for all groups
        columns = 1 if choices[0].keys and labels.columns is None else labels.shape[-1]
        numbers = np.array(chosen, dtype=np.float64).reshape(columns, -1, choices[0].groups)
        return numbers.transpose(2, 1, 0).reshape(labels.shape)
    if labels.columns is None:
        return _array_of([label for own in chosen for label in own], scores)
    return [_array_of(own, [choice]) for own, choice in zip(chosen, scores, strict=True)]


def _ends(pairs: Sequence[tuple[Choice, Sequence[int]]], side: Side) -> list[tuple[Choice, Sequence[int]]]:
    """Return this end of the interval of each number: as selected after it, or a bound of its column."""
    ends: list[tuple[Choice, Sequence[int]]] = []
    for choice, selected in pairs:
        if isinstance(choice, Quantile) and choice.side is None:
            bound = choice.grid.low if side == "below" else choice.grid.high
            ends.append((choice, (bound,) * len(selected)))
        elif _side(choice) == side:
            ends[-1] = choice, selected
    return ends


def _array_of(selected: Sequence[Any], choices: Sequence[LabelScores]) -> Any:
    """Return selected labels as an array; of objects if whole numbers would lose digits next to floats."""
    labels = [label for choice in choices for label in choice.column.labels(choice.method)]
    broken = any(isinstance(label, float) for label in labels)
    whole = (abs(label) for label in labels if isinstance(label, int))
    exact = broken and any(label > EXACT for label in whole)
    return pd.Series(selected, dtype=object if exact else None).array


def _attach(
    release: Release[Any], drawn: Drawn, released: Released, ends: Mapping[str, NDArray[Any]], moved: Any
) -> None:
    """Write the metadata of a selection.

    ``ends``: those of the intervals, or none. ``moved``: the numbers that sorting moved, or None.
    """
    choices, projects = _choices_of(release), release.call.request.projects
    pairs = [pair for pair in zip(choices, drawn.price.mechanisms, strict=True) if _side(pair[0]) is None]
    names = _names([choice for choice, _ in pairs])

    def by_choice(values: Sequence[Any]) -> Any:
        return values[0] if len(names) == 1 else dict(zip(names, values, strict=True))

    level = drawn.level
    if ends and level == LEVEL and isinstance(choices[0], Quantile):  # a plan may have a level of its own
        level = choices[0].level
    facts = [_known_of(*pair, level) for pair in pairs]
    sensitivities, scales, errors = zip(*facts, strict=True)
    if projects:
        by_column = [
            [(choice, drawn.price.mechanisms[at]) for at, choice in quantiles.items()]
            for quantiles in _by_column(choices)
        ]
        ordered = chain.from_iterable(ranks_in_order(own, level) for own in by_column)
        for error, ranks in zip(errors, ordered, strict=True):
            error |= {"below_best": ranks, RANKS_BEFORE: error["below_best"]}
    measures = dict.fromkeys(measure for error in errors for measure in error)
    attach(
        release.facts,
        release.call,
        drawn,
        released,
        sensitivity=by_choice(sensitivities),
        scale=by_choice(scales),
        split=dict(zip(_names(choices), (float(choice.weight) for choice in choices), strict=True)),
        error={
            "level": level,
            **{name: by_choice([error.get(name) for error in errors]) for name in measures},
            **{name: _plain(end) for name, end in ends.items()},
        },
        bounding=PROJECT if projects else None,
        bounds=_ranges(release) if ends else None,
        projection=moved,
        rows=public_rows(release.facts, release.call),
        calibration=_task_of(release).choosing.calibration,
    )


def _plain(ends: NDArray[Any]) -> list[Any]:
    """Return ends of intervals as JSON, dates as texts."""
    dates = ends.dtype.kind != "f"
    texts = np.array([str(pd.Timestamp(end)) for end in ends.ravel()]) if dates else ends
    plain: list[Any] = texts.reshape(ends.shape).tolist()
    return plain


def _known_of(
    choice: Choice, mechanism: ChoiceMechanism, level: float
) -> tuple[float, float, dict[str, Any]]:
    """Return the sensitivity and the scale of a choice, and the public facts of its error.

    ``below_best``: a bound, at this ``level``, of the distance of a selected score from the best score left.
    A number adds the largest distance of two candidates, and the largest as a part of the number; a minimum
    or maximum also its rank from the end, whether this rank was cut below the rank that outweighs the numbers
    beyond all records, and the distance of the bounds.
    """
    unit = choice.unit if isinstance(choice, Quantile) else 1  # a step of the records' weights, or a record
    count = choice.count if isinstance(choice, LabelScores) else 1
    error: dict[str, Any] = {"below_best": mechanism._below_best(choice.candidates, count, level) * unit}
    if isinstance(choice, Quantile):
        error["step"], error["relative_step"] = choice.grid.step, choice.grid.relative_step
    if isinstance(choice, Quantile) and choice.end is not None:
        error["rank"], error["cut"] = choice.rank(mechanism.scale), choice.rank_is_limited(mechanism.scale)
        error["widest"] = choice.grid.upper - choice.grid.lower
    return float(mechanism.sensitivity) * unit, mechanism.scale * unit, error


def _names(choices: Sequence[Choice]) -> list[str]:
    """Return names of the choices: their columns, with more detail if a column has several choices."""
    columns = [choice.column if isinstance(choice, LabelScores) else choice.grid.column for choice in choices]
    alone = len(set(columns)) == len(choices)
    names: list[str] = []
    for number, (choice, column) in enumerate(zip(choices, columns, strict=True), 1):
        name = str(column.name) if alone else choice.name
        while name in names:  # as those of the columns 1 and "1"
            name += f" #{number}"
        names.append(name)
    return names
