"""Mistakes of the first minutes (`suggestions`): each is refused, costs nothing, and says what to write.

A table of what newcomers write, of the error, of what it says, and of what they write next. Where that is
None, what the error says is code, and it is run as it stands.
"""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.accessor import DataFrameDP, ProtectedDP, _method
from pdprivacy.command import main
from pdprivacy.errors import (
    ArgumentError,
    BudgetExceeded,
    DeclarationError,
    InvalidDataError,
    MetadataError,
    NotProtectedError,
    OpaqueFrameError,
    ParameterError,
    PrivacyError,
    QueryError,
    UnknownNameError,
    UnstableStepError,
)
from pdprivacy.frames import ROW_STEPS
from pdprivacy.hints.suggestions import EXAMPLES, misuse, nearest, unknown, with_hints

pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")

CANARY, NUMBER = "Zoltan-8831", 88313
ROWS = np.arange(240)


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": 20 + ROWS % 60,
            "income": ROWS * 100.0 + NUMBER,
            "region": np.array(["north", "east", "south", "west"])[ROWS % 4],
            "health": np.array(["no", "yes"])[ROWS % 2],
            "member": ROWS % 3 == 0,
            "flag": ROWS % 2,
            "kids": np.where(ROWS % 7 == 0, np.nan, ROWS % 4),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(ROWS, unit="D"),
            "name": [f"{CANARY} {row}" for row in ROWS],
            "free": ROWS * 1.0,
        }
    )


def column(dtype: Any, *checks: Any, nullable: bool = False, coerce: bool = False, **dp: Any) -> pa.Column:
    return pa.Column(dtype, list(checks), nullable=nullable, coerce=coerce, metadata={"dp": dp})


AGE = column(int, pa.Check.in_range(16, 90), bins=[16, 30, 50, 90], role="quasi_identifier")
INCOME = column(float, pa.Check.in_range(0, 10**6))
REGION = column(str, pa.Check.isin(["north", "east", "south", "west"]))
HEALTH = column(str, pa.Check.isin(["no", "yes"]), role="sensitive")
SCHEMA = pa.DataFrameSchema(
    {
        "age": AGE, "income": INCOME, "region": REGION, "health": HEALTH,
        "member": column(bool), "free": column(float),
    }
)  # fmt: skip


@pytest.fixture
def names() -> dict[str, Any]:
    """A newcomer's objects: a frame, a schema and a protected frame with a budget of 100."""
    df = frame()
    return {
        "df": df, "schema": SCHEMA, "private": df.dp.protect(SCHEMA, epsilon=100), "pd": pd, "pa": pa,
        "np": np, "pdprivacy": pdprivacy, "column": column, "CANARY": CANARY,
        "of": lambda **columns: pa.DataFrameSchema(columns),
    }  # fmt: skip


def written(code: str, names: dict[str, Any]) -> Any:
    """Run statements parted by semicolons; what the last one, an expression, gives."""
    *before, last = [line.strip() for line in code.split(";")]
    names = dict(names)
    for line in before:
        exec(line, names)
    return eval(last.partition(" = ")[2] if last.startswith(("private = ", "df = ")) else last, names)


PROTECT = "df.dp.protect(schema, epsilon=1.0)"
MEAN = 'private.dp.mean("age", epsilon=0.1)'
BOTH = f"private = {PROTECT}; {MEAN}"
COUNTS = 'private.dp.value_counts("region", epsilon=0.1)'
TABLE = 'private.dp.crosstab("region", "health", epsilon=0.1)'
GROUPS = 'private.dp.groupby("region").mean("age", epsilon=0.1)'
AGG = 'private.dp.groupby("region").agg(["mean", "std"], "age", epsilon=0.1)'
KIDS = "df.dp.protect(of(kids=column({})), epsilon=1)"
IN_RANGE = "pa.Check.in_range(0, 9)"

