"""Calls of narwhals and its engines: missing packages, unknown engines, settings, and failures.

Doubles of Spark are those of the processor (Java has no others), its planner moves terms of integers only,
and its sums of integers are below 2**63 by the bounds. What differs is settled here or in
`column_expressions`:

- names are compared without regard to case, and a dot in one reads a field of a structure;
- a text may have a collation, by which different texts are equal: it is taken off, as it is for DuckDB;
- a time is an instant or a time on a clock, and a constant of Python becomes one by the time zones of this
  process and of the session: times are read as texts and as whole numbers, which no zone changes;
- what is neither number, text, truth value nor time is refused, never converted.
"""

from __future__ import annotations

import datetime
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from pdprivacy.errors import EngineError, InvalidDataError, MissingExtraError, ParameterError

# ---------------------------------------------------------------- Spark


@dataclass(frozen=True, slots=True)
class SparkTimes:
    """The type of a column of days, of times on a clock, or of instants, of Spark."""

    kind: str

    def is_numeric(self) -> bool:
        """Return False: such a type is no number."""
        return False

    is_integer = is_float = is_numeric

    def __str__(self) -> str:
        return {"date": "Date", "clock": "Datetime", "instant": "Datetime with a time zone"}[self.kind]

    def key(self, read: Any, library: Any) -> tuple[Any, Any]:
        """The column as it is compared, and the type of that."""
        if self.kind != "instant":
            return read.cast(library.String), library.String
        # whole seconds, rounded down, and the microseconds above them
        micros = read.dt.microsecond() % 1_000_000
        return read.cast(library.Int64) * 1_000_000 + micros, library.Int64

    def label(self, label: Any) -> str | int | None:
        """A label as it is compared; None for one of another type."""
        if self.kind == "date":
            return label.isoformat() if type(label) is datetime.date else None
        if not isinstance(label, datetime.datetime) or (label.tzinfo is None) != (self.kind == "clock"):
            return None
        if self.kind == "clock":
            # as Spark writes them: no zero at the end of a fraction
            whole = label.replace(microsecond=0).isoformat(" ")
            return whole + f".{label.microsecond:06}".rstrip("0") if label.microsecond else whole
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (label - epoch) // datetime.timedelta(microseconds=1)


