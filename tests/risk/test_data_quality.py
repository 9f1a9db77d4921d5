"""Faults of a frame against its declaration, as the curator sees them before protection."""

from __future__ import annotations

import dataclasses
import functools
import io
import math
import warnings
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Budget, Column, Domain
from pdprivacy.errors import DeclarationError, InvalidDataError, NotProtectedError, ParameterError
from pdprivacy.releases.metadata import recognized
from tests.support.engine_frames import BESIDE_PANDAS, each_engine, frame_of

DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=120),
        Column("pay", "float", lower=0),
        Column("region", "category", categories=("north", "south")),
        Column("smokes", "boolean", nullable=True),
    )
)
NAN, INF = math.nan, math.inf
CELLS: dict[str, list[Any]] = {
    "age": [31, -1, 0, 120, 121, 999, 0.5, NAN],
    "pay": [0.0, 10.5, -0.5, INF, -INF, NAN],
    "region": ["north", "south", "South", "west", None],
    "smokes": [True, False, None],
}


def faults_of(name: str, cell: Any) -> set[str]:
    """The faults of one cell, by the declaration above."""
    if cell is None or cell != cell:
        return set() if name == "smokes" else {"null"}
    if name == "region":
        return set() if cell in ("north", "south") else {"undeclared label"}
    if name == "age":
        return {"fraction"} if cell % 1 else {"out of bounds"} if not 0 <= cell <= 120 else set()
    if name == "pay":
        return {"infinite"} if cell == INF else {"out of bounds"} if cell < 0 else set()
    return set()


def counted(report: pd.DataFrame) -> dict[tuple[Any, str], int]:
    """The number of records with each fault."""
    return dict(zip(zip(report.index, report["fault"], strict=True), report["records"], strict=True))


ROWS = st.lists(st.tuples(*(st.sampled_from(cells) for cells in CELLS.values())), max_size=12)


