"""Sums of losses, exact in rational numbers, the rules that enforce a cap by them, and conversions of rho.

All rules hold when each loss is chosen after seeing the answers before it.

The conversion of a zero-concentrated loss to epsilon and delta is an infimum over an order alpha, and every
alpha gives a bound. A search finds alpha in floating point, and the bound at this alpha is computed in
decimals that are rounded to the safe side. The search misses the infimum by less than 1e-12 of the bound.
"""

# ruff: noqa: D102 - the methods are documented on the base class
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

from pdprivacy.checks import instance, items, one_of, whole
from pdprivacy.core.accounting.events import Events
from pdprivacy.core.privacy import (
    LEAST_DELTA,
    LOSSES,
    MOST,
    ZCDP,
    Approx,
    Loss,
    Pure,
    Rational,
    Unshown,
    check_loss,
    loss,
    positive,
    rational,
    show,
)
from pdprivacy.errors import BudgetError, BudgetExceeded, ParameterError, got, kind
from pdprivacy.exact import bisect, exp_up, float_down, float_up, log_up, root_down, root_up, rounded_up
from pdprivacy.types import settle

Conversion: TypeAlias = Literal["tight", "bun_steinke"]

CANCELS = Fraction(1, 10**6)
"""The epsilon below which the tight conversion cancels in doubles."""

REACCOUNTED = 1 - Fraction(1, 10**11)
"""The factor of a largest rho, which keeps its recomputed epsilon within the requested epsilon."""


def zcdp_of(item: Loss) -> ZCDP:
    """Return the zero-concentrated loss that ``item`` implies: epsilon^2 / 2 for a pure loss.

    Source: Bun, Steinke (2016), Proposition 1.4.

    Raises
    ------
    ParameterError : an approximate loss with a positive delta, which implies no zero-concentrated loss.

    >>> from pdprivacy import Pure
    >>> zcdp_of(Pure(0.1))
    ZCDP(rho=Fraction(1, 200))
    """
    if isinstance(item, ZCDP):
        return item
    check_loss(item, "A loss must be")
    if item.delta:
        raise ParameterError(
            "A loss with a positive delta is not zero-concentrated.",
            "Gaussian noise has rho = 1 / (2 * noise_multiplier**2); a pure loss has epsilon**2 / 2.",
        )
    return ZCDP(item.epsilon**2 / 2)


def zcdp_epsilon(rho: Rational, delta: Rational, conversion: Conversion = "tight") -> float:
    """Return an epsilon, rounded up, such that rho-zCDP is (epsilon, delta)-differentially private.

    ``"tight"``: the infimum over alpha > 1 of
    ``alpha rho + ln(1/(alpha delta)) / (alpha - 1) + ln(1 - 1/alpha)`` (Canonne, Kamath, Steinke 2020,
    Corollary 13); ``"bun_steinke"``: ``rho + 2 sqrt(rho ln(1/delta))`` (Bun, Steinke 2016,
    Proposition 1.3).

    Raises
    ------
    ParameterError : rho not positive, delta not in [1e-290, 1), unknown conversion.

    >>> round(zcdp_epsilon(0.1, 1e-6), 4), round(zcdp_epsilon(0.1, 1e-6, "bun_steinke"), 4)
    (2.1419, 2.4508)
    """
    number, slack = _check_rho(rho), check_slack(delta)
    return float_up(_epsilon(number, slack, _check_conversion(conversion)))


