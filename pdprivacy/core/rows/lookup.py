"""The row step that adds columns of a public table, which are looked up by the keys of each record."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd

from pdprivacy.checks import finite, is_null, label, one_of, plain
from pdprivacy.core.rows.cells import Read, category_column, codes, column_of, dense, nulls, whole
from pdprivacy.core.rows.nodes import Node
from pdprivacy.core.rows.steps import Transform, call, names, own
from pdprivacy.declaration.domain import Column, Domain
from pdprivacy.declaration.intervals import INT64, Interval
from pdprivacy.errors import DeclarationError, ParameterError, kind
from pdprivacy.hints.examples import EXAMPLES
from pdprivacy.types import Integers

MOST_ROWS = 10**6
"""The largest number of rows of a public table."""


def merge(domain: Domain, right: Any, how: Any = "inner", on: Any = None) -> Transform:
    """Add the other columns of a public table to each record, by its keys, as `DataFrame.merge`.

    Parameters
    ----------
    right : a pandas table that everybody may know, with one row for each key. Its labels and the least and
        largest of its numbers are declared of the new columns.
    how : "left" makes nulls where a record has no row in the table; "inner" leaves such records out.
    on : the columns of both tables that are the keys; by default all that both have.

    A key is compared as the declared labels are; a null has no row. A new column whose keys are sensitive is
    sensitive.

    Raises
    ------
    ParameterError : no pandas table, an unknown ``how``, a key twice, or a column that is declared already.
    DeclarationError : a key that is not declared, an identifier, or a column of dates or fractions.

    >>> domain = Domain((Column("zip", "category", categories=("8001", "3011")),))
    >>> towns = pd.DataFrame({"zip": ["8001", "3011"], "town": ["Zurich", "Bern"]})
    >>> merge(domain, towns, on="zip").apply(pd.DataFrame({"zip": ["3011", "8001"]}))["town"].tolist()
    ['Bern', 'Zurich']
    """
    one_of(how, "how", ("left", "inner"))
    if not isinstance(right, pd.DataFrame):
        raise ParameterError(
            f"'merge' takes a public table as a pandas DataFrame (got {kind(right)}).",
            EXAMPLES["merge"],
        )
    if len(right) > MOST_ROWS:
        raise ParameterError(f"'merge' takes a table of at most {MOST_ROWS:,} rows.")
    if right.columns.nlevels > 1:
        raise ParameterError("the table has columns of several levels.", "table.set_axis([...], axis=1)")
    if not right.columns.is_unique:
        raise ParameterError("the table has a column name twice.")
    shared = [name for name in right.columns if name in domain] if on is None else on
    if on is None and not shared:
        raise ParameterError(
            "the table has no column of a declared name.",
            'on="zip", a column of both; or pdprivacy.protect_tables, for a table of the same people.',
        )
    keys = [_key(own(domain[name], "merge")) for name in names(domain, shared, "merge")]
    known = [column.name for column in keys]
    for name in known:
        if name not in right.columns:
            raise ParameterError(f"the table has no column {name!r}.")
    added = [name for name in right.columns if name not in known]
    for name in added:
        if name in domain:
            raise ParameterError(
                f"column {name!r} is declared already, and is no key.", "rename it in the table first"
            )
    table = _Lookup.of(keys, right[known])
    complete = table.complete and not any(column.nullable for column in keys)
    sensitive = any(column.role == "sensitive" for column in keys)
    nodes: dict[Hashable, Node] = {
        name: _looked_up(table, name, right[name], nullable=how == "left" and not complete) for name in added
    }
    if sensitive:
        nodes = {
            name: replace(node, column=replace(node.column, role="sensitive")) for name, node in nodes.items()
        }
    renewed = Domain((*domain.columns, *(node.column for node in nodes.values())))
    digest = _digest(right[[*known, *added]])
    text = call("merge", added, on=known, how=None if how == "inner" else how, digest=digest)
    leaves_out = how == "inner" and not complete
    keep = (lambda frame: table.rows(frame) >= 0) if leaves_out else None
    return Transform(text, renewed, tuple(known), nodes, keep, dict.fromkeys(nodes, tuple(known)))


def _key(column: Column) -> Column:
    if column.timeline is not None or column.kind == "float":
        raise DeclarationError(
            f"'merge' compares labels and whole numbers, and column {column.name!r} is of kind "
            f"{column.noun!r}.",
            f"private.cut({column.name!r}, ...), whose labels the table has",
        )
    return column


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The rows of a public table by key.

    ``labels``: of each key column, its distinct cells in the table. ``joint``: the place of each row among
    all combinations of these, in order; ``order``: the row of each.
    """

    keys: Sequence[Column]
    labels: Sequence[list[Any]]
    joint: Integers
    order: Integers

    @classmethod
    def of(cls, keys: Sequence[Column], table: pd.DataFrame) -> _Lookup:
        """Return the rows of these keys; refuse nulls and keys that several rows have."""
        listed = [_cells(table[column.name], column) for column in keys]
        labels = [list(dict.fromkeys(cells)) for cells in listed]
        places = [{cell: position for position, cell in enumerate(cells)} for cells in labels]
        joint = np.zeros(len(table), dtype=np.int64)
        size = 1
        for cells, known in zip(listed, places, strict=True):
            size *= max(len(known), 1)
            if size > 2**62:
                raise ParameterError("the keys of the table have too many combinations.")
            joint = joint * len(known) + np.array([known[cell] for cell in cells], dtype=np.int64)
        order = np.argsort(joint, kind="stable")
        joint = joint[order]
        if (joint[1:] == joint[:-1]).any():
            raise ParameterError(
                "several rows of the table have the same key, so that a record would become several.",
                "table.drop_duplicates(keys), or a table with one row for each",
            )
        return cls(keys, labels, joint, order)

    @property
    def complete(self) -> bool:
        """Whether every combination of declared labels has a row."""
        known = set(self.joint.tolist())
        total = 1
        for column, labels in zip(self.keys, self.labels, strict=True):
            if column.categories is None or not set(column.categories) <= set(labels):
                return False
            total *= len(labels)
        return len(known) == total

    def rows(self, read: Any) -> Integers:
        """Return the row of each record, -1 for none."""
        joint: Any = np.int64(0)
        missing: Any = np.False_
        for column, labels in zip(self.keys, self.labels, strict=True):
            values = dense(read[column.name])
            null = nulls(values)
            if column.kind == "integer":
                values = pd.Series(whole(values, column)[0])
            places = np.where(null, -1, codes(values, labels))
            missing = missing | (places < 0)
            joint = joint * len(labels) + np.where(places < 0, 0, places)
        if not len(self.joint):
            return np.full(len(joint), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.joint, joint), len(self.joint) - 1)
        return np.where(missing | (self.joint[at] != joint), -1, self.order[at])


