"""Amplification of a privacy loss when the mechanism runs on a secret part of the records.

Each kind of sampling goes with one kind of neighbours:

- Poisson sampling at rate p, each record by a coin of its own, with ``add_remove``;
- sampling without replacement, n of N records and p = n/N, with ``replace_one``.

The mechanism has its loss for the same neighbours, on every sample. What does not hold:

- Poisson sampling with ``replace_one``: a mechanism that is private for replaced records alone may tell how
  many records were sampled, and then nothing is amplified;
- sampling without replacement with ``add_remove``: a record more takes the place of another one in the
  sample, which are two steps, not one;
- several releases from one sample, each amplified: the sample is drawn once, so compose the losses of the
  releases first and amplify what they cost together, once;
- a sample that is published, or can be seen by other means: it amplifies nothing.

A rule that keeps or suppresses each record for certain turns neighbours into databases that are some steps
apart, at most its stability factor. A rule that looks at one record alone (an age above 100 is left out) has
the factor 1 and costs nothing. A rule that looks at the whole database may have no finite factor: whoever
leaves out the records that are far from all others, or the furthest tenth, has no privacy at all.

Outlier-score suppression leaves out each record by a coin of its own, with probability
``m + (M - m) * score``, where the score is its mean distance, in [0, 1], to the records of the database.
Records far from the others are likelier to be left out, and how likely depends on the whole database: this
costs privacy, while leaving out at random gains some. With m = M it is Poisson sampling at rate 1 - m. Its
bound is a maximum over p in [0, 1], the share of the records that the limit databases suppress:

    l1(p) = ln(e^epsilon - (e^epsilon - 1) q) + p M/m + (1 - p) (1 - m)/(1 - q) - 1,  q = p M + (1 - p) m
    l2(p) = ln(e^epsilon - (e^epsilon - 1) q) + p M/m + (1 - p) (1 - t)/(1 - M) - 1,
            t = (M + m - p M)/(2 - p),  q = p M + (1 - p) t
    l3    = -ln(e^-epsilon + (1 - e^-epsilon) M) + 1 - (1 - M)/(1 - m)

Each of l1 and l2 rises to one peak and falls; the peak is where a cubic in p changes its sign
(Proposition B.10). It is found by halving, because Cardano's formula for it cancels where epsilon is small or
m is near M.

The part is drawn once, so its releases are one mechanism: their losses are added up first, and the sum is
amplified. ``whole`` of the sum is what all releases so far cost, whatever was asked when: along any course of
answers the likelihood of the answers, given the part, changes by the exponential of the summed epsilons, and
a mean over parts amplifies that number. Other releases of all records may come between: likelihoods multiply.
Deltas need more care, because they are lost in the mean over parts: see ``delta_share`` of each class.

Source: Li, Qardaji, Su (2012), Theorem 1, for Poisson sampling; Balle, Barthe, Gaboardi (2018), Theorems 8
and 9, for both kinds of sampling; "The adverse effects of omitting records in differential privacy", Theorem
5.4 and Proposition B.10, for outlier scores. That theorem rests on a computation for m and M in steps of 0.01
from 0.01 to 0.99 and epsilon up to 100, which is right up to 2e-7. That error is added to the bound, and
parameters outside are refused; between the steps the bound is a conjecture of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal, NamedTuple, Protocol, TypeAlias

from pdprivacy.checks import whole
from pdprivacy.core.privacy import Approx, Pure, Rational, check_delta, loss, positive, rational, show
from pdprivacy.errors import ParameterError, got
from pdprivacy.exact import (
    bisect,
    decimal,
    decimals,
    decimals_of_product,
    float_down,
    float_up,
    moved_down,
    moved_up,
)

SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
"""The limits of an epsilon and of a sampling rate."""


def check_epsilon(epsilon: Rational, name: str = "epsilon") -> Fraction:
    """Return an epsilon within the limits; raise ParameterError for any other."""
    number = positive(epsilon, name)
    if not SMALLEST <= number <= LARGEST:
        raise ParameterError(f"{name!r} must be in [1e-300, 1e300] (got {got(epsilon)}).")
    return number


def check_rate(rate: Rational, name: str = "rate") -> Fraction:
    """Return a sampling rate in (0, 1]; raise ParameterError for any other."""
    number = rational(rate, name)
    if not 0 < number <= 1:
        raise ParameterError(
            f"{name!r} must be in (0, 1] (got {got(rate)}).", f"{name}='1/3', or {name}=0.1."
        )
    if number < SMALLEST:
        raise ParameterError(f"{name!r} must be at least 1e-300.")
    return number


def sampling_epsilon(epsilon: Rational, rate: Rational, delta: Rational = 0) -> Pure | Approx:
    """Return the loss of the whole when a mechanism of loss (epsilon, delta) is run on a secret sample.

    Epsilon ``ln(1 + rate (e^epsilon - 1))``, rounded up by less than 1e-28 of it; delta ``rate * delta``,
    exactly. For Poisson sampling with neighbours ``add_remove``, or sampling without replacement, n of N and
    ``rate = Fraction(n, N)``, with ``replace_one``; **not** for the other pairs. Both are met by some
    mechanism. Several releases from the same sample: compose their losses first, and amplify once.

    Source: Balle, Barthe, Gaboardi (2018), Theorems 8 and 9.

    Raises
    ------
    ParameterError : epsilon not positive or outside [1e-300, 1e300], rate not in (0, 1] or below 1e-300,
        delta not in [0, 1).

    >>> whole = sampling_epsilon(1, 0.1, delta=1e-6)
    >>> round(float(whole.epsilon), 4), float(whole.delta)
    (0.1586, 1e-07)
    """
    size, share, slack = check_epsilon(epsilon), check_rate(rate), check_delta(delta)
    return loss(amplified(size, share), slack * share)


def sampling_target(epsilon: Rational, rate: Rational, delta: Rational = 0) -> Pure | Approx:
    """Return the loss that a mechanism on a secret sample may have, so that the whole has (epsilon, delta).

    Epsilon ``ln((e^epsilon - 1 + rate) / rate)``, rounded down by 1e-20 of it; delta ``delta / rate``,
    exactly. The neighbours and the sampling are those of `sampling_epsilon`. `sampling_epsilon` of the result
    never exceeds ``epsilon``.

    Source: as `sampling_epsilon`, solved for the loss of the mechanism.

    Raises
    ------
    ParameterError : as `sampling_epsilon`; delta / rate not below 1.

    >>> inner = sampling_target(1, 0.1, delta=1e-6)
    >>> round(float(inner.epsilon), 4), float(inner.delta)
    (2.9005, 1e-05)
    >>> sampling_epsilon(inner.epsilon, 0.1, inner.delta).epsilon <= 1
    True
    """
    size, share, slack = check_epsilon(epsilon), check_rate(rate), check_delta(delta)
    if slack >= share:
        raise ParameterError(
            f"'delta' must be below 'rate' (got {got(delta)} and {got(rate)}).",
            "a delta of a mechanism is below 1, and so is delta / rate; take a smaller delta.",
        )
    return loss(sharpened(size, share), slack / share)


def stable_epsilon(epsilon: Rational, stability: int, delta: Rational = 0) -> Pure | Approx:
    """Return the loss of the whole when a mechanism of this loss is run on the records that a rule keeps.

    Epsilon ``stability * epsilon``, exactly; delta ``delta * (1 + e^epsilon + ... + e^((stability - 1)
    epsilon))``, rounded up by less than 1e-28 of it. The rule is deterministic, and turns neighbours into
    databases that are at most ``stability`` steps of the same kind of neighbours apart. Both are met by some
    mechanism: this is group privacy. A mechanism that has a smaller loss on what the rule can keep enters
    with that one.

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.1 and
    Proposition B.1.

    Raises
    ------
    ParameterError : epsilon not positive or outside [1e-300, 1e300], stability not a whole number of 1 or
        more, delta not in [0, 1), or a delta of the whole that is not below 1.

    >>> whole = stable_epsilon(0.5, stability=3, delta=1e-6)
    >>> float(whole.epsilon), float(whole.delta) > 3e-6
    (1.5, True)
    """
    size, slack = check_epsilon(epsilon), check_delta(delta)
    steps = whole(stability, "stability", 1)
    if slack and steps > 1:
        context = decimals_of_product(size)
        # the last of the added numbers alone; its logarithm does not overflow
        last = context.add(context.ln(decimal(slack, context)), decimal(size * (steps - 1), context))
        slack = Fraction(1) if last > 0 else _grown(slack, size, steps, context)
        if slack >= 1:
            raise ParameterError(
                "The delta of the whole must be below 1.",
                "a smaller delta, or a rule of a smaller stability.",
            )
    return loss(size * steps, slack)


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return ln(1 + rate (e^epsilon - 1)), rounded up, of checked numbers; epsilon itself at rate 1.

    >>> amplified(Fraction(1, 3), Fraction(1))
    Fraction(1, 3)
    """
    if rate == 1:
        return epsilon
    context = decimals_of_product(epsilon, rate)
    size, share, rest = (decimal(number, context) for number in (epsilon, rate, 1 - rate))
    inner = context.add(share, context.multiply(rest, context.exp(size.copy_negate())))
    return min(epsilon, moved_up(context.add(size, context.ln(inner))))


