"""Expected total variation distances against enumeration, closed forms and plain simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from pdprivacy.core.noise import noise_sums, simulator
from pdprivacy.errors import ParameterError
from pdprivacy.risk import table_utility
from pdprivacy.risk.table_utility import marginals, total_variation

NOISE = {
    "laplace": lambda epsilon: Laplace(epsilon, 1, l0_sensitivity=1),
    "geometric": lambda epsilon: Geometric(epsilon),
    "gaussian": lambda epsilon: Gaussian(epsilon, 1e-2, 1),
}


def plain_distance(counts, noisy):
    """The distance of one noisy margin, step by step."""
    clamped = [max(float(number), 0.0) for number in noisy]
    shares = (
        [number / sum(clamped) for number in clamped]
        if sum(clamped) > 0
        else [1 / len(clamped)] * len(clamped)
    )
    return sum(abs(p - n / sum(counts)) for p, n in zip(shares, counts, strict=True)) / 2


def geometric_masses(scale, pieces, reach):
    """Probabilities of -pieces*reach..pieces*reach for a sum of geometric numbers, by convolution."""
    kernel = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    masses = np.ones(1)
    for _ in range(pieces):
        masses = np.convolve(masses, kernel / kernel.sum())
    return masses


def mean_of_difference(name, mechanism, pieces):
    """E|e - f| of two independent sums of ``pieces`` draws of the noise."""
    if name == "gaussian":  # normal with twice the variance
        return 2 * mechanism.scale * math.sqrt(pieces / math.pi)
    if (
        name == "laplace"
    ):  # the difference of two gamma variables of shape a: 2 Gamma(a + 1/2) / (sqrt(pi) Gamma(a))
        shape = 2 * pieces
        log = gammaln(shape + 0.5) - gammaln(shape)
        return mechanism.scale * 2 * math.exp(log) / math.sqrt(math.pi)
    masses = geometric_masses(mechanism.scale, 2 * pieces, math.ceil(40 * mechanism.scale))
    return np.abs(np.arange(len(masses)) - len(masses) // 2) @ masses


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("counts", [(3, 0, 1), (1, 1), (0, 2)])
def test_expected_distance_is_enumerated(counts, pieces):
    # 6 comparisons at 5 standard errors: one false alarm in 300,000 choices of the seed.
    mechanism = Geometric(1)
    masses = geometric_masses(1.0, pieces, 14)
    least = -(len(masses) // 2)
    read = {}  # by cell: probabilities of the noisy counts, those below 0 taken together
    for count in set(counts):
        numbers = np.maximum(count + least + np.arange(len(masses)), 0)
        read[count] = [(number, masses[numbers == number].sum()) for number in np.unique(numbers).tolist()]
    expected = math.fsum(
        math.prod(chance for _, chance in each) * plain_distance(counts, [number for number, _ in each])
        for each in itertools.product(*(read[count] for count in counts))
    )
    distance, error = total_variation(counts, mechanism, pieces, draws=40_000, rng=1)
    assert abs(distance - expected) < 5 * error < 0.07 * expected


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("name", NOISE)
def test_two_large_cells_show_the_mean_of_a_difference(name, pieces):
    # No count falls below 0, and for shares of one half the distance is |e1 - e2| / (2 N) to a relative
    # error of |e1 + e2| / N, here 1e-7. 6 comparisons at 4 standard errors: one false alarm in 2500.
    mechanism = NOISE[name](0.8)
    expected = mean_of_difference(name, mechanism, pieces) / (2 * 2e9)
    distance, error = total_variation([10**9, 10**9], mechanism, pieces, draws=10_000, rng=2)
    assert abs(distance - expected) < 4 * error < 0.05 * expected


@pytest.mark.parametrize("pieces", [1, 9])
def test_gaussian_noise_on_a_huge_margin(pieces):
    # To first order the noisy share is off by (e_c - p_c sum(e)) / N, normal with variance
    # sigma^2 pieces (1 - 2 p_c + C p_c^2) / N^2, and E|z| = sqrt(2 / pi). The rest is 1e-6 of it.
    # Two comparisons at 4 standard errors: one false alarm in 8000.
    counts = np.array([9, 1, 4, 4, 2, 30]) * 10**7
    mechanism = NOISE["gaussian"](0.5)
    shares = counts / counts.sum()
    spread = np.sqrt(pieces * (1 - 2 * shares + len(counts) * shares**2)) * mechanism.scale / counts.sum()
    expected = spread.sum() * math.sqrt(2 / math.pi) / 2
    distance, error = total_variation(counts, mechanism, pieces, draws=5000, rng=3)
    assert abs(distance - expected) < 4 * error < 0.05 * expected


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("name", NOISE)
def test_pieces_are_sums_of_samples_of_the_mechanism(name, pieces):
    # 6 comparisons of two samples at 5 standard errors: one false alarm in 300,000.
    mechanism, counts, draws = NOISE[name](0.7), np.array([6, 0, 2, 1]), 3000
    cells = np.repeat(counts[:, np.newaxis], pieces, axis=1)
    cells[:, 1:] = 0  # the records of a cell of the margin may all be in one of its pieces
    noisy = mechanism.sample(np.tile(cells, (draws, 1, 1)), rng=4).sum(axis=2)
    plain = [plain_distance(counts.tolist(), each) for each in noisy]
    distance, error = total_variation(counts, mechanism, pieces, draws=draws, rng=5)
    assert np.std(plain) / math.sqrt(draws) == pytest.approx(error, rel=0.15)
    assert abs(distance - np.mean(plain)) < 5 * math.hypot(error, np.std(plain) / math.sqrt(draws))


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("pieces", [1, 50])
@pytest.mark.parametrize("name", NOISE)
def test_sums_have_the_variance_of_their_pieces(name, pieces):
    # 200,000 draws: the sample variance has a relative standard error below 0.005 (excess kurtosis at
    # most 3.3 here). 6 comparisons at 5 of these: one false alarm in 300,000 choices of the seed.
    mechanism = NOISE[name](0.7)
    drawn = noise_sums(name, mechanism.scale, pieces, (100, 2000), simulator(6))
    assert np.var(drawn) == pytest.approx(pieces * mechanism.std**2, rel=0.027)
    assert abs(drawn.mean()) < 5 * math.sqrt(pieces / 200_000) * mechanism.std
    assert (name == "geometric") == (drawn == np.rint(drawn)).all()


@pytest.mark.full(keep=12)
@pytest.mark.parametrize("cells", [2, 3, 6])
@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("small", [2e-5, 2**-29, 1e-11])
def test_without_information_only_the_number_of_cells_counts(name, cells, small):
    # All records in one cell: the distance is 1 minus its noisy share, whose mean is 1 / C by symmetry.
    # 27 comparisons at 5 standard errors: one false alarm in 50,000 choices of the seed.
    epsilon = small if name == "geometric" else 2e-5  # the others have no smaller one
    counts = [0] * (cells - 1) + [3]
    distance, error = total_variation(counts, NOISE[name](epsilon), draws=4000, rng=7)
    assert abs(distance - (1 - 1 / cells)) < 5 * error < 0.05


@pytest.mark.parametrize("name", NOISE)
def test_without_noise_there_is_no_distance(name):
    distance, error = total_variation([3, 0, 5], NOISE[name](10**5), pieces=6)
    assert 0 <= distance < 0.01
    assert 0 <= error < 0.001
    if name == "geometric":
        assert (distance, error) == (0.0, 0.0)


@pytest.mark.parametrize("name", NOISE)
def test_one_cell_has_no_distance(name):
    assert total_variation([4], NOISE[name](0.1), rng=1) == (0.0, 0.0)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any),
    st.sampled_from(sorted(NOISE)),
    st.floats(1e-4, 100),
    st.integers(1, 1000),
)
def test_distances_are_shares(counts, name, epsilon, pieces):
    distance, error = total_variation(counts, NOISE[name](epsilon), pieces, draws=10, rng=1)
    assert 0 <= distance <= 1
    assert 0 <= error <= 0.5


@pytest.mark.full
def test_standard_error_is_the_spread_over_seeds():
    # The variance of 3000 z-scores varies by 0.027, and estimating the error from 200 draws adds 1 %:
    # at 5 of these, one false alarm in a million choices of the seeds.
    value, exact = total_variation([7, 2, 0], Geometric(0.5), draws=2_000_000, rng=10**6)
    distances = np.array([total_variation([7, 2, 0], Geometric(0.5), rng=seed) for seed in range(3000)])
    assert 0.87 < np.var((distances[:, 0] - value) / distances[:, 1]) < 1.15
    assert abs(distances[:, 0].mean() - value) < 5 * math.hypot(
        exact, distances[:, 1].mean() / math.sqrt(3000)
    )


def test_batches_leave_nothing_out(monkeypatch):
    # Two comparisons at 5 standard errors: one false alarm in a million choices of the seed.
    whole, first = total_variation([7, 2, 0], Geometric(1), draws=1001, rng=1)
    for numbers in (1, 100):
        monkeypatch.setattr(table_utility, "NUMBERS", numbers)
        distance, error = total_variation([7, 2, 0], Geometric(1), draws=1001, rng=2)
        assert error == pytest.approx(first, rel=0.2)
        assert abs(distance - whole) < 5 * math.hypot(first, error)


def test_seeds():
    first, repeated, other = (total_variation([5, 1], Laplace(1, 1), rng=seed) for seed in (1, 1, 2))
    assert first == repeated != other
    assert total_variation([5, 1], Laplace(1, 1)) != total_variation([5, 1], Laplace(1, 1))


def test_marginals_are_combinations():
    assert marginals("abc", 2) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [len(marginals(range(6), order)) for order in (1, 2, 3)] == [6, 15, 20]
    assert marginals(["x", "y"], (3, 2, 1, 2)) == [("x",), ("y",), ("x", "y")]


@pytest.mark.parametrize("orders", [0, -1, (1, 0), (1, "2"), 1.0, (), True, (True,)])
def test_orders_that_are_none(orders):
    with pytest.raises(ParameterError, match="'order' must"):
        marginals("abc", orders)


@pytest.mark.parametrize(
    ("mechanism", "got"),
    [
        (DiscreteGaussian(1, 1e-2), "DiscreteGaussian"),
        (Staircase(1, 1), "Staircase"),
        (GeneralizedGaussian(1, 1e-2, 1, 2), "GeneralizedGaussian"),
        (Laplace(1, 1, bounds=(0, 9), bounding="clamp"), "bounded laplace noise"),
        (Geometric(1, bounds=(0, math.inf), bounding="truncated"), "bounded geometric noise"),
        (Laplace, "type"),
        ("laplace", "str"),
        (stats.norm(), "frozen"),
        (None, "NoneType"),
    ],
)
def test_other_mechanisms_are_refused(mechanism, got):
    with pytest.raises(ParameterError, match=f"must be Laplace, Geometric or Gaussian .*{got}"):
        total_variation([1, 2], mechanism)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[31337, 2]], r"one dimension \(got 2\)"),
        (31337, r"one dimension \(got 0\)"),
        ([0, 0], "at least one record"),
        ([], "at least one record"),
        ([31337.5], "whole numbers"),
        ([31337, math.nan], "whole numbers"),
        ([31337, math.inf], "whole numbers"),
        ([31337, -31337], "not be negative"),
        (["31337"], "whole numbers"),
        ([True], "whole numbers"),
        ([2**52, 2**52], r"less than 2\*\*53"),
    ],
)
def test_refused_counts_are_not_shown(counts, message, texts_of):
    with pytest.raises(ParameterError, match=message) as caught:
        total_variation(counts, Geometric(1))
    assert not any("31337" in text or str(2**52) in text for text in texts_of(caught.value))


@pytest.mark.parametrize("name", ["pieces", "draws"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_numbers_of_pieces_and_draws(name, value):
    with pytest.raises(ParameterError, match=f"'{name}' must be a whole number from"):
        total_variation([1, 2], Geometric(1), **{name: value})


def test_limits_of_pieces_and_draws():
    with pytest.raises(ParameterError, match="from 1 to 4"):
        total_variation([1, 2], Geometric(1), 2**32 + 1)
    with pytest.raises(ParameterError, match="from 2 to 10000000"):
        total_variation([1, 2], Geometric(1), draws=1)
    assert 0 <= total_variation([1, 2], Geometric(2**-29), 2**32, 2, rng=1)[0] <= 1
    with pytest.raises(ParameterError, match="'rng' must"):
        total_variation([1, 2], Geometric(1), rng=-1)
