"""Released objects as plain JSON: whether it is a Series, labels with their types, dtypes, and cells.

What a file format does not hold is kept beside its numbers in this form, so that a release is read as it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
import pandas as pd

from pdprivacy import metadata
from pdprivacy.domain import Domain
from pdprivacy.errors import MetadataError, ParameterError
from pdprivacy.metadata import KEY, Released

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]

FORMAT = 1
SHAPE = "dp_shape"
"""The name, beside "dp", of the part that files other than pickles do not hold."""
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of cells of a CSV file that `shape_of` did not describe."""
MOST_EXPONENT = 1000
"""The largest power of ten of a decimal, whose digits could fill the memory."""


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
        return error.message.rstrip(".")
    return getattr(error, "strerror", None) or type(error).__name__


# ---------------------------------------------------------------- labels

_NULLS: dict[str, Any] = {"NaT": pd.NaT, "NA": pd.NA}


def _limited(label: Decimal) -> Decimal:
    """Return a decimal; ParameterError beyond `MOST_EXPONENT`."""
    if label.is_finite() and abs(label.adjusted()) > MOST_EXPONENT:
        raise ParameterError(
            f"A decimal label beyond 1e{MOST_EXPONENT} cannot be kept in a file.", "declare another label."
        )
    return label


# by type, where JSON has no word for it: its name there, how it is written and how it is read
_KINDS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    float: ("float", repr, float),  # that is not finite
    tuple: (
        "tuple",
        lambda label: [to_json(part) for part in label],
        lambda parts: tuple(map(from_json, parts)),
    ),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    Decimal: ("decimal", lambda label: str(_limited(label)), lambda text: _limited(Decimal(text))),
    Fraction: ("fraction", str, lambda text: Fraction(*map(int, text.split("/")))),
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
            "declare labels that are texts, numbers or dates; or leave it out: private.select([...]).",
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


# ---------------------------------------------------------------- shapes


def without_attrs(released: Released) -> pd.DataFrame:
    """Return a new frame without ``attrs``, which pandas would copy at each step.

    A Series becomes a column, named after its statistic if it has no name.
    """
    if isinstance(released, pd.DataFrame):
        return pd.DataFrame(released)
    name = released.attrs[KEY]["statistic"] if released.name is None else released.name
    return pd.Series(released).to_frame().set_axis(pd.Index([name], tupleize_cols=False), axis=1)


def shape_of(released: Released, *, cells: bool = False) -> Json:
    """Return what a file keeps beside the numbers of a release.

    ``cells``: whether the numbers are kept here, too; cells that are labels always are.

    Raises ParameterError for labels of a kind that no file can hold.
    """
    frame = without_attrs(released)
    shape: Json = {"format": FORMAT, "series": isinstance(released, pd.Series)}
    shape["rows"] = _axis_to_json(frame.index)
    if isinstance(released, pd.Series):
        shape["name"] = to_json(released.name)
    else:
        shape["columns"] = _axis_to_json(frame.columns)
    columns = [frame.iloc[:, position] for position in range(frame.shape[1])]
    dtypes = [_dtype_to_json(column.dtype) for column in columns]
    shape["dtypes"] = dtypes[0] if dtypes and all(dtype == dtypes[0] for dtype in dtypes) else dtypes
    if cells or any(column.dtype.kind not in "biuf" for column in columns):
        shape["cells"] = [[to_json(cell) for cell in column.tolist()] for column in columns]
    return {**shape, "digest": _digest(released.attrs[KEY], shape)}


def restored(attrs: Json, columns: Sequence[Any], where: str) -> Released:
    """Return the release that a file holds, its numbers not verified.

    ``attrs``: with the shape of the release. ``columns``: its numbers, where the shape does not hold them.
    ``where``: the file, for errors. Raises MetadataError for a shape that cannot be read, that another
    version wrote, or that was changed. Whoever can write a file can write its digest, so that an axis is also
    made only of as many labels as there are numbers.
    """
    attrs = dict(attrs)
    shape: Any = attrs.pop(SHAPE, None)
    file_format = shape.get("format") if isinstance(shape, dict) else None
    if file_format != FORMAT:
        raise MetadataError(
            f"{where} was written by another version of pdprivacy (format {file_format!r}, here {FORMAT}).",
            "read it with that version.",
        )
    if shape.get("digest", digest := _digest(attrs.get(KEY), shape)) != digest:
        raise MetadataError(
            f"{where} does not hold the metadata that were saved with the release.", "restore it from a copy."
        )
    # whatever pandas raises for labels that `shape_of` did not write
    released, failure = attempt(partial(_rebuilt, columns, shape), Exception)
    if released is None:
        raise MetadataError(f"{where} is damaged: its labels cannot be read ({failure}).")
    released.attrs = attrs
    return released  # type: ignore[no-any-return]


def verified(released: Released, where: str = "The file", alike: bool = True) -> Released:
    """Return what a file holds, if it is the release as it was made.

    A Series that pandas wrote as a frame of one column becomes a Series again. ``alike``: whether the labels
    of the file are those of the release. Raises MetadataError for a frame without release metadata, and for
    other numbers or labels.
    """
    original = metadata.as_released(released)
    if original is None or not alike:
        raise MetadataError(
            f"{where} does not hold the numbers and labels that were released.", "restore it from a copy."
        )
    return original


