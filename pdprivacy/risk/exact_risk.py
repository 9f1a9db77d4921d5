"""Exact disclosure risk of each composition: local, expected, and averaged over models of the counts.

With independent noise on every count and q(n) = Pr(a count of n reads as empty),

- the local risk of counts n_1, ..., n_K is
  sum over k with n_k > 0 of w_k · (1 - q(n_k)) · prod over k' != k of q(n_k'), with w_k = 1
  (equation 6 of the source), or n_k/n, the share of the records whose label is guessed rightly (equation 7);
- the expected risk is the mean of the local risk over multinomial counts with the cell's size and the cell's
  own proportions (definition 7);
- the shrinkage risk (definition 8) is the mean of the expected risk over proportions ~ Dirichlet(alpha);
- the marginal risk (definition 9) is the expected risk over sizes n ~ f with the cell's own proportions;
- the marginal shrinkage risk (definition 10) is the shrinkage risk over sizes n ~ f, one number for a generic
  cell.

Multinomial counts are independent Poisson counts given their total, and with plug-in proportions the
Poisson rates are the observed counts. So the expected risk is one coefficient of a product of power
series, one per label, which depend only on the observed count:

    B_m(t) = sum_j q(j) Pois(j; m) t^j          the label reads as empty
    A_m(t) = sum_{j>0} (1 - q(j)) Pois(j; m) t^j    the label is present, and reads as present

    risk = [t^n] sum_k A_{n_k}(t) prod_{k'!=k} B_{n_k'}(t) / Pois(n; n)

The coefficient is computed by a discrete Fourier transform, whose period is long enough to keep the mass
that it folds into the coefficient below 1e-16. Compositions with the same beginning share their products,
and one matrix product joins the last label of all of them.

The marginal risk is sum_n f(n) [t^n] G(t) / Pois(n; rate), where G is the same product for Poisson counts of
one rate, used for the sizes near it.

The shrinkage risk depends only on the size of a cell: with B_k(t) = sum_j q(j) c_k(j) t^j,
A_k(t) = sum_{j>0} (1 - q(j)) c_k(j) t^j and the negative binomial masses c_k(j), proportional to
Gamma(alpha_k + j) / (Gamma(alpha_k) j!) theta^j,

    risk(n) = [t^n] sum_k A_k(t) prod_{k'!=k} B_k'(t) / [t^n] prod_k sum_j c_k(j) t^j

for any theta. These are sums of positive terms, so no digits are lost.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution". Its closed forms (theorems 1 and 3) are neither exact nor bounds for cells with three
or more labels; `pdprivacy.risk.disclosure.published` returns them. Its equations 16, 20, 25 and 29 weight
each cell by the density of its own observed size, which is not the expectation of definition 9; this module
computes the expectation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy import fft
from numpy.typing import ArrayLike, NDArray

from pdprivacy.risk.compositions import NEGLIGIBLE, SMALL, Cells, Reading
from pdprivacy.risk.compositions import readings as readings_of
from pdprivacy.risk.likelihood import Sizes
from pdprivacy.types import Floats, Integers

Complex: TypeAlias = NDArray[np.complex128]

WORKING_SET = 1 << 18
"""The number of complex numbers of a block, which stay in the cache."""

SINGLE = 1 << 18
"""The number of multiply-adds of a matrix product that a library leaves to one thread."""

EACH = 20
"""The number of multiply-adds that take as long as one number of a transform."""

OVERHEAD = 20_000
"""The number of multiply-adds that take as long as the fixed work for one block of compositions."""

JOINED = 10 * OVERHEAD
"""The multiply-adds saved by joining two small blocks, whose calls take longer than their work."""


def local(cells: Cells, readings: Sequence[Reading], partial: bool = False) -> Iterator[Floats]:
    """Yield (U,), the local risk of each composition, one array per reading.

    The risk is that of definition 6 of the source, without its bounds; with ``partial``, of equation 7.

    >>> from pdprivacy.risk import Cells, OnlyNoise
    >>> list(local(Cells.of([[2, 1, 1]]), [Reading(OnlyNoise())]))
    [array([0.375])]
    """
    values, positions = np.unique(cells.compositions, return_inverse=True)
    positions = np.ascontiguousarray(positions.reshape(cells.compositions.shape).T)
    share = cells.compositions.T / cells.sizes if partial else None
    for reading in readings:
        hidden = reading.empty(values)
        seen = np.where(values > 0, 1 - hidden, 0.0)
        none, exactly_one = np.ones(positions.shape[1]), np.zeros(positions.shape[1])
        for label, at in enumerate(positions):
            q, present = hidden[at], seen[at]
            exactly_one *= q
            exactly_one += none * (present if share is None else present * share[label])
            none *= q
        yield exactly_one


def expected(
    cells: Cells, readings: Sequence[Reading], partial: bool = False
) -> Iterator[tuple[Integers, Floats]]:
    """Yield the expected risks block by block: the compositions (C,), and their risks (E, C).

    They are exact to about 1e-16 times the square root of the size of the cell.
    """
    same = np.flatnonzero(cells.compositions[:, -2] == 0)
    if same.size:  # a cell of a single label has the same counts in every draw
        yield same, np.array(list(local(cells._at(same), readings, partial)))
    for rows, period in _blocks(cells):
        block = CellBlock.of(cells.compositions[rows], period)
        each = max(1, WORKING_SET // block.numbers)
        risks = [block.risks(readings[at : at + each], partial) for at in range(0, len(readings), each)]
        yield rows, np.concatenate(risks)


def expected_cost(counts: ArrayLike | Cells, mechanism: Any = None) -> int:
    """Return an estimate of the work of the expected risk for one noise, in multiply-adds (1e9 a second).

    The work grows with the number of distinct mixed compositions and the root of their sizes. ``mechanism``:
    the noise, or a list of noises; compositions that none of them can make homogeneous take almost no work.
    Raises the errors of `Cells.of`.

    >>> from pdprivacy.risk import NoNoise, expected_cost
    >>> expected_cost([[2, 1, 1], [1, 2, 1]]) < 1e5
    True
    >>> expected_cost([[900, 700], [800, 700]], NoNoise()) < expected_cost([[900, 700], [800, 700]])
    True
    """
    cells = Cells.of(counts)
    noises = [] if mechanism is None else readings_of(mechanism)[0]
    values, positions = np.unique(cells.compositions, return_inverse=True)
    positions = positions.reshape(cells.compositions.shape)
    shown = np.zeros(len(positions), dtype=bool)
    shown[visible(positions, hidden_at_most(values, noises), cells.sizes)] = True
    cost = 0
    for rows, period in _blocks(cells):
        compositions = cells.compositions[rows]
        cost += work(np.unique(compositions), compositions[shown[rows]].size, period, noises)
    return cost


def work(counts: Integers, labels: int, period: int, noises: Sequence[Reading]) -> int:
    """Return an estimate of the work for a block of compositions.

    ``counts``: the distinct counts. ``labels``: the number of labels of all compositions whose risk is not
    negligible.
    """
    width = Series.width(int(counts.max()))
    if noises:
        width = min(width, max(noise.reach(width) for noise in noises))
    return OVERHEAD + EACH * period * labels + 50 * len(counts) * width


SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The parts of a rate at which its mass is split to bound what is hidden."""


