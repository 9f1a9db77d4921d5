"""The size of the package, and what a warm release passes through: what is to shrink, as text.

    python -m tests.benchmarks.house

Lines of code: lines that hold a token of Python (`tokenize`) other than comments, line ends and indentation,
without docstrings of modules, classes and functions (`ast`). A statement over three lines counts three.
Functions: their lines of code from ``def`` to the end, functions within them included, decorators left out.
Files and functions entered: by `sys.setprofile`, in the second call, of the package's own Python code; each
function counts once, comprehensions and lambdas are left out. Depth: the most frames of the package on the
stack at once, these included. Times: the least of many calls. Import: the least time that importing pdprivacy
takes in fresh processes that have imported pandas.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import pdprivacy
from pdprivacy import Column, Domain
from tests.support.trusted import code_lines

PACKAGE = Path(pdprivacy.__file__).parent
LONG_MODULE, LONG_FUNCTION = 400, 50


def sizes() -> None:
    """Modules, lines of code, what is too long, and names that are used twice."""
    modules, functions, stems, classes = {}, {}, Counter[str](), Counter[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text(encoding="utf-8")
        lines = code_lines(text)
        modules[name] = len(lines)
        stems.update([path.stem] if path.stem not in ("__init__", "__main__") else [])
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = lines & set(range(node.lineno, (node.end_lineno or 0) + 1))
                functions[f"{name}:{node.name}"] = len(inside)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.update([node.name])
    print(f"modules                           {len(modules)}")
    print(f"lines of code                     {sum(modules.values())}")
    show(f"modules over {LONG_MODULE} lines", {key: n for key, n in modules.items() if n > LONG_MODULE})
    longest = {key: n for key, n in functions.items() if n > LONG_FUNCTION}
    show(f"functions over {LONG_FUNCTION} lines", longest)
    show("stems of modules used twice", {key: n for key, n in stems.items() if n > 1})
    show("public classes used twice", {key: n for key, n in classes.items() if n > 1})


def show(title: str, counts: dict[str, int]) -> None:
    """How many there are, and which."""
    named = ", ".join(
        f"{name} {n}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
    print(f"{title:<33} {len(counts)}{': ' if named else ''}{named}")


def passed(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Files and functions of the package that a call enters, and its greatest depth in them."""
    files, functions, deepest, depth = set(), set(), 0, 0
    root = str(PACKAGE)

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest, depth
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(root):
            return
        if event == "return":
            depth -= 1
            return
        depth += 1
        deepest = max(deepest, depth)
        files.add(code.co_filename)
        if not code.co_name.startswith("<"):
            functions.add(code)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), len(functions), deepest


def milliseconds(call: Callable[[], Any], seconds: float = 1.0) -> float:
    """The least time of a call, of as many as fit."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def survey(cells: int, *, risk: bool) -> pd.DataFrame:
    """A protected table of 100 records, whose crosstab has so many cells."""
    size = cells // 2
    roles = ("quasi_identifier", "sensitive") if risk else (None, None)
    domain = Domain(
        (
            Column("age", "integer", lower=0, upper=120),
            Column("place", "category", categories=tuple(map(str, range(size))), role=roles[0]),
            Column("ill", "category", categories=("no", "yes"), role=roles[1]),
        )
    )
    rows = np.arange(100)
    frame = pd.DataFrame(
        {"age": 20 + rows % 60, "place": (rows % size).astype(str), "ill": np.where(rows % 3, "no", "yes")}
    )
    return pdprivacy.protect(frame, domain, epsilon=10**9)


def releases() -> None:
    """Return the path of a warm mean and of a warm crosstab, and their times."""
    private = survey(6, risk=False)
    warm = {
        "mean": lambda: private.dp.mean("age", epsilon=0.2),
        "crosstab": lambda: private.dp.crosstab("place", "ill", epsilon=0.2),
    }
    for name, call in warm.items():
        call()
        files, functions, deepest = passed(call)
        print(f"warm {name:<28} {files} files, {functions} functions, {deepest} deep")
    print(f"mean of 100 rows                  {milliseconds(warm['mean']):.2f} ms")
    for cells in (6, 1000):
        for risk in (False, True):
            table = survey(cells, risk=risk)

            def call(table: pd.DataFrame = table) -> Any:
                return table.dp.crosstab("place", "ill", epsilon=0.2)

            call()
            title = f"table of {cells} cells, {'with' if risk else 'without'} risk"
            print(f"{title:<33} {milliseconds(call):.2f} ms")


def importing(times: int = 7) -> None:
    """The time that pdprivacy adds to the import of pandas."""
    clock = "time.perf_counter()"
    text = f"import time, pandas; start = {clock}; import pdprivacy; print({clock} - start)"
    command = [sys.executable, "-W", "ignore", "-c", text]
    durations = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(times)]
    print(f"import beyond pandas              {min(durations):.2f} s")


if __name__ == "__main__":
    sizes()
    releases()
    importing()
