"""Sums, means and variances, several of them as one release, and their pivot tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from pdprivacy import releases
from pdprivacy.checks import flag
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.request import Options
from pdprivacy.core.gate.spec import (
    DEFAULTS,
    AnswerLabels,
    Call,
    Release,
    Split,
    cell_index,
    columns_of,
    name_index,
    pair_of,
    passed_on,
    refuse_bounds,
    refuse_shared,
    weighted_columns,
    weights_of,
    with_noise_keywords,
)
from pdprivacy.core.privacy import Rational
from pdprivacy.core.statistics import (
    PIECES,
    Direct,
    Moments,
    Scope,
    Statistic,
    Sums,
    Weighted,
    deviations_of,
    indicator,
    quantity,
    weight_of,
)
from pdprivacy.core.statistics.interface import PRODUCT_BITS, Quantity
from pdprivacy.core.statistics.sums import Layout
from pdprivacy.declaration.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.hints.examples import EXAMPLES, Example
from pdprivacy.releases.margins import below, margin_label, with_all, with_margins_of_groups
from pdprivacy.releases.publish import RiskOf, release_of
from pdprivacy.releases.results import Result
from pdprivacy.types import Floats, Labels


@with_noise_keywords("laplace")
def sum(  # noqa: A001
    protected: Facts,
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
            quantity(column, "sum", centered=scope.complete_rows(column) is not None) for column in chosen
        )
        statistic: Statistic = Sums(quantities, shares, scope)
    else:
        quantities = tuple(quantity(column, "sum", centered=False, products=True) for column in chosen)
        statistic = weighted(scope, "sum", quantities, shares, weight)
    return release_of(protected, call, statistic, AnswerLabels(name_index(chosen)))


@with_noise_keywords("laplace")
def mean(
    protected: Facts,
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
    return release_of(protected, call, statistic, AnswerLabels(name_index(chosen)))


def weighted(
    scope: Scope,
    kind: Literal["sum", "mean"],
    quantities: tuple[Quantity, ...],
    shares: tuple[Fraction, ...],
    weight: Column,
    keys: tuple[Column, ...] = (),
) -> Statistic:
    """The weighted sums or means of these quantities, per declared group of ``keys``."""
    kinds = ((kind,),) * len(quantities)
    return Weighted(kinds, quantities, shares, weight_of(weight, kind, bits=PRODUCT_BITS), scope, keys)


def _moments(
    protected: Facts, kind: Literal["mean", "var"], quantities: Any, weights: Any, call: Call
) -> Statistic:
    """Means or variances: weighted, exact where the number of rows is public, or of noisy sums and counts."""
    if call.weights is not None:
        return weighted(protected.scope, "mean", quantities, weights, call.weights)
    rows = protected.scope.direct_rows(call.columns, call.statistic, 1 if kind == "mean" else 2)
    if rows is None:
        return Moments(((kind,),) * len(weights), quantities, weights, protected.scope)
    return Direct(kind, quantities, weights, protected.scope, rows)


@with_noise_keywords("laplace")
def proportion(
    protected: Facts,
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
    risk_of = risk_of_groups(protected, call, statistic)
    return release_of(protected, call, statistic, AnswerLabels(index), risk=risk_of)


@with_noise_keywords("laplace")
def var(
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Sample variances (divisor n - 1) of columns, nulls left out, values clamped to their bounds.

    With a public number of rows and no nulls: the variance itself, sensitivity R^2 / n. Else: noisy
    sums of centred values and squares over a noisy count, a third of the share each. By default a
    number that the noise made negative is 0, and at most the largest possible variance is returned
    (``bounding``).

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
    return release_of(protected, call, statistic, AnswerLabels(name_index(chosen)))


def _variances(protected: Facts, weights: Any, call: Call) -> Statistic:
    quantities = tuple(quantity(column, call.statistic, products=True) for column in call.columns)
    return _moments(protected, "var", quantities, weights, call)


@with_noise_keywords("laplace")
def std(
    protected: Facts,
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
    call = replace(call, bounds=_squared(call.bounds))
    roots = partial(Result.transformed, transform=deviations_of)
    return release_of(protected, call, statistic, AnswerLabels(name_index(chosen)), roots)


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


# ---------------------------------------------------------------- several statistics as one release

SELECTIONS = ("max", "median", "min", "nunique", "quantile")
"""Statistics that are not made of sums; `agg` offers each by itself."""

RANKS = {"min": 0, "median": Fraction(1, 2), "max": 1}
"""Selections that are quantiles, of which `agg` takes a list, too."""

Selection: TypeAlias = Literal["max", "median", "min", "nunique", "quantile"]
Aggregate: TypeAlias = Literal["count", "sum", "mean", "var", "std"]
Aggregates: TypeAlias = (
    Aggregate | Sequence[Aggregate | Selection] | Mapping[Any, Aggregate] | Mapping[Any, Sequence[Aggregate]]
)
Kinds: TypeAlias = tuple[tuple[str, ...], ...]


def kinds_asked(
    func: Any, argument: str = "func", hint: str | None = None, *, grouped: bool = False
) -> tuple[str, ...]:
    """Return the statistics of one name or a list of names; raise ParameterError for unknown names."""
    names = [func] if isinstance(func, str) else list(func) if isinstance(func, list | tuple) else []
    wrong = [name for name in names or [func] if not isinstance(name, str) or name not in PIECES]
    if wrong and isinstance(wrong[0], str) and wrong[0] in SELECTIONS:
        raise ParameterError(
            f"{argument!r} must be one of {', '.join(map(repr, PIECES))}, which are made of sums; "
            f"{wrong[0]!r} is a release of its own.",
            hint or Example((OF_GROUPS if grouped else TOGETHER).format(wrong[0])),
        )
    if wrong:
        raise ParameterError(
            f"{argument!r} must be one of {', '.join(map(repr, PIECES))}, or a list of them "
            f"(got {got(wrong[0])}).",
            hint or f'{argument}=["mean", "std"]; a mode is a release of its own.',
        )
    if len(set(names)) < len(names):
        raise ParameterError(f"{argument!r} has a statistic twice.")
    return tuple(names)


TOGETHER = (
    'private.dp.plan_releases([("mean", "age", {{"epsilon": 0.1}}), ("{}", "age", {{"epsilon": 0.1}})], '
    'accounting="basic").release()'
)
"""Two releases for one charge."""

OF_GROUPS = 'private.dp.groupby("region").{}("age", epsilon=0.1)'


def selection_of(func: Any, columns: Labels | None) -> tuple[str, Any] | None:
    """Return the selection that `agg` is called with and its columns; None for any other call."""
    if isinstance(func, Mapping) and func and columns is None:
        names = [*func.values()]
        if all(isinstance(name, str) and name == names[0] for name in names):
            func, columns = names[0], [*func]
    return (func, columns) if isinstance(func, str) and func in SELECTIONS else None


def selection_options(
    name: str, split: Split, noise: Mapping[str, Any], weights: Hashable | None = None
) -> dict[str, Any]:
    """Return the keywords of a selection by `agg`; ParameterError for those that it does not take."""
    if weights is not None and name not in ("median", "quantile"):
        raise ParameterError(f"'agg' takes no 'weights' with {name!r}.", EXAMPLES[name])
    defaults = {**DEFAULTS, "mechanism": "laplace"}
    weighing = {} if weights is None else {"weights": weights}
    given = {key: value for key, value in noise.items() if value != defaults.get(key)}
    for key in given:
        if key not in ("delta", "mechanism", "releases", "rng", "release_id"):
            raise ParameterError(
                f"'agg' takes no {key!r} with {name!r}, which is not made of sums.", EXAMPLES[name]
            )
    return {"split": split, **weighing, **given}


def asked_of(
    protected: Facts, func: Any, columns: Labels | None, keys: Sequence[Column], method: str
) -> tuple[tuple[Column, ...], Kinds, bool]:
    """Return the columns to aggregate, the statistics of each, and whether each has one single name."""
    if isinstance(func, Mapping):
        if columns is not None or not func:
            raise ParameterError(
                "A mapping for 'agg' must name the columns itself.",
                Example('agg({"age": "mean"}, epsilon=0.1)'),
            )
        chosen = columns_of(protected, list(func), method)
        each = [func[column.name] for column in chosen]
        kinds = tuple(kinds_asked(statistic, grouped=bool(keys)) for statistic in each)
        return chosen, kinds, all(isinstance(statistic, str) for statistic in each)
    chosen = columns_of(protected, columns, method, keys)
    return chosen, (kinds_asked(func, grouped=bool(keys)),) * len(chosen), isinstance(func, str)


def moments_of(
    protected: Facts,
    chosen: Sequence[Column],
    kinds: Kinds,
    split: Split,
    keys: tuple[Column, ...],
    method: str,
) -> Moments:
    """Return the statistics of each column per group; without keys, all records are one group."""
    refuse_shared(chosen, keys, method)
    quantities = tuple(
        quantity(column, method, centered=own != ("sum",), products=not {"var", "std"}.isdisjoint(own))
        for column, own in zip(chosen, kinds, strict=True)
    )
    return Moments(kinds, quantities, weights_of(chosen, split), protected.scope, keys)


def weighted_labels(
    protected: Facts, func: Any, columns: Any, weights: Hashable | None, keys: Sequence[Column]
) -> tuple[Any, Column | None]:
    """Return the columns of `agg` without that of the weights, and the column of the weights."""
    if weights is None:
        return columns, None
    if isinstance(func, Mapping):
        return columns, weighted_columns(protected, [*func], weights, "agg", keys)[1]
    chosen, weight = weighted_columns(protected, columns, weights, "agg", keys)
    return [column.name for column in chosen], weight


WEIGHTED = ("count", "sum", "mean")
"""Statistics that `agg` makes of weighted records."""


def aggregates_of(
    protected: Facts,
    chosen: Sequence[Column],
    kinds: Kinds,
    split: Split,
    keys: tuple[Column, ...],
    method: str,
    weight: Column | None,
) -> Moments | Weighted:
    """Return the statistics of each column per group, as `moments_of`, or those of weighted records."""
    if weight is None:
        return moments_of(protected, chosen, kinds, split, keys, method)
    refuse_shared((*chosen, weight), keys, method)
    wrong = [kind for own in kinds for kind in own if kind not in WEIGHTED]
    if wrong:
        raise ParameterError(
            f"'weights' of 'agg' are for {', '.join(map(repr, WEIGHTED))} (got {wrong[0]!r}).",
            "leave weights or the statistic out.",
        )
    quantities = tuple(
        quantity(column, "agg", centered=own != ("sum",), products=True)
        for column, own in zip(chosen, kinds, strict=True)
    )
    of_weights = weight_of(weight, "agg", bits=PRODUCT_BITS)
    return Weighted(kinds, quantities, weights_of(chosen, split), of_weights, protected.scope, keys)


@with_noise_keywords("laplace")
def agg(
    protected: Facts,
    func: Aggregates | Selection | Mapping[Any, Selection],
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[Any]:
    """Release several statistics of columns for one charge and in one pass, as `DataFrame.agg`.

    ``func``: a statistic ("count", "sum", "mean", "var" or "std"), a list of statistics, or a mapping from
    columns to either. ``columns`` (all numeric columns if None) and ``split`` as in `sum`. Or one of
    "median", "min", "max", "quantile" and "nunique" for all columns, which is the release of that name; or a
    list of "min", "median" and "max", which are quantiles with equal shares of the epsilon.

    All statistics of a column are computed from one set of noisy numbers with equal shares of its epsilon: a
    count, a sum, a centred sum and a centred sum of squares, as far as they are needed. So "mean", "var" and
    "std" together cost the same as "std". One statistic for all columns, given by its name, is the release of
    that name; its noise is Laplace by default, for counts, too.

    ``weights``: the label of a declared column of numbers of at least 0, for "count", "sum" and "mean" (of
    the records that have a value and a weight): sums of weights, and sums and means as in `sum` and `mean`;
    alone, "median" takes them, too.

    Returns a Series labelled by column if each column has one statistic, given by name; else a DataFrame of
    statistics by columns, with NaN where a mapping leaves a statistic out. ``bounds`` are accepted only for
    one statistic for all columns, given by its name.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.agg(["mean", "std"], epsilon=0.5, rng=1).round(1)
           age
    mean  41.8
    std    9.6
    """
    if (selection := selection_of(func, columns)) is not None:
        name, labels = selection
        select: Callable[..., Release[Any]] = getattr(releases, name)
        options = selection_options(name, split, noise, weights)
        return select(protected, labels, epsilon=epsilon, **options)
    if isinstance(func, list) and func and all(isinstance(name, str) and name in RANKS for name in func):
        if len(set(func)) < len(func):
            raise ParameterError("'func' has a statistic twice.")
        quantiles = [RANKS[name] for name in func]
        options = selection_options("quantile", split, noise, weights)
        ranked: Release[Any] = releases.quantile(protected, columns, quantiles, epsilon=epsilon, **options)
        return replace(ranked, labels=replace(ranked.labels, index=pd.Index(func)))
    columns, weight = weighted_labels(protected, func, columns, weights, ())
    chosen, kinds, by_name = asked_of(protected, func, columns, (), "agg")
    alone = by_name and len(set(kinds)) == 1
    if alone and (weight is None or kinds[0][0] in ("sum", "mean")):
        labels = [column.name for column in chosen]
        weighing = {} if weight is None else {"weights": weights}
        verb: Callable[..., Release[Any]] = getattr(releases, kinds[0][0])
        return verb(protected, labels, epsilon=epsilon, split=split, **weighing, **passed_on(noise))
    call = Call.of("agg", epsilon, noise, chosen, weights=weight)
    return _aggregated(protected, call, kinds, split, by_name=by_name)


@with_noise_keywords("laplace")
def describe(
    protected: Facts,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Release counts without nulls, means and standard deviations of columns, as in `DataFrame.describe`.

    All are computed from one set of noisy parts: counts, centred sums and sums of squares, each with a third
    of the column's share. Where the number of rows is private, `std` alone would cost as much; where it is
    public, `mean` and `std` by themselves have smaller errors. Extremes and quartiles are not sums: `min`,
    `max` and `quantile` select them, at a cost of their own.

    Returns a DataFrame with rows "count", "mean" and "std". ``columns`` and ``split`` as in `sum`. `describe`
    takes no ``bounds``, because they would apply to one of its statistics only: pass them to `count`, `mean`
    or `std`.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.describe("age", epsilon=0.5, rng=1).round(1)
             age
    count  999.3
    mean    41.8
    std      9.6
    """
    chosen = columns_of(protected, columns, "describe")
    kinds = (("count", "mean", "std"),) * len(chosen)
    return _aggregated(protected, Call.of("describe", epsilon, noise, chosen), kinds, split)


