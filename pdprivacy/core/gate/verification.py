"""The last check before a charge: the noise of a release pays for what its reads can move.

A verb chooses the statistic, its columns and the noise. The gate believes none of it: it recomputes three
facts from what it is about to execute, and raises `DefectError` where they disagree. Nothing is charged then.

Shares. The weights of all parts add up to 1 at most, and the losses of all mechanisms to the charged loss.

Losses. The loss of a mechanism is recomputed from the scale that is drawn and from the sensitivities of its
part (`LOSSES`), not from the epsilon that it states. Nine digits are compared; what lies below is left to the
calibration, which errs on the safe side. Exact for Laplace, geometric and staircase noise; a closed form for
truncated Laplace and geometric noise; the delta of Balle and Wang for all Gaussian parts together; the sum
over the integers, or rho, for discrete Gaussian noise. Generalized Gaussian noise of order above 1 is
recomputed for one number that moves by the linf sensitivity, without truncation. More numbers, and bounds,
only add to that loss: noise that fails the test is too small, and the rest is left to the calibration.

Bounds. The exact numbers of records at the bounds of each read are computed by the statistic itself, with and
without one more record, or with another one in its place. No part may move further than its sensitivities. A
sum of bounded terms moves furthest there, and the mean, variance and covariance of a public number of records
do, too (`pdprivacy.sensitivity`). So a read with wider bounds than the calibration, or a part that is
calibrated for another column, is refused. Neighbours and contribution are those of the protected frame.
Selections read no bounded terms: the sensitivity of their scores is recomputed in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pdprivacy.core.accounting.rules import largest_rho
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.label_search import LabelSearch
from pdprivacy.core.gate.spec import Price, Task
from pdprivacy.core.gate.tasks import BoundSearches, Choice, NoisyNumbers, Selections, Swaps
from pdprivacy.core.mechanisms.discrete_gaussian import discrete_gaussian_delta
from pdprivacy.core.mechanisms.exponential import LargestCounts
from pdprivacy.core.mechanisms.gaussian import gaussian_delta
from pdprivacy.core.statistics import LabelScores, Part, Read, Scope
from pdprivacy.core.statistics.clusters import DIAMETER
from pdprivacy.core.statistics.interface import GroupedSums, Quantity, groups_of
from pdprivacy.errors import DefectError

AGREES = 1 + 1e-9
"""The largest quotient of a recomputed loss and the stated one."""

DELTAS_AGREE = 1 + 1e-6
"""The same for deltas, whose terms cancel."""

MANY = 2**12
"""The number of released numbers above which only the lower and the upper bounds are tried."""

Limit: TypeAlias = tuple[Fraction, Fraction]


class Others(NamedTuple):
    """All other records: their number, and their value."""

    rows: int
    value: str


class Record(NamedTuple):
    """Records of one unit: in the first or the last cell, with values at the bounds or nearest to 0 steps."""

    first: bool = True
    value: str = "low"


def verified(facts: Facts, task: Task, price: Price) -> Price:
    """Return the price of a task that is about to be charged.

    Raises DefectError where the task, its noise and its price do not agree.
    """
    limit, scope = _charged(price), facts.scope
    if isinstance(task, NoisyNumbers):
        _check_noise(price.parts, price.mechanisms, task.request, limit, price)
        check_moves(scope, task.reads, price.parts, task.exact)
    elif isinstance(task, Selections):
        _check_selections(task, scope, price, limit)
    elif isinstance(task, Swaps):
        (mechanism,), score = price.mechanisms, DIAMETER * scope.contribution
        times = 1 if scope.neighbors == "add_remove" else 2
        _check_total(Fraction(score * times) / mechanism.steps * task.rounds, limit)
    elif isinstance(task, BoundSearches):
        _check_bound_searches(task, scope, price, limit)
    elif isinstance(task, LabelSearch):
        (mechanism,) = price.mechanisms
        several = task.several or scope.contribution == 1
        if mechanism.neighbors != scope.neighbors or not several or mechanism.delta > limit[1]:
            raise _defect("labels are drawn for other neighbours, or at another loss, than are charged")
        _check_total(mechanism.epsilon, limit)
    else:
        raise _defect(f"the gate cannot verify a {type(task).__name__}")
    return price


def _defect(fact: str) -> DefectError:
    return DefectError(
        f"This release contradicts itself: {fact}. Nothing was charged or read.",
        "report the call, which is a defect of pdprivacy, not of your code.",
    )


# ---------------------------------------------------------------- losses


def _charged(price: Price) -> Limit:
    """Return the epsilon and the delta that an account counts: the cost, or the losses of the events."""
    cost, times, epsilon, delta = price.cost, price.times, Fraction(0), Fraction(0)
    for event, number in price.events:
        loss: Any = event.loss  # never one in rho, which only a budget has
        if number == times == 1 and loss is cost:
            return cost.epsilon, cost.delta
        epsilon, delta = epsilon + loss.epsilon * number, delta + loss.delta * number
    return min(cost.epsilon * times, epsilon), min(cost.delta * times, delta)


def _check_total(epsilon: Fraction | float, limit: Limit) -> None:
    """Refuse an epsilon above the charged one."""
    if float(epsilon) > float(limit[0]) * AGREES:
        raise _defect("its noise loses more than is charged")


def _check_noise(
    parts: Sequence[Part], mechanisms: Sequence[Any], request: Any, limit: Limit, price: Price
) -> None:
    """Refuse shares above 1, and noise that loses more than the limit in all releases together."""
    if len(parts) != len(mechanisms) or math.fsum([float(part.weight) for part in parts]) > AGREES:
        raise _defect("the shares of its parts do not add up to 1")
    releases, epsilon, squares = request.releases, 0.0, 0.0
    each = float(limit[0]) / releases, float(limit[1]) / releases
    for part, mechanism in zip(parts, mechanisms, strict=True):
        if mechanism.norm == "l2":
            squares += _moved_l2(part, mechanism) ** 2
        else:
            epsilon += LOSSES[mechanism.name](part, mechanism, request, each)
    _check_total(epsilon * releases, limit)
    exact = limit[0] / releases, limit[1] / releases
    if squares and not _gaussian_holds(parts, mechanisms, 1 / math.sqrt(squares), exact):
        raise _defect("its noise loses more than is charged")
    for event, _ in price.events:
        if event.noise is not None and float(event.noise.multiplier) ** 2 * squares > AGREES:
            raise _defect("its Gaussian noise is smaller than the events say")


def _moved(part: Part, mechanism: Any, request: Any) -> float:
    """Return the l1 sensitivity over the scale that is drawn; on a coarser grid each number moves a step."""
    unit, grid = float(part.unit), float(mechanism.grid)
    moved = part.l1 * unit / grid
    if grid > unit:
        moved = math.floor(moved) + part.l0
        narrow = request.bounding == "truncated" and part.l0 == 1
        if narrow and part.lower is not None and part.upper is not None:
            moved = min(moved, max((part.upper - part.lower) // mechanism.grid, 1))
    return moved / float(mechanism.steps)


def _moved_l2(part: Part, mechanism: Any) -> float:
    """Return the l2 sensitivity over the scale that is drawn."""
    finer = float(part.unit) / float(mechanism.grid)
    coarser = math.sqrt(part.l0) if finer < 1 else 0.0
    return (math.sqrt(part.l2_squared) * finer + coarser) / float(mechanism.steps)


def _laplace(part: Part, mechanism: Any, request: Any, _: tuple[float, float]) -> float:
    """Return the loss of Laplace or geometric noise: of k numbers that share the movement, if truncated."""
    moved = _moved(part, mechanism, request)
    if request.bounding != "truncated":
        return moved
    each, scale = moved / part.l0, float(mechanism.steps * mechanism.grid)
    width = math.inf
    if part.limits is None and part.lower is not None and part.upper is not None:
        width = float(part.upper - part.lower) / scale
    if mechanism.integer and 2 * each <= width:
        gain = math.exp(-1 / scale) * -math.expm1(-each)
        if width < math.inf:
            gain *= math.expm1(each - width) / math.expm1(-width - 1 / scale)
    else:
        each = min(each, width)
        gain = -math.expm1(-each)
        if width < math.inf:
            gain *= math.expm1(each - width) / math.expm1(-width)
    return moved + part.l0 * math.log1p(gain)


def _staircase(part: Part, mechanism: Any, request: Any, _: tuple[float, float]) -> float:
    """Return the loss of staircase noise: epsilon for each stair that a number moves, or part of one."""
    stairs = math.ceil(_moved(part, mechanism, request) / AGREES)
    return stairs * float(mechanism.epsilon) if part.l0 == 1 else math.inf


def _generalized(part: Part, mechanism: Any, request: Any, each: tuple[float, float]) -> float:
    """Return the least epsilon at which one number that moves by the linf sensitivity has the part's delta.

    A number t scales from 0 loses (t + d)^p - t^p where it moves by d scales; larger t have the probability
    delta, on both sides of 0 where one number moves. Several lose on one side, so half as many are larger. A
    delta of a half or more leaves nothing to compare.
    """
    p = float(mechanism.p)
    if p == 1:
        return _laplace(part, mechanism, request, each)
    scale, share = float(mechanism.steps * mechanism.grid), float(part.weight)
    moved = min(_moved(part, mechanism, request), part.linf * float(part.unit) / scale)
    beyond = each[1] * share / (2 if part.l0 == 1 else 1)
    if beyond >= 0.5:
        return 0.0
    tail = float(mechanism.distribution.reach(beyond)) / scale
    return float((tail + moved) ** p - tail**p)


LOSSES: dict[str, Callable[[Part, Any, Any, tuple[float, float]], float]] = {
    "laplace": _laplace,
    "geometric": _laplace,
    "staircase": _staircase,
    "generalized_gaussian": _generalized,
}
"""The loss of a part by each noise for an l1 sensitivity, given the charged loss of one release."""


SUMMED = (2.0**11 * 1.01, 2.0**9 * 1.01)
"""The largest sigma, for one number and for several, whose delta is summed over all integers.

