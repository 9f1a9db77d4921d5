from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from fractions import Fraction

import pytest

from pdprivacy.accounting import (
    Bound,
    Event,
    best_epsilon,
    optimal_delta,
    optimal_epsilon,
    pld_delta,
    pld_epsilon,
    to_dp_event,
    zcdp_epsilon,
)
from pdprivacy.errors import MissingExtraError, ParameterError
from pdprivacy.mechanism.gaussian import gaussian_delta
from pdprivacy.privacy import ZCDP, Approx, Pure

needs_pld = pytest.mark.skipif(
    importlib.util.find_spec("dp_accounting") is None, reason="dp-accounting (the extra pld) is not installed"
)


def test_events_know_their_loss():
    assert Event("laplace", noise_multiplier=4).loss == Pure(0.25)
    assert Event("laplace", noise_multiplier=4, epsilon=0.3).loss == Pure(0.3)
    assert Event("laplace", noise_multiplier=4, epsilon=0.3).least == Pure(0.25)
    assert Event("geometric", noise_multiplier="1/3", sensitivity=2).loss == Pure(3)
    assert Event("gaussian", noise_multiplier=2).loss == ZCDP("1/8")
    charged = Event("gaussian", noise_multiplier=2, epsilon=3, delta=1e-6)
    assert (charged.loss, charged.least) == (Approx(3, 1e-6), ZCDP("1/8"))
    assert Event("approx", epsilon=1, delta=0.1).loss == Approx(1, 0.1)
    for item in (Pure(1), Approx(1, 0.1), ZCDP(1)):
        assert Event.of(item, 3) == Event.of(item).times(3)
        assert Event.of(item).loss == Event.of(item).least == item
    assert Event.of(Approx(1, 0)).kind == "pure"
    assert Event("laplace", noise_multiplier=4, count=2).times(3).count == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "staircase"}, "'kind' must be one of 'laplace', 'geometric', 'gaussian', 'pure'"),
        ({"kind": "laplace"}, "needs 'noise_multiplier'"),
        ({"kind": "laplace", "noise_multiplier": 0}, "'noise_multiplier' must be positive"),
        ({"kind": "laplace", "noise_multiplier": 1, "rho": 1}, "takes no 'rho'"),
        ({"kind": "laplace", "noise_multiplier": 1, "epsilon": 1, "delta": 0.1}, "takes no 'delta'"),
        ({"kind": "gaussian", "noise_multiplier": 1, "delta": 0.1}, "takes no 'delta'"),
        ({"kind": "gaussian", "noise_multiplier": 1, "epsilon": 1}, "needs its 'delta'"),
        ({"kind": "gaussian", "noise_multiplier": 1, "sensitivity": 2}, "takes no 'sensitivity'"),
        ({"kind": "geometric", "noise_multiplier": 1, "sensitivity": 0}, "'sensitivity' must be a positive"),
        ({"kind": "pure", "epsilon": 1, "noise_multiplier": 1}, "takes no 'noise_multiplier'"),
        ({"kind": "pure", "epsilon": 1, "delta": 0.1}, "takes no 'delta'"),
        ({"kind": "approx", "epsilon": 1, "delta": 1}, r"'delta' must be in \[0, 1\)"),
        ({"kind": "zcdp", "epsilon": 1}, "takes no 'epsilon'"),
        ({"kind": "zcdp"}, "needs 'rho'"),
        ({"kind": "pure", "epsilon": 1, "count": 0}, "'count' must be"),
    ],
)
def test_bad_events_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Event(**arguments)


