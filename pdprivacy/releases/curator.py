"""What is for the curator alone."""

from __future__ import annotations

import pandas as pd

from pdprivacy.protection import Protected

__all__ = ["quality"]


def quality(protected: Protected) -> pd.DataFrame:
    """CONFIDENTIAL, for the curator: values clipped, null and unseen, and records dropped, per column.

    Counted at protection, exact and without noise: not for release.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.quality()
    confidential  clipped  null  unseen  dropped
    column
    age                 0     0       0        0
    """
    found = protected.quality.copy()
    found.columns.name = "confidential"
    return found