def zcdp_delta(rho: Rational, epsilon: Rational, conversion: Conversion = "tight") -> float:
    """Return a delta, rounded up, such that rho-zCDP is (epsilon, delta)-differentially private.

    ``"tight"``: the infimum over alpha > 1 of
    ``exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha`` (Canonne, Kamath,
    Steinke 2020, Corollary 13); ``"bun_steinke"``: ``exp(-(epsilon - rho)^2 / (4 rho))`` (Bun,
    Steinke 2016, Proposition 1.3). At most 1.

    Raises
    ------
    ParameterError : rho not positive, epsilon negative, unknown conversion.

    >>> f"{zcdp_delta(0.1, 2):.3e}", f"{zcdp_delta(0.1, 2, 'bun_steinke'):.3e}"
    ('4.325e-06', '1.204e-04')
    """
    number, level = _check_rho(rho), rational(epsilon, "epsilon")
    if not 0 <= level <= MOST:
        raise ParameterError(f"'epsilon' must be in [0, 1e290] (got {got(epsilon)}).")
    if _check_conversion(conversion) == "bun_steinke":
        if level <= number:
            return 1.0
        return min(1.0, float_up(exp_up(-((level - number) ** 2) / (4 * number))))
    steepness, target = float(number), float(level)

    def rises(t: float) -> bool:  # the logarithm is convex in alpha
        return (2 * t + 1) * steepness - target + math.log(t) - math.log1p(t) > 0

    t = Fraction(bisect(rises, 1e-300, 1e300, logarithmic=True))
    alpha = 1 + t
    # ln(1 - 1/alpha) has the factors t and 1, both positive, so its upper bound is used
    exponent = t * (alpha * number - level) + t * log_up(t / alpha) + log_up(1 / alpha)
    return 1.0 if exponent >= 0 else min(1.0, float_up(exp_up(exponent)))


def zcdp_rho(epsilon: Rational, delta: Rational, conversion: Conversion = "tight") -> float:
    """Return the largest rho that converts to ``epsilon`` at ``delta``, rounded down by up to 1e-9 of it.

    `zcdp_epsilon` of the result is at most ``epsilon``. For an epsilon below 1e-6, "tight" returns the
    smaller rho of "bun_steinke".

    Raises
    ------
    ParameterError : epsilon not positive, delta not in [1e-290, 1), unknown conversion.

    >>> round(zcdp_rho(1, 1e-6), 5), round(zcdp_rho(1, 1e-6, "bun_steinke"), 5)
    (0.02436, 0.01747)
    """
    return float_down(largest_rho(epsilon, delta, conversion))


def largest_rho(epsilon: Rational, delta: Rational, conversion: Conversion = "tight") -> Fraction:
    """Return `zcdp_rho` as an exact number."""
    level, slack = _check_size(positive(epsilon, "epsilon"), "epsilon"), check_slack(delta)
    return _rho(level, slack, _check_conversion(conversion))


@lru_cache(maxsize=256)
def _rho(level: Fraction, slack: Fraction, conversion: Conversion) -> Fraction:
    """Return the largest rho of this epsilon and delta."""
    log = log_up(1 / slack)
    root = level / (root_up(log + level) + root_up(log))
    plain = root**2 * REACCOUNTED
    if conversion == "bun_steinke" or level < CANCELS:
        return plain
    epsilon_float, size = float(level), float(log)

    def too_much(rho: float) -> bool:
        t = _order(rho, size)
        epsilon = (1 + t) * rho + (size - math.log1p(t)) / t + math.log(t) - math.log1p(t)
        return epsilon > epsilon_float

    start = float(plain)
    best_rho = bisect(too_much, start / 2, 100 * (epsilon_float + size + 10), logarithmic=True)
    t = Fraction(_order(best_rho, size))
    alpha = 1 + t
    largest = (level - log_up(1 / (alpha * slack)) / t - log_up(t / alpha)) / alpha
    return max(plain, largest * REACCOUNTED)


def _epsilon(rho: Fraction, slack: Fraction, conversion: Conversion) -> Fraction:
    """Return an upper bound of the epsilon of this rho."""
    log = log_up(1 / slack)
    if conversion == "bun_steinke":
        return rho + 2 * root_up(rho * log)
    t = Fraction(_order(float(rho), float(log)))
    alpha = 1 + t
    return max(Fraction(0), alpha * rho + log_up(1 / (alpha * slack)) / t + log_up(t / alpha))


def _order(rho: float, log: float) -> float:
    """Return the best t = alpha - 1 for rho, where rho t^2 = log - ln(1 + t) with log = ln(1/delta)."""

    def past(t: float) -> bool:
        return rho * t * t + math.log1p(t) > log

    most = 1e300 if rho < 1e-300 else 2 * math.sqrt(log / rho) + 1e-150
    return bisect(past, 1e-160, most, logarithmic=True)


