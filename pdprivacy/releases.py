"""The verbs: each takes a protected frame's facts, charges once, and returns a pandas object.

A release is: statistic, `measure`, post-processing, metadata. The functions here are
the methods of ``df.dp`` with the `Protected` facts as first argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy import accounting, metadata, risk
from pdprivacy._version import __version__
from pdprivacy.domain import Column
from pdprivacy.errors import DeclarationError, ParameterError, TableTooLargeError
from pdprivacy.measure import Measurement, MechanismName, measure
from pdprivacy.mechanism import Gaussian, Geometric, Laplace
from pdprivacy.noise import RandomState
from pdprivacy.privacy import Rational, loss
from pdprivacy.protection import Protected, declared, restrict
from pdprivacy.statistic import (
    Answer,
    Cells,
    Covariance,
    Direct,
    GroupedMoments,
    Means,
    PooledCovariance,
    Rows,
    Statistic,
    Sums,
    Variances,
    quantity,
)

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

Labels: TypeAlias = Hashable | Sequence[Hashable]
Normalize: TypeAlias = bool | Literal["all", "index", "columns"]
Split: TypeAlias = Mapping[Hashable, Rational] | None
Floats: TypeAlias = NDArray[np.float64]
Released: TypeAlias = "pd.Series[Any] | pd.DataFrame"

MAX_CELLS = 10**8
LEVEL = 0.95


# ------------------------------------------------------------------ shared steps


@dataclass(frozen=True, slots=True)
class _Call:
    """What every release is asked: its name, columns, cost and noise."""

    statistic: str
    columns: tuple[Column, ...]
    epsilon: Rational
    delta: Rational
    mechanism: MechanismName
    rng: RandomState
    by: tuple[Column, ...] = ()

    def label(self) -> str:
        text = self.statistic
        if self.columns:
            text += " of " + ", ".join(str(column.name) for column in self.columns)
        if self.by:
            text += " by " + ", ".join(str(column.name) for column in self.by)
        return text


def _run(protected: Protected, statistic: Statistic, call: _Call) -> tuple[Answer, Measurement]:
    measurement = measure(
        statistic,
        protected.engine,
        protected.budget,
        loss(call.epsilon, call.delta),
        call.mechanism,
        call.label(),
        call.rng,
    )
    return statistic.finish(measurement.noisy), measurement


def _plus_minus(answer: Answer, measurement: Measurement) -> Any:
    """Half the width of the interval around each released number.

    One noise alone: exactly its own quantile. Several noises combined, or a nonlinear step:
    the standard error times the factor of the heaviest tail among them.
    """
    halves = [mechanism.interval(LEVEL)[1] for mechanism in measurement.mechanisms]
    if isinstance(measurement.mechanisms[0], Geometric):
        return np.array(halves) if len(halves) > 1 else halves[0]
    factor = max(
        half / mechanism.std for half, mechanism in zip(halves, measurement.mechanisms, strict=True)
    )
    return np.asarray(answer.standard_error) * factor


def _plain(values: Any) -> Any:
    """Numbers as JSON: one number where all are the same."""
    array = np.asarray(values, dtype=np.float64)
    if array.size and bool(np.all(array == array.flat[0])):
        return float(array.flat[0])
    return [None if item != item else item for item in array.tolist()] if array.ndim == 1 else array.tolist()


def _by_part(measurement: Measurement, number: Callable[[int], float]) -> Any:
    parts = measurement.parts
    if len(parts) == 1:
        return number(0)
    return {part.name: number(place) for place, part in enumerate(parts)}


def _sensitivity(measurement: Measurement, place: int) -> float:
    part = measurement.parts[place]
    if isinstance(measurement.mechanisms[place], Gaussian):
        return math.sqrt(part.l2_squared) * float(part.unit)
    return float(part.l1 * part.unit)


def _attach(
    protected: Protected,
    call: _Call,
    measurement: Measurement,
    released: Released,
    errors: tuple[Any, Any],
    **more: Any,
) -> None:
    total, (spent_epsilon, spent_delta) = protected.budget.total, protected.budget.spent
    standard_error, plus_minus = errors
    cost = loss(call.epsilon, call.delta)
    metadata.attach(
        released,
        {
            "statistic": call.statistic,
            "columns": [str(column.name) for column in (*call.by, *call.columns)],
            "mechanism": call.mechanism,
            "epsilon": float(cost.epsilon),
            "delta": float(cost.delta),
            "neighbors": protected.unit.neighbors,
            "sensitivity": _by_part(measurement, lambda i: _sensitivity(measurement, i)),
            "scale": _by_part(measurement, lambda i: measurement.mechanisms[i].scale),
            "split": {part.name: float(part.weight) for part in measurement.parts},
            "error": {
                "level": LEVEL,
                "standard_error": _plain(standard_error),
                "plus_minus": _plain(plus_minus),
            },
            "budget": {
                "total": [float(total.epsilon), float(total.delta)],
                "spent": [spent_epsilon, spent_delta],
            },
            "seeded": measurement.seeded,
            "version": __version__,
            **more,
        },
    )


def _columns(protected: Protected, columns: Labels | None, method: str) -> tuple[Column, ...]:
    """The declared columns of these labels; all numeric ones with bounds where None."""
    domain = protected.domain
    if columns is None:
        chosen = tuple(
            column
            for column in domain.columns
            if declared(protected, column.name) and column.lower is not None and column.upper is not None
        )
        if not chosen:
            raise DeclarationError(f"{method!r} found no declared column with bounds.")
        return chosen
    names = list(columns) if isinstance(columns, list | pd.Index) else [columns]
    if not names:
        raise ParameterError(f"{method!r} needs at least one column.")
    if len(set(names)) < len(names):
        raise ParameterError(f"{method!r} got a column twice.")
    return tuple(domain[name] for name in names)


def _weights(columns: Sequence[Column], split: Split) -> tuple[Any, ...]:
    """Each column's share of the loss."""
    if split is None:
        return accounting.shares([1] * len(columns))
    names = [column.name for column in columns]
    if not isinstance(split, Mapping) or set(split) != set(names):
        named = ", ".join(repr(name) for name in names)
        raise ParameterError(f"'split' must map each column of the call to its weight ({named}).")
    return accounting.shares([split[name] for name in names])


