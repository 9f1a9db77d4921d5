"""Declarations beside a schema: for schemas that have none, and where pandera drops metadata."""

from __future__ import annotations

import warnings

import pandas as pd
import pandera.pandas as pa
import pandera.polars as pp
import polars as pl
import pytest
from pandera.typing import DataFrame

import pdprivacy
from pdprivacy import Column, Domain, read_schema
from pdprivacy.errors import ChangedStepError, DeclarationError, DeclarationWarning, ParameterError

CHECKED = {
    "age": pa.Column(int, pa.Check.in_range(0, 120)),
    "health": pa.Column(str, pa.Check.isin(["no", "yes"])),
}
THEIRS = pa.DataFrameSchema(CHECKED)
OVERLAY = {"age": {"bins": [0, 18, 120]}, "health": {"role": "sensitive"}}
FRAME = pd.DataFrame({"age": [31, 54], "health": ["no", "yes"]})


def ours() -> pa.DataFrameSchema:
    """The schema that declares in its metadata what the overlay declares beside it."""
    return THEIRS.update_columns({name: {"metadata": {"dp": dp}} for name, dp in OVERLAY.items()})


def test_an_overlay_declares_what_metadata_would():
    private = FRAME.dp.protect(THEIRS, epsilon=1, columns=OVERLAY)
    assert private.dp.domain == read_schema(ours()) == read_schema(THEIRS, OVERLAY)
    assert private.dp.domain.fingerprint() == read_schema(ours()).fingerprint()
    assert all(column.metadata is None for column in THEIRS.columns.values())


def test_an_overlay_declares_for_other_engines():
    polars = pp.DataFrameSchema({"age": pp.Column(int, pp.Check.in_range(0, 120))})
    for schema in (polars, THEIRS.select_columns(["age"])):
        private = pdprivacy.protect(
            pl.DataFrame(FRAME.to_dict("list")), schema, epsilon=1, columns={"age": {}}
        )
        assert private.dp.domain == Domain((Column("age", "integer", lower=0, upper=120),))


def test_an_overlay_overrides_the_metadata_key_by_key():
    declared = {"bins": [0, 65, 120], "role": "quasi_identifier"}
    other = {"title": "Age"}
    schema = pa.DataFrameSchema(
        {"age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": declared, **other})}
    )
    age = read_schema(schema, {"age": {"bins": [0, 18, 120], "bounds": [0, 100]}})["age"]
    assert (age.bins, age.upper, age.role) == ((0, 18, 120), 100, "quasi_identifier")
    assert schema.columns["age"].metadata == {"dp": declared, **other}
    assert read_schema(schema)["age"].bins == (0, 65, 120)
    both = schema.add_columns({"health": CHECKED["health"]})
    assert read_schema(both, {"health": {}}).names == ("age", "health")


def test_a_column_keeps_the_checks_of_its_schema():
    with pytest.raises(pdprivacy.errors.InvalidDataError, match="in_range"):
        FRAME.assign(age=[31, 200]).dp.protect(THEIRS, epsilon=1, columns=OVERLAY)
    faults = FRAME.assign(age=[31, 200]).dp.check(THEIRS, columns=OVERLAY)
    assert faults["fault"].tolist() == ["out of bounds"]
    assert pdprivacy.check(FRAME, THEIRS, columns=OVERLAY).empty