def check_slack(delta: Rational) -> Fraction:
    """Return a delta that a conversion can use; raise ParameterError for any other."""
    slack = rational(delta, "delta")
    if not 0 < slack < 1:
        raise ParameterError(f"'delta' must be in (0, 1) (got {got(delta)}).")
    if slack < LEAST_DELTA:
        raise ParameterError("'delta' must be at least 1e-290.")
    return slack


def _check_size(number: Fraction, name: str) -> Fraction:
    if number > MOST:
        raise ParameterError(f"{name!r} must be at most 1e290.")
    return number


def _check_rho(rho: Rational) -> Fraction:
    return _check_size(positive(rho, "rho"), "rho")


def _check_conversion(conversion: Conversion) -> Conversion:
    one_of(conversion, "conversion", get_args(Conversion))
    return conversion


# ---------------------------------------------------------------- sums and rules

Accounting: TypeAlias = Literal["basic", "filter", "zcdp"]

Losses: TypeAlias = Iterable[Loss] | Mapping[Loss, int]
"""Losses one by one, or a mapping of losses to their counts."""

ZERO = Fraction(0)
HELD = "'losses' must hold"
RHO_DIGITS = 12


def counted(losses: Losses) -> Counter[Loss]:
    """Return the count of each loss.

    Raises ParameterError for values other than losses, and for a count that is not a positive whole number.
    """
    if isinstance(losses, Mapping):
        counts: Counter[Loss] = Counter({item: whole(count, "count", 1) for item, count in losses.items()})
    elif isinstance(losses, Iterable) and not isinstance(losses, str):
        listed = items(losses, "losses")
        for item in listed:
            check_loss(item, HELD)
        counts = Counter(listed)
    else:
        raise ParameterError(
            f"'losses' must be a list of losses (got {kind(losses)}).", "[Pure(0.1), Approx(0.5, 1e-6)]."
        )
    for item in counts:
        check_loss(item, HELD)
    return counts


def compose(losses: Losses) -> Loss | None:
    """Return the loss of all ``losses`` together: epsilons, deltas and rhos add up; None for no losses.

    Source: Dwork, Roth (2014), Theorem 3.16, and Bun, Steinke (2016), Lemma 1.7; the losses may be chosen
    adaptively (Rogers, Roth, Ullman, Vadhan 2016, Section 3).

    Raises
    ------
    ParameterError : zero-concentrated losses mixed with other losses, which have no exact sum.

    >>> from pdprivacy import Approx, Pure
    >>> compose([Pure(0.1), Pure(0.1), Approx(0.1, 1e-6)]) == Approx("0.3", 1e-6)
    True
    >>> compose({Pure("1/3"): 3}) == Pure(1)
    True
    """
    counts = counted(losses)
    if not counts:
        return None
    spent = Spent.of(counts)
    if not spent.rho:
        return loss(spent.epsilon, spent.delta)
    if spent.epsilon:
        raise ParameterError("Losses in epsilon and losses in rho do not add up.")
    return ZCDP(spent.rho)


def times(item: Loss, count: int) -> Loss:
    """Return the loss of ``count`` releases of loss ``item``, by sums, as `compose`.

    A sum does not keep the number of its losses: under a `Filter`, ten losses of 0.1 cost less than one loss
    of 1. To charge several releases, pass their count to `Spent.add`.

    >>> from pdprivacy import Approx
    >>> times(Approx(0.1, 1e-6), 3) == Approx(0.3, 3e-6)
    True
    """
    check_loss(item, HELD)
    return item.times(whole(count, "count", 1))