def frame(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    cells = list(zip(*rows, strict=True)) or [()] * len(CELLS)
    kinds = {"age": np.float64, "pay": np.float64, "region": object, "smokes": object}
    return pd.DataFrame(
        {name: pd.Series(list(column), dtype=kinds[name]) for name, column in zip(CELLS, cells, strict=True)}
    )


@given(ROWS)
def test_every_fault_of_every_cell_is_counted(rows):
    report = pdprivacy.check(frame(rows), DOMAIN)
    expected = Counter(
        (name, fault)
        for row in rows
        for name, cell in zip(CELLS, row, strict=True)
        for fault in faults_of(name, cell)
    )
    assert counted(report) == expected
    assert report["share"].tolist() == [count / len(rows) for count in report["records"]]
    faulty = sum(any(faults_of(name, cell) for name, cell in zip(CELLS, row, strict=True)) for row in rows)
    assert repr(report).startswith(f"Confidential: {faulty} of {len(rows)} record")


@given(ROWS)
def test_reported_faults_are_those_that_protect_refuses_or_leaves_out(rows):
    table = frame(rows)
    report = pdprivacy.check(table, DOMAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table.dp.protect(DOMAIN, epsilon=1)
            refused = False
        except InvalidDataError:
            refused = True
        dropped = table.dp.protect(DOMAIN, epsilon=1, on_invalid="drop").dp.quality()
    assert refused == (len(report) > 0)
    count = repr(report).partition(" of ")[0].removeprefix("Confidential: ")
    assert repr(dropped).startswith(f"Confidential: {count} of {len(rows)} record")


def test_the_examples_are_the_ends_of_numbers_and_the_most_frequent_labels():
    table = pd.DataFrame(
        {
            "age": [200, -7, 130, 3] * 5,
            "pay": [1.0] * 20,
            "region": [*"aabbbbcdefghh", *["north"] * 7],
            "smokes": [True] * 20,
        }
    )
    report = pdprivacy.check(table, DOMAIN).set_index("fault")
    assert report.loc["out of bounds", "examples"] == "-7 to 200"
    assert report.loc["undeclared label", "examples"] == "'b', 'a', 'h', 'c', 'd'"
    assert report.loc["out of bounds", "declared"] == "0 to 120"
    assert report.loc["undeclared label", "declared"] == "'north', 'south'"


def test_a_frame_that_meets_its_declaration_has_no_row():
    table = pd.DataFrame({"age": [3], "pay": [1.0], "region": ["north"], "smokes": [True]})
    report = pdprivacy.check(table, DOMAIN)
    assert (len(report), recognized(report).kind) == (0, "check")
    assert repr(report).startswith("Confidential: 0 of 1 record do not meet the declaration")


# ------------------------------------------------------------------ columns


def test_missing_and_repeated_columns_and_other_types_are_told_and_not_raised():
    table = pd.DataFrame({"age": ["31", "unknown", "n/a", "n/a"], "region": [1, 2, 3, 4], "smokes": "yes"})
    table = table.astype({"age": "string", "smokes": "string"})
    report = pdprivacy.check(table, DOMAIN)
    assert counted(report) == {
        ("age", "wrong type"): 4,
        ("pay", "missing"): 4,
        ("region", "wrong type"): 4,
        ("smokes", "wrong type"): 4,
    }
    examples = report["examples"].to_dict()
    assert examples["age"] == "text: 'n/a', 'unknown'"  # and not '31', which is a number
    assert examples["region"].startswith("numbers: ")
    assert report["declared"].to_dict()["age"] == "integer"
    assert "4 of 4 records (100 %)" in repr(report)
    twice = pd.DataFrame([[1, 2, 3]], columns=["age", "age", "other"])
    assert counted(pdprivacy.check(twice, DOMAIN))["age", "repeated"] == 1


def test_cells_of_another_type_in_a_column_of_objects_are_counted():
    domain = Domain((Column("x", "integer", lower=0, upper=9),))
    report = pdprivacy.check(pd.DataFrame({"x": pd.Series([1, "CANARY", 3, True], dtype=object)}), domain)
    assert counted(report) == {("x", "wrong type"): 2}
    assert set(report["examples"].iloc[0].split(", ")) == {"'CANARY'", "True"}


@pytest.mark.parametrize("cells", [[[1], [2], [1]], [{1}, {2}, {1}]])
def test_cells_without_a_hash_are_labels_that_are_not_declared(cells):
    domain = Domain((Column("x", "category", categories=("a",)),))
    report = pdprivacy.check(pd.DataFrame({"x": pd.Series(cells, dtype=object)}), domain)
    assert list(counted(report).values()) == [3]
    assert report["examples"].iloc[0].startswith(repr(cells[0]))


# ------------------------------------------------------------------ pandera


def schema(**columns: Any) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(columns)


def opted(*arguments: Any, **words: Any) -> pa.Column:
    return pa.Column(*arguments, metadata={"dp": {}}, **words)


def test_checks_of_pandera_beyond_the_declaration_are_run():
    even = pa.Check(lambda cells: cells % 2 == 0, name="even")
    declared = schema(
        x=opted(int, [pa.Check.in_range(0, 9), even]), id=pa.Column(int, unique=True), y=opted(float)
    )
    table = pd.DataFrame({"x": [1, 2, 3, 4], "id": [7, 7, 8, 9], "y": [0.5, 1, 2, 3]})
    report = pdprivacy.check(table, declared)
    assert counted(report) == {("x", "failed check"): 2, ("id", "failed check"): 2}
    assert report["declared"].tolist() == ["even", "field_uniqueness"]
    assert report["examples"].tolist() == ["1, 3", "7"]
    assert "not counting failed checks" in repr(report)
    with pytest.raises(InvalidDataError):
        table.dp.protect(declared, epsilon=1)


def test_checks_of_the_whole_frame_are_told_without_a_number_of_records():
    together = pa.Check(lambda frame: frame["x"] < frame["y"], name="in_order")
    declared = pa.DataFrameSchema({"x": opted(int, pa.Check.in_range(0, 9))}, checks=together, strict=True)
    report = pdprivacy.check(pd.DataFrame({"x": [1, 5, 7], "y": [2, 3, 4]}), declared)
    assert set(report["fault"]) == {"failed check"}
    assert {"in_order", "column_in_schema"} <= set(report["declared"])
    assert report["records"].isna().all()
    assert repr(report).startswith("Confidential: 0 of 3 records do not meet the declaration, not counting")


def test_a_lone_bound_and_a_fraction_are_told_by_what_is_declared():
    report = pdprivacy.check(
        pd.DataFrame({"age": [0.5, 2.25], "pay": [INF, -1.0], "region": ["north"] * 2, "smokes": [True] * 2}),
        DOMAIN,
    ).set_index("fault")
    assert report["declared"].to_dict() == {
        "fraction": "whole numbers", "infinite": "0 and up", "out of bounds": "0 and up"
    }  # fmt: skip
    assert report["examples"].to_dict() == {
        "fraction": "0.5 to 2.25",
        "infinite": "inf",
        "out of bounds": "-1",
    }


def test_faults_of_the_declaration_are_told_once():
    declared = schema(x=opted(int, pa.Check.in_range(0, 9)), g=opted(str, pa.Check.isin(["a"])))
    table = pd.DataFrame({"x": [1, 10, 11], "g": ["a", None, "b"]})
    counts = counted(pdprivacy.check(table, declared))
    assert counts == {("x", "out of bounds"): 2, ("g", "null"): 1, ("g", "undeclared label"): 1}


def test_a_dtype_that_pandera_refuses_is_told_where_all_values_fit():
    declared = schema(x=opted(int, pa.Check.in_range(0, 9)))
    table = pd.DataFrame({"x": [1.0, 2.0]})
    report = pdprivacy.check(table, declared)
    assert counted(report) == {("x", "wrong type"): 2}
    assert (report["declared"].iloc[0], report["examples"].iloc[0]) == ("int64", "float64")
    with pytest.raises(InvalidDataError):
        table.dp.protect(declared, epsilon=1)
    coerced = schema(x=opted(int, pa.Check.in_range(0, 9), coerce=True))
    assert len(pdprivacy.check(table, coerced)) == 0


def test_the_story_of_a_messy_file_ends_in_a_protected_frame():
    text = "age,region\n31,north\nunknown,Nord\n54,south\n200,north\n,south\n"
    table = pd.read_csv(io.StringIO(text), dtype={"age": "string"})
    declared = schema(
        age=opted(float, pa.Check.in_range(0, 120)), region=opted(str, pa.Check.isin(["north", "south"]))
    )
    assert counted(table.dp.check(declared)) == {("age", "wrong type"): 5, ("region", "undeclared label"): 1}
    table["age"] = pd.to_numeric(table["age"], errors="coerce").astype("float64")
    table["region"] = table["region"].replace({"Nord": "north"})
    declared = schema(
        age=opted(float, pa.Check.in_range(0, 120), nullable=True),
        region=opted(str, pa.Check.isin(["north", "south"])),
    )
    assert counted(table.dp.check(declared)) == {("age", "out of bounds"): 1}
    private = table.dp.protect(declared, epsilon=1, on_invalid="drop")
    assert "1 of 5 records (20 %) left out" in repr(private.dp.quality())


# ------------------------------------------------------------------ other engines


@pytest.mark.parametrize("engine", each_engine([name for name in BESIDE_PANDAS if name != "Spark"]))
def test_frames_of_every_engine_are_checked_alike(engine):
    table = pd.DataFrame(
        {
            "age": [31, 200, -4, 7] * 3,
            "pay": [1.5, None, -2.0, 8.25] * 3,
            "region": ["north", "West", None, "south"] * 3,
            "smokes": pd.array(["yes"] * 12, dtype="string"),
        }
    )
    expected = pdprivacy.check(table, DOMAIN)
    report = pdprivacy.check(frame_of(engine, table), DOMAIN)
    pd.testing.assert_frame_equal(pd.DataFrame(report), pd.DataFrame(expected))
    assert repr(report) == repr(expected)
    missing = Domain((*DOMAIN.columns, Column("height", "float", lower=0, upper=3)))
    assert counted(pdprivacy.check(frame_of(engine, table), missing))["height", "missing"] == 12


# ------------------------------------------------------------------ for the curator alone


def test_the_result_is_marked_as_confidential_and_cannot_be_reported(tmp_path):
    table = pd.DataFrame({"age": [999, 31], "pay": [1.0, 2.0], "region": ["north"] * 2, "smokes": [True] * 2})
    report = table.dp.check(DOMAIN)
    for marked in (report, report.iloc[:1], report.copy(), report[["fault", "records"]]):
        assert recognized(marked).what == "confidential"
    assert report.attrs == {"dp": {"confidential": "check"}}  # which pandas hands on, and stores in files
    bare = pd.DataFrame(report)
    bare.attrs = {}
    assert recognized(bare).what == "confidential"
    assert report.dp._repr_html_().count("CONFIDENTIAL") == 1
    assert "1 of 2 records (50 %) do not meet the declaration" in repr(report.dp)
    private = table.assign(age=30).dp.protect(DOMAIN, epsilon=1)
    count = private.dp.count(epsilon=1)
    pytest.importorskip("jinja2")
    with pytest.raises(ParameterError, match="CONFIDENTIAL"):
        pdprivacy.report({"count": count, "check": report}, path=tmp_path / "r.html", pictures=False)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_charged_and_no_frame_is_changed():
    budget = Budget(1)
    table = pd.DataFrame({"age": [999, 31], "pay": [1.0, 2.0], "region": ["north"] * 2, "smokes": [True] * 2})
    before = table.copy()
    table.dp.check(DOMAIN)
    pd.testing.assert_frame_equal(table, before)
    assert (table.attrs, budget.spent) == ({}, (0, 0))


@pytest.mark.parametrize(
    ("use", "error", "says"),
    [
        (lambda df: pdprivacy.check("data.csv", DOMAIN), ParameterError, "'frame' must be a frame"),
        (lambda df: df.dp.check(Domain(())), None, ""),
        (lambda df: df.dp.check(schema(age=pa.Column(int))), DeclarationError, "no column is declared"),
        (lambda df: df.dp.check(3), ParameterError, "'schema' must be"),
        (lambda df: df.dp.check(), ParameterError, "df.dp.check(schema)"),
        (lambda df: df["age"].dp.check(DOMAIN), NotProtectedError, "df.dp.check(schema) of the whole frame"),
        (
            lambda df: df.dp.protect(DOMAIN, epsilon=1).dp.check(DOMAIN),
            ParameterError,
            "private.dp.quality()",
        ),
    ],
)
def test_unsupported_checks_are_refused(use, error, says):
    table = pd.DataFrame({"age": [31], "pay": [1.0], "region": ["north"], "smokes": [True]})
    if error is None:
        assert len(use(table)) == 0
        return
    with pytest.raises(error) as caught:
        use(table)
    assert says in str(caught.value)


@pytest.mark.parametrize("coerce", [True, False])
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("cell", [Decimal("sNaN"), 10**400, range(10**12)], ids=["sNaN", "10**400", "range"])
def test_cells_that_no_double_or_array_holds_are_counted_without_a_conversion(cell, kind, coerce):
    """pandera would make an array of ``range(10**12)``, of 8 terabytes."""
    number = pa.Column(kind, pa.Check.in_range(0, 10), coerce=coerce, metadata={"dp": {}})
    cells = np.empty(3, dtype=object)
    cells[:] = [cell, 1, 2]
    if type(cell) is range and coerce:
        pytest.skip("pandera converts the cells before anything else")
    table = pdprivacy.check(
        pd.DataFrame({"x": pd.Series(cells, dtype=object)}), pa.DataFrameSchema({"x": number})
    )
    assert "x" in table.index
    assert table.loc[["x"], "records"].max() >= 1


def test_a_name_with_a_null_character_is_refused_before_polars_panics():
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    domain = pdprivacy.Domain((pdprivacy.Column("a\0b", "integer", lower=0, upper=5),))
    for call in (pdprivacy.check, functools.partial(pdprivacy.protect, epsilon=1)):
        with pytest.raises(ParameterError, match="without a null character"):
            call(polars.DataFrame({"a\0b": [1, 2]}), domain)


# ------------------------------------------------------------------ values that are many


@pytest.mark.parametrize("engine", each_engine(["pandas", "Polars", "DuckDB", "Dask"]))
def test_a_number_that_makes_up_half_of_those_out_of_bounds_is_listed(engine):
    domain = Domain(tuple(Column(name, "integer", lower=0, upper=120) for name in ("age", "pay", "rent")))
    cells = {"age": [-99] * 3 + [200, 300, 5], "pay": [-99] * 6, "rent": [1, 2, 3, 4, 130, -7]}
    table = frame_of(engine, pd.DataFrame(cells))
    report = pdprivacy.check(table, domain)
    assert report["examples"].to_dict() == {
        "age": "-99 (3), 200 (1), 300 (1); -99 to 300",
        "pay": "-99",
        "rent": "-7 to 130",
    }
    assert repr(report).splitlines()[0].endswith("; -99 in 2 columns")
    assert pdprivacy.check(table, domain, examples=1).loc["age", "examples"] == "-99 (3); -99 to 300"
    coded = Domain(tuple(dataclasses.replace(column, missing=(-99,)) for column in domain.columns))
    assert pdprivacy.check(table, coded)["records"].to_dict() == {"age": 2, "rent": 2}


def test_a_label_that_is_frequent_in_several_columns_is_named():
    domain = Domain(tuple(Column(name, "category", categories=("no", "yes")) for name in "abc"))
    cells = {"a": ["n/a", "n/a", "no"], "b": ["n/a", "n/a", "maybe"], "c": ["no", "yes", "n/a"]}
    report = pd.DataFrame(cells).dp.check(domain, examples=1)
    assert report["examples"].to_dict() == dict.fromkeys("abc", "'n/a'")
    assert (
        repr(report).splitlines()[0].endswith("; 'n/a' in 2 columns")
    )  # once in the third, which is no sign


@pytest.mark.parametrize("examples", [-1, 101, 1.5, True, None])
def test_an_invalid_number_of_examples_is_refused(examples):
    with pytest.raises(ParameterError, match="'examples' must be a whole number"):
        pd.DataFrame({"age": [31]}).dp.check(Domain((Column("age", "integer"),)), examples=examples)
