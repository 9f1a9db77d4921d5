"""Frames of other engines, and the numbers of `pdprivacy.core.engines.PandasEngine` by queries of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from pdprivacy.core.engines import Columns, PandasEngine
from pdprivacy.core.engines.distinct_labels import LabelCounts, count_labels, merged_counts
from pdprivacy.core.engines.other.column_expressions import type_name
from pdprivacy.core.engines.other.engines import in_partitions, narwhals, open_frame, run_guarded
from pdprivacy.core.engines.other.histogram_ranks import HistogramRanks
from pdprivacy.core.engines.other.native_frames import ArrowPieces, each_of_numbers, each_of_polars, streamed
from pdprivacy.core.engines.other.queries import Queries, Query
from pdprivacy.core.statistics import GroupedSums, Quantity, RankGrid, Read, quantity
from pdprivacy.declaration.cell_types import (
    DURATIONS,
    TEXT,
    arrow_type_name,
    pandas_type_name,
    refuse_other_types,
    refuse_rounded,
)
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import DeclarationError, ParameterError
from pdprivacy.types import Floats, Integers

Plan: TypeAlias = Callable[[Any], Any]


SLICE = 1 << 20
"""Rows at a time of frames that are computed step by step, each step a column in memory."""

STEP_BY_STEP = ("PyArrow", "pandas", "Dask")
"""Engines whose frames, or partitions of them, are in memory and computed one expression after the other."""


def _query_method(
    make: Callable[Concatenate[Queries, P], Query[Found]],
) -> Callable[Concatenate[NarwhalsEngine, P], Found]:
    """The method of the engine that answers a query."""

    @functools.wraps(make)
    def method(self: NarwhalsEngine, /, *args: P.args, **kwargs: P.kwargs) -> Found:
        return self._answer(make(self._queries, *args, **kwargs))

    return method


class NarwhalsEngine:
    """Sufficient statistics of a frame that narwhals knows.

    Polars frames and lazy frames, relations of DuckDB, Dask frames, tables of PyArrow and pandas frames.
    Nothing is read before a statistic is asked for. Each one reads once; `collect` reads once for several.

    Raises
    ------
    MissingExtraError : narwhals is not installed.
    ParameterError : no frame of these engines, or two columns of one name.
    EngineError : the engine cannot tell the types of the columns.
    """

    def __init__(self, frame: Any) -> None:
        self._pieces = frame if isinstance(frame, ArrowPieces) else None
        read = frame if self._pieces is None else self._pieces.schema.empty_table()
        self._frame, self._engine, self._schema = open_frame(read)
        self._name = self._engine if self._pieces is None else self._pieces.engine
        self._lazy = self._pieces is None and isinstance(self._frame, narwhals().LazyFrame)
        self._known = None if self._lazy or self._pieces is not None else len(self._frame)
        most = SLICE if self._engine in STEP_BY_STEP else self._known
        self._queries = Queries(self._name, self._engine, self._schema, most)

    def check(self, domain: Domain) -> None:
        """Refuse columns that cannot be read as they are declared, whatever is asked of them later.

        Raises InvalidDataError or ParameterError; no record is read.
        """
        types = {column.name: self._queries.type_of(column) for column in domain.columns}
        hint = None if self._name == "pandas" else functools.partial(_conversion_hint, self._name)
        refuse_other_types(self._cell_types(types), domain, hint)
        refuse_rounded({name for name, dtype in types.items() if dtype.is_float()}, domain, self._name)
        for column in domain.columns:
            if column.role == "identifier" or column.timeline is not None:
                continue
            if column.lower is not None and column.upper is not None:
                self._queries.column(column, "q0").number(quantity(column, "protect"))
            try:
                labels = column.labels("protect")
            except DeclarationError:
                continue
            self._queries.column(column, "k0").cells(column.bins, len(labels))

    def _cell_types(self, types: dict[Hashable, Any]) -> dict[Hashable, str | None]:
        """Return the type of cells of each column, by its type in pandas or Arrow where it has one."""
        if self._engine in ("pandas", "Dask"):
            dtypes = self._frame.to_native().dtypes
            return {name: pandas_type_name(dtypes[name]) for name in types}
        if self._engine == "PyArrow":
            schema = self._frame.to_native().schema
            return {name: arrow_type_name(schema.field(name).type) for name in types}
        return {name: type_name(dtype) for name, dtype in types.items()}

    # ------------------------------------------------------------ statistics

    @property
    def rows(self) -> int:
        """The number of rows, exact: private under add/remove."""
        if self._known is not None:
            return int(self._known)
        if self._engine == "Dask":  # which may know it from the files
            return run_guarded("the number of rows", self._name, lambda: len(self._frame.to_native()))
        return self._answer(self._queries.rows())

    present = _query_method(Queries.present)
    grouped_ranks = _query_method(Queries.grouped_ranks)
    table = _query_method(Queries.table)
    bins = _query_method(Queries.bins)

    def labels(self, columns: Sequence[Column]) -> LabelCounts:
        """Records per combination of private labels of ``columns``; those without a label are left out."""
        query = self._queries.labels(columns)
        if query is not None:
            return self._answer(query)
        frame = self._frame.to_native()[[column.name for column in columns]]

        def counted() -> list[LabelCounts]:
            if self._engine == "Dask":
                return in_partitions(frame, lambda part: [count_labels(part.to_native(), columns)])
            return [count_labels(frame, columns)]

        pieces = run_guarded("the labels", self._name, counted)
        return merged_counts((pair for piece in pieces for pair in piece.items()), columns)

    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        """Records complete in all ``quantities``, per declared group; all are one without ``keys``."""
        if keys or not self._plain(quantities):
            return self._answer(self._queries.grouped(quantities, keys, method, products=products))
        pieces = self._in_pieces(
            "sums",
            quantities,
            lambda piece: PandasEngine(piece).grouped(quantities, (), method, products=products),
        )
        return GroupedSums(
            [sum(piece.rows[0] for piece in pieces)],
            [[sum(piece.sums[i][0] for piece in pieces)] for i in range(len(quantities))],
            {pair: [sum(piece.products[pair][0] for piece in pieces)] for pair in pieces[0].products},
        )

    def codes(self, column: Column, method: str) -> Integers:
        """The declared cell of each record, nulls after the last; -1 where it has none.

        Raises ParameterError where the engine keeps its rows in no order.
        """
        if self._lazy or self._pieces is not None:
            raise self._refused("the cell of each record, as its rows have no order")
        return self._answer(self._queries.codes(column, method))

    def ranks(self, grid: RankGrid, weight: Quantity | None = None) -> HistogramRanks:
        """The records in the order of their steps: one query counts them in bins, one more reads a window."""
        number = self._queries.column(grid.column, "q0").clamped(grid.lower, grid.upper)
        weighing = None
        if weight is not None:
            weighing = self._queries.column(weight.column, "q1").number(weight), weight
        names = [number.name, *([] if weighing is None else [weighing[0].name])]

        def results(plan: Plan) -> list[Any]:
            return self._results("the ranks of a number", names, [plan])[0]

        return HistogramRanks(results, number, grid, self._queries, weighing)

    def clusters(self, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums:  # noqa: ARG002
        """Refused: records around centres are read from pandas frames only."""
        raise self._refused("the records around centres")

    def _refused(self, feature: str) -> ParameterError:
        return ParameterError(
            f"{self._name} frames do not give {feature}.", "protect the frame as a pandas frame"
        )

    # ------------------------------------------------------------ pieces read by the code of pandas frames

    def _plain(self, quantities: Sequence[Quantity]) -> bool:
        """Return whether the code of pandas frames adds the sums, in pieces that pandas reads without a copy.

        Lazy frames of Polars are not: it computes a query on all processors.
        """
        library = narwhals()
        types = [self._queries.type_of(number.column) for number in quantities if number.label is None]
        wide = (library.Int128, library.UInt128)
        return (
            self._engine in ("Polars", "PyArrow", "Dask")
            and not (self._engine == "Polars" and self._lazy)
            and len(types) == len(quantities)
            and all(kind.is_float() or (kind.is_integer() and kind not in wide) for kind in types)
        )

    def _in_pieces(
        self, task: str, quantities: Sequence[Quantity], function: Callable[[Columns], Found]
    ) -> list[Found]:
        """Call a function on each piece of these columns, as arrays of pandas."""
        names = list(dict.fromkeys(quantity.column.name for quantity in quantities))
        frame = self._frame.to_native() if self._pieces is None else self._pieces
        return run_guarded(task, self._name, lambda: each_of_numbers(frame, self._engine, names, function))

    # ------------------------------------------------------------ queries

    def collect(self, reads: Iterable[Read]) -> dict[Read, Any]:
        """Return the answers to all reads that are queries, computed in one pass over the frame.

        Relations of DuckDB are streamed through Arrow, where there is more than one; Spark, whose plans have
        one result each, computes one after the other.
        """
        queries = {read: query for read in reads if (query := self._queries.of(read)) is not None}
        names = tuple(dict.fromkeys(name for query in queries.values() for name in query.names))
        if self._engine == "DuckDB" and len(queries) > 1:
            native = self._frame.select(*names).to_native()
            pieces = run_guarded("the types of its columns", self._name, lambda: streamed(native))
            return NarwhalsEngine(pieces).collect(queries)
        plans = [query.plan for query in queries.values()]
        computed = self._results("several statistics", names, plans) if plans else []
        answers = [query.answer(results) for query, results in zip(queries.values(), computed, strict=True)]
        return dict(zip(queries, answers, strict=True))

    def _answer(self, query: Query[Found]) -> Found:
        return query.answer(self._results(query.what, query.names, [query.plan])[0])

    def _results(self, task: str, names: Sequence[Any], plans: Sequence[Plan]) -> list[list[Any]]:
        """Return the results of each plan on these columns, per part of the frame, in one pass."""
        parts = run_guarded(task, self._name, lambda: self._compute(names, plans))
        return [[part[index] for part in parts] for index in range(len(plans))]

    def _compute(self, names: Sequence[Any], plans: Sequence[Plan]) -> list[list[Any]]:
        """Return the results of all plans, per part of the frame."""
        if self._pieces is not None:
            parts = map(narwhals().from_native, self._pieces.open())
            return [[plan(part) for plan in plans] for part in parts]
        if self._engine == "Polars" and len(plans) > 1:
            # an optimiser that sees all plans over a whole frame shares parts of them, and reads twice for it
            native = self._frame.to_native().lazy().select(list(names))
            return each_of_polars(native, lambda part: _compute_polars(part, plans))
        if self._engine == "Polars":
            return [[plan(self._frame.lazy()).collect(engine="streaming") for plan in plans]]
        if self._engine == "Dask":
            return in_partitions(
                self._frame.to_native()[list(names)], lambda part: _compute_by_slice(part, plans)
            )
        return (
            [[plan(self._frame).collect() for plan in plans]]
            if self._lazy
            else _compute_by_slice(self._frame, plans)
        )


_CONVERSIONS = {
    ("Polars", "dates", TEXT): "df = df.with_columns(pl.col({name}).str.to_datetime(strict=False))",
    ("Polars", "numbers", TEXT): "df = df.with_columns(pl.col({name}).cast(pl.Float64, strict=False))",
    ("Polars", "numbers", DURATIONS): "df = df.with_columns(pl.col({name}).dt.total_days())",
    ("Dask", "dates", TEXT): "ddf[{name}] = dask.dataframe.to_datetime(ddf[{name}])",
    ("Dask", "numbers", TEXT): 'ddf[{name}] = dask.dataframe.to_numeric(ddf[{name}], errors="coerce")',
}
"""Code that converts a column, by the engine, what is declared and what the column holds."""


def _conversion_hint(engine: str, column: Column, cell_type: str) -> str:
    """Return how a column gets its declared type in an engine: code where it is short, else words."""
    kinds = {"float": "numbers", "integer": "numbers", "boolean": "truth values"}
    target = "dates" if column.timeline is not None else kinds.get(column.kind, "its labels")
    code = _CONVERSIONS.get((engine, target, cell_type))
    if code is None:
        return (
            f"convert column {column.name!r} from {cell_type} to {target} in {engine} before it is protected."
        )
    return f"{code.format(name=repr(column.name))}; nulls it makes are declared by nullable=True."


def _compute_by_slice(frame: Any, plans: Sequence[Plan]) -> list[list[Any]]:
    """Return the results of all plans per slice of rows; an empty frame is one slice."""
    starts = range(0, max(len(frame), 1), SLICE)
    return [[plan(frame[start : start + SLICE]) for plan in plans] for start in starts]


def _compute_polars(part: Any, plans: Sequence[Plan]) -> list[Any]:
    """Return the results of all plans on a Polars frame in memory."""
    import polars

    library = narwhals()
    queries = [plan(library.from_native(part.lazy())).to_native() for plan in plans]
    return [library.from_native(result) for result in polars.collect_all(queries)]


Found = TypeVar("Found")
P = ParamSpec("P")
