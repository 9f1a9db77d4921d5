"""Released numbers, and their errors by noise and by bounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.distributions import Distribution, GeneralizedNormal
from pdprivacy.mechanism import Bounds
from pdprivacy.mechanism.additive import Additive
from pdprivacy.mechanism.support import bias_between, mse_between
from pdprivacy.release.spec import Price
from pdprivacy.request import Bounding
from pdprivacy.statistic import Answer, Noisy
from pdprivacy.statistic.confidence import Ends

__all__ = ["LEVEL", "Errors", "Result", "numbers_as_json", "pairs_as_json"]

Floats: TypeAlias = NDArray[np.float64]

LEVEL = 0.95

WIDEST = Fraction(2**500)  # in scales of the noise: as good as infinite


@dataclass(frozen=True)
class Errors:
    """The errors of released numbers, each broadcastable to their shape.

    ``standard_error``: of the noise, before any bounding. ``plus_minus``: half the interval around a
    released number. With ``bounding`` also ``bias`` and ``rmse``: as if the statistic were the
    released number; and the largest of both over all statistics within the bounds, where each number
    is a noisy number of its own. ``lower``, ``upper``: the bounds of the numbers. ``uncounted``: rounding per
    record that ``plus_minus`` leaves out, None where it leaves out nothing. ``effective_rows``: the effective
    number of weighted records behind each number, None where it is not known.
    """

    standard_error: Any
    plus_minus: Any
    bias: Any = None
    rmse: Any = None
    worst_bias: Any = None
    worst_rmse: Any = None
    lower: Any = -math.inf
    upper: Any = math.inf
    uncounted: Any = None
    effective_rows: Any = None

    @classmethod
    def side_by_side(cls, releases: Sequence[tuple[tuple[int, ...], Errors]]) -> Errors:
        """Return the errors of several releases of these shapes, as columns."""

        def joined(name: str) -> Any:
            if getattr(releases[0][1], name) is None:
                return None
            columns = [np.broadcast_to(getattr(errors, name), shape) for shape, errors in releases]
            return np.column_stack(columns)

        return cls(*(joined(name) for name in cls.__dataclass_fields__))

    def reordered(self, order: NDArray[np.int64]) -> Errors:
        """Return the errors of the numbers in another order of rows."""
        return Errors(
            *(
                value[order] if np.ndim(value := getattr(self, name)) else value
                for name in self.__dataclass_fields__
            )
        )

    def to_json(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return the errors as the metadata of a frame of this shape stores them."""
        stored: dict[str, Any] = {
            "level": LEVEL,
            "standard_error": numbers_as_json(self.standard_error, shape),
            "plus_minus": numbers_as_json(self.plus_minus, shape),
        }
        if self.uncounted is not None:
            stored["rounding_per_record"] = numbers_as_json(self.uncounted, shape)
        if self.bias is None:
            return stored
        worst = None
        if self.worst_bias is not None:
            worst = {
                "bias": numbers_as_json(self.worst_bias, shape),
                "rmse": numbers_as_json(self.worst_rmse, shape),
            }
        at_released = {"bias": numbers_as_json(self.bias, shape), "rmse": numbers_as_json(self.rmse, shape)}
        return {**stored, **at_released, "worst_case": worst}


