"""Releases as text: CSV with a JSON file of metadata beside it, or one JSON file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pandas as pd

from pdprivacy.errors import MetadataError
from pdprivacy.metadata import KEY
from pdprivacy.storage import shapes
from pdprivacy.storage.shapes import SHAPE, Json, Released, attempt

__all__ = ["read_csv", "read_json", "write_csv", "write_json"]

Texts: TypeAlias = list[list[str]]

NUMBERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys("iu", lambda text: int(text) if text else None),
    "f": lambda text: float(text or "nan"),
    "b": {"True": True, "False": False}.__getitem__,
}
"""How a cell is read, by the kind of its dtype."""


def write_json(released: Released) -> bytes:
    """Return the JSON file of a release: ``attrs["dp"]``, and its shape with all cells.

    Raises ParameterError for labels of a kind that no file can hold; MetadataError where the file would not
    give the same release back.
    """
    data = _json(released, cells=True)
    shapes.verified(read_json(data))
    return data


def read_json(data: bytes, where: str = "The file") -> Released:
    """Return the release in a JSON file, not verified; raise MetadataError for any other file."""
    attrs = _attrs(data, where)
    if "cells" not in attrs[SHAPE]:
        raise MetadataError(
            f"{where} holds the metadata of a CSV file, and no numbers.", "read the CSV file beside it."
        )
    return shapes.restored(attrs, [], where)


def write_csv(released: Released) -> tuple[bytes, bytes]:
    """Return the CSV file of a release and the JSON file beside it.

    The table has the layout of `DataFrame.to_csv`. Each float has the digits that give it back. Errors as
    `write_json`.
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(_grid(released))
    data, beside = buffer.getvalue().encode(), _json(released)
    read_csv(data, beside)
    return data, beside


def read_csv(data: bytes, beside: bytes, where: str = "The file") -> Released:
    """Return the release in a CSV file and the JSON file beside it, verified.

    Raises MetadataError where one of the two cannot be read, or where they do not belong together.
    """
    attrs = _attrs(beside, f"The file of metadata beside {where[0].lower()}{where[1:]}")
    grid, failure = attempt(lambda: list(csv.reader(io.StringIO(data.decode("utf-8-sig"), ""))), Exception)
    columns, missed = attempt(partial(_columns, grid or [], attrs[SHAPE]), *shapes.UNREADABLE)
    if columns is None:
        raise MetadataError(
            f"{where} is damaged: it cannot be read as CSV ({failure or missed}).", "restore it from a copy."
        )
    released = shapes.restored(attrs, columns, where)
    return shapes.verified(released, where, _grid(released) == grid)


def _json(released: Released, *, cells: bool = False) -> bytes:
    attrs = {KEY: released.attrs[KEY], SHAPE: shapes.shape_of(released, cells=cells)}
    return json.dumps(attrs, allow_nan=False).encode()


def _attrs(data: bytes, where: str) -> Json:
    """Return what a JSON file holds; MetadataError for a file that no release was saved in."""
    attrs, _ = attempt(lambda: json.loads(data), ValueError, RecursionError)
    if not isinstance(attrs, dict) or not all(isinstance(attrs.get(part), dict) for part in (KEY, SHAPE)):
        raise MetadataError(f"{where} is damaged, or no JSON of a release.", "restore it from a copy.")
    return attrs


def _grid(released: Released) -> Texts:
    """Return the cells of a CSV file as text: header rows, and labels before numbers."""
    frame = shapes.framed(released)
    rows, columns = frame.index, frame.columns
    names = ["" if name is None else str(name) for name in rows.names]
    labels = _texts(columns)
    if columns.nlevels == 1:
        head = [[*names, *labels[0]]]
    else:
        head = [
            ["" if name is None else str(name), *[""] * (rows.nlevels - 1), *level]
            for name, level in zip(columns.names, labels, strict=True)
        ]
        head += [[*names, *[""] * len(columns)]] if any(names) else []
    cells = [_cells(frame.iloc[:, place]) for place in range(frame.shape[1])]
    grid = [*head, *map(list, zip(*_texts(rows), *cells, strict=True))]
    return [[cell.encode(errors="backslashreplace").decode() for cell in line] for line in grid]


def _texts(axis: pd.Index[Any]) -> Texts:
    """Return the labels of an axis as text, by level."""
    levels = (axis.get_level_values(place) for place in range(axis.nlevels))
    return [[str(label) for label in shapes.plain_labels(level, "")] for level in levels]


def _cells(column: pd.Series[Any]) -> list[str]:
    cells = column.tolist()
    if column.dtype.kind == "f":
        return ["" if cell is pd.NA or cell != cell else repr(cell) for cell in cells]
    return ["" if cell is None or cell is pd.NA else str(cell) for cell in cells]


def _columns(grid: Texts, shape: Json) -> list[Any]:
    """Return the numbers in the cells of a CSV file, by column; nothing where the shape holds the cells."""
    if "cells" in shape:
        return []
    names, heads = shape["rows"]["names"], 1 if shape["series"] else len(shape["columns"]["names"])
    if heads > 1:
        heads += any(name not in (None, "") for name in names)
    columns = list(zip(*grid[heads:], strict=True))[len(names) :]
    dtypes = shape["dtypes"] if isinstance(shape["dtypes"], list) else [shape["dtypes"]] * len(columns)
    return [
        [NUMBERS[pd.api.types.pandas_dtype(dtype).kind](text) for text in column]
        for column, dtype in zip(columns, dtypes, strict=True)
    ]
