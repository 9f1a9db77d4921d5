"""Noise mechanisms: from a sensitivity and a privacy loss to noise of a stated scale.

Every mechanism adds noise that lives on a grid, a power of two well below its
scale, and is drawn exactly with integers (``pdprivacy.core.noise``), so that no
rounding of floating-point numbers tells anything about the value underneath
(Mironov 2012, "On significance of the least significant bits for differential
privacy"). The distribution functions given here are those of the continuous
noise for `Laplace`, `Gaussian`, `GeneralizedGaussian` and `Staircase` (the grid is
about a millionth of the scale), and exact for the integer mechanisms
`Geometric` and `DiscreteGaussian`.

All mechanisms share: ``loss``, ``scale``, ``std``, ``grid``, ``sample(values,
rng=None)``, ``pdf`` or ``pmf``, ``cdf``, ``ppf``, ``interval(level)``.

All of them take ``bounds`` of what is released, kept by ``bounding="clamp"`` (the noisy value is
clamped; the scale stays) or, but for `Staircase` and `DiscreteGaussian`, by ``bounding="truncated"``
(the law is cut off and renormalised, and its scale calibrated for that). Their distributions then
depend on the statistic ``s``, and ``bias(s)``, ``mse(s)``, ``worst_case_bias()`` and
``worst_case_mse()`` tell the error in closed form.

Other libraries use these words otherwise: diffprivlib's ``LaplaceTruncated`` clamps, which is "clamp"
here; its ``LaplaceBoundedDomain`` is the recalibrated "truncated" Laplace mechanism. Its
``LaplaceBoundedNoise``, and what OpenDP calls truncated, bound the noise and not the result.

`ExponentialMechanism`, `PermuteAndFlip` and `NoisyMax` select a candidate by its score: ``loss``, ``scale``,
``select(scores, source)``, ``probabilities(scores)``, ``shortfall(candidates, level)``.
"""

import sys
from typing import Literal, TypeAlias

from pdprivacy.core.mechanisms.additive import Additive, Mechanism
from pdprivacy.core.mechanisms.discrete_gaussian import DiscreteGaussian, discrete_gaussian_delta
from pdprivacy.core.mechanisms.exponential import ExponentialMechanism, NoisyMax, PermuteAndFlip
from pdprivacy.core.mechanisms.gaussian import Calibration, Gaussian, gaussian_delta, noise_multiplier
from pdprivacy.core.mechanisms.generalized_gaussian import GeneralizedGaussian, generalized_gaussian_scale
from pdprivacy.core.mechanisms.geometric import Geometric, truncated_geometric_scale
from pdprivacy.core.mechanisms.laplace import Laplace, truncated_laplace_loss, truncated_laplace_scale
from pdprivacy.core.mechanisms.staircase import Staircase
from pdprivacy.core.mechanisms.support import Bounding
from pdprivacy.errors import short_public

MechanismName: TypeAlias = Literal[
    "laplace", "gaussian", "generalized_gaussian", "geometric", "staircase", "discrete_gaussian"
]
MECHANISMS: dict[str, type[Additive]] = {
    cls.name: cls for cls in (Laplace, Gaussian, GeneralizedGaussian, Geometric, Staircase, DiscreteGaussian)
}
"""The mechanisms that releases offer, by name: another one is a class with `Additive._calibrate`, and is
listed here and in `MechanismName`."""

__all__ = [
    "MECHANISMS",
    "Bounding",
    "Calibration",
    "DiscreteGaussian",
    "ExponentialMechanism",
    "Gaussian",
    "GeneralizedGaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "MechanismName",
    "NoisyMax",
    "PermuteAndFlip",
    "Staircase",
    "discrete_gaussian_delta",
    "gaussian_delta",
    "generalized_gaussian_scale",
    "noise_multiplier",
    "truncated_geometric_scale",
    "truncated_laplace_loss",
    "truncated_laplace_scale",
]

short_public(sys.modules[__name__], __all__)
