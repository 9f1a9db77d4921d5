"""Margins of pivot tables: those of pandas, with the noise of all their cells, and intervals that cover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import ParameterError

SIZE = 900
rng = np.random.default_rng(8)
FRAME = pd.DataFrame(
    {
        "g": rng.choice(["a", "b", "c"], SIZE),
        "h": rng.choice(["u", "v"], SIZE),
        "x": rng.uniform(5, 40, SIZE),
        "y": rng.integers(0, 9, SIZE).astype(float),
    }
)
FRAME.loc[::9, "y"] = np.nan
DOMAIN = Domain(
    (
        Column("g", "category", categories=("a", "b", "c")),
        Column("h", "category", categories=("u", "v")),
        Column("x", "float", lower=0, upper=50),
        Column("y", "float", True, lower=-1, upper=10),
    )
)
EXACT = {"epsilon": 10**6, "rng": 1}
EXACT_SUMS = FRAME.pivot_table("x", "g", "h", "sum", margins=True).to_numpy()


@pytest.fixture
def private():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=10**9, delta=0.1)


@pytest.mark.parametrize("columns", [None, "h"])
@pytest.mark.parametrize("func", ["count", "sum", "mean", "var", "std"])
@pytest.mark.parametrize("values", ["x", "y"])
def test_margins_are_those_of_pandas(private, values, func, columns):
    released = private.dp.pivot_table(values, "g", columns, func, margins=True, margins_name="Sum", **EXACT)
    expected = FRAME.pivot_table(
        values=values, index="g", columns=columns, aggfunc=func, margins=True, margins_name="Sum"
    )
    assert released.index.tolist() == expected.index.tolist()
    assert released.columns.tolist() == expected.columns.tolist()
    assert released.index.names == expected.index.names
    np.testing.assert_allclose(released, expected, rtol=2e-3)
    ends = released.dp.interval()
    assert (ends["lower"] <= released + 1e-9).all(axis=None)
    assert released.dp.metadata.margins


def test_margins_of_several_values_and_statistics(private):
    plain = private.dp.pivot_table(["x", "y"], ["g"], ["h"], ["mean", "count"], **EXACT)
    released = private.dp.pivot_table(["x", "y"], ["g"], ["h"], ["mean", "count"], margins=True, **EXACT)
    assert released.columns.names == plain.columns.names
    assert (released.loc[plain.index, plain.columns].to_numpy() == plain.to_numpy()).all()
    for kind in ("mean", "count"):
        for name in ("x", "y"):
            np.testing.assert_allclose(
                released[kind, name, "All"].iloc[:-1], FRAME.groupby("g")[name].agg(kind), rtol=2e-3
            )
            np.testing.assert_allclose(released[kind, name, "All"].iloc[-1], FRAME[name].agg(kind), rtol=2e-3)
    both = private.dp.pivot_table("x", ["g", "h"], None, "sum", margins=True, **EXACT)
    assert both.index[-1] == ("All", "")
    assert both["x"].iloc[-1] == pytest.approx(FRAME["x"].sum(), rel=1e-3)


def test_margins_have_the_noise_of_all_their_cells(private):
    """The mean square of errors in standard errors is 1; 0.9 and 1.1 of the standard errors are rejected.

    One call draws all tables, side by side and each of epsilon 1.
    """
    draws = 1500
    released = private.dp.pivot_table(
        "x", "g", "h", "sum", margins=True, epsilon=draws, releases=draws, rng=1
    )
    stated = released.dp.metadata.error_of_each("standard_error", released.shape)
    errors = (released.to_numpy() - np.tile(EXACT_SUMS, draws)) / stated
    assert released.columns.get_level_values("h")[2::3].unique().tolist() == ["All"]
    square = np.mean(errors[:-1, 2::3] ** 2)  # of the row margins
    # the mean of two Laplace noises has kurtosis 4.5, so that the mean of 4500 squares errs by 2.8 %
    accepted = {scale: abs(square / scale**2 - 1) < 0.11 for scale in (0.9, 1.0, 1.1)}
    assert accepted == {0.9: False, 1.0: True, 1.1: False}, square


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("func", "mechanism"), [("mean", "laplace"), ("var", "laplace"), ("sum", "gaussian")]
)
def test_intervals_of_margins_cover(private, func, mechanism):
    expected = FRAME.pivot_table(values="x", index="g", columns="h", aggfunc=func, margins=True)
    draws = 150  # each of epsilon 2 (and delta 1e-6), side by side
    words = {"delta": 1e-6 * draws} if mechanism == "gaussian" else {}
    released = private.dp.pivot_table(
        "x",
        "g",
        "h",
        func,
        margins=True,
        epsilon=2 * draws,
        releases=draws,
        mechanism=mechanism,
        rng=5,
        **words,
    )
    ends = released.dp.interval()
    lower, upper = (ends[end].to_numpy().reshape(len(expected), draws, -1) for end in ("lower", "upper"))
    truth = expected.to_numpy()[:, np.newaxis]
    covered = (lower <= truth) & (truth <= upper)
    assert covered.mean(axis=1).min() > 0.87  # of 150 draws of 95 %, all but one in 20,000


@pytest.mark.parametrize("func", ["mean", "sum", "std", ["mean", "count"]], ids=str)
def test_margins_have_intervals_of_the_stated_level_only(private, func):
    released = private.dp.pivot_table("x", "g", "h", func, margins=True, epsilon=1, rng=1)
    assert released.dp.metadata.parts is None
    pd.testing.assert_frame_equal(released.dp.interval(level=0.95), released.dp.interval())
    with pytest.raises(pdprivacy.errors.MetadataError, match=r"at level 0\.95 only"):
        released.dp.interval(level=0.9)


def test_margins_are_free(private):
    before = private.dp.budget.spent
    plain = private.dp.pivot_table("x", "g", "h", epsilon=1, rng=5)
    middle = private.dp.budget.spent
    with_margins = private.dp.pivot_table("x", "g", "h", margins=True, epsilon=1, rng=5)
    after = private.dp.budget.spent
    assert after[0] - middle[0] == middle[0] - before[0]
    assert with_margins.dp.metadata.scale == plain.dp.metadata.scale
    assert (with_margins.to_numpy()[:-1, :-1] == plain.to_numpy()).all()
    own = [
        released.dp.metadata.error_of_each("plus_minus", released.shape) for released in (with_margins, plain)
    ]
    np.testing.assert_allclose(own[0][:-1, :-1], own[1])


def test_plans_have_margins(private):
    plan = private.dp.plan.pivot_table("x", "g", "h", "sum", margins=True, epsilon=1, rows=SIZE)
    widths = plan["plus_minus"].groupby(level=[-2, -1]).first()
    assert widths["All", "All"] == pytest.approx(6**0.5 * widths["a", "u"], rel=0.1)


def test_margins_of_biased_numbers_are_refused(private):
    for bounding in ("clamp", "truncated"):
        with pytest.raises(ParameterError, match="biases of bounded numbers add up"):
            private.dp.pivot_table("x", "g", "h", margins=True, epsilon=1, bounding=bounding)
    with pytest.raises(ParameterError, match="'margins_name' must be no declared label"):
        private.dp.pivot_table("x", "g", "h", margins=True, margins_name="a", epsilon=1)
    with pytest.raises(ParameterError, match="'margins' must be True or False"):
        private.dp.pivot_table("x", "g", "h", margins=1, epsilon=1)
