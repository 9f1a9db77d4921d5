"""Columns of one value for each unit, such as the sum of a person's purchases.

The value of a unit is computed from its own records, so that one unit more or less is one row more or less of
the result, however many records it has and whatever the function is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.checks import has_hash
from pdprivacy.core.rows.cells import (
    Read,
    category_column,
    codes,
    column_of,
    dense,
    floats,
    frame_of,
    nulls,
    whole,
)
from pdprivacy.core.rows.steps import call, own
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import DeclarationError, ParameterError, got, kind
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.types import Integers, Mask

LARGEST_SUM = 1e300
"""The largest sum of a unit that is computed in doubles."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of one value per unit.

    ``column``: the declaration of the result, within which values are clipped. ``source``: the column that
    the function reads; None for the number of records.
    """

    column: Column
    function: str
    source: Column | None


@dataclass(frozen=True, slots=True)
class RecordsOfUnits:
    """The records of one column, by unit: ``units`` counts from 0 to ``count`` - 1, each with a record."""

    values: pd.Series[Any]
    units: Integers
    count: int

    @property
    def present(self) -> Mask:
        """The records that are no null."""
        return ~nulls(self.values)

    def per_unit(self, mask: Mask) -> Integers:
        """Return how many records of each unit are selected."""
        return np.bincount(self.units[mask], minlength=self.count)

    def chosen(self, mask: Mask, keys: NDArray[Any] | None, *, last: bool) -> Integers:
        """Return the first or last selected record of each unit by a key, or in the order of the table.

        -1 where none is selected.
        """
        places = np.flatnonzero(mask)
        units = self.units[places]
        order = np.argsort(units, kind="stable") if keys is None else np.lexsort((keys[places], units))
        ordered = units[order]
        change = np.flatnonzero(ordered[1:] != ordered[:-1])
        at = np.r_[change, len(order) - 1] if last else np.r_[0, change + 1]
        rows = np.full(self.count, -1, dtype=np.int64)
        if len(order):
            rows[ordered[at]] = places[order[at]]
        return rows


# ---------------------------------------------------------------- declarations


def features_of(
    domain: Domain, named: Mapping[Hashable, Any], bounds: object, most: int
) -> tuple[tuple[Feature, ...], str]:
    """Return the columns that a call declares, and the call as text.

    ``named``: the column and the function of each, or "size". ``bounds``: of those whose values are clipped.
    ``most``: the records that a unit may have.

    Raises
    ------
    ParameterError : no pair of a column and a function, or an unknown function.
    DeclarationError : a function that does not suit its column.
    """
    ends = {} if bounds is None else bounds
    if not isinstance(ends, Mapping):
        raise ParameterError(
            f"'bounds' must map new columns to pairs (got {got(bounds)}).", "bounds={'spent': (0, 1000)}"
        )
    for name in ends:
        if name not in named:
            raise ParameterError(f"'bounds' names column {name!r}, which is no new one.")
    features = tuple(
        _clipped(_feature(domain, name, pair, most), ends.get(name)) for name, pair in named.items()
    )
    written = {name: pair if isinstance(pair, str) else tuple(pair) for name, pair in named.items()}
    return features, call("per_unit", written, bounds=dict(ends) or None)


def _feature(domain: Domain, name: Hashable, pair: Any, most: int) -> Feature:
    if isinstance(pair, str) and pair == "size":
        return Feature(Column(name, "integer", lower=1, upper=most), "size", None)
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not has_hash(pair[0]):
        raise ParameterError(
            f"column {name!r} needs a pair of a column and a function, or 'size' (got {kind(pair)}).",
            EXAMPLES["per_unit"],
        )
    source, function = own(domain[pair[0]], "per_unit"), pair[1]
    if not isinstance(function, str) or function not in FUNCTIONS:
        raise ParameterError(
            f"the function of column {name!r} must be one of {', '.join(map(repr, FUNCTIONS))} "
            f"(got {got(function)}).",
            EXAMPLES["per_unit"],
        )
    shape, _ = FUNCTIONS[function]
    return Feature(shape(name, source, most), function, source)


def _clipped(feature: Feature, ends: Any) -> Feature:
    column = feature.column
    if ends is None:
        return feature
    if column.kind not in ("integer", "float") or column.timeline is not None:
        raise DeclarationError(f"'bounds' are for numbers, and column {column.name!r} is of another kind.")
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise ParameterError(
            f"'bounds' of column {column.name!r} must be a pair (got {got(ends)}).",
            f"bounds={{{column.name!r}: (0, 1000)}}",
        )
    clipped = replace(column, lower=ends[0], upper=ends[1], categories=None, bins=None)
    if clipped.lower is None or clipped.upper is None:
        raise ParameterError(f"'bounds' of column {column.name!r} must be two numbers.")
    return replace(feature, column=clipped)


def _role(source: Column) -> Any:
    """Return the role of a number made of a column: what is sensitive stays so."""
    return "sensitive" if source.role == "sensitive" else None


def _number_of_values(name: Hashable, source: Column, most: int) -> Column:
    least = 0 if source.nullable else 1
    return Column(name, "integer", lower=least, upper=most, role=_role(source))


def _distinct(name: Hashable, source: Column, most: int) -> Column:
    _labels_known(source)
    return _number_of_values(name, source, most)


def _total(name: Hashable, source: Column, most: int) -> Column:
    _numeric(source, "sum")
    lower, upper = source.interval
    ends = [end * times for end in (lower, upper) for times in (1, most)] + [0] * source.nullable
    least, greatest = min(ends), max(ends)
    if source.kind in ("integer", "boolean"):
        if Interval(int(least), int(greatest)).within(INT64):
            return Column(name, "integer", lower=int(least), upper=int(greatest), role=_role(source))
    elif max(-least, greatest) <= LARGEST_SUM:
        return Column(name, "float", lower=float(least), upper=float(greatest), role=_role(source))
    raise DeclarationError(
        f"the sum of {most:,} numbers of column {source.name!r} may be too large.",
        f"private.clip(upper={{{source.name!r}: 1000}}), which leaves smaller numbers.",
    )


def _mean(name: Hashable, source: Column, most: int) -> Column:
    _numeric(source, "mean")
    _total(name, source, most)
    lower, upper = source.bounds("mean")
    return Column(name, "float", source.nullable, lower=lower, upper=upper, role=_role(source))


def _truth(name: Hashable, source: Column, _: int) -> Column:
    if source.kind != "boolean":
        raise DeclarationError(
            f"'any' and 'all' are for truth values, and column {source.name!r} is of kind {source.noun!r}.",
            f"'max' or 'nunique' of {source.name!r}; or a condition on it, by assign, first.",
        )
    return Column(name, "boolean", role=source.role)


def _extreme(name: Hashable, source: Column, most: int) -> Column:
    if source.kind == "category" and not source.ordered:
        raise DeclarationError(
            f"'min' and 'max' need an order, and the labels of column {source.name!r} have none.",
            f"'first', 'last' or 'nunique' of {source.name!r}",
        )
    if source.kind != "category":
        source.bounds("min")
    return _same(name, source, most)


def _same(name: Hashable, source: Column, _: int) -> Column:
    _labels_known(source)
    return replace(source, name=name)


def _numeric(source: Column, function: str) -> None:
    if source.kind == "category" or source.timeline is not None:
        raise DeclarationError(
            f"{function!r} is for numbers, and column {source.name!r} is of kind {source.noun!r}.",
            f"'nunique' or 'first' of {source.name!r}",
        )
    source.bounds(function)


def _labels_known(source: Column) -> None:
    if source.kind == "category" and source.categories is None:
        source.labels("per_unit")


# ---------------------------------------------------------------- values


def values_of(
    features: Sequence[Feature], read: Read | pd.DataFrame, units: Integers
) -> tuple[pd.DataFrame, Integers]:
    """Return the columns, one row for each unit that has a record, and the unit of each row."""
    known, places = np.unique(units, return_inverse=True)
    index = pd.RangeIndex(len(known))
    columns: dict[Hashable, pd.Series[Any]] = {}
    for feature in features:
        name, source = feature.column.name, feature.source
        if source is None:
            sizes = np.bincount(places, minlength=len(known))
            columns[name] = column_of(_within(sizes, feature.column), None, feature.column, index)
            continue
        values = dense(read[source.name]).reset_index(drop=True)
        _, compute = FUNCTIONS[feature.function]
        columns[name] = compute(feature, RecordsOfUnits(values, places, len(known)), index)
    return frame_of(columns, index), known


def _within(array: NDArray[Any], column: Column) -> NDArray[Any]:
    within: NDArray[Any] = np.clip(array, column.lower, column.upper)
    return within


Made: TypeAlias = Callable[[Feature, RecordsOfUnits, "pd.Index[Any]"], "pd.Series[Any]"]


def _made_count(feature: Feature, records: RecordsOfUnits, index: pd.Index[Any]) -> pd.Series[Any]:
    counts = records.per_unit(records.present)
    return column_of(_within(counts, feature.column), None, feature.column, index)


def _made_distinct(feature: Feature, records: RecordsOfUnits, index: pd.Index[Any]) -> pd.Series[Any]:
    source = _source(feature)
    keys, present = _keys(records, source)
    pairs = pd.DataFrame({"unit": records.units[present], "key": keys[present]}).drop_duplicates()
    counts = np.bincount(pairs["unit"].to_numpy(), minlength=records.count)
    return column_of(_within(counts, feature.column), None, feature.column, index)


def _made_sum(feature: Feature, records: RecordsOfUnits, index: pd.Index[Any]) -> pd.Series[Any]:
    totals = _totals(_source(feature), records)
    return column_of(_within(totals, feature.column), None, feature.column, index)


def _made_mean(feature: Feature, records: RecordsOfUnits, index: pd.Index[Any]) -> pd.Series[Any]:
    source, counts = _source(feature), records.per_unit(records.present)
    means = _totals(source, records) / np.maximum(counts, 1)
    lower, upper = map(float, source.interval)
    inside = np.clip(means, lower, upper)  # a quotient is rounded
    return column_of(_within(inside, feature.column), counts == 0, feature.column, index)


def _made_truth(feature: Feature, records: RecordsOfUnits, index: pd.Index[Any]) -> pd.Series[Any]:
    source, every = _source(feature), feature.function == "all"
    present = records.present
    true = _numbers(records.values, source).astype(bool)
    counts = records.per_unit(present & (~true if every else true))
    return column_of(counts == 0 if every else counts > 0, None, feature.column, index)


def _made_choice(feature: Feature, records: RecordsOfUnits, index: pd.Index[Any]) -> pd.Series[Any]:
    keys, present = _keys(records, _source(feature))
    by_value = feature.function in ("min", "max")
    last = feature.function in ("last", "max")
    rows = records.chosen(present, keys if by_value else None, last=last)
    return looked_up(records.values, feature.column, rows, index)


def looked_up(values: pd.Series[Any], column: Column, rows: Integers, index: pd.Index[Any]) -> pd.Series[Any]:
    """Return the cells at these places as a column of this declaration; null for -1.

    >>> column = Column("n", "integer", True, lower=0, upper=9)
    >>> looked_up(pd.Series([5, 7]), column, np.array([1, -1, 0]), pd.RangeIndex(3)).tolist()
    [7, <NA>, 5]
    """
    values, missing = dense(values), rows < 0
    if not len(values):  # of no record: any place is as good
        values, rows = pd.Series([None], dtype=object), np.zeros_like(rows)
    if column.kind == "category" and column.categories is None:
        cells = np.array([*values, None], dtype=object)
        return pd.Series(cells[np.where(missing, len(values), rows)], index=index, dtype=object)
    if column.kind == "category":
        places = codes(values, column.categories or ())
        return category_column(
            np.where(missing, -1, places[rows]), column.categories or (), index, ordered=column.ordered
        )
    null = missing | nulls(values)[rows]
    numbers = _numbers(values, column)[rows]
    if column.kind == "boolean":
        numbers = numbers.astype(bool)
    elif column.lower is not None and column.upper is not None:
        numbers = _within(numbers, column)
    return column_of(numbers, null if null.any() else None, column, index)


def _source(feature: Feature) -> Column:
    assert feature.source is not None
    return feature.source


def _keys(records: RecordsOfUnits, source: Column) -> tuple[NDArray[Any], Mask]:
    """Return numbers by which cells are compared, and which cells are no null and, of labels, declared.

    The number of a label is its place in the declaration.
    """
    if source.kind != "category":
        return _numbers(records.values, source), records.present
    places = codes(records.values, source.categories or ())
    return places, places >= 0


def _numbers(values: pd.Series[Any], column: Column) -> NDArray[Any]:
    """Return the numbers of a column, anything where they are null."""
    if column.kind == "float":
        return floats(values, column)
    return whole(values, column)[0]


def _totals(source: Column, records: RecordsOfUnits) -> NDArray[Any]:
    """Return the sum of the records of each unit, exact for whole numbers."""
    present = records.present
    numbers, units = _numbers(records.values, source)[present], records.units[present]
    if source.kind == "float":
        # one after the other in the order of the table, so that no other unit's records change a rounding
        return np.bincount(units, weights=numbers, minlength=records.count)
    totals = np.zeros(records.count, dtype=np.int64)
    np.add.at(totals, units, numbers)
    return totals


FUNCTIONS: Mapping[str, tuple[Callable[[Hashable, Column, int], Column], Made]] = MappingProxyType(
    {
        "sum": (_total, _made_sum),
        "mean": (_mean, _made_mean),
        "min": (_extreme, _made_choice),
        "max": (_extreme, _made_choice),
        "first": (_same, _made_choice),
        "last": (_same, _made_choice),
        "count": (_number_of_values, _made_count),
        "nunique": (_distinct, _made_distinct),
        "any": (_truth, _made_truth),
        "all": (_truth, _made_truth),
    }
)
"""The functions of a unit's records: from a new name, the column and the most records to the declaration,
and what makes the values."""