def test_the_smallest_comes_first():
    losses = [Pure(0.1)] * 100
    bounds = best_epsilon(losses, 1e-6)
    assert bounds == (
        Bound("optimal", optimal_epsilon(losses, 1e-6)),
        Bound("zcdp", zcdp_epsilon(0.5, 1e-6)),
        Bound("basic", 10.0),
    )
    assert best_epsilon([Event.of(Pure(0.1), 100)], 1e-6) == bounds
    assert best_epsilon([Event("laplace", noise_multiplier=10, count=100)], 1e-6) == bounds
    assert best_epsilon([Event("laplace", noise_multiplier=10)] * 100, 1e-6) == bounds
    assert best_epsilon(losses, 1e-6, "basic") == bounds[2:]
    assert best_epsilon(losses, 1e-6, ["zcdp", "best", "zcdp"]) == bounds


def test_an_accounting_that_says_nothing_is_left_out():
    assert [bound.accounting for bound in best_epsilon([Pure(0.1)] * 3, 0)] == ["basic", "optimal"]
    assert [bound.accounting for bound in best_epsilon([ZCDP(0.1)], 1e-6)] == ["zcdp"]
    mixed = best_epsilon([ZCDP(0.1), Approx(0.2, 1e-7), Pure(0.2)], 1e-6)
    assert mixed == (Bound("zcdp", zcdp_epsilon(0.14, 9e-7)),)
    # the deltas of many losses are more than the one asked for, and their noise needs none of it
    gaussian = Event("gaussian", noise_multiplier=20, epsilon=0.25, delta=1e-6, count=10)
    assert best_epsilon([gaussian], 1e-6) == (Bound("zcdp", zcdp_epsilon("1/80", 1e-6)),)


@pytest.mark.parametrize(
    ("events", "delta", "accounting", "message"),
    [
        ([ZCDP(1)], 0, "best", "No accounting of basic, optimal, zcdp gives"),
        ([Approx(1, 0.1)], 0.05, "best", "gives these releases an epsilon at delta 0.05"),
        ([Pure(1)], 1, "best", r"'delta' must be in \[0, 1\)"),
        ([Pure(1)], 0.1, "advanced", "'accounting' must be of 'best'"),
        ([Pure(1)], 0.1, [], "must name at least one"),
        ([], 0.1, "best", "at least one loss or event"),
        ([0.1], 0.1, "best", "must hold losses or events"),
        ("Pure", 0.1, "best", "must be a list"),
        (Pure(1), 0.1, "best", "must be a list"),
    ],
)
def test_bad_arguments_are_named(events, delta, accounting, message):
    with pytest.raises(ParameterError, match=message):
        best_epsilon(events, delta, accounting)