def sharpened(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return ln((e^epsilon - 1 + rate) / rate), rounded down, of checked numbers; epsilon at rate 1.

    >>> float(sharpened(amplified(Fraction(2), Fraction(1, 3)), Fraction(1, 3)))
    2.0
    """
    if rate == 1:
        return epsilon
    context = decimals_of_product(epsilon, rate)
    size, share, rest = (decimal(number, context) for number in (epsilon, rate, 1 - rate))
    inner = context.subtract(1, context.multiply(rest, context.exp(size.copy_negate())))
    return moved_down(context.add(size, context.ln(context.divide(inner, share))))


def _grown(delta: Fraction, epsilon: Fraction, steps: int, context: Context) -> Fraction:
    """Return delta (e^(steps epsilon) - 1) / (e^epsilon - 1), rounded up."""
    top = context.subtract(context.exp(decimal(epsilon * steps, context)), 1)
    bottom = context.subtract(context.exp(decimal(epsilon, context)), 1)
    return moved_up(context.multiply(decimal(delta, context), context.divide(top, bottom)))


LARGEST_EPSILON = 100
LEAST, MOST = Fraction(1, 100), Fraction(99, 100)

PROOF_ERROR = Fraction(2, 10**7)
"""Error bound of the computation behind the theorem."""

PEAK_ERROR = Decimal(2) ** -100
SEARCH_ERROR = Fraction(1, 10**20)
"""An upper bound of the error by inexact peaks: l1 and l2 change by less than 1e5 per step in p."""

STEPS = 12
"""Largest number of steps of a search, which took at most seven in trials; its result is checked."""

EXACT = decimals(120)
"""e^100 has 44 digits before its point."""

Curve: TypeAlias = Literal["l1", "l2", "l3"]

Shape: TypeAlias = tuple[Decimal, Decimal]
"""q and the rest of l, of ln(e^epsilon - (e^epsilon - 1) q) + rest."""


def outlier_epsilon(epsilon: Rational, m: Rational, M: Rational) -> float:
    """Return the epsilon of the whole when a mechanism of this epsilon is run after outlier suppression.

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
    return float_up(suppressed(check_level(epsilon), *check_spread(m, M)))


def outlier_delta(delta: Rational, m: Rational) -> float:
    """Return the delta of the whole after suppression: ``delta * (1 - m)``, rounded up.

    It goes with `outlier_epsilon`: neighbours ``add_remove``, ``m`` the least probability of suppression. So
    a mechanism may have a delta of ``delta / (1 - m)``.

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4.

    Raises
    ------
    ParameterError : delta not in [0, 1), m not in [0.01, 0.99].

    >>> outlier_delta(1e-6, 0.1)
    9e-07
    """
    return float_up(check_delta(delta) * (1 - _check_chance(m, "m")))


def outlier_floor(m: Rational, M: Rational) -> float:
    """Return the epsilon of the suppression itself, which the whole costs whatever the mechanism.

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
    """Return the epsilon that a mechanism may have, so that the whole has this epsilon; at most 100.

    Rounded down: `outlier_epsilon` of it never exceeds ``epsilon``, and is nearly as close to it as floats
    allow. The neighbours are those of `outlier_epsilon`.

    Source: "The adverse effects of omitting records in differential privacy", Section 6.1.

    Raises
    ------
    ParameterError : as `outlier_epsilon`; epsilon at or below `outlier_floor`, where no mechanism will do.

    >>> round(outlier_target(1, 0.5, 0.6), 4)
    1.362
    >>> outlier_epsilon(outlier_target(1, 0.5, 0.6), 0.5, 0.6) <= 1
    True
    """
    level, low, high = check_level(epsilon), *check_spread(m, M)
    if low < high and level <= rational(outlier_floor(low, high), "epsilon"):
        raise _floor_exceeds(level, low, high)
    return float_down(unsuppressed(level, low, high))


class OutlierPeak(NamedTuple):
    """The maximum in the bound of `outlier_epsilon`.

    ``epsilon``: the maximum, without the error of its proof. ``curve``: the curve that reaches it, and ``p``
    where; "l3" is constant. ``tight``: whether neighbours come as near to it in Theorem 5.3 as asked.
    """

    epsilon: float
    curve: Curve
    p: float
    tight: bool


def outlier_peak(epsilon: Rational, m: Rational, M: Rational) -> OutlierPeak:
    """Return where the bound of `outlier_epsilon` is largest, and whether it is tight.

    It is tight where it is largest at p = 1 or is l3 (all records at one place, and a record far away is
    added), or at p = 0 (records far from each other, and a record halfway between them is added, which not
    every distance allows): Theorem 5.3 gives those neighbours the same epsilon, in the limit of many records.
    With m = M all p are alike. Of the 4,950 pairs of hundredths, with m at most M, 3,371, 3,201 and 3,088
    are tight for epsilon 0.5, 1 and 2 (Figure 75).

    Source: "The adverse effects of omitting records in differential privacy", Proposition B.12.

    Raises
    ------
    ParameterError : as `outlier_epsilon`.

    >>> outlier_peak(1, 0.3, 0.4).tight, outlier_peak(1, 0.49, 0.84).tight
    (True, False)
    """
    level, low, high = check_level(epsilon), *check_spread(m, M)
    if low == high:
        return OutlierPeak(float(amplified(level, 1 - low)), "l1", 0.0, tight=True)
    value, curve, p = max(maxima(level, low, high))
    return OutlierPeak(float(value), curve, float(p), tight=p in (0, 1))


def suppressed(epsilon: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return the epsilon of the whole, rounded up; that of the suppression alone where epsilon is 0."""
    if low == high:
        return amplified(epsilon, 1 - low) if epsilon else epsilon
    return _bound(epsilon, low, high)


def unsuppressed(level: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return the epsilon of a mechanism for which `suppressed` is ``level``, rounded down; at most 100.

    Raises ParameterError for a level that the suppression alone exceeds.
    """
    if low == high:
        return min(Fraction(LARGEST_EPSILON), sharpened(level, 1 - low))
    if level <= suppressed(Fraction(0), low, high):
        raise _floor_exceeds(level, low, high)
    if _bound(Fraction(LARGEST_EPSILON), low, high) <= level:
        return Fraction(LARGEST_EPSILON)
    epsilon = _solve(level - PROOF_ERROR - SEARCH_ERROR, low, high)
    lower = Fraction(1, 10**20)
    while _bound(epsilon, low, high) > level:  # where almost nothing is left above the floor
        epsilon, lower = epsilon * (1 - lower), min(Fraction(1, 2), 4 * lower)
    return epsilon


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


def check_level(epsilon: Rational) -> Fraction:
    """Return an epsilon that the theorem covers; raise ParameterError for any other."""
    if positive(epsilon, "epsilon") > LARGEST_EPSILON:
        raise ParameterError(
            f"'epsilon' must be at most {LARGEST_EPSILON} (got {got(epsilon)}): above, no bound is known."
        )
    return check_epsilon(epsilon)


def maxima(epsilon: Fraction, low: Fraction, high: Fraction) -> list[tuple[Decimal, Curve, Decimal]]:
    """Return the largest value, the name and the p of each curve of the bound, for m < M and epsilon >= 0."""
    with localcontext(EXACT):
        m, M = decimal(low, EXACT), decimal(high, EXACT)
        grows = decimal(epsilon, EXACT).exp() - 1
        first, second = _peak_places(grows, m, M)
        (q, rest), (other, more) = _shapes(first, second, m, M)
        return [
            ((1 + grows * (1 - q)).ln() + rest, "l1", first),
            ((1 + grows * (1 - other)).ln() + more, "l2", second),
            (((1 + grows) / (1 + grows * M)).ln() + _third(m, M), "l3", Decimal(0)),
        ]


def _bound(epsilon: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return the bound of the theorem, rounded up, for m < M; epsilon may be 0."""
    with localcontext(EXACT):
        return moved_up(max(maxima(epsilon, low, high))[0]) + PROOF_ERROR + SEARCH_ERROR


def _solve(level: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return the epsilon at which the bound, without its errors, is ``level``, rounded down.

    Each p gives a bound from below that is solved in closed form. It touches the bound where p is its peak,
    so that the solutions fall, and soon by the square of what is missing.
    """
    with localcontext(EXACT):
        m, M, target = (decimal(number, EXACT) for number in (low, high, level))
        grows = Decimal(LARGEST_EPSILON).exp() - 1
        past = (target - _third(m, M)).exp()
        if past * M < 1:  # else l3 is below what is asked at every epsilon
            grows = min(grows, (past - 1) / (1 - past * M))
        for _ in range(STEPS):
            shapes = _shapes(*_peak_places(grows, m, M), m, M)
            grows = min(grows, *(((target - rest).exp() - 1) / (1 - q) for q, rest in shapes))
        return moved_down((1 + grows).ln())


def _third(m: Decimal, M: Decimal) -> Decimal:
    """The part of l3 without a logarithm."""
    return 1 - (1 - M) / (1 - m)


def _peak_places(grows: Decimal, m: Decimal, M: Decimal) -> tuple[Decimal, Decimal]:
    """Return the p at which l1 and l2 are largest; ``grows`` is e^epsilon - 1."""
    return _peak(_first_slope(grows, m, M)), _peak(_second_slope(grows, m, M))


def _shapes(first: Decimal, second: Decimal, m: Decimal, M: Decimal) -> list[Shape]:
    """Return the q and the rest of l1 at ``first`` and of l2 at ``second``."""
    q = first * M + (1 - first) * m
    t = (M + m - second * M) / (2 - second)
    return [
        (q, first * M / m + (1 - first) * (1 - m) / (1 - q) - 1),
        (second * M + (1 - second) * t, second * M / m + (1 - second) * (1 - t) / (1 - M) - 1),
    ]


def _peak(falls: Callable[[Decimal], Decimal]) -> Decimal:
    """Return the point of [0, 1] where l turns from rising to falling; ``falls`` is minus its slope."""
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


ZERO = Fraction(0)

ROUNDED = Fraction(1, 2000)
"""Loss by rounding suppression probabilities to doubles, at most, for up to 2**31 records.

Each probability, to be kept or not, is off by less than 1e-13 of itself (`keep_probabilities`), for both of
two neighbours. A delta is not larger for it: by Theorem 5.3 it is multiplied by a probability to be kept at
most, and none is above 1 - m.
"""


class Amplification(Protocol):
    """The interface of a way to choose a secret part, for `pdprivacy.amplification.sampling`."""

    @property
    def one_delta(self) -> bool:
        """Whether a release with a delta has to be the only one of the part."""

    @property
    def most(self) -> Fraction | None:
        """The largest total epsilon with a known loss to the whole; None without a limit."""

    def whole(self, epsilon: Fraction) -> Fraction:
        """Return the epsilon of the whole for releases of the part of total ``epsilon``, rounded up.

        Raises ParameterError above ``most``.
        """

    def part(self, epsilon: Fraction) -> Fraction:
        """Return the total epsilon of releases of the part that cost the whole ``epsilon``, rounded down.

        Raises ParameterError where that is too little for any release.
        """

    def delta_share(self, before: Fraction) -> Fraction:
        """Return the factor from a delta of the part to the whole, after releases that sum to ``before``.

        Exact where ``before`` is 0, rounded up else.
        """


@dataclass(frozen=True, slots=True)
class _Sampling:
    """Base class of both ways of sampling: amplification of a summed epsilon, by the rate alone."""

    rate: Fraction

    def __str__(self) -> str:
        return f"ln(1 + {show(self.rate)} (e^epsilon - 1))"

    @property
    def most(self) -> None:
        """The largest epsilon: unlimited."""

    def whole(self, epsilon: Fraction) -> Fraction:
        """Implement `Amplification.whole`."""
        return amplified(epsilon, self.rate) if epsilon else ZERO

    def part(self, epsilon: Fraction) -> Fraction:
        """Implement `Amplification.part`."""
        return sharpened(epsilon, self.rate)


@dataclass(frozen=True, slots=True)
class Poisson(_Sampling):
    """Each record (or unit) by a coin of its own, True with probability ``rate``; for "add_remove".

    A coin may also have a probability that the record alone decides, below ``rate``. Proof: the coins of the
    common records have the same law for both neighbours, so that given these, only the coin of the added
    record makes a difference, and with probability p the whole has ln(1 + p (e^epsilon - 1)) and p delta,
    which grow with p; so does `delta_share`.

    Source: Li, Qardaji, Su (2012), Theorem 1; `pdprivacy.suppression.sampling_epsilon`.

    >>> float(Poisson(Fraction(1, 10)).delta_share(Fraction(0)))
    0.1
    """

    @property
    def one_delta(self) -> bool:
        """False: see `delta_share`."""
        return False

    def delta_share(self, before: Fraction) -> Fraction:
        """The largest probability, given the answers so far, that the record is in the part.

        Rate e^before / (1 - rate + rate e^before), by Bayes. Proof: let f and f' be the likelihoods of the
        answers so far given a part without the record, and with it, each without what deltas have taken; the
        record's table has the mean of (1 - rate) f + rate f'. A delta of the next release takes that much of
        rate f', which is this share of the sum, as f' is at most e^before f. For the table without the
        record the loss is smaller: there a mass b that delta has taken from f is still covered up to
        (1 - rate) e^whole b, so that 1 - (1 - rate) e^whole <= rate of it is lost.
        """
        if not before or self.rate == 1:
            return self.rate
        context = decimals_of_product(self.rate)
        rate, rest = decimal(self.rate, context), decimal(1 - self.rate, context)
        shrunk = context.multiply(rest, context.exp(decimal(before, context).copy_negate()))
        return min(Fraction(1), moved_up(context.divide(rate, context.add(rate, shrunk))))


@dataclass(frozen=True, slots=True)
class WithoutReplacement(_Sampling):
    """So many of a public number of records (or units), ``rate`` of them; for "replace_one".

    Source: Balle, Barthe, Gaboardi (2018), Theorem 9.
    """

    @property
    def one_delta(self) -> bool:
        """True: the bound of deltas depends on the sum of all epsilons."""
        return self.rate < 1

    def delta_share(self, before: Fraction) -> Fraction:  # noqa: ARG002
        """The rate."""
        return self.rate


@dataclass(frozen=True, slots=True)
class Outliers:
    """Each record is left out by a coin of its own, with probability m + (M - m) score; for "add_remove".

    Source: "The adverse effects of omitting records in differential privacy", Theorem 5.4;
    `pdprivacy.suppression.outlier_epsilon`. 1/2000 is added for probabilities that are doubles.

    >>> float(Outliers(Fraction(1, 10), Fraction(2, 10)).whole(Fraction(0)))
    0.0
    """

    m: Fraction
    M: Fraction

    def __str__(self) -> str:
        return f"outlier_epsilon(epsilon, m={show(self.m)}, M={show(self.M)})"

    @property
    def one_delta(self) -> bool:
        """True: the theorem holds for releases that are fixed together."""
        return True

    @property
    def most(self) -> Fraction:
        """The largest epsilon, as in `outlier_epsilon`."""
        return Fraction(LARGEST_EPSILON)

    def whole(self, epsilon: Fraction) -> Fraction:
        """Implement `Amplification.whole`: above `outlier_floor`, and 0 only where nothing was released."""
        if not epsilon:
            return ZERO
        if epsilon > self.most:
            raise ParameterError(
                f"Releases after suppression may have an epsilon of at most {LARGEST_EPSILON} in all: above, "
                "no bound of what the whole pays is known.",
                "a smaller epsilon.",
            )
        level = suppressed(epsilon, self.m, self.M)
        return level if self.m == self.M else level + ROUNDED

    def part(self, epsilon: Fraction) -> Fraction:
        """Implement `Amplification.part`."""
        level = epsilon if self.m == self.M else max(epsilon - ROUNDED, ROUNDED)
        return unsuppressed(min(level, self.most), self.m, self.M)

    def delta_share(self, before: Fraction) -> Fraction:  # noqa: ARG002
        """1 - m."""
        return 1 - self.m
