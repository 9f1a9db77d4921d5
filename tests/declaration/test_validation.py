"""Data against its schema: what fails is named without a cell, and coercion looks at one record alone."""

from __future__ import annotations

import enum
import re
import traceback
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.declaration.schema import coerce, validate
from pdprivacy.errors import InvalidDataError, InvalidDataWarning, ParameterError
from tests.support.canaries import CANARY, NUMBER, refused

DP = {"dp": {}}


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Grade(enum.StrEnum):
    GOOD = "good"
    POOR = "poor"


# ------------------------------------------------------------------ validate


def one(*arguments, **options) -> pa.DataFrameSchema:
    return pa.DataFrameSchema({"x": pa.Column(*arguments, metadata=DP, **options)})


def explode(series):
    raise ValueError(f"cells: {list(series)}")


@pytest.mark.full(keep=4)
@pytest.mark.parametrize(
    ("cells", "schema", "named"),
    [
        ([1, NUMBER], one(int, pa.Check.in_range(18, 65)), "column 'x': in_range(18, 65)"),
        ([1, NUMBER], one(int, pa.Check.lt(5)), "column 'x': less_than(5)"),
        (["a", CANARY], one(str, pa.Check.isin(["a"])), "column 'x': isin(['a'])"),
        (["a", CANARY], one(str, pa.Check.isin({"b", "a"})), "column 'x': isin(['a', 'b'])"),
        (["a", CANARY], one(int), "column 'x': dtype('int64')"),
        ([1, NUMBER], one(str), "column 'x': dtype("),
        (["a", CANARY], one(int, coerce=True), "coerce_dtype('int64')"),
        (["a", CANARY], one(Colour, coerce=True), "coerce_dtype('category')"),
        ([CANARY, None], one(str), "column 'x': not_nullable"),
        ([NUMBER, NUMBER], one(int, unique=True), "column 'x': field_uniqueness"),
        ([CANARY, 3], one(None, pa.Check.ge(3)), "column 'x': greater_than_or_equal_to(3)"),
        ([CANARY, "a"], one(None, pa.Check(explode)), "column 'x': explode"),
        ([CANARY, "a"], one(None, pa.Check(lambda s: s == "a")), "column 'x': a check without a name"),
        ([CANARY, "a"], one(None, pa.Check(lambda s: s == "a", error="says a")), "column 'x': says a"),
        ([CANARY, "a"], one(None, pa.Check(lambda s: s == "a", name="says_a")), "column 'x': says_a"),
        ([CANARY, "a"], one(None, pa.Check.str_matches("^a$")), "column 'x': str_matches("),
        ([CANARY], pa.DataFrameSchema({"y": pa.Column(metadata=DP)}), "column 'y': column_in_dataframe"),
        (
            [NUMBER],
            pa.DataFrameSchema({"x": pa.Column(metadata=DP)}, checks=pa.Check(explode)),
            "schema: explode",
        ),
        (
            [NUMBER, NUMBER],
            pa.DataFrameSchema({"x": pa.Column(metadata=DP)}, unique=["x"]),
            "schema: multiple_fields_uniqueness",
        ),
        (
            [CANARY],
            pa.DataFrameSchema({"x": pa.Column(metadata=DP)}, dtype=int),
            "column 'x': dtype('int64')",
        ),
        (
            [NUMBER],
            pa.DataFrameSchema({"x": pa.Column(metadata=DP)}, index=pa.Index(int, pa.Check.ge(1))),
            "index: greater_than_or_equal_to).",
        ),
        (  # an inferred schema has the data's own extremes in what is not declared for release
            [NUMBER],
            pa.DataFrameSchema(
                {"x": pa.Column(int, pa.Check.ge(NUMBER + 1)), "y": pa.Column(metadata=DP, required=False)}
            ),
            "column 'x': greater_than_or_equal_to",
        ),
    ],
)
def test_invalid_data_is_reported_without_a_cell(cells, schema, named):
    message = refused(pd.DataFrame({"x": cells}), schema)
    assert named in message
    assert "in 1 place (" in message


