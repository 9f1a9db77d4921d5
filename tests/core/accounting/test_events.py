from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Pure
from pdprivacy.core.accounting import (
    Event,
    GaussianNoise,
    epsilon,
    from_json,
    optimal_epsilon,
    report,
    reports,
    to_json,
    zcdp_epsilon,
)
from pdprivacy.core.accounting.events import tally
from pdprivacy.errors import MissingExtraError, ParameterError, PrivacyError
from tests.support.cases import each

METHODS = ("basic", "optimal", "zcdp", "pld", "best")


@pytest.fixture(autouse=True, scope="module")
def each_noise_once() -> Iterator[None]:
    """dp-accounting takes a third of a second for the distribution of one noise: each is made once here."""
    library = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            library, "from_gaussian_mechanism", lru_cache(maxsize=64)(library.from_gaussian_mechanism)
        )
        yield


rationals = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)
noises = st.builds(GaussianNoise, rationals, st.integers(min_value=1, max_value=10**6), st.integers(1, 2**60))
every_loss = st.one_of(
    st.builds(Pure, rationals),
    st.builds(Approx, rationals, st.fractions(min_value=0, max_value=Fraction(99, 100))),
    st.builds(ZCDP, rationals),
)
pairs = st.lists(
    st.tuples(st.builds(Event, every_loss, st.none() | noises), st.integers(1, 10**12)), max_size=6
)


# The laws of explicit mechanisms in two neighbouring worlds, and the events that they are.


def response(level, delta=0.0):
    """Randomized response, with outcomes of probability ``delta`` that reveal the world."""
    likely, other = (1 - delta) / (1 + math.exp(-level)), (1 - delta) / (1 + math.exp(level))
    if not delta:
        return np.array([likely, other]), np.array([other, likely])
    return np.array([delta, likely, other, 0.0]), np.array([0.0, other, likely, delta])


def geometric(level, size=9):
    """Geometric noise on a count of 4 or 5, clamped to 0 ... size - 1."""
    noise = np.arange(-200, 201)
    masses = np.exp(-level * np.abs(noise)) * math.tanh(level / 2)
    return tuple(
        np.bincount((center + noise).clip(0, size - 1), masses / masses.sum(), size) for center in (4, 5)
    )


def discrete_gaussian(steps, distances=(1,)):
    """Discrete Gaussian noise of this deviation on one number for each distance of the two centres."""
    first, second = np.ones(1), np.ones(1)
    for distance in distances:
        k = np.arange(-13 * steps, 13 * steps + distance + 1, dtype=np.float64)
        law, shifted = (np.exp(-((k - center) ** 2) / (2 * steps**2)) for center in (0, distance))
        first = np.outer(first, law / law.sum()).ravel()
        second = np.outer(second, shifted / shifted.sum()).ravel()
    return first, second


