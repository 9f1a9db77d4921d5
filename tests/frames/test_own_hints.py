"""Hints of refused calls (`examples`), on frames without the names of the examples: each runs as written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.declaration.timeline import Timeline
from pdprivacy.errors import NotProtectedError, ParameterError, PrivacyError
from pdprivacy.frames.frame import ROW_STEPS
from pdprivacy.frames.refused_steps import REFUSED
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.releases.grouped import GroupBy
from pdprivacy.releases.planning import GroupPlans

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RENT = Column("rent", "float", lower=400, upper=900, bins=(400, 600, 900))
FLOOR = Column("floor", "integer", lower=-2, upper=9)
CITY = Column("city", "category", categories=("left", "right"))
BUILT = Column("built", "integer", lower=0, upper=900, timeline=Timeline(18_000, "D"))
FLAG = Column("flag", "boolean")
ODD = (
    Column("my rent", "float", lower=40.5, upper=90.25, bins=(40.5, 60, 90.25)),
    Column(5, "integer", lower=-9, upper=-2),
    Column('a "b"', "category", categories=('c"', 7, "d\\")),
    Column(("x", 1), "boolean"),
)
CELLS = {"float": [450.5, 60.0], "integer": [3, -3], "boolean": [True, False]}
DOMAINS = {
    "plain": (CITY, RENT, FLOOR, FLAG, BUILT),
    "odd": ODD,
    "text with quotes first": (*ODD[2:], Column("class", "integer", lower=0, upper=9)),
    "labels": (CITY, FLAG, Column("id", "integer", lower=0, upper=9, role="identifier")),
    "one label": (Column("city", "category", categories=("left",)), FLAG),
    "numbers": (FLOOR, Column("free", "float")),
    "no cells": (Column("gap", "float", lower=0, upper=9), CITY),
    "dates": (BUILT,),
}
FOREIGN = r"\b(age|income|region|health|gain|tenure|north|yes)\b|[\"'](when|w)[\"']"
WRONG = ["()", "(nothing=1)", "(3)", "([])", "([[1]], epsilon=1)", "(LABEL, LABEL, LABEL, LABEL, epsilon=1)"]
SPECIAL = [
    "private.dp[LABEL]",
    "private.dp.count(epsilon=1, weights=[1])",
    "private.dp.crosstab(LABEL, LABEL, epsilon=1)",
    "private.dp.agg({LABEL: 'mean'}, LABEL, epsilon=1)",
    "private.dp.pivot_table(LABEL, epsilon=1)",
    "private.dp.ols(LABEL, None, epsilon=1)",
    "private.dp.ols(LABEL, ('a', 'b'), epsilon=1)",
    "private.dp.partition([LABEL, LAST], epsilon=1)",
    "private.dp.repeated_risk(3)",
    "private.dp.plan_releases(3)",
    "private.dp.plan_releases([3])",
    "private.dp.plan_releases([('mean', {'epsilon': 1, 'nothing': 1})])",
    "private.dp.utility(epsilon=1)",
    "private.dp.groupby(LABEL, freq='M')",
    "private.dp.groupby(pd.Grouper(key=LABEL))",
    "private.dp.groupby(LABEL)[LABEL].count(epsilon=1)",
    "private.dp.groupby(LABEL).quantile(LAST, weights=LAST, epsilon=1)",
    "len(private.dp.groupby(LABEL))",
    "private.dp.mean(LAST, bounds=(0, 1), bounding='clamp', epsilon=1)",
    "private.dp.quantile(0.5, epsilon=1)",
    "private.query(3)",
    "private.query('rent > @limit')",
    "private.query('rent > 1 & floor > 2')",
    "private.clip({})",
    "private.clip('3')",
    "private.fillna([1])",
    "private.cut(LAST)",
    "private.cut(LAST, 3)",
    "private.cut(LAST, [0, 1, 2], labels=3)",
    "private.recode(LABEL, 3)",
    "private.rename(3)",
    "private.assign(x=private[LABEL] + 1)",
    "private.assign(x=other[LABEL])",
    "private[LABEL] == other[LABEL]",
    "private[LABEL] & 3",
    "private[LABEL] == np.int64(3)",
    "private[LABEL].isin(3)",
    "private[LABEL].mean()",
    "private[LABEL].dp",
    "private[LABEL].nothing",
    "hash(private[LABEL])",
    "bool(private[LABEL])",
    "list(private[LABEL])",
    "np.asarray(private[LABEL])",
    "1 in private[LABEL]",
    "private.__setitem__(LABEL, 1)",
    "private[1:2]",
    "private[[True]]",
    "private.nothing",
    "private.dp.nothing",
    "private.plot()",
    "private.round(1)",
    "private[LABEL].astype('float64')",
    "private.dp.compare_sampling('kmeans', LABEL)",
    "private.dp.plan_releases([('meann', LABEL, {'epsilon': 1})])",
    "private.dp.agg(['mean', 'nope'], epsilon=1)",
    "private.dp.pivot_table(LAST, LABEL, aggfunc='median', epsilon=1)",
    "private.dp.marginals(epsilon=1, order=0)",
    "private.dp.budget.report()",
    "private.assign(x=3)",
    "private.assign(x='1 + 1', bounds={'y': 5})",
    "private.assign(x='nope + 1')",
    "private.select([LAST])[private[LABEL].notna()]",
    "private.select([LAST]).assign(x=private[LABEL])",
    "private[other[LABEL].notna()]",
    "private == 3",
    "private - private",
    "pd.DataFrame()[private[LABEL].notna()]",
    "len(private)",
    "list(private)",
    "np.asarray(private)",
]


def protected(columns: tuple[Column, ...], **options: Any) -> Any:
    cells = {
        column.name: np.clip(CELLS["integer"], column.lower, column.upper)
        if column.kind in ("integer", "float") and column.lower is not None
        else (list(column.categories or CELLS[column.kind]) * 2)[:2]
        for column in columns
    }
    frame = pd.DataFrame(cells)
    for column in columns:
        if column.timeline is not None:
            frame[column.name] = pd.to_datetime(["2019-05-01", "2020-02-29"])
    frame["person"] = [1, 2]
    return pdprivacy.protect(frame, Domain(columns), epsilon=10**6, delta=0.01, **options)


def refused_calls(private: Any) -> Iterator[str]:
    """Calls of every public method with arguments that most do not take, and of names that are refused."""
    owners = {
        "private": ROW_STEPS,
        "private.dp": dir(type(private.dp)),
        "private.dp.plan": dir(type(private.dp.plan)),
        "private.dp.groupby(LABEL)": dir(GroupBy),
        "private.dp.plan.groupby(LABEL)": dir(GroupPlans),
        "batch": dir(private.dp.batch()),
    }
    for owner, names in owners.items():
        for name in [name for name in names if not name.startswith("_")]:
            yield from (f"{owner}.{name}{arguments}" for arguments in WRONG)
        yield from (f"{owner}.{name}" for name in (*REFUSED, "nothing", "average", "means"))
    yield from SPECIAL


def calls_in(hint: str) -> Iterator[str]:
    """The whole calls that a text names, without those that leave something out."""
    for start in (match.start() for match in re.finditer(r"\bprivate\b", hint)):
        for end in range(len(hint), start, -1):
            if hint[end - 1] in ")]":
                try:
                    node = ast.parse(hint[start:end], mode="eval").body
                except SyntaxError:
                    continue
                if isinstance(node, ast.BoolOp):
                    continue
                if "..." not in hint[start:end]:
                    yield hint[start:end]
                break


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("case", DOMAINS)
def test_hints_name_declared_columns_in_calls_that_run(case):
    private = protected(DOMAINS[case])
    labels = list(private.columns)
    names = {"pd": pd, "np": np, "other": protected(DOMAINS[case]), "LABEL": labels[0], "LAST": labels[-1]}
    names["persons"] = protected(DOMAINS[case], unit="person", max_rows=2)
    hints: dict[str, str] = {}
    for call in refused_calls(private):
        with private.dp.batch() as batch:
            try:
                eval(call, {**names, "private": private, "batch": batch})
            except PrivacyError as error:
                hints.setdefault(error.hint or "", call)
            except (TypeError, AttributeError):  # of Python
                pass
    for hint, call in hints.items():
        said = f"{call} -> {hint}"
        assert not re.search(FOREIGN, hint), said
        for valid in calls_in(hint):
            if ".per_unit(" in valid:
                run = valid.replace("private.", "persons.")
            elif re.fullmatch(r"private\.dp\.compare_\w+\(.*\)", valid) and "repetitions" not in valid:
                run = valid[:-1] + ", repetitions=2)"  # not 200
            else:
                run = valid
            try:
                eval(run, {**names, "private": private})
            except Exception as error:
                raise AssertionError(f"{said}: {error}") from None
    assert len(hints) > 30


NAMED = {
    "private.dp.mean(RENT, epsilom=1)": "unexpected keyword argument 'epsilom'",
    "private.dp.plan.mean(RENT, epsilon=1, row=6)": "unexpected keyword argument 'row'",
    "pdprivacy.protect(frame, DOMAIN, epsilon=1, max_row=2)": "unexpected keyword argument 'max_row'",
    "private.dp.plan.groupby()": "'groupby' needs 'by'",
    "private.dp.budget.report()": "'report' needs 'delta'",
    "private.dp.compare_sampling('kmeans', 'rent')": "'kmeans' needs 'k'",
    "private.dp.agg({'rent': ['mean', 'nope']}, epsilon=1)": "'func' must be one of .* [(]got 'nope'[)]",
    "private.dp.pivot_table('rent', 'city', aggfunc='median', epsilon=1)": "'aggfunc' must be .* 'median'",
    "private.dp.marginals(['city', 'free'], epsilon=1)": "'marginals' needs the cells of column 'free'",
    "private.assign(x=3)": "'x' must be an expression of columns",
    "private.select(['city'])[private['rent'] > 500]": "'rent' .* a step dropped or renamed it",
    "private['rent'].round(1.5)": "are not a whole constant",
    "private.assign(x=np.sin(private['rent']))": "'np.sin' of a protected column is not offered",
    "private.assign(x=np.sqrt)": "'np.sqrt' reads cells",
    "private.assign(x='log(rent - rent)')": "'log' needs numbers above 0",
    "private['rent'].astype('float64')": "has no attribute 'astype'",
    "private.dp.mean('rent', mechanism='gaussian', epsilon=1)": "'delta' must be positive",
}


@pytest.mark.parametrize("call", NAMED)
def test_the_argument_that_is_wrong_is_named_and_the_hint_works(call):
    columns = (CITY, RENT, FLOOR, FLAG, Column("free", "float"))
    cells = {"city": ["left", "right"], "rent": [450.5, 600.0], "floor": 3, "flag": True, "free": 1.0}
    frame = pd.DataFrame(cells)
    private = pdprivacy.protect(frame, Domain(columns), epsilon=100)
    private.dp.count(epsilon=1)  # a budget without charges has no report
    names = {"pd": pd, "np": np, "pdprivacy": pdprivacy, "private": private, "frame": frame}
    names["DOMAIN"] = Domain(columns)
    with pytest.raises(PrivacyError, match=NAMED[call]) as caught:
        eval(call, {**names, "RENT": "rent"})
    assert not re.search(FOREIGN, caught.value.hint)
    for valid in calls_in(caught.value.hint):
        eval(valid, names)


def test_a_plan_does_not_ask_to_be_protected():
    plan = protected((RENT,)).dp.plan.mean("rent", epsilon=[0.1, 1], rows=100)
    assert "protect" not in repr(plan.dp)
    assert "plan.dp.plot()" in repr(plan.dp)


def test_a_frame_that_is_not_protected_is_told_with_the_names_of_the_examples():
    with pytest.raises(NotProtectedError) as caught:
        pd.DataFrame({"rent": [1]}).dp.mean("rent", epsilon=1)
    assert EXAMPLES["mean"] in caught.value.hint


def test_the_public_number_of_rows_is_where_the_hint_says():
    frame = pd.DataFrame({"rent": [450.5, 600.0]})
    private = pdprivacy.protect(frame, Domain((RENT,)), epsilon=1, neighbors="replace_one")
    with pytest.raises(ParameterError, match="number of rows is public") as caught:
        private.dp.count(epsilon=1)
    assert caught.value.hint == "print(private) shows it."
    assert re.search(r"rows +2 \(public\)", str(private))
