"""The least epsilon and delta of the composition of losses fixed beforehand, for any mechanisms.

The results do not hold for a budget whose losses are chosen after seeing answers. All losses are
approximate. With p_i = 1/(1 + exp(-epsilon_i)), the composition of (epsilon_i, delta_i) losses is
(epsilon, delta)-private, and for some mechanisms no better, where

    1 - delta = prod_i (1 - delta_i) * (1 - E max(0, 1 - exp(epsilon - L)))

and L is the sum of independent losses, which are epsilon_i with probability p_i and else -epsilon_i
(Murtagh, Vadhan 2016, Theorem 1.5; for equal losses Kairouz, Oh, Viswanath 2015, Theorem 3.3). L has up
to 2^n values and computing delta is #P-complete in general, but equal sums are one value: if the epsilons
are multiples of a common unit, as decimals are, L has few values.

Error. If L still has too many values, every epsilon_i is rounded up to a multiple of a unit. Let eta be the
sum of these increments (`optimal_error`), or 0 without rounding. Then delta is not below the true one, and
delta at epsilon + eta is not above that of exp(eta / 2) times the expectation at epsilon (compare Murtagh,
Vadhan 2016, Theorem 1.7). For one loss rounded from e to e + a: the outcome of loss e + a has 1 + (1 -
exp(-a)) / (exp(-a) + exp(e)) <= exp(a / 2) times its old probability, and it has the old loss against exp(-a)
times the other law; the other outcome has less of both. In addition, floating-point arithmetic of positive
numbers has an error below 1e-10 of the expectation plus 1e-290, which are added, and differences epsilon - L
have an error below 1e-14 of the largest L, by which epsilon is lowered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import reduce

import numpy as np

from pdprivacy.core.accounting.rules import Losses, counted
from pdprivacy.core.privacy import ZCDP, Rational, check_delta, rational
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import bisect, decimal, decimals, float_down, float_up, next_up, power_down, rounded_down
from pdprivacy.types import Floats

SUBSETS = 2**14
"""The largest number of sums of losses without a common unit that are kept one by one."""
CELLS = 2**20
WORK = 2**28
"""The largest number of sums on a grid (`CELLS`), and of products to fill it (`WORK`)."""

MOST = 10**6
EXACT = 1000
"""The largest number of losses (`MOST`), and of losses whose deltas are composed exactly (`EXACT`)."""

RELATIVE = 1e-11
ABSOLUTE = 1e-290
TINY = 1e-300

WIDE = decimals(40, ROUND_CEILING)


def optimal_delta(losses: Losses, epsilon: Rational) -> float:
    """Return the least delta of composed ``losses`` at ``epsilon``, rounded up; the module states the error.

    This delta holds only for losses fixed beforehand. ``losses``: a list, or a mapping of losses to counts.

    Raises
    ------
    ParameterError : losses in rho, no losses, more than 1e6 losses, or a negative epsilon.

    >>> from pdprivacy import Pure
    >>> round(optimal_delta({Pure(0.1): 100}, 3), 6)
    0.001361
    """
    level = rational(epsilon, "epsilon")
    if level < 0:
        raise ParameterError(f"'epsilon' must be at least 0 (got {got(epsilon)}).")
    problem = _Problem.of(losses)
    if level >= problem.most:
        return min(1.0, float_up(1 - problem.kept))
    sums = _Sums.of(problem.counts, problem.most)
    excess = Fraction(min(1.0, sums.excess(float_down(level))))
    return min(1.0, float_up(1 - problem.kept * (1 - excess)))


def optimal_epsilon(losses: Losses, delta: Rational) -> float:
    """Return the least epsilon of composed ``losses`` at ``delta``, rounded up; the module states the error.

    This epsilon holds only for losses fixed beforehand. ``losses``: a list, or a mapping of losses to counts.

    Raises
    ------
    ParameterError : losses in rho, no losses, more than 1e6 losses, or a delta that is outside [0, 1) or
        below the composition of the deltas of the losses, 1 - prod (1 - delta_i).

    >>> from pdprivacy import Pure
    >>> round(optimal_epsilon({Pure(0.1): 100}, 1e-6), 4)  # the sum is 10
    4.7746
    """
    slack = check_delta(delta)
    problem = _Problem.of(losses)
    target = 1 - (1 - slack) / problem.kept if problem.kept else Fraction(-1)
    if target < 0:
        raise ParameterError(
            f"'delta' must be at least {float_up(1 - problem.kept):.6g}, what the deltas of the losses "
            f"compose to (got {got(delta)})."
        )
    most = float_up(problem.most)
    goal = float_down(target)
    if goal <= ABSOLUTE:
        return most
    return float_up(Fraction(min(most, _Sums.of(problem.counts, problem.most).solve(goal, most))))


def optimal_error(losses: Losses) -> float:
    """Return eta, the rounding of the epsilons in `optimal_epsilon` and `optimal_delta`; 0 if they are exact.

    For very many losses without a common unit, eta may exceed the cost itself; then use another bound.

    >>> from pdprivacy import Pure
    >>> optimal_error([Pure(0.1), Pure("1/3"), Pure(0.25)])
    0.0
    """
    problem = _Problem.of(losses)
    return float_up(_Sums.of(problem.counts, problem.most).eta)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Losses: the count of each epsilon, ``kept``, prod (1 - delta_i), and ``most``, the sum of epsilons."""

    counts: Counter[Fraction]
    kept: Fraction
    most: Fraction

    @classmethod
    def of(cls, losses: Losses) -> _Problem:
        items = counted(losses)
        if not items:
            raise ParameterError("'losses' must hold at least one loss.")
        number = items.total()
        if number > MOST:
            raise ParameterError(
                f"'losses' must hold at most 1e6 losses (got {number}).", "zcdp_epsilon of their sum."
            )
        counts: Counter[Fraction] = Counter()
        kept = Fraction(1)
        for item, count in items.items():
            if isinstance(item, ZCDP):
                raise ParameterError(
                    "Optimal composition needs losses in epsilon (got ZCDP).", "zcdp_epsilon(rho, delta)."
                )
            counts[item.epsilon] += count
            if number <= EXACT:
                kept *= (1 - item.delta) ** count
            elif item.delta:
                kept = rounded_down(kept * power_down(1 - item.delta, count))
        most = sum((epsilon * count for epsilon, count in counts.items()), Fraction(0))
        if most > 10**15:
            raise ParameterError("'losses' must have epsilons that sum to at most 1e15.")
        return cls(counts, kept, most)


