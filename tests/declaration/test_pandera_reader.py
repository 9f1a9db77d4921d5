"""Schemas of pandera as domains (`schema`): kinds, bounds, labels, metadata, and checks beyond the domain."""

from __future__ import annotations

import enum
import subprocess
import sys
from typing import Annotated, Any, Literal, Optional

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandera.typing import Series

from pdprivacy import Column, Domain, read_schema
from pdprivacy.core.conform import conform
from pdprivacy.declaration.intervals import Interval
from pdprivacy.declaration.schema import unchecked, validate
from pdprivacy.errors import DeclarationError, ParameterError
from tests.support.canaries import NUMBER, refused

DP = {"dp": {}}


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


def column(dtype, checks=None, dp=None, **options) -> Column:
    metadata = {"dp": {} if dp is None else dp}
    return read_schema(pa.DataFrameSchema({"x": pa.Column(dtype, checks, metadata=metadata, **options)}))["x"]


@pytest.mark.full
def test_the_package_does_not_import_pandera():
    code = "import sys, pdprivacy.declaration.schema; print('pandera' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert process.stdout.strip() == "False", process.stderr


@pytest.mark.full
def test_a_schema_of_pandas_needs_no_other_engine(tmp_path):
    """With the other parts of pandera absent, which Python says by None, nothing of them is asked for."""
    script = tmp_path / "reads.py"  # a file: given its code by -c, PySpark takes Python for its doctests
    script.write_text(
        "import sys, pandas as pd, pandera.pandas as pa\n"
        "for part in ('polars', 'pyspark', 'pandera.polars', 'pandera.pyspark'): sys.modules[part] = None\n"
        "from pdprivacy.declaration.schema import coerce, read_schema, unchecked, validate\n"
        "schema = pa.DataFrameSchema({'x': pa.Column(int, pa.Check.in_range(0, 9), metadata={'dp': {}})})\n"
        "frame = pd.DataFrame({'x': [1, 2]})\n"
        "class Model(pa.DataFrameModel):\n"
        "    x: int = pa.Field(in_range={'min_value': 0, 'max_value': 9}, metadata={'dp': {}})\n"
        "for one in (schema, Model):\n"
        "    validate(coerce(frame, one), one)\n"
        "    print(read_schema(one)['x'].upper, unchecked(one))\n"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert process.stdout.splitlines() == ["9 ()", "9 ()"], process.stderr


def test_only_columns_that_opt_in_are_declared():
    schema = pa.DataFrameSchema(
        {
            "a": pa.Column(int, metadata=DP),
            "b": pa.Column(int),
            "c": pa.Column(int, metadata={"owner": "me"}),
            "d": pa.Column(str, metadata=DP, nullable=True),
        }
    )
    domain = read_schema(schema)
    assert domain.names == ("a", "d")
    assert (domain["a"].nullable, domain["d"].nullable) == (False, True)
    assert read_schema(domain) is domain


def test_an_inferred_schema_declares_nothing():
    inferred = pa.infer_schema(pd.DataFrame({"age": [NUMBER, 2]}))
    with pytest.raises(DeclarationError, match="no column is declared for release") as caught:
        read_schema(inferred)
    line, _, call = caught.value.hint.partition("; or, ")
    assert line == '"age": pa.Column(..., metadata={"dp": {}})'
    assert call.endswith("df.dp.protect(schema, epsilon=1.0, columns={'age': {}})")
    assert str(NUMBER) not in str(caught.value)


@pytest.mark.parametrize("other", [3, None, {"age": int}, int, pd.DataFrame({"age": [1]}), pa.Column(int)])
def test_other_objects_than_schemas_are_refused(other):
    for use in (read_schema, unchecked, lambda schema: validate(pd.DataFrame({"age": [1]}), schema)):
        with pytest.raises(ParameterError, match="'schema' must be a pandera DataFrameSchema") as caught:
            use(other)
        assert "pa.DataFrameSchema({" in caught.value.hint


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (float, "float"),
        ("float32", "float"),
        ("Float64", "float"),
        ("double[pyarrow]", "float"),
        (int, "integer"),
        ("uint8", "integer"),
        ("Int64", "integer"),
        ("UInt16", "integer"),
        ("int32[pyarrow]", "integer"),
        (bool, "boolean"),
        ("boolean", "boolean"),
        ("bool[pyarrow]", "boolean"),
        (str, "category"),
        (object, "category"),
        ("string[pyarrow]", "category"),
        ("category", "category"),
        ("datetime64[ns]", "category"),
        (pa.Decimal, "category"),
        (complex, "category"),
        (None, "category"),
    ],
)
def test_the_kind_follows_the_dtype(dtype, kind):
    read = column(dtype)
    assert read.kind == kind
    assert read.categories == ((False, True) if kind == "boolean" else None)


