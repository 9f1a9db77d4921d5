"""Native frames of each engine, read and changed piece by piece, and bounded to so many records of a unit.

Pandas computes steps of single records for any engine. A step that looks at one record alone gives the same
whatever the other records are, so it may be computed on any piece of a frame; on pieces made pandas frames,
it runs the same code as on pandas frames.
"""

from __future__ import annotations

import datetime
import io
import pickle
import uuid
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.core import noise
from pdprivacy.core.engines import Columns
from pdprivacy.core.engines.blocks import LARGEST
from pdprivacy.core.engines.other.engines import (
    in_partitions,
    narwhals,
    narwhals_frame,
    quoted_for_duckdb,
    quoted_for_spark,
)
from pdprivacy.core.engines.unit_codes import filled, lowest_of_each, rounded_names, unit_codes
from pdprivacy.core.rows.cells import nulls
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import EngineError, ParameterError
from pdprivacy.types import Integers, Mask, Words

Found = TypeVar("Found")
EPOCH = datetime.date(1970, 1, 1).toordinal()
Made: TypeAlias = "tuple[dict[Hashable, pd.Series[Any]], Mask | None]"

ROWS = 1 << 18
"""Rows at a time where the engine does not cut pieces itself."""

ROWS_OF_NUMBERS = 1 << 22
"""The same where columns of numbers are read; where they have nulls, they are copied."""


