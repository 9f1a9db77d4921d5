"""Selections by agg: the same releases as by their own names, and hints in place of mixtures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Column, Domain
from pdprivacy.errors import ParameterError
from pdprivacy.releases.moments import SELECTIONS

DOMAIN = Domain(
    (
        Column("age", "integer", lower=0, upper=99),
        Column("income", "float", lower=0, upper=1000, nullable=True),
        Column("region", "category", categories=("n", "s")),
    )
)
N = np.arange(500)
FRAME = pd.DataFrame({"age": N % 80 + 10, "income": N % 450 + 0.5, "region": np.where(N % 3, "n", "s")})
COST = {"epsilon": 0.5, "rng": 7}


def protected():
    return pdprivacy.protect(FRAME, DOMAIN, epsilon=100)


def both(by_agg, by_name):
    """Two releases of equal frames, equal in numbers, labels and metadata but for the budget's name."""
    first, second = by_agg(protected().dp), by_name(protected().dp)
    assert type(first) is type(second)
    np.testing.assert_array_equal(first.to_numpy(), second.to_numpy())
    pd.testing.assert_index_equal(first.index, second.index)
    for name in ("statistic", "epsilon", "scale", "error", "mechanism"):
        assert getattr(first.dp.metadata, name) == getattr(second.dp.metadata, name)


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_by_agg_is_the_release_of_its_name(name):
    columns = ["region"] if name == "nunique" else ["age", "income"]
    each = dict.fromkeys(columns, name)
    both(lambda dp: dp.agg(name, columns, **COST), lambda dp: getattr(dp, name)(columns, **COST))
    both(lambda dp: dp.agg(each, **COST), lambda dp: getattr(dp, name)(columns, **COST))
    if name != "nunique":
        both(
            lambda dp: dp.groupby("region").agg(name, columns, **COST),
            lambda dp: getattr(dp.groupby("region"), name)(columns, **COST),
        )
        both(
            lambda dp: dp.groupby("region")["age"].agg(name, **COST),
            lambda dp: getattr(dp.groupby("region")["age"], name)(**COST),
        )


@pytest.mark.parametrize("names", [["min", "median", "max"], ["max", "min"], ["median"]])
def test_a_list_of_ranks_is_one_release_of_quantiles(names):
    q = [{"min": 0, "median": 0.5, "max": 1}[name] for name in names]
    private, other = protected(), protected()
    made = private.dp.agg(names, ["age", "income"], **COST)
    theirs = other.dp.quantile(["age", "income"], q, **COST)
    assert made.index.tolist() == names
    np.testing.assert_array_equal(made.to_numpy(), theirs.to_numpy())
    assert made.dp.metadata.error == theirs.dp.metadata.error
    assert private.dp.budget.spent == other.dp.budget.spent
    assert made.dp.verify()
    assert made.loc[names[::-1]].dp.changes == ("" if len(names) == 1 else "in another order")
    with pytest.raises(ParameterError, match="'func' has a statistic twice"):
        private.dp.agg(["min", "min"], "age", **COST)


@pytest.mark.parametrize(
    "call",
    [
        lambda dp: dp.agg(["mean", "median"], "age", epsilon=0.1),
        lambda dp: dp.agg({"age": "mean", "income": "median"}, epsilon=0.1),
        lambda dp: dp.groupby("region").agg(["mean", "max"], "age", epsilon=0.1),
        lambda dp: dp.groupby("region").agg({"age": "mean", "income": "min"}, epsilon=0.1),
        lambda dp: dp.pivot_table("age", index="region", aggfunc="median", epsilon=0.1),
        lambda dp: dp.agg("median", "age", epsilon=0.1, bounding="clamp"),
        lambda dp: dp.plan.agg("median", "age", epsilon=0.1, rows=500),
    ],
)
def test_the_hint_of_a_mixture_works(call):
    private = protected()
    with pytest.raises(ParameterError) as error:
        call(private.dp)
    assert private.dp.budget.spent[0] == 0
    assert eval(error.value.hint, {"private": private}) is not None