# (what is written, the error, what it says, what is written next)
NOTEBOOK = [
    ("df.dp.mean('age', epsilon=0.1)", NotProtectedError, BOTH, None),
    ("df.dp.mean('age', epsilon=0.1)", NotProtectedError, "python -m pdprivacy declare data.csv", PROTECT),
    ("df.dp.budget", NotProtectedError, BOTH, None),
    ("df.dp.protect()", ParameterError, PROTECT, None),
    ("df.dp.protect(epsilon=1)", ParameterError, PROTECT, None),
    ("df.dp.protect(schema)", ParameterError, PROTECT, None),
    ("df.dp.protect(schema, 1)", ArgumentError, PROTECT, None),
    ("df.dp.protect(schema, eps=1)", ArgumentError, PROTECT, None),
    ("df.dp.protect(schema, epsilon=0)", ParameterError, "'epsilon' must be positive", PROTECT),
    ("df.dp.protect({'age': int}, epsilon=1)", ParameterError, "pa.DataFrameSchema({", PROTECT),
    ("df.dp.protect('schema.py', epsilon=1)", ParameterError, "pa.DataFrameSchema({", PROTECT),
    ("df.dp.protect(pa.infer_schema(df), epsilon=1)", DeclarationError, "known without the data", PROTECT),
    ("df['age'].dp.mean(epsilon=1)", NotProtectedError, 'private.dp.mean("age", epsilon=0.1)', None),
    ("private['age'].dp.mean(epsilon=1)", OpaqueFrameError, 'private.dp.mean("age", epsilon=0.1)', None),
    ("private['age'].var()", OpaqueFrameError, 'private.dp.var("age", epsilon=0.1)', None),
    ("private.mean()", OpaqueFrameError, 'private.dp.mean("age", epsilon=0.1)', None),
    ("len(private)", OpaqueFrameError, "private.dp.count(epsilon=0.1)", None),
    ("18 <= private['age'] <= 65", OpaqueFrameError, 'private["age"].between(18, 65)', None),
    ("df['age'].dp.protect(schema, epsilon=1)", NotProtectedError, "df.dp.protect(", PROTECT),
    ("private[['age']].mean()", OpaqueFrameError, 'private.dp.mean("age", epsilon=0.1)', MEAN),
    ("private[private.age > 30]", OpaqueFrameError, "private['age']", None),
    ("private[df['age'] > 30]", ParameterError, 'private[private["age"] >= 30]', None),
    ("private[df['age'] > private['age']]", ParameterError, "plain Python values", MEAN),
    (
        "private.head().dp.mean('age', epsilon=1)",
        OpaqueFrameError,
        'private.dp.describe("age", epsilon=0.1)',
        None,
    ),
    ("private.dp.mean('age')", ArgumentError, MEAN, None),
    ("private.dp.mean('age', 0.1)", ArgumentError, MEAN, None),
    ("private.dp.mean('age', 'income', epsilon=1)", ArgumentError, MEAN, None),
    ("private.dp.mean('age', eps=0.1)", ArgumentError, MEAN, None),
    ("private.dp.mean('age', epsilon=0.1, axis=0)", ArgumentError, MEAN, None),
    ("private.dp.mean(epsilon=0.1, axis=0)", ArgumentError, MEAN, None),
    ("private.dp.mean('age', epsilon=None)", ParameterError, "'epsilon' must be a finite number", MEAN),
    ("private.dp.mean('age', epsilon=-1)", ParameterError, "'epsilon' must be positive", MEAN),
    ("private.dp.mean('age', epsilon=1000)", BudgetExceeded, "ask for epsilon=100 or less", MEAN),
    ("private.dp.mean('agee', epsilon=1)", DeclarationError, "Did you mean 'age'?", MEAN),
    ("private.dp.mean('Age', epsilon=1)", DeclarationError, "Did you mean 'age'?", MEAN),
    (
        "private.dp.mean(('age', 'income'), epsilon=1)",
        DeclarationError,
        "Did you mean ['age', 'income']?",
        "private.dp.mean(['age', 'income'], epsilon=1)",
    ),
    ("private.dp.mean('name', epsilon=1)", DeclarationError, '"name": pa.Column(', MEAN),
    ("private.dp.mean(df, epsilon=1)", ParameterError, MEAN, None),
    ("private.dp.mean(df['age'], epsilon=1)", ParameterError, MEAN, None),
    ("private.dp.mean(private['age'], epsilon=1)", ParameterError, MEAN, None),
    ("private.dp['age'].mean(epsilon=1)", ArgumentError, MEAN, None),
    ("private.dp.age", UnknownNameError, MEAN, None),
    ("pdprivacy.mean(df)", UnknownNameError, MEAN, None),
    ("private.dp.average('age')", UnknownNameError, MEAN, None),
    ("private.dp.shape", UnknownNameError, "private.dp.count(epsilon=0.1)", None),
    ("private.dp.hist('age')", UnknownNameError, 'private.dp.histogram("age", epsilon=0.1)', None),
    ("private.dp.unique('region')", UnknownNameError, COUNTS, None),
    ("private.dp.value_count('region')", UnknownNameError, COUNTS, None),
    ("private.dp.pivot(df)", UnknownNameError, TABLE, None),
    ("private.dp.head()", UnstableStepError, 'private.query("age <= 90")', None),
    ("private.dp.drop_duplicates()", UnstableStepError, "df.dp.protect(..., unit=..., max_rows=1)", PROTECT),
    ("df.dp.verify()", MetadataError, "df.dp.protect(...).dp.mean(...)", f"{MEAN}.dp.verify()"),
]
GROUPED = [
    (
        "df.groupby('region').dp.mean('age', epsilon=1)",
        NotProtectedError,
        f"private = {PROTECT}; {GROUPS}",
        None,
    ),
    ("private.groupby('region').dp", OpaqueFrameError, GROUPS, None),
    ("private.groupby('region')['age'].dp", OpaqueFrameError, GROUPS, None),
    ("private.dp.groupby('region').dp", UnknownNameError, GROUPS, None),
    ("private.dp.groupby('region').agg('mean')", ArgumentError, AGG, None),
    ("private.dp.groupby('region').mean('age')", ArgumentError, GROUPS, None),
    (
        "private.dp.groupby('region').count('age')",
        ArgumentError,
        'groupby("region").count(epsilon=0.1)',
        GROUPS,
    ),
    (
        "private.dp.groupby('regon').mean('age', epsilon=1)",
        DeclarationError,
        "Did you mean 'region'?",
        GROUPS,
    ),
    ("private.dp.groupby(df['region']).count(epsilon=1)", ParameterError, GROUPS, None),
    ("private.dp.groupby('region', as_index=False)", ArgumentError, GROUPS, None),
]
LABELS = [
    (
        "df.dp.protect(of(region=column(str)), epsilon=1).dp.value_counts('region', epsilon=0.1)",
        DeclarationError,
        "pa.Check.isin([LABEL, ...])",
        COUNTS,
    ),
    (
        "private.dp.mean('region', epsilon=1)",
        DeclarationError,
        "private.dp.value_counts('region', epsilon=0.1)",
        None,
    ),
    ("private.dp.value_counts('free', epsilon=1)", DeclarationError, '"bins": [LOWER, ..., UPPER]', COUNTS),
    ("private.dp.value_counts('region')", ArgumentError, COUNTS, None),
    ("private.dp.value_counts(epsilon=1)", ArgumentError, COUNTS, None),
    ("private.dp.crosstab('region', epsilon=1)", ArgumentError, TABLE, None),
    ("private.dp.crosstab('region', 'region', epsilon=1)", ParameterError, TABLE, None),
    ("private.dp.crosstab(df['region'], df['health'], epsilon=1)", ParameterError, TABLE, None),
    (
        "private.dp.crosstab('region', 'health', epsilon=1, normalize='cols')",
        ParameterError,
        "normalize=True",
        TABLE,
    ),
    (
        "private.dp.proportion('health', epsilon=1)",
        ParameterError,
        "of the labels 'no', 'yes'",
        "private.dp.proportion('health', 'yes', epsilon=1)",
    ),
    (
        "private.dp.query('region == \"nrth\"')",
        QueryError,
        "such as 'north'",
        "private.dp.query('region == \"north\"')",
    ),
    ("private.dp.query('age = 3')", QueryError, "a filter compares", 'private.dp.query("age >= 30")'),
    ("private.dp.query(df.age > 3)", ParameterError, 'private.query("age >= 30")', None),
    (
        "private.dp.query('age > @limit')",
        QueryError,
        "limit = 18",
        'private.dp.query("age >= 3")',
    ),
    (
        "private.dp.query('age > age.mean()')",
        QueryError,
        "a filter takes constants",
        'private.dp.query("age >= 3")',
    ),
    (
        "df.dp.protect(of(region=column(str, pa.Check.isin(['north']))), epsilon=1)",
        InvalidDataError,
        "isin lists every label",
        "df.dp.protect(schema, epsilon=1)",
    ),
]
NUMBERS = [
    ("private.dp.var('free', epsilon=1)", DeclarationError, "pa.Check.in_range(LOWER, UPPER)", MEAN),
    (
        "df.dp.protect(of(free=column(float, pa.Check.ge(0))), epsilon=1).dp.mean('free', epsilon=1)",
        DeclarationError,
        "no declared upper bound",
        "df.dp.protect(of(free=column(float, pa.Check.in_range(0, 999))), epsilon=1).dp.mean(epsilon=1)",
    ),
    (
        "private.dp.quantile('age', 50, epsilon=1)",
        ParameterError,
        "q=0.5",
        "private.dp.quantile('age', 0.5, epsilon=1)",
    ),
    (
        "private.dp.histogram('age', bins=0, epsilon=1)",
        ParameterError,
        "bins=10",
        "private.dp.histogram('age', bins=10, epsilon=1)",
    ),
    (
        "private.dp.corr('age', epsilon=1)",
        ParameterError,
        "var",
        "private.dp.corr(['age', 'income'], epsilon=1)",
    ),
    ("private.dp.mean('age', epsilon=1, mechanism='gauss')", ParameterError, 'mechanism="gaussian"', MEAN),
    (
        "private.dp.mean('age', epsilon=1, mechanism='gaussian')",
        ParameterError,
        'mechanism="laplace"',
        "private.dp.mean('age', epsilon=1, mechanism='laplace')",
    ),
    ("private.dp.mean('age', epsilon=1, rng='x')", ParameterError, "leave it out", MEAN),
    (
        KIDS.format(f"int, {IN_RANGE}"),
        InvalidDataError,
        "nullable=True",
        KIDS.format(f"'Int64', {IN_RANGE}, nullable=True, coerce=True"),
    ),
    (
        KIDS.format(f"int, {IN_RANGE}"),
        InvalidDataError,
        '"Int64"',
        KIDS.format(f"float, {IN_RANGE}, nullable=True"),
    ),
    (
        KIDS.format(f"int, {IN_RANGE}, nullable=True, coerce=True"),
        InvalidDataError,
        'a float or "Int64"',
        KIDS.format(f"float, {IN_RANGE}, nullable=True"),
    ),
    (
        KIDS.format(f"float, {IN_RANGE}"),
        InvalidDataError,
        'on_invalid="drop"',
        KIDS.format(f"float, {IN_RANGE}").replace("epsilon", "on_invalid='drop', epsilon"),
    ),
    (
        "df.dp.protect(of(flag=column(bool)), epsilon=1)",
        InvalidDataError,
        "map({0: False, 1: True})",
        "df['flag'] = df['flag'].map({0: False, 1: True}).astype('boolean'); "
        "df.dp.protect(of(flag=column('boolean', nullable=True)), epsilon=1).dp.count('flag', epsilon=1)",
    ),
    (
        "df.dp.protect(of(flag=column(bool)), epsilon=1)",
        InvalidDataError,
        "is declared as boolean and holds numbers",
        "df.dp.protect(of(flag=column(bool, coerce=True)), epsilon=1).dp.proportion('flag', epsilon=0.1)",
    ),
    (
        "df.dp.protect(of(when=column('datetime64[us]')), epsilon=1).dp.mean('when', epsilon=0.1)",
        DeclarationError,
        "for a number",
        "df['when'] = df['when'].dt.year.astype(float); "
        "df.dp.protect(of(when=column(float, pa.Check.in_range(2000, 2100))), epsilon=1).dp.mean(epsilon=1)",
    ),
]
PIPELINE = [
    (
        "pdprivacy.protect('data.csv', schema, epsilon=1)",
        ParameterError,
        'frame = pd.read_csv("data.csv")',
        PROTECT,
    ),
    ("pdprivacy.protect(df['age'], schema, epsilon=1)", ParameterError, "series.to_frame()", PROTECT),
    ("pdprivacy.protect(df.to_numpy(), schema, epsilon=1)", ParameterError, "pd.DataFrame(...)", PROTECT),
    ("pdprivacy.protect([1, 2], schema, epsilon=1)", ParameterError, "pd.DataFrame(...)", PROTECT),
    (
        "df.dp.protect(of(Age=column(int, pa.Check.in_range(0, 99))), epsilon=1)",
        InvalidDataError,
        "as df.columns has it",
        PROTECT,
    ),
    (
        "df.drop(columns='age').dp.protect(schema, epsilon=1)",
        InvalidDataError,
        "as df.columns has it",
        PROTECT,
    ),
    (
        "df.rename(columns={'flag': 'age'}).dp.protect(schema, epsilon=1)",
        InvalidDataError,
        "rename the columns",
        PROTECT,
    ),
    ("df.astype({'age': str}).dp.protect(schema, epsilon=1)", InvalidDataError, "coerce=True", PROTECT),
    (
        "df.assign(age=-1).dp.protect(schema, epsilon=1)",
        InvalidDataError,
        'on_invalid="clip"',
        "df.assign(age=-1).dp.protect(schema, epsilon=1, on_invalid='clip')",
    ),
    (
        "df.dp.protect(of(age=column(int, rolle='x')), epsilon=1)",
        DeclarationError,
        'metadata={"dp": {"role": ...}}',
        PROTECT,
    ),
    (
        "df.dp.protect(of(age=column(int, role='secret')), epsilon=1)",
        DeclarationError,
        '"role": "sensitive"',
        PROTECT,
    ),
    (
        "df.dp.protect(of(age=column(int, bins=4)), epsilon=1)",
        DeclarationError,
        '"bins": [0, 18, 65, 120]',
        "df.dp.protect(of(age=column(int, bins=[0, 18, 65, 120])), epsilon=1)",
    ),
    (
        "df.dp.protect(of(age=column(int, pa.Check.in_range(16, 90), bins=[20, 90])), epsilon=1)",
        DeclarationError,
        '"bins": [16, ..., 90]',
        PROTECT,
    ),
    (
        "df.dp.protect(of(age=column(int, bounds=[90, 16])), epsilon=1)",
        DeclarationError,
        '"bounds": [LOWER, UPPER]',
        "df.dp.protect(of(age=column(int, bounds=[16, 90])), epsilon=1)",
    ),
    (
        "df.dp.protect(of(age=column(int, pa.Check.ge(...))), epsilon=1)",
        DeclarationError,
        "pa.Check.ge(0), pa.Check.le(120)",
        "df.dp.protect(of(age=column(int, pa.Check.ge(0), pa.Check.le(120))), epsilon=1)",
    ),
    (
        "df.dp.protect(schema, epsilon=1, neighbors='bounded')",
        ParameterError,
        "'add_remove', 'replace_one'",
        "df.dp.protect(schema, epsilon=1, neighbors='replace_one')",
    ),
    (
        "df.dp.protect(schema, epsilon=1, on_invalid='ignore')",
        ParameterError,
        "'raise', 'clip', 'drop'",
        PROTECT,
    ),
    (
        "df.dp.protect(schema, epsilon=1, unit='name')",
        ParameterError,
        "max_rows=3",
        "df.dp.protect(schema, epsilon=1, unit='name', max_rows=3)",
    ),
    ("df.dp.protect(schema, budget='budget.db')", ParameterError, 'pdprivacy.Ledger("budget.db")', PROTECT),
    (
        "private.dp.protect(schema, epsilon=1)",
        ParameterError,
        "budget=private.dp.budget",
        "df.dp.protect(schema, budget=private.dp.budget)",
    ),
    (
        "private.dp.plan.average('age', epsilon=1, rows=9)",
        UnknownNameError,
        'private.dp.plan.mean("age", epsilon=[0.1, 1], rows=1000)',
        None,
    ),
    (
        "private.dp.plan.mean('age', epsilon=1)",
        ParameterError,
        "rows=1000",
        "private.dp.plan.mean('age', epsilon=1, rows=1000)",
    ),
    (
        "private.dp.plan.groupby('region').mean('age')",
        ArgumentError,
        'private.dp.plan.groupby("region").mean("age", epsilon=[0.1, 1], rows=1000)',
        None,
    ),
    (
        "private.dp.plan.groupby('region').mode('region', epsilon=1)",
        UnknownNameError,
        'private.dp.plan.groupby("region").mean("age", epsilon=[0.1, 1], rows=1000)',
        None,
    ),
]
MISTAKES = [*NOTEBOOK, *GROUPED, *LABELS, *NUMBERS, *PIPELINE]


