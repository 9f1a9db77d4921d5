"""The recorded facts of a release: plain values, independent of the package inside."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

__all__ = ["Charge", "Coins", "Draw", "Event", "Law", "Record", "Selection"]


@dataclass(frozen=True)
class Event:
    """An event of an accounting: a loss, its count, and its Gaussian noise if it has any.

    ``gaussian``: the noise multiplier, the most numbers that a unit moves, and the deviation in grid steps.
    ``grouped``: whether the loss is valid only summed up over a secret part.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    times: int
    gaussian: tuple[Fraction, int, int] | None = None
    grouped: bool = False


@dataclass(frozen=True)
class Charge:
    """One charge to a budget. ``of_group``: to the budget of one group of a partition."""

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    count: int
    label: str
    mechanism: str
    events: tuple[Event, ...]
    of_group: bool


@dataclass(frozen=True)
class Law:
    """A distribution on the integers, centred at 0, with its exact parameters in grid steps.

    "laplace": P(z) ~ exp(-|z| / b), parameter b. "gaussian": P(z) ~ exp(-z^2 / (2 v)), parameter v. "rounded
    normal": the density ~ exp(-|x|^p / c) rounded to integers, parameters p and c. "staircase": P(z) ~
    exp(-e l), l the number of widths that |z| holds, one more from the break on; parameters e, width, break.
    """

    name: str
    parameters: tuple[Fraction, ...]


@dataclass(frozen=True)
class Draw:
    """A vector of exact integers at the point where it gets its noise.

    ``integers``: the exact statistic in ``unit``. ``centers``: the same in steps of ``grid``, clamped where
    noise is truncated; noise of ``law`` is added to them. ``below``, ``above``: how far truncated noise
    reaches, in steps, per number; None for no bound. ``l1``, ``l2_squared``, ``moves``: stated sensitivities.
    """

    part: str
    weight: Fraction
    l1: int
    l2_squared: int
    moves: int
    unit: Fraction
    mechanism: str
    epsilon: Fraction
    delta: Fraction
    scale: float
    grid: Fraction
    law: Law
    integers: tuple[int, ...]
    centers: tuple[int, ...]
    below: tuple[int | None, ...] | None = None
    above: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class Selection:
    """Candidates in runs of equal score, one of which is selected.

    ``scale``: exact, of the scores. ``parts``: scores are in 1 / parts. ``starts``, ``lengths``: the
    candidates of each run; ``scores``: what each candidate of the run scores.
    """

    mechanism: str
    scale: Fraction
    sensitivity: Fraction
    monotone: bool
    parts: int
    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    scores: tuple[int, ...]


@dataclass(frozen=True)
class Coins:
    """Random choices about records: which of them are kept, and their order.

    ``kind``: "coins", "weighted coins", "without replacement", "shuffle" or "centres" (of clusters, without
    data). ``parameters``: their probabilities, or how many are kept.
    """

    kind: str
    size: int
    parameters: tuple[Fraction | float | int, ...]


Record: TypeAlias = Charge | Draw | Selection | Coins
