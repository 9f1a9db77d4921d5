from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from pdprivacy import ZCDP, Approx, Pure
from pdprivacy.core.accounting import (
    Event,
    GaussianNoise,
    epsilon,
    optimal_epsilon,
    pld_epsilon,
    report,
    to_dp_events,
    zcdp_epsilon,
)
from pdprivacy.core.accounting.reports import COARSE, _Lattice, grid_slack
from pdprivacy.core.mechanisms import DiscreteGaussian
from pdprivacy.errors import MissingExtraError, ParameterError


@pytest.fixture(autouse=True, scope="module")
def each_noise_once() -> Iterator[None]:
    """dp-accounting takes a third of a second for the distribution of one noise: each is made once here."""
    library = dp_accounting.pld.privacy_loss_distribution
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            library, "from_gaussian_mechanism", lru_cache(maxsize=64)(library.from_gaussian_mechanism)
        )
        yield


def gaussian(multiplier, steps=2**20, moves=1, loss=None):
    return Event(loss or ZCDP(10**6), GaussianNoise(Fraction(multiplier), moves, steps))


def of_gaussian(level, multiplier):
    """The hockey-stick divergence of continuous Gaussian noise, at any level, by positive terms."""
    x = np.abs(level)
    upper, lower = 1 / (2 * multiplier) - x * multiplier, -1 / (2 * multiplier) - x * multiplier
    scaled = np.exp(-upper * upper / 2) / 2
    first = np.where(upper < 0, scaled * erfcx(np.maximum(-upper, 0) / math.sqrt(2)), ndtr(upper))
    difference = first - scaled * erfcx(-lower / math.sqrt(2))
    return np.where(level < 0, -np.expm1(-x) + np.exp(-x) * difference, difference)


def truth(losses, multiplier, delta):
    """The epsilon of randomized responses beside continuous Gaussian noise, without transforms or cells.

    The divergence is the mean of that of the noise over the loss of the responses.
    """
    sums, weights, kept = np.zeros(1), np.ones(1), 1.0
    for (level, reveals), count in losses.items():
        kept *= (1 - reveals) ** count
        p = 1 / (1 + math.exp(-level))
        j = np.arange(count + 1)
        binomial = [math.comb(count, int(i)) * p**i * (1 - p) ** (count - i) for i in j]
        sums = np.add.outer(sums, (2 * j - count) * level).ravel()
        weights = np.outer(weights, binomial).ravel()

    def excess(level):
        return 1 - kept * (1 - math.fsum(weights * of_gaussian(level - sums, multiplier))) - delta

    if excess(0) <= 0:
        return 0.0
    return brentq(excess, 0, sums.max() + 60 / multiplier + 60 / multiplier**2, xtol=1e-13)


CASES = {
    "noise": ({}, [1, 3], 2),
    "noise that says little": ({}, [40], 1),
    "noise that says much": ({}, ["1/20"], 1),
    "one response": ({(0.1, 0.0): 1}, [2], 1),
    "responses": ({(0.1, 0.0): 40, (0.25, 0.0): 3}, [4, 5], 7),
    "no common unit": ({(1 / 7, 0.0): 9, (0.3, 0.0): 5, (math.pi / 10, 0.0): 4}, [2], 1),
    "revealing": ({(0.2, 1e-10): 10, (1.5, 0.0): 2}, ["7/2"], 3),
    "large": ({(5.0, 0.0): 4}, ["1/2"], 1),
    "small": ({(1e-4, 0.0): 100}, [1000], 1),
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-8])
@pytest.mark.parametrize("case", CASES)
def test_it_is_the_truth_but_for_the_width_of_its_cells(case, delta):
    losses, multipliers, count = CASES[case]
    events = [(Event(Approx(level, reveals)), often) for (level, reveals), often in losses.items()]
    events += [(gaussian(size), count) for size in multipliers]
    together = 1 / math.sqrt(sum(count / Fraction(size) ** 2 for size in multipliers))
    expected, actual = truth(losses, together, delta), pld_epsilon(events, delta)
    if not expected:  # even at epsilon zero there is less delta
        assert actual < 1e-6
        return
    assert expected * (1 - 1e-12) <= actual
    # what is taken off delta for transforms costs more, the smaller delta is
    rounding = 1e-3 if case == "no common unit" else 2e-5
    assert actual <= expected * (1 + rounding + 1e-11 / delta)


