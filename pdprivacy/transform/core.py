"""Steps that treat each record by itself: what is declared of the result, and how it is computed.

A step is made from the declaration and its arguments alone, before a cell is read: whatever cannot be
decided from these is refused. Whether a record stays, and what its new cells are, depends on this record
alone, so neighbours stay neighbours: a step costs nothing, and no sensitivity grows by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdprivacy.domain import Column, Domain, has_hash
from pdprivacy.errors import DeclarationError, ParameterError, check_one_of, got, kind
from pdprivacy.query import nulls, parse

__all__ = ["Transform", "call", "dropna", "names", "own", "query", "select"]


@dataclass(frozen=True, slots=True)
class Transform:
    """A step that treats each record by itself.

    Attributes
    ----------
    text : the step as a user writes it, such as ``"clip(upper={'age': 60})"``.
    domain : what is declared of the result.
    columns : from a frame with the declared columns to those that are new or replaced, with the index
        of the frame; None where no column changes.
    keep : from such a frame to which records stay, shape ``(len(frame),)``; None where all do.
    """

    text: str
    domain: Domain
    columns: Callable[[pd.DataFrame], dict[Hashable, pd.Series[Any]]] | None
    keep: Callable[[pd.DataFrame], NDArray[np.bool_]] | None

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The declared columns of the result, of a frame that has those of the step's own declaration.

        >>> domain = Domain((Column("age", "integer", lower=0, upper=99),))
        >>> query(domain, "age < 30").apply(pd.DataFrame({"age": [20, 40]}))["age"].tolist()
        [20]
        """
        new = {} if self.columns is None else self.columns(frame)
        columns = {name: new[name] if name in new else frame[name] for name in self.domain}
        # columns are put side by side by position: an index may hold a label twice
        result = pd.concat([values.set_axis(frame.index) for values in columns.values()], axis=1)
        result.columns = pd.Index(list(columns), tupleize_cols=False)
        if self.keep is not None:
            result = result.take(np.flatnonzero(self.keep(frame)))
        return result


def call(method: str, *given: object, **options: object) -> str:
    """A call as a user writes it; options that are None are left out.

    >>> call("cut", "age", [18, 65], right=False, labels=None)
    "cut('age', [18, 65], right=False)"
    """
    try:
        keywords = [f"{name}={value!r}" for name, value in options.items() if value is not None]
        return f"{method}({', '.join([*map(repr, given), *keywords])})"
    except ValueError:  # Python writes no number of more digits
        raise ParameterError(f"{method!r} takes no number of more than 4300 digits.") from None


def names(domain: Domain, columns: object, method: str) -> list[Hashable]:
    """Declared names as a list; one name alone counts as a list of it.

    Raises
    ------
    ParameterError : no list of names, none, or one twice.
    DeclarationError : a name that is not declared.
    """
    listed: list[Any]
    if isinstance(columns, str) or (isinstance(columns, tuple) and columns in domain):
        listed = [columns]
    elif isinstance(columns, list | tuple | pd.Index):
        listed = list(columns)
    elif isinstance(columns, Hashable) and not isinstance(columns, Iterable):
        listed = [columns]
    else:
        raise ParameterError(f"'columns' of {method!r} must be a list of columns (got {got(columns)}).")
    if not listed:
        raise ParameterError(f"{method!r} needs at least one column.")
    if isinstance(columns, pd.Index) and not all(name in domain for name in listed):
        raise DeclarationError(f"{method!r} got an Index that holds what is not declared for release.")
    seen: set[Hashable] = set()
    for name in listed:
        if not has_hash(name):
            raise ParameterError(f"'columns' of {method!r} must be a list of columns (got {kind(name)}).")
        domain[name]
        if name in seen:
            raise ParameterError(f"{method!r} names column {name!r} twice.")
        seen.add(name)
    return listed


def own(column: Column, method: str) -> Column:
    """The column, unless it is an identifier, of which nothing is made.

    Raises
    ------
    DeclarationError : its role is 'identifier'.
    """
    if column.role == "identifier":
        raise DeclarationError(
            f"{method!r} cannot use column {column.name!r}: its role is 'identifier'.",
            "leave the column out of the call, or declare another role",
        )
    return column


def query(domain: Domain, expression: str) -> Transform:
    """The records that meet a condition, as `DataFrame.query`; see `pdprivacy.query.parse`.

    Raises
    ------
    ParameterError : the expression is not a string.
    QueryError : not a condition of declared columns and constants, or one that no declared record meets.

    >>> step = query(Domain((Column("age", "integer", lower=18, upper=65),)), "age >= 30")
    >>> step.text, step.domain["age"].lower
    ("query('age >= 30')", 30)
    """
    condition = parse(expression, domain)
    return Transform(call("query", expression), condition.narrow(), None, condition.mask)


def select(domain: Domain, columns: object) -> Transform:
    """These columns only, in this order; the others are declared no more.

    Raises
    ------
    ParameterError : no list of columns, none, or one twice.
    DeclarationError : a column that is not declared.

    >>> domain = Domain((Column("age", "integer"), Column("region", "category")))
    >>> select(domain, ["region"]).domain.names
    ('region',)
    """
    chosen = names(domain, columns, "select")
    return Transform(call("select", chosen), Domain(tuple(domain[name] for name in chosen)), None, None)


def dropna(domain: Domain, subset: object = None, how: str = "any") -> Transform:
    """The records without nulls in declared columns, as `DataFrame.dropna`.

    Parameters
    ----------
    subset : the columns to look at; by default all declared ones but identifiers.
    how : ``"any"`` leaves a record out for one null, ``"all"`` where all of the subset are.

    Raises
    ------
    ParameterError : another ``how``, or no list of columns.
    DeclarationError : a column that is not declared, or an identifier.

    >>> domain = Domain((Column("age", "float", nullable=True), Column("rent", "float", nullable=True)))
    >>> dropna(domain, subset=["age"]).domain["age"].nullable
    False
    """
    check_one_of("how", how, ("any", "all"))
    if how is None:
        raise ParameterError("'how' must be one of 'any', 'all' (got None).")
    if subset is None:
        looked_at = [column for column in domain.columns if column.role != "identifier"]
    else:
        looked_at = [own(domain[name], "dropna") for name in names(domain, subset, "dropna")]
    text = call("dropna", subset=subset, how=None if how == "any" else how)
    possible = [column for column in looked_at if column.nullable]
    if not possible or (how == "all" and len(possible) < len(looked_at)):
        return Transform(text, domain, None, None)
    renewed = domain
    if how == "any" or len(possible) == 1:
        renewed = domain.replace(*(replace(column, nullable=False) for column in possible))
    join = np.logical_or if how == "any" else np.logical_and
    read = [column.name for column in possible]

    def keep(frame: pd.DataFrame) -> NDArray[np.bool_]:
        null = nulls(frame[read[0]])
        for name in read[1:]:
            null = join(null, nulls(frame[name]))
        return ~null

    return Transform(text, renewed, None, keep)
