"""Declared columns as expressions of any engine: bounded numbers on their grid, and cells."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.core.engines.blocks import LARGEST, rounds_down
from pdprivacy.core.engines.other.engines import SparkTimes, narwhals
from pdprivacy.core.statistics import Quantity
from pdprivacy.declaration.cell_types import DAYS, DURATIONS, NUMBERS, TEXT, TIMES, TRUTH, ZONED
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import InvalidDataError, ParameterError
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats, Integers

FEW_EDGES = 8
"""The largest number of bins at which a number is compared with every edge."""


@dataclass(frozen=True, slots=True)
class ClampedNumber:
    """The expressions that read a number within bounds.

    ``name``: the column. ``source``: it as it is selected. ``conditions``: on that, under which a record has
    a number, to be asked one after the other. ``value``: the number clamped, a double. ``whole``: whether
    ``source`` is it clamped, as a whole number.
    """

    name: Any
    source: Any
    conditions: tuple[Any, ...]
    value: Any
    whole: bool


@dataclass(frozen=True, slots=True)
class BoundedNumber:
    """The expressions that read a quantity.

    ``name``, ``source``, ``conditions``: as those of a `ClampedNumber`. ``steps``: it clamped, centred and on
    the grid, a double. ``whole``: whether ``source`` is it clamped, as a whole number that the grid does not
    round.
    """

    name: Any
    source: Any
    conditions: tuple[Any, ...]
    steps: Any
    whole: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredCells:
    """The expressions that read a column as its declared cells.

    ``name``: the column. ``source``: it as it is selected. ``conditions``: on that, under which a record has
    a cell. ``key``: what records are grouped by. ``late``: whether the conditions can be asked of the keys.
    ``decode``: the function from keys to their cells, -1 where a key has none.
    """

    name: Any
    source: Any
    conditions: tuple[Any, ...]
    key: Any
    late: bool
    decode: Callable[[Any], Integers]


def type_name(dtype: Any) -> str | None:
    """Return the name of the type of cells, as `cell_types` names it; None if it is unknown."""
    library = narwhals()
    if dtype == library.Unknown:
        return None
    if isinstance(dtype, SparkTimes):
        return {"date": DAYS, "clock": TIMES, "instant": ZONED}[dtype.kind]
    if dtype == library.Datetime:
        return TIMES if dtype.time_zone is None else ZONED
    if dtype.is_numeric():
        return NUMBERS
    named = {
        library.Boolean: TRUTH,
        library.Date: DAYS,
        library.Duration: DURATIONS,
        library.Binary: "bytes",
        library.Time: "time",
        **dict.fromkeys((library.String, library.Categorical, library.Enum), TEXT),
    }
    return next((name for kind, name in named.items() if dtype == kind), f"{type(dtype).__name__} values")


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A declared column as a frame stores it, in a column of this type, and the expressions that read it.

    ``alias``: the name that it is selected as. ``cases``: whether numbers are clamped by cases, which is
    faster where the least of two is a function.
    """

    column: Column
    dtype: Any
    alias: str
    cases: bool = False

    def number(self, quantity: Quantity) -> BoundedNumber:
        """Return how a quantity of the column is read."""
        if quantity.label is not None:
            return self._indicator(quantity, quantity.label[0])
        number = self.clamped(quantity.lower, quantity.upper)
        # the same additions as `Quantity.anchored`: doubles round to the grid by themselves
        value = number.value - quantity.before if quantity.before else number.value
        steps = (value + quantity.shift) - quantity.zero
        whole = number.whole and quantity.grid <= 1.0
        return BoundedNumber(self.column.name, number.source, number.conditions, steps, whole)

    def clamped(self, lower: float, upper: float) -> ClampedNumber:
        """Return how the column is read as numbers within these bounds."""
        library = narwhals()
        source, value = self._doubles(), self._within(lower, upper)
        whole = (
            self.dtype.is_integer()
            and lower.is_integer()
            and upper.is_integer()
            and max(-lower, upper) <= EXACT
        )
        if whole:
            # clamped once, as integers
            source = self._within(int(lower), int(upper), self._integers())
            value = self._selected.cast(library.Float64)
        conditions = [~self._selected.is_null()]
        if self.dtype.is_float() or self.dtype == library.Unknown:
            conditions.append(~self._selected.is_nan())
        return ClampedNumber(self.column.name, source, tuple(conditions), value, whole)

    def _indicator(self, quantity: Quantity, label: Any) -> BoundedNumber:
        unit, zero = (((value - quantity.before) + quantity.shift) - quantity.zero for value in (1.0, 0.0))
        position = self.column.labels("proportion").index(label)
        coded = self._cell_key(self.column.bins)
        if coded.labels is None:
            holds = coded.key == position
        else:
            holds = _is_one_of(
                self._selected, [key for key, cell in coded.labels.items() if cell == position]
            )
        steps = narwhals().when(holds).then(unit).otherwise(zero)
        return BoundedNumber(self.column.name, coded.source, coded.conditions(nullable=False), steps)

    def cells(self, edges: Sequence[float] | None, count: int) -> DeclaredCells:
        """Return how ``count`` cells are read, and the one for nulls: bins between ``edges``.

        Without edges they are the labels, or the integers between the bounds.
        """
        coded, nullable = self._cell_key(edges), self.column.nullable
        key, labels, null = coded.key, coded.labels, count if nullable else -1
        if labels is None and nullable:
            key = narwhals().when(~coded.null).then(key).otherwise(count)

        def decode(keys: Any) -> Integers:
            if labels is None:
                return np.asarray(keys.to_numpy(), dtype=np.float64).astype(np.int64)
            cells = (null if pd.isna(key) else labels.get(_instant(key), -1) for key in keys.to_list())
            return np.fromiter(cells, dtype=np.int64, count=len(keys))

        conditions = coded.conditions(nullable=nullable)
        return DeclaredCells(self.column.name, coded.source, conditions, key, labels is not None, decode)

    def raw_cells(self) -> tuple[Any, Any]:
        """Return the cells of a column of private labels, and whether a selected cell is not null."""
        library = narwhals()
        if self.column.kind == "category":
            source, kind, _ = self._label_key()
        elif self.dtype.is_integer():
            source, kind = self._integers(), library.Int64
        elif self.dtype == library.Decimal:  # exactly: large whole numbers have no double of their own
            source, kind = library.col(self.column.name), library.Decimal
        else:
            source, kind = self._doubles() + 0.0, library.Float64
        return source, ~_is_null(self._selected, kind)

    @property
    def _selected(self) -> Any:
        """The column once it is selected."""
        return narwhals().col(self.alias)

    # ------------------------------------------------------------ numbers

    def _doubles(self) -> Any:
        """Return the column as doubles, exact within its bounds; refuse a column without numbers."""
        library, column, dtype = narwhals(), self.column, self.dtype
        if not (dtype.is_numeric() or dtype == library.Boolean or dtype == library.Unknown):
            raise InvalidDataError(
                f"column {column.name!r} is declared as {column.kind} and holds {type(dtype).__name__}, "
                "which is not numeric."
            )
        read = library.col(column.name)
        if dtype == library.Float64:
            return read
        if dtype == library.Decimal:
            # by their digits: Arrow's own cast rounds twice
            return read.cast(library.String).cast(library.Float64)
        if dtype not in (library.Int64, library.UInt64, library.Int128, library.UInt128):
            return read.cast(library.Float64)
        lower, upper = column.bounds("bins")
        if max(-lower, upper) <= EXACT:
            # Arrow makes no double of an integer that has none
            return self._integers().clip(-EXACT, EXACT).cast(library.Float64)
        if dtype in (library.Int128, library.UInt128):
            if max(-lower, upper) > 2**63:
                raise ParameterError(
                    f"Column {column.name!r} holds integers of 128 bits; "
                    "its bounds must be those of 64 bits.",
                    "convert it to a column of floats",
                )
            read, dtype = self._integers(), library.Int64
        if dtype == library.UInt64:
            # by their digits: Arrow computes with no integer beyond the signed ones
            return read.cast(library.String).cast(library.Float64)
        # in two halves that are doubles: their sum is the nearest double of the whole
        half = library.lit(2**32, library.Int64)
        upper_half = read // half
        lower_half = read - upper_half * half
        return upper_half.cast(library.Float64) * 2.0**32 + lower_half.cast(library.Float64)

    def _integers(self, beyond: int | None = None) -> Any:
        """The column as integers of 64 bits; larger ones as ``beyond``, or as the largest of their sign."""
        library, dtype = narwhals(), self.dtype
        read = library.col(self.column.name)
        if dtype in (library.UInt64, library.UInt128):
            # a null is not larger, and stays one
            largest = library.lit(LARGEST, dtype)
            other = largest if beyond is None else library.lit(beyond, dtype)
            read = library.when(read > largest).then(other).otherwise(read)
        elif dtype == library.Int128:
            within = read.clip(-LARGEST - 1, LARGEST)
            read = within if beyond is None else library.when(read == within).then(within).otherwise(beyond)
        return read if dtype == library.Int64 else read.cast(library.Int64)

    def _within(self, lower: float, upper: float, read: Any = None) -> Any:
        """The selected column within bounds, or another expression."""
        value = self._selected if read is None else read
        if not self.cases:
            return value.clip(lower, upper)
        library = narwhals()
        above = library.when(value > upper).then(upper).otherwise(value)
        return library.when(value < lower).then(lower).otherwise(above)

    # ------------------------------------------------------------ cells

    def _cell_key(self, edges: Sequence[float] | None) -> _CellKey:
        """The column as bins between edges; or as its labels, or the integers between its bounds."""
        if edges is not None:
            return self._bin_key([float(edge) for edge in edges])
        if self.column.kind == "integer" and self.column.categories is None:
            return self._integer_key()
        source, kind, labels = self._label_key()
        return _CellKey(
            source,
            _is_null(self._selected, kind),
            _is_one_of(self._selected, list(labels)),
            self._selected,
            labels,
        )

    def _integer_key(self) -> _CellKey:
        """The integers between the bounds, counted from the lower one."""
        library, column = narwhals(), self.column
        assert column.lower is not None
        assert column.upper is not None
        lower, upper = int(column.lower), int(column.upper)
        if self.dtype.is_integer():
            key = self._within(lower, upper) - lower
            return _CellKey(self._integers(), _is_null(self._selected, library.Int64), None, key)
        key = self._within(float(lower), float(upper)).floor() - float(lower)
        return _CellKey(self._doubles(), _is_null(self._selected, library.Float64), None, key)

    def _bin_key(self, edges: Sequence[float]) -> _CellKey:
        """The bins between edges."""
        source = self._doubles()
        lower, upper = self.column.bounds("bins")
        value = self._within(lower, upper)
        if rounds_down(self.column):
            value = value.floor()
        known = None
        if lower < edges[0] or upper > edges[-1]:
            known = (value >= edges[0]) & (value <= edges[-1])
        return _CellKey(source, _is_null(self._selected, narwhals().Float64), known, _bin(value, edges))

    def _label_key(self) -> tuple[Any, Any, dict[Any, int]]:
        """The column as its labels are compared, the type of that, and each label's cell.

        A label of another type than the column's is in no record.
        """
        library, column, dtype = narwhals(), self.column, self.dtype
        read = library.col(column.name)
        labels = dict(zip(column.categories or (), range(len(column.categories or ())), strict=True))
        if isinstance(dtype, SparkTimes):
            _refuse_finer(column, labels)
            source, kind = dtype.key(read, library)
            times = {dtype.label(label): cell for label, cell in labels.items()}
            return source, kind, {label: cell for label, cell in times.items() if label is not None}
        if dtype in (library.String, library.Categorical, library.Enum, library.Unknown):
            texts = {label: cell for label, cell in labels.items() if isinstance(label, str)}
            return (read if dtype == library.String else read.cast(library.String)), library.String, texts
        if dtype == library.Date:
            return read, dtype, {day: cell for day, cell in labels.items() if type(day) is datetime.date}
        if dtype == library.Datetime:
            return read, dtype, _time_labels(column, labels, dtype.time_zone is not None)
        if not (dtype.is_numeric() or dtype == library.Boolean):
            raise ParameterError(
                f"column {column.name!r} holds {type(dtype).__name__}, which cannot be read as labels here."
            )
        numbers = {label: cell for label, cell in labels.items() if isinstance(label, int | float)}
        if dtype.is_integer():
            return self._integer_label_key(numbers)
        exact = {float(label): cell for label, cell in numbers.items() if float(label) == label}
        # Spark and DuckDB look many labels up by their bits: no zero is negative
        source = self._doubles() + 0.0
        return source, library.Float64 if dtype.is_float() else dtype, exact

    def _integer_label_key(self, labels: dict[Any, int]) -> tuple[Any, Any, dict[Any, int]]:
        whole = {
            int(label): cell for label, cell in labels.items() if math.isfinite(label) and label == int(label)
        }
        in_range = {label: cell for label, cell in whole.items() if -LARGEST - 1 <= label <= LARGEST}
        # numbers beyond 64 bits are read as a number that is no label
        other = next(number for number in itertools.count() if number not in in_range)
        return self._integers(other), narwhals().Int64, in_range