def hidden_at_most(rates: Integers, noises: Sequence[Reading]) -> Floats:
    """Return the largest mass (D,) of Poisson counts that reads as empty, at most; 1 without noises.

    Counts up to a share s of the rate m have a mass of at most exp(-m (1 - s + s log s)) by Chernoff's
    bound. Larger counts read as empty no more often than the least of them.
    """
    least = np.ones(len(rates))
    for share in SHARES if noises else ():
        below = np.exp(-rates * (1 - share + share * math.log(share)))
        split = np.ceil(rates * share).astype(np.int64)
        empty = np.max([noise.empty(split) for noise in noises], axis=0)
        least = np.minimum(least, below + empty)
    return least


def visible(positions: Integers, hidden: Floats, sizes: Integers) -> Integers:
    """Return the rows (C, K) whose risk is not negligible.

    ``hidden``: (D,), the largest mass that is hidden of each label.
    """
    none, exactly_one = np.ones(len(positions)), np.zeros(len(positions))
    for column in positions.T:
        q = hidden[column]
        exactly_one = exactly_one * q + none
        none = none * q
    return np.flatnonzero(exactly_one > NEGLIGIBLE * at_mean(sizes))


def _blocks(cells: Cells) -> Iterator[tuple[Integers, int]]:
    """Yield the rows of mixed compositions whose transforms have the same length, and this length."""
    mixed, labels = np.flatnonzero(cells.compositions[:, -2]), cells.compositions.shape[1]
    lengths = periods(cells.sizes[mixed])
    for shortest, period in ranges(lengths, labels):
        rows = mixed[(lengths >= shortest) & (lengths <= period)]
        compositions = cells.compositions[rows]
        width = Series.width(int(compositions[:, -1].max()))
        most = max(1, 8 * WORKING_SET // period)
        if compositions.size * width > 8 * WORKING_SET < len(np.unique(compositions)) * width:
            most = min(most, max(1, 8 * WORKING_SET // (width * labels)))
        for start in range(0, len(rows), most):
            yield rows[start : start + most], period


def ranges(lengths: Integers, labels: int) -> list[tuple[int, int]]:
    """Return the shortest and the longest length of each block, the longest first.

    All compositions of a block use the longest length, if that takes less time than another block.
    """
    distinct, numbers = (each[::-1].tolist() for each in np.unique(lengths, return_counts=True))
    blocks: list[tuple[int, int]] = []
    for period, number in zip(distinct, numbers, strict=True):
        longest = blocks[-1][1] if blocks else period
        if blocks and EACH * number * labels * (longest - period) <= JOINED:
            blocks[-1] = period, longest
        else:
            blocks.append((period, period))
    return blocks


@dataclass(frozen=True, slots=True)
class CellBlock:
    """Compositions with transforms of one length; ``positions``: (C, K), those of counts in ``series``."""

    series: Series
    positions: Integers
    at_size: Floats
    sizes: Integers

    @classmethod
    def of(cls, compositions: Integers, period: int) -> CellBlock:
        """Return the block of these compositions."""
        values, index = np.unique(compositions, return_inverse=True)
        sizes = compositions.sum(axis=1)
        series = Series.of(values.astype(np.float64), period)
        return cls(series, index.reshape(compositions.shape), at_mean(sizes), sizes)

    @property
    def numbers(self) -> int:
        """The number of complex numbers that one reading takes."""
        return 2 * len(self.positions) * self.series.length + self.series.numbers

    def risks(self, readings: Sequence[Reading], partial: bool) -> Floats:
        """Return the risks (E, C)."""
        risks = np.zeros((len(readings), len(self.positions)))
        hidden = self.series.hidden(readings)
        masses = self._masses_of_labels(hidden.masses.sum(axis=2).max(axis=0))
        rows = visible(self.positions, masses, self.sizes)
        if rows.size:
            distinct, positions = np.unique(self.positions[rows], return_inverse=True)
            below, present = self._transforms_of_labels(distinct, hidden, partial)
            joined = self._coefficients_at_sizes(positions.reshape(len(rows), -1), below, present)
            risks[:, rows] = joined / self.at_size[rows]
        if partial:
            risks /= self.sizes
        return np.clip(risks, 0.0, 1.0)

    def _masses_of_labels(self, masses: Floats) -> Floats:
        """Return the hidden mass of each label, given that of each series."""
        return masses

    def _transforms_of_labels(
        self, labels: Integers, hidden: Hidden, partial: bool
    ) -> tuple[Complex, Complex]:
        """Return the transforms of labels that read as empty, and of labels read as present."""
        return self.series.at(labels).transforms(hidden.at(labels), partial)

    def _coefficients_at_sizes(self, positions: Integers, below: Complex, present: Complex) -> Floats:
        """Return the coefficients (E, C) at the size of each row."""
        beginnings, node = PrefixTree.of(positions[:, :-1])
        none, exactly_one = beginnings.products(below, present)
        # The coefficient is the mean of the transform: a scalar product of real vectors.
        ends, last = np.unique(positions[:, -1], return_inverse=True)
        last = last.reshape(-1)
        right = [(part[:, ends].conj() * self.series.weights).view(np.float64) for part in (present, below)]
        left = [part.view(np.float64) for part in (none, exactly_one)]
        if none.shape[1] * len(ends) <= 16 * len(node):
            table = _product(left[0], right[0]) + _product(left[1], right[1])
            return np.asarray(table[:, node, last])
        pairs = zip(left, right, strict=True)
        return np.asarray(sum(np.einsum("ecl,ecl->ec", a[:, node], b[:, last]) for a, b in pairs))


def _product(left: Floats, right: Floats) -> Floats:
    """Return (E, P, D) from (E, P, L) and (E, D, L), in pieces too small for a library to start threads.

    Threads share the noises already.
    """
    noises, rows, length = left.shape
    piece = max(1, SINGLE // (length * right.shape[1]))
    whole = rows // piece * piece
    pieces = left[:, :whole].reshape(noises, -1, piece, length) @ right[:, np.newaxis].transpose(0, 1, 3, 2)
    rest = left[:, whole:] @ right.transpose(0, 2, 1)
    return np.concatenate([pieces.reshape(noises, whole, right.shape[1]), rest], axis=1)


FOLDED = 1e-17
"""The mass that a transform may fold into the mass at the size of the cell, relative to it."""

LENGTHS = np.multiply.outer(1 << np.arange(1, 40), np.array([4, 5, 6, 7])).ravel()
"""Even lengths of quick transforms, ascending."""

STIRLING = np.array(
    [
        0.0,
        *(
            math.log(math.factorial(n) * math.exp(n) / n**n / math.sqrt(2 * math.pi * n))
            for n in range(1, 16)
        ),
    ]
)
"""The remainder of Stirling's formula, n! = sqrt(2 pi n) (n/e)^n e^rest; larger n use a short series."""


def poisson(rate: Floats, count: Integers) -> Floats:
    """Return Poisson masses, to a relative 1e-14 near high rates, where log-factorials lose digits."""
    n = np.maximum(count, 1).astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        mass = np.exp(n * _log1p_less(rate / n - 1)) * at_mean(count)
    return np.where(count == 0, np.exp(-rate), mass)


def at_mean(count: Integers) -> Floats:
    """Return the Poisson masses of counts of at least 1 at a rate equal to the count."""
    n = np.maximum(count, 1).astype(np.float64)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n**2)) / n**2) / n**2) / n
    rest = np.where(n < len(STIRLING), STIRLING[np.minimum(count, len(STIRLING) - 1)], series)
    return np.exp(-rest) / np.sqrt(2 * np.pi * n)


