"""Nulls replaced by public constants."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.domain import Column, Domain
from pdprivacy.errors import ParameterError, kind
from pdprivacy.query import dense, nulls
from pdprivacy.transform.cells import BLOCK, column_of, floats, whole
from pdprivacy.transform.constants import NUMERIC, is_null, label, number, shown
from pdprivacy.transform.core import Transform, call, own

__all__ = ["fillna"]

_ARROW_TEXTS = ("string[pyarrow]", "large_string[pyarrow]")


def fillna(domain: Domain, value: Any) -> Transform:
    """Nulls of declared columns replaced by a public constant, as `DataFrame.fillna`.

    The result is not nullable. A number beyond the declared bounds widens them (and the bins by one), a
    label that is not declared becomes the last category. A constant that is a mean or a median of the
    data is not public: release it first, and fill with what was released.

    Parameters
    ----------
    value : a constant for all nullable columns but identifiers, or a mapping from column to constant;
        columns without declared nulls stay as they are.

    Raises
    ------
    ParameterError : a constant that the column cannot hold, or none.
    DeclarationError : a column that is not declared, or an identifier.

    >>> domain = Domain((Column("age", "integer", nullable=True, lower=18, upper=65),))
    >>> fillna(domain, 0).domain["age"].bounds("mean")
    (0.0, 65.0)
    """
    if isinstance(value, Mapping):
        given = {own(domain[name], "fillna").name: constant for name, constant in value.items()}
    elif isinstance(value, pd.Series | pd.DataFrame | np.ndarray | list):
        raise ParameterError(
            f"'value' must be a constant or a mapping from column to constant (got {kind(value)}).",
            "private.dp.fillna({'age': 0})",
        )
    else:
        given = {one.name: value for one in domain.columns if one.nullable and one.role != "identifier"}
    constants = {name: _constant(domain[name], constant) for name, constant in given.items()}
    constants = {name: constant for name, constant in constants.items() if domain[name].nullable}
    renewed = {name: _filled_column(domain[name], constant) for name, constant in constants.items()}

    def filled(frame: pd.DataFrame) -> dict[Hashable, pd.Series[Any]]:
        return {
            name: _filled(frame[name], domain[name], renewed[name], constant)
            for name, constant in constants.items()
        }

    columns: Callable[[pd.DataFrame], dict[Hashable, pd.Series[Any]]] | None = filled if constants else None
    return Transform(call("fillna", shown(value)), domain.replace(*renewed.values()), columns, None)


def _constant(column: Column, value: Any) -> Any:
    what = "the constant of 'fillna'"
    if is_null(value):
        raise ParameterError(f"{what} for column {column.name!r} must not be null.")
    if column.kind in NUMERIC:
        return number(value, column, what)
    found = label(value, what)
    if column.kind == "boolean":
        if not isinstance(found, bool):
            raise ParameterError(
                f"{what} for the boolean column {column.name!r} must be True or False (got {kind(value)})."
            )
        return found
    known = {type(one) for one in column.categories} if column.categories is not None else {str}
    if type(found) not in known:
        allowed = ", ".join(sorted(one.__name__ for one in known))
        raise ParameterError(
            f"{what} for column {column.name!r} must be a label like the declared ones, "
            f"of type {allowed} (got {kind(value)})."
        )
    return found


def _filled_column(column: Column, value: Any) -> Column:
    if column.kind == "boolean":
        held = tuple(one for one in (False, True) if one in (column.categories or ()) or one == value)
        return replace(column, nullable=False, lower=None, upper=None, categories=held)
    labels: tuple[Any, ...] | None = column.categories
    if labels is not None and value not in labels:
        labels = (*labels, value)
    if column.kind == "category":
        return replace(column, nullable=False, categories=labels)
    bins = column.bins
    if bins is not None:
        bins = (value, *bins) if value < bins[0] else (*bins, value) if value > bins[-1] else bins
    return replace(
        column,
        nullable=False,
        lower=None if column.lower is None else min(column.lower, value),
        upper=None if column.upper is None else max(column.upper, value),
        categories=labels,
        bins=bins,
    )


def _filled(values: pd.Series[Any], column: Column, renewed: Column, constant: Any) -> pd.Series[Any]:
    if column.kind == "float":
        made = np.empty(len(values))
        for start in range(0, len(values), BLOCK):
            rows = slice(start, start + BLOCK)
            made[rows] = floats(values.iloc[rows], column)
            np.copyto(made[rows], constant, where=np.isnan(made[rows]))
        return column_of(made, None, renewed, values.index)
    if column.kind == "category":
        return _filled_labels(values, constant)
    found, null = whole(values, column)
    filled = found.copy()
    if null is not None:
        filled[null] = constant
    if column.kind == "boolean":
        filled = filled.astype(bool)
    return column_of(filled, None, renewed, values.index)


def _filled_labels(values: pd.Series[Any], constant: Any) -> pd.Series[Any]:
    values = dense(values)
    null = nulls(values)
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = list(dtype.categories)
        place = known.index(constant) if constant in known else len(known)
        labels = known if place < len(known) else [*known, constant]
        places = np.where(null, place, values.cat.codes.to_numpy().astype(np.int64))
        categories: pd.Index[Any] = pd.Index(labels, tupleize_cols=False)
        return pd.Series(pd.Categorical.from_codes(places, categories), index=values.index)
    cells = values.to_numpy(dtype=object, copy=True)
    one = np.empty(1, dtype=object)
    one[0] = constant  # by place: numpy would spread a tuple over the nulls
    cells[null] = one
    texts = type(constant) is str and (isinstance(dtype, pd.StringDtype) or str(dtype) in _ARROW_TEXTS)
    return pd.Series(cells, index=values.index, dtype=dtype if texts else object)
