"""The page of what must be right for a number to be private, with the size and the tests of each file.

``python -m tests.support.trusted --write`` writes `docs/trust.md` from the package as it is; without
``--write`` it says what differs. Sizes may lag behind by a tenth.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import re
import sys
import tokenize
from pathlib import Path

import pdprivacy

__all__ = ["PAGE", "ROOMS", "code_lines", "differences", "page"]

PACKAGE = Path(pdprivacy.__file__).parent
TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "trust.md"

ROOMS = {
    "exact.py": "Numbers are rounded to the stated side.",
    "declaration/domain.py": "A domain holds every value that a declared cell may have.",
    "declaration/intervals.py": "An interval of a result holds all results.",
    "declaration/timeline.py": "Dates and durations become whole numbers, and none is moved.",
    "declaration/cell_types.py": "A column of cells is of the declared kind, or refused.",
    "core/noise": "Each draw has exactly the stated law, from the entropy of the operating system.",
    "core/distributions.py": "Distribution functions are those of the laws; bounds are on the safe side.",
    "core/privacy.py": "Losses are exact rational numbers, and none is below the one that was asked for.",
    "core/mechanisms": "The loss of a mechanism, computed from its law, is at most what it states.",
    "core/sensitivities.py": "No pair of neighbours within the declaration moves a statistic further.",
    "core/statistics": "The parts of a statistic move at most as stated, and are whole numbers on a grid.",
    "core/accounting": "The losses of several releases together are at most what is counted.",
    "core/rows": "A row step looks at one record at a time; its result lies in the derived domain.",
    "core/conform.py": "Every cell that is kept meets the declaration; every fault has its declared fate.",
    "core/engines": "A read is exact, and clamped to the bounds of its calibration.",
    "core/gate": "The cost is charged before a cell is read, and nothing but drawn numbers leaves.",
    "ledger": "A charge is on the disk before an answer is given, none is lost, and changes show.",
}
"""What each part of the package must get right."""

OTHER = "core/engines/other"
BLANK = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)

HEAD = """# What to read to trust a number

The gate alone charges, reads the records and draws noise for a release, and it takes sensitivities, noise
and price from the files below. A protected frame holds two values: public facts, and its records under a
seal. The verbs in `releases/` are handed facts alone; they choose the statistic, its columns and the
arguments of the noise, and make a result of the noisy numbers. Before a charge, `core/gate/verification.py`
recomputes shares, losses and bounds of what it is handed, and refuses a release that loses more than it
pays; a fault of a verb is found there. `core/gate` breaks the seal, in three files:
`execute.py` for a release that is paid for; `parts.py` for row steps, groups and secret parts, which give
one protected frame for another; `curator.py` for figures [for the curator](api/curator.rst), who publishes
none of them. A test of the syntax trees refuses every other module that names records, and every module but
five of `risk/` and `amplification/` that takes figures for the curator.

[The proof book](proofs/index.md) proves what each of these parts must get right, about the code as it is.

Lines of code are those that hold more than a comment or a docstring. Tests are given by their place under
`tests/`.

"""


@functools.cache
def code_lines(text: str) -> frozenset[int]:
    """Return the numbers of the lines of a module that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return frozenset(lines)


def files_of(part: str) -> list[Path]:
    """Return the modules of a part of the package, but for those of other engines in that of pandas."""
    path = PACKAGE / part
    files = [path] if path.suffix else sorted(path.rglob("*.py"))
    return [file for file in files if part == OTHER or OTHER not in file.as_posix()]


def tests_of(file: Path) -> str:
    """Return the test file of the name of a module, or those whose first line names it in backticks."""
    relative = file.relative_to(PACKAGE)
    named = relative.parent if file.stem == "__init__" else relative.with_suffix("")
    own = TESTS / named / f"test_{named.name}.py" if file.stem == "__init__" else None
    own = own or TESTS / relative.with_stem(f"test_{file.stem}")
    if own.is_file():
        return f"`{own.relative_to(TESTS).as_posix()}`"
    naming = re.compile(rf"`{file.stem}`")
    others = [path for path in files_of_tests() if naming.search(first_line(path))]
    return ", ".join(f"`{path.relative_to(TESTS).as_posix()}`" for path in others)


@functools.cache
def files_of_tests() -> list[Path]:
    """Return all files of tests."""
    return sorted(TESTS.rglob("test_*.py"))


@functools.cache
def first_line(path: Path) -> str:
    """Return the first line of a file."""
    with path.open(encoding="utf-8") as file:
        return file.readline()


def table_of(files: list[Path]) -> tuple[str, int]:
    """Return a table of files, and how many lines of code they have together."""
    rows, total = ["| file | lines of code | what it is | its tests |", "| --- | ---: | --- | --- |"], 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        lines = len(code_lines(text))
        if lines:
            title = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].replace("|", "\\|")
            cells = (f"`{file.relative_to(PACKAGE).as_posix()}`", str(lines), title, tests_of(file))
            rows.append(f"| {' | '.join(cells)} |")
            total += lines
    return "\n".join(rows), total


@functools.cache
def page() -> str:
    """Return the text of the page, made once of the files as they are then."""
    sections, total = [], 0
    for part, duty in ROOMS.items():
        table, lines = table_of(files_of(part))
        sections.append(f"## `{part}`\n\n{duty}\n\n{table}\n")
        total += lines
    other, beside = table_of(files_of(OTHER))
    sections.append(
        f"## `{OTHER}`\n\nReads of other engines, compared with those of pandas bit for bit.\n\n{other}\n"
    )
    whole = sum(len(code_lines(file.read_text(encoding="utf-8"))) for file in PACKAGE.rglob("*.py"))
    summary = (
        f"Together {total:,} lines of code for frames of pandas and {beside:,} for those of other engines, "
        f"of {whole:,} in the package.\n\n"
    )
    return HEAD + summary + "\n".join(sections)


def differences(text: str) -> list[str]:
    """Return what an old page has and the present one lacks, up to numbers, and the other way round."""
    number = re.compile(r"[\d,]*\d")
    old, new = ({number.sub("#", line) for line in each.splitlines()} for each in (text, page()))
    totals = [
        [int(digits.replace(",", "")) for digits in number.findall(summary_of(each))]
        for each in (text, page())
    ]
    changes = [f"- {line}" for line in sorted(old - new)] + [f"+ {line}" for line in sorted(new - old)]
    if any(abs(before - after) > after / 10 for before, after in zip(*totals, strict=True)):
        changes.append("The sizes are out of date.")
    return changes


def summary_of(text: str) -> str:
    """Return the line of a page that says how large the files are together."""
    return next(line for line in text.splitlines() if line.startswith("Together"))


def main() -> int:
    """Write the page, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/trust.md anew")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    changes = differences(PAGE.read_text(encoding="utf-8"))
    print("\n".join(changes) or "docs/trust.md is up to date.")
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
