"""Releases per declared key."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from pdprivacy.domain import Column
from pdprivacy.measure import MechanismName
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Rational
from pdprivacy.protection import Protected
from pdprivacy.releases.call import (
    Call,
    Labels,
    Split,
    attach,
    cell_index,
    check_cells,
    columns_of,
    errors_of,
    name_index,
    refuse_shared,
    run,
    weights_of,
    whole_counts,
)
from pdprivacy.statistic import (
    Cells,
    GroupedMoments,
    quantity,
)

__all__ = ["GroupBy", "groupby"]


@dataclass(frozen=True, repr=False)
class GroupBy:
    """Releases per declared key; each call is charged once, because the groups are disjoint.

    Every declared combination of keys is there, the empty ones too. Under "replace_one" a record
    may move from one group to another, so sensitivities are those of two groups.
    """

    protected: Protected = field(repr=False)
    keys: tuple[Column, ...]
    selected: Labels | None = None

    def __getitem__(self, columns: Labels) -> GroupBy:
        """The same groups, for these columns: ``groupby("region")["age"].mean(...)``."""
        return replace(self, selected=columns)

    def __repr__(self) -> str:
        return f"GroupBy({', '.join(repr(key.name) for key in self.keys)}): count, sum, mean, var"

    def count(
        self,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "geometric",
        rng: RandomState = None,
    ) -> pd.Series[Any]:
        """Records per key, as a Series named "count" (as `DataFrameGroupBy.size`)."""
        call = Call("count", epsilon, delta, mechanism, rng, (), self.keys)
        statistic = Cells(self.keys, self.protected.scope, "groupby")
        answer, measurement = run(self.protected, statistic, call)
        released = pd.Series(
            whole_counts(answer.values, mechanism), index=cell_index(self.keys, "groupby"), name="count"
        )
        errors = errors_of(answer, measurement)
        attach(self.protected, call, measurement, released, errors)
        return released

    def _moments(self, kind: str, columns: Labels | None, split: Split, call: Call) -> pd.DataFrame:
        names = {key.name for key in self.keys}
        columns = self.selected if columns is None else columns
        chosen = columns_of(self.protected, columns, kind)
        if columns is None:
            chosen = tuple(column for column in chosen if column.name not in names)
        refuse_shared(chosen, self.keys, kind)
        quantities = tuple(
            quantity(column, kind, centered=kind != "sum", products=kind == "var") for column in chosen
        )
        statistic = GroupedMoments(
            kind, quantities, weights_of(chosen, split), self.keys, self.protected.scope
        )
        call = replace(call, columns=chosen, by=self.keys)
        answer, measurement = run(self.protected, statistic, call)
        released = pd.DataFrame(
            answer.values, index=cell_index(self.keys, "groupby"), columns=name_index(chosen)
        )
        errors = errors_of(answer, measurement)
        attach(self.protected, call, measurement, released, errors)
        return released

    def sum(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "laplace",
        split: Split = None,
        rng: RandomState = None,
    ) -> pd.DataFrame:
        """Sums per key: a DataFrame of keys by columns."""
        return self._moments("sum", columns, split, Call("sum", epsilon, delta, mechanism, rng))

    def mean(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "laplace",
        split: Split = None,
        rng: RandomState = None,
    ) -> pd.DataFrame:
        """Means per key: centred noisy sums over noisy counts, a DataFrame of keys by columns."""
        return self._moments("mean", columns, split, Call("mean", epsilon, delta, mechanism, rng))

    def var(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "laplace",
        split: Split = None,
        rng: RandomState = None,
    ) -> pd.DataFrame:
        """Sample variances per key by noisy sums, a DataFrame of keys by columns."""
        return self._moments("var", columns, split, Call("var", epsilon, delta, mechanism, rng))


def groupby(protected: Protected, by: Labels) -> GroupBy:
    """Declared groups for ``count``, ``sum``, ``mean`` and ``var``, each charged once.

    Raises DeclarationError for a key without declared cells.
    """
    keys = columns_of(protected, by, "groupby")
    check_cells(keys, "groupby")
    return GroupBy(protected, keys)
