"""Privacy losses and the unit of privacy: small frozen values in exact rational numbers.

A loss states what a release costs; it never states how the release is made.
Arithmetic on losses is exact: 0.1 means one tenth, so three losses of 0.1
add up to 0.3 and not to 0.30000000000000004.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from pdprivacy.checks import builtin, integer, one_of, whole
from pdprivacy.errors import ParameterError, got, kind
from pdprivacy.exact import decimal, decimals
from pdprivacy.types import settle

Neighbors: TypeAlias = Literal["add_remove", "replace_one"]
Rational: TypeAlias = int | float | str | Decimal | Fraction


ZERO = Fraction(0)
MOST = 10**290
"""The largest loss, and the largest count of it: doubles hold 10^18 times as much."""

LEAST_DELTA = Fraction(1, MOST)
LONGEST, BITS = 1000, 3400
"""The largest exponents of ten and of two, and the most digits, of a number that is accepted."""

SHOWN_BITS = 70
"""The most bits of a numerator and a denominator that are shown as they are."""


class Confidential(float):
    """A number made of confidential counts, as its text says; arithmetic makes plain floats of it.

    No privacy loss can be stated by it, because losses are published.

    >>> Confidential(1.02), round(Confidential(1.02), 1)
    (1.02 (confidential), 1.0)
    """

    __slots__ = ()

    confidential = True

    def __repr__(self) -> str:
        meaning = ": any epsilon will do, even without noise" if self == math.inf else ""
        return f"{float.__repr__(self)} (confidential){meaning}"


class Unshown(Fraction):
    """A number that NumPy or pandas handed over: it may be a cell, so that no message states it.

    What is computed from it by ``+``, ``*`` and ``/`` is another.

    >>> type(Unshown(3) / 2).__name__, type(2 * Unshown(3)).__name__
    ('Unshown', 'Unshown')
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _unshown(Fraction(self) + other)

    def __mul__(self, other: Any) -> Any:
        return _unshown(Fraction(self) * other)

    def __truediv__(self, other: Any) -> Any:
        return _unshown(Fraction(self) / other)

    __radd__, __rmul__ = __add__, __mul__


def _unshown(number: Any) -> Any:
    return Unshown(number) if isinstance(number, Fraction) else number


def rational(value: Rational, name: str, *, item: bool = False) -> Fraction:
    """Return the exact rational number that a person means by ``value``.

    A float stands for its shortest decimal representation (0.1 is one tenth),
    a string may be a decimal or a fraction (``"1/3"``).

    Raises
    ------
    ParameterError : not a finite number, or one of an exponent or a length beyond ``LONGEST``; the message
        names the argument, and shows the value unless it is an ``item`` of it.

    >>> rational(0.1, "epsilon") * 3 == rational("0.3", "epsilon")
    True
    """
    number: Fraction | None
    if type(value) is Fraction and type(value.numerator) is type(value.denominator) is int:
        number = value
    elif type(value) is int:
        number = Fraction(value)
    elif type(value) is float and math.isfinite(value):
        number = Fraction(Decimal(repr(value)))
    else:
        number = _converted(value, name)
    if number is not None and abs(number.numerator.bit_length() - number.denominator.bit_length()) < BITS:
        return number
    hint = f"{name}=released.item(), the number of a release of one." if hasattr(value, "iloc") else None
    raise ParameterError(f"{name!r} must be a finite number (got {(kind if item else got)(value)}).", hint)


def _converted(value: Any, name: str) -> Fraction | None:
    """Convert a number of another type, which is `Unshown` if it may be a cell; None where it is invalid.

    Raises ParameterError for a number that is made of confidential counts.
    """
    if isinstance(value, Confidential):
        rounded = f"{name}=round({name}, 1), if that may be known; an infinite one means that any will do."
        raise ParameterError(
            f"{name!r} is published with what is released, and this number was made of confidential counts.",
            rounded if name == "epsilon" else "a number that was not computed from the data.",
        )
    try:
        if isinstance(value, Fraction):
            return value if type(value) is Unshown else builtin(value)
        if isinstance(value, str | Decimal):
            text = str.__str__(value) if isinstance(value, str) else builtin(value)
            number = Fraction(text) if _short(text) else None
            return number if number is None or type(value) is str else Unshown(number)
        if isinstance(value, numbers.Integral):
            whole = integer(value)
            return None if whole is None else Unshown(whole)
        # the shortest decimal, in the value's own precision
        known = isinstance(value, numbers.Real) and math.isfinite(value)
        return Unshown(str(builtin(value))) if known else None
    except (AttributeError, ValueError, OverflowError, ZeroDivisionError):  # a Fraction without its fields
        return None


def _short(value: str | Decimal) -> bool:
    """Return whether a number is short enough, and near enough to 1, for exact arithmetic."""
    if isinstance(value, Decimal):
        return (
            value.is_finite() and abs(value.adjusted()) <= LONGEST and len(value.as_tuple().digits) <= LONGEST
        )
    mantissa, _, exponent = value.lower().partition("e")
    return len(mantissa) <= LONGEST and len(exponent) <= 10 and abs(int(exponent or 0)) <= LONGEST


