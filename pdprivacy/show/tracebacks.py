"""Errors as users see them: the message and their own frames, without those of this package."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Literal, ParamSpec, TypeVar

from pdprivacy.errors import PrivacyError

__all__ = ["DEBUG", "ShortTraceback", "short_functions", "short_traceback", "short_tracebacks"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)

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


_QUIET = {"__class_getitem__", "__del__", "__delattr__", "__getattribute__", "__init_subclass__", "__new__"}
_QUIET |= {"__post_init__", "__setattr__"}
"""Methods of a class that nobody calls, or whose caller is its constructor."""


def short_tracebacks(kind: T) -> T:
    """Decorate a class with a `ShortTraceback` around each of its public methods, properties and operators.

    Those of its bases are left alone.
    """
    for name, member in list(vars(kind).items()):
        private = name.startswith("_") and not name.startswith("__")
        if not private and name not in _QUIET and (short := _shortened(member)) is not member:
            setattr(kind, name, short)
    return kind


def short_functions(module: ModuleType, names: Iterable[str]) -> None:
    """Give the functions of a module a `ShortTraceback`, there and where they are defined.

    Who imported a function before, as the package itself did, keeps the one without.
    """
    for name in names:
        function = getattr(module, name)
        if inspect.isfunction(function) and (short := _shortened(function)) is not function:
            setattr(module, name, short)
            setattr(sys.modules[function.__module__], function.__name__, short)


def _shortened(member: Any) -> Any:
    """A member of a class or module with a `ShortTraceback`; itself where it is no function or has one."""
    if isinstance(member, property):
        return property(_shortened(member.fget), member.fset, member.fdel, member.__doc__)
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_shortened(member.__func__))
    if not inspect.isfunction(member) or member.__code__ is _SHORT:
        return member
    return short_traceback(member)


_SHORT = short_traceback(lambda: None).__code__
"""What all functions with a `ShortTraceback` run."""
