"""The gate: the one function where private data meets noise.

The order is the guarantee: sensitivities and scales from declared facts, then
the charge, then the data, then the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy import noise
from pdprivacy.accounting import Event, Events, GaussianNoise
from pdprivacy.errors import ParameterError
from pdprivacy.ledger import Budget, Entry
from pdprivacy.mechanism import (
    ExponentialMechanism,
    Gaussian,
    GeneralizedGaussian,
    Geometric,
    Laplace,
    PermuteAndFlip,
    noise_multiplier,
)
from pdprivacy.mechanism.core import GRID_BITS, power_below
from pdprivacy.mechanism.selection import SELECTIONS, Choosing
from pdprivacy.noise import UNBOUNDED, RandomState
from pdprivacy.noise.choice import Rest
from pdprivacy.privacy import Approx, Pure, Unit, loss
from pdprivacy.request import Bounding, Request
from pdprivacy.statistic import Engine, Iterated, Labels, Noisy, Part, Quantile, Statistic, Walk, Whole
from pdprivacy.statistic.confidence import Tail

__all__ = [
    "Measurement",
    "PartMechanism",
    "Selection",
    "calibrate",
    "choose",
    "events",
    "measure",
    "released_by",
    "search",
    "selectors",
    "total_cost",
    "walking",
]

PartMechanism: TypeAlias = Laplace | Gaussian | GeneralizedGaussian | Geometric
Floats: TypeAlias = NDArray[np.float64]

EXACT = 2**53

DRAWN_BITS = 48
"""The scale of the noise is at most 2**49 grid steps."""

INVERTED_BITS = 30
"""The same where noise is drawn by inversion in double precision, which decides nearly all draws there."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Noisy parts with the mechanism of each, and the charge that paid for them (none in a plan)."""

    parts: tuple[Part, ...]
    mechanisms: tuple[PartMechanism, ...]
    noisy: tuple[Noisy, ...]
    cost: Pure | Approx
    seeded: bool
    entry: Entry | None = None


def measure(
    statistic: Statistic,
    engine: Engine,
    budget: Budget,
    unit: Unit,
    request: Request,
    label: str,
    rng: RandomState,
    release_id: str | None = None,
) -> list[Measurement]:
    """Charge ``request`` for ``statistic``, then read it once and add noise, once per release.

    Of an `Iterated` statistic each release is a round: it is read anew, made after the noisy parts of the
    round before. All rounds are charged together, before anything is read.

    Parts get their noise one after the other: what bounds a part may depend on the noisy parts
    before it, never on exact ones.

    Raises
    ------
    ParameterError : a mechanism that does not fit; nothing is charged.
    BudgetExceeded, AlreadyCharged, LedgerError : nothing is read. Whatever fails later stays charged.
    """
    source = noise.source(rng)
    parts = statistic.parts
    mechanisms = calibrate(parts, request)
    cost = total_cost(mechanisms, request)
    entry = budget.charge(
        cost,
        label,
        request.mechanism,
        events=events(parts, mechanisms, request),
        release_id=release_id,
        unit=unit,
    )
    read = statistic.read(engine)
    found: list[Measurement] = []
    for _ in range(request.releases):
        if found and isinstance(statistic, Iterated):
            statistic = statistic.after(found[-1].noisy)
            assert statistic.parts == parts  # which the noise and the charge are of
            read = statistic.read(engine)
        noisy: list[Noisy] = []
        for part, mechanism, whole in zip(parts, mechanisms, read, strict=True):
            limits = None if request.bounding is None else part.within(noisy)
            if request.bounding == "truncated" and limits is not None:
                values = _add_within(whole, part, mechanism, limits, source)
            else:
                values = _add(whole, part, mechanism, source)
            if limits is not None:
                values = np.clip(values, *(np.asarray(limit, np.float64) for limit in limits))
            noisy.append(Noisy(values, mechanism.std, Tail.of(mechanism, request.bounding)))
        found.append(Measurement(parts, mechanisms, tuple(noisy), cost, source.seeded, entry))
    return found


