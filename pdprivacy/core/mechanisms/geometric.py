"""Geometric (discrete Laplace) noise on the integers, bounded or not: pure differential privacy."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pdprivacy.core import noise
from pdprivacy.core.distributions import DiscreteLaplace
from pdprivacy.core.mechanisms.additive import SAFE, Discrete, check_moves, whole_sensitivity
from pdprivacy.core.mechanisms.laplace import exact_laplace_scale
from pdprivacy.core.mechanisms.support import Bounding, check_drawable, remembered
from pdprivacy.core.noise import Source
from pdprivacy.core.privacy import Rational, positive
from pdprivacy.exact import float_up, smallest
from pdprivacy.types import Integers

if TYPE_CHECKING:
    from pdprivacy.core.gate.request import Request
    from pdprivacy.core.statistics import Part


def truncated_geometric_scale(
    epsilon: Rational, sensitivity: Rational = 1, width: Rational | None = None, l0_sensitivity: int = 1
) -> float:
    """Return the scale b at which geometric noise truncated to a range of ``width`` loses ``epsilon``.

    It is rounded up. ``sensitivity`` and ``width`` are whole numbers; ``width`` is None for an open side. See
    the notes of `Geometric`. Beyond the middle of the range the continuous bound is used
    (`truncated_laplace_scale`), which is larger.

    >>> import math
    >>> b = truncated_geometric_scale(1, 1)  # one open side: (1 + r) / r - r = e
    >>> r = math.exp(-1 / b)
    >>> round((1 + r) / r - r, 6)
    2.718282
    """
    span = None if width is None else whole_sensitivity(width, "width")
    moved, span, count = check_moves(whole_sensitivity(sensitivity), span, l0_sensitivity)
    return float_up(exact_geometric_scale(positive(epsilon, "epsilon"), moved, span, count))


@remembered
def exact_geometric_scale(
    epsilon: Fraction, sensitivity: Fraction, width: Fraction | int | None, l0_sensitivity: int
) -> Fraction:
    """Return `truncated_geometric_scale` of checked numbers, exact."""
    each, moved = float(epsilon) / l0_sensitivity, float(sensitivity / l0_sensitivity)
    if width is not None and 2 * moved > width:
        return exact_laplace_scale(epsilon, sensitivity, width + 1, l0_sensitivity)

    def loses_less(b: float) -> bool:
        # C(lower + d) / C(lower) - 1 = r (1 - r^d) (1 - r^(width-d)) / (1 - r^(width+1)), to all digits
        gain = math.exp(-1 / b) * -math.expm1(-moved / b)
        if width is not None:
            gain *= math.expm1(-(width - moved) / b) / math.expm1(-(width + 1) / b)
        return moved / b + math.log1p(gain) <= each * (1 - 1e-12)

    return Fraction(smallest(loses_less)) * SAFE


@dataclass(frozen=True)
class Geometric(Discrete):
    """Two-sided geometric (discrete Laplace) noise on the integers: epsilon-differentially private.

    Parameters
    ----------
    epsilon : privacy loss, positive.
    sensitivity : l1 sensitivity of the integer values, a positive whole number.
    bounds, bounding, l0_sensitivity : as for `Laplace`; what is released are the whole numbers within.

    Attributes
    ----------
    steps : the scale b in P(z) proportional to exp(-abs(z)/b), exact: sensitivity / epsilon, and
        more for truncated noise (`truncated_geometric_scale`).

    Raises
    ------
    ParameterError : epsilon not positive and finite, sensitivity not a positive whole number,
        bounds without two whole numbers between them.

    Notes
    -----
    Unbounded, neighbours that are d apart in the l1 norm have probabilities that differ by at most
    exp(d / b), so the loss is sensitivity / b.

    Truncated, with r = exp(-1/b), k the l0 sensitivity, d = sensitivity / k and C(s) the sum of
    r^abs(z - s) over the whole numbers z within the bounds, a number that moves by d loses at most
    d / b + ln(C(lower + d) / C(lower)), and C(lower + d) / C(lower) =
    (1 + r - r^(d+1) - r^(width-d+1)) / (1 - r^(width+1)). That is concave in d and nondecreasing up to
    the middle of the range, so k times it bounds every split of the movement.

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
    title: ClassVar[str] = "geometric noise"
    std_per_scale: ClassVar[float] = math.sqrt(2)

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational = 1,
        *,
        bounds: Any = None,
        bounding: Bounding | None = None,
        l0_sensitivity: int | None = None,
    ) -> None:
        self._set(epsilon, whole_sensitivity(sensitivity), bounds, bounding, l0_sensitivity)
        check_drawable(self.steps, self.grid, integer=True)

    def _scale(self, moved: Fraction, width: Fraction | int | None) -> Fraction:
        if self.limits.bounding != "truncated":
            return moved / self.epsilon
        check_drawable(moved / self.epsilon, self.grid, integer=True)
        return exact_geometric_scale(self.epsilon, moved, width, self.l0_sensitivity or 1)

    @classmethod
    def _calibrate(cls, part: Part, request: Request) -> Self:
        """Geometric noise for a part of a release that counts records."""
        cls._check_counts(part, "laplace")
        epsilon = request.each.epsilon * part.weight
        return cls._for_part(part, request, epsilon=epsilon, sensitivity=part.l1)

    @functools.cached_property
    def distribution(self) -> DiscreteLaplace:
        """The discrete Laplace distribution of this scale."""
        return DiscreteLaplace(self.scale)

    def _noise(self, size: int, source: Source) -> Integers:
        return noise.discrete_laplace(self.steps, size, source)

    def _noise_within(self, below: Integers, above: Integers, source: Source) -> Integers:
        return noise.truncated_laplace(self.steps, below, above, source)
