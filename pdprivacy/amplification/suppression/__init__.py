"""Privacy amplification by sampling and by suppression of records.

A mechanism of a known loss is run on a part of the database, which stays secret. How the part is chosen
decides what the whole costs:

- at random, all records alike: less (`sampling_epsilon`, and `sampling_target` for the way back);
- by a fixed rule: as often the loss as the rule takes neighbours apart (`stable_epsilon`);
- at random, outliers likelier: more or less, by how much likelier (`outlier_epsilon`, `outlier_target`), with
  probabilities from `outlier_scores` and `keep_probabilities`;
- anyhow: on small universes, by trying everything (`exact_epsilon`, `exact_delta`, `suppression_bound`, and
  `suppression_floor` for what at least one mechanism costs).

`outlier_peak` says where the bound of outlier suppression is tight, and `outlier_search` repeats the
computation on which its proof rests.

Less loss is not less error: noise shrinks, while the sample errs too, and the sum is mostly larger.

Source: "The adverse effects of omitting records in differential privacy: how sampling and suppression degrade
the privacy-utility tradeoff".

>>> from fractions import Fraction
>>> from pdprivacy.amplification import suppression
>>> whole = suppression.sampling_epsilon(epsilon=1, rate=Fraction(200, 1000))  # 200 of 1000 records
>>> round(float(whole.epsilon), 3)
0.295
"""

import sys

from pdprivacy.amplification.suppression.amplification import (
    OutlierPeak,
    outlier_delta,
    outlier_epsilon,
    outlier_floor,
    outlier_peak,
    outlier_target,
    sampling_epsilon,
    sampling_target,
    stable_epsilon,
)
from pdprivacy.amplification.suppression.enumeration import (
    Database,
    Kept,
    Mechanism,
    Suppression,
    SuppressionBound,
    databases,
    exact_delta,
    exact_epsilon,
    hockey_stick,
    independent,
    least_epsilon,
    neighbor_pairs,
    output_law,
    stability_factor,
    suppression_bound,
    suppression_floor,
    without_replacement,
)
from pdprivacy.amplification.suppression.outlier_proof import OutlierSearch, outlier_search
from pdprivacy.amplification.suppression.scores import Distance, keep_probabilities, outlier_scores
from pdprivacy.errors import short_public

__all__ = [
    "Database",
    "Distance",
    "Kept",
    "Mechanism",
    "OutlierPeak",
    "OutlierSearch",
    "Suppression",
    "SuppressionBound",
    "databases",
    "exact_delta",
    "exact_epsilon",
    "hockey_stick",
    "independent",
    "keep_probabilities",
    "least_epsilon",
    "neighbor_pairs",
    "outlier_delta",
    "outlier_epsilon",
    "outlier_floor",
    "outlier_peak",
    "outlier_scores",
    "outlier_search",
    "outlier_target",
    "output_law",
    "sampling_epsilon",
    "sampling_target",
    "stability_factor",
    "stable_epsilon",
    "suppression_bound",
    "suppression_floor",
    "without_replacement",
]

short_public(sys.modules[__name__], __all__)