class Spent(NamedTuple):
    """The four exact sums of the losses so far that the rules of `rule` need.

    The sums are the same for every rule and in every order. A rule must be chosen before the first answer: a
    change of the rule after seeing answers may exceed the cap of either rule.

    Parameters
    ----------
    epsilon : the sum of the epsilons of pure and approximate losses.
    delta : the sum of the deltas of approximate losses.
    squares : the sum of the squares of these epsilons.
    rho : the sum of the rhos of zero-concentrated losses.

    >>> from pdprivacy import Pure
    >>> Spent().add(Pure(0.1), 3) == Spent().add(Pure(0.1)).add(Pure(0.1)).add(Pure(0.1))
    True
    """

    epsilon: Fraction = ZERO
    delta: Fraction = ZERO
    squares: Fraction = ZERO
    rho: Fraction = ZERO

    def add(self, item: Loss, count: int = 1) -> Spent:
        """Return the sums with ``count`` more charges of ``item``; only this method multiplies by a count."""
        number = count if type(count) is int and count > 0 else whole(count, "count", 1)
        if not isinstance(item, LOSSES):
            check_loss(item, HELD)
        if isinstance(item, ZCDP):
            return Spent(self.epsilon, self.delta, self.squares, self.rho + number * item.rho)
        epsilons = item.epsilon if number == 1 else number * item.epsilon
        return Spent(
            self.epsilon + epsilons,
            self.delta + number * item.delta if item.delta else self.delta,
            self.squares + epsilons * item.epsilon,
            self.rho,
        )

    @classmethod
    def of(cls, losses: Losses) -> Spent:
        """Return the sums of ``losses``."""
        return sums_with(cls(), counted(losses).items())

    @property
    def concentrated(self) -> Fraction:
        """The rho of all losses: an (epsilon, delta) loss is delta-approximately epsilon^2/2-zCDP.

        Source: Bun, Steinke (2016), Proposition 1.4 and Section 8.
        """
        return self.squares / 2 + self.rho


def shares(weights: Sequence[Rational], name: str = "split") -> tuple[Fraction, ...]:
    """Return positive ``weights`` as exact shares that sum to one.

    Raises ParameterError if a weight is not a positive number.

    >>> [str(share) for share in shares([2, 1])]
    ['2/3', '1/3']
    """
    instance(name, str, "name")
    if isinstance(weights, str | Mapping) or not isinstance(weights, Iterable):
        raise ParameterError(f"{name!r} must hold positive weights (got {kind(weights)}).", f"{name}=[2, 1].")
    numbers = [rational(weight, name, item=True) for weight in items(weights, name)]
    if not numbers or min(numbers) <= 0:
        raise ParameterError(f"{name!r} must hold positive weights.")
    total = sum(numbers)
    return tuple(number / total for number in numbers)


class Amount(NamedTuple):
    """An amount in the currency of a cap: epsilon, or rho, and delta."""

    amount: Fraction
    delta: Fraction = ZERO


