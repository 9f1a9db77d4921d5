"""Clusterings: k-means with noisy rounds, k-medians with exact selections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from pdprivacy.checks import one_of, whole
from pdprivacy.core import noise
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import Request
from pdprivacy.core.gate.spec import LEVEL, AnswerLabels, Call, Drawn, Release, columns_of, name_index
from pdprivacy.core.gate.tasks import Rounds, Swaps
from pdprivacy.core.mechanisms import MECHANISMS, Calibration
from pdprivacy.core.mechanisms.exponential import Choosing
from pdprivacy.core.noise import RandomState, Source
from pdprivacy.core.privacy import Rational
from pdprivacy.core.statistics import Clusters, Medians, Quantity, count_share, numbers_of, packed, quantity
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError
from pdprivacy.releases.noisy_parts import noisy_parts
from pdprivacy.releases.publish import attach, published, risk_noted
from pdprivacy.releases.results import Result
from pdprivacy.text.progress import shown
from pdprivacy.types import Floats, Labels

RoundNoise: TypeAlias = Literal["laplace", "gaussian"]
WalkSelection: TypeAlias = Literal["exponential", "permute_and_flip"]

MAX_CENTERS = 1000

MAX_COORDINATES = 10_000
"""The largest number of coordinates of all centres together."""

MAX_ITERATIONS = 1000

MAX_POINTS = 10_000
"""The largest number of points of a finite universe, whose distances are kept in memory."""

MAX_WORK = 3 * 10**10
"""The largest number of distances that a walk computes if every point holds a record."""

MAX_SWAPS = 10**7
"""The largest number of swaps of one selection: points of a set times points of the universe."""

MAX_STEPS = 10**5
"""The largest number of steps of a walk, for a universe of any size."""


def kmeans(
    protected: Facts,
    columns: Labels | None,
    k: int,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    iterations: int = 5,
    mechanism: RoundNoise = "laplace",
    calibration: Calibration | None = None,
    rng: RandomState = None,
    release_id: str | None = None,
    progress: bool | None = None,
) -> Release[pd.DataFrame]:
    """Release the centres of ``k`` clusters by k-means, which moves centres to noisy means of their records.

    Ranges are scaled to [-1, 1] by the declared bounds, and values are clamped to these bounds. The centres
    start at random and far apart, without use of the data. In each of the ``iterations``, every record
    belongs to the nearest centre, and the new centre is a noisy sum over a noisy count, clamped to the
    bounds; a cluster with a noisy count below 1 keeps its centre. Records with a null in any of the columns
    are left out.

    The rounds share the cost equally, and their number does not depend on the data. In a round, the counts
    and each coordinate's sums have shares of cbrt(4 d 0.225^2) : 1 for d columns (Gaussian noise: the square
    root), which minimises the error of a centre.

    Parameters
    ----------
    columns : a label, a list of labels, or None for all numeric columns with bounds.
    k : the number of centres, at most 1000, with at most 10,000 coordinates in all.
    epsilon, delta : the cost of all rounds together; Gaussian noise needs a delta.
    iterations : the number of rounds.
    mechanism, calibration, rng, release_id : as for other releases; the noise is "laplace" or "gaussian".
    progress : whether to show a bar of the rounds (needs tqdm; shows no times); None: in long calls. An
        interrupt stops the call, and the charge stays.

    Returns a DataFrame of one row per centre, numbered from 0, in the units of the columns. The error in its
    metadata is the error of the last round, to first order: the distance of each centre from the mean of the
    records nearest to the previous centre (unknown for a kept centre), and not from the best centres.
    ``attrs["dp"]["counts"]`` holds the noisy numbers of these records.

    Raises ParameterError for more centres than declared points, and for frames of engines other than pandas.

    Source: Blum, Dwork, McSherry, Nissim (2005), "Practical privacy: the SuLQ framework", as in Su, Cao, Li,
    Bertino, Jin (2016), "Differentially private k-means clustering", who call it DPLloyd.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> age = pa.Column(int, pa.Check.in_range(0, 99), metadata={"dp": {}})
    >>> ages = pd.DataFrame({"age": [20] * 500 + [70] * 500})
    >>> private = ages.dp.protect(pa.DataFrameSchema({"age": age}), epsilon=100)
    >>> sorted(private.dp.kmeans("age", 2, epsilon=100, rng=1)["age"].round().tolist())
    [20.0, 70.0]
    """
    protected.refuse_other_engines_for("kmeans")
    chosen = columns_of(protected, columns, "kmeans")
    quantities = tuple(quantity(column, "kmeans") for column in chosen)
    one_of(mechanism, "mechanism", get_args(RoundNoise))
    rounds = whole(iterations, "iterations", 1, MAX_ITERATIONS)
    size = whole(k, "k", 1, max(min(MAX_CENTERS, MAX_COORDINATES // len(chosen)), 1))
    distinct = math.prod(_distinct(column) for column in chosen)
    if size > distinct:
        raise ParameterError(f"'k' must be at most the {distinct} points that are declared (got {size}).")
    request = Request(epsilon, delta, mechanism=mechanism, calibration=calibration, releases=rounds)
    together = Request(epsilon, delta, mechanism=mechanism, calibration=calibration)
    state = rng if rng is None else noise.simulator(rng)
    start = _start(quantities, size, noise.source(state))
    call = Call("kmeans", together, rng=_next_seed(state), columns=chosen, release_id=release_id)
    share = count_share(len(chosen), gaussian=MECHANISMS[mechanism].norm == "l2")
    first = Clusters(quantities, start, share, protected.scope)
    shown((), rounds, "kmeans", progress, long=True)  # refused before anything is charged

    def publish(release: Release[pd.DataFrame], drawn: Drawn) -> tuple[pd.DataFrame, str | None]:
        last = first
        for noisy in drawn.outcomes[:-1]:
            last = last.after(noisy)
        noisy = drawn.outcomes[-1]
        result = Result(last.finish(noisy), noisy, drawn.price, None, None, last.ends, level=drawn.level)
        details = {"rows": None, "iterations": rounds, "counts": noisy[0].values.tolist()}
        details["parts"] = noisy_parts(last, call, [result], [result])
        return published(release, drawn, [result], details), risk_noted(protected, call, drawn)

    label = f"{call.label(protected)}, {rounds} iteration{'s'[: rounds != 1]}"
    labels = AnswerLabels(pd.RangeIndex(size), name_index(chosen))
    return Release(protected, call, label, Rounds(first, request, rounds), labels, publish, progress)


def kmedian(
    protected: Facts,
    columns: Labels | None,
    k: int,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    steps: int | None = None,
    mechanism: WalkSelection = "exponential",
    rng: RandomState = None,
    release_id: str | None = None,
    progress: bool | None = None,
) -> Release[pd.DataFrame]:
    """Release the centres of ``k`` clusters by k-medians: declared points, selected by swaps.

    The candidates are all combinations of the columns' declared cells: integers, numeric labels, the middles
    of bins. Ranges are scaled to the same length. Starting from random points, each of the ``steps`` swaps
    one point for another, selected by the sum of the records' distances to their nearest point after the
    swap. Finally, one of all sets of points so far is selected in the same way. Records with a null in any of
    the columns are left out.

    All selections have equal epsilon and are drawn exactly, by whole costs: distances are rounded to 2**-15
    of the largest distance, which is the sensitivity of a cost. An added record moves all costs the same way,
    so under "add_remove" half of the published scale has the same loss.

    Parameters
    ----------
    columns : a label, a list of labels, or None for all numeric columns with bounds.
    k : the number of points, fewer than the declared points.
    epsilon : the cost of all selections together; delta is 0.
    steps : the number of swaps; by default 6 k ln(declared points), as published.
    mechanism : "exponential", as published, or "permute_and_flip", which is never worse.
    rng, release_id : as for other releases.
    progress : whether to show a bar of the selections, as in `kmeans`.

    Returns a DataFrame of one row per point, numbered from 0, in the units of the columns. Its error is
    unknown. With probability 0.95, the cost of the set exceeds the cost of the best set in the walk by at
    most ``attrs["dp"]["error"]["below_best"]``, in lengths of a range, up to the rounding: n times 2**-15 of
    the largest distance for n records.

    Raises ParameterError for too many points or steps: at most 10,000 declared points, ``k`` times their
    number at most 1e7, their number squared times the steps at most 3e10, and at most 100,000 steps.

    Source: Gupta, Ligett, McSherry, Roth, Talwar (2010), "Differentially private combinatorial
    optimization", section 4, where the cost is bounded by 6 times the least one plus a term of order
    k^2 log^2(points) / epsilon; McSherry, Talwar (2007), Theorem 7, for the last selection.

    >>> import pandas as pd, pandera.pandas as pa
    >>> import pdprivacy
    >>> age = pa.Column(int, pa.Check.in_range(0, 99), metadata={"dp": {}})
    >>> ages = pd.DataFrame({"age": [20] * 500 + [70] * 500})
    >>> private = ages.dp.protect(pa.DataFrameSchema({"age": age}), epsilon=100)
    >>> private.dp.kmedian("age", 2, epsilon=100, steps=10, rng=1)["age"].tolist()
    [20.0, 70.0]
    """
    chosen = columns_of(protected, columns, "kmedian")
    one_of(mechanism, "mechanism", get_args(WalkSelection))
    choosing = Choosing(epsilon, delta, mechanism=mechanism)
    points, size, swaps = _walk_lengths(chosen, k, steps)
    state = rng if rng is None else noise.simulator(rng)
    start = np.flatnonzero(noise.draw_without_replacement(points, size, noise.source(state)))
    walk = Medians(chosen, tuple(start.tolist()), swaps, protected.scope)
    shown((), walk.selections, "kmedian", progress, long=True)  # refused before anything is charged
    seed = _next_seed(state)
    call = Call.of_selection("kmedian", choosing.cost, chosen, rng=seed, release_id=release_id)
    task = Swaps(walk, choosing, (walk.start,))

    def publish(release: Release[pd.DataFrame], drawn: Drawn) -> tuple[pd.DataFrame, str | None]:
        (mechanism,) = drawn.price.mechanisms
        released = release.labels.to_pandas(walk.points_of_set(task.chosen(drawn.outcomes)))
        attach(
            protected,
            call,
            drawn,
            released,
            sensitivity=float(mechanism.sensitivity) * walk.step,
            scale=mechanism.scale * walk.step,
            split={},
            rows=None,
            steps=swaps,
            error={"level": LEVEL, "below_best": mechanism.shortfall(walk.selections, LEVEL) * walk.step},
        )
        return released, risk_noted(protected, call, drawn)

    label = f"{call.label(protected)}, {swaps} step{'s'[: swaps != 1]}"
    labels = AnswerLabels(pd.RangeIndex(size), name_index(chosen))
    return Release(protected, call, label, task, labels, publish, progress)


def _walk_lengths(columns: Sequence[Column], k: int, steps: int | None) -> tuple[int, int, int]:
    """Return the number of declared points, of chosen points, and of swaps of the walk."""
    points = math.prod(len(numbers_of(column)) for column in columns)
    if points > MAX_POINTS:
        raise ParameterError(
            f"The columns declare {points} points together; the limit is {MAX_POINTS}.",
            "fewer columns, or declare bins: their middles are the points then.",
        )
    if points < 2:
        raise ParameterError("The columns declare one point only, and 'kmedian' needs at least two.")
    size = whole(k, "k", 1, min(points - 1, MAX_SWAPS // points))
    swaps = math.ceil(6 * size * math.log(points)) if steps is None else whole(steps, "steps", 1, MAX_STEPS)
    if swaps * points**2 > MAX_WORK:
        raise ParameterError(
            f"'steps' must be at most {MAX_WORK // points**2} for {points} points, not {swaps}.",
            "pass steps=, or declare coarser bins.",
        )
    return points, size, swaps


def _next_seed(state: np.random.Generator | None) -> int | None:
    """Return a seed for the rounds, which must not reuse the random bits of the start."""
    return None if state is None else int(state.integers(2**63))


def _distinct(column: Column) -> float:
    """Return the number of distinct declared values of a column."""
    if column.categories is not None:
        return len(column.categories)
    lower, upper = column.bounds("kmeans")
    if lower == upper:
        return 1
    return int(upper) - int(lower) + 1 if column.kind == "integer" else math.inf


def _start(quantities: Sequence[Quantity], size: int, source: Source) -> Floats:
    """Return random starting centres, far apart in the columns that are not constant."""
    lower = np.array([q.lower for q in quantities])
    upper = np.array([q.upper for q in quantities])
    spread = lower < upper
    centers = np.broadcast_to(lower, (size, len(quantities))).copy()
    if spread.any():
        points, _ = packed(size, int(spread.sum()), source)
        low, high = lower[spread], upper[spread]
        centers[:, spread] = np.clip(low + (points + 1) / 2 * (high - low), low, high)
    return centers
