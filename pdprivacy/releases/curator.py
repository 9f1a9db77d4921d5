"""What is for the curator alone."""

from __future__ import annotations

import pandas as pd

from pdprivacy.protection import Protected

__all__ = ["quality"]


def quality(protected: Protected) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: values clipped, null and unseen, and records dropped, per column.

    Counted at protection, exact and without noise: not for release.
    """
    found = protected.quality.copy()
    found.columns.name = "confidential"
    return found
