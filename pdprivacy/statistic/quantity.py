"""A bounded number per record on a grid: the bounds that clip are the bounds that calibrate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError, got, kind

__all__ = ["PRODUCT_BITS", "SUM_BITS", "Quantity", "indicator", "product_roundings", "quantity"]

Floats: TypeAlias = NDArray[np.float64]

SMALLEST_RANGE, LARGEST_RANGE = 2.0**-300, 2.0**300


SUM_BITS = 30
"""Grid steps from the centre to the farther bound in sums: 2**30 at most, 2**47 in a block's sum."""


PRODUCT_BITS = 17
"""The same where values are multiplied: 2**34 a product, 2**51 in a block's sum, exact in a double."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A bounded number per record, in whole grid steps from a centre.

    The bounds that clip are the bounds that calibrate: ``low`` and ``high`` are computed from
    them by the same arithmetic that every record goes through.

    Parameters
    ----------
    column : the declared column that is read.
    lower, upper : its bounds, finite.
    center : subtracted from each value.
    bits : the grid is the smallest power of two with at most 2**bits steps to a bound.
    label : where given, a tuple of one declared label: the quantity is 1 in records that hold it, 0 in
        others, null for null.
    """

    column: Column
    lower: float
    upper: float
    center: float
    grid: float
    zero: float
    before: float
    shift: float
    low: int
    high: int
    label: tuple[Any] | None

    def __init__(
        self,
        column: Column,
        lower: float,
        upper: float,
        *,
        centered: bool,
        bits: int = SUM_BITS,
        label: tuple[Any] | None = None,
    ) -> None:
        size = max(abs(lower), abs(upper), upper - lower) or 1.0
        if not math.isfinite(upper - lower) or not SMALLEST_RANGE < size < LARGEST_RANGE:
            raise DeclarationError(
                f"The bounds of column {column.name!r} must span between 1e-90 and 1e90 "
                f"(got {lower} and {upper})."
            )
        reach = (upper - lower) / 2 if centered else size
        reach = max(reach, size * 2.0**-40)
        grid = 2.0 ** (math.frexp(reach)[1] - bits)
        center = round((lower + upper) / 2 / grid) * grid if centered else 0.0
        # Adding 1.5 * 2**52 grid steps makes the floating-point unit round to the grid and leaves
        # the whole number of steps in the low bits; the centre rides along in the same addition
        # where it is exact there, and is subtracted before where it is not.
        zero = 1.5 * 2.0**52 * grid
        rides = abs(center) < 2.0**50 * grid
        for name, field in (
            ("column", column),
            ("lower", float(lower)),
            ("upper", float(upper)),
            ("center", center),
            ("grid", grid),
            ("zero", zero),
            ("before", 0.0 if rides else center),
            ("shift", zero - center if rides else zero),
            ("label", label),
        ):
            object.__setattr__(self, name, field)
        object.__setattr__(self, "low", self._steps(lower))
        object.__setattr__(self, "high", self._steps(upper))

    @property
    def weighs(self) -> bool:
        """Whether it can be a weight: not centred, and never negative."""
        return self.center == 0 and self.low >= 0 and self.high > 0

    @property
    def anchor(self) -> int:
        """The bits of ``zero``, which stands for no steps."""
        return int(np.float64(self.zero).view(np.int64))

    def _steps(self, value: float) -> int:
        shifted = np.float64((value - self.before) + self.shift)
        return int(shifted.view(np.int64)) - self.anchor

    @property
    def reach(self) -> int:
        """Grid steps from the centre to the farther bound."""
        return max(abs(self.low), abs(self.high))

    @property
    def rounding(self) -> float:
        """The most that the grid moves a value."""
        return 0.0 if self.column.kind != "float" and self.grid <= 0.5 else self.grid / 2

    def product_rounding(self, other: Quantity) -> float:
        """The most that the grids move a covariance with ``other`` (a variance, with itself).

        A covariance moves by at most the standard deviations of what was rounded away (half a grid
        step at most) and of the other values (half their range), for each of the two, with a factor
        n / (n - 1) of at most 2.
        """
        return self.rounding * (other.upper - other.lower) + other.rounding * (self.upper - self.lower)

    @property
    def unit(self) -> Fraction:
        """One grid step, in the unit of the column."""
        return Fraction(self.grid)

    def anchored(self, block: Any, out: Floats) -> None:
        """Write the block clamped, centred and on the grid, still anchored, into ``out``; NaN for null."""
        if block.dtype != np.float64:
            # clamped as doubles: narrower types would round the bounds
            np.copyto(out, block, casting="unsafe")
            block = out
        np.clip(block, self.lower, self.upper, out=out)
        if self.before:
            out -= self.before
        out += self.shift

    def centered(self, block: Any, out: Floats) -> None:
        """Write the block clamped, centred and on the grid into ``out``; NaN for null."""
        self.anchored(block, out)
        out -= self.zero


def product_roundings(quantities: Sequence[Quantity]) -> Floats:
    """`Quantity.product_rounding` of each pair, as a matrix."""
    return np.array([[first.product_rounding(second) for second in quantities] for first in quantities])


def quantity(column: Column, method: str, *, centered: bool = True, products: bool = False) -> Quantity:
    """The bounded number that ``method`` reads from ``column``."""
    lower, upper = column.bounds(method)
    return Quantity(column, lower, upper, centered=centered, bits=PRODUCT_BITS if products else SUM_BITS)


def indicator(
    column: Column, method: str, value: Any, *, centered: bool = True, products: bool = False
) -> Quantity:
    """Whether a record holds the declared label ``value``, as 1 or 0."""
    labels = column.labels(method)
    try:
        known = value in set(labels)
    except TypeError:  # no hash
        known = False
    if not known:
        declared = ", ".join(got(label) for label in labels[:20]) + (", ..." if len(labels) > 20 else "")
        raise ParameterError(
            f"'value' is not a declared label of column {column.name!r} (got {kind(value)}).",
            f"private.dp.{method}({column.name!r}, {got(labels[0])}, epsilon=0.1), of the labels {declared}.",
        )
    bits = PRODUCT_BITS if products else SUM_BITS
    return Quantity(column, 0.0, 1.0, centered=centered, bits=bits, label=(value,))
