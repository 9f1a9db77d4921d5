"""Releases in files: Parquet, CSV and JSON that give a release back unchanged, with its metadata.

`read_release` reads and verifies what ``released.dp.save(path)`` and the steps of pipelines write. Files are
written whole and durably, or not at all.
"""

from __future__ import annotations

import gzip
import os
import uuid
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pdprivacy import checks, disk
from pdprivacy.errors import MetadataError, ParameterError, check_one_of, got
from pdprivacy.metadata import check_release
from pdprivacy.storage import file_formats
from pdprivacy.storage.shapes import Released, attempt, verified

__all__ = ["load", "read_release", "save", "sync", "write", "written"]

FORMATS = ("parquet", "csv", "json")
PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""
BESIDE = ".dp.json"
"""The suffix of the metadata file beside a CSV file, after the name of that file."""

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
    ParameterError : an invalid path or format, a file that cannot be written, or labels of a type that no
        file holds. MissingExtraError : Parquet needs pyarrow (extra ``parquet``).

    >>> import pandas as pd, tempfile, pdprivacy
    >>> domain = pdprivacy.Domain((pdprivacy.Column("age", "integer", lower=0, upper=120),))
    >>> private = pdprivacy.protect(pd.DataFrame({"age": [31, 54]}), domain, epsilon=1)
    >>> mean, folder = private.dp.mean("age", epsilon=0.5), tempfile.TemporaryDirectory()
    >>> mean.dp.save(folder.name + "/mean.csv")
    >>> pdprivacy.read_release(folder.name + "/mean.csv").equals(mean)
    True
    >>> folder.cleanup()
    """
    kept = check_release(released, "saved")
    name = checks.path(path, "path", TRY)
    kind, packed = _format(name, format)
    if kind is None:
        raise _unknown(name, TRY)
    if kind == "parquet":
        file_formats.check_pyarrow()
        files = {name: file_formats.to_bytes(kept)[0]}
    elif kind == "json":
        files = {name: file_formats.write_json(kept)}
    else:
        data, beside = file_formats.write_csv(kept)
        files = {name + BESIDE: beside, name: data}
    if packed:
        files[name] = gzip.compress(files[name], mtime=0)
    written({Path(one): data for one, data in files.items()}, TRY)


def written(files: Mapping[Path, bytes], hint: str, rights: int = 0o666) -> None:
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

    Parameters
    ----------
    path, format : as in ``released.dp.save``.

    Raises
    ------
    MetadataError : a file that is missing, unreadable or damaged, that holds no release, or whose numbers,
        labels or metadata are not the saved ones; a CSV file without the file of metadata beside it.
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
        file_formats.check_pyarrow()
    data = _contents(name)
    if kind == "parquet" or (kind is None and data.startswith(PARQUET)):
        return file_formats.read_parquet(data, where)
    if kind is None:
        raise _unknown(name, PICKLE)
    text, failure = attempt(lambda: gzip.decompress(data) if packed else data, OSError, EOFError, zlib.error)
    if text is None:
        raise MetadataError(
            f"{where} is damaged: it cannot be unpacked ({failure}).", "restore it from a copy."
        )
    if kind == "json":
        return file_formats.read_json(text, where)
    beside = Path(name + BESIDE)
    if not beside.is_file():
        raise MetadataError(
            f"{where} has no file of metadata beside it ({beside.name}), without which it is a table of "
            "numbers and no release.",
            "keep the two files together that released.dp.save wrote.",
        )
    return file_formats.read_csv(text, _contents(str(beside)), where)


def _contents(name: str) -> bytes:
    data, failure = attempt(Path(name).read_bytes, OSError)
    if data is None:
        raise MetadataError(f"The file of the release cannot be read: {failure}.")  # and not by its name
    return data


def _format(name: str, wanted: Any) -> tuple[str | None, bool]:
    """Return the format of a file, None where its name does not say, and whether it is compressed."""
    check_one_of("format", wanted, (None, *FORMATS))
    plain = name.lower().removesuffix(".gz")
    named = next((one for one in FORMATS if plain.endswith(f".{one}")), None)
    packed = len(plain) < len(name)
    if packed and "parquet" in (wanted, named):  # which is compressed in itself
        return wanted, False
    return wanted or named, packed


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
    drafts = {path: path.with_name(f".{path.name[:40]}{place}.{mark}") for place, path in enumerate(files)}
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
