"""Type checkers see the types of releases (`types`), and report misspelled names and keywords."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from tests.support import signatures

ROOT = Path(__file__).parents[1]
EXAMPLES = Path(__file__).parent / "typing_examples.py"
LINES = EXAMPLES.read_text().splitlines()
WRONG = {number for number, line in enumerate(LINES, 1) if line.endswith("# wrong")}


def test_the_signatures_are_those_of_the_functions():
    """``python -m tests.support.signatures --write`` writes them anew."""
    assert signatures.PATH.read_text() == signatures.stub()


def by_mypy(folder: Path) -> dict[int, str]:
    """The lines with errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    command += ["--no-error-summary", f"--cache-dir={folder}", EXAMPLES.name]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    process = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert process.stderr == ""
    errors = re.findall(r"typing_examples\.py:(\d+): error: (.*)", process.stdout)
    assert errors, process.stdout
    return {int(number): text for number, text in errors}


def by_pyright(folder: Path) -> dict[int, str]:
    """The lines with errors."""
    config = {
        "include": [EXAMPLES.name],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "reportUnusedExpression": "none",  # an attribute alone is what completion shows
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(folder)]
    command += ["--pythonpath", sys.executable]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    diagnostics = json.loads(process.stdout)["generalDiagnostics"]
    return {
        diagnostic["range"]["start"]["line"] + 1: f"{diagnostic['message']} ({diagnostic.get('rule')})"
        for diagnostic in diagnostics
        if diagnostic["severity"] == "error"
    }


@pytest.mark.full
@pytest.mark.skipif(pd.__version__.startswith("2."), reason="types are checked with the newest dependencies")
@pytest.mark.parametrize(("checker", "module"), [(by_mypy, "mypy"), (by_pyright, "basedpyright")])
def test_a_type_checker_sees_what_is_wrong_and_nothing_else(checker, module, tmp_path):
    if find_spec(module) is None or not any(Path(path, "pandas-stubs").is_dir() for path in sys.path):
        pytest.skip(f"{module} or pandas-stubs is not installed")
    shutil.copy(EXAMPLES, tmp_path)
    errors = checker(tmp_path)
    assert {number: text for number, text in errors.items() if number not in WRONG} == {}
    assert {LINES[number - 1].strip() for number in WRONG - set(errors)} == set()


@pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")
def test_the_examples_are_of_these_types_when_they_run():
    """Each ``assert_type`` outside of loops and batches, whose value is made again."""
    names = runpy.run_path(str(EXAMPLES))
    checked = 0
    for node in ast.parse(EXAMPLES.read_text()).body:
        for call in ast.walk(node):
            named = isinstance(call, ast.Call) and ast.unparse(call.func) == "assert_type"
            if named and not isinstance(node, ast.For | ast.With):
                value = eval(ast.unparse(call.args[0]), names)
                kind = ast.literal_eval(call.args[1]) if isinstance(call.args[1], ast.Constant) else None
                expected = (kind or ast.unparse(call.args[1])).partition("[")[0].rpartition(".")[2]
                assert type(value).__name__ == expected, ast.unparse(call)
                checked += 1
    assert checked > 40
