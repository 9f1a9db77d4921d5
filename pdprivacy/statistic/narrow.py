"""A statistic within narrower public bounds than its declaration implies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pdprivacy.errors import ParameterError
from pdprivacy.statistic.core import Answer, Engine, Noisy, Part, Statistic, Whole

__all__ = ["Narrowed"]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """``inner`` with released numbers within ``bounds``: one pair, or one per number.

    Raises ParameterError where a pair leaves out all that the statistic can be, or is narrower
    than what one record can do.
    """

    inner: Statistic
    bounds: tuple[tuple[float, float], ...]

    @property
    def offsets(self) -> tuple[float, ...] | None:
        return self.inner.offsets

    @property
    def parts(self) -> tuple[Part, ...]:
        offsets = self.inner.offsets
        if offsets is None:
            return self.inner.parts  # made of several parts, a number is bounded when it is made
        pairs = self.bounds if len(self.bounds) > 1 else self.bounds * len(offsets)
        return tuple(
            self._part(part, offset, *pair)
            for part, offset, pair in zip(self.inner.parts, offsets, pairs, strict=True)
        )

    @staticmethod
    def _part(part: Part, offset: float, lower: float, upper: float) -> Part:
        least, most = part.bounds
        if math.isfinite(lower):
            least = max(least, Fraction(lower) - Fraction(offset))
        if math.isfinite(upper):
            most = min(most, Fraction(upper) - Fraction(offset))
        if not least < most:
            raise ParameterError("'bounds' leave out all that the statistic can be.")
        if part.moves == 1 and most - least < part.l1 * part.unit:
            raise ParameterError(
                "'bounds' are narrower than what one record can do to the statistic.",
                "wider bounds, or none: then they follow from the declaration.",
            )
        return replace(
            part,
            lower=Fraction(least) if math.isfinite(least) else None,
            upper=Fraction(most) if math.isfinite(most) else None,
        )

    def read(self, engine: Engine) -> list[Whole]:
        return self.inner.read(engine)

    def finish(self, noisy: Sequence[Noisy]) -> Answer:
        answer = self.inner.finish(noisy)
        lower, upper = np.array(self.bounds).T
        return replace(answer, lower=np.maximum(answer.lower, lower), upper=np.minimum(answer.upper, upper))
