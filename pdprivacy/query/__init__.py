"""A filter in the language of `DataFrame.query`, cut down to what is record by record.

Comparisons of declared columns with constants, joined by ``and``, ``or`` and ``not``: whether a
record passes depends on this record alone, so a filtered frame has the same neighbours as the
whole one. What the filter says about the bounds and categories narrows the declaration.
"""

from pdprivacy.query.condition import Query, parse
from pdprivacy.query.masks import dense, evaluate, nulls
from pdprivacy.query.narrowing import cropped, possible
from pdprivacy.query.reading import Reader
from pdprivacy.query.tree import Columns

__all__ = ["Columns", "Query", "Reader", "cropped", "dense", "evaluate", "nulls", "parse", "possible"]
