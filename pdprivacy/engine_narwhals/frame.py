"""The numbers of `pdprivacy.engine.PandasEngine`, each by one query of the engine that holds the frame.

What the sensitivities rest on holds here as it does there:

- every number is clamped to its declared bounds and put on the grid of its quantity by additions of
  doubles, which every engine here makes as the processor does; a null is left out, never imputed;
- sums are sums of doubles that are whole multiples of a power of two, cut in two parts where they are
  many, so that every partial sum stays below 2**53 of them: neither rounding nor the order can show;
- only declared cells are counted, and those without a record are filled in afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.cell_types import arrow_type_name, pandas_type_name, refuse_other_types, refuse_rounded
from pdprivacy.domain import Column, Domain
from pdprivacy.engine import Columns, PandasEngine
from pdprivacy.engine_narwhals.engines import guarded, in_partitions, narwhals, opened
from pdprivacy.engine_narwhals.numbers import each_of_numbers
from pdprivacy.engine_narwhals.pieces import ArrowPieces
from pdprivacy.engine_narwhals.ranks import HistogramRanks
from pdprivacy.engine_narwhals.readings import Cells, Number, cells_in, cells_of, number_of, type_name
from pdprivacy.engine_narwhals.spark import no_such_name
from pdprivacy.errors import DeclarationError, EngineError, InvalidDataError, ParameterError
from pdprivacy.statistic import GroupedSums, Moments, Quantity, quantity

__all__ = ["NarwhalsEngine"]

Found = TypeVar("Found")
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

SLICE = 1 << 20
"""Rows at a time of frames that are computed step by step: their steps are as many columns in memory."""

STEP_BY_STEP = ("PyArrow", "pandas", "Dask")
"""Engines whose frames, or partitions of them, are in memory and computed one expression after the other."""

PANDAS_2 = pd.__version__.startswith("2.")

MANY_ROWS = 2**33
"""How many rows a frame may have whose number of rows is not known in advance."""


class NarwhalsEngine:
    """Sufficient statistics of a frame that narwhals knows.

    Polars frames and lazy frames, relations of DuckDB, Dask frames, tables of PyArrow and pandas frames.
    Nothing is read before a statistic is asked for, and each one reads once.

    Raises
    ------
    MissingExtraError : narwhals is not installed.
    ParameterError : no frame of these engines, or two columns of one name.
    EngineError : the engine cannot tell the types of the columns.
    """

    by_query = False
    """Whether all is asked for by queries alone, also what is read faster in another way."""

    def __init__(self, frame: Any) -> None:
        self._pieces = frame if isinstance(frame, ArrowPieces) else None
        read = frame if self._pieces is None else self._pieces.schema.empty_table()
        self._frame, self._engine, self._schema = opened(read)
        self._name = self._engine if self._pieces is None else self._pieces.engine
        self._lazy = self._pieces is None and isinstance(self._frame, narwhals().LazyFrame)
        self._known = None if self._lazy or self._pieces is not None else len(self._frame)

    def check(self, domain: Domain) -> None:
        """Refuse columns that cannot be read as they are declared, whatever is asked of them later.

        Raises InvalidDataError or ParameterError; no record is read.
        """
        refuse_other_types(self._held(domain), domain)
        refuse_rounded({column.name for column in domain.columns if self._type(column).is_float()}, domain)
        for column in domain.columns:
            dtype = self._type(column)
            if column.role == "identifier":
                continue
            if column.lower is not None and column.upper is not None:
                number_of(quantity(column, "protect"), dtype, "q0")
            try:
                column.labels("protect")
            except DeclarationError:
                continue
            cells_of(column, "protect", dtype, "k0")

    def _held(self, domain: Domain) -> dict[Hashable, str | None]:
        """What each declared column holds: by the types of pandas and Arrow where the frame has these."""
        if self._engine in ("pandas", "Dask"):
            native = self._frame.to_native().dtypes
            return {name: pandas_type_name(native[name]) for name in domain}
        if self._engine == "PyArrow":
            fields = self._frame.to_native().schema
            return {name: arrow_type_name(fields.field(name).type) for name in domain}
        return {column.name: type_name(self._type(column)) for column in domain.columns}

    @property
    def rows(self) -> int:
        """The number of rows, exact: private under add/remove."""
        if self._known is not None:
            return int(self._known)
        if self._engine == "Dask" and not self.by_query:  # which may know it from the files
            return guarded("the number of rows", self._name, lambda: len(self._frame.to_native()))
        library = narwhals()
        names = self._schema.names()[:1]
        found = self._query("the number of rows", names, lambda frame: frame.select(n=library.len()))
        return sum(int(part["n"][0]) for part in found)

    def present(self, column: Column) -> int:
        """Records without null in ``column``."""
        library = narwhals()
        dtype = self._type(column)
        at = library.col("c")

        def plan(frame: Any) -> Any:
            held = frame.select(c=library.col(column.name)).filter(~at.is_null())
            return (held.filter(~at.is_nan()) if dtype.is_float() else held).select(n=library.len())

        found = self._query("the records that are present", [column.name], plan)
        return sum(int(part["n"][0]) for part in found)

    def sum(self, quantity: Quantity) -> tuple[int, int]:
        """Records without null, and the sum of their grid steps."""
        if self._plain([quantity]):
            found = self._in_pieces("a sum", [quantity], lambda piece: PandasEngine(piece).sum(quantity))
            return sum(rows for rows, _ in found), sum(total for _, total in found)
        rows, sums, _ = self._totals([quantity], [], products=False)
        return int(rows[0]), int(sums[0][0])

    def moments(self, quantities: Sequence[Quantity]) -> Moments:
        """Count, sums and products over records complete in all ``quantities``."""
        size = range(len(quantities))
        if self._plain(quantities):
            found = self._in_pieces(
                "moments", quantities, lambda piece: PandasEngine(piece).moments(quantities)
            )
            return Moments(
                sum(one.rows for one in found),
                [sum(one.sums[i] for one in found) for i in size],
                [[sum(one.products[i][j] for one in found) for j in size] for i in size],
            )
        rows, sums, products = self._totals(quantities, [], products=True)
        matrix = [[int(products[min(i, j), max(i, j)][0]) for j in size] for i in size]
        return Moments(int(rows[0]), [int(column[0]) for column in sums], matrix)

    def grouped(
        self, quantities: Sequence[Quantity], keys: Sequence[Column], method: str, *, products: bool
    ) -> GroupedSums:
        """Records complete in all ``quantities``, per declared group of ``keys``."""
        rows, sums, totals = self._totals(
            quantities, self._cells(keys, method), products=products, shape=_shape(keys, method)
        )
        return GroupedSums(
            rows.tolist(),
            [column.tolist() for column in sums],
            {pair: column.tolist() for pair, column in totals.items()},
        )

    def table(self, columns: Sequence[Column], method: str) -> Integers:
        """Records per declared cell of ``columns`` (null cells last on each axis), flat in C order."""
        return self._counts(self._cells(columns, method), _shape(columns, method))

    def bins(self, column: Column, edges: Sequence[float]) -> Integers:
        """Records per bin of ``edges``, then the null cell where nulls are declared."""
        count = len(edges) - 1
        column.bounds("bins")
        cells = cells_in(column, self._type(column), "k0", edges, count, cases=self._cases)
        return self._counts([cells], [count + int(column.nullable)])

    def codes(self, column: Column, method: str) -> Integers:
        """The declared cell of each record, nulls after the last; -1 where it has none.

        Raises ParameterError where the engine keeps its rows in no order.
        """
        if self._lazy or self._pieces is not None:
            raise self._refused("the cell of each record, as its rows have no order")
        library = narwhals()
        (cells,) = self._cells([column], method)
        kept = library.lit(True)
        for condition in cells.kept:
            kept = kept & condition
        found = self._query(
            "the cell of each record",
            [column.name],
            lambda frame: frame.select(k0=cells.source).select(
                key=cells.key, kept=library.when(kept).then(1.0).otherwise(0.0)
            ),
        )
        parts = [np.where(part["kept"].to_numpy() == 1.0, cells.settle(part["key"]), -1) for part in found]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def ranks(self, quantity: Quantity) -> HistogramRanks:
        """The records in the order of their steps: one query counts them in bins, one more reads a window."""
        number = number_of(quantity, self._type(quantity.column), "q0", cases=self._cases)

        def query(plan: Callable[[Any], Any]) -> list[Any]:
            return self._query("the ranks of a number", [number.name], plan)

        return HistogramRanks(query, number, quantity, self._name)

    def clusters(self, quantities: Sequence[Quantity], centers: Floats) -> GroupedSums:  # noqa: ARG002
        """Refused: records around centres are read from pandas frames only."""
        raise self._refused("the records around centres")

    # ------------------------------------------------------------ one query

    def _plain(self, quantities: Sequence[Quantity]) -> bool:
        """Whether sums are added by the code of pandas frames, in pieces that pandas reads where they are.

        Lazy frames of Polars are not: it computes a query on all processors.
        """
        library = narwhals()
        types = [self._type(one.column) for one in quantities if one.label is None]
        wide = (library.Int128, library.UInt128)
        return (
            self._engine in ("Polars", "PyArrow", "Dask")
            and not (self._engine == "Polars" and self._lazy)
            and not self.by_query
            and len(types) == len(quantities)
            and all(kind.is_float() or (kind.is_integer() and kind not in wide) for kind in types)
        )

    def _in_pieces(
        self, what: str, quantities: Sequence[Quantity], function: Callable[[Columns], Found]
    ) -> list[Found]:
        """What a function gives of these columns in pieces, as pandas frames have them."""
        names = list(dict.fromkeys(one.column.name for one in quantities))
        frame = self._frame.to_native() if self._pieces is None else self._pieces
        return guarded(what, self._name, lambda: each_of_numbers(frame, self._engine, names, function))

    def _refused(self, what: str) -> ParameterError:
        return ParameterError(
            f"{self._name} frames do not give {what}.", "protect the frame as a pandas frame"
        )

    def _type(self, column: Column) -> Any:
        if column.name not in self._schema:
            raise InvalidDataError(f"column {column.name!r} is declared and not in the frame.")
        if self._engine == "Spark" and no_such_name(column.name):
            raise ParameterError(
                f"Spark reads the name {column.name!r} as a field of another column.",
                "rename it by frame.withColumnRenamed(...), to a name without dots and backticks",
            )
        return self._schema[column.name]

    def _cells(self, columns: Sequence[Column], method: str) -> list[Cells]:
        for column in columns if self._cuts_texts else ():
            if any(isinstance(label, str) and "\0" in label for label in column.categories or ()):
                raise ParameterError(
                    f"A label of column {column.name!r} has a null character, where pandas 2 ends a text.",
                    "pandas 3 reads it",
                )
        return [
            cells_of(column, method, self._type(column), f"k{place}", cases=self._cases)
            for place, column in enumerate(columns)
        ]

    def _query(self, what: str, names: Sequence[Any], plan: Callable[[Any], Any]) -> list[Any]:
        """What the plan gives of these columns, computed once, of the frame or of its parts."""

        def run() -> list[Any]:
            if self._pieces is not None:
                return [plan(narwhals().from_native(part)) for part in self._pieces.open()]
            if self._engine == "Polars":
                return [plan(self._frame.lazy()).collect(engine="streaming")]
            if self._engine == "Dask":
                return in_partitions(self._frame.to_native()[list(names)], lambda part: _sliced(part, plan))
            return [plan(self._frame).collect()] if self._lazy else _sliced(self._frame, plan)

        return guarded(what, self._name, run)

    @property
    def _cases(self) -> bool:
        return self._engine == "DuckDB"

    def _early(self, keys: Sequence[Cells]) -> list[Cells]:
        """The keys whose labels are looked up per record, not once per group.

        By pandas 2 all are, whose groups of objects end a text at its first null character, and so may call
        records that have a cell by the name of one that has none; and by Spark, whose groups come from afar.
        """
        late = not self._cuts_texts and self._engine != "Spark"
        return [one for one in keys if not (late and one.late)]

    @property
    def _cuts_texts(self) -> bool:
        return PANDAS_2 and self._engine in ("pandas", "Dask")

    def _counts(self, keys: Sequence[Cells], shape: Sequence[int]) -> Integers:
        """Records per cell of ``shape``, flat in C order."""
        library = narwhals()
        early = self._early(keys)
        names = [f"k{place}" for place in range(len(keys))]

        def plan(frame: Any) -> Any:
            read = frame.select(**{name: one.source for name, one in zip(names, keys, strict=True)})
            if early:
                read = _kept(read, early).select(
                    **{name: one.key for name, one in zip(names, keys, strict=True)}
                )
            return read.group_by(*names).agg(n=library.len())

        counts = np.zeros(math.prod(shape), dtype=np.int64)
        for part in self._query("a table", _names(keys), plan):
            places, held = self._places(part, keys, shape)
            np.add.at(counts, places, part["n"].to_numpy().astype(np.int64)[held])
        return counts

    def _totals(
        self,
        quantities: Sequence[Quantity],
        keys: Sequence[Cells],
        *,
        products: bool,
        shape: Sequence[int] = (),
    ) -> tuple[Any, list[Any], dict[tuple[int, int], Any]]:
        """Rows, sums and products of complete records per cell of ``shape``, in grid steps, exact."""
        library = narwhals()
        size = len(quantities)
        numbers = [
            number_of(quantity, self._type(quantity.column), f"q{place}", cases=self._cases)
            for place, quantity in enumerate(quantities)
        ]
        if size == 1 and not products and numbers[0].whole and _reach(quantities[0]) * MANY_ROWS < 2**63:
            rows, total = self._whole(quantities[0], numbers[0], keys, shape)
            return rows, [total], {}
        early = self._early(keys)
        pairs = [(i, j) for i in range(size) for j in range(i, size)] if products else []
        terms = [(f"s{i}", library.col(f"v{i}"), one.grid, one.reach) for i, one in enumerate(quantities)]
        for i, j in pairs:
            first, second = quantities[i], quantities[j]
            product = library.col(f"v{i}") * library.col(f"v{j}")
            terms.append((f"p{i}_{j}", product, first.grid * second.grid, first.reach * second.reach))
        most = SLICE if self._engine in STEP_BY_STEP else self._known
        split = {name: _coarse(reach, most) for name, _, _, reach in terms}
        names = [f"k{place}" for place in range(len(keys))]

        def plan(frame: Any) -> Any:
            read = frame.select(
                **{name: one.source for name, one in zip(names, keys, strict=True)},
                **{f"q{place}": one.source for place, one in enumerate(numbers)},
            )
            read = _kept(_held(read, numbers), early).select(
                **{name: one.key for name, one in zip(names, keys, strict=True)},
                **{f"v{place}": one.steps for place, one in enumerate(numbers)},
            )
            read = read.select(*names, **{name: term for name, term, _, _ in terms})
            asked = {"n": library.len()}
            coarse = {}
            for name, _, grid, _ in terms:
                if split[name]:
                    anchor = 1.5 * 2.0**52 * grid * split[name]
                    coarse[f"c_{name}"] = (library.col(name) + anchor) - anchor
            if coarse:
                fine = {f"f_{name[2:]}": library.col(name[2:]) - library.col(name) for name in coarse}
                whole = [name for name, *_ in terms if not split[name]]
                read = read.with_columns(**coarse).select(*names, *whole, *coarse, **fine)
            for name, *_ in terms:
                for part in (f"c_{name}", f"f_{name}") if split[name] else (name,):
                    asked[part] = library.col(part).sum()
            return read.group_by(*names).agg(**asked) if names else read.select(**asked)

        cells = math.prod(shape)
        rows = np.zeros(cells, dtype=np.int64)
        totals = {name: np.zeros(cells, dtype=object) for name, *_ in terms}
        for part in self._query("sums", _names([*numbers, *keys]), plan):
            places, held = self._places(part, keys, shape)
            counted = part["n"].to_numpy().astype(np.int64)
            np.add.at(rows, places, counted[held])
            for name, _, grid, _ in terms:
                cut = split[name]
                sources = {f"c_{name}": cut, f"f_{name}": 1} if cut else {name: 1}
                for source, times in sources.items():
                    steps = _steps(part[source], counted, grid * times, self._engine)[held]
                    np.add.at(totals[name], places, steps.astype(object) * times)
        sums = [totals[f"s{i}"] for i in range(size)]
        return rows, sums, {(i, j): totals[f"p{i}_{j}"] for i, j in pairs}

    def _whole(
        self, quantity: Quantity, number: Number, keys: Sequence[Cells], shape: Sequence[int]
    ) -> tuple[Any, Any]:
        """Rows and sums of whole numbers per cell of ``shape``: added as they are, centred afterwards."""
        library = narwhals()
        early = self._early(keys)
        names = [f"k{place}" for place in range(len(keys))]
        asked = {"n": library.col("q0").count(), "s": library.col("q0").sum()}

        def plan(frame: Any) -> Any:
            read = frame.select(
                **{name: one.source for name, one in zip(names, keys, strict=True)}, q0=number.source
            )
            if early:
                read = _kept(read, early).select(
                    "q0", **{name: one.key for name, one in zip(names, keys, strict=True)}
                )
            return read.group_by(*names).agg(**asked) if names else read.select(**asked)

        cells = math.prod(shape)
        rows, sums = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=object)
        for part in self._query("sums", _names([number, *keys]), plan):
            places, held = self._places(part, keys, shape)
            np.add.at(rows, places, part["n"].to_numpy().astype(np.int64)[held])
            totals = [0 if pd.isna(total) else int(total) for total in part["s"].to_list()]
            if any(total != kept for total, kept in zip(part["s"].to_list(), totals, strict=True) if kept):
                raise EngineError(f"{self._name} does not add integers as integers.")
            np.add.at(sums, places, np.array(totals, dtype=object)[held])
        if int(rows.sum()) > MANY_ROWS:
            raise EngineError(f"{self._name} frames of more than 2**33 rows are not added up.")
        steps, center = round(1 / quantity.grid), round(quantity.center / quantity.grid)
        return rows, sums * steps - rows.astype(object) * center

    def _places(
        self, part: Any, keys: Sequence[Cells], shape: Sequence[int]
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The cells of the groups that have one, and which those are."""

        def settled() -> tuple[Integers, NDArray[np.bool_]]:
            places = np.zeros(len(part), dtype=np.int64)
            held = np.ones(len(part), dtype=bool)
            for number, (key, radix) in enumerate(zip(keys, shape, strict=True)):
                codes = key.settle(part[f"k{number}"])
                held &= codes >= 0
                places = places * radix + codes
            return places[held], held

        # a label may be none that Python holds, and its failure would tell which
        return guarded("the cells of its groups", self._name, settled)


