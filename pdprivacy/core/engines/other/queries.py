"""Reads as queries: values that say which columns are read, what is computed of them, and what the answer is.

What the sensitivities rest on holds here as in `pdprivacy.core.engines.PandasEngine`:

- every number is clamped to its declared bounds and put on the grid of its quantity by additions of
  doubles, which every engine here makes as the processor does; a null is left out, never imputed;
- sums are sums of doubles that are whole multiples of a power of two, cut in two parts where they are
  many, so that every partial sum stays below 2**53 of them: neither rounding nor the order can show;
- only declared cells are counted, and those without a record are filled in afterwards.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from pdprivacy.core.engines.distinct_labels import LabelCounts, merged_counts
from pdprivacy.core.engines.other.column_expressions import (
    BoundedNumber,
    ClampedNumber,
    DeclaredCells,
    StoredColumn,
)
from pdprivacy.core.engines.other.engines import is_field_name, narwhals, run_guarded
from pdprivacy.core.engines.pandas_engine import SortedRanks, sorted_ranks
from pdprivacy.core.statistics import GroupedSums, Quantity, RankGrid, Read
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import EngineError, InvalidDataError, ParameterError
from pdprivacy.exact import EXACT
from pdprivacy.types import Floats, Integers

R = TypeVar("R")

PANDAS_2 = pd.__version__.startswith("2.")

MANY_ROWS = 2**33
"""The largest number of rows of a frame whose number of rows is not known in advance."""


ODD = 3.0**25
"""A number whose product with others has few last bits that are 0."""


@dataclass(frozen=True, slots=True)
class Query(Generic[R]):
    """A computation on a frame, or on each part of it, and the answer made of its results.

    Attributes
    ----------
    what : is computed, for errors.
    names : of the columns that are read.
    plan : from a frame of narwhals to another one, lazy where the frame is.
    answer : from the computed results, one for each part of the frame, to the answer; of no part, that of no
        record.
    """

    what: str
    names: tuple[Any, ...]
    plan: Callable[[Any], Any]
    answer: Callable[[list[Any]], R]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The declared cells of some columns, by which records are grouped; of no columns, one group of all.

    ``early``: the columns whose conditions are asked of each record, not of each group.
    """

    engine: str
    cells: Sequence[DeclaredCells]
    shape: Sequence[int]
    early: Sequence[DeclaredCells]

    @property
    def keys(self) -> list[str]:
        """The names of the keys."""
        return [f"k{index}" for index in range(len(self.cells))]

    def read(
        self,
        frame: Any,
        sources: Mapping[str, Any],
        conditions: Sequence[Any] = (),
        values: Mapping[str, Any] | None = None,
    ) -> Any:
        """The keys of the records that meet all conditions, with values: by default, the sources."""
        columns = dict(zip(self.keys, self.cells, strict=True))
        frame = frame.select(**{key: cells.source for key, cells in columns.items()}, **sources)
        for condition in (*conditions, *(each for cells in self.early for each in cells.conditions)):
            frame = frame.filter(condition)
        if values is None and not self.early:
            return frame  # the keys are their sources
        selected = {name: narwhals().col(name) for name in sources} if values is None else values
        return frame.select(**{key: cells.key for key, cells in columns.items()}, **selected)

    def aggregated(self, frame: Any, aggregates: Mapping[str, Any]) -> Any:
        """The aggregates of each group."""
        return frame.group_by(*self.keys).agg(**aggregates) if self.keys else frame.select(**aggregates)

    def totals(self, results: Sequence[Any], numbers: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Whole numbers of each group, which the functions give of a result, summed up per cell.

        The first are numbers of records, of 64 bits; the others are integers of Python.
        """
        kinds = [np.int64, *[object] * (len(numbers) - 1)]
        totals = [np.zeros(math.prod(self.shape), dtype=kind) for kind in kinds]
        for result in results:
            positions = self.places(result)
            declared = positions >= 0
            for total, function in zip(totals, numbers, strict=True):
                np.add.at(total, positions[declared], function(result)[declared].astype(total.dtype))
        return totals

    def places(self, result: Any) -> Integers:
        """The cell of each group, -1 where it has none."""

        def read_codes() -> Integers:
            positions = np.zeros(len(result), dtype=np.int64)
            for key, cells, radix in zip(self.keys, self.cells, self.shape, strict=True):
                codes = cells.decode(result[key])
                positions = np.where((positions < 0) | (codes < 0), -1, positions * radix + codes)
            return positions

        # Python may be unable to hold a label, and the error would show which
        return run_guarded("the cells of its groups", self.engine, read_codes)


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a sum: whole multiples of ``unit``, at most ``reach`` of them in a record.

    ``cut``: it is summed in two parts, multiples of so many units and the rest; 0: as it is.
    """

    name: str
    expression: Any
    unit: float
    cut: int

    @property
    def parts(self) -> dict[str, int]:
        """The columns that are summed, and how many units one of each counts."""
        return {f"c_{self.name}": self.cut, f"f_{self.name}": 1} if self.cut else {self.name: 1}

    def total(self, result: Any, engine: str) -> Any:
        """The sum of each group, in units."""
        rows = _counts(result)
        parts = (
            _units(result[part], rows, self.unit * times, engine).astype(object) * times
            for part, times in self.parts.items()
        )
        return sum(parts, np.zeros(len(rows), dtype=object))


def _split(frame: Any, keys: Sequence[str], terms: Sequence[_Term]) -> Any:
    """The terms of each record, in two parts where they are cut."""
    library = narwhals()
    frame = frame.select(*keys, **{term.name: term.expression for term in terms})
    cut = [term for term in terms if term.cut]
    if not cut:
        return frame
    anchors = {term.name: 1.5 * 2.0**52 * term.unit * term.cut for term in cut}
    coarse = {f"c_{name}": (library.col(name) + anchor) - anchor for name, anchor in anchors.items()}
    fine = {f"f_{name}": library.col(name) - library.col(f"c_{name}") for name in anchors}
    whole = [term.name for term in terms if not term.cut]
    return frame.with_columns(**coarse).select(*keys, *whole, *coarse, **fine)


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries of reads: the methods of an engine, which return queries instead of answers.

    Parameters
    ----------
    name : of the engine that holds the frame, for errors.
    engine : that computes the queries.
    schema : the types of the columns.
    most : how many rows a plan is given; None where that is not known.
    """

    name: str
    engine: str
    schema: Any
    most: int | None

    def of(self, read: Read) -> Query[Any] | None:
        """Return the query of a read; None of one that takes several, or that other engines do not answer."""
        method = getattr(self, read.name, None)
        return None if method is None else method(*read.args, **dict(read.options))

    def type_of(self, column: Column) -> Any:
        """Return the type of a column; InvalidDataError or ParameterError where it cannot be read."""
        if column.name not in self.schema:
            raise InvalidDataError(f"column {column.name!r} is declared and not in the frame.")
        if self.engine == "Spark" and is_field_name(column.name):
            raise ParameterError(
                f"Spark reads the name {column.name!r} as a field of another column.",
                "rename it by frame.withColumnRenamed(...), to a name without dots and backticks",
            )
        return self.schema[column.name]

    def column(self, column: Column, alias: str) -> StoredColumn:
        """Return how a column is read, selected as ``alias``."""
        return StoredColumn(column, self.type_of(column), alias, cases=self.engine == "DuckDB")

    def rows(self) -> Query[int]:
        """Return the query of the number of rows."""
        library = narwhals()
        names = tuple(self.schema.names()[:1])
        return self._records("the number of rows", names, lambda frame: frame.select(n=library.len()))

    def present(self, column: Column) -> Query[int]:
        """Return the query of the records without null in ``column``."""
        library, at = narwhals(), narwhals().col("c")
        dtype = self.type_of(column)

        def plan(frame: Any) -> Any:
            known = frame.select(c=library.col(column.name)).filter(~at.is_null())
            return (known.filter(~at.is_nan()) if dtype.is_float() else known).select(n=library.len())

        return self._records("the records that are present", (column.name,), plan)

    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> Query[GroupedSums]:
        """Return the query of the records complete in all ``quantities``, per declared group of ``keys``."""
        return self._sums(quantities, self._groups(keys, method), products=products)

    def grouped_ranks(self, grid: RankGrid, keys: Sequence[Column], method: str) -> Query[list[SortedRanks]]:
        """Return the query of the records per group and number: as many numbers as records, at most."""
        library, groups = narwhals(), self._groups(keys, method)
        number = self.column(grid.column, "q0").clamped(grid.lower, grid.upper)

        def plan(frame: Any) -> Any:
            read = groups.read(frame, {"q0": number.source}, number.conditions, {"at": number.value})
            read, keys = self.keyed_by_value(read, grid)
            return read.group_by(*groups.keys, *keys).agg(n=library.len())

        def answer(results: list[Any]) -> list[SortedRanks]:
            parts: list[tuple[Integers, ...]] = [(np.zeros(0, np.int64),) * 3]
            for result in results:
                cells, steps = groups.places(result), steps_of(_doubles(result["at"]), grid, self.name)
                parts.append(tuple(part[cells >= 0] for part in (cells, steps, _counts(result))))
            cells, steps, counts = map(np.concatenate, zip(*parts, strict=True))
            order = np.lexsort((steps, cells))
            starts = np.searchsorted(cells[order], np.arange(math.prod(groups.shape) + 1))
            return sorted_ranks(steps[order] - grid.low, counts[order], starts, grid)

        return Query("the ranks of a number per group", _names([number, *groups.cells]), plan, answer)

    def keyed_by_value(self, frame: Any, grid: RankGrid) -> tuple[Any, list[str]]:
        """Return a frame with numbers ``at``, and its columns by which they are grouped.

        Arrow takes a hundred times as long to group doubles or integers whose last bits are 0, such as whole
        numbers, so a number without such bits is added for it.
        """
        if self.engine != "PyArrow":
            return frame, ["at"]
        width = (grid.upper - grid.lower) or 1.0
        at = narwhals().col("at")
        scattered = ((at - grid.lower) * (ODD / width)).floor().cast(narwhals().Int64)
        return frame.with_columns(scattered=scattered), ["scattered", "at"]

    def table(self, columns: Sequence[Column], method: str) -> Query[Integers]:
        """Return the query of the records per declared cell of ``columns``."""
        return self._table(self._groups(columns, method))

    def labels(self, columns: Sequence[Column]) -> Query[LabelCounts] | None:
        """Return the query of the records per combination of private labels; None for frames of pandas."""
        if self.engine in ("pandas", "Dask"):  # pandas 2 groups texts by what stands before a null character
            return None
        library = narwhals()
        keys = [f"k{index}" for index in range(len(columns))]
        cells = [self.column(column, key).raw_cells() for column, key in zip(columns, keys, strict=True)]

        def plan(frame: Any) -> Any:
            read = frame.select(**{key: source for key, (source, _) in zip(keys, cells, strict=True)})
            for _, known in cells:
                read = read.filter(known)
            return read.group_by(*keys).agg(n=library.len())

        def answer(results: list[Any]) -> LabelCounts:
            pairs = (
                pair
                for result in results
                for pair in zip(
                    zip(*(result[key].to_list() for key in keys), strict=True),
                    _counts(result).tolist(),
                    strict=True,
                )
            )
            return merged_counts(pairs, columns)

        return Query("the labels", tuple(column.name for column in columns), plan, answer)

    def bins(self, column: Column, edges: Sequence[float]) -> Query[Integers]:
        """Return the query of the records per bin of ``edges``, and of the null cell."""
        column.bounds("bins")
        count = len(edges) - 1
        cells = self.column(column, "k0").cells(edges, count)
        return self._table(self._grouped_by([cells], [count + int(column.nullable)]))

    def codes(self, column: Column, method: str) -> Query[Integers]:
        """Return the query of the declared cell of each record."""
        library = narwhals()
        (cells,) = self._groups([column], method).cells
        kept = library.lit(True)
        for condition in cells.conditions:
            kept = kept & condition

        def plan(frame: Any) -> Any:
            marked = {"key": cells.key, "kept": library.when(kept).then(1.0).otherwise(0.0)}
            return frame.select(k0=cells.source).select(**marked)

        def answer(results: list[Any]) -> Integers:
            parts = [
                np.where(part["kept"].to_numpy() == 1.0, cells.decode(part["key"]), -1) for part in results
            ]
            return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

        return Query("the cell of each record", (column.name,), plan, answer)

    # ------------------------------------------------------------ groups

    @property
    def _cuts_texts(self) -> bool:
        """Whether groups of texts are those of pandas 2, which ends a text at its first null character."""
        return PANDAS_2 and self.engine in ("pandas", "Dask")

    def _groups(self, columns: Sequence[Column], method: str = "") -> _Groups:
        """The groups of the declared cells of columns; of no columns, one of all records."""
        for column in columns if self._cuts_texts else ():
            if any(isinstance(label, str) and "\0" in label for label in column.categories or ()):
                raise ParameterError(
                    f"A label of column {column.name!r} has a null character, where pandas 2 ends a text.",
                    "pandas 3 reads it",
                )
        cells = [
            self.column(column, f"k{index}").cells(column.bins, len(column.labels(method)))
            for index, column in enumerate(columns)
        ]
        return self._grouped_by(cells, [column.cells(method) for column in columns])

    def _grouped_by(self, cells: Sequence[DeclaredCells], shape: Sequence[int]) -> _Groups:
        """Labels are looked up per record, not per group, by pandas 2 and Spark.

        The first may call records that have a cell by the name of one that has none; the groups of Spark come
        from afar.
        """
        late = not self._cuts_texts and self.engine != "Spark"
        return _Groups(self.name, cells, shape, [column for column in cells if not (late and column.late)])

    # ------------------------------------------------------------ counts and sums

    def _records(self, description: str, names: tuple[Any, ...], plan: Callable[[Any], Any]) -> Query[int]:
        """The number of records that a plan gives."""
        return Query(
            description, names, plan, lambda results: sum(int(_counts(result)[0]) for result in results)
        )

    def _table(self, groups: _Groups) -> Query[Integers]:
        """The number of records per cell, flat in C order."""
        library = narwhals()

        def plan(frame: Any) -> Any:
            return groups.aggregated(groups.read(frame, {}), {"n": library.len()})

        def answer(results: list[Any]) -> Integers:
            return np.asarray(groups.totals(results, [_counts])[0])

        return Query("a table", _names(groups.cells), plan, answer)

    def _sums(self, quantities: Sequence[Quantity], groups: _Groups, *, products: bool) -> Query[GroupedSums]:
        """Rows, sums and products of complete records per cell, in grid steps, exact."""
        library = narwhals()
        numbers = [
            self.column(quantity.column, f"q{position}").number(quantity)
            for position, quantity in enumerate(quantities)
        ]
        if len(numbers) == 1 and not products and numbers[0].whole:
            largest = int(max(abs(quantities[0].lower), abs(quantities[0].upper)))
            if largest * MANY_ROWS < 2**63:
                return self._whole_sums(quantities[0], numbers[0], groups)
        size = len(quantities)
        pairs = [(i, j) for i in range(size) for j in range(i, size)] if products else []
        terms = self._terms(quantities, pairs)
        sources = {f"q{position}": number.source for position, number in enumerate(numbers)}
        conditions = [condition for number in numbers for condition in number.conditions]
        steps = {f"v{position}": number.steps for position, number in enumerate(numbers)}
        sums = {part: library.col(part).sum() for term in terms for part in term.parts}

        def plan(frame: Any) -> Any:
            read = groups.read(frame, sources, conditions, steps)
            return groups.aggregated(_split(read, groups.keys, terms), {"n": library.len(), **sums})

        def answer(results: list[Any]) -> GroupedSums:
            units = [functools.partial(term.total, engine=self.name) for term in terms]
            rows, *totals = (total.tolist() for total in groups.totals(results, [_counts, *units]))
            return GroupedSums(rows, totals[:size], dict(zip(pairs, totals[size:], strict=True)))

        return Query("sums", _names([*numbers, *groups.cells]), plan, answer)

    def _terms(self, quantities: Sequence[Quantity], pairs: Sequence[tuple[int, int]]) -> list[_Term]:
        """Return the terms of sums of quantities, selected as ``v0`` and so on: their steps, and products."""
        steps = [narwhals().col(f"v{position}") for position in range(len(quantities))]
        terms = [
            _Term(f"s{position}", steps[position], quantity.grid, _cut(quantity.reach, self.most))
            for position, quantity in enumerate(quantities)
        ]
        for i, j in pairs:
            first, second = quantities[i], quantities[j]
            cut = _cut(first.reach * second.reach, self.most)
            terms.append(_Term(f"p{i}_{j}", steps[i] * steps[j], first.grid * second.grid, cut))
        return terms

    def _whole_sums(self, quantity: Quantity, number: BoundedNumber, groups: _Groups) -> Query[GroupedSums]:
        """Rows and sums of whole numbers per cell: added as they are, centred afterwards."""
        at = narwhals().col("q0")
        aggregates = {"n": at.count(), "s": at.sum()}

        def plan(frame: Any) -> Any:
            return groups.aggregated(groups.read(frame, {"q0": number.source}), aggregates)

        def whole(result: Any) -> Any:
            sums = [0 if pd.isna(total) else total for total in result["s"].to_list()]
            if any(int(total) != total for total in sums):
                raise EngineError(f"{self.name} does not add integers as integers.")
            return np.array([int(total) for total in sums], dtype=object)

        def answer(results: list[Any]) -> GroupedSums:
            rows, sums = groups.totals(results, [_counts, whole])
            if int(rows.sum()) > MANY_ROWS:
                raise EngineError(f"{self.name} frames of more than 2**33 rows are not added up.")
            steps, center = round(1 / quantity.grid), round(quantity.center / quantity.grid)
            return GroupedSums(rows.tolist(), [(sums * steps - rows.astype(object) * center).tolist()], {})

        return Query("sums", _names([number, *groups.cells]), plan, answer)


def _names(readings: Sequence[DeclaredCells | BoundedNumber | ClampedNumber]) -> tuple[Any, ...]:
    """The columns that are read, each once."""
    return tuple(dict.fromkeys(reading.name for reading in readings))


def _counts(result: Any) -> Integers:
    """Return the number of records of each group."""
    return np.asarray(result["n"].to_numpy().astype(np.int64))


def _doubles(values: Any) -> Floats:
    return np.asarray(values.to_numpy().astype(np.float64))


def steps_of(numbers: Floats, grid: RankGrid, engine: str) -> Integers:
    """Return the steps of clamped numbers that an engine computed.

    Raises EngineError if a number is beyond its bounds.
    """
    if not ((numbers >= grid.lower) & (numbers <= grid.upper)).all():
        raise EngineError(f"{engine} does not compare doubles as the processor does.")
    return grid.steps(numbers)


def _cut(reach: int, rows: int | None) -> int:
    """Return the unit at which to split terms so that sums of both parts stay below 2**53; 0: no split."""
    if reach * (MANY_ROWS if rows is None else rows) < EXACT:
        return 0
    return 1 << ((reach.bit_length() + 1) // 2)


def _units(sums: Any, rows: Integers, unit: float, engine: str) -> Integers:
    """Return the sums of so many rows in whole units; the sum over an empty group may be null."""
    units = np.where(rows > 0, sums.to_numpy().astype(np.float64), 0.0) / unit
    if not (np.array_equal(units, np.rint(units)) and (np.abs(units) < 2.0**53).all()):
        raise EngineError(f"{engine} does not add doubles as the processor does.")
    return np.asarray(units.astype(np.int64))
