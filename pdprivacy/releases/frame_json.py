"""Frames as plain JSON: labels with their types, axes, dtypes and cells, and a frame packed into one text."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pandas as pd

from pdprivacy.errors import MetadataError, ParameterError

Json: TypeAlias = dict[str, Any]
Frame: TypeAlias = "pd.Series[Any] | pd.DataFrame"

MOST_EXPONENT = 1000
"""The largest power of ten of a decimal, whose digits could fill the memory."""

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


# ---------------------------------------------------------------- frames


def frame_to_json(frame: Frame, *, cells: bool = False) -> Json:
    """Return what `frame_from_json` needs beside the columns of numbers; with ``cells`` also these.

    Cells that are labels are always there. Raises ParameterError for labels of a kind that has no text.
    """
    shape: Json = {"series": isinstance(frame, pd.Series), "rows": axis_to_json(frame.index)}
    if isinstance(frame, pd.Series):
        shape["name"] = to_json(frame.name)
        columns = [frame]
    else:
        shape["columns"] = axis_to_json(frame.columns)
        frame = pd.DataFrame(frame)  # without attrs, which pandas copies with every column
        columns = [frame.iloc[:, position] for position in range(frame.shape[1])]
    dtypes = [dtype_to_json(column.dtype) for column in columns]
    shape["dtypes"] = dtypes[0] if dtypes and all(dtype == dtypes[0] for dtype in dtypes) else dtypes
    if cells or any(column.dtype.kind not in "biuf" for column in columns):
        shape["cells"] = [[to_json(cell) for cell in column.tolist()] for column in columns]
    return shape


def frame_from_json(columns: Sequence[Any], shape: Json) -> Any:
    """Return the frame of these columns, or of the cells of the shape."""
    cells, dtypes = shape.get("cells"), shape["dtypes"]
    if cells is not None:
        columns = [[from_json(cell) for cell in column] for column in cells]
    each = dtypes if isinstance(dtypes, list) else [dtypes] * len(columns)
    rows = axis_from_json(shape["rows"], len(columns[0]))
    series = [
        pd.Series(column, index=rows, dtype=dtype_from_json(dtype))
        for column, dtype in zip(columns, each, strict=True)
    ]
    if shape["series"]:
        series[0].name = from_json(shape["name"])
        return series[0]
    frame = pd.DataFrame(dict(enumerate(series)), index=rows)
    return frame.set_axis(axis_from_json(shape["columns"], len(columns)), axis=1)


def dtype_to_json(dtype: Any) -> Any:
    """Return a dtype as text, that of categories with their labels and order."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    labels = [to_json(label) for label in dtype.categories]
    return {"labels": labels, "dtype": str(dtype.categories.dtype), "ordered": bool(dtype.ordered)}


def dtype_from_json(stored: Any) -> Any:
    """Return a dtype; ValueError for one whose cells have a length, which may be any."""
    if not isinstance(stored, dict):
        if stored == "str":  # objects with pandas 2
            return stored
        dtype = pd.api.types.pandas_dtype(stored) if isinstance(stored, str) else None
        if dtype is None or dtype.kind in "SUV":
            raise ValueError
        return dtype
    labels = [from_json(label) for label in stored["labels"]]
    categories: pd.Index[Any] = pd.Index(labels, dtype=dtype_from_json(stored["dtype"]), tupleize_cols=False)
    return pd.CategoricalDtype(categories, stored["ordered"])


def axis_to_json(axis: pd.Index[Any]) -> Json:
    """Return the labels of an axis by level; the codes only where they are not all combinations in order."""
    stored: Json = {"names": [to_json(name) for name in axis.names]}
    if isinstance(axis, pd.RangeIndex):
        return {**stored, "range": [axis.start, axis.stop, axis.step]}
    levels: list[Any] = list(axis.levels) if isinstance(axis, pd.MultiIndex) else [axis]
    stored["dtypes"] = [dtype_to_json(level.dtype) for level in levels]
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


def axis_from_json(stored: Json, length: int) -> pd.Index[Any]:
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
        pd.Index([from_json(label) for label in labels], dtype=dtype_from_json(dtype), tupleize_cols=False)
        for labels, dtype in zip(stored["labels"], stored["dtypes"], strict=True)
    ]
    if len(levels) == 1 and len(names) == 1 and "codes" not in stored:
        single: Any = levels[0].rename(names[0])
        if "freq" in stored:
            single.freq = stored["freq"]
        return single  # type: ignore[no-any-return]
    codes = stored.get("codes", _product([len(level) for level in levels]))
    return pd.MultiIndex(levels=levels, codes=codes, names=names)


# ---------------------------------------------------------------- one text

SHORT = 600
"""The longest text of a frame that is not compressed, in characters."""

LARGEST = 2**27
"""Bytes of a frame in a compressed text."""


def pack(frame: Frame) -> str | None:
    """Return a frame as one text, which pandas copies with ``attrs`` at no cost; None where no text holds it.

    The text of a small frame is JSON. A longer one is compressed: counts take one to three bytes each, and
    other numbers about ten.

    >>> text = pack(pd.Series([3, 5], index=["no", "yes"]))
    >>> json.loads(text)["cells"], unpack(text).equals(pd.Series([3, 5], index=["no", "yes"]))
    ([[3, 5]], True)
    """
    try:
        if frame.size <= SHORT // 4:
            text = json.dumps(frame_to_json(frame, cells=True), allow_nan=False, separators=(",", ":"))
            return text if len(text) <= SHORT else _compressed(text.encode())
        values = _in_one_array(frame)
        shape = frame_to_json(frame, cells=values is None)
    except ParameterError:
        return None
    data = b""
    if values is not None:
        shape["width"] = 1 if values.ndim == 1 else values.shape[1]
        shape["numbers"], data = values.dtype.str, np.ascontiguousarray(values.T).tobytes()
    return _compressed(json.dumps(shape, allow_nan=False, separators=(",", ":")).encode() + b"\n" + data)


def _compressed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode()


def _in_one_array(frame: Frame) -> Any:
    """Return numbers in the smallest type that holds them; None for columns of several types."""
    dtypes = {frame.dtype} if isinstance(frame, pd.Series) else set(frame.dtypes)
    (dtype, *more) = dtypes or {None}
    if more or not isinstance(dtype, np.dtype) or dtype.kind not in "if":
        return None
    values = frame.to_numpy()
    if dtype.kind == "f":
        return values.astype(f"<f{dtype.itemsize}")
    return values.astype(np.min_scalar_type(int(max(values.max(), -values.min(), 1)) * -1).newbyteorder("<"))


def unpack(text: str) -> Frame:
    """Return the frame in a text of `pack`; raise MetadataError for any other text."""
    try:
        if text.startswith("{"):
            return frame_from_json([], json.loads(text))  # type: ignore[no-any-return]
        data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), LARGEST)
        line, _, numbers = data.partition(b"\n")
        shape, columns = json.loads(line), []
        if "numbers" in shape:
            columns = list(np.frombuffer(numbers, shape["numbers"]).reshape(shape["width"], -1))
        return frame_from_json(columns, shape)  # type: ignore[no-any-return]
    except Exception:  # whatever pandas raises for labels that `pack` did not write
        raise MetadataError("The release metadata does not hold the released numbers ('original').") from None