def test_a_column_without_dtype_is_numeric_where_it_is_bounded():
    assert column(None, pa.Check.ge(0)).kind == "float"
    assert column(None, dp={"bounds": [0, 1]}).kind == "float"
    assert column(None, dp={"bins": [0, 1]}).bounds("m") == (0.0, 1.0)
    assert column(None, pa.Check.isin([2, 1])).categories == (2, 1)


def test_the_dtype_of_the_schema_rules():
    schema = pa.DataFrameSchema({"x": pa.Column(metadata=DP)}, dtype=int)
    assert read_schema(schema)["x"].kind == "integer"


@pytest.mark.parametrize(
    ("checks", "integer", "real"),
    [
        ([pa.Check.in_range(1, 5)], (1, 5), (1, 5)),
        ([pa.Check.between(1, 5)], (1, 5), (1, 5)),
        ([pa.Check.in_range(1, 5, include_min=False, include_max=False)], (2, 4), (1, 5)),
        ([pa.Check.in_range(0.5, 5.5)], (1, 5), (0.5, 5.5)),
        ([pa.Check.in_range(0.5, 5.5, include_min=False, include_max=False)], (1, 5), (0.5, 5.5)),
        ([pa.Check.ge(1), pa.Check.le(5)], (1, 5), (1, 5)),
        ([pa.Check.gt(1), pa.Check.lt(5)], (2, 4), (1, 5)),
        ([pa.Check.ge(1)], (1, None), (1, None)),
        ([pa.Check.lt(5)], (None, 4), (None, 5)),
        ([pa.Check.in_range(0, float("inf"))], (0, None), (0, None)),
        ([pa.Check.in_range(0, 9), pa.Check.in_range(3, 20), pa.Check.lt(9)], (3, 8), (3, 9)),
        ([pa.Check.eq(3)], (3, 3), (3, 3)),
        ([pa.Check.isin([4, 2, 9]), pa.Check.le(5)], (2, 4), (2, 4)),
        ([pa.Check(lambda s: s > 0), pa.Check.ne(3)], (None, None), (None, None)),
    ],
)
def test_bounds_are_the_checks_intersected(checks, integer, real):
    read = column(int, checks)
    assert (read.lower, read.upper) == integer
    read = column(float, checks)
    assert (read.lower, read.upper) == real


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ge", "gt", "le", "lt", "eq"]),
            st.integers(-4, 4) | st.sampled_from([-2.5, -0.5, 0.5, 1.5]),
        ),
        max_size=4,
    )
)
def test_integer_bounds_hold_exactly_what_the_checks_admit(drawn):
    compare = {"ge": "__ge__", "gt": "__gt__", "le": "__le__", "lt": "__lt__", "eq": "__eq__"}
    admitted = [
        value
        for value in range(-8, 9)
        if all(getattr(float(value), compare[name])(float(end)) for name, end in drawn)
    ]
    checks = [getattr(pa.Check, name)(end) for name, end in drawn]
    if not admitted:
        with pytest.raises(DeclarationError, match="no value of column 'x' can meet all of its checks"):
            column(int, checks)
        return
    read = column(int, checks)
    assert (-8 if read.lower is None else read.lower, 8 if read.upper is None else read.upper) == (
        admitted[0],
        admitted[-1],
    )


