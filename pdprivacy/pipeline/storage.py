"""Releases in files: Parquet, CSV and JSON that give a release back unchanged, with its metadata.

`read_release` reads and verifies what ``released.dp.save(path)`` and the steps of pipelines write. Files are
written whole and durably, or not at all.

A Parquet file is what pandas writes, with ``attrs["dp"]`` in it, so that anything that reads Parquet can read
it. Another key of ``attrs`` holds as JSON what pandas does not restore: that the release is a Series, labels
that are not text, nulls among labels, and cells that are labels. Beside a CSV file is a JSON file of both.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import uuid
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from pdprivacy import checks
from pdprivacy.checks import one_of
from pdprivacy.errors import MetadataError, MissingExtraError, ParameterError, got, short_public
from pdprivacy.ledger import disk
from pdprivacy.pipeline import shapes
from pdprivacy.pipeline.shapes import SHAPE, attempt, verified
from pdprivacy.releases.excerpts import check_release
from pdprivacy.releases.frame_json import Json
from pdprivacy.releases.metadata import Released
from pdprivacy.text.marks import KEY

__all__ = [
    "check_pyarrow",
    "from_bytes",
    "load",
    "read_csv",
    "read_json",
    "read_parquet",
    "read_release",
    "save",
    "sync",
    "to_bytes",
    "write",
    "write_or_refuse",
]

FORMATS = ("parquet", "csv", "json")
PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""
BESIDE = ".dp.json"
"""The suffix of the metadata file beside a CSV file, after the name of that file."""
MOST_TEXT = 2**27
"""Bytes of a CSV or JSON file, unpacked."""

PICKLE = 'released.dp.save("table.csv") writes such a file; pd.read_pickle(path) reads a pickle of yours.'
TRY = 'released.dp.save("table.parquet").'


def save(released: Any, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
    """Write a release to a file that `pdprivacy.read_release` gives back unchanged.

    Numbers are written with all digits, with their labels, dtypes and ``attrs["dp"]``. An existing file is
    replaced, and never left half written.

    Parameters
    ----------
    path : the file. Its suffix sets the format: ``.parquet``, ``.csv`` or ``.json``, compressed ``.csv.gz``
        or ``.json.gz``. Beside a CSV file, its metadata and the types of its labels are written to a file of
        the same name with ``.dp.json`` after it: keep the two together.
    format : "parquet", "csv" or "json", for a path with another suffix.

    Raises
    ------
    MetadataError : the frame is no release, is made of exact counts, or was changed since it was released.
    ParameterError : an invalid path or format, a file that cannot be written, labels of a type that no
        file holds, or more than 128 MiB of CSV or JSON. MissingExtraError : Parquet needs pyarrow (extra
        ``parquet``).

    >>> import pandas as pd, tempfile, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> mean, folder = private.dp.mean("age", epsilon=0.5), tempfile.TemporaryDirectory()
    >>> mean.dp.save(folder.name + "/mean.csv")
    >>> pdprivacy.read_release(folder.name + "/mean.csv").equals(mean)
    True
    >>> folder.cleanup()
    """
    release = check_release(released, "saved")
    name = checks.path(path, "path", TRY)
    kind, packed = _format(name, format)
    if kind is None:
        raise _unknown(name, TRY)
    if kind == "parquet":
        check_pyarrow()
        files = {name: to_bytes(release)[0]}
    elif kind == "json":
        files = {name: write_json(release)}
    else:
        data, beside = write_csv(release)
        files = {name + BESIDE: beside, name: data}
    if kind != "parquet" and max(map(len, files.values())) > MOST_TEXT:
        raise ParameterError(f"The release takes more than {_most(kind)}. Nothing was written.", TRY)
    if packed:
        files[name] = gzip.compress(files[name], mtime=0)
    write_or_refuse({Path(file): data for file, data in files.items()}, TRY)


def write_or_refuse(files: Mapping[Path, bytes], hint: str, rights: int = 0o666) -> None:
    """Write files of one folder, all or none, or raise ParameterError with the hint.

    ``rights``: of new files, before the umask.
    """
    _, failure = attempt(lambda: write(files, f"{uuid.uuid4().hex}.part", rights), OSError)
    if failure:
        raise ParameterError(f"'path' cannot be written: {failure}. Nothing was written.", hint)


def read_release(path: str | os.PathLike[str], format: str | None = None) -> Released:  # noqa: A002
    """Read a release from a file, unchanged and verified.

    The file is one that ``released.dp.save(path)`` or a step wrote, or a Parquet file of
    ``released.to_parquet(path)``: where pandas made a Series a frame of one column, it becomes a Series
    again. ``pd.read_parquet`` reads the numbers and ``attrs["dp"]`` as well, but returns a Series as a frame
    of one column, and text for labels that are not text.

    A crafted file costs no more memory than a large release: the file states the sizes of a table, which are
    compared with its numbers before the table is made. See Raises for the limits.

    Parameters
    ----------
    path, format : as in ``released.dp.save``.

    Raises
    ------
    MetadataError : a file that is missing, unreadable or damaged, that holds no release, or whose numbers,
        labels or metadata are not the saved ones; a CSV file without the file of metadata beside it; a file
        that is too large: more than 128 MiB of CSV or JSON, unpacked, or in Parquet more than 2 GiB of
        numbers, or of texts.
    ParameterError : an invalid path or format. MissingExtraError : pyarrow (extra ``parquet``) is not
        installed.

    >>> import pandas as pd, tempfile, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> folder = tempfile.TemporaryDirectory()
    >>> private.dp.count(epsilon=0.5).dp.save(folder.name + "/count.json")
    >>> read_release(folder.name + "/count.json").index.tolist()
    ['rows']
    >>> folder.cleanup()
    """
    name = checks.path(path, "path", 'pdprivacy.read_release("released/table.parquet").')
    return verified(load(name, format), f"The file {name!r}")


def load(name: str, format: str | None = None) -> Released:  # noqa: A002
    """Return what a file holds, as it was saved or as pandas reads it, not verified.

    A frame of a Parquet file may be no release. Errors as `read_release`.
    """
    where = f"The file {name!r}"
    kind, packed = _format(name, format)
    if kind == "parquet":
        check_pyarrow()
    if kind is None:
        kind = "parquet" if _contents(name, len(PARQUET)) == PARQUET else None
    if kind is None:
        raise _unknown(name, PICKLE)
    if kind == "parquet":
        return read_parquet(_contents(name), where)
    text = _text(name, where, kind, packed)
    if kind == "json":
        return read_json(text, where)
    beside = Path(name + BESIDE)
    if not beside.is_file():
        raise MetadataError(
            f"{where} has no file of metadata beside it ({beside.name}), without which it is a table of "
            "numbers and no release.",
            "keep the two files together that released.dp.save wrote.",
        )
    return read_csv(text, _text(str(beside), f"The file {str(beside)!r}", "json"), where)


def _contents(name: str, most: int = -1) -> bytes:
    """Return the bytes of a file, or as many as these."""

    def read() -> bytes:
        with open(name, "rb") as file:
            return file.read(most)

    data, failure = attempt(read, OSError)
    if data is None:
        raise MetadataError(f"The file of the release cannot be read: {failure}.")  # and not by its name
    return data


def _text(name: str, where: str, kind: str, packed: bool = False) -> bytes:
    """Return the bytes of a CSV or JSON file, unpacked; MetadataError for more than `MOST_TEXT`."""
    data = _contents(name, MOST_TEXT + 1)
    if packed:
        file = gzip.GzipFile(fileobj=io.BytesIO(data))
        text, failure = attempt(partial(file.read, MOST_TEXT + 1), OSError, EOFError, zlib.error)
        if text is None:
            raise MetadataError(
                f"{where} is damaged: it cannot be unpacked ({failure}).", "restore it from a copy."
            )
        data = text
    if len(data) > MOST_TEXT:
        raise MetadataError(f"{where} holds more than {_most(kind)}.", f"save it as Parquet: {TRY}")
    return data


def _most(kind: str) -> str:
    return f"{MOST_TEXT // 2**20} MiB of {kind.upper()}, the limit"


def _format(name: str, requested: Any) -> tuple[str | None, bool]:
    """Return the format of a file, None where its name does not say, and whether it is compressed."""
    one_of(requested, "format", (None, *FORMATS))
    plain = name.lower().removesuffix(".gz")
    named = next((kind for kind in FORMATS if plain.endswith(f".{kind}")), None)
    packed = len(plain) < len(name)
    if packed and "parquet" in (requested, named):  # which is compressed in itself
        return requested, False
    return requested or named, packed


def _unknown(name: str, hint: str) -> ParameterError:
    return ParameterError(
        "The path of a release must end in .parquet, .csv, .csv.gz, .json or .json.gz "
        f"(got {got(os.path.basename(name))}).",
        hint,
    )


# ---------------------------------------------------------------- durable files


def write(files: Mapping[Path, bytes], mark: str = "new", rights: int = 0o666) -> None:
    """Write files of one folder whole and durably, or leave all of them unchanged.

    Each is written beside its place first, and moved when all are on the disk. ``mark``: the end of the names
    there; where several processes may write the same file at once, each needs one of its own. ``rights``: of
    new files, before the umask.
    """
    drafts = {path: path.with_name(f".{path.name[:40]}{index}.{mark}") for index, path in enumerate(files)}
    try:
        for path, draft in drafts.items():
            with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, rights)) as file:
                file.write(files[path])
                file.flush()
                os.fsync(file.fileno())
        for path, draft in drafts.items():
            os.replace(draft, path)
    except BaseException:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports that."""
    with suppress(OSError):
        disk.sync(folder)


