"""The joint cost of events fixed beforehand: by each accounting, by the best, and by loss distributions.

Privacy loss distributions of events are computed by dp-accounting, and events become events of dp-accounting.
A loss in epsilon and delta is represented by the pair of laws that dominates every mechanism of that loss:
randomized response, and an outcome of probability delta that reveals all (Kairouz, Oh, Viswanath 2015).
A loss of count c gives a binomial law, summed exactly. All Gaussian noise together is one continuous Gaussian
of multiplier (sum_i count_i / multiplier_i^2)^(-1/2). Both hold under adaptive composition (Zhu, Dong,
Wang 2022, "Optimal accounting of differential privacy via characteristic function", Theorem 10).

Grid. Noise is discrete: on grid points k, about a grid point c, its law D(k) is proportional to
exp(-j^2 / (2 s^2)), with j = k - c and a standard deviation of s steps. The continuous noise, rounded to the
grid, has the law R(k), and R is no easier to tell apart than the continuous law. With A(j) the mean of
cosh(j t / s^2) exp(-t^2 / (2 s^2)) over |t| <= 1/2, R(k) = exp(-j^2 / (2 s^2)) A(j) / (s sqrt(2 pi)), by the
two halves of a cell. A(0) <= A(j) <= A(0) exp(j^2 / (24 s^4)) (the weight falls in |t|, so that the mean of
cosh is at most the plain one, sinh(x) / x <= exp(x^2 / 6) with x = j / (2 s^2)), and A(0) >= exp(-1 / (24
s^2)) (Jensen). The normalising constant Z of D is at least s sqrt(2 pi) (Poisson summation) and at most
s sqrt(2 pi) / A(0), as R sums to one. So D = (s sqrt(2 pi) / Z) R / A(j) is

    at most exp(1 / (24 s^2)) R, everywhere, and at least exp(-r^2 / (24 s^2)) R where |j| <= r s.

Let P, Q be the laws in two neighbouring worlds, whose centres differ by at most s / multiplier in each of
the moves numbers that differ at all. With r = TAILS + 1 / multiplier, P has a mass of at most 2 exp(-TAILS^2
/ 2) per number beyond r s of Q's centre (D is subgaussian: sum_k exp(-(k - a)^2 / (2 s^2)) is largest at
a = 0, so E exp(t j) <= exp(t^2 s^2 / 2)). Hence, for sums over all numbers moved in all events of
u = 1 / (24 s^2), v = r^2 / (24 s^2) and w = 2 exp(-TAILS^2 / 2), of the hockey-stick divergences

    delta(epsilon) <= exp(sum u) * delta_continuous(epsilon - sum u - sum v) + sum w.

Noise of few steps. Consider noise such as discrete Gaussian noise on the integers, on one number that moves
by at most t whole steps. The neighbour that is t steps away dominates nearer ones: the best test of an
epsilon is a threshold, which is passed more often the further the number moves. The loss at the noise z is
t (2 z + t) / (2 s^2), linear in z, so the loss of n releases depends only on the sum Y of their noises. It is
t (2 Y + n t) / (2 s^2), the loss of one number with noise of deviation s sqrt(n) that moves by n t. If the
sum of k noises has the discrete Gaussian law of deviation s sqrt(k), completing the square gives the law of
the sum of k + 1: P(y) is proportional to exp(-y^2 / (2 (k + 1) s^2)) S(y), where S(y) is the sum of
exp(-(j - c)^2 (k + 1) / (2 k s^2)) over whole j, and c depends on y. By Poisson summation S(y) is within
1 +- e_k of its mean, e_k = 2 sum_{q >= 1} exp(-2 pi^2 q^2 s^2 k / (k + 1)). So the probabilities of Y, and
with them delta, exceed those of the discrete Gaussian of deviation s sqrt(n) by a factor of at most
prod_{k < n} (1 + e_k) / (1 - e_k): 1.0003 for a thousand releases of s = 1, and less for larger s.

Floating point. The masses of a convolution by fast Fourier transforms have an error below 24 log2(N) 2^-53 in
the Euclidean norm (Higham 2002, "Accuracy and stability of numerical algorithms", Theorem 24.2, for three
transforms of length N of laws whose norms are at most one), and delta has an error below sqrt(N) times that:
``FOURIER`` per convolution, 4e-11. This is subtracted from delta, which must be at least twice as large and
at least 1e-10.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np

from pdprivacy.checks import one_of
from pdprivacy.core.accounting.events import Event, Events, GaussianNoise, tally
from pdprivacy.core.accounting.optimal import MOST, binomial_weights, common_unit, optimal_epsilon, taps_of
from pdprivacy.core.accounting.rules import zcdp_epsilon
from pdprivacy.core.privacy import ZCDP, Loss, Rational, check_delta, rational
from pdprivacy.errors import MissingExtraError, ParameterError, PrivacyError
from pdprivacy.exact import bisect, exp_up, float_down, float_up, power_down, root_down, rounded_down

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Method: TypeAlias = Literal["basic", "optimal", "zcdp", "pld", "best"]


class Bound(NamedTuple):
    """The epsilon of one accounting, rounded up; or None, with the reason for its absence."""

    accounting: Method
    epsilon: float | None
    reason: str | None = None


def epsilon(events: Events, delta: Rational, accounting: Method = "best") -> float:
    """Return an epsilon, rounded up, such that all ``events`` together are (epsilon, delta)-private.

    This epsilon holds only for losses fixed beforehand. If a loss, or the existence of a further release,
    depended on answers, the cap of the enforced rule holds instead (see `rule`).

    Parameters
    ----------
    events : pairs of an event and its count.
    delta : the delta of all events together, in [0, 1).
    accounting : ``"basic"``: the sum of the epsilons, where the deltas sum to at most ``delta``.
        ``"optimal"``: `optimal_epsilon` of the losses. ``"zcdp"``: the sum of the rhos (of the noise if it
        is known, else epsilon^2 / 2 of the loss), by the tight conversion at the part of ``delta`` that the
        deltas of the losses leave. ``"pld"``: the privacy loss distribution (of the noise if it is known,
        else of the loss); needs ``pdprivacy[pld]`` and a delta of at least 1e-10. ``"best"``: the least of
        the accountings that apply.

    Raises
    ------
    ParameterError : no events, a delta outside [0, 1), or an accounting that does not apply.
    MissingExtraError : "pld" without dp-accounting.

    Notes
    -----
    Source of "zcdp": Bun, Steinke (2016), Proposition 1.4 and Lemma 1.7; the discrete Gaussian has the rho
    of the continuous one, 1 / (2 multiplier^2) (Canonne, Kamath, Steinke 2020, Theorem 14). An (epsilon,
    delta) loss is a pure loss except for an outcome of probability delta (Kairouz, Oh, Viswanath 2015). These
    outcomes occur with probability at most sum delta; without them all losses are zero-concentrated.

    >>> from fractions import Fraction
    >>> from pdprivacy import Approx, Pure
    >>> from pdprivacy.accounting import GaussianNoise
    >>> noise = GaussianNoise(Fraction(10), l0_sensitivity=1, steps=2**20)
    >>> events = [(Event(Pure(0.1)), 20), (Event(Approx("0.4", 1e-5), noise), 10)]
    >>> [round(epsilon(events, 1e-3, name), 2) for name in ("basic", "optimal", "zcdp")]
    [6.0, 4.14, 1.72]
    """
    one_of(accounting, "accounting", get_args(Method))
    if accounting == "best":
        return _least_bound(report(events, delta))
    _check(events, delta)
    return _METHODS[accounting](events, rational(delta, "delta"))


def report(events: Events, delta: Rational) -> list[Bound]:
    """Return the epsilon of each accounting of `epsilon`, "best" last.

    Raises ParameterError for no events and for a delta outside [0, 1).

    >>> from pdprivacy import ZCDP
    >>> [bound.accounting for bound in report([(Event(ZCDP(0.1)), 2)], 1e-6) if bound.epsilon is not None]
    ['zcdp', 'best']
    """
    _check(events, delta)
    bounds = []
    for name, method in _METHODS.items():
        try:
            bounds.append(Bound(name, method(events, rational(delta, "delta"))))
        except (ParameterError, MissingExtraError) as error:
            bounds.append(Bound(name, None, error.message))
    known = [bound.epsilon for bound in bounds if bound.epsilon is not None]
    if known:
        return [*bounds, Bound("best", min(known))]
    return [*bounds, Bound("best", None, "No accounting applies to these events at this delta.")]


def _least_bound(bounds: list[Bound]) -> float:
    *_, best = bounds
    if best.epsilon is None:
        why = "; ".join(f"{bound.accounting}: {bound.reason}" for bound in bounds[:-1])
        raise ParameterError(f"{best.reason} {why}", "a larger delta.")
    return best.epsilon


def _check(events: Events, delta: Rational) -> None:
    _some(events), check_delta(delta)


def _basic(events: Events, delta: Fraction) -> float:
    total, slack = Fraction(0), Fraction(0)
    for event, count in tally(events):
        if isinstance(event.loss, ZCDP):
            raise ParameterError("A zero-concentrated loss has no epsilon to add up.")
        total += count * event.loss.epsilon
        slack += count * event.loss.delta
    if slack > delta:
        raise ParameterError(f"The deltas of the losses sum to {float_up(slack):.6g}, above 'delta'.")
    return _finite(float_up(total))


def _optimal(events: Events, delta: Fraction) -> float:
    counts: Counter[Loss] = Counter()
    for event, count in tally(events):
        counts[event.loss] += count
    return _finite(optimal_epsilon(counts, delta))


def _zcdp(events: Events, delta: Fraction) -> float:
    rho, slack = Fraction(0), Fraction(0)
    for event, count in tally(events):
        event_rho, reveals = _rho_of_event(event)
        rho += count * event_rho
        slack += count * reveals
    if not delta:
        raise ParameterError("The conversion of rho needs a positive 'delta'.")
    if slack >= delta:
        raise ParameterError("The deltas of the losses leave nothing of 'delta' for the conversion of rho.")
    return _finite(zcdp_epsilon(rho, delta - slack))


def _rho_of_event(event: Event) -> tuple[Fraction, Fraction]:
    """Return the rho of an event, from its noise if that is known, and the probability that it has no rho."""
    item = event.loss
    if event.noise is not None:
        return 1 / (2 * event.noise.multiplier**2), Fraction(0)
    return (item.rho, Fraction(0)) if isinstance(item, ZCDP) else (item.epsilon**2 / 2, item.delta)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ParameterError("The epsilon exceeds the largest float.")
    return number


# ---------------------------------------------------------------- privacy loss distributions

T = TypeVar("T")

TAILS = 40
"""The number of standard deviations at which noise is cut off; the mass beyond is below 1e-347."""

COARSE = Fraction(1, 1000)
"""The largest epsilon that the grid may add to a release; beyond it, the stated loss is used."""

REACH = 12
"""The number of standard deviations of noise beyond which it counts as revealing all."""

FEW = 50
"""The number of releases whose ripple is computed one by one; each of the others adds less."""

ROUNDING = 2.0**-20
"""The rounding allowance of a loss, in intervals of a distribution, far above the error of doubles."""

CELLS = 2**18
"""The largest number of values of a distribution; the interval between them follows from it."""

FOURIER = 24 * 19 * 2**-53 * 2**9.5
LEAST_DELTA = Fraction(1, 10**10)
RELATIVE = 1e-9
"""A bound of the relative error of sums of positive masses, also of those by dp-accounting."""

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Slack:
    """The loss that a grid adds: delta(epsilon) <= exp(up) delta(epsilon - up - down) + tail."""

    up: Fraction = ZERO
    down: Fraction = ZERO
    tail: Fraction = ZERO

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that the grid adds."""
        return self.up + self.down

    def add(self, other: Slack, count: int) -> Slack:
        """Return the sum of this slack and ``count`` times another."""
        return Slack(
            self.up + count * other.up, self.down + count * other.down, self.tail + count * other.tail
        )


