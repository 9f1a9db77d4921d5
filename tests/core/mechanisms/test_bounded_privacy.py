"""Privacy of the mechanisms from their distributions: exact losses over all pairs of neighbours.

On small grids every pair of neighbouring vectors is tried, with every way in which a movement can
be spread over several numbers, and the loss is summed over every output. Reference laws come from
scipy.stats; none of the package's distribution functions is used.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pdprivacy import Approx, Column, Domain, Pure
from pdprivacy.core import noise
from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.mechanisms import (
    Gaussian,
    GeneralizedGaussian,
    Laplace,
    generalized_gaussian,
    generalized_gaussian_scale,
    noise_multiplier,
    truncated_laplace_loss,
    truncated_laplace_scale,
)
from pdprivacy.core.mechanisms.gaussian import exact_multiplier
from pdprivacy.core.mechanisms.generalized_gaussian import exact_generalized_scale, log_gain
from pdprivacy.core.mechanisms.laplace import exact_laplace_loss
from pdprivacy.errors import ParameterError
from tests.support.divergences import hockey_stick

EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(10)]
ROUNDING = 1e-12  # of the sums below, relative


# Laws on small grids.


def discrete_laplace_rows(b: float, n: int) -> np.ndarray:
    """Row s: log P(z), z = 0..n-1, of the discrete Laplace law around s on these integers."""
    points = np.arange(n)
    exponent = -np.abs(points[:, None] - points) / b
    top = exponent.max(axis=1, keepdims=True)
    return exponent - (top + np.log(np.exp(exponent - top).sum(axis=1, keepdims=True)))


def mass(law: object, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Mass of a law symmetric about zero within [start, stop], from the nearer tail."""
    right = law.sf(start) - law.sf(stop)
    left = law.cdf(stop) - law.cdf(start)
    return np.where(start >= 0, right, left)


def rounded_rows(law: object, centres: np.ndarray, n: int) -> np.ndarray:
    """Row per centre: masses of the cells around 0..n-1 of the law cut off half a step beyond them."""
    edges = np.arange(n + 1) - 0.5 - np.asarray(centres)[:, None]
    cells = mass(law, edges[:, :-1], edges[:, 1:])
    return cells / cells.sum(axis=1, keepdims=True)


