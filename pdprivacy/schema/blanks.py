"""Blanks of a declaration that nobody has filled in yet: an ``...`` in place of a bound or a label."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from pdprivacy.errors import DeclarationError

_WRITTEN = {
    "greater_than_or_equal_to": "pa.Check.ge(...)",
    "greater_than": "pa.Check.gt(...)",
    "less_than_or_equal_to": "pa.Check.le(...)",
    "less_than": "pa.Check.lt(...)",
    "in_range": "pa.Check.in_range(..., ...)",
    "isin": "pa.Check.isin([...])",
    "equal_to": "pa.Check.eq(...)",
}


def refuse_blanks(schema: Any) -> None:
    """Refuse a schema with a blank in any column, released or not: pandera could not run it.

    Raises DeclarationError, which names the columns and says what to write in the first of them.
    """
    found = {name: blanks for name, column in schema.columns.items() if (blanks := _blanks(column))}
    if not found:
        return
    name, blanks = next(iter(found.items()))
    others = ", ".join(repr(other) for other in found if other != name)
    raise DeclarationError(
        f"column {name!r} is not filled in yet ({', '.join(blanks)}){others and f'; nor are {others}'}.",
        f"{_instead(name, blanks, schema.columns[name].dtype)}: what everybody may know without the data; "
        "or delete the line",
    )


def _blanks(column: Any) -> list[str]:
    """What is blank in a column, as it is written there."""
    found = [
        _WRITTEN.get(check.name, f"a check {check.name!r}")
        for check in column.checks
        if any(map(_blank, (getattr(check, "statistics", None) or {}).values()))
    ]
    given = (column.metadata or {}).get("dp")
    if isinstance(given, Mapping):
        found += [f'"{key}" of metadata' for key, value in given.items() if _blank(value)]
    return found


def _blank(value: Any) -> bool:
    listed = isinstance(value, list | tuple | set | frozenset)
    return value is ... or (listed and any(one is ... for one in value))


def _instead(name: Hashable, blanks: list[str], dtype: Any) -> str:
    first = blanks[0]
    if "isin" in first or "eq(" in first or '"categories"' in first:
        written = '"categories": ["no", "yes"]' if first.startswith('"') else 'pa.Check.isin(["no", "yes"])'
        return f"write all labels that {name!r} can hold, as in {written}"
    if '"role"' in first:
        return 'write "role": "quasi_identifier" or "sensitive", or leave the role out'
    if '"bins"' in first:
        return f'write the edges of the cells of {name!r}, as in "bins": [0, 18, 65, 120]'
    if "datetime" in str(dtype):
        written = 'pa.Check.ge(pd.Timestamp("2020-01-01")), pa.Check.le(pd.Timestamp("2030-12-31"))'
        return f"write the earliest and the latest date that {name!r} can have, as in {written}"
    written = '"bounds": [0, 120]' if first.startswith('"') else "pa.Check.ge(0), pa.Check.le(120)"
    return f"write the lowest and the highest value that {name!r} can have, as in {written}"
