"""One person moves the exact integers before noise by no more than the stated sensitivity.

A seeded search over types of names, engines, releases and both kinds of neighbours. The person has up to
twelve records, scattered over the frame. All records of any other person are alike, so that it makes no
difference which of them are kept: what moves an exact integer is this person alone.
"""

from __future__ import annotations

import datetime as dt
import random
import warnings
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, errors
from tests.support.engine_frames import ON_NEWEST_PANDAS, frame_of
from tests.support.recorder import recording

pa = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")

NIGHT = dt.datetime(2024, 11, 3, 4, 30, tzinfo=dt.UTC)
DOMAIN = Domain(
    (
        Column("x", "float", True, lower=-3.0, upper=10.0),
        Column("n", "integer", True, lower=-9, upper=9),
        Column("g", "category", True, categories=("a", "b")),
        Column("h", "boolean", True),
    )
)
CELLS: dict[str, tuple[Any, list[Any]]] = {
    "x": (pa.float64(), [-3.0, 10.0, 0.0, -0.0, None, float("nan"), 2.5]),
    "n": (pa.int64(), [-9, 9, 0, None]),
    "g": (pa.string(), ["a", "b", None]),
    "h": (pa.bool_(), [True, False, None]),
}
NAMES: dict[str, tuple[Any, list[Any]]] = {
    "int64": (pa.int64(), [0, 2**53, 2**53 + 1, -5]),
    "uint64": (pa.uint64(), [2**64 - 1, 2**64 - 2, 0, 1]),
    "double": (pa.float64(), [0.0, 1.5, 5e-324, 2.0**53 - 1]),
    "float": (pa.float32(), [0.0, 1.5, 2.5, 3.5]),
    "bool": (pa.bool_(), [True, False]),
    "string": (pa.string(), ["ann", "ann ", "ann\0", ""]),
    "large string": (pa.large_string(), ["ann", "Ann", "\u00e9", "e\u0301"]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.00"), Decimal("1.01"), Decimal(0), Decimal(5)]),
    "day": (pa.date32(), [NIGHT.date() + dt.timedelta(days=day) for day in range(4)]),
    "time": (pa.timestamp("us", "America/New_York"), [NIGHT + dt.timedelta(hours=hour) for hour in range(4)]),
    "dictionary": (None, ["ann", "bob", "cy", "di"]),
    "dictionary of doubles": (None, [0.0, 1.0, 2.0, 3.0]),
}
RELEASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("count", (), {}),
    ("sum", (["x"],), {}),
    ("sum", (["n"],), {}),
    ("mean", ("x",), {}),
    ("var", ("n",), {}),
    ("value_counts", ("g",), {}),
    ("crosstab", ("g", "h"), {}),
    ("histogram", ("x",), {"bins": 4}),
]


def column(kind: Any, names: list[Any], rng: random.Random) -> Any:
    """Names as a column: half of the zeros are negative, and a dictionary has an entry for each record."""
    if any(isinstance(name, float) for name in names):
        names = [-0.0 if name == 0 and rng.random() < 0.5 else name for name in names]
    if kind is not None:
        return pa.array(names, kind)
    return pa.DictionaryArray.from_arrays(pa.array(range(len(names)), pa.int32()), pa.array(names))


def records(count: int, rng: random.Random) -> list[dict[str, Any]]:
    return [{name: rng.choice(cells) for name, (_, cells) in CELLS.items()} for _ in range(count)]


def frame(engine: str, names: Any, rows: list[dict[str, Any]]) -> Any:
    cells = {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in CELLS.items()}
    table = pa.table({**cells, "who": names})
    result = frame_of("pandas of Arrow" if engine.startswith("pandas") else engine, table)
    if engine == "pandas of objects":
        return result.assign(who=result["who"].astype(object))
    if engine == "pandas of categories":
        return result.assign(who=pd.Categorical(result["who"].astype(object)))
    return result


def check(engine: str, label: str, seed: str) -> None:
    rng = random.Random(seed)
    kind, (person, *others) = NAMES[label]
    of_others = [(name, row) for name in others for row in records(1, rng) * rng.choice([0, 1, 2, 5])]
    whole = of_others + [(person, row) for row in records(rng.choice([1, 4, 12]), rng)]
    rng.shuffle(whole)
    replaced = rng.random() < 0.3
    without = [(name, row) for name, row in whole if name != person]
    if replaced:
        without += [(person, row) for row in records(rng.choice([1, 4, 12]), rng)]
    words: dict[str, Any] = {
        "neighbors": "replace_one" if replaced else "add_remove",
        "max_rows": rng.choice([1, 2, 3]),
        "on_invalid": rng.choice(["raise", "clip", "drop"]),
    }
    pair = []
    for rows in (whole, without):
        raw = frame(engine, column(kind, [name for name, _ in rows], rng), [row for _, row in rows])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.DeclarationWarning)
            pair.append(pdprivacy.protect(raw, DOMAIN, epsilon=100, unit="who", **words))
    for name, args, more in rng.sample(RELEASES, 2):
        drawn = []
        for private in pair:
            with recording(noise="none") as record:
                getattr(private.dp, name)(*args, epsilon=1, **more)
            drawn.append(record.draws)
        assert drawn[0]
        for first, second in zip(*drawn, strict=True):
            moved = [a - b for a, b in zip(first.integers, second.integers, strict=True)]
            assert sum(map(abs, moved)) <= first.l1, (name, words)
            assert sum(step * step for step in moved) <= first.l2_squared, (name, words)


FAST = ("pandas of Arrow", "pandas of objects", "pandas of categories", "PyArrow", "lazy Polars", "DuckDB")


@pytest.mark.parametrize("engine", FAST)
def test_one_person_moves_exact_integers_by_no_more_than_the_sensitivity(engine):
    for label in random.Random(engine).sample(list(NAMES), 3):
        check(engine, label, f"{engine} {label}")


@pytest.mark.full
@ON_NEWEST_PANDAS
@pytest.mark.parametrize("label", NAMES)
@pytest.mark.parametrize("engine", [*FAST, "Polars", "Dask"])
def test_no_person_among_many_moves_exact_integers_by_more(engine, label):
    for seed in range(3 if engine == "Dask" else 30):
        check(engine, label, f"{engine} {label} {seed}")
