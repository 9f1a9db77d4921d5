"""The exact privacy loss of a pair of neighbouring tables, at the point where integers meet noise.

`loss_of` runs one release on both tables. The second run takes the outcome of the first, so that each draw
and each selection sees the same past in both. The loss of each follows from its distribution alone (`Law`,
scale and grid as they reach the sampler), for every outcome that it can have. The losses of one release add
up, and their sum is compared with what was charged.

Laplace noise, truncated or not, and selections: the largest ratio of probabilities over all outcomes.
Staircase noise: the largest change of a level, over all outcomes. Gaussian noise: the divergence of all its
numbers together, which is that of one number shifted by the l2 norm of the quotients of shifts and deviations
(Balle, Wang 2018, Theorem 8); of truncated ones, by the distribution of the sum of their losses, rounded
down. Discrete Gaussian noise: by the distribution of the sum of its losses. Other noise with a delta: the
hockey-stick divergence of each part at its own epsilon, by the distribution function.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import signal, special

from tests.support.recorder import Recorder, recording
from tests.support.records import Draw, Selection

__all__ = ["Loss", "loss_of", "losses_of"]

SLACK = 1e-9
"""The allowance of a loss for rounding in these computations."""


@dataclass(frozen=True)
class Loss:
    """The privacy loss of a release on a pair of tables, and its charge.

    ``epsilon``: the sum over draws and selections of their largest loss, Gaussian noise left out. ``delta``:
    of the Gaussian draws at the charged epsilon, and of others at their own, summed up.
    """

    epsilon: float
    delta: float
    charged_epsilon: Fraction
    charged_delta: Fraction

    @property
    def kept(self) -> bool:
        """Whether the charge covers the loss."""
        return self.epsilon <= float(self.charged_epsilon) * (1 + SLACK) + SLACK and self.delta <= float(
            self.charged_delta
        ) * (1 + 1e-6)


def loss_of(first: Any, second: Any, release: Callable[[Any], Any]) -> Loss:
    """The loss of a release on two protected frames of neighbouring tables, and its charge.

    ``release`` is called with the accessor of each.
    """
    (loss,) = losses_of([(first, second)], release)
    return loss


def losses_of(pairs: Sequence[tuple[Any, Any]], release: Callable[[Any], Any]) -> list[Loss]:
    """The loss of each pair of protected frames; a frame that is the first of several pairs releases once."""
    firsts = {id(first): first for first, _ in pairs}
    records = {key: _recorded(release, first) for key, first in firsts.items()}
    return [
        of_records(records[id(first)], _recorded(release, second, records[id(first)]))
        for first, second in pairs
    ]


def _recorded(release: Callable[[Any], Any], frame: Any, outcome: Recorder | None = None) -> Recorder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with recording(outcome=outcome) as record:
            release(frame.dp)
    return record


def of_records(single: Recorder, other: Recorder) -> Loss:
    """The loss between two records of the same release with the same outcome."""
    assert [charge.label for charge in single.charges] == [charge.label for charge in other.charges]
    assert single.charges == other.charges, "what is charged depends on the records"
    assert len(single.steps) == len(other.steps), "how much noise is drawn depends on the records"
    paid = [
        charge for charge in single.charges if not charge.of_group
    ]  # groups are paid for by their partition
    epsilon = sum((charge.epsilon or Fraction(0)) * charge.count for charge in paid)
    delta = sum((charge.delta or Fraction(0)) * charge.count for charge in paid)
    pure, slack, squares = 0.0, 0.0, 0.0
    truncated: list[Truncated] = []
    discrete: list[tuple[int, float]] = []
    for first, second in zip(single.steps, other.steps, strict=True):
        assert type(first) is type(second)
        if isinstance(first, Selection):
            pure += _of_selection(first, second)
            continue
        assert public(first) == public(second), "noise depends on the records"
        if first.law.name == "laplace":
            pure += _of_laplace(first, second)
        elif first.law.name == "staircase":
            pure += _of_staircase(first, second)
        elif first.mechanism == "discrete_gaussian":
            moved = [abs(a - b) for a, b in zip(first.centers, second.centers, strict=True)]
            discrete += [(single, float(first.law.parameters[0])) for single in moved if single]
        elif first.law.name == "gaussian":
            variance = float(first.law.parameters[0])
            squares += (
                sum((a - b) ** 2 for a, b in zip(first.centers, second.centers, strict=True)) / variance
            )
        elif first.mechanism == "gaussian":
            truncated += _truncated(first, second)
        else:
            slack += _of_rounded(first, second)
            pure += float(first.epsilon) if first.delta and first.centers != second.centers else 0.0
    if squares:
        # independent Gaussian draws are one, with all releases of this call at its whole epsilon
        slack += gaussian_delta(max(float(epsilon) - pure, 0.0), math.sqrt(squares))
    if discrete:
        slack += discrete_delta(max(float(epsilon) - pure, 0.0), discrete)
    if truncated:
        left = max(float(epsilon) - pure, 0.0)
        slack += max(
            _truncated_delta(left, truncated), _truncated_delta(left, [single.turned for single in truncated])
        )
    return Loss(pure, slack, Fraction(epsilon), Fraction(delta))


def public(draw: Draw) -> tuple[Any, ...]:
    """Facts that must not depend on the records: scale, grid, stated sensitivities, and sizes."""
    return (
        draw.part, draw.law, draw.grid, draw.unit, draw.l1, draw.l2_squared, draw.moves, draw.epsilon,
        draw.delta, len(draw.integers),
    )  # fmt: skip


# ---------------------------------------------------------------- Laplace noise


def _of_laplace(first: Draw, second: Draw) -> float:
    """The largest of both directions, over all outcomes of a vector of independent discrete Laplace draws."""
    (scale,) = first.law.parameters
    if first.below is None or second.below is None:
        moved = sum(abs(a - b) for a, b in zip(first.centers, second.centers, strict=True))
        return float(moved / scale)
    highest = lowest = 0.0
    for position in range(len(first.centers)):
        ends = [_range(draw, position) for draw in (first, second)]
        assert ends[0] == ends[1], "the bounds of noise depend on the records"
        low, high = ends[0]
        a, b = first.centers[position], second.centers[position]
        # ln of masses at z, up to the same constant: -|z - a| / scale - ln C(a), monotone beyond a and b
        gap = _log_mass(b, low, high, scale) - _log_mass(a, low, high, scale)
        outcomes = [outcome for outcome in (a, b, low, high) if outcome is not None]
        ratios = [float((abs(z - b) - abs(z - a)) / scale) + gap for z in outcomes]
        highest, lowest = highest + max(ratios), lowest + min(ratios)
    return max(highest, -lowest)


def _range(draw: Draw, position: int) -> tuple[int | None, int | None]:
    below, above = draw.below[position], draw.above[position]
    center = draw.centers[position]
    return (None if below is None else center - below), (None if above is None else center + above)


def _log_mass(center: int, low: int | None, high: int | None, scale: Fraction) -> float:
    """ln of the sum of r^|z - center| over the range, r = exp(-1 / scale), times (1 - r)."""
    r = math.exp(float(-1 / scale))

    def side(reach: int | None) -> float:
        return r if reach is None else -r * math.expm1(float(-reach / scale))

    rest = -math.expm1(float(-1 / scale))
    below = side(None if low is None else center - low)
    above = side(None if high is None else high - center)
    return math.log(rest + below + above)


def _of_staircase(first: Draw, second: Draw) -> float:
    """The largest loss over all outcomes of a vector of independent staircase draws.

    The levels of two centres differ most within some stairs of them, next to a break.
    """
    epsilon, width, step = (int(part) if part.denominator == 1 else part for part in first.law.parameters)
    total = 0
    for a, b in zip(first.centers, second.centers, strict=True):
        stairs = range(abs(a - b) // width + 3)
        edges = [sign * (k * width + at) for k in stairs for at in (0, step) for sign in (1, -1)]
        points = {center + edge + near for center in (a, b) for edge in edges for near in (-1, 0, 1)}

        def level(z: int) -> int:
            return abs(z) // width + (abs(z) % width >= step)

        total += max(abs(level(z - a) - level(z - b)) for z in points) if a != b else 0
    return float(total * epsilon)


# ---------------------------------------------------------------- noise with a delta


def discrete_delta(epsilon: float, moved: list[tuple[int, float]]) -> float:
    """The hockey-stick divergence of independent discrete Gaussian numbers: their shifts and variances.

    The loss of z is (2 s z + s^2) / (2 v). Of numbers of one variance the sums of s z are convolved as whole
    numbers; losses of several variances that are the same to 12 digits are one.
    """
    losses, masses = np.zeros(1), np.ones(1)
    for variance in {variance for _, variance in moved}:
        shifts = [shift for shift, other in moved if other == variance]
        reach = math.ceil(9 * math.sqrt(variance)) + 1
        z = np.arange(-reach, reach + 1.0)
        weights = np.exp(-z * z / (2 * variance))
        sums = np.ones(1)
        for shift in shifts:
            spread = np.zeros(2 * reach * shift + 1)
            spread[::shift] = weights / weights.sum()
            sums = np.convolve(sums, spread)
        middle = len(sums) // 2
        own = (2.0 * (np.arange(len(sums)) - middle) + sum(shift**2 for shift in shifts)) / (2 * variance)
        losses, inverse = np.unique(np.add.outer(losses, own).round(12), return_inverse=True)
        masses = np.bincount(inverse.ravel(), np.multiply.outer(masses, sums).ravel())
    return float(masses @ np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0))


def gaussian_delta(epsilon: float, distance: float) -> float:
    """The hockey-stick divergence of two unit Gaussian laws at this distance.

    Source: Balle, Wang (2018), Theorem 8.
    """
    far = special.log_ndtr(-distance / 2 - epsilon / distance)
    return float(special.ndtr(distance / 2 - epsilon / distance) - math.exp(epsilon + far))


def _of_rounded(first: Draw, second: Draw) -> float:
    """The hockey-stick divergence of a vector of independent numbers at the part's epsilon.

    Rounding is post-processing of the continuous law, whose divergence is computed here. Where several
    numbers move, the divergence is at most that of their losses together, and at most the sum of their own
    where they share the epsilon, in the best of a few ways.
    """
    power, divisor = map(float, first.law.parameters)
    scale = math.exp(math.log(divisor) / power)
    moved = [
        position
        for position in range(len(first.centers))
        if first.centers[position] != second.centers[position]
    ]
    if not moved:
        return 0.0
    shifts = np.array([abs(first.centers[position] - second.centers[position]) for position in moved], float)
    totals = []
    for mix in (0.0, 0.25, 0.5, 0.75, 1.0):
        shares = (mix / len(moved) + (1 - mix) * shifts / shifts.sum()) * float(first.epsilon)
        total = 0.0
        for position, share in zip(moved, shares, strict=True):
            ends = [
                _range(draw, position) if draw.below is not None else (None, None) for draw in (first, second)
            ]
            assert ends[0] == ends[1], "the bounds of noise depend on the records"
            a, b = first.centers[position], second.centers[position]
            both = _stick(share, power, scale, a, b, *ends[0]), _stick(share, power, scale, b, a, *ends[0])
            total += max(both)
        totals.append(total)
        if len(moved) == 1:
            return total
    return min(
        *totals, max(_together(*pair, moved, power, scale) for pair in ((first, second), (second, first)))
    )


def _together(first: Draw, second: Draw, moved: list[int], power: float, scale: float) -> float:
    """An upper bound of the divergence of several independent numbers, by the law of the sum of their losses.

    The noise of each number is cut into cells, each with its largest loss. Sums of losses are rounded up to
    steps of epsilon / 500; those beyond 10 epsilon count as infinite.
    """
    epsilon, losses, masses, beyond = float(first.epsilon), np.zeros(1), np.ones(1), 0.0
    numbers = []
    for position in moved:
        ends = _range(first, position) if first.below is not None else (None, None)
        numbers.append(_cells(power, scale, first.centers[position], second.centers[position], *ends))
    for own, cells in numbers[:-1]:
        steps = np.ceil(np.add.outer(losses, own) / epsilon * 500)
        weights, known = np.multiply.outer(masses, cells), steps <= 5000
        beyond += float(weights[~known].sum())
        masses = np.bincount((np.maximum(steps[known], -2000) + 2000).astype(int), weights[known])
        losses = (np.arange(len(masses)) - 2000) * epsilon / 500
    own, cells = numbers[-1]
    above = np.append(np.cumsum(cells[::-1])[::-1], 0.0)
    scaled = np.append(np.cumsum((cells * np.exp(-own))[::-1])[::-1], 0.0)
    left = epsilon - losses
    at = np.searchsorted(own, left, side="right")
    return float((masses * np.maximum(above[at] - np.exp(left) * scaled[at], 0.0)).sum()) + beyond


def _cells(
    power: float, scale: float, a: int, b: int, low: int | None, high: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The largest loss of ``a`` against ``b`` in each of many cells, in rising order, and their masses."""
    left, right = (-math.inf if low is None else low - 0.5), (math.inf if high is None else high + 0.5)
    whole = [_cdf(right - center, power, scale) - _cdf(left - center, power, scale) for center in (a, b)]
    reach = scale * 60 ** (1 / power)  # e^-60 of the noise is beyond
    z = np.linspace(max(left, a - reach), min(right, a + reach), 4001)
    half = special.gammaincc(1 / power, (np.abs(z - a) / scale) ** power) / 2
    below, beyond = np.where(z < a, half, 1 - half), np.where(z < a, 1 - half, half)
    masses = np.where(z[1:] <= a, np.diff(below), -np.diff(beyond)) / whole[0]
    ratio = (np.abs(z - b) / scale) ** power - (np.abs(z - a) / scale) ** power
    losses = ratio + math.log(whole[1]) - math.log(whole[0])
    largest = np.maximum(losses[1:], losses[:-1])
    order = np.argsort(largest)
    return largest[order], np.maximum(masses[order], 0.0)