def test_bounds_of_integers_are_never_rounded():
    large = 2**60 + 1
    check = pa.Check.in_range(np.int64(-large), np.int64(large))
    assert column(int, [check]).interval == Interval(-large, large)
    checks = [pa.Check.lt(2**62 + 3), pa.Check.lt(np.float64(2**62))]
    assert column(int, checks).upper == 2**62 - 1
    assert column(int, dp={"bounds": [np.int64(-large), np.int64(large)]}).interval == Interval(-large, large)


@pytest.mark.parametrize(
    ("dtype", "checks"),
    [
        (float, [pa.Check.ge(2), pa.Check.le(1)]),
        (float, [pa.Check.gt(1), pa.Check.le(1)]),
        (int, [pa.Check.gt(1), pa.Check.lt(2)]),
        (int, [pa.Check.isin([1.5])]),
        (int, [pa.Check.isin(["a"])]),
        (str, [pa.Check.isin(["a"]), pa.Check.isin(["b"])]),
        (bool, [pa.Check.isin(["yes"])]),
        (pd.CategoricalDtype(["a"]), [pa.Check.isin(["b"])]),
    ],
)
def test_checks_that_exclude_each_other_are_refused(dtype, checks):
    with pytest.raises(DeclarationError, match="no value of column 'x' can meet all of its checks"):
        column(dtype, checks)


@pytest.mark.parametrize(
    ("dtype", "checks", "labels"),
    [
        (str, pa.Check.isin(["b", "a"]), ("b", "a")),
        (str, pa.Check.isin({"b", "a"}), ("a", "b")),
        (None, pa.Check.isin({"b", 2, 1}), (1, 2, "b")),
        (str, pa.Check.isin(["b", None, "b"]), ("b",)),
        (str, pa.Check.eq("b"), ("b",)),
        (str, [pa.Check.isin(["c", "b", "a"]), pa.Check.isin(["a", "b"])], ("b", "a")),
        (pd.CategoricalDtype(["b", "a"]), None, ("b", "a")),
        (pd.CategoricalDtype(["b", "a"]), pa.Check.isin(["a"]), ("a",)),
        (pa.Category(["b", "a"]), None, ("b", "a")),
        (Colour, None, (Colour.RED, Colour.BLUE)),
        (bool, pa.Check.isin([True]), (True,)),
        (int, pa.Check.isin([3, 1]), (3, 1)),
        (int, [pa.Check.isin([3, 1]), pa.Check.le(2)], (1,)),
    ],
)
def test_labels_come_in_declared_order(dtype, checks, labels):
    assert column(dtype, checks).categories == labels


def test_the_metadata_overrides_the_checks():
    read = column(int, pa.Check.in_range(0, 120), {"bounds": (18, 65), "role": "sensitive"})
    assert (read.lower, read.upper, read.role) == (18, 65, "sensitive")
    assert column(int, pa.Check.in_range(0, 9), {"bounds": [0.5, 5.5]}).bounds("m") == (1.0, 5.0)
    assert column(int, pa.Check.isin([1, 2, 9]), {"bounds": [0, 5]}).categories == (1, 2)
    assert column(str, pa.Check.isin(["a"]), {"categories": ["b", "a"]}).categories == ("b", "a")
    assert column(str, None, {"categories": {"b", "a"}}).categories == ("a", "b")
    read = column(int, pa.Check.in_range(0, 9), {"categories": [3, 1]})
    assert (read.categories, read.lower, read.upper) == ((3, 1), 1, 3)
    read = column(int, None, {"categories": [3, 1], "bounds": [0, 9]})
    assert (read.categories, read.lower, read.upper) == ((3, 1), 0, 9)


