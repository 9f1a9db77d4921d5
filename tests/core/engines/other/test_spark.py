"""Frames of Spark (`spark`): collations, time zones, names, types, and failures of its workers."""

from __future__ import annotations

import datetime
import gc
import importlib
import sys
import warnings
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pdprivacy import Column, errors
from pdprivacy.core.engines.other import NarwhalsEngine
from pdprivacy.core.statistics import Quantity, quantity
from tests.support.engine_frames import sum_of

pytest.importorskip("pyarrow", reason="Spark answers in Arrow tables")
pytest.importorskip("narwhals", reason="narwhals is not installed")

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("spark")]

LETTER = Column("g", "category", categories=("a", "b"))
NUMBER = Column("x", "float", lower=0.0, upper=10.0)


def counts(frame: Any, column: Column) -> list[int]:
    return NarwhalsEngine(frame).table([column], "t").tolist()


@pytest.fixture(autouse=True, scope="module")
def _sockets() -> Iterator[None]:
    """Those that are left are collected here, and not in a test of something else."""
    yield
    gc.collect()


@pytest.fixture
def conf(spark: Any) -> Any:
    """Settings of the session, as they were again after the test."""
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.mark.parametrize("collation", ["UNICODE_CI_AI", "UTF8_BINARY_RTRIM"])
def test_a_collation_merges_no_texts(spark, collation):
    """Were they merged, the text that a group is called by, and so its count, could depend on one record."""
    texts = ["A", "a", "a", "b", "a ", "á"]
    rows = ", ".join(f"('{text}', {number})" for number, text in enumerate(texts))
    if "RTRIM" in collation and spark.version < "4.1":
        pytest.skip("this Spark trims no texts that it compares")
    frame = spark.sql(f"select cast(g as string collate {collation}) as g, x from values {rows} as t(g, x)")
    assert frame.distinct().count() == 6
    assert frame.select("g").distinct().count() < 6
    assert counts(frame, LETTER) == [2, 1]
    number = quantity(NUMBER, "t", centered=False)
    grouped = NarwhalsEngine(frame).grouped([number], [LETTER], "t", products=False)
    assert grouped.rows == [2, 1]
    assert [total * number.grid for total in grouped.sums[0]] == [3.0, 3.0]


DAYS = ("0001-01-01", "1582-10-10", "1900-01-01", "9999-12-31")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_times_are_those_of_the_records_in_every_zone(spark, conf, zone):
    """Also days that the Julian calendar lacks, hours that a clock skips, and hours that it shows twice."""
    conf("spark.sql.session.timeZone", zone)
    days = tuple(map(datetime.date.fromisoformat, DAYS))
    frame = spark.sql("select inline(array(" + ",".join(f"struct(date'{day}' as d)" for day in DAYS) + "))")
    assert counts(frame, Column("d", "category", categories=days)) == [1, 1, 1, 1]
    clocks = (
        "2024-03-10 02:30:00",
        "2024-11-03 01:30:00.25",
        "1582-10-10 00:00:00.000001",
        "0001-01-01 00:00:00",
    )
    clock_labels = tuple(
        map(datetime.datetime.fromisoformat, (f"{clock:0<26}" if "." in clock else clock for clock in clocks))
    )
    rows = ",".join(f"struct(timestamp_ntz'{clock}' as t)" for clock in clocks)
    frame = spark.sql(f"select inline(array({rows}))")
    assert counts(frame, Column("t", "category", categories=clock_labels)) == [1, 1, 1, 1]
    aware = tuple(label.replace(tzinfo=datetime.UTC) for label in clock_labels)
    assert counts(frame, Column("t", "category", categories=aware)) == [0, 0, 0, 0]
    # the second one is the same time on the clocks of New York an hour later
    epoch, micro = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
    micros = [(label - epoch) // micro for label in clock_labels]
    micros[0] = micros[1] + 4 * 3600 * 10**6
    micros[1] += 5 * 3600 * 10**6
    rows = ",".join(f"struct(timestamp_micros({micro}) as t)" for micro in micros)
    frame = spark.sql(f"select inline(array({rows}))")
    york = zoneinfo.ZoneInfo("America/New_York")
    labels = (clock_labels[1].replace(tzinfo=york), aware[1] + datetime.timedelta(hours=5), *aware[2:])
    assert counts(frame, Column("t", "category", categories=labels)) == [1, 1, 1, 1]
    assert counts(frame, Column("t", "category", categories=clock_labels)) == [0, 0, 0, 0]


def steps_of(quantity: Quantity, value: float) -> int:
    """The grid steps of one number."""
    out = np.empty(1)
    quantity.anchored(np.array([value]), out)
    return int(out.view(np.int64)[0]) - quantity.anchor


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
        ("spark.sql.adaptive.enabled", "true"),
    ],
)
def test_settings_of_a_session_change_no_number(spark, conf, name, value):
    conf(name, value)
    nan = float("nan")
    cells = [
        (0.1, 2**63 - 1, True),
        (nan, 3, None),
        (None, None, False),
        (-1e300, -(2**63), True),
        (0.3, 4, True),
    ]
    frame = spark.createDataFrame(cells, "x double, n bigint, h boolean").repartition(3)
    reader = NarwhalsEngine(frame)
    number, whole = (
        quantity(NUMBER, "t", products=True),
        quantity(Column("n", "integer", lower=1, upper=9), "t", products=True),
    )
    steps = [
        steps_of(number, min(max(cell[0], 0.0), 10.0))
        for cell in cells
        if cell[0] is not None and cell[0] == cell[0]
    ]
    assert sum_of(reader, number) == (3, sum(steps))
    rows = [
        (steps_of(number, 0.1), steps_of(whole, 9.0)),
        (steps_of(number, 0.0), steps_of(whole, 1.0)),
        (steps_of(number, 0.3), steps_of(whole, 4.0)),
    ]
    moments = reader.grouped([number, whole], (), "t", products=True)
    assert moments.sums == [[sum(first for first, _ in rows)], [sum(second for _, second in rows)]]
    assert moments.products[0, 1] == [sum(first * second for first, second in rows)]
    assert counts(frame, Column("n", "integer", lower=1, upper=9, bins=(1, 3, 9))) == [1, 3]
    assert reader.bins(NUMBER, (0.0, 0.1, 0.3, 10.0)).tolist() == [1, 1, 1]