@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-9])
def test_losses_alone_compose_optimally(delta):
    losses = {Pure(0.1): 50, Pure(0.3): 7, Approx(0.5, 1e-11): 2}
    actual = pld_epsilon([(Event(item), count) for item, count in losses.items()], delta)
    expected = optimal_epsilon(losses, delta)
    assert expected * (1 - 1e-12) <= actual <= expected * (1 + 1e-6 + 1e-10 / delta)


@pytest.mark.full
def test_many_losses_of_one_kind_are_summed_exactly():
    expected = optimal_epsilon({Pure(0.001): 200_000}, 1e-8)
    actual = pld_epsilon([(Event(Pure(0.001)), 200_000)], 1e-8)
    assert expected * (1 - 1e-12) <= actual <= expected * (1 + 1e-6)


@pytest.mark.full
def test_noise_says_more_than_its_loss_and_its_rho():
    events = [(gaussian(10, loss=Approx("0.4", 1e-5)), 10), (Event(Pure(0.1)), 20)]
    assert epsilon(events, 1e-3, "pld") < 0.9 * epsilon(events, 1e-3, "zcdp")
    assert epsilon(events, 1e-3, "pld") < 0.4 * epsilon(events, 1e-3, "optimal")


# The grid.


def masses(steps, reach, center):
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-((k - center) ** 2) / (2 * steps**2))
    return weights / weights.sum()


def exact(steps, distances, level):
    """The divergence of discrete Gaussian noise on numbers whose centres are ``distances`` steps apart."""
    reach = 10 * steps + max(distances)
    first, second = np.ones(1), np.ones(1)
    for distance in distances:
        first = np.outer(first, masses(steps, reach, 0)).ravel()
        second = np.outer(second, masses(steps, reach, distance)).ravel()
    return float(np.maximum(first - math.exp(level) * second, 0).sum())


LATTICE = [
    (steps, distances)
    for steps, distances in product([4, 8, 16, 64], [(1,), (2,), (4,), (9,), (1, 1), (3, 2)])
    if len(distances) == 1 or steps <= 16
]


@pytest.mark.full(keep=18)
@pytest.mark.parametrize(("steps", "distances"), LATTICE)
@pytest.mark.parametrize("tails", [4, 6, 9])
def test_the_grid_adds_no_more_than_its_slack(steps, distances, tails):
    norm = math.hypot(*distances)
    slack = grid_slack(GaussianNoise(Fraction(steps / norm), len(distances), steps), tails)
    for level in np.linspace(0, 3 * norm / steps, 13):
        smooth = float(of_gaussian(level - float(slack.epsilon), steps / norm))
        bound = math.exp(slack.up) * smooth + float(slack.tail)
        assert exact(steps, distances, level) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("distances", [(1,), (4,), (1, 1)])
def test_the_grid_does_add_something(distances):
    steps, norm = 4, math.hypot(*distances)
    levels = np.linspace(0, 3 * norm / steps, 61)
    more = [exact(steps, distances, level) - float(of_gaussian(level, steps / norm)) for level in levels]
    assert max(more) > 1e-6


@pytest.mark.parametrize("steps", [4, 16, 64])
@pytest.mark.parametrize("distance", [0, 3])
def test_the_two_ratios_of_the_proof_hold_point_by_point(steps, distance):
    slack = grid_slack(GaussianNoise(Fraction(1), 1, steps), tails=5)  # a reach of 6 deviations
    j = np.arange(-6 * steps, 6 * steps + 1)
    rounded = ndtr((j + 0.5) / steps) - ndtr((j - 0.5) / steps)
    ratio = masses(steps, 12 * steps, 0)[6 * steps : 18 * steps + 1] / rounded
    accurate = np.abs(j) < 3 * steps  # differences of normal probabilities cancel further out
    assert ratio[accurate].max() <= math.exp(slack.up) * (1 + 1e-11)
    assert ratio.min() >= math.exp(-slack.down) * (1 - 1e-6)
    assert math.log(ratio.min()) < -0.8 * float(slack.down)  # at the edge: the bound is no larger than needed


def test_the_slack_counts_numbers_and_is_nothing_on_the_grids_of_releases():
    single, hundred = (grid_slack(GaussianNoise(Fraction(2), moves, 2**20)) for moves in (1, 100))
    assert (hundred.up, hundred.down, hundred.tail) == (100 * single.up, 100 * single.down, 100 * single.tail)
    assert 0 < single.epsilon < 1e-10
    assert 0 < single.tail < Fraction(1, 10**346)