def pairs(rows: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of rows that are d apart, both ways."""
    n = len(rows)
    return np.concatenate([rows[: n - d], rows[d:]]), np.concatenate([rows[d:], rows[: n - d]])


def splits(total: int, parts: int, most: int) -> list[tuple[int, ...]]:
    """All ways to write at most ``total`` as ``parts`` whole numbers up to ``most``, in falling order."""
    return [
        split
        for split in itertools.product(range(min(total, most), -1, -1), repeat=parts)
        if 0 < sum(split) <= total and list(split) == sorted(split, reverse=True)
    ]


def worst_delta(rows: np.ndarray, epsilon: float, total: int, moves: int) -> float:
    """The delta of ``moves`` independent numbers whose movements add up to at most ``total``."""
    n, worst = len(rows), 0.0
    for split in splits(total, moves, n - 1):
        p, q = np.ones((1,)), np.ones((1,))
        for number, d in enumerate(split):
            first, second = pairs(rows, d) if d else (rows[:1], rows[:1])  # equal numbers cancel
            p, q = (
                np.einsum("a...,bz->ab...z", joint, part).reshape(-1, *joint.shape[1:], n)
                for joint, part in ((p, first), (q, second))
            )
            assert p.ndim == number + 2
        worst = max(worst, hockey_stick(p, q, epsilon, moves))
    return worst


# 1. Truncated Laplace: the discrete law.


def laplace_losses(rows: np.ndarray, most: int | None = None) -> list[float]:
    """The largest loss of one number at each movement 0..n-1, or 0..most."""
    n = len(rows)
    ends = range(1, n if most is None else min(n, most + 1))
    return [0.0] + [float(np.abs(rows[d:] - rows[: n - d]).max()) for d in ends]


def worst_loss(each: list[float], total: int, moves: int) -> float:
    return max(sum(each[d] for d in split) for split in splits(total, moves, len(each) - 1))


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
@pytest.mark.parametrize("moves", [1, 2, 3])
def test_truncated_laplace_on_the_integers_loses_at_most_epsilon(epsilon, moves):
    for n in (2, 3, 5, 12, 40):
        for total in {1, 2, n // 2, n - 1, min(moves, 2) * (n - 1), moves * (n - 1)} - {0}:
            if total > moves * (n - 1) or total > 30:
                continue
            scale = truncated_laplace_scale(epsilon, Fraction(total), n, moves)
            each = laplace_losses(discrete_laplace_rows(float(scale), n))
            assert worst_loss(each, total, moves) <= float(epsilon) * (1 + ROUNDING)
            # and the stated loss of any other scale is no less than the one summed here
            for factor in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 2)):
                each = laplace_losses(discrete_laplace_rows(float(scale * factor), n))
                stated = truncated_laplace_loss(scale * factor, Fraction(total), n, moves)
                assert worst_loss(each, total, moves) <= float(stated) * (1 + ROUNDING)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", EPSILONS[1:], ids=float)
@pytest.mark.parametrize("moves", [1, 2, 3])
def test_open_sided_laplace_is_private_within_every_range(epsilon, moves):
    for total in (1, 4, 7):
        scale = truncated_laplace_scale(epsilon, Fraction(total), None, moves)
        ranges = [2, 3, 5, 9, 20, math.ceil(40 * scale) + 2 * total]
        tables = [laplace_losses(discrete_laplace_rows(float(scale), n), total) for n in ranges if n <= 2000]
        # each number may have a range of its own
        each = [max(table[d] for table in tables if d < len(table)) for d in range(total + 1)]
        assert worst_loss(each, total, moves) <= float(epsilon) * (1 + ROUNDING)


def test_the_plain_scale_would_not_do():
    # the reason for the calibration: at sensitivity / epsilon the law loses more than epsilon
    each = laplace_losses(discrete_laplace_rows(4.0, 60))
    assert each[4] > 1.3


# 2. Truncated Laplace: the continuous law, and how tight.


@lru_cache
def continuous_laplace_loss(b: float, d: float, width: float) -> float:
    """The largest loss over centres within [0, width] that are d apart and outputs in between."""
    top = min(width, 60 * b + 2 * d)
    s = np.linspace(0, top - d, 801)
    other = s + d

    def whole(centre: np.ndarray) -> np.ndarray:
        return mass(stats.laplace(scale=b), -centre, np.full_like(centre, width) - centre)

    x = np.linspace(0, top, 61)[:, None]
    loss = (np.abs(x - s) - np.abs(x - other)) / b + np.log(whole(s) / whole(other))
    return float(np.abs(loss).max())


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
@pytest.mark.parametrize("ratio", [1, "1.001", "3/2", 2, 3, 10, 1000, None], ids=str)
@pytest.mark.parametrize("sensitivity", [Fraction(1), Fraction(3, 1000), Fraction(10**6)], ids=float)
def test_truncated_laplace_scales_are_safe_and_tight(epsilon, ratio, sensitivity):
    width = None if ratio is None else Fraction(ratio) * sensitivity
    b = float(truncated_laplace_scale(epsilon, sensitivity, width))
    far = math.inf if width is None else float(width)
    loss = continuous_laplace_loss(b, float(sensitivity), far)
    assert loss <= float(epsilon) * (1 + 1e-10)
    assert loss >= float(epsilon) * (1 - 1e-6)
    # smaller movements lose less
    for part in (0.9, 0.5, 0.01):
        assert continuous_laplace_loss(b, part * float(sensitivity), far) <= loss


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("moves", [2, 3])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_no_split_of_a_movement_loses_more_and_the_even_one_loses_epsilon(epsilon, moves):
    for width in (Fraction(2, 5), Fraction(1), Fraction(20), None):
        if width is not None and moves * width < 1:
            continue
        b = float(truncated_laplace_scale(epsilon, Fraction(1), width, moves))
        far = math.inf if width is None else float(width)
        losses = {}
        for first in np.linspace(0, 1, 21):
            parts = [first] + [(1 - first) / (moves - 1)] * (moves - 1)
            if max(parts) <= far:
                losses[first] = sum(continuous_laplace_loss(b, part, far) for part in parts if part > 0)
        assert max(losses.values()) <= float(epsilon) * (1 + 1e-9)
        even = moves * continuous_laplace_loss(b, 1 / moves, far)
        assert even == pytest.approx(float(epsilon), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "ratio"), [("0.1", 1.95), ("0.5", 1.78), ("1", 1.61), ("2", 1.39)])
def test_scales_relative_to_the_plain_one(epsilon, ratio):
    epsilon = Fraction(epsilon)
    for width in (Fraction(10**6), None):
        assert round(float(truncated_laplace_scale(epsilon, Fraction(1), width) * epsilon), 2) == ratio
    # where the range is the sensitivity, the law within it needs no more than the plain scale
    narrow = truncated_laplace_scale(epsilon, Fraction(1), Fraction(1)) * epsilon
    assert float(narrow) == pytest.approx(1, rel=1e-8)


@pytest.mark.parametrize(("epsilon", "more"), [("0.1", 0.191), ("1", 1.490), ("2", 2.623)])
def test_the_published_scale_loses_more_and_says_so(epsilon, more):
    published = Laplace(
        epsilon, 1, bounds=(0, 10**4), bounding="truncated", calibration="published", grid=2.0**-26
    )
    assert published.epsilon == Fraction(epsilon)
    assert published.steps == Fraction(2**26) / Fraction(epsilon)
    assert round(float(published.loss.epsilon), 3) == more
    truth = continuous_laplace_loss(published.scale, 1, 10.0**4)
    assert truth <= float(published.loss.epsilon) <= truth * (1 + 1e-8)
    calibrated = Laplace(epsilon, 1, bounds=(0, 10**4), bounding="truncated")
    assert calibrated.loss == Pure(epsilon)
    # several numbers
    for moves in (2, 3):
        several = Laplace(
            epsilon, 1, bounds=(0, 3), bounding="truncated", calibration="published", l0_sensitivity=moves
        )
        truth = moves * continuous_laplace_loss(several.scale, 1 / moves, 3)
        assert truth * (1 - 1e-5) <= float(several.loss.epsilon) <= truth * (1 + 1e-5)


# 3. Truncated Gaussian noise: cells of the continuous law, and the continuous law.


@pytest.mark.full(keep=6)
@pytest.mark.parametrize("calibration", ["analytic", "classic", "pdp"])
@pytest.mark.parametrize("moves", [1, 2, 3])
@pytest.mark.parametrize("delta", [Fraction(1, 10**5), Fraction(1, 100), Fraction(3, 10)], ids=float)
def test_truncated_gaussian_cells_lose_at_most_epsilon_and_delta(calibration, moves, delta):
    """Several numbers: l1 movements of the stated size have no larger l2 norm."""
    for epsilon in (Fraction(1, 10), Fraction(9, 10), Fraction(3), Fraction(10)):
        if calibration == "classic" and epsilon >= 1:
            continue
        for n, total in ((3, 1), (3, 2), (6, 2), (6, 5)):
            if n == 6 and moves == 3 and total == 5:
                continue
            sigma = total * noise_multiplier(epsilon, delta, calibration)
            rows = rounded_rows(stats.norm(scale=float(sigma)), np.arange(n), n)
            assert worst_delta(rows, float(epsilon), total, moves) <= float(delta)


@pytest.mark.parametrize("delta", [Fraction(1, 10**5), Fraction(1, 100)], ids=float)
def test_two_numbers_that_move_as_far_as_the_l2_norm_allows(delta):
    """Each by one step: the joint hockey-stick divergence of two truncated numbers at scale sqrt(2)."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        sigma = math.sqrt(2) * float(noise_multiplier(epsilon, delta))
        for n in (2, 3, 7):
            rows = rounded_rows(stats.norm(scale=sigma), np.arange(n), n)
            steps = [(s, s + 1) for s in range(n - 1)] + [(s + 1, s) for s in range(n - 1)]
            for (a, b), (c, d) in itertools.product(steps, steps):
                first = np.multiply.outer(rows[a], rows[c]).ravel()
                second = np.multiply.outer(rows[b], rows[d]).ravel()
                assert hockey_stick(first, second, float(epsilon)) <= float(delta) * (1 + 1e-9)


def continuous_gaussian_delta(epsilon: float, sigma: float, d: float, width: float) -> float:
    """The largest delta over centres within [0, width] that are d apart, either way."""
    law = stats.norm(scale=sigma)
    top = min(width, 40 * sigma + 2 * d)
    near = np.linspace(0, top - d, 400)
    worst = 0.0
    for s, other in ((near, near + d), (near + d, near)):
        below, above = -s, width - s
        whole = mass(law, below, above)
        change = np.log(whole / mass(law, -other, width - other))
        # the densities have the ratio e^epsilon at one place; the gain lies away from the neighbour
        e = (d * d / 2 - sigma**2 * (epsilon + change)) / d  # towards the neighbour
        at = np.where(other > s, e, -e)
        start = np.where(other > s, below, np.clip(at, below, above))
        stop = np.where(other > s, np.clip(at, below, above), above)
        shift = np.where(other > s, d, -d)
        p = mass(law, start, stop) / whole
        q = mass(law, start - shift, stop - shift) / whole * np.exp(change)
        worst = max(worst, float((p - math.exp(epsilon) * q).max()))
    return worst


def test_the_continuous_reference_is_the_known_delta_far_from_the_bounds():
    for epsilon, sigma in ((0.5, 2.0), (1.0, 1.0), (3.0, 0.5)):
        known = stats.norm.cdf(1 / (2 * sigma) - epsilon * sigma) - math.exp(epsilon) * stats.norm.cdf(
            -1 / (2 * sigma) - epsilon * sigma
        )
        rows = rounded_rows(stats.norm(scale=sigma * 200), np.array([30_000, 30_200]), 60_001)
        assert hockey_stick(rows[0], rows[1], epsilon) == pytest.approx(known, rel=1e-3)
        # at a bound, against a sum over fine cells
        rows = rounded_rows(stats.norm(scale=sigma * 500), np.array([0, 500, 1000]), 1001)
        summed = max(hockey_stick(rows[i], rows[j], epsilon) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)))
        assert continuous_gaussian_delta(epsilon, sigma, 1.0, 2.002) >= summed * (1 - 1e-9)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
