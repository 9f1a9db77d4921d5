"""Disclosure risks against enumeration, simulation, limits and real counts."""

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import binom, dlaplace, laplace, multinomial, norm

from pdprivacy import risk
from pdprivacy.errors import ParameterError

NOISE = {"laplace": laplace(scale=2.0), "gaussian": norm(scale=1.7), "geometric": dlaplace(0.6)}
RISKS = (risk.local_risk, risk.expected_risk)


def draw(name, rng, size):
    """Noise from numpy's samplers, not from the distribution under test."""
    if name == "laplace":
        return rng.laplace(scale=2.0, size=size)
    if name == "gaussian":
        return rng.normal(scale=1.7, size=size)
    stop = 1 - math.exp(-0.6)
    return rng.geometric(stop, size=size) - rng.geometric(stop, size=size)


def local_by_definition(counts, cdf):
    """The sum of the definition, one cell, no shortcuts."""
    q = [float(cdf(np.array([0.5 - n]))[0]) for n in counts]
    return math.fsum(
        (1 - q[k]) * math.prod(q[other] for other in range(len(q)) if other != k)
        for k in range(len(q))
        if counts[k] > 0
    )


def expected_by_enumeration(counts, cdf):
    """The mean of the local risk over every table that the multinomial can give."""
    size, share = sum(counts), np.array(counts) / sum(counts)
    present = share > 0
    bars = itertools.combinations(range(size + present.sum() - 1), int(present.sum()) - 1)
    last = size + int(present.sum()) - 1
    tables = np.zeros((math.comb(last, int(present.sum()) - 1), len(counts)), dtype=int)
    tables[:, present] = [np.diff([-1, *bar, last]) - 1 for bar in bars]
    if present.sum() == 1:
        return local_by_definition(counts, cdf)
    chance = multinomial(size, share[present]).pmf(tables[:, present])
    return math.fsum(chance * risk.local_risk(tables, cdf, average=None))


def simulated(counts, name, rng, draws):
    """How often the noisy counts of one cell read as homogeneous in a label it holds."""
    counts = np.asarray(counts)
    seen = counts + draw(name, rng, (draws, counts.shape[-1])) >= 0.5
    return ((seen.sum(axis=1) == 1) & (seen & (counts > 0)).any(axis=1)).mean()


CELLS = {
    2: [(3, 0), (1, 1), (5, 2)],
    3: [(1, 0, 0), (2, 1, 1), (3, 3, 3)],
    4: [(4, 0, 0, 0), (2, 1, 0, 1)],
    5: [(2, 0, 0, 0, 0), (1, 1, 1, 1, 1)],
    6: [(6, 1, 0, 0, 0, 0), (2, 1, 1, 0, 1, 0)],
}


# Local risk


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("labels", CELLS)
def test_local_risk_is_its_definition(name, labels):
    cdf = NOISE[name].cdf
    found = risk.local_risk(CELLS[labels], cdf, average=None)
    assert found == pytest.approx([local_by_definition(cell, cdf) for cell in CELLS[labels]], rel=1e-13)


@pytest.mark.statistical
@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("labels", CELLS)
def test_local_risk_is_what_happens(name, labels):
    # 36 comparisons at 5 standard errors: one false alarm in 50,000 choices of the seed.
    rng = np.random.default_rng([20, labels, list(NOISE).index(name)])
    draws = 100_000
    for cell, value in zip(
        CELLS[labels], risk.local_risk(CELLS[labels], NOISE[name].cdf, average=None), strict=True
    ):
        error = math.sqrt(value * (1 - value) / draws)
        assert abs(simulated(cell, name, rng, draws) - value) < 5 * error


def test_figures_where_published_bounds_fail():
    # The bounds say 0.251 and 0.211.
    assert round(risk.local_risk([[2, 1, 1]], laplace(scale=100).cdf), 3) == 0.372
    assert 0 < risk.local_risk([[10, 10, 10]], laplace(scale=1).cdf) < 1e-4


@pytest.mark.parametrize("noise", [laplace(scale=1e9), norm(scale=1e9)])
@pytest.mark.parametrize("cell", [cell for cells in CELLS.values() for cell in cells])
def test_without_information_the_risk_is_a_coin_per_label(noise, cell):
    present = sum(count > 0 for count in cell)
    assert risk.local_risk([cell], noise.cdf) == pytest.approx(present * 0.5 ** len(cell), rel=1e-6)