def positive(value: Rational, name: str) -> Fraction:
    """Return a positive `rational`; raise ParameterError for another number."""
    number = rational(value, name)
    if number <= 0:
        raise ParameterError(f"{name!r} must be positive (got {got(value)}).")
    return number


def check_delta(delta: Rational) -> Fraction:
    """Return a delta in [0, 1); raise ParameterError for another number."""
    number = rational(delta, "delta")
    if not 0 <= number < 1:
        raise ParameterError(f"'delta' must be in [0, 1) (got {got(delta)}).")
    return number


@dataclass(frozen=True, slots=True)
class Pure:
    """Pure differential privacy: output probabilities of neighbours differ by at most exp(epsilon).

    Source: Dwork, McSherry, Nissim, Smith (2006), Definition 1.

    >>> Pure(0.1).times(3)
    Pure(epsilon=Fraction(3, 10))
    """

    epsilon: Fraction
    delta: ClassVar[Fraction] = ZERO
    """Zero: no slack."""

    def __init__(self, epsilon: Rational) -> None:
        settle(self, epsilon=positive(epsilon, "epsilon"))

    def times(self, count: int) -> Pure:
        """The loss of ``count`` such releases, by basic composition."""
        return Pure(self.epsilon * whole(count, "count", 1))


@dataclass(frozen=True, slots=True)
class Approx:
    """Approximate differential privacy: as `Pure`, up to an additive ``delta`` in [0, 1).

    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor (2006), Definition 1.

    >>> Approx(1, 1e-6).times(2)
    Approx(epsilon=Fraction(2, 1), delta=Fraction(1, 500000))
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Rational, delta: Rational) -> None:
        settle(self, epsilon=positive(epsilon, "epsilon"), delta=check_delta(delta))

    def times(self, count: int) -> Approx:
        """The loss of ``count`` such releases, by basic composition."""
        return Approx(self.epsilon * whole(count, "count", 1), self.delta * count)


@dataclass(frozen=True, slots=True)
class ZCDP:
    """Zero-concentrated differential privacy with parameter ``rho``.

    Source: Bun, Steinke (2016), Definition 1.1.

    >>> ZCDP(0.5).times(2)
    ZCDP(rho=Fraction(1, 1))
    """

    rho: Fraction

    def __init__(self, rho: Rational) -> None:
        settle(self, rho=positive(rho, "rho"))

    def times(self, count: int) -> ZCDP:
        """The loss of ``count`` such releases: rho adds up exactly (Lemma 1.7)."""
        return ZCDP(self.rho * whole(count, "count", 1))


Loss: TypeAlias = Pure | Approx | ZCDP
LOSSES = (Pure, Approx, ZCDP)


def check_loss(item: object, what: str, hint: str | None = None) -> None:
    """Refuse everything but a loss; ``what`` begins the message."""
    if not isinstance(item, LOSSES):
        raise ParameterError(f"{what} Pure, Approx or ZCDP (got {kind(item)}).", hint)


def loss(epsilon: Rational, delta: Rational = 0) -> Pure | Approx:
    """Return `Pure` where delta is zero, `Approx` otherwise."""
    return Approx(epsilon, delta) if rational(delta, "delta") else Pure(epsilon)


@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit: two tables are neighbours if they differ in one unit.

    ``neighbors="add_remove"``: one unit more or less. ``neighbors="replace_one"``: one unit with other
    records. ``column``: the column that names the unit of each record; None where each record is one, and
    their number is private under "add_remove", public under "replace_one".

    >>> print(Unit("replace_one", "patient"))
    replace_one by 'patient'
    """

    neighbors: Neighbors = "add_remove"
    column: str | None = None

    def __post_init__(self) -> None:
        one_of(self.neighbors, "neighbors", get_args(Neighbors))
        if not (self.column is None or isinstance(self.column, str)):
            raise ParameterError(f"The column of a unit must be a string (got {kind(self.column)}).")

    def __str__(self) -> str:
        return self.neighbors if self.column is None else f"{self.neighbors} by {self.column!r}"


def show(number: Fraction) -> str:
    """Format an exact number as a person writes it: ``0.1``, ``1e-06``, ``1/3``.

    For messages and recorded steps: a long number is cut off after twelve digits, never rounded up, so that
    what a message offers fits. Displays use `pdprivacy.text.numbers.cost` and ``remaining``.

    >>> show(Fraction(1, 10)), show(Fraction(1, 3)), show(Fraction(2))
    ('0.1', '1/3', '2')
    """
    short = max(abs(number.numerator), number.denominator).bit_length() <= SHOWN_BITS
    if short and number.denominator == 1:
        return str(number.numerator)
    if short or 10**-300 < abs(number) < 10**300:
        printed = repr(float(number))
        if Fraction(printed) == number:
            return printed
    if short:
        return str(number)
    context = decimals(12, ROUND_FLOOR)
    return str(decimal(number, context).normalize(context)).lower()
