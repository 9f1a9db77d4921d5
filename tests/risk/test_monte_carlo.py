"""Simulated disclosure risks against enumeration of all that can happen, and what they refuse."""

import itertools
import math
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from pdprivacy.core.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    GeneralizedGaussian,
    Geometric,
    Laplace,
    Staircase,
)
from pdprivacy.core.noise import simulator
from pdprivacy.errors import MissingExtraError, ParameterError
from pdprivacy.risk import dr_ha, monte_carlo
from pdprivacy.risk.monte_carlo import Simulated, simulate

MEASURES = ("local", "expected", "shrinkage", "marginal", "marginal_shrinkage")
RATIO = 0.25  # geometric noise P(z) proportional to RATIO ** abs(z)
NOISE = Geometric(epsilon=math.log(1 / RATIO), sensitivity=1)
ALPHA = (0.5, 1.0, 2.0)
SIZES = SimpleNamespace(values=np.array([1, 2, 3]), chances=np.array([0.5, 0.2, 0.1]))  # and 0 else
TABLE = np.array([[2, 1, 0], [0, 0, 0], [0, 0, 3], [1, 0, 0], [1, 1, 1]])
FILLED = TABLE.any(axis=1)


# Everything that can happen, with its probability.


def released(count, reach=13):
    """Pairs of a released whole number and its probability; what reads as 0 taken together."""
    share = (1 - RATIO) / (1 + RATIO)
    chances = {}
    for z in range(-count - reach, reach + 1):
        chances[max(count + z, 0)] = chances.get(max(count + z, 0), 0.0) + share * RATIO ** abs(z)
    return chances.items()


def right(attack, partial, threshold, counts, noisy):
    """The share of the records of a cell for which the conclusion from its noisy counts is right."""
    size, labels = sum(counts), range(len(counts))
    if attack == "homogeneity":
        seen = [k for k in labels if noisy[k] >= threshold]
        if len(seen) != 1 or counts[seen[0]] == 0:
            return 0.0
        return counts[seen[0]] / size if partial else 1.0
    if sum(noisy) == 0:
        return 0.0
    if attack == "plurality":
        best = [k for k in labels if noisy[k] == max(noisy)]
        return sum(counts[k] for k in best) / len(best) / size
    return sum(counts[k] * noisy[k] for k in labels) / sum(noisy) / size


def local(counts, reading):
    """The local risk of one cell."""
    if sum(counts) == 0:
        return 0.0
    return math.fsum(
        math.prod(chance for _, chance in each) * right(*reading, counts, [noisy for noisy, _ in each])
        for each in itertools.product(*map(released, counts))
    )


def compositions(size, labels):
    if labels == 1:
        return [(size,)]
    return [(first, *rest) for first in range(size + 1) for rest in compositions(size - first, labels - 1)]


def multinomial(counts, shares):
    return stats.multinomial(sum(counts), shares).pmf(counts)


def dirichlet_multinomial(counts, alpha):
    counts, alpha = np.array(counts), np.array(alpha)
    log = gammaln(counts.sum() + 1) + gammaln(alpha.sum()) - gammaln(counts.sum() + alpha.sum())
    return math.exp(log + (gammaln(counts + alpha) - gammaln(alpha) - gammaln(counts + 1)).sum())


def enumerated(measure, cell, reading, known):
    """The risk of one non-empty cell; local risks are looked up in ``known``."""

    def risk(counts):
        if (counts, reading) not in known:
            known[counts, reading] = local(counts, reading)
        return known[counts, reading]

    if measure == "local":
        return risk(tuple(cell))
    model = dirichlet_multinomial if "shrinkage" in measure else multinomial
    parameter = ALPHA if "shrinkage" in measure else np.array(cell) / sum(cell)
    sizes = [(sum(cell), 1.0)]
    if "marginal" in measure:
        sizes = list(zip(SIZES.values.tolist(), SIZES.chances.tolist(), strict=True))
    return math.fsum(
        share * model(counts, parameter) * risk(counts)
        for size, share in sizes
        for counts in compositions(size, len(cell))
    )


KNOWN = {}
READINGS = {
    "homogeneity": ("homogeneity", False, 0.5),
    "partial": ("homogeneity", True, 0.5),
    "threshold": ("homogeneity", False, 1.5),
    "plurality": ("plurality", False, 0.5),
    "probabilistic": ("probabilistic", False, 0.5),
}