def test_several_columns_are_reported_at_once():
    schema = pa.DataFrameSchema(
        {
            "x": pa.Column(int, [pa.Check.lt(5), pa.Check.ge(0)], metadata=DP),
            "y": pa.Column(str, pa.Check.isin(["a"]), metadata=DP),
        }
    )
    message = refused(pd.DataFrame({"x": [-1, NUMBER], "y": ["a", CANARY]}, index=[CANARY, "b"]), schema)
    assert "in 2 places (column 'x': less_than(5), greater_than_or_equal_to(0); column 'y': isin(['a']))" in (
        message
    )


def test_a_label_that_is_not_declared_is_not_named():
    strict = pa.DataFrameSchema({"x": pa.Column(metadata=DP)}, strict=True)
    assert "schema: column_in_schema" in refused(pd.DataFrame({"x": [1], CANARY: [2]}), strict)
    schema = pa.DataFrameSchema({"x": pa.Column(metadata=DP), "^C": pa.Column(int, regex=True)})
    assert "schema: dtype('int64')" in refused(pd.DataFrame({"x": [1], CANARY: ["a"]}), schema)


def test_duplicate_labels_are_refused_and_named_where_declared():
    schema = one(int)
    for labels, named in ((["x", "x"], " ('x')"), (["x", CANARY, CANARY], ".")):
        frame = pd.DataFrame([range(len(labels))], columns=labels)
        with pytest.raises(InvalidDataError, match="a column label appears more than once") as caught:
            validate(frame, schema)
        assert f"more than once{named}" in str(caught.value)
        assert CANARY not in str(caught.value)


def test_a_pandera_that_breaks_is_reported_by_the_kind_of_its_error(monkeypatch):
    def stop(self, *arguments, **options):
        raise KeyError(CANARY)

    schema = one(int)
    monkeypatch.setattr(pa.DataFrameSchema, "validate", stop)
    assert "schema: pandera stopped with KeyError" in refused(pd.DataFrame({"x": [1]}), schema)


def test_an_error_of_pandera_that_is_not_lazy_is_reported(monkeypatch):
    eager = pa.DataFrameSchema.validate

    def stop(self, frame, lazy=False, inplace=False):
        return eager(self, frame, lazy=False, inplace=inplace)

    monkeypatch.setattr(pa.DataFrameSchema, "validate", stop)
    assert "column 'x': less_than(5)" in refused(pd.DataFrame({"x": [NUMBER]}), one(int, pa.Check.lt(5)))


def test_a_valid_frame_is_returned_and_the_input_left_alone():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]})
    before = frame.copy()
    validated = validate(frame, one(int, coerce=True))
    assert validated["x"].dtype == np.int64
    assert validated["y"].tolist() == ["a", "b"]
    pd.testing.assert_frame_equal(frame, before)
    assert validated is not frame


def test_an_enum_column_holds_members():
    frame = pd.DataFrame({"x": pd.Categorical([Colour.RED, None], categories=list(Colour))})
    assert validate(frame, one(Colour, nullable=True))["x"].iloc[0] is Colour.RED
    assert validate(pd.DataFrame({"x": ["good"]}), one(Grade, coerce=True))["x"].dtype == "category"


def test_a_domain_checks_nothing():
    frame = pd.DataFrame({"x": [NUMBER]})
    assert validate(frame, Domain((Column("x", "integer", lower=0, upper=1),))) is frame


def test_other_objects_than_frames_are_refused():
    with pytest.raises(ParameterError, match="'frame' must be a pandas DataFrame"):
        validate([1], one(int))


def test_a_warning_of_a_check_shows_nothing(recwarn):
    schema = one(int, pa.Check.lt(5, raise_warning=True))
    assert validate(pd.DataFrame({"x": [NUMBER]}), schema)["x"].tolist() == [NUMBER]
    assert not [warning for warning in recwarn if str(NUMBER) in str(warning.message)]