def test_without_dp_accounting_the_extra_is_named(monkeypatch):
    for name in ("dp_accounting", "dp_accounting.dp_event", "dp_accounting.pld.privacy_loss_distribution"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (
        lambda: pld_epsilon([Pure(1)], 1e-6),
        lambda: pld_delta([Pure(1)], 1),
        lambda: to_dp_event(Pure(1)),
        lambda: best_epsilon([Pure(1)], 1e-6, ("best", "pld")),
    ):
        with pytest.raises(MissingExtraError, match=r'Hint: pip install "pdprivacy\[pld\]"'):
            call()


def test_bad_distributions_are_refused():
    for call, message in (
        (lambda: pld_epsilon([Pure(1)], 1e-11), r"'delta' must be in \[1e-10, 1\)"),
        (lambda: pld_delta([Pure(1)], -1), "'epsilon' must be at least 0"),
        (lambda: pld_epsilon([ZCDP(1)], 1e-6), "has no loss distribution"),
        (lambda: pld_epsilon([Pure(1)], 1e-6, interval=0), "'interval' must be positive"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()


@needs_pld
@pytest.mark.parametrize(
    "losses", [[Pure(0.1)] * 100, [Approx(0.1, 1e-8)] * 10, [Pure(0.5), Approx(0.2, 1e-7), Pure(1)]]
)
def test_distributions_of_losses_are_optimal_composition_from_above(losses):
    exact = optimal_epsilon(losses, 1e-6)
    assert exact * (1 - 1e-12) <= pld_epsilon(losses, 1e-6) <= exact + 1e-4 * len(losses)
    level = exact / 2
    assert optimal_delta(losses, level) * (1 - 1e-12) <= pld_delta(losses, level)
    assert pld_delta(losses, level + 1e-4 * len(losses)) <= optimal_delta(losses, level) + 1e-12


@needs_pld
@pytest.mark.parametrize(("multiplier", "count"), [(5.0, 10), (1.0, 1), (50.0, 400)])
def test_distributions_of_gaussian_noise_are_exact_from_above(multiplier, count):
    epsilon = pld_epsilon([Event("gaussian", noise_multiplier=multiplier, count=count)], 1e-6)
    exact = gaussian_delta(epsilon, multiplier / math.sqrt(count))
    assert exact <= 1e-6
    assert gaussian_delta(epsilon - 1e-4 * count, multiplier / math.sqrt(count)) > 1e-6
    assert epsilon < zcdp_epsilon(Fraction(count) / Fraction(2 * multiplier**2), 1e-6)


@needs_pld
@pytest.mark.parametrize(
    "event",
    [
        Event("laplace", noise_multiplier=10),
        Event("geometric", noise_multiplier=10),
        Event("geometric", noise_multiplier=10, sensitivity=4),
        Event("gaussian", noise_multiplier=20),
        Event("pure", epsilon=0.1),
        Event("approx", epsilon=0.1, delta=1e-9),
    ],
    ids=lambda event: event.kind,
)
def test_many_charges_are_one_charge_of_that_count(event):
    many = pld_epsilon([event.times(50)], 1e-6)
    assert pld_epsilon([event] * 50, 1e-6) == many
    assert many > 2 * pld_epsilon([event], 1e-6)
    best = best_epsilon([event.times(50)], 1e-6, ("best", "pld"))
    assert Bound("pld", many) in best
    assert many <= 1.001 * best[0].epsilon


@needs_pld
def test_geometric_noise_of_sensitivity_one_is_the_worst_pure_loss():
    geometric = [Event("geometric", noise_multiplier=10, count=100)]
    assert pld_epsilon(geometric, 1e-6) == pytest.approx(optimal_epsilon([Pure(0.1)] * 100, 1e-6), abs=1e-6)


@needs_pld
def test_losses_past_the_exponentials_have_no_epsilon():
    for event in (Event("laplace", noise_multiplier=1e-5), Pure(1e5), Event("geometric", 1e-4)):
        assert pld_epsilon([event], 1e-6) == math.inf
        assert pld_delta([event], 1) == 1.0
        assert "pld" not in {bound.accounting for bound in best_epsilon([event], 1e-6, ["best", "pld"])}


@needs_pld
def test_events_become_types_of_dp_accounting_that_its_accountant_counts_alike():
    accountant = importlib.import_module("dp_accounting.pld.pld_privacy_accountant").PLDAccountant
    types = importlib.import_module("dp_accounting.dp_event")
    for event in (
        Event("laplace", noise_multiplier=5, count=30),
        Event("gaussian", noise_multiplier=5, count=3),
        Event("geometric", noise_multiplier=5, sensitivity=2, count=3),
        Event("pure", epsilon=0.1, count=50),
    ):
        exported = to_dp_event(event)
        assert isinstance(exported, types.SelfComposedDpEvent)
        assert exported.count == event.count
        theirs = accountant().compose(exported).get_epsilon(1e-6)
        assert theirs == pytest.approx(pld_epsilon([event], 1e-6), rel=1e-3)
    assert to_dp_event(Event("gaussian", noise_multiplier=5)) == types.GaussianDpEvent(5.0)
    assert to_dp_event(Event("laplace", noise_multiplier=5)) == types.LaplaceDpEvent(5.0)
    assert to_dp_event(Pure(0.1)) == types.DiscreteLaplaceDpEvent(0.1, 1)
    assert to_dp_event(ZCDP(0.1)) == types.ZCDpEvent(0.1)
    assert not accountant().supports(to_dp_event(Approx(0.1, 1e-6)))
