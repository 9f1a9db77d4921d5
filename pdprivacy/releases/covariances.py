"""Covariance matrices and pooled variances, and regressions by least squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from pdprivacy import postprocess
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import read_after
from pdprivacy.core.gate.request import Options
from pdprivacy.core.gate.spec import (
    AnswerLabels,
    Call,
    Release,
    columns_of,
    name_index,
    refuse_shared,
    weights_of,
    with_noise_keywords,
)
from pdprivacy.core.privacy import Rational, rational
from pdprivacy.core.rows import Node, Transform, floats
from pdprivacy.core.statistics import Answer, Covariance, Direct, LeastSquares, Quantity, Statistic, quantity
from pdprivacy.core.statistics.confidence import Ends
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import DeclarationError, IntervalWarning, ParameterError, got, warn
from pdprivacy.frames import ProtectedFrame
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.releases.publish import release_of
from pdprivacy.releases.results import Result
from pdprivacy.types import Floats, Labels

MatrixConstraint: TypeAlias = Literal["psd"]


@with_noise_keywords("laplace")
def cov(
    protected: Facts,
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

    The noise may make a variance negative and the matrix indefinite. By default the nearest possible
    matrix is released: positive semi-definite, with variances that the bounds allow
    (`pdprivacy.postprocess.nearest_covariance`). It is nearer to the true one as a whole; single
    entries may move away. "clamp" and "truncated" bound the variances first, and then each covariance
    by what the released variances allow, so that correlations stay within [-1, 1].
    ``constraint="psd"`` keeps the released variances, negative ones at 0, and replaces their
    correlations by the nearest ones that can exist (Higham 2002), at no further cost.

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


@with_noise_keywords("laplace")
def corr(
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    constraint: MatrixConstraint | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Pearson correlations from a released covariance matrix (`cov`), within [-1, 1].

    A correlation is NaN where a noisy variance is not positive. By default the others are the nearest
    correlation matrix (`pdprivacy.postprocess.nearest_correlation`). Other ``bounding`` and ``constraint``
    apply to the covariance matrix, as in `cov`. Returns a DataFrame, as `DataFrame.corr`.

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
        protected, columns, Call.of("corr", epsilon, noise, constraint=constraint), transform=correlations_of
    )


def correlations_of(answer: Answer) -> Answer:
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
    protected: Facts,
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

    def transformed_matrix(result: Result) -> Result:
        if call.constraint is not None:
            result = result.transformed(_nearest)
        return result if transform is None else result.transformed(transform)

    project = partial(Result.as_a_whole, nearest=_correlations)
    if transform is None:
        assert statistic.limits is not None
        largest = np.diagonal(statistic.limits[1])
        project = partial(Result.as_a_whole, nearest=partial(_covariances_within, largest=largest))
    return release_of(
        protected, call, statistic, AnswerLabels(names, names), transformed_matrix, project=project
    )


def _covariances_within(matrix: Floats, largest: Floats) -> Floats:
    """Return the nearest covariance matrix; ``largest``: the variances that the bounds allow, of any size."""
    # powers of two for units near the ranges: exact, and squares stay finite
    exponents = np.frexp(np.sqrt(largest))[1]
    unit, exponent = np.ldexp(largest, -2 * exponents), exponents + exponents[:, np.newaxis]
    return np.asarray(np.ldexp(postprocess.nearest_covariance(np.ldexp(matrix, -exponent), unit), exponent))


def _correlations(matrix: Floats) -> Floats:
    """Return the nearest correlation matrix; rows and columns of undefined correlations stay NaN."""
    result = matrix.copy()
    known = np.ix_(*(np.flatnonzero(np.isfinite(np.diagonal(matrix))),) * 2)
    if result[known].size:
        result[known] = postprocess.nearest_correlation(matrix[known])
    return result


def _nearest(answer: Answer) -> Answer:
    # in units of the largest entry: numbers of any size can be squared then
    unit = np.abs(answer.values).max(initial=0.0) or 1.0
    return replace(answer, values=postprocess.nearest_psd(answer.values / unit) * unit)


def _covariances(
    protected: Facts,
    chosen: Sequence[Column],
    keys: tuple[Column, ...],
    method: str,
    *,
    matrix: bool = True,
) -> Statistic:
    """A covariance matrix, or its diagonal: exact where the number of rows is public, or of noisy sums."""
    quantities = tuple(quantity(column, method, products=True) for column in chosen)
    groups = math.prod(key.cells(method) for key in keys)
    rows = protected.scope.direct_rows(chosen, method, groups + 1)
    if rows is None:
        return Covariance(quantities, protected.scope, keys, matrix=matrix)
    kind: Literal["cov", "var"] = "cov" if matrix else "var"
    weights = () if matrix else weights_of(chosen, None)
    return Direct(kind, quantities, weights, protected.scope, rows, keys)


@with_noise_keywords("laplace")
def pooled_var(
    protected: Facts,
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
    statistic = _covariances(protected, chosen, keys, "pooled_var", matrix=False)
    call = Call.of("pooled_var", epsilon, noise, chosen, keys)
    return release_of(protected, call, statistic, AnswerLabels(name_index(chosen)))


@with_noise_keywords("laplace")
def pooled_cov(
    protected: Facts,
    columns: Labels,
    *,
    by: Labels,
    epsilon: Rational,
    constraint: MatrixConstraint | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """The pooled within-group covariance matrix, as `pooled_var`, entries and projection as in `cov`.

    With a public number of rows: the sensitivities of `pdprivacy.sensitivity.pooled_cov`, for
    groups that belong to the record.

    >>> import pandas as pd, pandera.pandas as pa
    >>> share = pa.Column(float, pa.Check.in_range(-1, 2), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"a": [0.0, 1.0] * 500, "b": [1.0, 0.0] * 500, "g": True})
    >>> columns = {"a": share, "b": share, "g": pa.Column(bool, metadata={"dp": {}})}
    >>> private = frame.dp.protect(pa.DataFrameSchema(columns), epsilon=1)
    >>> private.dp.pooled_cov(["a", "b"], by="g", epsilon=1, rng=1).round(2)
          a     b
    a  0.32 -0.34
    b -0.34  0.36
    """
    return _matrix(protected, columns, Call.of("pooled_cov", epsilon, noise, constraint=constraint), by=by)


# ---------------------------------------------------------------- regressions

Cells: TypeAlias = "Callable[[Any, pd.Index[Any]], pd.Series[Any]]"

INTERCEPT = "Intercept"
"""The label of the intercept, as in statsmodels."""

LARGEST_PENALTY = 2.0**40
"""The largest penalty, in units of squared half ranges, beside which doubles still resolve the moments."""


@with_noise_keywords("laplace")
def ols(
    protected: Facts,
    y: Hashable,
    X: Labels,
    *,
    weights: Hashable | None = None,
    ridge: Rational = 0,
    epsilon: Rational,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Release the coefficients of a least squares regression of ``y`` on the columns ``X`` and an intercept.

    Values are clamped to their bounds, a Boolean column is 1 or 0, and records with a null in any of the
    columns are left out. Noise is added, with equal shares of ``epsilon``, to a count, to the sums and to the
    sums of products of all columns, each measured from the middle of its bounds. The noisy moments are made
    positive semi-definite: the eigenvalues of the moments of the regressors are at least the size of their
    noise, and the residual sum of squares is at least 0.

    Unlike those of other releases, the standard errors and intervals are for the coefficients of a
    population, of which the records are an independent sample: they include the sampling error and the noise.
    They assume residuals of equal variance (with ``weights``, a variance in inverse proportion to the
    weights), because the moments do not show another variance. They hold to first order in the noise. The
    interval is NaN where the noise is too large for that, with fewer than 10 degrees of freedom, and where
    ``unit`` allows a person several records, which are not independent. Where public facts tell so, an
    `pdprivacy.errors.IntervalWarning` says it before the charge; ``plan.ols`` tells the rest for an assumed
    number of records. See docs/regression.md.

    y : the label of the response. X : a label or a list of labels.
    weights : a numeric column with bounds of at least 0, for weighted least squares. Records of weight 0 are
        left out.
    ridge : the factor of the squared coefficients, except the intercept, in the sum that is minimised, in the
        units of the columns (``alpha`` of ``sklearn.linear_model.Ridge``). The intervals are then for the
        penalised coefficients given the regressors of these records. They do not include the shift by the
        penalty, or the variation of the regressors between samples.

    Returns a Series labelled "Intercept" and by column. ``interval()`` returns standard errors and intervals.
    ``attrs["dp"]["regression"]`` holds the noisy number of records, the degrees of freedom, the residual
    variance and the R squared, at no further cost.

    Raises
    ------
    DeclarationError : a column without bounds, such as a column of categories, or weights that may be
        negative.
    ParameterError : a repeated column, a regressor that cannot vary, ``bounding``, or a ``ridge`` that is
        negative or too large.

    >>> import pandas as pd, pandera.pandas as pa
    >>> share = pa.Column(float, pa.Check.in_range(0, 1), metadata={"dp": {}})
    >>> frame = pd.DataFrame({"x": [i / 1001 for i in range(1, 1001)] * 20}).eval("y = 0.2 + 0.5 * x")
    >>> private = frame.dp.protect(pa.DataFrameSchema({"x": share, "y": share}), epsilon=1)
    >>> private.dp.ols("y", ["x"], epsilon=1, rng=1).dp.interval().round(3)
               released  standard_error  lower  upper
    Intercept       0.2           0.001  0.199  0.202
    x               0.5           0.001  0.497  0.502
    """
    call = Call.of("ols", epsilon, noise)
    if call.request.bounding is not None:
        raise ParameterError(
            "'ols' takes no 'bounding', which would bias the moments.", "leave bounding out."
        )
    response = columns_of(protected, [y], "ols")
    regressors = columns_of(protected, _listed(X, protected.domain), "ols")
    weighing = () if weights is None else columns_of(protected, [weights], "ols")
    chosen = (*regressors, *response)
    if len({column.name for column in (*chosen, *weighing)}) < len(chosen) + len(weighing):
        raise ParameterError("'ols' needs different columns as 'y', 'X' and 'weights'.")
    if any(column.name == INTERCEPT for column in regressors):
        raise ParameterError(
            f"'ols' adds {INTERCEPT!r} itself, so no column may have this name.",
            "leave it out, or rename the column.",
        )
    call = replace(call, columns=(*response, *regressors), weights=weighing[0] if weighing else None)
    quantities = tuple(map(_quantity, chosen))
    ranges = tuple(_range(variable) for variable in quantities)
    facts, numbers, largest = protected, quantities, 1.0
    if weighing:
        transform = _roots(weighing[0], quantities)
        facts = read_after(protected, transform)
        numbers, largest = tuple(map(_weighted, transform.domain.columns)), weighing[0].bounds("ols")[1]
    penalty = _penalty(ridge, [half * half * largest for _, half in ranges[:-1]])
    weighted = (str(weighing[0].name), largest) if weighing else None
    statistic = LeastSquares(numbers, protected.scope, ranges, penalty, weighted)
    if statistic.note_beforehand is not None:
        warn(f"'ols' will state no standard errors and {statistic.note_beforehand}.", IntervalWarning)
    index = pd.Index([INTERCEPT, *(column.name for column in regressors)], tupleize_cols=False)
    return release_of(facts, call, statistic, AnswerLabels(index))


