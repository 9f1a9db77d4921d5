"""The disclosure risk of released counts against a simulated reader of the released table."""

from __future__ import annotations

import math
from contextlib import nullcontext as nothing

import numpy as np
import pandas as pd
import pytest

from pdprivacy import Column, Domain
from pdprivacy.errors import BoundingWarning
from pdprivacy.mechanism import Geometric, Laplace
from pdprivacy.risk import released_risk
from pdprivacy.risk.noise_sums import NoiseSum
from pdprivacy.risk.plausible_counts import plausible

REGIONS, LABELS, BINS = ("u", "v"), ("no", "yes"), (0, 10, 20, 30)
DOMAIN = Domain(
    (
        Column("a", "category", categories=REGIONS, role="quasi_identifier"),
        Column("s", "category", categories=LABELS, role="sensitive"),
        Column("n", "integer", lower=0, upper=30, bins=BINS, role="sensitive"),
        Column("free", "category", categories=("x", "y")),
        Column("one", "category", categories=("only",), role="sensitive"),
        Column("w", "float", lower=0, upper=2),
    )
)


def people(rows=100, seed=1):
    """A region decides the label, and says nothing of the number."""
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 2, rows)
    return pd.DataFrame(
        {
            "a": np.array(REGIONS)[region],
            "s": np.array(LABELS)[region],
            "n": rng.integers(1, 30, rows),
            "free": np.array(["x", "y"])[rng.integers(0, 2, rows)],
            "one": "only",
            "w": 1.0,
        }
    )


def private(rows=100, seed=1):
    return people(rows, seed).dp.protect(DOMAIN, epsilon=10**6)


def noise_like(mechanism, epsilon, shape, rng):
    if mechanism == "laplace":
        return rng.laplace(0, 1 / epsilon, shape)
    falls = 1 - np.exp(-epsilon)  # a difference of geometric variables
    return rng.geometric(falls, shape) - rng.geometric(falls, shape)


def positive(noisy, column):
    """Return the labels of one sensitive column that a reader holds for present, of (draws, cells, ...).

    First those of any positive count, then those of a positive sum.
    """
    others = tuple(axis for axis in range(2, noisy.ndim) if axis != column + 2)
    return (noisy >= 0.5).any(axis=others), noisy.sum(axis=others) >= 0.5


def disclosed(present, holders):
    """Return which cells show one label that some record has, of (draws, cells, labels)."""
    return (present.sum(axis=2) == 1) & (present & (holders > 0)).any(axis=2)


def simulated(released, sensitive, mechanism, epsilon, rng, draws=20_000):
    """Return the risks of each sensitive column in both readings, by simulation from released counts.

    ``released``: (cells, labels, ...). Records are drawn with the proportions of plausible counts, get
    noise, and are read.
    """
    noise = {"geometric": Geometric, "laplace": Laplace}[mechanism](epsilon=epsilon, sensitivity=1)
    risks = []
    for column in range(sensitive):
        rows = np.moveaxis(released, column + 1, 1).reshape(len(released), released.shape[column + 1], -1)
        several = NoiseSum(noise, rows.shape[2])
        joint = plausible(rows, noise.std, noise.cdf).reshape(-1, *rows.shape[1:])
        sums = plausible(rows.sum(axis=2), noise.std * math.sqrt(rows.shape[2]), several.cdf)
        sums = sums.reshape(-1, rows.shape[1], 1)
        for reading, counts in enumerate((joint, sums)):
            cells = counts.reshape(len(counts), -1)
            cells = cells[cells.any(axis=1)]
            sizes = cells.sum(axis=1)
            times = draws // len(cells) * 4
            drawn = np.stack(
                [rng.multinomial(n, row / n, times) for n, row in zip(sizes, cells, strict=True)], 1
            ).reshape(times, len(cells), *counts.shape[1:])
            terms = 1 if reading == 0 else rows.shape[2]
            noisy = drawn + noise_like(mechanism, epsilon, (*drawn.shape, terms), rng).sum(axis=-1)
            by_cell = disclosed(positive(noisy, 0)[0], drawn.sum(axis=3)).mean(axis=0)
            risks.append((column, by_cell.mean(), np.average(by_cell, weights=sizes)))
    return pd.DataFrame(risks, columns=["column", "by_cells", "by_records"]).groupby("column").max()


