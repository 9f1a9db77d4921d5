"""Counts and contingency tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from pdprivacy import risk
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.measure import Measurement, MechanismName
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Rational
from pdprivacy.protection import Protected
from pdprivacy.releases.call import (
    LEVEL,
    Call,
    Floats,
    Labels,
    Split,
    attach,
    cell_index,
    check_cells,
    check_flag,
    columns_of,
    errors_of,
    interval_factor,
    name_index,
    run,
    weights_of,
    whole_counts,
)
from pdprivacy.statistic import (
    Answer,
    Cells,
    Rows,
)

__all__ = ["count", "crosstab", "histogram", "value_counts"]

MOST_BINS = 10**6

MOST_RISK_WORK = 10**9
"""Multiply-adds spent on the risk of a released table: about a second."""

MOST_RISK_SCALE = 10**4
"""With noise of a larger scale the table says nothing of a cell, and the estimate would take long."""

Normalize: TypeAlias = bool | Literal["all", "index", "columns"]


def count(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "geometric",
    split: Split = None,
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Records (``columns=None``, labelled "rows") or records without null per column.

    Under "replace_one" without a filter the number of rows is public: use ``len``.

    Returns a Series of int64 (float64 unless "geometric"). Sensitivity 1 per count.
    """
    chosen = () if columns is None else columns_of(protected, columns, "count")
    for column in chosen:
        if column.role == "identifier":
            column.labels("count")  # refuses
    if not chosen and protected.scope.neighbors == "replace_one" and not protected.scope.filtered:
        raise ParameterError(
            "Under neighbors='replace_one' the number of rows is public.", "use len(private)."
        )
    call = Call("count", epsilon, delta, mechanism, rng, chosen)
    answer, measurement = run(
        protected, Rows(chosen, weights_of(chosen, split) if chosen else (), protected.scope), call
    )
    index = name_index(chosen) if chosen else pd.Index(["rows"])
    released = pd.Series(whole_counts(answer.values, mechanism), index=index)
    attach(protected, call, measurement, released, errors_of(answer, measurement))
    return released


