"""The columns of a release: which are chosen, their shares of the loss, and their labels as an index."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import pandas as pd

from pdprivacy.accounting.rules import shares
from pdprivacy.checks import flag, has_hash
from pdprivacy.domain import Column, declaration_hint
from pdprivacy.errors import DeclarationError, ParameterError, TableTooLargeError, kind
from pdprivacy.hints import EXAMPLES
from pdprivacy.privacy import Rational
from pdprivacy.protection import Labels as Labels
from pdprivacy.protection import Protected, declared
from pdprivacy.release.spec import MAX_CELLS, Call

Split: TypeAlias = Mapping[Hashable, Rational] | None

FEW_LABELS = 1000
"""Labels of which an index is kept for the next release."""


def columns_of(
    protected: Protected, columns: Labels | None, method: str, keys: Sequence[Column] = ()
) -> tuple[Column, ...]:
    """The declared columns of these labels; all numeric ones with bounds but the keys where None."""
    domain = protected.domain
    if columns is None:
        chosen = tuple(
            column
            for column in domain.columns
            if declared(protected, column.name)
            and column.lower is not None
            and column.upper is not None
            and column.timeline is None
        )
        if not chosen:
            raise DeclarationError(
                f"{method!r} found no declared column with bounds.",
                declaration_hint(next(iter(domain), "age"), "float", "bounds"),
            )
        return _others(protected, chosen, keys, method, "the keys") if keys else chosen
    names = list(columns) if isinstance(columns, list | pd.Index) else [columns]
    if not names:
        raise ParameterError(f"{method!r} needs at least one column.")
    if isinstance(columns, pd.Index) and not all(name in domain for name in names):
        raise DeclarationError(f"{method!r} got an Index that holds what is not declared for release.")
    try:
        different = set(names)
    except TypeError:  # no label
        raise ParameterError(
            f"{method!r} takes a column label or a list of labels.",
            EXAMPLES.get(method, 'a label such as "age", not the cells of the column'),
        ) from None
    if len(different) < len(names):
        raise ParameterError(f"{method!r} got a column twice.")
    return tuple([domain[name] for name in names])


def weighted_columns(
    protected: Protected,
    columns: Labels | None,
    weights: Hashable | None,
    method: str,
    keys: Sequence[Column] = (),
) -> tuple[tuple[Column, ...], Column | None]:
    """The declared columns of these labels, none of them a key if None, and the one of the weights.

    The column of the weights is not among the others.
    """
    chosen = columns_of(protected, columns, method, keys)
    if weights is None:
        return chosen, None
    if isinstance(weights, list | pd.Index) or not has_hash(weights):
        raise ParameterError(
            f"'weights' must be the label of one declared column (got {kind(weights)}).", 'weights="w"'
        )
    (weight,) = columns_of(protected, [weights], method)
    if columns is None and method == "count":  # of all records, and of no column
        return (), weight
    if columns is None:
        chosen = _others(protected, chosen, [weight], method, "its weights")
    if weight.name in {column.name for column in chosen}:
        raise ParameterError(f"{method!r} got column {weight.name!r} both as a value and as its weights.")
    return chosen, weight


def _others(
    protected: Protected, chosen: Sequence[Column], taken: Sequence[Column], method: str, what: str
) -> tuple[Column, ...]:
    """The columns without those that are taken for something else.

    Raises DeclarationError where no column is left.
    """
    names = [column.name for column in taken]
    found = tuple(column for column in chosen if column.name not in names)
    if not found:
        listed = ", ".join(map(repr, names))
        raise DeclarationError(
            f"{method!r} found no declared column with bounds beside {what}, {listed}.",
            declaration_hint(
                next((name for name in protected.domain if name not in names), "age"), "float", "bounds"
            ),
        )
    return found


def weights_of(columns: Sequence[Column], split: Split) -> tuple[Any, ...]:
    """Each column's share of the loss."""
    if split is None:
        return (Fraction(1, len(columns)),) * len(columns)
    names = [column.name for column in columns]
    if not isinstance(split, Mapping) or set(split) != set(names):
        named = ", ".join(repr(name) for name in names)
        raise ParameterError(f"'split' must map each column of the call to its weight ({named}).")
    return shares([split[name] for name in names])


def cell_index(columns: Sequence[Column], method: str) -> pd.Index[Any]:
    """The declared cells as an index: one level per column, the null cell last."""
    levels = []
    for column in columns:
        labels = list(column.labels(method))
        levels.append([*labels, None] if column.nullable else labels)
    if len(columns) == 1:
        return _index_of(levels[0], columns[0].name)
    return pd.MultiIndex.from_product(levels, names=[column.name for column in columns])


def check_cells(columns: Sequence[Column], method: str) -> None:
    """Refuse a table of more than `MAX_CELLS` declared cells."""
    cells = math.prod(column.cells(method) for column in columns)
    if cells > MAX_CELLS:
        raise TableTooLargeError(
            f"The table has {cells} declared cells, more than {MAX_CELLS}.",
            "release fewer columns at once, or declare coarser bins.",
        )


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True and False before it is used as one."""
    flag(value, name)


def refuse_shared(chosen: Sequence[Column], keys: Sequence[Column], method: str) -> None:
    """Refuse a column that is both a value and a key, and keys with too many cells."""
    if {column.name for column in chosen} & {key.name for key in keys}:
        raise ParameterError(f"{method!r} got a column both as a value and as a key.")
    if keys:
        check_cells(keys, method)


def refuse_bounds(call: Call) -> None:
    """Refuse ``bounds`` in a call for several statistics, which have bounds of their own."""
    if call.bounds is not None:
        raise ParameterError(
            "'bounds' can be given for a single statistic only.", "private.dp.mean(column, bounds=...)."
        )


def name_index(columns: Sequence[Column]) -> pd.Index[Any]:
    """The labels of the columns as an index."""
    return _index_of([column.name for column in columns])


def _index_of(labels: Sequence[Hashable], name: Hashable = None) -> pd.Index[Any]:
    """These labels as an index of that name."""
    if len(labels) <= FEW_LABELS and {str}.issuperset(map(type, labels)):
        # a deep copy: what its holder writes into it reaches no other release
        index = _index_of_texts(tuple(labels)).copy(name="", deep=True)  # a missing name takes pandas longer
        index.name = name
        return index
    return pd.Index(labels, name=name, tupleize_cols=False)


@lru_cache(maxsize=256)
def _index_of_texts(labels: tuple[str, ...]) -> pd.Index[Any]:
    """The index of these texts, which takes pandas longer to find the kind of than a release its numbers."""
    return pd.Index(labels, tupleize_cols=False)