def test_the_schema_is_run_even_where_pandera_is_switched_off():
    from pandera.config import config_context

    with config_context(validation_enabled=False, validation_depth="SCHEMA_ONLY"):
        assert "in_range(0, 5)" in refused(pd.DataFrame({"x": [NUMBER]}), one(int, pa.Check.in_range(0, 5)))


# ------------------------------------------------------------------ coerce


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["1", CANARY], int),
        ([1.0, None, NUMBER], int),
        (["1", CANARY], float),
        (["1", CANARY], "Int64"),
        pytest.param(
            [1, 2**40 + NUMBER],
            "int8",
            marks=pytest.mark.skipif(np.__version__ < "2", reason="numpy 1 wraps numbers around silently"),
        ),
        ([[NUMBER], {CANARY: 1}], float),
        (["\ud800" + CANARY, "a"], int),
    ],
)
def test_failed_coercions_are_refused_without_a_cell(cells, dtype, texts_of):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": ["1", "2", "3"][: len(cells)]})
    frame.index = pd.Index([CANARY, NUMBER, 0][: len(cells)])
    schema = pa.DataFrameSchema(
        {"x": pa.Column(dtype, coerce=True, metadata=DP), "y": pa.Column(int, coerce=True, metadata=DP)}
    )
    with pytest.raises(InvalidDataError, match=r"cannot be coerced \(column 'x' to ") as caught:
        coerce(frame, schema)
    assert "column 'y'" not in str(caught.value)
    assert caught.value.hint
    texts = [*texts_of(caught.value), *traceback.format_exception(caught.value)]
    for text in texts:
        assert CANARY not in text
        assert str(NUMBER) not in text


def test_labels_that_appear_twice_are_refused_before_anything_is_coerced(texts_of):
    schema = one(int, coerce=True)
    for labels, named in ((["x", "x"], " ('x')"), (["x", CANARY, CANARY], ".")):
        frame = pd.DataFrame([["1"] * len(labels)], columns=labels)
        with pytest.raises(InvalidDataError, match="a column label appears more than once") as caught:
            coerce(frame, schema)
        assert f"more than once{named}" in str(caught.value)
        for text in texts_of(caught.value):
            assert CANARY not in text


def test_only_what_the_schema_coerces_is_coerced():
    frame = pd.DataFrame({"x": ["1", "2"], "y": ["3", "4"], CANARY: ["5", "6"]})
    before = frame.copy(deep=True)
    schema = pa.DataFrameSchema(
        {"x": pa.Column(int, coerce=True, metadata=DP), "y": pa.Column(int), "z": pa.Column(int, coerce=True)}
    )
    coerced = coerce(frame, schema)
    assert coerced["x"].tolist() == [1, 2]
    pd.testing.assert_frame_equal(coerced[["y", CANARY]], before[["y", CANARY]])
    pd.testing.assert_frame_equal(frame, before)
    domain = Domain((Column("x", "integer"),))
    assert coerce(frame, domain) is frame
    with pytest.raises(ParameterError, match="'frame' must be a pandas DataFrame"):
        coerce(["1"], schema)


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        # the format of all dates is guessed from the first: the same cell, read two ways
        (["13/01/2020", "01/02/2020", CANARY], "datetime64[ns]"),
        (["1 days", CANARY], "timedelta64[ns]"),
        # a null makes whole numbers floating, and "1" becomes "1.0"
        ([1.0, None, NUMBER], str),
        ([1.5, NUMBER], "string"),
    ],
)
@pytest.mark.parametrize("run", [coerce, validate])
def test_coercion_that_looks_at_other_records_is_refused_without_a_cell(cells, dtype, run):
    frame = pd.DataFrame({"x": cells})
    schema = pa.DataFrameSchema({"x": pa.Column(dtype, coerce=True, nullable=True, metadata=DP)})
    with pytest.raises(
        InvalidDataError, match=r"^coercing column 'x' to .* would look at other records"
    ) as caught:
        run(frame, schema)
    assert CANARY not in str(caught.value)
    assert str(NUMBER) not in str(caught.value)
    # a column that is not released may be coerced as its owner likes
    assert (
        run(
            frame.assign(x=0, y=[str(k) for k in range(len(frame))]),
            pa.DataFrameSchema({"x": pa.Column(int, metadata=DP), "y": pa.Column(int, coerce=True)}),
        )
        is not None
    )