def test_bins_give_the_bounds_that_are_missing():
    assert column(int, None, {"bins": [0.5, 3, 9.5]}).bounds("m") == (1.0, 9.0)
    assert column(float, pa.Check.ge(1), {"bins": [0, 3, 9]}).bounds("m") == (1.0, 9.0)
    assert column(int, pa.Check.in_range(18, 65), {"bins": np.array([18, 30, 65])}).bins == (18.0, 30.0, 65.0)


@pytest.mark.parametrize(
    ("dtype", "dp", "message"),
    [
        (int, {"bound": [1, 2]}, 'unknown key \'bound\' (allowed: "role", "bins", "bounds", "categories"'),
        (int, {"bounds": [2, 1]}, "must be below the upper"),
        (int, {"bounds": [1]}, "must be a pair of numbers"),
        (int, {"bounds": "12"}, "must be a pair of numbers"),
        (int, {"bounds": [1, None]}, "must be finite numbers"),
        (int, {"bounds": [1, float("inf")]}, "must be finite numbers"),
        (int, {"bounds": [0.2, 0.8]}, "hold no integer"),
        (int, {"bins": [2, 1]}, "strictly increasing"),
        (int, {"bins": [3, 4], "bounds": [1, 9]}, "must cover its bounds"),
        (int, {"categories": 3}, "must be a list of labels"),
        (str, {"categories": "ab"}, "must be a list of labels"),
        (int, {"categories": ["a"]}, "must be finite numbers"),
        (int, {"categories": []}, "at least one label"),
        (int, {"role": "secret"}, "'role' of column 'x' must be one of"),
        (int, True, "metadata \"dp\" of column 'x' must be a dict"),
        (str, {"bounds": [1, 2]}, "\"bounds\" of column 'x' needs a numeric column"),
        ("datetime64[ns]", {"bounds": [1, 2]}, "\"bounds\" of column 'x' needs a numeric column"),
        (pa.Decimal, {"bounds": [1, 2]}, "\"bounds\" of column 'x' needs a numeric column"),
        (bool, {"bins": [0, 1]}, "\"bins\" of column 'x' needs a numeric column"),
    ],
)
def test_metadata_that_is_off_is_refused(dtype, dp, message):
    with pytest.raises(DeclarationError) as caught:
        column(dtype, None, dp)
    assert message in str(caught.value)
    assert "'x'" in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, parsers=pa.Parser(lambda df: df)),
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP, parsers=pa.Parser(lambda s: s))}),
        pa.DataFrameSchema(
            {"x": pa.Column(int, metadata=DP), "y": pa.Column(parsers=pa.Parser(lambda s: s))}
        ),
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, drop_invalid_rows=True),
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP, drop_invalid_rows=True)}),
    ],
)
def test_a_schema_that_changes_rows_is_refused(schema):
    for use in (read_schema, lambda schema: validate(pd.DataFrame({"x": [1]}), schema)):
        with pytest.raises(DeclarationError, match="may change records in the light of") as caught:
            use(schema)
        assert "schema.validate(df) first" in caught.value.hint


def test_a_regular_expression_declares_no_column():
    with pytest.raises(DeclarationError, match="is a regular expression"):
        column(int, regex=True)
    schema = pa.DataFrameSchema({"x": pa.Column(int, metadata=DP), "^y": pa.Column(int, regex=True)})
    assert read_schema(schema).names == ("x",)


@pytest.mark.parametrize(
    "index", [pa.Index(int, name="i", metadata=DP), pa.MultiIndex([pa.Index(int, name="i", metadata=DP)])]
)
def test_an_index_is_not_released(index):
    with pytest.raises(DeclarationError, match="the index 'i'") as caught:
        read_schema(pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, index=index))
    assert "reset_index" in caught.value.hint


class People(pa.DataFrameModel):
    age: int = pa.Field(in_range={"min_value": 18, "max_value": 65}, metadata=DP)
    region: str = pa.Field(isin=["b", "a"], metadata=DP)
    score: Optional[Series[float]] = pa.Field(ge=0, lt=1, nullable=True, metadata=DP)  # noqa: UP045
    colour: Series[Colour] = pa.Field(metadata=DP)
    kind: Annotated[pd.CategoricalDtype, ["x", "y"], False] = pa.Field(metadata=DP)
    secret: int


