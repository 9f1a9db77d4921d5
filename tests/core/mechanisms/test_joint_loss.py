"""The loss of several moved numbers: by quadrature, by the normal law, and one bound against the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from pdprivacy.core.mechanisms import generalized_gaussian_scale
from pdprivacy.core.mechanisms.joint_loss import MOST_CONVOLVED, STEPS, TAIL, JointLoss


def chance_of_loss(p: float, b: float, moves: tuple[float, float], epsilon: float) -> float:
    """The probability that two moved numbers lose more than epsilon, by quadrature over one of them."""
    law, (first, second) = stats.gennorm(p), (move / b for move in moves)

    def beyond(left: np.ndarray) -> np.ndarray:
        """The probability that the second loses more: its loss grows with its noise, so by bisection."""
        if not second:
            return np.where(left < 0, 1.0, 0.0)
        low, high = np.full(left.shape, -60.0 - second), np.full(left.shape, 60.0)
        for _ in range(60):
            middle = (low + high) / 2
            above = np.abs(middle + second) ** p - np.abs(middle) ** p > left
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return law.sf(high)

    ends = np.linspace(-law.isf(1e-12), law.isf(1e-12), 4001)
    noise = (ends[1:] + ends[:-1]) / 2
    left = epsilon - (np.abs(noise + first) ** p - np.abs(noise) ** p)
    return float((np.diff(law.cdf(ends)) * beyond(left)).sum())


@pytest.mark.parametrize(
    ("p", "delta", "largest"),
    [(3, "1e-2", 14.1), (2, "1e-3", 2**0.5 * 9.52), (6, "1e-3", None), (2.5, "0.1", None)],
)
def test_two_numbers_that_move_by_one_each_have_the_scale_that_their_loss_needs(p, delta, largest):
    """What a table of counts needs where a record may change its cell."""
    b = generalized_gaussian_scale("0.5", delta, 2, p, None, 2, linf_sensitivity=1)
    assert largest is None or b <= largest
    assert chance_of_loss(p, b, (1, 1), 0.5) <= float(delta) * (1 + 1e-4)
    if p != 2:  # calibrated there for both signs of the noise, as one number is
        assert chance_of_loss(p, 0.99 * b, (1, 1), 0.5) > float(delta)


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("p", [2, 2.5, 3, 6])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_no_smaller_moves_lose_more_often(p, epsilon):
    for b in (1.0, 3.0, 10.0):
        chances = [[chance_of_loss(p, b, (x, y), epsilon) for x in (0.0, 0.3, 0.7, 1.0)] for y in (0.5, 1.0)]
        assert np.all(np.diff(chances, axis=1) >= -1e-6)
        assert chances[1][3] == np.max(chances)


def test_the_law_of_a_joint_loss_of_order_two_is_normal():
    # L = sum of 2 t d + d^2 over k numbers t of variance 1/2
    for count in (1, 2, 3, 8, 9, 50):
        for chance in (0.2, 1e-3, 1e-9, 1e-40):
            d = 0.3 / count**0.5
            mean, spread = count * d**2, d * (2 * count) ** 0.5
            epsilon = mean + spread * stats.norm.isf(chance)
            stated = JointLoss(2.0, count, chance, cut=False).probability(d, epsilon)
            assert chance * (1 - 1e-9) <= stated
            if count <= MOST_CONVOLVED:  # each loss is rounded up by at most a step, and a cell is narrower
                raised = stats.norm.sf((epsilon * (1 - 2 * count / STEPS) - mean) / spread)
                assert stated <= raised + count * TAIL * chance
            else:
                assert stated <= 1.1 * np.exp(-(stats.norm.isf(chance) ** 2) / 2)


def test_moments_bound_the_convolution():
    for p, cut in itertools.product((1.3, 2.0, 4.5), (False, True)):
        for count in (2, 5):
            law = JointLoss(p, count, 1e-5, cut=cut)
            for shift, epsilon in itertools.product((0.01, 0.1), (0.3, 1.0)):
                small, large = law._by_convolution(shift, epsilon), law._by_moments(shift, epsilon)
                assert small <= large + 1e-12