def grid_slack(noise: GaussianNoise, tails: int = TAILS) -> Slack:
    """Return an upper bound of the loss that the grid adds to one release; the module has the proof.

    >>> from fractions import Fraction
    >>> float(grid_slack(GaussianNoise(Fraction(1), l0_sensitivity=1, steps=2**20)).epsilon) < 1e-10
    True
    """
    reach = tails + 1 / noise.multiplier
    share = Fraction(noise.l0_sensitivity, 24 * noise.steps**2)
    return Slack(share, share * reach**2, 2 * noise.l0_sensitivity * exp_up(-(Fraction(tails) ** 2) / 2))


def pld_epsilon(events: Events, delta: Rational) -> float:
    """Return an epsilon of composed ``events`` at ``delta``, by their privacy loss distribution, rounded up.

    This epsilon holds only for losses fixed beforehand. Needs ``pdprivacy[pld]``.

    Raises
    ------
    ParameterError : no events, more than 1e6 losses, a zero-concentrated loss without noise, a delta that is
        below 1e-10 or too small for the deltas of the losses, or numbers out of dp-accounting's range.
    MissingExtraError : dp-accounting is not installed.
    """
    target = check_delta(delta)
    parts = _Parts.of(events)
    _library()
    goal = (target - parts.slack.tail) / (exp_up(parts.slack.up) * parts.gain)
    if goal < LEAST_DELTA:
        raise ParameterError("Privacy loss distributions are in floats, for 'delta' from 1e-10 on.")
    return float_up(Fraction(_run_guarded(lambda: _solve(parts, float_down(goal)))) + parts.slack.epsilon)


