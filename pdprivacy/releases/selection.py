"""Selections: the labels with the most records, and numbers by their rank."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pandas as pd

from pdprivacy.checks import flag, items, one_of, proportion, whole
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import PROJECT
from pdprivacy.core.gate.spec import (
    LEVEL,
    MAX_CELLS,
    AnswerLabels,
    Call,
    Release,
    Split,
    cell_index,
    columns_of,
    name_index,
    weighted_columns,
    weights_of,
    with_keywords,
)
from pdprivacy.core.gate.tasks import Choice, Selections
from pdprivacy.core.mechanisms.exponential import (
    Choosing,
    SelectionCalibration,
    SelectionName,
    SelectionNoise,
)
from pdprivacy.core.noise import RandomState
from pdprivacy.core.privacy import Rational, rational
from pdprivacy.core.statistics import LabelScores, Quantile, RankGrid, quantile_bits, share, weight_of
from pdprivacy.core.statistics.candidates import End, Side
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError, TableTooLargeError, got
from pdprivacy.hints.examples import Example
from pdprivacy.releases.publish import timelines_of
from pdprivacy.releases.selection_answers import selection_answer
from pdprivacy.types import Labels

MOST_QUANTILES = 1000
"""The largest number of quantiles of a column in one release."""

DRAW = 10**4
"""The number of candidates whose weights take as long as one draw of a number."""


class SelectionOptions(TypedDict, total=False):
    """Keywords that every selection of labels takes in addition to ``epsilon``.

    delta : the delta of the cost; required for Gaussian noise, refused for other noise.
    mechanism : "permute_and_flip", "exponential" (the exponential mechanism) or "noisy_max" (report noisy
        max).
    noise : the noise of "noisy_max": "laplace" (None), "exponential" (the same as "permute_and_flip") or
        "gaussian".
    calibration : "published" for the scale 2 / epsilon of the sources, a rate of epsilon / 2 for exponential
        noise, under "add_remove", too, where half of it is enough (None); not for Laplace and Gaussian noise.
    releases : the number of independent releases that share the cost. Several are returned as a DataFrame
        whose (outer) column level "release" numbers them.
    rng : None for real releases; a seed or generator for tests.
    release_id : a name for the release. A repeated call with this name is refused
        (`pdprivacy.errors.AlreadyCharged`), so it is neither charged nor released twice.
    """

    delta: Rational
    mechanism: SelectionName
    noise: SelectionNoise | None
    calibration: SelectionCalibration | None
    releases: int
    rng: RandomState
    release_id: str | None


class QuantileOptions(TypedDict, total=False):
    """Keywords that every selection of numbers takes in addition to ``epsilon``.

    delta : must be zero.
    mechanism : "exponential", the exponential mechanism; other mechanisms do not support so many candidates.
    releases : the number of independent releases that share the cost. Several are returned as a DataFrame
        whose (outer) column level "release" numbers them.
    rng : None for real releases; a seed or generator for tests.
    release_id : a name for the release. A repeated call with this name is refused
        (`pdprivacy.errors.AlreadyCharged`), so it is neither charged nor released twice.
    """

    delta: Rational
    mechanism: Literal["exponential"]
    releases: int
    rng: RandomState
    release_id: str | None


ALIKE: dict[str, Any] = {"releases": 1, "rng": None, "release_id": None}
of_labels = with_keywords(
    SelectionOptions,
    {"delta": 0, "mechanism": "permute_and_flip", "noise": None, "calibration": None, **ALIKE},
)
of_numbers = with_keywords(QuantileOptions, {"delta": 0, "mechanism": "exponential", **ALIKE})


@of_labels
def mode(
    protected: Facts,
    columns: Labels,
    *,
    epsilon: Rational,
    split: Split = None,
    **options: Unpack[SelectionOptions],
) -> Release[pd.Series[Any]]:
    """Select the most frequent declared label of each column, as the first row of `DataFrame.mode`.

    Nulls are left out. Only the labels are released, without counts, so the error depends on the logarithm of
    the number of labels. With 95 % probability, the count of the released label is at most
    ``attrs["dp"]["error"]["below_best"]`` below the largest count. If several labels have the largest count,
    any of them may be released.

    The sensitivity of each count is 1. Under "add_remove" all counts move the same way, which needs only half
    the noise. ``calibration="published"`` has the whole noise, as "The adverse effects of omitting records in
    differential privacy", section 3.1, does: it costs epsilon, and may lose only half of it.

    ``columns``: a label or a list of labels, with declared cells. ``split``: weights by column for sharing
    ``epsilon``; equal by default. Returns a Series labelled by column.

    Raises DeclarationError for a column without declared cells.

    >>> import pandas as pd, pandera.pandas as pa
    >>> region = pa.Column(str, pa.Check.isin(["north", "south"]), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"region": ["north"] * 90 + ["south"] * 10})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"region": region}), epsilon=2)
    >>> private.dp.mode("region", epsilon=1)["region"]
    'north'
    """
    chosen = columns_of(protected, columns, "mode")
    choices, labels = label_choices(protected, "mode", chosen, split), AnswerLabels(name_index(chosen))
    return selected(protected, "mode", chosen, choices, epsilon, dict(options), labels)


@of_labels
def top_k(
    protected: Facts,
    columns: Labels,
    k: int,
    *,
    epsilon: Rational,
    split: Split = None,
    **options: Unpack[SelectionOptions],
) -> Release[Any]:
    """Select the ``k`` most frequent declared labels of each column, the most frequent first.

    Nulls are left out. Only the labels and their order are released, without counts. "permute_and_flip" and
    "exponential" select one label after the other from the labels that are left, with ``epsilon / k`` each.
    "noisy_max" with Laplace or Gaussian noise takes all labels from one noisy histogram, at no further cost,
    which is better for a large ``k``.

    Sensitivity and ``split`` as in `mode`. Returns a Series of labels indexed from 1 to k, named after the
    column; for a list of columns, a DataFrame with one column each.

    Raises DeclarationError for a column without declared cells, and ParameterError if ``k`` exceeds their
    number.

    Source: Durfee, Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get
    composition" (one after the other).

    >>> import pandas as pd, pandera.pandas as pa
    >>> region = pa.Column(str, pa.Check.isin(["north", "south"]), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"region": ["north"] * 90 + ["south"] * 10})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"region": region}), epsilon=2)
    >>> private.dp.top_k("region", 2, epsilon=1, rng=1).tolist()
    ['north', 'south']
    """
    chosen = columns_of(protected, columns, "top_k")
    k = whole(k, "k", 1)
    for column in chosen:
        if k > len(column.labels("top_k")):
            raise ParameterError(
                f"'k' must be at most the number of labels of column {column.name!r}, "
                f"{len(column.labels('top_k'))} (got {got(k)})."
            )
    choices = label_choices(protected, "top_k", chosen, split, int(k))
    index = pd.RangeIndex(1, int(k) + 1)
    labels = AnswerLabels(index, name=chosen[0].name)
    if isinstance(columns, list | pd.Index):
        labels = AnswerLabels(index, name_index(chosen))
    return selected(protected, "top_k", chosen, choices, epsilon, dict(options), labels)


def label_choices(
    protected: Facts,
    method: str,
    chosen: Sequence[Column],
    split: Split,
    count: int = 1,
    keys: tuple[Column, ...] = (),
) -> list[LabelScores]:
    """Return the selections of ``count`` labels of each column, in each group of ``keys``."""
    return [
        LabelScores(column, protected.scope, method, weight, count, keys=keys)
        for column, weight in zip(chosen, weights_of(chosen, split), strict=True)
    ]


@of_numbers
def quantile(
    protected: Facts,
    columns: Labels | None = None,
    q: Rational | Sequence[Rational] = 0.5,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    interval: bool | float | None = None,
    bounding: Literal["project"] | None = PROJECT,
    **options: Unpack[QuantileOptions],
) -> Release[Any]:
    """Select quantiles of numeric columns, as `DataFrame.quantile`.

    Nulls are left out, and values are clamped to their bounds. A quantile is selected from the numbers
    between the declared bounds: all whole numbers for integers, dates and truth values (beyond 2**53 those
    that are doubles), else floats of at least 29 binary digits after the first. Its error is in rank, not in
    value: with 95 % probability the released number is within ``attrs["dp"]["error"]["below_best"]`` ranks of
    the true quantile. This error grows with the logarithm of the number of candidates, and does not depend
    otherwise on the width of the bounds: wide bounds cost a middle quantile little. An outer one with fewer
    records beyond it than ``below_best`` may lie far outside the records; see `find_bounds`.

    Records that are nearer to the released number than half the distance of two candidates count as equal to
    it. This distance is at most ``error["relative_step"]`` of the number (of 2**-30 of the larger bound if
    that is more), 0 where every number is a candidate, and ``error["step"]`` next to the larger bound.

    Each quantile is drawn separately, and the quantiles of a column are then sorted (``bounding``), so that a
    higher quantile is never below a lower one. A ``q`` of 0 or 1 gives `min` or `max`. There is no
    ``interpolation``, because the released number is not the value of a record.

    The sensitivity of the rank is max(q, 1 - q) under "add_remove" and 1 under "replace_one", times the
    largest weight.

    Parameters
    ----------
    columns : a label, a list of labels, or None for all numeric columns with bounds.
    q : a number from 0 to 1, or a list of them; rounded to a fraction with a denominator of at most 10**6.
    split : weights by column for sharing ``epsilon``, equal by default; the quantiles of a column have equal
        shares.
    weights : the label of a declared column of numbers of at least 0. ``q`` is then a share of the sum of the
        weights of the records with a weight and a value, and ``below_best`` is a sum of weights. Weights are
        rounded to 2**-28 of the largest weight; for a ``q`` of many digits more coarsely, up to 2**-16.
        ``q`` must then be above 0 and below 1, with a denominator of at most 16383, which includes every
        ``q`` of four decimal digits.
    interval : whether to select an interval for each quantile of these data, too, which `interval()` of the
        release returns. The number and the two ends get a third of the cost each, so ``below_best`` is three
        times as large. An end is sought so many ranks from the quantile that it is on the wrong side with
        probability 2.5 % at most, for any data. Where there are too few records for that, it is nearly always
        a declared bound. For a ``q`` of 0 or 1 as in `min`. Not with ``weights``. A number, such as 0.99, is
        the level of the intervals, and of all other errors of the release, in place of 95 %.
    bounding : "project" (the default) sorts the quantiles of each column, at no cost; a minimum and a maximum
        among them become the least and the largest number. No sorted number is more ranks off than the worst
        of the drawn ones. So ``below_best`` is the largest bound of the quantiles of the column, each at the
        level 1 - 0.05 / k for k quantiles: with 95 % probability all of them are within it. For a minimum or
        maximum it is at least its ``rank``. ``error["below_best_before"]`` holds the bounds of the numbers as
        they were drawn, which ``released.dp.unprojected()`` returns. An interval of a quantile is extended to
        the sorted number. None: the numbers as they were drawn.

    Returns a Series labelled by column and named ``q``; for a list of ``q``, a DataFrame indexed by ``q``.

    Source: Smith (2011), Algorithm 2; McSherry, Talwar (2007).

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.quantile("age", [0.25, 0.75], epsilon=1, rng=1)
           age
    0.25  31.0
    0.75  54.0
    """
    refuse_numbers(protected, columns)
    chosen, weighing = weighted_columns(protected, columns, weights, "quantile")
    words = {**options, "split": split, "weights": weighing, "interval": interval, "bounding": bounding}
    return ranked(protected, "quantile", chosen, q, epsilon, words)


def refuse_numbers(protected: Facts, columns: Any, call: str = "private.dp", selected: Any = None) -> None:
    """Refuse numbers instead of columns, as in ``DataFrame.quantile(0.5)``; ``selected``: of groups."""
    several = isinstance(columns, list)
    listed = list(columns) if several else [columns]
    if listed and all(type(item) in (int, float) and item not in protected.domain for item in listed):
        example = "[0.25, 0.75]" if several else "0.5"
        raise ParameterError(
            f"'quantile' takes columns first, and 'q' by name (got {got(columns)}).",
            Example(f'{call}.quantile(q={example}, epsilon=0.1, columns="age")')
            if selected is None
            else f"{call}[{selected!r}].quantile(q={example}, epsilon=0.1)",
        )


def _shares_asked(q: Any) -> tuple[list[Fraction], list[float], bool]:
    """Return the shares below the requested quantiles, their labels, and whether ``q`` is a list."""
    if isinstance(q, np.ndarray) and q.ndim == 0:
        q = q[()]
    several = not isinstance(q, str | bytes) and isinstance(q, Sequence | np.ndarray | pd.Index | pd.Series)
    quantiles: list[Any] = items(q, "q", most=MOST_QUANTILES) if several else [q]
    if not quantiles:
        raise ParameterError("'q' must not be empty.")
    shares = [share(quantile, q) for quantile in quantiles]
    labels = [float(rational(quantile, "q")) for quantile in quantiles]
    if len(set(labels)) < len(labels):
        raise ParameterError("'q' must not repeat a number.")
    return shares, labels, several


def ranked(
    protected: Facts,
    statistic: str,
    chosen: Sequence[Column],
    q: Any,
    epsilon: Rational,
    options: dict[str, Any],
    keys: tuple[Column, ...] = (),
    *,
    series: bool = False,
) -> Release[Any]:
    """Return the release of numbers by their rank in each column, per group if ``keys`` are given.

    ``options``: the keywords of the method, `QuantileOptions` and ``split``, and the column of ``weights``.
    ``series``: whether the one column of a release per group is returned as a Series.
    """
    weighing: Column | None = options.get("weights")
    shares, named, several = _shares_asked(q)
    bounding = one_of(options.get("bounding"), "bounding", (PROJECT, None))
    options = {**options, "bounding": bounding if len(shares) > 1 else None}
    if weighing is not None and not all(0 < share < 1 for share in shares):
        raise ParameterError(
            "With 'weights', 'q' must be above 0 and below 1.", "min or max, without weights"
        )
    numbers = [
        Quantile(
            RankGrid(column, statistic),
            share,
            protected.scope,
            weight / len(shares),
            "lower" if share == 0 else "upper" if share == 1 else None,
            keys,
            None if weighing is None else weight_of(weighing, statistic, bits=quantile_bits(share)),
        )
        for column, weight in zip(chosen, weights_of(chosen, options["split"]), strict=True)
        for share in shares
    ]
    level = _interval_level(options.get("interval"), weighing)
    choices = numbers if level is None else _with_ends(numbers, level)
    names = name_index(chosen)
    index: pd.Index[Any] = cell_index(keys, "groupby") if keys else pd.Index(named)
    if keys and several:
        pairs = [(*(key if len(keys) > 1 else (key,)), label) for key in index for label in named]
        index = pd.MultiIndex.from_tuples(pairs, names=[*index.names, None])
    labels = AnswerLabels(index, name=names[0]) if series else AnswerLabels(index, names)
    if not keys and not several:
        labels = AnswerLabels(names, name=named[0] if statistic == "quantile" else None)
    return selected(protected, statistic, chosen, choices, epsilon, options, labels)


def _interval_level(interval: Any, weighing: Column | None) -> float | None:
    """Return the level of the intervals that are selected, too, or None; refuse them with weights."""
    number = isinstance(interval, Real) and not isinstance(interval, bool)
    if interval is None or not (number or flag(interval, "interval")):
        return None
    if weighing is not None:
        raise ParameterError("'interval' is for quantiles without weights.", "leave interval or weights out.")
    return proportion(interval, "interval", "interval=0.99.") if number else LEVEL


SELECTED_ENDS: dict[End | None, tuple[Side, ...]] = {
    None: ("below", "above"), "lower": ("above",), "upper": ("below",)
}  # fmt: skip
"""The ends of an interval that are selected: of a minimum or maximum the inner one, the other is a bound."""


def _with_ends(numbers: Sequence[Quantile], level: float) -> list[Quantile]:
    """Return each number followed by the ends of its interval, with equal parts of its loss."""
    choices = []
    for number in numbers:
        sides = SELECTED_ENDS[number.end]
        part = replace(number, weight=number.weight / (1 + len(sides)), level=level)
        choices += [part, *(replace(part, end=None, side=side) for side in sides)]
    return choices


@of_numbers
def median(
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    interval: bool | float | None = None,
    **options: Unpack[QuantileOptions],
) -> Release[pd.Series[Any]]:
    """Select medians of numeric columns: the `quantile` of 1/2, with its error and its candidates.

    The sensitivity of the rank is 1/2 under "add_remove" and 1 under "replace_one". Returns a Series labelled
    by column, as `DataFrame.median`. ``weights`` and ``interval`` as in `quantile`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> private = pd.DataFrame({"age": [40] * 101}).dp.protect(pa.DataFrameSchema({"age": age}), epsilon=2)
    >>> int(private.dp.median("age", epsilon=1)["age"])
    40
    """
    chosen, weighing = weighted_columns(protected, columns, weights, "median")
    words = {**options, "split": split, "weights": weighing, "interval": interval}
    return ranked(protected, "median", chosen, Fraction(1, 2), epsilon, words)


@of_numbers
def min(  # noqa: A001
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    interval: bool | float | None = None,
    **options: Unpack[QuantileOptions],
) -> Release[pd.Series[Any]]:
    """Select the smallest numbers of numeric columns, without nulls, near a low rank.

    A single record decides a minimum, so no private number is reliably near it. The released number is near a
    fixed rank r from below, ``attrs["dp"]["error"]["rank"]``. If there are at least r records, then with 95 %
    probability at least one record is at or below the released number, and fewer than 2 r are below it. The
    rank r is the logarithm of 20 times the number of candidates, times ``scale``, rounded up. So the
    candidates below all records, which may be nearly all candidates, do not outweigh those near the rank.

    With fewer than r records, all candidates from the largest record to the upper bound are equally likely,
    and likelier than the others. So r is at most half of the public lower bound of the number of records. If
    this limit lowers r, ``attrs["dp"]["error"]["cut"]`` is True, and the released number may well lie below
    all records, or above 2 r of them; with 95 % probability its rank is within ``below_best`` of r.

    The error in value depends on the data, and is at most ``attrs["dp"]["error"]["widest"]``, the distance
    between the declared bounds. If r is large, a low `quantile` is more informative.

    ``interval``: whether to select an interval for the minimum of these data, too, from the lower bound to a
    number that with 95 % probability is at or above the minimum, for any data. The released number and this
    end get half of the cost each, so ``rank`` is about twice as large. Nothing private bounds a minimum from
    below, and with fewer records than ``rank`` the interval is nearly always the whole range.

    The sensitivity of the rank is 1. Returns a Series labelled by column, as `DataFrame.min`. ``columns``,
    ``split`` and candidates as in `quantile`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.min("age", epsilon=1, rng=1)
    age    31.0
    dtype: float64
    """
    chosen = columns_of(protected, columns, "min")
    return ranked(protected, "min", chosen, 0, epsilon, {**options, "split": split, "interval": interval})


@of_numbers
def max(  # noqa: A001
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    interval: bool | float | None = None,
    **options: Unpack[QuantileOptions],
) -> Release[pd.Series[Any]]:
    """Select the largest numbers of numeric columns, without nulls, near a high rank; see `min`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.max("age", epsilon=1, rng=1)
    age    54.0
    dtype: float64
    """
    chosen = columns_of(protected, columns, "max")
    return ranked(protected, "max", chosen, 1, epsilon, {**options, "split": split, "interval": interval})


def selected(
    protected: Facts,
    statistic: str,
    columns: Sequence[Column],
    choices: Sequence[Choice],
    epsilon: Rational,
    options: dict[str, Any],
    labels: AnswerLabels,
) -> Release[Any]:
    """Return the release of selections."""
    choosing = Choosing(
        epsilon,
        options["delta"],
        mechanism=options["mechanism"],
        noise=options.get("noise"),
        releases=options["releases"],
        calibration=options.get("calibration"),
    )
    if isinstance(choices[0], Quantile) and choosing.mechanism != "exponential":
        raise ParameterError(
            f"{statistic!r} is drawn by mechanism='exponential' (got {choosing.mechanism!r})."
        )
    _check_work(choices, choosing.releases)
    timelines_of(columns, statistic)  # refused before anything is charged
    call = Call.of_selection(
        statistic,
        choosing.cost,
        tuple(columns),
        rng=options["rng"],
        release_id=options["release_id"],
        releases=choosing.releases,
        bounding=options.get("bounding"),
        by=choices[0].keys,
        weights=options.get("weights"),
    )
    task = Selections(tuple(choices), choosing)
    return Release(protected, call, call.label(protected), task, labels, selection_answer)


def _check_work(choices: Sequence[Choice], releases: int) -> None:
    """Raise TableTooLargeError where the selections have too many candidates to compute with."""
    groups = choices[0].groups
    work = sum(map(_weights_per_draw, choices)) * groups * releases
    if work > MAX_CELLS:
        by_group = f" of {groups:,} groups" if groups > 1 else ""
        raise TableTooLargeError(
            f"The selections{by_group} together have {work:,} candidates; the limit is {MAX_CELLS:,}.",
            "fewer releases, or fewer groups at once, by private.query or private.recode of their labels."
            if groups > 1
            else "fewer releases, or fewer columns or quantiles at once.",
        )


def _weights_per_draw(choice: Choice) -> int:
    """Return how many weights of candidates one draw of a choice computes."""
    return choice.candidates * choice.count if isinstance(choice, LabelScores) else DRAW
