"""Secret parts: what releases of one part cost together, by the exact law of everything that is answered.

A dialogue asks a part several times, and what it asks next depends on the answers. Its law is computed over
all parts that could have been drawn, for a table and each neighbour of it. Wherever the charges stay below a
total, the dialogue must be private within that total. Statistical tests are seeded; each is wrong with a
probability below 1e-6 if the code is right.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdprivacy import Approx, Budget, Column, Ledger, ProtectedFrame, Pure
from pdprivacy import frames as protection
from pdprivacy.amplification.sampling import Secret
from pdprivacy.amplification.suppression import (
    independent,
    keep_probabilities,
    outlier_scores,
    suppression_bound,
    suppression_floor,
    without_replacement,
)
from pdprivacy.amplification.suppression.amplification import Outliers, Poisson, WithoutReplacement
from pdprivacy.core import noise
from pdprivacy.core.accounting import Event, from_json, to_json
from pdprivacy.core.accounting.events import tally
from pdprivacy.core.gate.parts import LabelCoins
from pdprivacy.core.gate.records import records_of as opened
from pdprivacy.errors import (
    BudgetError,
    BudgetExceeded,
    DeclarationError,
    DeclarationWarning,
    OmissionWarning,
    ParameterError,
)
from tests.support.divergences import hockey_stick
from tests.support.processes import refused_in_a_fork
from tests.support.snapshots import records_of
from tests.support.statistics import accepts_counts, accepts_share

pytestmark = pytest.mark.filterwarnings("ignore::pdprivacy.errors.OmissionWarning")

AGE = pa.DataFrameSchema(
    {
        "age": pa.Column(int, pa.Check.in_range(0, 100), metadata={"dp": {}}),
        "sex": pa.Column(str, pa.Check.isin(["f", "m"]), metadata={"dp": {}}),
    }
)
LAWS = [
    Poisson(Fraction(1, 10)),
    Poisson(Fraction(2, 3)),
    Poisson(Fraction(1)),
    WithoutReplacement(Fraction(1, 4)),
    Outliers(Fraction(1, 10), Fraction(2, 10)),
    Outliers(Fraction(3, 10), Fraction(3, 10)),
]


def survey(rows: int = 400) -> pd.DataFrame:
    positions = np.arange(rows)
    return pd.DataFrame(
        {"age": 1 + (positions * 37) % 98, "sex": np.where(positions % 3, "f", "m"), "who": positions // 2}
    )


def private(rows: int = 400, epsilon: float = 100, **options: Any) -> ProtectedFrame:
    return survey(rows).dp.protect(AGE, epsilon=epsilon, **options)


# ---------------------------------------------------------------- dialogues, exactly


class Question:
    """A release of a part: its loss, and the law of its answer given the records of the part."""

    def __init__(self, epsilon: float, delta: float = 0.0, of: Callable[[tuple], bool] = len) -> None:
        self.epsilon, self.delta, self.of = epsilon, delta, of

    def law(self, part: tuple) -> dict[Any, float]:
        """Whether a condition holds, told with noise; with probability delta, the part itself is told."""
        high = 1 / (1 + math.exp(-self.epsilon))
        met = bool(self.of(part))
        chances = {True: high if met else 1 - high, False: 1 - high if met else high}
        chances = {answer: (1 - self.delta) * chance for answer, chance in chances.items()}
        if self.delta:
            chances[part] = self.delta
        return chances


def dialogue(law: Any, first: Question, then: dict[bool, Question | None]) -> tuple[Callable, float, float]:
    """The law of a dialogue given a part, and the most that any course of it is charged.

    After an answer that tells the part nothing more is asked.
    """
    charged = []

    def pay(secret: Secret, question: Question) -> None:
        loss: Pure | Approx = Pure(question.epsilon)
        if question.delta:
            loss = Approx(question.epsilon, question.delta)
        budget = Budget(epsilon=10**6, delta=0.99)
        with secret.turn():
            entry = secret.charge(
                secret.loss_of_part(loss), loss, lambda cost, _: budget.charge(cost, "question")
            )
        charged[-1] += np.array([float(entry.loss.epsilon), float(entry.loss.delta)])

    for _answer, question in then.items():
        charged.append(np.zeros(2))
        secret = Secret(law, "epsilon")
        pay(secret, first)
        if question is not None:
            pay(secret, question)
    epsilon, delta = np.max(charged, axis=0)

    def given(part: tuple) -> dict[Any, float]:
        chances: dict[Any, float] = defaultdict(float)
        for answer, chance in first.law(part).items():
            question = then.get(answer) if isinstance(answer, bool) else None
            if question is None:
                chances[answer,] += chance
                continue
            for second, likely in question.law(part).items():
                chances[answer, second] += chance * likely
        return chances

    return given, epsilon, delta


def answers(database: tuple, choose: Any, given: Callable) -> dict[Any, float]:
    """The law of all answers, over the parts that may be drawn of a database."""
    chances: dict[Any, float] = defaultdict(float)
    for kept, mass in choose(database).items():
        for answer, chance in given(tuple(database[position] for position in sorted(kept))).items():
            chances[answer] += mass * chance
    return chances


def worst(pairs: list[tuple[tuple, tuple]], choose: Any, given: Callable, epsilon: float) -> float:
    """The largest delta that neighbours need at this epsilon, in both directions."""
    delta = 0.0
    for left, right in pairs:
        first, second = answers(left, choose, given), answers(right, choose, given)
        delta = max(delta, hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
    return delta


def holds(part: tuple) -> bool:
    """Whether the record of the person is in the part."""
    return "x" in part


ADDED = [(("a", "b"), ("a", "b", "x"))]
REPLACED = [(("a", "b", "c", "y"), ("a", "b", "c", "x"))]
STRATEGIES = list(itertools.product([0.4, 2.0], [None, 0.3, 2.5], [None, 1.0]))


@pytest.mark.parametrize(("first", "after_yes", "after_no"), STRATEGIES)
@pytest.mark.parametrize("way", ["poisson", "without replacement"])
def test_a_dialogue_with_a_sample_costs_what_is_charged(way, first, after_yes, after_no):
    if way == "poisson":
        rate, pairs = Fraction(3, 10), ADDED
        law, choose = Poisson(rate), independent(lambda records: [float(rate)] * len(records))
    else:
        law, choose, pairs = WithoutReplacement(Fraction(1, 4)), without_replacement(1), REPLACED
    then = {
        True: None if after_yes is None else Question(after_yes, of=holds),
        False: None if after_no is None else Question(after_no, of=holds),
    }
    given, epsilon, delta = dialogue(law, Question(first, of=holds), then)
    assert delta == 0
    assert worst(pairs, choose, given, epsilon) < 1e-15
    if after_yes == after_no:  # what is charged is needed to the last digit: all answers may be yes
        assert worst(pairs, choose, given, epsilon * (1 - 1e-9)) > 0


def test_amplifying_each_release_of_a_sample_would_be_wrong():
    rate = Fraction(3, 10)
    choose = independent(lambda records: [0.3] * len(records))
    given, epsilon, _ = dialogue(
        Poisson(rate), Question(1, of=holds), {True: Question(1, of=holds), False: Question(1, of=holds)}
    )
    each = float(Poisson(rate).whole(Fraction(1)))
    assert 2 * each < epsilon
    assert worst(ADDED, choose, given, 2 * each) > 1e-3


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("first", [0.5, 3.0])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
def test_a_delta_after_an_answer_costs_the_share_of_those_who_may_be_in_the_sample(rate, first, delta):
    choose = independent(lambda records: [float(rate)] * len(records))
    question = Question(1e-9, delta, of=holds)
    for then in ({True: question, False: None}, {True: question, False: question}):
        given, epsilon, total = dialogue(Poisson(rate), Question(first, of=holds), then)
        assert worst(ADDED, choose, given, epsilon) <= total + 1e-15
    # a first release with a delta: the rate, exactly
    given, epsilon, total = dialogue(Poisson(rate), Question(first, delta, of=holds), {True: None})
    assert total == pytest.approx(float(rate) * delta)
    assert worst(ADDED, choose, given, epsilon) == pytest.approx(total, rel=1e-9)


def between(rate: float, first: float, of_part: float, of_whole: float) -> float:
    """The delta at which a dialogue is private that asks the part, or the whole table, by the first answer.

    It goes on with the part, at a delta of ``of_part``, after a yes, and else with all records.
    """
    laws = []
    for database in ADDED[0]:
        chances: dict[Any, float] = defaultdict(float)
        for kept, mass in independent(lambda records: [rate] * len(records))(database).items():
            part = tuple(database[position] for position in sorted(kept))
            for answer, chance in Question(first, of=holds).law(part).items():
                second, delta = (part, of_part) if answer else (database, of_whole)
                chances[answer, second] += mass * chance * delta
                chances[answer, None] += mass * chance * (1 - delta)
        laws.append(chances)
    whole = float(Poisson(Fraction(str(rate))).whole(Fraction(str(first))))
    return max(hockey_stick(laws[0], laws[1], whole), hockey_stick(laws[1], laws[0], whole))


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_deltas_of_a_part_and_of_the_whole_are_charged_on_one_scale(rate, first):
    law, total = Poisson(Fraction(str(rate))), 0.02
    share = float(law.delta_share(Fraction(first)))
    assert between(rate, first, total / share, total) <= total * (1 + 1e-12)
    # with the rate for a share, whoever asks can choose where deltas are cheap
    assert between(rate, first, total / rate, total) > total * 1.05


def line_scores(records: tuple) -> list[float]:
    scores = outlier_scores(np.array(records, dtype=float), bounds=(0, 1))
    return keep_probabilities(scores, 0.2, 0.35).tolist()


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("first", "after_yes", "after_no"), STRATEGIES)
def test_a_dialogue_with_what_suppression_left_costs_no_more_than_is_charged(first, after_yes, after_no):
    law = Outliers(Fraction(20, 100), Fraction(35, 100))
    values = [0.0, 0.0, 1.0, 0.5]
    pairs = []
    for size in range(4):
        for database in set(itertools.combinations(values, size)):
            pairs += [(database, (*database, record)) for record in (0.0, 0.5, 1.0)]
    for met in (lambda part: 1.0 in part, lambda part: sum(part) > 0.9, lambda part: len(part) % 2):
        then = {
            True: None if after_yes is None else Question(after_yes, of=met),
            False: None if after_no is None else Question(after_no, of=met),
        }
        given, epsilon, _ = dialogue(law, Question(first, of=met), then)
        assert worst(pairs, independent(line_scores), given, epsilon) == 0


# ---------------------------------------------------------------- laws


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("law", LAWS, ids=str)
@given(epsilon=st.fractions(Fraction(1, 1000), 20), more=st.fractions(Fraction(1, 1000), 20))
@settings(max_examples=25)
def test_laws_rise_bend_upwards_and_invert_downwards(law, epsilon, more):
    assert law.whole(Fraction(0)) == 0
    single, both = law.whole(epsilon), law.whole(epsilon + more)
    assert single < both
    if not isinstance(law, Outliers):
        assert both - single >= law.whole(more) * (
            1 - Fraction(1, 10**20)
        )  # never cheaper than a first release
        assert law.delta_share(Fraction(0)) <= law.delta_share(epsilon) <= 1
    back = law.part(single)
    assert law.whole(back) <= single
    assert back <= epsilon
    assert float(back) == pytest.approx(float(epsilon), rel=1e-4, abs=1e-4)


# ---------------------------------------------------------------- charges


@pytest.mark.parametrize("spend", ["noise", "epsilon"])
def test_charges_of_a_part_add_up_to_what_its_summed_loss_costs(spend):
    frame = private(epsilon=10)
    part = frame.dp.sample(frac=0.25, spend=spend)
    facts = protection.find(part)
    requested = [0.5, 0.125, 1.5, 0.01]
    for epsilon in requested:
        part.dp.mean("age", epsilon=epsilon)
    spent, law = frame.dp.budget.account.spent.epsilon, facts.secret.law
    assert spent == facts.secret.outer
    assert law.whole(facts.secret.inner) <= spent
    if spend == "noise":
        assert spent == sum(map(Fraction, map(str, requested)))
        assert float(law.whole(facts.secret.inner)) == pytest.approx(float(spent), rel=1e-15)
    else:
        assert facts.secret.inner == sum(map(Fraction, map(str, requested)))
        assert spent == law.whole(facts.secret.inner)
        assert spent < sum(map(Fraction, map(str, requested))) / 2


def test_the_noise_of_a_sample_is_that_of_its_larger_loss():
    frame = private(epsilon=10, delta="1e-3")
    whole = frame.dp.count(epsilon=0.5, mechanism="laplace").dp.metadata.scale
    noisy = frame.dp.sample(frac=0.25)
    first = noisy.dp.count(epsilon=0.5, mechanism="laplace").dp.metadata
    second = noisy.dp.count(epsilon=0.5, mechanism="laplace").dp.metadata
    inner = math.log((math.exp(0.5) - 1 + 0.25) / 0.25)
    both = math.log((math.exp(1) - 1 + 0.25) / 0.25)
    assert first.scale == pytest.approx(1 / inner, rel=1e-6)
    assert first.scale < whole / 2
    assert second.scale == pytest.approx(1 / (both - inner), rel=1e-6)
    assert first.epsilon == second.epsilon == 0.5
    assert first.lineage == ["sample(frac=0.25)"]
    cheap = frame.dp.sample(frac=0.25, spend="epsilon").dp.count(epsilon=0.5, mechanism="laplace").dp.metadata
    assert cheap.scale == pytest.approx(whole, rel=1e-9)
    assert cheap.epsilon == pytest.approx(math.log(1 + 0.25 * (math.exp(0.5) - 1)), rel=1e-12)


def test_a_first_delta_of_a_sample_is_divided_by_the_rate():
    frame = private(epsilon=10, delta="1e-3", neighbors="replace_one")
    part = frame.dp.sample(n=100)
    secret = protection.find(part).secret
    assert secret.loss_of_part(Approx(1, "1e-6")).delta == Fraction(4, 10**6)
    part.dp.mean("age", epsilon=1, delta=1e-6, mechanism="gaussian")
    assert frame.dp.budget.spent == (1.0, 1e-6)
    for delta, mechanism in ((0, "laplace"), (1e-6, "gaussian")):
        with pytest.raises(ParameterError, match="must be the only release"):
            part.dp.mean("age", epsilon=1, delta=delta, mechanism=mechanism)
    assert frame.dp.budget.spent == (1.0, 1e-6)


def test_a_refusal_changes_neither_the_budget_nor_the_part():
    frame = private(epsilon=1)
    part = frame.dp.sample(frac=0.5)
    part.dp.count(epsilon=0.75)
    secret = protection.find(part).secret
    before = (secret.inner, secret.outer)
    with pytest.raises(BudgetExceeded):
        part.dp.count(epsilon=0.5)
    with pytest.raises(ParameterError):
        part.dp.mean("age", epsilon=0.1, mechanism="gaussian", delta=0.9)
    assert (secret.inner, secret.outer) == before
    part.dp.count(epsilon=0.25)
    assert frame.dp.budget.left == (0.0, 0.0)


def test_all_frames_of_a_part_share_its_group():
    frame = private(epsilon=10)
    part = frame.dp.sample(frac=0.5, spend="epsilon")
    part.dp.query("age > 50").dp.count(epsilon=1)
    part.dp.clip(upper=60).dp.mean("age", epsilon=1)
    part.dp.partition("sex", epsilon=1)
    law = Poisson(Fraction(1, 2))
    assert frame.dp.budget.account.spent.epsilon == law.whole(Fraction(3))
    other = frame.dp.sample(frac=0.5, spend="epsilon")  # another part is another group
    other.dp.count(epsilon=1)
    assert frame.dp.budget.account.spent.epsilon == law.whole(Fraction(3)) + law.whole(Fraction(1))


def test_releases_from_several_threads_are_one_group():
    frame = private(epsilon=50)
    part = frame.dp.sample(frac=0.5, spend="epsilon")
    threads = [
        threading.Thread(target=lambda: [part.dp.count(epsilon="0.1") for _ in range(5)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert frame.dp.budget.account.spent.epsilon == Poisson(Fraction(1, 2)).whole(Fraction(2))


def test_groups_of_a_part_spend_what_the_part_paid():
    frame = private(epsilon=10)
    part = frame.dp.sample(frac=0.25)
    groups = part.dp.partition("sex", epsilon=1)
    inner = math.log((math.e - 1 + 0.25) / 0.25)
    assert frame.dp.budget.spent == (1.0, 0.0)
    for group in groups.values():
        assert group.dp.budget.left[0] == pytest.approx(inner, rel=1e-12)
        group.dp.count(epsilon=2)
    assert frame.dp.budget.spent == (1.0, 0.0)


def test_a_plan_of_a_part_is_charged_as_one():
    frame = private(epsilon=10, delta="1e-3", neighbors="replace_one")
    part = frame.dp.sample(n=100, spend="epsilon")
    calls = [("mean", "age", {"epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian"})] * 3
    plan = part.dp.plan_releases(calls, delta=3e-6, accounting="basic")
    plan.release()
    assert frame.dp.budget.account.spent.epsilon == WithoutReplacement(Fraction(1, 4)).whole(Fraction(3, 2))
    assert frame.dp.budget.account.spent.delta == Fraction(3, 4 * 10**6)
    with pytest.raises(ParameterError, match="cannot split the loss"):
        frame.dp.sample(n=100).dp.plan_releases(calls, delta=3e-6)
    with pytest.raises(ParameterError, match="cannot split the loss"):
        frame.dp.sample(n=100).dp.batch()


# ---------------------------------------------------------------- reports


def test_a_report_counts_a_part_as_one_release():
    frame = private(epsilon=30)
    part = frame.dp.sample(frac=0.25, spend="epsilon")
    for _ in range(20):
        part.dp.count(epsilon=0.5)
    whole = float(Poisson(Fraction(1, 4)).whole(Fraction(10)))
    report = frame.dp.budget.report(delta=1e-6)["epsilon"]
    assert report["basic"] == pytest.approx(whole, rel=1e-9)
    # twenty separate releases of that size would compose to less; these are one of the sum
    assert report["optimal"] >= whole - 1e-4
    assert len(tally(frame.dp.budget.events)) == 1
    assert from_json(to_json(frame.dp.budget.events)) == list(frame.dp.budget.events)


def test_events_of_a_group_are_one_event_of_their_sum():
    grouped = [(Event(Pure(0.1), group="a"), 2), (Event(Approx(0.5, 0.01), group="a"), 1)]
    others = [(Event(Pure(0.1)), 3), (Event(Pure(0.1), group="b"), 1)]
    assert set(tally([*grouped, *others])) == {
        (Event(Approx("0.7", "0.01"), group="a"), 1),
        (Event(Pure(0.1), group="b"), 1),
        (Event(Pure(0.1)), 3),
    }
    for accounting in ("filter", "zcdp"):
        budget = Budget(epsilon=5, delta=0.1, accounting=accounting)
        with pytest.raises(BudgetError):
            budget.charge(Pure(0.1), "part", events=[(Event(Pure(0.1), group="a"), 1)])
        assert budget.spent == (0.0, 0.0)


# ---------------------------------------------------------------- what is drawn


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(99, 100), Fraction(1, 2**33)])
def test_coins_have_their_probability(rate):
    thrown = noise.coins(300_000, rate, noise.source(4))
    assert accepts_share(thrown.sum(), 300_000, float(rate))


def test_coins_that_are_weighted_have_their_probabilities():
    chances = np.repeat([0.01, 0.25, 1 - 2.0**-40], 100_000)
    thrown = noise.weighted_coins(chances, noise.source(5)).reshape(3, -1).sum(axis=1)
    assert all(accepts_share(k, 100_000, p) for k, p in zip(thrown, (0.01, 0.25, 1.0), strict=True))


def test_the_bits_of_a_coin_decide_at_its_probability_exactly():
    words = iter([np.array([0x80000000, 0x7FFFFFFF, 0x80000001], dtype="<u4").tobytes(), b"\x00" * 64])
    source = noise.Source(lambda n: next(words)[:n], False)
    # 1/2 + 2**-40: the first word leaves it open, and the next bits, all zero, are below
    assert noise.coins(3, Fraction(1, 2) + Fraction(1, 2**40), source).tolist() == [True, True, False]


def test_all_parts_of_a_size_are_drawn_alike():
    source, counts = noise.source(6), dict.fromkeys(itertools.combinations(range(6), 3), 0)
    for _ in range(8000):
        counts[tuple(np.flatnonzero(noise.draw_without_replacement(6, 3, source)).tolist())] += 1
    assert accepts_counts(list(counts.values()), np.ones(len(counts)))


def test_a_sample_holds_records_at_its_rate_and_marks_what_can_be_repeated():
    frame = private(20_000)
    part = frame.dp.sample(frac=0.3, rng=8)
    assert accepts_share(len(records_of(part)), 20_000, 0.3)
    assert records_of(part).index.isin(records_of(frame).index).all()
    assert part.dp.count(epsilon=1).dp.metadata.seeded is True
    assert frame.dp.sample(frac=0.3).dp.count(epsilon=1).dp.metadata.seeded is False
    exact = private(neighbors="replace_one").dp.sample(n=100)
    assert len(records_of(exact)) == 100
    assert exact.dp.mean("age", epsilon=1).dp.metadata.rows == 100


def test_each_label_is_sampled_at_its_share():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(1, 100, 30_000), "sex": rng.choice(["f", "m", None], 30_000)})
    columns = {
        "age": AGE.columns["age"],
        "sex": pa.Column(str, pa.Check.isin(["f", "m"]), nullable=True, metadata={"dp": {}}),
    }
    whole = frame.dp.protect(pa.DataFrameSchema(columns), epsilon=100)
    part = records_of(whole.dp.sample(frac={"f": 0.5, "m": "1/3", None: 0.9}, by="sex", rng=8))
    for label, share in (("f", 0.5), ("m", 1 / 3), (None, 0.9)):
        members = [int((each["sex"].isna() if label is None else each["sex"] == label).sum())
                   for each in (part, frame)]  # fmt: skip
        assert accepts_share(*members, share)
        assert not accepts_share(*members, share + 0.1)
    coins = LabelCoins(Column("sex", "category", categories=("f",)), [Fraction(1), Fraction(1, 4)])
    others: Any = SimpleNamespace(engine=SimpleNamespace(codes=lambda *_: np.full(9000, -1)))
    undeclared = coins.of(others)(noise.source(1))
    assert accepts_share(int(undeclared.sum()), 9000, 0.25)


SHARES = {"f": 0.2, "m": 0.6}


def test_a_label_that_is_sampled_loses_where_others_are_kept_whole():
    with pytest.warns(OmissionWarning, match="No factor scales a count") as caught:
        private(200).dp.sample(frac={"f": 1, "m": 0.1}, by="sex")
    assert len(caught) == 1


def test_shares_by_label_cost_what_the_largest_of_them_does():
    """By enumeration of all small tables: the bound of Theorem 5.3, and a mechanism that meets it."""
    law = independent(lambda database: [SHARES[label] for label in database])
    epsilon, delta = 0.9, 0.01
    largest = math.log1p(0.6 * math.expm1(epsilon))
    bound = suppression_bound("fm", 3, law, epsilon, delta)
    assert bound == pytest.approx((largest, 0.006), rel=1e-12)
    assert suppression_floor("fm", 3, law, epsilon, delta) == pytest.approx((largest, 0.006), rel=1e-12)
    frame = private(2000, epsilon=10)
    part = frame.dp.sample(frac=SHARES, by="sex", spend="epsilon")
    part.dp.mean("age", epsilon=epsilon)
    assert frame.dp.budget.spent[0] == pytest.approx(largest, rel=1e-12)
    assert part.dp.lineage["step"].tolist() == ["sample(frac=0.2 to 0.6, by='sex')"]


def test_units_are_sampled_with_all_their_records():
    frame = private(2000, unit="who", max_rows=2)
    part = frame.dp.sample(frac=0.4, rng=9)
    times = pd.Series(opened(protection.find(part)).units).value_counts()
    assert set(times) == {2}
    assert accepts_share(len(times), 1000, 0.4)


def test_suppression_leaves_out_those_far_from_the_others_likelier():
    frame = pd.DataFrame({"age": [50] * 9000 + [100] * 1000, "sex": ["f"] * 10_000})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = frame.dp.protect(AGE, epsilon=100)
    left = whole.dp.suppress_outliers("age", 0.1, 0.9, rng=3)
    # distances of 0.5: scores of 0.05 and 0.45
    for age, rows, score in ((50, 9000, 0.05), (100, 1000, 0.45)):
        chance = 1 - (0.1 + 0.8 * score)
        assert accepts_share(int((records_of(left)["age"] == age).sum()), rows, chance)
    discrete = whole.dp.suppress_outliers("age", 0.1, 0.9, distance="discrete", rng=4)
    for age, rows, score in ((50, 9000, 0.1), (100, 1000, 0.9)):
        chance = 1 - (0.1 + 0.8 * score)
        assert accepts_share(int((records_of(discrete)["age"] == age).sum()), rows, chance)


# ---------------------------------------------------------------- told and refused


def test_the_lineage_says_what_each_step_costs():
    part = private(unit="who", max_rows=2).dp.query("age < 90").dp.sample(frac=0.5)
    lineage = part.dp.lineage
    assert lineage["step"].tolist() == [
        "protect(unit='who', max_rows=2)",
        "query('age < 90')",
        "sample(frac=0.5)",
    ]
    assert lineage["stability"].isna().tolist() == [False, False, True]
    assert lineage["stability"].dropna().tolist() == [2, 1]
    assert lineage["cost"].tolist() == ["epsilon", "epsilon", "ln(1 + 0.5 (e^epsilon - 1))"]


def test_a_loss_is_told_once_with_its_figure():
    frame = private()
    with pytest.warns(OmissionWarning, match=r"1\.75 times") as caught:
        frame.dp.sample(frac=0.3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    inner = math.log((math.e - 1 + 0.3) / 0.3)
    assert f"{1 / (0.3 * inner):.3g}" == "1.75"
    with pytest.warns(OmissionWarning, match="costs"):
        frame.dp.suppress_outliers("age", 0.1, 0.2)


ADD = {"neighbors": "add_remove"}
REPLACE = {"neighbors": "replace_one"}


@pytest.mark.full(keep=10)
@pytest.mark.parametrize(
    ("options", "call"),
    [
        (ADD, lambda dp: dp.sample()),
        (ADD, lambda dp: dp.sample(frac=0.5, n=3)),
        (ADD, lambda dp: dp.sample(n=3)),
        (ADD, lambda dp: dp.sample(frac=0)),
        (ADD, lambda dp: dp.sample(frac=1.2)),
        (ADD, lambda dp: dp.sample(frac=-1)),
        (ADD, lambda dp: dp.sample(frac=float("nan"))),
        (ADD, lambda dp: dp.sample(frac=0.5, spend="both")),
        (ADD, lambda dp: dp.sample(frac=0.5, by="sex")),
        (ADD, lambda dp: dp.sample(frac={"f": 0.5, "m": 0.1})),
        (ADD, lambda dp: dp.sample(frac={"f": 0.5}, by="sex")),
        (ADD, lambda dp: dp.sample(frac={"f": 0.5, "m": 0.1, None: 1}, by="sex")),
        (ADD, lambda dp: dp.sample(frac={"f": 0.5, "x": 0.1}, by="sex")),
        (ADD, lambda dp: dp.sample(frac={"f": 0.5, "m": 0}, by="sex")),
        (ADD, lambda dp: dp.sample(frac={"f": 0.5, "m": 1}, by=["sex", "age"])),
        (ADD, lambda dp: dp.sample(n=3, by="sex")),
        (ADD, lambda dp: dp.sample(by="sex")),
        (REPLACE, lambda dp: dp.sample(frac={"f": 0.5, "m": 0.1}, by="sex")),
        (REPLACE, lambda dp: dp.sample(n=3, by="sex")),
        (ADD | {"unit": "who", "max_rows": 2}, lambda dp: dp.sample(frac={"f": 0.5, "m": 0.1}, by="sex")),
        (REPLACE, lambda dp: dp.sample(frac=0.5)),
        (REPLACE, lambda dp: dp.sample(n=0)),
        (REPLACE, lambda dp: dp.sample(n=401)),
        (REPLACE, lambda dp: dp.sample(n=2.5)),
        (REPLACE, lambda dp: dp.query("age < 50").dp.sample(n=3)),
        (REPLACE | {"unit": "who", "max_rows": 2}, lambda dp: dp.sample(n=3)),
        (ADD, lambda dp: dp.sample(frac=0.5).dp.sample(frac=0.5)),
        (ADD, lambda dp: dp.sample(frac=0.5).dp.suppress_outliers("age", 0.1, 0.2)),
        (
            ADD,
            lambda dp: next(iter(dp.sample(frac=0.5).dp.partition("sex", epsilon=1).values())).dp.sample(
                frac=0.5
            ),
        ),
        (ADD, lambda dp: dp.suppress_outliers("age", 0.3, 0.2)),
        (ADD, lambda dp: dp.suppress_outliers("age", 0.001, 0.2)),
        (ADD, lambda dp: dp.suppress_outliers("age", 0.5, 0.995)),
        (ADD, lambda dp: dp.suppress_outliers("age", 0.1, 0.125)),
        (ADD, lambda dp: dp.suppress_outliers(["age", "sex"], 0.1, 0.2)),
        (ADD, lambda dp: dp.suppress_outliers("sex", 0.1, 0.2)),
        (ADD, lambda dp: dp.suppress_outliers("age", 0.1, 0.2, distance="cosine")),
        (REPLACE, lambda dp: dp.suppress_outliers("age", 0.1, 0.2)),
        (ADD | {"unit": "who", "max_rows": 2}, lambda dp: dp.suppress_outliers("age", 0.1, 0.2)),
        (ADD, lambda dp: dp.suppress_outliers("age", 0.1, 0.2).dp.count(epsilon=0.5)),
        (ADD, lambda dp: dp.sample(frac=0.5).dp.dr_ha("sex", "age", epsilon=1)),
    ],
)
def test_an_impossible_call_is_refused_before_any_charge(options, call):
    frame = private(epsilon=10, delta="1e-3", **options)
    with pytest.raises((ParameterError, DeclarationError)):
        call(frame.dp)
    assert frame.dp.budget.spent in ((0.0, 0.0), (1.0, 0.0))  # where a partition was paid for before


@pytest.mark.parametrize("accounting", ["filter", "zcdp"])
def test_budgets_that_count_otherwise_are_refused(accounting):
    frame = private(epsilon=10, delta="1e-3", accounting=accounting)
    for call in (lambda: frame.dp.sample(frac=0.5), lambda: frame.dp.suppress_outliers("age", 0.1, 0.2)):
        with pytest.raises(BudgetError, match="sums alone"):
            call()


def test_nulls_have_no_distance():
    schema = pa.DataFrameSchema(
        {"age": pa.Column(float, pa.Check.in_range(0, 100), nullable=True, metadata={"dp": {}})}
    )
    frame = pd.DataFrame({"age": [1.0, None, 5.0]}).dp.protect(schema, epsilon=10)
    with pytest.raises(ParameterError, match="dropna"):
        frame.dp.suppress_outliers("age", 0.1, 0.2)
    assert len(records_of(frame.dp.dropna().dp.suppress_outliers("age", 0.1, 0.2))) <= 2


@pytest.mark.parametrize("rows", [0, 1])
def test_small_tables_have_parts(rows):
    frame = private(rows)
    assert len(records_of(frame.dp.sample(frac=0.5))) <= rows
    assert len(records_of(frame.dp.suppress_outliers("age", 0.1, 0.2))) <= rows
    kept = frame.dp.suppress_outliers("sex", 0.1, 0.2, distance="discrete")
    assert len(records_of(kept)) <= rows


@pytest.mark.parametrize("spend", ["noise", "epsilon"])
def test_the_remaining_epsilon_can_be_spent_and_no_more(spend):
    frame = private(epsilon=2)
    part = frame.dp.sample(frac=0.25, spend=spend)
    part.dp.count(epsilon=0.5)
    left = part.dp.remaining()
    with pytest.raises(BudgetExceeded):
        part.dp.count(epsilon=left * 1.0001)
    part.dp.count(epsilon=left)
    assert frame.dp.budget.left[0] < 1e-6
    assert private(epsilon=0.5).dp.suppress_outliers("age", 0.1, 0.2).dp.remaining() == 0.0


def test_a_ledger_keeps_the_group_of_a_part(tmp_path):
    for plan in (False, True):
        ledger = Ledger(tmp_path / f"{plan}.db")
        frame = survey().dp.protect(AGE, epsilon=100, budget=ledger, name="survey")
        memory = private()
        for table in (frame, memory):
            part = table.dp.sample(frac=0.5, spend="epsilon")
            if plan:
                part.dp.plan_releases([("count", {"epsilon": 0.1})] * 3).release()
                part.dp.count(epsilon=0.1)
            else:
                for _ in range(20):
                    part.dp.count(epsilon=0.1)
        stored = Ledger(tmp_path / f"{plan}.db").budget("survey")
        assert len({event.group for event, _ in stored.events}) == 1
        assert all(event.group for event, _ in stored.events)
        reports = [budget.report(delta=1e-5)["epsilon"] for budget in (stored, memory.dp.budget)]
        pd.testing.assert_series_equal(*reports)
        assert reports[0]["best"] >= stored.spent[0] - 1e-3
        ledger.audit()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_cannot_release_a_part():
    part = private().dp.sample(frac=0.5)
    assert b"belongs to the process that drew it" in refused_in_a_fork(lambda: part.dp.count(epsilon=0.1))
    part.dp.count(epsilon=0.1)


def test_groups_and_plans_of_a_part_have_no_risk_of_the_whole():
    schema = pa.DataFrameSchema(
        {
            "age": pa.Column(
                int,
                pa.Check.in_range(0, 100),
                metadata={"dp": {"role": "quasi_identifier", "bins": [0, 50, 100]}},
            ),
            "sex": pa.Column(str, pa.Check.isin(["f", "m"]), metadata={"dp": {"role": "sensitive"}}),
        }
    )
    frame = survey().dp.protect(schema, epsilon=100)
    part = frame.dp.sample(frac=0.5, spend="epsilon")
    (planned,) = part.dp.plan_releases([("crosstab", "age", "sex", {"epsilon": 1})]).release()
    group = part.dp.partition("age", epsilon=2)["[0, 50)"]
    tables = [part.dp.crosstab("age", "sex", epsilon=1), planned, group.dp.crosstab("age", "sex", epsilon=1)]
    assert [table.dp.metadata.dr_ha["by_records"] for table in tables] == [None] * 3
    assert all("chance" in table.dp.metadata.dr_ha["reason"] for table in tables)
    assert frame.dp.crosstab("age", "sex", epsilon=1).dp.metadata.dr_ha["by_records"] is not None
    with pytest.raises(ParameterError, match="chance"):
        group.dp.dr_ha("age", "sex", epsilon=1)


@pytest.mark.parametrize("spend", ["noise", "epsilon"])
def test_a_large_budget_leaves_room_for_what_suppression_left(spend):
    part = private(epsilon=10**6).dp.suppress_outliers("age", 0.1, 0.12, spend=spend)
    left = part.dp.remaining()
    assert 90 < left < 110
    part.dp.count(epsilon=left)


def test_bounds_that_are_one_place_have_no_distance():
    schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(5, 5), metadata={"dp": {}})})
    with pytest.warns(DeclarationWarning):
        frame = pd.DataFrame({"age": [5, 5]}).dp.protect(schema, epsilon=1)
    with pytest.raises(ParameterError, match="must differ"):
        frame.dp.suppress_outliers("age", 0.1, 0.2)


def test_the_budget_lists_steps_briefly_and_the_release_in_full():
    part = private(unit="who", max_rows=2).dp.clip(upper={"age": 60}).dp.query("age > 5").dp.sample(frac=0.5)
    count = part.dp.count(epsilon=0.5)
    assert part.dp.budget.entries["release"].tolist() == [
        "count where (age > 5) after protect(unit='who', max_rows=2), clip, sample(frac=0.5)"
    ]
    assert count.dp.metadata.lineage == [
        "protect(unit='who', max_rows=2)",
        "clip(upper={'age': 60})",
        "sample(frac=0.5)",
    ]
    with pytest.raises(ParameterError, match="'frac' must be in"):
        private().dp.sample(frac=2)
