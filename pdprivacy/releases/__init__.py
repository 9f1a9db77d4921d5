"""The methods of ``private.dp``, as functions with the `Facts` facts as first argument.

Those of `RELEASING` return a `Release`, a value that holds the call, its cost, its reads and the labels of
its answer. They neither charge nor read: `pdprivacy.core.gate.execute` does. The others run or plan several
releases, divide the records or the budget, or return confidential figures. A module is imported when one of
its names is first used.
"""

from importlib import import_module
from typing import Any

MODULES = {
    "releases.batches": (
        "Batch",
        "Pending",
        "ReleasePlan",
        "batch",
        "marginals",
        "plan_releases",
        "remaining",
        "split",
    ),
    "releases.clustering": ("kmeans", "kmedian"),
    "releases.covariances": ("corr", "cov", "ols", "pooled_cov", "pooled_var"),
    "risk.data_quality": ("quality",),
    "risk.disclosure_risk": ("Homogeneity", "choose_epsilon", "dr_ha", "homogeneity", "risk_curve"),
    "risk.equivalence_classes": ("Anonymity", "anonymity"),
    "releases.found_bounds": ("find_bounds",),
    "releases.grouped": ("GroupBy", "SeriesGroupBy", "groupby"),
    "releases.histograms": ("count", "histogram", "nunique", "value_counts"),
    "releases.label_discovery": ("find_labels",),
    "releases.moments": ("agg", "describe", "mean", "pivot_table", "proportion", "std", "sum", "var"),
    "amplification.omission": ("compare_sampling", "compare_suppression"),
    "risk.repeated_publications": ("repeated_risk",),
    "amplification.sampling": ("partition", "sample", "suppress_outliers"),
    "releases.selection": ("max", "median", "min", "mode", "quantile", "top_k"),
    "risk.table_utility": ("tradeoff", "utility"),
    "releases.tables": ("crosstab",),
}
"""The public names of each module that has methods of ``private.dp``."""

SELECTING = (
    "releases.clustering",
    "releases.found_bounds",
    "releases.label_discovery",
    "releases.selection",
)
RELEASING = (
    "releases.covariances",
    "releases.histograms",
    "releases.moments",
    "releases.tables",
    *SELECTING,
)
"""The modules whose functions make a release that is executed, and those among them that select."""

RANKED = ("max", "median", "min", "quantile")
"""The releases of numbers by their rank."""

PLANNED = (
    *(name for module in RELEASING if module not in SELECTING for name in MODULES[module]),
    *RANKED,
    "find_bounds",
)
"""The releases that can be planned."""

HOMES = {name: module for module, names in MODULES.items() for name in names}
"""The module of each public name."""

__all__ = sorted(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = attribute = getattr(import_module(f"pdprivacy.{HOMES[name]}"), name)
    return attribute