@pytest.mark.full(keep=12)
@pytest.mark.parametrize(("code", "error", "says", "then"), MISTAKES, ids=lambda value: str(value)[:60])
def test_a_mistake_costs_nothing_and_is_told_what_to_write(names, texts_of, code, error, says, then):
    private = names["private"]
    with pytest.raises(error) as caught:
        written(code, names)
    assert isinstance(caught.value, PrivacyError)
    message = str(caught.value)
    assert says in message
    assert caught.value.hint or "must be" in message
    assert len(private.dp.budget.entries) == 0
    for text in texts_of(caught.value):
        assert CANARY not in text.replace(code, "")
        assert str(NUMBER) not in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bounds that are those of the data
        assert written(says if then is None else then, names) is not None


def test_errors_of_calls_and_of_names_are_those_of_python(names):
    with pytest.raises(TypeError, match="epsilon"):
        names["private"].dp.mean("age")
    with pytest.raises(AttributeError, match="average"):
        names["private"].dp.average("age")
    assert not hasattr(names["private"].dp, "average")
    assert getattr(names["private"].dp, "shape", None) is None
    with pytest.raises(ImportError, match="cannot import name"):
        from pdprivacy import mean  # noqa: F401


# ------------------------------------------------------------------ calls


def needs(name: str) -> set[str]:
    """The arguments without which a method cannot be called."""
    kind = ProtectedDP if hasattr(ProtectedDP, name) else DataFrameDP
    parameters = inspect.signature(getattr(kind, name)).parameters.values()
    plain = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in plain
    } - {"self"}


