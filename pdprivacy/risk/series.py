"""Power series of Poisson counts that read as empty, or are there: their Fourier transforms and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.risk.reading import Reading

__all__ = ["Beginnings", "Complex", "Series", "periods", "poisson"]

Floats: TypeAlias = NDArray[np.float64]
Complex: TypeAlias = NDArray[np.complex128]
Integers: TypeAlias = NDArray[np.int64]

FOLDED = 1e-17
"""Relative to the mass at the size of the cell, what a transform may fold into it."""


def poisson(rate: Floats, count: Integers) -> Floats:
    """Poisson masses, to a relative 1e-14 around high rates, where logarithms of factorials lose digits."""
    from scipy.special import gammaln

    n = np.maximum(count, 1).astype(np.float64)
    # n! = sqrt(2 pi n) (n/e)^n e^rest: what remains of Stirling's formula is a short series
    rest = np.where(
        n < 16,
        gammaln(n + 1) - (n + 0.5) * np.log(n) + n - 0.5 * np.log(2 * np.pi),
        (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n**2)) / n**2) / n**2) / n,
    )
    with np.errstate(divide="ignore", over="ignore"):
        mass = np.exp(n * _log1p_less(rate / n - 1) - rest) / np.sqrt(2 * np.pi * n)
    return np.where(count == 0, np.exp(-rate), mass)


def _log1p_less(x: Floats) -> Floats:
    """log(1 + x) - x, without cancellation near 0."""
    close = np.abs(x) < 0.05
    y = np.where(close, x, 0.0)
    series = np.zeros_like(x)
    for power in range(14, 1, -1):
        series = series * y + (1.0 if power % 2 else -1.0) / power
    return np.where(close, series * y * y, np.log1p(np.where(close, 0.0, x)) - x)


def periods(sizes: Integers, slack: int = 0) -> Integers:
    """Lengths of transforms that fold next to nothing into the mass at each size, ``slack`` further off."""
    distinct, place = np.unique(sizes, return_inverse=True)
    rate, at_size = distinct.astype(np.float64), poisson(distinct.astype(np.float64), distinct)
    needed = np.full(len(distinct), 1, dtype=np.int64)
    step = 1 << 30
    while step:
        longer = needed + step
        folds = poisson(rate, distinct + longer) > FOLDED * at_size
        needed = np.where(folds, longer, needed)
        step >>= 1
    nice = np.multiply.outer(1 << np.arange(1, 40), np.array([4, 5, 6, 7])).ravel()  # even, quick, ascending
    return np.asarray(nice[np.searchsorted(nice, needed + 1 + 2 * slack)][place.reshape(-1)])


def _spread(rates: Floats) -> Integers:
    """How far from a rate the masses are held."""
    return np.asarray(50 + np.ceil(10 * np.sqrt(rates)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Series:
    """For labels with independent Poisson counts: of given ``rates``, centred at ``centres``, (D,) each.

    ``first``, ``mass``: (D,) and (D, L), the masses of each from its first count on. ``period``: the
    length of the transform, of which the half is held.
    """

    period: int
    rates: Floats
    centres: Integers
    first: Integers
    mass: Floats

    @classmethod
    def of(cls, rates: Floats, period: int) -> Series:
        """With masses that leave out less than 1e-20."""
        centres = np.rint(rates).astype(np.int64)
        first = np.maximum(centres - _spread(rates), 0)
        counts = first[:, np.newaxis] + np.arange(cls.width(float(rates.max())))
        return cls(period, rates, centres, first, poisson(rates[:, np.newaxis], counts))

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
        return 2 * len(self.rates) * self.length + self.mass.size

    @property
    def weights(self) -> Floats:
        """By which the real parts of a half transform add up to the coefficient at the centre."""
        weights = np.full(self.length, 2.0 / self.period)
        weights[0] = weights[-1] = 1.0 / self.period  # periods are even
        return weights

    def transforms(self, readings: Sequence[Reading], partial: bool) -> tuple[Complex, Complex]:
        """(E, D, length): of the counts that read as empty, and of those that are there and read so.

        ``partial``: the latter are multiplied by the count.
        """
        q, counts = self._empty(readings)
        hidden = q * self.mass[:, : counts.shape[1]]
        angle = 2 * np.pi / self.period * np.arange(self.length)
        shift = np.exp(-1j * angle * ((self.first - self.centres) % self.period)[:, np.newaxis])
        below = self._folded(hidden) * shift
        # The law of all counts, and its mass at 0, have transforms in closed form.
        rates, back = self.rates[:, np.newaxis], (self.centres % self.period)[:, np.newaxis] * angle
        whole = np.exp(-2 * rates * np.sin(angle / 2) ** 2 + 1j * (back - rates * np.sin(angle)))
        if partial:
            there = rates * np.exp(-1j * angle) * whole - self._folded(hidden * counts) * shift
        else:
            at_zero = np.array([1 - reading.empty(np.zeros(1, np.int64)) for reading in readings])
            there = whole - below - at_zero[:, :, np.newaxis] * np.exp(1j * back - rates)
        there[:, self.rates == 0] = 0  # a label that is not there is told by nobody
        return below, there

    def _empty(self, readings: Sequence[Reading]) -> tuple[Floats, Integers]:
        """(E, D, L) probabilities to read as empty and (D, L) of what counts, as far as not negligible."""
        top = int(self.first.max()) + self.mass.shape[1]
        reach = [reading.reach(top) for reading in readings]
        width = min(max(max(reach) - int(self.first.min()), 1), self.mass.shape[1])
        counts = self.first[:, np.newaxis] + np.arange(width)
        if max(reach) > counts.size:
            return np.array([reading.empty(counts) for reading in readings]), counts
        q = np.zeros((len(readings), max(reach) + 1))
        for row, reading, end in zip(q, readings, reach, strict=True):
            row[:end] = reading.empty(np.arange(end))
        return q[:, np.minimum(counts, max(reach))], counts

    def _folded(self, mass: Floats) -> Complex:
        """(E, D, length) from (E, D, L), folded to the period."""
        noises, rates, width = mass.shape
        padded = np.zeros((noises, rates, -(-width // self.period) * self.period))
        padded[:, :, :width] = mass
        return np.fft.rfft(padded.reshape(noises, rates, -1, self.period).sum(axis=2))


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