def options(reading):
    attack, partial, threshold = READINGS[reading]
    return {
        "attack": attack,
        "partial": partial,
        "threshold": threshold,
        "alpha": ALPHA,
        "sizes": SIZES,
    }


def truth(measure, reading, table=TABLE):
    filled = [row for row in table.tolist() if any(row)]
    return np.array([enumerated(measure, row, READINGS[reading], KNOWN) for row in filled])


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("measure", MEASURES)
def test_simulation_is_what_enumeration_says(measure, reading):
    # 150 comparisons at 5 standard errors: one false alarm in 10,000 choices of the seeds.
    each = truth(measure, reading)
    draws, choice = 3000, options(reading)
    simulation = simulate(TABLE, NOISE, measure, None, draws=draws, rng=1, **choice)
    assert simulation.risk.shape == simulation.standard_error.shape == (5,)
    assert (
        np.isnan(simulation.risk).tolist()
        == np.isnan(simulation.standard_error).tolist()
        == (~FILLED).tolist()
    )
    assert (simulation.standard_error[FILLED] < 0.5 / math.sqrt(draws - 1)).all()
    assert (np.abs(simulation.risk[FILLED] - each) < 5 * simulation.standard_error[FILLED]).all()
    for average, weights in (("cells", np.ones(4)), ("records", TABLE[FILLED].sum(axis=1))):
        simulation = simulate(TABLE, NOISE, measure, average, draws=draws, rng=2, **choice)
        assert type(simulation.risk) is type(simulation.standard_error) is float
        value = weights @ each / weights.sum()
        assert abs(simulation.risk - value) < 5 * simulation.standard_error < 0.1 * value + 0.02


def test_order_of_labels_decides_what_alpha_means():
    # One comparison of each of two means at 5 standard errors: one false alarm in a million.
    seen = []

    def watch(noisy):
        seen.append(noisy.copy())
        return noisy

    alpha = (1e-4, 3e-4)
    simulate([[0, 8]], stats.norm(scale=1e-6), "shrinkage", alpha=alpha, draws=3000, postprocess=watch, rng=5)
    counts = np.rint(seen)[:, 0]
    assert (counts.sum(axis=1) == 8).all()
    assert (counts.max(axis=1) == 8).mean() > 0.99  # of 8 records, one differs with probability below 3e-4
    assert abs(counts[:, 1].mean() / 8 - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 3000)


@pytest.mark.parametrize("alpha", [1e-300, 1e-20])
def test_vanishing_alpha_makes_cells_homogeneous(alpha):
    simulation = simulate(
        [[3, 3]], stats.norm(scale=1e-3), "shrinkage", alpha=[alpha, alpha], draws=500, rng=1
    )
    assert simulation == Simulated(1.0, 0.0)


def test_huge_alpha_makes_proportions_certain():
    simulation = simulate(
        [[1000, 0]], stats.norm(scale=1e-3), "shrinkage", alpha=[1e300, 1e300], draws=50, rng=1
    )
    assert simulation == Simulated(0.0, 0.0)


def test_certain_results():
    noise = stats.norm(scale=1e-9)
    table = [[4, 0, 0], [2, 2, 1], [0, 0, 0]]
    assert simulate(table, noise, draws=20) == Simulated(0.5, 0.0)
    assert simulate(table, noise, average="records", draws=20).risk == pytest.approx(4 / 9, rel=1e-12)
    each = simulate(table, noise, average=None, draws=20, attack="plurality")
    assert each.risk[:2] == pytest.approx([1, 2 / 5], rel=1e-12)  # two of three labels tie
    assert each.standard_error[:2] == pytest.approx([0, 0], abs=1e-12)
    each = simulate(table, noise, average=None, draws=20, attack="probabilistic")
    assert each.risk[:2] == pytest.approx([1, 9 / 25], rel=1e-12)


def test_sizes_that_are_all_zero_have_no_risk():
    nobody = SimpleNamespace(values=np.array([5]), chances=np.array([0.0]))
    for attack in ("homogeneity", "plurality", "probabilistic"):
        simulation = simulate(TABLE, NOISE, "marginal", sizes=nobody, attack=attack, draws=20, rng=1)
        assert simulation == Simulated(0.0, 0.0)