@dataclass(frozen=True, slots=True)
class Piecewise:
    """A step that looks at one record alone.

    ``reads``: the columns it looks at. ``made``: what is declared of the columns that are new or replaced.
    ``run``: from a pandas frame of ``reads`` to those columns, or to the ``made`` ones of a narrower step,
    and to which records stay (None: all). ``sources``: the columns that one of ``made`` is computed from,
    also earlier ones of ``made``; all of ``reads`` where it is not listed. ``filters``: whether the step
    leaves records out, which takes all of ``reads``.
    """

    reads: tuple[Hashable, ...]
    made: tuple[Column, ...]
    run: Callable[[pd.DataFrame, Sequence[Hashable]], Made]
    sources: Mapping[Hashable, tuple[Hashable, ...]] = field(default_factory=dict)
    filters: bool = False

    def narrowed(self, names: Iterable[Hashable]) -> Piecewise | None:
        """The step as far as these columns of its result need it; None where they do not."""
        wanted, made = set(names), list[Column]()
        for column in reversed(self.made):
            if column.name in wanted:
                made.insert(0, column)
                wanted.update(self.sources.get(column.name, self.reads))
        if not made and not self.filters:
            return None
        reads = dict.fromkeys(self.reads if self.filters else ())
        earlier = set[Hashable]()
        for column in made:
            sources = self.sources.get(column.name, self.reads)
            reads |= dict.fromkeys(name for name in sources if name not in earlier)
            earlier.add(column.name)
        return replace(self, reads=tuple(reads), made=tuple(made))

    def on_arrow(self, table: Any) -> Any:
        """The step, of a table of Arrow."""
        read = table.select(list(self.reads or table.column_names[:1]))
        columns, keep = self._compute(pandas_of(read, self._dates))
        for name, values in columns:
            index = table.schema.get_field_index(name)
            table = table.append_column(name, values) if index < 0 else table.set_column(index, name, values)
        return table if keep is None else table.filter(keep)

    def on_pandas(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The step, of a partition of Dask."""
        columns, keep = self._compute(plain(frame[list(self.reads)]))
        result = frame.copy(deep=False)
        for name, values in columns:
            result[name] = pd.array(values, dtype=pd.ArrowDtype(values.type))
        return result if keep is None else result.loc[keep.to_numpy(zero_copy_only=False)]

    def on_polars(self, frame: Any) -> Any:
        """The step, of a frame of Polars."""
        import polars

        read = frame.select(self.reads or frame.columns[:1])
        columns, keep = self._compute(_pandas_of_polars(read, self._dates))
        result = frame.with_columns([_series(name, values) for name, values in columns])
        return result if keep is None else result.filter(polars.Series(keep.to_numpy(zero_copy_only=False)))

    @property
    def _dates(self) -> frozenset[Hashable]:
        return frozenset(column.name for column in self.made if column.timeline is not None)

    def _compute(self, frame: pd.DataFrame) -> tuple[list[tuple[Any, Any]], Any]:
        import pyarrow as pa

        columns, keep = self.run(frame, [column.name for column in self.made])
        mask = None if keep is None else pa.array(np.asarray(keep, dtype=bool))
        return [(column.name, arrow_of(columns[column.name], column)) for column in self.made], mask


@dataclass(frozen=True, slots=True)
class ArrowPieces:
    """A frame that comes in tables of Arrow, anew each time it is opened.

    ``engine``: where it comes from. ``schema``: of the tables. ``open``: the tables. ``origin``: the native
    frame that they are of.
    """

    engine: str
    schema: Any
    open: Callable[[], Iterator[Any]]
    origin: Any

    def select(self, names: Sequence[Hashable]) -> ArrowPieces:
        """These columns only."""
        columns = list(names)
        schema = self.schema.empty_table().select(columns).schema
        return replace(self, schema=schema, open=lambda: (table.select(columns) for table in self.open()))

    def relation(self) -> Any:
        """The tables as a relation of DuckDB, which can be read once, in a database of the same settings."""
        import duckdb
        import pyarrow as pa

        config = _settings_of(self.origin)  # before its connection is busy with the tables
        batches = (batch for table in self.open() for batch in table.to_batches())
        reader = pa.RecordBatchReader.from_batches(self.schema, batches)
        return duckdb.connect(config=config).from_arrow(reader)


_SETTINGS = ("memory_limit", "threads", "max_temp_directory_size", "preserve_insertion_order")
"""Settings of a connection of DuckDB that bound what its queries take."""


def _settings_of(relation: Any) -> dict[str, Any]:
    """Return settings of the connection of a relation; files that do not fit in memory go beside its own."""
    names = (*_SETTINGS, "temp_directory")
    settings = ", ".join(f"current_setting('{name}')::VARCHAR" for name in names)
    row = relation.limit(0).aggregate(f"count(*), {settings}").fetchall()[0][1:]
    # a share of the disk is the default, and older versions tell no bytes before they have written any
    config = {
        name: value
        for name, value in zip(names, row, strict=True)
        if value and "%" not in value and value != "0 bytes"
    }
    if "temp_directory" in config:  # databases must not share it
        config["temp_directory"] += f"-{uuid.uuid4().hex}"
    return config


def selected(frame: Any, engine: str, names: Sequence[Hashable]) -> Any:
    """These columns of a frame, in this order."""
    if isinstance(frame, ArrowPieces):
        return frame.select(names)
    if engine == "Dask":
        return frame[list(names)]
    return narwhals_frame(frame).select(*names).to_native()


def each(frame: Any, engine: str, function: Callable[[pd.DataFrame], Found]) -> list[Found]:
    """Call ``function`` on each piece of a frame, a pandas frame; each record is in one piece."""
    if engine == "Dask":
        return in_partitions(frame, lambda part: [function(plain(part.to_native()))])
    if engine == "Polars":
        return each_of_polars(frame, lambda part: function(_pandas_of_polars(part)))
    if engine == "Spark":
        return _each_of_spark(frame, function)
    return [function(pandas_of(table)) for table in tables(frame)]


def each_of_numbers(
    frame: Any, engine: str, names: Sequence[Hashable], function: Callable[[Columns], Found]
) -> list[Found]:
    """Call a function on columns of numbers in larger pieces, without a copy where they are in memory."""
    if engine == "Dask":
        return in_partitions(frame[list(names)], lambda part: [function(part.to_native())])
    columns = frame.select(list(names))
    columns = columns.to_arrow() if engine == "Polars" else columns
    return [function(_numbers_of(table)) for table in tables(columns, ROWS_OF_NUMBERS)]


def then(frame: Any, engine: str, step: Piecewise) -> Any:
    """The frame after a step: computed at once where the frame is in memory, else each time it is read."""
    types = {column.name: arrow_type(column) for column in step.made}
    if engine == "Dask":
        return frame.map_partitions(step.on_pandas, meta=step.on_pandas(frame._meta))
    if engine == "Polars":
        return _then_of_polars(frame, step, types)
    if engine == "Spark":
        return _then_of_spark(frame, step, types)
    if engine == "PyArrow":
        import pyarrow as pa

        results = [step.on_arrow(table) for table in tables(frame)]
        return pa.concat_tables(results)
    pieces = frame if isinstance(frame, ArrowPieces) else streamed(frame)
    schema = step.on_arrow(pieces.schema.empty_table()).schema
    return replace(pieces, schema=schema, open=lambda: map(step.on_arrow, pieces.open()))


def in_own_memory(frame: Any) -> Any:
    """A frame of Polars or a table of Arrow in memory of its own; texts as Arrow can compare them."""
    if type(frame).__module__.startswith("polars"):
        import polars

        # gathered texts would still lie in the buffers that they came in
        written = io.BytesIO()
        frame.write_ipc_stream(written)
        written.seek(0)
        return polars.read_ipc_stream(written)
    import pyarrow as pa

    for index, column in enumerate(frame.schema):
        if str(column.type) == "string_view":
            frame = frame.set_column(index, column.name, frame.column(index).cast(pa.large_string()))
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, frame.schema) as writer:
        writer.write_table(frame)
    return pa.ipc.open_stream(stream.getvalue()).read_all()


def tables(frame: Any, rows: int = ROWS) -> Iterator[Any]:
    """A table of Arrow, or a relation of DuckDB, as tables of not too many rows; one at least."""
    if isinstance(frame, ArrowPieces):
        return frame.open()
    if type(frame).__module__.startswith("pyarrow"):
        return (frame.slice(start, rows) for start in range(0, max(len(frame), 1), rows))
    return tables_of_duckdb(frame)


def streamed(relation: Any) -> ArrowPieces:
    """A relation of DuckDB as a frame that comes in tables of Arrow; no record is read."""
    schema = next(tables_of_duckdb(relation.limit(0))).schema
    return ArrowPieces("DuckDB", schema, lambda: tables_of_duckdb(relation), relation)


def tables_of_duckdb(relation: Any) -> Iterator[Any]:
    """A relation of DuckDB as tables of Arrow; the first one is empty."""
    import pyarrow as pa

    # older versions know the second name only
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    reader = read(ROWS)
    yield reader.schema.empty_table()
    for batch in reader:
        yield pa.Table.from_batches([batch])


# ---------------------------------------------------------------- Polars


def _lazily(frame: Any, function: Callable[[Any], Any], schema: Any) -> Any:
    return frame.lazy().map_batches(function, schema=schema, streamable=True)


def _pandas_of_polars(part: Any, dates: Collection[Hashable] = ()) -> pd.DataFrame:
    """Return a piece as a pandas frame, with integers of 128 bits as those of Python."""
    import polars

    wide = [name for name, kind in part.schema.items() if str(kind) in ("Int128", "UInt128")]
    if not wide:
        return pandas_of(part.to_arrow(), dates)
    # as text: Arrow has no such integers
    frame = pandas_of(part.with_columns(polars.col(wide).cast(polars.String)).to_arrow(), dates)
    for name in wide:
        cells = [None if text is None else int(text) for text in part[name].cast(polars.String).to_list()]
        frame[name] = pd.Series(cells, dtype=object)
    return frame


def each_of_polars(frame: Any, function: Callable[[Any], Found]) -> list[Found]:
    """Call a function on each piece of a Polars frame, a Polars frame too."""
    import polars

    results: list[Found] = []

    def piece(part: Any) -> Any:
        results.append(function(part))
        return polars.DataFrame({"piece": [0]})

    _lazily(frame, piece, {"piece": polars.Int64}).collect(engine="streaming")
    return results


def _then_of_polars(frame: Any, step: Piecewise, types: dict[Any, Any]) -> Any:
    import pyarrow as pa

    kinds = {name: _series(name, pa.array([], type=kind)).dtype for name, kind in types.items()}
    schema = {**frame.lazy().collect_schema(), **kinds}
    result = _lazily(frame, step.on_polars, schema)
    return result if type(frame).__name__ == "LazyFrame" else result.collect(engine="streaming")


def _series(name: str, values: Any) -> Any:
    import polars

    series: Any = polars.from_arrow(values)
    return series.rename(name)


# ---------------------------------------------------------------- Spark


def _each_of_spark(frame: Any, function: Callable[[pd.DataFrame], Found]) -> list[Found]:
    def pieces(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            payload = pickle.dumps(function(pandas_of(pa.Table.from_batches([batch]))))
            yield pa.RecordBatch.from_arrays([pa.array([payload], type=pa.binary())], names=["piece"])

    return [pickle.loads(row[0]) for row in frame.mapInArrow(pieces, "piece binary").collect()]


def _then_of_spark(frame: Any, step: Piecewise, types: dict[Any, Any]) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = {field.name: field for field in frame.schema.fields}
    fields |= {name: StructField(name, from_arrow_type(kind)) for name, kind in types.items()}

    def pieces(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            yield from step.on_arrow(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    return frame.mapInArrow(pieces, StructType(list(fields.values())))


# ---------------------------------------------------------------- Arrow and pandas


@dataclass(frozen=True, slots=True)
class _Array:
    array: Any


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Columns as `pdprivacy.core.engines.PandasEngine` reads them, without a pandas frame around them."""

    rows: int
    columns: dict[Any, _Array]

    def __getitem__(self, name: Any) -> _Array:
        return self.columns[name]

    def __len__(self) -> int:
        return self.rows


def _numbers_of(table: Any) -> Columns:
    """Columns of numbers where they are in memory; as a pandas frame if some have nulls or several parts."""
    if any(values.num_chunks != 1 or values.null_count for values in table.columns):
        return pandas_of(table)
    arrays = [_Array(pd.arrays.NumpyExtensionArray(values.chunk(0).to_numpy())) for values in table.columns]
    return _Numbers(len(table), dict(zip(table.column_names, arrays, strict=True)))


def pandas_of(table: Any, dates: Collection[Hashable] = ()) -> pd.DataFrame:
    """A table of Arrow as a pandas frame whose columns the checks and steps of pandas frames read.

    Days are dates and decimals decimals of Python, as in frames of pandas. Days before the year 1 or after
    9999, which Python does not know, become the first or the last that it knows; those of ``dates``, the
    columns that are read as dates, become midnights of NumPy and stay as they are.
    """
    columns = {name: _pandas(table.column(name), name in dates) for name in table.column_names}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)), copy=False)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a partition of Dask as such a frame; pandas does not take decimals of Arrow for numbers."""
    decimal = [name for name, kind in frame.dtypes.items() if str(kind).startswith("decimal")]
    return frame.astype(dict.fromkeys(decimal, object)) if decimal else frame


def _pandas(values: Any, midnights: bool) -> Any:
    import pyarrow as pa

    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        if values.null_count == 0:
            return values.to_numpy()
        # "int8" becomes "Int8", "uint8" becomes "UInt8"
        name = "boolean" if pa.types.is_boolean(kind) else str(kind).replace("u", "U").replace("i", "I")
        masked: Any = pd.api.types.pandas_dtype(name)
        return masked.__from_arrow__(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        text = values if pa.types.is_large_string(kind) else values.cast(pa.large_string())
        return pd.arrays.ArrowExtensionArray(text)
    if pa.types.is_date(kind):
        return values.cast(pa.timestamp("ms")).to_pandas() if midnights else _days(values)
    return values.to_pandas()


def _days(values: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    first, last = (day.toordinal() - EPOCH for day in (datetime.date.min, datetime.date.max))
    days = values.cast(pa.date32()).cast(pa.int32())
    known = pc.min_element_wise(pc.max_element_wise(days, first, skip_nulls=False), last, skip_nulls=False)
    return known.cast(pa.int32()).cast(pa.date32()).to_pandas()


def arrow_type(column: Column) -> Any:
    """The type of Arrow that holds what a step makes of a column.

    Raises ParameterError for labels of several types, which no other engine holds in one column.
    """
    import pyarrow as pa

    if column.kind != "category":
        return {"float": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}[column.kind]
    labels = column.categories or ()
    for label_type, kind in (
        (str, pa.large_string()),
        (bool, pa.bool_()),
        (datetime.datetime, pa.timestamp("us")),
        (datetime.date, pa.date32()),
    ):
        if all(isinstance(label, label_type) for label in labels):
            return kind
    numbers = all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels)
    if not numbers:
        raise ParameterError(
            f"Column {column.name!r} would hold labels of several types, which only pandas frames can.",
            "give it labels of one type, such as text",
        )
    return pa.int64() if all(isinstance(label, int) for label in labels) else pa.float64()


def arrow_of(values: pd.Series[Any], column: Column) -> Any:
    """Return the result of a step for a column, as an Arrow array."""
    import pyarrow as pa

    kind = arrow_type(column)
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes = np.asarray(values.cat.codes.to_numpy(), dtype=np.int64)
        labels: Any = pa.array(values.cat.categories.tolist(), type=kind)
        return labels.take(pa.array(codes, mask=codes < 0))
    null = values.isna().to_numpy(dtype=bool)
    if kind in (pa.float64(), pa.int64(), pa.bool_()) and values.dtype != object:
        plain = kind.to_pandas_dtype()
        known = filled(values)
        if null.any():
            known = np.where(null, known.dtype.type(0), known)
        known = _whole(known) if kind == pa.int64() else known.astype(plain)
        return pa.array(known, type=kind, mask=null if null.any() else None)
    # decimals that are left where one of them was moved
    numbers: dict[Any, Callable[[Any], Any]] = {
        pa.float64(): float,
        pa.int64(): lambda cell: min(max(int(cell), -LARGEST - 1), LARGEST),
    }
    number = numbers.get(kind, lambda cell: cell)
    cells = [
        None if gone else number(cell) for cell, gone in zip(values.tolist(), null.tolist(), strict=True)
    ]
    return pa.array(cells, type=kind)


def _whole(numbers: NDArray[Any]) -> Integers:
    """Numbers as integers of 64 bits, where a larger one would become negative."""
    large = numbers >= (2.0**63 if numbers.dtype.kind == "f" else 2**63)
    integers = np.where(large, numbers.dtype.type(0), numbers).astype(np.int64)
    integers[large] = LARGEST
    return integers


# ---------------------------------------------------------------- records of each unit


MIXED = ("JSON", "VARIANT", "UNION", "extension<arrow.json>", "sparse_union", "dense_union")
"""Beginnings of the native names of types whose cells have a type each."""


def mixed_type(frame: Any, engine: str, name: Hashable) -> str | None:
    """Return the type of a column whose cells have a type each, such as JSON; None for all others."""
    native = ""
    if engine == "DuckDB":
        native = str(frame.types[frame.columns.index(name)])
    elif engine == "PyArrow":
        native = str(frame.schema.field(name).type)
    return next((kind for kind in MIXED if native.startswith(kind)), None)


def excess(frame: Any, engine: str, unit: Hashable, most: int) -> tuple[int, int]:
    """Return the records beyond ``most`` of their unit, and the number of records without a unit.

    Raises InvalidDataError for floats that may each stand for several integers.
    """
    if engine == "Dask":
        parts = in_partitions(_gather_units(frame[[unit]], unit), lambda part: [part.to_native()[unit]])
        crowds = [_excess_of_units(units, most) for units in parts]
        return sum(over for over, _ in crowds), sum(nobody for _, nobody in crowds)
    if engine == "PyArrow":
        return _excess_of_units(_of_arrow(frame.column(unit), unit), most)
    library = narwhals()
    read = narwhals_frame(frame.relation() if isinstance(frame, ArrowPieces) else frame)
    name = library.col(unit)
    kind = read.collect_schema()[unit]
    gone, rounded = name.is_null(), library.lit(False)
    if kind.is_float():
        gone = gone | name.is_nan()
        size = name.cast(library.Float64).abs()
        first = 2.0 ** (FRACTIONS.get(str(kind), 52) + 1)
        rounded = ~gone & (size >= first) & (size < float("inf"))
    sizes = read.select(unit=name, gone=gone, rounded=rounded)
    sizes = sizes.group_by("unit", "gone", "rounded").agg(rows=library.len())
    rows = library.col("rows").cast(library.Int64)
    over = library.when(rows > most).then(rows - most).otherwise(0)
    flags = {name: library.when(library.col(name)).then(1).otherwise(0).sum() for name in ("gone", "rounded")}
    total = sizes.select(over=over.sum(), **flags)
    total = total.collect() if isinstance(total, library.LazyFrame) else total
    if total["rounded"][0]:
        raise rounded_names(unit)
    return int(total["over"][0] or 0), int(total["gone"][0] or 0)


FRACTIONS = {"Float16": 10, "Float32": 23}
"""Binary digits of the fraction in floats that are not doubles."""


def bounded(frame: Any, engine: str, unit: Any, most: int, key: int) -> Any:
    """Return the frame with at most ``most`` records of each unit.

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
            return tables_of_duckdb(bounded(frame.relation(), engine, unit, most, key))

        return replace(frame, open=tables)
    if engine == "DuckDB":
        names = [quoted_for_duckdb(name) for name in frame.columns]
        earlier_column = f"earlier_{uuid.uuid4().hex}"
        order = f"partition by {quoted_for_duckdb(unit)} order by hash(hash({key}, {', '.join(names)}))"
        # not by row_number(), of which DuckDB makes lists of the records of each unit, which have to fit in
        # memory: a record stays where its unit has none so many places before it
        numbered = frame.project(f"*, lag(true, {most}) over ({order}) as {earlier_column}")
        return numbered.filter(f"{earlier_column} is null").project(", ".join(names))
    if engine == "Spark":
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        columns = [f.col(quoted_for_spark(name)) for name in frame.columns]
        number_column = f"place_{uuid.uuid4().hex}"
        window = Window.partitionBy(f.col(quoted_for_spark(unit))).orderBy(f.xxhash64(f.lit(key), *columns))
        numbered = frame.withColumn(number_column, f.row_number().over(window))
        return numbered.filter(f.col(number_column) <= most).select(*columns)
    if engine == "Dask":
        result = _gather_units(frame, unit).map_partitions(_lowest_hashes, unit, most, key, meta=frame._meta)
        # planned once: each query reads all columns, and planning a shuffle takes longer than most of them
        return result.optimize()
    units = unit_codes(_of_arrow(frame.column(unit), unit))
    return frame.take(lowest_of_each(units, noise.shuffled_keys(len(units), noise.source(None)), most))


