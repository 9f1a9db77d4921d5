"""The gate (`spec`, `tasks`, `request`, `entered`): charge, read, draw; scales and sums are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pdprivacy import Approx, Budget, Column, Domain, Pure
from pdprivacy.core import noise
from pdprivacy.core.gate.request import Request
from pdprivacy.core.mechanisms import Gaussian, Geometric, Laplace, gaussian_delta
from pdprivacy.core.mechanisms.gaussian import exact_multiplier
from pdprivacy.core.noise import discrete_laplace
from pdprivacy.core.statistics import Answer, Part, Read
from pdprivacy.errors import BudgetExceeded, ParameterError
from tests.support.gate import measured

HALF = Fraction(1, 2)
ONE = Fraction(1)


@dataclass
class Told:
    """A statistic of given parts and numbers that keeps a diary."""

    parts: tuple[Part, ...]
    numbers: list[Any]
    diary: list[str] = field(default_factory=list)
    error: Exception | None = None

    reads = (Read("read"),)

    def read(self) -> list[Any]:
        """As an engine that holds these numbers."""
        self.diary.append("read the table")
        if self.error:
            raise self.error
        return self.numbers

    def exact(self, answers: Any) -> list[Any]:
        return answers[0]

    def finish(self, noisy: Any) -> Answer:
        return Answer(noisy[0].values, noisy[0].std)


class Diary(Budget):
    """A budget that writes its charges down."""

    def __init__(self, diary: list[str], **total: Any) -> None:
        super().__init__(**total)
        self.diary = diary

    def charge(self, cost: Any, label: str, mechanism: str = "", **more: Any) -> Any:
        entry = super().charge(cost, label, mechanism, **more)
        self.diary.append(f"charge {label}")
        return entry


def counts(size: int = 1, weight: Fraction = ONE, l1: int = 1) -> Part:
    return Part("counts", weight, l1, l1 * l1, ONE, size, counts=True)


def gate(statistic: Told, cost: Any, mechanism: str, budget: Budget | None = None, rng: Any = 1) -> Any:
    budget = Budget(10**9, "0.9") if budget is None else budget
    request = Request(cost.epsilon, cost.delta, mechanism=mechanism)
    (result,) = measured(statistic, statistic, budget, request, rng)
    return result


# ---------------------------------------------------------------- the order of things


def test_a_charge_comes_before_the_data_and_the_data_before_the_noise(monkeypatch):
    statistic = Told((counts(), counts()), [[1], [2]])

    def drawn(scale: Fraction, size: int, source: Any) -> Any:
        statistic.diary.append("draw")
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(noise, "discrete_laplace", drawn)
    statistic.parts = (counts(weight=HALF), counts(weight=HALF))
    gate(statistic, Pure(1), "geometric", Diary(statistic.diary, epsilon=1))
    assert statistic.diary == ["charge a release", "read the table", "draw", "draw"]


@pytest.mark.parametrize(
    ("cost", "mechanism", "rng", "error"),
    [
        (Pure(2), "geometric", None, BudgetExceeded),
        (Approx("0.5", "0.2"), "gaussian", None, BudgetExceeded),
        (Pure("0.5"), "gaussian", None, ParameterError),
        (Approx("0.5", "1e-6"), "geometric", None, ParameterError),
        (Approx("0.5", "1e-6"), "laplace", None, ParameterError),
        (Pure("0.5"), "normal", None, ParameterError),
        (Pure("0.5"), "laplace", "seed", ParameterError),
        (Pure("0.5"), "laplace", -1, ParameterError),
    ],
)
def test_a_refusal_charges_nothing_reads_nothing_and_draws_nothing(cost, mechanism, rng, error, monkeypatch):
    statistic = Told((counts(),), [[1]])
    budget = Diary(statistic.diary, epsilon=1, delta="0.1")
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(noise, name, lambda *_: statistic.diary.append("draw"))
    with pytest.raises(error):
        gate(statistic, cost, mechanism, budget, rng)
    assert statistic.diary == []
    assert budget.spent == (0, 0)


def test_geometric_noise_is_for_counts():
    statistic = Told((counts(weight=HALF), Part("sum", HALF, 3, 9, Fraction(1, 4))), [[1], [2]])
    budget = Diary(statistic.diary, epsilon=1)
    with pytest.raises(ParameterError, match="counts"):
        gate(statistic, Pure(1), "geometric", budget)
    assert statistic.diary == []


@pytest.mark.parametrize("broken", ["read", "draw"])
def test_a_failure_after_the_charge_stays_charged(broken, monkeypatch):
    statistic = Told((counts(),), [[1]], error=RuntimeError("lost") if broken == "read" else None)
    budget = Budget(1)
    if broken == "draw":

        def lost(*_: Any) -> Any:
            raise RuntimeError("lost")

        monkeypatch.setattr(noise, "discrete_laplace", lost)
    with pytest.raises(RuntimeError, match="lost"):
        gate(statistic, Pure("0.75"), "geometric", budget)
    assert budget.spent == (0.75, 0)
    with pytest.raises(BudgetExceeded):
        gate(Told((counts(),), [[1]]), Pure("0.5"), "geometric", budget)


@pytest.mark.parametrize(("rng", "seeded"), [(None, False), (7, True), (np.random.default_rng(7), True)])
def test_a_reproducible_release_says_so(rng, seeded):
    assert gate(Told((counts(),), [[1]]), Pure(1), "laplace", rng=rng).seeded is seeded


def test_a_seed_repeats_a_release_and_the_operating_system_does_not():
    statistic = Told((counts(100),), [np.arange(100)])

    def values(rng: Any) -> list[float]:
        return gate(statistic, Pure(1), "laplace", rng=rng).noisy[0].values.tolist()

    assert values(3) == values(3)
    assert values(3) != values(4)
    assert values(None) != values(None)
    generator = np.random.default_rng(3)
    assert values(generator) != values(generator)  # a generator advances


# ---------------------------------------------------------------- scales

PARTS = st.lists(
    st.tuples(
        st.integers(1, 2**36),
        st.integers(1, 50),
        st.integers(-60, 20),
        st.integers(1, 5),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=6,
)


def drawn_parts(drawn: list[tuple[int, ...]]) -> tuple[Part, ...]:
    total = sum(weight for _, weight, *_ in drawn)
    return tuple(
        Part(
            f"part {number}",
            Fraction(weight, total),
            l1,
            max(1, l1 * l1 // shrink),
            Fraction(2) ** power,
            size,
            l0=min(size, 2),
        )
        for number, (l1, weight, power, size, shrink) in enumerate(drawn)
    )


EPSILONS = st.sampled_from(
    [Fraction(1, 10**9), Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(50)]
)


@given(drawn=PARTS, epsilon=EPSILONS)
def test_laplace_scales_follow_from_sensitivity_and_weight(drawn, epsilon):
    parts = drawn_parts(drawn)
    measured = gate(Told(parts, [[0] * part.size for part in parts]), Pure(epsilon), "laplace")
    spent = Fraction(0)
    for part, mechanism, noisy in zip(parts, measured.mechanisms, measured.noisy, strict=True):
        assert isinstance(mechanism, Laplace)
        exact = mechanism.steps * mechanism.grid
        assert exact >= part.l1 * part.unit / (part.weight * epsilon)
        rounding = (part.l0 * mechanism.grid if mechanism.grid > part.unit else 0) / part.unit
        assert exact <= (part.l1 + rounding) * part.unit / (part.weight * epsilon) * (1 + Fraction(1, 10**9))
        # how many grid steps neighbours lie apart, rounded where the grid is coarser: the loss, exactly
        apart = part.l1 * part.unit / mechanism.grid
        if mechanism.grid > part.unit:
            apart = Fraction(math.floor(apart) + part.l0)
        assert apart.denominator == 1
        spent += apart / mechanism.steps
        assert noisy.std == pytest.approx(math.sqrt(2) * float(exact), rel=1e-12)
    assert spent <= epsilon


@given(drawn=PARTS, epsilon=EPSILONS)
def test_geometric_scales_follow_from_sensitivity_and_weight(drawn, epsilon):
    parts = tuple(
        Part(part.name, part.weight, part.l1 % 4 + 1, 1, ONE, part.size, counts=True)
        for part in drawn_parts(drawn)
    )
    measured = gate(Told(parts, [[0] * part.size for part in parts]), Pure(epsilon), "geometric")
    spent = Fraction(0)
    for part, mechanism in zip(parts, measured.mechanisms, strict=True):
        assert isinstance(mechanism, Geometric)
        assert mechanism.grid == 1
        spent += part.l1 * mechanism.epsilon / mechanism.sensitivity
    assert spent == epsilon


@given(drawn=PARTS, epsilon=EPSILONS, delta=st.sampled_from([Fraction(1, 10**6), Fraction(1, 20)]))
def test_gaussian_scales_follow_from_sensitivity_and_weight(drawn, epsilon, delta):
    assume(epsilon >= Fraction(1, 10**5))  # below, Gaussian noise is refused
    parts = drawn_parts(drawn)
    measured = gate(Told(parts, [[0] * part.size for part in parts]), Approx(epsilon, delta), "gaussian")
    moved = Fraction(0)  # squared distance of neighbours over all parts, each in its own sigma
    sigma = exact_multiplier(epsilon, delta)
    for part, mechanism in zip(parts, measured.mechanisms, strict=True):
        assert isinstance(mechanism, Gaussian)
        exact = mechanism.steps * mechanism.grid
        claimed = sigma**2 * part.l2_squared * part.unit**2 / part.weight
        assert claimed <= exact**2
        if mechanism.grid <= part.unit:
            assert exact**2 <= claimed * (1 + Fraction(1, 10**9))
        apart = part.l2_squared * part.unit**2 / exact**2
        if mechanism.grid > part.unit:  # each number that moves may be rounded a step further
            longer = math.sqrt(part.l2_squared) * part.unit + part.l0 * mechanism.grid
            apart = Fraction(longer * (1 - 1e-12)) ** 2 / exact**2
        moved += apart
        # the noise is a discrete one on a grid far below its scale
        assert exact >= mechanism.grid * 2**20
        assert math.log2(part.unit / mechanism.grid).is_integer()
    assert moved <= 1 / sigma**2
    assert gaussian_delta(float(epsilon), 1 / math.sqrt(float(moved))) <= float(delta) * (1 + 1e-9)


def test_one_gaussian_release_of_several_parts_is_a_release_of_one_vector():
    """Shares of the squared norm, not of epsilon: two equal parts cost a factor sqrt(2), not 2."""
    cost = Approx(1, "1e-5")
    alone = gate(Told((counts(),), [[0]]), cost, "gaussian").mechanisms[0].scale
    two = gate(Told((counts(weight=HALF),) * 2, [[0]] * 2), cost, "gaussian").mechanisms[0].scale
    assert two / alone == pytest.approx(math.sqrt(2), rel=1e-9)


# ---------------------------------------------------------------- exactness


def multiples(values: Any, grid: Fraction) -> list[Fraction]:
    return [Fraction(value) / grid for value in np.asarray(values, dtype=float).tolist()]


@pytest.mark.parametrize("mechanism", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "1000"])
def test_released_numbers_lie_on_the_grid(mechanism, epsilon):
    cost = Approx(epsilon, "1e-6") if mechanism == "gaussian" else Pure(epsilon)
    numbers = np.random.default_rng(0).integers(-(2**20), 2**20, 200)
    for whole in (numbers, numbers.tolist(), numbers * 2**32, [number << 90 for number in numbers.tolist()]):
        measured = gate(Told((counts(200),), [whole]), cost, mechanism)
        (kind,) = measured.mechanisms
        assert all(step.denominator == 1 for step in multiples(measured.noisy[0].values, kind.grid))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_direct_release_lies_on_the_grid_end_to_end(mechanism):
    frame = pd.DataFrame({"x": np.random.default_rng(1).uniform(-1.5, 1.5, 50)})
    domain = Domain((Column("x", "float", lower=-2.0, upper=2.0),))  # centred at zero
    private = frame.dp.protect(domain, epsilon=1000, delta="0.1", neighbors="replace_one")
    delta = 0 if mechanism == "laplace" else "1e-5"
    fine = [
        Fraction(float(private.dp.mean("x", epsilon=1, delta=delta, mechanism=mechanism, rng=seed)["x"]))
        for seed in range(20)
    ]
    scale = private.dp.mean("x", epsilon=1, delta=delta, mechanism=mechanism).attrs["dp"]["scale"]
    # a power of two between a millionth and a billionth of a millionth of the scale divides them all
    step = Fraction(1, math.lcm(*(value.denominator for value in fine)))
    assert step.denominator & (step.denominator - 1) == 0
    assert scale * 2.0**-60 < step <= scale * 2.0**-20
    tail = {value / step % 2 for value in fine}
    assert tail == {0, 1}  # and the last place is used


def test_whole_numbers_beyond_a_double_are_added_exactly(monkeypatch):
    large = 2**60 + 1
    steps = iter([-(2**60), 5 - 2**60, 0])
    for mechanism in ("discrete_laplace",):
        monkeypatch.setattr(
            noise, mechanism, lambda scale, size, source: np.full(size, next(steps), dtype=np.int64)
        )
    part = Part("sum", ONE, 2**30, 2**60, ONE)
    assert gate(Told((part,), [[large]]), Pure(1), "laplace").noisy[0].values == [1]
    assert gate(Told((part,), [[large]]), Pure(1), "laplace").noisy[0].values == [6]
    huge = 3**100
    assert gate(Told((part,), [[huge]]), Pure(1), "laplace").noisy[0].values == [float(huge)]


@pytest.mark.parametrize("large", [2**53 - 1, 2**53 + 1, 2**62 + 1, 10**30 + 1])
@pytest.mark.parametrize("as_array", [True, False])
def test_noise_finer_than_the_unit_is_added_before_anything_is_rounded(large, as_array, monkeypatch):
    if as_array and large >= 2**63:
        return  # no such array
    whole = np.array([large, -large]) if as_array else [large, -large]
    for drawn in (1, -1, 3 * 2**20 + 1, 2**54 + 1):
        monkeypatch.setattr(
            noise, "discrete_laplace", lambda scale, size, source, drawn=drawn: np.full(size, drawn)
        )
        measured = gate(Told((counts(2),), [whole]), Pure(1), "laplace")
        grid = measured.mechanisms[0].grid
        assert grid < 1
        assert measured.noisy[0].values.tolist() == [
            float(large + drawn * grid),
            float(-large + drawn * grid),
        ]


@given(
    numbers=st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5),
    power=st.integers(-40, 10),
    epsilon=st.sampled_from(["0.001", "1", "100"]),
    seed=st.integers(0, 2**32),
)
def test_released_numbers_are_the_rounded_exact_sum(numbers, power, epsilon, seed):
    """The same as adding the same draws in exact arithmetic, and rounding once."""
    part = Part("sum", ONE, 3 * 2**20, 9 * 2**40, Fraction(2) ** power, len(numbers))
    measured = gate(Told((part,), [numbers]), Pure(epsilon), "laplace", rng=seed)
    (kind,) = measured.mechanisms
    steps = discrete_laplace(kind.steps, len(numbers), noise.source(seed)).tolist()
    expected = [
        float(number * part.unit + step * kind.grid) for number, step in zip(numbers, steps, strict=True)
    ]
    assert measured.noisy[0].values.tolist() == expected


def test_arrays_and_lists_of_the_same_numbers_give_the_same_release():
    numbers = np.random.default_rng(5).integers(0, 10**6, 300)
    for mechanism, cost in (("laplace", Pure(1)), ("geometric", Pure(1)), ("gaussian", Approx(1, "1e-5"))):
        by_array = gate(Told((counts(300),), [numbers]), cost, mechanism).noisy[0].values
        by_list = gate(Told((counts(300),), [numbers.tolist()]), cost, mechanism).noisy[0].values
        assert by_array.tolist() == by_list.tolist()


def test_an_empty_vector_is_released_as_one():
    measured = gate(Told((counts(0),), [np.array([], dtype=np.int64)]), Pure(1), "laplace")
    assert measured.noisy[0].values.tolist() == []


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("moves", [1, 2])
def test_rounding_to_a_grid_coarser_than_the_unit_is_paid_for(mechanism, moves, monkeypatch):
    """2**34 steps and little epsilon make more steps of noise than can be drawn. Neighbours that are
    rounded to a coarser grid still lie within the sensitivity that the noise is made for."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(noise, name, lambda scale, size, source: np.zeros(size, dtype=np.int64))
    # no whole number of coarser steps
    l1, weight = (2**34 if mechanism == "laplace" else 2**46) // 7 * 5, Fraction(1, 66)
    part = Part("squares", weight, l1 * moves, l1 * l1 * moves, Fraction(1, 2**10), 2, l0=moves)
    parts = (part, Part("others", 1 - weight, 1, 1, ONE))
    cost = Pure("1e-9") if mechanism == "laplace" else Approx("1e-5", "1e-12")
    rng = np.random.default_rng(4)
    most = Fraction(0)
    for _ in range(200):
        first = rng.integers(-(2**60), 2**60, 2).tolist()
        step = [int(rng.choice([-l1, l1])), int(rng.choice([-l1, l1])) if moves == 2 else 0]
        second = [number + by for number, by in zip(first, step, strict=True)]
        released = [
            gate(Told(parts, [numbers, [0]]), cost, mechanism, Budget(1, "0.5"))
            for numbers in (first, second)
        ]
        kind = released[0].mechanisms[0]
        assert kind.grid > part.unit
        moved = [
            Fraction(a) - Fraction(b)
            for a, b in zip(released[0].noisy[0].values, released[1].noisy[0].values, strict=True)
        ]
        assert all((by / kind.grid).denominator == 1 for by in moved)
        if mechanism == "laplace":
            most = max(most, sum(map(abs, moved)) / kind.sensitivity)
        else:
            most = max(most, sum(by * by for by in moved) / weight / kind.sensitivity**2)
    assert Fraction(99, 100) <= most <= 1


@pytest.mark.parametrize("epsilon", ["1e-5", "1e-3", "1e-12"])
@pytest.mark.parametrize("as_array", [True, False])
def test_a_charged_release_is_returned_however_small_epsilon_is(epsilon, as_array):
    parts = (Part("squares", Fraction(1, 66), 2**34, 2**68, ONE),) * 66
    budget = Budget(1)
    numbers = [np.array([7]) if as_array else [7]] * 66
    measured = gate(Told(parts, numbers), Pure(epsilon), "laplace", budget)
    assert budget.spent == (float(epsilon), 0)
    exact, grid = 66 * 2**34 / Fraction(epsilon), measured.mechanisms[0].grid
    # never below, and above by no more than a step of rounding can move
    assert exact <= Fraction(measured.mechanisms[0].scale) <= exact + 66 * grid / Fraction(epsilon)
    for noisy, kind in zip(measured.noisy, measured.mechanisms, strict=True):
        assert (Fraction(noisy.values[0]) / kind.grid).denominator == 1