# ------------------------------------------------------------------ coercion changes no number


FRACTIONS = [
    pd.Series([20.9, 21.0, 22.0]),
    pd.Series([20.9, 21.0, 22.0], dtype="float32"),
    pd.Series([20.9, 21.0, 22.0], dtype="Float64"),
    pd.Series([20.9, 21.0, 22.0], dtype="double[pyarrow]"),
    pd.Series([20.9, 21, 22], dtype=object),
    pd.Series([Decimal("20.9"), Decimal(21), Decimal(22)], dtype=object),
]


@pytest.mark.parametrize("values", FRACTIONS, ids=lambda values: str(values.dtype))
def test_coercion_truncates_no_fraction(values):
    frame, schema = pd.DataFrame({"x": values}), one(int, pa.Check.in_range(0, 100), coerce=True)
    for run in (validate, lambda frame, schema: frame.dp.protect(schema, epsilon=1)):
        with pytest.raises(InvalidDataError, match=r"column 'x' to int64.* would change numbers") as caught:
            run(frame, schema)
        assert "20" not in str(caught.value)
    with pytest.warns(InvalidDataWarning), pytest.raises(InvalidDataError, match="not whole"):
        frame.dp.protect(schema, epsilon=1, on_invalid="clip")
    with pytest.warns(InvalidDataWarning):
        private = frame.dp.protect(schema, epsilon=10**5, on_invalid="drop")
    assert private.dp.quality().loc["x", "dropped"] == 1
    assert round(float(private.dp.sum("x", epsilon=90_000)["x"])) == 43
    assert frame.dp.check(schema)["fault"].tolist() == ["fraction"]


@pytest.mark.parametrize("values", FRACTIONS, ids=lambda values: str(values.dtype))
def test_whole_numbers_of_any_dtype_are_coerced(values):
    frame = pd.DataFrame({"x": values.iloc[1:]})
    schema = one(int, pa.Check.in_range(0, 100), coerce=True)
    assert validate(frame, schema)["x"].tolist() == coerce(frame, schema)["x"].tolist() == [21, 22]


@pytest.mark.parametrize(("cells", "dtype"), [([1e300, 1.0], int), ([2, 1], bool), ([-1.0, 1.0], "uint8")])
def test_coercion_changes_no_number_beyond_the_dtype(cells, dtype):
    with pytest.raises(InvalidDataError):
        pd.DataFrame({"x": cells}).dp.protect(one(dtype, coerce=True), epsilon=1)


class Sized:
    """A cell of 48 million numbers, which counts how often one of them is read."""

    read = 0

    def __len__(self):
        return 48_000_000

    def __getitem__(self, index):
        Sized.read += 1
        raise IndexError


class Digits(Decimal):
    """A decimal that counts how often all its digits are written."""

    written = 0

    def __int__(self):
        Digits.written += 1
        return 0


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "bool"])
def test_the_numbers_in_a_cell_of_another_type_are_not_read(dtype):
    checks = [] if dtype == "bool" else pa.Check.in_range(0, 10)
    schema = pa.DataFrameSchema({"x": pa.Column(dtype, checks, nullable=True, metadata=DP)})
    frame = pd.DataFrame({"x": pd.Series([1, None, Sized()], dtype=object)})
    Sized.read = 0
    with pytest.raises(InvalidDataError, match=re.escape(f"(column 'x': dtype('{dtype}'))")):
        validate(frame, schema)
    assert Sized.read == 0


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int8"])
@pytest.mark.parametrize("read", [validate, coerce, pdprivacy.check])
def test_a_decimal_of_a_million_digits_is_refused_before_they_are_written(read, dtype):
    column = pa.Column(dtype, pa.Check.in_range(0, 10), coerce=True, metadata=DP)
    frame = pd.DataFrame({"x": pd.Series([Decimal(1), Digits("1e999999")], dtype=object)})
    Digits.written = 0
    if read is pdprivacy.check:
        assert len(read(frame, pa.DataFrameSchema({"x": column}))) == 1
    else:
        with pytest.raises(InvalidDataError, match=f"cannot be coerced .column 'x' to {dtype}"):
            read(frame, pa.DataFrameSchema({"x": column}))
    assert Digits.written == 0


