"""A frame of another engine than pandas, as releases read it, with at most so many records of each unit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import noise
from pdprivacy.domain import Domain
from pdprivacy.engine.unit_codes import filled, lowest_of_each, unit_codes
from pdprivacy.engine_narwhals.chunks import (
    ArrowPieces,
    Piecewise,
    arrow_type,
    each,
    in_own_memory,
    tables_of_duckdb,
    then,
)
from pdprivacy.engine_narwhals.engines import (
    framed,
    guarded,
    in_partitions,
    narwhals,
    opened,
    quoted_for_duckdb,
    quoted_for_spark,
)
from pdprivacy.engine_narwhals.narwhals_engine import NarwhalsEngine
from pdprivacy.errors import EngineError, InvalidDataError
from pdprivacy.expressions.cells import nulls

Words: TypeAlias = NDArray[np.uint64]


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class EngineFrame:
    """Columns of a frame that narwhals knows.

    A frame that is lazy is computed anew by each query.

    Attributes
    ----------
    engine : where the frame is computed, as "Polars".
    names : its columns.
    lazy : whether it is computed when it is read, so that what it holds may be other records each time.
    """

    frame: Any
    engine: str
    names: tuple[Hashable, ...]
    lazy: bool

    @classmethod
    def of(cls, frame: Any) -> EngineFrame:
        """All columns of a frame.

        Raises as `NarwhalsEngine`.
        """
        found, engine, schema = opened(frame)
        lazy = isinstance(found, narwhals().LazyFrame)
        return cls(found.to_native(), engine, tuple(schema.names()), lazy)

    def select(self, names: Sequence[Hashable]) -> EngineFrame:
        """These columns only, in this order."""
        if isinstance(self.frame, ArrowPieces):
            frame = self.frame.select(names)
        elif self.engine == "Dask":
            frame = self.frame[list(names)]
        else:
            frame = framed(self.frame).select(*names).to_native()
        return replace(self, frame=frame, names=tuple(names))

    def owned(self) -> EngineFrame:
        """The same frame; where it is in memory, in memory of its own.

        Polars and Arrow read arrays of NumPy where they are, and who has the array can write to it.
        """
        if self.lazy:
            return self
        return replace(self, frame=guarded("a copy", self.engine, lambda: in_own_memory(self.frame)))

    def statistics(self) -> NarwhalsEngine:
        """The exact sufficient statistics of the frame."""
        return NarwhalsEngine(self.frame)

    def check(self, domain: Domain) -> None:
        """Refuse columns that the engine cannot read as they are declared, before any is.

        Raises InvalidDataError or ParameterError; reads types alone.
        """
        self.statistics().check(domain)

    def each(self, what: str, function: Callable[[pd.DataFrame], Found]) -> list[Found]:
        """Call a function on each piece of the frame, a pandas frame; each record is in one piece."""
        return guarded(what, self.engine, lambda: each(self.frame, self.engine, function))

    def then(self, step: Piecewise) -> EngineFrame:
        """The frame after a step that looks at one record alone.

        Raises ParameterError for labels that other engines cannot hold.
        """
        for column in step.made:
            arrow_type(column)
        frame = guarded("a step", self.engine, lambda: then(self.frame, self.engine, step))
        made = [column.name for column in step.made if column.name not in self.names]
        return replace(self, frame=frame, names=(*self.names, *made))

    def crowd(self, unit: Hashable, most: int) -> int:
        """Return the records beyond a number of records of their unit.

        Raises InvalidDataError for records of nobody.
        """
        read = self.frame.schema.empty_table() if isinstance(self.frame, ArrowPieces) else self.frame
        kind = opened(read)[2][unit]
        if isinstance(kind, narwhals().List | narwhals().Array | narwhals().Struct):
            raise InvalidDataError("The column of the unit must hold names: text, numbers or dates.")
        over, nobody = guarded(
            "the records of each unit", self.engine, lambda: _excess(self.frame, self.engine, unit, most)
        )
        if nobody:
            raise InvalidDataError(
                "The column of the unit holds nulls, and a record of nobody cannot be counted.",
                "leave such records out before pdprivacy.protect(...), or give each a name of its own.",
            )
        return over

    def bounded(self, unit: Hashable, most: int) -> EngineFrame:
        """At most so many records of each unit, the same each time; any of them with the same probability."""
        key = int(noise.shuffled_keys(1, noise.source(None)).view(np.uint64)[0] >> np.uint64(2))
        frame = guarded(
            "the records of each unit",
            self.engine,
            lambda: _bounded(self.frame, self.engine, unit, most, key),
        )
        return replace(self, frame=frame)


# ---------------------------------------------------------------- records of each unit


def _excess(frame: Any, engine: str, unit: Hashable, most: int) -> tuple[int, int]:
    """Return the records beyond ``most`` of their unit, and the number of records without a unit."""
    if engine == "Dask":
        parts = in_partitions(_gathered(frame[[unit]], unit), lambda part: [part.to_native()[unit]])
        found = [_crowd(units, most) for units in parts]
        return sum(over for over, _ in found), sum(nobody for _, nobody in found)
    if engine == "PyArrow":
        return _crowd(_series(frame.column(unit)), most)
    library = narwhals()
    read = framed(frame.relation() if isinstance(frame, ArrowPieces) else frame)
    name = library.col(unit)
    gone = name.is_null()
    if read.collect_schema()[unit].is_float():
        gone = gone | name.is_nan()
    sizes = read.select(unit=name, gone=gone).group_by("unit", "gone").agg(rows=library.len())
    rows = library.col("rows").cast(library.Int64)
    over = library.when(rows > most).then(rows - most).otherwise(0)
    nobody = library.when(library.col("gone")).then(1).otherwise(0)
    total = sizes.select(over=over.sum(), nobody=nobody.sum())
    total = total.collect() if isinstance(total, library.LazyFrame) else total
    return int(total["over"][0] or 0), int(total["nobody"][0] or 0)


def _bounded(frame: Any, engine: str, unit: Any, most: int, key: int) -> Any:
    """The frame with at most ``most`` records of each unit.

    Tables of PyArrow: those that come first after a shuffle. All others: those whose cells have the lowest
    hashes, under a secret key that is drawn once. So the same are kept whenever a lazy frame is computed: a
    unit that was in one query with some of its records, and in the next with others, would count twice.
    Records with the same cells may take each other's place, which no statistic can tell. What is kept of
    a unit depends on its own records alone.
    """
    if engine == "Polars":
        import polars as pl

        # labels of a dictionary as texts: their numbers depend on which came first
        cells = pl.all().exclude(pl.Categorical, pl.Enum), pl.col(pl.Categorical, pl.Enum).cast(pl.String)
        return frame.filter(pl.struct(*cells).hash(key).rank("ordinal").over(unit) <= most)
    if isinstance(frame, ArrowPieces):

        def tables() -> Iterator[Any]:
            return tables_of_duckdb(_bounded(frame.relation(), engine, unit, most, key))

        return replace(frame, open=tables)
    if engine == "DuckDB":
        names = [quoted_for_duckdb(name) for name in frame.columns]
        place = f"place_{uuid.uuid4().hex}"
        order = f"partition by {quoted_for_duckdb(unit)} order by hash(hash({key}, {', '.join(names)}))"
        numbered = frame.project(f"*, row_number() over ({order}) as {place}")
        return numbered.filter(f"{place} <= {most}").project(", ".join(names))
    if engine == "Spark":
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        columns = [f.col(quoted_for_spark(name)) for name in frame.columns]
        place = f"place_{uuid.uuid4().hex}"
        window = Window.partitionBy(f.col(quoted_for_spark(unit))).orderBy(f.xxhash64(f.lit(key), *columns))
        numbered = frame.withColumn(place, f.row_number().over(window))
        return numbered.filter(f.col(place) <= most).select(*columns)
    if engine == "Dask":
        kept = _gathered(frame, unit).map_partitions(_lowest, unit, most, key, meta=frame._meta)
        # planned once: each query reads all columns, and planning a shuffle takes longer than most of them
        return kept.optimize()
    units = unit_codes(_series(frame.column(unit)))
    return frame.take(lowest_of_each(units, noise.shuffled_keys(len(units), noise.source(None)), most))


def _series(names: Any) -> pd.Series[Any]:
    """A column of Arrow without a detour over the types of NumPy, which hold fewer names."""
    return pd.Series(pd.arrays.ArrowExtensionArray(names))


def _lowest(frame: pd.DataFrame, unit: Hashable, most: int, key: int) -> pd.DataFrame:
    """The records with the lowest hashes of each unit."""
    hashes = np.full(len(frame), key, dtype=np.uint64)
    for name in frame.columns:
        hashes = _mixed(hashes ^ _hashed(frame[name]))
    return frame.iloc[lowest_of_each(unit_codes(frame[unit]), hashes, most)]


def _mixed(words: Words) -> Words:
    """The last step of splitmix64, a permutation of 64 bits."""
    for shift, times in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(times)
    return words


def _hashed(cells: pd.Series[Any]) -> Words:
    """A number for each cell, equal for equal cells, whatever other cells there are and how they are kept.

    pandas' own depends on that: a null makes doubles of integers.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype) or str(cells.dtype).startswith("dictionary"):
        cells = cells.astype(object)
    gone = nulls(cells)
    if cells.dtype.kind in "biuf":
        # integers that share a double differ in nothing else: they may replace each other
        numbers = filled(cells).astype(np.float64) + 0.0
        numbers[gone] = np.nan
        return np.where(gone, np.uint64(1), _mixed(numbers.view(np.uint64)))
    texts = np.array([f"{cell}" for cell in cells.astype(object)], dtype=object)
    texts[gone] = ""
    return np.where(gone, np.uint64(1), pd.util.hash_array(texts).astype(np.uint64))


