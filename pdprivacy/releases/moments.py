"""Sums, means, variances and covariances."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from pdprivacy import postprocess
from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import Rational
from pdprivacy.protection import Protected
from pdprivacy.release.publish import Made, pair_of, release_of, series
from pdprivacy.release.result import Result
from pdprivacy.release.spec import Call, Release, noised
from pdprivacy.releases.columns import (
    Labels,
    Split,
    columns_of,
    name_index,
    refuse_shared,
    weighted_columns,
    weights_of,
)
from pdprivacy.request import Options
from pdprivacy.statistic import (
    Answer,
    Covariance,
    Direct,
    Moments,
    Scope,
    Statistic,
    Sums,
    Weighted,
    indicator,
    quantity,
    rooted,
    weight_of,
)
from pdprivacy.statistic.confidence import Ends
from pdprivacy.statistic.interface import PRODUCT_BITS, Quantity

__all__ = ["corr", "cov", "mean", "pooled_cov", "pooled_var", "proportion", "std", "sum", "var"]

MatrixConstraint: TypeAlias = Literal["psd"]


@noised("laplace")
def sum(  # noqa: A001
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Sums of columns, nulls left out, values clamped to their bounds.

    ``columns``: a label, a list of labels, or None for all numeric columns with bounds.
    ``split``: weights by column for sharing ``epsilon``; equal by default.
    ``weights``: the label of a declared column of numbers of at least 0, for sums of weight times value over
    the records that have both. Values and weights are taken to 2**-17 of the largest. The interval counts
    this rounding where the number of records is public; else ``error["rounding_per_record"]`` says how much
    it is.

    Sensitivity: max(abs(lower), abs(upper)) under "add_remove", upper - lower under "replace_one"; of
    weighted sums the same, by the bounds of weight times value.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.sum("age", epsilon=0.5, rng=1).round()
    age    42883.0
    dtype: float64
    """
    chosen, weight = weighted_columns(protected, columns, weights, "sum")
    call = Call.of("sum", epsilon, noise, chosen, weights=weight)
    shares, scope = weights_of(chosen, split), protected.scope
    if weight is None:
        # centred, a sum is exact to the range of its terms; the centres of a public number are added after
        quantities = tuple(
            quantity(column, "sum", centered=scope.public(column) is not None) for column in chosen
        )
        statistic: Statistic = Sums(quantities, shares, scope)
    else:
        quantities = tuple(quantity(column, "sum", centered=False, products=True) for column in chosen)
        statistic = weighted(scope, "sum", quantities, shares, weight)
    return release_of(protected, call, statistic, partial(series, index=name_index(chosen)))


