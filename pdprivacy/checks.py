"""Checks of arguments, one of each kind. Each returns the argument to compute with, or raises ParameterError.

No message shows more of an argument than `pdprivacy.errors.got` does. The exact numbers of losses are checked
by `pdprivacy.core.privacy.rational` and ``positive``, because their types are defined there.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import itertools
import math
import numbers
import operator
import os
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdprivacy.errors import ParameterError, got, kind
from pdprivacy.exact import EXACT
from pdprivacy.text import numbers as texts
from pdprivacy.types import Floats

T = TypeVar("T")

MOST_TEXT = 200
"""Characters of a name."""
NAMES: dict[Any, str] = {str: "string"}


def whole(
    value: Any, name: str, least: int | None = None, most: int | None = None, hint: str | None = None
) -> int:
    """Return a whole number within these limits; refuse truth values.

    >>> whole(3, "k", 1)
    3
    """
    number = integer(value)
    if number is not None and (least is None or number >= least) and (most is None or number <= most):
        return number
    if most is not None:
        expected = f"a whole number from {least} to {most if most <= 10**9 else format(float(most), 'g')}"
    elif least == 1:
        expected = "a positive whole number"
    else:
        known = least is not None and abs(least) < 10**20  # longer ones may have no text
        expected = "a whole number" + (f" of at least {least}" if known else "")
    raise ParameterError(f"{name!r} must be {expected} (got {got(value)}).", hint)


def real(
    value: Any, name: str, least: float = -math.inf, most: float = math.inf, hint: str | None = None
) -> float:
    """Return a finite number as a double, within these limits.

    >>> real(1, "level", 0, 1)
    1.0
    """
    number = _real(value)
    if math.isfinite(number) and least <= number <= most:
        return number
    ends = f" from {least:g} to {most:g}" if math.isfinite(most) else ""
    ends = f" of at least {least:g}" if math.isfinite(least) and not ends else ends
    if hint is None and hasattr(value, "iloc"):
        hint = f"{name}=released.item(), the number of a release of one."
    raise ParameterError(f"{name!r} must be a finite number{ends} (got {got(value)}).", hint)


def proportion(value: Any, name: str, hint: str | None = None) -> float:
    """Return a number strictly between 0 and 1, as a double.

    >>> proportion(0.95, "level")
    0.95
    """
    if 0 < (number := _real(value)) < 1:
        return number
    raise ParameterError(f"{name!r} must be strictly between 0 and 1 (got {got(value)}).", hint)


def _real(value: Any) -> float:
    """Return a number as a double; NaN for anything else, and for a number beyond doubles."""
    try:
        return float(builtin(value)) if is_number(value) or isinstance(value, Decimal) else math.nan
    except (ValueError, OverflowError):  # a NaN that signals, a number beyond doubles
        return math.nan


def finite(value: Any) -> bool:
    """Return whether a number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def flag(value: Any, name: str) -> bool:
    """Return True or False; refuse anything else.

    >>> flag(True, "sort")
    True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ParameterError(f"{name!r} must be True or False (got {got(value)}).")


def one_of(value: T, name: str, known: Sequence[str | None], hint: str | None = None) -> T:
    """Return one of the known names; refuse any other.

    >>> one_of("cells", "average", ("cells", "records", None))
    'cells'
    """
    if (value is None or isinstance(value, str)) and value in known:
        return value
    names = [option for option in known if option is not None]
    matches = difflib.get_close_matches(value[:100], names, n=1) if isinstance(value, str) else []
    raise ParameterError(
        f"{name!r} must be one of {', '.join(map(repr, known))} (got {got(value)}).",
        f'{name}="{matches[0]}"' if matches else hint,
    )


def is_function(value: object) -> TypeGuard[Callable[..., Any]]:
    """Return whether an object is a function, and no class or other object that can be called.

    >>> is_function(lambda private: private), is_function(int)
    (True, False)
    """
    return inspect.isroutine(value) or isinstance(value, functools.partial)


def function(value: T, name: str) -> T:
    """Return a function; refuse any other object.

    >>> function(len, "keep") is len
    True
    """
    if callable(value):
        return value
    raise ParameterError(f"{name!r} must be a function (got {got(value)}).")


def instance(value: Any, of: type[T], name: str, hint: str | None = None) -> T:
    """Return an object of a type; refuse any other.

    >>> instance({}, dict, "split")
    {}
    """
    if isinstance(value, of):
        return value
    raise ParameterError(f"{name!r} must be a {NAMES.get(of, of.__name__)} (got {got(value)}).", hint)


MOST_ITEMS = 10**6
"""The largest number of items of a list of labels, edges or constants."""


def items(values: Iterable[T], name: str, hint: str | None = None, most: int = MOST_ITEMS) -> list[T]:
    """Return the items of an iterable as a list; of longer ones only ``most + 1`` are looked at.

    >>> items((1, 2), "weights")
    [1, 2]
    >>> items(range(10**12), "weights")
    Traceback (most recent call last):
        ...
    pdprivacy.errors.ParameterError: 'weights' must hold at most 1,000,000 items.
    """
    try:
        listed = list(itertools.islice(values, most + 1))
    except TypeError:
        raise ParameterError(f"{name!r} must be a list (got {got(values)}).", hint) from None
    if len(listed) > most:
        raise ParameterError(f"{name!r} must hold at most {most:,} items.", hint)
    return listed


def pair(value: Any, name: str, hint: str | None = None) -> tuple[Any, Any]:
    """Return the two items of a pair, which is a tuple or a list.

    >>> pair([0, 1], "bounds")
    (0, 1)
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        return value[0], value[1]
    raise ParameterError(f"{name!r} must be a pair of a lower and an upper bound (got {got(value)}).", hint)