@pytest.mark.parametrize("width", [1.0, 1.001, 2.0, 3.0, 10.0, 30.0, math.inf])
def test_gaussian_noise_loses_nothing_by_truncation(epsilon, width):
    for delta in (Fraction(1, 10**9), Fraction(1, 10**5), Fraction(1, 100), Fraction(1, 2)):
        for calibration in ("analytic", "pdp"):
            mechanism = Gaussian(
                epsilon, delta, 1, calibration, 2.0**-30, bounds=(0, width), bounding="truncated"
            )
            for d in (1.0, 0.5, 0.1):
                actual = continuous_gaussian_delta(float(epsilon), mechanism.scale, d, width)
                assert actual <= float(delta) * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("epsilon", EPSILONS[1:], ids=float)
def test_at_an_open_side_truncated_gaussian_noise_needs_all_of_its_scale(epsilon):
    """Far from the bound truncation does nothing, so the unbounded calibration cannot be improved on."""
    for delta in (Fraction(1, 10**5), Fraction(1, 100)):
        less = 0.99 * float(noise_multiplier(epsilon, delta))
        assert continuous_gaussian_delta(float(epsilon), less, 1.0, math.inf) > float(delta)


# 4. Generalized Gaussian noise: cells.

ORDERS = [Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(6)]


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("p", ORDERS, ids=float)
@pytest.mark.parametrize("moves", [1, 2, 3])
def test_generalized_gaussian_cells_lose_at_most_epsilon_and_delta(p, moves):
    for epsilon, delta, total in (
        (Fraction(2), Fraction(1, 10), 1),
        (Fraction(2), Fraction(1, 10), 3),
        (Fraction(5), Fraction(1, 100), 2),
        (Fraction(10), Fraction(1, 10**4), 2),
        (Fraction(1, 2), Fraction(1, 2), 1),
    ):
        b = float(generalized_gaussian_scale(epsilon, delta, Fraction(total), p, None, moves))
        law = stats.gennorm(float(p), scale=b)
        reach = math.ceil(law.isf(1e-6 if moves == 3 else 1e-9)) + total
        if (2 * reach + 1) ** moves > 200_000:
            continue
        # shifts only: the cells at the ends take the tails, which merges outputs and loses next to nothing
        edges = np.concatenate([[-np.inf], np.arange(-reach, reach) + 0.5, [np.inf]])
        rows = [mass(law, edges[:-1] - d, edges[1:] - d) for d in range(total + 1)]
        for split in splits(total, moves, total):
            p_joint, q_joint = np.ones(()), np.ones(())
            for d in split:
                p_joint, q_joint = np.multiply.outer(p_joint, rows[0]), np.multiply.outer(q_joint, rows[d])
            actual = hockey_stick(p_joint[None], q_joint[None], float(epsilon), moves)
            assert actual <= (float(delta) if p > 1 else 1e-5), split


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("p", ORDERS, ids=float)
@pytest.mark.parametrize("moves", [1, 2, 3])
def test_truncated_generalized_gaussian_cells_lose_at_most_epsilon_and_delta(p, moves):
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(4)):
        for delta in (Fraction(1, 10**5), Fraction(1, 100), Fraction(1, 2)):
            for n, total in ((3, 1), (3, 2), (6, 2), (6, 5)):
                if n == 6 and moves == 3 and total == 5:
                    continue
                for width in (n, None):
                    b = generalized_gaussian_scale(epsilon, delta, Fraction(total), p, width, moves, True)
                    if p == 1:
                        rows = np.exp(discrete_laplace_rows(float(b), n))
                    else:
                        rows = rounded_rows(stats.gennorm(float(p), scale=float(b)), np.arange(n), n)
                    actual = worst_delta(rows, float(epsilon), total, moves)
                    assert actual <= (float(delta) if p > 1 else 1e-12)