def to_dp_events(events: Events) -> DpEvent:
    """Convert events to one event of dp-accounting, for its accountants. Needs ``pdprivacy[pld]``.

    Gaussian noise becomes ``GaussianDpEvent``, as if it were continuous: the loss that its grid adds, at most
    ``grid_slack`` per release, is left out. A pure loss without noise becomes ``DiscreteLaplaceDpEvent`` of
    sensitivity 1, whose two values of the loss are those of randomized response; its neighbouring relation is
    "add or remove", whatever the unit. A zero-concentrated loss becomes ``ZCDpEvent``, and counts become
    ``SelfComposedDpEvent``. Numbers are rounded to the safe side.

    Raises
    ------
    ParameterError : no events, or a loss with a positive delta without noise.
    MissingExtraError : dp-accounting is not installed.
    """
    pairs = _some(events)
    library = _library().dp_event
    return library.ComposedDpEvent(
        [library.SelfComposedDpEvent(_to_dp_event(event, library), count) for event, count in pairs]
    )


def _to_dp_event(event: Event, library: Any) -> Any:
    item = event.loss
    if event.noise is not None and _fine(event.noise):
        return library.GaussianDpEvent(float_down(event.noise.multiplier))
    if isinstance(item, ZCDP):
        if not hasattr(library, "ZCDpEvent"):
            raise ParameterError(
                "This version of dp-accounting has no event for a zero-concentrated loss.",
                "pip install --upgrade dp-accounting",
            )
        return library.ZCDpEvent(float_up(item.rho))
    if item.delta:
        raise ParameterError("dp-accounting has events of a positive delta for Gaussian noise only.")
    return library.DiscreteLaplaceDpEvent(float_up(item.epsilon), 1)