def _stick(
    epsilon: float, power: float, scale: float, a: int, b: int, low: int | None, high: int | None
) -> float:
    """The divergence of the generalized normal law around ``a`` from that around ``b``, within a range.

    Where the ratio of densities crosses e^epsilon is found by bisection: its logarithm is monotone in z for
    power 1 or more.
    """
    left, right = (-math.inf if low is None else low - 0.5), (math.inf if high is None else high + 0.5)
    mass_a, mass_b = (
        _cdf(right - center, power, scale) - _cdf(left - center, power, scale) for center in (a, b)
    )
    target = epsilon + math.log(mass_a) - math.log(mass_b)

    def gain(z: float) -> float:
        return (abs(z - b) / scale) ** power - (abs(z - a) / scale) ** power

    sign = 1 if a > b else -1  # the gain grows towards the side of a
    near, far = (a + b) / 2 - sign * 1e3 * scale, (a + b) / 2 + sign * 1e3 * scale
    if gain(far) <= target:
        return 0.0
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (middle, far) if gain(middle) <= target else (near, middle)
    at = min(max(far, left), right)
    end = right if sign > 0 else left
    beyond = [
        (_tail(sign * (at - center), power, scale) - _tail(sign * (end - center), power, scale)) / mass
        for center, mass in ((a, mass_a), (b, mass_b))
    ]
    return max(beyond[0] - math.exp(epsilon) * beyond[1], 0.0)


