"""A column of another type than declared is refused as a whole; the hint says what works."""

from __future__ import annotations

import datetime
import functools
import io
import re
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import InvalidDataError
from tests.support.canaries import CANARY
from tests.support.snapshots import records_of

FATES = ["raise", "clip", "drop"]
DP: dict[str, Any] = {"dp": {}}
BETWEEN = pa.Check.in_range(0, 120)


def protect(frame: pd.DataFrame, schema: Any, on_invalid: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdprivacy.errors.DeclarationWarning)
        return frame.dp.protect(schema, epsilon=10**6, on_invalid=on_invalid)


def schema_of(dtype: Any, check: Any = BETWEEN, **options: Any) -> pa.DataFrameSchema:
    return pa.DataFrameSchema({"x": pa.Column(dtype, check, metadata=DP, **options)})


def read(lines: list[str], **options: Any) -> pd.DataFrame:
    """A file of these lines, as pandas reads it: one type for all, in the light of all."""
    return pd.read_csv(io.StringIO("\n".join(["x", *lines])), **options)


# ------------------------------------------------------------------ one record decides for all


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("coerced", [False, True])
@pytest.mark.parametrize("dtype", [int, float, None])
def test_one_bad_cell_in_a_file_never_leaves_all_records_out(dtype, coerced, fate):
    """Without the last line the file is one of numbers, and every record is kept."""
    lines = [str(20 + row % 50) for row in range(500)]
    schema = schema_of(dtype, coerce=coerced and dtype is not None)
    if dtype is not float or coerced:
        assert len(records_of(protect(read(lines), schema, fate))) == 500
    with pytest.raises(InvalidDataError) as caught:
        protect(read([*lines, CANARY]), schema, fate)
    assert CANARY not in str(caught.value)
    if dtype is None and fate == "raise" and pd.__version__.startswith("2."):
        return  # pandas 2 reads text as objects, whose cells pandera refuses first
    assert re.search(r'pd.to_numeric\(df\[.*\], errors="coerce"\)', caught.value.hint)


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("coerced", [False, True])
def test_one_bad_cell_in_a_file_of_truth_values_never_makes_all_of_them_true(coerced, fate):
    schema = schema_of(bool, None, coerce=coerced)
    private = protect(read(["True", "False"]), schema, fate)
    assert records_of(private)["x"].tolist() == [True, False]
    for frame in (read(["True", "False", CANARY]), read(["True", "False", "?"], dtype=object)):
        with pytest.raises(InvalidDataError):
            protect(frame, schema, fate)


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("coerced", [False, True])
@pytest.mark.parametrize("cells", [[1.0, np.nan], [True, None]])
def test_no_null_becomes_a_truth_value(cells, coerced, fate):
    schema = schema_of(bool, None, coerce=coerced, nullable=True)
    with pytest.raises(InvalidDataError):
        protect(pd.DataFrame({"x": cells}), schema, fate)


@pytest.mark.parametrize("fate", FATES)
def test_a_file_read_in_pieces_of_two_types_is_refused(fate):
    """Numbers in one piece and text in the next: for one cell, a whole piece would be left out."""
    pieces = [read(["1", "2"]), read(["3", CANARY], dtype=object)]
    frame = pd.DataFrame({"x": pd.concat(pieces)["x"].astype(object).to_numpy()})
    for domain in (
        Domain((Column("x", "integer", lower=0, upper=9),)),
        Domain((Column("x", "category", categories=("1", "2", "3")),)),
    ):
        with pytest.raises(InvalidDataError, match="cells of another type than declared") as caught:
            protect(frame, domain, fate)
        assert CANARY not in str(caught.value)
        assert 'on_invalid="drop"' not in caught.value.hint


@pytest.mark.parametrize("fate", FATES)
def test_codes_that_a_reader_took_for_numbers_are_refused(fate):
    labels = schema_of(str, pa.Check.isin(["01", "02"]))
    with pytest.raises(InvalidDataError, match="is declared as text and holds numbers") as caught:
        protect(read(["01", "02"]), labels, fate)
    assert "dtype={'x': str}" in caught.value.hint
    private = protect(read(["01", "02"], dtype={"x": str}), labels, fate)
    assert records_of(private)["x"].tolist() == ["01", "02"]


# ------------------------------------------------------------------ every type, every declaration

DAY = pd.Timestamp("2020-01-01")
HELD: dict[str, list[Any]] = {
    "numbers": [
        pd.array([1, 0], dtype="int64"), pd.array([1, 0], dtype="uint8"), np.array([1.0, 0.0]),
        pd.array([1, None], dtype="Int8"), pd.array([1.0, None], dtype="Float32"),
        pd.arrays.SparseArray([1, 0]),
    ],
    "categories of numbers": [pd.Categorical([1, 0]), pd.Categorical([1.0, None])],
    "truth values": [np.array([True, False]), pd.array([True, None], dtype="boolean")],
    "categories of truth values": [pd.Categorical([True, None])],
    "text": [pd.array(["1", None], dtype="string"), pd.Categorical(pd.array(["1", "0"], dtype="string"))],
    "times": [pd.array([DAY, None], dtype="datetime64[ns]"), pd.Categorical([DAY])],
    "times with a time zone": [pd.array([DAY.tz_localize("UTC")])],
    "durations": [pd.array([pd.Timedelta(1), None], dtype="timedelta64[ns]")],
    "complex numbers": [np.array([1 + 0j, 0])],
    "Period": [pd.array(pd.period_range(DAY, periods=2))],
    "Interval": [pd.arrays.IntervalArray(pd.interval_range(0, 2))],
}  # fmt: skip
NUMBERS = {"numbers", "categories of numbers", "truth values", "categories of truth values"}
DECLARED = {
    "integer": (Column("x", "integer", True, lower=0, upper=1), {"numbers"}),
    "float": (Column("x", "float", True, lower=0, upper=1), {"numbers"}),
    "boolean": (Column("x", "boolean", True), {"truth values"}),
    "text": (Column("x", "category", True, categories=("0", "1")), {"text"}),
    "numbers": (Column("x", "category", True, categories=(0, 1)), NUMBERS),
    "truth values": (Column("x", "category", True, categories=(False, True)), NUMBERS),
    "times": (Column("x", "category", True, categories=(DAY,)), {"times"}),
    "days": (Column("x", "category", True, categories=(datetime.date(2020, 1, 1),)), set()),
    "Interval": (Column("x", "category", True, categories=tuple(pd.interval_range(0, 2))), {"Interval"}),
}