@pytest.mark.parametrize("function", RISKS)
def test_without_noise_the_risk_is_the_share_of_homogeneous_cells(function):
    counts = [[5, 0, 0], [0, 0, 1], [0, 0, 0], [40, 40, 0], [70, 80, 90]]
    cdf = laplace(scale=1e-3).cdf
    assert function(counts, cdf) == pytest.approx(2 / 4, abs=1e-12)
    assert function(counts, cdf, average="records") == pytest.approx(6 / 326, abs=1e-12)
    each = function(counts, cdf, average=None)
    assert np.isnan(each).tolist() == [False, False, True, False, False]
    assert each[[0, 1, 3, 4]] == pytest.approx([1, 1, 0, 0], abs=1e-12)


def test_certain_noise_needs_no_division():
    def no_noise(t):
        return (t >= 0).astype(float)

    assert risk.local_risk([[3, 0], [1, 2], [0, 4]], no_noise, average=None).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("function", RISKS)
def test_threshold_is_where_a_count_reads_as_empty(function):
    noise = laplace(scale=0.5)

    def shifted(t):
        return noise.cdf(t + 2)

    counts = [[2, 1, 0], [6, 0, 0]]
    assert function(counts, noise.cdf, threshold=2.5) == pytest.approx(function(counts, shifted), rel=1e-12)


small_tables = arrays.arrays(
    np.int64, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.integers(0, 6)
).filter(lambda table: table.any())


@settings(max_examples=60, deadline=None)
@given(small_tables, st.randoms(use_true_random=False), st.sampled_from(sorted(NOISE)))
def test_order_of_cells_and_labels_is_irrelevant(counts, random, name):
    rows = random.sample(range(counts.shape[0]), counts.shape[0])
    shuffled = np.array([random.sample(row, len(row)) for row in counts[rows].tolist()])
    for function in RISKS:
        for average in ("cells", "records"):
            value = function(counts, NOISE[name].cdf, average)
            assert function(shuffled, NOISE[name].cdf, average) == value
        each = function(counts, NOISE[name].cdf, None)
        np.testing.assert_array_equal(function(shuffled, NOISE[name].cdf, None), each[rows])


@settings(max_examples=60, deadline=None)
@given(small_tables, st.sampled_from(sorted(NOISE)))
def test_averages_weight_the_non_empty_cells(counts, name):
    for function in RISKS:
        each = function(counts, NOISE[name].cdf, None)
        size = counts.sum(axis=1)
        assert np.array_equal(np.isnan(each), size == 0)
        inside = each[size > 0]
        assert ((inside >= 0) & (inside <= 1)).all()
        assert function(counts, NOISE[name].cdf) == pytest.approx(inside.mean(), rel=1e-12)
        weighted = (inside * size[size > 0]).sum() / size.sum()
        assert function(counts, NOISE[name].cdf, "records") == pytest.approx(weighted, rel=1e-12)


# Expected risk


@pytest.mark.parametrize("noise", [*NOISE.values(), laplace(scale=100)])
@pytest.mark.parametrize(
    "cell",
    [
        *(cell for cells in CELLS.values() for cell in cells),
        (12, 1),
        (9, 1, 1),
        (40, 3, 2),
        (30, 30, 30),
        (8, 7, 0, 6),
        (20, 10, 5, 2),
    ],
)
def test_expected_risk_is_the_sum_over_all_tables(noise, cell):
    value = risk.expected_risk([cell], noise.cdf)
    assert value == pytest.approx(expected_by_enumeration(cell, noise.cdf), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("size", "first"), [(50, 25), (1000, 20), (10_000, 5), (10_000, 3000), (100_000, 9)])
