"""Directed rounding: each result is on its side of the exact one, also past all doubles."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy.exact import exp_up, float_down, float_up, log_up, root_down, root_up

positives = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


@given(positives)
def test_roundings_are_on_their_side(number):
    assert root_down(number) ** 2 <= number <= root_up(number) ** 2
    assert root_up(number) - root_down(number) <= root_up(number) * Fraction(1, 10**48)
    low, high = float_down(number), float_up(number)
    assert Fraction(repr(low)) <= number <= Fraction(repr(high))
    assert Fraction(repr(low)) == number or Fraction(low) < number
    assert Fraction(repr(high)) == number or Fraction(high) > number
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)
    assert log_up(number) == pytest.approx(math.log(number), rel=1e-12, abs=1e-12)
    assert exp_up(log_up(number)) >= number
    assert exp_up(log_up(number)) <= number * (1 + Fraction(1, 10**45))
    assert (float_down(-number), float_up(-number)) == (-high, -low)


def test_roundings_past_all_floats():
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_up(-(Fraction(10) ** 400)) == -1.7976931348623157e308
    assert float_up(Fraction(1, 10**400)) == 5e-324
    assert exp_up(Fraction(-(10**9))) == Fraction(1, 10**400)
    assert root_down(Fraction(0)) == 0
