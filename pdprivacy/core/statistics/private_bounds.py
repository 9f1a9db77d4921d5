"""Bounds of a column that nobody knows: a centre, a spread around it, and a reach, selected in this order.

Each stage reads the counts of records by candidate of a fixed grid, and weighs every candidate by a number of
records. One record more or less moves all these numbers the same way, by at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from pdprivacy.core.statistics.interface import Ranks, Read, Scope
from pdprivacy.core.statistics.rank_grid import FRACTION, RankGrid, checked_size
from pdprivacy.declaration.domain import Column
from pdprivacy.types import Floats, Integers, settle

Stage: TypeAlias = Literal["center", "spread", "reach"]

STAGES: dict[Stage, Fraction] = {"center": Fraction(2, 5), "spread": Fraction(1, 5), "reach": Fraction(2, 5)}
"""The stages in order, and the share of the loss of each."""

DIGITS = 16
"""The binary digits after the first one of a candidate."""

SMALLEST, LARGEST, LARGEST_WHOLE = -280, 298, 62
"""Powers of two: of floats, the finest step times 2**16 and the largest number; the largest whole number."""

ORDINARY = -20
"""The power of two below which a centre says nothing about the spread."""

SURE, PER_OCTAVE, PER_DOUBLING = 7.0, math.log(2), math.log(8)
"""Penalties as logarithms of odds: of any spread but the expected one, of each octave between them, and of
each doubling of the reach. The chance of a reach 2**j times too large falls as 8**-j, so the noise of a mean
that is clipped to it, which doubles with the reach, has a small mean square."""

MOST_PENALTY = 2**40
"""The largest penalty, in records."""


@dataclass(frozen=True, slots=True, init=False)
class WideGrid(RankGrid):
    """The candidates of a column without bounds: 0, and floats of 16 digits of every ordinary size and sign.

    Whole numbers up to 2**16 in size are all candidates. A declared bound limits the grid.
    """

    def __init__(self, column: Column) -> None:
        whole = column.kind == "integer"
        largest = 2**LARGEST_WHOLE if whole else 2.0**LARGEST
        lower = -largest if column.lower is None else max(column.lower, -largest)
        upper = largest if column.upper is None else min(column.upper, largest)
        if lower > upper:  # all declared numbers are beyond the largest: the nearest stands for all
            lower = upper = lower if lower > largest else upper
        checked_size(column, float(lower), float(upper))
        smallest = 2.0 ** (DIGITS if whole else SMALLEST)
        bounded = replace(column, lower=lower, upper=upper, bins=None)
        settle(self, column=bounded, lower=float(lower), upper=float(upper), digits=DIGITS, smallest=smallest)
        low, high = self.steps(np.array([lower, upper], np.float64)).tolist()
        settle(self, low=low, high=high)

    def values(self, steps: Integers) -> Floats:
        """Return the numbers at these steps, as `value`."""
        bits = (np.abs(steps) + self._zero) << (FRACTION - DIGITS)
        shifted = bits.view(np.float64)
        sizes = np.where(shifted < 2 * self.smallest, shifted - self.smallest, shifted / 2)
        return np.clip(np.copysign(sizes, steps), self.lower, self.upper)

    @property
    def octaves(self) -> tuple[int, int]:
        """The powers of two of the smallest and of the largest distance of two candidates."""
        distance = self.upper - self.lower
        return 0 if self.whole else SMALLEST, octaves_of(np.array([distance]))[0]


@dataclass(frozen=True, slots=True)
class Counted:
    """The records by their candidates: the steps that occur, in order, and the number of records of each."""

    steps: Integers
    counts: Integers


@dataclass(frozen=True, slots=True)
class StageCandidates:
    """The candidates of a stage in runs: the first one of each, their number, prior weight and score.

    The prior weight is that of all candidates of the run together; the score is a number of records.
    """

    starts: Integers
    sizes: Integers
    weights: Integers
    scores: Integers


@dataclass(frozen=True, slots=True)
class BoundSearch:
    """The search for bounds of one column, up to the stage that is next.

    Records are taken as the nearest candidates of the grid, nulls left out, n of them.

    - The centre c is a candidate v, scored by its depth: the smaller of the numbers of records up to v and
      from v on. All candidates are equally likely before, and together as likely as another 0.
    - The spread is a power of two s. Of the records with distances |x - c| above 2**-14 of the power of two
      below |c| (above 0 if c is 0), it is scored by the smaller of the numbers of records up to s and above
      s / 2, minus penalties for its distance to the expected spread: the power of two below |c|, or 1.
    - The reach is s 2**j for a whole j >= 0, scored by minus the number of records farther than that from c,
      minus a penalty for each doubling.

    Adding a record raises the numbers of records that a score is made of by 0 or 1. The smaller of two
    numbers then rises by 0 or 1, too; the number beyond a reach, whose sign is changed, falls by 0 or 1. So
    all scores of a stage move the same way, by at most 1. This holds for any released c and s, because the
    distance of a record depends on c and this record alone. Replacing a record removes one and adds one, so
    that each score moves by at most 1, either way; the scores of the reach still move the same way, because
    every reach that holds the farther of the two records holds the nearer one, too. Penalties and the prior
    are public.

    Parameters
    ----------
    grid, scope : the candidates of the column, and the public facts of its rows.
    weight : the share of the loss.
    center, spread : what the stages before selected: a number, and a power of two.
    """

    grid: WideGrid
    scope: Scope
    weight: Fraction
    center: float | None = None
    spread: int | None = None

    @property
    def stage(self) -> Stage:
        """The stage that is next."""
        return "center" if self.center is None else "spread" if self.spread is None else "reach"

    @property
    def sensitivity(self) -> Fraction:
        """The largest change of one score."""
        return Fraction(self.scope.contribution)

    def monotone(self, stage: Stage) -> bool:
        """Return whether all scores of a stage move the same way."""
        return self.scope.neighbors == "add_remove" or (stage == "reach" and self.scope.contribution == 1)

    @property
    def read(self) -> Read:
        """The read of the records in the order of their candidates."""
        return Read("ranks", (self.grid,))

    def exact(self, ranks: Ranks) -> Counted:
        """Return the records by their candidates."""
        window = ranks.between(0, ranks.rows)
        return Counted(window.values, window.counts)

    def options(self, records: Counted, scale: float) -> StageCandidates:
        """Return the candidates of this stage, for a mechanism of this scale."""
        if self.center is None:
            return self._centers(records)
        scores = self._spreads(records, scale) if self.spread is None else self._reaches(records, scale)
        low = self._lowest if self.spread is None else self.spread
        alone = np.ones(len(scores), np.int64)
        return StageCandidates(np.arange(low, low + len(scores)), alone, alone, scores)

    def after(self, selected: int) -> BoundSearch:
        """Return the search after a stage; after the last one, the reach takes the place of the spread."""
        if self.center is None:
            return replace(self, center=float(self.grid.values(np.array([selected]))[0]))
        return replace(self, spread=selected)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds that follow from the centre and the last spread, within the declared ones."""
        assert self.center is not None
        assert self.spread is not None
        reach = 2.0**self.spread
        return max(self.center - reach, self.grid.lower), min(self.center + reach, self.grid.upper)

    # ------------------------------------------------------------ stages

    def _centers(self, records: Counted) -> StageCandidates:
        """The candidates in runs of equal depth, and 0 once more."""
        steps, size = records.steps, len(records.steps)
        upto = np.concatenate([[0], np.cumsum(records.counts)]).astype(np.int64)
        rows, starts = upto[-1], np.empty(2 * size + 1, np.int64)
        starts[1::2], starts[0], starts[2::2] = steps, self.grid.low, steps + 1
        sizes, depths = np.ones(2 * size + 1, np.int64), np.empty(2 * size + 1, np.int64)
        sizes[0::2] = np.append(steps, self.grid.high + 1) - starts[0::2]
        depths[0::2] = np.minimum(upto, rows - upto)
        depths[1::2] = np.minimum(upto[1:], rows - upto[:-1])
        if not self.grid.low <= 0 <= self.grid.high:
            return StageCandidates(starts, sizes, sizes, depths)
        run = int(np.searchsorted(starts, 0, side="right")) - 1
        arrays, zero = (starts, sizes, sizes, depths), (0, 1, self.grid.candidates, depths[run])
        return StageCandidates(*(np.append(array, value) for array, value in zip(arrays, zero, strict=True)))

    def _spreads(self, records: Counted, scale: float) -> Integers:
        """The scores of the spreads from `_lowest` on."""
        upto = self._within(records, self._lowest)
        depths = np.minimum(upto[1:], upto[-1] - upto[:-1])
        spreads = np.arange(self._lowest, self._lowest + len(depths))
        expected = max(self._expected, self._lowest)
        distances = np.abs(spreads - expected)
        prior = penalty(PER_OCTAVE, scale) * distances + penalty(SURE, scale) * (distances > 0)
        scores: Integers = depths - prior
        return scores

    def _reaches(self, records: Counted, scale: float) -> Integers:
        """The scores of the reaches from the spread on."""
        assert self.spread is not None
        upto = self._within(records, self._lowest)[1 + self.spread - self._lowest :]
        scores: Integers = upto - upto[-1] - penalty(PER_DOUBLING, scale) * np.arange(len(upto))
        return scores

    def _within(self, records: Counted, low: int) -> Integers:
        """The numbers of records up to each power of two from ``low - 1`` on, of those beyond ``low - 1``."""
        assert self.center is not None
        distances = np.abs(self.grid.values(records.steps) - self.center)
        octaves, high = octaves_of(distances), self.grid.octaves[1]
        counted = (distances > 0) & (octaves >= low)
        counts = np.zeros(high - low + 2, np.int64)
        np.add.at(counts, octaves[counted] - low + 1, records.counts[counted])
        return np.cumsum(counts)

    @property
    def _lowest(self) -> int:
        """The power of two of the smallest spread: 2**-13 of the power of two below the centre.

        It is never above that of the distance of the declared bounds, so that there is always a spread.
        """
        smallest, largest = self.grid.octaves
        return min(max(smallest, math.frexp(self.center)[1] - 14) if self.center else smallest, largest)

    @property
    def _expected(self) -> int:
        """The power of two below the size of the centre; 0 where that is 0 or nearly 0."""
        below = math.frexp(self.center)[1] - 1 if self.center else ORDINARY - 1
        return below if below >= ORDINARY else 0


def octaves_of(distances: Floats) -> Integers:
    """Return the smallest k with a distance of at most 2**k, exactly; of 0 any number.

    >>> octaves_of(np.array([0.5, 0.75, 1.0, 1.25])).tolist()
    [-1, 0, 0, 1]
    """
    fractions, powers = np.frexp(distances)
    return np.where(fractions == 0.5, powers - 1, powers).astype(np.int64)


def penalty(odds: float, scale: float) -> int:
    """Return the number of records that a mechanism of this scale weighs as these logarithmic odds."""
    return min(math.ceil(odds * scale), MOST_PENALTY)
