"""Errors as users see them: the message and their own frames, without those of this package."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from pdprivacy.errors import PrivacyError

__all__ = ["DEBUG", "short_functions", "short_traceback", "short_tracebacks", "shorten"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)

DEBUG = "PDPRIVACY_DEBUG"
"""An environment variable; "1" keeps all frames and causes of errors."""


def shorten(error: Exception, handled: BaseException | None) -> None:
    """Take the frames and causes of this package from an error of its own, which is raised on.

    ``handled``: the error that the caller is handling, which stays the context.

    IPython's Verbose mode, ``pytest --showlocals`` and rich print the local variables of every frame, and
    those of this package can hold records. The frame that raises the error on remains; it sets
    ``__tracebackhide__`` and ``_rich_traceback_omit``, so that these tools hide it.
    """
    if isinstance(error, PrivacyError) and os.environ.get(DEBUG) != "1":
        error.__cause__ = error.__traceback__ = None
        error.__context__, error.__suppress_context__ = handled, False


def short_traceback(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that errors of this package leave it without inner frames; see `shorten`."""

    @functools.wraps(function)
    def public(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = _rich_traceback_omit = True
        handled = sys.exc_info()[1]
        try:
            return function(*args, **kwargs)
        except PrivacyError as error:
            shorten(error, handled)
            raise

    return public


_QUIET = {"__class_getitem__", "__del__", "__delattr__", "__getattribute__", "__init_subclass__", "__new__"}
_QUIET |= {"__post_init__", "__setattr__"}
"""Methods of a class that nobody calls, or whose caller is its constructor."""


def short_tracebacks(kind: T) -> T:
    """Decorate all public methods, properties and operators of a class with `short_traceback`.

    Those of its bases are left alone.
    """
    for name, member in list(vars(kind).items()):
        private = name.startswith("_") and not name.startswith("__")
        if not private and name not in _QUIET and (short := _shortened(member)) is not member:
            setattr(kind, name, short)
    return kind


def short_functions(module: ModuleType, names: Iterable[str]) -> None:
    """Decorate the functions that a module offers to users with `short_traceback`.

    The module where a function is defined keeps the plain one, which the package itself imports.
    """
    for name in names:
        function = getattr(module, name)
        if inspect.isfunction(function) and (short := _shortened(function)) is not function:
            short.__module__ = module.__name__  # where it can be pickled from
            setattr(module, name, short)


def _shortened(member: Any) -> Any:
    """A decorated member of a class or module; itself where it is no function or is decorated already."""
    if isinstance(member, property):
        return property(_shortened(member.fget), member.fset, member.fdel, member.__doc__)
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_shortened(member.__func__))
    if not inspect.isfunction(member) or member.__code__ is _SHORT:
        return member
    return short_traceback(member)


_SHORT = short_traceback(lambda: None).__code__
"""The code that all decorated functions share."""
