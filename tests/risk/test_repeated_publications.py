"""Losses of several publications, composed by each accounting."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from pdprivacy import Column, Domain, postprocess
from pdprivacy.core.mechanisms import gaussian_delta, noise_multiplier
from pdprivacy.errors import ParameterError

PEOPLE = pd.DataFrame({"sex": list("ffmmmf") * 5, "ill": [True, False, True, True, False, True] * 5})
DOMAIN = Domain(
    (
        Column("sex", "category", categories=("f", "m"), role="quasi_identifier"),
        Column("ill", "boolean", role="sensitive"),
    )
)
ACCOUNTINGS = ("advanced", "zcdp", "optimal")


@pytest.fixture(scope="module")
def dp():
    return PEOPLE.dp.protect(DOMAIN, epsilon=1).dp


def repeated(dp, count, epsilon, **options):
    return dp.repeated_risk([{"epsilon": epsilon}] * count, **options)


def worst_delta(count, epsilon, delta, total):
    """The delta at ``total`` of ``count`` randomized responses of this loss, by the binomial law."""
    shares = stats.binom(count, 1 / (1 + math.exp(-epsilon))).pmf(np.arange(count + 1))
    losses = epsilon * (2 * np.arange(count + 1) - count)
    excess = shares @ np.maximum(0, -np.expm1(np.minimum(total - losses, 0)))
    kept = (1 - delta) ** count
    return 1 - kept + kept * float(excess)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0), (0.4, 0), (0.3, 1e-7)])
def test_the_composed_loss_covers_the_worst_mechanisms_of_its_losses(dp, accounting, epsilon, delta):
    table = repeated(dp, 60, epsilon, delta=delta, accounting=accounting, slack=1e-5, mechanism="laplace")
    assert table["delta_so_far"].tolist() == pytest.approx([k * delta + 1e-5 for k in range(1, 61)])
    sums = epsilon * np.arange(1, 61)
    assert (table["epsilon_so_far"] <= sums * (1 + 1e-12)).all()
    assert table["epsilon_so_far"].iloc[-1] < 0.85 * sums[-1]
    for count in (1, 2, 7, 60):
        total = table["epsilon_so_far"].loc[count]
        assert worst_delta(count, epsilon, delta, total) <= count * delta + 1e-5
        if accounting == "optimal":  # and no smaller epsilon does
            assert worst_delta(count, epsilon, delta, 0.999 * total) > count * delta + 1e-5


def test_advanced_composition_is_its_formula(dp):
    epsilons = [0.1, 0.3, 0.2] * 40
    table = dp.repeated_risk([{"epsilon": e} for e in epsilons], accounting="advanced", slack=1e-6)
    for count in (1, 5, 120):
        part = epsilons[:count]
        mean = sum(e * (math.exp(e) - 1) / (math.exp(e) + 1) for e in part)
        spread = math.sqrt(2 * math.log(1e6) * sum(e * e for e in part))
        expected = min(sum(part), mean + spread)
        assert table.loc[count, "epsilon_so_far"] == pytest.approx(expected, rel=1e-9)
    assert table["epsilon_so_far"].iloc[-1] < sum(epsilons)


def test_gaussian_noise_is_composed_by_its_rho(dp):
    """At least the epsilon of all the noise together, and at most that of a search over orders of Renyi."""
    epsilon, delta, slack, count = 0.5, 1e-6, 1e-5, 40
    table = repeated(
        dp, count, epsilon, delta=delta, accounting="zcdp", slack=slack, mechanism="discrete_gaussian"
    )
    total, delta_so_far = table.loc[count, ["epsilon_so_far", "delta_so_far"]]
    assert delta_so_far == pytest.approx(count * delta + slack)
    multiplier = noise_multiplier(epsilon, delta)
    assert gaussian_delta(total, multiplier / math.sqrt(count)) <= delta_so_far
    rho = count / (2 * float(multiplier) ** 2)

    def of_order(log_order):  # Canonne, Kamath, Steinke (2020), Proposition 12
        order = 1 + math.exp(log_order)
        return rho * order + math.log1p(-1 / order) - math.log(slack * order) / (order - 1)

    best = optimize.minimize_scalar(of_order, bounds=(-5, 10), method="bounded").fun
    assert total <= best * 1.001
    assert total < 0.4 * count * epsilon


def test_the_risk_is_that_of_the_noise_at_the_composed_loss(dp):
    table = repeated(dp, 30, 0.2, accounting="optimal", slack=1e-6)
    so_far = table["epsilon_so_far"].tolist()
    risks = dp.dr_ha(epsilon=so_far)
    np.testing.assert_allclose(table["risk"], risks, rtol=1e-9)
    basic = repeated(dp, 30, 0.2)
    assert basic["epsilon_so_far"].iloc[-1] == 6
    assert basic["risk"].iloc[-1] == pytest.approx(dp.dr_ha(epsilon=6))
    assert [frame.attrs["dp"]["accounting"] for frame in (table, basic)] == ["optimal", "basic"]


def test_a_single_publication_costs_its_own_loss(dp):
    for accounting in ACCOUNTINGS[:2]:
        table = repeated(dp, 1, Fraction(1, 3), accounting=accounting, slack=1e-6)
        assert table["epsilon_so_far"].tolist() == [1 / 3]


REFUSED = {
    "an unknown accounting": ({"accounting": "pld"}, "'accounting' must be one of 'basic', 'advanced'"),
    "slack of sums": ({"slack": 1e-6}, "'slack' is for another accounting"),
    "no slack": ({"accounting": "advanced"}, r"'slack' must be in \(0, 1\)"),
    "slack of 0": ({"accounting": "zcdp", "slack": 0}, r"'slack' must be in \(0, 1\)"),
    "slack of 1": ({"accounting": "optimal", "slack": 1}, r"'slack' must be in \(0, 1\)"),
    "deltas beyond 1": ({"accounting": "optimal", "slack": 0.9, "delta": 0.2}, "'delta' must be in"),
    "no epsilon": ({"accounting": "optimal", "slack": 0.5}, "leaves no epsilon"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_accountings_that_do_not_fit_are_refused(dp, case):
    options, message = REFUSED[case]
    with pytest.raises(ParameterError, match=message):
        repeated(dp, 1, 0.01, **options)


def test_the_risk_of_children_that_add_up_to_released_parents_is_simulated():
    """Three records of one label, and 3 released for their cell: all pairs of noises of up to 300.

    Projected onto a sum of 3, the second of the counts 3 + e and f is (f - e) / 2, within 0 and 3. The label
    shows alone where that is below one half. False alarms: below 1e-5.
    """
    three = pd.DataFrame({"sex": ["f"] * 3, "ill": [True] * 3}).dp.protect(DOMAIN, epsilon=1)
    parents, draws = [3, 0], 2000
    simulated = three.dp.dr_ha(
        epsilon=0.1, method="monte_carlo", draws=draws, rng=3,
        postprocess=lambda noisy: postprocess.simplex(noisy, parents, axis=1),
    )  # fmt: skip
    e = np.arange(-300, 301)
    law = np.exp(-0.1 * np.abs(e)) * math.tanh(0.05)
    other = np.clip((e[np.newaxis, :] - e[:, np.newaxis]) / 2, 0, 3)  # e by rows, f by columns
    exact = float((law[:, np.newaxis] * law * ((other < 0.5) & (3 - other >= 0.5))).sum())
    assert abs(simulated["risk"].iloc[0] - exact) <= 4.5 * math.sqrt(exact * (1 - exact) / draws)
    free = float(law[e >= -2].sum() * law[e <= 0].sum())  # without the sum
    assert abs(free - exact) > 9 * math.sqrt(exact * (1 - exact) / draws)
