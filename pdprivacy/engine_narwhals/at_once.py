"""Several statistics by one query of the engine that holds the frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pdprivacy.engine_narwhals.engines import guarded, narwhals
from pdprivacy.engine_narwhals.frame import NarwhalsEngine
from pdprivacy.engine_narwhals.pieces import ArrowPieces, each_of_polars, schema_of_duckdb, tables_of_duckdb
from pdprivacy.statistic import Read

__all__ = ["at_once"]

Plan: TypeAlias = Callable[[Any], Any]


class _Asking(NarwhalsEngine):
    """Asks nothing, and notes what it wanted to ask: of which columns, and by what plan."""

    by_query = True
    asked: tuple[Sequence[Any], Plan] | None = None

    def _query(self, what: str, names: Sequence[Any], plan: Plan) -> list[Any]:  # noqa: ARG002
        self.asked = names, plan
        return []  # of no part, the answer is that of no record

    def computed(self, names: Sequence[Any], plans: Sequence[Plan]) -> list[list[Any]]:
        """What each of the plans gives, per part of the frame."""
        what = "several statistics"
        if self._engine == "Polars":
            # an optimiser that sees all plans over a whole frame shares parts of them, and reads twice for it
            native = self._frame.to_native().lazy().select(list(names))
            return guarded(
                what, self._name, lambda: each_of_polars(native, lambda part: _of_piece(part, plans))
            )
        if self._lazy and self._engine != "Dask":
            return guarded(what, self._name, lambda: [[plan(self._frame).collect() for plan in plans]])
        return super()._query(what, names, lambda part: [plan(part) for plan in plans])


class _Given(NarwhalsEngine):
    """Asks nothing: its first query has been answered."""

    by_query = True
    parts: list[Any]

    def _query(self, what: str, names: Sequence[Any], plan: Plan) -> list[Any]:  # noqa: ARG002
        return self.parts


def at_once(frame: Any, engine: str, reads: Sequence[Read]) -> dict[Read, Any]:
    """The answers to all reads: the frame is gone through once.

    Relations of DuckDB are streamed through Arrow once, where there is more than one read; Spark, whose plans
    have one result each, computes one after the other.
    """
    read_as = frame
    if engine == "DuckDB" and len(reads) > 1 and not isinstance(frame, ArrowPieces):
        schema = guarded("the types of its columns", engine, lambda: schema_of_duckdb(frame))
        read_as = ArrowPieces(engine, schema, lambda: tables_of_duckdb(frame))
    asking = _Asking(read_as)
    answers: dict[Read, Any] = {}
    asked: dict[Read, tuple[Sequence[Any], Plan]] = {}
    for read in reads:
        asking.asked = None
        answers[read] = read.on(asking)
        if asking.asked is not None:
            asked[read] = asking.asked
    plans = [plan for _, plan in asked.values()]
    names = list(dict.fromkeys(name for wanted, _ in asked.values() for name in wanted))
    found = asking.computed(names, plans) if plans else []
    given = _Given(read_as)
    for place, read in enumerate(asked):
        given.parts = [parts[place] for parts in found]
        answers[read] = read.on(given)
    return answers


def _of_piece(part: Any, plans: Sequence[Plan]) -> list[Any]:
    """What each of the plans gives of a frame of Polars in memory."""
    import polars

    library = narwhals()
    wanted = [plan(library.from_native(part.lazy())).to_native() for plan in plans]
    return [library.from_native(one) for one in polars.collect_all(wanted)]
