"""Privacy amplification by sampling and by suppression of records.

A mechanism of a known loss is run on a part of the database, which stays secret. How the part is chosen
decides what the whole costs:

- at random, all records alike: less (`sampling_epsilon`, and `sampling_target` for the way back);
- by a fixed rule: as often the loss as the rule takes neighbours apart (`stable_epsilon`);
- at random, outliers likelier: more or less, by how much likelier (`outlier_epsilon`, `outlier_target`), with
  probabilities from `outlier_scores` and `keep_probabilities`;
- anyhow: on small universes, by trying everything (`exact_epsilon`, `exact_delta`, `suppression_bound`).

Less loss is not less error: noise shrinks, while the sample errs too, and the sum is mostly larger.

Source: "The adverse effects of omitting records in differential privacy: how sampling and suppression degrade
the privacy-utility tradeoff".

>>> from fractions import Fraction
>>> from pdprivacy import suppression
>>> whole = suppression.sampling_epsilon(epsilon=1, rate=Fraction(200, 1000))  # 200 of 1000 records
>>> round(float(whole.epsilon), 3)
0.295
"""

import sys

from pdprivacy.errors import short_public
from pdprivacy.suppression.amplification import (
    outlier_delta,
    outlier_epsilon,
    outlier_floor,
    outlier_target,
    sampling_epsilon,
    sampling_target,
    stable_epsilon,
)
from pdprivacy.suppression.enumeration import (
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
    without_replacement,
)
from pdprivacy.suppression.scores import Distance, keep_probabilities, outlier_scores

__all__ = [
    "Database",
    "Distance",
    "Kept",
    "Mechanism",
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
    "outlier_scores",
    "outlier_target",
    "output_law",
    "sampling_epsilon",
    "sampling_target",
    "stability_factor",
    "stable_epsilon",
    "suppression_bound",
    "without_replacement",
]

short_public(sys.modules[__name__], __all__)