def _listed(X: Labels, domain: Domain) -> Any:
    if X is None:
        raise ParameterError("'ols' needs the columns of the regressors.", EXAMPLES["ols"])
    if isinstance(X, ProtectedFrame) or (isinstance(X, tuple) and X not in domain):
        raise ParameterError(
            f"'ols' takes a label or a list of labels as 'X' (got {type(X).__name__}).",
            EXAMPLES["ols"],
        )
    return X


def _penalty(ridge: Rational, units: Sequence[float]) -> float:
    """Return the penalty; refuse a penalty beside which doubles lose moments in these ``units``."""
    penalty = rational(ridge, "ridge")
    if penalty < 0:
        raise ParameterError(f"'ridge' must not be negative (got {got(ridge)}).")
    most = min(1e300, *(LARGEST_PENALTY * unit for unit in units))
    if penalty > most:
        raise ParameterError(
            f"'ridge' must be at most {most:.3g} for columns of these bounds (got {got(ridge)}).",
            "leave out the columns whose coefficients it makes 0.",
        )
    return float(penalty)


def _quantity(column: Column) -> Quantity:
    """Return the quantity of a column, whose bounds must differ."""
    if column.kind == "category":
        raise DeclarationError(
            f"'ols' needs numbers, and column {column.name!r} has labels; make indicators of all but one.",
            f'private.assign(indicator="{column.name} == {column.labels("ols")[0]!r}").',
        )
    bounded = quantity(column, "ols", products=True)
    if bounded.lower == bounded.upper:
        raise ParameterError(
            f"Column {column.name!r} has equal bounds, so it cannot be distinguished from the intercept.",
            "leave it out.",
        )
    return bounded


