"""The methods of ``private.dp``, as functions with the `Protected` facts as first argument.

Those of `RELEASING` return a `Release`, a value that holds the call, its cost, its reads and the labels of
its answer. They neither charge nor read: `pdprivacy.core.gate.execute` does. The others run or plan several
releases, divide the records or the budget, or return confidential figures. A module is imported when one of
its names is first used.
"""

from importlib import import_module
from typing import Any

MODULES = {
    "batches": (
        "Batch",
        "Pending",
        "ReleasePlan",
        "batch",
        "marginals",
        "plan_releases",
        "remaining",
        "split",
    ),
    "clustering": ("kmeans", "kmedian"),
    "covariances": ("corr", "cov", "ols", "pooled_cov", "pooled_var"),
    "data_quality": ("quality",),
    "disclosure_risk": ("Homogeneity", "choose_epsilon", "dr_ha", "homogeneity", "risk_curve"),
    "equivalence_classes": ("Anonymity", "anonymity"),
    "grouped": ("GroupBy", "SeriesGroupBy", "groupby"),
    "histograms": ("count", "histogram", "nunique", "value_counts"),
    "moments": ("agg", "describe", "mean", "pivot_table", "proportion", "std", "sum", "var"),
    "omission": ("compare_sampling", "compare_suppression"),
    "repeated_publications": ("repeated_risk",),
    "sampling": ("partition", "sample", "suppress_outliers"),
    "selection": ("max", "median", "min", "mode", "quantile", "top_k"),
    "table_utility": ("tradeoff", "utility"),
    "tables": ("crosstab",),
}
"""The public names of each module."""

SELECTING = ("clustering", "selection")
RELEASING = ("covariances", "histograms", "moments", "tables", *SELECTING)
"""The modules whose functions make a release that is executed, and those among them that select."""

RANKED = ("max", "median", "min", "quantile")
"""The releases of numbers by their rank."""

PLANNED = (
    *(name for module in RELEASING if module not in SELECTING for name in MODULES[module]),
    *RANKED,
)
"""The releases that can be planned."""

HOMES = {name: module for module, names in MODULES.items() for name in names}
"""The module of each public name."""

__all__ = sorted(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = attribute = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    return attribute
