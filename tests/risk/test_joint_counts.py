"""Counts that make up a label together (`joint_counts`, `noise_sums`): by enumeration and convolution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pdprivacy import risk
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, Staircase
from pdprivacy.risk.compositions import readings
from pdprivacy.risk.joint_counts import JointCells
from pdprivacy.risk.noise_sums import NoiseSum

LAPLACE = Laplace(0.3, 1)
SCALE = LAPLACE.scale


def reader_risk(counts, empty):
    """The chance that all positive counts of a cell have one label that some of its records have."""
    total, labels = 0.0, range(len(counts))
    for shown in labels:
        if sum(counts[shown]) == 0:
            continue
        silent = math.prod(empty(n) for label in labels if label != shown for n in counts[label])
        total += (1 - math.prod(map(empty, counts[shown]))) * silent
    return total


def divisions(total, places):
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in divisions(total - first, places - 1):
            yield (first, *rest)


def expected_by_enumeration(counts, empty):
    flat, width = [n for group in counts for n in group], len(counts[0])
    size, mean = sum(flat), 0.0
    for drawn in divisions(size, len(flat)):
        chance = float(math.factorial(size))
        for n, observed in zip(drawn, flat, strict=True):
            chance *= (observed / size) ** n / math.factorial(n)
        if chance:
            mean += chance * reader_risk(batched(drawn, width), empty)
    return mean


def batched(values, width):
    return [tuple(values[start : start + width]) for start in range(0, len(values), width)]


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize(
    ("mechanism", "empty"),
    [
        (Geometric(1, 1), lambda n: math.exp(-n) / (1 + math.exp(-1)) if n else 1 / (1 + math.exp(-1))),
        # the scale of Laplace noise exceeds 1/epsilon by rounding
        (LAPLACE, lambda n: 1 - math.exp(-0.5 / SCALE) / 2 if n == 0 else math.exp(-(n - 0.5) / SCALE) / 2),
    ],
    ids=["geometric", "laplace"],
)
def test_the_expected_risk_of_joint_counts_is_the_mean_over_all_tables(shape, mechanism, empty):
    tables = np.random.default_rng(3).integers(0, 3, (5, *shape))
    tables[0] = 0
    tables[1, 1:] = 0  # homogeneous in its first label
    cells = JointCells.of_checked(tables)
    (noise,), _ = readings(mechanism)
    risks = cells.expected([noise, noise])
    assert cells.which[0] == -1
    assert (risks[0] == risks[1]).all()
    for table, which in zip(tables[1:], cells.which[1:], strict=True):
        assert risks[0, which] == pytest.approx(expected_by_enumeration(table.tolist(), empty), abs=1e-12)


def test_a_label_of_one_count_has_the_risk_of_a_table_of_one_attribute():
    counts = np.random.default_rng(4).poisson(20, (300, 3))
    mechanism = Laplace(0.1, 1)
    cells = JointCells.of_checked(counts[:, :, np.newaxis])
    risks = cells.expected(readings(mechanism)[0])[0]
    np.testing.assert_allclose(
        risks[cells.which], risk.dr_ha(counts, mechanism, "expected", None), atol=1e-13
    )


def test_equal_cells_are_computed_once():
    counts = np.array([[[1, 2], [0, 3]], [[3, 0], [2, 1]], [[0, 0], [0, 0]], [[1, 3], [2, 0]]])
    cells = JointCells.of_checked(counts)
    assert cells.which.tolist() == [cells.which[0], cells.which[0], -1, 1 - cells.which[0]]
    assert cells.all_sizes.tolist() == [6, 6, 0, 6]


@pytest.mark.parametrize("terms", [2, 3, 7])
@pytest.mark.parametrize(
    "mechanism", [Geometric(1, 1), Geometric(8, 1), Geometric(0.05, 1), DiscreteGaussian(1, 1e-3, 1)]
)
def test_sums_of_whole_noise_are_convolutions(mechanism, terms):
    reach = int(40 * mechanism.std) + 40
    mass = mechanism.distribution.pdf(np.arange(-reach, reach + 1))
    total = mass
    for _ in range(terms - 1):
        total = np.convolve(total, mass)
    points = np.arange(-3 * terms, 3 * terms + 1)
    expected = np.cumsum(total)[points + terms * reach]
    np.testing.assert_allclose(NoiseSum(mechanism, terms).cdf(points), expected, atol=1e-12)
    np.testing.assert_allclose(NoiseSum(mechanism, terms).cdf(points + 0.5), expected, atol=1e-12)


@pytest.mark.parametrize("terms", [2, 5])
def test_sums_of_laplace_noise_are_integrals(terms):
    from scipy import integrate

    mechanism = Laplace(1, 1)

    def characteristic(t):
        return (1 + t * t) ** -terms

    for x in (-4.0, -0.5, 0.0, 0.25, 3.0):
        # Gil-Pelaez
        integral, _ = integrate.quad(
            lambda t, x=x: np.sinc(t * x / np.pi) * x * characteristic(t), 0, 200, limit=2000
        )
        expected = 0.5 + integral / math.pi
        assert NoiseSum(mechanism, terms).cdf(x * mechanism.scale) == pytest.approx(expected, abs=1e-9)


def test_other_sums_are_close():
    class Nearly:
        """Laplace noise in all but its order, which sends it to the grid."""

        distribution = GeneralizedNormal.of(1 + 1e-9, 3.0)

    points = np.linspace(-40, 40, 81)
    for terms in (2, 60):
        exact = NoiseSum(Laplace("1/3", 1), terms).cdf(points)
        np.testing.assert_allclose(NoiseSum(Nearly, terms).cdf(points), exact, atol=1e-5)
    gaussian = Gaussian(0.5, 1e-3, 1)
    np.testing.assert_allclose(NoiseSum(gaussian, 9).cdf(points), gaussian.cdf(points / 3), atol=1e-15)
    wide = NoiseSum(Geometric(0.002, 1), 4).cdf(points)
    np.testing.assert_allclose(wide, NoiseSum(Laplace(0.002, 1), 4).cdf(points + 0.5), atol=1e-5)
    drawn = Staircase(1, 1).distribution.ppf(np.random.default_rng(5).random((20_000, 3))).sum(axis=1)
    empirical = (drawn[:, np.newaxis] <= points).mean(axis=0)
    assert np.abs(empirical - NoiseSum(Staircase(1, 1), 3).cdf(points)).max() < 0.015
    many = NoiseSum(Laplace(1, 1), 20_000).cdf(200.0)
    assert many == pytest.approx(0.8413447, abs=1e-4)  # one standard deviation