@pytest.mark.full(keep=9)
@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("declared", DECLARED)
def test_the_type_of_a_column_decides_alone(declared, fate):
    """Also where all its cells are null, or it has none."""
    column, suits = DECLARED[declared]
    for kind, columns in HELD.items():
        for cells in columns:
            values = pd.Series(cells)
            for part in (values, values.iloc[:0]):
                action = functools.partial(protect, pd.DataFrame({"x": part}), Domain((column,)), fate)
                if kind in suits:
                    assert len(records_of(action())) == len(part)
                    continue
                with pytest.raises(InvalidDataError) as caught:
                    action()
                message = f"column 'x' is declared as {declared} and holds {kind}.\nHint: "
                assert str(caught.value).startswith(message)


@pytest.mark.parametrize("kind", ["float", "integer"])
def test_decimals_are_numbers_as_on_other_engines(kind):
    pyarrow = pytest.importorskip("pyarrow")
    cells = [Decimal("1.00"), Decimal("12.00"), None]
    domain = Domain((Column("x", kind, True, lower=0, upper=9),))
    for values in (pd.Series(cells, dtype=object), pd.arrays.ArrowExtensionArray(pyarrow.array(cells))):
        private = protect(pd.DataFrame({"x": values}), domain, "clip")
        assert private.dp.sum("x", epsilon=10**5, rng=1)["x"] == pytest.approx(10, abs=0.01)
        assert private.dp.quality().loc["x"].tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("column", ["integer", "float", "boolean", "text"])
def test_all_columns_of_other_types_are_named_at_once(column):
    others = Domain((DECLARED[column][0], Column("y", "category", categories=("a",))))
    with pytest.raises(InvalidDataError, match=r"column 'x' is .*; column 'y' is declared as text and holds"):
        protect(pd.DataFrame({"x": [1j], "y": [2]}), others, "drop")


# ------------------------------------------------------------------ the way out

WAYS_OUT: dict[str, tuple[Any, list[Any], list[Any]]] = {
    # the declared kind, cells, what comes out
    "text as integer": ("integer", ["31", "x", "40"], [31, None, 40]),
    "text as float": ("float", ["31.5", "x", "40"], [31.5, None, 40]),
    "no bad text as integer": ("integer", ["31", "40"], [31, 40]),
    "no bad text as float": ("float", ["31", "40"], [31, 40]),
    "objects as integer": ("integer", [31, "x"], [31, None]),
    "complex as float": ("float", [31.5, 1j, 2 + 0j], [31.5, None, 2]),
    "truth as integer": ("integer", [True, False], [1, 0]),
    "truth as float": ("float", [True, False], [1, 0]),
    "categories as integer": ("integer", pd.Categorical([1, None, 3]), [1, None, 3]),
    "categories as float": ("float", pd.Categorical([1.5, None]), [1.5, None]),
    "times as integer": ("integer", [pd.Timestamp("2000-01-03 12:00"), pd.NaT], [2, None]),
    "zoned times as integer": ("integer", [pd.Timestamp("2000-01-03", tz="UTC"), pd.NaT], [2, None]),
    "durations as float": ("float", [pd.Timedelta(hours=12), pd.NaT], [0.5, None]),
    "numbers as truth": ("boolean", [1, 0], [True, False]),
    "numbers and nulls as truth": ("boolean", [1.0, 0.0, None], [True, False, None]),
    "text as truth": ("boolean", ["True", "x", "False"], [True, None, False]),
    "objects as truth": ("boolean", [True, None, "x"], [True, None, None]),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_the_conversion_of_the_hint_makes_an_accepted_column(way):
    """The line of code is run as it stands, and the column declared as it says."""
    kind, cells, expected = WAYS_OUT[way]
    df = pd.DataFrame({"x": cells})
    bounds: dict[str, Any] = {} if kind == "boolean" else {"lower": 0, "upper": 120}
    with pytest.raises(InvalidDataError) as caught:
        protect(df, Domain((Column("x", kind, True, **bounds),)), "drop")
    line, _, declaration = caught.value.hint.partition(", declared as ")
    exec(line.removesuffix("."), {"df": df, "pd": pd, "np": np})
    code = declaration.partition(")")[0].replace(", ...", ", BETWEEN" if bounds else "")
    plain = f"pa.Column({ {'integer': 'int', 'float': 'float'}.get(kind) }, BETWEEN"
    column = eval(f"{code or plain}, metadata=DP)", {"pa": pa, "BETWEEN": BETWEEN, "DP": DP, "float": float})
    private = protect(df, pa.DataFrameSchema({"x": column}), "raise")
    assert [None if pd.isna(cell) else cell for cell in records_of(private)["x"]] == expected
