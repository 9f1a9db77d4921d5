"""Bounds that are dates or durations are refused by `protect`, and what the hint says works."""

from __future__ import annotations

import datetime
import importlib
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.errors import DeclarationError
from pdprivacy.ledger import Budget

DP: dict[str, Any] = {"dp": {}}
LOW, HIGH = pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31")
DATES = [LOW, LOW.to_pydatetime(), LOW.date(), LOW.to_numpy(), LOW.tz_localize("UTC"), pd.Period("2020-01")]
SPANS = [pd.Timedelta(hours=36), datetime.timedelta(hours=36), np.timedelta64(36, "h")]


def flavour(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        try:
            return importlib.import_module(f"pandera.{name}")
        except ImportError:
            return pytest.skip(f"pandera.{name} cannot be imported here")


def schema_of(schemas: Any, dtype: Any, check: Any, dp: Any = None, **options: Any) -> Any:
    metadata = {"dp": {} if dp is None else dp}
    return schemas.DataFrameSchema({"t": schemas.Column(dtype, check, metadata=metadata, **options)})


@pytest.mark.parametrize("end", [*DATES, *SPANS], ids=lambda end: type(end).__name__)
@pytest.mark.parametrize("check", ["ge", "lt"])
@pytest.mark.parametrize("name", ["pandas", "polars", "pyspark"])
def test_a_bound_that_is_no_number_is_refused_in_every_schema(name, check, end):
    schemas = flavour(name)
    dtype = importlib.import_module("pyspark.sql.types").DateType() if name == "pyspark" else None
    with pytest.raises(DeclarationError, match=r"the bounds of column 't' are (dates|durations)") as caught:
        pdprivacy.read_schema(schema_of(schemas, dtype, getattr(schemas.Check, check)(end)))
    assert "declared as pa.Column(" in caught.value.hint


@pytest.mark.parametrize(
    "dtype", ["datetime64[ns]", "datetime64[ns, UTC]", "timedelta64[ns]", None, float, int]
)
def test_protect_refuses_it_before_the_data_is_read_or_a_budget_opened(dtype):
    """Whatever the dtype; a bound of a text column of dates may be text."""
    span = "timedelta" in str(dtype)
    ends = ("1 day", "3 days") if span else ("2020-01-01", "2020-12-31")
    pairs = [tuple(map(pd.Timedelta if span else pd.Timestamp, ends))]
    pairs += [ends] if dtype is None or "64[" in str(dtype) else []
    for low, high in pairs:
        schema = schema_of(pa, dtype, pa.Check.in_range(low, high))
        budget = Budget(1)
        for frame in (pd.DataFrame({"t": pd.to_datetime(["1999-01-01"])}), pd.DataFrame({"t": ["x"]})):
            with pytest.raises(DeclarationError, match="only numbers are bounds"):
                frame.dp.protect(schema, budget=budget)
        assert len(budget.entries) == 0


@pytest.mark.parametrize("dp", [{"bounds": [LOW, HIGH]}, {"bins": [LOW, LOW + pd.Timedelta(days=9), HIGH]}])
@pytest.mark.parametrize("dtype", ["datetime64[ns]", None, float])
def test_bounds_and_bins_of_the_metadata_are_no_dates_either(dtype, dp):
    with pytest.raises(DeclarationError, match="are dates") as caught:
        pdprivacy.read_schema(schema_of(pa, dtype, None, dp))
    assert "pa.Check.in_range(0, 365)" in caught.value.hint


def test_a_duration_of_numpy_is_no_integer():
    """To numpy it is one: 5 days would be 5, and 5 nanoseconds, too."""
    for unit in ("ns", "D"):
        with pytest.raises(DeclarationError, match="must be finite numbers"):
            pdprivacy.Column("t", "float", lower=np.timedelta64(5, unit))


def test_dates_that_bound_nothing_that_is_released_are_let_alone():
    check = pa.Check.in_range(LOW, HIGH)
    for dp, more in (
        ({"role": "identifier"}, []),
        ({}, [pa.Check.isin([LOW, HIGH])]),
        ({"categories": [LOW]}, []),
    ):
        schema = schema_of(pa, "datetime64[ns]", [check, *more], dp)
        assert pdprivacy.read_schema(schema)["t"].kind == "category"


@pytest.mark.parametrize(
    ("dtype", "check"),
    [
        (float, pa.Check.in_range(Decimal("0.5"), Decimal("9"))),
        (None, pa.Check.ge(Decimal(1))),
        (pa.Decimal, pa.Check.in_range(Decimal(0), Decimal(9))),
        (pa.Decimal, pa.Check.in_range(0, 9)),
        (str, pa.Check.ge(0)),
    ],
)
def test_no_bound_is_read_and_forgotten(dtype, check):
    with pytest.raises(DeclarationError, match="the bounds of column 't'") as caught:
        pdprivacy.read_schema(schema_of(pa, dtype, check))
    assert '"t": pa.Column(float, pa.Check.in_range(LOWER, UPPER)' in caught.value.hint


# ------------------------------------------------------------------ the way out

DAYS = [0, 5, 364, 365]  # since the public day, of these:
CELLS = [LOW, LOW + pd.Timedelta("5D 23h"), LOW + pd.Timedelta("364D"), HIGH]


def run_hint(error: DeclarationError, frame: Any, names: dict[str, Any]) -> tuple[Any, Any]:
    """The frame after the line of code, and the column declared as it says."""
    line, _, declared = error.hint.removesuffix("; or cut it to labels.").partition(", declared as ")
    names = {**names, "df": frame, "datetime": datetime}
    exec(line, names)
    return names["df"], eval(declared, names)


def refused(schema: Any, frame: Any) -> DeclarationError:
    with pytest.raises(DeclarationError) as caught:
        pdprivacy.protect(frame, schema, epsilon=1)
    return caught.value


def released(frame: Any, column: Any, schemas: Any, count: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdprivacy.errors.DeclarationWarning)
        private = pdprivacy.protect(frame, schemas.DataFrameSchema({"t": column}), epsilon=10**7)
    assert private.dp.domain["t"].bounds("sum")[1] > 0
    assert round(private.dp.count("t", epsilon=10**3, rng=1).iloc[0]) == count
    return float(private.dp.sum("t", epsilon=10**6, rng=1)["t"])


MADE = {
    "times": lambda: pd.Series(CELLS),
    "dates of Python": lambda: pd.Series([cell.date() for cell in CELLS], dtype=object),
    "text": lambda: pd.Series([str(cell) for cell in CELLS]),
}


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    "ends",
    [(LOW, HIGH), (LOW.date(), HIGH.date()), (LOW.to_numpy(), HIGH.to_numpy())],
    ids=["pandas", "Python", "NumPy"],
)
def test_days_since_a_public_day_can_be_released_in_pandas(ends, made, nullable):
    cells = MADE[made]()
    frame = pd.DataFrame(
        {"t": pd.concat([cells, pd.Series([None], dtype=cells.dtype)]) if nullable else cells}
    )
    error = refused(schema_of(pa, None, pa.Check.in_range(*ends), nullable=nullable), frame)
    days, column = run_hint(error, frame.reset_index(drop=True), {"pa": pa, "pd": pd})
    assert released(days, column, pa, 4) == pytest.approx(sum(DAYS), abs=0.5)


