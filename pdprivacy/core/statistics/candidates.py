"""Candidates and their scores: declared labels by their counts, numbers by their distance in rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from pdprivacy.core import sensitivities as sensitivity
from pdprivacy.core.privacy import Rational, rational
from pdprivacy.core.statistics.counts import CellCounts
from pdprivacy.core.statistics.interface import Part, Quantity, Ranks, Read, Scope, Window
from pdprivacy.core.statistics.rank_grid import RankGrid
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.types import Integers

End: TypeAlias = Literal["lower", "upper"]
Side: TypeAlias = Literal["below", "above"]
MISSES = 0.05
"""The probability that an interval misses the quantile, which its two ends share."""


MOST_PARTS = 10**6
"""The largest denominator of a quantile, which keeps ranks of 2**40 records below 2**62."""

FARTHEST = 2**40
"""A rank beyond all records."""


def share(q: Rational, given: Any = None) -> Fraction:
    """Return the share of records below a quantile, as a fraction with a denominator of at most a million.

    ``given``: the argument that contains ``q``; an error shows its type.

    Raises ParameterError unless ``q`` is a number from 0 to 1.

    >>> share(1 / 3)
    Fraction(1, 3)
    """
    number = rational(q, "q", item=True)
    if not 0 <= number <= 1:
        raise ParameterError(
            f"'q' must be between 0 and 1 (got {got(q if given is None else given)}).",
            "q=0.5, or [0.25, 0.75]",
        )
    near = number.limit_denominator(MOST_PARTS)
    return number if near in (0, 1) and number.denominator <= MOST_PARTS else near


@dataclass(frozen=True, slots=True)
class LabelScores:
    """The declared labels of a column, without null; the score of a label is its number of records.

    Adding or removing a unit moves all counts the same way, each by at most the unit's number of records:
    see `monotone`. Replacing the records of a unit moves one count down and another count up.

    One mechanism selects a label for each group of ``keys``, and its loss counts once. A record moves the
    counts of its own group alone, so added or removed records lose as much together in several groups as in
    a single group. A record that changes its group moves the counts of each of the two groups one way, by 1,
    which loses no more than moving one count down and another up in a single group.

    Parameters
    ----------
    column, scope, method : the column that is counted, its rows, and the release.
    weight : the share of the loss.
    count : the number of labels to select, each among those that are left.
    keys : the columns of the groups; if empty, all records are one group.

    Source: parallel composition (McSherry 2009, Theorem 4).
    """

    column: Column
    scope: Scope
    method: str
    weight: Fraction
    count: int = 1
    keys: tuple[Column, ...] = ()

    @property
    def groups(self) -> int:
        """Number of groups."""
        return math.prod(key.cells(self.method) for key in self.keys)

    @property
    def name(self) -> str:
        """The label of the column."""
        return str(self.column.name)

    @property
    def candidates(self) -> int:
        """Number of labels."""
        return len(self.column.labels(self.method))

    @property
    def sensitivity(self) -> Fraction:
        """The largest change of one count."""
        return Fraction(self.scope.count_sensitivity())

    @property
    def monotone(self) -> bool:
        """Whether all counts move the same way."""
        return self.scope.neighbors == "add_remove"

    @property
    def counts(self) -> Part:
        """All counts, as a histogram to which noise is added."""
        (part,) = CellCounts((*self.keys, self.column), self.scope, self.method).parts
        return replace(part, weight=self.weight, name=self.name)

    @property
    def read(self) -> Read:
        """The read of the records per label, and per null cell where nulls are declared."""
        return Read("table", ((*self.keys, self.column), self.method))

    def tables(self, counts: Integers) -> Sequence[Integers]:
        """Return the counts of each group."""
        per_group: Integers = np.reshape(counts, (self.groups, -1))
        return list(per_group)


@dataclass(frozen=True, slots=True)
class Runs:
    """Candidates in runs of equal score, each from grid step ``starts`` to ``starts + lengths - 1``.

    ``deficits``: minus the scores of the runs, in units of 1 / parts of a record.
    """

    starts: Integers
    lengths: Integers
    deficits: Integers

    def followed_by(self, other: Runs) -> Runs:
        """Return these runs, followed by the runs of ``other``."""
        pairs = ((getattr(runs, name) for runs in (self, other)) for name in self.__slots__)
        return Runs(*(np.concatenate(list(pair)) for pair in pairs))

    def farther(self, distance: int, end: int | None = None) -> Runs:
        """Return these runs with deficits larger by a distance; the first or last step, ``end``, has none."""
        if end is None:
            return Runs(self.starts, self.lengths, self.deficits + distance)
        (filled,) = np.nonzero(self.lengths)
        starts, lengths, deficits = (
            self.starts[filled],
            self.lengths[filled],
            self.deficits[filled] + distance,
        )
        at_end, first = Runs(*(np.array([number], np.int64) for number in (end, 1, 0))), starts[0] == end
        starts[0] += int(first)
        lengths[0 if first else -1] -= 1
        others = Runs(starts, lengths, deficits)
        return at_end.followed_by(others) if first else others.followed_by(at_end)


@dataclass(frozen=True, slots=True)
class Quantile:
    """The candidates between the bounds of a column; the score of each is its negative distance to a rank.

    A step with L records below it and R records up to it has the score -max(L - T, T - R, 0): minus the
    distance of the target T to [L, R]. Equal records share one step, which has all their ranks.

    With ``end`` None, T is q n for n records without null, and the sensitivity is that of
    `sensitivity.quantile`.

    With ``end`` "lower", T is `rank`, a fixed number. With "upper", T is n - `rank`, the same rank counted
    from the other end. The sensitivity is that of `sensitivity.extreme`.

    With ``side`` "below", the lower end of an interval for the quantile is selected, and ``end`` is None: T
    is q n minus `margin`, a fixed number, and the lowest step has all ranks below the records, so that its
    score is -max(T - R, 0). All steps above the quantile have scores of at most minus `margin`, and some step
    has a score of 0, however few the records are. With "above", the same from the other end. Each score moves
    no further than that of the quantile, because the margin is fixed. A ``q`` of 0 or 1 is that of a minimum,
    whose interval ends "above", or of a maximum, whose interval ends "below".

    With ``weights``, L, R, n and T are sums of weights in grid steps; ``end`` is None and there are no
    ``keys``.

    A unit with several records counts as that many added or removed records. The scores are not monotone.

    One mechanism selects a number for each group of ``keys``, and its loss counts once. A record that enters
    or leaves a group moves the scores of that group alone, and the losses of such changes add up over all
    groups; the sensitivity is that of ``grouped`` scores.

    Parameters
    ----------
    grid : the candidates.
    q : the share of records below.
    scope : the public facts of the rows.
    weight : the share of the loss.
    end : the extreme to select in place of a quantile, or None.
    keys : the columns of the groups; if empty, all records are one group.
    weights : the weights of the records on a grid, only without ``keys``; see `quantile_bits`.
    side : the end of an interval to select in place of the quantile, or None.
    level : the level of the interval.

    Source: Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates",
    Algorithm 2, on a grid; parallel composition (McSherry 2009, Theorem 4).
    """

    grid: RankGrid
    q: Fraction
    scope: Scope
    weight: Fraction
    end: End | None = None
    keys: tuple[Column, ...] = ()
    weights: Quantity | None = None
    side: Side | None = None
    level: float = 1 - MISSES

    def __post_init__(self) -> None:
        if self.weights is not None and (self.keys or self.end is not None):
            raise ParameterError(
                "Weighted quantiles are offered for all records, above 0 and below 1, and not per group.",
                "private[...].dp.quantile(..., weights=..., epsilon=0.1) of the records of one group",
            )

    @property
    def groups(self) -> int:
        """Number of groups."""
        return math.prod(key.cells("groupby") for key in self.keys)

    @property
    def unit(self) -> float:
        """The size of one step of a score, in records or in weight."""
        return 1.0 if self.weights is None else self.weights.grid

    @property
    def name(self) -> str:
        """The name of the column, and the share."""
        end = {"below": ", lower end", "above": ", upper end", None: ""}[self.side]
        return f"{self.grid.column.name}, q={float(self.q)!r}{end}"

    @property
    def candidates(self) -> int:
        """Number of steps."""
        return self.grid.candidates

    @property
    def sensitivity(self) -> Fraction:
        """The largest change of one score; with groups, the sum over groups of the largest change in each."""
        neighbors, grouped = self.scope.neighbors, bool(self.keys)
        if self.end is not None:
            change = Fraction(sensitivity.extreme(neighbors=neighbors, grouped=grouped))
        else:
            largest = 1 if self.weights is None else self.weights.high
            change = sensitivity.quantile(self.q, neighbors=neighbors, weight_upper=largest, grouped=grouped)
        return change * self.scope.contribution

    @property
    def monotone(self) -> bool:
        """False: a record below the target moves the target away from one side and towards the other."""
        return False

    @property
    def parts(self) -> int:
        """The denominator of the scores, which are multiples of 1 / parts."""
        return 1 if self.end is not None else self.q.denominator

    def rank(self, scale: float) -> int:
        """Return the rank from the end at which to seek a minimum or maximum, for a mechanism of this scale.

        The steps beyond all records have a score of minus this rank, and there may be as many of them as the
        grid has. The rank is large enough that all of them together have at most a twentieth of the weight of
        one step of the right rank. It is at most half of the public lower bound of the number of records; a
        rank that is limited in this way does not outweigh these steps.
        """
        least = 0 if self.keys else self.scope.row_bounds(nullable=self.grid.column.nullable)[0]
        rank = self._outweighing(scale)
        return max(min(rank, least // 2), 1) if least else rank

    def rank_is_limited(self, scale: float) -> bool:
        """Return whether half of the public lower bound of the number of records limits `rank`."""
        return self.rank(scale) < self._outweighing(scale)

    def _outweighing(self, scale: float) -> int:
        return math.floor(min(math.log(20 * self.candidates) * scale, FARTHEST)) + 1

    def margin(self, scale: float) -> int:
        """Return how many ranks an end of an interval is sought beyond the quantile.

        The steps on the wrong side of the quantile weigh at most half of 1 - ``level`` of one step of the
        right rank; those above a maximum or below a minimum all of it, because the other end is a bound. One
        rank more covers quantiles that are interpolated between two records.
        """
        return math.ceil(min(self._misses(scale), FARTHEST)) + 1

    def margin_is_limited(self, scale: float) -> bool:
        """Return whether the margin is cut at `FARTHEST`: the end may miss the quantile."""
        return self._misses(scale) > FARTHEST

    def _misses(self, scale: float) -> float:
        ends = 1 if self.q in (0, 1) else 2
        misses = MISSES if self.level == 1 - MISSES else 1 - self.level
        return math.log(ends * self.candidates / misses) * scale

    def target(self, rows: int, scale: float) -> int:
        """Return the target T, in units of 1 / parts of a record."""
        if self.side is not None:
            moved = self.parts * self.margin(scale)
            return self.q.numerator * rows + (moved if self.side == "above" else -moved)
        if self.end is None:
            return self.q.numerator * rows
        return self.rank(scale) if self.end == "lower" else rows - self.rank(scale)

    @property
    def read(self) -> Read:
        """The read of the records in the order of their steps, per group where there are keys."""
        if self.keys:
            return Read("grouped_ranks", (self.grid, self.keys, "groupby"))
        return Read("ranks", (self.grid,) if self.weights is None else (self.grid, self.weights))

    def tables(self, ranks: Any) -> Sequence[Ranks]:
        """Return the records of each group."""
        return ranks if self.keys else [ranks]

    def runs_near_target(
        self, ranks: Ranks, scale: float, reach: int
    ) -> tuple[Runs, int, int, Callable[[], Runs]]:
        """Return the runs of all steps within ``reach`` records of the target, and what the other steps are.

        The result holds the runs, the number of other steps, their least possible deficit, and a function
        that returns the runs of the other steps.
        """
        parts = self.parts
        # a rank beyond all records is as far from every step as the last rank, up to a constant
        wanted = self.target(ranks.rows, scale)
        target = min(max(wanted, 0), parts * ranks.rows)
        farther = 0 if self.side is None else abs(wanted - target)
        low, high = self.grid.low, self.grid.high
        window = ranks.between(target // parts - reach, -(-target // parts) + reach)
        above = window.below + int(window.counts.sum())
        beyond = []
        if window.low > low:
            beyond.append(target - parts * window.below)
        if window.high < high:
            beyond.append(parts * above - target)
        others = self.candidates - (window.high - window.low + 1)

        def rest() -> Runs:
            whole = ranks.between(0, ranks.rows)
            first, last = np.searchsorted(whole.values, [window.low, window.high + 1])
            before = Window(low, window.low - 1, 0, whole.values[:first], whole.counts[:first])
            after = Window(window.high + 1, high, above, whole.values[last:], whole.counts[last:])
            return _runs(before, target, parts).followed_by(_runs(after, target, parts)).farther(farther)

        near = _runs(window, target, parts)
        if farther:  # the window reaches to the end of the grid
            near = near.farther(farther, low if self.side == "below" else high)
        return near, others, min(beyond, default=0) + farther, rest

    def value(self, step: int) -> float:
        """Return the number at a step, within the bounds."""
        return self.grid.value(step)


def _runs(window: Window, target: int, parts: int) -> Runs:
    """Return the runs of a window: each value that occurs, and the stretches between these values."""
    values, counts = window.values, window.counts
    size = len(values)
    starts, lengths = np.empty(2 * size + 1, np.int64), np.ones(2 * size + 1, np.int64)
    starts[1::2] = values
    starts[0], starts[2::2] = window.low, values + 1
    lengths[0::2] = np.append(values, window.high + 1) - starts[0::2]
    upto = window.below + np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    beyond = upto * parts - target
    deficits = np.empty(2 * size + 1, np.int64)
    deficits[0::2] = np.abs(beyond)  # a stretch holds no records: as many are up to a step as below it
    deficits[1::2] = np.maximum(np.maximum(beyond[:-1], -beyond[1:]), 0)
    return Runs(starts, lengths, deficits)
