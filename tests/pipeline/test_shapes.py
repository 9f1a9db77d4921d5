"""Released objects as JSON: labels of every type, nulls and tables are read as they were."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.pipeline.storage import from_bytes, to_bytes
from pdprivacy.releases.frame_json import from_json, to_json
from tests.support.labels import SCALARS
from tests.support.released import same

pytest.importorskip("pyarrow", reason="releases are stored as Parquet")

INTERVALS = st.builds(
    lambda low, width, closed: pd.Interval(low, low + width, closed),
    st.integers(-9, 9), st.integers(1, 5), st.sampled_from(["left", "right"]),
)  # fmt: skip
PAIRS = st.tuples(st.integers(0, 9), st.text("ab", max_size=2))
LABELS = st.one_of(SCALARS, INTERVALS, PAIRS)


@given(st.one_of(LABELS, st.tuples(LABELS, st.none())))
def test_a_label_of_any_kind_is_read_as_it_was(label):
    stored = json.loads(json.dumps(to_json(label)))
    back = from_json(stored)
    assert type(back) is type(label)
    assert back == label
    assert str(back) == str(label)


@pytest.mark.parametrize("null", [None, math.nan, pd.NaT, pd.NA], ids=str)
def test_nulls_are_told_apart(null):
    back = from_json(json.loads(json.dumps(to_json(null))))
    assert type(back) is type(null)
    assert pd.isna(back)


@st.composite
def tables(draw):
    """A release of labels of any kind: one column by the other, or counts of one or both."""
    columns = []
    for name in draw(st.sampled_from([("a", "b"), (1, "b"), ("a", "a.b")])):
        kind = draw(st.sampled_from([SCALARS, INTERVALS, PAIRS]))
        # integers beyond 64 bits are no declared labels
        kind = kind.filter(lambda label: not isinstance(label, int) or -(2**63) <= label < 2**63)
        labels = draw(st.lists(kind, min_size=1, max_size=4, unique=True))
        columns.append(Column(name, "category", draw(st.booleans()), categories=tuple(labels)))
    frame = pd.DataFrame({column.name: np.array([None], dtype=object)[:0] for column in columns})
    private = frame.dp.protect(Domain(tuple(columns)), epsilon=100)
    first, second = (column.name for column in columns)
    way = draw(st.sampled_from(["crosstab", "counts", "both", "releases", "mode"]))
    if way == "crosstab":
        return private.dp.crosstab(first, second, epsilon=1, margins=draw(st.booleans()))
    if way == "mode":
        return private.dp.mode([first, second], epsilon=1)
    chosen = [first, second] if way == "both" else first
    return private.dp.value_counts(chosen, epsilon=1, releases=2 if way == "releases" else 1)


@pytest.mark.full
@given(tables())
def test_a_table_of_any_labels_is_read_as_it_was(released):
    data, back = to_bytes(released)
    same(back, released)
    same(from_bytes(data), released)
    assert back.dp.verify()
    plain = pd.read_parquet(io.BytesIO(data))
    assert plain.attrs["dp"] == released.attrs["dp"]
    assert plain.shape == (released.shape if released.ndim == 2 else (*released.shape, 1))