OF_PANDAS = [
    (
        "private.dp.value_counts('age', bins=3, epsilon=1)",
        ArgumentError,
        'private.dp.histogram("age", bins=10, epsilon=0.1)',
    ),
    (
        "private.dp.groupby('region', as_index=False)",
        ArgumentError,
        'private.dp.groupby("region").mean("age", epsilon=0.1).reset_index()',
    ),
    (
        "private.dp.pivot_table('age', index='region', columns='health', dropna=True, epsilon=1)",
        ArgumentError,
        'private.dropna("region").dp.pivot_table("age", index="region", columns="health", epsilon=0.1)',
    ),
    ("private['when'].dt.to_period('M')", UnknownNameError, 'private.cut("when", freq="M")'),
]


@pytest.mark.parametrize(("code", "error", "instead"), OF_PANDAS, ids=[code for code, _, _ in OF_PANDAS])
def test_what_pandas_offers_besides_has_a_call_in_its_place(code, error, instead):
    labels = {
        name: pa.Column(str, pa.Check.isin(["a", "b"]), metadata={"dp": {}}) for name in ("region", "health")
    }
    when = pa.Column("datetime64[ns]", pa.Check.in_range("2020-01-01", "2021-12-31"), metadata={"dp": {}})
    age = pa.Column(float, pa.Check.in_range(0, 120), metadata={"dp": {}})
    frame = pd.DataFrame({"region": ["a", "b"], "health": ["b", "b"], "age": [31.0, 54.0]})
    frame["when"] = pd.to_datetime(["2020-02-29", "2021-07-14"]).astype("datetime64[ns]")
    private = frame.dp.protect(pa.DataFrameSchema({**labels, "age": age, "when": when}), epsilon=10)
    with pytest.raises(error) as caught:
        written(code, {"private": private})
    assert instead in caught.value.hint
    assert written(instead, {"private": private}) is not None
    with pytest.raises(AttributeError, match="no attribute 'meen'"):
        private["when"].dt.meen  # noqa: B018


