"""Frames of other engines with their row steps, which are computed only where a read needs them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from pdprivacy.core import noise
from pdprivacy.core.engines.other.engines import in_turn, narwhals, open_frame, quoted_for_duckdb, run_guarded
from pdprivacy.core.engines.other.narwhals_engine import NarwhalsEngine
from pdprivacy.core.engines.other.native_frames import (
    ArrowPieces,
    Piecewise,
    arrow_type,
    bounded,
    each,
    excess,
    in_own_memory,
    mixed_type,
    selected,
    then,
    try_once,
)
from pdprivacy.core.engines.unit_codes import no_names
from pdprivacy.core.statistics import Quantity, RankGrid, Read
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import InvalidDataError, ParameterError

Found = TypeVar("Found")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class EngineFrame:
    """Columns of a frame that narwhals knows, after row steps.

    A frame that is lazy is computed anew by each query: from the columns that the query reads, and by the
    steps that these need. Steps on a frame in memory are computed once, at once.

    Attributes
    ----------
    frame : the native frame, or one that comes in pieces, before the steps.
    engine : where the frame is computed, as "Polars".
    stored : the columns of the native frame.
    names : its columns, after the steps.
    lazy : whether it is computed when it is read, so that what it holds may be other records each time.
    steps : what is yet to be computed, in order.
    """

    frame: Any
    engine: str
    stored: tuple[Hashable, ...]
    names: tuple[Hashable, ...]
    lazy: bool
    steps: tuple[Piecewise, ...] = ()

    @classmethod
    def of(cls, frame: Any) -> EngineFrame:
        """All columns of a frame.

        Raises as `NarwhalsEngine`.
        """
        wrapped, engine, schema = open_frame(frame)
        names = tuple(schema.names())
        return cls(wrapped.to_native(), engine, names, names, isinstance(wrapped, narwhals().LazyFrame))

    def select(self, names: Sequence[Hashable]) -> EngineFrame:
        """These columns only, in this order.

        Raises ParameterError for a name that Polars cannot hand over: it panics at a null character.
        """
        kept = tuple(names)
        if self.engine == "Polars" and any(isinstance(name, str) and "\0" in name for name in kept):
            raise ParameterError(
                "'frame' must have names of columns without a null character.",
                'frame.rename({"a\\0b": "a_b"})',
            )
        if self.steps:
            return replace(self, names=kept)
        return replace(self, frame=self.read(kept), stored=kept, names=kept)

    def in_own_memory(self) -> EngineFrame:
        """The same frame; where it is in memory, in memory of its own.

        Polars and Arrow read arrays of NumPy where they are, and who has the array can write to it.
        """
        if self.lazy:
            return self
        return replace(self, frame=run_guarded("a copy", self.engine, lambda: in_own_memory(self.frame)))

    def in_turn(self) -> AbstractContextManager[object]:
        """Return the context in which no other thread queries the frame, where its engine needs that."""
        return in_turn(self.engine)

    # ------------------------------------------------------------ steps

    def then(self, step: Piecewise) -> EngineFrame:
        """The frame after a step that looks at one record alone.

        Raises ParameterError for labels that other engines cannot hold.
        """
        for column in step.made:
            arrow_type(column)
        added = [column.name for column in step.made if column.name not in self.names]
        names = (*self.names, *added)
        if self.lazy:
            return replace(self, names=names, steps=(*self.steps, step))
        frame = run_guarded("a step", self.engine, lambda: then(self.frame, self.engine, step))
        return replace(self, frame=frame, names=names)

    def read(self, names: Sequence[Hashable]) -> Any:
        """The native frame, or one that comes in pieces, of these columns after the steps they need.

        Without columns, it has others: one at least, from which the records are counted.
        """
        steps, base = _needed(self.steps, names)

        def computed() -> Any:
            frame = selected(self.frame, self.engine, base or self.stored[:1])
            for step in steps:
                frame = then(frame, self.engine, step)
            return selected(frame, self.engine, names) if names and steps else frame

        return run_guarded("a step", self.engine, computed)

    # ------------------------------------------------------------ reads

    def statistics(self) -> NarwhalsEngine | SteppedEngine:
        """The exact sufficient statistics of the frame."""
        return SteppedEngine(self) if self.steps else NarwhalsEngine(self.frame)

    def check(self, domain: Domain) -> None:
        """Refuse columns that the engine cannot read as they are declared, before any is.

        Raises InvalidDataError or ParameterError; reads types alone.
        """
        groups: dict[tuple[int, ...], list[Column]] = {}
        for column in domain.columns:
            steps, _ = _needed(self.steps, [column.name])
            groups.setdefault(tuple(id(step.run) for step in steps), []).append(column)
        for columns in groups.values():
            part = Domain(tuple(columns))
            NarwhalsEngine(self.read(list(part))).check(part)

    def each(self, task: str, function: Callable[[pd.DataFrame], Found]) -> list[Found]:
        """Call a function on each piece of the frame, a pandas frame; each record is in one piece."""
        frame = self.read(self.names)
        return run_guarded(task, self.engine, lambda: each(frame, self.engine, function))

    def in_decimals(self, names: Sequence[Hashable]) -> list[Hashable]:
        """Return those of the columns that hold decimals, which the engine reads as doubles."""
        if not names:
            return []
        frame = self.read(names)
        read = frame.schema.empty_table() if isinstance(frame, ArrowPieces) else frame
        library, types = narwhals(), open_frame(read)[2]
        return [name for name in names if types[name] in (library.Decimal, library.Unknown)]

    # ------------------------------------------------------------ records of each unit

    def check_unit(self, unit: Hashable) -> None:
        """Refuse a column of the unit by its type, before any record is read.

        Raises InvalidDataError for cells that cannot be names, and where each cell has a type of its own.
        """
        library = narwhals()
        kind = open_frame(self.frame)[2][unit]
        if isinstance(kind, library.List | library.Array | library.Struct | library.Object):
            raise no_names()
        mixed = mixed_type(self.frame, self.engine, unit)
        if mixed is not None:
            raise InvalidDataError(
                f"The column of the unit holds {mixed}, whose cells have a type each, so that one unit may "
                "have several names.",
                _as_text(unit, mixed),
            )

    def excess(self, unit: Hashable, most: int) -> int:
        """Return the records beyond a number of records of their unit.

        Raises InvalidDataError for records of nobody.
        """
        frame = self.read([unit])
        over, nobody = run_guarded(
            "the records of each unit", self.engine, lambda: excess(frame, self.engine, unit, most)
        )
        if nobody:
            raise InvalidDataError(
                "The column of the unit holds nulls, and a record of nobody cannot be counted.",
                "leave such records out before pdprivacy.protect(...), or give each a name of its own.",
            )
        return over

    def bounded(self, unit: Hashable, most: int) -> EngineFrame:
        """At most so many records of each unit, the same each time; any of them with the same probability.

        The hashes that choose them are those of all columns, which each query reads. DuckDB chooses once
        here, so that it has the memory for it before anything is charged.
        """
        key = int(noise.shuffled_keys(1, noise.source(None)).view(np.uint64)[0] >> np.uint64(2))

        def kept() -> Any:
            frame = bounded(self.read(self.names), self.engine, unit, most, key)
            try_once(frame, self.engine)
            return frame

        frame = run_guarded("the records of each unit", self.engine, kept)
        return replace(self, frame=frame, stored=self.names, steps=())


def _as_text(name: Hashable, mixed: str) -> str:
    """Return code that makes text of a column whose cells have a type each."""
    column = quoted_for_duckdb(name)
    texts = {"JSON": f"{column} ->> '$'", "VARIANT": f"{column}::VARCHAR", "UNION": f"{column}::VARCHAR"}
    if mixed not in texts:
        return "read it as text."
    replaced = f"* REPLACE ({texts[mixed]} AS {column})"
    return f"make it text: relation.project({replaced!r})."


def _needed(steps: Sequence[Piecewise], names: Iterable[Hashable]) -> tuple[list[Piecewise], list[Hashable]]:
    """Return the steps that columns need, as far as they do, and the columns that these are made of."""
    columns = dict.fromkeys(names)
    needed = []
    for step in reversed(steps):
        narrowed = step.narrowed(columns)
        if narrowed is not None:
            needed.append(narrowed)
            made = {column.name for column in narrowed.made}
            columns = dict.fromkeys([*(name for name in columns if name not in made), *narrowed.reads])
    return needed[::-1], list(columns)


def _reading_method(
    method: Callable[Concatenate[NarwhalsEngine, P], Found],
) -> Callable[Concatenate[SteppedEngine, P], Found]:
    """The method that reads what its arguments name."""

    @functools.wraps(method)
    def reading(self: SteppedEngine, /, *args: P.args, **kwargs: P.kwargs) -> Found:
        return method(self._reading((args, kwargs)), *args, **kwargs)

    return reading


def _columns_of(arguments: Any) -> Iterator[Hashable]:
    """The names of all columns within arguments of a read."""
    if isinstance(arguments, Column):
        yield arguments.name
    elif isinstance(arguments, Quantity | RankGrid):
        yield arguments.column.name
    elif isinstance(arguments, Mapping):
        yield from _columns_of(tuple(arguments.values()))
    elif isinstance(arguments, list | tuple):
        for argument in arguments:
            yield from _columns_of(argument)


class SteppedEngine:
    """Sufficient statistics of a frame with steps: each reads the columns and takes the steps that it needs.

    Raises as `NarwhalsEngine`.
    """

    def __init__(self, frame: EngineFrame) -> None:
        self._frame = frame

    @property
    def rows(self) -> int:
        """The number of rows, exact: private under add/remove."""
        return self._reading(()).rows

    def _reading(self, arguments: Any) -> NarwhalsEngine:
        """The statistics of the columns that arguments name."""
        return NarwhalsEngine(self._frame.read(list(dict.fromkeys(_columns_of(arguments)))))

    present = _reading_method(NarwhalsEngine.present)
    grouped_ranks = _reading_method(NarwhalsEngine.grouped_ranks)
    table = _reading_method(NarwhalsEngine.table)
    labels = _reading_method(NarwhalsEngine.labels)
    bins = _reading_method(NarwhalsEngine.bins)
    grouped = _reading_method(NarwhalsEngine.grouped)
    codes = _reading_method(NarwhalsEngine.codes)
    ranks = _reading_method(NarwhalsEngine.ranks)
    clusters = _reading_method(NarwhalsEngine.clusters)

    def collect(self, reads: Iterable[Read]) -> dict[Read, Any]:
        """Return the answers to all reads that are queries, computed in one pass over the frame."""
        listed = list(reads)
        return self._reading([(read.args, dict(read.options)) for read in listed]).collect(listed)
