"""The files of a step: one folder per release id, written whole or not at all."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b, shake_256
from io import FileIO
from pathlib import Path
from typing import Any

from pdprivacy import disk
from pdprivacy.errors import MetadataError, ParameterError, StepError, got
from pdprivacy.storage import from_bytes, sync, write
from pdprivacy.storage.shapes import Json, Released, attempt, reason

__all__ = ["STORED", "Folder", "check_file_name"]

FORMAT = 1
STATE = ".steps"
"""The folder of manifests and stored releases, within the folder of all results."""
MANIFEST = "step.json"
REQUIRED = ("arguments", "declaration")
"""The parts of a manifest that compare one run with another, each of them by name."""
RESERVE = "reserve"
RESERVED_BYTES = 4 * 2**20
"""Kept free on the disk while a release is made, so that it can be stored once it is paid for."""

STORED = "All releases are paid for and stored, and nothing will be charged again."

MOST_BYTES = 150
"""The longest name of a file, without its suffix, in bytes."""

_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
_SPECIAL = set('/\\:*?"<>|')


def check_file_name(name: Any, argument: str) -> str:
    """Return a name that is one file's on every system, in one spelling.

    Raises ParameterError for a name with a separator or a reserved character, of a device, with a dot or
    space at an end, not printable, empty or too long.

    >>> check_file_name("2026-05", "release_id")
    '2026-05'
    """
    if not isinstance(name, str):
        raise ParameterError(f"{argument!r} must be a string (got {got(name)}).", f'{argument}="2026-05".')
    plain = unicodedata.normalize("NFC", name)
    fits = 0 < len(plain.encode(errors="replace")) <= MOST_BYTES and plain.isprintable()
    device = plain.partition(".")[0].strip().lower() in _DEVICES
    if not fits or plain != plain.strip(" .") or device or _SPECIAL & set(plain):
        raise ParameterError(
            f"{argument!r} becomes the name of a file, and {got(name)} cannot be one: 1 to {MOST_BYTES} "
            'bytes, printable, none of / \\ : * ? " < > |, no dot or space at an end, no name of a device.',
            f'{argument}="2026-05".',
        )
    return plain


class Folder:
    """The files of one release id of a step.

    Results are in ``to/ID``. The manifest and the releases of a run that has not ended are in
    ``to/.steps/ID``, and so are releases that are not results. A run writes there while it holds the lock.

    Parameters
    ----------
    to : the folder of all results.
    release_id : a name that `check_file_name` returned.
    """

    def __init__(self, to: str | os.PathLike[str], release_id: str) -> None:
        self.release_id = release_id
        self.results = Path(to).absolute() / release_id
        self.state = Path(to).absolute() / STATE / release_id

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs of the release id out.

        Raises StepError where another run is under way, or the folder cannot be written.
        """
        with self._writing("Nothing was charged."):
            (self.state / "releases").mkdir(parents=True, exist_ok=True)
            file = FileIO(self.state / "lock", "a")
        with file:
            with self._writing("Nothing was charged."):
                locked = disk.lock(file)
            if not locked:
                raise StepError(
                    f"Another run of the step {self.release_id!r} is under way. Nothing was charged.",
                    "call again when it has ended: what it has released is returned then.",
                )
            try:
                yield
            finally:
                with suppress(OSError):
                    (self.state / RESERVE).unlink(missing_ok=True)
                with suppress(OSError):
                    disk.unlock(file)

    @contextmanager
    def _writing(self, fate: str) -> Iterator[None]:
        """Turn an error of the system into a StepError; ``fate``: what has become of the charge."""
        try:
            yield
        except OSError as error:
            raise StepError(
                f"The folder {str(self.results.parent)!r} of the step cannot be written "
                f"({reason(error)}). {fate}",
                "make room or give the right to write there, and call again with the same release_id.",
            ) from error

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> Json | None:
        """Return what the first run was called with, and its results once it has ended; None before."""
        noted = self._noted(self.state / MANIFEST)
        if noted is not None and noted.get("format") != FORMAT:
            raise StepError(
                f"The step {self.release_id!r} was run by another version of pdprivacy, which stores it in "
                f"another way (format {noted.get('format')!r}, here {FORMAT}). Nothing was charged.",
                "go on with that version, or choose another release_id.",
            )
        if noted is not None and not all(isinstance(noted.get(part), dict) for part in REQUIRED):
            raise self._unreadable(self.state / MANIFEST, "it is damaged")
        return noted

    def note(self, manifest: Mapping[str, Any], fate: str = "Nothing was charged.") -> None:
        """Write the manifest; ``fate``: what has become of charges, for the error where that fails."""
        with self._writing(fate):
            _write(self.state / MANIFEST, json.dumps({"format": FORMAT, **manifest}, indent=1).encode())

    def _noted(self, path: Path, required: Collection[str] = ()) -> Json | None:
        """Return the JSON object in a file, which has the ``required`` keys; None where the file is missing.

        Raises StepError for any other content.
        """
        noted, failure = None, "it is damaged"
        try:
            noted = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            failure = reason(error)
        except ValueError:
            pass
        if not isinstance(noted, dict) or not set(required) <= set(noted):
            raise self._unreadable(path, failure)
        return noted

    def _unreadable(self, path: Path, failure: str) -> StepError:
        return StepError(
            f"The file {str(path)!r} of the step {self.release_id!r} cannot be read: {failure}. "
            "Nothing was charged.",
            "make it readable, or restore it from a copy, or choose another release_id.",
        )

    # ------------------------------------------------------------ releases

    def stored(self) -> list[int]:
        """Return the numbers of the releases that are stored and are not results, in order."""
        files = (self.state / "releases").glob("*.parquet")
        return sorted(int(path.stem) for path in files if path.stem.isdecimal())

    def release(self, number: int) -> Path:
        """Return the path of a release that is not a result."""
        return self.state / "releases" / f"{number}.parquet"

    def result(self, name: str) -> Path:
        """Return the path of a result."""
        return self.results / f"{name}.parquet"

    def note_of(self, number: int) -> Json | None:
        """Return call, digest and disclosure risk of a stored release; None where none is stored."""
        path = self.release(number)
        if not path.exists():
            return None
        note = self._noted(path.with_suffix(".json"), ("call", "digest", "risk"))
        if note is None:
            raise self._unreadable(path.with_suffix(".json"), "it is missing")
        return note

    def read(self, path: Path, digest: str) -> Released:
        """Return the release in a file, if the file is the stored one; raise StepError for another."""

        def checked() -> Released:
            data = path.read_bytes()
            released = from_bytes(data, path.name)
            if _digest(data) != digest:
                raise MetadataError("the file is not the one that was stored.")
            return released

        released, failure = attempt(checked, OSError, MetadataError)
        if released is None:
            raise StepError(
                f"A stored release of the step {self.release_id!r} cannot be used, {str(path)!r}: "
                f"{failure}. Nothing was charged.",
                "restore the file from a copy; another release_id pays for all releases again.",
            )
        return released

    def reserve(self) -> None:
        """Take room on the disk for a release before it is paid for."""
        path = self.state / RESERVE
        with self._writing("Nothing was charged for this release."):
            if not path.exists() or path.stat().st_size < RESERVED_BYTES:
                # no file system compresses a hash, or blocks of 256 KiB that repeat
                path.write_bytes(shake_256(b"reserve").digest(RESERVED_BYTES // 16) * 16)

    def store(self, number: int, note: Mapping[str, Any], data: bytes) -> str:
        """Keep a release with a note, whole or not at all; return the digest of its file.

        ``data``: the file. Where the disk is full, the release takes the room of `reserve`.
        """
        path, digest = self.release(number), _digest(data)
        noted = json.dumps({**note, "digest": digest}).encode()

        def write() -> None:
            _write(path.with_suffix(".json"), noted)
            _write(path, data)  # from here on the release is stored

        with self._writing(
            "The release was charged, and is lost: nobody has seen it, and it is not made again."
        ):
            try:
                write()
            except OSError:
                (self.state / RESERVE).unlink()
                write()
        return digest

    def finish(self, names: Mapping[str, int]) -> None:
        """Move the releases of these numbers into the folder of the results, by name.

        The manifest holds the names already, so that a later run completes what an interrupt cuts off.
        """
        with self._writing(STORED):
            if self.results.is_dir():
                return
            ready = self.state / "results"
            files = {ready / f"{name}.parquet": self.release(number) for name, number in names.items()}
            if not all(here.exists() or there.exists() for here, there in files.items()):
                raise StepError(
                    f"The results of the step {self.release_id!r} were in {str(self.results)!r}, and are not "
                    "there any more. Nothing was charged.",
                    "put them back; another release_id pays for all releases again.",
                )
            ready.mkdir(exist_ok=True)
            for here, there in files.items():
                if there.exists():
                    os.replace(there, here)
            sync(ready)
            os.rename(ready, self.results)
            sync(self.results.parent)


def _write(path: Path, data: bytes) -> None:
    write({path: data})


def _digest(data: bytes) -> str:
    """Return a hash of the bytes of a file."""
    return blake2b(data, digest_size=16).hexdigest()