class Rule:
    """A rule that enforces a cap, ``total``, without state: the sums so far are a `Spent`."""

    __slots__ = ()

    total: Loss
    in_rho: ClassVar[bool] = True
    """Whether losses count by their rho, or squares, and not by the requested loss."""

    def _counted(self, requested: Loss, count: int, events: Events) -> Sequence[tuple[Loss, int]]:
        """Return the losses that the rule counts, with their counts: ``requested``, or the rhos of the noise.

        Raises BudgetError for events of a group, if the rule counts in rho, because their losses are summed.
        """
        if not self.in_rho:
            return ((requested, count),)
        if any(event.group is not None for event, _ in events):
            raise BudgetError(
                "The losses of one secret part add up by sums alone, and this budget counts otherwise."
            )
        return tuple(
            (event.loss if event.noise is None else _rounded_rho(event.noise.multiplier), number)
            for event, number in events
        )

    def fits(self, so_far: Spent, item: Loss, count: int = 1) -> bool:
        """Return whether ``count`` charges of ``item`` fit under the cap after ``so_far``.

        Smaller charges may still fit after one that does not. Raises BudgetError for a loss in a currency
        that the cap cannot count.
        """
        return self.holds(sums_with(so_far, [(item, count)]))

    def add(self, so_far: Spent, item: Loss, count: int = 1) -> Spent:
        """Return ``so_far`` with ``count`` charges of ``item``.

        Raises BudgetExceeded if they do not fit, and BudgetError as ``fits``.
        """
        after = sums_with(so_far, [(item, count)])
        if not self.holds(after):
            raise exceeded_error(self, so_far, [(item, count)])
        return after

    def holds(self, after: Spent) -> bool:
        """Return whether these sums, and so all sums before them, are within the cap; raise as ``fits``."""
        raise NotImplementedError

    def spent(self, so_far: Spent) -> Amount:
        """Return the used part of the cap: the smallest cap under which ``so_far`` fits by this rule.

        The guarantee of an adaptive analysis is the cap. The used part is a guarantee by itself only for
        sums, or if neither the losses nor their number depend on answers.
        """
        raise NotImplementedError

    def left(self, so_far: Spent) -> Amount:
        """Return the largest further pure loss (or rho, under a cap in rho) that fits, and the delta left."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Basic(Rule):
    """Exact sums of epsilons and of deltas under a cap in epsilon and delta.

    Source: Dwork, Roth (2014), Theorem 3.16; adaptive: Rogers, Roth, Ullman, Vadhan (2016), Section 3.

    >>> basic, spent = Basic(Pure(0.3)), Spent()
    >>> for _ in range(3):
    ...     spent = basic.add(spent, Pure(0.1))
    >>> basic.fits(spent, Pure(1e-9)), float(basic.left(spent).amount)
    (False, 0.0)
    """

    total: Pure | Approx
    in_rho: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.total, Pure | Approx):
            raise ParameterError(
                f"A cap on sums of epsilons must be Pure or Approx (got {kind(self.total)})."
            )

    def holds(self, after: Spent) -> bool:
        if not isinstance(after, Spent) or after.rho:
            self.spent(after)  # raises the error
        return after.epsilon <= self.total.epsilon and after.delta <= self.total.delta

    def spent(self, so_far: Spent) -> Amount:
        if instance(so_far, Spent, "so_far").rho:
            raise BudgetError(
                "This budget adds up epsilons, and a loss in rho has no epsilon.",
                'a budget with a delta and accounting="zcdp", or a budget in rho, takes such losses.',
            )
        return Amount(so_far.epsilon, so_far.delta)

    def left(self, so_far: Spent) -> Amount:
        spent = self.spent(so_far)
        return Amount(max(ZERO, self.total.epsilon - spent.amount), max(ZERO, self.total.delta - spent.delta))


@dataclass(frozen=True, slots=True)
class Concentrated(Rule):
    """Exact sums of rho under a cap in rho; a pure loss counts as epsilon^2 / 2.

    Source: Bun, Steinke (2016), Lemma 1.7 and Proposition 1.4; adaptive: Feldman, Zrnic (2021),
    "Individual privacy accounting via a Rényi filter"; Whitehouse, Ramdas, Rogers, Wu
    (2023), "Fully-adaptive composition in differential privacy".

    >>> Concentrated(ZCDP(0.5)).spent(Spent().add(Pure(0.1)).add(ZCDP(0.2))).amount
    Fraction(41, 200)
    """

    total: ZCDP

    def __post_init__(self) -> None:
        if not isinstance(self.total, ZCDP):
            raise ParameterError(f"A cap on sums of rhos must be ZCDP (got {kind(self.total)}).")

    def holds(self, after: Spent) -> bool:
        return self.spent(after).amount <= self.total.rho

    def spent(self, so_far: Spent) -> Amount:
        if instance(so_far, Spent, "so_far").delta:
            raise BudgetError(
                "This budget adds up rhos, and a loss with a positive delta has no rho.",
                'Gaussian noise and noise without delta have a rho; accounting="filter" takes other losses.',
            )
        return Amount(so_far.concentrated)

    def left(self, so_far: Spent) -> Amount:
        return Amount(max(ZERO, self.total.rho - self.spent(so_far).amount))


@dataclass(frozen=True, slots=True)
class Filter(Rule):
    """A cap on epsilon and delta that counts losses by their squares, so that many small losses fit.

    Losses may be pure, approximate or zero-concentrated, each chosen after seeing the answers before it.
    With V = sum epsilon_m^2 + 2 sum rho_m, losses fit while sum delta_m <= delta - slack and
    ``sqrt(2 ln(1/slack) V) + V/2 <= epsilon``. Pure and approximate losses alone also fit while
    sum epsilon_m <= epsilon, so few large losses fit as under `Basic`.

    Parameters
    ----------
    total : the cap, with a positive delta.
    slack : the part of delta for the tail, by default half of it; the rest is for the deltas of losses. It
        may be all of delta if every loss will be pure or zero-concentrated.
    conversion : "bun_steinke", the inequality above; "tight" replaces it by the largest V/2 with
        ``zcdp_epsilon(V/2, slack) <= epsilon``, which leaves more room.

    Attributes
    ----------
    largest : the largest V/2 that fits.

    Raises
    ------
    ParameterError : a cap without delta, or a slack that is not positive or above delta.

    Notes
    -----
    Source: Whitehouse, Ramdas, Rogers, Wu (2023), "Fully-adaptive composition in differential
    privacy", Theorem 1, whose stopping rule is the first inequality. All three may be used for these
    reasons: an (epsilon_m, delta_m) pair of laws is that of randomized response with a revealing outcome
    of probability delta_m, processed further (Kairouz, Oh, Viswanath 2015). A revealing outcome occurs
    with probability at most sum delta_m <= delta - slack. Without one, let L be the
    privacy loss so far: as an epsilon_m-private step is epsilon_m^2/2-zCDP given the past,
    exp((a - 1) L - a (a - 1) V/2) is a supermartingale for every a > 1, whatever the past chose, with
    mean at most 1 when the rule stops. With W the largest V of the inequality, each path ends with
    V <= W, or with sum epsilon_m <= epsilon and so L <= epsilon, which adds nothing to
    E max(0, 1 - exp(epsilon - L)). On the former paths this is at most
    max over l of (1 - exp(epsilon - l)) exp(-(a - 1) l), times exp(a (a - 1) W/2): the conversion of
    W/2-zCDP at order a (Canonne, Kamath, Steinke 2020, Proposition 12), so at most slack for the best
    a. Bounding 1 - exp(.) by 1 where L > epsilon gives the inequality above, which is that of Bun,
    Steinke (2016), Proposition 1.3, with rho = V/2.

    >>> adaptive = Filter(Approx(1, 1e-6), slack=1e-6)
    >>> [adaptive.fits(Spent(), Pure(0.01), count) for count in (100, 349, 350)]
    [True, True, False]
    """

    total: Approx
    slack: Fraction
    conversion: Conversion
    largest: Fraction

    def __init__(
        self, total: Approx, slack: Rational | None = None, conversion: Conversion = "bun_steinke"
    ) -> None:
        if not isinstance(total, Approx) or not total.delta:
            raise ParameterError(
                "A filter needs a cap with a positive delta.", "Filter(Approx(epsilon=1, delta=1e-6))."
            )
        part = total.delta / 2 if slack is None else rational(slack, "slack")
        if not 0 < part <= total.delta:
            raise ParameterError(f"'slack' must be in (0, {show(total.delta)}] (got {got(slack)}).")
        largest = largest_rho(total.epsilon, part, conversion)
        settle(self, total=total, slack=part, conversion=conversion, largest=largest)

    def holds(self, after: Spent) -> bool:
        if instance(after, Spent, "after").delta and self.slack == self.total.delta:
            raise BudgetError(
                "This budget leaves no delta to losses: the conversion of rho takes all of it.",
                'plain Gaussian noise needs none; accounting="filter" takes other losses with a delta.',
            )
        if after.delta > self.total.delta - self.slack:
            return False
        return after.concentrated <= self.largest or (not after.rho and after.epsilon <= self.total.epsilon)

    def spent(self, so_far: Spent) -> Amount:
        if not instance(so_far, Spent, "so_far").concentrated:
            return Amount(ZERO, so_far.delta)
        # losses that fit have spent at most the cap, up to the margin of `zcdp_rho`
        epsilon = Fraction(repr(zcdp_epsilon(so_far.concentrated, self.slack, self.conversion)))
        return Amount(epsilon if so_far.rho else min(epsilon, so_far.epsilon), so_far.delta + self.slack)

    def left(self, so_far: Spent) -> Amount:
        instance(so_far, Spent, "so_far")
        room = 2 * (self.largest - so_far.concentrated)
        by_squares = Fraction(repr(float_down(root_down(room)))) if room > 0 else ZERO
        by_sum = ZERO if so_far.rho else self.total.epsilon - so_far.epsilon
        return Amount(max(ZERO, by_squares, by_sum), max(ZERO, self.total.delta - self.slack - so_far.delta))


def rule(name: Accounting, total: Loss) -> Rule:
    """Return the rule that enforces a cap; every rule stays valid when losses are chosen adaptively.

    ``"basic"``: sums in the currency of the cap, as `Basic` and `Concentrated`. ``"filter"``: `Filter`
    under a cap with a delta, half of which is for the deltas of losses. ``"zcdp"``: `Concentrated` under
    a cap in rho; under a cap with a delta, the `Filter` whose largest rho converts to the cap by the tight
    conversion, for pure and zero-concentrated losses. The rule is chosen before the first answer, and kept.

    Raises
    ------
    ParameterError : an unknown name, or "filter" or "zcdp" under a cap that it does not support.

    >>> from pdprivacy import ZCDP, Approx
    >>> rule("zcdp", Approx(1, 1e-6)).fits(Spent(), ZCDP(0.02))
    True
    """
    one_of(name, "accounting", get_args(Accounting))
    check_loss(total, "A cap must be")
    if isinstance(total, ZCDP):
        if name == "filter":
            raise ParameterError(
                "accounting='filter' needs a cap in epsilon and delta.", 'accounting="zcdp" adds up rhos.'
            )
        return Concentrated(total)
    if name == "basic":
        return Basic(total)
    if isinstance(total, Pure) or not total.delta:
        raise ParameterError(
            f"accounting={name!r} needs a cap with a positive delta.",
            'epsilon=1, delta=1e-6; or accounting="basic".',
        )
    return Filter(total) if name == "filter" else Filter(total, total.delta, "tight")


def _rounded_rho(multiplier: Fraction) -> ZCDP:
    """Return the rho of Gaussian noise, rounded up to few digits, so that sums stay short.

    Source: Bun, Steinke (2016), Proposition 1.6; for the discrete Gaussian Canonne, Kamath, Steinke (2020).
    """
    return ZCDP(rounded_up(1 / (2 * multiplier**2), RHO_DIGITS))


def exceeded_error(enforced: Rule, so_far: Spent, losses: Iterable[tuple[Loss, int]]) -> BudgetExceeded:
    """Return the error for losses that do not fit, with the requested and the remaining amounts."""
    listed = list(losses)
    requested = sums_with(Spent(), listed)
    left, total = enforced.left(so_far), enforced.total
    stated = [getattr(item, name, None) for item, _ in listed for name in ("epsilon", "delta", "rho")]
    is_public = not any(isinstance(number, Unshown) for number in stated)
    if isinstance(total, ZCDP):
        return _too_much("rho", requested.concentrated if is_public else None, left.amount, total.rho)
    if requested.delta > left.delta:
        return BudgetExceeded(
            _fact("delta", requested.delta if is_public else None, left.delta, total.delta),
            'mechanism="laplace" and mechanism="geometric" need no delta, nor do their plans (delta=0).',
        )
    if requested.rho and isinstance(enforced, Filter):
        room = max(ZERO, enforced.largest - so_far.concentrated)
        return _too_much("rho", requested.concentrated if is_public else None, room, None)
    return _too_much("epsilon", requested.epsilon if is_public else None, left.amount, total.epsilon)


def sums_with(so_far: Spent, losses: Iterable[tuple[Loss, int]]) -> Spent:
    """Return the sums with these losses added."""
    instance(so_far, Spent, "so_far")
    for item, count in losses:
        check_counted(item)
        so_far = so_far.add(item, count)
    return so_far


def check_counted(item: object) -> None:
    """Raise BudgetError unless ``item`` is a loss."""
    if not isinstance(item, LOSSES):
        raise BudgetError(
            f"A budget counts losses (got {kind(item)}).",
            "charge Pure(epsilon), Approx(epsilon, delta) or ZCDP(rho).",
        )


def _fact(currency: str, requested: Fraction | None, left: Fraction, total: Fraction | None) -> str:
    """Return a sentence on the amount left, and on the requested amount unless that is secret (None)."""
    rest = show(left) + ("" if total is None else f" of {show(total)}")
    if requested is None:
        return f"The release asks for more {currency} than is left: {rest}."
    return f"The release asks for {currency} {show(requested)}, but {rest} is left."


def _too_much(
    currency: str, requested: Fraction | None, left: Fraction, total: Fraction | None
) -> BudgetExceeded:
    fact = _fact(currency, requested, left, total)
    if currency == "rho":
        return BudgetExceeded(
            fact, f"ZCDP({show(left)}) fits; private.dp.remaining(delta) returns the epsilon that fits."
        )
    return BudgetExceeded(fact, f"ask for epsilon={show(left)} or less." if left > 0 else None)
