"""Releases asked for in one block: charged as one, read in one pass, and the same numbers as one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdprivacy
from pdprivacy.core.engines import PandasEngine
from pdprivacy.errors import AlreadyCharged, ArgumentError, BudgetExceeded, DeclarationError, ParameterError

CALLS = [
    ("mean", (["age", "income"],), {"epsilon": 0.5, "rng": 1}),
    ("std", ("age",), {"epsilon": 0.25, "rng": 2, "bounding": "clamp"}),
    ("count", (), {"epsilon": 0.25, "rng": 3}),
    ("crosstab", ("region", "health"), {"epsilon": 1, "rng": 4, "margins": True}),
    ("histogram", ("income", 5), {"epsilon": 0.5, "rng": 5}),
    ("proportion", ("health", "yes"), {"epsilon": 0.5, "rng": 6}),
    ("cov", (["age", "family"],), {"epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian", "rng": 7}),
    ("pooled_var", ("family",), {"by": "region", "epsilon": 0.5, "rng": 8}),
    ("mode", ("region",), {"epsilon": 0.5, "rng": 9}),
    ("median", ("income",), {"epsilon": 0.5, "rng": 10}),
]
ALL = (5, 1e-6)


def same(first, second):
    compare = (
        pd.testing.assert_series_equal if isinstance(first, pd.Series) else pd.testing.assert_frame_equal
    )
    compare(first, second)


def asked(private, calls=CALLS, **options):
    with private.dp.batch(**options) as batch:
        return [getattr(batch, name)(*args, **keywords) for name, args, keywords in calls]


def test_a_batch_releases_what_its_calls_would_and_charges_their_sum_at_once(survey, schema):
    first, second = (survey.dp.protect(schema, epsilon=100, delta=1e-3) for _ in range(2))
    pending = asked(first)
    for wait, (name, args, keywords) in zip(pending, CALLS, strict=True):
        alone = getattr(second.dp, name)(*args, **keywords)
        same(wait.result, alone)
        assert wait.result.dp.metadata.epsilon == alone.dp.metadata.epsilon
    assert first.dp.budget.spent == second.dp.budget.spent == ALL
    assert (len(first.dp.budget.entries), len(second.dp.budget.entries)) == (1, len(CALLS))


def test_nothing_is_charged_within_the_block_or_after_an_error_in_it(private):
    with private.dp.batch() as batch:
        pending = batch.mean("age", epsilon=1)
        assert private.dp.budget.spent == (0, 0)
        with pytest.raises(ParameterError, match="has not released 'mean of age' yet"):
            pending.result  # noqa: B018
        assert repr(pending) == "pending: mean of age"
    assert private.dp.budget.spent == (1, 0)
    assert repr(pending) == "released: mean of age"
    with pytest.raises(ZeroDivisionError), private.dp.batch() as batch:  # noqa: PT012
        pending = batch.mean("age", epsilon=1)
        raise ZeroDivisionError
    with pytest.raises(ParameterError, match="not released"):
        pending.result  # noqa: B018
    with private.dp.batch():
        pass
    assert private.dp.budget.spent == (1, 0)


def test_an_invalid_call_is_refused_where_it_stands_and_the_others_are_released(private):
    with private.dp.batch() as batch:
        batch.count(epsilon=1)
        with pytest.raises(DeclarationError):
            batch.mean("visits", epsilon=1)
        with pytest.raises(ParameterError, match="'epsilon' must be positive"):
            batch.mean("age", epsilon=-1)
        with pytest.raises(ArgumentError, match="'mean' needs 'epsilon'"):
            batch.mean("age")
        with pytest.raises(AttributeError, match="A batch has no 'groupby'"):
            batch.groupby("region")
    assert private.dp.budget.spent == (1, 0)


def test_a_batch_beyond_the_budget_releases_nothing(survey, schema):
    private = survey.dp.protect(schema, epsilon=1)
    with pytest.raises(BudgetExceeded), private.dp.batch() as batch:
        pending = [batch.mean("age", epsilon=0.75), batch.count(epsilon=0.5)]
    assert private.dp.budget.spent == (0, 0)
    for wait in pending:
        with pytest.raises(ParameterError, match="not released"):
            wait.result  # noqa: B018


def test_a_batch_is_used_once_and_only_while_it_is_open(private):
    batch = private.dp.batch()
    with pytest.raises(ParameterError, match="not open"):
        batch.count(epsilon=1)
    with batch:
        batch.count(epsilon=1)
    with pytest.raises(ParameterError, match="not open"):
        batch.count(epsilon=1)
    with pytest.raises(ParameterError, match="used once"), batch:
        pass
    assert private.dp.budget.spent == (1, 0)


def test_a_block_that_is_ended_by_hand_does_not_end_twice(private):
    with private.dp.batch() as batch:
        pending = batch.count(epsilon=1)
        batch.__exit__(None, None, None)
        first = pending.result
    assert pending.result is first
    assert private.dp.budget.spent == (1, 0)
    with pytest.raises(ParameterError, match="used once"), batch:
        pass


def test_a_batch_tried_again_is_not_charged_again(private):
    asked(private, release_id="monday")
    with pytest.raises(AlreadyCharged):
        asked(private, release_id="monday")
    assert private.dp.budget.spent == ALL


def test_a_batch_can_cost_less_than_its_releases_one_by_one(survey, schema):
    private = survey.dp.protect(schema, epsilon=100, delta=1e-3)
    with private.dp.batch(delta=1e-6, accounting="optimal") as batch:
        for _ in range(60):
            batch.count(epsilon=0.1)
        plan = batch.plan()
    assert plan.apart.epsilon == 6
    assert private.dp.budget.spent[0] == float(plan.cost.epsilon) < 4


def test_the_releases_are_offered_by_name(private):
    assert {"mean", "crosstab", "quantile"} <= set(dir(private.dp.batch()))


# ---------------------------------------------------------------- engines


def lazily_counted(survey):
    """A lazy frame of Polars, and the rows that were computed of it."""
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    rows: list[int] = []

    def counted(frame):
        rows.append(len(frame))
        return frame

    frame = pl.from_pandas(survey)
    return frame.lazy().map_batches(counted, schema=frame.schema), rows


def in_partitions_counted(survey):
    """A frame of Dask, and the rows that were computed of it."""
    dask = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    rows: list[int] = []

    def counted(part):
        rows.append(len(part))
        return part

    frame = dask.from_pandas(survey, npartitions=3)
    return frame.map_partitions(counted, meta=survey.iloc[:0]), rows


def streamed_and_counted(survey):
    """A relation of DuckDB, and the rows that were computed of it."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    rows: list[int] = []

    def counted(position: int) -> int:
        rows.append(1)
        return position

    connection = duckdb.connect()
    connection.create_function("counted", counted, ["BIGINT"], "BIGINT", side_effects=True)
    frame = connection.from_df(survey.assign(person=survey["person"].astype(np.int64)))
    names = ", ".join(f'"{name}"' for name in survey if name != "age")
    return frame.project(f"{names}, counted(age) as age"), rows


