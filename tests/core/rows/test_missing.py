"""Missing-value codes are null before anything else, on every engine, and to pandera (`nullable`)."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain, read_schema
from pdprivacy.core.rows.missing import frame_without_codes, without_codes
from pdprivacy.errors import DeclarationError, InvalidDataError, ParameterError
from tests.support.canaries import CANARY, NUMBER
from tests.support.engine_frames import ENGINES, each_engine, frame_of

ARROW = pytest.importorskip("pyarrow", reason="the frames of these tests are made of Arrow tables")

DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=120, missing=(-99, 999)),
        Column("pay", "float", lower=0, upper=1000, missing=(-1,)),
        Column("health", "category", categories=("no", "yes"), missing=("n/a",)),
        Column("rooms", "integer", lower=1, upper=2, categories=(1, 2), missing=(9,)),
    )
)
ROWS = {
    "age": [31, -99, 999, 54] * 25,
    "pay": [1.0, -1.0, 2.0, 3.0] * 25,
    "health": ["no", "n/a", "yes", "no"] * 25,
    "rooms": [1, 2, 9, 9] * 25,
}
EXACT = {"epsilon": 10**5}


def exact(private: pdprivacy.ProtectedFrame) -> dict[str, object]:
    """The sums and counts of a frame, whose noise is far below one half."""
    counts = {
        name: private.dp.value_counts(name, sort=False, **EXACT).tolist() for name in ("health", "rooms")
    }
    return {**counts, "sums": private.dp.sum(["age", "pay"], **EXACT).round().tolist()}


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_codes_are_null_on_every_engine(engine, request):
    if engine == "Spark":
        request.getfixturevalue("spark")
    private = pdprivacy.protect(frame_of(engine, pd.DataFrame(ROWS)), DOMAIN, epsilon=10**6)
    # by hand: the four rows without their codes, 25 times
    assert exact(private) == {
        "sums": [25 * (31 + 54), 25 * (1 + 2 + 3)],
        "health": [50, 25, 25],
        "rooms": [25, 25, 50],
    }
    assert private.dp.quality()["null"].tolist() == [50, 25, 25, 50]
    assert private.dp.domain == DOMAIN.without_codes
    assert all(column.nullable and not column.missing for column in private.dp.domain.columns)
    assert pdprivacy.check(frame_of(engine, pd.DataFrame(ROWS)), DOMAIN).empty


@pytest.mark.parametrize("engine", each_engine(ENGINES))
def test_only_a_cell_of_the_data_is_a_code_and_no_number_that_is_moved_to_it(engine, request):
    """150 becomes the upper bound 99, which is a code; the cells that hold 99 are null."""
    if engine == "Spark":
        request.getfixturevalue("spark")
    domain = Domain((Column("age", "integer", lower=0, upper=99, missing=(99, -5)),))
    frame = frame_of(engine, pd.DataFrame({"age": [150, 99, -5, 30] * 25}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clipped, left = (
            pdprivacy.protect(frame, domain, epsilon=10**6, on_invalid=fate) for fate in ("clip", "drop")
        )
    assert clipped.dp.sum("age", **EXACT).round().item() == 25 * (99 + 30)
    assert left.dp.sum("age", **EXACT).round().item() == 25 * 30
    assert left.dp.count(**EXACT).round().item() == 75  # records with a null stay


CELLS = {
    "int64": pd.Series([31, -99, 54]),
    "int8": pd.Series([31, -99, 54], dtype="int8"),
    "uint16": pd.Series([31, 999, 54], dtype="uint16"),
    "float": pd.Series([31.0, -99.0, np.nan]),
    "Int64": pd.Series([31, -99, None], dtype="Int64"),
    "arrow": pd.Series([31, -99, None], dtype=pd.ArrowDtype(ARROW.int64())),
    "decimal": pd.Series([Decimal(31), Decimal(-99)], dtype=pd.ArrowDtype(ARROW.decimal128(9, 1))),
    "objects": pd.Series([31, "n/a", None, -99, True, Decimal(999), "-99"], dtype=object),
    "text": pd.Series(["31", "n/a", None, "N/A"]),
    "string": pd.Series(["31", "n/a", None], dtype="string"),
    "view": pd.Series(["31", "n/a", None], dtype=pd.ArrowDtype(ARROW.string_view()))
    if hasattr(ARROW, "string_view")
    else pd.Series([], dtype=object),
    "categorical": pd.Series(["31", "n/a", None], dtype="category"),
    "categories of numbers": pd.Series([31, -99, None], dtype=pd.CategoricalDtype([31, -99])),
    "sparse": pd.Series([0, 0, -99], dtype=pd.SparseDtype("int64", 0)),
    "bool": pd.Series([True, False]),
    "dates": pd.Series(pd.to_datetime(["2020-01-01", "1999-01-01"])),
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_a_number_is_equal_to_a_number_and_a_text_to_a_text(cells):
    column = Column("x", "category", missing=(-99, 999, 1, "n/a"))
    before = cells.copy()
    changed = without_codes(cells, column)
    nulls = (cells if changed is None else changed).isna().tolist()

    def is_code(cell):
        if isinstance(cell, bool | np.bool_ | pd.Timestamp) or pd.isna(cell):
            return False
        return cell == "n/a" if isinstance(cell, str) else cell in (-99, 999, 1)

    assert nulls == [bool(pd.isna(cell)) or is_code(cell) for cell in cells.tolist()]
    left = [cell for cell, null in zip(cells.tolist(), nulls, strict=True) if not null]
    kept = cells if changed is None else changed
    assert [cell for cell, null in zip(kept.tolist(), nulls, strict=True) if not null] == left
    assert [None if pd.isna(cell) else cell for cell in cells.tolist()] == [
        None if pd.isna(cell) else cell for cell in before.tolist()
    ]


def test_large_codes_are_told_apart():
    column = Column("x", "integer", missing=(2**53 + 1,))
    cells = pd.Series([2**53, 2**53 + 1, 2**53 + 2])
    assert without_codes(cells, column).isna().tolist() == [False, True, False]


def test_rows_are_found_by_position_and_a_column_that_is_not_there_is_left_to_the_check():
    frame = pd.DataFrame({"age": [31, -99]}, index=["a", "a"])
    assert frame_without_codes(frame, DOMAIN)["age"].isna().tolist() == [False, True]
    assert frame["age"].tolist() == [31, -99]


# ------------------------------------------------------------------ pandera schemas


def column(dtype, *checks, missing, **options):
    return pa.Column(dtype, list(checks), metadata={"dp": {"missing": missing}}, **options)


def test_a_schema_without_nulls_holds_codes_as_nulls():
    schema = pa.DataFrameSchema(
        {
            "age": column(int, pa.Check.in_range(0, 120), missing=[-99, 999]),
            "pay": column(float, pa.Check.in_range(0, 1000), missing={-1}),
            "health": column(str, pa.Check.isin(["no", "n/a", "yes"]), missing=["n/a"]),
            "rooms": column("int64", pa.Check.isin([1, 2, 9]), missing=np.array([9])),
        }
    )
    assert read_schema(schema) == DOMAIN
    private = pd.DataFrame(ROWS).dp.protect(schema, epsilon=10**6)
    assert exact(private) == exact(pd.DataFrame(ROWS).dp.protect(DOMAIN, epsilon=10**6))
    assert schema.columns["age"].nullable is False
    assert str(schema.columns["age"].dtype) == "int64"
    assert pd.DataFrame(ROWS).dp.check(schema).empty
    outside = pd.DataFrame(ROWS).assign(age=[31, -99, 998, 54] * 25)
    with pytest.raises(InvalidDataError, match="in_range"):
        outside.dp.protect(schema, epsilon=1)


def test_text_is_a_code_before_it_is_coerced_and_the_number_afterwards():
    schema = pa.DataFrameSchema(
        {
            "age": column(int, pa.Check.in_range(0, 120), missing=["n/a", -99], coerce=True),
            "member": column(bool, missing=["?"], coerce=True),
        }
    )
    member = pd.Series([True, "?", False, True] * 25, dtype=object)
    frame = pd.DataFrame({"age": ["31", "n/a", "-99", "54"] * 25, "member": member})
    private = frame.dp.protect(schema, epsilon=10**6)
    assert private.dp.sum("age", **EXACT).round().item() == 25 * (31 + 54)
    assert private.dp.value_counts("member", sort=False, **EXACT).tolist() == [25, 50, 25]
    assert frame.dp.check(schema).empty
    # a text that is no code is no number
    frame.loc[0, "age"] = CANARY
    with pytest.raises(InvalidDataError) as refused:
        frame.dp.protect(schema, epsilon=1)
    assert CANARY not in str(refused.value)


def test_codes_are_declared_beside_a_schema():
    schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120))})
    frame = pd.DataFrame({"age": [31, -99, 54] * 30})
    private = frame.dp.protect(schema, epsilon=10**6, columns={"age": {"missing": [-99]}})
    assert private.dp.sum("age", **EXACT).round().item() == 30 * (31 + 54)
    assert private.dp.count(**EXACT).round().item() == 90


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (-99, "must be a list of codes"),
        ("n/a", "must be a list of codes"),
        ({-99: "refused"}, "must be a list of codes"),
        ([None], "must hold numbers and texts"),
        ([float("nan")], "must hold numbers and texts"),
        ([True], "must hold numbers and texts"),
        ([[1]], "must hold numbers and texts"),
        ([datetime.date(9999, 12, 31)], "must hold numbers and texts"),
        ([1], "must have no value in common"),
        ([-99, ...], "not filled in yet"),
    ],
)
def test_codes_that_cannot_be_declared_are_refused(missing, message):
    with pytest.raises(DeclarationError, match=message) as refused:
        read_schema(pa.DataFrameSchema({"member": column(bool, missing=missing)}))
    assert refused.value.hint
    assert str(NUMBER) not in str(refused.value)


def test_codes_that_leave_no_label_are_refused():
    with pytest.raises(DeclarationError, match="no value of column 'x'"):
        read_schema(pa.DataFrameSchema({"x": column(str, pa.Check.isin(["n/a"]), missing=["n/a"])}))
    with pytest.raises(DeclarationError, match="no value in common"):
        Column("x", "category", categories=("no", "n/a"), missing=("n/a",))


def test_dates_have_no_codes():
    days = pa.Check.in_range(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
    with pytest.raises(DeclarationError, match="the column holds dates"):
        read_schema(pa.DataFrameSchema({"day": column("datetime64[ns]", days, missing=["n/a"])}))


@pytest.mark.parametrize("engine", each_engine(["pandas", "Polars"]))
def test_the_unit_has_no_codes(engine):
    frame = frame_of(engine, pd.DataFrame(ROWS))
    with pytest.raises(ParameterError, match="The column of the unit cannot have missing-value codes"):
        pdprivacy.protect(frame, DOMAIN, epsilon=1, unit="age", max_rows=1)


def test_codes_are_part_of_the_declaration():
    plain, coded = Column("x", "integer", nullable=True), Column("x", "integer", missing=(-99,))
    assert Domain((plain,)).fingerprint() != Domain((coded,)).fingerprint()
    assert Domain((coded,)).without_codes == Domain((plain,))
    other = Domain((Column("x", "integer", missing=("-99",)),))
    assert other.fingerprint() != Domain((coded,)).fingerprint()
    assert "missing" not in repr(Domain((plain,)))
    assert repr(Domain((coded,))).splitlines()[1].split() == ["x", "integer", "yes", "-99"]
