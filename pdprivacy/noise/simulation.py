"""Random numbers for simulations, which release nothing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pdprivacy.noise.bits import RandomState, source

__all__ = ["SUMMED_NOISE", "noise_sums", "simulator"]

SUMMED_NOISE = ("laplace", "geometric", "gaussian")
"""The names of the noise whose sums are drawn."""

SMOOTH = 2.0**30
"""Geometric noise of this scale is Laplace noise rounded to whole numbers, which nobody sees."""


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
    source(rng)  # refuses what is no seed
    return np.random.default_rng(rng)


def noise_sums(
    name: str, scale: float, pieces: int, shape: tuple[int, int], generator: np.random.Generator
) -> NDArray[np.float64]:
    """Sums of ``pieces`` independent draws of the noise."""
    if name == "gaussian":
        return generator.normal(scale=scale * math.sqrt(pieces), size=shape)
    # exponential numbers sum up to a gamma number, and a Laplace number is the difference of two
    gammas = generator.standard_gamma(pieces, size=(2, *shape))
    if name == "geometric" and scale < SMOOTH:
        # a geometric number is a Poisson number of exponential mean r / (1 - r), r = exp(-1 / scale)
        mean = math.exp(-1 / scale) / -math.expm1(-1 / scale)
        whole = generator.poisson(gammas * mean)
        return np.asarray(whole[0] - whole[1], dtype=np.float64)
    return np.asarray(scale * (gammas[0] - gammas[1]))