def test_a_model_is_read_as_its_schema():
    domain = read_schema(People)
    assert domain == read_schema(People.to_schema())
    assert domain.names == ("age", "region", "score", "colour", "kind")
    assert domain["age"].bounds("m") == (18.0, 65.0)
    assert domain["region"].categories == ("b", "a")
    assert (domain["score"].lower, domain["score"].upper, domain["score"].nullable) == (0, 1, True)
    assert domain["colour"].categories == (Colour.RED, Colour.BLUE)
    assert domain["kind"].categories == ("x", "y")


class PlainLiteral(pa.DataFrameModel):
    region: Literal["yes", "no"] = pa.Field(metadata=DP)


class SeriesLiteral(pa.DataFrameModel):
    region: Series[Literal["yes", "no"]] = pa.Field(metadata=DP)


class AnnotatedLiteral(pa.DataFrameModel):
    region: Annotated[str, Literal["yes", "no"]] = pa.Field(metadata=DP)


@pytest.mark.parametrize("model", [PlainLiteral, SeriesLiteral, AnnotatedLiteral])
def test_a_literal_is_refused_with_the_field_that_says_the_same(model):
    with pytest.raises(DeclarationError, match="annotation Literal of field 'region'") as caught:
        read_schema(model)
    assert caught.value.hint == "region: str = pa.Field(isin=['yes', 'no'], metadata={\"dp\": {}})"


def test_a_model_that_pandera_refuses_is_a_declaration_error():
    class Age:
        pass

    class Broken(pa.DataFrameModel):
        age: Series[Age] = pa.Field(metadata=DP)

    with pytest.raises(DeclarationError, match="pandera cannot read the model 'Broken'"):
        read_schema(Broken)


# ------------------------------------------------------------------ validate


def one(*arguments, **options) -> pa.DataFrameSchema:
    return pa.DataFrameSchema({"x": pa.Column(*arguments, metadata=DP, **options)})


# ------------------------------------------------------------------ unchecked


def below_five(series):
    return series < 5


def two(*arguments, **options) -> pa.DataFrameSchema:
    """A declared column of small integers, and one of numbers that is not declared."""
    return pa.DataFrameSchema(
        {"x": pa.Column(int, pa.Check.in_range(0, 9), metadata=DP), "y": pa.Column(*arguments, **options)}
    )


