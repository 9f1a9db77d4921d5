"""Hard frames: tables with the cells and types at which engines and pandas may differ.

``READ``: tables with the columns that an engine reads of them. ``RANKED``: a column of numbers with what is
declared of it. ``RELEASED``: tables that meet ``DOMAIN``; ``FAULTY``: tables that do not.
"""

from __future__ import annotations

import datetime
import zoneinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Column, Domain

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")

NAN, INF = float("nan"), float("inf")
JANUARY, MAY = datetime.date(2024, 1, 1), datetime.date(2024, 5, 1)
BERLIN = datetime.datetime(2024, 1, 1, 13, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
NOON, NIGHT = datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 1, 0, 0, 0, 1)


def plain(**columns: Any) -> pa.Table:
    """Return a table of these columns."""
    return pa.table(columns)


# ---------------------------------------------------------------- tables and the columns that are read

NUMBER = Column("x", "float", True, lower=-3.0, upper=10.0)
PLACED = Column("x", "float", True, lower=-3.0, upper=10.0, bins=(-50.0, 0.0, 2.5, 1000.0))
TENTHS = Column("x", "float", lower=-1.0, upper=1.5, bins=tuple(number / 10 for number in range(-10, 16)))
LETTER = Column("g", "category", True, categories=("b", "a"))
LETTERS = Column("g", "category", categories=("b", "a"))
RANGE = Column("n", "integer", True, lower=1, upper=9)
SOME = Column("n", "integer", categories=(8, 5, 3))
TRUTH = Column("h", "boolean", True)

FLOATS = pa.array([1.0, 3.5, None, NAN, INF, -INF, 0.3, 0.1 + 0.2, -0.0, 9.999999999, 1e300, 5e-324])
TEXTS = pa.array(["a", "b", None, "a", "B", "unseen", "", "b", "a\0", "a", "b", "ab"])
TRUTHS = pa.array([True, None, False] * 4)
WHOLES = [3, 0, 9, None, 5, -128, 127, 8, 5, 1, None, 2]


def everyday(rows: int) -> pa.Table:
    return plain(x=FLOATS, g=TEXTS, n=pa.array(WHOLES, pa.int64()), h=TRUTHS).slice(0, rows)


def wholes(kind: Any) -> pa.Table:
    low = 0 if str(kind).startswith("u") else -128
    cells = [cell if cell is None else max(cell, low) for cell in WHOLES]
    return plain(n=pa.array(cells, kind), g=TEXTS)