def try_once(frame: Any, engine: str) -> None:
    """Compute a bounded frame of DuckDB with all its columns, which tells whether its memory suffices."""
    if engine == "DuckDB":
        relation = frame.relation() if isinstance(frame, ArrowPieces) else frame
        columns = ", ".join(map(quoted_for_duckdb, relation.columns))
        relation.aggregate(f"bit_xor(hash({columns}))").fetchall()


def _of_arrow(names: Any, unit: Hashable) -> pd.Series[Any]:
    """A column of Arrow without a detour over the types of NumPy, which hold fewer names."""
    return pd.Series(pd.arrays.ArrowExtensionArray(names), name=unit)


def _lowest_hashes(frame: pd.DataFrame, unit: Hashable, most: int, key: int) -> pd.DataFrame:
    """The records with the lowest hashes of each unit."""
    hashes = np.full(len(frame), key, dtype=np.uint64)
    for name in frame.columns:
        hashes = _mix(hashes ^ _hashes(frame[name]))
    return frame.iloc[lowest_of_each(unit_codes(frame[unit]), hashes, most)]


def _mix(words: Words) -> Words:
    """The last step of splitmix64, a permutation of 64 bits."""
    for shift, times in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(times)
    return words


def _hashes(cells: pd.Series[Any]) -> Words:
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
        return np.where(gone, np.uint64(1), _mix(numbers.view(np.uint64)))
    texts = np.array([f"{cell}" for cell in cells.astype(object)], dtype=object)
    texts[gone] = ""
    return np.where(gone, np.uint64(1), pd.util.hash_array(texts).astype(np.uint64))


