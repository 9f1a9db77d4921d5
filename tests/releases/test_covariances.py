"""Covariances, correlations and pooled variances: those of pandas and NumPy where no noise is added."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pdprivacy  # noqa: F401 - registers the accessor
from tests.support.every_dtype import (
    DOMAIN,
    GRID,
    LARGE,
    PLAIN,
    SCOPES,
    VALID,
    WITHOUT_NULLS,
    labels_of,
    protected,
)


@pytest.fixture(params=SCOPES, scope="module")
def private(request):
    return protected(VALID, DOMAIN, **SCOPES[request.param])


@pytest.mark.full(keep=15)
@pytest.mark.parametrize("names", [WITHOUT_NULLS, ["int64", "bool"]], ids=["all", "two"])
@pytest.mark.parametrize("method", ["cov", "corr"])
def test_covariances_and_correlations_are_those_of_pandas(method, names, private, cost):
    expected = getattr(PLAIN[names], method)()
    released = getattr(private.dp, method)(names, **cost)
    spans = np.array([DOMAIN[name].upper - DOMAIN[name].lower for name in names])
    scale = np.outer(spans, spans) if method == "cov" else 20.0
    assert (np.abs(released.to_numpy() - expected.to_numpy()) <= GRID * scale).all()
    assert released.index.tolist() == released.columns.tolist() == names
    assert (released.to_numpy() == released.to_numpy().T).all()


def test_a_covariance_matrix_leaves_out_records_with_any_null(silent):
    names = ["float64", "Int64", "bool"]
    private = protected(VALID, DOMAIN)
    expected = PLAIN[names].dropna().cov()
    released = private.dp.cov(names, epsilon=LARGE)
    np.testing.assert_allclose(released, expected, atol=GRID * 43**2)


def pooled(names: list[str], by: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Within-group sums of products about the group means over n less the declared groups."""
    complete = frame[[*names, by]].dropna()
    centred = complete[names] - complete.groupby(by)[names].transform("mean")
    return centred.T @ centred / (len(complete) - len(labels_of(by)))


@pytest.mark.full(keep=8)
@pytest.mark.parametrize(
    ("names", "by"),
    [(["int64", "float32", "bool"], "group"), (["uint8", "decimal"], "object")],
    ids=str,
)
def test_pooled_moments_are_those_of_numpy(names, by, private, cost):
    expected = pooled(names, by, PLAIN)
    matrix = private.dp.pooled_cov(names, by=by, **cost)
    np.testing.assert_allclose(matrix, expected, atol=GRID * 43**2)
    assert matrix.index.tolist() == matrix.columns.tolist() == names
    variances = private.dp.pooled_var(names, by=by, **cost)
    np.testing.assert_allclose(variances, np.diagonal(expected), atol=GRID * 43**2)
    assert variances.index.tolist() == names


def test_pooled_moments_leave_out_records_with_any_null(silent):
    names = ["float64", "Int64", "int8"]
    private = protected(VALID, DOMAIN)
    expected = pooled(names, "object", PLAIN)
    np.testing.assert_allclose(private.dp.pooled_cov(names, by="object", epsilon=LARGE), expected, atol=0.1)
    variances = private.dp.pooled_var(names, by="object", epsilon=LARGE)
    np.testing.assert_allclose(variances, np.diagonal(expected), atol=0.1)