METHODS = [
    name
    for kind in (DataFrameDP, ProtectedDP)
    for name in dir(kind)
    if not name.startswith("_") and callable(getattr(kind, name))
]


def with_private_labels(names, name):
    """The names, with a frame that has a column of private labels where the method is for one."""
    if name != "find_labels":
        return names
    city = pa.Column(str, metadata={"dp": {"labels": "private"}})
    frame = pd.DataFrame({"city": ["Bern", "Zug"] * 100})
    private = frame.dp.protect(pa.DataFrameSchema({"city": city}), epsilon=10, delta=1e-3)
    return {**names, "private": private}


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_method_is_a_valid_call_of_it(names, name, tmp_path, monkeypatch):
    """A comparison makes each release twice, not 200 times."""
    monkeypatch.chdir(tmp_path)
    assert f".{name}" in EXAMPLES[name] if name in ROW_STEPS else f".dp.{name}" in EXAMPLES[name]
    released = names["private"].dp.count(epsilon=0.1)
    call = EXAMPLES[name]
    if name == "per_unit":
        age = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})})
        visits = pd.DataFrame({"person": [1, 1, 2], "age": [30, 31, 50]})
        names = {**names, "private": visits.dp.protect(age, epsilon=1, unit="person", max_rows=3)}
    if name.startswith("compare_"):
        call = call.removesuffix(")") + ", repetitions=2)"
    result = written(call, {**with_private_labels(names, name), "released": released})
    assert result is not None or len([*tmp_path.iterdir()]) == 1


