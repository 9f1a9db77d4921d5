"""The verbs: each takes a protected frame's facts, charges once, and returns a pandas object.

A release is: statistic, `measure`, post-processing, metadata. The functions here are
the methods of ``df.dp`` with the `Protected` facts as first argument.
"""

from pdprivacy.releases.curator import dr_ha, quality, query
from pdprivacy.releases.groups import GroupBy, groupby
from pdprivacy.releases.moments import corr, cov, mean, pooled_cov, pooled_var, proportion, std, sum, var  # noqa: A004
from pdprivacy.releases.planning import plan
from pdprivacy.releases.tables import count, crosstab, histogram, value_counts

__all__ = [
    "GroupBy",
    "corr",
    "count",
    "cov",
    "crosstab",
    "dr_ha",
    "groupby",
    "histogram",
    "mean",
    "plan",
    "pooled_cov",
    "pooled_var",
    "proportion",
    "quality",
    "query",
    "std",
    "sum",
    "value_counts",
    "var",
]
