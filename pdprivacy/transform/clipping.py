"""Numbers moved to public bounds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.domain import Column, Domain, declaration_hint
from pdprivacy.errors import DeclarationError, ParameterError, kind
from pdprivacy.query import cropped
from pdprivacy.transform.cells import column_of, floats, whole
from pdprivacy.transform.constants import NUMERIC, number, plain, shown
from pdprivacy.transform.core import Transform, call, names, own

__all__ = ["clip", "clipped_column"]


def clip(domain: Domain, lower: Any = None, upper: Any = None, *, columns: Any = None) -> Transform:
    """Numbers moved to the nearest of two public bounds, as `DataFrame.clip`; nulls stay.

    The declared bounds move in the same way, categories too, and bins are cropped to them. Bounds of
    integer columns must be whole numbers: a bound in between would be a cell that is none.

    Parameters
    ----------
    lower, upper : a number for all columns, or a mapping from column to number.
    columns : the columns that a number is for; by default all numeric ones but identifiers.

    Raises
    ------
    ParameterError : no bound at all, no finite numbers, a fraction for integers, or ``lower`` above
        ``upper``.
    DeclarationError : a column that is not declared, not numeric, or an identifier.

    >>> domain = Domain((Column("age", "integer", lower=0, upper=99, bins=(0, 18, 65, 99)),))
    >>> clip(domain, upper={"age": 60}).domain["age"].bins
    (0.0, 18.0, 60.0)
    """
    if lower is None and upper is None:
        raise ParameterError("'clip' needs 'lower' or 'upper'.", "private.dp.clip(upper={'age': 60})")
    if columns is not None and all(isinstance(bound, Mapping | None) for bound in (lower, upper)):
        raise ParameterError("'columns' is for one number as a bound; a mapping names its columns itself.")
    lows = _of_columns(domain, lower, columns, "lower")
    highs = _of_columns(domain, upper, columns, "upper")
    bounds: dict[Hashable, tuple[Any, Any]] = {}
    for name in domain:
        if name in lows or name in highs:
            low, high = lows.get(name), highs.get(name)
            if low is not None and high is not None and low > high:
                raise ParameterError(f"'lower' of column {name!r} must not be above 'upper'.")
            bounds[name] = (low, high)
    renewed = {name: clipped_column(domain[name], *ends) for name, ends in bounds.items()}

    def clipped(frame: pd.DataFrame) -> dict[Hashable, pd.Series[Any]]:
        return {name: _clipped(frame[name], domain[name], renewed[name], *bounds[name]) for name in bounds}

    text = call("clip", lower=shown(lower), upper=shown(upper), columns=columns)
    return Transform(text, domain.replace(*renewed.values()), clipped, None)


def _of_columns(domain: Domain, bound: Any, columns: Any, what: str) -> dict[Hashable, int | float]:
    """The bound of each column that has one."""
    if bound is None:
        return {}
    if isinstance(bound, Mapping):
        given = {_numeric(domain[name]).name: value for name, value in bound.items()}
        if not given:
            raise ParameterError(f"{what!r} names no column.", "private.dp.clip(upper={'age': 60})")
    else:
        if columns is None:
            chosen = [one for one in domain.columns if one.kind in NUMERIC and one.role != "identifier"]
            if not chosen:
                raise DeclarationError(
                    "'clip' needs a numeric column, and none is declared.",
                    declaration_hint("age", "integer", "bounds"),
                )
        else:
            chosen = [_numeric(domain[name]) for name in names(domain, columns, "clip")]
        if not isinstance(plain(bound), int | float):
            raise ParameterError(
                f"{what!r} must be a number or a mapping from column to number (got {kind(bound)}).",
                "private.dp.clip(upper={'age': 60}); bounds that differ from row to row may hold cells.",
            )
        given = {column.name: bound for column in chosen}
    return {name: number(value, domain[name], repr(what)) for name, value in given.items()}


def _numeric(column: Column) -> Column:
    if column.kind not in NUMERIC:
        raise DeclarationError(
            f"'clip' needs numeric columns, and column {column.name!r} is of kind {column.kind!r}.",
            "leave the column out, or recode its labels: private.dp.recode(column, {...})",
        )
    return own(column, "clip")


def _moved(value: Any, low: Any, high: Any) -> Any:
    if low is not None and value < low:
        return low
    return high if high is not None and value > high else value


def clipped_column(column: Column, low: int | float | None, high: int | float | None) -> Column:
    """What is declared of a column once its numbers are moved to the bounds.

    >>> clipped_column(Column("rooms", "integer", categories=(1, 2, 3, 4, 5)), None, 3).categories
    (1, 2, 3)
    """
    lower = low if column.lower is None else _moved(column.lower, low, high)
    upper = high if column.upper is None else _moved(column.upper, low, high)
    labels = column.categories
    if labels is not None:
        labels = tuple(dict.fromkeys(_moved(value, low, high) for value in labels))
    return replace(column, lower=lower, upper=upper, categories=labels, bins=cropped(column, lower, upper))


def _clipped(values: pd.Series[Any], column: Column, renewed: Column, low: Any, high: Any) -> pd.Series[Any]:
    if column.kind == "float":
        return column_of(np.clip(floats(values, column), low, high), None, renewed, values.index)
    whole_numbers, null = whole(values, column)
    return column_of(np.clip(whole_numbers, low, high), null, renewed, values.index)
