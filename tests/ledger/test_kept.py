"""Ledgers and stored releases of an earlier version (`tests/ledgers`) are read and continued."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pdprivacy import Ledger, Pure
from pdprivacy.errors import AlreadyCharged, BudgetError, BudgetExceeded, ParameterError
from tests.support import kept_ledgers
from tests.support.kept_ledgers import FACTS, FOLDER, LEDGER, LEFT_BEHIND

MADE = sorted(path.name for path in FOLDER.iterdir())


@pytest.fixture(params=MADE)
def made(request, tmp_path) -> Path:
    """A copy of what a version wrote."""
    return Path(shutil.copytree(FOLDER / request.param, tmp_path / "moved"))


def told(made: Path, state: str) -> dict[str, Any]:
    return json.loads((made / FACTS).read_text(encoding="utf-8"))[state]


def path_of(made: Path, state: str) -> Path:
    return made / LEDGER if state == "closed" else made / state / LEDGER


@pytest.mark.parametrize("state", ["closed", "in_use"])
def test_all_that_a_ledger_told_is_read_again(made, state):
    facts = kept_ledgers.facts(path_of(made, state))
    assert json.loads(json.dumps(facts)) == told(made, state)


def test_a_charge_is_kept_of_which_the_process_was_killed(made):
    with Ledger(path_of(made, "in_use")) as ledger:
        assert ledger.entries("basic", start=-1)["release"].tolist() == [LEFT_BEHIND]
    closed, used = (told(made, state)["budgets"]["basic"] for state in ("closed", "in_use"))
    assert used["charges"] == closed["charges"] + 1
    assert used["spent"] == pytest.approx(closed["spent"] + 0.01)


@pytest.mark.parametrize("state", ["closed", "in_use"])
def test_a_ledger_goes_on_where_it_was(made, state):
    facts = told(made, state)
    with Ledger(path_of(made, state)) as ledger:
        for name, before in facts["budgets"].items():
            budget = ledger.budget(name)
            with pytest.raises(BudgetExceeded):
                budget.charge(Pure(100), "too much")
            cost = Pure("0.01")
            budget.charge(cost, "one more", release_id="one more")
            assert ledger.budgets["charges"][name] == before["charges"] + 1
            if before["accounting"] == "basic":
                assert budget.spent[0] == pytest.approx(before["spent"] + 0.01)
            else:
                assert budget.spent[0] > before["spent"]
            with pytest.raises(AlreadyCharged):
                budget.charge(cost, "one more", release_id="one more")
        audit = ledger.audit(head=facts["head"])  # remembered by the version that wrote it
        assert audit.charges == facts["audit"][1] + len(facts["budgets"])


def test_a_release_is_not_charged_twice(made):
    with Ledger(path_of(made, "closed")) as ledger:
        frame = kept_ledgers.survey()
        private = frame.dp.protect(kept_ledgers.DOMAIN, epsilon=10, delta="1e-3", budget=ledger, name="basic")
        with pytest.raises(AlreadyCharged, match="its answer was handed out"):
            private.dp.mean("age", epsilon="1/3", release_id="mean, 2026")
        with pytest.raises(BudgetError, match="do not add up"):
            frame.dp.protect(kept_ledgers.DOMAIN, budget=ledger, name="persons", epsilon=10, delta="1e-3")
        with pytest.raises(ParameterError, match="another total"):
            frame.dp.protect(kept_ledgers.DOMAIN, budget=ledger, name="basic", epsilon=11)


def test_a_step_that_was_made_returns_what_it_stored(made):
    results = kept_ledgers.step_of(made)(kept_ledgers.survey(), release_id="2026-05")
    assert set(results) == {"table", "mean"}
    assert all(release.dp.verify() for release in results.values())
    assert results["table"].attrs["dp"]["epsilon"] == 0.5
    with Ledger(made / LEDGER) as ledger:
        assert ledger.head == told(made, "closed")["head"]
