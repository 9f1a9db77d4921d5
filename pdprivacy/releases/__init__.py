"""The verbs: each takes a protected frame's facts, charges once, and returns a pandas object.

A release is: statistic, `measure`, post-processing, metadata. The functions here are
the methods of ``df.dp`` with the `Protected` facts as first argument.
"""

from pdprivacy.releases.batch import Batch, Pending, batch, marginals
from pdprivacy.releases.bundle import ReleasePlan, plan_releases
from pdprivacy.releases.clustering import kmeans, kmedian
from pdprivacy.releases.curator import quality
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
from pdprivacy.releases.moments import (
    corr,
    cov,
    describe,
    mean,
    pooled_cov,
    pooled_var,
    proportion,
    std,
    sum,  # noqa: A004
    var,
)
from pdprivacy.releases.omission import compare_sampling, compare_suppression
from pdprivacy.releases.parts import sample, suppress_outliers
from pdprivacy.releases.selection import max, median, min, mode, quantile, top_k  # noqa: A004
from pdprivacy.releases.spending import partition, remaining, split
from pdprivacy.releases.tables import count, crosstab, histogram, value_counts

__all__ = [
    "Batch",
    "GroupBy",
    "Homogeneity",
    "Pending",
    "ReleasePlan",
    "batch",
    "choose_epsilon",
    "compare_sampling",
    "compare_suppression",
    "corr",
    "count",
    "cov",
    "crosstab",
    "describe",
    "dr_ha",
    "groupby",
    "histogram",
    "homogeneity",
    "kmeans",
    "kmedian",
    "marginals",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "partition",
    "plan_releases",
    "pooled_cov",
    "pooled_var",
    "proportion",
    "quality",
    "quantile",
    "remaining",
    "repeated_risk",
    "risk_curve",
    "sample",
    "split",
    "std",
    "sum",
    "suppress_outliers",
    "top_k",
    "tradeoff",
    "utility",
    "value_counts",
    "var",
]