# The standard error.


@pytest.mark.full
def test_standard_error_is_the_spread_over_seeds():
    # The variance of 3000 z-scores varies by 0.026; the mean by 0.018. At 5 of these, with the 1 % that
    # estimating the error from 200 draws adds: one false alarm in a million.
    table = np.array([[2, 1, 0], [0, 0, 1], [0, 0, 3]])
    value = truth("local", "homogeneity", table).mean()
    scores = []
    for seed in range(3000):
        risk, error = simulate(table, NOISE, draws=200, rng=seed)
        scores.append((risk - value) / error)
    assert 0.87 < np.var(scores) < 1.15
    assert abs(np.mean(scores)) < 0.1


@pytest.mark.full
@pytest.mark.parametrize("numbers", [12, 2**18])
def test_standard_error_of_a_cell_is_that_of_a_proportion(monkeypatch, numbers):
    monkeypatch.setattr(monte_carlo, "NUMBERS", numbers)  # 12: blocks of 4 cells
    table = np.tile(TABLE[FILLED], (3, 1))
    simulation = simulate(table, NOISE, average=None, draws=301, rng=8)
    assert simulation.standard_error == pytest.approx(
        np.sqrt(simulation.risk * (1 - simulation.risk) / 300), rel=1e-9
    )


@pytest.mark.full
@pytest.mark.parametrize("numbers", [1, 12, 100])
def test_blocks_and_batches_leave_nothing_out(monkeypatch, numbers):
    # 27 comparisons at 5 standard errors of proportions of 200, the least of them 0.1, whose upper tail
    # is 1e-5: one false alarm in 5000 choices of the seed.
    monkeypatch.setattr(monte_carlo, "NUMBERS", numbers)
    table = np.concatenate([TABLE, TABLE[::-1]])
    filled, each = table.any(axis=1), truth("local", "homogeneity", table)
    errors = np.sqrt(each * (1 - each) / 200)
    simulation = simulate(table, NOISE, average=None, draws=200, rng=4)
    assert (np.abs(simulation.risk[filled] - each) < 5 * errors).all()
    simulation = simulate(table, NOISE, average="cells", draws=200, rng=4)
    assert (
        abs(simulation.risk - each.mean()) < 5 * math.sqrt((errors**2).sum()) / len(each) < 0.15 * each.mean()
    )


# Mechanisms.

OPEN = (0, math.inf)
MECHANISMS = {
    "laplace": Laplace(1, 1),
    "laplace of few": Laplace(1, 1, l0_sensitivity=2),
    "geometric": Geometric(1),
    "gaussian": Gaussian(1, 1e-2, 1),
    "discrete gaussian": DiscreteGaussian(1, 1e-2),
    "staircase": Staircase(1, 1),
    "generalized gaussian": GeneralizedGaussian(1, 1e-2, 1, 3),
    "laplace bit": Laplace(1, 1, bounds=(-1, 5), bounding="clamp"),
    "laplace truncated": Laplace(1, 1, bounds=(-3, 5), bounding="truncated"),
    "geometric truncated": Geometric(1, bounds=OPEN, bounding="truncated"),
    "gaussian truncated": Gaussian(1, 1e-2, 1, bounds=(-3, 9), bounding="truncated"),
    "scipy": stats.laplace(scale=1.3),
    "scipy, discrete": stats.dlaplace(0.8),
}
if hasattr(stats, "Normal"):
    MECHANISMS["scipy, newer"] = stats.Normal(mu=0.0, sigma=1.7)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_simulated_with_its_own_law(name):
    # 14 comparisons at 5 standard errors: one false alarm in 100,000 choices of the seed. 1200 values
    # at a time are more than some mechanisms release at once where 'moves' is not stated.
    mechanism = MECHANISMS[name]
    counts = np.array([[2, 1], [0, 3], [1, 0]])

    def empty(count):
        if getattr(mechanism, "bounding", None) is not None:
            return float(mechanism.cdf(0.5, count))
        return float(mechanism.cdf(0.5 - count))

    each = [
        (a > 0) * (1 - empty(a)) * empty(b) + (b > 0) * (1 - empty(b)) * empty(a) for a, b in counts.tolist()
    ]
    simulation = simulate(np.tile(counts, (200, 1)), mechanism, draws=5, rng=6)
    error = math.sqrt(np.mean(np.multiply(each, np.subtract(1, each))) / (600 * 5))
    assert 0 < np.mean(each) < 1
    assert abs(simulation.risk - np.mean(each)) < 5 * error < 0.08


