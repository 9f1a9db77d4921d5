"""Random numbers for simulations, which release nothing."""

from __future__ import annotations

import numpy as np

from pdprivacy.noise.bits import RandomState, source

__all__ = ["simulator"]


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
