"""Errors as users see them: the message and their own frames, without those of this package."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Literal, ParamSpec, TypeVar

from pdprivacy.errors import PrivacyError

__all__ = ["DEBUG", "ShortTraceback", "short_traceback"]

P = ParamSpec("P")
R = TypeVar("R")

DEBUG = "PDPRIVACY_DEBUG"
"""An environment variable; "1" keeps all frames and causes of errors."""


class ShortTraceback:
    """A context that raises errors of this package without its inner frames and without their causes.

    IPython's Verbose mode, ``pytest --showlocals`` and rich print the local variables of every frame, and
    those of this package can hold records. The frame of the context may remain; it sets ``__tracebackhide__``
    and ``_rich_traceback_omit``, so that these tools hide it.
    """

    def __enter__(self) -> None:
        self._outer = sys.exc_info()[1]

    def __exit__(self, kind: object, error: BaseException | None, frames: object) -> Literal[False]:
        if isinstance(error, PrivacyError) and os.environ.get(DEBUG) != "1":
            error.__cause__ = error.__traceback__ = None
            error.__context__ = self._outer  # of the caller, who may be handling an error
            error.__suppress_context__ = False
        return False


def short_traceback(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function with a `ShortTraceback`."""

    @functools.wraps(function)
    def public(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = _rich_traceback_omit = True
        with ShortTraceback():
            return function(*args, **kwargs)

    return public