Above a little less the calibration takes the continuous delta, and a larger sigma than it.
"""


def _gaussian_holds(parts: Sequence[Part], mechanisms: Sequence[Any], multiplier: float, each: Limit) -> bool:
    """Whether Gaussian parts, of this multiplier together, keep delta at epsilon."""
    epsilon, delta = map(float, each)
    if mechanisms[0].integer:
        if mechanisms[0].calibration == "zcdp":
            return 1 / (2 * multiplier**2) <= float(largest_rho(*each)) * AGREES
        # one whole number stands for a vector of whole numbers, with the root of its length as the unit
        (part,), sigma = parts, float(mechanisms[0].steps)
        if sigma <= SUMMED[part.l0 > 1]:
            moved = part.l1 if part.l0 == 1 else part.l2_squared
            sigma *= 1 if part.l0 == 1 else math.sqrt(moved)
            return _discrete_delta(epsilon, sigma, moved) <= delta * DELTAS_AGREE
    return gaussian_delta(epsilon, multiplier) <= delta * DELTAS_AGREE


@lru_cache(maxsize=256)
def _discrete_delta(epsilon: float, sigma: float, sensitivity: int) -> float:
    return discrete_gaussian_delta(epsilon, sigma, sensitivity)


def _score_sensitivity(choice: Choice, scope: Scope) -> Fraction:
    """Return how far the best score can gain on another one between neighbours."""
    times = scope.contribution * (1 if scope.neighbors == "add_remove" else 2)
    if isinstance(choice, LabelScores):
        return Fraction(times)
    alone = max(choice.q, 1 - choice.q) if choice.end is None else Fraction(1)
    if scope.neighbors == "replace_one" and not choice.keys:
        alone, times = Fraction(1), scope.contribution
    weights = choice.read.args[1:] if choice.read.name == "ranks" else ()
    return 2 * alone * times * (weights[0].high if weights else 1)


def _check_selections(task: Selections, scope: Scope, price: Price, limit: Limit) -> None:
    """Refuse selections that lose more than the limit, by their scores or by noisy counts."""
    if all(isinstance(mechanism, LargestCounts) for mechanism in price.mechanisms):
        parts = [choice.counts for choice in task.choices if isinstance(choice, LabelScores)]
        noises = [mechanism.noise for mechanism in price.mechanisms]
        _check_noise(parts, noises, _Plain(task.choosing.releases), limit, price)
        for part, choice in zip(parts, task.choices, strict=True):
            check_moves(scope, (choice.read,), (part,), list)
        return
    epsilon = Fraction(0)
    for choice, mechanism in zip(task.choices, price.mechanisms, strict=True):
        times = choice.count if isinstance(choice, LabelScores) else 1
        epsilon += _score_sensitivity(choice, scope) / mechanism.steps * times
    _check_total(epsilon * task.choosing.releases, limit)


class _Plain(NamedTuple):
    """The request of noisy counts, which have no bounds."""

    releases: int
    bounding: None = None


def _check_bound_searches(task: BoundSearches, scope: Scope, price: Price, limit: Limit) -> None:
    """Refuse searches that lose more than the limit: every score moves by 1, replaced records either way."""
    stages = len(price.mechanisms) // len(task.searches)
    epsilon = Fraction(0)
    for position, mechanism in enumerate(price.mechanisms):
        is_reach = position % stages == stages - 1 and scope.contribution == 1
        times = 1 if scope.neighbors == "add_remove" or is_reach else 2
        epsilon += Fraction(scope.contribution * times) / mechanism.steps
    _check_total(epsilon, limit)


# ---------------------------------------------------------------- bounds


def check_moves(
    scope: Scope,
    reads: Sequence[Read],
    parts: Sequence[Part],
    exact: Callable[[Sequence[Any]], Sequence[Any]],
) -> None:
    """Refuse parts that records at the bounds of the reads move further than their sensitivities.

    An engine refuses a read that is neither in `ANSWERS` nor one of a selection.
    """
    if not all(read.name in ANSWERS for read in reads):
        if any(read.name in SELECTED for read in reads):
            raise _defect("noise is added to a read of a selection")
        return
    added = scope.neighbors == "add_remove"
    rows = 0 if scope.filtered or scope.rows is None else max(scope.rows - scope.contribution, 0)
    records = _records(scope, reads, few=len(parts) <= MANY >= parts[0].size)
    for others in _values_of_others(reads, rows, added=added):
        table = Others(rows, others)
        answers = [ANSWERS[read.name](read, table, scope, records) for read in reads]
        numbers = [exact(answer) for answer in zip(*answers, strict=True)]
        pairs = ((numbers[0], other) for other in numbers[1:]) if added else combinations(numbers, 2)
        for before, after in pairs:
            for part, old, new in zip(parts, before, after, strict=True):
                if not _within(part, old, new):
                    raise _defect(f"its {part.name} can move further than the noise is calibrated for")


def _values_of_others(reads: Sequence[Read], rows: int, *, added: bool) -> tuple[str, ...]:
    """Return the values that all other records have in turn.

    Sums move alike whatever the others are. A variance moves furthest where they are equal, at an end, and
    so does a mean if a record is added. A mean at its bound is clamped, which would hide wider bounds of the
    reads: hence others near the end, and in the middle where a record is replaced.
    """
    if not rows or any(_is_squared(read) for read in reads):
        return ("low",)
    return ("low", "near") if added else ("zero",)


def _is_squared(read: Read) -> bool:
    return bool(read.options) and bool(read.options[0][1])


def _within(part: Part, before: Any, after: Any) -> bool:
    """Whether the numbers of a part move by its sensitivities at most."""
    if part.size == 1:
        moved = abs(int(after[0]) - int(before[0]))
        return moved <= part.l1 and moved * moved <= part.l2_squared
    if isinstance(before, np.ndarray):
        changes = (after - before)[after != before].tolist()
    else:
        changes = [y - x for x, y in zip(before, after, strict=True) if x != y]
    return (
        len(changes) <= part.l0
        and sum(map(abs, changes)) <= part.l1
        and sum([change * change for change in changes]) <= part.l2_squared
    )


def _records(scope: Scope, reads: Sequence[Read], few: bool) -> tuple[Record | None, ...]:
    """Return the records that are compared, the missing one first; "replace_one" may lack it."""
    added, valued, squared, divided, vanishing = scope.neighbors == "add_remove", False, False, False, False
    for read in reads:
        if read.name in ("grouped", "clusters"):
            valued, squared = True, squared or _is_squared(read)
            divided = divided or bool(len(read.args[1]))
            vanishing = vanishing or any(q.column.nullable for q in read.args[0])
        divided = divided or read.name in ("table", "bins")
    return _records_of(added or scope.filtered or vanishing, valued, squared and few, divided and not added)


@lru_cache(maxsize=16)
def _records_of(missing: bool, valued: bool, squared: bool, divided: bool) -> tuple[Record | None, ...]:
    """Return records of these kinds: none, with values, with a value of 0 steps, and in the last cell."""
    values = ("low", *["high"] * valued, *["zero"] * (valued and squared))
    first = tuple(Record(value=value) for value in values)
    last = (Record(first=False, value="low"), Record(first=False, value="high")) if divided else ()
    return (*[None] * missing, *first, *last)


def _step(quantity: Quantity, value: str) -> int:
    """Return the grid steps of a value that the engine has clamped to ``lower`` and ``upper``."""
    if value == "zero":
        return min(max(0, quantity.low), quantity.high)
    if value == "near":
        return quantity.low + (quantity.high - quantity.low) // 16
    end = quantity.lower if value == "low" else quantity.upper
    return int((end - quantity.before + quantity.shift - quantity.zero) / quantity.grid)


def _grouped(read: Read, others: Others, scope: Scope, records: Sequence[Record | None]) -> list[GroupedSums]:
    """Return the sums of so many equal records in the first group, and of each record.

    A replaced record is missing from columns with nulls alone: from a read of others it has the lower bound.
    """
    quantities, keys = read.args[:2]
    if scope.neighbors == "replace_one" and not scope.filtered:
        stays = not all(quantity.column.nullable for quantity in quantities)
        records = [Record() if stays and record is None else record for record in records]
    groups = len(keys) if read.name == "clusters" else groups_of(keys, read.args[2]) if len(keys) else 1
    size = len(quantities)
    pairs = [(i, j) for i in range(size) for j in range(i, size)] if _is_squared(read) else []
    values = {others.value, *[record.value for record in records if record]}
    steps_of = {value: [_step(q, value) for q in quantities] for value in values}
    base = [others.rows * step for step in steps_of[others.value]]
    answers = []
    for record in records:
        added, cell, steps = 0, 0, steps_of[others.value]
        if record is not None:
            added, cell = scope.contribution, 0 if record.first else groups - 1
            steps = steps_of[record.value]
        sums = [
            _in_groups(groups, cell, *pair) for pair in zip(base, [added * s for s in steps], strict=True)
        ]
        products = {}
        for i, j in pairs:
            usual = base[i] * steps_of[others.value][j]
            products[i, j] = _in_groups(groups, cell, usual, added * steps[i] * steps[j])
        answers.append(GroupedSums(_in_groups(groups, cell, others.rows, added), sums, products))
    return answers


def _in_groups(groups: int, cell: int, base: int, added: int) -> list[int]:
    """Return a number in the first group, and another one in the group of a record."""
    if groups == 1:
        return [base + added]
    numbers = [0] * groups
    numbers[0] = base
    numbers[cell] += added
    return numbers


def _table(read: Read, others: Others, scope: Scope, records: Sequence[Record | None]) -> list[Any]:
    """Return the counts of so many records in the first cell, and of each record."""
    if read.name == "bins":
        cells = len(read.args[1]) - 1 + int(read.args[0].nullable)
    else:
        cells = groups_of(*read.args)
    answers = []
    for record in records:
        counts = np.zeros(cells, np.int64)
        counts[0] = others.rows
        if record is not None:
            counts[0 if record.first else -1] += scope.contribution
        answers.append(counts)
    return answers


def _rows(read: Read, others: Others, scope: Scope, records: Sequence[Record | None]) -> list[int]:
    """Return numbers of records; a replaced record without a value still counts as one."""
    replaced = read.name == "rows" and scope.neighbors == "replace_one"
    return [others.rows + (scope.contribution if replaced or record else 0) for record in records]


ANSWERS: dict[str, Callable[[Read, Others, Scope, Sequence[Record | None]], list[Any]]] = {
    "rows": _rows,
    "present": _rows,
    "table": _table,
    "bins": _table,
    "grouped": _grouped,
    "clusters": _grouped,
}
"""The answers to reads that noise is added to, of records at the bounds."""

SELECTED = {"labels", "labels_of_units", "ranks", "grouped_ranks"}
"""The reads of selections."""
