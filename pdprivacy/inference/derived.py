"""Numbers computed from released ones, with errors that follow from the law of the noise; post-processing.

A total or a difference has the noise of its terms, which are independent. The interval of a ratio holds every
r for which ``first - r * second`` is within the noise of that difference (Fieller 1954): the probability that
it misses the ratio of the exact numbers is at most 1 - level.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import has_hash, is_null, one_of, proportion
from pdprivacy.core.statistics.confidence import Tail
from pdprivacy.errors import MetadataError, ParameterError, got
from pdprivacy.inference.interval_levels import CONTINUOUS, COUNTS, ReleasedNumbers
from pdprivacy.releases import excerpts
from pdprivacy.releases.metadata import PROJECT, Released, as_released, read
from pdprivacy.types import Floats, Integers

OTHER_NUMBERS = "counts and sums, such as private.dp.value_counts(...) or private.dp.groupby(...).sum(...)"


@dataclass(frozen=True, slots=True)
class _Independent:
    """Released numbers with independent noise of one law, and the standard deviation of each.

    ``at``: the place of each number in the release; numbers that an excerpt repeats have the same noise.
    ``rounding``: how far each number may lie from the released one, where an excerpt was rounded.
    """

    values: Floats
    std: Floats
    tail: Tail
    are_counts: bool
    labels: tuple[pd.Index[Any], ...]
    at: Integers
    rounding: Floats

    @classmethod
    def of(cls, released: Released) -> _Independent:
        """Return the numbers of a release or of an excerpt.

        Raises MetadataError for numbers whose noise is not independent or not known.
        """
        whole, places = as_released(released), None
        if whole is None:
            part = excerpts.excerpt(released)
            settled, facts, places = part.settled, part.facts, part.match.at
        else:
            settled, facts = whole, read(whole)
        if facts.part is not None and excerpts.REPEATED in facts.part["changes"]:
            raise MetadataError(
                "This saved part repeats some of the released numbers, and does not say which.",
                "use the release, or a part of it without repeated labels.",
            )
        unknown = MetadataError(
            f"The errors of what is computed from a released {facts.statistic!r} are not known.",
            f"use {OTHER_NUMBERS}.",
        )
        if facts.statistic not in {*COUNTS, "sum"}:  # which may be texts
            raise unknown
        numbers = ReleasedNumbers.of(settled)
        alone = numbers.have_own_noise and not numbers.dates and facts.constraint is None
        if not alone or facts.releases != 1 or facts.weights is not None:
            raise unknown
        if facts.bounding not in (None, PROJECT):
            raise MetadataError(
                "The numbers were kept within bounds, so that their noise is not symmetric.",
                "release them with bounding=None.",
            )
        std, values = numbers.standard_error, settled.to_numpy(np.float64)
        least = float(std.min())
        if np.isnan(std).any() or (facts.mechanism not in CONTINUOUS and float(std.max()) != least):
            raise MetadataError("The law of the noise is not known.", f"use {OTHER_NUMBERS}.")
        # in units of the scale, because a small scale counts as no noise
        tail = Tail(numbers.law(least).standard[0])
        at = (np.arange(values.size) if places is None else places).reshape(values.shape)
        rounded = excerpts.ROUNDED in (read(settled).part or {"changes": ()})["changes"]
        rounding = numbers.rounding if rounded else np.zeros(values.shape)
        return cls(values, std, tail, facts.statistic in COUNTS, tuple(settled.axes), at, rounding)

    def of_labels(self, labels: Sequence[Any], argument: str) -> tuple[int, Integers]:
        """Return the axis that has these labels, and their positions; columns come first."""
        for axis in reversed(range(len(self.labels))):
            known = [*self.labels[axis]]
            positions = [_position(known, label) for label in labels]
            if None not in positions:
                return axis, np.array(positions, dtype=np.int64)
        raise ParameterError(
            f"{argument} must be labels of one axis of the release (got {got(labels[0])}).",
            "released.index and released.columns show its labels.",
        )

    def pair(self, first: Hashable, second: Hashable) -> tuple[Floats, Floats, Floats, pd.Index[Any]]:
        """Return numbers, deviations and rounding of two labels, along the last axis, and other labels."""
        axis, positions = self.of_labels([first, second], "'first' and 'second'")
        at = np.moveaxis(self.at, axis, -1)[..., positions]
        if positions[0] == positions[1] or (at[..., 0] == at[..., 1]).any():
            raise ParameterError("'first' and 'second' must be labels of different released numbers.")
        values, std, rounding = (
            np.moveaxis(each, axis, -1)[..., positions].reshape(-1, 2)
            for each in (self.values, self.std, self.rounding)
        )
        return values, std, rounding, self.labels[1 - axis] if self.values.ndim == 2 else pd.Index([0])


def _of_equal_noise(std: Floats, at: Integers) -> Floats:
    """Return the deviations of the terms of sums, along the last axis, with those of equal noise added up.

    ``at``: the place of each term in the release. Of the terms with one place, the first has the deviation of
    their sum, and the others have 0.
    """
    if len(np.unique(at)) == at.size:
        return std
    added = np.zeros_like(std)
    for row, (deviations, places) in enumerate(zip(std, at, strict=True)):
        _, first, times = np.unique(places, return_index=True, return_counts=True)
        added[row, first] = deviations[first] * times
    return added


def _position(labels: list[Any], label: Any) -> int | None:
    """The position of a label by type and value; None where it is not there, and for nulls."""
    if not has_hash(label) or is_null(label):
        return None
    positions = {(type(each), each): at for at, each in reversed([*enumerate(labels)]) if has_hash(each)}
    loose = {each: at for (_, each), at in positions.items()}
    return positions.get((type(label), label), loose.get(label))


def total(released: Released, axis: int | str | None = None, level: float = 0.95) -> pd.DataFrame:
    """Return the sum of released numbers with its standard error and interval.

    ``axis``: "index" or 0 for a sum of each column, "columns" or 1 for one of each row, as in
    `DataFrame.sum`; None for the sum of all numbers. ``level``: the coverage of the interval.

    The noise of the terms is independent, so the standard error grows as the root of their number; a release
    of the total itself has less. The interval holds for any number of terms. A number that an excerpt repeats
    counts as often as it is there, with the same noise each time.

    Raises MetadataError for numbers other than counts and sums, ParameterError for a wrong axis.

    >>> import pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("area", "category", categories=("a", "b", "c")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"area": ["a", "b", "b"]}), domain, epsilon=1000)
    >>> total(private.dp.value_counts("area", epsilon=1000))
           estimate  standard_error  lower  upper
    total       3.0             0.0    3.0    3.0
    """
    numbers = _Independent.of(released)
    named = {0: "index", 1: "columns"}.get(axis, axis) if type(axis) is int else axis
    one_of(named, "axis", (None, "index", "columns"), "axis=0 or axis=1")
    index = pd.Index(["total"])
    values, std, at, rounding = np.atleast_1d(numbers.values), numbers.std, numbers.at, numbers.rounding
    if named is None or values.ndim == 1:
        if named == "columns":
            raise ParameterError("A Series has no columns to sum over.", "released.dp.total().")
        values, std, rounding = (each.ravel()[np.newaxis] for each in (values, std, rounding))
        at = at.ravel()[np.newaxis]
    elif named == "index":
        values, std, at, rounding, index = values.T, std.T, at.T, rounding.T, numbers.labels[1]
    else:
        index = numbers.labels[0]
    std = _of_equal_noise(std, at)
    half = numbers.tail.half(proportion(level, "level"), std) + rounding.sum(axis=-1)
    sums = values.sum(axis=-1)
    return _table(sums, np.sqrt((std**2).sum(axis=-1)), sums - half, sums + half, index)


def difference(released: Released, first: Hashable, second: Hashable, level: float = 0.95) -> pd.DataFrame:
    """Return the released number of one label minus that of another one, with its error and interval.

    ``first``, ``second``: labels of columns, for a difference in each row; or of rows.
    ``level``: the coverage of the interval.

    Raises MetadataError for numbers other than counts and sums, ParameterError for labels that are not there.

    >>> import pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("area", "category", categories=("a", "b", "c")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"area": ["a", "b", "b"]}), domain, epsilon=1000)
    >>> difference(private.dp.value_counts("area", epsilon=1000), "b", "a")
           estimate  standard_error  lower  upper
    b - a       1.0             0.0    1.0    1.0
    """
    numbers = _Independent.of(released)
    values, std, rounding, index = numbers.pair(first, second)
    half = numbers.tail.half(proportion(level, "level"), std) + rounding.sum(axis=-1)
    apart = values[:, 0] - values[:, 1]
    index = index if numbers.values.ndim == 2 else pd.Index([f"{first} - {second}"])
    return _table(apart, np.sqrt((std**2).sum(axis=-1)), apart - half, apart + half, index)


def ratio(released: Released, first: Hashable, second: Hashable, level: float = 0.95) -> pd.DataFrame:
    """Return the released number of one label over that of another one, with its error and interval.

    ``first``, ``second``: labels of columns, for a ratio in each row; or of rows.
    ``level``: the coverage of the interval, which is infinite where the noise hides whether the denominator
    is 0. The standard error is that of first order, and NaN there. Ratios of counts are at least 0.

    Raises MetadataError for numbers other than counts and sums, ParameterError for labels that are not there.

    >>> import pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("area", "category", categories=("a", "b", "c")),))
    >>> private = pdprivacy.protect(pd.DataFrame({"area": ["a", "b", "b"]}), domain, epsilon=1000)
    >>> ratio(private.dp.value_counts("area", epsilon=1000), "a", "b").round(3)
           estimate  standard_error  lower  upper
    a / b       0.5             0.0    0.5    0.5
    """
    numbers = _Independent.of(released)
    values, std, rounding, index = numbers.pair(first, second)
    half = numbers.tail.half(proportion(level, "level"), std[..., np.newaxis])
    if (
        rounding.any()
    ):  # which adds to the noise: a sum of two sizes is at most the root of twice their squares
        half = math.sqrt(2) * (half + rounding)
    if numbers.are_counts:  # the interval of a negative count is that around 0
        lower, upper = _fieller(np.maximum(values, 0.0), half)
        hidden, lower = np.isinf(lower) | np.isinf(upper), np.maximum(lower, 0.0)
    else:
        lower, upper = _fieller(values, half)
        hidden = np.isinf(lower) | np.isinf(upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(values[:, 1] == 0, np.nan, values[:, 0] / values[:, 1])
        errors = np.hypot(std[:, 0], shares * std[:, 1]) / np.abs(values[:, 1])
    index = index if numbers.values.ndim == 2 else pd.Index([f"{first} / {second}"])
    return _table(shares, np.where(hidden, np.nan, errors), lower, upper, index)


def _fieller(values: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Return the ratios r with ``(a - r b)**2 <= g**2 + (r h)**2``; all where ``|b| <= h``.

    ``values``: a and b; ``half``: g and h, the half widths of either by itself. The half width of a - r b is
    at most the root of the sum of squares of those of its terms.
    """
    shown = np.abs(values[:, 1]) > half[:, 1]
    # in units of the larger of each pair, as squares of large doubles may overflow
    units = np.maximum(np.abs(values), half)
    units = np.where(units > 0, units, 1.0)
    (a, b), (g, h) = (values / units).T, (half / units).T
    unit, spare = units[:, 0] / units[:, 1], (b - h) * (b + h)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum((h * a) ** 2 + g**2 * spare, 0.0))
        ends = unit * ((a * b - root) / spare), unit * ((a * b + root) / spare)
    return np.where(shown, ends[0], -np.inf), np.where(shown, ends[1], np.inf)


def _table(
    estimates: Floats, errors: Floats, lower: Floats, upper: Floats, index: pd.Index[Any]
) -> pd.DataFrame:
    columns = {"estimate": estimates, "standard_error": errors, "lower": lower, "upper": upper}
    return pd.DataFrame(columns, index=index)
