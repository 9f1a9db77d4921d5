"""Objects that show no cell, and what their refusals suggest in place of a name of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from pdprivacy.core.rows.functions import FUNCTIONS
from pdprivacy.declaration.domain import DATE_METHODS, Column, Domain
from pdprivacy.errors import OpaqueFrameError, ParameterError, PrivacyError, short_tracebacks
from pdprivacy.frames.refused_steps import REFUSED, refusal
from pdprivacy.hints.examples import EXAMPLES, INSTEAD, Example, quoted
from pdprivacy.hints.suggestions import unknown

_SAVE = "release it first, {}, and use the result"
_CONDITION = Example('private[private["age"] >= 30]')
_READING = ("head", "tail", "first", "last", "truncate", "iloc", "loc", "at", "iat", "take", "xs")
"""Methods of pandas that show records."""


def example_filter(columns: Sequence[Column]) -> str:
    """Return a filter by a condition on one of these columns."""
    return _CONDITION.of(columns) or f"private[private[{quoted(columns[0].name)}].notna()]"


@short_tracebacks
class Opaque:
    """An object that shows no cell: reading, iterating, converting and pickling it are refused.

    NumPy and pandas leave their operators to it, so that no operand of theirs is taken apart beside it.
    """

    __slots__ = ()
    __pandas_priority__ = 5000  # above that of a DataFrame, 4000

    _kind = "a protected frame"

    def _declared(self) -> Domain:
        raise NotImplementedError

    def _opaque_error(self, what: str, instead: str) -> OpaqueFrameError:
        return OpaqueFrameError(f"{what} reads cells, and {self._kind} shows none.", instead)

    def _example_call(self, method: str) -> str:
        """Return a call of a method with declared columns; of `count` where none fits."""
        columns = self._declared().columns
        names = (name for name in (method, "describe", "value_counts") if name in EXAMPLES)
        if len(columns) == 1 and columns[0].timeline is not None and method in DATE_METHODS:
            return f"private.dp.{method}({quoted(columns[0].name)}, epsilon=0.1)"
        texts = (EXAMPLES[name].of(columns) for name in names)
        return next(filter(None, texts), EXAMPLES["count"])

    def _example_filter(self) -> str:
        return example_filter(self._declared().columns)

    def _offered(self) -> Iterable[str]:
        """The names of the methods under ``.dp``."""
        return EXAMPLES

    if not TYPE_CHECKING:  # a type checker refuses unknown names and operators itself

        def _operator(self, *_: object) -> NoReturn:
            raise self._opaque_error("This operator", self._example_filter())

        __hash__ = object.__hash__
        __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _operator
        __add__ = __sub__ = __mul__ = __matmul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _operator
        __radd__ = __rsub__ = __rmul__ = __rmatmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _operator
        __rpow__ = __divmod__ = __rdivmod__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _operator
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _operator
        __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _operator

        def _number(self) -> NoReturn:
            """Refuse ``float(private["pay"])``, ``"%.2f" % private["pay"]`` and functions of `math`."""
            release = self._example_call("mean")
            of_one = release.startswith("private.dp.mean(") and "[" not in release
            instead = f"{release}.item()" if of_one else _SAVE.format(release)
            raise self._opaque_error("Conversion to a number", instead)

        __float__ = __int__ = __complex__ = _number

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # asked for by Python and by notebooks
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            raise self._missing_attribute(name)

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> Any:
        if ufunc.nin == 2 and ufunc.__name__ not in FUNCTIONS:
            raise self._opaque_error("This operator", self._example_filter())
        raise self._opaque_error(f"'np.{ufunc.__name__}'", self._example_of_function(ufunc.__name__))

    def _example_of_function(self, function: str) -> str:
        """Return a valid call of a function of NumPy, or of `assign`; a protected frame knows its columns."""
        del function
        return self._example_call("assign")

    def _missing_attribute(self, name: str) -> PrivacyError:
        if name in REFUSED and name not in _READING:
            return refusal(name)
        release = self._example_call("mean" if name == "dp" else name)
        if EXAMPLES.get(name, "").startswith(f"private.{name}("):  # a row step of the whole frame
            return unknown(type(self).__name__, name, EXAMPLES)
        if name in EXAMPLES or name == "dp":
            return self._opaque_error(repr(name), release)
        if name in self._offered():
            return self._opaque_error(repr(name), f"private.dp.{name}")
        if name in self._declared():
            column = self._declared()[name]
            texts = (EXAMPLES[verb].of([column]) for verb in ("describe", "value_counts"))
            released = next(filter(None, texts), EXAMPLES["count"])
            return self._opaque_error(
                repr(name), f"a column is private[{name!r}], and {released} releases it"
            )
        if name in INSTEAD and (example := INSTEAD[name].of(self._declared().columns)):
            return OpaqueFrameError(f"{self._kind.capitalize()} has no {name!r}.", example)
        if hasattr(pd.DataFrame, name) or hasattr(pd.Series, name):
            return self._opaque_error(repr(name), _SAVE.format(release))
        public = (known for known in dir(type(self)) if not known.startswith("_"))
        return unknown(type(self).__name__, name, [*public, *EXAMPLES])

    def __format__(self, form: str) -> str:
        try:
            return format(str(self), form)
        except ValueError:  # a format of numbers
            release = _SAVE.format(self._example_call("mean"))
            raise self._opaque_error(f"The format {form!r}", release) from None

    def __len__(self) -> int:
        raise self._opaque_error("len()", EXAMPLES["count"])

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._opaque_error("Conversion to an array", self._instead_of_array())

    def _instead_of_array(self) -> str:
        return _SAVE.format(self._example_call("histogram"))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def __reduce_ex__(self, _: Any) -> Any:
        raise ParameterError(
            "A protected frame cannot be pickled: the copy would not know what is spent.",
            "protect the frame where it is used, with the same pdprivacy.Ledger.",
        )