def _index(columns: Sequence[Column], method: str) -> pd.Index[Any]:
    """The declared cells as an index: one level per column, the null cell last."""
    levels = []
    for column in columns:
        labels = list(column.labels(method))
        levels.append([*labels, None] if column.nullable else labels)
    if len(columns) == 1:
        return pd.Index(levels[0], name=columns[0].name, tupleize_cols=False)
    return pd.MultiIndex.from_product(levels, names=[column.name for column in columns])


def _check_cells(columns: Sequence[Column], method: str) -> None:
    cells = math.prod(column.cells(method) for column in columns)
    if cells > MAX_CELLS:
        raise TableTooLargeError(
            f"The table has {cells} declared cells, more than {MAX_CELLS}.",
            "release fewer columns at once, or declare coarser bins.",
        )


def _names(columns: Sequence[Column]) -> pd.Index[Any]:
    return pd.Index([column.name for column in columns], tupleize_cols=False)


def _counts(values: Floats, mechanism: MechanismName) -> Any:
    """Counts as integers where the noise is."""
    return values.astype(np.int64) if mechanism == "geometric" else values


# ------------------------------------------------------------------ counts and tables


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
    chosen = () if columns is None else _columns(protected, columns, "count")
    for column in chosen:
        if column.role == "identifier":
            column.labels("count")  # refuses
    if not chosen and protected.scope.neighbors == "replace_one" and not protected.scope.filtered:
        raise ParameterError(
            "Under neighbors='replace_one' the number of rows is public.", "use len(private)."
        )
    call = _Call("count", chosen, epsilon, delta, mechanism, rng)
    answer, measurement = _run(protected, Rows(chosen, _weights(chosen, split) if chosen else (), protected.scope), call)
    index = _names(chosen) if chosen else pd.Index(["rows"])
    released = pd.Series(_counts(answer.values, mechanism), index=index)
    _attach(protected, call, measurement, released, (answer.standard_error, _plus_minus(answer, measurement)))
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
    chosen = _columns(protected, columns, "value_counts")
    _check_cells(chosen, "value_counts")
    call = _Call("value_counts", chosen, epsilon, delta, mechanism, rng)
    answer, measurement = _run(protected, Cells(chosen, protected.scope, "value_counts"), call)
    values, errors = _normalized(answer, measurement, normalize, axis=None)
    name = "proportion" if normalize else "count"
    released = pd.Series(
        values if normalize else _counts(values, mechanism), index=_index(chosen, "value_counts"), name=name
    )
    if sort:
        order = np.argsort(-np.asarray(values), kind="stable")
        released = released.iloc[order]
        errors = tuple(error[order] if np.ndim(error) else error for error in errors)
    _attach(protected, call, measurement, released, errors)
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
    chosen = _columns(protected, column, "histogram")
    if len(chosen) != 1:
        raise ParameterError("'histogram' takes one column; use crosstab or value_counts for several.")
    edges = _edges(chosen[0], bins)
    call = _Call("histogram", chosen, epsilon, delta, mechanism, rng)
    answer, measurement = _run(protected, Cells(chosen, protected.scope, "histogram", edges), call)
    binned = Column(chosen[0].name, "float", chosen[0].nullable, edges[0], edges[-1], bins=edges)
    released = pd.Series(_counts(answer.values, mechanism), index=_index([binned], "histogram"), name="count")
    _attach(protected, call, measurement, released, (answer.standard_error, _plus_minus(answer, measurement)))
    return released


