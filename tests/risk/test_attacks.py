"""Guesses from all counts of a cell, against enumeration, symmetry, limits and simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad

from pdprivacy.core.mechanisms import Gaussian, Geometric, Laplace, Staircase
from pdprivacy.errors import ParameterError
from pdprivacy.risk import attacks, dr_ha
from pdprivacy.risk.attacks import plurality_risk, probabilistic_risk
from pdprivacy.risk.compositions import Cells, NoNoise, OnlyNoise, Reading

BOTH = pytest.mark.parametrize("risk", [plurality_risk, probabilistic_risk])


def of_one(risk, counts, mechanism):
    return float(risk(Cells.of([counts]), Reading(mechanism))[0])


def by_enumeration(counts, laws):
    """Both risks of one cell: all tables that its counts can read as, each with its probability.

    laws : for each count, (what it reads as, probability) pairs.
    """
    size, hard, soft = sum(counts), [], []
    for table in itertools.product(*laws):
        chance, reads = math.prod(each for _, each in table), [read for read, _ in table]
        most = max(reads)
        if most == 0:
            continue
        winners = [n for n, read in zip(counts, reads, strict=True) if read == most]
        hard.append(chance * sum(winners) / (len(winners) * size))
        soft.append(
            chance * sum(n * read for n, read in zip(counts, reads, strict=True)) / (size * sum(reads))
        )
    return math.fsum(hard), math.fsum(soft)


def geometric_law(count, epsilon, reach):
    """The reading of a count with two-sided geometric noise."""
    r = math.exp(-epsilon)
    law = {}
    for z in range(-reach, reach + 1):
        read = max(count + z, 0)
        law[read] = law.get(read, 0.0) + (1 - r) / (1 + r) * r ** abs(z)
    return list(law.items())


@pytest.mark.parametrize(
    ("counts", "epsilon"),
    [
        ((0, 3), 1.0),
        ((1, 1), 0.6),
        ((2, 5), 0.6),
        ((0, 0, 2), 2.0),
        ((1, 1, 3), 2.0),
        ((2, 1, 0), 2.0),
        ((0, 0, 1, 1), 4.0),
        ((0, 1, 2, 2), 4.0),
    ],
)
def test_every_table_of_geometric_noise(counts, epsilon):
    laws = [geometric_law(n, epsilon, math.ceil(34 / epsilon)) for n in counts]  # exp(-34) is below 2e-15
    hard, soft = by_enumeration(counts, laws)
    mechanism = Geometric(epsilon=epsilon)
    assert of_one(plurality_risk, counts, mechanism) == pytest.approx(hard, abs=1e-13)
    assert of_one(probabilistic_risk, counts, mechanism) == pytest.approx(soft, abs=1e-13)


@pytest.mark.parametrize(
    "mechanism",
    [
        Geometric(epsilon=2, bounds=(0, math.inf), bounding="truncated"),
        Geometric(epsilon=2, bounds=(0, math.inf), bounding="clamp"),
        Geometric(epsilon=1, bounds=(0, 5), bounding="truncated"),
        Geometric(epsilon=1, bounds=(1, 5), bounding="clamp"),
    ],
    ids=["truncated", "clamp", "truncated above", "bit from 1"],
)
@pytest.mark.parametrize("counts", [(0, 3), (1, 4), (2, 1, 0)])
def test_every_table_of_bounded_noise(mechanism, counts):
    numbers = np.arange(30)
    laws = [
        [(z, p) for z, p in zip(numbers.tolist(), mechanism.pmf(numbers, n).tolist(), strict=True) if p > 0]
        for n in counts
    ]
    hard, soft = by_enumeration(counts, laws)
    assert of_one(plurality_risk, counts, mechanism) == pytest.approx(hard, abs=1e-12)
    assert of_one(probabilistic_risk, counts, mechanism) == pytest.approx(soft, abs=1e-12)


@pytest.mark.full
@BOTH
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(epsilon=0.001, sensitivity=1),
        Laplace(epsilon=50, sensitivity=1),
        Geometric(epsilon=1e-6),
        Staircase(epsilon=0.02, sensitivity=7),  # steps of 7: no polynomial
        Gaussian(epsilon=0.01, delta=1e-6, sensitivity=1, bounds=(0, math.inf), bounding="truncated"),
        Laplace(epsilon=0.01, sensitivity=1, bounds=(0, 900), bounding="clamp"),
        stats.cauchy(scale=3),
        stats.t(0.4, scale=50),  # a read beyond 2**51 has a probability of 1e-6
        stats.gumbel_r(scale=2000),
        NoNoise(),
        OnlyNoise(),
    ],
    ids=lambda mechanism: getattr(getattr(mechanism, "dist", None), "name", type(mechanism).__name__),
)
def test_equal_counts_share_all_conclusions(risk, mechanism):
    # by symmetry every label is as likely to be concluded, and one is unless all read as empty
    for count, labels in ((1, 2), (300, 2), (40, 3), (5, 7), (2, 40)):
        q = Reading(mechanism).empty(np.array([count]))[0]
        exact = (1 - q**labels) / labels
        assert of_one(risk, [count] * labels, mechanism) == pytest.approx(exact, abs=1e-13)


def two_labels(counts, cdf, top):
    """Plurality risk of two labels, read by read, from the distribution function of the noise."""
    edges = np.arange(top + 1) + 0.5
    first, second = (cdf(edges - n) for n in counts)
    p, others = (np.diff(first), np.diff(second)), (second[:-1], first[:-1])
    won = [np.sum(p[k] * (others[k] + p[1 - k] / 2)) for k in (0, 1)]
    return (counts[0] * won[0] + counts[1] * won[1]) / sum(counts)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    ("mechanism", "top"),
    [
        (Laplace(epsilon=0.001, sensitivity=1), 45_000),
        (Geometric(epsilon=0.01), 10_000),
        (stats.norm(scale=700), 12_000),
        (Staircase(epsilon=0.05, sensitivity=7), 12_000),
        (stats.norm(loc=0.2, scale=0.4), 6000),
        (stats.uniform(loc=-2500, scale=5000), 9000),
    ],
    ids=["laplace", "geometric", "normal", "staircase", "narrow", "uniform"],
)
def test_plurality_of_two_labels_read_by_read(mechanism, top):
    for counts in ((0, 1), (3, 800), (2999, 3000), (517, 5000)):
        exact = two_labels(counts, mechanism.cdf, top)
        assert of_one(plurality_risk, counts, mechanism) == pytest.approx(exact, abs=1e-12)


@pytest.mark.full
@pytest.mark.parametrize(
    "mechanism",
    [Laplace(epsilon=0.02, sensitivity=1), Geometric(epsilon=0.02), stats.norm(scale=150)],
    ids=["laplace", "geometric", "normal"],
)
@pytest.mark.parametrize("counts", [(0, 3), (400, 700)])
def test_probabilistic_of_two_labels_read_by_read(mechanism, counts):
    edges = np.arange(2501) + 0.5
    first, second = (np.diff(mechanism.cdf(edges - n), prepend=0.0) for n in counts)
    x = np.arange(2501.0)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(x[:, np.newaxis] / (x[:, np.newaxis] + x))  # of the first label
    mine, both = first @ share @ second, 1 - first[0] * second[0]
    exact = (counts[0] * mine + counts[1] * (both - mine)) / sum(counts)
    assert of_one(probabilistic_risk, counts, mechanism) == pytest.approx(exact, abs=1e-12)


def test_probabilistic_in_the_continuum():
    """Counts (0, b) with Laplace noise of a huge scale b: reads over b are continuous, up to 1/b."""
    b = 10**6
    none, shifted = (lambda x: math.exp(-x) / 2), (lambda x: math.exp(-abs(x - 1)) / 2)
    kinked = [
        dblquad(lambda x, y: x / (x + y) * shifted(x) * none(y), 0, 40, low, high, epsabs=1e-8)[0]
        for low, high in ((0, 1), (1, 40))
    ]
    alone = (1 - math.exp(-1) / 2) / 2  # the other one reads as empty
    actual = of_one(probabilistic_risk, [0, b], Laplace(epsilon=1 / b, sensitivity=1))
    assert actual == pytest.approx(sum(kinked) + alone, abs=1e-5)


def test_without_noise():
    table = [[0, 3], [1, 2], [2, 2], [0, 0, 7], [1, 2, 2], [5, 70_000], [12, 12, 90_001, 5, 0]]
    for counts in table:
        size = sum(counts)
        assert of_one(plurality_risk, counts, NoNoise()) == pytest.approx(max(counts) / size, abs=1e-14)
        exact = sum(n**2 for n in counts) / size**2
        assert of_one(probabilistic_risk, counts, NoNoise()) == pytest.approx(exact, abs=1e-13)


@BOTH
def test_noise_alone(risk):
    # Every label is concluded as often as every other, and none when all K read as empty, each by
    # a coin: (1 - 2**-K) / K, whatever the counts.
    for counts in ([0, 5], [3, 4], [0, 0, 1], [1, 2, 3, 4, 5]):
        labels = len(counts)
        assert of_one(risk, counts, OnlyNoise()) == pytest.approx((1 - 0.5**labels) / labels, abs=1e-14)


@pytest.mark.full(keep=1)
@BOTH
def test_published_curves_of_homogeneous_cells_with_two_labels(risk):
    """As the source says of such cells: up to 1, down to a limit above 1/4. The limit is 3/8."""
    sizes = np.array([1, 2, 3, 4, 6, 10, 25, 120, 240])
    cells = Cells.of(np.stack([sizes, np.zeros_like(sizes)], axis=1))
    for epsilon in (1e-5, 1e-3):
        # a cell of n records is n records away from (0, 0), where both labels are as likely
        q = 1 - math.exp(-epsilon / 2) / 2
        risks = risk(cells, Reading(Laplace(epsilon=epsilon, sensitivity=1)))
        assert (risks >= (1 - q**2) / 2).all()
        assert (risks <= (1 - q**2) / 2 + np.tanh(sizes * epsilon / 2)).all()
    assert risk(cells, Reading(Laplace(epsilon=1e-5, sensitivity=1)))[0] == pytest.approx(3 / 8, abs=1e-4)
    risks = [risk(cells, Reading(Laplace(epsilon=e, sensitivity=1))) for e in np.logspace(-3, 2, 11)]
    assert (np.diff(risks, axis=0) > -1e-12).all()
    assert risks[-1] == pytest.approx(1, abs=1e-12)


@BOTH
def test_never_below_the_homogeneity_attack(risk):
    cells = Cells.of([*list(itertools.product(range(4), repeat=3))[1:], (0, 0, 50), (30, 0, 40)])
    for mechanism in (Laplace(epsilon=0.3, sensitivity=1), Geometric(epsilon=1), stats.norm(scale=0.3)):
        reading = Reading(mechanism)
        q = reading.empty(cells.compositions)
        alone = (1 - q) * np.stack([np.delete(q, k, axis=1).prod(axis=1) for k in range(3)], axis=1)
        share = cells.compositions / cells.sizes[:, np.newaxis]
        risks = risk(cells, reading)
        assert (risks >= (share * alone).sum(axis=1) - 1e-14).all()
        assert (risks <= share.max(axis=1) * (1 - q.prod(axis=1)) + 1e-14).all()


@BOTH
def test_order_and_company_do_not_matter(risk, monkeypatch):
    table = np.array([[0, 3, 9], [9, 0, 3], [0, 0, 0], [2, 2, 700], [700, 2, 2], [5, 1, 1]])
    reading, cells = Reading(Laplace(epsilon=0.05, sensitivity=1)), Cells.of(table)
    risks = cells._average(risk(cells, reading), None)
    assert risks[0] == risks[1]
    assert risks[3] == risks[4]
    assert np.isnan(risks[2])
    for counts, each in zip(table, risks, strict=True):
        if counts.any():
            assert of_one(risk, counts, reading.mechanism) == pytest.approx(each, abs=1e-13)
    monkeypatch.setattr(attacks, "FLOATS", 64)  # everything in small pieces
    assert cells._average(risk(cells, reading), None) == pytest.approx(risks, abs=1e-13, nan_ok=True)


@BOTH
@pytest.mark.full
@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_simulated_with_the_samplers_of_numpy(risk, kind):
    # each of 12 comparisons at 5 standard errors: 7e-6 false alarms in all
    rng = np.random.default_rng(20)
    cells = Cells.of([[0, 0, 4], [1, 2, 3], [2, 2, 9]])
    counts = cells.compositions
    mechanism = Laplace(epsilon=0.5, sensitivity=1) if kind == "laplace" else stats.norm(scale=2)
    risks = risk(cells, Reading(mechanism))
    draws = 200_000
    for composition, exact in zip(counts, risks, strict=True):
        noise = getattr(rng, kind)(scale=2.0, size=(draws, 3))
        reads = np.maximum(np.floor(composition + noise + 0.5), 0)
        some = reads.any(axis=1)
        if risk is plurality_risk:
            concluded = (reads == reads.max(axis=1, keepdims=True)).astype(float)
        else:
            concluded = reads
        shares = concluded[some] / concluded[some].sum(axis=1, keepdims=True)
        right = np.zeros(draws)
        right[some] = shares @ composition / composition.sum()
        assert exact == pytest.approx(right.mean(), abs=5 * right.std() / math.sqrt(draws))


@BOTH
def test_the_threshold_is_that_of_whole_numbers(risk):
    with pytest.raises(ParameterError, match="'threshold' is for attack='homogeneity'"):
        dr_ha([[0, 3], [1, 1]], NoNoise(), attack=risk.__name__.removesuffix("_risk"), threshold=1.5)