def _gathered(frame: Any, unit: Hashable) -> Any:
    """A Dask frame with all records of a unit in one partition."""
    place = f"place_{uuid.uuid4().hex}"
    kind = str(frame._meta[unit].dtype)
    meta = frame._meta.assign(**{place: np.zeros(0, dtype=np.uint64)})
    placed = frame.map_partitions(_placed, unit, place, kind, meta=meta)
    return placed.shuffle(on=place)[list(frame.columns)]


def _placed(frame: pd.DataFrame, unit: Hashable, place: str, kind: str) -> pd.DataFrame:
    """A partition with a number for each unit, equal where units are, whatever else it holds."""
    units = frame[unit]
    if str(units.dtype) != kind:
        # 1 and 1.0 would be two units
        raise EngineError(
            "A partition of Dask has the column of the unit in another type.",
            "give all partitions one type: frame.astype({column: type}), or when they are read",
        )
    if isinstance(units.dtype, pd.CategoricalDtype):
        units = units.astype(units.cat.categories.dtype) if not units.hasnans else units.astype(object)
    if units.dtype == object and not all(isinstance(name, str) for name in units[~nulls(units)]):
        # 1, 1.0 and True are one unit, and so are decimals that are written in two ways
        raise EngineError(
            "The column of the unit holds objects that are not strings.",
            "give it a type, such as int64 or str",
        )
    return frame.assign(**{place: _hashed(units)})


def _crowd(units: pd.Series[Any], most: int) -> tuple[int, int]:
    codes = unit_codes(units)
    sizes = np.bincount(codes[codes >= 0])
    return int(np.maximum(sizes - most, 0).sum()), int((codes < 0).any())
