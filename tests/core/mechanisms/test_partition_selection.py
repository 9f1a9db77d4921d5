"""Partition selection: exact losses by enumeration, the optimum, and the law of its draws."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from pdprivacy.core import noise
from pdprivacy.core.mechanisms import partition_selection
from pdprivacy.core.mechanisms.partition_selection import WHOLE, PartitionSelection
from pdprivacy.core.noise import Source
from pdprivacy.errors import ParameterError
from tests.support.statistics import accepts_only, counts_p_value

LOSSES = [
    (epsilon, delta)
    for epsilon in (0.25, 0.5, 1, 2, 3.3, 10, 30, 697, 2000)
    for delta in (0.9, 0.5, 0.1, 1e-3, 1e-6, 1e-12, 1e-17)
    if PartitionSelection(epsilon, delta).certain <= 60
]
NOTHING = "nothing"


def power(epsilon: object) -> tuple[Fraction, Fraction]:
    """Return rationals below and above e^epsilon."""
    with localcontext() as context:
        context.prec = 150
        value = Decimal(str(epsilon)).exp()
        return Fraction(value) * (1 - Fraction(1, 10**140)), Fraction(value) * (1 + Fraction(1, 10**140))


def law(selection: PartitionSelection, count: int) -> dict[object, Fraction]:
    """Return the released count of a label of so many records, by running the docstring's rule."""
    outputs: Counter[object] = Counter()
    for j, mass in enumerate(selection.masses, 1):
        shown = count + selection.threshold + 1 - j
        outputs[shown if shown > selection.threshold else NOTHING] += Fraction(mass, WHOLE)
    return dict(outputs)


def divergence(first: dict, other: dict, factor: Fraction) -> Fraction:
    return sum((max(Fraction(0), p - factor * other.get(key, 0)) for key, p in first.items()), Fraction(0))


@pytest.mark.parametrize(("epsilon", "delta"), LOSSES)
def test_delta_is_attained_and_never_exceeded(epsilon: float, delta: float) -> None:
    selection, exact = PartitionSelection(epsilon, delta), Fraction(Decimal(str(delta)))
    below, above = power(epsilon)
    worst = Fraction(0)
    for count in range(selection.certain + 2):
        pair = law(selection, count), law(selection, count + 1)
        for first, other in (pair, pair[::-1]):
            # e^epsilon lies between the two factors
            assert divergence(first, other, below) <= exact
            worst = max(worst, divergence(first, other, above))
    assert exact * (1 - Fraction(1, 2**98)) <= worst


@pytest.mark.parametrize(("epsilon", "delta"), LOSSES)
def test_the_probabilities_are_those_of_the_optimum(epsilon: float, delta: float) -> None:
    """The recurrence of Desfontaines et al., in decimals of 150 digits."""
    selection = PartitionSelection(epsilon, delta)
    with localcontext() as context:
        context.prec = 150
        factor, slack, best = Decimal(str(epsilon)).exp(), Decimal(str(delta)), Decimal(0)
        for reached in selection.cumulative:
            best = min(factor * best + slack, 1 - (1 - best - slack) / factor, Decimal(1))
            assert 0 <= best - Decimal(reached) / Decimal(WHOLE) <= Decimal("1e-30")
        assert best == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.1), (2, 1e-3), (3, 1e-6)])
def test_a_replaced_record_changes_two_labels(epsilon: float, delta: float) -> None:
    """The joint loss of one count that falls and one that rises, over all pairs of counts."""
    selection = PartitionSelection(epsilon, delta, "replace_one")
    below, _ = power(epsilon)
    laws = [law(selection, count) for count in range(selection.certain + 2)]

    def joint(a: int, b: int) -> dict:
        return {(x, y): p * q for x, p in laws[a].items() for y, q in laws[b].items()}

    for a, b in itertools.product(range(0, selection.certain + 1, 2), repeat=2):
        assert divergence(joint(a + 1, b), joint(a, b + 1), below) <= Fraction(str(delta))


def test_doubles_would_exceed_delta() -> None:
    """The masses of the recurrence in doubles fail the check that those of 192 bits pass."""
    delta, reached = 1e-17, 0.0
    masses = []
    while reached < 1:
        after = min(np.e * reached + delta, 1 - (1 - reached - delta) / np.e, 1.0)
        after = 1.0 if after <= reached else after
        masses.append(int(Fraction(after - reached) * WHOLE))
        reached = after
    rate = int(Fraction(power(1)[0]) * 2**300)
    assert max(partition_selection.excesses(masses, rate, 300)) > 2 * delta * WHOLE
    allowed = PartitionSelection(1, "1e-17").masses
    assert max(partition_selection.excesses(allowed, rate, 300)) <= Fraction(1, 10**17) * WHOLE


