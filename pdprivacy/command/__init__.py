"""The command line, ``python -m pdprivacy``: `main` picks a tool, and each tool writes by `written`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from pdprivacy.errors import ParameterError

__all__ = ["written"]


@contextmanager
def written(path: str | None, done: str, encoding: str = "ascii") -> Iterator[TextIO]:
    """A new file, on disk when the block is left and gone when it fails; without a path, the output.

    ``done``: what happens to the content, as in "Nothing was exported."

    Raises ParameterError where the file exists already or cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    try:
        file = open(path, "x", encoding=encoding, newline="\n")  # noqa: SIM115
    except FileExistsError:
        raise ParameterError(f"{path!r} exists already. Nothing was {done}.", "give a new name") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise ParameterError(f"{path!r} cannot be written: {reason}. Nothing was {done}.") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
