"""Geometric noise, bounded or not: its exact law, its privacy loss, its errors and its draws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from pdprivacy import Pure
from pdprivacy.core.mechanisms import Geometric, truncated_geometric_scale, truncated_laplace_scale
from pdprivacy.core.mechanisms.geometric import exact_geometric_scale
from pdprivacy.errors import ParameterError
from tests.support.statistics import Distribution, accepts_only, discrete

EPSILONS = [Fraction(10) ** k for k in range(-5, 6)]
RANGES = [(0, 1), (0, 2), (0, 7), (-3, 9), (0, 50), (0, math.inf), (-math.inf, 4)]
BOUNDINGS = ["clamp", "truncated"]


def law(scale: float, s: int, lower: float, upper: float, bounding: str) -> tuple[np.ndarray, np.ndarray]:
    """The released numbers and their probabilities, summed from the law of the noise."""
    reach = int(80 * scale) + 60
    z = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(z) / scale)
    released = z + s
    if bounding == "clamp":
        return np.clip(released, lower, upper), p / p.sum()
    inside = (released >= lower) & (released <= upper)
    return released[inside], p[inside] / p[inside].sum()


def statistics(lower: float, upper: float) -> range:
    first = int(lower) if math.isfinite(lower) else int(upper) - 25
    return range(first, (int(upper) if math.isfinite(upper) else first + 25) + 1)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize(("lower", "upper"), RANGES)
@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "1", "5", "20"])
def test_law_and_errors_are_those_of_the_bounded_noise(epsilon, lower, upper, bounding):
    mechanism = Geometric(epsilon, 1, bounds=(lower, upper), bounding=bounding)
    scale, worst = mechanism.scale, [0.0, 0.0]
    for s in statistics(lower, upper):
        y, p = law(scale, s, lower, upper, bounding)
        bias, mse = float((y * p).sum() - s), float(((y - s) ** 2 * p).sum())
        assert float(mechanism.bias(s)) == pytest.approx(bias, abs=1e-9 * max(scale, 1))
        assert float(mechanism.mse(s)) == pytest.approx(mse, abs=1e-9 * max(scale, 1) ** 2)
        worst = [max(worst[0], abs(bias)), max(worst[1], mse)]
        points = np.array([s - 3, s - 1, s, s + 0.5, s + 2, y.min() - 1, y.min(), y.max()])
        expected = [p[y <= x].sum() for x in points]
        np.testing.assert_allclose(mechanism.cdf(points, s), expected, atol=1e-12)
        expected = [p[y == x].sum() for x in points]
        np.testing.assert_allclose(mechanism.pmf(points, s), expected, atol=1e-12)
        half = mechanism.interval(0.9)[1]
        assert p[np.abs(y - s) <= half].sum() >= 0.9 - 1e-12
    if math.isfinite(upper - lower):
        assert mechanism.worst_case_bias() == pytest.approx(worst[0], abs=1e-9 * max(scale, 1))
        assert mechanism.worst_case_mse() == pytest.approx(worst[1], abs=1e-9 * max(scale, 1) ** 2)
    else:
        assert worst[1] <= mechanism.worst_case_mse() * (1 + 1e-12) == mechanism.std**2 * (1 + 1e-12)


def test_wide_noise_in_a_wide_range_keeps_its_digits():
    """Beyond the table of sums: against sums of exact terms in long doubles."""
    for epsilon, width, s in (("1e-4", 9000, 5000), ("1e-3", 20000, 12000), ("1e-6", 5000, 4990)):
        for bounding in BOUNDINGS:
            mechanism = Geometric(epsilon, 1, bounds=(0, width), bounding=bounding)
            b = np.longdouble(mechanism.scale)
            y = np.arange(width + 1)
            p = np.exp(-np.abs(y - s).astype(np.longdouble) / b)
            if bounding == "clamp":
                p *= np.tanh(np.longdouble(0.5) / b)
                for end in (0, -1):
                    p[end] /= -np.expm1(-1 / b)  # all that lies beyond
            else:
                p /= p.sum()
            assert float(mechanism.bias(s)) == pytest.approx(float((p * (y - s)).sum()), rel=1e-7)
            assert float(mechanism.mse(s)) == pytest.approx(float((p * (y - s) ** 2).sum()), rel=1e-8)


def worst_loss(scale: float, width: int, total: int, moves: int) -> float:
    """The largest privacy loss of ``moves`` truncated numbers that move by ``total`` in all."""
    rows = [law(scale, s, 0, width, "truncated")[1] for s in range(width + 1)]
    most = np.zeros(total + 1)
    for d in range(1, min(total, width) + 1):
        pairs = [(rows[s], rows[s + d]) for s in range(width + 1 - d)]
        most[d] = max(np.abs(np.log(first / second)).max() for first, second in pairs)
    splits = itertools.product(range(min(total, width) + 1), repeat=moves)
    return max(sum(most[d] for d in split) for split in splits if sum(split) <= total)


@pytest.mark.full
@pytest.mark.parametrize("moves", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "3", "10"])
def test_truncated_noise_loses_epsilon_and_no_more(epsilon, moves):
    for width, total in ((1, 1), (2, 1), (2, 2), (3, 2), (6, 3), (9, 1), (12, 6)):
        if total > width * moves or float(epsilon) * width > 300:
            continue
        scale = float(truncated_geometric_scale(Fraction(epsilon), total, width, moves))
        loss = worst_loss(scale, width, total, moves)
        assert loss <= float(epsilon) * (1 + 1e-9)
        if total % moves == 0 and 2 * total <= width * moves:  # as far as the bound can be attained
            assert loss >= float(epsilon) * (1 - 1e-6)
        # open-sided noise is valid within every range
        wide = float(truncated_geometric_scale(Fraction(epsilon), total, None, moves))
        assert worst_loss(wide, width, total, moves) <= float(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "10"])
def test_one_open_side_solves_its_equation(epsilon):
    b = float(truncated_geometric_scale(Fraction(epsilon), 1))
    r = math.exp(-1 / b)
    assert math.log((1 + r) / r - r) == pytest.approx(float(epsilon), rel=1e-8)
    assert b <= float(truncated_laplace_scale(Fraction(epsilon), Fraction(1)))
    assert Geometric(epsilon, 1, bounds=(0, math.inf), bounding="truncated").loss == Pure(epsilon)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize(("lower", "upper"), [(0, 6), (-2, math.inf)])
def test_draws_have_the_claimed_scale_and_no_other(bounding, lower, upper):
    mechanism = Geometric("0.4", 1, bounds=(lower, upper), bounding=bounding, l0_sensitivity=1)
    drawn = mechanism.sample(np.full(200_000, 1), rng=11)
    assert drawn.min() >= lower
    assert drawn.max() <= upper

    def claimed(factor: float) -> Distribution:
        y, p = law(mechanism.scale * factor, 1, lower, upper, bounding)
        return discrete(np.unique(y), np.bincount((y - y.min()).astype(int), weights=p))

    accepts_only(drawn, claimed)


def test_values_outside_are_clamped_and_several_need_moves():
    mechanism = Geometric(50, 1, bounds=(0, 5), bounding="truncated", l0_sensitivity=1)
    assert mechanism.sample([-4, 3, 9], rng=1).tolist() == [0, 3, 5]
    assert mechanism.sample([[2]], rng=1).tolist() == [[2]]
    with pytest.raises(ParameterError, match="takes one number"):
        Geometric(1, 1, bounds=(0, 5), bounding="truncated").sample([1, 2])
    assert Geometric(50, 1, bounds=(0.5, 5.5), bounding="clamp").sample([0, 9], rng=1).tolist() == [1, 5]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"bounds": (2, 1), "bounding": "clamp"}, "lower bound must be below"),
        ({"bounds": (1, 1), "bounding": "clamp"}, "lower bound must be below"),
        ({"bounds": (1.2, 2.9), "bounding": "clamp"}, "two whole numbers"),
        ({"bounds": (-math.inf, math.inf), "bounding": "truncated"}, "finite bound"),
        ({"bounds": (0, 1), "bounding": "truncated", "sensitivity": 2}, "at most the range"),
        ({"bounds": (0, 1)}, "need a 'bounding'"),
        ({"bounding": "clamp"}, "needs 'bounds'"),
        ({"l0_sensitivity": 0}, "'l0_sensitivity' must be a positive"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(arguments, text):
    with pytest.raises(ParameterError, match=text):
        Geometric(1, **{"sensitivity": 1, **arguments})


@pytest.mark.parametrize("epsilon", ["1e-4", "1e-9", "1e-15"])
def test_tiny_losses_are_kept_to_all_digits(epsilon):
    """Against exact rational series of the exponentials and the logarithm."""
    for moves, total in ((1, 1), (2, 2), (7, 7)):
        b = exact_geometric_scale(Fraction(epsilon), Fraction(total), None, moves)
        # one number moves by one: 1/b + ln(1 + r (1 - r)), with exact exponentials to third order
        x = 1 / b
        r = 1 - x + x**2 / 2 - x**3 / 6
        gain = r * (1 - r)
        loss = moves * (x + gain - gain**2 / 2 + gain**3 / 3)
        assert loss <= Fraction(epsilon) * (1 + Fraction(1, 10**7) * (epsilon == "1e-4"))
        assert loss >= Fraction(epsilon) * (1 - Fraction(1, 10**6))


def test_bounds_beyond_64_bits_are_refused_at_once():
    for bounds in ((0, 1e300), (-(2**63), 2**63 - 1)):
        for bounding in BOUNDINGS:
            with pytest.raises(ParameterError, match="below 2\\*\\*61"):
                Geometric(1, 1, bounds=bounds, bounding=bounding)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_geometric_loses_epsilon_exactly(epsilon):
    for sensitivity in (1, 2, 20):
        mechanism = Geometric(epsilon, sensitivity)
        assert mechanism.loss == Pure(epsilon)
        assert mechanism.scale == pytest.approx(float(sensitivity / epsilon), rel=1e-15)
    if epsilon <= 100:
        mechanism = Geometric(epsilon, 2)
        ratio = mechanism.pmf([0, 1, 5]) / mechanism.pmf([2, 3, 7])
        np.testing.assert_allclose(np.log(ratio), float(epsilon), rtol=1e-9)


def test_a_geometric_interval_of_nearly_all_ends(monkeypatch):
    calls = []
    plain = Geometric.cdf

    def counted(self, x):
        calls.append(x)
        assert len(calls) < 1000, "the search does not end"
        return plain(self, x)

    monkeypatch.setattr(Geometric, "cdf", counted)
    level = 1 - 2.0**-53
    upper = Geometric(1).interval(level)[1]
    ratio = math.exp(-1)
    assert 2 * ratio ** (upper + 1) / (1 + ratio) <= 2.0**-53 * (1 + 1e-9)
    assert upper < 60