@noised("laplace")
def mean(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Means of columns, nulls left out, values clamped to their bounds.

    With a public number of rows and no nulls: the mean itself, sensitivity (upper - lower) / n.
    Else: a centred noisy sum over a noisy count (at least 1), half of the share each.

    ``weights``: the label of a declared column of numbers of at least 0, for the sum of weight times value
    over the sum of the weights of the records that have both. Each is noisy and has half of the share; the
    noisy sum of the weights is at least the largest weight. Weights are taken to 2**-17 of the largest. The
    interval counts this rounding where the least declared weight is above 0 or the number of records is
    public; else ``error["rounding_per_record"]``, times the records over the sum of weights, comes on top.

    Returns a Series labelled by column, as `DataFrame.mean`. ``columns`` and ``split`` as in `sum`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.mean("age", epsilon=0.5, rng=1).round(2)
    age    42.79
    dtype: float64
    """
    chosen, weight = weighted_columns(protected, columns, weights, "mean")
    quantities = tuple([quantity(column, "mean", products=weight is not None) for column in chosen])
    call = Call.of("mean", epsilon, noise, chosen, weights=weight)
    statistic = _moments(protected, "mean", quantities, weights_of(chosen, split), call)
    return release_of(protected, call, statistic, partial(series, index=name_index(chosen)))


def weighted(
    scope: Scope,
    kind: Literal["sum", "mean"],
    quantities: tuple[Quantity, ...],
    shares: tuple[Fraction, ...],
    weight: Column,
    keys: tuple[Column, ...] = (),
) -> Statistic:
    """The weighted sums or means of these quantities, per declared group of ``keys``."""
    return Weighted(kind, quantities, shares, weight_of(weight, kind, bits=PRODUCT_BITS), scope, keys)


def _moments(
    protected: Protected, kind: Literal["mean", "var"], quantities: Any, weights: Any, call: Call
) -> Statistic:
    """Means or variances: weighted, exact where the number of rows is public, or of noisy sums and counts."""
    if call.weights is not None:
        return weighted(protected.scope, "mean", quantities, weights, call.weights)
    rows = protected.scope.direct(call.columns, call.statistic, 1 if kind == "mean" else 2)
    if rows is None:
        return Moments(((kind,),) * len(weights), quantities, weights, protected.scope)
    return Direct(kind, quantities, weights, protected.scope, rows)


@noised("laplace")
def proportion(
    protected: Protected,
    column: Hashable,
    value: Any = True,
    *,
    epsilon: Rational,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """The share of records that hold the declared label ``value`` in ``column``, among those without null.

    ``weights``: a column of weights; the share of the total weight is released instead, as in `mean`.

    Returns a Series of one number, labelled by ``value`` under the column's name.

    >>> import pandas as pd, pandera.pandas as pa
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"ill": [True, False] * 50, "member": [True] * 100})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"ill": flag, "member": flag}), epsilon=1)
    >>> private.dp.proportion("ill", epsilon=0.5, rng=1).round(2)
    ill
    True    0.5
    dtype: float64
    """
    chosen, weight = weighted_columns(protected, column, weights, "proportion")
    if len(chosen) != 1:
        raise ParameterError("'proportion' takes one column and one label.")
    quantities = (indicator(chosen[0], "proportion", value, products=weight is not None),)
    call = Call.of("proportion", epsilon, noise, chosen, weights=weight)
    index = pd.Index([value], name=chosen[0].name, tupleize_cols=False)
    statistic = _moments(protected, "mean", quantities, (Fraction(1),), call)
    return release_of(protected, call, statistic, partial(series, index=index))


@noised("laplace")
def var(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Sample variances (divisor n - 1) of columns, nulls left out, values clamped to their bounds.

    With a public number of rows and no nulls: the variance itself, sensitivity R^2 / n. Else: noisy
    sums of centred values and squares over a noisy count, a third of the share each. The noise may
    make a small variance negative; it is returned as it is.

    Returns a Series labelled by column. ``columns`` and ``split`` as in `sum`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.var("age", epsilon=0.5, rng=1).round()
    age    92.0
    dtype: float64
    """
    chosen = columns_of(protected, columns, "var")
    call = Call.of("var", epsilon, noise, chosen)
    statistic = _variances(protected, weights_of(chosen, split), call)
    return release_of(protected, call, statistic, partial(series, index=name_index(chosen)))


def _variances(protected: Protected, weights: Any, call: Call) -> Statistic:
    quantities = tuple(quantity(column, call.statistic, products=True) for column in call.columns)
    return _moments(protected, "var", quantities, weights, call)