def test_a_mechanism_stays_as_it_was():
    mechanism = Laplace(1, 1)
    simulate([[1, 2]], mechanism, draws=2)
    assert mechanism.l0_sensitivity is None


# Postprocessing.


def consistent(noisy):
    """With the public totals of the labels, 4 and 1, in two cells."""
    return noisy + (np.array([4, 1]) - noisy.sum(axis=0)) / 2


@pytest.mark.full
@pytest.mark.parametrize("reading", ["homogeneity", "plurality"])
def test_postprocessing_of_the_whole_table_is_enumerated(reading):
    # Two comparisons at 5 standard errors: one false alarm in a million.
    attack, partial, threshold = READINGS[reading]
    table = np.array([[3, 0], [1, 1]])
    expected, total = np.zeros(2), 0.0
    for noise in itertools.product(range(-5, 6), repeat=4):
        chance = math.prod((1 - RATIO) / (1 + RATIO) * RATIO ** abs(z) for z in noise)
        noisy = consistent(table + np.reshape(noise, (2, 2)))
        if attack == "plurality":
            noisy = np.floor(noisy + 0.5).clip(0)  # halves are common here
        expected += [
            chance * right(attack, partial, threshold, row, seen)
            for row, seen in zip(table.tolist(), noisy.tolist(), strict=True)
        ]
        total += chance
    expected /= total  # the rest has a probability of 1e-3
    simulation = simulate(table, NOISE, attack=attack, postprocess=consistent, draws=3000, rng=2)
    assert abs(simulation.risk - expected.mean()) < 5 * simulation.standard_error + (1 - total)
    plain = simulate(table, NOISE, attack=attack, draws=3000, rng=2)
    assert abs(plain.risk - expected.mean()) > 10 * plain.standard_error  # it makes a difference
    assert 1 - total < 2e-3


def test_postprocessing_sees_the_whole_noisy_table():
    seen = []

    def watch(noisy):
        seen.append(noisy)
        return np.zeros(noisy.shape, dtype=np.int64)

    simulation = simulate(TABLE, NOISE, "marginal", None, sizes=SIZES, draws=60, postprocess=watch, rng=1)
    assert len(seen) == 60
    assert all(noisy.shape == TABLE.shape and noisy.dtype == np.float64 for noisy in seen)
    assert np.any([noisy[1] != 0 for noisy in seen])  # empty cells are released too
    assert np.isnan(simulation.risk[1])
    assert (simulation.risk[FILLED] == 0).all()


def test_empty_cells_stay_empty():
    seen = []
    noise = stats.norm(scale=1e-9)
    simulate(
        TABLE, noise, "marginal_shrinkage", alpha=ALPHA, sizes=SIZES, draws=30, rng=1,
        postprocess=lambda noisy: seen.append(noisy) or noisy,
    )  # fmt: skip
    assert np.abs([noisy[1] for noisy in seen]).max() < 1e-6
    assert np.rint([noisy[2] for noisy in seen]).max() == 3


@pytest.mark.parametrize(
    "returned",
    [None, "text", [[1, 2]], np.full(TABLE.shape, np.nan), np.full(TABLE.shape, np.inf), 1.0, [[1], [1, 2]]],
)
def test_postprocessing_must_return_a_table(returned):
    with pytest.raises(ParameterError, match="'postprocess' must return a table of finite numbers"):
        simulate(TABLE, NOISE, draws=3, postprocess=lambda noisy: returned)


# Seeds, progress, memory.


def test_seeds_and_generators():
    first, again, other = (simulate(TABLE, NOISE, rng=seed, draws=50) for seed in (3, 3, 4))
    assert first == again != other
    generator = simulator(3)
    assert simulate(TABLE, NOISE, rng=generator, draws=50) == first
    assert simulate(TABLE, NOISE, rng=generator, draws=50) != first  # it has advanced
    assert len({simulate(TABLE, NOISE, draws=50).risk for _ in range(5)}) > 1
    assert simulator(np.int64(3)).random() == simulator(3).random()
    assert simulator(generator) is generator
    assert simulator(None).random() != simulator(None).random()
    assert issubclass(type(simulator()), type(generator))


