"""Exact numbers for the curator, who publishes none of them: no noise, no charge.

What is made of them is marked as confidential (`pdprivacy.core.privacy.Confidential`, `CuratorFrame`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import Coins
from pdprivacy.core.gate.records import Sealed, records_of
from pdprivacy.core.noise import Source
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd


def counts(facts: Facts, columns: Sequence[Column], method: str) -> Integers:
    """Return the number of records in each cell of the columns, one cell after the other."""
    return records_of(facts).engine.table(columns, method)


def present(facts: Facts, columns: Sequence[Column]) -> list[int]:
    """Return the number of records without a null in each column; of all records where there is none."""
    engine = records_of(facts).engine
    return [engine.present(column) for column in columns] if columns else [engine.rows]


def numbers(facts: Facts, columns: Sequence[Hashable], missing: Any = None) -> list[Floats]:
    """Return the cells of columns of numbers of records in memory; nulls as ``missing``."""
    snapshot = records_of(facts).snapshot
    words = {} if missing is None else {"na_value": missing}
    return [snapshot[name].to_numpy(dtype=float, **words) for name in columns]


def quality(facts: Facts) -> tuple[pd.DataFrame, tuple[int, int]]:
    """Return the faults by column when the frame was protected; records left out, and of how many."""
    records = records_of(facts)
    return records.quality.copy(), records.omitted


def only(facts: Facts, columns: Sequence[Hashable]) -> Facts:
    """Return the frame with the cells of these columns alone."""
    records = records_of(facts)
    return replace(facts, sealed=Sealed(replace(records, cells=records.snapshot[list(columns)])))


def parts(facts: Facts, coins: Coins) -> Callable[[Source], Facts]:
    """Return the function that draws a part of the records anew at each call; the facts stay."""
    records = records_of(facts)
    throw = coins.of(records)
    return lambda source: replace(facts, sealed=Sealed(records.selected(throw(source))))