@noised("laplace")
def std(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Standard deviations: square roots of released variances (`var`), 0 where one is negative.

    Returns a Series labelled by column. ``columns`` and ``split`` as in `sum`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.std("age", epsilon=0.5, rng=1).round(1)
    age    9.6
    dtype: float64
    """
    chosen = columns_of(protected, columns, "std")
    call = Call.of("std", epsilon, noise, chosen)
    statistic = _variances(protected, weights_of(chosen, split), call)
    call, index = replace(call, bounds=_squared(call.bounds)), name_index(chosen)

    def make(result: Result) -> Made[pd.Series[Any]]:
        return series(result.transformed(rooted), index)

    return release_of(protected, call, statistic, make)


def _squared(bounds: Any) -> Any:
    """Bounds of standard deviations as bounds of variances."""
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        return {name: _squared(pair) for name, pair in bounds.items()}
    lower, upper = pair_of(bounds)
    if upper <= 0:
        raise ParameterError("'bounds' of standard deviations must leave room above 0.")
    lower = max(lower, 0.0)
    return lower * lower, upper * upper


@noised("laplace")
def cov(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    constraint: MatrixConstraint | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """The sample covariance matrix (divisor n - 1), values clamped to their bounds.

    With a public number of rows and no nulls each of the d(d+1)/2 entries gets an equal share and
    its own sensitivity R1 R2 / n. Else: noisy sums, products and a count, equal shares. A record
    with a null in any column is left out of all entries (pandas leaves it out pair by pair, which
    would need a count and two sums per pair, each paid for).

    The noise may make a variance negative and the matrix indefinite. ``bounding`` bounds the
    variances first, and then each covariance by what the released variances allow, so that
    correlations stay within [-1, 1]. ``constraint="psd"`` replaces the correlations of the released
    matrix by the nearest ones that can exist (Higham 2002), at no further cost.

    Returns a DataFrame labelled by column on both axes, as `DataFrame.cov`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> share = pa.Column(float, pa.Check.in_range(-1, 2), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"a": [0.0, 1.0] * 500, "b": [1.0, 0.0] * 500})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"a": share, "b": share}), epsilon=1)
    >>> private.dp.cov(epsilon=0.5, constraint="psd", rng=1).round(2)
          a     b
    a  0.26 -0.26
    b -0.26  0.27
    """
    return _matrix(protected, columns, Call.of("cov", epsilon, noise, constraint=constraint))


@noised("laplace")
def corr(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    constraint: MatrixConstraint | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Pearson correlations from a released covariance matrix (`cov`), within [-1, 1].

    A correlation is NaN where a released variance is not positive. ``bounding`` and ``constraint`` apply to
    the covariance matrix, as in `cov`. Returns a DataFrame, as `DataFrame.corr`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> share = pa.Column(float, pa.Check.in_range(-1, 2), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"a": [0.0, 1.0] * 500, "b": [1.0, 0.0] * 500})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"a": share, "b": share}), epsilon=1)
    >>> private.dp.corr(epsilon=1, constraint="psd", rng=1).round(2)
         a    b
    a  1.0 -1.0
    b -1.0  1.0
    """
    return _matrix(
        protected, columns, Call.of("corr", epsilon, noise, constraint=constraint), transform=_correlation
    )