def search(
    walk: Walk,
    engine: Engine,
    budget: Budget,
    unit: Unit,
    asked: Choosing,
    label: str,
    rng: RandomState,
    release_id: str | None = None,
    turns: Iterable[int] | None = None,
) -> tuple[list[int], Measurement]:
    """Charge ``asked``, then select step by step, by costs that follow from what was selected before.

    All selections share the cost equally, and are charged together, before anything is read: one after the
    other, each may depend on the outcomes before it. ``turns``: their numbers from 0, for a bar to count.

    Returns what was selected, and a measurement without parts. Raises as `measure`.
    """
    source = noise.source(rng)
    mechanism = walking(walk, asked)
    entry = budget.charge(
        asked.cost,
        label,
        asked.title,
        events=((Event(mechanism.loss), walk.selections),),
        release_id=release_id,
        unit=unit,
    )
    selected: list[int] = []
    with closing(walk.walk(engine)) as costs:  # no interrupt leaves it suspended, with the counts in it
        for turn in range(walk.selections) if turns is None else turns:
            cost = costs.send(selected[-1]) if turn else next(costs)
            selected.append(mechanism.select(-cost, source))
    return selected, Measurement((), (), (), asked.cost, source.seeded, entry)


def walking(walk: Walk, asked: Choosing) -> PermuteAndFlip | ExponentialMechanism:
    """The mechanism of each selection of a walk that costs so much in all."""
    each = asked.cost.epsilon / walk.selections
    return SELECTIONS[asked.drawn](each, walk.sensitivity, walk.monotone)


Choice: TypeAlias = Labels | Quantile
ChoiceMechanism: TypeAlias = PermuteAndFlip | ExponentialMechanism | PartMechanism

HARDLY = 100 * math.log(2)
"""Candidates that all together have a probability below exp(-HARDLY) are looked at only if one is drawn."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected of each choice, places of labels or a grid step, and the charge that paid for it."""

    mechanisms: tuple[ChoiceMechanism, ...]
    selected: tuple[tuple[int, ...], ...]
    cost: Pure | Approx
    seeded: bool
    entry: Entry | None = None


def choose(
    choices: Sequence[Choice],
    engine: Engine,
    budget: Budget,
    unit: Unit,
    asked: Choosing,
    label: str,
    rng: RandomState,
    release_id: str | None = None,
) -> list[Selection]:
    """Charge ``asked`` for all ``choices``, then read their scores and select, once per release.

    The sibling of `measure` for what is selected and not added up. The choices share the loss by their
    weights, several labels of one choice share its part equally, one selected after the other; of noisy
    counts, all of them are taken at once.

    Raises
    ------
    ParameterError : a mechanism that does not fit; nothing is charged.
    BudgetExceeded, AlreadyCharged, LedgerError : nothing is read. Whatever fails later stays charged.
    """
    source = noise.source(rng)
    mechanisms, taken_place = selectors(choices, asked)
    entry = budget.charge(
        asked.cost, label, asked.title, events=taken_place, release_id=release_id, unit=unit
    )
    each: list[list[tuple[int, ...]]] = [[] for _ in range(asked.releases)]
    held: tuple[Any, Any] = (None, None)
    for choice, mechanism in zip(choices, mechanisms, strict=True):
        reads = choice.column if isinstance(choice, Labels) else choice.quantity
        if held[0] != reads:  # several quantiles of a column are read once
            held = reads, choice.read(engine)
        if isinstance(choice, Labels):
            for selected in each:
                selected.append(_best(choice, mechanism, held[1], source))
        else:
            assert isinstance(mechanism, ExponentialMechanism)
            for selected, step in zip(
                each, _ranked(choice, mechanism, held[1], asked.releases, source), strict=True
            ):
                selected.append((step,))
    return [Selection(mechanisms, tuple(selected), asked.cost, source.seeded, entry) for selected in each]


def selectors(choices: Sequence[Choice], asked: Choosing) -> tuple[tuple[ChoiceMechanism, ...], Events]:
    """The mechanism of each selection, from declared facts alone, and what takes place as events.

    Raises ParameterError where a mechanism does not fit.
    """
    each = asked.each
    if asked.drawn in ("geometric", "gaussian"):
        if not all(isinstance(choice, Labels) for choice in choices):
            raise ParameterError("Noisy counts are for labels.", 'mechanism="exponential".')
        parts = tuple(choice.counts for choice in choices if isinstance(choice, Labels))
        request = Request(
            asked.cost.epsilon,
            asked.cost.delta,
            mechanism="gaussian" if asked.drawn == "gaussian" else "geometric",
            releases=asked.releases,
        )
        noisy = calibrate(parts, request)
        return noisy, events(parts, noisy, request)
    found, taken_place = [], []
    for choice in choices:
        times = choice.count if isinstance(choice, Labels) else 1
        epsilon = each.epsilon * choice.weight / times
        mechanism = SELECTIONS[asked.drawn](epsilon, choice.sensitivity, choice.monotone)
        found.append(mechanism)
        taken_place.append((Event(mechanism.loss), times * asked.releases))
    return tuple(found), tuple(taken_place)


