"""Budgets in memory: caps, charges, risks, threads and interrupts; and pages of the charges of a ledger."""

from __future__ import annotations

import copy
import itertools
import linecache
import math
import os
import pickle
import random
import sys
import threading
import tracemalloc
from datetime import UTC, datetime
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Budget, Ledger, Pure, Unit
from pdprivacy.core.accounting import Event, GaussianNoise
from pdprivacy.errors import AlreadyCharged, BudgetError, BudgetExceeded, LedgerError, ParameterError
from pdprivacy.ledger import Account
from tests.support.processes import refused_in_a_fork


@pytest.fixture
def busy():
    """Threads take turns as often as the interpreter lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run(*works):
    """Run all at once, in threads that start together; the first exception of any is raised."""
    gate = threading.Barrier(len(works))
    errors = []

    def start(work):
        gate.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# What is accepted and what is refused.


def test_three_tenths_fit_into_three_tenths_and_nothing_else_does():
    budget = Budget(epsilon=0.3)
    for number in (1, 2, 3):
        assert budget.charge(Pure(0.1), "mean").number == number
    assert budget.spent == (0.3, 0)
    assert budget.left == (0, 0)
    for epsilon in (0.1, 1e-12, Fraction(1, 10**300)):
        with pytest.raises(BudgetExceeded):
            budget.charge(Pure(epsilon), "one more")
    assert len(budget.entries) == 3


def test_a_refusal_leaves_the_rest_usable():
    budget = Budget(epsilon=1, delta=1e-6)
    budget.charge(Pure(0.25), "first")
    for too_much in (Pure("0.7500000001"), Approx(0.1, 2e-6), Approx(5, 0.5), Pure(10**9)):
        with pytest.raises(BudgetExceeded):
            budget.charge(too_much, "too much")
    assert budget.left == (0.75, 1e-6)
    assert budget.charge(Approx(0.75, 1e-6), "all that is left").number == 2
    assert budget.left == (0, 0)


def test_delta_is_a_cap_of_its_own():
    budget = Budget(epsilon=100, delta=3e-6)
    for _ in range(3):
        budget.charge(Approx(1, 1e-6), "noisy")
    with pytest.raises(BudgetExceeded, match="asks for delta 1e-12, but 0 of 3e-06 is left"):
        budget.charge(Approx(1, 1e-12), "one more")
    budget.charge(Pure(97), "without delta")
    assert budget.spent == (100, 3e-6)


def test_a_budget_without_delta_takes_no_delta():
    budget = Budget(epsilon=1)
    with pytest.raises(BudgetExceeded, match="asks for delta 1e-09, but 0 of 0 is left") as caught:
        budget.charge(Approx(0.5, 1e-9), "gaussian")
    assert "laplace" in caught.value.hint
    assert budget.charge(Approx(0.5, 0), "no slack").loss == Approx(0.5, 0)


def test_the_refusal_says_what_was_asked_and_what_is_left():
    budget = Budget(epsilon=2)
    budget.charge(Pure("1/3"), "first")
    with pytest.raises(BudgetExceeded) as caught:
        budget.charge(Pure(1.7), "second")
    assert "asks for epsilon 1.7, but 5/3 of 2 is left." in str(caught.value)
    assert "Hint: ask for epsilon=5/3 or less." in str(caught.value)
    # The hint works, as text.
    budget.charge(Pure("5/3"), "second")
    with pytest.raises(BudgetExceeded, match="but 0 of 2 is left") as caught:
        budget.charge(Pure(0.1), "third")
    assert caught.value.hint is None


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=1000),
    st.fractions(min_value=0, max_value=Fraction(1, 10), max_denominator=1000),
    st.lists(
        st.tuples(
            st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000),
            st.fractions(min_value=0, max_value=Fraction(1, 50), max_denominator=1000),
        ),
        max_size=25,
    ),
)
def test_a_charge_is_accepted_exactly_where_it_fits(epsilon, delta, costs):
    budget = Budget(epsilon, delta)
    left = [epsilon, delta]
    accepted = []
    for cost in costs:
        fits = cost[0] <= left[0] and cost[1] <= left[1]
        if fits:
            budget.charge(Approx(*cost), "x")
            left = [left[0] - cost[0], left[1] - cost[1]]
            accepted.append(cost)
        else:
            with pytest.raises(BudgetExceeded):
                budget.charge(Approx(*cost), "x")
        assert budget.left == (float(left[0]), float(left[1]))
        assert budget.spent == (float(epsilon - left[0]), float(delta - left[1]))
    assert budget.entries["epsilon"].tolist() == [float(cost[0]) for cost in accepted]
    if left[0] > 0:
        budget.charge(Approx(*left), "all that is left")
        assert budget.left == (0, 0)


def test_other_currencies_are_refused():
    budget = Budget(epsilon=1, delta=0.1)
    for cost, words in ((ZCDP(0.1), "rho"), (0.1, r"\(got float\)"), (None, r"\(got None\)")):
        with pytest.raises(BudgetError, match=words) as caught:
            budget.charge(cost, "x")
        assert not isinstance(caught.value, BudgetExceeded)
    assert budget.spent == (0, 0)


@pytest.mark.parametrize("label", [None, 3, b"mean", ["mean"]], ids=repr)
def test_labels_and_mechanisms_are_text(label):
    budget = Budget(epsilon=1)
    with pytest.raises(ParameterError, match=r"^'label' must be a string"):
        budget.charge(Pure(0.1), label)
    with pytest.raises(ParameterError, match=r"^'mechanism' must be a string"):
        budget.charge(Pure(0.1), "mean", label)
    assert budget.spent == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0,), "epsilon"), ((-1,), "epsilon"), (("x",), "epsilon"), ((1, 1), "delta"), ((1, -0.1), "delta")],
)
def test_totals_out_of_range_are_refused(arguments, name):
    with pytest.raises(ParameterError, match=f"^'{name}' must be"):
        Budget(*arguments)


# What is kept.


def test_a_new_budget_is_untouched():
    budget = Budget(epsilon="1/3", delta=1e-6)
    assert budget.total == Approx("1/3", 1e-6)
    assert Budget(epsilon=2).total == Pure(2)
    assert budget.spent == (0, 0)
    assert budget.left == (1 / 3, 1e-6)
    assert budget.unit is None
    assert budget.entries.empty
    assert list(budget.entries) == [
        *(
            "release",
            "mechanism",
            "epsilon",
            "delta",
            "rho",
            "time",
            "answered",
            "cumulative_dr_ha",
            "release_id",
        )
    ]
    assert budget.composed is None


def test_entries_are_one_row_per_charge():
    budget = Budget(epsilon=2, delta=1e-5)
    before = datetime.now(UTC)
    first = budget.charge(Pure(0.5), "mean of age", "laplace")
    budget.charge(Approx(0.25, 1e-6), "sum of age", "gaussian")
    after = datetime.now(UTC)
    frame = budget.entries
    assert frame.index.tolist() == [1, 2]
    assert frame.index.name == "charge"
    assert frame["release"].tolist() == ["mean of age", "sum of age"]
    assert frame["mechanism"].tolist() == ["laplace", "gaussian"]
    assert frame["epsilon"].tolist() == [0.5, 0.25]
    assert frame["delta"].tolist() == [0, 1e-6]
    assert str(frame["time"].dt.tz) == "UTC"
    assert frame["time"].is_monotonic_increasing
    assert ((frame["time"] >= pd.Timestamp(before)) & (frame["time"] <= pd.Timestamp(after))).all()
    assert (first.number, first.label, first.mechanism, first.loss) == (
        1,
        "mean of age",
        "laplace",
        Pure(0.5),
    )


def test_a_budget_that_cannot_be_read_says_so_where_it_is_shown(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    budget = ledger.open("a & b", Pure(1))
    budget.charge(Pure(1), "count")
    for file in tmp_path.iterdir():
        file.unlink()
    for text in (repr(budget), budget._repr_html_(), ledger._repr_html_()):
        assert "is gone" in text
        assert "opens it" not in text  # a new one would know nothing of what was spent
        assert "makes it" not in text
    assert "a &amp; b" in budget._repr_html_()
    for ask in (lambda: budget.spent, lambda: ledger.budgets, lambda: ledger.open("a & b", Pure(1))):
        with pytest.raises(LedgerError, match="is gone"):
            ask()


@pytest.mark.parametrize(
    "given", [pd.Series([1, 2]), np.array([1, 2]), pd.DataFrame({"x": [1, 2]}), ["basic"], 1, "best"]
)
def test_an_unknown_accounting_is_refused_by_name(given):
    for call in (
        lambda: Budget(1, accounting=given),
        lambda: pd.DataFrame({"x": [1]}).dp.protect(pa.DataFrameSchema({}), epsilon=1, accounting=given),
    ):
        with pytest.raises(ParameterError, match=r"^'accounting' must be one of 'basic', 'filter', 'zcdp'"):
            call()


def test_the_ledger_cannot_be_changed_through_what_it_hands_out():
    budget = Budget(epsilon=1)
    entry = budget.charge(Pure(0.5), "mean")
    frame = budget.entries
    frame.loc[1, "epsilon"] = 0.0
    with pytest.raises(AttributeError):
        entry.loss = Pure(0.1)
    for name in ("total", "spent", "left", "unit", "entries"):
        with pytest.raises(AttributeError):
            setattr(budget, name, None)
    assert budget.spent == (0.5, 0)
    assert budget.entries["epsilon"].tolist() == [0.5]


def test_the_composed_loss_is_exact_and_noted_with_each_charge():
    budget = Budget(epsilon=2, delta=1e-5)
    entries = [budget.charge(cost, "x") for cost in (Pure("1/3"), Approx(0.1, 1e-6), Pure("1/3"))]
    assert [entry.after.composed for entry in entries] == [
        Pure("1/3"),
        Approx(Fraction(13, 30), 1e-6),
        Approx(Fraction(23, 30), 1e-6),
    ]
    assert budget.composed == entries[-1].after.composed


def test_requested_losses_are_summed_up_where_the_noise_is_counted():
    budget = Budget(1, delta="1e-5", accounting="zcdp")
    cost, noise = Approx("0.1", "1e-6"), GaussianNoise(Fraction(50), l0_sensitivity=1, steps=2**20)
    entry = budget.charge(cost, "means", count=3, events=[(Event(cost, noise), 3)])
    assert entry.after.composed == Approx("0.3", "3e-6")
    assert budget.account.spent.rho == 3 / (2 * Fraction(50) ** 2)
    assert budget.charge(Pure("0.02"), "count").after.composed == Approx("0.32", "3e-6")


def test_the_risk_reached_is_the_largest_so_far():
    budget = Budget(epsilon=10)
    for _ in range(5):
        budget.charge(Pure(1), "crosstab", "geometric")
    for number, known in ((2, 0.25), (3, 0.125), (5, 0.5)):
        before = budget.spent, budget.left
        budget.answered(number, known)
        assert (budget.spent, budget.left) == before
    risks = budget.entries["cumulative_dr_ha"]
    assert math.isnan(risks[1])
    assert risks.tolist()[1:] == [0.25, 0.25, 0.25, 0.5]
    assert budget.entries["epsilon"].tolist() == [1.0] * 5
    cumulative, *charges = repr(budget).splitlines()[4:]
    risk = "50 % of records, the largest of all tables so far, each at the total loss by then"
    assert cumulative == f"  risk   {risk} (cumulative_dr_ha)"
    assert all(line.endswith("delta 0        geometric") for line in charges)
    assert table(budget)[4][:2] == ["risk", f"{risk} (cumulative_dr_ha)"]
    assert not [cell for row in table(budget)[5:] for cell in row if "%" in cell]


@pytest.mark.parametrize("number", [0, 2, -1, True, None, "1", 1.5], ids=repr)
def test_risks_belong_to_charges(number):
    budget = Budget(epsilon=1)
    budget.charge(Pure(0.5), "x")
    with pytest.raises(ParameterError, match=r"^'number' must be"):
        budget.answered(number, 0.5)
    assert budget.entries["cumulative_dr_ha"].isna().all()


@pytest.mark.parametrize("known", [-0.1, 1.5, float("nan"), "0.5", True], ids=repr)
def test_risks_are_probabilities(known):
    budget = Budget(epsilon=1)
    budget.charge(Pure(0.5), "x")
    with pytest.raises(ParameterError, match=r"^'risk' must be"):
        budget.answered(1, known)
    assert budget.entries["cumulative_dr_ha"].isna().all()


def test_risks_are_noted_while_others_charge(busy):
    budget = Budget(epsilon=1000)

    def work():
        for _ in range(50):
            budget.answered(budget.charge(Pure(1), "crosstab").number, 0.5)

    run(*[work] * 8)
    assert budget.entries["cumulative_dr_ha"].tolist() == [0.5] * 400
    assert budget.spent == (400, 0)


def test_one_budget_serves_one_kind_of_neighbours():
    budget = Budget(epsilon=1)
    budget.bind(Unit("replace_one"))
    budget.bind(Unit("replace_one"))
    with pytest.raises(BudgetError, match=r"'replace_one' neighbours.*'add_remove'") as caught:
        budget.bind(Unit("add_remove"))
    assert not isinstance(caught.value, BudgetExceeded)
    assert "neighbors=" in caught.value.hint
    assert budget.unit == Unit("replace_one")


# Threads.


def test_threads_share_a_budget_without_overspending(busy):
    budget = Budget(epsilon=5)
    accepted, refused = [], []

    def work():
        for _ in range(50):
            try:
                accepted.append(budget.charge(Pure("1/100"), "mean").number)
            except BudgetExceeded:
                refused.append(1)

    run(*[work] * 32)
    assert len(accepted) == 500
    assert len(refused) == 32 * 50 - 500
    assert sorted(accepted) == list(range(1, 501))
    assert budget.spent == (5, 0)
    assert budget.left == (0, 0)
    assert len(budget.entries) == 500


def test_a_read_while_others_charge_is_consistent(busy):
    budget = Budget(epsilon=1000)

    def charge():
        for _ in range(100):
            budget.charge(Pure(1), "mean", "laplace")

    def read():
        for _ in range(40):
            frame = budget.entries
            assert frame["epsilon"].tolist() == [1.0] * len(frame)
            assert frame.index.tolist() == list(range(1, len(frame) + 1))

    run(charge, charge, charge, read, read)
    assert len(budget.entries) == 300


@pytest.mark.full
def test_the_summary_agrees_with_the_rows_while_others_charge(busy):
    budget = Budget(epsilon=1000)

    def charge():
        for _ in range(100):
            budget.charge(Pure(1), "mean")

    def read():
        for _ in range(60):
            lines = repr(budget).splitlines()
            assert int(lines[2].split()[2]) == len(lines) - 4
            cells = table(budget)
            assert int(cells[2][1]) == len(cells) - 4

    run(charge, charge, charge, read)


def test_only_one_of_many_binds(busy):
    budget = Budget(epsilon=1)
    bound, refused = [], []

    def bind(neighbors):
        def work():
            try:
                budget.bind(Unit(neighbors))
                bound.append(neighbors)
            except BudgetError:
                refused.append(neighbors)

        return work

    run(*[bind("add_remove"), bind("replace_one")] * 16)
    assert set(bound) == {budget.unit.neighbors}
    assert len(bound) == len(refused) == 16


# Text.


class Cells(HTMLParser):
    """The cells of a table, row by row, and all tags."""

    def __init__(self):
        super().__init__()
        self.rows, self.tags, self.caption, self.inside = [], set(), "", None

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.inside = tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.inside == "caption":
            self.caption += data


def parse(budget):
    parser = Cells()
    parser.feed(budget._repr_html_())
    return parser


def table(budget):
    return parse(budget).rows


@pytest.fixture
def spent():
    budget = Budget(epsilon=1, delta=1e-6)
    budget.bind(Unit("replace_one"))
    budget.charge(Pure("1/3"), "mean of age", "laplace")
    budget.charge(Approx(0.5, 1e-7), "sum of <b>age</b> & more", "gaussian")
    return budget


def test_the_text_holds_totals_and_charges(spent):
    lines = [line.split() for line in repr(spent).splitlines()]
    assert lines[0] == ["Privacy", "budget,", "neighbors", "replace_one"]
    assert lines[1] == ["total", "epsilon", "1", "delta", "1e-06"]
    assert lines[2] == ["spent", "epsilon", "0.833334", "delta", "1e-07"]
    assert lines[3] == ["left", "epsilon", "0.166666", "delta", "9e-07"]
    assert lines[4] == ["1", "Mean", "of", "age", "epsilon", "0.333334", "delta", "0", "laplace"]
    assert lines[5][-5:] == ["epsilon", "0.5", "delta", "1e-07", "gaussian"]
    assert repr(Budget(epsilon=1)).splitlines()[0] == "Privacy budget"


def test_the_table_holds_totals_and_charges(spent):
    parsed = parse(spent)
    assert parsed.caption == "Privacy budget, neighbors replace_one"
    assert parsed.rows == [
        ["", "epsilon", "delta", "mechanism"],
        ["total", "1", "1e-06"],
        ["spent", "0.833334", "1e-07"],
        ["left", "0.166666", "9e-07"],
        ["1. Mean of age", "0.333334", "0", "laplace"],
        ["2. Sum of <b>age</b> & more", "0.5", "1e-07", "gaussian"],
    ]


def test_labels_and_mechanisms_are_escaped(spent):
    spent.charge(Pure(0.01), "<script>alert(1)</script>", '<img src="x">')
    parsed = parse(spent)
    assert parsed.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert parsed.rows[-1][0] == "3. <script>alert(1)</script>"
    assert parsed.rows[-1][-1] == '<img src="x">'


@pytest.mark.parametrize(
    "epsilon", ["1e400", "1e-400", Fraction(10**400 + 1, 3)], ids=["huge", "tiny", "third"]
)
def test_totals_beyond_doubles_can_be_read_or_are_refused(epsilon):
    try:
        budget = Budget(epsilon)
    except ParameterError:
        return
    assert budget.spent == (0, 0)
    assert budget.left[1] == 0
    assert "total" in repr(budget)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_budget_has_no_double_that_would_not_count(duplicate):
    budget = Budget(epsilon=1)
    with pytest.raises(BudgetError, match="cannot be copied"):
        duplicate(budget)
    budget.charge(Pure(1), "count")
    with pytest.raises(BudgetExceeded):
        budget.charge(Pure("0.001"), "count")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_budget_in_memory_is_not_charged_in_a_forked_process():
    budget = Budget(epsilon=1)
    refusal = refused_in_a_fork(lambda: budget.charge(Pure("0.5"), "count"))
    assert b"belongs to the process that made it; a fork made this copy. Nothing was charged." in refusal
    budget.charge(Pure(1), "count")


def test_a_risk_that_was_reached_is_not_taken_back():
    budget = Budget(1)
    number = budget.charge(Pure(0.5), "table").number
    for risk in (np.float32(0.5), 0.25, 0):
        budget.answered(number, risk)
    assert budget.entries["cumulative_dr_ha"].tolist() == [0.5]
    with pytest.raises(ParameterError, match="'number' must be that of a charge"):
        budget.answered(1.0, 0.5)


def traced(action, at=None):
    """Run an action, interrupted before a line that changes the book; return how many such lines ran."""
    count = 0

    def line(frame, event, _):
        nonlocal count
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and "with self._lock" not in text:  # Python itself takes and frees a lock whole
            count += 1
            if count == at:
                raise KeyboardInterrupt
        return line

    def call(frame, *_):
        within = frame.f_code.co_filename.endswith("pdprivacy/ledger/book.py")
        return line if within and frame.f_code.co_name == "charge" else None

    sys.settrace(call)
    try:
        action()
    finally:
        sys.settrace(None)
    return count


def test_an_interrupt_at_any_line_enters_a_charge_whole_or_not_at_all():
    lines = traced(lambda: Budget(1).charge(Pure("0.25"), "count", release_id="a"))
    assert lines > 5
    for at in range(1, lines + 1):
        budget = Budget(1)
        budget.charge(Pure("0.25"), "before")
        with pytest.raises(KeyboardInterrupt):
            traced(lambda budget=budget: budget.charge(Pure("0.25"), "count", release_id="a"), at)
        entered = budget.account.charges - 1
        assert entered == (at == lines)  # the last line returns what the line before it entered
        assert budget.spent == (0.25 + 0.25 * entered, 0)
        assert len(budget.entries) == 1 + entered
        if entered:
            with pytest.raises(AlreadyCharged):
                budget.charge(Pure("0.25"), "count", release_id="a")
        else:
            assert budget.charge(Pure("0.25"), "count", release_id="a").number == 2
        budget.answered(2, 0.5)
        assert budget.entries["answered"].tolist() == [False, True]
        assert budget.spent == (0.5, 0)


def test_a_signal_within_a_charge_reads_the_budget_and_cannot_charge_it(monkeypatch):
    budget = Budget(1)
    refused = []

    def within(*given):
        assert budget.left == (1, 0)
        with pytest.raises(BudgetError, match=r"changing the budget already\. Nothing was charged"):
            budget.charge(Pure("0.5"), "nested")
        refused.append(given)
        return original(*given)

    original = Account.charge
    monkeypatch.setattr(Account, "charge", within)
    budget.charge(Pure("0.5"), "count")
    assert len(refused) == 1
    monkeypatch.undo()
    budget.charge(Pure("0.5"), "count")
    assert budget.left == (0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_reads_a_budget_that_another_thread_charges():
    budget = Budget(1)
    with budget._book._lock:  # as another thread of the parent holds it at the moment of the fork
        child = os.fork()
        if not child:
            thread = threading.Thread(target=lambda: os._exit(0 if budget.left == (1, 0) else 1))
            thread.start()
            thread.join(20)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


FEW, MANY = 600, 1600


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "budget.db") as made:
        yield made


def play(budgets):
    """Charge all budgets in turns, and answer late, out of order and with risks; return what was noted."""
    chance = random.Random(7)
    noted = {budget: [] for budget in budgets}
    for turn in range(24):
        for budget, answers in noted.items():
            release = f"week {turn}" if turn % 3 else None
            assert budget.charge(Pure(0.125), f"mean {turn}", release_id=release).number == turn + 1
            answers.append((False, None))
            for number in chance.sample(range(len(answers)), k=min(len(answers), chance.randrange(3))):
                risk = chance.choice([None, 0.25, 0.5, chance.random()])
                budget.answered(number + 1, risk=risk)
                known = [value for value in (answers[number][1], risk) if value is not None]
                answers[number] = True, max(known, default=None)
    return noted


def test_every_page_holds_the_rows_of_the_whole_table(ledger):
    budgets = [ledger.open("survey", Pure(100)), ledger.open("patients", Pure(100)), Budget(epsilon=100)]
    for budget, answers in play(budgets).items():
        whole = budget.entries
        assert whole.index.tolist() == list(range(1, 25))
        assert whole["release"].tolist() == [f"mean {turn}" for turn in range(24)]
        assert whole["release_id"].tolist() == [f"week {turn}" if turn % 3 else None for turn in range(24)]
        assert whole["answered"].tolist() == [answered for answered, _ in answers]
        for index, reached in enumerate(whole["cumulative_dr_ha"].tolist()):
            risks = [risk for _, risk in answers[: index + 1] if risk is not None]
            assert math.isnan(reached) if not risks else reached == max(risks)
        if budget.name != "survey":
            continue
        for start, stop in itertools.product((None, -30, -7, 0, 11, 24, 99), repeat=2):
            page = ledger.entries(budget.name, start, stop)
            pd.testing.assert_frame_equal(page, whole.iloc[start:stop])
        pages = [ledger.entries(budget.name, start, start + 7) for start in range(0, 24, 7)]
        pd.testing.assert_frame_equal(pd.concat(pages), whole, check_index_type=False)


def test_a_page_of_a_budget_without_charges_is_empty(ledger):
    budget = ledger.open("survey", Pure(1))
    pd.testing.assert_frame_equal(ledger.entries("survey", -5, 5), budget.entries)
    assert len(budget.entries) == 0
    with pytest.raises(LedgerError, match="holds no budget 'other'"):
        ledger.entries("other", 0, 1)


@pytest.mark.parametrize("position", [1.0, "1", True, [1], math.nan, pd.Series([1])])
@pytest.mark.parametrize("argument", ["start", "stop"])
def test_pages_begin_and_end_at_whole_numbers(ledger, argument, position):
    ledger.open("survey", Pure(1))
    with pytest.raises(ParameterError, match=f"'{argument}' must be a whole number"):
        ledger.entries("survey", **{argument: position})


def peak(read):
    """The most memory that is allocated at a time while something is read, after it was read once before."""
    read()
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.full  # the charges are durable
def test_no_charge_is_kept_in_memory_while_a_budget_is_read(ledger):
    few, many = ledger.open("few", Pure(10**6)), ledger.open("many", Pure(10**6))
    for number in range(MANY):
        for budget in (few, many)[number >= FEW :]:
            budget.charge(Pure(0.001), "mean of age")

    def grows(read):
        """Bytes for each of the charges that one budget has more than the other."""
        return (peak(lambda: read(many)) - peak(lambda: read(few))) / (MANY - FEW)

    assert grows(lambda budget: budget.entries) < 500
    assert grows(lambda budget: ledger.entries(budget.name, -10)) < 20
