"""Declared steps that treat each record by itself, with what is declared of their results.

Each is a function from a declaration (and constants) to a `Transform`. Nothing here knows protected frames:
`pdprivacy.protection` applies them.
"""

from pdprivacy.transform.assign import assign
from pdprivacy.transform.clipping import clip
from pdprivacy.transform.core import Transform, dropna, query, select
from pdprivacy.transform.filling import fillna
from pdprivacy.transform.labels import cut, recode
from pdprivacy.transform.refused import REFUSED, refusal

__all__ = [
    "REFUSED",
    "Transform",
    "assign",
    "clip",
    "cut",
    "dropna",
    "fillna",
    "query",
    "recode",
    "refusal",
    "select",
]