def gaussian_event(steps, distances=(1,), loss=None):
    squares = sum(distance**2 for distance in distances)
    multiplier = Fraction(math.isqrt(steps**2 * 10**24 // squares), 10**12)
    return Event(loss or ZCDP(10**6), GaussianNoise(multiplier, len(distances), steps))


def together(*laws):
    first, second = np.ones(1), np.ones(1)
    for left, right in laws:
        first, second = np.outer(first, left).ravel(), np.outer(second, right).ravel()
    return first, second


def divergence(laws, level):
    """The least delta of two laws at an epsilon, in both directions."""
    left, right = laws
    factor = math.exp(level)
    # terms of one sign, summed in pairs: to fourteen digits
    return max(np.maximum(left - factor * right, 0).sum(), np.maximum(right - factor * left, 0).sum())


CASES = {
    "responses": (
        together(*[response(0.3)] * 6, *[response(0.7)] * 3),
        [(Event(Pure(0.3)), 6), (Event(Pure(0.7)), 3)],
    ),
    "revealing": (
        together(*[response(0.4, 1e-4)] * 4, *[response(1.0)] * 2),
        [(Event(Approx(0.4, 1e-4)), 4), (Event(Pure(1)), 2)],
    ),
    "geometric": (together(*[geometric(0.5)] * 4), [(Event(Pure(0.5)), 4)]),
    "one number": (discrete_gaussian(600, (300,)), [(gaussian_event(600, (300,)), 1)]),
    "responses and noise": (
        together(discrete_gaussian(600, (400,)), *[response(0.5)] * 4, response(0.2, 1e-4)),
        [
            (gaussian_event(600, (400,)), 1),
            (Event(Pure(0.5)), 2),
            (Event(Pure(0.5)), 2),
            (Event(Approx(0.2, 1e-4)), 1),
        ],
    ),
    "stated": (  # a loss that the noise has, so that the accountings of losses apply as well
        together(discrete_gaussian(600, (200,)), *[geometric(0.3)] * 2),
        [(gaussian_event(600, (200,), Approx(1.2, 1e-3)), 1), (Event(Pure(0.3)), 2)],
    ),
    "coarse": (together(*[discrete_gaussian(4, (2,))] * 2), [(gaussian_event(4, (2,), Approx(2, 1e-3)), 2)]),
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("case", "delta"),
    # a large and a small one for each case, in turn
    [(case, delta) for row, case in enumerate(CASES) for delta in [(1e-2, 1e-5), (2e-3, 1e-9)][row % 2]],
)
def test_no_accounting_is_below_the_truth(case, delta):
    laws, events = CASES[case]
    bounds = report(events, delta)
    for bound in bounds:
        if bound.epsilon is not None:
            assert divergence(laws, bound.epsilon) <= delta * (1 + 1e-9), bound.accounting
    known = {bound.accounting: bound.epsilon for bound in bounds if bound.epsilon is not None}
    if delta >= 2e-3:  # so that each case is of some accountings at least
        assert {"best", "zcdp"} <= set(known)
    if known:
        assert known["best"] == min(known.values())


def test_the_stated_losses_of_the_cases_are_true():
    assert divergence(discrete_gaussian(600, (200,)), 1.2) <= 1e-3
    assert divergence(discrete_gaussian(4, (2,)), 2) <= 1e-3
    assert divergence(geometric(0.5), 0.5) < 1e-12 < divergence(geometric(0.5), 0.49)


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=3),
    st.sampled_from([0.05, 1e-2, 1e-4]),
)
def test_random_responses_are_never_below_the_truth(kinds, delta):
    laws, events = [], []
    for tenths, reveals, count in kinds:
        item = Approx(tenths / 10, reveals / 1000)
        laws += [response(tenths / 10, reveals / 1000)] * count
        events.append((Event(item), count))
    truth = together(*laws[:7])  # fewer releases cost no more
    for bound in report(events, delta):
        if bound.epsilon is not None:
            assert divergence(truth, bound.epsilon) <= delta * (1 + 1e-9), bound.accounting


# What all accountings have in common.

