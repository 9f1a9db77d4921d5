"""Noise mechanisms: from a sensitivity and a privacy loss to noise of a stated scale.

Every mechanism adds noise that lives on a grid, a power of two well below its
scale, and is drawn exactly with integers (`pdprivacy.noise`), so that no
rounding of floating-point numbers tells anything about the value underneath
(Mironov 2012, "On significance of the least significant bits for differential
privacy"). The distribution functions given here are those of the continuous
noise for `Laplace` and `Gaussian` (the grid is about a millionth of the scale),
and exact for the integer mechanisms `Geometric` and `DiscreteGaussian`.

All mechanisms share: ``loss``, ``scale``, ``std``, ``grid``, ``sample(values,
rng=None)``, ``pdf`` or ``pmf``, ``cdf``, ``ppf``, ``interval(level)``.
"""

from pdprivacy.mechanism.core import Mechanism
from pdprivacy.mechanism.discrete_gaussian import DiscreteGaussian, discrete_gaussian_delta
from pdprivacy.mechanism.gaussian import Calibration, Gaussian, gaussian_delta, noise_multiplier
from pdprivacy.mechanism.laplace import Geometric, Laplace

__all__ = [
    "Calibration",
    "DiscreteGaussian",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "discrete_gaussian_delta",
    "gaussian_delta",
    "noise_multiplier",
]
