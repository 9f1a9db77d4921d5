"""Objects that are not frames are refused with code that makes a frame of them (`conversions`)."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import InvalidDataError, ParameterError
from tests.support.engine_frames import installed

DOMAIN = Domain((Column("age", "integer", lower=-1, upper=120),))
AGES = [31, 54, 27, 39]


def refused(source: Any) -> str:
    """The hint of the refusal."""
    with pytest.raises(ParameterError, match="'frame' must be a frame of Polars") as caught:
        pdprivacy.protect(source, DOMAIN, epsilon=1)
    assert caught.value.hint is not None
    return caught.value.hint


def protected_by(hint: str, **names: Any) -> None:
    """Run the code of a hint, with its first statement's frame protected."""
    installed("narwhals", "narwhals")
    code, _ = hint.removesuffix(".").split("; ")
    names["pd"], names["pa"] = pd, installed("pyarrow", "PyArrow")
    exec(code, names)
    assert pdprivacy.protect(names["frame"], DOMAIN, epsilon=1).columns.tolist() == ["age"]


@pytest.mark.parametrize("name", ["dataset", "scanner", "reader", "batch", "array"])
def test_objects_of_arrow(name):
    pa = installed("pyarrow", "PyArrow")
    dataset = installed("pyarrow.dataset", "PyArrow")
    table = pa.table({"age": AGES})
    source = {
        "dataset": lambda: dataset.dataset(table),
        "scanner": lambda: dataset.dataset(table).scanner(),
        "reader": table.to_reader,
        "batch": lambda: table.to_batches()[0],
        "array": lambda: table.column(0),
    }[name]()
    protected_by(refused(source), **{name: source})


def test_series_and_groups_of_polars():
    pl = installed("polars", "Polars")
    series = pl.Series("age", AGES)
    protected_by(refused(series), series=series)
    frame = series.to_frame()
    for grouped in (frame.group_by("age"), frame.lazy().group_by("age"), frame.to_pandas().groupby("age")):
        assert "private.dp.groupby(" in refused(grouped)


def test_connections_of_databases():
    import sqlite3

    con = sqlite3.connect(":memory:")
    pd.DataFrame({"age": AGES}).to_sql("visits", con, index=False)
    protected_by(refused(con), con=con)
    con.close()
    con = installed("duckdb", "DuckDB").connect()
    con.execute("create table visits as select 31 as age")
    protected_by(refused(con), con=con)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("visits.csv", "pd.read_csv("),
        ("secret", "pd.read_csv("),
        ("visits.parquet", "pd.read_parquet("),
        (Path("visits.PARQUET"), "pd.read_parquet("),
        ("visits/*.parquet", "pl.scan_parquet("),
        (Path(__file__).parent, "pl.scan_parquet("),
        ("visits.xlsx", "pd.read_excel("),
    ],
)
def test_paths_are_read_by_their_kind_and_not_shown(path, code):
    hint = refused(path)
    assert code in hint
    assert "visits" not in hint
    assert "secret" not in hint


@pytest.mark.parametrize(
    ("module", "name", "code"),
    [
        ("ibis.expr.types.relations", "Table", "frame.to_pyarrow()"),
        ("modin.pandas.dataframe", "DataFrame", "frame.modin.to_pandas()"),
        ("modin.pandas.series", "Series", "series.to_frame()"),
        ("sqlalchemy.engine.base", "Engine", "pd.read_sql("),
    ],
)
def test_frames_of_other_libraries_are_known_by_name(module, name, code):
    assert code in refused(type(name, (), {"__module__": module})())


def test_a_hint_for_a_frame_of_an_engine_is_code_for_that_engine():
    import pandera.pandas as pandera

    pl = installed("polars", "Polars")
    dask = installed("dask.dataframe", "Dask")
    days = [datetime.date(2020, 1, 1)] * 4
    check = pandera.Check.in_range(datetime.date(2019, 1, 1), datetime.date(2021, 1, 1))
    for frame, column, code in (
        (
            dask.from_pandas(pd.DataFrame({"c": [str(day) for day in days]}), npartitions=2),
            pandera.Column(pandera.Date, check, metadata={"dp": {}}),
            "dask.dataframe.to_datetime(ddf['c'])",
        ),
        (
            pl.DataFrame({"c": [datetime.timedelta(days=3)] * 4}),
            pandera.Column(float, pandera.Check.in_range(0, 9), metadata={"dp": {}}),
            "pl.col('c').dt.total_days()",
        ),
    ):
        with pytest.raises(InvalidDataError) as caught:
            pdprivacy.protect(frame, pandera.DataFrameSchema({"c": column}), epsilon=1)
        assert code in (caught.value.hint or "")
        assert "df['c'] = pd." not in (caught.value.hint or "")
