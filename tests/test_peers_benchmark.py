"""The comparison with other libraries: how it counts and prints, and that its page says what it ran."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pdprivacy.errors import DeclarationWarning

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
PAGE = (HERE.parent / "docs" / "peers.md").read_text()


@pytest.fixture(scope="module")
def peers(as_module):
    return as_module(HERE / "benchmarks" / "peers.py")


@pytest.fixture(scope="module")
def libraries(as_module):
    return as_module(HERE / "benchmarks" / "peers_libraries.py")


def released(generator: np.random.Generator, truth: np.ndarray, noise: str, scale: float, times: int):
    """Releases with noise of a known law."""
    shape = (times, len(truth))
    if noise == "laplace":
        return truth + generator.laplace(0, scale, shape)
    success = -math.expm1(-1 / scale)
    return truth + generator.geometric(success, shape) - generator.geometric(success, shape)


# ---------------------------------------------------------------- accounting


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_neighbours_differ_in_one_record_as_much_as_declared(peers, relation):
    first, second = peers.neighbours(relation)
    added = relation == "add_remove"
    assert len(second) - len(first) == added
    pd.testing.assert_frame_equal(first.iloc[: len(second) - 1], second.iloc[:-1])
    assert not set(second.iloc[-1]) & set(first.iloc[-1])
    truths = {name: [peers.exact(name, table) for table in (first, second)] for name in peers.STATISTICS}
    assert truths["sum"][1] - truths["sum"][0] == 100
    for counts in ("histogram", "table"):
        moved = truths[counts][1] - truths[counts][0]
        assert sorted(moved[moved != 0]) == ([1] if added else [-1, 1])


def test_exact_numbers_are_those_of_pandas_and_numpy(peers):
    labels = peers.SAID["labels"]
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": generator.integers(0, 101, 500),
            **{name: generator.choice(known, 500) for name, known in labels.items()},
        }
    )
    assert peers.exact("variance", frame, 1)[0] == pytest.approx(frame["age"].var())
    table = peers.exact("table", frame).reshape(4, 7)
    south = frame[(frame["region"] == "south") & (frame["education"] == "phd")]
    assert table[2, 5] == len(south)
    assert table.sum() == peers.exact("histogram", frame).sum() == len(frame)
    assert peers.exact("histogram", frame)[-1] == (frame["age"] >= 90).sum()
    assert peers.exact("count", frame)[0] == (frame["health"] == "no").sum()


@pytest.mark.full
@pytest.mark.parametrize("noise", ["laplace", "geometric"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_true_cost_is_found(peers, noise, epsilon):
    # fixed seed; off by more than 4 standard errors in 1 of 16,000 draws
    generator = np.random.default_rng(2)
    for relation, moved in (("add_remove", 1), ("replace_one", 2)):
        truths = tuple(peers.exact("histogram", item) for item in peers.neighbours(relation))
        answers = tuple(released(generator, item, noise, moved / epsilon, 20_000) for item in truths)
        sides = [item for item in peers.told_apart(answers, truths) if item.event == "size"]
        assert len(sides) == 2
        for side in sides:
            assert abs(side.ratio - epsilon) < 4 * side.error < 0.5
            assert side.least < epsilon
        # noise for half the sensitivity costs twice as much, and that is seen
        answers = tuple(released(generator, item, noise, moved / epsilon / 2, 20_000) for item in truths)
        events = [item for item in peers.told_apart(answers, truths) if item.event == "size"]
        assert max(item.least for item in events) > epsilon
        assert peers.shown_cost(events, epsilon, loose=False).startswith("**")


@pytest.mark.full
def test_the_bound_is_below_the_truth_as_often_as_it_says(peers):
    generator = np.random.default_rng(3)
    high, low, draws = 0.5, 0.5 / math.e, 400
    pairs = zip(generator.binomial(draws, high, 2000), generator.binomial(draws, low, 2000), strict=True)
    events = [peers.Told("size", int(event), int(other), draws, draws) for event, other in pairs]
    above = sum(event.least > 1 for event in events)
    assert above <= stats.binom.ppf(1 - 1e-6, 2000, 1 - peers.CONFIDENCE)
    spread = np.std([event.ratio for event in events])
    assert np.mean([event.error for event in events]) == pytest.approx(spread, rel=0.1)


def test_events_that_are_never_seen(peers):
    never = peers.Told("size", 0, 10, 100, 100)
    assert never.least == never.ratio == -math.inf
    only = peers.Told("digits", 30, 0, 100, 100)
    assert only.ratio == math.inf
    assert 1 < only.least < math.log(30)
    always = peers.Told("size", 100, 100, 100, 100)
    assert always.ratio == 0
    assert always.least < 0
    assert peers.shown_cost([never, only], 1.0, loose=False) == f"**> {only.least:.1f}**"
    assert peers.shown_cost([never, only], 9.0, loose=False) == "> -inf"


@given(
    value=st.floats(min_value=2**-40, max_value=2**40),
    noise=st.floats(min_value=-(2**60), max_value=2**60),
    near=st.booleans(),
)
def test_no_sum_of_doubles_has_finer_digits(peers, value, noise, near):
    if near:
        noise = -value * (1 + math.remainder(noise, 1))
    assert not peers.fine(np.array([value + noise]), value)[0]


def test_digits_show_doubles_and_spare_grids(peers):
    generator = np.random.default_rng(4)
    truths = tuple(peers.exact("sum", item) for item in peers.neighbours("add_remove"))
    plain = tuple(released(generator, item, "laplace", 100.0, 2000) for item in truths)
    digits = peers.told_apart(plain, truths)[-1]
    assert digits.event == "digits"
    assert digits.unlikely == 0
    assert digits.least > 3
    grid = tuple((np.round(np.array(item) * 2**20) / 2**20).tolist() for item in plain)
    assert peers.told_apart(grid, truths)[-1].likely == 0
    assert [item.event for item in peers.told_apart(plain, truths, digits=False)] == ["size", "size"]


def test_no_number_tells_tables_apart(peers):
    first, second = [[0.0]] * 50, [[math.nan]] * 50
    events = {event.event: event for event in peers.by_value((first, second), [10.0])}
    assert (events["no number"].likely, events["no number"].unlikely) == (50, 0)
    assert events["10 or more"].likely == 0
    pairs = peers.careless("replace_one")
    assert all(len(before) == len(after) == 1000 for before, after in pairs.values())
    assert all(len(before) + 1 == len(after) for before, after in peers.careless("add_remove").values())


def test_errors_and_their_errors(peers):
    assert peers.rmse([[3.0, 1.0], [1.0, 3.0]], np.array([0.0, 0.0])) == (pytest.approx(5**0.5), 0.0)
    generator = np.random.default_rng(5)
    errors = [peers.rmse(generator.laplace(0, 1, (400, 1)).tolist(), np.zeros(1)) for _ in range(400)]
    assert np.mean([pair[0] for pair in errors]) == pytest.approx(2**0.5, rel=0.01)
    assert np.mean([pair[1] for pair in errors]) == pytest.approx(
        np.std([pair[0] for pair in errors]), rel=0.15
    )


# ---------------------------------------------------------------- print


@pytest.mark.parametrize(
    ("number", "text"),
    [(1234.5, "1,234"), (0.012345, "0.0123"), (0.0, "0"), (math.nan, ""), (10.0, "10.0"), (math.inf, "inf")],
)
def test_numbers_are_brief(peers, number, text):
    assert peers.brief(number) == text


def test_a_row_says_why_it_is_empty(peers):
    row = peers.Row("variance", "add_remove", "privjail", absent="not offered")
    printed = peers.table_of([row], {"opendp": "no module | here"}).splitlines()
    assert [line.count("|") - line.count("\\|") for line in printed if line] == [len(peers.HEAD) + 1] * 4
    assert "not offered" in printed[2]
    assert "no module \\| here" in printed[3]


def test_ratios_are_those_to_ours(peers):
    events = [peers.Told("size", 50, 18, 100, 100)]
    common = {"seconds": 0.002, "peak": 100.0, "claimed": 1.0, "events": events}
    rows = [
        peers.Row(
            "sum", "add_remove", "opendp", ratio=3.0, used=2.5, error=(6.0, 0.1), again=0.001, **common
        ),
        peers.Row("sum", "add_remove", "pdprivacy", ratio=1.0, used=1.0, error=(4.0, 0.1), **common),
    ]
    cells = [cell.strip() for cell in peers.table_of(rows, {}).splitlines()[2].split("|")][1:-1]
    line = dict(zip(range(len(peers.HEAD)), cells, strict=True))
    assert [line[column] for column in (3, 4, 5, 7, 8)] == ["2.0 (1.0)", "3.0", "2.5", "6.00 ± 0.1", "1.5"]
    assert line[10] == "1.02 ± 0.24"
    assert line[11] == "a"


def test_pins_are_exact(peers):
    assert peers.pinned("opendp")["opendp"]
    for library in peers.PINS:
        assert library in peers.pinned(library)
        assert all(pin.count("==") == 1 for pin in peers.PINS[library])


def test_what_the_process_asks_of_ours(peers, libraries, tmp_path):
    relation = "replace_one"
    first, second = peers.neighbours(relation)
    path = peers.write(second, tmp_path / "second")
    process = libraries.Process("pdprivacy")
    with pytest.warns(DeclarationWarning, match="bound"):
        opened = process.open("it", str(path), json.loads(json.dumps(peers.SAID)), relation)
    assert opened["offered"] == list(peers.STATISTICS)
    for statistic in peers.STATISTICS:
        assert process.cost("it", statistic) == {"claimed": 1.0}
        answers = process.draw("it", statistic, times=3, seconds=60.0)["answers"]
        truth = peers.exact(statistic, second, 1)
        assert np.array(answers).shape == (3, len(truth))
    # the cells come in the order in which the exact ones are counted
    request = {**peers.SAID, "epsilon": 1000.0}
    with pytest.warns(DeclarationWarning, match="bound"):
        process.open("sharp", str(path), request, relation)
    for statistic in ("histogram", "table", "count"):
        answer = process.draw("sharp", statistic, times=1, seconds=0.0)["answers"][0]
        assert answer == peers.exact(statistic, second).tolist()
    assert libraries.LIBRARIES.keys() == peers.NAMES.keys()
    with pytest.raises(KeyError):
        process.cost("it", "median")
    assert len(first) == len(second)


def test_a_library_that_is_absent_says_why(peers, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "environment", lambda name, folder: sys.executable)
    with peers.started(["nosuchlibrary"], tmp_path) as (running, absent):
        assert running == []
        assert "nosuchlibrary" in absent["nosuchlibrary"]
    monkeypatch.setattr(peers, "PINS", {"pdprivacy": ["pdprivacy==99"]})
    with peers.started(["pdprivacy"], tmp_path) as (running, absent):
        assert running == []
        assert "other versions" in absent["pdprivacy"]


# ---------------------------------------------------------------- page


def tables() -> list[list[list[str]]]:
    """The tables of the page, in cells."""
    texts = re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        for text in texts
    ]


def test_the_page_has_the_tables_that_are_printed(peers):
    heads = [tuple(table[0]) for table in tables()]
    for head in (peers.HEAD_LIBRARIES, peers.HEAD, peers.HEAD_CARELESS, peers.HEAD_TOLD):
        assert head in heads
    for table in tables():
        assert {len(line) for line in table} == {len(table[0])}


def test_the_page_has_every_comparison(peers):
    for table in tables():
        if tuple(table[0]) != peers.HEAD:
            continue
        expected = {
            (statistic, relation, name)
            for statistic in peers.STATISTICS
            for relation in peers.RELATIONS
            for name in peers.NAMES.values()
        }
        assert {tuple(line[:3]) for line in table[2:]} == expected


def test_the_page_ran_the_pinned_versions(peers):
    ran = next(table for table in tables() if tuple(table[0]) == peers.HEAD_LIBRARIES)
    versions = {line[0]: line[1] for line in ran[2:]}
    for library, name in peers.NAMES.items():
        if library in peers.PINS:
            assert versions[name] == peers.pinned(library)[library]
    assert "python tests/benchmarks/peers.py" in PAGE
