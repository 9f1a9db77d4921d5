"""Releases per declared key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import pandas as pd

from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.expressions import Transform, cut
from pdprivacy.hints import told, unknown
from pdprivacy.privacy import Rational
from pdprivacy.protection import Protected
from pdprivacy.protection.row_steps import transformed
from pdprivacy.release.execute import executed
from pdprivacy.release.publish import Made, counts, release_of
from pdprivacy.release.result import Result
from pdprivacy.release.spec import Call, Release, noised
from pdprivacy.releases.columns import (
    Labels,
    Split,
    cell_index,
    check_cells,
    columns_of,
    name_index,
    refuse_shared,
    weighted_columns,
    weights_of,
)
from pdprivacy.releases.moments import weighted
from pdprivacy.releases.tables import cells_of, noise_of_cells
from pdprivacy.request import Options
from pdprivacy.show.tracebacks import short_tracebacks
from pdprivacy.statistic import GroupedMoments, Statistic, quantity

if TYPE_CHECKING:
    from pdprivacy.signatures import GroupMethods
else:
    GroupMethods = object

__all__ = ["GroupBy", "groupby"]

_GROUPS = 'private.dp.groupby("region")'
P = ParamSpec("P")
R = TypeVar("R")


def _told(function: Callable[P, R]) -> Callable[P, R]:
    return told(function, _GROUPS)


@short_tracebacks
@dataclass(frozen=True, repr=False)
class GroupBy(GroupMethods):
    """Releases per declared key; each call is charged once, because the groups are disjoint.

    Every declared combination of keys is there, the empty ones too. Under "replace_one" a record
    may move from one group to another, so sensitivities are those of two groups.
    """

    _protected: Protected = field(repr=False)
    keys: tuple[Column, ...]
    selected: Labels | None = None

    def __getitem__(self, columns: Labels) -> GroupBy:
        """The same groups, for these columns: ``groupby("region")["age"].mean(...)``."""
        return replace(self, selected=columns)

    if not TYPE_CHECKING:  # a type checker refuses unknown names itself

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"'GroupBy' has no attribute {name!r}")
            raise unknown("GroupBy", name, ("count", "sum", "mean", "var"), _GROUPS)

    def __repr__(self) -> str:
        return f"GroupBy({', '.join(repr(key.name) for key in self.keys)}): count, sum, mean, var"

    if not TYPE_CHECKING:  # what it returns depends on an argument

        @_told
        @executed
        @noised("geometric")
        def count(
            self,
            *,
            epsilon: Rational,
            weights: Hashable | None = None,
            **noise: Unpack[Options],
        ) -> Release[pd.Series[Any]]:
            """Records per key, as a Series named "count" (as `DataFrameGroupBy.size`).

            ``weights``: sums of the weights in the place of counts, as in `df.dp.value_counts`.
            """
            _, weight = weighted_columns(self._protected, [key.name for key in self.keys], weights, "count")
            call = Call.of("count", epsilon, noise_of_cells(noise, weight), (), self.keys, weights=weight)
            statistic = cells_of(self._protected, self.keys, "groupby", weight)
            index = cell_index(self.keys, "groupby")
            return release_of(self._protected, call, statistic, partial(counts, call, index, "count"))

    def _moments(
        self, kind: str, columns: Labels | None, split: Split, call: Call, weights: Hashable | None = None
    ) -> Release[pd.DataFrame]:
        names = {key.name for key in self.keys}
        columns = self.selected if columns is None else columns
        chosen, weight = weighted_columns(self._protected, columns, weights, kind)
        if columns is None:
            chosen = tuple(column for column in chosen if column.name not in names)
        refuse_shared(chosen if weight is None else (*chosen, weight), self.keys, kind)
        products = kind == "var" or weight is not None
        quantities = tuple(
            quantity(column, kind, centered=kind != "sum", products=products) for column in chosen
        )
        shares, scope = weights_of(chosen, split), self._protected.scope
        statistic: Statistic = GroupedMoments(kind, quantities, shares, self.keys, scope)
        if weight is not None:
            statistic = weighted(
                scope, "sum" if kind == "sum" else "mean", quantities, shares, weight, self.keys
            )
        call = replace(call, columns=chosen, by=self.keys, weights=weight)
        index, labels = cell_index(self.keys, "groupby"), name_index(chosen)

        def make(result: Result) -> Made[pd.DataFrame]:
            return pd.DataFrame(result.answer.values, index=index, columns=labels), result.errors

        return release_of(self._protected, call, statistic, make)

    @_told
    @executed
    @noised("laplace")
    def sum(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        split: Split = None,
        weights: Hashable | None = None,
        **noise: Unpack[Options],
    ) -> Release[pd.DataFrame]:
        """Sums per key: a DataFrame of keys by columns.

        ``columns`` (all numeric ones but the keys if None) and ``split`` as in `df.dp.sum`,
        ``weights`` as in `df.dp.sum`.
        """
        return self._moments("sum", columns, split, Call.of("sum", epsilon, noise), weights)

    @_told
    @executed
    @noised("laplace")
    def mean(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        split: Split = None,
        weights: Hashable | None = None,
        **noise: Unpack[Options],
    ) -> Release[pd.DataFrame]:
        """Means per key: centred noisy sums over noisy counts, a DataFrame of keys by columns.

        ``columns`` (all numeric ones but the keys if None) and ``split`` as in `df.dp.sum`,
        ``weights`` as in `df.dp.mean`.
        """
        return self._moments("mean", columns, split, Call.of("mean", epsilon, noise), weights)

    @_told
    @executed
    @noised("laplace")
    def var(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        split: Split = None,
        **noise: Unpack[Options],
    ) -> Release[pd.DataFrame]:
        """Sample variances per key by noisy sums, a DataFrame of keys by columns.

        ``columns`` (all numeric ones but the keys if None) and ``split`` as in `df.dp.sum`.
        """
        return self._moments("var", columns, split, Call.of("var", epsilon, noise))


def groupby(protected: Protected, by: Labels | pd.Grouper, *, freq: str | None = None) -> GroupBy:
    """Declared groups for ``count``, ``sum``, ``mean`` and ``var``, each charged once.

    ``freq`` ("D", "W", "M", "Q" or "Y") groups by the periods of a column of dates, as ``private.cut`` makes
    them, the empty ones too; ``by`` may be a `pandas.Grouper` with ``key`` and ``freq`` in its place.

    Raises DeclarationError for a key without declared cells.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> member = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [31, 54] * 500, "member": [True, False] * 500})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"age": age, "member": member}), epsilon=1)
    >>> private.dp.groupby("member").mean("age", epsilon=1, rng=1).round()
             age
    member
    False   54.0
    True    31.0
    """
    if isinstance(by, pd.Grouper):
        grouper: Any = by
        if grouper.key is None or grouper.freq is None or freq is not None:
            raise ParameterError("a Grouper needs 'key' and 'freq'.", 'private.dp.groupby("when", freq="M")')
        by, freq = grouper.key, getattr(grouper.freq, "freqstr", grouper.freq)
    if freq is not None:
        protected = transformed(protected.admitted("cut"), _in_periods(protected, by, freq))
    keys = columns_of(protected, by, "groupby")
    check_cells(keys, "groupby")
    return GroupBy(protected, keys)


def _in_periods(protected: Protected, by: Labels, freq: str) -> Transform:
    """The step that makes periods of the one column of dates among the keys."""
    dates = [key.name for key in columns_of(protected, by, "groupby") if key.timeline is not None]
    if len(dates) != 1:
        raise ParameterError("'freq' needs one column of dates among the keys.", 'groupby("when", freq="M")')
    return cut(protected.domain, dates[0], freq=freq)