def test_every_method_that_costs_has_an_example():
    assert {name for name in METHODS if "epsilon" in needs(name)} <= set(EXAMPLES) <= {*METHODS, "plan"}
    assert set(ROW_STEPS) <= set(EXAMPLES)


@pytest.mark.parametrize("name", ROW_STEPS)
def test_a_wrong_argument_of_a_row_step_is_told_by_a_step_of_the_frame(names, name):
    """Both of the frame and, for the same steps, of its ``dp``."""
    keywords = {**dict.fromkeys(needs(name), "age"), "inplace": True}
    for owner in (names["private"], names["private"].dp):
        step = getattr(owner, name)
        with pytest.raises(ArgumentError) as caught:
            step(1) if name == "assign" else step(**keywords)  # assign takes any keyword, nothing by position
        assert caught.value.hint == EXAMPLES[name]
        assert caught.value.hint.startswith(f"private.{name}(")
        assert name == "assign" or "unexpected keyword argument 'inplace'" in str(caught.value)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", [name for name in METHODS if needs(name)])
def test_a_call_without_its_arguments_says_which_and_how(names, name):
    names = with_private_labels(names, name)
    of = names["df"] if name == "protect" else names["private"]
    with pytest.raises(ArgumentError) as caught:
        getattr(of.dp, name)()
    assert any(f"{name!r} needs {argument!r}" in str(caught.value) for argument in needs(name))
    starts = (f"private.{name}(",) if name in ROW_STEPS else ("private.dp.", "df.dp.", "released.dp.")
    assert caught.value.hint.startswith(starts)
    assert caught.value.__context__ is None
    if name not in ("assign", "plan", "compare_sampling", "compare_suppression"):  # which take any keyword
        with pytest.raises(ArgumentError, match="unexpected keyword argument 'axes'"):
            getattr(of.dp, name)(**dict.fromkeys(needs(name), "age"), axes=1)
    assert len(names["private"].dp.budget.entries) == 0


