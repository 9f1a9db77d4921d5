"""The public facts of a protected frame: its declaration, unit, budget and row steps."""

from __future__ import annotations

import contextlib
import copy
import keyword
import operator
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from pdprivacy.core.gate.records import Sealed, in_another_engine
from pdprivacy.declaration.domain import Column, Domain, Role
from pdprivacy.errors import InvalidDataError, ParameterError, UnstableStepError, got
from pdprivacy.hints.examples import Example

if TYPE_CHECKING:
    from pdprivacy.amplification.sampling import Secret
    from pdprivacy.core.privacy import Unit
    from pdprivacy.core.statistics import Scope
    from pdprivacy.ledger import Budget


@dataclass(frozen=True, slots=True)
class Step:
    """A row step: a change of the records between the raw frame and a release.

    ``stability``: how many records of the result one unit more, less or replaced can touch; None where the
    records are a secret part, which `law` says. ``condition``: what the records left meet. ``made``: the
    columns whose cells are new or replaced. ``decided_by``: the name and the role of each column that the
    condition reads.
    """

    text: str
    stability: int | None = 1
    condition: str | None = None
    law: str | None = None
    made: frozenset[Hashable] = frozenset()
    decided_by: tuple[tuple[Hashable, Role | None], ...] = ()


_IN_MEMORY = {"kmeans", "sample", "suppress_outliers", "compare_sampling", "compare_suppression"}
"""Methods for records in memory."""
_OF_THE_WHOLE = {
    *_IN_MEMORY - {"kmeans"},
    "anonymity",
    "choose_epsilon",
    "dr_ha",
    "homogeneity",
    "risk_curve",
    "tradeoff",
}
"""Methods for a whole table, not for a secret part of it."""
_CHARGED_TOGETHER = {"batch", "marginals", "plan_releases"}


class Keeper(Protocol):
    """A store of the releases of a frame, which returns an earlier one again (`pdprivacy.pipeline`)."""

    def admits(self, method: str) -> bool:
        """Return whether the result of a method of the frame can be kept."""

    def admit(self, method: str) -> None:
        """Refuse a method of the frame whose result cannot be kept."""

    def keep(
        self, release: Any, method_call: Any, make: Callable[[str], tuple[Any, int, float | str | None]]
    ) -> Any:
        """Return the kept answer of an equal release, or the one that ``make`` returns for a new id.

        ``make`` returns the number of the charge and the disclosure risk, too; the keeper notes the answer.
        """


@dataclass(frozen=True, eq=False)
class Protected:
    """The public facts of a protected frame, and its records under a seal.

    ``lineage``: the steps that led here. ``secret``: the secret part that the records are. ``seeded``:
    whether its coins can be thrown again. ``keeper``: of the releases, where they are a step's. ``origin``:
    one object for all frames that row steps make of one protected frame.
    """

    domain: Domain
    unit: Unit
    budget: Budget
    scope: Scope
    sealed: Sealed
    lineage: tuple[Step, ...] = ()
    secret: Secret | None = None
    seeded: bool = False
    keeper: Keeper | None = field(default=None, repr=False)
    origin: object = field(default_factory=object, repr=False)

    def __reduce_ex__(self, _: Any) -> Any:
        raise ParameterError(
            "What belongs to a protected frame cannot be pickled: the copy would hold its records.",
            "protect the frame where it is used, with the same pdprivacy.Ledger.",
        )

    def __deepcopy__(self, _: Any) -> Protected:
        return self

    def admitted(self, method: str) -> Protected:
        """Return the contents for a method that the keeper of the releases admits."""
        if self.keeper is not None:
            self.keeper.admit(method)
        return self

    def offers(self, method: str) -> bool:
        """Return whether a method applies to these records, for completion; a call may be refused anyway."""
        together = self.secret is None or self.secret.spend != "noise" or method not in _CHARGED_TOGETHER
        in_memory = self.in_memory or method not in _IN_MEMORY
        whole = not self.in_secret or method not in _OF_THE_WHOLE
        return together and in_memory and whole and (self.keeper is None or self.keeper.admits(method))

    @cached_property
    def names(self) -> dict[str, Hashable]:
        """The labels that are not Python names, by the text of each in an expression.

        A string stands in backticks, as in `DataFrame.query`; any other label as ``private[1]``. So no two
        labels have the same text.
        """
        names: dict[str, Hashable] = {}
        for label in self.domain:
            if is_python_name(label):
                continue
            key = f"`{label}`" if isinstance(label, str) and "`" not in label else f"private[{label!r}]"
            while key in names:  # objects that print alike
                key += "'"
            names[key] = label
        return names

    @cached_property
    def written(self) -> dict[Hashable, str]:
        """The text of each label that is not a Python name."""
        return {label: key for key, label in self.names.items()}

    def keeps(self, names: Iterable[Hashable], earlier: Protected) -> bool:
        """Return whether row steps led here from an earlier frame, and left the cells of these columns alone.

        The same steps are the same objects: steps of one text may leave other records.
        """
        known = len(earlier.lineage)
        if self.origin is not earlier.origin or len(self.lineage) < known:
            return False
        if not all(map(operator.is_, self.lineage, earlier.lineage)):
            return False
        made = frozenset[Hashable]().union(*(step.made for step in self.lineage[known:]))
        return all(
            name in self.domain and name not in made and self.written.get(name) == earlier.written.get(name)
            for name in names
        )

    @cached_property
    def in_secret(self) -> bool:
        """Whether the records are a secret part, or of one that was paid for as a whole."""
        return any(step.stability is None for step in self.lineage)

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """The conditions that the records meet."""
        return tuple(step.condition for step in self.lineage if step.condition is not None)

    @cached_property
    def decided_by(self) -> dict[Hashable, Role | None]:
        """The role of each column that decided which records these are; sensitive if it ever was."""
        pairs = [pair for step in self.lineage for pair in step.decided_by]
        return dict(sorted(pairs, key=lambda pair: pair[1] == "sensitive"))

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """All other steps."""
        return tuple(step.text for step in self.lineage if step.condition is None)

    @cached_property
    def brief(self) -> tuple[str, ...]:
        """The steps in few words: those that change the loss of a release in full, others by name."""
        return tuple(
            step.text.partition("(")[0] if step.stability == 1 else step.text
            for step in self.lineage
            if step.condition is None
        )

    @property
    def in_memory(self) -> bool:
        """Whether the records are a pandas frame, one after the other."""
        return self.sealed.engine == "pandas"

    def refuse_other_engines_for(self, method: str) -> None:
        """Refuse a method that needs records in memory, where another engine holds them."""
        if not self.in_memory:
            raise in_another_engine(repr(method), self.sealed.engine)


