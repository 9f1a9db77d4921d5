"""Uniform random bits, and draws one by one that need nothing else; and noise for simulations."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdprivacy.checks import integer
from pdprivacy.errors import ParameterError, got, kind
from pdprivacy.types import Floats

RandomState: TypeAlias = int | np.random.Generator | None

_Bytes: TypeAlias = bytes
_Word = TypeVar("_Word", np.uint8, np.uint16, np.uint32, np.uint64)

SUMMED_NOISE = ("laplace", "geometric", "gaussian")
"""The names of the noise whose sums are drawn."""

_SMOOTH = 2.0**30
"""The scale from which geometric noise is simulated by rounded Laplace noise."""

_POOL = 64  # bytes fetched at a time for draws one by one


@dataclass(frozen=True, slots=True)
class Source:
    """Uniform random bits: ``bytes(n)`` returns n fresh random bytes.

    ``seeded`` tells that the bits can be reproduced, so that what is made of
    them is for tests and not for release. No bits are kept between calls:
    after a fork, parent and child draw from the operating system apart.

    >>> source(7).below(10**30) == source(7).below(10**30)
    True
    """

    bytes: Callable[[int], _Bytes]
    seeded: bool

    def words(self, n: int, dtype: type[_Word]) -> NDArray[_Word]:
        """An array of ``n`` words of uniform bits, of an unsigned numpy type."""
        return np.frombuffer(self.bytes(n * np.dtype(dtype).itemsize), dtype)

    def below(self, n: int) -> int:
        """A uniform integer in [0, n), exactly, for ``n`` of any size.

        Raises
        ------
        ParameterError : n is not positive.
        """
        if n < 1:
            raise ParameterError(f"'n' must be positive (got {got(n)}).")
        return Pool(self).below(n)

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """True with probability numerator/denominator, exactly.

        Raises
        ------
        ParameterError : the ratio is not a probability.
        """
        if not 0 <= numerator <= denominator or denominator == 0:
            raise ParameterError("'numerator' must be between 0 and a positive 'denominator'.")
        return Pool(self).below(denominator) < numerator


def source(rng: RandomState) -> Source:
    """The source of bits that ``rng`` stands for.

    None is the entropy of the operating system; an integer seed or a numpy
    Generator is reproducible, and a Generator advances.

    Raises
    ------
    ParameterError : anything else, or a negative seed.

    >>> source(None).seeded, source(1).seeded
    (False, True)
    """
    if rng is None:
        return Source(os.urandom, seeded=False)
    if isinstance(rng, np.random.Generator):
        return Source(rng.bytes, seeded=True)
    seed = integer(rng)
    if seed is not None:
        if seed < 0:
            raise ParameterError(f"'rng' must not be a negative seed (got {got(rng)}).")
        return Source(np.random.default_rng(seed).bytes, seeded=True)
    raise ParameterError(
        f"'rng' must be None, an integer seed or a numpy Generator (got {kind(rng)}).",
        "leave it out; rng=7 repeats a release, for tests, and is not private",
    )


def simulator(rng: RandomState = None) -> np.random.Generator:
    """An ordinary numpy generator, fast and inexact: for simulations only, never for a release.

    Its floating-point draws leak digits of what they are added to (Mironov 2012); a release draws
    from `source`. None is fresh entropy of the operating system, an integer a seed, and a
    Generator is returned itself and advances.

    Raises
    ------
    ParameterError : anything else, or a negative seed, as in `source`.

    >>> bool(simulator(7).random() == simulator(7).random())
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    source(rng)  # refuses invalid seeds
    return np.random.default_rng(rng)


def noise_sums(
    name: str, scale: float, pieces: int, shape: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Sums of ``pieces`` independent draws of the noise."""
    if name == "gaussian":
        return generator.normal(scale=scale * math.sqrt(pieces), size=shape)
    # exponential numbers sum up to a gamma number, and a Laplace number is the difference of two
    gammas = generator.standard_gamma(pieces, size=(2, *shape))
    if name == "geometric" and scale < _SMOOTH:
        # a geometric number is a Poisson number of exponential mean r / (1 - r), r = exp(-1 / scale)
        mean = math.exp(-1 / scale) / -math.expm1(-1 / scale)
        whole = generator.poisson(gammas * mean)
        return np.asarray(whole[0] - whole[1], dtype=np.float64)
    return np.asarray(scale * (gammas[0] - gammas[1]))


class Pool:
    """Random bits for one call, fetched in small blocks and handed out as integers."""

    __slots__ = ("_bits", "_bytes", "_left")

    def __init__(self, source: Source) -> None:
        self._bytes = source.bytes
        self._bits = 0
        self._left = 0

    def below(self, n: int) -> int:
        """A uniform integer in [0, n): bits are drawn until they spell one."""
        width = (n - 1).bit_length()
        while True:
            if self._left < width:
                count = _POOL + width // 8
                self._bits |= int.from_bytes(self._bytes(count), "little") << self._left
                self._left += 8 * count
            value = self._bits & ((1 << width) - 1)
            self._bits >>= width
            self._left -= width
            if value < n:
                return value

    def decays(self, numerator: int, denominator: int) -> bool:
        """True with probability exp(-numerator/denominator) (Algorithm 1)."""
        while numerator > denominator:
            if not self.decays_once():
                return False
            numerator -= denominator
        k, below = 1, self.below
        while below(k * denominator) < numerator:
            k += 1
        return k % 2 == 1

    def decays_once(self) -> bool:
        """True with probability 1/e: as `decays` of 1 in 1, whose first trial is sure and takes no bits."""
        k, below = 2, self.below
        while below(k) == 0:
            k += 1
        return k % 2 == 1

    def laplace(self, t: int, s: int) -> int:
        """A discrete Laplace draw of scale t/s (Algorithm 2)."""
        while True:
            u = self.below(t)
            if not self.decays(u, t):
                continue
            v = 0
            while self.decays_once():
                v += 1
            y = (u + t * v) // s
            if self.below(2) == 0:
                return y
            if y:  # minus zero is zero: counted once
                return -y

    def gaussian(self, p: int, q: int) -> int:
        """A discrete Gaussian draw of sigma² = p/q (Algorithm 3)."""
        t = isqrt(p // q) + 1
        while True:
            y = self.laplace(t, 1)
            if self.decays((abs(y) * q * t - p) ** 2, 2 * p * q * t * t):
                return y