def _of_pandas_api(frame: Any) -> Any:
    """The Spark frame below one of pyspark.pandas; other frames as they are."""
    if type(frame).__module__.startswith("pyspark.pandas.") and hasattr(frame, "to_spark"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the index is left out, as that of every frame
            return frame.to_spark()
    return frame


def _refuse_connect(frame: Any) -> None:
    """Refuse a frame of Spark Connect by name: its plans are made by a server that is not asked here."""
    if ".connect." in f"{type(frame).__module__}." and type(frame).__module__.startswith("pyspark."):
        raise ParameterError(
            "'frame' must not be a frame of Spark Connect.",
            "pdprivacy.protect(frame.toArrow(), ...), which holds it in memory (of the pandas API: "
            "frame.to_spark().toArrow()); or a session without a remote address: "
            'SparkSession.builder.master("local[*]")',
        )


def _refuse_twins(frame: Any) -> None:
    """Refuse with a ParameterError two columns that have one name but for the case of letters."""
    if len({str(name).lower() for name in frame.columns}) < len(frame.columns):
        raise ParameterError(
            "'frame' must have one column of each name, in upper or lower case.",
            'frame.withColumnRenamed("X", "x_2")',
        )


def _without_spark_collations(frame: Any) -> Any:
    """The frame with its texts compared byte by byte."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType

    collated = {
        field.name: functions.col(quoted_for_spark(field.name)).cast("string")
        for field in frame.schema
        if isinstance(field.dataType, StringType) and field.dataType != StringType()
    }
    return frame.withColumns(collated) if collated else frame


def _spark_types(frame: Any, schema: Any, library: Any) -> Any:
    """The types of the columns, times apart; `Object` for those that cannot be read."""
    from pyspark.sql import types as spark

    types = library.Schema(schema)
    for field in frame.schema:
        kind = field.dataType
        if isinstance(kind, spark.DateType):
            types[field.name] = SparkTimes("date")
        elif isinstance(kind, spark.TimestampNTZType):
            types[field.name] = SparkTimes("clock")
        elif isinstance(kind, spark.TimestampType):
            types[field.name] = SparkTimes("instant")
        elif types[field.name] == library.Unknown and not isinstance(kind, spark.NullType):
            types[field.name] = library.Object()
    return types


def is_field_name(name: Any) -> bool:
    """Return whether Spark reads a name as a field of another column."""
    return isinstance(name, str) and ("." in name or "`" in name)


def quoted_for_spark(name: object) -> str:
    """The name of a column in Spark's SQL."""
    return "`" + str(name).replace("`", "``") + "`"


# ---------------------------------------------------------------- DuckDB


def quoted_for_duckdb(name: object) -> str:
    """The name of a column in SQL."""
    return '"' + str(name).replace('"', '""') + '"'


def _without_duckdb_collations(relation: Any) -> Any:
    """The relation without collations of its own, of its columns or of its connection.

    Texts that a collation calls equal fall into one group, named after any one of them: a record that names
    it could move all others into another cell. Labels of an enumeration become texts.
    """
    columns = []
    for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
        column = quoted_for_duckdb(name)
        if kind == "VARCHAR" or (kind.startswith("ENUM(") and kind.endswith(")")):
            columns.append(f'{column}::VARCHAR COLLATE "C" AS {column}')
        else:
            columns.append(column)
    return relation.project(", ".join(columns))


# ---------------------------------------------------------------- all engines

Found = TypeVar("Found")

ENGINES = {
    "polars": "Polars",
    "duckdb": "DuckDB",
    "dask": "Dask",
    "pyspark": "Spark",
    "pyarrow": "PyArrow",
    "pandas": "pandas",
}
"""The engines whose arithmetic is known to be the one that the sensitivities rest on."""

WITHOUT_COLLATIONS = {"pyspark": _without_spark_collations, "duckdb": _without_duckdb_collations}
"""Functions that make columns comparable where an engine has settings of its own."""

EXTRAS = {"duckdb": "duckdb", "_duckdb": "duckdb", "dask": "dask", "dask_expr": "dask", "pyspark": "spark"}
"""The extra of the package that a frame is of; that of Polars brings no more than narwhals for the others."""


def narwhals(frame: Any = None) -> Any:
    """The stable interface of narwhals.

    Raises MissingExtraError where it is not installed, naming the extra of the engine of ``frame``.
    """
    try:
        import narwhals.stable.v2 as library
    except ImportError:
        extra = EXTRAS.get(type(frame).__module__.partition(".")[0], "polars")
        raise MissingExtraError(
            "Frames of other engines than pandas need narwhals.", f'pip install "pdprivacy[{extra}]"'
        ) from None
    return library


def narwhals_frame(frame: Any) -> Any:
    """A frame of an engine as narwhals has it."""
    with warnings.catch_warnings():
        # narwhals reads only the columns of a Dask frame: its partitions are pandas frames
        warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
        return narwhals(frame).from_native(frame)


_ONE_AT_A_TIME = {"DuckDB": threading.RLock()}
"""Engines that refuse a query while their connection computes another one, which a relation does not name."""


def in_turn(engine: str) -> AbstractContextManager[object]:
    """Return the context in which no other thread queries an engine that takes one query at a time."""
    return _ONE_AT_A_TIME.get(engine, nullcontext())


def run_guarded(task: str, engine: str, action: Callable[[], Found]) -> Found:
    """Run the action; replace its failure by an error that holds nothing of the engine's message.

    An engine's message may print a cell, and so may whatever caused it: neither is kept.
    """
    try:
        with in_turn(engine):
            return action()
    except (EngineError, InvalidDataError) as error:  # our own
        failure: EngineError | InvalidDataError = error
    except Exception as error:
        kind = type(error).__name__
        failure = EngineError(
            f"{engine} failed to compute {task} ({kind}).", _FAILURES.get(kind, _OTHER_FAILURE)
        )
    # raised after the handler: the failure is no context of this error
    raise failure.with_traceback(None) from None


_OTHER_FAILURE = "what the engine said may hold data and is left out; compute the frame by itself to see it"
_FAILURES = {
    "OutOfMemoryException": "give DuckDB more memory, or a folder with room for what does not fit: "
    "con.sql(\"SET memory_limit='8GB'\"); con.sql(\"SET temp_directory='/var/tmp'\")",
    "ResourceInUseException": "another thread uses the connection of the relation; protect a relation of a "
    "connection of its own: con.cursor().table(...)",
    "MemoryError": "give the process more memory, or protect a lazy frame, which is read in pieces",
}
"""Hints for failures that the type of an engine's error tells apart."""


def in_partitions(frame: Any, run: Callable[[Any], list[Any]]) -> list[Any]:
    """Return the results of ``run`` on the partitions of a Dask frame, all in one computation.

    One task per partition: a plan of Dask expressions takes longer to prepare than most frames to read.

    Raises EngineError where a partition has another type than Dask says: in single precision, numbers would
    be put on the grid by other additions, and a null of one type is not null in another.
    """
    import dask

    library = narwhals()
    kinds = dict(frame.dtypes.items())

    def checked(part: Any) -> list[Any]:
        for name, kind in kinds.items():
            if not _same_kind(part[name].dtype, kind):
                raise EngineError(
                    f"A partition of Dask has column {name!r} as {_kind_without_labels(part[name].dtype)}, "
                    f"and the frame has it as {_kind_without_labels(kind)}.",
                    "give all partitions one type: frame.astype({column: type}), or when they are read",
                )
        return run(library.from_native(part))

    task = dask.delayed(checked)
    return [result for results in dask.compute(*map(task, frame.to_delayed())) for result in results]


def _same_kind(actual: Any, declared: Any) -> bool:
    """Return whether types are equal; all types of texts are, and all types of categories."""
    if str(actual) == str(declared) == "category" or actual == declared:
        return True
    texts = [kind == object or str(kind).startswith(("str", "large_string")) for kind in (actual, declared)]  # noqa: E721
    return all(texts)


def _kind_without_labels(kind: Any) -> str:
    """A type without its labels."""
    return str(getattr(kind, "name", kind)).partition("[")[0]


def open_frame(frame: Any) -> tuple[Any, str, Any]:
    """A frame as narwhals has it, the name of its engine, and the types of its columns.

    Raises ParameterError for what is no frame of a known engine, or has two columns of one name.
    """
    library = narwhals(frame)
    kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
    native = _of_pandas_api(frame)
    _refuse_connect(native)
    try:
        opened = narwhals_frame(native)
    except TypeError:
        opened = None
    except ValueError:  # narwhals refuses labels that pandas, Dask and PyArrow allow
        opened = native
    known = ", ".join(ENGINES.values())
    if opened is None or isinstance(opened, library.Series):
        raise ParameterError(f"'frame' must be a frame of {known} (got {kind}).")
    if opened is native:
        raise ParameterError("'frame' must have one column of each name.")
    name = opened.implementation.value
    if name not in ENGINES:
        raise ParameterError(f"Frames of {name} cannot be read (of {known} only).")
    if name == "pyspark":
        _refuse_twins(native)

    def typed(action: Callable[[], Any]) -> Any:
        return run_guarded("the types of its columns", ENGINES[name], action)

    if name in WITHOUT_COLLATIONS:
        opened = narwhals_frame(typed(lambda: WITHOUT_COLLATIONS[name](native)))
    schema = typed(opened.collect_schema)
    if len(set(schema)) < len(schema.names()) or len(set(_names(native))) < len(_names(native)):
        raise ParameterError("'frame' must have one column of each name.")
    if name == "pyspark":
        schema = typed(lambda: _spark_types(opened.to_native(), schema, library))
    return opened, ENGINES[name], schema


def _names(frame: Any) -> list[Any]:
    """The names of the columns where the engine has them at hand."""
    names = getattr(frame, "column_names", None)
    if names is None and type(frame).__module__.startswith(
        ("pandas", "dask", "duckdb", "_duckdb", "pyspark")
    ):
        names = frame.columns
    return [] if names is None else list(names)