@pytest.mark.full(keep=21)
@pytest.mark.parametrize("p", ORDERS[1:], ids=float)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_the_condition_of_generalized_gaussian_noise_is_met_with_equality(p, epsilon):
    # Pr((|e| + sensitivity)^p - |e|^p > b^p epsilon) <= delta, found here by bisection on |e|
    for delta in (Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 2)):
        b = float(generalized_gaussian_scale(epsilon, delta, Fraction(1), p))
        law, order = stats.gennorm(float(p), scale=b), float(p)

        def exceeds(e: float, order: float = order, b: float = b) -> bool:
            return (e / b) ** order * math.expm1(order * math.log1p(1 / e)) > float(epsilon)

        low, high = 1e-12, 1e12
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        assert 2 * law.sf(high) <= float(delta) * (1 + 1e-7)
        assert 2 * law.sf(high) >= float(delta) * (1 - 1e-4)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("p", ORDERS[1:], ids=float)
@pytest.mark.parametrize("ratio", [1, 2, 5, None], ids=str)
def test_truncated_generalized_gaussian_losses_exceed_epsilon_with_at_most_delta(p, ratio):
    # more than the divergence needs, and what the condition without bounds states too
    far, order = math.inf if ratio is None else float(ratio), float(p)
    width = None if ratio is None else Fraction(ratio)
    turn = ORDERS.index(p) + [1, 2, 5, None].index(ratio)
    for index, epsilon in enumerate((0.1, 1.0, 5.0)):
        # one for each epsilon, which take turns with the order and the ratio
        for delta in [(1e-5, 0.01, 0.5)[(turn + index) % 3]]:
            b = float(
                generalized_gaussian_scale(
                    Fraction(str(epsilon)), Fraction(str(delta)), Fraction(1), p, width, 1, True
                )
            )
            law = stats.gennorm(order, scale=b)
            near = np.linspace(0, min(far, 20 * b + 2) - 1, 9)
            x = np.linspace(0, min(far, 40 * b + 3), 1001)
            for d in (1.0, 0.3):
                for s, other in ((near, near + d), (near + d, near)):
                    s, other = s[:, None], other[:, None]
                    if other.max() > far or s.max() > far:
                        continue
                    whole, changed = (mass(law, -c, far - c) for c in (s, other))
                    loss = (np.abs(x - other) ** order - np.abs(x - s) ** order) / b**order
                    loss += np.log(changed / whole)
                    above = loss > epsilon * (1 + 1e-9)
                    # the loss is monotone in x, so every cell between two places above counts
                    cells = mass(law, x[:-1] - s, x[1:] - s) / whole
                    exceeded = (cells * (above[:, :-1] & above[:, 1:])).sum(axis=1)
                    assert exceeded.max() <= delta * (1 + 1e-6)


