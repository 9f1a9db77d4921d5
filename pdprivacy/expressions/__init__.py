"""Conditions, arithmetic and the declared steps made of them: each treats a record by itself.

An expression is read into one tree, walked with regions and intervals for what is declared of its result,
and with arrays for its values. Nothing here knows protected frames: `pdprivacy.protection` applies the steps.
"""

from pdprivacy.expressions.assignment import assign, date_field
from pdprivacy.expressions.cells import dense, floats, nulls
from pdprivacy.expressions.conversion import astype, cut, recode, rename
from pdprivacy.expressions.reader import ExpressionReader
from pdprivacy.expressions.refused import REFUSED, refusal
from pdprivacy.expressions.steps import Transform, clip, dropna, fillna, query, select
from pdprivacy.expressions.syntax import Syntax

__all__ = [
    "REFUSED",
    "ExpressionReader",
    "Syntax",
    "Transform",
    "assign",
    "astype",
    "clip",
    "cut",
    "date_field",
    "dense",
    "dropna",
    "fillna",
    "floats",
    "nulls",
    "query",
    "recode",
    "refusal",
    "rename",
    "select",
]