def lineage(protected: Protected) -> pd.DataFrame:
    """The steps between the raw frame and this one, and how far each takes neighbours apart.

    Returns a DataFrame with a row per step: ``step``; ``stability``, the records of the result that one
    record more, less or replaced can touch (of a unit, where several may be one's), NA for a secret part;
    ``cost``: the loss of the whole by releases of total ``epsilon``.

    Source: "The adverse effects of omitting records in differential privacy", Definition 4 and Theorem 5.1.
    """
    steps = protected.lineage
    return pd.DataFrame(
        {
            "step": np.array([step.text for step in steps], dtype=object),
            "stability": pd.array([step.stability for step in steps], dtype="Int64"),
            "cost": np.array(["epsilon" if step.law is None else step.law for step in steps], dtype=object),
        },
        index=pd.RangeIndex(1, len(steps) + 1),
    )


def is_python_name(label: Hashable) -> bool:
    """Return whether a label is a name of Python, in the spelling that Python reads it in."""
    return (
        isinstance(label, str)
        and label.isidentifier()
        and not keyword.iskeyword(label)
        and unicodedata.is_normalized("NFKC", label)
    )


def declared(protected: Protected, name: Hashable) -> bool:
    """Return whether a column may be released at all."""
    return name in protected.domain and protected.domain[name].role != "identifier"


# ---------------------------------------------------------------- copies


def copied_columns(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """The declared columns in memory of their own: no later change of any frame reaches a release.

    Raises InvalidDataError for objects that cannot be copied.
    """
    columns = frame[list(domain)].columns
    arrays = {position: _own_array(frame[name].array, domain[name]) for position, name in enumerate(domain)}
    for position, array in arrays.items():
        if type(array) is pd.arrays.NumpyExtensionArray and array.to_numpy().dtype == object:
            # pandas 2 would make times of objects that are times
            arrays[position] = pd.Series(array.to_numpy(), index=frame.index, dtype=object, copy=False)
    result = pd.DataFrame(arrays, index=frame.index, copy=False)
    result.columns = columns
    return result


def _own_array(array: Any, column: Column) -> Any:
    """The array without shared memory.

    A deep copy of pandas shares what pandas itself never writes to: buffers of Arrow, the labels of
    categories, the positions of a sparse array, and objects.
    """
    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        labels = pd.Index(_own_array(dtype.categories.array, column), copy=False, tupleize_cols=False)
        return pd.Categorical.from_codes(array.codes.copy(), labels, dtype.ordered)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        import pyarrow as pa

        from pdprivacy.core.engines.other.native_frames import in_own_memory

        return dtype.__from_arrow__(in_own_memory(pa.table({"": array.__arrow_array__()})).column(0))
    if isinstance(dtype, pd.SparseDtype):
        return copy.deepcopy(array)
    texts = isinstance(dtype, pd.StringDtype)
    if texts or not isinstance(array, pd.arrays.NumpyExtensionArray) or array.to_numpy().dtype.kind != "O":
        return array.copy()
    cells = array.to_numpy(copy=True)
    if not all(kind in _IMMUTABLE or issubclass(kind, _SCALARS) for kind in set(map(type, cells))):
        for index, cell in enumerate(cells):
            cells[index] = _own_cell(cell, column)
    return pd.arrays.NumpyExtensionArray(cells)


def _own_cell(cell: Any, column: Column) -> Any:
    """The declared label that the cell is, or a copy of the cell."""
    with contextlib.suppress(Exception):
        return next(label for label in column.categories or () if label == cell)
    with contextlib.suppress(Exception):
        return copy.deepcopy(cell)
    raise InvalidDataError(f"Column {column.name!r} holds objects that cannot be copied.")


_IMMUTABLE = {
    type(None),
    type(pd.NA),
    type(pd.NaT),
    str,
    bytes,
    bool,
    int,
    float,
    Decimal,
    date,
    datetime,
    time,
    timedelta,
    pd.Timestamp,
    pd.Timedelta,
}
_SCALARS = (np.bool_, np.number, np.datetime64)


# ---------------------------------------------------------------- steps that look at other records
#
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
        **dict.fromkeys(("merge", "join", "explode", "melt", "stack"), (_MULTIPLIES, _BEFORE)),
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