@pytest.mark.parametrize("epsilon", [1, 0.1, 0.01, 0.001])
def test_expected_risk_of_two_labels_is_a_binomial_sum(size, first, epsilon):
    cdf = laplace(scale=1 / epsilon).cdf
    count = np.arange(size + 1)
    q = cdf(0.5 - count)
    there = np.where(count > 0, 1 - q, 0)
    exact = binom(size, first / size).pmf(count) @ (there * q[::-1] + there[::-1] * q)
    value = risk.expected_risk([[first, size - first]], cdf)
    assert value == pytest.approx(exact, abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("cell", [(6, 3, 1), (300, 4, 2, 2), (3, 2, 2, 1, 1, 0)])
def test_expected_risk_is_what_happens(name, cell):
    # 9 comparisons at 5 standard errors: one false alarm in 190,000 choices of the seed.
    rng = np.random.default_rng([21, len(cell), list(NOISE).index(name)])
    draws = 100_000
    tables = rng.multinomial(sum(cell), np.array(cell) / sum(cell), size=draws)
    value = risk.expected_risk([cell], NOISE[name].cdf)
    error = math.sqrt(value * (1 - value) / draws)
    assert abs(simulated(tables, name, rng, draws) - value) < 5 * error


def test_expected_risk_of_homogeneous_cells_is_the_local_risk():
    # As many distinct counts as the memory of one call holds, and more.
    counts = np.zeros((5000, 2), dtype=int)
    counts[:, 0] = np.arange(1, 5001)
    cdf = laplace(scale=300).cdf
    local, expected = (function(counts, cdf, average=None) for function in RISKS)
    np.testing.assert_allclose(expected, local, rtol=1e-12)


def test_expected_risk_shares_work_between_cells_without_mixing_them():
    counts = [(a, b, c, d) for a in range(3) for b in range(4) for c in range(3) for d in range(5)][1:]
    cdf = laplace(scale=3).cdf
    together = risk.expected_risk(counts, cdf, average=None)
    alone = [risk.expected_risk([cell], cdf) for cell in counts]
    np.testing.assert_allclose(together, alone, rtol=1e-13)


def test_expected_risk_of_large_mixed_cells_vanishes():
    assert risk.expected_risk([[3000, 2000, 4000]], laplace(scale=1).cdf) == 0.0


def test_ten_thousand_cells_cost_little():
    rng = np.random.default_rng(3)
    sizes = np.exp(rng.uniform(0, math.log(1e4), 10_000)).astype(int)
    counts = np.array(
        [rng.multinomial(n, p) for n, p in zip(sizes, rng.dirichlet(np.ones(5), 10_000), strict=True)]
    )
    cdf = laplace(scale=1).cdf
    cost = risk.expected_cost(counts, cdf)
    assert cost < 1e9
    value = risk.expected_risk(counts, cdf)
    assert 0 < value < risk.local_risk(counts, laplace(scale=1e-3).cdf) + 0.1


@pytest.mark.parametrize("scale", [1, 30])
@pytest.mark.parametrize("cell", [(5, 4, 3, 2), (50, 40, 30, 20, 10), (200, 9, 0, 3)])
def test_expected_cost_covers_the_work(monkeypatch, scale, cell):
    done = []
    joined, joined_at = risk._Run.joined, risk._Run.joined_at

    def counting(run, other):
        done.append(run.mass.size * other.mass.size)
        return joined(run, other)

    def counting_at(run, other, total):
        done.append(min(run.mass.size, other.mass.size))
        return joined_at(run, other, total)

    monkeypatch.setattr(risk._Run, "joined", counting)
    monkeypatch.setattr(risk._Run, "joined_at", counting_at)
    cdf = laplace(scale=scale).cdf
    risk.expected_risk([cell], cdf)
    cost = risk.expected_cost([cell], cdf) - risk.OVERHEAD
    # The estimate ignores that joined masses are trimmed, and the last sums.
    assert sum(done) <= cost + 2000
    assert cost <= 4 * sum(done) + 2000


def test_expected_cost_counts_equal_cells_once_and_grows_with_the_noise():
    cells = [[5, 4, 3], [3, 4, 5], [7, 0, 0]]
    weak, strong = (risk.expected_cost(cells, laplace(scale=scale).cdf) for scale in (0.2, 20))
    assert 2 * risk.OVERHEAD < weak < strong
    assert risk.expected_cost(cells[:1], laplace(scale=20).cdf) < strong
    assert risk.expected_cost(cells[:2], laplace(scale=20).cdf) == risk.expected_cost(
        cells[:1], laplace(scale=20).cdf
    )


# Cells


@pytest.mark.parametrize("scale", [1, 1000])
def test_cells_holds_each_composition_once(scale):
    # Ten labels up to 3,000 do not fit one integer key: the other way to find equal rows.
    counts = scale * np.array([[1, 2, 3] + 7 * [0], 7 * [0] + [3, 2, 1], 10 * [0], [4] + 9 * [0]])
    cells = risk.Cells.of(counts)
    assert cells.compositions.tolist() == [9 * [0] + [4 * scale], [0] * 7 + [scale, 2 * scale, 3 * scale]]
    assert cells.cells.tolist() == [1, 2]
    assert cells.which.tolist() == [1, 1, -1, 0]
    assert risk.Cells.of(cells) is cells
    for function in RISKS:
        assert function(cells, laplace().cdf) == function(counts, laplace().cdf)


def test_frames_and_whole_floats_are_counts():
    frame = pd.DataFrame({"no": [3.0, 1.0], "yes": [0.0, 1.0]})
    assert risk.local_risk(frame, norm.cdf) == risk.local_risk([[3, 0], [1, 1]], norm.cdf)


# Real counts


def data_file(name):
    folder = os.environ.get("PDPRIVACY_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")
    path = Path(folder) / name
    if not path.is_file():
        pytest.skip(f"{name} is not there; the environment variable PDPRIVACY_DATA names its folder")
    return path


def test_census_records_end_at_their_share_of_homogeneous_cells():
    table = pd.read_csv(data_file("adult_6qid_counts.csv.gz"), skipinitialspace=True)
    sensitive, count = table.columns[-2:]
    counts = table.pivot_table(
        index=list(table.columns[:-2]), columns=sensitive, values=count, aggfunc="sum", fill_value=0
    )
    assert counts.to_numpy().sum() == 27_504
    assert counts.shape == (5_009, 2)
    assert ((counts > 0).sum(axis=1) == 1).sum() == 4_044
    cells = risk.Cells.of(counts)
    cdf = laplace(scale=1e-3).cdf
    assert round(risk.local_risk(cells, cdf), 3) == 0.807
    assert round(risk.local_risk(cells, cdf, average="records"), 3) == 0.404
    # A mixed cell may come out homogeneous when it is drawn anew; never the reverse.
    assert risk.expected_risk(cells, cdf) > risk.local_risk(cells, cdf)
    # More noise, less risk for homogeneous cells, which are the most.
    curve = [risk.local_risk(cells, laplace(scale=1 / epsilon).cdf) for epsilon in (0.01, 0.1, 1, 10)]
    assert curve == sorted(curve)
    assert 0.25 < curve[0] < curve[-1] < 0.807


# Errors


@pytest.mark.parametrize("function", [*RISKS, risk.expected_cost])
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([3, 777], "two dimensions"),
        ([[[777]]], "two dimensions"),
        ([[777], [2]], "at least 2 columns"),
        ([[777, -3]], "must not be negative"),
        ([[777, 2.5]], "must be whole numbers"),
        ([[777, math.nan]], "must be whole numbers"),
        ([[777, math.inf]], "must be whole numbers"),
        ([["777", "1"]], "must be whole numbers"),
        ([[True, False]], "must be whole numbers"),
        ([[0, 0], [0, 0]], "at least one record"),
        (np.zeros((0, 3)), "at least one record"),
        ([[777, 2**60]], "less than"),
    ],
)
def test_bad_counts_are_refused_without_printing_them(function, counts, message):
    with pytest.raises(ParameterError, match=message) as caught:
        function(counts, norm.cdf)
    assert "777" not in str(caught.value)


@pytest.mark.parametrize("function", RISKS)
def test_bad_arguments_are_refused(function):
    counts = [[1, 2]]
    with pytest.raises(ParameterError, match=r"'cdf' must be callable on an array \(got float\)"):
        function(counts, 1.0)
    with pytest.raises(ParameterError, match="'average' must be one of 'cells', 'records', None"):
        function(counts, norm.cdf, average="mean")
    for threshold in (math.nan, math.inf, "0.5", True):
        with pytest.raises(ParameterError, match="'threshold' must be a finite number"):
            function(counts, norm.cdf, threshold=threshold)
    for cdf in (lambda t: 0.5, lambda t: t, lambda t: t * math.nan, lambda t: np.full(len(t) + 1, 0.5)):
        with pytest.raises(ParameterError, match="'cdf' must return one probability"):
            function(counts, cdf)