def _log1p_less(x: Floats) -> Floats:
    """Return log(1 + x) - x without cancellation near 0."""
    close = np.abs(x) < 0.05
    y = np.where(close, x, 0.0)
    series = np.zeros_like(x)
    for power in range(14, 1, -1):
        series = series * y + (1.0 if power % 2 else -1.0) / power
    return np.where(close, series * y * y, np.log1p(np.where(close, 0.0, x)) - x)


def periods(sizes: Integers, slack: int = 0) -> Integers:
    """Return lengths of transforms that fold at most `FOLDED` into the mass at each size.

    ``slack``: the distance of the size from the rate. The lengths follow from Bernstein's inequality,
    Pois(n + L; n) / Pois(n; n) <= exp(-L^2 / (2 (n + L / 3))).
    """
    log = -math.log(FOLDED)
    needed = np.ceil(log / 3 + np.sqrt(log**2 / 9 + 2 * log * sizes)).astype(np.int64)
    return np.asarray(LENGTHS[np.searchsorted(LENGTHS, needed + 1 + 2 * slack)])


def _spread(rates: Floats) -> Integers:
    """Return the distance from a rate up to which its masses are stored."""
    return np.asarray(50 + np.ceil(10 * np.sqrt(rates)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Counts that read as empty, for each reading: the masses (E, D, L) of the counts (D, L).

    ``at_zero``: (E,), the probability that a count of 0 reads as empty.
    """

    masses: Floats
    counts: Integers
    at_zero: Floats

    def at(self, rates: Integers) -> Hidden:
        """Return the hidden masses of some of the rates."""
        return Hidden(self.masses[:, rates], self.counts[rates], self.at_zero)


@dataclass(frozen=True, slots=True)
class Series:
    """Generating functions of independent Poisson counts of ``rates``, centred at ``centres``, (D,) each.

    ``first``: (D,), the least count of each rate whose mass is stored. ``period``: the length of the
    transform, half of which is stored.
    """

    period: int
    rates: Floats
    centres: Integers
    first: Integers

    @classmethod
    def of(cls, rates: Floats, period: int) -> Series:
        """Return the series of these rates, whose masses omit less than 1e-20."""
        centres = np.rint(rates).astype(np.int64)
        return cls(period, rates, centres, np.maximum(centres - _spread(rates), 0))

    def at(self, rates: Integers) -> Series:
        """Return the series of some of the rates."""
        return Series(self.period, self.rates[rates], self.centres[rates], self.first[rates])

    @staticmethod
    def width(largest: float) -> int:
        """Return the number of stored masses of each rate, given the largest rate."""
        return 2 * int(_spread(np.array(largest))) + 1

    @property
    def length(self) -> int:
        """The length of the stored half of a transform."""
        return self.period // 2 + 1

    @property
    def numbers(self) -> int:
        """The number of complex numbers that the transforms take for one reading."""
        return len(self.rates) * (2 * self.length + self.width(float(self.rates.max())))

    @property
    def weights(self) -> Floats:
        """The weights with which the real parts of half a transform sum to the coefficient at the centre."""
        weights = np.full(self.length, 2.0 / self.period)
        weights[0] = weights[-1] = 1.0 / self.period  # periods are even
        return weights

    def hidden(self, readings: Sequence[Reading]) -> Hidden:
        """Return the masses of counts that read as empty, without negligible ones."""
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
        """Return the masses (D, L) of the counts, by ratios from 0 or from a count near the mode."""
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
        """Return the transforms (E, D, length) of counts that read as empty, and of counts read as present.

        The second transform is of positive counts; with ``partial``, its masses are multiplied by the count.
        """
        shift = self._turned(self.first - self.centres)
        below = self._folded(hidden.masses) * shift
        if partial:
            rates = self.rates[:, np.newaxis] * self._turned(np.ones(1, np.int64))
            present = rates * self.whole - self._folded(hidden.masses * hidden.counts) * shift
        else:
            present = self.whole - below - (1 - hidden.at_zero)[:, np.newaxis, np.newaxis] * self.nobody
        present[:, self.rates == 0] = 0  # an absent label is never concluded rightly
        return below, present

    @property
    def whole(self) -> Complex:
        """The transforms (D, length) of all counts, in closed form."""
        rates, angle = self.rates[:, np.newaxis], 2 * np.pi / self.period * np.arange(self.length)
        waves = np.exp(-2 * rates * np.sin(angle / 2) ** 2 - 1j * (rates * np.sin(angle)))
        return np.asarray(waves * self._turned(-self.centres))

    @property
    def nobody(self) -> Complex:
        """The transforms (D, length) of the mass at 0."""
        return np.asarray(np.exp(-self.rates[:, np.newaxis]) * self._turned(-self.centres))

    def _turned(self, by: Integers) -> Complex:
        """Return the transforms (D, length) of units of mass at these counts."""
        roots = np.exp(-2j * np.pi / self.period * np.arange(self.period))
        return np.asarray(roots[(by % self.period)[:, np.newaxis] * np.arange(self.length) % self.period])

    def _folded(self, mass: Floats) -> Complex:
        """Return the transforms (E, D, length) of masses (E, D, L) folded to the period."""
        noises, rates, width = mass.shape
        padded = np.zeros((noises, rates, -(-width // self.period) * self.period))
        padded[:, :, :width] = mass
        return fft.rfft(padded.reshape(noises, rates, -1, self.period).sum(axis=2))


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """The distinct beginnings of rows as a tree: for each label, the parent and the place of each node."""

    steps: tuple[tuple[Integers, Integers], ...]

    @classmethod
    def of(cls, positions: Integers) -> tuple[PrefixTree, Integers]:
        """Return the tree of rows (C, K) in lexicographic order, and the node (C,) where each row ends."""
        new = np.zeros(len(positions), dtype=bool)
        new[0] = True
        node = np.zeros(len(positions), dtype=np.int64)
        steps = []
        for column in positions.T:
            new[1:] |= column[1:] != column[:-1]
            starts = np.flatnonzero(new)
            steps.append((node[starts], column[starts]))
            node = np.cumsum(new) - 1
        return cls(tuple(steps)), node

    @property
    def most(self) -> int:
        """The number of nodes of the widest level."""
        return max(len(parent) for parent, _ in self.steps)

    def products(self, below: Complex, present: Complex) -> tuple[Complex, Complex]:
        """Return the products (E, nodes, length) with all labels read as empty, and with all but one."""
        none = np.ones((below.shape[0], 1, below.shape[2]), dtype=np.complex128)
        exactly_one = np.zeros_like(none)
        for parent, position in self.steps:
            hidden, none, exactly_one = below[:, position], none[:, parent], exactly_one[:, parent]
            exactly_one *= hidden
            exactly_one += none * present[:, position]
            none *= hidden
        return none, exactly_one


DIRECT = 2048
"""The length up to which products of series are summed term by term; longer ones use Fourier transforms."""

MARGINAL_NUMBERS = 1 << 20
"""The number of complex numbers of a block of marginal risks."""

READINGS = 4
"""The number of readings whose marginal risks are computed at a time."""


# ---------------------------------------------------------------- over a prior on the proportions


def shrinkage(sizes: Integers, alpha: Floats, readings: Sequence[Reading], partial: bool = False) -> Floats:
    """Return (E, S), the shrinkage risk of cells of the sizes (S,), distinct, ascending and at least 1.

    It is exact to about 1e-13 for up to 2,048 records in a cell, and to 1e-15 times the size for more.

    >>> from pdprivacy.risk import OnlyNoise
    >>> shrinkage(np.array([1, 10]), np.ones(2), [Reading(OnlyNoise())]).round(3)
    array([[0.25 , 0.455]])
    """
    risks_by_size = np.zeros((len(readings), len(sizes)))
    for start, stop in _near(sizes, float(alpha.sum())):
        sizes_of_block, largest = sizes[start:stop], int(sizes[stop - 1])
        masses = [_negative_binomial(each, largest, float(alpha.sum())) for each in alpha]
        whole = masses[0]
        for mass in masses[1:]:
            whole = _series_product(whole, mass)
        for level, reading in enumerate(readings):
            q = np.zeros(largest + 1)
            reach = reading.reach(largest + 1)
            q[:reach] = reading.empty(np.arange(reach))
            present = 1 - q
            present[0] = 0.0
            if partial:
                present *= np.arange(largest + 1)
            none, exactly_one = np.ones(1), np.zeros(1)
            for mass in masses:
                hidden = q * mass
                exactly_one = _series_product(exactly_one, hidden) + _series_product(none, present * mass)
                none = _series_product(none, hidden)
            risks = exactly_one[sizes_of_block] / whole[sizes_of_block]
            risks_by_size[level, start:stop] = risks / sizes_of_block if partial else risks
    return np.clip(risks_by_size, 0.0, 1.0)


def _near(sizes: Integers, total: float) -> Iterator[tuple[int, int]]:
    """Yield ranges of sizes for one theta each, near enough to the mean that no mass vanishes."""
    stop = len(sizes)
    while stop:
        largest = float(sizes[stop - 1])
        deviation = math.sqrt(largest * (1 + largest / total))
        start = int(np.searchsorted(sizes, largest - (30 if largest <= DIRECT else 3) * deviation))
        yield min(start, stop - 1), stop
        stop = min(start, stop - 1)


def _negative_binomial(alpha: float, largest: int, total: float) -> Floats:
    """Return masses (largest + 1,) up to a factor; the mean of all labels together is ``largest``.

    They are computed by ratios from the mode, so that neither end overflows.
    """
    theta = largest / (total + largest)
    mode = min(int(largest * (alpha - 1) / total), largest) if alpha > 1 else 0
    count = np.arange(largest, dtype=np.float64)
    ratio = theta * (alpha + count) / (count + 1)  # of the mass at count + 1 to that at count
    up = np.cumprod(ratio[mode:])
    down = np.cumprod(1 / ratio[:mode][::-1])[::-1]
    mass = np.concatenate([down, [1.0], up])
    return np.asarray(mass / mass.sum())


def _series_product(first: Floats, second: Floats) -> Floats:
    """Return the product of two power series, as long as the longer one."""
    length = max(first.size, second.size)
    if min(first.size, second.size) <= DIRECT:
        return np.convolve(first, second)[:length]
    from scipy.signal import fftconvolve

    # Nearly all mass may be at 0, and a transform would lose the small masses.
    product = np.zeros(length)
    product[: second.size] = first[0] * second
    product[: first.size] += second[0] * first
    product[0] -= first[0] * second[0]
    product[2:] += np.maximum(fftconvolve(first[1:], second[1:])[: length - 2], 0.0)
    return product


# ---------------------------------------------------------------- over the sizes of cells


def marginal(cells: Cells, sizes: Sizes, readings: Sequence[Reading], partial: bool = False) -> Floats:
    """Return (E, U), the marginal risk of each composition, for its proportions and a size ~ ``sizes``.

    It is exact to about 1e-12.
    """
    proportions, inverse = np.unique(
        cells.compositions / cells.sizes[:, np.newaxis], axis=0, return_inverse=True
    )
    risks = np.zeros((len(readings), len(proportions)))
    for start, stop in _groups(sizes.values):
        sizes_of_group, chances = sizes.values[start:stop], sizes.chances[start:stop]
        rate = (float(sizes_of_group[0]) + float(sizes_of_group[-1])) / 2
        near = int(sizes_of_group[-1] - sizes_of_group[0])
        period = int(periods(np.array([math.ceil(rate)]), near + proportions.shape[1])[0])
        factor = chances / poisson(np.array(rate), sizes_of_group)
        if partial:
            factor = factor / sizes_of_group
        most = max(1, MARGINAL_NUMBERS // (period * max(1, min(len(readings), READINGS))))
        for row in range(0, len(proportions), most):
            rows = slice(row, row + most)
            risks[:, rows] += _at_sizes(
                proportions[rows], rate, period, sizes_of_group, factor, readings, partial
            )
    return np.clip(risks[:, inverse.reshape(-1)], 0.0, 1.0)


def _groups(values: Integers) -> Iterator[tuple[int, int]]:
    """Yield ranges of sizes within five standard deviations of a Poisson law, where no mass is small."""
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
    sizes: Integers,
    factor: Floats,
    readings: Sequence[Reading],
    partial: bool,
) -> Floats:
    """Return (E, C), the sum over sizes of ``factor`` times the coefficient at the size."""
    values, positions = np.unique(rate * proportions, return_inverse=True)
    positions = positions.reshape(proportions.shape)
    series = Series.of(values, period)
    beginnings, node = PrefixTree.of(positions)
    centre = series.centres[positions].sum(axis=1)
    offset = (sizes[np.newaxis, :] - centre[:, np.newaxis]) % period
    risks = np.empty((len(readings), len(proportions)))
    for at in range(0, len(readings), READINGS):
        below, present = series.transforms(series.hidden(readings[at : at + READINGS]), partial)
        _, single = beginnings.products(below, present)
        coefficients = fft.irfft(single, period, axis=2)[:, node]
        risks[at : at + READINGS] = np.take_along_axis(coefficients, offset[np.newaxis], axis=2) @ factor
    return risks


def marginal_shrinkage(
    sizes: Sizes, alpha: Floats, readings: Sequence[Reading], partial: bool = False
) -> Floats:
    """Return (E,), the marginal shrinkage risk of a generic cell."""
    return np.asarray(shrinkage(sizes.values, alpha, readings, partial) @ sizes.chances)