def path(value: Any, name: str, hint: str | None = None) -> str:
    """Return the path of a file as text; refuse the number of an open file, and text that no path can hold.

    Text of a type of its own may be a cell, so that it is refused.

    >>> path("released.parquet", "path")
    'released.parquet'
    """
    try:
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
        if type(text) is str and text and "\0" not in text and os.fsencode(text):
            return text
    except (TypeError, ValueError):  # a broken object, or a text that cannot be encoded
        pass
    raise ParameterError(
        f"{name!r} must be the path of a file, as text or a path object (got {got(value)}).", hint
    )


def reals(values: Any, name: str = "Values", expected: str = "numbers that doubles hold") -> NDArray[Any]:
    """Return numbers as an array; no value is in any message.

    >>> reals([1, 2]).tolist()
    [1, 2]
    """
    if isinstance(values, range):  # of any length in no memory
        values = items(values, name)
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = np.array([_double(item) for item in array.flat]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError):  # ragged lists, a NaN that signals, too large a fraction
        array = np.empty(0, dtype="U1")
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{name} must be {expected}.")
    return array


def _double(item: Any) -> float:
    """Return one of several numbers as a double; TypeError or OverflowError where no double holds it."""
    known = isinstance(item, numbers.Real | Decimal | None) and not isinstance(item, np.timedelta64)
    if not known or (isinstance(item, int) and abs(item) > EXACT):
        raise TypeError
    return math.nan if item is None else float(item)


def doubles(values: Any, name: str) -> Floats:
    """Return numbers as an array of doubles; no value is in any message.

    >>> doubles(1, "'x'")
    array(1.)
    """
    with np.errstate(over="ignore"):
        return reals(values, name).astype(np.float64)


def printable(text: str, argument: str = "text") -> str:
    """Return the text with unprintable characters, such as a new line, spelled out; refuse other objects."""
    if type(text) is str and text.isprintable():
        return text
    return texts.printable(instance(text, str, argument), None)


