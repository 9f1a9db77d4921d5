"""Bounds that are dates declare a column of dates; durations are refused, and what the hint says works."""

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
from pdprivacy.errors import DeclarationError, InvalidDataError
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
    assert "pa.Column(" in caught.value.hint
    assert "in_range(" in caught.value.hint


@pytest.mark.parametrize(
    ("dtype", "ends"),
    [
        ("timedelta64[ns]", ("1 day", "3 days")),
        ("timedelta64[ns]", (pd.Timedelta("1D"), pd.Timedelta("3D"))),
        (None, (pd.Timedelta("1D"), pd.Timedelta("3D"))),
        (float, (LOW, HIGH)),
        (int, (LOW, HIGH)),
        ("datetime64[ns]", (LOW, None)),
    ],
)
def test_protect_refuses_it_before_the_data_is_read_or_a_budget_opened(dtype, ends):
    low, high = ends
    check = pa.Check.ge(low) if high is None else pa.Check.in_range(low, high)
    schema, budget = schema_of(pa, dtype, check), Budget(1)
    for frame in (pd.DataFrame({"t": pd.to_datetime(["1999-01-01"])}), pd.DataFrame({"t": ["x"]})):
        with pytest.raises(DeclarationError, match=r"the bounds of column 't' are (durations|dates)"):
            frame.dp.protect(schema, budget=budget)
    assert len(budget.entries) == 0


@pytest.mark.parametrize(
    ("dtype", "dp"),
    [
        (None, {"bins": [LOW, LOW + pd.Timedelta(days=9), HIGH]}),
        ("datetime64[ns]", {"bins": [LOW, LOW + pd.Timedelta(days=9), HIGH]}),
        (float, {"bounds": [LOW, HIGH]}),
    ],
)
def test_bins_of_dates_and_bounds_of_numbers_that_are_dates_are_refused(dtype, dp):
    with pytest.raises(DeclarationError, match="are dates: a column of dates has a dtype of dates") as caught:
        pdprivacy.read_schema(schema_of(pa, dtype, None, dp))
    assert f"pa.Check.in_range({LOW!r}, {HIGH!r})" in caught.value.hint


# ------------------------------------------------------------------ columns of dates


def declared(dtype: Any, check: Any, dp: Any = None, **options: Any) -> pdprivacy.Column:
    return pdprivacy.read_schema(schema_of(pa, dtype, check, dp, **options))["t"]


def ends(column: pdprivacy.Column) -> tuple[str, str]:
    return column.end_text(column.lower), column.end_text(column.upper)


@pytest.mark.parametrize(
    ("dtype", "low", "high", "unit"),
    [
        ("datetime64[ns]", LOW, HIGH, "s"),
        ("datetime64[ns]", "2020-01-01", "2020-12-31", "s"),
        ("datetime64[ns]", LOW, HIGH + pd.Timedelta("1ms"), "ms"),
        ("datetime64[ns]", LOW, HIGH + pd.Timedelta("3us"), "us"),
        ("datetime64[ns]", LOW, LOW + pd.Timedelta("3ns"), "ns"),
        ("datetime64[ns]", LOW.date(), HIGH.date(), "s"),
        (pa.Date, LOW.date(), HIGH.date(), "D"),
        (None, LOW.date(), HIGH.date(), "D"),
        (None, LOW.to_numpy(), HIGH.to_numpy(), "s"),
        (None, pd.Period("2020-01"), pd.Period("2020-03"), "s"),
    ],
)
def test_dates_are_counted_in_the_coarsest_unit_that_tells_the_bounds(dtype, low, high, unit):
    column = declared(dtype, pa.Check.in_range(low, high))
    assert (column.timeline.unit, column.timeline.zone) == (unit, None)
    known = [
        bound.start_time if isinstance(bound, pd.Period) else pd.Timestamp(bound) for bound in (low, high)
    ]
    assert (known[1] - known[0]) / pd.Timedelta(1, column.timeline.unit) == column.upper - column.lower
    assert column.timeline.dates([column.lower, column.upper]).tolist() == known


@pytest.mark.parametrize("unit", ["D", "h", "min", "s", "ms", "us", "ns"])
def test_a_declared_resolution_rounds_the_bounds_down(unit):
    high = LOW + pd.Timedelta("2D 3h 4min 5s 6ms 7us 8ns")
    column = declared("datetime64[ns]", pa.Check.in_range(LOW, high), {"resolution": unit})
    assert column.timeline.unit == unit
    assert column.timeline.instants(np.array([column.upper]))[0] == high.floor(unit)