def test_a_type_error_of_the_call_itself_is_left_alone(names):
    def stumbles(protected, columns):
        raise TypeError("of its own")

    method = _method(stumbles, lambda accessor: accessor)
    with pytest.raises(TypeError, match=r"^of its own$") as caught:
        method(names["private"].dp, "age")
    assert not isinstance(caught.value, PrivacyError)
    with pytest.raises(ArgumentError, match="'stumbles' needs 'columns'"):
        method(names["private"].dp)


def test_a_name_is_meant_by_what_is_near_to_it():
    known = ["age", "Region", "income", 3, None]
    assert [nearest(name, known) for name in ("agee", " AGE", "region", "incone", "3")] == [
        "age",
        "age",
        "Region",
        "income",
        None,
    ]
    assert [nearest(name, known) for name in ("name", "xyz", "", 3, None, ("age",))] == [None] * 6


def test_a_word_of_pandas_is_told_by_what_is_offered_for_it():
    assert unknown("X", "average", ["mean", "sum"]).hint == EXAMPLES["mean"]
    assert "dir(private.dp)" in unknown("X", "average", ["sum"]).hint
    assert "crosstab" in unknown("X", "pivot", ["mean", "crosstab"]).hint


def test_a_function_that_is_told_is_the_same_function():
    def added(facts: int, first: int, *, second: int = 2) -> int:
        """Of two numbers."""
        return facts + first + second

    wrapped = with_hints(added)
    assert wrapped(10, 1, second=3) == 14
    assert (wrapped.__name__, wrapped.__doc__) == ("added", "Of two numbers.")
    assert inspect.signature(wrapped) == inspect.signature(added)
    with pytest.raises(
        ArgumentError, match="'added' takes 'first' by position, and all other arguments by name"
    ):
        wrapped(10, 1, 2)
    with pytest.raises(ArgumentError, match="multiple values for argument 'first'"):
        wrapped(10, 1, first=2)
    assert misuse("added", inspect.signature(added), (10, 1), {"second": 2}) is None


