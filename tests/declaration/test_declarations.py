"""Schemas of Polars and PySpark are read as the pandas schema that declares the same; no JVM is started."""

from __future__ import annotations

import datetime
import pickle
import subprocess
import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain, read_schema
from pdprivacy.core.conform import conform
from pdprivacy.declaration.schema import coerce, unchecked, validate
from pdprivacy.errors import DeclarationError, InvalidDataError, ParameterError

DP = {"dp": {}}


class Part(NamedTuple):
    """A part of pandera, and the types of its engine by kind; the first of each is the usual one."""

    name: str
    schemas: ModuleType
    integers: tuple[Any, ...]
    floats: tuple[Any, ...]
    texts: tuple[Any, ...]
    truths: tuple[Any, ...]
    others: tuple[Any, ...]  # day, moment and decimal number come first


def _polars() -> Part:
    schemas, pl = import_module("pandera.polars"), import_module("polars")
    signed, unsigned = (pl.Int64, pl.Int8, pl.Int16, pl.Int32), (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    return Part(
        "polars",
        schemas,
        (*signed, *unsigned, int, "int64"),
        (pl.Float64, pl.Float32, float),
        (pl.String, pl.Utf8, str, pl.Categorical, pl.Categorical()),
        (pl.Boolean, bool),
        (pl.Date, pl.Datetime("us"), pl.Decimal(10, 2), pl.Datetime, pl.Duration, pl.Time, pl.Binary),
    )


def _pyspark() -> Part:
    schemas, types = import_module("pandera.pyspark"), import_module("pyspark.sql.types")
    return Part(
        "pyspark",
        schemas,
        (types.LongType(), types.IntegerType, types.ShortType(), types.ByteType(), int, "bigint"),
        (types.DoubleType(), types.DoubleType, types.FloatType(), float, "double"),
        (types.StringType(), types.StringType, str, "string"),
        (types.BooleanType(), types.BooleanType, bool),
        (types.DateType(), types.TimestampType(), types.DecimalType(10, 2), types.BinaryType()),
    )


def _found(load: Any) -> Part | str:
    """The part, or why it is absent."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            return load()
    except ImportError as error:
        return f"{load.__name__.strip('_')} cannot be imported here: {error}"


FOUND = {"polars": _found(_polars), "pyspark": _found(_pyspark)}


def needed(name: str) -> Part:
    outcome = FOUND[name]
    if isinstance(outcome, str):
        pytest.skip(outcome)
    return outcome


@pytest.fixture(params=FOUND)
def part(request) -> Part:
    return needed(request.param)


@pytest.fixture
def polars() -> Part:
    return needed("polars")


def column(schemas: ModuleType, dtype: Any, checks: Any = None, dp: Any = None, **options: Any) -> Column:
    metadata = {"dp": {} if dp is None else dp}
    declared = schemas.Column(dtype, checks, metadata=metadata, **options)
    return read_schema(schemas.DataFrameSchema({"x": declared}))["x"]


def one(schemas: ModuleType, *arguments: Any, **options: Any) -> Any:
    return schemas.DataFrameSchema({"x": schemas.Column(*arguments, metadata=DP, **options)})


# ------------------------------------------------------------------ the same domain


@pytest.mark.parametrize(
    ("natives", "dtype"), [("integers", int), ("floats", float), ("texts", str), ("truths", bool)]
)
def test_every_type_is_read_as_the_pandas_dtype_of_its_kind(part, natives, dtype):
    for native in getattr(part, natives):
        assert column(part.schemas, native) == column(pa, dtype), native
        assert column(part.schemas, native, nullable=True) == column(pa, dtype, nullable=True), native


def test_other_types_have_labels_only(part):
    for native in part.others:
        assert column(part.schemas, native) == Column("x", "category"), native
        with pytest.raises(DeclarationError, match="\"bounds\" of column 'x' needs a numeric column"):
            column(part.schemas, native, None, {"bounds": [1, 2]})


def test_decimals_are_read_as_those_of_pandas(part):
    decimal = part.others[2]
    for checks in (None, pa.Check.isin([1, 2])):
        assert column(part.schemas, decimal, checks) == column(pa, pa.Decimal, checks)
    for schemas, dtype in ((part.schemas, decimal), (pa, pa.Decimal)):
        with pytest.raises(DeclarationError, match="the bounds of column 'x' need a numeric column"):
            column(schemas, dtype, pa.Check.in_range(0, 10))


CHECKS = [
    ("in_range", (1, 5)),
    ("in_range", (1, 5, False, False)),
    ("between", (0.5, 5.5)),
    ("ge", (1,)),
    ("gt", (1,)),
    ("le", (5,)),
    ("lt", (5,)),
    ("eq", (3,)),
    ("isin", ([3, 1],)),
    ("isin", ({3, 1},)),
    ("ne", (3,)),
    ("notin", ([3],)),
    ("str_matches", ("^a",)),
]


@pytest.mark.parametrize(("name", "arguments"), CHECKS)
def test_checks_have_the_same_name_and_statistics(part, name, arguments):
    ours, theirs = getattr(pa.Check, name)(*arguments), getattr(part.schemas.Check, name)(*arguments)
    assert (theirs.name, theirs.statistics) == (ours.name, ours.statistics)
    for native, dtype in ((part.integers[0], int), (part.floats[0], float), (None, None)):
        assert column(part.schemas, native, theirs) == column(pa, dtype, ours)


def declared(schemas: ModuleType, types: tuple[Any, ...]) -> Any:
    """One column for everything that a declaration may say."""
    whole, real, text, truth, day, moment, decimal = types
    check, made = schemas.Check, schemas.Column
    born = [datetime.date(1990, 1, 2), datetime.date(1980, 3, 4)]
    return schemas.DataFrameSchema(
        {
            "age": made(
                whole,
                [check.gt(17), check.le(65)],
                metadata={"dp": {"role": "quasi_identifier", "bins": [18, 30, 65]}},
            ),
            "rooms": made(whole, check.isin([3, 1, 2]), nullable=True, metadata=DP),
            "income": made(real, check.ge(0), metadata={"dp": {"bounds": (0, 1000.5)}}),
            "share": made(real, check.in_range(0, 1, include_max=False), metadata=DP),
            "free": made(real, metadata=DP, nullable=True),
            "region": made(text, check.isin(["b", "a"]), metadata={"dp": {"role": "quasi_identifier"}}),
            "health": made(text, metadata={"dp": {"categories": ["no", "yes"], "role": "sensitive"}}),
            "name": made(text, metadata={"dp": {"role": "identifier"}}),
            "member": made(truth, metadata=DP),
            "alive": made(truth, check.eq(True), metadata=DP),
            "born": made(day, check.isin(born), metadata=DP),
            "seen": made(moment, metadata=DP, nullable=True),
            "paid": made(decimal, metadata=DP),
            "secret": made(whole, metadata={"owner": "me"}),
            "other": made(text, check.isin(["z"])),
        }
    )


def pandas_schema() -> Any:
    return declared(pa, (int, float, str, bool, pa.Date, "datetime64[ns]", pa.Decimal))


def engine_schema(part: Part) -> Any:
    usual = (part.integers[0], part.floats[0], part.texts[0], part.truths[0], *part.others[:3])
    return declared(part.schemas, usual)


def test_the_whole_declaration_is_the_same(part):
    domain, ours = read_schema(engine_schema(part)), read_schema(pandas_schema())
    assert domain == ours
    # what a budget of the one knows is known to the other
    assert domain.fingerprint() == ours.fingerprint()
    assert "secret" not in domain


def test_the_dtype_of_the_schema_rules(part):
    schemas = part.schemas
    schema = schemas.DataFrameSchema({"x": schemas.Column(metadata=DP)}, dtype=part.integers[0])
    assert read_schema(schema)["x"].kind == "integer"


def test_labels_of_an_enum_come_in_its_order(polars):
    pl = import_module("polars")
    for native in (pl.Enum(["b", "a"]), pl.Enum(pl.Series(["b", "a"]))):
        assert column(polars.schemas, native) == column(pa, pd.CategoricalDtype(["b", "a"]))
    assert column(polars.schemas, pl.Enum(["b", "a"]), pa.Check.isin(["a"])).categories == ("a",)
    category = import_module("pandera.engines.polars_engine").Category
    assert column(polars.schemas, category(["b", "a"])).categories == ("b", "a")
    assert column(polars.schemas, pl.Enum).categories is None
    with pytest.raises(DeclarationError, match="no value of column 'x' can meet all of its checks"):
        column(polars.schemas, pl.Enum(["b"]), pa.Check.isin(["a"]))


def test_an_integer_that_pandera_has_no_name_for_is_an_integer(polars):
    wide = import_module("polars").Int128
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*support is not guaranteed", UserWarning)
        read = column(polars.schemas, wide, pa.Check.in_range(0, 9))
    assert read == column(pa, int, pa.Check.in_range(0, 9))


@pytest.mark.full
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ge", "gt", "le", "lt", "eq"]),
            st.integers(-4, 4) | st.sampled_from([-2.5, 0.5, 1.5]),
        ),
        max_size=3,
    )
)
def test_integer_bounds_hold_exactly_what_pandera_admits_on_polars(drawn):
    """By brute force: every small integer, validated by pandera, which names all that it refuses."""
    schemas, pl = needed("polars").schemas, import_module("polars")
    schema = one(schemas, pl.Int64, [getattr(schemas.Check, name)(end) for name, end in drawn])

    values = [*range(-6, 7)]
    try:
        schema.validate(pl.DataFrame({"x": values}), lazy=True)
    except schemas.errors.SchemaErrors as error:
        refused = set(error.failure_cases["index"].to_list())
        values = [value for index, value in enumerate(values) if index not in refused]
        schema.validate(pl.DataFrame({"x": values}, schema={"x": pl.Int64}))
    if not values:
        with pytest.raises(DeclarationError, match="no value of column 'x' can meet all of its checks"):
            read_schema(schema)
        return
    read = read_schema(schema)["x"]
    lower = -6 if read.lower is None else read.lower
    upper = 6 if read.upper is None else read.upper
    assert (lower, upper) == (values[0], values[-1])
    assert len(values) == upper - lower + 1


# ------------------------------------------------------------------ what is refused


def test_only_columns_that_opt_in_are_declared(part):
    schemas, whole = part.schemas, part.integers[0]
    with pytest.raises(DeclarationError, match="no column is declared for release"):
        read_schema(schemas.DataFrameSchema({"x": schemas.Column(whole)}))


def test_checks_that_exclude_each_other_are_refused(part):
    with pytest.raises(DeclarationError, match="no value of column 'x' can meet all of its checks"):
        column(part.schemas, part.integers[0], [pa.Check.gt(1), pa.Check.lt(2)])


def test_metadata_that_is_off_is_refused(part):
    with pytest.raises(DeclarationError, match="unknown key 'bound'"):
        column(part.schemas, part.integers[0], None, {"bound": [1, 2]})


def test_a_regular_expression_declares_no_column(part):
    with pytest.raises(DeclarationError, match="is a regular expression"):
        column(part.schemas, part.integers[0], regex=True)


def test_a_name_that_polars_takes_for_a_regular_expression_is_refused(polars):
    schemas = polars.schemas
    schema = schemas.DataFrameSchema({"^x.*$": schemas.Column(int, metadata=DP)})
    with pytest.raises(DeclarationError, match="is a regular expression"):
        read_schema(schema)


@pytest.mark.parametrize("option", [{"drop_invalid_rows": True}, {"parsers": pa.Parser(lambda df: df)}])
def test_a_schema_that_changes_rows_is_refused(part, option):
    schemas = part.schemas
    schema = schemas.DataFrameSchema({"x": schemas.Column(part.integers[0], metadata=DP)}, **option)
    for use in (read_schema, unchecked):
        with pytest.raises(DeclarationError, match="may change records in the light of"):
            use(schema)


def test_a_column_that_drops_rows_is_refused(polars):
    with pytest.raises(DeclarationError, match="'drop_invalid_rows' may change records"):
        read_schema(one(polars.schemas, int, drop_invalid_rows=True))


def test_schemas_of_other_engines_are_refused_by_name():
    other = type("DataFrameSchema", (), {"__module__": "pandera.api.ibis.container"})
    for schema in (other(), other):
        with pytest.raises(ParameterError, match=r"\(got pandera.api.ibis.container.DataFrameSchema\)"):
            read_schema(schema)


def test_a_class_of_schemas_is_no_schema(part):
    for kind in (part.schemas.DataFrameSchema, part.schemas.Column):
        with pytest.raises(ParameterError, match="'schema' must be a pandera DataFrameSchema"):
            read_schema(kind)


# ------------------------------------------------------------------ models


def model(schemas: ModuleType, annotations: dict[str, Any], **fields: Any) -> type:
    metadata = {name: schemas.Field(metadata=DP) for name in annotations}
    body = {"__annotations__": annotations, "__module__": __name__, **metadata, **fields}
    return type("People", (schemas.DataFrameModel,), body)


def people(schemas: ModuleType, whole: Any, real: Any, text: Any) -> type:
    return model(
        schemas,
        {"age": whole, "region": text, "score": Optional[real], "secret": whole},  # noqa: UP045
        age=schemas.Field(in_range={"min_value": 18, "max_value": 65}, metadata=DP),
        region=schemas.Field(isin=["b", "a"], metadata=DP),
        score=schemas.Field(ge=0, lt=1, nullable=True, metadata=DP),
        secret=schemas.Field(),
    )


def test_a_model_is_read_as_its_schema_and_as_that_of_pandas(part):
    people_model = people(part.schemas, part.integers[0], part.floats[0], part.texts[0])
    domain = read_schema(people_model)
    assert domain == read_schema(people_model.to_schema())
    assert domain == read_schema(people(pa, int, float, str))
    assert domain.names == ("age", "region", "score")
    assert unchecked(people_model) == ()


def test_a_model_of_annotated_types_is_read(polars):
    pl = import_module("polars")
    annotated = model(polars.schemas, {"kind": Annotated[pl.Enum, ["x", "y"]], "paid": pl.Decimal(10, 2)})
    assert read_schema(annotated)["kind"].categories == ("x", "y")
    assert read_schema(annotated)["paid"].kind == "category"


@pytest.mark.parametrize(
    "annotation", [Literal["yes", "no"], Annotated[str, Literal["yes", "no"]], Literal["yes", "no"] | None]
)
def test_a_literal_is_refused_with_the_field_that_says_the_same(part, annotation):
    with pytest.raises(DeclarationError, match="annotation Literal of field 'region'") as caught:
        read_schema(model(part.schemas, {"region": annotation}))
    assert caught.value.hint == "region: str = pa.Field(isin=['yes', 'no'], metadata={\"dp\": {}})"


def test_a_model_that_pandera_refuses_is_a_declaration_error(part):
    class Age:
        pass

    with pytest.raises(DeclarationError, match="pandera cannot read the model 'People'"):
        read_schema(model(part.schemas, {"age": Age}))


# ------------------------------------------------------------------ frames of pandas


@pytest.mark.parametrize("use", [validate, coerce])
def test_a_pandas_frame_is_not_validated_by_a_schema_of_another_engine(part, use):
    """The schema is refused before the frame is looked at: even where it is none."""
    engine = {"polars": "Polars", "pyspark": "PySpark"}[part.name]
    people_model = people(part.schemas, part.integers[0], part.floats[0], part.texts[0])
    for schema in (engine_schema(part), people_model):
        for frame in (pd.DataFrame({"age": [20]}), "no frame"):
            with pytest.raises(
                ParameterError, match=f"a pandera.{part.name} schema validates {engine} frames"
            ) as caught:
                use(frame, schema)
            assert "import pandera.pandas as pa" in caught.value.hint


def test_the_schema_of_the_hint_protects_the_frame(part):
    frame = pd.DataFrame({"x": [1, 2, 3]})
    schema = one(part.schemas, part.integers[0], part.schemas.Check.in_range(0, 9))
    budget = pdprivacy.Budget(epsilon=1)
    with pytest.raises(ParameterError, match=r"a pandas frame needs a pandera\.pandas schema") as caught:
        frame.dp.protect(schema, budget=budget)
    assert "pass pdprivacy.read_schema(schema)" in caught.value.hint
    private = frame.dp.protect(pdprivacy.read_schema(schema), budget=budget)
    assert private.dp.count(epsilon=1, rng=1) is not None
    with pytest.raises(InvalidDataError, match="values outside"):
        pd.DataFrame({"x": [1, 20]}).dp.protect(pdprivacy.read_schema(schema), epsilon=1)


# ------------------------------------------------------------------ unchecked


def test_bounds_and_labels_of_declared_columns_are_all_in_the_domain(part):
    whole, real, text = part.integers[0], part.floats[0], part.texts[0]
    check = part.schemas.Check
    for dtype, checks in (
        (whole, check.in_range(0, 9)),
        (whole, [check.gt(0), check.lt(9)]),
        (whole, [check.isin([1, 3]), check.le(5)]),
        (real, [check.gt(0), check.lt(9)]),
        (text, check.isin(["b", "a"])),
        (text, check.eq("a")),
        (None, None),
    ):
        assert unchecked(one(part.schemas, dtype, checks)) == ()


def test_the_same_is_told_as_of_the_pandas_schema(part):
    def below_five(data):
        return None

    def of(schemas: ModuleType, whole: Any, text: Any) -> Any:
        check, make = schemas.Check, schemas.Column
        return schemas.DataFrameSchema(
            {
                "x": make(whole, [check.in_range(0, 9), check.ne(3), check(below_five)], metadata=DP),
                "y": make(text, check.str_matches("^a"), coerce=True, metadata=DP),
                "z": make(whole, check.ge(5)),
            },
            checks=[check(lambda data: None)],
            strict=True,
            ordered=True,
            unique=["x", "y"],
            coerce=True,
        )

    reported = unchecked(of(part.schemas, part.integers[0], part.texts[0]))
    assert reported == unchecked(of(pa, int, str))
    assert "column 'x': below_five" in reported
    assert "column 'x': not_equal_to(3)" in reported
    assert "column 'y': str_matches('^a')" in reported
    assert "column 'z': greater_than_or_equal_to" in reported
    assert "schema: unique=['x', 'y']" in reported
    assert not any("in_range" in text for text in reported)


def test_checks_beyond_the_domain_are_those_that_pandera_refuses_on_polars(polars):
    """Frames that meet the domain, and that pandera refuses for the one thing that is told."""
    schemas, pl = polars.schemas, import_module("polars")
    check = schemas.Check

    def odd(data):
        return data.lazyframe.select(pl.col(data.key) % 2 == 1)

    beyond = [
        (one(schemas, int, check(odd)), {"x": [2]}, "column 'x': odd"),
        (one(schemas, int, check.ne(3)), {"x": [3]}, "column 'x': not_equal_to(3)"),
        (one(schemas, int, unique=True), {"x": [3, 3]}, "column 'x': unique=True"),
        (
            schemas.DataFrameSchema(
                {"x": schemas.Column(int, metadata=DP), "y": schemas.Column(int, check.ge(5))}
            ),
            {"x": [3], "y": [1]},
            "column 'y': greater_than_or_equal_to",
        ),
        (
            schemas.DataFrameSchema({"x": schemas.Column(int, metadata=DP)}, unique=["x"]),
            {"x": [3, 3]},
            "schema: unique=['x']",
        ),
        (
            schemas.DataFrameSchema({"x": schemas.Column(int, metadata=DP)}, strict=True),
            {"x": [3], "y": [1]},
            "schema: strict=True",
        ),
    ]
    for schema, cells, message in beyond:
        assert unchecked(schema) == (message,)
        conform(pd.DataFrame(cells), read_schema(schema))
        with pytest.raises(schemas.errors.SchemaError):
            schema.validate(pl.DataFrame(cells))


# ------------------------------------------------------------------ imports


@pytest.mark.full
def test_reading_a_schema_imports_no_other_part_of_pandera(part, tmp_path):
    """Also where the schema itself came by pickle, and nothing but its own modules is there."""
    schema = one(part.schemas, part.integers[0], part.schemas.Check.in_range(0, 9))
    others = {"pandera.pandas", "pandera.polars", "pandera.pyspark"} - {f"pandera.{part.name}"}
    script = tmp_path / "reads.py"  # a file: given its code by -c, PySpark takes Python for its doctests
    script.write_text(
        "import sys, pickle\n"
        f"schema = pickle.loads({pickle.dumps(schema)!r})\n"
        f"for other in {sorted(others)!r}: sys.modules[other] = None\n"
        "from pdprivacy.declaration.schema import read_schema, unchecked\n"
        "print(read_schema(schema)['x'].upper, unchecked(schema))\n"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert process.stdout.strip() == "9 ()", process.stderr


def test_a_domain_is_its_own_schema():
    domain = Domain((Column("x", "integer"),))
    assert read_schema(domain) is domain
    assert unchecked(domain) == ()


# ------------------------------------------------------------------ checks that bind no cell


def test_a_check_that_only_warns_bounds_nothing(part):
    integers, texts, check = part.integers[0], part.texts[0], part.schemas.Check
    warned = check.in_range(0, 10, raise_warning=True)
    assert column(part.schemas, integers, warned) == Column("x", "integer")
    assert column(part.schemas, integers, [check.in_range(0, 120), warned]).bounds("mean") == (0, 120)
    assert column(part.schemas, None, warned) == Column("x", "category")
    labels = check.isin(["a"], raise_warning=True)
    assert column(part.schemas, texts, labels) == Column("x", "category")
    assert unchecked(one(part.schemas, integers, warned)) == ()


def test_a_function_bounds_nothing_whatever_its_name(part):
    check, statistics = part.schemas.Check, {"min_value": 0, "max_value": 10, "allowed_values": [1]}
    for name in ("in_range", "isin", "greater_than"):
        disguised = check(lambda data: True, name=name, statistics=statistics)
        assert column(part.schemas, part.integers[0], disguised) == Column("x", "integer")
        assert len(unchecked(one(part.schemas, part.integers[0], disguised))) == 1


def test_a_built_in_check_bounds_under_any_name(part):
    renamed = part.schemas.Check.in_range(0, 10, name="plausible")
    assert column(part.schemas, part.integers[0], renamed).bounds("mean") == (0, 10)


@pytest.mark.parametrize(("excluding", "argument"), [("notin", ["b", None]), ("ne", "b")])
def test_labels_that_a_check_excludes_are_not_declared(part, excluding, argument):
    check, texts = part.schemas.Check, part.texts[0]
    checks = [check.isin(["a", "b", "c"]), getattr(check, excluding)(argument)]
    for ordered in (checks, checks[::-1]):
        assert column(part.schemas, texts, ordered).categories == ("a", "c")
    assert unchecked(one(part.schemas, texts, checks)) == ()
    with pytest.raises(DeclarationError, match="can meet all of its checks"):
        column(part.schemas, texts, [check.isin(["b"]), checks[1]])


def test_excluded_numbers_and_truth_values_narrow_the_declaration(part):
    check = part.schemas.Check
    number = column(part.schemas, part.integers[0], [check.isin([-99, 1, 2]), check.ne(-99)])
    assert number.categories == (1, 2)
    assert number.bounds("mean") == (1, 2)
    assert column(part.schemas, part.truths[0], check.ne(True)).categories == (False,)


def test_an_excluded_label_is_refused_or_left_out():
    schema = one(pa, str, [pa.Check.isin(["a", "b"]), pa.Check.ne("b")])
    frame = pd.DataFrame({"x": ["a", "b", "a"]})
    with pytest.raises(InvalidDataError, match='on_invalid="drop"'):
        pdprivacy.protect(frame, schema, epsilon=1)
    with pytest.warns(pdprivacy.errors.InvalidDataWarning):
        private = pdprivacy.protect(frame, schema, epsilon=1, on_invalid="drop")
    assert private.dp.quality().loc["x", "dropped"] == 1


# ------------------------------------------------------------------ columns that may be absent


def optional(schemas: ModuleType, integers: Any) -> Any:
    age = schemas.Column(integers, schemas.Check.in_range(0, 120), metadata=DP)
    pay = schemas.Column(integers, schemas.Check.in_range(0, 9), required=False, metadata=DP)
    return schemas.DataFrameSchema({"age": age, "pay": pay})


@pytest.mark.parametrize("on_invalid", ["raise", "clip", "drop"])
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.InvalidDataWarning")
def test_a_column_that_is_not_required_may_be_absent(on_invalid):
    import polars as pl

    for schema in (optional(pa, int), optional(needed("polars").schemas, int)):
        for make in (pd.DataFrame, pl.DataFrame, pl.LazyFrame):
            if make is pd.DataFrame and type(schema) is not pa.DataFrameSchema:
                continue
            frame, whole = make({"age": [30, 41]}), make({"age": [30, 41], "pay": [5, 6]})
            private = pdprivacy.protect(frame, schema, epsilon=1, on_invalid=on_invalid)
            assert private.dp.domain.names == ("age",)
            assert pdprivacy.check(frame, schema).empty
            both = pdprivacy.protect(whole, schema, epsilon=1, on_invalid=on_invalid)
            assert both.dp.domain.names == ("age", "pay")
            with pytest.raises(InvalidDataError, match="'age'"):
                pdprivacy.protect(make({"pay": [5, 6]}), schema, epsilon=1, on_invalid=on_invalid)


class SomeOptional(pa.DataFrameModel):
    age: int = pa.Field(in_range={"min_value": 0, "max_value": 120}, metadata=DP)
    pay: Optional[int] = pa.Field(in_range={"min_value": 0, "max_value": 9}, metadata=DP)  # noqa: UP045


def test_an_optional_field_of_a_model_may_be_absent():
    private = pdprivacy.protect(pd.DataFrame({"age": [30]}), SomeOptional, epsilon=1)
    assert private.dp.domain.names == ("age",)
    with pytest.raises(InvalidDataError, match="'age'"):
        pdprivacy.protect(pd.DataFrame({"other": [30]}), SomeOptional, epsilon=1)