def _cdf(z: float, power: float, scale: float) -> float:
    return 1 - _tail(z, power, scale)


def _tail(z: float, power: float, scale: float) -> float:
    """The mass beyond z of the generalized normal law."""
    if math.isinf(z):
        return 0.0 if z > 0 else 1.0
    half = float(special.gammaincc(1 / power, (abs(z) / scale) ** power)) / 2
    return half if z >= 0 else 1 - half


class Truncated(NamedTuple):
    """A Gaussian law around ``a`` and around ``b``, cut off below ``low`` and above ``high``."""

    a: int
    b: int
    low: float
    high: float
    deviation: float

    @property
    def turned(self) -> Truncated:
        """The same in the other direction."""
        return self._replace(a=self.b, b=self.a)

    def losses(self) -> np.ndarray:
        """The probabilities of losses at the places of a line, each loss rounded down, under ``a``."""

        def mass(center: int, left: Any, right: Any) -> Any:
            start, stop = (left - center) / self.deviation, (right - center) / self.deviation
            # far out, masses from the other end keep the digits
            return np.where(
                start > 0,
                special.ndtr(-start) - special.ndtr(-stop),
                special.ndtr(stop) - special.ndtr(start),
            )

        gap = math.log(mass(self.b, self.low, self.high)) - math.log(mass(self.a, self.low, self.high))
        # the loss is linear in z: (a - b) (z - (a + b) / 2) / deviation^2 + gap
        edges = np.append(LINE, LINE[-1] + STEP)
        z = (self.a + self.b) / 2 + (edges - gap) * self.deviation**2 / (self.a - self.b)
        z = np.clip(z, self.low, self.high)
        left, right = np.minimum(z[:-1], z[1:]), np.maximum(z[:-1], z[1:])
        return mass(self.a, left, right) / mass(self.a, self.low, self.high)


