"""Faults of cells against a declaration: which cells have them, how many do, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.cell_types import conversion_hint, declared_as
from pdprivacy.domain import Column, Domain
from pdprivacy.errors import InvalidDataError
from pdprivacy.privacy import rational, show

__all__ = ["Fate", "Faults", "Survey", "Tally"]

Fate: TypeAlias = Literal["raise", "clip", "drop"]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(slots=True)
class Faults:
    """Which cells of a column have each fault."""

    null: Mask
    outside: Mask
    unseen: Mask
    broken: Mask  # with a fraction, in an integer column
    mistyped: Mask
    endless: Mask  # infinite where no bound is declared; outside, too
    least: float = math.inf  # of the numbers that are no label, where both bounds are declared
    most: float = -math.inf
    numbers: NDArray[np.float64] | None = field(default=None)

    def any_fault(self, column: Column) -> Mask:
        """The cells that have any."""
        bad = self.outside | self.unseen | self.broken | self.mistyped
        return bad if column.nullable else bad | self.null


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cells of a column have each fault; ``faulty``: have any."""

    null: int = 0
    outside: int = 0
    unseen: int = 0
    broken: int = 0
    mistyped: int = 0
    endless: int = 0
    faulty: int = 0
    least: float = math.inf
    most: float = -math.inf

    @classmethod
    def of(cls, found: Faults, column: Column) -> Tally:
        """Count the faults of a column."""
        count = np.count_nonzero
        return cls(
            int(count(found.null)),
            int(count(found.outside)),
            int(count(found.unseen)),
            int(count(found.broken)),
            int(count(found.mistyped)),
            int(count(found.endless)),
            int(count(found.any_fault(column))),
            found.least,
            found.most,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.null + other.null,
            self.outside + other.outside,
            self.unseen + other.unseen,
            self.broken + other.broken,
            self.mistyped + other.mistyped,
            self.endless + other.endless,
            self.faulty + other.faulty,
            min(self.least, other.least),
            max(self.most, other.most),
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """How many faults of each kind the declared columns have, of a frame or of its pieces added up.

    ``dropped``: records with a fault that may not stay.
    """

    rows: int
    dropped: int
    columns: Mapping[Hashable, Tally]

    def __add__(self, other: Survey) -> Survey:
        columns = {name: found + other.columns[name] for name, found in self.columns.items()}
        return Survey(self.rows + other.rows, self.dropped + other.dropped, columns)

    def meet(self, domain: Domain, on_invalid: Fate) -> None:
        """Raise InvalidDataError where a fault has no fate; names columns and faults."""
        refused = self._refused(domain, on_invalid)
        if not refused:
            return
        mistyped = [column for column in domain.columns if self.columns[column.name].mistyped]
        if mistyped:
            hint = conversion_hint(mistyped[0], None)
        else:
            moved = on_invalid == "raise" and not self._refused(domain, "clip")
            clips = 'on_invalid="clip" moves out-of-bounds numbers to the nearest bound, ' if moved else ""
            hint = (
                f'{clips}on_invalid="drop" leaves faulty records out; or correct the data or the declaration.'
            )
        raise InvalidDataError("The data does not meet its declaration: " + "; ".join(refused) + ".", hint)

    def _refused(self, domain: Domain, on_invalid: Fate) -> list[str]:
        lines = []
        for column in domain.columns:
            found = self.columns[column.name]
            reasons = []
            if found.mistyped:
                reasons.append(f"cells of another type than declared ({declared_as(column)})")
            if on_invalid != "drop":
                if found.broken:
                    reasons.append("numbers that are not whole")
                if found.null and not column.nullable:
                    reasons.append("nulls, which are not declared (nullable=True would)")
                if found.unseen:
                    reasons.append("labels that are not declared")
                if on_invalid == "raise" and found.outside > found.endless:
                    reasons.append(f"values outside [{_end(column, 'lower')}, {_end(column, 'upper')}]")
                if found.endless:
                    reasons.append("infinite values, and no bound to clip them to")
            if reasons:
                lines.append(f"column {column.name!r} has {' and '.join(reasons)}")
        return lines

    def quality(self, on_invalid: Fate) -> pd.DataFrame:
        """Per declared column, for the curator: what was clipped, null, unseen, and dropped for it."""
        rows = [
            {
                "clipped": found.outside if on_invalid == "clip" else 0,
                "null": found.null,
                "unseen": found.unseen,
                "dropped": found.faulty if on_invalid == "drop" else 0,
            }
            for found in self.columns.values()
        ]
        index = pd.Index(list(self.columns), name="column", tupleize_cols=False)
        return pd.DataFrame(rows, index=index, columns=["clipped", "null", "unseen", "dropped"])

    def touching(self, domain: Domain) -> tuple[Hashable, ...]:
        """The columns of which a declared bound is the data's own extreme, and not confirmed as public."""
        return tuple(
            name
            for name, found in self.columns.items()
            if found.least == domain[name].lower or found.most == domain[name].upper
            if not domain[name].public_bounds
        )


def _end(column: Column, end: Literal["lower", "upper"]) -> str:
    bound: float | int | None = getattr(column, end)
    if bound is None:
        return "..."
    return show(rational(bound, "bound")) if column.timeline is None else column.end_text(bound)
