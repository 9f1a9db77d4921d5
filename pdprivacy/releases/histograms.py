"""Counts of records: all of them, by declared label, and by bins of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
import pandas as pd

from pdprivacy.checks import flag, integer
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import Options
from pdprivacy.core.gate.spec import (
    AnswerLabels,
    Call,
    Release,
    Split,
    cell_index,
    check_cells,
    columns_of,
    name_index,
    weighted_columns,
    weights_of,
    with_noise_keywords,
)
from pdprivacy.core.privacy import Confidential, Rational
from pdprivacy.core.statistics import Distinct, Rows, Sums, weight_of
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.releases.derivations import PERIODS, in_periods
from pdprivacy.releases.publish import release_of
from pdprivacy.releases.results import Result
from pdprivacy.releases.tables import (
    Constraint,
    cells_of,
    constrained,
    noise_of_cells,
    possible_shares,
    whole_counts,
)
from pdprivacy.risk.released_risk import DECIDED, CountRisk
from pdprivacy.types import Labels

MOST_BINS = 10**6


@with_noise_keywords("geometric")
def count(
    protected: Facts,
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
            "Under neighbors='replace_one' the number of rows is public.", "print(private) shows it."
        )
    call = Call.of("count", epsilon, noise, chosen)
    statistic = Rows(chosen, weights_of(chosen, split) if chosen else (), protected.scope)
    index = name_index(chosen) if chosen else pd.Index(["rows"])
    risk_of = CountRisk.of(protected, call, (), statistic, ())
    return release_of(protected, call, statistic, AnswerLabels(index), whole_counts, risk=risk_of)


def _weight_of_all(
    protected: Facts, columns: Labels | None, weights: Hashable, epsilon: Rational, noise: Options
) -> Release[pd.Series[Any]]:
    """The sum of the weights of all records."""
    _, weight = weighted_columns(protected, columns, weights, "count")
    if columns is not None or weight is None:
        raise ParameterError(
            "'weights' of 'count' are those of all records, not of columns.", "leave columns or weights out."
        )
    call = Call.of("count", epsilon, noise_of_cells(noise, weight), weights=weight)
    statistic = Sums((weight_of(weight, "count"),), (Fraction(1),), protected.scope)
    risk_of, index = CountRisk.of(protected, call, (), statistic, ()), pd.Index(["rows"])
    return release_of(protected, call, statistic, AnswerLabels(index), whole_counts, risk=risk_of)


@with_noise_keywords("geometric")
def value_counts(
    protected: Facts,
    columns: Labels,
    *,
    epsilon: Rational,
    normalize: bool = False,
    sort: bool = True,
    dropna: bool = False,
    constraint: Constraint | None = None,
    branching: int = 2,
    weights: Hashable | None = None,
    freq: str | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count the records per declared label, with labels of no record and, where declared, nulls.

    ``normalize``: shares of the noisy total (with a ``constraint``, of the number of rows where that is
    public), each moved between 0 and 1 as in `crosstab`. ``sort``: largest released count first, as pandas.
    ``dropna``: without the null labels, and without their records in the total. ``constraint``,
    ``branching``: as in `crosstab`.
    ``weights``: the label of a declared column of numbers of at least 0, whose sums per label are released
    instead of counts, with Laplace noise instead of geometric. Records without a weight are left out.
    ``freq`` ("D", "W", "M", "Q" or "Y"): count the periods of the one column of dates among ``columns``, the
    empty ones too, as ``private.cut`` makes them; ``sort=False`` keeps their order in time.

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
    protected = in_periods(protected, columns, freq, "value_counts")
    chosen, weight = weighted_columns(protected, columns, weights, "value_counts")
    noise = noise_of_cells(noise, weight)
    call = Call.of("value_counts", epsilon, noise, chosen, constraint=constraint, weights=weight)
    return labels_counted(protected, call, normalize, sort, dropna, branching)


def labels_counted(
    protected: Facts, call: Call, normalize: bool, sort: bool, dropna: bool, branching: int = 2
) -> Release[pd.Series[Any]]:
    """Return the release of the records per declared label, in each group where the call has keys."""
    for name, option in (("normalize", normalize), ("sort", sort), ("dropna", dropna)):
        flag(option, name)
    chosen, scope, reason = call.columns, protected.scope, ""
    if dropna and any(column.nullable for column in chosen):
        decided = {column.name for column in chosen if column.nullable and column.role == "sensitive"}
        reason = DECIDED if decided & protected.made else ""
        # as if no null was declared, which leaves out records with nulls
        chosen, scope = tuple(replace(column, nullable=False) for column in chosen), scope.of_subset()
    columns = (*call.by, *chosen)
    check_cells(columns, "value_counts")
    call = replace(call, normalize=("index" if call.by else "all") if normalize else None, sort=bool(sort))
    statistic, shape = constrained(cells_of(scope, columns, "value_counts", call.weights), call, branching)
    labels = AnswerLabels(cell_index(columns, "value_counts"), name="proportion" if normalize else "count")
    groups = math.prod(key.cells("value_counts") for key in call.by)

    def numbers(result: Result) -> Result:
        if not normalize:
            return shape(result) if call.linear else whole_counts(shape(result))
        if not call.by:
            return possible_shares(shape(result), call)
        return possible_shares(shape(result.reshaped((groups, -1))).arranged(np.ravel), call)

    risk_of = CountRisk.of(protected, call, columns, statistic, reason=reason)
    return release_of(protected, call, statistic, labels, numbers, risk=risk_of)


@with_noise_keywords("geometric")
def nunique(
    protected: Facts,
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
    return release_of(protected, call, statistic, AnswerLabels(name_index(chosen)), whole_counts)


@with_noise_keywords("geometric")
def histogram(
    protected: Facts,
    column: Hashable,
    bins: int | Sequence[float] | None = None,
    *,
    epsilon: Rational,
    weights: Hashable | None = None,
    freq: str | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count the records per bin of a numeric column: half-open bins, the last closed, as `numpy.histogram`.

    ``bins``: edges (values beyond them are in no bin), a number of equal bins between the declared
    bounds, or None for the declared bins (10 equal ones where none are declared). Edges are public:
    never take them from the data.

    ``weights``: a column whose sums are released instead of counts, as in `value_counts`.

    ``freq`` ("D", "W", "M", "Q" or "Y"), instead of ``bins``: count the periods of a column of dates in their
    order, the empty ones too, as ``private.cut`` makes them.

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
    if freq is not None and bins is not None:
        raise ParameterError("'freq' takes the place of 'bins'; give one or the other.", PERIODS["histogram"])
    protected = in_periods(protected, column, freq, "histogram")
    chosen, weight = weighted_columns(protected, column, weights, "histogram")
    if len(chosen) != 1:
        raise ParameterError("'histogram' takes one column; use crosstab or value_counts for several.")
    if freq is not None:
        call = Call.of("histogram", epsilon, noise_of_cells(noise, weight), chosen, weights=weight)
        cells = cells_of(protected.scope, chosen, "histogram", weight)
        periods = AnswerLabels(cell_index(chosen, "histogram"), name="count")
        risk_of = CountRisk.of(protected, call, chosen, cells)
        return release_of(protected, call, cells, periods, whole_counts, risk=risk_of)
    edges = _edges(chosen[0], bins)
    call = Call.of("histogram", epsilon, noise_of_cells(noise, weight), chosen, weights=weight)
    ends, role = (edges[0], edges[-1]), chosen[0].role
    binned = Column(chosen[0].name, "float", chosen[0].nullable, *ends, bins=edges, role=role)
    index = cell_index([binned], "histogram")
    statistic = cells_of(protected.scope, chosen, "histogram", weight, edges)
    risk_of, labels = CountRisk.of(protected, call, [binned], statistic), AnswerLabels(index, name="count")
    return release_of(protected, call, statistic, labels, whole_counts, risk=risk_of)


def _edges(column: Column, bins: int | Sequence[float] | None) -> tuple[float, ...]:
    lower, upper = column.bounds("histogram")
    if bins is None and column.bins is not None:
        return column.bins
    if bins is None or isinstance(bins, int) or integer(bins) is not None:
        number = 10 if bins is None else integer(bins)
        if number is None or not 1 <= number <= MOST_BINS:
            raise ParameterError(
                f"'bins' must be between 1 and {MOST_BINS} (got {got(bins)}).", "bins=10, or edges"
            )
        if not lower < upper:
            raise ParameterError("'bins' must be edges where the declared bounds are one value.")
        return tuple(float(edge) for edge in np.linspace(lower, upper, number + 1))
    try:
        listed = list(itertools.islice(bins, MOST_BINS + 1))
        edges = tuple(float(edge) for edge in listed if not isinstance(edge, str | bytes | np.timedelta64))
    except (TypeError, ValueError, OverflowError):
        listed, edges = [], ()
    if edges and any(isinstance(edge, Confidential) for edge in listed):
        raise ParameterError("'bins' are published, and one of these edges was made of confidential counts.")
    if len(edges) < 2 or len(edges) < len(listed) or not all(math.isfinite(edge) for edge in edges):
        raise ParameterError("'bins' must be a number of bins, or at least two finite edges.")
    if len(edges) > MOST_BINS or any(right <= left for left, right in itertools.pairwise(edges)):
        raise ParameterError(f"'bins' must be strictly increasing edges, at most {MOST_BINS} of them.")
    return edges
