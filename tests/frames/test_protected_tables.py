"""Tables of the same people, merged by the unit; and the module of these steps, `unit_steps`."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pdprivacy
from pdprivacy import Column, Domain, Ledger, protect, protect_tables
from pdprivacy.core.engines.unit_codes import codes_of_tables
from pdprivacy.errors import BudgetError, InvalidDataError, OmissionWarning, ParameterError
from tests.support.snapshots import records_of

PERSONS = Domain(
    (Column("sex", "category", categories=("f", "m")), Column("age", "integer", lower=0, upper=120))
)
VISITS = Domain(
    (
        Column("cost", "float", True, lower=0, upper=1000),
        Column("ill", "boolean", role="sensitive"),
        Column("n", "integer", lower=-9, upper=9),
    )
)


def tables(persons, visits):
    """Frames of (id, sex, age) and (id, cost, ill, n)."""
    first = pd.DataFrame(persons, columns=["id", "sex", "age"]).astype({"id": "int64", "age": "int64"})
    second = pd.DataFrame(visits, columns=["id", "cost", "ill", "n"])
    return first, second.astype({"id": "int64", "cost": "float64", "ill": "bool", "n": "int64"})


def protected(persons, visits, **options):
    first, second = tables(persons, visits)
    given_tables = {"persons": (first, PERSONS), "visits": (second, VISITS)}
    options = {"epsilon": 100, "max_rows": {"visits": 50}, **options}
    return protect_tables(given_tables, unit="id", **options)


def cells(frame):
    return [tuple(None if pd.isna(cell) else cell for cell in row) for row in frame.astype(object).to_numpy()]


PERSON_ROWS = [(4, "f", 30), (1, "m", 40), (9, "f", 50), (2, "m", 60)]
PAIR = (tables(PERSON_ROWS, [])[0], PERSONS)
VISIT_ROWS = [
    (9, 10.5, True, 1),
    (1, 2.0, False, 2),
    (9, np.nan, False, 3),
    (7, 5.0, True, 4),
    (1, 3.0, False, 5),
]


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 6), max_size=6, unique=True),
    st.lists(st.tuples(st.integers(0, 6), st.integers(-8, 8)), max_size=12),
    st.sampled_from(["left", "inner"]),
)
def test_rows_are_those_of_a_merge_in_pandas(ids, visits, how):
    persons = [(unit, "f", 20 + unit) for unit in ids]
    rows = [(unit, 1.5, True, n) for unit, n in visits]
    private = protected(persons, rows)
    made = private["visits"].per_unit({"total": ("n", "sum"), "rows": "size"})
    result = records_of(private["persons"].merge(made, how=how, on="id"))
    first, second = tables(persons, rows)
    grouped = second.groupby("id").agg(total=("n", "sum"), rows=("n", "size")).reset_index()
    assert cells(result) == cells(first.merge(grouped, how=how, on="id").drop(columns="id"))


@settings(max_examples=10)
@given(st.permutations(PERSON_ROWS), st.permutations(VISIT_ROWS))
def test_attributes_of_a_person_are_those_of_each_visit(persons, visits):
    private = protected(persons, visits)
    result = records_of(private["visits"].merge(private["persons"], on="id", how="left"))
    first, second = tables(persons, visits)
    assert cells(result) == cells(second.merge(first, how="left", on="id").drop(columns="id"))


def test_a_merge_has_the_domain_budget_and_stability_of_what_it_adds():
    private = protected(PERSON_ROWS, VISIT_ROWS)
    persons, visits = private["persons"], private["visits"]
    made = visits.per_unit({"spent": ("cost", "sum"), "ill": ("ill", "any")}, bounds={"spent": (0, 20)})
    left, inner = persons.merge(made, how="left"), persons.merge(made, on="id")
    assert left.dp.domain["spent"].nullable
    assert not inner.dp.domain["spent"].nullable
    assert left.dp.domain["ill"].role == "sensitive"
    filled = left.fillna({"spent": 0})
    assert records_of(filled)["spent"].tolist() == [0.0, 5.0, 10.5, 0.0]
    assert filled.dp.sum("spent", epsilon=1).dp.metadata.sensitivity == 20
    with_persons = visits.merge(persons, on="id", how="left")
    assert with_persons.dp.sum("age", epsilon=1).dp.metadata.sensitivity == 50 * 120
    assert persons.dp.budget is visits.dp.budget is left.dp.budget
    assert visits.dp.budget.spent == (2.0, 0.0)
    table = left.dp.crosstab("sex", "ill", epsilon=1)
    assert table.dp.metadata.unit == "id"
    assert any("per_unit" in text for text in left.dp.lineage["step"])


def test_columns_made_under_a_condition_on_a_sensitive_column_are_sensitive():
    """Whether a person has a visit that is ill says what the column says."""
    private = protected(PERSON_ROWS, VISIT_ROWS)
    sick = private["visits"].query("ill").per_unit({"visits": "size"})
    both = private["persons"].merge(sick, how="left").fillna({"visits": 0})
    assert both.dp.domain["visits"].role == "sensitive"
    table = both.cut("visits", [0, 1, 51]).dp.crosstab("sex", "visits", epsilon=1)
    assert table.dp.metadata.dr_ha["by_column"].keys() == {"visits"}


def neighbours():
    """Databases of three persons with up to two rows in each table, and the same without one person."""
    sides = [(), ((1,),), ((1,), (2,))]
    for chosen in product(product(range(2), range(3)), repeat=3):
        yield [(count, sides[visits]) for count, visits in chosen]


@pytest.mark.full
@pytest.mark.parametrize("how", ["left", "inner"])
def test_one_person_more_or_less_changes_its_own_rows_alone(how):
    """In both directions of a merge, for every database of three persons."""
    seen = {}
    for database in neighbours():
        persons = [(unit, "f", 20 + unit) for unit, (count, _) in enumerate(database) for _ in range(count)]
        visits = [(unit, 1.0, True, n) for unit, (_, listed) in enumerate(database) for (n,) in listed]
        private = protected(persons, visits[::-1])
        totals = private["persons"].merge(private["visits"].per_unit({"total": ("n", "sum")}), how=how)
        each = private["visits"].merge(private["persons"], how=how)
        for kind, frame in (("totals", totals), ("each", each)):
            rows = cells(records_of(frame))
            ages = [row[1] if kind == "totals" else row[-1] for row in rows]
            for unit, contents in enumerate(database):
                own = sorted(str(row) for row, age in zip(rows, ages, strict=True) if age == 20 + unit)
                assert seen.setdefault((kind, unit, contents), own) == own
                assert len(own) <= (1 if kind == "totals" else 2)


def test_a_duplicated_person_keeps_one_row():
    private = protected([(1, "f", 30), (1, "f", 31), (2, "m", 40)], [], rng=5)
    assert len(records_of(private["persons"])) == 2
    assert private["persons"].dp.quality().loc["id", "dropped"] == 1


def test_names_of_other_types_are_refused():
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    with pytest.raises(InvalidDataError, match="several types"):
        protect_tables(
            {"persons": (first, PERSONS), "visits": (second.astype({"id": str}), VISITS)},
            unit="id",
            epsilon=1,
        )
    null = second.astype({"id": "Int64"})
    null.loc[0, "id"] = None
    with pytest.raises(InvalidDataError, match="nulls"):
        protect_tables({"persons": (first, PERSONS), "visits": (null, VISITS)}, unit="id", epsilon=1)


@pytest.mark.parametrize("dtype", ["Int64", "int32", "float64", "category"])
def test_names_are_equal_whatever_dtype_holds_them(dtype):
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    private = protect_tables(
        {"persons": (first, PERSONS), "visits": (second.astype({"id": dtype}), VISITS)},
        unit="id", max_rows={"visits": 9}, epsilon=1,
    )  # fmt: skip
    made = private["persons"].merge(private["visits"].per_unit({"rows": "size"}), how="left")
    assert cells(records_of(made)[["rows"]]) == [(None,), (2,), (2,), (None,)]


def test_a_ledger_keeps_one_budget_for_the_tables(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    options = {"budget": ledger, "name": "clinic"}
    private = protected(PERSON_ROWS, VISIT_ROWS, epsilon=1, **options)
    private["visits"].dp.count(epsilon=0.5)
    again = protected(PERSON_ROWS, VISIT_ROWS, epsilon=None, **options)
    assert again["persons"].dp.budget.left == (0.5, 0.0)
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    with pytest.raises(BudgetError):  # another declaration
        protect_tables({"persons": (first, PERSONS), "other": (second, VISITS)}, unit="id", **options)


def test_frames_that_do_not_belong_together_are_refused():
    private, other = protected(PERSON_ROWS, VISIT_ROWS), protected(PERSON_ROWS, VISIT_ROWS)
    persons, visits = private["persons"], private["visits"]
    alone = protect(tables(PERSON_ROWS, VISIT_ROWS)[0], PERSONS, epsilon=1)
    totals = visits.per_unit({"total": ("n", "sum")})
    for right, options, reason in (
        (other["visits"].per_unit({"rows": "size"}), {}, "protected together"),
        (visits, {}, "several rows"),
        (totals, {"on": "age"}, "column of the unit"),
        (totals, {"how": "outer"}, "'how'"),
        (totals.rename(columns={"total": "age"}), {}, "both frames"),
        (alone, {}, "names the unit"),
    ):
        with pytest.raises(ParameterError, match=reason):
            persons.merge(right, **options)
    with pytest.raises(ParameterError, match="names the unit"):
        alone.merge(totals)
    with pytest.warns(OmissionWarning), pytest.raises(ParameterError, match="secret part"):
        persons.dp.sample(frac=0.5).merge(totals)
    assert persons.dp.budget.entries.empty


def test_groups_with_budgets_of_their_own_are_not_merged():
    """The records of one group would be read at the cost of another."""
    totals = protected(PERSON_ROWS, VISIT_ROWS)["visits"].per_unit({"total": ("n", "sum")})
    groups = totals.assign(many="total >= 2").dp.partition("many", epsilon=1)
    for left in (groups[True], totals):
        with pytest.raises(ParameterError, match="same budget"):
            left.merge(groups[False].rename(columns={"total": "t", "many": "m"}))


def test_a_table_is_merged_with_its_own_totals():
    _, second = tables(PERSON_ROWS, VISIT_ROWS)
    private = protect(second, VISITS, epsilon=100, unit="id", max_rows=9)
    each = private.merge(private.per_unit({"rows": "size"}), on="id")
    assert records_of(each)["rows"].tolist() == [2, 2, 2, 1, 2]
    assert each.dp.count(epsilon=1).dp.metadata.sensitivity == 9


@pytest.mark.parametrize(
    ("given_tables", "options", "reason"),
    [
        ({}, {}, "'tables' must map"),
        ([1], {}, "'tables' must map"),
        ({"a": 5}, {}, "pair of a frame and a schema"),
        ({"a": (5, PERSONS)}, {}, "pandas frames"),
        ({"a": PAIR}, {"max_rows": {"b": 2}}, "is no table"),
        ({"a": PAIR}, {"max_rows": {"a": None}}, "'max_rows' must be"),
        ({"a": PAIR}, {"unit": None}, "'unit' must be"),
        ({"a": PAIR}, {"unit": "nobody"}, "'unit' must be"),
    ],
)
def test_other_tables_are_refused(given_tables, options, reason):
    with pytest.raises(ParameterError, match=reason):
        protect_tables(given_tables, **{"unit": "id", "epsilon": 1, **options})


def test_invalid_records_are_dropped_with_their_units():
    first, second = tables(PERSON_ROWS, [(9, 5000.0, True, 1), (1, 2.0, False, 2)])
    with pytest.warns(pdprivacy.errors.InvalidDataWarning):
        private = protect_tables(
            {"persons": (first, PERSONS), "visits": (second, VISITS)}, unit="id", epsilon=1, on_invalid="drop"
        )
    made = private["persons"].merge(private["visits"].per_unit({"rows": "size"}), how="left")
    assert cells(records_of(made)[["rows"]]) == [(None,), (1,), (None,), (None,)]


def test_the_lineage_tells_tables_and_earlier_steps_apart():
    """Stores of releases take equal lineages for equal records."""
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    pair = (second, VISITS)
    private = protect_tables({"a": (first, PERSONS), "b": pair, "c": pair}, unit="id", epsilon=1)
    persons = private["a"]
    merged = [
        persons.merge(part.per_unit({"rows": "size"}), how="left")
        for part in (private["b"], private["c"], private["b"].query("n > 2"))
    ]
    assert len({frame.dp.lineage["step"].iloc[-1] for frame in merged}) == 3


GROUPS = Column("group", "category", categories=("p", "q"), role="quasi_identifier")


def with_groups(nullable=False):
    """Persons with a group, and visits with another one and a sensitive answer."""
    persons = Domain((Column("sex", "category", categories=("f", "m"), role="quasi_identifier"),))
    visits = Domain(
        (
            GROUPS,
            Column("answer", "category", nullable, categories=("no", "yes"), role="sensitive"),
        )
    )
    first = pd.DataFrame({"id": range(8), "sex": ["f", "m"] * 4})
    second = pd.DataFrame(
        {"id": [0, 0, 1, 2, 3], "group": list("ppqqp"), "answer": ["yes", "no"] * 2 + ["no"]}
    )
    private = protect_tables(
        {"persons": (first, persons), "visits": (second, visits)},
        unit="id",
        max_rows={"visits": 5},
        epsilon=100,
    )
    return private["persons"], private["visits"]


def test_whether_a_person_has_a_row_says_what_the_conditions_say():
    persons, visits = with_groups()
    chosen = visits.query("answer == 'yes'").per_unit({"g": ("group", "first")})
    left = persons.merge(chosen, how="left")
    assert left.dp.domain["g"].role == "sensitive"
    for counts in (
        left.dp.crosstab("sex", "g", epsilon=1),
        left.dropna("g").dp.value_counts("sex", epsilon=1),
        persons.merge(chosen).dp.value_counts("sex", epsilon=1),
        persons.merge(left.drop(columns="sex").per_unit({"again": ("g", "last")}), how="left").dp.crosstab(
            "sex", "again", epsilon=1
        ),
    ):
        assert counts.dp.metadata.dr_ha is not None
    by_group = visits.query("group == 'p'").per_unit({"a": ("answer", "first")})
    assert persons.merge(by_group, how="left")._protected.mixed == {"a"}


def test_records_without_nulls_of_a_sensitive_column_were_chosen_by_it():
    persons, visits = with_groups(nullable=True)
    answered = visits.dropna("answer").per_unit({"n": "size"})
    left = persons.merge(answered, how="left")
    assert left.dp.domain["n"].role == "sensitive"
    assert persons.merge(answered).dp.value_counts("sex", epsilon=1).dp.metadata.dr_ha["by_records"] is None


def test_bounds_are_plain_numbers():
    visits = protected(PERSON_ROWS, VISIT_ROWS)["visits"]
    for bound in (np.float64(49), visits.dp.quality().loc["n", "null"]):
        with pytest.raises(ParameterError, match="plain Python values"):
            visits.per_unit({"s": ("cost", "sum")}, {"s": (0, bound)})


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (pd.Series([2**63 + 5, 7], dtype="uint64"), pd.Series([7, 8], dtype="int64"), 1),
        (pd.Series([2**63 + 5, 7], dtype="uint64"), pd.Series([7, 2**63 + 5], dtype="UInt64"), 2),
        (pd.Series([2**60 + 5, 7], dtype="int64"), pd.Series([], dtype="float64"), 0),
        (pd.Series([0.1, 7], dtype="float32"), pd.Series([0.1, 7], dtype="float64"), None),
        (pd.Series([0.1, 7], dtype="float32").astype("category"), pd.Series([0.1, 7]), None),
        (pd.Series([0.1, 7], dtype="Float32"), pd.Series([0.1, 7], dtype=object), None),
        (pd.Series([0.1, 7]).astype("category"), pd.Series([7, 0.1]), 2),
        (pd.Series([1, 7]).astype("category"), pd.Series([7, 3], dtype="float32"), 1),
        (pd.Series([1, 7]).astype("category"), pd.Series([7, 3], dtype=object), 1),
        (
            pd.Series(["3000-01-01"], dtype="datetime64[s]"),
            pd.Series(["2020-01-01"], dtype="datetime64[ns]"),
            None,
        ),
        (pd.Series(["a", "b"], dtype="category"), pd.Series(["b", "c"], dtype=object), 1),
        (pd.Series([1, 2]), pd.Series(["1", "2"]), None),
    ],
)
def test_equal_names_of_two_tables_are_one_unit(first, second, same):
    """Or are refused, with no name in the error."""
    if same is None:
        with pytest.raises(InvalidDataError, match="several types") as caught:
            codes_of_tables([first, second])
        assert not any(str(name) in str(caught.value) for name in (*first, *second) if len(str(name)) > 3)
        return
    codes = codes_of_tables([first, second])
    assert len({*codes[: len(first)]} & {*codes[len(first) :]}) == same


def test_merges_by_the_name_of_the_unit():
    private = protected(PERSON_ROWS, VISIT_ROWS)
    made = private["visits"].per_unit({"rows": "size"})
    for on in (None, "id", ["id"]):
        assert list(private["persons"].merge(made, on=on).columns) == ["sex", "age", "rows"]
    for on in (pd.Series(["id"]), ["id", "age"], np.array(["id", "x"])):
        with pytest.raises(ParameterError, match="'on' must be"):
            private["persons"].merge(made, on=on)


def test_the_column_of_the_unit_may_be_declared_in_both_tables():
    person = Column("id", "integer", role="identifier")
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    private = protect_tables(
        {
            "persons": (first, Domain((person, *PERSONS.columns))),
            "visits": (second, Domain((person, *VISITS.columns))),
        },
        unit="id", max_rows={"visits": 9}, epsilon=1,
    )  # fmt: skip
    assert len(private["visits"].merge(private["persons"], on="id").columns) == 6


def test_errors_name_the_table():
    first, second = tables(PERSON_ROWS, [(9, 5000.0, True, 1)])
    with pytest.raises(InvalidDataError) as caught:
        protect_tables({"persons": (first, PERSONS), "visits": (second, VISITS)}, unit="id", epsilon=1)
    assert caught.value.__notes__ == ["The table is 'visits'."]


def test_the_order_of_the_tables_does_not_matter_to_a_ledger(tmp_path):
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    given_tables = {"persons": (first, PERSONS), "visits": (second, VISITS)}
    options = {"unit": "id", "budget": Ledger(tmp_path / "budget.db"), "name": "clinic"}
    protect_tables(given_tables, epsilon=1, **options)["persons"].dp.count(epsilon=0.5)
    again = protect_tables(dict(reversed(given_tables.items())), **options)
    assert again["persons"].dp.budget.left == (0.5, 0.0)


def test_texts_of_repeated_merges_stay_short():
    visits = protected(PERSON_ROWS, VISIT_ROWS)["visits"]
    for number in range(12):
        visits = visits.merge(visits.per_unit({f"rows {number}": "size"}))
    assert len(visits.dp.lineage["step"].iloc[-1]) < 2000


def test_schemas_of_pandera_are_taken():
    first, second = tables(PERSON_ROWS, VISIT_ROWS)
    schema = pa.DataFrameSchema({"n": pa.Column(int, pa.Check.in_range(-9, 9), metadata={"dp": {}})})
    private = protect_tables({"persons": (first, PERSONS), "visits": (second, schema)}, unit="id", epsilon=1)
    assert list(private["visits"].columns) == ["n"]