BASICS = [NUMBER, LETTER, RANGE, TRUTH]
LARGE = Column("n", "integer", True, lower=2**60, upper=2**60 + 9)
READ: dict[str, tuple[pa.Table, list[Column]]] = {
    "empty": (everyday(0), BASICS),
    "one row": (everyday(1), BASICS),
    "nulls, NaN, infinities, -0.0, subnormals": (everyday(12), BASICS),
    "bins and labels without nulls": (everyday(12), [PLACED, LETTERS, SOME, TRUTH]),
    "even bins that are no whole numbers": (
        plain(x=pa.array([number / 10 for number in range(-20, 20)]), g=pa.array(["a", "c"] * 20)),
        [TENTHS, LETTER],
    ),
    "one value": (everyday(12), [Column("x", "float", True, lower=5.0, upper=5.0), LETTER]),
    "a centre that is subtracted before": (
        plain(x=pa.array([1e9, 1e9 + 1e-3, 1e9 + 5e-4, 0.0]), g=pa.array(list("abab"))),
        [Column("x", "float", lower=1e9, upper=1e9 + 1e-3), LETTER],
    ),
    "all null": (
        plain(x=pa.nulls(3, pa.float64()), g=pa.nulls(3, pa.string()), n=pa.nulls(3, pa.int64())),
        [NUMBER, LETTER, RANGE],
    ),
    "nulls without a type": (plain(x=pa.nulls(3), g=pa.nulls(3)), [NUMBER, LETTER]),
    "integers of 8 bits": (wholes(pa.int8()), [RANGE, LETTER]),
    "naturals of 8 bits": (wholes(pa.uint8()), [RANGE, LETTER]),
    "integers of 8 bits, bounds beyond them": (
        wholes(pa.int8()),
        [Column("n", "integer", True, lower=-1000, upper=900, bins=(-1000, 0, 3, 900)), LETTER],
    ),
    "integers in a float column": (
        wholes(pa.int32()),
        [Column("n", "float", True, lower=0.5, upper=4.5), LETTER],
    ),
    "floats in an integer column": (
        plain(n=pa.array([0.5, 1.999, 8.0, NAN, None, 1e300, -INF, 9.5]), g=pa.array(list("abcdabcd"))),
        [RANGE, LETTER],
    ),
    "floats in an integer column, by label": (
        plain(n=pa.array([5.0, 5.5, 8.0, NAN, None, 3.0]), x=pa.array([1.0] * 6)),
        [NUMBER, SOME],
    ),
    "floats of 32 bits": (
        plain(x=pa.array([0.1, 10.1, None, 9.9999, -3.1], pa.float32()), g=pa.array(list("abaab"))),
        [NUMBER, LETTER, Column("x", "float", lower=-0.1, upper=0.1)],
    ),
    "integers of 2**53": (
        plain(
            n=pa.array([2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, -(2**63), None, 4], pa.int64()),
            g=pa.array(["a", "b"] * 4),
        ),
        [Column("n", "integer", True, lower=-(2**53), upper=2**53, categories=(2**53, 4, -(2**53))), LETTER],
    ),
    "integers of 2**60": (
        plain(
            n=pa.array([2**60, 2**60 + 1, 2**60 + 9, 2**60 + 12, 5], pa.int64()),
            g=pa.array(list("ababa")),
        ),
        [LARGE, LETTER],
    ),
    "naturals of 2**64": (
        plain(n=pa.array([0, 2**64 - 1, 2**63, None, 7], pa.uint64()), g=pa.array(list("ababa"))),
        [RANGE, LETTER],
    ),
    "decimals": (
        plain(
            x=pa.array(
                [Decimal("0.1"), Decimal("9.99"), None, Decimal("-70.5"), Decimal(2)], pa.decimal128(9, 2)
            ),
            g=pa.array(list("ababa")),
        ),
        [PLACED, LETTER],
    ),
    "dates": (
        plain(d=pa.array([JANUARY, MAY, None, datetime.date(2023, 1, 1), MAY]), x=pa.array([1.0] * 5)),
        [NUMBER, Column("d", "category", True, categories=(MAY, JANUARY))],
    ),
    "times": (
        plain(t=pa.array([NOON, NIGHT, None, NOON, datetime.datetime(2024, 1, 1)]), x=pa.array([1.0] * 5)),
        [NUMBER, Column("t", "category", True, categories=(pd.Timestamp(NIGHT), NOON))],
    ),
    "labels of another type": (
        everyday(12),
        [
            NUMBER,
            Column("g", "category", True, categories=(1, 2)),
            Column("n", "category", True, categories=("3",)),
        ],
    ),
    "numbers as labels": (
        everyday(12),
        [
            NUMBER,
            Column("n", "category", True, categories=(9, 5.0, 0.5)),
            Column("h", "category", categories=(1, 0)),
        ],
    ),
    "booleans as numbers": (everyday(12), [NUMBER, TRUTH, Column("h", "integer", True, lower=0, upper=1)]),
    "dictionaries": (
        plain(g=TEXTS.dictionary_encode(), x=FLOATS, h=TRUTHS),
        [NUMBER, LETTER, TRUTH],
    ),
    "dictionaries without nulls": (plain(g=TEXTS.dictionary_encode(), x=FLOATS), [PLACED, LETTERS]),
    "zeros of both signs among many labels": (
        plain(x=pa.array([0.0, -0.0, 1.0, 30.0, None, NAN, -1.0]), g=pa.array(list("abababa"))),
        [Column("x", "float", True, lower=-1, upper=30, categories=tuple(map(float, range(25)))), LETTER],
    ),
    "instants": (
        plain(
            t=pa.array([NOON, NIGHT, None, NOON, datetime.datetime(2024, 1, 1)], pa.timestamp("us", "UTC")),
            x=pa.array([1.0] * 5),
        ),
        [NUMBER, Column("t", "category", True, categories=(pd.Timestamp(NIGHT, tz="UTC"), BERLIN, NOON))],
    ),
    "chunks": (pa.concat_tables([everyday(5), everyday(0), everyday(12)]), BASICS),
}


