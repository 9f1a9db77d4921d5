"""k-anonymity, l-diversity and t-closeness of records, by enumeration of their classes in plain Python."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdprivacy import Column, Domain
from pdprivacy.core.privacy import Confidential
from pdprivacy.errors import DeclarationError, ParameterError

NULL = "null"
TOWNS, ILLS, LEVELS = ("a", "b"), ("flu", "gout", "no"), (3, 1, 2)
DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=2, role="quasi_identifier", public_bounds=True),
        Column("town", "category", True, categories=TOWNS, role="quasi_identifier"),
        Column("ill", "category", True, categories=ILLS, role="sensitive"),
        Column("pay", "float", bins=(0, 10, 20, 40), role="sensitive", public_bounds=True),
        Column("level", "integer", True, categories=LEVELS, role="sensitive"),
        Column("score", "float", lower=0, upper=1, public_bounds=True),
        Column("person", "integer", lower=0, upper=99, role="identifier", public_bounds=True),
    )
)
RECORD = st.tuples(
    st.sampled_from([0, 1, 2]),
    st.sampled_from([*TOWNS, None]),
    st.sampled_from([*ILLS, None]),
    st.sampled_from([0, 5, 10, 19.5, 20, 40]),
    st.sampled_from([*LEVELS, None]),
)
RECORDS = st.lists(RECORD, min_size=1, max_size=40)
NAMES = ["age", "town", "ill", "pay", "level"]


def protect(records, domain=DOMAIN):
    columns = dict(zip(NAMES, zip(*records, strict=True), strict=True)) if records else {}
    frame = pd.DataFrame(
        {
            "age": pd.array(columns.get("age", []), dtype="int64"),
            "town": pd.array(columns.get("town", []), dtype="object"),
            "ill": pd.array(columns.get("ill", []), dtype="object"),
            "pay": pd.array(columns.get("pay", []), dtype="float64"),
            "level": pd.array(columns.get("level", []), dtype="Int64"),
            "score": np.zeros(len(records)),
            "person": np.arange(len(records)) % 100,
        }
    )
    return frame.dp.protect(domain, epsilon=1)


def label(name, value):
    """The label of a cell as text."""
    if value is None:
        return NULL
    return str(sum(value >= edge for edge in (10, 20))) if name == "pay" else str(value)


def classes_of(records, by):
    """The records of each class, by the labels of its quasi-identifiers."""
    classes = defaultdict(list)
    for values in records:
        labels = {name: label(name, value) for name, value in zip(NAMES, values, strict=True)}
        classes[tuple(labels[name] for name in by)].append(labels)
    return dict(classes)


def entropy(labels):
    shares = [count / len(labels) for count in Counter(labels).values()]
    return -sum(share * math.log(share) for share in shares)


def closeness(part, everyone, order):
    """The ordered or equal distance from all records, from the definitions of Li et al. 2007."""
    share = lambda labels, one_of: sum(each in one_of for each in labels) / len(labels)  # noqa: E731
    if order is None:
        return sum(abs(share(part, {each}) - share(everyone, {each})) for each in set(everyone)) / 2
    differences = [share(part, {each}) - share(everyone, {each}) for each in order]
    return sum(abs(sum(differences[: end + 1])) for end in range(len(order))) / (len(order) - 1)


ORDERS = {"pay": ["0", "1", "2"], "level": ["1", "2", "3"]}


@settings(max_examples=25)
@given(RECORDS, st.sampled_from([["age"], ["age", "town"]]), st.integers(1, 6), st.integers(1, 3))
def test_the_report_is_that_of_enumerated_classes(records, by, min_records, min_labels):
    sensitive = ["ill", "pay", "level"]
    report = protect(records).dp.anonymity(
        by, sensitive, top=100, min_records=min_records, min_labels=min_labels
    )
    classes = classes_of(records, by)
    sizes = [len(part) for part in classes.values()]
    assert report.k == min(sizes)
    for limit in (2, 3, 5, 10):
        few = [size for size in sizes if size < limit]
        expected = [len(few), sum(few), sum(few) / len(records)]
        assert report.summary.loc[f"below {limit}"].tolist() == pytest.approx(expected)
    assert report.summary.loc["all"].tolist() == [len(sizes), len(records), 1]

    everyone = [labels for part in classes.values() for labels in part]
    for name in sensitive:
        columns = [[labels[name] for labels in part] for part in classes.values()]
        row = report.diversity.loc[name]
        assert row["distinct l"] == min(len(set(part)) for part in columns)
        assert row["entropy l"] == pytest.approx(math.exp(min(map(entropy, columns))))
        together = [labels[name] for labels in everyone]
        order = None if NULL in together else ORDERS.get(name)
        assert row["distance"] == ("equal" if order is None else "ordered")
        expected = max(closeness(part, together, order) for part in columns)
        assert row["t"] == pytest.approx(expected, abs=1e-12)

    risky = {}
    for labels, part in classes.items():
        fewest = min(len({each[name] for each in part}) for name in sensitive)
        if len(part) < min_records or fewest < min_labels:
            risky[labels] = (len(part), fewest)
    assert report.summary.loc["risky"].tolist()[:2] == [len(risky), sum(size for size, _ in risky.values())]
    listed = {}
    for labels, row in report.risky.iterrows():
        labels = labels if isinstance(labels, tuple) else (labels,)
        labels = tuple(NULL if pd.isna(each) else str(each) for each in labels)
        listed[labels] = (row["records"], row["labels"])
        assert len({each[row["column"]] for each in classes[labels]}) == row["labels"]
    assert listed == risky
    assert list(listed.values()) == sorted(listed.values(), key=lambda pair: (-pair[0], pair[1]))
    assert report.sizes["classes"].to_dict() == dict(sorted(Counter(sizes).items()))
    assert report.sizes["records"].sum() == len(records)


def test_declared_roles_are_the_defaults_and_one_column_needs_no_name():
    records = [(0, "a", "flu", 5, 1), (0, "a", "no", 5, 1), (1, None, None, 40, 3)]
    private = protect(records)
    by_default, named = private.dp.anonymity(), private.dp.anonymity(["age", "town"], ["ill", "pay", "level"])
    for (_, default), (_, other) in zip(by_default.tables(), named.tables(), strict=True):
        pd.testing.assert_frame_equal(default, other)
    alone = private.dp.anonymity("age", "ill")
    assert alone.risky.columns.tolist() == ["records", "labels"]
    assert alone.diversity.index.tolist() == ["ill"]
    assert private.dp.anonymity(top=1).risky.shape[0] == 1


def test_a_null_is_a_label_of_both_sides():
    report = protect([(0, None, None, 5, 1)] * 3 + [(0, "a", "no", 5, 1)] * 2).dp.anonymity("town", "ill")
    assert report.k == 2
    assert report.summary.loc["all", "classes"] == 2
    assert report.diversity.loc["ill"].tolist() == [1, 1.0, pytest.approx(0.6), "equal"]
    assert report.risky.index.isna().tolist() == [True, False]


def test_a_single_class_is_as_close_to_all_records_as_can_be():
    records = [(0, "a", "flu", 5, 1), (0, "a", "no", 15, 2), (0, "a", "gout", 30, 3)]
    report = protect(records).dp.anonymity()
    assert report.k == 3
    assert report.diversity["t"].tolist() == [0, 0, 0]
    assert report.diversity["distinct l"].tolist() == [3, 3, 3]
    assert report.diversity["entropy l"].tolist() == pytest.approx([3, 3, 3])
    assert report.sizes.to_dict("index") == {3: {"classes": 1, "records": 3}}
    assert protect(records * 2).dp.anonymity().risky.empty


def test_a_declared_order_of_labels_counts_where_it_is_named():
    """Half of the records move by one of two ranks."""
    records = [(0, "a", "flu", 5, 1)] * 2 + [(1, "a", "gout", 5, 1)] * 2
    private = protect(records)
    assert private.dp.anonymity("age", "ill").diversity.loc["ill"].tolist()[2:] == [0.5, "equal"]
    ordered = private.dp.anonymity("age", "ill", ordered="ill").diversity.loc["ill"].tolist()[2:]
    assert ordered == [0.25, "ordered"]


def test_an_empty_table_has_no_class():
    with pytest.raises(ParameterError, match="no record"):
        protect([]).dp.anonymity()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"top": 0}, ParameterError, "'top'"),
        ({"min_records": 0}, ParameterError, "'min_records'"),
        ({"min_labels": 1.5}, ParameterError, "'min_labels'"),
        ({"ordered": "age"}, ParameterError, "'ordered' must name columns of 'sensitive'"),
        ({"ordered": "ilt"}, DeclarationError, "not declared"),
        ({"by": "ill", "sensitive": "ill"}, ParameterError, "both in 'by' and in 'sensitive'"),
        ({"by": "person"}, DeclarationError, "identifier"),
        ({"by": "score"}, DeclarationError, "needs the cells"),
    ],
)
def test_refusals_hold_no_cell(arguments, error, words):
    private = protect([(2, "b", "gout", 19.5, 3)])
    with pytest.raises(error, match=words) as refused:
        private.dp.anonymity(**arguments)
    assert "19.5" not in str(refused.value)
    assert len(private.dp.budget.entries) == 0


def test_everything_is_marked_and_stored_nowhere():
    private = protect([(0, "a", "flu", 5, 1)])
    report = private.dp.anonymity()
    assert isinstance(report.k, Confidential)
    assert repr(report).startswith("CONFIDENTIAL")
    assert "k = 1" in repr(report)
    assert report._repr_html_().count("pdp-confidential") == 1
    for _, frame in report.tables():
        assert frame.attrs["dp"].keys() == {"confidential"}
        assert frame.columns.name == "confidential"
    assert private.dp.budget.left == (1, 0)
    assert private.dp.budget.entries.empty