@dataclass(frozen=True, slots=True)
class _CellKey:
    """A column as it is selected; whether it is null, and whether it has a cell (None: always); and its key.

    ``labels``: the cell of each key; None where the key is the cell.
    """

    source: Any
    null: Any
    known: Any
    key: Any
    labels: dict[Any, int] | None = None

    def conditions(self, *, nullable: bool) -> tuple[Any, ...]:
        """Conditions for a cell; a null has one where nulls are declared."""
        if not nullable:
            return (~self.null,) if self.known is None else (~self.null, self.known)
        return () if self.known is None else (self.null | (~self.null & self.known),)


def _is_null(at: Any, dtype: Any) -> Any:
    """Return whether a cell is null: missing, or not a number."""
    return at.is_null() | at.is_nan() if dtype.is_float() else at.is_null()


def _is_one_of(at: Any, labels: list[Any]) -> Any:
    # no label has the type of the column, so no cell holds one
    return at.is_in(labels) if labels else at.is_null() & ~at.is_null()


def _time_labels(column: Column, labels: dict[Any, int], zoned: bool) -> dict[Any, int]:
    """Labels that are instants, or times without a zone: a column holds one kind only."""
    _refuse_finer(column, labels)
    return {
        _instant(label.to_pydatetime() if isinstance(label, pd.Timestamp) else label): cell
        for label, cell in labels.items()
        if isinstance(label, datetime.datetime) and (label.tzinfo is not None) == zoned
    }