def test_all_bounds_are_intersected_and_an_open_upper_end_is_not_reached():
    checks = [
        pa.Check.ge(LOW),
        pa.Check.lt(HIGH),
        pa.Check.le(HIGH),
        pa.Check.in_range("2020-02-01", "2021-01-01"),
    ]
    assert ends(declared("datetime64[ns]", checks)) == ("2020-02-01", "2020-12-30 23:59:59")
    assert ends(declared(pa.Date, [pa.Check.ge(LOW.date()), pa.Check.lt(HIGH.date())])) == (
        "2020-01-01",
        "2020-12-30",
    )
    assert ends(declared("datetime64[ns]", None, {"bounds": [LOW, HIGH]})) == ("2020-01-01", "2020-12-31")
    column = declared("datetime64[ns]", pa.Check.in_range(LOW, LOW))
    assert (column.lower, column.upper) == (0, 0)


def test_the_time_zone_is_that_of_the_dtype_or_of_the_bounds():
    paris, utc = "Europe/Paris", "UTC"
    low, high = (end.tz_localize(utc) for end in (LOW, HIGH))
    typed = declared(pd.DatetimeTZDtype(tz=paris), pa.Check.in_range(low, high))
    assert (typed.timeline.zone, ends(typed)[0]) == (paris, "2020-01-01 01:00:00+01:00")
    assert declared(None, pa.Check.in_range(low, high)).timeline.zone == utc
    mixed = declared(None, pa.Check.in_range(low.tz_convert(paris), high))
    assert mixed.timeline.zone == paris


@pytest.mark.parametrize(
    ("dtype", "low", "high", "dp", "message"),
    [
        (pd.DatetimeTZDtype(tz="UTC"), LOW, HIGH, None, "need a time zone"),
        (None, LOW, HIGH.tz_localize("UTC"), None, "need a time zone"),
        (None, LOW.tz_localize("UTC"), HIGH.tz_localize("UTC"), {"resolution": "D"}, "finer than days"),
        ("datetime64[ns]", LOW, HIGH, {"resolution": "M"}, "must be one of 'D', 'h', 'min'"),
        ("datetime64[ns]", LOW, HIGH, {"resolution": "ns"}, "more than 2\\*\\*52 units"),
        ("datetime64[ns]", LOW, HIGH, {"bounds": [HIGH, LOW]}, "leave no date"),
        (int, 0, 9, {"resolution": "s"}, '"resolution" of column'),
    ],
)
def test_a_declaration_of_dates_that_contradicts_itself_is_refused(dtype, low, high, dp, message):
    with pytest.raises(DeclarationError, match=message):
        declared(dtype, [pa.Check.ge(low), pa.Check.le(high)], dp)


def test_the_declaration_of_dates_has_a_fingerprint_of_its_own():
    schemas = [
        schema_of(pa, "datetime64[ns]", pa.Check.in_range(low, low + pd.Timedelta("9D")), dp)
        for low in (LOW, HIGH)
        for dp in ({}, {"resolution": "h"})
    ]
    assert len({pdprivacy.read_schema(schema).fingerprint() for schema in schemas}) == 4


@pytest.mark.parametrize("name", ["polars", "pyspark"])
def test_schemas_of_other_engines_declare_the_same_dates(name):
    schemas = flavour(name)
    for low, high in ((LOW.date(), HIGH.date()), (LOW.to_pydatetime(), HIGH.to_pydatetime())):
        other = schema_of(schemas, None, schemas.Check.in_range(low, high))
        assert pdprivacy.read_schema(other)["t"] == declared(None, pa.Check.in_range(low, high))


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


# ------------------------------------------------------------------ the way out of durations


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


@pytest.mark.parametrize("nullable", [False, True])
def test_durations_can_be_released_in_pandas(nullable):
    for low, high in (
        (np.timedelta64(0, "h"), np.timedelta64(96, "h")),
        (pd.Timedelta(0), pd.Timedelta("4D")),
    ):
        spans = pd.DataFrame({"t": pd.to_timedelta([12, 36, *([None] if nullable else [])], unit="h")})
        error = refused(schema_of(pa, None, pa.Check.in_range(low, high), nullable=nullable), spans)
        converted, column = run_hint(error, spans, {"pa": pa, "pd": pd})
        assert released(converted, column, pa, 2) == pytest.approx(2, abs=0.01)


def test_durations_can_be_released_in_polars():
    pl, schemas = pytest.importorskip("polars"), flavour("polars")
    spans = pl.DataFrame({"t": [datetime.timedelta(hours=12), datetime.timedelta(hours=36)]})
    check = schemas.Check.in_range(datetime.timedelta(0), datetime.timedelta(days=4))
    converted, column = run_hint(
        refused(schema_of(schemas, None, check), spans), spans, {"pa": schemas, "pl": pl}
    )
    assert released(converted, column, schemas, 2) == pytest.approx(2, abs=0.01)


