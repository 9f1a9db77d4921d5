"""Steps of pandas that no protected frame offers, each with the reason and a declared step in its place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pdprivacy.errors import UnstableStepError, got
from pdprivacy.hints.examples import Example

# A deterministic step multiplies a loss by its sensitivity: how many records of the result one record more or
# less can change. It is infinite for a threshold that is itself computed from the data, as with outliers.
# Source: "The adverse effects of omitting records in differential privacy", Theorem 5.1, Propositions B.2 and
# B.3.

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

_PERIODS = "it takes the periods from the data"
_BY_PERIOD = Example('declared periods: private.dp.groupby("when", freq="M").count(epsilon=0.1)')
_FILTER = Example('a condition with declared bounds: private.query("age <= 90")')
_TRIM = Example(
    'public bounds: private.query("age >= 30") or private.clip(upper={"age": 80}); or '
    "private.dp.suppress_outliers(...), which is random and whose cost is known"
)
_TOP = "private.query with a public threshold, or private.dp.quantile for a private one"
_COLUMN = Example('arithmetic of declared columns: private.assign(net="age - income")')
_EXPRESSION = Example('an expression as a new column: private.assign(yearly="12 * income")')
_TRUTH = Example('one column at a time: private["age"].where(private["age"] >= 30, 30), for private.assign')
_RECODE = Example("labels for labels: private.recode('region', {'north': 'other'})")
_FILL = Example('a public constant: private.fillna({"age": 0}), or private.dropna()')
_RELEASES = "a release, such as private.dp.mean or private.dp.crosstab"
_BEFORE = "make the change before df.dp.protect(...), where each unit is known"
_ONE_OF_EACH = (
    "df.dp.protect(..., unit=..., max_rows=1), which names whose each record is, and keeps one of each"
)
_MERGE = Example(
    "the columns of a public table: private.merge("
    'pd.DataFrame({"region": ["north"], "capital": ["Oslo"]}), on="region")'
)
_SELECT = Example('private.select(["age", "region"]) for columns, private.query for records')

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
        **dict.fromkeys(("shift", "diff", "pct_change", "rolling"), (_BESIDE, _COLUMN)),
        **dict.fromkeys(("resample", "asfreq"), (_PERIODS, _BY_PERIOD)),
        **dict.fromkeys(("ffill", "bfill", "pad", "backfill", "interpolate"), (_SPREADS, _FILL)),
        **dict.fromkeys(("explode", "melt", "stack"), (_MULTIPLIES, _BEFORE)),
        "join": ("it finds rows by their index, which is not declared", _MERGE),
        **dict.fromkeys(("iloc", "loc", "at", "iat", "take", "xs"), (_PLACE, _SELECT)),
        "reindex": (_PLACE, _SELECT),
        **dict.fromkeys(("apply", "transform"), (_FUNCTION, _COLUMN)),
        "map": ("it takes functions, which may look at other records", _RECODE),
        "eval": ("an expression may look at other records, as with age.mean()", _EXPRESSION),
        "qcut": (
            "its edges are quantiles of the data",
            Example("public edges: private.cut('age', [18, 30, 65])"),
        ),
        "round": ("it is a function of one column", Example('private.assign(rounded="round(income)")')),
        "replace": ("it looks for values that need not be declared", _RECODE),
        **dict.fromkeys(("where", "mask"), (_WIDER, _TRUTH)),
        **dict.fromkeys(("update", "combine_first"), (_WIDER, _COLUMN)),
    }
)
"""Refused steps by name: the reason, and the declared step in its place."""


def refusal(name: str) -> UnstableStepError:
    """The error for a step of this name; an AttributeError too, as the name is no method.

    >>> print(refusal("qcut"))
    'qcut' is not offered: its edges are quantiles of the data.
    Hint: public edges: private.cut('age', [18, 30, 65])
    """
    reason, instead = REFUSED.get(name, ("it is not a declared step", _FILTER))
    return UnstableStepError(f"{got(name)} is not offered: {reason}.", instead)
