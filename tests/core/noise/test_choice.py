"""Exact choices: one uniform number decides, and further bits where it is on an edge."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy.core.noise import Source, choice, source
from pdprivacy.core.noise.choice import Rest, Weights, flips
from tests.support.statistics import accepts_share


def replayed(bits: bytes, then: bytes = b"\0") -> Source:
    """A source of these bytes and then one byte again and again."""
    waiting = bytearray(bits)

    def more(count: int) -> bytes:
        data = bytes(waiting[:count]).ljust(count, then)
        del waiting[:count]
        return data

    return Source(more, seeded=True)


def by_hand(lengths: list[int], exponents: list[int], rate: Fraction, u: Fraction) -> int:
    """The first candidate whose running sum exceeds u times the total, in eighty digits."""
    with localcontext() as context:
        context.prec = 80
        each = [
            n * (-Decimal(k) * rate.numerator / rate.denominator).exp()
            for n, k in zip(lengths, exponents, strict=True)
        ]
        aim, reached = Decimal(u.numerator) / Decimal(u.denominator) * sum(each), Decimal(0)
        for candidate, weight in enumerate(each):
            reached += weight
            if reached > aim:
                return candidate
    return max(candidate for candidate, n in enumerate(lengths) if n)


candidates = st.lists(st.tuples(st.integers(0, 2**31), st.integers(-50, 3000)), min_size=1, max_size=6)
rates = st.fractions(Fraction(1, 500), 5)


@given(candidates, rates, st.integers(0, 2**64 - 1))
def test_the_uniform_number_alone_decides(pairs, rate, value):
    lengths, exponents = (list(side) for side in zip(*pairs, strict=True))
    if not any(lengths):
        lengths[0] = 1
    weights = Weights(np.array(lengths), np.array(exponents), rate)
    drawn = weights.draw(replayed(value.to_bytes(8, "little") + b"\x55" * 40))
    u = Fraction((value << 320) + int.from_bytes(b"\x55" * 40, "little"), 1 << 384)
    assert drawn == by_hand(lengths, exponents, rate, u)
    quick = weights._quick(value)
    assert quick is None or quick == drawn
    assert weights._exact(value, replayed(b"\x55" * 40)) == drawn


def test_a_number_between_two_candidates_takes_more_bits():
    """Whatever the bits after those on the edge, they decide; double precision does not."""
    lengths, exponents, rate = [3, 5, 2], [0, 1, 7], Fraction(1, 3)
    with localcontext() as context:
        context.prec = 80
        each = [n * (-Decimal(k) / 3).exp() for n, k in zip(lengths, exponents, strict=True)]
        edge = each[0] / sum(each)
        first = int(edge * 2**128)
    value, second = first >> 64, first & (2**64 - 1)
    weights = Weights(np.array(lengths), np.array(exponents), rate)
    assert weights._quick(value) is None
    for off in (-(2**32), -1, 1, 2**32):
        bits = value.to_bytes(8, "little") + (second + off).to_bytes(8, "little")
        assert weights.draw(replayed(bits)) == int(off > 0)


@given(candidates, candidates, rates, st.binary(min_size=40, max_size=40))
def test_what_was_left_out_counts_as_if_it_had_not_been(pairs, more, rate, bits):
    """After 320 bits the others alternate: zeros without end are a number on an edge, which takes thousands
    of bits to tell from weights of 2**-20000. The next test has the edges, next to weights of usual size.
    """
    first, second = (np.array(side, np.int64).T for side in (pairs, more))
    if not first[0].any():
        first[0][0] = 1
    second[1] += max(int(first[1][first[0] > 0].min() - second[1].min()), 0)
    loads = []

    def load() -> Any:
        loads.append(True)
        return second[0], second[1]

    rest = Rest(int(second[0].sum()), int(second[1].min()), load)
    lazy = Weights(first[0], first[1], rate, rest)
    whole = Weights(np.append(first[0], second[0]), np.append(first[1], second[1]), rate)
    drawn = whole.draw(replayed(bits, b"\x55"))
    assert lazy.draw(replayed(bits, b"\x55")) == drawn
    assert drawn < len(first[0]) or loads


@pytest.mark.parametrize(("bits", "drawn"), [(b"", 1), (b"\0" * 7 + b"\x80", 2), (b"\xff" * 100, 2)])
def test_a_number_on_an_edge_belongs_to_the_candidate_above(bits, drawn):
    """Zero, a half and nearly one; what was left out is looked at, and changes nothing."""
    unit = np.array([1], np.int64)
    lengths, exponents = np.array([0, 1], np.int64), np.array([9, 3], np.int64)
    rest = Rest(1, 3, lambda: (unit, 3 * unit))
    whole = Weights(np.append(lengths, unit), np.append(exponents, 3 * unit), Fraction(1, 7))
    for weights in (whole, Weights(lengths, exponents, Fraction(1, 7), rest)):
        assert weights.draw(replayed(bits)) == drawn


def test_nothing_is_looked_at_that_hardly_counts():
    def load() -> Any:
        raise AssertionError

    lengths, exponents = np.array([1, 3]), np.array([0, 2])
    lazy = Weights(lengths, exponents, Fraction(1), Rest(2**31, 91, load))
    bits = source(5)
    assert {lazy.draw(bits) for _ in range(2000)} == {0, 1}


@pytest.mark.full
def test_coins_show_with_their_probability_also_where_digits_decide(monkeypatch):
    """A margin of one sends every coin to the digits."""
    gaps = np.repeat(np.array([0, 1, 3, 10]), 2000)
    for margin in (choice.MARGIN, 1.0):
        monkeypatch.setattr(choice, "MARGIN", margin)
        counts = flips(gaps, Fraction(1, 3), source(4)).reshape(4, 2000).sum(axis=1)
        assert counts[0] == 2000
        for gap, times in zip((1, 3, 10), counts[1:].tolist(), strict=True):
            assert accepts_share(times, 2000, math.exp(-gap / 3))
            assert not accepts_share(times, 2000, math.exp(-gap / 3) * 0.6)


def test_the_error_of_a_sum_of_weights_holds_where_nearly_all_weight_is_far_down():
    """An exponent near 42 is rounded by 2**-48: more than all other errors, if 2**62 candidates have it."""
    errors = []
    for numerator in range(1000, 1200):
        rate = Fraction(numerator, 1013)
        power = int(42 / rate)
        weights = Weights(np.array([1, 2**62 - 1]), np.array([0, power]), rate)
        with localcontext() as context:
            context.prec = 40
            exponent = Decimal(-power * numerator) / 1013
            whole = 1 + (2**62 - 1) * exponent.exp()
            error = abs(Decimal(float(weights._sums[-1])) - whole)
        assert error <= Decimal(weights._error)
        errors.append(float(error / whole))
    assert max(errors) > 2.0**-48