small = st.builds(Pure, st.fractions(Fraction(1, 100), 2, max_denominator=100))
fine = st.builds(GaussianNoise, st.fractions(1, 100, max_denominator=10), st.integers(1, 9), st.just(2**20))
modest = st.one_of(
    st.builds(Event, small),
    st.builds(
        Event,
        st.builds(Approx, st.fractions(Fraction(1, 100), 2, max_denominator=100), st.just(1e-7)),
    ),
    st.builds(Event, st.just(Approx("1/2", 1e-7)), fine),
    st.builds(Event, st.just(ZCDP(1)), fine),
)
# What holds for any number of cells holds for few, which take a fraction of the time.
few_cells = mock.patch.object(reports, "CELLS", reports.CELLS // 16)
several = st.lists(st.tuples(modest, st.integers(1, 5)), min_size=1, max_size=4)


@pytest.mark.full
@few_cells
@given(several, st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_matters(events, random):
    singles = [(event, 1) for event, count in events for _ in range(count)]
    random.shuffle(singles)
    assert tally(singles) == tally(events)
    assert report(singles, 1e-5) == report(events, 1e-5)


@pytest.mark.full
@settings(max_examples=12)
@given(several, modest)
def test_another_event_never_costs_less(events, further):
    before = {bound.accounting: bound.epsilon for bound in report(events, 1e-5)}
    for bound in report([*events, (further, 1)], 1e-5):
        first = before[bound.accounting]
        if bound.epsilon is not None and bound.accounting != "best":
            assert first is not None
            # the values of a distribution are spread anew
            assert bound.epsilon >= first - 1e-4 * first - 1e-9


@pytest.mark.full
@few_cells
@given(several)
def test_each_accounting_is_asked_by_name(events):
    *bounds, best = report(events, 1e-5)
    assert best.accounting == "best"
    for bound in bounds:
        if bound.epsilon is None:
            with pytest.raises(ParameterError):
                epsilon(events, 1e-5, bound.accounting)
        else:
            assert bound.reason is None
            assert epsilon(events, 1e-5, bound.accounting) == bound.epsilon
            assert best.epsilon <= bound.epsilon
    if best.epsilon is None:
        with pytest.raises(ParameterError):
            epsilon(events, 1e-5, "best")
    else:
        assert epsilon(events, 1e-5, "best") == best.epsilon


def test_losses_are_what_they_are_elsewhere():
    losses = {Pure(0.1): 30, Approx(0.2, 1e-8): 5}
    events = [(Event(item), count) for item, count in losses.items()]
    assert epsilon(events, 1e-6, "basic") == 4
    assert epsilon(events, 1e-6, "optimal") == optimal_epsilon(losses, 1e-6)
    assert epsilon(events, 1e-6) == epsilon(events, 1e-6, "best")
    rho = Fraction(30, 200) + Fraction(5, 50)
    assert epsilon(events, 1e-6, "zcdp") == zcdp_epsilon(rho, Fraction(1, 10**6) - Fraction(5, 10**8))


def test_noise_counts_by_its_rho_and_not_by_its_loss():
    noise = GaussianNoise(Fraction(5), 3, 2**20)
    events = [(Event(Approx(1, 1e-3), noise), 4), (Event(ZCDP(0.01)), 2)]
    assert epsilon(events, 1e-6, "zcdp") == zcdp_epsilon(Fraction(4, 50) + Fraction(2, 100), 1e-6)
    assert epsilon(events, 1e-6) == epsilon(events, 1e-6, "zcdp")


def test_pure_losses_need_no_delta():
    events = [(Event(Pure(0.5)), 2), (Event(Pure(1)), 1)]
    known = {bound.accounting: bound.epsilon for bound in report(events, 0)}
    assert known == {"basic": 2.0, "optimal": 2.0, "zcdp": None, "pld": None, "best": 2.0}


def test_events_beyond_every_accounting_are_explained():
    events = [(Event(ZCDP(1)), 1), (Event(Approx(1, 0.1)), 1)]
    with pytest.raises(
        ParameterError, match=r"No accounting applies .* basic: .* optimal: .* zcdp: .* pld: "
    ):
        epsilon(events, 1e-3)
    assert all(bound.reason and "\n" not in bound.reason for bound in report(events, 1e-3))


def test_numbers_beyond_floats_are_said():
    events = [(Event(Pure(Fraction(10) ** 400)), 1)]
    assert all(bound.epsilon is None for bound in report(events, 1e-3))
    assert report([(Event(Pure(Fraction(1, 10**400))), 1)], 1e-3)[-1].epsilon <= 1e-300


def test_without_the_extra_all_others_apply(monkeypatch):
    events = [(Event(Pure(0.1)), 30)]
    whole = report(events, 1e-6)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtraError, match=r"pip install \"pdprivacy\[pld\]\""):
        epsilon(events, 1e-6, "pld")
    bounds = report(events, 1e-6)
    assert [bound for bound in bounds if bound.accounting not in ("pld", "best")] == [
        bound for bound in whole if bound.accounting not in ("pld", "best")
    ]
    assert bounds[3].epsilon is None
    assert "dp-accounting" in bounds[3].reason
    assert epsilon(events, 1e-6) == optimal_epsilon([Pure(0.1)] * 30, 1e-6)


@pytest.mark.parametrize("delta", [-0.1, 1, 2, math.nan, "x", None], ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_deltas_that_are_none_are_refused(method, delta):
    with pytest.raises(ParameterError, match=r"^'delta' must be"):
        epsilon([(Event(Pure(1)), 1)], delta, method)


@pytest.mark.parametrize("method", METHODS)
def test_no_events_have_no_epsilon(method):
    with pytest.raises(ParameterError, match=r"^'events' must hold at least one event\.$"):
        epsilon([], 1e-6, method)


@pytest.mark.parametrize("method", ["rdp", None, 1, ["best"]], ids=repr)
def test_unknown_accountings_are_refused(method):
    with pytest.raises(ParameterError, match=r"^'accounting' must be one of"):
        epsilon([(Event(Pure(1)), 1)], 1e-6, method)


# Events, and their JSON.

EVENT = Event(Pure(1))


@pytest.mark.parametrize(
    "events",
    [
        None,
        1,
        "x",
        b"xy",
        EVENT,
        {EVENT: 2},
        [EVENT],
        [(EVENT,)],
        [(EVENT, 1, 1)],
        [(Pure(1), 1)],
        [EVENT, 1],
    ],
    ids=lambda events: type(events).__name__,
)
def test_invalid_events_are_refused(events):
    for call in (tally, to_json, lambda some: epsilon(some, 1e-6), lambda some: report(some, 1e-6)):
        with pytest.raises(ParameterError, match=r"^'events' must be a list of pairs"):
            call(events)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None], ids=repr)
def test_counts_that_are_none_are_refused(count):
    for call in (to_json, lambda some: epsilon(some, 1e-6)):
        with pytest.raises(ParameterError, match=r"^'count' must be a positive whole number"):
            call([(EVENT, count)])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: Event(1), r"^The loss of an event must be"),
        (lambda: Event(Pure), r"^The loss of an event must be"),
        (lambda: Event(Pure(1), 10), r"^The noise of an event must be"),
        (lambda: GaussianNoise(0, 1, 1), r"^'multiplier' must be positive"),
        (lambda: GaussianNoise(math.inf, 1, 1), r"^'multiplier' must be a finite"),
        (lambda: GaussianNoise(1, 0, 1), r"^'l0_sensitivity' must be a positive whole"),
        (lambda: GaussianNoise(1, True, 1), r"^'l0_sensitivity' must be a positive whole"),
        (lambda: GaussianNoise(1, 1, 2.5), r"^'steps' must be a positive whole"),
        (lambda: GaussianNoise(1, 1, None), r"^'steps' must be a positive whole"),
    ],
)
def test_claims_that_cannot_be_true_are_refused(wrong, text):
    with pytest.raises(ParameterError, match=text):
        wrong()


