"""What outlier-score suppression does to a privacy loss.

Each record is suppressed by a coin of its own, with probability ``m + (M - m) * score``, where the score is
its mean distance, in [0, 1], to the records of the database. Records far from the others are likelier to be
left out, and how likely depends on the whole database: this costs privacy, while leaving out at random
gains some. With m = M it is Poisson sampling at rate 1 - m.

The bound is a maximum over p in [0, 1], the share of the records that the limit databases suppress:

    l1(p) = ln(e^epsilon - (e^epsilon - 1) q) + p M/m + (1 - p) (1 - m)/(1 - q) - 1,  q = p M + (1 - p) m
    l2(p) = ln(e^epsilon - (e^epsilon - 1) q) + p M/m + (1 - p) (1 - t)/(1 - M) - 1,
            t = (M + m - p M)/(2 - p),  q = p M + (1 - p) t
    l3    = -ln(e^-epsilon + (1 - e^-epsilon) M) + 1 - (1 - M)/(1 - m)

Each of l1 and l2 rises to one peak and falls; the peak is where a cubic in p changes its sign
(Proposition B.10). It is found by halving, because Cardano's formula for it cancels where epsilon is small or
m is near M.

Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4 and Proposition B.10.
The theorem rests on a computation for m and M in steps of 0.01 from 0.01 to 0.99 and epsilon up to 100, which
is right up to 2e-7. That error is added to the bound, and parameters outside are refused; between the steps
the bound is a conjecture of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TypeAlias

from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import bisect, decimal, decimals, float_down, float_up, moved_down, moved_up
from pdprivacy.privacy import Rational, check_delta, positive, rational, show
from pdprivacy.suppression.sampling import amplified, check_epsilon, sharpened

__all__ = ["check_spread", "outlier_delta", "outlier_epsilon", "outlier_floor", "outlier_target"]
__all__ += ["suppressed", "unsuppressed"]

LARGEST_EPSILON = 100
LEAST, MOST = Fraction(1, 100), Fraction(99, 100)

PROOF_ERROR = Fraction(2, 10**7)
"""How far the computation behind the theorem may be off."""

PEAK_ERROR = Decimal(2) ** -100
SEARCH_ERROR = Fraction(1, 10**20)
"""More than what peaks that are off by this miss: l1 and l2 change by less than 1e5 per step in p."""

STEPS = 12
"""Of a search that took seven at most for all parameters that were tried; its result is checked."""

EXACT = decimals(120)
"""e^100 has 44 digits before its point."""

Shape: TypeAlias = tuple[Decimal, Decimal]
"""q and the rest of l, of ln(e^epsilon - (e^epsilon - 1) q) + rest."""


def outlier_epsilon(epsilon: Rational, m: Rational, M: Rational) -> float:
    """The epsilon of the whole when a mechanism of this epsilon is run on what an outlier score has kept.

    An upper bound for every mechanism and every distance, 2e-7 above the formula; for neighbours
    ``add_remove``. A record is suppressed with a probability between ``m`` and ``M``. It may be above
    ``epsilon``, and is never below that of Poisson sampling at rate 1 - m, which it is for m = M. The kept
    set must stay secret, and several releases from one kept set cost as in `sampling_epsilon`: compose first.

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4.

    Raises
    ------
    ParameterError : epsilon not in (0, 100], m or M not in [0.01, 0.99], or m above M: the bound is not
        known there.

    >>> round(outlier_epsilon(1, 0.5, 0.5), 4), round(outlier_epsilon(1, 0.5, 0.6), 4)
    (0.6201, 0.7441)
    """
    return float_up(suppressed(_check_level(epsilon), *check_spread(m, M)))


def outlier_delta(delta: Rational, m: Rational) -> float:
    """The delta of the whole, ``delta * (1 - m)``, rounded up; the mechanism has delta / (1 - m) at most.

    Goes with `outlier_epsilon`: neighbours ``add_remove``, ``m`` the least probability of suppression.

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4.

    Raises
    ------
    ParameterError : delta not in [0, 1), m not in [0.01, 0.99].

    >>> outlier_delta(1e-6, 0.1)
    9e-07
    """
    return float_up(check_delta(delta) * (1 - _check_chance(m, "m")))


def outlier_floor(m: Rational, M: Rational) -> float:
    """The epsilon of the suppression itself: what the whole costs, however little the mechanism does.

    No target at or below it can be met; it is 0 for m = M. The value of `outlier_epsilon` as its epsilon
    goes to 0.

    Source: "The adverse effects of omitting records in differential privacy", Proposition B.10 at epsilon 0.

    Raises
    ------
    ParameterError : m or M not in [0.01, 0.99], or m above M.

    >>> round(outlier_floor(0.1, 0.2), 4), outlier_floor(0.2, 0.2)
    (1.0, 0.0)
    """
    return float_up(suppressed(Fraction(0), *check_spread(m, M)))


def outlier_target(epsilon: Rational, m: Rational, M: Rational) -> float:
    """The epsilon that a mechanism may have, so that the whole has this epsilon; at most 100.

    Rounded down: `outlier_epsilon` of it never exceeds what was asked, and comes nearly as near as floats lie
    apart. The neighbours are those of `outlier_epsilon`.

    Source: "The adverse effects of omitting records in differential privacy", Section 6.1.

    Raises
    ------
    ParameterError : as `outlier_epsilon`; epsilon at or below `outlier_floor`, where no mechanism will do.

    >>> round(outlier_target(1, 0.5, 0.6), 4)
    1.362
    >>> outlier_epsilon(outlier_target(1, 0.5, 0.6), 0.5, 0.6) <= 1
    True
    """
    level, low, high = _check_level(epsilon), *check_spread(m, M)
    if low < high and level <= rational(outlier_floor(low, high), "epsilon"):
        raise _floor_exceeds(level, low, high)
    return float_down(unsuppressed(level, low, high))


def suppressed(epsilon: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """At least the epsilon of the whole, of checked numbers; of the suppression alone where epsilon is 0."""
    if low == high:
        return amplified(epsilon, 1 - low) if epsilon else epsilon
    return _bound(epsilon, low, high)


def unsuppressed(level: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """At most the epsilon of a mechanism for which `suppressed` is ``level``; at most 100.

    Raises ParameterError for a level that the suppression alone exceeds.
    """
    if low == high:
        return min(Fraction(LARGEST_EPSILON), sharpened(level, 1 - low))
    if level <= suppressed(Fraction(0), low, high):
        raise _floor_exceeds(level, low, high)
    if _bound(Fraction(LARGEST_EPSILON), low, high) <= level:
        return Fraction(LARGEST_EPSILON)
    found = _solve(level - PROOF_ERROR - SEARCH_ERROR, low, high)
    lower = Fraction(1, 10**20)
    while _bound(found, low, high) > level:  # where almost nothing is left above the floor
        found, lower = found * (1 - lower), min(Fraction(1, 2), 4 * lower)
    return found


def _floor_exceeds(level: Fraction, low: Fraction, high: Fraction) -> ParameterError:
    return ParameterError(
        f"An epsilon of {show(level)} cannot be met: suppression with m={show(low)} and M={show(high)} "
        f"costs {outlier_floor(low, high)} by itself.",
        "m and M nearer to each other, or a larger epsilon; outlier_floor(m, M) must be below it.",
    )


def check_spread(m: Rational, M: Rational) -> tuple[Fraction, Fraction]:
    """Least and largest probability of suppression, checked; raises ParameterError.

    >>> check_spread(0.1, 0.25)
    (Fraction(1, 10), Fraction(1, 4))
    """
    low, high = _check_chance(m, "m"), _check_chance(M, "M")
    if low > high:
        raise ParameterError(f"'m' must not be above 'M' (got {got(m)} and {got(M)}).")
    return low, high


def _check_chance(value: Rational, name: str) -> Fraction:
    number = rational(value, name)
    if not LEAST <= number <= MOST:
        raise ParameterError(f"{name!r} must be in [0.01, 0.99] (got {got(value)}).")
    return number


def _check_level(epsilon: Rational) -> Fraction:
    if positive(epsilon, "epsilon") > LARGEST_EPSILON:
        raise ParameterError(
            f"'epsilon' must be at most {LARGEST_EPSILON} (got {got(epsilon)}): above, no bound is known."
        )
    return check_epsilon(epsilon)


def _bound(epsilon: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """At least the bound of the theorem, for m < M; epsilon may be 0."""
    with localcontext(EXACT):
        m, M = decimal(low, EXACT), decimal(high, EXACT)
        grows = decimal(epsilon, EXACT).exp() - 1
        values = [(1 + grows * (1 - q)).ln() + rest for q, rest in _peaks(grows, m, M)]
        values.append(((1 + grows) / (1 + grows * M)).ln() + _third(m, M))
        return moved_up(max(values)) + PROOF_ERROR + SEARCH_ERROR


def _solve(level: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Just below the epsilon at which the bound, without its errors, is ``level``.

    Each p gives a bound from below that is solved in closed form. It touches the bound where p is its peak,
    so that the solutions fall, and soon by the square of what is missing.
    """
    with localcontext(EXACT):
        m, M, asked = (decimal(number, EXACT) for number in (low, high, level))
        grows = Decimal(LARGEST_EPSILON).exp() - 1
        past = (asked - _third(m, M)).exp()
        if past * M < 1:  # else l3 is below what is asked at every epsilon
            grows = min(grows, (past - 1) / (1 - past * M))
        for _ in range(STEPS):
            grows = min(grows, *(((asked - rest).exp() - 1) / (1 - q) for q, rest in _peaks(grows, m, M)))
        return moved_down((1 + grows).ln())