def _rebuilt(columns: Sequence[Any], shape: Json) -> Any:
    """Return the released object of these columns, or of the cells of the shape, without ``attrs``."""
    cells, dtypes = shape.get("cells"), shape["dtypes"]
    if cells is not None:
        columns = [[from_json(cell) for cell in column] for column in cells]
    each = dtypes if isinstance(dtypes, list) else [dtypes] * len(columns)
    rows = _axis_from_json(shape["rows"], len(columns[0]))
    series = [
        pd.Series(column, index=rows, dtype=_dtype_from_json(dtype))
        for column, dtype in zip(columns, each, strict=True)
    ]
    if shape["series"]:
        series[0].name = from_json(shape["name"])
        return series[0]
    frame = pd.DataFrame(dict(enumerate(series)), index=rows)
    return frame.set_axis(_axis_from_json(shape["columns"], len(columns)), axis=1)


def plain_labels(level: pd.Index[Any], nulls: str | None) -> Any:
    """Return labels for readers other than this package: whole numbers, and all else as text.

    ``nulls``: what becomes of a null; where it stays one, so do floats.
    """
    labels = level.tolist()
    kinds = {type(label) for label in labels}
    if kinds in ({str}, {int}) or (nulls is None and (kinds == {float} or level.dtype == "Int64")):
        return level
    return [nulls if label is None or label is pd.NA or label != label else str(label) for label in labels]


def _digest(facts: Any, shape: Json) -> str:
    """Return a hash of the metadata of a release and of its shape."""
    content = [facts, {name: value for name, value in shape.items() if name != "digest"}]
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _dtype_to_json(dtype: Any) -> Any:
    """Return a dtype as text, that of categories with their labels and order."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    labels = [to_json(label) for label in dtype.categories]
    return {"labels": labels, "dtype": str(dtype.categories.dtype), "ordered": bool(dtype.ordered)}


def _dtype_from_json(stored: Any) -> Any:
    """Return a dtype; ValueError for one whose cells have a length, which may be any."""
    if not isinstance(stored, dict):
        if stored == "str":  # objects with pandas 2
            return stored
        dtype = pd.api.types.pandas_dtype(stored) if isinstance(stored, str) else None
        if dtype is None or dtype.kind in "SUV":
            raise ValueError
        return dtype
    labels = [from_json(label) for label in stored["labels"]]
    categories: pd.Index[Any] = pd.Index(labels, dtype=_dtype_from_json(stored["dtype"]), tupleize_cols=False)
    return pd.CategoricalDtype(categories, stored["ordered"])


def _axis_to_json(axis: pd.Index[Any]) -> Json:
    """Return the labels of an axis by level; the codes only where they are not all combinations in order."""
    stored: Json = {"names": [to_json(name) for name in axis.names]}
    if isinstance(axis, pd.RangeIndex):
        return {**stored, "range": [axis.start, axis.stop, axis.step]}
    levels: list[Any] = list(axis.levels) if isinstance(axis, pd.MultiIndex) else [axis]
    stored["dtypes"] = [_dtype_to_json(level.dtype) for level in levels]
    stored["labels"] = [[to_json(label) for label in level.tolist()] for level in levels]
    if getattr(axis, "freq", None) is not None and isinstance(axis, pd.DatetimeIndex | pd.TimedeltaIndex):
        stored["freq"] = axis.freqstr
    if isinstance(axis, pd.MultiIndex):
        codes = [np.asarray(code, np.int64) for code in axis.codes]
        if not all(map(np.array_equal, codes, _product([len(level) for level in levels]))):
            stored["codes"] = [code.tolist() for code in codes]
    return stored


def _product(sizes: list[int]) -> list[Any]:
    """Return the codes of all combinations of labels in order; ``sizes``: the number of labels by level."""
    return [grid.ravel() for grid in np.indices(sizes)]


def _axis_from_json(stored: Json, length: int) -> pd.Index[Any]:
    """Return an axis of this length; ValueError, before it is made, for one of another length."""
    names = [from_json(name) for name in stored["names"]]
    if "range" in stored:
        lengths = {len(range(*stored["range"]))}
    elif "codes" in stored:
        lengths = set(map(len, stored["codes"]))
    else:
        lengths = {math.prod(map(len, stored["labels"]))}
    if lengths != {length}:
        raise ValueError
    if "range" in stored:
        start, stop, step = stored["range"]
        return pd.RangeIndex(start, stop, step, name=names[0])
    levels: list[Any] = [
        pd.Index([from_json(label) for label in labels], dtype=_dtype_from_json(dtype), tupleize_cols=False)
        for labels, dtype in zip(stored["labels"], stored["dtypes"], strict=True)
    ]
    if len(levels) == 1 and len(names) == 1 and "codes" not in stored:
        single: Any = levels[0].rename(names[0])
        if "freq" in stored:
            single.freq = stored["freq"]
        return single  # type: ignore[no-any-return]
    codes = stored.get("codes", _product([len(level) for level in levels]))
    return pd.MultiIndex(levels=levels, codes=codes, names=names)
