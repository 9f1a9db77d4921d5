"""Conditions, arithmetic and the declared steps made of them: each treats a record by itself.

An expression is read into one tree, walked with regions and intervals for what is declared of its result,
and with arrays for its values. Nothing here knows protected frames: `pdprivacy.frames` applies the steps.
"""

import importlib as _importlib
import typing as _typing

__all__ = [
    "ExpressionReader",
    "Node",
    "Syntax",
    "Transform",
    "assign",
    "astype",
    "clip",
    "cut",
    "dropna",
    "fillna",
    "floats",
    "merge",
    "query",
    "recode",
    "rename",
    "select",
]

if _typing.TYPE_CHECKING:
    from pdprivacy.core.rows.assignment import assign
    from pdprivacy.core.rows.cells import floats
    from pdprivacy.core.rows.conversion import astype, cut, recode, rename
    from pdprivacy.core.rows.lookup import merge
    from pdprivacy.core.rows.nodes import Node
    from pdprivacy.core.rows.reader import ExpressionReader, Syntax
    from pdprivacy.core.rows.steps import Transform, clip, dropna, fillna, query, select
else:  # imported when it is first asked for
    _HOMES = {
        **dict.fromkeys(("astype", "cut", "recode", "rename"), "conversion"),
        **dict.fromkeys(("Transform", "clip", "dropna", "fillna", "query", "select"), "steps"),
        "assign": "assignment",
        "ExpressionReader": "reader",
        "floats": "cells",
        "Node": "nodes",
        "merge": "lookup",
        "Syntax": "reader",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(_importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
