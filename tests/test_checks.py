"""Numbers of classes of users become built-in numbers, so that a charge and its noise are of one number."""

from __future__ import annotations

import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdprivacy
from pdprivacy import Budget, Column, Domain, Pure, sensitivity
from pdprivacy.checks import has_hash
from pdprivacy.core.mechanisms import Laplace
from pdprivacy.core.privacy import rational
from pdprivacy.errors import DeclarationError, InvalidDataError, ParameterError

AGE, MEMBER = Column("age", "integer", lower=0, upper=100), Column("member", "boolean")
FRAME = pd.DataFrame({"age": [31, 54, 27, 39], "member": [True, False, True, True]})


class Large(Fraction):
    """A tenth that divides like a million."""

    def __rtruediv__(self, other: Any) -> Any:
        return Fraction(other) / 10**6

    def __mul__(self, other: Any) -> Any:
        return Fraction(other) * 10**6

    __rmul__ = __mul__

    @property
    def numerator(self) -> int:
        return 10**6


class Odd(int):
    """An integer with another numerator, quotient and text."""

    numerator = property(lambda _: 10**6)  # type: ignore[assignment]

    def __int__(self) -> int:
        return 10**6

    def __floordiv__(self, other: Any) -> Any:
        return Odd(10**6)

    __index__ = __int__


class Half(float):
    """A float with another text and another value for ``float``."""

    def __float__(self) -> float:
        return 10.0**6

    def __repr__(self) -> str:
        return "1000000.0"

    __str__ = __repr__


class Written(Decimal):
    """A decimal with another fraction and text."""

    def as_integer_ratio(self) -> tuple[int, int]:
        return 10**6, 1

    def __str__(self) -> str:
        return "1000000"


class Text(str):
    """A text with another one for ``str``."""

    def __str__(self) -> str:
        return "1000000"


@numbers.Integral.register
class Named:
    """An integer in name only."""


