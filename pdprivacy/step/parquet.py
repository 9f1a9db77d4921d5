"""Released frames as Parquet, and back as they were: numbers, labels, dtypes and ``attrs["dp"]``.

A file is what pandas writes, with ``attrs["dp"]`` in it, so that anything that reads Parquet can read it.
What pandas would not give back the same is stored as JSON beside it, under another key of ``attrs``: that the
release is a Series, labels that are not all text, nulls among them, and cells that are labels.
"""

from __future__ import annotations

import io
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy import checks, metadata
from pdprivacy.errors import MetadataError, MissingExtraError
from pdprivacy.metadata import KEY
from pdprivacy.step.labels import from_json, to_json

__all__ = ["check_pyarrow", "from_bytes", "read_release", "to_bytes"]

Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"
Json: TypeAlias = dict[str, Any]

FORMAT = 1
LARGEST = 2**31 - 1
"""Bytes of the metadata of a file."""
ATTRS = b"PANDAS_ATTRS"
"""The key under which pandas keeps ``attrs`` in a file."""
SHAPE = "dp_shape"
"""The key of ``attrs`` that says what Parquet does not."""


def check_pyarrow() -> None:
    """Refuse to go on without what writes Parquet; raises MissingExtraError."""
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            "Releases are stored as Parquet, which needs pyarrow.", 'pip install "pdprivacy[parquet]".'
        )


def read_release(path: str | os.PathLike[str]) -> Released:
    """A release that a step stored, as it was: also a Series, and labels that Parquet cannot hold.

    ``pd.read_parquet`` reads the numbers and ``attrs["dp"]`` as well, but gives a Series as a frame of one
    column, and text for labels that are no text.

    Raises
    ------
    MetadataError : a file that is damaged, holds no release, or whose numbers are not the released ones.
        Also where there is no such file, or none that can be read.
    ParameterError : no path. MissingExtraError : without pyarrow (extra ``parquet``).
    """
    name = checks.path(path, "path", 'pdprivacy.read_release("released/table.parquet").')
    check_pyarrow()
    try:
        return from_bytes(Path(name).read_bytes(), name)
    except OSError as error:
        reason = error.strerror or "the system failed"
    raise MetadataError(f"The file of the release cannot be read: {reason}.")  # and not by its name


# ---------------------------------------------------------------- writing