def _range(quantity: Quantity) -> tuple[float, float]:
    """Return the middle and half of the range."""
    return quantity.center, (quantity.upper - quantity.lower) / 2


def _roots(weight: Column, quantities: Sequence[Quantity]) -> Transform:
    """Return a transform to the root of the weights, and to the numbers, in half ranges, times this root."""
    low, high = weight.bounds("ols")
    if low < 0 or high <= 0:
        raise DeclarationError(
            f"The weights of column {weight.name!r} may be negative or are all 0: its bounds are {low:g} and "
            f"{high:g}.",
            f"private.clip(lower={{{weight.name!r}: 0}}).",
        )

    def root(read: Any) -> Any:
        cells = floats(read[weight.name], weight)
        return np.sqrt(np.where(cells > 0, cells, np.nan) / high)  # a weight of 0 leaves the record out

    def cells(number: Quantity) -> Cells:
        center, half = _range(number)

        def made(read: Any, index: pd.Index[Any]) -> pd.Series[Any]:
            centered = (floats(read[number.column.name], number.column) - center) / half
            return pd.Series(np.clip(centered, -1.0, 1.0) * root(read), index=index)

        return made

    reads = (weight.name, *(number.column.name for number in quantities))
    # new names: under the name of a column, a step would read its own result in place of the column
    roots, *names = _unlike(reads, [f"root of {weight.name}", *(f"weighted {name}" for name in reads[1:])])
    leaves_out = weight.nullable or low == 0
    weights = Column(roots, "float", leaves_out, lower=math.sqrt(low / high), upper=1.0)
    nodes = [Node(weights, lambda read, index: pd.Series(root(read), index=index))]
    for name, number in zip(names, quantities, strict=True):
        nullable = leaves_out or number.column.nullable
        nodes.append(Node(Column(name, "float", nullable, lower=-1.0, upper=1.0), cells(number)))
    columns = {node.column.name: node for node in nodes}
    sources: dict[Hashable, tuple[Hashable, ...]] = {
        name: (weight.name, read) for name, read in zip(columns, reads, strict=True)
    }
    return Transform(
        "weighted", Domain(tuple(node.column for node in nodes)), reads, columns, sources=sources
    )


def _unlike(taken: Sequence[Hashable], names: Sequence[str]) -> list[str]:
    """Return names that differ from each other and from the names in ``taken``."""
    distinct: list[str] = []
    for name in names:
        while name in taken or name in distinct:
            name += "'"
        distinct.append(name)
    return distinct


def _weighted(column: Column) -> Quantity:
    """Return the quantity of a column of numbers times the root of the weight."""
    return quantity(column, "ols", centered=False, products=True)
