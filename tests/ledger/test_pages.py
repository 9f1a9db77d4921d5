"""Pages of the charges of a budget: the rows of the whole table, in memory for the page alone."""

from __future__ import annotations

import itertools
import math
import random
import tracemalloc

import pandas as pd
import pytest

from pdprivacy import Budget, Ledger, Pure
from pdprivacy.errors import LedgerError, ParameterError

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
                known = [one for one in (answers[number][1], risk) if one is not None]
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
        for place, reached in enumerate(whole["cumulative_dr_ha"].tolist()):
            risks = [risk for _, risk in answers[: place + 1] if risk is not None]
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