def _edges(column: Column, bins: int | Sequence[float] | None) -> tuple[float, ...]:
    lower, upper = column.bounds("histogram")
    if bins is None and column.bins is not None:
        return column.bins
    if bins is None or isinstance(bins, int | np.integer):
        number = 10 if bins is None else int(bins)
        if isinstance(bins, bool) or not 1 <= number <= 10**6:
            raise ParameterError(f"'bins' must be between 1 and 1000000 (got {bins}).")
        if not lower < upper:
            raise ParameterError("'bins' must be edges where the declared bounds are one value.")
        return tuple(float(edge) for edge in np.linspace(lower, upper, number + 1))
    edges = tuple(float(edge) for edge in bins)
    if len(edges) < 2 or not all(math.isfinite(edge) for edge in edges):
        raise ParameterError("'bins' must be at least two finite edges.")
    if any(right <= left for left, right in zip(edges, edges[1:], strict=False)):
        raise ParameterError("'bins' must be strictly increasing.")
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
    rows, tops = _columns(protected, index, "crosstab"), _columns(protected, columns, "crosstab")
    if normalize not in (False, True, "all", "index", "columns"):
        raise ParameterError(
            f"'normalize' must be False, True, 'all', 'index' or 'columns' (got {normalize!r})."
        )
    if {column.name for column in rows} & {column.name for column in tops}:
        raise ParameterError("'index' and 'columns' share a column.")
    both = (*rows, *tops)
    _check_cells(both, "crosstab")
    call = _Call("crosstab", tops, epsilon, delta, mechanism, rng, by=rows)
    answer, measurement = _run(protected, Cells(both, protected.scope, "crosstab"), call)
    shape = tuple(math.prod(column.cells("crosstab") for column in side) for side in (rows, tops))
    counts = answer.values.reshape(shape)
    table = Answer(counts, answer.standard_error, linear=True)
    labels = [_index(side, "crosstab") for side in (rows, tops)]
    axis = {False: None, True: None, "all": None, "index": 1, "columns": 0}[normalize]
    values, errors = _normalized(table, measurement, normalize is not False, axis=axis)
    if margins:
        values, errors, labels = _with_margins(counts, answer.standard_error, measurement, normalize, labels)
    released = pd.DataFrame(
        values if normalize is not False else _counts(values, mechanism), index=labels[0], columns=labels[1]
    )
    more: dict[str, Any] = {}
    exposed = all(column.role == "quasi_identifier" for column in rows)
    if exposed and all(column.role == "sensitive" for column in tops) and shape[1] > 1:
        more["dr_ha"] = _released_risk(counts, measurement)
    _attach(protected, call, measurement, released, errors, **more)
    return released