def _cells(values: pd.Series[Any], column: Column) -> list[Any]:
    """Return the keys of a public table as labels of the kind of a declared column."""
    cells = [plain(cell) for cell in values.tolist()]
    if any(map(is_null, cells)):
        raise ParameterError(f"column {column.name!r} of the table has a null, which is no key.")
    if column.kind == "integer":
        if not all(isinstance(cell, int | float) and finite(cell) and cell == int(cell) for cell in cells):
            raise ParameterError(f"column {column.name!r} of the table must have whole numbers.")
        return [int(cell) for cell in cells]
    wanted: type = bool if column.kind == "boolean" else str
    kinds = set(map(type, column.categories or ())) or {wanted}
    if not set(map(type, cells)) <= kinds:
        listed = " or ".join(sorted(each.__name__ for each in kinds))
        raise ParameterError(f"column {column.name!r} of the table must have labels of type {listed}.")
    return cells


def _looked_up(table: _Lookup, name: Hashable, values: pd.Series[Any], *, nullable: bool) -> Node:
    """Return the column of a public table for each record."""
    cells = [None if is_null(cell) else plain(cell) for cell in values.tolist()]
    stated = [cell for cell in cells if cell is not None]
    nullable |= len(stated) < len(cells)
    if not stated:
        raise ParameterError(f"column {name!r} of the table has no values.")
    kinds = set(map(type, stated))
    if not kinds <= {str, bool, int, float} or (bool in kinds and kinds & {int, float}):
        listed = ", ".join(sorted(each.__name__ for each in kinds))
        raise ParameterError(
            f"column {name!r} of the table must have texts, numbers or truth values (got {listed}).",
            "table.astype({column: str})",
        )
    if kinds <= {int, float}:
        if not all(map(finite, stated)):
            raise ParameterError(f"column {name!r} of the table must have finite numbers.")
        integers = kinds == {int} and all(cell in INT64 for cell in stated)
        # bounds of the cells as they are looked up, which are doubles unless all are whole numbers
        lower, upper = Interval.around(tuple(stated if integers else map(float, stated)))
        column = Column(name, "integer" if integers else "float", nullable, lower=lower, upper=upper)
        array = np.array(
            [stated[0] if cell is None else cell for cell in cells], np.int64 if integers else np.float64
        )
    elif kinds == {bool}:
        column, array = Column(name, "boolean", nullable), np.array([cell is True for cell in cells])
    else:
        return _looked_up_labels(table, name, values, cells, nullable=nullable)
    null = np.array([*(cell is None for cell in cells), True])

    def made(read: Read, index: pd.Index[Any]) -> pd.Series[Any]:
        rows = table.rows(read)
        missing = null[rows] if column.nullable else None
        return column_of(array[np.where(rows < 0, 0, rows)], missing, column, index)

    return Node(column, made)


def _looked_up_labels(
    table: _Lookup, name: Hashable, values: pd.Series[Any], cells: list[Any], *, nullable: bool
) -> Node:
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.dtype.ordered)
    listed = values.cat.categories.tolist() if ordered else [cell for cell in cells if cell is not None]
    labels = tuple(dict.fromkeys(label(cell, f"a cell of column {name!r}") for cell in listed))
    column = Column(name, "category", nullable, categories=labels, ordered=ordered)
    places = {cell: position for position, cell in enumerate(labels)}
    positions = np.array([*(-1 if cell is None else places[cell] for cell in cells), -1], dtype=np.int64)
    return Node(
        column,
        lambda read, index: category_column(positions[table.rows(read)], labels, index, ordered=ordered),
    )


def _digest(table: pd.DataFrame) -> str:
    """Return a short digest of a public table, so that steps with different tables have different texts."""
    content = [[str(name), [repr(plain(cell)) for cell in table[name].tolist()]] for name in table.columns]
    return blake2b(json.dumps(content).encode(), digest_size=6).hexdigest()
