"""The charges and reads of every verb on every engine, as text that is kept in `tests/oracle`.

``python -m tests.support.oracle --write`` writes the files from the package as it is; without ``--write`` it
says what differs. Engines that are not there (Spark without Java) keep what the files say of them.

A case is one call on a fixed frame. Its text has a line per charge, draw of noise, selection and choice of
records, and one for the answer when all noise is left out. Exact numbers are written exactly. What floating
point computes is written with nine digits: all versions of the dependencies agree on these.
"""

from __future__ import annotations

import argparse
import difflib
import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy import errors
from pdprivacy.releases import metadata, projection
from tests.support import spark
from tests.support.oracle_cases import CASES, FAMILIES, Case
from tests.support.oracle_frames import ENGINES, available, frame_of, protected
from tests.support.recorder import recording
from tests.support.records import Charge, Coins, Draw, Event, Record, Selection

__all__ = ["FOLDER", "computed", "differences", "stored"]

FOLDER = Path(__file__).parents[1] / "oracle"
DIGITS = 9
SHORT = 60
"""Bits of a numerator and a denominator that are written exactly."""


# ---------------------------------------------------------------- numbers and records as text


def number(value: Any) -> str:
    """An exact number exactly, a power of two as one, and anything else with nine digits."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, Fraction):
        if value.denominator == 1 and value.numerator.bit_length() <= 2 * SHORT:
            return str(value.numerator)
        if value.numerator == 1 and value.denominator & (value.denominator - 1) == 0:
            return f"2^-{value.denominator.bit_length() - 1}"
        if max(value.numerator.bit_length(), value.denominator.bit_length()) <= SHORT:
            return f"{value.numerator}/{value.denominator}"
    value = float(value)
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return f"{value + 0.0:.{DIGITS}g}".replace("-0", "0", 1) if value == 0 else f"{value:.{DIGITS}g}"


def numbers(values: Iterable[Any]) -> str:
    return " ".join("-" if value is None else number(value) for value in values)


def loss(charge: Charge | Event) -> str:
    if charge.rho is not None:
        return f"rho {number(charge.rho)}"
    return f"epsilon {number(charge.epsilon)}" + (f" delta {number(charge.delta)}" if charge.delta else "")


def line(record: Record) -> str:
    """A charge, draw, selection or choice in one line."""
    if isinstance(record, Charge):
        text = f"charge {loss(record)}" + (f" x {record.count}" if record.count > 1 else "")
        text += f" {record.label!r}" + (f" by {record.mechanism}" if record.mechanism else "")
        if record.of_group:
            text += ", of a group"
        events = [event(entry) for entry in record.events]
        return text if events == [loss(record)] else f"{text}: {'; '.join(events)}"
    if isinstance(record, Draw):
        return draw(record)
    if isinstance(record, Selection):
        runs = zip(record.starts, record.lengths, record.scores, strict=True)
        whole = all(length == 1 for length in record.lengths)
        scores = [str(score) if whole else f"{start}+{length}:{score}" for start, length, score in runs]
        return (
            f"select by {record.mechanism}, scale {number(record.scale)}"
            f", sensitivity {number(record.sensitivity)}"
            f"{', monotone' if record.monotone else ''}"
            f"{f', in 1/{record.parts}' if record.parts > 1 else ''} | {' '.join(scores)}"
        )
    assert isinstance(record, Coins)
    return f"{record.kind} of {record.size} | {numbers(record.parameters)}"


def event(entry: Event) -> str:
    text = (
        loss(entry)
        + (f" x {entry.times}" if entry.times > 1 else "")
        + (" in a group" if entry.grouped else "")
    )
    if entry.gaussian is not None:
        multiplier, moves, steps = entry.gaussian
        # a deviation of a million steps or more is rounded down; the last step is beyond nine digits
        text += f" Gaussian of {number(float(multiplier))}, moves {moves}, steps {number(float(steps))}"
    return text


def draw(release: Draw) -> str:
    name, (first, *others) = release.law.name, release.law.parameters
    if name == "laplace":
        law = f"Laplace of {number(first * release.grid)}"
    elif name == "gaussian":
        law = f"Gaussian of {number(math.sqrt(first) * float(release.grid))}"
    elif name == "staircase":
        law = " ".join(["Staircase of", *(number(part * release.grid) for part in others)])
    else:
        scale = math.exp(_log(others[0]) / float(first)) * float(release.grid)
        law = f"order {number(first)} of {number(scale)}"
    text = f"draw {release.part!r}, weight {number(release.weight)}, l1 {release.l1}"
    if release.l2_squared != release.l1**2:
        text += f", l2 squared {release.l2_squared}"
    if release.moves > 1:
        text += f", moves {release.moves}"
    text += f", unit {number(release.unit)}; {law} on {number(release.grid)}"
    text += f" ({release.mechanism} {number(release.epsilon)}"
    text += f" {number(release.delta)})" if release.delta else ")"
    text += f" | {numbers(release.integers)}"
    if release.below is not None and release.above is not None:
        text += f" | within {numbers(release.below)} | {numbers(release.above)}"
    return text


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def answer(result: Any) -> Iterator[str]:
    """Shape, labels, types and values of what came out, when all noise was left out, before a projection."""
    if isinstance(result, pd.DataFrame | pd.Series) and metadata.recognized(result).what == "release":
        result = projection.unprojected(result)
    if isinstance(result, pd.DataFrame):
        kinds = " ".join(kind(item) for item in result.dtypes)
        yield f"= frame of {labels(result.columns)} ({kinds}) by {labels(result.index)}"
        for row in result.itertuples(index=False, name=None):
            yield "  " + " ".join(map(cell, row))
    elif isinstance(result, pd.Series):
        name = "" if result.name is None else f" {result.name!r}"
        yield f"= series{name} ({kind(result.dtype)}) by {labels(result.index)}"
        yield "  " + " ".join(map(cell, result))
    elif isinstance(result, dict):
        for key, value in result.items():
            yield f"at {key!r}"
            yield from answer(value)
    elif isinstance(result, list | tuple):
        if all(isinstance(item, str | int | float | Fraction | np.number) for item in result):
            yield "= " + ", ".join(map(cell, result))
        else:
            for item in result:
                yield from answer(item)
    elif isinstance(result, str):
        yield from (f"= {item.rstrip()}" for item in result.splitlines())
    else:
        yield f"= {cell(result)}"


def cell(value: Any) -> str:
    if value is None or value is pd.NA:
        return "null"
    return number(value) if isinstance(value, int | float | Fraction | np.number | np.bool_) else str(value)


def kind(dtype: Any) -> str:
    """The type of a column; texts are one type in all versions of pandas."""
    return "text" if str(dtype) in ("object", "str", "string") else str(dtype)


def labels(index: pd.Index[Any]) -> str:
    names = "" if set(index.names) == {None} else f"{' '.join(map(str, index.names))}: "
    if isinstance(index, pd.MultiIndex):
        return names + " ".join("/".join(map(label, key)) for key in index)
    return f"{names}{' '.join(map(label, index))}"


def label(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "null"
    return number(value) if isinstance(value, int | float | np.number | np.bool_) else str(value)


# ---------------------------------------------------------------- cases


class Frames:
    """Protected frames of one engine; those that no case changes are shared."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._made: dict[str, Any] = {}

    def of(self, case: Case) -> Any:
        """The arguments of the call of a case."""
        if case.family == "budgets":
            return lambda **terms: protected(self._engine, **terms)
        if case.family == "pipeline":
            return frame_of(self._engine)
        if case.fresh:
            return protected(self._engine, case.setting).dp
        if case.setting not in self._made:
            try:
                self._made[case.setting] = protected(self._engine, case.setting)
            except errors.PrivacyError as error:
                self._made[case.setting] = error
        private = self._made[case.setting]
        if isinstance(private, errors.PrivacyError):
            raise type(private)(*private.args)
        return private.dp