# ---------------------------------------------------------------- numbers in order


def numbers(cells: Any, kind: Any = None) -> pa.Table:
    return pa.table({"x": pa.array(cells, kind)})


def of_float(lower: float, upper: float) -> Column:
    return Column("x", "float", True, lower=lower, upper=upper)


def of_integer(lower: int, upper: int) -> Column:
    return Column("x", "integer", True, lower=lower, upper=upper)


MESS = [1.0, None, 3.5, NAN, INF, -INF, 0.1, 0.1 + 0.2, -0.0, 0.0, 10.0, 1e300, -7.0, 5e-324, 3.5, None]
RNG = np.random.default_rng(3)
INCOMES = np.append(RNG.lognormal(1, 0.7, 3000), [2.5] * 500).round(9)
RANKED: dict[str, tuple[pa.Table, Column]] = {
    "empty": (numbers([], pa.float64()), of_float(0.0, 10.0)),
    "one row": (numbers([4.0]), of_float(0.0, 10.0)),
    "one null": (numbers([None], pa.float64()), of_float(0.0, 10.0)),
    "only NaN": (numbers([NAN, NAN]), of_float(0.0, 10.0)),
    "nulls, NaN, infinities, out of range, -0.0, subnormals": (numbers(MESS), of_float(-1.0, 10.0)),
    "one value declared": (numbers(MESS), of_float(5.0, 5.0)),
    "all the same": (numbers([2.5] * 300), of_float(0.0, 10.0)),
    "all below the bounds": (numbers([-2.5] * 300), of_float(0.0, 10.0)),
    "few values, many records": (numbers(RNG.choice([0.1, 0.2, 9.0], 3000)), of_float(0.0, 10.0)),
    "continuous, with one frequent value": (numbers(INCOMES), of_float(0.0, 100.0)),
    "all in one bin": (numbers(INCOMES), of_float(-1e7, 1e7)),
    "as wide as a grid may be": (numbers(INCOMES), of_float(0.0, 127.99999999)),
    "a centre that is subtracted before": (
        numbers([1e9, 1e9 + 1e-3, 1e9 + 5e-4, 0.0, None]),
        of_float(1e9, 1e9 + 1e-3),
    ),
    "tiny numbers": (numbers([1e-80, 3e-80, 2e-80, 0.0, 1.0]), of_float(0.0, 3e-80)),
    "huge numbers": (numbers([1e80, 3e80, -2e80, 0.0, 1e300]), of_float(-3e80, 3e80)),
    "floats of 32 bits": (numbers([0.1, 10.1, None, 9.9999, -3.1], pa.float32()), of_float(-0.1, 9.99)),
    "decimals": (numbers([Decimal("0.1"), None, Decimal("7.25")], pa.decimal128(9, 2)), of_float(0.0, 9.0)),
    "integers": (numbers([3, 0, None, 9, -128, 127, 3], pa.int8()), of_integer(1, 9)),
    "naturals": (numbers([3, 0, None, 2**64 - 1, 2**63], pa.uint64()), of_integer(0, 10**6)),
    "integers over many bins": (numbers(RNG.integers(-5000, 10**6, 3000)), of_integer(0, 10**6)),
    "integers of 2**60": (
        numbers([2**60, 2**60 + 1, None, 2**60 + 12, 5, 2**63 - 1]),
        of_integer(2**60, 2**60 + 2**40),
    ),
    "truth values": (numbers([True, None, False, True]), Column("x", "boolean", True)),
    "chunks": (pa.concat_tables([numbers(MESS), numbers([], pa.float64()), numbers(MESS)]), of_float(-3, 3)),
}


# ---------------------------------------------------------------- tables of one declaration