def test_one_bound_alone_is_asked_for_the_other():
    error = refused(schema_of(pa, None, pa.Check.ge(LOW)), pd.DataFrame({"t": [LOW]}))
    assert f"in_range({LOW!r}, UPPER)" in error.hint


def of_days(lower: Any, upper: Any, dtype: Any = None) -> Any:
    options = {"dp": {"resolution": "D"}}
    return pa.DataFrameSchema({"a": pa.Column(dtype, pa.Check.in_range(lower, upper), metadata=options)})


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.DeclarationWarning")
@pytest.mark.filterwarnings("ignore::pdprivacy.errors.InvalidDataWarning")
@pytest.mark.parametrize("fate", ["raise", "clip", "drop"])
def test_the_bounds_of_dates_are_compared_with_rounded_cells(fate):
    """The evening of the last day is within bounds that are days, on pandas frames as on all others."""
    cells = pd.Series([*["2020-01-05"] * 9, "2020-01-31 18:00"], dtype="datetime64[us]")
    private = pdprivacy.protect(
        pd.DataFrame({"a": cells}), of_days("2020-01-01", "2020-01-31"), epsilon=10**6, on_invalid=fate
    )
    assert private.dp.count(epsilon=10**5, rng=1).iloc[0] == 10
    assert private.dp.quality()["dropped"].tolist() == [0]


@pytest.mark.parametrize("dtype", ["object", "date32[day][pyarrow]"])
def test_days_of_python_and_arrow_are_held_to_bounds_that_are_texts(dtype):
    cells = pd.Series([datetime.date(2020, 1, day) for day in range(2, 12)]).astype(dtype)
    schema = of_days("2020-01-01", "2020-01-31")
    private = pdprivacy.protect(pd.DataFrame({"a": cells}), schema, epsilon=10**6)
    assert private.dp.count(epsilon=10**5, rng=1).iloc[0] == 10
    with pytest.raises(InvalidDataError, match="column 'a' has values outside") as refused:
        pdprivacy.protect(pd.DataFrame({"a": cells}), of_days("2020-01-01", "2020-01-09"), epsilon=1)
    assert 'on_invalid="clip"' in str(refused.value)
    assert 'on_invalid="drop"' in str(refused.value)


@pytest.mark.parametrize("bounds", [("2020-01-01", "2020-01-31"), (LOW, HIGH), (LOW.date(), HIGH.date())])
@pytest.mark.parametrize("open_end", [True, False])
def test_bounds_that_are_dates_are_not_checked_beyond_the_declaration(bounds, open_end):
    check = pa.Check.in_range(*bounds, include_max=not open_end)
    schema = pa.DataFrameSchema({"a": pa.Column(None, check, metadata=DP)})
    assert pdprivacy.declaration.schema.unchecked(schema) == ()
    other = pa.Check(lambda cells: cells.notna(), name="whole")
    extended = pa.DataFrameSchema({"a": pa.Column(None, [check, other], metadata=DP)})
    assert len(pdprivacy.declaration.schema.unchecked(extended)) == 1
    frame = pd.DataFrame({"a": pd.Series(["2020-01-05"], dtype="datetime64[s]")})
    failing = pa.Check(lambda cells: cells.isna(), name="blank")
    schema = pa.DataFrameSchema({"a": pa.Column(None, [check, failing], metadata=DP)})
    with pytest.raises(InvalidDataError, match="blank"):
        pdprivacy.protect(frame, schema, epsilon=1)


@pytest.mark.parametrize("far", [np.datetime64("10000-01-01", "s"), np.datetime64("-0001-12-31", "s")])
def test_bounds_beyond_the_calendar_are_refused(far):
    ends = (LOW, far) if far > LOW.to_numpy() else (far, HIGH)
    with pytest.raises(DeclarationError, match="must be within 0001-01-01 to 9999-12-31"):
        pdprivacy.read_schema(
            pa.DataFrameSchema({"a": pa.Column(None, pa.Check.in_range(*ends), metadata=DP)})
        )


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.InvalidDataWarning")
@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize("fate", ["raise", "clip", "drop"])
def test_nanoseconds_that_reach_no_bound_are_refused_whatever_the_cells_are(rows, fate):
    frame = pd.DataFrame({"a": pd.Series(["2020-01-05"] * rows, dtype="datetime64[ns]")})
    for table in (frame, frame.astype("category")):
        with pytest.raises(InvalidDataError, match="is of nanoseconds"):
            pdprivacy.protect(table, of_days("1600-01-01", "1650-01-01"), epsilon=1, on_invalid=fate)