@pytest.mark.parametrize(
    ("schema", "columns", "message"),
    [
        (THEIRS, {"agee": {}}, "'columns' has the column 'agee'.*\n.*columns={'age'"),
        (THEIRS, ["age"], "'columns' must be a dict"),
        (THEIRS, {"age": "sensitive"}, "must have a dict for the column 'age'"),
        (THEIRS, {"age": None}, "must have a dict for the column 'age'"),
        (
            THEIRS,
            {"age": {"rolle": "sensitive"}},
            "unknown key 'rolle' for the column 'age'.*\n.*columns={'age': {\"role\": \"sensitive\"}}",
        ),
        (THEIRS, {"age": {0: "sensitive"}}, "unknown key 0"),
        (THEIRS, {"age": {"role": "secret"}}, "'role' of column 'age' must be one of"),
        (THEIRS, {"age": {"bounds": [0, ...]}}, "column 'age' is not filled in yet"),
        (THEIRS, {"health": {"bounds": [0, 1]}}, "needs a numeric column"),
        (THEIRS, {}, "no column is declared for release"),
        (Domain((Column("age", "integer"),)), {"age": {}}, "'columns' adds declarations to a pandera schema"),
    ],
)
def test_an_overlay_that_fits_no_schema_is_refused(schema, columns, message, tmp_path):
    ledger = pdprivacy.Ledger(tmp_path / "budget.db")
    for call, terms in (
        (pdprivacy.protect, {"epsilon": 1, "budget": ledger, "name": "a"}),
        (pdprivacy.check, {}),
    ):
        with pytest.raises((ParameterError, DeclarationError), match=message):
            call(FRAME, schema, columns=columns, **terms)
    assert not (tmp_path / "budget.db").exists()  # no budget was opened


def test_the_hints_of_a_refused_overlay_are_valid_calls():
    for columns in (
        {"agee": {}},
        {"age": None},
        {"age": {"rolle": 1}},
        {"age": {"band": 1}},
        {"age": {"bin": 1}},
    ):
        with pytest.raises(ParameterError) as refused:
            read_schema(THEIRS, columns)
        hint = refused.value.hint.rstrip(".")
        assert "age" in eval(f"read_schema(THEIRS, {hint})", {"read_schema": read_schema, "THEIRS": THEIRS})


def test_an_overlay_without_a_value_takes_back_the_word_of_the_metadata():
    age = pa.Column(
        int, pa.Check.in_range(0, 120), metadata={"dp": {"role": "sensitive", "bins": [0, 9, 120]}}
    )
    column = read_schema(pa.DataFrameSchema({"age": age}), {"age": {"role": None}})["age"]
    assert (column.role, column.bins) == (None, (0, 9, 120))


def test_a_step_is_declared_beside_its_schema(tmp_path):
    frame = pd.DataFrame({"age": [31, 54] * 50, "health": ["no", "yes"] * 50})

    def monthly(private):
        return private.dp.crosstab("age", "health", epsilon=0.5)

    def step(schema, **columns):
        terms = {"epsilon": 1, "ledger": tmp_path / "budget.db", "name": "survey", "to": tmp_path}
        return pdprivacy.release_step(schema=schema, **terms, **columns)(monthly)(frame, release_id="a")

    first = step(THEIRS, columns=OVERLAY)
    pd.testing.assert_frame_equal(step(ours()), first)  # the same declaration, so the stored result
    with pytest.raises(ChangedStepError, match="another declaration"):
        step(THEIRS, columns={**OVERLAY, "age": {"bins": [0, 65, 120]}})


# ------------------------------------------------------------------ where pandera loses metadata


def test_a_schema_from_yaml_is_declared_beside_it():
    read = pa.DataFrameSchema.from_yaml(ours().to_yaml())
    with pytest.raises(DeclarationError, match=r"(?s)no column is declared.*YAML.*columns={'age': {}}"):
        FRAME.dp.protect(read, epsilon=1)
    assert FRAME.dp.protect(read, epsilon=1, columns=OVERLAY).dp.domain == read_schema(ours())


class Person(pa.DataFrameModel):
    age: int = pa.Field(in_range={"min_value": 0, "max_value": 120}, metadata={"dp": {}})
    health: str = pa.Field(isin=["no", "yes"], metadata={"dp": {}})


class Redeclared(Person):
    age: int = pa.Field(ge=0)


class Extended(Person):
    pay: int | None = pa.Field(ge=0, le=9, metadata={"dp": {}})


