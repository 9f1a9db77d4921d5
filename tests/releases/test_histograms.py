"""Counts of records, of labels and of bins: those of pandas and NumPy where no noise is added."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from pdprivacy import Column, Domain
from tests.support.every_dtype import (
    DOMAIN,
    DTYPES,
    LABELLED,
    LABELS,
    LARGE,
    NAN,
    NUMBERS,
    PLAIN,
    ROWS,
    VALID,
    labels_of,
    named,
    protected,
)


def test_counts_are_those_of_pandas(silent):
    private = protected(VALID, DOMAIN)
    assert private.dp.count(epsilon=1).to_dict() == {"rows": ROWS}
    names = list(DTYPES)
    for options in ({}, {"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": "1e-5"}):
        pd.testing.assert_series_equal(
            private.dp.count(names, epsilon=LARGE, **options), VALID.count(), check_dtype=not options
        )


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", [*LABELS, "bool", "int8"])
def test_value_counts_are_those_of_pandas(name, silent):
    private = protected(VALID, DOMAIN)
    cells = labels_of(name)
    expected = PLAIN[name].value_counts().reindex(cells, fill_value=0)
    released = private.dp.value_counts(name, epsilon=LARGE, sort=False)
    assert named(released.index) == cells
    assert released.tolist() == expected.tolist()
    assert (released.name, released.dtype) == ("count", np.int64)
    ranked = private.dp.value_counts(name, epsilon=LARGE)
    assert ranked.tolist() == sorted(expected, reverse=True)
    assert dict(zip(named(ranked.index), ranked, strict=True)) == expected.to_dict()
    shares = private.dp.value_counts(name, epsilon=50, normalize=True)
    assert dict(zip(named(shares.index), shares, strict=True)) == pytest.approx((expected / ROWS).to_dict())
    assert shares.name == "proportion"


def test_value_counts_of_several_columns_are_those_of_pandas(silent):
    names = ["object", "group", "bool"]
    released = protected(VALID, DOMAIN).dp.value_counts(names, epsilon=1, sort=False)
    every = list(itertools.product(*map(labels_of, names)))
    assert named(released.index) == every
    expected = LABELLED[names].value_counts().to_dict()
    assert released.tolist() == [expected.get(cell, 0) for cell in every]
    assert released.index.names == names


# ---------------------------------------------------------------- histograms


def bins_of(released: pd.Series[Any], column: Column) -> list[int]:
    if column.nullable:
        assert named(released.index)[-1] == "(null)"
        return released.iloc[:-1].tolist()
    return released.tolist()


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", [*NUMBERS, "bool"])
@pytest.mark.parametrize(
    "bins",
    [
        None,
        1,
        50,
        [-10.0, 0, 18, 33],
        [3, 5.5, 6, 11],
        [-500, 1.5, 2, 2.5, 18, 400],
        np.linspace(-10, 33, 51).tolist(),
        np.sort(np.random.default_rng(2).uniform(-10, 33, 51)).tolist(),
    ],
    ids=["declared", "one", "50", "wide", "narrow", "beyond", "50 even", "50 uneven"],
)
def test_histograms_are_those_of_numpy(name, bins, silent):
    column = DOMAIN[name]
    released = protected(VALID, DOMAIN).dp.histogram(name, bins, epsilon=1)
    if bins is None or isinstance(bins, int):
        edges = np.linspace(float(column.lower), float(column.upper), (bins or 10) + 1)
    else:
        edges = np.array(bins, dtype=float)
    values = PLAIN[name].dropna().to_numpy()
    assert bins_of(released, column) == np.histogram(values, edges)[0].tolist()
    if column.nullable:
        assert released.iloc[-1] == PLAIN[name].isna().sum()
    assert named(released.index)[0].startswith("[")
    assert named(released.index)[len(edges) - 2].endswith("]")
    assert (released.name, released.index.name) == ("count", name)


def test_the_right_edge_belongs_to_the_last_bin_and_no_other_right_edge(silent):
    domain = Domain((Column("x", "float", lower=0, upper=4, bins=(0, 1, 3, 4)),))
    private = protected(pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0, 4.0, math.nextafter(1, 0)]}), domain)
    assert private.dp.histogram("x", epsilon=1).to_dict() == {"[0, 1)": 2, "[1, 3)": 1, "[3, 4]": 3}
    assert private.dp.histogram("x", [0, 1, 3], epsilon=1).to_dict() == {"[0, 1)": 2, "[1, 3]": 2}
    assert private.dp.value_counts("x", epsilon=1, sort=False).tolist() == [2, 1, 3]


def test_edges_that_rounding_could_cross(silent):
    edges = np.linspace(0.1, 0.7, 50)
    around = np.concatenate([edges, np.nextafter(edges, 1), np.nextafter(edges, 0)]).clip(0.1, 0.7)
    private = protected(pd.DataFrame({"x": around}), Domain((Column("x", "float", lower=0.1, upper=0.7),)))
    for bins in (49, edges):
        released = private.dp.histogram("x", bins, epsilon=1)
        assert released.tolist() == np.histogram(around, edges)[0].tolist()


def test_a_null_record_moves_no_other_record_to_another_bin(silent):
    """0.7 as a narrow float is below 0.7, whatever stands beside it."""
    domain = Domain((Column("x", "float", nullable=True, lower=0.0, upper=1.0),))
    released = []
    for last in ([], [NAN]):
        frame = pd.DataFrame({"x": np.array([0.7] * 50 + last, dtype=np.float32)})
        private = protected(frame, domain).dp.query("x.isna() or x > 0.6")
        released.append(private.dp.histogram("x", [0, 0.7, 1.0], epsilon=1).to_numpy())
    assert np.abs(released[0] - released[1]).sum() == 1
    assert released[0][2] == 0
    assert released[1][2] == 1
