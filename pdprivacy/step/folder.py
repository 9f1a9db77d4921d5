"""Where a step keeps what it made: one folder per release id, written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from pdprivacy.errors import MetadataError, ParameterError, StepError, got
from pdprivacy.step.parquet import Released, from_bytes

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["STORED", "Folder", "check_file_name"]

Json: TypeAlias = dict[str, Any]

FORMAT = 1
STATE = ".steps"
"""The folder of what steps note, within the folder that they write to."""
MANIFEST = "step.json"
DAMAGED = "it is damaged"
NOTED = ("arguments", "declaration")
"""What a manifest holds for each of its names."""
RESERVE = "reserve"
RESERVED_BYTES = 4 * 2**20
"""Kept free on the disk while a release is being made, so that it can be stored once it is paid for."""

STORED = "All releases are paid for and stored, and nothing will be charged again."

MOST_BYTES = 150
"""Of a name of a file, before its ending."""

_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
_SPECIAL = set('/\\:*?"<>|')


def check_file_name(name: Any, argument: str) -> str:
    """A name that is one file's on every system, in one spelling.

    Raises ParameterError for a name with a separator or a reserved character, of a device, with a dot or
    space at an end, not printable, empty or too long.

    >>> check_file_name("2026-05", "release_id")
    '2026-05'
    """
    if not isinstance(name, str):
        raise ParameterError(f"{argument!r} must be a string (got {got(name)}).", f'{argument}="2026-05".')
    plain = unicodedata.normalize("NFC", name)
    fits = 0 < len(plain.encode(errors="replace")) <= MOST_BYTES and plain.isprintable()
    ends = plain[:1] not in (".", " ") and plain[-1:] not in (".", " ")
    device = plain.partition(".")[0].strip().lower() in _DEVICES
    if not fits or not ends or device or _SPECIAL & set(plain):
        raise ParameterError(
            f"{argument!r} becomes the name of a file, and {got(name)} cannot be one: 1 to {MOST_BYTES} "
            'bytes, printable, none of / \\ : * ? " < > |, no dot or space at an end, no name of a device.',
            f'{argument}="2026-05".',
        )
    return plain


class Folder:
    """The files of one release id of a step.

    Results are in ``to/ID``. What was made on the way, and the manifest, are in ``to/.steps/ID``. Whoever
    writes there holds its lock.

    Parameters
    ----------
    to : the folder that steps write to.
    release_id : a name that `check_file_name` has passed.
    """

    def __init__(self, to: str | os.PathLike[str], release_id: str) -> None:
        self.release_id = release_id
        self.results = Path(to).absolute() / release_id
        self.state = Path(to).absolute() / STATE / release_id

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs of the release id out.

        Raises StepError where there is one, or the folder cannot be written.
        """
        with self._writing("Nothing was charged."):
            (self.state / "releases").mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.state / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            with self._writing("Nothing was charged."):
                taken = _lock(descriptor)
            if not taken:
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
                    _unlock(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _writing(self, fate: str) -> Iterator[None]:
        """Say in clear words what the system refuses, and what has become of the charge."""
        try:
            yield
        except OSError as error:
            raise StepError(
                f"The folder {str(self.results.parent)!r} of the step cannot be written "
                f"({error.strerror or type(error).__name__}). {fate}",
                "make room or give the right to write there, and call again with the same release_id.",
            ) from error

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> Json | None:
        """What was noted at the first run, and the results once all are there; None before."""
        found = self._json(self.state / MANIFEST)
        if found is not None and found.get("format") != FORMAT:
            raise StepError(
                f"The step {self.release_id!r} was run by another version of pdprivacy, which keeps it in "
                f"another way (format {found.get('format')!r}, here {FORMAT}). Nothing was charged.",
                "go on with that version, or choose another release_id.",
            )
        if found is not None and not all(isinstance(found.get(part), dict) for part in NOTED):
            raise self._unreadable(self.state / MANIFEST, DAMAGED)
        return found

    def note(self, manifest: Mapping[str, Any], fate: str = "Nothing was charged.") -> None:
        """Write the manifest; ``fate``: what is true if that fails."""
        with self._writing(fate):
            _write(self.state / MANIFEST, json.dumps({"format": FORMAT, **manifest}, indent=1).encode())

    def _json(self, path: Path) -> Json | None:
        found: Any = None
        reason = DAMAGED
        try:
            found = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            reason = error.strerror or type(error).__name__
        except ValueError:
            pass
        if not isinstance(found, dict):
            raise self._unreadable(path, reason)
        return found

    def _unreadable(self, path: Path, reason: str) -> StepError:
        return StepError(
            f"What the step {self.release_id!r} has noted cannot be read, {str(path)!r}: {reason}. "
            "Nothing was charged.",
            "make it readable, or restore it from a copy, or choose another release_id.",
        )

    # ------------------------------------------------------------ releases on the way

    def made(self) -> list[int]:
        """The numbers of the releases that are stored, in order."""
        if (self.state / "releases").is_dir():
            stored = (self.state / "releases").glob("*.parquet")
            return sorted(int(path.stem) for path in stored if path.stem.isdecimal())
        return []

    def noted(self, number: int) -> Json | None:
        """What was noted of a release that is stored; None where it is not."""
        if not self._release(number).exists():
            return None
        found = self._json(self._release(number).with_suffix(".json"))
        if found is None or not {"call", "digest", "risk"} <= set(found):
            raise StepError(
                f"The call of the stored release {number} of the step {self.release_id!r} is missing. "
                "Nothing was charged.",
                "restore the folder from a copy, or choose another release_id.",
            )
        return found

    def read(self, number: int) -> Released:
        """A stored release, as it was made."""
        noted = self.noted(number)
        assert noted is not None
        return self._checked(self._release(number), noted["digest"])

    def digest_of(self, number: int) -> str:
        """The digest of the file of a stored release."""
        noted = self.noted(number)
        assert noted is not None
        return str(noted["digest"])

    def store(self, number: int, note: Mapping[str, Any], data: bytes) -> None:
        """Keep a release, the file of which is ``data``, with a note: all of it, or nothing."""
        path, note = self._release(number), {**note, "digest": digest(data)}
        with self._writing(
            "The release was charged, and is lost: nobody has seen it, and it is not made again."
        ):
            try:
                self._store(path, note, data)
            except OSError:
                (self.state / RESERVE).unlink()
                self._store(path, note, data)

    def _store(self, path: Path, note: Mapping[str, Any], data: bytes) -> None:
        _write(path.with_suffix(".json"), json.dumps(note).encode())
        _write(path, data)  # that makes it count

    def reserve(self) -> None:
        """Make sure that there is room for a release before it is paid for."""
        with self._writing("Nothing was charged for this release."):
            path = self.state / RESERVE
            if not path.exists() or path.stat().st_size < RESERVED_BYTES:
                with open(path, "wb") as file:
                    _allocate(file.fileno(), RESERVED_BYTES)

    def _release(self, number: int) -> Path:
        return self.state / "releases" / f"{number}.parquet"

    def _checked(self, path: Path, mark: str) -> Released:
        """The release in a file, if the file is the one that was stored."""
        failure, found = "it is not there", None
        try:
            data = path.read_bytes()
            found = from_bytes(data, path.name)
            failure = "" if digest(data) == mark else "the file is not the one that was stored"
        except FileNotFoundError:
            pass
        except (OSError, MetadataError) as error:
            failure = str(error.strerror if isinstance(error, OSError) else error).partition("\nHint")[0]
        if found is None or failure:
            raise StepError(
                f"A stored release of the step {self.release_id!r} cannot be used, {str(path)!r}: "
                f"{failure.rstrip('.')}. Nothing was charged.",
                "restore the file from a copy; another release_id pays for all releases again.",
            )
        return found

    # ------------------------------------------------------------ results

    def finish(self, names: Mapping[str, int]) -> None:
        """Put the releases of these numbers into the folder of the results, by name.

        To be called again where it was interrupted: the manifest holds the names by then.
        """
        with self._writing(STORED):
            if self.results.is_dir():
                return
            ready = self.state / "results"
            files = {ready / f"{name}.parquet": self._release(number) for name, number in names.items()}
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
            _sync(ready)
            os.rename(ready, self.results)
            _sync(self.results.parent)

    def result(self, name: str, mark: str) -> Released:
        """A result of a step that is finished; ``mark``: the digest of its file."""
        return self._checked(self.results / f"{name}.parquet", mark)


def digest(data: bytes) -> str:
    """A hash of the bytes of a file."""
    return blake2b(data, digest_size=16).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Write a file whole and durably, or leave what was there."""
    new = path.with_name(f"{path.name}.new")
    try:
        with open(new, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Tell the disk to keep the names in a folder, where the system has a way to."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some systems have no way to
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _allocate(descriptor: int, size: int) -> None:
    """Take so much room on the disk."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
    os.write(descriptor, bytes(size))


def _lock(descriptor: int) -> bool:
    """Take the lock; False where another run holds it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except PermissionError:  # how Windows says it
        if sys.platform != "win32":
            raise
        return False
    return True


def _unlock(descriptor: int) -> None:
    """Give the lock up, also in processes that have inherited it."""
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_UN)
