"""Protected frames that are made of protected frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.domain import Column, Domain
from pdprivacy.engine import PandasEngine
from pdprivacy.engine_narwhals import Piecewise, Source
from pdprivacy.ledger import Budget
from pdprivacy.protection.core import Protected, Step
from pdprivacy.protection.elsewhere import ProtectedFrame
from pdprivacy.protection.identity import copied, owned, register
from pdprivacy.secret import Secret
from pdprivacy.transform import Transform

__all__ = ["apply", "divide", "draw"]

Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]


def apply(
    protected: Protected, transform: Transform, condition: str | None = None
) -> pd.DataFrame | ProtectedFrame:
    """A protected frame of what a transform makes of each record.

    ``condition``: in the words of the user, where it only leaves records out.
    """
    scope = protected.scope if transform.keep is None else protected.scope.narrowed()
    step = Step(transform.text, condition=condition)
    facts = replace(protected, domain=transform.domain, scope=scope, lineage=(*protected.lineage, step))
    if isinstance(protected.records, Source):
        return ProtectedFrame(replace(facts, records=_then(protected.records, protected.domain, transform)))
    made = {} if transform.columns is None else transform.columns(protected.snapshot)
    places = None if transform.keep is None else np.flatnonzero(transform.keep(protected.snapshot))
    return _remake(protected, facts, places, made)


def _then(source: Source, domain: Domain, transform: Transform) -> Source:
    """The frame of another engine after a transform."""
    if transform.columns is None and transform.keep is None:
        return source.select(list(transform.domain))
    looked_at = _LookedAt(domain)
    made: list[Hashable] = [] if transform.columns is None else list(transform.columns(looked_at.frame))
    if transform.keep is not None:
        transform.keep(looked_at.frame)

    def run(frame: pd.DataFrame) -> tuple[dict[Hashable, pd.Series[Any]], Mask | None]:
        columns = {} if transform.columns is None else transform.columns(frame)
        return columns, None if transform.keep is None else transform.keep(frame)

    columns = tuple(transform.domain[name] for name in made)
    found = source.then(Piecewise(tuple(looked_at.names), columns, run)).select(list(transform.domain))
    found.check(transform.domain)
    return found


class _Recorded(pd.DataFrame):
    """A frame that notes which columns are looked at."""

    _metadata = ["noted"]  # noqa: RUF012  (pandas asks for a list)
    noted: list[Any]

    def __getitem__(self, key: Any) -> Any:
        self.noted.append(key)
        return super().__getitem__(key)


class _LookedAt:
    """A frame of no record of a domain, and the columns of it that a step has looked at."""

    def __init__(self, domain: Domain) -> None:
        kinds = {"float": np.float64, "integer": np.int64, "boolean": np.bool_, "category": object}
        self._names = list(domain)
        self.frame = _Recorded({column.name: np.array([], kinds[column.kind]) for column in domain.columns})
        self.frame.noted = []

    @property
    def names(self) -> list[Hashable]:
        """The columns; all, where a step looked at something else than a column."""
        noted = self.frame.noted
        if any(not isinstance(key, str) or key not in self._names for key in noted):
            return self._names
        return [name for name in self._names if name in noted] or self._names[:1]


def draw(
    protected: Protected, held: Mask, step: Step, secret: Secret, *, rows: int | None, seeded: bool
) -> pd.DataFrame:
    """A protected frame of a secret part of the records; ``rows``: their number, where it is public."""
    scope = protected.scope.narrowed()
    if rows is not None:
        scope = replace(protected.scope, rows=rows)
    facts = replace(
        protected,
        scope=scope,
        secret=secret,
        seeded=protected.seeded or seeded,
        lineage=(*protected.lineage, step),
    )
    return _remake(protected, facts, np.flatnonzero(held), {})


def _remake(
    protected: Protected, facts: Protected, places: Integers | None, made: dict[Hashable, pd.Series[Any]]
) -> pd.DataFrame:
    """A protected frame with these facts: of the records at these places, with new or replaced columns."""
    whole = protected.frame() if protected.frame is not None else None
    snapshot, units = protected.snapshot, protected.units
    if places is not None:
        snapshot = snapshot.take(places)
        whole = None if whole is None else whole.take(places)
        made = {name: values.take(places) for name, values in made.items()}
        units = None if units is None else units[places]
    # snapshots may share memory, which nobody can reach; what can be seen shares none with them
    kept = _assigned(snapshot, {name: values.array for name, values in made.items()})[list(facts.domain)]
    kept.attrs = {}
    if whole is None:
        visible = copied(kept, facts.domain)
    else:
        visible = _assigned(whole, {name: owned(kept[name].array, facts.domain[name]) for name in made})
        if any(name not in facts.domain for name in protected.domain):
            visible = visible[list(facts.domain)]
    return register(visible, replace(facts, records=kept, units=units))


def _assigned(frame: pd.DataFrame, made: dict[Hashable, Any]) -> pd.DataFrame:
    """The frame with these columns, by position: an index may hold a label twice."""
    if not made:
        return frame
    found = frame.copy(deep=False)
    for name, array in made.items():
        found[name] = array
    return found


def divide(
    protected: Protected, column: Column, purse: Callable[[], Budget]
) -> dict[Hashable, pd.DataFrame | ProtectedFrame]:
    """A protected frame of the records of each declared label of a column, each with a budget of its own."""
    labels: list[Hashable] = [*column.labels("partition"), *([None] if column.nullable else [])]
    parts = _parts(protected, column, len(labels))
    groups = {}
    for part, label in zip(parts, labels, strict=True):
        budget = purse()
        budget.bind(protected.unit)
        condition = f"{column.name} is {label!r}"
        facts = replace(
            protected,
            scope=protected.scope.narrowed(),
            budget=budget,
            secret=None,  # paid for as a whole
            lineage=(*protected.lineage, Step(condition, condition=condition)),
        )
        groups[label] = part(facts)
    return groups


def _parts(protected: Protected, column: Column, count: int) -> list[Callable[[Protected], Any]]:
    """How the protected frame of each cell of a column is made of its facts."""
    if isinstance(protected.records, Source):
        source = protected.records

        def part_of(code: int) -> Callable[[Protected], Any]:
            def keep(frame: pd.DataFrame) -> tuple[dict[Hashable, pd.Series[Any]], Mask]:
                return {}, PandasEngine(frame).codes(column, "partition") == code

            found = source.then(Piecewise((column.name,), (), keep))
            return lambda facts: ProtectedFrame(replace(facts, records=found))

        return [part_of(code) for code in range(count)]
    codes = PandasEngine(protected.snapshot).codes(column, "partition")
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(count + 1))

    def taken(held: Integers) -> Callable[[Protected], pd.DataFrame]:
        return lambda facts: _remake(protected, facts, held, {})

    return [taken(order[start:stop]) for start, stop in pairwise(ends)]
