"""Disclosure risk averaged over a prior on the proportions, and over the sizes of cells.

- Shrinkage risk (definition 8): the expected risk over proportions ~ Dirichlet(alpha). It depends on a
  cell through its size alone: with B_k(t) = sum_j q(j) c_k(j) t^j, A_k(t) = sum_{j>0} (1 - q(j)) c_k(j) t^j
  and the negative binomial masses c_k(j), proportional to Gamma(alpha_k + j) / (Gamma(alpha_k) j!) theta^j,

      risk(n) = [t^n] sum_k A_k(t) prod_{k'!=k} B_k'(t) / [t^n] prod_k sum_j c_k(j) t^j

  for any theta: sums of positive terms only, so that no digit is lost.
- Marginal risk (definition 9): the expected risk over sizes n ~ f with the cell's own proportions,
  sum_n f(n) [t^n] G(t) / Pois(n; rate), where G is the product of `pdprivacy.risk.exact_risk` for Poisson
  counts of one rate, used for the sizes near it.
- Marginal shrinkage risk (definition 10): the shrinkage risk over sizes n ~ f, one number for a generic
  cell.

Source: Liu, Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized frequency
distribution". Its equations 16, 20, 25 and 29 weight each cell by the density of its own observed size,
which is not the expectation that definition 9 states; here the expectation is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from pdprivacy.risk.compositions import Cells
from pdprivacy.risk.reading import Reading
from pdprivacy.risk.series import Beginnings, Series, periods, poisson
from pdprivacy.risk.sizes import Sizes

__all__ = ["marginal", "marginal_shrinkage", "shrinkage"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

DIRECT = 2048
"""Products of series up to this length are summed term by term; longer ones by Fourier transforms."""

WORKING_SET = 1 << 20
"""Complex numbers that are worked on at a time."""

EACH = 4
"""Readings that are worked on at a time."""


# ---------------------------------------------------------------- over a prior on the proportions


def shrinkage(sizes: Integers, alpha: Floats, readings: Sequence[Reading], partial: bool = False) -> Floats:
    """(E, S), the shrinkage risk of cells of the given sizes (S,), distinct and ascending, at least 1.

    Exact to about 1e-13 up to 2,048 records in a cell, and to about 1e-15 times the size beyond.

    >>> from pdprivacy.risk import OnlyNoise
    >>> shrinkage(np.array([1, 10]), np.ones(2), [Reading(OnlyNoise())]).round(3)
    array([[0.25 , 0.455]])
    """
    found = np.zeros((len(readings), len(sizes)))
    for start, stop in _near(sizes, float(alpha.sum())):
        wanted, largest = sizes[start:stop], int(sizes[stop - 1])
        masses = [_negative_binomial(each, largest, float(alpha.sum())) for each in alpha]
        whole = masses[0]
        for mass in masses[1:]:
            whole = _joined(whole, mass)
        for place, reading in enumerate(readings):
            q = np.zeros(largest + 1)
            reach = reading.reach(largest + 1)
            q[:reach] = reading.empty(np.arange(reach))
            there = 1 - q
            there[0] = 0.0
            if partial:
                there *= np.arange(largest + 1)
            none, one = np.ones(1), np.zeros(1)
            for mass in masses:
                hidden = q * mass
                one = _joined(one, hidden) + _joined(none, there * mass)
                none = _joined(none, hidden)
            risks = one[wanted] / whole[wanted]
            found[place, start:stop] = risks / wanted if partial else risks
    return np.clip(found, 0.0, 1.0)


def _near(sizes: Integers, total: float) -> Iterator[tuple[int, int]]:
    """Ranges of sizes that one theta serves: none is so far from the mean that its mass vanishes."""
    stop = len(sizes)
    while stop:
        largest = float(sizes[stop - 1])
        deviation = math.sqrt(largest * (1 + largest / total))
        start = int(np.searchsorted(sizes, largest - (30 if largest <= DIRECT else 3) * deviation))
        yield min(start, stop - 1), stop
        stop = min(start, stop - 1)


def _negative_binomial(alpha: float, largest: int, total: float) -> Floats:
    """(largest + 1,) masses up to a factor: the mean of all labels together is ``largest``.

    By ratios from the mode on, so that neither end overflows.
    """
    theta = largest / (total + largest)
    mode = min(int(largest * (alpha - 1) / total), largest) if alpha > 1 else 0
    count = np.arange(largest, dtype=np.float64)
    ratio = theta * (alpha + count) / (count + 1)  # of the mass at count + 1 to that at count
    up = np.cumprod(ratio[mode:])
    down = np.cumprod(1 / ratio[:mode][::-1])[::-1]
    mass = np.concatenate([down, [1.0], up])
    return np.asarray(mass / mass.sum())


def _joined(first: Floats, second: Floats) -> Floats:
    """The product of two power series, as long as the longer one."""
    length = max(first.size, second.size)
    if min(first.size, second.size) <= DIRECT:
        return np.convolve(first, second)[:length]
    from scipy.signal import fftconvolve

    # What is at 0 may be nearly all, and a transform would lose the rest beside it.
    found = np.zeros(length)
    found[: second.size] = first[0] * second
    found[: first.size] += second[0] * first
    found[0] -= first[0] * second[0]
    found[2:] += np.maximum(fftconvolve(first[1:], second[1:])[: length - 2], 0.0)
    return found


# ---------------------------------------------------------------- over the sizes of cells


def marginal(cells: Cells, sizes: Sizes, readings: Sequence[Reading], partial: bool = False) -> Floats:
    """(E, U), the marginal risk of each composition: of cells with its proportions and a size ~ ``sizes``.

    Exact to about 1e-12.
    """
    proportions, place = np.unique(
        cells.compositions / cells.sizes[:, np.newaxis], axis=0, return_inverse=True
    )
    found = np.zeros((len(readings), len(proportions)))
    for start, stop in _groups(sizes.values):
        wanted, chances = sizes.values[start:stop], sizes.chances[start:stop]
        rate = (float(wanted[0]) + float(wanted[-1])) / 2
        near = int(wanted[-1] - wanted[0])
        period = int(periods(np.array([math.ceil(rate)]), near + proportions.shape[1])[0])
        factor = chances / poisson(np.array(rate), wanted)
        if partial:
            factor = factor / wanted
        most = max(1, WORKING_SET // (period * max(1, min(len(readings), EACH))))
        for row in range(0, len(proportions), most):
            rows = slice(row, row + most)
            found[:, rows] += _at_sizes(proportions[rows], rate, period, wanted, factor, readings, partial)
    return np.clip(found[:, place.reshape(-1)], 0.0, 1.0)


def _groups(values: Integers) -> Iterator[tuple[int, int]]:
    """Ranges of sizes within five standard deviations of a Poisson law: none has a small mass there."""
    start = 0
    while start < len(values):
        reach = values[start] + 2 + math.ceil(5 * math.sqrt(values[start]))
        stop = int(np.searchsorted(values, reach, side="right"))
        yield start, stop
        start = stop


def _at_sizes(
    proportions: Floats,
    rate: float,
    period: int,
    wanted: Integers,
    factor: Floats,
    readings: Sequence[Reading],
    partial: bool,
) -> Floats:
    """(E, C), the sum over sizes of ``factor`` times the coefficient at the size."""
    values, place = np.unique(rate * proportions, return_inverse=True)
    place = place.reshape(proportions.shape)
    series = Series.of(values, period)
    beginnings, node = Beginnings.of(place)
    centre = series.centres[place].sum(axis=1)
    offset = (wanted[np.newaxis, :] - centre[:, np.newaxis]) % period
    found = np.empty((len(readings), len(proportions)))
    for at in range(0, len(readings), EACH):
        below, there = series.transforms(series.hidden(readings[at : at + EACH]), partial)
        _, one = beginnings.products(below, there)
        coefficients = fft.irfft(one, period, axis=2)[:, node]
        found[at : at + EACH] = np.take_along_axis(coefficients, offset[np.newaxis], axis=2) @ factor
    return found


def marginal_shrinkage(
    sizes: Sizes, alpha: Floats, readings: Sequence[Reading], partial: bool = False
) -> Floats:
    """(E,), the marginal shrinkage risk of a generic cell."""
    return np.asarray(shrinkage(sizes.values, alpha, readings, partial) @ sizes.chances)