MADE = {"Polars": lazily_counted, "Dask": in_partitions_counted, "DuckDB": streamed_and_counted}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("engine", MADE)
def test_a_batch_goes_once_through_the_rows_of_another_engine(survey, schema, engine):
    frame, rows = MADE[engine](survey)
    reads = CALLS[:-1]  # a median asks by itself
    elsewhere = pdprivacy.protect(frame, pdprivacy.read_schema(schema), epsilon=100, delta=1e-3)
    rows.clear()
    pending = asked(elsewhere, reads)
    assert sum(rows) == len(survey)
    reference = survey.dp.protect(schema, epsilon=100, delta=1e-3)
    alone = asked(reference, reads)
    for batched, other in zip(pending, alone, strict=True):
        same(batched.result, other.result)
    rows.clear()
    tables = elsewhere.dp.marginals(["region", "health", "age"], epsilon=1, rng=1)
    assert sum(rows) == len(survey)
    for key, table in reference.dp.marginals(["region", "health", "age"], epsilon=1, rng=1).items():
        same(tables[key], table)


# ---------------------------------------------------------------- marginals


@pytest.mark.parametrize("order", [1, 2, 3])
def test_marginals_are_the_tables_of_all_choices_of_columns(survey, schema, order):
    private = survey.dp.protect(schema, epsilon=10**6)
    names = ["region", "health", "member"]
    tables = private.dp.marginals(names, order=order, epsilon=10**5, rng=1)
    assert list(tables) == list(combinations(names, order))
    for key, table in tables.items():
        columns = [private.dp.domain[name] for name in key]
        exact = PandasEngine(survey).table(columns, "crosstab")
        assert table.tolist() == exact.tolist()  # noise of scale 1e-4 and below rounds to none
        assert table.dp.metadata.epsilon == pytest.approx(10**5 / len(tables))
    assert private.dp.budget.spent == (10**5, 0)


def test_marginals_are_of_the_columns_with_cells_and_share_epsilon_and_delta(private):
    tables = private.dp.marginals(epsilon="1/3", delta=1e-6, mechanism="gaussian")
    with_cells = ["age", "region", "health", "family", "member"]
    assert list(tables) == list(combinations(with_cells, 2))
    assert private.dp.budget.spent == (1 / 3, 1e-6)


def test_marginals_of_one_seed_have_noise_of_their_own():
    """The columns are equal: the same noise twice would make equal tables."""
    flag = pa.Column(bool, metadata={"dp": {}})
    frame = pd.DataFrame({"first": [True] * 40, "second": [True] * 40})
    private = frame.dp.protect(pa.DataFrameSchema(dict.fromkeys(frame, flag)), epsilon=100)
    released = [private.dp.marginals(order=1, epsilon="0.1", rng=seed) for seed in range(8)]
    assert any(tables[("first",)].tolist() != tables[("second",)].tolist() for tables in released)


@pytest.mark.parametrize("order", [0, 4, True, 1.0, None])
def test_an_order_out_of_range_is_refused_for_free(private, order):
    with pytest.raises(ParameterError, match="'order' must be a whole number from 1 to 3"):
        private.dp.marginals(["region", "health", "member"], order=order, epsilon=1)
    assert private.dp.budget.spent == (0, 0)
