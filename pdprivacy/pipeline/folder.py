"""The files of a step: one folder per release id, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any

from pdprivacy.checks import instance
from pdprivacy.errors import MetadataError, ParameterError, StepError, got
from pdprivacy.ledger import disk
from pdprivacy.ledger.audit import HEAD
from pdprivacy.pipeline.shapes import attempt, reason
from pdprivacy.pipeline.storage import from_bytes, sync, write
from pdprivacy.releases.frame_json import Json
from pdprivacy.releases.metadata import Released

FORMAT = 1
STATE = ".steps"
"""The folder of manifests, within the folder of all results."""
MANIFEST = "step.json"
STORED = "All releases are paid for and stored, and nothing will be charged again."

MOST_BYTES = 150
"""The longest name of a file, without its suffix, in bytes."""

_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
_SPECIAL = set('/\\:*?"<>|')


def check_file_name(name: Any, argument: str, hint: str | None = None) -> str:
    """Return a name that is one file's on every system, in one spelling; ``hint``: what to write instead.

    Raises ParameterError for a name with a separator or a reserved character, of a device, with a dot or
    space at an end, not printable, empty or too long.

    >>> check_file_name("2026-05", "release_id")
    '2026-05'
    """
    hint = f'{argument}="2026-05".' if hint is None else hint
    plain = unicodedata.normalize("NFC", instance(name, str, argument, hint))
    fits = 0 < len(plain.encode(errors="replace")) <= MOST_BYTES and plain.isprintable()
    device = plain.partition(".")[0].strip().lower() in _DEVICES
    if not fits or plain != plain.strip(" .") or device or _SPECIAL & set(plain):
        raise ParameterError(
            f"{argument!r} becomes the name of a file, and {got(name)} cannot be one: 1 to {MOST_BYTES} "
            'bytes, printable, none of / \\ : * ? " < > |, no dot or space at an end, no name of a device.',
            hint,
        )
    return plain


class Folder:
    """The files of one release id of a step.

    Results are in ``to/ID``, the manifest in ``to/.steps/ID``. A run writes there while it holds the lock.
    Releases are in the ledger; those that it cannot store are in ``to/.steps/ID/releases``.

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
            self.state.mkdir(parents=True, exist_ok=True)
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
                    disk.unlock(file)

    @contextmanager
    def _writing(self, fate: str, release_id: str = "the same release_id") -> Iterator[None]:
        """Turn an error of the system into a StepError.

        ``fate``: what has become of the charge. ``release_id``: that of a call that goes on.
        """
        try:
            yield
        except OSError as error:
            raise StepError(
                f"The folder {str(self.results.parent)!r} of the step cannot be written "
                f"({reason(error)}). {fate}",
                f"make room or give the right to write there, and call again with {release_id}.",
            ) from error

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> Json | None:
        """Return what the first run was called with, and its results once it has ended; None before."""
        noted = self._read_note(self.state / MANIFEST)
        if noted is not None and noted.get("format") != FORMAT:
            raise StepError(
                f"The step {self.release_id!r} was run by another version of pdprivacy, which stores it in "
                f"another way (format {noted.get('format')!r}, here {FORMAT}). Nothing was charged.",
                "go on with that version, or choose another release_id.",
            )
        if noted is not None and not _is_manifest(noted):
            raise self._unreadable(self.state / MANIFEST, "it is damaged")
        return noted

    def note(self, manifest: Mapping[str, Any], fate: str = "Nothing was charged.") -> None:
        """Write the manifest; ``fate``: what has become of charges, for the error where that fails."""
        with self._writing(fate):
            write({self.state / MANIFEST: json.dumps({"format": FORMAT, **manifest}, indent=1).encode()})

    def _read_note(self, path: Path, required: Collection[str] = ()) -> Json | None:
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

    def release(self, number: int) -> Path:
        """Return the path of a release that is stored here and not in the ledger."""
        return self.state / "releases" / f"{number}.parquet"

    def keep(
        self, number: int, data: bytes, note: Json | None, fate: str, release_id: str = "the same release_id"
    ) -> None:
        """Store a release here, whole or not at all, with a ``note`` if `kept` shall find it.

        ``fate``, ``release_id``: what has become of the charge, and which call goes on, for the error where
        that fails.
        """
        path = self.release(number)
        files = {path: data}
        if note is not None:
            files[path.with_suffix(".json")] = json.dumps({**note, "digest": digest_of(data)}).encode()
        with self._writing(fate, release_id):
            path.parent.mkdir(exist_ok=True)
            write(files)

    def kept(self, number: int) -> tuple[Json, bytes] | None:
        """Return the note and the file of a release that `keep` stored, None where there is none."""
        path = self.release(number)
        note = self._read_note(path.with_suffix(".json"), ("call", "digest", "risk"))
        if note is None or not path.exists():
            return None
        self.read(path, note["digest"])
        return note, path.read_bytes()

    def read(self, path: Path, digest: str) -> Released:
        """Return the release in a file, if the file is the stored one; raise StepError for another."""

        def checked() -> Released:
            data = path.read_bytes()
            released = from_bytes(data, path.name)
            if digest_of(data) != digest:
                raise MetadataError("the file is not the one that was stored.")
            return released

        released, failure = attempt(checked, OSError, MetadataError)
        if released is None:
            raise StepError(
                f"A stored release of the step {self.release_id!r} cannot be used, {str(path)!r}: "
                f"{failure}. Nothing was charged.",
                "restore the file, or move the folder of results away: the step writes them from the ledger.",
            )
        return released

    # ------------------------------------------------------------ results

    def result(self, name: str) -> Path:
        """Return the path of a result."""
        return self.results / f"{name}.parquet"

    def finish(self, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        """Write the results of these names and the manifest, then show them as a whole."""
        with self._writing(STORED):
            shutil.rmtree(self._ready, ignore_errors=True)
            self._ready.mkdir()
            write({self._ready / f"{name}.parquet": data for name, data in files.items()})
        self.note(manifest, STORED)
        self.show(manifest["results"])

    @property
    def _ready(self) -> Path:
        """The folder that becomes that of the results."""
        return self.state / "results"

    def show(self, results: Collection[str]) -> bool:
        """Move the results that a manifest names into their folder; return False where one is missing."""
        with self._writing(STORED):
            if not self.results.exists():
                if not all((self._ready / f"{name}.parquet").exists() for name in results):
                    return False
                os.rename(self._ready, self.results)
                sync(self.results.parent)
        return True


def _is_manifest(noted: Json) -> bool:
    """Return whether a JSON object has the parts of a manifest."""
    terms, results, head = (
        (noted.get("arguments"), noted.get("declaration")),
        noted.get("results"),
        noted.get("head"),
    )
    texts = all(
        isinstance(part, dict) and all(isinstance(text, str) for text in part.values()) for part in terms
    )
    if head is not None and not (isinstance(head, str) and HEAD.fullmatch(head)):
        return False
    if results is None:
        return texts
    named = isinstance(results, dict) and isinstance(noted.get("single"), bool)
    return (
        texts
        and named
        and all(
            isinstance(result, dict) and isinstance(result.get("digest"), str) for result in results.values()
        )
    )


def digest_of(data: bytes) -> str:
    """Return a hash of the bytes of a file."""
    return blake2b(data, digest_size=16).hexdigest()
