"""Counts and contingency tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import risk
from pdprivacy.checks import flag
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, PrivacyError, got
from pdprivacy.ledger import Entry
from pdprivacy.mechanism import MECHANISMS
from pdprivacy.mechanism.additive import Additive
from pdprivacy.privacy import Confidential, Rational
from pdprivacy.protection import Protected
from pdprivacy.release.publish import Made, Result, release_of, series
from pdprivacy.release.spec import (
    Call,
    Labels,
    Price,
    Release,
    Split,
    cell_index,
    check_cells,
    columns_of,
    name_index,
    noised,
    weighted_columns,
    weights_of,
)
from pdprivacy.release.tasks import calibrate, released_by
from pdprivacy.releases.margins import Constraint, constrained, with_margins
from pdprivacy.request import MechanismName, Options, Request
from pdprivacy.statistic import (
    CellCounts,
    Distinct,
    Rows,
    Scope,
    Sums,
    WeightedCells,
    weight_of,
)

__all__ = ["count", "crosstab", "histogram", "nunique", "value_counts"]

MOST_BINS = 10**6

MOST_RISK_WORK = 10**9
"""Multiply-adds spent on the risk of a released table: about a second."""

MOST_RISK_RECORDS = 10**10
"""The largest count of a cell whose risk is estimated; a table of people has no larger one."""

MOST_RISK_DEVIATION = 10**4
"""The largest standard deviation of noise at which risk is estimated; more leaves no information."""

Normalize: TypeAlias = bool | Literal["all", "index", "columns"]


@noised("geometric")
def count(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count all records (``columns=None``, labelled "rows"), or the records without null in each column.

    Under "replace_one" without a filter the number of rows is public: use ``len``.

    ``weights``: a column of weights, whose sum over all records is released instead of their number, labelled
    "rows", with Laplace noise instead of geometric. Not for counts of columns. Sensitivity as `sum`.

    Returns a Series of int64 (float64 unless "geometric"). Sensitivity 1 per count.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.count(epsilon=0.5, rng=1)
    rows    999
    dtype: int64
    """
    chosen = () if columns is None else columns_of(protected, columns, "count")
    for column in chosen:
        if column.role == "identifier":
            column.labels("count")  # refuses
    if weights is not None:
        return _weight_of_all(protected, columns, weights, epsilon, noise)
    if not chosen and protected.scope.neighbors == "replace_one" and not protected.scope.filtered:
        raise ParameterError(
            "Under neighbors='replace_one' the number of rows is public.", "use len(private)."
        )
    call = Call.of("count", epsilon, noise, chosen)
    statistic = Rows(chosen, weights_of(chosen, split) if chosen else (), protected.scope)
    index = name_index(chosen) if chosen else pd.Index(["rows"])
    return release_of(protected, call, statistic, partial(counts, call, index, None))


def _weight_of_all(
    protected: Protected, columns: Labels | None, weights: Hashable, epsilon: Rational, noise: Options
) -> Release[pd.Series[Any]]:
    """The sum of the weights of all records."""
    _, weight = weighted_columns(protected, columns, weights, "count")
    if columns is not None or weight is None:
        raise ParameterError(
            "'weights' of 'count' are those of all records, not of columns.", "leave columns or weights out."
        )
    call = Call.of("count", epsilon, noise_of_cells(noise, weight), weights=weight)
    statistic = Sums((weight_of(weight, "count"),), (Fraction(1),), protected.scope)
    return release_of(protected, call, statistic, partial(counts, call, pd.Index(["rows"]), None))


