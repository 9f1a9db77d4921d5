"""The schema of a release: the release meets it, and what was changed does not."""

from __future__ import annotations

import datetime
import math
import warnings

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandera.errors import SchemaErrors

from pdprivacy import Column, Domain
from pdprivacy.errors import MetadataError
from pdprivacy.pipeline.release_schema import released_schema, violations
from pdprivacy.releases import metadata
from tests.support.every_dtype import named

BANDS = [0, 500, 1000]

RELEASES = {
    "a number": lambda p: p.dp.mean("age", epsilon=1, rng=1),
    "several": lambda p: p.dp.mean(["age", "family"], epsilon=1, rng=1, releases=3),
    "rows": lambda p: p.dp.count(epsilon=1, rng=1),
    "a matrix": lambda p: p.dp.cov(["age", "income"], epsilon=1, rng=1),
    "a label": lambda p: p.dp.proportion("health", "yes", epsilon=1, rng=1),
    "a truth value": lambda p: p.dp.proportion("member", True, epsilon=1, rng=1),
    "counts": lambda p: p.dp.value_counts("region", epsilon=1, rng=1),
    "counts of two": lambda p: p.dp.value_counts(["region", "member"], epsilon=1, rng=1),
    "counts with null": lambda p: p.dp.cut("income", BANDS).dp.value_counts("income", epsilon=1, rng=1),
    "bins": lambda p: p.dp.histogram("income", 5, epsilon=1, rng=1),
    "a table": lambda p: p.dp.crosstab("region", "health", epsilon=1, rng=1),
    "a table of three": lambda p: p.dp.crosstab(["region", "age"], "health", epsilon=1, rng=1),
    "a table with margins": lambda p: p.dp.crosstab("region", "member", epsilon=1, margins=True, rng=1),
    "tables": lambda p: p.dp.crosstab("region", "member", epsilon=1, releases=2, rng=1),
    "null columns": lambda p: p.dp.cut("income", BANDS).dp.crosstab("region", "income", epsilon=1, rng=1),
    "null in columns": lambda p: p.dp.cut("income", BANDS).dp.crosstab(
        "region", ["income", "member"], epsilon=1, rng=1
    ),
    "whole columns": lambda p: p.dp.crosstab("member", "family", epsilon=1, rng=1),
    "groups": lambda p: p.dp.groupby(["region", "health"]).mean(["family", "age"], epsilon=1, rng=1),
    "shares": lambda p: p.dp.crosstab("region", "health", epsilon=1, normalize="index", rng=1),
    "description": lambda p: p.dp.describe(["age", "family"], epsilon=1, rng=1),
    "a mode": lambda p: p.dp.mode("region", epsilon=1, rng=1),
    "modes of two kinds": lambda p: p.dp.mode(["region", "family"], epsilon=1, rng=1),
    "a truth": lambda p: p.dp.mode("member", epsilon=1, rng=1),
    "the first": lambda p: p.dp.top_k(["region", "family"], 2, epsilon=1, rng=1),
    "quantiles": lambda p: p.dp.quantile("age", [0.25, 0.5], epsilon=1, rng=1),
    "a median": lambda p: p.dp.median("age", epsilon=1, rng=1),
    "centres": lambda p: p.dp.kmeans(["age", "family"], 2, epsilon=1, rng=1),
    "points": lambda p: p.dp.kmedian("family", 2, epsilon=1, steps=3, rng=1),
}
BOUNDED = {
    "means": lambda p: p.dp.mean(["age", "family"], epsilon=0.01, bounding="clamp", rng=1),
    "several means": lambda p: p.dp.mean(
        ["age", "family"], epsilon=0.01, bounding="truncated", releases=3, rng=1
    ),
    "narrower": lambda p: p.dp.mean("age", epsilon=0.01, bounding="clamp", bounds=(30, 40), rng=1),
    "a sum": lambda p: p.dp.sum("family", epsilon=0.01, bounding="clamp", rng=1),
    "deviations": lambda p: p.dp.std(["age", "family"], epsilon=0.01, bounding="clamp", rng=1),
    "covariances": lambda p: p.dp.cov(["age", "family"], epsilon=0.01, bounding="truncated", rng=1),
    "correlations": lambda p: p.dp.corr(["age", "family"], epsilon=0.01, bounding="clamp", rng=1),
    "counts": lambda p: p.dp.crosstab("region", "health", epsilon=0.01, bounding="clamp", rng=1),
    "with margins": lambda p: p.dp.crosstab(
        "region", "health", epsilon=0.01, bounding="clamp", margins=True, rng=1
    ),
    "groups": lambda p: p.dp.groupby("region").mean(["age", "family"], epsilon=0.01, bounding="clamp", rng=1),
    "null columns": lambda p: p.dp.cut("income", BANDS).dp.crosstab(
        "region", "income", epsilon=0.01, bounding="clamp", rng=1
    ),
}
every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
every_bounded = pytest.mark.parametrize("release", BOUNDED.values(), ids=BOUNDED)


