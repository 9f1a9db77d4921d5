"""Conditions and steps mean the same for every dtype and on every engine, within what is declared."""

from __future__ import annotations

import functools
import warnings
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.core import rows as expressions
from pdprivacy.core.conform import conform
from pdprivacy.core.gate.records import records_of as opened
from pdprivacy.errors import PrivacyError
from pdprivacy.frames import find
from tests.support.cells import STR
from tests.support.engine_frames import each_engine, frame_of, installed
from tests.support.nullable import by_operators, truths

NULLABLE = Domain(
    (
        Column("n", "integer", nullable=True, lower=0, upper=9),
        Column("m", "integer", lower=-3, upper=3),
        Column("x", "float", nullable=True, lower=-2, upper=2),
        Column("g", "category", nullable=True, categories=("a", "b", "c")),
        Column("t", "category", nullable=True),
        Column("b", "boolean", nullable=True),
        Column("row", "integer", lower=0, upper=999),
    )
)
DTYPES = {
    "n": ["Int64", "float64", "int8[pyarrow]", "object", "Float32", "UInt64", "float32", "decimals"],
    "m": ["int64", "Int8", "object", "int32", "int16[pyarrow]", "uint8", "float16", "float64"],
    "x": ["float64", "Float64", "double[pyarrow]", "object", "float64", "float32", "Float32", "decimals"],
    "g": [STR, "string", "string[pyarrow]", "category", "object", STR, "category", "object"],
    "t": ["string[pyarrow]", "category", "object", STR, "string", "object", STR, "category"],
    "b": ["boolean", "object", "bool[pyarrow]", "boolean", "object", "boolean", "object", "bool[pyarrow]"],
    "row": ["int64"] * 8,
}
"""The dtype of each column in each of eight frames."""
KLEENE = {"n": "Int64", "m": "Int64", "x": "Float64", "g": "string", "t": "string", "b": "boolean"}
ARROW = {"n": "int32", "m": "int64", "x": "double", "g": "string", "t": "string", "b": "bool"}
ROWS = 40
BATCHES, SIZE = 10, 50


