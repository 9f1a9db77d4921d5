"""The records of a protected frame, which nothing outside the gate opens.

A protected frame has two contents: its public facts, which every method is handed
(`pdprivacy.core.gate.facts`), and its records, under a seal. `records_of` breaks the seal. It is called
in this folder alone: by the gate once a release is paid for (`execute`), by the row steps and the choice of
secret parts, which make one protected frame of another (`parts`), and for the curator (`curator`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdprivacy.errors import ParameterError
from pdprivacy.types import Integers, Mask

if TYPE_CHECKING:
    from pdprivacy.core.engines import PandasEngine
    from pdprivacy.core.engines.other import EngineFrame, NarwhalsEngine, SteppedEngine
    from pdprivacy.core.gate.facts import Facts
    from pdprivacy.core.rows import Transform


class _ColumnsByName:
    """The columns of a frame by name, which pandas takes longer to find than to sum a hundred numbers."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._columns: dict[Hashable, pd.Series[Any]] = {}

    def __len__(self) -> int:
        return len(self._frame)

    def __getitem__(self, name: Hashable) -> pd.Series[Any]:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self._frame[name]
        return column


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a protected frame, and what was counted of them without noise.

    ``cells``: the declared columns, of a pandas frame in memory of their own, so that no write reaches a
    release; or those of a frame of another engine, as it computes them.
    ``quality``, ``omitted``: for the curator, the faults by column when the frame was protected, and how many
    records were left out, of how many.
    ``units``: the unit of each record in memory, as a number, where a column names it.
    ``pending``: transforms that are made when a release reads the records.
    """

    cells: pd.DataFrame | EngineFrame = field(repr=False)
    quality: pd.DataFrame = field(repr=False)
    omitted: tuple[int, int] = field(repr=False)
    units: Integers | None = field(default=None, repr=False)
    pending: tuple[Transform, ...] = ()

    @property
    def engine(self) -> PandasEngine | NarwhalsEngine | SteppedEngine:
        """The exact sufficient statistics of the records."""
        if self.pending:
            return self.made().engine
        if not isinstance(self.cells, pd.DataFrame):
            return self.cells.statistics()
        from pdprivacy.core.engines import PandasEngine

        return PandasEngine(self._columns, self.units)

    @cached_property
    def _columns(self) -> _ColumnsByName:
        """The columns of records in memory."""
        return _ColumnsByName(self.snapshot)

    @property
    def source(self) -> EngineFrame | None:
        """The records, where another engine than pandas holds them."""
        return None if isinstance(self.cells, pd.DataFrame) else self.cells

    def in_turn(self) -> contextlib.AbstractContextManager[object]:
        """Return the context in which no other thread reads, where an engine takes one query at a time."""
        return contextlib.nullcontext() if self.source is None else self.source.in_turn()

    @property
    def snapshot(self) -> pd.DataFrame:
        """The records in memory, one after the other; ParameterError where another engine holds them."""
        if not isinstance(self.cells, pd.DataFrame):
            raise in_another_engine("This", self.cells.engine)
        return self.cells

    def made(self) -> Records:
        """Return the records after the transforms that wait for a read."""
        records = replace(self, pending=())
        for transform in self.pending:
            records = records.after(transform)
        return records

    def after(self, transform: Transform) -> Records:
        """Return the records after a transform of each by itself."""
        source = self.source
        if source is not None:
            return replace(self, cells=_source_after(source, transform))
        result = replace(self, cells=transform.assigned(self.snapshot))
        return result if transform.keep is None else result.selected(transform.keep(self.snapshot))

    def selected(self, mask: Mask) -> Records:
        """Return the records where ``mask`` is true."""
        return self.taken(np.flatnonzero(mask))

    def taken(self, rows: Integers) -> Records:
        """Return the records at these places."""
        return replace(
            self, cells=self.snapshot.take(rows), units=None if self.units is None else self.units[rows]
        )


def _source_after(source: EngineFrame, transform: Transform) -> EngineFrame:
    """Return the frame of another engine after a transform."""
    from pdprivacy.core.engines.other import Piecewise

    names = list(transform.domain)
    if not transform.columns and transform.keep is None:
        return source.select(names)

    def run(
        frame: pd.DataFrame, made: Sequence[Hashable]
    ) -> tuple[dict[Hashable, pd.Series[Any]], Mask | None]:
        return transform.made(frame, made), None if transform.keep is None else transform.keep(frame)

    columns = tuple(transform.domain[name] for name in transform.columns)
    filters = transform.keep is not None
    result = source.then(Piecewise(transform.reads, columns, run, transform.sources, filters)).select(names)
    result.check(transform.domain.counted)
    return result


class Sealed:
    """Records that are handed on unseen: nothing about them can be read, compared, copied or pickled.

    ``engine``: the name of the engine that holds them, which is public.
    """

    __slots__ = ("_sealed", "engine")

    engine: str

    def __init__(self, records: Records) -> None:
        self._sealed = records
        self.engine = "pandas" if isinstance(records.cells, pd.DataFrame) else records.cells.engine

    def __repr__(self) -> str:
        return f"Sealed(engine={self.engine!r})"

    def __reduce_ex__(self, _: Any) -> Any:
        raise ParameterError(
            "What belongs to a protected frame cannot be pickled: the copy would hold its records.",
            "protect the frame where it is used, with the same pdprivacy.Ledger.",
        )


def seal(
    cells: pd.DataFrame | EngineFrame,
    quality: pd.DataFrame,
    omitted: tuple[int, int],
    units: Integers | None = None,
) -> Sealed:
    """Seal the records of a frame when it is protected; arguments as of `Records`."""
    return Sealed(Records(cells, quality, omitted, units))


def records_of(facts: Facts) -> Records:
    """Return the records of a protected frame: for this folder alone."""
    return facts.sealed._sealed


def in_another_engine(operation: str, engine: str) -> ParameterError:
    """Return the error for an operation that needs records in memory."""
    return ParameterError(
        f"{operation} looks at all records in memory, which frames of {engine} do not give.",
        "protect the frame as a pandas frame.",
    )