def refused(schema, changed) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.PerformanceWarning)
            schema.validate(changed, lazy=True)
    except SchemaErrors:
        return True
    return False


def with_labels(axis: pd.Index, label) -> pd.Index:
    """The axis with another first label."""
    labels = axis.tolist()
    if axis.nlevels > 1:
        return pd.MultiIndex.from_tuples([(label, *labels[0][1:]), *labels[1:]], names=axis.names)
    return pd.Index([label, *labels[1:]], name=axis.name, tupleize_cols=False)


@pytest.mark.full(keep=2)
@every_release
def test_a_release_meets_its_schema(private, release):
    released = release(private)
    schema = released.dp.schema()
    assert isinstance(schema, pa.SeriesSchema if isinstance(released, pd.Series) else pa.DataFrameSchema)
    same = schema.validate(released, lazy=True)
    assert same.dp.verify()
    assert violations(released, schema) == ()


@pytest.mark.full(keep=1)
@every_release
def test_other_labels_and_dtypes_do_not(private, release):
    released = release(private)
    schema = released.dp.schema()
    changes = {
        "a row label": released.set_axis(with_labels(released.index, "other"), axis=0),
        "a name of the rows": released.rename_axis(index=["other"] * released.index.nlevels),
        "a row less": released.iloc[:-1],
        "a row more": pd.concat([released, released.iloc[:1]]),
        "another dtype": released.astype("float32" if _numeric(released) else "category"),
    }
    if len(released) > 1:
        changes["rows reversed"] = released.iloc[::-1]
    if isinstance(released, pd.Series):
        changes["another name"] = released.rename("other")
    else:
        changes["a column label"] = released.set_axis(with_labels(released.columns, "other"), axis=1)
        changes["a name of the columns"] = released.rename_axis(columns=["other"] * released.columns.nlevels)
        changes["a column more"] = pd.concat([released, released.iloc[:, :1]], axis=1)
        if released.shape[1] > 1:
            changes["columns reversed"] = released.iloc[:, ::-1]
            changes["a column less"] = released.iloc[:, 1:]
    for change, changed in changes.items():
        assert refused(schema, changed), change
        assert violations(changed, schema), change


def _numeric(released) -> bool:
    kinds = [released.dtype] if isinstance(released, pd.Series) else released.dtypes
    return all(dtype.kind in "iuf" for dtype in kinds)


LABELLED = {"a mode", "modes of two kinds", "a truth", "the first"}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("name", [name for name in RELEASES if name not in LABELLED])
def test_a_null_is_no_released_number(private, name):
    released = RELEASES[name](private)
    holed = released.astype(np.float64)
    holed.iloc[(0,) * holed.ndim] = math.nan
    assert refused(released.dp.schema(), holed)


@pytest.mark.full
@every_bounded
def test_numbers_outside_their_bounds_are_refused(private, release):
    released = release(private)
    schema, bounds = released.dp.schema(), released.attrs["dp"]["bounds"]
    assert violations(released, schema) == ()
    pairs = np.array(bounds, dtype=object)
    ends = np.broadcast_to(pairs, (*released.shape, 2))
    checked = 0
    for position in np.ndindex(released.shape):
        for end, beyond in zip(ends[position], (-1, 1), strict=True):
            if end is None:
                continue
            for number, outside in ((end, False), (end + beyond, True)):
                changed = released.copy()
                changed.iloc[position] = changed.dtype.type(number) if changed.ndim == 1 else int(number)
                if changed.iloc[position] == number:  # a bound of counts need not be whole
                    assert refused(schema, changed) is outside, (position, number)
                    checked += outside
    assert checked >= 1


def test_it_says_what_it_checks(private):
    table = private.dp.crosstab("region", "health", epsilon=0.01, bounding="clamp", rng=1)
    schema = table.dp.schema()
    assert schema.name == "crosstab"
    assert list(schema.columns) == ["no", "yes"]
    assert (schema.strict, schema.ordered) == (True, True)
    assert [str(column.dtype) for column in schema.columns.values()] == ["int64", "int64"]
    assert schema.columns["no"].checks == [pa.Check.ge(0.0)]
    assert schema.index.checks == [pa.Check.isin(["north", "east", "south", "west"])]
    free = private.dp.crosstab("region", "health", epsilon=0.01, rng=1).dp.schema()
    assert free.columns["no"].checks == []


def test_another_month_meets_the_schema_of_the_last(private, survey, schema):
    first = private.dp.crosstab("region", "health", epsilon=0.1, rng=1)
    later = survey.iloc[5:].dp.protect(schema, epsilon=9).dp.crosstab("region", "health", epsilon=3, rng=2)
    assert not first.equals(later)
    assert violations(later, first.dp.schema()) == ()