def text_of(case: Case, frames: Frames) -> str:
    """All lines of a case."""
    with recording("none") as record, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lines = list(answer(case.call(frames.of(case))))
        except errors.PrivacyError as error:
            lines = [f"refused by {type(error).__name__}"]
    return "\n".join([*map(line, record.records), *lines])


def asks(case: Case, engine: str) -> bool:
    """Whether a case is asked of an engine; an empty frame of Spark is not."""
    return engine == "pandas" or (case.engines and not (engine == "Spark" and "empty" in case.setting))


def computed(engine: str, few: int = 0, part: str = "") -> dict[str, str]:
    """The texts of all cases on an engine, by title.

    ``few``: of the plain cases each second, or twentieth. ``part``: cases with this in their title.
    """
    frames = Frames(engine)
    cases = [case for case in CASES.values() if asks(case, engine)]
    if few:
        plain = [case for case in cases if case.engines and case.setting == "add_remove"]
        cases = plain[::few]
    return {case.title: text_of(case, frames) for case in cases if part in case.title}


# ---------------------------------------------------------------- files


def stored() -> dict[str, dict[str, str]]:
    """The text of each case by engine, as the files say."""
    texts: dict[str, dict[str, str]] = {}
    for family in FAMILIES:
        path = FOLDER / f"{family}.txt"
        if not path.exists():
            continue
        title, engines, lines = "", [], []
        for text in [*path.read_text(encoding="utf-8").splitlines(), "== "]:
            if text.startswith(("== ", "-- ")):
                for engine in engines:
                    texts.setdefault(title, {})[engine] = "\n".join(lines)
                engines, lines = [], []
                if text.startswith("== "):
                    title = text[3:]
                else:
                    engines = text[3:].split(", ")
            elif text and engines:
                lines.append(text)
    return texts