def value_counts(
    protected: Protected,
    columns: Labels,
    *,
    epsilon: Rational,
    normalize: bool = False,
    sort: bool = True,
    delta: Rational = 0,
    mechanism: MechanismName = "geometric",
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Records per declared label, every declared label included, a null label where declared.

    ``normalize``: shares of the noisy total. ``sort``: largest released count first, as pandas.

    Returns a Series named "count" or "proportion". Sensitivity of all counts together: 1 under
    "add_remove"; 2 (l1), sqrt 2 (l2) under "replace_one".

    Raises DeclarationError for a column without declared cells, TableTooLargeError above 1e8 cells.
    """
    check_flag("normalize", normalize)
    check_flag("sort", sort)
    chosen = columns_of(protected, columns, "value_counts")
    check_cells(chosen, "value_counts")
    call = Call("value_counts", epsilon, delta, mechanism, rng, chosen)
    answer, measurement = run(protected, Cells(chosen, protected.scope, "value_counts"), call)
    values, errors = _normalized(answer, measurement, normalize, axis=None)
    name = "proportion" if normalize else "count"
    released = pd.Series(
        values if normalize else whole_counts(values, mechanism),
        index=cell_index(chosen, "value_counts"),
        name=name,
    )
    if sort:
        order = np.argsort(-np.asarray(values), kind="stable")
        released = released.iloc[order]
        errors = tuple(error[order] if np.ndim(error) else error for error in errors)
    attach(protected, call, measurement, released, errors)
    return released


def histogram(
    protected: Protected,
    column: Hashable,
    bins: int | Sequence[float] | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "geometric",
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Records per bin of a numeric column: half-open bins, the last one closed, as `numpy.histogram`.

    ``bins``: edges (values beyond them are in no bin), a number of equal bins between the declared
    bounds, or None for the declared bins (10 equal ones where none are declared). Edges are public:
    never take them from the data.

    Returns a Series named "count" with a null bin where nulls are declared.
    """
    chosen = columns_of(protected, column, "histogram")
    if len(chosen) != 1:
        raise ParameterError("'histogram' takes one column; use crosstab or value_counts for several.")
    edges = _edges(chosen[0], bins)
    call = Call("histogram", epsilon, delta, mechanism, rng, chosen)
    answer, measurement = run(protected, Cells(chosen, protected.scope, "histogram", edges), call)
    binned = Column(chosen[0].name, "float", chosen[0].nullable, edges[0], edges[-1], bins=edges)
    released = pd.Series(
        whole_counts(answer.values, mechanism), index=cell_index([binned], "histogram"), name="count"
    )
    attach(protected, call, measurement, released, errors_of(answer, measurement))
    return released


def _edges(column: Column, bins: int | Sequence[float] | None) -> tuple[float, ...]:
    lower, upper = column.bounds("histogram")
    if bins is None and column.bins is not None:
        return column.bins
    if bins is None or isinstance(bins, int | np.integer):
        number = 10 if bins is None else int(bins)
        if isinstance(bins, bool) or not 1 <= number <= MOST_BINS:
            raise ParameterError(f"'bins' must be between 1 and {MOST_BINS} (got {got(bins)}).")
        if not lower < upper:
            raise ParameterError("'bins' must be edges where the declared bounds are one value.")
        return tuple(float(edge) for edge in np.linspace(lower, upper, number + 1))
    try:
        edges = tuple(float(edge) for edge in bins if not isinstance(edge, str | bytes))
    except (TypeError, ValueError, OverflowError):
        edges = ()
    if len(edges) < 2 or len(edges) < len(bins) or not all(math.isfinite(edge) for edge in edges):
        raise ParameterError("'bins' must be a number of bins, or at least two finite edges.")
    if len(edges) > MOST_BINS or any(right <= left for left, right in itertools.pairwise(edges)):
        raise ParameterError(f"'bins' must be strictly increasing edges, at most {MOST_BINS} of them.")
    return edges


def crosstab(
    protected: Protected,
    index: Labels,
    columns: Labels,
    *,
    epsilon: Rational,
    normalize: Normalize = False,
    margins: bool = False,
    delta: Rational = 0,
    mechanism: MechanismName = "geometric",
    rng: RandomState = None,
) -> pd.DataFrame:
    """A contingency table of declared cells, the empty ones too, as `pandas.crosstab`.

    ``normalize`` (True or "all", "index", "columns") and ``margins`` (row and column "All") are
    made of the noisy counts at no further cost. Counts are not clamped: a negative one is noise.

    Returns a DataFrame. Where the index columns are quasi-identifiers and the columns are
    sensitive, ``attrs["dp"]["dr_ha"]`` holds the expected homogeneity-attack disclosure risk
    estimated from the released counts alone. Sensitivity as `value_counts`.

    Raises DeclarationError for a column without declared cells, TableTooLargeError above 1e8 cells.
    """
    rows, tops = columns_of(protected, index, "crosstab"), columns_of(protected, columns, "crosstab")
    if not isinstance(normalize, bool | str) or normalize not in (False, True, "all", "index", "columns"):
        raise ParameterError(
            f"'normalize' must be False, True, 'all', 'index' or 'columns' (got {got(normalize)})."
        )
    check_flag("margins", margins)
    if {column.name for column in rows} & {column.name for column in tops}:
        raise ParameterError("'index' and 'columns' share a column.")
    both = (*rows, *tops)
    check_cells(both, "crosstab")
    call = Call("crosstab", epsilon, delta, mechanism, rng, tops, rows)
    answer, measurement = run(protected, Cells(both, protected.scope, "crosstab"), call)
    shape = tuple(math.prod(column.cells("crosstab") for column in side) for side in (rows, tops))
    counts = answer.values.reshape(shape)
    table = Answer(counts, answer.standard_error)
    labels = [cell_index(side, "crosstab") for side in (rows, tops)]
    axis = {False: None, True: None, "all": None, "index": 1, "columns": 0}[normalize]
    values, errors = _normalized(table, measurement, normalize is not False, axis=axis)
    if margins:
        values, errors, labels = _with_margins(counts, answer.standard_error, measurement, normalize, labels)
    released = pd.DataFrame(
        values if normalize is not False else whole_counts(values, mechanism),
        index=labels[0],
        columns=labels[1],
    )
    more: dict[str, Any] = {}
    exposed = all(column.role == "quasi_identifier" for column in rows)
    if exposed and all(column.role == "sensitive" for column in tops) and shape[1] > 1:
        more["dr_ha"] = _released_risk(counts, measurement)
    attach(protected, call, measurement, released, errors, **more)
    return released


def _normalized(
    answer: Answer, measurement: Measurement, normalize: bool, axis: int | None
) -> tuple[Any, tuple[Any, Any]]:
    """Shares of the noisy totals (of all, of rows or of columns) with their errors, or counts as they are."""
    if not normalize:
        return answer.values, errors_of(answer, measurement)
    values = np.asarray(answer.values)
    size = values.size if axis is None else values.shape[axis]
    totals = np.maximum(values.sum(axis=axis, keepdims=axis is not None), 1.0)
    shares = values / totals
    # a share is one noisy count over a total of `size` of them, to first order
    spread = np.maximum(1 - 2 * shares + size * shares**2, 0.0)
    error = float(answer.standard_error) * np.sqrt(spread) / totals
    return shares, (error, error * interval_factor(measurement))


def _with_margins(
    counts: Floats, std: float, measurement: Measurement, normalize: Normalize, labels: list[Any]
) -> tuple[Any, tuple[Any, Any], list[Any]]:
    """The table with "All": sums of noisy counts, and what pandas makes of them where normalized."""
    rows, tops = counts.shape
    whole = np.block(
        [[counts, counts.sum(axis=1, keepdims=True)], [counts.sum(axis=0, keepdims=True), counts.sum()]]
    )
    size = np.block(
        [
            [np.ones((rows, tops)), np.full((rows, 1), tops)],
            [np.full((1, tops), rows), np.full((1, 1), rows * tops)],
        ]
    )
    names = [_all_label(label) for label in labels]
    error = std * np.sqrt(size)
    half = measurement.mechanisms[0].interval(LEVEL)[1]
    plus_minus = np.where(size == 1, half, error * interval_factor(measurement))
    if normalize is False:
        return whole, (error, plus_minus), names
    if normalize in ("all", True):
        base, members = whole[-1:, -1:], size[-1:, -1:]
    elif normalize == "index":
        base, members = whole[:, -1:], size[:, -1:]
    else:
        base, members = whole[-1:, :], size[-1:, :]
    base = np.maximum(base, 1.0)
    shares = whole / base
    spread = np.maximum(size * (1 - 2 * shares) + members * shares**2, 0.0)
    error = std * np.sqrt(spread) / base
    keep = (
        slice(None) if normalize != "columns" else slice(0, rows + 1),
        slice(0, tops) if normalize == "index" else slice(None),
    )
    if normalize == "columns":
        keep = (slice(0, rows), slice(None))
    kept = [
        names[0] if normalize != "columns" else labels[0],
        labels[1] if normalize == "index" else names[1],
    ]
    return shares[keep], (error[keep], error[keep] * interval_factor(measurement)), kept


def _all_label(index: pd.Index[Any]) -> pd.Index[Any]:
    """The index with "All" at its end, as `pandas.crosstab` names it."""
    if isinstance(index, pd.MultiIndex):
        last = ("All", *[""] * (index.nlevels - 1))
        return pd.MultiIndex.from_tuples([*index.tolist(), last], names=index.names)
    return pd.Index([*index.tolist(), "All"], name=index.name, dtype=object, tupleize_cols=False)


def _released_risk(counts: Floats, measurement: Measurement) -> dict[str, Any] | None:
    """The expected risk estimated from released counts alone.

    None where no count is positive, or where the table is so large that the estimate would take
    longer than the release.
    """
    seen = np.clip(np.rint(counts), 0, 2.0**52).astype(np.int64)
    scale = measurement.mechanisms[0].scale
    if not seen.any() or scale > MOST_RISK_SCALE or seen.sum(dtype=np.float64) > 2.0**52:
        return None
    cells, cdf = risk.Cells.of(seen), measurement.mechanisms[0].cdf
    if risk.expected_cost(cells, cdf) > MOST_RISK_WORK:
        return None
    sizes = seen.sum(axis=1)
    risks = np.asarray(risk.expected_risk(cells, cdf, average=None))[sizes > 0]
    return {
        "measure": "expected",
        "source": "released counts",
        "by_cells": float(risks.mean()),
        "by_records": float(np.average(risks, weights=sizes[sizes > 0])),
    }