def test_a_reader_of_two_sensitive_columns_learns_what_the_table_states():
    rng = np.random.default_rng(2)
    exact = pd.crosstab(people()["a"], [people()["s"], pd.cut(people()["n"], BINS)]).to_numpy()
    cells = exact.reshape(1, 2, 2, 3).repeat(10_000, axis=0)
    noisy = cells + noise_like("geometric", 1, cells.shape, rng)
    holders = cells.sum(axis=3)
    by_count, by_sum = (disclosed(present, holders).mean() for present in positive(noisy, 0))
    assert by_count == pytest.approx(0.39, abs=0.015)
    assert by_sum == pytest.approx(0.60, abs=0.015)

    # the sum of the three counts of the wrong label is noise alone, and reads as empty where it is at most 0
    alone = np.exp(-np.abs(np.arange(-60, 61))) * (1 - np.exp(-1)) / (1 + np.exp(-1))
    three = np.convolve(alone, np.convolve(alone, alone))
    empty = three[: len(three) // 2 + 1].sum()
    assert by_sum == pytest.approx(empty, abs=0.015)

    frame = private()
    stated = [frame.dp.crosstab("a", ["s", "n"], epsilon=1).dp.metadata.dr_ha for _ in range(30)]
    assert np.mean([record["by_records"] for record in stated]) == pytest.approx(empty, abs=0.03)
    assert max(record["by_records"] for record in stated) == pytest.approx(empty, abs=1e-6)
    assert all(record["by_column"]["n"] < 0.01 for record in stated)
    assert float(frame.dp.dr_ha("a", ["s", "n"], 1)) == pytest.approx(0.731, abs=1e-3)  # of two tables


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
@pytest.mark.parametrize("sensitive", [["s"], ["s", "n"], ["n", "s"]])
def test_the_stated_risk_is_that_of_a_simulated_reader(mechanism, sensitive):
    frame, rng = private(12, seed=3), np.random.default_rng(4)
    table = frame.dp.crosstab("a", sensitive, epsilon=1, mechanism=mechanism)
    record = table.dp.metadata.dr_ha
    shape = [{"s": 2, "n": 3}[name] for name in sensitive]
    expected = simulated(table.to_numpy().reshape(2, *shape), len(sensitive), mechanism, 1, rng)
    assert record["by"] == ["a"]
    assert list(record["by_column"]) == sensitive
    assert list(record["by_column"].values()) == pytest.approx(expected["by_records"].tolist(), abs=0.015)
    assert record["by_records"] == max(record["by_column"].values())
    assert record["by_cells"] == pytest.approx(expected["by_cells"].max(), abs=0.015)


def test_counts_that_are_not_negative_are_read_one_by_one():
    frame = private()
    for options in ({"constraint": "nonnegative"}, {"bounding": "clamp"}):
        with pytest.warns(BoundingWarning) if "bounding" in options else nothing():
            records = [
                frame.dp.crosstab("a", ["s", "n"], epsilon=1, **options).dp.metadata.dr_ha for _ in range(15)
            ]
        # no sum of counts cancels noise then: 0.39 by simulation, 0.60 with negative counts
        assert 0.15 < np.mean([record["by_records"] for record in records]) < 0.40


def test_a_risk_that_cannot_be_estimated_is_a_reason():
    frame = private()
    for by, sensitive, options, reason in (
        ("a", "s", {"weights": "w"}, "weights"),
        ("a", "one", {}, "one label"),
        ("a", "s", {"epsilon": 1e-6}, "wide"),
    ):
        record = frame.dp.crosstab(by, sensitive, **{"epsilon": 1, **options}).dp.metadata.dr_ha
        assert record["by_cells"] is record["by_records"] is None
        assert reason in record["reason"]


def test_a_column_without_a_role_divides_the_cells():
    frame = private()
    record = frame.dp.crosstab(["a", "free"], "s", epsilon=1).dp.metadata.dr_ha
    assert record["by"] == ["a", "free"]
    assert 0.3 < record["by_records"] < 0.74


LAYOUTS = {
    "swapped": lambda dp: dp.crosstab("s", "a", epsilon=1),
    "margins": lambda dp: dp.crosstab("a", "s", epsilon=1, margins=True),
    "shares": lambda dp: dp.crosstab("a", "s", epsilon=1, normalize="index"),
    "labels": lambda dp: dp.value_counts(["s", "a"], epsilon=1),
    "shares of labels": lambda dp: dp.value_counts(["a", "s"], epsilon=1, normalize=True),
    "labels by group": lambda dp: dp.groupby("a").value_counts("s", epsilon=1),
    "groups": lambda dp: dp.groupby(["a", "s"]).count(epsilon=1),
    "aggregates": lambda dp: dp.groupby(["a", "s"]).agg("count", "w", epsilon=1, mechanism="geometric"),
    "pivot table": lambda dp: dp.pivot_table("w", "a", "s", "count", epsilon=1, mechanism="geometric"),
    "marginals": lambda dp: dp.marginals(["a", "s"], epsilon=1)["a", "s"],
    "plan": lambda dp: dp.plan_releases([("crosstab", "a", "s", {"epsilon": 1})]).release()[0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_counts_carries_the_risk_and_feeds_the_budget(layout):
    records = []
    for _ in range(12):
        frame = private()
        released = LAYOUTS[layout](frame.dp)
        record = released.dp.metadata.dr_ha
        assert (record["by"], list(record["by_column"])) == (["a"], ["s"])
        assert frame.dp.budget.entries["cumulative_dr_ha"].tolist() == [pytest.approx(record["by_records"])]
        records.append(record["by_records"])
    # q(0) of geometric noise is 0.731, which is the risk where no false count is positive
    assert max(records) <= 0.7311
    assert np.mean(records) > 0.55


def test_a_batch_counts_its_largest_risk():
    frame = private()
    with frame.dp.batch() as batch:
        coarse, fine = batch.value_counts(["a", "n"], epsilon=1), batch.crosstab("s", "a", epsilon=2)
    reached = [each.result.dp.metadata.dr_ha["at_total_loss"] for each in (coarse, fine)]
    assert frame.dp.budget.entries["cumulative_dr_ha"].tolist() == [max(reached)]


def test_the_display_tells_the_risk_of_the_table_from_that_of_all_tables():
    frame = private()
    alone = frame.dp.crosstab("a", "s", epsilon=0.5, rng=1)
    assert "of records in this table (dr_ha" in alone.dp._repr_html_() + repr(alone.dp)
    frame.dp.count(epsilon=5)
    table = frame.dp.crosstab("a", "s", epsilon=0.5, rng=1)
    record, reached = table.dp.metadata.dr_ha, frame.dp.budget.entries["cumulative_dr_ha"].iloc[-1]
    assert record["by_records"] < 0.7 < record["at_total_loss"] == reached
    shown = table.dp._repr_html_() + repr(table.dp)
    assert "at the total loss by then, which the budget counts" in shown
    assert "the largest of all tables so far, each at the total loss by then" in repr(frame.dp.budget)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_the_risk_of_a_hierarchy_is_near_that_of_a_simulated_reader(epsilon):
    frame = private(400)
    tables = [frame.dp.crosstab("a", "s", epsilon=epsilon, constraint="hierarchy") for _ in range(150)]
    read = np.stack([table.to_numpy() for table in tables])[..., np.newaxis]
    holders = pd.crosstab(people(400)["a"], people(400)["s"]).to_numpy()
    share = disclosed(positive(read, 0)[0], holders).mean()
    stated = np.mean([table.dp.metadata.dr_ha["by_records"] for table in tables[:20]])
    assert stated == pytest.approx(share, abs=0.2)


def test_several_releases_are_read_by_their_mean():
    frame, rng = private(), np.random.default_rng(6)
    noise = noise_like("geometric", 0.5, (20_000, 2, 2, 3, 4), rng).mean(axis=4)
    exact = pd.crosstab(people()["a"], [people()["s"], pd.cut(people()["n"], BINS)]).to_numpy()
    cells = exact.reshape(1, 2, 2, 3).repeat(20_000, axis=0)
    share = max(disclosed(present, cells.sum(axis=3)).mean() for present in positive(cells + noise, 0))
    records = [frame.dp.crosstab("a", ["s", "n"], epsilon=2, releases=4).dp.metadata.dr_ha for _ in range(12)]
    assert max(record["by_records"] for record in records) == pytest.approx(share, abs=0.05)
    with pytest.warns(BoundingWarning):
        bounded = frame.dp.crosstab("a", "s", epsilon=2, releases=2, bounding="clamp")
    assert "bounded" in bounded.dp.metadata.dr_ha["reason"]


def test_many_records_do_not_make_the_estimate_long():
    """Counts of 300 are not hidden by noise, so their risk is almost 0 and takes no work."""
    streets = tuple(f"street {number}" for number in range(300))
    labels = tuple(f"label {number}" for number in range(10))
    address = Column("street", "category", categories=streets, role="quasi_identifier")
    domain = Domain((address, Column("label", "category", categories=labels, role="sensitive")))
    cells = pd.MultiIndex.from_product([streets, labels], names=["street", "label"]).to_frame(index=False)
    counts = np.random.default_rng(1).poisson(300, len(cells))
    frame = cells.loc[cells.index.repeat(counts)].dp.protect(domain, epsilon=10)
    record = frame.dp.value_counts(["street", "label"], epsilon=1).dp.metadata.dr_ha
    assert record["by_records"] == pytest.approx(0, abs=1e-12)


def test_a_layout_beyond_its_work_has_the_reason(monkeypatch):
    monkeypatch.setattr(released_risk, "LITTLE_WORK", -1)  # uniform cells alone take no work
    monkeypatch.setattr(released_risk, "WORK_BY_CELL", 0)
    frame = private(12, seed=3)
    for table in (
        frame.dp.value_counts(["a", "s"], epsilon=1),
        frame.dp.crosstab("a", ["s", "n"], epsilon=1),
    ):
        record = table.dp.metadata.dr_ha
        assert record["by_records"] is None
        assert "takes longer than its release" in record["reason"]
    assert frame.dp.crosstab("a", "s", epsilon=1).dp.metadata.dr_ha["by_records"] > 0


# ---------------------------------------------------------------- every verb

OF_A_GROUP = {
    "agg": lambda dp: dp.agg({"n": ["count", "mean"]}, epsilon=1),
    "corr": lambda dp: dp.corr(["n", "w"], epsilon=1),
    "count": lambda dp: dp.count("n", epsilon=1),
    "cov": lambda dp: dp.cov(["n", "w"], epsilon=1),
    "crosstab": lambda dp: dp.crosstab("free", "s", epsilon=1),
    "describe": lambda dp: dp.describe("n", epsilon=1),
    "find_bounds": lambda dp: dp.find_bounds("n", epsilon=1),
    "find_labels": lambda dp: dp.find_labels("found", epsilon=1, delta=1e-6),
    "histogram": lambda dp: dp.histogram("n", epsilon=1),
    "kmeans": lambda dp: dp.kmeans(["n", "w"], 2, epsilon=1),
    "kmedian": lambda dp: dp.kmedian("n", 2, epsilon=1),
    "max": lambda dp: dp.max("n", epsilon=1),
    "mean": lambda dp: dp.mean("w", weights="n", epsilon=1),
    "median": lambda dp: dp.median("n", epsilon=1),
    "min": lambda dp: dp.min("n", epsilon=1),
    "mode": lambda dp: dp.mode("s", epsilon=1),
    "nunique": lambda dp: dp.nunique("s", epsilon=1),
    "ols": lambda dp: dp.ols("n", ["w"], epsilon=1),
    "pivot_table": lambda dp: dp.pivot_table(values="n", index="free", aggfunc="mean", epsilon=1),
    "pooled_cov": None,  # these two are of all groups together
    "pooled_var": None,
    "proportion": lambda dp: dp.proportion("s", "no", epsilon=1),
    "quantile": lambda dp: dp.quantile("n", q=[0.25, 0.5], epsilon=1),
    "std": lambda dp: dp.std("n", epsilon=1),
    "sum": lambda dp: dp.sum("n", epsilon=1),
    "top_k": lambda dp: dp.top_k("s", k=1, epsilon=1),
    "value_counts": lambda dp: dp.value_counts("free", weights="n", epsilon=1),
    "var": lambda dp: dp.var("n", epsilon=1),
}
BY_GROUP = {
    "agg": lambda groups: groups.agg({"n": ["count"]}, epsilon=1),
    "count": None,  # whole records, of no sensitive column
    "size": None,
    "mode": lambda groups: groups.mode("n", epsilon=1),
    "nunique": lambda groups: groups.nunique("n", epsilon=1),
    "proportion": lambda groups: groups.proportion("n", "[0, 10)", epsilon=1),
    "value_counts": lambda groups: groups.value_counts("n", epsilon=1),
}
"""Of the other verbs by group the argument is the column of numbers."""


def is_stated(released):
    record = released.dp.metadata.dr_ha
    return record is not None and ("reason" in record or 0 <= record["by_records"] <= 1)


@pytest.fixture(scope="module")
def grouped_frame():
    columns = (*DOMAIN.columns, Column("found", "category", private_labels=True, role="sensitive"))
    return people(400).assign(found="x").dp.protect(Domain(columns), epsilon=10**6, delta=0.1)


def test_every_verb_states_the_risk_or_why_it_is_not_known_of_a_group_and_a_sensitive_column(grouped_frame):
    from pdprivacy.releases import MODULES, RELEASING

    assert {*OF_A_GROUP} == {name for module in RELEASING for name in MODULES[module]}
    group = grouped_frame.query("a == 'u'")
    made = {name: call(group.dp) for name, call in OF_A_GROUP.items() if call is not None}
    assert {name: is_stated(released) for name, released in made.items()} == dict.fromkeys(made, True)
    reasons = [name for name, released in made.items() if "reason" in released.dp.metadata.dr_ha]
    assert 0 < len(reasons) < len(made)
    assert f"not known of {len(reasons)} charges" in repr(group.dp.budget)


@pytest.mark.parametrize("keys", ["a", "free", ["a", "s"]])
def test_every_verb_by_group_states_the_risk_of_a_sensitive_column_or_why_it_is_not_known(
    grouped_frame, keys
):
    from pdprivacy.releases.grouped import VERBS_BY_GROUP

    groups = grouped_frame.dp.groupby(keys)
    for name in VERBS_BY_GROUP:
        call = BY_GROUP.get(name, lambda groups, name=name: getattr(groups, name)("n", epsilon=1))
        if call is not None:
            assert is_stated(call(groups)), name


def test_numbers_made_of_a_sensitive_column_state_the_risk_or_why_it_is_not_known(grouped_frame):
    made = grouped_frame.assign(two="2 if s == 'yes' else 0", one="1 if s == 'yes' else 0")
    groups = made.dp.groupby("a")
    for released in (
        groups.mean("two", epsilon=1),
        groups.sum("two", epsilon=1),
        groups.sum("w", weights="one", epsilon=1),
        groups.mean("w", weights="two", epsilon=1),
        made.dp.value_counts("a", weights="one", epsilon=1),
        made.dp.crosstab("a", "free", weights="two", epsilon=1),
    ):
        assert is_stated(released)


def test_a_release_without_a_sensitive_column_or_without_groups_has_no_risk(grouped_frame):
    for released in (
        grouped_frame.dp.mean("n", epsilon=1),
        grouped_frame.dp.groupby("a").mean("w", epsilon=1),
        grouped_frame.dp.groupby("s").mean("w", epsilon=1),
        grouped_frame.dp.mode("s", epsilon=1),
        grouped_frame.dp.pooled_var("n", by="a", epsilon=1),
        grouped_frame.dp.groupby("a").count(epsilon=1),
    ):
        assert released.dp.metadata.dr_ha is None
