"""Privacy losses and the unit of privacy: small frozen values in exact rational numbers.

A loss states what a release costs; it never states how the release is made.
Arithmetic on losses is exact: 0.1 means one tenth, so three losses of 0.1
add up to 0.3 and not to 0.30000000000000004.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from pdprivacy.errors import ParameterError, got

__all__ = [
    "ZCDP",
    "Approx",
    "Confidential",
    "Loss",
    "Neighbors",
    "Pure",
    "Rational",
    "Unit",
    "loss",
    "rational",
    "show",
]

Neighbors: TypeAlias = Literal["add_remove", "replace_one"]
Rational: TypeAlias = int | float | str | Decimal | Fraction


ZERO = Fraction(0)
SHOWN_BITS = 70
"""Of a numerator and a denominator that are shown as they are."""


class Confidential(float):
    """A number made of confidential counts, as its text says; arithmetic makes plain floats of it.

    No privacy loss can be stated by it, because losses are published.

    >>> Confidential(1.02), round(Confidential(1.02), 1)
    (1.02 (confidential), 1.0)
    """

    __slots__ = ()

    confidential = True

    def __repr__(self) -> str:
        return f"{float.__repr__(self)} (confidential)"


def rational(value: Rational, name: str) -> Fraction:
    """The exact rational number a person means by ``value``.

    A float stands for its shortest decimal representation (0.1 is one tenth),
    a string may be a decimal or a fraction (``"1/3"``).

    Raises
    ------
    ParameterError : not a finite number; the message names the argument.

    >>> rational(0.1, "epsilon") * 3 == rational("0.3", "epsilon")
    True
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Confidential):
        rounded = f"{name}=round({name}, 1), if that may be known; an infinite one means that any will do."
        raise ParameterError(
            f"{name!r} is published with what is released, and this number was made of confidential counts.",
            rounded if name == "epsilon" else "a number that was not computed from the data.",
        )
    scalar = isinstance(value, int | float | str | Decimal | numbers.Real)
    if scalar and not isinstance(value, bool):
        try:
            if isinstance(value, str | Decimal):
                return Fraction(value)
            if isinstance(value, numbers.Integral):
                return Fraction(int(value))
            if math.isfinite(value):
                return Fraction(str(value))  # the shortest decimal, in the value's own precision
        except (ValueError, OverflowError, ZeroDivisionError):
            pass
    raise ParameterError(f"{name!r} must be a finite number (got {got(value)}).")


def positive(value: Rational, name: str) -> Fraction:
    number = rational(value, name)
    if number <= 0:
        raise ParameterError(f"{name!r} must be positive (got {value}).")
    return number


def whole(count: int) -> int:
    """How often, a positive whole number; raises ParameterError else."""
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 1:
        raise ParameterError(f"'count' must be a positive whole number (got {got(count)}).")
    return int(count)


@dataclass(frozen=True, slots=True)
class Pure:
    """Pure differential privacy: output probabilities of neighbours differ by at most exp(epsilon).

    Source: Dwork, McSherry, Nissim, Smith (2006), Definition 1.
    """

    epsilon: Fraction

    def __init__(self, epsilon: Rational) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    @property
    def delta(self) -> Fraction:
        """Zero: no slack."""
        return ZERO

    def times(self, count: int) -> Pure:
        """The loss of ``count`` such releases, by basic composition."""
        return Pure(self.epsilon * whole(count))


@dataclass(frozen=True, slots=True)
class Approx:
    """Approximate differential privacy: as `Pure`, up to an additive ``delta`` in [0, 1).

    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor (2006), Definition 1.
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Rational, delta: Rational) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        number = rational(delta, "delta")
        if not 0 <= number < 1:
            raise ParameterError(f"'delta' must be in [0, 1) (got {delta}).")
        object.__setattr__(self, "delta", number)

    def times(self, count: int) -> Approx:
        """The loss of ``count`` such releases, by basic composition."""
        return Approx(self.epsilon * whole(count), self.delta * count)


@dataclass(frozen=True, slots=True)
class ZCDP:
    """Zero-concentrated differential privacy with parameter ``rho``.

    Source: Bun, Steinke (2016), Definition 1.1.
    """

    rho: Fraction

    def __init__(self, rho: Rational) -> None:
        object.__setattr__(self, "rho", positive(rho, "rho"))

    def times(self, count: int) -> ZCDP:
        """The loss of ``count`` such releases: rho adds up exactly (Lemma 1.7)."""
        return ZCDP(self.rho * whole(count))


Loss: TypeAlias = Pure | Approx | ZCDP


def loss(epsilon: Rational, delta: Rational = 0) -> Pure | Approx:
    """`Pure` where delta is zero, `Approx` otherwise."""
    return Pure(epsilon) if rational(delta, "delta") == 0 else Approx(epsilon, delta)


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose data is protected: two tables are neighbours if they differ in one unit.

    ``neighbors="add_remove"``: one unit more or less. ``neighbors="replace_one"``: one unit with other
    records. ``column``: the column that names the unit of each record; None where each record is one, and
    their number is private under "add_remove", public under "replace_one".
    """

    neighbors: Neighbors = "add_remove"
    column: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.neighbors, str) or self.neighbors not in get_args(Neighbors):
            raise ParameterError(
                f"'neighbors' must be one of 'add_remove', 'replace_one' (got {got(self.neighbors)})."
            )
        if not (self.column is None or isinstance(self.column, str)):
            raise ParameterError(f"The column of a unit must be a string (got {type(self.column).__name__}).")

    def __str__(self) -> str:
        return self.neighbors if self.column is None else f"{self.neighbors} by {self.column!r}"


def show(number: Fraction) -> str:
    """An exact number as a person writes it: ``0.1``, ``1e-06``, ``1/3``.

    A long one is cut off after twelve digits.

    >>> show(Fraction(1, 10)), show(Fraction(1, 3)), show(Fraction(2))
    ('0.1', '1/3', '2')
    """
    short = max(abs(number.numerator), number.denominator).bit_length() <= SHOWN_BITS
    if short and number.denominator == 1:
        return str(number.numerator)
    if short or 10**-300 < abs(number) < 10**300:
        decimal = repr(float(number))
        if Fraction(decimal) == number:
            return decimal
    if short:
        return str(number)
    context = Context(prec=12, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)
    cut = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return str(cut.normalize(context)).lower()