def _fine(noise: GaussianNoise) -> bool:
    return grid_slack(noise).epsilon <= COARSE


def _some(events: Events) -> list[tuple[Event, int]]:
    pairs = tally(events)
    if not pairs:
        raise ParameterError("'events' must hold at least one event.")
    return pairs


@dataclass(frozen=True, slots=True)
class _Lattice:
    """Discrete Gaussian noise whose deviation is few steps, on one number that moves by a whole ``shift``."""

    deviation: Fraction
    shift: int

    @classmethod
    def of(cls, noise: GaussianNoise) -> _Lattice | None:
        """Return the noise of one number, with the shift of its multiplier and steps; None for other noise.

        A multiplier of at least 1 allows at most one whole shift.
        """
        if noise.l0_sensitivity > 1 or noise.multiplier < 1:
            return None
        shift = math.ceil((noise.steps + 1) / noise.multiplier) - 1
        deviation = noise.multiplier * shift
        return cls(deviation, shift) if noise.steps <= deviation < noise.steps + 1 else None

    def multiplier(self, count: int) -> Fraction:
        """Return the deviation over the shift for the sum of ``count`` releases, rounded down."""
        return root_down((self.deviation / self.shift) ** 2 / count)

    def gain(self, count: int) -> Fraction:
        """Return a bound of the ratio of probabilities of the sum and of one Gaussian; see the module."""
        total, terms = 0.0, min(count - 1, FEW)
        for k in range(1, terms + 1):
            decay = math.exp(-2 * math.pi**2 * float(self.deviation) ** 2 * k / (k + 1))
            ripple = 2 * decay / (1 - decay**3)  # decay + decay**4 + decay**9 + ...
            term = math.log1p(ripple) - math.log1p(-ripple)
            total += term if k < terms else term * (count - terms)  # the terms fall in k
        return Fraction(math.exp(total) * (1 + RELATIVE))

    def masses(self, count: int, interval: float) -> tuple[dict[int, float], float]:
        """Return the masses of the summed loss at multiples of ``interval``, rounded up, and of the rest."""
        variance = float(self.deviation) ** 2 * count
        reach = math.ceil(REACH * math.sqrt(variance))
        noise = np.arange(-reach, reach + 1, dtype=np.float64)
        masses = np.exp(-noise * noise / (2 * variance))
        masses /= masses.sum()
        losses = self.shift * (2 * noise + count * self.shift) / (2 * float(self.deviation) ** 2)
        cells = np.ceil(losses / interval + ROUNDING).astype(np.int64)
        sums = np.bincount(cells - cells[0], weights=masses)
        nonzero = np.flatnonzero(sums)
        values = dict(zip((nonzero + cells[0]).tolist(), sums[nonzero].tolist(), strict=True))
        return values, 2 * math.exp(-(REACH**2) / 2)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The events by kind, with what their composition needs.

    ``counts``: the count of each epsilon. ``kept``: the probability that no outcome of a delta occurs.
    ``multiplier``: the joint multiplier of all noise on fine grids, or None. ``slack``: the loss that these
    grids add. ``lattices``: the count of each noise of few steps.
    """

    counts: Counter[Fraction]
    kept: Fraction
    multiplier: Fraction | None
    slack: Slack
    lattices: Counter[_Lattice]

    @classmethod
    def of(cls, events: Events) -> _Parts:
        counts: Counter[Fraction] = Counter()
        lattices: Counter[_Lattice] = Counter()
        kept, precision, slack = Fraction(1), ZERO, Slack()
        for event, count in _some(events):
            item = event.loss
            if event.noise is not None and _fine(event.noise):
                precision += count / event.noise.multiplier**2
                slack = slack.add(grid_slack(event.noise), count)
            elif event.noise is not None and (lattice := _Lattice.of(event.noise)) is not None:
                lattices[lattice] += count
            elif isinstance(item, ZCDP):
                raise ParameterError("A zero-concentrated loss alone has no privacy loss distribution.")
            else:
                counts[item.epsilon] += count
                if item.delta:
                    kept = rounded_down(kept * power_down(1 - item.delta, count))
        if counts.total() > MOST:
            raise ParameterError(
                f"'events' must hold at most 1e6 losses without noise (got {counts.total()})."
            )
        return cls(counts, kept, root_down(1 / precision) if precision else None, slack, lattices)

    @property
    def multipliers(self) -> list[Fraction]:
        """Noise multipliers of all Gaussian releases: one for all fine grids, one for each coarse grid."""
        coarse = [lattice.multiplier(count) for lattice, count in self.lattices.items()]
        return [self.multiplier, *coarse] if self.multiplier else coarse

    @property
    def gain(self) -> Fraction:
        """The largest factor by which sums of noise on coarse grids increase probabilities."""
        gains = (lattice.gain(count) for lattice, count in self.lattices.items())
        return math.prod(gains, start=Fraction(1))

    @property
    def most(self) -> Fraction:
        """The largest loss to represent: all epsilons, and `REACH` standard deviations of each noise."""
        most = sum((epsilon * count for epsilon, count in self.counts.items()), ZERO)
        return most + sum((1 / (2 * size**2) + REACH / size for size in self.multipliers), ZERO)

    @property
    def interval(self) -> Fraction:
        """The interval between values of the distribution; it divides all epsilons if `CELLS` suffice."""
        taps = {epsilon: taps_of(count) for epsilon, count in self.counts.items()}
        width = sum((2 * number * epsilon for epsilon, number in taps.items()), ZERO)
        # on both sides of zero
        width += sum((1 / size**2 + 2 * REACH / size for size in self.multipliers), ZERO)
        if not taps:
            return width / CELLS
        unit = reduce(common_unit, taps)
        if unit * CELLS >= width:
            return unit / (unit * CELLS // width)
        if 4 * sum(taps.values()) > CELLS:  # rounding up would add as many steps again
            raise ParameterError("There are too many kinds of losses without a common unit.")
        return width / CELLS


def _solve(parts: _Parts, goal: float) -> float:
    """Return the epsilon at which the distribution has this delta, rounded up, without the loss of grids."""
    interval = float_up(parts.interval)
    whole, convolutions = _compose(parts, interval)
    margin = convolutions * FOURIER
    if goal < 2 * margin:
        raise ParameterError("'delta' is too small for floats to compose this many kinds of losses.")
    rounded = parts.counts.total() + len(parts.lattices)
    most = float_up(parts.most + rounded * Fraction(interval))

    def meets(epsilon: float) -> bool:
        lower = epsilon - 2**-46 * most  # the error of differences of losses
        return float(whole.get_delta_for_epsilon(lower)) * (1 + RELATIVE) + margin <= goal

    low, high = 0.0, 2 * most + 2 * interval
    if not meets(high):
        raise ParameterError("'delta' is too small beside the deltas of the losses.")
    return low if meets(low) else bisect(meets, low, high, 2**-40)


def _compose(parts: _Parts, interval: float) -> tuple[Any, int]:
    """Return the distribution of all parts, computed by dp-accounting, and its number of convolutions."""
    library = _library().pld.privacy_loss_distribution
    distributions, reveals = [], float_up(1 - parts.kept)
    for epsilon, count in parts.counts.items():
        steps = math.ceil(epsilon / parts.interval)
        first, weights = binomial_weights(steps * Fraction(interval), count)
        values = {(2 * (first + j) - count) * steps: weight for j, weight in enumerate(weights.tolist())}
        law = library.PrivacyLossDistribution.create_from_rounded_probability(values, reveals, interval)
        distributions.append(law)
        reveals = 0.0
    for lattice, count in parts.lattices.items():
        values, beyond = lattice.masses(count, interval)
        beyond += reveals
        distributions.append(
            library.PrivacyLossDistribution.create_from_rounded_probability(values, beyond, interval)
        )
        reveals = 0.0
    if parts.multiplier:
        deviation = float_down(parts.multiplier)
        distributions.append(
            library.from_gaussian_mechanism(deviation, value_discretization_interval=interval)
        )
    return reduce(lambda total, other: total.compose(other), distributions), len(distributions) - 1


def _run_guarded(compute: Callable[[], T]) -> T:
    """Return the result of dp-accounting; replace its own errors, on which a caller cannot act."""
    try:
        return compute()
    except PrivacyError:
        raise
    except Exception:  # overflow of many kinds, a lack of memory, ... by version
        raise ParameterError("Losses of this size are out of reach of privacy loss distributions.") from None


def _library() -> Any:
    try:
        import dp_accounting
        import dp_accounting.pld
    except ImportError:
        raise MissingExtraError(
            "Privacy loss distributions need dp-accounting.", 'pip install "pdprivacy[pld]"'
        ) from None
    return dp_accounting


_METHODS: dict[Method, Callable[[Events, Fraction], float]] = {
    "basic": _basic,
    "optimal": _optimal,
    "zcdp": _zcdp,
    "pld": pld_epsilon,
}
