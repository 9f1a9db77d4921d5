"""Modes, top labels and quantiles end to end: shapes of pandas, charges first, and errors that hold."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing as pdt
import pytest
from scipy import stats

from pdprivacy import Column, Domain, Pure
from pdprivacy.core.accounting import Event
from pdprivacy.core.statistics import RankGrid
from pdprivacy.errors import (
    AlreadyCharged,
    BudgetExceeded,
    DeclarationError,
    MetadataError,
    ParameterError,
    TableTooLargeError,
    UnknownNameError,
)
from pdprivacy.releases import metadata
from tests.support.statistics import accepts, accepts_counts, accepts_share

ROWS = 601
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(20, 80, ROWS),
        "income": RNG.lognormal(3, 0.5, ROWS).clip(0, 500),
        "rooms": RNG.choice([1, 2, 3, 4], ROWS, p=[0.1, 0.5, 0.3, 0.1]),
        "member": RNG.random(ROWS) < 0.2,
        "region": RNG.choice(["north", "south", "west"], ROWS, p=[0.2, 0.5, 0.3]),
        "person": np.arange(1, ROWS + 1),
    }
)
FRAME.loc[::10, "income"] = np.nan
FRAME.loc[FRAME.index % 3 == 0, "region"] = None  # more nulls than records of any label
DOMAIN = Domain(
    (
        Column("age", "integer", False, 0, 120, bins=(0, 30, 60, 120)),
        Column("income", "float", True, 0, 500.0),
        Column("rooms", "integer", False, 0, 9),
        Column("member", "boolean"),
        Column("region", "category", True, categories=("east", "north", "south", "west")),
        Column("person", "integer", False, 0, 10**6, role="identifier"),
    )
)
LARGE = 10**6
WAYS: list[dict[str, Any]] = [
    {},
    {"mechanism": "exponential"},
    {"mechanism": "noisy_max"},
    {"mechanism": "noisy_max", "noise": "exponential"},
    {"mechanism": "noisy_max", "noise": "gaussian", "delta": "1e-5"},
]
VERBS = ["median", "min", "max", "quantile"]


def protected(**options: Any) -> pd.DataFrame:
    return FRAME.dp.protect(DOMAIN, **{"epsilon": 10**9, "delta": "0.5", **options})


@pytest.fixture(params=["add_remove", "replace_one"])
def private(request) -> pd.DataFrame:
    return protected(neighbors=request.param)


# ---------------------------------------------------------------- what pandas computes


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("way", WAYS)
def test_modes_are_those_of_pandas(private, way):
    names = ["rooms", "member", "region"]
    modes = private.dp.mode(names, epsilon=LARGE, **way)
    expected = FRAME[names].mode().iloc[0]
    assert modes.tolist() == expected.tolist()
    assert modes.index.tolist() == names
    assert private.dp.mode("age", epsilon=LARGE, **way)["age"] == "[30, 60)"


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("way", WAYS)
def test_top_labels_are_the_largest_counts_of_pandas(private, way):
    top = private.dp.top_k("rooms", 4, epsilon=LARGE, **way)
    assert top.tolist() == FRAME["rooms"].value_counts().index.tolist()
    assert (top.name, top.index.tolist()) == ("rooms", [1, 2, 3, 4])
    both = private.dp.top_k(["region", "rooms"], 3, epsilon=LARGE, **way)
    assert both.columns.tolist() == ["region", "rooms"]
    assert both["region"].tolist() == FRAME["region"].value_counts().index.tolist()
    every = private.dp.top_k("region", 4, epsilon=LARGE, **way)
    assert sorted(every) == ["east", "north", "south", "west"]


def test_quantiles_are_those_of_pandas(private):
    shares = [0.1, 0.25, 0.5, 0.9]
    names = ["age", "income", "rooms"]
    quantiles = private.dp.quantile(names, shares, epsilon=LARGE)
    lower, upper = (FRAME[names].quantile(shares, interpolation=side) for side in ("lower", "higher"))
    # one record further on either side: a share of the records is a rank, of theirs a place between two
    grid = 500 * 2.0**-28
    assert ((quantiles >= lower - 2 - grid) & (quantiles <= upper + 2 + grid)).all(axis=None)
    assert quantiles.index.tolist() == shares
    assert quantiles.columns.tolist() == names
    median = private.dp.quantile("age", 0.5, epsilon=LARGE)
    assert (median.name, median.index.tolist(), median.dtype) == (0.5, ["age"], np.float64)
    # an odd number of records has one in the middle
    pdt.assert_series_equal(
        private.dp.median(["age", "rooms"], epsilon=LARGE), FRAME[["age", "rooms"]].median()
    )
    assert private.dp.median("member", epsilon=LARGE)["member"] == 0
    every = private.dp.median(epsilon=LARGE).index.tolist()
    assert every == ["age", "income", "rooms", "member"]


@pytest.mark.full(keep=1)
def test_the_ends_have_the_ranks_that_are_stated(private):
    """In at most 5 % of the releases not."""
    values = np.sort(FRAME["income"].dropna().to_numpy())
    low = private.dp.min("income", epsilon=400, releases=200, rng=3)
    high = private.dp.max("income", epsilon=400, releases=200, rng=4)
    grid = 500 * 2.0**-29
    for released, ranks in (
        (low, np.searchsorted(values, low.loc["income"] + grid, side="right")),
        (high, np.searchsorted(-values[::-1], -high.loc["income"] + grid, side="right")),
    ):
        stated = released.attrs["dp"]["error"]
        assert stated["cut"] is False
        assert stated["below_best"] < stated["rank"] < 30
        assert private.dp.min("income", epsilon=2).attrs["dp"]["error"] == stated  # each costs as much
        wrong = (ranks < 1) | (ranks >= 2 * stated["rank"])
        assert accepts_share(wrong.sum(), 200, 0.05, "greater")
        assert abs(np.median(ranks) - stated["rank"]) < 10


def a_number(values: Any, upper: int, **options: Any) -> pd.DataFrame:
    frame = pd.DataFrame({"n": np.asarray(values, dtype=np.int64)})
    return frame.dp.protect(Domain((Column("n", "integer", False, 0, upper),)), epsilon=10**9, **options)


@pytest.mark.full
@pytest.mark.parametrize("values", [[40] * 1000, np.repeat(np.arange(20, 100), 50)], ids=["one", "some"])
def test_the_ends_of_equal_records_count_the_records_below(values):
    """In at most 5 % of the releases not."""
    values = np.asarray(values)
    for name in ("min", "max"):
        released = getattr(a_number(values, 120).dp, name)("n", epsilon=400, releases=400, rng=3)
        rank, numbers = released.attrs["dp"]["error"]["rank"], released.loc["n"].to_numpy()
        signed = values if name == "min" else -values
        numbers = numbers if name == "min" else -numbers
        upto, below = ((signed[:, None] <= numbers).sum(0), (signed[:, None] < numbers).sum(0))
        wrong = (upto < 1) | (below >= 2 * rank)
        assert accepts_share(wrong.sum(), 400, 0.05, "greater")
        # as many are up to it as there are equal ones, so that nothing bounds their number
        assert (upto >= 2 * rank).mean() > 0.5


def test_extremes_say_how_far_off_in_value_they_may_be():
    domain = Domain(
        (Column("n", "integer", lower=0, upper=120), Column("x", "float", lower=-0.5, upper=2.25))
    )
    frame = pd.DataFrame({"n": np.arange(1, 101), "x": np.linspace(0, 2, 100)})
    private = frame.dp.protect(domain, epsilon=10**9)
    for name, share in (("min", "0.01"), ("max", "0.99")):
        released = getattr(private.dp, name)(epsilon=2, releases=50, rng=5)
        error = released.attrs["dp"]["error"]
        assert error["widest"] == {"n": 120.0, "x": 2.75}
        assert error["step"]["n"] == 1.0
        grid = RankGrid(domain.columns[1], "min")
        assert error["step"]["x"] == 2.0 ** (2 - 31)  # the digits after the first of numbers from 2 to 4
        assert [grid.value(step) for step in grid.steps(released.loc["x"].to_numpy())] == released.loc[
            "x"
        ].tolist()
        inside = released.loc["x"].between(-0.5, 2.25, inclusive="neither")
        assert inside.all()
        text = repr(released.dp)
        assert "In value it may be off by up to 120 (n) and 2.75 (x), in steps of at most 1 (n) and " in text
        assert f"Rather ask for private.dp.quantile('n', {share}, epsilon=0.1)." in text
        assert f"from the {'lower' if name == 'min' else 'upper'} end" in text
    sharp = private.dp.min("n", epsilon=10**4)
    assert sharp.attrs["dp"]["error"]["rank"] == 1
    assert "Rather ask" not in repr(sharp.dp)
    assert "In value" not in repr(private.dp.median("n", epsilon=1).dp)


def test_a_rank_that_was_cut_says_so_and_is_seldom_further_off_than_stated():
    """The same for the distance in ranks, which is all that holds then."""
    values = np.arange(960, 1000, 2)
    known = a_number(values, 10**6, public_rows=20).dp
    released = known.min("n", epsilon=200, releases=400, rng=3)
    error, numbers = released.attrs["dp"]["error"], released.loc["n"].to_numpy()
    assert (error["rank"], error["cut"]) == (10, True)
    upto, below = ((values[:, None] <= numbers).sum(0), (values[:, None] < numbers).sum(0))
    # the numbers beyond all records are far more than all others
    assert ((upto < 1) | (below >= 2 * error["rank"])).mean() > 0.5
    off = np.maximum(np.maximum(below - 10, 10 - upto), 0)
    assert accepts_share((off > error["below_best"]).sum(), 400, 0.05, "greater")
    # a public fact: of what is declared and asked, and not of the records
    assert known.min("n", epsilon=400).attrs["dp"]["error"]["cut"] is False
    assert known.query("n > 970").dp.min("n", epsilon=1).attrs["dp"]["error"]["cut"] is False
    ends = known.quantile("n", [0, 0.5, 1], epsilon=1).attrs["dp"]["error"]["cut"]
    assert ends == {"n, q=0.0": True, "n, q=0.5": None, "n, q=1.0": True}


def test_with_fewer_records_than_the_rank_all_numbers_from_the_largest_on_score_alike():
    released = a_number([30] * 10, 10**6).dp.min("n", epsilon=200, releases=400, rng=3)
    assert released.attrs["dp"]["error"]["rank"] > 10
    numbers = released.loc["n"].to_numpy()
    assert accepts(numbers, stats.uniform(30, 10**6 - 30).cdf)


def test_zero_and_one_are_the_ends(private):
    ends = private.dp.quantile("income", [0, 1], epsilon=4, rng=1)
    alone = [private.dp.min("income", epsilon=2, rng=1), private.dp.max("income", epsilon=2, rng=1)]
    assert ends["income"].iloc[0] == alone[0]["income"]
    ranks = [extreme.attrs["dp"]["error"]["rank"] for extreme in alone]
    assert ends.attrs["dp"]["error"]["rank"] == {"income, q=0.0": ranks[0], "income, q=1.0": ranks[1]}


def test_shares_may_be_written_in_every_way_and_are_named_before_the_charge(private):
    for q in ("1/3", np.array(0.25), Fraction(1, 3), np.float32(0.1), "0.5"):
        single = private.dp.quantile("age", q, epsilon=1)
        several = private.dp.quantile("age", [*np.atleast_1d(q), 0.75], epsilon=1)
        assert single.name == several.index[0] == pytest.approx(float(Fraction(str(q))))
        assert several.index[1] == 0.75
    assert private.dp.budget.spent == (10, 0)
    with pytest.raises(ParameterError):
        private.dp.quantile("age", np.array("half"), epsilon=1)


def test_every_choice_has_its_own_entry_in_the_metadata():
    shares = [0.1234567, 0.1234568, 0.5]
    stored = protected().dp.quantile("age", shares, epsilon=3).attrs["dp"]
    assert len(stored["split"]) == len(stored["scale"]) == len(stored["error"]["below_best"]) == 3
    assert sum(stored["split"].values()) == pytest.approx(1)
    columns = [Column(name, "integer", False, 0, 5) for name in (1, "1", "1 #1")]
    frame = pd.DataFrame({column.name: [1] * 9 for column in columns})
    private = frame.dp.protect(Domain(tuple(columns)), epsilon=10)
    stored = private.dp.median([1, "1", "1 #1"], epsilon=3, split={1: 3, "1": 2, "1 #1": 1}).attrs["dp"]
    assert stored["split"] == {"1": 0.5, "1 #2": pytest.approx(1 / 3), "1 #1": pytest.approx(1 / 6)}
    assert stored["scale"]["1 #2"] == pytest.approx(1.5 * stored["scale"]["1"])


# ---------------------------------------------------------------- charges


def test_a_selection_costs_what_it_says_and_is_listed(private):
    private.dp.mode("region", epsilon="0.25", rng=1)
    private.dp.top_k("rooms", 3, epsilon="0.5", mechanism="exponential", releases=2)
    private.dp.median(["age", "income"], epsilon="0.125", split={"age": 1, "income": 3})
    private.dp.mode("region", epsilon=1, delta="1e-6", mechanism="noisy_max", noise="gaussian")
    budget = private.dp.budget
    assert budget.spent == (1.875, 1e-6)
    assert budget.entries["release"].tolist() == [
        "mode of region",
        "top_k of rooms, 2 releases",
        "median of age, income",
        "mode of region",
    ]
    assert budget.entries["answered"].all()
    events = budget.events
    assert events[0] == (Event(Pure("0.25")), 1)
    assert events[1] == (Event(Pure(Fraction(1, 12))), 6)  # six exponential mechanisms
    assert sorted(event.loss.epsilon for event, _ in events[2:4]) == [Fraction(1, 32), Fraction(3, 32)]
    assert events[4][0].noise is not None


REFUSED: list[tuple[Any, type[Exception]]] = [
    (lambda dp: dp.mode("income", epsilon=1), DeclarationError),
    (lambda dp: dp.mode("person", epsilon=1), DeclarationError),
    (lambda dp: dp.median("person", epsilon=1), DeclarationError),
    (lambda dp: dp.median("region", epsilon=1), DeclarationError),
    (lambda dp: dp.top_k("region", 5, epsilon=1), ParameterError),
    (lambda dp: dp.top_k("region", 0, epsilon=1), ParameterError),
    (lambda dp: dp.top_k("region", True, epsilon=1), ParameterError),
    (lambda dp: dp.mode([], epsilon=1), ParameterError),
    (lambda dp: dp.mode("region", epsilon=0), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, mechanism="best"), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, mechanism="noisy_max", noise="gaussian"), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, delta=1e-6), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, releases=0), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, rng="seed"), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, split={"rooms": 1}), ParameterError),
    (lambda dp: dp.mode("region", epsilon=1, bounding="clamp"), TypeError),
    (lambda dp: dp.quantile("age", 1.5, epsilon=1), ParameterError),
    (lambda dp: dp.quantile("age", [], epsilon=1), ParameterError),
    (lambda dp: dp.quantile("age", [0.5, "1/2"], epsilon=1), ParameterError),
    (lambda dp: dp.quantile("age", "half", epsilon=1), ParameterError),
    (lambda dp: dp.median("age", epsilon=1, mechanism="permute_and_flip"), ParameterError),
    (lambda dp: dp.median("age", epsilon=1, delta=1e-6), ParameterError),
    (lambda dp: dp.max("age", epsilon=1, interpolation="linear"), TypeError),
    (lambda dp: dp.mode("region", epsilon=10**10), BudgetExceeded),
    (lambda dp: dp.plan.mode("region", epsilon=1), UnknownNameError),
]


@pytest.mark.full(keep=9)
@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_a_refusal_charges_nothing_and_reads_nothing(call, error, monkeypatch):
    private = protected()

    def read(*_: Any) -> Any:
        raise AssertionError

    for name in ("table", "ranks"):
        monkeypatch.setattr("pdprivacy.core.engines.PandasEngine." + name, read)
    with pytest.raises(error):
        call(private.dp)
    assert private.dp.budget.spent == (0, 0)


def test_a_failure_after_the_charge_stays_charged(monkeypatch):
    private = protected()

    def lost(*_: Any) -> Any:
        raise RuntimeError("lost")

    for name, call in (
        ("table", lambda: private.dp.mode("region", epsilon=1)),
        ("ranks", lambda: private.dp.median("age", epsilon=1)),
    ):
        monkeypatch.setattr("pdprivacy.core.engines.PandasEngine." + name, lost)
        with pytest.raises(RuntimeError, match="lost"):
            call()
    assert private.dp.budget.spent == (2, 0)


def test_a_name_is_charged_once():
    private = protected()
    private.dp.median("age", epsilon=1, release_id="a")
    with pytest.raises(AlreadyCharged):
        private.dp.mode("region", epsilon=1, release_id="a")
    assert private.dp.budget.spent == (1, 0)


def test_too_much_work_is_refused_before_it_is_paid(monkeypatch):
    private = protected()
    monkeypatch.setattr("pdprivacy.releases.selection.MAX_CELLS", 100)
    with pytest.raises(TableTooLargeError):
        private.dp.top_k("rooms", 6, epsilon=1, releases=2)
    assert private.dp.budget.spent == (0, 0)


@pytest.mark.parametrize(
    ("shares", "columns", "releases"), [(5, 2, 1), (1, 1, 10), (3, 1, 4), (4, 1, 2), (3, 3, 1)]
)
def test_quantiles_are_work_too(shares, columns, releases, monkeypatch):
    private = protected()
    monkeypatch.setattr("pdprivacy.releases.selection.MAX_CELLS", 9 * 10**4)
    names, levels = ["age", "income", "rooms"][:columns], [(i + 1) / 10 for i in range(shares)]
    if shares * columns * releases <= 9:
        private.dp.quantile(names, levels, epsilon=1, releases=releases)
        return
    with pytest.raises(TableTooLargeError, match="fewer releases"):
        private.dp.quantile(names, levels, epsilon=1, releases=releases)
    assert private.dp.budget.spent == (0, 0)


@pytest.mark.full
def test_selections_can_be_planned_together(private):
    calls = [
        ("median", "age", {"epsilon": 0.1, "rng": 1}),
        ("mode", "region", {"epsilon": 0.1}),
        ("top_k", "rooms", 2, {"epsilon": 0.1, "mechanism": "noisy_max"}),
        ("quantile", "age", [0.25, 0.75], {"epsilon": 0.1, "releases": 2}),
    ] * 20
    plan = private.dp.plan_releases(calls, delta=1e-6)
    assert private.dp.budget.spent == (0, 0)
    assert plan.apart.epsilon == 8 > plan.cost.epsilon
    released = plan.release()
    assert len(released) == 80
    assert private.dp.budget.spent == (float(plan.cost.epsilon), 1e-6)
    assert (
        released[0]["age"]
        == protected(neighbors=private.dp.budget.unit.neighbors).dp.median("age", epsilon=0.1, rng=1)["age"]
    )


# ---------------------------------------------------------------- what a release says about itself


def test_several_releases_come_side_by_side(private):
    modes = private.dp.mode(["region", "rooms"], epsilon=10, releases=3)
    assert (modes.columns.name, modes.columns.tolist()) == ("release", [1, 2, 3])
    assert modes.index.tolist() == ["region", "rooms"]
    quantiles = private.dp.quantile(["age", "rooms"], [0.2, 0.8], epsilon=10, releases=2)
    assert quantiles.columns.names[0] == "release"
    assert quantiles[2].columns.tolist() == ["age", "rooms"]
    assert quantiles.attrs["dp"]["releases"] == 2
    tops = private.dp.top_k("region", 2, epsilon=10, releases=2)
    assert tops.shape == (2, 2)
    assert tops.dp.verify()


def test_a_seed_says_all_and_is_told(private):
    for name, args in (("median", ("age",)), ("mode", ("region",)), ("top_k", ("rooms", 2))):
        first, second = (getattr(private.dp, name)(*args, epsilon="0.01", rng=9) for _ in range(2))
        assert first.tolist() == second.tolist()
        assert first.attrs["dp"]["seeded"] is True
        assert getattr(private.dp, name)(*args, epsilon="0.01").attrs["dp"]["seeded"] is False


def test_the_metadata_is_plain_and_says_the_scale(private):
    replaced = private.dp.budget.unit.neighbors == "replace_one"
    stored = private.dp.mode("region", epsilon="0.5").attrs["dp"]
    assert json.loads(json.dumps(stored)) == stored
    assert (stored["statistic"], stored["mechanism"]) == ("mode", "permute_and_flip")
    assert (stored["sensitivity"], stored["scale"]) == (1, 4 if replaced else 2)
    stored = private.dp.median("income", epsilon="0.5").attrs["dp"]
    assert json.loads(json.dumps(stored)) == stored
    assert (stored["sensitivity"], stored["scale"]) == (1, 4) if replaced else (0.5, 2)
    assert metadata.Metadata(**stored).mechanism == "exponential"
    ends = private.dp.min(["age", "income"], epsilon=1).attrs["dp"]
    assert ends["error"]["rank"].keys() == ends["scale"].keys() == ends["split"].keys() == {"age", "income"}
    wide = private.dp.top_k("region", 2, epsilon=1, delta=1e-5, mechanism="noisy_max", noise="gaussian")
    assert wide.attrs["dp"]["sensitivity"] == pytest.approx(2**0.5 if replaced else 1)
    assert wide.attrs["dp"]["delta"] == 1e-5


def test_labels_that_were_changed_are_told(tmp_path, private):
    modes = private.dp.mode(["region", "rooms"], epsilon=LARGE)
    assert modes.dp.verify()
    modes["region"] = "east"
    assert not modes.dp.verify()
    tops = private.dp.top_k(["region", "rooms"], 3, epsilon=LARGE)
    tops.to_parquet(tmp_path / "tops.parquet")
    restored = pd.read_parquet(tmp_path / "tops.parquet")
    assert restored.dp.verify()
    restored.iloc[[0, 1], 0] = restored.iloc[[1, 0], 0].tolist()
    assert not restored.dp.verify()


def test_labels_keep_their_digits_next_to_others():
    columns = (
        Column("i", "integer", categories=(2**53 + 1, 2**53 + 3)),
        Column("f", "float", categories=(0.5, 1.5)),
        Column("s", "integer", categories=(3, 4)),
        Column("u", "integer", categories=(2**63 - 5, 2**63 - 3)),
    )
    cells: dict[str, Any] = {"i": [2**53 + 1] * 9, "f": [0.5] * 9, "s": [3] * 9}
    frame = pd.DataFrame({**cells, "u": np.array([2**63 - 5] * 9, np.uint64)})
    private = frame.dp.protect(Domain(columns), epsilon=10**9)
    expected = {"i": 2**53 + 1, "f": 0.5, "s": 3, "u": 2**63 - 5}
    for names in (["i", "f"], ["f", "u"], ["s", "u"], ["i"], ["u"], list(expected)):
        modes = private.dp.mode(names, epsilon=LARGE)
        assert [(modes[name], name) for name in names] == [(expected[name], name) for name in names]
        assert modes.dp.verify()
        changed = modes.copy()
        changed[names[-1]] += 1
        assert not changed.dp.verify()
        changed = modes.copy()
        changed[names[0]] += 1
        assert not changed.dp.verify()
        several = private.dp.mode(names, epsilon=LARGE, releases=2)
        assert several[2].tolist() == [expected[name] for name in names]
        tops = private.dp.top_k(names, 2, epsilon=LARGE)
        assert tops.loc[1].tolist() == [expected[name] for name in names] or len(names) > 1
        assert [tops.loc[1, name] for name in names] == [expected[name] for name in names]
        assert tops.dp.verify()
        tops.loc[1, names[0]] += 1
        assert not tops.dp.verify()
    # where floats hold all of them, as pandas has it
    assert private.dp.mode(["s", "f"], epsilon=LARGE).dtype == np.float64


def test_a_selection_has_no_standard_error(private):
    for released in (private.dp.median("age", epsilon=1), private.dp.mode("region", epsilon=1)):
        assert released.dp.metadata.error["level"] == 0.95
        with pytest.raises(MetadataError, match="ranks"):
            released.dp.interval()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("way", WAYS)
def test_selected_labels_are_seldom_further_below_the_best_than_stated(private, way):
    """In at most 5 % of 300 releases."""
    counts = FRAME["rooms"].value_counts().reindex(range(10), fill_value=0)
    modes = private.dp.mode("rooms", epsilon=3, releases=300, rng=2, **{**way, **_more(way)})
    below = counts.max() - counts[modes.loc["rooms"].astype(int)].to_numpy()
    beyond = int((below > modes.attrs["dp"]["error"]["below_best"]).sum())
    assert accepts_share(beyond, 300, 0.05, "greater")
    assert below.max() > 0


def _more(way: dict[str, Any]) -> dict[str, Any]:
    return {"delta": "0.01"} if "delta" in way else {}


# ---------------------------------------------------------------- kinds of columns


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float32", "Int64", "int64[pyarrow]"])
def test_every_kind_of_number_has_the_same_median(dtype):
    cells = [3, 9, 9, 11, 60, 2, 9]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object).astype(dtype)})
    kind = "float" if dtype.lower().startswith("float") else "integer"
    domain = Domain((Column("x", kind, False, 0, 100),))
    private = frame.dp.protect(domain, epsilon=10**9)
    assert private.dp.median("x", epsilon=LARGE)["x"] == pytest.approx(9, abs=1e-6)
    assert private.dp.quantile("x", 0.9, epsilon=LARGE)["x"] == pytest.approx(60, abs=1e-6)


def test_an_empty_part_has_an_answer_within_the_bounds(private):
    nobody = private.dp.query("age > 119")
    assert 0 <= nobody.dp.median("income", epsilon=1)["income"] <= 500
    assert nobody.dp.mode("region", epsilon=1)["region"] in ("east", "north", "south", "west")
    assert nobody.dp.mode("region", epsilon=1).attrs["dp"]["filters"] == ["age > 119"]


def test_quantiles_nearer_than_a_millionth_are_two_and_equal_ones_are_refused(private):
    tiny = private.dp.quantile("age", [1e-7, 2e-7, 0.5], epsilon=1, rng=1)
    assert tiny.index.tolist() == [1e-7, 2e-7, 0.5]
    for repeated in ([0.5, 0.5], [1 / 3, Fraction(1, 3)]):
        with pytest.raises(ParameterError, match="must not repeat a number"):
            private.dp.quantile("age", repeated, epsilon=1)


PUBLISHED = [{"mechanism": "exponential"}, {"mechanism": "noisy_max", "noise": "exponential"}]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("way", PUBLISHED)
def test_the_published_scale_is_that_of_scores_which_move_either_way(way):
    """Half the epsilon in the exponent, and noise of rate epsilon / 2, by the laws that the paper prints."""
    counts, epsilon, times = np.array([5, 3, 2]), 0.8, 400
    domain = Domain((Column("x", "category", categories=("a", "b", "c")),))
    frame = pd.DataFrame({"x": np.repeat(["a", "b", "c"], counts)})
    private = frame.dp.protect(domain, epsilon=10**6)
    words = {"epsilon": Fraction("0.8") * times, "releases": times, "rng": 4}
    if "noise" in way:  # the first is the largest, given its noise t, if both others stay below
        rates = [epsilon / 2, epsilon]
        t, step = np.linspace(0, 90, 900_001, retstep=True)
        laws = []
        for rate in rates:
            density = rate * np.exp(-rate * t)
            below = [-np.expm1(-rate * np.maximum(own - counts[:, np.newaxis] + t, 0)) for own in counts]
            others = [np.prod(np.delete(each, i, axis=0), axis=0) for i, each in enumerate(below)]
            laws.append(np.array([(density * other).sum() * step for other in others]))
    else:
        weights = [np.exp(epsilon * counts / 2), np.exp(epsilon * counts)]
        laws = [each / each.sum() for each in weights]
    for calibration, expected, other in [("published", *laws), (None, *laws[::-1])]:
        released = private.dp.mode("x", calibration=calibration, **way, **words)
        drawn = [int((released.to_numpy() == label).sum()) for label in "abc"]
        assert accepts_counts(drawn, expected)
        assert not accepts_counts(drawn, other)
        assert released.attrs["dp"]["scale"] == pytest.approx((2 if calibration else 1) / epsilon)
        assert released.attrs["dp"]["epsilon"] == pytest.approx(epsilon * times)
        assert released.attrs["dp"]["calibration"] == calibration
    assert private.dp.budget.entries["mechanism"].str.endswith("published scale").tolist() == [True, False]


@pytest.mark.full
@pytest.mark.parametrize("way", PUBLISHED)
def test_the_published_scale_is_neither_a_tenth_smaller_nor_larger(way):
    """Of two labels, whose counts differ by d; the laws are closed forms, with rate r = epsilon / 2.

    The exponential mechanism takes the larger count with probability 1 / (1 + exp(-r d)). Exponential noises
    of rate r differ by a Laplace variable of scale 1 / r, so noisy max takes it with 1 - exp(-r d) / 2.
    """
    epsilon, difference, times = 0.8, 4, 10_000
    domain = Domain((Column("x", "category", categories=("a", "b")),))
    frame = pd.DataFrame({"x": ["a"] * 6 + ["b"] * 2})
    private = frame.dp.protect(domain, epsilon=10**6)
    words = {"epsilon": Fraction("0.8") * times, "releases": times, "calibration": "published", **way}
    releases = [private.dp.mode("x", rng=seed, **words) for seed in (11, 12)]
    larger = sum(int((released.to_numpy() == "a").sum()) for released in releases)

    def law(scale):
        moved = math.exp(-difference / scale)
        return 1 - moved / 2 if "noise" in way else 1 / (1 + moved)

    scale = 2 / epsilon
    counts = [larger, 2 * times - larger]
    assert accepts_counts(counts, [law(scale), 1 - law(scale)])
    for wrong in (0.9 * scale, 1.1 * scale):
        assert not accepts_counts(counts, [law(wrong), 1 - law(wrong)])
    facts = releases[0].dp.metadata
    assert (facts.scale, facts.calibration) == (pytest.approx(scale), "published")


def test_the_published_scale_is_the_least_one_where_records_are_replaced():
    frame = pd.DataFrame({"x": ["a", "b"] * 5})
    domain = Domain((Column("x", "category", categories=("a", "b")),))
    private = frame.dp.protect(domain, epsilon=10, neighbors="replace_one")
    for way in PUBLISHED:
        scales = {
            private.dp.mode("x", epsilon=0.5, calibration=name, **way).attrs["dp"]["scale"]
            for name in ("published", None)
        }
        assert scales == {4.0}


@pytest.mark.parametrize(
    "way", [{"noise": None}, {"noise": "laplace"}, {"noise": "gaussian", "delta": "1e-6"}]
)
def test_the_published_scale_is_for_exponential_weights(way):
    private = protected()
    with pytest.raises(ParameterError, match="is for the exponential mechanism"):
        private.dp.mode("rooms", epsilon=0.1, mechanism="noisy_max", calibration="published", **way)
    with pytest.raises(ParameterError, match="'calibration' must be one of"):
        private.dp.mode("rooms", epsilon=0.1, calibration="analytic")
