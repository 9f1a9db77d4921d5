"""Releases per declared key."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack, cast, overload

import numpy as np
import pandas as pd

from pdprivacy.checks import has_hash
from pdprivacy.core.gate.execute import executed
from pdprivacy.core.gate.facts import Facts
from pdprivacy.core.gate.parts import transformed
from pdprivacy.core.gate.request import PROJECT, Options
from pdprivacy.core.gate.spec import (
    AnswerLabels,
    Call,
    Release,
    Split,
    cell_index,
    check_cells,
    columns_of,
    name_index,
    passed_on,
    refuse_bounds,
    refuse_shared,
    weighted_columns,
    weights_of,
    with_noise_keywords,
)
from pdprivacy.core.privacy import Rational
from pdprivacy.core.statistics import Distinct, Moments, Statistic, indicator, quantity
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.errors import (
    ArgumentError,
    OpaqueFrameError,
    ParameterError,
    short_traceback,
    short_tracebacks,
)
from pdprivacy.hints.examples import GROUPS, Example, calls
from pdprivacy.hints.suggestions import unknown, with_hints
from pdprivacy.releases.derivations import PERIODS, complete_records, periods
from pdprivacy.releases.histograms import labels_counted
from pdprivacy.releases.moments import (
    Aggregates,
    Selection,
    aggregates_of,
    asked_of,
    kinds_asked,
    risk_of_groups,
    selection_of,
    selection_options,
    weighted,
    weighted_labels,
)
from pdprivacy.releases.publish import release_of
from pdprivacy.releases.results import Result
from pdprivacy.releases.selection import (
    QuantileOptions,
    SelectionOptions,
    label_choices,
    of_labels,
    of_numbers,
    ranked,
    refuse_numbers,
    selected,
)
from pdprivacy.releases.tables import cells_of, noise_of_cells, whole_counts
from pdprivacy.risk.released_risk import CountRisk
from pdprivacy.types import Labels

if TYPE_CHECKING:
    from pdprivacy.signatures import GroupMethods, SeriesGroupMethods
else:
    GroupMethods = SeriesGroupMethods = object


NAMED = Example('private.dp.groupby("region").agg(mean_age=("age", "mean"), epsilon=0.1)')
"""A named aggregation."""

_GROUPS = 'private.dp.groupby("region")'


@short_tracebacks
@dataclass(frozen=True, repr=False)
class DeclaredGroups:
    """Declared groups of a protected frame; reading the records of each group is refused."""

    _protected: Facts = field(repr=False)
    keys: tuple[Column, ...]
    selected: Labels | None = None

    def __getitem__(self, columns: Any) -> Any:
        """The same groups, for these columns: ``groupby("region")["age"].mean(...)``."""
        columns_of(self._protected, [None] if columns is None else columns, "groupby")
        return replace(self, selected=columns)

    # without them Python asks `__getitem__` for 0, 1, 2 and so on

    def __iter__(self) -> NoReturn:
        raise self._refused("Iteration")

    def __contains__(self, _: object) -> NoReturn:
        raise self._refused("'in'")

    def __len__(self) -> int:
        raise self._refused("len()")

    def _refused(self, operation: str) -> OpaqueFrameError:
        """The error for what would read the records of each group."""
        return OpaqueFrameError(
            f"{operation} reads cells, and the groups of a protected frame show none.",
            f"{self._count()} has a row for each declared group.",
        )

    def _declared(self) -> Domain:
        return self._protected.domain

    def _count(self) -> str:
        """The call that counts the records of these groups."""
        return f"private.dp.{self._written()}.count(epsilon=0.1)"

    def _written(self) -> str:
        """The call of these groups."""
        names = [key.name for key in self.keys]
        return f"groupby({(names if len(names) > 1 else names[0])!r})"

    def _columns_to_release(self, columns: Labels | None) -> Labels | None:
        return self.selected if columns is None else columns

    def _as_series(self, columns: Labels | None) -> bool:
        """Whether a release is of one column that was selected by its label, and returned as a Series."""
        selected = self.selected
        return columns is None and selected is not None and not isinstance(selected, list | pd.Index)


@short_tracebacks
@dataclass(frozen=True, repr=False)
class GroupBy(DeclaredGroups, GroupMethods):
    """Releases per declared key; each call is charged once, because the groups are disjoint.

    Every declared combination of keys is there, the empty ones too. Under "replace_one" a record
    may move from one group to another, so sensitivities are those of two groups.
    """

    if not TYPE_CHECKING:  # a type checker refuses unknown names itself

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"'GroupBy' has no attribute {name!r}")
            raise unknown("GroupBy", name, tuple(VERBS_BY_GROUP), _GROUPS)

    @overload
    def __getitem__(self, columns: list[Any] | pd.Index[Any]) -> GroupBy: ...
    @overload
    def __getitem__(self, columns: Hashable) -> SeriesGroupBy: ...
    def __getitem__(self, columns: Any) -> Any:
        """The same groups, for a list of columns, or for one column, whose releases are Series."""
        chosen = super().__getitem__(columns)
        if chosen._as_series(None):
            return SeriesGroupBy(self._protected, self.keys, columns)
        return GroupBy(self._protected, self.keys, columns)

    def __repr__(self) -> str:
        return f"GroupBy({', '.join(repr(key.name) for key in self.keys)}): {', '.join(VERBS_BY_GROUP)}"


@short_tracebacks
@dataclass(frozen=True, repr=False)
class SeriesGroupBy(DeclaredGroups, SeriesGroupMethods):
    """Releases of one column per declared key, ``groupby("region")["age"].mean(...)``: each is a Series."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"'SeriesGroupBy' has no attribute {name!r}")
            raise unknown("SeriesGroupBy", name, tuple(VERBS_BY_GROUP), _GROUPS)

    def __repr__(self) -> str:
        keys = ", ".join(repr(key.name) for key in self.keys)
        return f"SeriesGroupBy({self.selected!r} by {keys}): {', '.join(VERBS_BY_GROUP)}"