def _normalized(
    answer: Answer, measurement: Measurement, normalize: bool, axis: int | None
) -> tuple[Any, tuple[Any, Any]]:
    """Shares of the noisy totals (of all, of rows or of columns) with their errors, or counts as they are."""
    if not normalize:
        return answer.values, (answer.standard_error, _plus_minus(answer, measurement))
    values = np.asarray(answer.values)
    size = values.size if axis is None else values.shape[axis]
    totals = np.maximum(values.sum(axis=axis, keepdims=axis is not None), 1.0)
    shares = values / totals
    # a share is one noisy count over a total of `size` of them, to first order
    spread = np.maximum(1 - 2 * shares + size * shares**2, 0.0)
    error = float(answer.standard_error) * np.sqrt(spread) / totals
    return shares, (error, error * _factor(measurement))


def _factor(measurement: Measurement) -> float:
    """Half the interval per standard error, of the heaviest tail a sum of such noises can have."""
    mechanism = measurement.mechanisms[0]
    if isinstance(mechanism, Gaussian):
        return mechanism.interval(LEVEL)[1] / mechanism.std
    return max(Laplace(1, 1).interval(LEVEL)[1] / Laplace(1, 1).std, mechanism.interval(LEVEL)[1] / mechanism.std)


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
    plus_minus = np.where(size == 1, half, error * _factor(measurement))
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
    kept = [names[0] if normalize != "columns" else labels[0], labels[1] if normalize == "index" else names[1]]
    return shares[keep], (error[keep], error[keep] * _factor(measurement)), kept


def _all_label(index: pd.Index[Any]) -> pd.Index[Any]:
    """The index with "All" at its end, as `pandas.crosstab` names it."""
    if isinstance(index, pd.MultiIndex):
        last = ("All", *[""] * (index.nlevels - 1))
        return pd.MultiIndex.from_tuples([*index.tolist(), last], names=index.names)
    return pd.Index([*index.tolist(), "All"], name=index.name, dtype=object, tupleize_cols=False)


# ------------------------------------------------------------------ numbers


