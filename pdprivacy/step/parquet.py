"""Released frames as Parquet files that give them back unchanged: numbers, labels, dtypes, ``attrs["dp"]``.

A file is what pandas writes, with ``attrs["dp"]`` in it, so that anything that reads Parquet can read it.
Another key of ``attrs`` holds as JSON what pandas does not restore: that the release is a Series, labels
that are not text, nulls among labels, and cells that are labels.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
import pandas as pd

from pdprivacy import checks, metadata
from pdprivacy.domain import Domain
from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError
from pdprivacy.metadata import KEY

__all__ = ["attempt", "check_labels", "check_pyarrow", "from_bytes", "from_json", "read_release", "reason"]
__all__ += ["to_bytes", "to_json"]

T = TypeVar("T")
Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"
Json: TypeAlias = dict[str, Any]

FORMAT = 1
LARGEST = 2**31 - 1
"""The largest metadata of a file, in bytes."""
ATTRS = b"PANDAS_ATTRS"
"""The key under which pandas stores ``attrs`` in a file."""
SHAPE = "dp_shape"
"""The key of ``attrs`` for what Parquet does not hold."""
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of labels that `to_bytes` did not write."""


def check_pyarrow() -> None:
    """Raise MissingExtraError where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            "Releases are stored as Parquet, which needs pyarrow.", 'pip install "pdprivacy[parquet]".'
        )


def read_release(path: str | os.PathLike[str]) -> Released:
    """Read a release that a step stored, unchanged: also a Series, and labels that Parquet cannot hold.

    ``pd.read_parquet`` reads the numbers and ``attrs["dp"]`` as well, but returns a Series as a frame of one
    column, and text for labels that are not text.

    Raises
    ------
    MetadataError : a file that is missing, unreadable or damaged, that holds no release, or whose numbers are
        not the released ones.
    ParameterError : an invalid path. MissingExtraError : pyarrow (extra ``parquet``) is not installed.
    """
    name = checks.path(path, "path", 'pdprivacy.read_release("released/table.parquet").')
    check_pyarrow()
    data, failure = attempt(Path(name).read_bytes, OSError)
    if data is None:
        raise MetadataError(f"The file of the release cannot be read: {failure}.")  # and not by its name
    return from_bytes(data, name)


def attempt(function: Callable[[], T], *errors: type[Exception]) -> tuple[T | None, str]:
    """Return the result of a function and no text, or None and the reason of one of these errors.

    What is raised afterwards has no context, whose locals could hold cells.
    """
    try:
        return function(), ""
    except errors as error:
        return None, reason(error)


def reason(error: Exception) -> str:
    """Return the reason of an error without any value: as the system or this package states it, or its type.

    >>> reason(FileNotFoundError(2, "No such file or directory")), reason(KeyError("a cell"))
    ('No such file or directory', 'KeyError')
    """
    if isinstance(error, MetadataError):
        return str(error).partition("\nHint")[0].rstrip(".")
    return getattr(error, "strerror", None) or type(error).__name__


# ---------------------------------------------------------------- labels

_NULLS: dict[str, Any] = {"NaT": pd.NaT, "NA": pd.NA}

# by type, where JSON has no word for it: its name there, how it is written and how it is read
_KINDS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    float: ("float", repr, float),  # that is not finite
    tuple: (
        "tuple",
        lambda label: [to_json(part) for part in label],
        lambda parts: tuple(map(from_json, parts)),
    ),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    Decimal: ("decimal", str, Decimal),
    Fraction: ("fraction", str, Fraction),
    UUID: ("uuid", str, UUID),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    timedelta: (
        "timedelta",
        lambda label: [label.days, label.seconds, label.microseconds],
        lambda parts: timedelta(*parts),
    ),
    pd.Timestamp: ("Timestamp", pd.Timestamp.isoformat, pd.Timestamp),
    pd.Timedelta: ("Timedelta", pd.Timedelta.isoformat, pd.Timedelta),
    pd.Interval: (
        "Interval",
        lambda label: [to_json(label.left), to_json(label.right), label.closed],
        lambda parts: pd.Interval(from_json(parts[0]), from_json(parts[1]), parts[2]),
    ),
    pd.Period: (
        "Period",
        lambda label: [str(label), label.freqstr],
        lambda parts: pd.Period(parts[0], freq=parts[1]),
    ),
}
_READERS = {name: read for name, _, read in _KINDS.values()}


def to_json(label: Any) -> Any:
    """Return a label as JSON: text, numbers and truth values unchanged, any other label with its kind.

    Raises ParameterError for a label of a kind that has no text, such as a member of an Enum.

    >>> to_json("north"), to_json((1, None)), to_json(Decimal("0.5"))
    ('north', {'tuple': [1, None]}, {'decimal': '0.5'})
    """
    if label is None or type(label) in (str, bool, int) or (type(label) is float and math.isfinite(label)):
        return label
    for name, null in _NULLS.items():
        if label is null:
            return {"null": name}
    if isinstance(label, np.datetime64 | np.timedelta64):
        return to_json(pd.Timestamp(label) if isinstance(label, np.datetime64) else pd.Timedelta(label))
    if isinstance(label, np.generic):
        return to_json(label.item())
    known = _KINDS.get(type(label))
    if known is None:
        raise ParameterError(
            f"A label of type {type(label).__name__} cannot be kept in a file.",
            "declare labels that are texts, numbers or dates; or leave the column out: "
            'private.dp.select(["age"]).',
        )
    name, write, _ = known
    return {name: write(label)}


def from_json(stored: Any) -> Any:
    """Return the label that `to_json` wrote; raise MetadataError for an unknown kind."""
    if not isinstance(stored, dict):
        return stored
    ((name, value),) = stored.items()
    if name == "null":
        return _NULLS[value]
    if name not in _READERS:
        raise MetadataError(f"The file holds a label of an unknown kind ({name!r}).")
    return _READERS[name](value)


def check_labels(domain: Domain) -> None:
    """Refuse a declaration with labels that no file can hold, before a release is paid for.

    Raises ParameterError.
    """
    for column in domain.columns:
        if column.role != "identifier":
            for label in (column.name, *(column.categories or ())):
                to_json(label)


# ---------------------------------------------------------------- writing


def to_bytes(released: Released) -> tuple[bytes, Released]:
    """Return the file of a release, and the release as it is read from the file.

    Raises ParameterError for labels of a kind that no file can hold; MetadataError where the file would not
    give the same release back.
    """
    shape: Json = {"format": FORMAT, "series": isinstance(released, pd.Series)}
    frame = _framed(released)
    shape["rows"] = _axis_to_json(frame.index)
    if isinstance(released, pd.Series):
        shape["name"] = to_json(released.name)
    else:
        shape["columns"] = _axis_to_json(frame.columns)
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    shape["dtypes"] = [str(column.dtype) for column in columns]
    if len(set(shape["dtypes"])) == 1:
        shape["dtypes"] = shape["dtypes"][0]
    numbers = [column.dtype.kind in "biuf" for column in columns]
    if not all(numbers):  # cells that are labels, as text for readers other than this package
        shape["cells"] = [[to_json(cell) for cell in column.tolist()] for column in columns]
        columns = [
            column if number else column.map(str).astype(object)
            for column, number in zip(columns, numbers, strict=True)
        ]
    attrs = {KEY: released.attrs[KEY], SHAPE: shape}
    for rows, names in (
        (_readable(frame.index), _readable(frame.columns, nulls="")),
        (pd.RangeIndex(len(frame)), pd.Index([f"column {place}" for place in range(frame.shape[1])])),
    ):
        # whatever pandas and Arrow raise for two columns of one name, and the like
        written, _ = attempt(partial(_written, columns, rows, names, attrs), Exception)
        if written is not None:
            return written
    raise MetadataError("The release cannot be written so that it is read as it was.")


def _framed(released: Released) -> pd.DataFrame:
    """Return a new frame without ``attrs``, which pandas would copy at each step.

    A Series becomes a column, named after its statistic if it has no name.
    """
    if isinstance(released, pd.DataFrame):
        return pd.DataFrame(released)
    name = released.attrs[KEY]["statistic"] if released.name is None else released.name
    return pd.Series(released).to_frame(name)


def _written(
    columns: list[pd.Series[Any]], rows: pd.Index[Any], names: pd.Index[Any], attrs: Json
) -> tuple[bytes, Released]:
    """Return the file with these axes, and what is read from it.

    The file is what pandas writes, but pandas copies ``attrs``, which may be megabytes, with every column.
    """
    from pyarrow import Table, parquet

    buffer = io.BytesIO()
    plain = pd.DataFrame({place: column.to_numpy() for place, column in enumerate(columns)})
    table = Table.from_pandas(plain.set_axis(rows, axis=0).set_axis(names, axis=1))
    facts = {**table.schema.metadata, ATTRS: json.dumps(attrs).encode()}
    parquet.write_table(table.replace_schema_metadata(facts), buffer)
    return buffer.getvalue(), from_bytes(buffer.getvalue())


def _axis_to_json(axis: pd.Index[Any]) -> Json:
    """Return the labels of an axis by level; the codes only where they are not all combinations in order."""
    found: Json = {"names": [to_json(name) for name in axis.names]}
    if isinstance(axis, pd.RangeIndex):
        return {**found, "range": [axis.start, axis.stop, axis.step]}
    levels: list[Any] = list(axis.levels) if isinstance(axis, pd.MultiIndex) else [axis]
    found["dtypes"] = [str(level.dtype) for level in levels]
    found["labels"] = [[to_json(label) for label in level.tolist()] for level in levels]
    if isinstance(axis, pd.MultiIndex):
        codes = [np.asarray(code, np.int64) for code in axis.codes]
        if not all(map(np.array_equal, codes, _product([len(level) for level in levels]))):
            found["codes"] = [code.tolist() for code in codes]
    return found


def _product(sizes: list[int]) -> list[Any]:
    """Return the codes of all combinations of labels in order; ``sizes``: the number of labels by level."""
    return [grid.ravel() for grid in np.indices(sizes)]


def _readable(axis: pd.Index[Any], nulls: str | None = None) -> pd.Index[Any]:
    """Return the axis for readers other than this package: text, whole numbers, and floats in rows."""
    names = [name if name is None else str(name) for name in axis.names]
    if isinstance(axis, pd.RangeIndex):
        return axis.set_names(names)
    levels = [_readable_level(axis.get_level_values(place), nulls) for place in range(axis.nlevels)]
    if len(levels) > 1:
        return pd.MultiIndex.from_arrays(levels, names=names)
    single: pd.Index[Any] = pd.Index(levels[0], name=names[0], tupleize_cols=False)
    return single


def _readable_level(level: pd.Index[Any], nulls: str | None) -> Any:
    labels = level.tolist()
    kinds = {type(label) for label in labels}
    if kinds in ({str}, {int}) or (nulls is None and kinds == {float}):
        return level
    return [nulls if label is None or label is pd.NA or label != label else str(label) for label in labels]


# ---------------------------------------------------------------- reading


def from_bytes(data: bytes, name: str | None = None) -> Released:
    """Return the release in a file, verified; raise MetadataError as `read_release`.

    ``name``: of the file, for errors.
    """
    where = "The file" if name is None else f"The file {name!r}"
    frame, failure = attempt(
        lambda: pd.read_parquet(io.BytesIO(data), engine="pyarrow", thrift_string_size_limit=LARGEST),
        Exception,  # whatever Arrow raises for bytes that are no Parquet
    )
    if frame is None:
        raise MetadataError(
            f"{where} is damaged, or no Parquet: it cannot be read ({failure}).", "restore it from a copy."
        )
    facts = metadata.read(frame)
    released: Any = frame
    shape = frame.attrs.pop(SHAPE, None)
    if shape is not None:
        if shape.get("format") != FORMAT:
            raise MetadataError(
                f"{where} was written by another version of pdprivacy "
                f"(format {shape.get('format')!r}, here {FORMAT}).",
                "read it with that version.",
            )
        attrs, frame.attrs = frame.attrs, {}
        released, failure = attempt(partial(_rebuilt, frame, shape), *UNREADABLE)
        if released is None:
            raise MetadataError(f"{where} is damaged: its labels cannot be read ({failure}).")
        released.attrs = attrs
    if metadata.fingerprint(released) != facts.fingerprint:
        raise MetadataError(
            f"{where} does not hold the numbers and labels that were released.", "restore it from a copy."
        )
    return released  # type: ignore[no-any-return]


def _rebuilt(frame: pd.DataFrame, shape: Json) -> Any:
    """Return the released object of the frame in a file."""
    width, dtypes = frame.shape[1], shape["dtypes"]
    dtypes = [dtypes] * width if isinstance(dtypes, str) else dtypes
    rows = _axis_from_json(shape["rows"])
    cells = shape.get("cells")
    values: list[Any] = (
        [frame.iloc[:, place].to_numpy() for place in range(width)]
        if cells is None
        else [[from_json(cell) for cell in column] for column in cells]
    )
    columns = [pd.Series(value, index=rows, dtype=dtype) for value, dtype in zip(values, dtypes, strict=True)]
    if shape["series"]:
        columns[0].name = from_json(shape["name"])
        return columns[0]
    names = _axis_from_json(shape["columns"])
    return pd.DataFrame(dict(enumerate(columns)), index=rows).set_axis(names, axis=1)


def _axis_from_json(stored: Json) -> pd.Index[Any]:
    names = [from_json(name) for name in stored["names"]]
    if "range" in stored:
        start, stop, step = stored["range"]
        return pd.RangeIndex(start, stop, step, name=names[0])
    levels: list[Any] = [
        pd.Index([from_json(label) for label in labels], dtype=dtype, tupleize_cols=False)
        for labels, dtype in zip(stored["labels"], stored["dtypes"], strict=True)
    ]
    if len(levels) == 1 and len(names) == 1 and "codes" not in stored:
        single: pd.Index[Any] = levels[0].rename(names[0])
        return single
    codes = stored.get("codes", _product([len(level) for level in levels]))
    return pd.MultiIndex(levels=levels, codes=codes, names=names)