@pytest.mark.full
def test_on_a_coarse_grid_the_loss_counts():
    coarse, fine = gaussian(5, 64, loss=Approx(1, 1e-7)), gaussian(5, 2**11, loss=Approx(1, 1e-7))
    assert grid_slack(coarse.noise).epsilon > COARSE >= grid_slack(fine.noise).epsilon
    assert pld_epsilon([(coarse, 3)], 1e-5) == pld_epsilon([(Event(coarse.loss), 3)], 1e-5)
    assert pld_epsilon([(fine, 3)], 1e-5) < pld_epsilon([(coarse, 3)], 1e-5)
    with pytest.raises(ParameterError, match=r"^A zero-concentrated loss alone has no privacy loss"):
        pld_epsilon([(gaussian(5, 64), 1)], 1e-5)


@pytest.mark.full
def test_a_coarser_grid_costs_its_slack():
    plain = pld_epsilon([(gaussian(2), 5)], 1e-5)
    for steps, moves in ((2**11, 1), (2**12, 3)):
        added = float(5 * grid_slack(GaussianNoise(Fraction(2), moves, steps)).epsilon)
        coarse = pld_epsilon([(gaussian(2, steps, moves), 5)], 1e-5)
        assert added > 5e-5
        assert plain + 0.99 * added <= coarse <= plain + 1.05 * added


# Noise on the integers.


def on_integers(level, delta, sensitivity=1):
    """One number with discrete Gaussian noise of this loss, as releases charge it."""
    noise = DiscreteGaussian(level, delta, sensitivity)
    return noise, Event(noise.loss, GaussianNoise(noise.multiplier, 1, max(math.floor(noise.steps), 1)))


def law_of_sums(sigma, count, tails):
    """Sums of discrete Gaussian draws within ``tails`` sigmas, and their masses, by repeated convolution."""
    reach = math.ceil(tails * sigma)
    z = np.arange(-reach, reach + 1)
    single = np.exp(-(z**2) / (2 * sigma**2))
    single /= single.sum()
    law = single
    for _ in range(count - 1):
        law = np.convolve(law, single)
    return np.arange(-reach * count, reach * count + 1), law


def truth_on_integers(noises, delta, responses=()):
    """The epsilon of releases with discrete Gaussian noise: all outcomes, by adding up the losses of each.

    ``noises``: (sigma, shift, count). The outcomes of each kind are summed by repeated convolution, and the
    losses of different kinds are added up, pair by pair. ``responses``: epsilons of randomized responses.
    """
    losses, masses = np.zeros(1), np.ones(1)
    for sigma, shift, count in noises:
        y, law = law_of_sums(sigma, count, 9)
        kept = law > 1e-18
        own = shift * (2 * y[kept] + count * shift) / (2 * sigma**2)
        losses, masses = np.add.outer(losses, own).ravel(), np.outer(masses, law[kept]).ravel()
    for level in responses:
        p = 1 / (1 + math.exp(-level))
        losses = np.concatenate([losses + level, losses - level])
        masses = np.concatenate([masses * p, masses * (1 - p)])

    def excess(level):
        return float((masses * np.maximum(-np.expm1(level - losses), 0)).sum()) - delta

    return brentq(excess, 0, losses.max(), xtol=1e-13)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("delta", [1e-4, 1e-7])
@pytest.mark.parametrize(
    ("level", "own_delta", "sensitivity", "count"),
    [(1, 1e-6, 1, 1), (1, 1e-6, 1, 20), (0.2, 1e-8, 1, 60), (1, 1e-3, 3, 4), (2.2, 1e-6, 2, 5)],
)
def test_noise_on_the_integers_composes_exactly(level, own_delta, sensitivity, count, delta):
    noise, event = on_integers(level, own_delta, sensitivity)
    expected = truth_on_integers([(float(noise.sigma), sensitivity, count)], delta)
    actual = pld_epsilon([(event, count)], delta)
    assert expected * (1 - 1e-12) <= actual <= expected * (1 + 1e-3)