def _third(m: Decimal, M: Decimal) -> Decimal:
    """What l3 has beside its logarithm."""
    return 1 - (1 - M) / (1 - m)


def _peaks(grows: Decimal, m: Decimal, M: Decimal) -> list[Shape]:
    """The q and the rest of l1 and of l2, where each is largest; ``grows`` is e^epsilon - 1."""
    first, second = _peak(_first_slope(grows, m, M)), _peak(_second_slope(grows, m, M))
    q = first * M + (1 - first) * m
    t = (M + m - second * M) / (2 - second)
    return [
        (q, first * M / m + (1 - first) * (1 - m) / (1 - q) - 1),
        (second * M + (1 - second) * t, second * M / m + (1 - second) * (1 - t) / (1 - M) - 1),
    ]


def _peak(falls: Callable[[Decimal], Decimal]) -> Decimal:
    """Where in [0, 1] the slope of l turns from rising to falling; ``falls`` has the opposite sign."""
    if falls(Decimal(0)) >= 0:
        return Decimal(0)
    if falls(Decimal(1)) <= 0:
        return Decimal(1)
    return bisect(lambda p: falls(p) >= 0, Decimal(0), Decimal(1), PEAK_ERROR)


def _first_slope(g: Decimal, m: Decimal, M: Decimal) -> Callable[[Decimal], Decimal]:
    """The cubic of l1 (Proposition B.10), with g = e^epsilon - 1."""
    x = g + 1
    a = g * M / m * (M - m) ** 2
    b = -(M - m) / m * ((m * m - 4 * M * m + 2 * M) * g + x * M)
    c = (1 - m) / m * (g * (2 * m * m - 4 * M * m - m) + (3 * x - 1) * M)
    d = -(1 - m) * (g * (m - 2) + x / m)
    return lambda p: ((a * p + b) * p + c) * p + d


def _second_slope(g: Decimal, m: Decimal, M: Decimal) -> Callable[[Decimal], Decimal]:
    """The cubic of l2 (Proposition B.10), with g = e^epsilon - 1."""
    x = g + 1
    a = (x - g * m) / m
    b = -(6 * x - g * (M + 5 * m)) / m
    c = (m * (g * (m + 9 * M - 9) - x) + 4 * M * (g * M - 4 * x + 1) + 12 * x) / ((1 - M) * m)
    d = -(2 * x - g * (M + m)) * (4 - 4 * M - m) / ((1 - M) * m) + 2 * g
    return lambda p: ((a * p + b) * p + c) * p + d
