"""Refusals, each with the call to write instead: of reading cells, and of steps over other records.

A deterministic step multiplies a loss by its sensitivity: how many records of the result one record more or
less can change. It is infinite for a threshold that is itself computed from the data, as with outliers.

Source: "The adverse effects of omitting records in differential privacy", Theorem 5.1, Propositions B.2, B.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from pdprivacy.domain import Domain
from pdprivacy.errors import (
    OpaqueFrameError,
    ParameterError,
    PrivacyError,
    UnstableStepError,
    got,
    short_tracebacks,
)
from pdprivacy.hints import EXAMPLES, unknown

__all__ = ["REFUSED", "Opaque", "refusal"]


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
        public = (known for known in dir(type(self)) if not known.startswith("_"))
        return unknown(type(self).__name__, name, [*public, *EXAMPLES])

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


# ---------------------------------------------------------------- steps that look at other records

_OUTLIERS = (
    "one record can change which others stay, any number of them, so the step has infinite sensitivity "
    '(Propositions B.2 and B.3 of "The adverse effects of omitting records in differential privacy")'
)
_STAYS = "which records stay depends on the others: one record can change it for others"
_SPREADS = "one record can change the new cells of any number of others, so the step has infinite sensitivity"
_BESIDE = "the new cell of a record depends on the records beside it, and records have no public order"
_ORDER = "the order of the records is not public, and no release depends on it"
_PLACE = "rows are picked by place or index label, which are not declared"
_FUNCTION = "a function may look at other records, and nothing can be declared of its result"
_MULTIPLIES = "one record may become many, and nothing bounds how many"
_WIDER = "it changes cells by a condition or a frame from elsewhere, which may depend on other records"

_FILTER = 'a condition with declared bounds: private.dp.query("age <= 90")'
_TRIM = (
    'public bounds: private.dp.query("income <= 200_000") or private.dp.clip(upper={"income": 200_000}); or '
    "private.dp.suppress_outliers(...), which is random and whose cost is known"
)
_TOP = "private.dp.query with a public threshold, or private.dp.quantile for a private one"
_COLUMN = 'arithmetic of declared columns: private.dp.assign(net="gain - loss")'
_FILL = 'a public constant: private.dp.fillna({"age": 0}), or private.dp.dropna()'
_RELEASES = "a release, such as private.dp.mean or private.dp.crosstab"
_BEFORE = "make the change before df.dp.protect(...), where each unit is known"
_ONE_OF_EACH = (
    "df.dp.protect(..., unit=..., max_rows=1), which names whose each record is, and keeps one of each"
)
_SELECT = 'private.dp.select(["age", "region"]) for columns, private.dp.query for records'

REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "drop_outliers": (_OUTLIERS, _TRIM),
        "drop_top": (_OUTLIERS, _TRIM),
        **dict.fromkeys(("drop_duplicates", "duplicated"), (_STAYS, _ONE_OF_EACH)),
        **dict.fromkeys(("nlargest", "nsmallest"), (_STAYS, _TOP)),
        **dict.fromkeys(("head", "tail", "truncate", "first", "last"), (_STAYS, _FILTER)),
        **dict.fromkeys(("sort_values", "sort_index"), (_ORDER, _RELEASES)),
        **dict.fromkeys(
            ("rank", "cumsum", "cumprod", "cummax", "cummin", "expanding", "ewm"), (_SPREADS, _COLUMN)
        ),
        **dict.fromkeys(("shift", "diff", "pct_change", "rolling", "resample", "asfreq"), (_BESIDE, _COLUMN)),
        **dict.fromkeys(("ffill", "bfill", "pad", "backfill", "interpolate"), (_SPREADS, _FILL)),
        **dict.fromkeys(("merge", "join", "explode", "melt", "stack"), (_MULTIPLIES, _BEFORE)),
        **dict.fromkeys(("iloc", "loc", "at", "iat", "take", "xs"), (_PLACE, _SELECT)),
        **dict.fromkeys(("drop", "filter", "reindex"), (_PLACE, _SELECT)),
        **dict.fromkeys(("apply", "map", "transform", "pipe"), (_FUNCTION, _COLUMN)),
        "eval": ("an expression may look at other records, as with age.mean()", _COLUMN),
        "qcut": ("its edges are quantiles of the data", "public edges: private.dp.cut('age', [18, 30, 65])"),
        "replace": (
            "it looks for values that need not be declared",
            "private.dp.recode('region', {'north': 'other'})",
        ),
        **dict.fromkeys(("where", "mask", "update", "combine_first"), (_WIDER, _COLUMN)),
    }
)
"""Refused steps by name: the reason, and the declared step in its place."""


def refusal(name: str) -> UnstableStepError:
    """The error for a step of this name; an AttributeError too, as the name is no method.

    >>> print(refusal("qcut"))
    'qcut' is not offered: its edges are quantiles of the data.
    Hint: public edges: private.dp.cut('age', [18, 30, 65])
    """
    reason, instead = REFUSED.get(name, ("it is not a declared step", _FILTER))
    return UnstableStepError(f"{got(name)} is not offered: {reason}.", instead)