def _best(choice: Labels, mechanism: ChoiceMechanism, counts: Any, source: noise.Source) -> tuple[int, ...]:
    """The places of as many labels as the choice asks for; null is none of them."""
    size = choice.candidates
    if not isinstance(mechanism, PermuteAndFlip | ExponentialMechanism):
        # what is made of a noisy histogram costs what the histogram does, in any order of equal numbers
        noisy = _add(counts, choice.counts, mechanism, source)[:size]
        return tuple(np.argsort(-noisy, kind="stable")[: choice.count].tolist())
    left = np.arange(size)
    scores = counts[:size]
    found = []
    for _ in range(choice.count):
        place = mechanism.select(scores, source)
        found.append(int(left[place]))
        left, scores = np.delete(left, place), np.delete(scores, place)
    return tuple(found)


def _ranked(
    choice: Quantile, mechanism: ExponentialMechanism, ranks: Any, releases: int, source: noise.Source
) -> list[int]:
    """One grid step per release: a run of steps of equal score, then any of them with the same probability.

    Only records near the target are sorted; all others together are one candidate, which nearly no draw hits.
    """
    reach = math.ceil((HARDLY + math.log(choice.candidates)) * mechanism.scale) + 1
    runs, others, least, beyond = choice.near(ranks, mechanism.scale, reach)

    def load() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        nonlocal runs
        more = beyond()
        runs = runs.followed_by(more)
        return more.lengths, more.deficits

    rest = Rest(others, least, load) if others else None
    weights = mechanism.weights(runs.lengths, runs.deficits, choice.parts, rest)
    found = []
    for _ in range(releases):
        run = weights.draw(source)
        found.append(int(runs.starts[run]) + source.below(int(runs.lengths[run])))
    return found


def total_cost(mechanisms: Sequence[PartMechanism], request: Request) -> Pure | Approx:
    """What all releases cost: what was asked, but for the published calibration, which costs more."""
    if request.calibration != "published":
        return request.cost
    losses = [mechanism.loss.times(request.releases) for mechanism in mechanisms]
    return loss(sum(one.epsilon for one in losses), sum(one.delta for one in losses))


def events(
    parts: Sequence[Part], mechanisms: Sequence[PartMechanism], request: Request
) -> tuple[tuple[Event, int], ...]:
    """What is released, as an accounting sees it: the loss of each release, and Gaussian noise.

    Parts of weights w have deviations of ``multiplier / sqrt(w)`` sensitivities each, so that together
    they are Gaussian noise of that multiplier. Truncated noise is another law.
    """
    each = request.each
    if request.calibration == "published":
        losses = [mechanism.loss for mechanism in mechanisms]
        each = loss(sum(one.epsilon for one in losses), sum(one.delta for one in losses))
    noisy = [mechanism for mechanism in mechanisms if isinstance(mechanism, Gaussian)]
    if not noisy or request.bounding == "truncated":
        return ((Event(each), request.releases),)
    found = GaussianNoise(
        min(mechanism.multiplier for mechanism in noisy),
        sum(part.moves for part in parts),
        min(math.floor(mechanism.steps) for mechanism in noisy),
    )
    return ((Event(each, found), request.releases),)


def calibrate(parts: Sequence[Part], request: Request) -> tuple[PartMechanism, ...]:
    """The noise of each part, from declared facts alone.

    For weights w that sum to one, parts that cost (w epsilon, w delta) each cost (epsilon, delta)
    in all. Gaussian noise shares the l2 norm instead, truncated or not: deviation ``multiplier * l2 /
    sqrt(w)`` per part.

    Raises ParameterError where the mechanism or its bounds do not fit the statistic.
    """
    return tuple(_calibrate(part, request) for part in parts)


def released_by(mechanism: PartMechanism, part: Part, bounding: Bounding | None) -> PartMechanism:
    """The mechanism with all the bounds that released numbers of the part are kept in.

    `calibrate` tells a mechanism of its bounds only where its scale depends on them.
    """
    if bounding is None or (bounding == "truncated" and not isinstance(mechanism, Gaussian)):
        return mechanism
    ends = (
        -math.inf if part.lower is None else part.lower * part.unit,
        math.inf if part.upper is None else part.upper * part.unit,
    )
    kept: dict[str, Any] = {"bounds": ends, "bounding": bounding, "moves": part.moves}
    if isinstance(mechanism, Geometric):
        return Geometric(mechanism.epsilon, mechanism.sensitivity, **kept)
    kept["grid"] = mechanism.grid
    if isinstance(mechanism, Laplace):
        return Laplace(mechanism.epsilon, mechanism.sensitivity, **kept)
    first = (mechanism.epsilon, mechanism.delta, mechanism.sensitivity)
    if isinstance(mechanism, Gaussian):
        return Gaussian(*first, mechanism.calibration, **kept)
    return GeneralizedGaussian(*first, mechanism.p, **kept)


