"""Exceptions and warnings of pdprivacy, and the tracebacks that users see: without the frames of the package.

Every message is made of declared facts (column names, bounds, categories of
the declaration) and of the arguments of the call. No message ever holds a
cell of the data: an argument is shown if it is a short number or text as it
is typed, and named by its type else.

    PrivacyError
    ├── ParameterError         an argument is off (also a ValueError)
    ├── ArgumentError          a call lacks an argument, or has one too many (also a TypeError)
    ├── UnknownNameError       nothing of this name is offered (also an AttributeError)
    ├── DeclarationError       the declaration lacks or contradicts something (also a ValueError)
    ├── InvalidDataError       the data does not meet its declaration (also a ValueError)
    ├── QueryError             a filter that is not record by record (also a ValueError)
    ├── UnstableStepError      a step in which one record may change others (also an AttributeError)
    ├── TableTooLargeError     more declared cells than a table may have (also a ValueError)
    ├── NotProtectedError      the frame was never protected
    ├── OpaqueFrameError       a protected frame or column shows no cell (also an AttributeError, a TypeError)
    ├── BudgetError            the budget refuses the charge
    │   ├── BudgetExceeded     what is left is less than what was asked
    │   └── AlreadyCharged     a release id that was charged before
    ├── LedgerError            the ledger cannot be read or written
    │   ├── MissingLedgerError   there is none yet
    │   └── TamperedLedgerError  its records are not those that were entered
    ├── StepError              a release step cannot go on, or its body returns what is no release of it
    │   └── ChangedStepError   a step is tried again, but not as it was (also a ValueError)
    ├── EngineError            an engine failed to compute what was asked of it
    ├── DefectError            a release that would lose more than its charge: a defect of pdprivacy
    ├── MetadataError          a frame without release metadata, or with an altered one
    │   └── NoPictureError       a frame that cannot be drawn
    └── MissingExtraError      an optional dependency is absent (also an ImportError)

    BoundingWarning            bounded counts, whose biases add up in sums (a UserWarning)
    DeclarationWarning         a declaration that may have been read off the data (a UserWarning)
    IntervalWarning            a regression that will state no intervals (a UserWarning)
    InvalidDataWarning         records may be left out, or numbers clipped (a UserWarning)
    OmissionWarning            records left out for privacy, at a loss (a UserWarning)
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType, TracebackType
from typing import Any, ParamSpec, TypeVar

from pdprivacy.hints.examples import Example

__all__ = [
    "AlreadyCharged",
    "ArgumentError",
    "BoundingWarning",
    "BudgetError",
    "BudgetExceeded",
    "ChangedStepError",
    "DeclarationError",
    "DeclarationWarning",
    "DefectError",
    "EngineError",
    "IntervalWarning",
    "InvalidDataError",
    "InvalidDataWarning",
    "LedgerError",
    "MetadataError",
    "MissingExtraError",
    "MissingLedgerError",
    "NoPictureError",
    "NotProtectedError",
    "OmissionWarning",
    "OpaqueFrameError",
    "ParameterError",
    "PrivacyError",
    "QueryError",
    "StepError",
    "TableTooLargeError",
    "TamperedLedgerError",
    "UnknownNameError",
    "UnstableStepError",
]

SHOWN = 20
"""Digits of a whole number that an error may show, and a third of the characters of a text."""

LONGEST = 2000
"""Characters of a message; what follows is left out, such as the end of a long filter."""


def got(value: object) -> str:
    """Format an argument for an error: a short literal as it is typed, and all else by its type.

    Numbers and texts of NumPy and pandas, decimals, fractions, arrays and containers may be cells or hold
    some, so they are named by type. A plain number or text is printed, although a cell can become one
    (``Series.tolist``, ``.item()``, a text): arguments that stand for cells (labels, bounds and edges of
    columns, constants of ``clip`` and ``fillna``) and items of other arguments are formatted by `kind`.

    Expressions are printed as they are written, with their constants: these are literals of the user, which
    the lineage of every later release shows, too.

    >>> got("abc"), got(-1), got([1, 2]), got("x" * 100)
    ("'abc'", '-1', 'list', 'str')
    """
    if type(value) is int:
        is_literal = abs(value) < 10**SHOWN
    elif type(value) is str:
        is_literal = len(value) <= 3 * SHOWN
    else:
        is_literal = type(value) in (bool, float, type(None))
    return repr(value) if is_literal else kind(value)


def kind(value: object) -> str:
    """Format an argument that may be a cell, or hold some, for an error: the name of its type.

    >>> kind(3), kind(None)
    ('int', 'None')
    """
    return "None" if value is None else type(value).__name__


class PrivacyError(Exception):
    """Base of every error that pdprivacy raises on purpose.

    Parameters
    ----------
    message : the fact, ending with a full stop.
    hint : what to write instead; printed on its own line after ``Hint:``. An ``Example`` is written with the
        declared columns of a frame by the method of the frame that the error leaves.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message, self.hint = message, hint
        text = message if hint is None else f"{message}\nHint: {hint}"
        super().__init__(text if len(text) <= LONGEST else text[:LONGEST] + " ...")
        if isinstance(self, AttributeError):
            setattr(self, "obj", None)  # noqa: B010  (else Python appends a name of its own to the hint)

    def _render_traceback_(self) -> Any:
        """Return the traceback for IPython, which shows a hidden frame if it is the last one."""
        frames, entry = [], self.__traceback__
        while entry is not None:
            frames.append(entry)
            entry = entry.tb_next
        visible: TracebackType | None = None
        for frame in reversed(frames):
            if frame.tb_frame.f_locals.get("__tracebackhide__") is not True:
                visible = TracebackType(visible, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if shell is None:
            return traceback.format_exception(type(self), self, visible)
        return shell.InteractiveTB.structured_traceback(type(self), self, visible)


class ParameterError(PrivacyError, ValueError):
    """An argument is outside what the call accepts."""


class ArgumentError(PrivacyError, TypeError):
    """A call lacks an argument, or has an unknown one; nothing was charged."""


class UnknownNameError(PrivacyError, AttributeError):
    """The name is unknown."""


class DeclarationError(PrivacyError, ValueError):
    """The declaration lacks, or contradicts, what the call needs."""


class InvalidDataError(PrivacyError, ValueError):
    """The data does not meet its declaration; names the column and the check, never a value."""


class QueryError(PrivacyError, ValueError):
    """A filter that is not a record-by-record condition on declared columns."""


class UnstableStepError(PrivacyError, AttributeError):
    """A step that looks at other records, so that one record may change the result for others."""


class TableTooLargeError(PrivacyError, ValueError):
    """The declared cells of a table are more than can be released in one call."""


class NotProtectedError(PrivacyError):
    """The frame was never protected, so nothing about it is declared."""


class OpaqueFrameError(PrivacyError, AttributeError, TypeError):
    """A protected frame or column shows no cell; the hint is the release to call instead."""


class BudgetError(PrivacyError):
    """The budget cannot take the charge."""


class BudgetExceeded(BudgetError):
    """A charge larger than what is left; the budget stays as it was."""


class AlreadyCharged(BudgetError):
    """A release of this id was charged before; nothing is charged again, and nothing released again."""


class LedgerError(PrivacyError):
    """The ledger cannot be read or written.

    ``reason`` is the message without ``fate``, which says whether anything was entered.
    """

    fate: str

    def __init__(self, reason: str, hint: str | None = None, fate: str = "") -> None:
        super().__init__(f"{reason} {fate}".rstrip(), hint)
        self.reason, self.fate = reason, fate


class MissingLedgerError(LedgerError):
    """There is no ledger at the address yet."""


class TamperedLedgerError(LedgerError):
    """The records of the ledger are not those that were entered, or not all of them."""


class StepError(PrivacyError):
    """A release step cannot continue, or returns an object that it did not release; says what was charged."""


class ChangedStepError(StepError, ValueError):
    """A step is tried again under its release id, but with other arguments, declarations or calls."""


class EngineError(PrivacyError):
    """An engine failed halfway; says what it was to compute, and nothing of what it read."""


class DefectError(PrivacyError):
    """A release would lose more than its charge: a defect of pdprivacy; nothing was charged or read."""


class MetadataError(PrivacyError):
    """The frame carries no release metadata, or metadata that is not readable."""


class NoPictureError(MetadataError):
    """The frame holds nothing that can be drawn."""


class MissingExtraError(PrivacyError, ImportError):
    """An optional dependency is not installed; the hint names the extra."""


class BoundingWarning(UserWarning):
    """Bounding biases each of several counts, and their sums by the sum of the biases."""


class DeclarationWarning(UserWarning):
    """A declaration may not say what it should, such as a bound that coincides with the data."""


class IntervalWarning(UserWarning):
    """A regression will state no standard errors and intervals; says so before it is charged."""


class InvalidDataWarning(UserWarning):
    """Records that do not meet the declaration are left out or clipped; says so for any data."""


class OmissionWarning(UserWarning):
    """Leaving out records costs accuracy here, and gains nothing in privacy or noise."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line of the caller outside of this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith("pdprivacy."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# ---------------------------------------------------------------- tracebacks as users see them

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)

DEBUG = "PDPRIVACY_DEBUG"
"""An environment variable; "1" keeps all frames and causes of errors."""


def shorten(error: Exception, handled: BaseException | None, owner: Any = None) -> None:
    """Take the frames and causes of this package from an error of its own, which is raised on.

    ``handled``: the error that the caller is handling, which stays the context. ``owner``: the object of the
    method that raises it on; where it has a declaration, an example as hint is written with its columns.

    IPython's Verbose mode, ``pytest --showlocals`` and rich print the local variables of every frame, and
    those of this package can hold records. The frame that raises the error on remains; it sets
    ``__tracebackhide__`` and ``_rich_traceback_omit``, so that these tools hide it.
    """
    if isinstance(error, PrivacyError) and isinstance(error.hint, Example) and hasattr(owner, "_declared"):
        PrivacyError.__init__(error, error.message, error.hint.of(owner._declared().columns))
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
            shorten(error, handled, args[0] if args else None)
            raise

    return public


_QUIET = {"__class_getitem__", "__del__", "__delattr__", "__getattribute__", "__init_subclass__", "__new__"}
_QUIET |= {"__post_init__", "__setattr__"}
"""Methods of a class that nobody calls, or whose caller is its constructor."""


def shorten_from(body: Callable[..., Any], error: BaseException, handled: BaseException | None) -> None:
    """Take the frames of this package from an error that passes it on the way out of a user's function.

    ``body``: the function, whose frames stay. An error that is raised elsewhere is shortened by `shorten`.
    """
    code, entry = getattr(body, "__code__", None), error.__traceback__
    while entry is not None and entry.tb_frame.f_code is not code:
        entry = entry.tb_next
    if entry is not None and os.environ.get(DEBUG) != "1":
        error.__traceback__ = entry
    elif entry is None and isinstance(error, Exception):
        shorten(error, handled)


def short_tracebacks(kind: T, properties: bool = True) -> T:
    """Decorate all public methods and operators of a class, and ``properties``, with `short_traceback`.

    Those of its bases are left alone, and so are those that `dataclass` generates, except ``__init__``.
    """
    for name, member in list(vars(kind).items()):
        private = name.startswith("_") and not name.startswith("__")
        quiet = name in _QUIET or (name != "__init__" and _is_generated(member))
        quiet |= not properties and isinstance(member, property | functools.cached_property)
        if not private and not quiet and (short := _shortened(member)) is not member:
            setattr(kind, name, short)
    return kind


def short_public(module: ModuleType, names: Iterable[str]) -> None:
    """Decorate the functions and the classes that a module offers to users with `short_traceback`.

    The module where a function is defined keeps the plain one, which the package itself imports. Of a class,
    the bases in this package are decorated, too, but no property: the package itself reads those of values.
    """
    for name in names:
        thing = getattr(module, name)
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            for base in thing.__mro__:
                if base.__module__.startswith("pdprivacy.") and not getattr(base, "_is_protocol", False):
                    short_tracebacks(base, properties=False)
        elif inspect.isfunction(thing) and (short := _shortened(thing)) is not thing:
            short.__module__ = module.__name__  # where it can be pickled from
            setattr(module, name, short)


def _is_generated(member: Any) -> bool:
    """Whether a method is generated, as those of data classes are."""
    return inspect.isfunction(member) and member.__code__.co_filename.startswith("<")


def _shortened(member: Any) -> Any:
    """A decorated member of a class or module; itself where it is no function or is decorated already."""
    if isinstance(member, property):
        return property(_shortened(member.fget), member.fset, member.fdel, member.__doc__)
    if isinstance(member, functools.cached_property):
        cached = functools.cached_property(_shortened(member.func))
        cached.attrname = member.attrname
        return cached
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_shortened(member.__func__))
    if not inspect.isfunction(member) or member.__code__ is _SHORT:
        return member
    return short_traceback(member)


_SHORT = short_traceback(lambda: None).__code__
"""The code that all decorated functions share."""