class Longer(Extended):
    height: int


def test_a_field_that_is_declared_again_is_named_and_declared_beside_the_model():
    for call in (lambda: FRAME.dp.protect(Redeclared, epsilon=1), lambda: FRAME.dp.check(Redeclared)):
        with pytest.warns(DeclarationWarning, match=r"Redeclared declares the field 'age' again.*Person"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private = FRAME.dp.protect(Redeclared, epsilon=1, columns={"age": {"bounds": [0, 120]}})
        extended = FRAME.assign(pay=1, height=2).dp.protect(Longer, epsilon=1)
        FRAME.assign(height=2).dp.protect(Longer, epsilon=1)  # absent, and not declared again
    assert private.dp.domain == read_schema(Person)
    assert extended.dp.domain.names == ("age", "health", "pay")


class Polars(pp.DataFrameModel):
    age: int = pp.Field(in_range={"min_value": 0, "max_value": 120}, metadata={"dp": {}})
    health: str = pp.Field(isin=["no", "yes"], metadata={"dp": {}})


class RedeclaredInPolars(Polars):
    age: int


def test_the_schema_of_a_model_is_traced_back_to_the_model():
    """As by `to_schema`, and as pandera keeps it with a frame that the model validated."""
    polars = pl.DataFrame(FRAME.to_dict("list"))
    for call in (
        lambda **o: FRAME.dp.protect(Redeclared.to_schema(), epsilon=1, **o),
        lambda **o: Redeclared.validate(FRAME.copy()).dp.protect(epsilon=1, **o),
        lambda **o: DataFrame[Redeclared](FRAME).dp.protect(epsilon=1, **o),
        lambda **o: pdprivacy.protect(polars, RedeclaredInPolars.to_schema(), epsilon=1, **o),
        lambda **o: FRAME.dp.check(Redeclared.to_schema(), **o),
    ):
        with pytest.warns(
            DeclarationWarning, match=r"the field 'age' again.*columns=\{'age': \{\}\}"
        ) as warned:
            call()
        assert len(warned) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(columns={"age": {"bounds": [0, 120]}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FRAME.dp.protect(Person.to_schema(), epsilon=1)
        FRAME.dp.protect(THEIRS, epsilon=1, columns=OVERLAY)
        # a changed copy is a schema of its own, as docs/bounds.md says
        FRAME.dp.protect(Redeclared.to_schema().update_column("age", nullable=True), epsilon=1)


# ------------------------------------------------------------------ the schema of a validated frame


def test_the_schema_of_a_validated_frame_is_used():
    assert ours().validate(FRAME.copy()).dp.protect(epsilon=1).dp.domain == read_schema(ours())
    validated = THEIRS.validate(FRAME.copy())
    assert validated.dp.protect(epsilon=1, columns=OVERLAY).dp.domain == read_schema(ours())
    assert validated.dp.check(columns=OVERLAY).empty
    assert Person.validate(FRAME.copy()).dp.protect(epsilon=1).dp.domain == read_schema(Person)
    assert DataFrame[Person](FRAME).dp.protect(epsilon=1).dp.domain == read_schema(Person)
    other = {"age": pa.Column(int, pa.Check.in_range(0, 99), metadata={"dp": {}})}
    assert validated.dp.protect(pa.DataFrameSchema(other), epsilon=1).dp.domain["age"].upper == 99


def test_a_frame_that_was_not_validated_needs_a_schema():
    unvalidated = [FRAME.copy(), FRAME.assign(pandera=1), pl.DataFrame(FRAME.to_dict("list"))]
    for frame in (*unvalidated, ours().validate(FRAME.copy()).copy()):
        for call in (lambda: pdprivacy.protect(frame, epsilon=1), lambda: pdprivacy.check(frame)):  # noqa: B023
            with pytest.raises(ParameterError, match="'schema' is missing"):
                call()
