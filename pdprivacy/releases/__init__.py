"""The verbs: each takes a protected frame's facts, charges once, and returns a pandas object.

A release is: statistic, `measure`, post-processing, metadata. The functions here are
the methods of ``df.dp`` with the `Protected` facts as first argument.
"""

from pdprivacy.releases.bundle import ReleasePlan, plan_releases
from pdprivacy.releases.curator import quality, query
from pdprivacy.releases.disclosure import (
    Homogeneity,
    choose_epsilon,
    dr_ha,
    homogeneity,
    repeated_risk,
    risk_curve,
    tradeoff,
    utility,
)
from pdprivacy.releases.groups import GroupBy, groupby
from pdprivacy.releases.moments import corr, cov, mean, pooled_cov, pooled_var, proportion, std, sum, var  # noqa: A004
from pdprivacy.releases.planning import plan
from pdprivacy.releases.spending import partition, remaining, split
from pdprivacy.releases.tables import count, crosstab, histogram, value_counts

__all__ = [
    "GroupBy",
    "Homogeneity",
    "ReleasePlan",
    "choose_epsilon",
    "corr",
    "count",
    "cov",
    "crosstab",
    "dr_ha",
    "groupby",
    "histogram",
    "homogeneity",
    "mean",
    "partition",
    "plan",
    "plan_releases",
    "pooled_cov",
    "pooled_var",
    "proportion",
    "quality",
    "query",
    "remaining",
    "repeated_risk",
    "risk_curve",
    "split",
    "std",
    "sum",
    "tradeoff",
    "utility",
    "value_counts",
    "var",
]