def test_moved_numbers_share_delta():
    for p in ORDERS[1:]:
        scale = generalized_gaussian_scale(Fraction(1), Fraction(1, 300), Fraction(1), p)
        shared = generalized_gaussian_scale(Fraction(1), Fraction(1, 100), Fraction(1), p, None, 3)
        # above p = 2, noise for three numbers that all move by one may be less
        assert shared == scale if p < 2 else shared <= scale


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("p", ORDERS[1:], ids=float)
@pytest.mark.parametrize("moves", [2, 3])
@pytest.mark.parametrize("width", [False, 2, None], ids=str)
def test_cells_of_numbers_that_move_by_one_each_lose_at_most_epsilon_and_delta(p, moves, width):
    for epsilon, delta in ((1, 1e-2), (4, 1e-4), (2, 0.5)):
        b = generalized_gaussian_scale(
            epsilon, delta, moves, p, width or None, moves, width is not False, linf_sensitivity=1
        )
        law = stats.gennorm(float(p), scale=b)
        if width is False:
            reach = math.ceil(law.isf(1e-7)) + 1
            edges = np.concatenate([[-np.inf], np.arange(-reach, reach) + 0.5, [np.inf]])
            rows = [mass(law, edges[:-1] - d, edges[1:] - d) for d in range(2)]
            starts, others = rows[:1], rows[1:]
        else:
            n = 3 if width else 8  # an open side: the bounds of numbers may be further apart than all moves
            cells = rounded_rows(law, np.arange(n), n)
            starts, others = pairs(cells, 1)
        for moved in range(1, moves + 1):
            for chosen in itertools.combinations_with_replacement(range(len(starts)), moved):
                p_joint, q_joint = np.ones(()), np.ones(())
                for index in chosen:
                    p_joint = np.multiply.outer(p_joint, starts[index])
                    q_joint = np.multiply.outer(q_joint, others[index])
                if p_joint.size > 300_000:
                    continue
                actual = hockey_stick(p_joint[None], q_joint[None], float(epsilon), moved)
                assert actual <= delta


