"""The kinds of releases: noisy numbers, rounds of them, selections, and walks of selections.

Each makes its price of declared facts alone, and draws its noise once it has the exact numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from pdprivacy.core.accounting import Event, Events, GaussianNoise
from pdprivacy.core.gate.request import Bounding, MechanismName, Request
from pdprivacy.core.gate.spec import MAX_CELLS, Price, Task
from pdprivacy.core.mechanisms import MECHANISMS, ExponentialMechanism, PermuteAndFlip
from pdprivacy.core.mechanisms.additive import Additive, add, add_within
from pdprivacy.core.mechanisms.exponential import SELECTIONS, Choosing, LargestCounts
from pdprivacy.core.noise import Source
from pdprivacy.core.noise.choice import Rest
from pdprivacy.core.privacy import Approx, Pure
from pdprivacy.core.statistics import (
    Clusters,
    LabelScores,
    Medians,
    Noisy,
    Part,
    Quantile,
    Ranks,
    Read,
    Statistic,
)
from pdprivacy.core.statistics.private_bounds import STAGES, BoundSearch, Counted
from pdprivacy.errors import ParameterError, TableTooLargeError
from pdprivacy.types import Integers, Whole

Choice: TypeAlias = LabelScores | Quantile
ChoiceMechanism: TypeAlias = PermuteAndFlip | ExponentialMechanism | LargestCounts
Selected: TypeAlias = list[tuple[int, ...]]

HARDLY = 100 * math.log(2)
"""Candidates with a total probability below exp(-HARDLY) are computed only if one is drawn."""


def calibrate(parts: Sequence[Part], request: Request) -> tuple[Additive, ...]:
    """Return the mechanism of each part, from declared facts alone.

    For weights w that sum to one, parts that cost (w epsilon, w delta) each cost (epsilon, delta)
    in all. Gaussian noise shares the l2 norm instead, truncated or not: deviation ``multiplier * l2 /
    sqrt(w)`` per part.

    Raises ParameterError where the mechanism or its bounds do not fit the statistic.
    """
    mechanism = MECHANISMS[request.mechanism]
    return tuple([mechanism._calibrate(part, request) for part in parts])


def events(
    parts: Sequence[Part], mechanisms: Sequence[Additive], request: Request
) -> tuple[tuple[Event, int], ...]:
    """Return the events that an accounting composes: the loss of each release, and Gaussian noise.

    Parts of weights w have deviations of ``multiplier / sqrt(w)`` sensitivities each, so that together
    they are Gaussian noise of that multiplier. Truncated noise is another law.
    """
    release_loss = _published_loss(mechanisms) if request.calibration == "published" else request.each
    multipliers = [mechanism.multiplier for mechanism in mechanisms if mechanism.multiplier is not None]
    if not multipliers or request.bounding == "truncated":
        return ((Event(release_loss), request.releases),)
    # on the integers a deviation may be below 1: rho holds for it as well, and 1 is too coarse for all else
    steps = max(min(math.floor(mechanism.steps) for mechanism in mechanisms), 1)
    gaussian = GaussianNoise(min(multipliers), sum(part.l0 for part in parts), steps)
    return ((Event(release_loss, gaussian), request.releases),)


def _published_loss(mechanisms: Sequence[Additive]) -> Pure:
    """Return the loss of one release with the published calibration, which is more than the requested one."""
    return Pure(sum(mechanism.loss.epsilon for mechanism in mechanisms))


def released_by(mechanism: Additive, part: Part, bounding: Bounding | None) -> Additive:
    """Return the mechanism with all bounds of the released numbers of the part.

    `calibrate` passes bounds to a mechanism only where its scale depends on them.
    """
    lower, upper = part.bounds
    return mechanism._with_bounds((lower * part.unit, upper * part.unit), bounding, part.l0)


def sensitivity_of(part: Part, mechanism: Additive) -> float:
    """Return the sensitivity of a part in the norm of its mechanism, in the unit of the statistic."""
    sensitivity = math.sqrt(part.l2_squared) if mechanism.norm == "l2" else float(part.l1)
    return sensitivity * float(part.unit)


def _noisy(exact: Sequence[Whole], price: Price, request: Request, source: Source) -> tuple[Noisy, ...]:
    """Return all parts with their noise, one after the other.

    The bounds of a part may depend on the noisy parts before it, never on exact ones.
    """
    noisy: list[Noisy] = []
    for part, mechanism, whole in zip(price.parts, price.mechanisms, exact, strict=True):
        limits = None if request.bounding is None else part.bounds_given(noisy)
        if request.bounding == "truncated" and limits is not None:
            values = add_within(whole, part.unit, mechanism, limits, source)
        else:
            values = add(whole, part.unit, mechanism, source)
        if limits is not None:
            values = np.clip(values, *(np.asarray(limit, np.float64) for limit in limits))
        noisy.append(Noisy.of(values, mechanism, request.bounding))
    return tuple(noisy)


def noiseless(exact: Sequence[Whole], price: Price, request: Request) -> tuple[Noisy, ...]:
    """Return all parts without noise, for a plan: of assumed numbers, never of the records."""
    noisy: list[Noisy] = []
    for part, mechanism, whole in zip(price.parts, price.mechanisms, exact, strict=True):
        values = np.array([float(number * part.unit) for number in np.asarray(whole, object)])
        if request.bounding is not None:
            values = np.clip(values, *(np.asarray(limit, np.float64) for limit in part.bounds_given(noisy)))
        noisy.append(Noisy.of(values, mechanism, request.bounding))
    return tuple(noisy)


@dataclass(frozen=True, slots=True)
class NoisyNumbers(Task):
    """A statistic that is read once, and gets noise once per release. The outcome lists all releases."""

    statistic: Statistic
    request: Request

    @property
    def cost(self) -> Pure | Approx:
        """The loss of all releases together."""
        return self.request.cost

    @property
    def reads(self) -> tuple[Read, ...]:
        """The reads of the statistic."""
        return self.statistic.reads

    def price(self, cost: Pure | Approx) -> Price:
        """Return the noise of each part, and the loss of all releases.

        Raises ParameterError where a mechanism does not fit, TableTooLargeError for too many numbers.
        """
        request, parts = self.request.with_cost(cost), self.statistic.parts
        size = sum([part.size for part in parts]) * request.releases
        if size > MAX_CELLS:
            raise TableTooLargeError(
                f"All releases together would hold {size} noisy numbers, more than {MAX_CELLS}.",
                "fewer releases, or fewer columns at once.",
            )
        mechanisms = calibrate(parts, request)
        spent = request.cost
        if request.calibration == "published":
            spent = _published_loss(mechanisms).times(request.releases)
        return Price(spent, request.mechanism, events(parts, mechanisms, request), mechanisms, parts)

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        """Return the whole numbers of each part."""
        return self.statistic.exact(answers)

    def draw(self, exact: list[Whole], price: Price, source: Source) -> Any:
        """Return the noisy parts of each release."""
        return [_noisy(exact, price, self.request, source) for _ in range(self.request.releases)]


@dataclass(frozen=True, slots=True)
class Rounds(NoisyNumbers):
    """Clusters that are read anew in each round, around the centres that the round before released.

    All rounds have the same parts, and so the same noise; ``request.releases`` counts them all, and ``left``
    those from this one on. The outcome of a round is its noisy parts.
    """

    statistic: Clusters
    left: int

    @property
    def rounds(self) -> int:
        """Number of rounds from this one on."""
        return self.left

    def draw(self, exact: list[Whole], price: Price, source: Source) -> tuple[Noisy, ...]:
        """Return the noisy parts of this round."""
        return _noisy(exact, price, self.request, source)

    def after(self, outcome: tuple[Noisy, ...]) -> Rounds | None:
        """Return the next round, around the released centres of this one."""
        if self.left == 1:
            return None
        return replace(self, statistic=self.statistic.after(outcome), left=self.left - 1)


@dataclass(frozen=True, slots=True)
class Selections(Task):
    """Selections by scores, one round per choice; the choices share the loss by their weights.

    Several labels of one choice share its part equally, one selected after the other; noisy counts select all
    of them at once. The outcome of a round is the selection of each release: positions of labels, or a step,
    of one group after the other.
    """

    choices: tuple[Choice, ...]
    choosing: Choosing
    position: int = 0

    @property
    def cost(self) -> Pure | Approx:
        """The loss of all releases together."""
        return self.choosing.cost

    @property
    def rounds(self) -> int:
        """Number of choices from this one on."""
        return len(self.choices) - self.position

    @property
    def reads(self) -> tuple[Read, ...]:
        """The scores of this choice; several quantiles of a column are read once."""
        read = self.choices[self.position].read
        return () if self.position > 0 and read == self.choices[self.position - 1].read else (read,)

    def price(self, cost: Pure | Approx) -> Price:
        """Return the mechanism of each choice at this cost; ParameterError where a mechanism does not fit."""
        choosing = self.choosing.with_cost(cost)
        mechanisms, event_counts = selectors(self.choices, choosing)
        return Price(choosing.cost, choosing.title, event_counts, mechanisms)

    def draw(self, exact: Any, price: Price, source: Source) -> Selected:
        """Return the selection of each release."""
        choice, mechanism = self.choices[self.position], price.mechanisms[self.position]
        if isinstance(choice, LabelScores):
            groups = choice.tables(exact)
            return [
                tuple(
                    label
                    for counts in groups
                    for label in mechanism._best(counts, choice.candidates, choice.count, source)
                )
                for _ in range(self.choosing.releases)
            ]
        steps = [
            _ranked(choice, mechanism, ranks, self.choosing.releases, source)
            for ranks in choice.tables(exact)
        ]
        return list(zip(*steps, strict=True))

    def after(self, outcome: Any) -> Selections | None:  # noqa: ARG002
        """Return the next choice."""
        return None if self.rounds == 1 else replace(self, position=self.position + 1)


def selectors(choices: Sequence[Choice], choosing: Choosing) -> tuple[tuple[ChoiceMechanism, ...], Events]:
    """Return the mechanism of each selection, from declared facts alone, and the events of all.

    Raises ParameterError where a mechanism does not fit.
    """
    share = choosing.each
    if choosing.drawn in MECHANISMS:
        if not all(isinstance(choice, LabelScores) for choice in choices):
            raise ParameterError("Noisy counts are for labels.", 'mechanism="exponential".')
        parts = tuple(choice.counts for choice in choices if isinstance(choice, LabelScores))
        request = Request(
            choosing.cost.epsilon,
            choosing.cost.delta,
            mechanism=cast("MechanismName", choosing.drawn),
            releases=choosing.releases,
        )
        noises = calibrate(parts, request)
        largest = map(LargestCounts, noises, map(sensitivity_of, parts, noises))
        return tuple(largest), events(parts, noises, request)
    mechanisms, event_counts = [], []
    for choice in choices:
        times = choice.count if isinstance(choice, LabelScores) else 1
        epsilon = share.epsilon * choice.weight / times
        monotone = choice.monotone and choosing.calibration is None
        mechanism = SELECTIONS[choosing.drawn](epsilon, choice.sensitivity, monotone)
        mechanisms.append(mechanism)
        event_counts.append((Event(mechanism.loss), times * choosing.releases))
    return tuple(mechanisms), tuple(event_counts)


def _ranked(
    choice: Quantile, mechanism: ExponentialMechanism, ranks: Ranks, releases: int, source: Source
) -> list[int]:
    """Return one grid step per release: a run of steps of equal score, then a uniform draw of its steps.

    Only records near the target are sorted; all others together are one candidate, which nearly no draw hits.
    """
    reach = math.ceil((HARDLY + math.log(choice.candidates)) * mechanism.scale) + 1
    runs, others, least, beyond = choice.runs_near_target(ranks, mechanism.scale, reach)

    def load() -> tuple[Integers, Integers]:
        nonlocal runs
        farther = beyond()
        runs = runs.followed_by(farther)
        return farther.lengths, farther.deficits

    rest = Rest(others, least, load) if others else None
    weights = mechanism._weights(runs.lengths, runs.deficits, choice.parts, rest)
    steps = []
    for _ in range(releases):
        run = weights.draw(source)
        steps.append(int(runs.starts[run]) + source.below(int(runs.lengths[run])))
    return steps


@dataclass(frozen=True, slots=True)
class Swaps(Task):
    """The walk of k-medians: swaps selected one after the other, and finally one of all sets of the walk.

    All selections have an equal share of the loss. ``sets``: those of the walk so far. The outcome of a
    round is the position of the selected swap or set.
    """

    walk: Medians
    choosing: Choosing
    sets: tuple[tuple[int, ...], ...]

    @property
    def cost(self) -> Pure | Approx:
        """The loss of all selections together."""
        return self.choosing.cost

    @property
    def rounds(self) -> int:
        """Number of selections."""
        return self.walk.selections

    @property
    def reads(self) -> tuple[Read, ...]:
        """The records at each point of the universe, read before the first selection."""
        return (self.walk.read,) if len(self.sets) == 1 else ()

    def price(self, cost: Pure | Approx) -> Price:
        """Return the mechanism of each selection."""
        choosing, walk = self.choosing.with_cost(cost), self.walk
        epsilon = choosing.cost.epsilon / walk.selections
        mechanism = SELECTIONS[choosing.drawn](epsilon, walk.sensitivity, walk.monotone)
        return Price(choosing.cost, choosing.title, ((Event(mechanism.loss), walk.selections),), (mechanism,))

    def exact(self, answers: Sequence[Any]) -> Any:
        """Return distances and weights of the points that hold records."""
        (table,) = answers
        return self.walk.exact(table)

    def draw(self, exact: Any, price: Price, source: Source) -> int:
        """Return the position of the selected swap or set."""
        selected: int = price.mechanisms[0].select(-self.walk.costs(exact, self.sets), source)
        return selected

    def after(self, outcome: int) -> Swaps | None:
        """Return the selection after this swap; None after the selection of a set."""
        if len(self.sets) == self.walk.selections:
            return None
        return replace(self, sets=(*self.sets, self.walk.set_after_swap(self.sets[-1], outcome)))

    def chosen(self, outcomes: Sequence[int]) -> tuple[int, ...]:
        """Return the set that the last selection took."""
        sets = [self.sets[0]]
        for swap in outcomes[:-1]:
            sets.append(self.walk.set_after_swap(sets[-1], swap))
        return sets[outcomes[-1]]


@dataclass(frozen=True, slots=True)
class BoundSearches(Task):
    """Searches for the bounds of columns, one after the other: of each its centre, spread and reach.

    The records of a column are read before its first stage. The stages share the loss of the column by
    `STAGES`, and each depends on what the stages before released. ``position``: the number of columns whose
    search is over. The outcome of a round is the selected candidate.
    """

    searches: tuple[BoundSearch, ...]
    choosing: Choosing
    position: int = 0

    @property
    def cost(self) -> Pure | Approx:
        """The loss of all columns together."""
        return self.choosing.cost

    @property
    def rounds(self) -> int:
        """Number of selections from this one on."""
        stages = list(STAGES)
        return len(stages) * (len(self.searches) - self.position) - stages.index(self._search.stage)

    @property
    def reads(self) -> tuple[Read, ...]:
        """The records of the column, before its first stage."""
        return (self._search.read,) if self._search.stage == "center" else ()

    @property
    def _search(self) -> BoundSearch:
        return self.searches[self.position]

    def price(self, cost: Pure | Approx) -> Price:
        """Return the mechanisms of all stages, column by column."""
        choosing = self.choosing.with_cost(cost)
        mechanisms = tuple(
            ExponentialMechanism(
                choosing.cost.epsilon * search.weight * share, search.sensitivity, search.monotone(stage)
            )
            for search in self.searches
            for stage, share in STAGES.items()
        )
        return Price(
            choosing.cost,
            choosing.title,
            tuple((Event(mechanism.loss), 1) for mechanism in mechanisms),
            mechanisms,
        )

    def exact(self, answers: Sequence[Any]) -> Counted:
        """Return the records by their candidates."""
        (ranks,) = answers
        return self._search.exact(ranks)

    def draw(self, exact: Counted, price: Price, source: Source) -> int:
        """Return the selected candidate: a run of candidates of equal score, then one of them."""
        search = self._search
        mechanism = price.mechanisms[len(STAGES) * self.position + list(STAGES).index(search.stage)]
        options = search.options(exact, mechanism.scale)
        run = mechanism._weights(options.weights, -options.scores).draw(source)
        return int(options.starts[run]) + source.below(int(options.sizes[run]))

    def after(self, outcome: int) -> BoundSearches | None:
        """Return the next stage, around what was selected; None after the last one."""
        last = self._search.stage == "reach"
        if self.rounds == 1:
            return None
        return replace(
            self,
            searches=(
                *self.searches[: self.position],
                self._search.after(outcome),
                *self.searches[self.position + 1 :],
            ),
            position=self.position + last,
        )

    def bounds(self, outcomes: Sequence[int]) -> list[tuple[float, float]]:
        """Return the bounds of each column, made of the outcomes of all rounds."""
        bounds = []
        for column, search in enumerate(self.searches):
            for outcome in outcomes[len(STAGES) * column : len(STAGES) * (column + 1)]:
                search = search.after(outcome)
            bounds.append(search.bounds)
        return bounds
