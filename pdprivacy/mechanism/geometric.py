"""Geometric (discrete Laplace) noise on the integers, bounded or not: pure differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pdprivacy import noise
from pdprivacy.checks import doubles, fractions
from pdprivacy.errors import ParameterError, got
from pdprivacy.mechanism.bounds import FURTHEST, Bounding, Bounds, Limited
from pdprivacy.mechanism.continuous import check_moves, check_one
from pdprivacy.mechanism.core import (
    LEAST_STEPS,
    SAFE,
    Floats,
    Integers,
    add_integers,
    aligned,
    check_drawable,
    check_level,
    check_probabilities,
    remembered,
    smallest,
)
from pdprivacy.mechanism.laplace import truncated_laplace_scale
from pdprivacy.noise import UNBOUNDED, RandomState, Source
from pdprivacy.privacy import Pure, Rational, positive

__all__ = ["Geometric", "Lattice", "truncated_geometric_scale"]

TABLE = 4096
"""Up to this distance sums are added up term by term; beyond, closed forms keep enough digits."""

POINTS = 2049


@remembered
def truncated_geometric_scale(
    epsilon: Fraction, sensitivity: int, width: int | None = None, moves: int = 1
) -> Fraction:
    """The scale b at which geometric noise truncated to a range of ``width`` loses ``epsilon``.

    With r = exp(-1/b), d = sensitivity / moves and C(s) the sum of r^abs(z - s) over the range, a number
    that moves by d loses at most d / b + ln(C(lower + d) / C(lower)), and
    C(lower + d) / C(lower) = (1 + r - r^(d+1) - r^(width-d+1)) / (1 - r^(width+1)). That is concave in d
    and nondecreasing up to the middle, so ``moves`` times it bounds every split of the movement.
    Beyond the middle the continuous bound is used (`truncated_laplace_scale`), which is larger.

    >>> b = truncated_geometric_scale(Fraction(1), 1)  # one open side: (1 + r) / r - r = e
    >>> r = math.exp(-1 / b)
    >>> round((1 + r) / r - r, 6)
    2.718282
    """
    fractions(epsilon=epsilon, sensitivity=sensitivity, width=width, moves=moves)
    each, moved = float(epsilon) / moves, sensitivity / moves
    if width is not None and 2 * moved > width:
        return truncated_laplace_scale(epsilon, Fraction(sensitivity), width + 1, moves)

    def loses_less(b: float) -> bool:
        # C(lower + d) / C(lower) - 1 = r (1 - r^d) (1 - r^(width-d)) / (1 - r^(width+1)), to all digits
        gain = math.exp(-1 / b) * -math.expm1(-moved / b)
        if width is not None:
            gain *= math.expm1(-(width - moved) / b) / math.expm1(-(width + 1) / b)
        return moved / b + math.log1p(gain) <= each * (1 - 1e-12)

    return Fraction(smallest(loses_less)) * SAFE


@dataclass(frozen=True, slots=True)
class Lattice:
    """The geometric law P(z) proportional to r^abs(z), r = exp(-1/b), and its errors between bounds.

    Distances ``t`` to bounds are whole numbers, not negative, infinity included.
    """

    b: float

    @property
    def std(self) -> float:
        """Standard deviation, ``sqrt(2 r) / (1 - r)``."""
        return math.sqrt(2) * math.exp(-0.5 / self.b) / -math.expm1(-1 / self.b)

    @property
    def _parts(self) -> tuple[float, float]:
        return math.exp(-1 / self.b), -math.expm1(-1 / self.b)

    def total(self, power: int, t: Floats) -> Floats:
        """The sum of k^power r^k over k = 1..t."""
        t = np.asarray(t, np.float64)
        r, gap = self._parts
        if power == 0:
            return np.asarray(r * -np.expm1(-t / self.b) / gap)
        table, place = self._table(t, lambda k: k**power)
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isfinite(t), t**power * np.exp(-t / self.b) * r / gap, 0.0)
        return np.asarray(np.where(t < len(table), table[place], self.clamped(power, t) - rest))

    def clamped(self, power: int, t: Floats) -> Floats:
        """The sum of min(k, t)^power r^k over all k >= 1, by parts: differences of powers times tails."""
        t = np.asarray(t, np.float64)
        r, gap = self._parts
        once = r * -np.expm1(-t / self.b) / gap  # the sum of r^k over k = 1..t
        if power == 1:
            return np.asarray(once / gap)
        table, place = self._table(t, lambda k: 2 * k - 1)
        with np.errstate(invalid="ignore"):
            last = np.where(np.isfinite(t), t * np.exp(-t / self.b), 0.0)
        closed = 2 * (once - r * last) / gap - once
        return np.asarray(np.where(t < len(table), table[place], closed) / gap)

    def _table(self, t: Floats, factor: Callable[[Floats], Floats]) -> tuple[Floats, Integers]:
        """Sums of factor(k) r^k up to each distance that is short, and where to look them up."""
        most = float(np.max(t, initial=0.0, where=np.isfinite(t)))
        k = np.arange(1.0, min(TABLE, most) + 1)
        table = np.concatenate([[0.0], np.cumsum(factor(k) * np.exp(-k / self.b))])
        return table, np.minimum(t, len(table) - 1).astype(np.int64)

    def errors(self, bounding: Bounding | None, below: Floats, above: Floats) -> tuple[Floats, Floats]:
        """Bias and mean squared error of released numbers at these distances from their bounds."""
        if bounding is None:
            return np.zeros(below.shape), np.full(below.shape, self.std**2)
        if bounding == "bit":
            mass = math.tanh(0.5 / self.b)
            bias = mass * (self.clamped(1, above) - self.clamped(1, below))
            return bias, mass * (self.clamped(2, below) + self.clamped(2, above))
        whole = 1 + self.total(0, below) + self.total(0, above)
        bias = (self.total(1, above) - self.total(1, below)) / whole
        return bias, (self.total(2, below) + self.total(2, above)) / whole

    def worst(self, bounding: Bounding | None, width: float) -> tuple[float, float]:
        """The largest absolute bias and mean squared error over the statistics within a range."""
        if bounding is None:
            return 0.0, self.std**2
        end = np.array([0.0])
        bias = abs(float(self.errors(bounding, end, width + end)[0][0]))
        if math.isinf(width):
            return bias, self.std**2
        places = np.unique(np.rint(np.linspace(0, width // 2, POINTS)))
        return bias, float(self.errors(bounding, places, width - places)[1].max())


@dataclass(frozen=True, slots=True)
class Geometric(Limited):
    """Two-sided geometric (discrete Laplace) noise on the integers: epsilon-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : l1 sensitivity of the integer values, a positive whole number.
    bounds, bounding, moves : as for `Laplace`; what is released are the whole numbers within.

    Attributes
    ----------
    steps : the scale b in P(z) proportional to exp(-abs(z)/b), exact: sensitivity / epsilon, and
        more for truncated noise (`truncated_geometric_scale`).

    Raises
    ------
    ParameterError : epsilon not positive and finite, sensitivity not a positive whole number,
        bounds without two whole numbers between them.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms",
    Definition 2.1, with ratio exp(-1/b).

    >>> mechanism = Geometric(epsilon=1, sensitivity=1)
    >>> mechanism.interval(0.95)
    (-3.0, 3.0)
    >>> round(float(mechanism.pmf(0) / mechanism.pmf(1)), 4)  # exp(1)
    2.7183
    """

    name: ClassVar[str] = "geometric"
    epsilon: Fraction
    sensitivity: Fraction
    limits: Bounds
    moves: int | None
    steps: Fraction

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational = 1,
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        moves: int | None = None,
    ) -> None:
        eps, sens = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        if sens.denominator != 1:
            raise ParameterError(f"'sensitivity' must be a whole number (got {got(sensitivity)}).")
        limits, count = Bounds.of(bounds, bounding), check_moves(moves)
        limits.check_sensitivity(sens, count)
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "sensitivity", sens)
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "moves", count)
        first, last = self._ends()
        width = None if first is None or last is None else last - first
        if width is not None and width < 1:
            raise ParameterError("'bounds' must have two whole numbers between them.")
        check_drawable(max(sens / eps, LEAST_STEPS), Fraction(1))
        steps = sens / eps
        if bounding == "truncated":
            steps = truncated_geometric_scale(eps, int(sens), width, count or 1)
            check_drawable(max(steps, LEAST_STEPS), Fraction(1))
        object.__setattr__(self, "steps", steps)

    def _ends(self) -> tuple[int | None, int | None]:
        """The first and the last whole number within the bounds."""
        lower, upper = self.limits.lower, self.limits.upper
        ends = None if lower is None else math.ceil(lower), None if upper is None else math.floor(upper)
        if any(end is not None and abs(end) >= FURTHEST for end in ends):
            raise ParameterError(
                "'bounds' must be below 2**61 in size.", "leave the far side open with math.inf."
            )
        return ends

    @property
    def loss(self) -> Pure:
        """What one sample costs."""
        return Pure(self.epsilon)

    @property
    def grid(self) -> Fraction:
        """The integers."""
        return Fraction(1)

    @property
    def scale(self) -> float:
        """The scale b in P(z) proportional to exp(-abs(z)/b)."""
        return float(self.steps)

    @property
    def std(self) -> float:
        """Standard deviation of the noise before any bounding, ``sqrt(2 r) / (1 - r)``."""
        return self.law.std

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_laplace(self.steps, size, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        return noise.truncated_laplace(self.steps, below, above, source)

    def sample(self, values: ArrayLike, rng: RandomState = None) -> Integers:
        """Integer ``values`` plus independent noise, within the bounds; same shape, int64."""
        first, last = self._ends()
        if self.bounding != "truncated":
            noisy = add_integers(values, self.draw, rng)
            return noisy if first is None and last is None else np.asarray(np.clip(noisy, first, last))
        if self.moves is None:
            check_one(np.size(values), "truncated")
        centers = np.clip(add_integers(values, lambda size, _: np.zeros(size, np.int64), None), first, last)
        open_side = np.full(centers.shape, UNBOUNDED, np.int64)
        below = open_side if first is None else centers - first
        above = open_side if last is None else last - centers
        return np.asarray(centers + self.draw_within(below, above, noise.source(rng)))

    def _distances(self, s: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
        """The clamped whole statistic, and its distances to the first and the last whole number."""
        first, last = self._ends()
        if s is None and self.bounding is not None:
            raise ParameterError(
                "'s' is needed: the law of a bounded release depends on the statistic.",
                "for example cdf(x, s=3).",
            )
        low, high = -math.inf if first is None else first, math.inf if last is None else last
        whole = np.rint(doubles(0.0 if s is None else s, "'s'"))
        if not np.isfinite(whole).all():
            raise ParameterError("'s' must be finite.")
        centre = np.clip(whole, low, high)
        return centre, np.asarray(centre - low), np.asarray(high - centre)

    def pmf(self, z: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Probability of the noise, or of the number released for ``s``, at integers; zero elsewhere."""
        x = doubles(z, "'z'")
        mass = self.cdf(x, s) - self.cdf(x - 1, s)
        if self.bounding != "bit":  # without cancellation
            centre, below, above = self._distances(s)
            whole: Any = 1 / math.tanh(0.5 / self.scale)
            if self.bounding == "truncated":
                whole = 1 + self.law.total(0, below) + self.law.total(0, above)
            inside = (x >= centre - below) & (x <= centre + above)
            mass = np.where(inside, np.exp(-np.abs(x - centre) / self.scale) / whole, 0.0)
        return np.asarray(np.where(x == np.rint(x), mass, 0.0))

    def cdf(self, x: ArrayLike, s: ArrayLike | None = None) -> Floats:
        """Distribution function of the noise, or of the number released for ``s``."""
        centre, below, above = self._distances(s)
        k = np.floor(aligned(doubles(x, "'x'"), centre)) - centre
        if self.bounding == "truncated":
            k = np.clip(k, -below - 1, above)
            left, right = self.law.total(0, below), self.law.total(0, above)
            whole = 1 + left + right
            # the masses of -below..k and of k+1..above
            lower = (left - self.law.total(0, np.maximum(-k - 1, 0.0))) / whole
            upper = (right - self.law.total(0, np.maximum(k, 0.0))) / whole
            return np.asarray(np.where(k < 0, lower, 1 - upper))
        share = self._share
        under = share * np.exp(np.minimum(k, 0.0) / self.scale)
        over = 1 - share * np.exp(-(np.maximum(k, 0.0) + 1) / self.scale)
        held = np.where(k < 0, under, over)
        if self.bounding is None:
            return np.asarray(held)
        return np.asarray(np.where(k < -below, 0.0, np.where(k >= above, 1.0, held)))

    @property
    def _share(self) -> float:
        """The probability of zero and everything on one side of it."""
        return 1 / (1 + math.exp(-1 / self.scale))

    def ppf(self, q: ArrayLike) -> Floats:
        """Smallest integer whose probability not to be exceeded by the unbounded noise reaches ``q``."""
        p = check_probabilities(q)
        b, share = self.scale, self._share
        with np.errstate(divide="ignore"):
            low = np.ceil(b * np.log(p / share))
            high = np.ceil(-b * np.log((1 - p) / share) - 1)
        k = np.where(p <= share * math.exp(-1 / b), low, np.maximum(high, 0.0))
        # the logarithm may land beside the integer: the distribution function itself settles it
        plain = Geometric(1 / self.steps) if self.bounding is not None else self
        found = k.copy()
        for near in (k + 1, k, k - 1):
            with np.errstate(invalid="ignore"):
                found = np.where(np.isfinite(k) & (plain.cdf(near) >= p), near, found)
        return np.asarray(found)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The smallest symmetric integer interval that holds the noise with at least ``level``.

        Of the noise before any bounding; the released number minus the statistic lies in it with at
        least that probability, for every statistic within the bounds (as of `Laplace`).
        """
        check_level(level)
        b = self.scale
        # beyond k on both sides lies 2 exp(-(k + 1)/b) / (1 + exp(-1/b))
        half = max(math.ceil(-b * math.log((1 - level) / (2 * self._share)) - 1), 0)
        while half > 0 and 2 * self._share * math.exp(-half / b) <= 1 - level:
            half -= 1
        while 2 * self._share * math.exp(-(half + 1) / b) > 1 - level:
            half += 1
        return (-float(half) if half else 0.0), float(half)

    @property
    def law(self) -> Lattice:
        """The geometric law of this scale, before any bounding."""
        return Lattice(self.scale)

    def bias(self, s: ArrayLike) -> Floats:
        """Mean of the released number minus the whole statistic ``s``; zero without bounds."""
        return self.law.errors(self.bounding, *self._distances(s)[1:])[0]

    def mse(self, s: ArrayLike) -> Floats:
        """Mean squared error of the released number for the whole statistic ``s``."""
        return self.law.errors(self.bounding, *self._distances(s)[1:])[1]

    def worst_case_bias(self) -> float:
        """The largest absolute bias over the whole statistics within the bounds; it is at an end."""
        return self.law.worst(self.bounding, self._width)[0]

    def worst_case_mse(self) -> float:
        """The largest mean squared error over the whole statistics within the bounds, by search.

        Where a side is open it approaches the variance of the noise, and never exceeds it.
        """
        return self.law.worst(self.bounding, self._width)[1]

    @property
    def _width(self) -> float:
        first, last = self._ends()
        return math.inf if first is None or last is None else float(last - first)