def test_a_table_needs_less_noise_than_numbers_that_share_delta():
    domain = Domain((Column("a", "category", categories=("x", "y", "z")),))
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 40})
    private = frame.dp.protect(domain, epsilon=100, delta=0.1, neighbors="replace_one")
    noise = {"mechanism": "generalized_gaussian", "p": 2}
    table = private.dp.value_counts("a", epsilon=0.5, delta=1e-3, rng=1, **noise)
    assert table.dp.metadata.error["standard_error"] <= 9.52
    pdp = private.dp.value_counts(
        "a", epsilon=0.5, delta=1e-3, rng=1, mechanism="gaussian", calibration="pdp"
    )
    gaussian = pdp.dp.metadata.error["standard_error"]
    assert table.dp.metadata.error["standard_error"] == pytest.approx(gaussian, rel=1e-6)


@pytest.mark.parametrize("largest", [0, 3, "0.9", math.nan])
def test_linf_sensitivities_that_no_vector_has_are_refused(largest):
    with pytest.raises(ParameterError, match="'linf_sensitivity'"):
        generalized_gaussian_scale(1, 1e-5, 2, 3, None, 2, linf_sensitivity=largest)
    with pytest.raises(ParameterError, match="'linf_sensitivity'"):
        GeneralizedGaussian(1, 1e-5, 2, 3, l0_sensitivity=2, linf_sensitivity=largest)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), [("0.5", "1e-3", 6.7296), ("1", "1e-5", 4.5276)])
def test_order_two_is_the_probabilistic_calibration_of_gaussian_noise(epsilon, delta, sigma):
    b = generalized_gaussian_scale(Fraction(epsilon), Fraction(delta), Fraction(1), Fraction(2))
    assert round(float(b) / math.sqrt(2), 4) == sigma
    pdp = noise_multiplier(Fraction(epsilon), Fraction(delta), "pdp")
    assert float(b) / math.sqrt(2) == pytest.approx(float(pdp), rel=1e-8)


def decimal_erf(x: Decimal) -> Decimal:
    """The error function to 50 digits, by its power series; beyond 14 it is 1 to 80 digits."""
    if x > 14:
        return Decimal(1)
    term, total, n = x, x, 0
    while abs(term) > Decimal(10) ** -160:
        n += 1
        term *= -x * x / n
        total += term / (2 * n + 1)
    return total * 2 / PI.sqrt()


PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211707"
)


def test_the_rounding_of_the_gain_of_truncation_is_accounted_for():
    """`log_gain` is below the true gain now and then, and never by more than ``ROUNDING``."""
    draw, below = np.random.default_rng(8), 0
    with localcontext(prec=170):
        for _ in range(400):
            b = float(10 ** draw.uniform(-1.5, 1.5))
            l0 = int(draw.integers(1, 50))
            width = float(10 ** draw.uniform(-1, 2)) + 1
            distance = 1 / l0
            reach = Decimal(b)
            d = min(Decimal(distance), Decimal(width) / 2)
            near, rest, whole = (decimal_erf(t / reach) for t in (d, Decimal(width) - d, Decimal(width)))
            exact = ((near + rest) / whole).ln()
            gain = log_gain(GeneralizedNormal.of(2, b), distance, width)
            assert Decimal(gain + generalized_gaussian.ROUNDING) >= exact, (b, l0, width)
            below += Decimal(gain) < exact
    assert 40 < below < 400


def test_order_one_is_the_laplace_mechanism():
    for delta in (0, "1e-5"):
        for extra in (
            {},
            {"bounds": (0, 5), "bounding": "truncated"},
            {"bounds": (0, 5), "bounding": "clamp"},
        ):
            general, laplace = GeneralizedGaussian("0.7", delta, 2, 1, **extra), Laplace("0.7", 2, **extra)
            assert general.steps == laplace.steps
            assert general.grid == laplace.grid
            assert general.sample(1.5, rng=3) == laplace.sample(1.5, rng=3)
    assert GeneralizedGaussian(1, 0, 1, 1).loss == Pure(1)
    assert GeneralizedGaussian(1, "1e-5", 1, 1).loss == Approx(1, "1e-5")


# 5. Clamped noise.


@pytest.mark.parametrize("epsilon", EPSILONS[1:], ids=float)
def test_clamped_laplace_noise_loses_epsilon(epsilon):
    for n, total in ((2, 1), (9, 3), (9, 8), (40, 4)):
        b = float(Fraction(total) / epsilon)
        s, z = np.arange(n)[:, None], np.arange(n)
        share = math.exp(-1 / b)
        inside = np.log((1 - share) / (1 + share)) - np.abs(z - s) / b
        beyond = -np.abs(z - s) / b - math.log1p(share)  # the end itself and all that lies further out
        rows = np.where((z == 0) | (z == n - 1), beyond, inside)
        np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, rtol=1e-12)
        each = laplace_losses(rows)
        for moves in (1, 2, 3):
            assert worst_loss(each, total, moves) <= float(epsilon) * (1 + ROUNDING)
        assert each[total] == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "generalized"])
def test_clamped_noise_has_at_most_its_delta(kind):
    for epsilon, delta in ((Fraction(1, 2), Fraction(1, 100)), (Fraction(3), Fraction(1, 10**4))):
        for n, total in ((5, 4), (30, 3)):
            if kind == "gaussian":
                law = stats.norm(scale=float(noise_multiplier(epsilon, delta) * total))
            else:
                b = generalized_gaussian_scale(epsilon, delta, Fraction(total), Fraction(3))
                law = stats.gennorm(3.0, scale=float(b))
            edges = np.concatenate([[-np.inf], np.arange(n - 1) + 0.5, [np.inf]]) - np.arange(n)[:, None]
            rows = mass(law, edges[:, :-1], edges[:, 1:])
            assert worst_delta(rows, float(epsilon), total, 1) <= float(delta)


@pytest.mark.parametrize("make", [Laplace, lambda e, d, **k: Gaussian(e, "1e-5", d, **k)])
def test_clamping_keeps_the_plain_scale(make):
    for bounds in ((0, 1), (0, math.inf), (None, 3)):
        bounded, plain = make(1, 1, bounds=bounds, bounding="clamp"), make(1, 1)
        assert bounded.steps == plain.steps
        assert bounded.grid == plain.grid
        assert bounded.loss == plain.loss


# 7. The mechanisms draw what was calibrated, and cover the rounding of what they are given.

