"""Releases as Parquet files that give them back unchanged: numbers, labels, dtypes, ``attrs["dp"]``.

A file is what pandas writes, with ``attrs["dp"]`` in it, so that anything that reads Parquet can read it.
Another key of ``attrs`` holds as JSON what pandas does not restore: that the release is a Series, labels
that are not text, nulls among labels, and cells that are labels.
"""

from __future__ import annotations

import io
import json
from functools import partial
from importlib.util import find_spec
from typing import Any

import pandas as pd

from pdprivacy.errors import MetadataError, MissingExtraError
from pdprivacy.metadata import KEY
from pdprivacy.storage import shapes
from pdprivacy.storage.shapes import SHAPE, Json, Released, attempt

__all__ = ["check_pyarrow", "from_bytes", "read", "to_bytes"]

LARGEST = 2**31 - 1
"""The largest metadata of a file, in bytes."""
ATTRS = b"PANDAS_ATTRS"
"""The key under which pandas stores ``attrs`` in a file."""


def check_pyarrow() -> None:
    """Raise MissingExtraError where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            "Releases are stored as Parquet, which needs pyarrow.", 'pip install "pdprivacy[parquet]".'
        )


def to_bytes(released: Released) -> tuple[bytes, Released]:
    """Return the file of a release, and the release as it is read from the file.

    Raises ParameterError for labels of a kind that no file can hold; MetadataError where the file would not
    give the same release back.
    """
    frame = shapes.framed(released)
    columns = [  # cells that are labels as text, for readers other than this package
        column if column.dtype.kind in "biuf" else column.map(str).astype(object)
        for column in (frame.iloc[:, place] for place in range(frame.shape[1]))
    ]
    attrs = {KEY: released.attrs[KEY], SHAPE: shapes.shape_of(released)}
    for rows, names in (
        (_readable(frame.index), _readable(frame.columns, nulls="")),
        (pd.RangeIndex(len(frame)), pd.Index([f"column {place}" for place in range(frame.shape[1])])),
    ):
        # whatever pandas and Arrow raise for two columns of one name, and the like
        written, _ = attempt(partial(_written, columns, rows, names, attrs), Exception)
        if written is not None:
            return written
    raise MetadataError("The release cannot be written so that it is read as it was.")


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


def _readable(axis: pd.Index[Any], nulls: str | None = None) -> pd.Index[Any]:
    """Return the axis for readers other than this package: text, whole numbers, and floats in rows."""
    names = [name if name is None else str(name) for name in axis.names]
    if isinstance(axis, pd.RangeIndex):
        return axis.set_names(names)
    levels = [shapes.plain_labels(axis.get_level_values(place), nulls) for place in range(axis.nlevels)]
    if len(levels) > 1:
        return pd.MultiIndex.from_arrays(levels, names=names)
    single: pd.Index[Any] = pd.Index(levels[0], name=names[0], tupleize_cols=False)
    return single


def from_bytes(data: bytes, name: str | None = None) -> Released:
    """Return the release in a file, verified; raise MetadataError as `pdprivacy.read_release`.

    ``name``: of the file, for errors.
    """
    where = "The file" if name is None else f"The file {name!r}"
    return shapes.verified(read(data, where), where)


def read(data: bytes, where: str) -> Released:
    """Return what a file holds, as it was saved or as pandas reads it; it may not be a release.

    ``where``: the file, for errors. Raises MetadataError for a file that cannot be read.
    """
    frame, failure = attempt(
        lambda: pd.read_parquet(io.BytesIO(data), engine="pyarrow", thrift_string_size_limit=LARGEST),
        Exception,  # whatever Arrow raises for bytes that are no Parquet
    )
    if frame is None:
        raise MetadataError(
            f"{where} is damaged, or no Parquet: it cannot be read ({failure}).", "restore it from a copy."
        )
    if SHAPE not in frame.attrs:
        return frame
    attrs: Any = frame.attrs
    frame.attrs = {}
    return shapes.restored(attrs, [frame.iloc[:, place].to_numpy() for place in range(frame.shape[1])], where)
