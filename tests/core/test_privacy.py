from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdprivacy import ZCDP, Approx, Pure, Unit
from pdprivacy.core.accounting import compose
from pdprivacy.core.privacy import loss, rational, show
from pdprivacy.errors import ParameterError

# Numbers.


@given(st.integers(min_value=-(10**15) + 1, max_value=10**15 - 1), st.integers(min_value=-40, max_value=40))
def test_a_float_is_the_decimal_it_was_typed_as(digits, power):
    # Fifteen digits survive the way through a double.
    typed = f"{digits}e{power}"
    exact = digits * Fraction(10) ** power
    assert rational(float(typed), "x") == exact
    assert rational(np.float64(typed), "x") == exact
    assert rational(typed, "x") == exact
    assert rational(Decimal(typed), "x") == exact


@given(st.integers(min_value=-999_999, max_value=999_999), st.integers(min_value=-20, max_value=20))
def test_a_float_of_single_precision_is_the_decimal_it_was_typed_as(digits, power):
    # Six digits survive the way through a single.
    assert rational(np.float32(f"{digits}e{power}"), "x") == digits * Fraction(10) ** power


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_comes_back(value):
    assert float(rational(value, "x")) == value


def test_a_tenth_is_a_tenth():
    assert rational(0.1, "x") * 3 == rational(0.3, "x") == Fraction(3, 10)
    assert 0.1 * 3 != 0.3  # which is why


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (3, Fraction(3)),
        (-7, Fraction(-7)),
        (2**70 + 1, Fraction(2**70 + 1)),
        ("1/3", Fraction(1, 3)),
        (" -2/6 ", Fraction(-1, 3)),
        ("1e-6", Fraction(1, 10**6)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.int8(-3), Fraction(-3)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.float64(1e-6), Fraction(1, 10**6)),
        (-0.0, Fraction(0)),
        (5e-324, Fraction(5, 10**324)),
    ],
    ids=repr,
)
def test_numbers_of_all_kinds_are_exact(value, exact):
    number = rational(value, "x")
    assert isinstance(number, Fraction)
    assert number == exact


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.float64("inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        True,
        np.bool_(False),
        None,
        "",
        "epsilon",
        "nan",
        "inf",
        "1/0",
        "0x10",
        "1 2",
        1j,
        b"1",
        [1],
        np.array([0.1]),
        np.array(0.1),
    ],
    ids=repr,
)
def test_infinite_and_invalid_numbers_are_refused_by_name(value):
    with pytest.raises(ParameterError, match=r"^'rho' must be a finite number \(got ") as caught:
        rational(value, "rho")
    assert isinstance(caught.value, ValueError)


# Losses.

LOSSES = [Pure(0.1), Pure("1/3"), Approx(0.1, 1e-6), Approx("1/7", "1/1000"), ZCDP(0.1), ZCDP("1/3")]


@pytest.mark.parametrize("value", LOSSES, ids=repr)
def test_losses_are_frozen_values(value):
    for field in ("epsilon", "delta", "rho", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, field, Fraction(0))
    for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert copied == value
        assert hash(copied) == hash(value)
    assert len({value, copy.deepcopy(value)}) == 1


def test_losses_are_equal_where_their_numbers_are():
    assert Pure(0.1) == Pure("1/10") == Pure(Decimal("0.1")) != Pure(0.2)
    assert Approx(1, 1e-6) == Approx("1", "1e-6") != Approx(1, 1e-7)
    assert len({Pure(1), ZCDP(1), Approx(1, 0)}) == 3
    assert Pure(0.3).delta == 0


@pytest.mark.parametrize("count", [1, 2, 3, 10, 997])
@pytest.mark.parametrize("value", LOSSES, ids=repr)
def test_times_adds_up_exactly(value, count):
    multiple = value.times(count)
    assert type(multiple) is type(value)
    fields = [name for name in ("epsilon", "delta", "rho") if hasattr(value, name)]
    for field in fields:
        total = Fraction(0)
        for _ in range(count):
            total += getattr(value, field)
        assert getattr(multiple, field) == total


@pytest.mark.parametrize("count", [1, 3, 10, 500])
@pytest.mark.parametrize("value", LOSSES, ids=repr)
def test_one_charge_of_count_n_equals_n_charges(value, count):
    assert compose([value] * count) == value.times(count)


