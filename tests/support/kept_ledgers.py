"""Ledgers and stored releases as a version wrote them, which later versions must read.

``python -m tests.support.kept_ledgers NAME`` makes `tests/ledgers/NAME` with the package as it is: a closed
ledger, a copy of it that a process left behind in use, the releases that a step stored, and what all of them
hold, as the public names tell it. Folders that are there are kept as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

import pdprivacy
from pdprivacy import ZCDP, Ledger, Pure

__all__ = ["FACTS", "FOLDER", "LEDGER", "LEFT_BEHIND", "facts", "step_of", "survey"]

FOLDER = Path(__file__).parents[1] / "ledgers"
LEFT_BEHIND = "charged before the process was killed"
LEDGER, RELEASED, FACTS = "budgets.ledger", "released", "facts.json"

DOMAIN = pdprivacy.Domain(
    (
        pdprivacy.Column("age", "integer", lower=0, upper=100, bins=(0, 30, 60, 100)),
        pdprivacy.Column("region", "category", True, categories=("north", "south")),
        pdprivacy.Column("member", "boolean"),
    )
)


def survey() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [31, 54, 27, 39, 61, 18] * 5,
            "region": ["north", "south", None] * 10,
            "member": [True, False, True, True, False] * 6,
            "person": [f"p{row // 3}" for row in range(30)],
        }
    )


def step_of(folder: Path) -> Any:
    """The step whose releases are stored beside the ledger."""
    where = {"ledger": folder / LEDGER, "to": folder / RELEASED}
    return pdprivacy.release_step(schema=DOMAIN, name="step", epsilon=2, **where)(released)


def released(private: Any) -> dict[str, Any]:
    """A table by a table, and means: the releases of the step, as they were bounded by default then."""
    return {
        "table": private.dp.crosstab("age", "region", epsilon=0.5, bounding=None),
        "mean": private.dp.groupby("member").mean("age", epsilon=0.25, bounding=None),
    }


def _spend(folder: Path) -> None:
    ledger = Ledger(folder / LEDGER)
    frame = survey()
    for name, terms in {
        "basic": {"epsilon": 10, "delta": "1e-3"},
        "filter": {"epsilon": 10, "delta": "1e-3", "accounting": "filter"},
        "rho": {"rho": 2, "accounting": "zcdp"},
        "persons": {
            "epsilon": 10, "delta": "1e-3", "unit": "person", "max_rows": 2, "neighbors": "replace_one"},
    }.items():  # fmt: skip
        private = frame.dp.protect(DOMAIN, budget=ledger, name=name, **terms)
        dp = private.dp
        dp.mean("age", epsilon="1/3", release_id="mean, 2026")
        dp.count(epsilon=0.1, delta="1e-6", mechanism="gaussian")
        dp.value_counts("region", epsilon=0.2, releases=3)
        dp.crosstab("region", "member", epsilon=0.25)  # its risk is noted
        dp.median("age", epsilon=0.1)
        if name == "basic":
            dp.partition("region", epsilon=0.125)
            dp.plan_releases([("count", {"epsilon": 0.1}), ("mean", "age", {"epsilon": 0.1})]).release()
    clerk = ledger.open("clerk, žluťoučký kůň", Pure(1))
    clerk.charge(Pure("1/7"), "counts by hand", count=3, release_id="by hand")
    clerk.answered(clerk.charge(Pure("0.1"), "a table by hand").number, risk=0.125)
    for item in (Pure("0.05"), ZCDP("0.001")):
        ledger.open("mixed", ZCDP(1), "zcdp").charge(item, "a number by hand")
    step_of(folder)(frame, release_id="2026-05")
    ledger.close()


def facts(path: Path) -> dict[str, Any]:
    """All that a ledger tells by public names: budgets, charges, head and audit."""
    with Ledger(path) as ledger:
        audit = ledger.audit()
        budgets = ledger.budgets
        return {
            "head": ledger.head,
            "audit": [audit.records, audit.charges, audit.budgets, audit.unanswered],
            "budgets": json.loads(budgets.to_json(orient="index", double_precision=15)),
            "entries": {
                name: json.loads(
                    ledger.entries(name)
                    .rename(columns={"cumulative_dr_ha": "dr_ha"})  # the name in the version that wrote them
                    .to_json(orient="records", double_precision=15, date_format="iso")
                )
                for name in budgets.index
            },
            "units": {name: str(ledger.budget(name).unit) for name in budgets.index},
            "composed": {name: str(ledger.budget(name).composed) for name in budgets.index},
        }


def _leave(path: str) -> None:
    """Charge, and end without closing anything, as a process that is killed does."""
    Ledger(path).budget("basic").charge(Pure("0.01"), LEFT_BEHIND)
    os._exit(0)


def _make(folder: Path) -> None:
    folder.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _spend(folder)
    recorded = {"closed": facts(folder / LEDGER)}
    used = folder / "in_use"
    used.mkdir()
    shutil.copy(folder / LEDGER, used)
    leave = "import sys; from tests.support import kept_ledgers; kept_ledgers._leave(sys.argv[1])"
    subprocess.run([sys.executable, "-c", leave, str(used / LEDGER)], check=True)
    reopened = folder / "again"
    shutil.copytree(used, reopened)
    recorded["in_use"] = facts(reopened / LEDGER)
    shutil.rmtree(reopened)
    for directory in (folder, used):
        for end in ("-lock", "-shm"):
            (directory / f"{LEDGER}{end}").unlink(missing_ok=True)
    (folder / FACTS).write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _make(FOLDER / sys.argv[1])