STEP = 1 / 512
LINE = np.arange(-24, 24, STEP)
"""Losses in steps; those beyond are left out, so that a divergence is never overstated."""


def _truncated(first: Draw, second: Draw) -> list[Truncated]:
    """The numbers of a draw that move."""
    deviation = math.sqrt(float(first.law.parameters[1]) / 2)
    numbers = []
    for position, (a, b) in enumerate(zip(first.centers, second.centers, strict=True)):
        ends = [_range(draw, position) for draw in (first, second)]
        assert ends[0] == ends[1], "the bounds of noise depend on the records"
        low, high = ends[0]
        if a != b:
            below, above = (
                (-math.inf if low is None else low - 0.5),
                (math.inf if high is None else high + 0.5),
            )
            numbers.append(Truncated(a, b, below, above, deviation))
    return numbers


def _truncated_delta(epsilon: float, numbers: list[Truncated]) -> float:
    """The hockey-stick divergence of independent truncated Gaussian numbers, by the sum of their losses."""
    if not numbers:
        return 0.0
    whole = numbers[0].losses()
    for number in numbers[1:]:
        whole = signal.fftconvolve(whole, number.losses())
    losses = LINE[0] * len(numbers) + STEP * np.arange(len(whole))
    over = losses > epsilon
    return float(np.maximum(whole[over], 0.0) @ -np.expm1(epsilon - losses[over]))