def _calibrate(part: Part, request: Request) -> PartMechanism:
    cost, truncated = request.each, request.bounding == "truncated"
    own = _own_bounds(part, request)
    moved = Fraction(part.l1)
    epsilon, delta = cost.epsilon * part.weight, cost.delta * part.weight
    if request.mechanism == "geometric":
        if not part.counts:
            raise ParameterError(
                "mechanism='geometric' is for counts.", 'use mechanism="laplace" for numbers.'
            )
        return Geometric(epsilon, moved, **own)
    if request.mechanism == "laplace":
        if request.calibration is not None:
            own["calibration"] = request.calibration
        grid = _grid(part.unit, moved * part.unit / epsilon)
        return Laplace(epsilon, _on_grid(part, grid, truncated), grid=grid, **own)
    if request.mechanism == "generalized_gaussian":
        assert request.p is not None
        own["moves"] = part.moves
        tried = GeneralizedGaussian(epsilon, delta, moved * part.unit, request.p, moves=part.moves)
        grid = _grid(part.unit, Fraction(tried.scale), INVERTED_BITS)
        return GeneralizedGaussian(
            epsilon, delta, _on_grid(part, grid, truncated), request.p, grid=grid, **own
        )
    calibration = request.calibration or "analytic"
    assert calibration != "published"
    share = _root(Fraction(part.l2_squared) / part.weight)
    scale = share * noise_multiplier(cost.epsilon, cost.delta, calibration) * part.unit
    grid = _grid(part.unit, scale, INVERTED_BITS if truncated else DRAWN_BITS)
    # rounding to a grid coarser than the unit moves each number that a record moves by a step
    rounding = part.moves * grid * _root(1 / part.weight) if grid > part.unit else 0
    if truncated:  # the scale does not depend on the bounds, and the share is no range to compare with
        own["bounds"] = (0, math.inf)
    return Gaussian(cost.epsilon, cost.delta, share * part.unit + rounding, calibration, grid=grid, **own)


def _own_bounds(part: Part, request: Request) -> dict[str, Any]:
    """What a truncated mechanism is told of its bounds: others are clamped, which needs no telling."""
    if request.bounding is not None and part.limits is None and part.lower is None and part.upper is None:
        raise ParameterError(
            f"Nothing bounds the {part.name}: it can be any number.", "pass bounds=(lower, upper)."
        )
    if request.bounding != "truncated":
        return {}
    if part.limits is not None:
        # calibrated for one bound, truncated noise keeps its loss within any two
        return {"bounds": (0, math.inf), "bounding": "truncated", "moves": part.moves}
    # the distance of the bounds is all that the scale depends on
    width = math.inf if part.lower is None or part.upper is None else part.upper - part.lower
    if width == 0:
        raise ParameterError(f"The {part.name} can be one number only, which is public.")
    return {"bounds": (0, width), "bounding": "truncated", "moves": part.moves}


