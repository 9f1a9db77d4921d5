"""Protected frames of some of the records: a secret part that is drawn, or declared groups of a column."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.domain import Column
from pdprivacy.ledger import Budget
from pdprivacy.protection.frame import ProtectedFrame
from pdprivacy.protection.protected import Protected, Step
from pdprivacy.protection.row_steps import Integers, Mask, taken
from pdprivacy.secret import Secret

__all__ = ["divide", "draw"]


def draw(
    protected: Protected, held: Mask, step: Step, secret: Secret, *, rows: int | None, seeded: bool
) -> ProtectedFrame:
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
    return ProtectedFrame(taken(facts, np.flatnonzero(held)))


def divide(
    protected: Protected, column: Column, purse: Callable[[], Budget]
) -> dict[Hashable, ProtectedFrame]:
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
        groups[label] = ProtectedFrame(part(facts))
    return groups


def _parts(protected: Protected, column: Column, count: int) -> list[Callable[[Protected], Protected]]:
    """How the records of each cell of a column are chosen."""
    from pdprivacy.engine import PandasEngine

    source = protected.source
    if source is not None:
        from pdprivacy.engine_narwhals import Piecewise

        def part_of(code: int) -> Callable[[Protected], Protected]:
            def keep(frame: pd.DataFrame) -> tuple[dict[Hashable, pd.Series[Any]], Mask]:
                return {}, PandasEngine(frame).codes(column, "partition") == code

            found = source.then(Piecewise((column.name,), (), keep))
            return lambda facts: replace(facts, records=found)

        return [part_of(code) for code in range(count)]
    codes = PandasEngine(protected.snapshot).codes(column, "partition")
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(count + 1))

    def taking(places: Integers) -> Callable[[Protected], Protected]:
        return lambda facts: taken(facts, places)

    return [taking(order[start:stop]) for start, stop in pairwise(ends)]
