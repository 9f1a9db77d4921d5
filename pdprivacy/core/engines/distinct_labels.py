"""Distinct labels of columns whose labels are private, counted or as a code per record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy.core.engines.unit_codes import lowest_of_each
from pdprivacy.core.rows.raw_labels import counts_of_cells, label_codes, label_of, labels_of
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Integers, Words

LabelCounts: TypeAlias = dict[tuple[Any, ...], int]
"""The number of records per combination of labels; of one column, the labels are tuples of one."""


class ColumnsOfPandas(Protocol):
    """The columns of a pandas frame by name."""

    def __getitem__(self, name: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class LabelsOfUnits:
    """The records that have a label, with their units.

    ``codes``: the label of each record, a position in ``labels``. ``units``: its unit.
    """

    codes: Integers
    labels: Sequence[tuple[Any, ...]]
    units: Integers

    @classmethod
    def of(cls, frame: ColumnsOfPandas, columns: Sequence[Column], units: Integers) -> LabelsOfUnits:
        """Read the labels of a frame, whose records have these units."""
        codes, labels = codes_of_labels(frame, columns)
        return cls(codes[codes >= 0], labels, units[codes >= 0])

    def counts(self, keys: Words) -> LabelCounts:
        """Return the units per label, with the label of that record of a unit that has the lowest key."""
        chosen = lowest_of_each(self.units, keys, 1) if len(keys) else np.zeros(0, dtype=np.int64)
        times = np.bincount(self.codes[chosen], minlength=len(self.labels)).tolist()
        return {label: count for label, count in zip(self.labels, times, strict=True) if count}


def count_labels(frame: ColumnsOfPandas, columns: Sequence[Column]) -> LabelCounts:
    """Return the records per combination of labels, without those that have no label in a column."""
    if len(columns) == 1:
        (column,) = columns
        cells, times = counts_of_cells(frame[column.name], column)
        labels = labels_of(cells, column)
        if labels is cells and all(times):  # distinct cells are distinct labels
            return dict(zip(zip(labels, strict=True), times, strict=True))
        return merged_counts(zip(zip(labels, strict=True), times, strict=True), columns)
    codes, keys = codes_of_labels(frame, columns)
    counts = np.bincount(codes[codes >= 0], minlength=len(keys))
    return dict(zip(keys, counts.tolist(), strict=True))


def merged_counts(pairs: Iterable[tuple[Sequence[Any], int]], columns: Sequence[Column]) -> LabelCounts:
    """Return the counts of labels, summed over the cells that have the same label."""
    counts: LabelCounts = {}
    for cells, times in pairs:
        key = tuple(map(label_of, cells, columns))
        if times and None not in key:
            counts[key] = counts.get(key, 0) + times
    return counts


def codes_of_labels(
    frame: ColumnsOfPandas, columns: Sequence[Column]
) -> tuple[Integers, list[tuple[Any, ...]]]:
    """Return the combination of labels of each record as a position in a list, -1 for none; and the list."""
    codes, keys = _first(frame[columns[0].name], columns[0])
    for column in columns[1:]:
        added, labels = label_codes(frame[column.name], column)
        joined = np.where((codes < 0) | (added < 0), -1, codes * max(len(labels), 1) + added)
        codes, uniques = pd.factorize(np.where(joined < 0, np.int64(-1), joined))
        keys = [
            () if pair < 0 else (*keys[pair // len(labels)], labels[pair % len(labels)])
            for pair in uniques.tolist()
        ]
        codes, keys = _without_none(np.asarray(codes, dtype=np.int64), keys)
    return codes, keys


def _first(values: pd.Series[Any], column: Column) -> tuple[Integers, list[tuple[Any, ...]]]:
    codes, labels = label_codes(values, column)
    return codes, [(label,) for label in labels]


def _without_none(codes: Integers, keys: list[tuple[Any, ...]]) -> tuple[Integers, list[tuple[Any, ...]]]:
    """Return codes and keys without the empty key, which stands for records without a label."""
    kept = [key for key in keys if key]
    position = {key: code for code, key in enumerate(kept)}
    table = np.array([position.get(key, -1) for key in keys] or [-1], dtype=np.int64)
    return (table[codes] if len(codes) else codes), kept
