"""Intervals of any level, from the noisy parts in the metadata of a release.

The statistic is made again from its noisy parts, by the functions that made the released numbers, so that the
interval of the stated level is the stated one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pdprivacy.core.distributions import Distribution
from pdprivacy.core.statistics import (
    PIECES,
    Answer,
    Covariance,
    Direct,
    Noisy,
    Quantity,
    Scope,
    deviations_of,
)
from pdprivacy.core.statistics.confidence import Ends, Tail, of_shares
from pdprivacy.core.statistics.interface import PRODUCT_BITS, SUM_BITS
from pdprivacy.core.statistics.sums import ANSWERS, Layout, mean_interval, mean_of, side_by_side
from pdprivacy.declaration.domain import Column
from pdprivacy.releases.covariances import correlations_of
from pdprivacy.releases.margins import summed
from pdprivacy.releases.metadata import Metadata
from pdprivacy.releases.noisy_parts import Parts
from pdprivacy.releases.tables import AXES, KEPT, SUMS_AT
from pdprivacy.types import Floats

Law: TypeAlias = "Callable[[str], Distribution]"
"""The law of the noise of a part by its name."""

PRIVATE = Scope("add_remove", None)
"""The scope of statistics that are made of noisy parts alone."""


def margins_of_error(facts: Metadata, law: Law, level: float, values: Floats) -> Floats:
    """Return the margins of error of released numbers at a level: the distances to the farther ends.

    ``values``: the numbers before any projection. The margins of dates are in seconds.
    """
    parts: Parts = facts.parts or {}
    make, number = SOURCES[parts["of"]], len(parts["noisy"])
    shape = values.shape if number == 1 else (values.shape[0], values.shape[1] // number)
    halves = []
    for position, named in enumerate(parts["noisy"]):
        noisy = [_noisy(facts, law(name), numbers) for name, numbers in named]
        answer = _arranged(make(facts, parts, noisy, shape), parts.get("places"), shape)
        released = values if number == 1 else values.reshape(shape[0], number, -1)[:, position]
        centers = np.reshape(answer.values if "unit" in facts.error else released, shape)
        assert answer.interval is not None
        lower, upper = (np.reshape(end, shape) for end in answer.interval(level))
        halves.append(np.maximum(upper - centers, centers - lower))
    return np.asarray(halves[0] if number == 1 else np.column_stack(halves))


def _noisy(facts: Metadata, law: Distribution, numbers: Sequence[float | None]) -> Noisy:
    """Return a noisy part with its law; ``bounding`` as its noise was bounded."""
    bounding: Any = facts.bounding if facts.bounding in ("clamp", "truncated") else None
    return Noisy(np.array(numbers, np.float64), law.std, Tail(law.standard[0], bounding))


def _arranged(answer: Answer, places: Sequence[int] | None, shape: tuple[int, ...]) -> Answer:
    """Return the answer with its numbers at their places in the released object, NaN for the place -1."""
    if places is None:
        return answer
    taken = np.array(places)

    def arrange(numbers: Floats) -> Floats:
        return np.where(taken >= 0, np.ravel(numbers)[taken], np.nan).reshape(shape)

    return answer.arranged(arrange)


def _quantities(parts: Parts) -> list[Quantity]:
    """Return the bounded numbers that the parts are sums of, on the grids that were read."""
    quantities = []
    for facts in parts["columns"]:
        column = Column("number", "integer" if facts["whole"] else "float", nullable=facts["nullable"])
        for centered, bits in itertools.product((True, False), (SUM_BITS, PRODUCT_BITS)):
            quantity = Quantity(column, *facts["bounds"], centered=centered, bits=bits)
            if (quantity.center, quantity.grid) == (facts["center"], facts["grid"]):
                quantities.append(quantity)
                break
    return quantities


def _moments(facts: Metadata, parts: Parts, noisy: list[Noisy], _: tuple[int, ...]) -> Answer:
    """Return counts, sums, means, variances or deviations, in the order of the statistic."""
    quantities, kinds = _quantities(parts), tuple(tuple(own) for own in parts["kinds"])
    nullable, shares = tuple(q.column.nullable for q in quantities), (Fraction(1),) * len(kinds)
    layout, rounding = Layout.of(kinds, nullable, shares), parts.get("rounding")
    answers = []
    for column, kind in layout.numbers:
        own = [noisy[layout.places[column, piece]] for piece in PIECES[kind]]
        make = ANSWERS[kind]
        if kind == "mean" and rounding is not None:
            make = partial(mean_of, rounding=rounding[column])
        answer, seconds = make(quantities[column], *own), parts["columns"][column].get("seconds", 1.0)
        answers.append(answer.arranged(partial(np.multiply, seconds)))
    return _deviations(facts, parts, side_by_side(answers, per_group=noisy[0].values.size > 1))


def _deviations(facts: Metadata, parts: Parts, answer: Answer) -> Answer:
    """Return the deviations of an answer of variances where these are what was released."""
    variances = "std" not in [kind for own in parts.get("kinds", ()) for kind in own]
    return deviations_of(answer) if facts.statistic == "std" and variances else answer


def _covariance(facts: Metadata, parts: Parts, noisy: list[Noisy], _: tuple[int, ...]) -> Answer:
    """Return covariances or correlations, from noisy counts, sums and products."""
    keys = (Column("group", "boolean"),) if parts["pooled"] else ()
    statistic = Covariance(tuple(_quantities(parts)), PRIVATE, keys, matrix=parts["matrix"])
    return _correlations(facts, statistic.finish(noisy))


def _correlations(facts: Metadata, answer: Answer) -> Answer:
    return correlations_of(answer) if facts.statistic == "corr" else answer


def _direct(facts: Metadata, parts: Parts, noisy: list[Noisy], _: tuple[int, ...]) -> Answer:
    """Return deviations, covariances or correlations of variances and covariances with noise of their own."""
    quantities = tuple(_quantities(parts))
    shares = (Fraction(1),) * len(quantities)
    # the number of rows limits the numbers, not their intervals
    answer = Direct(parts["kind"], quantities, shares, PRIVATE, len(quantities) + 2).finish(noisy)
    if answer.interval is not None:
        return _correlations(facts, answer)

    def interval(level: float) -> Ends:
        half = np.array([_half(part, level) for part in noisy])
        return answer.values - half, answer.values + half

    return _deviations(facts, parts, replace(answer, interval=interval))


def _clusters(_: Metadata, parts: Parts, noisy: list[Noisy], shape: tuple[int, ...]) -> Answer:
    """Return the centres of clusters: noisy sums over noisy counts."""
    quantities, (counts, *sums) = _quantities(parts), noisy

    def interval(level: float) -> Ends:
        ends = [mean_interval(q, counts, total, level) for q, total in zip(quantities, sums, strict=True)]
        lower, upper = (np.stack(side, axis=-1) for side in zip(*ends, strict=True))
        return lower, upper

    return Answer(np.full(shape, np.nan), np.nan, interval=interval)


def _shares(facts: Metadata, parts: Parts, noisy: list[Noisy], _: tuple[int, ...]) -> Answer:
    """Return shares of noisy cells, with those of their sums where these were released."""
    (part,) = noisy
    cells, way = part.values.reshape(parts["sides"]), facts.normalize or "all"
    if (total := parts["total"]) is not None:
        return _shares_of_total(part, cells, max(total, 1))
    size, kept = np.ones(cells.shape), KEPT[way] if facts.margins else np.s_[...]
    if facts.margins:
        cells, size = summed(cells), summed(size)
        whole, members = cells[SUMS_AT[way]], size[SUMS_AT[way]]
    else:
        axis = AXES[way]
        whole, members = (each.sum(axis=axis, keepdims=axis is not None) for each in (cells, size))

    def interval(level: float) -> Ends:
        lower, upper = of_shares(level, replace(part, values=cells), whole, size, members)
        return lower[kept], upper[kept]

    return Answer(cells[kept], np.nan, interval=interval)


def _shares_of_total(part: Noisy, cells: Floats, rows: int) -> Answer:
    """Return shares of a public number of rows, each with the noise of its cell."""

    def interval(level: float) -> Ends:
        half = _half(part, level)
        return (cells - half) / rows, (cells + half) / rows

    return Answer(cells / rows, part.std / rows, interval=interval)


def _half(part: Noisy, level: float) -> float:
    """Return half the interval of a noisy number: the quantile of its noise."""
    law = part.tail.law
    return float(part.std / law.std * law.central(level))


SOURCES: dict[str, Callable[[Metadata, Parts, list[Noisy], tuple[int, ...]], Answer]] = {
    "moments": _moments,
    "covariance": _covariance,
    "direct": _direct,
    "clusters": _clusters,
    "cells": _shares,
}
"""The functions that make the answer of noisy parts again."""