def test_every_draw_is_decided_by_192_bits() -> None:
    """A scripted source: the draw j is the least with more than the drawn number below pi(j)."""
    selection = PartitionSelection(1, 1e-3)
    edges = [value + step for value in selection.cumulative[:-1] for step in (-1, 0)]
    numbers = [0, WHOLE - 1, *edges]
    words = b"".join(
        np.array([value >> 128, value >> 64 & 2**64 - 1, value & 2**64 - 1], np.uint64).tobytes()
        for value in numbers
    )
    script = Source(lambda size: words[:size], seeded=True)
    count = selection.certain
    noisy = selection.draw(np.full(len(numbers), count), script)
    drawn = [sum(value >= reached for reached in selection.cumulative) + 1 for value in numbers]
    assert noisy.tolist() == [count + selection.threshold + 1 - j for j in drawn]
    again = selection.draw(np.array(drawn), script), selection.draw(np.array(drawn) - 1, script)
    assert (again[0] == selection.threshold + 1).all()
    assert (again[1] == 0).all()


def test_noise_and_probabilities_at_nine_and_eleven_tenths() -> None:
    noisy = PartitionSelection(0.5, 1e-3).draw(np.full(200_000, 1000), noise.source(1)) - 1000

    def claimed(factor: float):
        selection = PartitionSelection(0.5 / factor, 1e-3)
        values = selection.threshold + 1 - np.arange(selection.certain, 0, -1)
        below = np.cumsum([mass / WHOLE for mass in selection.masses[::-1]])
        return lambda x: np.append(below, 0.0)[np.searchsorted(values, np.asarray(x), side="right") - 1]

    accepts_only(noisy, claimed)
    selection = PartitionSelection(0.5, 1e-3)
    for count in (1, 5, selection.certain // 2):
        hits = (selection.draw(np.full(200_000, count), noise.source(2)) > 0).sum()
        share = selection.probability(count)
        counts = [200_000 - hits, hits]
        assert counts_p_value(counts, [1 - share, share]) > 1e-6 if share > 1e-3 else hits < 400


def test_counts_exceed_the_threshold_and_a_label_without_records_is_never_found() -> None:
    selection = PartitionSelection(2, 0.4)
    noisy = selection.draw(np.repeat([0, 1, 2, 50], 5000), noise.source(3)).reshape(4, -1)
    assert (noisy[0] == 0).all()
    assert set(np.unique(noisy)) - {0} >= {selection.threshold + 1}
    assert ((noisy == 0) | (noisy > selection.threshold)).all()
    assert (noisy[3] > 0).all()


def test_standard_deviation_and_margin() -> None:
    selection = PartitionSelection(1, 1e-6)
    noisy = np.array([selection.threshold + 1 - j for j in range(1, selection.certain + 1)])
    weights = np.array([float(Fraction(mass, WHOLE)) for mass in selection.masses])
    mean = noisy @ weights
    assert abs(mean) < 0.5
    assert selection.std == pytest.approx(np.sqrt(((noisy - mean) ** 2) @ weights), rel=1e-9)
    half = selection.plus_minus(0.95)
    assert weights[np.abs(noisy) <= half].sum() >= 0.95 > weights[np.abs(noisy) <= half - 1].sum()


def test_tables_take_less_than_20_milliseconds() -> None:
    """The least of three: the machine may be busy."""
    partition_selection._masses.cache_clear()
    spent = []
    for delta in ("1e-6", "2e-6", "3e-6"):
        start = time.process_time()
        PartitionSelection("0.003", delta)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.02


@pytest.mark.parametrize("epsilon", [697, 1000, "1e5", "1e400"])
def test_a_large_epsilon_finds_all_but_single_records(epsilon: object) -> None:
    selection = PartitionSelection(epsilon, 0.25)
    assert [selection.probability(n) for n in (1, 2, 3)] == pytest.approx([0.25, 1, 1])


@pytest.mark.parametrize(
    ("epsilon", "delta", "match"),
    [
        (1, 0, "'delta' must be positive"),
        (1, "1e-40", "too small"),
        ("1e-6", 1e-9, "too small"),
        (0, 0.1, "positive"),
    ],
)
def test_refused(epsilon: object, delta: object, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        PartitionSelection(epsilon, delta)