__all__ += ["write_csv", "write_json"]


# ---------------------------------------------------------------- Parquet

LARGEST = 2**31 - 1
"""Bytes of the metadata of a file, of its numbers and of its texts, each."""
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
    frame = shapes.without_attrs(released)
    columns = [  # cells that are labels as text, for readers other than this package
        column if column.dtype.kind in "biuf" else column.map(str).astype(object)
        for column in (frame.iloc[:, position] for position in range(frame.shape[1]))
    ]
    attrs = {KEY: released.attrs[KEY], SHAPE: shapes.shape_of(released)}
    for rows, names in (
        (_readable(frame.index), _readable(frame.columns, nulls="")),
        (pd.RangeIndex(len(frame)), pd.Index([f"column {position}" for position in range(frame.shape[1])])),
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
    plain = pd.DataFrame({position: column.array for position, column in enumerate(columns)})
    table = Table.from_pandas(plain.set_axis(rows, axis=0).set_axis(names, axis=1))
    facts = {**table.schema.metadata, ATTRS: json.dumps(attrs).encode()}
    parquet.write_table(table.replace_schema_metadata(facts), buffer)
    return buffer.getvalue(), from_bytes(buffer.getvalue())


def _readable(axis: pd.Index[Any], nulls: str | None = None) -> pd.Index[Any]:
    """Return the axis for readers other than this package: text, whole numbers, and floats in rows."""
    names = [name if name is None else str(name) for name in axis.names]
    if isinstance(axis, pd.RangeIndex):
        return axis.set_names(names)
    levels = [shapes.plain_labels(axis.get_level_values(level), nulls) for level in range(axis.nlevels)]
    if len(levels) > 1:
        return pd.MultiIndex.from_arrays(levels, names=names)
    single: pd.Index[Any] = pd.Index(levels[0], name=names[0], tupleize_cols=False)
    return single


def from_bytes(data: bytes, name: str | None = None) -> Released:
    """Return the release in a file, verified; raise MetadataError as `pdprivacy.read_release`.

    ``name``: of the file, for errors.
    """
    where = "The file" if name is None else f"The file {name!r}"
    return shapes.verified(read_parquet(data, where), where)


def _frame_of(data: bytes) -> pd.DataFrame:
    """Return the frame of a file as pandas reads it.

    Arrow starts no thread: a process that ends beside one may abort although all was done, see
    https://github.com/apache/arrow/issues/34314.
    """
    from pyarrow import parquet

    options = {"thrift_string_size_limit": LARGEST, "pre_buffer": False}
    schema = parquet.ParquetFile(io.BytesIO(data), **options).schema_arrow
    widths = {field.name: _width(field.type) for field in schema}
    texts = [name for name, width in widths.items() if width is None]
    # each text once, however often it is repeated
    file = parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts, **options)
    rows, groups = file.metadata.num_rows, range(file.metadata.num_row_groups)
    _check_size("numbers", rows * sum(width or 0 for width in widths.values()))
    _check_size("numbers and texts", sum(file.metadata.row_group(group).total_byte_size for group in groups))
    table = file.read(use_threads=False, use_pandas_metadata=True)
    _check_size("texts", sum(_bytes_of_texts(table.column(name)) for name in texts))
    frame: pd.DataFrame = table.cast(schema).to_pandas(use_threads=False)
    frame.attrs = json.loads((schema.metadata or {}).get(ATTRS, "{}"))
    return frame


