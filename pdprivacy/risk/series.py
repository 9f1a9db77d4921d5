"""Power series of Poisson counts that read as empty, or are there: their Fourier transforms and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from pdprivacy.risk.reading import SMALL, Reading

__all__ = ["Beginnings", "Complex", "Hidden", "Series", "at_mean", "periods", "poisson"]

Floats: TypeAlias = NDArray[np.float64]
Complex: TypeAlias = NDArray[np.complex128]
Integers: TypeAlias = NDArray[np.int64]

FOLDED = 1e-17
"""Relative to the mass at the size of the cell, what a transform may fold into it."""

LENGTHS = np.multiply.outer(1 << np.arange(1, 40), np.array([4, 5, 6, 7])).ravel()
"""Even lengths of transforms that are quick, ascending."""

SHORT = 1 << 10
"""Up to here all counts are asked how they read, and above only those that may read as empty."""

STIRLING = np.array(
    [
        0.0,
        *(
            math.log(math.factorial(n) * math.exp(n) / n**n / math.sqrt(2 * math.pi * n))
            for n in range(1, 16)
        ),
    ]
)
"""What remains of Stirling's formula: n! = sqrt(2 pi n) (n/e)^n e^rest; for larger n it is a short series."""


def poisson(rate: Floats, count: Integers) -> Floats:
    """Poisson masses, to a relative 1e-14 around high rates, where logarithms of factorials lose digits."""
    n = np.maximum(count, 1).astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        mass = np.exp(n * _log1p_less(rate / n - 1)) * at_mean(count)
    return np.where(count == 0, np.exp(-rate), mass)


def at_mean(count: Integers) -> Floats:
    """Poisson masses of counts of at least 1 where the count is the rate."""
    n = np.maximum(count, 1).astype(np.float64)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n**2)) / n**2) / n**2) / n
    rest = np.where(n < len(STIRLING), STIRLING[np.minimum(count, len(STIRLING) - 1)], series)
    return np.exp(-rest) / np.sqrt(2 * np.pi * n)


def _log1p_less(x: Floats) -> Floats:
    """log(1 + x) - x, without cancellation near 0."""
    close = np.abs(x) < 0.05
    y = np.where(close, x, 0.0)
    series = np.zeros_like(x)
    for power in range(14, 1, -1):
        series = series * y + (1.0 if power % 2 else -1.0) / power
    return np.where(close, series * y * y, np.log1p(np.where(close, 0.0, x)) - x)


def periods(sizes: Integers, slack: int = 0) -> Integers:
    """Lengths of transforms that fold next to nothing into the mass at each size, ``slack`` further off.

    By Bernstein's inequality: Pois(n + L; n) / Pois(n; n) <= exp(-L^2 / (2 (n + L / 3))).
    """
    log = -math.log(FOLDED)
    needed = np.ceil(log / 3 + np.sqrt(log**2 / 9 + 2 * log * sizes)).astype(np.int64)
    return np.asarray(LENGTHS[np.searchsorted(LENGTHS, needed + 1 + 2 * slack)])