@with_noise_keywords("geometric")
def count(
    groups: DeclaredGroups, *, epsilon: Rational, weights: Hashable | None = None, **noise: Unpack[Options]
) -> Release[pd.Series[Any]]:
    """Count the records per key, as `DataFrameGroupBy.size`; a Series named "count".

    ``weights``: a column whose sums are released instead of counts, as in `private.dp.value_counts`. To count
    the records where a column is not null, use ``agg("count", column, ...)``.
    """
    if groups.selected is not None:
        chosen = columns_of(groups._protected, groups.selected, "count")
        names, verb = [column.name for column in chosen], 'agg("count", '
        if {*names} & {key.name for key in groups.keys}:
            names, verb = [], "count("
        elif any(column.lower is None or column.upper is None for column in chosen):
            verb = "value_counts("  # of labels
        raise ParameterError(
            "'count' counts all records of each group, and takes no column.",
            f"private.dp.{groups._written()}.{verb}{f'{names!r}, ' if names else ''}epsilon=0.1)",
        )
    _, weight = weighted_columns(groups._protected, [key.name for key in groups.keys], weights, "count")
    call = Call.of("count", epsilon, noise_of_cells(noise, weight), (), groups.keys, weights=weight)
    statistic = cells_of(groups._protected.scope, groups.keys, "groupby", weight)
    labels = AnswerLabels(cell_index(groups.keys, "groupby"), name="count")
    risk_of = CountRisk.of(groups._protected, call, groups.keys, statistic)
    return release_of(groups._protected, call, statistic, labels, whole_counts, risk=risk_of)


@with_noise_keywords("geometric")
def size(groups: DeclaredGroups, *, epsilon: Rational, **noise: Unpack[Options]) -> Release[pd.Series[Any]]:
    """Count the records per key, nulls included, as `DataFrameGroupBy.size`; a Series named "count"."""
    return count(replace(groups, selected=None), epsilon=epsilon, **passed_on(noise))