BEYOND: list[tuple[pa.DataFrameSchema, dict[str, list[Any]], str]] = [
    (one(int, [pa.Check.in_range(0, 9), pa.Check(below_five)]), {"x": [7]}, "column 'x': below_five"),
    (one(int, pa.Check(lambda s: s < 5)), {"x": [7]}, "column 'x': a check without a name"),
    (one(int, pa.Check(lambda s: s < 5, error="small")), {"x": [7]}, "column 'x': small"),
    (one(int, pa.Check.ne(3)), {"x": [3]}, "column 'x': not_equal_to(3)"),
    (one(str, pa.Check.str_matches("^a$")), {"x": ["b"]}, "column 'x': str_matches('^a$')"),
    (one(str, pa.Check.gt("a")), {"x": ["a"]}, "column 'x': greater_than('a')"),
    (one(bool, pa.Check.ge(1)), {"x": [False]}, "column 'x': greater_than_or_equal_to(1)"),
    (
        one(float, pa.Check.le(5.0, ignore_na=False), nullable=True),
        {"x": [None, 4.0]},
        "column 'x': less_than_or_equal_to(5.0)",
    ),
    (one(int, unique=True), {"x": [3, 3]}, "column 'x': unique=True"),
    (one(int, coerce=True), {}, "column 'x': coerce=True"),
    (one(float, default=0.0), {}, "column 'x': a default in place of nulls"),
    (two(int, pa.Check.ge(5)), {"x": [3], "y": [1]}, "column 'y': greater_than_or_equal_to"),
    (two(str, pa.Check.isin(["b"])), {"x": [3], "y": ["a"]}, "column 'y': isin"),
    (two(int, unique=True), {"x": [3, 4], "y": [1, 1]}, "column 'y': unique=True"),
    (
        pa.DataFrameSchema(
            {"x": pa.Column(int, metadata=DP), "^y": pa.Column(int, pa.Check(below_five), regex=True)}
        ),
        {"x": [3], "y1": [7]},
        "column '^y': below_five",
    ),
    (
        pa.DataFrameSchema(
            {"x": pa.Column(int, pa.Check.in_range(0, 5), metadata={"dp": {"bounds": [0, 9]}})}
        ),
        {"x": [7]},
        "column 'x': in_range(0, 5)",
    ),
    (
        pa.DataFrameSchema(
            {"x": pa.Column(str, pa.Check.isin(["a"]), metadata={"dp": {"categories": ["a", "b"]}})}
        ),
        {"x": ["b"]},
        "column 'x': isin(['a'])",
    ),
    (
        pa.DataFrameSchema(
            {"x": pa.Column(int, pa.Check.le(5), metadata={"dp": {"categories": [7, 1], "bounds": [0, 9]}})}
        ),
        {"x": [7]},
        "column 'x': less_than_or_equal_to(5)",
    ),
    (
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, checks=pa.Check(lambda df: df["x"] < 5)),
        {"x": [7]},
        "schema: a check without a name",
    ),
    (
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, checks=pa.Check.le(5)),
        {"x": [7]},
        "schema: less_than_or_equal_to",
    ),
    (
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, unique=["x"]),
        {"x": [3, 3]},
        "schema: unique=['x']",
    ),
    (
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, strict=True),
        {"x": [3], "y": [1]},
        "schema: strict=True",
    ),
    (pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, strict="filter"), {}, "schema: strict='filter'"),
    (
        pa.DataFrameSchema({"y": pa.Column(int), "x": pa.Column(int, metadata=DP)}, ordered=True),
        {"x": [3], "y": [1]},
        "schema: ordered=True",
    ),
    (
        pa.DataFrameSchema({"x": pa.Column(int, metadata=DP)}, index=pa.Index(int, pa.Check.ge(5))),
        {"x": [3]},
        "index: greater_than_or_equal_to",
    ),
    (
        pa.DataFrameSchema(
            {"x": pa.Column(int, metadata=DP)},
            index=pa.MultiIndex([pa.Index(int, unique=True, name="i"), pa.Index(int, name="j")]),
        ),
        {},
        "index 'i': unique=True",
    ),
    (
        pa.DataFrameSchema(
            {"x": pa.Column(int, metadata=DP)}, index=pa.MultiIndex([pa.Index(int, name="i")], unique=["i"])
        ),
        {},
        "index: unique=['i']",
    ),
]


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(("schema", "cells", "check"), BEYOND)
def test_what_a_schema_checks_beyond_its_domain_is_told(schema, cells, check):
    """A frame that meets the domain, and that pandera refuses for the one thing that is told."""
    assert unchecked(schema) == (check,)
    if cells:
        frame = pd.DataFrame(cells)
        conform(frame, read_schema(schema))
        refused(frame, schema)