# ------------------------------------------------------------------ labels and blanks of real files

ZIP = pd.CategoricalDtype([12345, 23456])


@pytest.mark.parametrize(
    "cells",
    [[12345, 23456], pd.array([12345, 23456], dtype="Int64"), pd.array([12345, None], dtype="Int64")],
    ids=["int64", "Int64", "Int64 with a null"],
)
@pytest.mark.parametrize(
    ("dtype", "checks", "made"),
    [
        (ZIP, [], int),
        (str, [pa.Check.isin(["12345", "23456"])], str),
        ("category", [pa.Check.isin([12345, 23456])], int),
    ],
    ids=["stated categories", "text", "categories"],
)
def test_codes_of_labels_are_coerced_cell_by_cell(cells, dtype, checks, made):
    schema = pa.DataFrameSchema({"zip": pa.Column(dtype, checks, coerce=True, nullable=True, metadata=DP)})
    coerced = coerce(pd.DataFrame({"zip": cells}), schema)["zip"]
    kept = [cell for cell in coerced.tolist() if not pd.isna(cell)]
    assert kept == [made(cell) for cell in list(cells) if not pd.isna(cell)]
    assert validate(pd.DataFrame({"zip": cells}), schema)["zip"].isna().tolist() == list(pd.isna(list(cells)))


@pytest.mark.parametrize("dtype", [pd.CategoricalDtype(["good", "poor"]), Grade])
def test_an_unstated_category_is_a_fault_of_its_record(dtype):
    schema = pa.DataFrameSchema({"grade": pa.Column(dtype, nullable=True, coerce=True, metadata=DP)})
    frame = pd.DataFrame({"grade": ["good", CANARY, None, "poor"]})
    report = frame.dp.check(schema)
    assert report[["fault", "records"]].values.tolist() == [["undeclared label", 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private = frame.dp.protect(schema, epsilon=1, on_invalid="drop")
    assert private.dp.quality()["dropped"].tolist() == [1]
    with pytest.raises(InvalidDataError, match=r"coerce_dtype\('category'\)\)") as caught:
        frame.dp.protect(schema, epsilon=1)
    assert 'on_invalid="drop"' in caught.value.hint
    assert "categories of a dtype" in caught.value.hint
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "dtype", "nullable"),
    [([31, None, 54], int, "Int64"), ([31, None], "int32", "Int64"), ([True, None, False], bool, "boolean")],
)
@pytest.mark.parametrize("on_invalid", ["raise", "drop"])
def test_a_blank_among_integers_or_truth_values_is_declared_by_a_nullable_dtype(
    cells, dtype, nullable, on_invalid
):
    frame = pd.DataFrame({"x": cells})
    schema = pa.DataFrameSchema({"x": pa.Column(dtype, nullable=True, metadata=DP)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InvalidDataError) as caught:
            frame.dp.protect(schema, epsilon=1, on_invalid=on_invalid)
        assert f'pa.Column("{nullable}", ..., nullable=True, coerce=True)' in caught.value.hint
        assert "on_invalid" not in caught.value.hint  # which mends nothing here
        hinted = pa.DataFrameSchema({"x": pa.Column(nullable, nullable=True, coerce=True, metadata=DP)})
        assert frame.dp.protect(hinted, epsilon=1).dp.quality()["null"].tolist() == [1]