@pytest.mark.full
def test_noise_on_the_integers_composes_with_other_losses():
    first, coarse = on_integers(1, 1e-6)
    second, other = on_integers(0.5, 1e-6, 2)
    kinds = [(float(first.sigma), 1, 2), (float(second.sigma), 2, 3)]
    expected = truth_on_integers(kinds, 1e-5, [0.25, 0.25, 0.1])
    events = [(coarse, 2), (other, 3), (Event(Pure(0.25)), 2), (Event(Pure(0.1)), 1)]
    assert expected * (1 - 1e-12) <= pld_epsilon(events, 1e-5) <= expected * (1 + 1e-3)
    fine = pld_epsilon([*events, (gaussian(50), 4)], 1e-5)
    assert expected < fine < expected + pld_epsilon([(gaussian(50), 4)], 1e-5) + 1e-3


def test_one_release_on_the_integers_has_its_own_loss():
    for level, delta in ((1, 1e-6), (0.1, 1e-7), (3, 1e-4)):
        _, event = on_integers(level, delta)
        assert level * (1 - 1e-3) < pld_epsilon([(event, 1)], delta) <= level * (1 + 1e-3)


@pytest.mark.full
def test_many_small_releases_on_the_integers_cost_less_than_by_rho():
    _, event = on_integers(0.1, 1e-8)
    by_pld, by_rho = pld_epsilon([(event, 100)], 1e-6), epsilon([(event, 100)], 1e-6, "zcdp")
    assert 0.8 * by_rho < by_pld < by_rho
    assert epsilon([(event, 100)], 1e-6, "best") == by_pld


@pytest.mark.parametrize("sigma", [1.0, 1.3])
@pytest.mark.parametrize("count", [2, 3, 40])
def test_sums_of_noise_on_the_integers_exceed_one_noise_by_no_more_than_the_gain(sigma, count):
    y, law = law_of_sums(sigma, count, 12)
    single = np.exp(-(y**2) / (2 * count * sigma**2))
    likely = law > 1e-12
    ratio = (law[likely] / (single / single.sum())[likely]).max()
    gain = float(_Lattice(Fraction(sigma), 1).gain(count))
    assert ratio <= gain
    if sigma == 1 and count == 2:
        assert ratio > 1 + 1e-5  # there is something to account for


def test_noise_of_several_numbers_or_of_unknown_shift_uses_its_stated_loss():
    stated = Approx(1, 1e-7)
    for multiplier, moves, steps in ((4, 2, 4), (5, 1, 64), ("0.9", 1, 1)):
        noise = GaussianNoise(Fraction(multiplier), moves, steps)
        actual = pld_epsilon([(Event(stated, noise), 3)], 1e-5)
        assert actual == pld_epsilon([(Event(stated), 3)], 1e-5)


# What is out of reach.


@pytest.mark.parametrize("delta", [0, 1e-11, 9e-11, 1e-300])
def test_deltas_that_floats_cannot_tell_are_refused(delta):
    with pytest.raises(ParameterError, match=r"'delta' from 1e-10 on"):
        pld_epsilon([(gaussian(1), 1)], delta)


@pytest.mark.full
def test_the_error_of_transforms_is_taken_off_delta():
    kinds = [(Event(Pure(Fraction(tenths, 10))), 1) for tenths in range(1, 9)]
    assert pld_epsilon([*kinds, (gaussian(1), 1)], 1e-9) > pld_epsilon(kinds, 1e-9)
    with pytest.raises(ParameterError, match=r"^'delta' is too small for floats to compose this many kinds"):
        pld_epsilon([*kinds, (gaussian(1), 1)], 2e-10)


def test_a_delta_below_those_of_the_losses_is_refused():
    with pytest.raises(ParameterError, match=r"^'delta' is too small beside the deltas of the losses\.$"):
        pld_epsilon([(Event(Approx(1, 1e-3)), 2)], 1e-3)


def test_too_many_losses_are_refused():
    with pytest.raises(ParameterError, match=r"at most 1e6 losses"):
        pld_epsilon([(Event(Pure(1)), 10**6 + 1)], 1e-3)
    uneven = [(Event(Pure(Fraction(1, 10**6 + kind))), 1000) for kind in range(80)]
    with pytest.raises(ParameterError, match=r"too many kinds of losses without a common unit"):
        pld_epsilon(uneven, 1e-3)


