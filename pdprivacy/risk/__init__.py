"""Disclosure risk from homogeneity attacks, from counts and the law of the noise.

A cell is one combination of the quasi-identifiers; its counts are the numbers of its records with each label
of the sensitive attribute. In a *homogeneous* cell all records share one label, so anyone known to be in the
cell is known to have this label. Noise hides this: a released count below 1/2 reads as "nobody". The risk of
a cell is the probability that its noisy counts read as homogeneous in a label that the cell truly holds.

`dr_ha` computes this risk by every measure, exactly, for any noise with a ``cdf``. Risks that are computed
from confidential counts are confidential, too; only risks computed from released counts may be published.
Risks are averaged over the non-empty cells: nobody is at risk in an empty cell.

The risk of a cell depends only on its sorted counts, so it is computed once for equal cells; `Cells` holds
the distinct cells, for use with several kinds of noise. `OnlyNoise` and `NoNoise` are the limits of noise as
epsilon goes to 0 and to infinity.

Source: F. Liu, X. Zhao, "Disclosure risk from homogeneity attack in differentially privately sanitized
frequency distribution".

>>> from pdprivacy.mechanism import Geometric
>>> from pdprivacy import risk
>>> counts = [[4, 0], [0, 2], [5, 1]]
>>> round(risk.dr_ha(counts, Geometric(epsilon=1, sensitivity=1), average="records"), 3)
0.486
>>> risk.dr_ha(counts, [risk.OnlyNoise(), risk.NoNoise()], average="records")
array([0.375, 0.5  ])
"""

import sys

from pdprivacy.errors import short_public
from pdprivacy.risk.compositions import Average, Cells, HasCdf, NoNoise, OnlyNoise
from pdprivacy.risk.disclosure import Method, dr_ha
from pdprivacy.risk.exact_risk import expected_cost
from pdprivacy.risk.likelihood import SizeModel, Sizes, dirichlet_alpha, size_distribution
from pdprivacy.risk.monte_carlo import Attack, Measure, Simulated

__all__ = [
    "Attack",
    "Average",
    "Cells",
    "HasCdf",
    "Measure",
    "Method",
    "NoNoise",
    "OnlyNoise",
    "Simulated",
    "SizeModel",
    "Sizes",
    "dirichlet_alpha",
    "dr_ha",
    "expected_cost",
    "size_distribution",
]

short_public(sys.modules[__name__], __all__)  # here, because it is imported when it is first used