@pytest.mark.parametrize("rng", [-1, 1.0, "1", True, np.random.RandomState(1)])
def test_invalid_seeds_are_refused(rng):
    with pytest.raises(ParameterError, match="'rng' must"):
        simulator(rng)
    with pytest.raises(ParameterError, match="'rng' must"):
        simulate(TABLE, NOISE, rng=rng)


def test_progress_shows_every_batch_and_changes_nothing(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, batches, **_):
            self.batches = batches

        def __iter__(self):
            for batch in self.batches:
                yield batch
                shown.append(batch)
            assert len(shown) == len(self.batches)

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(monte_carlo, "NUMBERS", 100)
    silent = simulate(TABLE, NOISE, draws=100, rng=1)
    assert not shown
    assert simulate(TABLE, NOISE, draws=100, rng=1, progress=True) == silent
    assert len(shown) == 13  # of 8 draws of 4 cells of 3 labels


def test_progress_needs_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtraError, match=r'pip install "pdprivacy\[progress\]"'):
        simulate(TABLE, NOISE, progress=True)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("cells", "choice"),
    [
        (100_000, {"draws": 50}),
        (100_000, {"measure": "marginal_shrinkage", "alpha": (1, 1), "sizes": SIZES, "draws": 2}),
        (30, {"average": None, "draws": 100_000, "attack": "plurality"}),
        (100_000, {"postprocess": np.abs, "draws": 2}),
    ],
)
def test_memory_stays_bounded(cells, choice):
    table = np.ones((cells, 2), dtype=np.int64)
    tracemalloc.start()
    simulate(table, NOISE, rng=1, **choice)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


# What is refused.


class OnlyDistribution:
    def cdf(self, x):
        return stats.norm.cdf(x)


class WrongShape(OnlyDistribution):
    def sample(self, values, rng):
        return np.zeros(3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mechanism": OnlyDistribution()}, r"'sample\(values, rng\)'.*got OnlyDistribution"),
        ({"mechanism": Laplace}, "got Laplace"),
        ({"mechanism": 1.0}, "got float"),
        ({"mechanism": WrongShape()}, "one number for each value"),
        ({"measure": "global"}, "'measure' must be one of 'local', .*got 'global'"),
        ({"measure": ["local"]}, "'measure' must be one of .*got list"),
        ({"attack": "linkage"}, "'attack' must be one of 'homogeneity', 'plurality', 'probabilistic'"),
        ({"average": "mean"}, "'average' must be one of"),
        ({"measure": "shrinkage", "alpha": [1, 1]}, "'alpha' must have one number for each of 3 labels"),
        ({"measure": "shrinkage", "alpha": [1, 1, 0]}, "'alpha' must be from 1e-300"),
        ({"measure": "shrinkage", "alpha": [1, 1, 1e-310]}, "'alpha' must be from 1e-300"),
        ({"measure": "shrinkage", "alpha": [1, 1, math.inf]}, "'alpha' must be from 1e-300"),
        ({"measure": "shrinkage", "alpha": "ones"}, "'alpha' must be None, 'flat' or positive numbers"),
        ({"draws": 1}, r"'draws' must be a whole number from 2 to 1000000 \(got 1\)"),
        ({"draws": 10.0}, "'draws' must"),
        ({"draws": True}, "'draws' must"),
    ],
)
def test_refused(changed, message):
    arguments = {"mechanism": NOISE, "measure": "local", "draws": 4} | changed
    with pytest.raises(ParameterError, match=message):
        dr_ha(TABLE, arguments.pop("mechanism"), method="monte_carlo", **arguments)


@pytest.mark.parametrize("table", [[[31337.5, 1]], [[-31337, 1]], [31337, 1], [[0, 0]]])
def test_refused_tables_are_not_shown(table, texts_of):
    with pytest.raises(ParameterError) as caught:
        dr_ha(table, NOISE, method="monte_carlo")
    assert not any("31337" in text for text in texts_of(caught.value))
