"""A statistic with narrower public bounds than its declaration implies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pdprivacy.core.statistics.confidence import Noisy
from pdprivacy.core.statistics.interface import Answer, Part, Read, Statistic, ends_of_parts
from pdprivacy.declaration.intervals import Interval
from pdprivacy.errors import ParameterError
from pdprivacy.types import Whole


@dataclass(frozen=True, slots=True)
class BoundedStatistic(Statistic):
    """The statistic ``inner`` with released numbers within ``bounds``: one pair, or one pair per number.

    Bounds of counts are rounded inwards to whole numbers. Raises ParameterError for a pair that excludes
    every possible value of the statistic, or that is narrower than its sensitivity.
    """

    inner: Statistic
    bounds: tuple[tuple[float, float], ...]

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return self.inner.offsets

    @property
    def ends(self) -> tuple[Any, Any]:
        if self.offsets is not None:
            lower, upper = ends_of_parts(self.parts, self.offsets)
            return (lower[0], upper[0]) if len(lower) == 1 else (lower, upper)
        wanted = np.array(self.bounds).T if len(self.bounds) > 1 else np.array(self.bounds[0])
        lower, upper = self.inner.ends
        return np.maximum(lower, wanted[0]), np.minimum(upper, wanted[1])

    @property
    def parts(self) -> tuple[Part, ...]:
        offsets = self.inner.offsets
        if offsets is None:
            lower, upper = self.ends  # a number of several parts is bounded when it is computed
            if not bool(np.all(lower < upper)):
                raise _out()
            return self.inner.parts
        pairs = self.bounds if len(self.bounds) > 1 else self.bounds * len(offsets)
        return tuple(
            _narrow(part, offset, *pair)
            for part, offset, pair in zip(self.inner.parts, offsets, pairs, strict=True)
        )

    @property
    def reads(self) -> tuple[Read, ...]:
        return self.inner.reads

    def exact(self, answers: Sequence[Any]) -> list[Whole]:
        return self.inner.exact(answers)

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        answer, (lower, upper) = self.inner.finish(noisy), self.ends
        lower = np.maximum(answer.lower, lower)
        # bounds from noisy parts may contradict the bounds of the call, which are certain
        return replace(answer, lower=lower, upper=np.maximum(np.minimum(answer.upper, upper), lower))


def _out(statistic: str = "statistic") -> ParameterError:
    return ParameterError(f"'bounds' exclude every possible value of the {statistic}.")


def _narrow(part: Part, offset: float, lower: float, upper: float) -> Part:
    stated = Interval(lower, upper).map(
        lambda end: Fraction(end) - Fraction(offset) if math.isfinite(end) else end
    )
    allowed = Interval(*part.bounds).intersect(stated)
    if part.counts:
        allowed = allowed.whole()
    least, most = allowed
    if not least < most:
        raise _out(part.name)
    if part.l0 == 1 and most - least < part.l1 * part.unit:
        raise ParameterError(
            "'bounds' are narrower than the sensitivity of the statistic.",
            "wider bounds, or none: then they follow from the declaration.",
        )
    lower_end, upper_end = (None if end is None else Fraction(end) for end in allowed.bounds)
    return replace(part, lower=lower_end, upper=upper_end)