def write(texts: dict[str, dict[str, str]]) -> None:
    """The files of these texts: engines with the same text share it."""
    FOLDER.mkdir(exist_ok=True)
    for family in FAMILIES:
        blocks = []
        for case in CASES.values():
            if case.family == family and case.title in texts:
                by_text: dict[str, list[str]] = {}
                for engine in ENGINES:
                    if engine in texts[case.title]:
                        by_text.setdefault(texts[case.title][engine], []).append(engine)
                parts = [f"-- {', '.join(engines)}\n{text}" for text, engines in by_text.items()]
                blocks.append("\n".join([f"== {case.title}", *parts]))
        (FOLDER / f"{family}.txt").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def differences(engine: str, actual: dict[str, str], references: dict[str, dict[str, str]]) -> list[str]:
    """Differences from the files, as the lines of a diff."""
    lines = []
    for title, text in actual.items():
        expected = references.get(title, {}).get(engine)
        if expected is None:
            lines.append(f"{title} on {engine}: not in the files")
        elif text != expected:
            names = f"{title} (stored)", f"{title} on {engine}"
            both = expected.splitlines(), text.splitlines()
            lines += difflib.unified_diff(*both, *names, n=1, lineterm="")
    return lines


def main(arguments: list[str]) -> int:
    """Compare, or with ``--write`` write; of all engines and cases, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", help=", ".join(ENGINES))
    parser.add_argument("--case", default="", help="only cases whose title holds this text")
    parser.add_argument("--write", action="store_true", help="write what is found into the files")
    options = parser.parse_args(arguments)
    references, every = stored(), {}
    wrong: list[str] = []
    if not spark.missing():
        spark.session()
    for engine in options.engines or ENGINES:
        if not available(engine):
            print(f"{engine}: not here")
            continue
        every[engine] = computed(engine, part=options.case)
        lines = differences(engine, every[engine], references)
        print(f"{engine}: {len(every[engine])} cases, {len(lines)} lines differ", flush=True)
        wrong += lines
    if not options.write:
        print("\n".join(wrong))
        return int(bool(wrong))
    references = {title: engines for title, engines in stored().items() if title in CASES}
    for engine, texts in every.items():
        for title, engines in references.items():
            if options.case in title:
                engines.pop(engine, None)
        for title, text in texts.items():
            references.setdefault(title, {})[engine] = text
    write(references)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