def test_a_loss_with_a_slack_of_zero_composes_to_what_times_says():
    whole, parts = Approx(0.1, 0).times(3), compose([Approx(0.1, 0)] * 3)
    assert (whole.epsilon, whole.delta) == (parts.epsilon, parts.delta) == (Fraction(3, 10), 0)


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True, None])
@pytest.mark.parametrize("value", [Pure(0.1), Approx(0.1, 1e-6), ZCDP(0.1)], ids=repr)
def test_a_count_is_a_positive_whole_number(value, count):
    with pytest.raises(ParameterError, match=r"^'count' must be"):
        value.times(count)


def test_a_count_of_numpy_is_a_count():
    assert Pure(0.1).times(np.int64(3)) == Pure(0.3)


def test_slack_cannot_add_up_to_one():
    assert Approx(1, "1/4").times(3).delta == Fraction(3, 4)
    with pytest.raises(ParameterError, match=r"^'delta' must be in \[0, 1\)"):
        Approx(1, "1/4").times(4)


@pytest.mark.parametrize("value", [0, -1, "-1/3", -0.0])
def test_losses_must_be_positive(value):
    for make, name in ((Pure, "epsilon"), (lambda e: Approx(e, 0.1), "epsilon"), (ZCDP, "rho")):
        with pytest.raises(ParameterError, match=rf"^'{name}' must be positive \(got {value!r}\)\.$"):
            make(value)


@pytest.mark.parametrize("delta", [1, 1.0, 2, -1e-9, "-1/2"])
def test_a_slack_out_of_range_is_refused(delta):
    with pytest.raises(ParameterError, match=rf"^'delta' must be in \[0, 1\) \(got {delta!r}\)\.$"):
        Approx(1, delta)
    with pytest.raises(ParameterError, match=r"^'delta' must be in \[0, 1\)"):
        loss(1, delta)


def test_loss_is_pure_exactly_where_there_is_no_slack():
    for zero in (0, 0.0, -0.0, "0", Decimal("0.0")):
        assert loss(0.5, zero) == Pure(0.5)
    assert loss(0.5) == Pure(0.5)
    assert loss(0.5, 5e-324) == Approx(0.5, 5e-324)
    with pytest.raises(ParameterError, match=r"^'delta' must be a finite number"):
        loss(1, math.nan)
    with pytest.raises(ParameterError, match=r"^'epsilon' must be a finite number"):
        loss(math.nan, 0)


# Units.


def test_units_are_two_frozen_values():
    assert Unit() == Unit("add_remove") != Unit("replace_one")
    assert hash(Unit()) == hash(Unit("add_remove"))
    with pytest.raises(AttributeError):
        Unit().neighbors = "replace_one"


@pytest.mark.parametrize("neighbors", ["replace", "Add_Remove", "", None, 1, ["add_remove"]])
def test_other_neighbours_are_refused(neighbors):
    with pytest.raises(
        ParameterError, match=r"^'neighbors' must be one of 'add_remove', 'replace_one' \(got "
    ):
        Unit(neighbors)


# Text.


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(2), "2"),
        (Fraction(-3), "-3"),
        (Fraction(1, 10), "0.1"),
        (Fraction(3, 10), "0.3"),
        (Fraction(1, 10**6), "1e-06"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-22, 7), "-22/7"),
        (Fraction(1, 2**60), str(Fraction(1, 2**60))),
        (Fraction(10**16), "10000000000000000"),
        (Fraction(1, 10**400), "1e-400"),
        (Fraction(10**400 + 1, 10), "1e+399"),
        (Fraction(2 * 10**30 - 1, 3 * 10**30), "0.666666666666"),
        (Fraction(-1, 10**30 + 1), "-1e-30"),
    ],
    ids=lambda part: str(part)[:12],
)
def test_numbers_are_shown_as_a_person_writes_them(number, text):
    assert show(number) == text


def test_numbers_that_python_does_not_write_are_shown():
    assert show(Fraction(10**5000)) == "1e+5000"
    assert show(Fraction(1, 3 * 10**5000)) == "3.33333333333e-5001"


@given(st.fractions())
def test_shown_numbers_are_exact_or_cut_off(number):
    displayed = Fraction(show(number))
    short = max(abs(number.numerator), number.denominator) < 2**70
    assert displayed == number or (not short and 0 < (number - displayed) / abs(number) < Fraction(1, 10**11))
