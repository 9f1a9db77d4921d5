"""A frame of another engine than pandas, as releases read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pandas as pd

from pdprivacy.domain import Domain
from pdprivacy.engine_narwhals.contribution import bounded, crowd
from pdprivacy.engine_narwhals.engines import framed, guarded, narwhals, opened
from pdprivacy.engine_narwhals.narwhals_engine import NarwhalsEngine
from pdprivacy.engine_narwhals.pieces import ArrowPieces, Piecewise, arrow_type, each, in_own_memory, then
from pdprivacy.errors import InvalidDataError

__all__ = ["EngineFrame"]

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class EngineFrame:
    """Columns of a frame that narwhals knows.

    A frame that is lazy is computed anew by each query.

    Attributes
    ----------
    engine : where the frame is computed, as "Polars".
    names : its columns.
    lazy : whether it is computed when it is read, so that what it holds may be other records each time.
    """

    frame: Any
    engine: str
    names: tuple[Hashable, ...]
    lazy: bool

    @classmethod
    def of(cls, frame: Any) -> EngineFrame:
        """All columns of a frame.

        Raises as `NarwhalsEngine`.
        """
        found, engine, schema = opened(frame)
        lazy = isinstance(found, narwhals().LazyFrame)
        return cls(found.to_native(), engine, tuple(schema.names()), lazy)

    def select(self, names: Sequence[Hashable]) -> EngineFrame:
        """These columns only, in this order."""
        if isinstance(self.frame, ArrowPieces):
            frame = self.frame.select(names)
        elif self.engine == "Dask":
            frame = self.frame[list(names)]
        else:
            frame = framed(self.frame).select(*names).to_native()
        return replace(self, frame=frame, names=tuple(names))

    def owned(self) -> EngineFrame:
        """The same frame; where it is in memory, in memory of its own.

        Polars and Arrow read arrays of NumPy where they are, and who has the array can write to it.
        """
        if self.lazy:
            return self
        return replace(self, frame=guarded("a copy", self.engine, lambda: in_own_memory(self.frame)))

    def statistics(self) -> NarwhalsEngine:
        """The exact sufficient statistics of the frame."""
        return NarwhalsEngine(self.frame)

    def check(self, domain: Domain) -> None:
        """Refuse columns that the engine cannot read as they are declared, before any is.

        Raises InvalidDataError or ParameterError; reads types alone.
        """
        self.statistics().check(domain)

    def each(self, what: str, function: Callable[[pd.DataFrame], Found]) -> list[Found]:
        """What a function gives of the frame in pieces, as pandas frames; each record is in one of them."""
        return guarded(what, self.engine, lambda: each(self.frame, self.engine, function))

    def then(self, step: Piecewise) -> EngineFrame:
        """The frame after a step that looks at one record alone.

        Raises ParameterError for labels that other engines cannot hold.
        """
        for column in step.made:
            arrow_type(column)
        frame = guarded("a step", self.engine, lambda: then(self.frame, self.engine, step))
        made = [column.name for column in step.made if column.name not in self.names]
        return replace(self, frame=frame, names=(*self.names, *made))

    def crowd(self, unit: Hashable, most: int) -> int:
        """Records that are more than so many of their unit.

        Raises InvalidDataError for records of nobody.
        """
        read = self.frame.schema.empty_table() if isinstance(self.frame, ArrowPieces) else self.frame
        kind = opened(read)[2][unit]
        if isinstance(kind, narwhals().List | narwhals().Array | narwhals().Struct):
            raise InvalidDataError("The column of the unit must hold names: text, numbers or dates.")
        over, nobody = guarded(
            "the records of each unit", self.engine, lambda: crowd(self.frame, self.engine, unit, most)
        )
        if nobody:
            raise InvalidDataError(
                "The column of the unit holds nulls, and a record of nobody cannot be counted.",
                "leave such records out before pdprivacy.protect(...), or give each a name of its own.",
            )
        return over

    def bounded(self, unit: Hashable, most: int) -> EngineFrame:
        """At most so many records of each unit, the same each time; any of them with the same probability."""
        frame = guarded(
            "the records of each unit", self.engine, lambda: bounded(self.frame, self.engine, unit, most)
        )
        return replace(self, frame=frame)