def _width(dtype: Any) -> int | None:
    """Return the bytes of a cell of an Arrow type, None of a text; ValueError for lists and the like."""
    from pyarrow import types

    dtype = getattr(dtype, "storage_type", dtype)
    if any(is_kind(dtype) for is_kind in (types.is_string, types.is_large_string, types.is_binary)):
        return None
    if types.is_struct(dtype):  # an interval
        return sum(_width(field.type) or 0 for field in dtype)
    return 1 if types.is_null(dtype) else dtype.bit_width // 8 + 1


def _bytes_of_texts(column: Any) -> int:
    """Return at least the bytes that a column of repeated texts takes when they are written out."""
    from pyarrow import compute

    longest = (compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0 for chunk in column.chunks)
    return sum(length * len(chunk) for length, chunk in zip(longest, column.chunks, strict=True))


def _check_size(kind: str, size: int) -> None:
    if size > LARGEST:
        raise MetadataError(f"it holds more than {(LARGEST + 1) // 2**30} GiB of {kind}, the limit")


def read_parquet(data: bytes, where: str) -> Released:
    """Return what a file holds, as it was saved or as pandas reads it; it may not be a release.

    ``where``: the file, for errors. Raises MetadataError for a file that cannot be read.
    """
    frame, failure = attempt(
        partial(_frame_of, data),
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
    return shapes.restored(attrs, [frame.iloc[:, column].array for column in range(frame.shape[1])], where)


# ---------------------------------------------------------------- CSV and JSON

Texts: TypeAlias = list[list[str]]

NUMBERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys("iu", lambda text: int(text) if text else None),
    "f": lambda text: float(text or "nan"),
    "b": {"True": True, "False": False}.__getitem__,
}
"""Readers of cells, by the kind of their dtype."""


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


