"""Declared transforms, and what is for the curator alone."""

from __future__ import annotations

import pandas as pd

from pdprivacy.protection import Protected, restrict

__all__ = ["quality", "query"]


def query(protected: Protected, expr: str) -> pd.DataFrame:
    """A protected frame of the records that meet a declared condition; costs nothing by itself.

    The grammar of `DataFrame.query` cut down to what looks at one record: comparisons of declared
    columns with constants, ``and``, ``or``, ``not``, ``in``, ``.isna()``. The domain is narrowed
    accordingly. The number of rows that meet it is private, whatever was public before.

    Raises QueryError for everything else, with the reason.
    """
    return restrict(protected, expr)


def quality(protected: Protected) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: values clipped, null and unseen, and records dropped, per column.

    Counted at protection, exact and without noise: not for release.
    """
    found = protected.quality.copy()
    found.columns.name = "confidential"
    return found