MADE = {
    "Fraction": (Large(1, 10), Fraction(1, 10)),
    "int": (Odd(3), Fraction(3)),
    "Fraction of two": (Fraction(1, 10), Fraction(1, 10)),
    "float": (Half(0.5), Fraction(1, 2)),
    "Decimal": (Written("0.1"), Fraction(1, 10)),
    "text": (Text("0.1"), Fraction(1, 10)),
    "double of NumPy": (np.float64(0.1), Fraction(1, 10)),
    "float of NumPy": (np.float32(0.1), Fraction(1, 10)),
    "integer of NumPy": (np.int8(3), Fraction(3)),
}
MADE["Fraction of two"][0]._numerator = Odd(1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", MADE)
def test_a_number_of_a_subclass_is_the_built_in_number_that_it_holds(name):
    value, expected = MADE[name]
    number = rational(value, "epsilon")
    assert number == expected
    assert type(number.numerator) is type(number.denominator) is int
    assert not isinstance(number, Large)


@pytest.mark.parametrize("name", MADE)
def test_the_charge_and_the_scale_are_of_the_same_epsilon(name):
    value, expected = MADE[name]
    assert Laplace(epsilon=value, sensitivity=1).scale == pytest.approx(float(1 / expected), rel=1e-5)
    assert Laplace(epsilon=1, sensitivity=value).scale == pytest.approx(float(expected), rel=1e-5)
    assert Pure(value).epsilon == expected
    private = pdprivacy.protect(FRAME, Domain((AGE, MEMBER)), epsilon=10)
    count = private.dp.count(epsilon=value)
    assert count.dp.metadata.scale == pytest.approx(float(1 / expected), rel=1e-5)
    assert private.dp.budget.spent == (float(expected), 0.0)


@pytest.mark.parametrize("bound", [Half(0.5), Large(1, 2), Odd(3)])
def test_sensitivities_are_of_the_built_in_bound(bound):
    plain = {Half: 0.5, Large: 0.5, Odd: 3}[type(bound)]
    assert sensitivity.sum(0, bound, neighbors="add_remove") == plain
    assert sensitivity.sum(-bound, bound, neighbors="replace_one") == 2 * plain


def test_whole_numbers_and_seeds_are_of_the_built_in_integer():
    private = pdprivacy.protect(FRAME, Domain((AGE, MEMBER)), epsilon=10)
    assert private.dp.split(1, into=Odd(3)) == [Fraction(1, 3)] * 3
    assert len(private.dp.histogram("age", bins=Odd(4), epsilon=1)) == 4
    same = [private.dp.count(epsilon=1, rng=rng).iloc[0] for rng in (Odd(3), 3)]
    assert same[0] == same[1]


DURATIONS = [np.timedelta64(1, "ns"), np.timedelta64(2, "D"), np.timedelta64("NaT", "ns"), Named()]
"""What NumPy or a class of a user registers as an integer, and is none."""


def calls(private: Any, value: Any) -> dict[str, Any]:
    """Calls with a value in place of each kind of number."""
    other = pdprivacy.protect
    return {
        "epsilon": lambda: private.dp.count(epsilon=value),
        "delta": lambda: private.dp.count(epsilon=1, delta=value, mechanism="gaussian"),
        "budget": lambda: Budget(epsilon=value),
        "loss": lambda: Pure(value),
        "max_rows": lambda: other(FRAME, Domain((AGE,)), epsilon=1, unit="member", max_rows=value),
        "public_rows": lambda: other(FRAME, Domain((AGE,)), epsilon=1, public_rows=value),
        "rng": lambda: private.dp.count(epsilon=1, rng=value),
        "q": lambda: private.dp.quantile("age", q=value, epsilon=1),
        "bins": lambda: private.dp.histogram("age", bins=value, epsilon=1),
        "edges": lambda: private.dp.histogram("age", bins=[0, value], epsilon=1),
        "into": lambda: private.dp.split(1, into=value),
        "bounds": lambda: private.dp.count(epsilon=1, bounds=(0, value), bounding="clamp"),
        "declared bound": lambda: Column("age", "float", lower=0, upper=value),
        "declared label": lambda: Column("age", "integer", categories=(value,)),
        "constant": lambda: private[private["age"] > value],
        "factor": lambda: private.assign(twice=private["age"] * value),
        "clip": lambda: private.clip(upper={"age": value}),
        "sensitivity": lambda: Laplace(epsilon=1, sensitivity=value),
        "range": lambda: sensitivity.disjoint_sums(0, value, neighbors="add_remove"),
        "number of a charge": lambda: private.dp.budget.answered(value),
        "cell": lambda: other(
            pd.DataFrame({"age": pd.Series([value, 1], dtype=object)}), Domain((AGE,)), epsilon=1
        ),
    }


@pytest.mark.parametrize(
    "value",
    DURATIONS,
    ids=lambda value: f"{type(value).__name__} {value}" if isinstance(value, np.timedelta64) else "named",
)
def test_what_is_registered_as_an_integer_and_is_none_is_no_number(value):
    private = pdprivacy.protect(FRAME, Domain((AGE, MEMBER)), epsilon=1)
    for name, call in calls(private, value).items():
        with pytest.raises(
            (ParameterError, DeclarationError, InvalidDataError, pdprivacy.errors.BudgetError)
        ):
            pytest.fail(f"{name}: {call()!r}")
    assert private.dp.budget.spent == (0.0, 0.0)


@pytest.mark.parametrize("key", [slice(1), (slice(None), "age"), ("age", (slice(2), 1))], ids=repr)
def test_slices_are_no_names_on_any_python(key):
    """From Python 3.12 on they have a hash."""
    private = pdprivacy.protect(FRAME, Domain((AGE, MEMBER)), epsilon=1)
    assert not has_hash(key)
    with pytest.raises(ParameterError, match="named by its label"):
        Domain((AGE,))[key]
    with pytest.raises(ParameterError, match="takes a column label or a list of labels"):
        private.dp.mean([key], epsilon=0.1)
    with pytest.raises(DeclarationError, match="must be hashable labels"):
        Column("age", "category", categories=(key,))
    assert key not in private.dp.domain
