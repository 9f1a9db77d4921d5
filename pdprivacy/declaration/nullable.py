"""Columns with missing-value codes, as pandera has to check them: with nulls in place of the codes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sized
from typing import Any


def with_nulls_for_codes(schema: Any) -> Any:
    """Return an opened schema whose columns with missing-value codes allow nulls; else the schema itself.

    Integers and truth values of NumPy, which hold no null, are declared as nullable ones.

    >>> import pandera.pandas as pa
    >>> age = pa.Column(int, metadata={"dp": {"missing": [-99]}})
    >>> column = with_nulls_for_codes(pa.DataFrameSchema({"age": age})).columns["age"]
    >>> str(column.dtype), column.nullable, age.nullable
    ('Int64', True, False)
    """
    names = [name for name, column in schema.columns.items() if _has_codes(column)]
    if not names:
        return schema
    result = copy.copy(schema)
    result.columns = dict(schema.columns)
    for name in names:
        column = result.columns[name] = copy.copy(schema.columns[name])
        column.nullable = True
        nullable = _NULLABLE.get(str(column.dtype))
        if nullable is not None:
            column.dtype = nullable
    return result


_BITS = (8, 16, 32, 64)
_NULLABLE = {
    **{f"int{bits}": f"Int{bits}" for bits in _BITS},
    **{f"uint{bits}": f"UInt{bits}" for bits in _BITS},
    "bool": "boolean",
}


def _has_codes(column: Any) -> bool:
    options = (column.metadata or {}).get("dp")
    codes = options.get("missing") if isinstance(options, Mapping) else None
    return isinstance(codes, Sized) and len(codes) > 0
