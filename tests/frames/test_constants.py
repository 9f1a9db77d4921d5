"""Constants of row steps are plain Python values: those of NumPy and pandas may be cells, and are refused."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain, postprocess, risk, suppression
from pdprivacy.errors import OpaqueFrameError, ParameterError, PrivacyError
from tests.support.idioms import calls_in

DOMAIN = Domain(
    (
        Column("hours", "integer", lower=0, upper=120),
        Column("zone", "category", categories=("n", "s")),
        Column("pay", "float", lower=0, upper=100, nullable=True),
    )
)
FRAME = pd.DataFrame({"hours": [31, 54], "zone": ["n", "s"], "pay": [1.5, None]})
CELL = FRAME["hours"].max()
CALLS = {
    "clip": lambda frame: frame.clip(upper=CELL),
    "clip of a column": lambda frame: frame.clip(lower={"hours": CELL}),
    "fillna": lambda frame: frame.fillna({"pay": FRAME["pay"].mean() * np.float64(1)}),
    "fillna of all": lambda frame: frame.select(["pay"]).fillna(np.float64(3)),
    "edges": lambda frame: frame.cut("hours", [0, FRAME["hours"].median() * np.float64(1), 120]),
    "an array of edges": lambda frame: frame.cut("hours", np.array([0, 40, 120])),
    "labels": lambda frame: frame.cut("hours", [0, 40, 120], labels=[np.str_("low"), "high"]),
    "an image": lambda frame: frame.recode("zone", {"n": np.str_("x")}),
    "a label": lambda frame: frame.recode("zone", {np.str_("n"): "x"}),
    "a new name": lambda frame: frame.rename(columns={"hours": CELL}),
    "a part of a new name": lambda frame: frame.rename(columns={"hours": ("x", CELL)}),
    "bounds": lambda frame: frame.assign(bounds={"more": (0, CELL)}, more="hours + 1"),
    "under dp": lambda frame: frame.dp.clip(upper=CELL),
}


@pytest.fixture
def private():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=1)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_constant_that_may_be_a_cell_is_refused(private, call):
    with pytest.raises(ParameterError, match="plain Python values alone") as caught:
        call(private)
    assert "54" not in str(caught.value)
    assert "age" not in str(caught.value)


def test_plain_constants_are_taken(private):
    assert private.clip(upper={"hours": 80, "pay": 9.5}).dp.domain["pay"].upper == 9.5
    assert private.cut("hours", range(0, 121, 40), labels=["a", "b", "c"]).dp.domain["hours"].categories
    assert private.recode("zone", {"n": None}).dp.domain["zone"].nullable
    assert private.rename({"zone": 3}).dp.domain.names == ("hours", 3, "pay")
    assert not private.fillna({"pay": 3}).dp.domain["pay"].nullable


@pytest.mark.parametrize("end", ["2020-06-01", datetime.date(2020, 6, 1), datetime.datetime(2020, 6, 1)])
def test_dates_are_the_same_for_columns_and_frames(end):
    days = pdprivacy.read_schema(_dates())
    private = pdprivacy.protect(pd.DataFrame({"when": pd.to_datetime(["2020-02-29"])}), days, epsilon=1)
    assert private.clip(upper=end).dp.domain == private.clip(upper={"when": "2020-06-01"}).dp.domain
    assert isinstance(private[private["when"] <= end], pdprivacy.ProtectedFrame)
    for given in (pd.Timestamp(end), np.datetime64("2020-06-01")):
        with pytest.raises(ParameterError):
            private.clip(upper=given)
        with pytest.raises(ParameterError):
            private[private["when"] <= given]


def _dates():
    import pandera.pandas as pa

    check = pa.Check.in_range("2020-01-01", "2020-12-31")
    return pa.DataFrameSchema({"when": pa.Column("datetime64[ns]", check, metadata={"dp": {}})})


def test_a_column_and_a_frame_are_formatted_as_their_text(private):
    column = private["hours"] + 1
    assert f"{column:>20}" == str(column).rjust(20)
    assert f"{private}" == f"{private:}" == str(private)
    for opaque in (private, column):
        for form in (".2f", "d", "%"):
            with pytest.raises(PrivacyError, match=r"dp\.\w+\(.*epsilon"):
                format(opaque, form)


def test_a_pattern_that_is_not_valid_is_refused_as_such(private):
    with pytest.raises(ParameterError, match=r"'regex' must be a regular expression \(got '\('\)"):
        private.filter(regex="(")
    with pytest.raises(ParameterError, match="no declared column has such a name"):
        private.filter(regex="^nothing$")


# ------------------------------------------------------------------ long lists

LISTS = [
    lambda dp, huge: Column("n", "integer", lower=0, upper=9, bins=huge),
    lambda dp, huge: Column("n", "integer", categories=huge),
    lambda dp, huge: Domain(huge),
    lambda dp, huge: dp.cut("hours", bins=huge),
    lambda dp, huge: dp.histogram("hours", bins=huge, epsilon=0.1),
    lambda dp, huge: dp.quantile("hours", q=huge, epsilon=0.1),
    lambda dp, huge: dp.utility(["zone"], order=huge),
    lambda dp, huge: dp.dr_ha("hours", "zone", huge),
    lambda dp, huge: dp.tradeoff("hours", "zone", huge, draws=2),
    lambda dp, huge: dp.split(1, huge),
    lambda dp, huge: dp.compare_sampling("mean", "hours", rates=huge, repetitions=2),
    lambda dp, huge: postprocess.clamp(huge, 0, 1),
    lambda dp, huge: risk.dirichlet_alpha(huge),
    lambda dp, huge: suppression.outlier_scores(huge),
]


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("call", LISTS)
def test_a_range_that_no_memory_holds_is_refused_before_a_list_is_made_of_it(private, call):
    with pytest.raises(PrivacyError, match="at most"):
        call(private.dp, range(10**12))
    assert private.dp.budget.spent == (0, 0)


def test_the_limit_of_constants_is_stated(private):
    with pytest.raises(ParameterError, match="'values' must hold at most 100,000 items"):
        private["hours"].isin(range(100_001))
    assert private[private["hours"].isin(range(20, 31))].dp.domain["hours"].bounds("mean") == (20, 30)


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        (lambda private: private["hours"] == "thirty", "'thirty'"),
        (lambda private: private["zone"] == "nowhere", "'nowhere'"),
        (lambda private: private.query("zone in ['nowhere']"), "'nowhere'"),
        (lambda private: private.query("zone == 31.25"), "31.25"),
        (lambda private: private["pay"].fillna("thirty"), "str"),
        (lambda private: private["pay"].clip("thirty"), "str"),
        (lambda private: private.fillna({"pay": "thirty"}), "str"),
    ],
)
def test_constants_of_conditions_are_shown_as_written_and_those_of_cells_by_type(private, condition, written):
    """The lineage of a release shows the former anyway."""
    with pytest.raises(PrivacyError) as caught:
        condition(private)
    message = str(caught.value)
    assert written in message
    assert ("thirty" in message) == (written == "'thirty'")


NUMBERS = {
    "float": float,
    "int": int,
    "complex": complex,
    "%": lambda column: "%.2f" % column,  # noqa: UP031
    "f": lambda column: f"{column:.2f}",
    "math": math.sqrt,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_conversion_to_a_number_is_refused_with_a_release_that_works(private, name):
    for value in (private["hours"], private["hours"] * 2, private):
        with pytest.raises(OpaqueFrameError, match="reads cells") as caught:
            NUMBERS[name](value)
        (call,) = calls_in(caught.value.hint)
        assert eval(call, {"private": private}) is not None
    assert name == "f" or caught.value.hint.endswith(".item()")


def test_a_release_as_a_constant_is_refused_with_its_number(private):
    released = private.dp.mean("hours", epsilon=0.5)
    for step in (
        lambda x: private.clip(upper=x),
        lambda x: private.clip(upper={"hours": x}),
        lambda x: private.select(["pay"]).fillna(x),
        lambda x: private.fillna({"pay": x}),
        lambda x: private.cut("hours", [0, x, 120]),
    ):
        with pytest.raises(ParameterError, match="plain Python values alone") as caught:
            step(released)
        assert "released.item()" in caught.value.hint
        step(20)
