"""How a noisy count reads: as empty below the threshold, and else as a whole number."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdprivacy.checks import doubles, real
from pdprivacy.errors import ParameterError, kind

__all__ = ["NEGLIGIBLE", "HasCdf", "NoNoise", "OnlyNoise", "Reading", "readings"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NEGLIGIBLE = 1e-18
"""Masses below this are dropped: a thousand of them stay below 1e-15."""


SMALL = 256
"""Counts below this are looked up."""

ROUNDING = 1e-12
"""By how much a distribution function may leave [0, 1]."""


class HasCdf(Protocol):
    """Noise with a distribution function, as those of `pdprivacy.mechanism` and `scipy.stats` have it."""

    def cdf(self, x: Any, /) -> Any:
        """Pr(noise <= x) for an array."""


@dataclass(frozen=True, slots=True)
class OnlyNoise:
    """What remains of symmetric noise as epsilon goes to 0: every count reads as empty or not by a coin."""

    def cdf(self, x: Any, /) -> Floats:
        """One half everywhere."""
        return np.full(doubles(x, "'x'").shape, 0.5)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """What remains of noise as epsilon goes to infinity: counts are exact."""

    def cdf(self, x: Any, /) -> Floats:
        """A step at 0."""
        return (doubles(x, "'x'") >= 0).astype(np.float64)


@dataclass(frozen=True)
class Reading:
    """How counts with this noise read; ``threshold``: released counts below it read as empty.

    >>> from pdprivacy.mechanism import Laplace
    >>> Reading(Laplace(epsilon=1, sensitivity=1)).empty(np.array([0, 1])).round(3)
    array([0.697, 0.303])
    """

    mechanism: HasCdf
    threshold: float = 0.5

    def not_above(self, points: Floats, counts: Integers) -> Floats:
        """Pr(noisy count <= point); the two shapes broadcast.

        Raises ParameterError where the ``cdf`` does not return probabilities.
        """
        return self._chances(points, counts, below=False)

    def _chances(self, points: Floats, counts: Integers, *, below: bool) -> Floats:
        """Pr(noisy count <= point), or with ``below`` Pr(noisy count < point)."""
        if getattr(self.mechanism, "bounding", None) is not None:
            bounded: Any = self.mechanism  # its law depends on the count
            at = np.nextafter(points, -math.inf) if below else points
            found = bounded.cdf(at, counts.astype(np.float64))
        else:
            noise = points - counts
            found = self.mechanism.cdf(np.nextafter(noise, -math.inf) if below else noise)
        try:
            chance = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            chance = np.empty(0)
        if (
            chance.shape != np.broadcast_shapes(points.shape, counts.shape)
            or not ((chance >= -ROUNDING) & (chance <= 1 + ROUNDING)).all()
        ):
            raise ParameterError("The 'cdf' of a mechanism must return one probability for each number.")
        return np.clip(chance, 0.0, 1.0)

    def empty(self, counts: Integers) -> Floats:
        """q: the probability that each count reads as empty, being below the threshold; same shape."""
        if counts.max(initial=0) < SMALL:
            return np.asarray(self._small[counts])
        return self._empty(counts)

    def _empty(self, counts: Integers) -> Floats:
        return self._chances(np.full(counts.shape, self.threshold), counts, below=True)

    @functools.cached_property
    def _small(self) -> Floats:
        """(SMALL,), q of the counts from 0 on, which most tables ask for several times."""
        return self._empty(np.arange(SMALL))

    def reach(self, largest: int) -> int:
        """From what count on none reads as empty, but with negligible probability; at most ``largest``.

        q is taken to fall with the count.
        """
        size = SMALL
        while size < largest and self.empty(np.array([size]))[0] >= NEGLIGIBLE:
            size *= 2
        return min(size, largest)


def readings(mechanism: Any, threshold: float = 0.5) -> tuple[list[Reading], bool]:
    """The readings of one mechanism, or of a list of them; and whether it was a list.

    Raises
    ------
    ParameterError : something without a ``cdf``, or an empty list.
    """
    limit = real(threshold, "threshold")
    many = isinstance(mechanism, Sequence) and not isinstance(mechanism, str)
    many = many or (isinstance(mechanism, np.ndarray) and mechanism.ndim == 1)
    each = list(mechanism) if many else [mechanism]
    if not each:
        raise ParameterError("'mechanism' must hold at least one mechanism (got an empty list).")
    for one in each:
        if isinstance(one, type) or not callable(getattr(one, "cdf", None)):
            named = one.__name__ if isinstance(one, type) else kind(one)
            raise ParameterError(
                f"'mechanism' must have a method 'cdf' (got {named}).",
                "pdprivacy.mechanism.Laplace(epsilon=1, sensitivity=1), or scipy.stats.norm(scale=2).",
            )
    return [Reading(one, limit) for one in each], many
