"""What is for the curator alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pandas as pd

from pdprivacy.metadata import KEY
from pdprivacy.protection import Protected

__all__ = ["marked", "quality"]

F = TypeVar("F", bound=Callable[..., Any])


def marked(function: F) -> F:
    """The function; its frames, and most of what pandas makes of them, say that they are confidential."""

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if isinstance(found, pd.DataFrame | pd.Series):
            found.attrs[KEY] = {"confidential": function.__name__}
        return found

    return cast("F", method)


@marked
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
