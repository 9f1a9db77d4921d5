"""Released numbers with their errors, and their projection onto what is publicly known of them.

The nearest possible number is never farther from the statistic of the data than the noisy one, because the
statistic is possible. Projection is post-processing: it changes no noise and costs nothing. It biases numbers
near a limit, so the numbers before are kept for whatever is computed on. A matrix moves as a whole: single
entries may move away from the true ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pdprivacy.core.distributions import Distribution, GeneralizedNormal
from pdprivacy.core.gate.request import Bounding
from pdprivacy.core.gate.spec import LEVEL, Price
from pdprivacy.core.mechanisms.additive import Additive
from pdprivacy.core.mechanisms.support import Bounds, bias_between, mse_between
from pdprivacy.core.statistics import Answer, Noisy
from pdprivacy.core.statistics.confidence import Ends
from pdprivacy.releases.projection import numbers_as_json
from pdprivacy.types import Floats, Integers

WIDEST = Fraction(2**500)  # in scales of the noise: as good as infinite


@dataclass(frozen=True)
class Errors:
    """The errors of released numbers, each broadcastable to their shape.

    ``standard_error``: of the noise, before any bounding. ``plus_minus``: half the interval around a
    released number. With ``bounding`` also ``bias`` and ``rmse``: as if the statistic were the
    released number; and the largest of both over all statistics within the bounds, where each number
    is a noisy number of its own. ``lower``, ``upper``: the bounds of the numbers.
    ``rounding_per_record``: rounding that ``plus_minus`` leaves out, None where it leaves out nothing.
    ``effective_rows``: the effective number of weighted records behind each number, None if unknown.
    ``before``, ``plus_minus_before``: the numbers before a projection, and their ``plus_minus``; None without
    one. ``missed``: whether their interval missed all that is possible.
    """

    standard_error: Any
    plus_minus: Any
    bias: Any = None
    rmse: Any = None
    worst_bias: Any = None
    worst_rmse: Any = None
    lower: Any = -math.inf
    upper: Any = math.inf
    rounding_per_record: Any = None
    effective_rows: Any = None
    before: Any = None
    plus_minus_before: Any = None
    missed: Any = None

    @classmethod
    def side_by_side(cls, releases: Sequence[Errors], shape: tuple[int, ...]) -> Errors:
        """Return the errors of several releases of this shape, as columns."""

        def joined(name: str) -> Any:
            if getattr(releases[0], name) is None:
                return None
            return np.column_stack([np.broadcast_to(getattr(errors, name), shape) for errors in releases])

        return cls(*(joined(name) for name in cls.__dataclass_fields__))

    def reordered(self, order: Integers) -> Errors:
        """Return the errors of the numbers in another order of rows."""
        return replace(self, **{name: each[order] for name, each in vars(self).items() if np.ndim(each)})

    def to_json(self, shape: tuple[int, ...], level: float = LEVEL) -> dict[str, Any]:
        """Return the errors as the metadata of a frame of this shape stores them, with their ``level``."""
        plain = partial(numbers_as_json, shape=shape)
        stored: dict[str, Any] = {
            "level": level,
            "standard_error": plain(self.standard_error),
            "plus_minus": plain(self.plus_minus),
        }
        if self.rounding_per_record is not None:
            stored["rounding_per_record"] = plain(self.rounding_per_record)
        if self.bias is not None:
            stored |= {"bias": plain(self.bias), "rmse": plain(self.rmse), "worst_case": None}
        if self.worst_bias is not None:
            stored["worst_case"] = {"bias": plain(self.worst_bias), "rmse": plain(self.worst_rmse)}
        return stored


@dataclass(frozen=True)
class Result:
    """One release of a statistic: its numbers, with the bounding of the call, and its noisy parts.

    ``offsets``: as of a statistic; None once the numbers are made of the statistic's. ``ends``: the
    declared bounds of the statistic. ``bias_known``: whether the bias of bounding is known; biases of several
    numbers add up, and depend on the exact ones. ``stated_errors``: where they do not follow from the answer.
    ``before``: the numbers before they were projected onto the bounds of the answer; None without projection.
    ``level``: the coverage of the intervals. ``places``: the position among the numbers of the statistic of
    each released number, NaN without one; None where these are in order.
    """

    answer: Answer
    noisy: tuple[Noisy, ...]
    price: Price
    offsets: tuple[float, ...] | None
    bounding: Bounding | None
    ends: tuple[Any, Any]
    bias_known: bool = True
    stated_errors: Errors | None = None
    before: Any = None
    level: float = LEVEL
    places: Any = None

    @property
    def errors(self) -> Errors:
        """Errors of the released numbers."""
        if self.before is not None:
            return self._errors_of_projected()
        if self.stated_errors is not None:
            return self.stated_errors
        answer = self.answer
        if self.offsets is not None:  # exactly the quantile of the noise, which bounding does not widen
            half = _half_widths(self.price.mechanisms, self.level)
        elif answer.interval is not None:  # the distance to the farther end
            lower, upper = answer.interval(self.level)
            half = np.maximum(upper - answer.values, answer.values - lower)
        else:
            half = np.full(np.shape(answer.values), np.nan)
        return Errors(
            answer.standard_error,
            half + np.asarray(answer.rounding),
            *self._biases(self.bounding),
            answer.lower,
            answer.upper,
            answer.rounding_per_record,
            answer.effective_rows,
        )

    def _biases(self, bounding: Bounding | None) -> tuple[Any, Any, Any, Any]:
        """Bias and root mean squared error of the numbers, and the largest within the bounds, by bounding."""
        if bounding is None:
            return None, None, None, None
        if not self.bias_known:
            return math.nan, math.nan, None, None
        if self.offsets is None:
            return *_approximate_bias(self.answer, self.price, bounding), None, None
        return _bias_of_parts(self.answer, self.price, self.offsets, bounding)

    def _errors_of_projected(self) -> Errors:
        """Errors of projected numbers: their intervals end at the bounds."""
        answer, noisy = self.answer, replace(self, before=None, bounding=None)
        noisy = replace(noisy, answer=replace(answer, values=self.before))
        errors, limits = noisy.errors, (answer.lower, answer.upper)
        half = narrowed(self.before, answer.values, errors.plus_minus, limits)
        low, high = noisy.interval(self.level)
        missed = (high + answer.rounding < limits[0]) | (low - answer.rounding > limits[1])
        bias, rmse, worst_bias, worst_rmse = self._biases("clamp")
        return replace(
            errors,
            plus_minus=half,
            bias=bias,
            rmse=rmse,
            worst_bias=worst_bias,
            worst_rmse=worst_rmse,
            before=self.before,
            plus_minus_before=errors.plus_minus,
            missed=missed,
        )

    def interval(self, level: float) -> Ends:
        """The ends of the intervals of this level, before rounding."""
        if self.answer.interval is not None:
            return self.answer.interval(level)
        values, half = self.answer.values, _half_widths(self.price.mechanisms, level)
        return values - half, values + half

    def reshaped(self, shape: tuple[int, ...]) -> Result:
        """The result in this shape; its errors are the same for all numbers, or of the same shape."""

        def interval(level: float) -> Ends:
            lower, upper = (np.reshape(end, shape) for end in self.interval(level))
            return lower, upper

        answer = replace(self.answer, values=np.reshape(self.answer.values, shape), interval=interval)
        return replace(self, answer=answer)

    def projected(self, values: Any) -> Result:
        """Return the result with consistent numbers instead of its own, and intervals around them."""
        return self.transformed(lambda answer: replace(answer, values=values), bias_known=False)

    def within_bounds(self) -> Result:
        """Return the result with its numbers moved to the nearest ones within the bounds of the answer."""
        answer = self.answer
        values = np.clip(answer.values, answer.lower, answer.upper)
        return replace(self, answer=replace(answer, values=values), before=answer.values)

    def as_a_whole(self, nearest: Callable[[Floats], Floats]) -> Result:
        """Return the result with its matrix moved to the ``nearest`` possible one."""
        before = self.answer.values
        return replace(
            self, answer=replace(self.answer, values=nearest(before)), before=before, bias_known=False
        )

    def transformed(self, transform: Callable[[Answer], Answer], *, bias_known: bool = True) -> Result:
        """Return the result with numbers made of these."""
        answer = transform(replace(self.answer, interval=self.interval))
        known = self.bias_known and bias_known
        return replace(self, answer=answer, offsets=None, bias_known=known, stated_errors=None)

    def arranged(self, arrange: Callable[[Floats], Floats]) -> Result:
        """Return the result with its numbers and errors in another shape."""
        shape = np.shape(self.answer.values)
        places = arrange(np.arange(math.prod(shape), dtype=np.float64).reshape(shape))
        return replace(self.transformed(lambda answer: answer.arranged(arrange)), places=places)


def narrowed(before: Any, after: Any, half: Any, limits: Ends) -> Any:
    """Return the margins of error of numbers ``after`` their projection onto ``limits``.

    ``half``: the margins ``before`` it. The nearest possible number is not farther from the true one than the
    number before, so the margin around it holds as often. It is stated around that number, up to the limits,
    and never becomes 0 because the noise left the limits. The margin of a number that a matrix moved
    elsewhere reaches the farther end of this interval.
    """
    least, most = limits
    shift = np.clip(before, least, most) - after
    return np.maximum(np.minimum(half + shift, most - after), np.minimum(half - shift, after - least))


def _half_widths(mechanisms: Sequence[Additive], level: float) -> Any:
    """Half the interval of noisy numbers that are parts themselves: exactly the quantile of their noise."""
    halves = [mechanism.interval(level)[1] for mechanism in mechanisms]
    return np.array(halves) if len(halves) > 1 else halves[0]


def _bias_of_parts(
    answer: Answer, price: Price, offsets: tuple[float, ...], bounding: Bounding
) -> tuple[Any, Any, Any, Any]:
    """Return bias and root mean squared error of noisy numbers at the released numbers, and the largest."""
    values = np.asarray(answer.values, np.float64)
    by_part = [values] if len(price.parts) == 1 else np.moveaxis(values, -1, 0)
    columns = [
        _bias_within(mechanism, part.bounds, bounding, numbers - offset)
        for numbers, part, mechanism, offset in zip(
            by_part, price.parts, price.mechanisms, offsets, strict=True
        )
    ]
    if len(columns) == 1:
        return columns[0]
    return tuple(np.stack(field, axis=-1) for field in zip(*columns, strict=True))  # type: ignore[return-value]


def _bias_within(
    mechanism: Additive, ends: tuple[Any, Any], bounding: Bounding, statistic: Floats
) -> tuple[Any, Any, float, float]:
    """Return bias and root mean squared error for these statistics, and the largest within the bounds."""
    if ends == (-math.inf, math.inf):
        return np.zeros_like(statistic), np.full_like(statistic, mechanism.std), 0.0, mechanism.std
    # in units of the scale: its square may be more than a double holds, or less
    law, unit = mechanism.distribution.standard
    low, high = (float(end) for end in ends)
    within = np.clip(statistic, low, high)
    distances = (within - low) / unit, (high - within) / unit
    bias, mse = bias_between(law, bounding, *distances), mse_between(law, bounding, *distances)
    width = None
    if math.isfinite(low) and math.isfinite(high):
        width = min((Fraction(ends[1]) - Fraction(ends[0])) / Fraction(unit), WIDEST)
    largest, worst = _largest_errors(law, Bounds(Fraction(0), width, bounding))
    return bias * unit, np.sqrt(mse) * unit, largest * unit, math.sqrt(worst) * unit


# The worst cases take a search, and are the same for every release of a statistic.


@lru_cache(maxsize=256)
def _largest_errors(law: Distribution, bounds: Bounds) -> tuple[float, float]:
    return bounds.worst_bias(law), bounds.worst_mse(law)


def _approximate_bias(answer: Answer, price: Price, bounding: Bounding) -> tuple[Any, Any]:
    """The same to first order, where numbers are made of several noisy ones.

    As if the number had noise of its standard error, of the order of the parts' noise, and were bounded
    itself.
    """
    error, values = np.asarray(answer.standard_error, np.float64), np.asarray(answer.values, np.float64)
    law = GeneralizedNormal.of(price.mechanisms[0].distribution.order, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = error / law.std
        below, above = ((side / scale) for side in (values - answer.lower, answer.upper - values))
        below, above = (np.where(np.isnan(side), np.inf, np.maximum(side, 0.0)) for side in (below, above))
    bias, mse = bias_between(law, bounding, below, above), mse_between(law, bounding, below, above)
    return bias * scale, np.sqrt(mse) * scale