@with_noise_keywords("laplace")
def sum(  # noqa: A001
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Sums of columns per key, a DataFrame of keys by columns.

    ``columns`` (all numeric ones but the keys if None) and ``split`` as in `private.dp.sum`,
    ``weights`` as in `private.dp.sum`.
    """
    return _several(groups, Call.of("sum", epsilon, noise), "sum", columns, split, weights)


@with_noise_keywords("laplace")
def mean(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Means per key: centred noisy sums over noisy counts, a DataFrame of keys by columns.

    ``columns`` (all numeric ones but the keys if None) and ``split`` as in `private.dp.sum`,
    ``weights`` as in `private.dp.mean`.
    """
    return _several(groups, Call.of("mean", epsilon, noise), "mean", columns, split, weights)


@with_noise_keywords("laplace")
def var(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Sample variances per key by noisy sums, a DataFrame of keys by columns.

    ``columns`` (all numeric ones but the keys if None) and ``split`` as in `private.dp.sum`.
    """
    return _several(groups, Call.of("var", epsilon, noise), "var", columns, split)


@with_noise_keywords("laplace")
def std(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Standard deviations per key: square roots of released variances, 0 where one is negative.

    ``columns`` (all numeric ones but the keys if None) and ``split`` as in `private.dp.sum`. Returns a
    DataFrame of keys by columns.
    """
    return _several(groups, Call.of("std", epsilon, noise), "std", columns, split)


@with_noise_keywords("laplace")
def proportion(
    groups: DeclaredGroups,
    column: Hashable = None,
    value: Any = True,
    *,
    epsilon: Rational,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """The share per key of records that hold the declared label ``value`` in ``column``, nulls left out.

    Each is a noisy count over a noisy count. ``weights``: a column of weights; the share of the total weight
    is released instead, as in `private.dp.mean`. Returns a DataFrame of keys by one column, labelled by
    ``value`` under the column's name.
    """
    facts, keys = groups._protected, groups.keys
    chosen, weight = weighted_columns(facts, groups._columns_to_release(column), weights, "proportion", keys)
    if len(chosen) != 1:
        raise ParameterError("'proportion' takes one column and one label.")
    refuse_shared(chosen if weight is None else (*chosen, weight), keys, "proportion")
    quantities = (indicator(chosen[0], "proportion", value, products=weight is not None),)
    shares = weights_of(chosen, None)
    statistic: Statistic = Moments((("mean",),), quantities, shares, facts.scope, keys)
    if weight is not None:
        statistic = weighted(facts.scope, "mean", quantities, shares, weight, keys)
    labels = pd.Index([value], name=chosen[0].name, tupleize_cols=False)
    return _table(groups, statistic, Call.of("proportion", epsilon, noise, chosen, weights=weight), labels)


@with_noise_keywords("laplace")
def describe(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Counts without nulls, means and standard deviations per key, as `DataFrameGroupBy.describe` begins.

    All are computed from one set of noisy numbers, as in `private.dp.describe`. Returns a DataFrame of keys
    by columns and "count", "mean" and "std".
    """
    call = Call.of("describe", epsilon, noise)
    return _several(groups, call, ["count", "mean", "std"], columns, split)


def with_named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `agg` with named aggregations: keywords that are pairs of a column and a statistic."""
    signature = inspect.signature(function)
    named = inspect.Parameter(
        "named", inspect.Parameter.VAR_KEYWORD, annotation="tuple[Hashable, Aggregate | Literal['size']]"
    )

    @functools.wraps(function)
    def method(groups: DeclaredGroups, *args: Any, **kwargs: Any) -> Any:
        pairs = {name: kwargs.pop(name) for name in [*kwargs] if name not in signature.parameters}
        if not pairs:
            return function(groups, *args, **kwargs)
        for name, pair in pairs.items():
            if isinstance(pair, pd.NamedAgg):
                pairs[name] = pair = (pair.column, pair.aggfunc)
            if not isinstance(pair, tuple) or len(pair) != 2 or not has_hash(pair[0]):
                raise ArgumentError(f"'agg' got an unexpected keyword argument {name!r}.", NAMED)
        if (
            args
            or any(kwargs.get(name) is not None for name in ("func", "columns"))
            or groups.selected is not None
        ):
            raise ParameterError("Named aggregations name their columns and statistics themselves.", NAMED)
        return function(groups, pairs, NAMES, **kwargs)

    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), named]
    )
    return method


NAMES: Any = object()
"""In place of the columns of `agg`: its first argument is a mapping of named aggregations."""


@with_named
@with_noise_keywords("laplace")
def agg(
    groups: DeclaredGroups,
    func: Aggregates | Selection | Mapping[Any, Selection] | None = None,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Several statistics per key for one charge and in one pass, as `DataFrameGroupBy.agg`.

    ``func``: a statistic, a list of them, or a mapping from column to either; "count", "sum", "mean", "var"
    and "std". Those of a column are computed from one set of noisy numbers, as in `private.dp.agg`. Or one of
    "median", "min", "max", "quantile" and "nunique" for all columns, which is the release of that name.
    ``columns`` (all numeric ones but the keys if None) and ``split`` as in `private.dp.sum`. ``weights``: a
    column of weights for "count", "sum" and "mean", as in `private.dp.agg`.

    Named aggregations, as ``agg(mean_age=("age", "mean"), n=("age", "size"), epsilon=0.1)``, take the place
    of ``func`` and ``columns``, and name the columns of the result; "size" is the count of a column without
    nulls.

    Returns a DataFrame of keys by columns if each column has one statistic, given by name; else of keys by
    columns and statistics.
    """
    call = Call.of("agg", epsilon, noise)
    if columns is NAMES:
        return _named(groups, call, cast("dict[str, tuple[Any, Any]]", func), split, weights)
    if (selection := selection_of(func, columns)) is not None:
        name, labels = selection
        verbs: dict[str, Callable[..., Release[pd.DataFrame]]]
        verbs = {"max": max, "median": median, "min": min, "nunique": nunique, "quantile": quantile}
        if weights is not None:
            raise ParameterError(
                f"'weights' of 'agg' per key are for 'count', 'sum' and 'mean' (got {name!r}).",
                "leave weights out, or private.dp.median(..., weights=...) of a filter for each key.",
            )
        return verbs[name](groups, labels, epsilon=epsilon, **selection_options(name, split, noise))
    return _several(groups, call, func, columns, split, weights)


def _named(
    groups: DeclaredGroups,
    call: Call,
    pairs: dict[str, tuple[Any, Any]],
    split: Split,
    weights: Hashable | None,
) -> Release[pd.DataFrame]:
    """The release of named aggregations; ``pairs``: the column and the statistic of each name."""
    refuse_bounds(call)
    facts, keys = groups._protected, groups.keys
    labels = list(dict.fromkeys(label for label, _ in pairs.values()))
    chosen, weight = weighted_columns(facts, labels, weights, "agg", keys)
    columns = {column.name: position for position, column in enumerate(chosen)}
    statistics: dict[str, tuple[int, str]] = {}
    for name, (label, kind) in pairs.items():
        column = chosen[columns[label]]
        if isinstance(kind, str) and kind == "size":
            if weight is not None:
                raise ParameterError(
                    "'size' counts records, and 'weights' are for sums of their weights.",
                    f"{name}=({label!r}, 'count')",
                )
            if column.nullable:
                raise ParameterError(
                    f"'size' counts all records, and column {label!r} has declared nulls.",
                    f"{name}=({label!r}, 'count'), or private.dp.{groups._written()}.size(epsilon=0.1)",
                )
            kind = "count"
        own = f"private.dp.{groups._written()}.median({label!r}, epsilon=0.1)"
        hint = f"{name}=({label!r}, 'mean'); a median is a release of its own, {own}"
        (statistic,) = kinds_asked(kind if isinstance(kind, str) else [kind], name, hint)
        if name == "count" and statistic != "count":
            raise ParameterError(
                "A column named 'count' holds counts.", f"mean_{label}=({label!r}, {kind!r})"
            )
        statistics[name] = columns[label], statistic
    kinds = tuple(
        tuple(dict.fromkeys(kind for own, kind in statistics.values() if own == position))
        for position in range(len(chosen))
    )
    moments = aggregates_of(facts, chosen, kinds, split, keys, "agg", weight)
    positions = [moments.layout.numbers.index(pair) for pair in statistics.values()]

    def in_order(result: Result) -> Result:
        return result.arranged(lambda numbers: numbers[:, positions])

    index = pd.Index([*statistics], tupleize_cols=False)
    return _table(groups, moments, replace(call, columns=chosen, weights=weight), index, in_order)


def _several(
    groups: DeclaredGroups,
    call: Call,
    func: Any,
    columns: Labels | None,
    split: Split,
    weights: Hashable | None = None,
) -> Release[pd.DataFrame]:
    """The release of several statistics per key."""
    if weights is not None and call.statistic in ("sum", "mean"):
        return _weighted(groups, call, columns, split, weights)
    facts, method, keys = groups._protected, call.statistic, groups.keys
    series = groups._as_series(columns) and not isinstance(func, Mapping)
    labels, weight = weighted_labels(facts, func, groups._columns_to_release(columns), weights, keys)
    chosen, kinds, by_name = asked_of(facts, func, labels, keys, method)
    statistic = aggregates_of(facts, chosen, kinds, split, keys, method, weight)
    call = replace(call, columns=chosen, weights=weight)
    if by_name and len(set(kinds)) == 1:
        call = replace(call, statistic=kinds[0][0])
    else:
        refuse_bounds(call)
    heads = name_index(chosen)
    if not by_name and series:
        heads = pd.Index(kinds[0])
    elif not by_name:
        heads = pd.MultiIndex.from_tuples(
            [(chosen[position].name, kind) for position, kind in statistic.layout.numbers]
        )
    return _table(groups, statistic, call, heads, series=series and by_name)


def _weighted(
    groups: DeclaredGroups, call: Call, columns: Labels | None, split: Split, weights: Hashable
) -> Release[pd.DataFrame]:
    """The release of weighted sums or means per key."""
    facts, keys = groups._protected, groups.keys
    kind: Literal["sum", "mean"] = "sum" if call.statistic == "sum" else "mean"
    chosen, weight = weighted_columns(facts, groups._columns_to_release(columns), weights, kind, keys)
    assert weight is not None
    refuse_shared((*chosen, weight), keys, kind)
    quantities = tuple(quantity(column, kind, centered=kind != "sum", products=True) for column in chosen)
    statistic = weighted(facts.scope, kind, quantities, weights_of(chosen, split), weight, keys)
    call = replace(call, columns=chosen, weights=weight)
    return _table(groups, statistic, call, name_index(chosen), series=groups._as_series(columns))


def _table(
    groups: DeclaredGroups,
    statistic: Statistic,
    call: Call,
    labels: pd.Index[Any],
    transform: Callable[[Result], Result] | None = None,
    *,
    series: bool = False,
) -> Release[Any]:
    """The release of a table of keys by the numbers of each group; of its one column if ``series``."""
    call, index = replace(call, by=groups.keys), cell_index(groups.keys, "groupby")
    risk_of = risk_of_groups(groups._protected, call, statistic)
    if not series:
        shape = AnswerLabels(index, labels)
        return release_of(groups._protected, call, statistic, shape, transform, risk=risk_of)

    def one_column(result: Result) -> Result:
        column = replace(result, answer=result.answer.arranged(np.ravel))
        return column if transform is None else transform(column)

    shape = AnswerLabels(index, name=labels[0])
    return release_of(groups._protected, call, statistic, shape, one_column, risk=risk_of)


@with_noise_keywords("geometric")
def value_counts(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    normalize: bool = False,
    sort: bool = True,
    dropna: bool = False,
    weights: Hashable | None = None,
    **noise: Unpack[Options],
) -> Release[pd.Series[Any]]:
    """Count the records per key and declared label of ``columns``, as `DataFrameGroupBy.value_counts`.

    ``normalize``: shares of the noisy total of each group, each moved between 0 and 1 (``bounding=None``: it
    is not). ``sort``: largest released count of each group first. ``dropna``: without the null labels of
    ``columns``. The result has every declared combination, the empty ones too. ``weights``: a column whose
    sums are released instead of counts, as in `private.dp.value_counts`.

    Returns a Series named "count" or "proportion", indexed by keys and labels. Sensitivity as
    `private.dp.value_counts`.
    """
    chosen = _columns(groups, columns, "value_counts", needed=True)
    _, weight = weighted_columns(
        groups._protected, [column.name for column in (*groups.keys, *chosen)], weights, "value_counts"
    )
    noise = noise_of_cells(noise, weight)
    call = Call.of("value_counts", epsilon, noise, chosen, groups.keys, weights=weight)
    return labels_counted(groups._protected, call, normalize, sort, dropna)


def _columns(
    groups: DeclaredGroups, columns: Labels | None, method: str, *, needed: bool = False
) -> tuple[Column, ...]:
    """The columns of a release, none of which is a key; where they are not ``needed``, all numeric ones."""
    requested = groups._columns_to_release(columns)
    if needed and requested is None:
        raise ParameterError(f"{method!r} needs a column.", calls(f"{_GROUPS}.", GROUPS)[method])
    chosen = columns_of(groups._protected, requested, method, groups.keys)
    refuse_shared(chosen, groups.keys, method)
    return chosen


@of_labels
def mode(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **options: Unpack[SelectionOptions],
) -> Release[pd.DataFrame]:
    """The most frequent declared label of each column per key, nulls left out, as by `private.dp.mode`.

    All groups together are one charge, because a record more or less changes the counts of one group alone.
    For a group without records any label is equally likely. Returns a DataFrame of keys by columns.
    """
    facts, keys = groups._protected, groups.keys
    chosen = _columns(groups, columns, "mode", needed=True)
    choices = label_choices(facts, "mode", chosen, split, keys=keys)
    for column in chosen:
        check_cells((*keys, column), "mode")
    labels = AnswerLabels(cell_index(keys, "groupby"), name_index(chosen))
    if groups._as_series(columns):
        labels = AnswerLabels(labels.index, name=chosen[0].name)
    return selected(facts, "mode", chosen, choices, epsilon, dict(options), labels)


@of_numbers
def quantile(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    q: Rational | Sequence[Rational] = 0.5,
    *,
    epsilon: Rational,
    split: Split = None,
    interval: bool | float | None = None,
    bounding: Literal["project"] | None = PROJECT,
    **options: Unpack[QuantileOptions],
) -> Release[pd.DataFrame]:
    """Quantiles of numeric columns per key, as by `private.dp.quantile` and `DataFrameGroupBy.quantile`.

    All groups together are one charge, because a record more or less changes the ranks of one group alone.
    For a group without records any number is equally likely. Sensitivity max(q, 1 - q) under "add_remove";
    twice that under "replace_one", where a record may leave a group and come to another one.

    ``columns`` (all numeric ones but the keys if None), ``q`` and ``split`` as in `private.dp.quantile`.
    ``bounding`` as there: the quantiles of each column and group are sorted. ``interval`` as there: for the
    quantile of each group; the groups together cost what one does. Returns a DataFrame of keys by
    columns; for a list of ``q`` indexed by keys and ``q``.

    On frames of other engines than pandas one query reads all groups; it takes memory for each distinct
    number of each group.
    """
    refuse_numbers(groups._protected, columns, f"private.dp.{groups._written()}", groups.selected)
    words = {**options, "split": split, "interval": interval, "bounding": bounding}
    return _ranked(groups, "quantile", columns, q, epsilon, words)


@of_numbers
def median(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    interval: bool | float | None = None,
    **options: Unpack[QuantileOptions],
) -> Release[pd.DataFrame]:
    """Medians of numeric columns per key: the `quantile` of 1/2, with all that is said there.

    Sensitivity of the rank 1/2 under "add_remove", 1 under "replace_one". Returns a DataFrame of keys by
    columns, as `DataFrameGroupBy.median`. ``interval`` as in `quantile`.
    """
    return _ranked(
        groups, "median", columns, Fraction(1, 2), epsilon, {**options, "split": split, "interval": interval}
    )


def _ranked(
    groups: DeclaredGroups,
    statistic: str,
    columns: Labels | None,
    q: Any,
    epsilon: Rational,
    options: dict[str, Any],
) -> Release[pd.DataFrame]:
    """The release of numbers by their rank in each group."""
    chosen = _columns(groups, columns, statistic)
    series = groups._as_series(columns)
    return ranked(groups._protected, statistic, chosen, q, epsilon, options, groups.keys, series=series)


@of_numbers
def min(  # noqa: A001
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    interval: bool | float | None = None,
    **options: Unpack[QuantileOptions],
) -> Release[pd.DataFrame]:
    """The smallest numbers of numeric columns per key, near a low rank, as by `private.dp.min`.

    In a group with fewer records than this rank, ``attrs["dp"]["error"]["rank"]``, all numbers above its
    records are equally likely. Returns a DataFrame of keys by columns, as `DataFrameGroupBy.min`.
    ``interval`` as in `private.dp.min`.
    """
    return _ranked(groups, "min", columns, 0, epsilon, {**options, "split": split, "interval": interval})


@of_numbers
def max(  # noqa: A001
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    interval: bool | float | None = None,
    **options: Unpack[QuantileOptions],
) -> Release[pd.DataFrame]:
    """The largest numbers of numeric columns per key, near a high rank; see `min`."""
    return _ranked(groups, "max", columns, 1, epsilon, {**options, "split": split, "interval": interval})


@with_noise_keywords("geometric")
def nunique(
    groups: DeclaredGroups,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[pd.DataFrame]:
    """Count the declared labels of each column that occur in each group, without nulls.

    As `DataFrameGroupBy.nunique`, for columns with declared cells. Sensitivity of all groups together: 1
    under "add_remove"; 2 (l1), sqrt 2 (l2) under "replace_one". Returns a DataFrame of int64 (float64 unless
    "geometric") of keys by columns.
    """
    chosen, keys = _columns(groups, columns, "nunique", needed=True), groups.keys
    for column in chosen:
        check_cells((*keys, column), "nunique")
    statistic = Distinct(chosen, weights_of(chosen, split), groups._protected.scope, keys)
    call, series = Call.of("nunique", epsilon, noise, chosen), groups._as_series(columns)
    return _table(groups, statistic, call, name_index(chosen), whole_counts, series=series)


VERBS_BY_GROUP: dict[str, Callable[..., Release[Any]]] = {
    verb.__name__: verb
    for verb in (
        count, size, sum, mean, var, std, proportion, describe, agg, value_counts, nunique, mode, quantile,
        median, min, max,
    )
}  # fmt: skip
"""The releases per key by name; each is a method of `GroupBy`."""

for _name, _verb in VERBS_BY_GROUP.items():
    # a pipeline keeps what it released under the name of the method
    _verb.__qualname__ = f"GroupBy.{_name}"
    for _kind in (GroupBy, SeriesGroupBy):
        setattr(_kind, _name, short_traceback(with_hints(executed(_verb), _GROUPS)))


def groupby(
    protected: Facts, by: Labels | pd.Grouper, *, freq: str | None = None, dropna: bool = False
) -> GroupBy:
    """Group the records by declared keys; a statistic of all groups is charged once.

    Its methods are ``count``, ``size``, ``sum``, ``mean``, ``var``, ``std``, ``proportion``, ``describe``,
    ``agg``, ``value_counts``, ``nunique``, ``mode``, ``quantile``, ``median``, ``min`` and ``max``. Those of
    one column, as ``groupby("region")["age"].mean(...)``, return a Series.

    ``freq`` ("D", "W", "M", "Q" or "Y") groups by the periods of a column of dates, as ``private.cut`` makes
    them, the empty ones too; instead, ``by`` may be a `pandas.Grouper` with ``key`` and ``freq``.

    ``dropna``: without the records that have a null in a key. By default they are a group of their own where
    nulls are declared, unlike those of pandas.

    Raises DeclarationError for a key without declared cells.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> member = pa.Column(bool, metadata={"dp": {}})
    >>> frame = pd.DataFrame({"age": [31, 54] * 500, "member": [True, False] * 500})
    >>> private = frame.dp.protect(pa.DataFrameSchema({"age": age, "member": member}), epsilon=1)
    >>> private.dp.groupby("member").mean("age", epsilon=1, rng=1).round()
             age
    member
    False   54.0
    True    31.0
    """
    if isinstance(by, pd.Grouper):
        grouper: Any = by
        if grouper.key is None or grouper.freq is None or freq is not None:
            raise ParameterError("a Grouper needs 'key' and 'freq'.", PERIODS["groupby"])
        by, freq = grouper.key, getattr(grouper.freq, "freqstr", grouper.freq)
    if freq is not None:
        protected = transformed(protected, periods(protected, by, freq, "groupby"))
    keys = columns_of(protected, by, "groupby")
    if (step := complete_records(protected, keys, dropna)) is not None:
        protected = transformed(protected, step)
        keys = columns_of(protected, by, "groupby")
    check_cells(keys, "groupby")
    return GroupBy(protected, keys)