def to_bytes(released: Released) -> tuple[bytes, Released]:
    """The file of a release, and the release as it is read from there.

    Raises ParameterError for labels of a kind that no file can keep; MetadataError where what would be read
    is not the same.
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
    if any(column.dtype.kind not in "biuf" for column in columns):
        shape["cells"] = [[to_json(cell) for cell in column.tolist()] for column in columns]
        columns = [_texts(column) for column in columns]
    attrs = {KEY: released.attrs[KEY], SHAPE: shape}
    for rows, names in (
        (_readable(frame.index), _readable(frame.columns, nulls="")),
        (pd.RangeIndex(len(frame)), pd.Index([f"column {place}" for place in range(frame.shape[1])])),
    ):
        written = _written(columns, rows, names, attrs)
        if written is not None:
            return written
    raise MetadataError("The release cannot be written so that it is read as it was.")


def _framed(released: Released) -> pd.DataFrame:
    """A frame of its own without ``attrs``, which pandas would copy at each step.

    A Series is a column, under the name of its statistic where it has none.
    """
    if isinstance(released, pd.DataFrame):
        return pd.DataFrame(released)
    name = released.attrs[KEY]["statistic"] if released.name is None else released.name
    return pd.Series(released).to_frame(name)


def _written(
    columns: list[pd.Series[Any]], rows: pd.Index[Any], names: pd.Index[Any], attrs: Json
) -> tuple[bytes, Released] | None:
    """The file with these axes; None where Arrow cannot hold them, or another release would be read.

    As pandas writes it; but pandas copies ``attrs`` with every column, which may be megabytes.
    """
    from pyarrow import Table, parquet

    buffer = io.BytesIO()
    plain = pd.DataFrame({place: column.to_numpy() for place, column in enumerate(columns)})
    plain = plain.set_axis(rows, axis=0).set_axis(names, axis=1)
    try:
        table = Table.from_pandas(plain)
        facts = {**table.schema.metadata, ATTRS: json.dumps(attrs).encode()}
        parquet.write_table(table.replace_schema_metadata(facts), buffer)
        return buffer.getvalue(), from_bytes(buffer.getvalue())
    except Exception:  # whatever pandas and Arrow raise for two columns of one name, and the like
        return None


def _axis_to_json(axis: pd.Index[Any]) -> Json:
    """The labels of an axis, each once, and where they stand; of an index of one level, in order."""
    found: Json = {"names": [to_json(name) for name in axis.names]}
    if isinstance(axis, pd.RangeIndex):
        return {**found, "range": [axis.start, axis.stop, axis.step]}
    if not isinstance(axis, pd.MultiIndex):
        return {**found, "dtypes": [str(axis.dtype)], "labels": [[to_json(label) for label in axis.tolist()]]}
    found["dtypes"] = [str(level.dtype) for level in axis.levels]
    found["labels"] = [[to_json(label) for label in level.tolist()] for level in axis.levels]
    codes = [np.asarray(code, np.int64) for code in axis.codes]
    if not all(map(np.array_equal, codes, _product([len(level) for level in axis.levels]))):
        found["codes"] = [code.tolist() for code in codes]
    return found


def _product(sizes: list[int]) -> list[Any]:
    """The codes of all combinations of so many labels, in order."""
    return [grid.ravel() for grid in np.indices(sizes)]


def _readable(axis: pd.Index[Any], nulls: str | None = None) -> pd.Index[Any]:
    """The axis for whoever reads the file without us: text, but for whole numbers and rows of floats."""
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


def _texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """Cells that are labels, for whoever reads the file without us."""
    return column if column.dtype.kind in "biuf" else column.map(str).astype(object)


# ---------------------------------------------------------------- reading


def from_bytes(data: bytes, name: str | None = None) -> Released:
    """The release in a file; ``name``: of the file, for errors. Raises MetadataError, as `read_release`."""
    where = "The file" if name is None else f"The file {name!r}"
    frame, failure = None, ""
    try:
        frame = pd.read_parquet(io.BytesIO(data), engine="pyarrow", thrift_string_size_limit=LARGEST)
    except Exception as error:  # whatever Arrow raises for bytes that are no Parquet
        failure = type(error).__name__
    if frame is None:
        raise MetadataError(
            f"{where} is damaged, or no Parquet: it cannot be read ({failure}).", "restore it from a copy."
        )
    facts = metadata.read(frame)
    shape = frame.attrs.pop(SHAPE, None)
    if shape is not None:
        attrs, frame.attrs = frame.attrs, {}
        frame = _restored(frame, shape, where)
        frame.attrs = attrs
    if metadata.fingerprint(frame) != facts.fingerprint:
        raise MetadataError(
            f"{where} does not hold the numbers and labels that were released.", "restore it from a copy."
        )
    return frame


def _restored(frame: pd.DataFrame, shape: Json, where: str) -> Any:
    """The released object of what is in a file."""
    if shape.get("format") != FORMAT:
        raise MetadataError(
            f"{where} was written by another version of pdprivacy "
            f"(format {shape.get('format')!r}, here {FORMAT}).",
            "read it with that version.",
        )
    released, failure = None, ""
    try:
        released = _rebuilt(frame, shape)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        failure = type(error).__name__
    if released is None:
        raise MetadataError(f"{where} is damaged: its labels cannot be read ({failure}).")
    return released


def _rebuilt(frame: pd.DataFrame, shape: Json) -> Any:
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
