"""The gate (`verification`) refuses, before a charge, a release whose noise does not pay for its reads."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Budget, Column, Domain, Pure
from pdprivacy.core.accounting import Event
from pdprivacy.core.gate import execute, verification
from pdprivacy.core.gate.tasks import calibrate
from pdprivacy.core.mechanisms import MECHANISMS
from pdprivacy.core.statistics.interface import Engine, Part, Quantity
from pdprivacy.errors import DefectError

DOMAIN = Domain(
    [
        Column("age", "integer", lower=0, upper=100),
        Column("pay", "float", lower=-50, upper=2000),
        Column("work", "float", lower=1, upper=60, nullable=True),
        Column("group", "category", categories=("a", "b", "c")),
    ]
)
FRAME = pd.DataFrame(
    {
        "age": [20, 30, 40, 50] * 5,
        "pay": [0.5, 1000.0, 2.0, 30.0] * 5,
        "work": [8.0, np.nan, 20.0, 40.0] * 5,
        "group": ["a", "b", "a", "c"] * 5,
    }
)
TENTH_LESS, TENTH_MORE = Fraction(9, 10), Fraction(11, 10)


class CaughtError(Exception):
    """A release that was about to be made."""


def protected(**more: Any) -> Any:
    return pdprivacy.protect(FRAME, DOMAIN, budget=Budget(10, "0.1"), **more).dp


def release_of(call: Callable[[], Any]) -> Any:
    """The release that a call is about to execute."""
    with mock.patch.object(execute, "_made", side_effect=CaughtError) as made, pytest.raises(CaughtError):
        call()
    return made.call_args.args[0]


def forged(task: Any, **members: Any) -> Any:
    """A task of which some members are replaced."""
    kind = type("Forged", (type(task),), {"__slots__": (), **members})
    return kind(*(getattr(task, name) for name in task.__dataclass_fields__))


def with_price(task: Any, change: Callable[[Any], Any]) -> Any:
    """A task whose price is changed."""
    return forged(task, price=lambda _, cost: change(task.price(cost)))


def with_reads(task: Any, change: Callable[[Any], Any]) -> Any:
    """A task that reads other numbers."""
    return forged(task, reads=property(lambda _: tuple(map(change, task.reads))))


def scaled(price: Any, factor: Fraction) -> Any:
    """The price with noise whose scale is so many times as large; what it states is as it was."""
    mechanisms = []
    for mechanism in price.mechanisms:
        other = copy.copy(mechanism)
        inner = getattr(other, "noise", other)
        if inner is not other:
            inner = copy.copy(inner)
            object.__setattr__(other, "noise", inner)
        object.__setattr__(inner, "steps", inner.steps * factor)
        mechanisms.append(other)
    return replace(price, mechanisms=tuple(mechanisms))


def check_refused(release: Any, task: Any, match: str) -> None:
    """The forged task is refused with nothing charged or read, and the true one is not."""
    budget = release.facts.budget
    with (
        mock.patch.object(execute, "read_and_draw", side_effect=AssertionError("read")),
        pytest.raises(DefectError, match=match) as error,
    ):
        execute.execute(replace(release, task=task))
    assert budget.spent == (0, 0)
    assert budget.entries.empty
    assert "Nothing was charged" in error.value.message
    execute.execute(release)
    assert budget.spent[0] > 0


BOTH = ["add_remove", "replace_one"]
CALLS: dict[str, Callable[[Any], Any]] = {
    "laplace": lambda dp: dp.mean("age", epsilon=1),
    "laplace, several": lambda dp: dp.sum(["age", "pay"], epsilon=1, releases=3),
    "laplace, truncated": lambda dp: dp.sum("age", epsilon=1, bounding="truncated"),
    "laplace, truncated at both ends": lambda dp: dp.sum(
        "age", epsilon=1, bounding="truncated", bounds=(0, 900)
    ),
    "laplace, published": lambda dp: dp.sum("age", epsilon=1, bounding="truncated", calibration="published"),
    "laplace, on a coarse grid": lambda dp: dp.count("work", epsilon="1e-7", mechanism="laplace"),
    "geometric": lambda dp: dp.value_counts("group", epsilon=1),
    "geometric, truncated": lambda dp: dp.count(
        "work", epsilon=1, bounding="truncated", mechanism="geometric"
    ),
    "staircase": lambda dp: dp.sum("age", epsilon=1, mechanism="staircase"),
    "gaussian": lambda dp: dp.var(["age", "work"], epsilon=1, delta="1e-6", mechanism="gaussian"),
    "gaussian, truncated": lambda dp: dp.sum(
        "age", epsilon=1, delta="1e-6", mechanism="gaussian", bounding="truncated"
    ),
    "discrete gaussian": lambda dp: dp.count("work", epsilon=1, delta="1e-6", mechanism="discrete_gaussian"),
    "discrete gaussian, of a table": lambda dp: dp.value_counts(
        "group", epsilon=1, delta="1e-6", mechanism="discrete_gaussian"
    ),
    "discrete gaussian, shared": lambda dp: dp.count(
        ["age", "work"], epsilon=1, delta="1e-6", mechanism="discrete_gaussian"
    ),
    "generalized": lambda dp: dp.sum("age", epsilon=1, delta="1e-6", mechanism="generalized_gaussian", p=3),
    "exponential": lambda dp: dp.median("age", epsilon=1),
    "exponential, per group": lambda dp: dp.groupby("group").median("age", epsilon=1),
    "labels": lambda dp: dp.mode("group", epsilon=1),
    "several labels": lambda dp: dp.top_k("group", 2, epsilon=1),
    "largest counts": lambda dp: dp.mode("group", epsilon=1, mechanism="noisy_max"),
    "bounds": lambda dp: dp.find_bounds("age", epsilon=1),
    "means of clusters": lambda dp: dp.kmeans(["age", "pay"], 2, epsilon=1),
}
"""A release for each rule of the gate."""


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("name", CALLS)
def test_noise_a_tenth_too_small_is_refused(name, neighbors):
    release = release_of(lambda: CALLS[name](protected(neighbors=neighbors)))
    task, facts = release.task, release.facts
    larger = task.price(task.cost)
    if name != "laplace, published":  # its price is what its noise loses
        larger = scaled(larger, TENTH_MORE)
    assert verification.verified(facts, task, larger) is larger
    check_refused(
        release, with_price(task, lambda price: scaled(price, TENTH_LESS)), "loses more|smaller than"
    )


@pytest.mark.parametrize("name", ["laplace, several", "gaussian", "discrete gaussian, shared"])
def test_shares_that_add_up_to_more_than_1_are_refused(name):
    release = release_of(lambda: CALLS[name](protected()))
    task = release.task

    def more(price):
        parts = tuple(replace(part, weight=part.weight * TENTH_MORE) for part in price.parts)
        return replace(price, parts=parts, mechanisms=calibrate(parts, task.request))

    check_refused(release, with_price(task, more), "shares of its parts do not add up")


def test_noise_for_one_release_of_several_is_refused():
    release = release_of(lambda: protected().sum("age", epsilon=1, releases=2))
    single = release_of(lambda: protected().sum("age", epsilon=1)).task.price(Pure(1))
    check_refused(release, with_price(release.task, lambda _: single), "loses more")


def test_events_that_state_less_than_the_noise_loses_are_refused():
    release = release_of(lambda: protected().mean("age", epsilon=1))
    half = with_price(release.task, lambda price: replace(price, events=((Event(Pure("0.5")), 1),)))
    check_refused(release, half, "loses more")
    release = release_of(lambda: CALLS["gaussian"](protected()))

    def quieter(price):
        ((event, number),) = price.events
        noise = replace(event.noise, multiplier=event.noise.multiplier * TENTH_MORE)
        return replace(price, events=((replace(event, noise=noise), number),))

    check_refused(release, with_price(release.task, quieter), "smaller than the events say")


# ---------------------------------------------------------------- bounds


def wider(read: Any) -> Any:
    """The read of the same columns with an upper bound that is a tenth higher."""
    if read.name not in ("grouped", "clusters"):
        return read
    quantities = tuple(
        Quantity(q.column, q.lower, q.lower + (q.upper - q.lower) * 1.1, centered=bool(q.center))
        for q in read.args[0]
    )
    return replace(read, args=(quantities, *read.args[1:]))


READS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda dp: dp.mean("pay", epsilon=1),
    "mean of several": lambda dp: dp.mean(["pay", "work"], epsilon=1),
    "sum": lambda dp: dp.sum("pay", epsilon=1),
    "mean of groups": lambda dp: dp.groupby("group").mean("pay", epsilon=1),
    "means of clusters": lambda dp: dp.kmeans(["pay", "work"], 2, epsilon=1),
}


SCOPES: list[dict[str, Any]] = [
    {"neighbors": "add_remove"},
    {"neighbors": "add_remove", "public_rows": 15},
    {"neighbors": "replace_one"},
]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", READS)
def test_a_read_with_wider_bounds_than_the_calibration_is_refused(name, scope):
    release = release_of(lambda: READS[name](protected(**scope)))
    check_refused(release, with_reads(release.task, wider), "can move further")


@pytest.mark.parametrize("neighbors", BOTH)
def test_the_sensitivity_of_another_column_is_refused(neighbors):
    """In whole steps, which noise is added to, one of the two columns moves further than the other."""
    dp = protected(neighbors=neighbors)
    releases = [release_of(lambda name=name: dp.mean(name, epsilon=1)) for name in ("age", "pay")]
    other, release = sorted(releases, key=lambda release: release.task.statistic.parts[-1].l1)
    assert other.task.statistic.parts[-1].l1 < TENTH_LESS * release.task.statistic.parts[-1].l1
    check_refused(release, forged(release.task, price=lambda _, cost: other.task.price(cost)), "can move")


@pytest.mark.parametrize(
    "call",
    [
        lambda dp: dp.mean("age", epsilon=1),
        lambda dp: dp.count(epsilon=1),
        lambda dp: dp.value_counts("group", epsilon=1),
        lambda dp: dp.median("age", epsilon=1),
        lambda dp: dp.top_k("group", 2, epsilon=1),
        lambda dp: dp.mode("group", epsilon=1, mechanism="noisy_max"),
        lambda dp: dp.find_bounds("age", epsilon=1),
        lambda dp: dp.groupby("group").sum("pay", epsilon=1),
    ],
)
def test_noise_for_one_record_of_a_unit_that_has_several_is_refused(call):
    """The task of a frame whose units are its records, handed over with facts that say otherwise."""
    release = release_of(lambda: call(protected()))
    scope = replace(release.facts.scope, contribution=2)
    with pytest.raises(DefectError):
        verification.verified(replace(release.facts, scope=scope), release.task, release.task.price(Pure(1)))


@pytest.mark.parametrize("method", ["mean", "var", "cov"])
def test_a_number_that_is_divided_by_more_rows_than_are_public_is_refused(method):
    columns = ["age", "pay"] if method == "cov" else "age"
    release = release_of(lambda: getattr(protected(neighbors="replace_one"), method)(columns, epsilon=1))
    price, facts = release.task.price(Pure(1)), release.facts
    for scope in (replace(facts.scope, rows=10), replace(facts.scope, neighbors="add_remove", rows=10)):
        with pytest.raises(DefectError, match="can move further"):
            verification.verified(replace(facts, scope=scope), release.task, price)


def test_counts_that_need_a_replaced_record_are_refused_for_an_added_one():
    release = release_of(lambda: protected().value_counts("group", epsilon=1))
    scope = replace(release.facts.scope, neighbors="replace_one", rows=20)
    with pytest.raises(DefectError, match="counts can move further"):
        verification.verified(replace(release.facts, scope=scope), release.task, release.task.price(Pure(1)))


def test_an_l0_sensitivity_that_is_too_small_is_refused():
    """A replaced record changes two cells: truncated noise for one cell loses less by its statement."""
    release = release_of(
        lambda: protected(neighbors="replace_one").value_counts("group", epsilon=1, bounding="truncated")
    )

    def one_cell(price):
        parts = tuple(replace(part, l0=1) for part in price.parts)
        return replace(price, parts=parts, mechanisms=calibrate(parts, release.task.request))

    check_refused(release, with_price(release.task, one_cell), "can move further")


# ---------------------------------------------------------------- the rules themselves


def test_each_read_and_each_noise_has_a_rule():
    """A further read of the engines, or a further mechanism, must be given one."""
    reads = {name for name, member in vars(Engine).items() if not name.startswith("_") and member is not None}
    assert reads | {"labels_of_units"} == set(verification.ANSWERS) | verification.SELECTED
    by_l1 = {name for name, mechanism in MECHANISMS.items() if mechanism.norm == "l1"}
    assert by_l1 == set(verification.LOSSES)


def test_an_unknown_task_is_refused():
    release = release_of(lambda: protected().mean("age", epsilon=1))
    with pytest.raises(DefectError, match="cannot verify a SimpleNamespace"):
        verification.verified(release.facts, SimpleNamespace(), release.task.price(Pure(1)))


@pytest.mark.parametrize("width", [3, 7, 40])
@pytest.mark.parametrize("moved", [1, 2, 3])
def test_the_loss_of_truncated_geometric_noise_is_that_of_its_probabilities(width, moved):
    """The largest quotient of probabilities over all outcomes and neighbours within the bounds."""
    scale = 1.7
    weights = np.exp(-np.abs(np.subtract.outer(np.arange(width + 1), np.arange(width + 1))) / scale)
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    loss = max(float(np.abs(logs[d:] - logs[:-d]).max()) for d in range(1, moved + 1))
    part = Part("counts", Fraction(1), moved, moved**2, Fraction(1), counts=True, lower=Fraction(0))
    part = replace(part, upper=Fraction(width))
    noise: Any = SimpleNamespace(steps=Fraction(scale), grid=Fraction(1), integer=True)
    recomputed = verification._laplace(part, noise, SimpleNamespace(bounding="truncated"), (1.0, 0.0))
    assert recomputed >= loss - 1e-12
    if 2 * moved <= width:
        assert recomputed == pytest.approx(loss, rel=1e-12)
    else:  # the continuous law, which loses more
        assert recomputed <= 1.5 * loss


@pytest.mark.parametrize("width", [1.5, 4.0, math.inf])
def test_the_loss_of_truncated_laplace_noise_is_that_of_its_density(width):
    """Twice the movement over the scale is not reached: the mass within the bounds grows away from an end."""
    scale, moved = 1.25, 1.0

    def mass(center: float) -> float:
        return 2 - math.exp(-center / scale) - math.exp(-(width - center) / scale)

    loss = moved / scale + math.log(mass(moved) / mass(0.0))
    unit = Fraction(1, 2**40)
    part = Part("sum", Fraction(1), 2**40, 2**80, unit, lower=Fraction(0))
    part = replace(part, upper=None if width == math.inf else Fraction(width))
    noise: Any = SimpleNamespace(steps=Fraction(scale) / unit, grid=unit, integer=False)
    recomputed = verification._laplace(part, noise, SimpleNamespace(bounding="truncated"), (1.0, 0.0))
    assert recomputed == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_the_loss_of_generalized_noise_is_that_of_the_number_at_the_tail(p):
    """Numbers beyond it have the probability delta, by quadrature of exp(-t^p)."""
    delta, scale, grid = 1e-3, 6.0, Fraction(1, 2**30)
    t = np.linspace(0, 40, 2_000_001)
    density = np.exp(-(t**p))
    tails = np.cumsum(density[::-1])[::-1] / density.sum()
    tail = float(t[np.searchsorted(-tails, -delta)])
    loss = (tail + 1 / scale) ** p - tail**p
    mechanism = MECHANISMS["generalized_gaussian"](1, delta, 1, p, grid)
    object.__setattr__(mechanism, "steps", Fraction(scale) / grid)
    part = Part("sum", Fraction(1), 2**30, 2**60, grid)
    recomputed = verification._generalized(part, mechanism, SimpleNamespace(bounding=None), (1.0, delta))
    assert recomputed == pytest.approx(loss, rel=1e-3)


LARGE = Domain(
    (Column("c", "category", categories=tuple("abcd")), Column("x", "integer", lower=0, upper=100))
)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "options",
    [
        *({"mechanism": "generalized_gaussian", "p": p, "delta": delta, "epsilon": 0.1}
          for p, delta in ((1.5, 0.5), (3, 0.2), (7, 0.1), (100, 0.01), (3, 0.9))),
        {"mechanism": "discrete_gaussian", "delta": 1e-6, "epsilon": 4e-3},
    ],
    ids=str,
)  # fmt: skip
def test_noise_of_extreme_losses_is_not_refused(neighbors, options):
    frame = pd.DataFrame({"c": list("abcd") * 3, "x": range(1, 13)})
    private = pdprivacy.protect(frame, LARGE, epsilon=1000, delta=0.999, neighbors=neighbors)
    private.dp.value_counts("c", **options)


@pytest.mark.parametrize("releases", [1, 3])
def test_the_least_epsilon_of_discrete_gaussian_noise_is_compared_exactly(releases):
    """As a double 1e-6 lies below the least epsilon that has a better conversion from rho."""
    private = pdprivacy.protect(
        pd.DataFrame({"c": list("abcd"), "x": range(1, 5)}), LARGE, epsilon=1, delta=0.1
    )
    options = {"epsilon": Fraction(releases, 10**6), "delta": 1e-6, "releases": releases}
    private.dp.nunique(["c", "x"], mechanism="discrete_gaussian", **options)


def test_the_delta_of_wide_discrete_noise_is_not_summed(monkeypatch):
    """One unit of a thousand records at a small loss: sums over all integers took seconds, and memory."""
    frame = pd.DataFrame({"c": list("abcd") * 3, "x": range(1, 13), "unit": range(12)})
    private = pdprivacy.protect(frame, LARGE, epsilon=1, delta=1e-3, unit="unit", max_rows=1000)
    monkeypatch.setattr(verification, "_discrete_delta", pytest.fail)
    private.dp.count(epsilon=0.004, delta=1e-6, mechanism="discrete_gaussian")