def column(cells: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == "decimals":
        return pd.Series([None if cell is None else Decimal(str(cell)) for cell in cells], dtype="object")
    if dtype == "category":
        return pd.Series(pd.Categorical(cells, categories=list({cell for cell in cells if cell is not None})))
    values: Any = [abs(cell) for cell in cells] if dtype == "uint8" else cells
    return pd.Series(values, dtype="object").astype(dtype)


@functools.cache
def cells_of(name: str) -> list[Any]:
    random = Random(name)
    choices = {
        "n": [0, 1, 2, 3, 5, 9, None],
        "m": [-3, 0, 1, 2, 3],
        "x": [-2.0, -0.1, 0.0, 0.1, 0.3, 0.7, 1.0, 2.0, None, None],
        "g": ["a", "b", "c", None],
        "t": ["u", "v", None],
        "b": [True, False, None],
    }
    return list(range(ROWS)) if name == "row" else [random.choice(choices[name]) for _ in range(ROWS)]


def frame_of_dtypes(position: int) -> pd.DataFrame:
    return pd.DataFrame({name: column(cells_of(name), dtypes[position]) for name, dtypes in DTYPES.items()})


def as_nullable(frame: pd.DataFrame) -> pd.DataFrame:
    """The same records in nullable dtypes of pandas, every number that is not whole as the nearest double."""

    def cells(name: str) -> list[Any]:
        listed = [None if pd.isna(cell) else cell for cell in frame[name].astype(object)]
        return [cell if cell is None or name != "x" else float(cell) for cell in listed]

    return pd.DataFrame({name: pd.array(cells(name), dtype=dtype) for name, dtype in KLEENE.items()})


def leaf(random: Random) -> str:
    name = random.choice("nmxgtb")
    numbers = ["0", "1", "2", "3", "9", "12", "-1", "2.5", "0.1", "0.3", "1.0"]
    constants = {"g": ["'a'", "'b'", "'c'"], "t": ["'u'", "'v'", "'z'"], "b": ["True", "False"]}.get(
        name, numbers
    )
    shape = random.randrange(6)
    if shape == 0:
        return f"{name}.{random.choice(['isna', 'notna', 'isnull'])}()"
    if shape == 1:
        listed = random.choices(constants, k=random.choice([1, 2, 12]))
        return f"{name} {random.choice(['in', 'not in', '==', '!='])} [{', '.join(listed)}]"
    if name == "b" and shape == 2:
        return "b"
    if name in "nmx" and shape in (2, 3):
        sign = random.choice(["<", "<=", ">", ">="])
        if shape == 2:
            least, most = random.choices(numbers, k=2)
            return f"{least} {random.choice(['<', '<='])} {name} {sign} {most}"
        return random.choice(
            [f"{name} {sign} {random.choice(numbers)}", f"n {sign} x + 1", f"m + n {sign} 3"]
        )
    return f"{name} {random.choice(['==', '!='])} {random.choice(constants)}"


def condition(random: Random, depth: int = 3) -> str:
    if depth == 0 or random.random() < 0.25:
        return leaf(random)
    first = condition(random, depth - 1)
    if random.random() < 0.4:
        return f"{random.choice(['not ', '~'])}({first})"
    return f"({first}) {random.choice(['and', 'or', '&', '|'])} ({condition(random, depth - 1)})"


@functools.cache
def conditions(batch: int) -> dict[str, str]:
    random = Random(batch)
    return {f"c{number}": condition(random) for number in range(SIZE)}


def outcome(step: Any, private: Any) -> Any:
    try:
        return step(private)
    except PrivacyError as error:
        return error


@functools.cache
def query_of(domain: Domain, text: str) -> Any:
    """A filter, which is the same for all dtypes of one declaration, or its refusal."""
    return outcome(lambda domain: expressions.query(domain, text), domain)


@functools.cache
def expected_truths(position: int, batch: int) -> dict[str, list[bool | None]]:
    nullable = as_nullable(frame_of_dtypes(position))
    return {name: truths(by_operators(text, nullable)) for name, text in conditions(batch).items()}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("position", range(8))
@pytest.mark.parametrize("batch", range(BATCHES))
def test_conditions_are_those_of_the_nullable_dtypes_of_pandas(position, batch):
    """Also the records that a filter keeps; all of them are as declared."""
    frame, expected = frame_of_dtypes(position), expected_truths(position, batch)
    domain = (
        NULLABLE
        if DTYPES["m"][position] != "uint8"
        else NULLABLE.replace(Column("m", "integer", lower=0, upper=3))
    )
    step = expressions.assign(domain, conditions(batch))
    result = step.apply(frame)
    conform(result, step.domain, on_invalid="raise")
    for name, text in conditions(batch).items():
        assert truths(result[name]) == expected[name], text
        met = [truth is True for truth in expected[name]]
        query = query_of(domain, text)
        if isinstance(query, PrivacyError):
            assert "no declared record can meet" in str(query)
            assert not any(met), text
            continue
        kept = query.apply(frame)
        assert kept.index.tolist() == frame.index[met].tolist(), text
        conform(kept, query.domain, on_invalid="raise")


def protect(frame: Any, domain: Domain) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pdprivacy.protect(frame, domain, epsilon=1000)


def records_of(private: Any) -> pd.DataFrame:
    """The cells behind a protected frame, in the order of their numbers."""
    records = opened(find(private)).cells
    pieces = [records] if isinstance(records, pd.DataFrame) else records.each("a test", lambda piece: piece)
    frame = pd.concat([piece.astype(object) for piece in pieces])
    return frame.sort_values("row", kind="stable").reset_index(drop=True)


ENGINES = ["Polars", "lazy Polars", "DuckDB", "Dask", "Dask of NumPy", "PyArrow", "Spark"]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("engine", each_engine(ENGINES))
@pytest.mark.parametrize("batch", range(BATCHES))
def test_conditions_are_those_of_the_nullable_dtypes_of_pandas_on_every_engine(engine, batch, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    pa = installed("pyarrow", "PyArrow")
    kinds = {
        name: getattr(pa, kind.replace("double", "float64").replace("bool", "bool_"))()
        for name, kind in ARROW.items()
    }
    table = pa.table({name: pa.array(cells_of(name), kinds.get(name, pa.int64())) for name in DTYPES})
    private = protect(frame_of(engine, table), NULLABLE)
    records = records_of(private.assign(**conditions(batch)))
    expected = expected_truths(0, batch)
    for name, text in conditions(batch).items():
        assert truths(records[name]) == expected[name], text
    possible = [name for name in expected if True in expected[name]]
    for name in possible[:3]:
        kept = records_of(private.query(conditions(batch)[name]))["row"].tolist()
        assert kept == [row for row, truth in enumerate(expected[name]) if truth is True]


# ------------------------------------------------------------------ numbers that are no doubles

ODD = Domain(
    (
        Column("price", "float", nullable=True, lower=-1, upper=0.7),
        Column("score", "float", nullable=True, categories=(0.1, 0.3, 0.5, -0.7)),
        Column("weight", "float", lower=-1, upper=1),
        Column("rooms", "integer", nullable=True, lower=0, upper=5),
        Column("row", "integer", lower=0, upper=999),
    )
)
TENTHS = [position / 10 for position in range(-10, 8)]


def odd_table(random: Random) -> Any:
    """Decimals, single precision, and whole numbers as decimals, near and at what is declared."""
    pa = installed("pyarrow", "PyArrow")
    scale, wide = random.choice([(1, 5), (2, 12), (17, 38)]), 12
    prices = [random.choice([*TENTHS, None]) for _ in range(wide)]
    scores = [random.choice([0.1, 0.3, 0.5, -0.7, None]) for _ in range(wide)]
    decimals = pa.decimal128(scale[1], scale[0])
    exact = decimals if random.random() < 0.7 else pa.float64()

    def numbers(cells: list[Any]) -> Any:
        if exact == pa.float64():
            return pa.array(cells, exact)
        return pa.array([None if cell is None else Decimal(str(cell)) for cell in cells], exact)

    weights = np.array([random.choice(TENTHS) for _ in range(wide)], dtype=np.float32)
    rooms = [random.choice([0, 1, 2, 5, None]) for _ in range(wide)]
    kind = random.choice([pa.int8(), pa.float32(), pa.decimal128(3, 0)])
    whole = [None if cell is None else Decimal(cell) for cell in rooms] if str(kind)[0] == "d" else rooms
    return pa.table(
        {
            "price": numbers(prices),
            "score": numbers(scores),
            "weight": pa.array(weights, pa.float32()),
            "rooms": pa.array(whole, kind),
            "row": pa.array(range(wide), pa.int64()),
        }
    )


def odd_step(random: Random) -> Any:
    """A step on such numbers, as a function of a protected frame."""
    name = random.choice(["price", "score", "weight", "rooms"])
    first, second = sorted(random.sample([*TENTHS, 0.25, 1, 2], 2))
    sign = random.choice(["<", "<=", ">", ">=", "==", "!="])
    listed = random.sample([*TENTHS, 1, 2, 5], random.choice([1, 3, 12]))
    met = random.choice([
        f"{name} {sign} {first}", f"{first} <= {name} < {second}", f"{name} in {listed}",
        f"not {name} {sign} {first}", f"{name} {sign} {random.choice(['price', 'weight', 'score'])}",
        f"{name} + price {sign} {first}",
    ])  # fmt: skip
    sums = random.choice(
        ["price + weight", "price * 2", "-score", "abs(weight)", "price // 0.1", "score - price"]
    )
    recoded = random.choice(
        [{0.1: 0.2}, {0.1: None, 0.3: 0.1}, {0.5: "half"}, {-0.7: 1, 0.1: 2, 0.3: 3, 0.5: 4}]
    )
    return random.choice([
        lambda private: private.query(met),
        lambda private: private.assign(met=met),
        lambda private: private.assign(new=sums),
        lambda private: private.assign(new=private[name].clip(first, second)),
        lambda private: private[private[name].between(first, second)],
        lambda private: private[~private[name].isin(listed)],
        lambda private: private.clip(first, second, columns=[name]),
        lambda private: private.cut(name, sorted({-1, first, second, 5}), right=sign != "<"),
        lambda private: private.recode("score", recoded),
        lambda private: private.fillna({name: first}),
        lambda private: private.dropna(subset=[name]),
    ])  # fmt: skip


def read_cells(private: Any) -> dict[Any, list[Any]]:
    """The cells as they are read: numbers as doubles, everything else as it is."""
    frame, domain = records_of(private), private.dp.domain
    cells = {}
    for declared in domain.columns:
        listed = [None if pd.isna(cell) else cell for cell in frame[declared.name]]
        number = {"float": float, "integer": int, "boolean": bool}.get(declared.kind, lambda cell: cell)
        cells[declared.name] = [None if cell is None else number(cell) for cell in listed]
    return cells


def check_declared(cells: dict[Any, list[Any]], domain: Domain) -> None:
    for declared in domain.columns:
        for cell in cells[declared.name]:
            if cell is None:
                assert declared.nullable, declared
            else:
                assert declared.categories is None or cell in declared.categories, (declared, cell)
                assert declared.kind == "category" or cell in declared.interval, (declared, cell)


def check_chain(seed: int, engines: list[str]) -> None:
    random = Random(seed)
    table = odd_table(random)
    frames = {engine: protect(frame_of(engine, table), ODD) for engine in ["pandas", *engines]}
    for _ in range(random.randint(1, 4)):
        step = odd_step(random)
        results = {engine: outcome(step, private) for engine, private in frames.items()}
        if isinstance(results["pandas"], PrivacyError):
            assert all(str(result) == str(results["pandas"]) for result in results.values())
            continue
        if any("several types" in str(result) for result in results.values()):  # which pandas alone holds
            continue
        frames = results
        cells = {engine: read_cells(private) for engine, private in frames.items()}
        for engine, private in frames.items():
            assert private.dp.domain == frames["pandas"].dp.domain
            check_declared(cells[engine], private.dp.domain)
            assert cells[engine] == cells["pandas"], (engine, private.dp.lineage)


@pytest.mark.parametrize(
    "turn", [pytest.param(turn, marks=pytest.mark.full) if turn else turn for turn in range(20)]
)
def test_steps_of_numbers_that_are_no_doubles_stay_within_what_is_declared(turn):
    for seed in range(10 * turn, 10 * (turn + 1)):
        check_chain(seed, ["pandas of Arrow"])


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("engine", each_engine(ENGINES))
@pytest.mark.parametrize("turn", range(8))
def test_steps_of_numbers_that_are_no_doubles_are_alike_on_every_engine(engine, turn, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    check_chain(1000 + turn, [engine])
