"""Several statistics of columns as one release: aggregates and pivot tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from pdprivacy.domain import Column
from pdprivacy.errors import ParameterError, got
from pdprivacy.privacy import Rational
from pdprivacy.protection import Protected
from pdprivacy.release.publish import Floats, Made, release_of, series
from pdprivacy.release.result import Result
from pdprivacy.release.spec import Call, Release, noised
from pdprivacy.releases import moments, tables
from pdprivacy.releases.columns import (
    Labels,
    Split,
    cell_index,
    columns_of,
    name_index,
    refuse_bounds,
    refuse_shared,
    weights_of,
)
from pdprivacy.request import Options
from pdprivacy.statistic import PIECES, Moments, quantity

__all__ = ["agg", "describe", "pivot_table"]

Aggregate: TypeAlias = Literal["count", "sum", "mean", "var", "std"]
Aggregates: TypeAlias = (
    Aggregate | Sequence[Aggregate] | Mapping[Any, Aggregate] | Mapping[Any, Sequence[Aggregate]]
)
Kinds: TypeAlias = tuple[tuple[str, ...], ...]

VERBS: dict[str, Callable[..., Release[Any]]] = {
    "count": tables.count,
    **{name: getattr(moments, name) for name in ("sum", "mean", "var", "std")},
}
"""The release of each statistic by itself."""


def kinds_asked(func: Any) -> tuple[str, ...]:
    """Return the statistics of one name or a list of names; raise ParameterError for unknown names."""
    names = [func] if isinstance(func, str) else list(func) if isinstance(func, list | tuple) else []
    if not names or not all(isinstance(name, str) and name in PIECES for name in names):
        raise ParameterError(
            f"The statistics of 'agg' must be one of {', '.join(map(repr, PIECES))}, or a list of them "
            f"(got {got(func)}).",
            'agg(["mean", "std"], epsilon=0.1); a median or a mode is a release of its own.',
        )
    if len(set(names)) < len(names):
        raise ParameterError("'agg' got a statistic twice.")
    return tuple(names)


def asked_of(
    protected: Protected, func: Any, columns: Labels | None, keys: Sequence[Column], method: str
) -> tuple[tuple[Column, ...], Kinds, bool]:
    """Return the columns to aggregate, the statistics of each, and whether each has one single name."""
    if isinstance(func, Mapping):
        if columns is not None or not func:
            raise ParameterError(
                "A mapping for 'agg' must name the columns itself.", 'agg({"age": "mean"}, epsilon=0.1)'
            )
        chosen = columns_of(protected, list(func), method)
        each = [func[column.name] for column in chosen]
        return chosen, tuple(map(kinds_asked, each)), all(isinstance(one, str) for one in each)
    chosen = columns_of(protected, columns, method, keys)
    return chosen, (kinds_asked(func),) * len(chosen), isinstance(func, str)


def moments_of(
    protected: Protected,
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


@noised("laplace")
def agg(
    protected: Protected,
    func: Aggregates,
    columns: Labels | None = None,
    *,
    epsilon: Rational,
    split: Split = None,
    **noise: Unpack[Options],
) -> Release[Any]:
    """Release several statistics of columns for one charge and in one pass, as `DataFrame.agg`.

    ``func``: a statistic ("count", "sum", "mean", "var" or "std"), a list of statistics, or a mapping from
    columns to either. ``columns`` (all numeric columns if None) and ``split`` as in `sum`.

    All statistics of a column are computed from one set of noisy numbers with equal shares of its epsilon: a
    count, a sum, a centred sum and a centred sum of squares, as far as they are needed. So "mean", "var" and
    "std" together cost the same as "std". One statistic for all columns, given by its name, is the release of
    that name; its noise is Laplace by default, for counts, too.

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
    chosen, kinds, by_name = asked_of(protected, func, columns, (), "agg")
    if by_name and len(set(kinds)) == 1:
        labels = [column.name for column in chosen]
        release: Release[Any] = VERBS[kinds[0][0]](protected, labels, epsilon=epsilon, split=split, **noise)
        return release
    return _aggregated(protected, Call.of("agg", epsilon, noise, chosen), kinds, split, by_name=by_name)


@noised("laplace")
def describe(
    protected: Protected,
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
    protected: Protected, call: Call, kinds: Kinds, split: Split, *, by_name: bool = False
) -> Release[Any]:
    """Return the release of a table of statistics by columns, or of a Series by column if ``by_name``."""
    refuse_bounds(call)
    chosen, names = call.columns, name_index(call.columns)
    statistic = moments_of(protected, chosen, kinds, split, (), call.statistic)
    rows = list(dict.fromkeys(kind for own in kinds for kind in own))
    places = [(rows.index(kind), column) for column, kind in statistic.layout.numbers]

    def table(numbers: Floats) -> Floats:
        found = np.full((len(rows), len(chosen)), np.nan)
        found[tuple(np.transpose(places))] = numbers
        return found

    def make(result: Result) -> Made[Any]:
        if by_name:
            return series(result, names)
        made = result.transformed(lambda answer: answer.arranged(table))
        return pd.DataFrame(made.answer.values, index=pd.Index(rows), columns=names), made.errors

    return release_of(protected, call, statistic, make)


@noised("laplace")
def pivot_table(
    protected: Protected,
    values: Labels | None = None,
    index: Labels | None = None,
    columns: Labels | None = None,
    aggfunc: Aggregate | Sequence[Aggregate] = "mean",
    *,
    epsilon: Rational,
    split: Split = None,
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
            'private.dp.pivot_table("age", index="region", epsilon=0.1)',
        )
    rows = columns_of(protected, index, "pivot_table")
    tops = () if columns is None else columns_of(protected, columns, "pivot_table")
    keys = (*rows, *tops)
    if len({key.name for key in keys}) < len(keys):
        raise ParameterError("'index' and 'columns' share a column.")
    asked = kinds_asked(aggfunc)
    chosen = columns_of(protected, values, "pivot_table", keys)
    call = Call.of(asked[0] if isinstance(aggfunc, str) else "agg", epsilon, noise, chosen, keys)
    if not isinstance(aggfunc, str) or tops:
        refuse_bounds(call)
    statistic = moments_of(protected, chosen, (asked,) * len(chosen), split, keys, "pivot_table")
    left = cell_index(rows, "groupby")
    listed = not tops or values is None or isinstance(values, list | pd.Index)
    top = _top_index(None if isinstance(aggfunc, str) else asked, chosen if listed else None, tops)

    def table(numbers: Floats) -> Floats:
        cells = numbers.reshape(len(left), -1, len(chosen), len(asked))
        return cells.transpose(0, 3, 2, 1).reshape(len(left), -1)

    def make(result: Result) -> Made[pd.DataFrame]:
        made = result.transformed(lambda answer: answer.arranged(table))
        return pd.DataFrame(made.answer.values, index=left, columns=top), made.errors

    return release_of(protected, call, statistic, make)


def _top_index(
    kinds: Sequence[str] | None, values: Sequence[Column] | None, keys: Sequence[Column]
) -> pd.Index[Any]:
    """Return the column labels of a pivot table: levels of its statistics, values and keys, if given."""
    levels: list[pd.Index[Any]] = [] if kinds is None else [pd.Index(kinds)]
    levels += [] if values is None else [name_index(values)]
    levels += [cell_index([key], "groupby") for key in keys]
    if len(levels) == 1:
        return levels[0]
    return pd.MultiIndex.from_product(levels)