X = Column("x", "float", True, lower=-3.0, upper=10.0)
Y = Column("y", "float", lower=-1.0, upper=1.5, bins=(-1.0, 0.0, 0.3, 1.5))
N = Column("n", "integer", True, lower=1, upper=9)
G = Column("g", "category", True, categories=("b", "a"))
K = Column("k", "category", categories=("u", "v", "w"), role="quasi_identifier")
H = Column("h", "boolean", True)
S = Column("s", "category", categories=("no", "yes"), role="sensitive")
DOMAIN = Domain((X, Y, N, G, K, H, S))


def table_of(rows: int = 24, **columns: Any) -> Any:
    """A frame that meets the declaration, with these columns in the place of its own."""
    rng = np.random.default_rng(5)
    defaults = {
        "x": pa.array(rng.uniform(-3, 10, rows)),
        "y": pa.array(rng.uniform(-1, 1.5, rows)),
        "n": pa.array(rng.integers(1, 10, rows)),
        "g": pa.array(rng.choice(["a", "b"], rows).tolist(), pa.string()),
        "k": pa.array(rng.choice(["u", "v", "w"], rows).tolist(), pa.string()),
        "h": pa.array(rng.random(rows) < 0.5),
        "s": pa.array(rng.choice(["no", "yes"], rows).tolist(), pa.string()),
    }
    return pa.table({**defaults, **columns})


def cells(values: list[Any], kind: Any = None, rows: int = 24) -> Any:
    return pa.array((values * rows)[:rows], kind)


def decimals(values: list[str | None]) -> Any:
    return cells([value and Decimal(value) for value in values], pa.decimal128(12, 2))


WILD = [1.0, 3.5, None, NAN, INF, -INF, 0.3, 0.1 + 0.2, -0.0, 9.999999999, 1e300, 5e-324]
RELEASED = {
    "empty": table_of(0),
    "one row": table_of(1),
    "all null": table_of(
        3,
        x=pa.nulls(3, pa.float64()),
        n=pa.nulls(3, pa.int64()),
        g=pa.nulls(3, pa.string()),
        h=pa.nulls(3, pa.bool_()),
    ),
    "nulls, NaN, -0.0, subnormals": table_of(
        x=cells([1.0, None, NAN, -0.0, 5e-324, 9.99]),
        n=cells([1, None, 9, 4]),
        g=cells(["a", None, "b"]),
        h=cells([True, None, False]),
    ),
    "decimals, small types, dictionaries": table_of(
        x=decimals(["1.00", "3.50", None, "-3.00", "9.99"]),
        y=cells([0.1, 1.25], pa.float32()),
        n=cells([1, None, 9, 4], pa.int8()),
        g=cells(["a", None, "b"]).dictionary_encode(),
        k=cells(["u", "v"], pa.large_string()).dictionary_encode(),
    ),
    "chunks": pa.concat_tables([table_of(5), table_of(0), table_of(9)]),
}
FAULTY = {
    "infinities, unseen labels, out of range": table_of(
        x=cells(WILD),
        y=cells([0.0, NAN, -1.0, 1.5, 2.0, 0.3]),
        n=cells([3, 0, 9, None, 5, -128, 127, 8]),
        g=cells(["a", "b", None, "B", "unseen", "", "a\0"]),
        k=cells(["u", None, "v", "w"]),
    ),
    "out of range": table_of(x=cells(WILD), n=cells([1, 2**62, -(2**63), 2**63 - 1], pa.int64())),
    "naturals of 64 bits": table_of(
        n=cells([1, 2**64 - 1, None, 0, 9], pa.uint64()), x=cells([2], pa.int16())
    ),
    "floats as integers": table_of(n=cells([1.0, 2.5, NAN, None, 9.0, 10.0, INF])),
    "decimals out of range": table_of(
        y=decimals(["0.10", "-0.20", "1.50", "1.51"]), n=decimals(["1", "2", "9", "12"])
    ),
    "numbers as labels": table_of(g=cells([1, 2])),
    "truth values as numbers": table_of(x=cells([True, False])),
    "numbers as truth values": table_of(h=cells([0, 1, None])),
}