def test_days_in_a_time_zone_and_durations_can_be_released_in_pandas():
    zoned = pd.DataFrame({"t": pd.Series(CELLS).dt.tz_localize("UTC")})
    check = pa.Check.in_range(LOW.tz_localize("UTC"), HIGH.tz_localize("UTC"))
    days, column = run_hint(refused(schema_of(pa, None, check), zoned), zoned, {"pa": pa, "pd": pd})
    assert released(days, column, pa, 4) == pytest.approx(sum(DAYS), abs=0.5)
    for low, high in (
        (np.timedelta64(0, "h"), np.timedelta64(96, "h")),
        (pd.Timedelta(0), pd.Timedelta("4D")),
    ):
        spans = pd.DataFrame({"t": pd.to_timedelta([12, 36], unit="h")})
        error = refused(schema_of(pa, None, pa.Check.in_range(low, high)), spans)
        made, column = run_hint(error, spans, {"pa": pa, "pd": pd})
        assert released(made, column, pa, 2) == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("dates", [False, True])
def test_days_and_durations_can_be_released_in_polars(dates, nullable):
    pl, schemas = pytest.importorskip("polars"), flavour("polars")
    cells = [cell.date() if dates else cell.to_pydatetime() for cell in CELLS]
    frame = pl.DataFrame({"t": [*cells, None] if nullable else cells})
    low, high = (cell.date() if dates else cell.to_pydatetime() for cell in (LOW, HIGH))
    error = refused(schema_of(schemas, None, schemas.Check.in_range(low, high), nullable=nullable), frame)
    days, column = run_hint(error, frame, {"pa": schemas, "pl": pl})
    assert released(days, column, schemas, 4) == pytest.approx(sum(DAYS), abs=0.5)
    spans = pl.DataFrame({"t": [datetime.timedelta(hours=12), datetime.timedelta(hours=36)]})
    check = schemas.Check.in_range(datetime.timedelta(0), datetime.timedelta(days=4))
    made, column = run_hint(refused(schema_of(schemas, None, check), spans), spans, {"pa": schemas, "pl": pl})
    assert released(made, column, schemas, 2) == pytest.approx(2, abs=0.01)