def _on_grid(part: Part, grid: Fraction, truncated: bool) -> Fraction:
    """How far the part moves on a grid that may be coarser than its unit."""
    moved = part.l1 * part.unit
    if grid <= part.unit:
        return moved
    # rounding moves each number that a record moves by a step
    coarse = (math.floor(moved / grid) + part.moves) * grid
    if truncated and part.moves == 1 and part.lower is not None and part.upper is not None:
        # clamped to the grid within its bounds first, the number moves no further than they are apart
        return min(coarse, max((part.upper - part.lower) // grid, 1) * grid)
    return coarse


def _grid(unit: Fraction, scale: Fraction, bits: int = DRAWN_BITS) -> Fraction:
    """A power of two well below the scale: at most the unit, unless that would be too many steps to draw."""
    power = power_below(scale)
    return max(min(unit, power / (1 << GRID_BITS)), power / (1 << bits))


def _root(square: Fraction) -> Fraction:
    """A square root rounded up, to 60 bits."""
    shift = max(0, 120 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    scaled = -((-square.numerator << shift) // square.denominator)
    return Fraction(math.isqrt(scaled) + 1, 1 << (shift // 2))


def _add(whole: Whole, part: Part, mechanism: PartMechanism, source: noise.Source) -> Floats:
    """Whole numbers plus noise, as multiples of the mechanism's grid.

    The sum is formed exactly before it becomes a double: a double that had been rounded before
    the noise came would have another sensitivity.
    """
    steps = mechanism.draw(len(whole), source)
    grid = mechanism.grid
    if isinstance(whole, np.ndarray) and grid <= part.unit and np.abs(whole).max(initial=0) < EXACT:
        if grid == part.unit:
            return np.asarray((whole + steps).astype(np.float64) * float(grid))
        # both terms are exact doubles; their sum is rounded once, after the noise
        if int(np.abs(steps).max(initial=0)) < EXACT:
            return np.asarray(whole.astype(np.float64) * float(part.unit) + steps * float(grid))
    sums = [number + step for number, step in zip(_steps(whole, part, grid), steps.tolist(), strict=True)]
    return np.array([float(total) for total in sums]) * float(grid)


def _steps(whole: Whole, part: Part, grid: Fraction) -> list[int]:
    """Whole numbers in steps of the grid, rounded half up where it is coarser than the unit."""
    numbers: Sequence[int] = whole.tolist() if isinstance(whole, np.ndarray) else whole
    if grid > part.unit:
        coarser = int(grid / part.unit)
        return [(number + coarser // 2) // coarser for number in numbers]
    finer = int(part.unit / grid)
    return [number * finer for number in numbers]


def _add_within(
    whole: Whole, part: Part, mechanism: PartMechanism, limits: tuple[Any, Any], source: noise.Source
) -> Floats:
    """Whole numbers clamped into ``limits``, plus noise truncated to them, as multiples of the grid."""
    grid = mechanism.grid
    if isinstance(whole, np.ndarray) and np.ndim(limits[0]) == np.ndim(limits[1]) == 0:
        quick = _add_within_static(whole, part, mechanism, limits, source)
        if quick is not None:
            return quick
    numbers = _steps(whole, part, grid)
    lowest, highest = (
        [step(limit, grid)] * len(numbers)
        if np.ndim(limit) == 0
        else [step(one, grid) for one in np.asarray(limit).tolist()]
        for step, limit in zip((_up, _down), limits, strict=True)
    )
    centers, below, above = [], [], []
    for number, least, most in zip(numbers, lowest, highest, strict=True):
        if least is not None and most is not None:
            most = max(least, most)  # a range narrower than a step is its lower end
        center = number if least is None else max(number, least)
        center = center if most is None else min(center, most)
        centers.append(center)
        below.append(UNBOUNDED if least is None else min(center - least, UNBOUNDED))
        above.append(UNBOUNDED if most is None else min(most - center, UNBOUNDED))
    drawn = mechanism.draw_within(np.array(below, np.int64), np.array(above, np.int64), source)
    sums = [center + step for center, step in zip(centers, drawn.tolist(), strict=True)]
    return np.array([float(total) for total in sums]) * float(grid)


def _add_within_static(
    whole: NDArray[np.int64],
    part: Part,
    mechanism: PartMechanism,
    limits: tuple[Any, Any],
    source: noise.Source,
) -> Floats | None:
    """The same in whole arrays for limits common to all numbers; None where 64 bits are too few."""
    finer = part.unit / mechanism.grid
    low, high = _up(limits[0], mechanism.grid), _down(limits[1], mechanism.grid)
    reach = max(int(np.abs(whole).max(initial=0)), 1) * math.ceil(finer)  # an empty table is like any other
    if finer.denominator != 1 or max(reach, abs(low or 0), abs(high or 0)) >= 2**61:
        return None
    if low is not None and high is not None:
        high = max(low, high)
    centers = whole * int(finer)
    if low is not None or high is not None:
        centers = np.clip(centers, low, high)
    free = np.full(whole.size, UNBOUNDED, np.int64)
    below = free if low is None else centers - low
    above = free if high is None else high - centers
    return np.asarray((centers + mechanism.draw_within(below, above, source)) * float(mechanism.grid))


def _up(limit: float | Fraction, grid: Fraction) -> int | None:
    """The first grid step at or above a limit; None where there is no limit."""
    return math.ceil(Fraction(limit) / grid) if math.isfinite(limit) else None


def _down(limit: float | Fraction, grid: Fraction) -> int | None:
    """The last grid step at or below a limit; None where there is no limit."""
    return math.floor(Fraction(limit) / grid) if math.isfinite(limit) else None
