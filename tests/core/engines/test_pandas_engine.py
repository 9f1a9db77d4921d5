"""The engine reads the same whole numbers for every dtype, every order of the rows and every block."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pdprivacy import Column
from pdprivacy.core.engines import PandasEngine, pandas_engine
from pdprivacy.core.statistics import Quantity, indicator, quantity
from pdprivacy.core.statistics.interface import PRODUCT_BITS, SUM_BITS
from pdprivacy.errors import PrivacyError
from tests.support import oracle_cases, pairs
from tests.support.engine_frames import sum_of

NAN, INF = float("nan"), float("inf")
ENDS = ((0.0, 9.0), (-3.0, 10.0), (0.1, 0.7), (-7.5, -2.25), (1e9, 1e9 + 1e-3), (5.0, 5.0), (-1e12, 1.0))


def is_null(cell: Any) -> bool:
    return cell is None or cell is pd.NA or (isinstance(cell, float) and cell != cell)


# References in plain Python: one record at a time, exact arithmetic.


def steps(number: Quantity, cell: Any) -> int | None:
    """The clamped and centred cell in whole grid steps, ties to even."""
    if is_null(cell):
        return None
    exact = INF if cell == INF else -INF if cell == -INF else Fraction(cell)
    clamped = Fraction(min(max(exact, number.lower), number.upper))
    return round((clamped - Fraction(number.center)) / Fraction(number.grid))


def bin_of(edges: tuple[float, ...], lower: float, upper: float, cell: Any) -> int | None:
    """The half-open bin that holds the clamped cell, the last one closed; None where none does."""
    value = min(max(cell, lower), upper)
    for index, (left, right) in enumerate(itertools.pairwise(edges)):
        if left <= value < right or (index == len(edges) - 2 and value == right):
            return index
    return None


def plain_sum(number: Quantity, cells: list[Any]) -> tuple[int, int]:
    numbers = [step for cell in cells if (step := steps(number, cell)) is not None]
    return len(numbers), sum(numbers)


def plain_bins(column: Column, edges: tuple[float, ...], cells: list[Any]) -> list[int]:
    lower, upper = column.bounds("test")
    counts = [0] * (len(edges) - 1 + column.nullable)
    for cell in cells:
        index = len(edges) - 1 if is_null(cell) else bin_of(edges, lower, upper, cell)
        if index is not None and index < len(counts):
            counts[index] += 1
    return counts


def engine(**columns: Any) -> PandasEngine:
    return PandasEngine(pd.DataFrame({name: pd.Series(values) for name, values in columns.items()}))


@contextlib.contextmanager
def blocks_of(rows: int) -> Iterator[None]:
    """Every module of the engine reads ``rows`` rows at a time."""
    with contextlib.ExitStack() as patches:
        modules = [
            module for name, module in sys.modules.items() if name.startswith("pdprivacy.core.engines")
        ]
        for module in modules:
            # where values are placed in bins, eighths of a block are taken
            few = max(rows, 8) if module.__name__.endswith("blocks") else rows
            for name in {"BLOCK", "GROUPED"} & set(vars(module)):
                patches.enter_context(mock.patch.object(module, name, few))
        yield


# ---------------------------------------------------------------- numbers


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize(("centered", "products"), [(False, False), (True, False), (True, True)])
def test_numbers_are_clamped_and_rounded_to_the_grid_at_every_read(ends, centered, products):
    lower, upper = ends
    column = Column("x", "float", nullable=True, lower=lower, upper=upper)
    number = quantity(column, "test", centered=centered, products=products)
    inside = np.random.default_rng(1).uniform(lower, upper, 20).tolist()
    beyond = [lower - 1, upper + 1, -1e300, 1e300, INF, -INF, math.nextafter(upper, INF), NAN]
    for cell in [lower, upper, lower / 2 + upper / 2, *inside, *beyond]:
        rows, total = sum_of(engine(x=[cell]), number)
        assert (rows, total) == plain_sum(number, [cell])
        assert number.low <= total <= number.high or is_null(cell)
        if products:
            grouped = engine(x=[cell]).grouped([number], (), "test", products=True)
            assert (grouped.rows, grouped.sums) == ([rows], [[total]])
            assert grouped.products == {(0, 0): [total * total]}
        alone = engine(x=[cell]).grouped([number], (), "test", products=False)
        assert (alone.rows, alone.sums, alone.products) == ([rows], [[total]], {})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "Float32", "float[pyarrow]"])
@pytest.mark.parametrize("upper", [0.1, 0.7, 1000.3])
def test_bounds_are_not_rounded_to_a_narrower_dtype(dtype, upper):
    number = quantity(Column("x", "float", lower=-upper, upper=upper), "mean")
    above = pd.Series([np.float64(np.float16(upper)) * 1.01]).astype(dtype)
    assert sum_of(engine(x=above), number) == (1, number.high)
    assert sum_of(engine(x=-above), number) == (1, number.low)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_the_bounds_in_steps_are_those_of_the_records(ends, products):
    number = quantity(Column("x", "float", lower=ends[0], upper=ends[1]), "test", products=products)
    assert (number.low, number.high) == (steps(number, number.lower), steps(number, number.upper))
    assert math.log2(number.grid).is_integer()
    # sums of a block of 2**17 stay exact: of numbers in 62 bits, of products in a double
    assert number.reach <= 2 ** (18 if products else 31)


WHOLE = [3, 0, 9, 5, 5, 1, 8]
NUMERIC = [
    "int64",
    "int8",
    "uint8",
    "uint64",
    "float32",
    "float64",
    "object",
    "category",
    "Int64",
    "UInt8",
    "Float32",
    "Float64",
    "int64[pyarrow]",
    "uint8[pyarrow]",
    "double[pyarrow]",
]


def as_dtype(values: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == "decimal objects":
        return pd.Series([None if is_null(cell) else Decimal(cell) for cell in values], dtype=object)
    if dtype == "decimal[pyarrow]":
        cells = [None if is_null(cell) else Decimal(cell) for cell in values]
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells, pa.decimal128(5, 1))))
    if dtype == "mixed objects":
        kinds = [int, float, np.int8, np.float32, Decimal, np.uint64]
        return pd.Series(
            [None if is_null(cell) else kinds[index % 6](cell) for index, cell in enumerate(values)],
            dtype=object,
        )
    return pd.Series(values, dtype=object).astype(dtype)


HOLD_NULLS = ["float32", "float64", "object", "category", "Int64", "Float64", "int64[pyarrow]"]


@pytest.mark.full(keep=7)
@pytest.mark.parametrize(
    ("dtype", "nulls"),
    [(dtype, False) for dtype in [*NUMERIC, "decimal objects", "decimal[pyarrow]", "mixed objects"]]
    + [(dtype, True) for dtype in [*HOLD_NULLS, "decimal objects", "decimal[pyarrow]", "mixed objects"]],
)
def test_every_dtype_of_numbers_reads_the_same(dtype, nulls):
    cells = [*WHOLE, None, 2, None] if nulls else WHOLE
    reader = engine(x=as_dtype(cells, dtype), g=["a", "b"] * 5 if nulls else list("abababa"))
    # bounds that do not fit into the dtype, bounds within the data, and one value
    for lower, upper in ((-1000, 1000), (1, 7), (5, 5)):
        column = Column("x", "integer", nulls, lower, upper)
        for number in (quantity(column, "sum", centered=False), quantity(column, "var", products=True)):
            assert sum_of(reader, number) == plain_sum(number, cells)
            key = Column("g", "category", categories=("a", "b"))
            grouped = reader.grouped([number], [key], "test", products=True)
            for group in (0, 1):
                group_steps = [step for cell in cells[group::2] if (step := steps(number, cell)) is not None]
                assert grouped.rows[group] == len(group_steps)
                assert grouped.sums[0][group] == sum(group_steps)
                assert grouped.products[0, 0][group] == sum(step * step for step in group_steps)
        edges = (-2000.0, 0.0, 4.5, 5.0, 2000.0)
        assert reader.bins(column, edges).tolist() == plain_bins(column, edges, cells)
    column = Column("x", "integer", nulls, 1, 200)
    expected = Counter(200 if cell is None else max(cell, 1) - 1 for cell in cells)
    assert {cell: n for cell, n in enumerate(reader.table([column], "test").tolist()) if n} == expected
    some = Column("x", "integer", nulls, categories=(8, 5, 3))
    counts = [cells.count(8), cells.count(5), cells.count(3)] + [cells.count(None)] * nulls
    assert reader.table([some], "test").tolist() == counts
    assert reader.present(column) == len(cells) - cells.count(None)


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]", "object", "category"])
@pytest.mark.parametrize("nulls", [False, True])
def test_every_dtype_of_truth_values_reads_the_same(dtype, nulls):
    if nulls and dtype == "bool":
        return  # holds no nulls
    cells = [True, False, True, True] + [None] * nulls
    reader = engine(x=pd.Series(cells, dtype=object).astype(dtype))
    column = Column("x", "boolean", nulls)
    assert reader.table([column], "test").tolist() == [1, 3] + [1] * nulls
    assert (
        reader.table([Column("x", "boolean", nulls, categories=(True,))], "test").tolist()
        == [3] + [1] * nulls
    )
    number = quantity(column, "sum", centered=False)
    assert sum_of(reader, number)[0] == 4
    assert sum_of(reader, number)[1] * number.unit == 3
    share = indicator(column, "proportion", False, centered=False)
    assert sum_of(reader, share)[0] == 4
    assert sum_of(reader, share)[1] * share.unit == 1
    assert reader.bins(column, (0.0, 0.5, 1.0)).tolist() == [1, 3] + [1] * nulls


def arrow_strings(cells: list[str | None], kind: str) -> Any:
    types = {"large_string": pa.large_string(), "string": pa.string()}
    if kind == "dictionary":
        return pd.arrays.ArrowExtensionArray(pa.array(cells).dictionary_encode())
    if kind == "chunked":
        return pd.arrays.ArrowExtensionArray(pa.chunked_array([cells[:2], cells[2:3], [], cells[3:]]))
    return pd.arrays.ArrowExtensionArray(pa.array(cells, types[kind]))


LABELS: list[str | None] = ["b", "a", "b", "unseen", "c", "a", "b"]
STRINGS = {
    "object": lambda cells: pd.Series(cells, dtype=object),
    "str": lambda cells: pd.Series(cells, dtype="str" if pd.__version__ >= "3" else object),
    "string[python]": lambda cells: pd.Series(cells, dtype="string[python]"),
    "string[pyarrow]": lambda cells: pd.Series(cells, dtype="string[pyarrow]"),
    "arrow string": lambda cells: pd.Series(arrow_strings(cells, "string")),
    "arrow large_string": lambda cells: pd.Series(arrow_strings(cells, "large_string")),
    "arrow dictionary": lambda cells: pd.Series(arrow_strings(cells, "dictionary")),
    "arrow chunks": lambda cells: pd.Series(arrow_strings(cells, "chunked")),
    "category": lambda cells: pd.Series(cells, dtype="category"),
    "category in another order": lambda cells: pd.Series(
        pd.Categorical(cells, categories=["unseen", "c", "never", "b", "a"])
    ),
    "category with many unused labels": lambda cells: pd.Series(
        pd.Categorical(cells, categories=[*map(str, range(200)), "unseen", "b", "c", "a"])
    ),
}


@pytest.mark.full(keep=10)
@pytest.mark.parametrize("dtype", STRINGS)
@pytest.mark.parametrize("nulls", [False, True])
def test_every_dtype_of_strings_reads_the_same(dtype, nulls):
    cells = LABELS + [None, None] * nulls
    reader = engine(x=STRINGS[dtype](cells), y=np.arange(len(cells)))
    column = Column("x", "category", nulls, categories=("c", "a", "b"))
    assert reader.table([column], "test").tolist() == [1, 2, 3] + [2] * nulls  # the unseen label is nowhere
    assert reader.present(column) == len(LABELS)
    share = indicator(column, "proportion", "b", centered=False)
    assert sum_of(reader, share)[0] == 6
    assert sum_of(reader, share)[1] * share.unit == 3
    number = quantity(Column("y", "integer", lower=0, upper=20), "sum", centered=False)
    grouped = reader.grouped([number], [column], "test", products=False)
    assert grouped.rows == [1, 2, 3] + [2] * nulls
    assert [total * number.unit for total in grouped.sums[0]] == [4, 6, 8] + [15] * nulls
    with blocks_of(2):
        assert reader.table([column], "test").tolist() == [1, 2, 3] + [2] * nulls


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize(
    "dtype", ["object", "float64", "str", "string", "category", "Int64", "string[pyarrow]", "null[pyarrow]"]
)
def test_a_column_without_values_reads_as_nulls_whatever_its_dtype(dtype, rows):
    if dtype == "null[pyarrow]":
        values = pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(rows)))
    else:
        values = pd.Series([None] * rows, dtype=object).astype("object" if dtype == "str" else dtype)
    reader = engine(x=values)
    labels = Column("x", "category", nullable=True, categories=("a", "b"))
    assert reader.table([labels], "test").tolist() == [0, 0, rows]
    number = Column("x", "float", nullable=True, lower=0, upper=10)
    assert sum_of(reader, quantity(number, "sum")) == (0, 0)
    assert reader.bins(number, (0.0, 5.0, 10.0)).tolist() == [0, 0, rows]
    moments = reader.grouped([quantity(number, "var", products=True)], (), "test", products=True)
    assert (moments.rows, moments.sums, moments.products) == ([0], [[0]], {(0, 0): [0]})
    grouped = reader.grouped([quantity(number, "mean")], [labels], "test", products=True)
    assert (grouped.rows, grouped.sums, grouped.products) == ([0] * 3, [[0] * 3], {(0, 0): [0] * 3})


def test_labels_of_any_kind_are_told_apart():
    days = tuple(pd.Timestamp("2024-01-01") + pd.Timedelta(days=n) for n in range(3))
    dates = pd.Series([days[2], days[0], pd.NaT, days[2]])
    column = Column("x", "category", nullable=True, categories=days)
    assert engine(x=dates).table([column], "test").tolist() == [1, 0, 2, 1]
    tuples = pd.Series([(1, 2), (1,), (1, 2), [1, 2]], dtype=object)
    column = Column("x", "category", categories=((1,), (1, 2)))
    assert engine(x=tuples).table([column], "test").tolist() == [1, 2]
    column = Column("x", "float", nullable=True, categories=(0.1, 0.3))
    halves = pd.Series([0.1, 0.1 + 0.2, 0.3, None], dtype="Float64")
    assert engine(x=halves).table([column], "test").tolist() == [1, 1, 1]


JANUARY, MAY = datetime.date(2024, 1, 1), datetime.date(2024, 5, 1)
COMPANY = {
    "timestamps": (
        (pd.Timestamp(JANUARY), pd.Timestamp(MAY)),
        [pd.Timestamp(JANUARY), datetime.datetime(2024, 1, 1), np.datetime64(JANUARY), JANUARY, MAY],
    ),
    "dates": (
        (JANUARY, MAY),
        [JANUARY, MAY, pd.Timestamp(JANUARY), np.datetime64(JANUARY), np.datetime64("2024-01-01", "ns")],
    ),
    "spans": (
        (pd.Timedelta(days=1), pd.Timedelta(days=2)),
        [pd.Timedelta(days=1), datetime.timedelta(days=2), np.timedelta64(1, "D"), 1],
    ),
    "numbers": ((1, 2), [1, 1.0, True, np.int8(1), Decimal(2), np.float32(2), "1", 3, 2**63]),
    "strings": (("1", "x"), ["1", 1, np.str_("x"), b"x"]),
    "tuples": (((1,), (1, 2)), [(1,), (1, 2), (1, 2, 3), 1, [1, 2]]),
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("kind", COMPANY)
def test_the_cell_of_a_record_does_not_depend_on_the_records_around_it(kind):
    """Else one record could move all others: pandas infers what an array of objects is from all of them."""
    labels, cells = COMPANY[kind]
    column = Column("x", "category", nullable=True, categories=labels)

    def counted(*cells: Any) -> list[int]:
        values = np.empty(len(cells), dtype=object)
        values[:] = cells
        return engine(x=pd.Series(values, dtype=object)).table([column], "test").tolist()

    for cell in cells:
        for other in [*cells, "x", None, pd.NaT, pd.NA, NAN]:
            expected = [3 * a + b for a, b in zip(counted(cell), counted(other), strict=True)]
            assert counted(cell, cell, cell, other) == expected


def test_a_column_is_told_by_its_label_whatever_it_is():
    frame = pd.DataFrame({("a", 1): [1, 2], 0: [3, 4]}, index=[7, 7])
    for name, total in ((("a", 1), 3), (0, 7)):
        number = quantity(Column(name, "integer", lower=0, upper=9), "sum", centered=False)
        assert sum_of(PandasEngine(frame), number)[1] * number.unit == total


def test_integers_beyond_the_precision_of_a_double():
    low = 2**60
    column = Column("x", "integer", lower=low, upper=low + 9)
    reader = engine(x=np.array([low, low + 1, low + 9, low + 12, 5]))
    assert reader.table([column], "test").tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]


# ---------------------------------------------------------------- exactness


@pytest.mark.full
def test_sums_beyond_the_precision_of_a_double_are_exact():
    rows = 9_000_000
    values = np.full(rows, 255, dtype=np.uint8)
    values[0] = 254
    number = quantity(Column("x", "integer", lower=0, upper=255), "sum", centered=False)
    steps_per_unit = int(1 / number.unit)
    total = (rows * 255 - 1) * steps_per_unit
    assert total > 2**53
    assert sum_of(engine(x=values), number) == (rows, total)
    # the same with the least step on top, which a double of that size cannot hold
    finer = np.full(rows, 255.0)
    finer[-1] = 255 - number.grid
    assert sum_of(engine(x=finer), number) == (rows, rows * 255 * steps_per_unit - 1)


def test_products_are_exact_over_many_blocks():
    rows = 300_001
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, rows), rng.uniform(0, 1, rows)
    first = quantity(Column("x", "float", lower=-1, upper=1), "cov", products=True)
    second = quantity(Column("y", "float", lower=0, upper=1), "cov", products=True)
    a = [round(cell) for cell in ((x - first.center) / first.grid).tolist()]
    b = [round(cell) for cell in ((y - second.center) / second.grid).tolist()]
    expected = (sum(map(int.__mul__, a, a)), sum(map(int.__mul__, a, b)), sum(map(int.__mul__, b, b)))
    moments = engine(x=x, y=y).grouped([first, second], (), "test", products=True)
    assert (moments.rows, moments.sums) == ([rows], [[sum(a)], [sum(b)]])
    assert [moments.products[pair] for pair in ((0, 0), (0, 1), (1, 1))] == [[total] for total in expected]
    halves = np.arange(rows) % 2 == 1
    grouped = engine(x=x, y=y, g=halves).grouped(
        [first, second], [Column("g", "boolean")], "test", products=True
    )
    assert [sum(grouped.products[pair]) for pair in ((0, 0), (0, 1), (1, 1))] == list(expected)
    assert [sum(column) for column in grouped.sums] == [sum(a), sum(b)]


def test_products_are_read_of_numbers_of_few_steps_in_every_release(monkeypatch):
    """Products of a block stay below 2**53 steps for numbers of 2**17 steps; sums may have 2**30."""
    largest = {False: 0, True: 0}
    grouped = PandasEngine.grouped

    def noted(self, quantities, keys, method, *, products):
        largest[products] = max(largest[products], *(number.reach for number in quantities))
        return grouped(self, quantities, keys, method, products=products)

    monkeypatch.setattr(PandasEngine, "grouped", noted)
    private = pairs.protected("pandas", "add_remove", pairs.pair(1, "add_remove")[0])
    for name in (*oracle_cases.MOMENTS, *oracle_cases.GROUPS, *oracle_cases.WEIGHTED):
        with contextlib.suppress(PrivacyError):
            pairs.RELEASES[name](private.dp)
    assert 0 < largest[True] <= 1 << PRODUCT_BITS
    assert 1 << SUM_BITS - 1 <= largest[False] <= 1 << SUM_BITS
    block = pandas_engine.BLOCK
    assert block << 2 * PRODUCT_BITS <= 1 << 53
    assert block << SUM_BITS <= 1 << 53


@pytest.mark.parametrize("end", [-1.0, 1.0])
@pytest.mark.parametrize("products", [True, False])
def test_sums_per_group_are_exact_where_all_records_are_at_a_bound(end, products):
    """Blocks of records of one group, all at the bound: the largest sums that a block can have."""
    rows = 150_000
    number = quantity(Column("x", "float", lower=-1, upper=1), "cov", products=products)
    x, g = np.full(rows, end), np.zeros(rows, dtype=bool)
    x[1], g[2], x[3], g[rows - 1] = 0.0, True, np.nan, True
    moments = engine(x=x, g=g).grouped([number], [Column("g", "boolean")], "test", products=products)
    reach = int(end / number.grid)
    assert moments.rows == [rows - 3, 2]
    assert moments.sums == [[(rows - 4) * reach, 2 * reach]]
    squares = [[(rows - 4) * reach**2, 2 * reach**2]] if products else []
    assert list(moments.products.values()) == squares


# ---------------------------------------------------------------- order and blocks

CELLS = st.sampled_from([-3.0, 10.0, 3.5, 0.1, 1e-9, -INF, INF, 1e300, NAN, 9.999999999])
RECORDS = st.lists(
    st.tuples(
        CELLS,
        st.sampled_from([90.0, 97.0, 93.0, -5.0, 1e6, NAN]),
        st.sampled_from(["a", "b", "z", None]),
        st.sampled_from([True, False, None]),
        st.sampled_from([0.5, 1e9, -4.0, 5.0]),
    ),
    max_size=12,
)
X = Column("x", "float", nullable=True, lower=-3.0, upper=10.0)
Y = Column("y", "integer", nullable=True, lower=90, upper=97)
G = Column("g", "category", nullable=True, categories=("b", "a"))
H = Column("h", "boolean", nullable=True)
Z = Column("z", "float", lower=-2.0, upper=3.0, bins=(-50.0, 0.0, 2.5, 1000.0))
EDGES = {
    "within": (-1.0, 0.1, 3.5, 9.0),
    "beyond": (-7.0, 0.1, 3.5, 10.0, 20.0, 1e301),
    "even": tuple(np.linspace(-3, 10, 14).tolist()),
    "many": tuple(np.linspace(-5, 25, 121).tolist()),
}


def everything(frame: pd.DataFrame) -> list[Any]:
    """All that an engine tells about a frame."""
    reader = PandasEngine(frame)
    sums = [quantity(X, "sum", centered=False), quantity(Y, "mean"), indicator(G, "proportion", "a")]
    products = [quantity(X, "cov", products=True), quantity(Y, "cov", products=True)]
    return [
        reader.rows,
        [reader.present(column) for column in (X, Y, G, H)],
        [reader.table(list(columns), "test").tolist() for columns in ((G,), (H, G), (Y, G, H), (Z, G))],
        [reader.bins(X, edges).tolist() for edges in EDGES.values()],
        [reader.bins(Z, (-9.0, -2.0, 0.5, 2.99, 50.0)).tolist()],
        [sum_of(reader, number) for number in sums],
        reader.grouped(products, (), "test", products=True),
        reader.grouped(products, (), "test", products=False),
        reader.grouped(products, [G, H], "test", products=True),
        reader.grouped(sums[:1], [Z], "test", products=False),
    ]


def framed(records: list[tuple[Any, ...]]) -> pd.DataFrame:
    frame = pd.DataFrame(records, columns=["x", "y", "g", "h", "z"])
    return frame.astype({"x": "float64", "y": "float64", "g": object, "h": "boolean", "z": "float64"})


def columns_of(records: list[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    return tuple(zip(*records, strict=True)) if records else ((),) * 5  # type: ignore[return-value]


@pytest.mark.full
@given(records=RECORDS, data=st.data(), rows=st.sampled_from([1, 2, 3, 7]))
@example(records=[(1e300, 90.0, "a", True, 1e9), (NAN, 90.0, None, None, 0.5)], data=None, rows=1)
def test_neither_the_order_of_rows_nor_the_blocks_show(records, data, rows):
    whole = everything(framed(records))
    order = data.draw(st.permutations(range(len(records)))) if data else range(len(records))
    assert everything(framed([records[index] for index in order])) == whole
    with blocks_of(rows):
        assert everything(framed(records)) == whole


@given(records=RECORDS)
@example(records=[(1e300, 90.0, "a", True, 1e9), (NAN, 90.0, None, None, 0.5)])
@example(records=[(1e300, 90.0, "a", True, 1e9)])
def test_statistics_of_a_table_are_the_sum_over_its_records(records):
    """The part of a record in a sum depends on the record alone."""
    x, y, g, h, z = (list(column) for column in columns_of(records))
    answers = everything(framed(records))
    rows, present, tables, bins, of_z, sums, moments, alone, grouped, by_z = answers
    assert rows == len(records)
    assert present == [sum(not is_null(cell) for cell in column) for column in (x, y, g, h)]
    place_g = {"b": 0, "a": 1, None: 2}
    place_h = {False: 0, True: 1, None: 2}
    place_y = [8 if is_null(cell) else int(min(max(cell, 90), 97)) - 90 for cell in y]
    place_z = [bin_of(Z.bins, -2.0, 3.0, cell) for cell in z]

    def counted(shape: tuple[int, ...], *codes: Any) -> list[int]:
        cells = np.zeros(shape, dtype=int)
        for where in zip(*codes, strict=True):
            if None not in where:
                cells[where] += 1
        return cells.reshape(-1).tolist()

    gs, hs = [place_g.get(cell) for cell in g], [place_h[cell] for cell in h]
    assert tables[0] == counted((3,), gs)
    assert tables[1] == counted((3, 3), hs, gs)
    assert tables[2] == counted((9, 3, 3), place_y, gs, hs)
    assert tables[3] == counted((3, 3), place_z, gs)
    assert bins == [plain_bins(X, edges, x) for edges in EDGES.values()]
    assert of_z == [plain_bins(Z, (-9.0, -2.0, 0.5, 2.99, 50.0), z)]
    assert sums[0] == plain_sum(quantity(X, "sum", centered=False), x)
    assert sums[1] == plain_sum(quantity(Y, "mean"), y)
    known = [cell for cell in g if cell in ("a", "b")]
    assert sums[2] == plain_sum(
        indicator(G, "proportion", "a"), [1.0 if cell == "a" else 0.0 for cell in known]
    )
    first, second = quantity(X, "cov", products=True), quantity(Y, "cov", products=True)
    pairs = [(steps(first, a), steps(second, b)) for a, b in zip(x, y, strict=True)]
    complete = [pair for pair in pairs if None not in pair]
    assert moments.rows == alone.rows == [len(complete)]
    assert moments.sums == alone.sums == [[sum(a for a, _ in complete)], [sum(b for _, b in complete)]]
    assert moments.products[0, 1] == [sum(a * b for a, b in complete)]
    assert moments.products[1, 1] == [sum(b * b for _, b in complete)]
    assert alone.products == {}
    for group in range(9):
        members = [
            pair
            for pair, g_code, h_code in zip(pairs, gs, hs, strict=True)
            if None not in pair and g_code is not None and 3 * g_code + h_code == group
        ]
        assert grouped.rows[group] == len(members)
        assert grouped.sums[1][group] == sum(b for _, b in members)
        assert grouped.products[0, 1][group] == sum(a * b for a, b in members)
    number = quantity(X, "sum", centered=False)
    for group in range(3):
        members = [cell for cell, where in zip(x, place_z, strict=True) if where == group]
        assert (by_z.rows[group], by_z.sums[0][group]) == plain_sum(number, members)


@pytest.mark.parametrize("dtype", ["float64", "Float64", "double[pyarrow]"])
def test_a_record_that_is_left_out_of_a_sum_is_left_out_of_the_count(dtype):
    column = Column("x", "float", True, 0, 9)
    values = pd.Series([0.0, 1.0, 2.0], dtype=dtype)
    frame = pd.DataFrame({"x": (values / values).astype(dtype)})  # 0 / 0, a NaN that is no null to some
    assert PandasEngine(frame).present(column) == sum_of(PandasEngine(frame), quantity(column, "sum"))[0] == 2


FAR = [2**53 + 1, 2**62 + 5, 10**18 + 100, -(2**60) - 3, 2**63 + 1, -(2**63), 2**63 - 70]


@pytest.mark.full(keep=21)
@pytest.mark.parametrize("lower", FAR)
@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "uint64", "UInt64", "float64", "object", "int64[pyarrow]"]
)
def test_integers_beyond_the_doubles_have_the_cell_of_their_own(dtype, lower):
    upper = lower + 63
    column = Column("c", "integer", True, lower, upper)
    cells = [lower - 9, lower, lower + 1, lower + 5, lower + 5, upper - 1, upper, upper + 300]
    if "int" in dtype.lower():
        least, most = (0, 2**64) if dtype.lower().startswith("u") else (-(2**63), 2**63)
        cells = [cell for cell in cells if least <= cell < most]
    values: Any = np.array([*cells, None], dtype=object)
    if dtype in ("int64", "uint64", "float64"):
        values = np.array(cells, dtype=dtype)
    elif dtype != "object":
        values = pd.array(cells, dtype=dtype)
    if dtype == "float64":
        cells = [int(float(cell)) for cell in cells]
    expected = np.zeros(65, dtype=np.int64)
    for cell in cells:
        expected[min(max(cell, lower), upper) - lower] += 1
    expected[64] = int(dtype == "object")
    frame = pd.DataFrame({"c": values})
    assert PandasEngine(frame).table([column], "value_counts").tolist() == expected.tolist()
    assert PandasEngine(frame.iloc[:0]).table([column], "value_counts").tolist() == [0] * 65


@pytest.mark.parametrize("spread", [0, 1, 5000, 4096 * 900, 4096 * 3000])
def test_steps_are_counted_in_groups_as_sorting_counts_them(spread):
    """Also at both ends of the steps, and with too many groups."""
    g = np.random.default_rng(spread)
    groups = 20_000
    steps = (4096 * 7000 - 3 + g.integers(0, spread + 1, 30_000)).astype(np.uint32)
    steps[:4] = 0, 4096 * groups - 1, 4095, 4096
    expected = np.unique(steps, return_counts=True)
    counted = pandas_engine.count_in_groups(steps, groups)
    if spread == 4096 * 3000:
        assert counted is None
        return
    assert counted is not None
    for part, other in zip(counted, expected, strict=True):
        assert part.dtype == np.int64
        assert part.tolist() == other.tolist()
