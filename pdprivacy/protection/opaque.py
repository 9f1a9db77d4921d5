"""Refusals of what would read cells of a protected frame, each with the call to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from pdprivacy.domain import Domain
from pdprivacy.errors import OpaqueFrameError, ParameterError, PrivacyError
from pdprivacy.expressions import REFUSED, refusal
from pdprivacy.hints import EXAMPLES, unknown
from pdprivacy.show.tracebacks import short_tracebacks

__all__ = ["Opaque"]

_SAVE = "release it first, {}, and use the result"
_KINDS = (('"age"', ("integer", "float")), ('"region"', ("category", "boolean")))


@short_tracebacks
class Opaque:
    """An object that shows no cell: reading, iterating, converting and pickling it are refused.

    NumPy and pandas leave their operators to it, so that no operand of theirs is taken apart beside it.
    """

    __slots__ = ()
    __array_ufunc__ = None
    __pandas_priority__ = 5000  # above that of a DataFrame, 4000

    _kind = "a protected frame"

    def _declared(self) -> Domain:
        raise NotImplementedError

    def _offered(self) -> list[str]:
        """The public names of the object, and those of releases."""
        return [*(name for name in dir(type(self)) if not name.startswith("_")), *EXAMPLES]

    def _refused(self, what: str, instead: str) -> OpaqueFrameError:
        return OpaqueFrameError(f"{what} reads cells, and {self._kind} shows none.", instead)

    def _release(self, method: str) -> str:
        """A call of a release, of declared columns where some are."""
        text = EXAMPLES.get(method, EXAMPLES["describe"])
        for example, kinds in _KINDS:
            columns = (one for one in self._declared().columns if one.role != "identifier")
            name = next((one.name for one in columns if one.kind in kinds), None)
            if name is not None:
                text = text.replace(example, f'"{name}"' if isinstance(name, str) else repr(name))
        return text

    if not TYPE_CHECKING:  # a type checker refuses unknown names itself

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # asked for by Python and by notebooks
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            raise self._missing(name)

    def _missing(self, name: str) -> PrivacyError:
        if name in REFUSED:
            return refusal(name)
        release = self._release("mean" if name == "dp" else name)
        if name in EXAMPLES or name == "dp":
            return self._refused(repr(name), release)
        if name in self._declared():
            return self._refused(repr(name), f"a column is private[{name!r}], and {release} releases it")
        if hasattr(pd.DataFrame, name) or hasattr(pd.Series, name):
            return self._refused(repr(name), _SAVE.format(release))
        return unknown(type(self).__name__, name, self._offered())

    def __len__(self) -> int:
        raise self._refused("len()", EXAMPLES["count"])

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._refused("Conversion to an array", _SAVE.format(self._release("histogram")))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def __reduce_ex__(self, _: Any) -> Any:
        raise ParameterError(
            "A protected frame cannot be pickled: the copy would not know what is spent.",
            "protect the frame where it is used, with the same pdprivacy.Ledger.",
        )