def _spread(rates: Floats) -> Integers:
    """How far from a rate the masses are held."""
    return np.asarray(50 + np.ceil(10 * np.sqrt(rates)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Counts that read as empty, for each reading: the masses (E, D, L) of the counts (D, L).

    ``at_zero``: (E,), the probability that a count of 0 reads so.
    """

    masses: Floats
    counts: Integers
    at_zero: Floats

    def at(self, rates: Integers) -> Hidden:
        """Those of some of the rates."""
        return Hidden(self.masses[:, rates], self.counts[rates], self.at_zero)


@dataclass(frozen=True, slots=True)
class Series:
    """For labels with independent Poisson counts: of given ``rates``, centred at ``centres``, (D,) each.

    ``first``: (D,), the least count of each whose mass is held. ``period``: the length of the transform, of
    which the half is held.
    """

    period: int
    rates: Floats
    centres: Integers
    first: Integers

    @classmethod
    def of(cls, rates: Floats, period: int) -> Series:
        """With masses that leave out less than 1e-20."""
        centres = np.rint(rates).astype(np.int64)
        return cls(period, rates, centres, np.maximum(centres - _spread(rates), 0))

    def at(self, rates: Integers) -> Series:
        """The series of some of the rates."""
        return Series(self.period, self.rates[rates], self.centres[rates], self.first[rates])

    @staticmethod
    def width(largest: float) -> int:
        """How many masses are held of each rate, where this is the largest."""
        return 2 * int(_spread(np.array(largest))) + 1

    @property
    def length(self) -> int:
        """Of the half of a transform that is held."""
        return self.period // 2 + 1

    @property
    def numbers(self) -> int:
        """Complex numbers that the transforms take for one reading."""
        return len(self.rates) * (2 * self.length + self.width(float(self.rates.max())))

    @property
    def weights(self) -> Floats:
        """By which the real parts of a half transform add up to the coefficient at the centre."""
        weights = np.full(self.length, 2.0 / self.period)
        weights[0] = weights[-1] = 1.0 / self.period  # periods are even
        return weights

    def hidden(self, readings: Sequence[Reading]) -> Hidden:
        """What reads as empty, as far as that is not negligible."""
        width = self.width(float(self.rates.max()))
        top = int(self.first.max()) + width
        reach = max(reading.reach(top) for reading in readings)
        width = min(max(reach - int(self.first.min()), 1), width)
        counts = self.first[:, np.newaxis] + np.arange(width)
        if reach > counts.size or top <= SMALL:
            q = np.array([reading.empty(counts) for reading in readings])
        else:
            each = np.zeros((len(readings), reach + 1))
            for row, reading in zip(each, readings, strict=True):
                row[:reach] = reading.empty(np.arange(reach))
            q = each[:, np.minimum(counts, reach)]
        at_zero = np.array([reading.empty(np.zeros(1, np.int64))[0] for reading in readings])
        q *= self._masses(counts)
        return Hidden(q, counts, at_zero)

    def _masses(self, counts: Integers) -> Floats:
        """(D, L), the masses of the counts: by ratios, from 0 on or from one near the mode on."""
        ratios = self.rates[:, np.newaxis] / np.maximum(counts, 1)
        ratios[:, 0] = 1.0
        masses = np.cumprod(ratios, axis=1, out=ratios)
        if self.first.any():
            row, near = np.arange(len(counts)), np.minimum(self.centres - self.first, counts.shape[1] - 1)
            known = poisson(self.rates, counts[row, near]) / masses[row, near]
        else:
            known = np.exp(-self.rates)
        masses *= known[:, np.newaxis]
        return masses

    def transforms(self, hidden: Hidden, partial: bool) -> tuple[Complex, Complex]:
        """(E, D, length): of the counts that read as empty, and of those that are there and read so.

        ``partial``: the latter are multiplied by the count.
        """
        place = np.arange(self.length)
        angle = 2 * np.pi / self.period * place
        roots = np.exp(-2j * np.pi / self.period * np.arange(self.period))

        def turned(by: Integers) -> Complex:
            return np.asarray(roots[(by % self.period)[:, np.newaxis] * place % self.period])

        shift, back = turned(self.first - self.centres), turned(-self.centres)
        below = self._folded(hidden.masses) * shift
        # The law of all counts, and its mass at 0, have transforms in closed form.
        rates = self.rates[:, np.newaxis]
        whole = np.exp(-2 * rates * np.sin(angle / 2) ** 2 - 1j * (rates * np.sin(angle))) * back
        if partial:
            there = rates * roots[place] * whole - self._folded(hidden.masses * hidden.counts) * shift
        else:
            nobody = np.exp(-rates) * back
            there = whole - below - (1 - hidden.at_zero)[:, np.newaxis, np.newaxis] * nobody
        there[:, self.rates == 0] = 0  # a label that is not there is told by nobody
        return below, there

    def _folded(self, mass: Floats) -> Complex:
        """(E, D, length) from (E, D, L), folded to the period."""
        noises, rates, width = mass.shape
        padded = np.zeros((noises, rates, -(-width // self.period) * self.period))
        padded[:, :, :width] = mass
        return fft.rfft(padded.reshape(noises, rates, -1, self.period).sum(axis=2))


@dataclass(frozen=True, slots=True)
class Beginnings:
    """The distinct beginnings of rows, as a tree: of each label, the parent and the place of each node."""

    steps: tuple[tuple[Integers, Integers], ...]

    @classmethod
    def of(cls, place: Integers) -> tuple[Beginnings, Integers]:
        """From (C, K) rows in lexicographic order; and the node (C,) where each row ends."""
        new = np.zeros(len(place), dtype=bool)
        new[0] = True
        node = np.zeros(len(place), dtype=np.int64)
        steps = []
        for column in place.T:
            new[1:] |= column[1:] != column[:-1]
            starts = np.flatnonzero(new)
            steps.append((node[starts], column[starts]))
            node = np.cumsum(new) - 1
        return cls(tuple(steps)), node

    @property
    def most(self) -> int:
        """Nodes of the widest level."""
        return max(len(parent) for parent, _ in self.steps)

    def products(self, below: Complex, there: Complex) -> tuple[Complex, Complex]:
        """(E, nodes, length): over the labels of each row, all read as empty; all but one that is there."""
        none = np.ones((below.shape[0], 1, below.shape[2]), dtype=np.complex128)
        one = np.zeros_like(none)
        for parent, place in self.steps:
            hidden, none, one = below[:, place], none[:, parent], one[:, parent]
            one *= hidden
            one += none * there[:, place]
            none *= hidden
        return none, one