def _aggregated(
    protected: Facts, call: Call, kinds: Kinds, split: Split, *, by_name: bool = False
) -> Release[Any]:
    """Return the release of a table of statistics by columns, or of a Series by column if ``by_name``."""
    refuse_bounds(call)
    chosen, names = call.columns, name_index(call.columns)
    statistic = aggregates_of(protected, chosen, kinds, split, (), call.statistic, call.weights)
    if by_name:
        return release_of(protected, call, statistic, AnswerLabels(names))
    rows = list(dict.fromkeys(kind for own in kinds for kind in own))
    positions = [(rows.index(kind), column) for column, kind in statistic.layout.numbers]

    def table(numbers: Floats) -> Floats:
        cells = np.full((len(rows), len(chosen)), np.nan)
        cells[tuple(np.transpose(positions))] = numbers
        return cells

    labels = AnswerLabels(pd.Index(rows), names)
    return release_of(protected, call, statistic, labels, partial(Result.arranged, arrange=table))


@with_noise_keywords("laplace")
def pivot_table(
    protected: Facts,
    values: Labels | None = None,
    index: Labels | None = None,
    columns: Labels | None = None,
    aggfunc: Aggregate | Sequence[Aggregate] = "mean",
    *,
    epsilon: Rational,
    split: Split = None,
    margins: bool = False,
    margins_name: str | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Release a statistic per declared cell of ``index`` by ``columns``, as `pandas.pivot_table`.

    The table includes empty cells. It holds the grouped statistic of `groupby` by the keys of both sides, at
    the same cost.

    Parameters
    ----------
    values : a label, a list of labels, or None for all numeric columns except the keys.
    index, columns : the keys of the rows, at least one, and the keys of the columns.
    aggfunc : "count", "sum", "mean", "var" or "std", or a list of them, as in `agg`.
    split : weights by column of values for sharing ``epsilon``; equal by default.
    margins : whether to add the statistics of each row, each column and all records, under ``margins_name``
        (by default "All", which is no declared label). They are made of the sums of the noisy numbers of the
        cells, at no further cost, and have the noise of all these cells: a `groupby` by the rows alone has
        less. Not with a ``bounding`` that biases, as biases add up.

    Returns a DataFrame. Its column labels are those of ``columns``, below each of the values if ``values`` is
    a list, and below each statistic if ``aggfunc`` is a list.

    Raises DeclarationError for a key without declared cells.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> flag = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [31, 54] * 500, "ill": [True, False] * 500, "member": True})
    >>> schema = pa.DataFrameSchema({"age": age, "ill": flag, "member": flag})
    >>> private = frame.dp.protect(schema, epsilon=5)
    >>> private.dp.pivot_table("age", "ill", "member", aggfunc="sum", epsilon=5, rng=1).round()
    member  False    True
    ill
    False    39.0  27049.0
    True     18.0  15489.0
    """
    if index is None:
        raise ParameterError(
            "'pivot_table' needs 'index', the keys of its rows.",
            EXAMPLES["pivot_table"],
        )
    rows = columns_of(protected, index, "pivot_table")
    tops = () if columns is None else columns_of(protected, columns, "pivot_table")
    keys = (*rows, *tops)
    if len({key.name for key in keys}) < len(keys):
        raise ParameterError("'index' and 'columns' share a column.")
    aggregates, name = kinds_asked(aggfunc, "aggfunc", grouped=True), margin_label(margins_name)
    chosen = columns_of(protected, values, "pivot_table", keys)
    call = Call.of(aggregates[0] if isinstance(aggfunc, str) else "agg", epsilon, noise, chosen, keys)
    call = replace(call, margins=flag(margins, "margins"))
    if not isinstance(aggfunc, str) or tops or margins:
        refuse_bounds(call)
    if margins and call.request.bounding is not None:
        raise ParameterError(
            "'margins' are sums over cells, in which the biases of bounded numbers add up.",
            "leave bounding or margins out.",
        )
    statistic = moments_of(protected, chosen, (aggregates,) * len(chosen), split, keys, "pivot_table")
    left = cell_index(rows, "groupby")
    listed = not tops or values is None or isinstance(values, list | pd.Index)
    heads = [] if isinstance(aggfunc, str) else [pd.Index(aggregates)]
    heads += [name_index(chosen)] if listed else []
    top, shape = _top_index(heads, tops), (len(left), math.prod(key.cells("groupby") for key in tops))
    if margins:
        left = with_all(left, name)
        top = below(heads, with_all(cell_index(tops, "groupby"), name)) if tops else top

    def table(numbers: Floats) -> Floats:
        cells = numbers.reshape(len(left), -1, len(chosen), len(aggregates))
        return cells.transpose(0, 3, 2, 1).reshape(len(left), -1)

    def arranged(result: Result) -> Result:
        if margins:
            result = with_margins_of_groups(result, statistic, shape, columns=bool(tops))
        return result.arranged(table)

    labels, risk_of = AnswerLabels(left, top), risk_of_groups(protected, call, statistic)
    return release_of(protected, call, statistic, labels, arranged, risk=risk_of)


def risk_of_groups(protected: Facts, call: Call, statistic: Statistic) -> RiskOf | None:
    """Return the disclosure risk of the counts of each group, which means and deviations need, too.

    It is None if no sensitive column informs the cells, or no other column does.
    """
    roles = {column.role for column in (*call.by, *call.columns)} | {*protected.decided_by.values()}
    if "sensitive" not in roles:
        return None
    from pdprivacy.risk import released_risk

    layout = statistic.layout if isinstance(statistic, Moments) else None
    shares = [column for at, column in enumerate(call.columns) if _is_share(column, at, call, layout)]
    if shares:
        reason, columns = released_risk.SHARES, (*call.by, *shares)
        return released_risk.CountRisk.of(protected, call, columns, statistic, (), reason)
    counts = [] if layout is None else [at for (_, piece), at in layout.places.items() if piece == "count"]
    reason = "" if counts else released_risk.NO_COUNTS
    return released_risk.CountRisk.of(protected, call, call.by, statistic, counts, reason)


def _is_share(column: Column, position: int, call: Call, layout: Layout | None) -> bool:
    """Return whether the statistics of a column are shares of records with a sensitive label."""
    if column.role != "sensitive" or call.statistic == "proportion":
        return column.role == "sensitive"
    counted = layout is not None and {kind for at, kind in layout.numbers if at == position} == {"count"}
    return not counted and (column.kind == "boolean" or (column.lower, column.upper) == (0, 1))


def _top_index(heads: Sequence[pd.Index[Any]], keys: Sequence[Column]) -> pd.Index[Any]:
    """Return the column labels of a pivot table: levels of its statistics and values, if given, and keys."""
    levels = [*heads, *(cell_index([key], "groupby") for key in keys)]
    if len(levels) == 1:
        return levels[0]
    return pd.MultiIndex.from_product(levels)