def test_only_a_release_has_one(private, survey):
    table = private.dp.crosstab("region", "health", epsilon=1)
    table.iloc[0, 0] += 1
    with pytest.raises(MetadataError, match=r"not those that were released.*\nHint: take the schema"):
        table.dp.schema()
    for other in (survey, private, survey["age"], private.dp.dr_ha("region", "health", [1.0])):
        with pytest.raises(MetadataError, match="no release metadata"):
            other.dp.schema()


def test_failed_checks_are_named_without_a_number(private):
    counts = private.dp.value_counts("region", epsilon=1, bounding="clamp", rng=1)
    reported = violations(counts.astype(np.float64) - 123456, counts.dp.schema())
    assert reported
    assert all(part.replace("_", "").isalpha() for part in reported)
    assert violations("no frame", counts.dp.schema()) != ()


def test_global_switches_of_pandera_do_not_count(private):
    from pandera.config import config_context

    counts = private.dp.value_counts("region", epsilon=1, rng=1)
    with config_context(validation_enabled=False):
        assert violations(counts.iloc[:-1], counts.dp.schema()) != ()


# ------------------------------------------------------------------ labels of every kind

LABELS = st.one_of(
    st.text(max_size=5).filter(lambda text: text.isprintable()),
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
)
PAIRS = st.tuples(st.integers(0, 3), st.text("ab", max_size=2))


@st.composite
def domains(draw):
    """Two columns of labels of one kind or several, with nulls or without."""
    columns = []
    for name in ("a", "b"):
        labels = draw(st.lists(draw(st.sampled_from([LABELS, PAIRS])), min_size=1, max_size=4, unique=True))
        nullable = draw(st.booleans())
        columns.append(Column(name, "category", nullable=nullable, categories=tuple(labels)))
    return Domain(tuple(columns))


@given(domains(), st.sampled_from(["a", "b", ["a", "b"]]), st.booleans())
def test_labels_of_any_kind_are_labels(domain, rows, sorts):
    frame = pd.DataFrame({name: np.array([None], dtype=object)[:0] for name in "ab"})
    private = frame.dp.protect(domain, epsilon=10)
    counts = private.dp.value_counts(rows, epsilon=1, sort=sorts, rng=1)
    assert violations(counts, counts.dp.schema()) == ()
    first, *rest = named(counts.index)
    others = [label for label in rest if label != first]
    if others:
        swapped = counts.iloc[::-1]
        assert violations(swapped, counts.dp.schema()) != ()
    if rows == "a":
        table = private.dp.crosstab("a", "b", epsilon=1, rng=1)
        schema = table.dp.schema()
        assert violations(table, schema) == ()
        assert violations(table.rename_axis(columns="c"), schema) != ()
        assert violations(table.astype(np.float64), schema) != ()


@st.composite
def bounded(draw):
    """Numbers with bounds of each, and the frame that holds them."""
    shape = draw(st.sampled_from([(1,), (3,), (2, 2), (3, 1)]))
    size = math.prod(shape)
    ends = st.floats(-1e6, 1e6, allow_nan=False)
    shared = draw(st.booleans())
    pairs, numbers = [], []
    for _ in range(1 if shared else size):
        low, high = sorted((draw(ends), draw(ends)))
        pairs.append([low if draw(st.booleans()) else None, high if draw(st.booleans()) else None])
    pairs = pairs * size if shared else pairs
    for low, high in pairs:
        least, most = (-1e9 if low is None else low), (1e9 if high is None else high)
        numbers.append(draw(st.floats(least, most, allow_nan=False)))
    values = np.array(numbers).reshape(shape)
    stored = pairs[0] if shared else np.array(pairs, dtype=object).reshape(*shape, 2).tolist()
    released = pd.Series(values) if len(shape) == 1 else pd.DataFrame(values, columns=list("xy")[: shape[1]])
    facts = dict.fromkeys(["statistic", "mechanism", "neighbors", "version"], "any") | dict.fromkeys(
        ["epsilon", "delta", "sensitivity", "scale"], 1.0
    )
    facts |= {"columns": [], "split": {}, "error": {}, "budget": {}, "seeded": False, "bounds": stored}
    metadata.attach(released, facts)
    return released, pairs


@given(bounded(), st.data())
def test_bounds_are_those_of_the_metadata(made, data):
    released, pairs = made
    schema = released_schema(released)
    assert violations(released, schema) == ()
    position = data.draw(st.integers(0, len(pairs) - 1))
    number = data.draw(st.floats(-1e7, 1e7, allow_nan=False))
    low, high = pairs[position]
    inside = (low is None or low <= number) and (high is None or number <= high)
    changed = released.copy()
    changed.iloc[np.unravel_index(position, released.shape)] = number
    assert (violations(changed, schema) == ()) is inside