@pytest.mark.full
@given(pairs)
def test_json_holds_events_exactly(events):
    written = to_json(events)
    assert from_json(written) == events
    assert from_json(json.loads(json.dumps(written, allow_nan=False))) == events
    assert to_json(from_json(written)) == written


def test_json_is_readable():
    noise = GaussianNoise(Fraction(7, 2), 2, 2**20)
    assert to_json([(Event(Approx("0.1", "1e-6"), noise), 3), (Event(ZCDP("1/3")), 1)]) == [
        {
            "loss": {"epsilon": "1/10", "delta": "1/1000000"},
            "count": 3,
            "noise": {"multiplier": "7/2", "moves": 2, "steps": 1048576},
        },
        {"loss": {"rho": "1/3"}, "count": 1},
    ]
    assert from_json([]) == to_json([]) == []


GOOD = {"loss": {"epsilon": "1"}, "count": 1, "noise": {"multiplier": "1", "moves": 1, "steps": 1}}


def changed(path, value):
    """GOOD with one field other, or without it."""
    entry = json.loads(json.dumps(GOOD))
    *way, last = path
    node = entry
    for name in way:
        node = node[name]
    if value is KeyError:
        del node[last]
    else:
        node[last] = value
    return [entry]


NO_NUMBERS = [
    "",
    "0",
    "-1",
    "1/0",
    "2/4",
    "1.0",
    "1e3",
    " 1",
    "1\n",
    "1_0",
    "٣",
    "01",
    "1/",
    "9" * 5000,
    1,
    0.5,
]
NO_COUNTS = [0, -1, 1.0, "1", True, None, 10**4000]
MALFORMED = [
    None,
    "[]",
    GOOD,
    [None],
    [[]],
    [("loss", 1)],
    [{}],
    *(changed(("loss", "epsilon"), number) for number in [*NO_NUMBERS, None, True, [], {}]),
    *(changed(("noise", "multiplier"), number) for number in NO_NUMBERS),
    *(changed(("loss", "delta"), number) for number in ["1", "-1/2", "2", 0]),
    *(
        changed(path, count)
        for path in [("count",), ("noise", "moves"), ("noise", "steps")]
        for count in NO_COUNTS
    ),
    *(changed(path, KeyError) for path in [("loss",), ("count",), ("loss", "epsilon"), ("noise", "steps")]),
    *(
        changed(path, None)
        for path in [("loss",), ("noise",), ("other",), ("loss", "rho"), ("noise", "other")]
    ),
]


@each("entries", MALFORMED)
def test_malformed_json_is_refused(entries):
    assert from_json([GOOD])
    with pytest.raises(ParameterError) as caught:
        from_json(entries)
    assert len(str(caught.value)) < 300


def test_numbers_of_thousands_of_digits_are_refused():
    for events in (
        [(Event(Pure(Fraction(10**5000 + 1, 10**4999))), 1)],
        [(Event(Pure(Fraction(10**4999, 10**5000 + 1))), 1)],
        [(EVENT, 10**5000)],
        [(Event(Pure(1), GaussianNoise(1, 10**5000, 1)), 1)],
    ):
        with pytest.raises(
            ParameterError, match=r"^The numbers of an event must have fewer than 4000 digits\.$"
        ):
            to_json(events)
    longest = [(Event(Pure(Fraction(10**3998 + 1, 10**3998))), 10**3998)]
    assert from_json(to_json(longest)) == longest


@pytest.mark.full
def test_events_are_refused_by_errors_of_the_package_alone():
    odd = [
        Pure(Fraction(10) ** 300),
        Pure(Fraction(1, 10**300)),
        Approx(1, Fraction(1, 10**300)),
        ZCDP(10**250),
    ]
    noise = [None, *(GaussianNoise(size, 1, 2**20) for size in (Fraction(1, 10**200), 10**200, 10**5))]
    for item, kind, count, delta in itertools.product(odd, noise, (1, 10**9), (1e-300, 1e-9, 0.5)):
        try:
            assert epsilon([(Event(item, kind), count)], delta) >= 0
        except PrivacyError as error:
            assert "No accounting applies" in str(error)  # noqa: PT017 - any other error fails the test