@noised("geometric")
def value_counts(
    protected: Protected,
    columns: Labels,
    *,
    epsilon: Rational,
    normalize: bool = False,
    sort: bool = True,
    dropna: bool = False,
    constraint: Constraint | None = None,
    branching: int = 2,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count the records per declared label, with labels of no record and, where declared, nulls.

    ``normalize``: shares of the noisy total (with a ``constraint``, of the number of rows where that is
    public). ``sort``: largest released count first, as pandas. ``dropna``: without the null labels, and
    without their records in the total. ``constraint``, ``branching``: as in `crosstab`.
    ``weights``: the label of a declared column of numbers of at least 0, whose sums per label are released
    instead of counts, with Laplace noise instead of geometric. Records without a weight are left out.

    Returns a Series named "count" or "proportion". Sensitivity of all counts together: 1 under
    "add_remove"; 2 (l1), sqrt 2 (l2) under "replace_one"; for sums of weights, that many times
    the largest weight.

    Raises DeclarationError for a column without declared cells, TableTooLargeError above 1e8 cells.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
    >>> private.dp.value_counts("ill", epsilon=0.5, rng=1)
    ill
    False    49
    True     49
    Name: count, dtype: int64
    """
    chosen, weight = weighted_columns(protected, columns, weights, "value_counts")
    noise = noise_of_cells(noise, weight)
    call = Call.of("value_counts", epsilon, noise, chosen, constraint=constraint, weights=weight)
    return labels_counted(protected, call, normalize, sort, dropna, branching)


def labels_counted(
    protected: Protected, call: Call, normalize: bool, sort: bool, dropna: bool, branching: int = 2
) -> Release[pd.Series[Any]]:
    """Return the release of the records per declared label, in each group where the call has keys."""
    for name, given in (("normalize", normalize), ("sort", sort), ("dropna", dropna)):
        flag(given, name)
    chosen, scope = call.columns, protected.scope
    if dropna and any(column.nullable for column in chosen):
        # as if no null was declared, which leaves out records with nulls
        chosen, scope = tuple(replace(column, nullable=False) for column in chosen), scope.narrowed()
    columns = (*call.by, *chosen)
    check_cells(columns, "value_counts")
    call = replace(call, normalize=("index" if call.by else "all") if normalize else None)
    statistic, shape = constrained(cells_of(scope, columns, "value_counts", call.weights), call, branching)
    index = cell_index(columns, "value_counts")
    groups = math.prod(key.cells("value_counts") for key in call.by)

    def make(result: Result) -> Made[pd.Series[Any]]:
        if not normalize:
            return counts(call, index, "count", shape(result))
        if not call.by:
            return series(shape(result), index, "proportion")
        shares = shape(result.reshaped((groups, -1)))
        flat = shares.transformed(lambda answer: answer.arranged(np.ravel), bias_known=False)
        return series(flat, index, "proportion")

    arrange = partial(largest_first, groups=groups) if sort else None
    return release_of(protected, call, statistic, make, arrange=arrange)


@noised("geometric")
def nunique(
    protected: Protected,
    columns: Labels,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count the declared labels of each column that occur, without nulls, as `DataFrame.nunique`.

    ``columns``: a label or a list of labels, with declared cells. ``split``: weights by column for sharing
    ``epsilon``; equal by default. Sensitivity 1 per column.

    Returns a Series of int64 (float64 unless "geometric"), labelled by column.

    Raises DeclarationError for a column without declared cells.

    >>> import pandas as pd, pandera.pandas as pa
    >>> region = pa.Column(str, pa.Check.isin(["north", "south", "west"]), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"region": ["north"] * 90 + ["south"] * 10})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"region": region}), epsilon=9)
    >>> private.dp.nunique("region", epsilon=9, rng=1)
    region    2
    dtype: int64
    """
    chosen = columns_of(protected, columns, "nunique")
    for column in chosen:
        check_cells([column], "nunique")
    call = Call.of("nunique", epsilon, noise, chosen)
    statistic = Distinct(chosen, weights_of(chosen, split), protected.scope)
    return release_of(protected, call, statistic, partial(counts, call, name_index(chosen), None))


def whole_counts(values: Any, mechanism: MechanismName) -> NDArray[Any]:
    """Return counts as integers if the noise is on the integers."""
    return np.asarray(values, np.int64 if MECHANISMS[mechanism].integer else None)


def counts(call: Call, index: pd.Index[Any], name: str | None, result: Result) -> Made[pd.Series[Any]]:
    """Return counts as a Series, of integers if the noise is on the integers."""
    values = whole_counts(result.answer.values, call.request.mechanism)
    return pd.Series(values, index=index, name=name), result.errors


def noise_of_cells(noise: Options, weight: Column | None) -> Options:
    """The noise of a table: of sums of weights, which are no whole numbers, Laplace where it is geometric."""
    integer = weight is not None and noise["mechanism"] == "geometric"
    return {**noise, "mechanism": "laplace"} if integer else noise


def cells_of(
    scope: Scope,
    columns: tuple[Column, ...],
    method: str,
    weight: Column | None,
    edges: tuple[float, ...] | None = None,
) -> CellCounts | WeightedCells:
    """The counts of declared cells, or the sums of their records' weights."""
    if weight is None:
        return CellCounts(columns, scope, method, edges)
    return WeightedCells(columns, scope, method, weight_of(weight, method), edges)


def largest_first(made: Made[Any], groups: int) -> Made[Any]:
    """The labels of each group in the order of their released numbers (the mean over several releases)."""
    released, errors = made
    values = released if isinstance(released, pd.Series) else released.mean(axis=1)
    table = values.to_numpy().reshape(groups, -1)
    first = np.arange(0, table.size, table.shape[1])[:, np.newaxis]
    order = (first + np.argsort(-table, axis=1, kind="stable")).ravel()
    return released.iloc[order], errors.reordered(order)


@noised("geometric")
def histogram(
    protected: Protected,
    column: Hashable,
    bins: int | Sequence[float] | None = None,
    *,
    epsilon: Rational,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count the records per bin of a numeric column: half-open bins, the last closed, as `numpy.histogram`.

    ``bins``: edges (values beyond them are in no bin), a number of equal bins between the declared
    bounds, or None for the declared bins (10 equal ones where none are declared). Edges are public:
    never take them from the data.

    ``weights``: a column whose sums are released instead of counts, as in `value_counts`.

    Returns a Series named "count" with a null bin where nulls are declared.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.histogram("age", bins=[0, 40, 80, 120], epsilon=0.5, rng=1)
    age
    [0, 40)      499
    [40, 80)     499
    [80, 120]      0
    Name: count, dtype: int64
    """
    chosen, weight = weighted_columns(protected, column, weights, "histogram")
    if len(chosen) != 1:
        raise ParameterError("'histogram' takes one column; use crosstab or value_counts for several.")
    edges = _edges(chosen[0], bins)
    call = Call.of("histogram", epsilon, noise_of_cells(noise, weight), chosen, weights=weight)
    binned = Column(chosen[0].name, "float", chosen[0].nullable, edges[0], edges[-1], bins=edges)
    index = cell_index([binned], "histogram")
    statistic = cells_of(protected.scope, chosen, "histogram", weight, edges)
    return release_of(protected, call, statistic, partial(counts, call, index, "count"))


def _edges(column: Column, bins: int | Sequence[float] | None) -> tuple[float, ...]:
    lower, upper = column.bounds("histogram")
    if bins is None and column.bins is not None:
        return column.bins
    if bins is None or isinstance(bins, int | np.integer):
        number = 10 if bins is None else int(bins)
        if isinstance(bins, bool) or not 1 <= number <= MOST_BINS:
            raise ParameterError(
                f"'bins' must be between 1 and {MOST_BINS} (got {got(bins)}).", "bins=10, or edges"
            )
        if not lower < upper:
            raise ParameterError("'bins' must be edges where the declared bounds are one value.")
        return tuple(float(edge) for edge in np.linspace(lower, upper, number + 1))
    try:
        edges = tuple(float(edge) for edge in bins if not isinstance(edge, str | bytes))
    except (TypeError, ValueError, OverflowError):
        edges = ()
    if edges and any(isinstance(edge, Confidential) for edge in bins):
        raise ParameterError("'bins' are published, and one of these edges was made of confidential counts.")
    if len(edges) < 2 or len(edges) < len(bins) or not all(math.isfinite(edge) for edge in edges):
        raise ParameterError("'bins' must be a number of bins, or at least two finite edges.")
    if len(edges) > MOST_BINS or any(right <= left for left, right in itertools.pairwise(edges)):
        raise ParameterError(f"'bins' must be strictly increasing edges, at most {MOST_BINS} of them.")
    return edges


@noised("geometric")
def crosstab(
    protected: Protected,
    index: Labels,
    columns: Labels,
    *,
    epsilon: Rational,
    normalize: Normalize = False,
    margins: bool = False,
    constraint: Constraint | None = None,
    branching: int = 2,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """A contingency table of declared cells, the empty ones too, as `pandas.crosstab`.

    ``normalize`` (True or "all", "index", "columns") and ``margins`` (row and column "All") are
    made of the noisy counts at no further cost. Without ``bounding`` or ``constraint`` counts are
    not clamped: a negative one is noise. Bounding biases each count, and margins and shares by the sum of
    these biases (a `pdprivacy.errors.BoundingWarning` says so); their intervals include it, and their bias is
    not stated.

    ``constraint`` makes the numbers consistent, by arithmetic on the noisy ones alone: non-negative shares
    that sum to one, or non-negative whole counts that sum to the number of rows where that is public
    (``neighbors="replace_one"``).

    - "rescale": negative numbers to zero, the others divided by their sum.
    - "simplex": the nearest such numbers (Euclidean).
    - "all_but_one": each number but the last as it is, up to what is left of the total; the last is the rest.
    - "hierarchy": sums of ``branching`` neighbouring cells, of that many sums, and so on get noise
      too, each level its share of the loss, and all are made consistent by least squares. Better
      for sums over many neighbouring cells, worse for single ones. The total may be private.
    - "nonnegative": for counts only: negative ones to zero, in whole numbers. No total is kept.

    Standard errors are those before the constraint; ``plus_minus`` is around the numbers after it.

    ``weights``: a column whose sums are released instead of counts, as in `value_counts`. Their total is
    private, and they are not whole: the constraint "nonnegative" applies to such sums, "rescale", "simplex"
    and "all_but_one" to their shares, "hierarchy" to counts only. No disclosure risk is estimated from them.

    Returns a DataFrame. Where the index columns are quasi-identifiers and the columns are
    sensitive, ``attrs["dp"]["dr_ha"]`` holds the expected homogeneity-attack disclosure risk
    estimated from the released counts alone. Sensitivity as `value_counts`.

    Source of the constraints: Liu (2019), sections 3.1 and 4.2; Hay et al. (2010).

    Raises DeclarationError for a column without declared cells, TableTooLargeError above 1e8 cells,
    ParameterError for a constraint that cannot be met.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
    >>> private.dp.crosstab("ill", "member", epsilon=0.5, rng=1)
    member  False  True
    ill
    False      -1     49
    True        0     50
    """
    rows, weight = weighted_columns(protected, index, weights, "crosstab")
    tops, _ = weighted_columns(protected, columns, weights, "crosstab")
    if not isinstance(normalize, bool | str) or normalize not in (False, True, "all", "index", "columns"):
        raise ParameterError(
            f"'normalize' must be False, True, 'all', 'index' or 'columns' (got {got(normalize)}).",
            "normalize=True for shares of all, 'index' of each row",
        )
    flag(margins, "margins")
    if {column.name for column in rows} & {column.name for column in tops}:
        raise ParameterError(
            "'index' and 'columns' share a column.", 'private.dp.crosstab("region", "health", epsilon=0.1)'
        )
    axes = (*rows, *tops)
    check_cells(axes, "crosstab")
    call = Call.of("crosstab", epsilon, noise_of_cells(noise, weight), tops, rows, constraint, weight)
    way = "all" if normalize is True else normalize or None
    call = replace(call, normalize=way, margins=bool(margins))
    cells = cells_of(protected.scope, axes, "crosstab", weight)
    statistic, shape = constrained(cells, call, branching)
    labels = [cell_index(side, "crosstab") for side in (rows, tops)]
    sides = tuple(map(len, labels))

    def make(result: Result) -> Made[pd.DataFrame]:
        table, names = result.reshaped(sides), labels
        if margins:
            shaped, names, errors = with_margins(table, call, labels, shape)
        else:
            shaped = shape(table)
            errors = shaped.errors
        values = shaped.answer.values if way else whole_counts(shaped.answer.values, call.request.mechanism)
        return pd.DataFrame(values, index=names[0], columns=names[1]), errors

    exposed = all(column.role == "quasi_identifier" for column in rows)
    sensitive = all(column.role == "sensitive" for column in tops) and sides[1] > 1
    # where chance hides who is there, too, and where weights hide how many are
    apart = protected.in_secret or weight is not None
    at_risk = exposed and sensitive and not apart
    risk_of = partial(released_risk, call, sides) if at_risk else None
    return release_of(protected, call, statistic, make, risk=risk_of)


def released_risk(
    call: Call, sides: tuple[int, ...], result: Result, entry: Entry | None
) -> tuple[dict[str, Any], float | None]:
    """Return the expected risk of a release, and the risk with the noise of the total loss so far.

    Both are estimated from released counts alone. The release publishes the first, and the budget notes the
    second, which is None in a plan; source: Liu, Zhao (2023), section 4.3.

    Neither is known of a hierarchy, whose counts have more than one noise, where no count is positive, where
    the table is so large that the estimate would take longer than the release, or where it fails: a paid
    release is published, with or without the estimate.
    """
    unknown, price, request = ({"dr_ha": None}, None), result.price, call.request
    if call.constraint == "hierarchy":
        return unknown
    table = np.clip(np.rint(np.reshape(result.answer.values, sides)), 0, 2.0**52).astype(np.int64)
    if price.mechanisms[0].std > MOST_RISK_DEVIATION or not 0 < table.sum(dtype=np.float64) <= 2.0**52:
        return unknown
    try:
        cells = risk.Cells.of_checked(table)
        if cells.sizes.max() > MOST_RISK_RECORDS or risk.expected_cost(cells) > MOST_RISK_WORK:
            return unknown
        noises = [released_by(price.mechanisms[0], price.parts[0], request.bounding)]
        noises += [] if entry is None else _noise_so_far(price, request, entry)
        risks = risk.dr_ha(cells, noises, "expected", None)
    except (PrivacyError, ArithmeticError, MemoryError):
        return unknown
    filled = cells.which >= 0
    risks, sizes = risks[:, filled], cells.all_sizes[filled]
    by_records = (risks * sizes).sum(axis=1) / sizes.sum()
    details = {
        "measure": "expected",
        "source": "released counts",
        "by_cells": float(risks[0].mean()),
        "by_records": float(by_records[0]),
    }
    return {"dr_ha": details}, None if entry is None else float(min(by_records[-1], 1.0))


def _noise_so_far(price: Price, request: Request, entry: Entry) -> list[Additive]:
    """Return the noise of the counts at the total loss so far; empty where the release is the only one.

    A mechanism without delta takes the spent epsilon alone. The risk of the release itself stands where
    no such noise is known: for truncated and generalized Gaussian noise.
    """
    so_far = entry.after.composed
    known = request.p is None and request.bounding != "truncated"
    if not known or so_far is None or so_far == price.cost:
        return []
    classic = request.calibration == "classic" and so_far.epsilon >= 1  # holds below 1 only
    spent_request = Request(
        so_far.epsilon,
        so_far.delta if MECHANISMS[request.mechanism].takes_delta() else 0,
        mechanism=request.mechanism,
        calibration=None if classic else request.calibration,
        bounding=request.bounding,
    )
    try:
        (noise,) = calibrate(price.parts, spent_request)
        if noise.std > MOST_RISK_DEVIATION:
            return []
        return [released_by(noise, price.parts[0], spent_request.bounding)]
    except (PrivacyError, ArithmeticError):  # an epsilon so large that there is no such noise
        return []