def _instant(key: Any) -> Any:
    """A key as it is looked up: of two zones, Python calls no times equal in an hour that comes twice."""
    zoned = isinstance(key, datetime.datetime) and key.tzinfo is not None
    return key.astimezone(datetime.UTC) if zoned else key


def _refuse_finer(column: Column, labels: dict[Any, int]) -> None:
    if any(isinstance(label, datetime.datetime) and getattr(label, "nanosecond", 0) for label in labels):
        raise ParameterError(
            f"A label of column {column.name!r} is finer than a microsecond, which cannot be read here."
        )


def _bin(value: Any, edges: Sequence[float]) -> Any:
    """The half-open bin of a number within the edges, the last one closed."""
    library = narwhals()
    count = len(edges) - 1
    if count == 1:
        return value * 0.0
    even = _even_edges(np.asarray(edges, dtype=np.float64)) if count > FEW_EDGES else None
    if even is None:
        # groups of integers are found faster than those of doubles
        reached = [(value >= edge).cast(library.Int16) for edge in edges[1:-1]]
        return sum(reached[1:], reached[0])
    first, times, by, scale = even
    near = ((value - edges[0]) * scale + 0.5).floor()
    # divided by a column: Polars would multiply by the inverse of a constant
    below = (value < (near * times + first) / (near * 0.0 + by)).cast(library.Float64)
    return (near - below).clip(0.0, count - 1.0)


def _even_edges(edges: Floats) -> tuple[float, float, float, float] | None:
    """Arithmetic that gives every edge to the last bit, and a scale that finds the one next to a number.

    The edge at place j is (j times + first) / by; the nearest place to an edge is its own, and since the
    arithmetic is monotone, that of a number between two edges is the place of one of them.
    """
    count = len(edges) - 1
    positions = np.arange(count + 1, dtype=np.float64)
    with np.errstate(all="ignore"):
        width = (edges[-1] - edges[0]) / count
        scale = np.float64(1.0) / width
        if not np.array_equal(np.floor((edges - edges[0]) * scale + 0.5), positions):
            return None
        for first, times, by in (
            (edges[0], width, 1.0),
            (edges[0], edges[1] - edges[0], 1.0),
            *((np.rint(edges[0] * by), np.rint(width * by), by) for by in (10.0, 100.0, 1000.0)),
        ):
            if np.array_equal((positions * times + first) / by, edges):
                return float(first), float(times), float(by), float(scale)
    return None
