"""The delta of discrete Gaussian noise and of Gaussian noise on a grid, by sums over all integers."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np


def discrete_delta(epsilon: Fraction, sigma: Fraction, shift: int) -> Decimal:
    """Hockey-stick divergence of the discrete Gaussian from itself ``shift`` away, to forty digits."""
    reach = shift + math.ceil(15 * sigma) + 2  # what lies beyond weighs less than exp(-112)
    with localcontext(prec=50):
        divisor = Decimal(2 * sigma.numerator**2) / Decimal(sigma.denominator**2)
        weight = [(-Decimal(z * z) / divisor).exp() for z in range(reach + shift + 1)]
        grow = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        gains = (weight[abs(z - shift)] - grow * weight[abs(z)] for z in range(-reach, reach + 1))
        return sum(gain for gain in gains if gain > 0) / (2 * sum(weight) - 1)


def tail(sigma: Fraction, start: int) -> float:
    """The sum of exp(-(z^2 - start^2)/(2 sigma^2)) over the integers z >= start >= 0."""
    total, first, block = 0.0, 0, 2**21
    scale = float(1 / (2 * sigma**2))
    while True:
        j = np.arange(first, first + block, dtype=np.float64)
        terms = np.exp(-j * (j + 2 * start) * scale)
        total += float(terms.sum())
        if terms[-1] < 1e-18:
            return total
        first += block


def lattice_delta(epsilon: Fraction, sigma: Fraction, shift: int) -> float:
    """As `discrete_delta`, for a wide sigma: the sum of the terms that are positive, in doubles."""
    first = math.floor(epsilon * sigma**2 / shift + Fraction(shift, 2)) + 1
    near, far = first - shift, first
    whole = 2 * tail(sigma, 0) - 1
    outer = float(Fraction(near * near) / (2 * sigma**2))
    inner = float(epsilon - Fraction(far * far - near * near) / (2 * sigma**2))
    if near < 0:  # the sum from a negative integer on is the whole without its mirror image
        head = whole - math.exp(-float(Fraction((1 - near) ** 2) / (2 * sigma**2))) * tail(sigma, 1 - near)
        return (head - math.exp(inner - outer) * tail(sigma, far)) / whole
    return math.exp(-outer) * (tail(sigma, near) - math.exp(inner) * tail(sigma, far)) / whole
