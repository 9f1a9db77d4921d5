"""Numbers of a frame that pandas made of a release: which of the released numbers each of them is.

Labels and value decide together. Labels are compared as text, level by level, wherever pandas put a level:
into rows, columns, the name of a Series, or a column of labels. Where labels are new, the numbers are known
only if all released numbers are there and have the same error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.errors import MetadataError
from pdprivacy.exact import EXACT
from pdprivacy.releases.metadata import Released, label_text
from pdprivacy.types import Floats, Integers, Mask

Texts: TypeAlias = NDArray[Any]

UNNAMED = ("index", "variable")
"""The names that `reset_index` and `melt` give to labels without a name, beside "level_0" and the like."""

MOST_DIGITS = 15
"""The most digits after the point that a number may be rounded to, and the most zeros before it."""

FEWEST = 3
"""The fewest numbers that show that they were rounded to tens or more, and not changed by chance."""

MOST_TRIED = 1000
"""The most labels of a missing level that are compared with the numbers."""

OTHER_VALUES = "{} of {} numbers have other values than were released under their labels"
NEW_LABELS = (
    "labels are new, and the errors of the released numbers differ, or not all of the numbers are here"
)
NO_NUMBERS = "there are no numbers"
MISSING_LABELS = "labels are missing that say which of the released numbers these are"


@dataclass(frozen=True)
class Level:
    """The labels of a level, as texts along one ``axis``: 0 for rows, 1 for columns, 2 for one label."""

    name: str | None
    axis: int
    position: int
    texts: Texts

    def along(self, values: Any) -> Any:
        """Return values along the axis in a shape for all cells."""
        return values[:, np.newaxis] if self.axis == 0 else values[np.newaxis, :]


@dataclass(frozen=True)
class Match:
    """Which released number each number of a frame is.

    Attributes
    ----------
    frame : the numbers; labels that were columns are in its index.
    at : (R, C) the place of each number in the release, row by row; -1 for a null that stands for none.
    rounding : (R, C) half of the last place that numbers were rounded to, else 0.
    relabelled : whether labels are new.
    fixed : labels of levels that are missing here, of which all numbers are.
    """

    frame: Released
    at: Integers
    rounding: Floats
    relabelled: bool = False
    fixed: tuple[str, ...] = ()


def match(frame: Released, original: Released, uniform: bool) -> Match:
    """Return which number of the ``original`` release each number of a frame is.

    ``uniform``: whether all released numbers have the same error.

    Raises MetadataError with the reason where a number is not a released one, or may be one of several.

    >>> counts = pd.Series([3, 5, 4], index=pd.Index(["a", "b", "c"], name="area"))
    >>> match(counts.sort_values(ascending=False).head(2), counts, True).at.ravel().tolist()
    [1, 2]
    """
    released = _levels(original)
    numbers, columns = _numbers(frame, original, released)
    sources = _sources(numbers, released)
    sources += [Level(name, 0, at, _texts(labels)) for at, (name, labels) in enumerate(columns, 100)]
    shape, width = _shape(numbers), _shape(original)
    here, there = _values(numbers), _values(original).ravel()
    if not here.size or not there.size:
        raise MetadataError(NO_NUMBERS)
    pairs = _paired(released, sources)
    keys, known = _keys(released, pairs, shape)
    places, _ = _keys(released, {at: released[at] for at in pairs}, width)
    table = _Lookup(places.ravel())
    first, count = table.find(np.where(known, keys, -1))
    count[~known] = 0
    named = _with_labels(numbers, columns)
    null = pd.isna(here)
    fixed: tuple[str, ...] = ()
    new = bool((~null & (count == 0)).any())
    paired = {id(source) for source in pairs.values()}
    unpaired = any(source.axis < 2 and id(source) not in paired for source in sources)
    relabelled = new or (len(pairs) < len(released) and unpaired)
    if new or (count > 1).any():
        at = _whole(here, there, np.where(count == 1, first, -1)) if uniform else None
        if at is None and new:
            raise MetadataError(NEW_LABELS)
        if at is None:
            at, fixed = _of_one_label(released, pairs, (keys, places), (here, there))
    else:
        at = np.where(count == 1, first, -1)
    rounding = _rounding(here, there[at])
    at = np.where(null & ~pd.isna(there[at]), -1, at)
    if bool((at < 0).all()):
        raise MetadataError(NO_NUMBERS)
    return Match(named, at, rounding, relabelled, fixed)


# ---------------------------------------------------------------- labels


def _shape(frame: Released) -> tuple[int, int]:
    return (len(frame), 1) if isinstance(frame, pd.Series) else frame.shape


def _texts(labels: pd.Index[Any]) -> Texts:
    """Return labels as texts."""
    texts = np.empty(len(labels), dtype=object)
    texts[:] = [label_text(label) for label in labels.tolist()]
    return texts


def _name(name: Any) -> str | None:
    return None if name is None else str(name)


def _levels(frame: Released) -> list[Level]:
    """Return the levels of rows, then those of columns."""
    axes = frame.axes if isinstance(frame, pd.DataFrame) else [frame.index]
    return [
        Level(_name(labels.names[at]), axis, at, _texts(labels.get_level_values(at)))
        for axis, labels in enumerate(axes)
        for at in range(labels.nlevels)
    ]


def _sources(frame: Released, released: list[Level]) -> list[Level]:
    """Return the levels of a frame; the name of a Series is one where it is a released label."""
    sources = _levels(frame)
    if isinstance(frame, pd.Series) and frame.name is not None:
        parts = frame.name if isinstance(frame.name, tuple) else (frame.name,)
        sources += [
            Level(None, 2, at, np.array([label_text(part)], dtype=object))
            for at, part in enumerate(parts)
            if any(label_text(part) in set(level.texts) for level in released)
        ]
    return sources


def _numbers(
    frame: Released, original: Released, released: list[Level]
) -> tuple[Released, list[tuple[str, pd.Index[Any]]]]:
    """Return the columns of numbers, and the columns of labels that `reset_index` or `melt` made, by name."""
    if isinstance(frame, pd.Series):
        return frame, []
    labels: dict[int, str] = {}
    for at, column in enumerate(frame.columns):
        below: list[Any]
        head, *below = column if isinstance(column, tuple) else (column,)
        name, here = str(head), {*_texts(_labels_of(frame, at))}
        default = name in UNNAMED or re.fullmatch(r"level_\d+", name) is not None
        named = [level for level in released if level.name == name or (level.name is None and default)]
        if not any(map(label_text, below)) and any(here <= {*level.texts, ""} for level in named):
            labels[at] = name
    others = [at for at in range(frame.shape[1]) if at not in labels]
    numbers: Released = frame.iloc[:, others]
    if len(others) == 1 and isinstance(original, pd.Series):
        numbers = frame.iloc[:, others[0]]
    return numbers, [(name, _labels_of(frame, at)) for at, name in labels.items()]


def _labels_of(frame: pd.DataFrame, at: int) -> pd.Index[Any]:
    """Return the cells of a column as labels."""
    labels: pd.Index[Any] = pd.Index(frame.iloc[:, at], tupleize_cols=False)
    return labels


def _with_labels(numbers: Released, columns: list[tuple[str, pd.Index[Any]]]) -> Released:
    """Return numbers with columns of labels as levels of their index."""
    if not columns:
        return numbers
    index, named = (
        numbers.index,
        [
            labels.rename(None if name in UNNAMED or name.startswith("level_") else name)
            for name, labels in columns
        ],
    )
    plain = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    before = [] if plain else [index.get_level_values(at) for at in range(index.nlevels)]
    levels = [*before, *named]
    labelled = numbers.copy(deep=False)
    labelled.index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)
    return labelled


def _paired(released: list[Level], sources: list[Level]) -> dict[int, Level]:
    """Return the source of each released level, by its position, where there is one.

    Names count most, then how many of the labels are released ones, then the place.
    """
    scores = []
    for at, level in enumerate(released):
        known = set(level.texts)
        for number, source in enumerate(sources):
            labels = set(source.texts)
            share = len(labels & known) / max(len(labels), 1)
            same = level.name is not None and level.name == source.name
            nearness = (level.axis == source.axis) + (level.position == source.position) / 2
            if share > 0 and (source.axis < 2 or share == 1):
                scores.append((2 * same + share + nearness / 10, -at, -number))
    pairs: dict[int, Level] = {}
    used: set[int] = set()
    for _, at, number in sorted(scores, reverse=True):
        if -at not in pairs and -number not in used:
            pairs[-at] = sources[-number]
            used.add(-number)
    return dict(sorted(pairs.items()))


def _keys(released: list[Level], pairs: dict[int, Level], shape: tuple[int, int]) -> tuple[Integers, Mask]:
    """Return one whole number for the labels of each cell, and whether all labels are released ones."""
    keys, known = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=bool)
    for at, source in pairs.items():
        labels = pd.unique(released[at].texts)
        codes = pd.Index(labels).get_indexer(source.texts)
        keys = keys * len(labels) + source.along(codes)
        known = known & source.along(codes >= 0)
    return keys, known


class _Lookup:
    """Places of released numbers by their keys."""

    def __init__(self, keys: Integers) -> None:
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def find(self, keys: Integers) -> tuple[Integers, Integers]:
        """Return the first place of each key, and how many there are."""
        low, high = (np.searchsorted(self.keys, keys, side) for side in ("left", "right"))
        return self.order[np.minimum(low, len(self.order) - 1)], high - low


# ---------------------------------------------------------------- values


def _values(frame: Released) -> NDArray[Any]:
    """Return the cells, (R, C): as doubles where these hold them."""
    columns = [frame] if isinstance(frame, pd.Series) else [frame.iloc[:, at] for at in range(frame.shape[1])]
    if all(column.dtype.kind in "iuf" for column in columns):
        plain = [column.to_numpy(np.float64, na_value=np.nan) for column in columns]
        values = np.stack(plain, axis=-1) if plain else np.zeros((len(frame), 0))
        if not (np.abs(values) > EXACT).any():
            return values
    cells = np.empty(_shape(frame), dtype=object)
    for at, column in enumerate(columns):
        cells[:, at] = [None if pd.isna(cell) else cell for cell in column.tolist()]
    return cells


def _equal(here: NDArray[Any], there: NDArray[Any]) -> Mask:
    """Return whether numbers are the same; two nulls are."""
    return np.asarray((here == there) | (pd.isna(here) & pd.isna(there)), dtype=bool)


def _step(here: NDArray[Any], there: NDArray[Any]) -> float | None:
    """Return half of the last place that all numbers were rounded to; 0 for the same, None for others."""
    if bool(_equal(here, there).all()):
        return 0.0
    if here.dtype == object or there.dtype == object or not np.isfinite(there).any():
        return None
    largest, least = np.nanmax(np.abs(there)), -MOST_DIGITS if there.size >= FEWEST else 0
    for digits in range(MOST_DIGITS, least - 1, -1):
        half = 10.0**-digits / 2
        if half > largest:
            return None
        if bool(_equal(here, np.round(there, digits)).all()):
            return half
    return None


def _rounding(here: NDArray[Any], there: NDArray[Any]) -> Floats:
    """Return the rounding of each number, by column; MetadataError for numbers that are not released ones."""
    rounding = np.zeros(here.shape)
    null = pd.isna(here)
    half = _step(here[~null], there[~null])
    if half is not None:
        return np.full(here.shape, half)
    wrong = 0
    for column in range(here.shape[1]):
        shown = ~null[:, column]
        half = _step(here[shown, column], there[shown, column])
        if half is None:
            wrong += int((~_equal(here[shown, column], there[shown, column])).sum())
        rounding[:, column] = half or 0.0
    if wrong:
        raise MetadataError(OTHER_VALUES.format(wrong, int((~null).sum())))
    return rounding


def _whole(here: NDArray[Any], there: NDArray[Any], at: Integers) -> Integers | None:
    """Return the places of all released numbers, paired by value where labels do not tell.

    ``at``: the places that labels tell, else -1. None where these are not all of the released numbers.
    """
    if here.size != there.size or len(set(at[at >= 0])) < (at >= 0).sum():
        return None
    if _step(here[at >= 0], there[at[at >= 0]]) is None:
        return None
    free = np.setdiff1d(np.arange(there.size), at)
    cells = np.flatnonzero(at.ravel() < 0)
    try:
        cells = cells[np.argsort(here.ravel()[cells], kind="stable")]
        free = free[np.argsort(there[free], kind="stable")]
    except TypeError:  # of kinds that have no order
        return None
    if _step(here.ravel()[cells], there[free]) is None:
        return None
    places = at.ravel().copy()
    places[cells] = free
    return places.reshape(at.shape)


def _of_one_label(
    released: list[Level],
    pairs: dict[int, Level],
    keys: tuple[Integers, Integers],
    values: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[Integers, tuple[str, ...]]:
    """Return the places of numbers that have one label of each missing level, and these labels.

    Raises MetadataError where no label, or more than one, fits all numbers, or where the numbers could as
    well be sums over the missing levels: the others cancel.
    """
    (here, there), missing = values, [at for at in range(len(released)) if at not in pairs]
    size = len(there)
    labels = _cells(released, missing, size)
    tried = sorted(set(labels)) if len(set(labels)) <= MOST_TRIED and missing else []
    fits = []
    for label in tried:
        among = np.flatnonzero(np.array([each == label for each in labels]))
        first, count = _Lookup(keys[1].ravel()[among]).find(keys[0])
        if bool((count == 1).all()) and _step(here, there[among[first]]) == 0:
            fits.append((among[first], label))
    if len(fits) != 1 or here.dtype == object:
        raise MetadataError(MISSING_LABELS)
    at, label = fits[0]
    kept, numbers = np.unique(keys[0].ravel()), np.nan_to_num(np.asarray(there, np.float64).ravel())
    others = np.isin(keys[1].ravel(), kept)
    others[at.ravel()] = False
    places = np.searchsorted(kept, keys[1].ravel()[others])
    sums, sizes = (np.bincount(places, each, len(kept)) for each in (numbers[others], abs(numbers[others])))
    if bool((abs(sums) <= 1e-9 * sizes).all()):
        raise MetadataError(MISSING_LABELS)
    return at, tuple(
        text if (name := released[each].name) is None else f"{name}: {text}"
        for each, text in zip(missing, label, strict=True)
    )


def _cells(released: list[Level], levels: Sequence[int], size: int) -> list[tuple[str, ...]]:
    """Return the labels of some levels of each released number."""
    columns = max((len(level.texts) for level in released if level.axis == 1), default=1)
    at = np.arange(size)
    each = [
        released[level].texts[at // columns if released[level].axis == 0 else at % columns]
        for level in levels
    ]
    return list(zip(*each, strict=True))