# ---------------------------------------------------------------- selections


def _of_selection(first: Selection, second: Selection) -> float:
    """The largest loss over all candidates, by their exact probabilities."""
    assert (first.mechanism, first.scale, first.parts) == (second.mechanism, second.scale, second.parts)
    rate = float(1 / (first.scale * first.parts))
    lengths, scores = _aligned(first, second)
    powers = [np.array(row, float) * rate for row in scores]
    powers = [row - row.max() for row in powers]
    if first.mechanism == "exponential":
        logs = [row - math.log(math.fsum(lengths * np.exp(row))) for row in powers]
    else:
        assert (lengths == 1).all()
        logs = [np.log(_flipped(np.exp(row))) for row in powers]
    apart = logs[0] - logs[1]
    return float(np.abs(apart).max())


def _aligned(first: Selection, second: Selection) -> tuple[np.ndarray, list[list[int]]]:
    """Runs within which both score all candidates alike: their lengths and both scores."""
    starts = sorted({*first.starts, *second.starts})
    end = first.starts[-1] + first.lengths[-1]
    for selection in (first, second):
        steps = [start + length for start, length in zip(selection.starts, selection.lengths, strict=True)]
        assert steps[:-1] == list(selection.starts[1:]), "candidates are missing"
        assert (selection.starts[0], steps[-1]) == (starts[0], end), "the candidates depend on the records"
    lengths = np.array([b - a for a, b in pairwise([*starts, end])], float)
    scores = []
    for selection in (first, second):
        positions = np.searchsorted(selection.starts, starts, side="right") - 1
        scores.append([selection.scores[position] for position in positions])
    return lengths, scores


def _flipped(coins: Iterable[float]) -> np.ndarray:
    """The probability of each candidate of permute-and-flip, by an exact polynomial in s.

    p_i = q_i times the integral over [0, 1] of the product over j != i of (1 - q_j s) (McKenna, Sheldon
    2020); few candidates only.
    """
    q = [Fraction(float(probability)) for probability in coins]
    probabilities = []
    for position, own in enumerate(q):
        polynomial = [Fraction(1)]
        for other in q[:position] + q[position + 1 :]:
            longer = [*polynomial, Fraction(0)]
            polynomial = [longer[k] - (other * polynomial[k - 1] if k else 0) for k in range(len(longer))]
        probabilities.append(own * sum(part / (k + 1) for k, part in enumerate(polynomial)))
    return np.array([float(probability) for probability in probabilities])