@pytest.mark.parametrize(
    "schema",
    [
        one(int),
        one(int, pa.Check.in_range(0, 9), nullable=True),
        one(int, [pa.Check.gt(0), pa.Check.lt(9), pa.Check.isin([2, 5])]),
        one(float, [pa.Check.gt(0), pa.Check.lt(9)]),
        one(float, pa.Check.in_range(0, float("inf"))),
        one(str, [pa.Check.isin(["b", "a"]), pa.Check.isin({"a", "c"})]),
        one(str, pa.Check.eq("a")),
        one(bool, pa.Check.in_range(0, 1)),
        one(Colour),
        one(int, pa.Check(below_five, raise_warning=True)),
        pa.DataFrameSchema(
            {"x": pa.Column(int, metadata=DP)}, checks=pa.Check(below_five, raise_warning=True)
        ),
        one(None, coerce=True),
        two(int, nullable=True),
        pa.DataFrameSchema(
            {"x": pa.Column(int, pa.Check.in_range(0, 9), metadata={"dp": {"bounds": [2, 5]}})},
            index=pa.Index(int),
        ),
        pa.DataFrameSchema(
            {
                "x": pa.Column(
                    int, pa.Check.isin([1, 2, 3]), metadata={"dp": {"categories": [3, 1], "bounds": [0, 9]}}
                )
            }
        ),
        pa.DataFrameSchema(
            {"x": pa.Column(int, pa.Check.le(5), metadata={"dp": {"categories": [3, 1], "bounds": [0, 9]}})}
        ),
        Domain((Column("x", "integer"),)),
    ],
)
def test_bounds_and_labels_of_declared_columns_are_all_in_the_domain(schema):
    assert unchecked(schema) == ()


def test_messages_about_an_inferred_schema_hold_no_cell():
    inferred = pa.infer_schema(pd.DataFrame({"age": [NUMBER, 2]}, index=[NUMBER, 3]))
    inferred = inferred.add_columns({"x": pa.Column(int, metadata=DP)})
    reported = unchecked(inferred)
    assert any(text.startswith("column 'age': ") for text in reported)
    assert not any(str(NUMBER) in text for text in reported)


def test_a_schema_that_cannot_be_read_has_no_rest():
    with pytest.raises(DeclarationError, match="no column is declared for release"):
        unchecked(pa.DataFrameSchema({"x": pa.Column(int)}))


def test_the_checks_of_a_model_are_told_by_name():
    class Checked(pa.DataFrameModel):
        age: int = pa.Field(ge=0, le=9, metadata=DP)
        secret: int

        @pa.check("age")
        def is_odd(cls, series):  # noqa: N805
            return series % 2 == 1

        @pa.dataframe_check
        def more_than_secret(cls, frame):  # noqa: N805
            return frame["age"] > frame["secret"]

        class Config:
            strict = True

    assert unchecked(Checked) == ("column 'age': is_odd", "schema: more_than_secret", "schema: strict=True")


# ------------------------------------------------------------------ bounds that are confirmed as public


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        (pa.Column(int, pa.Check.in_range(18, 65), metadata={"dp": {"bounds": "public"}}), (18, 65)),
        (pa.Column(float, metadata={"dp": {"bounds": "public", "bins": [0, 5, 9.5]}}), (0, 9.5)),
        (pa.Column(int, pa.Check.isin([3, 1]), metadata={"dp": {"bounds": "public"}}), (1, 3)),
    ],
)
def test_bounds_may_be_confirmed_as_public(column, bounds):
    declared = read_schema(pa.DataFrameSchema({"x": column}))["x"]
    assert (declared.lower, declared.upper, declared.public_bounds) == (*bounds, True)


@pytest.mark.parametrize(
    "column",
    [
        pa.Column(int, metadata={"dp": {"bounds": "public"}}),
        pa.Column(int, pa.Check.ge(0), metadata={"dp": {"bounds": "public"}}),
        pa.Column(str, pa.Check.isin(["a"]), metadata={"dp": {"bounds": "public"}}),
    ],
)
def test_bounds_that_are_not_there_cannot_be_confirmed(column):
    with pytest.raises(DeclarationError, match="confirms bounds, and it declares none"):
        read_schema(pa.DataFrameSchema({"x": column}))


def test_bounds_are_confirmed_by_one_word():
    column = pa.Column(int, pa.Check.in_range(0, 9), metadata={"dp": {"bounds": "publik"}})
    with pytest.raises(DeclarationError, match="must be a pair of numbers"):
        read_schema(pa.DataFrameSchema({"x": column}))
