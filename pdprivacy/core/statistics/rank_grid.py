"""The numbers among which a quantile is selected: whole numbers, or floats of so many binary digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdprivacy.declaration.domain import Column
from pdprivacy.errors import DeclarationError
from pdprivacy.types import Floats, Integers, settle

DIGITS = 30
"""The range between the bounds has at least 2**30 steps of the largest size, if doubles tell them apart."""

OCTAVES = 30
"""Steps shrink with the numbers down to 2**-30 of the larger bound, and are equal below that."""

SMALLEST_RANGE, LARGEST_RANGE = 2.0**-300, 2.0**300

FRACTION = 52
"""Binary digits after the first one of a double."""


def checked_size(column: Column, lower: float, upper: float) -> float:
    """Return the size of bounds: the largest of their sizes and their distance, 1 if both are 0.

    Raises DeclarationError if it is too small or too large for doubles to compute with.
    """
    size = max(abs(lower), abs(upper), upper - lower) or 1.0
    if not math.isfinite(upper - lower) or not SMALLEST_RANGE < size < LARGEST_RANGE:
        raise DeclarationError(
            f"The bounds of column {column.name!r} must span between 1e-90 and 1e90 "
            f"(got {lower} and {upper})."
        )
    return size


@dataclass(frozen=True, slots=True)
class RankGrid:
    """The candidates of a quantile of a column, as steps numbered in order, 0 for the number 0.

    Of integers and truth values, every whole number between the bounds is a candidate (beyond 2**53 every
    one that is a double). Of floats, the candidates have `digits` binary digits after the first one, so that
    a step is at most 2**-digits of the number; numbers below ``smallest`` have steps of the same size.

    A number v >= 0 is step k with k + 1 = w / smallest for w = v + smallest, as long as w < 2 smallest. Where
    v is larger, w is 2 v. So w is the larger of both, a step is one unit in the last of its kept digits, and
    the bits of a double, read as an integer, number the steps in order. Steps of negative numbers are minus
    those of their sizes.

    The map of numbers to steps is monotone: a number has a lower step than another one only if it is lower.

    Parameters
    ----------
    column : the declared column that is read.
    lower, upper : its finite bounds.
    low, high : their steps.
    """

    column: Column
    lower: float
    upper: float
    digits: int
    smallest: float
    low: int
    high: int

    def __init__(self, column: Column, method: str) -> None:
        lower, upper = map(float, column.bounds(method))
        checked_size(column, lower, upper)
        largest = max(abs(lower), abs(upper)) or 1.0
        digits, smallest = FRACTION, 2.0**FRACTION
        if column.kind == "float":
            octave = math.frexp(largest)[1] - 1
            smallest = 2.0 ** (octave - OCTAVES)
            width = upper - lower
            wanted = DIGITS + octave + 1 - math.frexp(width)[1] if width else FRACTION
            digits = min(max(wanted, 0), FRACTION)
        settle(self, column=column, lower=lower, upper=upper, digits=digits, smallest=smallest)
        low, high = self.steps(np.array([lower, upper])).tolist()
        settle(self, low=low, high=high)

    def clamped(self, block: Any, out: Floats) -> Floats:
        """Write a block of numbers into ``out``, clamped to the bounds, and return it; NaN for null."""
        if block.dtype != np.float64:
            # clamped as doubles: narrower types would round the bounds
            np.copyto(out, block, casting="unsafe")
            block = out
        return np.clip(block, self.lower, self.upper, out=out)

    def steps(self, numbers: Floats, memory: Floats | None = None) -> Integers:
        """Return the steps of numbers within the bounds, by rounding to the nearest candidate.

        ``memory``: two rows of at least as many numbers, which the steps are computed in.
        """
        shifted, doubled = np.empty((2, len(numbers))) if memory is None else memory[:, : len(numbers)]
        sizes = np.abs(numbers, out=doubled) if self.lower < 0 else numbers
        np.add(sizes, self.smallest, out=shifted)
        if max(-self.lower, self.upper) >= self.smallest:
            np.add(sizes, sizes, out=doubled)
            np.maximum(shifted, doubled, out=shifted)
        steps: Integers = shifted.view(np.int64)
        dropped = FRACTION - self.digits
        if dropped:
            steps += 1 << (dropped - 1)
            steps >>= dropped
        steps -= self._zero
        if self.lower < 0:
            np.negative(steps, out=steps, where=numbers < 0)
        return steps

    def value(self, step: int) -> float:
        """Return the number at a step, within the bounds."""
        bits = (abs(step) + self._zero) << (FRACTION - self.digits)
        shifted = float(np.array(bits, np.int64).view(np.float64))
        size = shifted - self.smallest if shifted < 2 * self.smallest else shifted / 2
        return min(max(math.copysign(size, step), self.lower), self.upper)

    @property
    def _zero(self) -> int:
        """The bits of ``smallest``, which are those of step 0."""
        return int(np.array(self.smallest).view(np.int64)) >> (FRACTION - self.digits)

    @property
    def candidates(self) -> int:
        """Number of steps."""
        return self.high - self.low + 1

    @property
    def whole(self) -> bool:
        """Whether the candidates are whole numbers."""
        return self.column.kind != "float"

    @property
    def step(self) -> float:
        """The largest step, which is that next to the larger bound."""
        below = max(abs(self.low), abs(self.high), 1) - 1
        unit = self.smallest * 2.0**-self.digits
        return unit * 2.0 ** max((below >> self.digits) - 1, 0)

    @property
    def relative_step(self) -> float:
        """The largest step of a number of at least ``smallest``, as a part of the number; 0 if none is lost.

        A whole number up to 2**53 is its own candidate.
        """
        return 0.0 if self.whole and self.step <= 1 else 2.0**-self.digits
