"""Methods for the curator alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pandas as pd

from pdprivacy.metadata import KEY
from pdprivacy.protection import Protected
from pdprivacy.show.numbers import many, percent

__all__ = ["CuratorFrame", "marked", "quality"]

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


class CuratorFrame(pd.DataFrame):
    """A confidential DataFrame, with a line above its print that says what it adds up to.

    What pandas makes of it is a plain DataFrame, which keeps the mark. The line is in no ``attrs``, which
    pandas hands on and stores in files.
    """

    _metadata = ["summary"]  # noqa: RUF012
    summary: str

    @classmethod
    def of(cls, frame: pd.DataFrame, summary: str) -> CuratorFrame:
        """Return the frame with this line."""
        found = cls(frame)
        found.columns.name, found.summary = "confidential", summary
        return found

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        return f"Confidential: {self.summary}\n{self.to_string(max_rows=pd.options.display.max_rows)}"


@marked
def quality(protected: Protected) -> CuratorFrame:
    """CONFIDENTIAL, for the curator: count clipped, null and undeclared values and dropped records by column.

    The counts were taken when the frame was protected, without noise: do not publish them. The line above the
    table says how many records were left out in all; a record with several faults counts in each of their
    columns.

    >>> import pandas as pd, pandera.pandas as pa
    >>> age = pa.Column(int, pa.Check.in_range(0, 120), metadata={"dp": {}})
    >>> frame, schema = pd.DataFrame({"age": [31, 54] * 500}), pa.DataFrameSchema({"age": age})
    >>> private = frame.dp.protect(schema, epsilon=1)
    >>> private.dp.quality()
    Confidential: 0 of 1,000 records left out, 0 values clipped
    confidential  clipped  null  unseen  dropped
    column
    age                 0     0       0        0
    """
    dropped, rows = protected.omitted
    share = f" ({percent(dropped / rows)})" if dropped else ""
    clipped = int(protected.quality["clipped"].sum())
    line = f"{dropped:,} of {many(rows, 'record')}{share} left out, {many(clipped, 'value')} clipped"
    return CuratorFrame.of(protected.quality.copy(), line)
