"""Relations of DuckDB whose texts are told apart by their bytes, as everywhere else."""

from __future__ import annotations

from typing import Any

__all__ = ["quoted", "settled"]


def quoted(name: object) -> str:
    """The name of a column in SQL."""
    return '"' + str(name).replace('"', '""') + '"'


def settled(relation: Any) -> Any:
    """The relation without collations of its own, of its columns or of its connection.

    Texts that a collation calls equal fall into one group, named after any one of them: a record that names
    it could move all others into another cell. Labels of an enumeration become texts.
    """
    columns = []
    for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
        column = quoted(name)
        if kind == "VARCHAR" or (kind.startswith("ENUM(") and kind.endswith(")")):
            columns.append(f'{column}::VARCHAR COLLATE "C" AS {column}')
        else:
            columns.append(column)
    return relation.project(", ".join(columns))