@dataclass(frozen=True)
class Result:
    """One release of a statistic: its numbers, with the bounding of the call, and its noisy parts.

    ``offsets``: as of a statistic; None once the numbers are made of the statistic's. ``ends``: the
    declared bounds of the statistic. ``bias_known``: whether the bias of bounding is known; biases of several
    numbers add up, and depend on the exact ones.
    """

    answer: Answer
    noisy: tuple[Noisy, ...]
    price: Price
    offsets: tuple[float, ...] | None
    bounding: Bounding | None
    ends: tuple[Any, Any]
    bias_known: bool = True

    @property
    def errors(self) -> Errors:
        """Errors of the released numbers."""
        answer, price, bounding = self.answer, self.price, self.bounding
        biases: tuple[Any, Any, Any, Any] = (None, None, None, None)
        if bounding is not None and not self.bias_known:
            biases = (math.nan, math.nan, None, None)
        elif bounding is not None and self.offsets is None:
            biases = (*_made(answer, price, bounding), None, None)
        elif bounding is not None and self.offsets is not None:
            biases = _own(answer, price, self.offsets, bounding)
        if self.offsets is not None:  # exactly the quantile of the noise, which bounding does not widen
            half = _own_half(price.mechanisms, LEVEL)
        elif answer.interval is not None:  # the distance to the farther end
            lower, upper = answer.interval(LEVEL)
            half = np.maximum(upper - answer.values, answer.values - lower)
        else:
            half = np.full(np.shape(answer.values), np.nan)
        return Errors(
            answer.standard_error,
            half + np.asarray(answer.rounding),
            *biases,
            answer.lower,
            answer.upper,
            answer.uncounted,
            answer.effective_rows,
        )

    def interval(self, level: float) -> Ends:
        """The ends of the intervals of this level, before rounding."""
        if self.answer.interval is not None:
            return self.answer.interval(level)
        values, half = self.answer.values, _own_half(self.price.mechanisms, level)
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

    def transformed(self, transform: Callable[[Answer], Answer], *, bias_known: bool = True) -> Result:
        """Return the result with numbers made of these."""
        answer = transform(replace(self.answer, interval=self.interval))
        return replace(self, answer=answer, offsets=None, bias_known=self.bias_known and bias_known)


def numbers_as_json(numbers: Any, shape: tuple[int, ...]) -> Any:
    """The numbers of a frame as JSON: one number where all are the same, None where one is not finite."""
    values = np.asarray(numbers, np.float64)
    if values.size == 1 and 0 not in shape:
        return values.item() if math.isfinite(values.item()) else None
    values = np.broadcast_to(values, shape)
    if not np.isfinite(values).any():
        return None
    if values.size and bool(np.all(values == values.flat[0])):
        return float(values.flat[0])
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None  # JSON has no NaN
    return plain.tolist()


def pairs_as_json(lower: Any, upper: Any, shape: tuple[int, ...]) -> Any:
    """[lower, upper] of all numbers of a frame of this shape, or of each; None for an end that is open."""
    ends = [np.asarray(lower, np.float64), np.asarray(upper, np.float64)]
    if ends[0].size == ends[1].size == 1 and 0 not in shape:
        return [end.item() if math.isfinite(end.item()) else None for end in ends]
    ends = [np.broadcast_to(end, shape) for end in ends]
    pairs = np.stack(ends, axis=-1)
    if pairs.size and all(bool(np.all(end == end.flat[0])) for end in ends):
        pairs = pairs.reshape(-1, 2)[0]
    plain = pairs.astype(object)
    plain[~np.isfinite(pairs)] = None
    return plain.tolist()


def _own_half(mechanisms: Sequence[Additive], level: float) -> Any:
    """Half the interval of noisy numbers that are parts themselves: exactly the quantile of their noise."""
    halves = [mechanism.interval(level)[1] for mechanism in mechanisms]
    return np.array(halves) if len(halves) > 1 else halves[0]


def _own(
    answer: Answer, price: Price, offsets: tuple[float, ...], bounding: Bounding
) -> tuple[Any, Any, Any, Any]:
    """Return bias and root mean squared error of noisy numbers at the released numbers, and the largest."""
    values = np.asarray(answer.values, np.float64)
    columns: list[tuple[Any, Any, float, float]] = []
    parts = list(zip(price.parts, price.mechanisms, offsets, strict=True))
    for position, (part, mechanism, offset) in enumerate(parts):
        statistic = (values if len(parts) == 1 else values[..., position]) - offset
        columns.append(_bounded(mechanism, part.bounds, bounding, statistic))
    if len(columns) == 1:
        return columns[0]
    return tuple(np.stack(field, axis=-1) for field in zip(*columns, strict=True))  # type: ignore[return-value]


def _bounded(
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
    largest, worst = _worst(law, Bounds(Fraction(0), width, bounding))
    return bias * unit, np.sqrt(mse) * unit, largest * unit, math.sqrt(worst) * unit


# The worst cases take a search, and are the same for every release of a statistic.


@lru_cache(maxsize=256)
def _worst(law: Distribution, bounds: Bounds) -> tuple[float, float]:
    return bounds.worst_bias(law), bounds.worst_mse(law)


def _made(answer: Answer, price: Price, bounding: Bounding) -> tuple[Any, Any]:
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