def binomial_weights(epsilon: Fraction, count: int) -> tuple[int, Floats]:
    """Return the first j, and upper bounds of the probabilities that j of ``count`` losses are +epsilon.

    Probabilities below 1e-300 are left out.
    """
    factor = WIDE.next_plus(WIDE.exp(decimal(epsilon, WIDE)))
    # exp(-epsilon) + 1 from below: the reciprocal of a bound from above, rounded down
    below = WIDE.next_minus(WIDE.next_minus(WIDE.add(1, WIDE.divide(1, factor))))
    other = WIDE.divide(WIDE.divide(1, below), WIDE.next_minus(WIDE.next_minus(factor)))
    weight = WIDE.next_plus(WIDE.next_plus(WIDE.power(other, count)))
    first, weights = -1, []
    for j in range(count + 1):
        value = float(weight)
        if value >= TINY:
            first = j if first < 0 else first
            weights.append(next_up(value))
        elif first >= 0:
            break
        weight = WIDE.divide(
            WIDE.multiply(WIDE.multiply(weight, WIDE.create_decimal(count - j)), factor),
            WIDE.create_decimal(j + 1),
        )
    return first, np.array(weights)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The values of L and upper bounds of their probabilities.

    ``eta``: the sum of the increments by rounding. ``wrong``: the rounding of the weights, relative to them.
    """

    losses: Floats
    weights: Floats
    eta: Fraction
    wrong: float

    @classmethod
    def of(cls, counts: Counter[Fraction], most: Fraction) -> _Sums:
        groups = sorted(counts.items(), key=lambda group: -group[1])
        unit = reduce(common_unit, counts)
        if _affordable([(int(epsilon / unit), count) for epsilon, count in groups]):
            return cls._on_grid(groups, unit, Fraction(0))
        if math.prod(count + 1 for count in counts.values()) <= SUBSETS:
            return cls._one_by_one(groups, unit)
        cells = CELLS
        while True:
            unit = most / cells
            rounded: Counter[Fraction] = Counter()
            for epsilon, count in groups:
                rounded[math.ceil(epsilon / unit) * unit] += count
            fewer = sorted(rounded.items(), key=lambda group: -group[1])
            if cells <= 64 or _affordable([(int(epsilon / unit), count) for epsilon, count in fewer], 2):
                added = sum((epsilon * count for epsilon, count in fewer), Fraction(0)) - most
                return cls._on_grid(fewer, unit, added)
            cells //= 2

    @classmethod
    def _on_grid(cls, groups: Sequence[tuple[Fraction, int]], unit: Fraction, eta: Fraction) -> _Sums:
        """Return the sums of epsilons that are multiples of ``unit``: cell i is the loss (2 i - all) unit."""
        weights, start, steps, adds = np.ones(1), 0, 0, 0
        for epsilon, count in groups:
            step = int(epsilon / unit)
            first, taps = binomial_weights(epsilon, count)
            filled = np.zeros(len(weights) + step * (len(taps) - 1))
            for index, tap in enumerate(taps):
                filled[index * step : index * step + len(weights)] += weights * tap
            weights, start = filled, start + step * first
            steps += step * count
            adds += len(taps) + 2
        cells = np.arange(start, start + len(weights), dtype=np.float64)
        return cls((2 * cells - steps) * float(unit), weights, eta, adds * 2**-52)

    @classmethod
    def _one_by_one(cls, groups: Sequence[tuple[Fraction, int]], unit: Fraction) -> _Sums:
        sums: dict[int, float] = {0: 1.0}
        adds = 0
        for epsilon, count in groups:
            step = int(epsilon / unit)
            first, taps = binomial_weights(epsilon, count)
            fuller: dict[int, float] = {}
            for so_far, weight in sums.items():
                for index, tap in enumerate(taps.tolist()):
                    key = so_far + (2 * (index + first) - count) * step
                    fuller[key] = fuller.get(key, 0.0) + weight * tap
            sums = fuller
            adds += len(taps) + 2
        losses = np.array([float(key * unit) for key in sums], dtype=np.float64)
        return cls(losses, np.array(list(sums.values())), Fraction(0), adds * 2**-52)

    def excess(self, level: float) -> float:
        """Return an upper bound of E max(0, 1 - exp(level - L))."""
        # lowered by a bound of the error of the differences
        moved = level - 2**-49 * (abs(level) + float(np.abs(self.losses).max()))
        above = self.losses > moved
        parts = self.weights[above] * -np.expm1(moved - self.losses[above])
        return float(parts.sum()) * (1 + RELATIVE / 10 + 4 * self.wrong) + ABSOLUTE

    def solve(self, goal: float, most: float) -> float:
        """Return the level at which the excess falls to ``goal``, rounded up."""
        sums = self

        def meets(level: float) -> bool:
            nonlocal sums
            if sums.excess(level) <= goal:
                return True
            # the search does not return to lower levels
            if 2 * (kept := sums.losses > level - 2**-40 * most).sum() < len(kept):
                sums = _Sums(sums.losses[kept], sums.weights[kept], self.eta, self.wrong)
            return False

        return 0.0 if self.excess(0.0) <= goal else bisect(meets, 0.0, most, 2**-44)


def _affordable(groups: Sequence[tuple[int, int]], room: int = 1) -> bool:
    """Return whether the grid of groups of (steps, count) is affordable; ``room``: a factor of its size."""
    cells, work = 1, 0
    for step, count in groups:
        taps = taps_of(count)
        work += cells * taps
        cells += step * (taps - 1)
        if cells > room * CELLS or work > WORK:
            return False
    return True


def taps_of(count: int) -> int:
    """Return the number of values above 1e-300 of the sum of ``count`` equal losses."""
    return min(count + 1, 40 * math.isqrt(count) + 80)


def common_unit(first: Fraction, second: Fraction) -> Fraction:
    """Return the largest number of which both numbers are multiples."""
    return Fraction(
        math.gcd(first.numerator * second.denominator, second.numerator * first.denominator),
        first.denominator * second.denominator,
    )
