"""Every fault has one declared fate, whatever the dtype and whatever the other records hold."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.core.conform import conform
from pdprivacy.errors import DeclarationError, InvalidDataError, InvalidDataWarning, ParameterError
from tests.support.canaries import CANARY, NUMBER
from tests.support.cases import check_each
from tests.support.snapshots import records_of

WHOLE = Column("x", "integer", lower=18, upper=90)
REAL = Column("x", "float", lower=18, upper=90)
TRUTH = Column("x", "boolean")
LABEL = Column("x", "category", categories=("a", "b"))
CODE = Column("x", "integer", categories=(20, 30, 40))
DAY = Column("x", "category", categories=(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")))
PAIR = Column("x", "category", categories=((1, 2), (3, 4)))


def masked(values, nulls, kind="float"):
    maker = pd.arrays.FloatingArray if kind == "float" else pd.arrays.IntegerArray
    return maker(np.array(values), np.array(nulls))


def arrow(values, dtype=None):
    pyarrow = pytest.importorskip("pyarrow")
    return pd.arrays.ArrowExtensionArray(pyarrow.array(values, type=dtype))


def objects(cells):
    array = np.empty(len(cells), dtype=object)
    for position, cell in enumerate(cells):
        array[position] = cell
    return pd.Series(array, dtype=object)  # of an array alone pandas 3 would make text


# What a cell is: (cell, fault). For each case a column declaration, how cells become an array, and cells.
# Faults: "" none, "low" and "high" (infinite too), "null", "unseen", "broken" (a fraction), "mistyped".
CASES = {
    "int64": (WHOLE, lambda c: np.array(c, dtype="int64"), [(20, ""), (5, "low"), (NUMBER, "high")]),
    "int8": (WHOLE, lambda c: np.array(c, dtype="int8"), [(20, ""), (-5, "low"), (100, "high")]),
    "uint64": (WHOLE, lambda c: np.array(c, dtype="uint64"), [(20, ""), (5, "low"), (2**63, "high")]),
    "Int64": (
        WHOLE,
        lambda c: pd.array(c, dtype="Int64"),
        [(20, ""), (5, "low"), (NUMBER, "high"), (pd.NA, "null")],
    ),
    "int64[pyarrow]": (
        WHOLE,
        lambda c: pd.array(c, dtype="int64[pyarrow]"),
        [(20, ""), (5, "low"), (NUMBER, "high"), (None, "null")],
    ),
    "whole float64": (
        WHOLE,
        lambda c: np.array(c, dtype="float64"),
        [(20.0, ""), (5.0, "low"), (1e300, "high"), (-np.inf, "low"), (np.nan, "null"), (20.5, "broken")],
    ),
    "float64": (
        REAL,
        lambda c: np.array(c, dtype="float64"),
        [(20.5, ""), (5.0, "low"), (1e300, "high"), (-np.inf, "low"), (np.inf, "high"), (np.nan, "null")],
    ),
    "float32": (REAL, lambda c: np.array(c, dtype="float32"), [(20.5, ""), (5.0, "low"), (np.inf, "high")]),
    "int64 of a float": (REAL, lambda c: np.array(c, dtype="int64"), [(20, ""), (5, "low"), (100, "high")]),
    "Float64": (
        REAL,
        lambda c: masked([np.nan if v is pd.NA else v for v in c], [v is pd.NA for v in c]),
        [(20.5, ""), (5.0, "low"), (np.inf, "high"), (-np.inf, "low"), (pd.NA, "null"), (np.nan, "null")],
    ),
    "double[pyarrow]": (
        REAL,
        arrow,
        [(20.5, ""), (5.0, "low"), (float("inf"), "high"), (None, "null"), (float("nan"), "null")],
    ),
    "object numbers": (
        REAL,
        objects,
        [
            (20.5, ""),
            (np.int8(20), ""),
            (Decimal("20.5"), ""),
            (Fraction(41, 2), ""),
            (5, "low"),
            (Decimal("5"), "low"),
            (Decimal("Infinity"), "high"),
            (10**400, "high"),
            (-(10**400), "low"),
            (float("-inf"), "low"),
            (None, "null"),
            (float("nan"), "null"),
            (pd.NA, "null"),
            (pd.NaT, "null"),
            (Decimal("NaN"), "null"),
            ("30", "mistyped"),
            (CANARY, "mistyped"),
            (b"30", "mistyped"),
            (True, "mistyped"),
            (np.True_, "mistyped"),
            (30 + 1j, "mistyped"),
            (pd.Timestamp("2020-01-01"), "mistyped"),
            (pd.Timedelta(30), "mistyped"),
            ((30,), "mistyped"),
            ([30], "mistyped"),
            ({30: 30}, "mistyped"),
        ],
    ),
    "object whole numbers": (
        WHOLE,
        objects,
        [
            (20, ""),
            (20.0, ""),
            (Decimal(20), ""),
            (20.5, "broken"),
            (Decimal("20.5"), "broken"),
            (5, "low"),
        ],
    ),
    "bool": (TRUTH, lambda c: np.array(c, dtype=bool), [(True, ""), (False, "")]),
    "boolean": (TRUTH, lambda c: pd.array(c, dtype="boolean"), [(True, ""), (False, ""), (pd.NA, "null")]),
    "bool[pyarrow]": (TRUTH, lambda c: pd.array(c, dtype="bool[pyarrow]"), [(True, ""), (None, "null")]),
    "object truth": (
        TRUTH,
        objects,
        [
            (True, ""),
            (np.False_, ""),
            (None, "null"),
            (pd.NA, "null"),
            (1, "mistyped"),
            (0.0, "mistyped"),
            ("True", "mistyped"),
            (CANARY, "mistyped"),
        ],
    ),
    "object text": (
        LABEL,
        objects,
        [
            ("a", ""),
            (np.str_("b"), ""),
            (None, "null"),
            (float("nan"), "null"),
            (pd.NA, "null"),
            (CANARY, "unseen"),
            ("A", "unseen"),
            ("a ", "unseen"),
            ("", "unseen"),
            (b"a", "mistyped"),
            ("\ud800" + CANARY, "unseen"),
            (1, "mistyped"),
            (("a",), "mistyped"),
            (["a"], "mistyped"),
            (pd.Timestamp("2020-01-01"), "mistyped"),
        ],
    ),
    "str": (LABEL, lambda c: pd.Series(c, dtype="str"), [("a", ""), (CANARY, "unseen")]),
    "string": (
        LABEL,
        lambda c: pd.array(c, dtype="string[python]"),
        [("a", ""), (CANARY, "unseen"), (None, "null")],
    ),
    "string[pyarrow]": (
        LABEL,
        lambda c: pd.array(c, dtype="string[pyarrow]"),
        [("a", ""), (CANARY, "unseen"), (None, "null")],
    ),
    "category": (LABEL, pd.Categorical, [("a", ""), (CANARY, "unseen"), (None, "null")]),
    "category with more labels": (
        LABEL,
        lambda c: pd.Categorical(c, categories=[CANARY, "b", "c", "a"]),
        [("a", ""), ("b", ""), (CANARY, "unseen"), (None, "null")],
    ),
    "int64 codes": (CODE, lambda c: np.array(c, dtype="int64"), [(20, ""), (25, "unseen"), (5, "unseen")]),
    "object codes": (
        CODE,
        objects,
        [(20, ""), (20.0, ""), (25, "unseen"), ("20", "mistyped"), (None, "null")],
    ),
    "datetime": (
        DAY,
        lambda c: pd.array(c, dtype="datetime64[ns]"),
        [(pd.Timestamp("2020-01-01"), ""), (pd.Timestamp("2021-01-01"), "unseen"), (pd.NaT, "null")],
    ),
    "object tuples": (PAIR, objects, [((1, 2), ""), ((2, 1), "unseen"), ((1,), "unseen"), (None, "null")]),
}
NAMED = {
    "low": "values outside [18, 90]",
    "high": "values outside [18, 90]",
    "null": "nulls, which are not declared",
    "unseen": "labels that are not declared",
    "broken": "numbers that are not whole",
    "mistyped": "cells of another type than declared",
}


def fate(fault: str, on_invalid: str, nullable: bool) -> str:
    """The table of the module, once more."""
    if not fault or (fault == "null" and nullable):
        return "kept"
    if on_invalid == "drop" and fault != "mistyped":
        return "dropped"
    if on_invalid == "clip" and fault in ("low", "high"):
        return "clipped"
    return "refused"


def quiet(frame, domain, on_invalid):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return conform(frame, domain, on_invalid)


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("case", CASES)
def test_every_fault_has_its_fate(case, texts_of):
    positions = range(len(CASES[case][2]))
    check_each(
        product(positions, ("raise", "clip", "drop"), (False, True)),
        lambda options: check_fate(case, *options, texts_of),
    )


def check_fate(case, position, on_invalid, nullable, texts_of):
    column, make, cells = CASES[case]
    cell, fault = cells[position]
    good = [value for value, kind in cells if not kind][:1]
    records = [*good, cell, *good]
    at = len(good)
    frame = pd.DataFrame({"x": make(records), "other": range(len(records))})
    frame.index = pd.Index(list("pqr")[: len(records)])
    before = frame.copy(deep=True)
    domain = Domain((Column(**{**_fields(column), "nullable": nullable}),))
    expected = fate(fault, on_invalid, nullable)
    if expected == "refused":
        with pytest.raises(InvalidDataError) as caught:
            quiet(frame, domain, on_invalid)
        message = str(caught.value)
        assert "column 'x' has " + NAMED[fault] in message
        assert [text for name, text in NAMED.items() if text in message] == [NAMED[fault]] * (
            2 if fault in ("low", "high") else 1
        )
        assert ('on_invalid="drop"' in caught.value.hint) == (fault != "mistyped")
        for text in texts_of(caught.value):
            assert CANARY not in text
            assert str(NUMBER) not in text
            assert "1e300" not in text
    else:
        conformed = quiet(frame, domain, on_invalid)
        result = conformed.frame
        rows = [row for row in range(len(records)) if row != at or expected != "dropped"]
        assert result.index.tolist() == [frame.index[row] for row in rows]
        assert result["other"].tolist() == rows
        assert list(result.columns) == ["x", "other"]
        values = result["x"].tolist()
        if expected == "clipped":
            assert values[at] == (18 if fault == "low" else 90)
        elif expected == "kept":
            assert pd.isna(values[at]) if fault == "null" else values[at] == cell
        quality = conformed.quality.loc["x"].to_dict()
        assert quality == {
            "clipped": int(expected == "clipped"),
            "null": int(fault == "null"),
            "unseen": int(fault == "unseen"),
            "dropped": int(expected == "dropped"),
        }
    _same(frame, before)


def _fields(column: Column) -> dict[str, object]:
    return {name: getattr(column, name) for name in Column.__dataclass_fields__}


def _same(frame: pd.DataFrame, before: pd.DataFrame) -> None:
    assert frame.dtypes.tolist() == before.dtypes.tolist()
    assert frame.index.equals(before.index)
    assert [repr(cell) for cell in frame["x"]] == [repr(cell) for cell in before["x"]]


@pytest.mark.full(keep=18)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("nullable", [False, True])
def test_all_faults_at_once_have_the_same_fates(case, nullable):
    column, make, cells = CASES[case]
    cells = [(cell, fault) for cell, fault in cells if fault != "mistyped"]
    frame = pd.DataFrame({"x": make([cell for cell, _ in cells]), "other": range(len(cells))})
    domain = Domain((Column(**{**_fields(column), "nullable": nullable}),))
    conformed = quiet(frame, domain, "drop")
    kept = [row for row, (_, fault) in enumerate(cells) if fate(fault, "drop", nullable) == "kept"]
    assert conformed.frame["other"].tolist() == kept
    assert conformed.quality.loc["x", "dropped"] == len(cells) - len(kept)
    assert conformed.quality.loc["x", "null"] == sum(fault == "null" for _, fault in cells)


# ------------------------------------------------------------------ each record for itself

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-100, 100),
    st.sampled_from([18, 90, 17.999999, 90.0000001, np.nan, np.inf, -np.inf, 2**70, -(2**70)]),
)
CELLS = st.one_of(
    NUMBERS,
    st.none(),
    st.booleans(),
    st.text(max_size=2),
    st.decimals(allow_nan=True, allow_infinity=True).filter(lambda d: not d.is_snan()),
    st.sampled_from([pd.NA, pd.NaT, Fraction(61, 2), (1, 2), "a", "b", b"a"]),
)


def _alone(frame: pd.DataFrame, domain: Domain, on_invalid: str) -> list[str]:
    """The fate of each record in a frame of its own."""
    outcomes = []
    for row in range(len(frame)):
        try:
            conformed = quiet(frame.iloc[[row]], domain, on_invalid).frame
        except InvalidDataError:
            outcomes.append("refused")
            continue
        outcomes.append(_shown(conformed["x"].iloc[0]) if len(conformed) else "dropped")
    return outcomes


def _shown(cell: object) -> str:
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return "null"
    if isinstance(cell, int | float | np.number | Decimal | Fraction) and not isinstance(cell, bool):
        return repr(float(cell)) if not isinstance(cell, int) or abs(cell) < 10**300 else "huge"
    return repr(cell)


def _together(frame: pd.DataFrame, domain: Domain, on_invalid: str) -> list[str]:
    try:
        whole = quiet(frame, domain, on_invalid).frame
    except InvalidDataError:
        return ["refused"]
    kept = dict(zip(whole["row"], whole["x"], strict=True))
    return [_shown(kept[row]) if row in kept else "dropped" for row in frame["row"]]


@given(
    cells=st.lists(CELLS, min_size=1, max_size=6),
    column=st.sampled_from([WHOLE, REAL, TRUTH, LABEL, CODE]),
    nullable=st.booleans(),
    on_invalid=st.sampled_from(["raise", "clip", "drop"]),
)
def test_the_fate_of_a_record_is_its_own(cells, column, nullable, on_invalid):
    frame = pd.DataFrame({"x": objects(cells), "row": range(len(cells))})
    domain = Domain((Column(**{**_fields(column), "nullable": nullable}),))
    alone = _alone(frame, domain, on_invalid)
    together = _together(frame, domain, on_invalid)
    assert together == (["refused"] if "refused" in alone else alone)


@given(
    cells=st.lists(st.floats(), min_size=1, max_size=6),
    column=st.sampled_from([WHOLE, REAL, CODE]),
    dtype=st.sampled_from(["float64", "float32", "Float64"]),
    nullable=st.booleans(),
    on_invalid=st.sampled_from(["raise", "clip", "drop"]),
)
def test_the_fate_of_a_float_is_its_own(cells, column, dtype, nullable, on_invalid):
    with np.errstate(over="ignore"):
        values = pd.Series(np.array(cells).astype(dtype.lower())).astype(dtype)
    frame = pd.DataFrame({"x": values, "row": range(len(cells))})
    domain = Domain((Column(**{**_fields(column), "nullable": nullable}),))
    alone = _alone(frame, domain, on_invalid)
    together = _together(frame, domain, on_invalid)
    assert together == (["refused"] if "refused" in alone else alone)


@given(
    first=st.lists(st.integers(-(2**62), 2**62), max_size=5),
    second=st.lists(st.integers(-(2**62), 2**62), max_size=5),
    on_invalid=st.sampled_from(["clip", "drop"]),
)
def test_two_tables_conform_apart_as_they_do_together(first, second, on_invalid):
    domain = Domain((WHOLE,))

    def through(cells):
        conformed = quiet(pd.DataFrame({"x": np.array(cells, dtype=np.int64)}), domain, on_invalid)
        return conformed.frame["x"].tolist(), conformed.quality.loc["x"].to_numpy()

    (left, counted), (right, more) = through(first), through(second)
    whole, total = through(first + second)
    assert whole == left + right
    assert (total == counted + more).all()


# ------------------------------------------------------------------ bounds that the dtype cannot hold


@pytest.mark.parametrize("dtype", ["int8", "Int8", "int8[pyarrow]", "uint8", "object", "float32"])
def test_a_bound_beyond_the_dtype_is_reached_all_the_same(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    domain = Domain((Column("x", "integer", lower=300, upper=400),))
    frame = pd.DataFrame({"x": pd.Series([1, 2, 3]).astype(dtype)})
    assert quiet(frame, domain, "clip").frame["x"].tolist() == [300, 300, 300]
    assert quiet(frame, domain, "drop").frame["x"].tolist() == []


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "int64[pyarrow]", "uint8", "object", "float32", "float64"]
)
def test_whole_numbers_clip_to_bounds_that_are_not(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    domain = Domain((Column("x", "float", lower=18.5, upper=90.5),))
    frame = pd.DataFrame({"x": pd.Series([1, 30, 100]).astype(dtype)})
    assert quiet(frame, domain, "clip").frame["x"].tolist() == [18.5, 30, 90.5]


@pytest.mark.full(keep=17)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "Float32", "Float64", "float[pyarrow]"])
@pytest.mark.parametrize("upper", [0.1, 1e5, 1e300])
def test_infinities_reach_bounds_that_the_dtype_does_not_hold(dtype, upper):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    values = pd.Series([np.inf, 0.0625, -np.inf]).astype(dtype)
    column = Column("x", "float", lower=-upper, upper=upper)
    clipped = quiet(pd.DataFrame({"x": values}), Domain((column,)), "clip").frame["x"]
    assert clipped.tolist() == [upper, 0.0625, -upper]
    assert quiet(pd.DataFrame({"x": clipped}), Domain((column,)), "raise").frame["x"].dtype == clipped.dtype


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "Int8", "UInt16", "float16", "Float32", "int16[pyarrow]", "object"]
)
def test_a_dtype_that_holds_the_bounds_stays(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": pd.Series([5, 20, 100]).astype(dtype)})
    clipped = quiet(frame, Domain((Column("x", "float", lower=18, upper=90),)), "clip").frame["x"]
    assert clipped.tolist() == [18, 20, 90]
    assert clipped.dtype == frame["x"].dtype


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "float32", "object"])
@pytest.mark.parametrize(
    ("bounds", "clipped"),
    [({"upper": -5.0}, [-9, -5, -5]), ({"lower": -5.0}, [-5, -3, 7]), ({}, [-9, -3, 7])],
)
def test_one_bound_is_enough_to_clip(dtype, bounds, clipped):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": pd.Series([-9, -3, 7]).astype(dtype)})
    result = quiet(frame, Domain((Column("x", "float", **bounds),)), "clip").frame["x"]
    assert result.tolist() == clipped
    assert result.dtype == frame["x"].dtype


def test_whole_numbers_within_the_bounds_are_not_rounded_where_others_are_clipped():
    frame = pd.DataFrame({"x": [2**60 + 1, -5]})
    clipped = quiet(frame, Domain((Column("x", "integer", lower=0, upper=2**61),)), "clip").frame
    assert clipped["x"].tolist() == [2**60 + 1, 0]
    assert clipped["x"].dtype == np.int64


def test_sparse_numbers_are_clipped():
    frame = pd.DataFrame({"x": pd.Series([0, 30.5, 95, np.nan], dtype=pd.SparseDtype("float64"))})
    domain = Domain((Column("x", "float", nullable=True, lower=18, upper=90),))
    clipped = quiet(frame, domain, "clip").frame["x"]
    assert clipped.tolist()[:3] == [18, 30.5, 90]
    assert clipped.isna().tolist() == [False, False, False, True]


def test_a_truth_value_that_is_not_declared_is_an_unseen_label():
    domain = Domain((Column("x", "boolean", categories=(True,)),))
    frame = pd.DataFrame({"x": [True, False]})
    for on_invalid in ("raise", "clip"):
        with pytest.raises(InvalidDataError, match="labels that are not declared"):
            conform(frame, domain, on_invalid)
    conformed = conform(frame, domain, "drop")
    assert conformed.frame["x"].tolist() == [True]
    assert conformed.quality.loc["x", "unseen"] == 1


def test_a_signalling_nan_is_a_null():
    frame = pd.DataFrame({"x": objects([Decimal("sNaN"), Decimal(30)])})
    with pytest.raises(InvalidDataError, match="null"):
        conform(frame, Domain((REAL,)), "raise")
    assert conform(frame, Domain((REAL,)), "drop").frame["x"].tolist() == [Decimal(30)]


def test_every_kind_of_null_is_one_to_pandas_once_it_conforms():
    """Else what counts nulls and what leaves them out would not agree."""
    number = Domain((Column("x", "float", nullable=True, lower=18, upper=90),))
    kinds = [
        objects([Decimal("sNaN"), Decimal(30), None]),
        pd.Series(masked([np.nan, 30.0, 1.0], [False, False, True])),
        pd.Series(arrow([float("nan"), 30.0, None])),
    ]
    for values in kinds:
        frame = pd.DataFrame({"x": values}).set_axis([7, 7, 8])
        for on_invalid in ("raise", "clip", "drop"):
            conformed = quiet(frame, number, on_invalid)
            assert conformed.frame["x"].isna().tolist() == [True, False, True]
            assert conformed.frame["x"].iloc[1] == 30
            assert conformed.frame["x"].dtype == values.dtype
            assert conformed.frame.index.tolist() == [7, 7, 8]
            assert conformed.quality.loc["x", "null"] == 2
    label = Domain((Column("x", "category", nullable=True, categories=("a",)),))
    conformed = quiet(pd.DataFrame({"x": objects([Decimal("sNaN"), "a", "\ud800"])}), label, "drop")
    assert conformed.frame["x"].tolist() == [None, "a"]


BROKEN = "infinite values, and no bound to clip them to"


@pytest.mark.full(keep=18)
@pytest.mark.parametrize("kind", ["float", "integer"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "object"])
@pytest.mark.parametrize(("lower", "upper"), [(0, None), (None, 9), (None, None), (0, 9)])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_never_within_what_is_declared(kind, dtype, lower, upper, infinity):
    domain = Domain((Column("x", kind, lower=lower, upper=upper),))
    frame = pd.DataFrame({"x": pd.Series([1.0, infinity, 2.0]).astype(dtype)})
    bound = upper if infinity > 0 else lower
    says = "values outside" if bound is not None else BROKEN
    with pytest.raises(InvalidDataError, match=f"'x' has {says}") as caught:
        quiet(frame, domain, "raise")
    assert "and values" not in str(caught.value)
    conformed = quiet(frame, domain, "drop")
    assert conformed.frame["x"].tolist() == [1, 2]
    assert conformed.quality.loc["x", "dropped"] == 1
    if bound is None:
        with pytest.raises(InvalidDataError, match=f"'x' has {BROKEN}"):
            quiet(frame, domain, "clip")
    else:
        assert quiet(frame, domain, "clip").frame["x"].tolist() == [1, bound, 2]


@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
def test_a_domain_without_columns_is_refused(on_invalid):
    with pytest.raises(DeclarationError, match="no column is declared"):
        conform(pd.DataFrame({"x": [1]}), Domain(()), on_invalid)


def test_a_label_that_is_no_text_is_refused_before_it_is_paid_for():
    domain = Domain((Column("x", "category", categories=("a", "\ud800")),))
    with pytest.raises(DeclarationError, match="'categories' of column 'x' must be encodable text"):
        pd.DataFrame({"x": ["a"]}).dp.protect(domain, epsilon=1)


def string_view() -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    if not hasattr(pyarrow, "string_view"):
        pytest.skip("this version of pyarrow has no views")
    return pyarrow.string_view()


# ------------------------------------------------------------------ labels of every dtype

DAYS = (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"))
PERIODS = tuple(pd.period_range("2020-01-01", periods=2, freq="D"))
SPANS = (pd.Timedelta("1D"), pd.Timedelta("2D"))
CUTS = tuple(pd.interval_range(0, 2))
LABELLED = {
    "datetime": (DAYS, lambda c: pd.array(c, dtype="datetime64[ns]")),
    "zoned": (tuple(day.tz_localize("UTC") for day in DAYS), lambda c: pd.array(c, "datetime64[ns, UTC]")),
    "timestamp[pyarrow]": (DAYS, lambda c: pd.array(c, dtype="timestamp[us][pyarrow]")),
    "period": (PERIODS, lambda c: pd.array(c, dtype="period[D]")),
    "timedelta": (SPANS, lambda c: pd.array(c, dtype="timedelta64[ns]")),
    "interval": (CUTS, lambda c: pd.arrays.IntervalArray(c)),
    "datetime objects": (DAYS, objects),
    "date objects": (tuple(day.date() for day in DAYS), objects),
    "date32[pyarrow]": (
        tuple(day.date() for day in DAYS),
        lambda c: pd.array(c, dtype="date32[day][pyarrow]"),
    ),
    "int64[pyarrow]": ((1, 2), lambda c: pd.array(c, dtype="int64[pyarrow]")),
    "double[pyarrow]": ((0.1, 2.5), lambda c: pd.array(c, dtype="double[pyarrow]")),
    "bool[pyarrow]": ((True, False), lambda c: pd.array(c, dtype="bool[pyarrow]")),
    "Int64": ((1, 2), lambda c: pd.array(c, dtype="Int64")),
    "boolean": ((True, False), lambda c: pd.array(c, dtype="boolean")),
    "decimals": ((Decimal("0.1"), Decimal(2)), objects),
    "decimal128[pyarrow]": ((Decimal("0.1"), Decimal(2)), arrow),
    "binary[pyarrow]": ((b"a", b"b"), arrow),
    "bytes": ((b"a", b"b"), objects),
    "tuples": (((1,), (1, 2)), objects),
    "dictionary of numbers": (
        (1, 2),
        lambda c: pd.arrays.ArrowExtensionArray(arrow(c).__arrow_array__().dictionary_encode()),
    ),
    "dictionary of texts": (
        ("a", "b"),
        lambda c: pd.arrays.ArrowExtensionArray(arrow(c).__arrow_array__().dictionary_encode()),
    ),
    "string_view": (("a", "b"), lambda c: arrow(c, string_view())),
    "large_string": (("a", "b"), lambda c: arrow(c, pytest.importorskip("pyarrow").large_string())),
    "sparse": (("a", "b"), lambda c: pd.arrays.SparseArray(objects(c).to_numpy())),
    "mixed": (("a", 1), objects),
}


@pytest.mark.full(keep=8)
@pytest.mark.parametrize("kind", LABELLED)
def test_labels_of_every_dtype_conform_and_are_counted_alike(kind):
    """The engine knows every label that conforms: no record is lost in between, and none fails later."""
    if "pyarrow" in kind or "dictionary" in kind:
        pytest.importorskip("pyarrow")
    (first, second), make = LABELLED[kind]
    cells = [first, second, second, None] if kind != "sparse" else [first, second, second]
    frame = pd.DataFrame({"x": make(cells)})
    nulls = len(cells) - 3
    one_label = [((second,), [2])] if kind != "mixed" else []  # the other label is of a type of its own
    for labels, counts in (((first, second), [1, 2]), ((second, first), [2, 1]), *one_label):
        domain = Domain((Column("x", "category", nullable=True, categories=labels),))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", InvalidDataWarning)
            private = frame.dp.protect(domain, epsilon=10**6, on_invalid="drop")
            released = private.dp.value_counts("x", epsilon=1000, sort=False, rng=1)
        assert len(records_of(private)) == sum(counts) + nulls
        assert released.tolist() == [*counts, nulls]


@pytest.mark.parametrize("kind", ["datetime", "date objects", "int64[pyarrow]", "binary[pyarrow]", "bytes"])
def test_a_text_is_no_other_label_that_reads_the_same(kind):
    (first, second), make = LABELLED[kind]
    texts = ("2020-01-01", "2020-01-02", "1", "2", "a", "b")
    domain = Domain((Column("x", "category", categories=texts),))
    with pytest.raises(InvalidDataError, match=r"is declared as text and holds|of another type"):
        quiet(pd.DataFrame({"x": make([first, second])}), domain, "drop")


@pytest.mark.parametrize("cells", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_nested_arrow_cells_are_no_labels(cells):
    domain = Domain((Column("x", "category", categories=("a", "b")),))
    with pytest.raises(InvalidDataError, match=r"is declared as text and holds (list|struct) values"):
        quiet(pd.DataFrame({"x": arrow(cells)}), domain, "drop")


def test_whole_labels_beyond_the_doubles_are_told_apart():
    domain = Domain((Column("x", "integer", categories=(2**60, 2**60 + 1)),))
    cells = [2**60, 2**60 + 1, 2**60 + 1, 2**60 + 2]
    for dtype in ("int64", "Int64", "object"):
        frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
        private = frame.dp.protect(domain, epsilon=10**6, on_invalid="drop")
        assert records_of(private)["x"].tolist() == cells[:3]
        assert private.dp.value_counts("x", epsilon=1000, sort=False, rng=1).tolist() == [1, 2]


def test_every_number_that_conforms_is_added_up():
    """Also those of which pandas knows no value."""
    cells = [Fraction(1, 2), Decimal("1.5"), np.float16(2), 3, None]
    domain = Domain((Column("x", "float", nullable=True, lower=0, upper=10, bins=(0, 1, 10)),))
    private = pd.DataFrame({"x": objects(cells)}).dp.protect(domain, epsilon=10**7)
    assert private.dp.sum("x", epsilon=10**6, rng=1).tolist() == pytest.approx([7], abs=1e-3)
    assert private.dp.value_counts("x", epsilon=1000, sort=False, rng=1).tolist() == [1, 3, 1]


# ------------------------------------------------------------------ several columns, odd labels


def test_every_faulty_column_is_named_at_once_and_no_other():
    domain = Domain((Column("a", "integer", lower=0, upper=1), Column("b", "category", categories=("p",))))
    frame = pd.DataFrame({"a": [NUMBER, 1], "b": [CANARY, None], CANARY: [1, 2]})
    with pytest.raises(InvalidDataError) as caught:
        conform(frame, domain, "raise")
    message = str(caught.value)
    assert "column 'a' has values outside [0, 1]; column 'b' has nulls" in message
    assert "labels that are not declared." in message
    assert CANARY not in message
    assert str(NUMBER) not in message


def test_a_record_is_dropped_for_any_of_its_columns():
    domain = Domain((Column("a", "integer", lower=0, upper=1), Column("b", "category", categories=("p",))))
    frame = pd.DataFrame({"a": [1, 9, 0, 9], "b": ["p", "p", "z", "z"], "c": [1, 2, 3, 4]})
    conformed = conform(frame, domain, "drop")
    assert conformed.frame["c"].tolist() == [1]
    assert conformed.quality["dropped"].to_dict() == {"a": 2, "b": 2}


def test_undeclared_columns_are_let_alone():
    frame = pd.DataFrame({"x": [20, 30], "y": [np.inf, np.nan], "z": [[1], {}]})
    conformed = conform(frame, Domain((WHOLE,)), "drop")
    assert conformed.frame["y"].tolist()[0] == np.inf
    assert conformed.frame["z"].tolist() == [[1], {}]
    assert list(conformed.quality.index) == ["x"]


@pytest.mark.parametrize("name", [3, ("a", 1), ("a", 1, 2), "dp", 2.5, "", pd.Timestamp("2020")])
@pytest.mark.parametrize("on_invalid", ["clip", "drop"])
def test_a_column_of_any_name_conforms(name, on_invalid):
    frame = pd.DataFrame([[1.0, 1], [np.inf, 2], [500.0, 3]])
    frame.columns = pd.Index([name, "row"], tupleize_cols=False)
    domain = Domain((Column(name, "integer", lower=0, upper=9),))
    conformed = quiet(frame, domain, on_invalid)
    column = conformed.frame.iloc[:, 0]
    assert column.tolist() == ([1, 9, 9] if on_invalid == "clip" else [1])
    assert column.dtype == np.int64
    assert list(conformed.frame.columns) == [name, "row"]
    assert conformed.quality.index.tolist() == [name]
    for wrong in (pd.DataFrame({"other": [1]}), pd.concat([frame, frame], axis=1)):
        with pytest.raises(InvalidDataError):
            conform(wrong, domain, on_invalid)


def test_a_missing_and_a_doubled_column_are_told_apart():
    domain = Domain((WHOLE,))
    with pytest.raises(InvalidDataError, match="'x' is declared but not in the frame") as caught:
        conform(pd.DataFrame({CANARY: [1]}), domain)
    assert CANARY not in str(caught.value)
    twice = pd.DataFrame([[20, 30]], columns=["x", "x"])
    with pytest.raises(InvalidDataError, match="'x' appears more than once"):
        conform(twice, domain)


@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
@pytest.mark.parametrize("index", [[0, 0, 0], [None, None, CANARY], [(1, 2), (1, 2), (3, 4)]])
def test_an_index_of_any_kind_is_kept(on_invalid, index):
    frame = pd.DataFrame({"x": [20, 30, 40]}, index=pd.Index(index, tupleize_cols=False))
    conformed = conform(frame, Domain((WHOLE,)), on_invalid)
    pd.testing.assert_index_equal(conformed.frame.index, frame.index)
    faulty = frame.assign(x=[20, 5, 40])
    if on_invalid == "drop":
        assert conform(faulty, Domain((WHOLE,)), on_invalid).frame["x"].tolist() == [20, 40]
    if on_invalid == "clip":
        assert conform(faulty, Domain((WHOLE,)), on_invalid).frame["x"].tolist() == [20, 18, 40]


@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
def test_an_empty_frame_conforms(on_invalid):
    for dtype in ("int64", "float64", "object", "Int64"):
        conformed = conform(pd.DataFrame({"x": pd.Series([], dtype=dtype)}), Domain((WHOLE,)), on_invalid)
        assert len(conformed.frame) == 0
        assert conformed.quality.loc["x"].tolist() == [0, 0, 0, 0]
        assert conformed.touching == ()


@pytest.mark.parametrize("on_invalid", ["keep", "", None, True, ["raise"], "RAISE"])
def test_an_unknown_fate_is_refused(on_invalid):
    with pytest.raises(ParameterError, match="'on_invalid' must be one of 'raise', 'clip', 'drop'"):
        conform(pd.DataFrame({"x": [20]}), Domain((WHOLE,)), on_invalid)


@pytest.mark.parametrize(
    ("cells", "touches"),
    [([18, 50], True), ([50, 90], True), ([19, 89], False), ([18, 90], True), ([5, 100], False)],
)
def test_a_bound_that_the_data_reaches_is_told(cells, touches):
    conformed = conform(pd.DataFrame({"x": cells}), Domain((WHOLE,)), "clip")
    assert conformed.touching == (("x",) if touches else ())
    assert conform(pd.DataFrame({"x": [20, 40]}), Domain((CODE,)), "clip").touching == ()


def test_whole_numbers_that_nulls_made_floats_are_whole_again():
    frame = pd.DataFrame({"x": [20.0, np.nan, 30.0]})
    assert conform(frame, Domain((WHOLE,)), "drop").frame["x"].dtype == np.int64
    nullable = Domain((Column("x", "integer", nullable=True, lower=18, upper=90),))
    assert conform(frame, nullable, "drop").frame["x"].dtype == np.float64


def test_a_whole_float_beyond_every_integer_is_not_garbled():
    unbounded = Domain((Column("x", "integer"),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            conformed = conform(pd.DataFrame({"x": [1e300, 20.0]}), unbounded, "raise")
        except InvalidDataError:
            return
    assert conformed.frame["x"].tolist() == [1e300, 20.0]


# ------------------------------------------------------------------ through protect


def schema(**options) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(
        {
            "age": pa.Column(int, pa.Check.in_range(18, 90), metadata={"dp": {}}, **options),
            "town": pa.Column(str, pa.Check.isin(["a", "b"]), metadata={"dp": {}}),
        }
    )


def test_protect_clips_and_drops_as_declared():
    frame = pd.DataFrame({"age": [20, 5, 100, 40], "town": ["a", "b", "a", "b"]})
    with pytest.raises(InvalidDataError):
        frame.dp.protect(schema(), epsilon=1)
    clipped = frame.dp.protect(schema(), epsilon=1, on_invalid="clip")
    assert records_of(clipped)["age"].tolist() == [20, 18, 90, 40]
    assert clipped.dp.quality().loc["age"].to_dict() == {"clipped": 2, "null": 0, "unseen": 0, "dropped": 0}
    dropped = frame.dp.protect(schema(), epsilon=1, on_invalid="drop")
    assert records_of(dropped)["age"].tolist() == [20, 40]
    assert dropped.dp.quality().loc["age", "dropped"] == 2
    assert frame["age"].tolist() == [20, 5, 100, 40]


def test_protect_clips_what_the_schema_coerces():
    frame = pd.DataFrame({"age": ["20", "5", "100"], "town": ["a", "b", "a"]})
    clipped = frame.dp.protect(schema(coerce=True), epsilon=1, on_invalid="clip")
    assert records_of(clipped)["age"].tolist() == [20, 18, 90]


def test_protect_clips_with_a_domain_too():
    domain = Domain((WHOLE,))
    frame = pd.DataFrame({"x": [5, 20]})
    for on_invalid, cells in (("clip", [18, 20]), ("drop", [20])):
        private = frame.dp.protect(domain, epsilon=1, on_invalid=on_invalid)
        assert records_of(private)["x"].tolist() == cells


def test_cells_that_cannot_be_clipped_are_refused_without_a_cell(texts_of):
    frame = pd.DataFrame({"age": [20, NUMBER], "town": [CANARY, "a"]})
    for on_invalid in ("raise", "clip"):
        with pytest.raises(InvalidDataError) as caught:
            frame.dp.protect(schema(), epsilon=1, on_invalid=on_invalid)
        for text in texts_of(caught.value):
            assert CANARY not in text
            assert str(NUMBER) not in text
    assert len(records_of(frame.dp.protect(schema(), epsilon=1, on_invalid="drop"))) == 0


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_dropped_records_make_the_number_of_rows_private(neighbors):
    """Under replacement a record may be dropped in one table and kept in its neighbour."""
    from pdprivacy.frames import find

    frame = pd.DataFrame({"x": [20, 5, 30]})
    private = frame.dp.protect(Domain((WHOLE,)), epsilon=1, on_invalid="drop", neighbors=neighbors)
    scope = find(private).scope
    assert scope.rows is None
    assert scope.filtered
    released = private.dp.sum("x", epsilon=1, rng=1)
    assert released.dp.metadata.sensitivity >= 90  # a record may come or go


def hinted(frame, declared, on_invalid="raise") -> str:
    with pytest.raises(InvalidDataError) as caught:
        frame.dp.protect(declared, epsilon=1, on_invalid=on_invalid)
    return caught.value.hint


DP = {"dp": {}}
INTEGERS = {"x": pa.Column(int, pa.Check.in_range(0, 9), metadata=DP)}
HINTED = [
    # (columns of the schema, its options, cells of x, the fates that mend them)
    (INTEGERS, {}, [5, 20], {"clip", "drop"}),
    (INTEGERS, {}, [5.0, None], {"drop"}),
    (INTEGERS, {}, [5.0, 2.5], {"drop"}),
    (INTEGERS, {}, [5.0, 2.5, 20.0], {"drop"}),
    (INTEGERS, {}, ["a", "b"], set()),
    (INTEGERS, {"strict": True}, [5, 6], set()),
    (INTEGERS, {"strict": True}, [5, 20], set()),
    ({"x": pa.Column(int, pa.Check.in_range(0, 9))} | {"y": pa.Column(int, metadata=DP)}, {}, [5, 20], set()),
    ({"x": pa.Column(int, pa.Check.in_range(0, 9), unique=True, metadata=DP)}, {}, [5, 5, 20], set()),
    ({"x": pa.Column(float, [pa.Check.gt(0), pa.Check.le(9)], metadata=DP)}, {}, [0.0, 1.0], set()),
    (
        {"x": pa.Column(float, [pa.Check.ge(0), pa.Check.le(9)], metadata=DP)},
        {},
        [-1.0, 1.0],
        {"clip", "drop"},
    ),
    (
        {"x": pa.Column(int, pa.Check.in_range(0, 9), metadata={"dp": {"bounds": [0, 30]}})},
        {},
        [5, 20],
        set(),
    ),
    (
        {"x": pa.Column(int, pa.Check.in_range(0, 30), metadata={"dp": {"bounds": [0, 9]}})},
        {},
        [5, 50],
        {"clip", "drop"},
    ),
    ({"x": pa.Column(int, pa.Check.isin([1, 2]), metadata=DP)}, {}, [1, 5], {"drop"}),
    ({"x": pa.Column(int, pa.Check.eq(1), metadata=DP)}, {}, [1, 5], {"drop"}),
    ({"x": pa.Column(str, pa.Check.isin(["a", "b"]), metadata=DP)}, {}, ["a", "c"], {"drop"}),
    (
        {"x": pa.Column(str, pa.Check.isin(["a"]), metadata={"dp": {"categories": ["a", "c"]}})},
        {},
        ["a", "c"],
        set(),
    ),
    ({"x": pa.Column(str, metadata=DP)}, {}, ["a", None], {"drop"}),
    (
        {"x": pa.Column(int, pa.Check(lambda cell: cell < 9, element_wise=True), metadata=DP)},
        {},
        [1, 9],
        set(),
    ),
]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize(("columns", "options", "cells", "fates"), HINTED)
def test_a_fate_is_offered_where_it_mends_all_that_failed(columns, options, cells, fates):
    declared = pa.DataFrameSchema(columns, **options)
    frame = pd.DataFrame({"x": cells, "y": 1})
    hint = hinted(frame, declared)
    assert {fate for fate in ("clip", "drop") if f'on_invalid="{fate}"' in hint} == fates
    for fate in ("clip", "drop"):  # what is offered is so
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if fate in fates:
                frame.dp.protect(declared, epsilon=1, on_invalid=fate)
            else:
                assert 'on_invalid="clip"' not in hinted(frame, declared, fate)
    if options:
        assert "leave other columns out" in hint


def test_clipping_is_offered_where_it_mends_all_faults():
    domain = Domain((Column("x", "integer", lower=0, upper=9), Column("y", "category", categories=("a",))))
    good = {"x": [1, 2], "y": ["a", "a"]}
    for cells, on_invalid, clips in (
        ({"x": [1, 20]}, "raise", True),
        ({"y": ["a", "b"]}, "raise", False),
        ({"x": [1, 20], "y": ["a", "b"]}, "raise", False),
        ({"y": ["a", "b"]}, "clip", False),
        ({"x": [1, None]}, "clip", False),
    ):
        frame = pd.DataFrame({**good, **cells})
        hint = hinted(frame, domain, on_invalid)
        assert ('on_invalid="clip"' in hint) == clips
        assert 'on_invalid="drop"' in hint
