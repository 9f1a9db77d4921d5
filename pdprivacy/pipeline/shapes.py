"""Released objects as plain JSON: whether it is a Series, labels with their types, dtypes, and cells.

What a file format does not hold is kept beside its numbers in this form, so that a release is read as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import pandas as pd

from pdprivacy.declaration.domain import Domain
from pdprivacy.errors import MetadataError
from pdprivacy.releases import metadata
from pdprivacy.releases.frame_json import Json, frame_from_json, frame_to_json, to_json
from pdprivacy.releases.metadata import Released
from pdprivacy.text.marks import KEY

T = TypeVar("T")

FORMAT = 1
SHAPE = "dp_shape"
"""The name, beside "dp", of the part that files other than pickles do not hold."""
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of cells of a CSV file that `shape_of` did not describe."""


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
    shape: Json = {"format": FORMAT, **frame_to_json(released, cells=cells)}
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
    released, failure = attempt(partial(frame_from_json, columns, shape), Exception)
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