def test_errors_of_dp_accounting_are_not_shown(monkeypatch):
    def broken(*arguments, **options):
        raise OverflowError("math range error")

    monkeypatch.setattr(dp_accounting.pld.privacy_loss_distribution, "from_gaussian_mechanism", broken)
    with pytest.raises(ParameterError, match=r"^Losses of this size are out of reach") as caught:
        pld_epsilon([(gaussian(1), 1)], 1e-5)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# Export.


def accounted(events, delta, kind=PLDAccountant):
    return kind().compose(to_dp_events(events)).get_epsilon(delta)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("case", ["noise", "one response", "responses", "no common unit", "large"])
def test_the_accountant_of_dp_accounting_is_not_below_the_truth(case, delta):
    losses, multipliers, count = CASES[case]
    events = [(Event(Pure(level)), often) for (level, _), often in losses.items()]
    events += [(gaussian(size), count) for size in multipliers]
    together = 1 / math.sqrt(sum(count / Fraction(size) ** 2 for size in multipliers))
    expected, actual = truth(losses, together, delta), accounted(events, delta)
    assert expected - 1e-9 <= actual <= expected + 1e-4 * (1 + sum(losses.values()))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("event", [Event(Pure(0.3)), gaussian(4)], ids=["pure", "gaussian"])
def test_counts_are_kept(event):
    counted, ten, single = [(event, 10)], [(event, 1)] * 10, [(event, 1)]
    assert to_dp_events(counted) == to_dp_events(ten)
    assert accounted(counted, 1e-6) == accounted(ten, 1e-6) > 2 * accounted(single, 1e-6)
    by_hand = PLDAccountant()
    for _ in range(10):
        by_hand.compose(to_dp_events(single))
    assert accounted(counted, 1e-6) == pytest.approx(by_hand.get_epsilon(1e-6), rel=1e-3)


def test_each_kind_has_its_event():
    composed = to_dp_events([(gaussian("1/3"), 2), (Event(Pure("1/3")), 4), (Event(Pure(0.1)), 1)])
    *pure, noise = sorted(composed.events, key=lambda event: type(event.event).__name__, reverse=False)
    assert [event.count for event in (*pure, noise)] == [1, 4, 2]
    assert isinstance(noise.event, dp_accounting.GaussianDpEvent)
    assert Fraction(noise.event.noise_multiplier) <= Fraction(1, 3)
    assert all(
        isinstance(pure_event.event, dp_accounting.dp_event.DiscreteLaplaceDpEvent) for pure_event in pure
    )
    assert [pure_event.event.sensitivity for pure_event in pure] == [1, 1]
    assert pure[0].event.noise_parameter == 0.1
    assert Fraction(pure[1].event.noise_parameter) >= Fraction(1, 3)


@pytest.mark.skipif(
    not hasattr(dp_accounting, "ZCDpEvent"), reason="dp-accounting before 0.6 has no such event"
)
def test_zero_concentrated_losses_are_exported():
    events = [(Event(ZCDP(0.01)), 3), (gaussian(10), 2)]
    level = accounted(events, 1e-6, RdpAccountant)
    assert zcdp_epsilon(Fraction(4, 100), 1e-6) * (1 - 1e-9) <= level <= 1.05 * epsilon(events, 1e-6)


def test_charges_without_an_event_are_refused(monkeypatch):
    for event in (Event(Approx(1, 1e-6)), gaussian(1, 16, loss=Approx(1, 1e-6))):
        with pytest.raises(ParameterError, match=r"events of a positive delta for Gaussian noise only"):
            to_dp_events([(event, 1)])
    with pytest.raises(ParameterError, match=r"^'events' must hold at least one event"):
        to_dp_events([])
    monkeypatch.delattr(dp_accounting.dp_event, "ZCDpEvent", raising=False)
    with pytest.raises(ParameterError, match=r"no event for a zero-concentrated loss"):
        to_dp_events([(Event(ZCDP(1)), 1)])


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for call in (
        lambda: pld_epsilon([(Event(Pure(1)), 1)], 1e-3),
        lambda: to_dp_events([(Event(Pure(1)), 1)]),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install \"pdprivacy\[pld\]\""):
            call()


@pytest.mark.parametrize(
    "call", [to_dp_events, partial(pld_epsilon, delta=1e-3), partial(report, delta=1e-3)]
)
def test_events_are_checked_before_an_extra_is_imported(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ParameterError, match=r"^'events' must hold at most 1,000,000 items"):
        call(range(10**12))
