"""The records are copies (`copies`): no later write to memory of the owner reaches a release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, errors

pa = pytest.importorskip("pyarrow", reason="the buffers of these tests are Arrow's")

ROWS = 40
EXACT = 10.0**9
"""An epsilon at which noise is far below one half, so that a rounded release is the exact number."""

Writable = tuple[Any, list[np.ndarray[Any, Any]]]


def arrow(kind: Any, data: np.ndarray[Any, Any], *buffers: Any) -> Any:
    """An array of Arrow over memory of NumPy, with buffers before the data (validity, offsets)."""
    return pa.Array.from_buffers(kind, ROWS, [*buffers, pa.py_buffer(data)])


def integers() -> Writable:
    cells = np.arange(ROWS)
    return pd.Series(cells, copy=False), [cells]


def masked() -> Writable:
    cells, mask = np.arange(ROWS), np.arange(ROWS) % 5 == 0
    return pd.Series(pd.arrays.IntegerArray(cells, mask), copy=False), [cells, mask.view(np.uint8)]


def arrow_integers() -> Writable:
    cells = np.arange(ROWS)
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells))), [cells]


def arrow_with_nulls() -> Writable:
    cells, valid = np.arange(ROWS), np.array([0b11101111] * 4 + [255], np.uint8)
    array = arrow(pa.int64(), cells, pa.py_buffer(valid))
    return pd.Series(pd.arrays.ArrowExtensionArray(array)), [cells, valid]


def sparse() -> Writable:
    array = pd.arrays.SparseArray(np.arange(ROWS) % 4, fill_value=0)
    return pd.Series(array), [array.sp_values, array.sp_index.indices]


def texts() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The bytes of long texts, which engines do not store in place, and where each starts."""
    data = np.frombuffer(b"".join([b"a" * 20, b"b" * 20] * (ROWS // 2)), np.uint8).copy()
    return data, np.arange(0, len(data) + 1, 20)


def arrow_texts() -> Writable:
    data, starts = texts()
    array = arrow(pa.large_string(), data, None, pa.py_buffer(starts))
    return pd.Series(pd.arrays.ArrowExtensionArray(array)), [data]


def pandas_texts() -> Writable:
    data, starts = texts()
    array = arrow(pa.large_string(), data, None, pa.py_buffer(starts))
    kind = pd.StringDtype("pyarrow")
    return pd.Series(kind.__from_arrow__(array)), [data]


def dictionary() -> Writable:
    codes, labels = np.arange(ROWS) % 2, np.frombuffer(b"a" * 20 + b"b" * 20, np.uint8).copy()
    entries = pa.Array.from_buffers(
        pa.large_string(), 2, [None, pa.py_buffer(np.array([0, 20, 40])), pa.py_buffer(labels)]
    )
    array = pa.DictionaryArray.from_arrays(pa.array(codes), entries)
    return pd.Series(pd.arrays.ArrowExtensionArray(array)), [codes, labels]


def categories() -> Writable:
    labels = np.array(["a" * 20, "b" * 20], dtype=object)
    codes = (np.arange(ROWS) % 2).astype(np.int8)
    index = pd.Index(labels, dtype=object, copy=False)
    categorical = pd.Categorical.from_codes(codes, index)
    reached = categorical.categories.to_numpy()
    reached.flags.writeable = True
    return pd.Series(categorical), [codes, reached]


def arrow_categories() -> Writable:
    labels = np.frombuffer(b"a" * 20 + b"b" * 20, np.uint8).copy()
    entries = pa.Array.from_buffers(
        pa.large_string(), 2, [None, pa.py_buffer(np.array([0, 20, 40])), pa.py_buffer(labels)]
    )
    index = pd.Index(pd.arrays.ArrowExtensionArray(entries))
    return pd.Series(pd.Categorical.from_codes(np.arange(ROWS) % 2, index)), [labels]


def objects() -> Writable:
    cells = np.array(["a" * 20, "b" * 20] * (ROWS // 2), dtype=object)
    return pd.Series(cells, dtype=object, copy=False), [cells]


NUMBERS = Column("x", "integer", True, lower=0, upper=1000)
TEXTS = Column("x", "category", True, categories=("a" * 20, "b" * 20))
CASES: dict[str, tuple[Column, Callable[[], Writable]]] = {
    "NumPy": (NUMBERS, integers),
    "nullable": (NUMBERS, masked),
    "Arrow over NumPy": (NUMBERS, arrow_integers),
    "Arrow with nulls": (NUMBERS, arrow_with_nulls),
    "sparse": (NUMBERS, sparse),
    "Arrow texts": (TEXTS, arrow_texts),
    "pandas texts over Arrow": (TEXTS, pandas_texts),
    "Arrow dictionary": (TEXTS, dictionary),
    "categorical": (TEXTS, categories),
    "categorical of Arrow texts": (TEXTS, arrow_categories),
    "objects": (TEXTS, objects),
}


def overwrite(buffers: list[np.ndarray[Any, Any]]) -> None:
    """Give every cell of every buffer the value of the buffer's last one."""
    for buffer in buffers:
        before = buffer.copy()
        buffer[:] = buffer[-1]
        assert not np.array_equal(before, buffer)


def exact(private: Any, column: Column) -> list[float]:
    """The numbers of a release whose noise is far below one half."""
    if column is TEXTS:
        return [float(n) for n in private.dp.value_counts("x", epsilon=EXACT)]
    return [round(float(getattr(private.dp, name)("x", epsilon=EXACT).iloc[0])) for name in ("sum", "count")]


def protected(frame: Any, column: Column) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DeclarationWarning)
        return pdprivacy.protect(frame, Domain((column,)), epsilon=1e12)


@pytest.mark.parametrize("name", CASES)
def test_no_write_to_memory_of_the_owner_reaches_a_release_of_a_pandas_frame(name):
    column, make = CASES[name]
    values, buffers = make()
    frame = pd.DataFrame({"x": values}, copy=False)
    original = list(map(str, frame["x"]))
    private = protected(frame, column)
    narrowed = private.dp.query("x >= 0" if column is NUMBERS else "x == '" + "a" * 20 + "'")
    before = exact(private, column), exact(narrowed, column)
    overwrite(buffers)
    assert (exact(private, column), exact(narrowed, column)) == before
    assert list(map(str, frame["x"])) != original  # a snapshot that shared memory would have changed as well


class Level:
    """A label whose text can be changed, with the hash and equality of that text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return self.text == (other.text if isinstance(other, Level) else other)


def test_no_change_of_an_object_of_the_owner_reaches_a_release():
    cells = [Level(text) for text in ("a" * 20, "b" * 20)] * (ROWS // 2)
    private = protected(pd.DataFrame({"x": pd.Series(cells, dtype=object)}), TEXTS)
    before = exact(private, TEXTS)
    assert before[:2] == [20, 20]
    for cell in cells:
        cell.text = "b" * 20
    assert exact(private, TEXTS) == before


@pytest.mark.parametrize("name", ["Arrow over NumPy", "Arrow with nulls", "Arrow texts", "Arrow dictionary"])
@pytest.mark.parametrize("engine", ["Polars", "PyArrow"])
def test_no_write_to_memory_of_the_owner_reaches_a_release_of_a_frame_in_memory(name, engine):
    column, make = CASES[name]
    values, buffers = make()
    table = pa.table({"x": values.array.__arrow_array__()})
    if engine == "Polars":
        if pd.__version__.startswith("2."):
            pytest.skip("the engines are checked against the newest pandas and Arrow")
        pytest.importorskip("narwhals", reason="narwhals is not installed")
        table = pytest.importorskip("polars", reason="Polars is not installed").from_arrow(table)
    private = protected(table, column)
    before = exact(private, column)
    overwrite(buffers)
    assert exact(private, column) == before
