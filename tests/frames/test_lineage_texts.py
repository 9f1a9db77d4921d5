"""Steps and conditions on different columns never have the same text."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Column, Domain
from pdprivacy.frames import ProtectedFrame

LABELS = [
    1, "1", "'1'", (1,), ("1",), "(1,)", "True", datetime.date(2020, 1, 2), "2020-01-02",
    pd.Timestamp("2020-01-02"), "datetime.date(2020, 1, 2)", "private[1]", "[1]", "private['`']", "`", "``",
    "a", "`a`", "a b", "b c", "a b` + `b c", "fi", "ﬁ", "class", "", "a\nb", "a\\nb",
]  # fmt: skip


def frame_of(labels: list[Any]) -> pd.DataFrame:
    cells = np.random.default_rng(1).integers(1, 9, (50, len(labels)))
    return pd.DataFrame(cells, columns=pd.Index(labels, dtype=object, tupleize_cols=False))


def protected(labels: list[Any]) -> ProtectedFrame:
    domain = Domain(tuple(Column(label, "integer", lower=0, upper=9) for label in labels))
    return frame_of(labels).dp.protect(domain, epsilon=1)


STEPS: dict[str, Callable[[ProtectedFrame, Any], ProtectedFrame]] = {
    "a condition": lambda private, label: private[private[label] != 3],
    "arithmetic": lambda private, label: private.assign(new=private[label] % 4),
    "a list of columns": lambda private, label: private.select([label]),
    "bounds": lambda private, label: private.clip(upper={label: 4}),
    "nulls": lambda private, label: private.dropna(subset=[label]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_on_another_column_has_another_text(step):
    apply = STEPS[step]
    for order in (LABELS, LABELS[::-1]):
        private = protected(order)
        texts = {apply(private, label).dp.lineage["step"].iloc[-1] for label in LABELS}
        assert len(texts) == len(LABELS)


def test_a_column_has_one_text_whatever_is_beside_it():
    for first, second in combinations(LABELS[:12], 2):
        texts = {str(protected(order)[first] != 3) for order in ([first, second], [second, first], [first])}
        assert len(texts) == 1


def test_a_condition_as_text_is_the_condition_on_the_column_of_this_string():
    private = protected(LABELS)
    for label in LABELS:
        if not isinstance(label, str) or "`" in label:
            continue
        symbolic, text = private[private[label] != 3], private.query(f"`{label}` != 3")
        assert text.dp.domain == symbolic.dp.domain
        if str(private[label]).startswith("`"):
            assert text.dp.lineage.equals(symbolic.dp.lineage)


def test_parts_by_another_column_have_other_texts():
    domain = Domain(tuple(Column(label, "category", categories=("x", "y")) for label in (1, "1", "1 is 'x'")))
    frame = pd.DataFrame([["x", "y", "x"]] * 9, columns=pd.Index([1, "1", "1 is 'x'"], dtype=object))
    private = frame.dp.protect(domain, epsilon=3)
    texts = {
        part.dp.lineage["step"].iloc[-1]
        for label in domain.names
        for part in private.dp.partition(label, epsilon=1).values()
    }
    assert len(texts) == 6


def test_a_long_list_of_columns_is_written_whole():
    labels = [f"column {number}" for number in range(150)]
    private = protected(labels)
    texts = {
        tuple(private.dropna(subset=index).clip(upper=4, columns=index).dp.lineage["step"])
        for index in (pd.Index(labels).drop(label) for label in ("column 70", "column 71"))
    }
    assert len(texts) == 2


def test_a_condition_on_equal_sets_has_one_text():
    column = protected(["a"])["a"]
    sets = {0, 8}, {8, 0}
    assert list(sets[0]) != list(sets[1])  # as the sets of one text in two processes
    assert len({str(column.isin(values)) for values in sets}) == 1


UNITS = [7, "7", "int 7", "str 'int 7'", 7.5, "float 7.5", (1,), "(1,)", "tuple (1,)", "a\nb", "a\\nb"]
UNITS += [datetime.date(2020, 1, 2), "date datetime.date(2020, 1, 2)", pd.Timestamp("2020-01-02")]


def test_units_by_another_column_have_other_names():
    domain = Domain((Column("age", "integer", lower=0, upper=99),))
    frame = frame_of(["age", *UNITS])
    names = {str(frame.dp.protect(domain, epsilon=1, unit=unit, max_rows=1).dp.budget.unit) for unit in UNITS}
    assert len(names) == len(UNITS)
    for equal in (np.int64(7), np.str_("7")):
        assert str(frame.dp.protect(domain, epsilon=1, unit=equal, max_rows=1).dp.budget.unit) in names