def sum(  # noqa: A001
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    split: Split = None,
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Sums of columns, nulls left out, values clamped to their bounds.

    ``columns``: a label, a list of labels, or None for all numeric columns with bounds.
    ``split``: weights by column for sharing ``epsilon``; equal by default.

    Sensitivity: max(abs(lower), abs(upper)) under "add_remove", upper - lower under "replace_one".
    """
    chosen = _columns(protected, columns, "sum")
    quantities = tuple(quantity(column, "sum", centered=False) for column in chosen)
    call = _Call("sum", chosen, epsilon, delta, mechanism, rng)
    return _series(protected, Sums(quantities, _weights(chosen, split), protected.scope), call)


def mean(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    split: Split = None,
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Means of columns, nulls left out, values clamped to their bounds.

    With a public number of rows and no nulls: the mean itself, sensitivity (upper - lower) / n.
    Else: a centred noisy sum over a noisy count (at least 1), half of the share each.

    Returns a Series labelled by column, as `DataFrame.mean`. ``columns`` and ``split`` as in `sum`.
    """
    chosen = _columns(protected, columns, "mean")
    quantities = tuple(quantity(column, "mean") for column in chosen)
    call = _Call("mean", chosen, epsilon, delta, mechanism, rng)
    return _series(protected, _means(protected, quantities, _weights(chosen, split)), call)


def _means(protected: Protected, quantities: Any, weights: Any) -> Statistic:
    rows = protected.scope.direct([q.column for q in quantities])
    if rows is None:
        return Means(quantities, weights, protected.scope)
    return Direct("mean", quantities, weights, protected.scope, rows)


def proportion(
    protected: Protected,
    column: Hashable,
    value: Any = True,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    rng: RandomState = None,
) -> pd.Series[Any]:
    """The share of records whose ``column`` holds the declared label ``value``, among those without null.

    Returns a Series of one number, labelled by ``value`` under the column's name.
    """
    chosen = _columns(protected, column, "proportion")
    if len(chosen) != 1:
        raise ParameterError("'proportion' takes one column and one label.")
    quantities = (quantity(chosen[0], "proportion", value=value),)
    call = _Call("proportion", chosen, epsilon, delta, mechanism, rng)
    index = pd.Index([value], name=chosen[0].name, tupleize_cols=False)
    return _series(protected, _means(protected, quantities, accounting.shares([1])), call, index=index)


def var(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    split: Split = None,
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Sample variances (divisor n - 1) of columns, nulls left out, values clamped to their bounds.

    With a public number of rows and no nulls: the variance itself, sensitivity R^2 / n. Else: noisy
    sums of centred values and squares over a noisy count, a third of the share each. The noise may
    make a small variance negative; it is returned as it is.

    Returns a Series labelled by column. ``columns`` and ``split`` as in `sum`.
    """
    chosen = _columns(protected, columns, "var")
    call = _Call("var", chosen, epsilon, delta, mechanism, rng)
    return _series(protected, _variances(protected, chosen, _weights(chosen, split), "var"), call)


def _variances(protected: Protected, chosen: Sequence[Column], weights: Any, method: str) -> Statistic:
    quantities = tuple(quantity(column, method, products=True) for column in chosen)
    rows = protected.scope.direct(chosen)
    if rows is None:
        return Variances(quantities, weights, protected.scope)
    return Direct("var", quantities, weights, protected.scope, rows)


def std(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    split: Split = None,
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Standard deviations: square roots of released variances (`var`), 0 where one is negative.

    Returns a Series labelled by column. ``columns`` and ``split`` as in `sum`.
    """
    chosen = _columns(protected, columns, "std")
    call = _Call("std", chosen, epsilon, delta, mechanism, rng)
    statistic = _variances(protected, chosen, _weights(chosen, split), "std")

    def root(answer: Answer) -> Answer:
        roots = np.sqrt(np.maximum(answer.values, 0.0))
        # to first order error / (2 root), and never more than the root of the error
        error = np.asarray(answer.standard_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(roots > 0, error / (2 * roots), np.inf)
        return Answer(roots, np.minimum(first, np.sqrt(error)), linear=False)

    return _series(protected, statistic, call, transform=root)


def _series(
    protected: Protected,
    statistic: Statistic,
    call: _Call,
    *,
    index: pd.Index[Any] | None = None,
    transform: Callable[[Answer], Answer] | None = None,
) -> pd.Series[Any]:
    answer, measurement = _run(protected, statistic, call)
    if transform is not None:
        answer = transform(answer)
    released = pd.Series(answer.values, index=_names(call.columns) if index is None else index)
    _attach(protected, call, measurement, released, (answer.standard_error, _plus_minus(answer, measurement)))
    return released


def cov(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    rng: RandomState = None,
) -> pd.DataFrame:
    """The sample covariance matrix (divisor n - 1), values clamped to their bounds.

    With a public number of rows and no nulls each of the d(d+1)/2 entries gets an equal share and
    its own sensitivity R1 R2 / n. Else: noisy sums, products and a count, equal shares. A record
    with a null in any column is left out of all entries (pandas leaves it out pair by pair, which
    would need a count and two sums per pair, each paid for). The noise may make the matrix
    indefinite; it is returned as it is.

    Returns a DataFrame labelled by column on both axes, as `DataFrame.cov`.
    """
    return _matrix(protected, columns, _Request("cov", epsilon, delta, mechanism, rng))


def corr(
    protected: Protected,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    rng: RandomState = None,
) -> pd.DataFrame:
    """Pearson correlations made of a released covariance matrix (`cov`), within [-1, 1].

    NaN where a released variance is not positive. Returns a DataFrame, as `DataFrame.corr`.
    """
    return _matrix(protected, columns, _Request("corr", epsilon, delta, mechanism, rng), transform=_correlation)


@dataclass(frozen=True, slots=True)
class _Request:
    statistic: str
    epsilon: Rational
    delta: Rational
    mechanism: MechanismName
    rng: RandomState

    def call(self, columns: tuple[Column, ...], by: tuple[Column, ...] = ()) -> _Call:
        return _Call(self.statistic, columns, self.epsilon, self.delta, self.mechanism, self.rng, by)


def _correlation(answer: Answer) -> Answer:
    """Correlations of a covariance matrix, with errors to first order."""
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
    return Answer(ratios, error, linear=False)


def _matrix(
    protected: Protected,
    columns: Labels | None,
    request: _Request,
    *,
    by: Labels | None = None,
    transform: Callable[[Answer], Answer] | None = None,
) -> pd.DataFrame:
    method = request.statistic
    chosen = _columns(protected, columns, method)
    keys = () if by is None else _columns(protected, by, method)
    if len(chosen) < 2:
        raise ParameterError(f"{method!r} needs at least two columns.", "use var for one column.")
    _refuse_shared(chosen, keys, method)
    statistic = _covariances(protected, chosen, keys, method)
    call = request.call(chosen, keys)
    answer, measurement = _run(protected, statistic, call)
    if transform is not None:
        answer = transform(answer)
    names = _names(chosen)
    released = pd.DataFrame(answer.values, index=names, columns=names)
    _attach(protected, call, measurement, released, (answer.standard_error, _plus_minus(answer, measurement)))
    return released


def _covariances(
    protected: Protected, chosen: Sequence[Column], keys: tuple[Column, ...], method: str
) -> Statistic:
    quantities = tuple(quantity(column, method, products=True) for column in chosen)
    rows = protected.scope.direct(chosen)
    if rows is not None:
        return Direct("cov", quantities, (), protected.scope, rows, keys)
    if keys:
        return PooledCovariance(quantities, keys, protected.scope, matrix=True)
    return Covariance(quantities, protected.scope)


def _refuse_shared(chosen: Sequence[Column], keys: Sequence[Column], method: str) -> None:
    if {column.name for column in chosen} & {key.name for key in keys}:
        raise ParameterError(f"{method!r} got a column both as a value and as a key.")
    if keys:
        _check_cells(keys, method)


def pooled_var(
    protected: Protected,
    columns: Labels | None = None,
    *,
    by: Labels,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    rng: RandomState = None,
) -> pd.Series[Any]:
    """Pooled within-group variances: sums of squares about group means over (n - J), J declared groups.

    With a public number of rows and no nulls: sensitivity R^2 / (n - J), also where a replaced
    record changes its group. Else: noisy counts and sums per group and noisy totals of squares.
    A declared group without records counts in J, because which groups are empty is private.

    Returns a Series labelled by column.
    """
    keys = _columns(protected, by, "pooled_var")
    names = {key.name for key in keys}
    chosen = _columns(protected, columns, "pooled_var")
    if columns is None:
        chosen = tuple(column for column in chosen if column.name not in names)
    _refuse_shared(chosen, keys, "pooled_var")
    quantities = tuple(quantity(column, "pooled_var", products=True) for column in chosen)
    rows = protected.scope.direct(chosen)
    statistic: Statistic
    if rows is None:
        statistic = PooledCovariance(quantities, keys, protected.scope, matrix=False)
    else:
        weights = accounting.shares([1] * len(chosen))
        statistic = Direct("var", quantities, weights, protected.scope, rows, keys)
    return _series(protected, statistic, _Call("pooled_var", chosen, epsilon, delta, mechanism, rng, keys))


def pooled_cov(
    protected: Protected,
    columns: Labels,
    *,
    by: Labels,
    epsilon: Rational,
    delta: Rational = 0,
    mechanism: MechanismName = "laplace",
    rng: RandomState = None,
) -> pd.DataFrame:
    """The pooled within-group covariance matrix, as `pooled_var`, entries as in `cov`.

    With a public number of rows: the sensitivities of `pdprivacy.sensitivity.pooled_cov`, for
    groups that belong to the record.
    """
    return _matrix(protected, columns, _Request("pooled_cov", epsilon, delta, mechanism, rng), by=by)


# ------------------------------------------------------------------ by group


@dataclass(frozen=True)
class GroupBy:
    """Releases per declared key; each call is charged once, because the groups are disjoint.

    Every declared combination of keys is there, the empty ones too. Under "replace_one" a record
    may move from one group to another, so sensitivities are those of two groups.
    """

    protected: Protected
    keys: tuple[Column, ...]

    def _call(self, request: _Request, columns: tuple[Column, ...]) -> _Call:
        call = request.call(columns, self.keys)
        return call

    def count(
        self,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "geometric",
        rng: RandomState = None,
    ) -> pd.Series[Any]:
        """Records per key, as a Series named "count" (as `DataFrameGroupBy.size`)."""
        call = _Request("count", epsilon, delta, mechanism, rng).call((), self.keys)
        statistic = Cells(self.keys, self.protected.scope, "groupby")
        answer, measurement = _run(self.protected, statistic, call)
        released = pd.Series(
            _counts(answer.values, mechanism), index=_index(self.keys, "groupby"), name="count"
        )
        errors = answer.standard_error, _plus_minus(answer, measurement)
        _attach(self.protected, call, measurement, released, errors)
        return released

    def _moments(self, kind: str, columns: Labels | None, split: Split, request: _Request) -> pd.DataFrame:
        names = {key.name for key in self.keys}
        chosen = _columns(self.protected, columns, kind)
        if columns is None:
            chosen = tuple(column for column in chosen if column.name not in names)
        _refuse_shared(chosen, self.keys, kind)
        quantities = tuple(
            quantity(column, kind, centered=kind != "sum", products=kind == "var") for column in chosen
        )
        statistic = GroupedMoments(kind, quantities, _weights(chosen, split), self.keys, self.protected.scope)
        call = request.call(chosen, self.keys)
        answer, measurement = _run(self.protected, statistic, call)
        released = pd.DataFrame(
            answer.values, index=_index(self.keys, "groupby"), columns=_names(chosen)
        )
        errors = answer.standard_error, _plus_minus(answer, measurement)
        _attach(self.protected, call, measurement, released, errors)
        return released

    def sum(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "laplace",
        split: Split = None,
        rng: RandomState = None,
    ) -> pd.DataFrame:
        """Sums per key: a DataFrame of keys by columns."""
        return self._moments("sum", columns, split, _Request("sum", epsilon, delta, mechanism, rng))

    def mean(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "laplace",
        split: Split = None,
        rng: RandomState = None,
    ) -> pd.DataFrame:
        """Means per key: centred noisy sums over noisy counts, a DataFrame of keys by columns."""
        return self._moments("mean", columns, split, _Request("mean", epsilon, delta, mechanism, rng))

    def var(
        self,
        columns: Labels | None = None,
        *,
        epsilon: Rational,
        delta: Rational = 0,
        mechanism: MechanismName = "laplace",
        split: Split = None,
        rng: RandomState = None,
    ) -> pd.DataFrame:
        """Sample variances per key by noisy sums, a DataFrame of keys by columns."""
        return self._moments("var", columns, split, _Request("var", epsilon, delta, mechanism, rng))


def groupby(protected: Protected, by: Labels) -> GroupBy:
    """Declared groups for ``count``, ``sum``, ``mean`` and ``var``, each charged once.

    Raises DeclarationError for a key without declared cells.
    """
    keys = _columns(protected, by, "groupby")
    _check_cells(keys, "groupby")
    return GroupBy(protected, keys)


# ------------------------------------------------------------------ transforms, and the curator's own


def query(protected: Protected, expr: str) -> pd.DataFrame:
    """A protected frame of the records that meet a declared condition; costs nothing by itself.

    The grammar of `DataFrame.query` cut down to what looks at one record: comparisons of declared
    columns with constants, ``and``, ``or``, ``not``, ``in``, ``.isna()``. The domain is narrowed
    accordingly. The number of rows that meet it is private, whatever was public before.

    Raises QueryError for everything else, with the reason.
    """
    return restrict(protected, expr)


def quality(protected: Protected) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: values clipped, null and unseen, and records dropped, per column.

    Counted at protection, exact and without noise: not for release.
    """
    return protected.quality.copy()


def dr_ha(
    protected: Protected,
    by: Labels,
    sensitive: Hashable,
    epsilon: Rational | Sequence[Rational],
    mechanism: MechanismName = "laplace",
    *,
    delta: Rational = 0,
    weights: Literal["records", "cells"] = "records",
) -> float | pd.Series[Any]:
    """CONFIDENTIAL, for the curator: the exact local homogeneity-attack disclosure risk of a table.

    The probability that a cell of the quasi-identifiers ``by`` shows one single label of
    ``sensitive`` after noise, and that some of its records hold it; averaged over non-empty cells
    (``weights="cells"``) or over their records. Computed from the confidential counts for the noise
    that the table would get at each ``epsilon``: nothing is charged, and nothing of it may be
    released.

    Returns a float for one epsilon, a Series indexed by epsilon for several. Source: Liu, Zhao
    (2023), Definition 6, exact for heterogeneous cells too.

    Raises ParameterError, DeclarationError, TableTooLargeError (above 1e8 cells).
    """
    rows, top = _columns(protected, by, "dr_ha"), _columns(protected, sensitive, "dr_ha")
    if weights not in ("records", "cells"):
        raise ParameterError(f"'weights' must be 'records' or 'cells' (got {weights!r}).")
    if len(top) != 1 or top[0].name in {column.name for column in rows}:
        raise ParameterError("'sensitive' must be one column that is not in 'by'.")
    _check_cells((*rows, *top), "dr_ha")
    many = isinstance(epsilon, list | tuple | np.ndarray | pd.Index | pd.Series)
    levels = list(epsilon) if many else [epsilon]  # type: ignore[arg-type]
    l1, l2_squared = protected.scope.cells()
    noises: list[Any] = []
    for level in levels:
        cost = loss(level, delta)
        if mechanism == "gaussian":
            noises.append(Gaussian(cost.epsilon, cost.delta, math.sqrt(l2_squared)))
        elif mechanism in ("laplace", "geometric"):
            noises.append((Laplace if mechanism == "laplace" else Geometric)(cost.epsilon, l1))
        else:
            raise ParameterError(
                f"'mechanism' must be one of 'laplace', 'gaussian', 'geometric' (got {mechanism!r})."
            )
    counts = protected.engine.table((*rows, *top), "dr_ha").reshape(-1, top[0].cells("dr_ha"))
    risks = [risk.local_risk(counts, noise.cdf, average=weights) for noise in noises]
    if not many:
        return float(risks[0])
    index = pd.Index([float(loss(level).epsilon) for level in levels], name="epsilon")
    return pd.Series([float(value) for value in risks], index=index, name="dr_ha (confidential)")


def _released_risk(counts: Floats, measurement: Measurement) -> dict[str, Any] | None:
    """The expected risk estimated from released counts alone, or None where none are positive."""
    seen = np.maximum(np.rint(counts), 0).astype(np.int64)
    if not seen.any():
        return None
    cdf = measurement.mechanisms[0].cdf
    return {
        "measure": "expected",
        "source": "released counts",
        "by_cells": float(risk.expected_risk(seen, cdf, average="cells")),
        "by_records": float(risk.expected_risk(seen, cdf, average="records")),
    }