def _gather_units(frame: Any, unit: Hashable) -> Any:
    """A Dask frame with all records of a unit in one partition."""
    hash_column = f"place_{uuid.uuid4().hex}"
    kind = frame._meta[unit].dtype
    meta = frame._meta.assign(**{hash_column: np.zeros(0, dtype=np.uint64)})
    placed = frame.map_partitions(_with_unit_hash, unit, hash_column, kind, meta=meta)
    return placed.shuffle(on=hash_column)[list(frame.columns)]


def _with_unit_hash(frame: pd.DataFrame, unit: Hashable, hash_column: str, kind: Any) -> pd.DataFrame:
    """A partition with a number for each unit, equal where units are, whatever else it holds."""
    units = frame[unit]
    if not _is_of_kind(units.dtype, kind):
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
    return frame.assign(**{hash_column: _hashes(units)})


def _is_of_kind(dtype: Any, declared: Any) -> bool:
    """Return whether the names of a partition are of the type that Dask says, texts in any categories."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype) == str(declared)
    if not isinstance(declared, pd.CategoricalDtype):
        return False
    labels, known = dtype.categories, declared.categories
    if known.dtype.kind == "O":  # also where Dask does not know the categories
        return len(labels) == 0 or labels.inferred_type == "string"
    return bool(labels.dtype == known.dtype)


def _excess_of_units(units: pd.Series[Any], most: int) -> tuple[int, int]:
    codes = unit_codes(units)
    sizes = np.bincount(codes[codes >= 0])
    return int(np.maximum(sizes - most, 0).sum()), int((codes < 0).any())
