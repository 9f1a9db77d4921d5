"""Bins of columns that are read block by block, against NumPy and by their edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import Column
from pdprivacy.core.engines import PandasEngine

NAN, INF = float("nan"), float("inf")


def engine(**columns: Any) -> PandasEngine:
    return PandasEngine(pd.DataFrame({name: pd.Series(values) for name, values in columns.items()}))


def around(edges: np.ndarray) -> np.ndarray:
    """The edges, their neighbours among the doubles, and the middles of the bins."""
    return np.concatenate(
        [edges, np.nextafter(edges, -INF), np.nextafter(edges, INF), (edges[1:] + edges[:-1]) / 2]
    )


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(
    ("lower", "upper"), [(0.0, 1.0), (-7.0, 3.0), (0.1, 0.7), (1e6, 1e6 + 1), (1e15, 1e15 + 3), (-1e-7, 1e-6)]
)
@pytest.mark.parametrize("number", [1, 2, 10, 16, 17, 50, 1000, 40_000])
def test_even_bins_count_as_numpy_does(lower, upper, number):
    edges = np.unique(np.linspace(lower, upper, number + 1))
    values = np.clip(
        np.concatenate([around(edges), np.random.default_rng(1).uniform(lower, upper, 500)]), lower, upper
    )
    column = Column("x", "float", lower=lower, upper=upper)
    expected = np.histogram(values, edges)[0].tolist()
    assert engine(x=values).bins(column, tuple(edges.tolist())).tolist() == expected
    same = Column("x", "float", lower=lower, upper=upper, bins=tuple(edges.tolist()))
    assert engine(x=values).table([same], "test").tolist() == expected


EDGE = st.floats(-100, 100).map(lambda edge: edge if abs(edge) > 1e-300 else 0.0)


@given(
    edges=st.lists(EDGE, min_size=2, max_size=40, unique=True).map(sorted),
    ends=st.tuples(st.floats(-100, 100), st.floats(-100, 100)).map(sorted),
    values=st.lists(st.floats(-150, 150), max_size=20),
    whole=st.booleans(),
)
def test_bins_of_any_width_within_and_beyond_the_bounds_count_as_numpy_does(edges, ends, values, whole):
    lower, upper = (math.floor(ends[0]), math.ceil(ends[1])) if whole else ends
    cells = np.concatenate([values, around(np.array(edges))])
    cells = np.rint(cells) if whole else cells
    column = Column("x", "integer" if whole else "float", lower=lower, upper=upper)
    clipped = np.clip(cells, lower, upper)
    counts = engine(x=cells.astype(np.int64) if whole else cells).bins(column, tuple(edges))
    assert counts.tolist() == np.histogram(clipped, np.array(edges))[0].tolist()


def test_nearly_even_bins_are_settled_by_their_edges():
    edges = np.linspace(0, 100, 201)
    edges[1:-1] += 1e-9 * np.sin(np.arange(199))
    values = np.clip(around(edges), 0, 100)
    counts = engine(x=values).bins(Column("x", "float", lower=0, upper=100), tuple(edges.tolist()))
    assert counts.tolist() == np.histogram(values, edges)[0].tolist()


def test_bins_as_narrow_as_doubles_can_be():
    edges = (0.0, 2.5e-313, 5e-313, 1.0)
    values = [0.0, 1e-313, 2.5e-313, 4e-313, 5e-313, 0.5]
    column = Column("x", "float", lower=0, upper=1)
    assert engine(x=values).bins(column, edges).tolist() == [2, 2, 2]
    assert engine(x=values).bins(column, edges[:3]).tolist() == [2, 3]
    assert engine(x=values).bins(column, edges[:2]).tolist() == [3]
