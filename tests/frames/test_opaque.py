"""Names of pandas that protected objects do not have: the calls in their place fit the frame, and work."""

from __future__ import annotations

import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import OpaqueFrameError, PrivacyError
from pdprivacy.hints.examples import INSTEAD
from tests.support.idioms import calls_in

DOMAIN = Domain(
    (
        Column("rent", "float", nullable=True, lower=0, upper=2000),
        Column("floor", "integer", lower=-1, upper=30, bins=(-1, 5, 30)),
        Column("town", "category", categories=("Aa", "Bb")),
        Column("kind", "category", categories=("x", "y")),
        Column("built", "integer", lower=0, upper=999, timeline=Timeline(18262, "D")),
        Column("size", "integer", lower=1, upper=9),
    )
)
FRAME = pd.DataFrame(
    {
        "rent": [500.5, 700.0] * 50,
        "floor": [1, 2] * 50,
        "town": ["Aa", "Bb"] * 50,
        "kind": ["x", "y"] * 50,
        "built": pd.to_datetime(["2020-03-01", "2020-04-01"] * 50),
        "size": [2, 3] * 50,
    }
)


def protected():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=100)


@pytest.mark.parametrize("name", sorted({*INSTEAD} - {"size"}))
def test_a_suggestion_names_columns_of_the_frame_and_works(name):
    private = protected()
    with pytest.raises(OpaqueFrameError) as error:
        getattr(private, name)
    calls = [*calls_in(error.value.hint)]
    assert calls
    for call in calls:
        assert eval(call, {"private": private, "pd": pd}) is not None


def test_a_declared_column_is_suggested_with_a_release_of_its_own():
    private = protected()
    for name, call in (("size", 'private.dp.describe("size", epsilon=0.1)'), ("town", 'value_counts("town"')):
        with pytest.raises(OpaqueFrameError) as error:
            getattr(private, name)
        assert call in error.value.hint


def test_conditions_are_counted_by_filters():
    private = protected()
    for make, call in (
        (lambda: (private["floor"] > 1).sum(), 'private.query("floor > 1").dp.count(epsilon=0.1)'),
        (lambda: private["rent"].isna().mean(), 'private.assign(new="rent.isna()").dp.proportion('),
        (lambda: (private["floor"] + 1).mean(), "private.dp.mean("),
        (lambda: private["rent"].corr(private["floor"]), 'private.dp.corr(["rent", "'),
        (lambda: private["built"].max(), 'private.dp.max("built", epsilon=0.1)'),
    ):
        with pytest.raises(PrivacyError) as error:
            make()
        assert error.value.hint.startswith(call)
        for hinted in calls_in(error.value.hint):
            assert eval(hinted, {"private": private}) is not None


def test_operators_as_methods_are_those_operators():
    private = protected()
    rent = private["rent"]
    for method, operator in (
        (rent.add(1), rent + 1),
        (rent.rsub(1), 1 - rent),
        (rent.div(2), rent / 2),
        (rent.floordiv(private["size"]), rent // private["size"]),
        (rent.ge(5), rent >= 5),
        (private["town"].ne("Aa"), private["town"] != "Aa"),
    ):
        assert repr(method) == repr(operator)
    assert private[lambda df: df["floor"] >= 2].dp.domain["floor"].lower == 2
    assert private.loc[lambda df: df["floor"] >= 2, ["rent"]].columns.tolist() == ["rent"]
    with pytest.raises(PrivacyError):
        del private["rent"]
