"""Frames of Spark, made ready to be read: where Spark differs from the other engines.

Its doubles are those of the processor (Java has no others), its planner moves terms of integers only, and
its sums of integers are below 2**63 by the bounds. What differs is settled here or in `column_expressions`:

- names are told apart without regard to case, and a dot in one reads a field of a structure;
- a text may have a collation, by which different texts are equal: it is taken off;
- a time is an instant or a time on a clock, and a constant of Python becomes one by the time zones of this
  process and of the session: times are read as texts and as whole numbers, which no zone changes;
- what is neither number, text, truth value nor time is refused, never converted.
"""

from __future__ import annotations

import datetime
import warnings
from dataclasses import dataclass
from typing import Any

from pdprivacy.errors import ParameterError

__all__ = [
    "SparkTimes",
    "no_such_name",
    "of_pandas_api",
    "quoted",
    "refuse_connect",
    "refuse_twins",
    "settled",
    "types",
]


@dataclass(frozen=True, slots=True)
class SparkTimes:
    """The type of a column of days, of times on a clock, or of instants, of Spark."""

    kind: str

    def is_numeric(self) -> bool:
        """No number."""
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


def of_pandas_api(frame: Any) -> Any:
    """The Spark frame below one of pyspark.pandas; other frames as they are."""
    if type(frame).__module__.startswith("pyspark.pandas.") and hasattr(frame, "to_spark"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the index is left out, as that of every frame
            return frame.to_spark()
    return frame


def refuse_connect(frame: Any) -> None:
    """Refuse a frame of Spark Connect by name: its plans are made by a server that is not asked here."""
    if ".connect." in f"{type(frame).__module__}." and type(frame).__module__.startswith("pyspark."):
        raise ParameterError(
            "'frame' must not be a frame of Spark Connect.",
            'a session without a remote address: SparkSession.builder.master("local[*]")',
        )


def refuse_twins(frame: Any) -> None:
    """Refuse with a ParameterError two columns that have one name but for the case of letters."""
    if len({str(name).lower() for name in frame.columns}) < len(frame.columns):
        raise ParameterError(
            "'frame' must have one column of each name, in upper or lower case.",
            'frame.withColumnRenamed("X", "x_2")',
        )


def settled(frame: Any) -> Any:
    """The frame with its texts compared byte by byte."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType

    collated = {
        field.name: functions.col(quoted(field.name)).cast("string")
        for field in frame.schema
        if isinstance(field.dataType, StringType) and field.dataType != StringType()
    }
    return frame.withColumns(collated) if collated else frame


def types(frame: Any, schema: Any, library: Any) -> Any:
    """The types of the columns, times apart; `Object` for those that cannot be read."""
    from pyspark.sql import types as spark

    found = library.Schema(schema)
    for field in frame.schema:
        kind = field.dataType
        if isinstance(kind, spark.DateType):
            found[field.name] = SparkTimes("date")
        elif isinstance(kind, spark.TimestampNTZType):
            found[field.name] = SparkTimes("clock")
        elif isinstance(kind, spark.TimestampType):
            found[field.name] = SparkTimes("instant")
        elif found[field.name] == library.Unknown and not isinstance(kind, spark.NullType):
            found[field.name] = library.Object()
    return found


def no_such_name(name: Any) -> bool:
    """Whether Spark reads a name as a field of another column."""
    return isinstance(name, str) and ("." in name or "`" in name)


def quoted(name: object) -> str:
    """The name of a column in Spark's SQL."""
    return "`" + str(name).replace("`", "``") + "`"