def check_name(name: Any, argument: str) -> str:
    """Return a name that a person can tell from others.

    Raises ParameterError for what is no text, empty, too long, not printable or padded.
    """
    if type(name) is not str:  # a text of NumPy may be a cell
        raise ParameterError(f"{argument!r} must be a string (got {kind(name)}).")
    plain = unicodedata.normalize("NFC", name)
    if not plain or len(plain) > MOST_TEXT or not plain.isprintable() or plain != plain.strip():
        raise ParameterError(
            f"{argument!r} must be 1 to {MOST_TEXT} printable characters without spaces around them."
        )
    return plain


# ---------------------------------------------------------------- values of any kind


def is_null(value: Any) -> bool:
    """Return whether the value stands for no value: None, NaN, NA or NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True
    except ValueError:  # an array; it is refused later, as it has no hash
        return False
    except ArithmeticError:  # a decimal NaN that signals
        return True


def is_number(value: Any) -> bool:
    """Return whether a value is a real number: no truth value, and no integer in name only.

    Durations of NumPy are registered as integers.
    """
    if type(value) is int or type(value) is float:
        return True
    if isinstance(value, numbers.Integral):
        return integer(value) is not None
    return isinstance(value, numbers.Real)


def integer(value: Any) -> int | None:
    """Return a whole number as an int; None for a truth value, a duration of NumPy and anything else.

    >>> integer(np.int8(3)), integer(True), integer(np.timedelta64(3, "ns"))
    (3, None, None)
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        with contextlib.suppress(TypeError):  # a type that is an integer in name only
            return int.__add__(operator.index(value), 0)
    return None


def builtin(number: Any) -> Any:
    """Return a number of a subclass as the number of the built-in type that it holds; any other as it is.

    The arithmetic of a subclass could make a charge and its noise differ.

    >>> type(builtin(np.float64(0.5)))
    <class 'float'>
    """
    if isinstance(number, int) and not isinstance(number, bool):
        return int.__add__(number, 0)
    if isinstance(number, float):
        return float.__float__(number)
    if isinstance(number, Decimal):
        return Decimal(number)
    if isinstance(number, Fraction):
        fields = (Fraction.__dict__[name].__get__(number) for name in Fraction.__slots__)
        return Fraction(*map(builtin, fields))
    return number


def is_list(value: Any) -> bool:
    """Return whether it is a list of values; an array without a dimension is a single value."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__iter__") and not isinstance(value, str)


def has_hash(value: object) -> bool:
    """Return whether the value can be a key; a slice, which has a hash from Python 3.12 on, selects instead.

    >>> has_hash("age"), has_hash(slice(1)), has_hash(("age", slice(None)))
    (True, False, False)
    """
    try:
        hash(value)
    except TypeError:
        return False
    return all(map(has_hash, value)) if isinstance(value, tuple) else not isinstance(value, slice)


def is_encodable(text: str) -> bool:
    """Return whether UTF-8 can hold a text, which has no surrogates then."""
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)


def plain(value: Any) -> Any:
    """Return a numpy number, truth value or string as the Python one, and everything else as it is."""
    number = isinstance(value, np.number) and not isinstance(value, np.timedelta64)
    return value.item() if number or isinstance(value, np.bool_ | np.str_) else value


def label(value: Any, subject: str) -> Any:
    """Return a constant that can be a label: hashable, not a container or null, and encodable if it is text.

    >>> label(3, "the image of 'north'")
    3
    """
    constant = plain(value)
    container = hasattr(constant, "__iter__") and not isinstance(constant, str | bytes | tuple)
    if (
        container
        or not has_hash(constant)
        or is_null(constant)
        or getattr(constant, "confidential", False) is True
    ):
        raise ParameterError(f"{subject} must be a label (got {kind(value)}).")
    if isinstance(constant, str) and not is_encodable(constant):
        raise ParameterError(f"{subject} must be encodable text (got {kind(value)}).")
    return constant