def _correlation(answer: Answer) -> Answer:
    """Correlations of a covariance matrix, with standard errors to first order."""
    values, errors = np.asarray(answer.values), np.asarray(answer.standard_error)
    variances = np.diagonal(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        roots = np.where(variances > 0, np.sqrt(variances), np.nan)
        scale = np.outer(roots, roots)
        raw = values / scale
        relative = np.diagonal(errors) / (2 * variances)
        spread = raw**2 * (relative[:, None] ** 2 + relative[None, :] ** 2)
        error = np.sqrt((errors / scale) ** 2 + spread)
    ratios = np.clip(raw, -1.0, 1.0)
    known = np.where(variances > 0, 1.0, np.nan)
    np.fill_diagonal(ratios, known)
    np.fill_diagonal(error, np.where(variances > 0, 0.0, np.nan))

    def interval(level: float) -> Ends:
        # three intervals at once for each correlation: of the covariance and of both variances
        assert answer.interval is not None
        lower, upper = answer.interval(1 - (1 - level) / 3)
        lower, upper = lower - answer.rounding, upper + answer.rounding
        least, most = (np.sqrt(np.maximum(np.diagonal(end), 0.0)) for end in (lower, upper))
        narrow, wide = np.outer(least, least), np.outer(most, most)
        with np.errstate(invalid="ignore", divide="ignore"):
            low = np.where(lower < 0, lower / narrow, lower / wide)
            high = np.where(upper > 0, upper / narrow, upper / wide)
        # 0 / 0: nothing is known
        low, high = (
            np.nan_to_num(np.clip(low, -1.0, 1.0), nan=-1.0),
            np.nan_to_num(np.clip(high, -1.0, 1.0), nan=1.0),
        )
        np.fill_diagonal(low, known)
        np.fill_diagonal(high, known)
        return low, high

    return Answer(ratios, error, 0.0, -1.0, 1.0, interval)


def _matrix(
    protected: Protected,
    columns: Labels | None,
    call: Call,
    *,
    by: Labels | None = None,
    transform: Callable[[Answer], Answer] | None = None,
) -> Release[pd.DataFrame]:
    method = call.statistic
    chosen = columns_of(protected, columns, method)
    keys = () if by is None else columns_of(protected, by, method)
    if len(chosen) < 2:
        raise ParameterError(f"{method!r} needs at least two columns.", "use var for one column.")
    refuse_shared(chosen, keys, method)
    statistic = _covariances(protected, chosen, keys, method)
    call = replace(call, columns=chosen, by=keys)
    if call.bounds is not None:
        raise ParameterError("'bounds' of a matrix follow from the declaration.", "leave bounds out.")
    if call.constraint is not None and (not isinstance(call.constraint, str) or call.constraint != "psd"):
        raise ParameterError(f"'constraint' must be 'psd' or None (got {got(call.constraint)}).")
    names = name_index(chosen)

    def make(result: Result) -> Made[pd.DataFrame]:
        if call.constraint is not None:
            result = result.transformed(_nearest)
        if transform is not None:
            result = result.transformed(transform)
        return pd.DataFrame(result.answer.values, index=names, columns=names), result.errors

    return release_of(protected, call, statistic, make)


def _nearest(answer: Answer) -> Answer:
    # in units of the largest entry: numbers of any size can be squared then
    unit = np.abs(answer.values).max(initial=0.0) or 1.0
    return replace(answer, values=postprocess.nearest_psd(answer.values / unit) * unit)


def _covariances(
    protected: Protected, chosen: Sequence[Column], keys: tuple[Column, ...], method: str
) -> Statistic:
    quantities = tuple(quantity(column, method, products=True) for column in chosen)
    groups = math.prod(key.cells(method) for key in keys)
    rows = protected.scope.direct(chosen, method, groups + 1)
    if rows is not None:
        return Direct("cov", quantities, (), protected.scope, rows, keys)
    return Covariance(quantities, protected.scope, keys)


@noised("laplace")
def pooled_var(
    protected: Protected,
    columns: Labels | None = None,
    *,
    by: Labels,
    epsilon: Rational,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Pooled within-group variances: sums of squares about group means over (n - J), J declared groups.

    With a public number of rows and no nulls: sensitivity R^2 / (n - J), also where a replaced
    record changes its group. Else: noisy counts and sums per group and noisy totals of squares.
    A declared group without records counts in J, because which groups are empty is private. A
    record with a null in any of the columns is left out of all of them; ask column by column to
    avoid that.

    Returns a Series labelled by column.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> member = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [20, 60, 60, 20] * 250, "member": [True, False] * 500})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"age": age, "member": member}), epsilon=1)
    >>> private.dp.pooled_var("age", by="member", epsilon=1, rng=1).round()
    age    380.0
    dtype: float64
    """
    keys = columns_of(protected, by, "pooled_var")
    chosen = columns_of(protected, columns, "pooled_var", keys)
    refuse_shared(chosen, keys, "pooled_var")
    quantities = tuple(quantity(column, "pooled_var", products=True) for column in chosen)
    rows = protected.scope.direct(
        chosen, "pooled_var", math.prod(key.cells("pooled_var") for key in keys) + 1
    )
    statistic: Statistic
    if rows is None:
        statistic = Covariance(quantities, protected.scope, keys, matrix=False)
    else:
        weights = weights_of(chosen, None)
        statistic = Direct("var", quantities, weights, protected.scope, rows, keys)
    call = Call.of("pooled_var", epsilon, noise, chosen, keys)
    return release_of(protected, call, statistic, partial(series, index=name_index(chosen)))


@noised("laplace")
def pooled_cov(
    protected: Protected,
    columns: Labels,
    *,
    by: Labels,
    epsilon: Rational,
    constraint: MatrixConstraint | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """The pooled within-group covariance matrix, as `pooled_var`, entries as in `cov`.

    With a public number of rows: the sensitivities of `pdprivacy.sensitivity.pooled_cov`, for
    groups that belong to the record.

    >>> import pandas as pd, pandera.pandas as pa
    >>> share = pa.Column(float, pa.Check.in_range(-1, 2), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"a": [0.0, 1.0] * 500, "b": [1.0, 0.0] * 500, "g": True})
    >>> columns = {"a": share, "b": share, "g": pa.Column(bool, metadata={"dp": {}})}
    >>> private = frame.dp.protect(pa.DataFrameSchema(columns), epsilon=1)
    >>> private.dp.pooled_cov(["a", "b"], by="g", epsilon=1, rng=1).round(2)
          a     b
    a  0.28 -0.38
    b -0.38  0.32
    """
    return _matrix(protected, columns, Call.of("pooled_cov", epsilon, noise, constraint=constraint), by=by)