def test_names_that_spark_does_not_tell_apart_are_refused(spark):
    with pytest.raises(errors.ParameterError, match="upper or lower case"):
        NarwhalsEngine(spark.sql("select 1 as x, 2 as X"))
    with pytest.raises(errors.ParameterError, match="one column of each name"):
        NarwhalsEngine(spark.sql("select 1 as x, 2 as x"))
    frame = NarwhalsEngine(spark.sql("select struct(1.0 as x) as s, 2.0 as `s.x`, 3.0 as `s``x`, 4.0 as x"))
    for name in ("s.x", "s`x"):
        with pytest.raises(errors.ParameterError, match="as a field of another column"):
            sum_of(frame, quantity(Column(name, "float", lower=0, upper=9), "t"))
    assert sum_of(frame, quantity(NUMBER, "t"))[0] == 1


@pytest.mark.parametrize(
    "cell", ["interval '3' day", "interval '3' month", "parse_json('1')", "array(1)", "cast('x' as binary)"]
)
def test_columns_of_other_types_are_refused_before_they_are_read(spark, cell):
    frame = NarwhalsEngine(spark.sql(f"select {cell} as x, {cell} as g"))
    with pytest.raises(errors.InvalidDataError, match="column 'x' is declared as float and holds"):
        sum_of(frame, quantity(NUMBER, "t"))
    with pytest.raises(errors.ParameterError, match=r"column 'g' holds .* cannot be read as labels"):
        frame.table([LETTER], "t")


def test_frames_of_the_pandas_interface_are_read(spark, conf):
    try:
        import pyspark.pandas  # noqa: F401
    except ImportError:
        pytest.skip("this Spark has no pandas interface for this pandas")
    conf("spark.sql.ansi.enabled", "false")  # Spark 4.0 has the interface for no other mode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas versions, and of settings it would like
        frame = spark.createDataFrame(
            [("a", 1.0), ("c", 20.0), ("b", None)], "g string, x double"
        ).pandas_api()
    assert counts(frame, LETTER) == [1, 1]
    assert sum_of(NarwhalsEngine(frame), quantity(NUMBER, "t", centered=False))[0] == 2


def test_frames_of_spark_connect_are_refused_by_name():
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    members = {"__module__": "pyspark.pandas.frame", "to_spark": lambda self: frame}
    for refused in (frame, type("DataFrame", (), members)()):
        with pytest.raises(errors.ParameterError, match="Spark Connect") as caught:
            NarwhalsEngine(refused)
        assert "toArrow()" in caught.value.hint


def test_a_pandas_that_spark_cannot_import_is_told_from_a_missing_spark(monkeypatch):
    pytest.importorskip("pyspark", reason="Spark is not installed")
    monkeypatch.setitem(sys.modules, "pyspark.pandas.extensions", None)
    monkeypatch.delitem(sys.modules, "pdprivacy.spark", raising=False)
    with pytest.raises(errors.MissingExtraError, match="does not work with this version of pandas") as caught:
        importlib.import_module("pdprivacy.spark")
    assert "pandas<3" in caught.value.hint


def raising(cell):
    raise ValueError(f"what it read: {cell}")


def dying(cell):
    import os

    os._exit(1)


@pytest.mark.parametrize("fate", [raising, dying])
def test_a_failing_function_and_a_lost_worker_tell_no_cell(spark, texts_of, fate: Callable[[str], int]):
    from pyspark.sql import functions

    frame = spark.createDataFrame([("secret", 1.0)], "g string, x double")
    frame = frame.select(functions.udf(fate, "int")("g").alias("n"), "x")
    reader = NarwhalsEngine(frame)
    count = Column("n", "integer", lower=0, upper=9)
    with pytest.raises(errors.EngineError, match=r"^Spark failed to compute a table \(\w+\)\.") as failure:
        reader.table([count], "t")
    assert not [text for text in texts_of(failure.value) if "secret" in text or "what it read" in text]


def test_a_cell_that_the_plan_cannot_convert_tells_no_cell(spark, conf, texts_of):
    conf("spark.sql.ansi.enabled", "true")
    reader = NarwhalsEngine(spark.sql("select cast(g as int) as n from values ('1'), ('secret') as t(g)"))
    with pytest.raises(errors.EngineError, match=r"^Spark failed to compute sums") as failure:
        sum_of(reader, quantity(Column("n", "integer", lower=0, upper=9), "t"))
    assert not [text for text in texts_of(failure.value) if "secret" in text]