GRID = Fraction(1, 2**24)
BOUNDED = {
    "laplace": lambda **k: Laplace("0.7", 1, bounds=(-1, 2), bounding="truncated", **k),
    "published": lambda **k: Laplace(
        "0.7", 1, bounds=(-1, 2), bounding="truncated", calibration="published", **k
    ),
    "open": lambda **k: Laplace("0.7", 1, bounds=(-1, math.inf), bounding="truncated", **k),
    "gaussian": lambda **k: Gaussian("0.7", "1e-5", 1, bounds=(-1, 2), bounding="truncated", **k),
    "generalized": lambda **k: GeneralizedGaussian(
        "0.7", "1e-5", 1, 3, bounds=(-1, 2), bounding="truncated", **k
    ),
}


@pytest.mark.full(keep=19)
@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize("grid", [None, GRID], ids=["default", "given"])
@pytest.mark.parametrize("moves", [1, 3])
def test_draws_follow_the_truncated_law_of_the_stated_steps(kind, grid, moves):
    mechanism = BOUNDED[kind](grid=grid, l0_sensitivity=moves)
    values = np.array([-5.0, -1.0, 0.25, 1.5, 2.0, 7.0])
    first = int(-1 / mechanism.grid)
    last = int(2 / mechanism.grid) if mechanism.bounds[1] == 2 else None
    centre = [int(Fraction(value) / mechanism.grid) for value in np.clip(values, *mechanism.bounds)]
    below = np.array([c - first for c in centre])
    above = np.array([noise.UNBOUNDED if last is None else last - c for c in centre])
    if mechanism.name == "laplace":
        drawn = noise.truncated_laplace(mechanism.steps, below, above, noise.source(5))
    elif mechanism.name == "gaussian":
        drawn = noise.generalized_normal(Fraction(2), 2 * mechanism.steps**2, below, above, noise.source(5))
    else:
        # an integer power of the scale is known exactly; the divisor is that, rounded up
        drawn = noise.generalized_normal(Fraction(3), mechanism.steps**3, below, above, noise.source(5))
    np.testing.assert_array_equal(mechanism.draw_within(below, above, noise.source(5)), drawn)
    expected = [float((c + int(d)) * mechanism.grid) for c, d in zip(centre, drawn, strict=True)]
    assert mechanism.sample(values, rng=5).tolist() == expected


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize("moves", [1, 2, 50])
def test_default_grids_cover_a_step_for_each_number_that_moves(kind, moves):
    mechanism = BOUNDED[kind](l0_sensitivity=moves)
    moved = mechanism.sensitivity / mechanism.grid + moves
    width = None if kind == "open" else math.floor(2 / mechanism.grid) + math.floor(1 / mechanism.grid) + 1
    epsilon, delta = mechanism.epsilon, getattr(mechanism, "delta", 0)
    if kind == "published":
        assert mechanism.steps == moved / epsilon
        assert mechanism.loss.epsilon == exact_laplace_loss(mechanism.steps, moved, width, moves)
    elif mechanism.name == "laplace":
        stated = exact_laplace_loss(mechanism.steps, moved, width, moves)
        assert epsilon * (1 - Fraction(1, 2**20)) <= stated <= epsilon
    elif mechanism.name == "gaussian":
        moved = mechanism.sensitivity / mechanism.grid + 2**10  # the l2 norm of 2**20 steps
        assert mechanism.steps == moved * exact_multiplier(epsilon, delta)
    else:
        assert mechanism.steps == exact_generalized_scale(
            epsilon, delta, Fraction(3), moved, width, moves, moved, True
        )


@pytest.mark.parametrize("seed", range(5))
def test_rounding_and_clamping_move_neighbours_no_further_than_is_covered(seed):
    generator = np.random.default_rng(seed)
    mechanism = Laplace(1, 1, bounds=(-0.3, 1.1), bounding="truncated", l0_sensitivity=3)
    first = generator.uniform(-2, 2, 200)
    second = first.copy()
    moved = generator.dirichlet(np.ones(3)) * generator.choice([-1, 1], 3)
    second[:3] += moved
    steps = []
    for values in (first, second):
        clamped = np.clip(values, -0.3, 1.1)  # in the order of the package or the other way round
        steps.append(np.rint(clamped / float(mechanism.grid)))
    assert np.abs(steps[0] - steps[1]).sum() <= float(mechanism.sensitivity / mechanism.grid) + 3
    assert (steps[0][3:] == steps[1][3:]).all()
