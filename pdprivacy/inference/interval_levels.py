"""Intervals of released numbers at another level than the stated one, from the metadata alone.

The metadata determine the errors of numbers with noise of their own, of sums of these, of ratios of a noisy
sum and a noisy count, and of coefficients. The noisy count of a ratio follows from its standard error and its
margin of error, both of which are stated. For all other numbers the metadata hold the noisy parts
(`pdprivacy.releases.part_intervals`). The ends of selected intervals belong to one level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pdprivacy.checks import proportion
from pdprivacy.core.distributions import (
    DiscreteLaplace,
    DiscreteNormal,
    Distribution,
    GeneralizedNormal,
    Stairs,
)
from pdprivacy.core.statistics.confidence import Ends, Noisy, Tail, of_mean
from pdprivacy.errors import MetadataError
from pdprivacy.releases import metadata, projection
from pdprivacy.releases.excerpts import Excerpt, excerpt
from pdprivacy.releases.metadata import PROJECT, Metadata, Released, as_released, read
from pdprivacy.releases.part_intervals import margins_of_error
from pdprivacy.releases.results import narrowed
from pdprivacy.releases.view import View
from pdprivacy.types import Floats, Integers, Mask

COUNTS = {"count", "value_counts", "histogram", "crosstab", "nunique"}
OWN_PARTS = ("mean of ", "var of ", "pooled var of ")
"""How the names of noisy parts begin that are means or variances themselves."""

CONTINUOUS: dict[str, Callable[[float, float], Distribution]] = {
    "laplace": lambda scale, _: GeneralizedNormal.of(1, scale),
    "gaussian": lambda scale, _: GeneralizedNormal.gaussian(scale),
    "generalized_gaussian": lambda scale, p: GeneralizedNormal.of(p, scale),
}
"""The law of the noise by its scale and order."""

DISCRETE: dict[str, Callable[[float], Distribution]] = {
    "geometric": DiscreteLaplace,
    "discrete_gaussian": DiscreteNormal,
}
SAME = 1e-6
"""The relative difference below which a margin of error is reproduced."""

WHOLE = 1e-9
"""The relative distance from a whole number below which a number counts as whole."""

HALVINGS = 60


def interval(released: Released, level: float | None = None) -> Released:
    """Return the interval around each number of a release or an excerpt; see `metadata.interval`.

    Raises MetadataError for another level than the stated one where the metadata do not determine the error.
    """
    facts, part = read(released), None
    if as_released(released) is None:
        part = excerpt(released)
        released = part.settled
    if level is None or not isinstance(facts.error, Mapping) or facts.error.get("level") is None:
        return metadata.interval(released)
    stated, selected = facts.error["level"], {"below_best", "lower"} & {*facts.error}
    if proportion(level, "level") == stated or selected == {"below_best"} or facts.found:
        return metadata.interval(released)
    if "lower" in facts.error:
        raise MetadataError(
            f"The ends of these intervals were selected at level {stated}.",
            f"interval() without a level; its ends at another: {_call_of(View.of(released), level)}",
        )
    if part is None:
        whole = as_released(released)
        assert whole is not None
        return metadata.interval(_at_level(whole, float(level)))
    original = _at_level(part.original, float(level))
    return metadata.interval(Excerpt(part.match, original, read(original)).settled)


def _call_of(view: View, level: float) -> str:
    """Return the call of a release of quantiles with intervals of a level."""
    facts, by = view.facts, view.by
    groups = f".groupby({by})" if by else ""
    columns = [name for name in facts.columns if name not in by]
    q = ", q=0.5" if facts.statistic == "quantile" else ""
    return (
        f"private.dp{groups}.{facts.statistic}({columns}{q}, epsilon={facts.epsilon:g}, interval={level:g})."
    )


def _at_level(released: Released, level: float) -> Released:
    """Return the release with the margins of error of another level."""
    facts, before = read(released), projection.unprojected(released)
    numbers = ReleasedNumbers.of(before)
    if facts.part is not None and not numbers.have_own_noise:  # whose columns may be rows by now
        raise numbers.unknown()
    half = numbers.margins(level)
    projected = facts.projection
    if projected is not None:
        projected = {**projected, "plus_minus": half.ravel()[projected["at"]].tolist()}
    if facts.bounding == PROJECT and not numbers.dates:
        low, high = facts.bounds_of_each("bounds", released.shape)
        limits = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        half = narrowed(numbers.values, released.to_numpy(np.float64), half, limits)
    error = {
        **facts.error,
        "level": level,
        "plus_minus": projection.numbers_as_json(half, released.shape),
    }
    changed = released.copy()
    metadata.attach(changed, {**facts.to_dict(), "error": error, "projection": projected})
    return changed


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedNumbers:
    """Released numbers before any projection, with their stated errors.

    ``values``: zeros for dates, whose errors are times.
    """

    facts: Metadata
    values: Floats
    standard_error: Floats
    plus_minus: Floats

    @classmethod
    def of(cls, released: Released) -> ReleasedNumbers:
        """Return the numbers of a release."""
        facts, shape = read(released), released.shape
        values = np.zeros(shape) if "unit" in facts.error else released.to_numpy(np.float64)
        errors = (facts.error_of_each(name, shape) for name in ("standard_error", "plus_minus"))
        return cls(facts, values, *errors)

    @property
    def dates(self) -> bool:
        """Whether the numbers stand for dates."""
        return "unit" in self.facts.error

    @property
    def have_own_noise(self) -> bool:
        """Whether each number is one noisy number, whose bounds do not depend on others."""
        facts = self.facts
        if facts.normalize or facts.margins:
            return False
        if facts.statistic in COUNTS:
            return facts.constraint != "hierarchy"
        own = facts.statistic == "sum" or all(name.startswith(OWN_PARTS) for name in facts.split)
        return own and facts.statistic not in ("cov", "corr", "std")

    def margins(self, level: float) -> Floats:
        """Return the margins of error at a level.

        What the stated margin of error exceeds that of the noisy numbers by is rounding, the distance that a
        constraint moved the number, or caution.
        """
        facts, of_level = self.facts, self._of_ratios
        if facts.margins and facts.statistic not in COUNTS and level != facts.error["level"]:
            raise self.unknown()  # margins of statistics per group have the noise of several cells
        if facts.regression is not None:
            return self._of_coefficients(level)
        if facts.parts is not None and "of" in facts.parts:
            of_level = partial(margins_of_error, facts, self._law_of_part, values=self.values)
        elif self.have_own_noise:
            of_level = self._own
        elif facts.statistic in COUNTS and facts.normalize is None:
            of_level = self._sums
        else:
            return self._of_ratios(level)
        half, stated = of_level(level=level), of_level(level=facts.error["level"])
        return np.where(np.isnan(self.plus_minus), np.nan, half + np.maximum(self.plus_minus - stated, 0.0))

    @property
    def rounding(self) -> Floats:
        """Return how far the stated margins of numbers with noise of their own exceed those of the noise."""
        return np.maximum(self.plus_minus - self._own(self.facts.error["level"]), 0.0)

    def _own(self, level: float) -> Floats:
        """Return the quantiles of the noise of numbers with noise of their own."""
        quantiles = np.full(self.values.shape, np.nan)
        for error in np.unique(self.standard_error[~np.isnan(self.standard_error)]):
            quantiles[self.standard_error == error] = self.law(float(error)).central(level)
        return quantiles

    def _sums(self, level: float) -> Floats:
        """Return the margins of error of cells and of their sums; the standard error shows how many."""
        law = self._law_of_part("")
        bounding: Any = self.facts.bounding if self.facts.bounding in ("clamp", "truncated") else None
        size = np.rint((self.standard_error / law.std) ** 2)
        tail, deviations = Tail(law.standard[0], bounding), np.full((*size.shape, 1), law.std)
        half = np.asarray(tail.half(level, deviations, size[..., np.newaxis]), np.float64)
        single = law.central(level) if self.facts.constraint != "hierarchy" else half
        return np.where(size == 1, single, half)

    def _of_coefficients(self, level: float) -> Floats:
        """Return the margins of error of coefficients, whose tails the stated margin shows.

        It is the quantile of the normal distribution and a term of the third order, times the standard error
        (`pdprivacy.core.statistics.LeastSquares`).
        """
        quantile = GeneralizedNormal.gaussian(1.0).ppf
        z, stated = (float(quantile((1 + each) / 2)) for each in (level, self.facts.error["level"]))
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = (self.plus_minus / self.standard_error - stated) / (stated**3 - 3 * stated)
        return np.asarray(self.standard_error * (z + np.nan_to_num(excess) * (z**3 - 3 * z)))

    def _law_of_part(self, name: str) -> Distribution:
        """Return the law of the noise of a part by its name; of the only part by any."""
        facts, scale = self.facts, self.facts.scale
        scale = scale[name] if isinstance(scale, dict) else scale
        if facts.parts is not None and "stairs" in facts.parts:
            stairs = facts.parts["stairs"]
            epsilon, gamma = stairs[name] if name in stairs else next(iter(stairs.values()))
            return Stairs(epsilon, scale, gamma)
        if facts.mechanism in CONTINUOUS:
            return CONTINUOUS[facts.mechanism](scale, facts.p or 1.0)
        if facts.mechanism in DISCRETE:
            return DISCRETE[facts.mechanism](scale)
        raise self.unknown()

    def law(self, std: float) -> Distribution:
        """Return the law of noise with this standard deviation."""
        facts, scales = self.facts, self.facts.scale
        if (continuous := CONTINUOUS.get(facts.mechanism)) is not None:
            return continuous(std / continuous(1.0, facts.p or 1.0).std, facts.p or 1.0)
        for name in scales if isinstance(scales, dict) else [""]:
            if abs((law := self._law_of_part(name)).std - std) <= SAME * std:
                return law
        raise self.unknown()

    def _of_ratios(self, level: float) -> Floats:
        """Return the margins of error of ratios of a noisy sum and a noisy count."""
        sums, counts = self._parts_of_ratio()
        low, high = self.facts.bounds_of_each("value_bounds", self.values.shape)
        columns, middle = self._columns(len(sums)), (low + high) / 2
        ends = np.full((2, *self.values.shape), np.nan)
        for column, parts in enumerate(zip(sums, counts, strict=True)):
            at = columns == column
            of_sum, of_count = map(self._std, parts)
            values, reach = self.values[at] - middle[at], (high - middle)[at]
            ratio = _Ratio(values, reach, self.standard_error[at], of_sum, of_count, self.law(1.0))
            counts_at = ratio.counts(self.plus_minus[at], self.facts.error["level"])
            if counts_at is None:
                raise self.unknown()
            ends[:, at] = middle[at] + np.array(ratio.ends(counts_at, level))
        return np.asarray(np.maximum(ends[1] - self.values, self.values - ends[0]))

    def _std(self, part: str) -> float:
        """Return the standard deviation of the noise of a part."""
        facts = self.facts
        assert isinstance(facts.scale, dict)
        return CONTINUOUS[facts.mechanism](facts.scale[part], facts.p or 1.0).std

    def _parts_of_ratio(self) -> tuple[list[str], list[str]]:
        """Return the names of the noisy sum and of the noisy count behind each column."""
        facts, names = self.facts, [*self.facts.split]
        sums = [name for name in names if name.startswith("sum of ")]
        own = {name: name.replace("sum of ", "count of ", 1) for name in sums}  # of a column with nulls
        counts = [own[name] if own[name] in names else "count" for name in sums]
        known = facts.statistic in ("mean", "proportion") and facts.mechanism in CONTINUOUS
        known = known and facts.weights is None and facts.bounding is None and facts.constraint is None
        known = known and not self.dates and {*sums, *counts} == {*names}
        if not known or not isinstance(facts.scale, dict):
            raise self.unknown()
        return sums, counts

    def _columns(self, number: int) -> Integers:
        """Return the position of the column of values behind each released number."""
        shape = self.values.shape
        columns = np.arange(number)
        if len(self.facts.columns) > number:  # of groups; a pivot table repeats each column for its labels
            repeats = shape[-1] // (number * self.facts.releases) if len(shape) == 2 else 1
            columns = np.tile(np.repeat(columns, repeats), self.facts.releases if len(shape) == 2 else 1)
            if len(shape) == 1:
                columns = columns[:1]
        elif len(shape) == 2:
            columns = columns[:, np.newaxis]
        return np.broadcast_to(columns, shape)

    def unknown(self) -> MetadataError:
        """The error for numbers whose metadata determine one level only."""
        return MetadataError(
            f"The metadata determine the error of this {self.facts.statistic!r} at level "
            f"{self.facts.error.get('level')} only.",
            "released.dp.interval() without a level.",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Ratio:
    """Ratios of a noisy sum and a noisy count per number, about the middle of their range.

    ``reach``: the largest ratio. ``of_sum``, ``of_count``: the standard deviations of the noise.
    """

    values: Floats
    reach: Floats
    standard_error: Floats
    of_sum: float
    of_count: float
    law: Distribution

    @property
    def divisors(self) -> Floats:
        """The counts that divide the sums: the noisy ones, or the least one where these are lower."""
        return np.hypot(self.of_sum, self.values * self.of_count) / self.standard_error

    def ends(self, counts: Floats, level: float) -> Ends:
        """Return the ends of the intervals for these noisy counts."""
        tail = Tail(self.law.standard[0])
        total, count = (
            Noisy(self.values * self.divisors, self.of_sum, tail),
            Noisy(counts, self.of_count, tail),
        )
        return of_mean(level, total, count, -self.reach, self.reach)

    def counts(self, plus_minus: Floats, level: float) -> Floats | None:
        """Return the noisy counts that these margins of error follow from; None where there are none.

        A count below the least one does not divide the sum. Where it cannot be told from the margin of error,
        it counts as 0, for which the interval of every level is the whole range.
        """

        def margins(counts: Floats) -> Floats:
            lower, upper = self.ends(counts, level)
            return np.asarray(np.maximum(upper - self.values, self.values - lower))

        def fit(counts: Floats) -> Mask:
            return np.asarray(np.abs(margins(counts) - plus_minus) <= SAME * plus_minus)

        low, high = np.zeros_like(self.values), self.divisors
        known, whole = fit(high), fit(low)
        # the least count is a whole number, which a noisy count hardly ever is
        replaced = np.abs(high - np.rint(high)) <= WHOLE * high
        known &= ~(whole & replaced)
        for _ in range(HALVINGS if not (known | whole).all() else 0):
            middle = (low + high) / 2
            wide = margins(middle) > plus_minus
            low, high = np.where(wide, middle, low), np.where(wide, high, middle)
        counts = np.where(known, self.divisors, np.where(~whole & fit(high), high, 0.0))
        return counts if bool((fit(counts) | replaced).all()) else None