def test_a_column_called_dp_can_still_be_grouped_by_pandas():
    groups = pd.DataFrame({"dp": [1, 2, 4], "x": [1, 1, 2]}).groupby("x")
    assert groups.dp.sum().tolist() == [3, 4]
    assert groups.mean()["dp"].tolist() == [1.5, 4]


# ------------------------------------------------------------------ the way itself


def test_the_lines_that_the_readme_shows_are_those_that_are_written(tmp_path, capsys):
    page = Path(__file__).parents[1] / "README.md"
    excerpts = [
        line for line in page.read_text(encoding="utf-8").splitlines() if "(...)" in line or "[...]" in line
    ]
    path = tmp_path / "data.csv"
    pd.DataFrame({"age": [30, 40], "health": ["no", "yes"]}).to_csv(path, index=False)
    assert main(["declare", str(path)]) == 0
    written = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in excerpts if line.startswith('"')] == [
        line for line in written if "pa.Column(" in line
    ]
    assert len(excerpts) == 2


def test_from_a_file_to_a_release_by_what_is_said(tmp_path, capsys):
    """As a newcomer goes: declare, fill in what is asked for, and write what each error says."""
    data_csv, schema_py = Path(tmp_path, "data.csv"), Path(tmp_path, "schema.py")
    frame()[["age", "region", "kids", "name"]].to_csv(data_csv, index=False)
    assert main(["declare", str(data_csv), "--output", str(schema_py)]) == 0
    assert capsys.readouterr() == ("", "")
    df = pd.read_csv(data_csv)

    def declared() -> pa.DataFrameSchema:
        names: dict[str, Any] = {}
        exec(schema_py.read_text(), names)
        return names["schema"]

    def rewrite(line: str, *changes: tuple[str, str]) -> None:
        lines = schema_py.read_text().splitlines()
        (index,) = [number for number, text in enumerate(lines) if text.lstrip().startswith(f'"{line}":')]
        for old, new in changes:
            assert old in lines[index]
            lines[index] = lines[index].replace(old, new)
        schema_py.write_text("\n".join(lines))

    hints = []
    steps = [
        ("age", ("ge(...)", "ge(0)"), ("le(...)", "le(120)")),
        ("region", ("[...]", '["north", "east", "south", "west"]')),
        ("kids", ("ge(...)", "ge(0)"), ("le(...)", "le(20)")),
    ]
    for name, *changes in steps:
        with pytest.raises(DeclarationError, match=f"column '{name}' is not filled in yet") as caught:
            df.dp.protect(declared(), epsilon=1)
        hints.append(caught.value.hint)
        rewrite(name, *changes)
    assert ["ge(0)" in hint for hint in hints] == [True, False, True]
    with pytest.raises(DeclarationError, match="'name' is not filled in yet") as caught:
        df.dp.protect(declared(), epsilon=1)
    assert "or delete the line" in caught.value.hint
    text = schema_py.read_text()
    schema_py.write_text("\n".join(line for line in text.splitlines() if '"name"' not in line))
    with pytest.raises(InvalidDataError, match="column 'kids': not_nullable") as caught:
        df.dp.protect(declared(), epsilon=1)
    assert "nullable=True" in caught.value.hint
    rewrite("kids", ("metadata", "nullable=True, metadata"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private = df.dp.protect(declared(), epsilon=10**6)
    assert private.dp.mean("age", epsilon=10**5)["age"] == pytest.approx(df["age"].mean(), abs=0.1)
    assert private.dp.count("kids", epsilon=1000)["kids"] == df["kids"].count()
    assert private.dp.value_counts("region", epsilon=1000).to_dict() == df["region"].value_counts().to_dict()