def _reach(quantity: Quantity) -> int:
    """The largest whole number that is added."""
    return int(max(abs(quantity.lower), abs(quantity.upper)))


def _sliced(frame: Any, plan: Callable[[Any], Any]) -> list[Any]:
    """What the plan gives of so many rows at a time; of no rows, once."""
    return [plan(frame[start : start + SLICE]) for start in range(0, max(len(frame), 1), SLICE)]


def _names(readings: Sequence[Cells | Number]) -> list[Any]:
    """The columns that are read, each once."""
    return list(dict.fromkeys(reading.name for reading in readings))


def _shape(columns: Sequence[Column], method: str) -> list[int]:
    return [column.cells(method) for column in columns]


def _coarse(reach: int, rows: int | None) -> int:
    """Where to cut terms of ``reach`` steps, so that both parts of so many add up below 2**53; 0: nowhere."""
    if reach * (MANY_ROWS if rows is None else rows) < 2**53:
        return 0
    return 1 << ((reach.bit_length() + 1) // 2)


def _steps(sums: Any, rows: Integers, unit: float, engine: str) -> Integers:
    """Sums of so many rows in whole units; a sum of no record may be null."""
    steps = np.where(rows > 0, sums.to_numpy().astype(np.float64), 0.0) / unit
    if not (np.array_equal(steps, np.rint(steps)) and (np.abs(steps) < 2.0**53).all()):
        raise EngineError(f"{engine} does not add doubles as the processor does.")
    return np.asarray(steps.astype(np.int64))


def _held(frame: Any, numbers: Sequence[Number]) -> Any:
    for number in numbers:
        for condition in number.held:
            frame = frame.filter(condition)
    return frame


def _kept(frame: Any, keys: Sequence[Cells]) -> Any:
    for key in keys:
        for condition in key.kept:
            frame = frame.filter(condition)
    return frame