class _Lines(io.StringIO):
    """Lines of a CSV file, each ended by a line feed.

    Before Python 3.13 a writer puts cells in quotes only for the characters that end its own lines, and
    readers end a line at a carriage return, too.
    """

    END = "\r\n"

    def write(self, row: str, /) -> int:
        return super().write(row.removesuffix(self.END) + "\n")


def write_csv(released: Released) -> tuple[bytes, bytes]:
    """Return the CSV file of a release and the JSON file beside it.

    The table has the layout of `DataFrame.to_csv`. Each float has the digits that give it back. Errors as
    `write_json`.
    """
    buffer = _Lines()
    csv.writer(buffer, lineterminator=_Lines.END).writerows(_grid(released))
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
    frame = shapes.without_attrs(released)
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
    cells = [_cells(frame.iloc[:, column]) for column in range(frame.shape[1])]
    grid = [*head, *map(list, zip(*_texts(rows), *cells, strict=True))]
    return [[cell.encode(errors="backslashreplace").decode() for cell in line] for line in grid]


def _texts(axis: pd.Index[Any]) -> Texts:
    """Return the labels of an axis as text, by level."""
    levels = (axis.get_level_values(position) for position in range(axis.nlevels))
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
    if len(grid) == heads:  # no rows
        columns = [()] * (len(grid[0]) - len(names))
    dtypes = shape["dtypes"] if isinstance(shape["dtypes"], list) else [shape["dtypes"]] * len(columns)
    return [
        [NUMBERS[pd.api.types.pandas_dtype(dtype).kind](text) for text in column]
        for column, dtype in zip(columns, dtypes, strict=True)
    ]


short_public(sys.modules[__name__], ("read_release", "save"))
