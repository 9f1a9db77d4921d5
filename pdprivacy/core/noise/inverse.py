"""The generalized normal law, rounded to integers, by inversion of its distribution function.

Double precision inverts nearly every draw; where its result is too close to the
edge between two integers, the distribution function at the edges decides, in as
many digits as the uniform bits need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy.core.distributions import GeneralizedNormal
from pdprivacy.core.noise.bits import Source
from pdprivacy.core.noise.choice import BLOCK, WIDEST
from pdprivacy.core.noise.discrete import distances
from pdprivacy.errors import ParameterError
from pdprivacy.exact import decimal, decimals
from pdprivacy.types import Floats, Integers, Words

_Floats = Floats

# Relative errors of the double inverse; observed are 2^-51 and 2^-47, the latter
# because of the incomplete gamma function.
_ERROR_PLAIN, _ERROR_GAMMA = 2.0**-46, 2.0**-43
_END = 2**48  # so close to either end, 64 bits resolve the tail worse than that
_STEEPEST = 1024  # a power beyond which the law is all but uniform
_BODY = 0.75  # up to here magnitudes are found by the share inside them
_GUARD = 30  # decimal digits beyond those of the bits, and beyond what a high power loses
_SURE = 18  # of them, those that a decision relies on; rounding leaves five more


def generalized_normal(
    power: Fraction, divisor: Fraction, below: ArrayLike, above: ArrayLike, source: Source
) -> Integers:
    """Exact independent draws of a truncated generalized normal law, rounded to the nearest integer.

    The density is ∝ exp(-|x|^power/divisor) on [-below - 1/2, above + 1/2],
    power a rational in [1, 1024], divisor positive with divisor^(1/power) up to
    2^52. ``below`` and ``above`` are int64 distances of one shape (n,), zero or
    more, or UNBOUNDED; so is the result.

    A draw whose cell double precision leaves open costs about a millisecond: at a scale of
    2^30 some hundreds in a million, in proportion to the scale above that.

    Raises
    ------
    ParameterError : power outside [1, 1024], scale outside (0, 2^52], negative distances, different shapes.

    Source: inversion (Devroye 1986, II.2); the distribution function by the
    series of the incomplete gamma function (Abramowitz, Stegun 1964, 6.5.29).

    >>> from pdprivacy.core.noise import source
    >>> noise = generalized_normal(Fraction(2), Fraction(200), [3] * 5000, [9] * 5000, source(0))
    >>> int(noise.min()), int(noise.max())
    (-3, 9)
    """
    if not 1 <= power <= _STEEPEST:
        raise ParameterError(f"'power' must be between 1 and 1024 (got {power}).")
    if not 0 < divisor < math.inf:
        raise ParameterError(f"'divisor' must be positive and finite (got {divisor}).")
    rounded = _rounded(Fraction(power), Fraction(divisor))
    low, high = distances(below, above)
    out = np.empty(low.size, np.int64)
    for start in range(0, out.size, BLOCK):
        part = slice(start, start + BLOCK)
        _fill(rounded, low[part], high[part], out[part], source)
    return out


@dataclass(frozen=True, slots=True)
class _Rounded:
    """The distribution in units of its scale divisor^(1/power), and the inverse of its magnitudes G."""

    power: Fraction
    divisor: Fraction
    scale: float
    magnitude: GeneralizedNormal

    def estimate(self, words: Words, below: Integers, above: Integers) -> tuple[_Floats, _Floats]:
        """The inverse at the uniform numbers ``words``·2^-64 + 2^-65, and a bound of its error.

        Each side is counted from its bound towards zero. In the body the magnitude comes from the
        share inside it, a difference; beyond, from the share outside, a sum of positive terms.
        """
        left, right = self._up_to(below), self._up_to(above)
        whole = left + right
        passed = (words * 2.0**-64 + 2.0**-65) * whole
        negative = passed < left
        passed = np.where(negative, passed, (~words * 2.0**-64 + 2.0**-65) * whole)
        inside = np.maximum(np.where(negative, left, right) - passed, 0.0)
        s = self.magnitude.inside_inverse(np.minimum(inside, _BODY))
        beyond = np.flatnonzero(inside > _BODY)
        if beyond.size:
            edge = np.where(negative[beyond], below[beyond], above[beyond]) + 0.5
            s[beyond] = self.magnitude.outside_inverse(
                np.minimum(self.magnitude.outside(edge / self.scale) + passed[beyond], 1.0)
            )
        x = self.scale * s
        # In the body 1/G' is at most four times its value at zero, and in the tail (1 - G)/G' is at most
        # that value: errors of the shares are errors of x in units of the scale, or of a smaller range.
        relative = _ERROR_PLAIN if self.power in (1, 2) else _ERROR_GAMMA
        error = relative * (self.scale * self.magnitude.peak * np.minimum(whole, 1.0) + x)
        return np.where(negative, -x, x), error

    def _up_to(self, distance: Integers) -> _Floats:
        """The share inside the edge beyond ``distance``; found once where all are the same."""
        if distance.min() == distance.max():
            distance = distance[:1]
        return self.magnitude.inside(np.asarray((distance + 0.5) / self.scale))


@lru_cache(maxsize=64)
def _rounded(power: Fraction, divisor: Fraction) -> _Rounded:
    with localcontext(decimals(40)) as context:
        scale = decimal(divisor, context) ** decimal(1 / power, context)
        if scale > WIDEST + Decimal("1e-20"):
            raise ParameterError(f"'divisor' must be at most 2**52 to the 'power' (got {divisor}).")
    # Any scale that small draws zeros alone.
    return _Rounded(power, divisor, max(float(scale), 1e-280), GeneralizedNormal.of(float(power), 1.0))


def _fill(
    rounded: _Rounded,
    below: Integers,
    above: Integers,
    out: Integers,
    source: Source,
) -> None:
    if out.size == 0:
        return
    words = source.words(out.size, np.uint64)
    x, error = rounded.estimate(words, below, above)
    z = np.rint(x)
    sure = np.abs(x - z) < 0.5 - error
    sure &= (words > _END) & (words < 2**64 - _END)
    z[~sure] = 0
    out[:] = z
    for i in np.flatnonzero(~sure):
        out[i] = _decide(rounded, int(words[i]), int(below[i]), int(above[i]), float(x[i]), source)


class _Exact:
    """H(x), the integral of exp(-t^power/divisor) from 0 to x, in a given number of digits."""

    __slots__ = ("context", "divisor", "full", "power", "ratio", "reach", "stop")

    def __init__(self, power: Fraction, divisor: Fraction, count: int) -> None:
        self.context = decimals(count)
        with localcontext(self.context):
            self.power, self.ratio = decimal(power, self.context), decimal(1 / power, self.context)
            self.divisor = decimal(divisor, self.context)
            self.stop = Decimal(10) ** -(count + 3)
            # Beyond x lies at most a share exp(-y), as G'(x)/(1 - G(x)) increases.
            self.reach = Decimal(count + 3) * Decimal(10).ln()
            self.full = self._series((self.divisor * self.reach) ** self.ratio, self.reach)

    def exponent(self, x: Decimal) -> Decimal:
        """Minus the logarithm of the density at x >= 0."""
        y: Decimal = x**self.power / self.divisor
        return y

    def integral(self, x: Decimal) -> Decimal:
        """H(x) for x of either sign, in the current context."""
        y = self.exponent(abs(x)) if x else Decimal(0)
        value = self.full if y >= self.reach else self._series(abs(x), y)
        return -value if x < 0 else value

    def _series(self, x: Decimal, y: Decimal) -> Decimal:
        """x·exp(-y)·sum of y^n / ((1/p + 1)···(1/p + n)): all terms are positive."""
        term = total = Decimal(1)
        step = self.ratio
        while True:
            step += 1
            term *= y / step
            total += term
            # Beyond twice y the terms at least halve.
            if step > 2 * y and term < total * self.stop:
                return x * (-y).exp() * total

    def inverse(self, target: Decimal, start: Decimal) -> Decimal:
        """The x >= 0 with H(x) = target, to less than about an integer.

        H is concave: from the left Newton's steps approach without passing, from the right they pass once.
        """
        x = start
        while True:
            y = self.exponent(x) if x else Decimal(0)
            if y >= self.reach:
                x = Decimal(0)
                continue
            step = (target - self.integral(x)) * y.exp()
            x = max(x + step, Decimal(0))
            if abs(step) < Decimal("0.25"):
                return x


_exact = lru_cache(maxsize=16)(_Exact)


def _decide(rounded: _Rounded, value: int, below: int, above: int, start: float, source: Source) -> int:
    """The integer whose cell holds the uniform number that starts with the 64 bits ``value``.

    What comes out depends on the bits alone, not on ``start``; more are drawn only where the numbers
    that start with these lie on both sides of an edge.
    """
    half = Decimal("0.5")
    bits = 64
    while True:
        whole = bits * 302 // 1000
        exact = _exact(rounded.power, rounded.divisor, whole + _GUARD + int(rounded.power).bit_length())
        with localcontext(exact.context):
            left, right = exact.integral(below + half), exact.integral(above + half)
            # u in [value, value + 1)/2^bits lies at [first, last) on the scale of H.
            unit = (left + right) / (1 << bits)
            first, last = value * unit - left, (value + 1) * unit - left
            slack = (left + right).scaleb(-whole - _SURE)
            target = (value + half) * unit - left
            x = exact.inverse(abs(target), Decimal(abs(start)))
            z = min(max(int((x if target > 0 else -x).to_integral_value()), -below), above)
            while True:
                lower = exact.integral(z - half) if z > -below else None
                upper = exact.integral(z + half) if z < above else None
                if lower is not None and last <= lower - slack:
                    z -= 1
                elif upper is not None and first >= upper + slack:
                    z += 1
                else:
                    break
            if (lower is None or first >= lower + slack) and (upper is None or last <= upper - slack):
                return z
        start = float(abs(x))
        value = value << 64 | int.from_bytes(source.bytes(8), "little")
        bits += 64
